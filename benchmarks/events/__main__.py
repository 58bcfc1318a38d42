"""`python -m benchmarks.events PART`: the event head from its teaching set to its tables."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from benchmarks.events.judging import Judged, common_labels, judge_drive, judge_tubes
from benchmarks.events.kitti import print_geometry
from benchmarks.events.motion import print_motion
from benchmarks.events.scene_sets import SETS, make_sets, read_rows
from roadaware.metrics.requirements import find_violating_rows
from roadaware.models.event_head.head import FEATURES, EventHead, open_head, save_head
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.models.retinanet3d.loss import Logic, LogicLoss
from roadaware.scenes.requirements import bind_requirements, number_clauses, open_requirements
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.statistics.comparison import Drawn, build_units, estimate, weigh_mean, weigh_ranking
from roadaware.training.events.rows import Rows

Floats = npt.NDArray[np.float64]
_EVERY = 4
_GROUPS = (
    ("place", ("place", "class")),
    ("+ motion", ("place", "class", "motion")),
    ("+ own motion", ("place", "class", "motion", "ego")),
    ("+ neighbours", ("place", "class", "motion", "ego", "near")),
)
_DRIVEN = ("AV-Stop", "AV-Mov")


def _train(folder: Path, out: Path, epochs: int, networks: int, rounds: int) -> None:
    from roadaware.training.events.fit import fit_head

    started_s = time.process_time()
    rows = read_rows(folder, "train", seed=0, every=_EVERY, rounds=rounds)
    kept_back = read_rows(folder, "val", seed=40, every=_EVERY, rounds=2)
    facts = {
        "data": "simulated scenes (python -m benchmarks.events make)",
        "scenes": int(rows.scene.max()) + 1,
        "rows": len(rows.x),
        "networks": networks,
        "epochs": epochs,
    }
    head = fit_head(rows, kept_back, networks=networks, epochs=epochs, facts=facts)
    save_head(head, out)
    spent_s = time.process_time() - started_s
    print(f"{out}: {out.stat().st_size / 1e3:.0f} kB of {len(rows.x):,} rows in {spent_s:.0f} CPU s")


def _prior(rows: Rows, asked: Rows, kind: str) -> Floats:
    """(n, labels) how often agents of each told class have each label in the rows that were learnt from."""
    truth, kept = getattr(rows, kind), ~rows.parked
    shares = np.zeros((10, truth.shape[1]))
    for agent in range(10):
        of = kept & (rows.top_agent == agent)
        shares[agent] = (truth[of].sum(axis=0) + truth[kept].mean(axis=0)) / (of.sum() + 1.0)
    return shares[asked.top_agent]


def _scores(head: EventHead, rows: Rows) -> tuple[Floats, Floats, Floats]:
    action, location = head.scores(rows.x)
    drive = np.stack([head.av_scores(each) for each in rows.drive])
    return action.astype(np.float64), location.astype(np.float64), drive.astype(np.float64)


def _test(folder: Path, weights: Path | None) -> None:
    head = open_head(weights)
    learnt = read_rows(folder, "train", seed=0, every=8)
    actions, locations = common_labels(learnt)
    print("| scenes | own motion | 8 actions | of all | 10 locations | of all | AV-Stop | AV-Mov |")
    print("|---|---|---|---|---|---|---|---|")
    errors = []
    for name in ("test", "unusual", "road"):
        for pixels in (True, False):
            rows = read_rows(folder, name, seed=50, every=_EVERY, pixels=pixels)
            action, location, drive = _scores(head, rows)
            found = (
                judge_tubes(rows, action, "action", actions),
                judge_tubes(rows, location, "location", locations),
            )
            every = (
                judge_tubes(rows, action, "action", range(23)),
                judge_tubes(rows, location, "location", range(15)),
            )
            driven = [judge_drive(rows, drive, [label]) for label in _DRIVEN]
            cells = (found[0], every[0], found[1], every[1], *driven)
            how = "images" if pixels else "boxes alone"
            print(f"| {name} | {how} | {' | '.join(str(c) for c in cells)} |", flush=True)
            plain = _scores(_plain(head), rows)
            raw = (
                judge_tubes(rows, plain[0], "action", actions),
                judge_tubes(rows, plain[1], "location", locations),
            )
            errors.append((name, how, *(each.error for each in (*raw, *found))))
            if name == "test" and pixels:
                kept = (rows, every)
        if name == "test":
            prior = [
                judge_tubes(rows, _prior(learnt, rows, kind), kind, chosen)
                for kind, chosen in (("action", actions), ("location", locations))
            ]
            print(f"| {name} | class prior | {prior[0]} | | {prior[1]} | | | |")
    print("\n| scenes | own motion | actions, ECE as trained | locations | actions, calibrated | locations |")
    print("|---|---|---|---|---|---|")
    for name, how, *each in errors:
        print(f"| {name} | {how} | {' | '.join(f'{error:.3f}' for error in each)} |")
    _by_label(*kept)


LOGICS: tuple[Logic, ...] = ("product", "godel", "lukasiewicz")
_WEIGHT = 50.0
"""Of the mean violation: each of ROAD-R's 243 clauses then weighs 0.2 of a label's cross-entropy."""


class WeightedLogic(nn.Module):
    """The mean violation of clauses, weighed."""

    def __init__(self, clauses: list[list[int]], logic: Logic, weight: float) -> None:
        super().__init__()
        self.loss, self.weight = LogicLoss(clauses, logic), weight

    def forward(self, logits: Tensor) -> Tensor:
        """The sum over rows of (n, agents, actions and locations) logits."""
        found: Tensor = self.weight * self.loss(logits)
        return found


def compare_logics(
    rows: Rows, kept_back: Rows, asked: Rows, requirements: Path, weight: float, epochs: int
) -> Iterator[str]:
    """Rows of a table: the head with and without requirements in its loss, violations at .5 and average precision.

    Args:
        rows, kept_back: of `fit_head`.
        asked: that are judged.
        requirements: a file.
        weight: of the requirements.
        epochs: over the rows.
    """
    from roadaware.training.events.fit import fit_head

    kinds = {"agent": ROAD_AGENTS, "action": ACTIONS, "location": LOCATIONS}
    bound = bind_requirements(open_requirements([requirements]), kinds)
    sizes = {"agent": 0, "action": len(ROAD_AGENTS), "location": len(ROAD_AGENTS) + len(ACTIONS)}
    places = {(kind, k): sizes[kind] + k + 1 for kind, names in kinds.items() for k in range(len(names))}
    clauses = number_clauses(bound, places)
    kept = ~asked.parked
    unit, real, columns = asked.scene[kept], asked.agent[kept] >= 0, common_labels(rows)
    units = build_units(unit, 1000)
    base: list[Drawn] = []
    for name in ("none", *LOGICS):
        logic = None if name == "none" else WeightedLogic(clauses, name, weight)
        head = fit_head(rows, kept_back, networks=1, epochs=epochs, logic=logic)
        drawn = []
        # The calibration moves probabilities back to what is true on scenes kept back, whatever the requirements want.
        for each in (_plain(head), head):
            action, location = (part[kept] for part in each.scores(asked.x))
            there = np.zeros((len(unit), len(bound.labels)), np.bool_)
            scores = {
                "agent": np.eye(len(ROAD_AGENTS))[asked.top_agent[kept]],
                "action": action,
                "location": location,
            }
            for k, held in enumerate(bound.columns):
                if held is not None:
                    there[:, k] = scores[held[0]][:, held[1]] >= 0.5
            # What is no object has no labels, and so keeps no requirement: it is not counted.
            broken = find_violating_rows(there, bound)[real].astype(np.float64)
            drawn.append(weigh_mean(broken, unit[real], units))
        for said, truth, chosen in zip(
            (action, location), (asked.action[kept], asked.location[kept]), columns, strict=True
        ):
            judged = {str(k): truth[:, k] for k in chosen if truth[:, k].any()}
            wanted = {k: said[:, int(k)].astype(np.float64) for k in judged}
            drawn.append(weigh_ranking(judged, wanted, unit, units))
        base = base or drawn
        cells = [str(estimate(each, units)) for each in drawn]
        for each, first in zip(drawn, base, strict=True):
            less = estimate(each - first, units, "difference")
            cells.append("" if name == "none" else f"{less.value:+.3f} [{less.low:+.3f}, {less.high:+.3f}]")
        yield f"| {name} | {' | '.join(cells)} |"


def _logic(folder: Path, requirements: Path, weight: float, epochs: int, rounds: int) -> None:
    rows = read_rows(folder, "train", seed=0, every=_EVERY, rounds=rounds)
    kept_back = read_rows(folder, "val", seed=40, every=_EVERY, rounds=2)
    asked = read_rows(folder, "test", seed=50, every=_EVERY, pixels=True)
    print(
        "| requirements in the loss | boxes that violate one, as trained | calibrated | actions | locations "
        "| less none, paired | | | |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for line in compare_logics(rows, kept_back, asked, requirements, weight, epochs):
        print(line, flush=True)


def _by_label(rows: Rows, judged: tuple[Judged, Judged]) -> None:
    print("\n| label | average precision | chance | boxes |\n|---|---|---|---|")
    for each in judged:
        for name, (value, share, count) in sorted(each.labels.items(), key=lambda item: -item[1][2]):
            print(f"| {name} | {value:.3f} | {share:.3f} | {count:,} |")


def _ablate(folder: Path, epochs: int, rounds: int) -> None:
    from roadaware.training.events.fit import fit_head

    rows = read_rows(folder, "train", seed=0, every=_EVERY, rounds=rounds)
    kept_back = read_rows(folder, "val", seed=40, every=_EVERY)
    asked = read_rows(folder, "test", seed=50, every=_EVERY, pixels=True)
    actions, locations = common_labels(rows)
    print("| inputs | 8 actions | 10 locations |\n|---|---|---|")
    for name, groups in _GROUPS:
        columns = [k for k, feature in enumerate(FEATURES) if feature.partition(".")[0] in groups]
        head = fit_head(rows, kept_back, networks=1, epochs=epochs, columns=columns)
        action, location, _ = _scores(head, asked)
        found = (
            judge_tubes(asked, action, "action", actions),
            judge_tubes(asked, location, "location", locations),
        )
        print(f"| {name} | {found[0]} | {found[1]} |", flush=True)


def _plain(head: EventHead) -> EventHead:
    """The head without the calibration of its tubes."""
    from dataclasses import replace

    labels = len(head.tubes.slope)
    return replace(
        head,
        tubes=replace(head.tubes, slope=np.ones(labels, np.float32), offset=np.zeros(labels, np.float32)),
    )


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("make", "train", "test", "ablate", "logic", "motion", "kitti"))
    parser.add_argument(
        "folder", type=Path, nargs="?", help=f"of the sets {', '.join(SETS)}, or KITTI's label_02"
    )
    parser.add_argument("--weights", type=Path, help="of the head; the one that comes along by default")
    parser.add_argument("--out", type=Path, default=Path("events.safetensors"))
    parser.add_argument("--shrink", type=int, default=1, help="make one of so many scenes")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--networks", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--requirements", type=Path, help="logic: a file of logical requirements")
    parser.add_argument(
        "--weight", type=float, default=_WEIGHT, help="logic: of the requirements in the loss"
    )
    asked = parser.parse_args()
    if asked.part == "logic" and asked.requirements is None:
        parser.error("logic needs --requirements")
    if asked.folder is None and asked.part != "motion":
        parser.error(f"{asked.part} needs a folder")
    if asked.part == "make":
        make_sets(asked.folder, asked.shrink)
    elif asked.part == "train":
        _train(asked.folder, asked.out, asked.epochs, asked.networks, asked.rounds)
    elif asked.part == "test":
        _test(asked.folder, asked.weights)
    elif asked.part == "ablate":
        _ablate(asked.folder, asked.epochs, asked.rounds)
    elif asked.part == "logic":
        _logic(asked.folder, asked.requirements, asked.weight, asked.epochs, asked.rounds)
    elif asked.part == "motion":
        print_motion()
    else:
        print_geometry(asked.folder, open_head(asked.weights))


if __name__ == "__main__":
    main()
