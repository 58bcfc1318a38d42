"""Scenes and Predictions as a folder: a Parquet file per table, and a meta.json that makes them one set."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from roadaware.errors import (
    DamagedError,
    DatasetNotFoundError,
    InputError,
    RoadawareError,
    UsageError,
    raise_interrupt,
)
from roadaware.io.files import (
    build_disk_error,
    flush_folder,
    is_temporary,
    lock_folder,
    note_written,
    read_regular,
    remove_stale_files,
    write_and_rename,
)
from roadaware.io.parquet import read_parquet, read_parquet_columns, scan_parquet
from roadaware.io.sources import open_file
from roadaware.scenes.schema import TABLES, is_blank
from roadaware.scenes.tables import Meta, Predictions, Scenes, TableSet

FORMAT = "roadaware-tables"
VERSION = 1
_META = "meta.json"
_META_LIMIT = 1 << 28
# Each try fails only if a writer has replaced the set meanwhile; this ends a reader that is always late.
_RACES = 100
_PART = re.compile(rf"(?:{'|'.join(TABLES)})-[0-9a-f]{{16}}\.parquet")
_AGAIN = "read the dataset again and save it anew; this copy cannot be trusted"
S = TypeVar("S", bound=TableSet)


@dataclass(frozen=True)
class Part:
    """One table's file as meta.json lists it; `bytes` and `blake2b` are those of the whole file."""

    file: str
    rows: int
    bytes: int
    blake2b: str


class _VanishedError(Exception):
    """A listed file is gone: a writer replaced the set, or somebody removed it."""


def save(tables: TableSet, folder: Path, *, overwrite: bool = False) -> None:
    """Write a set of tables as a folder: the old set or the new one stands there, whole, never between.

    Table files are named by their content and `meta.json` is replaced last, in one step. Writers of one
    folder wait for each other; files of the old set are removed after the new one stands.

    Args:
        tables: Scenes or Predictions.
        folder: where to; made with its parents where missing.
        overwrite: replace a set that stands there.

    Raises:
        UsageError: if a set stands there and `overwrite` is not given, or the folder holds anything else.
        InputError: if a column cannot be written to Parquet.
        DiskError: if the disk refuses; what stood there before still stands.
    """
    parts, content = encode(tables)
    write_table_set(Path(folder), parts, content, overwrite=overwrite)


def check_target(folder: Path, *, overwrite: bool = False) -> None:
    """Fail early where `save` would refuse a folder for what it holds.

    Raises:
        UsageError: as `save`.
    """
    if folder.is_dir():
        _refuse_foreign(folder, _names(folder), overwrite=overwrite)


def is_saved(folder: Path) -> bool:
    """Whether a folder holds saved tables, such as `read -o` writes."""
    return (folder / _META).is_file()


def open_scenes(folder: Path) -> Scenes:
    """Read the Scenes that `save` wrote, every byte checked against its digest.

    Raises:
        DatasetNotFoundError: if no set of tables is there.
        DamagedError: if a file is not the one that was written.
        InputError: if it is of another kind or version, or a table breaks a law.
    """
    return _open(Path(folder), Scenes)


def open_predictions(folder: Path) -> Predictions:
    """Read the Predictions that `save` wrote, every byte checked against its digest.

    Raises:
        DatasetNotFoundError: if no set of tables is there.
        DamagedError: if a file is not the one that was written.
        InputError: if it is of another kind or version, or a table breaks a law.
    """
    return _open(Path(folder), Predictions)


def decode_scenes(folder: str, read: Callable[[str], bytes]) -> Scenes:
    """Scenes out of the files of a saved set that lie in an archive.

    Args:
        folder: for messages.
        read: gives the bytes of a file by its name.

    Raises:
        InputError: as `open_scenes`, and as `read` does.
    """
    path = Path(folder)
    meta, parts = _understood(path / _META, _parse_meta(path / _META, read(_META)), Scenes)
    tables = {name: _decode_table(read(part.file), part, path / part.file) for name, part in parts.items()}
    return _made(path, Scenes, meta, tables)


def encode(tables: TableSet) -> tuple[dict[str, bytes], bytes]:
    """The files of a set: table files by name, and the content of meta.json. Same tables, same bytes.

    Raises:
        InputError: if a column cannot be written to Parquet.
    """
    files: dict[str, bytes] = {}
    listed: dict[str, dict[str, Any]] = {}
    for name, frame in tables.tables().items():
        if is_blank(name, frame):
            continue
        buffer = io.BytesIO()
        try:
            frame.write_parquet(buffer, compression="zstd")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise_interrupt(error)
            raise InputError(
                f"table {name} cannot be written as Parquet: {str(error).splitlines()[0]}",
                hint=f"its columns are {dict(frame.schema)}",
            ) from error
        data = buffer.getvalue()
        digest = hashlib.blake2b(data, digest_size=32).hexdigest()
        part = Part(f"{name}-{digest[:16]}.parquet", len(frame), len(data), digest)
        files[part.file] = data
        listed[name] = asdict(part)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": type(tables).__name__,
        "meta": asdict(tables.meta),
        "tables": listed,
    }
    text = json.dumps({**content, "blake2b": compute_meta_digest(content)}, indent=1, allow_nan=False)
    return files, text.encode()


def write_table_set(folder: Path, files: dict[str, bytes], content: bytes, *, overwrite: bool) -> None:
    """Put encoded files into a folder; the rename of meta.json is the moment at which the set changes.

    Raises:
        UsageError: if a set stands there and `overwrite` is not given, or the folder holds anything else.
        DiskError: if the disk refuses; what stood there before still stands.
    """
    needed = len(content) + sum(map(len, files.values()))
    made: list[Path] = []
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; name an empty or new folder")
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            made.append(path)
        with lock_folder(folder) as alone:
            names = _names(folder)
            _refuse_foreign(folder, names, overwrite=overwrite)
            # Write the table files, then meta.json; before that moment a failure takes the new files
            # back
            try:
                for name, data in files.items():
                    write_and_rename(folder / name, data)
                flush_folder(folder)
                write_and_rename(folder / _META, content)
                flush_folder(folder)
            except BaseException:
                if not _stands(folder, content):
                    _remove(folder, sorted(set(files) - set(names)))
                raise
            if alone:  # without locks another writer may be about to list the files that look left over
                _remove(folder, [n for n in _names(folder) if _PART.fullmatch(n) and n not in files])
                with suppress(OSError):
                    remove_stale_files(folder)
    except BaseException as error:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir()
        if isinstance(error, OSError | ValueError):
            raise build_disk_error(folder / _META, needed, error, written=_stands(folder, content)) from error
        raise


def _stands(folder: Path, content: bytes) -> bool:
    try:
        return (folder / _META).read_bytes() == content
    except OSError:
        return False


def _remove(folder: Path, names: list[str]) -> None:
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _refuse_foreign(folder: Path, names: list[str], *, overwrite: bool) -> None:
    """Only an empty folder, an unfinished one of ours, or (with `overwrite`) a set is written to."""
    foreign = sorted(n for n in names if n != _META and not _PART.fullmatch(n) and is_temporary(n) is None)
    if _META not in names:
        if foreign:
            raise UsageError(
                f"{folder} holds other files ({', '.join(foreign[:5])}); name an empty or new folder"
            )
        return
    if not overwrite:
        raise UsageError(f"{folder} holds a saved set already; name another folder, or ask to overwrite it")
    ours = not foreign and len(names) > 1
    with suppress(RoadawareError, OSError):
        content = read_regular(folder / _META, limit=_META_LIMIT)
        ours = ours or _parse_meta(folder / _META, content)["format"] == FORMAT
    if not ours:
        raise UsageError(f"{folder} holds a {_META} that is not ours; name an empty or new folder")


def _open(folder: Path, kind: type[S]) -> S:
    """Read a set; where a writer took a file away in the meantime, read the set that it put there instead."""
    for _ in range(_RACES):
        stamp = _stamp(folder)
        try:
            meta, tables = _read(folder, kind)
        except _VanishedError as gone:
            if stamp == _stamp(folder):
                raise DamagedError(
                    f"expected the file {gone}, which {_META} lists, and found none",
                    where=str(folder),
                    hint=_AGAIN,
                ) from None
            continue
        return _made(folder, kind, meta, tables)
    raise InputError(f"it was replaced {_RACES} times while being read", where=str(folder), hint="try again")


def _made(folder: Path, kind: type[S], meta: Meta, tables: dict[str, pl.DataFrame]) -> S:
    try:
        return kind(**tables, meta=meta)
    except InputError as error:
        raise InputError(error.message, where=error.where or str(folder), hint=error.hint) from error


def _read(folder: Path, kind: type[S]) -> tuple[Meta, dict[str, pl.DataFrame]]:
    try:
        content = read_regular(folder / _META, limit=_META_LIMIT)
    except FileNotFoundError:
        raise _without_meta(folder) from None
    meta, parts = _understood(folder / _META, _parse_meta(folder / _META, content), kind)
    return meta, {name: _read_table(folder / part.file, part) for name, part in parts.items()}


def _stamp(folder: Path) -> tuple[int, int] | None:
    """Changes whenever meta.json is replaced, even by one of the same content.

    Raises:
        DatasetNotFoundError: if the folder is none.
    """
    try:
        found = "a folder" if folder.is_dir() else "a file" if folder.exists() else "nothing"
    except OSError as error:
        found = str(error.strerror)
    if found != "a folder":
        raise DatasetNotFoundError(
            f"expected a folder of saved tables, found: {found}", where=str(folder), hint="check the path"
        )
    try:
        meta = (folder / _META).lstat()
    except OSError:
        return None
    return meta.st_ino, meta.st_mtime_ns


def _without_meta(folder: Path) -> InputError:
    names = _names(folder)
    if any(_PART.fullmatch(n) or is_temporary(n) is not None for n in names):
        return DamagedError(
            f"table files without {_META}: an incomplete write",
            where=str(folder),
            hint="run the command that wrote it again; it takes the folder over",
        )
    return DatasetNotFoundError(
        f"expected {_META} and found {', '.join(names[:5]) or 'an empty folder'}",
        where=str(folder),
        hint="point at a folder that roadaware saved",
    )


def _parse_meta(path: Path, content: bytes) -> dict[str, Any]:
    """What meta.json says, its own digest checked.

    Raises:
        DamagedError: if it is not JSON, or not what was written.
        InputError: if it is of another format or a later version.
    """
    try:
        parsed = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"expected JSON, found: {error}", where=str(path), hint=_AGAIN) from error
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise DamagedError(f"expected the format {FORMAT!r}, found another", where=str(path), hint=_AGAIN)
    version = parsed.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"expected version {VERSION} of the format, found {str(version)[:20]}",
            where=str(path),
            hint="open it with the roadaware that wrote it, or a later one",
        )
    written = parsed.pop("blake2b", None)
    found = compute_meta_digest(parsed)
    if written != found:
        text = f"expected digest {str(written)[:64]}, found {found}"
        raise DamagedError(text, where=str(path), hint=_AGAIN)
    return parsed


def _understood(path: Path, parsed: dict[str, Any], kind: type[S]) -> tuple[Meta, dict[str, Part]]:
    """The Meta and the parts; a file name is what its table and digest make it, so none leaves the folder."""
    if parsed.get("kind") != kind.__name__:
        raise InputError(
            f"expected {kind.__name__}, found {str(parsed.get('kind'))[:40]}",
            where=str(path),
            hint="Scenes hold what is true, Predictions what a model predicts; open it as what it is",
        )
    try:
        parts = {name: Part(**fields) for name, fields in parsed["tables"].items()}
        meta = Meta(**parsed["meta"])
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        text = f"a field is missing, unknown or of a wrong kind: {error}"
        raise DamagedError(text, where=str(path)) from error
    for name, part in parts.items():
        sizes = (part.rows, part.bytes)
        known = name in TABLES and isinstance(part.blake2b, str)
        if not known or not re.fullmatch("[0-9a-f]{64}", part.blake2b):
            raise DamagedError(f"no table {name[:40]!r} with a digest can be listed", where=str(path))
        if any(type(size) is not int or not 0 <= size < 2**62 for size in sizes):
            raise DamagedError(f"table {name}: rows and bytes are {sizes}", where=str(path))
        if part.file != f"{name}-{part.blake2b[:16]}.parquet":
            raise DamagedError(f"table {name} cannot be the file {str(part.file)[:80]!r}", where=str(path))
    return meta, parts


def _read_table(path: Path, part: Part) -> pl.DataFrame:
    """One table, its bytes checked against size and digest before anything else looks at them."""
    try:
        data = read_regular(path, limit=max(part.bytes, 1))
    except FileNotFoundError:
        raise _VanishedError(path.name) from None
    return _decode_table(data, part, path)


def _decode_table(data: bytes, part: Part, path: Path) -> pl.DataFrame:
    where = str(path)
    if len(data) != part.bytes:
        raise DamagedError(f"expected {part.bytes:,} bytes, found {len(data):,}", where=where, hint=_AGAIN)
    found = hashlib.blake2b(data, digest_size=32).hexdigest()
    if found != part.blake2b:
        raise DamagedError(f"expected blake2b {part.blake2b}, found {found}", where=where, hint=_AGAIN)
    try:
        frame = read_parquet(data)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise DamagedError(f"expected a Parquet table, found: {reason}", where=where, hint=_AGAIN) from error
    if len(frame) != part.rows:
        raise DamagedError(f"expected {part.rows:,} rows, found {len(frame):,}", where=where, hint=_AGAIN)
    return frame


def compute_meta_digest(content: dict[str, Any]) -> str:
    """The digest that meta.json holds of itself, of all its other fields."""
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=32).hexdigest()


# Sets too large for memory: Parquet files that were written elsewhere become a saved set of Predictions.

_CHUNK = 1 << 22


def register_table_files(folder: Path, meta: Meta, files: Mapping[str, tuple[Path, int]]) -> None:
    """Make a saved set of files that lie in its folder under temporary names; `open_predictions` reads it.

    The laws of the tables are checked when it is opened, not here.

    Args:
        folder: without a set.
        meta: of the set.
        files: table to its file in the folder and its rows.

    Raises:
        UsageError: if a set stands there already.
        DiskError: if the disk refuses; there is no set then.
    """
    if (folder / _META).exists():
        raise UsageError(f"{folder} holds a saved set already; name another folder")
    try:
        parts = {table: _rename_by_digest(folder, table, *files[table]) for table in files}
        content = {
            "format": FORMAT,
            "version": VERSION,
            "kind": Predictions.__name__,
            "meta": asdict(meta),
            "tables": {table: asdict(part) for table, part in parts.items()},
        }
        text = json.dumps({**content, "blake2b": compute_meta_digest(content)}, indent=1, allow_nan=False)
        flush_folder(folder)
        write_and_rename(folder / _META, text.encode())
        flush_folder(folder)
    except OSError as error:
        raise build_disk_error(folder / _META, 1, error) from error


def _rename_by_digest(folder: Path, table: str, path: Path, rows: int) -> Part:
    """The file under the name that its content gives it, flushed to the disk."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    found = digest.hexdigest()
    part = Part(f"{table}-{found[:16]}.parquet", rows, size, found)
    path.replace(folder / part.file)
    note_written(folder / part.file)
    return part


# Sets that are looked at and not loaded: a viewer reads some rows of one video.


def scan_tables(folder: Path) -> tuple[str, Meta, dict[str, pl.LazyFrame]]:
    """The kind of a saved set (`Scenes` or `Predictions`), its meta, and its tables, whose rows are read when asked for.

    Every file is checked against its digest here, and has the columns that its table needs; the other laws of the
    tables are not checked.

    Args:
        folder: that `save` wrote.

    Raises:
        DatasetNotFoundError: if no set of tables is there.
        DamagedError: if a file is not the one that was written.
        InputError: if it is of another version.
    """
    try:
        content = read_regular(folder / _META, limit=_META_LIMIT)
    except FileNotFoundError:
        raise _without_meta(folder) from None
    parsed = _parse_meta(folder / _META, content)
    kind = Predictions if parsed.get("kind") == Predictions.__name__ else Scenes
    meta, parts = _understood(folder / _META, parsed, kind)
    return (
        kind.__name__,
        meta,
        {name: _scan_part(name, folder / part.file, part) for name, part in parts.items()},
    )


def _scan_part(name: str, path: Path, part: Part) -> pl.LazyFrame:
    where = str(path)
    try:
        with open_file(path, where, most=max(part.bytes, 1)) as file:
            found = hashlib.blake2b(digest_size=32)
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except DamagedError:
        raise
    except InputError as error:
        raise DamagedError(error.message, where=where, hint=_AGAIN) from error
    if found.hexdigest() != part.blake2b:
        message = f"expected blake2b {part.blake2b}, found {found.hexdigest()}"
        raise DamagedError(message, where=where, hint=_AGAIN)
    # Who forged a table can write its digest, too: it is told now, not by the first row that is asked for.
    try:
        held = read_parquet_columns(path)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise DamagedError(f"expected a Parquet table, found: {reason}", where=where, hint=_AGAIN) from error
    missing = [c for c, column in TABLES[name].columns.items() if column.required and c not in held]
    if missing:
        raise DamagedError(
            f"table {name} needs the columns {missing} and has {held}", where=where, hint=_AGAIN
        )
    return scan_parquet(path)
