"""Files read one after another: one that cannot be read is refused, and the others are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings

if TYPE_CHECKING:
    from roadaware.scenes.readers import Progress


def take_each(
    names: Sequence[str],
    take: Callable[[str, Findings], None],
    findings: Findings,
    progress: Progress | None = None,
    unit: str = "files",
) -> list[InputError]:
    """Read files in their order, each whole or refused.

    Args:
        names: of the files.
        take: reads the file of a name, and tells what it meets to findings that are kept only if the whole
            file can be read.
        findings: of all files.
        progress: told how many files are done, of how many.
        unit: what `progress` is told that they are.

    Returns:
        the errors of the files that were refused.
    """
    errors: list[InputError] = []
    for done, name in enumerate(names, 1):
        found = Findings()
        try:
            take(name, found)
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            findings.merge(found)
        if progress is not None:
            progress(done, len(names), unit)
    return errors


def none_read(errors: Sequence[InputError]) -> InputError:
    """The error for files of which not one could be read, of whose errors there is at least one."""
    if len(errors) == 1:
        return errors[0]
    message = f"none of {len(errors)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)
