"""What the doctor says of folders of annotations: nothing of clean ones."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.analysis.doctor import check_scene_folder
from roadaware.scenes.tables import Meta, Scenes


def _scenes(dataset: str, splits: list[str | None]) -> Scenes:
    """A video for each split, with one box."""
    names = [f"v{n}" for n in range(len(splits))]
    return Scenes(
        videos=pl.DataFrame(
            {"video": names, "width_px": 640, "height_px": 480, "n_frames": 3},
        ).with_columns(splits=pl.Series([[each] if each else None for each in splits], dtype=pl.List(pl.String))),
        frames=pl.DataFrame({"video": names, "frame": 0}),
        boxes=pl.DataFrame(
            {"box": range(len(names)), "video": names, "frame": 0, "x1_px": 500.0, "y1_px": 300.0, "x2_px": 600.0,
             "y2_px": 400.0}
        ),
        meta=Meta(dataset),
    )  # fmt: skip


@pytest.mark.parametrize("dataset", ["YOLO", "MOT", "CVAT", "COCO", ""])
@pytest.mark.parametrize("splits", [[None, None], ["default/train", "default/val"]])
def test_sets_that_need_no_split_lists_are_clean(dataset: str, splits: list[str | None]) -> None:
    assert check_scene_folder(_scenes(dataset, splits)) == []


@pytest.mark.parametrize("dataset", ["JAAD", "PIE"])
def test_sets_whose_release_has_split_lists_need_them(dataset: str) -> None:
    assert [each.code for each in check_scene_folder(_scenes(dataset, [None]))] == ["no_splits"]
    found = check_scene_folder(_scenes(dataset, ["default/train", "default/val"]))
    assert [each.code for each in found] == ["empty_split"]
