"""Made inputs for networks of pedestrians: the shapes that names stand for, and random values."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.inputs import InputName, parse_input_name

WIDTHS = {
    "boxes": 4,
    "centre": 8,
    "motion": 3,
    "ego:action": 5,
    "ego:code": 1,
    "ego:speed": 1,
    "ego:dynamics": 4,
    "ego:obd": 7,
    "ego:filtered": 7,
    "pose": 36,
    "appearance": 24,
    "traffic": 8,
    "grid": 1,
}
CATEGORIES = 6
TASKS = {"trajectory": 5, "grid": 6}


def shape_of(name: str, frames: int = 16) -> tuple[int, ...]:
    """What `shapes` says of an input; crops have their channels last, maps have them first."""
    parts = parse_input_name(name)
    side = parts.pixels
    if parts.kind == "maps":
        return (frames, CATEGORIES, side, side)
    if side:
        return (frames, side, side, 3)
    return (frames, WIDTHS.get(f"{parts.kind}:{parts.form}") or WIDTHS[parts.kind])


def published_shapes(entry: Entry, frames: int = 16) -> dict[str, tuple[int, ...]]:
    """Of the inputs of the paper."""
    return {name: shape_of(name, frames) for name in entry.reads}


def tiny_shapes(entry: Entry, frames: int = 8, pixels: int = 32) -> dict[str, tuple[int, ...]]:
    """The same with small images."""
    return {
        name: shape_of(name, frames)
        for read in entry.reads
        if (
            name := str(
                InputName(
                    parse_input_name(read).kind,
                    parse_input_name(read).form,
                    pixels if parse_input_name(read).pixels else 0,
                )
            )
        )
    }


def batch(shapes: dict[str, tuple[int, ...]], n: int = 4, seed: int = 0) -> dict[str, Tensor]:
    """Random values as a network is given them, images with their channels first."""
    drawn = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in shapes.items():
        if len(shape) == 4:
            frames, *side = (
                shape if parse_input_name(name).kind == "maps" else (shape[0], shape[3], *shape[1:3])
            )
            made[name] = torch.rand(n, frames, *side, generator=drawn)
        else:
            made[name] = torch.randn(n, *shape, generator=drawn)
            if parse_input_name(name).kind == "grid":
                made[name] = torch.randint(0, 576, (n, *shape), generator=drawn).float()
    return made


def nothing(shapes: dict[str, tuple[int, ...]], n: int = 4) -> dict[str, Tensor]:
    """All zeros."""
    return {name: torch.zeros_like(values) for name, values in batch(shapes, n).items()}


def only(values: dict[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """Some inputs."""
    return {name: values[name] for name in names}
