"""Strict YAML: one document of bounded size and depth, no key twice, no references, errors with the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from roadaware.errors import InputError
from roadaware.scenes.readers.source import read_file, shown

MOST_BYTES = 1 << 18
"""A recipe is a page or two; the parser needs seconds for more than this."""
DEEPEST = 50


class _Strict(yaml.SafeLoader):
    """Refuses what a recipe never needs and what would be taken silently."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node, which is no reference and not nested too deeply."""
        if self.check_event(yaml.AliasEvent):
            # References of references grow without bound where they are written out.
            _refuse("a reference (*name) is not taken: write the value out", self._here())
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
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (said := (key.tag, key.value)) in seen:
                first = f"first in line {seen[said]}"
                _refuse(f"the key '{shown(key.value, 60)}' stands twice, {first}", key.start_mark)
            seen[said] = key.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)

    def _here(self) -> Any:
        look: Callable[[], Any] = self.peek_event
        return look().start_mark


def parse(text: str) -> Any:
    """The values of a text of YAML.

    Raises:
        ValueError: if it is none, with the line and the column.
    """
    try:
        return _Strict(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = error.problem or error.context or "it cannot be parsed"
        raise ValueError(f"{place}{shown(problem)}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Characters that YAML has not, days that no month has, numbers of thousands of digits.
        raise ValueError(shown(str(error))) from error


def read_yaml(path: Path) -> Any:
    """The values in a YAML file.

    Raises:
        InputError: if it is no regular file, too large, no text in UTF-8, or no YAML.
    """
    data = read_file(path, most=MOST_BYTES)
    try:
        return parse(data.decode("utf-8-sig"))
    except ValueError as error:
        raise InputError(f"is no YAML: {error}", where=shown(str(path)), hint="mend that place") from error


def _refuse(message: str, mark: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=message, problem_mark=mark)
