"""What steps learn by: rates over time, parts of a network, means of weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from roadaware.training.loop import Average, build_optimizer, compute_learning_rate, count_steps, set_rate
from roadaware.training.recipe import ScheduleRecipe


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_rates_are_those_of_the_paper() -> None:
    schedule = ScheduleRecipe(epochs=30, lr=0.01, milestones=(18, 25), warmup_steps=10, warmup_from=0.1)
    steps = count_steps(schedule, clips=400, per_step=4)
    assert steps == 3000
    found = [
        compute_learning_rate(schedule, step, steps) for step in (0, 9, 10, 1799, 1800, 2499, 2500, 2999)
    ]
    assert found == pytest.approx([0.0019, 0.01, 0.01, 0.01, 1e-3, 1e-3, 1e-4, 1e-4])


def test_a_cosine_falls_from_the_rate_to_its_share() -> None:
    schedule = ScheduleRecipe(steps=110, lr=1.0, decay="cosine", warmup_steps=10, final=0.2)
    assert compute_learning_rate(schedule, 10, 110) == 1.0
    assert compute_learning_rate(schedule, 60, 110) == pytest.approx(0.6)
    assert compute_learning_rate(schedule, 110, 110) == pytest.approx(0.2)


def test_biases_learn_twice_as_fast_and_norms_need_not_shrink() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    optimizer = build_optimizer(network, ScheduleRecipe(weight_decay=0.1, decay_all=False))
    set_rate(optimizer, 0.5)
    groups = {(g["lr"], g["weight_decay"]): len(g["params"]) for g in optimizer.param_groups}
    assert groups == {(1.0, 0.0): 2, (0.5, 0.0): 1, (0.5, 0.1): 1}


def test_a_mean_of_weights_follows_them() -> None:
    state = {"w": torch.zeros(2), "n": torch.tensor(0)}
    mean = Average(state, 0.9)
    for step in range(200):
        mean.follow({"w": torch.full((2,), 4.0), "n": torch.tensor(step)}, step)
    assert torch.allclose(mean.state["w"], torch.full((2,), 4.0), atol=1e-4)
    assert int(mean.state["n"]) == 199
    first = Average(state, 0.9)
    first.follow({"w": torch.ones(2), "n": torch.tensor(1)}, 0)
    assert torch.allclose(first.state["w"], torch.full((2,), 0.9))
