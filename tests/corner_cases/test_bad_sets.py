"""A set of bad images: each is left out, or proposed for with what is odd; none stops the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from planted import Thing, World, capture, sweep
from planted_kitti import planted_kitti
from sets import SETS

from roadaware.corner_cases.captures import SemanticMap
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import extract_geometry
from roadaware.corner_cases.loader import (
    LEFT_OUT,
    NO_GROUND,
    NO_NAMES,
    NO_RETURNS,
    NO_RINGS,
    OFF_CENTRE,
    collect_warnings,
    format_lidar_height,
)
from roadaware.corner_cases.runner import Order, run
from roadaware.datasets.sensor_tables import DISTORTION
from roadaware.errors import DatasetNotFoundError

POINTS, RING, _ = sweep(World((Thing(9, 0, width=1.5, height=1.4),), columns=600))
WALL = np.stack(np.meshgrid([6.0], np.linspace(-8, 8, 80), np.linspace(-1.5, 1, 30)), -1).reshape(-1, 3)
NAMES = ("velodyne", "calib", "image_2")
Change = Callable[[Path, Path, Path], object]


def rows(points: np.ndarray) -> bytes:
    return np.column_stack([points, np.zeros(len(points))]).astype("<f4").tobytes()


def swept(points: np.ndarray) -> Change:
    """Another sweep."""
    return lambda sweep, calib, picture: sweep.write_bytes(rows(points))


def with_some(*bad: float) -> np.ndarray:
    """The sweep with some coordinates that are none."""
    points = POINTS.copy()
    points[100 : 100 + len(bad), 1] = bad
    return points


def sized(width: int, height: int) -> Change:
    return lambda sweep, calib, picture: Image.new("RGB", (width, height)).save(picture)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


LEFT: dict[str, tuple[Change, str]] = {
    "sweep cut off": (lambda s, c, p: s.write_bytes(s.read_bytes()[:-5]), "no whole number of points"),
    "no sweep": (lambda s, c, p: s.unlink(), "no such file"),
    "a folder for a sweep": (lambda s, c, p: folder_instead(s), "found a folder"),
    "millimetres": (swept(POINTS * 1000), "no metres"),
    "z ahead": (swept(POINTS[:, [1, 2, 0]]), "50 degrees above or below"),
    "no intensity": (
        lambda s, c, p: s.write_bytes(POINTS[:16000].astype("<f4").tobytes()),
        "50 degrees above or below",
    ),
    "no calibration": (lambda s, c, p: c.unlink(), "no calibration"),
    "calibration cut off": (lambda s, c, p: c.write_bytes(c.read_bytes()[:200]), "no calibration"),
    "image of another size": (sized(20, 6), "outside the image of 20x6 pixels"),
    "no image": (lambda s, c, p: p.unlink(), "no such file"),
    "no image in the file": (
        lambda s, c, p: p.write_bytes(b"\x89PNG" + bytes(60)),
        "no whole PNG or JPEG: it is neither",
    ),
}
ODD: dict[str, tuple[Change, tuple[str, ...]]] = {
    "some not finite": (swept(with_some(np.nan, np.inf, -np.inf, 1e38)), (LEFT_OUT,)),
    "no returns": (swept(POINTS[:0]), (NO_RETURNS,)),
    "nothing finite": (swept(POINTS * np.nan), (NO_RETURNS, LEFT_OUT)),
    "a wall": (swept(WALL), (NO_GROUND, NO_RINGS)),
    "all equal": (swept(np.tile([[7.0, 1, -1]], (300, 1))), (NO_GROUND, NO_RINGS)),
    "one ring": (swept(POINTS[RING == 20]), (NO_RINGS,)),
    "in no order": (swept(np.random.default_rng(0).permutation(POINTS)), (NO_RINGS,)),
    "feet": (swept(POINTS / 0.3048), (format_lidar_height(1.8 / 0.3048),)),
    "a foot is 0.32 m": (swept(POINTS / 0.32), (format_lidar_height(1.8 / 0.3048),)),
    "a small image": (sized(42, 13), (OFF_CENTRE,)),
    "nothing wrong": (lambda s, c, p: None, ()),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def spoilt(root: Path, changes: list[Change]) -> Path:
    """A set of as many images, each changed."""
    planted_kitti(root, len(changes))
    for number, change in enumerate(changes):
        (root / "training" / "velodyne" / f"{number:06d}.bin").write_bytes(rows(POINTS))
        change(
            *(
                root / "training" / kind / f"{number:06d}{suffix}"
                for kind, suffix in zip(NAMES, (".bin", ".txt", ".png"), strict=True)
            )
        )
    return root


def test_every_bad_picture_is_left_out_with_its_reason(tmp_path):
    changes = [change for change, _ in LEFT.values()]
    root = spoilt(tmp_path / "kitti", [*changes, ODD["nothing wrong"][0]])
    found, tally = run(Order("kitti", str(root), CopgConfig.angle(), part=4), tmp_path / "out")
    assert set(found.boxes["video"]) == {f"training/{len(LEFT):06d}", "testing/000000"}
    assert sum(tally.skipped.values()) == len(LEFT)
    told = {each["video"]: each["reason"] for each in found.meta.notes["proposals"]["skipped"]}
    for number, (name, (_, reason)) in enumerate(LEFT.items()):
        held = told.get(f"training/{number:06d}", "no calibration")
        assert reason in held, name
    assert tally.skipped["no calibration"] == 2
    assert tally.refused == 3, "a calibration that is not there, one that is cut off, a damaged image"
    assert tally.odd == {}


def test_what_is_odd_is_counted_and_proposed_for(tmp_path):
    root = spoilt(tmp_path / "kitti", [change for change, _ in ODD.values()])
    found, tally = run(Order("kitti", str(root), CopgConfig.angle(), part=4), tmp_path / "out")
    assert (tally.skipped, tally.refused) == ({}, 0)
    assert tally.odd == Counter(word for _, words in ODD.values() for word in words)
    counts = dict(found.boxes.group_by("video").len().iter_rows())
    by_name = {name: counts.get(f"training/{n:06d}", 0) for n, name in enumerate(ODD)}
    assert by_name["nothing wrong"] == by_name["some not finite"] == by_name["a small image"] == 1
    assert by_name["no returns"] == by_name["nothing finite"] == 0


def test_masks_in_a_foreign_numbering_are_odd():
    seen = capture(World(columns=600))
    found = extract_geometry(seen, CopgConfig.angle())
    classes = np.zeros((seen.camera.height_px, seen.camera.width_px), np.uint8)
    for share, told in ((0.19, []), (0.21, [NO_NAMES])):
        classes[: round(share * len(classes))] = 255
        assert collect_warnings(replace(seen, semantics=SemanticMap(classes)), found) == told
    named = SemanticMap(classes, ("road",) * 256)
    assert collect_warnings(replace(seen, semantics=named), found) == []


def test_lenses_that_distort_are_told(tmp_path):
    root = SETS["once"].make(tmp_path / "once")
    _, tally = run(Order("once", str(root)), tmp_path / "out")
    assert tally.wondered == {f"not applied: {DISTORTION}": 3}
    assert tally.pictures == tally.opened == 9


def test_a_set_without_anything_says_so(tmp_path):
    (tmp_path / "kitti" / "training").mkdir(parents=True)
    with pytest.raises(DatasetNotFoundError, match="KITTI needs"):
        run(Order("kitti", str(tmp_path / "kitti")), tmp_path / "out")
