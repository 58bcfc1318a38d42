"""VGG-SS: sound sources in images, 5,158 items of 221 classes of sound.

Chen, Xie, Afouras, Nagrani, Vedaldi and Zisserman, "Localizing visual sounds the hard way", CVPR 2021;
robots.ox.ac.uk/~vgg/research/lvs. The annotations of VGGSound, which it extends, are CC BY 4.0.

Takes the file `vggss.json`, or a folder or zip that holds it. Boxes are shares of the image, from 0 to 1,
kept as they are: images count as 1 x 1. Images and sounds are not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings
from roadaware.datasets.sound_tables import Heard, build_no_sounds_error, build_sound_tables
from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    describe_type,
    escape_surrogates,
    format_value,
    parse,
    parse_corners,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.tables import Scenes

VERSION = 1
LARGEST = 2.0
"""Numbers beyond this are no shares of an image."""
_WANTED = "VGG-SS needs its annotations, a file 'vggss.json',"
_HINT = "Point at the file, or the folder or zip that holds it."
_NUMBERS = "in pixels or broken: boxes should be shares of the image, 0..1"


class _RowError(Exception):
    """Why an item is refused."""


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return source.files("", ".json")


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All items of all files; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A box that is upside down is refused, its item kept: to the published evaluator such a box is empty.

    Raises:
        InputError: if no file, no item, or no box can be read.
    """
    findings = Findings()
    errors: list[InputError] = []
    sounds: dict[str, Heard] = {}
    names = inputs(source)
    for done, name in enumerate(names, 1):
        where = source.where(name)
        try:
            with pause_garbage_collection():
                _take(parse(decode(source.read(name), where), where), name, where, sounds, findings)
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
        if progress is not None:
            progress(done, len(names), "files")
    if errors and not sounds:
        raise build_no_sounds_error(errors)
    tables, vocabularies = build_sound_tables(list(sounds.values()), (1, 1), findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["vggss"], vocabularies, source.contents(names), unit_pictures=True),
    )


def _take(value: Any, file: str, where: str, sounds: dict[str, Heard], findings: Findings) -> None:
    """Add the items of one file by the names of their videos.

    Raises:
        InputError: if it is no list, or not one item or box can be taken.
    """
    if not isinstance(value, list):
        message = f"there is no list of items: the top should be a list and is {describe_type(value)}"
        raise InputError(message, where=where, hint=_HINT)
    found: dict[str, Heard] = {}
    part = Findings()
    for place, each in enumerate(value):
        try:
            name, label, boxes = _item(each)
            if to_printable(name, 255) in sounds or to_printable(name, 255) in found:
                raise _RowError("a second reading of this file; the first is kept")
        except _RowError as error:
            held = each.get("file") if isinstance(each, dict) else None
            part.reject("sounds", file, held if isinstance(held, str) else f"place {place}", str(error))
        else:
            found[to_printable(name, 255)] = Heard(name, _corners(name, boxes, file, part), label=label)
    taken = sum(len(each.corners) for each in found.values())
    if not found or (not taken and part.read["boxes"]):
        lost = part.table().filter(pl.col("table") == ("boxes" if found else "sounds")).head(1).to_dicts()
        text = f"; the first, {lost[0]['item']}: {lost[0]['reason']}" if lost else ""
        what = f"boxes of {len(found)} items" if found else f"{len(value)} items"
        raise InputError(f"none of the {what} can be read{text}", where=where)
    sounds |= found
    findings.merge(part)


def _corners(name: str, boxes: list[Any], file: str, findings: Findings) -> Floats:
    """(n, 4) the boxes of one item that can be taken."""
    corners, bad = parse_corners(boxes, sized=False, largest=LARGEST)
    for number, reason in bad.items():
        text = reason if "upside" in reason else f"{reason}; {_NUMBERS}"
        findings.reject("boxes", file, f"{name}, frame 0, box {number}", text)
    kept = corners[[n for n in range(len(boxes)) if n not in bad]]
    findings.warn("items without a box, kept", name, int(not len(kept)))
    beyond = (kept < 0).any(axis=1) | (kept > 1).any(axis=1)
    findings.warn("boxes that reach out of their image, kept as they are", name, int(beyond.sum()))
    return kept


def _item(each: Any) -> tuple[str, str, list[Any]]:
    """Name, class and boxes of an item."""
    if not isinstance(each, dict):
        raise _RowError(f"expected an object with 'file', 'class' and 'bbox' and found {describe_type(each)}")
    name, label, boxes = each.get("file"), each.get("class"), each.get("bbox")
    if not isinstance(name, str) or not name:
        raise _RowError(f"'file' should be a name and is {format_value(name)}")
    if not isinstance(label, str) or not label.strip():
        raise _RowError(f"'class' should be a text and is {format_value(label)}")
    if not isinstance(boxes, list):
        raise _RowError(f"'bbox' should be a list of boxes and is {describe_type(boxes)}")
    return escape_surrogates(name), escape_surrogates(label), boxes
