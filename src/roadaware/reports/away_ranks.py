"""Models ranked over all pairs of a training set and another test set, with their critical differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.protocols.away.results import HIGHER
from roadaware.reports.away_cells import NAMES, Study
from roadaware.reports.critical_difference import critical_difference
from roadaware.reports.picture import Picture
from roadaware.statistics.comparison import Comparison, compare

ALPHA = 0.1
FEWEST = 2


@dataclass(frozen=True)
class Ranked:
    """What the pairs of sets say of the models.

    Args:
        comparison: ranks and tests; None where there are too few models or pairs.
        pairs: training set and test set, where every ranked model has a value.
        left_out: models that have none on too many pairs.
        why: in words, why there is no comparison.
    """

    comparison: Comparison | None
    pairs: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    why: str = ""


def ranked(study: Study, metric: str, *, alpha: float = ALPHA) -> Ranked:
    """Rank models away from home, over the pairs on which all of them have a value.

    A model that lacks more than half of the pairs which others have is left out, so that one failure does not
    take away the rest.

    Args:
        study: what was found.
        metric: its name.
        alpha: level of the tests.

    Source: Gesnouin et al., IV 2022, Figure 4, section III-C.
    """
    pairs = [(a, b) for b in study.tested for a in study.learnt if a != b]
    held = {model: _values(study, model, metric, pairs) for model in study.models}
    most = max((len(values) for values in held.values()), default=0)
    kept = [model for model in study.models if held[model] and 2 * len(held[model]) > most]
    left_out = tuple(model for model in study.models if model not in kept)
    shared = tuple(pair for pair in pairs if kept and all(pair in held[model] for model in kept))
    if len(kept) < FEWEST or len(shared) < FEWEST:
        what = f"{len(kept)} models with values of {NAMES[metric]} on {len(shared)} pairs of sets"
        return Ranked(None, shared, left_out, f"ranks need two models and two pairs; there are {what}")
    values = np.array([[held[model][pair] for model in kept] for pair in shared])
    found = compare(values, kept, alpha=alpha, higher_is_better=metric in HIGHER)
    return Ranked(found, shared, left_out)


def rank_picture(study: Study, metric: str) -> Picture | str:
    """The critical difference diagram of a metric away from home, or in words why there is none.

    Args:
        study: what was found.
        metric: its name.
    """
    found = ranked(study, metric)
    if found.comparison is None:
        return found.why
    drawn = critical_difference(found.comparison, f"{NAMES[metric]} away from home")
    caption = drawn.caption.replace("data sets", "pairs of a training set and another test set", 1)
    if found.left_out:
        caption += f" Left out, for want of values: {', '.join(found.left_out)}."
    return Picture(drawn.title, caption, drawn.figure)


def _values(
    study: Study, model: str, metric: str, pairs: list[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    found = {pair: study.at(model, *pair, metric) for pair in pairs}
    return {pair: one.value for pair, one in found.items() if one is not None and one.value is not None}
