"""Calibration of pedestrian scores: errors, NLL and Brier score with intervals; what conformal sets promise and hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints, Ints32
from roadaware.config import check_words, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import SUMMARY, MetricResult
from roadaware.metrics.pedestrians import UNITS, build_metric_row
from roadaware.metrics.scores import SampleScores, Texts, compute_confidences, group_labels
from roadaware.statistics.calibration import (
    AdaptiveBins,
    NoBinningError,
    Reliability,
    UniformBins,
    compute_sorted_reliability,
    reliability,
)
from roadaware.statistics.conformal import Rule, calibrate_conformal, compute_set_coverage
from roadaware.statistics.intervals import Scale, Units

# CalibrationConfig: how calibration is measured, each choice a named field.


@dataclass(frozen=True)
class CalibrationConfig(AdaptiveBins):
    """The adaptive bins, and what else calibration depends on.

    `reference()` bins as the published code does, `default()` has its errors corrected; the fields below are
    the same in both.

    Args:
        uniform_bins: number of bins of equal width over [0, 1].
        least_probability: the negative log-likelihood takes the true class to have at least this.
        row_sum_tolerance: how far several scores of a sample may be from summing to 1.

    Source: Gesnouin et al., IV 2022, section II-C, and the code it uses (Ding et al., CVPR Workshops 2020).
    """

    uniform_bins: int = 10
    # A sure error would have an infinite loss; it counts as -ln(1e-12) = 27.6.
    least_probability: float = 1e-12
    row_sum_tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_words(self)
        if not (self.z > 0 and self.least_rest >= 0 and self.least_drop >= 0 and self.uniform_bins >= 1):
            raise UsageError(
                "z should be positive, least_rest and least_drop not negative, uniform_bins at least 1"
            )
        if not (0 < self.least_probability < 1 and self.row_sum_tolerance >= 0):
            raise UsageError("least_probability should lie in (0, 1), row_sum_tolerance not be negative")


# Calibration as a function of how often each pedestrian occurs: sort once, then bin every resample.

ADAPTIVE, UNIFORM = ("ece", "mce"), ("uniform_ece", "uniform_mce")
MEANS = ("nll", "brier", "accuracy", "confidence")
METRIC_NAMES = (*ADAPTIVE, "ece_if_calibrated", *UNIFORM, *MEANS, "overconfidence")
SCALES: dict[str, Scale] = {
    **dict.fromkeys(("ece", "uniform_ece"), "error"),
    **dict.fromkeys(("mce", "uniform_mce"), "largest"),
    **dict.fromkeys(("nll", "brier"), "positive"),
    **dict.fromkeys(("accuracy", "confidence"), "share"),
    "overconfidence": "signed",
}
"""What kind of number each metric with an interval is."""
_NO_ENDS = (None, None, None)


@dataclass(frozen=True, eq=False)
class CalibrationCore:
    """Quantities that are computed once for a set of samples.

    Args:
        config: how confidences are binned.
        state: the samples, in the order of extraction.
        unit: unit of resampling to (p,) the unit of each pedestrian; no `video` where it is not known.
        person: (n,) place of each sample's pedestrian among the p.
        order: (n,) samples by falling confidence.
        descending: (n,) confidences in that order.
        right: (n,) 1 where the decision is right, else 0, in that order.
        sums: (p, 5) samples, NLL, Brier score, right decisions and confidence of each pedestrian, summed.
        adaptive: the adaptive bins, None where there are none.
        no_bins: why there are none.
        impossible: samples whose true class has a probability below `least_probability`.
    """

    config: CalibrationConfig
    state: SampleScores
    unit: dict[str, Texts]
    person: Ints
    order: Ints
    descending: Floats
    right: Floats
    sums: Floats
    adaptive: Reliability | None
    no_bins: str
    impossible: int

    @classmethod
    def of(cls, state: SampleScores, config: CalibrationConfig) -> CalibrationCore:
        """Decide, sort and sum once.

        Args:
            state: samples in the order of extraction.
            config: how confidences are binned.
        """
        confidence, correct = compute_confidences(state)
        # Stable: bins that split ties do so in the order of extraction.
        order = np.argsort(-confidence, kind="stable")
        names, first, person = np.unique(state.pedestrian, return_index=True, return_inverse=True)
        unit = {"pedestrian": names}
        if state.video is not None:
            unit["video"] = state.video[first]
        # (n,) the probability of the true class, and the squared error of each sample.
        # One probability: (p - y)^2, in [0, 1]. Several: sum_k (p_k - [y = k])^2, in [0, 2].
        each = np.arange(len(state))
        if state.scores.shape[1] == 1:
            p = state.scores[:, 0]
            true, brier = np.where(state.truth == 1, p, 1 - p), (p - state.truth) ** 2
        else:
            hot = np.zeros_like(state.scores)
            hot[each, state.truth] = 1.0
            true, brier = state.scores[each, state.truth], ((state.scores - hot) ** 2).sum(axis=1)
        nll = -np.log(np.maximum(true, config.least_probability))
        columns = (np.ones(len(state)), nll, brier, correct.astype(np.float64), confidence)
        summed = [np.bincount(person, column, len(names)).astype(np.float64) for column in columns]
        sums = np.stack(summed, axis=1)
        descending, right = confidence[order], correct[order].astype(np.float64)
        found, reason = None, "no samples"
        if len(state):
            try:
                found = compute_sorted_reliability(descending, right, config)
            except NoBinningError as error:
                reason = str(error)
        impossible = int((true < config.least_probability).sum())
        return cls(config, state, unit, person, order, descending, right, sums, found, reason, impossible)

    @property
    def unclosed(self) -> bool:
        """Whether the published binning gave no bins."""
        return self.adaptive is not None and not self.adaptive.closed

    def once(self) -> dict[str, float]:
        """Every metric of the set itself, NaN where undefined; without `ece_if_calibrated`.

        Source: Gesnouin et al., IV 2022, eq. 3 and 4 (`ece`, `mce`).
        """
        found = self._sums(np.ones((1, len(self.sums)), dtype=np.int32))
        point = {name: float(values[0]) for name, values in found.items()}
        bins = self.adaptive
        point["ece"] = np.nan if bins is None else bins.expected_error
        point["mce"] = np.nan if bins is None else bins.maximum_error
        return point

    def units(self, unit: str, resamples: int, seed: int) -> Units | None:
        """The resampling unit of each pedestrian; None where there are fewer than two, or they are unknown.

        Args:
            unit: `pedestrian`, or `video` (all its pedestrians come and go together).
            resamples: most weightings.
            seed: equal seeds and pedestrians give equal weightings.
        """
        return Units.of(self.unit[unit], resamples, seed) if unit in self.unit else None

    def drawn(self, unit: str, resamples: int, seed: int) -> dict[str, Floats] | None:
        """(resamples,) every metric under the weightings of `units`; None where there are none."""
        units = self.units(unit, resamples, seed)
        if units is None:
            return None
        parts = [self._sums(times) | self._rebinned(times) for times in units.weights()]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def expected_if_calibrated(self, resamples: int, seed: int) -> float:
        """The mean adaptive ECE of a perfectly calibrated model on the same few pedestrians.

        Outcomes are drawn from the confidences, the samples of one pedestrian right or wrong together as
        far as their confidences allow, so that it rather says too much than too little.

        Args:
            resamples: times the outcomes are drawn; NaN for none.
            seed: of the outcomes.
        """
        if not resamples or self.adaptive is None or self.unclosed:
            return float("nan")
        generator = np.random.default_rng(seed)
        which, count = self._placed()
        person, total = self.person[self.order], 0.0
        for _ in range(resamples):
            right = generator.random(len(self.sums))[person] < self.descending
            total += float(np.abs(np.bincount(which, right - self.descending, len(count))).sum())
        return total / resamples / len(self.state)

    def bin_rows(self, binning: str, resamples: int, seed: int) -> Iterator[tuple[Any, ...]]:
        """The bins by rising confidence: count, pedestrians, means, ends, and intervals of the accuracy.

        An interval is its low end, its high end and its caution, over pedestrians and then over videos.

        Args:
            binning: `adaptive` or `uniform`.
            resamples: most weightings of pedestrians and of videos; 0 gives no intervals.
            seed: of the weightings.
        """
        if self.adaptive is None:
            return
        found = (
            self.adaptive if binning == "adaptive" else reliability(self.descending, self.right, self._even)
        )
        m = len(found.count)
        columns = (found.count, found.confidence, found.accuracy, found.low, found.high)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        if not found.closed:
            for n, *means in rows:
                yield (n, None, *means, *_NO_ENDS, *_NO_ENDS)
            return
        which = np.repeat(np.arange(m)[::-1], found.count[::-1])
        cell = self.person[self.order] * m + which
        held = np.bincount(cell, minlength=len(self.sums) * m).reshape(-1, m)
        right = np.bincount(cell, self.right, len(self.sums) * m).reshape(-1, m)
        ends = [self._accuracy_ends(unit, held, right, resamples, seed) for unit in UNITS]
        for k, (n, *means) in enumerate(rows):
            yield (n, int((held[:, k] > 0).sum()), *means, *ends[0][k], *ends[1][k])

    def why_undefined(self, metric: str) -> str:
        """In words, why a metric of this set has no value."""
        if metric == "ece_if_calibrated" and self.adaptive is not None:
            return "the bins are not closed" if self.unclosed else "no resamples were asked for"
        return self.no_bins

    @property
    def _even(self) -> UniformBins:
        return UniformBins(self.config.uniform_bins)

    def _placed(self) -> tuple[Ints, Ints]:
        """(n,) the adaptive bin of each sample in falling order, and (m,) the counts of the bins."""
        if self.adaptive is None:
            raise TypeError("there are no bins")
        count = self.adaptive.count[::-1]
        return np.repeat(np.arange(len(count)), count), count

    def _sums(self, multiplicity: Ints32) -> dict[str, Floats]:
        """Means, and the errors in uniform bins, of every resample."""
        times = multiplicity.astype(np.float64)
        if not len(self.state):
            return {name: np.full(len(times), np.nan) for name in (*UNIFORM, *MEANS, "overconfidence")}
        totals = times @ self.sums
        found = {name: totals[:, k + 1] / totals[:, 0] for k, name in enumerate(MEANS)}
        found["overconfidence"] = found["confidence"] - found["accuracy"]
        m, which = self.config.uniform_bins, self._even.assign(self.descending)
        cell, size = self.person[self.order] * m + which, len(self.sums) * m
        held = times @ np.bincount(cell, minlength=size).reshape(-1, m)
        gaps = np.abs(times @ np.bincount(cell, self.right - self.descending, size).reshape(-1, m))
        found["uniform_ece"] = gaps.sum(axis=1) / totals[:, 0]
        found["uniform_mce"] = np.divide(gaps, held, out=np.zeros_like(gaps), where=held > 0).max(axis=1)
        return found

    def _rebinned(self, multiplicity: Ints32) -> dict[str, Floats]:
        """The errors in the adaptive bins of every resample, NaN where these come to nothing."""
        errors = np.full((len(multiplicity), 2), np.nan)
        person = self.person[self.order]
        for row, times in enumerate(multiplicity):
            again = times[person]
            try:
                bins = compute_sorted_reliability(
                    np.repeat(self.descending, again), np.repeat(self.right, again), self.config
                )
            except NoBinningError:
                continue
            if bins.closed:
                errors[row] = bins.expected_error, bins.maximum_error
        return dict(zip(ADAPTIVE, errors.T, strict=True))

    def _accuracy_ends(
        self, unit: str, held: npt.NDArray[Any], right: npt.NDArray[Any], resamples: int, seed: int
    ) -> list[tuple[float | None, float | None, str | None]]:
        """The interval of the accuracy in each bin, over units, and its caution."""
        units = self.units(unit, resamples, seed) if resamples else None
        if units is None:
            return [_NO_ENDS] * held.shape[1]
        parts = []
        for times in units.weights():
            n = times @ held.astype(np.float64)
            parts.append(np.divide(times @ right, n, out=np.full(n.shape, np.nan), where=n > 0))
        points = right.sum(axis=0) / held.sum(axis=0)
        columns = zip(points.tolist(), np.concatenate(parts).T, strict=True)
        return [(one.low, one.high, one.caution) for one in (units.interval(*each) for each in columns)]


BINS: dict[str, Any] = {
    "group": pl.String,
    "binning": pl.String,
    "n": pl.Int64,
    "pedestrians": pl.Int64,
    "confidence": pl.Float64,
    "accuracy": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "caution_pedestrian": pl.String,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "caution_video": pl.String,
}


def evaluate(
    state: SampleScores,
    config: CalibrationConfig,
    *,
    resamples: int = 0,
    seed: int = 0,
    groupings: Sequence[npt.ArrayLike] = (),
) -> MetricResult:
    """Calibration metrics of a model's confidence, over all samples and by group.

    The confidence of a sample is its largest probability, max(p, 1 - p) for one probability; it is right
    when the class decided for is the ground-truth one. `ece` and `mce` use adaptive bins, which are made anew in
    every resample; `uniform_ece` and `uniform_mce` bins of equal width.

    Args:
        state: the samples, in any order; several scores a sample sum to 1.
        config: how confidences are put into bins.
        resamples: most weightings of whole pedestrians and of whole videos; 0 gives no intervals.
        seed: of the weightings; equal seeds give equal intervals.
        groupings: (n,) labels each, such as the scenario or the time to event of each sample, None where it
            is in no group; every label is judged as a set of its own.

    Returns:
        the summary, and instances by `bin`: `group`, `binning` (`adaptive` or `uniform`), `n`, `pedestrians`,
        mean `confidence` and `accuracy`, smallest (`low`) and largest (`high`) confidence, and the ends of
        the 95 % intervals of the accuracy over pedestrians and over videos, in these very bins.

    Raises:
        InputError: if several scores of a sample do not sum to 1, or there is not one label per sample.
        UsageError: if `resamples` is negative.

    Source: Gesnouin et al., IV 2022, section II-C, equations 2-4.

    >>> state = SampleScores(np.array([0.9, 0.6, 0.2]), np.array([1, 0, 0]), ["a", "a", "b"])
    >>> result = evaluate(state, CalibrationConfig.default())
    >>> round(result.value("ece"), 3), round(result.value("brier"), 3)
    (0.1, 0.137)
    """
    if resamples < 0:
        raise UsageError(f"resamples should be 0 or more, not {resamples}")
    _check_rows(state, config)
    order = np.argsort(state.places)
    whole = state.take(order)
    cores: list[tuple[str | None, CalibrationCore]] = [(None, CalibrationCore.of(whole, config))]
    for grouping in groupings:
        labels = group_labels(grouping, len(state))[order]
        for label in sorted({str(label) for label in labels if label is not None}):
            rows = np.array([given is not None and str(given) == label for given in labels])
            cores.append((label, CalibrationCore.of(whole.take(rows), config)))
    rows_of = [row for group, core in cores for row in _summary(group, core, resamples, seed)]
    return MetricResult(
        summary=pl.DataFrame(rows_of, schema=SUMMARY),
        counts=pl.concat([_counts(group, core) for group, core in cores]),
        config=to_dict(config),
        notes=tuple(_notes(cores[0][1])),
        makers={"bin": partial(_bins, cores, resamples, seed)},
    )


def _check_rows(state: SampleScores, config: CalibrationConfig) -> None:
    if state.scores.shape[1] == 1:
        return
    off = np.abs(state.scores.sum(axis=1) - 1) > config.row_sum_tolerance
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise InputError(
            f"the scores of a sample should sum to 1 within {config.row_sum_tolerance:g}; {int(off.sum())} "
            f"of {len(state)} rows do not, row {row + 1} first, with a sum of {state.scores[row].sum():g}",
            hint="calibration needs probabilities: apply a softmax, or divide each row by its sum",
        )


def _summary(group: str | None, core: CalibrationCore, resamples: int, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of the summary of one group, in the columns of SUMMARY."""
    point = core.once()
    drawn = {unit: core.drawn(unit, resamples, seed) if resamples else None for unit in UNITS}
    units = {unit: core.units(unit, resamples, seed) for unit in UNITS}
    point["ece_if_calibrated"] = core.expected_if_calibrated(resamples, seed)
    for metric in METRIC_NAMES:
        row = build_metric_row(metric, point[metric], drawn, units, SCALES.get(metric, "error"))
        why = core.why_undefined(metric) if np.isnan(point[metric]) else None
        yield {"group": group, **row, "n": len(core.state), "reason": why}


def _counts(group: str | None, core: CalibrationCore) -> pl.DataFrame:
    """Samples of each true class, and pedestrians with such a sample."""
    size, state = core.state.n_classes, core.state
    people = [len(np.unique(state.pedestrian[state.truth == k])) for k in range(size)]
    return pl.DataFrame(
        {
            "group": pl.Series([group] * size, dtype=pl.String),
            "class": np.arange(size),
            "samples": np.bincount(state.truth, minlength=size),
            "pedestrians": people,
        }
    )


def _bins(cores: Sequence[tuple[str | None, CalibrationCore]], resamples: int, seed: int) -> pl.DataFrame:
    rows = [
        (group, binning, *row)
        for group, core in cores
        for binning in ("adaptive", "uniform")
        for row in core.bin_rows(binning, resamples, seed)
    ]
    return pl.DataFrame(rows, schema=BINS, orient="row")


def _notes(core: CalibrationCore) -> Iterator[str]:
    """What a reader must know before the numbers."""
    held = np.unique(core.descending)
    if len(held) == 1 and len(core.state) > 1:
        yield f"all {len(core.state)} confidences are {held[0]:g}: there is one bin, and it ranks nothing"
    if core.unclosed:
        yield (
            "as published, a bin lends more samples than it holds, is never closed and counts its summed "
            "confidence as a mean: ece and mce are what the published code gives, and are no calibration "
            "errors; see the mended bins of `default`"
        )
    if core.impossible:
        yield (
            f"{core.impossible} samples give their true class a probability below "
            f"{core.config.least_probability:g}; nll counts it as that"
        )


# Conformal sets: do they hold the true label as often as they promise?

HALVINGS = 100


@dataclass(frozen=True)
class Promise:
    """How sets of one rule did, the mean over halvings.

    Args:
        coverage: share of samples whose true label is in the set.
        low, high: of the coverage, the 2.5th and the 97.5th percentile over halvings.
        size: labels in a set.
        empty: share of sets without a label.
        single: share of sets with one label: those that decide.
    """

    coverage: float
    low: float
    high: float
    size: float
    empty: float
    single: float


def evaluate_coverage(
    state: SampleScores, level: float, *, halvings: int = HALVINGS, seed: int = 0
) -> dict[Rule, Promise]:
    """Empirical coverage of conformal sets against the target coverage, by rule.

    Pedestrians are halved at random, again and again; thresholds come from one half, and the sets are those
    of the other. Rule `aps` is randomised, since its sets of two labels nearly always hold both otherwise.

    Args:
        state: the samples.
        level: share of sets that are to hold the true label.
        halvings: how often.
        seed: of the halves.

    Raises:
        UsageError: if the level leaves (0, 1), or there is no halving.
        InputError: if there are fewer than two pedestrians.

    Source: Papadopoulos et al., ECML 2002; the rules are those of `statistics.conformal`.
    """
    if not 0 < level < 1:
        raise UsageError(f"conformal sets promise a share between 0 and 1, such as 0.9, not {level:g}")
    if halvings < 1:
        raise UsageError(f"pedestrians are halved once or more, not {halvings} times")
    people, owner = np.unique(state.pedestrian, return_inverse=True)
    if len(people) < 2:
        raise InputError(f"conformal sets need two pedestrians or more to be halved, found {len(people)}")
    rng, found = np.random.default_rng(seed), {rule: list[tuple[float, ...]]() for rule in get_args(Rule)}
    for place in range(halvings):
        first = np.isin(owner, rng.permutation(len(people))[: len(people) // 2])
        for rule, held in found.items():
            # Seeds of their own: random shares that calibrate must not be those of the sets.
            chance = {"randomised": rule == "aps", "seed": 2 * place}
            made = calibrate_conformal(state.scores[first], state.truth[first], 1 - level, rule, **chance)
            sets = made.sets(state.scores[~first], seed=2 * place + 1)
            held.append(astuple(compute_set_coverage(sets, state.truth[~first]))[1:])
    return {rule: _mean(np.array(held)) for rule, held in found.items()}


def _mean(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Promise:
    """The mean of (halvings, 4) coverage, size, empty and single."""
    covered, size, empty, single = rows.mean(axis=0).tolist()
    low, high = np.percentile(rows[:, 0], [2.5, 97.5]).tolist()
    return Promise(covered, low, high, size, empty, single)
