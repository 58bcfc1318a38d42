"""Fits that are ended: they are saved behind their step and go on to the very same weights."""

from __future__ import annotations

import logging
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from street import street

from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.predictor import Predictor
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.store import save
from roadaware.training.pedestrians import fit
from roadaware.training.pedestrians import run as runs
from roadaware.training.pedestrians.fit import Fitted, Fitter, Keeper, StoppedFitError
from roadaware.training.pedestrians.heads import Fold, get_head_sizes
from roadaware.training.pedestrians.recipe import NetworkRecipe, PedestrianRecipe, SamplesRecipe
from roadaware.training.pedestrians.samples import Material, build_fold
from roadaware.training.recipe import ScheduleRecipe

RECIPE = PedestrianRecipe(
    seeds=(0,),
    network=NetworkRecipe(
        "pedformer",
        fields={"width": 8, "heads": 2, "inner": 8, "experts": 2, "filters": (2,), "dropout": 0.2},
        inputs=("boxes:last", "boxes"),
    ),
    samples=SamplesRecipe(root="street", protocol="jaad-action@iv2024", config="reference"),
    schedule=ScheduleRecipe(epochs=2.5, optimizer="adamw", lr=0.01, ema=0.9, warmup_steps=2),
    doubt=DoubtConfig("last-flipout"),
    batch=8,
    flip=0.5,
    threads=1,
)


class After(Keeper):
    """Asks to stop behind so many steps."""

    def __init__(self, path: Path, steps: int) -> None:
        super().__init__(path)
        self.left = steps

    @property
    def due(self) -> bool:
        self.left -= 1
        if not self.left:
            self.stop.number = signal.SIGINT
        return super().due


@pytest.fixture(scope="module")
def folds() -> tuple[Fold, Fold]:
    protocol = Iv2024.reference("action")
    cut = sample(street(people=6), protocol)
    material = Material(cut, cut, protocol, ("not-crossing", "crossing"))
    train, validation = (
        build_fold(material, split, RECIPE.network.inputs, RECIPE) for split in ("train", "val")
    )
    return train, validation


def fitter(folds: tuple[Fold, Fold]) -> Fitter:
    tasks = get_head_sizes(RECIPE, Iv2024.reference("action"))
    network = runs.build_crossing_network(RECIPE, folds[0].inputs.shapes, 2, 0, tasks)
    return Fitter(network, *folds, RECIPE, 0)


def same(one: CrossingNet, other: CrossingNet) -> bool:
    there = other.state_dict()
    return all(torch.equal(value, there[name]) for name, value in one.state_dict().items())


@pytest.fixture(scope="module")
def whole(folds: tuple[Fold, Fold]) -> tuple[Fitter, Fitted]:
    """A fit that nobody disturbed."""
    one = fitter(folds)
    return one, one.fit()


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_fit_that_is_ended_again_and_again_comes_to_the_same_weights(
    folds: tuple[Fold, Fold], whole: tuple[Fitter, Fitted], tmp_path: Path, steps: int
) -> None:
    path, times = tmp_path / "last.ckpt", 0
    while True:
        torch.rand(1)  # whatever else was drawn meanwhile
        one = fitter(folds)
        try:
            came = one.fit(keeper=After(path, steps))
        except StoppedFitError:
            times += 1
            continue
        break
    assert times == (whole[0].steps if steps == 1 else whole[0].steps // steps)
    assert came == whole[1]
    assert came.cpu_s > 0
    assert same(one.network, whole[0].network)


def test_a_state_that_is_not_whole_or_of_other_data_is_told_and_left(
    folds: tuple[Fold, Fold], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "last.ckpt"
    with pytest.raises(StoppedFitError):
        fitter(folds).fit(keeper=After(path, 2))
    data = path.read_bytes()
    assert Keeper(path).open({"samples": 3}) is None
    path.write_bytes(data[: len(data) // 2])
    assert Keeper(path).open({}) is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "begins anew" in caplog.text


def test_a_fit_is_saved_as_often_as_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 29.0, 31.0, 31.0, 41.0, 100.0, 240.0, 242.0])
    monkeypatch.setattr(fit.time, "monotonic", lambda: next(clock))
    keeper = Keeper(tmp_path / "last.ckpt")
    assert [keeper.due, keeper.due] == [False, True]
    keeper.save({})  # takes 10 s, of which 20 times as much pass until the next
    assert [keeper.due, keeper.due, keeper.due] == [False, False, True]
    keeper.remove()
    assert not keeper.path.exists()


@pytest.mark.slow
def test_a_run_that_is_interrupted_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(street(people=6), tmp_path / "street")
    recipe = replace(
        RECIPE,
        seeds=(0, 1),
        samples=replace(RECIPE.samples, reader="saved", root=str(tmp_path / "street")),
    )
    through = runs.train_predictors(recipe, tmp_path / "through")
    left = [4]  # epochs until the signal, which comes in the second seed

    def told(*_: object) -> None:
        left[0] -= 1
        if not left[0]:
            signal.raise_signal(signal.SIGINT)

    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            runs.train_predictors(recipe, tmp_path / "ended", told)
    finally:
        signal.signal(signal.SIGINT, heeded)
    assert (tmp_path / "ended" / "seed-0" / runs.MODEL).exists()
    assert {path.name for path in (tmp_path / "ended" / "seed-1").iterdir()} == {runs.LAST}
    went_on = runs.train_predictors(recipe, tmp_path / "ended")
    assert set(went_on.predictors) == {0, 1}
    for seed, predictor in through.predictors.items():
        again = Predictor.open(tmp_path / "ended" / f"seed-{seed}" / runs.MODEL)
        assert same(predictor.network, again.network)
        assert not (tmp_path / "ended" / f"seed-{seed}" / runs.LAST).exists()
