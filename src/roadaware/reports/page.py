"""The page: sections of facts, tables, notes and figures, put together into one offline HTML file."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from lxml import etree
from markupsafe import Markup

from roadaware import __version__
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.reports.text import capitalize_text, describe_cautions, sanitize_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from roadaware.analysis.excerpts import Clip


MOST_CHOICES = 24
"""The style sheet has a rule for so many."""
_FILTER_NAMES = ("f", "g")
SCRIPT = (Path(__file__).parent / "templates" / "report.js").read_text(encoding="utf-8")
_DIGEST = b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
# The script is allowed by its digest: no other one runs, however it came into a page.
POLICY = (
    "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
    f"script-src 'sha256-{_DIGEST}'"
)


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


def build_caption(rows: Sequence[Sequence[TableCell]], text: str, over: str) -> str:
    """A caption that says what stands below the values of a table, where something does.

    Args:
        rows: of the table.
        text: a remark on the values.
        over: what intervals are over.
    """
    known = (isinstance(cell, Mark) and cell.below and cell.tone != "mute" for row in rows for cell in row)
    said = [text] if text else []
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
        counted: for each column of values the place of the column that counts their samples, -1 for none; values of
            fewer than `FEW_SAMPLES` get a mark. Empty: nothing is counted.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    align: str
    title: str = ""
    caption: str = ""
    counted: tuple[int, ...] = ()

    @property
    def sortable(self) -> bool:
        """Whether the reader may sort the rows: there are several, and no headings among them."""
        return len(self.rows) > 1 and all(len(row) == len(self.columns) for row in self.rows)

    @property
    def defined(self) -> tuple[tuple[TableCell, ...], ...]:
        """The rows without those of which every value is undefined, which `undefined` names."""
        kept = [self._mark_few(row) for row in self.rows if not _is_undefined(row)]
        # A heading within the table goes with the last row below it.
        return tuple(
            row
            for place, row in enumerate(kept)
            if len(row) == len(self.columns) or len([*kept, ()][place + 1]) == len(self.columns)
        )

    def _mark_few(self, row: tuple[TableCell, ...]) -> tuple[TableCell, ...]:
        """The row with a mark behind each value of few samples."""
        if len(row) < len(self.columns):
            return row
        counts = [_get_text(cell).replace(",", "") for cell in row]
        few = [
            place >= 0 and counts[place].isdigit() and int(counts[place]) < FEW_SAMPLES
            for place in self.counted
        ]
        return tuple(
            _append_text(cell, _FEW_MARK) if marked and _get_text(cell)[:1].strip("−-").isdigit() else cell
            for cell, marked in zip(row, few or [False] * len(row), strict=True)
        )

    @property
    def undefined(self) -> str:
        """What has no value at all, in one sentence with the reasons; empty where everything has one."""
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if _is_undefined(row):
                why = next((cell.below for cell in row if isinstance(cell, Mark) and cell.below), "")
                reasons.setdefault(why, []).append(_get_text(row[0]))
        lines = (f"{', '.join(names)}{f' ({why})' if why else ''}" for why, names in reasons.items())
        return f"Undefined: {'; '.join(lines)}." if reasons else ""

    @property
    def cautions(self) -> str:
        """Legend of the marks behind values and intervals; empty where there are none."""
        cells = (each for row in self.defined for each in row)
        text = " ".join(f"{c.text} {c.below}" if isinstance(c, Mark) else c for c in cells)
        few = [f"{_FEW_MARK.strip()} from fewer than {FEW_SAMPLES} samples"] if _FEW_MARK in text else []
        return "; ".join([*filter(None, [describe_cautions(text)]), *few])

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) not in (1, len(self.columns))]
        if wrong or len(self.align) != len(self.columns) or len(self.counted) not in (0, len(self.columns)):
            raise ValueError(
                f"a table of {len(self.columns)} columns has rows or an alignment of another length"
            )


UNDEFINED = "undefined"
FEW_SAMPLES = 15
"""A number from fewer than so many says little, with an interval or without."""
_FEW_MARK = " ⚠"


def _get_text(cell: TableCell) -> str:
    return cell.text if isinstance(cell, Mark) else cell


def _append_text(cell: TableCell, more: str) -> TableCell:
    return replace(cell, text=f"{cell.text}{more}") if isinstance(cell, Mark) else f"{cell}{more}"


def _is_undefined(row: Sequence[TableCell]) -> bool:
    """Whether a row has values, and none of them is defined; counts beside them are no values."""
    marked = [isinstance(cell, Mark) and cell.text == UNDEFINED for cell in row[1:]]
    beside = [_get_text(cell) for cell, is_marked in zip(row[1:], marked, strict=True) if not is_marked]
    return any(marked) and all(text in ("–", "") or text.replace(",", "").isdigit() for text in beside)


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
        for image in self.items:
            if image.wide:
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
        poster: JPEG of an image of that one, shown before it plays and on paper.

    Raises:
        ValueError: if a path does not lead to a place below the page.
    """

    kind: ClassVar[str] = "films"
    caption: str
    paths: tuple[str, ...]
    mp4: bytes = b""
    title: str = ""
    poster: bytes = b""

    def __post_init__(self) -> None:
        for path in self.paths:
            if path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"a video lies below its page, not at {path!r}")

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Each path and its address: whatever a file is called, it names no other place."""
        return tuple((path, quote(path, errors="replace")) for path in self.paths)


@dataclass(frozen=True)
class Clips:
    """Short clips beside each other; what has no image is told in one line.

    Args:
        items: that may be shown.
        title: heading.
        caption: how to read them.
    """

    kind: ClassVar[str] = "clips"
    items: tuple[Clip, ...]
    title: str = ""
    caption: str = ""

    @property
    def shown(self) -> tuple[Clip, ...]:
        """Those with an image."""
        return tuple(clip for clip in self.items if clip.poster)

    @property
    def missing(self) -> str:
        """How many have no image, and why, in one sentence; empty where all have one."""
        faults = [clip.fault for clip in self.items if not clip.poster]
        if not faults:
            return ""
        count = f"{len(faults)} of them are" if len(faults) > 1 else "One of them is"
        lead = "They are not shown" if not self.shown else f"{count} not shown"
        return f"{lead}: {'; '.join(dict.fromkeys(faults))}."


Block = Facts | Table | Filterable | Note | Points | Pictures | Films | Clips


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


MOST_CLIP_CHARS = 2_000_000
"""Of all clips of a page, as they stand in it."""


def _fit_clips(sections: Sequence[Section]) -> list[Section]:
    """The sections with no more of their clips than a page holds; of the others there is a still, or a line."""
    left = MOST_CLIP_CHARS

    def fit(clip: Clip) -> Clip:
        nonlocal left
        # A poster stands there twice, once for paper.
        still, moving = (4 * len(clip.poster) // 3 * n for n in (1, 2))
        whole = moving + 4 * len(clip.mp4) // 3
        if clip.mp4 and whole <= left:
            left -= whole
            return clip
        if still <= left:
            left -= still
            return replace(clip, mp4=b"", fault=_FULL) if clip.mp4 else clip
        return replace(clip, mp4=b"", poster=b"", fault=_FULL)

    return [
        replace(
            section,
            blocks=tuple(
                replace(block, items=tuple(map(fit, block.items))) if isinstance(block, Clips) else block
                for block in section.blocks
            ),
        )
        for section in sections
    ]


_FULL = f"the page holds {MOST_CLIP_CHARS // 1_000_000} MB of clips already"


def report(
    sections: Sequence[Section],
    *,
    title: str = "roadaware report",
    subtitle: str = "",
    made: str | None = None,
) -> str:
    """The whole report as one HTML file that needs no network; its one script sorts tables and unfolds.

    The verdict stands first, then one picture, then the sections: of each a screen, the rest folded.

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
    sections = _fit_clips(sections)
    lead = _select_lead(sections)
    screen_px = _SCREEN_PX * (2 if len(sections) == 1 else 1)
    planned = [_plan_section(place, section, lead, screen_px) for place, section in enumerate(sections)]
    date = _source_date()
    drawn = {
        f"s{s}b{b}p{p}": image.svg(f"s{s}b{b}p{p}")
        for s, section in enumerate(sections)
        for b, block in enumerate(section.blocks)
        if isinstance(block, Pictures)
        for p, image in enumerate(block.items)
    }
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            drawings=drawn,
            lead=lead,
            planned=planned,
            contents=_list_contents(sections, planned),
            n_said=_SAID if len(sections) == 1 else 1,
            script=SCRIPT,
            made=date if made is None else made,
            version=__version__,
            policy=POLICY,
        )
    )


# What is shown at once, and what is folded: a section takes one screen of 1280x800, two where it is alone.

_SCREEN_PX, _COLUMN_PX, _HALF_PX = 680, 900, 440
_LINE_PX, _ROW_PX, _HEAD_PX = 26, 28, 70
_MOST_FACTS = 4
_SAID = 4
"""Sentences of the verdict that are not folded, of a page with one section."""


@dataclass(frozen=True)
class _Shown:
    """A block in its place.

    Args:
        block: what is shown.
        place: among the blocks of its section.
        anchor: what links name it by.
        title: what stands for it where it is folded, and in the contents; may be empty of one that is not.
        folded: whether the reader opens it.
    """

    block: Block
    place: int
    anchor: str
    title: str
    folded: bool


def _select_lead(sections: Sequence[Section]) -> tuple[str, Picture] | None:
    """The picture that stands below the verdict, with its key: the first there is."""
    for s, section in enumerate(sections):
        for b, block in enumerate(section.blocks):
            if isinstance(block, Pictures) and block.items:
                return f"s{s}b{b}p0", block.items[0]
    return None


def _plan_section(
    part: int, section: Section, lead: tuple[str, Picture] | None, left_px: float
) -> list[_Shown]:
    """What of a section fills so many pixels, in its order, and what is folded; warnings never are."""
    shown: list[_Shown] = []
    for place, block in enumerate(section.blocks):
        leading = lead is not None and lead[0] == f"s{part}b{place}p0"
        if leading and isinstance(block, Pictures) and len(block.items) == 1:
            continue
        title = _get_title(block)
        height_px = _estimate_height(block)
        folded = False
        if isinstance(block, Facts) and not block.title and len(block.items) > _MOST_FACTS:
            folded = len(section.blocks) > 1
        elif not isinstance(block, Note):
            folded = height_px > left_px
        # In its order: what follows something folded for its length does not stand before it.
        if folded and not isinstance(block, Facts):
            left_px = 0.0
        elif not folded:
            left_px -= height_px
        shown.append(_Shown(block, place, f"part-{part + 1}-{place + 1}", title, folded))
    return shown


def _get_title(block: Block) -> str:
    if block.title:
        return block.title
    match block:
        case Facts():
            return "Data and settings"
        case Pictures():
            return "; ".join(image.title for image in block.items[:3])
        case Filterable():
            return block.table.title or "Table"
        case Table():
            return f"{block.columns[0]} and {block.columns[-1]}"
        case _:
            return "More"


def _estimate_height(block: Block) -> float:
    """About how many pixels a block takes on a wide page."""
    match block:
        case Facts() | Points():
            return _HEAD_PX + _LINE_PX * len(block.items)
        case Table():
            return _HEAD_PX + sum(map(_estimate_row, block.defined))
        case Filterable():
            return 2 * _HEAD_PX + sum(map(_estimate_row, block.table.rows))
        case Pictures():
            return sum(
                _HEAD_PX
                + (_COLUMN_PX if place == "wide" else _HALF_PX / (1 + (place == "half")))
                * image.figure.get_figheight()
                / image.figure.get_figwidth()
                for image, place in zip(block.items, block.places, strict=True)
            )
        case Films():
            return _HALF_PX if block.mp4 else _HEAD_PX + _LINE_PX * len(block.paths)
        case Clips():
            return _LINE_PX + 0.75 * _HALF_PX * -(-len(block.shown) // 2)
        case Note():
            return _LINE_PX * (1 + len(block.text) // 110)


def _estimate_row(row: Sequence[TableCell]) -> float:
    return _ROW_PX * (1.6 if any(isinstance(cell, Mark) and cell.below for cell in row) else 1.0)


def _list_contents(sections: Sequence[Section], planned: Sequence[Sequence[_Shown]]) -> list[tuple[str, str]]:
    """Anchors and titles: of the sections, or of the blocks where there is one section alone."""
    if len(sections) > 1:
        return [(f"part-{k + 1}", section.title) for k, section in enumerate(sections)]
    titled = [(each.anchor, each.title) for each in planned[0] if each.folded or each.block.title]
    return titled if len(titled) > 1 else []


def save(page: str, path: Path) -> None:
    """Write a page whole or not at all.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
    """
    write_atomically(path, page.encode("utf-8"))


@cache
def _environment() -> Environment:
    found = Environment(
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
    found.filters["address"] = encode_address
    return found


def encode_address(data: bytes, kind: str) -> Markup:
    """Content as an address of its own; base64, which needs no escaping.

    Args:
        data: the content.
        kind: its media type.
    """
    return Markup(f"data:{kind};base64,{b64encode(data).decode('ascii')}")  # noqa: S704


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


DOTTED = (0, (2, 3))
# After the palette of Okabe and Ito, which those with colour blindness can tell apart; darker where it is
# read as text or as a thin line on white.
BLUE, VERMILLION, GREEN, ORANGE = "#0072b2", "#c2520a", "#00805e", "#b87a00"
SKY, PURPLE, INK, GREY, PALE = "#56b4e9", "#a8548a", "#1d2430", "#6b7482", "#d9dee5"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)))
FULL, HALF = 8.6, 4.3

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, 'DejaVu Sans', sans-serif"
STYLE: dict[str, Any] = {
    "text.parse_math": False,
    "text.usetex": False,
    "text.color": INK,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    # Text stays text: it can be searched and read aloud, and the page's own font draws it.
    "svg.fonttype": "none",
    # Otherwise ids are random, and a report differs in its bytes each time.
    "svg.hashsalt": "roadaware",
    "svg.image_inline": True,
    "path.simplify": True,
}
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its title and caption.

    Args:
        title: one line.
        caption: what is seen, for readers who do not see it, too.
        figure: the drawing.
    """

    title: str
    caption: str
    figure: Figure

    @property
    def wide(self) -> bool:
        """Whether it asks for the full width of a page."""
        return bool(self.figure.get_figwidth() > 1.3 * HALF)

    def svg(self, key: str = "figure") -> str:
        """The drawing as an `<svg>` element with title and description; ids start with `key`."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        with set_style():
            buffer = io.BytesIO()
            _settle(self.figure)
            # `savefig` would go through the whole drawing once more, for a layout that is settled here.
            canvas: Any = FigureCanvasSVG(self.figure)
            # A date would make each report differ from the last.
            canvas.print_svg(buffer, metadata={"Date": None})
        drawn = buffer.getvalue()
        title = sanitize_text(self.title)
        caption = sanitize_text(self.caption)
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
        )
        root = etree.fromstring(drawn, parser)
        for element in list(root.iter(f"{{{_SVG}}}metadata", f"{{{_SVG}}}style")):
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
        for element in root.iter():
            # Make ids unique within a page, so several drawings can stand in it, and let text inherit its font.
            if "id" in element.attrib:
                element.set("id", f"{key}-{element.get('id')}")
            link = str(element.get(_LINK, ""))
            if link.startswith("#"):
                element.set(_LINK, f"#{key}-{link.removeprefix('#')}")
            for name in ("clip-path", "style"):
                value = element.get(name)
                if value:
                    value = value.replace("url(#", f"url(#{key}-")
                    element.set(name, value.replace("font-family: 'DejaVu Sans'; ", ""))
        root.set("style", f"font-family: {FONTS}; stroke-linejoin: round; stroke-linecap: butt")
        root.set("role", "img")
        root.set("aria-labelledby", f"{key}-title {key}-desc")
        for index, (tag, text) in enumerate((("title", title), ("desc", caption))):
            element = etree.Element(f"{{{_SVG}}}{tag}", id=f"{key}-{tag}")
            element.text = text
            root.insert(index, element)
        return etree.tostring(root, encoding="unicode")

    def png(self, dpi: int = 120) -> bytes:
        """The drawing as pixels, for places that show no SVG."""
        with set_style():
            buffer = io.BytesIO()
            _settle(self.figure)
            # Without matplotlib's version, which would change the bytes with each release.
            self.figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        return buffer.getvalue()


@contextlib.contextmanager
def set_style() -> Iterator[None]:
    """The house style over matplotlib's own defaults, whatever the user's settings; text is never markup."""
    import matplotlib as mpl

    own: dict[Any, Any] = dict(mpl.rcParamsDefault)
    for key in [key for key in own if key.startswith(("backend", "toolbar"))]:
        del own[key]
    own.update(STYLE)
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", category=mpl.MatplotlibDeprecationWarning)
        mpl.rcParams.update(own)
        yield


def create_canvas(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    """An empty figure of its own, with one pair of axes; call it inside `set_style`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    return figure, figure.add_subplot()


def _settle(figure: Figure) -> None:
    """Lay the figure out once: doing so at every drawing would move things by a little."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
