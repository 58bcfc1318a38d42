"""The boxes of one video of a ROAD file as columns, and lists of label ids laid flat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, kind_of, quoted

BEYOND = 0.01
"""How far outside the image a corner may lie, in shares of it, and still be cut off at its edge."""
_MOST = (1 << 62) - 1


@dataclass(frozen=True)
class IdLists:
    """Lists of ids, one for each row, laid flat.

    Args:
        row: (ids) the row that an id belongs to; in order.
        value: (ids) what stood there; -1 for what is no whole number.
        told: place among the ids to how what is no whole number is written.
        absent: how many rows have no list.
    """

    row: Ints
    value: Ints
    told: dict[int, str]
    absent: int


@dataclass(frozen=True)
class Boxes:
    """The boxes that were taken, in the order of frames and, in one frame, of the file.

    Args:
        frame: (n,) from 0.
        key: (n,) the file's name of the box.
        corners: (n, 4) x1, y1, x2, y2 as shares of the image, inside it.
        uid: (n,) the track's name where the box gives one.
        ids: the file's kind to the ids of its labels.
        cut: how many reached over an edge by no more than `BEYOND`.
    """

    frame: Ints
    key: list[str]
    corners: Floats
    uid: list[str | None]
    ids: dict[str, IdLists]
    cut: int


def read_boxes(
    frames: Sequence[tuple[int, Mapping[str, Any]]], video: str, file: str, findings: Findings
) -> Boxes:
    """The boxes of a video's frames.

    Args:
        frames: numbers from 0 with their entries, in order.
        video: its name, for what is refused.
        file: the file's name, for what is refused.
        findings: counts the boxes and takes what is refused.
    """
    keys: list[str] = []
    entries: list[Any] = []
    counts: list[int] = []
    for number, frame in frames:
        annos = frame.get("annos")
        if annos is not None and not isinstance(annos, dict):
            item = f"{video}, frame {number + 1}"
            findings.reject("boxes", file, item, f"'annos' should be an object and is {kind_of(annos)}")
            annos = None
        counts.append(len(annos or ()))
        if annos:
            keys.extend(annos)
            entries.extend(annos.values())
    findings.read["boxes"] += len(keys)
    frame_of = np.repeat(np.array([number for number, _ in frames], dtype=np.int64), counts)
    corners, reasons = _corners(entries)
    kept = np.ones(len(keys), dtype=bool)
    kept[list(reasons)] = False
    refused = [(f"{video}, frame {frame_of[n] + 1}, {keys[n]}", reasons[n]) for n in sorted(reasons)]
    refuse(findings, "boxes", file, refused)
    if reasons:
        taken = np.flatnonzero(kept).tolist()
        keys, entries = [keys[n] for n in taken], [entries[n] for n in taken]
    inside = np.clip(corners[kept], 0, 1)
    cut = int((inside != corners[kept]).any(axis=1).sum())
    return Boxes(frame_of[kept], keys, inside, _uids(entries, video, findings), _ids(entries), cut)


def refuse(findings: Findings, table: str, file: str, rows: Sequence[tuple[str, str]]) -> None:
    """Refuse rows that were counted before.

    Args:
        findings: takes them.
        table: that they would have gone to.
        file: that holds them.
        rows: how each is called, and why it is refused.
    """
    if rows:
        items, reasons = ([row[k] for row in rows] for k in (0, 1))
        named = pl.DataFrame({"item": items, "reason": reasons})
        findings.reject_rows(table, named.with_columns(file=pl.lit(file), line=pl.lit(None, pl.Int64)))


def id_lists(column: Sequence[Any]) -> IdLists:
    """The lists of a column, laid flat; what is no list counts as one odd id, and nothing as none."""
    absent = 0
    if not set(map(type, column)) <= {list}:
        absent = sum(value is None for value in column)
        column = [[] if v is None else v if isinstance(v, list) else [v] for v in column]
    told: dict[int, str] = {}
    counts = np.fromiter(map(len, column), dtype=np.int64, count=len(column))
    flat: list[Any] = list(chain.from_iterable(column))
    if not set(map(type, flat)) <= {int} or (flat and not -_MOST <= min(flat) <= max(flat) <= _MOST):
        for place, value in enumerate(flat):
            if type(value) is not int or not -_MOST <= value <= _MOST:
                told[place], flat[place] = quoted(value), -1
    row = np.repeat(np.arange(len(column), dtype=np.int64), counts)
    return IdLists(row, np.array(flat, dtype=np.int64), told, absent)


def _corners(entries: Sequence[Any]) -> tuple[Floats, dict[int, str]]:
    """The boxes' numbers as they are written, and place to reason of those that cannot be taken."""
    given: list[Any] = [entry.get("box") if type(entry) is dict else None for entry in entries]
    reasons: dict[int, str] = {}
    if _plain(given):
        flat = list(chain.from_iterable(given))
    else:
        for place, (entry, box) in enumerate(zip(entries, given, strict=True)):
            if (reason := _fault(entry, box)) is not None:
                reasons[place] = reason
        flat = list(chain.from_iterable([0.0] * 4 if n in reasons else box for n, box in enumerate(given)))
    corners = np.array(flat, dtype=np.float64).reshape(-1, 4)
    inside = np.clip(corners, 0, 1)
    x1, y1, x2, y2 = inside.T
    beyond = ~((corners >= -BEYOND) & (corners <= 1 + BEYOND)).all(axis=1)
    wrong_way = ~((x1 < x2) & (y1 < y2))
    outside = set(np.flatnonzero(beyond).tolist())
    for place in np.flatnonzero(beyond | wrong_way).tolist():
        wrong = "lies outside the image" if place in outside else "is upside down or empty"
        reasons.setdefault(place, f"the box {corners[place].tolist()} {wrong}")
    return corners, reasons


def _plain(given: Sequence[Any]) -> bool:
    """Whether all are lists of four finite numbers of usual size."""
    if not set(map(type, given)) <= {list} or not set(map(len, given)) <= {4}:
        return False
    kinds = set(map(type, chain.from_iterable(given)))
    if kinds <= {float}:
        return True
    return kinds <= {float, int} and all(-_MOST < n < _MOST for n in chain.from_iterable(given))


def _fault(entry: Any, box: Any) -> str | None:
    """Why a box cannot be taken, None if it is four finite numbers."""
    if not isinstance(entry, dict):
        return f"should be an object and is {kind_of(entry)}"
    if not isinstance(box, list) or len(box) != 4:
        size = f"{len(box)} of them" if isinstance(box, list) else quoted(box)
        return f"'box' should be four numbers and is {size}"
    for number in box:
        if type(number) not in (int, float) or not -_MOST < number < _MOST:
            return f"'box' holds {quoted(number)}, which is no finite number of a box"
    return None


def _uids(entries: Sequence[Mapping[str, Any]], video: str, findings: Findings) -> list[str | None]:
    given = [entry.get("tube_uid") for entry in entries]
    odd = sum(not isinstance(uid, str | None) for uid in given)
    findings.warn("boxes whose tube_uid is no text", video, odd)
    return [clean(uid) if isinstance(uid, str) else None for uid in given]


def _ids(entries: Sequence[Mapping[str, Any]]) -> dict[str, IdLists]:
    """Every kind that some box has a list of ids for; `input_ids` and the like are kinds, too."""
    found: set[str] = set().union(*entries)
    keys = sorted(key for key in found if key.endswith("_ids"))
    return {key.removesuffix("_ids"): id_lists([entry.get(key) for entry in entries]) for key in keys}
