"""Training of predictors: losses by hand, mirrors, fits that repeat themselves, runs done once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from street import street

from roadaware import config as configs
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.models.crossing.inputs import Held, InputSet
from roadaware.models.crossing.predictor import Predictor, is_predictor
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.store import save
from roadaware.training.pedestrians import results
from roadaware.training.pedestrians import run as runs
from roadaware.training.pedestrians.fit import DivergedFitError, Fitter
from roadaware.training.pedestrians.heads import (
    Fold,
    compute_class_weights,
    compute_moments,
    cumulated_distance,
    encode_target,
    ensure_flippable,
    flip_inputs,
    flip_targets,
    frames_loss,
    label_loss,
)
from roadaware.training.pedestrians.recipe import LossRecipe, NetworkRecipe, PedestrianRecipe, SamplesRecipe
from roadaware.training.pedestrians.results import score_probabilities
from roadaware.training.pedestrians.samples import Material, build_fold
from roadaware.training.recipe import ScheduleRecipe

TINY = {"width": 8, "dilations": (1, 2)}
RECIPE = PedestrianRecipe(
    seeds=(0,),
    network=NetworkRecipe("steady", fields=TINY, inputs=("boxes", "centre", "ego:action")),
    samples=SamplesRecipe(root="street", protocol="jaad-action@iv2024", config="reference"),
    schedule=ScheduleRecipe(epochs=4, optimizer="adamw", lr=0.01, decay="none"),
    batch=32,
    threads=1,
)


@pytest.fixture(scope="module")
def material() -> Material:
    cut = sample(street(people=12), Iv2024.reference("action"))
    return Material(cut, cut, Iv2024.reference("action"), tuple(cut.meta.vocabularies["action"]))


@pytest.fixture(scope="module")
def folds(material: Material) -> dict[str, Fold]:
    return {split: build_fold(material, split, RECIPE.network.inputs, RECIPE) for split in ("train", "val")}


def test_an_input_that_nobody_tells_of_a_split_is_refused_and_one_told_in_parts_is_said(
    material: Material, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file has a pose of each pedestrian of train in every frame, of val in one that nobody observes."""
    tubes = material.cut.tubes.filter(pl.col("video") != "video_0003")
    names, videos = tubes["name"].to_list(), tubes["video"].to_list()
    train = [(v, n, f) for v, n in zip(videos, names, strict=True) for f in range(130) if v == "video_0001"]
    held = [(v, n, 1000) for v, n in zip(videos, names, strict=True) if v == "video_0002"]
    video, name, frame = (np.array(part) for part in zip(*train, *held, strict=True))
    joints = np.full((len(frame), 36), 0.5)
    joints[:, 20:] = 0  # OpenPose's way of saying that it found none of these
    np.savez(tmp_path / "poses.npz", video=video, name=name, frame=frame, joints=joints)
    recipe = replace(RECIPE, samples=replace(RECIPE.samples, poses=str(tmp_path / "poses.npz")))
    build_fold(material, "train", ["boxes", "centre", "pose", "ego:action"], recipe)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "split 'train': 44.4% of pose unknown; a mean or zero stands in for it"
    with pytest.raises(InputError, match="no sample of split 'val' tells anything of pose;"):
        build_fold(material, "val", ["boxes", "pose"], recipe)


def fitted(folds: dict[str, Fold], recipe: PedestrianRecipe = RECIPE, seed: int = 0):
    network = runs.build_crossing_network(recipe, folds["train"].inputs.shapes, 2, seed)
    return network, Fitter(network, folds["train"], folds["val"], recipe, seed).fit()


def test_probability_that_is_two_regions_off_is_twice_as_far_as_by_one():
    truth = torch.eye(4)[[0, 0, 0]]
    said = torch.eye(4)[[0, 1, 2]]
    assert cumulated_distance(said, truth).tolist() == [0, 1, 2]


def test_an_ordinal_loss_minds_how_far_off_and_a_plain_one_does_not():
    wanted = encode_target(torch.tensor([0, 0]), 4)
    logits = torch.log(torch.tensor([[0.1, 0.8, 0.05, 0.05], [0.1, 0.05, 0.05, 0.8]]))
    near, far = label_loss(logits, wanted, torch.ones(2), LossRecipe()).tolist()
    assert near == pytest.approx(far)
    near, far = label_loss(logits, wanted, torch.ones(2), LossRecipe(label="ordinal")).tolist()
    assert far > near + 1


def test_class_weights_are_inverse_to_frequency_and_one_on_average():
    truth = torch.tensor([0] * 9 + [1])
    weight = compute_class_weights(truth, 2, 1.0)
    assert weight[1] / weight[0] == pytest.approx(9)
    assert weight[truth].mean() == pytest.approx(1)
    assert compute_class_weights(truth, 2, 0.0).tolist() == [1, 1]


def test_answers_that_stay_the_same_from_frame_to_frame_cost_no_consistency():
    steady, restless = torch.zeros(1, 8, 1), torch.tensor([[[-3.0], [3.0]] * 4])
    for answers, free in ((steady, True), (restless, False)):
        loss = frames_loss(answers, torch.ones(1, 1), torch.ones(1), LossRecipe(consistency=1.0))
        assert (float(loss) == 0) == free


def test_a_mirror_turns_places_and_paths_and_twice_is_as_before():
    x = {
        "boxes": torch.tensor([[[0.1, 0.2, 0.3, 0.6]]] * 2),
        "boxes:last": torch.tensor([[[-0.1, 0.2, -0.05, 0.6]]] * 2),
        "centre": torch.arange(16.0).reshape(2, 1, 8),
        "motion": torch.tensor([[[0.2, 0.1, -0.2]]] * 2),
        "crop:box@2": torch.arange(24.0).reshape(2, 1, 3, 2, 2),
    }
    once = flip_inputs(x, torch.tensor([True, False]))
    assert once["boxes"][0, 0].tolist() == pytest.approx([0.7, 0.2, 0.9, 0.6])
    assert once["boxes:last"][0, 0].tolist() == pytest.approx([0.05, 0.2, 0.1, 0.6])
    assert once["centre"][0, 0].tolist() == [1, 1, 2, 3, -4, 5, 6, 7]
    assert once["motion"][0, 0].tolist() == pytest.approx([-0.2, 0.1, -0.2])
    assert once["crop:box@2"][0, 0, 0].tolist() == [[1, 0], [3, 2]]
    twice = flip_inputs(once, torch.tensor([True, False]))
    for name, values in x.items():
        torch.testing.assert_close(once[name][1], values[1])
        torch.testing.assert_close(twice[name], values)


def test_regions_change_sides_in_a_mirror_and_crossing_does_not():
    wanted = torch.tensor([[1.0, 0, 0], [1.0, 0, 0]])
    which = torch.tensor([True, False])
    assert flip_targets(wanted, which, regions=True).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert flip_targets(wanted, which, regions=False) is wanted
    with pytest.raises(UsageError, match="pose"):
        ensure_flippable({"pose": (15, 36)})


def test_the_rate_that_is_learnt_from_is_known_where_all_videos_have_one(material):
    def of(*rates: float | None) -> float | None:
        videos = material.train.videos.drop("fps", strict=False)
        known = videos.with_columns(
            fps=pl.Series(rates[:1] * (len(videos) - 1) + rates[-1:], dtype=pl.Float32)
        )
        return replace(material, train=material.train.with_tables(videos=known)).fps

    assert (of(12.0), of(12.0, 30.0), of(None)) == (12.0, None, None)


def test_moments_leave_out_what_is_unknown():
    values = np.array([[[1.0, np.nan]], [[3.0, 5.0]]], dtype=np.float32)
    mean, spread = compute_moments(Fold(InputSet({"a": Held(values)}, 2), torch.zeros(2).long()))["a"]
    assert mean.tolist() == [2, 5]
    assert spread.tolist() == [1, 1]


@pytest.mark.parametrize("criterion", ["average_precision", "auc", "log_loss", "balanced_accuracy"])
def test_the_right_answers_are_worth_more_than_the_wrong_ones(criterion):
    truth = np.array([0, 0, 1, 1])
    right, wrong = np.array([[0.1], [0.2], [0.8], [0.9]]), np.array([[0.9], [0.8], [0.2], [0.1]])
    assert score_probabilities(criterion, right, truth) > score_probabilities(criterion, wrong, truth)


def test_a_ranking_of_one_label_alone_means_nothing():
    assert np.isnan(score_probabilities("auc", np.array([[0.1], [0.2]]), np.array([1, 1])))


def test_a_fit_learns_keeps_its_best_epoch_and_repeats_itself(folds):
    network, came = fitted(folds)
    again, also = fitted(folds)
    assert came == also
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), again.parameters(), strict=True))
    assert came.curve[-1].loss < came.curve[0].loss
    assert came.curve[came.best - 1].worth == max(score.worth for score in came.curve)
    assert fitted(folds, seed=1)[1] != came


def test_mirrors_earlier_answers_and_a_running_mean_take_part(folds):
    recipe = replace(
        RECIPE,
        flip=0.5,
        loss=LossRecipe(every_frame=0.5, consistency=0.1, balance=0.5, smoothing=0.1),
        schedule=replace(RECIPE.schedule, ema=0.9, clip_norm=1.0),
        patience=1,
    )
    network, came = fitted(folds, recipe)
    assert 1 <= came.best <= len(came.curve) <= 4
    assert all(p.isfinite().all() for p in network.parameters())


def test_a_loss_that_is_no_number_ends_a_fit_with_words(folds):
    with pytest.raises(DivergedFitError, match="seed 0"):
        fitted(folds, replace(RECIPE, schedule=replace(RECIPE.schedule, lr=1e30)))


def test_a_loss_far_above_that_of_guessing_ends_a_fit_with_both_numbers(folds):
    """The rate is so high that the answers are huge, and still numbers."""
    recipe = replace(
        RECIPE,
        network=NetworkRecipe("single-rnn", fields={"width": 4}, inputs=("boxes",)),
        schedule=replace(RECIPE.schedule, lr=1e6),
    )
    given = {split: fold_of_boxes(fold) for split, fold in folds.items()}
    with pytest.raises(
        DivergedFitError, match=r"loss of seed 0 is \S+ in epoch 2, and guessing costs 0\.693"
    ):
        fitted(given, recipe)
    with pytest.raises(DivergedFitError, match=r"guessing costs 0\.693.*lower schedule\.lr"):
        fitted(given, replace(recipe, loss=LossRecipe(balance=1.0)))


def fold_of_boxes(fold: Fold) -> Fold:
    columns = {"boxes": fold.inputs.columns["boxes"]}
    return replace(fold, inputs=InputSet(columns, len(fold)))


def test_a_predictor_comes_back_as_it_was_saved_or_not_at_all(folds, tmp_path):
    network, _ = fitted(folds)
    given, path = folds["val"].inputs, tmp_path / "model.safetensors"
    saved = Predictor(network, "steady", "action", ("no", "yes"), {"seed": 0}, temperature=1.5)
    saved.save(path)
    opened = Predictor.open(path)
    assert opened.facts == {"seed": 0}
    np.testing.assert_array_equal(saved.probabilities(given), opened.probabilities(given))
    assert is_predictor(path)
    assert not is_predictor(tmp_path / "none")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedError):
        Predictor.open(path)
    with pytest.raises(InputError, match="centre"):
        opened.probabilities(InputSet({"boxes": given.columns["boxes"]}, len(given)))


def test_a_last_layer_of_distributions_learns_and_a_near_prior_holds_it_back(folds):
    moved = {}
    for prior in (0.01, 100.0):
        recipe = replace(
            RECIPE,
            doubt=DoubtConfig("last-flipout", prior=prior),
            schedule=replace(RECIPE.schedule, epochs=2),
        )
        network, came = fitted(folds, recipe)
        assert came == fitted(folds, recipe)[1]
        moved[prior] = float(network.last.weight.detach().abs().mean())
        assert network.last.raw_spread.detach().std() > 0
    assert moved[0.01] < moved[100.0]


@pytest.mark.slow
def test_a_run_is_not_done_twice_and_a_failed_seed_leaves_the_others(tmp_path, monkeypatch):
    data, out = tmp_path / "street", tmp_path / "run"
    save(street(people=12), data)
    recipe = replace(
        RECIPE,
        seeds=(0, 1),
        samples=replace(RECIPE.samples, reader="saved", root=str(data)),
        doubt=DoubtConfig("last-dropout", rate=0.5, passes=3),
    )
    made = runs._fit_network

    def fails(*args):
        if args[4] == 1:
            raise RoadawareError("a bad seed")
        return made(*args)

    monkeypatch.setattr(runs, "_fit_network", fails)
    first = runs.train_predictors(recipe, out)
    assert set(first.predictors) == {0}
    assert first.failed == {1: "a bad seed"}
    written = (out / "seed-0" / runs.MODEL).stat().st_mtime_ns
    monkeypatch.setattr(runs, "_fit_network", made)
    second = runs.train_predictors(recipe, out)
    assert set(second.predictors) == {0, 1}
    assert (out / "seed-0" / runs.MODEL).stat().st_mtime_ns == written
    assert all(model.doubt == recipe.doubt for model in second.predictors.values())
    judged = runs.evaluate_run(second)
    assert set(judged.metrics) == {"seed 0", "seed 1", "mean"}
    assert judged.metrics["mean"].value("auc") is not None
    with pytest.raises(UsageError, match="another recipe"):
        runs.train_predictors(replace(recipe, batch=16), out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"flip": 2.0}, "flip"),
        ({"loss": LossRecipe(soft=True)}, "intention"),
        ({"loss": LossRecipe(label="ordinal")}, "risk"),
        ({"samples": SamplesRecipe()}, "root"),
    ],
)
def test_impossible_recipes_are_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        replace(RECIPE, **changes)


def test_the_recipe_and_the_protocol_ask_the_same(tmp_path: Path):
    save(street(people=3), tmp_path / "street")
    samples = SamplesRecipe("saved", str(tmp_path / "street"), protocol="jaad-risk@iv2024")
    with pytest.raises(UsageError, match="risk"):
        runs.train_predictors(replace(RECIPE, samples=samples), tmp_path / "run")


def test_a_recipe_that_was_written_before_a_field_was_known_is_the_same_recipe():
    said = configs.to_dict(RECIPE)
    del said["doubt"], said["samples"]["poses"], said["tasks"]
    assert results.is_same_recipe(json.dumps(said), RECIPE)
    assert not results.is_same_recipe(json.dumps(said), replace(RECIPE, doubt=DoubtConfig("last-flipout")))
    assert not results.is_same_recipe("no JSON", RECIPE)


@pytest.mark.parametrize(
    ("split", "choose", "refused"),
    [("train", "log_loss", True), ("val", "auc", True), ("val", "log_loss", False)],
)
def test_a_split_of_one_label_is_refused_where_nothing_can_come_of_it(folds, split, choose, refused):
    one = {**folds, split: replace(folds[split], truth=torch.zeros_like(folds[split].truth))}
    recipe = replace(RECIPE, choose=choose)
    if refused:
        with pytest.raises(InputError, match=f"'{split}' have one label"):
            runs._check(one["train"], one["val"], recipe)
    else:
        runs._check(one["train"], one["val"], recipe)
