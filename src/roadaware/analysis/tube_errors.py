"""Every error of the tubes of one kind, each with what it alone costs in mean average precision."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.arrays import Bools
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import (
    FAULTS,
    MISSED,
    Diagnosis,
    collect_video_evidence,
    find_errors,
)
from roadaware.metrics.detection.tube_rows import LabelledTubes
from roadaware.metrics.detection.video import prepare_tubes
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
    rows = _list_rows(found, config.ap, _by_extent(judged.claims), _by_extent(judged.truth))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row").sort(
        "cost", descending=True, maintain_order=True
    )


def _by_extent(tubes: LabelledTubes) -> dict[tuple[int, int], int]:
    """(extent, class) to the number of a tube; the first where several share both."""
    found: dict[tuple[int, int], int] = {}
    for extent, cls, tube in zip(tubes.extent.tolist(), tubes.cls.tolist(), tubes.tube.tolist(), strict=True):
        found.setdefault((extent, cls), tube)
    return found


def _list_rows(
    found: Diagnosis, rule: str, tubes: dict[tuple[int, int], int], truths: dict[tuple[int, int], int]
) -> list[tuple[object, ...]]:
    e, names, places = found.evidence, list(FAULTS), found.evidence.instance_object
    n_truth = np.bincount(e.instance_cls, minlength=len(e.labels))
    asked = max(1, int((n_truth > 0).sum()))
    hits = [found.fault[e.cls == cls] == 0 for cls in range(len(e.labels))]
    scores = [e.score[e.cls == cls] for cls in range(len(e.labels))]
    base = [average_precision(hit, int(n), rule) if n else 0.0 for hit, n in zip(hits, n_truth, strict=True)]

    def gain(cls: int, hit: Bools) -> float:
        """In the mean over classes, where those of one class become these."""
        if not n_truth[cls]:
            return 0.0
        return (average_precision(hit, int(n_truth[cls]), rule) - base[cls]) / asked

    rows: list[tuple[object, ...]] = []
    for cls in range(len(e.labels)):
        of_class = np.flatnonzero(e.cls == cls)
        wrong = np.flatnonzero(~hits[cls])[:_MOST]
        for rank in wrong.tolist():
            row = int(of_class[rank])
            meant = int(found.meant[row])
            fault, fixed = names[found.fault[row]], hits[cls].copy()
            target = int(e.instance_cls[meant]) if meant >= 0 else -1
            if fault in ("space", "time", "space_time", "broken", "switched") and meant >= 0:
                fixed[rank] = True
                cost = gain(cls, fixed)
            else:
                cost = gain(cls, np.delete(fixed, rank))
                if fault == "class" and meant >= 0 and target != cls:
                    at = int(np.searchsorted(-scores[target], -e.score[row], side="right"))
                    cost += gain(target, np.insert(hits[target], at, True))
            truth = None if meant < 0 else truths.get((int(places[meant]), target))
            label, other = e.labels[cls], None if target in (-1, cls) else e.labels[target]
            video, tube = e.videos[e.video[row]], tubes.get((int(e.thing[row]), cls))
            rows.append((video, label, fault, other, tube, truth, float(e.score[row]), max(0.0, cost)))
    for place in np.flatnonzero(found.missed).tolist():
        cls, thing = int(e.instance_cls[place]), int(places[place])
        cost = gain(cls, np.insert(hits[cls], 0, True))
        video = e.videos[e.object_video[thing]]
        rows.append(
            (video, e.labels[cls], MISSED, None, None, truths.get((thing, cls)), None, max(0.0, cost))
        )
    return rows
