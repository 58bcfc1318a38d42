"""Predictors abroad: an alarm without labels, and calibration and sets that learn from outcomes that arrive later."""

from __future__ import annotations

import heapq
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import from_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.protocols.cross_dataset import fits
from roadaware.protocols.cross_dataset.cells import LEVEL, fit_conformal
from roadaware.protocols.cross_dataset.config import AwayStudy, CrossResults, Fit
from roadaware.protocols.cross_dataset.fits import FPS, load_material
from roadaware.statistics.adaptation import AdaptiveConformal, AdaptivePredictor, OnlinePlatt, ShiftAlarm
from roadaware.statistics.calibration import AdaptiveBins, expected_calibration_error
from roadaware.statistics.intervals import Units
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_tracks import read_moments
from roadaware.tasks.pedestrians import Examples, build_examples

Progress = Callable[[int, int, str], None]

FORMAT = "roadaware-abroad"
MARKER, RESULTS, CELLS = "study.json", "results.json", "cells.parquet"
AWAY = "train and test"
BUNDLED, BUNDLED_HOME = "crossing-jaad (bundled)", "jaad-all"
"""The bundled predictor learnt on JAAD's train split, so that all of JAAD is its home."""
SETTLE_S = 60.0
"""What comes after so much of a stream is judged as `after a minute`."""
LONG_S = 180.0
"""A test split whose stream is shorter goes on with the train split, where the model has learnt on other roads."""
FEWEST = 50
"""Samples below which a calibration error says nothing."""
NUMBERS = (
    "height of the box", "x of the centre", "y of the feet", "width for its height", "its change", "way across", "way down",
    "growth", "tremor across", "tremor down", "tremor of the height", "tremor of the width for its height",
)  # fmt: skip
"""What the alarm hears of people, as means over those of a video: boxes alone, whatever a model says of them. How many they
are comes behind."""
KEEPS, SLOPES, RATES = (0.97, 0.985, 0.995), (0.1, 0.3, 0.6), (0.02, 0.05, 0.1)
"""What is tried on validation: memory and prior of the calibration, and rates of the sets."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """The samples of a split of a domain, as a stream gives them.

    Args:
        truth: (n,) 1 where the person crosses.
        person: (n,) names.
        video: (n,) names.
        seen_s: (n,) when each is asked, on the clock of its video.
        known_s: (n,) when its outcome is known: at the event.
        numbers: (n, numbers) of the alarm, see `NUMBERS`.
    """

    truth: Ints
    person: npt.NDArray[np.str_]
    video: npt.NDArray[np.str_]
    seen_s: Floats
    known_s: Floats
    numbers: Floats

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True)
class Adaptation:
    """How states adapt.

    Args:
        keep, prior_slope: of `OnlinePlatt`.
        rate: of `AdaptiveConformal`.
        chance: of a false alarm.
    """

    keep: float = 0.985
    prior_slope: float = 0.3
    rate: float = 0.05
    chance: float = 0.05


@dataclass(frozen=True, eq=False)
class Streamed:
    """What a stream said, in the order of the samples of the crowd.

    Args:
        time_s: (n,) on the clock of the stream.
        probability: (n,) calibrated, as it was when asked.
        labels: (n, 2) of the adaptive sets.
    """

    time_s: Floats
    probability: Floats
    labels: Bools


@dataclass(frozen=True)
class AbroadCell:
    """A model that learnt on one domain, on a stream of another.

    Numbers are means over orders of the videos. `_late` ones are of what comes after a minute.

    Args:
        model, trained_on, tested_on: whose.
        samples, people, seconds: of the stream.
        late_samples: mean number that come after a minute.
        coverage_before, size_before, coverage_late_before: of split conformal sets whose threshold stays.
        coverage_after, size_after, coverage_late: of adaptive sets.
        low, high: 95 % interval of `coverage_after` over pedestrians; None where there are too few.
        ece_before: of the predictor as it is, on all samples; ece_late_before: on the late ones.
        ece_late: of the calibrated probabilities on the late ones; None where there are too few.
        alarmed: share of orders in which the alarm was raised; videos_to_alarm: median number of videos until then.
    """

    model: str
    trained_on: str
    tested_on: str
    samples: int
    people: int
    seconds: float
    late_samples: float
    coverage_before: float
    size_before: float
    coverage_late_before: float | None
    coverage_after: float
    size_after: float
    coverage_late: float | None
    low: float | None
    high: float | None
    ece_before: float
    ece_late_before: float | None
    ece_late: float | None
    alarmed: float
    videos_to_alarm: float | None

    @property
    def is_home(self) -> bool:
        """Whether it is tested where it learnt."""
        homes = ("jaad-all", "jaad-behaviour") if self.model == BUNDLED else (self.trained_on,)
        return self.tested_on in homes


@dataclass(frozen=True, eq=False)
class AbroadStudy:
    """Results of all cells, how states adapted, and what was tried on validation."""

    cells: tuple[AbroadCell, ...]
    adaptation: Adaptation
    tried: tuple[dict[str, float], ...]
    orders: int
    domains: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "adaptation": asdict(self.adaptation), "tried": list(self.tried), "orders": self.orders,
            "domains": list(self.domains), "cells": [asdict(cell) for cell in self.cells],
        }  # fmt: skip


def run_abroad_study(
    source: Path, out: Path, *, orders: int = 10, resamples: int = 1000, progress: Progress | None = None
) -> AbroadStudy:
    """Every model of a cross-dataset study, and the bundled predictor, on streams of every domain.

    A stream is the test split of a domain: its videos one after another in a drawn order, every sample asked when its last
    box is seen, and its outcome known when the event comes, one to two seconds later. Away from home a stream that is shorter
    than `LONG_S` takes the train split of its domain too, which the model has not seen either. How fast states adapt is
    chosen on streams of the validation splits, by cells away from home; test is then asked once.

    Args:
        source: folder of a `roadaware cross-dataset`.
        out: folder: `cells.parquet`, `results.json`.
        orders: of the videos of each stream, seeds 0, 1, ...
        resamples: most weightings for intervals.
        progress: called with cells done, their number, and in words.

    Raises:
        InputError: if `source` holds no such study, or it has no model.
    """
    if orders < 1:
        raise UsageError(f"orders is 1 or more, not {orders}")
    results = CrossResults.open(source)
    study, domains = _read_study(results)
    models = _load_models(study, domains, source)
    if not models:
        raise InputError("the study has no model that could be asked", where=str(source))
    crowds = {
        (name, split): collect_crowd(source, name, split)
        for name in domains
        for split in ("train", "val", "test")
    }
    with hold_folder(out):
        write_atomically(out / MARKER, encode_json({"format": FORMAT, "source": str(source)}).encode())
        for name in domains:
            if float(draw_clock(crowds[name, "test"], 0)[1].max()) < LONG_S:
                crowds[name, AWAY] = join_crowds(crowds[name, "train"], crowds[name, "test"])
        said: dict[tuple[str, str, str, str], Floats] = {}
        for place, (model, home, ask) in enumerate(models):
            for name in domains:
                for split in ("train", "val", "test"):
                    said[model, home, name, split] = ask(name, split)
                whole = [said[model, home, name, split] for split in ("train", "test")]
                said[model, home, name, AWAY] = np.concatenate(whole)
            if progress is not None:
                progress(place + 1, 2 * len(models), "models asked")
        adaptation, tried = choose_adaptation(
            [(model, home) for model, home, _ in models], domains, crowds, said
        )
        cells = []
        for place, (model, home, _) in enumerate(models):
            cells += [
                judge_stream(model, home, name, crowds, said, adaptation, orders, resamples)
                for name in domains
            ]
            if progress is not None:
                progress(len(models) + place + 1, 2 * len(models), f"streams of {model} from {home}")
        found = AbroadStudy(tuple(cells), adaptation, tried, orders, domains)
        stream = io.BytesIO()
        pl.DataFrame([asdict(cell) for cell in cells]).write_parquet(stream)
        write_atomically(out / CELLS, stream.getvalue())
        write_atomically(out / RESULTS, (json.dumps(found.as_dict(), indent=2) + "\n").encode())
    return found


def join_crowds(one: Crowd, other: Crowd) -> Crowd:
    """The samples of both; their videos differ."""
    return Crowd(
        *(np.concatenate([getattr(one, each.name), getattr(other, each.name)]) for each in fields(Crowd))
    )


def get_stream(home: str, name: str, crowds: dict[tuple[str, str], Crowd]) -> str:
    """The split whose samples make the stream of a domain for a model from another, or from it.

    Domains of one data set share people: there it is always the test split.
    """
    related = home.partition("-")[0] == name.partition("-")[0] or home == name
    return AWAY if not related and (name, AWAY) in crowds else "test"


def _read_study(results: CrossResults) -> tuple[AwayStudy, tuple[str, ...]]:
    study = from_dict(AwayStudy, results.study["config"])
    return study, tuple(name for name in study.names if name in results.study["domains"])


Ask = Callable[[str, str], Floats]


def _load_models(study: AwayStudy, domains: tuple[str, ...], source: Path) -> list[tuple[str, str, Ask]]:
    """Each fit of seed 0 that stands in the folder, and the bundled predictor where its home is a domain."""
    found: list[tuple[str, str, Ask]] = []
    for model in study.models:
        for home in domains:
            fit = Fit(model, home, 0, "none")
            if fits.get_model_path(fit, source).is_file():
                found.append((model, home, fits.load_predictor(fit, "deterministic", study, source)))
    if BUNDLED_HOME in domains:
        found.append((BUNDLED, BUNDLED_HOME, lambda domain, split: ask_bundled(source, domain, split)))
    return found


def ask_bundled(source: Path, domain: str, split: str) -> Floats:
    """(n,) what the bundled predictor says of the samples of a domain: of their newest 15 boxes."""
    from roadaware.models.crossing.ensemble import EnsemblePredictor

    predictor = EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]])
    cut = load_material(source, domain).cut
    frames = read_moments(predictor).frames
    # By boxes and not by frames: a track may have holes.
    seen = cut.samples.select("sample", "tube", "start_frame", "end_frame").join(
        cut.boxes.select("tube", "frame"), on="tube"
    )
    seen = seen.filter(pl.col("frame").is_between(pl.col("start_frame"), pl.col("end_frame"), closed="left"))
    begins = seen.group_by("sample").agg(begins=pl.col("frame").sort().tail(frames).first())
    newest = cut.samples.join(begins, on="sample", how="left", maintain_order="left")
    newest = newest.with_columns(start_frame="begins").drop("begins")
    given = build_inputs(cut.with_tables(samples=newest), split, list(predictor.inputs))
    return np.asarray(predictor.probabilities(given)[:, -1], dtype=np.float64)


def collect_crowd(source: Path, domain: str, split: str) -> Crowd:
    """The samples of a split of a domain of a study."""
    cut = load_material(source, domain).cut
    examples = build_examples(cut, split)
    ends = dict(cut.samples.select("sample", "end_frame").iter_rows())
    seen = np.array([ends[sample] for sample in examples.sample.tolist()], dtype=np.float64) / FPS
    return Crowd(
        examples.truth, examples.pedestrian, examples.video, seen,
        seen + np.maximum(examples.tte_frames, 0) / FPS, _measure(examples),
    )  # fmt: skip


def _measure(examples: Examples) -> Floats:
    """(n, numbers) `NUMBERS` of each sample; ways and tremors (mean second differences) in heights of the newest box."""
    boxes = examples.boxes.astype(np.float64)
    width, height = (np.maximum(boxes[..., k + 2] - boxes[..., k], 1e-6) for k in (0, 1))
    last = height[:, -1:]
    x, y = (boxes[..., 0] + boxes[..., 2]) / 2 / last, boxes[..., 3] / last
    logs, shape = np.log(height), np.log(width / height)
    return np.column_stack([
        np.log(height[:, -1] / examples.height_px), x[:, -1] * last[:, 0] / examples.width_px,
        boxes[:, -1, 3] / examples.height_px, shape.mean(axis=1), shape.std(axis=1), np.abs(x[:, -1] - x[:, 0]),
        np.abs(y[:, -1] - y[:, 0]), logs[:, -1] - logs[:, 0],
        *(np.abs(np.diff(values, 2, axis=1)).mean(axis=1) for values in (x, y, logs, shape)),
    ])  # fmt: skip


def describe_videos(crowd: Crowd) -> dict[str, list[float]]:
    """What the alarm hears of each video: the means of `NUMBERS`, and the logarithm of how many people are asked about."""
    found = {}
    for video in np.unique(crowd.video).tolist():
        rows = crowd.video == video
        people = len(np.unique(crowd.person[rows]))
        found[video] = [*crowd.numbers[rows].mean(axis=0).tolist(), float(np.log(people))]
    return found


def draw_clock(crowd: Crowd, order: int) -> tuple[Floats, Floats]:
    """When samples are asked and known on the clock of a stream: videos one after another, without what lies between.

    Args:
        crowd: of samples.
        order: seed of the order of videos.

    Returns:
        (n,) and (n,) seconds from the first sample of the stream.
    """
    videos = np.unique(crowd.video)
    asked, known, start = np.empty(len(crowd)), np.empty(len(crowd)), 0.0
    for video in np.random.default_rng(order).permutation(videos):
        rows = np.flatnonzero(crowd.video == video)
        begin = crowd.seen_s[rows].min()
        asked[rows] = start + crowd.seen_s[rows] - begin
        known[rows] = start + crowd.known_s[rows] - begin
        start += float(crowd.known_s[rows].max() - begin)
    return asked, known


def run_stream(
    crowd: Crowd, probability: Floats, sets: AdaptiveConformal, platt: OnlinePlatt, order: int
) -> Streamed:
    """Ask every sample when it is seen, and learn from every outcome when it is known.

    Args:
        crowd: of samples.
        probability: (n,) of the predictor.
        sets, platt: states at the beginning.
        order: seed of the order of videos.
    """
    asked, known = draw_clock(crowd, order)
    stream = AdaptivePredictor(platt, sets, most=max(1, len(crowd)))
    said, labels = np.empty(len(crowd)), np.empty((len(crowd), 2), dtype=bool)
    waiting: list[tuple[float, int]] = []
    for row in np.argsort(asked, kind="stable").tolist():
        while waiting and waiting[0][0] <= asked[row]:
            _, past = heapq.heappop(waiting)
            stream.observe(str(past), int(crowd.truth[past]))
        found = stream.predict(str(row), float(probability[row]))
        said[row], labels[row] = found.probability, found.labels
        heapq.heappush(waiting, (float(known[row]), row))
    return Streamed(asked, said, labels)


def listen(crowd: Crowd, alarm: ShiftAlarm, order: int) -> int | None:
    """After how many videos the alarm is raised; None where it is not.

    People of one video hang together: videos are what could be exchanged, and are heard whole.

    Args:
        crowd: of samples.
        alarm: at the beginning.
        order: seed of the order of videos.
    """
    heard = describe_videos(crowd)
    asked, _ = draw_clock(crowd, order)
    for video in dict.fromkeys(crowd.video[np.argsort(asked, kind="stable")].tolist()):
        alarm = alarm.update(heard[video])
    return alarm.raised_at


def _error(probability: Floats, truth: Ints) -> float | None:
    """ECE in the corrected adaptive bins of what was thought likelier."""
    if len(truth) < FEWEST:
        return None
    likelier = probability >= 0.5
    confidence = np.where(likelier, probability, 1 - probability)
    return float(expected_calibration_error(confidence, likelier == (truth == 1), AdaptiveBins.default()))


def choose_adaptation(
    models: list[tuple[str, str]],
    domains: tuple[str, ...],
    crowds: dict[tuple[str, str], Crowd],
    said: dict[tuple[str, str, str, str], Floats],
) -> tuple[Adaptation, tuple[dict[str, float], ...]]:
    """Memory and prior with the least ECE, and the rate whose sets come nearest to what they promise, on validation away.

    Args:
        models: name and home of each.
        domains: all.
        crowds: by domain and split.
        said: by model, home, domain and split.
    """
    away = [
        (model, home, name)
        for model, home in models
        for name in domains
        if name != home and not (model == BUNDLED and name == "jaad-behaviour")
    ]
    tried = []
    best, least = Adaptation(), np.inf
    for keep in KEEPS:
        for slope in SLOPES:
            errors = []
            for model, home, name in away:
                crowd = crowds[name, "val"]
                sets = AdaptiveConformal.calibrate(
                    said[model, home, home, "val"], crowds[home, "val"].truth, 1 - LEVEL
                )
                stream = run_stream(crowd, said[model, home, name, "val"], sets, OnlinePlatt(keep, slope), 0)
                # Validation streams are short: what comes after their first third is judged.
                late = stream.time_s >= min(SETTLE_S, float(np.quantile(stream.time_s, 1 / 3)))
                error = _error(stream.probability[late], crowd.truth[late])
                errors += [] if error is None else [error]
            mean = float(np.mean(errors)) if errors else np.inf
            tried.append({"keep": keep, "prior_slope": slope, "ece": mean})
            if mean < least:
                best, least = Adaptation(keep, slope), mean
    rate, nearest = best.rate, np.inf
    for step in RATES:
        gaps = []
        for model, home, name in away:
            crowd = crowds[name, "val"]
            sets = AdaptiveConformal.calibrate(
                said[model, home, home, "val"], crowds[home, "val"].truth, 1 - LEVEL, step
            )
            stream = run_stream(
                crowd, said[model, home, name, "val"], sets, OnlinePlatt(best.keep, best.prior_slope), 0
            )
            gaps.append(max(0.0, LEVEL - float(stream.labels[np.arange(len(crowd)), crowd.truth].mean())))
        tried.append({"rate": step, "coverage_gap": float(np.mean(gaps)) if gaps else np.inf})
        if tried[-1]["coverage_gap"] < nearest:
            rate, nearest = step, tried[-1]["coverage_gap"]
    return Adaptation(best.keep, best.prior_slope, rate), tuple(tried)


def judge_stream(
    model: str,
    home: str,
    name: str,
    crowds: dict[tuple[str, str], Crowd],
    said: dict[tuple[str, str, str, str], Floats],
    adaptation: Adaptation,
    orders: int,
    resamples: int,
) -> AbroadCell:
    """A model from one domain on streams of another.

    Args:
        model, home, name: whose, where it learnt, where it is asked.
        crowds: by domain and split.
        said: by model, home, domain and split.
        adaptation: how states adapt.
        orders: of videos.
        resamples: most weightings for the interval.
    """
    split = get_stream(home, name, crowds)
    crowd, probability = crowds[name, split], said[model, home, name, split]
    held, known = said[model, home, home, "val"], crowds[home, "val"]
    rows = np.arange(len(crowd))
    fixed = fit_conformal(held, known.truth).sets(probability[:, None])
    hits = fixed[rows, crowd.truth].astype(np.float64)
    sets = AdaptiveConformal.calibrate(held, known.truth, 1 - LEVEL, adaptation.rate)
    platt = OnlinePlatt(adaptation.keep, adaptation.prior_slope)
    known_videos = [
        row for split in ("train", "val") for row in describe_videos(crowds[home, split]).values()
    ]
    alarm = ShiftAlarm(tuple(map(tuple, known_videos)), adaptation.chance)
    covered, sizes, late_counts = [], [], []
    late_hits, late_before, errors, errors_before, alarms = [], [], [], [], []
    for order in range(orders):
        stream = run_stream(crowd, probability, sets, platt, order)
        late = stream.time_s >= SETTLE_S
        covered.append(stream.labels[rows, crowd.truth])
        sizes.append(stream.labels.sum(axis=1).mean())
        late_counts.append(int(late.sum()))
        if late.sum() >= FEWEST:
            late_hits.append(covered[-1][late].mean())
            late_before.append(hits[late].mean())
            errors.append(_error(stream.probability[late], crowd.truth[late]))
            errors_before.append(_error(probability[late], crowd.truth[late]))
        alarms.append(listen(crowd, alarm, order))
    mean_hits = np.mean(covered, axis=0)
    low, high = _interval(mean_hits, crowd.person, resamples)
    raised = [heard for heard in alarms if heard is not None]

    def mean(values: list[Any]) -> float | None:
        return float(np.mean(values)) if len(values) == orders else None

    whole = _error(probability, crowd.truth)
    return AbroadCell(
        model, home, name, len(crowd), len(np.unique(crowd.person)), float(draw_clock(crowd, 0)[1].max()),
        float(np.mean(late_counts)), float(hits.mean()), float(fixed.sum(axis=1).mean()), mean(late_before),
        float(mean_hits.mean()), float(np.mean(sizes)), mean(late_hits),
        low, high, float("nan") if whole is None else whole, mean(errors_before), mean(errors), len(raised) / orders,
        float(np.median(raised)) if raised else None,
    )  # fmt: skip


def _interval(
    hits: Floats, person: npt.NDArray[np.str_], resamples: int
) -> tuple[float | None, float | None]:
    units = Units.of(person, resamples, 0) if resamples else None
    if units is None:
        return None, None
    drawn = np.concatenate([(each @ hits) / each.sum(axis=1) for each in units.weights()])
    found = units.interval(float(hits.mean()), drawn)
    return found.low, found.high
