"""Boosted trees of the hazard: probabilities of spans, learnt from tracks that may end before; their file and its faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadaware.arrays import Bools, Floats
from roadaware.errors import DamagedError, InputError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.models.crossing.hazard_trees import HazardTrees, HazardTreesConfig
from roadaware.models.crossing.inputs import Held, InputSet

EDGES, LABELS = (1.0, 2.0, 4.0), ("0 to 1 s", "1 to 2 s", "2 to 4 s", "later")
CONFIG = HazardTreesConfig(
    members=2, share=0.5, rounds=40, learning_rate=0.2, leaves=6, penalty=0.0, columns=1.0
)


def make_moments(n: int = 3000, seed: int = 0) -> tuple[InputSet, Floats, Bools]:
    """An event at about the first feature, censored after an exponential time of its own."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (n, 1, 3)).astype(np.float32)
    x[rng.random(n) < 0.1, 0, 1] = np.nan
    happens = x[:, 0, 0] + rng.normal(0, 0.2, n).clip(-0.5, 0.5) + 0.6
    ends = rng.exponential(6.0, n) + 0.05
    event = happens <= ends
    return InputSet({"history": Held(x)}, n), np.where(event, happens, ends), event


def fit(**fields: object) -> HazardTrees:
    given, time_s, event = make_moments()
    config = HazardTreesConfig(**{**{f: getattr(CONFIG, f) for f in CONFIG.__dataclass_fields__}, **fields})
    return HazardTrees.fit(given, time_s, event, LABELS, {"edges_s": list(EDGES)}, config)


@pytest.fixture(scope="module")
def trees() -> HazardTrees:
    return fit()


def test_probabilities_say_when_though_most_tracks_end_before(trees: HazardTrees) -> None:
    given, _, _ = make_moments(400, seed=1)
    chance = trees.probabilities(given)
    assert chance.shape == (400, 4)
    assert chance.sum(axis=1) == pytest.approx(np.ones(400))
    assert (chance >= 0).all()
    first = np.asarray(given.columns["history"].take(np.arange(400)))[:, 0, 0] + 0.6
    # Away from the ends of spans by more than the noise (.5 at most) there is no doubt.
    for low, high, span in ((0.6, 0.75, 0), (1.4, 1.6, 1), (2.6, 3.4, 2), (4.6, 9.0, 3)):
        inside = (first > low) & (first < high)
        assert inside.sum() > 5
        assert chance[inside, span].mean() > 0.8, span


def test_survival_is_the_product_of_what_each_span_leaves(trees: HazardTrees) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    given, time_s, event = make_moments()
    whole = HazardTreesConfig(
        members=1, share=1.0, rounds=10, leaves=4, penalty=0.0, columns=1.0, least_in_leaf=0.01
    )
    held = HazardTrees.fit(given, time_s, event, LABELS, {"edges_s": list(EDGES)}, whole)
    x = np.asarray(given.columns["history"].take(np.arange(len(given))), dtype=np.float64)[:, 0]
    # Person-period data by hand: a row for each span begun alive whose end is known.
    rows, truth, low = [], [], 0.0
    for high in EDGES:
        for k in range(len(x)):
            if time_s[k] > low and (time_s[k] > high or event[k]):
                rows.append([*x[k], high])
                truth.append(bool(event[k] and time_s[k] <= high))
        low = high
    booster = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=10, max_leaf_nodes=4, min_samples_leaf=round(0.01 * len(rows)), early_stopping=False,
        random_state=0,
    ).fit(np.array(rows), np.array(truth))  # fmt: skip
    alive = np.ones(len(x))
    for place, high in enumerate(EDGES):
        alive = alive * (1 - booster.predict_proba(np.column_stack([x, np.full(len(x), high)]))[:, 1])
        got = 1 - held.probabilities(given)[:, : place + 1].sum(axis=1)
        assert got == pytest.approx(alive, abs=1e-9)
    assert not np.allclose(held.probabilities(given), trees.probabilities(given))


def test_a_file_gives_the_same_answers(trees: HazardTrees, tmp_path: Path) -> None:
    given, _, _ = make_moments(50, seed=2)
    trees.save(tmp_path / "t.npz")
    opened = EnsemblePredictor.open([tmp_path / "t.npz"])
    assert (opened.task, opened.labels, opened.inputs) == ("time", LABELS, ("history",))
    assert np.array_equal(opened.probabilities(given), trees.probabilities(given))
    assert opened.passes(given, 2).shape == (2, 50, 4)
    assert np.array_equal(
        fit().probabilities(given), trees.probabilities(given)
    )  # the same seed, the same trees


def test_what_does_not_fit_is_refused(trees: HazardTrees, tmp_path: Path) -> None:
    given, time_s, _ = make_moments(200)
    with pytest.raises(InputError, match="history are missing"):
        trees.probabilities(InputSet({}, 3))
    with pytest.raises(InputError, match="does not fit"):
        trees.probabilities(InputSet({"history": Held(np.zeros((3, 1, 2), np.float32))}, 3))
    with pytest.raises(InputError, match="nothing to learn"):
        HazardTrees.fit(given, time_s, np.zeros(200, bool), LABELS, {"edges_s": list(EDGES)}, CONFIG)
    trees.save(tmp_path / "t.npz")
    arrays, facts = open_arrays(tmp_path / "t.npz")
    for name, wrong in (("feature_0", 99), ("left_1", -1), ("right_0", 10_000)):
        save_arrays(tmp_path / "w.npz", {**arrays, name: np.full_like(arrays[name], wrong)}, facts)
        with pytest.raises(InputError, match="does not fit"):
            HazardTrees.open(tmp_path / "w.npz").probabilities(given)
    circle = {"left_0": np.zeros_like(arrays["left_0"]), "right_0": np.zeros_like(arrays["right_0"])}
    save_arrays(tmp_path / "w.npz", {**arrays, **circle}, facts)
    assert HazardTrees.open(tmp_path / "w.npz").probabilities(given).shape == (200, 4)  # ends
    for change in ({"labels": ["a"]}, {"facts": {}}, {"facts": {**facts["facts"], "edges_s": ["x", 1, 2]}}):
        save_arrays(tmp_path / "w.npz", arrays, {**facts, **change})
        with pytest.raises(DamagedError):
            HazardTrees.open(tmp_path / "w.npz")
    save_arrays(tmp_path / "w.npz", arrays, {**facts, "model": "boosting"})
    with pytest.raises(InputError, match="found boosting"):
        HazardTrees.open(tmp_path / "w.npz")
