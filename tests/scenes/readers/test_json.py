"""Strict JSON: what it takes, what it refuses, and where it says that the fault is."""

from __future__ import annotations

import gc
import inspect
import json
import math
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    ensure_text_list,
    escape_surrogates,
    format_value,
    is_nested_deeper,
    iterate_members,
    parse,
    parse_int,
    pause_garbage_collection,
)

_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(text, "a.json")
    return str(caught.value)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
@settings(deadline=None)
def test_what_is_written_is_read(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    assert parse(text, "a.json") == value
    assert parse(decode(text.encode("utf-8", "surrogatepass"), "a.json"), "a.json") == value


@pytest.mark.slow
@given(st.dictionaries(st.text(), VALUES, max_size=4))
@settings(deadline=None)
def test_the_pieces_of_a_document_make_it(value: dict[str, Any]) -> None:
    text = json.dumps({"before": 1, "db": value})
    pieces = list(iterate_members(text, "a.json", lambda path: path in ((), ("db",))))
    assert [(path, piece) for _, path, piece in pieces] == [
        (("before",), 1),
        *((("db", name), inner) for name, inner in value.items()),
    ]
    ends = [end for end, _, _ in pieces]
    assert ends == sorted(ends)
    assert all(0 < end < len(text) for end in ends)


def test_what_is_opened_and_no_object_is_given_whole() -> None:
    for text, value in (("[1]", [1]), ('"db"', "db"), ("3", 3)):
        assert [piece[1:] for piece in iterate_members(text, "a.json", lambda path: True)] == [((), value)]


FAULTS: dict[str, tuple[str, str, int | str]] = {
    "truncated": ('{"a": [1, 2', "", 11),
    "truncated_in_a_text": ('{"a": "x', "Unterminated string", 6),
    "truncated_behind_a_name": ('{"a"', "", 4),
    "trailing_garbage": ('{"a": 1} x', "behind the end", 9),
    "two_documents": ("[1][2]", "behind the end", 3),
    "no_comma": ('{"a": 1 "b": 2}', "", r"[89]"),
    "comma_too_many": ("[1,]", "", r"[1-3]"),
    "single_quotes": ("{'a': 1}", "", 1),
    "comment": ("[1] // one", "behind the end", 4),
    "nan": ('{"a": "NaN", "b": [1, NaN]}', "NaN is no number", 22),
    "infinity": ("[Infinity]", "Infinity is no number", 1),
    "minus_infinity": ("[1, -Infinity]", "-Infinity is no number", 4),
    "control_character": ('["a\nb"]', "Invalid control character", 3),
    "leading_zero": ("[01]", "", r"[1-3]"),
    "hexadecimal": ("[0x1f]", "", 2),
    "a_name_twice": ('[{"a": 1, "a": 2}]', '"a" stands twice', 0),
    "behind_wide_characters": ('["ä😀", nul]', "", 11),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_byte(name: str) -> None:
    text, reason, byte = FAULTS[name]
    told = refused(text)
    assert "not strict JSON" in told
    assert reason in told
    assert re.search(rf"at byte {byte}\n", told), told
    assert "a.json, line " in told


def test_the_line_and_the_column_are_told() -> None:
    assert "line 3, column 3" in refused('{\n "a": 1,\n  b: 2}')


@pytest.mark.parametrize("text", ['{"db": {"v": 1, "v": 2}}', '{"a": 1, "db": {}, "a": 2}'])
def test_a_name_twice_in_an_opened_object_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="stands twice"):
        list(iterate_members(text, "a.json", lambda path: path in ((), ("db",))))


@pytest.mark.parametrize(
    "text", ['{"a" 1}', "{1: 2}", '{"a": 1', '{"a": 1; "b": 2}', "{,}", '{"a": 1,}', '{"a": }']
)
def test_an_opened_object_is_as_strict(text: str) -> None:
    with pytest.raises(InputError, match=r"not strict JSON(.|\n)*byte"):
        list(iterate_members(text, "a.json", lambda path: True))
    refused(text)


BOMBS: dict[str, Callable[[], str]] = {
    "deep_lists": lambda: "[" * 100_000 + "]" * 100_000,
    "deep_objects": lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "deep_and_cut": lambda: "[" * 1_000_000,
    "long_integer": lambda: '{"a": ' + "9" * 5000 + "}",
    "very_long_integer": lambda: "[-" + "9" * 5_000_000 + "]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_fast(name: str) -> None:
    text = BOMBS[name]()
    started = time.process_time()
    told = refused(text)
    assert time.process_time() - started < 1
    assert len(told) < 1000
    assert "deep" in told or "digits" in told


def test_depth_is_told_with_its_place() -> None:
    assert "nested more than 200 deep, at byte 205" in refused('{"a": ' + "[" * 5000)


@pytest.mark.parametrize("depth", [201, 300, 900, 5000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_no_document_is_deeper_than_200(opens: str, closes: str, depth: int) -> None:
    """Whether or not the standard decoder could still take it."""
    text = f"{opens * depth}1{closes * depth}"
    assert f"nested more than 200 deep, at byte {200 * len(opens)}" in refused(text)
    inner = text[len(opens) : -len(closes)] if depth == 201 else text
    opened = iterate_members('{"v": ' + inner + "}", "a.json", lambda path: path == ())
    with pytest.raises(InputError, match=r"nested more than 200 deep \(in v\)"):
        list(opened)


def test_a_document_may_be_200_deep_and_brackets_in_texts_do_not_count() -> None:
    text = "[" * 200 + json.dumps('[[{{"\\' * 100) + "]" * 200
    assert parse(text, "a.json")
    assert "deep" in refused("[" + text + "]")
    closing = f'["]]]]}}}}",{"[" * 200}{"]" * 200},"[[{{"]'
    assert "deep" in refused(closing)


def nested(value: Any) -> int:
    """How deep a value is nested, by walking through it."""
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(nested, inner), default=0)


@pytest.mark.slow
@given(
    st.recursive(
        st.text('[]{}"\\a'),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=2),
    )
)
@settings(deadline=None)
def test_depth_is_counted_as_by_walking(value: Any) -> None:
    text = json.dumps(value)
    assert [is_nested_deeper(text, most) for most in range(6)] == [nested(value) > most for most in range(6)]


def test_a_right_document_for_which_no_stack_is_left_is_not_blamed() -> None:
    def called(depth: int) -> Any:
        return called(depth - 1) if depth else parse("[" * 190 + "]" * 190, "a.json")

    with pytest.raises(RecursionError):
        called(sys.getrecursionlimit() - len(inspect.stack(0)) - 100)


def test_a_long_integer_in_a_text_is_a_text() -> None:
    text = json.dumps({"a": "9" * 5000})
    assert parse(text, "a.json") == {"a": "9" * 5000}


def test_files_in_other_encodings() -> None:
    text = '{"ä": 1}'
    for data in (text.encode(), text.encode("utf-8-sig"), text.encode("utf-16")):
        assert parse(decode(data, "a.json"), "a.json") == {"ä": 1}
    assert parse(decode(b"\xfe\xff" + text.encode("utf-16-be"), "a.json"), "a.json") == {"ä": 1}
    for data, reason in (
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"\xef\xbb\xbf\xff", "byte 3 is not UTF-8"),
        (text.encode("utf-32"), "not UTF-8"),
    ):
        with pytest.raises(InputError, match=reason):
            decode(data, "a.json")


def test_accessors_name_what_they_find() -> None:
    with pytest.raises(InputError, match=r"'db' should be an object and is a list"):
        ensure_object([], "a.json", "'db'")
    with pytest.raises(InputError, match=r"'x' should be a list and is null"):
        ensure_list(None, "a.json", "'x'")
    with pytest.raises(InputError, match=r"'x' should hold texts and holds 3"):
        ensure_text_list(["a", 3], "a.json", "'x'")
    assert ensure_text_list(["a", "\ud800"], "a.json", "'x'") == ["a", "\\ud800"]
    assert [describe_type(value) for value in ({}, [], "", True, 1, 1.5, None)] == [
        "an object",
        "a list",
        "a text",
        "true or false",
        "a number",
        "a number",
        "null",
    ]


def test_whole_numbers_are_whole() -> None:
    assert [parse_int(value, 0, 5) for value in (0, 5, 6, -1, 2.0, True, "3", None, math.inf)] == [0, 5] + [
        None
    ] * 7


def test_quoted_values_are_short_and_printable() -> None:
    assert format_value("a\x1b[2J\u202e") == '"a\\u001b[2J\\u202e"'
    assert len(format_value("x" * 1000)) <= 60
    assert format_value(10**4000) == "an integer beyond 64 bits"
    assert format_value([1]) == "a list"


def test_broken_characters_are_escaped_and_others_kept() -> None:
    assert escape_surrogates("a\ud83d") == "a\\ud83d"
    assert escape_surrogates("ä😀") == "ä😀"


def test_collection_is_switched_off_and_on_again() -> None:
    assert gc.isenabled()
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(InputError), pause_garbage_collection():
        parse("[", "a.json")
    assert gc.isenabled()
    gc.disable()
    try:
        with pause_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
