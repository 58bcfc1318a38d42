"""Crowds: what people do, what they do to others, sentences and sounds of videos as samples of the networks that answer
them; and answers as Predictions.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import InputError
from roadaware.geometry.boxes import iou
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader
from roadaware.metrics.grounding import GroundingConfig, convert_frame_rate, sample_frames
from roadaware.models.crowd.config import Task, Vocabulary, has_word
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.schema import CORNERS, PEOPLE
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.tasks.poses import people_in
from roadaware.tasks.videos import Film

_log = logging.getLogger("roadaware")
_USUAL_FPS = 25.0
_LONGER = 1.25
"""A film with so many times the frames of its annotations is probably at another rate."""
_SHARES_PX = 2.0
"""Boxes that all lie within so many pixels of the corner are shares, some of which reach beyond the image."""
_WINDOW_S = 1.5
"""A sound is heard so long before and behind the moment that is asked about."""
ANY_SOUND = "sound"
"""The class of sounds where a set names none."""

# Ground truth of a video as arrays.


@dataclass(frozen=True, eq=False)
class CrowdVideo:
    """A video with what is true of it; corners are pixels of the video, frames numbers of the tables.

    Args:
        film: where it lies.
        fps: of the film.
        frames: (T,) frames of the film that are looked at, rising; a slot is a place among them.
        ratio, origin: a frame f of the tables is frame `origin + ratio * f` of the film.
        box: (n,) numbers of the boxes, by rising frame.
        frame: (n,) of each.
        slot: (n,) the frame that is looked at which is nearest to it.
        key: (n,) whether its frame is the nearest to that slot of all with boxes.
        corners: (n, 4) x1, y1, x2, y2.
        tube: (n,) who it is; -1 for unknown.
        person: (n,) whether it is a person.
        actions: (n, classes) what it does.
        sound: (n,) number of the sound that it makes; -1 for none.
        relations: (r, 5) subject, object, predicate, first frame, frame after the last.
        queries: rows of the sentences, as the table has them, with `text`.
        sounds: rows of the sounds: `sound`, `class` (-1 for any), `slot`, `start_s`, `end_s`; seconds after frame 0.
        begins_s: time of frame 0 on the clock of its file, by which the sound track goes.
    """

    film: Film
    fps: float
    frames: Ints
    ratio: float
    origin: float
    box: Ints
    frame: Ints
    slot: Ints
    key: Bools
    corners: Floats32
    tube: Ints
    person: Bools
    actions: Bools
    sound: Ints
    relations: Ints
    queries: list[dict[str, Any]]
    sounds: list[dict[str, Any]]
    begins_s: float = 0.0
    _tracks: dict[int, tuple[Ints, Floats32]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.frames)

    def to_table(self, slot: int) -> int:
        """The frame of the tables that a slot shows; that behind the last slot is one step on."""
        step = max(1.0, float(self.frames[-1] - self.frames[0]) / max(1, len(self) - 1))
        at = float(self.frames[slot]) if slot < len(self) else float(self.frames[-1]) + step
        return round((at - self.origin) / self.ratio)

    def seconds(self, slot: int) -> float:
        """When a slot is shown, in seconds after frame 0 of the film."""
        return float(self.frames[slot]) / self.fps

    def find_slots(self, start: int | None, end: int | None) -> Ints:
        """The slots within frames [start, end) of the tables; all where None, and one at least."""
        low = 0.0 if start is None else self.origin + self.ratio * start
        high = float(self.film.n_frames) if end is None else self.origin + self.ratio * end
        found = np.flatnonzero((self.frames >= low - 1e-6) & (self.frames < high - 1e-6))
        if not len(found):
            found = np.array([int(np.abs(self.frames - low).argmin())])
        return found.astype(np.int64)

    def track(self, tube: int, slots: Ints) -> Floats32:
        """(k, 4) the box of somebody in each slot: that of the nearest frame in which there is one."""
        if tube not in self._tracks:
            own = self.tube == tube
            # Of several frames near a slot the nearest, where it has a box.
            rows = np.flatnonzero(own & self.key if (own & self.key).any() else own)
            self._tracks[tube] = (self.slot[rows], self.corners[rows])
        held, corners = self._tracks[tube]
        after = np.clip(np.searchsorted(held, slots), 0, len(held) - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.abs(held[before] - slots) < np.abs(held[after] - slots)
        return corners[np.where(nearer, before, after)]

    def track_around(self, tubes: Ints, corners: Floats32, slot: int, frames: int) -> Floats32:
        """(n, frames, 4) the boxes of people around a slot, in the middle those of the slot itself.

        Args:
            tubes: (n,) who they are; somebody who is unknown (-1) is taken to stand still.
            corners: (n, 4) their boxes in that slot.
            slot: the middle one.
            frames: an odd number; before the first and behind the last slot these are repeated.
        """
        slots = np.clip(slot + np.arange(frames) - frames // 2, 0, len(self) - 1)
        found = np.repeat(corners[:, None].astype(np.float32), frames, axis=1)
        for row, tube in enumerate(tubes.tolist()):
            if tube >= 0:
                found[row] = self.track(tube, slots)
                found[row, frames // 2] = corners[row]
        return found

    def people(self, slot: int) -> Ints:
        """The rows of the people of a slot, in the frame nearest to it."""
        found: Ints = np.flatnonzero((self.slot == slot) & self.key & self.person)
        return found


@dataclass(frozen=True, eq=False)
class CrowdSet:
    """Videos, and everything that can be asked about them.

    Args:
        videos: with what is true of them.
        vocabulary: labels by number.
        asks: task to (m, 2) video and what is asked: a slot (actions, relations), or a row of its sentences or sounds.
    """

    videos: list[CrowdVideo]
    vocabulary: Vocabulary
    asks: dict[Task, Ints]


def list_used(scenes: Scenes) -> dict[str, tuple[str, ...]]:
    """The labels that occur, by kind: `actions`, `predicates`, `sounds`; and the `sentences`."""
    known = scenes.meta.vocabularies

    def names(kind: str, numbers: Iterable[int | None]) -> tuple[str, ...]:
        held = sorted({number for number in numbers if number is not None})
        words = known.get(kind)
        return tuple(words[n] if words else str(n) for n in held)

    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == "action")["label"].unique().to_list()
    sounds = scenes.sounds["label"].unique().to_list() if "label" in scenes.sounds.columns else []
    heard = names("sound", sounds) or ((ANY_SOUND,) if len(scenes.sounds) else ())
    texts = scenes.queries["text"].drop_nulls().to_list() if "text" in scenes.queries.columns else []
    return {
        "actions": names("action", labels),
        "predicates": names("predicate", scenes.relations["predicate"].unique().to_list()),
        "sounds": heard,
        "sentences": tuple(text for text in texts if has_word(text)),
    }


def build_crowd_set(scenes: Scenes, films: Sequence[Film], vocabulary: Vocabulary, fps: float) -> CrowdSet:
    """Everything that can be asked about videos whose ground truth is known.

    Boxes in shares of the image, as AVA and VGG-SS have them, are brought to pixels. Where the tables count other frames
    than the film does (AVA: one a second), frames meet by time; the one frame of an item of VGG-SS is the middle one of
    its film. What lies behind the end of a film is left out and counted, as are labels that the vocabulary lacks.

    Args:
        scenes: the ground truth.
        films: its videos.
        vocabulary: labels by number.
        fps: frames a second that are looked at.

    Raises:
        InputError: if a film cannot be opened, or boxes are shares of the image and their set is in pixels.
    """
    parts = {
        name: {str(key[0]): part for key, part in _by_video(getattr(scenes, name)).items()}
        for name in ("boxes", "relations", "queries", "sounds")
    }
    left_out = Counter[str]()
    hot = _find_actions(scenes, vocabulary, left_out)
    persons = _find_persons(scenes)
    rows = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    maps = {kind: _map_labels(scenes, kind, vocabulary) for kind in ("predicate", "sound")}
    videos = [
        _build_video(film, rows[film.video], parts, hot, persons, maps, vocabulary, fps, left_out)
        for film in films
    ]
    for what, number in left_out.items():
        _log.warning("%d %s", number, what)
    farthest = max((float(video.corners.max()) for video in videos if len(video.corners)), default=None)
    if farthest is not None and farthest <= _SHARES_PX:
        raise InputError(
            "all boxes lie within two pixels of the corner of the image: they look like shares of it, where pixels are due",
            hint="multiply x by the width and y by the height of the image",
        )
    return CrowdSet(videos, vocabulary, _list_asks(videos))


_MEETS = 0.5
"""Overlap from which on a box of a detector counts as that of somebody."""


def label_detections(found: Predictions, scenes: Scenes) -> Scenes:
    """People whom a detector found in videos whose ground truth is known, and what they do, as ground truth to learn from.

    In each frame detected and true people are paired so that they overlap most in all; of pairs that overlap by half or more
    the detected one does what the true one does, the others nothing.

    Args:
        found: tables with tubes, as `roadaware link` writes them.
        scenes: the ground truth.

    Returns:
        Boxes, tubes and labels of actions of the people found in the videos of `scenes`.

    Raises:
        InputError: if nobody is found there, or no true person is met.
    """
    from scipy.optimize import linear_sum_assignment

    boxes = people_in(found).filter(pl.col("video").is_in(scenes.videos["video"].cast(pl.String).implode()))
    if boxes.is_empty():
        raise InputError("the detections have no people in these videos")
    boxes = boxes.with_row_index("box").cast({"box": pl.Int64})
    tubes = boxes.select("video", "name").unique(maintain_order=True)
    tubes = tubes.with_row_index("tube").cast({"tube": pl.Int64})
    boxes = boxes.join(tubes, on=["video", "name"], how="left", maintain_order="left")
    persons, true = _find_persons(scenes), scenes.boxes.with_columns(pl.col("video").cast(pl.String))
    if persons is not None:
        true = true.filter(pl.col("box").is_in(list(persons)))
    there = true.partition_by("video", "frame", as_dict=True)
    pairs: list[tuple[int, int]] = []
    for key, part in boxes.partition_by("video", "frame", as_dict=True).items():
        if key in there:
            overlap = iou(part.select(CORNERS).to_numpy(), there[key].select(CORNERS).to_numpy())
            rows, columns = linear_sum_assignment(overlap, maximize=True)
            met = overlap[rows, columns] >= _MEETS
            own, others = part["box"].to_numpy()[rows[met]], there[key]["box"].to_numpy()[columns[met]]
            pairs += zip(own.tolist(), others.tolist(), strict=True)
    if not pairs:
        raise InputError(
            "no detection overlaps a true person by half",
            hint="are these detections of the same videos, with boxes in pixels of the same images?",
        )
    actions = scenes.labels.filter(pl.col("kind").cast(pl.String) == "action")
    same = pl.DataFrame(pairs, schema={"own": pl.Int64, "box": pl.Int64}, orient="row")
    labels = same.join(actions, on="box", maintain_order="left").select(
        pl.col("own").alias("box"), "kind", "label"
    )
    known = {"action": scenes.meta.vocabularies.get("action", ())}
    return Scenes(
        videos=scenes.videos,
        boxes=boxes.select("box", "video", "frame", "tube", *CORNERS),
        tubes=tubes.select("tube", "video", "name"),
        labels=labels,
        meta=replace(scenes.meta, vocabularies=known),
    )


def _by_video(table: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    if table.is_empty():
        return {}
    named = table.with_columns(pl.col("video").cast(pl.String))
    return named.partition_by("video", as_dict=True, maintain_order=True)


def _map_labels(scenes: Scenes, kind: str, vocabulary: Vocabulary) -> dict[int, int]:
    """Number of a label in the tables to that in the vocabulary; those that it lacks are not there."""
    ours = {"action": vocabulary.actions, "predicate": vocabulary.predicates, "sound": vocabulary.sounds}[
        kind
    ]
    words = scenes.meta.vocabularies.get(kind)
    if not words:
        return {int(name): place for place, name in enumerate(ours) if name.isdigit()}
    places = {name: place for place, name in enumerate(ours)}
    return {number: places[name] for number, name in enumerate(words) if name in places}


def _find_actions(scenes: Scenes, vocabulary: Vocabulary, left_out: Counter[str]) -> dict[int, list[int]]:
    """Number of a box to what it does."""
    known = _map_labels(scenes, "action", vocabulary)
    found: dict[int, list[int]] = {}
    rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == "action").select("box", "label")
    for box, label in rows.iter_rows():
        if label in known:
            found.setdefault(box, []).append(known[label])
        elif vocabulary.actions:
            left_out["labels of actions that the vocabulary lacks are not learnt and not asked"] += 1
    return found


def _find_persons(scenes: Scenes) -> set[int] | None:
    """Numbers of the boxes that are people; None for all of them, where boxes name no agent."""
    words = scenes.meta.vocabularies.get("agent", ())
    people = [number for number, name in enumerate(words) if name.lower() in PEOPLE]
    rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent")
    if not people or rows.is_empty():
        return None
    return set(rows.filter(pl.col("label").is_in(people))["box"].to_list())


def _open_clock(film: Film, row: Mapping[str, Any]) -> tuple[float, float]:
    """Frames a second of a film, as it says itself, else as the tables do, else 25; and the time of its frame 0."""
    fps = row.get("fps")
    if film.is_pictures:
        return convert_frame_rate(float(fps)) if fps else _USUAL_FPS, 0.0
    with VideoReader(Path(film.path)) as reader:
        return reader.fps or (float(fps) if fps else _USUAL_FPS), reader.t_s(0)


def _build_video(
    film: Film,
    row: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, pl.DataFrame]],
    hot: Mapping[int, list[int]],
    persons: set[int] | None,
    maps: Mapping[str, Mapping[int, int]],
    vocabulary: Vocabulary,
    fps: float,
    left_out: Counter[str],
) -> CrowdVideo:
    (rate, begins_s), own = _open_clock(film, row), row.get("fps")
    # Rates of tables are in single precision: those that nearly agree are one.
    ratio = rate / float(own) if own and abs(rate / float(own) - 1) > 0.01 else 1.0
    alone = row.get("n_frames") == 1 and film.n_frames > 1
    count = row.get("n_frames")
    # HC-STVG's files count frames and name no rate
    if not own and count and count > 1 and film.n_frames > _LONGER * count:
        left_out[
            "videos have far more frames than the annotations say, which name no rate: is the frame rate another one? Boxes "
            "are taken for those of their first frames"
        ] += 1
    origin = float(film.n_frames // 2) if alone else 0.0
    frames = sample_frames(0, film.n_frames, rate, GroundingConfig(sample_fps=fps))
    if alone:
        # The middle one, whatever is next to it.
        frames = np.unique(np.append(frames, film.n_frames // 2))
    boxes = parts["boxes"].get(film.video)
    table = _build_boxes(film, row, boxes, frames, ratio, origin, left_out)
    n = len(table["box"])
    actions = np.zeros((n, len(vocabulary.actions)), dtype=np.bool_)
    for place, box in enumerate(table["box"].tolist()):
        actions[place, hot.get(box, [])] = True
    people = np.array([persons is None or box in persons for box in table["box"].tolist()], dtype=np.bool_)
    video = CrowdVideo(
        film=film, fps=rate, frames=frames, ratio=ratio, origin=origin,
        **table, person=people, actions=actions,
        relations=_build_relations(parts["relations"].get(film.video), maps["predicate"], table["tube"], left_out),
        queries=_build_queries(parts["queries"].get(film.video), left_out),
        sounds=[], begins_s=begins_s,
    )  # fmt: skip
    if film.video in parts["sounds"]:
        video.sounds.extend(
            _build_sounds(video, parts["sounds"][film.video], maps["sound"], vocabulary, left_out)
        )
    return video


def _build_boxes(
    film: Film,
    row: Mapping[str, Any],
    boxes: pl.DataFrame | None,
    frames: Ints,
    ratio: float,
    origin: float,
    left_out: Counter[str],
) -> dict[str, Any]:
    """The columns of a video's boxes, by rising frame."""
    if boxes is None:
        nothing = np.zeros(0, dtype=np.int64)
        return {
            "box": nothing, "frame": nothing, "slot": nothing, "tube": nothing, "sound": nothing,
            "key": np.zeros(0, dtype=np.bool_), "corners": np.zeros((0, 4), dtype=np.float32),
        }  # fmt: skip
    if "ignore" in boxes.columns:
        boxes = boxes.filter(~pl.col("ignore").fill_null(value=False))
    boxes = boxes.sort("frame", "box")
    at = origin + ratio * boxes["frame"].to_numpy()
    step = max(1.0, float(frames[-1] - frames[0]) / max(1, len(frames) - 1))
    inside = at < max(float(film.n_frames), float(frames[-1]) + step)
    if not inside.all():
        left_out["boxes lie behind the end of their video and are left out"] += int((~inside).sum())
        boxes, at = boxes.filter(pl.Series(inside)), at[inside]
    middle = (frames[1:] + frames[:-1]) / 2
    slot = np.searchsorted(middle, at, side="left").astype(np.int64)
    frame = boxes["frame"].to_numpy().astype(np.int64)
    away = np.abs(frames[slot] - at)
    nearest = np.full(len(frames), np.inf)
    np.minimum.at(nearest, slot, away)
    first = np.full(len(frames), np.iinfo(np.int64).max)
    best = away == nearest[slot]
    np.minimum.at(first, slot[best], frame[best])
    # Null or 0, as sets without a size have it, leaves pixels as they are.
    factors = [
        film.width / (row.get("width_px") or film.width),
        film.height / (row.get("height_px") or film.height),
    ]
    corners = boxes.select(CORNERS).to_numpy().astype(np.float64) * np.array(factors * 2)

    def numbers(column: str) -> Ints:
        if column not in boxes.columns:
            return np.full(len(boxes), -1, dtype=np.int64)
        found: Ints = boxes[column].fill_null(-1).to_numpy().astype(np.int64)
        return found

    return {
        "box": boxes["box"].to_numpy().astype(np.int64), "frame": frame, "slot": slot,
        "key": frame == first[slot], "corners": corners.astype(np.float32),
        "tube": numbers("tube"), "sound": numbers("sound"),
    }  # fmt: skip


def _build_relations(
    rows: pl.DataFrame | None, known: Mapping[int, int], tubes: Ints, left_out: Counter[str]
) -> Ints:
    """(r, 5) the relations whose predicate is known and whose people have boxes."""
    found: list[tuple[int, ...]] = []
    there = set(tubes.tolist())
    columns = ("subject", "object", "predicate", "start_frame", "end_frame")
    for row in rows.iter_rows(named=True) if rows is not None else ():
        values: list[Any] = [row.get(name) for name in columns]
        if None in values or values[2] not in known or not {values[0], values[1]} <= there:
            left_out[
                "relations have a predicate that the vocabulary lacks, no time, or people without boxes"
            ] += 1
            continue
        found.append((values[0], values[1], known[values[2]], values[3], values[4]))
    return np.array(found, dtype=np.int64).reshape(-1, 5)


def _build_queries(rows: pl.DataFrame | None, left_out: Counter[str]) -> list[dict[str, Any]]:
    found = []
    for row in rows.iter_rows(named=True) if rows is not None else ():
        if not has_word(row.get("text") or ""):
            left_out["sentences have no word and are not asked"] += 1
            continue
        found.append(row)
    return found


def _build_sounds(
    video: CrowdVideo,
    rows: pl.DataFrame,
    known: Mapping[int, int],
    vocabulary: Vocabulary,
    left_out: Counter[str],
) -> list[dict[str, Any]]:
    """Sounds with the moment that is asked about and the time in which they are heard."""
    found = []
    for row in rows.iter_rows(named=True):
        label, shown, start = row.get("label"), row.get("frame"), row.get("t_s")
        if label is not None and label not in known and vocabulary.sounds != (ANY_SOUND,):
            left_out["sounds have a label that the vocabulary lacks and are not asked for"] += 1
            continue
        if shown is None and start is not None:
            at = start * video.fps
        else:
            at = video.origin + video.ratio * (shown or 0)
        slot = int(np.abs(video.frames - at).argmin())
        begins = video.seconds(slot) if start is None else float(start)
        ends = row.get("end_s")
        found.append(
            {
                "sound": int(row["sound"]),
                "class": known.get(label, -1) if label is not None else -1,
                "slot": slot,
                "start_s": begins,
                "end_s": float(ends) if ends is not None else begins,
            }
        )
    return found


def _list_asks(videos: Sequence[CrowdVideo]) -> dict[Task, Ints]:
    """What can be asked, by task."""
    found: dict[Task, list[tuple[int, int]]] = {"actions": [], "relations": [], "grounding": [], "sound": []}
    for number, video in enumerate(videos):
        doing = video.key & video.person & video.actions.any(axis=1)
        found["actions"] += [(number, slot) for slot in np.unique(video.slot[doing]).tolist()]
        if len(video.relations):
            tracked = video.key & video.person & (video.tube >= 0)
            slots, counts = np.unique(video.slot[tracked], return_counts=True)
            found["relations"] += [(number, slot) for slot in slots[counts > 1].tolist()]
        tubes = set(video.tube.tolist())
        found["grounding"] += [
            (number, row)
            for row, query in enumerate(video.queries)
            if (query.get("tube") in tubes and None not in (query.get("start_frame"), query.get("end_frame")))
        ]
        found["sound"] += [(number, row) for row in range(len(video.sounds))]
    return {task: np.array(rows, dtype=np.int64).reshape(-1, 2) for task, rows in found.items()}


# Samples: one question with its answer.


@dataclass(eq=False)
class CrowdSample:
    """A question about a clip, and its answer; corners are pixels of the video.

    Args:
        name: for messages.
        task: which head is asked.
        video: number of the video.
        slots: (T,) of the clip.
        frame: the place in the clip that is asked about.
        boxes: actions and sound (n, 4), relations (n, T, 4), grounding (T, 4), NaN where there is none.
        targets: actions (n, classes) bool; relations (n, n, predicates) bool; sound (n, 1) bool, who makes it.
        sentence: of grounding.
        span: of grounding, first and last place inside; -1 for none.
        asked: of sound, the class; -1 for any.
        heard: of sound, whether it is heard and its source seen.
        at_s: of sound, the moment in seconds after frame 0.
        tracks: of actions, relations and sound, (n, K, 4) the boxes of each person around the frame that is asked about, over
            a longer time than the clip; of grounding, (n, T, K, 4) those of `people` around each frame.
        people: of grounding, (n, T, 4) everybody in the clip; the same of all questions about it.
        who: of grounding, who of them is spoken of; -1 for nobody, where the sentence is of another video.
    """

    name: str
    task: Task
    video: int
    slots: Ints
    frame: int
    boxes: Floats32
    targets: Bools
    sentence: str = ""
    span: tuple[int, int] = (-1, -1)
    asked: int = -1
    heard: bool = False
    at_s: float = 0.0
    tracks: Floats32 | None = None
    people: Floats32 | None = None
    who: int = -1


@dataclass(frozen=True)
class Cutting:
    """How samples are cut out of videos.

    Args:
        frames: of a clip, but for sentences.
        most_frames: of a clip that a sentence is looked for in; of more, evenly spread ones are taken.
        most_people: of a moment; of more, some by chance.
        crop: chance that a sentence is looked for in a part of its clip.
        crop_frames: of such a part, at most, where the span is not longer; 0 for any number.
        wrong: chance that a sound is asked for that is not heard.
        strange: chance that beside a sentence one of another video is asked, which nobody here goes with.
        questions: asked about the same clip, at most: moments of people, sentences, or classes of sound of a moment.
        track_frames: of the tracks around each frame, an odd number.
    """

    frames: int = 8
    most_frames: int = 100
    most_people: int = 48
    crop: float = 0.5
    crop_frames: int = 0
    wrong: float = 0.25
    strange: float = 0.0
    questions: int = 1
    track_frames: int = 41


def cut_samples(
    of: CrowdSet, task: Task, ask: tuple[int, int], cutting: Cutting, rng: np.random.Generator
) -> list[CrowdSample]:
    """A question with its answer, as training draws it, and others about the same clip.

    The clip costs far more than a question does: several make learning by the hour faster.

    Args:
        of: the videos.
        task: which head.
        ask: a row of `CrowdSet.asks`.
        cutting: how.
        rng: of these samples.
    """
    number, row = ask
    video, asks = of.videos[number], of.asks[task]
    rows = asks[asks[:, 0] == number, 1]
    others: list[int] = []
    if task in ("actions", "relations"):
        cut = _cut_actions if task == "actions" else _cut_relations
        first = cut(of, number, row, cutting, rng)
        if cutting.questions > 1:
            others = rows[np.isin(rows, first.slots) & (rows != row)].tolist()
            others = _some(np.array(others, dtype=np.int64), cutting.questions - 1, rng).tolist()
        return [first, *(cut(of, number, other, cutting, rng, first.slots) for other in others)]
    if task == "grounding":
        first = _cut_sentence(video, number, row, cutting, rng)
        if cutting.questions > 1:
            others = [
                other for other in rows.tolist() if other != row and _lies_within(video, other, first.slots)
            ]
            others = _some(np.array(others, dtype=np.int64), cutting.questions - 1, rng).tolist()
        samples = [
            first,
            *(_cut_sentence(video, number, other, cutting, rng, first.slots) for other in others),
        ]
        # Give questions about one clip the people in it; who is spoken of is always among them
        spoken_of = [int(video.queries[n]["tube"]) for n in (row, *others)]
        slots = samples[0].slots
        tubes = list_people(video, slots)
        if len(tubes) > cutting.most_people:
            tubes = _some(tubes, cutting.most_people, rng)
        tubes = np.union1d(tubes, spoken_of).astype(np.int64)
        people = np.stack([video.track(int(tube), slots) for tube in tubes])
        tracks = np.stack(
            [
                video.track_around(tubes, people[:, place], slot, cutting.track_frames)
                for place, slot in enumerate(slots.tolist())
            ],
            axis=1,
        )
        for sample, tube in zip(samples, spoken_of, strict=True):
            sample.people, sample.tracks = people, tracks
            sample.who = int(np.searchsorted(tubes, tube))
        return [*samples, *_draw_strange(of, number, samples, cutting, rng)]
    first = _cut_sound(of, number, row, cutting, rng)
    if cutting.questions > 1:
        slot = int(first.slots[first.frame])
        others = _some(rows[rows != row], cutting.questions - 1, rng).tolist()
        return [first, *(_cut_sound(of, number, other, cutting, rng, slot) for other in others)]
    return [first]


def clip_around(video: CrowdVideo, slot: int, frames: int) -> tuple[Ints, int]:
    """(frames,) slots of a clip with a slot in its middle, as far as the video reaches; and its place.

    The last frame of a short video is repeated.
    """
    start = int(np.clip(slot - frames // 2, 0, max(len(video) - frames, 0)))
    return np.minimum(start + np.arange(frames), len(video) - 1), slot - start


def _some(rows: Ints, most: int, rng: np.random.Generator) -> Ints:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _find_clip(video: CrowdVideo, slot: int, cutting: Cutting, within: Ints | None) -> tuple[Ints, int]:
    """The clip around a slot, or the one that it is to lie in, and its place there."""
    if within is None:
        return clip_around(video, slot, cutting.frames)
    return within, int(np.flatnonzero(within == slot)[0])


def _cut_actions(
    of: CrowdSet,
    number: int,
    slot: int,
    cutting: Cutting,
    rng: np.random.Generator,
    within: Ints | None = None,
) -> CrowdSample:
    video = of.videos[number]
    # Who has no label counts for nothing in the loss, but is somebody's neighbour.
    rows = _some(video.people(slot), cutting.most_people, rng)
    slots, frame = _find_clip(video, slot, cutting, within)
    name = f"{video.film.video}, frame {video.to_table(slot)}"
    corners = video.corners[rows]
    tracks = video.track_around(video.tube[rows], corners, slot, cutting.track_frames)
    return CrowdSample(name, "actions", number, slots, frame, corners, video.actions[rows], tracks=tracks)


def _cut_relations(
    of: CrowdSet,
    number: int,
    slot: int,
    cutting: Cutting,
    rng: np.random.Generator,
    within: Ints | None = None,
) -> CrowdSample:
    video = of.videos[number]
    rows = video.people(slot)
    rows = _some(rows[video.tube[rows] >= 0], cutting.most_people, rng)
    tubes, first = np.unique(video.tube[rows], return_index=True)
    slots, frame = _find_clip(video, slot, cutting, within)
    boxes = (
        np.stack([video.track(int(tube), slots) for tube in tubes])
        if len(tubes)
        else np.zeros((0, len(slots), 4))
    )
    boxes = boxes.astype(np.float32)
    if len(rows):
        boxes[:, frame] = video.corners[rows[first]]
    name = f"{video.film.video}, frame {video.to_table(slot)}"
    targets = mark_relations(video, tubes, video.to_table(slot), len(of.vocabulary.predicates))
    tracks = video.track_around(tubes, video.corners[rows[first]], slot, cutting.track_frames)
    return CrowdSample(name, "relations", number, slots, frame, boxes, targets, tracks=tracks)


def mark_relations(video: CrowdVideo, tubes: Ints, frame: int, predicates: int) -> Bools:
    """(n, n, predicates) what holds between people in a frame of the tables.

    Args:
        video: whose relations.
        tubes: (n,) rising.
        frame: of the tables.
        predicates: how many.
    """
    found = np.zeros((len(tubes), len(tubes), predicates), dtype=np.bool_)
    place = {tube: number for number, tube in enumerate(tubes.tolist())}
    for subject, other, predicate, start, end in video.relations.tolist():
        if start <= frame < end and subject in place and other in place:
            found[place[subject], place[other], predicate] = True
    return found


def spread(slots: Ints, most: int) -> Ints:
    """The slots, or of too many so many that are evenly spread."""
    return slots if len(slots) <= most else slots[(np.arange(most) * len(slots)) // most]


def _lies_within(video: CrowdVideo, row: int, slots: Ints) -> bool:
    """Whether a sentence is asked of the clip of some slots, and happens in it from its first to its last frame."""
    query = video.queries[row]
    asked = video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame"))
    span = video.find_slots(query["start_frame"], query["end_frame"])
    held = np.isin(slots, span)
    # Of a long clip some frames are looked at: it reaches to where the next one would be.
    end = slots[-1] + (int(np.diff(slots).max()) if len(slots) > 1 else 1)
    return bool(
        asked[0] <= slots[0]
        and slots[-1] <= asked[-1]
        and slots[0] <= span[0]
        and span[-1] < end
        and held.any()
    )


def _cut_sentence(
    video: CrowdVideo,
    number: int,
    row: int,
    cutting: Cutting,
    rng: np.random.Generator,
    within: Ints | None = None,
) -> CrowdSample:
    query = video.queries[row]
    whole = within
    if whole is None:
        whole = spread(
            video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame")),
            cutting.most_frames,
        )
    held = np.isin(whole, video.find_slots(query["start_frame"], query["end_frame"])).nonzero()[0]
    if not len(held):
        # The span lies between two frames that are looked at.
        near = video.find_slots(query["start_frame"], query["end_frame"])[0]
        held = np.array([int(np.abs(whole - near).argmin())])
    first, last = int(held[0]), int(held[-1])
    # As published: a part of the clip that holds the span.
    cut, low, high = rng.random(), int(rng.integers(first + 1)), int(rng.integers(last, len(whole)))
    if cutting.crop_frames:
        low = max(low, min(first, last + 1 - cutting.crop_frames))
        high = min(high, max(last, low + cutting.crop_frames - 1))
    if cut < cutting.crop and within is None:
        whole, first, last = whole[low : high + 1], first - low, last - low
    boxes = np.full((len(whole), 4), np.nan, dtype=np.float32)
    tube = int(query["tube"])
    if (video.tube == tube).any():
        boxes[first : last + 1] = video.track(tube, whole[first : last + 1])
    name = f"{video.film.video}, sentence {query['query']}"
    nothing = np.zeros((0, 0), dtype=np.bool_)
    return CrowdSample(name, "grounding", number, whole, 0, boxes, nothing, query["text"], (first, last))


def _draw_strange(
    of: CrowdSet, number: int, samples: Sequence[CrowdSample], cutting: Cutting, rng: np.random.Generator
) -> list[CrowdSample]:
    """Sentences of other videos, asked of this clip; one that is also a sentence of this video is passed over."""
    asks = of.asks["grounding"]
    asks = asks[asks[:, 0] != number]
    found: list[CrowdSample] = []
    if not len(asks) or not cutting.strange:
        return found
    own = {query["text"] for query in of.videos[number].queries}
    for sample in samples:
        drawn, place = rng.random(), int(rng.integers(len(asks)))
        text = of.videos[int(asks[place, 0])].queries[int(asks[place, 1])]["text"]
        if drawn < cutting.strange and text not in own:
            nowhere = np.full_like(sample.boxes, np.nan)
            found.append(replace(sample, boxes=nowhere, sentence=text, span=(-1, -1), who=-1))
    return found


def list_people(video: CrowdVideo, slots: Ints) -> Ints:
    """Tubes of the people who are seen at some time in a clip, rising."""
    seen = video.person & (video.tube >= 0) & (video.slot >= slots[0]) & (video.slot <= slots[-1])
    found: Ints = np.unique(video.tube[seen])
    return found


def has_others(of: CrowdSet) -> bool:
    """Whether in some clip of a sentence there are people beside the one of whom it speaks."""
    for number, row in of.asks["grounding"].tolist():
        video, query = of.videos[number], of.videos[number].queries[row]
        slots = video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame"))
        if len(list_people(video, slots)) > 1:
            return True
    return False


def _cut_sound(
    of: CrowdSet,
    number: int,
    row: int,
    cutting: Cutting,
    rng: np.random.Generator,
    within: int | None = None,
) -> CrowdSample:
    """As asked of a moment of its own, or of the slot `within`, where it may not be heard."""
    video, sound = of.videos[number], of.videos[number].sounds[row]
    shown = video.key & (video.sound == sound["sound"])
    times = video.frames / video.fps
    heard = (times >= sound["start_s"] - 1e-6) & (times <= max(sound["end_s"], sound["start_s"]) + 1e-6)
    # A moment that shows the source, where there is one; else any at which it is heard.
    for choices in (np.intersect1d(video.slot[shown], np.flatnonzero(heard)), np.unique(video.slot[shown]),
                    np.flatnonzero(heard), np.array([sound["slot"]])):  # fmt: skip
        if len(choices):
            slot = int(choices[int(rng.integers(len(choices)))])
            break
    slot = slot if within is None else within
    asked, at_s = int(sound["class"]), video.seconds(slot)
    near = hear_classes(video, at_s)
    strange = [c for c in range(len(of.vocabulary.sounds)) if c not in near]
    drawn, which = rng.random(), rng.random()
    if asked >= 0 and strange and drawn < cutting.wrong:
        asked, rows = strange[int(which * len(strange))], np.zeros(0, dtype=np.int64)
    elif within is not None and asked not in near:
        rows = np.zeros(0, dtype=np.int64)
    else:
        rows = find_sources(video, slot, sound["sound"], asked)
    slots, frame = clip_around(video, slot, cutting.frames)
    name = f"{video.film.video}, sound {sound['sound']} at {at_s:.1f} s"
    people = video.people(slot)
    tracks = video.track_around(video.tube[people], video.corners[people], slot, cutting.track_frames)
    boxes, makes = video.corners[rows], np.isin(people, rows)[:, None]
    return CrowdSample(
        name,
        "sound",
        number,
        slots,
        frame,
        boxes,
        makes,
        asked=asked,
        heard=len(rows) > 0,
        at_s=at_s,
        tracks=tracks,
    )


def hear_classes(video: CrowdVideo, at_s: float) -> set[int]:
    """Classes of the sounds that are heard around a moment."""
    near = (at_s - _WINDOW_S, at_s + _WINDOW_S)
    return {s["class"] for s in video.sounds if s["start_s"] <= near[1] and s["end_s"] >= near[0]}


def find_sources(video: CrowdVideo, slot: int, sound: int, asked: int) -> Ints:
    """Rows of the boxes, in the frame of a slot, of a sound and of all others of its class."""
    same = [s["sound"] for s in video.sounds if s["sound"] == sound or (asked >= 0 and s["class"] == asked)]
    found: Ints = np.flatnonzero((video.slot == slot) & video.key & np.isin(video.sound, same))
    return found


# Answers as Predictions, which the evaluators of the four tasks take.


def _meta(scenes: Scenes, vocabularies: Mapping[str, tuple[str, ...]]) -> Meta:
    notes: dict[str, Any] = {
        name: scenes.meta.notes[name]
        for name in ("unit_pictures", "first_frame")
        if name in scenes.meta.notes
    }
    held = {kind: labels for kind, labels in vocabularies.items() if labels}
    return Meta(scenes.meta.dataset, scenes.meta.licence, held, notes=notes)


def _videos(scenes: Scenes, names: Sequence[str]) -> pl.DataFrame:
    kept = [c for c in ("video", "width_px", "height_px", "fps", "n_frames") if c in scenes.videos.columns]
    return scenes.videos.select(kept).filter(pl.col("video").cast(pl.String).is_in(list(names)))


def build_action_predictions(
    scenes: Scenes, of: CrowdSet, answers: Sequence[tuple[Ints, Floats32]]
) -> Predictions:
    """What people do, as `evaluate actions` takes it: boxes with a score for each action.

    Args:
        scenes: whose boxes were asked about.
        of: the videos.
        answers: of each video numbers of boxes and (n, classes) scores in [0, 1].
    """
    labels = of.vocabulary.actions
    number = np.concatenate([np.zeros(0, np.int64), *(boxes for boxes, _ in answers)])
    scores = np.concatenate([np.zeros((0, len(labels)), np.float32), *(scores for _, scores in answers)])
    column = pl.Series("scores", scores.astype(np.float32), dtype=pl.Array(pl.Float32, len(labels)))
    asked = pl.DataFrame({"box": number}).with_columns(column)
    boxes = scenes.boxes.select("box", "video", "frame", *CORNERS).join(
        asked, on="box", maintain_order="left"
    )
    names = [video.film.video for video in of.videos]
    meta = set_score_layout(_meta(scenes, {"action": labels}), "boxes", ["action"])
    return Predictions(videos=_videos(scenes, names), boxes=boxes, meta=meta)


@dataclass(frozen=True)
class RelationRule:
    """How scores of moments become relations that last.

    Args:
        min_score: weaker ones are not reported.
        share: a relation lasts as long as its score is this share of its best.
        most: of a video, the strongest.
    """

    min_score: float = 0.001
    share: float = 0.5
    most: int = 200


def decode_relations(
    video: CrowdVideo, scores: Mapping[tuple[int, int], Floats32], rule: RelationRule
) -> list[tuple[int, int, int, int, int, float]]:
    """Relations of a video, the strongest first: subject, object, predicate, first frame, frame after the last, score.

    Args:
        video: whose.
        scores: subject and object to (T, predicates) scores in [0, 1] of each slot, 0 where it was not asked.
        rule: see there.
    """
    found = []
    for (subject, other), series in scores.items():
        for predicate in np.flatnonzero(series.max(axis=0, initial=0.0) >= rule.min_score).tolist():
            values = series[:, predicate]
            held = np.concatenate(
                [[False], values >= max(rule.min_score, rule.share * values.max()), [False]]
            )
            edges = np.flatnonzero(held[1:] != held[:-1]).reshape(-1, 2)
            for start, end in edges.tolist():
                strength = float(values[start:end].mean())
                first, last = video.to_table(start), video.to_table(end)
                found.append((subject, other, predicate, first, max(last, first + 1), strength))
    found.sort(key=lambda each: (-each[5], each[:5]))
    return found[: rule.most]


def build_relation_predictions(
    scenes: Scenes, of: CrowdSet, answers: Sequence[Sequence[tuple[int, int, int, int, int, float]]]
) -> Predictions:
    """What people do to others, as `evaluate relations` takes it; people are the tubes that were asked about.

    Args:
        scenes: whose tubes were asked about.
        of: the videos.
        answers: of each video what `decode_relations` gives.
    """
    tracked = scenes.boxes.filter(pl.col("tube").is_not_null()).group_by("tube")
    ends = tracked.agg(first=pl.col("frame").min(), last=pl.col("frame").max())
    lasts = {tube: (first, last + 1) for tube, first, last in ends.iter_rows()}
    rows: list[tuple[Any, ...]] = []
    for video, held in zip(of.videos, answers, strict=True):
        for subject, other, predicate, start, end, score in held:
            # Nothing is said of frames in which one of the two is not there.
            start = max(start, lasts[subject][0], lasts[other][0])
            end = min(end, lasts[subject][1], lasts[other][1])
            if start < end:
                rows.append((len(rows), video.film.video, subject, other, predicate, start, end, score))
    schema: dict[str, Any] = {
        "relation": pl.Int64, "video": pl.String, "subject": pl.Int64, "object": pl.Int64, "predicate": pl.Int64,
        "start_frame": pl.Int64, "end_frame": pl.Int64, "score": pl.Float64,
    }  # fmt: skip
    relations = pl.DataFrame(rows, schema=schema, orient="row")
    used = pl.concat([relations["subject"], relations["object"]]).unique().implode()
    kept = [c for c in ("tube", "video", "name", "start_frame", "end_frame") if c in scenes.tubes.columns]
    labels = scenes.tube_labels.filter(
        pl.col("kind").cast(pl.String) == "category", pl.col("tube").is_in(used)
    )
    words = {"predicate": of.vocabulary.predicates, "category": scenes.meta.vocabularies.get("category", ())}
    return Predictions(
        videos=_videos(scenes, [video.film.video for video in of.videos]),
        boxes=scenes.boxes.filter(pl.col("tube").is_in(used)).select(
            "box", "video", "frame", "tube", *CORNERS
        ),
        tubes=scenes.tubes.select(kept).filter(pl.col("tube").is_in(used)),
        tube_labels=labels.select("tube", "kind", "label"),
        relations=relations,
        meta=_meta(scenes, words),
    )


@dataclass(frozen=True, eq=False)
class GroundedQuery:
    """Where a sentence happens.

    Args:
        query: its number.
        video: number of the video.
        slots: (T,) that were looked at, rising.
        boxes: (T, 4) corners in pixels of the video.
        span: first place inside and the one behind the last.
        score: in [0, 1].
    """

    query: int
    video: int
    slots: Ints
    boxes: Floats32
    span: tuple[int, int]
    score: float


def build_grounding_predictions(
    scenes: Scenes, of: CrowdSet, answers: Sequence[GroundedQuery]
) -> Predictions:
    """Where and when sentences happen, as `evaluate grounding` takes it; boxes between two looks are interpolated."""
    rows, boxes = [], []
    sizes = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    for tube, each in enumerate(answers):
        video = of.videos[each.video]
        row, film = sizes[video.film.video], video.film
        looked = np.array([video.to_table(slot) for slot in each.slots.tolist()])
        start, stop = int(looked[each.span[0]]), video.to_table(int(each.slots[each.span[1] - 1]) + 1)
        stop = max(start + 1, min(stop, row.get("n_frames") or stop))
        # Behind the last look the box stays.
        frames = np.arange(looked[0], max(int(looked[-1]) + 1, stop))
        units = [
            (row.get("width_px") or film.width) / film.width,
            (row.get("height_px") or film.height) / film.height,
        ]
        corners = np.sort((each.boxes * np.array(units * 2)).reshape(-1, 2, 2), axis=1).reshape(-1, 4)
        between = np.stack([np.interp(frames, looked, corners[:, k]) for k in range(4)], axis=1)
        boxes.append((np.full(len(frames), tube), np.full(len(frames), each.video), frames, between))
        rows.append((each.query, film.video, tube, start, stop, each.score))
    names = np.array([video.film.video for video in of.videos], dtype=object)
    nothing = np.zeros(0, dtype=np.int64)
    columns = zip((nothing, nothing, nothing, np.zeros((0, 4))), *boxes, strict=True)
    whole = [np.concatenate(column) for column in columns]
    table = pl.DataFrame(
        {
            "box": np.arange(len(whole[0])),
            "video": pl.Series(names[whole[1].astype(np.int64)].tolist(), dtype=pl.String),
            "frame": whole[2].astype(np.int64),
            "tube": whole[0].astype(np.int64),
            **{name: whole[3][:, k] for k, name in enumerate(CORNERS)},
        }
    )
    schema: dict[str, Any] = {
        "query": pl.Int64, "video": pl.String, "tube": pl.Int64, "start_frame": pl.Int64, "end_frame": pl.Int64,
        "score": pl.Float64,
    }  # fmt: skip
    queries = pl.DataFrame(rows, schema=schema, orient="row")
    return Predictions(
        videos=_videos(scenes, names.tolist()),
        boxes=table,
        tubes=queries.select("tube", "video", "start_frame", "end_frame"),
        queries=queries,
        meta=_meta(scenes, {}),
    )


def build_sound_predictions(
    scenes: Scenes, of: CrowdSet, answers: Sequence[tuple[int, Floats32]]
) -> Predictions:
    """Where sounds come from, as `evaluate sound` takes it.

    Args:
        scenes: whose sounds were asked for.
        of: the videos.
        answers: number of a sound and its (h, w) map over the image.

    Raises:
        InputError: if a sound is none of the scenes.
    """
    known = {sound: str(video) for sound, video in scenes.sounds.select("sound", "video").iter_rows()}
    lost = [sound for sound, _ in answers if sound not in known]
    if lost:
        raise InputError(f"no sounds of the set: {to_printable(str(lost[:5]), 60)}")
    names = dict(scenes.sounds.select("sound", "name").iter_rows()) if "name" in scenes.sounds.columns else {}
    table = pl.DataFrame(
        {
            "sound": pl.Series([sound for sound, _ in answers], dtype=pl.Int64),
            "video": pl.Series([known[sound] for sound, _ in answers], dtype=pl.String),
            "name": pl.Series([names.get(sound) for sound, _ in answers], dtype=pl.String),
            "map": pl.Series([each.ravel().tolist() for _, each in answers], dtype=pl.List(pl.Float32)),
            "map_width": pl.Series([each.shape[1] for _, each in answers], dtype=pl.Int64),
        }
    )
    videos = _videos(scenes, [video.film.video for video in of.videos])
    return Predictions(videos=videos, sounds=table, meta=_meta(scenes, {"sound": of.vocabulary.sounds}))


def scale_boxes(boxes: Floats32, scale: tuple[float, float]) -> Floats32:
    """Corners (..., 4) in another size of the image; `scale` is of width and of height."""
    found: Floats32 = (boxes * np.array([*scale, *scale], dtype=np.float32)).astype(np.float32)
    return found


def count_labels(of: CrowdSet, task: Task) -> Bools:
    """(m, labels) which labels each question of a task asks about, to balance them; one column where none do."""
    asks = of.asks[task]
    sizes = {"actions": len(of.vocabulary.actions), "relations": len(of.vocabulary.predicates)}
    has = np.zeros((len(asks), max(1, sizes.get(task, len(of.vocabulary.sounds)))), dtype=np.bool_)
    for place, (number, row) in enumerate(asks.tolist()):
        video = of.videos[number]
        if task == "actions":
            has[place] = video.actions[video.people(row)].any(axis=0)
        elif task == "relations":
            frame = video.to_table(row)
            held = video.relations[(video.relations[:, 3] <= frame) & (frame < video.relations[:, 4])]
            has[place, held[:, 2]] = True
        elif task == "sound" and video.sounds[row]["class"] >= 0:
            has[place, video.sounds[row]["class"]] = True
    return has


def measure_relations(of: CrowdSet) -> tuple[Floats, int]:
    """(predicates,) in how many of the asked moments and ordered pairs each predicate holds, and how many there are."""
    counts, pairs = np.zeros(len(of.vocabulary.predicates)), 0
    for number, slot in of.asks["relations"].tolist():
        video = of.videos[number]
        tubes = np.unique(video.tube[video.people(slot)])
        tubes = tubes[tubes >= 0]
        counts += mark_relations(video, tubes, video.to_table(slot), len(counts)).sum(axis=(0, 1))
        pairs += len(tubes) * (len(tubes) - 1)
    return counts, pairs
