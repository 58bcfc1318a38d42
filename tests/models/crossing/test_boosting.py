"""Trees evaluated from arrays against the library that grew them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from walkers import walkers

from roadaware.models import create
from roadaware.models.crossing import tabular
from roadaware.models.crossing.features import convert_to_probabilities, extract_hand_features


@pytest.mark.parametrize("labels", [2, 3, 12])
@pytest.mark.parametrize("missing", [False, True])
def test_arrays_say_what_scikit_learn_says(labels: int, missing: bool) -> None:
    rng = np.random.default_rng(labels)
    features = rng.normal(size=(600, 8))
    truth = (np.digitize(features[:, 0] + 0.3 * rng.normal(size=600), np.linspace(-1, 1, labels - 1))).astype(
        int
    )
    if missing:
        features[rng.random(features.shape) < 0.2] = np.nan
    grower = HistGradientBoostingClassifier(
        max_iter=15, max_leaf_nodes=9, early_stopping=False, random_state=0
    )
    grower.fit(features, truth)
    asked = np.vstack([features, rng.normal(size=(300, 8)) * 3])
    ours = convert_to_probabilities(
        tabular.compute_raw_scores(tabular.export(grower), asked), 1 if labels == 2 else labels
    )
    theirs = grower.predict_proba(asked)
    np.testing.assert_allclose(ours, theirs[:, 1:] if labels == 2 else theirs, rtol=0, atol=1e-12)


def test_stages_are_the_librarys_stages() -> None:
    train = walkers(300, 2, 0)
    features = extract_hand_features(train, vehicle=True, extrapolated=True)
    grower = HistGradientBoostingClassifier(max_iter=6, early_stopping=False, random_state=0)
    grower.fit(features, train.truth)
    grown = tabular.export(grower)
    stages = list(tabular.iterate_staged_scores(grown, features))
    assert len(stages) == 6
    for ours, theirs in zip(stages, grower.staged_predict_proba(features), strict=True):
        np.testing.assert_allclose(convert_to_probabilities(ours, 1), theirs[:, 1:], atol=1e-12)
    for rounds in (1, 4):
        cut = tabular.compute_raw_scores(tabular.truncate_trees(grown, rounds), features)
        assert np.array_equal(cut, stages[rounds - 1])


def test_the_number_of_rounds_is_chosen_on_validation() -> None:
    noise = np.random.default_rng(1).permutation(120)
    train, held = walkers(200, 2, 0), walkers(120, 2, 1)
    model = create("boosting", rounds=45, step=10, leaves=(31,), least_in_leaf=2, learning_rate=0.5)
    found = model.fit(train, held).fitted
    assert [trial.settings["rounds"] for trial in found.trials] == [10, 20, 30, 40, 45]
    assert found.arrays["feature"].shape[0] == found.chosen["rounds"]
    held.truth[:] = held.truth[noise]
    assert model.fit(train, held).fitted.chosen["rounds"] == 10
