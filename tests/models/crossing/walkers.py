"""Made observations of pedestrians who walk at a constant velocity, for the tests of models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Walkers:
    """Observations with answers, as models want them."""

    boxes: npt.NDArray[np.float64]
    vehicle_action: npt.NDArray[np.float64]
    width_px: npt.NDArray[np.float64]
    height_px: npt.NDArray[np.float64]
    truth: npt.NDArray[np.int64]
    traffic: npt.NDArray[np.float64] | None = None


def walkers(n: int, labels: int, seed: int, frames: int = 15) -> Walkers:
    """n pedestrians in images of 1920 x 1080, each with the label of a random but learnable rule."""
    rng = np.random.default_rng(seed)
    start, velocity = rng.uniform(200, 1700, n), rng.normal(0, 6, n)
    height = rng.uniform(40, 400, n)
    centre = start[:, None] + velocity[:, None] * np.arange(frames)
    half, foot = height[:, None] * 0.2, 900 + rng.normal(0, 20, n)[:, None]
    boxes = np.stack(
        [centre - half, np.broadcast_to(foot - height[:, None], centre.shape), centre + half,
         np.broadcast_to(foot, centre.shape)],
        axis=-1,
    )  # fmt: skip
    vehicle = rng.integers(0, 5, (n, frames)).astype(np.float64)
    vehicle[rng.random(n) < 0.1] = np.nan
    ends = np.clip(centre[:, -1] + velocity * 90 + rng.normal(0, 60, n), 0, 1919)
    towards = (height + 40 * np.sign(960 - centre[:, -1]) * velocity + rng.normal(0, 80, n)) > 250
    truth = towards.astype(np.int64) if labels == 2 else (ends * labels // 1920).astype(np.int64)
    return Walkers(boxes, vehicle, np.full(n, 1920.0), np.full(n, 1080.0), truth)


def standing(centre_px: list[list[float]], width_px: float = 1920.0) -> Walkers:
    """Boxes of 20 x 100 pixels around given centres, one row per pedestrian."""
    centre = np.asarray(centre_px, dtype=np.float64)
    n, frames = centre.shape
    boxes = np.stack([centre - 10, np.full_like(centre, 400.0), centre + 10, np.full_like(centre, 500.0)], -1)
    return Walkers(
        boxes, np.full((n, frames), np.nan), np.full(n, width_px), np.full(n, 1080.0), np.zeros(n, np.int64)
    )
