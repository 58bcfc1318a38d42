"""Theory of mind: what simulated road users have in mind, from what they do, and whether that helps to foresee them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32
from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.models.event_head.head import FEATURES, EventHead, open_head
from roadaware.protocols.decisions import SCENES, SEEDS, simulate_minded_scenes
from roadaware.scenes.sampling import get_protocol
from roadaware.simulator.minds import TURNS
from roadaware.statistics.comparison import (
    Drawn,
    Estimate,
    build_units,
    estimate,
    weigh_mean,
    weigh_ranking,
)
from roadaware.tasks.crossing_time import collect_times
from roadaware.tasks.crossing_tracks import Moments
from roadaware.training.events.scenes import AHEAD_S

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes
    from roadaware.training.events.decisions import MindRows, Predict

Progress = Callable[[int, int, str], None]
FORMAT = "roadaware-mind-study"
MARKER, RESULTS = "study.json", "results.json"
GOAL, NOTICED, GAP, TURN = (
    "goal: means to cross",
    "has noticed the own vehicle",
    "accepts a short gap",
    "way at the junction",
)
BASE, LABELS, NETWORK = "base rate", "event head, box", "network"
BEHAVIOUR, MIND, TRUE_MIND = "behaviour", "behaviour and predicted mind", "behaviour and true mind"
JOINT = "behaviour, mind learnt beside"
LOOKS, TAGS = "behaviour, looking and nodding", "looking and nodding"
JAAD_PROTOCOL = "jaad-action@iv2024"
"""Whose splits are taken."""
JAAD_MOMENTS = Moments(30.0, 15, every=8)
"""Half a second of boxes is looked back at, and somebody asked about each quarter of a second, as in the simulated towns."""
STAYS = "stays where it is"
CHANCES = 2
"""Outputs of a mind that are chances: to cross, and to have noticed; the third is the gap in seconds."""


@dataclass(frozen=True)
class MindRow:
    """One question about minds, answered in one way: average precision over boxes, and the gain over the base rate.

    Args:
        question: about minds.
        way: of answering.
        value: average precision; of drivers the mean over three ways.
        gain: that less the base rate's, paired.
        boxes: that are asked about, and `share` of them of which it is true.
    """

    question: str
    way: str
    value: Estimate
    gain: Estimate
    boxes: int
    share: float


@dataclass(frozen=True)
class ForecastRow:
    """One way of foreseeing people on foot.

    Args:
        way: of it.
        steps_out: average precision of stepping on the road within two seconds, of those who are not on it.
        gain_steps_out: that less behaviour's, paired.
        error_m: mean distance between the place foreseen in two seconds and the true one.
        gain_error_m: that less behaviour's, paired; below 0 it is better than behaviour alone.
    """

    way: str
    steps_out: Estimate
    gain_steps_out: Estimate
    error_m: Estimate
    gain_error_m: Estimate


@dataclass(frozen=True)
class LookRow:
    """One way of foreseeing whether somebody in JAAD begins to cross within two seconds.

    Args:
        way: of it.
        value: average precision.
        gain: that less behaviour's, paired.
    """

    way: str
    value: Estimate
    gain: Estimate


@dataclass(frozen=True)
class LookStudy:
    """What looking and nodding, as JAAD's annotators saw them, add to boxes: the part of a mind that shows.

    Args:
        rows: ways of foreseeing.
        moments, people, videos: that are judged, all of the test split with tags of behaviour.
        taught: moments of train and val that networks learnt from.
        share: of the judged moments within two seconds of crossing; `looked` and `nodded`, the shares whose pedestrian has
            looked at the traffic so far, and has nodded or waved.
    """

    rows: tuple[LookRow, ...]
    moments: int
    people: int
    videos: int
    taught: int
    share: float
    looked: float
    nodded: float


@dataclass(frozen=True)
class MindStudy:
    """Results of the study.

    Args:
        minds: questions about minds, each answered in several ways.
        forecasts: ways of foreseeing.
        gap_s: the gap below which it counts as short: the median of the scenes that were learnt from.
        gap_error_s: mean error of the gap that is predicted, and `gap_error_base_s` that of the median for all.
        scenes, boxes: by split.
        people: boxes of people on foot in the test scenes, and `steps_out` the share that steps out.
        seeds: networks of each kind, whose answers are averaged.
        looks: of JAAD; None where it was not at hand.
    """

    minds: tuple[MindRow, ...]
    forecasts: tuple[ForecastRow, ...]
    gap_s: float
    gap_error_s: Estimate
    gap_error_base_s: Estimate
    scenes: dict[str, int]
    boxes: dict[str, int]
    people: int
    steps_out: float
    seeds: int
    looks: LookStudy | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def run_mind_study(
    out: Path,
    *,
    scenes: Path | None = None,
    jaad: Scenes | None = None,
    towns: int = 120,
    seeds: int = 3,
    resamples: int = 1000,
    progress: Progress | None = None,
) -> MindStudy:
    """Minds from behaviour, and futures from behaviour with and without the predicted mind, on unseen simulated towns.

    Networks take seconds and are fitted each time; scenes that stand in the folder are not simulated again.

    Args:
        out: folder: `scenes/`, `results.json`.
        scenes: folder of the simulated scenes (default: in `out`), such as that of a study of decisions.
        jaad: JAAD, whose looking and nodding are judged as well; None leaves that out.
        towns: scenes to learn from.
        seeds: networks of each kind.
        resamples: most weightings for intervals; 0 for none.
        progress: called with what is done, how much there is, and in words.
    """
    from roadaware.training.events.decisions import join_mind_rows, make_mind_rows

    events = open_head()
    with hold_folder(out):
        about = {"format": FORMAT, "towns": towns, "seeds": seeds}
        write_atomically(out / MARKER, encode_json(about).encode())
        held = simulate_minded_scenes(scenes or out / SCENES, towns, progress)
        rows = {
            split: join_mind_rows(
                [make_mind_rows(scene, k, SEEDS[split], events) for k, scene in enumerate(each)]
            )
            for split, each in held.items()
        }
        # Nothing is chosen on validation here: it is learnt from as well, as scenes of its own.
        val = replace(rows["val"], scene=rows["val"].scene + len(held["train"]))
        study = judge_minds(
            join_mind_rows([rows["train"], val]), rows["test"], events, seeds, resamples, progress
        )
        counts = {split: len(each) for split, each in held.items()}
        looks = None if jaad is None else judge_looks(jaad, seeds, resamples)
        boxes = {split: len(each) for split, each in rows.items()}
        study = replace(study, scenes=counts, boxes=boxes, looks=looks)
        write_atomically(out / RESULTS, (json.dumps(study.as_dict(), indent=2) + "\n").encode())
    return study


def judge_minds(
    train: MindRows,
    test: MindRows,
    events: EventHead,
    seeds: int,
    resamples: int,
    progress: Progress | None = None,
) -> MindStudy:
    """Fit and judge everything; `scenes` and `boxes` of the result are empty.

    Args:
        train: to learn from.
        test: of other scenes.
        events: whose labels are a baseline.
        seeds: networks of each kind.
        resamples: most weightings for intervals.
        progress: called with networks done, their number, and in words.
    """
    people, asked = train.some(train.walks), test.some(test.walks)
    gap_s = float(np.median(people.margin_s))

    def tell(done: int, words: str) -> None:
        if progress is not None:
            progress(done, 5, words)

    minds = _fit_minds(people, seeds)
    predicted = _ask(minds, asked.x)
    tell(1, "networks of minds")
    fold = people.scene % 2 == 0
    # Of each half what networks say that learnt from the other: else the mind would seem surer than it is.
    halves = np.zeros((len(people), predicted.shape[1]))
    for half in (fold, ~fold):
        halves[half] = _ask(_fit_minds(people.some(~half), seeds), people.x[half])
    tell(2, "networks of halves")
    rows = _judge_walkers(asked, predicted, events, gap_s, float(people.crosses.mean()), resamples)
    rows += _judge_drivers(train.some(~train.walks), test.some(~test.walks), events, seeds, resamples)
    tell(3, "networks of drivers")
    ways = {
        BEHAVIOUR: (people.x, asked.x),
        MIND: (_join(people.x, halves), _join(asked.x, predicted)),
        TRUE_MIND: (_join(people.x, _list_true(people)), _join(asked.x, _list_true(asked))),
    }
    futures = {name: _ask(_fit_futures(x, people, seeds), y) for name, (x, y) in ways.items()}
    # Outputs of the mind come behind those of the future, chances behind the chance and numbers behind numbers.
    beside = _ask(_fit_futures(people.x, people, seeds, minds=True), asked.x)
    futures[JOINT] = beside[:, [0, 1 + CHANCES, 2 + CHANCES]]
    tell(5, "networks of futures")
    forecasts = _judge_futures(asked, futures, people, events, resamples)
    units = build_units(asked.scene, resamples)
    errors = tuple(
        estimate(weigh_mean(np.abs(said - asked.margin_s), asked.scene, units), units, "positive")
        for said in (predicted[:, 2], np.full(len(asked), gap_s))
    )
    known = asked.steps_out >= 0
    return MindStudy(
        tuple(rows),
        tuple(forecasts),
        gap_s,
        errors[0],
        errors[1],
        {},
        {},
        len(asked),
        float(asked.steps_out[known].mean()),
        seeds,
    )


def _join(x: Floats32, more: Floats | Floats32) -> Floats32:
    return np.hstack([x, more]).astype(np.float32)


def _list_true(rows: MindRows) -> Floats:
    return np.column_stack([rows.crosses, rows.noticed, rows.margin_s]).astype(np.float64)


def _fit_minds(rows: MindRows, seeds: int) -> list[Predict]:
    from roadaware.training.events.decisions import fit_small_network

    due = _list_true(rows)
    return [fit_small_network(rows.x, due, np.isfinite(due), CHANCES, seed=seed) for seed in range(seeds)]


def _fit_futures(x: Floats32, rows: MindRows, seeds: int, *, minds: bool = False) -> list[Predict]:
    """Networks of the chance to step out and the place; with `minds` the same layers learn the mind beside."""
    from roadaware.training.events.decisions import fit_small_network

    mind = _list_true(rows)[:, : None if minds else 0]
    due = np.column_stack([rows.steps_out, mind[:, :CHANCES], rows.moved_m, mind[:, CHANCES:]])
    known = np.isfinite(due) & (np.arange(due.shape[1]) > 0)
    known[:, 0] = rows.steps_out >= 0
    chances = 1 + (CHANCES if minds else 0)
    return [fit_small_network(x, due, known, chances, seed=seed) for seed in range(seeds)]


def _ask(networks: list[Predict], x: Floats32) -> Floats:
    found: Floats = np.mean([network(x) for network in networks], axis=0)
    return found


def _read_labels(rows: MindRows, events: EventHead, *names: str) -> Floats:
    """(n,) the largest probability of some actions, as the event head has them now."""
    first = len(FEATURES)
    logits = rows.x[:, [first + events.actions.index(name) for name in names]].max(axis=1)
    found: Floats = 1 / (1 + np.exp(-logits.astype(np.float64)))
    return found


def _judge_walkers(
    asked: MindRows, predicted: Floats, events: EventHead, gap_s: float, share: float, resamples: int
) -> list[MindRow]:
    """Questions about people on foot: those of goal and noticing of people who are not on the road."""
    waits = _read_labels(asked, events, "Wait2X", "Xing", "XingFmLft", "XingFmRht")
    height = asked.x[:, FEATURES.index("place.log_height")].astype(np.float64)
    beside = ~asked.on_road
    questions: list[tuple[str, Bools, Bools, dict[str, Floats]]] = [
        (GOAL, beside, asked.crosses, {LABELS: waits, NETWORK: predicted[:, 0]}),
        (NOTICED, beside, asked.noticed, {LABELS: height, NETWORK: predicted[:, 1]}),
        (GAP, np.ones(len(asked), np.bool_), asked.margin_s < gap_s, {NETWORK: -predicted[:, 2]}),
    ]
    rows = []
    for question, chosen, truth, ways in questions:
        scene, units = asked.scene[chosen], build_units(asked.scene[chosen], resamples)
        ways = {BASE: np.full(len(asked), share), **ways}
        drawn = {
            way: weigh_ranking({"": truth[chosen]}, {"": said[chosen]}, scene, units)
            for way, said in ways.items()
        }
        rows += [
            MindRow(
                question, way, estimate(each, units), estimate(each - drawn[BASE], units, "difference"),
                int(chosen.sum()), float(truth[chosen].mean()),
            )
            for way, each in drawn.items()
        ]  # fmt: skip
    return rows


def _judge_drivers(
    train: MindRows, test: MindRows, events: EventHead, seeds: int, resamples: int
) -> list[MindRow]:
    """Which way drivers mean to go at the junction that they come to, or are in."""
    from roadaware.training.events.decisions import fit_small_network

    hot = np.eye(len(TURNS))[train.turn]
    networks = [
        fit_small_network(train.x, hot, np.ones_like(hot, np.bool_), len(TURNS), seed=seed)
        for seed in range(seeds)
    ]
    right = _read_labels(test, events, "TurRht", "IncatRht")
    left = _read_labels(test, events, "TurLft", "IncatLft")
    ways = {
        BASE: np.tile(hot.mean(axis=0), (len(test), 1)),
        LABELS: np.column_stack([right, 1 - np.maximum(right, left), left]),
        NETWORK: _ask(networks, test.x),
    }
    units = build_units(test.scene, resamples)
    truth = {name: test.turn == k for k, name in enumerate(TURNS) if (test.turn == k).any()}
    drawn = {
        way: weigh_ranking(truth, {name: said[:, TURNS.index(name)] for name in truth}, test.scene, units)
        for way, said in ways.items()
    }
    share = float(np.mean([each.mean() for each in truth.values()]))
    return [
        MindRow(
            TURN,
            way,
            estimate(each, units),
            estimate(each - drawn[BASE], units, "difference"),
            len(test),
            share,
        )
        for way, each in drawn.items()
    ]


def _judge_futures(
    asked: MindRows, futures: dict[str, Floats], people: MindRows, events: EventHead, resamples: int
) -> list[ForecastRow]:
    """Ways of foreseeing people on foot, each beside behaviour alone."""
    out, seen = asked.steps_out >= 0, np.isfinite(asked.moved_m).all(axis=1)
    out_units, seen_units = (
        build_units(asked.scene[out], resamples),
        build_units(asked.scene[seen], resamples),
    )
    base = float(people.steps_out[people.steps_out >= 0].mean())
    steps = {
        BASE: np.full(len(asked), base),
        LABELS: _read_labels(asked, events, "Wait2X", "Xing", "XingFmLft", "XingFmRht"),
    }
    mean = np.nanmean(people.moved_m, axis=0)
    places: dict[str, Floats | None] = {
        BASE: np.tile(mean, (len(asked), 1)),
        LABELS: None,
        STAYS: np.zeros((len(asked), 2)),
    }
    for way, said in futures.items():
        steps[way], places[way] = said[:, 0], said[:, 1:]
    risk: dict[str, Drawn] = {}
    error: dict[str, Drawn] = {}
    for way in (*places,):
        if way in steps:
            truth = {"": asked.steps_out[out] == 1}
            risk[way] = weigh_ranking(truth, {"": steps[way][out]}, asked.scene[out], out_units)
        place = places[way]
        if place is not None:
            away = np.hypot(*(place - asked.moved_m)[seen].T)
            error[way] = weigh_mean(away, asked.scene[seen], seen_units)
    nothing = Estimate(None)
    rows = []
    for way in places:
        risks, errors = (nothing, nothing), (nothing, nothing)
        if way in risk:
            gain = estimate(risk[way] - risk[BEHAVIOUR], out_units, "difference")
            risks = (estimate(risk[way], out_units), gain)
        if way in error:
            gain = estimate(error[way] - error[BEHAVIOUR], seen_units, "plain")
            errors = (estimate(error[way], seen_units, "positive"), gain)
        rows.append(ForecastRow(way, *risks, *errors))
    return rows


# JAAD: minds of real people are not known, but where they look was seen by annotators.


def judge_looks(scenes: Scenes, seeds: int, resamples: int) -> LookStudy:
    """Whether somebody begins to cross within two seconds, from boxes with and without looking and nodding.

    Networks learn from the splits train and val and are judged on test, at moments of pedestrians with tags of behaviour
    before they begin to cross. Three tags are read: looks now, has looked so far, has nodded or made a gesture so far.

    Args:
        scenes: JAAD.
        seeds: networks of each kind.
        resamples: most weightings of videos for intervals; 0 for none.

    Raises:
        InputError: if a split has nobody, or the tables lack the tags.
    """
    from roadaware.training.events.decisions import fit_small_network

    lost = [name for name in ("look", "nod", "hand_gesture") if name not in scenes.boxes.columns]
    if lost:
        raise InputError(f"expected boxes with JAAD's tags of behaviour, found none of {', '.join(lost)}")
    of_split = {split: _read_looks(scenes, split) for split in ("train", "val", "test")}
    test, taught = of_split["test"], [of_split["train"], of_split["val"]]
    boxes, tags, due = (
        np.concatenate([getattr(part, name) for part in taught]) for name in ("boxes", "tags", "due")
    )
    inputs = {
        TAGS: (tags, test.tags), BEHAVIOUR: (boxes, test.boxes),
        LOOKS: (_join(boxes, tags), _join(test.boxes, test.tags)),
    }  # fmt: skip
    said = {BASE: np.full(len(test.due), due.mean())}
    known = np.ones((len(due), 1), np.bool_)
    for way, (x, asked) in inputs.items():
        networks = [fit_small_network(x, due[:, None], known, 1, seed=seed) for seed in range(seeds)]
        said[way] = _ask(networks, asked)[:, 0]
    units = build_units(test.video, resamples)
    drawn = {
        way: weigh_ranking({"": test.due > 0}, {"": each}, test.video, units) for way, each in said.items()
    }
    rows = tuple(
        LookRow(way, estimate(each, units), estimate(each - drawn[BEHAVIOUR], units, "difference"))
        for way, each in drawn.items()
    )
    return LookStudy(
        rows, len(test.due), test.people, len(np.unique(test.video)), len(due), float(test.due.mean()),
        float(test.tags[:, 1].mean()), float(test.tags[:, 2].mean()),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Looks:
    """Moments of a split: (n, 10) boxes, (n, 3) tags, (n,) whether they cross within two seconds, and their videos."""

    boxes: Floats32
    tags: Floats32
    due: Floats
    video: npt.NDArray[np.str_]
    people: int


def _read_looks(scenes: Scenes, split: str) -> _Looks:
    timed = collect_times(scenes, get_protocol(JAAD_PROTOCOL, "default"), split, JAAD_MOMENTS, ("boxes",))
    gesture = pl.col("hand_gesture").cast(pl.String) != "__undefined__"
    tags = (
        scenes.boxes.filter(pl.col("look").is_not_null())
        .join(scenes.tubes.select("tube", pl.col("name").cast(pl.String)), on="tube")
        .sort("tube", "frame")
        .select(
            pl.col("video").cast(pl.String), "name", "frame",
            looks=pl.col("look").cast(pl.String) == "looking",
            looked=(pl.col("look").cast(pl.String) == "looking").cum_max().over("tube"),
            nodded=(gesture | (pl.col("nod").cast(pl.String) == "nodding")).fill_null(value=False).cum_max().over("tube"),
        )
    )  # fmt: skip
    table = timed.table.join(tags, on=["video", "name", "frame"], how="left", maintain_order="left")
    soon = timed.event & (timed.time_s <= AHEAD_S)
    # Of a track that ends earlier nobody knows.
    kept = table["looks"].is_not_null().to_numpy() & (timed.event | (timed.time_s >= AHEAD_S))
    steps = [0, JAAD_MOMENTS.frames // 2, -1]
    corners = np.asarray(timed.inputs.take(np.flatnonzero(kept))["boxes"], np.float64)[:, steps]
    size = np.maximum(corners[..., 2:] - corners[..., :2], 1e-3)
    middle = (corners[..., :2] + corners[..., 2:]) / 2
    now = size[:, -1:]
    # Where they are, how large, and how they moved since either earlier moment, in heights of their box.
    x = [middle[:, -1], np.log(now[:, 0]), *((middle[:, -1] - middle[:, k]) / now[:, 0, 1:] for k in (0, 1))]
    x.append(np.log(now[:, 0] / size[:, 0]))
    chosen = table.filter(pl.Series(kept))
    return _Looks(
        np.concatenate(x, axis=1).astype(np.float32),
        chosen.select("looks", "looked", "nodded").to_numpy().astype(np.float32),
        soon[kept].astype(np.float64),
        chosen["video"].to_numpy().astype(np.str_),
        len(np.unique(timed.person[kept])),
    )
