"""Speed and turn of the vehicle that films, from the images of the road ahead alone."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
from PIL import Image

from roadaware.arrays import Bools, Floats, Floats32, Pixels
from roadaware.models.event_head.features import CAMERA_M, FOCAL_SHARE

_WIDTH_PX, _LEAST_WIDTH_PX = 640, 320
_CELL_M = 0.2
_NEAR_M, _FAR_M, _SIDE_M = 4.0, 26.0, 7.0
_BOTTOM = 0.9
"""Share of the image's height below which a bonnet may be seen."""
_NOISE = 4.0
"""Grey levels of contrast that count half."""
_CLIPPED = 2.5
_FARTHEST_M = 6.4
"""The largest step between two images, which is 32 m/s at 5 images a second."""
_TURNS: Floats = np.asarray(np.arange(-12, 13) * 0.0125, np.float64)
"""Radians to the left between two images."""
_AXLE_M = 2.3
"""From the middle of the arc that the camera drives to what does not move sideways in a turn."""
_FLOOR = 0.2
"""Share of the squares of a well-textured road that is added, so that noise alone correlates with nothing."""
_HORIZONS = np.arange(0.375, 0.68, 0.025)
"""Heights of the horizon that are tried, from the top, in heights of the image."""
_LEAST_VOTES, _SPARSE, _MOST_VOTES, _STANDS_OUT = 8, 16, 24, 1.2
"""Pairs of images until the horizon is known, from which on only each fifth votes, and that vote at most; and by how
much more of them the horizon has than the median height, or the camera looks elsewhere."""
_SPEEDS: Floats = np.arange(0.0, 32.01, 0.25)
_BESIDE = 4
"""Cells on either side of a step: by how much it agrees better than the steps around it counts. Reflections on a wet road and
cars ahead agree with steps shorter than the own one, widely; the road with one."""
_SURENESS, _TURN_SURENESS = 60.0, 120.0
"""Of a correlation that is better by 1, in nats."""
_ACCELERATES_MPS2, _JUMPS = 2.0, 1e-3
"""Spread of the change of speed, and how often it jumps anywhere."""
_KNOWN, _WITHIN_MPS, _WITHIN = 0.8, 1.0, 0.15
"""Probability of being within 1 m/s, or that share, of what is said."""


class OwnSpeed:
    """Follows speed and turn of a vehicle from image to image; looks back only.

    Each image is drawn as seen from above the road, under an assumed focal length and height of the camera: what comes out
    is in proportion to either. Where two images that follow one another agree, moved by a step ahead and a turn, is how the
    vehicle moved. A road repeats itself (dashes, slabs) and has stretches without texture, and cars ahead keep their
    distance; so the agreement of each step is taken for its likelihood in a filter over speeds, which change slowly. The
    horizon is the one under which the images from above agree most, along what runs ahead and along the best step.
    """

    def __init__(self) -> None:
        self._before: Floats32 | None = None
        self._trials: list[_View] = []
        self._votes = np.zeros(len(_HORIZONS))
        self._asked, self._moved = 0, 0
        self._view: _View | None = None
        self._drawn = np.zeros((0, 0), np.float32)
        self._likely = np.full(len(_SPEEDS), 1 / len(_SPEEDS))
        self._turned = np.full(len(_TURNS), 1 / len(_TURNS))
        self._turn_rps = math.nan

    def step(self, image: Pixels, past_s: float, standing: float) -> tuple[float, float]:
        """Speed in m/s since the image before, and turn in rad/s to the left since the one before that; NaN where unknown.

        Args:
            image: (H, W, 3) uint8, red first; narrower ones than 320 pixels say nothing.
            past_s: seconds since the image before; NaN where it is too long ago, or not there.
            standing: probability that the vehicle stood since then, by the images; NaN where they do not tell.
        """
        now = _shrink(image)
        before, self._before = self._before, now
        if before is not None and before.shape != now.shape:
            before, self._trials, self._view, self._asked = None, [], None, 0
            self._votes[:] = 0.0
        if before is None or math.isnan(past_s) or now.shape[1] < _LEAST_WIDTH_PX:
            if self._view is not None:
                self._drawn = self._view.draw(now)
            self._likely[:], self._turned[:] = 1 / len(_SPEEDS), 1 / len(_TURNS)
            self._turn_rps = math.nan
            return math.nan, math.nan
        likely, agreed = _CHANGE @ self._likely, None
        if standing < 0.5:
            self._vote(before, now)
        if self._view is not None:
            drawn, self._drawn = self._drawn, self._view.draw(now)
            agreed = self._view.match(drawn, self._drawn)
            likely = likely * np.exp(_SURENESS * _weigh(agreed, past_s))
        if not math.isnan(standing):
            moves = np.clip((_SPEEDS - 0.25) / 0.75, 0.0, 1.0)
            stands = min(max(standing, 0.01), 0.99)
            likely = likely * ((1 - moves) * stands + moves * (1 - stands))
        self._likely = likely / likely.sum()
        speed = float(self._likely @ _SPEEDS)
        about = np.abs(_SPEEDS - speed) <= max(_WITHIN_MPS, _WITHIN * speed)
        earlier_rps, self._turn_rps = self._turn_rps, math.nan
        if self._likely[about].sum() < _KNOWN:
            return math.nan, math.nan
        if agreed is None:
            return speed, math.nan
        column = agreed[:, min(round(speed * past_s / _CELL_M), agreed.shape[1] - 1)]
        turned = (_TURN_CHANGE @ self._turned) * np.exp(_TURN_SURENESS * (column - column.max()))
        self._turned = turned / turned.sum()
        self._turn_rps = float(self._turned @ _TURNS) / past_s
        # The mean of two: a wheel that is moved in jerks makes no bends.
        return speed, float(np.nanmean([earlier_rps, self._turn_rps]))

    def _vote(self, before: Floats32, now: Floats32) -> None:
        """Let two images between which the vehicle moved say where the horizon is."""
        self._moved += 1
        if self._asked >= _SPARSE and (self._asked >= _MOST_VOTES or self._moved % 5):
            return
        self._asked += 1
        self._trials = self._trials or [_View(now.shape, share * now.shape[0]) for share in _HORIZONS]
        for number, view in enumerate(self._trials):
            best = view.match(view.draw(before), view.draw(now)).max(axis=0)
            # What runs ahead, as lanes and kerbs do, agrees with every step where it is parallel, under the true horizon.
            self._votes[number] += 2 * np.median(best) + best[2:].max()
        top = int(self._votes.argmax())
        inside = 0 < top < len(_HORIZONS) - 1
        self._view = None
        if (
            self._asked >= _LEAST_VOTES
            and inside
            and self._votes[top] >= _STANDS_OUT * np.median(self._votes)
        ):
            self._view = _View(now.shape, _find_peak(_HORIZONS, self._votes) * now.shape[0])
            self._drawn = self._view.draw(before)


_CHANGE: Floats = np.exp(-0.5 * ((_SPEEDS[:, None] - _SPEEDS) / (_ACCELERATES_MPS2 * 0.2)) ** 2)
_CHANGE = (1 - _JUMPS) * _CHANGE / _CHANGE.sum(axis=0) + _JUMPS / len(_SPEEDS)


def _spread_turns(spread: float) -> Floats:
    """(turns, turns) density of a change from one to another."""
    return np.asarray(np.exp(-0.5 * ((_TURNS[:, None] - _TURNS) / spread) ** 2) / spread)


# Seldom does the wheel move fast.
_TURN_CHANGE = 0.8 * _spread_turns(0.008) + 0.2 * _spread_turns(0.04)
_TURN_CHANGE /= _TURN_CHANGE.sum(axis=0)


def _weigh(agreed: Floats32, past_s: float) -> Floats:
    """(speeds,) by how much each agrees less than the best one, beside the speeds around it.

    Args:
        agreed: (turns, steps) as of `_View.match`.
        past_s: between the images.
    """
    best = agreed.max(axis=0).astype(np.float64)
    total, place = np.append(0.0, np.cumsum(best)), np.arange(len(best))
    first, end = np.maximum(place - _BESIDE, 0), np.minimum(place + _BESIDE + 1, len(best))
    best -= (total[end] - total[first]) / (end - first)
    along = np.interp(_SPEEDS * past_s / _CELL_M, place, best, right=float(best.min()))
    return np.asarray(along - along.max())


def _find_peak(at: npt.NDArray[np.floating], values: npt.NDArray[np.floating]) -> float:
    """Where a parabola through the highest of evenly spaced values and its neighbours is highest."""
    k = min(max(int(values.argmax()), 1), len(values) - 2)
    before, top, after = values[k - 1 : k + 2].tolist()
    bend = before - 2 * top + after
    moved = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return float(at[k] + min(max(moved, -1.0), 1.0) * (at[1] - at[0]))


def _shrink(image: Pixels) -> Floats32:
    """A grey image of some 640 pixels in width, or less."""
    factor = max(1, round(image.shape[1] / _WIDTH_PX))
    small = Image.fromarray(image).convert("L")
    return np.asarray(small.reduce(factor) if factor > 1 else small, np.float32)


def _list_cells() -> tuple[Floats, Floats]:
    """(rows,) metres ahead and (columns,) metres to the right of the cells of the road."""
    ahead = np.arange(_NEAR_M, _FAR_M, _CELL_M) + _CELL_M / 2
    return ahead, np.arange(-_SIDE_M, _SIDE_M, _CELL_M) + _CELL_M / 2


@cache
def _list_places() -> npt.NDArray[np.int64]:
    """(rows, turns, columns) where in the newer image each cell of the older one is, the vehicle having turned on the spot.

    One beyond the last cell where it is nowhere.
    """
    ahead, aside = _list_cells()
    z, x = np.meshgrid(ahead, aside, indexing="ij")
    places = []
    for turn in _TURNS.tolist():
        c, s, away = math.cos(turn), math.sin(turn), x + _AXLE_M * turn
        row = np.round((z * c - away * s - ahead[0]) / _CELL_M).astype(np.int64)
        column = np.round((away * c + z * s - aside[0]) / _CELL_M).astype(np.int64)
        inside = (row >= 0) & (row < len(ahead)) & (column >= 0) & (column < len(aside))
        places.append(np.where(inside, row * len(aside) + column, z.size))
    return np.stack(places, axis=1)


class _View:
    """Draws the road as seen from above, under a horizon.

    Args:
        shape: height and width of the images.
        horizon_px: from the top.
    """

    def __init__(self, shape: tuple[int, ...], horizon_px: float) -> None:
        height, width = shape
        ahead, aside = _list_cells()
        focal = FOCAL_SHARE * width
        y = np.broadcast_to((horizon_px + focal * CAMERA_M / ahead)[:, None], (len(ahead), len(aside)))
        x = (width - 1) / 2 + focal * aside[None] / ahead[:, None]
        self._seen: Bools = (x >= 0) & (x <= width - 1.001) & (y >= 0) & (y <= _BOTTOM * height - 1.001)
        x, y = np.clip(x, 0, width - 1.001), np.clip(y, 0, height - 1.001)
        left, top = x.astype(np.int64), y.astype(np.int64)
        right, low = (x - left).astype(np.float32), (y - top).astype(np.float32)
        self._at = top * width + left
        self._shares = ((1 - right) * (1 - low), right * (1 - low), (1 - right) * low, right * low)
        self._width = width
        self._weight = self._seen.astype(np.float32)
        self._around = _blur(self._weight, 11, 5), _blur(self._weight, 11, 11)

    def draw(self, grey: Floats32) -> Floats32:
        """(rows, columns) road from above, near first: brightness over that around each cell, by the contrast there."""
        flat, w, at = grey.ravel(), self._shares, self._at
        seen = (
            w[0] * flat[at]
            + w[1] * flat[at + 1]
            + w[2] * flat[at + self._width]
            + w[3] * flat[at + self._width + 1]
        )
        beside, about = self._around
        rise = (seen - _blur(seen * self._weight, 11, 5) / np.maximum(beside, 1e-6)) * self._weight
        contrast = np.sqrt(_blur(rise * rise, 11, 11) / np.maximum(about, 1e-6) + _NOISE**2)
        return np.asarray(np.clip(rise / contrast, -_CLIPPED, _CLIPPED), np.float32)

    def match(self, before: Floats32, now: Floats32) -> Floats32:
        """(turns, steps) correlation of two drawings, one of them moved; below 1 even of equal ones, see `_FLOOR`."""
        rows, columns = before.shape
        n = round(_FARTHEST_M / _CELL_M) + 1
        turned = np.append(now.ravel(), np.float32(0))[_list_places()]
        padded = np.concatenate([before, np.zeros((n - 1, columns), np.float32)])
        ahead = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, n, axis=0))
        product = np.matmul(turned, ahead).sum(axis=0)
        # Squares of the rows that overlap
        floor = _FLOOR * rows * columns
        one = np.cumsum((before**2).sum(axis=1)[::-1])[::-1][:n]
        other = np.cumsum((turned**2).sum(axis=2), axis=0)[rows - 1 - np.arange(n)].T
        return np.asarray(product / (np.sqrt(one[None] * other) + floor), np.float32)


def _blur(image: npt.NDArray[np.float32], high: int, wide: int) -> Floats32:
    """Means over windows."""
    from scipy.ndimage import uniform_filter

    return np.asarray(uniform_filter(image, (high, wide), mode="constant"), np.float32)
