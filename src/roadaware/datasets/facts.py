"""What annotations do not say of themselves: options, or the file `dataset.toml` beside them; and their classes renamed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roadaware.datasets.csv_boxes import LONGEST_NAME
from roadaware.errors import InputError, UsageError
from roadaware.io.json import escape_surrogates, parse_int
from roadaware.io.sources import Source, decode_utf_text, to_printable
from roadaware.scenes.tables import Tables, label_tracks, rename_labels

FACTS = "dataset.toml"
"""The file in a folder of annotations that says what the annotations do not."""
LARGEST_SIDE = 1 << 20
_FACT_KEYS = ("fps", "size", "classes", "first_frame", "columns", "rename")


@dataclass(frozen=True)
class Facts:
    """What annotations do not say.

    Args:
        fps: frames a second of every video.
        size_px: width and height of every image.
        classes: names of classes in the order of their numbers.
        first_frame: number of a video's first frame.
        columns: what a row of csv holds to the name of its column.
        rename: class, as the files call it, to its other name.
    """

    fps: float | None = None
    size_px: tuple[int, int] | None = None
    classes: tuple[str, ...] | None = None
    first_frame: int | None = None
    columns: Mapping[str, str] | None = None
    rename: Mapping[str, str] | None = None


_MOST_LETTERS = 1 << 20
_MOST_DOTS = 100
"""Python's parser takes half a minute for one key a.a.a... of 100 kB."""
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def list_facts(source: Source) -> list[str]:
    """The name of `dataset.toml` where it lies beside the annotations: a file that is read, too."""
    return [FACTS] if source.holds(FACTS) else []


def read_facts(source: Source, **given: Any) -> Facts:
    """What options say, else `dataset.toml` beside the annotations.

    Args:
        source: where the annotations lie.
        given: values of options; None where one was not named.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if the file is no TOML, or a value in it has no meaning.
    """
    chosen = _parse_facts({name: value for name, value in given.items() if value is not None}, UsageError, "")
    if not source.holds(FACTS):
        return chosen
    where = source.where(FACTS)
    text = decode_utf_text(source.read(FACTS), where, expected="TOML", hint="write it again as UTF-8")
    if len(text) > _MOST_LETTERS or any(
        _QUOTED.sub("", line).count(".") > _MOST_DOTS for line in text.splitlines()
    ):
        message = f"expected up to {_MOST_LETTERS:,} letters, and up to {_MOST_DOTS} dots in a line outside of texts"
        raise InputError(message, where=where, hint="such as: fps = 25")
    try:
        held = tomllib.loads(text)
    # Not only TOMLDecodeError: Python refuses whole numbers of more than 4,300 digits by itself.
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"expected TOML: {to_printable(str(error))}", where=where, hint="such as: fps = 25"
        ) from error
    facts = _parse_facts(held, InputError, where)
    return replace(facts, **{name: value for name, value in vars(chosen).items() if value is not None})


def _parse_facts(held: Mapping[str, Any], kind: Callable[..., Exception], where: str) -> Facts:
    def refuse(message: str) -> Exception:
        return kind(message, where=where) if where else kind(message)

    unknown = sorted(set(held) - set(_FACT_KEYS))
    if unknown:
        raise refuse(f"no key {to_printable(unknown[0], 40)!r}; there are {', '.join(_FACT_KEYS)}")
    found: dict[str, Any] = {}
    if "fps" in held:
        fps = held["fps"]
        if type(fps) not in (int, float) or not 0 < fps <= 1000:
            raise refuse(f"fps is more than 0 and up to 1000, not {_show(fps)}")
        found["fps"] = float(fps)
    if "size" in held:
        size = held["size"]
        sides = size.lower().split("x") if isinstance(size, str) else size
        sides = (
            [
                int(s) if isinstance(s, str) and s.isascii() and s.isdigit() and len(s) < 9 else s
                for s in sides
            ]
            if isinstance(sides, list)
            else []
        )
        if len(sides) != 2 or any(parse_int(side, 1, LARGEST_SIDE) is None for side in sides):
            raise refuse(f"size is such as 1920x1080 or [1920, 1080], not {_show(size)}")
        found["size_px"] = (sides[0], sides[1])
    if "classes" in held:
        names = held["classes"]
        names = names.split(",") if isinstance(names, str) else names
        if not isinstance(names, list) or not all(isinstance(n, str) and n.strip() for n in names):
            raise refuse('classes is a list of names such as ["person", "car"]')
        found["classes"] = check_classes([name.strip() for name in names], where or "classes")
    if "first_frame" in held:
        if held["first_frame"] not in (0, 1) or isinstance(held["first_frame"], bool):
            raise refuse(f"first_frame is 0 or 1, not {_show(held['first_frame'])}")
        found["first_frame"] = int(held["first_frame"])
    if "columns" in held:
        pairs = held["columns"]
        if not isinstance(pairs, dict) or not all(isinstance(each, str) and each for each in pairs.values()):
            raise refuse('columns names columns of csv, such as {frame = "image", id = "who"}')
        found["columns"] = pairs
    if "rename" in held:
        names = held["rename"]
        if isinstance(names, str):
            parts = [each.partition("=") for each in names.split(",")]
            names = {a.strip(): b.strip() for a, equals, b in parts if equals}
            names = names if len(names) == len(parts) else None
        # As long as any other name of a class, and so that files and tables can hold it.
        if not isinstance(names, dict) or not all(
            isinstance(each, str) and each.strip() and len(each.encode(errors="replace")) <= LONGEST_NAME
            for pair in names.items()
            for each in pair
        ):
            raise refuse('rename names classes otherwise, such as {person = "Ped", bus = "Bus"}')
        found["rename"] = {escape_surrogates(a): escape_surrogates(b) for a, b in names.items()}
    return Facts(**found)


def _show(value: Any) -> str:
    try:
        return to_printable(repr(value), 40)
    except ValueError:  # written in hexadecimal, a number may be longer than Python prints
        return "a number of thousands of digits"


def check_classes(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of classes, each of which stands once.

    Raises:
        InputError: if one stands twice.
    """
    if twice := [name for n, name in enumerate(names) if name in names[:n]]:
        raise InputError(f"the class {to_printable(twice[0], 60)!r} stands twice", where=where)
    return tuple(escape_surrogates(name) for name in names)


def rename_classes(tables: Tables, source: Source, given: Any) -> Tables:
    """The tables with classes called as the option or `dataset.toml` says; names and classes that fit nothing are told.

    Raises:
        UsageError: if what is given is no list of names.
        InputError: if that in the file is none.
    """
    names = read_facts(source, rename=given).rename
    if not names:
        return tables
    held = [label for labels in tables.meta.vocabularies.values() for label in labels]
    odd = [("names to rename of which there is no class", [name for name in names if name not in held]),
           ("classes that are not renamed", [label for label in held if label not in names])]  # fmt: skip
    told = [
        {"what": what, "count": len(which), "example": ", ".join(which)[:200]} for what, which in odd if which
    ]
    notes = {**tables.meta.notes, "warnings": [*tables.meta.notes.get("warnings", []), *told]}
    renamed = rename_labels(replace(tables, meta=replace(tables.meta, notes=notes)), names)
    if renamed.predicted or renamed.boxes.is_empty() or "tube" not in renamed.boxes.columns:
        return renamed
    # Tracks whose boxes have one class only now have it, too.
    return replace(
        renamed,
        tube_labels=label_tracks(renamed.boxes, renamed.labels, next(iter(renamed.meta.vocabularies))),
    )
