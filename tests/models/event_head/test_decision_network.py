"""Decisions from sets of tubes: the same in any order, with any tube taken away, in numpy as in torch, and by rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from roadaware.errors import DamagedError
from roadaware.models.event_head.decisions import (
    DecisionNetwork,
    decide_by_rules,
    list_token_columns,
    make_tokens,
    open_decisions,
    save_decisions,
)
from roadaware.models.event_head.head import SCENE_FEATURES, open_head
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.training.events.decisions import DecisionModule, read_tensors

HEAD = open_head()
COLUMNS = list_token_columns(HEAD.actions, HEAD.locations)


def build(own_motion: bool, seed: int = 0) -> tuple[DecisionNetwork, DecisionModule]:
    torch.manual_seed(seed)
    context = SCENE_FEATURES if own_motion else ()
    module = DecisionModule(len(COLUMNS), len(context)).eval()
    tensors = read_tensors(module)
    tensors |= {"mean": np.zeros(len(COLUMNS), np.float32), "spread": np.ones(len(COLUMNS), np.float32)}
    if own_motion:
        ones = np.ones(len(context), np.float32)
        tensors |= {"context.mean": 0 * ones, "context.spread": ones}
    return DecisionNetwork(tuple(AV_ACTIONS), COLUMNS, tuple(context), tensors, {"rows": 3}), module


@pytest.mark.parametrize("own_motion", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_numpy_says_what_torch_says(n: int, own_motion: bool) -> None:
    network, module = build(own_motion)
    rng = np.random.default_rng(n)
    tokens = rng.normal(size=(n, len(COLUMNS))).astype(np.float32)
    context = rng.normal(size=len(SCENE_FEATURES)).astype(np.float32) if own_motion else None
    # Torch has the tubes among empty places, as when it learns.
    padded = np.zeros((1, n + 3, len(COLUMNS)), np.float32)
    padded[0, :n], filled = tokens, np.arange(n + 3)[None] < n
    with torch.no_grad():
        logits = module(
            torch.from_numpy(padded),
            torch.from_numpy(filled),
            None if context is None else torch.from_numpy(context[None]),
        )
    found = network.decide(tokens, context)
    np.testing.assert_allclose(found.scores, logits.softmax(dim=-1)[0].numpy(), atol=2e-6)
    assert found.attention.shape == (2, n)
    assert (found.attention.sum(axis=1) < 1).all()


def test_the_order_of_tubes_means_nothing_and_what_is_far_from_all_is_cut() -> None:
    network, _ = build(False)
    rng = np.random.default_rng(1)
    tokens = rng.normal(size=(6, len(COLUMNS))).astype(np.float32)
    order = rng.permutation(6)
    one, other = network.decide(tokens), network.decide(tokens[order])
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
    np.testing.assert_allclose(one.attention[:, order], other.attention, atol=1e-6)
    far = np.sign(tokens) * np.float32(7)
    np.testing.assert_array_equal(network.decide(far).scores, network.decide(far * 1000).scores)


def test_a_file_keeps_it_and_others_are_refused(tmp_path: Path) -> None:
    network, _ = build(True)
    save_decisions(network, tmp_path / "d.safetensors")
    again = open_decisions(tmp_path / "d.safetensors")
    tokens, own = np.ones((2, len(COLUMNS)), np.float32), np.ones(len(SCENE_FEATURES), np.float32)
    np.testing.assert_array_equal(again.decide(tokens, own).scores, network.decide(tokens, own).scores)
    assert dict(again.facts) == {"rows": 3}
    (tmp_path / "e.safetensors").write_bytes((tmp_path / "d.safetensors").read_bytes()[:900])
    with pytest.raises(DamagedError, match="decision network"):
        open_decisions(tmp_path / "e.safetensors")


def token(agent: str, action: str = "", location: str = "", high: float = 0.5, x: float = 0.5) -> np.ndarray:
    """One tube that is surely all this, in an image of 100 by 100."""
    agents = np.eye(10, dtype=np.float32)[
        [[c for c in COLUMNS if c.startswith("agent.")].index(f"agent.{agent}")]
    ]
    actions = np.array([[float(name == action) for name in HEAD.actions]], np.float32)
    locations = np.array([[float(name == location) for name in HEAD.locations]], np.float32)
    box = np.array([[100 * x - 5, 90 - 100 * high, 100 * x + 5, 90]])
    return make_tokens(agents, actions, locations, box, np.zeros((1, 4)), np.ones(1, np.float32), (100, 100))


def test_rules_stop_for_what_is_near_and_in_the_way() -> None:
    prior = np.array([0.3, 0.6, 0.04, 0.03, 0.01, 0.01, 0.01])

    def stop(*tokens: np.ndarray) -> float:
        given = np.vstack(tokens) if tokens else np.zeros((0, len(COLUMNS)), np.float32)
        found = decide_by_rules(given, COLUMNS, prior, AV_ACTIONS)
        assert found.sum() == pytest.approx(1)
        return float(found[0])

    assert stop() == 0
    assert stop(token("Ped", "Xing", "xing")) == pytest.approx(1)
    assert stop(token("Ped", "Wait2X", "LftPav")) == pytest.approx(0.5)
    assert stop(token("Ped", "Xing", "xing", high=0.05)) == pytest.approx(0.2, abs=0.01)
    assert stop(token("Ped", "MovAway", "LftPav")) == 0
    assert stop(token("Car", "Stop", "VehLane")) == pytest.approx(1)
    assert stop(token("Car", "Stop", "IncomLane")) == 0
    assert stop(token("TL", "Red", high=0.05)) == pytest.approx(1)
    assert stop(token("TL", "Green", high=0.05)) == 0
    assert stop(token("Ped", "MovAway", "LftPav"), token("Car", "Brake", "VehLane")) == pytest.approx(1)


def test_tokens_are_shares_of_the_image() -> None:
    made = token("Car", "Stop", "VehLane", high=0.5, x=0.25)[0]
    at = {name: float(made[k]) for k, name in enumerate(COLUMNS)}
    assert at["box.x"] == pytest.approx(-0.5)
    assert at["box.bottom"] == pytest.approx(0.8)
    assert np.exp(at["box.log_height"]) == pytest.approx(0.5)
    assert at["score"] == 1
