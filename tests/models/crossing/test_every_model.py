"""Laws that every registered model keeps; a model joins by being registered."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from walkers import Walkers, walkers

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models import MODELS, create, list_model_cards, load_model_class
from roadaware.models.crossing.tabular import TabularModel

LABELS = {"action": 2, "intention": 3, "risk": 12}
CASES = [(name, task) for name in MODELS for task in list_model_cards()[name].tasks]
SMALL = {"boosting": {"rounds": 12, "step": 4, "leaves": (3, 5)}}


def made(name: str, task: str) -> TabularModel:
    return create(name, labels=LABELS[task], **SMALL.get(name, {}))


def fitted(name: str, task: str) -> TabularModel:
    labels = LABELS[task]
    return made(name, task).fit(walkers(240, labels, 0), walkers(120, labels, 1))


def only(part: Walkers, rows: slice | np.ndarray) -> Walkers:
    held = (getattr(part, field.name) for field in fields(part))
    return Walkers(*(None if values is None else values[rows] for values in held))


@pytest.mark.parametrize("name", MODELS)
def test_the_card_is_complete(name: str) -> None:
    card = list_model_cards()[name]
    assert card.name == name
    assert card.family in ("network", "tabular", "rule")
    assert card.tasks
    empty = [f.name for f in fields(card) if not getattr(card, f.name) and f.name != "published"]
    assert not empty


@pytest.mark.parametrize(("name", "task"), CASES)
def test_predictions_are_probabilities_of_the_right_shape(name: str, task: str) -> None:
    labels = LABELS[task]
    scores = fitted(name, task).predict(walkers(50, labels, 2))
    assert scores.shape == (50, 1 if labels == 2 else labels)
    assert scores.dtype == np.float64
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    if labels > 2:
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_it_learns_what_can_be_learned(name: str, task: str) -> None:
    labels = LABELS[task]
    test = walkers(400, labels, 3)
    scores = fitted(name, task).predict(test)
    full = np.hstack([1 - scores, scores]) if labels == 2 else scores
    right = np.mean(full.argmax(axis=1) == test.truth)
    assert right > 1.5 * np.bincount(test.truth).max() / len(test.truth) or right > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_fitting_twice_gives_the_same_bytes(name: str, task: str, tmp_path: Path) -> None:
    for run in ("a", "b"):
        fitted(name, task).save(tmp_path / run)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_saved_model_opens_equal(name: str, task: str, tmp_path: Path) -> None:
    model = fitted(name, task)
    model.save(tmp_path / "model.npz")
    again = load_model_class(name).open(tmp_path / "model.npz")
    asked = walkers(60, LABELS[task], 4)
    assert np.array_equal(again.predict(asked), model.predict(asked))
    assert again.config == model.config
    assert again.fitted.chosen == model.fitted.chosen
    assert again.fitted.trials == model.fitted.trials


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_each_sample_is_judged_alone(name: str, task: str) -> None:
    model, asked = fitted(name, task), walkers(40, LABELS[task], 5)
    order = np.random.default_rng(0).permutation(40)
    whole = model.predict(asked)
    np.testing.assert_allclose(model.predict(only(asked, order)), whole[order], atol=1e-12)
    np.testing.assert_allclose(model.predict(only(asked, slice(7, 8))), whole[7:8], atol=1e-12)
    assert model.predict(only(asked, slice(0, 0))).shape == (0, whole.shape[1])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_the_answers_are_not_looked_at_when_predicting(name: str, task: str) -> None:
    model, asked = fitted(name, task), walkers(40, LABELS[task], 6)
    blind = replace(asked, truth=np.full(40, -1))
    assert np.array_equal(model.predict(blind), model.predict(asked))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_the_best_candidate_on_validation_wins(name: str, task: str) -> None:
    found = fitted(name, task).fitted
    scores = [trial.score for trial in found.trials]
    assert found.chosen == found.trials[int(np.argmax(scores))].settings
    assert len({tuple(sorted(trial.settings.items())) for trial in found.trials}) == len(scores)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_small_and_large_images_are_the_same_scene(name: str, task: str) -> None:
    model, asked = fitted(name, task), walkers(40, LABELS[task], 7)
    half = replace(asked, boxes=asked.boxes / 2, width_px=asked.width_px / 2, height_px=asked.height_px / 2)
    np.testing.assert_allclose(model.predict(half), model.predict(asked), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_an_unfitted_model_says_so(name: str, tmp_path: Path) -> None:
    model = made(name, list_model_cards()[name].tasks[0])
    with pytest.raises(UsageError, match="has not been fitted"):
        model.predict(walkers(3, 2, 0))
    with pytest.raises(UsageError, match="has not been fitted"):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MODELS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    task = list_model_cards()[name].tasks[0]
    labels = LABELS[task]
    train, held = walkers(60, labels, 0), walkers(30, labels, 1)
    wrong = {
        "should be": replace(train, boxes=train.boxes[..., :3]),
        "vehicle_action": replace(train, vehicle_action=train.vehicle_action[:, 1:]),
        "answers": replace(train, truth=train.truth[1:]),
        "labels": replace(train, truth=train.truth + labels),
        "not finite": replace(train, boxes=np.where(train.boxes > 800, np.nan, train.boxes)),
    }
    for message, part in wrong.items():
        with pytest.raises(InputError, match=message):
            made(name, task).fit(part, held)
    with pytest.raises(InputError, match="validation split has no samples"):
        made(name, task).fit(train, only(held, slice(0, 0)))
    with pytest.raises(InputError, match="nothing can be learned"):
        made(name, task).fit(replace(train, truth=np.zeros(60, np.int64)), held)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "constant-velocity"])
@pytest.mark.parametrize("known", [(4, 9), (1, 2, 7)])
def test_a_label_that_train_lacks_gets_no_probability(name: str, known: tuple[int, ...]) -> None:
    train, held = walkers(300, 12, 0), walkers(60, 12, 1)
    seen = only(train, np.flatnonzero(np.isin(train.truth, known)))
    scores = made(name, "risk").fit(seen, held).predict(held)
    absent = sorted(set(range(12)) - set(known))
    assert (scores[:, absent] == 0).all()
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-12)
    part = only(held, np.flatnonzero(np.isin(held.truth, known)))
    right = made(name, "risk").fit(seen, held).predict(part).argmax(axis=1) == part.truth
    assert right.mean() > 0.6


def test_names_are_offered_when_one_is_unknown() -> None:
    with pytest.raises(UsageError, match="logistic, boosting"):
        create("transformer")
    with pytest.raises(UsageError, match="no field depth"):
        create("logistic", depth=3)


def test_naming_the_models_loads_no_library() -> None:
    code = (
        "import sys, roadaware.models as m; list(m.MODELS)\n"
        "heavy = {'sklearn', 'scipy', 'polars', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_without_the_library_that_fitted_it(name: str, tmp_path: Path) -> None:
    task = list_model_cards()[name].tasks[0]
    model = fitted(name, task)
    model.save(tmp_path / "model")
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from walkers import walkers\n"
        "from roadaware.models import load_model_class\n"
        "model = load_model_class(sys.argv[2]).open(Path(sys.argv[3]))\n"
        "print(model.predict(walkers(30, int(sys.argv[4]), 8)).tobytes().hex())"
    )
    arguments = [str(Path(__file__).parent), name, str(tmp_path / "model"), str(LABELS[task])]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == model.predict(walkers(30, LABELS[task], 8)).tobytes().hex()


def test_a_model_file_of_another_model_is_refused(tmp_path: Path) -> None:
    fitted("logistic", "action").save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="expected a model boosting, found logistic"):
        load_model_class("boosting").open(tmp_path / "model.npz")


def test_every_cut_and_flip_of_a_model_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted("logistic", "action").save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in rng.integers(0, len(whole), 40):
        path.write_bytes(whole[:cut])
        with pytest.raises(DamagedError):
            load_model_class("logistic").open(path)
    truth = fitted("logistic", "action").predict(walkers(20, 2, 9))
    for place in rng.integers(0, len(whole), 120):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.integers(8))]) + whole[place + 1 :])
        try:
            found = load_model_class("logistic").open(path)
        except InputError:
            continue
        assert np.array_equal(found.predict(walkers(20, 2, 9)), truth)
