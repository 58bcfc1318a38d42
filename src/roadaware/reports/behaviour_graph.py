"""The behaviour graph of a video over time: persons as lanes, relations as bars with an arrow to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.behaviour_graphs import Arc, BehaviourGraph
from roadaware.reports.picture import BLUE, FULL, GREEN, GREY, INK, PALE, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_IN, _HEAD_IN, _FOOT_IN, _PAD = 0.2, 0.4, 0.5, 0.7
_BAR = 0.72
_FIRST_LETTERS = 26


def behaviour_picture(graph: BehaviourGraph) -> Picture:
    """One video: a lane for everybody, in it what they do to whom, true above claimed.

    Args:
        graph: lanes and arcs.
    """
    rows, tops, heights = _placed(graph)
    total = sum(heights) or 1.0
    with styled():
        figure, axes = canvas(FULL, _HEAD_IN + _FOOT_IN + _ROW_IN * total)
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
        names = [f"{_letter(k)} · {short(lane.name, 22)}" for k, lane in enumerate(graph.lanes)]
        axes.set_yticks([top + _PAD / 2 for top in tops], names)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _key(figure, graph)
    return Picture(f"Who does what to whom: {graph.says}", _caption(graph), figure)


def _placed(graph: BehaviourGraph) -> tuple[list[float], list[float], list[float]]:
    """Where each arc lies (its middle), where each lane begins, and how high it is, in rows."""
    slots: list[list[int]] = [[] for _ in graph.lanes]
    chosen = []
    for claimed in (False, True):
        first = [len(ends) for ends in slots]
        for k, arc in enumerate(graph.arcs):
            if arc.claimed is not claimed:
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
    """One relation: a bar over its frames, filled where truth and claim agree, and a line to its object."""
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
    says = f"{short(arc.predicate, 22)} \N{RIGHTWARDS ARROW} {_letter(arc.object)}{score}"
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
        (True, True): "claimed, right",
        (True, False): "claimed, wrong",
        (True, None): "claimed",
    }
    handles = []
    for claimed, found in dict.fromkeys((arc.claimed, arc.found) for arc in graph.arcs):
        tone, filled, style = _look(Arc(0, 0, "", 0, 0, claimed, found))
        face = tone if filled else "white"
        handles.append(Patch(facecolor=face, edgecolor=tone, linestyle=style, label=names[claimed, found]))
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), handlelength=1.6)


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < _FIRST_LETTERS else str(place + 1)


def _caption(graph: BehaviourGraph) -> str:
    """What is seen, in words: every relation, as far as a reader can take them in."""
    told = [
        f"{graph.lanes[arc.subject].name} {arc.predicate} {graph.lanes[arc.object].name} "
        f"(frames {arc.start} to {arc.end})"
        for arc in graph.arcs
        if not arc.claimed
    ]
    claims = [arc for arc in graph.arcs if arc.claimed]
    right = sum(arc.found is True for arc in claims)
    judged = f", {right} of them right" if any(arc.found is not None for arc in claims) else ""
    return (
        "A lane for everybody, a bar for each relation in the lane of who does it, an arrow to whom. True: "
        f"{'; '.join(told) or 'nothing'}. Claims that are shown, the best: {len(claims)}{judged}."
    )
