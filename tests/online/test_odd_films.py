"""Videos as phones and cameras make them: upright, turned, grey, of ten bits, slow and fast."""

from __future__ import annotations

import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from online_stubs import FakeClock, Kept, Listed, Scripted, one_car

from roadaware.arrays import Pixels
from roadaware.online.camera_motion import CameraMotion, Steadiness
from roadaware.online.config import WatchConfig
from roadaware.online.frames import SourceFrame
from roadaware.online.video_files import VideoFile
from roadaware.online.watch import watch

ONE = 1 << 16
TURNS = {90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}


def _film(path: Path, width: int = 96, height: int = 64, fps: int = 12, pix: str = "yuv420p") -> Path:
    """Six frames with a bright block in the upper left quarter."""
    picture = np.full((height, width, 3), 40, np.uint8)
    picture[: height // 2, : width // 2] = 200
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=Fraction(fps))
        stream.width, stream.height, stream.pix_fmt = width, height, pix  # type: ignore[attr-defined]
        for _ in range(6):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pix)
            file.mux(stream.encode(frame))  # type: ignore[attr-defined]
        file.mux(stream.encode())  # type: ignore[attr-defined]
    return path


def _bright(path: Path) -> tuple[tuple[int, ...], tuple[bool, bool, bool, bool]]:
    """Size of the first image, and which of its quarters are bright: upper left and right, lower ones."""
    source = VideoFile(path, FakeClock())
    frame = source.next(0, 0)
    source.close()
    assert frame is not None
    shape = frame.picture.shape
    quarters = frame.picture[..., 0].reshape(2, shape[0] // 2, 2, shape[1] // 2).mean(axis=(1, 3)) > 120
    a, b, c, d = quarters.reshape(-1).tolist()
    return shape, (a, b, c, d)


@pytest.mark.parametrize(
    ("turn", "size", "place"), [(90, (96, 64), 1), (180, (64, 96), 3), (270, (96, 64), 2)]
)
def test_a_film_that_is_shown_turned_is_seen_turned(
    tmp_path: Path, turn: int, size: tuple[int, int], place: int
) -> None:
    content = bytearray(_film(tmp_path / "plain.mp4").read_bytes())
    matrix = content.index(b"tkhd") + 44
    a, b, c, d = (ONE * each for each in TURNS[turn])
    content[matrix : matrix + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    (tmp_path / "turned.mp4").write_bytes(content)
    shape, bright = _bright(tmp_path / "turned.mp4")
    assert shape == (*size, 3)
    assert bright == tuple(at == place for at in range(4))


@pytest.mark.parametrize(
    ("width", "height", "pix"),
    [
        (64, 96, "yuv420p"),
        (96, 64, "gray"),
        (96, 64, "yuv420p10le"),
        (96, 64, "yuv444p"),
        (1920, 64, "yuv420p"),
    ],
)
def test_films_of_all_forms_are_seen_in_colours_of_eight_bits(
    tmp_path: Path, width: int, height: int, pix: str
) -> None:
    shape, bright = _bright(_film(tmp_path / "film.mp4", width, height, pix=pix))
    assert shape == (height, width, 3)
    assert bright == (True, False, False, False)


@pytest.mark.parametrize("fps", [5, 120])
def test_slow_and_fast_films_keep_their_times(tmp_path: Path, fps: int) -> None:
    source = VideoFile(_film(tmp_path / "film.mp4", fps=fps), FakeClock())
    times = [frame.t_s for _ in range(6) if (frame := source.next(0, 0)) is not None]
    source.close()
    assert times == pytest.approx([n / fps for n in range(6)], abs=1e-4)


@pytest.mark.parametrize("fps", [5, 12, 30, 60, 120])
def test_what_shakes_does_so_at_every_rate(fps: int) -> None:
    """A quiver of the estimate by a tenth of a pixel is no shaking, a swing of 8 % of the height is."""
    quiet, wild = (Steadiness(0.5, 0.0072) for _ in range(2))
    for frame in range(2 * fps):
        t_s, height = frame / fps, 180
        quiet.add(t_s, CameraMotion(0.1 * (-1) ** frame, 0.0), (320, height))
        swing = 0.08 * height * (np.sin(2 * np.pi * 3 * t_s) - np.sin(2 * np.pi * 3 * (t_s - 1 / fps)))
        wild.add(t_s, CameraMotion(float(swing), 0.0), (320, height))
    assert not quiet.shaking
    assert wild.shaking


def _street(shape: tuple[int, int], seed: int) -> Pixels:
    """Noise with a bright sky and a dark road, nowhere black."""
    picture = np.random.default_rng(seed).integers(30, 90, (*shape, 3), dtype=np.uint8)
    picture[: shape[0] // 2] += 120
    return picture


@pytest.mark.parametrize(
    ("form", "circular"),
    [
        ("plain", False),
        ("fisheye", True),
        ("cut", True),
        ("cinema", False),
        ("upright", False),
        ("night", False),
    ],
)
def test_a_fisheye_lens_is_said_once_and_nothing_else_is_taken_for_one(form: str, circular: bool) -> None:
    rows, columns = np.mgrid[-90:90, -160:160]
    seen = {
        "plain": rows < 1000,
        "fisheye": rows**2 + columns**2 < 88**2,
        "cut": rows**2 + columns**2 < 150**2,
        "cinema": abs(rows) < 60,
        "upright": abs(columns) < 50,
        "night": (rows > 0) & (abs(columns) < 80),
    }[form]

    class Lens(Listed):
        def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
            frame = super().next(patience_s, wait_s)
            if frame is None:
                return None
            picture = np.where(seen[..., None], _street(seen.shape, frame.number), 0).astype(np.uint8)
            return replace(frame, picture=picture)

    clock = FakeClock()
    source = Lens(range(12), clock)
    watch(source, Scripted(one_car), WatchConfig(), Kept(), clock=clock)
    assert source.outcomes.counts().get("fisheye", 0) == circular
