"""The demo with scenes so short and small that they are made at once, without further processes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from small_files import Done

from roadaware.cli import main
from roadaware.demo import scenes
from roadaware.demo.scenes import Shooting

SHOOTINGS = {
    "road": Shooting(2, 1.5, (160, 120), 6.0),
    "crossing": Shooting(1, 0.5, (32, 32), 4.0, bare=True),
    "chaos": Shooting(2, 1.0, (160, 90), 6.0),
}


@dataclass(frozen=True)
class Demo:
    """A finished demo: where it ran, its words, and how it ended."""

    place: Path
    words: tuple[str, ...]
    done: Done


def run() -> None:
    """The command in a process of its own."""
    scenes.SHOOTINGS = SHOOTINGS
    scenes._count_processes = lambda: 1
    sys.exit(main(sys.argv[1:]))
