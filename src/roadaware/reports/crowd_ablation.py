"""The page of the ablation of crowds: rows beside baselines, paired differences, paths, and what the paper printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roadaware.protocols.crowd_ablation import (
    CONTROLS,
    METRICS,
    NAMES,
    NOT_PRINTED,
    PAPER_NAMES,
    PATHFINDERS,
    PRINTED_PATHS,
    ROWS,
    SOURCE,
    CrowdAblation,
    Key,
    Value,
    count_shared_blocks,
)
from roadaware.reports.page import (
    SERIES,
    Block,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    TableCell,
    report,
    set_style,
)
from roadaware.reports.terminal import format_table
from roadaware.reports.text import format_interval, format_number, format_signed

_COLUMNS = [(task, metric) for task, metrics in METRICS.items() for metric in metrics]


def render_crowd_ablation(found: CrowdAblation) -> str:
    """The page as one HTML file.

    Args:
        found: results of the study.
    """
    gain = found.describe_gain() or ("No pathfinder and control are both done: no difference is known.",)
    sections = [
        Section(f"Rows and baselines, {test}", gain if not place else (), tuple(_build_tables(found, test)))
        for place, test in enumerate(found.scenes)
    ]
    size = tuple(
        (ROWS[row], f"{found.count_parameters(row):,}", f"{found.measure_ms(row):.0f}") for row in found.rows
    )
    caption = (
        "Milliseconds are of the trunk and the last layers of all tasks, without heads; of heads alone, milliseconds and "
        "parameters are sums over their networks."
    )
    table = Table(("row", "parameters", "ms a clip"), size, "lrr", "", caption)
    sections += [
        Section("Parameters and time", (), (table,)),
        Section("Paths", (), tuple(_build_paths(found))),
        _build_printed(),
    ]
    return report(sections, title="Ablation of IntelliCare on simulated crowds")


def _build_tables(found: CrowdAblation, test: str) -> list[Block]:
    heads = tuple(NAMES[column] for column in _COLUMNS)
    rows: list[tuple[TableCell, ...]] = []
    for row in found.rows:
        cells = [_mark(found.values, (test, row, *column)) for column in _COLUMNS]
        rows.append((ROWS[row], *cells))
    study = found.study
    blocks: list[Block] = [
        Table(
            ("row", *heads),
            tuple(rows),
            "l" + "r" * len(heads),
            f"Metrics on {found.scenes[test]} scenes",
            f"Means over seeds, {study.steps:,} steps of each task; below each its 95 % interval over scenes. Relations are "
            "judged on the true tubes.",
        ),
        *_build_differences(found, test),
    ]
    names = list(dict.fromkeys(key[1] for key in found.baselines if key[0] == test))
    if names:
        held = [
            (name, *(_mark(found.baselines, (test, name, *column)) for column in _COLUMNS)) for name in names
        ]
        blocks.append(
            Table(("baseline", *heads), tuple(held), "l" + "r" * len(heads), "Baselines without a network")
        )
    missing = tuple(f"{place}: {why}" for place, why in found.failed.items())
    return [*blocks, Points(missing, "Runs that failed")] if missing else blocks


def _build_differences(found: CrowdAblation, test: str) -> list[Block]:
    rows: list[tuple[TableCell, ...]] = []
    for row in PATHFINDERS:
        for control in CONTROLS:
            keys: list[Key] = [(test, f"{row} - {control}", *column) for column in _COLUMNS]
            if any(key in found.differences for key in keys):
                cells = [_mark(found.differences, key, signed=True) for key in keys]
                rows.append((f"{row} − {control}", *cells))  # whole names would push a column off the page
    if not rows:
        return []
    heads = tuple(NAMES[column] for column in _COLUMNS)
    caption = "Above 0 the pathfinder is better. Each pair is resampled on the same scenes; an interval with 0 shows no gain."
    return [Table(("difference", *heads), tuple(rows), "l" + "r" * len(heads), "Paired differences", caption)]


def _mark(held: Mapping[Key, Value], key: Key, *, signed: bool = False) -> TableCell:
    value = held.get(key)
    if value is None or value.value is None:
        return "–"
    shown = format_signed(value.value) if signed else format_number(value.value)
    tone = ("good" if value.value > 0 else "bad") if signed and value.excludes_zero else ""
    if value.low is None:
        return Mark(shown, tone)
    return Mark(shown, tone, format_interval(value.low, value.high, 3, value.caution))


def _build_paths(found: CrowdAblation) -> list[Block]:
    held = {cell: facts for cell, facts in found.cells.items() if facts["paths"]}
    if not held:
        return [Note("No row with dynamic layers is done.")]
    rows: list[tuple[TableCell, ...]] = []
    shared: list[tuple[TableCell, ...]] = []
    pairs: list[tuple[str, str]] = []
    for cell, facts in held.items():
        for task, path in facts["paths"].items():
            entropy = facts["entropy"][task]
            # Fixed paths and shuffled tasks leave scores without a meaning, which their entropy still shows.
            rows.append(
                (
                    ROWS[cell.row],
                    str(cell.seed),
                    task,
                    " ".join(str(block + 1) for block in path),
                    format_number(float(np.mean(entropy))),
                )
            )
        counts = count_shared_blocks(facts["paths"])
        pairs = pairs or list(counts)
        shared.append((ROWS[cell.row], str(cell.seed), *(str(counts.get(pair, "–")) for pair in pairs)))
    layers = len(next(iter(next(iter(held.values()))["paths"].values())))
    heads = tuple(f"{a}, {b}" for a, b in pairs)
    return [
        Pictures((plot_paths(found),)),
        Table(
            ("row", "seed", "task", "block in each layer", "entropy"),
            tuple(rows),
            "lrllr",
            "Paths",
            "Blocks count from 1; entropy is the mean over layers in nats: 0.693 where two "
            "blocks are alike, 1.386 where four are. "
            "Fixed paths do not follow their scores.",
        ),
        Table(
            ("row", "seed", *heads),
            tuple(shared),
            "lr" + "r" * len(heads),
            f"Layers, of {layers}, in which two tasks take the same block",
            f"By chance alone two blocks give {layers / 2:g} on average and four {layers / 4:g}.",
        ),
    ]


def plot_paths(found: CrowdAblation) -> Picture:
    """The path table of each row and seed: a line for each task, a column for each layer, in it the block.

    Args:
        found: results with at least one row of dynamic layers.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    held = {cell: facts["paths"] for cell, facts in found.cells.items() if facts["paths"]}
    rows = list(dict.fromkeys(cell.row for cell in held))
    seeds = sorted({cell.seed for cell in held})
    tints = ListedColormap(SERIES)
    with set_style():
        size = (max(5.8, 1.0 + 1.9 * len(seeds)), 0.5 + 1.15 * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), len(seeds), squeeze=False, sharex=True, sharey=True)
        for cell, paths in held.items():
            axes = grid[rows.index(cell.row)][seeds.index(cell.seed)]
            table = np.array(list(paths.values()))
            axes.imshow(table, cmap=tints, vmin=0, vmax=tints.N - 1, alpha=0.3, aspect="auto")
            for (line, layer), block in np.ndenumerate(table):
                axes.text(layer, line, block + 1, ha="center", va="center")
            axes.set_xticks(range(table.shape[1]), range(1, table.shape[1] + 1))
            axes.set_yticks(range(len(paths)), list(paths))
            axes.tick_params(length=0)
            axes.set_title(f"{ROWS[cell.row]}, seed {cell.seed}", fontsize=7)
        for axes in grid[-1]:
            axes.set_xlabel("dynamic layer")
    caption = (
        "Number and colour are the block that a task takes in a layer; tasks with the same one share it."
    )
    return Picture(
        "Blocks by task, layer and seed", f"{caption} The table of paths below says the same.", figure
    )


def _format_path(path: Sequence[int]) -> str:
    return "-".join(str(block + 1) for block in path)


def _build_printed() -> Section:
    rows: tuple[tuple[TableCell, ...], ...] = tuple(
        (f"{PAPER_NAMES[each.task]} ({each.task})", _format_path(each.blocks), f"{SOURCE}, {each.where}")
        for each in PRINTED_PATHS
    )
    counts = count_shared_blocks({each.task: each.blocks for each in PRINTED_PATHS})
    shared = tuple((f"{a}, {b}", f"{count} of 5 layers") for (a, b), count in counts.items())
    return Section(
        "What the paper printed",
        (),
        (
            Note(NOT_PRINTED),
            Table(
                ("task", "block in each layer", "where"),
                rows,
                "lll",
                "Printed paths",
                "An example, as its caption says.",
            ),
            Facts(shared, "Blocks that printed paths share"),
        ),
    )


def format_crowd_ablation(found: CrowdAblation) -> str:
    """Tables of the command: one for each test set, and what the differences say.

    Args:
        found: results of the study.
    """
    lines = []
    for test, count in found.scenes.items():
        rows = []
        named: dict[str, str] = {row: ROWS[row] for row in found.rows}
        named |= {key[1]: key[1] for key in found.baselines if key[0] == test}
        held = {**found.values, **found.baselines}
        for row, name in named.items():
            cells = [held.get((test, row, *column)) for column in _COLUMNS]
            rows.append([name, *("-" if cell is None else format_number(cell.value) for cell in cells)])
        lines.append(format_table([f"{test}, {count} scenes", *(NAMES[c] for c in _COLUMNS)], rows))
    return "\n\n".join([*lines, *found.describe_gain()])
