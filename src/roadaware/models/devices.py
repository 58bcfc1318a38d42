"""Where networks run, in which numbers and on how many threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from roadaware.errors import UsageError

_SMALL_BYTES = 20 << 20
"""Weights below which a network runs on one thread."""


def select_device(device: str, precision: str) -> tuple[torch.device, torch.dtype]:
    """The device and the type of numbers.

    Args:
        device: auto, cpu, cuda or cuda:N.
        precision: fp32 or bf16.

    Raises:
        UsageError: if there is no such precision, or the device cannot be used.
    """
    if precision not in ("fp32", "bf16"):
        raise UsageError(f"precision is fp32 or bf16, not {precision!r}")
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        place = torch.device(chosen)
        torch.zeros(1, device=place)
    except (RuntimeError, AssertionError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise UsageError(f"the device {device} cannot be used: {why}") from error
    return place, torch.bfloat16 if precision == "bf16" else torch.float32


def set_threads(files: Sequence[Path], threads: int = 0) -> None:
    """Let torch use so many threads; by default one for one small network.

    Threads that wait for each other after every layer of a few milliseconds cost more than they bring, most
    of all beside other work.

    Args:
        files: of the networks.
        threads: how many; 0 for what suits the networks.
    """
    if not threads and len(files) == 1 and files[0].is_file() and files[0].stat().st_size < _SMALL_BYTES:
        threads = 1
    if threads:
        torch.set_num_threads(threads)
