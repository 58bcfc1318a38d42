"""No output of a command may be one of its inputs, lie inside one, or be another output."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from roadaware.errors import UsageError

_OUTPUTS = {"html": "--html", "folder": "--output", "page": "--output"}


def check_apart(arguments: Mapping[str, Any]) -> None:
    """Fail before anything is written where an output would damage an input.

    Args:
        arguments: of the command, by name; the outputs are `html`, `folder`, `page` and the shared
            `json`, any other path is an input.

    Raises:
        UsageError: if an output is an input or another output, or lies inside one.
    """
    written = dict(_written(arguments))
    for output in written.values():
        for given in _given(arguments):
            if _damages(_real(output), _real(given)):
                raise UsageError(
                    f"{output} would be written over the input {given}; name another place for it"
                )
    for (one, first), (two, second) in itertools.permutations(written.items(), 2):
        if _real(first).is_relative_to(_real(second)):
            raise UsageError(f"{one} {first} is, or lies in, {two} {second}; name a place outside it")


def _written(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """The outputs that are files or folders, by what to call them."""
    from roadaware.scenes.disk import is_stream

    found = [("--json", getattr(arguments.get("common"), "json", None))]
    found += [(option, arguments.get(name)) for name, option in _OUTPUTS.items()]
    for option, path in found:
        if path is not None and str(path) != "-" and not is_stream(path):
            yield option, path


def _given(arguments: Mapping[str, Any]) -> Iterator[Path]:
    """The inputs; `data` of the doctor is DATASET=PATH."""
    for name, value in arguments.items():
        if name in _OUTPUTS:
            continue
        if name == "data" and isinstance(value, str):
            value = Path(value.partition("=")[2])
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Path) and item.exists():
                yield item


def _damages(output: Path, given: Path) -> bool:
    """Whether writing an output would change an input: of runs only the files that they list count."""
    from roadaware.cli.folders import listed
    from roadaware.cli.runs import is_run

    if output == given or (output.exists() and output.samefile(given)):
        return True
    if not output.is_relative_to(given):
        return False
    for folder in output.parents:
        names = listed(folder)
        if names is not None:
            return str(output.relative_to(folder)) in names
        if folder == given:
            break
    return not (given.is_dir() and any(is_run(path) for path in given.iterdir()))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
