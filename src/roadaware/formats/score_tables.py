"""Scores and samples from csv or Parquet files: matched by row, so one bad row refuses the whole file."""

from __future__ import annotations

import difflib
import math
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.io.csv import read_cells

TOLERANCE = 1e-6
"""Scores this far outside [0, 1] are rounding of the writer: they are clipped and counted."""

_NUMBER_CHARACTERS = frozenset("0123456789+-.eE")
_NO_NAMES = "A scores file has no header and no names: delete the line, or the column. "
_REQUIRED = ("truth", "pedestrian", "tte_frames")


@dataclass(frozen=True)
class ScoreFile:
    """Content of a scores file.

    Args:
        values: (n, k) one row of numbers per sample.
        clipped: how many of them lay outside [0, 1] by no more than `TOLERANCE`.
    """

    values: Floats
    clipped: int


@dataclass(frozen=True)
class SampleFile:
    """Content of a samples file, rows in extraction order.

    Args:
        truth: (n,) index of the true class.
        pedestrian: (n,) whose sample it is.
        tte_frames: (n,) frames from the end of the observation to the event.
        video: (n,) where it was seen, or None if the file does not say.
        columns: names of all columns of the file.
    """

    truth: Ints
    pedestrian: tuple[str, ...]
    tte_frames: Ints
    video: tuple[str, ...] | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class RawSamples:
    """A samples file before its values are judged: numbers may be fractions or negative.

    Args:
        lines: (n,) line of each row in the file.
        truth: (n,) as written.
        tte_frames: (n,) as written.
        pedestrian: (n,) names.
        video: (n,) names, or None.
        columns: names of all columns of the file.
    """

    lines: tuple[int, ...]
    truth: Floats
    tte_frames: Floats
    pedestrian: tuple[str, ...]
    video: tuple[str, ...] | None
    columns: tuple[str, ...]


def read_numbers(path: Path, columns: int | None = None) -> tuple[Floats, Ints]:
    """The (n, k) finite numbers of a file without header, csv or Parquet, and the (n,) line of each row.

    Args:
        path: the file.
        columns: how many numbers a row must have; None for as many as the first row.

    Raises:
        InputError: at the first row that is not `columns` finite numbers, or if there is no row.
    """
    # Compact arrays: lists of Python's numbers would take several times the memory.
    table, lines = array("d"), array("q")
    for line, cells in read_cells(path, header=False):
        if columns is not None and len(cells) != columns:
            hint = "The task decides: 1 number for action, 3 for intention, 12 for risk."
            if len(cells) == 1:
                hint = _separator_hint(cells[0]) or hint
            if len(cells) == 2 * columns and all(cell.strip("-").isdecimal() for cell in cells):
                hint = "If the decimals have commas, write them with points."
            raise InputError(
                f"expected {columns} number{'s' * (columns > 1)} in a row, found {len(cells)}",
                where=f"{path}:{line}",
                hint=hint,
            )
        table.extend([_finite(cell, f"{path}:{line}", first=not table) for cell in cells])
        columns = len(cells)
        lines.append(line)
    if not table:
        raise InputError(
            "expected one row of numbers per sample, found an empty file",
            where=str(path),
            hint="Write the scores again; the file holds no row.",
        )
    return np.frombuffer(table).reshape(len(lines), -1), np.frombuffer(lines, dtype=np.int64)


def read_scores(path: Path, columns: int | None) -> ScoreFile:
    """The probabilities of a scores file: one row of `columns` numbers per sample, no header.

    Args:
        path: the file.
        columns: how many numbers a row must have; None for as many as the first row.

    Raises:
        InputError: at the first row that is not `columns` numbers in [0, 1].
    """
    values, lines = read_numbers(path, columns)
    outside = (values < -TOLERANCE) | (values > 1 + TOLERANCE)
    if outside.any():
        row, column = (int(index) for index in np.argwhere(outside)[0])
        raise InputError(
            f"expected scores in [0, 1], found {values[row, column]:g} in column {column + 1} "
            f"({int(outside.any(axis=1).sum())} of {len(values)} rows have such scores)",
            where=f"{path}:{lines[row]}",
            hint=_range_hint(values),
        )
    clipped = int(((values < 0) | (values > 1)).sum())
    return ScoreFile(np.clip(values, 0.0, 1.0), clipped)


def read_raw_samples(path: Path) -> RawSamples:
    """The columns of a samples file, found by name; the values are numbers but not yet judged.

    Raises:
        InputError: if a column is missing or named twice, a row has too many or too few cells, or a cell
            is empty or not a number where one is due.
    """
    found = read_cells(path, header=True)
    line, header = next(found, (0, []))
    if not header:
        raise InputError(
            f"expected a header with {', '.join(_REQUIRED)}, found an empty file",
            where=str(path),
            hint="The first line names the columns; one row per sample follows, in extraction order.",
        )
    places = _places(header, f"{path}:{line}")
    cells: dict[str, list[str]] = {name: [] for name in places}
    lines = []
    for line, row in found:
        if len(row) != len(header):
            raise InputError(
                f"expected {len(header)} cells as in the header, found {len(row)}",
                where=f"{path}:{line}",
                hint="Quote cells that hold commas; every row has every column.",
            )
        lines.append(line)
        for name, place in places.items():
            cells[name].append(_not_empty(row[place], name, f"{path}:{line}"))
    if not lines:
        raise InputError(
            "expected rows below the header, found none",
            where=str(path),
            hint="Write one row per sample, in extraction order.",
        )

    def numbers(name: str) -> Floats:
        pairs = zip(cells[name], lines, strict=True)
        return np.array([_finite(cell, f"{path}:{n}", name=name) for cell, n in pairs], dtype=np.float64)

    video = tuple(cells["video"]) if "video" in cells else None
    truth, tte = numbers("truth"), numbers("tte_frames")
    return RawSamples(tuple(lines), truth, tte, tuple(cells["pedestrian"]), video, tuple(header))


def read_samples(path: Path, classes: int) -> SampleFile:
    """A samples file whose values are right: ground truth in 0..classes-1, and whole frames to the event.

    A time below 0 says that the event came before the end of the observation.

    Raises:
        InputError: as `read_raw_samples`, and at the first value that is not right.
    """
    raw = read_raw_samples(path)
    _check(raw, path, "truth", raw.truth, 0, classes - 1, f"a class 0..{classes - 1}")
    _check(raw, path, "tte_frames", raw.tte_frames, -1e9, 1e9, "a whole number of frames")
    # A name stands for one pedestrian, and a pedestrian is in one video
    first: dict[str, tuple[str, int]] = {}
    for name, video, line in zip(raw.pedestrian, raw.video or (), raw.lines, strict=False):
        known, at = first.setdefault(name, (video, line))
        if video != known:
            raise InputError(
                f"expected pedestrian {name[:40]!r} in video {known[:40]!r} as in line {at}, "
                f"found {video[:40]!r}",
                where=f"{path}:{line}",
                hint="Give pedestrians of different videos different names, such as VIDEO/NAME.",
            )
    return SampleFile(
        raw.truth.astype(np.int64), raw.pedestrian, raw.tte_frames.astype(np.int64), raw.video, raw.columns
    )


def read_labels(path: Path, column: str, most: int) -> tuple[str, ...]:
    """(n,) the values of one more column of a samples file, which sort its rows into groups.

    Args:
        path: the file.
        column: its name in the header.
        most: how many different values make sense.

    Raises:
        InputError: if there is no such column, or it has more values than that.
    """
    found = read_cells(path, header=True)
    line, header = next(found, (0, []))
    if column not in header:
        raise InputError(
            f"expected a column {column!r}, found {', '.join(repr(name[:40]) for name in header[:12])}",
            where=f"{path}:{line}",
            hint="Name a column of the samples, one that says what scenario each belongs to.",
        )
    place = header.index(column)
    values = tuple(row[place] for _, row in found)
    if len(set(values)) > most:
        raise InputError(
            f"expected at most {most} values in column {column!r}, found {len(set(values))}",
            where=str(path),
            hint="Groups need many samples each; put the values into classes first.",
        )
    return values


def check_same_length(scores: int, samples: int, scores_path: Path, samples_from: str) -> None:
    """Rows are joined by their order: their numbers must be equal.

    Raises:
        InputError: if they are not.
    """
    if scores != samples:
        raise InputError(
            f"expected {samples} rows, one for each sample of {samples_from}, found {scores}",
            where=str(scores_path),
            hint="Scores have no keys and are joined by row: write one row per sample, in the samples' "
            "order, without a header. `roadaware doctor pedestrians` finds out which split it is.",
        )


def _separator_hint(cell: str) -> str:
    """What to do about a cell that holds several numbers; empty where it does not."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), (" ", "spaces")):
        if separator in cell.strip():
            return f"The numbers are separated by {name}; separate them by commas."
    return ""


def _finite(cell: str, where: str, *, name: str = "", first: bool = False) -> float:
    """The number in a cell.

    Raises:
        InputError: if it is not a finite number; Python's own spellings (1_000, nan, infinity) are not.
    """
    column = f" in column {name}" if name else ""
    if not cell:
        raise InputError(
            f"expected a number{column}, found an empty cell",
            where=where,
            hint="Rows are matched by their order, so none can be left out; fill the cell.",
        )
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and _NUMBER_CHARACTERS.issuperset(cell):
        return value
    hint = "Write finite numbers such as 0.25; decimals take a point."
    if cell.lower() in ("true", "false"):
        hint = "Write 1 for true and 0 for false."
    elif first and not name:
        hint = _separator_hint(cell) or (hint if cell[0].isdecimal() else _NO_NAMES + hint)
    raise InputError(f"expected a finite number{column}, found {cell[:40]!r}", where=where, hint=hint)


def _range_hint(values: Floats) -> str:
    if values.min() >= 0 and values.max() <= 100 and values.max() > 1.5:
        return "These look like percent: divide by 100."
    if values.min() < -TOLERANCE:
        return "These look like logits: apply a sigmoid (1 column) or a softmax (several)."
    return "Write probabilities; only rounding errors up to 1e-6 are clipped."


def _places(header: list[str], where: str) -> dict[str, int]:
    """Where each column that we use stands."""
    twice = sorted({name for name in header if header.count(name) > 1 and name in (*_REQUIRED, "video")})
    if twice:
        raise InputError(
            f"column {', '.join(twice)} stands in the header more than once",
            where=where,
            hint="Give each column its own name.",
        )
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        close = [f"{near[0]!r} for {name}" for name in missing if (near := _close(name, header))]
        meant = f" Did you mean {', '.join(close)}?" if close else ""
        if len(header) == 1 and (mark := next((each for each in ";\t" if each in header[0]), "")):
            meant = f" This one has {'semicolons' if mark == ';' else 'tabs'}."
        shown = ", ".join(repr(name[:40]) for name in header[:12])
        raise InputError(
            f"expected the columns {', '.join(_REQUIRED)}; {', '.join(missing)} missing, found {shown}",
            where=where,
            hint=f"The first line names the columns, separated by commas.{meant}",
        )
    wanted = (*_REQUIRED, "video") if "video" in header else _REQUIRED
    return {name: header.index(name) for name in wanted}


def _close(name: str, header: list[str]) -> list[str]:
    starts = [other for other in header if other and (name.startswith(other) or other.startswith(name[:3]))]
    return difflib.get_close_matches(name, header, n=1) or starts


def _not_empty(cell: str, name: str, where: str) -> str:
    if cell:
        return cell
    raise InputError(
        f"expected a value in column {name}, found an empty cell",
        where=where,
        hint="Rows are matched by their order, so none can be left out; fill the cell.",
    )


def _check(
    raw: RawSamples, path: Path, name: str, values: Floats, low: float, high: float, expected: str
) -> None:
    wrong = (values < low) | (values > high) | (values != np.floor(values))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"expected {expected} in column {name}, found {values[row]:g} "
            f"({int(wrong.sum())} of {len(values)} rows are so)",
            where=f"{path}:{raw.lines[row]}",
            hint="`roadaware doctor pedestrians` looks for the cause (labels from 1, time in seconds).",
        )


def format_scores(scores: Floats) -> str:
    """Scores as `read_scores` reads them, exact.

    Args:
        scores: (n, k).
    """
    return "".join(",".join(repr(float(value)) for value in row) + "\n" for row in scores)


def format_samples(
    truth: Ints, pedestrian: npt.NDArray[np.str_], tte_frames: Ints, video: npt.NDArray[np.str_]
) -> str:
    """Samples as `read_samples` reads them; a name that a spreadsheet would compute gets an apostrophe.

    Args:
        truth: (n,) classes.
        pedestrian: (n,) names.
        tte_frames: (n,) times to event.
        video: (n,) names.
    """
    lines = ["truth,pedestrian,tte_frames,video"]
    rows = zip(truth.tolist(), pedestrian.tolist(), tte_frames.tolist(), video.tolist(), strict=True)
    lines += [f"{k},{_quote_cell(name)},{tte},{_quote_cell(place)}" for k, name, tte, place in rows]
    return "\n".join(lines) + "\n"


def _quote_cell(name: str) -> str:
    if name.startswith(("=", "+", "-", "@")):
        name = f"'{name}"
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n') else name
