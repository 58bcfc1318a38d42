"""Judge the united ways to cluster beside the angle alone and DBSCAN, on scenes that nothing was set on.

    HOW="--preset corner-cases@1 --scenes 100 --seconds 1.5 --fps 2 --no-sound"
    roadaware simulate $HOW --domain city-a --seed 7611 --output synthetic/union/city-a
    roadaware simulate $HOW --domain city-b --seed 7612 --output synthetic/union/city-b
    python docs/corner_union.py synthetic/union runs/corner-union

Among the variants is a sweep of which one ring of each labelled thing saw nothing, as dark paint does to a LiDAR, clustered
across an empty ring and not. Writes the tables to runs/corner-union/tables.md and the numbers to study.json beside it. What
is done already is not done again. Masks and detections err as in docs/corner_ablation.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TOWNS = ("city-a", "city-b")
CUTS = (5, 10, 100)
METRICS = {"AP": "ap", "AR at 5": "ar5", "AR at 10": "ar10", "AR at 100": "ar", "AR50": "ar50"}
RESAMPLES = 1000
LOST = ("angle", "DBSCAN 1 m", "united, no ring crossed", "united, learnt score")
"""Variants of which it is said what became of each object."""
PAIRS = (
    ("united, learnt score", "angle"),
    ("united, learnt score", "DBSCAN 1 m"),
    ("united, learnt score", "united, no ring crossed"),
    ("united, rings missing", "united, rings missing, no ring crossed"),
    ("united, learnt score", "united, hand formula"),
    ("united, learnt score", "united, learnt score, edges at half a beam"),
    ("united, learnt score, over time", "united, learnt score"),
    ("united, learnt score, geometry alone", "angle, geometry alone"),
)


def variants(capture: Any, instance: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Names and proposals of one image.

    Args:
        capture: what was seen.
        instance: (n,) thing that each return is of, 0 for none.
    """
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_dbscan_geometry, extract_geometry, propose

    blind = replace(capture, semantics=None, common=None)
    angle, united = CopgConfig.angle(), CopgConfig()
    plain = extract_geometry(capture, angle)
    yield "angle", propose(capture, angle, plain)
    yield "angle, geometry alone", propose(blind, angle, plain)
    wide = extract_dbscan_geometry(capture, angle, eps_m=1.0)
    yield "DBSCAN 1 m", propose(capture, angle, wide)
    geometry = extract_geometry(capture, united)
    yield "united, learnt score", propose(capture, united, geometry)
    yield "united, no ring crossed", propose(capture, replace(united, reach_rows=1))
    dark = drop_rings(capture, instance)
    yield "united, rings missing", propose(dark, united)
    yield "united, rings missing, no ring crossed", propose(dark, replace(united, reach_rows=1))
    yield "united, learnt score, geometry alone", propose(blind, united, geometry)
    yield (
        "united, hand formula",
        formula(propose(capture, replace(united, duplicate_iou=1.0, most=None), geometry)),
    )
    plain = replace(united, completion="none")
    yield "united, learnt score, edges at half a beam", propose(capture, plain, geometry)
    hard = replace(united, ranking="returns", max_background=0.45, max_common_iou=0.25)
    yield "united, score and thresholds of angle", propose(capture, hard, geometry)


def drop_rings(capture: Any, instance: np.ndarray) -> Any:
    """The sweep without the returns of one ring of each thing that three rings or more meet, neither its first nor its last.

    Args:
        capture: what was seen.
        instance: (n,) thing that each return is of, 0 for none.
    """
    rng = np.random.default_rng(0)
    kept = np.ones(len(instance), dtype=np.bool_)
    for thing in np.unique(instance[instance > 0]):
        rings = np.unique(capture.ring[instance == thing])
        if len(rings) >= 3:
            kept &= ~((instance == thing) & (capture.ring == rng.choice(rings[1:-1])))
    return replace(capture, points=capture.points[kept], ring=capture.ring[kept])


def formula(found: Any) -> Any:
    """The same boxes ranked by a formula written by hand, from the same cues as the learnt score.

    Agreement of the ways to cluster, a size of about a metre, little room under it, enough returns, nearness.
    """
    from roadaware.corner_cases.copg import describe_shapes
    from roadaware.corner_cases.cuboids import FEATURES, apply_image_cues, build_features, select_best_boxes

    shape = describe_shapes(found.geometry, found.boxes, found.cuboids, size=(10**9, 10**9))
    rows = build_features(shape, found.boxes, hypotheses=len(found.geometry.hypotheses))
    told = dict(zip(FEATURES, rows.T, strict=True))
    returns, away, length = np.exp(told["log_returns"]), told["distance_m"], told["log_length"]
    height, feet, agreement = told["height_m"], told["feet_m"], told["mean_agreement"]
    compact = np.exp(-0.5 * (np.maximum(length, np.log(height)) / 0.9) ** 2)
    stands = np.clip(1.5 - feet, 0.05, 1)
    geometric = (
        (1 + 2 * agreement) / 3 * compact * stands * returns / (returns + 8) * np.clip(1 - away / 100, 0, 1)
    )
    scores = apply_image_cues(geometric, found.background, found.overlap)
    final = select_best_boxes(
        found.boxes.edges, scores, np.ones(len(scores), dtype=np.bool_), duplicate_iou=0.6, most=25
    )
    return replace(found, scores=scores, final=final)


def make(root: Path, folder: Path) -> None:
    """Proposals of all variants of one town, and what became of its objects; parts that are there are kept.

    Args:
        root: the town's scenes.
        folder: where results of it go.
    """
    from roadaware.analysis.corner_tables import assign_losses
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.proposal_tables import build_proposal_rows, merge_proposal_rows
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep
    from roadaware.scenes.store import save

    if (folder / "losses.parquet").exists():
        return
    order = Order("simulator", str(root.resolve()), semantics="erring", detections="erring")
    scenes = load_run_inputs(order).scenes
    every = scenes.boxes.join(scenes.tubes.select("tube", "name", "instance"), on="tube", how="left")
    found: dict[str, list[pl.DataFrame]] = {}
    lost = []
    for moment, opened in iterate_captures(order):
        sweep = open_sweep(scenes, root, moment.scene, moment.frame)
        held = every.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame)).filter(
            "corner_case"
        )
        boxes = held.select(CORNERS).to_numpy().astype(float).reshape(-1, 4)
        for name, proposals in variants(opened(), sweep.instance):
            found.setdefault(name, []).append(build_proposal_rows(proposals, moment.video, moment.frame))
            config = CopgConfig() if name.startswith("united") else CopgConfig.angle()
            if name not in LOST:
                continue
            fates = assign_losses(proposals, boxes, held["instance"].to_list(), sweep.instance, config)
            for kind, fate in zip(held["name"].to_list(), fates, strict=True):
                lost.append({"run": name, "loss": fate, "kind": kind.rpartition("-")[0]})
    for number, (name, rows) in enumerate(found.items()):
        save(merge_proposal_rows(rows), folder / str(number), overwrite=True)
        (folder / f"{number}.txt").write_text(name)
    pl.DataFrame(lost).write_parquet(folder / "losses.parquet")


def predictions(root: Path, folder: Path) -> dict[str, Any]:
    """Variant to its proposals, those over time among them."""
    from roadaware.corner_cases.runner import Order, load_run_inputs
    from roadaware.corner_cases.tracking import track_proposals
    from roadaware.scenes.store import open_predictions

    numbers = sorted(int(path.stem) for path in folder.glob("*.txt"))
    found = {(folder / f"{n}.txt").read_text(): open_predictions(folder / str(n)) for n in numbers}
    held = load_run_inputs(Order("simulator", str(root.resolve())))
    name = "united, learnt score"
    found[f"{name}, over time"] = track_proposals(found[name], held.captures, most=25)
    return found


def judge(root: Path, held: dict[str, Any]) -> dict[str, Any]:
    """Variant to what it meets of the corner cases of a town."""
    from roadaware.corner_cases.runner import Order, load_run_inputs
    from roadaware.metrics.corner_cases.evaluate import build_corner_state
    from roadaware.metrics.corner_cases.matching import (
        CornerConfig,
        extract_objects,
        extract_proposals,
        match_group,
    )

    config = CornerConfig(groups=("corner",), precision="always", max_detections=CUTS)
    truth = extract_objects(load_run_inputs(Order("simulator", str(root.resolve()))).scenes, area=config.area)
    states = {}
    for name, each in held.items():
        told = extract_proposals(each, truth)[0]
        met = {"corner": match_group("corner", truth, told, config)}
        states[name] = build_corner_state(truth, told, met, {}, config)
    return states


def table(
    states: dict[str, Any], counts: dict[str, float], pairs: tuple[tuple[str, str], ...] = PAIRS
) -> tuple[str, dict[str, Any]]:
    """Values and differences with intervals over scenes, as a table and as data."""
    from roadaware.metrics.metric_state import compute_values, resample_metrics
    from roadaware.statistics.intervals import Units

    values, resamples = {}, {}
    for name, state in states.items():
        plain, many = compute_values(state), resample_metrics(state, RESAMPLES, 0)
        values[name] = {metric: plain[f"corner_{metric}"] for metric in METRICS.values()}
        resamples[name] = {metric: many[f"corner_{metric}", None] for metric in METRICS.values()}
        units = Units(len(state.videos), RESAMPLES, 0)
    lines = [f"| proposals | {' | '.join(METRICS)} | an image |", f"|{'---|' * (len(METRICS) + 2)}"]
    data: dict[str, Any] = {}
    for name, own in values.items():
        ends = {m: units.interval(own[m], resamples[name][m]) for m in METRICS.values()}
        cells = [f"{own[m]:.3f} [{ends[m].low:.3f}, {ends[m].high:.3f}]" for m in METRICS.values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {counts[name]:.1f} |")
        data[name] = {m: [own[m], ends[m].low, ends[m].high] for m in METRICS.values()}
    lines += ["", f"| difference | {' | '.join(METRICS)} |", f"|{'---|' * (len(METRICS) + 1)}"]
    for one, other in pairs:
        cells = []
        for m in METRICS.values():
            gain = values[one][m] - values[other][m]
            ends = units.interval(gain, resamples[one][m] - resamples[other][m], "difference")
            cells.append(f"{gain:+.3f} [{ends.low:+.3f}, {ends.high:+.3f}]")
            data[f"{one} over {other}, {m}"] = [gain, ends.low, ends.high]
        lines.append(f"| {one}, over {other} | {' | '.join(cells)} |")
    return "\n".join(lines), data


def main(made: Path, out: Path) -> None:
    """Do what is not done, then write the tables."""
    from roadaware.analysis.corner_tables import LOSSES
    from roadaware.protocols.copg_ablation import rename_videos

    parts, counts, pictures, lost = {}, Counter(), 0, []
    for town in TOWNS:
        (out / town).mkdir(parents=True, exist_ok=True)
        make(made / town, out / town)
        held = predictions(made / town, out / town)
        parts[town] = judge(made / town, held)
        counts.update({name: len(each.boxes) for name, each in held.items()})
        pictures += len(next(iter(parts[town].values())).items)
        lost.append(pl.read_parquet(out / town / "losses.parquet"))  # noqa: TID251
    first, second = (parts[town] for town in TOWNS)
    both = {name: rename_videos(first[name], "a/").merge(rename_videos(second[name], "b/")) for name in first}
    text, data = {}, {}
    means = {name: count / pictures for name, count in counts.items()}
    for name, states in (("both towns", both), *parts.items()):
        text[name], data[name] = table(states, means)
    fates = pl.concat(lost)
    lines = [f"| | {' | '.join(LOST)} |", f"|{'---|' * (len(LOST) + 1)}"]
    for loss in LOSSES:
        cells = []
        for run in LOST:
            own = fates.filter(run=run)
            count = int((own["loss"] == loss).sum())
            cells.append(f"{count:,} ({count / len(own):.1%})")
        lines.append(f"| {loss} | {' | '.join(cells)} |")
    page = "\n\n".join(f"### {name}\n\n{each}" for name, each in text.items())
    (out / "tables.md").write_text(f"{page}\n\n### losses\n\n" + "\n".join(lines) + "\n")
    (out / "study.json").write_text(json.dumps(data, indent=1))
    print((out / "tables.md").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
