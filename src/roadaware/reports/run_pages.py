"""What the commands found, as pages and as the tables that they print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.compare import OUTCOMES, Agreement
from roadaware.analysis.evaluation.runs import Run
from roadaware.io.folders import add_marker
from roadaware.io.sources import to_printable
from roadaware.reports import terminal
from roadaware.reports.page import Section, Table, report
from roadaware.reports.runs import (
    SCHEMA,
    build_comparison_json,
    build_run_files,
    digest_scores,
    summarize_run,
)
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_duration,
    format_number,
    format_row_interval,
    format_table,
)
from roadaware.reports.text import capitalize_text

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison
    from roadaware.protocols.iv2024 import Cell, Reproduction
    from roadaware.scenes.tables import Scenes


def run_page(runs: Sequence[Run], comparisons: Sequence[Comparison] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.evaluation import build_comparison_section

    sections = [run_section(run) for run in runs]
    sections += [build_comparison_section(comparison) for comparison in comparisons]
    heading = title or ", ".join(run.name for run in runs)
    tasks = sorted({run.config.task for run in runs})
    protocols = sorted({run.protocol for run in runs if run.protocol})
    return report(sections, title=heading, subtitle=", ".join(["pedestrians", *tasks, *protocols]))


def run_section(run: Run, *, scenes: Scenes | None = None) -> Section:
    """One run as a section.

    Args:
        run: what to show.
        scenes: with the samples of the run in its order, for the image of one pedestrian.
    """
    from roadaware.reports.evaluation import build_evaluation_section, plot_evaluation, plot_story

    images = plot_evaluation(run.state, run.result, name=run.name)
    if scenes is not None:
        images.append(plot_story(scenes, run.state))
    about = {"data digest": digest_scores(run.state), "resamples": str(run.resamples), "seed": str(run.seed)}
    if run.protocol:
        about = {"protocol name": run.protocol, **about}
    named = run.facts.get("config_name")
    title = capitalize_text(
        f"{run.name}: {run.config.task}" + (f", config {named}" if named == "default" else "")
    )
    return build_evaluation_section(
        run.result,
        title=title,
        model=run.name,
        about=about,
        protocol=run.facts.get("sampling"),
        pictures=images,
        clips=run.clips,
    )


def render_comparison(comparison: Comparison) -> str:
    """A page for two models.

    Args:
        comparison: what `compare` gave.
    """
    from roadaware.reports.evaluation import build_comparison_section

    return report([build_comparison_section(comparison)], title=" against ".join(comparison.names))


def summarize_baselines(found: Sequence[Run], pairs: Sequence[Comparison]) -> dict[str, Any]:
    """Baselines and what differs between them, JSON-ready.

    Args:
        found: a run for each model.
        pairs: every two of them, compared.
    """
    return {
        "models": {run.name: summarize_run(run) for run in found},
        "comparisons": [build_comparison_json(pair) for pair in pairs],
    }


def build_baseline_files(found: Sequence[Run], pairs: Sequence[Comparison], title: str) -> dict[str, bytes]:
    """The files of a folder with a run folder for each model and a page of all, by name.

    Args:
        found, pairs: as of `summarize_baselines`.
        title: of the page.
    """
    files = {
        f"{run.name}/{name}": data
        for run in found
        for name, data in build_run_files(run, run_page([run])).items()
    }
    files["report.html"] = run_page(found, pairs, title).encode("utf-8", errors="backslashreplace")
    return add_marker(files, {"schema": SCHEMA, **summarize_baselines(found, pairs)})


def list_agreement_rows(found: Agreement, unit: str) -> list[list[str]]:
    """A row for each combination of classes that has samples, as the paper prints it; its intervals over a kind of unit."""
    rows = []
    for key, part in found.table.group_by("first", "second", maintain_order=True):
        n = int(part["n"][0])
        if not n:
            continue
        names = ["all", ""] if key[0] is None else [str(name) for name in key]
        shown = {row["outcome"]: row for row in part.iter_rows(named=True)}
        cells = [
            f"{shown[outcome]['percent']:.1f} {terminal.format_row_interval(shown[outcome], unit, 1)}".strip()
            for outcome in OUTCOMES
        ]
        rows.append([*names, f"{n:,}", *cells])
    return rows


def list_agreement_columns(tasks: Sequence[str]) -> list[str]:
    """The heads of the columns of an agreement of two tasks."""
    return [*tasks, "samples", "both right", f"only {tasks[0]}", f"only {tasks[1]}", "neither"]


def build_agreement_section(found: Agreement, tasks: Sequence[str]) -> Section:
    """The section of a page of two tasks that are decided together, with intervals over pedestrians and over videos."""
    whole = found.percent("both")
    says = () if whole is None else (f"Both are decided rightly in {whole:.1f} % of the samples.",)
    tables = tuple(
        Table(
            tuple(list_agreement_columns(tasks)), tuple(map(tuple, list_agreement_rows(found, unit))), "llrrrrr",
            title=f"Intervals over {unit}s",
            caption="Per cent of the samples of each combination of true classes, with 95 % intervals.",
        )
        for unit in ("pedestrian", "video")
    )  # fmt: skip
    return Section("Agreement", says, tables)


def format_run(run: Run) -> str:
    """One run: what was judged, and every metric with its intervals."""
    name = run.facts.get("config_name")
    lines = [
        f"{format_cell(run.name)}: {run.config.task}, {len(run.state)} samples of "
        f"{len(set(run.state.pedestrian.tolist()))} pedestrians"
        + (f", {run.protocol}" if run.protocol else "")
        + (f", config {name}" if name else "")
    ]
    counts = [row for row in run.result.counts.iter_rows(named=True) if row["group"] is None]
    lines.append("true classes: " + ", ".join(f"{row['class']}: {row['samples']}" for row in counts))
    lines += [format_cell(text) for text in run.result.notes]
    return "\n".join(lines) + "\n\n" + _metrics(run) + _format_undefined(run) + _scenarios(run)


def format_runs(runs: Sequence[Run], names: Sequence[str] = ()) -> str:
    """Several runs of one task beside each other, one column each, with intervals by pedestrian.

    Args:
        runs: at least one.
        names: of the metrics; all where empty.
    """
    names = names or list(runs[0].result.of_group(None)["metric"])
    rows = []
    for name in names:
        found = [run.result.row(name) for run in runs]
        cells = [format_number(row["value"]) for row in found]
        if runs[0].resamples:
            ends = [format_row_interval(row, "pedestrian") for row in found]
            cells = [f"{value} {end}" for value, end in zip(cells, ends, strict=True)]
        rows.append([name, *cells])
    text = format_table(["metric", *(run.name for run in runs)], rows)
    return text + ("\n95 % intervals by pedestrian" if runs[0].resamples else "")


def format_comparison(comparison: Comparison) -> str:
    """Every metric of two models, their difference with both intervals, and the verdict in words."""
    rows = [
        [
            row["metric"],
            format_number(row["a"]),
            format_number(row["b"]),
            format_number(row["difference"]),
            format_row_interval(row, "pedestrian"),
            format_row_interval(row, "video"),
            _verdict(row["verdict"], row["lower_is_better"]),
        ]
        for row in comparison.table.iter_rows(named=True)
    ]
    first, second = comparison.names
    header = [
        "metric",
        first,
        second,
        "difference",
        "95 % by pedestrian",
        "95 % by video",
        "verdict on the first",
    ]
    apart = f"{format_cell(first)} - {format_cell(second)}"
    note = f"difference = {apart}; {comparison.resamples} resamples, seed {comparison.seed}"
    return format_table(header, rows, colour=lambda row: _COLOURS.get(row[-1].split(" (")[0])) + f"\n{note}"


_BY_SCENARIO = ("accuracy", "balanced_accuracy", "f1", "average_precision", "auc")
_COLOURS = {"better": "good", "worse": "bad"}


def _verdict(verdict: str, lower_is_better: bool) -> str:
    return f"{verdict} (lower)" if lower_is_better and verdict in ("better", "worse") else verdict


def _metrics(run: Run) -> str:
    rows = []
    for row in run.result.of_group(None).iter_rows(named=True):
        cells = [row["metric"], format_number(row["value"], 4)]
        if run.resamples:
            cells.append(format_row_interval(row, "pedestrian"))
            cells.append(format_row_interval(row, "video"))
        rows.append(cells)
    return format_table(
        ["metric", "value", "95 % by pedestrian", "95 % by video"][: 4 if run.resamples else 2], rows
    )


def _scenarios(run: Run) -> str:
    """The headline metrics of each scenario."""
    if run.groups is None:
        return ""
    held = run.result.counts.group_by("group", maintain_order=True).agg("samples")
    sizes = {group: sum(samples) for group, samples in held.iter_rows()}
    rows = [
        [group, sizes[group], *(format_number(run.result.value(name, group)) for name in _BY_SCENARIO)]
        for group in sorted(run.result.groups, key=get_sort_key)
    ]
    return "\n\n" + format_table(["scenario", "samples", *_BY_SCENARIO], rows)


def get_sort_key(name: str) -> list[tuple[int, str]]:
    """Sorts `scale=80-100` before `scale=100-150`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _format_undefined(run: Run) -> str:
    """Why metrics have no value: one line per reason."""
    reasons: dict[str, list[str]] = {}
    for row in run.result.of_group(None).iter_rows(named=True):
        if not row["valid"]:
            reasons.setdefault(row["reason"] or "undefined", []).append(row["metric"])
    if not reasons:
        return ""
    items = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "\n\nundefined:\n" + format_bullets(items)


def format_headline(comparison: Comparison) -> str:
    """Two models in a sentence per headline metric."""
    wanted = ("average_precision", "balanced_accuracy", "auc")
    return "\n".join(line for line in comparison.lines() if line.split(":")[0] in wanted)


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


def format_run_state(data: Mapping[str, Any]) -> str:
    """How far a long run is, as text.

    Args:
        data: as `io.parallel.read_run_state` gives it.
    """
    name = format_cell(data["folder"])
    if data["state"] == "finished":
        return f"{name}: finished, every part is done ({data['kind'].removeprefix('roadaware-')})"
    who = f"process {data['process']} on {to_printable(data['host'], 60)}"
    state = {
        "at work": f"{who} is at work",
        "stopped": f"no process is at work (the last one was {who}); the same command goes on",
        "unknown": f"{who} was at work {format_duration(data['age_s'])} ago",
    }[data["state"]]
    lines = [
        f"{name}: {data['done']:,} of {data['total']:,} {to_printable(data['what'], 40)} done, "
        f"{data['failed']:,} failed, {data['left']:,} left",
        state,
    ]
    if data["parts_per_s"] is not None:
        left = "" if data["left_s"] is None else f"; {format_duration(data['left_s'])} left"
        lines.append(f"{data['parts_per_s'] * 60:,.4g} a minute{left}")
    lines += [
        f"  {each['parts']:,} x {to_printable(each['reason'])} (the first: {to_printable(each['first'], 80)})"
        for each in data["reasons"][:10]
    ]
    if len(data["reasons"]) > 10:
        lines.append(f"  and {len(data['reasons']) - 10:,} reasons more; --json names all")
    return "\n".join(lines)
