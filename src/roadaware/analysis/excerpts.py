"""The moments of an evaluation that are worth seeing: a stretch of a video, and the boxes that are drawn in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.worst_tubes import TubeBoxes, list_tube_errors, select_kind
from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import is_outside, to_printable
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.scores import SampleScores
from roadaware.scenes.concatenation import get_image_sizes, rescale_predictions
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.videos import Film, collect_videos, find_videos

MOST_CLIPS = 4
"""Moments of an evaluation that its page shows, unless more or fewer are asked for."""
LONGEST_S = 3.0
COSTLY_AT = 0.2
"""Overlap at which the errors of tubes are told, that of the headline of road events."""
_MOST_ASKED = 12
_PAD_S = 0.4
_USUAL_FPS = 25.0
# An error behind these costs next to nothing, and looking for the films of thousands of videos would take long.
_MOST_TRIED = 60
_ELSEWHERE = ("{video}.mp4", "rgb-images/{video}/{number:05d}.jpg")
"""Where films lie of which the tables say nothing: by their name, and as images in the layout of ROAD."""
_FAULTS = {
    "missed": "{label} is missed",
    "duplicate": "{label} is found a second time",
    "space": "{label} is found, but its boxes are too far off",
    "time": "{label} is found, but begins or ends at the wrong time",
    "space_time": "{label} is found, but too far off in space and time",
    "class": "{meant} is taken for {label}",
    "class_and_place": "{meant} is taken for {label}, and its boxes are too far off",
    "background": "{label} is found where there is none",
    "broken": "{label} is found in pieces",
    "switched": "{label} is lost to another road user",
}


@dataclass(frozen=True)
class Outline:
    """A box as it is drawn.

    Args:
        corners: x1, y1, x2, y2 in pixels.
        words: what stands above it.
        true: whether it is of the ground truth.
    """

    corners: tuple[float, float, float, float]
    words: str
    true: bool


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A stretch of a video, and what is drawn in it.

    Args:
        says: what happens there, in one sentence.
        video: its name.
        film: its images; None where they are not found.
        fault: why not.
        first, end: its frames, the end not included.
        shown: the frame that stands for all of them.
        fps: of the video.
        size_px: (width, height) of the images that boxes are in; None for those of the film.
        outlines: frame to the boxes in it.
    """

    says: str
    video: str
    film: Film | None
    fault: str = ""
    first: int = 0
    end: int = 1
    shown: int = 0
    fps: float = _USUAL_FPS
    size_px: tuple[float, float] | None = None
    outlines: Mapping[int, Sequence[Outline]] = field(default_factory=dict)


@dataclass(frozen=True)
class Clip:
    """An excerpt as it is shown.

    Args:
        says: what happens there, in one sentence.
        mp4: the moving image; empty where there is none.
        poster: JPEG of the frame that stands for all of them; empty where no image was found.
        fault: what lacks, in words; empty where nothing does.
    """

    says: str
    mp4: bytes = field(default=b"", repr=False)
    poster: bytes = field(default=b"", repr=False)
    fault: str = ""


def check_clips(count: int) -> None:
    """Refuse a number of moments that no page shows.

    Raises:
        UsageError: if it is below 0, or above 12.
    """
    if not 0 <= count <= _MOST_ASKED:
        raise UsageError(f"--clips is a number of moments from 0 to {_MOST_ASKED}, not {count}")


def list_film_places(media: Path | None, data: Path) -> tuple[Path, ...]:
    """Where the films of a dataset may lie: in the folder that is named for them, else with the dataset.

    Args:
        media: a folder of films, or one film; None where none is named.
        data: the dataset: a folder, or a file in one.

    Raises:
        UsageError: if there is no such folder of films.
    """
    if media is not None:
        if not media.exists():
            raise UsageError(f"--media {media}: there is no such file or folder")
        return (media,)
    return (data, data.absolute().parent) if data.is_dir() else (data.absolute().parent,)


def find_film(scenes: Scenes, video: str, places: Sequence[Path]) -> Film:
    """The images of one video: where the tables say that they lie, else under its name.

    Args:
        scenes: whose video it is.
        video: its name.
        places: folders that paths start from, or films; the first that has it is taken.

    Raises:
        InputError: if it is in none of them, or cannot be read.
    """
    part = Scenes(
        videos=scenes.videos.filter(pl.col("video").cast(pl.String) == video),
        frames=scenes.frames.filter(pl.col("video").cast(pl.String) == video),
        meta=replace(scenes.meta, rows_read={}),
    )
    faults = []
    for place in places:
        if place.is_file():
            if place.stem == video:
                opened = collect_videos([place])
                if opened.films:
                    return opened.films[0]
                faults.append(InputError(opened.refused[video]))
            continue
        # A name that leads out of the folder is no name of a file in it, and braces would be filled in.
        plain = not is_outside(video) and not set("{}") & set(f"{place}{video}")
        for pattern in ("", *(_ELSEWHERE if plain else ())):
            try:
                return find_videos(part, place, pattern)[0][0]
            except InputError as error:
                faults.append(error)
    if not faults:
        raise InputError("no film of that name is given", where=to_printable(video))
    # Of one video alone the reason is told, and not how many of how many have one.
    reason = faults[0].message.partition("can be opened; the first: ")[2] or faults[0].message
    raise InputError(f"{reason}; --media DIR says where films lie")


def select_event_excerpts(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    places: Sequence[Path],
    *,
    most: int = MOST_CLIPS,
    kinds: Sequence[str] = (),
    threshold: float = COSTLY_AT,
) -> tuple[Excerpt, ...]:
    """The errors of tubes that cost most in mean average precision, no two of them at one time of one video.

    Args:
        predictions: with labelled tubes.
        scenes: ground truth.
        config: how tubes are compared.
        places: where films lie, as `find_film` takes them.
        most: how many; those with a film go first.
        kinds: of labels that are judged, all where empty: errors of the first of agent, action, event are shown.
        threshold: overlap of a hit.

    Returns:
        the costliest first; nothing where no tubes are predicted, or no error costs anything.
    """
    chosen = select_kind(predictions, scenes, kinds)
    if chosen is None or most < 1:
        return ()
    errors = list_tube_errors(predictions, scenes, config, chosen, threshold).filter(pl.col("cost") > 0)
    predicted, truth = TubeBoxes(rescale_predictions(predictions, scenes)), TubeBoxes(scenes)
    sizes, rates = get_image_sizes(scenes), _get_rates(scenes)

    def cut(row: Mapping[str, Any]) -> Excerpt:
        video, label, score = row["video"], row["label"], row["score"]
        of_truth, of_prediction = truth.of(row["truth"]), predicted.of(row["tube"])
        leading = of_truth if row["tube"] is None else of_prediction
        fps = rates.get(video, _USUAL_FPS)
        every = np.concatenate([of_truth[0], of_prediction[0]])
        first, end, shown = _select_span(*leading, every, fps)
        meant = row["meant_for"] or label
        said = label if score is None else f"{label} {score:.2f}"
        words = _FAULTS[row["fault"]].format(label=said, meant=meant)
        lasts = f"frames {every.min(initial=shown)} to {every.max(initial=shown)}"
        cost = f"this alone costs {100 * row['cost']:.2f} points of mean average precision"
        says = f"{words}: {video}, {lasts}; {cost}."
        outlines: dict[int, list[Outline]] = {}
        # The prediction is drawn over the truth that it nearly covers.
        _add_outlines(outlines, *of_truth, (first, end), meant, true=True)
        _add_outlines(outlines, *of_prediction, (first, end), said, true=False)
        return Excerpt(says, video, None, "", first, end, shown, fps, sizes.get(video), outlines)

    return _select_apart(errors, cut, scenes, places, most)


def select_sample_excerpts(
    state: SampleScores, scenes: Scenes, places: Sequence[Path], *, most: int = MOST_CLIPS
) -> tuple[Excerpt, ...]:
    """The wrong decisions whose true answer got the lowest score, one for each pedestrian.

    Args:
        state: scores beside their ground truth.
        scenes: whose `samples` are those of `state`, in the order of extraction.
        places: where films lie, as `find_film` takes them.
        most: how many; those with a film go first.

    Raises:
        UsageError: if samples and scores differ in number.
    """
    if len(scenes.samples) != len(state):
        raise UsageError(
            f"{len(scenes.samples)} samples for {len(state)} scores; pass the scenes of one split"
        )
    if not len(state) or most < 1:
        return ()
    state = state.take(np.argsort(state.places))
    each = np.hstack([1 - state.scores, state.scores]) if state.scores.shape[1] == 1 else state.scores
    decided = each.argmax(axis=1)
    wrong = scenes.samples.with_columns(
        pl.col("video").cast(pl.String),
        pl.Series("place", np.arange(len(state))),
        pl.Series("left", each[np.arange(len(state)), state.truth]),
    ).filter(pl.Series(decided != state.truth))
    wrong = wrong.sort("left", "place").unique("tube", keep="first", maintain_order=True)
    known = scenes.meta.vocabularies.get(str(scenes.samples["kind"][0]), ())
    names = [known[k] if k < len(known) else f"class {k}" for k in range(each.shape[1])]
    boxes, sizes, rates = TubeBoxes(scenes), get_image_sizes(scenes), _get_rates(scenes)

    def cut(row: Mapping[str, Any]) -> Excerpt:
        place, video, begin, last = row["place"], row["video"], row["start_frame"], row["end_frame"] - 1
        frames, corners = boxes.of(row["tube"])
        fps = rates.get(video, _USUAL_FPS)
        true, other = names[state.truth[place]], names[decided[place]]
        text = f"{other} {each[place, decided[place]]:.2f}"
        # A second of what was seen, and what came of it.
        first = max(0, last + 1 - round(fps), int(frames.min(initial=last)))
        end = max(last + 1, min(last + 1 + round((LONGEST_S - 1) * fps), int(frames.max(initial=last)) + 1))
        tte = row.get("tte_frames")
        when = "" if tte is None else f", {tte} frames before the event"
        says = (
            f"{state.pedestrian[place]}: {text} is said, and the truth is {true}; observed in frames "
            f"{begin} to {last}{when}."
        )
        outlines: dict[int, list[Outline]] = {}
        _add_outlines(outlines, frames, corners, (first, last), f"truth: {true}", true=True)
        words = f"truth: {true}, said: {text}"
        _add_outlines(outlines, frames, corners, (last, end), words, true=False)
        return Excerpt(says, video, None, "", first, end, last, fps, sizes.get(video), outlines)

    return _select_apart(wrong, cut, scenes, places, most)


def _select_apart(
    rows: pl.DataFrame,
    cut: Callable[[Mapping[str, Any]], Excerpt],
    scenes: Scenes,
    places: Sequence[Path],
    most: int,
) -> tuple[Excerpt, ...]:
    """The first excerpts that share no frame of a video, those with a film before the others."""

    @cache
    def find(video: str) -> Film | str:
        try:
            return find_film(scenes, video, places)
        except InputError as error:
            return str(error)

    seen: list[Excerpt] = []
    unseen: list[Excerpt] = []
    for row in rows.head(_MOST_TRIED).iter_rows(named=True):
        found = cut(row)
        taken = (each for each in (*seen, *unseen) if each.video == found.video)
        if any(each.first < found.end and found.first < each.end for each in taken):
            continue
        film = find(found.video)
        if isinstance(film, Film) and found.shown >= film.n_frames:
            film = f"{found.video} has {film.n_frames} frames, and frame {found.shown} is asked for"
        if isinstance(film, Film):
            seen.append(replace(found, film=film, end=min(found.end, film.n_frames)))
        else:
            unseen.append(replace(found, fault=film))
        if len(seen) == most:
            break
    return (*seen, *unseen)[:most]


def _select_span(frames: Ints, boxes: Floats, every: Ints, fps: float) -> tuple[int, int, int]:
    """First frame, end, and the frame that is shown: the middle one of those in which the box is about its largest.

    Args:
        frames: (n,) of the tube that is looked at.
        boxes: (n, 4) its boxes.
        every: (m,) frames of all tubes that are drawn.
        fps: of the video.
    """
    if not len(frames):
        return 0, 1, 0
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    large = frames[areas >= 0.9 * areas.max()] if np.isfinite(areas).all() else frames
    shown, pad, length = int(large[len(large) // 2]), round(_PAD_S * fps), max(1, round(LONGEST_S * fps))
    low, high = max(0, int(every.min()) - pad), int(every.max()) + 1 + pad
    first = max(low, min(shown - length // 2, high - length))
    return first, min(first + length, high), shown


def _add_outlines(
    outlines: dict[int, list[Outline]],
    frames: Ints,
    boxes: Floats,
    span: tuple[int, int],
    words: str,
    *,
    true: bool,
) -> None:
    held = (frames >= span[0]) & (frames < span[1]) & np.isfinite(boxes).all(axis=1)
    for frame, (x1, y1, x2, y2) in zip(frames[held].tolist(), boxes[held].tolist(), strict=True):
        outlines.setdefault(frame, []).append(Outline((x1, y1, x2, y2), words, true))


def _get_rates(scenes: Scenes) -> dict[str, float]:
    """Frames per second of the videos that say them."""
    if "fps" not in scenes.videos.columns:
        return {}
    rows = scenes.videos.select(pl.col("video").cast(pl.String), "fps").drop_nulls().iter_rows()
    return {video: float(fps) for video, fps in rows if 0 < fps < 1000}
