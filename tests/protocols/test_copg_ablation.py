"""A grid over a set gives what plain runs give, goes on where it was, and leaves bad images out."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_kitti import planted_kitti

from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.runner import Order, load_run_inputs, run
from roadaware.errors import UsageError
from roadaware.io.parallel import Workers
from roadaware.protocols.copg_ablation import GridOrder, Variant, run_grid
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions

VARIANTS = (
    Variant(CopgConfig.angle()),
    Variant(CopgConfig.angle(theta_deg=4)),
    Variant(CopgConfig.angle(max_distance_m=10.0)),
    Variant(CopgConfig.angle(max_background=0.0)),
    Variant(CopgConfig.angle(), semantics=False),
    Variant(CopgConfig.reference(), detections=False),
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return planted_kitti(tmp_path_factory.mktemp("planted") / "kitti", 3)


@pytest.fixture
def order(root, tmp_path):
    """The planted set with a mask whose left half is a wall, and a detection around the middle."""
    masks, videos = (
        tmp_path / "masks",
        ["training/000000", "training/000001", "training/000002", "testing/000000"],
    )
    for video in videos:
        part, name = video.split("/")
        width, height = Image.open(root / part / "image_2" / f"{name}.png").size
        held = np.full((height, width), 1, np.uint8)
        held[:, width // 2 :] = 0
        (masks / video).mkdir(parents=True)
        Image.fromarray(held).save(masks / video / "000000.png")
    (masks / "classes.json").write_text(json.dumps(["car", "wall"]))
    boxes = {"box": [0], "video": ["training/000001"], "frame": [0], "score": [0.75]}
    corners = {"x1_px": [25.0], "y1_px": [5.0], "x2_px": [40.0], "y2_px": [20.0]}
    save(Predictions(boxes=pl.DataFrame(boxes | corners)), tmp_path / "predictions")
    source = Order("kitti", str(root), semantics=str(masks), detections=str(tmp_path / "predictions"), part=2)
    return GridOrder(source, VARIANTS)


def test_it_gives_what_plain_runs_give_and_repeats_no_step(order, tmp_path):
    found = run_grid(order, tmp_path / "grid")
    assert (found.pictures, found.made) == (4, 4)
    for place, variant in enumerate(VARIANTS):
        plain = replace(
            order.source,
            config=variant.config,
            semantics=order.source.semantics if variant.semantics else None,
            detections=order.source.detections if variant.detections else None,
        )
        alone, tally = run(plain, tmp_path / f"plain{place}")
        assert found.proposals[place].boxes.equals(alone.boxes), variant
        assert found.counts[place] == tally.proposals["final"] == len(alone.boxes)
        assert found.with_one[place] == tally.with_one
    assert len(set(found.counts)) > 2
    once = {"check": 1, "ground": 1, "grid": 1, "local ground": 1, "clusters": 3, "reach": 3}
    again = {"projection": 3, "background": 3, "overlaps": 2}
    assert found.runs == {step: 4 * count for step, count in (once | again).items()}


def test_changed_detections_and_masks_are_refused_until_all_is_made_anew(order, tmp_path):
    folder, few = tmp_path / "grid", replace(order, variants=VARIANTS[:1])
    run_grid(few, folder)
    save(Predictions(), tmp_path / "predictions", overwrite=True)
    load_run_inputs.cache_clear()
    with pytest.raises(UsageError, match="an ablation of detections that have changed"):
        run_grid(few, folder)
    assert run_grid(few, folder, overwrite=True).made == 4
    (tmp_path / "masks" / "training" / "000001" / "000000.png").write_bytes(b"")
    with pytest.raises(UsageError, match="or mask has changed"):
        run_grid(few, folder)
    found = run_grid(few, folder, overwrite=True)
    assert sum(found.skipped.values()) == 1
    assert run_grid(few, folder).made == 0


def test_it_goes_on_where_it_was(order, tmp_path):
    told = []
    folder = tmp_path / "grid"
    first = run_grid(order, folder)
    (folder / "parts" / "000001.json").unlink()
    again = run_grid(order, folder, progress=lambda done, total: told.append((done, total)))
    assert (told, again.made) == ([(2, 4), (4, 4)], 2)
    assert again.proposals == first.proposals
    assert run_grid(order, folder).made == 0
    with pytest.raises(UsageError, match="an ablation of another order"):
        run_grid(replace(order, variants=VARIANTS[:2]), folder)


def test_a_bad_picture_is_counted_and_left_out_of_all(order, root, tmp_path):
    bad = planted_kitti(tmp_path / "kitti", 3)
    (bad / "training" / "velodyne" / "000001.bin").write_bytes(bytes(41))
    (tmp_path / "masks" / "testing" / "000000" / "000000.png").unlink()
    found = run_grid(replace(order, source=replace(order.source, root=str(bad))), tmp_path / "grid")
    assert sum(found.skipped.values()) == 2
    assert "no whole number of points" in " ".join(found.skipped)
    assert all(set(each.boxes["video"]) <= {"training/000002"} for each in found.proposals)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_give_what_one_gives(order, tmp_path, on):
    if on != "local":
        pytest.importorskip("ray")
    one = run_grid(order, tmp_path / "one")
    two = run_grid(order, tmp_path / "two", workers=Workers(on, 2))
    assert (one.proposals, one.counts, one.runs) == (two.proposals, two.counts, two.runs)
