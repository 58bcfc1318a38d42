"""Files of poses: pickles keyed by frame and pedestrian as published, npz and parquet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.pickles import load
from roadaware.scenes.readers.archive import ZIP_ERRORS, vet_members
from roadaware.scenes.readers.source import read_file, shown

MAX_BYTES = 1 << 30
_COLUMNS = ("name", "frame")
_TABLE_HINT = "a table of poses has `name`, `frame`, `video` where names repeat, and `joints` or `joints_px`"


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses as a file has them, m of k numbers.

    Args:
        video: (m) names of videos; None where the file does not tell them.
        name: (m) names of pedestrians.
        frame: (m,) numbers of frames.
        values: (m, k) joints, flattened.
        pixels: whether they are in pixels; shares of the picture otherwise.
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
    where = shown(str(path))
    if Path(path).is_dir():
        files = sorted(Path(path).glob("*.pkl"))
        if not files:
            raise InputError("no pickle of poses (*.pkl) is in this folder", where=where)
        parts = [_pickled(file) for file in files]
        return _joined(parts, where)
    kind = Path(path).suffix.lower()
    if kind in (".pkl", ".pickle"):
        return _pickled(Path(path))
    if kind == ".npz":
        return _table(_npz(Path(path)), where)
    if kind == ".parquet":
        return _table(_parquet(Path(path)), where)
    raise InputError("poses come as .pkl, .npz or .parquet", where=where)


def _pickled(path: Path) -> Poses:
    where = shown(str(path))
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
        message = f"poses are keyed <frame>_<pedestrian>, such as 00042_5_1_23; found '{shown(key)}'"
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
    where = shown(str(path))
    try:
        data = io.BytesIO(read_file(path, most=MAX_BYTES))
        with zipfile.ZipFile(data) as archive:
            vet_members(archive.infolist(), where)
        data.seek(0)
        with np.load(data, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (*ZIP_ERRORS, KeyError, TypeError, SyntaxError, MemoryError, TokenError) as error:
        raise InputError(f"no whole npz of plain arrays: {shown(str(error))}", where=where) from error


def _parquet(path: Path) -> dict[str, Any]:
    import polars as pl

    where = shown(str(path))
    try:
        table = pl.read_parquet(io.BytesIO(read_file(path, most=MAX_BYTES)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"no whole parquet file: {shown(str(error))}", where=where) from error
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


def _joined(parts: list[Poses], where: str) -> Poses:
    widths = sorted({part.values.shape[1] for part in parts})
    if len(widths) > 1:
        raise InputError(
            f"the pickles have poses of {widths} numbers; expected the same in each", where=where
        )
    told = [part.video for part in parts]
    video = None if any(v is None for v in told) else [name for v in told if v is not None for name in v]
    return Poses(
        video=video,
        name=[name for part in parts for name in part.name],
        frame=np.concatenate([part.frame for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        pixels=False,
        where=where,
    )
