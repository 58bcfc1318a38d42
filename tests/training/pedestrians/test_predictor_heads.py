"""Heads beside the label: which are taught, what is unknown to them, mirrors, what is kept of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from street import street

from roadaware.errors import UsageError
from roadaware.models.crossing.predictor import Predictor
from roadaware.scenes.sampling import Iv2024, Wacv2021
from roadaware.scenes.store import save
from roadaware.tasks.crossing_inputs.boxes import CELLS
from roadaware.tasks.pedestrians import Futures
from roadaware.training.pedestrians import run as runs
from roadaware.training.pedestrians.heads import (
    Ahead,
    cell_loss,
    flip_cells,
    get_head_sizes,
    get_horizon,
    get_task_weights,
    path_loss,
)
from roadaware.training.pedestrians.recipe import NetworkRecipe, PedestrianRecipe, SamplesRecipe, TasksRecipe
from roadaware.training.recipe import ScheduleRecipe

SMALL = {
    "biped": {"width": 8, "embed": 4, "decode": 8, "filters": (2, 3)},
    "pedformer": {"width": 8, "heads": 2, "inner": 8, "experts": 2, "filters": (2, 3)},
}
RECIPE = PedestrianRecipe(
    seeds=(0,),
    network=NetworkRecipe("biped", fields=SMALL["biped"], inputs=("boxes:last", "boxes", "grid")),
    samples=SamplesRecipe(root="street", protocol="jaad-action@iv2024", config="reference"),
    schedule=ScheduleRecipe(epochs=4, optimizer="adamw", lr=0.02, decay="none"),
    batch=16,
    flip=0.5,
    threads=1,
)
UNIT = torch.ones(4)


def of(name: str, **tasks: object) -> PedestrianRecipe:
    network = replace(RECIPE.network, name=name, fields=SMALL.get(name, {}))
    return replace(RECIPE, network=network, tasks=TasksRecipe(**tasks))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("street") / "saved"
    save(street(people=6), folder)
    return folder


def test_a_network_learns_what_its_paper_has_unless_told() -> None:
    assert get_task_weights(of("biped")) == {"trajectory": 1, "grid": 1}
    assert get_task_weights(of("biped", trajectory=0.5, grid=0.0)) == {"trajectory": 0.5}
    assert get_task_weights(of("steady")) == {}
    assert get_task_weights(of("steady", trajectory=0.0)) == {}
    with pytest.raises(UsageError, match="steady has no head"):
        get_task_weights(of("steady", grid=1.0))
    with pytest.raises(UsageError, match="0 or more"):
        of("biped", grid=-1.0)


def test_the_horizon_is_what_the_protocol_keeps_free() -> None:
    assert get_horizon(TasksRecipe(), Iv2024.reference("action")) == 30
    assert get_horizon(TasksRecipe(), Wacv2021.reference()) == 30
    assert get_head_sizes(of("biped", horizon_frames=45), Iv2024()) == {"trajectory": 45, "grid": CELLS}


@pytest.mark.parametrize("path", ["logcosh", "squares"])
def test_what_is_unknown_teaches_nothing(path: str) -> None:
    wanted = torch.zeros(2, 3, 4)
    wanted[0, 1:], wanted[1] = math.nan, math.nan
    said = torch.full((2, 3, 4), 2.0, requires_grad=True)
    loss = path_loss(said, wanted, UNIT, path)
    assert float(loss.detach()) == pytest.approx(math.log(math.cosh(2)) if path == "logcosh" else 4)
    loss.backward()
    assert said.grad is not None
    assert said.grad.isfinite().all()
    assert said.grad[0, 0].all()
    assert not said.grad[0, 1:].any()
    assert not said.grad[1].any()
    assert float(path_loss(said.detach(), torch.full_like(wanted, math.nan), UNIT, path)) == 0
    assert float(path_loss(torch.full((1, 1, 4), -1e4), torch.zeros(1, 1, 4), UNIT, path)) > 9e3
    logits = torch.zeros(2, 4)
    assert float(cell_loss(logits, torch.tensor([1, -1]))) == pytest.approx(math.log(4))
    assert float(cell_loss(logits, torch.tensor([-1, -1]))) == 0


def test_a_mirror_turns_paths_and_cells_as_it_turns_the_street() -> None:
    rng = np.random.default_rng(0)
    size = np.tile([1920.0, 1080.0], (5, 1))
    corners = rng.uniform(100, 900, (5, 8, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(20, 100, (5, 8, 2))], -1)
    boxes[2, 6:] = np.nan
    other = boxes[..., [2, 1, 0, 3]] * [-1, 1, -1, 1] + [1920, 0, 1920, 0]
    straight, mirrored = (Ahead.of(Futures(b[:, :4], b[:, 4:], size)) for b in (boxes, other))
    turned = straight.turned(torch.ones(5, dtype=torch.bool))
    torch.testing.assert_close(turned.moved, mirrored.moved, equal_nan=True)
    assert turned.cell.tolist() == mirrored.cell.tolist()
    assert turned.cell[2] == -1
    left = straight.turned(torch.zeros(5, dtype=torch.bool))
    assert left.cell.tolist() == straight.cell.tolist()
    assert flip_cells(torch.tensor([0, 31, 32, 575])).tolist() == [31, 0, 63, 544]


@pytest.mark.parametrize("name", ["biped", pytest.param("pedformer", marks=pytest.mark.slow)])
def test_paths_and_cells_are_learnt_judged_and_kept(name: str, data: Path, tmp_path: Path) -> None:
    recipe = replace(
        of(name),
        seeds=(0, 1) if name == "biped" else (0,),
        samples=replace(RECIPE.samples, reader="saved", root=str(data)),
    )
    trained = runs.train_predictors(recipe, tmp_path)
    facts = json.loads((tmp_path / "seed-0" / runs.FACTS).read_text())
    curve = facts["curve"]
    assert curve[-1]["ade_px"] < curve[0]["ade_px"]
    assert facts["ahead"]["ade_px"] == curve[facts["best_epoch"] - 1]["ade_px"]
    assert {"horizon_frames", "fde_px", "grid_accuracy", runs.STRAIGHT_ON} <= set(facts["ahead"])
    judged = runs.evaluate_run(trained)
    rows = {f"seed {seed}" for seed in recipe.seeds} | ({"mean"} if len(recipe.seeds) > 1 else set())
    assert set(judged.ahead) == {*rows, runs.STRAIGHT_ON}
    assert all(value is not None for found in judged.ahead.values() for value in found.values())
    opened = Predictor.open(tmp_path / "seed-0" / runs.MODEL)
    given = runs.build_fold(trained.material, "test", opened.inputs, recipe)
    said = opened.also(given.inputs)
    assert said["trajectory"].shape == (len(given), 30, 4)
    np.testing.assert_allclose(said["grid"].sum(axis=1), 1)
    np.testing.assert_array_equal(said["grid"], trained.predictors[0].also(given.inputs)["grid"])


def test_a_network_without_heads_tells_nothing_further(data: Path, tmp_path: Path) -> None:
    recipe = replace(
        of("biped", trajectory=0.0, grid=0.0),
        samples=replace(RECIPE.samples, reader="saved", root=str(data)),
        schedule=replace(RECIPE.schedule, epochs=1),
    )
    trained = runs.train_predictors(recipe, tmp_path)
    assert "ahead" not in json.loads((tmp_path / "seed-0" / runs.FACTS).read_text())
    assert runs.evaluate_run(trained).ahead == {}
    given = runs.build_fold(trained.material, "test", recipe.network.inputs, recipe).inputs
    assert trained.predictors[0].also(given) == {}
