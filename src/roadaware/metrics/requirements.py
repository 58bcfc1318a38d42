"""Violations of logical requirements: in the labels of ground truth, and in predictions by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.requirements import (
    BoundRequirements,
    Requirements,
    bind_requirements,
    group_equal_rows,
)
from roadaware.scenes.tables import Predictions, Scenes, TableSet
from roadaware.statistics.intervals import Scale, Units

Level = Literal["boxes", "tubes"]
TENTHS = tuple(k / 10 for k in range(1, 10))


@dataclass(frozen=True)
class RequirementConfig:
    """How predictions are held against requirements.

    Args:
        thresholds: a label is predicted where its score is at least this.
        boxes: `predicted`, those whose own score (agentness) is at least the threshold, or `all`.
    """

    thresholds: tuple[float, ...] = TENTHS
    boxes: Literal["predicted", "all"] = "predicted"

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a threshold is no score above 0, or a choice is unknown.
        """
        if not self.thresholds or not all(0 < at <= 1 for at in self.thresholds):
            raise UsageError(f"thresholds of requirements lie above 0 and up to 1; got {self.thresholds}")
        if self.boxes not in ("predicted", "all"):
            raise UsageError(f"requirements judge predicted boxes or all, not {self.boxes!r}")


@dataclass(frozen=True, eq=False)
class ViolationCounts:
    """Counts of items (boxes, tubes), by video.

    Args:
        items: (V,) items.
        violating: (V,) of them, those that violate some requirement.
        clauses: (V, judged) items that violate each judged requirement.
        labels: (V, labels) items with each label.
        violating_labels: (V, labels) of them, those that violate some requirement.
    """

    items: Ints
    violating: Ints
    clauses: Ints
    labels: Ints
    violating_labels: Ints


# The labels of boxes as rows of true and false.


def build_label_rows(tables: TableSet, bound: BoundRequirements) -> Bools:
    """(boxes, labels) which labels each box carries, in the order of the requirements' labels.

    Args:
        tables: whose `labels` name boxes.
        bound: requirements, matched to the vocabularies of the tables.
    """
    there = np.zeros((len(tables.boxes), len(bound.labels)), dtype=np.bool_)
    columns = _column_table(bound)
    at = tables.boxes.select("box").with_row_index("at")
    held = (
        tables.labels.select("box", pl.col("kind").cast(pl.String), "label")
        .join(columns, on=["kind", "label"])
        .join(at, on="box")
    )
    there[held["at"].to_numpy(), held["column"].to_numpy()] = True
    return there


def _column_table(bound: BoundRequirements) -> pl.DataFrame:
    rows = [(kind_label[0], kind_label[1], k) for k, kind_label in enumerate(bound.columns) if kind_label]
    schema = {"kind": pl.String, "label": pl.Int64, "column": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def build_score_rows(predictions: Predictions, bound: BoundRequirements) -> Floats32:
    """(boxes, labels) the score of each label, 0 for one that there is not.

    Args:
        predictions: with dense scores of boxes.
        bound: requirements, matched to their layout.
    """
    layout = get_score_layout(predictions.meta, "boxes")
    dense = convert_to_matrix(predictions.boxes["scores"], layout.width)
    found = np.zeros((len(dense), len(bound.labels)), dtype=np.float32)
    for k, column in enumerate(bound.columns):
        if column is not None:
            found[:, k] = dense[:, layout.columns(column[0]).start + column[1]]
    return found


def bind_to_predictions(requirements: Requirements, predictions: Predictions) -> BoundRequirements:
    """Requirements matched to the labels whose scores the boxes of predictions have.

    Raises:
        InputError: if boxes have no scores of labels, or of none that the requirements name.
    """
    layout = get_score_layout(predictions.meta, "boxes")
    if "scores" not in predictions.boxes.columns or not layout.width:
        raise InputError(
            "requirements are held against the scores of boxes, and these predictions have none",
            hint="give detections with scores of agents, actions and locations",
        )
    return bind_requirements(requirements, layout.kinds)


# Counting.


def count_violations(there: Bools, bound: BoundRequirements, video: Ints, n_videos: int) -> ViolationCounts:
    """How many rows of labels violate what, by video.

    Args:
        there: (n, labels) which labels each row has.
        bound: requirements.
        video: (n,) the video of each row.
        n_videos: how many there are.
    """
    rows, which = group_equal_rows(there)
    broken = bound.violations(rows)
    any_broken = broken.any(axis=1)
    times = np.bincount(video * len(rows) + which, minlength=n_videos * len(rows)).reshape(
        n_videos, len(rows)
    )
    return ViolationCounts(
        times.sum(axis=1),
        times[:, any_broken].sum(axis=1),
        times @ broken.astype(np.int64),
        times @ rows.astype(np.int64),
        times[:, any_broken] @ rows[any_broken].astype(np.int64),
    )


def find_violating_rows(there: Bools, bound: BoundRequirements) -> Bools:
    """(n,) which rows of labels violate some requirement."""
    rows, which = group_equal_rows(there)
    broken: Bools = np.any(bound.violations(rows), axis=1, keepdims=True)
    found: Bools = broken[which, 0]
    return found


# Predictions by threshold.

SUMMARY: dict[str, Any] = {
    "level": pl.String,
    "threshold": pl.Float64,
    "metric": pl.String,
    "name": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "count": pl.Int64,
    "low": pl.Float64,
    "high": pl.Float64,
    "units": pl.Int64,
    "caution": pl.String,
}


@dataclass(frozen=True, eq=False)
class RequirementResult:
    """Violations in predictions.

    Args:
        summary: a row for each level (boxes, tubes), threshold and metric, with `value` (null without items), `n`
            (items), `count`, and its 95 % interval over videos. Metrics: `violating` (share of items that violate a
            requirement), `violations` (requirements that an item violates, on the mean), `requirements_violated`
            (share of requirements that some item violates), `clause` (share of items that violate the requirement
            `name`, its number from 1; those that some item violates), `label` (share that violates, of the items
            that are predicted to be `name`).
        bound: the requirements, matched to the labels.
        config: how they were judged.
        notes: what was not judged, in words.
    """

    summary: pl.DataFrame
    bound: BoundRequirements
    config: RequirementConfig
    notes: tuple[str, ...]

    def value(self, threshold: float, metric: str = "violating", level: Level = "boxes") -> float | None:
        """A number of the whole set.

        Raises:
            UsageError: if it was not asked for.
        """
        rows = self.summary.filter(
            (pl.col("level") == level) & (pl.col("metric") == metric) & pl.col("name").is_null(),
            (pl.col("threshold") - threshold).abs() < 1e-9,
        )
        if len(rows) != 1:
            raise UsageError(f"there is no {metric} of {level} at {threshold:g}")
        found: float | None = rows["value"][0]
        return found

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-ready data; shares in [0, 1]."""
        rules = self.bound.requirements
        used = sorted({int(k) for k in self.summary.filter(pl.col("metric") == "clause")["name"]})
        clauses = {str(k): {"place": rules.place(k - 1), "words": rules.describe_clause(k - 1)} for k in used}
        return {
            "file": rules.name,
            "requirements": len(rules),
            "judged": len(self.bound.judged),
            "config": to_dict(self.config),
            "notes": list(self.notes),
            "clauses": clauses,
            "rows": self.summary.to_dicts(),
        }


def evaluate_requirements(
    requirements: Requirements,
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    config: RequirementConfig | None = None,
    *,
    resamples: int = 0,
    seed: int = 0,
) -> RequirementResult:
    """Hold predictions against requirements, at each threshold.

    Boxes are judged by the scores of their labels, in the frames that were annotated. A tube is a path with the
    labels that were given to parts of it: it violates a requirement if at some moment the labels that it has there do.

    Args:
        requirements: over labels.
        boxes: detections; None where only tubes are predicted.
        tubes: labelled paths; None where only boxes are predicted.
        scenes: the ground truth: its videos, and the frames that were annotated.
        config: thresholds, and which boxes count (default: `RequirementConfig()`).
        resamples: most weightings of videos for intervals; 0 for none.
        seed: of the weightings.

    Raises:
        InputError: if there is nothing that can be judged.
    """
    config = config or RequirementConfig()
    videos = [str(video) for video in scenes.videos["video"].to_list()]
    units = Units(len(videos), resamples, seed) if resamples and len(videos) > 1 else None
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    bound: BoundRequirements | None = None
    if boxes is not None:
        bound = bind_to_predictions(requirements, boxes)
        notes += bound.notes
        # The boxes in annotated frames, not interpolated; one without a score of its own counts as predicted.
        number = pl.DataFrame({"video": videos, "number": np.arange(len(videos))})
        table = boxes.boxes.with_columns(pl.col("video").cast(pl.String)).with_row_index("row")
        if "interpolated" in table.columns:
            table = table.filter(~pl.col("interpolated").fill_null(value=False))
        if not scenes.frames.is_empty():
            frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
            if "annotated" in frames.columns:
                frames = frames.filter(pl.col("annotated").fill_null(value=False))
            table = table.join(frames.select("video", "frame"), on=["video", "frame"], how="semi")
        table = table.join(number, on="video", maintain_order="left")
        own = table["score"] if "score" in table.columns else pl.Series([None] * len(table), dtype=pl.Float32)
        found = _JudgedBoxes(
            table["number"].to_numpy().astype(np.int64),
            own.fill_null(1.0).to_numpy().astype(np.float32),
            build_score_rows(boxes, bound)[table["row"].to_numpy()],
        )
        for threshold in config.thresholds:
            n_videos = len(videos)
            at = np.float32(threshold)
            kept = found.own >= at if config.boxes == "predicted" else np.ones(len(found.own), dtype=np.bool_)
            counts = count_violations(found.scores[kept] >= at, bound, found.video[kept], n_videos)
            rows += _summarize("boxes", threshold, counts, bound, units)
    if tubes is not None:
        labelled = _collect_labelled_spans(tubes, videos)
        if labelled is None:
            notes.append(
                "tubes are not judged: their labels do not belong to paths, so none has several of them"
            )
        else:
            kinds = set(labelled["kind"].unique().to_list())
            of_tubes = bind_requirements(
                requirements,
                {kind: labels for kind, labels in tubes.meta.vocabularies.items() if kind in kinds},
            )
            bound = bound or of_tubes
            notes += [note for note in of_tubes.notes if note not in notes]
            for threshold in config.thresholds:
                counts = _count_tubes(labelled, of_tubes, threshold, len(videos))
                rows += _summarize("tubes", threshold, counts, of_tubes, units)
    if bound is None:
        raise InputError("requirements can be held against nothing here", hint="; ".join(notes) or None)
    return RequirementResult(pl.DataFrame(rows, schema=SUMMARY), bound, config, tuple(notes))


@dataclass(frozen=True, eq=False)
class _JudgedBoxes:
    """The boxes that are judged: (n,) video and own score, (n, labels) scores of labels."""

    video: Ints
    own: Floats32
    scores: Floats32


def _columns(frame: pl.DataFrame, *names: str) -> list[str]:
    return [name for name in names if name in frame.columns]


def _collect_labelled_spans(tubes: Predictions, videos: Sequence[str]) -> pl.DataFrame | None:
    """A row for each stretch of a path with a label: path, video, start, end, kind, label, score; None without paths."""
    table = tubes.tubes
    if tubes.tube_labels.is_empty() or "parent" not in table.columns:
        return None
    number = pl.DataFrame({"video": videos, "number": np.arange(len(videos), dtype=np.int64)})
    named = table.filter(pl.col("parent").is_not_null()).with_columns(pl.col("video").cast(pl.String))
    bounds = ["tube", "parent", "video", "start", "end"]
    whole = named.with_columns(start="start_frame", end="end_frame")
    if "spans" in table.columns:
        pieces = named.filter(pl.col("spans").list.len() > 0).explode("spans")
        ends = {"start": pl.col("spans").list.get(0), "end": pl.col("spans").list.get(1)}
        whole = whole.filter(pl.col("spans").list.len().fill_null(0) == 0)
        parts = pl.concat([whole.select(bounds), pieces.with_columns(**ends).select(bounds)])
    else:
        parts = whole.select(bounds)
    labels = tubes.tube_labels.select(
        "tube", pl.col("kind").cast(pl.String), "label", *_columns(tubes.tube_labels, "score")
    )
    rows = parts.join(labels, on="tube").join(number, on="video")
    if rows.is_empty():
        return None
    scored = rows if "score" in rows.columns else rows.with_columns(score=pl.lit(1.0))
    return scored.with_columns(pl.col("score").fill_null(1.0).cast(pl.Float32))


def _count_tubes(
    labelled: pl.DataFrame, bound: BoundRequirements, threshold: float, n_videos: int
) -> ViolationCounts:
    """Counts of paths: one violates a requirement if its labels do at one of the moments at which they change."""
    reached = pl.col("score") >= pl.lit(threshold, dtype=pl.Float32)
    rows = labelled.join(_column_table(bound), on=["kind", "label"]).filter(reached)
    moments = pl.concat([rows.select("parent", at="start"), rows.select("parent", at="end")]).unique()
    active = (
        rows.select("parent", "start", "end", "column", "number")
        .join(moments, on="parent")
        .filter(pl.col("start") <= pl.col("at"), pl.col("at") < pl.col("end"))
    )
    sets = active.select("parent", "number", "at").unique().sort("parent", "at").with_row_index("set")
    held = active.join(sets, on=["parent", "at"])
    there = np.zeros((len(sets), len(bound.labels)), dtype=np.bool_)
    there[held["set"].to_numpy(), held["column"].to_numpy()] = True
    distinct, which = group_equal_rows(there)
    broken = bound.violations(distinct)[which]
    paths, first, of_path = np.unique(sets["parent"].to_numpy(), return_index=True, return_inverse=True)
    n_paths = len(paths)
    clauses = np.zeros((n_paths, len(bound.judged)), dtype=np.bool_)
    np.logical_or.at(clauses, of_path, broken)
    labels = np.zeros((n_paths, len(bound.labels)), dtype=np.bool_)
    np.logical_or.at(labels, of_path, there)
    violating: Bools = np.any(clauses, axis=1, keepdims=True)[:, 0]
    times = np.zeros((n_videos, n_paths), dtype=np.int64)
    times[sets["number"].to_numpy()[first], np.arange(n_paths)] = 1
    return ViolationCounts(
        times.sum(axis=1),
        times @ violating.astype(np.int64),
        times @ clauses.astype(np.int64),
        times @ labels.astype(np.int64),
        times @ (labels & violating[:, np.newaxis]).astype(np.int64),
    )


def _summarize(
    level: Level, threshold: float, counts: ViolationCounts, bound: BoundRequirements, units: Units | None
) -> list[dict[str, Any]]:
    """The rows of one level at one threshold."""
    weights = None if units is None else np.concatenate(list(units.weights()))
    judged = len(bound.judged)
    rows: list[dict[str, Any]] = []

    def add(
        metric: str, name: str | None, above: Floats, below: Floats, n: int, count: int, scale: Scale | None
    ) -> None:
        """One number: `above` by `below`, of all videos and of each weighting; without a scale it has no interval."""
        value = float(above[0] / below[0]) if below[0] else None
        interval = None
        if units is not None and scale is not None and value is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                interval = units.interval(value, above[1:] / below[1:], scale)
        rows.append(
            {
                "level": level,
                "threshold": threshold,
                "metric": metric,
                "name": name,
                "value": value,
                "n": n,
                "count": count,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "units": None if interval is None else interval.n_units,
                "caution": None if interval is None else interval.caution,
            }
        )

    def total(values: Ints) -> Floats:
        """(1 + resamples, ...) sums over all videos, then under each weighting."""
        whole = values.sum(axis=0, keepdims=True)
        found = whole if weights is None else np.concatenate([whole, weights @ values])
        return found.astype(np.float64)

    items, violating = total(counts.items), total(counts.violating)
    clauses, labels, of_labels = map(total, (counts.clauses, counts.labels, counts.violating_labels))
    n = int(items[0])
    add("violating", None, violating, items, n, int(violating[0]), "share")
    add("violations", None, clauses.sum(axis=1), items, n, int(clauses[0].sum()), "positive")
    broken = (clauses > 0).sum(axis=1).astype(np.float64)
    of_all = np.where(items > 0, float(judged), 0.0)
    # It grows with every video that is added, whatever is in it: leaving one out says nothing of its error.
    add("requirements_violated", None, broken, of_all, n, int(broken[0]), None)
    for k in np.argsort(-clauses[0], kind="stable"):
        if clauses[0, k]:
            number = str(bound.judged[k] + 1)
            add("clause", number, clauses[:, k], items, n, int(clauses[0, k]), "share")
    for k, name in enumerate(bound.labels):
        if labels[0, k]:
            add(
                "label", name, of_labels[:, k], labels[:, k], int(labels[0, k]), int(of_labels[0, k]), "share"
            )
    return rows
