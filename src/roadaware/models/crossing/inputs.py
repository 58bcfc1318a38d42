"""Inputs of predictors: named columns of samples, in memory or built on demand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from roadaware.arrays import Ints, Numbers
from roadaware.errors import InputError, UsageError

_NAME = re.compile(r"(?P<kind>[a-z]+)(?::(?P<form>[a-z]+))?(?:@(?P<pixels>[0-9]{1,4}))?")


@dataclass(frozen=True)
class InputName:
    """The parts of an input's name, `kind[:form][@pixels]`, such as `boxes:last` or `crop:context@224`.

    Args:
        kind: what is read.
        form: how it is written down; empty for the usual form.
        pixels: side of an image; 0 where there is none.
    """

    kind: str
    form: str = ""
    pixels: int = 0

    def __str__(self) -> str:
        return self.kind + (f":{self.form}" if self.form else "") + (f"@{self.pixels}" if self.pixels else "")


def parse_input_name(name: str) -> InputName:
    """The parts of a name.

    Raises:
        UsageError: if it is none.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"'{name}' names no input; names look like boxes, boxes:last, ego:speed or crop:context@224"
        )
    return InputName(found["kind"], found["form"] or "", int(found["pixels"] or 0))


class Column(Protocol):
    """One input of n samples."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample, frames first: (15, 4)."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints) -> Numbers:
        """(k, *shape) of some samples: float32, or uint8 for images (k, frames, height, width, 3)."""


@dataclass(frozen=True, eq=False)
class Held:
    """A column in memory.

    Args:
        values: (n, *shape).
    """

    values: Numbers

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return tuple(self.values.shape[1:])

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Ints) -> Numbers:
        """(k, *shape) of some samples."""
        taken: Numbers = self.values[rows]
        return taken


@dataclass(frozen=True, eq=False)
class InputSet:
    """Inputs of n samples.

    Args:
        columns: by name, in the order in which a network is given them.
        n: samples.

    Raises:
        InputError: if a column has another length.
    """

    columns: Mapping[str, Column]
    n: int

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together."""
        for name, column in self.columns.items():
            if len(column) != self.n:
                raise InputError(f"the input {name} has {len(column):,} rows for {self.n:,} samples")

    def __len__(self) -> int:
        return self.n

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of one sample, by name."""
        return {name: column.shape for name, column in self.columns.items()}

    def take(self, rows: Ints) -> dict[str, Numbers]:
        """Every column of some samples."""
        return {name: column.take(rows) for name, column in self.columns.items()}

    def some(self, rows: Ints) -> InputSet:
        """Some samples, in memory."""
        return InputSet({name: Held(values) for name, values in self.take(rows).items()}, len(rows))
