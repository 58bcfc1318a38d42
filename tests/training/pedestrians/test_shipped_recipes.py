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


def test_every_model_has_a_recipe_for_jaad() -> None:
    names = {path.stem: read_recipe(path).network.name for path in RECIPES if "-jaad" in path.stem}
    assert set(names.values()) == {*CROSSING, *MODELS}
    alone = {name for stem, name in names.items() if stem.endswith("-jaad")}
    beside = {name for stem, name in names.items() if stem.endswith(("-films", "-poses"))}
    assert alone == {*CROSSING, *MODELS} - beside


@pytest.mark.parametrize(
    "path", [path for path in RECIPES if path.stem.endswith(("-films", "-poses"))], ids=lambda path: path.stem
)
def test_recipes_that_annotations_are_not_enough_for_say_what_else_they_need(path: Path) -> None:
    recipe, told = read_recipe(path), path.read_text("utf-8")
    crops = any(name.startswith("crop:") for name in recipe.network.inputs)
    assert crops == path.stem.endswith("-films") == ("films" in told) == bool(recipe.samples.media)
    assert ("pose" in recipe.network.inputs) == ("samples.poses=FILE" in told)
    assert recipe.samples.config == "reference"
    assert protocol_named(recipe.samples.protocol).observation_frames == 16
    assert recipe.schedule.decay == "none"


@pytest.mark.parametrize(
    "path", [path for path in RECIPES if path.stem.endswith("-pie")], ids=lambda path: path.stem
)
def test_recipes_for_pie_read_pie_and_need_nothing_but_its_annotations(path: Path) -> None:
    recipe = read_recipe(path)
    assert (recipe.samples.reader, recipe.samples.protocol) == ("pie", "pie-action@wacv2021")
    assert set(recipe.network.inputs) <= {"boxes", "boxes:first", "ego:speed"}
