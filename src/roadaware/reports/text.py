"""Words and numbers as a report prints them, and text from data made inert before it gets there."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from roadaware.statistics.cautions import AT_END, FEW, LARGEST, MEANINGS

_CAUTIONS = {FEW: " †", AT_END: " ‡", LARGEST: " ¶"}
LONGEST = 2000
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\u2028\u2029\u0085\u000b\u000c")
_POSIX_PATH = re.compile(r"(?<![\w.:/~<-])/(?:[^\s/\"'<>|;,]+/)+([^\s/\"'<>|;,]+)")
_WINDOWS_PATH = re.compile(r"(?<!\w)[A-Za-z]:\\(?:[^\s\\\"'<>|;,]+\\)*([^\s\\\"'<>|;,]+)")


def encode_invisible(text: str, longest: int = LONGEST) -> str:
    r"""The text with everything that acts instead of being seen written out, such as `\x1b`.

    Control characters, changes of writing direction, unusual line breaks, lone surrogates and
    characters that XML forbids are replaced by their escapes; a longer text is cut with an ellipsis.

    >>> encode_invisible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text if text.isascii() and text.isprintable() else "".join(map(_seen, text))


def trim_paths(text: str) -> str:
    """The text with absolute paths cut to their last part: a report names files, never a machine.

    >>> trim_paths("/home/someone/data/jaad.zip is damaged")
    '…/jaad.zip is damaged'
    """
    return _WINDOWS_PATH.sub(r"…/\1", _POSIX_PATH.sub(r"…/\1", text))


def sanitize_text(text: str) -> str:
    """Text from outside as it may stand in a page or a figure: `encode_invisible` and `trim_paths`."""
    return encode_invisible(trim_paths(text))


def clip_label(text: str, longest: int) -> str:
    """Inert text of at most so many characters, as labels of figures need it.

    >>> clip_label("a very long name", 8)
    'a very …'
    """
    shown = sanitize_text(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def format_number(value: float | None, digits: int = 3) -> str:
    """A value with fixed digits and a true minus sign; a missing one is a dash.

    >>> format_number(-0.25, 2)
    '−0.25'
    """
    if value is None or not math.isfinite(value):
        return "–"
    shown = f"{value:.{digits}f}"
    return shown.lstrip("-") if float(shown) == 0 else shown.replace("-", "−")


def format_signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign."""
    shown = format_number(value, digits)
    return f"+{shown}" if value is not None and 0 < value < math.inf and float(shown) > 0 else shown


def format_count(value: int | None) -> str:
    """A whole number with separators; a missing one is a dash.

    >>> format_count(391038)
    '391,038'
    """
    return "–" if value is None else f"{value:,}"


def format_interval(
    low: float | None, high: float | None, digits: int = 3, caution: str | None = None
) -> str:
    """Both ends of an interval; a dash when it was not computed.

    Args:
        low: lower end.
        high: upper end.
        digits: behind the point.
        caution: why it is to be taken with caution; `describe_cautions` says what its mark means.
    """
    if low is None or high is None:
        return "–"
    return f"{format_number(low, digits)} to {format_number(high, digits)}{format_caution(caution)}"


def format_row_interval(row: Mapping[str, Any], unit: str = "video", digits: int = 3) -> str:
    """The interval of a row of a summary over a kind of unit, with its caution; see `format_interval`."""
    return format_interval(
        row.get(f"low_{unit}"), row.get(f"high_{unit}"), digits, row.get(f"caution_{unit}")
    )


def format_caution(caution: str | None) -> str:
    """The mark of an interval that is to be taken with caution, behind a space; nothing for others."""
    return _CAUTIONS.get(caution or "", "")


def describe_cautions(text: str) -> str:
    """Legend of the marks of intervals in a text; empty where there are none."""
    return "; ".join(f"{sign[1:]} {MEANINGS[name]}" for name, sign in _CAUTIONS.items() if sign in text)


def format_percent(part: float, whole: float) -> str:
    """A share in whole percent, with the two ends never rounded into."""
    if not whole:
        return "–"
    share = 100.0 * part / whole
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def format_name(name: str) -> str:
    """A column or field name as words.

    >>> format_name("balanced_accuracy")
    'balanced accuracy'
    """
    if name in _NAMES:
        return _NAMES[name]
    return " ".join(_ABBREVIATIONS.get(word, word) for word in name.split("_"))


def format_fact(value: object) -> str:
    """A fact out of a result as people write it.

    >>> format_fact({"capacity": 1000, "averaging": None})
    'capacity 1,000, averaging none'
    >>> format_fact({"14 x 14": 34})
    '14 x 14: 34'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_count(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(
            f"{name}{':' if str(name)[-1:].isdigit() else ''} {format_fact(item)}"
            for name, item in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(format_fact, value))
    return str(value)


def capitalize_text(text: str) -> str:
    """The text with a capital at its start, unless it begins with a name that has capitals elsewhere.

    >>> capitalize_text("gradient boosting is better"), capitalize_text("pedFormer is better")
    ('Gradient boosting is better', 'pedFormer is better')
    """
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.islower() else text


_ABBREVIATIONS = {"auc": "AUC", "f1": "F1", "tte": "TTE"}
_NAMES = {
    "auc_thresholded": "AUC, thresholded",
    **{name: name.upper() for name in ("hota", "owta", "idf1", "mota", "moda", "motp")},
    "det_a": "DetA", "ass_a": "AssA", "loc_a": "LocA", "det_re": "DetRe", "det_pr": "DetPr", "ass_re": "AssRe",
    "ass_pr": "AssPr", "id_re": "IDR", "id_pr": "IDP",
}  # fmt: skip
"""Metrics as their papers write them."""


def _seen(character: str) -> str:
    if character in "\n\t":
        return " "
    # Cc: control; Cs: lone surrogates, which UTF-8 cannot write; Cn:
    # unassigned, with U+FFFE, which XML forbids.
    category = unicodedata.category(character)
    acts = category in {"Cc", "Cs", "Cn"} or character in _BIDI or character in _BREAKS
    return character.encode("unicode_escape").decode("ascii") if acts else character
