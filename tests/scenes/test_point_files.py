"""Points and still images of other datasets: what their numbers are, and what is refused."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from roadaware.errors import InputError, UsageError
from roadaware.io.images import parse_image_size, read_still
from roadaware.io.point_clouds import MAX_POINTS, read_points
from roadaware.scenes.sensors import open_frame, open_points
from roadaware.scenes.tables import Scenes

POINTS = np.arange(20, dtype="<f4").reshape(4, 5)


def written(path: Path, points: np.ndarray = POINTS) -> Path:
    path.write_bytes(points.astype("<f4").tobytes())
    return path


def test_numbers_are_what_the_fields_say(tmp_path: Path) -> None:
    path = written(tmp_path / "a.bin")
    ours = read_points(path)
    np.testing.assert_array_equal(ours.xyz, POINTS[:, :3])
    assert ours.ring is not None
    assert ours.ring.tolist() == [4, 9, 14, 19]
    other = read_points(path, "other z y x other")
    np.testing.assert_array_equal(other.xyz, POINTS[:, [3, 2, 1]])
    assert (other.intensity, other.ring, len(other)) == (None, None, 4)


def test_points_that_are_not_finite_are_left_to_those_who_use_them(tmp_path: Path) -> None:
    bad = POINTS.copy()
    bad[1, 0], bad[2, 2] = np.nan, np.inf
    assert len(read_points(written(tmp_path / "a.bin", bad))) == 4


def test_no_points_are_a_sweep(tmp_path: Path) -> None:
    assert len(read_points(written(tmp_path / "a.bin", POINTS[:0]), "x y z intensity")) == 0


@pytest.mark.parametrize("fields", ["x y", "x y z z", "x y z speed", ""])
def test_fields_must_be_known(tmp_path: Path, fields: str) -> None:
    with pytest.raises(UsageError, match="x, y and z once"):
        read_points(written(tmp_path / "a.bin"), fields)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(41))
    with pytest.raises(InputError, match="41 bytes are no whole number of points of 16 bytes"):
        read_points(path, "x y z intensity")
    with path.open("wb") as file:
        os.truncate(file.fileno(), 16 * MAX_POINTS + 16)
    with pytest.raises(InputError, match="files of at most"):
        read_points(path, "x y z intensity")
    rings = POINTS.copy()
    rings[2, 4] = 0.5
    with pytest.raises(InputError, match=r"ring of point 2 is 0\.5"):
        read_points(written(path, rings))


def picture(form: str, size: tuple[int, int] = (30, 20), **more: object) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", size, (200, 100, 50)).save(held, form, **more)
    return held.getvalue()


@pytest.mark.parametrize("data", [picture("PNG"), picture("JPEG"), picture("JPEG", progressive=True)])
def test_sizes_are_told_by_the_first_bytes(tmp_path: Path, data: bytes) -> None:
    assert parse_image_size(data) == (30, 20)
    assert parse_image_size(data[:8]) is None
    (tmp_path / "a").write_bytes(data)
    found = read_still(tmp_path / "a")
    assert found.shape == (20, 30, 3)
    assert np.abs(found[5, 5].astype(int) - [200, 100, 50]).max() < 6


@pytest.mark.parametrize("data", [b"", b"GIF89a", picture("PNG")[:60], picture("GIF"), b"\xff\xd8\xff\xc0"])
def test_what_is_no_picture_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert parse_image_size(data) in (None, (30, 20))
    with pytest.raises(InputError, match="no whole PNG or JPEG"):
        read_still(tmp_path / "a")


def test_rows_lead_to_points_and_pictures(tmp_path: Path) -> None:
    written(tmp_path / "a.bin")
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    row = {"scene": ["s"], "sensor": ["roof"], "frame": [0], "path": ["a.bin"], "n_points": [5]}
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "scene": ["s"]}),
        frames=pl.DataFrame({"video": ["v", "v"], "frame": [0, 1], "path": ["a.png", "../b.png"]}),
        sweeps=pl.DataFrame({**row, "fields": ["x y z intensity"]}),
    )
    found = open_points(scenes, tmp_path, "s", 0, "roof")
    assert (len(found), found.ring) == (5, None)
    assert open_frame(scenes, tmp_path, "v", 0).shape == (20, 30, 3)
    with pytest.raises(InputError, match="leads out"):
        open_frame(scenes, tmp_path, "v", 1)
    with pytest.raises(UsageError, match="which has 2 images"):
        open_frame(scenes, tmp_path, "v", 2)
    with pytest.raises(UsageError, match="no sweep of sensor 'lidar'"):
        open_points(scenes, tmp_path, "s", 0)
    wrong = scenes.with_tables(sweeps=pl.DataFrame(row))
    with pytest.raises(InputError, match="promises 5 points, the file holds 4"):
        open_points(wrong, tmp_path, "s", 0, "roof")
