"""People: bodies that stand, walk, ride and act."""

from __future__ import annotations

from roadaware.simulator.people.bodies import (
    build_body_mesh,
    compute_joints,
    describe_appearance,
    prepare_poses,
    select_item,
    stride_m,
)
from roadaware.simulator.people.gaits import Saddle, get_saddle, scale_saddle
from roadaware.simulator.people.skeleton import PEOPLE_MODELS, PersonModel, compute_stride, height_m

__all__ = [
    "PEOPLE_MODELS",
    "PersonModel",
    "Saddle",
    "build_body_mesh",
    "compute_joints",
    "compute_stride",
    "describe_appearance",
    "get_saddle",
    "height_m",
    "prepare_poses",
    "scale_saddle",
    "select_item",
    "stride_m",
]
