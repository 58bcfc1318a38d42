"""An entry of the registry: what is known of a network for pedestrians before torch is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roadaware.models.card import ModelCard

_TASKS = ("action", "intention", "risk")
_LICENCE = "trained ones: that of the data; published image weights: see where they come from"


@dataclass(frozen=True)
class Entry:
    """A network for pedestrians.

    Args:
        card: its facts.
        config_class: the frozen dataclass of its sizes; the defaults are the published ones.
        network: where it is built, as `module:Class`.
        reads: the inputs of its paper, in order.
        also_tells: tasks it can answer beside the label: trajectory, grid.
        each_frame: whether it can answer at every frame, and not at the last alone.
    """

    card: ModelCard
    config_class: type[Any]
    network: str
    reads: tuple[str, ...]
    also_tells: tuple[str, ...] = ()
    each_frame: bool = False


def crossing_network(
    name: str,
    config_class: type[Any],
    network: str,
    *,
    reads: tuple[str, ...],
    also_tells: tuple[str, ...] = (),
    each_frame: bool = False,
    paper: str,
    diagram: str,
    parameters: str,
    inputs: str,
    weights: str,
    published: str = "",
) -> Entry:
    """An entry whose card says what all networks for pedestrians have in common.

    Args:
        name: in the registry.
        config_class: see `Entry`.
        network: where it is built, as `module:Class` below `models.crossing.networks`.
        reads, also_tells, each_frame: see `Entry`.
        paper, diagram, parameters, inputs, weights, published: see `ModelCard`.
    """
    card = ModelCard(
        name=name,
        paper=paper,
        family="network",
        tasks=_TASKS,
        diagram=diagram,
        parameters=parameters,
        inputs=inputs,
        weights=weights,
        licence=_LICENCE,
        published=published,
    )
    where = f"roadaware.models.crossing.networks.{network}"
    return Entry(card, config_class, where, reads, also_tells, each_frame)
