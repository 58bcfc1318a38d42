"""Camera motion: how far the whole image moved from one frame to the next, seen in the pixels alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from roadaware.arrays import Bools, Floats, Floats32, Pixels

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

    def step(self, picture: Pixels, boxes: Floats) -> CameraMotion:
        """The motion since the image before; none at the first.

        Args:
            picture: (H, W, 3) uint8, red first; all of a stream have the same size.
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

    def step(self, picture: Pixels, boxes: Floats) -> CameraMotion:
        """The motion since the image before; see `MotionEstimator`."""
        grey, factor = _small(picture)
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
    centres = _centres(rows, columns, now.shape)
    slopes = _slopes(now, rows, columns)
    # The correlation finds large shifts and may be led astray by structures that repeat; where few tiles
    # agree with it, none is tried too.
    start = _phase_shift(before, now)
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


def _slopes(picture: Floats32, rows: int, columns: int) -> _Slopes:
    """The gradients of an image, central differences."""
    gx, gy = np.zeros_like(picture), np.zeros_like(picture)
    gx[:, 1:-1] = 0.5 * (picture[:, 2:] - picture[:, :-2])
    gy[1:-1] = 0.5 * (picture[2:] - picture[:-2])
    xx, xy, yy, mean, square = (
        _means(each, rows, columns) for each in (gx * gx, gx * gy, gy * gy, picture, picture * picture)
    )
    return _Slopes(gx, gy, xx, xy, yy, square - mean * mean)


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
        moved, inside = _transform_image(before, motion)
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


def _transform_image(picture: Floats32, motion: Floats) -> tuple[Floats32, Floats32]:
    """An image moved by a shift and a growth, and 1 where that is known, else 0."""
    height, width = picture.shape
    dx, dy, growth = motion.tolist()
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    x = (np.arange(width) - middle_x - dx) / (1 + growth) + middle_x
    y = (np.arange(height) - middle_y - dy) / (1 + growth) + middle_y
    left, wide, in_x = _linear(x, width)
    top, high, in_y = _linear(y, height)
    across = picture[:, left] * (1 - wide) + picture[:, left + 1] * wide
    both = across[top] * (1 - high)[:, None] + across[top + 1] * high[:, None]
    return both.astype(np.float32), (in_y[:, None] & in_x[None]).astype(np.float32)


def _linear(at: Floats, n: int) -> tuple[npt.NDArray[np.int64], Floats32, Bools]:
    """Left neighbour, share of the right one, and whether both are there."""
    left = np.clip(np.floor(at).astype(np.int64), 0, n - 2)
    return left, np.clip(at - left, 0, 1).astype(np.float32), np.asarray((at >= 0) & (at <= n - 1))


def _means(picture: Floats32, rows: int, columns: int) -> Floats32:
    """(rows columns,) mean of each tile."""
    cut = picture[: rows * _TILE_PX, : columns * _TILE_PX].reshape(rows, _TILE_PX, columns, _TILE_PX)
    return np.asarray(cut.mean(axis=(1, 3)).reshape(-1))


def _centres(rows: int, columns: int, shape: tuple[int, ...]) -> Floats:
    """(rows columns, 2) x and y from the centre of the image."""
    y, x = np.mgrid[:rows, :columns]
    middle = (np.stack([x, y], axis=-1).reshape(-1, 2) + 0.5) * _TILE_PX - 0.5
    return np.asarray(middle - [(shape[1] - 1) / 2, (shape[0] - 1) / 2])


def _phase_shift(before: Floats32, now: Floats32) -> tuple[int, int]:
    """Whole pixels by which the image moved, to the right and down."""
    height, width = now.shape
    # Without a window the borders of the image, which do not move, may make the highest peak.
    window = (np.hanning(height)[:, None] * np.hanning(width)[None]).astype(np.float32)
    one, other = (np.fft.rfft2((each - each.mean()) * window) for each in (before, now))
    cross = other * np.conj(one)
    # Phases alone, so that texture counts as much as contrast; 1e-6 keeps empty frequencies from 0 / 0.
    peak = np.fft.irfft2(cross / (np.abs(cross) + 1e-6), s=now.shape)
    y, x = np.unravel_index(int(peak.argmax()), peak.shape)
    # The transform is periodic: shifts beyond half are negative ones.
    return int((x + width // 2) % width - width // 2), int((y + height // 2) % height - height // 2)
