"""Strict JSON: one document, no name twice, no number that is none, and errors that say at which byte."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.io.sources import decode_utf_text, to_printable

Path = tuple[str, ...]
Piece = tuple[int, Path, Any]
"""The place behind a value, the names that lead to it, and the value."""

# Far below the depth at which Python's decoder, or who walks through the value, fails.
DEEPEST = 200
_DAMAGED = "the file is damaged or cut off: fetch it again"
_WRITTEN = "mend that place if the file is your own; a fetched one may be damaged or cut off: fetch it again"
_BLANK = re.compile(r"[ \t\n\r]*")
_TEXT = r'"(?:[^"\\]|\\.)*"'
_CONSTANT = re.compile(rf"{_TEXT}|(NaN|-?Infinity)")
# Python turns no more than 4300 digits into a whole number: it takes time with the square of them.
_LONG = re.compile(rf"{_TEXT}|(-?[0-9]{{4301,}})")
_BRACKET = re.compile(rf"{_TEXT}|([\[{{])|([\]}}])")
# As int8 the brackets are steps of +1 and -1 (0xff), and a quote is 0: depth is their running sum.
_STEPS = bytes.maketrans(b'[{]}"', b"\x01\x01\xff\xff\x00")
_NO_STEPS = bytes(set(range(256)) - set(b'[{]}"'))
_KINDS = ((dict, "an object"), (list, "a list"), (str, "a text"), (bool, "true or false"))


class _NoJsonError(ValueError):
    """What the standard decoder would take and JSON does not have."""


def decode(data: bytes, where: str) -> str:
    """The text of a JSON file in UTF-8, or in UTF-16 with its mark.

    Raises:
        InputError: if it is empty or broken (with the byte).
    """
    return decode_utf_text(data, where, expected="JSON", hint=_DAMAGED)


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """While a large document is read, nothing looks for circles among its millions of values: it has none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse(text: str, where: str) -> Any:
    """The document as dictionaries, lists, texts, numbers, booleans and None.

    Args:
        text: what `decode` gave.
        where: names the file in errors.

    Raises:
        InputError: if it is not one strict JSON document: with line, column and byte.
    """
    ((_, _, value),) = iterate_members(text, where, lambda path: False)
    return value


def iterate_members(text: str, where: str, opened: Callable[[Path], bool]) -> Iterator[Piece]:
    """The document piece by piece, in its order: each value that is not itself an opened object.

    So a large document needs the memory of its text and of one piece.

    Args:
        text: what `decode` gave.
        where: names the file in errors.
        opened: whether the object at a path (its names from the top; the top is empty) is given member by
            member; what stands there and is no object is given whole.

    Raises:
        InputError: as `parse`; what was given before was right.
    """
    document = _Document(text, where)
    end = yield from document.value(document.blank(0), (), opened)
    end = document.blank(end)
    if end < len(text):
        document.fail("something stands behind the end of the document", end)


class _Document:
    """A text that is walked through; every method takes and returns a place in it."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self._decoder = json.JSONDecoder(object_pairs_hook=_named_once, parse_constant=_refuse_constant)

    def blank(self, at: int) -> int:
        """The place behind blanks."""
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, path: Path, opened: Callable[[Path], bool]) -> Generator[Piece, None, int]:
        """Give a value, or the members of one that is opened; returns the place behind it."""
        if self.text.startswith("{", at) and opened(path):
            return (yield from self._members(at, path, opened))
        found, end = self._whole(at, path)
        yield end, path, found
        return end

    def _members(self, at: int, path: Path, opened: Callable[[Path], bool]) -> Generator[Piece, None, int]:
        names: set[str] = set()
        at = self.blank(at + 1)
        if self.text.startswith("}", at):
            return at + 1
        while True:
            name, end = self._name(at)
            if name in names:
                self.fail(f"the name {format_value(name)} stands twice in one object", at)
            names.add(name)
            end = yield from self.value(end, (*path, name), opened)
            end = self.blank(end)
            if self.text.startswith("}", end):
                return end + 1
            if not self.text.startswith(",", end):
                self.fail("expected a comma or the end of the object", end)
            at = self.blank(end + 1)

    def _name(self, at: int) -> tuple[str, int]:
        """A member's name and the place where its value begins."""
        if not self.text.startswith('"', at):
            self.fail("expected a name in double quotes", at)
        name, end = self._whole(at, ())
        end = self.blank(end)
        if not self.text.startswith(":", end):
            self.fail("expected a colon behind a name", end)
        return str(name), self.blank(end + 1)

    def _whole(self, at: int, path: Path) -> tuple[Any, int]:
        """A value and the place behind it."""
        inside = f" (in {to_printable('/'.join(path))})" if path else ""
        try:
            found, end = self._decoder.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            self.fail(error.msg, error.pos)
        except RecursionError:
            self._not_deep(at, len(path), inside)
            raise
        except _NoJsonError as error:
            self.fail(f"{error}{inside}", self._first(_CONSTANT, at) if "number" in str(error) else at)
        except ValueError:
            self.fail(f"an integer of more than 4300 digits{inside}", self._first(_LONG, at))
        if isinstance(found, dict | list) and is_nested_deeper(self.text[at:end], DEEPEST - len(path)):
            self._not_deep(at, len(path), inside)
        return found, end

    def _first(self, pattern: re.Pattern[str], at: int) -> int:
        """Where the pattern's group is first found outside texts."""
        return next((m.start(1) for m in pattern.finditer(self.text, at) if m[1]), at)

    def _not_deep(self, at: int, depth: int, inside: str) -> None:
        """Refuse a value where it is first nested too deeply, if it is; `depth` objects are around it."""
        for found in _BRACKET.finditer(self.text, at):
            depth += bool(found[1]) - bool(found[2])
            if depth > DEEPEST:
                self.fail(f"nested more than {DEEPEST} deep{inside}", found.start())

    def fail(self, message: str, at: int) -> NoReturn:
        """Refuse the document.

        Raises:
            InputError: always.
        """
        before = self.text[:at]
        line, column = before.count("\n") + 1, at - before.rfind("\n")
        message = f"not strict JSON: {message}, at byte {len(before.encode('utf-8', 'surrogatepass'))}"
        raise InputError(message, where=f"{self.where}, line {line}, column {column}", hint=_WRITTEN)


def is_nested_deeper(text: str, most: int) -> bool:
    """Whether lists and objects are nested more than `most` deep in the text of one right value.

    Far cheaper than to walk through the value: only its brackets and quotes are considered.
    """
    if text.count("[") + text.count("{") <= most:
        return False
    if "\\" in text:
        # Double backslashes first, or else the quote in \\" would count as escaped.
        text = text.replace("\\\\", "").replace('\\"', "")
    marks = text.encode("utf-8", "surrogatepass").translate(_STEPS, _NO_STEPS)
    steps = np.frombuffer(marks, np.int8)
    # A quote flips between inside and outside of a text; brackets in texts are no steps.
    outside = np.bitwise_xor.accumulate(steps == 0) == 0
    return bool(np.cumsum(steps * outside, dtype=np.int32).max(initial=0) > most)


def describe_type(value: Any) -> str:
    """The type of a value in words."""
    return next(
        (text for kind, text in _KINDS if isinstance(value, kind)), "null" if value is None else "a number"
    )


def format_value(value: Any) -> str:
    """A value for messages: its JSON, cut and printable; of objects and lists only what they are."""
    if isinstance(value, dict | list):
        return describe_type(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return "an integer beyond 64 bits"
    return to_printable(json.dumps(value, ensure_ascii=False), 60)


def escape_surrogates(text: str) -> str:
    """The text as a table can hold it: broken halves of characters are escaped."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def ensure_object(value: Any, where: str, what: str) -> dict[str, Any]:
    """The value, which must be an object.

    Raises:
        InputError: if it is something else, which is named.
    """
    if isinstance(value, dict):
        return value
    raise InputError(f"{what} should be an object and is {describe_type(value)}", where=where)


def ensure_list(value: Any, where: str, what: str) -> list[Any]:
    """The value, which must be a list.

    Raises:
        InputError: if it is something else, which is named.
    """
    if isinstance(value, list):
        return value
    raise InputError(f"{what} should be a list and is {describe_type(value)}", where=where)


def ensure_text_list(value: Any, where: str, what: str) -> list[str]:
    """The value, which must be a list of texts.

    Raises:
        InputError: if it, or something in it, is something else.
    """
    for item in ensure_list(value, where, what):
        if not isinstance(item, str):
            raise InputError(f"{what} should hold texts and holds {format_value(item)}", where=where)
    return [escape_surrogates(item) for item in value]


def parse_int(value: Any, low: int, high: int) -> int | None:
    """The value if it is a whole number in [low, high], None otherwise; 3.0 is not one, nor is true."""
    # type and not isinstance: True is an instance of int.
    return value if type(value) is int and low <= value <= high else None


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _NoJsonError(f"the name {format_value(counts.most_common(1)[0][0])} stands twice in one object")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise _NoJsonError(f"{word} is no number of JSON")


# Lists of four numbers from JSON as corners in double precision, each checked, with why it is refused.

LARGEST = 1e9
"""Corners beyond this are no pixels of any image."""


def parse_corners(
    lists: Sequence[Any], *, sized: bool, largest: float = LARGEST
) -> tuple[Floats, dict[int, str]]:
    """(n, 4) corners x1, y1, x2, y2, and the place of each list that cannot be taken with the reason.

    Boxes without area are taken: published evaluators count them, with an overlap of 0.

    Args:
        lists: (n,) what stands in the file.
        sized: whether the last two numbers are width and height; x2 = x1 + width, in double precision.
        largest: a number beyond this is refused.
    """
    if _plain(lists):
        given = np.array(lists, dtype=np.float64).reshape(-1, 4)
        bad: dict[int, str] = {}
    else:
        bad = {n: reason for n, each in enumerate(lists) if (reason := _fault(each))}
        given = np.array([[0.0] * 4 if n in bad else each for n, each in enumerate(lists)], dtype=np.float64)
    # The numbers of the file are judged, not the sums with width and height.
    found = given.copy()
    if sized:
        with np.errstate(invalid="ignore", over="ignore"):
            found[:, 2:] += found[:, :2]
    # Written so that nan is far, too.
    far = ~(np.abs(given) <= largest).all(axis=1)
    turned = (found[:, 2] < found[:, 0]) | (found[:, 3] < found[:, 1])
    for place in np.flatnonzero(far | turned).tolist():
        upside_down = turned[place] and np.isfinite(given[place]).all()
        text = "is upside down" if upside_down else "holds no finite number of a usual size"
        bad.setdefault(place, f"the box {given[place].tolist()} {text}")
    return found, dict(sorted(bad.items()))


def _plain(lists: Sequence[Any]) -> bool:
    """Whether all are lists of four numbers that a float holds."""
    if not all(type(each) is list and len(each) == 4 for each in lists):
        return False
    kinds = set(map(type, chain.from_iterable(lists)))
    if kinds <= {float}:
        return True
    # A whole number beyond a double would raise in numpy.
    return kinds <= {float, int} and not any(abs(x) > LARGEST for x in chain.from_iterable(lists))


def _fault(given: Any) -> str:
    """Why a value is no list of four numbers."""
    if not isinstance(given, list):
        return f"a box should be a list of four numbers and is {describe_type(given)}"
    if len(given) != 4:
        return f"a box should have four numbers and has {len(given)}"
    for number in given:
        if type(number) not in (int, float) or abs(number) > 1e300:
            return f"no finite number: {format_value(number)}"
    return ""
