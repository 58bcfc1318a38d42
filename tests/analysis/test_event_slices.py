"""Groups by name: each video or box lies where its row says, and unknown names are errors."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.analysis.event_results import HEIGHTS_PX, build_video_slices
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import UsageError

SCENES = generate_road_scenes(videos=6, frames=30, boxes_per_frame=2, seed=2)


def videos_of(**where: str) -> set[str]:
    held = SCENES.videos.with_columns(pl.col("video", "weather").cast(pl.String))
    return set(held.filter(**where)["video"].to_list())


def test_every_split_is_a_group() -> None:
    found = build_video_slices(SCENES, ["split"])
    for name, part in found.items():
        split = name.removeprefix("split=")
        assert set(part.videos or ()) == set(SCENES.split_videos(split))


def test_a_column_of_videos_groups_by_its_values() -> None:
    found = build_video_slices(SCENES, ["weather"])
    for name, part in found.items():
        assert set(part.videos or ()) == videos_of(weather=name.removeprefix("weather="))
    assert sum(len(part.videos or ()) for part in found.values()) == len(SCENES.videos)


def test_a_value_of_a_column_groups_into_yes_and_no() -> None:
    found = build_video_slices(SCENES, ["night"])
    assert set(found["night=yes"].videos or ()) == videos_of(weather="night")
    every = {str(video) for video in SCENES.videos["video"]}
    assert set(found["night=no"].videos or ()) == every - videos_of(weather="night")


def test_heights_leave_no_gap_and_do_not_overlap() -> None:
    found = build_video_slices(SCENES, ["height"])
    heights = pl.DataFrame({"height_px": [0.0, 31.9, 32.0, 100.0, 255.9, 256.0, 5000.0]})
    inside = [
        heights.select(part.size)["height_px"].to_list() for part in found.values() if part.size is not None
    ]
    assert len(inside) == len(HEIGHTS_PX)
    assert [sum(row) for row in zip(*inside, strict=True)] == [1] * len(heights)


def test_tags_of_boxes_group_them() -> None:
    tagged = SCENES.boxes.with_columns(
        occlusion=pl.Series(["none", "full"] * len(SCENES.boxes)).head(len(SCENES.boxes))
    )
    found = build_video_slices(SCENES.with_tables(boxes=tagged), ["occlusion"])
    assert set(found) == {"occlusion=none", "occlusion=full"}
    assert all(part.of_boxes for part in found.values())


def test_unknown_names_and_too_many_values_are_errors() -> None:
    with pytest.raises(UsageError, match="there are split, height, scene, weather"):
        build_video_slices(SCENES, ["mood"])
    names = pl.Series("route", [f"r{k}" for k in range(60)])
    many = generate_road_scenes(videos=60, frames=24, boxes_per_frame=1, seed=0)
    with pytest.raises(UsageError, match="60 values"):
        build_video_slices(many.with_tables(videos=many.videos.with_columns(names)), ["route"])
