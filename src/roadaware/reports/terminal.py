"""Plain text for people: tables, numbers and cells in which nothing from a data file can steer a terminal."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from roadaware.errors import clip_text
from roadaware.statistics.cautions import AT_END, FEW, LARGEST, MEANINGS

# Control sequences, and characters that reverse or hide text: a file's name or value must not rewrite the
# terminal or look like another.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
MESSAGE = 2000
"""Characters of a message; a longer one, with a list or a value out of a file, loses its middle."""
_CELL = 500
_CAUTIONS = {FEW: "?", AT_END: "!", LARGEST: "^"}
_COLOURS = {"good": "32", "bad": "31", "odd": "33", "title": "1"}


def encode_invisible(text: object) -> str:
    r"""The text with control, direction and other invisible characters written out (`\x1b`, `\u202e`).

    Line breaks and tabs stay: they are the layout of our own text. For values out of data files use `format_cell`.
    """
    return _UNSAFE.sub(_written_out, str(text))


def format_cell(value: object) -> str:
    r"""One value out of a data file on one line: line breaks and tabs are written out as well."""
    return clip_text(encode_invisible(value).replace("\n", "\\n").replace("\t", "\\t"), _CELL)


def format_word(path: object) -> str:
    """A path as a word of a command that can be pasted into a shell.

    >>> format_word("runs/my films")
    "'runs/my films'"
    """
    return shlex.quote(format_cell(path))


def format_one_line(message: str) -> str:
    r"""A message with its hint on one line, for lists.

    >>> format_one_line("it is cut off\n  copy it again")
    'it is cut off; copy it again'
    """
    return "; ".join(line.strip() for line in message.splitlines() if line.strip())


def format_number(value: float | None, digits: int = 3, missing: str = "-") -> str:
    """A value with a fixed number of digits; `missing` where it is undefined."""
    return missing if value is None else f"{value:.{digits}f}"


def format_interval(
    low: float | None, high: float | None, digits: int = 3, caution: str | None = None, *, sign: str = ""
) -> str:
    """`[low, high]`, or a dash where there is none; a mark behind it calls for caution.

    Args:
        low: lower end.
        high: upper end.
        digits: behind the point.
        caution: of the interval; `format_table` says below what its mark means.
        sign: `+` shows the signs of both ends.
    """
    if low is None or high is None:
        return "-"
    return f"[{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]{_CAUTIONS.get(caution or '', '')}"


def format_row_interval(row: Mapping[str, Any], unit: str = "video", digits: int = 3) -> str:
    """The interval of a row of a summary over a kind of unit, with its caution; see `format_interval`."""
    return format_interval(
        row.get(f"low_{unit}"), row.get(f"high_{unit}"), digits, row.get(f"caution_{unit}")
    )


def list_cautions(text: str) -> list[str]:
    """What the marks behind the intervals of a text mean, one line for each."""
    return [f"{mark} {MEANINGS[name]}" for name, mark in _CAUTIONS.items() if f"]{mark}" in text]


def format_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: int = 1,
    colour: Callable[[Sequence[str]], str | None] = lambda row: None,
) -> str:
    """Columns lined up under their header, and below them what marks of intervals mean.

    Args:
        header: names of the columns.
        rows: the cells, already formatted; anything else is shown as text.
        left: how many columns, from the first, are aligned left; the others are aligned right.
        colour: names the style (good, bad, odd) of a row, for terminals that show colours.
    """
    body, names = (
        [[format_cell(value) for value in row] for row in rows],
        [format_cell(name) for name in header],
    )
    columns = [[name, *(row[k] for row in body)] for k, name in enumerate(names)]
    widths = [max(len(value) for value in column) for column in columns]

    def line(values: Sequence[str]) -> str:
        padded = (
            value.ljust(width) if k < left else value.rjust(width)
            for k, (value, width) in enumerate(zip(values, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    lines = [apply_style(line(names), "title"), "  ".join("-" * width for width in widths)]
    lines += [apply_style(line(row), colour(row)) for row in body]
    lines += list_cautions("\n".join(value for row in body for value in row))
    return "\n".join(lines)


def format_paragraphs(docstring: str) -> str:
    """The description in a docstring, up to its parameters, one line per paragraph; examples keep theirs."""
    text = inspect.cleandoc(docstring).split("\nParameters\n---")[0]
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(
        block if block.startswith(" ") else " ".join(line.strip() for line in block.splitlines())
        for block in blocks
    )


def format_bullets(items: Iterable[object]) -> str:
    """One line each, behind a dash."""
    return "\n".join(f"  - {format_cell(item)}" for item in items)


def format_duration(elapsed_s: float) -> str:
    """A duration as people write it.

    >>> format_duration(59.5), format_duration(359.7)
    ('59.5 s', '6 min 0 s')
    """
    if elapsed_s < 60:
        return f"{elapsed_s:.2f} s" if elapsed_s < 10 else f"{elapsed_s:.1f} s"
    minutes, left_s = divmod(round(elapsed_s), 60)
    return f"{minutes} min {left_s} s"


def format_bytes(n_bytes: float) -> str:
    """A number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def has_colour(stream: TextIO) -> bool:
    """Whether styles may be written: a terminal that wants them (NO_COLOR, TERM=dumb and CI say no)."""
    if os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def apply_style(text: str, style: str | None) -> str:
    """The text in a style, where standard output shows styles."""
    if style is None or not has_colour(sys.stdout):
        return text
    return f"\N{ESCAPE}[{_COLOURS[style]}m{text}\N{ESCAPE}[0m"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
