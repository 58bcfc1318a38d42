"""What `roadaware check` is given: annotations in any form, limits, dictionaries and lists of words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, datasets
from roadaware.cli.options import Several, Switch
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.analysis.quality import Dictionary, ForbiddenWords, QualityConfig
    from roadaware.scenes.tables import Scenes

_LIMIT = 1 << 24


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """How far versions may differ, and what is looked up."""

    edge_px: float = 8.0
    """Largest difference of an edge that passes, in pixels at --resolution."""
    resolution: str = "1280x720"
    """Resolution at which --edge-px counts; boxes of other sizes are brought to it."""
    frames: float = 2.0
    """Largest difference of a start or an end that passes, in frames at --frame-rate."""
    frame_rate: str = "5"
    """Frames per second of --frames; `file` for frames of the file."""
    dictionary: str | None = None
    """JSON of allowed labels by kind, {"action": [...], "predicate": [...]}; `none` to look nothing up."""
    any_reviewer: Annotated[bool, Switch] = False
    """Do not ask that a round was checked by somebody else."""

    def config(self) -> QualityConfig:
        """The limits of the check.

        Raises:
            UsageError: if one of them makes no sense.
        """
        from roadaware.analysis.quality import QualityConfig

        sides = self.resolution.lower().split("x")
        if len(sides) != 2 or not all(
            side.isascii() and side.isdecimal() and len(side) < 7 for side in sides
        ):
            raise UsageError(
                f"--resolution needs WIDTHxHEIGHT, such as 1280x720; got {self.resolution[:40]!r}"
            )
        try:
            rate = None if self.frame_rate.strip().lower() == "file" else float(self.frame_rate)
        except ValueError as error:
            raise UsageError(
                f"--frame-rate needs a number or `file`; got {self.frame_rate[:40]!r}"
            ) from error
        return QualityConfig(
            edge_px=self.edge_px,
            resolution=(int(sides[0]), int(sides[1])),
            frames=self.frames,
            frame_rate=rate,
            reviewers_differ=not self.any_reviewer,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Native:
    """How native files are read."""

    reader: str | None = None
    """Name of the reader of native files, such as label_studio; told from their content if left away."""
    kinds: Annotated[list[str] | None, Several] = None
    """For Label Studio: what a control labels, such as videolabel=action."""
    fps: float | None = None
    """For Label Studio: frames per second, where the export does not say."""

    def options(self, labels: Path | None) -> dict[str, Any]:
        """The options of the reader, None where not given.

        Args:
            labels: a label map.

        Raises:
            UsageError: if --kinds is not made of pairs.
        """
        return {"labels": labels, "kinds": _kinds(self.kinds), "fps": self.fps}


USUAL_LIMITS, USUAL_NATIVE = Limits(), Native()


def opened(path: Path, reader: str | None = None, options: Mapping[str, Any] | None = None) -> Scenes:
    """Annotations in any form: tables that were saved, or native files.

    Args:
        path: where they lie.
        reader: of native files; told from their content where None.
        options: of the reader, by name; None where not given.

    Raises:
        InputError: if they cannot be read, or nothing tells what they are.
        UsageError: if the reader takes no such option.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if datasets.is_saved(path):
        from roadaware.scenes.store import open_scenes

        with console.working(f"opening {path}"):
            return open_scenes(path)
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    from roadaware.scenes.readers import read, reader_named
    from roadaware.scenes.readers.sniff import sniff

    name = reader or sniff(path)
    lacking = [f"--{option}" for option in given if option not in reader_named(name).options]
    if lacking:
        raise UsageError(f"{', '.join(lacking)}: annotations of {name} take none; leave it away")
    with console.progress(f"reading {path.name}") as progress:
        # A label map lies outside of what the cache watches.
        return read(name, path, cache="labels" not in given, progress=progress, **given)


def dictionary_of(given: str | None) -> Dictionary | None:
    """The user's dictionary; an empty one for `none`; None for the usual one.

    Raises:
        InputError: if it is not lists of labels by kind.
    """
    from roadaware.analysis.quality import Dictionary
    from roadaware.scenes.disk import read_regular

    if given is None:
        return None
    if given.lower() == "none":
        return Dictionary({}, title="none")
    path = Path(given)
    wanted = 'Write {"action": ["running", ...], "predicate": [...], "sound": [...], "event": [...]}.'
    try:
        found = json.loads(read_regular(path, limit=_LIMIT).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"the dictionary cannot be read: {error.strerror}", where=given) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON in UTF-8: {error}", where=given, hint=wanted) from error
    lists = isinstance(found, dict) and all(isinstance(names, list) for names in found.values())
    if not lists or not all(isinstance(name, str) for names in found.values() for name in names):
        raise InputError("expected lists of labels by kind", where=given, hint=wanted)
    return Dictionary(found, title=path.name)


def words_of(path: Path | None) -> ForbiddenWords | None:
    """The user's list of forbidden words; None where none is given.

    Raises:
        InputError: if it cannot be read, or holds no word.
    """
    from roadaware.analysis.quality import ForbiddenWords
    from roadaware.scenes.disk import read_regular

    if path is None:
        return None
    try:
        lines = read_regular(path, limit=_LIMIT).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"the list of words cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("expected text in UTF-8", where=str(path), hint="Save the list as UTF-8.") from error
    try:
        return ForbiddenWords([line for line in lines if not line.lstrip().startswith("#")])
    except InputError as error:
        raise InputError(error.message, where=str(path), hint=error.hint) from error


def _kinds(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """Control to kind of label, out of CONTROL=KIND.

    Raises:
        UsageError: if one is not such a pair.
    """
    split = [pair.partition("=") for pair in pairs or ()]
    if not all(control and kind for control, _, kind in split):
        raise UsageError(
            f"--kinds needs CONTROL=KIND, such as videolabel=action; got {' '.join(pairs or ())}"
        )
    return {control: kind for control, _, kind in split} or None
