"""Every error of the tubes or boxes of one kind, each with what it alone costs in mean average precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import (
    FAULTS,
    MISSED,
    Diagnosis,
    collect_video_evidence,
    find_errors,
    find_errors_of_boxes,
)
from roadaware.metrics.detection.matches import prepare_tubes
from roadaware.metrics.detection.rows import LabelledTubes
from roadaware.scenes.tables import Predictions, Scenes
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
    counted = np.ones(len(judged.claims), dtype=np.bool_) if ignored is None else ~ignored[:, 0]
    found = find_errors(collect_video_evidence(judged, counted, scenes, kind), threshold)
    tubes = _by_extent(judged.claims)
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
    frame_of_claim, frame_of_truth = frame[judged.claims.frame], np.repeat(frame, np.diff(judged.truth.start))
    most = min(_MOST, max(20, _MOST_WORK // max(1, len(found.evidence.cls))))
    rows: list[tuple[object, ...]] = []
    lost: dict[tuple[str, str, int], list[int]] = {}
    costs = _Costs(found, config.ap)
    for video, label, fault, other, claim, _, place, score, cost in costs.list_wrong(most):
        at = int(frame_of_claim[claim])
        true = None if place < 0 else int(judged.truth.box[costs.objects[place]])
        box = int(numbers[judged.claims.row[claim]])
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
