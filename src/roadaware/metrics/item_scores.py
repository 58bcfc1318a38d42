"""A state of one row of numbers per item: every metric is a mean over items, so that a draw is a product."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints32
from roadaware.errors import InputError
from roadaware.metrics.judged import Judged, Measured


@dataclass(frozen=True, eq=False)
class ItemScores(Judged):
    """Items and what each of them scored.

    Args:
        items: one row each, with `video` and the column that `class_column` names.
        values: (items, metrics) NaN where undefined; such items are left out of that mean.
        config: how they were judged.
    """

    class_column: ClassVar[str]

    items: pl.DataFrame
    values: Floats
    config: Any

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]:
        """The names of the columns of `values`."""

    @property
    def reason(self) -> str:
        """Why a metric may be undefined."""
        return "no item defines it"

    def merge(self, other: Self) -> Self:
        """Both parts' items; see `Judged.merge`."""
        if self.config != other.config:
            raise InputError("the parts were judged by different configurations", hint="judge both by one")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the videos {sorted(shared)[:5]}", hint="split by whole videos")
        items = pl.concat([self.items, other.items], how="vertical_relaxed")
        return replace(self, items=items, values=np.concatenate([self.values, other.values]))

    def only(self, kept: Bools) -> Self:
        """Some of the items; see `Judged.only`."""
        return replace(self, items=self.items.filter(pl.Series(kept)), values=self.values[kept])

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """Every metric: the weighted mean over items, then the same over those of each class."""
        classes = self.items[self.class_column].cast(pl.String)
        names = sorted(classes.drop_nulls().unique().to_list())
        number = classes.replace_strict(names, range(len(names)), default=len(names), return_dtype=pl.Int64)
        order = np.argsort(number.to_numpy(), kind="stable")
        counted = weights[:, self._video_numbers()[order]].astype(np.float64)
        values = self.values[order]
        yield from self._means(counted, values, None)
        ends = np.searchsorted(number.to_numpy()[order], np.arange(len(names) + 1))
        for name, start, end in zip(names, ends[:-1], ends[1:], strict=True):
            yield from self._means(counted[:, start:end], values[start:end], name)

    def _means(self, counted: Floats, values: Floats, label: str | None) -> Iterator[Measured]:
        """The metrics of some items.

        Args:
            counted: (draws, n) how often each item counts.
            values: (n, metrics) what each scored.
            label: their class.
        """
        known = ~np.isnan(values)
        sums = counted @ np.where(known, values, 0.0)
        totals = counted @ known.astype(np.float64)
        means = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
        for column, metric in enumerate(self.metrics):
            yield Measured(metric, means[:, column], int(known[:, column].sum()), label, self.reason)

    def _video_numbers(self) -> npt.NDArray[np.int64]:
        """(items,) the place of each item's video in `videos`."""
        videos = self.items["video"].cast(pl.String)
        places = list(range(len(self.videos)))
        numbers: npt.NDArray[np.int64] = videos.replace_strict(
            list(self.videos), places, return_dtype=pl.Int64
        ).to_numpy()
        return numbers
