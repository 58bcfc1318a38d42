"""How good pedestrian scores are: base, weighted, soft, hard and ranking metrics, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.config import check_words, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import SUMMARY, MetricResult, build_interval_columns
from roadaware.metrics.scores import (
    SampleScores,
    Texts,
    clip_scores,
    compute_confidences,
    group_labels,
    predict_labels,
)
from roadaware.scenes.tables import Predictions, Scenes, sample_scores
from roadaware.statistics import classification
from roadaware.statistics.classification import Ranking
from roadaware.statistics.intervals import Scale, Units

# PedestrianConfig: which of the published evaluator's choices hold, each a named field.

Task = Literal["action", "intention", "risk"]


@dataclass(frozen=True)
class PedestrianConfig:
    """How pedestrian scores are judged; the defaults are what `default` gives.

    Args:
        task: `action` (one probability of crossing), `intention` or `risk` (one score per class).
        zero_division: value of a rate that is 0 / 0, with means over the classes that occur; None
            leaves it undefined, and with it the mean over all classes.
        hard_vote: a pedestrian's samples agree when all decide alike (`unanimous`), or when the mean of
            the decided indices equals the first (`mean`, so that 1, 0, 2 agree).
        hard_wrong: where they do not agree, the pedestrian counts as the class other than the ground truth
            with the most votes (`most_voted_other`), or as class 0, or 1 if the ground truth is 0
            (`first_other`).
        instance_truth: a pedestrian's class is the most frequent of its samples, the latest of equals
            (`mode`), or that of the first sample (`first`).
        single_sample_delta: a pedestrian with one sample has no confidence delta and is left out
            (`skip`), or has a delta of 0 (`zero`).
        delta_over_classes: the mean delta is a mean over classes too (`mean`), or half the sum over
            classes (`total_variation`, the same for one probability).
        auc_needs_normalised_rows: with several classes, AUC is undefined unless rows sum to 1.
        max_tte: the largest time to event is that of the whole set (`set`) or of each group (`subset`).
        tte_sigma: width of the weight over relative time to event.
        risk_sigma: width of the weight over relative distance from the image's centre.
    """

    task: Task = "action"
    zero_division: float | None = None
    hard_vote: Literal["unanimous", "mean"] = "unanimous"
    hard_wrong: Literal["most_voted_other", "first_other"] = "most_voted_other"
    instance_truth: Literal["mode", "first"] = "mode"
    single_sample_delta: Literal["skip", "zero"] = "skip"
    delta_over_classes: Literal["mean", "total_variation"] = "mean"
    auc_needs_normalised_rows: bool = False
    max_tte: Literal["set", "subset"] = "set"
    tte_sigma: float = 0.3
    risk_sigma: float = 0.5

    def __post_init__(self) -> None:
        check_words(self)
        if not (self.tte_sigma > 0 and self.risk_sigma > 0):
            raise UsageError("tte_sigma and risk_sigma should be positive")

    @classmethod
    def reference(cls, task: Task) -> PedestrianConfig:
        """The published evaluator's choices, except that what it marks -1 is undefined here too.

        Source: Rasouli and Kotseruba, IV 2024, sections III.C-E, and the evaluator released with it.
        """
        return cls(
            task=task,
            zero_division=0.0,
            hard_vote="mean",
            hard_wrong="first_other",
            instance_truth="first",
            single_sample_delta="zero",
            delta_over_classes="mean",
            auc_needs_normalised_rows=True,
            max_tte="subset",
        )

    @classmethod
    def default(cls, task: Task) -> PedestrianConfig:
        """The choices we recommend: what is undefined stays so, and agreement means agreement."""
        return cls(task=task)


# From samples to pedestrians: soft and hard decisions, ground truth and confidence deltas of each.


@dataclass(frozen=True)
class Pedestrians:
    """One entry per pedestrian, by name.

    Args:
        name: (p,) who, sorted.
        video: (p,) the video of each, or None.
        of_sample: (n,) pedestrian of each sample.
        n_samples: (p,) samples of each.
        truth: (p,) class of each.
        soft: (p,) decision of the mean scores.
        hard: (p,) decision of the samples' vote.
        agreed: (p,) whether the samples' decisions agree.
        delta_max: (p,) largest change of a score between consecutive samples, 0 for one sample.
        delta_mean: (p,) mean change, 0 for one sample.
        has_delta: (p,) whether the pedestrian counts in the means of the deltas.
    """

    name: Texts
    video: Texts | None
    of_sample: Ints
    n_samples: Ints
    truth: Ints
    soft: Ints
    hard: Ints
    agreed: Bools
    delta_max: Floats
    delta_mean: Floats
    has_delta: Bools

    @classmethod
    def of(cls, state: SampleScores, config: PedestrianConfig) -> Pedestrians:
        """Group samples by pedestrian.

        Args:
            state: samples in the order of extraction.
            config: how votes, ground-truth items and deltas are taken.

        Source: Rasouli and Kotseruba, IV 2024, section III.E.
        """
        name, of_sample = np.unique(state.pedestrian, return_inverse=True)
        rows = np.argsort(of_sample, kind="stable")
        person = of_sample[rows]
        n_samples = np.bincount(person, minlength=len(name))
        starts = np.cumsum(n_samples) - n_samples
        scores, votes = state.scores[rows], predict_labels(state.scores[rows])
        truth = assign_instance_labels(state.truth[rows], person, starts, state.n_classes, config)
        agreed = check_agreement(votes, person, starts, config)
        mean_scores = compute_mean_scores(scores, starts, n_samples)
        other = select_wrong_class(votes, scores, person, truth, state.n_classes, config)
        delta_max, delta_mean = confidence_deltas(scores, person, len(name), config)
        return cls(
            name=name,
            video=None if state.video is None else state.video[rows][starts],
            of_sample=of_sample.astype(np.int64),
            n_samples=n_samples,
            truth=truth,
            soft=predict_labels(mean_scores),
            hard=np.where(agreed, votes[starts], other),
            agreed=agreed,
            delta_max=delta_max,
            delta_mean=delta_mean,
            has_delta=(n_samples > 1) | (config.single_sample_delta == "zero"),
        )


def compute_mean_scores(scores: Floats, starts: Ints, n_samples: Ints) -> Floats:
    """(p, k) the mean score of each pedestrian, to the last bit that of `scores.mean(axis=0)`.

    Where the mean is one half, or equal for two classes, the last bit decides, and it depends on the order
    of addition; so pedestrians with equally many samples are averaged together by `mean` itself.

    Args:
        scores: (n, k) scores, pedestrian by pedestrian.
        starts: (p,) first sample of each pedestrian.
        n_samples: (p,) samples of each.

    Source: Rasouli and Kotseruba, IV 2024, section III.E.1.
    """
    result = np.zeros((len(starts), scores.shape[1]))
    for size in np.unique(n_samples):
        of_size = np.flatnonzero(n_samples == size)
        rows = starts[of_size, None] + np.arange(size)
        result[of_size] = scores[rows].mean(axis=1)
    return result


def assign_instance_labels(
    truth: Ints, person: Ints, starts: Ints, n_classes: int, config: PedestrianConfig
) -> Ints:
    """(p,) the class of each pedestrian.

    Args:
        truth: (n,) class of each sample, pedestrian by pedestrian, in order of extraction.
        person: (n,) pedestrian of each sample, rising.
        starts: (p,) first sample of each pedestrian.
        n_classes: number of classes.
        config: `assign_instance_labels` decides.
    """
    if config.instance_truth == "first":
        return truth[starts]
    counts, last = np.zeros((2, len(starts), n_classes), dtype=np.int64)
    np.add.at(counts, (person, truth), 1)
    np.maximum.at(last, (person, truth), np.arange(len(truth)))
    most = counts == counts.max(axis=1, initial=0, keepdims=True)
    latest: Ints = np.where(most, last, -1).argmax(axis=1)
    return latest


def check_agreement(votes: Ints, person: Ints, starts: Ints, config: PedestrianConfig) -> Bools:
    """(p,) whether the samples of each pedestrian decide alike, as `hard_vote` understands it.

    Args:
        votes: (n,) decision of each sample, pedestrian by pedestrian.
        person: (n,) pedestrian of each sample, rising.
        starts: (p,) first sample of each pedestrian.
        config: `hard_vote` decides.

    Source: Rasouli and Kotseruba, IV 2024, section III.E.2.
    """
    gap = votes - votes[starts][person]
    strays = gap if config.hard_vote == "mean" else np.abs(gap)
    agreed: Bools = np.bincount(person, strays, minlength=len(starts)) == 0
    return agreed


def select_wrong_class(
    votes: Ints, scores: Floats, person: Ints, truth: Ints, n_classes: int, config: PedestrianConfig
) -> Ints:
    """(p,) the wrong class that a pedestrian without agreement counts as.

    Args:
        votes: (n,) decision of each sample, pedestrian by pedestrian.
        scores: (n, k) their scores.
        person: (n,) pedestrian of each sample, rising.
        truth: (p,) class of each pedestrian.
        n_classes: number of classes.
        config: `hard_wrong` decides; of classes with equal votes the one with the larger sum of scores.

    Source: Rasouli and Kotseruba, IV 2024, section III.E.2; which of several classes, its code says.
    """
    if config.hard_wrong == "first_other" or n_classes == 2:
        return np.where(truth == 0, 1, 0)
    tally = np.zeros((len(truth), n_classes))
    np.add.at(tally, (person, votes), 1.0)
    sums = np.zeros((len(truth), n_classes))
    np.add.at(sums, person, scores)
    # The true class cannot be the wrong one.
    tally[np.arange(len(truth)), truth] = -1.0
    most = tally == tally.max(axis=1, initial=-1.0, keepdims=True)
    other: Ints = np.where(most, sums, -1.0).argmax(axis=1)
    return other


def confidence_deltas(
    scores: Floats, person: Ints, n_people: int, config: PedestrianConfig
) -> tuple[Floats, Floats]:
    """Largest and mean change of the scores between consecutive samples of each pedestrian.

    max = max over i and c of |s[i, c] - s[i + 1, c]|; mean = the mean over i, and over c as
    `delta_over_classes` says. In [0, 1], lower is steadier.

    Args:
        scores: (n, k) scores, pedestrian by pedestrian, in order of extraction.
        person: (n,) pedestrian of each sample, rising.
        n_people: p, number of pedestrians.
        config: `delta_over_classes` decides.

    Returns:
        (p,) largest and (p,) mean change, 0 for pedestrians with one sample.

    Source: Rasouli and Kotseruba, IV 2024, section III.E.3.
    """
    steps = np.abs(np.diff(scores, axis=0))
    inside = person[1:] == person[:-1]
    steps, owner = steps[inside], person[1:][inside]
    largest = np.zeros(n_people)
    np.maximum.at(largest, owner, steps.max(axis=1, initial=0.0))
    per_step = steps.mean(axis=1)
    if config.delta_over_classes == "total_variation" and scores.shape[1] > 1:
        per_step = steps.sum(axis=1) / 2
    total = np.bincount(owner, per_step, minlength=n_people)
    return largest, total / np.maximum(np.bincount(owner, minlength=n_people), 1)


# The pedestrian metrics as functions of how often each pedestrian occurs: a resample is a product.

RATES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
DELTAS = ("confidence_delta_max", "confidence_delta_mean")
PREFIXES = ("weighted", "soft", "hard")
METRIC_NAMES = (
    *RATES,
    "average_precision",
    "auc",
    "auc_thresholded",
    *(f"{prefix}_{rate}" for prefix in PREFIXES for rate in RATES),
    *DELTAS,
)
UNITS = ("pedestrian", "video")


def is_lower_better(metric: str) -> bool:
    """Whether smaller values of the metric are the better ones.

    >>> is_lower_better("confidence_delta_max"), is_lower_better("soft_f1")
    (True, False)
    """
    return metric in DELTAS


def rank_regions(n_regions: int) -> Ints:
    """(n_regions,) rank of each image region from the centre, which has rank 0.

    With an even number two regions share each rank; with an odd number the middle one is alone.

    Source: Rasouli and Kotseruba, IV 2024, section III.D.2.

    >>> rank_regions(6), rank_regions(5)
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
    relative = rank_regions(n_regions) / -(-n_regions // 2)
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
        decided, each = predict_labels(state.scores), np.arange(n_people)
        count = partial(
            classification.confusion_matrix,
            state.truth,
            decided,
            size,
            cluster=people.of_sample,
            n_clusters=n_people,
        )
        counts = {"": count()}
        if weights is not None:
            counts["weighted_"] = count(weight=weights)
        for prefix, decision in (("soft_", people.soft), ("hard_", people.hard)):
            counts[prefix] = classification.confusion_matrix(
                people.truth, decision, size, cluster=each, n_clusters=n_people
            )
        return cls(config, state, people, weights, counts, dict(_rankings(state, config.task)))

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, in order; weighted ones only where the task has weights."""
        main = [m for m in METRIC_NAMES if self.config.task != "intention" or not m.startswith("weighted_")]
        return (*main, *(name for name in self.rankings if name != "average_precision"))

    def values(self, multiplicity: Ints32) -> dict[str, Floats]:
        """Every metric of every resample, NaN where undefined.

        Args:
            multiplicity: (resamples, p) how often each pedestrian occurs in each resample.

        Returns:
            (resamples,) per metric.
        """
        found = self._rates(multiplicity) | self._areas(multiplicity) | self._deltas(multiplicity)
        nothing = np.full(len(multiplicity), np.nan)
        return {name: found.get(name, nothing) for name in self.names}

    def once(self) -> Ints32:
        """(1, p) the multiplicities of the set itself."""
        return np.ones((1, len(self.people.name)), dtype=np.int32)

    def units(self, unit: str, resamples: int, seed: int) -> Units | None:
        """The resampling unit of each pedestrian; None where there are fewer than two, or they are unknown.

        Args:
            unit: `pedestrian`, or `video` (all its pedestrians come and go together).
            resamples: most weightings.
            seed: equal seeds and pedestrians give equal weightings.
        """
        names = self.people.name if unit == "pedestrian" else self.people.video
        return None if names is None else Units.of(names, resamples, seed)

    def count_holding(self, metric: str, units: Units | None) -> int | None:
        """How many units have anything that a rate of two classes is made of; None where all do, or there is no such rate.

        Recall, F1 and average precision are made of those with positives, precision of those with some decided so,
        balanced accuracy and AUC of the rarer class.
        """
        if units is None or units.which is None or self.state.scores.shape[1] != 1:
            return None
        prefix = next((each for each in ("weighted_", "soft_", "hard_") if metric.startswith(each)), "")
        counts, what = self.counts.get(prefix, self.counts[""]), metric.removeprefix(prefix)
        held = [counts.sum(axis=2)[:, k] > 0 for k in (0, 1)]
        by_what = {
            **dict.fromkeys(("recall", "f1", "average_precision"), held[1:]),
            **dict.fromkeys(("balanced_accuracy", "auc", "auc_thresholded"), held),
            "precision": [counts.sum(axis=1)[:, 1] > 0],
        }
        found = [len(np.unique(units.which[has])) for has in by_what.get(what, [])]
        return min(found, default=None)

    def drawn(self, unit: str, resamples: int, seed: int) -> dict[str, Floats] | None:
        """(resamples,) every metric under the weightings of `units`; None where there are none."""
        units = self.units(unit, resamples, seed)
        if units is None:
            return None
        parts = [self.values(multiplicity) for multiplicity in units.weights()]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.names}

    def _rates(self, multiplicity: Ints32) -> dict[str, Floats]:
        average: classification.Average = "binary" if self.state.scores.shape[1] == 1 else "macro"
        zero = self.config.zero_division
        times, found = multiplicity.astype(np.float64), {}
        for prefix, counts in self.counts.items():
            size = counts.shape[1]
            sums = (times @ counts.reshape(-1, size * size)).reshape(-1, size, size)
            found[f"{prefix}accuracy"] = classification.accuracy(sums)
            found[f"{prefix}balanced_accuracy"] = classification.balanced_accuracy(sums, zero_division=zero)
            found[f"{prefix}precision"] = classification.precision(sums, average, zero_division=zero)
            found[f"{prefix}recall"] = classification.recall(sums, average, zero_division=zero)
            found[f"{prefix}f1"] = classification.f1(sums, average, zero_division=zero)
            if prefix == "" and average == "binary":
                # The ROC curve of decisions has one corner, and under it lies (TPR + TNR) / 2.
                found["auc_thresholded"] = classification.balanced_accuracy(sums, zero_division=None)
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
        # scikit-learn's own condition, with its tolerances.
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
        ranks = rank_regions(state.n_classes)
        for rank in range(int(ranks.max()) + 1):
            score = state.scores[:, ranks == rank].sum(axis=1)
            yield f"average_precision_risk_{rank}", Ranking.of(ranks[state.truth] == rank, score)


# What stands behind the pedestrian metrics: rows per pedestrian and sample, class counts, and reasons.


def build_pedestrian_rows(state: SampleScores, config: PedestrianConfig) -> pl.DataFrame:
    """One row per pedestrian, by name.

    Returns:
        `pedestrian`, `video`, `samples`, `truth`, `soft` and `hard` decision with `soft_correct` and
        `hard_correct`, `agreed` (whether its samples decide alike), `share_correct` of its samples,
        `confidence_delta_max` and `confidence_delta_mean` (null where it has none).
    """
    people = Pedestrians.of(state, config)
    right = predict_labels(state.scores) == state.truth
    share = np.bincount(people.of_sample, right, len(people.name)) / people.n_samples
    frame = pl.DataFrame(
        {
            "pedestrian": _text(people.name),
            "video": _text(people.video, len(people.name)),
            "samples": people.n_samples,
            "truth": people.truth,
            "soft": people.soft,
            "soft_correct": people.soft == people.truth,
            "hard": people.hard,
            "hard_correct": people.hard == people.truth,
            "agreed": people.agreed,
            "share_correct": share,
            "confidence_delta_max": people.delta_max,
            "confidence_delta_mean": people.delta_mean,
            "has_delta": people.has_delta,
        }
    )
    deltas = ["confidence_delta_max", "confidence_delta_mean"]
    return frame.with_columns(pl.when("has_delta").then(pl.col(name)).alias(name) for name in deltas).drop(
        "has_delta"
    )


def sample_rows(state: SampleScores, config: PedestrianConfig) -> pl.DataFrame:
    """One row per sample, in the order of extraction.

    Returns:
        `order`, `pedestrian`, `video`, `tte_frames`, `truth`, `decision`, `correct`, `confidence` (of the
        decision), `truth_score` (score of the true class) and `weight` (null where the task has none).
    """
    both = np.hstack([1 - state.scores, state.scores]) if state.scores.shape[1] == 1 else state.scores
    each = np.arange(len(state))
    confidence, correct = compute_confidences(state)
    longest = float(state.tte_frames.max()) if state.tte_frames is not None and len(state) else None
    weights = sample_weights(state, config, longest)
    return pl.DataFrame(
        {
            "order": state.places,
            "pedestrian": _text(state.pedestrian),
            "video": _text(state.video, len(state)),
            "tte_frames": _column(state.tte_frames, len(state), pl.Int64),
            "truth": state.truth,
            "decision": predict_labels(state.scores),
            "correct": correct,
            "confidence": confidence,
            "truth_score": both[each, state.truth],
            "weight": _column(weights, len(state), pl.Float64),
        }
    )


def count_classes(group: str | None, core: PedestrianCore) -> pl.DataFrame:
    """Samples and pedestrians of each true class in one group."""
    size = core.state.n_classes
    return pl.DataFrame(
        {
            "group": pl.Series([group] * size, dtype=pl.String),
            "class": np.arange(size),
            "samples": np.bincount(core.state.truth, minlength=size),
            "pedestrians": np.bincount(core.people.truth, minlength=size),
        }
    )


def describe_undefined(metric: str, core: PedestrianCore) -> str:
    """In words, why a metric of this set has no value."""
    if not len(core.state):
        return "no samples"
    if metric.startswith("weighted_") and core.weights is None:
        given = core.state.tte_frames is not None
        return "no time to event is above 0" if given else "no time to event is given"
    if metric.startswith("confidence_delta"):
        return "no pedestrian has two samples"
    if metric.startswith("average_precision_"):
        return f"no sample of {metric.removeprefix('average_precision_').replace('_', ' ')}"
    if metric == "auc_thresholded" and core.state.scores.shape[1] > 1:
        return "defined for one probability per sample only"
    if metric == "auc" and core.config.auc_needs_normalised_rows and core.unnormalised_rows():
        return f"{core.unnormalised_rows()} rows of scores do not sum to 1"
    return _missing_class(metric, core)


def _missing_class(metric: str, core: PedestrianCore) -> str:
    """The classes whose absence from ground truth or decisions leaves the metric undefined."""
    prefix = metric.partition("_")[0] + "_"
    prefix = prefix if prefix in core.counts else ""
    counts = core.counts[prefix].sum(axis=0)
    true, decided = counts.sum(axis=1), counts.sum(axis=0)
    unit = "pedestrian" if prefix in ("soft_", "hard_") else "sample"
    rate = metric.removeprefix(prefix)
    if rate == "precision":
        return f"no {unit} is decided to be of class {_those(decided == 0)}"
    if rate == "f1":
        return f"class {_those((true == 0) & (decided == 0))} occurs in neither truth nor decisions"
    return f"no {unit} of class {_those(true == 0)} in the truth"


def _those(missing: npt.NDArray[np.bool_]) -> str:
    return ", ".join(str(k) for k in np.flatnonzero(missing))


def _text(values: Texts | None, n: int = 0) -> pl.Series:
    return pl.Series([None] * n if values is None else values.tolist(), dtype=pl.String)


def _column(values: npt.NDArray[Any] | None, n: int, dtype: type[pl.DataType]) -> pl.Series:
    return pl.Series([None] * n if values is None else values, dtype=dtype)


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: PedestrianConfig,
    *,
    split: str | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> MetricResult:
    """Judge predictions for the samples of scenes; see `evaluate_samples` for what is computed.

    Args:
        predictions: scores joined to the samples by `sample`; those of other splits are left aside.
        scenes: with `samples` of the config's task.
        config: how scores are judged.
        split: judge the samples of this split alone, such as `test` (default: all).
        resamples: most weightings of units for the intervals; 0 gives none.
        seed: of the weightings.

    Raises:
        InputError: if samples and predictions do not fit each other, or a sample has no label.
        UsageError: if there are no samples of the task.

    Source: Rasouli and Kotseruba, IV 2024, sections III.C to III.E, and the code released with it.
    """
    state, n_clipped = collect_sample_scores(predictions, scenes, config.task, split=split)
    return evaluate_samples(state, config, resamples=resamples, seed=seed, n_clipped=n_clipped)


def evaluate_samples(
    state: SampleScores,
    config: PedestrianConfig,
    *,
    resamples: int = 0,
    seed: int = 0,
    groups: npt.ArrayLike | None = None,
    n_clipped: int = 0,
) -> MetricResult:
    """Judge scores beside their ground truth, as a whole and by group.

    Intervals are over whole pedestrians and over whole videos; see `statistics.intervals`. With fewer than
    two units, or where a metric is undefined without one of them, none is given. The largest time to event,
    and with it every sample's weight, stays that of the evaluated set.

    Args:
        state: the samples, in any order.
        config: how scores are judged.
        resamples: most weightings of units for the intervals; 0 gives none.
        seed: of the weightings; equal seeds give equal intervals.
        groups: (n,) label of each sample's group, None where it is in none; each group is judged as a
            set of its own.
        n_clipped: how many scores had to be brought back into [0, 1] beforehand; it is noted.

    Raises:
        InputError: if the scores do not fit the task, or there is not one label per sample.
        UsageError: if `resamples` is negative.

    Source: Rasouli and Kotseruba, IV 2024, sections III.C to III.E, and the code released with it.

    >>> state = SampleScores(np.array([0.9, 0.8, 0.2, 0.4]), np.array([1, 1, 0, 1]), ["a", "a", "b", "c"])
    >>> result = evaluate_samples(state, PedestrianConfig.default("action"))
    >>> result.value("accuracy"), result.value("average_precision"), result.value("soft_recall")
    (0.75, 1.0, 0.5)
    >>> result.value("weighted_accuracy") is None, result.row("weighted_accuracy")["reason"]
    (True, 'no time to event is given')
    """
    if resamples < 0:
        raise UsageError(f"resamples should be 0 or more, not {resamples}")
    _check_task(state, config)
    order = np.argsort(state.places)
    whole = state.take(order)
    scopes: list[tuple[str | None, PedestrianCore]] = [(None, PedestrianCore.of(whole, config))]
    if groups is not None:
        scopes.extend(_groups(whole, group_labels(groups, len(state))[order], config))
    rows = [row for group, core in scopes for row in _summary(group, core, resamples, seed)]
    return MetricResult(
        summary=pl.DataFrame(rows, schema=SUMMARY),
        counts=pl.concat([count_classes(group, core) for group, core in scopes]),
        config=to_dict(config),
        notes=_clipping(n_clipped),
        makers={
            "pedestrian": partial(build_pedestrian_rows, whole, config),
            "sample": partial(sample_rows, whole, config),
        },
    )


def collect_sample_scores(
    predictions: Predictions, scenes: Scenes, task: Task, *, split: str | None = None
) -> tuple[SampleScores, int]:
    """Scores beside the ground truth of the scenes' samples, in the order of extraction, and how many were clipped.

    Args:
        predictions: scores joined to the samples by `sample`; those of other splits are left aside.
        scenes: with `samples` of the task.
        task: what the samples ask.
        split: the samples of this split alone (default: all).

    Raises:
        InputError: if samples and predictions do not fit each other, or a sample has no label.
        UsageError: if there are no samples of the task.
    """
    samples = scenes.samples
    if split is not None and "split" in samples.columns:
        samples = samples.filter(pl.col("split").cast(pl.String) == split)
    kinds = samples["kind"].cast(pl.String).unique().sort().to_list() if "kind" in samples.columns else []
    if kinds != [task]:
        place = f" in split '{split}'" if split else ""
        raise UsageError(f"the samples{place} should ask for {task}; they ask for {kinds or 'nothing'}")
    scores, n_clipped = clip_scores(sample_scores(predictions, scenes, samples))
    for column in ("label", "tube", "video"):
        if samples[column].null_count():
            lost = samples.filter(pl.col(column).is_null())["sample"].head(5).to_list()
            raise InputError(f"samples need a {column} to be judged; null in samples {lost}")
    tte = samples["tte_frames"] if "tte_frames" in samples.columns else None
    return SampleScores(
        scores,
        samples["label"].to_numpy(),
        np.array(_people(samples, scenes), dtype=np.str_),
        np.array(samples["video"].cast(pl.String).to_list(), dtype=np.str_),
        None if tte is None or tte.null_count() else tte.to_numpy(),
    ), n_clipped


def _clipping(n: int) -> tuple[str, ...]:
    if not n:
        return ()
    return (
        f"{n} score{'s' * (n > 1)} outside [0, 1] by no more than 1e-6 {'were' if n > 1 else 'was'} clipped",
    )


def build_core(state: SampleScores, config: PedestrianConfig) -> PedestrianCore:
    """The sums and sorts of a set of samples, for callers with their own resampling.

    Raises:
        InputError: if the scores do not fit the task.
    """
    _check_task(state, config)
    return PedestrianCore.of(state.take(np.argsort(state.places)), config)


def _people(samples: pl.DataFrame, scenes: Scenes) -> list[str]:
    """`video/name` of each sample's pedestrian; the tube's number where it has no name."""
    number = pl.col("tube").cast(pl.String)
    name = number
    if "name" in scenes.tubes.columns:
        samples = samples.join(
            scenes.tubes.select("tube", "name"), on="tube", how="left", maintain_order="left"
        )
        name = pl.coalesce(pl.col("name").cast(pl.String), number)
    return samples.select(pl.format("{}/{}", pl.col("video").cast(pl.String), name))[:, 0].to_list()


def _check_task(state: SampleScores, config: PedestrianConfig) -> None:
    columns = state.scores.shape[1]
    if (columns == 1) != (config.task == "action"):
        wanted = (
            "one score (the probability of crossing)" if config.task == "action" else "one score per class"
        )
        raise InputError(
            f"{config.task} needs {wanted} for each sample; got {columns}",
            hint="action has 1 column, intention 3, risk 12: is this the right file, and the right task?",
        )


def _groups(
    whole: SampleScores, labels: npt.NDArray[np.object_], config: PedestrianConfig
) -> Iterator[tuple[str, PedestrianCore]]:
    """Each group as a set of its own, by label."""
    longest = None
    if config.max_tte == "set" and whole.tte_frames is not None and len(whole):
        longest = float(whole.tte_frames.max())
    for label in sorted({str(label) for label in labels if label is not None}):
        rows = np.array([given is not None and str(given) == label for given in labels])
        yield label, PedestrianCore.of(whole.take(rows), config, longest)


def _summary(group: str | None, core: PedestrianCore, resamples: int, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of the summary of one group, in the columns of SUMMARY."""
    point = core.values(core.once())
    drawn = {unit: core.drawn(unit, resamples, seed) if resamples else None for unit in UNITS}
    units = {unit: core.units(unit, resamples, seed) for unit in UNITS}
    for metric in core.names:
        value = float(point[metric][0])
        why = describe_undefined(metric, core) if np.isnan(value) else None
        holding = {unit: core.count_holding(metric, of) for unit, of in units.items()}
        row = build_metric_row(metric, value, drawn, units, "share", holding)
        yield {"group": group, **row, "n": _size(metric, core), "reason": why}


def build_metric_row(
    metric: str,
    value: float,
    drawn: Mapping[str, dict[str, Floats] | None],
    units: Mapping[str, Units | None],
    scale: Scale,
    holding: Mapping[str, int | None] | None = None,
) -> dict[str, Any]:
    """A metric with its intervals over pedestrians and over videos, in columns of SUMMARY; none where it is undefined.

    Args:
        metric: its name.
        value: NaN where it is undefined.
        drawn: unit to the (resamples,) values of each metric.
        units: unit to what is drawn.
        scale: of the metric.
        holding: unit to how many of them the metric is made; all by default.
    """
    valid = not np.isnan(value)
    row = {"metric": metric, "value": value if valid else None, "valid": valid}
    for unit in UNITS:
        values, of = (drawn[unit] or {}).get(metric), units[unit]
        found = None
        if of is not None and values is not None and valid:
            found = of.interval(value, values, scale, holding=(holding or {}).get(unit))
        row |= build_interval_columns(found, unit)
    return row


def _size(metric: str, core: PedestrianCore) -> int:
    """What the metric is a mean of: samples, or pedestrians."""
    if metric.startswith("confidence_delta"):
        return int(core.people.has_delta.sum())
    return len(core.people.name) if metric.startswith(("soft_", "hard_")) else len(core.state)
