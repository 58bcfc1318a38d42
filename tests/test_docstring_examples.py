"""The examples in all docstrings run as written."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

_SRC = Path(__file__).resolve().parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(_SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(_SRC.rglob("*.py"))
    if "\n    >>> " in (text := path.read_text("utf-8")) or "\n        >>> " in text
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
