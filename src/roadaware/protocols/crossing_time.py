"""When pedestrians begin to cross: trees and networks of the time, classifiers, constant velocity and the prior, asked at
every moment of every track and judged on the same people.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.metrics.time_to_event import (
    TimedMoments,
    WarningCurve,
    brier_terms,
    calibration_error,
    calibration_in_time,
    count_concordant,
    integrate_brier,
    kaplan_meier,
    measure_warnings,
    read_warning_time,
)
from roadaware.models.crossing.hazard_trees import HazardTrees, HazardTreesConfig
from roadaware.scenes.sampling import get_protocol
from roadaware.statistics.intervals import Units
from roadaware.tasks.crossing_inputs.history import FEATURES
from roadaware.tasks.crossing_time import EDGES_S, TimedTracks, collect_times, estimate_lane_time, name_spans
from roadaware.tasks.crossing_tracks import Moments, survive

if TYPE_CHECKING:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.scenes.tables import Scenes

Progress = Callable[[int, int, str], None]

FORMAT = "roadaware-crossing-time"
PROTOCOL = "jaad-action@iv2024"
"""Whose splits and honest labels are taken."""
RATE_FPS, FRAMES = 30.0, 15
BINS = 10
"""Parts of validation by score, whose Kaplan-Meier curves make a score a prediction of the time."""
CONCORDANCE_EVERY = 10
"""Of the moments of a person one in so many is compared with all others: a third of a second apart they differ."""
NEAR_S, FAR_S = (1.0, 3.0), 5.0
"""Crossers told apart by how far their event is: as sampled by the published protocol, and beyond five seconds."""
RATES = (1.0, 10.0, 60.0, 120.0)
"""False alarms an hour at which warning times are read. In less than an hour of video the first allows none."""
METRICS = ("concordance", "integrated_brier", "near_far_auc", "calibration_error")
TREES, HAZARD, CLASSIFIER, SAME, VELOCITY, PRIOR = (
    "hazard trees", "hazard network", "classifier", "classifier, trees of the same features", "constant velocity", "prior",
)  # fmt: skip
"""`SAME` is the trees' own control: the same features, moments and settings, taught who crosses and not when."""
SOON_S = 2.0
"""The alarm asks for the next two seconds."""
TREES_FILE = "hazard-trees.npz"


@dataclass(frozen=True)
class Number:
    """A number with its 95 % interval over pedestrians and over videos; None where undefined."""

    value: float | None
    pedestrian: tuple[float, float] | None = None
    video: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Judged:
    """What a way of predicting the time is worth.

    Args:
        numbers: of `METRICS`.
        brier: (m,) at each horizon.
        calibration: (m, bins, 3) as `calibration_in_time` gives it.
        warnings: of alarms.
        survival: (n, m) on test.
        alarm: (n,) what the alarm listens to.
    """

    numbers: dict[str, Number]
    brier: Floats
    calibration: Floats
    warnings: WarningCurve
    survival: Floats
    alarm: Floats


@dataclass(frozen=True, eq=False)
class TimeStudy:
    """Results.

    Args:
        judged: by way.
        differences: `way - other` and metric to the paired difference.
        test: the moments that are judged.
        counts: of each split people, crossers and moments.
        seeds: of the networks.
        recipe: of the networks, JSON-ready.
    """

    judged: dict[str, Judged]
    differences: dict[tuple[str, str], Number]
    test: TimedTracks
    counts: dict[str, dict[str, Any]]
    seeds: tuple[int, ...]
    recipe: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""

        def encode(number: Number) -> dict[str, Any]:
            return {"value": number.value, "by_pedestrian": number.pedestrian, "by_video": number.video}

        return {
            "counts": self.counts,
            "seeds": list(self.seeds),
            "recipe": self.recipe,
            "ways": {
                name: {
                    **{metric: encode(number) for metric, number in each.numbers.items()},
                    "brier": dict(zip(map(str, EDGES_S), each.brier.tolist(), strict=True)),
                    "warnings": {
                        f"{rate:g} false alarms an hour": dict(
                            zip(
                                ("threshold", "median_s", "warned", "mean_s"),
                                map(_finite, read_warning_time(each.warnings, rate)),
                                strict=True,
                            )
                        )
                        for rate in RATES
                    },
                }
                for name, each in self.judged.items()
            },
            "differences": {f"{pair}: {metric}": encode(n) for (pair, metric), n in self.differences.items()},
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def run_time_study(
    scenes: Scenes,
    out: Path,
    classifier: Predictor | Any,
    *,
    recipe: Any = None,
    seeds: tuple[int, ...] = (0, 1, 2),
    resamples: int = 1000,
    unseen: Scenes | None = None,
    progress: Progress | None = None,
) -> TimeStudy:
    """Fit trees and networks of the time, and judge them beside what needs no fit, on the test split or on other streets.

    A seed whose network stands in the folder is not fitted again.

    Args:
        scenes: JAAD, or simulated streets: their train split is learnt from, validation chooses.
        out: folder: `hazard-trees.npz`, `seed-0/model.safetensors`, ... and results.json.
        classifier: a predictor of the action, asked at the same moments.
        recipe: a `training.pedestrians.hazard.HazardRecipe` (default: the usual one).
        seeds: of the networks, whose mean is judged.
        resamples: most weightings of people and videos for intervals; 0 for none.
        unseen: all of it is judged (default: the test split of `scenes`).
        progress: called with what is done and the total.

    Raises:
        InputError: if the scenes do not say who crosses when.
        DiskError: if the folder cannot be written to.
    """
    from roadaware.training.pedestrians.hazard import HazardRecipe

    recipe = recipe or HazardRecipe()
    protocol = get_protocol(PROTOCOL, "default")
    names = tuple(dict.fromkeys((*recipe.inputs, "centre", "history", *classifier.inputs)))
    moments = Moments(RATE_FPS, FRAMES)
    with hold_folder(out):
        write_atomically(
            out / "study.json", encode_json({"format": FORMAT, "recipe": to_dict(recipe)}).encode()
        )
        splits = {
            split: collect_times(scenes, protocol, split, moments, names)
            for split in ("train", "val", *(("test",) if unseen is None else ()))
        }
        if unseen is not None:
            splits["test"] = collect_times(unseen, protocol, None, moments, names)
        train, val, test = splits["train"], splits["val"], splits["test"]
        # The trees of the folder, fitted where it has none
        config, path = HazardTreesConfig(), out / TREES_FILE
        if not path.is_file():
            # As `measure_limits`: smaller than 99 of 100 boxes that were learnt from is unknown.
            share = np.exp(
                train.inputs.columns["history"].take(np.arange(len(train)))[
                    :, -1, FEATURES.index("log_height")
                ]
            )
            facts = {
                **_describe(scenes.meta.dataset),
                "limits": {"height": round(float(np.quantile(share, 0.01)), 4)},
            }
            HazardTrees.fit(train.inputs, train.time_s, train.event, name_spans(), facts, config).save(path)
        held = HazardTrees.open(path)
        if held.config != config:
            raise InputError("other settings made these trees", where=str(path), hint="name another folder")
        trees = held
        networks = _fit(train, val, recipe, seeds, out, progress, scenes.meta.dataset)
        judged = _judge_all(train, val, test, trees, networks, classifier, resamples)
        counts = {
            split: {
                "people": len(of.people), "crossers": int(np.isfinite(of.event_s).sum()), "moments": len(of),
                "hours": of.hours, "left_out": of.left_out,
            }
            for split, of in splits.items()
        }  # fmt: skip
        differences = _compare(judged, test, resamples)
        found = TimeStudy(judged, differences, test, counts, seeds, to_dict(recipe))
        write_atomically(out / "results.json", (json.dumps(found.as_dict(), indent=2) + "\n").encode())
    return found


def _describe(dataset: str) -> dict[str, Any]:
    """Facts for the file of a predictor of the time."""
    data = "JAAD 2.0, annotations of the train split (Rasouli, Kotseruba and Tsotsos, 2017), MIT"
    return {
        "data": data if dataset.lower() == "jaad" else dataset, "fps": RATE_FPS,
        "protocol_config": {"observation_frames": FRAMES}, "edges_s": list(EDGES_S),
    }  # fmt: skip


def fit_same_classifier(
    train: TimedTracks, config: HazardTreesConfig | None = None, seed: int = 0
) -> HazardTrees:
    """Trees that say who crosses, of the same features and settings as those of the time: the probability of their one span.

    They learn as classifiers of crossing do: people who cross, 1 to 3 s before the event, from everybody else.

    Args:
        train: what they learn from.
        config, seed: as of `HazardTrees.fit`.
    """
    asked = ~train.event | ((train.time_s >= NEAR_S[0]) & (train.time_s <= NEAR_S[1]))
    rows = np.flatnonzero(asked)
    event = train.event[rows]
    # A single span of a second: who crosses does so within it, everybody else outlives it.
    return HazardTrees.fit(
        train.inputs.some(rows), np.where(event, 0.5, 2.0), event, ("crosses", "does not"), {"edges_s": [1.0]},
        config, seed,
    )  # fmt: skip


def _fit(
    train: TimedTracks,
    val: TimedTracks,
    recipe: Any,
    seeds: tuple[int, ...],
    out: Path,
    progress: Progress | None,
    dataset: str,
) -> list[Predictor]:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.training.pedestrians.hazard import fit_hazard

    facts = {**_describe(dataset), "recipe": to_dict(recipe)}
    found = []
    for place, seed in enumerate(seeds):
        path = out / f"seed-{seed}" / "model.safetensors"
        if not path.is_file():

            def report(done: int, total: int, what: str, place: int = place) -> None:
                if progress is not None:
                    progress(place * total + done, len(seeds) * total, what)

            path.parent.mkdir(parents=True, exist_ok=True)
            fit_hazard(train, val, recipe, seed, facts=facts, progress=report).save(path)
        held = Predictor.open(path)
        if held.facts.get("recipe") != to_dict(recipe):
            raise InputError("another recipe made this network", where=str(path), hint="name another folder")
        found.append(held)
    return found


def _judge_all(
    train: TimedTracks,
    val: TimedTracks,
    test: TimedTracks,
    trees: HazardTrees,
    networks: list[Predictor],
    classifier: Any,
    resamples: int,
) -> dict[str, Judged]:
    edges, soon = np.asarray(EDGES_S), EDGES_S.index(SOON_S)
    ways: dict[str, tuple[Floats, Floats, Floats]] = {}
    network = np.mean([each.probabilities(test.inputs) for each in networks], axis=0)
    for name, chance in ((TREES, trees.probabilities(test.inputs)), (HAZARD, network)):
        survival = survive(chance)
        risk = TimedMoments(test.time_s, test.event, survival, edges, test.person).risk
        ways[name] = (survival, risk, 1 - survival[:, soon])
    same = fit_same_classifier(train)
    for name, of_val, of_test in (
        (
            CLASSIFIER,
            classifier.probabilities(val.inputs)[:, -1],
            classifier.probabilities(test.inputs)[:, -1],
        ),
        (SAME, same.probabilities(val.inputs)[:, 0], same.probabilities(test.inputs)[:, 0]),
        (VELOCITY, -estimate_lane_time(val.inputs, RATE_FPS), -estimate_lane_time(test.inputs, RATE_FPS)),
    ):
        ways[name] = (curve_by_score(of_val, val, of_test, edges), of_test, of_test)
    prior = np.tile(kaplan_meier(train.time_s, train.event, edges), (len(test), 1))
    ways[PRIOR] = (prior, np.zeros(len(test)), np.zeros(len(test)))
    return {name: judge(test, *way, resamples=resamples) for name, way in ways.items()}


def curve_by_score(score: Floats, of: TimedTracks, asked: Floats, edges_s: Floats) -> Floats:
    """(n, m) survival of moments by their score: that of validation's moments with a score like theirs.

    Args:
        score: (v,) on validation.
        of: validation.
        asked: (n,) scores.
        edges_s: (m,) horizons.
    """
    cuts = np.unique(np.quantile(score, np.linspace(0, 1, BINS + 1)[1:-1]))
    place, wanted = np.searchsorted(cuts, score), np.searchsorted(cuts, asked)
    whole = kaplan_meier(of.time_s, of.event, edges_s)
    curves = np.stack([
        kaplan_meier(of.time_s[place == b], of.event[place == b], edges_s) if (place == b).any() else whole
        for b in range(len(cuts) + 1)
    ])  # fmt: skip
    return np.asarray(curves[wanted])


def judge(test: TimedTracks, survival: Floats, risk: Floats, alarm: Floats, *, resamples: int = 0) -> Judged:
    """What a way of predicting the time is worth on test.

    Args:
        test: moments with the truth.
        survival: (n, m) at `EDGES_S`.
        risk: (n,) the larger, the earlier.
        alarm: (n,) what an alarm listens to.
        resamples: most weightings for intervals.
    """
    edges = np.asarray(EDGES_S)
    moments = TimedMoments(test.time_s, test.event, survival, edges, test.person)
    parts = sum_by_person(test, moments, risk)
    curve = calibration_in_time(moments)
    numbers = {name: _measure(parts, test, name, resamples) for name in METRICS[:-1]}
    numbers["calibration_error"] = Number(float(calibration_error(curve).mean()))
    terms = brier_terms(moments)
    warnings = measure_warnings(alarm, test.table["t_s"].to_numpy(), test.person, test.event_s, test.hours)
    return Judged(numbers, np.nanmean(terms, axis=0), curve, warnings, survival, alarm)


@dataclass(frozen=True, eq=False)
class PersonSums:
    """Sums by person that weightings of people turn into metrics, p people.

    Args:
        concordant, comparable: (p, p).
        brier: (p,) sums of integrated Brier terms; moments: (p,) how many.
        ranked, pairs: (p, p) near moments above far ones, and pairs of both.
    """

    concordant: Floats
    comparable: Floats
    brier: Floats
    moments: Floats
    ranked: Floats
    pairs: Floats

    def measure(self, metric: str, weight: Floats) -> Floats:
        """(w,) a metric under weights (w, p) of people."""
        weight = weight.astype(np.float64)

        def share(over: Floats, under: Floats) -> Floats:
            top = np.einsum("wp,pq,wq->w", weight, over, weight, optimize=True)
            bottom = np.einsum("wp,pq,wq->w", weight, under, weight, optimize=True)
            shares: Floats = np.divide(top, bottom, out=np.full(len(weight), np.nan), where=bottom > 0)
            return shares

        if metric == "concordance":
            return share(self.concordant, self.comparable)
        if metric == "near_far_auc":
            return share(self.ranked, self.pairs)
        return np.asarray(weight @ self.brier / np.maximum(weight @ self.moments, 1))


def sum_by_person(test: TimedTracks, moments: TimedMoments, risk: Floats) -> PersonSums:
    """The sums of a way of predicting."""
    people = len(test.people)
    some = np.arange(0, len(test), CONCORDANCE_EVERY)
    concordant, comparable = count_concordant(
        risk[some], test.time_s[some], test.event[some], test.person[some], people
    )
    terms = integrate_brier(np.nan_to_num(brier_terms(moments)), moments.horizon_s)
    brier = np.bincount(test.person, weights=terms, minlength=people).astype(np.float64)
    count = np.bincount(test.person, minlength=people).astype(np.float64)
    near = test.event & (test.time_s >= NEAR_S[0]) & (test.time_s <= NEAR_S[1])
    far = test.event & (test.time_s > FAR_S)
    ranked, pairs = np.zeros((people, people)), np.zeros((people, people))
    rows, columns = np.flatnonzero(near), np.flatnonzero(far)
    if len(rows) and len(columns):
        above = (risk[rows, None] > risk[columns]) + 0.5 * (risk[rows, None] == risk[columns])
        place = (test.person[rows][:, None], test.person[columns][None])
        np.add.at(ranked, place, above)
        np.add.at(pairs, place, 1.0)
    return PersonSums(concordant, comparable, brier, count, ranked, pairs)


def _measure(parts: PersonSums, test: TimedTracks, metric: str, resamples: int) -> Number:
    value = float(parts.measure(metric, np.ones((1, len(test.people))))[0])
    if not np.isfinite(value):
        return Number(None)
    ends = {
        unit: _interval(test, unit, resamples, value, lambda w: parts.measure(metric, w))
        for unit in ("pedestrian", "video")
    }
    return Number(value, ends["pedestrian"], ends["video"])


def _interval(
    test: TimedTracks,
    unit: str,
    resamples: int,
    value: float,
    measure: Callable[[Floats], Floats],
    scale: Any = "share",
) -> tuple[float, float] | None:
    names = test.units if unit == "pedestrian" else test.videos
    units = Units.of(names, resamples, 0) if resamples else None
    if units is None:
        return None
    drawn = np.concatenate([measure(weights.astype(np.float64)) for weights in units.weights()])
    found = units.interval(value, drawn, scale)
    return None if found.low is None or found.high is None else (found.low, found.high)


def _compare(judged: dict[str, Judged], test: TimedTracks, resamples: int) -> dict[tuple[str, str], Number]:
    """Paired differences of the trees from the others, under the same weightings."""
    edges = np.asarray(EDGES_S)
    parts = {}
    for name, each in judged.items():
        moments = TimedMoments(test.time_s, test.event, each.survival, edges, test.person)
        risk = moments.risk if name in (TREES, HAZARD) else each.alarm
        parts[name] = sum_by_person(test, moments, risk)
    found = {}
    for other in (HAZARD, CLASSIFIER, SAME, VELOCITY, PRIOR):
        for metric in METRICS[:-1]:
            one, two = judged[TREES].numbers[metric].value, judged[other].numbers[metric].value
            if one is None or two is None:
                continue

            def apart(weights: Floats, metric: str = metric, other: str = other) -> Floats:
                return parts[TREES].measure(metric, weights) - parts[other].measure(metric, weights)

            ends = {
                unit: _interval(test, unit, resamples, one - two, apart, "difference")
                for unit in ("pedestrian", "video")
            }
            found[f"{TREES} - {other}", metric] = Number(one - two, ends["pedestrian"], ends["video"])
    return found
