"""Write a tiny set in KITTI's native format: images with a sweep, a calibration and labels each."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

FORMAT = "text"
WARNS = False
MAIN = "training/label_2/000002.txt"
VIDEO = "training/000002"
OTHERS = ("training/calib/000002.txt",)
BAD_ROW = "upside down"
WIDTH, HEIGHT = 62, 19
MISC = "Misc 0.00 0 -1.82 8.79 7.34 19.43 17.94 1.63 1.48 2.37 3.23 1.59 8.55 -1.47"
CAR = "Car 0.25 2 -1.67 27.39 8.13 30.07 13.39 1.41 1.58 4.36 3.18 2.27 34.38 -1.58"
NOT_CARED_FOR = "DontCare -1 -1 -10 50.50 6.25 59.75 10.50 -1 -1 -1 -1000 -1000 -1000 -10"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"8.79 7.34 19.43", b"19.43 7.34 8.79", 1),
    "changed": lambda data: data.replace(b"8.79", b"9.25", 1),
    "same_size": lambda data: data.replace(b"8.79", b"8.78", 1),
}
EXCUSED = {
    "test_a_damaged_side_file_costs_no_video": "an image without its calibration has no sensors",
    "test_case_11_hostile_name": "files of images are called by six digits; others are foreign",
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write two images and more for training, and one for testing.

    Args:
        root: where to; made with its parents.
        frames: images for training, at least 2.
    """
    numbers = [2, *(n for n in range(max(frames, 2)) if n != 2)][: max(frames, 2)]
    for number in numbers:
        labels = [MISC, CAR, NOT_CARED_FOR] if number == 2 else [CAR]
        shot(root / "training", number, labels)
    shot(root / "testing", 0, None)
    return root


def shot(folder: Path, number: int, labels: list[str] | None) -> None:
    """The files of one image."""
    files = {
        "calib": (".txt", calibration().encode()),
        "image_2": (".png", picture(number)),
        "velodyne": (".bin", sweep(number).tobytes()),
    }
    if labels is not None:
        files["label_2"] = (".txt", "".join(f"{line}\n" for line in labels).encode())
    for kind, (suffix, data) in files.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / f"{number:06d}{suffix}").write_bytes(data)


def calibration() -> str:
    """A camera that looks ahead 0.3 m beside the LiDAR, and an inertial unit behind it; seven matrices."""
    lens = [36.0, 0, 31, 0, 36, 9, 0, 0, 1]
    shifted = [36.0, 0, 31, 10.8, 0, 36, 9, 0, 0, 0, 1, 0]
    plain = [*lens[:3], 0, *lens[3:6], 0, *lens[6:], 0]
    held = {
        "P0": plain,
        "P1": plain,
        "P2": shifted,
        "P3": plain,
        "R0_rect": [1, 0, 0, 0, 1, 0, 0, 0, 1],
        "Tr_velo_to_cam": [0, -1, 0, 0, 0, 0, -1, -0.08, 1, 0, 0, -0.27],
        "Tr_imu_to_velo": [1, 0, 0, -0.81, 0, 1, 0, 0.32, 0, 0, 1, -0.8],
    }
    lines = [f"{name}: {' '.join(f'{value:.12e}' for value in values)}" for name, values in held.items()]
    return "\n".join(lines) + "\n\n"


def picture(number: int) -> bytes:
    """An image whose brightness tells its number."""
    held = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT + number), (10 * number, 20, 30)).save(held, "PNG")
    return held.getvalue()


def sweep(number: int) -> np.ndarray:
    """(8, 4) float32 points and intensities."""
    points = np.random.default_rng(number).uniform(2, 20, (8, 4)).astype("<f4")
    points[:, 3] = np.linspace(0, 1, 8)
    return points


def with_video(root: Path, name: str) -> None:
    """Add an image of that name."""
    for kind, suffix in (("calib", ".txt"), ("label_2", ".txt")):
        path = root / "training" / kind / f"000002{suffix}"
        (path.parent / f"{name}{suffix}").write_bytes(path.read_bytes())
