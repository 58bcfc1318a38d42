"""Thresholds of overlap by name: a number, or the mean over ten from 0.5 to 0.95."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadaware.errors import UsageError

RANGE = "0.5:0.95"
_OF_RANGE = tuple(k / 100 for k in range(50, 100, 5))


@dataclass(frozen=True)
class Thresholds:
    """Thresholds that were asked for.

    Args:
        values: (T,) the numbers that are matched at, rising.
        columns: name (`0.5`, `0.5:0.95`) to the indices in `values` whose mean it is, as asked.
    """

    values: tuple[float, ...]
    columns: dict[str, tuple[int, ...]]


def thresholds(asked: Sequence[float | str]) -> Thresholds:
    """Thresholds out of numbers and names.

    Args:
        asked: numbers in (0, 1], as such or as text, and `0.5:0.95`.

    Raises:
        UsageError: if one is neither.

    >>> thresholds([0.75, "0.5:0.95"]).columns["0.75"]
    (5,)
    """
    numbers = {_name(item): _numbers(item) for item in asked}
    values = tuple(sorted({value for held in numbers.values() for value in held}))
    columns = {name: tuple(values.index(value) for value in held) for name, held in numbers.items()}
    return Thresholds(values, columns)


def _name(item: float | str) -> str:
    return RANGE if item == RANGE else f"{_number(item):g}"


def _numbers(item: float | str) -> tuple[float, ...]:
    return _OF_RANGE if item == RANGE else (_number(item),)


def _number(item: float | str) -> float:
    try:
        value = float(item)
    except ValueError:
        value = float("nan")
    if not 0 < value <= 1:
        raise UsageError(f"a threshold of overlap is a number in (0, 1], or {RANGE}; got {item!r}")
    return value
