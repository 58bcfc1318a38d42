"""Mirroring: inputs and answers as they would be in a picture turned left to right; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.crossing.inputs import named
from roadaware.tasks.crossing_inputs.grid import COLUMNS


def _whole(values: Tensor) -> Tensor:
    return values


def _boxes(values: Tensor) -> Tensor:
    """x1, y1, x2, y2 in shares of the picture."""
    x1, y1, x2, y2 = values.unbind(-1)
    return torch.stack([1 - x2, y1, 1 - x1, y2], -1)


def turned_moves(values: Tensor) -> Tensor:
    """(..., 4) x1, y1, x2, y2 less those of a box.

    Args:
        values: (..., 4).
    """
    x1, y1, x2, y2 = values.unbind(-1)
    return torch.stack([-x2, y1, -x1, y2], -1)


def _centre(values: Tensor) -> Tensor:
    """The centre in shares first; the fifth is its velocity to the right."""
    turned = values.clone()
    turned[..., 0] = 1 - values[..., 0]
    turned[..., 4] = -values[..., 4]
    return turned


def _motion(values: Tensor) -> Tensor:
    """Velocities to the right, downwards and towards the middle."""
    return torch.cat([-values[..., :1], values[..., 1:]], -1)


def _crop(values: Tensor) -> Tensor:
    """(n, T, 3, H, W)."""
    return values.flip(-1)


def turned_cells(values: Tensor) -> Tensor:
    """(...) the cell at the other side of the picture.

    Args:
        values: (...) numbers of cells, row by row from 0.
    """
    return values + (COLUMNS - 1) - 2 * (values % COLUMNS)


_TURNS: dict[str, Callable[[Tensor], Tensor]] = {
    "boxes": _boxes,
    "boxes:first": turned_moves,
    "boxes:last": turned_moves,
    "centre": _centre,
    "motion": _motion,
    "ego:action": _whole,
    "ego:code": _whole,
    "ego:speed": _whole,
    "traffic": _whole,
    "grid": turned_cells,
    "crop:box": _crop,
    "crop:context": _crop,
    "crop:surround": _crop,
    "maps": _crop,
}


def turnable(names: Mapping[str, object]) -> None:
    """Refuse inputs whose mirror image is not known.

    Args:
        names: of inputs.

    Raises:
        UsageError: names those.
    """
    lost = [name for name in names if _bare(name) not in _TURNS]
    if lost:
        raise UsageError(f"flip: it is not known what {', '.join(lost)} are in a mirror; set flip to 0")


def turned(x: Mapping[str, Tensor], which: Tensor) -> dict[str, Tensor]:
    """The inputs, some samples of them mirrored.

    Args:
        x: by name, (n, ...).
        which: (n) bool.
    """
    found = {}
    for name, values in x.items():
        changed = values.clone()
        changed[which] = _TURNS[_bare(name)](values[which])
        found[name] = changed
    return found


def turned_answers(wanted: Tensor, which: Tensor, *, regions: bool) -> Tensor:
    """(n, k) what is true of the mirror image: regions of the picture change sides, other labels stay.

    Args:
        wanted: (n, k).
        which: (n) bool.
        regions: labels are regions from left to right.
    """
    if not regions:
        return wanted
    return torch.where(which[:, None], wanted.flip(1), wanted)


def _bare(name: str) -> str:
    parts = named(name)
    return f"{parts.kind}:{parts.form}" if parts.form else parts.kind
