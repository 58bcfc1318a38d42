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
from roadaware.simulator.people.skeleton import (
    PEOPLE_MODELS,
    PersonModel,
    Saddle,
    compute_stride,
    get_saddle,
    height_m,
    scale_saddle,
)

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
