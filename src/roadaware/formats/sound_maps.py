"""Sound localisation maps as Predictions: a folder of .npy, one .npz, or JSON; read and written."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Numbers
from roadaware.datasets.issues import NOTHING_PREDICTED, Findings, build_all_rejected_error
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.formats.known_scenes import refuse_findings
from roadaware.formats.road_detections import write_folder
from roadaware.io.files import write_atomically
from roadaware.io.json import (
    LARGEST,
    decode,
    describe_type,
    escape_surrogates,
    iterate_members,
    pause_garbage_collection,
)
from roadaware.io.sources import FolderSource, is_outside, read_file, resolve_inside, to_printable
from roadaware.scenes.tables import Meta, Predictions, Scenes

# Arrays of two dimensions from a folder of .npy, one .npz or JSON: bounded, and never a pickle.

MOST_CELLS = 1 << 24
"""Cells of one map."""
# numpy evaluates the text of a header: a long one costs far more than the array behind it.
_MOST_HEADER = 4096
_MOST_BYTES = 8 * MOST_CELLS + _MOST_HEADER
_MOST_FILES = 1_000_000
_DEEPEST = 6
_KINDS = "fiub"
_ENDING = ".npy"
_FOLDER = "write each map as an .npy file, or all as one .npz; only an empty folder predicts nothing"
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
        self.where = to_printable(str(path))
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
            try:
                archive = zipfile.ZipFile(path)
            except _ZIP_ERRORS as error:
                message = f"no whole .npz: {to_printable(str(error)) or type(error).__name__}"
                raise InputError(message, where=self.where, hint="write it again with numpy.savez") from error
            found: dict[str, zipfile.ZipInfo] = {}
            end, wrong = 0, ""
            for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
                name = info.filename.removesuffix(_ENDING)
                if (
                    is_outside(info.filename)
                    or name in found
                    or info.header_offset < end
                    or len(found) >= _MOST_FILES
                ):
                    wrong = (
                        wrong
                        or f"'{to_printable(info.filename)}' leads out of it, stands in it twice or overlaps another"
                    )
                found[name] = info
                end = info.header_offset + 30 + info.compress_size
            if wrong:
                archive.close()
                raise InputError(f"the archive is not to be trusted: {wrong}", where=self.where)
            self._archive, self._members = archive, found
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
            raise MapError(f"damaged: {to_printable(str(error)) or type(error).__name__}") from error
        # The array of an .npy file; its header is checked before any room is made
        stream = io.BytesIO(data[: _MOST_HEADER + 16])
        try:
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise MapError(f"an .npy file of version {version[0]}.{version[1]}; 1.0 and 2.0 are read")
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_columns, dtype = read(stream, max_header_size=_MOST_HEADER)
        except MapError:
            raise
        except Exception as error:  # the parser of headers raises whatever the text makes it raise
            raise_interrupt(error)
            raise MapError(f"no .npy file: {to_printable(str(error)) or type(error).__name__}") from error
        if dtype.hasobject or dtype.kind not in _KINDS or dtype.itemsize > 8 or dtype.names or dtype.subdtype:
            raise MapError(f"holds {to_printable(str(dtype), 40)}; a map holds plain numbers")
        # Leading dimensions of 1, as of a batch, are left out.
        sides = tuple(side for at, side in enumerate(shape) if side != 1 or at >= len(shape) - 2)
        if len(sides) != 2 or min(sides) < 1 or sides[0] * sides[1] > MOST_CELLS:
            raise MapError(f"a map has two dimensions and at most {MOST_CELLS} cells; the array is {shape}")
        if len(data) - stream.tell() != sides[0] * sides[1] * dtype.itemsize:
            raise MapError(f"an array {shape} of {dtype} with {len(data) - stream.tell()} bytes of content")
        flat = np.frombuffer(data, dtype, offset=stream.tell())
        return flat.reshape(sides, order="F" if by_columns else "C")

    def _bytes(self, name: str) -> bytes:
        if self._folder is not None:
            file = self._members[name]
            return read_file(resolve_inside(self._folder.path, file), self._folder.where(file), _MOST_BYTES)
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
            yield escape_surrogates(full.removesuffix(_ENDING)), full
    for each in folders if depth < _DEEPEST else ():
        yield from _walk(folder, f"{inner}/{each}" if inner else each, depth + 1)


def _json(path: Path, where: str) -> dict[str, Numbers | str]:
    """The maps of a JSON file, or why one is none."""
    found: dict[str, Numbers | str] = {}
    with pause_garbage_collection():
        for _, names, value in iterate_members(
            decode(read_file(path, where), where), where, lambda names: not names
        ):
            if not names:
                message = f"expected an object of maps by name and found {describe_type(value)}"
                raise InputError(message, where=where, hint="or give a folder of .npy files, or an .npz")
            found[escape_surrogates(names[0])] = _rows(value)
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


MOST_ALL_CELLS = 1 << 30
"""Cells of all maps together: 4 GiB in single precision."""
# One column of all maps would need each of them twice while it is made.
_AT_ONCE = 1 << 22
_SHOWN = 5


def read_sound_maps(path: Path, scenes: Scenes, *, strict: bool = False) -> Predictions:
    """Predicted maps as Predictions: `sounds` with the numbers of the ground truth, `map` and `map_width`.

    Maps may be of any size, each of its own. They are kept in double precision if one of them is given in
    it, else in single. A map that holds NaN or an infinite number is in `rejected`; constant maps are taken
    and counted, as are sounds without a map and maps of sounds that the ground truth does not have.

    Args:
        path: a folder of `<name>.npy`, an `.npz` keyed by name, or JSON {name: [[...], ...]}; names are
            `sounds.name`.
        scenes: the ground truth.
        strict: anything rejected is an error.

    Raises:
        InputError: if the file is damaged as a whole, the ground truth has no sound, no map is of one of its
            sounds, every map is refused, or all maps together are too large; where there is no map at all,
            nothing is predicted.
        FindingsError: under `strict`, if anything was rejected.
    """
    path = Path(path)
    if scenes.sounds.is_empty():
        raise InputError(
            f"{scenes.meta.dataset or 'the truth'} has no sounds: there is nothing to predict",
            hint="check which file was given as truth",
        )
    findings = Findings()
    with MapFiles(path) as files:
        kept, maps, widths = _collect(files, scenes, findings)
    named = scenes.sounds[kept] if kept else scenes.sounds.clear()
    sounds = named.select("sound", pl.col("video").cast(pl.String), _name(named).alias("name")).with_columns(
        maps.alias("map"), map_width=pl.Series(widths, dtype=pl.Int64)
    )
    findings.read["sounds"] += len(sounds)
    predictions = Predictions(
        sounds=sounds,
        rejected=findings.table(),
        meta=Meta(
            dataset=scenes.meta.dataset,
            vocabularies=scenes.meta.vocabularies,
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )
    if strict:
        refuse_findings(files.where, predictions)
    return predictions


def write_sound_maps(predictions: Predictions, scenes: Scenes, path: Path) -> int:
    """Write maps by the names of their sounds: an `.npz`, a `.json`, or else a folder of `.npy` files.

    Args:
        predictions: with `sounds` and their maps.
        scenes: the ground truth, which has the names.
        path: where to; a file is replaced in one step, a folder must not be there.

    Returns:
        The number of maps.

    Raises:
        UsageError: if there are no maps, one is of an unknown sound or of no rectangle, or two are of sounds of one name.
        DiskError: if the disk refuses.
    """
    path, predicted = Path(path), predictions.sounds
    if "map" not in predicted.columns:
        raise UsageError("the predictions have no maps: give `sounds` the column `map`")
    names = dict(scenes.sounds.select("sound", _name(scenes.sounds)).iter_rows())
    unknown = [sound for sound in predicted["sound"].to_list() if sound not in names]
    if unknown:
        raise UsageError(
            f"{len(unknown)} maps of sounds that the scenes do not have, first {unknown[:_SHOWN]}"
        )
    called = Counter(names[sound] for sound in predicted["sound"].to_list())
    twice = next((name for name, count in called.items() if count > 1), None)
    if twice is not None:
        raise UsageError(
            f"{called[twice]} sounds are called '{to_printable(twice, 60)}', so that a file of maps cannot tell them apart: "
            "give each its own `sounds.name`"
        )
    widths = predicted["map_width"] if "map_width" in predicted.columns else [None] * len(predicted)
    columns = zip(predicted["sound"], predicted["map"], widths, strict=True)
    listed = ((names[sound], reshape_map(values.to_numpy(), width)) for sound, values, width in columns)
    odd = [name for name in names.values() if is_outside(name)]
    if odd and path.suffix.lower() not in (".json", ".npz"):
        raise UsageError(f"'{to_printable(odd[0])}' is no name of a file: write an .npz or .json instead")
    write_named_maps(listed, path)
    return len(predicted)


def write_named_maps(listed: Iterable[tuple[str, Numbers]], path: Path) -> None:
    """Write maps by name: an `.npz`, a `.json`, or else a folder of `.npy` files.

    Args:
        listed: name and (rows, cells in a row) of each.
        path: where to; a file is replaced in one step, a folder must not be there.

    Raises:
        DiskError: if the disk refuses.
    """
    if path.suffix.lower() == ".json":
        content = {name: values.tolist() for name, values in listed}
        write_atomically(path, json.dumps(content, allow_nan=False).encode())
    elif path.suffix.lower() == ".npz":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, values in listed:
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _npy(values))
        write_atomically(path, stream.getvalue())
    else:
        write_folder(path, ((f"{name}.npy", _npy(values)) for name, values in listed))


def reshape_map(values: Numbers, width: int | None) -> Numbers:
    """The rows of a map.

    Args:
        values: (n,) row by row.
        width: cells in a row; None for a square map.

    Raises:
        UsageError: if it is no rectangle.
    """
    width = round(len(values) ** 0.5) if width is None else width
    if width < 1 or len(values) % width or not len(values):
        raise UsageError(f"a map of {len(values)} cells has no rows of {width}")
    return values.reshape(-1, width)


def _collect(files: MapFiles, scenes: Scenes, findings: Findings) -> tuple[list[int], pl.Series, list[int]]:
    """Rows of the ground truth's sounds that have a map, the maps and their widths, in the ground truth's order."""
    names = scenes.sounds.select(_name(scenes.sounds)).to_series().to_list()
    held = {name: name for name in files.names}
    foreign = len(held) - len(held.keys() & set(names))
    if foreign:
        odd = next(name for name in held if name not in set(names))
        findings.warn("maps of sounds that the truth does not have, left out", odd, foreign)
    findings.warn(NOTHING_PREDICTED, Path(files.where).name, int(not held))
    if foreign and foreign == len(held):
        raise InputError(
            f"not one map is of a sound of the truth: the file names {list(held)[:_SHOWN]}, "
            f"the truth {names[:_SHOWN]}",
            where=files.where,
            hint="name each map as the truth names its sound",
        )
    rows: list[int] = []
    widths: list[int] = []
    packed = _Packed()
    for row, name in enumerate(names):
        if name not in held:
            findings.warn("sounds without a map", name)
            continue
        try:
            values = _validate_map(files.read(name))
        except MapError as error:
            findings.reject("sounds", Path(files.where).name, name, str(error))
            continue
        findings.warn("constant maps, taken as they are", name, int(values.min() == values.max()))
        packed.add(values, files.where)
        rows.append(row)
        widths.append(values.shape[1])
    if held and not rows:
        raise build_all_rejected_error(
            findings, files.where, "maps", "a map holds finite numbers in rows and columns"
        )
    return rows, packed.series(), widths


class _Packed:
    """Maps in a growing column: parts of a bounded size, so that no map lies in memory twice."""

    def __init__(self) -> None:
        self._parts: list[pl.Series] = []
        self._open: list[Numbers] = []
        self._size = self._total = 0

    def add(self, values: Numbers, where: str) -> None:
        """One more map.

        Raises:
            InputError: if all together are too large.
        """
        self._total += values.size
        if self._total > MOST_ALL_CELLS:
            raise InputError(f"more than {MOST_ALL_CELLS} cells in all maps together", where=where)
        self._open.append(values.reshape(-1))
        self._size += values.size
        if self._size >= _AT_ONCE:
            self._close()

    def series(self) -> pl.Series:
        """The column, in double precision if one map is."""
        self._close()
        double = any(part.dtype == pl.List(pl.Float64) for part in self._parts)
        kind = pl.List(pl.Float64 if double else pl.Float32)
        found = pl.Series("map", [], dtype=kind)
        for place, part in enumerate(self._parts):
            found.append(part.cast(kind))
            self._parts[place] = found.clear()
        return found

    def _close(self) -> None:
        if self._open:
            self._parts.append(_build_map_column(self._open))
            self._open, self._size = [], 0


def _build_map_column(maps: list[Numbers]) -> pl.Series:
    """Maps as a column of lists, made of one array."""
    flat = np.concatenate(maps)
    if len({len(each) for each in maps}) == 1:
        column = pl.Series("map", flat.reshape(len(maps), -1))
        return column.arr.to_list()
    owner = np.repeat(np.arange(len(maps)), [len(each) for each in maps])
    table = pl.DataFrame({"owner": owner, "map": flat})
    return table.group_by("owner", maintain_order=True).agg("map")["map"]


def _validate_map(values: Numbers) -> Numbers:
    """A map in single or double precision, all numbers finite.

    Raises:
        MapError: if one is not.
    """
    double = values.dtype.itemsize == 8 or (values.dtype.kind in "iu" and values.dtype.itemsize > 2)
    with np.errstate(over="ignore"):
        found: Numbers = np.ascontiguousarray(values, dtype=np.float64 if double else np.float32)
    if not np.isfinite(found).all():
        count = int((~np.isfinite(found)).sum())
        raise MapError(f"{count} of {found.size} cells hold NaN or an infinite number")
    return found


def _name(sounds: pl.DataFrame) -> pl.Expr:
    """Name of a sound: its own, else that of its video."""
    video = pl.col("video").cast(pl.String)
    if "name" not in sounds.columns:
        return video.alias("name")
    return pl.coalesce(pl.col("name").cast(pl.String), video).alias("name")


def _npy(values: Numbers) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(values), version=(1, 0), allow_pickle=False)
    return stream.getvalue()
