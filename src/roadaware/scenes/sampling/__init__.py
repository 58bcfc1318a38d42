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
    get_protocol,
)
from roadaware.scenes.sampling.sampler import (
    describe_exclusions,
    list_filled_splits,
    list_task_answers,
    sample,
)

__all__ = [
    "PROTOCOLS",
    "Dataset",
    "EventProtocol",
    "Iv2022",
    "Iv2024",
    "NamedProtocol",
    "Task",
    "Wacv2021",
    "describe_exclusions",
    "get_protocol",
    "list_filled_splits",
    "list_task_answers",
    "sample",
]
