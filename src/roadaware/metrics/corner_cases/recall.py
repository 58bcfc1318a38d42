"""Average recall: the share of objects that are met, averaged over thresholds and classes, for many draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints

SIZES = ("", "_small", "_medium", "_large")
_LOOSE, _HALF, _THREE_QUARTERS, _FROM_HALF = 0, 1, 6, slice(1, None)
_AT: dict[str, int | slice] = {"ar": _FROM_HALF, "ar50": _HALF, "ar75": _THREE_QUARTERS, "ar30": _LOOSE}
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
        met: (classes, videos, 2 + A, T) objects met by the first claims, as many as the first and the second
            number of `CornerConfig.max_detections`, then by all claims among objects of each size.
        asked: (classes, videos, A) objects that are asked for.
        above_met: (super-classes, videos, T) met by all claims, of any size.
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
        whole = {name: _mean([kind[name] for kind in kinds]) for name in kinds[0]}
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


def recalls(
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
    """What was met, summed by video.

    Args:
        video: (m,) of each object.
        kind: (m,) class of each.
        above: (m,) super-class of each, -1 for none.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which claim met it, -1 where none did.
        n_videos: how many videos there are.
        n_kinds: how many classes.
        n_above: how many super-classes; 0 leaves them away.
        most: claims that are taken.
    """
    n_steps = rank.shape[2]
    every = rank[:, 0]
    columns = [(every >= 0) & (every < n) & asked[:, :1] for n in most[:2]]
    columns += [(rank[:, a] >= 0) & asked[:, a, None] for a in range(asked.shape[1])]
    met = np.stack(columns, axis=1).reshape(len(rank), len(columns) * n_steps)
    cell = kind * n_videos + video
    summed = _summed(cell, met, n_kinds * n_videos).reshape(n_kinds, n_videos, len(columns), n_steps)
    totals = _summed(cell, asked, n_kinds * n_videos).reshape(n_kinds, n_videos, asked.shape[1])
    known = above >= 0 if n_above else np.zeros(len(above), dtype=bool)
    cell = above[known] * n_videos + video[known]
    found = columns[2][known]
    return Recall(
        summed,
        totals,
        _summed(cell, found, n_above * n_videos).reshape(n_above, n_videos, n_steps),
        _summed(cell, asked[known, :1], n_above * n_videos).reshape(n_above, n_videos),
        most[:2],
    )


def _summed(cell: Ints, values: Bools, cells: int) -> Floats:
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


def _mean(values: list[Floats]) -> Floats:
    """(draws,) mean over the classes that have objects."""
    stacked = np.stack(values)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    found: Floats = np.divide(total, count, out=np.full(stacked.shape[1], np.nan), where=count > 0)
    return found
