"""Where networks run and in which numbers, as `--device` and `--precision` say it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.errors import UsageError

if TYPE_CHECKING:
    import torch

_DEVICE = "auto, cpu, cuda or cuda:N."
_PRECISION = (
    "Numbers that the network computes with: fp32, or bf16, which takes half the memory, is faster where the "
    "processor knows it, and moves scores by about a hundredth."
)
_SMALL_BYTES = 20 << 20
"""Weights below which a network runs on one thread."""
Device = Annotated[str, Parameter(help=_DEVICE)]
Precision = Annotated[Literal["fp32", "bf16"], Parameter(help=_PRECISION)]


def place_of(device: str, precision: str) -> tuple[torch.device, torch.dtype]:
    """The device and the type of numbers.

    Args:
        device: auto, cpu, cuda or cuda:N.
        precision: fp32 or bf16.

    Raises:
        UsageError: if the device cannot be used.
    """
    import torch

    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        place = torch.device(chosen)
        torch.zeros(1, device=place)
    except (RuntimeError, AssertionError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise UsageError(f"--device {device} cannot be used: {why}") from error
    return place, torch.bfloat16 if precision == "bf16" else torch.float32


def use_threads(files: Sequence[Path], threads: int = 0) -> None:
    """Let torch use so many threads; for one small network one, unless they are told.

    Threads that wait for each other after every layer of a few milliseconds cost more than they bring, most
    of all beside other work.

    Args:
        files: of the networks.
        threads: how many; 0 for what suits the networks.
    """
    import torch

    if not threads and len(files) == 1 and files[0].is_file() and files[0].stat().st_size < _SMALL_BYTES:
        threads = 1
    if threads:
        torch.set_num_threads(threads)
