"""The recipes that ship: each names a model there is and inputs there are, and is named after its file."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from real_sets import jaad
from roadaware.config import digest
from roadaware.models import CROSSING, MODELS, get_crossing_entry
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.tasks.crossing_inputs import describe_requirements
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.recipe_files import read_recipe

FOLDER = Path(__file__).parents[3] / "configs/pedestrians"
RECIPES = sorted(FOLDER.glob("*.yaml"))
PLACES = sorted(FOLDER.glob("on/*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_names_a_model_and_inputs_that_there_are(path: Path) -> None:
    recipe = read_recipe(path)
    assert isinstance(recipe, PedestrianRecipe)
    assert recipe.name == path.stem
    assert recipe.network.name in (*CROSSING, *MODELS)
    assert all(describe_requirements(name) for name in recipe.network.inputs)
    assert get_protocol(recipe.samples.protocol, recipe.samples.config).task == recipe.task


@pytest.mark.slow
@pytest.mark.parametrize("on", PLACES, ids=lambda path: path.stem)
def test_every_recipe_can_be_run_on_every_file_of_samples(on: Path) -> None:
    for path in RECIPES:
        recipe, own = read_recipe(path, on=on), read_recipe(path)
        assert isinstance(recipe, PedestrianRecipe)
        assert recipe.name == f"{path.stem}-on-{on.stem}"
        assert get_protocol(recipe.samples.protocol, recipe.samples.config).task == recipe.task
        assert recipe.samples.protocol in on.read_text("utf-8")
        assert (recipe.network, recipe.schedule, recipe.seeds) == (own.network, own.schedule, own.seeds)
        assert digest(recipe) != digest(own)


@pytest.mark.skipif(not os.environ.get("ROADAWARE_DATA_DIR"), reason="ROADAWARE_DATA_DIR is not set")
@pytest.mark.parametrize("on", [path for path in PLACES if "jaad" in path.stem], ids=lambda path: path.stem)
def test_samples_of_jaad_are_cut_as_the_file_of_samples_says(on: Path) -> None:
    recipe = read_recipe(RECIPES[0], on=on)
    assert recipe.samples.reader == "jaad"
    protocol = get_protocol(recipe.samples.protocol, recipe.samples.config)
    cut = sample(jaad(), replace(protocol, splits=("val",)))
    assert len(cut.samples) == {"jaad": 809, "jaad-behaviour": 242}[on.stem]


def test_every_network_that_answers_at_every_frame_says_so() -> None:
    for name in CROSSING:
        module, _, kind = get_crossing_entry(name).network.partition(":")
        assert get_crossing_entry(name).each_frame == hasattr(
            getattr(import_module(module), kind), "every_frame"
        )


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
    assert get_protocol(recipe.samples.protocol).observation_frames == 16
    assert recipe.schedule.decay == "none"


@pytest.mark.parametrize(
    "path", [path for path in RECIPES if path.stem.endswith("-pie")], ids=lambda path: path.stem
)
def test_recipes_for_pie_read_pie_and_need_nothing_but_its_annotations(path: Path) -> None:
    recipe = read_recipe(path)
    assert (recipe.samples.reader, recipe.samples.protocol) == ("pie", "pie-action@wacv2021")
    assert set(recipe.network.inputs) <= {"boxes", "boxes:first", "ego:speed"}
