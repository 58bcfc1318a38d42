"""Cells of a cross-dataset study: means over seeds, and which cells are in-domain or cross-dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

from roadaware.protocols.cross_dataset.config import HIGHER, CrossResults, parse_training_sets

PLAIN = "deterministic"
OVER_SEEDS = "ensemble"
Bins = Literal["default", "reference"]
NAMES = {
    "auc": "AUC",
    "average_precision": "average precision",
    "f1": "F1",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "ece": "ECE",
    "mce": "MCE",
    "nll": "NLL",
    "brier": "Brier score",
}
DOUBT_NAMES = {
    PLAIN: "as it is",
    "temperature": "temperature scaling",
    "mc-dropout": "Monte Carlo dropout",
    "last-dropout": "last-layer dropout",
    "last-flipout": "last-layer Flipout",
    OVER_SEEDS: "ensemble over seeds",
}


@dataclass(frozen=True)
class Found:
    """A metric over cells that differ in their seeds alone.

    Args:
        value: the mean over seeds; None where no seed has a value.
        low, high: means of the ends of the 95 % intervals of the seeds; None where a seed has none.
        caution: why those of a seed are to be taken with caution; None where none is.
        spread: standard deviation over seeds; None with fewer than two.
        seeds: how many have a value.
        failed: how many have none.
        samples: that each was asked.
        positives: how many of them cross.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    caution: str | None = None
    spread: float | None = None
    seeds: int = 0
    failed: int = 0
    samples: int | None = None
    positives: int | None = None


_Row = tuple[int, float | None, float | None, float | None, str | None, int | None, int | None]
_Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, eq=False)
class Study:
    """The results of a study, by what figures and tables ask.

    Args:
        results: as they were opened.
        bins: which adaptive bins ECE and MCE are read in, where there are both.
    """

    results: CrossResults
    bins: Bins = "default"

    @property
    def models(self) -> tuple[str, ...]:
        """In the order of the table."""
        return self.results.models

    @cached_property
    def tested(self) -> tuple[str, ...]:
        """Domains that somebody was tested on, in the order of the study."""
        held = set(self.results.table["tested_on"])
        return tuple(name for name in self.results.domains if name in held)

    @cached_property
    def learnt(self) -> tuple[str, ...]:
        """Domains that somebody was trained on alone, in the order of the study."""
        held = set(self.results.table["trained_on"])
        return tuple(name for name in self.results.domains if name in held)

    @cached_property
    def joined(self) -> tuple[str, ...]:
        """Names of ensembles over training sets, most members first."""
        held = self.results.table["trained_on"].unique(maintain_order=True)
        names = [name for name in held if ">" not in name and name not in self.learnt]
        return tuple(sorted(names, key=lambda name: -len(self.members(name))))

    @cached_property
    def onward(self) -> tuple[str, ...]:
        """Names of training on one domain that went on with another."""
        held = self.results.table["trained_on"].unique(maintain_order=True)
        return tuple(name for name in held if ">" in name)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Uncertainty methods that took part, in the order in which pages name them."""
        held = set(self.results.table["doubt"])
        return (*(name for name in DOUBT_NAMES if name in held), *sorted(held - set(DOUBT_NAMES)))

    def doubts_of(self, model: str) -> tuple[str, ...]:
        """Uncertainty methods of a model, in the same order.

        Args:
            model: its name.
        """
        held = {uncertainty for who, _, _, uncertainty, _ in self._held if who == model}
        return tuple(uncertainty for uncertainty in self.doubts if uncertainty in held)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of which at least one cell has a value."""
        known = self.results.table.drop_nulls("value")
        return tuple(name for name in NAMES if name in set(known["metric"]))

    def members(self, trained_on: str) -> tuple[str, ...]:
        """The domains behind the name of training sets."""
        return parse_training_sets(trained_on, self.results.domains)

    def at(
        self, model: str, trained_on: str, tested_on: str, metric: str, doubt: str = PLAIN
    ) -> Found | None:
        """A metric of one place in the matrix, over all its seeds; None where nothing was run.

        Args:
            model: its name.
            trained_on: a name of training sets.
            tested_on: a domain.
            metric: its name.
            doubt: uncertainty method.
        """
        rows = self._held.get((model, trained_on, tested_on, doubt, metric))
        return None if rows is None else _over_seeds(rows)

    def by_seed(
        self, model: str, trained_on: str, tested_on: str, metric: str, uncertainty: str = PLAIN
    ) -> list[tuple[int, float]]:
        """Seeds and their values, of those that have one.

        Args:
            model: its name.
            trained_on: a name of training sets.
            tested_on: a domain.
            metric: its name.
            uncertainty: uncertainty method.
        """
        rows = self._held.get((model, trained_on, tested_on, uncertainty, metric), [])
        return [(seed, value) for seed, value, *_ in rows if value is not None]

    def home(self, model: str, tested_on: str, metric: str, uncertainty: str = PLAIN) -> Found | None:
        """As `at`, for a model that learnt on what it is tested on."""
        return self.at(model, tested_on, tested_on, metric, uncertainty)

    def away(
        self, model: str, tested_on: str, metric: str, uncertainty: str = PLAIN
    ) -> list[tuple[str, Found]]:
        """Training sets other than what is tested on, each with what it gives there; without failures.

        Args:
            model: its name.
            tested_on: a domain.
            metric: its name.
            uncertainty: uncertainty method.
        """
        places = (
            (name, self.at(model, name, tested_on, metric, uncertainty))
            for name in self.learnt
            if name != tested_on
        )
        return [(name, found) for name, found in places if found is not None and found.value is not None]

    def ensemble(
        self, model: str, tested_on: str, metric: str, uncertainty: str = PLAIN, *, home: bool = True
    ) -> tuple[str, Found] | None:
        """The largest ensemble over training sets that was tested there, with its name.

        Args:
            model: its name.
            tested_on: a domain.
            metric: its name.
            uncertainty: uncertainty method.
            home: whether what it is tested on is among the training sets, or must not be.
        """
        for name in self.joined:
            if (tested_on in self.members(name)) == home:
                found = self.at(model, name, tested_on, metric, uncertainty)
                if found is not None and found.value is not None:
                    return name, found
        return None

    @cached_property
    def _held(self) -> dict[_Key, list[_Row]]:
        table, known = self.results.table, set(self.results.table["config"])
        bins = self.bins if self.bins in known else next(iter(sorted(known - {""})), "")
        columns = ("seed", "value", "low", "high", "caution", "samples", "positives", "config")
        found: dict[_Key, list[_Row]] = {}
        keys = table.select("model", "trained_on", "tested_on", "doubt", "metric").iter_rows()
        for key, (*row, config) in zip(keys, table.select(columns).iter_rows(), strict=True):
            if config in ("", None, bins):
                found.setdefault(key, []).append(tuple(row))
        return found


def compute_mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is.

    >>> compute_mean([0.5, None, 0.75]), compute_mean([])
    (0.625, None)
    """
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def describe_direction(metric: str) -> str:
    """Which direction is better, as a table writes it."""
    return "higher is better" if metric in HIGHER else "lower is better"


def _over_seeds(rows: Sequence[_Row]) -> Found:
    values = [value for _, value, *_ in rows if value is not None]
    ends = [(low, high) for _, value, low, high, *_ in rows if value is not None]
    lows = [low for low, _ in ends if low is not None]
    highs = [high for _, high in ends if high is not None]
    whole = bool(ends) and len(lows) == len(highs) == len(ends)
    samples, positives = ([row[at] for row in rows if row[at] is not None] for at in (5, 6))
    return Found(
        value=fmean(values) if values else None,
        low=fmean(lows) if whole else None,
        high=fmean(highs) if whole else None,
        caution=next((row[4] for row in rows if row[4] is not None), None) if whole else None,
        spread=stdev(values) if len(values) > 1 else None,
        seeds=len(values),
        failed=len(rows) - len(values),
        samples=int(samples[0]) if samples and samples[0] is not None else None,
        positives=int(positives[0]) if positives and positives[0] is not None else None,
    )
