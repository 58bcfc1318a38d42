"""Resuming: which finished parts still hold, by the files that their pictures were made of."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from roadaware.corner_cases import parts
from roadaware.corner_cases.opening import Captures, Moment
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.errors import UsageError
from roadaware.scenes.readers import source

MARKS = "marks"
"""What a part tells of the files of its pictures."""


def sources_head(semantics: SemanticSource, detections: DetectionSource) -> dict[str, str]:
    """What must not change between the parts of one result, beside set and order.

    Args:
        semantics: whose names of classes count here; its masks count part by part.
        detections: all of them count.
    """
    return {"classes_digest": semantics.digest, "detections_digest": detections.digest}


def marks_of(
    captures: Captures, semantics: SemanticSource, moments: Sequence[Moment], left: Collection[int]
) -> dict[str, Any]:
    """How the files of a part's pictures stand, for `holds`.

    Args:
        captures: of the set.
        semantics: of the same.
        moments: of the part.
        left: places among them of pictures that were left out.
    """

    def files(places: Iterable[int]) -> Iterator[Path]:
        for place in places:
            moment = moments[place]
            yield from captures.files(moment)
            yield from semantics.files(moment.video, moment.frame)

    made = (place for place in range(len(moments)) if place not in left)
    return {"left": sorted(left), "made": stamp(files(made)), "missed": stamp(files(sorted(left)))}


def holds(
    told: Mapping[str, Any], captures: Captures, semantics: SemanticSource, moments: Sequence[Moment]
) -> bool:
    """Whether a finished part needs not be made again: no file of a picture that was left out has changed.

    Args:
        told: by the part.
        captures: of the set.
        semantics: of the same.
        moments: of the part.

    Raises:
        UsageError: if the sweep, picture or mask of something that was proposed for has changed.
    """
    marks = told.get(MARKS)
    if not isinstance(marks, dict) or not isinstance(marks.get("left"), list):
        return False
    now = marks_of(captures, semantics, moments, frozenset(marks["left"]))
    if now["made"] != marks.get("made"):
        between = " to ".join(dict.fromkeys((shown(moments[0]), shown(moments[-1]))))
        what = "a sweep, picture or mask has changed since proposals were made of it"
        raise UsageError(f"{what}, in {between}; {parts.REMEDY}")
    return bool(now["missed"] == marks.get("missed"))


def shown(moment: Moment) -> str:
    """How a picture is called in messages.

    Args:
        moment: its.
    """
    return f"{source.shown(moment.video)}, frame {moment.frame}"


def stamp(paths: Iterable[Path]) -> str:
    """What changes when a file does: of names, sizes, times and whether they can be read.

    Args:
        paths: of files, be they there or not.
    """
    seen: list[tuple[str, int, int, bool]] = []
    for path in paths:
        try:
            status = path.stat()
            seen.append((str(path), status.st_size, status.st_mtime_ns, os.access(path, os.R_OK)))
        except (OSError, ValueError):
            seen.append((str(path), -1, -1, False))
    return source.digest(repr(seen).encode())
