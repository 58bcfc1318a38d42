"""`roadaware reproduce`: a published experiment again, obtained beside printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.cli import console, datasets
from roadaware.cli.options import USUAL, Common, Html, Outcome, Resamples
from roadaware.cli.outputs import check_paths
from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison
    from roadaware.protocols.comparison import Cell
    from roadaware.protocols.iv2024 import Reproduction
    from roadaware.tasks.pedestrians import Baseline

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
_DATA = "Folder that holds jaad/ and pie/. [default: ROADAWARE_DATA_DIR]"
_BASELINES = "Train the models without pixels and show them beside."


def reproduce(
    experiment: Annotated[Literal["iv2024"], Parameter(help="Which experiment.")],
    /,
    *,
    data: Annotated[Path | None, Parameter(help=_DATA)] = None,
    html: Html = None,
    draws: Resamples = 0,
    baselines: Annotated[bool, Parameter(help=_BASELINES, negative="--no-baselines")] = True,
    common: Common = USUAL,
) -> Outcome:
    """Repeat a published experiment on the released files and set every printed cell beside what comes out.

    `iv2024` is Rasouli and Kotseruba, IV 2024: Tables II to VI. Needs a folder with jaad/ (the
    repository or its zip) and pie/ (annotations, or the attributes alone, and the released pf_*.csv).
    A cell that cannot be obtained says why; one that rests on an assumption shows its range.

    For example:

        roadaware reproduce iv2024 --data DATA --html tables.html

        ROADAWARE_DATA_DIR=DATA roadaware reproduce iv2024 --json cells.json
    """
    from roadaware.cli.results import write_page

    source = datasets.find_data_folder(data)
    check_paths(reproduce, {"data": source, "html": html, "common": common})
    found = reproduce_folder(source, draws=draws, baselines=baselines)
    pairs = compare_released(found, draws=draws) if draws else []
    if html is not None:
        from roadaware.reports.page import report
        from roadaware.reports.reproduction import build_reproduction_report

        write_page(html, report(build_reproduction_report(found), title="IV 2024 repeated"))
    from roadaware.cli.compare import build_comparison_json
    from roadaware.reports.run_text import format_headline

    shown = [format_reproduction(found), *(f"{name}\n{format_headline(pair)}" for name, pair in pairs)]
    compared = [{"protocol": name, **build_comparison_json(pair)} for name, pair in pairs]
    return Outcome("\n\n".join(shown), {**found.as_dict(), "comparisons": compared})


def reproduce_folder(
    folder: Path, *, draws: int, baselines: bool | dict[str, dict[str, Baseline]]
) -> Reproduction:
    """The experiment on the files of a folder.

    Args:
        folder: holds jaad/ and pie/.
        draws: bootstrap resamples.
        baselines: whether to train the models without pixels, or those already trained by protocol.
    """
    from roadaware.protocols.iv2024 import reproduce as repeat

    with console.show_progress("repeating iv2024") as progress, console.log_step("repeating iv2024"):
        return repeat(folder, draws=draws, baselines=baselines, progress=progress)


def compare_released(found: Reproduction, *, draws: int, seed: int = 0) -> list[tuple[str, Comparison]]:
    """Each baseline against the released scores, by protocol.

    Args:
        found: what came of it, with baselines.
        draws: bootstrap resamples.
        seed: of the resamples.
    """
    from roadaware.analysis.compare import compare
    from roadaware.config import from_dict
    from roadaware.metrics.pedestrians import PedestrianConfig, collect_sample_scores
    from roadaware.scenes.sampling.sampler import split_samples

    pairs = []
    with console.log_step("comparing with the released scores"):
        for name, question in found.questions.items():
            config = from_dict(PedestrianConfig, question.metrics.config)
            held = split_samples(question.scenes, "test")
            released, _ = collect_sample_scores(question.predictions, held, config.task)
            for other, item in question.baselines.items():
                state, _ = collect_sample_scores(item.predictions, item.scenes, config.task)
                names = (other, "PedFormer")
                pairs.append((name, compare(state, released, config, draws=draws, seed=seed, names=names)))
    return pairs


def format_reproduction(found: Reproduction) -> str:
    """Every table with what was obtained, what was printed, and a mark; then why, and the counts."""
    blocks = [_table(cells) for cells in _tables(found.cells)]
    legend = [f"{mark} {_MEANINGS[status]}" for status, (mark, _) in MARKS.items()]
    counted = [f"{found.counts.get(status, 0)} {status.replace('_', ' ')}" for status in MARKS]
    blocks.append("marks: " + "; ".join(legend))
    reasons = _reasons(found.cells)
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


def _reasons(cells: Sequence[Cell]) -> list[str]:
    """Each reason once, with the cells that it holds for."""
    grouped: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.why:
            grouped.setdefault(cell.why, []).append(cell)
    return [f"{MARKS[held[0].status][0]} {_places(held)}: {why}" for why, held in grouped.items()]


def _places(cells: Sequence[Cell]) -> str:
    named = dict.fromkeys(f"{cell.table} {cell.dataset} {cell.model}" for cell in cells)
    first = list(named)[:3]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    metrics = f" {cells[0].metric}" if len(cells) == 1 else f" ({len(cells)} cells)"
    return ", ".join(first) + more + metrics
