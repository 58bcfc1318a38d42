"""From samples to pedestrians: soft and hard decisions, truth and confidence deltas of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.pedestrian_config import PedestrianConfig
from roadaware.metrics.scores import SampleScores, Texts, decisions


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
            config: how votes, truths and deltas are taken.

        Source: Rasouli and Kotseruba, IV 2024, section III.E.
        """
        name, of_sample = np.unique(state.pedestrian, return_inverse=True)
        rows = np.argsort(of_sample, kind="stable")
        person = of_sample[rows]
        n_samples = np.bincount(person, minlength=len(name))
        starts = np.cumsum(n_samples) - n_samples
        scores, votes = state.scores[rows], decisions(state.scores[rows])
        truth = instance_truth(state.truth[rows], person, starts, state.n_classes, config)
        agreed = agreement(votes, person, starts, config)
        mean_scores = means(scores, starts, n_samples)
        other = other_class(votes, scores, person, truth, state.n_classes, config)
        delta_max, delta_mean = confidence_deltas(scores, person, len(name), config)
        return cls(
            name=name,
            video=None if state.video is None else state.video[rows][starts],
            of_sample=of_sample.astype(np.int64),
            n_samples=n_samples,
            truth=truth,
            soft=decisions(mean_scores),
            hard=np.where(agreed, votes[starts], other),
            agreed=agreed,
            delta_max=delta_max,
            delta_mean=delta_mean,
            has_delta=(n_samples > 1) | (config.single_sample_delta == "zero"),
        )


def means(scores: Floats, starts: Ints, n_samples: Ints) -> Floats:
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


def instance_truth(truth: Ints, person: Ints, starts: Ints, n_classes: int, config: PedestrianConfig) -> Ints:
    """(p,) the class of each pedestrian.

    Args:
        truth: (n,) class of each sample, pedestrian by pedestrian, in order of extraction.
        person: (n,) pedestrian of each sample, rising.
        starts: (p,) first sample of each pedestrian.
        n_classes: number of classes.
        config: `instance_truth` decides.
    """
    if config.instance_truth == "first":
        return truth[starts]
    counts, last = np.zeros((2, len(starts), n_classes), dtype=np.int64)
    np.add.at(counts, (person, truth), 1)
    np.maximum.at(last, (person, truth), np.arange(len(truth)))
    most = counts == counts.max(axis=1, initial=0, keepdims=True)
    latest: Ints = np.where(most, last, -1).argmax(axis=1)
    return latest


def agreement(votes: Ints, person: Ints, starts: Ints, config: PedestrianConfig) -> Bools:
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


def other_class(
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
