"""Pictures beside annotations: how large each is, by its first bytes, and which were looked at."""

from __future__ import annotations

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import Source
from roadaware.scenes.still_files import HEAD_BYTES, size_of

_ABSENT = "absent"
_NO_SIZE = "no PNG or JPEG whose first bytes tell a size; copy the file again"


def picture_size(source: Source, name: str, findings: Findings) -> tuple[int, int] | None:
    """Width and height of a picture; None where it is not there, or is damaged, which is refused.

    Args:
        source: where the set lies; it keeps in `glimpsed` what was seen.
        name: of the picture's file.
        findings: takes a file that is there and tells no size.
    """
    told = glimpse(source, name)
    source.glimpsed[name] = told
    if isinstance(told, str) and told != _ABSENT:
        findings.reject("files", name, "", told)
    return None if isinstance(told, str) else told


def glimpse(source: Source, name: str) -> tuple[int, int] | str:
    """Width and height of a picture, or why it tells none.

    Args:
        source: where the set lies.
        name: of the picture's file.
    """
    try:
        head = source.beginning(name, HEAD_BYTES)
    except InputError as error:
        return error.message if source.holds(name) else _ABSENT
    return size_of(head) or (_NO_SIZE if head else "the file is empty; copy it again")
