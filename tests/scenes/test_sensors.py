"""Sensors: rows of the tables lead to frames, sound, masks, depth and sweeps, and never out of the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.io.images import MaskWriter
from roadaware.io.point_clouds import Sweep, read_sweep, write_sweep
from roadaware.io.video import VideoWriter
from roadaware.scenes.sensors import (
    MEDIA,
    find_video_path,
    open_depth,
    open_frame,
    open_masks,
    open_sound,
    open_sweep,
)
from roadaware.scenes.tables import Scenes

FRAMES = 4
INSTANCE = np.arange(48 * 64).reshape(48, 64) % 300
POINTS = np.random.default_rng(0).uniform(-1, 1, (500, 5)).astype(np.float32)


def tables(
    video="scenes/s0/video.mp4", sweep="scenes/s0/lidar/000002.bin", n_points: int | None = 500
) -> Scenes:
    return Scenes(
        videos=pl.DataFrame({"video": ["s0", "lost"], "scene": ["s0", "s0"], "path": [video, None]}),
        sweeps=pl.DataFrame(
            {"scene": ["s0"], "sensor": ["lidar"], "frame": [2], "path": [sweep], "n_points": [n_points]},
            schema_overrides={"path": pl.String, "n_points": pl.Int64},
        ),
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("set")
    folder = root / "scenes" / "s0"
    (folder / "lidar").mkdir(parents=True)
    with VideoWriter(folder / MEDIA["video"], 64, 48, 10, sound_rate=16000) as film:
        for k in range(FRAMES):
            film.write(np.full((48, 64, 3), 40 * (k + 1), dtype=np.uint8))
            film.write_sound(np.full((1600, 2), 0.1 * (k + 1), dtype=np.float32))
    with (
        MaskWriter(folder / MEDIA["instances"]) as one,
        MaskWriter(folder / MEDIA["semantics"], 8) as two,
        MaskWriter(folder / MEDIA["depth"]) as depth,
    ):
        for k in range(FRAMES):
            one.write(INSTANCE + k)
            two.write((INSTANCE + k) % 20)
            depth.write_depth((INSTANCE + k).astype(np.float32))
    write_sweep(folder / MEDIA["sweep"].format(frame=2), Sweep(POINTS))
    return root


def test_what_a_row_names_is_opened(root) -> None:
    scenes = tables()
    assert abs(float(open_frame(scenes, root, "s0", 2).mean()) - 120) < 3
    samples, rate = open_sound(scenes, root, "s0", 0.1, 0.3)
    assert (samples.shape, samples.dtype, rate) == ((3200, 2), np.float32, 16000)
    instance, semantic = open_masks(scenes, root, "s0", 3)
    assert (instance.dtype, semantic.dtype) == (np.int32, np.uint8)
    np.testing.assert_array_equal(instance, INSTANCE + 3)
    np.testing.assert_array_equal(semantic, (INSTANCE + 3) % 20)
    np.testing.assert_allclose(open_depth(scenes, root, "s0", 1), INSTANCE + 1, atol=1e-3)
    np.testing.assert_array_equal(open_sweep(scenes, root, "s0", 2).points, POINTS)


def test_what_no_row_names_is_an_error_that_says_so(root) -> None:
    scenes = tables()
    with pytest.raises(UsageError, match="no video 's1'"):
        open_frame(scenes, root, "s1", 0)
    with pytest.raises(UsageError, match="0 to 3"):
        open_frame(scenes, root, "s0", 4)
    with pytest.raises(UsageError, match="0 to 3"):
        open_masks(scenes, root, "s0", -1)
    with pytest.raises(InputError, match="does not say where"):
        open_depth(scenes, root, "lost", 0)
    with pytest.raises(UsageError, match=r"no sweep .* frame 3"):
        open_sweep(scenes, root, "s0", 3)
    with pytest.raises(InputError, match="no such file"):
        open_sound(tables(video="scenes/s1/video.mp4"), root, "s0", 0, 1)
    with pytest.raises(InputError, match="does not say where"):
        open_sweep(tables(sweep=None), root, "s0", 2)
    with pytest.raises(InputError, match="promises 499 points, the file holds 500"):
        open_sweep(tables(n_points=499), root, "s0", 2)
    assert len(open_sweep(tables(n_points=None), root, "s0", 2)) == 500


def test_a_video_of_which_no_row_says_where_it_lies_is_a_file_of_its_name(root, tmp_path) -> None:
    named = tables()
    scenes = named.with_tables(videos=named.videos.with_columns(path=pl.lit(None, pl.String)))
    with pytest.raises(
        InputError, match=r"s0: the table does not say where the video lies, and no file of its name \(\.mp4"
    ):
        find_video_path(scenes, tmp_path, "s0")
    with pytest.raises(InputError, match="no such folder of videos"):
        find_video_path(scenes, tmp_path / "nowhere", "s0")
    shutil.copy(root / "scenes" / "s0" / "video.mp4", tmp_path / "s0.AVI")
    assert find_video_path(scenes, tmp_path, "s0") == tmp_path / "s0.AVI"
    shutil.copy(root / "scenes" / "s0" / "video.mp4", tmp_path / "s0.mkv")
    assert find_video_path(scenes, tmp_path, "s0") == tmp_path / "s0.mkv"
    (tmp_path / "s0.mp4").symlink_to(root / "scenes" / "s0" / "video.mp4")
    with pytest.raises(InputError, match="leads out"):
        find_video_path(scenes, tmp_path, "s0")


def test_no_path_leads_out_of_the_folder(root, tmp_path) -> None:
    inside = tmp_path / "set"
    inside.mkdir()
    (inside / "link").symlink_to(root / "scenes" / "s0")
    (inside / "video.mp4").symlink_to(root / "scenes" / "s0" / "video.mp4")
    (inside / "instances.zip").symlink_to(root / "scenes" / "s0" / "instances.zip")
    for name in (
        "../s0/video.mp4",
        str(root / "scenes/s0/video.mp4"),
        "link/video.mp4",
        "video.mp4",
        "c:/video.mp4",
    ):
        scenes = tables(video=name, sweep=name)
        for call in (
            lambda s: open_frame(s, inside, "s0", 0),
            lambda s: open_sound(s, inside, "s0", 0, 1),
            lambda s: open_masks(s, inside, "s0", 0),
            lambda s: open_sweep(s, inside, "s0", 2),
        ):
            with pytest.raises(InputError, match="leads out"):
                call(scenes)
    (tmp_path / "door").symlink_to(root)  # the folder that the user names may itself be a link
    assert open_frame(tables(), tmp_path / "door", "s0", 0).shape == (48, 64, 3)


def test_masks_that_do_not_fit_each_other_are_refused(root, tmp_path) -> None:
    (tmp_path / "video.mp4").write_bytes(b"")
    for name, size, bits in (("instances", (4, 4), 16), ("semantics", (4, 5), 8)):
        with MaskWriter(tmp_path / MEDIA[name], bits) as writer:
            writer.write(np.zeros(size, int))
    with pytest.raises(InputError, match="do not fit"):
        open_masks(tables(video="video.mp4"), tmp_path, "s0", 0)


def test_sweeps_come_back_with_what_was_met(tmp_path) -> None:
    path = tmp_path / "000000.bin"
    whole = Sweep(POINTS, np.arange(500, dtype=np.int32), (np.arange(500) % 21).astype(np.uint8))
    write_sweep(path, whole)
    found = read_sweep(path)
    assert path.stat().st_size == 500 * 20
    assert found.points.tobytes() == POINTS.tobytes()
    np.testing.assert_array_equal(found.instance, whole.instance)
    np.testing.assert_array_equal(found.semantic, whole.semantic)
    write_sweep(tmp_path / "none.bin", Sweep(POINTS[:0], np.zeros(0, np.int32), np.zeros(0, np.uint8)))
    assert len(read_sweep(tmp_path / "none.bin")) == 0
    with pytest.raises(UsageError, match="65535"):
        write_sweep(path, Sweep(POINTS[:1], np.array([70_000], np.int32), np.zeros(1, np.uint8)))
    path.with_suffix(".label").write_bytes(bytes(7))
    with pytest.raises(InputError, match="belong together"):
        read_sweep(path)


def test_broken_sweeps_are_refused(tmp_path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(POINTS.tobytes()[:-3])
    with pytest.raises(InputError, match="no whole number of points"):
        read_sweep(path)
    wrong = POINTS.copy()
    wrong[7, 2] = np.nan
    path.write_bytes(wrong.tobytes())
    with pytest.raises(InputError, match="point 7 is not finite"):
        read_sweep(path)
