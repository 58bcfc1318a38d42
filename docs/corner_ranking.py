"""Learn the score of the proposals of corner cases on synthetic scenes, and write src/roadaware/corner_cases/ranking.json.

    HOW="--preset corner-cases@1 --scenes 25 --seconds 1.5 --fps 2 --no-sound"
    roadaware simulate $HOW --domain low-sun --seed 4503 --output synthetic/ranking/low-sun
    roadaware simulate $HOW --domain snow-suburb --seed 4504 --output synthetic/ranking/snow-suburb
    python docs/corner_ranking.py synthetic/ranking

What is learnt is how well a box fits ANY labelled object, not whether it is a corner case: a score that knew the few
shapes of the simulator's corner cases would be worth little elsewhere. Boxes on things that the simulator does not label
(parked cars, signs, street furniture) say nothing and are left out. Every sweep is learnt from twice, the second time with
every other ring and a twentieth of the returns left out, so that no one LiDAR is learnt.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TREES, DEPTH, RATE, LEAF = 100, 3, 0.06, 40
FROM, SPAN = 0.4, 0.5
"""Overlaps from 0.4 to 0.9 are worth 0 to 1: recall is asked for at 0.5 to 0.95."""
APART = 0.3
UNLABELLED = (
    "car",
    "truck",
    "bus",
    "motorcycle",
    "bicycle",
    "rider",
    "person",
    "object",
    "traffic sign",
    "traffic light",
)
"""Classes of the simulator's masks whose objects are not all labelled."""


def rows(root: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features and worth of the boxes of each sweep, whole and thinned.

    Args:
        root: synthetic scenes.
    """
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep

    order = Order("simulator", str(root.resolve()))
    scenes = load_run_inputs(order).scenes
    every = scenes.boxes.join(scenes.tubes.select("tube", "instance"), on="tube", how="left")
    rng = np.random.default_rng(0)
    for moment, opened in iterate_captures(order):
        held = every.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        truth = held.select(CORNERS).to_numpy().astype(float).reshape(-1, 4)
        labelled = set(held["instance"].drop_nulls())
        sweep = open_sweep(scenes, root, moment.scene, moment.frame)
        capture = opened()
        whole = np.ones(len(capture.points), dtype=np.bool_)
        thin = (capture.ring % 2 == rng.integers(2)) & (rng.random(len(whole)) > 0.05)
        halved = replace(
            capture,
            points=capture.points[thin],
            ring=capture.ring[thin] // 2,
            layout="32 rings x 900 columns",
        )
        for seen, kept in ((capture, whole), (halved, thin)):
            yield _judged(seen, truth, labelled, sweep.instance[kept], sweep.semantic[kept])


def _judged(
    capture: Any, truth: np.ndarray, labelled: set[int], instance: np.ndarray, semantic: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Features and worth of the boxes of one sweep that say something."""
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import (
        extract_geometry,
        fit_proposal_cuboids,
        project_hypotheses,
        select_cluster_values,
    )
    from roadaware.corner_cases.ranking import build_features
    from roadaware.corner_cases.sources import NAMES
    from roadaware.geometry.boxes import iou

    config = CopgConfig()
    geometry = extract_geometry(capture, config)
    boxes = project_hypotheses(geometry, capture, config)
    features = build_features(
        boxes,
        fit_proposal_cuboids(geometry, boxes, config),
        (capture.camera.width_px, capture.camera.height_px),
        hypotheses=len(geometry.hypotheses),
        **{
            name: select_cluster_values(geometry, boxes, name)
            for name in ("counts", "nearest_m", "feet_m", "head_m")
        },
    )
    best = iou(boxes.edges, truth).max(axis=1, initial=0.0) if len(truth) else np.zeros(len(boxes))
    says = np.ones(len(boxes), dtype=np.bool_)
    for place in np.flatnonzero(best < APART):
        mine = geometry.hypotheses[boxes.hypothesis[place]].clusters.of_return == boxes.cluster[place]
        known = int(np.bincount(instance[mine]).argmax()) in labelled
        says[place] = known or NAMES[np.bincount(semantic[mine]).argmax()] not in UNLABELLED
    return features[says], np.clip((best[says] - FROM) / SPAN, 0, 1)


def learn(features: np.ndarray, worth: np.ndarray) -> dict[str, Any]:
    """Complete trees as plain data, learnt by scikit-learn.

    Args:
        features: (m, f).
        worth: (m,) in [0, 1].
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    from roadaware.corner_cases.ranking import FEATURES

    model = HistGradientBoostingRegressor(
        max_iter=TREES,
        learning_rate=RATE,
        max_depth=DEPTH,
        min_samples_leaf=LEAF,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    ).fit(features, worth)
    found: dict[str, list[Any]] = {"feature": [], "threshold": [], "value": []}
    for (tree,) in model._predictors:
        asked, limits = [0] * (2**DEPTH - 1), [0.0] * (2**DEPTH - 1)
        leaves = [0.0] * 2**DEPTH
        _complete(tree.nodes, 0, 0, asked, limits, leaves)
        for name, values in zip(found, (asked, limits, leaves), strict=True):
            found[name].append(values)
    base = float(np.ravel(model._baseline_prediction)[0])
    held = {"features": FEATURES, "base": base, **found}
    _check(held, model.predict(features), features)
    return held


def _complete(
    nodes: Any, at: int, place: int, asked: list[int], limits: list[float], leaves: list[float]
) -> None:
    """Write a node and all below it into a complete tree; a leaf that comes early stands at all places below."""
    node = nodes[at]
    if place >= len(asked):
        leaves[place - len(asked)] = float(node["value"])
        return
    if node["is_leaf"]:
        for child in (2 * place + 1, 2 * place + 2):
            _complete(nodes, at, child, asked, limits, leaves)
        return
    asked[place], limits[place] = int(node["feature_idx"]), float(node["num_threshold"])
    _complete(nodes, int(node["left"]), 2 * place + 1, asked, limits, leaves)
    _complete(nodes, int(node["right"]), 2 * place + 2, asked, limits, leaves)


def _check(held: dict[str, Any], expected: np.ndarray, features: np.ndarray) -> None:
    """Hold what is written to what was learnt."""
    from roadaware.corner_cases.ranking import parse_trees

    found = parse_trees(json.dumps(held).encode()).predict(features)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def main(root: Path) -> None:
    """Learn from all sets of a folder, and write the trees beside the code."""
    from roadaware.corner_cases import ranking
    from roadaware.io.files import write_atomically

    parts = [part for each in sorted(root.iterdir()) for part in rows(each)]
    features, worth = (np.concatenate([part[place] for part in parts]) for place in range(2))
    held = learn(features, worth)
    # Six digits say all that so few scenes can teach.
    rounded = json.loads(json.dumps(held), parse_float=lambda text: float(f"{float(text):.6g}"))
    path = Path(ranking.__file__).with_name(ranking.MODEL)
    write_atomically(path, (json.dumps(rounded, separators=(",", ":")) + "\n").encode())
    print(f"{len(worth):,} boxes of {len(parts):,} sweeps; wrote {path.name}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
