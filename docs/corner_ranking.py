"""Learn edges and score of the proposals of corner cases on synthetic scenes, for src/roadaware/corner_cases/ranking.json.

    HOW="--preset corner-cases@1 --scenes 25 --seconds 1.5 --fps 2 --no-sound"
    roadaware simulate $HOW --domain low-sun --seed 4503 --output synthetic/ranking/low-sun
    roadaware simulate $HOW --domain snow-suburb --seed 4504 --output synthetic/ranking/snow-suburb
    python docs/corner_ranking.py synthetic/ranking

Edges are learnt first, of boxes nine tenths of whose returns are of one labelled object: how many beams further that
object goes. Then the score, on the moved boxes: how well a box fits ANY labelled object, not whether it is a corner case;
a score that knew the few shapes of the simulator's corner cases would be worth little elsewhere. Boxes on things that the
simulator does not label (parked cars, signs, street furniture) say nothing and are left out.

Every moment is learnt from three times, so that no one LiDAR is learnt: as it is, with every other ring and a twentieth of
the returns left out, and as an HDL-32E on the same roof sees it, which is simulated anew (32 rings from -30.67 to 10.67
degrees, 1,084 columns).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

DEPTH, LEAF = 3, 40
SCORE, EDGE = {"max_iter": 100, "learning_rate": 0.06}, {"max_iter": 60, "learning_rate": 0.1}
OWN, MET = 0.9, 0.25
"""An edge is learnt from boxes of whose returns so many are of one object, which they overlap by so much at least."""
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


@dataclass(frozen=True, eq=False)
class Lesson:
    """The boxes of one sweep, and what they are boxes of.

    Args:
        geometry: what the returns say.
        boxes: (m) as they are projected.
        cuboids: (m) of the same.
        size: width and height of the image in pixels.
        truth: (t, 4) x1, y1, x2, y2 in pixels of the labelled objects.
        own: (m, 4) those of the object of which most returns of each box are; nan where it has no label.
        share: (m,) share of the returns that are of it.
        says: (m,) whether a box that meets no object is known to be none.
    """

    geometry: Any
    boxes: Any
    cuboids: Any
    size: tuple[int, int]
    truth: np.ndarray
    own: np.ndarray
    share: np.ndarray
    says: np.ndarray


def lessons(root: Path) -> Iterator[Lesson]:
    """The boxes of each sweep as it is, thinned, and taken by another LiDAR.

    Args:
        root: synthetic scenes.
    """
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep
    from roadaware.simulator.config import build_scene_config
    from roadaware.simulator.generate import FAR_M, MAIN, Stage, make_episode
    from roadaware.simulator.sensors import lidar_pose, simulate_sweep

    order = Order("simulator", str(root.resolve()))
    scenes = load_run_inputs(order).scenes
    every = scenes.boxes.join(scenes.tubes.select("tube", "instance"), on="tube", how="left")
    made = json.loads((root / MAIN).read_bytes())
    config = build_scene_config(*made["config"]["name"].split("+"))
    camera = replace(config.camera, fps=made["config"]["camera"]["fps"])
    config = replace(config, seconds=made["config"]["seconds"], sound=False, camera=camera)
    other = replace(config.lidar, rings=32, columns=1084, lowest_deg=-30.67, highest_deg=10.67)
    step = np.radians(other.highest_deg - other.lowest_deg) / (other.rings - 1)
    rng, name = np.random.default_rng(0), ""
    for moment, opened in iterate_captures(order):
        held = every.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        labels = dict(
            zip(held["instance"].to_list(), held.select(CORNERS).to_numpy().astype(float), strict=True)
        )
        sweep = open_sweep(scenes, root, moment.scene, moment.frame)
        capture = opened()
        yield _describe(capture, labels, sweep.instance, sweep.semantic)
        thin = (capture.ring % 2 == rng.integers(2)) & (rng.random(len(capture.points)) > 0.05)
        halved = replace(
            capture,
            points=capture.points[thin],
            ring=capture.ring[thin] // 2,
            layout="32 rings x 900 columns",
        )
        yield _describe(halved, labels, sweep.instance[thin], sweep.semantic[thin])
        if name != moment.scene:
            name, number = moment.scene, int(moment.scene.rpartition("-")[2])
            # The same configuration and seed make the same scene again.
            episode = make_episode(config, made["seed"], number)
            stage = Stage(episode)
        soup = stage.around(moment.frame, min(other.range_m, FAR_M))
        pose = lidar_pose(episode.ego, other, moment.frame)
        again = simulate_sweep(soup, pose, other, seed=episode.seed, frame=moment.frame)
        points = np.asarray(again.points)[:, :3]
        elevation = np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))
        ring = np.rint((elevation - np.radians(other.lowest_deg)) / step).astype(np.int64)
        taken = replace(
            capture, points=points, ring=ring, layout=f"{other.rings} rings x {other.columns} columns"
        )
        yield _describe(taken, labels, again.instance, again.semantic)


def _describe(
    capture: Any, labels: dict[int | None, np.ndarray], instance: np.ndarray, semantic: np.ndarray
) -> Lesson:
    """Boxes of one sweep with what their returns are of."""
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_geometry, fit_proposal_cuboids, project_hypotheses
    from roadaware.corner_cases.sources import NAMES

    # The bundled trees were learnt before the default crossed an empty ring.
    config = CopgConfig(reach_rows=1)
    geometry = extract_geometry(capture, config)
    boxes = project_hypotheses(geometry, capture, config)
    own, share = np.full((len(boxes), 4), np.nan), np.zeros(len(boxes))
    says = np.ones(len(boxes), dtype=np.bool_)
    for place in range(len(boxes)):
        mine = geometry.hypotheses[boxes.hypothesis[place]].clusters.of_return == boxes.cluster[place]
        counts = np.bincount(instance[mine])
        most = int(counts.argmax())
        share[place] = counts[most] / counts.sum()
        own[place] = labels.get(most, np.nan)
        says[place] = most in labels or NAMES[np.bincount(semantic[mine]).argmax()] not in UNLABELLED
    truth = np.array(list(labels.values())).reshape(-1, 4)
    cuboids = fit_proposal_cuboids(geometry, boxes, config)
    size = (capture.camera.width_px, capture.camera.height_px)
    return Lesson(geometry, boxes, cuboids, size, truth, own, share, says)


def teach_edges(parts: list[Lesson]) -> dict[str, Any]:
    """Trees of each edge: how many beams further an object goes.

    Args:
        parts: of all sweeps.
    """
    from roadaware.corner_cases.copg import describe_shapes
    from roadaware.corner_cases.cuboids import EDGES, MOST_BEAMS
    from roadaware.geometry.boxes import iou

    features, moves = [], []
    for each in parts:
        known = (each.share >= OWN) & np.isfinite(each.own).all(axis=1)
        known[known] = np.diag(iou(each.boxes.edges[known], each.own[known])) >= MET
        shape = describe_shapes(each.geometry, each.boxes, each.cuboids, size=each.size)
        beams = (each.own - each.boxes.edges)[known] / each.boxes.beams[known]
        features.append(shape[known])
        moves.append(np.clip(beams, -MOST_BEAMS, MOST_BEAMS))
    rows, told = np.concatenate(features), np.concatenate(moves)
    print(f"edges of {len(rows):,} boxes move by {told.mean(axis=0).round(2).tolist()} beams in the mean")
    return {name: learn(rows, told[:, place], EDGE) for place, name in enumerate(EDGES)}


def teach_score(parts: list[Lesson], edges: dict[str, Any]) -> dict[str, Any]:
    """Trees of the score, on boxes whose edges are moved.

    Args:
        parts: of all sweeps.
        edges: trees of each edge.
    """
    from roadaware.corner_cases.copg import describe_shapes
    from roadaware.corner_cases.cuboids import build_features, move_edges
    from roadaware.geometry.boxes import iou

    features, worth = [], []
    for each in parts:
        shape = describe_shapes(each.geometry, each.boxes, each.cuboids, size=each.size)
        moves = np.column_stack([predict(trees, shape) for trees in edges.values()])
        boxes = move_edges(each.boxes, moves, each.size)
        shape = describe_shapes(each.geometry, boxes, each.cuboids, size=each.size)
        best = iou(boxes.edges, each.truth).max(axis=1, initial=0.0)
        says = each.says | (best >= APART)
        rows = build_features(shape, boxes, hypotheses=len(each.geometry.hypotheses))
        features.append(rows[says])
        worth.append(np.clip((best[says] - FROM) / SPAN, 0, 1))
    print(f"score of {sum(map(len, worth)):,} boxes")
    return learn(np.concatenate(features), np.concatenate(worth), SCORE)


def predict(trees: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """(m,) what trees say of rows.

    Args:
        trees: of `learn`.
        rows: (m, f) features.
    """
    from roadaware.corner_cases.cuboids import Trees

    return Trees(
        trees["base"], *(np.array(trees[name]) for name in ("feature", "threshold", "value"))
    ).predict(rows)


def learn(features: np.ndarray, wanted: np.ndarray, how: dict[str, Any]) -> dict[str, Any]:
    """Complete trees as plain data, learnt by scikit-learn.

    Args:
        features: (m, f).
        wanted: (m,) what they are to say.
        how: number of trees and rate of learning.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        **how,
        max_depth=DEPTH,
        min_samples_leaf=LEAF,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    ).fit(features, wanted)
    found: dict[str, list[Any]] = {"feature": [], "threshold": [], "value": []}
    for (tree,) in model._predictors:
        asked, limits = [0] * (2**DEPTH - 1), [0.0] * (2**DEPTH - 1)
        leaves = [0.0] * 2**DEPTH
        _complete(tree.nodes, 0, 0, asked, limits, leaves)
        for name, values in zip(found, (asked, limits, leaves), strict=True):
            found[name].append(values)
    base = float(np.ravel(model._baseline_prediction)[0])
    held = {"base": base, **found}
    np.testing.assert_allclose(predict(held, features), model.predict(features), atol=1e-9)
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


def main(root: Path) -> None:
    """Learn from all sets of a folder, and write the trees beside the code.

    Args:
        root: folders of synthetic scenes.
    """
    from roadaware.corner_cases import cuboids
    from roadaware.io.files import write_atomically

    parts = [part for each in sorted(root.iterdir()) for part in lessons(each)]
    edges = teach_edges(parts)
    trees = {"score": teach_score(parts, edges), **edges}
    held = {"features": cuboids.FEATURES, "trees": trees}
    # Six digits say all that so few scenes can teach.
    rounded = json.loads(json.dumps(held), parse_float=lambda text: float(f"{float(text):.6g}"))
    path = Path(cuboids.__file__).with_name(cuboids.MODEL)
    data = (json.dumps(rounded, separators=(",", ":")) + "\n").encode()
    cuboids.parse_trees(data)
    write_atomically(path, data)
    print(f"{len(parts):,} sweeps; wrote {path.name}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
