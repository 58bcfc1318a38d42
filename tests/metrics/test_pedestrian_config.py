"""The named choices of the pedestrian evaluator."""

from dataclasses import fields

import pytest

from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError
from roadaware.metrics.pedestrians import PedestrianConfig


def test_reference_and_default_differ_in_every_quirk_that_is_not_kept():
    reference, default = PedestrianConfig.reference("risk"), PedestrianConfig.default("risk")
    kept = {f.name for f in fields(default) if getattr(reference, f.name) == getattr(default, f.name)}
    assert kept == {"task", "delta_over_classes", "tte_sigma", "risk_sigma"}


@pytest.mark.parametrize("make", [PedestrianConfig.reference, PedestrianConfig.default])
@pytest.mark.parametrize("task", ["action", "intention", "risk"])
def test_configs_survive_as_plain_data(make, task):
    assert from_dict(PedestrianConfig, to_dict(make(task))) == make(task)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("task", "crossing", "task should be one of action, intention, risk; got 'crossing'"),
        ("hard_vote", "median", "one of unanimous, mean"),
        ("max_tte", "none", "one of set, subset"),
        ("tte_sigma", 0.0, "positive"),
        ("risk_sigma", -1.0, "positive"),
    ],
)
def test_unknown_choices_are_refused(field, value, message):
    with pytest.raises(UsageError, match=message):
        PedestrianConfig(**{field: value})
