"""Named arrays and a few facts in one archive, read without running anything in it."""

from __future__ import annotations

import io
import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DamagedError, InputError
from roadaware.io.files import write_atomically
from roadaware.io.json import parse
from roadaware.io.sources import check_archive_members, read_file, to_printable

_FACTS = "facts.json"
_LIMIT_BYTES = 256 << 20
_MOST_MEMBERS = 10_000
_REFIT = "fit it again and save it"
Held = tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, KeyError, ValueError, EOFError, OSError, RuntimeError,
    TypeError, IndexError, OverflowError, MemoryError, AttributeError, RecursionError, SyntaxError,
    tokenize.TokenError, lzma.LZMAError,
)  # fmt: skip
"""What damage ends as while an archive is unpacked, its arrays are read and its facts are taken; a method of packing that
nobody knows is a `NotImplementedError`, and so a `RuntimeError`."""
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write arrays and JSON-ready facts; the same content gives the same bytes.

    Raises:
        DiskError: if the file cannot be written.
    """
    write_atomically(path, encode(arrays, facts))


def open_arrays(
    path: Path, what: str = "a fitted model", hint: str = _REFIT, most: int = _LIMIT_BYTES
) -> Held:
    """The arrays and facts that `save_arrays` wrote.

    Args:
        path: the file.
        what: it should be, for errors.
        hint: what to do where it is not.
        most: bytes of the file, and of what it unpacks to.

    Raises:
        InputError: if there is no such file.
        DamagedError: if it is not whole, holds objects, or says it is larger than a file of ours can be.
    """
    if not path.exists() or path.is_dir():
        raise InputError(f"expected a file of {what} and found none", where=str(path))
    return decode(read_file(path, most=most), str(path), what, hint, most)


def encode(arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    """Arrays and JSON-ready facts as the content of a file; the same content gives the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        # A bare ZipInfo has the time 1980: the same content gives the same bytes.
        archive.writestr(zipfile.ZipInfo(_FACTS), json.dumps(dict(facts), sort_keys=True))
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def decode(
    data: bytes, where: str, what: str = "a fitted model", hint: str = _REFIT, most: int = _LIMIT_BYTES
) -> Held:
    """The arrays and facts that `encode` was given.

    Args:
        data: the content of the file.
        where: its name, for errors.
        what: it should be.
        hint: what to do where it is not.
        most: bytes that it may unpack to.

    Raises:
        DamagedError: if it is not whole, holds objects, or says it is larger than a file of ours can be.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # Checked before anything is unpacked.
            total = sum(info.file_size for info in archive.infolist())
            if total > most or len(archive.infolist()) > _MOST_MEMBERS:
                raise DamagedError(f"unpacks to {total:,} bytes, more than {what} can be", where=where)
            check_archive_members(archive.infolist(), where)
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        facts = parse(members.pop(_FACTS).decode(), where)
        arrays = {name.removesuffix(".npy"): _array(data) for name, data in members.items()}
    except InputError as error:
        raise DamagedError(f"not {what} of ours: {error.message}", where=error.where, hint=hint) from error
    except DAMAGE as error:
        message = f"not {what} of ours: {to_printable(str(error))}"
        raise DamagedError(message, where=where, hint=hint) from error
    if not isinstance(facts, dict):
        raise DamagedError("its facts are not a JSON object", where=where, hint=hint)
    return arrays, facts


def _array(data: bytes) -> npt.NDArray[Any]:
    """One array, after its header was found to promise exactly the bytes that are there."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        raise ValueError(f"array format {version} is not known")
    shape, fortran, dtype = _READERS[version](stream)
    rest = data[stream.tell() :]
    # Whole numbers of Python: a product in 64 bits could wrap round to the true length.
    count = 1
    for length in shape:
        count *= length
    if dtype.hasobject or fortran or count * dtype.itemsize != len(rest):
        raise ValueError(f"an array promises {count} numbers of {dtype} and holds {len(rest)} bytes")
    # A copy can be written to, and lets go of the file's bytes.
    return np.frombuffer(rest, dtype=dtype).reshape(shape).copy()
