"""Arrays of two dimensions from a folder of .npy, one .npz or JSON: bounded, and never a pickle."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Numbers
from roadaware.errors import InputError
from roadaware.scenes.readers.corner_lists import LARGEST
from roadaware.scenes.readers.json import clean, decode, kind_of, members, no_collection
from roadaware.scenes.readers.source import FolderSource, confine, leads_out, read_file, shown

MOST_CELLS = 1 << 24
"""Cells of one map."""
_MOST_HEADER = 4096
_MOST_BYTES = 8 * MOST_CELLS + _MOST_HEADER
_MOST_FILES = 1_000_000
_DEEPEST = 6
_KINDS = "fiub"
_ENDING = ".npy"
_FOLDER = "write each map as an .npy file, or all as one .npz; only an empty folder claims nothing"
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    RuntimeError,
    ValueError,
    OSError,
)


class MapError(Exception):
    """Why one map is refused."""


class MapFiles:
    """Maps by name, each read when it is asked for.

    Args:
        path: a folder of `<name>.npy` at any depth, an `.npz` keyed by name, or JSON {name: [[...], ...]}.

    Raises:
        InputError: if it is none of these, or damaged as a whole.
    """

    def __init__(self, path: Path) -> None:
        self.where = shown(str(path))
        self._folder: FolderSource | None = None
        self._archive: zipfile.ZipFile | None = None
        self._arrays: dict[str, Numbers | str] = {}
        self._members: dict[str, Any] = {}
        if path.is_dir():
            self._folder = FolderSource(Path(os.path.realpath(path)))
            self._members = dict(_walk(self._folder))
            if not self._members and any(self._folder.entries()):
                raise InputError(f"a folder without any {_ENDING} file", where=self.where, hint=_FOLDER)
        elif path.suffix.lower() == ".npz":
            self._archive, self._members = _opened(path, self.where)
        else:
            self._arrays = _json(path, self.where)

    def __enter__(self) -> MapFiles:
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.close()

    @property
    def names(self) -> list[str]:
        """The names of all maps, in the order of the file, or sorted in a folder."""
        return list(self._arrays or self._members)

    def read(self, name: str) -> Numbers:
        """The map of that name, (rows, cells in a row), of any type of number.

        Raises:
            MapError: if it is damaged, too large, or no array of two dimensions.
        """
        if name in self._arrays:
            held = self._arrays[name]
            if isinstance(held, str):
                raise MapError(held)
            return held
        try:
            data = self._bytes(name)
        except InputError as error:
            raise MapError(error.message) from error
        except _ZIP_ERRORS as error:
            raise MapError(f"damaged: {shown(str(error)) or type(error).__name__}") from error
        return _array(data)

    def _bytes(self, name: str) -> bytes:
        if self._folder is not None:
            file = self._members[name]
            return read_file(confine(self._folder.path, file), self._folder.where(file), _MOST_BYTES)
        info = self._members[name]
        if self._archive is None or info.flag_bits & 0x1:
            raise MapError("encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise MapError("packed in an unusual way (only stored and deflated members are read)")
        if info.file_size > _MOST_BYTES:
            raise MapError(f"{info.file_size} bytes; a map has at most {_MOST_BYTES}")
        with self._archive.open(info) as stream:
            data = stream.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise MapError(f"the archive promises {info.file_size} bytes and holds {len(data)}")
        return data


def _walk(folder: FolderSource, inner: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Name and file of every map in a folder and those inside it."""
    files, folders = folder.entries(inner)
    for file in files:
        if file.endswith(_ENDING):
            full = f"{inner}/{file}" if inner else file
            yield clean(full.removesuffix(_ENDING)), full
    for each in folders if depth < _DEEPEST else ():
        yield from _walk(folder, f"{inner}/{each}" if inner else each, depth + 1)


def _opened(path: Path, where: str) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    try:
        archive = zipfile.ZipFile(path)
    except _ZIP_ERRORS as error:
        message = f"no whole .npz: {shown(str(error)) or type(error).__name__}"
        raise InputError(message, where=where, hint="write it again with numpy.savez") from error
    found: dict[str, zipfile.ZipInfo] = {}
    end, wrong = 0, ""
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.filename.removesuffix(_ENDING)
        if leads_out(info.filename) or name in found or info.header_offset < end or len(found) >= _MOST_FILES:
            wrong = (
                wrong or f"'{shown(info.filename)}' leads out of it, stands in it twice or overlaps another"
            )
        found[name] = info
        end = info.header_offset + 30 + info.compress_size
    if wrong:
        archive.close()
        raise InputError(f"the archive is not to be trusted: {wrong}", where=where)
    return archive, found


def _array(data: bytes) -> Numbers:
    """The array of an .npy file; its header is checked before any room is made.

    Raises:
        MapError: if it is no such file, or holds anything but numbers in two dimensions.
    """
    stream = io.BytesIO(data[: _MOST_HEADER + 16])
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise MapError(f"an .npy file of version {version[0]}.{version[1]}; 1.0 and 2.0 are read")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, by_columns, dtype = read(stream, max_header_size=_MOST_HEADER)
    except MapError:
        raise
    except Exception as error:  # the parser of headers raises whatever the text makes it raise
        raise MapError(f"no .npy file: {shown(str(error)) or type(error).__name__}") from error
    if dtype.hasobject or dtype.kind not in _KINDS or dtype.itemsize > 8 or dtype.names or dtype.subdtype:
        raise MapError(f"holds {shown(str(dtype), 40)}; a map holds plain numbers")
    sides = tuple(side for at, side in enumerate(shape) if side != 1 or at >= len(shape) - 2)
    if len(sides) != 2 or min(sides) < 1 or sides[0] * sides[1] > MOST_CELLS:
        raise MapError(f"a map has two dimensions and at most {MOST_CELLS} cells; the array is {shape}")
    if len(data) - stream.tell() != sides[0] * sides[1] * dtype.itemsize:
        raise MapError(f"an array {shape} of {dtype} with {len(data) - stream.tell()} bytes of content")
    flat = np.frombuffer(data, dtype, offset=stream.tell())
    return flat.reshape(sides, order="F" if by_columns else "C")


def _json(path: Path, where: str) -> dict[str, Numbers | str]:
    """The maps of a JSON file, or why one is none."""
    found: dict[str, Numbers | str] = {}
    with no_collection():
        for _, names, value in members(decode(read_file(path, where), where), where, lambda names: not names):
            if not names:
                message = f"expected an object of maps by name and found {kind_of(value)}"
                raise InputError(message, where=where, hint="or give a folder of .npy files, or an .npz")
            found[clean(names[0])] = _rows(value)
    return found


def _rows(value: Any) -> Numbers | str:
    """A list of rows of numbers as an array."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
        return "a map should be a list of rows, each a list of numbers"
    if len({len(row) for row in value}) > 1:
        return "the rows of a map should be of one length"
    if not all(set(map(type, row)) <= {int, float} for row in value):
        return "a map should hold numbers"
    if any(abs(number) > LARGEST for row in value for number in row if type(number) is int):
        return "a map should hold numbers of a usual size"
    return np.array(value, dtype=np.float64)
