"""Whether a model is right about two questions at once: joint correctness by combination of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import build_interval_columns
from roadaware.metrics.scores import SampleScores, predict_labels
from roadaware.statistics.intervals import Units

OUTCOMES = ("both", "only_first", "only_second", "none")

_COLUMNS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "outcome": pl.String,
    "count": pl.Int64,
    "n": pl.Int64,
    "percent": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


@dataclass(frozen=True, eq=False)
class Agreement:
    """Joint correctness of two tasks on the same samples.

    Args:
        table: one row per combination of true classes and outcome, and the rows over all samples with
            null in `first` and `second`. `outcome` is `both`, `only_first`, `only_second` or `none`;
            `count` of the `n` samples of the combination end so, `percent` of them (null where n is 0),
            with the ends of the 95 % intervals over pedestrians and over videos, and why these are to be
            taken with caution.
    """

    table: pl.DataFrame

    def wide(self) -> pl.DataFrame:
        """One row per combination: `first`, `second`, `n`, and the percentage of each outcome."""
        return self.table.pivot("outcome", index=["first", "second", "n"], values="percent")

    def percent(self, outcome: str, first: str | None = None, second: str | None = None) -> float | None:
        """One percentage, over all samples unless a combination is named; None where it has no samples.

        Raises:
            UsageError: if there is no such combination or outcome.
        """
        held = (
            pl.col("first").eq_missing(pl.lit(first, dtype=pl.String))
            & pl.col("second").eq_missing(pl.lit(second, dtype=pl.String))
            & (pl.col("outcome") == outcome)
        )
        found = self.table.filter(held)
        if found.is_empty():
            raise UsageError(
                f"no outcome '{outcome}' of {first} and {second}; outcomes are {', '.join(OUTCOMES)}"
            )
        value: float | None = found["percent"][0]
        return value


def compute_agreement(
    first: SampleScores,
    second: SampleScores,
    *,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    draws: int = 0,
    seed: int = 0,
) -> Agreement:
    """How often two tasks are decided rightly together, alone, or not at all.

    Args:
        first: scores and ground truth of one task, such as intention.
        second: scores and ground truth of the other for the same samples, such as action.
        labels: names of the classes of both; their numbers where not given.
        draws: most weightings of pedestrians and of videos; 0 gives no intervals.
        seed: of the weightings.

    Raises:
        InputError: if the two are not about the same samples, or names are too few.

    Source: Rasouli and Kotseruba, IV 2024, section IV.D and Table V.

    >>> intention = SampleScores(np.eye(3), np.array([0, 1, 1]), ["a", "b", "c"])
    >>> action = SampleScores(np.array([0.1, 0.2, 0.3]), np.array([0, 1, 0]), ["a", "b", "c"])
    >>> found = compute_agreement(intention, action)
    >>> [round(found.percent(outcome)) for outcome in ("both", "only_first", "only_second", "none")]
    [33, 33, 33, 0]
    """
    one, two = first.take(np.argsort(first.places)), second.take(np.argsort(second.places))
    same = len(one) == len(two) and bool((one.places == two.places).all())
    if not same or (one.pedestrian != two.pedestrian).any():
        raise InputError(
            f"agreement needs both tasks on the same samples; got {len(one)} and {len(two)} samples "
            "that differ in number, order or pedestrian",
            hint="predict both tasks for one set of samples, in the same order of extraction",
        )
    names = [_names(state, given) for state, given in zip((one, two), labels or (None, None), strict=True)]
    counts, video = _counts(one, two)
    total = counts.sum(axis=0)
    people = {"pedestrian": np.arange(len(counts)), "video": video}
    units = {u: None if of is None or not draws else Units.of(of, draws, seed) for u, of in people.items()}
    drawn = {
        u: np.concatenate([_shares(counts, times) for times in of.weights()])
        for u, of in units.items()
        if of is not None
    }
    rows: list[dict[str, Any]] = []
    keys: list[tuple[str | None, str | None]] = [(a, b) for a in names[0] for b in names[1]]
    for k, key in enumerate([*keys, (None, None)]):
        n = int(total[k].sum())
        for o, outcome in enumerate(OUTCOMES):
            share = float(total[k, o]) / n if n else None
            row: dict[str, Any] = {
                "first": key[0],
                "second": key[1],
                "outcome": outcome,
                "count": int(total[k, o]),
                "n": n,
            }
            row["percent"] = None if share is None else 100.0 * share
            for u, of in units.items():
                found = None if of is None or share is None else of.interval(share, drawn[u][:, k, o])
                # The columns of an interval, its ends as percentages.
                columns = {
                    name: value
                    for name, value in build_interval_columns(found, u).items()
                    if name in _COLUMNS
                }
                row |= {name: 100.0 * v if isinstance(v, float) else v for name, v in columns.items()}
            rows.append(row)
    return Agreement(pl.DataFrame(rows, schema=_COLUMNS))


def _names(state: SampleScores, given: Sequence[str] | None) -> Sequence[str]:
    if given is None:
        return [str(k) for k in range(state.n_classes)]
    if len(given) != state.n_classes:
        raise InputError(f"{state.n_classes} classes need {state.n_classes} names; got {list(given)}")
    return given


def _counts(
    one: SampleScores, two: SampleScores
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_] | None]:
    """Samples of each pedestrian by combination and outcome, and each pedestrian's video.

    Returns:
        (p, combinations + 1, 4) counts, the last combination being all; (p,) video, or None.
    """
    names, start, person = np.unique(one.pedestrian, return_index=True, return_inverse=True)
    right_one, right_two = predict_labels(one.scores) == one.truth, predict_labels(two.scores) == two.truth
    outcome = 2 * (~right_one).astype(np.int64) + ~right_two
    combination = one.truth * two.n_classes + two.truth
    size = one.n_classes * two.n_classes
    counts = np.zeros((len(names), size + 1, len(OUTCOMES)))
    np.add.at(counts, (person, combination, outcome), 1.0)
    counts[:, size] = counts[:, :size].sum(axis=1)
    return counts, None if one.video is None else one.video[start]


def _shares(counts: npt.NDArray[np.float64], times: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """(draws, combinations + 1, 4) shares where each pedestrian counts so many times, NaN without samples."""
    # One product of matrices for all resamples, instead of a gather of rows for each.
    sums = (times.astype(np.float64) @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
    whole = sums.sum(axis=2, keepdims=True)
    shares: npt.NDArray[np.float64] = np.divide(sums, whole, out=np.full(sums.shape, np.nan), where=whole > 0)
    return shares
