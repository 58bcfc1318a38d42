"""A predictor whose probabilities were made to mean what they say on validation; imports torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.predictor import Predictor
from roadaware.statistics.temperature import best_temperature


def calibrated(predictor: Predictor, given: InputSet, truth: npt.ArrayLike, seed: int = 0) -> Predictor:
    """The same network, its logits over the temperature with the smallest log loss.

    Which label is likeliest stays as it is, and so does the order of samples where there are two labels and
    one pass.

    Args:
        predictor: trained; its passes are what is calibrated where they differ.
        given: n samples that were not learnt from.
        truth: (n) labels.
        seed: of the passes.

    Raises:
        InputError: if an input is missing or has another shape.
        ValueError: if labels do not fit.

    Source: Guo et al., ICML 2017, section 4.2.
    """
    plain = replace(predictor, temperature=1.0)
    logits = plain.pass_logits(given, predictor.doubt.passes if predictor.doubt.draws else 1, seed)
    return replace(predictor, temperature=best_temperature(logits, np.asarray(truth)))
