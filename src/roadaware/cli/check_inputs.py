"""What `roadaware check` is given: annotations in any form, limits, dictionaries and lists of words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, datasets
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.analysis.quality import Dictionary, ForbiddenWords, QualityConfig
    from roadaware.scenes.tables import Scenes

_LIMIT = 1 << 24


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


def kinds_of(pairs: Sequence[str] | None) -> dict[str, str] | None:
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


def config(
    edge_px: float, resolution: str, frames: float, frame_rate: str, *, any_reviewer: bool
) -> QualityConfig:
    """The limits as the command line gives them.

    Args:
        edge_px: of edges.
        resolution: WIDTHxHEIGHT at which it counts.
        frames: of starts and ends.
        frame_rate: frames per second of those, or `file`.
        any_reviewer: do not ask that reviewers differ.

    Raises:
        UsageError: if one of them makes no sense.
    """
    from roadaware.analysis.quality import QualityConfig

    sides = resolution.lower().split("x")
    if len(sides) != 2 or not all(side.isascii() and side.isdecimal() and len(side) < 7 for side in sides):
        raise UsageError(f"--resolution needs WIDTHxHEIGHT, such as 1280x720; got {resolution[:40]!r}")
    try:
        rate = None if frame_rate.strip().lower() == "file" else float(frame_rate)
    except ValueError as error:
        raise UsageError(f"--frame-rate needs a number or `file`; got {frame_rate[:40]!r}") from error
    return QualityConfig(
        edge_px=edge_px,
        resolution=(int(sides[0]), int(sides[1])),
        frames=frames,
        frame_rate=rate,
        reviewers_differ=not any_reviewer,
    )


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
