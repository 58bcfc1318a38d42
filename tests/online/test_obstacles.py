"""Things and people on the road ahead: what a network of single images sees is joined over time, and read by triage."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.drives import build_drives
from roadaware.analysis.triage import count_labels, find_peaks
from roadaware.errors import DamagedError
from roadaware.io.video import VideoWriter
from roadaware.online.camera_motion import measure_own_motion
from roadaware.online.events import OBSTACLES
from roadaware.online.obstacles import ObstacleFinder, Tracks
from roadaware.online.setup import OBSTACLES as FILE
from roadaware.online.setup import WEIGHTS
from roadaware.scenes.tables import Meta, Predictions


@pytest.mark.parametrize(
    ("width", "height", "seen"),
    [
        (640, 360, (112, 320)),
        (360, 1440, (794, 320)),
        (360, 2880, (800, 161)),  # twice the rows, were the width kept
        (2, 1280, (800, 16)),  # not 127,040 rows
        (1, 1, (320, 320)),
        (1280, 2, (16, 320)),
    ],
)
def test_what_the_network_sees_of_an_image_is_bounded(width: int, height: int, seen: tuple[int, int]) -> None:
    from roadaware.models.obstacles import cut_strip

    assert cut_strip(np.zeros((height, width, 3), np.uint8)).shape == (*seen, 3)


def test_boxes_of_a_high_image_are_in_its_pixels() -> None:
    from roadaware.models.obstacles import detect_obstacles, open_obstacle_network

    picture = np.random.default_rng(0).integers(0, 255, (1000, 90, 3), dtype=np.uint8)
    (found,) = detect_obstacles(open_obstacle_network(WEIGHTS / FILE), [picture])
    assert len(found) > 20
    assert found[:, :4].min() >= 0
    # The network sees 800 of 620 rows, and 116 of 90 columns
    assert 80 < found[:, 2].max() <= 90
    assert 980 < found[:, 3].max() <= 1000
    assert found[:, 1].min() >= 380


def boxes(*rows: tuple[float, float, float, float, float, int]) -> np.ndarray:
    return np.array(rows, np.float32).reshape(-1, 6)


def test_what_is_approached_is_one_track_over_a_gap_and_no_other_class() -> None:
    tracks, found = Tracks(), list[list[int]]()
    for k in range(12):
        ahead, side = 24.0 - 1.8 * k, 0.8
        x, foot, half = 320 + 450 * side / ahead, 160 + 450 * 1.5 / ahead, 450 * 0.3 / ahead
        seen = [(x - half, foot - 2 * half, x + half, foot, 0.8, 0), (100, 160, 120, 200, 0.9, 1)]
        found.append(
            [number for number, _ in tracks.add(0.2 * k, boxes(*(seen if k not in (4, 5) else seen[1:])))]
        )
    both = {tuple(sorted(each)) for k, each in enumerate(found) if k not in (4, 5)}
    assert both == {(0, 1)}


def test_a_weak_box_goes_on_with_a_track_and_begins_none() -> None:
    tracks = Tracks()
    assert tracks.add(0.0, boxes((300, 200, 320, 220, 0.2, 0))) == []
    assert [number for number, _ in tracks.add(0.2, boxes((300, 200, 320, 220, 0.4, 0)))] == [0]
    assert [number for number, _ in tracks.add(0.4, boxes((301, 201, 322, 223, 0.2, 0)))] == [0]
    # Long after, or elsewhere, it is another one.
    assert [number for number, _ in tracks.add(0.6, boxes((400, 201, 422, 223, 0.5, 0)))] == [1]
    assert [number for number, _ in tracks.add(2.0, boxes((400, 201, 422, 223, 0.5, 0)))] == [2]


def test_a_thing_of_a_watch_is_unknown_to_triage_and_a_person_a_pedestrian(tmp_path: Path) -> None:
    frames, t_s = np.arange(50), np.arange(50) / 10
    videos = pl.DataFrame(
        {"video": ["v"], "width_px": [640], "height_px": [480], "fps": [10.0], "n_frames": [50]}
    )
    tables = Predictions(
        videos=videos,
        frames=pl.DataFrame({"video": ["v"] * 50, "frame": frames, "t_s": t_s}),
        boxes=pl.DataFrame(
            {"box": [0], "video": ["v"], "frame": [3], "tube": [7], "score": [0.9]}
            | {
                f"{side}_px": [value]
                for side, value in zip(("x1", "y1", "x2", "y2"), (1.0, 2.0, 30.0, 40.0), strict=True)
            }
        ),
        meta=Meta(vocabularies={"agent": ("Car",)}),
    )
    times = np.arange(10) * 0.2 + 0.25
    rows = [
        (t, k, name, x - 20.0, 300.0, x + 20.0, 340.0, 0.9)
        for t in times.tolist()
        for k, (name, x) in enumerate((("thing", 320.0), ("person", 500.0)))
    ]
    # A track that was never sure counts for nothing, one that gets sure from then on.
    rows += [(t, 2, "thing", 100.0, 300.0, 120.0, 320.0, 0.6) for t in times.tolist()]
    rows += [(t, 1, "person", 480.0, 300.0, 520.0, 340.0, 0.4) for t in (0.05, 0.1)]
    columns = ["t_s", "track", "name", "x1", "y1", "x2", "y2", "score"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(tmp_path / OBSTACLES)
    (drive,) = build_drives(tables, tmp_path)
    assert drive.boxes["tube"].unique().to_list() == [7, 8, 9]
    thing = drive.boxes.filter(pl.col("tube") == 8)
    # Each at the first frame that is not earlier than its image.
    assert thing["frame"].to_list() == [3, 5, 7, 9, 11, 13, 15, 17, 19, 21]
    assert dict(drive.boxes.group_by("tube").agg(pl.col("agent").first()).iter_rows())[9] == "Ped"
    assert (drive.unknown > 0).tolist() == (drive.boxes["agent"] == "thing").to_list()
    assert len(drive.labels) == len(drive.boxes)
    best = find_peaks(drive).sort("value", descending=True).filter(pl.col("reason") == "unknown")
    assert best["tube"].to_list()[0] == 8
    assert best["value"][0] == pytest.approx(0.9)

    # They are none of the detector's: they make no label rarer, and no other model lacks them.
    assert drive.added.tolist() == (drive.boxes["tube"] > 7).to_list()
    assert count_labels(drive)["of"].max() == 0  # the only tube of the detector has one box
    apart = find_peaks(replace(drive, others=drive.boxes.clear()))
    assert not len(apart.filter(pl.col("reason") == "disagreement", pl.col("tube") > 7))

    odd = [
        (0.4, 0, "thing", 300.0, 300.0, 340.0, 340.0, 50.0),
        (-1.0, 0, "thing", 1.0, 1.0, 9.0, 9.0, 0.9),
        (0.6, 0, "thing", 300.0, math.inf, 340.0, 340.0, 0.9),
        (0.6, 3, "thing", 1.0, 2.0, 30.0, 40.0, math.nan),
    ]
    pl.DataFrame(odd, schema=columns, orient="row").write_parquet(tmp_path / OBSTACLES)
    (mended,) = build_drives(tables, tmp_path)
    assert mended.unknown.tolist() == [0.0, 1.0]

    pl.DataFrame({"t_s": [0.0]}).write_parquet(tmp_path / OBSTACLES)
    with pytest.raises(DamagedError, match="obstacles lack a column"):
        list(build_drives(tables, tmp_path))


def test_an_empty_film_has_no_obstacles_and_every_column(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "grey.mp4", 320, 180, 5) as video:
        for _ in range(3):
            video.write(np.full((180, 320, 3), 90, np.uint8))
    finder = ObstacleFinder()
    assert len(measure_own_motion(tmp_path / "grey.mp4", finder.add)) == 3
    found = finder.build_table()
    assert found.columns == ["t_s", "track", "name", "x1", "y1", "x2", "y2", "score"]
    assert not len(found)


def test_other_weights_are_refused_with_their_file(tmp_path: Path) -> None:
    from roadaware.models.obstacles import open_obstacle_network

    network = open_obstacle_network(WEIGHTS / FILE)
    assert sum(each.numel() for each in network.parameters()) < 300_000
    with pytest.raises(DamagedError, match=r"no network of obstacles: .*(Missing|Unexpected|size mismatch)"):
        open_obstacle_network(WEIGHTS / "events-simulated.safetensors")
