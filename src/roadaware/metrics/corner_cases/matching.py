"""Predictions against the objects of one group, and the average recall and precision of the matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.corner_cases.config import AREA_BOUNDS_PX2, CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects
from roadaware.statistics.average_precision import resample_average_precision


@dataclass(frozen=True, eq=False)
class Met:
    """The matched and missed objects and predictions of a group.

    Args:
        rows: (m,) the objects, rows of the ground truth.
        kind: (m,) class of each within the group.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction of its image and class met it, from 0; -1 where none did.
        best: (m,) the greatest overlap with a prediction of its class.
        claims: (n,) the predictions that count, rows of all predictions, by class, image and falling score.
        claimed: (n,) class of each within the group.
        hit: (n, A) bit t is set where it met an object that is asked for.
        passed: (n, A) bit t is set where it does not count.
        beyond: how many predictions were not taken, for they are too many in their image.
    """

    rows: Ints
    kind: Ints
    asked: Bools
    rank: npt.NDArray[np.int16]
    best: Floats
    claims: Ints
    claimed: Ints
    hit: npt.NDArray[np.uint16]
    passed: npt.NDArray[np.uint16]
    beyond: int


def list_group_classes(group: Group, truth: Objects) -> tuple[str, ...]:
    """The classes of a group."""
    return {"common": truth.commons, "classes": truth.labels}.get(group, (group,))


def match_group(
    group: Group, truth: Objects, claims: Claims, config: CornerConfig, *, every: bool = False
) -> Met:
    """The predictions of a group matched with its objects.

    Args:
        group: which.
        truth: all objects.
        claims: all predictions.
        config: how.
        every: whether each prediction is predicted once as each class, as trivial answers are.

    Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
    """
    from roadaware.metrics.corner_cases.kernels import MISSED, match_cells

    rows, kind = _objects(group, truth, config)
    taken, claimed = _claims(group, claims, len(list_group_classes(group, truth)), every=every)
    n_items = len(truth.items)
    cells = n_items * max(1, len(list_group_classes(group, truth)))
    rows, object_start = _by_cell(rows, kind * n_items + truth.item[rows], cells)
    taken, claim_start = _by_cell(taken, claimed * n_items + claims.item[taken], cells)
    kind = (np.repeat(np.arange(cells), np.diff(object_start)) // n_items).astype(np.int64)
    # The first rows of each cell, where they start now, and how many were left away.
    most = config.max_detections[-1]
    sizes = np.diff(claim_start)
    if not len(sizes) or sizes.max(initial=0) <= most:
        taken, claim_start, beyond = taken, claim_start, 0
    else:
        place = np.arange(len(taken)) - np.repeat(claim_start[:-1], sizes)
        kept = np.zeros_like(claim_start)
        np.cumsum(np.minimum(sizes, most), out=kept[1:])
        taken, claim_start, beyond = taken[place < most], kept, int((place >= most).sum())
    claimed = (np.repeat(np.arange(cells), np.diff(claim_start)) // n_items).astype(np.int64)
    ignored = truth.marked[rows] if config.ignored == "marked" else truth.crowd[rows]
    rank = np.full((len(rows), len(AREA_BOUNDS_PX2), len(config.thresholds)), MISSED, dtype=np.int16)
    # A bit for each of the eleven thresholds.
    hit, passed = (np.zeros((len(taken), len(AREA_BOUNDS_PX2)), dtype=np.uint16) for _ in range(2))
    best = np.zeros(len(rows))
    match_cells(
        claim_start,
        claims.corners[taken],
        claims.sides[taken],
        object_start,
        truth.corners[rows],
        truth.sides[rows],
        truth.area[rows],
        ignored.view(np.uint8),
        # A crowd that is asked for is matched once, like any other object.
        (truth.crowd[rows] & ignored).view(np.uint8),
        np.array(config.thresholds),
        AREA_BOUNDS_PX2,
        config.max_detections[-1],
        rank,
        hit,
        passed,
        best,
    )
    area = truth.area[rows][:, None]
    sized = (area >= AREA_BOUNDS_PX2[:, 0]) & (area <= AREA_BOUNDS_PX2[:, 1])
    asked = sized & ~ignored[:, None]
    return Met(rows, kind, asked, rank, best, taken, claimed, hit, passed, beyond)


def _objects(group: Group, truth: Objects, config: CornerConfig) -> tuple[Ints, Ints]:
    """The objects of a group with the class of each. Crowds and marked boxes are those of its classes."""
    everything = np.zeros(len(truth.item), dtype=np.int64)
    if group == "common":
        wanted = (truth.common != NONE) & (truth.corner | (config.common_truth == "all"))
        kind = truth.common
    elif group == "novel":
        wanted, kind = truth.novel & truth.corner, everything
    elif group == "corner":
        wanted, kind = truth.corner, everything
    elif group == "classes":
        wanted, kind = truth.label != NONE, truth.label
    else:
        wanted, kind = np.ones(len(truth.item), dtype=bool), everything
    rows = np.flatnonzero(wanted)
    return rows, kind[rows]


def _claims(group: Group, claims: Claims, n_classes: int, *, every: bool) -> tuple[Ints, Ints]:
    """The predictions of a group with the class of each, in their order."""
    if every:
        n = len(claims.item)
        return np.tile(np.arange(n), n_classes), np.repeat(np.arange(n_classes), n)
    kind = {"common": claims.common, "classes": claims.label}.get(group)
    if kind is not None:
        rows = np.flatnonzero(kind != NONE)
        return rows, kind[rows]
    rows = np.flatnonzero(claims.novel) if group == "novel" else np.arange(len(claims.item))
    return rows, np.zeros(len(rows), dtype=np.int64)


def _by_cell(rows: Ints, cell: Ints, cells: int) -> tuple[Ints, Ints]:
    """Rows by cell in their order, and where those of each cell start."""
    start = np.zeros(cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=cells), out=start[1:])
    if (np.diff(cell) < 0).any():
        rows = rows[np.argsort(cell, kind="stable")]
    return rows, start


# Average precision as COCO's evaluator reads it, over thresholds, sizes and classes, for many resamples.

# Places among COCO's ten thresholds, of which 0.3 is none.
_HALF, _THREE_QUARTERS = 0, 5
_SIZES = ("ap_small", "ap_medium", "ap_large")


def compute_precisions(
    video: Ints,
    kind: Ints,
    score: Floats,
    hit: npt.NDArray[np.uint16],
    passed: npt.NDArray[np.uint16],
    n_kinds: int,
    object_video: Ints,
    object_kind: Ints,
    asked: Bools,
    weights: npt.NDArray[np.int32],
    n_steps: int,
) -> dict[str, Floats]:
    """`ap`, `ap50`, `ap75`, `ap_small`, `ap_medium`, `ap_large`, each (draws,), NaN where there is no object.

    Args:
        video: (n,) of each prediction; predictions by image, by falling score within each class of an image.
        kind: (n,) class of each.
        score: (n,) of each.
        hit: (n, A) bit t is set where it met an object.
        passed: (n, A) bit t is set where it does not count.
        n_kinds: how many classes there are.
        object_video: (m,) of each object.
        object_kind: (m,) class of each.
        asked: (m, A) whether it is asked for among objects of each size.
        weights: (draws, videos) how often each video counts.
        n_steps: bits of `hit`; the first is of the threshold below COCO's, and left away.

    Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
    """
    order = np.lexsort((-score, kind))
    starts = np.searchsorted(kind[order], np.arange(n_kinds + 1))
    # From 1 on: bit 0 is the threshold 0.3, of which there is no average precision.
    bits = np.uint16(1) << np.arange(1, n_steps, dtype=np.uint16)
    by_area = []
    for a in range(hit.shape[1]):
        n_truth = _counts(object_video[asked[:, a]], object_kind[asked[:, a]], n_kinds, weights)
        marks = (hit[order, a, None] & bits) > 0
        away = (passed[order, a, None] & bits) > 0
        areas = resample_average_precision(
            *(starts, video[order].astype(np.int32), marks, n_truth, weights, "coco"), ignored=away
        )
        areas[n_truth == 0] = np.nan
        by_area.append(areas)
    found = {
        "ap": _mean(by_area[0].mean(axis=2)),
        "ap50": _mean(by_area[0][:, :, _HALF]),
        "ap75": _mean(by_area[0][:, :, _THREE_QUARTERS]),
    }
    return found | {name: _mean(areas.mean(axis=2)) for name, areas in zip(_SIZES, by_area[1:], strict=True)}


def _counts(video: Ints, kind: Ints, n_kinds: int, weights: npt.NDArray[np.int32]) -> Ints:
    """(draws, classes) how many objects there are."""
    n_videos = weights.shape[1]
    held = np.bincount(kind * n_videos + video, minlength=n_kinds * n_videos).reshape(n_kinds, n_videos)
    found: Ints = weights.astype(np.int64) @ held.T
    return found


def _mean(values: Floats) -> Floats:
    """(draws,) mean over the classes that have objects.

    Args:
        values: (draws, classes) NaN where there is none.
    """
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    found: Floats = np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)
    return found


# Average recall: the share of objects that are met, averaged over thresholds and classes, for many resamples.

SIZES = ("", "_small", "_medium", "_large")
# Places among all eleven thresholds.
_LOOSE, _RECALL_HALF, _RECALL_THREE_QUARTERS, _FROM_HALF = 0, 1, 6, slice(1, None)
_AT: dict[str, int | slice] = {
    "ar": _FROM_HALF,
    "ar50": _RECALL_HALF,
    "ar75": _RECALL_THREE_QUARTERS,
    "ar30": _LOOSE,
}
SIZED = {"ar": SIZES, "ar50": SIZES, "ar75": SIZES[:1], "ar30": SIZES}
KINDS = ("ar", "ar50")
"""What is given of each class and super-class."""


@dataclass(frozen=True, eq=False)
class Values:
    """The metrics of a group under several weightings.

    Args:
        whole: metric to (draws,) values.
        kinds: the same of each class.
        above: the same of each super-class.
    """

    whole: dict[str, Floats]
    kinds: list[dict[str, Floats]]
    above: list[dict[str, Floats]]


@dataclass(frozen=True, eq=False)
class Recall:
    """How many objects were met, by video.

    Args:
        met: (classes, videos, 2 + A, T) objects met by the first predictions, as many as the first and the second
            number of `CornerConfig.max_detections`, then by all predictions among objects of each size.
        asked: (classes, videos, A) objects that are asked for.
        above_met: (super-classes, videos, T) met by all predictions, of any size.
        above_asked: (super-classes, videos) objects that are asked for.
        most: the names of the first two numbers.
    """

    met: Floats
    asked: Floats
    above_met: Floats
    above_asked: Floats
    most: tuple[int, int]

    def values(self, weights: npt.NDArray[np.int32]) -> Values:
        """Every metric under some weightings of videos, NaN where there is no object.

        The recall of a class at a threshold is the share of its objects that are met; a metric is the mean
        over thresholds and over the classes that have objects.

        Args:
            weights: (draws, videos) how often each counts.

        Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
        """
        counted = weights.astype(np.float64)
        kinds = [
            self._metrics(_product(counted, met), counted @ asked)
            for met, asked in zip(self.met, self.asked, strict=True)
        ]
        whole = {name: _average_recalls([kind[name] for kind in kinds]) for name in kinds[0]}
        above = [
            self._plain(_product(counted, met), counted @ asked)
            for met, asked in zip(self.above_met, self.above_asked, strict=True)
        ]
        return Values(whole, [{name: kind[name] for name in KINDS} for kind in kinds], above)

    def counted(self, metric: str) -> int:
        """How many objects a metric of the whole is made from."""
        size = next((n for n, name in enumerate(SIZES) if name and metric.endswith(name)), 0)
        return int(self.asked[:, :, size].sum())

    def of_kind(self, kind: int) -> int:
        """How many objects a class has."""
        return int(self.asked[kind, :, 0].sum())

    def of_super(self, above: int) -> int:
        """How many objects a super-class has."""
        return int(self.above_asked[above].sum())

    def _metrics(self, met: Floats, asked: Floats) -> dict[str, Floats]:
        """Metrics of one class.

        Args:
            met: (draws, 2 + A, T).
            asked: (draws, A).
        """
        shares = np.full_like(met, np.nan)
        totals = asked[:, [0, 0, *range(asked.shape[1])]][:, :, None]
        np.divide(met, totals, out=shares, where=totals > 0)
        found = {
            f"{name}{size}": _level(shares[:, 2 + place], at)
            for name, at in _AT.items()
            for place, size in enumerate(SIZED[name])
        }
        few = {f"ar{n}": _level(shares[:, place], _FROM_HALF) for place, n in enumerate(self.most)}
        first = {name: found.pop(name) for name in ("ar", "ar50", "ar75")}
        return {**first, **few, **found}

    def _plain(self, met: Floats, asked: Floats) -> dict[str, Floats]:
        """Metrics of one super-class."""
        shares = np.full_like(met, np.nan)
        np.divide(met, asked[:, None], out=shares, where=asked[:, None] > 0)
        return {name: _level(shares, _AT[name]) for name in KINDS}


def compute_recalls(
    video: Ints,
    kind: Ints,
    above: Ints,
    asked: Bools,
    rank: npt.NDArray[np.int16],
    n_videos: int,
    n_kinds: int,
    n_above: int,
    most: tuple[int, int, int],
) -> Recall:
    """Counts of matched objects, summed by video.

    Args:
        video: (m,) of each object.
        kind: (m,) class of each.
        above: (m,) super-class of each, -1 for none.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction met it, -1 where none did.
        n_videos: how many videos there are.
        n_kinds: how many classes.
        n_above: how many super-classes; 0 leaves them away.
        most: predictions that are taken.
    """
    n_steps = rank.shape[2]
    every = rank[:, 0]
    columns = [(every >= 0) & (every < n) & asked[:, :1] for n in most[:2]]
    columns += [(rank[:, a] >= 0) & asked[:, a, None] for a in range(asked.shape[1])]
    met = np.stack(columns, axis=1).reshape(len(rank), len(columns) * n_steps)
    cell = kind * n_videos + video
    summed = _count_by_cell(cell, met, n_kinds * n_videos).reshape(n_kinds, n_videos, len(columns), n_steps)
    totals = _count_by_cell(cell, asked, n_kinds * n_videos).reshape(n_kinds, n_videos, asked.shape[1])
    known = above >= 0 if n_above else np.zeros(len(above), dtype=bool)
    cell = above[known] * n_videos + video[known]
    found = columns[2][known]
    return Recall(
        summed,
        totals,
        _count_by_cell(cell, found, n_above * n_videos).reshape(n_above, n_videos, n_steps),
        _count_by_cell(cell, asked[known, :1], n_above * n_videos).reshape(n_above, n_videos),
        most[:2],
    )


def _count_by_cell(cell: Ints, values: Bools, cells: int) -> Floats:
    """(cells, columns) how often each column is true in each cell."""
    order = np.argsort(cell, kind="stable")
    total = np.zeros((cells, values.shape[1]))
    if len(cell):
        named, first = np.unique(cell[order], return_index=True)
        total[named] = np.add.reduceat(values[order].astype(np.int32), first, axis=0)
    return total


def _product(weights: Floats, met: Floats) -> Floats:
    """(draws, ...) sums over videos."""
    flat = met.reshape(len(met), int(np.prod(met.shape[1:])))
    found: Floats = (weights @ flat).reshape(len(weights), *met.shape[1:])
    return found


def _level(shares: Floats, at: int | slice) -> Floats:
    """(draws,) recall at a threshold, or its mean over several."""
    found: Floats = shares[:, at] if isinstance(at, int) else shares[:, at].mean(axis=1)
    return found


def _average_recalls(values: list[Floats]) -> Floats:
    """(draws,) mean over the classes that have objects."""
    stacked = np.stack(values)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    found: Floats = np.divide(total, count, out=np.full(stacked.shape[1], np.nan), where=count > 0)
    return found
