"""Pictures of home against away: each test set, distributions over all models, and what ensembles give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.reports.away_cells import DOUBT_NAMES, NAMES, PLAIN, Found, Study, better, mean
from roadaware.reports.picture import (
    BLUE,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    PALE,
    VERMILLION,
    Picture,
    canvas,
    styled,
)
from roadaware.reports.text import number, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3
FEWEST_FOR_A_BOX = 5
CHANCE = {"auc": 0.5, "balanced_accuracy": 0.5}
GROUND = "#f3f5f7"
_NAME, _ROW_IN = 32, 0.34


@dataclass(frozen=True)
class Kind:
    """How a kind of cells is drawn and called: colour, marker and fill all tell it apart."""

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


def by_test_set(study: Study, metric: str) -> Picture | None:
    """Every model on every test set: at home, trained elsewhere, and as an ensemble over training sets.

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
    with styled():
        figure, panels = _grid(len(study.tested), 0.75 + _ROW_IN * len(models))
        seen: set[str] = set()
        for axes, tested in zip(panels, study.tested, strict=False):
            for place, model in enumerate(models):
                seen |= _marks(axes, study, (model, tested, metric), place)
            _chance(axes, metric)
            axes.set_title(short(tested, 34), fontsize=9)
            _rows(axes, models)
        _share_axis(panels[: len(study.tested)], metric)
        _legend(figure, seen)
    caption = (
        f"{NAMES[metric]} ({better(metric)}) on each test set, mean over seeds; lines at a mark are its 95 % "
        f"interval over pedestrians. {_spoken(study, metric)}"
    )
    return Picture(f"{NAMES[metric]} at home and away, test set by test set", caption, figure)


def distributions(study: Study, metric: str, *, by: str = "test set") -> Picture | None:
    """How the values at home and those away are spread: one dot for each cell.

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
    spread = spreads(study, metric, by=by)
    with styled():
        figure, axes = canvas(FULL, 1.0 + 0.62 * max(1, len(spread)))
        for place, held in enumerate(spread.values()):
            for kind, values in held.items():
                _strip(axes, values, place + (-0.2 if kind == "home" else 0.2), KINDS[kind])
        _chance(axes, metric)
        _rows(axes, list(spread))
        axes.set_xlabel(f"{NAMES[metric]} ({better(metric)})")
        _legend(figure, {"home", "away"})
    medians = "; ".join(
        f"{name} {number(_median(held['home']))} at home and {number(_median(held['away']))} away"
        for name, held in spread.items()
    )
    dots = "each model, away with each training set" if by == "test set" else "each test set and training set"
    caption = (
        f"Dots are {dots}, means over seeds; the stroke is the median, the box the middle half where there "
        f"are {FEWEST_FOR_A_BOX} dots. Medians: {medians}."
    )
    return Picture(f"{NAMES[metric]} at home and away, by {by}", caption, figure)


def spreads(study: Study, metric: str, *, by: str = "test set") -> dict[str, dict[str, list[float]]]:
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


def means(
    study: Study, model: str, metric: str, doubt: str = PLAIN, *, alike: Sequence[str] = ()
) -> dict[str, float | None]:
    """Kind of cell to its mean over the test sets that have a value of every kind that occurs.

    Args:
        study: what was found.
        model: its name.
        metric: its name.
        doubt: way to doubt.
        alike: other ways to doubt; what one of them lacks is left out, so that all have the same cells.
    """
    rows = [_row(study, (model, tested, metric), (doubt, *alike)) for tested in study.tested]
    occurs = [kind for kind in KINDS if any(row[kind] is not None for row in rows)]
    whole = [row for row in rows if occurs and all(row[kind] is not None for kind in occurs)]
    return {kind: mean(row[kind] for row in whole) for kind in KINDS}


def _row(study: Study, where: tuple[str, str, str], doubts: Sequence[str]) -> dict[str, float | None]:
    """Kind of cell to its value on one test set, with the first of ways to doubt; None where one lacks it."""
    model, tested, metric = where
    row: dict[str, float | None] = dict.fromkeys(KINDS)
    homes = [study.home(model, tested, metric, doubt) for doubt in doubts]
    if homes[0] is not None and all(home is not None and home.value is not None for home in homes):
        row["home"] = homes[0].value
    held = [dict(study.away(model, tested, metric, doubt)) for doubt in doubts]
    row["away"] = mean(found.value for name, found in held[0].items() if all(name in one for one in held))
    for kind, at_home in (("visitors", False), ("ensemble", True)):
        found = [study.ensemble(model, tested, metric, doubt, home=at_home) for doubt in doubts]
        names = {None if one is None else one[0] for one in found}
        if found[0] is not None and len(names) == 1:
            row[kind] = found[0][1].value
    return row


def together(study: Study, metrics: Sequence[str], *, model: str | None = None) -> Picture | None:
    """Home, away and ensembles over training sets, each the mean over test sets: of every model, or doubt.

    Args:
        study: what was found.
        metrics: a panel for each that has values.
        model: rows are its ways to doubt; where not given, rows are models as they are.

    Returns:
        nothing where there is no value, or no ensemble and no doubt to show.
    """
    shown = [metric for metric in metrics if metric in study.metrics]
    rows = [(name, name, PLAIN) for name in study.models] if model is None else _doubts(study, model)
    alike = () if model is None else [doubt for *_, doubt in rows]
    found = {
        metric: [(label, means(study, who, metric, doubt, alike=alike)) for label, who, doubt in rows]
        for metric in shown
    }
    shown = [metric for metric in shown if any(any(_known(row)) for _, row in found[metric])]
    if not shown or not rows:
        return None
    with styled():
        figure, panels = _grid(len(shown), 0.75 + _ROW_IN * len(rows))
        seen: set[str] = set()
        for axes, metric in zip(panels, shown, strict=False):
            seen |= _dumbbells(axes, [row for _, row in found[metric]])
            _chance(axes, metric)
            axes.set_title(f"{NAMES[metric]} ({better(metric)})", fontsize=9)
            _rows(axes, [label for label, *_ in rows])
        _legend(figure, seen)
    told = "; ".join(f"{label} {_told(row)}" for label, row in found[shown[0]] if any(_known(row)))
    title = "Home, away and together" if model is None else f"Ways to doubt at home and away: {model}"
    same = "" if model is None else ", and over cells that every way to doubt has"
    caption = f"Means over test sets that have all marks of a row{same}. {NAMES[shown[0]]}: {told}."
    return Picture(title, caption, figure)


def seen_in(row: Mapping[str, float | None]) -> list[str]:
    """The kinds of cells of which a row has a value."""
    return [kind for kind in KINDS if row[kind] is not None]


def _told(row: Mapping[str, float | None]) -> str:
    return ", ".join(f"{KINDS[kind].brief} {number(row[kind])}" for kind in seen_in(row))


def _known(row: Mapping[str, float | None]) -> list[bool]:
    return [value is not None for value in row.values()]


def _doubts(study: Study, model: str) -> list[tuple[str, str, str]]:
    return [(DOUBT_NAMES.get(doubt, doubt), model, doubt) for doubt in study.doubts_of(model)]


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
        for kind in seen_in(row):
            _mark(axes, row[kind] or 0.0, place, KINDS[kind])
            seen.add(kind)
    return seen


def _grid(amount: int, height_in: float) -> tuple[Figure, list[Any]]:
    """A figure of so many panels, at most `ACROSS` in a row, which share the names of their rows."""
    down = -(-max(1, amount) // ACROSS)
    across = -(-max(1, amount) // down)
    figure, first = canvas(FULL, 0.45 + height_in * down)
    figure.delaxes(first)
    panels = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes in panels[max(1, amount) :]:
        figure.delaxes(axes)
    return figure, panels[: max(1, amount)]


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Names of rows, the first at the top, every other row on pale ground."""
    for place in range(0, len(names), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=GROUND, zorder=-1, linewidth=0)
    axes.set_yticks(range(len(names)), [short(name, _NAME) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")


def _share_axis(panels: Sequence[Axes], metric: str) -> None:
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
    """Mean values at home and away of each test set, in words."""
    parts = []
    for tested, held in spreads(study, metric).items():
        home, away = mean(held["home"]), mean(held["away"])
        parts.append(f"{tested} {number(home)} at home, {number(away)} away")
    return f"Means over models: {'; '.join(parts)}."
