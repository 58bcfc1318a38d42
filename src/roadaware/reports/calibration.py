"""Calibration: the section of a report with bins, slices and figures; text, JSON and files of the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware import __version__
from roadaware.config import digest
from roadaware.io.csv import format_csv
from roadaware.io.folders import add_marker
from roadaware.metrics.metric_state import MetricResult
from roadaware.reports import terminal
from roadaware.reports.bars import draw_reliability, find_reliability_floor, plot_reliability
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.evaluation import group_order, split_group
from roadaware.reports.page import (
    DOTTED,
    FULL,
    GREY,
    HALF,
    SERIES,
    Block,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    create_canvas,
    report,
    set_style,
)
from roadaware.reports.run_pages import get_sort_key
from roadaware.reports.runs import digest_scores
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_name,
    format_number,
    format_row_interval,
    format_signed,
)

if TYPE_CHECKING:
    from roadaware.metrics.calibration import CalibrationConfig
    from roadaware.metrics.scores import SampleScores


MOST_PANELS = 24
_ACROSS = 4
_NAMES = {
    "ece": "expected calibration error (ECE), adaptive bins",
    "mce": "maximum calibration error (MCE), adaptive bins",
    "ece_if_calibrated": "ECE that a calibrated model would have on this set",
    "uniform_ece": "ECE, bins of equal width",
    "uniform_mce": "MCE, bins of equal width",
    "nll": "negative log-likelihood",
    "brier": "Brier score",
    "confidence": "mean confidence",
    "overconfidence": "overconfidence (confidence less accuracy)",
}
_UNITS = ("pedestrian", "video")


def build_calibration_section(
    result: MetricResult,
    *,
    title: str = "Calibration",
    model: str = "the model",
    about: Mapping[str, str] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Section:
    """One model's calibration: errors with intervals, bins, slices and their figures.

    Args:
        result: what `metrics.calibration.evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        about: what else the reader should know, such as samples and data digest.
        seconds: group to its mean time to event, for the groups of time.
    """
    bins = result.instances("bin")
    facts = [*(about or {}).items(), ("calibration", format_config(result.config))]
    blocks: list[Block] = [Facts(tuple(facts)), _errors(result)]
    blocks += [Note(note, "doubt") for note in result.notes]
    drawn = plot_calibration(result, bins, seconds or {})
    if drawn:
        blocks.append(Pictures(tuple(drawn), "Pictures"))
    if result.groups:
        blocks.append(_slices(result))
    rows: list[tuple[TableCell, ...]] = []
    whole = bins.filter(pl.col("group").is_null() & (pl.col("binning") == "adaptive"))
    for row in whole.iter_rows(named=True):
        span = f"{format_number(row['low'])} to {format_number(row['high'])}"
        gap = format_signed(row["accuracy"] - row["confidence"])
        cells = (format_number(row["confidence"]), format_number(row["accuracy"]), gap, _format_ends(row))
        rows.append((span, format_count(row["n"]), format_count(row["pedestrians"]), *cells))
    head = ("confidence from", "samples", "pedestrians", "mean confidence", "accuracy", "gap", "interval")
    blocks += [
        Table(
            head,
            tuple(rows),
            "lrrrrrr",
            "Adaptive bins",
            _over(whole, "Intervals of the accuracy over pedestrians."),
        ),
        build_config_table(result.config, "Configuration"),
    ]
    return Section(title, tuple(_says(result, model)), tuple(blocks))


def plot_calibration(result: MetricResult, bins: pl.DataFrame, seconds: Mapping[str, float]) -> list[Picture]:
    """The reliability diagram, the same of each group, and the error as the event comes nearer.

    Args:
        result: what `metrics.calibration.evaluate` gave.
        bins: its instances by `bin`.
        seconds: group to its mean time to event, for the groups of time.
    """
    drawable = bins.filter(pl.col("n").min().over("group", "binning") > 0)
    whole = drawable.filter(pl.col("group").is_null())
    adaptive = whole.filter(pl.col("binning") == "adaptive")
    if adaptive.is_empty():
        return []
    even = whole.filter(pl.col("binning") == "uniform")
    size = result.config["uniform_bins"]
    # A bin of equal width is (low, high]; its highest confidence tells which one it is.
    place = np.clip(np.ceil(even["high"].to_numpy() * size) - 1, 0, size - 1)
    left, width = place / size, np.full(len(place), 1 / size)
    images = [
        plot_reliability(
            adaptive["confidence"].to_numpy(),
            adaptive["accuracy"].to_numpy(),
            adaptive["n"].to_numpy(),
            error=result.value("ece"),
            ends=_ends(adaptive),
            bands=(left, width, even["n"].to_numpy()),
        )
    ]
    known = [(second, group) for group, second in seconds.items() if result.value("ece", group) is not None]
    if len(known) > 1:
        images.append(_over_time(result, sorted(known)))
    groups = sorted(result.groups, key=group_order)[:MOST_PANELS]
    held = drawable.filter((pl.col("binning") == "adaptive") & pl.col("group").is_in(groups))
    if groups and not held.is_empty():
        images.append(_panels(result, held, groups))
    return images


def _ends(bins: pl.DataFrame) -> np.ndarray[tuple[int, int], np.dtype[np.float64]] | None:
    ends = bins.select(pl.col("low_pedestrian", "high_pedestrian").cast(pl.Float64).fill_null(float("nan")))
    found: np.ndarray[tuple[int, int], np.dtype[np.float64]] = ends.to_numpy()
    return None if np.isnan(found).all() else found


def _over_time(result: MetricResult, known: Sequence[tuple[float, str]]) -> Picture:
    """ECE against the mean time to event of each group, with its interval and what chance alone gives."""
    seconds = [second for second, _ in known]
    rows = [result.row("ece", group) for _, group in known]
    values = [row["value"] for row in rows]
    beside = [result.value("ece_if_calibrated", group) for _, group in known]
    chance = [value for value in beside if value is not None]
    with set_style():
        figure, axes = create_canvas(HALF, 3.5)
        band = ""
        if all(row["low_pedestrian"] is not None for row in rows):
            band = " The band is its 95 % interval over pedestrians."
            low, high = ([row[f"{end}_pedestrian"] for row in rows] for end in ("low", "high"))
            axes.fill_between(seconds, low, high, color=SERIES[0], alpha=0.22, linewidth=0)
        axes.plot(seconds, values, color=SERIES[0], marker="o", markersize=5)
        if len(chance) == len(beside):
            band += " Dotted: what a calibrated model would show."
            axes.plot(seconds, chance, color=GREY, linewidth=1, linestyle=DOTTED)
        axes.set(
            xlim=(max(seconds) + 0.05, min(seconds) - 0.05), xlabel="seconds before the event", ylabel="ECE"
        )
        axes.set_ylim(bottom=0)
        axes.grid(visible=True)
    stated = "; ".join(
        f"{format_number(value)} at {second:.1f} s"
        for value, second in zip(values[::-1], seconds[::-1], strict=True)
    )
    caption = (
        "Expected calibration error of the samples of each band of time; time runs to the right, towards the "
        f"event.{band} {stated}."
    )
    return Picture("Calibration error against time to event", caption, figure)


def _panels(result: MetricResult, bins: pl.DataFrame, groups: Sequence[str]) -> Picture:
    """A small reliability diagram for each group, all with the same axes."""
    down = -(-len(groups) // _ACROSS)
    low = find_reliability_floor(bins["confidence"].to_numpy(), bins["accuracy"].to_numpy(), _ends(bins))
    with set_style():
        figure, first = create_canvas(FULL, 0.5 + 2.2 * down)
        figure.delaxes(first)
        panels = figure.subplots(down, _ACROSS, sharex=True, sharey=True, squeeze=False)
        for axes, group in zip(panels.flat, groups, strict=False):
            held = bins.filter(pl.col("group") == group)
            x, y = held["confidence"].to_numpy(), held["accuracy"].to_numpy()
            draw_reliability(axes, x, y, _ends(held), low, 0.7)
            error = format_number(result.value("ece", group))
            axes.set_title(
                f"{clip_label(_format_group(group), 26)}\nECE {error}, n = {format_count(_size(result, group))}",
                fontsize=8,
            )
        for place in range(len(groups), panels.size):
            figure.delaxes(panels.flat[place])
            panels.flat[place - _ACROSS].tick_params(labelbottom=True)
        figure.supxlabel("confidence", fontsize=8.5)
        figure.supylabel("accuracy", fontsize=8.5)
    stated = "; ".join(
        f"{_format_group(group)} {format_number(result.value('ece', group))}" for group in groups
    )
    bars = "" if _ends(bins) is None else "; pale bars are 95 % intervals over pedestrians"
    caption = f"Dotted: perfect. Each panel has adaptive bins of its own{bars}. ECE: {stated}."
    return Picture("Reliability by slice", caption, figure)


def _errors(result: MetricResult) -> Table:
    rows: list[tuple[TableCell, ...]] = []
    for row in result.of_group(None).iter_rows(named=True):
        value: TableCell = (
            format_number(row["value"]) if row["valid"] else Mark("undefined", "mute", row["reason"] or "")
        )
        name = _NAMES.get(row["metric"], format_name(row["metric"]))
        rows.append(
            (
                name,
                value,
                *(format_row_interval(row, u) for u in _UNITS),
            )
        )
    head = ("metric", "value", *(f"interval over {unit}s" for unit in _UNITS))
    return Table(head, tuple(rows), "lrrr", "Errors", "Lower is better; overconfidence is best at 0.")


def _slices(result: MetricResult) -> Table:
    rows: list[tuple[TableCell, ...]] = []
    family = ""
    for group in sorted(result.groups, key=group_order):
        factor, name = split_group(group)
        if factor and factor != family:
            rows.append((factor,))
            family = factor
        row, sure = result.row("ece", group), result.row("overconfidence", group)
        ends = format_row_interval(row, "pedestrian")
        cells = (format_number(row["value"]), ends, format_number(result.value("ece_if_calibrated", group)))
        rows.append((name, format_count(row["n"]), *cells, format_signed(sure["value"]), _format_ends(sure)))
    head = ("slice", "samples", "ECE", "interval", "if calibrated", "overconfidence", "interval")
    return Table(
        head, tuple(rows), "lrrrrrr", "Slices", _over(result.summary, "95 % intervals over pedestrians.")
    )


def _says(result: MetricResult, model: str) -> Iterator[str]:
    row, sure = result.row("ece", None), result.row("overconfidence", None)
    if not row["valid"]:
        yield capitalize_text(f"the calibration error of {model} is undefined: {row['reason']}.")
        return
    chance = result.value("ece_if_calibrated")
    beside = "" if chance is None else f"; a calibrated model would show {format_number(chance)} on this set"
    yield capitalize_text(
        f"{model} has an expected calibration error of {format_number(row['value'])} ({_format_ends(row)}){beside}."
    )
    shift = sure["value"]
    text = f"{'more' if shift > 0 else 'less'} sure than right, by {format_number(abs(shift))} ({_format_ends(sure)})"
    yield capitalize_text(f"on the whole it is {text}.")
    known = [(value, group) for group in result.groups if (value := result.value("ece", group)) is not None]
    if len(known) > 1:
        (low, best), (high, worst) = min(known), max(known)
        most, least = (
            f"{_format_group(worst)} ({format_number(high)})",
            f"{_format_group(best)} ({format_number(low)})",
        )
        yield f"The error is largest for {most} and smallest for {least}."


def _format_ends(row: Mapping[str, Any]) -> str:
    return format_row_interval(row, "pedestrian")


def _over(rows: pl.DataFrame, caption: str) -> str:
    """What is said of intervals, where there are some."""
    return caption if rows["low_pedestrian"].count() else "No intervals were asked for."


def _size(result: MetricResult, group: str) -> int:
    return int(result.row("ece", group)["n"])


def _format_group(group: str) -> str:
    factor, name = split_group(group)
    return f"{factor}: {name}" if factor else name


SCHEMA = 1


def build_calibration_json(
    state: SampleScores, result: MetricResult, config: CalibrationConfig, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Errors, bins and slices, JSON-ready; what is undefined is None.

    Args:
        state: the samples.
        result: what was found.
        config: how.
        facts: what else belongs to it.
    """
    return {
        "schema": SCHEMA,
        **facts,
        **_summarize_group(result, None),
        "undefined": {
            row["metric"]: row["reason"]
            for row in result.of_group(None).iter_rows(named=True)
            if not row["valid"]
        },
        "pedestrians": len(set(state.pedestrian.tolist())),
        "classes": [
            {"class": row["class"], "samples": row["samples"], "pedestrians": row["pedestrians"]}
            for row in result.counts.iter_rows(named=True)
            if row["group"] is None
        ],
        "groups": {group: _summarize_group(result, group) for group in result.groups},
        "config": result.config,
        "config_digest": digest(config),
        "data_digest": digest_scores(state),
        "version": __version__,
        "notes": list(result.notes),
    }


def _summarize_group(result: MetricResult, group: str | None) -> dict[str, Any]:
    """Metrics, intervals and bins of one group."""
    rows = list(result.of_group(group).iter_rows(named=True))
    bins: dict[str, list[dict[str, Any]]] = {"adaptive": [], "uniform": []}
    for row in result.instances("bin").iter_rows(named=True):
        if row["group"] == group:
            kept = ("n", "pedestrians", "confidence", "accuracy", "low", "high")
            bins[row["binning"]].append(
                {
                    **{name: row[name] for name in kept},
                    "gap": row["accuracy"] - row["confidence"],
                    "interval": _list_ends(row, "pedestrian"),
                    "interval_video": _list_ends(row, "video"),
                    "cautions": {unit: row[f"caution_{unit}"] for unit in _UNITS},
                }
            )
    return {
        "samples": rows[0]["n"],
        **{row["metric"]: row["value"] for row in rows},
        "bins": bins["adaptive"],
        "uniform_bins": bins["uniform"],
        "intervals": {row["metric"]: {unit: _list_ends(row, unit) for unit in _UNITS} for row in rows},
        "cautions": {row["metric"]: {u: row[f"caution_{u}"] for u in _UNITS} for row in rows},
    }


def _list_ends(row: Mapping[str, Any], unit: str) -> list[float] | None:
    return None if row[f"low_{unit}"] is None else [row[f"low_{unit}"], row[f"high_{unit}"]]


def format_calibration(found: Mapping[str, Any]) -> str:
    """Errors with intervals, adaptive bins and slices as tables."""
    head = (
        f"{terminal.format_cell(found['name'])}: {found['task'] or 'classes'}, {found['samples']} samples of "
        f"{found['pedestrians']} pedestrians, config {found['config_name']}"
    )
    notes = [f"note: {terminal.format_cell(note)}" for note in found["notes"]]
    names = list(found["intervals"])
    rows = [
        [name, terminal.format_number(found[name], 4), *(_format_interval(found, name, u) for u in _UNITS)]
        for name in names
    ]
    parts = [
        "\n".join([head, *notes]),
        terminal.format_table(["metric", "value", "95 % by pedestrian", "95 % by video"], rows),
    ]
    if found["undefined"]:
        parts.append(
            "undefined:\n"
            + terminal.format_bullets(f"{name}: {why}" for name, why in found["undefined"].items())
        )
    if found["bins"]:
        parts.append(_format_bins(found))
    if found["conformal"]:
        parts.append(_format_conformal_sets(found["conformal"]))
    if found["groups"]:
        parts.append(_format_slices(found["groups"]))
    return "\n\n".join(parts)


def _format_bins(found: Mapping[str, Any]) -> str:
    ends = [one["interval"] or (None, None) for one in found["bins"]]
    rows = [
        [
            f"{one['low']:.3f} to {one['high']:.3f}",
            one["n"],
            terminal.format_number(one["confidence"]),
            terminal.format_number(one["accuracy"]),
            f"{one['gap']:+.3f}",
            terminal.format_interval(low, high, caution=one["cautions"]["pedestrian"]),
        ]
        for one, (low, high) in zip(found["bins"], ends, strict=True)
    ]
    return terminal.format_table(
        ["adaptive bin", "samples", "confidence", "accuracy", "gap", "95 % of accuracy"], rows
    )


def _format_conformal_sets(found: Mapping[str, Any]) -> str:
    head = (
        f"conformal sets that promise {found['level']:g}, thresholds from one half of the pedestrians "
        f"and sets of the other, {found['halvings']} times"
    )
    rows = [
        [
            rule,
            terminal.format_number(one["coverage"]),
            f"[{one['low']:.3f}, {one['high']:.3f}]",
            terminal.format_number(one["size"]),
            terminal.format_number(one["empty"]),
            terminal.format_number(one["single"]),
        ]
        for rule, one in found["rules"].items()
    ]
    return (
        head
        + "\n"
        + terminal.format_table(["rule", "coverage", "95 % of halves", "labels", "empty", "single"], rows)
    )


def _format_slices(groups: Mapping[str, Any]) -> str:
    rows = [
        [
            group,
            held["samples"],
            terminal.format_number(held["ece"]),
            _format_interval(held, "ece", "pedestrian"),
            terminal.format_number(held["ece_if_calibrated"]),
            terminal.format_number(held["overconfidence"]),
            _format_interval(held, "overconfidence", "pedestrian"),
        ]
        for group, held in sorted(groups.items(), key=lambda item: get_sort_key(item[0]))
    ]
    head = ["slice", "samples", "ece", "95 % by pedestrian", "if calibrated", "overconfidence"]
    return terminal.format_table([*head, "95 % by pedestrian"], rows)


def _format_interval(held: Mapping[str, Any], metric: str, unit: str) -> str:
    low, high = held["intervals"][metric][unit] or (None, None)
    return terminal.format_interval(low, high, 3, held["cautions"][metric][unit])


def build_calibration_files(
    found: Mapping[str, Any], result: MetricResult, seconds: Mapping[str, float]
) -> dict[str, bytes]:
    """The files of a folder by name: results, bins as csv, report.

    Args:
        found: what `build_calibration_json` gave.
        result: what was found.
        seconds: group to its mean time to event, for the groups of time.
    """
    about = {
        "samples": f"{found['samples']:,} of {found['pedestrians']:,} pedestrians",
        "data digest": found["data_digest"],
        "resamples": str(found["resamples"]),
        "seed": str(found["seed"]),
    }
    title = capitalize_text(f"{found['name']}: calibration, config {found['config_name']}")
    section = build_calibration_section(
        result, title=title, model=found["name"], about=about, seconds=seconds
    )
    page = report([section], title=f"Calibration of {found['name']}", subtitle="pedestrians")
    return add_marker(
        {
            "bins.csv": format_csv(result.instances("bin")).encode(),
            "report.html": page.encode("utf-8", errors="backslashreplace"),
        },
        found,
    )
