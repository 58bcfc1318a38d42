"""The pedestrian metrics as functions of how often each pedestrian occurs: a resample is a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from roadaware.arrays import Floats, Ints, Ints32
from roadaware.metrics.pedestrian_config import PedestrianConfig, Task
from roadaware.metrics.per_pedestrian import Pedestrians
from roadaware.metrics.scores import SampleScores, decisions
from roadaware.statistics import rates
from roadaware.statistics.intervals import Units
from roadaware.statistics.ranking import Ranking

RATES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
DELTAS = ("confidence_delta_max", "confidence_delta_mean")
METRIC_NAMES = (
    *RATES,
    "average_precision",
    "auc",
    "auc_thresholded",
    *(f"{prefix}_{rate}" for prefix in ("weighted", "soft", "hard") for rate in RATES),
    *DELTAS,
)
UNITS = ("pedestrian", "video")


def lower_is_better(metric: str) -> bool:
    """Whether smaller values of the metric are the better ones.

    >>> lower_is_better("confidence_delta_max"), lower_is_better("soft_f1")
    (True, False)
    """
    return metric in DELTAS


def risk_ranks(n_regions: int) -> Ints:
    """(n_regions,) rank of each image region from the centre, which has rank 0.

    With an even number two regions share each rank; with an odd number the middle one is alone.

    Source: Rasouli and Kotseruba, IV 2024, section III.D.2.

    >>> risk_ranks(6), risk_ranks(5)
    (array([2, 1, 0, 0, 1, 2]), array([2, 1, 0, 1, 2]))
    """
    regions = np.arange(n_regions)
    return np.abs(2 * regions - (n_regions - 1)) // 2


def risk_weights(n_regions: int, sigma: float) -> Floats:
    """(n_regions,) weight of each region: exp(-1/2 (rank / ceil(n / 2) / sigma)^2), 1 at the centre.

    Source: Rasouli and Kotseruba, IV 2024, section III.D.2.

    >>> risk_weights(4, 0.5).round(3)
    array([0.607, 1.   , 1.   , 0.607])
    """
    relative = risk_ranks(n_regions) / -(-n_regions // 2)
    weights: Floats = np.exp(-0.5 * (relative / sigma) ** 2)
    return weights


def tte_weights(tte_frames: Ints, max_tte_frames: float, sigma: float) -> Floats:
    """(n,) weight of each sample: exp(-1/2 (d / sigma)^2), d = (max - tte) / max; early warnings count most.

    Args:
        tte_frames: (n,) frames to the event.
        max_tte_frames: the largest time to event, above 0.
        sigma: width of the weight.

    Source: Rasouli and Kotseruba, IV 2024, section III.D.1.

    >>> tte_weights(np.array([90, 63]), 90, 0.3).round(3)
    array([1.   , 0.607])
    """
    weights: Floats = np.exp(-0.5 * ((max_tte_frames - tte_frames) / max_tte_frames / sigma) ** 2)
    return weights


def sample_weights(
    state: SampleScores, config: PedestrianConfig, max_tte_frames: float | None
) -> Floats | None:
    """(n,) weight of each sample for the task, None where it has none.

    Args:
        state: the samples.
        config: task and widths.
        max_tte_frames: the largest time to event, None where not known.

    Source: Rasouli and Kotseruba, IV 2024, section III.D.
    """
    if config.task == "risk":
        return risk_weights(state.n_classes, config.risk_sigma)[state.truth]
    times = state.tte_frames if config.task == "action" else None
    if times is not None and max_tte_frames is not None and max_tte_frames > 0:
        return tte_weights(times, max_tte_frames, config.tte_sigma)
    return None


@dataclass(frozen=True)
class PedestrianCore:
    """Sums and sorts made once for a set of samples; `values` gives every metric of any resample.

    Args:
        config: how scores are judged.
        state: the samples, in the order of extraction.
        people: the pedestrians.
        weights: (n,) weight of each sample, or None.
        counts: prefix to (p, k, k) confusion counts of each pedestrian.
        rankings: name to the sorted scores of one class against the others.
    """

    config: PedestrianConfig
    state: SampleScores
    people: Pedestrians
    weights: Floats | None
    counts: dict[str, Floats]
    rankings: dict[str, Ranking]

    @classmethod
    def of(
        cls, state: SampleScores, config: PedestrianConfig, max_tte_frames: float | None = None
    ) -> PedestrianCore:
        """Count and sort once.

        Args:
            state: samples in the order of extraction.
            config: how scores are judged.
            max_tte_frames: the largest time to event; that of these samples where not given.
        """
        if max_tte_frames is None and state.tte_frames is not None and len(state):
            max_tte_frames = float(state.tte_frames.max())
        people = Pedestrians.of(state, config)
        weights = sample_weights(state, config, max_tte_frames)
        size, n_people = state.n_classes, len(people.name)
        decided, each = decisions(state.scores), np.arange(n_people)
        count = partial(
            rates.confusion, state.truth, decided, size, cluster=people.of_sample, n_clusters=n_people
        )
        counts = {"": count()}
        if weights is not None:
            counts["weighted_"] = count(weight=weights)
        for prefix, decision in (("soft_", people.soft), ("hard_", people.hard)):
            counts[prefix] = rates.confusion(people.truth, decision, size, cluster=each, n_clusters=n_people)
        return cls(config, state, people, weights, counts, dict(_rankings(state, config.task)))

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, in order; weighted ones only where the task has weights."""
        main = [m for m in METRIC_NAMES if self.config.task != "intention" or not m.startswith("weighted_")]
        return (*main, *(name for name in self.rankings if name != "average_precision"))

    def values(self, multiplicity: Ints32) -> dict[str, Floats]:
        """Every metric of every resample, NaN where undefined.

        Args:
            multiplicity: (draws, p) how often each pedestrian occurs in each resample.

        Returns:
            (draws,) per metric.
        """
        found = self._rates(multiplicity) | self._areas(multiplicity) | self._deltas(multiplicity)
        nothing = np.full(len(multiplicity), np.nan)
        return {name: found.get(name, nothing) for name in self.names}

    def once(self) -> Ints32:
        """(1, p) the multiplicities of the set itself."""
        return np.ones((1, len(self.people.name)), dtype=np.int32)

    def units(self, unit: str, draws: int, seed: int) -> Units | None:
        """The units of the pedestrians; None below two, and where they are not known.

        Args:
            unit: `pedestrian`, or `video` (all its pedestrians come and go together).
            draws: most weightings.
            seed: equal seeds and pedestrians give equal weightings.
        """
        names = self.people.name if unit == "pedestrian" else self.people.video
        return None if names is None else Units.of(names, draws, seed)

    def drawn(self, unit: str, draws: int, seed: int) -> dict[str, Floats] | None:
        """(draws,) every metric under the weightings of `units`; None where there are none."""
        units = self.units(unit, draws, seed)
        if units is None:
            return None
        parts = [self.values(multiplicity) for multiplicity in units.weights()]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.names}

    def _rates(self, multiplicity: Ints32) -> dict[str, Floats]:
        average: rates.Average = "binary" if self.state.scores.shape[1] == 1 else "macro"
        zero = self.config.zero_division
        times, found = multiplicity.astype(np.float64), {}
        for prefix, counts in self.counts.items():
            size = counts.shape[1]
            sums = (times @ counts.reshape(-1, size * size)).reshape(-1, size, size)
            found[f"{prefix}accuracy"] = rates.accuracy(sums)
            found[f"{prefix}balanced_accuracy"] = rates.balanced_accuracy(sums, zero_division=zero)
            found[f"{prefix}precision"] = rates.precision(sums, average, zero_division=zero)
            found[f"{prefix}recall"] = rates.recall(sums, average, zero_division=zero)
            found[f"{prefix}f1"] = rates.f1(sums, average, zero_division=zero)
            if prefix == "" and average == "binary":
                found["auc_thresholded"] = rates.balanced_accuracy(sums, zero_division=None)
        return found

    def _areas(self, multiplicity: Ints32) -> dict[str, Floats]:
        areas = {
            name: ranking.areas(multiplicity, self.people.of_sample)
            for name, ranking in self.rankings.items()
        }
        found = {name: ap for name, (ap, _) in areas.items()}
        classes = [both for name, both in areas.items() if not name.startswith("average_precision_risk")]
        found["average_precision"] = np.mean([ap for ap, _ in classes], axis=0)
        if not (self.config.auc_needs_normalised_rows and self.unnormalised_rows()):
            found["auc"] = np.mean([auc for _, auc in classes], axis=0)
        return found

    def _deltas(self, multiplicity: Ints32) -> dict[str, Floats]:
        counted = self.people.has_delta.astype(np.float64)
        times = multiplicity.astype(np.float64)
        total = times @ counted
        undefined = np.full(len(times), np.nan)
        return {
            name: np.divide(times @ (delta * counted), total, out=undefined.copy(), where=total > 0)
            for name, delta in zip(DELTAS, (self.people.delta_max, self.people.delta_mean), strict=True)
        }

    def unnormalised_rows(self) -> int:
        """How many rows of several scores do not sum to 1, within 1e-5."""
        if self.state.scores.shape[1] == 1:
            return 0
        return int((~np.isclose(1.0, self.state.scores.sum(axis=1))).sum())


def _rankings(state: SampleScores, task: Task) -> Iterator[tuple[str, Ranking]]:
    """One ranking for a single probability; else one per class, and one per folded class of risk."""
    if state.scores.shape[1] == 1:
        yield "average_precision", Ranking.of(state.truth == 1, state.scores[:, 0])
        return
    word = "region" if task == "risk" else "class"
    for k in range(state.n_classes):
        yield f"average_precision_{word}_{k}", Ranking.of(state.truth == k, state.scores[:, k])
    if task == "risk":
        ranks = risk_ranks(state.n_classes)
        for rank in range(int(ranks.max()) + 1):
            score = state.scores[:, ranks == rank].sum(axis=1)
            yield f"average_precision_risk_{rank}", Ranking.of(ranks[state.truth] == rank, score)
