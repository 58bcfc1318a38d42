"""The video of a watch drawn once more, with what a network of crowds found: actions, relations, sentences and sounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.errors import RoadawareError
from roadaware.io.parquet import read_parquet
from roadaware.io.video import VideoReader
from roadaware.online.crowd import MOMENTS
from roadaware.online.events import CROWD, FILM
from roadaware.online.film import Film
from roadaware.online.times import TABLES
from roadaware.reports.drawing import COLOURS, Arrow, CrowdFrame, draw_crowd
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import is_saved, open_predictions

_MOST_ACTIONS = 2
"""Words on a person; more would hide the next one."""
Corners = tuple[float, float, float, float]


class FoundCrowd:
    """What the sets in the folder of a watch say of each frame, as far as it was found.

    Args:
        folder: of the watch.
        found: what `watch_crowd` gave: its scores decide.
    """

    def __init__(self, folder: Path, found: Mapping[str, Any]) -> None:
        self._folder, self._least = folder / CROWD, found["least"]
        self._sentences = [bool(each["found"]) for each in found["sentences"]]
        self._frames: defaultdict[int, CrowdFrame] = defaultdict(CrowdFrame)
        for task, collect in (
            ("actions", self._collect_actions),
            ("relations", self._collect_relations),
            ("grounding", self._collect_sentences),
        ):
            if is_saved(self._folder / task):
                collect()
        if (self._folder / MOMENTS).is_file():
            self._collect_sounds()

    def __getitem__(self, frame: int) -> CrowdFrame:
        """What is drawn on a frame of the tables."""
        return self._frames.get(frame) or CrowdFrame()

    def _collect_actions(self) -> None:
        tables = open_predictions(self._folder / "actions")
        words = tables.meta.vocabularies["action"]
        if tables.boxes.is_empty():
            return
        scores = tables.boxes["scores"].to_numpy()
        rows = np.flatnonzero(scores.max(axis=1, initial=0.0) >= self._least["action"])
        for row, frame, *corners in (
            tables.boxes.with_row_index("row")[rows.tolist()].select("row", "frame", *CORNERS).iter_rows()
        ):
            best = np.argsort(-scores[row], kind="stable")[:_MOST_ACTIONS]
            named = [words[k] for k in best.tolist() if scores[row, k] >= self._least["action"]]
            self._frames[frame].actions.append((_to_corners(corners), " + ".join(named)))

    def _collect_relations(self) -> None:
        tables = open_predictions(self._folder / "relations")
        held = _index_boxes(tables.boxes)
        words = tables.meta.vocabularies.get("predicate", ())
        strong = tables.relations.filter(pl.col("score") >= self._least["relation"])
        for row in strong.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
            colour = COLOURS[row["subject"] % (len(COLOURS) - 1)]
            for frame in range(row["start_frame"], row["end_frame"]):
                ends = held.get((row["subject"], frame)), held.get((row["object"], frame))
                if ends[0] is not None and ends[1] is not None:
                    arrow = Arrow(ends[0], ends[1], words[row["predicate"]], colour)
                    self._frames[frame].arrows.append(arrow)

    def _collect_sentences(self) -> None:
        tables = open_predictions(self._folder / "grounding")
        held = _index_boxes(tables.boxes)
        for row in tables.queries.iter_rows(named=True):
            if not self._sentences[row["query"]]:
                continue
            colour = COLOURS[row["query"] % (len(COLOURS) - 1)]
            for frame in range(row["start_frame"], row["end_frame"]):
                self._frames[frame].sentences.append((colour, row["text"]))
                corners = held.get((row["tube"], frame))
                if corners is not None:
                    self._frames[frame].spoken.append((corners, colour))

    def _collect_sounds(self) -> None:
        """Each moment stands for the frames until the next one of its sound."""
        moments = read_parquet(self._folder / MOMENTS)
        for _, part in moments.group_by("sound", maintain_order=True):
            frames = part["frame"].to_list()
            step = frames[1] - frames[0] if len(frames) > 1 else 1
            for row, start, end in zip(
                part.iter_rows(named=True), frames, [*frames[1:], frames[-1] + step], strict=True
            ):
                if row["score"] is None or row["score"] < self._least["sound"]:
                    continue
                corners = _to_corners([row[side] for side in CORNERS])
                for frame in range(start, end):
                    self._frames[frame].sounds.append((corners, row["name"]))


def _to_corners(sides: list[float]) -> Corners:
    return sides[0], sides[1], sides[2], sides[3]


def _index_boxes(boxes: pl.DataFrame) -> dict[tuple[int, int], Corners]:
    """Tube and frame to corners."""
    rows = boxes.select("tube", "frame", *CORNERS).iter_rows() if len(boxes) else ()
    return {(tube, frame): _to_corners(sides) for tube, frame, *sides in rows}


def draw_crowd_film(
    folder: Path,
    found: Mapping[str, Any],
    *,
    fps: float | None,
    width_px: int,
    sound: Path | None = None,
    start_s: float = 0.0,
    silent: Callable[[str], None] = lambda why: None,
    progress: Callable[[int, int, str], None] | None = None,
) -> bool:
    """Draw what was found on the video of a watch; the old video stands until the new one is whole.

    Args:
        folder: of the watch.
        found: what `watch_crowd` gave.
        fps: of the source; None where it is not known.
        width_px: of the images that were watched: the video may be larger.
        sound, start_s, silent: as of `online.film.Film`.
        progress: called with the frames done and the total.

    Returns:
        Whether there is a video to draw on.

    Raises:
        InputError: if the video cannot be read.
        DiskError: if the new one cannot be written.
    """
    path = folder / FILM
    if not path.is_file():
        return False
    crowd = FoundCrowd(folder, found)
    times = open_predictions(folder / TABLES).frames.sort("frame")
    frames, t_s = times["frame"].to_numpy(), times["t_s"].to_numpy().astype(np.float64)
    film = Film(path, fps, sound, start_s, silent)
    try:
        with VideoReader(path) as reader:
            scale = max(1, reader.width_px // width_px)
            pace = reader.fps or fps or 1.0
            for number, image in enumerate(reader):
                at_s = float(t_s[0]) + number / pace
                # A frame is shown until the next one; half a tick for rates that are rounded.
                shown = max(0, int(np.searchsorted(t_s, at_s + 0.5 / pace)) - 1)
                film.write(draw_crowd(image, crowd[int(frames[shown])], scale=scale), at_s)
                if progress is not None:
                    progress(number + 1, len(reader), "frames drawn")
        return film.close()
    except RoadawareError:
        film.abandon()
        raise
