"""Behaviour as data for figures: which actions are taken for which, and the relations over the frames of a video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.action_inputs import Actions, Rows, read_actions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

OTHERS, NOTHING = "other actions", "nothing"
_SAME = 0.5
_MOST_SHOWN = 20
_PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion table: predicted actions by ground-truth action.

    Args:
        labels: (k,) the actions that are true most often.
        columns: (k + 2,) the same, then what other actions and nothing at all stand for.
        shares: (k, k + 2) of the ground-truth rows of each action; every row sums to 1.
        n: (k,) how many ground-truth rows there are.
    """

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    shares: Floats
    n: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """The table, JSON-ready."""
        return {
            "labels": list(self.labels),
            "columns": list(self.columns),
            "shares": np.round(self.shares, 6).tolist(),
            "n": list(self.n),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Confusion:
        """The table that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            labels, columns = (tuple(map(str, data[name])) for name in ("labels", "columns"))
            shares = np.array(data["shares"], dtype=np.float64).reshape(len(labels), len(columns))
            return cls(labels, columns, shares, tuple(map(int, data["n"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a confusion of actions is incomplete: {error}") from error


def compute_action_confusion(predictions: Predictions, scenes: Scenes) -> Confusion:
    """Compute the predicted actions of the persons of each ground-truth action.

    A ground-truth box is spoken for by the predicted box of its frame that it overlaps most, by at least one half. Of
    its n ground-truth actions, those among the n best-scored predicted ones are right; the others are shared out
    equally over the wrong ones among these n. Where fewer are predicted, the rest goes to `nothing`.

    Args:
        predictions: as the metric of actions takes them.
        scenes: ground-truth boxes with labels of the kind `action`; frames that nobody annotated are left out.

    Raises:
        InputError: if there is no ground truth, or predictions and ground truth do not fit each other.
    """
    actions = read_actions(predictions, scenes)
    truth = _build_table(actions.truth, actions)
    predicted = _build_table(actions.predictions, actions)
    pairs = _spoken_for(truth, predicted)
    truth = truth.select("name", true_box="box")
    of_box = truth.group_by("true_box").agg(pl.len().alias("asked"))
    best = (
        pairs.join(predicted.select("box", "score", "name"), on="box", maintain_order="left_right")
        .sort("true_box", "score", descending=[False, True], maintain_order=True)
        .join(of_box, on="true_box", maintain_order="left")
        .filter(pl.int_range(pl.len()).over("true_box") < pl.col("asked"))
        .select("true_box", predicted="name")
    )
    right = truth.join(best, left_on=["true_box", "name"], right_on=["true_box", "predicted"])
    rest = truth.join(right, on=["true_box", "name"], how="anti")
    wrong = best.join(right, left_on=["true_box", "predicted"], right_on=["true_box", "name"], how="anti")
    waiting = rest.group_by("true_box").agg(pl.len().alias("waiting"))
    shared = (
        rest.join(wrong, on="true_box")
        .join(waiting, on="true_box")
        .select("name", "predicted", share=1.0 / pl.col("waiting"))
    )
    cells = pl.concat([right.select("name", predicted="name", share=pl.lit(1.0)), shared])
    # Shares of cells as a table of the most frequent actions
    # By name where counts are equal, since a group-by comes in no order.
    counts = truth["name"].value_counts().sort(["count", "name"], descending=[True, False])
    shown = counts.head(_MOST_SHOWN)
    labels = tuple(shown["name"].to_list())
    place = {label: k for k, label in enumerate(labels)}
    totals = np.array(shown["count"].to_list(), dtype=np.float64)
    shares = np.zeros((len(labels), len(labels) + 2))
    sums = cells.group_by("name", "predicted", maintain_order=True).agg(pl.col("share").sum())
    for name, predicted, share in sums.sort("name", "predicted").iter_rows():
        if name in place:
            shares[place[name], place.get(predicted, len(labels))] += share
    shares[:, :-1] /= np.maximum(totals, 1.0)[:, None]
    # A sum of shares may exceed 1 by its rounding.
    shares[:, -1] = np.clip(1.0 - shares[:, :-1].sum(axis=1), 0.0, 1.0)
    return Confusion(labels, (*labels, OTHERS, NOTHING), shares, tuple(int(n) for n in totals))


def _build_table(rows: Rows, actions: Actions) -> pl.DataFrame:
    """Rows of annotated frames: `box`, `frame`, corners, `name` of the action and `score`, in their order."""
    rows = rows.take(~actions.frames.excluded[rows.frame])
    columns = {name: rows.corners[:, k] for k, name in enumerate(CORNERS)}
    named = pl.Series(actions.classes, dtype=pl.String).gather(rows.cls)
    return pl.DataFrame({"box": rows.box, "frame": rows.frame, **columns, "name": named, "score": rows.score})


def _spoken_for(truth: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """`true_box` and the predicted `box` that it overlaps most, by at least one half; the first of equals."""
    parts = []
    truth, predictions = (
        rows.unique("box", keep="first", maintain_order=True) for rows in (truth, predictions)
    )
    per_frame = max(1.0, len(predictions) / max(1, predictions["frame"].n_unique()))
    step = max(1, int(_PAIRS_AT_ONCE / per_frame))
    for start in range(0, len(truth), step):
        both = truth[start : start + step].join(
            predictions, on="frame", suffix="_c", maintain_order="left_right"
        )
        sides = {
            axis: (
                pl.min_horizontal(f"{axis}2_px", f"{axis}2_px_c")
                - pl.max_horizontal(f"{axis}1_px", f"{axis}1_px_c")
            ).clip(0)
            for axis in "xy"
        }
        inter = sides["x"] * sides["y"]
        union = _area("") + _area("_c") - inter
        near = both.select(true_box="box", box="box_c", overlap=inter / union).filter(
            pl.col("overlap") >= _SAME
        )
        near = near.sort("overlap", descending=True, maintain_order=True)
        parts.append(near.unique("true_box", keep="first", maintain_order=True))
    empty = pl.DataFrame(schema={"true_box": pl.Int64, "box": pl.Int64})
    return pl.concat([part.select("true_box", "box") for part in parts]) if parts else empty


def _area(suffix: str) -> pl.Expr:
    return (pl.col(f"x2_px{suffix}") - pl.col(f"x1_px{suffix}")) * (
        pl.col(f"y2_px{suffix}") - pl.col(f"y1_px{suffix}")
    )


ELSEWHERE = "elsewhere"
_MOST_TRUE, _FEWEST_PREDICTIONS = 24, 4


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
        predicted: whether it is predicted; else it is ground truth.
        found: of a prediction, whether it is right; of a ground-truth relation, whether a prediction found it; None where
            relations were not judged as a whole.
        score: of a prediction.
    """

    subject: int
    object: int
    predicate: str
    start: int
    end: int
    predicted: bool
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
    predicted = predicted.head(2 * len(truth) + _FEWEST_PREDICTIONS)
    tubes = list(dict.fromkeys([*truth["subject"].to_list(), *truth["object"].to_list()]))
    boxes = {tube: _boxes(scenes, tube) for tube in tubes}
    lane = {tube: place for place, tube in enumerate(tubes)}
    asked = dict.fromkeys([*predicted["subject"].to_list(), *predicted["object"].to_list()])
    own = len(predictions.tubes) > 0
    places = {
        tube: _assign_lane(_boxes(predictions, tube), boxes, lane) if own else lane.get(tube, len(tubes))
        for tube in asked
    }
    lanes = [
        Lane(name, *_span(*boxes[tube])) for name, tube in zip(_names(scenes, tubes), tubes, strict=True)
    ]
    if any(place == len(tubes) for place in places.values()):
        ends = predicted.select(pl.col("start_frame").min(), pl.col("end_frame").max()).row(0)
        lanes.append(Lane(ELSEWHERE, int(ends[0]), int(ends[1])))
    listed = [tables.meta.vocabularies.get("predicate", ()) for tables in (scenes, predictions)]
    arcs = [
        *_arcs(truth, lane, listed[0] or listed[1], seen, predicted=False),
        *_arcs(predicted, places, listed[1] or listed[0], right, predicted=True),
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
    predicted: bool,
) -> list[Arc]:
    return [
        Arc(
            lane[row["subject"]],
            lane[row["object"]],
            names[row["predicate"]] if row["predicate"] < len(names) else str(row["predicate"]),
            row["start_frame"],
            row["end_frame"],
            predicted,
            None if found is None else found.get(row["relation"], False),
            row.get("score") if predicted else None,
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
