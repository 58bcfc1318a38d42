"""The recipes that ship: each names a model there is and inputs there are, and is named after its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadaware.models import CROSSING, MODELS
from roadaware.scenes.sampling import protocol_named
from roadaware.tasks.crossing_inputs import needs
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.recipe_files import read_recipe

RECIPES = sorted(Path(__file__).parents[3].joinpath("configs/pedestrians").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_names_a_model_and_inputs_that_there_are(path: Path) -> None:
    recipe = read_recipe(path)
    assert isinstance(recipe, PedestrianRecipe)
    assert recipe.name == path.stem
    assert recipe.network.name in (*CROSSING, *MODELS)
    assert all(needs(name) for name in recipe.network.inputs)
    assert protocol_named(recipe.samples.protocol, recipe.samples.config).task == recipe.task


def test_every_model_that_boxes_are_enough_for_has_a_recipe_for_jaad() -> None:
    names = {read_recipe(path).network.name for path in RECIPES if path.stem.endswith("-jaad")}
    films = {"vgg16", "resnet50", "convlstm", "c3d", "i3d", "two-stream"}
    poses = {"spi-net", "trouspi-net"}
    assert names == {*CROSSING, *MODELS} - films - poses - {"sfrnn"}
