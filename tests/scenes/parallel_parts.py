"""Parts of work as they may go well or wrong, for workers to import."""

import os
import time
from pathlib import Path

from roadaware.errors import DiskError, InputError, UsageError


def square(number: int) -> int:
    return number * number


def return_late(number: int) -> int:
    """The square; that of 0 comes last."""
    if number == 0:
        time.sleep(1.0)
    return number * number


def return_unsendable(number: int) -> object:
    return (lambda: number) if number == 1 else number


def fail_at(number: int) -> int:
    """What a part can meet, each at its number."""
    if number == 1:
        raise InputError("no such pixel", where="drive.mp4", hint="look at it")
    if number == 2:
        raise ZeroDivisionError("first line\nsecond line")
    return number


def fill_disk(number: int) -> int:
    if number == 2:
        raise DiskError("full")
    return number


def refuse(number: int) -> int:
    raise UsageError("no such knob")


def die_at_first(folder: Path, number: int) -> int:
    """At 1 the worker dies when it comes there for the first time; at 2 always."""
    mark = folder / f"{number}-{time.monotonic_ns()}"
    mark.write_text(str(os.getpid()))
    if number == 2 or (number == 1 and len(list(folder.glob("1-*"))) == 1):
        os._exit(9)
    return number


def hang_at(folder: Path, number: int) -> int:
    """At 1 for a minute."""
    (folder / f"{number}-{os.getpid()}").write_text("")
    if number == 1:
        time.sleep(60)
    return number


def sleep(folder: Path, number: int) -> None:
    (folder / str(os.getpid())).write_text("")
    time.sleep(60)


def sleep_but_first(folder: Path, number: int) -> None:
    """The first part is over once another has begun: a result is taken while that one sleeps."""
    if number:
        sleep(folder, number)
    while not any(folder.iterdir()):
        time.sleep(0.02)


def tell_place(number: int) -> tuple[int, str, str | None]:
    """The process, its folder, and a setting of ours."""
    return os.getpid(), str(Path.cwd()), os.environ.get("ROADAWARE_DATA_DIR")
