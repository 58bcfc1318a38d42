"""Poses: 18 joints in OpenPose's order as shares of the image, from the tables or from a file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.io.parquet import read_parquet
from roadaware.io.pickles import load
from roadaware.io.sources import ZIP_ERRORS, check_archive_members, read_file, to_printable
from roadaware.tasks.crossing_inputs.footage import Media
from roadaware.tasks.crossing_inputs.observations import Observations

# Files of poses: pickles keyed by frame and pedestrian as published, npz and parquet.

MAX_BYTES = 1 << 30
_COLUMNS = ("name", "frame")
_TABLE_HINT = "a table of poses has `name`, `frame`, `video` where names repeat, and `joints` or `joints_px`"


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses as a file has them, m of k numbers.

    Args:
        video: (m) names of videos; None where the file lacks them.
        name: (m) names of pedestrians.
        frame: (m,) numbers of frames.
        values: (m, k) joints, flattened.
        pixels: whether they are in pixels; shares of the image otherwise.
        where: the file.
    """

    video: list[str] | None
    name: list[str]
    frame: Ints
    values: Floats
    pixels: bool
    where: str


def read_poses(path: Path) -> Poses:
    """The poses of a file, or of all pickles in a folder.

    A pickle is a dictionary from video to a dictionary from `<frame>_<pedestrian>` to 36 shares, and its
    name ends with `_<set>.pkl`, as PIE's do; or that inner dictionary alone.

    Args:
        path: a .pkl, .npz or .parquet file, or a folder of the first.

    Raises:
        InputError: if nothing is there, a file is damaged or holds something else.
    """
    where = to_printable(str(path))
    if Path(path).is_dir():
        files = sorted(Path(path).glob("*.pkl"))
        if not files:
            raise InputError("no pickle of poses (*.pkl) is in this folder", where=where)
        parts = [_read_pickle(file) for file in files]
        widths = sorted({part.values.shape[1] for part in parts})
        if len(widths) > 1:
            raise InputError(
                f"the pickles have poses of {widths} numbers; expected the same in each", where=where
            )
        videos = [part.video for part in parts]
        video = (
            None if any(v is None for v in videos) else [name for v in videos if v is not None for name in v]
        )
        return Poses(
            video=video,
            name=[name for part in parts for name in part.name],
            frame=np.concatenate([part.frame for part in parts]),
            values=np.concatenate([part.values for part in parts]),
            pixels=False,
            where=where,
        )
    kind = Path(path).suffix.lower()
    if kind in (".pkl", ".pickle"):
        return _read_pickle(Path(path))
    if kind == ".npz":
        return _table(_npz(Path(path)), where)
    if kind == ".parquet":
        return _table(_parquet(Path(path)), where)
    raise InputError("poses come as .pkl, .npz or .parquet", where=where)


def _read_pickle(path: Path) -> Poses:
    where = to_printable(str(path))
    held = load(read_file(path, most=MAX_BYTES), where)
    if not isinstance(held, dict) or not held:
        raise InputError("expected a dictionary of poses", where=where)
    part = path.stem.rpartition("_")[2]
    rows = list(_rows(held, part, where))
    if not rows:
        raise InputError("the pickle holds no pose", where=where)
    nested = all(row[0] is not None for row in rows)
    return Poses(
        video=[str(row[0]) for row in rows] if nested else None,
        name=[row[1] for row in rows],
        frame=np.array([row[2] for row in rows], dtype=np.int64),
        values=_values([row[3] for row in rows], where),
        pixels=False,
        where=where,
    )


def _rows(held: dict[Any, Any], part: str, where: str) -> Iterator[tuple[str | None, str, int, Any]]:
    """Video, pedestrian, frame and joints, one by one."""
    for outer, inner in held.items():
        if isinstance(inner, dict):
            video = f"{part}/{_text(outer)}" if part.startswith("set") else _text(outer)
            for key, joints in inner.items():
                yield (video, *_key(_text(key), where), joints)
        else:
            yield (None, *_key(_text(outer), where), inner)


def _text(key: Any) -> str:
    return key.decode("latin-1") if isinstance(key, bytes) else str(key)


def _key(key: str, where: str) -> tuple[str, int]:
    frame, _, name = key.partition("_")
    if not (frame.isascii() and frame.isdigit() and len(frame) < 10 and name):
        message = f"poses are keyed <frame>_<pedestrian>, such as 00042_5_1_23; found '{to_printable(key)}'"
        raise InputError(message, where=where)
    return name, int(frame)


def _values(rows: list[Any], where: str) -> Floats:
    """(m, k) of lists of numbers of one length."""
    expected = "expected a list of finite numbers for each pose"
    others = {type(row).__name__ for row in rows if not isinstance(row, list | tuple | np.ndarray)}
    if others:
        raise InputError(f"{expected}, found {', '.join(sorted(others))}", where=where)
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        lengths = sorted({len(row) for row in rows})[:5]
        raise InputError(f"{expected}, as many in each; found {lengths}", where=where) from error
    if values.ndim < 2 or np.isinf(values).any():
        raise InputError(expected, where=where)
    return values.reshape(len(values), -1)


def _npz(path: Path) -> dict[str, Any]:
    where = to_printable(str(path))
    try:
        data = io.BytesIO(read_file(path, most=MAX_BYTES))
        with zipfile.ZipFile(data) as archive:
            check_archive_members(archive.infolist(), where)
        data.seek(0)
        with np.load(data, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (*ZIP_ERRORS, KeyError, TypeError, SyntaxError, MemoryError, TokenError) as error:
        raise InputError(f"no whole npz of plain arrays: {to_printable(str(error))}", where=where) from error


def _parquet(path: Path) -> dict[str, Any]:
    where = to_printable(str(path))
    try:
        table = read_parquet(read_file(path, most=MAX_BYTES))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"no whole parquet file: {to_printable(str(error))}", where=where) from error
    return {name: table[name].to_list() for name in table.columns}


def _table(columns: dict[str, Any], where: str) -> Poses:
    """Poses of the columns of a table."""
    joints = [name for name in ("joints", "joints_px") if name in columns]
    lost = [name for name in _COLUMNS if name not in columns]
    if lost or len(joints) != 1:
        message = f"found the columns {sorted(columns)}"
        raise InputError(message, where=where, hint=_TABLE_HINT)
    name = [str(item) for item in columns["name"]]
    values = _values(list(columns[joints[0]]), where)
    frame = np.asarray(columns["frame"])
    video = [str(item) for item in columns["video"]] if "video" in columns else None
    if frame.dtype.kind not in "iu" or not len(name) == len(frame) == len(values) == len(video or name):
        message = "expected whole numbers of frames and columns of one length"
        raise InputError(message, where=where, hint=_TABLE_HINT)
    return Poses(video, name, frame.astype(np.int64), values, joints[0] == "joints_px", where)


NEEDS = "boxes.joints (the simulator), or a file of poses (media.poses)"
JOINTS = (
    "nose",
    "neck",
    "right_shoulder",
    "right_elbow",
    "right_wrist",
    "left_shoulder",
    "left_elbow",
    "left_wrist",
    "right_hip",
    "right_knee",
    "right_ankle",
    "left_hip",
    "left_knee",
    "left_ankle",
    "right_eye",
    "left_eye",
    "right_ear",
    "left_ear",
)
"""OpenPose's joints in its order, of the 18 that it finds after COCO."""
_NECK = 1
_SHOULDERS = (5, 6)
_OF_COCO = (0, 0, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)
"""For each of JOINTS its place among COCO's 17; the neck is put in afterwards."""
_LAYOUTS = {51: (17, 3), 34: (17, 2), 54: (18, 3), 36: (18, 2)}


def encode_pose(seen: Observations, media: Media | None, form: str = "") -> Floats:
    """(n, t, 36) x and y of `JOINTS`, as shares of the image or of the box (`pose:box`).

    A joint that is not seen, or stands at (0, 0) as OpenPose writes what it did not find, is NaN; so are all
    joints of a box without a pose.

    Args:
        seen: n observations.
        media: its `poses` is a file; the joints of the tables where it has none.
        form: empty or `box`.

    Raises:
        InputError: if there are no poses, or they have other joints.
    """
    path = media.poses if media is not None else None
    held = _of_tables(seen) if path is None else _of_file(seen, path)
    if form == "box":
        corners = seen.corners_px / np.tile(seen.size_px, 2)[:, None]
        sides = np.maximum(corners[..., 2:] - corners[..., :2], 1 / seen.size_px[:, None])
        held = (held - corners[..., None, :2]) / sides[..., None, :]
    return held.reshape(*seen.frame.shape, -1)


def _of_tables(seen: Observations) -> Floats:
    """(n, t, 18, 2) from the joints of the boxes."""
    boxes = seen.scenes.boxes
    if "joints" not in boxes.columns or boxes["joints"].null_count() == len(boxes):
        message = f"pose reads {NEEDS}; these boxes have no joints"
        raise InputError(
            message,
            hint="samples.poses of a recipe, Media(poses=...) in Python, names a pickle, npz or parquet file",
        )
    rows, place = np.unique(seen.box_row, return_inverse=True)
    column = boxes["joints"][rows]
    # (m, k) numbers of a column of lists, NaN rows where null
    lists = column.cast(pl.List(pl.Float64))
    lengths = lists.list.len().drop_nulls().unique().to_list()
    if len(lengths) > 1:
        raise InputError(f"boxes.joints has rows of {sorted(lengths)} numbers; expected as many in each")
    width = lengths[0] if lengths else 36
    values = np.full((len(lists), width), np.nan)
    known = lists.is_not_null().to_numpy()
    values[known] = lists.drop_nulls().explode().to_numpy().reshape(-1, width)
    joints = convert_to_openpose(values, "boxes.joints")
    # (n,) for each distinct box a sample that observes it
    sample = np.empty(len(rows), dtype=np.int64)
    sample[place.reshape(-1)] = np.repeat(np.arange(len(seen)), seen.box_row.shape[1])
    joints /= seen.size_px[sample][:, None]
    return np.asarray(joints[place.reshape(seen.box_row.shape)])


def convert_to_openpose(values: Floats, where: str) -> Floats:
    """(m, 18, 2) joints in OpenPose's order, NaN where not seen.

    The neck of COCO's 17 joints is the middle of the shoulders.

    Args:
        values: (m, k) flattened joints: 18 of OpenPose or 17 of COCO, with x and y, or x, y and how well each
            is seen, at most 0 where it is not.
        where: names them in messages.

    Raises:
        InputError: if there are others than 18 or 17 joints.
    """
    width = values.shape[1]
    if width not in _LAYOUTS:
        ways = [f"{width // each} joints of {each}" for each in (2, 3) if width % each == 0]
        text = f"{width} numbers" + (f", {' or '.join(ways)} each" if ways else "")
        raise InputError(
            f"expected 18 joints of OpenPose or 17 of COCO, found {text}",
            where=where,
            hint="joints of other bodies (BODY_25, 133 of the whole body) must be cut down to these first",
        )
    n_joints, each = _LAYOUTS[width]
    joints = values.reshape(-1, n_joints, each)
    # OpenPose writes (0, 0) for a joint that it did not find.
    lost = (joints[..., :2] == 0).all(axis=-1)
    if each == 3:
        lost |= joints[..., 2] <= 0
    found = np.where(lost[..., None], np.nan, joints[..., :2])
    if n_joints == len(JOINTS):
        return found
    ordered = found[:, _OF_COCO]
    ordered[:, _NECK] = found[:, _SHOULDERS].mean(axis=1)
    return np.asarray(ordered)


def _of_file(seen: Observations, path: Path) -> Floats:
    """(n, t, 18, 2) of the poses of a file, found by video, pedestrian and frame."""
    held = read_poses(path)
    joints = convert_to_openpose(held.values, held.where)
    owner = _owners(held, seen)
    if (owner < 0).all():
        shown = f"'{held.name[0]}' in frame {held.frame[0]}" if len(held.name) else "nothing"
        message = (
            f"none of {len(held.name):,} poses is of a pedestrian of these scenes; the first is of {shown}"
        )
        raise InputError(message, where=held.where)
    stride = 1 + max(int(held.frame.max()), int(seen.frame.max(initial=0)))
    key = np.where(owner >= 0, owner * stride + held.frame, -1)
    order = np.argsort(key, kind="stable")
    asked = seen.samples["tube"].to_numpy()[:, None] * stride + seen.frame
    place = order[np.minimum(np.searchsorted(key, asked, sorter=order), len(key) - 1)]
    found = np.where((key[place] == asked)[..., None, None], joints[place], np.nan)
    if held.pixels:
        found = found / seen.size_px[:, None, None]
    return np.asarray(found)


def _owners(held: Poses, seen: Observations) -> Ints:
    """(m,) the tube of each pose, -1 where the scenes have no such pedestrian."""
    tubes = seen.scenes.tubes.filter(pl.col("tube").is_in(seen.samples["tube"].unique().to_list())).select(
        "tube", pl.col("video").cast(pl.String), pl.col("name").cast(pl.String)
    )
    if held.video is None:
        twice = sorted(tubes.filter(pl.col("name").is_duplicated())["name"].unique().to_list())
        if twice:
            message = f"the poses name no videos, and {twice[:3]} are pedestrians of several"
            raise InputError(message, where=held.where)
        poses = pl.DataFrame({"name": held.name}, schema={"name": pl.String})
        found = poses.join(tubes, on="name", how="left", maintain_order="left")
    else:
        # PIE's videos are called set05/video_0001; JAAD's video_0001, although its poses say set01.
        known = set(tubes["video"].to_list())
        video = [name if name in known else name.rpartition("/")[2] for name in held.video]
        poses = pl.DataFrame({"video": video, "name": held.name})
        found = poses.join(tubes, on=["video", "name"], how="left", maintain_order="left")
    return found["tube"].fill_null(-1).cast(pl.Int64).to_numpy()
