"""Inputs of the real JAAD, and of a simulated street with videos, masks and joints."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from real_sets import jaad
from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.simulator.config import CameraConfig, build_scene_config
from roadaware.simulator.generate import Order, generate_scenes
from roadaware.tasks.crossing_inputs import Media, build_inputs
from roadaware.tasks.crossing_inputs.crops import CATEGORIES
from roadaware.tasks.pedestrians import build_examples

pytestmark = pytest.mark.slow


@pytest.mark.skipif("ROADAWARE_DATA_DIR" not in os.environ, reason="ROADAWARE_DATA_DIR is unset")
def test_inputs_of_jaad_are_whole_and_its_tags_tell_who_crosses() -> None:
    scenes = sample(jaad(), Iv2024.reference("action"))
    names = ["boxes", "boxes:pixels", "boxes:last", "boxes:scaled", "ego:action", "traffic", "grid"]
    for split, auc in {"train": "0.973", "test": "0.939"}.items():
        asked = build_examples(scenes, split)
        taken = build_inputs(scenes, split, names).take(np.arange(len(asked)))
        np.testing.assert_array_equal(taken["boxes:pixels"], asked.boxes.astype(np.float32))
        assert (taken["ego:action"].sum(axis=2) == 1).all()
        assert not any(np.isnan(values).any() for values in taken.values())
        with pytest.raises(UsageError, match=f"tells 'crossing' with AUC {auc} by itself"):
            build_inputs(scenes, split, ["behaviour"])


def test_a_simulated_street_has_poses_crops_and_maps(tmp_path: Path) -> None:
    camera = CameraConfig(width_px=160, height_px=120, fps=30.0)
    config = replace(build_scene_config("crossing"), seconds=5.0, camera=camera, sound=False)
    generate_scenes(Order(config, seed=0, scenes=1), tmp_path / "sim")
    scenes = read("simulator", tmp_path / "sim", cache=False)
    cut = sample(scenes, replace(Iv2024.reference("action", "pie"), splits=("train",)))
    names = ["pose:box", "ego:dynamics", "crop:context@32", "maps@16"]
    made = build_inputs(cut, "train", names, media=Media(root=tmp_path / "sim"))
    taken = made.take(np.arange(made.n))
    inside = (taken["pose:box"] > -0.1) & (taken["pose:box"] < 1.1)
    assert inside[~np.isnan(taken["pose:box"])].mean() > 0.99
    assert not np.isnan(taken["ego:dynamics"]).any()
    assert taken["maps@16"][:, :, CATEGORIES.index("pedestrians"), 4:12, 4:12].mean() > 0.05
    assert taken["crop:context@32"].any(axis=(2, 3, 4)).all()
