"""The paths of a command before it runs: inputs can be looked up, outputs be written, and none is another."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from roadaware.cli.outputs import Output
from roadaware.errors import DiskError, InputError, UsageError

_RUNS = ("a", "b", "folders")
"""Inputs that are run folders, or folders of such: they own no more than what they list."""
_CLOSED = ("truth", "detections", "predictions", "original", "round1", "round2")
"""Inputs into whose folders nothing is written, not even something new."""
_AS_TEXT = ("source", "data", "semantics", "detections", "domains")
"""Options that name inputs in words: an address or a path, NAME=PATH, or several with commas between."""
_ONE_PATH = ("source",)
"""Those of them that are one path, whatever letters are in it."""


@dataclass(frozen=True)
class _Given:
    """A path among the arguments of a command: what it is called, and its mark where it is an output."""

    name: str
    path: Path
    output: Output | None = None


def check_paths(command: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Fail before anything is read or written where an output cannot be made, or would damage an input.

    Args:
        command: whose parameters, and fields of groups of options, say by an `Output` what they write.
        arguments: of the command, by the names of its parameters. Every path that is no output is an input.

    Raises:
        UsageError: if an output is or lies in an input or another output, or something stands in its place.
        InputError: if an input has a name that cannot be looked up.
        DiskError: if an output cannot be written.
    """
    found = list(_paths(get_type_hints(command, include_extras=True), arguments))
    overwrite = any(_switched(value) for value in (arguments, *arguments.values()))
    written = [(each, mark) for each in found if (mark := each.output) is not None and not _is_stream(each)]
    read = [each for each in found if each.output is None]
    for each in read:
        if reason := _out_of_reach(each.path):
            raise InputError(
                f"expected a readable path: {reason}", where=str(each.path), hint="Check the path."
            )
    for each, _ in written:
        if reason := _out_of_reach(each.path):
            raise DiskError(f"{each.path} cannot be written: {reason}; choose another path")
    for (output, _), given in itertools.product(written, read):
        _check_apart(output, given, overwrite=overwrite)
    for (one, _), (other, _) in itertools.permutations(written, 2):
        if _real(one.path).is_relative_to(_real(other.path)):
            raise UsageError(
                f"{one.name} {one.path} is, or lies in, {other.name} {other.path}; name a place outside it"
            )
    for each, mark in written:
        mark.check(each.path, overwrite=overwrite)


def _switched(value: Any) -> bool:
    return bool(value.get("overwrite") if isinstance(value, Mapping) else getattr(value, "overwrite", False))


def _paths(hints: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[_Given]:
    """The paths among arguments, those in groups of options too."""
    for name, value in arguments.items():
        if is_dataclass(value) and not isinstance(value, type):
            yield from _paths(get_type_hints(type(value), include_extras=True), vars(value))
            continue
        mark = _mark(hints.get(name))
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Path):
                yield _Given(name if mark is None else _shown(name), item, mark)
            elif isinstance(item, str) and name in _AS_TEXT:
                yield from (_Given(name, path) for path in _named(item))
                if name in _ONE_PATH and "://" not in item:
                    yield _Given(name, Path(item))


def _shown(name: str) -> str:
    """An output's option, as people say it."""
    return {"folder": "--output", "page": "--output"}.get(name, f"--{name}")


def _named(text: str) -> Iterator[Path]:
    """The paths that a text names."""
    for part in [] if "://" in text else text.split(","):
        if place := part.partition("=")[2] or part:
            yield Path(place)


def _mark(hint: Any) -> Output | None:
    """What an annotation says of an output."""
    if get_origin(hint) is Annotated:
        for mark in hint.__metadata__:
            if isinstance(mark, Output):
                return mark
    return next((mark for each in get_args(hint) if (mark := _mark(each)) is not None), None)


def _is_stream(each: _Given) -> bool:
    from roadaware.scenes.disk import is_stream

    return each.output is not None and each.output.stream and (str(each.path) == "-" or is_stream(each.path))


def _check_apart(output: _Given, given: _Given, *, overwrite: bool) -> None:
    """Refuse an output that would take something of an input away, or add to what is read as a whole."""
    real, source = _real(output.path), _real(given.path)
    elsewhere = "name another place for it"
    if _damages(real, source, whole=given.name not in _RUNS):
        raise UsageError(f"{output.path} would be written over the input {given.path}; {elsewhere}")
    if given.name in _CLOSED and real.is_relative_to(source):
        raise UsageError(f"{output.path} lies inside the input {given.path}; {elsewhere}")
    if overwrite and real.is_dir() and source.is_relative_to(real):
        raise UsageError(f"{output.path} would be replaced and holds the input {given.path}; {elsewhere}")


def _damages(output: Path, given: Path, *, whole: bool) -> bool:
    """Whether writing an output would change an input.

    Args:
        output: what will be written.
        given: the input.
        whole: whether all of a folder is the input, but pages that were written into it; else what runs list.
    """
    from roadaware.cli.folders import listed

    if output == given or (output.exists() and given.exists() and output.samefile(given)):
        return True
    if whole:
        return output.is_file() and output.suffix.lower() != ".html" and output.is_relative_to(given)
    inside = [folder for folder in output.parents if folder.is_relative_to(given)]
    return any(str(output.relative_to(folder)) in (listed(folder) or ()) for folder in inside)


def _out_of_reach(path: Path) -> str | None:
    """Why the system cannot say whether there is something at a path; None where it can."""
    try:
        path.stat()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return error.strerror
    except ValueError as error:  # a NUL in the name
        return str(error)
    # What lies below a missing folder the system does not look at.
    names = [len(os.fsencode(part)) for part in path.absolute().parts]
    too_long = max(names) > _LONGEST or len(names) > _DEEPEST or sum(names) + len(names) > _WHOLE
    return os.strerror(errno.ENAMETOOLONG) if too_long else None


_LONGEST, _DEEPEST, _WHOLE = 255, 255, 3800
"""Bytes of one name in every file system that is common; folders in one another; bytes of a path, with room
for the names of files in a folder."""


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
