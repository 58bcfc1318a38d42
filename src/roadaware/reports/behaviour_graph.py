"""The behaviour graph of a video over time: persons as lanes, relations as bars with an arrow to whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.analysis.action_confusion import Confusion
from roadaware.analysis.behaviour_graphs import Arc, BehaviourGraph
from roadaware.analysis.scene_cases import HeardMap
from roadaware.reports.picture import (
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
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import clip_label, format_count, format_number, format_percent

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
            _bar(axes, arc, row, graph, tops)
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
        if not arc.claimed
    ]
    predictions = [arc for arc in graph.arcs if arc.claimed]
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
            if arc.claimed is not predicted:
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


def _bar(axes: Axes, arc: Arc, row: float, graph: BehaviourGraph, tops: Sequence[float]) -> None:
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
    if not arc.claimed:
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
        (True, None): "claimed",
    }
    handles = []
    for predicted, found in dict.fromkeys((arc.claimed, arc.found) for arc in graph.arcs):
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
_CLAIMED = 0.5


def map_gallery(maps: Sequence[HeardMap], *, title: str, threshold: float | None = _CLAIMED) -> Picture:
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
