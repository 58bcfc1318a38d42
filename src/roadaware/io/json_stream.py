"""JSON files larger than memory: an object in which one list is long, read block by block as strictly as `io.json` reads.

The file is gone through twice: first all but the long list is read, wherever that stands, then the list in parts. Only the
depth of brackets is followed here, in arrays over brackets and quotes; values are parsed by `io.json`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools
from roadaware.errors import InputError
from roadaware.io.json import decode, parse
from roadaware.io.sources import MAX_FILE_BYTES

BLOCK = 1 << 22
_AHEAD = 256
"""Bytes that are kept back, in which the name of the list may begin."""
_BACKSLASH, _COMMA = b"\\,"
_QUOTE = 2
# What each byte is to the structure: a step of depth (255 is -1), a quote, or nothing.
_KINDS = bytes(
    {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", 255), ord('"'): _QUOTE}.get(n, 0) for n in range(256)
)


@dataclass(frozen=True)
class Surroundings:
    """A file without its long list.

    Args:
        rest: the document, with an empty list in the place of the long one.
        parts: where parts of some thousand elements of the list begin and end, in bytes; None where there is no such list.
        digest: of the whole file: blake2b, as sources keep it.
    """

    rest: Any
    parts: tuple[tuple[int, int], ...] | None
    digest: str


def read_around(stream: FileIO, name: str, where: str) -> Surroundings:
    """Read an object but for one of its lists.

    Args:
        stream: the file, at its beginning.
        name: of the member of the top that is the long list.
        where: names the file in errors.

    Raises:
        InputError: if what is read is no strict JSON, is too large for memory itself, or the list does not end.
    """
    pattern = re.compile(rb'"' + name.encode() + rb'"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}\[')
    held, place, depth, inside = b"", 0, 0, False
    rest, parts, begin, seen = bytearray(), list[tuple[int, int]](), -1, hashlib.blake2b(digest_size=16)
    last = False
    while not last:
        block = stream.read(BLOCK) or b""
        seen.update(block)
        held, last = held + block, not block
        limit = len(held) if last else _settle(held, len(held) - _AHEAD)
        marks = _follow(held[:limit], depth, inside)
        at = 0
        while at < limit:
            if begin >= 0:
                # Within the list brackets are two deep at least.
                end = marks.find_depth(1, at)
                high = limit if end is None else end
                if (cut := _find_last_comma(held, marks, at, high)) is not None:
                    parts.append((begin, place + cut))
                    begin = place + cut + 1
                if end is None:
                    break
                at = high
                parts.append((begin, place + at))
                begin = -1
            found = next(
                (m for m in pattern.finditer(held, at) if m.start() < limit and marks.get_state(m.start()) == (1, True)
                 and not marks.get_state(m.start() - 1)[1]), None,
            )  # fmt: skip
            if found is not None and found.end() > limit:
                limit, found = found.start(), None
            rest += held[at : limit if found is None else found.end()]
            if found is None:
                break
            at, begin = found.end(), place + found.end()
        if len(rest) > MAX_FILE_BYTES:
            raise InputError(
                f"more than {MAX_FILE_BYTES} bytes beside the list {name!r}, which is too much to read",
                where=where,
            )
        if limit:
            depth, inside = marks.get_state(limit - 1)
        held, place = held[limit:], place + limit
    if begin >= 0:
        raise InputError(
            f"not strict JSON: the list {name!r} does not end",
            where=where,
            hint="the file is cut off: fetch it again",
        )
    return Surroundings(parse(decode(bytes(rest), where), where), tuple(parts) or None, seen.hexdigest())


def iterate_parts(stream: FileIO, parts: tuple[tuple[int, int], ...], where: str) -> Iterator[list[Any]]:
    """The elements of a long list, some thousands at a time.

    Args:
        stream: the file.
        parts: where they begin and end, in bytes.
        where: names the file in errors.

    Raises:
        InputError: if they are no strict JSON, one of them is too large for memory, or the file is shorter by now.
    """
    for begin, end in parts:
        if end - begin > MAX_FILE_BYTES:
            raise InputError(f"an element of {end - begin} bytes, from byte {begin}", where=where)
        stream.seek(begin)
        held = bytearray()
        while len(held) < end - begin:
            block = stream.read(end - begin - len(held))
            if not block:
                raise InputError("the file changed while it was read", where=where)
            held += block
        if held.strip():
            yield parse(decode(b"[%b]" % bytes(held), where), f"{where}, counted from byte {begin - 1}")
        elif len(parts) > 1:
            raise InputError(f"not strict JSON: an element is missing at byte {begin}", where=where)


def _find_last_comma(held: bytes, marks: _Marks, low: int, high: int) -> int | None:
    """The last place between two elements of the list, which is two deep; None where there is none."""
    # Nearly always it lies close to the end.
    for start in (max(low, high - (1 << 14)), low):
        commas = start + np.flatnonzero(np.frombuffer(held, np.uint8, max(0, high - start), start) == _COMMA)
        states = np.searchsorted(marks.places, commas, "right")
        commas = commas[(marks.depths[states] == 2) & ~marks.texts[states]]
        if len(commas):
            return int(commas[-1])
    return None


def _settle(held: bytes, limit: int) -> int:
    """A place at or before `limit` that is not within an escape."""
    while limit > 0 and held[limit - 1] == _BACKSLASH:
        limit -= 1
    return max(limit, 0)


@dataclass(frozen=True, eq=False)
class _Marks:
    """Brackets and quotes of a part, with what holds behind each.

    Args:
        places: (n,) of the bytes, ascending.
        depths: (n + 1,) how deep brackets are nested before the first, and behind each.
        texts: (n + 1,) whether a text goes on there.
    """

    places: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int32]
    texts: Bools

    def get_state(self, place: int) -> tuple[int, bool]:
        """Depth and whether a text goes on, behind the byte at `place`; -1 is before the first."""
        number = int(np.searchsorted(self.places, place, "right"))
        return int(self.depths[number]), bool(self.texts[number])

    def find_depth(self, depth: int, low: int) -> int | None:
        """The first bracket or quote from `low` on behind which brackets are so deep."""
        first = int(np.searchsorted(self.places, low))
        found = np.flatnonzero(self.depths[first + 1 :] == depth)
        return int(self.places[first + found[0]]) if len(found) else None


def _follow(part: bytes, depth: int, inside: bool) -> _Marks:
    """What holds behind the brackets and quotes of a part.

    Args:
        part: does not begin or end within an escape.
        depth: how deep brackets are nested before it.
        inside: whether it begins within a text.
    """
    if b"\\" in part:
        # Pairs of backslashes first, or else the quote in \\" would count as escaped.
        part = part.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    kinds = np.frombuffer(part.translate(_KINDS), np.int8)
    places = np.flatnonzero(kinds != 0)
    kinds = kinds[places]
    quotes = kinds == _QUOTE
    texts = np.logical_xor.accumulate(np.concatenate([[inside], quotes]))
    steps = np.where(quotes | texts[1:], 0, kinds)
    return _Marks(places, np.cumsum(np.concatenate([[depth], steps]), dtype=np.int32), texts)
