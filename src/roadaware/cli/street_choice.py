"""Which detector looks where nobody names one: the bundled one at synthetic videos, else a real one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.devices import log_warmup
from roadaware.cli.options import Switch
from roadaware.cli.watch_crossing import INSTALLED
from roadaware.errors import RoadawareError, UsageError

if TYPE_CHECKING:
    from roadaware.linking.config import LinkerConfig
    from roadaware.models.catalogue.entries import Entry
    from roadaware.models.event_head.head import EventHead
    from roadaware.models.graphs.views import Views

# What commands know of the event head: whether it is asked for, and how a detector gets it.

HEAD = "events-simulated.safetensors"
"""The file among the weights that came with roadaware which is no detector but the event head."""
_EVENTS = (
    "Give tubes actions, locations, duplexes and events by the event head, from how boxes move. [default: "
    "with detectors of agents alone]"
)
EventsOption = Annotated[bool | None, Parameter(help=_EVENTS, negative="--no-events", show_default=False)]


def has_event_head(asked: bool | None, kinds: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a detector gets the event head.

    Args:
        asked: as of `--events`; None where nothing is said.
        kinds: that the detector tells.

    Raises:
        UsageError: if it is asked for and the detector tells no agents of ROAD.
    """
    from roadaware.models.event_head.head import has_installed_head
    from roadaware.models.object_labels import ROAD_AGENTS

    fits = bool(set(kinds.get("agent", ())) & set(ROAD_AGENTS))
    if asked and not fits:
        told = ", ".join(f"{len(names)} of {kind}" for kind, names in kinds.items())
        raise UsageError(
            f"--events needs a detector that tells agents of ROAD; this one tells {told or 'nothing'}"
        )
    if asked is None:
        return fits and not {"action", "location"} & set(kinds) and has_installed_head()
    return asked


def open_installed_head() -> EventHead:
    """The event head that came with roadaware."""
    from roadaware.models.event_head.head import open_head

    return open_head()


def add_event_head(asked: bool | None, detector: Any, linker: LinkerConfig, fps: float | None = None) -> Any:
    """A detector with the event head behind it where that is wanted.

    Args:
        asked: as of `--events`.
        detector: any.
        linker: what its detections will be linked with.
        fps: of the source; None where it is not known.
    """
    if not has_event_head(asked, detector.kinds):
        return detector
    from roadaware.tasks.events import EventDetector, warm_up_events

    wrapped = EventDetector(detector, open_installed_head(), linker, fps=fps)
    with log_warmup("the event head"):
        warm_up_events(linker)
    console.print_note(
        "actions, locations and events by the event head, learnt from simulated tubes; --no-events for none"
    )
    return wrapped


FIRST = "street-small"
"""What is offered where no real detector is installed."""
LIVE_PX, FILM_PX = 640, 1024
_OBJECTS = ("objects",)


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


@dataclass(frozen=True)
class Choice:
    """What looks.

    Args:
        files: of the detector.
        views: in which sizes; None where the detector has its own.
    """

    files: list[Path]
    views: Views | None


def find_bundled_weights() -> Path:
    """The detector that came with roadaware.

    Raises:
        UsageError: if none came with it, or there are several.
    """
    folder = Path(__file__).resolve().parent.parent / "weights"
    found = sorted(path for path in folder.glob("*.safetensors") if path.name not in (*INSTALLED, HEAD))
    if not found:
        raise UsageError(
            "no detector came with this installation; name one with --weights\n  "
            f"`roadaware models get {FIRST}` fetches one; `roadaware train configs/simulator.yaml` makes one "
            "from synthetic scenes"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(
            f"several detectors came with this installation ({names}); choose one with --weights"
        )
    return found[0]


def select_detector(named: Sequence[Path], *, synthetic: bool, live: bool, looks: Looks) -> Choice:
    """The detector that was named, or the one that suits the source.

    Args:
        named: paths, or names of the catalogue.
        synthetic: whether the source is a video of the simulator.
        live: whether it is a camera.
        looks: what was asked of sizes.

    Raises:
        UsageError: if a name is not installed, or a size was asked of a detector that has its own.
    """
    from roadaware.models.catalogue.entries import resolve_weights
    from roadaware.models.graphs.files import is_graph_file
    from roadaware.models.graphs.views import Views

    if named:
        files = [resolve_weights(path, _OBJECTS) for path in named]
    else:
        files = [(None if synthetic else _real_detector()) or find_bundled_weights()]
    if len(files) == 1 and is_graph_file(files[0]):
        usual = LIVE_PX if live else FILM_PX
        return Choice(files, Views(usual if looks.size is None else looks.size, looks.tiles))
    return Choice(files, None if looks == AS_IT_SUITS else Views(looks.size or LIVE_PX, looks.tiles))


def _real_detector() -> Path | None:
    """The cheapest detector that is installed; else what is fetched now, where somebody says so."""
    from roadaware.models.catalogue.entries import find_entry, find_installed_path, read_catalogue

    there = [
        (entry, path)
        for entry in read_catalogue().values()
        if entry.task == "objects" and (path := find_installed_path(entry))
    ]
    if there:
        entry, path = min(there, key=lambda each: each[0].cost)
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
    from roadaware.models.catalogue.entries import find_installed_path
    from roadaware.models.catalogue.get import get_model

    try:
        get_model(entry, tell=console.print_note)
    except RoadawareError as error:
        console.print_error(str(error))
        return None
    return find_installed_path(entry)
