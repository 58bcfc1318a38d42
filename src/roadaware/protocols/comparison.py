"""A reproduced table: obtained beside printed, cell by cell, with a verdict and its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

Status = Literal["match", "match_under_assumption", "differs", "swapped_in_print", "not_reproducible"]

STATUSES: tuple[Status, ...] = (
    "match",
    "match_under_assumption",
    "differs",
    "swapped_in_print",
    "not_reproducible",
)


@dataclass(frozen=True)
class Cell:
    """One cell of a printed table and what was obtained for it.

    Args:
        table: Roman number.
        dataset: jaad or pie.
        task: action, intention or risk.
        model: name as printed.
        metric: name among the project's metrics.
        group: scenario; None for the whole test set.
        printed: the number in the paper.
        obtained: ours, not rounded; None where it cannot be obtained.
        status: the verdict.
        why: the reason for every verdict but a plain match.
        low: least value over the admissible choices of an assumption; None where nothing is assumed.
        high: largest value over them.
        digits: decimals in print.
        intervals: ends of the bootstrap intervals by the summary's column names, where asked for.
        beside: the same metric of other models on the same samples, by name.
    """

    table: str
    dataset: str
    task: str
    model: str
    metric: str
    group: str | None
    printed: float
    obtained: float | None
    status: Status
    why: str = ""
    low: float | None = None
    high: float | None = None
    digits: int = 2
    intervals: Mapping[str, float | None] = field(default_factory=dict)
    beside: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The cell as JSON-ready data, with `as_printed`: the obtained value rounded as the paper rounds."""
        fields = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        rounded = None if self.obtained is None else round_twice(self.obtained, self.digits)
        return {**fields, "as_printed": rounded, "intervals": {**self.intervals}, "beside": {**self.beside}}


_PLAIN_FIELDS = (
    "table",
    "dataset",
    "task",
    "model",
    "metric",
    "group",
    "printed",
    "obtained",
    "status",
    "why",
    "low",
    "high",
)


def tolerance(digits: int) -> float:
    """How far a value may lie from its printed form: half a unit of the last digit, 0.1 for rounding twice.

    >>> tolerance(2)
    0.006
    """
    return float(Decimal(6).scaleb(-digits - 1))


def is_match(obtained: float, printed: float, digits: int) -> bool:
    """Whether a value may have been printed so."""
    # `repr` gives the decimal digits; the binary numbers may lie on the other side of the border.
    return abs(Decimal(repr(obtained)) - Decimal(repr(printed))) <= Decimal(6).scaleb(-digits - 1)


def round_twice(value: float, digits: int = 2) -> float:
    """The value as the paper prints it: rounded to one digit more, and that to `digits`, halves to even.

    >>> round_twice(0.8548), round_twice(0.3148), round_twice(0.5744)
    (0.86, 0.32, 0.57)
    """
    finer, coarse = Decimal(1).scaleb(-digits - 1), Decimal(1).scaleb(-digits)
    once = Decimal(repr(float(value))).quantize(finer, ROUND_HALF_EVEN)
    return float(once.quantize(coarse, ROUND_HALF_EVEN))


def count_verdicts(cells: Iterable[Cell]) -> dict[str, int]:
    """How many cells have each verdict, every verdict named."""
    held = [cell.status for cell in cells]
    return {status: held.count(status) for status in STATUSES}
