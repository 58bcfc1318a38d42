"""Words on images: letters that the usual font lacks come from a font of the system, or are spelt out."""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from PIL import ImageFont

_PROBED_PX = 24
"""Height at which fonts are asked for letters."""
_NO_LETTER = "\U0010ffff"
"""Of which no font has a letter: what is drawn for it is drawn for whatever is missing."""
_MOST_FONTS = 60
_MOST_LETTERS, _MOST_UNKNOWN = 64, 8
"""Letters of one text that are looked for in all fonts, and how many of them may be in none before the rest is not."""


class Letters:
    """Measures and writes words of one height.

    Letters are those of Pillow's font. Words with others (Chinese, Arabic, emoji) are written in the font of the system
    that has the most of them, and what that one lacks is spelt out: symbols by their names, others as `\\u6f22`. Of a text
    the first 64 different letters that the usual font lacks are looked for in 60 fonts, up to the eighth that none has.

    Args:
        size: in pixels.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._usual = _open("", size)
        ascent, descent = self._usual.getmetrics()
        self._ascent: int = ascent
        self.height: int = ascent + descent
        """Of a line, in pixels."""

    def measure(self, words: str) -> tuple[float, float, float, float]:
        """Left, top, right and lower side of what `write` writes at (0, 0), in pixels."""
        font, text = self._choose(words)
        if font is self._usual:
            left, top, right, bottom = font.getbbox(text)
            return left, top, right, bottom
        left, top, right, bottom = font.getbbox(text, anchor="ls")
        return left, top + self._ascent, right, bottom + self._ascent

    def length(self, words: str) -> float:
        """How far the words reach, in pixels."""
        font, text = self._choose(words)
        return float(font.getlength(text))

    def write(self, pen: Any, at: tuple[float, float], words: str, colour: Any) -> None:
        """Write words.

        Args:
            pen: an `ImageDraw`.
            at: upper left corner of their line.
            words: one line.
            colour: as Pillow takes it.
        """
        font, text = self._choose(words)
        if font is self._usual:
            pen.text(at, text, fill=colour, font=font)
        else:  # on the same line as usual letters
            pen.text((at[0], at[1] + self._ascent), text, fill=colour, font=font, anchor="ls")

    def _choose(self, words: str) -> tuple[Any, str]:
        """The font in which words are written, and they with what it lacks spelt out."""
        words = words.replace("\n", " ")
        if words.isascii():
            return self._usual, words
        path, text = _arrange(words)
        return (_open(path, self._size) or self._usual) if path else self._usual, text


@lru_cache(4096)
def _arrange(words: str) -> tuple[str, str]:
    """The file of the font that has most of some words, empty for the usual one, and they with the rest spelt out."""
    usual = {c: _has("", c) for c in words}
    looked = {c for c, has in usual.items() if has}
    fonts, unknown = [""], 0
    for letter in [c for c, has in usual.items() if not has][:_MOST_LETTERS]:
        looked.add(letter)
        path = _find(letter)
        fonts += [path] if path and path not in fonts else []
        unknown += not path
        if unknown == _MOST_UNKNOWN:
            break
    best = max(fonts, key=lambda path: sum(_has(path, c) for c in looked))
    return best, "".join(c if _has(best, c) else _spell(c) for c in words)


def _spell(letter: str) -> str:
    kind, name = unicodedata.category(letter), unicodedata.name(letter, "")
    if kind == "Cf" or name.startswith("VARIATION SELECTOR"):
        return ""
    return f"({name.lower()})" if name and kind == "So" else letter.encode("unicode_escape").decode("ascii")


@lru_cache(16384)
def _find(letter: str) -> str:
    """The first font of the system with a letter; empty if there is none."""
    return next((path for path in _list_fonts() if _has(path, letter)), "")


@lru_cache(65536)
def _has(path: str, letter: str) -> bool:
    """Whether a font has a letter; space is there in each."""
    # Not laid out as in words, where a mark would stand on a letter.
    font = _open(path, _PROBED_PX, ImageFont.Layout.BASIC)
    return font is not None and (letter.isspace() or _draw(font, letter) != _draw_missing(path))


@lru_cache(256)
def _draw_missing(path: str) -> tuple[tuple[int, int], bytes]:
    return _draw(_open(path, _PROBED_PX, ImageFont.Layout.BASIC), _NO_LETTER)


def _draw(font: Any, letter: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(letter)
    return mask.size, bytes(mask)


@lru_cache(1024)
def _open(path: str, size: int, layout: ImageFont.Layout | None = None) -> Any:
    """A font, the usual one where the path is empty; None where it cannot be opened in that size, as coloured emoji."""
    if not path:
        return ImageFont.load_default(size)
    try:
        return ImageFont.truetype(path, size, layout_engine=layout)
    except (OSError, ValueError):
        return None


@cache
def _list_fonts() -> list[str]:
    """Files of fonts: Matplotlib's own first, then those of the system, upright and of usual weight before others."""
    import matplotlib as mpl
    from matplotlib.font_manager import findSystemFonts

    def rank(path: str) -> tuple[bool, str]:
        name = Path(path).name.lower()
        return any(
            word in name for word in ("bold", "italic", "oblique", "light", "black", "thin", "mono")
        ), name

    own = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return [str(own), *sorted(findSystemFonts(), key=rank)][:_MOST_FONTS]
