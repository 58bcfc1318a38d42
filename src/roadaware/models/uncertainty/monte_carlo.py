"""Monte-Carlo dropout: a trained predictor with dropout active at inference; imports torch."""

from __future__ import annotations

from dataclasses import replace

from roadaware.errors import UsageError
from roadaware.models.crossing.predictor import Predictor
from roadaware.models.uncertainty.config import DoubtConfig
from roadaware.models.uncertainty.passes import refuse_without_dropout


def apply_mc_dropout(predictor: Predictor, passes: int = 30) -> Predictor:
    """The same network with dropout active at inference; its output is the mean of passes.

    Args:
        predictor: trained with dropout.
        passes: how many.

    Raises:
        UsageError: if its network drops nothing, or its last layer holds distributions.

    Source: Gal and Ghahramani, ICML 2016, eq. 6.
    """
    before = predictor.doubt
    if before.kind == "last-flipout":
        raise UsageError("weights of the last layer are drawn already; ask its own passes")
    refuse_without_dropout(predictor.network)
    return replace(predictor, doubt=DoubtConfig("dropout", rate=before.rate, passes=passes))
