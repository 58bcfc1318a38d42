"""A published experiment repeated, as a section of a report: obtained beside printed, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from roadaware.metrics.pedestrians import collect_sample_scores
from roadaware.protocols.iv2024 import Cell as PrintedCell
from roadaware.protocols.iv2024 import Question, Reproduction
from roadaware.reports.bars import STATUSES, plot_coverage
from roadaware.reports.configs import format_config
from roadaware.reports.evaluation import build_evaluation_section, plot_evaluation, plot_story
from roadaware.reports.page import Block, Facts, Mark, Note, Pictures, Section, Table, TableCell
from roadaware.reports.text import format_count, format_interval, format_name, format_number
from roadaware.scenes.sampling import split_samples

TONES = {
    "match": "good",
    "match_under_assumption": "fair",
    "swapped_in_print": "doubt",
    "differs": "bad",
    "not_reproducible": "mute",
}
MEANINGS = {
    "match": "the obtained value is the printed one, within the rounding of print",
    "match_under_assumption": "it is the printed one under an assumption that the data cannot confirm; the "
    "range shows what the other admissible choices give",
    "swapped_in_print": "two printed cells hold each other's value",
    "differs": "the obtained value is another one",
    "not_reproducible": "what the value is made from was not released, or is not at hand",
}


def build_reproduction_section(
    reproduction: Reproduction, *, title: str = "Published tables repeated"
) -> Section:
    """Each published table with obtained values beside printed ones.

    Args:
        reproduction: what `reproduce` gave.
        title: heading of the section.
    """
    cells = reproduction.cells
    grid = plot_coverage([(_block(cell), _format_row_name(cell), cell.status) for cell in cells])
    counts: Counter[str] = Counter(cell.status for cell in cells)
    marks = tuple(
        (Mark(f"{mark.symbol} {mark.words}", TONES[name]), format_count(counts[name]), MEANINGS[name])
        for name, mark in STATUSES.items()
        if counts[name]
    )
    legend = Table(("status", "cells", "meaning"), marks, "lrl", "What the marks mean")
    blocks: list[Block] = [Pictures((grid,)), legend]
    blocks.extend(_notes(reproduction))
    for table, dataset in dict.fromkeys((cell.table, cell.dataset) for cell in cells):
        members = [cell for cell in cells if (cell.table, cell.dataset) == (table, dataset)]
        if any(cell.obtained is not None for cell in members):
            blocks.append(_one_table(members))
    blocks.append(_reasons(cells))
    facts = [
        (name, f"samples: {_configs(q)[0]}; metrics: {_configs(q)[1]}")
        for name, q in list(reproduction.questions.items())
    ]
    blocks.append(Facts(tuple(facts), "Configurations"))
    return Section(title, tuple(_says(reproduction)), tuple(blocks))


def build_reproduction_report(found: Reproduction) -> list[Section]:
    """A repeated experiment: its tables, then one section for each set of released scores."""
    return [build_reproduction_section(found), *build_question_sections(found)]


def build_question_sections(reproduction: Reproduction, model: str = "PedFormer") -> list[Section]:
    """One section for each set of released scores: all its metrics, and figures with our models beside.

    Args:
        reproduction: what `reproduce` gave.
        model: whose scores were released.
    """
    return [_question(name, question, model) for name, question in reproduction.questions.items()]


def _question(name: str, question: Question, model: str) -> Section:
    task = question.metrics.config["task"]
    held = split_samples(question.scenes, "test")
    state, _ = collect_sample_scores(question.predictions, held, task)
    others = {
        other: collect_sample_scores(one.predictions, one.scenes, task)[0]
        for other, one in question.baselines.items()
    }
    labels = held.meta.vocabularies.get(task)
    drawn = plot_evaluation(state, question.metrics, labels=labels, name=model, beside=others)
    if task == "action" and len(held.boxes):
        drawn.append(plot_story(held, state))
    return build_evaluation_section(
        question.metrics,
        title=f"{model}, {name}",
        model=model,
        about={"assumption": question.assumption} if question.assumption else None,
        protocol=held.meta.notes.get("protocol"),
        labels=labels,
        pictures=drawn,
    )


def _configs(question: Question) -> tuple[str, str]:
    protocol = question.scenes.meta.notes.get("protocol", {})
    return format_config(protocol), format_config(question.metrics.config)


def _block(cell: PrintedCell) -> str:
    return f"Table {cell.table}, {cell.dataset.upper()}"


def _format_row_name(cell: PrintedCell) -> str:
    """Which row of the grid a cell stands in: its model, with its task or outcome where these differ."""
    if cell.group is None:
        return cell.model
    return f"{cell.task} {cell.model}" if cell.metric == "average_precision" else format_name(cell.metric)


def _notes(reproduction: Reproduction) -> Iterator[Note]:
    for name, question in reproduction.questions.items():
        if question.assumption:
            yield Note(f"{name} rests on an assumption: {question.assumption}.", "fair")


def _one_table(cells: Sequence[PrintedCell]) -> Table:
    """One row per metric or scenario, one column per model; obtained above, printed below, ours beside."""
    of_row = {id(cell): cell.group or cell.metric for cell in cells}
    columns = list(dict.fromkeys(_format_row_name(cell) for cell in cells))
    held = {(of_row[id(cell)], _format_row_name(cell)): cell for cell in cells}
    ours = list(dict.fromkeys(name for cell in cells for name in cell.beside))
    rows: list[tuple[TableCell, ...]] = []
    for row in dict.fromkeys(of_row.values()):
        members = [held.get((row, column)) for column in columns]
        beside = {name: value for cell in members if cell for name, value in cell.beside.items()}
        rows.append(
            (
                format_name(row),
                *map(_build_cell, members),
                *(format_number(beside.get(name)) for name in ours),
            )
        )
    head = (
        "metric" if cells[0].group is None else "scenario",
        *columns,
        *(f"{format_name(name)} (ours)" for name in ours),
    )
    caption = (
        "Above what was obtained, below what was printed, with the range over admissible choices, if any."
    )
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), _block(cells[0]), caption)


def _build_cell(cell: PrintedCell | None) -> TableCell:
    if cell is None:
        return ""
    mark = STATUSES[cell.status]
    below = f"printed {format_number(cell.printed, cell.digits)}"
    if cell.low is not None and cell.high is not None and cell.low != cell.high:
        below += f" · {format_interval(cell.low, cell.high)}"
    obtained = mark.symbol if cell.obtained is None else f"{format_number(cell.obtained)} {mark.symbol}"
    return Mark(obtained, TONES[cell.status], below)


def _reasons(cells: Sequence[PrintedCell]) -> Table:
    """Every reason once, with the tables and models it holds for."""
    members: dict[tuple[str, str], list[PrintedCell]] = {}
    for cell in cells:
        if cell.why:
            members.setdefault((cell.status, cell.why), []).append(cell)
    rows: list[tuple[TableCell, ...]] = []
    for (status, why), held in members.items():
        mark = STATUSES[status]
        blocks = dict.fromkeys(map(_block, held))
        of = {
            block: dict.fromkeys(_format_row_name(cell) for cell in held if _block(cell) == block)
            for block in blocks
        }
        where = "; ".join(f"{block}: {', '.join(names)}" for block, names in of.items())
        rows.append((Mark(f"{mark.symbol} {mark.words}", TONES[status]), format_count(len(held)), why, where))
    return Table(("status", "cells", "why", "where"), tuple(rows), "lrll", "Reasons")


def _says(reproduction: Reproduction) -> Iterator[str]:
    counts = reproduction.counts
    total = sum(counts.values())
    same = counts["match"] + counts["match_under_assumption"]
    more = {
        "match_under_assumption": "{} of those under a declared assumption",
        "swapped_in_print": "{} are swapped in print",
        "differs": "{} differ",
    }
    parts = [text.format(counts[status]) for status, text in more.items() if counts[status]]
    tried = total - counts["not_reproducible"]
    yield (
        "; ".join(
            [f"Of {total} printed cells, {tried} can be computed; {same} of them agree with print", *parts]
        )
        + "."
    )
    for name, question in reproduction.questions.items():
        # The models beside the released scores, in one sentence.
        theirs = question.value("balanced_accuracy")
        reached = {model: one.metrics.value("balanced_accuracy") for model, one in question.baselines.items()}
        if theirs is not None and reached:
            ours = ", ".join(
                f"{format_name(model)} {format_number(value)}" for model, value in reached.items()
            )
            yield f"Balanced accuracy on {name}: {format_number(theirs)} for the released scores; without pixels {ours}."
