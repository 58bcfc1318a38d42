"""Mutants of valid bytes: a change is a kind and two numbers in [0, 1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Change = tuple[str, float, float]

_TAG = re.compile(rb"<[^<>]*>")
_NUMBER = re.compile(rb"(?<=\")-?\d[\d.]*(?=\")")
_NAME = re.compile(rb"(?<=[ <])[a-z_]+")
_HOSTILE = (
    b"-1",
    b"NaN",
    b"1e400",
    b"-1e39",
    b"9223372036854775807",
    b"9223372036854775808",
    b"",
    b" ",
    b"1,5",
    b"0x1f",
    b"\xc2\xb2",
    b"__undefined__",
    b"&amp;",
    b"&#10;&#x202e;",
)
_PIECES = (
    b"<",
    b">",
    b'"',
    b"&",
    b"&#0;",
    b"]]>",
    b"<!--",
    b"<![CDATA[",
    b"<?x",
    b"<!DOCTYPE a>",
    b"</track>",
    b"<track>",
    b'<box frame="3">',
    b"</annotations>",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"<roadaware-rows first='0' last='9'/>",
)


def _cut(data: bytes, a: float, b: float) -> bytes:
    return data[: int(a * len(data))]


def _flip(data: bytes, a: float, b: float) -> bytes:
    place = int(a * len(data))
    return data[:place] + bytes([data[place] ^ (1 << int(b * 8))]) + data[place + 1 :]


def _span(data: bytes, a: float, b: float) -> tuple[int, int]:
    start = int(a * len(data))
    return start, min(len(data), start + 1 + int(b**3 * 400))


def _duplicate(data: bytes, a: float, b: float) -> bytes:
    start, end = _span(data, a, b)
    return data[:end] + data[start:end] + data[end:]


def _delete(data: bytes, a: float, b: float) -> bytes:
    start, end = _span(data, a, b)
    return data[:start] + data[end:]


def _insert(data: bytes, a: float, b: float) -> bytes:
    place = int(a * len(data))
    return data[:place] + _PIECES[int(b * len(_PIECES))] + data[place:]


def _chosen(pattern: re.Pattern[bytes], data: bytes, a: float) -> re.Match[bytes] | None:
    found = list(pattern.finditer(data))
    return found[int(a * len(found))] if found else None


def _delete_tag(data: bytes, a: float, b: float) -> bytes:
    tag = _chosen(_TAG, data, a)
    return data if tag is None else data[: tag.start()] + data[tag.end() :]


def _duplicate_tag(data: bytes, a: float, b: float) -> bytes:
    tag = _chosen(_TAG, data, a)
    return data if tag is None else data[: tag.end()] + tag[0] + data[tag.end() :]


def _swap(pattern: re.Pattern[bytes], data: bytes, a: float, b: float) -> bytes:
    first, second = sorted(
        (found for found in (_chosen(pattern, data, a), _chosen(pattern, data, b)) if found is not None),
        key=lambda found: found.start(),
    ) or (None, None)
    if first is None or second is None or first.end() > second.start():
        return data
    middle = data[first.end() : second.start()]
    return data[: first.start()] + second[0] + middle + first[0] + data[second.end() :]


def _swap_numbers(data: bytes, a: float, b: float) -> bytes:
    return _swap(_NUMBER, data, a, b)


def _swap_names(data: bytes, a: float, b: float) -> bytes:
    return _swap(_NAME, data, a, b)


def _hostile_number(data: bytes, a: float, b: float) -> bytes:
    number = _chosen(_NUMBER, data, a)
    if number is None:
        return data
    return data[: number.start()] + _HOSTILE[int(b * len(_HOSTILE))] + data[number.end() :]


KINDS: dict[str, Callable[[bytes, float, float], bytes]] = {
    "cut": _cut,
    "flip": _flip,
    "duplicate": _duplicate,
    "delete": _delete,
    "insert": _insert,
    "delete_tag": _delete_tag,
    "duplicate_tag": _duplicate_tag,
    "swap_numbers": _swap_numbers,
    "swap_names": _swap_names,
    "hostile_number": _hostile_number,
}


def _hostile_text(data: bytes, a: float, b: float) -> bytes:
    number = _chosen(_TEXT_NUMBER, data, a)
    if number is None:
        return data
    return data[: number.start()] + _HOSTILE[int(b * len(_HOSTILE))] + data[number.end() :]


_JSON_NUMBER = re.compile(rb"(?<=[ \[:])-?\d[\d.e-]*(?=[,\]}])")
_JSON_TEXT = re.compile(rb'"[^"\\]*"')
_MEMBER = re.compile(rb'"[^"\\]*": (?:[^][{}",]+|"[^"\\]*"|\[[^][]*\])(?:, )?')
_JSON_HOSTILE = (
    b"-1",
    b"NaN",
    b"-Infinity",
    b"1e400",
    b"1e39",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1" * 5000,
    b"null",
    b"true",
    b"1.0",
    b"0.5",
    b"-0.005",
    b"1.005",
    b'""',
    b'"1"',
    b'"\\ud800"',
    b'"\\u202e\\u0000"',
    b"[]",
    b"{}",
    b"[[[1]]]",
    b'{"a": {"b": [null]}}',
)
_JSON_PIECES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"[" * 5000,
)


def _json_insert(data: bytes, a: float, b: float) -> bytes:
    place = int(a * len(data))
    return data[:place] + _JSON_PIECES[int(b * len(_JSON_PIECES))] + data[place:]


def _hostile_value(pattern: re.Pattern[bytes], data: bytes, a: float, b: float) -> bytes:
    value = _chosen(pattern, data, a)
    if value is None:
        return data
    return data[: value.start()] + _JSON_HOSTILE[int(b * len(_JSON_HOSTILE))] + data[value.end() :]


def _delete_member(data: bytes, a: float, b: float) -> bytes:
    member = _chosen(_MEMBER, data, a)
    return data if member is None else data[: member.start()] + data[member.end() :]


def _duplicate_member(data: bytes, a: float, b: float) -> bytes:
    member = _chosen(_MEMBER, data, a)
    return data if member is None else data[: member.start()] + member[0] + data[member.start() :]


JSON_KINDS: dict[str, Callable[[bytes, float, float], bytes]] = {
    "cut": _cut,
    "flip": _flip,
    "duplicate": _duplicate,
    "delete": _delete,
    "json_insert": _json_insert,
    "delete_member": _delete_member,
    "duplicate_member": _duplicate_member,
    "swap_json_numbers": lambda data, a, b: _swap(_JSON_NUMBER, data, a, b),
    "swap_json_texts": lambda data, a, b: _swap(_JSON_TEXT, data, a, b),
    "hostile_json_number": lambda data, a, b: _hostile_value(_JSON_NUMBER, data, a, b),
    "hostile_json_text": lambda data, a, b: _hostile_value(_JSON_TEXT, data, a, b),
}
_TEXT_NUMBER = re.compile(rb"(?<=>)-?\d[\d.]*(?=<)")
PLAIN_XML_KINDS: dict[str, Callable[[bytes, float, float], bytes]] = {
    **{kind: KINDS[kind] for kind in ("cut", "flip", "duplicate", "delete", "delete_tag", "duplicate_tag")},
    "swap_text_numbers": lambda data, a, b: _swap(_TEXT_NUMBER, data, a, b),
    "hostile_text_number": lambda data, a, b: _hostile_text(data, a, b),
}
_CELL = re.compile(rb"[^,\n]*(?=[,\n])")
_FILLED = re.compile(rb"(?<=,)[^,\n]+(?=[,\n])")
_LINE = re.compile(rb"[^\n]*\n")
_CSV_HOSTILE = (
    b"",
    b" ",
    b"-1",
    b"nan",
    b"-inf",
    b"1e400",
    b"1e-400",
    b"1_0",
    b"1.5",
    b"320.5",
    b"0x1f",
    b"9223372036854775808",
    b"9" * 5000,
    b"\xc2\xb2",
    b"\xef\xbc\x91",
    b"\xe2\x80\xae\x1b[2J",
    b'"1,5"',
    b'"0.5"',
    b"=HYPERLINK(1)",
    b"[[1]]",
)
_CSV_PIECES = (
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"\t",
    b"a" * 70_000,
)


def _csv_insert(data: bytes, a: float, b: float) -> bytes:
    place = int(a * len(data))
    return data[:place] + _CSV_PIECES[int(b * len(_CSV_PIECES))] + data[place:]


def _hostile_cell(data: bytes, a: float, b: float) -> bytes:
    cell = _chosen(_FILLED, data, a)
    if cell is None:
        return data
    return data[: cell.start()] + _CSV_HOSTILE[int(b * len(_CSV_HOSTILE))] + data[cell.end() :]


def _delete_cell(data: bytes, a: float, b: float) -> bytes:
    cell = _chosen(_CELL, data, a)
    return data if cell is None else data[: cell.start()] + data[cell.end() + 1 :]


def _duplicate_cell(data: bytes, a: float, b: float) -> bytes:
    cell = _chosen(_CELL, data, a)
    return data if cell is None else data[: cell.end()] + b"," + cell[0] + data[cell.end() :]


def _delete_line(data: bytes, a: float, b: float) -> bytes:
    line = _chosen(_LINE, data, a)
    return data if line is None else data[: line.start()] + data[line.end() :]


def _duplicate_line(data: bytes, a: float, b: float) -> bytes:
    line = _chosen(_LINE, data, a)
    return data if line is None else data[: line.end()] + line[0] + data[line.end() :]


CSV_KINDS: dict[str, Callable[[bytes, float, float], bytes]] = {
    "cut": _cut,
    "flip": _flip,
    "duplicate": _duplicate,
    "delete": _delete,
    "csv_insert": _csv_insert,
    "hostile_cell": _hostile_cell,
    "delete_cell": _delete_cell,
    "duplicate_cell": _duplicate_cell,
    "delete_line": _delete_line,
    "duplicate_line": _duplicate_line,
    "swap_cells": lambda data, a, b: _swap(_FILLED, data, a, b),
    "swap_lines": lambda data, a, b: _swap(_LINE, data, a, b),
}
_ALL = KINDS | JSON_KINDS | PLAIN_XML_KINDS | CSV_KINDS


def mutated(data: bytes, changes: Sequence[Change]) -> bytes:
    """The data after all changes, one after the other."""
    for kind, a, b in changes:
        if data:
            data = _ALL[kind](data, a, b)
    return data
