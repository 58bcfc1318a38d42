"""Where networks run and in which numbers, as `--device` and `--precision` say it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.cli import console

if TYPE_CHECKING:
    import torch

_DEVICE = "auto, cpu, cuda or cuda:N."
_PRECISION = (
    "Numbers that the network computes with: fp32, or bf16, which takes half the memory, is faster where the "
    "processor knows it, and moves scores by about a hundredth."
)
Device = Annotated[str, Parameter(help=_DEVICE)]
Precision = Annotated[Literal["fp32", "bf16"], Parameter(help=_PRECISION)]


def select_device(device: str, precision: str) -> tuple[torch.device, torch.dtype]:
    """The device and the type of numbers, see `models.devices`, which needs torch."""
    from roadaware.models import devices

    return devices.select_device(device, precision)


def set_threads(files: Sequence[Path], threads: int = 0) -> None:
    """Let torch use so many threads, see `models.devices`, which needs torch."""
    from roadaware.models import devices

    devices.set_threads(files, threads)


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
