"""What learning somewhere else first gives at home: paired differences with intervals, as a forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.calibration import CalibrationConfig, CalibrationCore
from roadaware.metrics.calibration_core import SCALES
from roadaware.metrics.pedestrian_core import UNITS, PedestrianCore
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.protocols.away.results import HIGHER, SEEDS_JOINED, Cell
from roadaware.reports.away_cells import NAMES, PLAIN, Study, better
from roadaware.reports.bars import Difference, forest
from roadaware.reports.picture import Picture
from roadaware.reports.text import sentence
from roadaware.statistics.intervals import Units, difference_scale

Ends = tuple[float | None, float | None, float | None, float | None]
DRAWS = 300
_NO_ENDS: Ends = (None, None, None, None)
_READING = (
    "on the test set of the second domain, the mean over seeds. Thick bars are 95 % intervals over "
    "pedestrians, thin ones over videos, from resamples that both share; a difference is called better or "
    "worse only where both exclude zero. Seeds are not drawn again."
)


@dataclass(frozen=True)
class Effect:
    """What learning elsewhere first changes on the domain that training ended with.

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
        draws: most weightings of pedestrians and of videos.
    """

    study: Study
    draws: int = DRAWS
    _held: dict[tuple[Cell, str, bool], _Drawn | None] = field(default_factory=dict, repr=False)

    def of(self, cell: Cell, unit: str, metric: str) -> tuple[Floats, Units] | None:
        """(draws,) a metric, and the units; equal test sets give equal draws. None without scores or units.

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
        units, drawn = core.units(unit, self.draws, 0), core.drawn(unit, self.draws, 0)
        return None if units is None or drawn is None else (drawn, units)


def effects(resamples: Resamples, metric: str) -> list[Effect]:
    """The effect for every model and every `a>b`, where the model has also learnt on b alone.

    Args:
        resamples: of the study; without scores there are differences but no intervals.
        metric: its name.
    """
    study = resamples.study
    pairs = ((model, name) for name in study.onward for model in study.models)
    return [found for model, name in pairs if (found := _effect(resamples, model, name, metric))]


def pretraining_picture(study: Study, metric: str, found: Sequence[Effect]) -> Picture | None:
    """The effects as a forest plot; nothing where there are none.

    Args:
        study: what was found.
        metric: its name.
        found: what `effects` gave for it.
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
    drawn = forest(rows, "pre-trained", "from scratch", reading=_READING)
    title = f"{NAMES[metric]} ({better(metric)}): what pre-training on {' or '.join(before)} changes"
    return Picture(title, sentence(drawn.caption), drawn.figure)


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
    scale = difference_scale(SCALES.get(metric, "share"))
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
