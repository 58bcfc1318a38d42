"""People: bodies that stand, walk, ride and act."""

from __future__ import annotations

from roadaware.simulator.people.bodies import body, joints, pose, stride_m
from roadaware.simulator.people.gaits import Saddle, saddle, saddle_of
from roadaware.simulator.people.statures import PEOPLE_MODELS, PersonModel, height_m, stride_of
from roadaware.simulator.people.telling import tell

__all__ = [
    "PEOPLE_MODELS",
    "PersonModel",
    "Saddle",
    "body",
    "height_m",
    "joints",
    "pose",
    "saddle",
    "saddle_of",
    "stride_m",
    "stride_of",
    "tell",
]
