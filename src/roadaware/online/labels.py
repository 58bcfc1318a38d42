"""Labels that do not flicker: smoothed scores, and thresholds that depend on what was said before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.errors import UsageError
from roadaware.scenes.dense import Layout

Narrow = npt.NDArray[np.float32]
Told = dict[str, dict[str, float]]
"""Kind to label to score."""


@dataclass(frozen=True)
class LabelRule:
    """Which labels are told.

    Args:
        on: a label begins to be told at this smoothed score.
        off: and is no longer told below this one.
        margin: a label that is told gives way to a better one only if that is better by this much.
        most: labels told at once of a kind.
        single: kinds of which only one label is told at once.
        smooth_s: seconds in which an old score loses all but a third of its weight; 0 for no smoothing.
    """

    on: float = 0.3
    off: float = 0.2
    margin: float = 0.1
    most: int = 2
    single: tuple[str, ...] = ("agent", "duplex", "event", "av_action")
    smooth_s: float = 0.4

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range.
        """
        if not 0 <= self.off <= self.on <= 1 or not 0 <= self.margin <= 1:
            raise UsageError("label thresholds: 0 <= off <= on <= 1, and margin from 0 to 1")
        if self.most < 1 or not 0 <= self.smooth_s < math.inf:
            raise UsageError("at least one label is told of a kind, and smoothing takes 0 s or more")

    def of(self, kind: str) -> int:
        """How many labels of a kind are told at once."""
        return 1 if kind in self.single else self.most


def chosen(scores: Narrow, before: tuple[int, ...], most: int, rule: LabelRule) -> tuple[int, ...]:
    """The labels to tell now, best first.

    Args:
        scores: (n,) smoothed, of the labels of one kind.
        before: those told before.
        most: at most so many.
        rule: the thresholds.

    >>> rule = LabelRule(on=0.5, off=0.3, margin=0.1)
    >>> chosen(np.array([0.4, 0.45]), (0,), 1, rule), chosen(np.array([0.4, 0.55]), (0,), 1, rule)
    ((0,), (1,))
    """
    kept = np.zeros(len(scores), np.bool_)
    kept[list(before)] = True
    fit = np.flatnonzero(scores >= np.where(kept, rule.off, rule.on))
    ranked = fit[np.argsort(-(scores[fit] + rule.margin * kept[fit]), kind="stable")][:most]
    best_first = ranked[np.argsort(-scores[ranked], kind="stable")]
    return tuple(best_first.tolist())


class Smoothed:
    """The scores of one thing over time, and the labels that are told of it.

    Args:
        kinds: what the scores stand for.
        rule: which labels are told.
    """

    def __init__(self, kinds: Layout, rule: LabelRule) -> None:
        self._kinds, self._rule = kinds, rule
        self.scores: Narrow = np.zeros(kinds.width, np.float32)
        self._labels: dict[str, tuple[int, ...]] = dict.fromkeys(kinds.kinds, ())
        self._t_s: float | None = None

    def add(self, scores: Narrow, t_s: float) -> bool:
        """Take the scores of a moment; whether other labels are told now.

        Args:
            scores: (c,).
            t_s: later than before.
        """
        if self._t_s is None or not self._rule.smooth_s:
            self.scores = scores.astype(np.float32, copy=True)
        else:
            weight = 1.0 - math.exp(-(t_s - self._t_s) / self._rule.smooth_s)
            self.scores += np.float32(weight) * (scores - self.scores)
        self._t_s = t_s
        start, before = 0, self._labels
        self._labels = {}
        for kind, names in self._kinds.kinds.items():
            part = self.scores[start : start + len(names)]
            self._labels[kind] = chosen(part, before[kind], self._rule.of(kind), self._rule)
            start += len(names)
        return any(set(self._labels[kind]) != set(before[kind]) for kind in before)

    def told(self) -> Told:
        """Kind to its labels with their scores, best first; kinds without are left out."""
        found: Told = {}
        for kind, labels in self._labels.items():
            if labels:
                names, at = self._kinds.kinds[kind], self._kinds.columns(kind).start
                found[kind] = {names[k]: round(float(self.scores[at + k]), 4) for k in labels}
        return found

    def best(self, kind: str) -> str | None:
        """The label of a kind with the highest smoothed score, told or not; None where there is no such kind.

        Args:
            kind: such as agent.
        """
        names = self._kinds.kinds.get(kind)
        return names[int(self.scores[self._kinds.columns(kind)].argmax())] if names else None

    def every(self, kind: str) -> Mapping[str, float]:
        """All labels of a kind with their smoothed scores."""
        part = self.scores[self._kinds.columns(kind)]
        return dict(zip(self._kinds.kinds[kind], part.tolist(), strict=True))
