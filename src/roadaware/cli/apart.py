"""The paths of a command before it runs: each can be looked up, and no output is or lies in another path."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from roadaware.errors import DiskError, InputError, UsageError

_OUTPUTS = {"html": "--html", "folder": "--output", "page": "--output", "out": "--out"}
_DATA = ("path", "data")
_WHOLE = ("truth", "detections", "predictions", "original", "round1", "round2")
_DATA_FILES = {".xml", ".txt", ".csv", ".zip", ".parquet", ".json", ".pkl", ".npy", ".npz", ".pbtxt"}


def check_apart(arguments: Mapping[str, Any]) -> None:
    """Fail before anything is written where an output would damage an input.

    Args:
        arguments: of the command, by name, or by the name of a field where options come in groups; the
            outputs are `html`, `folder`, `page`, `out` and the shared `json`, any other path is an input.

    Raises:
        UsageError: if an output is an input or another output, or lies inside one.
        InputError, DiskError: if an input or an output has a name that cannot be looked up.
    """
    arguments = _spread(arguments)
    for _, path in _given(arguments):
        if reason := _out_of_reach(path):
            raise InputError(f"expected a readable path: {reason}", where=str(path), hint="Check the path.")
    written = dict(_written(arguments))
    for output in written.values():
        if reason := _out_of_reach(output):
            raise DiskError(f"{output} cannot be written: {reason}; choose another path")
    for output in written.values():
        for name, given in _given(arguments):
            real, input_ = _real(output), _real(given)
            if _damages(real, input_, whole=name in _DATA + _WHOLE):
                raise UsageError(
                    f"{output} would be written over the input {given}; name another place for it"
                )
            if name in _WHOLE and real.is_relative_to(input_):
                raise UsageError(f"{output} lies inside the input {given}; name another place for it")
    for (one, first), (two, second) in itertools.permutations(written.items(), 2):
        if _real(first).is_relative_to(_real(second)):
            raise UsageError(f"{one} {first} is, or lies in, {two} {second}; name a place outside it")


def _spread(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Groups of options as their fields; the shared ones stay together."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if name != "common" and is_dataclass(value) and not isinstance(value, type):
            found |= {field.name: getattr(value, field.name) for field in fields(value)}
        else:
            found[name] = value
    return found


def _written(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """The outputs that are files or folders, by what to call them."""
    from roadaware.scenes.disk import is_stream

    found = [("--json", getattr(arguments.get("common"), "json", None))]
    found += [(option, arguments.get(name)) for name, option in _OUTPUTS.items()]
    for option, path in found:
        if path is not None and str(path) != "-" and not is_stream(path):
            yield option, path


def _given(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """The inputs with the names of their arguments; `data` of the doctor is DATASET=PATH."""
    for name, value in arguments.items():
        if name in _OUTPUTS:
            continue
        if name == "data" and isinstance(value, str):
            value = Path(value.partition("=")[2])
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Path):
                yield name, item


def _damages(output: Path, given: Path, *, whole: bool) -> bool:
    """Whether writing an output would change an input.

    Args:
        output: what will be written.
        given: the input.
        whole: whether it is a data set, to which every file of its kinds belongs; else what runs list.
    """
    from roadaware.cli.folders import listed

    if output == given or (output.exists() and given.exists() and output.samefile(given)):
        return True
    if whole:
        belongs = output.suffix.lower() in _DATA_FILES or output.name == "meta.json"
        return belongs and output.is_file() and output.is_relative_to(given)
    inside = [folder for folder in output.parents if folder.is_relative_to(given)]
    return any(str(output.relative_to(folder)) in (listed(folder) or ()) for folder in inside)


def _out_of_reach(path: Path) -> str | None:
    """Why the system cannot say whether there is something at a path; None where it can."""
    try:
        path.stat()
    except OSError as error:
        return error.strerror if error.errno in (errno.ENAMETOOLONG, errno.EACCES) else None
    return None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
