"""Evaluation section of a task on scenes: metrics, slices, classes, figures, the behaviour graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.analysis.behaviours import Arc, BehaviourGraph, Confusion
from roadaware.analysis.scene_cases import HeardMap
from roadaware.analysis.worst_tubes import Strip
from roadaware.metrics.metric_state import VARIANTS, SceneResult
from roadaware.reports.bars import Difference, Estimate, plot_estimates, plot_forest
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.drawing import plot_strips
from roadaware.reports.page import (
    BLUE,
    DASHES,
    FULL,
    GREEN,
    GREY,
    HALF,
    INK,
    PALE,
    SERIES,
    VERMILLION,
    Block,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    build_caption,
    create_canvas,
    set_style,
)
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_fact,
    format_interval,
    format_name,
    format_number,
    format_percent,
    format_row_interval,
    format_signed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ROW_IN, _HEAD_IN, _FOOT_IN, _PAD = 0.2, 0.4, 0.5, 0.7
_BAR = 0.72
_FIRST_LETTERS = 26


def plot_behaviour(graph: BehaviourGraph) -> Picture:
    """Plot one video: a lane for each person with its relations, ground truth above predictions.

    Args:
        graph: lanes and arcs.
    """
    rows, tops, heights = _compute_layout(graph)
    total = sum(heights) or 1.0
    with set_style():
        figure, axes = create_canvas(FULL, _HEAD_IN + _FOOT_IN + _ROW_IN * total)
        for place, lane in enumerate(graph.lanes):
            axes.axhspan(
                tops[place], tops[place] + heights[place], color=PALE, alpha=0.28 if place % 2 else 0
            )
            middle = tops[place] + _PAD / 2
            axes.plot([lane.start, lane.end], [middle, middle], color=GREY, linewidth=1.1, alpha=0.7)
        for arc, row in zip(graph.arcs, rows, strict=True):
            _bar(axes, arc, row, tops)
        low = min([lane.start for lane in graph.lanes] + [arc.start for arc in graph.arcs], default=0)
        high = max([lane.end for lane in graph.lanes] + [arc.end for arc in graph.arcs], default=1)
        axes.set(xlim=(low, max(high, low + 1)), ylim=(total, 0), xlabel="frame")
        names = [f"{_letter(k)} · {clip_label(lane.name, 22)}" for k, lane in enumerate(graph.lanes)]
        axes.set_yticks([top + _PAD / 2 for top in tops], names)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _key(figure, graph)
    # What is seen, in words: every relation, as far as a reader can take them in.
    lines = [
        f"{graph.lanes[arc.subject].name} {arc.predicate} {graph.lanes[arc.object].name} "
        f"(frames {arc.start} to {arc.end})"
        for arc in graph.arcs
        if not arc.predicted
    ]
    predictions = [arc for arc in graph.arcs if arc.predicted]
    right = sum(arc.found is True for arc in predictions)
    judged = f", {right} of them right" if any(arc.found is not None for arc in predictions) else ""
    return Picture(
        f"Who does what to whom: {graph.says}",
        (
            "A lane for everybody, a bar for each relation in the lane of who does it, an arrow to whom. True: "
            f"{'; '.join(lines) or 'nothing'}. Predictions that are shown, the best: {len(predictions)}{judged}."
        ),
        figure,
    )


def _compute_layout(graph: BehaviourGraph) -> tuple[list[float], list[float], list[float]]:
    """Where each arc lies (its middle), where each lane begins, and how high it is, in rows."""
    slots: list[list[int]] = [[] for _ in graph.lanes]
    chosen = []
    for predicted in (False, True):
        first = [len(ends) for ends in slots]
        for k, arc in enumerate(graph.arcs):
            if arc.predicted is not predicted:
                continue
            ends = slots[arc.subject]
            free = (s for s in range(first[arc.subject], len(ends)) if ends[s] <= arc.start)
            slot = next(free, len(ends))
            if slot == len(ends):
                ends.append(arc.end)
            ends[slot] = arc.end
            chosen.append((k, slot))
    heights = [_PAD + len(ends) + 0.15 for ends in slots]
    tops = [sum(heights[:place]) for place in range(len(heights))]
    rows = [0.0] * len(graph.arcs)
    for k, slot in chosen:
        rows[k] = tops[graph.arcs[k].subject] + _PAD + slot + 0.45
    return rows, tops, heights


def _bar(axes: Axes, arc: Arc, row: float, tops: Sequence[float]) -> None:
    """One relation: a bar over its frames, filled where ground truth and prediction agree, and a line to its object."""
    from matplotlib.patches import Rectangle

    tone, filled, style = _look(arc)
    axes.add_patch(
        Rectangle(
            (arc.start, row - _BAR / 2),
            max(arc.end - arc.start, 1),
            _BAR,
            facecolor=tone if filled else "white",
            alpha=0.9 if filled else 1.0,
            edgecolor=tone,
            linewidth=1.1,
            linestyle=style,
            clip_on=True,
        )
    )
    to = tops[arc.object] + _PAD / 2
    axes.annotate(
        "",
        (arc.start, to),
        (arc.start, row),
        arrowprops={"arrowstyle": "->", "color": tone, "linewidth": 0.7, "alpha": 0.55, "shrinkA": 0},
    )
    score = "" if arc.score is None else f" {arc.score:.2f}"
    says = f"{clip_label(arc.predicate, 22)} \N{RIGHTWARDS ARROW} {_letter(arc.object)}{score}"
    behind: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.72, "pad": 0.6}
    axes.annotate(
        says, (arc.start, row), (4, 0), textcoords="offset points", va="center", fontsize=7, color=INK,
        bbox=behind if filled else None, annotation_clip=True,
    )  # fmt: skip


def _look(arc: Arc) -> tuple[str, bool, Any]:
    """Colour, whether it is filled, and the line of a bar."""
    if not arc.predicted:
        return GREEN, arc.found is not False, "-"
    if arc.found is None:
        return BLUE, False, "-"
    return (BLUE, True, "-") if arc.found else (VERMILLION, False, (0, (3, 1.5)))


def _key(figure: Any, graph: BehaviourGraph) -> None:
    from matplotlib.patches import Patch

    names = {
        (False, True): "true, found",
        (False, False): "true, missed",
        (False, None): "true",
        (True, True): "predicted, right",
        (True, False): "predicted, wrong",
        (True, None): "predicted",
    }
    handles = []
    for predicted, found in dict.fromkeys((arc.predicted, arc.found) for arc in graph.arcs):
        tone, filled, style = _look(Arc(0, 0, "", 0, 0, predicted, found))
        face = tone if filled else "white"
        handles.append(Patch(facecolor=face, edgecolor=tone, linestyle=style, label=names[predicted, found]))
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), handlelength=1.6)


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < _FIRST_LETTERS else str(place + 1)


# The confusion of actions as a heat map: a row for what persons do, a column for what is predicted.

_CONFUSION_ROW_IN, _CONFUSION_HEAD_IN, _CONFUSION_FOOT_IN = 0.25, 0.35, 1.45
_WRITTEN = 0.045
_DARK = 0.55
_MOST_TOLD = 5


def plot_confusion(found: Confusion) -> Picture:
    """Shares of what is predicted of the persons of each action.

    Args:
        found: at least one action.
    """
    rows, columns = found.shares.shape
    with set_style():
        figure, axes = create_canvas(FULL, _CONFUSION_HEAD_IN + _CONFUSION_FOOT_IN + _CONFUSION_ROW_IN * rows)
        edges_x, edges_y = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
        axes.pcolormesh(
            edges_x, edges_y, found.shares, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.6
        )
        # Small shares would fill the figure with numbers that nobody reads; their colour is enough.
        for row, column in zip(*np.nonzero(found.shares >= _WRITTEN), strict=True):
            share = found.shares[row, column]
            # Dark cells of the colour map need light figures.
            tone = "white" if share > _DARK else INK
            axes.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=6.5, color=tone)
        for line in (columns - 2.5, columns - 1.5):
            axes.axvline(line, color=GREY, linewidth=0.8)
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
        axes.set_yticks(
            range(rows),
            [
                f"{clip_label(n, 24)} ({format_count(held)})"
                for n, held in zip(found.labels, found.n, strict=True)
            ],
        )
        names = [clip_label(name, 24) for name in found.columns]
        axes.set_xticks(range(columns), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set(xlabel="what is predicted", ylabel="what is true")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    # How to read it, and the largest confusions in words.
    off = [
        (share, found.labels[row], found.columns[column])
        for (row, column), share in np.ndenumerate(found.shares)
        if row != column and column < len(found.labels) and share > 0
    ]
    lines = [
        f"{true} taken for {predicted} ({format_percent(share, 1)})"
        for share, true, predicted in sorted(off, reverse=True)[:_MOST_TOLD]
    ]
    return Picture(
        "Confusion of actions",
        (
            "Each row shares out the true boxes of an action, in per cent: of a box with n true actions, the n "
            "best-scored predictions on the box that overlaps it most, by at least one half. The diagonal is right; "
            "`nothing` is what no prediction speaks of. Behind each name stands how many true boxes it has. "
            f"Largest: {'; '.join(lines) or 'none'}."
        ),
        figure,
    )


# Images of localised sounds: maps over the outline of the image, and the success curve.

_COLUMNS, _MAPS_HEAD_IN, _GAP_IN, _MAPS_FOOT_IN = 4, 0.42, 0.1, 0.04
_PREDICTED = 0.5


def map_gallery(maps: Sequence[HeardMap], *, title: str, threshold: float | None = _PREDICTED) -> Picture:
    """A panel for each sound: the map in grey tones, the ground-truth boxes, and the edge of what is predicted.

    Args:
        maps: in drawing order, at least one.
        title: what they have in common.
        threshold: of the scaled map, from which on a cell is predicted; None draws no edge.
    """
    width = (FULL - _GAP_IN * (_COLUMNS - 1)) / _COLUMNS
    height = width * max(
        (min(1.4, max(0.5, each.size[1] / each.size[0])) if each.shaped else 0.75) for each in maps
    )
    rows = math.ceil(len(maps) / _COLUMNS)
    total = rows * (height + _MAPS_HEAD_IN) + _MAPS_FOOT_IN
    with set_style():
        figure, axes = create_canvas(FULL, total)
        figure.delaxes(axes)
        figure.set_layout_engine("none")
        for place, each in enumerate(maps):
            left = (place % _COLUMNS) * (width + _GAP_IN)
            bottom = total - (place // _COLUMNS + 1) * (height + _MAPS_HEAD_IN)
            where = (left / FULL, bottom / total, width / FULL, height / total)
            _panel(figure.add_axes(where), each, threshold)
    text = " ".join(f"{each.says}." for each in maps)
    edge = "the dashed line the edge of what is predicted, " if threshold is not None else ""
    return Picture(
        title,
        f"The darker, the louder the map; {edge}green boxes where the sound comes from. {text}",
        figure,
    )


def plot_success(thresholds: Sequence[float], curves: Mapping[str, Sequence[float]], model: str) -> Picture:
    """The share of sounds found, over the consensus IoU that is asked for.

    Args:
        thresholds: (t,) of consensus IoU.
        curves: name to its (t,) shares; the model first, then trivial answers.
        model: its name.
    """
    with set_style():
        figure, axes = create_canvas(HALF * 1.25, 3.2)
        for place, (name, shares) in enumerate(curves.items()):
            axes.plot(
                thresholds,
                shares,
                color=SERIES[place % len(SERIES)],
                linestyle=DASHES[place % len(DASHES)],
                label=clip_label(name, 40),
            )
        axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="consensus IoU that is asked for")
        axes.set_ylabel("share of sounds that reach it")
        axes.grid(visible=True)
        axes.legend(loc="upper right")
    half = min(range(len(thresholds)), key=lambda k: abs(thresholds[k] - 0.5))
    text = ", ".join(f"{name} {format_number(float(shares[half]))}" for name, shares in curves.items())
    caption = (
        f"How many sounds are found at each consensus IoU; the area below is success_auc. At 0.5: {text}."
    )
    return Picture(f"Success of {model} beside answers that hear nothing", caption, figure)


def _panel(axes: Axes, each: HeardMap, threshold: float | None) -> None:
    from matplotlib.patches import Rectangle

    wide, high = each.size
    axes.set_facecolor("white")
    if each.map.size:
        extent = (0.0, wide, high, 0.0)
        axes.imshow(each.map, cmap="Greys", vmin=0, vmax=1.25, extent=extent, aspect="auto", alpha=1.0)
        if threshold is not None and min(each.map.shape) > 1 and np.ptp(each.map) > 0:
            rows, columns = each.map.shape
            x, y = (np.arange(columns) + 0.5) * wide / columns, (np.arange(rows) + 0.5) * high / rows
            axes.contour(
                x, y, each.map, levels=[threshold], colors=[VERMILLION], linewidths=1.1, linestyles="--"
            )
    else:
        axes.text(0.5, 0.5, "no map", transform=axes.transAxes, ha="center", va="center", color=GREY)
    for x1, y1, x2, y2 in each.boxes:
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=GREEN, linewidth=1.6))
    axes.set(xlim=(0, wide), ylim=(high, 0), xticks=[], yticks=[])
    first, _, rest = each.says.partition(": ")
    axes.set_title(f"{clip_label(first, 34)}\n{clip_label(rest, 34)}", loc="left", fontsize=7.5, pad=3)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_edgecolor(PALE)


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
    note = f"{found.resamples:,} resamples of videos shared by both models."
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
        yield plot_success(curves.pop("thresholds"), {name: curves.pop("predictions"), **curves}, name)
    for kind in ("worst", "best"):
        maps = [HeardMap.from_dict(each) for each in held.get(f"{kind}_maps", [])]
        if maps:
            title = f"Sounds that were localised {kind}"
            yield map_gallery(maps, title=title, threshold=held.get("threshold"))
