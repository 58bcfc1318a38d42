"""Rows of a set of csv files with other cells, by the columns that its maker names.

A maker of csv has `COLUMNS`, what the cells of its main file are, in order: `video`, `frame`, `x1`, `y1`, `x2` and
`y2` (or `w` and `h`, where the file has sizes in place of far corners), and others by names of their own, whatever
the header says; `HEADER`, whether the first line names them; `SHARES`, whether corners are shares of the image;
and `WRONG_CELLS`: name of a case to a column of its own, a text that makes the row bad, and a pattern in the
reason. Its first row has a box, and x1 and y1 are at least 1, or .1 of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sets import NativeSet


_SIZES = {"x2": "w", "y2": "h"}


def columns(native: NativeSet) -> tuple[str, ...]:
    """What the cells of a row are."""
    return tuple(native.maker.COLUMNS)


def place(native: NativeSet, column: str) -> int:
    """Where a column stands; of a far corner that the file does not have, where the size stands that tells it."""
    held = columns(native)
    return held.index(column if column in held else _SIZES.get(column, column))


def has_header(native: NativeSet) -> bool:
    return bool(native.maker.HEADER)


def has_shares(native: NativeSet) -> bool:
    return bool(getattr(native.maker, "SHARES", False))


def wrong_cells(native: NativeSet) -> dict[str, tuple[str, bytes, str]]:
    return dict(getattr(native.maker, "WRONG_CELLS", {}))


def quoted(text: str) -> bytes:
    """A cell, in quotes where it needs them."""
    cell = '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text
    return cell.encode("utf-8", "surrogatepass")


def first_row(native: NativeSet, data: bytes) -> bytes:
    """The first row, with its line feed."""
    return data.splitlines(keepends=True)[has_header(native)]


def row(native: NativeSet, data: bytes, **cells: bytes) -> bytes:
    """The first row with other cells."""
    held = first_row(native, data).rstrip(b"\n").split(b",")
    for column, text in cells.items():
        held[place(native, column)] = text
    return b",".join(held) + b"\n"


def with_cell(column: str, text: bytes) -> Callable[[NativeSet, bytes], bytes]:
    """A change of a cell of the first row."""
    return lambda native, data: data.replace(first_row(native, data), row(native, data, **{column: text}), 1)


def with_video(native: NativeSet, data: bytes, name: str) -> bytes:
    """The file with a row more, of a video of that name."""
    return data + row(native, data, video=quoted(name))


def cut(native: NativeSet, data: bytes) -> bytes:
    """The file breaks off: in its header, or else in a row."""
    return data[: len(data.partition(b"\n")[0]) // 4] if has_header(native) else data[: len(data) * 2 // 3]


def same_size(native: NativeSet, data: bytes) -> bytes:
    """Another last digit of x1 in the first row."""
    x1 = first_row(native, data).split(b",")[place(native, "x1")]
    return with_cell("x1", x1[:-1] + (b"1" if x1.endswith(b"0") else b"0"))(native, data)


CHANGES: dict[str, Callable[[NativeSet, bytes], bytes]] = {
    "cut": cut,
    "bad_row": with_cell("x2", b"-0.9"),
    "changed": with_cell("x1", b"0.001"),
    "same_size": same_size,
}
"""As `damage.CHANGES`, of a csv file."""
