"""Evaluation section of a report: data, configuration, metrics and figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.compare import Comparison
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import UNITS
from roadaware.reports.bars import Difference, Estimate, plot_forest, plot_scenarios
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.gallery import list_answers
from roadaware.reports.page import (
    Block,
    Clips,
    Facts,
    Mark,
    Note,
    Pictures,
    Section,
    Table,
    TableCell,
    build_caption,
)
from roadaware.reports.picture import Picture
from roadaware.reports.text import (
    capitalize_text,
    format_count,
    format_name,
    format_number,
    format_row_interval,
    format_signed,
)

if TYPE_CHECKING:
    from roadaware.analysis.excerpts import Clip

FAMILIES = (
    ("", "Each sample counts once"),
    ("weighted_", "Samples weighted: early warnings (action) or central regions (risk) count more"),
    ("soft_", "One decision per pedestrian, from the mean of its scores"),
    ("hard_", "One decision per pedestrian, wrong unless all its samples agree"),
    ("confidence_delta", "Change of confidence from sample to sample (lower is better)"),
    ("average_precision_", "Average precision class by class"),
)
HEADLINES = ("average_precision", "balanced_accuracy", "auc")
_FIRST_NUMBER = re.compile(r"(<=?|≤|up to |below )?\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_CLIPS = (
    "One of each pedestrian. Green and solid while the pedestrian is observed, red and dashed from the decision on; "
    "the image is cut to where the pedestrian is."
)
FACTOR_WORDS = {
    "tte": "frames to the event",
    "scale": "scale (height of the box, px)",
    "speed": "speed (km/h)",
}
IN_GROUPS = ("average_precision", "balanced_accuracy", "f1", "auc")


def build_evaluation_section(
    result: MetricResult,
    *,
    title: str = "Evaluation",
    model: str = "the model",
    about: Mapping[str, str] | None = None,
    protocol: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    pictures: Sequence[Picture] = (),
    clips: Sequence[Clip] = (),
) -> Section:
    """One model's evaluation.

    Args:
        result: what `evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        about: what else the reader should know, such as dataset, split, data digest.
        protocol: the sampling protocol, as `to_dict` gives it (`scenes.meta.notes["protocol"]`).
        labels: what the classes are called; those of the published protocol where not given.
        pictures: drawn after the tables; `roadaware.reports.gallery` makes them.
        clips: moments of wrong decisions.
    """
    facts = [*(about or {}).items(), *_sizes(result, labels or list_answers(result.config["task"]))]
    if protocol:
        facts.append(("protocol", format_config(protocol)))
    facts.append(("metrics", format_config(result.config)))
    blocks: list[Block] = [Facts(tuple(facts)), build_metric_table(result)]
    blocks += [Clips(tuple(clips), "The most confident errors", _CLIPS)] if clips else []
    groups = group_table(result)
    if groups:
        blocks.append(groups)
    drawn = [*pictures, *group_pictures(result)]
    if drawn:
        blocks.append(Pictures(tuple(drawn), "Pictures"))
    blocks.extend(Note(note, "doubt") for note in result.notes)
    if protocol:
        blocks.append(build_config_table(protocol, "Sampling protocol"))
    blocks.append(build_config_table(result.config, "Metric configuration"))
    return Section(title, tuple(_says(result, model)), tuple(blocks))


def build_comparison_section(comparison: Comparison, *, title: str | None = None) -> Section:
    """Two models on the same samples: differences with both intervals, and which are more than chance.

    Args:
        comparison: what `compare` gave.
        title: heading; the names of the two where not given.
    """
    first, second = comparison.names
    shown = comparison.table.filter(~pl.col("metric").str.starts_with("average_precision_"))
    shown = shown.filter(pl.col("verdict") != "undefined")
    rows = [_difference(row) for row in shown.iter_rows(named=True)]
    cells = tuple(_build_comparison_row(row) for row in comparison.table.iter_rows(named=True))
    head = (
        "metric",
        first,
        second,
        "difference",
        "interval over pedestrians",
        "interval over videos",
        f"{first} is",
    )
    table = Table(
        head, cells, "lrrrrrl", "Differences", f"{comparison.draws:,} resamples shared by both models."
    )
    says = tuple(_compared_says(shown, first, second))
    heading = title or capitalize_text(f"{first} against {second}")
    return Section(heading, says, (Pictures((plot_forest(rows, first, second),)), table))


def build_metric_table(result: MetricResult) -> Table:
    """Every metric of the whole set, with its size and its intervals; undefined ones say why."""
    summary = result.of_group(None)
    shown = [unit for unit in UNITS if summary[f"low_{unit}"].is_not_null().any()]
    rows: list[tuple[TableCell, ...]] = []
    for prefix, heading in FAMILIES:
        members = [row for row in summary.iter_rows(named=True) if _family(row["metric"]) == prefix]
        if members:
            rows.append((heading,))
            rows.extend(_metric_row(row, prefix, shown) for row in members)
    head = ("metric", "value", "n", *(f"interval over {unit}s" for unit in shown))
    caption = "n is the number of samples, or of pedestrians where one decision is made for each."
    caption += "" if shown else " No intervals were asked for."
    counted = (-1, 2, -1) + (-1,) * len(shown)
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Metrics", caption, counted)


def group_table(result: MetricResult) -> Table | None:
    """The main metrics of every group, nothing where there are no groups."""
    if not result.groups:
        return None
    held = {row["metric"] for row in result.of_group(None).iter_rows(named=True)}
    metrics = [metric for metric in IN_GROUPS if metric in held]
    rows: list[tuple[TableCell, ...]] = []
    family = ""
    for group in sorted(result.groups, key=group_order):
        factor, name = split_group(group)
        if factor and factor != family:
            rows.append((factor,))
            family = factor
        found = {metric: result.row(metric, group) for metric in metrics}
        cells = (_with_interval(found[metric]) for metric in metrics)
        rows.append((name, format_count(found[metrics[0]]["n"]), *cells))
    caption = build_caption(rows, "", "pedestrians")
    return Table(
        ("scenario", "samples", *map(format_name, metrics)),
        tuple(rows),
        "lr" + "r" * len(metrics),
        "Scenarios",
        caption,
        (-1, -1, *(1,) * len(metrics)),
    )


def group_pictures(result: MetricResult) -> list[Picture]:
    """Average precision by scenario, nothing where there are no groups."""
    if not result.groups:
        return []
    rows = []
    for group in sorted(result.groups, key=group_order):
        row = result.row("average_precision", group)
        factor, name = split_group(group)
        low, high = row["low_pedestrian"], row["high_pedestrian"]
        caution = row.get("caution_pedestrian")
        rows.append(Estimate(name, row["value"], low, high, row["n"], factor, row["reason"], caution))
    return [plot_scenarios(rows, "average precision", overall=result.value("average_precision"))]


def split_group(group: str) -> tuple[str, str]:
    """Factor and name of a scenario; those of a product are joined.

    >>> split_group("state=walking; road=one-way"), split_group("rain")
    (('state and road', 'walking, one-way'), ('', 'rain'))
    """
    pairs = [part.partition("=") for part in group.split("; ")]
    if not all(found for _, found, _ in pairs):
        return "", format_name(group)
    factor = " and ".join(FACTOR_WORDS.get(factor, format_name(factor)) for factor, _, _ in pairs)
    return factor, ", ".join(format_name(name) for _, _, name in pairs)


def group_order(group: str) -> tuple[Any, ...]:
    """Sorts scenarios by factor, then by their numbers where they begin with one, then by name."""
    factor, name = split_group(group)
    found = _FIRST_NUMBER.match(name)
    first = float(found[2]) - (0.5 if found[1] else 0) if found else float("inf")
    return factor, first, name


def _family(metric: str) -> str:
    return next((prefix for prefix, _ in FAMILIES[1:] if metric.startswith(prefix)), "")


def _metric_row(row: Mapping[str, Any], prefix: str, units: Sequence[str]) -> tuple[TableCell, ...]:
    short = prefix.endswith("_")
    name = format_name(row["metric"].removeprefix(prefix) if short else row["metric"])
    value: TableCell = (
        format_number(row["value"]) if row["valid"] else Mark("undefined", "mute", row["reason"] or "")
    )
    return (
        name,
        value,
        format_count(row["n"]),
        *(format_row_interval(row, u) for u in units),
    )


def _with_interval(row: Mapping[str, Any]) -> TableCell:
    if not row["valid"]:
        return Mark("undefined", "mute", row["reason"] or "")
    ends = format_row_interval(row, "pedestrian")
    return Mark(format_number(row["value"]), "", ends if ends != "–" else "")


def _sizes(result: MetricResult, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    whole = result.counts.filter(pl.col("group").is_null())
    yield (
        "samples",
        f"{format_count(int(whole['samples'].sum()))} of {format_count(int(whole['pedestrians'].sum()))} pedestrians",
    )
    shares = (
        f"{format_name(labels[k]) if k < len(labels) else k}: {format_count(n)}"
        for k, n in whole.select("class", "samples").iter_rows()
    )
    yield "samples of each class", ", ".join(shares)


def _says(result: MetricResult, model: str) -> Iterator[str]:
    held = {row["metric"]: row for row in result.of_group(None).iter_rows(named=True)}
    reached = [held[metric] for metric in HEADLINES if metric in held and held[metric]["valid"]]
    if reached:
        values = ", ".join(
            f"{format_name(row['metric'])} {format_number(row['value'])}{_ends(row)}" for row in reached
        )
        known = any(row["low_pedestrian"] is not None for row in reached)
        yield capitalize_text(
            f"{model} reaches {values}{'; in brackets 95 % intervals over pedestrians' if known else ''}."
        )
    lost = [row for row in held.values() if not row["valid"]]
    if lost:
        yield f"{len(lost)} of {len(held)} metrics are undefined on this set; the table says why."
    known_groups = [(result.value("average_precision", group), group) for group in result.groups]
    ranked = sorted((value, group) for value, group in known_groups if value is not None)
    if len(ranked) > 1:
        (low, worst), (high, best) = ranked[0], ranked[-1]
        weak, strong = f"{_spoken(worst)} ({format_number(low)})", f"{_spoken(best)} ({format_number(high)})"
        yield f"Average precision is lowest where {weak} and highest where {strong}."


def _spoken(group: str) -> str:
    factor, name = split_group(group)
    return f"{factor} is {name}" if factor else name


def _ends(row: Mapping[str, Any]) -> str:
    ends = format_row_interval(row, "pedestrian")
    return f" ({ends})" if ends != "–" else ""


def _difference(row: Mapping[str, Any]) -> Difference:
    ends = (row["low_pedestrian"], row["high_pedestrian"], row["low_video"], row["high_video"])
    name = format_name(row["metric"]) + (" (lower is better)" if row["lower_is_better"] else "")
    cautions = tuple(row.get(f"caution_{unit}") for unit in ("pedestrian", "video"))
    return Difference(name, row["difference"], *ends, row["verdict"], cautions)


def _build_comparison_row(row: Mapping[str, Any]) -> tuple[TableCell, ...]:
    tone = {"better": "fair", "worse": "bad"}.get(row["verdict"], "mute")
    return (
        format_name(row["metric"]),
        format_number(row["a"]),
        format_number(row["b"]),
        format_signed(row["difference"]),
        format_row_interval(row, "pedestrian"),
        format_row_interval(row, "video"),
        Mark(row["verdict"], tone),
    )


def _compared_says(table: pl.DataFrame, first: str, second: str) -> Iterator[str]:
    """One sentence per verdict, over the headline metrics."""
    rows = [row for row in table.iter_rows(named=True) if row["metric"] in HEADLINES]
    for verdict in dict.fromkeys(row["verdict"] for row in rows):
        held = [row for row in rows if row["verdict"] == verdict]
        values = ", ".join(
            f"{format_name(row['metric'])} ({format_number(row['a'])} against {format_number(row['b'])})"
            for row in held
        )
        if verdict in ("better", "worse"):
            yield capitalize_text(f"{first} is {verdict} than {second} in {values}.")
        else:
            yield capitalize_text(f"{first} and {second}: {verdict} in {values}.")
