"""Boxes as arrays of x1, y1, x2, y2 and tubes as runs of them: how much each of some overlaps each of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.geometry.kernels import compute_tube_pair_overlaps, find_overlapping_intervals


def areas(boxes: npt.ArrayLike, *, pixel_offset: float = 0.0) -> Floats:
    """(n,) widths times heights, in square pixels.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        pixel_offset: added to widths and heights; 1 where x2 and y2 are the last pixels inside.

    >>> areas([[0, 0, 9, 4]], pixel_offset=1.0)
    array([50.])
    """
    edges = _edges(boxes)
    found: Floats = (edges[:, 2] - edges[:, 0] + pixel_offset) * (edges[:, 3] - edges[:, 1] + pixel_offset)
    return found


def iou(a: npt.ArrayLike, b: npt.ArrayLike, *, pixel_offset: float = 0.0, clamped: bool = True) -> Floats:
    """(n, m) intersection over union of each box of `a` with each of `b`; 0 where both are empty.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.
        pixel_offset: added to widths and heights; 1 where x2 and y2 are the last pixels inside.
        clamped: whether the sides of an intersection are at least 0. The published tube builder does
            without: boxes that are apart in both directions then have a positive "intersection", and
            values are not bounded.

    Source: Everingham et al., IJCV 2010, eq. 3.

    >>> iou([[0, 0, 2, 2]], [[1, 0, 3, 2], [4, 4, 6, 6]]).round(4)
    array([[0.3333, 0.    ]])
    >>> iou([[0, 0, 2, 2]], [[4, 4, 6, 6]], clamped=False)
    array([[1.]])
    """
    one, other = _edges(a)[:, None], _edges(b)[None]
    sides = np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2]) + pixel_offset
    if clamped:
        sides = np.maximum(sides, 0.0)
    inter = sides[..., 0] * sides[..., 1]
    union = areas(a, pixel_offset=pixel_offset)[:, None] + areas(b, pixel_offset=pixel_offset) - inter
    # Unclamped, a union may be negative as well; the published tube builder divides by it all the same.
    shares: Floats = np.divide(inter, union, out=np.zeros_like(inter), where=union != 0)
    return shares


PAIRS = 1 << 18
"""Pairs of boxes that are compared at a time: some MiB, which stay in a processor's cache."""


def max_iou(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """(n,) greatest intersection over union of each box of `a` with any of `b`, 0 without any; in little memory.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.

    >>> max_iou([[0, 0, 2, 2], [8, 8, 9, 9]], [[1, 0, 3, 2], [4, 4, 6, 6]]).round(4)
    array([0.3333, 0.    ])
    """
    edges, others = _edges(a), _edges(b)
    found = np.zeros(len(edges))
    step = max(1, PAIRS // max(1, len(others)))
    for first in range(0, len(edges), step):
        found[first : first + step] = iou(edges[first : first + step], others).max(axis=1, initial=0.0)
    return found


def paired_iou(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """(n,) intersection over union of the i-th boxes of both; 0 where both are empty or one is upside down.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (n, 4) the same.

    >>> paired_iou([[0, 0, 2, 2], [0, 0, 2, 2]], [[1, 0, 3, 2], [4, 4, 6, 6]]).round(4)
    array([0.3333, 0.    ])
    """
    one, other = _edges(a), _edges(b)
    sides = np.maximum(np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2]), 0.0)
    inter = sides[:, 0] * sides[:, 1]
    union = areas(one) + areas(other) - inter
    shares: Floats = np.divide(inter, union, out=np.zeros_like(inter), where=union > 0)
    return shares


def _edges(boxes: npt.ArrayLike) -> Floats:
    """(n, 4) numbers, also of an empty list."""
    edges = np.asarray(boxes, dtype=np.float64)
    return edges.reshape(0, 4) if not edges.size else edges


# Regions of equal width that an image is divided into, from left to right.


def compute_region_position(
    x_px: npt.NDArray[np.float64], width_px: npt.NDArray[Any], regions: int
) -> npt.NDArray[np.float64]:
    """(n,) position of a point in units of regions; its whole part is the region of the point.

    A region is as wide as whole pixels allow; what remains on the right belongs to the last. Points left of
    the image have negative places, and those in the remainder have places of `regions` and more.

    Args:
        x_px: (n,) horizontal coordinates in pixels.
        width_px: (n,) widths of the images in pixels, whole and at least `regions`.
        regions: how many regions.

    Source: the published code of Rasouli and Kotseruba, IV 2024, whose regions are width // regions wide.

    >>> compute_region_position(np.array([106.0, 159.0, -53.0]), np.array([1280, 1280, 1280]), 12)
    array([ 1. ,  1.5, -0.5])
    """
    # Whole pixels: 1280 // 12 = 106 leaves 8 px, which the published code gives to the last region.
    place: npt.NDArray[np.float64] = x_px / (width_px // regions)
    return place


TubeTime = Literal["frames", "endpoints", "endpoints_always"]
TUBE_TIMES: tuple[TubeTime, ...] = ("frames", "endpoints", "endpoints_always")


@dataclass(frozen=True, eq=False)
class Tubes:
    """Tubes that share one array of boxes: each is a run of `rows`, with the frame every row is for.

    Args:
        boxes: (m, 4) x1, y1, x2, y2 in pixels.
        rows: (k,) rows of `boxes`, tube after tube.
        frames: (k,) the frame of each row, increasing within a tube.
        offsets: (n + 1,) where each tube begins in `rows`; equal neighbours are a tube without boxes.
        video: (n,) the video of each tube; tubes of different videos never overlap.
    """

    boxes: Floats
    rows: Ints
    frames: Ints
    offsets: Ints
    video: Ints

    def __len__(self) -> int:
        return len(self.video)

    @property
    def lengths(self) -> Ints:
        """(n,) boxes of each tube."""
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of tubes of two sets that meet in time, sorted by the first tube, then by the second.

    Args:
        offsets: (n + 1,) where the pairs of each first tube begin.
        second: (p,) the second tube of each pair.
        temporal: (p,) intersection over union of their times.
        spatial: (p,) mean intersection over union of their boxes where both have one; 0 if nowhere.
    """

    offsets: Ints
    second: Ints
    temporal: Floats
    spatial: Floats

    @property
    def first(self) -> Ints:
        """(p,) the first tube of each pair."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def from_runs(
    boxes: Floats, box_frames: Ints, runs: Ints, tube: Ints, video: Ints, start: Ints | None = None
) -> Tubes:
    """Tubes made of runs of consecutive rows, without a copy of a box.

    Args:
        boxes: (m, 4) all boxes.
        box_frames: (m,) the frame of each box.
        runs: (r, 2) first row and row after the last, in the order of the tubes and of their frames.
        tube: (r,) the tube of each run, not decreasing.
        video: (n,) the video of each tube.
        start: (n,) where not negative, the tube's rows stand for the frames from there on, one after
            the other, whatever their own frames are (default: no tube).

    Raises:
        ValueError: if a tube has a frame twice or its frames run backwards; `args[1]` is that tube.

    >>> boxes = np.zeros((5, 4))
    >>> tubes = from_runs(boxes, np.arange(5), np.array([[0, 2], [3, 5]]), np.array([0, 0]), np.array([0]))
    >>> tubes.frames
    array([0, 1, 3, 4])
    """
    lengths = np.maximum(runs[:, 1] - runs[:, 0], 0)
    held = np.bincount(tube, weights=lengths, minlength=len(video)).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(held)])
    ends = np.cumsum(lengths)
    rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(runs[:, 0] - (ends - lengths), lengths)
    frames = box_frames[rows]
    owner = np.repeat(np.arange(len(video)), np.diff(offsets))
    if start is not None:
        counted = np.arange(len(rows)) - offsets[owner] + start[owner]
        frames = np.where(start[owner] >= 0, counted, frames)
    wrong = np.flatnonzero((np.diff(frames) <= 0) & (owner[1:] == owner[:-1]))
    if len(wrong):
        raise ValueError("a tube has a frame twice, or its frames run backwards", int(owner[wrong[0]]))
    return Tubes(boxes, rows, frames, offsets, video)


def compute_tube_overlaps(
    a: Tubes, b: Tubes, *, time: TubeTime = "frames", pixel_offset: float = 0.0, single: bool = False
) -> Pairs:
    """How much each tube of `a` overlaps each tube of `b` that it meets in time.

    The temporal part is the intersection over union of the sets of frames (`frames`), or of the
    intervals from first to last frame (`endpoints_always`). `endpoints` takes the intervals too, and with
    them the i-th box of the one with the i-th of the other, wherever the two tubes have a box at both
    ends of the common interval and equally many between; where they have not, it takes sets of frames.

    The spatial part is the mean intersection over union of the boxes over the frames where both tubes
    have one. The spatio-temporal overlap is the product of the two.

    Args:
        a: the first tubes.
        b: the second tubes.
        time: what the time of a tube is.
        pixel_offset: added to every width and height; 1 counts a box's last pixel as inside.
        single: whether boxes that `endpoints` pairs by place are compared, and their mean taken, in 32-bit
            arithmetic, in which numpy adds; the boxes are such as 32 bits hold.

    Raises:
        ValueError: if `time` is unknown.

    Source: Weinzaepfel et al., ICCV 2015 (spatio-temporal overlap); Singh et al., TPAMI 2022, section 5.2.

    >>> boxes, runs, one = np.array([[0.0, 0, 10, 10]] * 4), np.array([[0, 4]]), np.array([0])
    >>> a = from_runs(boxes, np.arange(4), runs, one, one)
    >>> b = from_runs(boxes, np.arange(2, 6), runs, one, one)
    >>> compute_tube_overlaps(a, b).temporal.round(2)
    array([0.33])
    """
    if time not in TUBE_TIMES:
        raise ValueError(f"time should be one of {', '.join(TUBE_TIMES)}, not {time!r}")

    first_b, last_b = _interval(b)
    order = np.flatnonzero(last_b >= first_b)
    # By first frame within a video, so that the kernel can stop at the first one that begins too late.
    order = order[np.lexsort((first_b[order], b.video[order]))]
    videos = np.arange(int(b.video.max(initial=-1)) + 1)
    begin = np.searchsorted(b.video[order], videos, "left")
    end = np.searchsorted(b.video[order], videos, "right")
    offsets, second = find_overlapping_intervals(
        *_interval(a), _ints(a.video), first_b, last_b, order, begin, end
    )
    # The kernel lists partners by first frame; results are to follow the order of the tubes.
    second = second[np.lexsort((second, np.repeat(np.arange(len(a)), np.diff(offsets))))]
    temporal, spatial = compute_tube_pair_overlaps(
        *_arrays(a), *_arrays(b), offsets, second, TUBE_TIMES.index(time), float(pixel_offset), single
    )
    return Pairs(offsets, second, temporal, spatial)


def _interval(tubes: Tubes) -> tuple[Ints, Ints]:
    """(n,) first and last frame of each tube; the last before the first where it has no box."""
    first, last = np.zeros(len(tubes), dtype=np.int64), np.full(len(tubes), -1, dtype=np.int64)
    held = np.flatnonzero(tubes.lengths > 0)
    first[held] = tubes.frames[tubes.offsets[held]]
    last[held] = tubes.frames[tubes.offsets[held + 1] - 1]
    return first, last


def _ints(values: Ints) -> Ints:
    return np.ascontiguousarray(values, dtype=np.int64)


def _arrays(tubes: Tubes) -> tuple[Floats, Ints, Ints, Ints]:
    """Arrays of one set for the kernel."""
    boxes = np.ascontiguousarray(tubes.boxes, dtype=np.float64)
    return boxes, _ints(tubes.rows), _ints(tubes.frames), _ints(tubes.offsets)
