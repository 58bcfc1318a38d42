"""The second look at people learns from tiny videos: boxes become tighter, and a run that goes on ends with the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from made_films import FRAMES, made_folder, made_scenes

from roadaware.cli import main
from roadaware.errors import InputError, UsageError
from roadaware.models.detector import read_notes
from roadaware.models.refine import refine_boxes
from roadaware.models.retinanet3d import reference
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import open_parts, save_detector
from roadaware.tasks.videos import iterate_images
from roadaware.training.checkpoints import LAST
from roadaware.training.data import open_sources
from roadaware.training.recipe import Recipe
from roadaware.training.recipe_files import RECIPES, parse_recipe, read_recipe
from roadaware.training.refine import (
    CROPS,
    collect_people,
    compute_losses,
    compute_overlaps,
    list_unknown,
    move_boxes,
    train_refiner,
)

torch.set_num_threads(1)
KINDS = {"agent": ("Ped", "Car")}


def detector_file(folder: Path, *, causal: bool = True) -> Path:
    torch.manual_seed(0)
    config = reference(
        backbone="compact",
        causal=causal,
        base_width=8,
        blocks=(1, 2, 2, 1),
        width=8,
        head_layers=1,
        short_side_px=64,
    )
    path = folder / "detector.safetensors"
    save_detector(path, RetinaNet3D(config, 3, 0).eval(), KINDS, notes={"trained_on": "made scenes"})
    return path


def recipe_of(data: Path, weights: Path, steps: int, **more: Any) -> Recipe:
    return parse_recipe(
        {
            "name": "tight",
            "seed": 5,
            "model": {
                "name": "box-refiner",
                "weights": str(weights),
                "fields": {"size_px": [32, 32], "widths": [8, 16, 16, 16]},
            },
            "data": {"reader": "saved", "roots": [str(data / "tables")], "media": str(data / "films")},
            "clips": {"batch": 32},
            "schedule": {"steps": steps, "optimizer": "adamw", "lr": 0.004, "ema": 0.9, "warmup_steps": 5},
            "augment": {"flip": 0.5, "colour": 0.5},
            "machine": {"accelerator": "cpu", "threads": 1, "tensorboard": False},
            **more,
        }
    )


def test_moved_boxes_keep_their_likeness_to_what_they_were() -> None:
    boxes = np.tile(np.array([[10, 20, 40, 110]], np.float32), (4000, 1))
    moved = move_boxes(boxes, np.full(4000, 0.1, np.float32), np.random.default_rng(0))
    size = moved[:, 2:] - moved[:, :2]
    errs = [
        ((moved[:, 0] + moved[:, 2]) / 2 - 25) / 30,
        ((moved[:, 1] + moved[:, 3]) / 2 - 65) / 90,
        np.log(size[:, 0] / 30),
        np.log(size[:, 1] / 90),
    ]
    assert np.allclose(np.std(errs, axis=1), [0.08, 0.05, 0.16, 0.09], rtol=0.05)
    overlap = compute_overlaps(boxes[:1], moved)
    assert overlap.shape == (1, 4000)
    assert 0.6 < overlap.mean() < 0.85
    assert compute_overlaps(boxes[:1], boxes[:1] + 500)[0, 0] == 0
    assert np.allclose(compute_overlaps(boxes[:1], boxes[:1]), 1)


def test_the_loss_is_least_where_sides_and_fit_are_right() -> None:
    truth, overlap = torch.tensor([[0.25, 0.25, 0.75, 0.75]]), torch.ones(1)

    def said(first: int, last: int, score: float) -> dict[str, float]:
        logits = torch.full((1, 2, 8), -20.0)
        logits[0, 0, first - 1 : first + 1] = 20  # between two bins: at first / 8
        logits[0, 1, last - 1 : last + 1] = 20
        parts = compute_losses(logits, logits, torch.tensor([score]), truth, overlap)
        return {name: float(part.mean) for name, part in parts.items()}

    right, wide, unsure = said(2, 6, 12.0), said(1, 7, 12.0), said(2, 6, -12.0)
    assert right["sides"] < 1e-6
    assert right["bins"] == pytest.approx(np.log(2), abs=1e-4)
    assert right["fit"] < 1e-4
    assert wide["sides"] > 0.1
    assert wide["bins"] > 10
    assert unsure["fit"] == pytest.approx(12, abs=1e-3)
    # A box that meets nobody teaches no sides, and that it fits nobody
    logits = torch.zeros(1, 2, 8)
    nobody = compute_losses(logits, logits, torch.tensor([-12.0]), truth, torch.zeros(1))
    assert float(nobody["sides"].mean) == float(nobody["bins"].mean) == 0
    assert float(nobody["fit"].mean) < 1e-4


def test_the_bundled_recipe_is_one_of_a_second_look() -> None:
    recipe = read_recipe(RECIPES / "crowd" / "refine.yaml")
    assert isinstance(recipe, Recipe)
    assert recipe.model.name == "box-refiner"
    assert recipe.model.weights_path().name == "crowd-people.safetensors"


@pytest.mark.slow
def test_boxes_become_tighter_and_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    data, weights = made_folder(tmp_path), detector_file(tmp_path)
    recipe = recipe_of(data, weights, 150)
    came = train_refiner(recipe, tmp_path / "run")
    assert came.model is not None
    network, refiner, _ = open_parts(came.model)
    assert refiner is not None
    assert read_notes(came.model)["second_look"]["steps"] == 150
    assert read_notes(came.model)["trained_on"] == "made scenes"
    before = open_parts(weights)[0].state_dict()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    sources = open_sources(recipe.data)
    truth, rng, errs = collect_people(sources.scenes), np.random.default_rng(9), []
    for film in sources.films:
        for frame, image in enumerate(iterate_images(film)):
            body = truth[film.video, frame]
            start = move_boxes(body, np.full(len(body), 0.12, np.float32), rng)
            boxes, _, rows = refine_boxes(refiner, image, torch.from_numpy(start))
            errs += [
                (abs(start[row] - body[row]).mean(), abs(box - body[row]).mean())
                for box, row in zip(boxes.numpy(), rows.tolist(), strict=True)
            ]
    was, now = np.mean(errs, axis=0)
    assert len(errs) > 0.9 * 2 * FRAMES
    assert now < 0.5 * was


@pytest.mark.slow
def test_a_run_that_goes_on_ends_with_the_same_bits(tmp_path: Path) -> None:
    data, weights = made_folder(tmp_path), detector_file(tmp_path)

    def steps(count: int) -> Recipe:
        recipe = recipe_of(data, weights, count)
        return replace(recipe, schedule=replace(recipe.schedule, decay="none"))

    half, straight = tmp_path / "half", tmp_path / "straight"
    train_refiner(steps(5), half)
    kept = {path: path.stat().st_mtime_ns for path in (half / CROPS).glob("*.npz")}
    assert (half / LAST).exists()
    assert len(kept) == 2
    with pytest.raises(UsageError, match="holds a run"):
        train_refiner(steps(12), half)
    train_refiner(steps(12), half, resume=True)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    train_refiner(steps(12), straight)
    one, other = (open_parts(folder / "model.safetensors")[1] for folder in (half, straight))
    assert one is not None
    assert other is not None
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())


@pytest.mark.slow
def test_what_cannot_be_looked_at_again_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, ahead = made_folder(tmp_path), detector_file(tmp_path, causal=False)
    with pytest.raises(UsageError, match="looks ahead"):
        train_refiner(recipe_of(data, ahead, 2), tmp_path / "ahead")
    weights = detector_file(tmp_path)
    recipe = recipe_of(data, weights, 2)
    with pytest.raises(UsageError, match="names no detector"):
        train_refiner(replace(recipe, model=replace(recipe.model, weights="")), tmp_path / "none")
    with pytest.raises(UsageError, match="has no field rows"):
        train_refiner(replace(recipe, model=replace(recipe.model, fields={"rows": 3})), tmp_path / "field")
    out = tmp_path / "torn"
    train_refiner(recipe, out)
    kept = sorted((out / CROPS).glob("*.npz"))
    (out / LAST).unlink()
    # Of a run that was killed before its first checkpoint: those of another seed are cut anew, torn ones are named.
    train_refiner(replace(recipe, seed=6), out)
    assert len(list((out / CROPS).glob("*.npz"))) == 2 * len(kept)
    (out / LAST).unlink()
    whole = kept[0].read_bytes()
    for torn in (b"no crops", whole[: len(whole) // 2], whole[:900] + bytes(40) + whole[940:]):
        kept[0].write_bytes(torn)
        with pytest.raises(InputError, match="no file of crops"):
            train_refiner(recipe, out)
    words = ["train", str(RECIPES / "crowd" / "refine.yaml"), "--output", str(tmp_path / "cli"), "--set"]
    words += [
        "data.reader=saved",
        f"data.roots=[{data / 'tables'}]",
        f"data.media={data / 'films'}",
        "data.split=''",
    ]
    words += [f"model.weights={weights}", "model.fields={size_px: [16, 16], widths: [4, 4, 4, 4]}"]
    assert main([*words, "schedule.steps=2", "clips.batch=4", "machine.threads=1"]) == 0
    assert "box-refiner" not in capsys.readouterr().err
    assert (tmp_path / "cli" / "model.md").is_file()
    assert open_parts(tmp_path / "cli" / "model.safetensors")[1] is not None


def test_frames_that_nobody_annotated_teach_nothing(tmp_path: Path) -> None:
    scenes = made_scenes()
    assert list_unknown(scenes) == {(f"film-{video}", frame) for video in (0, 1) for frame in (10, 11)}
    assert set(collect_people(scenes)) >= {("film-0", 0), ("film-1", 9)}
    with pytest.raises(InputError, match="boxes of people"):
        collect_people(scenes.with_tables(labels=scenes.labels.filter(pl.col("kind") != "agent")))
