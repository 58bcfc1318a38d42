"""The videos and tubes of a UCF101-24 file, checked one by one; boxes are left as the file has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Numbers
from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown

MOST_FRAMES = 1_000_000
_MOST_ALL_FRAMES = 50_000_000
_TOLD_EVERY = 250


@dataclass(frozen=True)
class RawTube:
    """One tube: the frames [start, end), and in each a box x, y, w, h in pixels, all four 1 too great.

    Args:
        video: place of its video among those that were taken.
        place: its place in the video's list.
        start: its first frame.
        end: the frame after its last.
        label: index in `classes`.
        boxes: (end - start, 4) as the file has them.
    """

    video: int
    place: int
    start: int
    end: int
    label: int
    boxes: Numbers


@dataclass(frozen=True)
class Raw:
    """What the file holds.

    Args:
        file: its name.
        classes: names of the actions, in order.
        names: of the videos, in the order of the file, which ranks equal scores.
        lengths: of the videos, in frames.
        train: whether each video is for training; the others are for test.
        tubes: by video and place.
    """

    file: str
    classes: tuple[str, ...]
    names: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    train: list[bool] = field(default_factory=list)
    tubes: list[RawTube] = field(default_factory=list)


class _RowError(Exception):
    """Why a video or a tube is refused."""


def read_raw(
    held: dict[str, Any], file: str, where: str, findings: Findings, progress: Progress | None
) -> Raw:
    """The videos and tubes of a file.

    Args:
        held: its three parts.
        file: its name, for what is refused.
        where: names it in errors.
        findings: counts videos and tubes and takes what is refused.
        progress: told how many videos are done, of how many.

    Raises:
        InputError: if a part is not what it should be, or no video can be taken.
    """
    classes, train, db = _classes(held["classes"], where), _names(held["trainvideos"], where), held["db"]
    if type(db) is not dict or not db:
        raise InputError("'db' should be a dict of videos, and have some", where=where)
    raw = Raw(file, classes)
    seen: set[str] = set()
    lost: list[tuple[str, str]] = []
    room = _MOST_ALL_FRAMES
    for done, (name, entry) in enumerate(db.items(), 1):
        try:
            video = _video_name(name, seen)
            length, listed = _video(entry, room)
        except _RowError as error:
            lost.append((str(name), str(error)))
        else:
            room -= length
            raw.names.append(video)
            raw.lengths.append(length)
            raw.train.append(name in train)
            _take_tubes(raw, listed, entry.get("label"), findings)
        if progress is not None and (done % _TOLD_EVERY == 0 or done == len(db)):
            progress(done, len(db), "videos")
    findings.read["videos"] += len(db)
    findings.reject_rows("videos", refusals(file, lost))
    if not raw.names:
        item, reason = lost[0]
        message = f"none of {len(db)} videos can be read; the first, {shown(item, 80)}: {reason}"
        raise InputError(message, where=where)
    absent = sorted(train - set(db))
    findings.warn("videos for training that have no annotations", absent[0] if absent else "", len(absent))
    return raw


def refusals(file: str, rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Items with the reasons why they were refused, as `Findings.reject_rows` takes them."""
    table = pl.DataFrame(rows, schema={"item": pl.String, "reason": pl.String}, orient="row")
    return table.with_columns(file=pl.lit(file), line=pl.lit(None, pl.Int64))


def _classes(listed: Any, where: str) -> tuple[str, ...]:
    listed = listed.tolist() if type(listed) is np.ndarray else listed
    good = type(listed) is list or type(listed) is tuple
    if not good or not listed or any(type(name) is not str for name in listed):
        raise InputError("'classes' should be a list of names", where=where)
    names = tuple(shown(name, 80) for name in listed)
    if len(set(names)) < len(names) or "Non_action" in names:
        raise InputError("'classes' holds a name twice, or the name Non_action", where=where)
    return names


def _names(listed: Any, where: str) -> set[str]:
    listed = listed.tolist() if type(listed) is np.ndarray else listed
    if type(listed) not in (list, tuple) or any(type(name) is not str for name in listed):
        raise InputError("'trainvideos' should be a list of names of videos", where=where)
    return set(listed)


def _video_name(name: Any, seen: set[str]) -> str:
    if type(name) is not str or not name:
        raise _RowError("the name of a video should be a text")
    video = shown(name, 255)
    if video in seen:
        raise _RowError(f"shows as '{video}', as another video does")
    seen.add(video)
    return video


def _video(entry: Any, room: int) -> tuple[int, list[Any]]:
    """Number of frames, which may be as many as there is room for, and list of tubes of a video."""
    if type(entry) is not dict or not {"annotations", "numf"} <= entry.keys():
        raise _RowError("should be a dict with 'annotations' and 'numf'")
    length, listed = _plain(entry["numf"]), entry["annotations"]
    if type(length) is not int or not 0 < length <= MOST_FRAMES:
        raise _RowError(
            f"'numf' should be a whole number of frames from 1 to {MOST_FRAMES}, not {length!r:.40}"
        )
    if length > room:
        raise _RowError(f"more than {_MOST_ALL_FRAMES} frames in all")
    if type(listed) not in (list, tuple):
        raise _RowError(f"'annotations' should be a list, not {type(listed).__name__}")
    return length, list(listed)


def _take_tubes(raw: Raw, listed: list[Any], of_video: Any, findings: Findings) -> None:
    """Add the tubes of the video that was taken last."""
    video, of_video = len(raw.names) - 1, _plain(of_video)
    if of_video is not None and type(of_video) is not int:
        findings.warn("videos whose label is no whole number", raw.names[-1])
        of_video = None
    lost: list[tuple[str, str]] = []
    for place, entry in enumerate(listed):
        item = f"{raw.names[-1]}, tube {place}"
        try:
            tube = _tube(entry, video, place, raw.lengths[-1], len(raw.classes), of_video)
        except _RowError as error:
            lost.append((item, str(error)))
            continue
        if of_video not in (None, tube.label):
            findings.warn("tubes whose action is not that of their video", item)
        raw.tubes.append(tube)
    findings.read["tubes"] += len(lost)
    if lost:
        findings.reject_rows("tubes", refusals(raw.file, lost))


def _tube(entry: Any, video: int, place: int, length: int, classes: int, of_video: Any) -> RawTube:
    if type(entry) is not dict or not {"sf", "ef", "boxes"} <= entry.keys():
        raise _RowError("should be a dict with 'label', 'sf', 'ef' and 'boxes'")
    start, end = _plain(entry["sf"]), _plain(entry["ef"])
    label, boxes = _plain(entry.get("label", of_video)), entry["boxes"]
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise _RowError(f"frames {start!r:.24}..{end!r:.24} of a video that has {length}")
    if type(label) is not int or not 0 <= label < classes:
        raise _RowError(f"label {label!r:.24}; there are {classes} classes")
    if type(boxes) is not np.ndarray or boxes.dtype.kind not in "uif" or boxes.shape[1:] != (4,):
        found = f"{boxes.dtype} {boxes.shape}" if type(boxes) is np.ndarray else type(boxes).__name__
        raise _RowError(f"'boxes' should be an array of rows of 4 numbers, not {found}")
    if len(boxes) != end - start:
        raise _RowError(f"{len(boxes)} boxes for the {end - start} frames {start}..{end - 1}")
    return RawTube(video, place, start, end, label, boxes)


def _plain(value: Any) -> Any:
    """A whole number that may stand in an array of one."""
    value = value.item() if type(value) is np.ndarray and value.size == 1 else value
    return int(value) if type(value) is float and value.is_integer() else value
