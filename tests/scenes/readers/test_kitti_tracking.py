"""Labels of KITTI tracking become tubes with boxes in the image and in space; what is no label is refused with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
from sets import SETS

from roadaware.datasets import read
from roadaware.datasets.kitti_tracking import parse_track_label
from roadaware.datasets.sensor_tables import RowError
from roadaware.tasks.poses import people_in

LINE = "0 0 Van 0 0 -1.79 296.74 161.75 455.22 292.37 2.00 1.82 4.43 -4.55 1.85 13.41 -2.11"


def test_tracks_count_within_their_drive(tmp_path: Path) -> None:
    scenes = SETS["kitti_tracking"].read(SETS["kitti_tracking"].make(tmp_path / "set"))
    assert scenes.videos.select("video", "width_px", "height_px", "fps", "n_frames").rows() == [
        ("0001", 62, 19, 10.0, 3),
        ("0003", 62, 19, 10.0, 3),
    ]
    assert scenes.tubes.select("video", "name").rows() == [
        ("0001", "0"),
        ("0001", "4"),
        ("0003", "0"),
        ("0003", "4"),
    ]
    ignored = scenes.boxes.filter("ignore")
    assert ignored["tube"].null_count() == len(ignored) == 6
    walker = scenes.boxes.filter(pl.col("tube") == 0)
    assert walker["x1_px"].to_list() == pytest.approx([8.79, 9.79, 10.79])
    assert walker["z_m"].to_list() == pytest.approx([8.55] * 3)
    assert scenes.boxes.filter(pl.col("tube") == 1)["occlusion"].cast(pl.String).to_list() == ["full"] * 3
    people = people_in(scenes)
    assert people.group_by("video", "name").len().sort("video").rows() == [("0001", "0", 3), ("0003", "0", 3)]


def test_a_label_says_what_it_is() -> None:
    frame, track, label, row = parse_track_label(LINE)
    assert (frame, track, label) == (0, "0", "Van")
    assert row["x1_px"] == 296.74
    assert row["length_m"] == 4.43
    assert parse_track_label(LINE.replace("Van", "Person"))[2] == "Person_sitting"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{LINE} 0.5", "18th is a score"),
        (LINE[:-6], "17 fields"),
        (LINE.replace("0 0 Van", "-1 0 Van"), "frame is a whole number"),
        (LINE.replace("0 0 Van", "0 x Van"), "track is a whole number"),
        (LINE.replace("0 0 Van", "0 -1 Van"), "has no track"),
        (LINE.replace("Van", "Boat"), "is none of"),
        (LINE.replace("455.22", "nan"), "finite number"),
        (LINE.replace("455.22", "1.5"), "upside down"),
    ],
)
def test_other_lines_are_refused(line: str, told: str) -> None:
    with pytest.raises(RowError, match=told):
        parse_track_label(line)


@pytest.mark.slow
@pytest.mark.skipif("ROADAWARE_DATA_DIR" not in os.environ, reason="the drives of KITTI are not there")
def test_real_drives_are_read_whole() -> None:
    folder = Path(os.environ["ROADAWARE_DATA_DIR"]) / "kitti_tracking"
    if not folder.is_dir():
        pytest.skip("the drives of KITTI are not there")
    scenes = read("kitti_tracking", folder, cache=False)
    lines = sum(len(path.read_text().splitlines()) for path in sorted((folder / "label_02").glob("*.txt")))
    assert len(scenes.boxes) == lines
    assert scenes.rejected.is_empty()
    assert scenes.videos["fps"].unique().to_list() == [10.0]
