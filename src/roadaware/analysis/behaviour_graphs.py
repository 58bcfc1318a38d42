"""Behaviour graphs: relations over the frames of a video, ground truth beside predictions, as data for a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.geometry.boxes import paired_iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

ELSEWHERE = "elsewhere"
_SAME = 0.5
_MOST_TRUE, _FEWEST_CLAIMS = 24, 4


@dataclass(frozen=True)
class Lane:
    """One person, from the first to the last frame that shows them.

    Args:
        name: in words.
        start: first frame with a box.
        end: frame after the last.
    """

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Arc:
    """One relation.

    Args:
        subject: lane of who does it.
        object: lane of whom it is done to.
        predicate: what is done.
        start: first frame.
        end: frame after the last.
        claimed: whether it is predicted; else it is ground truth.
        found: of a prediction, whether it is right; of a ground-truth relation, whether a prediction found it; None where
            relations were not judged as a whole.
        score: of a prediction.
    """

    subject: int
    object: int
    predicate: str
    start: int
    end: int
    claimed: bool
    found: bool | None = None
    score: float | None = None


@dataclass(frozen=True)
class BehaviourGraph:
    """One video.

    Args:
        says: what is seen, in words.
        lanes: who is in it.
        arcs: who does what to whom, ground-truth ones first.
    """

    says: str
    lanes: tuple[Lane, ...]
    arcs: tuple[Arc, ...]

    def as_dict(self) -> dict[str, Any]:
        """The graph, JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BehaviourGraph:
        """The graph that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            lanes = tuple(Lane(str(d["name"]), int(d["start"]), int(d["end"])) for d in data["lanes"])
            arcs = tuple(Arc(**held) for held in data["arcs"])
            if not all(0 <= lane < len(lanes) for arc in arcs for lane in (arc.subject, arc.object)):
                raise ValueError("an arc has no lane")
            return cls(str(data["says"]), lanes, arcs)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a behaviour graph is incomplete: {error}") from error


def build_behaviour_graph(
    predictions: Predictions,
    scenes: Scenes,
    video: str,
    *,
    says: str = "",
    right: Mapping[int, bool] | None = None,
    seen: Mapping[int, bool] | None = None,
) -> BehaviourGraph:
    """The relations of one video, with the best predictions on them.

    A predicted tube stands in the lane of the ground-truth one that it overlaps most, by at least one half on average
    over its frames; one that overlaps none so much stands in a lane of its own, `elsewhere`. Predictions without
    tubes of their own name those of the ground truth by number.

    Args:
        predictions: predicted relations between tubes with boxes.
        scenes: ground-truth ones.
        video: which.
        says: what is seen, in words.
        right: number of a predicted relation to whether it is right.
        seen: number of a ground-truth relation to whether a prediction found it.
    """
    truth = _relations(scenes, video).sort("start_frame", maintain_order=True).head(_MOST_TRUE)
    predicted = _relations(predictions, video)
    if "score" in predicted.columns:
        predicted = predicted.sort("score", descending=True, maintain_order=True)
    predicted = predicted.head(2 * len(truth) + _FEWEST_CLAIMS)
    tubes = list(dict.fromkeys([*truth["subject"].to_list(), *truth["object"].to_list()]))
    boxes = {tube: _boxes(scenes, tube) for tube in tubes}
    lane = {tube: place for place, tube in enumerate(tubes)}
    asked = dict.fromkeys([*predicted["subject"].to_list(), *predicted["object"].to_list()])
    own = len(predictions.tubes) > 0
    claimed = {
        tube: _assign_lane(_boxes(predictions, tube), boxes, lane) if own else lane.get(tube, len(tubes))
        for tube in asked
    }
    lanes = [
        Lane(name, *_span(*boxes[tube])) for name, tube in zip(_names(scenes, tubes), tubes, strict=True)
    ]
    if any(place == len(tubes) for place in claimed.values()):
        ends = predicted.select(pl.col("start_frame").min(), pl.col("end_frame").max()).row(0)
        lanes.append(Lane(ELSEWHERE, int(ends[0]), int(ends[1])))
    listed = [tables.meta.vocabularies.get("predicate", ()) for tables in (scenes, predictions)]
    arcs = [
        *_arcs(truth, lane, listed[0] or listed[1], seen, claimed=False),
        *_arcs(predicted, claimed, listed[1] or listed[0], right, claimed=True),
    ]
    return BehaviourGraph(says or video, tuple(lanes), tuple(arcs))


def _relations(tables: TableSet, video: str) -> pl.DataFrame:
    return tables.relations.filter(pl.col("video").cast(pl.String) == video)


def _arcs(
    rows: pl.DataFrame,
    lane: Mapping[int, int],
    names: Sequence[str],
    found: Mapping[int, bool] | None,
    *,
    claimed: bool,
) -> list[Arc]:
    return [
        Arc(
            lane[row["subject"]],
            lane[row["object"]],
            names[row["predicate"]] if row["predicate"] < len(names) else str(row["predicate"]),
            row["start_frame"],
            row["end_frame"],
            claimed,
            None if found is None else found.get(row["relation"], False),
            row.get("score") if claimed else None,
        )
        for row in rows.iter_rows(named=True)
    ]


def _names(scenes: Scenes, tubes: Sequence[int]) -> list[str]:
    """Names of tubes: category and native name."""
    held = scenes.tubes.filter(pl.col("tube").is_in(tubes))
    native = dict(zip(held["tube"], held["name"], strict=True)) if "name" in held.columns else {}
    kinds = scenes.tube_labels.filter(pl.col("tube").is_in(tubes), pl.col("kind") == "category")
    listed = scenes.meta.vocabularies.get("category", ())
    category = {
        tube: listed[label]
        for tube, label in kinds.select("tube", "label").iter_rows()
        if label < len(listed)
    }
    return [f"{category.get(tube, 'somebody')} {native.get(tube) or tube}" for tube in tubes]


def _boxes(tables: TableSet, tube: int) -> tuple[Ints, Floats]:
    """(n,) frames of a tube, rising, and its (n, 4) boxes."""
    if "tube" not in tables.boxes.columns:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 4))
    rows = tables.boxes.filter(pl.col("tube") == tube).sort("frame", maintain_order=True)
    return rows["frame"].to_numpy().astype(np.int64), rows.select(CORNERS).to_numpy().astype(np.float64)


def _span(frames: Ints, _: Floats) -> tuple[int, int]:
    return (int(frames[0]), int(frames[-1]) + 1) if len(frames) else (0, 0)


def _assign_lane(
    predicted: tuple[Ints, Floats], truth: Mapping[int, tuple[Ints, Floats]], lane: Mapping[int, int]
) -> int:
    """The lane of the ground-truth tube that a predicted one overlaps most; one past the last where none does."""
    frames, boxes = predicted
    best, place = _SAME, len(truth)
    for tube, (theirs, corners) in truth.items():
        _, mine, other = np.intersect1d(frames, theirs, return_indices=True)
        if not len(mine):
            continue
        shared = float(np.sum(paired_iou(boxes[mine], corners[other]))) / len(frames)
        if shared >= best:
            best, place = shared, lane[tube]
    return place
