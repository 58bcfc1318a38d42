"""Every error of tubes with what it costs in mean average precision, and the tubes that went most wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import (
    FAULTS,
    MISSED,
    Diagnosis,
    collect_video_evidence,
    find_errors,
    find_errors_of_boxes,
)
from roadaware.metrics.detection.matches import build_tube_table, prepare_tubes
from roadaware.metrics.detection.rows import LabelledTubes
from roadaware.scenes.concatenation import get_image_sizes, rescale_predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet
from roadaware.statistics.average_precision import average_precision

_COLUMNS = {
    "video": pl.String,
    "label": pl.String,
    "fault": pl.String,
    "meant_for": pl.String,
    "tube": pl.Int64,
    "truth": pl.Int64,
    "score": pl.Float64,
    "cost": pl.Float64,
}
# Each asks for an average precision of its own; behind the first few hundred of a class an error costs next to nothing.
_MOST = 300
_MOST_WORK = 200_000_000
"""Ranks that are walked for all errors of boxes: of ten million boxes fewer errors of each class are listed."""
_BOX_COLUMNS = {
    **{name: kind for name, kind in _COLUMNS.items() if name not in ("tube", "truth")},
    "box": pl.Int64,
    "truth_box": pl.Int64,
    "frame": pl.Int64,
    "first": pl.Int64,
    "end": pl.Int64,
    "words": pl.String,
    "tube": pl.Int64,
    "truth": pl.Int64,
}


def list_tube_errors(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str, threshold: float
) -> pl.DataFrame:
    """Errors of tubes by falling cost; cost is the gain in mean average precision if this one alone were corrected.

    Correcting is that of `find_errors`: a missed tube is found before all others, a tube that is badly placed or
    of the wrong class becomes right at its score, any other is removed. Of each class the 300 errors with the
    highest scores are listed, and all that was missed.

    Args:
        predictions: with labelled tubes.
        scenes: the ground truth.
        config: how both are judged.
        kind: of the labels.
        threshold: smallest overlap of a hit.

    Returns:
        `video`; `label` of the prediction, or of what was missed; `fault`; `meant_for`, the label that a wrong
        one was meant for; `tube`, the prediction; `truth`, what it met or was meant for; `score`; `cost` in [0, 1].

    Raises:
        UsageError: if the kind is unknown.
        InputError: if ground truth and predictions do not fit each other.
    """
    judged = prepare_tubes(predictions, scenes, config, "stiou", (kind,))
    ignored = judged.matches((threshold,)).ignored
    counted = np.ones(len(judged.predictions), dtype=np.bool_) if ignored is None else ~ignored[:, 0]
    found = find_errors(collect_video_evidence(judged, counted, scenes, kind), threshold)
    tubes = _by_extent(judged.predictions)
    truths = _by_extent(judged.truth)
    costs, e = _Costs(found, config.ap), found.evidence
    rows: list[tuple[object, ...]] = []
    for video, label, fault, other, thing, cls, place, score, cost in costs.list_wrong(_MOST):
        truth = None if place < 0 else truths.get((int(costs.objects[place]), int(e.instance_cls[place])))
        rows.append((video, label, fault, other, tubes.get((thing, cls)), truth, score, cost))
    for video, label, thing, cls in costs.list_missed():
        cost = costs.gain_of_found(cls, 1)
        rows.append((video, label, MISSED, None, None, truths.get((thing, cls)), None, cost))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row").sort(
        "cost", descending=True, maintain_order=True
    )


def _by_extent(tubes: LabelledTubes) -> dict[tuple[int, int], int]:
    """(extent, class) to the number of a tube; the first where several share both."""
    found: dict[tuple[int, int], int] = {}
    for extent, cls, tube in zip(tubes.extent.tolist(), tubes.cls.tolist(), tubes.tube.tolist(), strict=True):
        found.setdefault((extent, cls), tube)
    return found


def list_box_errors(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str, threshold: float
) -> pl.DataFrame:
    """Errors of boxes by falling cost, as `list_tube_errors` has them of tubes.

    Boxes of one tube of the ground truth that are missed are one error, whose cost is the gain if all of them were found
    before all others. Of each class the 300 wrong boxes with the highest scores are listed, fewer of millions.

    Args:
        predictions: with scored boxes.
        scenes: the ground truth.
        config: how both are judged.
        kind: of the labels.
        threshold: smallest overlap of a hit.

    Returns:
        `video`, `label`, `fault`, `meant_for`, `score`, `cost` as of tubes; `box`, the prediction; `truth_box`, what
        it met or was meant for, or the one in the middle of what was missed; `frame`; `first` and `end`, the
        frames that it is about; `words`, how many boxes were missed; `tube` and `truth`, null.

    Raises:
        UsageError: if the kind is unknown.
        InputError: if ground truth and predictions do not fit each other.
    """
    found, judged = find_errors_of_boxes(predictions, scenes, config, kind, threshold)
    numbers, owners = predictions.boxes["box"].to_numpy(), _owners(scenes)
    frame = judged.frames.judged % judged.frames.stride
    frame_of_prediction, frame_of_truth = (
        frame[judged.predictions.frame],
        np.repeat(frame, np.diff(judged.truth.start)),
    )
    most = min(_MOST, max(20, _MOST_WORK // max(1, len(found.evidence.cls))))
    rows: list[tuple[object, ...]] = []
    lost: dict[tuple[str, str, int], list[int]] = {}
    costs = _Costs(found, config.ap)
    for video, label, fault, other, prediction, _, place, score, cost in costs.list_wrong(most):
        at = int(frame_of_prediction[prediction])
        true = None if place < 0 else int(judged.truth.box[costs.objects[place]])
        box = int(numbers[judged.predictions.row[prediction]])
        rows.append((video, label, fault, other, score, cost, box, true, at, at, at + 1, None, None, None))
    for video, label, object_, cls in costs.list_missed():
        # Boxes without a tube are each an error of their own.
        owner = owners.get(int(judged.truth.box[object_]), -1 - object_)
        lost.setdefault((video, label, owner), [cls]).append(object_)
    for (video, label, _), (cls, *objects) in lost.items():
        objects.sort(key=lambda object_: int(frame_of_truth[object_]))
        frames = [int(frame_of_truth[object_]) for object_ in objects]
        middle = len(objects) // 2
        words = None if len(objects) == 1 else f"{len(objects)} boxes"
        cost = costs.gain_of_found(cls, len(objects))
        box = int(judged.truth.box[objects[middle]])
        span = (frames[middle], frames[0], frames[-1] + 1)
        rows.append((video, label, MISSED, None, None, cost, None, box, *span, words, None, None))
    table = pl.DataFrame(rows, schema=_BOX_COLUMNS, orient="row")
    return table.sort("cost", descending=True, maintain_order=True)


def _owners(scenes: Scenes) -> dict[int, int]:
    """Box to the tube that it belongs to."""
    if "tube" not in scenes.boxes.columns:
        return {}
    return dict(scenes.boxes.select("box", "tube").drop_nulls().rows())


class _Costs:
    """What each error alone costs in the mean over the classes that there is ground truth of."""

    def __init__(self, found: Diagnosis, rule: str) -> None:
        e = self._e = found.evidence
        self._found, self._rule = found, rule
        self.objects = e.instance_object
        self._n_truth = np.bincount(e.instance_cls, minlength=len(e.labels))
        self._asked = max(1, int((self._n_truth > 0).sum()))
        self._hits = [found.fault[e.cls == cls] == 0 for cls in range(len(e.labels))]
        self._base = [
            average_precision(hit, int(n), rule) if n else 0.0
            for hit, n in zip(self._hits, self._n_truth, strict=True)
        ]
        self._of_found: dict[tuple[int, int], float] = {}

    def _gain(self, cls: int, hit: Bools) -> float:
        """In the mean over classes, where those of one class become these."""
        if not self._n_truth[cls]:
            return 0.0
        return (average_precision(hit, int(self._n_truth[cls]), self._rule) - self._base[cls]) / self._asked

    def gain_of_found(self, cls: int, count: int) -> float:
        """What is gained if so many of a class that were missed are found before all others."""
        key = (cls, count)
        if key not in self._of_found:
            hit = np.concatenate([np.ones(count, dtype=np.bool_), self._hits[cls]])
            self._of_found[key] = max(0.0, self._gain(cls, hit))
        return self._of_found[key]

    def list_missed(self) -> Iterator[tuple[str, str, int, int]]:
        """Video, label, object and class of all that was missed."""
        e = self._e
        for place in np.flatnonzero(self._found.missed).tolist():
            cls, thing = int(e.instance_cls[place]), int(self.objects[place])
            yield e.videos[e.object_video[thing]], e.labels[cls], thing, cls

    def list_wrong(
        self, most: int
    ) -> Iterator[tuple[str, str, str, str | None, int, int, int, float, float]]:
        """Of each class the wrong predictions with the highest scores.

        Yields:
            video, label, fault, the other label that it was meant for, thing, class, the instance that it met or was
            meant for (-1 if none), score and cost.
        """
        e, found, names, hits = self._e, self._found, list(FAULTS), self._hits
        for cls in range(len(e.labels)):
            of_class = np.flatnonzero(e.cls == cls)
            for rank in np.flatnonzero(~hits[cls])[:most].tolist():
                row = int(of_class[rank])
                meant = int(found.meant[row])
                fault, fixed = names[found.fault[row]], hits[cls].copy()
                target = int(e.instance_cls[meant]) if meant >= 0 else -1
                if fault in ("space", "time", "space_time", "broken", "switched") and meant >= 0:
                    fixed[rank] = True
                    cost = self._gain(cls, fixed)
                else:
                    cost = self._gain(cls, np.delete(fixed, rank))
                    if fault == "class" and meant >= 0 and target != cls:
                        scores: Floats = e.score[e.cls == target]
                        at = int(np.searchsorted(-scores, -e.score[row], side="right"))
                        cost += self._gain(target, np.insert(hits[target], at, True))
                other = None if target in (-1, cls) else e.labels[target]
                video, thing = e.videos[e.video[row]], int(e.thing[row])
                score = float(e.score[row])
                yield video, e.labels[cls], fault, other, thing, cls, meant, score, max(0.0, cost)


Spans = tuple[tuple[int, int], ...]

WORST_AT = 0.5
"""The overlap that a tube must miss to be called wrong."""
_FIRST_CHOICES = ("agent", "action", "event")


@dataclass(frozen=True, eq=False)
class Strip:
    """A tube that went wrong, at some of its frames.

    Args:
        says: what went wrong, in words.
        size_px: (width, height) of the image.
        frames: (k,) the frames that are shown, rising, at least one.
        truth_px: (k, 4) the ground-truth box in each (x1, y1, x2, y2), NaN where there is none.
        prediction_px: (k, 4) the predicted box in each, NaN where there is none.
        truth_spans: [start, end) frames of the whole ground-truth tube; empty where there is none.
        prediction_spans: those of the predicted tube.
    """

    says: str
    size_px: tuple[float, float]
    frames: Ints
    truth_px: Floats
    prediction_px: Floats
    truth_spans: Spans = ()
    prediction_spans: Spans = ()

    def __post_init__(self) -> None:
        shape = (len(self.frames), 4)
        if self.truth_px.shape != shape or self.prediction_px.shape != shape or not len(self.frames):
            raise ValueError(
                f"{len(self.frames)} frames need as many boxes of truth and prediction, at least 1"
            )

    def as_dict(self) -> dict[str, Any]:
        """The strip, JSON-ready."""
        return {
            "says": self.says,
            "size_px": list(self.size_px),
            "frames": self.frames.tolist(),
            "truth_px": _list_boxes(self.truth_px),
            "prediction_px": _list_boxes(self.prediction_px),
            "truth_spans": [list(span) for span in self.truth_spans],
            "prediction_spans": [list(span) for span in self.prediction_spans],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Strip:
        """The strip that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            spans = [
                tuple((int(a), int(b)) for a, b in data[name]) for name in ("truth_spans", "prediction_spans")
            ]
            boxes = [_boxes(data[name]) for name in ("truth_px", "prediction_px")]
            wide, high = (float(side) for side in data["size_px"])
            frames = np.array(data["frames"], dtype=np.int64)
            return cls(str(data["says"]), (wide, high), frames, boxes[0], boxes[1], spans[0], spans[1])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a strip of a tube is incomplete: {error}") from error


def select_worst_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    kind: str | None = None,
    threshold: float = WORST_AT,
    most: int = 6,
    shown: int = 8,
) -> list[Strip]:
    """Half of them ground-truth tubes that nothing matched, the longest first; half the most confident false predictions.

    Args:
        predictions: with labelled tubes.
        scenes: ground truth.
        config: how tubes are compared.
        kind: of the labels (default: the first of agent, action, event that tubes are predicted for).
        threshold: overlap of a match.
        most: how many tubes.
        shown: frames of each.

    Returns:
        Nothing where no tubes are predicted or asked for.
    """
    chosen = kind or select_kind(predictions, scenes)
    if chosen is None:
        return []
    table = build_tube_table(predictions, scenes, config, kinds=(chosen,), threshold=threshold)
    pairs = [*_iterate_missed(table, scenes, chosen, most // 2), *_false(table, most - most // 2)]
    predicted, truth = TubeBoxes(rescale_predictions(predictions, scenes)), TubeBoxes(scenes)
    return [_strip(pair, predicted, truth, shown) for pair in pairs]


@dataclass(frozen=True)
class _Pair:
    """A true and a predicted tube, one of them null where there is none, and the heading."""

    says: str
    video: str
    truth: int | None
    prediction: int | None


def select_kind(predictions: Predictions, scenes: Scenes, among: Sequence[str] = ()) -> str | None:
    """The kind of labels whose errors are shown: agent, action or event, else the first that tubes of both have.

    Args:
        predictions: with labelled tubes.
        scenes: ground truth.
        among: the kinds that are asked for; all where empty.
    """
    held = [set(tables.tube_labels["kind"].cast(pl.String).to_list()) for tables in (predictions, scenes)]
    both = held[0] & held[1] & set(among or held[0])
    usual = [kind for kind in _FIRST_CHOICES if kind in both]
    return next(iter([*usual, *sorted(both - {"av_action"})]), None)


def _iterate_missed(table: pl.DataFrame, scenes: Scenes, kind: str, most: int) -> Iterator[_Pair]:
    """The longest ground-truth tubes that no prediction was matched with, beside what lies on them best."""
    names = scenes.meta.vocabularies[kind]
    labels = scenes.tube_labels.filter(pl.col("kind").cast(pl.String) == kind).select("tube", "label")
    asked = scenes.tubes.join(labels, on="tube").with_columns(pl.col("video").cast(pl.String))
    asked = asked.filter(
        ~(pl.coalesce("parent", "tube") if "parent" in scenes.tubes.columns else pl.col("tube")).is_in(
            _resting(scenes).implode()
        )
    )
    missed = asked.filter(~pl.col("tube").is_in(table["matched"].drop_nulls().implode()))
    length = pl.col("end_frame") - pl.col("start_frame")
    for row in missed.sort(length, "tube", descending=[True, False]).head(most).iter_rows(named=True):
        near = table.filter(pl.col("near_truth") == row["tube"])
        near = near.sort("near_overlap", "score", "tube", descending=[True, True, False])
        says = f"missed: {names[row['label']]} in {row['video']}, frames {_span(row)}"
        prediction = None
        if len(near) and near["near_overlap"][0] > 0:
            prediction = near["tube"][0]
            says += f"; nearest is {near['label'][0]}, score {near['score'][0]:.2f}, overlap "
            says += f"{near['near_overlap'][0]:.2f}"
        yield _Pair(says, row["video"], row["tube"], prediction)


def _resting(scenes: Scenes) -> pl.Series:
    """The tubes whose boxes are all to ignore."""
    boxes = scenes.boxes
    if "ignore" not in boxes.columns:
        return pl.Series("tube", [], dtype=pl.Int64)
    owned = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("ignore").fill_null(value=False).all())
    return owned.filter("ignore")["tube"]


def _false(table: pl.DataFrame, most: int) -> Iterator[_Pair]:
    """The most confident predictions that were matched with nothing, one per place, beside what they lie on."""
    wrong = table.filter(pl.col("matched").is_null() & ~pl.col("ignored")).sort(
        "score", "tube", descending=[True, False]
    )
    for row in wrong.head(most).iter_rows(named=True):
        says = f"false: {row['label']} in {row['video']}, score {row['score']:.2f}"
        near = row["near_truth"] if row["near_overlap"] else None
        if near is not None:
            says += f"; nearest is {row['near_label']}, overlap {row['near_overlap']:.2f}"
        yield _Pair(says, row["video"], near, row["tube"])


class TubeBoxes:
    """Looks up the frames and boxes of tubes, and the sizes of images.

    Args:
        tables: with tubes.
    """

    def __init__(self, tables: TableSet) -> None:
        self._tables = tables
        self._sizes = get_image_sizes(tables)
        self._rows = {row["tube"]: row for row in tables.tubes.iter_rows(named=True)}

    def size(self, video: str) -> tuple[float, float] | None:
        """Width and height of the images, null where unknown."""
        return self._sizes.get(video)

    def of(self, tube: int | None) -> tuple[Ints, Floats]:
        """(n,) frames and (n, 4) boxes of a tube; none where there is no tube."""
        if tube is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4))
        row = self._rows[tube]
        owner = row.get("parent") if row.get("parent") is not None else tube
        boxes = self._tables.boxes.filter(pl.col("tube") == owner).sort("frame", maintain_order=True)
        frames = boxes["frame"].to_numpy().astype(np.int64)
        spans = row.get("spans")
        if spans:
            held = np.zeros(len(frames), dtype=np.bool_)
            for start, end in spans:
                held |= (frames >= start) & (frames < end)
            boxes, frames = boxes.filter(pl.Series(held)), frames[held]
        if row.get("consecutive"):
            frames = row["start_frame"] + np.arange(len(frames))
        return frames, boxes.select(CORNERS).cast(pl.Float64).to_numpy()


def _strip(pair: _Pair, predictions: TubeBoxes, truth: TubeBoxes, shown: int) -> Strip:
    """The frames of both tubes, some of which are shown."""
    of_truth, of_prediction = truth.of(pair.truth), predictions.of(pair.prediction)
    every = np.union1d(of_truth[0], of_prediction[0])
    if not len(every):
        every = np.zeros(1, dtype=np.int64)
    frames = every[np.unique(np.linspace(0, len(every) - 1, min(shown, len(every))).round().astype(int))]
    boxes = [_at(frames, *held) for held in (of_truth, of_prediction)]
    reach = np.concatenate([of_truth[1], of_prediction[1]]).reshape(-1, 4)[:, 2:].max(axis=0, initial=1.0)
    size = truth.size(pair.video) or (float(reach[0]), float(reach[1]))
    return Strip(pair.says, size, frames, boxes[0], boxes[1], _runs(of_truth[0]), _runs(of_prediction[0]))


def _at(frames: Ints, held: Ints, boxes: Floats) -> Floats:
    found = np.full((len(frames), 4), np.nan)
    place = {int(frame): at for at, frame in enumerate(held)}
    for at, frame in enumerate(frames):
        if int(frame) in place:
            found[at] = boxes[place[int(frame)]]
    return found


def _runs(frames: Ints) -> Spans:
    """Frames as [start, end) stretches without hole."""
    if not len(frames):
        return ()
    breaks = np.flatnonzero(np.diff(frames) != 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(frames, breaks))


def _span(row: dict[str, Any]) -> str:
    return f"{row['start_frame']} to {row['end_frame'] - 1}"


def _list_boxes(boxes: Floats) -> list[list[float] | None]:
    # JSON has no NaN.
    return [box.tolist() if np.isfinite(box).all() else None for box in boxes]


def _boxes(rows: Sequence[Sequence[float] | None]) -> Floats:
    return np.array([[np.nan] * 4 if row is None else row for row in rows], dtype=np.float64).reshape(-1, 4)
