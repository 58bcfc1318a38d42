"""The page: sections made of facts, tables, notes and figures, put together into one offline HTML file."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roadaware import __version__
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.reports.picture import Picture
from roadaware.reports.text import capitalize_text, describe_cautions, sanitize_text

MOST_CHOICES = 24
"""The style sheet has a rule for so many."""
_FILTER_NAMES = ("f", "g")
POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Mark:
    """A cell of a table that is more than text.

    Args:
        text: what the cell says.
        tone: `good`, `fair`, `doubt`, `bad`, `mute` or none: a colour that repeats what the text says.
        below: a second, smaller line.
    """

    text: str
    tone: str = ""
    below: str = ""


TableCell = str | Mark


@dataclass(frozen=True)
class Facts:
    """Names and their values, in two columns."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, str], ...]
    title: str = ""


def build_caption(rows: Sequence[Sequence[TableCell]], told: str, over: str) -> str:
    """A caption that says what stands below the values of a table, where something does.

    Args:
        rows: of the table.
        told: a remark on the values.
        over: what intervals are over.
    """
    known = (isinstance(cell, Mark) and cell.below and cell.tone != "mute" for row in rows for cell in row)
    said = [told] if told else []
    said += [f"below each value its 95 % interval over {over}"] if any(known) else []
    return capitalize_text("; ".join(said) + ".") if said else ""


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        columns: headings.
        rows: as many cells as columns each; a row of one cell is a heading within the table.
        align: one of `l`, `r`, `c` per column.
        title: what the table shows.
        caption: how to read it.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    align: str
    title: str = ""
    caption: str = ""

    @property
    def cautions(self) -> str:
        """Legend of the marks behind intervals; empty where there are none."""
        cells = (each for row in self.rows for each in row)
        return describe_cautions(" ".join(f"{c.text} {c.below}" if isinstance(c, Mark) else c for c in cells))

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) not in (1, len(self.columns))]
        if wrong or len(self.align) != len(self.columns):
            raise ValueError(
                f"a table of {len(self.columns)} columns has rows or an alignment of another length"
            )


@dataclass(frozen=True)
class Filter:
    """One way to narrow a table down, as a row of choices.

    Args:
        title: what is chosen.
        choices: the values to choose from, at most `MOST_CHOICES`.
        held: for each row of the table the places of its values among the choices.
    """

    title: str
    choices: tuple[str, ...]
    held: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.choices) > MOST_CHOICES:
            raise ValueError(f"a filter has at most {MOST_CHOICES} choices, not {len(self.choices)}")


@dataclass(frozen=True)
class Filterable:
    """A table whose rows the reader narrows down with buttons: plain HTML and style, no script.

    Args:
        table: all rows, none of one cell.
        filters: at most two; a row is shown where it has the chosen value of each.
    """

    kind: ClassVar[str] = "filterable"
    table: Table
    filters: tuple[Filter, ...]
    title: str = ""

    def __post_init__(self) -> None:
        if len(self.filters) > len(_FILTER_NAMES) or any(
            len(one.held) != len(self.table.rows) for one in self.filters
        ):
            raise ValueError("a table has at most two filters, and each tells the values of every row")

    @property
    def names(self) -> tuple[str, ...]:
        """A letter for each filter, which the style sheet knows."""
        return _FILTER_NAMES[: len(self.filters)]

    @property
    def classes(self) -> tuple[str, ...]:
        """For each row the classes by which the style sheet keeps it."""
        return tuple(
            " ".join(
                f"{name}{place + 1}"
                for name, one in zip(self.names, self.filters, strict=True)
                for place in one.held[row]
            )
            for row in range(len(self.table.rows))
        )


@dataclass(frozen=True)
class Note:
    """A paragraph; `tone` as in Mark."""

    kind: ClassVar[str] = "note"
    text: str
    tone: str = ""
    title: str = ""


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    kind: ClassVar[str] = "points"
    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Pictures:
    """Figures beside each other where the page is wide enough."""

    kind: ClassVar[str] = "pictures"
    items: tuple[Picture, ...]
    title: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """How each is placed: `wide`, `half` beside another, or `lone` with its words beside it."""
        places: list[str] = []
        for picture in self.items:
            if picture.wide:
                places.append("wide")
            elif places and places[-1] == "lone":
                places[-1:] = ["half", "half"]
            else:
                places.append("lone")
        return tuple(places)


@dataclass(frozen=True)
class Films:
    """Videos that lie beside the page; one of them is in it, where it is small.

    Args:
        caption: what is seen.
        paths: of the files, relative to the page, with forward slashes.
        mp4: content of one of them, which the page plays by itself; empty for links alone.
        title: heading.

    Raises:
        ValueError: if a path does not lead to a place below the page.
    """

    kind: ClassVar[str] = "films"
    caption: str
    paths: tuple[str, ...]
    mp4: bytes = b""
    title: str = ""

    def __post_init__(self) -> None:
        for path in self.paths:
            if path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"a video lies below its page, not at {path!r}")

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Each path and its address: whatever a file is called, it names no other place."""
        return tuple((path, quote(path, errors="replace")) for path in self.paths)

    @property
    def data(self) -> str:
        """The content as an address; base64, which needs no escaping."""
        return f"data:video/mp4;base64,{b64encode(self.mp4).decode('ascii')}"


Block = Facts | Table | Filterable | Note | Points | Pictures | Films


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Args:
        title: its heading.
        says: sentences for the summary at the top of the page: what was found, in words.
        blocks: its content.
    """

    title: str
    says: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = field(default=())

    @property
    def cautions(self) -> str:
        """Legend of the marks behind intervals in its sentences; empty where there are none."""
        return describe_cautions(" ".join(self.says))


def report(
    sections: Sequence[Section],
    *,
    title: str = "roadaware report",
    subtitle: str = "",
    made: str | None = None,
) -> str:
    """The whole report as one HTML file that needs no network and runs no script.

    Args:
        sections: in reading order.
        title: heading of the page.
        subtitle: one line below it.
        made: date to print; that of SOURCE_DATE_EPOCH where not given, else none, so that equal input
            gives equal bytes.

    Raises:
        UsageError: if there is no section, or SOURCE_DATE_EPOCH is not a number of seconds.
    """
    if not sections:
        raise UsageError("a report needs at least one section; there is nothing to print")
    date = _source_date()
    drawn = {
        f"s{s}b{b}p{p}": picture.svg(f"s{s}b{b}p{p}")
        for s, section in enumerate(sections)
        for b, block in enumerate(section.blocks)
        if isinstance(block, Pictures)
        for p, picture in enumerate(block.items)
    }
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            drawings=drawn,
            made=date if made is None else made,
            version=__version__,
            policy=POLICY,
        )
    )


def save(page: str, path: Path) -> None:
    """Write a page whole or not at all.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
    """
    write_atomically(path, page.encode("utf-8"))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("roadaware.reports"),
        # Names of files and classes come from outside: without it they
        # could bring their own script into a page.
        autoescape=True,
        # A field that is misspelled fails, where Jinja would print nothing in its place.
        undefined=StrictUndefined,
        finalize=_convert_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _convert_value(value: Any) -> Any:
    """What a template prints: text from outside is made inert, then escaped; markup of ours stays."""
    return sanitize_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _source_date() -> str:
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if not stated:
        return ""
    try:
        # The convention of reproducible builds: without it a page has no date, and the same bytes each time.
        return datetime.fromtimestamp(int(stated), tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH should be whole seconds since 1970; it is {stated!r}") from error
