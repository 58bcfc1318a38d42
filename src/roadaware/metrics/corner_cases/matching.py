"""Claims against the objects of one group: which claim met which object, at every threshold and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.corner_cases.config import AREA_BOUNDS_PX2, CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects


@dataclass(frozen=True, eq=False)
class Met:
    """What became of the objects and claims of a group.

    Args:
        rows: (m,) the objects, rows of the truth.
        kind: (m,) class of each within the group.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which claim of its picture and class met it, from 0; -1 where none did.
        best: (m,) the greatest overlap with a claim of its class.
        claims: (n,) the claims that count, rows of all claims, by class, picture and falling score.
        claimed: (n,) class of each within the group.
        hit: (n, A) bit t is set where it met an object that is asked for.
        passed: (n, A) bit t is set where it does not count.
        beyond: how many claims were not taken, for they are too many in their picture.
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


def classes_of(group: Group, truth: Objects) -> tuple[str, ...]:
    """The classes that a group is asked for in."""
    return {"common": truth.commons, "classes": truth.labels}.get(group, (group,))


def matched(
    group: Group, truth: Objects, claims: Claims, config: CornerConfig, *, every: bool = False
) -> Met:
    """The claims of a group matched with its objects.

    Args:
        group: which.
        truth: all objects.
        claims: all claims.
        config: how.
        every: whether each claim is claimed once as each class, as trivial answers are.

    Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
    """
    from roadaware.metrics.corner_cases.kernels import MISSED, match_cells

    rows, kind = _objects(group, truth, config)
    taken, claimed = _claims(group, claims, len(classes_of(group, truth)), every=every)
    n_items = len(truth.items)
    cells = n_items * max(1, len(classes_of(group, truth)))
    rows, object_start = _by_cell(rows, kind * n_items + truth.item[rows], cells)
    taken, claim_start = _by_cell(taken, claimed * n_items + claims.item[taken], cells)
    kind = (np.repeat(np.arange(cells), np.diff(object_start)) // n_items).astype(np.int64)
    taken, claim_start, beyond = _at_most(taken, claim_start, config.max_detections[-1])
    claimed = (np.repeat(np.arange(cells), np.diff(claim_start)) // n_items).astype(np.int64)
    ignored = truth.marked[rows] if config.ignored == "marked" else truth.crowd[rows]
    rank = np.full((len(rows), len(AREA_BOUNDS_PX2), len(config.thresholds)), MISSED, dtype=np.int16)
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
    """The claims of a group with the class of each, in their order."""
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


def _at_most(rows: Ints, start: Ints, most: int) -> tuple[Ints, Ints, int]:
    """The first rows of each cell, where they start now, and how many were left away."""
    sizes = np.diff(start)
    if not len(sizes) or sizes.max(initial=0) <= most:
        return rows, start, 0
    place = np.arange(len(rows)) - np.repeat(start[:-1], sizes)
    kept = np.zeros_like(start)
    np.cumsum(np.minimum(sizes, most), out=kept[1:])
    return rows[place < most], kept, int((place >= most).sum())
