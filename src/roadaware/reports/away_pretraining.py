"""What learning somewhere else first gives at home: paired differences with intervals, as a forest plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.metrics.calibration import CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrian_core import UNITS, PedestrianCore
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.results import HIGHER, SEEDS_JOINED, Cell
from roadaware.reports.away_cells import NAMES, PLAIN, Study, better
from roadaware.reports.bars import Difference, forest
from roadaware.reports.picture import Picture
from roadaware.statistics.bootstrap import percentile_interval

Floats = npt.NDArray[np.float64]
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


def effects(study: Study, metric: str, *, draws: int = DRAWS) -> list[Effect]:
    """The effect for every model and every `a>b`, where the model has also learnt on b alone.

    Args:
        study: with the scores of its cells; without them there are differences but no intervals.
        metric: its name.
        draws: resamples of pedestrians and of videos.
    """
    pairs = ((model, name) for name in study.onward for model in study.models)
    return [found for model, name in pairs if (found := _effect(study, model, name, metric, draws))]


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
    return Picture(title, drawn.caption, drawn.figure)


def _after(one: Effect) -> str:
    return one.trained_on.rpartition(">")[2]


def _effect(study: Study, model: str, name: str, metric: str, draws: int) -> Effect | None:
    after = name.rpartition(">")[2]
    first, second = study.at(model, name, after, metric), study.at(model, after, after, metric)
    if first is None or second is None:
        return None
    given = _values(study, model, name, after, metric)
    alone = _values(study, model, after, after, metric)
    seeds = sorted(set(given) & set(alone))
    if not seeds:
        return Effect(model, name, metric, 0, None, _NO_ENDS, "undefined")
    difference = float(np.mean([given[seed] - alone[seed] for seed in seeds]))
    places = (model, name, after)
    over = [_interval(study, places, metric, seeds, (unit, draws)) for unit in UNITS]
    ends: Ends = (*over[0], *over[1])
    return Effect(model, name, metric, len(seeds), difference, ends, _verdict(ends, metric))


def _interval(
    study: Study, where: tuple[str, str, str], metric: str, seeds: Sequence[int], how: tuple[str, int]
) -> tuple[float | None, float | None]:
    """Of the mean difference over seeds; None where a seed has no scores."""
    drawn = list(_drawn(study, where, metric, seeds, how))
    if len(drawn) < len(seeds):
        return None, None
    found = percentile_interval(np.mean(drawn, axis=0))
    return found.low, found.high


def _values(study: Study, model: str, trained: str, tested: str, metric: str) -> dict[int, float]:
    """Seed to value, of what has one."""
    return {
        seed: value for seed, value in study.by_seed(model, trained, tested, metric) if seed != SEEDS_JOINED
    }


def _drawn(
    study: Study, where: tuple[str, str, str], metric: str, seeds: Sequence[int], how: tuple[str, int]
) -> Iterator[Floats]:
    """(draws,) difference in each resample, seed by seed; nothing for a seed without scores."""
    model, name, after = where
    for seed in seeds:
        try:
            states = [
                study.results.scores(Cell(model, trained, after, seed, PLAIN)) for trained in (name, after)
            ]
        except InputError:
            continue
        first, second = (_resampled(state, metric, *how) for state in states)
        same = len(states[0]) == len(states[1])
        if same and first is not None and second is not None:
            yield first - second


def _resampled(state: SampleScores, metric: str, unit: str, draws: int) -> Floats | None:
    """(draws,) a metric when whole units are drawn; equal pedestrians give equal draws."""
    core = (
        partial(PedestrianCore.of, config=PedestrianConfig.default("action"))
        if metric in HIGHER
        else partial(CalibrationCore.of, config=CalibrationConfig.default())
    )
    drawn = core(state).drawn(unit, draws, 0)
    return None if drawn is None else drawn[metric]


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
