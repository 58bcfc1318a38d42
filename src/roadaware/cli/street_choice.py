"""Which detector looks where nobody names one: the bundled one at synthetic videos, else a real one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.devices import log_warmup
from roadaware.cli.options import Switch
from roadaware.errors import RoadawareError
from roadaware.models.catalogue.entries import find_entry, find_installed_path
from roadaware.models.catalogue.get import get_model
from roadaware.online import setup
from roadaware.online.setup import FIRST, find_installed_detector

if TYPE_CHECKING:
    from roadaware.linking.config import LinkerConfig
    from roadaware.models.catalogue.entries import Entry
    from roadaware.online.setup import Choice

_EVENTS = (
    "Give tubes actions, locations, duplexes and events by the event head, from how boxes move. [default: "
    "with detectors of agents alone]"
)
EventsOption = Annotated[bool | None, Parameter(help=_EVENTS, negative="--no-events", show_default=False)]


def add_event_head(asked: bool | None, detector: Any, linker: LinkerConfig, fps: float | None = None) -> Any:
    """A detector with the event head behind it where that is wanted, and a word on it.

    Args:
        asked: as of `--events`.
        detector: any.
        linker: what its detections will be linked with.
        fps: of the source; None where it is not known.
    """

    wrapped = setup.add_event_head(asked, detector, linker, fps, log_warmup)
    if wrapped is not detector:
        console.print_note(
            "actions, locations and events by the event head, learnt from simulated tubes; --no-events for "
            "none"
        )
    return wrapped


@Parameter(name="*")
@dataclass(frozen=True)
class Looks:
    """How large images are shown to a detector that takes any size."""

    size: int | None = None
    """Longer side that images are brought to, a multiple of 32, for detectors of any size, as street-small.
    Default: 640 of a camera, 1024 of a video."""
    tiles: Annotated[bool, Switch] = False
    """Look at three parts of each image besides the whole of it, for what is far (as street-small)."""


AS_IT_SUITS = Looks()


def select_detector(named: Sequence[Path], *, synthetic: bool, live: bool, looks: Looks) -> Choice:
    """The detector that was named, or the one that suits the source; offers to fetch one at a terminal.

    Args:
        named: paths, or names of the catalogue.
        synthetic: whether the source is a video of the simulator.
        live: whether it is a camera.
        looks: what was asked of sizes.

    Raises:
        UsageError: if a name is not installed, or a size was asked of a detector that has its own.
    """

    return setup.select_detector(
        named,
        synthetic=synthetic,
        live=live,
        size=looks.size,
        tiles=looks.tiles,
        find_real=_find_real_detector,
    )


def _find_real_detector() -> Path | None:
    """The cheapest detector that is installed; else what is fetched now, where somebody says so."""

    found = find_installed_detector()
    if found is not None:
        entry, path = found
        console.print_note(f"looking with {entry.name} ({entry.licence}); --weights chooses another detector")
        return path
    if _asks(find_entry(FIRST)):
        return _get_detector(find_entry(FIRST))
    console.print_note(
        f"no detector of real streets is installed: `roadaware models get {FIRST}` fetches one"
    )
    return None


def _asks(entry: Entry) -> bool:
    """Whether somebody at a terminal wants the detector to be fetched."""
    if console.is_quiet() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    console.print_note(
        f"no detector of real streets is installed. Fetch {entry.name} now ({entry.size_mb:.0f} MB; licence: "
        f"{entry.licence})? [y/N]"
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _get_detector(entry: Entry) -> Path | None:
    """The detector, once it is there; without it the work goes on."""

    try:
        get_model(entry, tell=console.print_note)
    except RoadawareError as error:
        console.print_error(str(error))
        return None
    return find_installed_path(entry)
