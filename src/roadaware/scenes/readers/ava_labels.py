"""Label maps of AVA: which number stands for which action, read line by line."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from roadaware.errors import InputError
from roadaware.scenes.readers.csvlines import decode
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown

MOST_BYTES = 1 << 20
_TOKEN = re.compile(r"\b(name)\s*:\s*(?:\"([^\"]*)\"|'([^']*)')|\b(?:label_id|id)\s*:\s*([^\s,}]+)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HINT = 'a label map has `item { name: "..." id: 1 }` for every action, or `label_id` for `id`'


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
    name, used = "", True
    for place, line in enumerate(decode(data, where).split("\n"), 1):
        for token in _TOKEN.finditer(line):
            if token[1]:
                name, used = token[2] if token[2] is not None else token[3], False
                continue
            number = token[4]
            if not _NUMBER.fullmatch(number):
                message = f"an id should be a whole number from 0 and is '{shown(number, 40)}'"
                raise InputError(message, where=f"{where}:{place}", hint=_HINT)
            if int(number) in ids:
                message = f"the id {int(number)} stands twice"
                raise InputError(message, where=f"{where}:{place}", hint=_HINT)
            if used:
                findings.warn("actions of the label map without a name of their own", f"{where}:{place}")
            ids.append(int(number))
            names.append(shown(name, 255) if not used and name else number)
            used = True
    if not ids:
        raise InputError("no action in the label map", where=where, hint=_HINT)
    return LabelMap(tuple(ids), _apart(ids, names, findings, where))


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
