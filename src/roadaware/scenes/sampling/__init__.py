"""Pedestrian tracks cut into samples by published protocols."""

from __future__ import annotations

from roadaware.scenes.sampling.configs import Dataset, EventProtocol, Iv2022, Iv2024, Task, Wacv2021
from roadaware.scenes.sampling.labels import vocabulary
from roadaware.scenes.sampling.registry import PROTOCOLS, NamedProtocol, protocol_named
from roadaware.scenes.sampling.sampler import left_out, sample
from roadaware.scenes.sampling.splits import filled_splits

__all__ = [
    "PROTOCOLS",
    "Dataset",
    "EventProtocol",
    "Iv2022",
    "Iv2024",
    "NamedProtocol",
    "Task",
    "Wacv2021",
    "filled_splits",
    "left_out",
    "protocol_named",
    "sample",
    "vocabulary",
]
