"""Fitted models on disk: named arrays and a few facts in one archive, read without running anything in it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DamagedError, InputError
from roadaware.scenes.disk import atomic_write

_FACTS = "facts.json"
_LIMIT_BYTES = 256 << 20
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, KeyError, ValueError, EOFError, OSError, RuntimeError,
)  # fmt: skip
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write arrays and JSON-ready facts; the same content gives the same bytes.

    Raises:
        DiskError: if the file cannot be written.
    """
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(_FACTS), json.dumps(dict(facts), sort_keys=True))
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    atomic_write(path, whole.getvalue())


def open_arrays(path: Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and facts that `save_arrays` wrote.

    Raises:
        InputError: if there is no such file.
        DamagedError: if it is not whole, holds objects, or says it is larger than a model can be.
    """
    if not path.is_file():
        raise InputError("expected a file of a fitted model and found none", where=str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(info.file_size for info in archive.infolist())
            if total > _LIMIT_BYTES:
                raise DamagedError(
                    f"unpacks to {total:,} bytes, more than any model of ours", where=str(path)
                )
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        facts = json.loads(members.pop(_FACTS))
        arrays = {name.removesuffix(".npy"): _array(data) for name, data in members.items()}
    except _DAMAGE as error:
        raise DamagedError(
            f"not a fitted model of ours: {error}", where=str(path), hint="fit it again and save it"
        ) from error
    if not isinstance(facts, dict):
        raise DamagedError(
            "its facts are not a JSON object", where=str(path), hint="fit it again and save it"
        )
    return arrays, facts


def _array(data: bytes) -> npt.NDArray[Any]:
    """One array, after its header was found to promise exactly the bytes that are there."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        raise ValueError(f"array format {version} is not known")
    shape, fortran, dtype = _READERS[version](stream)
    rest = data[stream.tell() :]
    count = 1
    for length in shape:
        count *= length
    if dtype.hasobject or fortran or count * dtype.itemsize != len(rest):
        raise ValueError(f"an array promises {count} numbers of {dtype} and holds {len(rest)} bytes")
    return np.frombuffer(rest, dtype=dtype).reshape(shape).copy()
