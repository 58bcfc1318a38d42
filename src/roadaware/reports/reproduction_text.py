"""A published experiment repeated, as the tables that the command prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.protocols.comparison import Cell
    from roadaware.protocols.iv2024 import Reproduction

MARKS = {
    "match": ("=", "good"),
    "match_under_assumption": ("~", "good"),
    "swapped_in_print": ("x", "odd"),
    "differs": ("!", "bad"),
    "not_reproducible": (".", None),
}
_MEANINGS = {
    "match": "as printed",
    "match_under_assumption": "as printed under an assumption, range over the admissible choices",
    "swapped_in_print": "printed in another cell's place, and the other way round",
    "differs": "not as printed",
    "not_reproducible": "cannot be obtained",
}


def format_reproduction(found: Reproduction) -> str:
    """Every table with what was obtained, what was printed, and a mark; then why, and the counts."""
    blocks = [_table(cells) for cells in _tables(found.cells)]
    legend = [f"{mark} {_MEANINGS[status]}" for status, (mark, _) in MARKS.items()]
    counted = [f"{found.counts.get(status, 0)} {status.replace('_', ' ')}" for status in MARKS]
    blocks.append("marks: " + "; ".join(legend))
    # Each reason once, with the cells that it holds for.
    grouped: dict[str, list[Cell]] = {}
    for cell in found.cells:
        if cell.why:
            grouped.setdefault(cell.why, []).append(cell)
    reasons = [f"{MARKS[held[0].status][0]} {_places(held)}: {why}" for why, held in grouped.items()]
    if reasons:
        blocks.append("why:\n" + "\n".join(f"  {terminal.format_cell(reason)}" for reason in reasons))
    blocks.append(f"{len(found.cells)} cells: " + ", ".join(counted))
    return "\n\n".join(blocks)


def _tables(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of each table and dataset that has something to show, in print order."""
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.table, cell.dataset), []).append(cell)
    return [held for held in grouped.values() if any(cell.obtained is not None for cell in held)]


def _table(cells: Sequence[Cell]) -> str:
    shown = [cell for cell in cells if cell.obtained is not None]
    others = list(dict.fromkeys(name for cell in shown for name in cell.beside))
    ranges = any(cell.low is not None for cell in shown)
    header = ["", "metric", "obtained", "printed"]
    header += ["range"] * ranges + [f"{name} (ours)" for name in others]
    rows = []
    for cell in shown:
        row = [
            MARKS[cell.status][0],
            f"{cell.metric} ({cell.group})" if cell.group else cell.metric,
            terminal.format_number(cell.obtained),
            f"{cell.printed:.{cell.digits}f}",
        ]
        row += [terminal.format_interval(cell.low, cell.high)] * ranges
        rows.append([*row, *(terminal.format_number(cell.beside.get(name)) for name in others)])
    first = shown[0]
    head = f"Table {first.table}, {first.dataset.upper()} {first.task}, {first.model}"
    absent = len(cells) - len(shown)
    tail = f"\n({absent} more cells of this table cannot be obtained)" if absent else ""
    styles = dict(MARKS.values())
    body = terminal.format_table(header, rows, left=2, colour=lambda row: styles.get(row[0].strip()))
    return f"{head}\n{body}{tail}"


def _places(cells: Sequence[Cell]) -> str:
    named = dict.fromkeys(f"{cell.table} {cell.dataset} {cell.model}" for cell in cells)
    first = list(named)[:3]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    metrics = f" {cells[0].metric}" if len(cells) == 1 else f" ({len(cells)} cells)"
    return ", ".join(first) + more + metrics
