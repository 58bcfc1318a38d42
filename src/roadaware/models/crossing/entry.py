"""An entry of the registry: what is known of a network for pedestrians before torch is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roadaware.models.card import ModelCard


@dataclass(frozen=True)
class Entry:
    """A network for pedestrians.

    Args:
        card: its facts.
        config_class: the frozen dataclass of its sizes; the defaults are the published ones.
        network: where it is built, as `module:Class`.
        reads: the inputs of its paper, in order.
        also_tells: tasks it can answer beside the label: trajectory, grid.
    """

    card: ModelCard
    config_class: type[Any]
    network: str
    reads: tuple[str, ...]
    also_tells: tuple[str, ...] = ()
