"""Evaluation section of a task on scenes: metrics, slices, classes, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from roadaware.analysis.action_confusion import Confusion
from roadaware.analysis.behaviour_graphs import BehaviourGraph
from roadaware.analysis.scene_cases import HeardMap
from roadaware.analysis.worst_tubes import Strip
from roadaware.metrics.metric_state import VARIANTS, SceneResult
from roadaware.reports.bars import Difference, Estimate, plot_estimates, plot_forest
from roadaware.reports.behaviour_graph import map_gallery, plot_behaviour, plot_confusion, plot_success
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.drawing import plot_strips
from roadaware.reports.page import (
    Block,
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
    format_fact,
    format_interval,
    format_name,
    format_number,
    format_row_interval,
    format_signed,
)

_DIGITS = 4
_MOST_DRAWN, _MOST_SAID, _MOST_DIFFERENCES = 40, 4, 40
_AS = "As fractions"
_READING = (
    "on the same videos. Bars are 95 % intervals over videos; a difference is called better or worse where "
    "its interval excludes zero."
)


def build_scene_section(
    result: SceneResult,
    *,
    title: str,
    model: str = "the model",
    items: str = "items",
    labelled: str = "class",
    about: Mapping[str, str] | None = None,
    pictures: Sequence[Picture] = (),
) -> Section:
    """One evaluation of a task on scenes.

    Args:
        result: what `evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        items: what slices are made of, in words.
        labelled: what a class is of.
        about: what else the reader should know, such as ground truth, digests, resamples.
        pictures: drawn after the tables, besides those of classes.
    """
    named = [(format_name(name), format_fact(value)) for name, value in result.facts.items()]
    facts = [*(about or {}).items(), *named, ("metrics", format_config(result.config))]
    blocks: list[Block] = [Facts(tuple(facts)), build_scene_metric_table(result)]
    blocks += [build_slice_table(result, items)] if result.groups else []
    blocks += [Note(note, "doubt") for note in result.notes]
    drawn = [*plot_classes(result, labelled), *pictures]
    blocks += [Pictures(tuple(drawn), "Pictures")] if drawn else []
    blocks += build_class_blocks(result, labelled)
    blocks.append(build_config_table(result.config, "Metric configuration"))
    return Section(title, tuple(_says(result, model)), tuple(blocks))


def build_scene_comparison_section(found: Any, *, title: str | None = None) -> Section:
    """Two models on the same scenes: the difference of every metric, and of the classes.

    Args:
        found: what `roadaware.analysis.compare.compare_scenes` gave.
        title: heading; the names of the two where not given.
    """
    first, second = found.names
    rows = list(found.table.iter_rows(named=True))
    whole = [row for row in rows if row["label"] is None]
    drawn = [
        Difference(
            *(row["metric"], row["difference"], None, None, row["low_video"], row["high_video"]),
            *(row["verdict"], (row.get("caution_video"),)),
        )
        for row in whole
        if row["verdict"] != "undefined"
    ]
    blocks: list[Block] = [Pictures((plot_forest(drawn, first, second, reading=_READING),))] if drawn else []
    note = f"{found.draws:,} resamples of videos shared by both models."
    if found.beside:
        blocks.append(
            Facts(tuple((format_name(name), format_fact(value)) for name, value in found.beside.items()))
        )
    blocks.append(_differences(whole, found.names, "Differences", note, found.baselines))
    apart = [row for row in rows if row["label"] is not None and row["verdict"] in ("better", "worse")]
    if apart:
        caption = "The others are not different."
        held = apart[:_MOST_DIFFERENCES]
        blocks.append(_differences(held, found.names, "Classes in which they differ", caption))
    record: dict[str, list[str]] = {}
    for row in whole:
        if _plain(row["metric"]):
            record.setdefault(row["verdict"], []).append(row["metric"])
    says = tuple(
        capitalize_text(f"{first} is {verdict}: {', '.join(names)}.") for verdict, names in record.items()
    )
    return Section(title or capitalize_text(f"{first} against {second}"), says, tuple(blocks))


def build_scene_metric_table(result: SceneResult) -> Table:
    """Every metric of the whole set, with its interval, beside the trivial answers."""
    rows: list[tuple[TableCell, ...]] = [
        (
            row["metric"],
            _cell(row),
            *(format_number(values.get(row["metric"]), _DIGITS) for values in result.baselines.values()),
            format_count(row["n"]),
        )
        for row in result.whole()
    ]
    head = ("metric", "value", *result.baselines, "n")
    caption = build_caption(rows, _AS, "videos")
    if result.baselines:
        caption += f" What {' and '.join(result.baselines)} would score stands beside."
    counted = (-1, *(len(head) - 1,) * (len(head) - 2), -1)
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Metrics", caption, counted)


def build_slice_table(result: SceneResult, items: str) -> Table:
    """The metrics of each slice."""
    names = [row["metric"] for row in result.whole() if _plain(row["metric"])]
    sizes = {row["group"]: row["items"] for row in result.counts.iter_rows(named=True)}
    rows = []
    for group in result.groups:
        held = {row["metric"]: row for row in result.of_group(group).iter_rows(named=True)}
        cells = (_cell(held[name]) if name in held else "–" for name in names)
        rows.append((group, format_count(sizes[group]), *cells))
    head = ("slice", items, *names)
    counted = (-1, -1, *(1,) * len(names))
    caption = build_caption(rows, _AS, "videos")
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Slices", caption, counted)


def build_class_blocks(result: SceneResult, labelled: str) -> list[Block]:
    """The metrics of each class as a table, and which classes have none."""
    held = result.classes()
    metrics = [
        metric for metric in dict.fromkeys(m for rows in held.values() for m in rows) if _plain(metric)
    ]
    rows, absent = [], []
    for label, found in held.items():
        if not any(row["valid"] for row in found.values()):
            absent.append(label)
            continue
        cells = (_cell(found[metric]) if metric in found else "–" for metric in metrics)
        rows.append((label, format_count(next(iter(found.values()))["n"]), *cells))
    blocks: list[Block] = []
    if rows:
        head = (labelled, "n", *metrics)
        align = "l" + "r" * (len(head) - 1)
        caption = build_caption(rows, _AS, "videos")
        counted = (-1, -1, *(1,) * len(metrics))
        blocks.append(Table(head, tuple(rows), align, capitalize_text(f"by {labelled}"), caption, counted))
    if absent:
        blocks.append(Note(f"Undefined: {', '.join(absent)}.", "mute"))
    return blocks


def plot_classes(result: SceneResult, labelled: str) -> list[Picture]:
    """One dot per class with its interval, the best first, in the first metric that classes have."""
    held = result.classes()
    metric = next((metric for rows in held.values() for metric in rows), None)
    rows = [(label, found[metric]) for label, found in held.items() if metric in found]
    known = [(label, row) for label, row in rows if row["valid"]]
    if metric is None or len(known) < 2:
        return []
    most = sorted(known, key=lambda pair: -pair[1]["n"])[:_MOST_DRAWN]
    drawn = [
        Estimate(
            *(label, row["value"], row["low_video"], row["high_video"], row["n"]),
            caution=row.get("caution_video"),
        )
        for label, row in sorted(most, key=lambda pair: -pair[1]["value"])
    ]
    left = f", the {len(drawn)} with the most truth" if len(drawn) < len(known) else ""
    return [
        plot_estimates(
            drawn, metric, title=f"{metric} of each {labelled}{left}", counted="truth", percent=False
        )
    ]


def _plain(metric: str) -> bool:
    """Whether a metric is more than a second reading of another."""
    return not metric.endswith(VARIANTS)


def _says(result: SceneResult, model: str) -> list[str]:
    """The first metrics in a sentence, and what trivial answers score in the first of them."""
    rows = [row for row in result.whole() if row["valid"]]
    if not rows:
        return []
    lines = [f"{row['metric']} {_in_words(row)}" for row in rows[:_MOST_SAID]]
    said = [capitalize_text(f"{model}: {', '.join(lines)}.")]
    for row in rows[:1]:
        trivial = {
            name: values[row["metric"]]
            for name, values in result.baselines.items()
            if values.get(row["metric"]) is not None
        }
        if trivial:
            listed = ", ".join(f"{name} {format_number(value)}" for name, value in trivial.items())
            said.append(f"Without a model, {row['metric']} is: {listed}.")
    return said


def _in_words(row: Mapping[str, Any]) -> str:
    if row["low_video"] is None:
        return format_number(row["value"])
    return f"{format_number(row['value'])} ({format_row_interval(row, 'video')})"


def _cell(row: Mapping[str, Any]) -> TableCell:
    if row["value"] is None:
        return Mark("undefined", "mute", row["reason"] or "")
    shown = format_number(row["value"], _DIGITS)
    if row["low_video"] is None:
        return shown
    return Mark(shown, "", format_row_interval(row, "video"))


def _differences(
    rows: Sequence[Mapping[str, Any]],
    names: tuple[str, str],
    title: str,
    caption: str,
    baselines: Mapping[str, Mapping[str, float | None]] | None = None,
) -> Table:
    held = baselines or {}
    head = ("metric", *names, *held, "difference", "interval over videos", f"{names[0]} is")
    align = "l" + "r" * (len(head) - 2) + "l"
    cells = tuple(_build_comparison_row(row, list(held.values())) for row in rows)
    return Table(head, cells, align, title, caption)


def _build_comparison_row(
    row: Mapping[str, Any], trivial: Sequence[Mapping[str, float | None]]
) -> tuple[TableCell, ...]:
    tone = {"better": "good", "worse": "bad"}.get(row["verdict"], "")
    low, high = row["low_video"], row["high_video"]
    ends = format_interval(low, high, _DIGITS, row.get("caution_video"))
    values = [row["a"], row["b"], *(each.get(row["metric"]) for each in trivial)]
    shown = (*(format_number(value, _DIGITS) for value in values), format_signed(row["difference"], _DIGITS))
    return (row["metric"], *shown, ends, Mark(row["verdict"], tone))


def check_scene_cases(held: dict[str, Any]) -> dict[str, Any]:
    """What `plot_scene_cases` draws, as it was read from a file.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: if something is missing or of a wrong kind.
    """
    if held.get("confusion", {}).get("labels"):
        Confusion.from_dict(held["confusion"])
    for kind, parse in (
        ("graphs", BehaviourGraph.from_dict),
        ("strips", Strip.from_dict),
        ("worst_maps", HeardMap.from_dict),
        ("best_maps", HeardMap.from_dict),
    ):
        for each in held.get(kind, []):
            parse(each)
    for curve in dict(held.get("success") or {}).values():
        list(map(float, curve))
    return held


def plot_scene_cases(held: Mapping[str, Any], name: str) -> Iterator[Picture]:
    """The images of an evaluation, whichever of them its task has.

    Args:
        held: what `analysis.scene_cases.collect_figure_data` gave.
        name: of the model.
    """
    if held.get("confusion", {}).get("labels"):
        yield plot_confusion(Confusion.from_dict(held["confusion"]))
    for graph in held.get("graphs", []):
        yield plot_behaviour(BehaviourGraph.from_dict(graph))
    strips = [Strip.from_dict(strip) for strip in held.get("strips", [])]
    if strips:
        yield plot_strips(strips, title="Sentences, the worst and the best")
    if held.get("success"):
        curves = dict(held["success"])
        yield plot_success(curves.pop("thresholds"), {name: curves.pop("claims"), **curves}, name)
    for kind in ("worst", "best"):
        maps = [HeardMap.from_dict(each) for each in held.get(f"{kind}_maps", [])]
        if maps:
            title = f"Sounds that were localised {kind}"
            yield map_gallery(maps, title=title, threshold=held.get("threshold"))
