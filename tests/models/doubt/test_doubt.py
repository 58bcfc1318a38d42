"""Doubt: layers that draw, passes that repeat themselves, files that come back, ensembles, temperatures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from roadaware.errors import InputError, UsageError
from roadaware.models import create
from roadaware.models.crossing.ensemble import (
    Doubtful,
    EnsemblePredictor,
    apply_mc_dropout,
    calibrate_predictor,
    estimate_uncertainty,
)
from roadaware.models.crossing.entries import SteadyConfig
from roadaware.models.crossing.inputs import Held, InputSet
from roadaware.models.crossing.predictor import (
    DropoutLast,
    FlipoutLast,
    Predictor,
    compute_kl_divergence,
    enable_dropout,
    find_dropout_layers,
    replace_last_layer,
    sample_last_weights,
)
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.statistics.calibration import log_loss

N = 40
KINDS = {
    "none": DoubtConfig(passes=4),
    "dropout": DoubtConfig("dropout", passes=4),
    "dropout and before the last layer": DoubtConfig("dropout", rate=0.3, passes=4),
    "last-dropout": DoubtConfig("last-dropout", rate=0.5, passes=4),
    "last-flipout": DoubtConfig("last-flipout", passes=4),
}


def predictor(doubt: DoubtConfig, labels: int = 2, seed: int = 0, dropout: float = 0.2) -> Predictor:
    torch.manual_seed(seed)
    config = SteadyConfig(width=8, dilations=(1, 2), dropout=dropout)
    network = create("steady", config=config, shapes={"boxes": (6, 4)}, labels=labels)
    words = tuple("abcdef"[:labels])
    return Predictor(replace_last_layer(network, doubt).eval(), "steady", "action", words, doubt=doubt)


@pytest.fixture(scope="module")
def given() -> InputSet:
    values = np.random.default_rng(0).normal(size=(N, 6, 4)).astype(np.float32)
    return InputSet({"boxes": Held(values)}, N)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_passes_repeat_themselves_and_their_mean_is_the_answer(kind: str, labels: int, given, tmp_path):
    model = predictor(KINDS[kind], labels)
    passes = model.passes(given, 4)
    assert isinstance(model, Doubtful)
    assert passes.shape == (4, N, 1 if labels == 2 else labels)
    np.testing.assert_array_equal(passes, model.passes(given, 4))
    np.testing.assert_array_equal(passes[:2], model.passes(given, 2))
    np.testing.assert_allclose(model.probabilities(given), passes.mean(axis=0))
    assert (np.ptp(passes, axis=0).max() > 0) == (kind != "none")
    assert (model.passes(given, 4, seed=1) != passes).any() == (kind != "none")
    model.save(tmp_path / "model.safetensors")
    opened = Predictor.open(tmp_path / "model.safetensors")
    assert opened.doubt == (KINDS[kind] if kind != "none" else DoubtConfig())
    np.testing.assert_array_equal(opened.passes(given, 4), passes)


@pytest.mark.parametrize("kind", ["last-dropout", "last-flipout"])
def test_a_drawn_last_layer_is_one_for_all_samples_whatever_their_batch(kind: str, given):
    model = predictor(KINDS[kind])
    np.testing.assert_allclose(model.passes(given, 3), model.passes(given, 3, batch=7), atol=1e-6)
    many = model.pass_logits(given, 800).mean(axis=0)
    np.testing.assert_allclose(many, model.logits(given), atol=0.15)


def test_only_dropout_wakes_up_and_the_draws_of_others_go_on_as_before(given):
    network = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Dropout(0.0)).eval()
    with enable_dropout(network):
        assert [module.training for module in network] == [False, True, False]
    assert not any(module.training for module in network.modules())
    model = predictor(KINDS["dropout"])
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    model.passes(given, 2)
    assert torch.rand(1) == expected


def test_a_network_without_dropout_is_refused_with_advice(given):
    plain = predictor(DoubtConfig(), dropout=0.0)
    assert find_dropout_layers(plain.network) == []
    with pytest.raises(UsageError, match="last-dropout"):
        apply_mc_dropout(plain)
    with pytest.raises(UsageError, match="kind: dropout"):
        predictor(KINDS["dropout"], dropout=0.0)
    with pytest.raises(UsageError, match="drawn already"):
        apply_mc_dropout(predictor(KINDS["last-flipout"]))
    trained = predictor(DoubtConfig())
    asked = apply_mc_dropout(trained, passes=3)
    assert asked.passes(given, 3).std(axis=0).max() > 0
    assert trained.passes(given, 3).std(axis=0).max() == 0  # the one it was made of is as before


def test_flipout_has_the_mean_and_variance_of_independent_weights_and_samples_hardly_share_it():
    torch.manual_seed(0)
    layer = FlipoutLast(nn.Linear(3, 2), prior=1.0)
    with torch.no_grad():
        layer.raw_spread.copy_(torch.linspace(-1, 1, 6))
    x = torch.tensor([[1.0, -2.0, 0.5]] * 2)
    drawn = torch.stack([layer(x) for _ in range(1000)]).detach()
    wanted = x[:1].square() @ layer.spread.square().T
    mean = nn.functional.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.3, rtol=0)
    torch.testing.assert_close(drawn.var(0), wanted.expand(2, -1), atol=0, rtol=0.2)
    together = np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]
    assert abs(together) < 0.2  # weights that all samples share would make it 1
    frames = layer(x[:, None].expand(2, 5, 3))
    assert (frames == frames[:, :1]).all()  # the frames of a sample see the same weights
    torch.testing.assert_close(layer.eval()(x), mean)


@pytest.mark.parametrize("prior", [0.5, 2.0])
def test_divergence_is_that_of_normal_distributions_and_a_prior_that_follows_is_the_nearest(prior: float):
    torch.manual_seed(1)
    layer = FlipoutLast(nn.Linear(5, 3), prior)
    posterior = torch.distributions.Normal(layer.weight, layer.spread)
    wanted = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, prior)).sum()
    torch.testing.assert_close(layer.divergence(), wanted)
    layer.prior = 0.0
    assert 0 < layer.divergence() < wanted
    layer.divergence().backward()
    assert layer.raw_spread.grad is not None
    assert compute_kl_divergence(predictor(DoubtConfig()).network) is None


def test_a_layer_that_drops_drops_each_samples_own_inputs_in_training():
    layer = DropoutLast(nn.Linear(50, 1), 0.5)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.zero_()
    torch.manual_seed(0)
    assert len(layer(torch.ones(20, 50)).unique()) > 1
    assert len(layer.drawn(torch.ones(20, 50), torch.Generator().manual_seed(0)).unique()) == 1
    torch.testing.assert_close(layer.eval()(torch.ones(1, 50)), torch.full((1, 1), 50.0))


@pytest.mark.parametrize("kind", ["none", "last-flipout"])
def test_a_calibrated_predictor_has_no_larger_loss_and_the_same_weights(kind: str, given):
    model = predictor(KINDS[kind], labels=3)
    truth = np.random.default_rng(1).integers(3, size=N)
    found = calibrate_predictor(model, given, truth)
    before, after = (log_loss(one.pass_logits(given, 4), truth) for one in (model, found))
    assert after <= before
    assert found.network is model.network
    again = calibrate_predictor(replace(model, temperature=7.0), given, truth)
    assert again.temperature == pytest.approx(found.temperature)


def test_an_ensemble_is_the_mean_of_its_members_each_counting_the_same(given, tmp_path: Path):
    models = [predictor(DoubtConfig(), seed=seed) for seed in range(3)]
    for seed, model in enumerate(models):
        (tmp_path / "a" / f"seed-{seed}").mkdir(parents=True)
        model.save(tmp_path / "a" / f"seed-{seed}" / "model.safetensors")
    seeds = EnsemblePredictor.open([tmp_path / "a"])
    said = [model.probabilities(given) for model in models]
    np.testing.assert_array_equal(seeds.probabilities(given), np.mean(said, axis=0))
    both = EnsemblePredictor.open([tmp_path / "a", tmp_path / "a" / "seed-0" / "model.safetensors"])
    np.testing.assert_allclose(both.probabilities(given), (np.mean(said, axis=0) + said[0]) / 2)
    assert both.smallest == 6
    np.testing.assert_allclose(both.passes(given, 6).mean(axis=0), both.probabilities(given))
    with pytest.raises(UsageError, match="multiples of 6"):
        both.passes(given, 4)
    found = estimate_uncertainty(seeds, given, 3)
    np.testing.assert_allclose(found.spread, np.std(said, axis=0))
    assert (found.mutual_information > 0).all()
    same = estimate_uncertainty(EnsemblePredictor((models[0], models[0])), given, 2)
    np.testing.assert_allclose(same.mutual_information, 0, atol=1e-12)


def test_an_ensemble_of_nothing_or_of_different_questions_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="at least one"):
        EnsemblePredictor(())
    with pytest.raises(UsageError, match="one question"):
        EnsemblePredictor((predictor(DoubtConfig()), predictor(DoubtConfig(), labels=3)))
    with pytest.raises(InputError, match="none"):
        EnsemblePredictor.open([tmp_path])


@pytest.mark.parametrize(
    "fields",
    [{"rate": 1.0}, {"passes": 0}, {"prior": -1.0}, {"kind": "last-dropout"}, {"kind": "none", "rate": 0.5}],
)
def test_impossible_doubts_are_refused(fields: dict):
    with pytest.raises(UsageError, match="no such doubt"):
        DoubtConfig(**fields)


@pytest.mark.parametrize("kind", ["none", "last-dropout", "last-flipout"])
def test_passes_are_one_product_with_the_weights_of_the_last_layer(kind: str, given) -> None:
    model = predictor(KINDS[kind], labels=3)
    x = {"boxes": torch.from_numpy(given.columns["boxes"].take(np.arange(N)))}
    with torch.inference_mode():
        seen = model.network.looked(x).embedding
    weights = sample_last_weights(model.network, model.doubt, 4)
    logits = seen @ weights.transpose(1, 2) + model.network.last.bias
    np.testing.assert_allclose(logits.detach().numpy(), model.pass_logits(given, 4), atol=1e-5)


def test_passes_that_differ_before_the_last_layer_are_no_weights() -> None:
    model = predictor(KINDS["dropout"])
    with pytest.raises(UsageError, match="last layer alone"):
        sample_last_weights(model.network, model.doubt, 4)
