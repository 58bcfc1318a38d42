"""Predictors that have left their domain, alarmed and recalibrated; what continual learning forgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints

_NEAREST = 1e-6
"""Probabilities are kept this far from 0 and 1 before they become log odds."""


def _check_probability(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"a probability should lie in [0, 1], not be {value}")
    return float(value)


# Recalibration.


@dataclass(frozen=True)
class OnlinePlatt:
    """Log odds that are scaled and moved, learnt again and again from outcomes while old ones fade.

    Calibrated log odds are slope * log odds + bias. A step is one of Newton's on the likelihood of the outcome; precision
    fades by `keep` towards that of the prior, which holds the slope at 1 and the bias at 0 until outcomes say otherwise.

    Args:
        keep: what is left of older outcomes with each new one: .99 is a memory of about 100.
        prior_slope, prior_bias: standard deviations of the prior.
        slope, bias: now.
        precision: of slope, of both together, of bias.
        outcomes: seen.

    Raises:
        ValueError: if a number leaves its range.

    Source: Platt, Advances in Large Margin Classifiers 1999; forgetting: West, Harrison and Migon, JASA 1985.
    """

    keep: float = 0.99
    prior_slope: float = 0.3
    prior_bias: float = 2.0
    slope: float = 1.0
    bias: float = 0.0
    precision: tuple[float, float, float] = (0.0, 0.0, 0.0)
    outcomes: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.keep <= 1 and self.prior_slope > 0 and self.prior_bias > 0):
            raise ValueError(f"keep should lie in (0, 1] and deviations of the prior be above 0; got {self}")
        if self.precision == (0.0, 0.0, 0.0):
            object.__setattr__(self, "precision", (self.prior_slope**-2, 0.0, self.prior_bias**-2))

    def predict(self, probability: float) -> float:
        """The calibrated probability.

        >>> OnlinePlatt().predict(0.3)
        0.3
        """
        value = _check_probability(probability)
        if self.slope == 1.0 and self.bias == 0.0:
            return value
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, self.slope * _log_odds(value) + self.bias))))

    def update(self, probability: float, truth: int) -> OnlinePlatt:
        """The state after an outcome.

        Args:
            probability: that the predictor gave, not yet calibrated.
            truth: 1 where it happened, 0 where not.
        """
        if truth not in (0, 1):
            raise ValueError(f"an outcome is 0 or 1, not {truth}")
        z, said = _log_odds(_check_probability(probability)), self.predict(probability)
        hold = (self.prior_slope**-2, self.prior_bias**-2)
        fade = 1 - self.keep
        curve = max(said * (1 - said), 1e-4)
        a = self.keep * self.precision[0] + fade * hold[0] + curve * z * z
        b = self.keep * self.precision[1] + curve * z
        c = self.keep * self.precision[2] + fade * hold[1] + curve
        miss = truth - said
        first = miss * z + fade * hold[0] * (1 - self.slope)
        second = miss - fade * hold[1] * self.bias
        area = a * c - b * b
        slope = self.slope + (c * first - b * second) / area
        bias = self.bias + (a * second - b * first) / area
        # A slope below 0 would say that the predictor is wrong whenever it is sure: few outcomes show as much.
        return replace(
            self, slope=max(0.0, min(5.0, slope)), bias=max(-10.0, min(10.0, bias)), precision=(a, b, c),
            outcomes=self.outcomes + 1,
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The state that `as_dict` wrote.

        Raises:
            ValueError: if it is none.
        """
        return cls(**{**_read(cls, data), "precision": tuple(data["precision"])})


def _log_odds(value: float) -> float:
    value = min(max(value, _NEAREST), 1 - _NEAREST)
    return math.log(value / (1 - value))


def _read(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    wanted = set(kind.__dataclass_fields__)
    if set(data) != wanted:
        raise ValueError(
            f"a state of {kind.__name__} has {', '.join(sorted(wanted))}; got {', '.join(sorted(data))}"
        )
    return dict(data)


# Sets.


@dataclass(frozen=True)
class AdaptiveConformal:
    """Sets of labels 0 and 1 that miss the truth as often as promised in the long run, whatever comes.

    A label is in the set where 1 - its probability does not exceed the quantile 1 - level of scores that were held out
    in-domain. After each outcome the level goes up by rate * alpha, and down by rate where the set missed. Over T
    outcomes the share of misses is within (max(alpha, 1 - alpha) + rate) / (rate T) of alpha for any sequence; outcomes
    that arrive after D further predictions add rate * D to the distance at most.

    Args:
        scores: of true labels in-domain, sorted, such as 101 quantiles of them.
        alpha: share of sets that may miss.
        rate: of learning; the larger, the faster and the more restless.
        level: now (default: alpha).
        outcomes, misses: so far.

    Raises:
        ValueError: if a number leaves its range, or scores are not sorted.

    Source: Gibbs and Candès, NeurIPS 2021.
    """

    scores: tuple[float, ...]
    alpha: float = 0.1
    rate: float = 0.05
    level: float | None = None
    outcomes: int = 0
    misses: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.alpha < 1 and self.rate >= 0):
            raise ValueError(
                f"alpha should lie in (0, 1) and rate be 0 or more; got {self.alpha} and {self.rate}"
            )
        if len(self.scores) < 2 or not all(
            a <= b for a, b in zip(self.scores, self.scores[1:], strict=False)
        ):
            raise ValueError("scores should be two or more, in rising order")
        if self.level is None:
            object.__setattr__(self, "level", self.alpha)

    @classmethod
    def calibrate(
        cls,
        probability: npt.ArrayLike,
        truth: npt.ArrayLike,
        alpha: float = 0.1,
        rate: float = 0.05,
        *,
        kept: int = 201,
    ) -> Self:
        """A state that begins with the sets of split conformal prediction on held-out samples.

        Args:
            probability: (n,) of label 1.
            truth: (n,) labels.
            alpha, rate: see above.
            kept: quantiles that are kept of the scores.

        Raises:
            ValueError: if there are no samples, shapes differ, or a number leaves its range.
        """
        said, labels = np.asarray(probability, dtype=np.float64), np.asarray(truth)
        if said.shape != labels.shape or said.ndim != 1 or not len(said):
            raise ValueError(f"probability {said.shape} and truth {labels.shape} should be (n,), n > 0")
        # NaN is in no range: sets by it would hold no label, without a word.
        if not ((said >= 0) & (said <= 1)).all() or not np.isin(labels, (0, 1)).all():
            raise ValueError("every probability should lie in [0, 1], and every label be 0 or 1")
        own = np.where(labels == 1, 1 - said, said)
        # An order statistic each, so that a quantile is a score that was seen, or one above it.
        held = np.quantile(own, np.linspace(0, 1, kept), method="higher")
        return cls(tuple(held.tolist()), alpha, rate)

    @property
    def threshold(self) -> float:
        """The largest score that is let in: all where the level is 0 or less, none where it is 1 or more."""
        level = self.alpha if self.level is None else self.level
        if level <= 0:
            return math.inf
        if level >= 1:
            return -math.inf
        return self.scores[min(len(self.scores) - 1, math.ceil((1 - level) * (len(self.scores) - 1) - 1e-9))]

    def predict(self, probability: float) -> tuple[bool, bool]:
        """Whether the labels 0 and 1 are in the set.

        >>> AdaptiveConformal((0.0, 0.2, 0.4), alpha=0.5).predict(0.1)
        (True, False)
        """
        value, top = _check_probability(probability), self.threshold
        return value <= top, 1 - value <= top

    def update(self, covered: bool) -> AdaptiveConformal:
        """The state after the outcome of a set that was given, then or earlier.

        Args:
            covered: whether it held the truth.
        """
        level = self.alpha if self.level is None else self.level
        moved = level + self.rate * (self.alpha - (not covered))
        return replace(self, level=moved, outcomes=self.outcomes + 1, misses=self.misses + (not covered))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The state that `as_dict` wrote.

        Raises:
            ValueError: if it is none.
        """
        return cls(**{**_read(cls, data), "scores": tuple(data["scores"])})


# Shift without labels.


@dataclass(frozen=True)
class ShiftAlarm:
    """An alarm that what a predictor sees is not what it was fitted on, without any label or prediction.

    Each video is some numbers, such as means over its people. After 5, 10, 20, 40 and 80 videos of a stream those seen so far
    are compared with those held: how far from the middle is the mean rank of the stream's videos among all, in the number
    in which it is furthest, and in what share of random exchanges of videos is it as far? The alarm is raised once that share
    is at most `chance` over the number of comparisons; were videos exchangeable, it would ever be raised with at most the
    probability `chance`. Behind the last comparison nothing is heard any more.

    Args:
        held: (videos, numbers) of what it was fitted on, one video at least.
        chance: of a false alarm, ever.
        looks: after how many videos they are compared, rising.
        exchanges: random ones for each comparison.
        seen: (videos, numbers) of the stream so far.
        raised_at: after how many videos the alarm was raised; None where it was not.
        number: which number was the furthest then.
        seed: of the exchanges.

    Raises:
        ValueError: if there is no video, shapes do not go together, a number is not finite, or so few exchanges could never
            raise the alarm.

    Source: Westfall and Young, Resampling-based multiple testing, 1993 (maxT).
    """

    held: tuple[tuple[float, ...], ...]
    chance: float = 0.05
    looks: tuple[int, ...] = (5, 10, 20, 40, 80)
    exchanges: int = 999
    seen: tuple[tuple[float, ...], ...] = ()
    raised_at: int | None = None
    number: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        table = np.array(self.held, dtype=np.float64) if len({*map(len, self.held)}) == 1 else None
        if table is None or not table.size or not np.isfinite(table).all():
            raise ValueError("an alarm holds a video at least, each of as many finite numbers")
        if not (
            0 < self.chance < 1
            and self.looks
            and list(self.looks) == sorted({*self.looks})
            and self.looks[0] > 0
        ):
            raise ValueError(
                f"chance should lie in (0, 1) and looks be rising counts; got {self.chance} and {self.looks}"
            )
        if 1 / (1 + self.exchanges) > self.chance / len(self.looks):
            raise ValueError(
                f"{self.exchanges} exchanges cannot show a chance of {self.chance} in {len(self.looks)} comparisons"
            )

    @property
    def is_raised(self) -> bool:
        """Whether a comparison has ever raised it."""
        return self.raised_at is not None

    def update(self, numbers: Sequence[float]) -> ShiftAlarm:
        """The state after one more video.

        Args:
            numbers: as many as those of a video held.

        Raises:
            ValueError: if there are more or fewer, or one is not finite.
        """
        if len(numbers) != len(self.held[0]) or not all(map(math.isfinite, numbers)):
            raise ValueError(f"a video has {len(self.held[0])} finite numbers; got {list(numbers)}")
        if self.is_raised or len(self.seen) >= self.looks[-1]:
            return self
        moved = replace(self, seen=(*self.seen, tuple(map(float, numbers))))
        if len(moved.seen) not in self.looks:
            return moved
        p, number = moved.compare()
        return (
            replace(moved, raised_at=len(moved.seen), number=number)
            if p <= self.chance / len(self.looks)
            else moved
        )

    def compare(self) -> tuple[float, int]:
        """The share of exchanges that are as far from the middle as the stream so far, and the number that is furthest."""
        table = np.asarray([*self.held, *self.seen], dtype=np.float64)
        ranks = np.empty_like(table)
        for column, values in enumerate(table.T):
            ordered = np.sort(values)
            # Equal values share a rank: whoever comes first would else be the smaller.
            low, high = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
            ranks[:, column] = low + high
        ranks -= ranks.mean(axis=0)
        ranks /= np.maximum(ranks.std(axis=0), 1e-12)
        count = len(self.seen)
        found = np.abs(ranks[-count:].mean(axis=0))
        rng = np.random.default_rng([self.seed, count])
        as_far = sum(
            np.abs(ranks[rng.permutation(len(ranks))[:count]].mean(axis=0)).max() >= found.max() - 1e-12
            for _ in range(self.exchanges)
        )
        return float((1 + as_far) / (1 + self.exchanges)), int(found.argmax())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The state that `as_dict` wrote.

        Raises:
            ValueError: if it is none.
        """
        held = _read(cls, data)
        for name in ("held", "seen"):
            held[name] = tuple(tuple(each) for each in data[name])
        return cls(**{**held, "looks": tuple(data["looks"])})


# All of it on a stream.


@dataclass(frozen=True)
class Calibrated:
    """What is said of somebody.

    Args:
        probability: calibrated.
        labels: whether 0 and 1 are in the set.
    """

    probability: float
    labels: tuple[bool, bool]


@dataclass
class AdaptivePredictor:
    """Probabilities and sets of a stream, calibrated by outcomes that arrive later.

    Predictions wait for their outcome under a key; at most `most` of them, of which the oldest is given up for a new one.

    Args:
        platt: state of the calibration.
        sets: state of the sets.
        most: predictions that wait.
        waiting: key to the probability that was given and the set.
        given_up: predictions whose outcome never came in time.

    >>> from roadaware.statistics.adaptation import AdaptiveConformal, AdaptivePredictor, OnlinePlatt
    >>> stream = AdaptivePredictor(OnlinePlatt(), AdaptiveConformal((0.0, 0.5, 1.0)))
    >>> _ = stream.predict("anna", 0.9)
    >>> stream.observe("anna", 0)
    >>> stream.predict("ben", 0.9).probability < 0.9
    True
    """

    platt: OnlinePlatt
    sets: AdaptiveConformal
    most: int = 4096
    waiting: dict[str, tuple[float, tuple[bool, bool]]] = field(default_factory=dict)
    given_up: int = 0

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most should be 1 or more, not {self.most}")

    @classmethod
    def calibrate(
        cls,
        probability: npt.ArrayLike,
        truth: npt.ArrayLike,
        *,
        alpha: float = 0.1,
        rate: float = 0.05,
        keep: float = 0.985,
        most: int = 4096,
    ) -> Self:
        """The states at the beginning, from samples that the predictor did not learn from.

        Args:
            probability: (n,) of label 1, as the predictor gives it.
            truth: (n,) labels.
            alpha: share of sets that may miss the truth.
            rate: at which sets learn from outcomes.
            keep: what is left of older outcomes in the calibration with each new one.
            most: predictions that wait for their outcome.

        Raises:
            ValueError: if there are no samples, shapes differ, or a number leaves its range.
        """
        return cls(OnlinePlatt(keep), AdaptiveConformal.calibrate(probability, truth, alpha, rate), most)

    def predict(self, key: str, probability: float) -> Calibrated:
        """What is said now; the outcome of `key` is waited for.

        Args:
            key: of the prediction; the same again replaces it.
            probability: of label 1, as the predictor gives it.

        Raises:
            ValueError: if it is no probability.
        """
        # Keys of JSON, which `as_dict` may become, are text.
        key, probability = str(key), float(probability)
        said = self.platt.predict(probability)
        labels = self.sets.predict(said)
        self.waiting.pop(key, None)
        if len(self.waiting) >= self.most:
            del self.waiting[next(iter(self.waiting))]
            self.given_up += 1
        self.waiting[key] = (probability, labels)
        return Calibrated(said, labels)

    def observe(self, key: str, truth: int) -> None:
        """Learn from an outcome; one that nobody waits for is passed over.

        Args:
            key: of the prediction.
            truth: 1 or 0.

        Raises:
            ValueError: if it is neither; the prediction waits on.
        """
        if str(key) not in self.waiting:
            return
        probability, labels = self.waiting[str(key)]
        self.platt = self.platt.update(probability, truth)
        self.sets = self.sets.update(labels[int(truth)])
        del self.waiting[str(key)]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `from_dict`."""
        return {
            "platt": self.platt.as_dict(), "sets": self.sets.as_dict(), "most": self.most, "given_up": self.given_up,
            "waiting": {key: [value, list(labels)] for key, (value, labels) in self.waiting.items()},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The state that `as_dict` wrote.

        Raises:
            ValueError: if it is none.
        """
        held = _read(cls, data)
        waiting = {
            str(key): (float(value), (bool(labels[0]), bool(labels[1])))
            for key, (value, labels) in held["waiting"].items()
        }
        platt, sets = OnlinePlatt.from_dict(held["platt"]), AdaptiveConformal.from_dict(held["sets"])
        return cls(platt, sets, held["most"], waiting, held["given_up"])


def choose_slots(seen: npt.ArrayLike, capacity: int, rng: np.random.Generator) -> Ints:
    """(n,) the slot that each new item takes, in place of what is there; -1 where it is let go.

    With every item of a stream given once, each of the first t has been in the reservoir with probability
    min(1, capacity / t) after t of them, and every set of that size is as likely.

    Args:
        seen: (n,) how many items of its stream came before each item; several streams have a reservoir each.
        capacity: slots of a reservoir, 1 or more.
        rng: where chance comes from; one number is drawn for each item, whether it is needed or not.

    Raises:
        ValueError: if there is no slot, or a count is negative.

    Source: Vitter, ACM Transactions on Mathematical Software 1985 (algorithm R, there of Waterman).

    >>> choose_slots([0, 1, 2], 3, np.random.default_rng(0))
    array([0, 1, 2])
    """
    before = np.asarray(seen, np.int64)
    if capacity < 1:
        raise ValueError(f"a reservoir has 1 slot or more, not {capacity}")
    if (before < 0).any():
        raise ValueError("counts of items that came before are 0 or more")
    drawn = rng.integers(0, before + 1)
    return np.where(before < capacity, before, np.where(drawn < capacity, drawn, -1)).astype(np.int64)


def average_accuracy(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean accuracy on all experiences after the last one.

    Args:
        accuracy: (..., T + 1, T) on the test set of each experience (column): row 0 before anything was learnt, row t
            after experience t.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (ACC).

    >>> float(average_accuracy([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]]))
    0.6
    """
    return np.asarray(_check(accuracy)[..., -1, :].mean(axis=-1))


def forgetting(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean fall of accuracy from its best after any earlier experience to after the last one; all but the last.

    Negative where learning on has helped. NaN of one experience alone.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Chaudhry et al., ECCV 2018 (forgetting measure).

    >>> round(float(forgetting([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    0.4
    """
    known = _check(accuracy)
    if known.shape[-1] < 2:
        return np.full(known.shape[:-2], np.nan)
    best = known[..., 1:-1, :-1].max(axis=-2)
    return np.asarray((best - known[..., -1, :-1]).mean(axis=-1))


def backward_transfer(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean change of accuracy from just after each experience to after the last one; all but the last.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (BWT).

    >>> round(float(backward_transfer([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    -0.4
    """
    known = _check(accuracy)
    count = known.shape[-1]
    if count < 2:
        return np.full(known.shape[:-2], np.nan)
    own = np.diagonal(known[..., 1:, :], axis1=-2, axis2=-1)
    return np.asarray((known[..., -1, :-1] - own[..., :-1]).mean(axis=-1))


def forward_transfer(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean gain of accuracy on each experience from those before it, over accuracy before anything; all but the first.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (FWT).

    >>> round(float(forward_transfer([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    0.1
    """
    known = _check(accuracy)
    count = known.shape[-1]
    if count < 2:
        return np.full(known.shape[:-2], np.nan)
    before = np.diagonal(known[..., :-1, :], axis1=-2, axis2=-1)
    return np.asarray((before[..., 1:] - known[..., 0, 1:]).mean(axis=-1))


def _check(accuracy: npt.ArrayLike) -> Floats:
    known = np.asarray(accuracy, np.float64)
    if known.ndim < 2 or known.shape[-1] < 1 or known.shape[-2] != known.shape[-1] + 1:
        raise ValueError(
            f"accuracy of T experiences is (..., T + 1, T), before the first and after each; got {known.shape}"
        )
    return known
