"""A published experiment repeated, as a section of a report: obtained beside printed, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from roadaware.reports.bars import STATUSES, coverage
from roadaware.reports.page import Block, Cell, Mark, Pictures, Section, Table
from roadaware.reports.picture import Picture
from roadaware.reports.text import count, interval, number, words

TONES = {
    "match": "good",
    "match_under_assumption": "fair",
    "swapped_in_print": "doubt",
    "differs": "bad",
    "not_reproducible": "mute",
}
MEANINGS = {
    "match": "the obtained value is the printed one, as far as it was printed",
    "match_under_assumption": "it is the printed one under an assumption that the data cannot confirm; "
    "the range shows what other admissible choices would give",
    "swapped_in_print": "two printed cells hold each other's value",
    "differs": "the obtained value is another one",
    "not_reproducible": "what the value is made from was not released, or is not at hand",
}


class PrintedCell(Protocol):
    """One cell of a published table and what came out of repeating it."""

    @property
    def table(self) -> str:
        """Which table, such as `III`."""

    @property
    def dataset(self) -> str:
        """On which data."""

    @property
    def model(self) -> str:
        """Of which model."""

    @property
    def metric(self) -> str:
        """Of which metric, or which scenario and metric."""

    @property
    def printed(self) -> float | None:
        """As published."""

    @property
    def obtained(self) -> float | None:
        """As obtained here."""

    @property
    def status(self) -> str:
        """One of the keys of `STATUSES`."""

    @property
    def why(self) -> str | None:
        """The reason, where the status needs one."""

    @property
    def low(self) -> float | None:
        """Lowest value over the admissible choices."""

    @property
    def high(self) -> float | None:
        """Highest value over the admissible choices."""


Beside = Mapping[tuple[str, str], Mapping[str, Mapping[str, float | None]]]


def reproduction_section(
    cells: Sequence[PrintedCell],
    *,
    title: str = "Published tables repeated",
    beside: Beside | None = None,
    pictures: Sequence[Picture] = (),
) -> Section:
    """Each published table with obtained values beside printed ones.

    Args:
        cells: of all tables, in print order.
        title: heading of the section.
        beside: (table, dataset) to model to metric to value: models of ours, in columns of their own.
        pictures: drawn after the grid of cells.
    """
    grid = coverage([(_block(cell), cell.model, cell.status) for cell in cells])
    blocks: list[Block] = [Pictures((grid,)), _legend(cells)]
    for table, dataset in dict.fromkeys((cell.table, cell.dataset) for cell in cells):
        members = [cell for cell in cells if (cell.table, cell.dataset) == (table, dataset)]
        blocks.append(_one_table(members, (beside or {}).get((table, dataset), {})))
    reasons = _reasons(cells)
    if reasons:
        blocks.append(reasons)
    if pictures:
        blocks.append(Pictures(tuple(pictures), "Pictures"))
    return Section(title, tuple(_says(cells)), tuple(blocks))


def _block(cell: PrintedCell) -> str:
    return f"{_table_name(cell.table)}, {cell.dataset.upper() if len(cell.dataset) < 5 else cell.dataset}"


def _table_name(table: str) -> str:
    return table if table.lower().startswith("table") else f"Table {table}"


def _legend(cells: Sequence[PrintedCell]) -> Table:
    told = Counter(cell.status for cell in cells)
    rows = tuple(
        (Mark(f"{mark.symbol} {mark.words}", TONES[name]), count(told[name]), MEANINGS[name])
        for name, mark in STATUSES.items()
        if told[name]
    )
    return Table(("status", "cells", "meaning"), rows, "lrl", "What the marks mean")


def _one_table(cells: Sequence[PrintedCell], beside: Mapping[str, Mapping[str, float | None]]) -> Table:
    """Metrics as rows, models as columns; obtained above, printed below."""
    models = list(dict.fromkeys(cell.model for cell in cells))
    held = {(cell.metric, cell.model): cell for cell in cells}
    rows: list[tuple[Cell, ...]] = []
    for metric in dict.fromkeys(cell.metric for cell in cells):
        published = (_shown(held.get((metric, model))) for model in models)
        ours = (number(values.get(metric)) for values in beside.values())
        rows.append((words(metric), *published, *ours))
    columns = ("metric", *models, *(f"{name} (ours)" for name in beside))
    caption = (
        "Above what was obtained, below what was printed, with the range over admissible choices, if any."
    )
    return Table(columns, tuple(rows), "l" + "r" * (len(columns) - 1), _block(cells[0]), caption)


def _shown(cell: PrintedCell | None) -> Cell:
    if cell is None:
        return ""
    mark = STATUSES.get(cell.status, STATUSES["not_reproducible"])
    below = f"printed {_as_printed(cell.printed)}"
    ends = interval(cell.low, cell.high)
    if ends != "–" and cell.low != cell.high:
        below += f" · {ends}"
    obtained = f"{number(cell.obtained)} {mark.symbol}" if cell.obtained is not None else mark.symbol
    return Mark(obtained, TONES.get(cell.status, "mute"), below)


def _as_printed(value: float | None) -> str:
    """The printed value with the digits that it was printed with: two, or three where it has three."""
    if value is None:
        return "–"
    return number(value, 2 if abs(round(value, 2) - value) < 1e-9 else 3)


def _reasons(cells: Sequence[PrintedCell]) -> Table | None:
    """Every reason once, with the models and tables it holds for."""
    members: dict[tuple[str, str], list[PrintedCell]] = {}
    for cell in cells:
        if cell.why:
            members.setdefault((cell.status, cell.why), []).append(cell)
    rows: list[tuple[Cell, ...]] = []
    for (status, why), held in members.items():
        mark = STATUSES.get(status, STATUSES["not_reproducible"])
        where = "; ".join(dict.fromkeys(f"{_block(cell)}: {cell.model}" for cell in held))
        rows.append(
            (Mark(f"{mark.symbol} {mark.words}", TONES.get(status, "mute")), count(len(held)), why, where)
        )
    return Table(("status", "cells", "why", "where"), tuple(rows), "lrll", "Reasons") if rows else None


def _says(cells: Sequence[PrintedCell]) -> Iterator[str]:
    told = Counter(cell.status for cell in cells)
    tried = len(cells) - told["not_reproducible"]
    same = told["match"] + told["match_under_assumption"]
    told_of = {
        "match_under_assumption": "{} of those under an assumption",
        "swapped_in_print": "{} are swapped in print",
        "differs": "{} differ",
    }
    more = [words.format(told[status]) for status, words in told_of.items() if told[status]]
    says = f"Of {len(cells)} published cells, {tried} can be computed from what was released; {same} agree with print"
    yield "; ".join([says, *more]) + "."
