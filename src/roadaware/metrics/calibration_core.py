"""Calibration as a function of how often each pedestrian occurs: sort once, then bin every resample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints, Ints32
from roadaware.metrics.calibration_config import CalibrationConfig
from roadaware.metrics.pedestrian_core import UNITS
from roadaware.metrics.scores import SampleScores, Texts, confidences
from roadaware.statistics.adaptive_bins import NoBinningError
from roadaware.statistics.calibration import Reliability, UniformBins, of_sorted, reliability
from roadaware.statistics.intervals import Scale, Units

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
"""What kind of number each metric is, for its interval."""
_NO_ENDS = (None, None, None)


@dataclass(frozen=True, eq=False)
class CalibrationCore:
    """What is computed once for a set of samples.

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
        confidence, correct = confidences(state)
        order = np.argsort(-confidence, kind="stable")
        names, first, person = np.unique(state.pedestrian, return_index=True, return_inverse=True)
        unit = {"pedestrian": names}
        if state.video is not None:
            unit["video"] = state.video[first]
        true, brier = _true_probability_and_brier(state)
        nll = -np.log(np.maximum(true, config.least_probability))
        columns = (np.ones(len(state)), nll, brier, correct.astype(np.float64), confidence)
        summed = [np.bincount(person, column, len(names)).astype(np.float64) for column in columns]
        sums = np.stack(summed, axis=1)
        descending, right = confidence[order], correct[order].astype(np.float64)
        found, reason = None, "no samples"
        if len(state):
            try:
                found = of_sorted(descending, right, config)
            except NoBinningError as error:
                reason = str(error)
        impossible = int((true < config.least_probability).sum())
        return cls(config, state, unit, person, order, descending, right, sums, found, reason, impossible)

    @property
    def unclosed(self) -> bool:
        """Whether the bins, as published, have come to nothing."""
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

    def units(self, unit: str, draws: int, seed: int) -> Units | None:
        """The units of the pedestrians; None below two, and where they are not known.

        Args:
            unit: `pedestrian`, or `video` (all its pedestrians come and go together).
            draws: most weightings.
            seed: equal seeds and pedestrians give equal weightings.
        """
        return Units.of(self.unit[unit], draws, seed) if unit in self.unit else None

    def drawn(self, unit: str, draws: int, seed: int) -> dict[str, Floats] | None:
        """(draws,) every metric under the weightings of `units`; None where there are none."""
        units = self.units(unit, draws, seed)
        if units is None:
            return None
        parts = [self._sums(times) | self._rebinned(times) for times in units.weights()]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def expected_if_calibrated(self, draws: int, seed: int) -> float:
        """The mean adaptive ECE if confidence were right: what few pedestrians alone make of it.

        Outcomes are drawn from the confidences, the samples of one pedestrian right or wrong together as
        far as their confidences allow, so that it rather says too much than too little.

        Args:
            draws: times the outcomes are drawn; NaN for none.
            seed: of the outcomes.
        """
        if not draws or self.adaptive is None or self.unclosed:
            return float("nan")
        generator = np.random.default_rng(seed)
        which, count = self._placed()
        person, total = self.person[self.order], 0.0
        for _ in range(draws):
            right = generator.random(len(self.sums))[person] < self.descending
            total += float(np.abs(np.bincount(which, right - self.descending, len(count))).sum())
        return total / draws / len(self.state)

    def bin_rows(self, binning: str, draws: int, seed: int) -> Iterator[tuple[Any, ...]]:
        """The bins by rising confidence: count, pedestrians, means, ends, and intervals of the accuracy.

        An interval is its low end, its high end and its caution, over pedestrians and then over videos.

        Args:
            binning: `adaptive` or `uniform`.
            draws: most weightings of pedestrians and of videos; 0 gives no intervals.
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
        ends = [self._accuracy_ends(unit, held, right, draws, seed) for unit in UNITS]
        for k, (n, *means) in enumerate(rows):
            yield (n, int((held[:, k] > 0).sum()), *means, *ends[0][k], *ends[1][k])

    def why_undefined(self, metric: str) -> str:
        """In words, why a metric of this set has no value."""
        if metric == "ece_if_calibrated" and self.adaptive is not None:
            return "the bins are not closed" if self.unclosed else "no draws were asked for"
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
                bins = of_sorted(np.repeat(self.descending, again), np.repeat(self.right, again), self.config)
            except NoBinningError:
                continue
            if bins.closed:
                errors[row] = bins.expected_error, bins.maximum_error
        return dict(zip(ADAPTIVE, errors.T, strict=True))

    def _accuracy_ends(
        self, unit: str, held: npt.NDArray[Any], right: npt.NDArray[Any], draws: int, seed: int
    ) -> list[tuple[float | None, float | None, str | None]]:
        """The interval of the accuracy in each bin, over units, and its caution."""
        units = self.units(unit, draws, seed) if draws else None
        if units is None:
            return [_NO_ENDS] * held.shape[1]
        parts = []
        for times in units.weights():
            n = times @ held.astype(np.float64)
            parts.append(np.divide(times @ right, n, out=np.full(n.shape, np.nan), where=n > 0))
        points = right.sum(axis=0) / held.sum(axis=0)
        columns = zip(points.tolist(), np.concatenate(parts).T, strict=True)
        return [(one.low, one.high, one.caution) for one in (units.interval(*each) for each in columns)]


def _true_probability_and_brier(state: SampleScores) -> tuple[Floats, Floats]:
    """(n,) the probability of the true class, and the squared error of each sample.

    One probability: (p - y)^2, in [0, 1]. Several: sum_k (p_k - [y = k])^2, in [0, 2].
    """
    each = np.arange(len(state))
    if state.scores.shape[1] == 1:
        p = state.scores[:, 0]
        return np.where(state.truth == 1, p, 1 - p), (p - state.truth) ** 2
    hot = np.zeros_like(state.scores)
    hot[each, state.truth] = 1.0
    return state.scores[each, state.truth], ((state.scores - hot) ** 2).sum(axis=1)
