"""Model card: a model in words and numbers, with its inputs, training and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["network", "tabular", "rule"]


@dataclass(frozen=True)
class ModelCard:
    """The facts of one model.

    Args:
        name: its name in the registry.
        paper: where it is described, or where it comes from if nowhere.
        family: network (trained by gradient), tabular (fitted on features) or rule (nothing but constants).
        tasks: the questions it answers: action, intention, risk, road.
        diagram: its block diagram in words.
        parameters: how many numbers are fitted, or the rule that gives them.
        inputs: what it sees and how that is normalised.
        weights: where fitted weights come from.
        licence: the terms of those weights.
        published: the score its source reports; empty where there is none.
    """

    name: str
    paper: str
    family: Family
    tasks: tuple[str, ...]
    diagram: str
    parameters: str
    inputs: str
    weights: str
    licence: str
    published: str = ""
