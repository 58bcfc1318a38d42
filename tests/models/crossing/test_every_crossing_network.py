"""Laws that every network for pedestrians keeps; a network joins by being registered."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache

import pytest
import torch
from made_inputs import TASKS, batch, nothing, published_shapes, tiny_shapes
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from roadaware import config as configs
from roadaware.errors import UsageError
from roadaware.models import CROSSING, create, get_crossing_entry, list_model_cards
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.networks.stills import CrossingNet

torch.set_num_threads(1)


def sizes(entry: Entry) -> dict[str, int]:
    return {task: TASKS[task] for task in entry.also_tells}


def made(name: str, labels: int = 2, seed: int = 0) -> CrossingNet:
    entry = get_crossing_entry(name)
    torch.manual_seed(seed)
    network: CrossingNet = create(
        name,
        config=entry.config_class.tiny(),
        shapes=tiny_shapes(entry),
        labels=labels,
        tasks=sizes(entry),
    )
    return network


@cache
def settled(name: str) -> CrossingNet:
    """A network that no test changes."""
    return made(name).eval()


@cache
def given(name: str) -> dict[str, Tensor]:
    return batch(tiny_shapes(get_crossing_entry(name)))


@pytest.mark.parametrize("name", CROSSING)
def test_the_card_is_complete_and_the_config_survives_json(name: str) -> None:
    card, entry = list_model_cards()[name], get_crossing_entry(name)
    assert card.name == name
    assert card.family == "network"
    assert [f.name for f in fields(card) if not getattr(card, f.name) and f.name != "published"] == []
    for config in (entry.config_class(), entry.config_class.small(), entry.config_class.tiny()):
        assert configs.from_dict(entry.config_class, configs.to_dict(config)) == config


@pytest.mark.parametrize("name", CROSSING)
def test_the_card_counts_the_parameters_at_the_published_size(name: str) -> None:
    entry = get_crossing_entry(name)
    with torch.device("meta"):
        network = create(name, shapes=published_shapes(entry))
    counted = sum(weight.numel() for weight in network.parameters())
    said = re.match(r"[0-9][0-9,]*", entry.card.parameters)
    assert said is not None
    assert counted == int(said[0].replace(",", ""))


@pytest.mark.parametrize("name", CROSSING)
def test_answers_have_the_shape_of_the_question(name: str) -> None:
    answer = settled(name)(given(name))
    assert answer["label"].shape == (4, 1)
    expected = {"trajectory": (4, TASKS["trajectory"], 4), "grid": (4, TASKS["grid"])}
    assert {task: tuple(answer[task].shape) for task in answer if task != "label"} == {
        task: expected[task] for task in get_crossing_entry(name).also_tells
    }
    assert made(name, labels=3).eval()(given(name))["label"].shape == (4, 3)


@pytest.mark.parametrize("name", CROSSING)
def test_the_label_is_one_linear_layer_on_the_embedding(name: str) -> None:
    network = settled(name)
    seen: list[Tensor] = []
    hook = network.last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    answer = network(given(name))["label"]
    hook.remove()
    assert len(seen) == 1
    torch.testing.assert_close(answer, seen[0] @ network.last.weight.T + network.last.bias)


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSING)
def test_every_parameter_has_a_gradient(name: str) -> None:
    network = made(name, labels=3).train()
    torch.stack([answer.square().mean() for answer in network(given(name)).values()]).sum().backward()
    idle = [key for key, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []
    assert all(weight.grad.isfinite().all() for weight in network.parameters() if weight.grad is not None)


@pytest.mark.parametrize("name", CROSSING)
def test_the_same_seed_gives_the_same_network_and_answer(name: str) -> None:
    again = made(name).eval()(given(name))
    for task, answer in settled(name)(given(name)).items():
        assert torch.equal(answer, again[task])


@pytest.mark.parametrize("name", CROSSING)
def test_weights_and_statistics_move_to_another_network(name: str) -> None:
    network, other = made(name).eval(), made(name, seed=1).eval()
    for sequence in network.sequences:
        width = network.shapes[sequence][-1]
        network.standardise(sequence, torch.full((width,), 0.3), torch.full((width,), 2.0))
    other.load_state_dict(network.state_dict())
    for task, answer in network(given(name)).items():
        assert torch.equal(answer, other(given(name))[task])


@pytest.mark.parametrize("name", CROSSING)
def test_nothing_seen_and_unknown_numbers_give_numbers(name: str) -> None:
    network = made(name).train()
    answers = network(nothing(tiny_shapes(get_crossing_entry(name))))
    torch.stack([answer.square().mean() for answer in answers.values()]).sum().backward()
    assert all(answer.isfinite().all() for answer in answers.values())
    assert all(weight.grad.isfinite().all() for weight in network.parameters() if weight.grad is not None)
    holes = {
        key: torch.where(values > 1, torch.nan, values) if values.ndim == 3 else values
        for key, values in given(name).items()
    }
    assert all(answer.isfinite().all() for answer in settled(name)(holes).values())


@pytest.mark.parametrize("name", CROSSING)
def test_each_sample_is_judged_alone(name: str) -> None:
    whole = settled(name)(given(name))
    part = settled(name)({key: values[1:3] for key, values in given(name).items()})
    for task, answer in whole.items():
        torch.testing.assert_close(part[task], answer[1:3], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", CROSSING)
def test_all_chance_is_in_modules_that_can_be_found(name: str) -> None:
    """With dropout and running means at rest, a network in training answers as one at work."""
    network = made(name).train()
    for module in network.modules():
        if isinstance(module, _DropoutNd | _BatchNorm):
            module.eval()
    drawn = torch.get_rng_state()
    for task, answer in network(given(name)).items():
        torch.testing.assert_close(answer, settled(name)(given(name))[task], atol=1e-5, rtol=1e-4)
    assert torch.equal(drawn, torch.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSING)
def test_every_input_counts(name: str) -> None:
    network, values = settled(name), given(name)
    plain = network(values)["label"]
    for read in values:
        other = {**values, read: values[read].flip(0)}
        assert not torch.equal(network(other)["label"], plain), read


@pytest.mark.parametrize("name", CROSSING)
def test_questions_that_the_network_does_not_answer_are_refused(name: str) -> None:
    entry = get_crossing_entry(name)
    tiny, shapes = entry.config_class.tiny(), tiny_shapes(entry)
    with pytest.raises(UsageError, match=f"{name} does not answer weather"):
        create(name, config=tiny, shapes=shapes, tasks={"weather": 3})
    with pytest.raises(UsageError, match="at least two labels"):
        create(name, config=tiny, shapes=shapes, labels=1)
    with pytest.raises(UsageError, match=f"{name} needs inputs"):
        create(name, config=tiny, shapes={})


FAST_LEARNERS = ("steady",)


@pytest.mark.parametrize(
    "name",
    [name if name in FAST_LEARNERS else pytest.param(name, marks=pytest.mark.slow) for name in CROSSING],
)
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    network, truth = made(name, seed=3).train(), torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    for module in network.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(network(given(name))["label"], truth)
        loss.backward()
        optimiser.step()
        if loss.item() < 0.05:
            break
    assert loss.item() < 0.1
