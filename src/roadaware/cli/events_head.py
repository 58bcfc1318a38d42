"""What commands know of the event head: whether it is asked for, and how a detector gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.warming import warming
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.linking.config import LinkerConfig
    from roadaware.models.event_head.head import EventHead

HEAD = "events-simulated.safetensors"
"""The file among the weights that came with roadaware which is no detector but the event head."""
_EVENTS = (
    "Give tubes actions, locations, duplexes and events by the event head, from how boxes move. Default: "
    "with detectors that tell agents alone."
)
EventsOption = Annotated[bool | None, Parameter(help=_EVENTS, negative="--no-events", show_default=False)]


def wants_events(asked: bool | None, kinds: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a detector gets the event head.

    Args:
        asked: as of `--events`; None where nothing is said.
        kinds: that the detector tells.

    Raises:
        UsageError: if it is asked for and the detector tells no agents of ROAD.
    """
    from roadaware.models.event_head.head import installed_head
    from roadaware.models.object_labels import ROAD_AGENTS

    fits = bool(set(kinds.get("agent", ())) & set(ROAD_AGENTS))
    if asked and not fits:
        told = ", ".join(f"{len(names)} of {kind}" for kind, names in kinds.items())
        raise UsageError(
            f"--events needs a detector that tells agents of ROAD; this one tells {told or 'nothing'}"
        )
    if asked is None:
        return fits and not {"action", "location"} & set(kinds) and installed_head()
    return asked


def open_installed_head() -> EventHead:
    """The event head that came with roadaware."""
    from roadaware.models.event_head.head import open_head

    return open_head()


def with_events(asked: bool | None, detector: Any, linker: LinkerConfig, fps: float | None = None) -> Any:
    """A detector with the event head behind it where that is wanted.

    Args:
        asked: as of `--events`.
        detector: any.
        linker: what its detections will be linked with.
        fps: of the source; None where it is not known.
    """
    if not wants_events(asked, detector.kinds):
        return detector
    from roadaware.tasks.event_detector import EventDetector, warm_up_events

    wrapped = EventDetector(detector, open_installed_head(), linker, fps=fps)
    with warming("the event head"):
        warm_up_events(linker)
    console.note(
        "actions, locations and events by the event head, learnt from simulated tubes; --no-events for none"
    )
    return wrapped
