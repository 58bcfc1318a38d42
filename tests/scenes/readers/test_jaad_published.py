"""JAAD: what is known of the published annotations."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from roadaware.datasets import jaad, read
from roadaware.scenes.tables import Scenes

REAL = os.environ.get("ROADAWARE_DATA_DIR")
needs_real = pytest.mark.skipif(not REAL, reason="needs ROADAWARE_DATA_DIR with the published annotations")


@pytest.fixture(scope="module")
def published() -> Scenes:
    return read("jaad", Path(REAL or ""), cache=False, strict=True)


@needs_real
def test_published_counts(published: Scenes) -> None:
    sizes = {name: len(frame) for name, frame in published.filled().items()}
    assert sizes == {"videos": 346, "frames": 82_032, "boxes": 391_038, "tubes": 2_786}
    assert published.meta.rows_read == {**sizes, "files": 346 * 4 + 9}
    labels = dict(published.tubes.group_by("track_label").len().iter_rows())
    assert labels == {"pedestrian": 686, "ped": 2_017, "people": 83}
    assert published.tubes["behaviour"].sum() == 686
    crossing = dict(published.tubes.drop_nulls("crossing").group_by("crossing").len().iter_rows())
    assert crossing == {"irrelevant": 100, "not-crossing": 91, "crossing": 495}
    sizes_px = dict(published.videos.group_by("width_px").len().iter_rows())
    assert sizes_px == {1920: 336, 1280: 10}


@needs_real
def test_published_events(published: Scenes) -> None:
    tubes = published.tubes.drop_nulls("crossing")
    crossing = pl.col("crossing") == "crossing"
    point = pl.col("crossing_point").is_not_null()
    assert len(tubes.filter(crossing & ~point)) == 167
    assert len(tubes.filter(~crossing & point)) == 89
    sources = dict(tubes.group_by("event_source").len().iter_rows())
    assert sources == {"annotated": 328 + 89, "fallback": 167, "none": 102}
    assert tubes.filter(pl.col("event_source") == "none")["event_frame"].null_count() == 102
    inside = tubes.filter((pl.col("event_frame") >= 0) | pl.col("event_frame").is_null())
    assert len(inside) == 686


@needs_real
def test_published_frames_and_gaps(published: Scenes) -> None:
    actions = dict(published.frames.group_by("vehicle_action").len().iter_rows())
    assert actions == {
        "decelerating": 39_190,
        "accelerating": 26_390,
        "stopped": 11_193,
        "moving_fast": 2_834,
        "moving_slow": 2_425,
    }
    spans = published.boxes.group_by("tube").agg(pl.len(), pl.col("frame").max() - pl.col("frame").min() + 1)
    assert len(spans.filter(pl.col("len") != pl.col("frame"))) == 19
    without = set(published.videos["video"]) - set(published.tubes["video"])
    assert len(without) == 9


@needs_real
def test_published_splits(published: Scenes) -> None:
    sizes = {
        subset: tuple(len(published.split_videos(f"{subset}/{split}")) for split in ("train", "test", "val"))
        for subset in ("default", "all_videos", "high_visibility")
    }
    assert sizes == {
        "default": (177, 117, 29),
        "all_videos": (188, 126, 32),
        "high_visibility": (182, 121, 30),
    }
    default = [v for split in ("train", "val", "test") for v in published.split_videos(f"default/{split}")]
    tubes = published.only(default).tubes
    assert len(tubes.filter(pl.col("track_label") != "people")) == 2_580
    assert tubes["behaviour"].sum() == 648


@needs_real
@pytest.mark.slow
def test_published_appearance_fits_every_box_but_those_of_groups() -> None:
    with jaad.find(Path(REAL or "")) as source:
        if not source.has_folder("annotations_appearance"):
            pytest.skip("this copy of JAAD has no appearance tags")
        scenes = jaad.read(source, appearance=True)
    assert scenes.rejected.is_empty()
    assert scenes.meta.notes["warnings"] == []
    assert len(scenes.boxes) - scenes.boxes["pose_front"].null_count() == 378_643
