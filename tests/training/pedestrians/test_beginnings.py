"""Going on from a predictor: the same answers before the first step, and refusals that say what differs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from roadaware.errors import UsageError
from roadaware.models import create
from roadaware.models.crossing.entries import SteadyConfig
from roadaware.models.crossing.inputs import Held, InputSet
from roadaware.models.crossing.predictor import Predictor
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.training.pedestrians.recipe import NetworkRecipe, PedestrianRecipe, SamplesRecipe
from roadaware.training.pedestrians.run import build_crossing_network

SHAPES = {"boxes": (6, 4)}
TINY = {"width": 8, "dilations": (1, 2)}
RECIPE = PedestrianRecipe(
    network=NetworkRecipe("steady", fields=TINY, inputs=("boxes",)), samples=SamplesRecipe(root="any")
)


@pytest.fixture
def learnt(tmp_path):
    torch.manual_seed(5)
    network = create("steady", config=SteadyConfig(**TINY), shapes=SHAPES)
    network.standardise("boxes", torch.ones(4), 2 * torch.ones(4))
    predictor = Predictor(network, "steady", "action", ("waits", "crosses"))
    predictor.save(tmp_path / "before.safetensors")
    return predictor, tmp_path / "before.safetensors"


def going_on(path, **changes):
    return replace(RECIPE, network=replace(RECIPE.network, weights=str(path)), **changes)


def test_a_network_that_goes_on_answers_as_the_predictor_before_it_learns(learnt):
    predictor, path = learnt
    rows = np.random.default_rng(0).normal(size=(9, 6, 4)).astype(np.float32)
    given = InputSet({"boxes": Held(rows)}, 9)
    network = build_crossing_network(going_on(path), SHAPES, 2, seed=1)
    after = Predictor(network, "steady", "action", predictor.labels)
    assert np.array_equal(after.logits(given), predictor.logits(given))


def test_a_last_layer_of_distributions_begins_with_the_predictors_means(learnt):
    predictor, path = learnt
    doubtful = build_crossing_network(going_on(path, doubt=DoubtConfig("last-flipout")), SHAPES, 2, seed=1)
    assert torch.equal(doubtful.last.weight, predictor.network.last.weight)


@pytest.mark.parametrize(
    ("network", "shapes", "named"),
    [
        (replace(RECIPE.network, fields={**TINY, "width": 16}), SHAPES, "sizes"),
        (RECIPE.network, {"boxes": (7, 4)}, "inputs"),
        (NetworkRecipe("single-rnn", fields={"width": 8}), SHAPES, "network"),
    ],
)
def test_another_network_is_refused_with_what_differs(learnt, network, shapes, named):
    recipe = replace(RECIPE, network=replace(network, weights=str(learnt[1])))
    with pytest.raises(UsageError, match=f"its {named} is"):
        build_crossing_network(recipe, shapes, 2, seed=0)


def test_a_file_that_is_not_there_is_named_before_the_network_is_blamed(tmp_path):
    with pytest.raises(UsageError, match=r"network.weights: there is no file .*nope"):
        build_crossing_network(going_on(tmp_path / "nope"), SHAPES, 2, seed=0)
