"""Pedestrian tracks cut into samples by published protocols."""

from __future__ import annotations

from roadaware.scenes.sampling.protocols import (
    PROTOCOLS,
    Dataset,
    EventProtocol,
    Iv2022,
    Iv2024,
    NamedProtocol,
    Task,
    Wacv2021,
    protocol_named,
)
from roadaware.scenes.sampling.sampler import filled_splits, left_out, sample, vocabulary

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
