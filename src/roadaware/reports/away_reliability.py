"""Reliability away from home: how often models are right against how sure they are, for each training set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.calibration import CalibrationConfig, CalibrationCore
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.results import Cell
from roadaware.reports.away_cells import PLAIN, Study
from roadaware.reports.away_matrix import row_name
from roadaware.reports.picture import (
    BLUE,
    DASHES,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Picture,
    canvas,
    styled,
)
from roadaware.reports.text import number, short, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 3
DRAWS = 300
HOME = "at home"
_TONES = (VERMILLION, GREEN, PURPLE, ORANGE, SKY)
MOST_LINES = 1 + len(_TONES)


@dataclass(frozen=True, eq=False)
class Line:
    """One training set's answers on one test set, in adaptive bins.

    Args:
        confidence: (m,) mean of each bin, rising.
        accuracy: (m,) share of right answers in each.
        ends: (m, 2) the 95 % interval of the accuracy over pedestrians, NaN where there is none.
        error: expected calibration error of the answers of all seeds together.
        overconfidence: mean confidence less accuracy.
    """

    confidence: Floats
    accuracy: Floats
    ends: Floats
    error: float
    overconfidence: float


def reliability_by_test_set(study: Study, model: str, trained_on: Sequence[str] = ()) -> Picture | None:
    """A reliability diagram for each test set, with a line for each training set.

    Args:
        study: with the scores of its cells.
        model: its name.
        trained_on: names of training sets that get a line; those of one domain, where not given.

    Returns:
        nothing where no scores are kept.

    Source: Gesnouin et al., IV 2022, Figure 6, of which the two columns are two lines here.
    """
    names = tuple(trained_on or study.learnt)[:MOST_LINES]
    found = {tested: lines(study, model, tested, names) for tested in study.tested}
    found = {tested: held for tested, held in found.items() if held}
    if not found:
        return None
    down = -(-len(found) // ACROSS)
    across = -(-len(found) // down)
    looks = _looks(names)
    least = min(float(line.accuracy.min()) for held in found.values() for line in held.values())
    low = 0.1 * np.floor(10 * min(least, 0.45))
    with styled():
        figure, first = canvas(FULL, 0.7 + 2.5 * down)
        figure.delaxes(first)
        panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for axes, (tested, held) in zip(panels, found.items(), strict=False):
            _panel(axes, tested, held, looks, low)
        for axes in panels[len(found) :]:
            figure.delaxes(axes)
        figure.supxlabel("confidence", fontsize=8.5)
        figure.supylabel("accuracy", fontsize=8.5)
        _legend(figure, study, names, looks)
    told = "; ".join(f"{tested}: {_spoken(study, tested, held)}" for tested, held in found.items())
    caption = (
        "Dotted: perfect; below it a model is surer than right. Bins are adaptive and hold the answers of "
        "all seeds, pale bars are 95 % intervals over pedestrians; the thick line learnt on what it is "
        f"tested on. ECE, and confidence less accuracy: {told}."
    )
    by = " and ".join(trained_on) if trained_on else "by training set"
    return Picture(f"Reliability of {model} on each test set, {by}", caption, figure)


def lines(study: Study, model: str, tested: str, names: Sequence[str]) -> dict[str, Line]:
    """Training set to what its models answer on a test set; without those of which no scores are kept.

    Args:
        study: with the scores of its cells.
        model: its name.
        tested: a domain.
        names: of training sets.
    """
    config = CalibrationConfig.default()
    held: dict[str, Line] = {}
    for name in names:
        states = [state for cell in _cells(study, model, name, tested) if (state := _scores(study, cell))]
        if not states:
            continue
        core = CalibrationCore.of(_pooled(states), config)
        rows = np.array([row[2:8] for row in core.bin_rows("adaptive", DRAWS, 0)], dtype=np.float64)
        if len(rows):
            point = core.once()
            ends = rows[:, 4:]
            held[name] = Line(rows[:, 0], rows[:, 1], ends, point["ece"], point["overconfidence"])
    return held


def _cells(study: Study, model: str, trained: str, tested: str) -> list[Cell]:
    key = (model, trained, tested, PLAIN)
    return [
        cell
        for cell in study.results.cells
        if (cell.model, cell.trained_on, cell.tested_on, cell.doubt) == key
    ]


def _scores(study: Study, cell: Cell) -> SampleScores | None:
    try:
        return study.results.scores(cell)
    except InputError:
        return None


def _pooled(states: Sequence[SampleScores]) -> SampleScores:
    """The answers of all seeds, as if one model had been asked that often."""
    return SampleScores(
        np.concatenate([state.scores for state in states]),
        np.concatenate([state.truth for state in states]),
        np.concatenate([state.pedestrian for state in states]),
    )


def _looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, dashes and marker of each training set, the same in all panels."""
    tones = (BLUE, *_TONES)
    return {
        name: {
            "color": tones[at % len(tones)],
            "linestyle": DASHES[at % len(DASHES)],
            "marker": MARKERS[at % len(MARKERS)],
        }
        for at, name in enumerate(names)
    }


def _panel(
    axes: Axes, tested: str, held: Mapping[str, Line], looks: Mapping[str, Mapping[str, Any]], low: float
) -> None:
    axes.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=1, linestyle=DOTTED)
    for name, line in held.items():
        home = name.rpartition(">")[2] == tested
        thick: dict[str, Any] = {"markersize": 5 if home else 3.5, "linewidth": 2.6 if home else 1.2}
        axes.vlines(line.confidence, *line.ends.T, color=looks[name]["color"], linewidth=3, alpha=0.2)
        axes.plot(line.confidence, line.accuracy, **looks[name], **thick)
    axes.set_title(short(tested, 34), fontsize=9)
    axes.set(xlim=(0.48, 1.02), ylim=(low, 1.03))
    axes.tick_params(labelbottom=True)
    axes.grid(visible=True)


def _legend(figure: Any, study: Study, names: Sequence[str], looks: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **looks[name], markersize=4, label=f"learnt on {row_name(study, name)}")
        for name in names
    ]
    figure.legend(
        handles=handles, loc="outside upper left", ncols=min(3, len(handles)), borderaxespad=0, labelcolor=INK
    )


def _spoken(study: Study, tested: str, held: Mapping[str, Line]) -> str:
    return ", ".join(
        f"{HOME if name == tested else row_name(study, name)} {number(line.error)} "
        f"({signed(line.overconfidence)})"
        for name, line in held.items()
    )
