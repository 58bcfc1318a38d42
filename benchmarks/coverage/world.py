"""A world: very many units whose numbers are the truth, and samples of few of them, judged as usual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Told(NamedTuple):
    """A number as it is printed."""

    value: float | None
    low: float | None
    high: float | None


class Verdict(NamedTuple):
    """What a comparison of two models says of one number."""

    difference: float | None
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True, eq=False)
class World(ABC):
    """Units to be sampled.

    Args:
        name: in the tables.
        units: how many there are.
    """

    name: str
    units: int

    @abstractmethod
    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """Metric to what the library prints of it for some units."""


class Pair(World):
    """Units that two models were asked about."""

    @abstractmethod
    def compared(self, chosen: Ints, resamples: int) -> dict[str, Verdict]:
        """Metric to what the library says of the first model beside the second."""

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """The difference and its interval."""
        return {name: Told(*found[:3]) for name, found in self.compared(chosen, resamples).items()}


def rows(summary: pl.DataFrame, unit: str, metrics: tuple[str, ...] = ()) -> dict[str, Told]:
    """The rows of a summary, of some metrics; all where none are named."""
    return {
        row["metric"]: Told(row["value"], row[f"low_{unit}"], row[f"high_{unit}"])
        for row in summary.iter_rows(named=True)
        if not metrics or row["metric"] in metrics
    }


def verdicts(table: pl.DataFrame, unit: str, metrics: tuple[str, ...]) -> dict[str, Verdict]:
    """The rows of a comparison."""
    return {
        row["metric"]: Verdict(row["difference"], row[f"low_{unit}"], row[f"high_{unit}"], row["verdict"])
        for row in table.iter_rows(named=True)
        if row["metric"] in metrics
    }


def sigmoid(x: Any) -> Floats:
    """The logistic function."""
    found: Floats = 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=np.float64)))
    return found


def starts(unit: Ints, units: int) -> Ints:
    """(units + 1,) where each unit starts in a sorted column."""
    return np.searchsorted(unit, np.arange(units + 1)).astype(np.int64)


def taken(first: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The rows of some units, and to which of them each belongs."""
    sizes = first[chosen + 1] - first[chosen]
    rows = np.concatenate([np.arange(first[unit], first[unit + 1]) for unit in chosen])
    return rows, np.repeat(np.arange(len(chosen)), sizes)
