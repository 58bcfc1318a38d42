"""What the own vehicle does, from the events around it: the study on simulated towns that were not learnt from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Bools, Bytes, Floats, Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder, read_marker
from roadaware.models.event_head.decisions import (
    WHEN,
    DecisionNetwork,
    decide_by_rules,
    list_token_columns,
    open_decisions,
    save_decisions,
)
from roadaware.models.event_head.head import EventHead, open_head
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.statistics.comparison import Drawn, Estimate, build_units, estimate, weigh_mean, weigh_ranking
from roadaware.training.events.scenes import (
    CAUSE_KINDS,
    MindedScene,
    load_minded_scene,
    make_minded_scene,
    save_minded_scene,
)

if TYPE_CHECKING:
    from roadaware.training.events.decisions import DecisionRows

Progress = Callable[[int, int, str], None]
FORMAT = "roadaware-decision-study"
MARKER, RESULTS, SCENES = "study.json", "results.json", "scenes"
SEEDS = {"train": 301, "val": 302, "test": 303}
"""Of the towns of each split: every scene is a town of its own, so that those of `test` are seen by nobody."""
PRIOR, RULES, NOW_GOES_ON, MOTION = (
    "class prior",
    "rules",
    "event head, own motion",
    "own motion over a second",
)
PIXELS = "pixels over a second"
TUBES, TAUGHT, BOTH = "tubes", "tubes, with counterfactuals", "tubes and own motion"
AIM = 0.7
"""Share of stops in which the decision should change once the culprit is taken away."""
FEWEST_SCENES = 3
"""Test scenes in which an action must occur to be judged: an interval needs some."""
SEVERAL = "several at once"
_STOP = AV_ACTIONS.index("AV-Stop")


def count_scenes(towns: int) -> dict[str, int]:
    """Scenes of each split, for so many that are learnt from.

    Raises:
        UsageError: if there are too few.

    >>> count_scenes(120)
    {'train': 120, 'val': 18, 'test': 240}
    """
    if towns < 4:
        raise UsageError(f"towns are at least 4, not {towns}: each is one scene, and some are kept back")
    return {"train": towns, "val": max(3, -(-towns // 7)), "test": 2 * towns}


def simulate_minded_scenes(
    folder: Path, towns: int, progress: Progress | None = None, *, images: bool = False
) -> dict[str, list[MindedScene]]:
    """The scenes of a study, by split; those that the folder holds are not simulated again.

    Args:
        folder: of the scenes, one file each.
        towns: to learn from, see `count_scenes`.
        images: whether they are to have images; a scene without is simulated again then.
        progress: called with scenes done, their number, and in words.
    """
    counts, found = count_scenes(towns), {}
    done = 0
    for split, count in counts.items():
        held = []
        (folder / split).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            path = folder / split / f"{number:04d}.npz"
            scene = load_minded_scene(path) if path.exists() else None
            if scene is None or (images and not len(scene.image)):
                scene = make_minded_scene(SEEDS[split], number, images=images)
                save_minded_scene(scene, path)
            held.append(scene)
            done += 1
            if progress is not None:
                progress(done, sum(counts.values()), f"scenes of {split}")
        found[split] = held
    return found


@dataclass(frozen=True)
class DecisionRow:
    """One way of deciding.

    Args:
        name: of it.
        now, ahead: mean average precision over the actions that are judged, now and in a second.
        less_now, less_ahead: that of the tubes less this one's, paired.
        stop_now, stop_ahead: average precision of standing.
    """

    name: str
    now: Estimate
    ahead: Estimate
    less_now: Estimate
    less_ahead: Estimate
    stop_now: Estimate
    stop_ahead: Estimate


@dataclass(frozen=True)
class RemovalRow:
    """What becomes of decisions to stand once those are taken away for whom the driver stands.

    Args:
        name: of the network.
        kind: of the cause that binds most; `all` for all together, `several at once` for stops with two causes or more.
        stops: that are judged: the vehicle stands, its driver would go on without the culprits, each cause has somebody in
            the image, one of them is among the tubes, and the network decided to stand.
        missed: stops with such a cause at which the network did not decide to stand.
        flipped: share of stops whose decision changes in at least half of their frames.
        others: the same where as many other tubes are taken away.
        attention, chance: share of frames in which a culprit gets the most attention, and by chance.
        fall: share of frames in which taking away a culprit lowers the probability more than any other tube.
    """

    name: str
    kind: str
    stops: int
    missed: int
    flipped: Estimate
    others: Estimate
    attention: Estimate
    chance: float | None
    fall: Estimate


@dataclass(frozen=True)
class DecisionStudy:
    """Results of the study.

    Args:
        rows: ways of deciding.
        removals: of the networks of tubes.
        judged: actions that are judged, with their share of the test frames.
        left_out: actions that occur in too few test scenes.
        scenes, frames: by split.
        causes: kind to the number of test frames that stand for it.
        stops: what the stops of the test scenes are, see `count_stops`.
        seeds: of the networks, whose scores are averaged.
    """

    rows: tuple[DecisionRow, ...]
    removals: tuple[RemovalRow, ...]
    judged: dict[str, float]
    left_out: tuple[str, ...]
    scenes: dict[str, int]
    frames: dict[str, int]
    causes: dict[str, int]
    stops: dict[str, int]
    seeds: int

    @property
    def reached(self) -> bool:
        """Whether the network of counterfactuals changes its decision as often as was aimed at."""
        found = [row for row in self.removals if row.name == TAUGHT and row.kind == "all"]
        return bool(found) and found[0].flipped.value is not None and found[0].flipped.value >= AIM

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self) | {"aim": AIM, "reached": self.reached}


def run_decision_study(
    out: Path,
    *,
    scenes: Path | None = None,
    towns: int = 120,
    seeds: int = 3,
    resamples: int = 1000,
    progress: Progress | None = None,
) -> DecisionStudy:
    """Decisions from tubes, own motion and rules, on simulated towns that were not learnt from.

    Scenes and networks that stand in the folders are not made again.

    Args:
        out: folder: `scenes/`, `networks/`, `results.json`.
        scenes: folder of the simulated scenes (default: in `out`); made there where they lack.
        towns: scenes to learn from.
        seeds: trainings of each network.
        resamples: most weightings for intervals; 0 for none.
        progress: called with what is done, how much there is, and in words.

    Raises:
        UsageError: if the folder holds a study of more or fewer towns.
        InputError: if a network in the folder learnt from other scenes.
    """
    from roadaware.training.events.decisions import (
        add_counterfactuals,
        fit_decisions,
        fit_motion_baseline,
        fit_pixel_baseline,
        stack_images,
    )

    begun = read_marker(out / MARKER, FORMAT)
    # Said before scenes are simulated for networks that would then be refused one by one.
    if begun is not None and begun.get("towns") != towns:
        raise UsageError(
            f"{out} holds a study that learns from {begun.get('towns')} towns, and {towns} are asked for; name another "
            "folder, or ask for what it holds"
        )
    events = open_head()
    with hold_folder(out):
        about = {"format": FORMAT, "towns": towns, "seeds": seeds}
        write_atomically(out / MARKER, encode_json(about).encode())
        held = simulate_minded_scenes(scenes or out / SCENES, towns, progress, images=True)
        rows = {split: _read_rows(held[split], split, events) for split in held}
        train, val, test = rows["train"], rows["val"], rows["test"]
        taught = add_counterfactuals(train)
        scores: dict[str, Floats] = {}
        networks: dict[str, list[DecisionNetwork]] = {}
        for place, (name, part, own) in enumerate(
            ((TUBES, train, False), (TAUGHT, taught, False), (BOTH, train, True))
        ):
            networks[name] = []
            for seed in range(seeds):
                path = out / "networks" / f"{place}-{seed}.safetensors"
                facts = {"rows": len(part), "towns": towns, "seed": seed, "row": name}
                if not path.is_file():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    fitted = fit_decisions(
                        part, val, events,
                        seed=seed, own_motion=own, counterfactual=name == TAUGHT, facts=facts,
                    )  # fmt: skip
                    save_decisions(fitted, path)
                network = open_decisions(path)
                if dict(network.facts) != facts:
                    raise InputError(
                        "this network was made for another study", where=str(path), hint="name another folder"
                    )
                networks[name].append(network)
                if progress is not None:
                    progress(place * seeds + seed + 1, 3 * seeds, f"networks of {name}")
            scores[name] = ask_networks(networks[name], test)
        scores[MOTION] = ask_modules(
            [fit_motion_baseline(train, val, seed=seed) for seed in range(seeds)], test.past
        )
        seen = [np.concatenate([stack_images(scene) for scene in held[split]]) for split in ("train", "val")]
        pixels = []
        for seed in range(seeds):
            pixels.append(fit_pixel_baseline(seen[0], train, seen[1], val, seed=seed))
            if progress is not None:
                progress(seed + 1, seeds, f"networks of {PIXELS}")
        # Scene by scene: images of all of them would fill the memory.
        scores[PIXELS] = np.concatenate([ask_modules(pixels, stack_images(scene)) for scene in held["test"]])
        scores[NOW_GOES_ON] = np.repeat(test.prior[:, None], len(WHEN), axis=1).astype(np.float64)
        prior = np.bincount(train.action[:, 0], minlength=len(AV_ACTIONS)) / len(train)
        scores[PRIOR] = np.tile(prior, (len(test), len(WHEN), 1))
        columns = list_token_columns(events.actions, events.locations)
        by_rules = [
            decide_by_rules(test.tokens[k][test.filled[k]], columns, prior, AV_ACTIONS)
            for k in range(len(test))
        ]
        scores[RULES] = np.repeat(np.array(by_rules)[:, None], len(WHEN), axis=1)
        found = judge_decisions(test, scores, networks, resamples)
        study = DecisionStudy(
            *found, {split: len(each) for split, each in held.items()},
            {split: len(each) for split, each in rows.items()}, _count_causes(test),
            count_stops(test), seeds,
        )  # fmt: skip
        write_atomically(out / RESULTS, (json.dumps(study.as_dict(), indent=2) + "\n").encode())
    return study


def _read_rows(held: Sequence[MindedScene], split: str, events: EventHead) -> DecisionRows:
    from roadaware.training.events.decisions import join_decision_rows, make_decision_rows

    return join_decision_rows(
        [make_decision_rows(scene, number, SEEDS[split], events) for number, scene in enumerate(held)]
    )


def ask_networks(
    networks: Sequence[DecisionNetwork], rows: DecisionRows, without: Bools | None = None
) -> Floats:
    """(frames, 2, AV actions) mean scores of networks.

    Args:
        networks: to ask.
        rows: frames.
        without: (frames, tubes) tubes that are taken away.
    """
    filled = rows.filled if without is None else rows.filled & ~without
    found = np.zeros((len(rows), len(WHEN), len(AV_ACTIONS)))
    for network in networks:
        for k in range(len(rows)):
            context = rows.motion[k] if network.context else None
            found[k] += network.decide(rows.tokens[k][filled[k]], context).scores / len(networks)
    return found


def ask_modules(modules: Sequence[Any], inputs: Floats32 | Bytes) -> Floats:
    """(n, 2, AV actions) mean scores of modules of torch.

    Args:
        modules: from inputs to logits of that shape.
        inputs: (n, ...) that they read.
    """
    import torch

    with torch.no_grad():
        parts = [module.eval()(torch.from_numpy(inputs)).softmax(dim=-1).numpy() for module in modules]
    found: Floats = np.mean(parts, axis=0).astype(np.float64)
    return found


def _count_causes(rows: DecisionRows) -> dict[str, int]:
    stands = rows.action[:, 0] == _STOP
    counts = np.bincount(rows.kind[stands], minlength=len(CAUSE_KINDS))
    return {name: int(n) for name, n in zip(CAUSE_KINDS, counts, strict=True)}


def judge_decisions(
    test: DecisionRows, scores: dict[str, Floats], networks: dict[str, list[DecisionNetwork]], resamples: int
) -> tuple[tuple[DecisionRow, ...], tuple[RemovalRow, ...], dict[str, float], tuple[str, ...]]:
    """Tables of the study: ways of deciding, removals, actions that are judged and those left out.

    Args:
        test: frames.
        scores: name to (frames, 2, AV actions).
        networks: of tubes, by name, of which culprits are taken away.
        resamples: most weightings for intervals.
    """
    scenes_with = [len(np.unique(test.scene[test.action[:, 0] == k])) for k in range(len(AV_ACTIONS))]
    judged = [k for k, n in enumerate(scenes_with) if n >= FEWEST_SCENES]
    drawn: dict[tuple[str, int, bool], Drawn] = {}
    units = []
    for when in range(len(WHEN)):
        known = test.action[:, when] >= 0
        unit = test.scene[known]
        units.append(build_units(unit, resamples))
        for name, said in scores.items():
            for alone in (False, True):
                chosen = [_STOP] if alone else judged
                truth = {AV_ACTIONS[k]: test.action[known, when] == k for k in chosen}
                held = {AV_ACTIONS[k]: said[known, when, k] for k in chosen}
                drawn[name, when, alone] = weigh_ranking(truth, held, unit, units[when])
    rows = tuple(
        DecisionRow(
            name,
            *(estimate(drawn[name, when, False], units[when]) for when in range(2)),
            *(
                estimate(drawn[TUBES, when, False] - drawn[name, when, False], units[when], "difference")
                for when in range(2)
            ),
            *(estimate(drawn[name, when, True], units[when]) for when in range(2)),
        )
        for name in scores
    )
    removals = tuple(
        each
        for name in networks
        for each in judge_removals(name, networks[name], scores[name], test, resamples)
    )
    shares = {AV_ACTIONS[k]: float((test.action[:, 0] == k).mean()) for k in judged}
    left_out = tuple(AV_ACTIONS[k] for k in range(len(AV_ACTIONS)) if k not in judged)
    return rows, removals, shares, left_out


def count_stops(rows: DecisionRows) -> dict[str, int]:
    """How many stops there are, and how many of them can be asked whom they were for.

    Each stop counts once, by the first of these that is true of one of its frames: `judged`, the driver would go on without
    culprits who are all in the image, one of them among the tubes; `culprit not detected`, the same without a tube;
    `culprit out of the image`, such as a light above the line at which the vehicle stands; `would not go on`, nobody is to
    blame, or it would creep all the same.

    Args:
        rows: frames, in the order of scenes and time.
    """
    stands = rows.action[:, 0] == _STOP
    stop = number_stops(rows, stands)
    ways = (
        ("judged", rows.goes & rows.culprit.any(axis=1)),
        ("culprit not detected", rows.goes),
        ("culprit out of the image", rows.unseen),
        ("would not go on", stands),
    )
    found, counted = {"all": len(np.unique(stop[stands]))}, np.zeros(0, np.int64)
    for name, true in ways:
        new = np.setdiff1d(stop[stands & true], counted)
        found[name], counted = len(new), np.concatenate([counted, new])
    return found


def judge_removals(
    name: str, networks: Sequence[DecisionNetwork], scores: Floats, test: DecisionRows, resamples: int
) -> list[RemovalRow]:
    """What becomes of decisions to stand once culprits are taken away, all together and by cause.

    Args:
        name: of the networks.
        networks: that decide.
        scores: (frames, 2, AV actions) of them with all tubes.
        test: frames.
        resamples: most weightings for intervals.
    """
    from roadaware.training.events.decisions import select_rows

    caused = (test.action[:, 0] == _STOP) & test.goes & test.culprit.any(axis=1)
    decided = scores[:, 0].argmax(axis=1) == _STOP
    rows = np.flatnonzero(caused & decided)
    stop = number_stops(test, caused)
    part = select_rows(test, rows)
    without = ask_networks(networks, part, part.culprit)[:, 0].argmax(axis=1) != _STOP
    rng = np.random.default_rng(0)
    others = np.zeros_like(part.culprit)
    for k in range(len(part)):
        free = np.flatnonzero(part.filled[k] & ~part.culprit[k])
        taken = rng.permutation(free)[: int(part.culprit[k].sum())]
        others[k, taken] = True
    # Where nothing else is there to be taken away there is no comparison.
    compared = others.any(axis=1)
    control = ask_networks(networks, part, others)[:, 0].argmax(axis=1) != _STOP
    looked, fell = np.zeros(len(part), np.bool_), np.zeros(len(part), np.bool_)
    for k in range(len(part)):
        there = np.flatnonzero(part.filled[k])
        context = part.motion[k]
        tokens = part.tokens[k][there]
        attention = np.mean(
            [n.decide(tokens, context if n.context else None).attention[0] for n in networks], axis=0
        )
        looked[k] = part.culprit[k, there[int(attention.argmax())]]
        lost = [
            np.mean(
                [
                    n.decide(np.delete(tokens, j, 0), context if n.context else None).scores[0, _STOP]
                    for n in networks
                ]
            )
            for j in range(len(there))
        ]
        fell[k] = part.culprit[k, there[int(np.argmin(lost))]]
    chance = part.culprit.sum(axis=1) / part.filled.sum(axis=1)
    found = []
    of_kind = {"all": np.ones(len(test), np.bool_), SEVERAL: test.several > 1}
    of_kind |= {CAUSE_KINDS[k]: test.kind == k for k in np.unique(test.kind[caused]).tolist()}
    for kind, wanted in of_kind.items():
        chosen, wanted = wanted[rows], caused & wanted
        missed = set(stop[wanted].tolist()) - set(stop[rows[chosen]].tolist())
        if not chosen.any():
            # Stops at none of which it decided to stand are said as well.
            if missed or kind == "all":
                found.append(
                    RemovalRow(name, kind, 0, len(missed), *(Estimate(None),) * 3, None, Estimate(None))
                )
            continue
        flips, of = _share_by_stop(without[chosen], stop[rows[chosen]], part.scene[chosen])
        alike = chosen & compared
        same, of_same = _share_by_stop(control[alike], stop[rows[alike]], part.scene[alike])
        scene = part.scene[chosen]
        units = build_units(scene, resamples)
        found.append(
            RemovalRow(
                name, kind, len(flips), len(missed),
                estimate(weigh_mean(flips, of, build_units(of, resamples)), build_units(of, resamples)),
                estimate(weigh_mean(same, of_same, build_units(of_same, resamples)), build_units(of_same, resamples)),
                estimate(weigh_mean(looked[chosen].astype(float), scene, units), units),
                float(chance[chosen].mean()),
                estimate(weigh_mean(fell[chosen].astype(float), scene, units), units),
            )
        )  # fmt: skip
    return found


def number_stops(rows: DecisionRows, caused: Bools) -> Ints:
    """(frames,) number of the stop that a frame belongs to; -1 of frames that are not chosen.

    A stop is a run of frames of one scene in which the vehicle stands.

    Args:
        rows: frames, in the order of scenes and time.
        caused: (frames,) frames that are chosen.
    """
    stands = rows.action[:, 0] == _STOP
    begins = stands.copy()
    begins[1:] &= ~stands[:-1] | (rows.scene[1:] != rows.scene[:-1])
    return np.where(caused, np.cumsum(begins) - 1, -1)


def _share_by_stop(flipped: Bools, stop: Ints, scene: Ints) -> tuple[Floats, Ints]:
    """(stops,) 1 where at least half of the frames changed, and (stops,) scenes."""
    names, first, which = np.unique(stop, return_index=True, return_inverse=True)
    share = np.bincount(which, flipped, len(names)) / np.maximum(np.bincount(which, minlength=len(names)), 1)
    return (share >= 0.5).astype(np.float64), scene[first]
