"""Label maps: which number stands for which action, as protocol text or csv, read line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from roadaware.errors import InputError
from roadaware.scenes.readers.csvlines import decode, rows_of
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown

MOST_BYTES = 1 << 20
_TOKEN = re.compile(r"\b(name)\s*:\s*(?:\"([^\"]*)\"|'([^']*)')|\b(?:label_id|id)\s*:\s*([^\s,}]+)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HINT = (
    'a label map has `item { name: "..." id: 1 }` for every action, `label_id` for `id`, or is a csv of '
    "id,name"
)
_COLON = re.compile(r"\s*[0-9]+\s*:", re.ASCII)
_IDS, _NAMES = ("id", "label_id", "action_id"), ("name", "label_name", "action_name", "label", "action")


@dataclass(frozen=True)
class LabelMap:
    """The actions of a set in the order of its map.

    Args:
        ids: their numbers in the files.
        names: what they are called, each differently.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]


def read_labels(data: bytes, where: str, findings: Findings) -> LabelMap:
    """The label map of a file.

    It is protocol text, lines of `id: name`, or rows of `id,name`, with or without a header for the columns.
    An action without a name of its own is called by its number; equal names are told apart by it.

    Args:
        data: the file's bytes.
        where: names it in errors.
        findings: takes names that stand twice and numbers without one.

    Raises:
        InputError: if it is too large, no text, holds no number, or one number twice.
    """
    if len(data) > MOST_BYTES:
        raise InputError(f"a label map of {len(data):,} bytes; at most {MOST_BYTES:,}", where=where)
    ids: list[int] = []
    names: list[str] = []
    text = decode(data, where)
    for place, number, name in _items(text) if _TOKEN.search(text) else _rows(text, where):
        if not _NUMBER.fullmatch(number):
            message = f"an id should be a whole number from 0 and is '{shown(number, 40)}'"
            raise InputError(message, where=f"{where}:{place}", hint=_HINT)
        if int(number) in ids:
            message = f"the id {int(number)} stands twice"
            raise InputError(message, where=f"{where}:{place}", hint=_HINT)
        if name is None:
            findings.warn("actions of the label map without a name of their own", f"{where}:{place}")
        ids.append(int(number))
        names.append(shown(name, 255) if name else number)
    if not ids:
        raise InputError("no action in the label map", where=where, hint=_HINT)
    return LabelMap(tuple(ids), _apart(ids, names, findings, where))


def _items(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, number and name of each item of protocol text; None where no name of its own stands before it."""
    name: str | None = None
    for place, line in enumerate(text.split("\n"), 1):
        for token in _TOKEN.finditer(line):
            if token[1]:
                name = token[2] if token[2] is not None else token[3]
                continue
            yield place, token[4], name
            name = None


def _rows(text: str, where: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, number and name of each row of csv, or of lines `id: name`.

    Raises:
        InputError: if the first row is neither a number and a name nor a header, or a quote is not closed.
    """
    if _COLON.match(text):
        for place, line in enumerate(text.split("\n"), 1):
            number, _, name = line.partition(":")
            if line.strip():
                yield place, number.strip(), name.strip() or None
        return
    at = (0, 1)
    for count, (place, cells) in enumerate(rows_of(text, where)):
        if count == 0 and not _NUMBER.fullmatch(cells[0]):
            at = _columns(cells, f"{where}:{place}")
            continue
        number, name = (cells[column] if column < len(cells) else "" for column in at)
        yield place, number, name or None


def _columns(header: list[str], where: str) -> tuple[int, int]:
    """Where a header has the number and the name.

    Raises:
        InputError: if it lacks one.
    """
    names = [name.lower() for name in header]
    found = [next((names.index(each) for each in known if each in names), None) for known in (_IDS, _NAMES)]
    if found[0] is None or found[1] is None:
        raise InputError(
            f"no action in the label map: it begins with '{shown(','.join(header), 80)}'",
            where=where,
            hint=_HINT,
        )
    return found[0], found[1]


def numbered(ids: set[int]) -> LabelMap:
    """The actions of a set without a label map: called by their numbers."""
    ordered = sorted(ids)
    return LabelMap(tuple(ordered), tuple(str(number) for number in ordered))


def _apart(ids: list[int], names: list[str], findings: Findings, where: str) -> tuple[str, ...]:
    """The names, those that stand again with their number behind them."""
    seen: set[str] = set()
    apart = []
    for number, name in zip(ids, names, strict=True):
        own = name
        while own in seen:
            own = f"{own} ({number})"
        seen.add(own)
        apart.append(own)
    twice = [name for name, count in Counter(names).items() if count > 1]
    for name in twice:
        findings.warn("names of actions that the label map gives twice, told apart by their ids", name)
    return tuple(apart)
