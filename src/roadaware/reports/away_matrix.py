"""The matrix of training and test sets: heat maps of a metric, and the table with every interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.protocols.away.results import HIGHER
from roadaware.reports.away_cells import NAMES, PLAIN, Found, Study, better, mean
from roadaware.reports.page import MOST_CHOICES, Cell, Filter, Filterable, Mark, Table
from roadaware.reports.picture import BLUE, FULL, GREY, INK, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import interval, number, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

MOST_COLUMNS = 16
"""Test sets beside each other in one row of maps."""
IN_TABLE = ("auc", "average_precision", "f1", "ece", "mce")
_CHANCE = 0.5
_READABLE = 0.22
"""Above this luminance dark numbers have more contrast than white ones."""
_MEAN = "mean of all models"
ALL, OTHERS = "all together", "all others together"
"""Rows of ensembles: over all training sets, and over all but the one that is tested on."""


def heat_maps(study: Study, metric: str) -> Picture | None:
    """A map for each model, and one of their mean: rows are training sets, columns test sets.

    Args:
        study: what was found.
        metric: its name.

    Returns:
        nothing where no cell has a value.
    """
    if metric not in study.metrics or not study.learnt:
        return None
    rows = rows_of(study)
    maps = {model: _values(study, model, metric, rows) for model in study.models}
    if len(maps) > 1:
        maps = {_MEAN: _mean_map(list(maps.values())), **maps}
    across = max(1, min(len(maps), MOST_COLUMNS // max(1, len(study.tested)), 4))
    down = -(-len(maps) // across)
    known = np.concatenate([np.ravel(values) for values in maps.values()])
    known = known[~np.isnan(known)]
    with styled():
        height_in = 0.24 * len(rows) + 0.5
        figure, first = canvas(FULL, 0.5 + height_in * down)
        figure.delaxes(first)
        panels = list(figure.subplots(down, across, sharey=True, sharex=True, squeeze=False).flat)
        for axes, (model, values) in zip(panels, maps.items(), strict=False):
            _map(axes, values, _tones(metric), _ends(metric, known))
            _marked(axes, study, values, rows, None if model == _MEAN else (model, metric))
            axes.set_title(short(model, 30), fontsize=9)
        for axes in panels[len(maps) :]:
            figure.delaxes(axes)
        figure.supylabel("trained on", fontsize=8.5)
        figure.supxlabel("tested on, by its letter", fontsize=8.5)
    caption = (
        f"{NAMES[metric]} ({better(metric)}), mean over seeds. Columns are test sets: {_lettered(study)}. "
        "Framed cells are at home, a dot stands where nothing was run and a cross where it failed. "
        f"{_told(study, metric)}"
    )
    return Picture(f"{NAMES[metric]} by training set and test set", caption, figure)


def matrix_table(study: Study) -> Filterable | Table | None:
    """Every place of the matrix, with intervals; narrowed down by buttons.

    Args:
        study: what was found.

    Returns:
        nothing where nothing was run; without buttons where there are too many models or test sets.
    """
    metrics = [metric for metric in IN_TABLE if metric in study.metrics]
    rows: list[tuple[Cell, ...]] = []
    places: list[tuple[int, int]] = []
    for at, model in enumerate(study.models):
        for trained in rows_of(study):
            for to, tested in enumerate(study.tested):
                found = [in_row(study, model, trained, tested, metric) for metric in metrics]
                if any(one is not None for one in found):
                    rows.append(_row(study, (model, trained, tested), found))
                    places.append((at, to))
    if not rows:
        return None
    seeds = sorted({one.seeds + one.failed for one in _all(study, metrics)})
    caption = (
        f"Means over {' or '.join(map(str, seeds))} seeds; below each its 95 % interval over pedestrians, "
        f"the mean of those of the seeds. ECE and MCE in adaptive bins."
    )
    head = ("model", "trained on", "tested on", *(NAMES[metric] for metric in metrics))
    align = "lll" + "r" * len(metrics)
    table = Table(head, tuple(rows), align, "Every cell", caption)
    if max(len(study.models), len(study.tested)) > MOST_CHOICES:
        return table
    filters = (
        Filter("model", study.models, tuple((at,) for at, _ in places)),
        Filter("tested on", study.tested, tuple((to,) for _, to in places)),
    )
    return Filterable(table, filters)


def rows_of(study: Study) -> tuple[str, ...]:
    """The rows of the matrix: single training sets, pre-training, and the two kinds of ensembles.

    Args:
        study: what was found.
    """
    places = study.results.table.select("trained_on", "tested_on").unique().iter_rows()
    inside = {tested in study.members(name) for name, tested in places if name in study.joined}
    together = [row for row, home in ((ALL, True), (OTHERS, False)) if home in inside]
    return (*study.learnt, *study.onward, *together)


def in_row(study: Study, model: str, row: str, tested: str, metric: str) -> Found | None:
    """A cell of the matrix; the rows of ensembles hold another ensemble for each test set.

    Args:
        study: what was found.
        model: its name.
        row: of `rows_of`.
        tested: a domain.
        metric: its name.
    """
    if row not in (ALL, OTHERS):
        return study.at(model, row, tested, metric)
    found = study.ensemble(model, tested, metric, home=row == ALL)
    return None if found is None else found[1]


def valued(found: Found | None, digits: int = 3) -> Cell:
    """A value as a cell, with its interval below; what has none says so."""
    if found is None:
        return Mark("not run", "mute")
    if found.value is None:
        return Mark("no value", "bad", f"{found.failed} failed")
    ends = interval(found.low, found.high, digits, found.caution)
    below = "" if ends == "–" else ends
    if found.failed:
        below = f"{below}{'; ' if below else ''}{found.failed} failed"
    return Mark(number(found.value, digits), "", below)


def _row(study: Study, place: tuple[str, str, str], found: Sequence[Found | None]) -> tuple[Cell, ...]:
    model, trained, tested = place
    called = row_name(study, trained)
    where: Cell = Mark(called, "fair") if trained == tested else called
    return (model, where, tested, *map(valued, found))


def _all(study: Study, metrics: Sequence[str]) -> list[Found]:
    places = [
        study.at(model, trained, tested, metric)
        for model in study.models
        for trained in study.learnt
        for tested in study.tested
        for metric in metrics
    ]
    return [found for found in places if found is not None]


def _values(study: Study, model: str, metric: str, rows: Sequence[str]) -> Floats:
    """(rows, test sets) means over seeds, NaN where there is none."""
    found = np.full((len(rows), len(study.tested)), np.nan)
    for row, trained in enumerate(rows):
        for column, tested in enumerate(study.tested):
            one = in_row(study, model, trained, tested, metric)
            if one is not None and one.value is not None:
                found[row, column] = one.value
    return found


def _mean_map(maps: Sequence[Floats]) -> Floats:
    """The mean where every model has a value, NaN elsewhere."""
    mean_map: Floats = np.mean(np.stack(maps), axis=0)
    return mean_map


def _tones(metric: str) -> Colormap:
    """From white to blue, or for errors to red; AUC below chance is red."""
    from matplotlib.colors import LinearSegmentedColormap

    if metric == "auc":
        return LinearSegmentedColormap.from_list("around chance", [VERMILLION, "#ffffff", BLUE])
    return LinearSegmentedColormap.from_list("more", ["#ffffff", BLUE if metric in HIGHER else VERMILLION])


def _ends(metric: str, known: Floats) -> tuple[float, float]:
    if metric == "auc":
        reach = max(0.1, float(np.abs(known - _CHANCE).max(initial=0.0)))
        return _CHANCE - reach, _CHANCE + reach
    return 0.0, max(0.05, float(known.max(initial=0.0)))


def _map(axes: Axes, values: Floats, tones: Colormap, ends: tuple[float, float]) -> None:
    """Cells coloured by value, each with its number in a tone that can be read on it."""
    axes.pcolormesh(
        values, cmap=tones, vmin=ends[0], vmax=ends[1], edgecolors="white", linewidth=1.2, rasterized=False
    )
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        light = _luminance(tones((value - ends[0]) / (ends[1] - ends[0])))
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=8,
            color=INK if light > _READABLE else "white",
        )


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _marked(
    axes: Axes, study: Study, values: Floats, rows: Sequence[str], cell: tuple[str, str] | None
) -> None:
    """Frames around what is at home, signs where there is no value, and the names of sets."""
    from matplotlib.patches import Rectangle

    for row, trained in enumerate(rows):
        for column, tested in enumerate(study.tested):
            if trained == tested:
                corner = (column + 0.04, row + 0.04)
                axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=INK, linewidth=1.4))
            if np.isnan(values[row, column]):
                failed = cell and in_row(study, cell[0], trained, tested, cell[1]) is not None
                sign: dict[str, Any] = {"ha": "center", "va": "center", "color": GREY, "fontsize": 9}
                axes.text(column + 0.5, row + 0.5, "×" if failed else "·", **sign)
    letters = _letters(study)
    names = [f"{row_name(study, name)}   {letters.get(name, '')}".strip() for name in rows]
    axes.set_xticks(np.arange(len(study.tested)) + 0.5, [letters[name] for name in study.tested])
    axes.set_yticks(np.arange(len(rows)) + 0.5, names)
    for edge in {len(study.learnt), len(study.learnt) + len(study.onward)} - {len(rows)}:
        axes.axhline(edge, color=GREY, linewidth=1.4)
    axes.set_ylim(len(rows), 0)
    axes.tick_params(length=0, labelbottom=True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _letters(study: Study) -> dict[str, str]:
    """A letter for each test set, so that columns can be narrow."""
    return {name: _alphabetic(place) for place, name in enumerate(study.tested)}


def _alphabetic(place: int) -> str:
    """A to Z, then AA, AB, and so on."""
    first, last = divmod(place, 26)
    return (_alphabetic(first - 1) if first else "") + chr(ord("A") + last)


def _lettered(study: Study) -> str:
    return ", ".join(f"{letter} {name}" for name, letter in _letters(study).items())


def row_name(study: Study, trained: str) -> str:
    """A name of training sets that fits beside a picture: long ensembles say who is missing, or how many.

    Args:
        study: that knows the domains.
        trained: the name.
    """
    parts = study.members(trained)
    if ">" in trained or len(parts) == 1:
        return short(trained, 30)
    missing = [name for name in study.learnt if name not in parts]
    if not missing:
        return ALL
    return short(f"all but {missing[0]}" if len(missing) == 1 else " + ".join(parts), 30)


def _told(study: Study, metric: str) -> str:
    values = [
        (trained == tested, found.value)
        for model in study.models
        for trained in study.learnt
        for tested in study.tested
        if (found := study.at(model, trained, tested, metric, PLAIN)) is not None
    ]
    home, away = (mean(value for at_home, value in values if at_home == wanted) for wanted in (True, False))
    return f"Mean of all framed cells {number(home)}, of all others with one training set {number(away)}."
