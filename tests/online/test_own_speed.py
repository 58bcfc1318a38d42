"""The own speed and turn are seen in images of the road; what shows no road says nothing."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

from roadaware.online.own_speed import OwnSpeed

WIDTH, HEIGHT = 320, 180
PAST_S = 0.2
Picture = npt.NDArray[np.uint8]


def build_road() -> npt.NDArray[np.float64]:
    """(200 m ahead, 40 m across) grey levels in cells of 0.1 m: rough asphalt, lines along the way and dashes."""
    rough = gaussian_filter(np.random.default_rng(0).normal(size=(2000, 400)), 2.0)
    road = 100 + 150 * rough
    road[:, 165:167] = road[:, 235:237] = 220
    for start in range(0, 2000, 60):
        road[start : start + 20, 199:201] = 220
    return road


ROAD = build_road()


def draw_road(ahead_m: float, heading: float = 0.0, horizon: float = 0.45, aside_m: float = 0.0) -> Picture:
    """The image of a camera 1.4 m above the road, whose focal length is 0.85 of its width; turned to the left."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    below = np.maximum(y - horizon * HEIGHT, 0.5)
    far = 0.85 * WIDTH * 1.4 / below
    right = (x - (WIDTH - 1) / 2) * 1.4 / below
    c, s = math.cos(heading), math.sin(heading)
    along, across = ahead_m + far * c + right * s, aside_m + right * c - far * s
    seen = map_coordinates(ROAD, [along * 10, 200 + across * 10], order=1, mode="nearest")
    seen = np.where(y > horizon * HEIGHT + 4, seen, 180)
    noise = np.random.default_rng(round(ahead_m * 1000)).normal(0, 2, seen.shape)
    return np.repeat((seen + noise).clip(0, 255).astype(np.uint8)[..., None], 3, axis=2)


def follow(images: list[Picture], standing: float = 0.0) -> npt.NDArray[np.float64]:
    """(n, 2) speed and turn at each image."""
    own = OwnSpeed()
    return np.array(
        [own.step(each, PAST_S if number else math.nan, standing) for number, each in enumerate(images)]
    )


@pytest.mark.parametrize(("speed_mps", "horizon"), [(6.0, 0.45), (14.0, 0.52), (24.0, 0.45)])
def test_the_speed_is_that_at_which_the_road_goes_by(speed_mps: float, horizon: float) -> None:
    found = follow([draw_road(speed_mps * PAST_S * k, horizon=horizon) for k in range(20)])
    # Until the horizon is known, nothing is.
    assert np.isnan(found[:8]).all()
    assert np.abs(found[-5:, 0] - speed_mps).max() < 0.08 * speed_mps
    assert np.abs(found[-5:, 1]).max() < 0.02


@pytest.mark.parametrize("turn_rps", [0.25, -0.4])
def test_the_turn_to_the_left_is_positive(turn_rps: float) -> None:
    way, place, aside, heading = [draw_road(2.0 * k) for k in range(12)], 22.0, 0.0, 0.0
    for _ in range(5):
        # What does not move sideways in a turn is the rear axle, behind the camera.
        place, aside = place + 1.4 * math.cos(heading), aside - 1.4 * math.sin(heading)
        heading += turn_rps * PAST_S
        way.append(draw_road(place, heading, aside_m=aside))
    assert np.abs(follow(way)[-2:, 1] - turn_rps).max() < 0.06


def test_who_stands_has_no_speed() -> None:
    found = follow([draw_road(0.0)] * 5, standing=1.0)
    assert (found[2:, 0] < 0.5).all()


@pytest.mark.parametrize("what", ["fog", "noise", "a camera that looks aside", "too small"])
def test_what_shows_no_road_ahead_says_nothing(what: str) -> None:
    rng = np.random.default_rng(0)
    wall = np.repeat(ROAD[:HEIGHT, :, None].clip(0, 255), 3, axis=2).astype(np.uint8)
    images = {
        "fog": [np.full((HEIGHT, WIDTH, 3), 120, np.uint8)] * 20,
        "noise": [rng.integers(100, 140, (HEIGHT, WIDTH, 3)).astype(np.uint8) for _ in range(20)],
        "a camera that looks aside": [np.roll(wall, -7 * k, axis=1)[:, :WIDTH] for k in range(20)],
        "too small": [draw_road(2.0 * k)[::2, ::2] for k in range(20)],
    }[what]
    assert np.isnan(follow(images)).all()
