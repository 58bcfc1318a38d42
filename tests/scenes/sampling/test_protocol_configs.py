"""Protocol configs: their names, their limits, and what they write beside a result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError
from roadaware.scenes.sampling import PROTOCOLS, Iv2022, Iv2024, Wacv2021, get_protocol, list_task_answers


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@pytest.mark.parametrize("config", ["reference", "default"])
def test_every_named_protocol_survives_being_written(name, config):
    protocol = get_protocol(name, config)
    assert from_dict(type(protocol), to_dict(protocol)) == protocol
    dataset, rest = name.split("-", 1)
    task = rest.split("@")[0].rsplit("-", 1)[-1]
    assert (protocol.dataset, protocol.task) == (dataset, task)


def test_an_unknown_protocol_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'jaad-action@iv2024'"):
        get_protocol("jaad-action@iv2023")
    with pytest.raises(UsageError, match="'reference' or 'default'"):
        get_protocol("jaad-action@iv2024", "strict")


@pytest.mark.parametrize(
    ("protocol", "stride"),
    [
        (Iv2024.reference(), 10),
        (replace(Iv2024.reference(), overlap=0.0), 15),
        (replace(Iv2024.reference(), overlap=0.99), 1),
        (Wacv2021.reference(), 3),
        (Wacv2021.reference(dataset="pie"), 6),
        (Iv2022.reference(dataset="pie"), 3),
    ],
)
def test_the_stride_is_a_product_cut_off(protocol, stride):
    assert protocol.stride_frames == stride


def test_wacv_refuses_tracks_shorter_than_observation_and_time_to_event():
    with pytest.raises(UsageError, match=r"at least 76 \(observation \+ highest time to event\), not 16"):
        Wacv2021(min_track_frames=16)
    assert Wacv2021(min_track_frames=90).min_track_frames == 90


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "mood"}, "task is one of action, intention, risk; got 'mood'"),
        ({"task": "intention", "dataset": "jaad"}, "only PIE asked people"),
        ({"dataset": "kitti"}, "dataset is one of jaad, pie"),
        ({"overlap": 1.0}, "0 <= overlap < 1"),
        ({"observation_frames": 0}, "observation_frames >= 1"),
        ({"tte_frames": (90, 30)}, "tte_frames"),
        ({"prediction_frames": 45}, "must lie in 0..30"),
        ({"dataset": "pie", "pedestrians": "behaviour"}, "is JAAD's"),
        ({"crossing_observed": "maybe"}, "crossing_observed is one of keep, drop"),
        ({"risk_regions": 1}, "at least 2 regions"),
    ],
)
def test_a_config_that_makes_no_sense_says_so(fields, message):
    with pytest.raises(UsageError, match=message):
        Iv2024(**fields)


def test_wacv_asks_for_the_action_alone():
    with pytest.raises(UsageError, match="action alone"):
        Wacv2021(task="risk")


def test_the_vocabularies():
    assert list_task_answers(Iv2024.reference("action")) == ("not-crossing", "crossing")
    assert list_task_answers(Iv2024.reference("intention")) == ("no-crossing", "unsure", "crossing")
    assert list_task_answers(Iv2024.reference("risk"))[::11] == ("region_0", "region_11")


def test_the_default_differs_from_the_reference_in_its_quirks_alone():
    quirks = {
        "crosser_without_event",
        "other_event",
        "crossing_observed",
        "intention_past_critical",
        "intention_third",
        "intention_tte",
        "risk_width",
        "risk_off_left",
    }
    reference, default = to_dict(Iv2024.reference("risk")), to_dict(Iv2024.default("risk"))
    assert {name for name in reference if reference[name] != default[name]} == quirks
