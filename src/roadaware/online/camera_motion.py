"""Camera motion: how far the image moved between frames, in pixels, and whether that is as steady as in training; of a
whole film whether its vehicle stands, how fast it drives and how it turns.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image

from roadaware.arrays import Bools, Floats, Floats32, Pixels
from roadaware.online.frames import SourceFrame, SystemClock
from roadaware.online.own_speed import OwnSpeed
from roadaware.online.video_files import VideoFile

_SIDE_PX = 192
"""The longer side of the small grey images that are compared."""
_TILE_PX = 12
_ROUNDS, _DONE_PX = 5, 0.02
_LEAST_TEXTURE = 6.0
"""Mean square gradient, in grey levels squared, that a tile needs along its weaker direction."""
_AGREES_PX = 0.75
_LEAST_TILES, _LEAST_SHARE = 6, 0.4
_COVERED, _ALIKE = 0.25, 0.5
"""Shares: of a tile that boxes may cover, and of its variance that may be left once it is moved back."""


@dataclass(frozen=True)
class CameraMotion:
    """How the image moved since the frame before: a point p is now at centre + scale (p - centre) + shift.

    Args:
        dx, dy: shift of the image's centre in pixels, which turning and tilting the camera make.
        scale: growth about the centre, which driving makes; 1 for none.
        known: whether enough of the image moved as one; where not, the rest means nothing.
    """

    dx: float = 0.0
    dy: float = 0.0
    scale: float = 1.0
    known: bool = True


class MotionEstimator(Protocol):
    """Estimates the camera motion frame by frame, from past frames only."""

    def step(self, image: Pixels, boxes: Floats) -> CameraMotion:
        """The motion since the image before; none at the first.

        Args:
            image: (H, W, 3) uint8, red first; all of a stream have the same size.
            boxes: (n, 4) x1, y1, x2, y2 in pixels of what may move by itself, and says nothing of the camera.
        """


class PixelMotion:
    """Estimates the motion by comparing small grey images: a shift of the whole, refined tile by tile.

    The shift is the peak of the phase correlation (Kuglin and Hines, 1975). Then each tile with texture says
    how far it moved beyond that (Lucas and Kanade, 1981), and a shift with a growth is fitted to the tiles
    that agree; those that do not (near things, and things that move by themselves) count nothing.
    """

    def __init__(self) -> None:
        self._before: Floats32 | None = None
        self._covered: Bools | None = None

    def step(self, image: Pixels, boxes: Floats) -> CameraMotion:
        """The motion since the image before; see `MotionEstimator`."""
        grey, factor = _small(image)
        covered = _cover(boxes / factor, grey.shape)
        before, was = self._before, self._covered
        self._before, self._covered = grey, covered
        if before is None or was is None:
            return CameraMotion()
        if before.shape != grey.shape:
            return CameraMotion(known=False)
        if np.array_equal(before, grey):
            return CameraMotion()
        return _compare(before, grey, was | covered, factor)


def _small(picture: Pixels) -> tuple[Floats32, int]:
    """A small grey image, and by how much it is smaller."""
    factor = max(1, -(-max(picture.shape[:2]) // _SIDE_PX))
    image = Image.fromarray(picture)
    image = image.reduce(factor) if factor > 1 else image
    return np.asarray(image.convert("L"), np.float32), factor


def _cover(boxes: Floats, shape: tuple[int, ...]) -> Bools:
    """(H, W) where boxes lie."""
    covered = np.zeros(shape, np.bool_)
    for x1, y1, x2, y2 in np.clip(np.nan_to_num(boxes), 0, max(shape)).round().astype(int).tolist():
        covered[y1:y2, x1:x2] = True
    return covered


def _compare(before: Floats32, now: Floats32, covered: Bools, factor: int) -> CameraMotion:
    """The motion between two small grey images."""
    height, width = now.shape
    rows, columns = height // _TILE_PX, width // _TILE_PX
    if rows < 2 or columns < 2:
        return CameraMotion(known=False)
    free = _means(covered.astype(np.float32), rows, columns) < _COVERED
    # (rows columns, 2) x and y from the centre of the image
    y, x = np.mgrid[:rows, :columns]
    middle = (np.stack([x, y], axis=-1).reshape(-1, 2) + 0.5) * _TILE_PX - 0.5
    centres = np.asarray(middle - [(now.shape[1] - 1) / 2, (now.shape[0] - 1) / 2])
    # The gradients of an image, central differences
    gx, gy = np.zeros_like(now), np.zeros_like(now)
    gx[:, 1:-1] = 0.5 * (now[:, 2:] - now[:, :-2])
    gy[1:-1] = 0.5 * (now[2:] - now[:-2])
    xx, xy, yy, mean, square = (
        _means(each, rows, columns) for each in (gx * gx, gx * gy, gy * gy, now, now * now)
    )
    slopes = _Slopes(gx, gy, xx, xy, yy, square - mean * mean)
    # The correlation finds large shifts and may be led astray by structures that repeat; where few tiles
    # agree with it, none is tried too.
    # Whole pixels by which the image moved, to the right and down
    height, width = now.shape
    # Without a window the borders of the image, which do not move, may make the highest peak.
    window = (np.hanning(height)[:, None] * np.hanning(width)[None]).astype(np.float32)
    one, other = (np.fft.rfft2((each - each.mean()) * window) for each in (before, now))
    cross = other * np.conj(one)
    # Phases alone, so that texture counts as much as contrast; 1e-6 keeps empty frequencies from 0 / 0.
    peak = np.fft.irfft2(cross / (np.abs(cross) + 1e-6), s=now.shape)
    y, x = np.unravel_index(int(peak.argmax()), peak.shape)
    # The transform is periodic: shifts beyond half are negative ones.
    start = int((x + width // 2) % width - width // 2), int((y + height // 2) % height - height // 2)
    found = _refine(before, now, slopes, free, centres, start)
    if start != (0, 0) and found.agree < 0.7 * found.textured:
        still = _refine(before, now, slopes, free, centres, (0, 0))
        found = max(found, still, key=lambda each: each.agree)
    dx, dy, growth = found.motion
    known = found.agree >= max(_LEAST_TILES, _LEAST_SHARE * found.textured)
    return CameraMotion(dx * factor, dy * factor, 1.0 + growth, known=bool(known))


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Gradients of an image, and of each tile the mean products of them and the variance.

    Args:
        gx, gy: (H, W).
        xx, xy, yy, variance: (t,).
    """

    gx: Floats32
    gy: Floats32
    xx: Floats32
    xy: Floats32
    yy: Floats32
    variance: Floats32

    @property
    def textured(self) -> Bools:
        """(t,) whether a tile has enough texture in both directions to measure its motion."""
        # The smaller eigenvalue of the structure tensor (Shi and Tomasi, 1994): an edge alone has none.
        weaker = 0.5 * (self.xx + self.yy - np.sqrt((self.xx - self.yy) ** 2 + 4 * self.xy**2))
        return np.asarray(weaker >= _LEAST_TEXTURE)


@dataclass(frozen=True)
class _Found:
    """A shift and a growth, how many tiles agree on them, and how many could have."""

    motion: tuple[float, float, float]
    agree: int
    textured: int


def _refine(
    before: Floats32, now: Floats32, slopes: _Slopes, free: Bools, centres: Floats, start: tuple[int, int]
) -> _Found:
    """The motion that tiles agree on.

    Args:
        before, now: (H, W).
        slopes: of `now`.
        free: (t,) tiles that may say something.
        centres: (t, 2) x and y of the tiles from the centre of the image.
        start: shift to begin with.
    """
    rows, columns = now.shape[0] // _TILE_PX, now.shape[1] // _TILE_PX
    motion, agree, n = np.array([start[0], start[1], 0.0]), 0, 0
    usable = free & slopes.textured
    for _ in range(_ROUNDS):
        # An image moved by a shift and a growth, and 1 where that is known, else 0
        height, width = before.shape
        dx, dy, growth = motion.tolist()
        middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
        x = (np.arange(width) - middle_x - dx) / (1 + growth) + middle_x
        y = (np.arange(height) - middle_y - dy) / (1 + growth) + middle_y
        left, wide, in_x = _linear(x, width)
        top, high, in_y = _linear(y, height)
        across = before[:, left] * (1 - wide) + before[:, left + 1] * wide
        both = across[top] * (1 - high)[:, None] + across[top + 1] * high[:, None]
        moved, inside = both.astype(np.float32), (in_y[:, None] & in_x[None]).astype(np.float32)
        # A mean of ones in float32 may miss 1 by its last bits.
        some = usable & (_means(inside, rows, columns) > 1 - 1e-6)
        n = int(some.sum())
        if n < _LEAST_TILES:
            return _Found((float(motion[0]), float(motion[1]), float(motion[2])), 0, n)
        rest = (moved - now) * inside
        rest -= float(rest.sum() / max(1.0, float(inside.sum())))  # the exposure may have changed
        p, q = (_means(each * rest, rows, columns)[some] for each in (slopes.gx, slopes.gy))
        a, b, c = slopes.xx[some], slopes.xy[some], slopes.yy[some]
        # Two equations by Cramer's rule; textured tiles have a determinant above 0.
        step = np.stack([c * p - b * q, a * q - b * p], axis=1) / (a * c - b * b)[:, None]
        fitted, agrees = _fit(step.astype(np.float64), centres[some])
        # Noise agrees on no motion too; but tiles that did move so look alike.
        alike = _means(rest * rest, rows, columns)[some] < _ALIKE * slopes.variance[some]
        agree = int((agrees & alike).sum())
        motion = motion + fitted
        if np.abs(fitted[:2]).max() < _DONE_PX:
            break
    return _Found((float(motion[0]), float(motion[1]), float(motion[2])), agree, n)


def _fit(steps: Floats, centres: Floats) -> tuple[Floats, Bools]:
    """A shift and a growth through the steps of tiles, and which agree; others are left out in rounds."""
    # The median: up to half of the tiles may move by themselves.
    fitted = np.array([*np.median(steps, axis=0), 0.0])
    agrees = np.ones(len(steps), np.bool_)
    # From wide to narrow: the median is not yet at the growth that far tiles see.
    for within in (2.5, 1.5, 1.0):
        away = np.linalg.norm(steps - fitted[:2] - fitted[2] * centres, axis=1)
        agrees = away <= within * _AGREES_PX
        if agrees.sum() < _LEAST_TILES:
            break
        some, at = steps[agrees], centres[agrees]
        mean, middle = some.mean(axis=0), at.mean(axis=0)
        spread = float(((at - middle) ** 2).sum())
        growth = float(((some - mean) * (at - middle)).sum()) / spread if spread else 0.0
        fitted = np.array([*(mean - growth * middle), growth])
    return fitted, agrees


def _linear(at: Floats, n: int) -> tuple[npt.NDArray[np.int64], Floats32, Bools]:
    """Left neighbour, share of the right one, and whether both are there."""
    left = np.clip(np.floor(at).astype(np.int64), 0, n - 2)
    return left, np.clip(at - left, 0, 1).astype(np.float32), np.asarray((at >= 0) & (at <= n - 1))


def _means(image: Floats32, rows: int, columns: int) -> Floats32:
    """(rows columns,) mean of each tile."""
    cut = image[: rows * _TILE_PX, : columns * _TILE_PX].reshape(rows, _TILE_PX, columns, _TILE_PX)
    return np.asarray(cut.mean(axis=(1, 3)).reshape(-1))


# Own motion: whether the vehicle that films stands, and how fast it drives.

_APART_S = 0.2
"""Between images that are compared: at a walking pace what is near has moved by a pixel of the small image."""
_STANDS, _MOVES = 0.3, 0.45
"""Change of the median tile over its gradient: at most while the vehicle stands, at least while it moves. On ten simulated
films a quarter of it is noise; 95 % of the images are below 0.35 while it stands, above 0.42 from 1.5 m/s on."""
_LEAST_GRADIENT = 2.0
_SMOOTHED = 3


def measure_own_motion(film: Path, also: Callable[[SourceFrame], None] | None = None) -> pl.DataFrame:
    """How the vehicle that films moves, from the images alone, every 0.2 s; looks back only.

    Of a vehicle that moves all of the image changes, of one that stands only what moves in it. The image is cut into tiles,
    and the change of each since 0.2 s before is taken over its gradient; the median over tiles tells, and of three such times
    the median. What the images cannot tell (fog, night without texture, fewer than 2.5 frames a second) is null. A damaged
    film is told of up to there.

    Args:
        film: a video that a camera fixed to a vehicle took. Times are seconds after its first frame.
        also: is given each image that is looked at, so that nothing else need decode the film.

    Returns:
        `t_s`; `standing`, how surely it stands, from 0 to 1; `speed_mps` and `yaw_rate_radps` (to the left), as of
        `own_speed.OwnSpeed`, under an assumed camera.

    Raises:
        InputError: if it cannot be opened.
    """
    rows, changes = list[tuple[float, float, float, float]](), deque[float](maxlen=_SMOOTHED)
    before: Floats32 | None = None
    own_speed = OwnSpeed()
    video = VideoFile(film, SystemClock(), fps=1 / _APART_S)
    with contextlib.closing(video):
        while (frame := video.next(0.0, 0.0)) is not None:
            if also is not None:
                also(frame)
            now, _ = _small(frame.picture)
            past_s = frame.t_s - rows[-1][0] if rows else math.inf
            near = past_s < 2 * _APART_S + 1e-6
            like = near and before is not None and before.shape == now.shape
            change = _compare_tiles(before, now) if like and before is not None else math.nan
            changes.append(change)
            standing = math.nan
            if not math.isnan(change):
                usual = float(np.nanmedian(changes))
                standing = min(max((_MOVES - usual) * (1 / (_MOVES - _STANDS)), 0.0), 1.0)
            moved = own_speed.step(frame.picture, past_s if near else math.nan, standing)
            rows.append((frame.t_s, standing, *moved))
            before = now
    columns = ("t_s", "standing", "speed_mps", "yaw_rate_radps")
    return pl.DataFrame(rows, dict.fromkeys(columns, pl.Float64), orient="row").fill_nan(None)


def _compare_tiles(before: Floats32, now: Floats32) -> float:
    """Median over textured tiles of the mean change over the mean gradient; NaN where few have texture."""
    rows, columns = now.shape[0] // _TILE_PX, now.shape[1] // _TILE_PX
    slope = np.zeros_like(now)
    slope[:, 1:] += np.abs(np.diff(now, axis=1))
    slope[1:] += np.abs(np.diff(now, axis=0))
    gradient, change = _means(slope, rows, columns), _means(np.abs(now - before), rows, columns)
    textured = gradient > _LEAST_GRADIENT
    if textured.sum() < _LEAST_TILES:
        return math.nan
    return float(np.median(change[textured] / gradient[textured]))


# Steadiness: whether a camera is as steady as those of the predictors' training data.

HEIGHT, SHAKE = "height", "shake"
"""Keys of a predictor's limits: the least height of a box, as a share of that of the image; and how much
the motion of the image may change from frame to frame, in heights of the image in 1/30 s, root mean
square."""
LIMITS = "limits"
# JAAD and PIE have 30 frames a second, and limits of predictors are stated for their steps.
_RATE_FPS, _LEAST_STEP = 30.0, 0.75
STILL = 0.0005
"""A camera that moves the image by less than this share of its height in a frame stands still."""
_TURNING, _TURNED = 0.01, 0.15
"""Shares of the image's width: moved by so much within an observation it turns; a turn may be so large."""


class _Facts(Protocol):
    """What has facts."""

    @property
    def facts(self) -> Mapping[str, object]: ...


def find_strictest_limits(predictors: Sequence[_Facts]) -> dict[str, float]:
    """The strictest limit of each kind that one of several predictors has.

    Args:
        predictors: of one watch; those without limits set none.

    >>> from types import SimpleNamespace as Of
    >>> stated = [{"height": 0.03}, {"height": 0.02, "shake": 0.01}]
    >>> find_strictest_limits([Of(facts={"limits": each}) for each in stated])
    {'height': 0.03, 'shake': 0.01}
    """
    found: dict[str, float] = {}
    for name, strictest in ((HEIGHT, max), (SHAKE, min)):
        stated = [
            held[name]
            for each in predictors
            if isinstance(held := each.facts.get(LIMITS), Mapping) and name in held
        ]
        numbers = [float(each) for each in stated if isinstance(each, (int, float)) and 0 < each < math.inf]
        if numbers:
            found[name] = strictest(numbers)
    return found


class Steadiness:
    """Follows how a camera turns and shakes, over the time that an observation takes.

    The past of pedestrians is held against the newest image: what the camera did is taken out of it. While
    the camera turns, everything is held against the image in which the turn began, because where somebody
    is seen says who crosses, and a turn moves everybody through the image. It does so only for a part of
    the image's width; beyond, nothing is known until the camera points somewhere again.

    Args:
        span_s: that an observation takes.
        shake: how much the motion may change, see `SHAKE`; None for any.
    """

    def __init__(self, span_s: float, shake: float | None) -> None:
        self._span_s, self._limit = span_s, shake
        self._before: tuple[float, float] | None = None
        self._step = (0.0, 0.0, 0.0)
        self._t_s: float | None = None
        self._changes: deque[tuple[float, float]] = deque()
        self._shifts: deque[tuple[float, float, float]] = deque()
        self.turned_px = (0.0, 0.0)
        self._width_px = 1

    def add(self, t_s: float, motion: CameraMotion, size_px: tuple[int, int]) -> tuple[float, float]:
        """Take the motion since the frame before.

        Args:
            t_s: time of the frame.
            motion: of its image.
            size_px: width and height of the image.

        Returns:
            What the past has to be moved by, in pixels to the right and down, for boxes from which
            `turned_px` is taken.
        """
        past_s, self._t_s = (0.0 if self._t_s is None else t_s - self._t_s), t_s
        self._width_px = size_px[0]
        for held in (self._changes, self._shifts):
            # The last bits of times must not decide whether a frame is within the span.
            while held and t_s - held[0][0] > self._span_s + 1e-6:
                held.popleft()
        if past_s <= 0:
            return 0.0, 0.0
        self._note_change(t_s, past_s, motion, size_px[1])
        # Below, the estimate is noise, which summed over an observation would look like a turn.
        still = not motion.known or math.hypot(motion.dx, motion.dy) < STILL * size_px[1]
        shift = (0.0, 0.0) if still else (motion.dx, motion.dy)
        self._shifts.append((t_s, *shift))
        return self._turn(shift)

    def _note_change(self, t_s: float, past_s: float, motion: CameraMotion, height_px: int) -> None:
        """By how much the motion differs from that of the frame before."""
        if not motion.known:
            self._before, self._step = None, (0.0, 0.0, 0.0)
            # Unknown counts as the worst: one such frame makes the root mean square infinite.
            self._changes.append((t_s, math.inf))
            return
        x, y, s = self._step
        self._step = (x + motion.dx, y + motion.dy, s + past_s)
        if self._step[2] < _LEAST_STEP / _RATE_FPS:  # of a fast camera, steps are those of several frames
            return
        rate = 1.0 / (self._step[2] * _RATE_FPS * height_px)
        now = (self._step[0] * rate, self._step[1] * rate)
        if self._before is not None:
            self._changes.append((t_s, math.dist(now, self._before)))
        self._before, self._step = now, (0.0, 0.0, 0.0)

    def _turn(self, shift: tuple[float, float]) -> tuple[float, float]:
        """Begin, continue or end a turn; what the past has to be moved by."""
        way = math.hypot(*(sum(each[k] for each in self._shifts) for k in (1, 2)))
        x, y = self.turned_px[0] + shift[0], self.turned_px[1] + shift[1]
        if way >= _TURNING * self._width_px:
            self.turned_px = (x, y)
            return 0.0, 0.0
        self.turned_px = (0.0, 0.0)
        return x, y

    @property
    def shake(self) -> float:
        """Root mean square of the changes, see `SHAKE`; infinite where the motion could not be estimated."""
        if not self._changes:
            return 0.0
        return math.sqrt(sum(change * change for _, change in self._changes) / len(self._changes))

    @property
    def shaking(self) -> bool:
        """Whether the image motion is less even than allowed, or unknown."""
        # Without a limit only the unknown, which is infinite, is too much.
        return self.shake > (self._limit if self._limit is not None else 1e9)

    @property
    def turned_away(self) -> bool:
        """Whether the camera has turned too far to use earlier positions."""
        return math.hypot(*self.turned_px) > _TURNED * self._width_px
