"""One figure: a matplotlib figure, its title and caption, and its SVG: same data, same bytes."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lxml import etree

from roadaware.reports.text import sanitize_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
