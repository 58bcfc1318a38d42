"""Regions of the image, told by a mixture over where somebody will be."""

import numpy as np
import pytest
import torch

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import SteadyConfig
from roadaware.models.crossing.kernels import compute_region_log_probs
from roadaware.models.crossing.networks.multitask import Steady, Whereabouts
from roadaware.models.crossing.streaming_inference import Stepper

SHAPES = {"boxes": (15, 4), "centre": (15, 8)}


def one_place(offset: float, log_width: float, regions: int = 4) -> Whereabouts:
    """A mixture of one component that says the same of everybody."""
    made = Whereabouts(2, regions, 1)
    with torch.no_grad():
        made.tell.bias.copy_(torch.tensor([0.0, offset, log_width]))
    return made


def shares(made: Whereabouts, place: float) -> list[float]:
    with torch.inference_mode():
        return made(torch.zeros(1, 2), torch.tensor([place])).exp()[0].tolist()


def test_a_narrow_component_says_the_region_it_lies_in() -> None:
    assert shares(one_place(0.25, -6.0), 0.125) == pytest.approx([0, 1, 0, 0], abs=1e-3)


@pytest.mark.parametrize(("place", "region"), [(-3.0, 0), (4.0, 3)])
def test_beyond_an_edge_lies_the_region_at_that_edge(place: float, region: int) -> None:
    assert np.argmax(shares(one_place(0.0, -3.0), place)) == region


def test_shares_are_those_of_the_logistic_distribution() -> None:
    below = 1 / (1 + np.exp(-(np.array([0.25, 0.5, 0.75]) - 0.6) / np.exp(-1.0)))
    wanted = np.diff(below, prepend=0, append=1)
    assert shares(one_place(0.1, -1.0), 0.5) == pytest.approx(wanted, abs=3e-5)


def steady(seed: int) -> Steady:
    torch.manual_seed(seed)
    made = Steady(SteadyConfig(width=8, places=3), SHAPES, labels=12)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    made.standardise("centre", torch.rand(8), torch.rand(8) + 0.5)
    return made.eval()


def test_a_new_network_answers_what_the_mixture_says() -> None:
    made = Steady(SteadyConfig(places=3), SHAPES, labels=12).eval()
    x = {name: torch.rand(5, *shape) for name, shape in SHAPES.items()}
    with torch.inference_mode():
        said = made(x)["label"]
        assert torch.equal(said, made.looked(x).embedding[:, -12:])
    assert said.exp().sum(1).numpy() == pytest.approx(np.ones(5), abs=12 * 1.1e-5)


def test_clip_stream_and_stepper_say_the_same() -> None:
    networks = [steady(seed) for seed in (0, 1)]
    x = {name: torch.rand(3, *shape) for name, shape in SHAPES.items()}
    stepper = Stepper(networks)
    frames = torch.cat([x[name] for name in stepper.names], -1).numpy()
    past, rows = stepper.start(5), np.array([4, 0, 2])
    stepper.follow(past, rows, frames)
    for network, found in zip(networks, stepper.embeddings(past, rows), strict=True):
        with torch.inference_mode():
            clip = network(x)["label"]
            every = network.every_frame(x)
            state = network.start(3)
            for frame in range(15):
                state, answer = network.step(state, {name: values[:, frame] for name, values in x.items()})
        told = found @ network.last.weight.detach().numpy().T + network.last.bias.detach().numpy()
        for other in (every[:, -1].numpy(), answer.numpy(), told):
            assert other == pytest.approx(clip.numpy(), abs=1e-4)


def test_compiled_shares_are_those_of_the_layer_far_outside_the_picture_too() -> None:
    torch.manual_seed(3)
    made, seen = Whereabouts(5, 12, 4), torch.randn(60, 5)
    with torch.no_grad():
        made.tell.weight.normal_(0, 3)
        place = torch.linspace(-9, 9, 60)
        said = made(seen, place).numpy()
        matrix = np.ascontiguousarray(made.tell.weight.T.numpy())
        told = compute_region_log_probs(seen.numpy(), matrix, made.tell.bias.numpy(), place.numpy(), 12)
    assert np.exp(told) == pytest.approx(np.exp(said), abs=1e-5)
    assert np.isfinite(told).all()


@pytest.mark.parametrize(("labels", "shapes"), [(2, SHAPES), (12, {"boxes": (15, 4)})])
def test_places_need_regions_and_the_centre(labels: int, shapes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(UsageError, match="places"):
        Steady(SteadyConfig(places=2), shapes, labels=labels)
