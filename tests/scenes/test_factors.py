"""Scenarios worked out by hand: bins, windows, and what is unknown."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.errors import UsageError
from roadaware.scenes.factors import FACTORS, FactorConfig, build_scenario_labels
from roadaware.scenes.tables import Scenes

DEFAULT, PUBLISHED = FactorConfig.default(), FactorConfig.reference()
N_FRAMES = 60


def scenes(height=100.0, walking=(), lights=(), speeds=(), tube=None):
    """One pedestrian over 60 frames, sampled at frames 0..14."""
    frame = list(range(N_FRAMES))
    heights = height if isinstance(height, list) else [height] * N_FRAMES
    tables = {
        "videos": pl.DataFrame({"video": ["v"]}),
        "tubes": pl.DataFrame({"tube": [0], "video": ["v"], **(tube or {})}),
        "boxes": pl.DataFrame(
            {
                "box": frame,
                "video": ["v"] * N_FRAMES,
                "frame": frame,
                "tube": [0] * N_FRAMES,
                "x1_px": [0.0] * N_FRAMES,
                "y1_px": [10.0] * N_FRAMES,
                "x2_px": [5.0] * N_FRAMES,
                "y2_px": [10.0 + h for h in heights],
            }
        ),
        "samples": pl.DataFrame(
            {"sample": [0], "video": ["v"], "tube": [0], "start_frame": [0], "end_frame": [15]}
        ),
    }
    if walking:
        tags = pl.Series("action", list(walking), dtype=pl.Enum(["standing", "walking"]))
        tables["boxes"] = tables["boxes"].with_columns(tags)
    columns = {"video": ["v"] * N_FRAMES, "frame": frame}
    if lights:
        columns["traffic_light"] = pl.Series(list(lights), dtype=pl.Enum(["n/a", "red", "green"]))
    if speeds:
        columns["ego_speed_kmh"] = list(speeds)
    tables["frames"] = pl.DataFrame(columns)
    return Scenes(**tables)


def label(made, factor, config=DEFAULT):
    return build_scenario_labels(made, [factor], config)[0]


@pytest.mark.parametrize(
    ("height", "expected"),
    [
        (50.0, "0-80"),
        (80.0, "0-80"),
        (81.0, "80-100"),
        (150.0, "100-150"),
        (300.0, "200-300"),
        (301.0, "300+"),
    ],
)
def test_scale_is_the_mean_height_in_classes_closed_above(height, expected):
    assert label(scenes(height), "scale") == f"scale={expected}"


def test_the_published_window_looks_a_second_ahead():
    made = scenes([90.0] * 15 + [400.0] * 45)
    assert label(made, "scale") == "scale=80-100"
    # (15 * 90 + 30 * 400) / 45 = 296.7
    assert label(made, "scale", PUBLISHED) == "scale=200-300"


def test_state_goes_by_the_larger_part_of_the_tags():
    half = ["walking"] * 8 + ["standing"] * 52
    assert label(scenes(walking=half), "state") == "state=walking"
    assert label(scenes(walking=half), "state", PUBLISHED) == "state=standing"
    assert label(scenes(walking=["walking"] * 7 + ["standing"] * 53), "state") == "state=standing"


def test_a_pedestrian_without_tags_is_unknown_or_stands_as_published():
    nothing = [None] * N_FRAMES
    assert label(scenes(walking=nothing), "state") == "state=unknown"
    assert label(scenes(walking=nothing), "state", PUBLISHED) == "state=standing"
    # 30 of 45 walk and 15 are missing: (30 - 15) / 45 = 1/3.
    partly = [None] * 15 + ["walking"] * 45
    assert label(scenes(walking=partly), "state", PUBLISHED) == "state=standing"


@pytest.mark.parametrize(
    ("speed", "expected"), [(0.0, "0-0"), (0.1, "0-5"), (5.0, "0-5"), (30.0, "20-30"), (31.0, "30+")]
)
def test_speed_in_classes_closed_above(speed, expected):
    assert label(scenes(speeds=[speed] * N_FRAMES), "speed") == f"speed={expected}"


def test_the_signal_forbids_allows_or_is_not_there():
    red, green = ["red"] * N_FRAMES, ["green"] * N_FRAMES
    lit, unlit = {"signalized": ["S"]}, {"signalized": ["NS"]}
    assert label(scenes(lights=red, tube=lit), "signal") == "signal=forbid"
    assert label(scenes(lights=green, tube=lit), "signal") == "signal=allow"
    assert label(scenes(lights=green, tube=unlit), "signal") == "signal=none"
    assert label(scenes(lights=green, tube={"signalized": [None]}), "signal") == "signal=unknown"


def test_an_unseen_light_is_unknown_and_forbids_as_published():
    dark = scenes(lights=["n/a"] * N_FRAMES, tube={"signalized": ["S"]})
    assert label(dark, "signal") == "signal=unknown"
    assert label(dark, "signal", PUBLISHED) == "signal=forbid"
    mixed = scenes(lights=["n/a"] * 10 + ["green"] * 50, tube={"signalized": ["S"]})
    assert label(mixed, "signal") == "signal=allow"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"red": 5, "yellow": 3, "green": 4}, "forbid"),
        ({"red": 3, "yellow": 4, "green": 3}, "allow"),
        ({"red": 3, "yellow": 3, "green": 4, "n/a": 5}, "allow"),
        ({"red": 2, "yellow": 0, "green": 2, "n/a": 11}, "forbid"),
    ],
)
@pytest.mark.parametrize("dtype", [pl.Enum(["green", "n/a", "yellow", "red"]), pl.String, pl.Categorical])
def test_the_most_frequent_known_light_decides(counts, expected, dtype):
    made = scenes(tube={"signalized": ["S"]})
    states = [state for state, n in counts.items() for _ in range(n)]
    column = pl.Series("traffic_light", states + [None] * (N_FRAMES - len(states)), dtype=dtype)
    made = made.with_tables(frames=made.frames.with_columns(column))
    assert label(made, "signal") == f"signal={expected}"


@pytest.mark.parametrize("dtype", [pl.Enum(["walking", "standing"]), pl.String, pl.Categorical])
def test_tags_are_known_by_name_however_they_are_numbered(dtype):
    made = scenes(walking=["walking"] * 8 + ["standing"] * 52)
    made = made.with_tables(boxes=made.boxes.with_columns(pl.col("action").cast(pl.String).cast(dtype)))
    assert label(made, "state") == "state=walking"
    frames = made.frames.with_columns(pl.Series("vehicle_action", ["slow"] * 8 + ["fast"] * 52))
    dtype = pl.Enum(["slow", "fast"]) if isinstance(dtype, pl.Enum) else dtype
    made = made.with_tables(frames=frames.with_columns(pl.col("vehicle_action").cast(dtype)))
    assert label(made, "ego_action") == "ego_action=slow"


def test_road_and_lanes_come_from_the_pedestrian():
    made = scenes(tube={"traffic_direction": ["OW"], "num_lanes": [2]})
    assert label(made, "road") == "road=one-way"
    assert label(made, "lanes") == "lanes=narrow"
    assert label(scenes(tube={"traffic_direction": ["TW"], "num_lanes": [3]}), "lanes") == "lanes=wide"
    assert label(scenes(tube={"num_lanes": [None]}), "lanes") == "lanes=unknown"


def test_ego_action_is_the_most_frequent():
    made = scenes()
    actions = ["stopped"] * 4 + ["accelerating"] * 56
    column = pl.Series("vehicle_action", actions, dtype=pl.Enum(["stopped", "accelerating"]))
    made = made.with_tables(frames=made.frames.with_columns(column))
    assert label(made, "ego_action") == "ego_action=accelerating"
    nothing = made.frames.with_columns(pl.lit(None).cast(pl.String).alias("vehicle_action"))
    assert label(made.with_tables(frames=nothing), "ego_action") == "ego_action=unknown"


def test_flags_hold_at_the_first_observed_frame():
    made = scenes()
    made = made.with_tables(frames=made.frames.with_columns(pl.col("frame").eq(0).alias("ped_crossing")))
    assert label(made, "crosswalk") == "crosswalk=yes"
    assert label(made, "stop_sign") == "stop_sign=unknown"


@pytest.mark.parametrize("factor", sorted(FACTORS))
def test_what_a_dataset_does_not_tell_is_unknown(factor):
    made = scenes()
    bare = Scenes(videos=made.videos, tubes=made.tubes, boxes=made.boxes.clear(), samples=made.samples)
    assert label(bare, factor) == f"{factor}=unknown"


def test_factors_make_products():
    made = scenes(120.0, tube={"traffic_direction": ["TW"]})
    assert build_scenario_labels(made, ["scale", "road"], DEFAULT).tolist() == ["scale=100-150; road=two-way"]


def test_an_unknown_factor_is_named():
    with pytest.raises(UsageError, match=r"no factor \['weather'\]"):
        build_scenario_labels(scenes(), ["weather"], DEFAULT)
    with pytest.raises(UsageError, match="no factor is named"):
        build_scenario_labels(scenes(), [], DEFAULT)
