"""Conformal sets out of domain: coverage of thresholds that were fitted on the training set's own road."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.calibration import SCALES, CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrians import UNITS, PedestrianConfig, PedestrianCore
from roadaware.protocols.cross_dataset.cells import (
    LEVEL,
    compute_coverage,
    compute_resampled_means,
    read_sets,
)
from roadaware.protocols.cross_dataset.config import HIGHER, SEEDS_JOINED, SETS, Cell
from roadaware.reports.bars import Difference, plot_forest
from roadaware.reports.cross_dataset_cells import DOUBT_NAMES, NAMES, PLAIN, Study, describe_direction
from roadaware.reports.page import Mark, Picture, Table
from roadaware.reports.page import TableCell as Entry
from roadaware.reports.text import capitalize_text, format_interval, format_number
from roadaware.statistics.intervals import (
    PercentileResamples,
    Units,
    compute_percentile_interval,
    get_difference_scale,
)

RESAMPLES = 1000
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
        doubt: the uncertainty method.
        where: in-domain, or away.
        values: of `coverage_90`, `set_size_90` and `empty_90`, the mean over test sets.
        ends: of each, those of its 95 % interval over pedestrians; None where there is none.
    """

    model: str
    doubt: str
    where: str
    values: tuple[float, ...]
    ends: tuple[tuple[float | None, float | None], ...]


def collect_sets(study: Study, resamples: int = RESAMPLES) -> list[Sets]:
    """Every model and uncertainty method, in-domain and cross-dataset, as far as its cells keep sets.

    Args:
        study: with the scores of its cells.
        resamples: resamples of pedestrians; 0 for no intervals.

    Source: Papadopoulos et al., ECML 2002, for the sets.
    """
    return [
        found
        for model in study.models
        for uncertainty in study.doubts_of(model)
        for where in WHERE
        if (found := _sets(study, model, uncertainty, where, resamples)) is not None
    ]


def build_coverage_table(found: Sequence[Sets]) -> Table | None:
    """One row for each model and uncertainty method; nothing where no cell keeps sets.

    Args:
        found: by `collect_sets`.
    """
    if not found:
        return None
    several = len({one.doubt for one in found}) > 1
    held = {(one.model, one.doubt, one.where): one for one in found}
    rows: list[tuple[Entry, ...]] = []
    for model, uncertainty in dict.fromkeys((one.model, one.doubt) for one in found):
        pair = [held.get((model, uncertainty, where)) for where in WHERE]
        name = f"{model}, {DOUBT_NAMES.get(uncertainty, uncertainty)}" if several else model
        rows.append((name, *(_format_entry(one, at) for at in range(len(SETS)) for one in pair)))
    columns = ("model", *(f"{_HEADS[name]}, {where}" for name in SETS for where in WHERE))
    title = f"Sets that promise to hold the true label {100 * LEVEL:.0f} % of the time"
    return Table(columns, tuple(rows), "l" + "r" * (len(columns) - 1), title, _READING)


def describe_coverage(found: Sequence[Sets]) -> Iterator[str]:
    """Summary of the coverage table in words.

    Args:
        found: by `collect_sets`.
    """
    plain = {where: [one for one in found if (one.doubt, one.where) == (PLAIN, where)] for where in WHERE}
    if all(plain.values()):
        home, away = (float(np.mean([one.values[0] for one in plain[where]])) for where in WHERE)
        yield (
            f"Sets that were promised to hold the true label in {100 * LEVEL:.0f} % do so in "
            f"{100 * home:.0f} % at home and in {100 * away:.0f} % away."
        )


def _sets(study: Study, model: str, uncertainty: str, where: str, resamples: int) -> Sets | None:
    parts = [
        held
        for tested in study.tested
        if (
            held := _on(
                study,
                [
                    c
                    for c in [
                        cell
                        for cell in study.results.cells
                        if (cell.model, cell.doubt) == (model, uncertainty)
                        and cell.seed != SEEDS_JOINED
                        and cell.trained_on in study.learnt
                        and (cell.trained_on == cell.tested_on) == (where == "home")
                    ]
                    if c.tested_on == tested
                ],
            )
        )
    ]
    if not parts:
        return None
    values = np.mean([each.mean(axis=0) for each, _ in parts], axis=0)
    times = PercentileResamples(resamples)
    drawn = [compute_resampled_means(each, who, times, place) for place, (each, who) in enumerate(parts)]
    known = [each for each in drawn if each is not None]
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(SETS)
    if len(known) == len(parts):
        over = np.mean(known, axis=0)
        ends = [compute_percentile_interval(over[:, at]) or (None, None) for at in range(len(SETS))]
    return Sets(model, uncertainty, where, tuple(values.tolist()), tuple(ends))


def _on(study: Study, cells: Sequence[Cell]) -> tuple[Floats, npt.NDArray[np.str_]] | None:
    """(n, metrics) of the samples of one test set, the mean over cells, and (n,) their pedestrians."""
    found = []
    for cell in cells:
        promise = read_sets(study.results.folder, cell)
        if promise is not None:
            state = study.results.scores(cell)
            found.append((compute_coverage(state, promise), state.pedestrian))
    if not found:
        return None
    return np.mean([each for each, _ in found], axis=0), found[0][1]


def _format_entry(one: Sets | None, at: int) -> Entry:
    if one is None:
        return format_number(None)
    low, high = one.ends[at]
    return Mark(format_number(one.values[at]), below="" if low is None else format_interval(low, high))


# What learning somewhere else first gives in-domain: paired differences with intervals, as a forest plot.

Ends = tuple[float | None, float | None, float | None, float | None]
PRETRAINING_DRAWS = 300
_NO_ENDS: Ends = (None, None, None, None)
_PRETRAINING_READING = (
    "on the test set of the second domain, the mean over seeds. Thick bars are 95 % intervals over "
    "pedestrians, thin ones over videos, from resamples that both share; a difference is called better or "
    "worse only where both exclude zero. Seeds are not drawn again."
)


@dataclass(frozen=True)
class Effect:
    """Effect of pre-training on another domain.

    Args:
        model: its name.
        trained_on: `a>b`.
        metric: its name.
        seeds: that have both.
        difference: with it less without it, the mean over seeds; None where no seed has both.
        ends: of its 95 % interval over pedestrians, then of that over videos; None where there is none.
        verdict: what the intervals say of pre-training.
    """

    model: str
    trained_on: str
    metric: str
    seeds: int
    difference: float | None
    ends: Ends
    verdict: str


_Drawn = tuple[dict[str, Floats], Units]


@dataclass(eq=False)
class Resamples:
    """Metrics of cells under weightings of their units, each cell drawn once for all metrics.

    Args:
        study: with the scores of its cells.
        resamples: most weightings of pedestrians and of videos.
    """

    study: Study
    resamples: int = PRETRAINING_DRAWS
    _held: dict[tuple[Cell, str, bool], _Drawn | None] = field(default_factory=dict, repr=False)

    def of(self, cell: Cell, unit: str, metric: str) -> tuple[Floats, Units] | None:
        """(resamples,) a metric, and the units; equal test sets give equal resamples. None without scores or units.

        Args:
            cell: whose.
            unit: pedestrian or video.
            metric: its name.
        """
        ranked = metric in HIGHER
        key = (cell, unit, ranked)
        if key not in self._held:
            self._held[key] = self._drawn(cell, unit, ranked=ranked)
        found = self._held[key]
        return None if found is None else (found[0][metric], found[1])

    def _drawn(self, cell: Cell, unit: str, *, ranked: bool) -> _Drawn | None:
        try:
            state = self.study.results.scores(cell)
        except InputError:
            return None
        core: PedestrianCore | CalibrationCore
        if ranked:
            core = PedestrianCore.of(state, PedestrianConfig.default("action"))
        else:
            core = CalibrationCore.of(state, CalibrationConfig.default())
        units, drawn = core.units(unit, self.resamples, 0), core.drawn(unit, self.resamples, 0)
        return None if units is None or drawn is None else (drawn, units)


def compute_effects(resamples: Resamples, metric: str) -> list[Effect]:
    """The effect for every model and every `a>b`, where the model has also learnt on b alone.

    Args:
        resamples: of the study; without scores there are differences but no intervals.
        metric: its name.
    """
    study = resamples.study
    pairs = ((model, name) for name in study.onward for model in study.models)
    return [found for model, name in pairs if (found := _effect(resamples, model, name, metric))]


def plot_pretraining(metric: str, found: Sequence[Effect]) -> Picture | None:
    """The effects as a forest plot; nothing where there are none.

    Args:
        metric: its name.
        found: what `compute_effects` gave for it.
    """
    known = [one for one in found if one.difference is not None]
    if not known:
        return None
    before = list(dict.fromkeys(one.trained_on.rpartition(">")[0] for one in known))
    rows = [
        Difference(
            f"{one.model}, {one.trained_on.replace('>', ' > ') if len(before) > 1 else _after(one)}",
            one.difference,
            *one.ends,
            one.verdict,
        )
        for one in known
    ]
    drawn = plot_forest(rows, "pre-trained", "from scratch", reading=_PRETRAINING_READING)
    title = (
        f"{NAMES[metric]} ({describe_direction(metric)}): what pre-training on {' or '.join(before)} changes"
    )
    return Picture(title, capitalize_text(drawn.caption), drawn.figure)


def _after(one: Effect) -> str:
    return one.trained_on.rpartition(">")[2]


def _effect(resamples: Resamples, model: str, name: str, metric: str) -> Effect | None:
    study, after = resamples.study, name.rpartition(">")[2]
    if any(study.at(model, trained, after, metric) is None for trained in (name, after)):
        return None
    given, alone = (dict(study.by_seed(model, trained, after, metric)) for trained in (name, after))
    seeds = sorted(set(given) & set(alone) - {SEEDS_JOINED})
    if not seeds:
        return Effect(model, name, metric, 0, None, _NO_ENDS, "undefined")
    difference = float(np.mean([given[seed] - alone[seed] for seed in seeds]))
    cells = [[Cell(model, trained, after, seed, PLAIN) for trained in (name, after)] for seed in seeds]
    over = [_interval(resamples, cells, unit, metric, difference) for unit in UNITS]
    ends: Ends = (*over[0], *over[1])
    return Effect(model, name, metric, len(seeds), difference, ends, _verdict(ends, metric))


def _interval(
    resamples: Resamples, cells: Sequence[Sequence[Cell]], unit: str, metric: str, difference: float
) -> tuple[float | None, float | None]:
    """Of the mean difference over seeds; None where a seed has no scores."""
    differences = []
    for first, second in cells:
        one, two = (resamples.of(cell, unit, metric) for cell in (first, second))
        if one is None or two is None:
            return None, None
        differences.append(one[0] - two[0])
        units = one[1]
    scale = get_difference_scale(SCALES.get(metric, "share"))
    found = units.interval(difference, np.mean(differences, axis=0), scale)
    return found.low, found.high


def _verdict(ends: Ends, metric: str) -> str:
    """What the intervals over pedestrians and, where known, over videos say of the first."""
    pairs = [(ends[0], ends[1]), (ends[2], ends[3])]
    known = [(low, high) for low, high in pairs if low is not None and high is not None]
    if not known:
        return "no interval"
    above, below = (all(low > 0 for low, _ in known), all(high < 0 for _, high in known))
    if not (above or below):
        return "not different"
    return "better" if above == (metric in HIGHER) else "worse"
