"""Sweeps of KITTI and nuScenes by the angle alone and by the united ways: rings, ground, clusters, what is found."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from plain_labels import plain_labels

from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import Proposals, propose
from roadaware.corner_cases.ground import check
from roadaware.corner_cases.loader import Captures
from roadaware.corner_cases.range_image import GIVEN, RECOVERED, assign_grid_cells, fill, label
from roadaware.datasets import read
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

REAL = os.environ.get("ROADAWARE_DATA_DIR", "")
pytestmark = pytest.mark.skipif(not REAL, reason="ROADAWARE_DATA_DIR is not set")


@cache
def opened(name: str, united: bool = False) -> tuple[Scenes, dict[str, tuple[Capture, Proposals]]]:
    """A set, and each image with its proposals by the end of the image's name."""
    config = CopgConfig() if united else CopgConfig.angle()
    root = Path(REAL) / name
    scenes = read(name, root, cache=False)
    captures = Captures(scenes, root)
    found = {}
    for moment in captures.moments:
        capture = captures.open(moment)
        found[moment.video] = (capture, propose(capture, config))
    return scenes, found


def best(name: str, united: bool = False, most: int | None = None) -> pl.DataFrame:
    """Each labelled box with the overlap of the best of the final proposals of its image, and how far it is."""
    scenes, found = opened(name, united)
    words = scenes.meta.vocabularies["object"]
    of = {box: words[number] for box, number in scenes.labels.select("box", "label").iter_rows()}
    told = []
    for row in scenes.boxes.iter_rows(named=True):
        held = found[row["video"]][1]
        order = np.argsort(-held.scores, kind="stable")
        edges = held.boxes.edges[order[held.final[order]]][:most]
        overlap = float(iou([[row[corner] for corner in CORNERS]], edges).max())
        away = row["z_m"] if name == "kitti" else row["depth_m"]
        told.append({"what": of[row["box"]], "overlap": overlap, "away": away})
    return pl.DataFrame(told)


def test_the_corner_case_of_kitti_is_found():
    found = dict(best("kitti").select("what", "overlap").iter_rows())
    assert found["Misc"] >= 0.7
    assert found["Pedestrian"] >= 0.8
    # 34 m away: the ground takes the lower half, and the returns are few.
    assert 0.3 <= found["Car"] < 0.5


def test_united_ways_find_more_of_kitti_in_fewer_boxes():
    found = dict(best("kitti", united=True).select("what", "overlap").iter_rows())
    assert found["Car"] >= 0.8
    first = dict(best("kitti", united=True, most=5).select("what", "overlap").iter_rows())
    # The ring that met its dark back saw nothing and no longer parts it.
    assert first["Car"] >= 0.8
    assert first["Misc"] >= 0.75
    assert first["Pedestrian"] >= 0.86
    counts = [len(proposals) for _, proposals in opened("kitti", united=True)[1].values()]
    assert counts == [25, 25]


def test_united_ways_find_more_of_nuscenes_in_as_many_boxes():
    near = best("nuscenes", united=True).filter(pl.col("away") <= 50)
    assert int((near["overlap"] >= 0.5).sum()) >= 20
    assert sum(len(proposals) for _, proposals in opened("nuscenes", united=True)[1].values()) == 150


def test_rings_and_ground_of_kitti():
    _, found = opened("kitti")
    shares, counts = [], []
    for capture, proposals in found.values():
        geometry = proposals.geometry
        assert (geometry.grid.how, geometry.grid.shape) == (RECOVERED, (64, 2083))
        assert 1.6 < geometry.ground.plane[3] < 1.8
        shares.append(geometry.ground.removed.sum() / len(capture.points))
        counts.append(len(proposals))
    np.testing.assert_allclose(shares, [0.42, 0.33], atol=0.02)
    np.testing.assert_allclose(counts, [90, 29], atol=5)


def test_a_keyframe_of_nuscenes():
    _, found = opened("nuscenes")
    assert len(found) == 6
    for capture, proposals in found.values():
        geometry = proposals.geometry
        assert (geometry.grid.how, geometry.grid.shape) == (GIVEN, (32, 1084))
        assert geometry.ground.removed.sum() / len(capture.points) == pytest.approx(0.42, abs=0.02)
    near = best("nuscenes").filter(pl.col("away") <= 50)
    assert len(near) == 64
    assert int((near["overlap"] >= 0.5).sum()) >= 9


def test_neither_rotation_nor_order_changes_what_belongs_together_in_a_real_sweep():
    capture, _ = next(iter(opened("nuscenes")[1].values()))
    points, ring = np.ascontiguousarray(capture.points[:, :3], np.float32), capture.ring
    columns = 1084

    def groups(points, ring):
        grid = assign_grid_cells(points, check(points, min_range_m=2.0), ring=ring, columns=columns)
        labels, count = label(fill(grid), grid.elevations, reach_columns=2)
        found = np.where(grid.column >= 0, labels[grid.row, grid.column], 0)
        return found, count

    plain, count = groups(points, ring)
    mixed = np.random.default_rng(0).permutation(len(points))
    other, same = groups(points[mixed], ring[mixed])
    assert same == count
    pairs = set(zip(plain[mixed].tolist(), other.tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({two for _, two in pairs})
    # A turn by whole columns moves a few returns to the next one: rounding decides at the edge of a pixel.
    angle = 2 * np.pi / columns * 321
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    turned, near = groups((points.astype(np.float64) @ turn.T).astype(np.float32), ring)
    assert abs(near - count) <= 0.01 * count
    assert rand_index(plain, turned) > 0.999


def rand_index(one: np.ndarray, other: np.ndarray) -> float:
    """Share of pairs of returns on which two ways to group them agree."""
    table = np.unique(np.stack([one, other]), axis=1, return_counts=True)[1].astype(np.float64)
    sides = [np.unique(each, return_counts=True)[1].astype(np.float64) for each in (one, other)]
    pairs = len(one) * (len(one) - 1) / 2
    together = (table * (table - 1) / 2).sum()
    first, second = ((each * (each - 1) / 2).sum() for each in sides)
    return float((pairs + 2 * together - first - second) / pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kitti", "nuscenes"])
def test_clusters_of_real_sweeps_are_those_of_a_plain_search(name):
    for _, proposals in list(opened(name)[1].values())[: 2 if name == "kitti" else 1]:
        geometry = proposals.geometry
        assert (geometry.image < 0).any(), "ground stands between things"
        plain = plain_labels(geometry.image, geometry.grid.elevations, 8.0, 1, 2)
        np.testing.assert_array_equal(geometry.clusters.image, plain)
