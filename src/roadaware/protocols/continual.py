"""Continual event detection: the event head, or the last layers of a detector's heads, learn online from towns, weather and
new classes one after another.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.config import to_dict
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.folders import encode_json, hold_folder, make_folder
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.protocols.event_domains import (
    DETECTOR_TRAIN_S,
    TRAIN_SEED,
    DetectorDomain,
    EventDomain,
    JudgedBoxes,
    Measured,
    Progress,
    Reading,
    Town,
    build_weights,
    check_settings,
    render_domains,
    render_town,
    simulate_domains,
)
from roadaware.statistics.adaptation import average_accuracy, backward_transfer, forgetting, forward_transfer
from roadaware.statistics.intervals import Units, select_interval_method
from roadaware.training.events.detector_heads import collect_truth, match_labels
from roadaware.training.events.online import MOST_STATE, ContinualLearner, FitConfig, LearnerConfig, fit_tubes
from roadaware.training.events.rows import (
    AV_LABELS,
    DetectorErrors,
    MotionNoise,
    TubeRows,
    iterate_linked_frames,
    join_tube_rows,
    make_tube_rows,
    simulate_inputs,
)

FORMAT = "roadaware-continual"
MARKER, RESULTS, CELLS, TIMING, SCENES, DETECTOR = (
    "study.json",
    "results.json",
    "cells.parquet",
    "timing.json",
    "scenes",
    "detector.safetensors",
)
_DELETE = "delete it: it is learnt again"
TRAIN_EVERY = 2
"""Every so many-th frame of a stream is learnt from."""
VEHICLE_SHARE = 4
"""Seconds of the own vehicle that replay keeps: one for so many tubes, about the same share of the stream."""
VEHICLE_BATCH = 32
"""There is one own vehicle in a frame, where there are some six boxes: so both take about as many steps in a minute."""
Learns = Literal["events", "detector"]
"""What learns: the event head, or the last layers of the bundled detector's heads."""


@dataclass(frozen=True)
class Plan:
    """How a stream is learnt from.

    Args:
        boxes, vehicle: how boxes and the own vehicle's actions are.
        memory_tubes: that the reservoir holds.
        train_scenes, test_scenes: of each simulated town.
        rounds: how often the scenes that are learnt from are driven through.
    """

    boxes: LearnerConfig
    vehicle: LearnerConfig
    memory_tubes: int
    train_scenes: int
    test_scenes: int
    rounds: int


_LINEAR = LearnerConfig(hidden=(), batch=64)
PLANS: dict[Learns, Plan] = {
    "events": Plan(LearnerConfig(), LearnerConfig(batch=VEHICLE_BATCH), 400, 12, 8, 3),
    "detector": Plan(_LINEAR, replace(_LINEAR, batch=VEHICLE_BATCH), 50, 16, 10, 1),
}
"""Images do not change from round to round, as errors of a detector do that are drawn."""

NEW_LABELS = (
    "action/TurLft", "action/TurRht", "action/Wait2X", "action/XingFmLft", "action/XingFmRht",
    "location/Jun", "location/xing", "location/BusStop",
)  # fmt: skip
"""What nobody annotates before the last of the simulated experiences."""
NIGHT_ERRORS = DetectorErrors(jitter=0.05, miss=0.25, ghosts=1.2, confusion=0.15)
"""The worst that scenes of the event head's training set draw; at night by assumption, not by measurement."""
NIGHT_MOTION = MotionNoise(lost=0.4, dark=1.0)
"""At night in rain two fifths of the frames gave no estimate of the own motion (docs/events.md)."""
TOWNS = (
    Town("left-day", "city-a: left-hand traffic, clear day", "city-a", hidden=NEW_LABELS),
    Town("right-day", "city-b: right-hand traffic, two lanes, dense, overcast day", "city-b", hidden=NEW_LABELS),
    Town(
        "night-rain", "night-rain: left-hand traffic, more errors of the detector, own motion lost in two of five frames",
        "night-rain", hidden=NEW_LABELS, errors=NIGHT_ERRORS, noise=NIGHT_MOTION,
    ),
    Town("snow", "snow-suburb: left-hand traffic, few junctions, thin traffic", "snow-suburb", hidden=NEW_LABELS),
    Town("new-classes", "harbour: right-hand traffic, three lanes, eight labels more", "harbour"),
)  # fmt: skip

FINE_TUNING, REPLAY, JOINT, UNLEARNT = "fine-tuning", "replay", "joint training", "no learning"
AVERAGED, AVERAGED_EXPERIENCES, REPLAY_AVERAGED = (
    "mean over steps", "mean over experiences", "replay, mean over steps",
)  # fmt: skip
SINGLE, DISTILLED = "replay, one box of a tube", "replay, one box of a tube, distilled"
WITH_REPLAY = (REPLAY, SINGLE, DISTILLED, REPLAY_AVERAGED)


def build_methods(memory_tubes: int, config: LearnerConfig) -> dict[str, LearnerConfig]:
    """The rows that learn online, by name.

    Args:
        memory_tubes: that the reservoir of those with replay holds; of rows with one box of a tube as many boxes.
        config: of fine-tuning; as many boxes of the memory join those of a batch.
    """
    plain = replace(config, replay=config.batch)
    # As many boxes, and so as many bytes, of more tubes: those of one tube are much alike.
    single = replace(plain, memory_tubes=memory_tubes * plain.tube_rows, tube_rows=1)
    return {
        FINE_TUNING: plain,
        AVERAGED: replace(plain, average="steps"),
        AVERAGED_EXPERIENCES: replace(plain, average="experiences"),
        REPLAY: replace(plain, memory_tubes=memory_tubes),
        SINGLE: single,
        DISTILLED: replace(single, replay=2 * plain.batch, replay_weight=2.0, distil=3.0),
        REPLAY_AVERAGED: replace(plain, memory_tubes=memory_tubes, average="steps"),
    }


@dataclass(frozen=True)
class Experience:
    """One stretch of the stream, and what it is tested on.

    Args:
        name, about: of the domain.
        train_scenes, test_scenes: how many.
        seconds: of video that is learnt from.
        boxes, tubes: of linked tubes that are learnt from.
        test_boxes: that are judged.
        judged: labels whose average precision counts.
        passed: labels that are annotated and true in too few test scenes.
        new: labels that no experience before it annotated.
        left_out: what was not taken of its tables.
    """

    name: str
    about: str
    train_scenes: int
    test_scenes: int
    seconds: float
    boxes: int
    tubes: int
    test_boxes: int
    judged: tuple[str, ...]
    passed: tuple[str, ...]
    new: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class MethodResult:
    """What a way of learning came to.

    Args:
        name: of the row.
        matrix: (T + 1, T) mean average precision before the first and after each experience, on the test of each; the mean
            over seeds. Of joint training and of no learning one row.
        average, forgetting, backward, forward: see `statistics.adaptation`; None where the row has no such number.
        memory_bytes: of network, optimiser, batch and reservoir at the end; None of joint training, which keeps all.
    """

    name: str
    matrix: tuple[tuple[float, ...], ...]
    average: Measured
    forgetting: Measured | None
    backward: Measured | None
    forward: Measured | None
    memory_bytes: int | None

    def find_first_moment(self, experiences: int) -> int:
        """After how many experiences the first row of the matrix is: the last of joint training, 0 of no learning."""
        return 0 if self.name == UNLEARNT else experiences + 1 - len(self.matrix)


@dataclass(frozen=True, eq=False)
class ContinualStudy:
    """Results of all rows.

    Args:
        experiences: in their order.
        methods: rows.
        differences: name of a row to its average and forgetting less those of fine-tuning, paired.
        half: of rows with replay their forgetting less half that of fine-tuning, paired: below 0 where the aim is met.
        memory_tubes: of the reservoir.
        tubes: of the whole stream.
        seeds: how many.
        scenes: that intervals are over.
        timing: CPU seconds for a minute of stream: `inference` of linker, features and head (or of detector and linker), and
            with learning each row's.
        learns: what does.
        gains: name of a row to its average less that of no learning, paired; empty of the event head, which begins empty.
        vehicle: the same of the own vehicle's actions, whose `tubes` are stretches of a second; None where an experience
            does not know them.
    """

    experiences: tuple[Experience, ...]
    methods: tuple[MethodResult, ...]
    differences: dict[str, dict[str, Measured]]
    half: dict[str, Measured]
    memory_tubes: int
    tubes: int
    seeds: int
    scenes: int
    timing: dict[str, dict[str, float]] = field(default_factory=dict)
    vehicle: ContinualStudy | None = None
    learns: Learns = "events"
    gains: dict[str, Measured] = field(default_factory=dict)

    def get_method(self, name: str) -> MethodResult:
        """The row of a name."""
        return next(method for method in self.methods if method.name == name)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; without what the clock says."""
        return {
            "experiences": [asdict(each) for each in self.experiences],
            "methods": [asdict(each) for each in self.methods],
            "differences": {
                name: {metric: asdict(each) for metric, each in held.items()}
                for name, held in self.differences.items()
            },
            "half": {name: asdict(each) for name, each in self.half.items()},
            "gains": {name: asdict(each) for name, each in self.gains.items()},
            "memory_tubes": self.memory_tubes, "tubes": self.tubes, "seeds": self.seeds, "scenes": self.scenes,
            "learns": self.learns,
        } | ({} if self.vehicle is None else {"vehicle": self.vehicle.as_dict()})  # fmt: skip


def run_continual_study(
    out: Path,
    *,
    domains: Sequence[EventDomain] | None = None,
    learns: Learns = "events",
    seeds: int = 3,
    memory_tubes: int | None = None,
    resamples: int = 1000,
    train_scenes: int | None = None,
    test_scenes: int | None = None,
    progress: Progress | None = None,
) -> ContinualStudy:
    """Learn from experiences in their order, each box once, and test on all of them before the first and after each.

    What is learnt of the event head are the network of tubes (actions and locations) and, of simulated towns, that of the
    own vehicle's actions; the detector, whose tubes these are, stays as it is. Of the detector it is the last layer of its
    labels and that of the own vehicle's actions, on rendered images; all before, boxes and agentness stay. After each
    experience the state of every learner is saved; given again, the study goes on there, to the same bits.

    Args:
        out: folder: `scenes/`, `states/`, `results.json`, `cells.parquet`, `timing.json`; of a detector also
            `detector.safetensors`, with the last layers of distilled replay, first seed.
        domains: experiences in their order, for the event head alone; five simulated towns where None.
        learns: what does.
        seeds: of weights, reservoir and replay: 0, 1, ...
        memory_tubes: that the reservoir holds (default: 400 of the event head, 50 of the detector).
        resamples: most weightings of test scenes for intervals; 0 for none.
        train_scenes, test_scenes: of each simulated town (default: as `PLANS` has it).
        progress: called with what is done, how much there is, and in words.

    Raises:
        UsageError: if there are fewer than two experiences, two of one name, or tables for a detector, which sees images, or
            if the folder holds a study of other settings.
        InputError: if an experience has nothing to be judged.
    """
    if domains is not None and learns == "detector":
        raise UsageError("tables hold no images: the detector's heads learn from simulated towns alone")
    if domains is not None and len(domains) < 2:
        raise UsageError(
            f"a stream has two experiences or more, not {len(domains)}: nothing can be forgotten before"
        )
    plan = PLANS[learns]
    kept = memory_tubes or plan.memory_tubes
    counts = train_scenes or plan.train_scenes, test_scenes or plan.test_scenes
    methods = build_methods(kept, plan.boxes)
    rounds = plan.rounds if domains is None else 1
    names = [town.name for town in TOWNS] if domains is None else [d.name for d in domains]
    settings: dict[str, Any] = {
        "experiences": names,
        "scenes_to_learn_from": counts[0] if domains is None else [len(d.train) for d in domains],
        "scenes_to_test_on": counts[1] if domains is None else [len(d.test) for d in domains],
        "memory_tubes": kept, "learner": to_dict(plan.boxes), "seeds": seeds,
        # States keep accuracy under the weightings of one method of intervals, and both have a number of resamples.
        "resamples": resamples if select_interval_method(resamples) == "jackknife" else f"percentile:{resamples}",
        "every": TRAIN_EVERY, "rounds": rounds,
    }  # fmt: skip
    if domains is not None:
        settings["digest_of_tables"] = [domain.digest for domain in domains]
    if len(set(names)) < len(names):
        raise UsageError(f"experiences have a name each; got {', '.join(names)}")
    check_settings(out / MARKER, FORMAT, settings)
    with hold_folder(out):
        write_atomically(out / MARKER, encode_json({"format": FORMAT, "settings": settings}).encode())
        held: list[EventDomain] | list[DetectorDomain]
        if domains is not None:
            held = list(domains)
        elif learns == "detector":
            held = render_domains(TOWNS, out / SCENES, *counts, TRAIN_EVERY, progress)
        else:
            held = simulate_domains(TOWNS, out / SCENES, *counts, progress)
        boxes, vehicle = _build_streams(held, resamples, rounds)
        total = 2 * len(methods) * seeds + 1 if vehicle else len(methods) * seeds + 1
        done = 0
        first: dict[str, ContinualLearner] = {}

        def learn(stream: _Stream, methods: dict[str, LearnerConfig], prefix: str) -> _Learnt:
            nonlocal done
            cells: dict[str, list[Floats]] = {}
            memory: dict[str, int] = {}
            for name, config in methods.items():
                cells[name] = []
                for seed in range(seeds):
                    path = out / "states" / f"{prefix}{_name_file(name)}-{seed}.npz"
                    found, learner = _run_learner(stream, config, seed, path)
                    cells[name].append(found)
                    memory[name] = learner.memory_bytes
                    first.setdefault(prefix + name, learner)
                    done += 1
                    if progress is not None:
                        progress(done, total, f"{prefix}{name}, seed {seed}")
            fit = FitConfig(hidden=plan.boxes.hidden, lr=plan.boxes.lr)
            if stream.reading.start is not None:
                cells[UNLEARNT] = [found[:1] for found in cells[FINE_TUNING]]
            cells[JOINT] = [_fit_jointly(stream, fit, seed) for seed in range(seeds)]
            return cells, memory

        learnt = learn(boxes, methods, "")
        of_vehicle = None
        if vehicle is not None:
            few = max(1, kept // VEHICLE_SHARE)
            told = learn(vehicle, build_methods(few, plan.vehicle), "vehicle-")
            of_vehicle = replace(_judge(vehicle, told, few, {}), learns=learns)
        if isinstance(held[0], DetectorDomain):
            held[0].heads.write(out / DETECTOR, first[DISTILLED], first.get(f"vehicle-{DISTILLED}"))
        timing = _open_timing(out / TIMING, held, methods)
        if progress is not None:
            progress(total, total, "measured")
        study = replace(_judge(boxes, learnt, kept, timing), vehicle=of_vehicle, learns=learns)
        table = io.BytesIO()
        pl.DataFrame(_list_cells(study)).write_parquet(table)
        write_atomically(out / CELLS, table.getvalue())
        write_atomically(out / RESULTS, encode_json(study.as_dict()).encode())
    return study


_Learnt = tuple[dict[str, list[Floats]], dict[str, int]]
"""Of each row accuracy of each seed, and bytes of its memory."""


@dataclass(frozen=True, eq=False)
class _Stream:
    """The experiences with their boxes, made once, and the weightings of all test scenes."""

    experiences: tuple[Experience, ...]
    train: tuple[list[TubeRows], ...]
    tests: tuple[JudgedBoxes, ...]
    first: tuple[int, ...]
    weights: Ints
    units: Units | None
    reading: Reading

    def measure(self, answer: Callable[[Floats32, Sequence[str]], Floats32]) -> Floats:
        """(T, 1 + weightings) mean average precision on the test of each experience."""
        return np.stack(
            [
                test.measure(answer(test.rows.x, test.judged), self.weights, first)
                for test, first in zip(self.tests, self.first, strict=True)
            ]
        )


def _build_streams(
    domains: Sequence[EventDomain] | Sequence[DetectorDomain], resamples: int, rounds: int
) -> tuple[_Stream, _Stream | None]:
    """The stream of tubes, and that of the own vehicle where all know what it does."""
    weights, units = build_weights(sum(len(domain.test) for domain in domains), resamples)
    experiences: tuple[list[Experience], list[Experience]] = ([], [])
    trains: tuple[list[list[TubeRows]], list[list[TubeRows]]] = ([], [])
    tests: tuple[list[JudgedBoxes], list[JudgedBoxes]] = ([], [])
    first: list[int] = []
    known: set[str] = set()
    stream_scene = test_scene = 0
    for domain in domains:
        parts = domain.make_train_rows(stream_scene, every=TRAIN_EVERY, rounds=rounds)
        asked = domain.make_test_rows(test_scene)
        seconds = rounds * float(sum(scene.n_frames / scene.fps for scene in domain.train))
        for which, labels in enumerate((domain.labels, AV_LABELS)):
            rows = [part[which] for part in parts]
            test = JudgedBoxes.build(asked[which], test_scene)
            trains[which].append(rows)
            tests[which].append(test)
            experiences[which].append(
                Experience(
                    domain.name, domain.about, len(domain.train), len(domain.test), seconds, sum(map(len, rows)),
                    sum(len(np.unique(part.tube)) for part in rows), len(test.rows), test.judged, test.passed,
                    tuple(label for label in labels if label not in known), domain.left_out,
                )
            )  # fmt: skip
            known |= set(labels)
        if not tests[0][-1].judged:
            raise InputError(
                f"experience {domain.name} cannot be judged: no label that it annotates is true in two test scenes "
                f"of its {len(domain.test)}"
            )
        first.append(test_scene)
        stream_scene += len(parts)
        test_scene += len(domain.test)
    boxes, vehicle = (
        _Stream(
            tuple(experiences[which]), tuple(trains[which]), tuple(tests[which]), tuple(first), weights, units, reading,
        )
        for which, reading in enumerate(domains[0].read())
    )  # fmt: skip
    told = all(domain.vehicle for domain in domains) and all(test.judged for test in vehicle.tests)
    return boxes, vehicle if told else None


def _name_file(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _run_learner(
    stream: _Stream, config: LearnerConfig, seed: int, path: Path
) -> tuple[Floats, ContinualLearner]:
    """(T + 1, T, 1 + weightings) accuracy of a learner; it goes on from the experience whose end was saved."""
    if path.is_file():
        learner, found = _load_run(path, stream.reading, (len(stream.tests), len(stream.weights)))
    else:
        reading = stream.reading
        learner = ContinualLearner(reading.mean, reading.spread, config, seed=seed, start=reading.start)
        # Labels that are not known yet score 0, as do those of a head that learnt nothing.
        found = stream.measure(learner.scores)[None]
    for parts in stream.train[len(found) - 1 :]:
        for part in parts:
            learner.learn(part)
        learner.end_experience()
        found = np.concatenate([found, stream.measure(learner.scores)[None]])
        make_folder(path.parent)
        save_arrays(path, {"state": np.frombuffer(learner.dump_state(), np.uint8), "accuracy": found}, {})
    return found, learner


def _load_run(path: Path, reading: Reading, shape: tuple[int, int]) -> tuple[ContinualLearner, Floats]:
    held, _ = open_arrays(path, "the state of a learner", _DELETE, MOST_STATE)
    found = held.get("accuracy", np.zeros(()))
    if (
        found.ndim != 3
        or found.shape[1:] != shape
        or not 1 <= len(found) <= 1 + shape[0]
        or "state" not in held
    ):
        raise DamagedError("it is of other experiences, or not whole", where=str(path), hint=_DELETE)
    features = None if reading.start is None else reading.start.features
    return ContinualLearner.load_state(held["state"].tobytes(), str(path), features), found


def _fit_jointly(stream: _Stream, config: FitConfig, seed: int) -> Floats:
    """(1, T, 1 + weightings) accuracy of a network that had all experiences at once, shuffled, again and again."""
    parts = [join_tube_rows(parts) for parts in stream.train if parts]
    reading = stream.reading
    fitted = fit_tubes(parts, reading.mean, reading.spread, config, seed=seed, start=reading.start)
    return stream.measure(fitted.scores)[None]


def _judge(
    stream: _Stream, learnt: _Learnt, memory_tubes: int, timing: dict[str, dict[str, float]]
) -> ContinualStudy:
    cells, memory = learnt
    units, results = stream.units, []
    numbers: dict[str, dict[str, Floats]] = {}
    for name, runs in cells.items():
        held = np.moveaxis(np.stack(runs), -1, 1)  # seeds, weightings, T + 1, T
        mean = tuple(tuple(float(v) for v in row) for row in held[:, 0].mean(axis=0))
        if name in (JOINT, UNLEARNT):
            average = Measured.of(held[:, :, -1].mean(axis=-1), units, "share")
            results.append(MethodResult(name, mean, average, None, None, None, None))
            continue
        numbers[name] = {
            "average": average_accuracy(held), "forgetting": forgetting(held),
            "backward": backward_transfer(held), "forward": forward_transfer(held),
        }  # fmt: skip
        found = {
            metric: Measured.of(values, units, "share" if metric == "average" else "difference")
            for metric, values in numbers[name].items()
        }
        results.append(MethodResult(name, mean, **found, memory_bytes=memory[name]))
    base = numbers[FINE_TUNING]
    differences = {
        name: {
            metric: Measured.of(held[metric] - base[metric], units, "difference")
            for metric in ("average", "forgetting")
        }
        for name, held in numbers.items()
        if name != FINE_TUNING
    }
    gains: dict[str, Measured] = {}
    if UNLEARNT in cells:
        last = {name: np.stack(runs)[:, -1].mean(axis=1) for name, runs in cells.items()}
        gains = {
            name: Measured.of(held - last[UNLEARNT], units, "difference")
            for name, held in last.items()
            if name != UNLEARNT
        }
    half = {
        name: Measured.of(numbers[name]["forgetting"] - base["forgetting"] / 2, units, "difference")
        for name in WITH_REPLAY
    }
    tubes = sum(each.tubes for each in stream.experiences)
    return ContinualStudy(
        stream.experiences, tuple(results), differences, half, memory_tubes, tubes, len(cells[REPLAY]),
        stream.weights.shape[1], timing, gains=gains,
    )  # fmt: skip


def _list_cells(study: ContinualStudy) -> list[dict[str, Any]]:
    """A row for each cell of the matrices."""
    found = []
    for what, part in (("tubes", study), ("own vehicle", study.vehicle)):
        names = [each.name for each in study.experiences]
        for method in () if part is None else part.methods:
            found += [
                {
                    "learns": what, "method": method.name, "after": "" if t == 0 else names[t - 1],
                    "test": names[k], "map": value,
                }
                for t, row in enumerate(method.matrix, start=method.find_first_moment(len(names)))
                for k, value in enumerate(row)
            ]  # fmt: skip
    return found


# Time: the same frames with and without learning, by the processor's clock.

_TIMED_SCENES, _TIMED_ROUNDS = 2, 3


def _open_timing(
    path: Path, domains: Sequence[EventDomain] | Sequence[DetectorDomain], methods: dict[str, LearnerConfig]
) -> dict[str, dict[str, float]]:
    """What was measured when the study was first run; measured now where it was not."""
    if path.is_file():
        found: dict[str, dict[str, float]] = json.loads(read_regular(path, limit=1 << 20))
        return found
    domain = domains[-1]
    found = {name: measure_time(domain, config) for name, config in methods.items()}
    write_atomically(path, encode_json(found).encode())
    return found


def measure_time(domain: EventDomain | DetectorDomain, config: LearnerConfig) -> dict[str, float]:
    """CPU seconds for a minute of stream: `inference` alone, `with learning`, and the `ratio` of both.

    Inference is what comes after the detector: linker, features and scores of every frame; where the detector's heads learn,
    it is the detector itself and the linker. With learning each second frame is learnt from as well, as in the study. Each is
    the least of three rounds.

    Args:
        domain: whose first training scenes are the stream; of a detector's heads one that is rendered for this.
        config: of the learner.
    """
    few = replace(
        config, memory_tubes=config.memory_tubes // VEHICLE_SHARE,
        batch=VEHICLE_BATCH, replay=VEHICLE_BATCH * config.replay // config.batch,
    )  # fmt: skip
    run = _time_detector(domain) if isinstance(domain, DetectorDomain) else _time_events(domain)
    taken: dict[str, list[float]] = {"inference": [], "with learning": []}
    seconds = 0.0
    for _ in range(_TIMED_ROUNDS):
        for way, held in taken.items():
            learner, vehicle = (
                ContinualLearner(reading.mean, reading.spread, how, start=reading.start)
                for reading, how in zip(domain.read(), (config, few), strict=True)
            )
            learner.add_labels(domain.labels)
            vehicle.add_labels(AV_LABELS)
            spent, seconds = run(learner, vehicle, way == "with learning")
            held.append(spent)
    least = {way: 60 * min(held) / max(seconds, 1e-9) for way, held in taken.items()}
    return {**least, "ratio": least["with learning"] / max(least["inference"], 1e-9)}


_Timed = Callable[[ContinualLearner, ContinualLearner, bool], tuple[float, float]]
"""Learners of boxes and of the own vehicle, and whether they learn, to CPU seconds and seconds of stream."""
_COLUMNS = ("x", "truth", "weight", "judged", "tube", "scene")


def _time_events(domain: EventDomain) -> _Timed:
    held = [
        (
            truth,
            make_tube_rows(
                truth,
                number,
                1,
                domain.labels,
                errors=domain.errors,
                noise=domain.noise,
                pixels=domain.pixels,
            ),
            simulate_inputs(truth, number, 1, errors=domain.errors, noise=domain.noise, pixels=domain.pixels),
        )
        for number, truth in enumerate(domain.train[:_TIMED_SCENES])
    ]

    def run(learner: ContinualLearner, vehicle: ContinualLearner, learns: bool) -> tuple[float, float]:
        spent = seconds = 0.0
        for truth, (rows, frames), (found, motions, focal) in held:
            begin = 0
            answering, driving = learner.network.build_network(), vehicle.network.build_network()
            clock = time.process_time()
            for frame, linked, _, x, drive in iterate_linked_frames(truth, found, motions, focal):
                driving.logits(np.asarray(drive, np.float32)[None])
                if len(linked):
                    answering.logits(x)
                part = slice(begin, begin + len(linked))
                begin += len(linked)
                if not learns or frame % TRAIN_EVERY:
                    continue
                if len(linked):
                    learner.learn(
                        TubeRows(rows.labels, **{name: getattr(rows, name)[part] for name in _COLUMNS})
                    )
                if domain.vehicle:
                    now = slice(frame, frame + 1)
                    vehicle.learn(
                        TubeRows(AV_LABELS, **{name: getattr(frames, name)[now] for name in _COLUMNS})
                    )
            spent += time.process_time() - clock
            seconds += truth.n_frames / truth.fps
        return spent, seconds

    return run


def _time_detector(domain: DetectorDomain) -> _Timed:
    heads = domain.heads
    images, scenes, av = render_town(domain.town, TRAIN_SEED, 0, DETECTOR_TRAIN_S)
    fps, columns = domain.train[0].fps, heads.choose_columns(domain.known)
    truth = collect_truth(scenes, domain.labels, len(images))
    actions = av[:, None] == np.arange(len(AV_LABELS))

    def run(learner: ContinualLearner, vehicle: ContinualLearner, learns: bool) -> tuple[float, float]:
        heads.reset()
        clock = time.process_time()
        for frame, image in enumerate(images):
            if not learns:
                heads.link(heads.detector.step(image)[0], frame / fps)
                continue
            seen = heads.step(image)
            tube = heads.link(seen.found, frame / fps)
            x, one = seen.x[:, columns], np.ones(len(tube), np.float32)
            learner.scores(x, domain.labels)
            vehicle.scores(seen.vehicle[None], AV_LABELS)
            if frame % TRAIN_EVERY:
                continue
            known = match_labels(seen.found.boxes, *truth[frame])
            on = tube >= 0
            learner.learn(TubeRows(domain.labels, x[on], known[on], one[on], on[on], tube[on], 0 * tube[on]))
            second = np.array([frame / fps], np.int64)
            now = actions[frame : frame + 1]
            vehicle.learn(
                TubeRows(
                    AV_LABELS,
                    seen.vehicle[None],
                    now,
                    np.ones(1, np.float32),
                    now.any(axis=1),
                    second,
                    second,
                )
            )
        return time.process_time() - clock, len(images) / fps

    return run
