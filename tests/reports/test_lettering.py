"""Words on images: letters that the usual font lacks come from another font or are spelt out, never as empty boxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from roadaware.reports import lettering
from roadaware.reports.lettering import Letters, _arrange


@pytest.fixture(autouse=True)
def _few_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A system without fonts, but for those that come with Matplotlib."""
    held = (lettering._list_fonts, lettering._find, _arrange)
    for each in held:
        each.cache_clear()
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: ["/nowhere/lost.ttf"])
    yield
    for each in held:
        each.cache_clear()


def draw(words: str, size: int = 20) -> np.ndarray:
    image = Image.new("L", (400, 40))
    Letters(size).write(ImageDraw.Draw(image), (2, 4), words, 255)
    return np.asarray(image)


def test_usual_letters_are_written_as_pillow_does() -> None:
    font, words = ImageFont.load_default(20), "walking 0.93 (gjpqy)"
    image = Image.new("L", (400, 40))
    pen = ImageDraw.Draw(image)
    pen.text((2, 4), words, fill=255, font=font)
    np.testing.assert_array_equal(draw(words), np.asarray(image))
    assert Letters(20).measure(words) == pen.textbbox((0, 0), words, font=font)
    assert Letters(20).length(words) == pen.textlength(words, font=font)
    assert Letters(20).height == sum(font.getmetrics())


@pytest.mark.parametrize(
    ("words", "own", "text"),
    [
        ("a red coat", False, "a red coat"),
        ("Fußgänger", True, "Fußgänger"),  # Pillow's font has ASCII alone
        ("رجل يرمي حجرا", True, "رجل يرمي حجرا"),
        ("行人 red", False, r"\u884c\u4eba red"),
        ("\N{POLICE CAR} here", False, "(police car) here"),
        ("\N{POLICE CAR} für", True, "(police car) für"),
        ("न", False, r"\u0928"),
        ("lone \ud800", False, r"lone \ud800"),
        ("two\nlines", False, "two lines"),
        ("", False, ""),
    ],
)
def test_what_no_font_has_is_spelt_out(words: str, own: bool, text: str) -> None:
    font, said = Letters(20)._choose(words)
    assert said == text
    assert (Path(font.path).name == "DejaVuSans.ttf" if own else font.getname()[0] == "Aileron") is True


def test_other_letters_stand_on_the_line_and_within_what_is_measured() -> None:
    for words in ("Fußgänger", "رجل يرمي حجرا", "行人", "\N{FIRE}"):
        drawn = draw(words) > 100
        rows, columns = drawn.any(axis=1).nonzero()[0], drawn.any(axis=0).nonzero()[0]
        left, top, right, bottom = Letters(20).measure(words)
        assert left + 1 <= columns[0] <= columns[-1] <= right + 2
        assert top + 3 <= rows[0] <= rows[-1] <= bottom + 4
    foot = [np.flatnonzero((draw(words) > 100).any(axis=1))[-1] for words in ("Hn", "Hn\N{CHECK MARK}")]
    assert abs(int(foot[0]) - int(foot[1])) <= 1


def test_letters_that_no_font_has_are_looked_for_a_few_times_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fonts = [tmp_path / f"{number}.ttf" for number in range(100)]
    for font in fonts:
        font.symlink_to(lettering._list_fonts()[0])
    lettering._list_fonts.cache_clear()
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [str(font) for font in fonts])
    drawn: list[str] = []
    draw_letter = lettering._draw

    def count(font: ImageFont.FreeTypeFont, letter: str) -> tuple[tuple[int, int], bytes]:
        drawn.append(letter)
        return draw_letter(font, letter)

    monkeypatch.setattr(lettering, "_draw", count)
    words = "".join(chr(0xF0000 + k) for k in range(500))
    assert _arrange(words)[1] == words.encode("unicode_escape").decode()
    # Each in the usual font, eight in sixty others, and once for each font what is drawn for missing ones.
    assert len(drawn) <= 500 + 8 * 60 + 61
    assert lettering._find.cache_info().maxsize is not None
    # Letters behind them are still written in the font that was found before.
    text = _arrange(f"ß{words}ü")[1]
    assert text[0] + text[-1] == "ßü"


def test_fonts_that_cannot_be_opened_are_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    fonts = [str(tmp_path / "broken.ttf"), "/nowhere.otf"]
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: fonts)
    assert _arrange("行") == ("", r"\u884c")
