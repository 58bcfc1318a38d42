"""Where networks run and in which numbers, as `--device` and `--precision` say it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.cli import console
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


def select_device(device: str, precision: str) -> tuple[torch.device, torch.dtype]:
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


def set_threads(files: Sequence[Path], threads: int = 0) -> None:
    """Let torch use so many threads; by default one for one small network.

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


# Telling of a warm-up, which may take long enough for somebody to wonder why nothing happens.

_LONG_S = 1.0


@contextmanager
def log_warmup(what: str) -> Iterator[None]:
    """Say how long a warm-up took where that was more than a second, and always under -v.

    Args:
        what: is warmed up, in words.
    """
    begin_s = time.monotonic()
    yield
    spent_s = time.monotonic() - begin_s
    if spent_s > _LONG_S or console.get_verbosity():
        console.print_note(f"warming up {what} before the first frame: {spent_s:.2f} s")
