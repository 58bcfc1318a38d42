"""What commands with networks share: where these run, at which videos they look, and which one does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.options import Switch
from roadaware.datasets.loading import open_dataset
from roadaware.errors import InputError, RoadawareError, Terminated
from roadaware.models.catalogue.entries import find_entry, find_installed_path
from roadaware.models.catalogue.get import get_model
from roadaware.online import setup
from roadaware.scenes.store import is_saved, open_predictions
from roadaware.tasks.videos import VideoSet, collect_videos

if TYPE_CHECKING:
    from roadaware.linking.config import LinkerConfig
    from roadaware.models.catalogue.entries import Entry
    from roadaware.online.setup import Choice
    from roadaware.scenes.tables import Predictions

# Where networks run and in which numbers.

_PRECISION = (
    "Numbers that the network computes with: fp32, or bf16, which takes half the memory, is faster where the "
    "processor knows it, and moves scores by about a hundredth."
)
Device = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:N.")]
Precision = Annotated[Literal["fp32", "bf16"], Parameter(help=_PRECISION)]


_LONG_S = 1.0


@contextmanager
def log_warmup(what: str) -> Iterator[None]:
    """Say how long a warm-up took where that was more than a second, and always under -v.

    Somebody may wonder why nothing happens.

    Args:
        what: is warmed up, in words.
    """
    begin_s = time.monotonic()
    yield
    spent_s = time.monotonic() - begin_s
    if spent_s > _LONG_S or console.get_verbosity():
        console.print_note(f"warming up {what} before the first frame: {spent_s:.2f} s")


# Work in a folder: what it is called, and what is kept of it part by part.


def build_run_name(name: str, otherwise: str) -> str:
    """A name fit for a folder: letters, digits and a few marks of another; `otherwise` where none is left."""
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return kept.strip("-.")[:60] or otherwise


@contextmanager
def show_resumable(what: str, kept: Callable[[], str]) -> Iterator[console.Progress]:
    """Show how far a step is; where it is stopped, say what is kept.

    Args:
        what: is done, in a word.
        kept: in words.
    """
    try:
        with console.show_progress(what) as progress:
            yield progress
    except (KeyboardInterrupt, Terminated):
        console.print_note(f"{kept()}; the same command goes on")
        raise


def open_saved(path: Path, inner: str) -> Predictions:
    """Saved predictions.

    Args:
        path: their folder.
        inner: name of that folder in a folder of work, for somebody who names the latter.

    Raises:
        InputError: if there are none.
    """
    if not is_saved(path):
        hint = f"name the folder `{inner}` inside it" if (path / inner).is_dir() else None
        raise InputError("expected saved predictions with meta.json", where=str(path), hint=hint)
    return open_predictions(path)


# The videos that are looked at.

_READER = "Name of the dataset's reader, such as jaad or road. [default: detected from its files]"
_MEDIA = "Folder that the dataset's videos or images lie below. [default: the dataset's]"
_VIDEO_PATHS = (
    "Where videos lie below it, such as videos/{video}.mp4 or rgb-images/{video}/{number:05d}.jpg. [default: "
    "as its tables say]"
)


@Parameter(name="*")
@dataclass(frozen=True)
class VideoSource:
    """Which videos of a dataset, and where they lie."""

    reader: Annotated[str | None, Parameter(help=_READER)] = None
    split: Annotated[str | None, Parameter(help="A split of the dataset. [default: all videos]")] = None
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None
    films: Annotated[str, Parameter(help=_VIDEO_PATHS, show_default=False)] = ""

    def collect(self, paths: Sequence[Path], what: str = "the videos") -> VideoSet:
        """The videos behind some paths, see `tasks.videos.collect_videos`.

        Args:
            paths: one dataset, or videos and folders of videos.
            what: they are, in words.
        """
        with console.log_step(f"opening {what}"):
            return collect_videos(
                paths,
                reader=self.reader,
                split=self.split,
                media=self.media,
                pattern=self.films,
                read_set=open_dataset,
            )


ALL_VIDEOS = VideoSource()


# Which detector looks: one that is named; else the bundled one at synthetic videos, and at others a real one.

_EVENTS = (
    "Give tubes actions, locations, duplexes and events by the event head, from how boxes move. [default: "
    "with detectors of agents alone]"
)
EventsOption = Annotated[bool | None, Parameter(help=_EVENTS, negative="--no-events", show_default=False)]


def add_event_head(
    asked: bool | None,
    detector: Any,
    linker: LinkerConfig,
    fps: float | None = None,
    expect: bool | None = False,
) -> Any:
    """A detector with the event head behind it where that is wanted, and a word on it.

    Args:
        asked: as of `--events`.
        detector: any.
        linker: what its detections will be linked with.
        fps: of the source; None where it is not known.
        expect: as of `--expect`.
    """
    wrapped = setup.add_event_head(asked, detector, linker, fps, log_warmup, expect)
    if wrapped is not detector and wrapped.labels:
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


def select_detector(
    named: Sequence[Path], *, synthetic: bool, live: bool, looks: Looks, crowd: bool = False
) -> Choice:
    """The detector that was named, or the one that suits the source; offers to fetch one at a terminal.

    Args:
        named: paths, or names of the catalogue.
        synthetic: whether the source is a video of the simulator.
        live: whether it is a camera.
        looks: what was asked of sizes.
        crowd: whether a network of crowds is asked about what it finds.

    Raises:
        UsageError: if a name is not installed, or a size was asked of a detector that has its own.
    """
    return setup.select_detector(
        named,
        synthetic=synthetic,
        live=live,
        crowd=crowd,
        size=looks.size,
        tiles=looks.tiles,
        find_real=_find_real_detector,
    )


def _find_real_detector(live: bool) -> Path | None:
    """The installed detector that suits the source; else what is fetched now, where somebody says so."""
    found = setup.find_installed_detector(live=live)
    if found is not None:
        entry, path = found
        console.print_note(f"looking with {entry.name} ({entry.licence}); --weights chooses another detector")
        return path
    entry = find_entry(setup.FIRST)
    if not _asks(entry):
        console.print_note(
            f"no detector of real streets is installed: `roadaware models get {setup.FIRST}` fetches one"
        )
        return None
    try:
        get_model(entry, tell=console.print_note)
    except RoadawareError as error:  # without it the work goes on
        console.print_error(str(error))
        return None
    return find_installed_path(entry)


def _asks(entry: Entry) -> bool:
    """Whether somebody at a terminal wants the detector to be fetched."""
    if console.is_quiet() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    console.print_note(
        f"no detector of real streets is installed. Fetch {entry.name} now ({entry.size_mb:.0f} MB; licence: "
        f"{entry.licence})? [y/N]"
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")
