"""What two seconds of boxes say of somebody who is watched: place, size, speeds over four spans of time, gait, and what the
others in the image do, by which the camera's own motion can be told from theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.factors import build_position_index
from roadaware.scenes.schema import CORNERS
from roadaware.tasks.crossing_inputs.observations import Observations

NEEDS = "boxes with tubes, and width_px, height_px and fps of the videos"
LOOKS_S = (1 / 6, 0.5, 1.0, 2.0)
"""How far back speeds look: a step, the observation of the published protocols, and so far that somebody who stood can be
told from somebody who never did."""
_GAIT_S = (1.0, 2.0)
_OTHERS_S = 0.5
_LONGEST_S = 30.0
"""Times to the middle and to contact are cut here, where they no longer say anything."""
PLACE = (
    "x", "y", "foot", "log_width", "log_height", "aspect", "from_middle", "from_middle_heights", "watched_s",
    "way_inwards", "way",
)  # fmt: skip
SPEEDS = ("inwards", "down", "growth", "inwards_heights", "down_heights")
FEATURES = (
    *PLACE,
    *(f"{name}_{look:.2g}s" for look in LOOKS_S for name in SPEEDS),
    *(f"faster_than_{look:.2g}s" for look in LOOKS_S[1:]),
    *(f"{name}_{look:g}s" for look in _GAIT_S for name in ("aspect_spread", "speed_spread")),
    "others", "others_inwards", "others_down", "others_growth", "inwards_beside_others", "growth_beside_others",
    "to_middle_s", "to_contact_s",
)  # fmt: skip
"""The columns of `describe_history`."""


def count_history_frames(rate: float) -> int:
    """Boxes that `describe_newest` looks back at, so many that the first of them is no step's end.

    >>> count_history_frames(30.0)
    62
    """
    return math.ceil(max(*LOOKS_S, *_GAIT_S) * rate) + 2


def describe_history(seen: Observations) -> Floats:
    """(n, 1, f) columns of `FEATURES` at the newest box of each sample; NaN where a track does not reach back so far.

    Boxes before the observation are read, of the same tube, and those of others in the frames; none behind it. Lengths are
    shares of the image's height (x of its width), speeds are a second, `inwards` is towards the middle of the image. The
    camera moves: `others` are all other tubes in the frame, whose mean speed over half a second says how.

    Raises:
        InputError: if a frame rate or an image size is unknown.
    """
    boxes = seen.scenes.boxes
    held = build_position_index(boxes)
    corners = boxes.select(CORNERS).to_numpy().astype(np.float64)[held.row]
    # Behind the last box of a tube that ended the newest one is repeated: the place of the row itself is meant.
    inverse = np.full(len(boxes), -1, dtype=np.int64)
    inverse[held.row] = np.arange(len(held.row))
    rates = np.unique(seen.fps)
    if len(rates) != 1 or not np.isfinite(rates).all():
        raise InputError(f"history needs videos of one known frame rate, not of {rates.tolist()[:4]}")
    names = boxes["video"].cast(str).to_numpy()[held.row]
    _, video = np.unique(names, return_inverse=True)
    tracks = Tracks(corners, held.frame, held.first, video, _spread_sizes(seen, names))
    return describe_newest(tracks, inverse[seen.box_row[:, -1]], float(rates[0]))[:, None, :]


@dataclass(frozen=True, eq=False)
class Tracks:
    """Boxes of tubes at one frame rate, m boxes of k tubes, by tube and frame.

    Args:
        corners_px: (m, 4) x1, y1, x2, y2.
        frame: (m,).
        first: (k + 1,) where each tube begins, and the end of the last.
        video: (m,) number of the video: others are those in its frame.
        size_px: (m, 2) width and height of the image.
        watched_s: (k,) seconds for which a tube was watched before its first box here (default: 0).
        way: (k,) own heights by which it moved across the image before that, to the right (default: 0).
    """

    corners_px: Floats
    frame: Ints
    first: Ints
    video: Ints
    size_px: Floats
    watched_s: Floats | float = 0.0
    way: Floats | float = 0.0


def describe_newest(tracks: Tracks, newest: Ints, rate: float) -> Floats:
    """(n, f) columns of `FEATURES` of n moments; see `describe_history`.

    Args:
        tracks: all boxes up to the moments.
        newest: (n,) rows of the newest box of each.
        rate: frames a second.
    """
    corners, sizes = tracks.corners_px, tracks.size_px
    counts = np.diff(tracks.first)
    # Each box of the set, by tube and frame, with what it is that its video says.
    begin = np.repeat(tracks.first[:-1], counts)
    width, height = np.maximum(np.moveaxis(corners[:, 2:] - corners[:, :2], -1, 0), 1.0)
    x = (corners[:, 0] + corners[:, 2]) / 2 / sizes[:, 0]
    y = (corners[:, 1] + corners[:, 3]) / 2 / sizes[:, 1]
    log_height = np.log(height / sizes[:, 1])
    heights = sizes[:, 0] / height  # own heights in a width of the image
    aspect = width / height
    frame = tracks.frame.astype(np.float64)

    def look_back(values: Floats, seconds: float, rows: Ints) -> Floats:
        """The change of values a second over the last so many, NaN where the tube is younger."""
        past = rows - max(1, round(seconds * rate))
        known = past >= begin[rows]
        past = np.where(known, past, rows)
        gone = np.maximum(frame[rows] - frame[past], 1.0) / rate
        return np.where(known, (values[rows] - values[past]) / gone, np.nan)

    inwards = np.where(x[newest] > 0.5, -1.0, 1.0)
    from_middle = np.abs(x - 0.5)[newest]
    # The way across the image in own heights, box by box, summed from the first.
    step = np.diff(x, prepend=x[:1]) * heights
    step[tracks.first[:-1]] = 0.0
    way = np.cumsum(step)
    way = way - way[begin] + np.repeat(np.broadcast_to(tracks.way, counts.shape), counts)
    watched = (frame - frame[begin]) / rate
    watched = watched + np.repeat(np.broadcast_to(tracks.watched_s, counts.shape), counts)
    columns = [
        x[newest], y[newest], (corners[:, 3] / sizes[:, 1])[newest], np.log(width / sizes[:, 0])[newest],
        log_height[newest], aspect[newest], from_middle, from_middle * heights[newest], watched[newest],
        inwards * way[newest], np.abs(way)[newest],
    ]  # fmt: skip
    across = {}
    for look in LOOKS_S:
        sideways, down = look_back(x, look, newest) * inwards, look_back(y, look, newest)
        across[look] = sideways * heights[newest]
        own_height = np.exp(log_height[newest])
        columns += [sideways, down, look_back(log_height, look, newest), across[look], down / own_height]
    columns += [across[LOOKS_S[0]] - across[look] for look in LOOKS_S[1:]]
    for look in _GAIT_S:
        columns += [_spread(values, begin, newest, round(look * rate)) for values in (aspect, step)]
    # What everybody else in the frame does.
    every = np.arange(len(frame))
    motion = np.stack([look_back(values, _OTHERS_S, every) for values in (x, y, log_height)], axis=-1)
    _, place = np.unique(tracks.video * (tracks.frame.max(initial=0) + 1) + tracks.frame, return_inverse=True)
    present = np.bincount(place)[place[newest]] - 1.0
    known = np.isfinite(motion[:, 0])
    count = np.bincount(place, weights=known)[place] - known
    total = np.stack([np.bincount(place, weights=np.nan_to_num(each))[place] for each in motion.T], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(count[:, None] > 0, (total - np.nan_to_num(motion)) / count[:, None], np.nan)[
            newest
        ]
        own = motion[newest]
        columns += [
            present, others[:, 0] * inwards, others[:, 1], others[:, 2],
            (own[:, 0] - others[:, 0]) * inwards * heights[newest], own[:, 2] - others[:, 2],
        ]  # fmt: skip
        speed, growth = own[:, 0] * inwards, look_back(log_height, 1.0, newest)
        for value, pace in ((from_middle, speed), (1.0, growth)):
            time = np.where(pace > 1e-4, np.minimum(value / pace, _LONGEST_S), _LONGEST_S)
            columns.append(np.where(np.isfinite(pace), time, np.nan))
    return np.stack(columns, axis=-1)


def _spread_sizes(seen: Observations, video: npt.NDArray[np.object_]) -> Floats:
    """(m, 2) width and height of the image of each box.

    Args:
        seen: whose videos have sizes; a missing one is an error there.
        video: (m,) names.
    """
    names = seen.scenes.videos["video"].cast(str).to_numpy()
    sizes = np.full((len(names), 2), 1.0)
    sizes[seen.video_row] = seen.size_px  # videos without samples are read by nobody
    order = np.argsort(names)
    return sizes[order[np.searchsorted(names, video, sorter=order)]]


def _spread(values: Floats, begin: Ints, rows: Ints, steps: int) -> Floats:
    """(n,) standard deviation of the newest values of a tube, as many as there are up to so many steps back.

    Args:
        values: (m,) by tube and frame.
        begin: (m,) where the tube of each begins.
        rows: (n,) the newest.
        steps: to look back.
    """
    first = np.maximum(begin[rows], rows - steps)
    count = rows - first + 1
    sums = [np.concatenate([[0.0], np.cumsum(values**power)]) for power in (1, 2)]
    mean, square = ((total[rows + 1] - total[first]) / count for total in sums)
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
