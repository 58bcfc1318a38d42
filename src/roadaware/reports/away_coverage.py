"""Conformal sets away from home: what is left of a promise that was made on the training set's own road."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.protocols.away.covering import LEVEL, in_sets, kept, means_drawn
from roadaware.protocols.away.results import SEEDS_JOINED, SETS, Cell
from roadaware.reports.away_cells import DOUBT_NAMES, PLAIN, Study
from roadaware.reports.page import Cell as Entry
from roadaware.reports.page import Mark, Table
from roadaware.reports.text import interval, number
from roadaware.statistics.bootstrap import percentile_ends
from roadaware.statistics.intervals import PercentileDraws

DRAWS = 1000
WHERE = ("home", "away")
_HEADS = {"coverage_90": "coverage", "set_size_90": "labels in a set", "empty_90": "empty"}
_READING = (
    "Split conformal sets: the threshold that keeps the promise on the validation split of the training set, "
    "held on each test set. Means over test sets, of all other training sets where away, and over seeds; "
    "the second lines are 95 % intervals over pedestrians, drawn in each test set by itself, with the "
    "threshold held."
)


@dataclass(frozen=True)
class Sets:
    """How the sets of a model did.

    Args:
        model: its name.
        doubt: how it was asked.
        where: at home, or away.
        values: of `coverage_90`, `set_size_90` and `empty_90`, the mean over test sets.
        ends: of each, those of its 95 % interval over pedestrians; None where there is none.
    """

    model: str
    doubt: str
    where: str
    values: tuple[float, ...]
    ends: tuple[tuple[float | None, float | None], ...]


def sets_of(study: Study, draws: int = DRAWS) -> list[Sets]:
    """Every model and way to doubt, at home and away, as far as its cells keep sets.

    Args:
        study: with the scores of its cells.
        draws: resamples of pedestrians; 0 for no intervals.

    Source: Papadopoulos et al., ECML 2002, for the sets.
    """
    return [
        found
        for model in study.models
        for doubt in study.doubts_of(model)
        for where in WHERE
        if (found := _sets(study, model, doubt, where, draws)) is not None
    ]


def coverage_table(found: Sequence[Sets]) -> Table | None:
    """One row for each model and way to doubt; nothing where no cell keeps sets.

    Args:
        found: by `sets_of`.
    """
    if not found:
        return None
    several = len({one.doubt for one in found}) > 1
    held = {(one.model, one.doubt, one.where): one for one in found}
    rows: list[tuple[Entry, ...]] = []
    for model, doubt in dict.fromkeys((one.model, one.doubt) for one in found):
        pair = [held.get((model, doubt, where)) for where in WHERE]
        name = f"{model}, {DOUBT_NAMES.get(doubt, doubt)}" if several else model
        rows.append((name, *(_told(one, at) for at in range(len(SETS)) for one in pair)))
    columns = ("model", *(f"{_HEADS[name]}, {where}" for name in SETS for where in WHERE))
    title = f"Sets that promise to hold the true label {100 * LEVEL:.0f} % of the time"
    return Table(columns, tuple(rows), "l" + "r" * (len(columns) - 1), title, _READING)


def said(found: Sequence[Sets]) -> Iterator[str]:
    """What the table comes to, of the models as they are.

    Args:
        found: by `sets_of`.
    """
    plain = {where: [one for one in found if (one.doubt, one.where) == (PLAIN, where)] for where in WHERE}
    if all(plain.values()):
        home, away = (float(np.mean([one.values[0] for one in plain[where]])) for where in WHERE)
        yield (
            f"Sets that were promised to hold the true label in {100 * LEVEL:.0f} % do so in "
            f"{100 * home:.0f} % at home and in {100 * away:.0f} % away."
        )


def _sets(study: Study, model: str, doubt: str, where: str, draws: int) -> Sets | None:
    parts = [
        held
        for tested in study.tested
        if (held := _on(study, [c for c in _cells(study, model, doubt, where) if c.tested_on == tested]))
    ]
    if not parts:
        return None
    values = np.mean([each.mean(axis=0) for each, _ in parts], axis=0)
    times = PercentileDraws(draws)
    drawn = [means_drawn(each, who, times, place) for place, (each, who) in enumerate(parts)]
    known = [each for each in drawn if each is not None]
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(SETS)
    if len(known) == len(parts):
        over = np.mean(known, axis=0)
        ends = [percentile_ends(over[:, at]) or (None, None) for at in range(len(SETS))]
    return Sets(model, doubt, where, tuple(values.tolist()), tuple(ends))


def _cells(study: Study, model: str, doubt: str, where: str) -> list[Cell]:
    return [
        cell
        for cell in study.results.cells
        if (cell.model, cell.doubt) == (model, doubt)
        and cell.seed != SEEDS_JOINED
        and cell.trained_on in study.learnt
        and (cell.trained_on == cell.tested_on) == (where == "home")
    ]


def _on(study: Study, cells: Sequence[Cell]) -> tuple[Floats, npt.NDArray[np.str_]] | None:
    """(n, metrics) of the samples of one test set, the mean over cells, and (n,) their pedestrians."""
    found = []
    for cell in cells:
        promise = kept(study.results.folder, cell)
        if promise is not None:
            state = study.results.scores(cell)
            found.append((in_sets(state, promise), state.pedestrian))
    if not found:
        return None
    return np.mean([each for each, _ in found], axis=0), found[0][1]


def _told(one: Sets | None, at: int) -> Entry:
    if one is None:
        return number(None)
    low, high = one.ends[at]
    return Mark(number(one.values[at]), below="" if low is None else interval(low, high))
