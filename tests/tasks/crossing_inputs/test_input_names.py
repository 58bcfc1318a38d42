"""Names of inputs: which there are, what they need, what is refused, and the order of rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from short_walks import OBSERVED, walks

from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.scenes.schema import CORNERS
from roadaware.tasks.crossing_inputs import build_inputs, describe_requirements, list_inputs
from roadaware.tasks.pedestrians import build_examples


def test_every_known_input_says_what_it_needs() -> None:
    assert len(set(list_inputs())) == len(list_inputs())
    for name in list_inputs():
        assert describe_requirements(name)
    assert describe_requirements("crop:box@112") == describe_requirements("crop:box")
    assert "vehicle_action" in describe_requirements("ego:action")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("boxs", "did you mean 'boxes'"),
        ("Boxes", "names no input"),
        ("boxes@32", "is no image; write 'boxes'"),
        ("crop:box", "needs its side in pixels: 'crop:box@112'"),
        ("crop:box@0", "needs its side"),
        ("maps@9000", "needs its side"),
        ("ego", "did you mean 'ego:"),
    ],
)
def test_a_name_that_is_none_is_refused_with_what_to_write(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build_inputs(walks(), "train", [name])


def test_names_come_once_and_splits_must_have_been_cut() -> None:
    with pytest.raises(UsageError, match="named once each"):
        build_inputs(walks(), "train", ["boxes", "boxes"])
    with pytest.raises(UsageError, match="at least one"):
        build_inputs(walks(), "train", [])
    with pytest.raises(UsageError, match="no sample is in split 'val'"):
        build_inputs(walks(), "val", ["boxes"])


def test_columns_come_in_the_order_asked_for_and_rows_can_be_taken_in_any() -> None:
    made = build_inputs(walks(), "train", ["grid", "boxes", "centre"])
    assert list(made.columns) == ["grid", "boxes", "centre"]
    assert len(made) == len(OBSERVED)
    assert made.shapes == {"grid": (5, 1), "boxes": (5, 4), "centre": (5, 8)}
    whole, some = made.take(np.arange(4)), made.take(np.array([3, 0, 0]))
    for name in made.columns:
        np.testing.assert_array_equal(some[name], whole[name][[3, 0, 0]])


def test_rows_are_those_of_the_examples() -> None:
    told = pl.Series([VEHICLE_ACTIONS[k % 5] for k in range(20)])
    scenes = walks(frames={"vehicle_action": told})
    asked = build_examples(scenes, "train")
    made = build_inputs(scenes, "train", ["boxes:pixels", "ego:code"]).take(np.arange(len(asked)))
    np.testing.assert_array_equal(made["boxes:pixels"], asked.boxes.astype(np.float32))
    np.testing.assert_array_equal(made["ego:code"][..., 0], asked.vehicle_action)


def test_nothing_behind_an_observation_is_looked_at() -> None:
    told = pl.Series([VEHICLE_ACTIONS[k % 5] for k in range(20)])
    speed = pl.Series(np.arange(20.0), dtype=pl.Float32)
    frames = {"vehicle_action": told, "ego_speed_kmh": speed, "traffic_light": ["red"] * 20}
    scenes = walks(frames=frames)
    later = scenes.with_tables(
        boxes=scenes.boxes.with_columns(
            pl.when((pl.col("tube") == 0) & (pl.col("frame") > 5))
            .then(pl.col(c) + 7)
            .otherwise(pl.col(c))
            .alias(c)
            for c in CORNERS
        ),
        frames=scenes.frames.with_columns(
            ego_speed_kmh=pl.when(pl.col("frame") > 5).then(99.0).otherwise("ego_speed_kmh").cast(pl.Float32)
        ),
    )
    names = [
        "boxes",
        "boxes:first",
        "boxes:last",
        "boxes:scaled",
        "centre",
        "motion",
        "grid",
        "ego:dynamics",
        "traffic",
    ]
    rows = np.array([0, 1])
    before, after = (build_inputs(each, "train", names).take(rows) for each in (scenes, later))
    for name in names:
        np.testing.assert_array_equal(after[name], before[name])


def test_the_size_of_a_picture_must_be_known_where_shares_are_asked_for() -> None:
    unknown = walks(videos={"width_px": pl.Series([64, None], dtype=pl.Int64)})
    with pytest.raises(InputError, match=r"image size of \['b'\] is unknown"):
        build_inputs(unknown, "train", ["boxes"])
    assert build_inputs(unknown, "train", ["boxes:pixels"]).n == 4
