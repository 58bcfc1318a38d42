"""Figures of a cross-dataset study: matrix, distributions over models, reliability, ranks with critical
differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.calibration import CalibrationConfig, CalibrationCore
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.cross_dataset.config import HIGHER, Cell
from roadaware.reports.bars import find_reliability_floor
from roadaware.reports.cross_dataset_cells import (
    DOUBT_NAMES,
    NAMES,
    PLAIN,
    Found,
    Study,
    compute_mean,
    describe_direction,
)
from roadaware.reports.page import (
    BLUE,
    DASHES,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    INK,
    MARKERS,
    MOST_CHOICES,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    Filter,
    Filterable,
    Mark,
    Picture,
    Table,
    TableCell,
    create_canvas,
    set_style,
)
from roadaware.reports.text import clip_label, format_interval, format_number, format_signed
from roadaware.statistics.comparison import Comparison, compare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS = 16
"""Test sets beside each other in one row of maps."""
IN_TABLE = ("auc", "average_precision", "f1", "ece", "mce")
_CHANCE = 0.5
_READABLE = 0.22
"""Above this luminance dark numbers have more contrast than white ones."""
_MEAN = "mean of all models"
ALL, OTHERS = "all together", "all others together"
"""Rows of ensembles: over all training sets, and over all but the one that is tested on."""


def plot_heat_maps(study: Study, metric: str) -> Picture | None:
    """A map for each model, and one of their mean: rows are training sets, columns test sets.

    Args:
        study: what was found.
        metric: its name.

    Returns:
        nothing where no cell has a value.
    """
    if metric not in study.metrics or not study.learnt:
        return None
    rows = list_rows(study)
    maps = {model: _values(study, model, metric, rows) for model in study.models}
    if len(maps) > 1:
        # The mean where every model has a value, NaN elsewhere.
        mean_map: Floats = np.mean(np.stack(list(maps.values())), axis=0)
        maps = {_MEAN: mean_map, **maps}
    across = max(1, min(len(maps), MOST_COLUMNS // max(1, len(study.tested)), 4))
    down = -(-len(maps) // across)
    known = np.concatenate([np.ravel(values) for values in maps.values()])
    known = known[~np.isnan(known)]
    with set_style():
        height_in = 0.24 * len(rows) + 0.5
        figure, first = create_canvas(FULL, 0.5 + height_in * down)
        figure.delaxes(first)
        panels = list(figure.subplots(down, across, sharey=True, sharex=True, squeeze=False).flat)
        for axes, (model, values) in zip(panels, maps.items(), strict=False):
            # Cells coloured by value, each with its number in a tone that can be read on it
            # From white to blue, or for errors to red; AUC below chance is red
            from matplotlib.colors import LinearSegmentedColormap

            if metric == "auc":
                tones = LinearSegmentedColormap.from_list("around chance", [VERMILLION, "#ffffff", BLUE])
            else:
                tones = LinearSegmentedColormap.from_list(
                    "more", ["#ffffff", BLUE if metric in HIGHER else VERMILLION]
                )
            if metric == "auc":
                reach = max(0.1, float(np.abs(known - _CHANCE).max(initial=0.0)))
                ends = (_CHANCE - reach, _CHANCE + reach)
            else:
                ends = (0.0, max(0.05, float(known.max(initial=0.0))))
            axes.pcolormesh(
                values,
                cmap=tones,
                vmin=ends[0],
                vmax=ends[1],
                edgecolors="white",
                linewidth=1.2,
                rasterized=False,
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
            _draw_marks(axes, study, values, rows, None if model == _MEAN else (model, metric))
            axes.set_title(clip_label(model, 30), fontsize=9)
        for axes in panels[len(maps) :]:
            figure.delaxes(axes)
        figure.supylabel("trained on", fontsize=8.5)
        figure.supxlabel("tested on, by its letter", fontsize=8.5)
    caption = (
        f"{NAMES[metric]} ({describe_direction(metric)}), mean over seeds. Columns are test sets: {_format_letters(study)}. "
        "Framed cells are at home, a dot stands where nothing was run and a cross where it failed. "
        f"{_describe_means(study, metric)}"
    )
    return Picture(f"{NAMES[metric]} by training set and test set", caption, figure)


def build_matrix_table(study: Study) -> Filterable | Table | None:
    """Every place of the matrix, with intervals; narrowed down by buttons.

    Args:
        study: what was found.

    Returns:
        nothing where nothing was run; without buttons where there are too many models or test sets.
    """
    metrics = [metric for metric in IN_TABLE if metric in study.metrics]
    rows: list[tuple[TableCell, ...]] = []
    places: list[tuple[int, int]] = []
    for at, model in enumerate(study.models):
        for trained in list_rows(study):
            for to, tested in enumerate(study.tested):
                found = [find_cell(study, model, trained, tested, metric) for metric in metrics]
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


def list_rows(study: Study) -> tuple[str, ...]:
    """The rows of the matrix: single training sets, pre-training, and the two kinds of ensembles.

    Args:
        study: what was found.
    """
    places = study.results.table.select("trained_on", "tested_on").unique().iter_rows()
    inside = {tested in study.members(name) for name, tested in places if name in study.joined}
    together = [row for row, home in ((ALL, True), (OTHERS, False)) if home in inside]
    return (*study.learnt, *study.onward, *together)


def find_cell(study: Study, model: str, row: str, tested: str, metric: str) -> Found | None:
    """A cell of the matrix; the rows of ensembles hold another ensemble for each test set.

    Args:
        study: what was found.
        model: its name.
        row: of `list_rows`.
        tested: a domain.
        metric: its name.
    """
    if row not in (ALL, OTHERS):
        return study.at(model, row, tested, metric)
    found = study.ensemble(model, tested, metric, home=row == ALL)
    return None if found is None else found[1]


def build_cell(found: Found | None, digits: int = 3) -> TableCell:
    """A value as a cell, with its interval below; what has none says so."""
    if found is None:
        return Mark("not run", "mute")
    if found.value is None:
        return Mark("no value", "bad", f"{found.failed} failed")
    ends = format_interval(found.low, found.high, digits, found.caution)
    below = "" if ends == "–" else ends
    if found.failed:
        below = f"{below}{'; ' if below else ''}{found.failed} failed"
    return Mark(format_number(found.value, digits), "", below)


def _row(study: Study, place: tuple[str, str, str], found: Sequence[Found | None]) -> tuple[TableCell, ...]:
    model, trained, tested = place
    called = format_row_name(study, trained)
    where: TableCell = Mark(called, "fair") if trained == tested else called
    return (model, where, tested, *map(build_cell, found))


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
            one = find_cell(study, model, trained, tested, metric)
            if one is not None and one.value is not None:
                found[row, column] = one.value
    return found


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _draw_marks(
    axes: Axes, study: Study, values: Floats, rows: Sequence[str], cell: tuple[str, str] | None
) -> None:
    """Frames around what is in-domain, signs where there is no value, and the names of sets."""
    from matplotlib.patches import Rectangle

    for row, trained in enumerate(rows):
        for column, tested in enumerate(study.tested):
            if trained == tested:
                corner = (column + 0.04, row + 0.04)
                axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=INK, linewidth=1.4))
            if np.isnan(values[row, column]):
                failed = cell and find_cell(study, cell[0], trained, tested, cell[1]) is not None
                sign: dict[str, Any] = {"ha": "center", "va": "center", "color": GREY, "fontsize": 9}
                axes.text(column + 0.5, row + 0.5, "×" if failed else "·", **sign)
    letters = _letters(study)
    names = [f"{format_row_name(study, name)}   {letters.get(name, '')}".strip() for name in rows]
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


def _format_letters(study: Study) -> str:
    return ", ".join(f"{letter} {name}" for name, letter in _letters(study).items())


def format_row_name(study: Study, trained: str) -> str:
    """A name of training sets that fits beside a figure: long ensembles say who is missing, or how many.

    Args:
        study: that knows the domains.
        trained: the name.
    """
    parts = study.members(trained)
    if ">" in trained or len(parts) == 1:
        return clip_label(trained, 30)
    missing = [name for name in study.learnt if name not in parts]
    if not missing:
        return ALL
    return clip_label(f"all but {missing[0]}" if len(missing) == 1 else " + ".join(parts), 30)


def _describe_means(study: Study, metric: str) -> str:
    values = [
        (trained == tested, found.value)
        for model in study.models
        for trained in study.learnt
        for tested in study.tested
        if (found := study.at(model, trained, tested, metric, PLAIN)) is not None
    ]
    home, away = (
        compute_mean(value for at_home, value in values if at_home == wanted) for wanted in (True, False)
    )
    return f"Mean of all framed cells {format_number(home)}, of all others with one training set {format_number(away)}."


# Figures of home against away: each test set, distributions over all models, and what ensembles give.

ACROSS = 3
# Quartiles and median of fewer are the values themselves, or lie between two of them.
FEWEST_FOR_A_BOX = 5
CHANCE = {"auc": 0.5, "balanced_accuracy": 0.5}
GROUND = "#f3f5f7"
_NAME, _ROW_IN = 32, 0.34


@dataclass(frozen=True)
class Kind:
    """How a kind of cells is drawn and called: colour, marker and fill all distinguish it ."""

    words: str
    brief: str
    colour: str
    marker: str
    filled: bool
    offset: float


KINDS = {
    "home": Kind("at home", "home", BLUE, "o", True, -0.24),
    "away": Kind("away: trained on another set", "away", VERMILLION, "s", False, 0.0),
    "visitors": Kind("ensemble of the other training sets", "others together", VERMILLION, "D", True, 0.24),
    "ensemble": Kind("ensemble of all training sets", "all together", GREEN, "D", True, 0.24),
}


def plot_test_sets(study: Study, metric: str) -> Picture | None:
    """Every model on every test set: in-domain, trained elsewhere, and as an ensemble over training sets.

    Args:
        study: what was found.
        metric: its name.

    Returns:
        nothing where no cell has a value.

    Source: Gesnouin et al., IV 2022, Figure 2.
    """
    if metric not in study.metrics:
        return None
    models = study.models
    with set_style():
        figure, panels = _grid(len(study.tested), 0.75 + _ROW_IN * len(models))
        seen: set[str] = set()
        for axes, tested in zip(panels, study.tested, strict=False):
            for place, model in enumerate(models):
                seen |= _marks(axes, study, (model, tested, metric), place)
            _chance(axes, metric)
            axes.set_title(clip_label(tested, 34), fontsize=9)
            _rows(axes, models)
        _share_axis(panels[: len(study.tested)])
        _legend(figure, seen)
    caption = (
        f"{NAMES[metric]} ({describe_direction(metric)}) on each test set, mean over seeds; lines at a mark are its 95 % "
        f"interval over pedestrians. {_spoken(study, metric)}"
    )
    return Picture(f"{NAMES[metric]} at home and away, test set by test set", caption, figure)


def plot_distributions(study: Study, metric: str, *, by: str = "test set") -> Picture | None:
    """How the values in-domain and those away are spread: one dot for each cell.

    Args:
        study: what was found.
        metric: its name.
        by: `test set`, where a dot is a model, or `model`, where a dot is a test set.

    Returns:
        nothing where no cell has a value.

    Source: Gesnouin et al., IV 2022, Figure 5 (by test set).
    """
    if metric not in study.metrics:
        return None
    spread = collect_spreads(study, metric, by=by)
    with set_style():
        figure, axes = create_canvas(FULL, 1.0 + 0.62 * max(1, len(spread)))
        for place, held in enumerate(spread.values()):
            for kind, values in held.items():
                _strip(axes, values, place + (-0.2 if kind == "home" else 0.2), KINDS[kind])
        _chance(axes, metric)
        _rows(axes, list(spread))
        axes.set_xlabel(f"{NAMES[metric]} ({describe_direction(metric)})")
        _legend(figure, {"home", "away"})
    medians = "; ".join(
        f"{name} {format_number(_median(held['home']))} at home and {format_number(_median(held['away']))} away"
        for name, held in spread.items()
    )
    dots = "each model, away with each training set" if by == "test set" else "each test set and training set"
    caption = (
        f"Dots are {dots}, means over seeds; the stroke is the median, the box the middle half where there "
        f"are {FEWEST_FOR_A_BOX} dots. Medians: {medians}."
    )
    return Picture(f"{NAMES[metric]} at home and away, by {by}", caption, figure)


def collect_spreads(study: Study, metric: str, *, by: str = "test set") -> dict[str, dict[str, list[float]]]:
    """Row to `home` and `away`, each the values of its cells.

    Args:
        study: what was found.
        metric: its name.
        by: `test set` or `model`.
    """
    pairs = [(model, tested) for model in study.models for tested in study.tested]
    rows = study.tested if by == "test set" else study.models
    found: dict[str, dict[str, list[float]]] = {name: {"home": [], "away": []} for name in rows}
    for model, tested in pairs:
        held = found[tested if by == "test set" else model]
        home = study.home(model, tested, metric)
        if home is not None and home.value is not None:
            held["home"].append(home.value)
        held["away"] += [one.value for _, one in study.away(model, tested, metric) if one.value is not None]
    return found


def compute_means(
    study: Study, model: str, metric: str, uncertainty: str = PLAIN, *, alike: Sequence[str] = ()
) -> dict[str, float | None]:
    """Kind of cell to its mean over the test sets that have a value of every kind that occurs.

    Args:
        study: what was found.
        model: its name.
        metric: its name.
        uncertainty: uncertainty method.
        alike: other uncertainty methods; what one of them lacks is left out, so that all have the same cells.
    """
    rows = [
        _collect_picture_row(study, (model, tested, metric), (uncertainty, *alike)) for tested in study.tested
    ]
    occurs = [kind for kind in KINDS if any(row[kind] is not None for row in rows)]
    whole = [row for row in rows if occurs and all(row[kind] is not None for kind in occurs)]
    return {kind: compute_mean(row[kind] for row in whole) for kind in KINDS}


def _collect_picture_row(
    study: Study, where: tuple[str, str, str], uncertainties: Sequence[str]
) -> dict[str, float | None]:
    """Kind of cell to its value on one test set, with the first of uncertainty methods; None where one lacks it."""
    model, tested, metric = where
    row: dict[str, float | None] = dict.fromkeys(KINDS)
    homes = [study.home(model, tested, metric, uncertainty) for uncertainty in uncertainties]
    if homes[0] is not None and all(home is not None and home.value is not None for home in homes):
        row["home"] = homes[0].value
    held = [dict(study.away(model, tested, metric, uncertainty)) for uncertainty in uncertainties]
    row["away"] = compute_mean(
        found.value for name, found in held[0].items() if all(name in one for one in held)
    )
    for kind, at_home in (("visitors", False), ("ensemble", True)):
        found = [
            study.ensemble(model, tested, metric, uncertainty, home=at_home) for uncertainty in uncertainties
        ]
        names = {None if one is None else one[0] for one in found}
        if found[0] is not None and len(names) == 1:
            row[kind] = found[0][1].value
    return row


def plot_summary(study: Study, metrics: Sequence[str], *, model: str | None = None) -> Picture | None:
    """In-domain, cross-dataset and ensembles over training sets, each the mean over test sets, by model or method.

    Args:
        study: what was found.
        metrics: a panel for each that has values.
        model: rows are its uncertainty methods; where not given, rows are models as they are.

    Returns:
        nothing where there is no value, or no ensemble and no uncertainty method to show.
    """
    shown = [metric for metric in metrics if metric in study.metrics]
    rows = (
        [(name, name, PLAIN) for name in study.models]
        if model is None
        else [
            (DOUBT_NAMES.get(uncertainty, uncertainty), model, uncertainty)
            for uncertainty in study.doubts_of(model)
        ]
    )
    alike = () if model is None else [uncertainty for *_, uncertainty in rows]
    found = {
        metric: [
            (label, compute_means(study, who, metric, uncertainty, alike=alike))
            for label, who, uncertainty in rows
        ]
        for metric in shown
    }
    shown = [metric for metric in shown if any(any(_has_values(row)) for _, row in found[metric])]
    if not shown or not rows:
        return None
    with set_style():
        figure, panels = _grid(len(shown), 0.75 + _ROW_IN * len(rows))
        seen: set[str] = set()
        for axes, metric in zip(panels, shown, strict=False):
            seen |= _dumbbells(axes, [row for _, row in found[metric]])
            _chance(axes, metric)
            axes.set_title(f"{NAMES[metric]} ({describe_direction(metric)})", fontsize=9)
            _rows(axes, [label for label, *_ in rows])
        _legend(figure, seen)
    text = "; ".join(
        f"{label} {_describe_picture_row(row)}" for label, row in found[shown[0]] if any(_has_values(row))
    )
    title = "Home, away and together" if model is None else f"Uncertainty methods at home and away: {model}"
    same = "" if model is None else ", and over cells that every uncertainty method has"
    caption = f"Means over test sets that have all marks of a row{same}. {NAMES[shown[0]]}: {text}."
    return Picture(title, caption, figure)


def list_row_kinds(row: Mapping[str, float | None]) -> list[str]:
    """The kinds of cells of which a row has a value."""
    return [kind for kind in KINDS if row[kind] is not None]


def _describe_picture_row(row: Mapping[str, float | None]) -> str:
    return ", ".join(f"{KINDS[kind].brief} {format_number(row[kind])}" for kind in list_row_kinds(row))


def _has_values(row: Mapping[str, float | None]) -> list[bool]:
    return [value is not None for value in row.values()]


def _marks(axes: Axes, study: Study, where: tuple[str, str, str], place: int) -> set[str]:
    """The marks of one model on one test set; which kinds were drawn."""
    model, tested, metric = where
    drawn: list[tuple[str, Found]] = []
    home = study.home(model, tested, metric)
    if home is not None:
        drawn.append(("home", home))
    drawn += [("away", found) for _, found in study.away(model, tested, metric)]
    ensemble = study.ensemble(model, tested, metric)
    if ensemble is not None:
        drawn.append(("ensemble", ensemble[1]))
    for kind, found in drawn:
        if found.value is None:
            continue
        if found.low is not None and found.high is not None:
            y = place + KINDS[kind].offset
            axes.plot([found.low, found.high], [y, y], color=KINDS[kind].colour, linewidth=1.2, alpha=0.55)
        _mark(axes, found.value, place + KINDS[kind].offset, KINDS[kind])
    if not any(found.value is not None for _, found in drawn):
        axes.annotate("no value", (0.5, place), xycoords=("axes fraction", "data"), ha="center", color=GREY)
    return {kind for kind, found in drawn if found.value is not None}


def _mark(axes: Axes, x: float, y: float, kind: Kind) -> None:
    face = kind.colour if kind.filled else "white"
    axes.plot([x], [y], marker=kind.marker, markersize=5, color=face, markeredgecolor=kind.colour, zorder=3)


def _strip(axes: Axes, values: Sequence[float], y: float, kind: Kind) -> None:
    """Dots on a line, with median and middle half."""
    if not values:
        axes.annotate("none", (0.01, y), xycoords=("axes fraction", "data"), va="center", color=GREY)
        return
    if len(values) >= FEWEST_FOR_A_BOX:
        low, high = np.quantile(values, [0.25, 0.75])
        axes.barh(y, high - low, left=low, height=0.28, color=PALE, zorder=1)
    for value in values:
        _mark(axes, value, y, kind)
    middle = _median(values)
    axes.plot([middle, middle], [y - 0.17, y + 0.17], color=kind.colour, linewidth=2.2, zorder=2)


def _dumbbells(axes: Axes, rows: Sequence[Mapping[str, float | None]]) -> set[str]:
    """A line from the least to the largest of each row, and its marks; which kinds were drawn."""
    seen: set[str] = set()
    for place, row in enumerate(rows):
        values = [value for value in row.values() if value is not None]
        if not values:
            axes.annotate(
                "no value", (0.5, place), xycoords=("axes fraction", "data"), ha="center", color=GREY
            )
            continue
        axes.plot([min(values), max(values)], [place, place], color=PALE, linewidth=3, zorder=1)
        for kind in list_row_kinds(row):
            _mark(axes, row[kind] or 0.0, place, KINDS[kind])
            seen.add(kind)
    return seen


def _grid(amount: int, height_in: float) -> tuple[Figure, list[Any]]:
    """A figure of so many panels, at most `ACROSS` in a row, which share the names of their rows."""
    down = -(-max(1, amount) // ACROSS)
    across = -(-max(1, amount) // down)
    figure, first = create_canvas(FULL, 0.45 + height_in * down)
    figure.delaxes(first)
    panels = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes in panels[max(1, amount) :]:
        figure.delaxes(axes)
    return figure, panels[: max(1, amount)]


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Names of rows, the first at the top, every other row on pale ground."""
    for place in range(0, len(names), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=GROUND, zorder=-1, linewidth=0)
    axes.set_yticks(range(len(names)), [clip_label(name, _NAME) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")


def _share_axis(panels: Sequence[Axes]) -> None:
    """The same values at the same place in every panel."""
    ends = [axes.get_xlim() for axes in panels]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    for axes in panels:
        axes.set_xlim(low, high)


def _chance(axes: Axes, metric: str) -> None:
    if metric in CHANCE:
        axes.axvline(CHANCE[metric], color=GREY, linewidth=1, linestyle=DOTTED, zorder=0)


def _legend(figure: Figure, seen: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=kind.marker,
            markersize=5,
            color=kind.colour if kind.filled else "white",
            markeredgecolor=kind.colour,
            label=kind.words,
        )
        for name, kind in KINDS.items()
        if name in seen
    ]
    if handles:
        figure.legend(handles=handles, loc="outside upper left", ncols=2, borderaxespad=0)


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else float("nan")


def _spoken(study: Study, metric: str) -> str:
    """Mean values in-domain and cross-dataset of each test set, in words."""
    parts = []
    for tested, held in collect_spreads(study, metric).items():
        home, away = compute_mean(held["home"]), compute_mean(held["away"])
        parts.append(f"{tested} {format_number(home)} at home, {format_number(away)} away")
    return f"Means over models: {'; '.join(parts)}."


# Reliability out of domain: how often models are right against how sure they are, for each training set.

RESAMPLES = 300
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


def plot_reliability_by_set(study: Study, model: str, trained_on: Sequence[str] = ()) -> Picture | None:
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
    found = {tested: collect_lines(study, model, tested, names) for tested in study.tested}
    found = {tested: held for tested, held in found.items() if held}
    if not found:
        return None
    down = -(-len(found) // ACROSS)
    across = -(-len(found) // down)
    # Colour, dashes and marker of each training set, the same in all panels.
    tones = (BLUE, *_TONES)
    looks = {
        name: {
            "color": tones[at % len(tones)],
            "linestyle": DASHES[at % len(DASHES)],
            "marker": MARKERS[at % len(MARKERS)],
        }
        for at, name in enumerate(names)
    }
    lines = [line for held in found.values() for line in held.values()]
    low = find_reliability_floor(
        np.concatenate([line.confidence for line in lines]),
        np.concatenate([line.accuracy for line in lines]),
        np.concatenate([line.ends for line in lines]),
    )
    with set_style():
        figure, first = create_canvas(FULL, 0.7 + 2.5 * down)
        figure.delaxes(first)
        panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for axes, (tested, held) in zip(panels, found.items(), strict=False):
            axes.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=1, linestyle=DOTTED)
            for name, line in held.items():
                home = name.rpartition(">")[2] == tested
                thick: dict[str, Any] = {"markersize": 5 if home else 3.5, "linewidth": 2.6 if home else 1.2}
                axes.vlines(line.confidence, *line.ends.T, color=looks[name]["color"], linewidth=3, alpha=0.2)
                axes.plot(line.confidence, line.accuracy, **looks[name], **thick)
            axes.set_title(clip_label(tested, 34), fontsize=9)
            axes.set(xlim=(0.48, 1.02), ylim=(low - 0.03, 1.03))
            axes.tick_params(labelbottom=True)
            axes.grid(visible=True)
        for axes in panels[len(found) :]:
            figure.delaxes(axes)
        figure.supxlabel("confidence", fontsize=8.5)
        figure.supylabel("accuracy", fontsize=8.5)
        _draw_reliability_legend(figure, study, names, looks)
    text = "; ".join(
        f"{tested}: {_describe_reliability(study, tested, held)}" for tested, held in found.items()
    )
    caption = (
        "Dotted: perfect; below it a model is surer than right. Bins are adaptive and hold the answers of "
        "all seeds, pale bars are 95 % intervals over pedestrians; the thick line learnt on what it is "
        f"tested on. ECE, and confidence less accuracy: {text}."
    )
    by = " and ".join(trained_on) if trained_on else "by training set"
    return Picture(f"Reliability of {model} on each test set, {by}", caption, figure)


def collect_lines(study: Study, model: str, tested: str, names: Sequence[str]) -> dict[str, Line]:
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
        key = (model, name, tested, PLAIN)
        cells = [
            cell
            for cell in study.results.cells
            if (cell.model, cell.trained_on, cell.tested_on, cell.doubt) == key
        ]
        states = [state for cell in cells if (state := _scores(study, cell))]
        if not states:
            continue
        # The answers of all seeds, as if one model had been asked that often
        core = CalibrationCore.of(
            SampleScores(
                np.concatenate([state.scores for state in states]),
                np.concatenate([state.truth for state in states]),
                np.concatenate([state.pedestrian for state in states]),
            ),
            config,
        )
        rows = np.array([row[2:8] for row in core.bin_rows("adaptive", RESAMPLES, 0)], dtype=np.float64)
        if len(rows):
            point = core.once()
            ends = rows[:, 4:]
            held[name] = Line(rows[:, 0], rows[:, 1], ends, point["ece"], point["overconfidence"])
    return held


def _scores(study: Study, cell: Cell) -> SampleScores | None:
    try:
        return study.results.scores(cell)
    except InputError:
        return None


def _draw_reliability_legend(
    figure: Any, study: Study, names: Sequence[str], looks: Mapping[str, Mapping[str, Any]]
) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **looks[name], markersize=4, label=f"learnt on {format_row_name(study, name)}")
        for name in names
    ]
    figure.legend(
        handles=handles, loc="outside upper left", ncols=min(3, len(handles)), borderaxespad=0, labelcolor=INK
    )


def _describe_reliability(study: Study, tested: str, held: Mapping[str, Line]) -> str:
    return ", ".join(
        f"{HOME if name == tested else format_row_name(study, name)} {format_number(line.error)} "
        f"({format_signed(line.overconfidence)})"
        for name, line in held.items()
    )


# The critical difference diagram: methods along their average ranks, bars over those that do not differ.

_ROW, _BAR = 1.0, 0.62
_DIFFERENCE_NAME = 34


def plot_critical_difference(found: Comparison, measured: str) -> Picture:
    """Average ranks on a line, best to the left; thick bars join methods of which no two differ.

    Dots on a bar are its members, since a method that differs may have its rank between theirs.

    Args:
        found: what datasets say of methods.
        measured: by what methods were ranked, in words.

    Source: Demšar, JMLR 2006, Figure 1; with Wilcoxon-Holm groups: Gesnouin et al., IV 2022, Figure 4.
    """
    methods = list(found.ranks.items())
    levels = _levels(found)
    half = (len(methods) + 1) // 2
    top = 0.6 + _BAR * (max(levels, default=-1) + 1)
    with set_style():
        figure, axes = create_canvas(FULL, 0.75 + 0.27 * (top + _ROW * half))
        _line(axes, len(methods))
        for clique, level in zip(found.cliques, levels, strict=True):
            ranks = [found.ranks[name] for name in clique]
            y = 0.6 + _BAR * level
            axes.plot(
                [min(ranks), max(ranks)], [y, y], color=BLUE, linewidth=4, solid_capstyle="butt", alpha=0.55
            )
            axes.plot(
                ranks, [y] * len(ranks), color=BLUE, marker="o", markersize=5, linestyle="none", clip_on=False
            )
        pad = 0.06 * max(1, len(methods) - 1)
        for place, (name, rank) in enumerate(methods):
            left = place < half
            row = place if left else len(methods) - 1 - place
            _name(axes, name, rank, top + _ROW * row, 1 - pad if left else len(methods) + pad)
        axes.set(xlim=(1 - pad, len(methods) + pad), ylim=(top + _ROW * (half - 0.4), -0.9))
        axes.set_axis_off()
        axes.set_title(f"average rank by {clip_label(measured, 70)}; 1 is best", loc="left", color=GREY)
    return Picture(f"Average ranks by {measured}", _caption(found), figure)


def _levels(found: Comparison) -> list[int]:
    """How far down the bar of each clique stands, so that no two touch."""
    reach: list[float] = []
    levels = []
    for clique in found.cliques:
        ranks = [found.ranks[name] for name in clique]
        free = [level for level, end in enumerate(reach) if end + 0.1 < min(ranks)]
        level = free[0] if free else len(reach)
        reach[level : level + 1] = [max(ranks)]
        levels.append(level)
    return levels


def _line(axes: Axes, methods: int) -> None:
    axes.plot([1, methods], [0, 0], color=INK, linewidth=1.1)
    for rank in range(1, methods + 1):
        axes.plot([rank, rank], [-0.15, 0], color=INK, linewidth=1.1)
        axes.text(rank, -0.25, str(rank), ha="center", va="bottom", color=INK)


def _name(axes: Axes, name: str, rank: float, y: float, end: float) -> None:
    """A method's name at the side, and the way from its rank to there."""
    axes.plot([rank, rank, end], [0, y, y], color=GREY, linewidth=0.8, zorder=0)
    align = "right" if end < rank else "left"
    says = (
        f"{clip_label(name, _DIFFERENCE_NAME)}  {rank:.2f}"
        if end < rank
        else f"{rank:.2f}  {clip_label(name, _DIFFERENCE_NAME)}"
    )
    offset = (-4 if end < rank else 4, 0)
    axes.annotate(says, (end, y), offset, textcoords="offset points", ha=align, va="center", color=INK)


def _caption(found: Comparison) -> str:
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in found.ranks.items())
    differing = sum(pair.differ for pair in found.pairs)
    test = f"Friedman's test over {found.sets} datasets: p = {found.p:.2g}"
    if not found.some_differ:
        return (
            f"{test}, so that at alpha = {found.alpha:g} no two methods are called different, and one bar "
            f"joins them all. Average ranks: {listed}."
        )
    return (
        f"{test}. Bars join methods (dots) of which no two differ by Wilcoxon's signed-rank test with Holm's "
        f"correction at alpha = {found.alpha:g}; {differing} of {len(found.pairs)} pairs do. Average ranks: "
        f"{listed}."
    )


# Models ranked over all pairs of a training set and another test set, with their critical differences.

ALPHA = 0.1
FEWEST = 2


@dataclass(frozen=True)
class Ranked:
    """Ranking of the models over the pairs of sets.

    Args:
        comparison: ranks and tests; None where there are too few models or pairs.
        pairs: training set and test set, where every ranked model has a value.
        left_out: models that have none on too many pairs.
        why: in words, why there is no comparison.
    """

    comparison: Comparison | None
    pairs: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    why: str = ""


def rank_models(study: Study, metric: str, *, alpha: float = ALPHA) -> Ranked:
    """Rank models out of domain, over the pairs on which all of them have a value.

    A model that lacks more than half of the pairs which others have is left out, so that one failure does not
    take away the rest.

    Args:
        study: what was found.
        metric: its name.
        alpha: level of the tests.

    Source: Gesnouin et al., IV 2022, Figure 4, section III-C.
    """
    pairs = [(a, b) for b in study.tested for a in study.learnt if a != b]
    held = {model: _collect_rank_values(study, model, metric, pairs) for model in study.models}
    most = max((len(values) for values in held.values()), default=0)
    kept = [model for model in study.models if held[model] and 2 * len(held[model]) > most]
    left_out = tuple(model for model in study.models if model not in kept)
    shared = tuple(pair for pair in pairs if kept and all(pair in held[model] for model in kept))
    if len(kept) < FEWEST or len(shared) < FEWEST:
        what = f"{len(kept)} models with values of {NAMES[metric]} on {len(shared)} pairs of sets"
        return Ranked(None, shared, left_out, f"ranks need two models and two pairs; there are {what}")
    values = np.array([[held[model][pair] for model in kept] for pair in shared])
    found = compare(values, kept, alpha=alpha, higher_is_better=metric in HIGHER)
    return Ranked(found, shared, left_out)


def rank_picture(study: Study, metric: str) -> Picture | str:
    """The critical difference diagram of a metric out of domain, or in words why there is none.

    Args:
        study: what was found.
        metric: its name.
    """
    found = rank_models(study, metric)
    if found.comparison is None:
        return found.why
    drawn = plot_critical_difference(found.comparison, f"{NAMES[metric]} out of domain")
    caption = drawn.caption.replace("datasets", "pairs of a training set and another test set", 1)
    if found.left_out:
        caption += f" Left out, for want of values: {', '.join(found.left_out)}."
    return Picture(drawn.title, caption, drawn.figure)


def _collect_rank_values(
    study: Study, model: str, metric: str, pairs: list[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    found = {pair: study.at(model, *pair, metric) for pair in pairs}
    return {pair: one.value for pair, one in found.items() if one is not None and one.value is not None}
