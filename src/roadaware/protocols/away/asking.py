"""Asking: what a fitted model says of a domain's samples, in each way to doubt it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.models import CROSSING, model_class
from roadaware.protocols.away.config import AwayStudy
from roadaware.protocols.away.domains import material
from roadaware.protocols.away.fitting import fold, model_file
from roadaware.protocols.away.plan import Fit

if TYPE_CHECKING:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.tasks.pedestrians import Examples

Answers = Callable[[str, str], Floats]
_NEAREST = 1e-7
"""Probabilities of tabular models are kept this far from 0 and 1 before they become logits."""


def asked(fit: Fit, doubt: str, study: AwayStudy, out: Path) -> Answers:
    """A fitted model, to be asked about the samples of domains.

    Args:
        fit: that was made.
        doubt: how it is asked.
        study: says what networks look at, and how often they are asked.
        out: folder of the study.

    Returns:
        a function from a domain's name and a split to (n,) probabilities of crossing. It raises InputError if
        the domain lacks what the model looks at.

    Raises:
        UsageError: if a network drops nothing and should.
    """
    if fit.model not in CROSSING:
        return _tabular(fit, doubt, out)
    network = _doubted(fit, doubt, study, out)

    def answers(domain: str, split: str) -> Floats:
        return network.probabilities(fold(out, domain, split, study.inputs).inputs)[:, 0]

    return answers


def _doubted(fit: Fit, doubt: str, study: AwayStudy, out: Path) -> Predictor:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.models.doubt.monte_carlo import monte_carlo
    from roadaware.models.doubt.temperature import calibrated

    held = Predictor.open(model_file(fit, out))
    if doubt == "mc-dropout":
        return monte_carlo(held, study.learning.passes)
    if doubt == "temperature":
        known = fold(out, fit.domain, "val", study.inputs)
        return calibrated(held, known.inputs, known.truth.numpy(), fit.seed)
    return held


def _tabular(fit: Fit, doubt: str, out: Path) -> Answers:
    from scipy.special import expit, logit

    from roadaware.statistics.temperature import best_temperature

    model, heat = model_class(fit.model).open(model_file(fit, out)), 1.0
    if doubt == "temperature":
        known = _examples(out, fit.domain, "val")
        before = model.predict(known)[:, :1].clip(_NEAREST, 1 - _NEAREST)
        heat = best_temperature(logit(before), known.truth)

    def answers(domain: str, split: str) -> Floats:
        said = model.predict(_examples(out, domain, split))[:, 0]
        if heat == 1.0:
            return np.asarray(said, dtype=np.float64)
        return np.asarray(expit(logit(said.clip(_NEAREST, 1 - _NEAREST)) / heat), dtype=np.float64)

    return answers


def truth_of(out: Path, domain: str) -> Ints:
    """(n,) labels of a domain's validation samples, in the order in which models are asked about them.

    Args:
        out: folder of the study.
        domain: its name.
    """
    return _examples(out, domain, "val").truth


@lru_cache(maxsize=16)
def _examples(out: Path, domain: str, split: str) -> Examples:
    from roadaware.tasks.pedestrians import examples

    found = examples(material(out, domain).cut, split)
    return found if split != "test" else replace(found, truth=np.full(len(found), -1))
