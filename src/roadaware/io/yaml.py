"""Strict YAML: one document of bounded size and depth, no key twice, no references, errors with the line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from roadaware.errors import InputError
from roadaware.io.sources import read_file, to_printable

MOST_BYTES = 1 << 18
"""A recipe is a page or two; the parser needs seconds for more than this."""
# Far below Python's own limit of recursion, which would end the parser without a place in the file.
DEEPEST = 50


_PUT = "put a text in quotes, and write numbers in decimals and true or false in full"
# int() takes long for thousands of digits, and Python refuses more than 4,300.
_MOST_DIGITS = 300


def _whole(text: str) -> int:
    """A whole number of a length that numbers have.

    Raises:
        ValueError: if it has more digits.
    """
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _broken(text: str) -> float:
    """A finite number.

    Raises:
        ValueError: if it is beyond all that a float can hold.
    """
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{to_printable(text, 40)} is no finite number")
    return found


_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"|~|null|Null|NULL"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII), _whole),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII), _broken),
)
_TRAP = re.compile(
    r"(?i:y|n|yes|no|on|off)|[-+]?0[0-9_]+|[-+]?0[xob][0-9a-fA-F_]+|[-+]?[0-9][0-9_]*_[0-9_.]*"
    r"|[-+]?[0-9]+(:[0-9]+)+(\.[0-9]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?|[-+]?\.(?i:inf|nan)|=|<<",
    re.ASCII,
)
"""Plain values of YAML 1.1 that are numbers, days or ground-truth items there and texts elsewhere."""
# Control characters, and those that turn the direction of text: a line would not read as it is.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


class _Strict(yaml.SafeLoader):
    """Refuses what a recipe never needs and what would be taken silently.

    Plain values are what YAML 1.2 says they are: null, true, false, decimal numbers, and texts; of YAML 1.1
    the words yes and no, octal, binary and sexagesimal numbers and days are refused, since authors mean other
    things by them than the parser.
    """

    depth = 0
    number_keys = False

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node, which is no reference and not nested too deeply."""
        if self.check_event(yaml.AliasEvent):
            # References of references grow without bound where they are written out.
            _refuse("a reference (*name) is not taken: write the value out", self._here())
        said: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(said, "tag", None) is not None:
            _refuse("a tag (!name) is not taken: write the value alone", self._here())
        if getattr(said, "anchor", None) is not None:
            _refuse("an anchor (&name) is not taken: write the value out where it is needed", self._here())
        if self.depth > DEEPEST:
            _refuse(f"nested more than {DEEPEST} deep", self._here())
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, each of whose keys stands in it once."""
        seen: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.style is None:
                _refuse("a key << is not taken: write the fields out", key.start_mark)
            kinds = (str, int) if self.number_keys else str
            if not isinstance(key, yaml.ScalarNode) or not isinstance(self._scalar(key), kinds):
                _refuse("a key is a text, in quotes where it looks like a number", key.start_mark)
            if (said := (key.tag, key.value)) in seen:
                first = f"first in line {seen[said]}"
                _refuse(f"the key '{to_printable(key.value, 60)}' stands twice, {first}", key.start_mark)
            seen[said] = key.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; texts are themselves, plain values of the kinds of `_KINDS`."""
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        return super().construct_object(node, deep=deep)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = str(node.value)
        if _ODD.search(text):
            _refuse("a text holds no control characters but tabs and ends of lines", node.start_mark)
        if node.style is not None:
            return text
        if _TRAP.fullmatch(text):
            _refuse(
                f"{to_printable(text, 40)!r} means different things to different parsers: {_PUT}",
                node.start_mark,
            )
        for pattern, kind in _KINDS:
            if pattern.fullmatch(text):
                return kind(text)
        return text

    def _here(self) -> Any:
        look: Callable[[], Any] = self.peek_event
        return look().start_mark


# Tables of the class's own: those that it inherits know the words of YAML 1.1 and every standard tag.
_Strict.yaml_implicit_resolvers = {}
_Strict.yaml_constructors = {
    "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
    "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
}


class _StrictNumbers(_Strict):
    """As `_Strict`, with whole numbers as keys too, as lists of classes have them."""

    number_keys = True


_StrictNumbers.yaml_implicit_resolvers = _Strict.yaml_implicit_resolvers
_StrictNumbers.yaml_constructors = _Strict.yaml_constructors


def parse(text: str, *, number_keys: bool = False) -> Any:
    """The values of a text of YAML.

    Args:
        text: one document.
        number_keys: whether whole numbers are keys too, as in lists of classes by number.

    Raises:
        ValueError: if it is none, with the line and the column.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"{len(text):,} characters; up to {MOST_BYTES:,} are read")
    try:
        return (_StrictNumbers if number_keys else _Strict)(text).get_single_data()
    except RecursionError as error:
        raise ValueError(f"nested more than {DEEPEST} deep") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = error.problem or error.context or "it cannot be parsed"
        raise ValueError(f"{place}{to_printable(problem)}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Characters that YAML has not, days that no month has, numbers of thousands of digits.
        raise ValueError(to_printable(str(error))) from error


def read_yaml(path: Path) -> Any:
    """The values in a YAML file.

    Raises:
        InputError: if it is no regular file, too large, no text in UTF-8, or no YAML.
    """
    data = read_file(path, most=MOST_BYTES)
    try:
        # Editors of Windows put a mark before the first character.
        return parse(data.decode("utf-8-sig"))
    except ValueError as error:
        raise InputError(
            f"is no YAML: {error}", where=to_printable(str(path)), hint="mend that place"
        ) from error


def _refuse(message: str, mark: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=message, problem_mark=mark)
