"""UCF101-24: one human action per video as tubes, 3,194 videos, from the corrected annotations.

Singh, Saha, Sapienza, Torr and Cuzzolin, "Online real-time multiple spatiotemporal action localisation and
prediction", ICCV 2017; annotations for research use, github.com/gurkirt/corrected-UCF101-Annots; videos of
Soomro, Zamir and Shah, "UCF101", 2012.

Takes the file `pyannot_with_class_names.pkl`, or a folder or zip that holds it. It is a pickle and is read
as data: nothing in it is run. Images and videos are not needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats32, Ints, Numbers
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.pickles import load
from roadaware.io.sources import FileSource, Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

# The videos and tubes of a UCF101-24 file, checked one by one; boxes are left as the file has them.

MOST_FRAMES = 1_000_000
# Every frame becomes a row: a file that only promises long videos would fill the memory.
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
    """Content of the file.

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
        progress: called with the number of videos done and the total.

    Raises:
        InputError: if a part is not what it should be, or no video can be taken.
    """
    listed = held["classes"]
    listed = listed.tolist() if type(listed) is np.ndarray else listed
    good = type(listed) is list or type(listed) is tuple
    if not good or not listed or any(type(name) is not str for name in listed):
        raise InputError("'classes' should be a list of names", where=where)
    names = tuple(to_printable(name, 80) for name in listed)
    if len(set(names)) < len(names) or "Non_action" in names:
        raise InputError("'classes' holds a name twice, or the name Non_action", where=where)
    classes, train, db = names, _names(held["trainvideos"], where), held["db"]
    if type(db) is not dict or not db:
        raise InputError("'db' should be a dict of videos, and have some", where=where)
    raw = Raw(file, classes)
    seen: set[str] = set()
    lost: list[tuple[str, str]] = []
    room = _MOST_ALL_FRAMES
    for done, (name, entry) in enumerate(db.items(), 1):
        try:
            if type(name) is not str or not name:
                raise _RowError("the name of a video should be a text")
            video = to_printable(name, 255)
            if video in seen:
                raise _RowError(f"shows as '{video}', as another video does")
            seen.add(video)
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
    findings.reject_rows("videos", build_rejected_rows(file, lost))
    if not raw.names:
        item, reason = lost[0]
        message = f"none of {len(db)} videos can be read; the first, {to_printable(item, 80)}: {reason}"
        raise InputError(message, where=where)
    absent = sorted(train - set(db))
    findings.warn("videos for training that have no annotations", absent[0] if absent else "", len(absent))
    return raw


def build_rejected_rows(file: str, rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Items with the reasons why they were refused, as `Findings.reject_rows` takes them."""
    table = pl.DataFrame(rows, schema={"item": pl.String, "reason": pl.String}, orient="row")
    return table.with_columns(file=pl.lit(file), line=pl.lit(None, pl.Int64))


def _names(listed: Any, where: str) -> set[str]:
    listed = listed.tolist() if type(listed) is np.ndarray else listed
    if type(listed) not in (list, tuple) or any(type(name) is not str for name in listed):
        raise InputError("'trainvideos' should be a list of names of videos", where=where)
    return set(listed)


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
            length = raw.lengths[-1]
            classes = len(raw.classes)
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
            tube = RawTube(video, place, start, end, label, boxes)
        except _RowError as error:
            lost.append((item, str(error)))
            continue
        if of_video not in (None, tube.label):
            findings.warn("tubes whose action is not that of their video", item)
        raw.tubes.append(tube)
    findings.read["tubes"] += len(lost)
    if lost:
        findings.reject_rows("tubes", build_rejected_rows(raw.file, lost))


def _plain(value: Any) -> Any:
    """A whole number that may stand in an array of one."""
    value = value.item() if type(value) is np.ndarray and value.size == 1 else value
    return int(value) if type(value) is float and value.is_integer() else value


# From the tubes of a UCF101-24 file to tables: boxes in pixels of 320 x 240, frames with their action.

WIDTH_PX, HEIGHT_PX = 320, 240
# The published loader takes corners up to 1.01.
BEYOND = 0.01
"""How far outside the image a corner may lie, in shares of it, and still be cut off at its edge."""

_NO_BOX = "not one box that can be taken"


def build_ucf24_tables(raw: Raw, findings: Findings) -> dict[str, pl.DataFrame]:
    """The tables of all videos: tracks first, then for each the tube of its action, in the same order.

    Args:
        raw: what the file holds.
        findings: counts the boxes and takes those that cannot be taken.
    """
    names = pl.Series("video", raw.names, dtype=pl.String)
    lengths = np.array(raw.lengths, dtype=np.int64)
    tube, frame, corners = _boxes(raw, findings)
    kept = np.unique(tube)
    if len(kept) < len(raw.tubes):
        lost = np.setdiff1d(np.arange(len(raw.tubes)), kept)
        findings.reject_rows(
            "tubes", build_rejected_rows(raw.file, [(_item(raw, raw.tubes[n]), _NO_BOX) for n in lost])
        )
        tube = np.searchsorted(kept, tube)
    findings.read["tubes"] += len(raw.tubes) + len(kept)
    tubes = [raw.tubes[number] for number in kept]
    video = np.array([each.video for each in tubes], dtype=np.int64)[tube]
    label = np.array([each.label for each in tubes], dtype=np.int64)
    order = np.lexsort((tube, frame, video))
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(order)),
            "video": names.gather(video[order]),
            "frame": frame[order],
            "tube": tube[order],
            **{name: np.ascontiguousarray(corners[order, at]) for at, name in enumerate(CORNERS)},
        }
    )
    findings.read["frames"] += int(lengths.sum())
    return {
        "videos": _videos(raw, names),
        "frames": _frames(names, lengths).with_columns(annotated=pl.lit(value=True)),
        "boxes": boxes,
        "labels": boxes.select("box", kind=pl.lit("action"), label=pl.Series(label[tube[order]])),
        **_tubes(tubes, names, tube, frame),
        "frame_labels": _actions(names, lengths, tubes),
    }


def _boxes(raw: Raw, findings: Findings) -> tuple[Ints, Ints, Floats32]:
    """(n,) tube and frame of each box that can be taken, and (n, 4) its corners inside the image.

    The published loader takes 1 from all four of x, y, w, h, in single precision: x1 = x - 1 and
    x2 = x1 + w - 1. So a box of the file whose w is 1 is empty.
    """
    counts = np.array([len(each.boxes) for each in raw.tubes], dtype=np.int64)
    tube = np.repeat(np.arange(len(counts)), counts)
    first = np.array([each.start for each in raw.tubes], dtype=np.int64)
    frame = np.arange(len(tube)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    given = np.concatenate([np.zeros((0, 4), np.float32), *(_single(each.boxes) for each in raw.tubes)])
    corners = given - 1
    corners[:, 2:] += corners[:, :2]
    size = np.array([WIDTH_PX, HEIGHT_PX, WIDTH_PX, HEIGHT_PX], dtype=np.float32)
    inside = np.clip(corners, 0, size)
    with np.errstate(invalid="ignore"):
        within = (corners >= -BEYOND * size) & (corners <= (1 + BEYOND) * size)
        beyond = np.asarray(~within.all(axis=1))
        wrong = np.asarray(~((inside[:, 0] < inside[:, 2]) & (inside[:, 1] < inside[:, 3])))
    findings.read["boxes"] += len(tube)
    bad = np.flatnonzero(beyond | wrong)
    if len(bad):
        items = [f"{_item(raw, raw.tubes[tube[n]])}, frame {frame[n]}" for n in bad]
        lines = ["lies outside the image" if beyond[n] else "is upside down or empty" for n in bad]
        reasons = [f"the box {given[n].tolist()} {why}" for n, why in zip(bad, lines, strict=True)]
        findings.reject_rows("boxes", build_rejected_rows(raw.file, list(zip(items, reasons, strict=True))))
    good = np.asarray(~(beyond | wrong))
    return tube[good], frame[good], inside[good]


def _single(boxes: npt.NDArray[Any]) -> Floats32:
    """Single precision, in which whole numbers of pixels are exact."""
    with np.errstate(over="ignore"):
        return boxes.astype(np.float32)


def _item(raw: Raw, tube: RawTube) -> str:
    return f"{raw.names[tube.video]}, tube {tube.place}"


def _videos(raw: Raw, names: pl.Series) -> pl.DataFrame:
    count = len(raw.names)
    splits = [["train"] if train else ["test"] for train in raw.train]
    return pl.DataFrame(
        {
            "video": names,
            "width_px": [WIDTH_PX] * count,
            "height_px": [HEIGHT_PX] * count,
            "n_frames": raw.lengths,
            "splits": splits,
        }
    )


def _frames(names: pl.Series, lengths: Ints) -> pl.DataFrame:
    """`video` and `frame` of every frame of every video."""
    video = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.arange(len(video)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pl.DataFrame({"video": names.gather(video), "frame": frame})


def _actions(names: pl.Series, lengths: Ints, tubes: list[RawTube]) -> pl.DataFrame:
    """What happens in every frame: 0 for nothing, else 1 + the action of the last of its tubes.

    Args:
        names: of the videos.
        lengths: (videos,) in frames.
        tubes: those that were taken, with all their frames.
    """
    starts = np.cumsum(lengths) - lengths
    action = np.zeros(int(lengths.sum()), dtype=np.int64)
    for tube in tubes:
        first = int(starts[tube.video])
        action[first + tube.start : first + tube.end] = tube.label + 1
    return _frames(names, lengths).with_columns(kind=pl.lit("av_action"), label=pl.Series(action))


def _tubes(tubes: list[RawTube], names: pl.Series, tube: Ints, frame: Ints) -> dict[str, pl.DataFrame]:
    """`tubes` and `tube_labels`; spans leave out the frames whose box was refused.

    Args:
        tubes: those that were taken.
        names: of the videos.
        tube: (n,) number of each box's tube; in order.
        frame: (n,) its frame; in order within a tube.
    """
    # Numbers before the first box that no box has, so that it begins a piece.
    broken = (np.diff(tube, prepend=-1) != 0) | (np.diff(frame, prepend=-2) != 1)
    first = np.flatnonzero(broken)
    last = np.append(first, len(tube))[1:] - 1
    pieces = pl.DataFrame({"tube": tube[first], "low": frame[first], "high": frame[last] + 1})
    extents = pieces.group_by("tube", maintain_order=True).agg(
        start_frame=pl.col("low").min(),
        end_frame=pl.col("high").max(),
        spans=pl.concat_list("low", "high"),
    )
    places = pl.Series([str(each.place) for each in tubes], dtype=pl.String)
    tracks = extents.select(
        "tube",
        video=names.gather([each.video for each in tubes]),
        name=places,
        start_frame="start_frame",
        end_frame="end_frame",
    )
    actions = tracks.with_columns(
        pl.col("tube") + len(tubes),
        pl.format("{}-action", "name").alias("name"),
        parent=pl.col("tube"),
        kind=pl.lit("action"),
        spans=extents["spans"],
    )
    labels = pl.Series("label", [each.label for each in tubes], dtype=pl.Int64)
    return {
        "tubes": pl.concat([tracks, actions], how="diagonal"),
        "tube_labels": actions.select("tube", "kind", labels),
    }


VERSION = 3
BACKGROUND = "Non_action"
ANNOTATIONS = "pyannot_with_class_names.pkl"
_NAME = re.compile(r"pyannot.*\.pkl", re.IGNORECASE)
_WANTED = f"UCF101-24 needs its corrected annotations, a file '{ANNOTATIONS}',"
_HINT = "Point at the file, or the folder or zip that holds it."
_NATIVE = {"agentness": "action_ness", "action": "action", "av_action": "av_action"}


def find(path: Path) -> Source:
    """The annotation file at `path`: the file itself, or a folder or zip with it.

    Raises:
        DatasetNotFoundError: if there is none, or several and none has the usual name.
        InputError: if the path cannot be read.
    """
    source = find_source(path, lambda found: bool(inputs(found)), _WANTED, _HINT, suffix=".pkl")
    names = inputs(source)
    if len(names) > 1:
        source.close()
        held = ", ".join(to_printable(name) for name in names)
        raise DatasetNotFoundError(
            f"{to_printable(str(path))} holds several files of annotations: {held}. {_HINT}"
        )
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    if isinstance(source, FileSource):
        return [source.name]
    names = [name for name in source.files("", ".pkl") if _NAME.fullmatch(name)]
    return [ANNOTATIONS] if ANNOTATIONS in names else names


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos of the file; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Every frame counts as annotated, also those without action: their `av_action` is `Non_action`.

    Raises:
        InputError: if the file is damaged, holds anything but arrays and plain containers, or no video in it
            can be read.
    """
    (name,) = inputs(source)
    where = source.where(name)
    findings = Findings()
    held = _held(load(source.read(name), where), where)
    raw = read_raw(held, name, where, findings, progress)
    findings.read["files"] += 1
    return Scenes(
        **build_ucf24_tables(raw, findings), rejected=findings.table(), meta=_meta(source, raw, findings)
    )


def _held(held: Any, where: str) -> dict[str, Any]:
    """The file's three parts.

    Raises:
        InputError: if it is something else.
    """
    if type(held) is not dict or not {"db", "trainvideos", "classes"} <= held.keys():
        found = (
            f"keys {[to_printable(str(key), 40) for key in held][:5]}"
            if type(held) is dict
            else type(held).__name__
        )
        message = f"expected a dict with 'db', 'trainvideos' and 'classes', found {found}"
        raise InputError(message, where=where, hint=_HINT)
    return held


def _meta(source: Source, raw: Raw, findings: Findings) -> Meta:
    return findings.build_meta(
        READERS["ucf24"],
        {
            "agentness": (_NATIVE["agentness"],),
            "action": raw.classes,
            "av_action": (BACKGROUND, *raw.classes),
        },
        source.contents([raw.file]),
        native_kinds=_NATIVE,
        children={},
    )
