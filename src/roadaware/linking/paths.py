"""Paths of a set as flat arrays: linked video by video, weak ones dropped, missed frames interpolated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.linking.config import LinkerConfig
from roadaware.linking.state import ROUNDING_S, Engine


@dataclass(frozen=True, eq=False)
class Detections:
    """Detections in the order of videos, frames and rows.

    Args:
        video: (n,) index of the video.
        frame: (n,).
        boxes: (n, 4) x1, y1, x2, y2.
        agentness: (n,).
        scores: (n, c) class scores.
    """

    video: Ints
    frame: Ints
    boxes: Floats
    agentness: Floats
    scores: Floats32

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths in the order in which they closed, video after video.

    Args:
        rows: (n,) detections, path after path, each in time.
        ends: (p + 1,) where each path starts and ends in `rows`.
    """

    rows: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> Ints:
        """(p,) detections of each path."""
        return np.diff(self.ends)

    @property
    def firsts(self) -> Ints:
        """(p,) first detection of each path."""
        return self.rows[self.ends[:-1]]

    @property
    def lasts(self) -> Ints:
        """(p,) last detection of each path."""
        return self.rows[self.ends[1:] - 1]

    def means(self, values: Floats) -> Floats:
        """(p,) mean over each path's detections of a value (n detections,)."""
        if not len(self):
            return np.empty(0)
        # No path is empty: `reduceat` would give an empty one the next path's first value.
        return np.add.reduceat(values[self.rows], self.ends[:-1]) / self.lengths

    def only(self, kept: Bools) -> Paths:
        """The paths for which (p,) `kept` holds."""
        lengths = self.lengths
        return Paths(self.rows[np.repeat(kept, lengths)], np.concatenate([[0], np.cumsum(lengths[kept])]))


def select_usable_rows(detections: Detections, config: LinkerConfig) -> Bools:
    """Detections that are linked: the first rows of each frame, of those the ones above `min_score`."""
    low = float(np.float32(config.min_score)) if config.single_precision else config.min_score
    used = detections.agentness > low
    if config.top_rows is None or not len(detections):
        return used
    begins = np.ones(len(detections), np.bool_)
    begins[1:] = (np.diff(detections.frame) != 0) | (np.diff(detections.video) != 0)
    starts = np.flatnonzero(begins)
    rank = np.arange(len(detections)) - np.repeat(starts, np.diff(starts, append=len(detections)))
    return np.asarray(used & (rank < config.top_rows))


def link_video(
    detections: Detections, used: Bools, frames: Ints, times: Floats, l2_columns: int, config: LinkerConfig
) -> tuple[Ints, int]:
    """The paths of one video.

    Args:
        detections: (n) of the video alone.
        used: (n,) which of them are linked.
        frames: (f,) ascending frames to go through; those of the used detections are among them.
        times: (f,) their times.
        l2_columns: class scores that the cost `ioul2` compares.
        config: of the linker.

    Returns:
        (n,) the place of each detection's path in the order of closing, -1 for those not used; and how
        many paths there are.
    """
    from roadaware.linking.candidates import FRAME, OWNER, Pool

    places = np.flatnonzero(used)
    ends = np.concatenate([[0], np.searchsorted(detections.frame[places], frames, side="right")])
    most = int(np.diff(ends).max(initial=0))
    found = np.full((len(detections), 3), -1, np.int64)
    found[:, FRAME] = detections.frame
    time = np.zeros(len(detections))
    time[places] = np.repeat(times, np.diff(ends))
    looks = np.zeros((len(detections), 0), np.float32)
    pool = Pool(detections.boxes, detections.agentness, time, detections.scores, looks, found)
    # A path that lives was found in the frames or in the seconds before the last one.
    first = np.minimum(
        np.searchsorted(frames, frames - config.jump_gap),
        np.searchsorted(times, times - (config.jump_gap_s + ROUNDING_S)),
    )
    # Room for the worst frame: all that may still live and all that may begin are paths of their own.
    slots = int((ends[1:] - ends[first]).max(initial=0)) + most
    emitted = Engine(config, pool, slots, 0, l2_columns).run(places, ends, frames, times)
    rank = np.full(len(emitted) + 1, -1, np.int64)
    rank[emitted] = np.arange(len(emitted))
    return rank[found[:, OWNER]], len(emitted)


def gather(place: Ints, n_paths: int) -> Paths:
    """Paths from the place of each detection's path in their order, -1 for none."""
    order = np.argsort(place, kind="stable")
    order = order[np.count_nonzero(place < 0) :]
    return Paths(order, np.concatenate([[0], np.cumsum(np.bincount(place[order], minlength=n_paths))]))


def select_strong_paths(paths: Paths, detections: Detections, config: LinkerConfig) -> Bools:
    """Whether each path is kept; see `drop_weak`."""
    if not config.drop_weak:
        return np.ones(len(paths), np.bool_)
    n = paths.lengths
    weak = (n < config.min_path_len) & (paths.means(detections.agentness) <= config.min_path_score)
    # The published rule, which has no effect there: paths with gaps need more than `min_path_len` boxes.
    span = detections.frame[paths.lasts] - detections.frame[paths.firsts] + 1
    return np.asarray(~(weak | ((span > n) & (n <= config.min_path_len))))


def fill_gaps(paths: Paths, detections: Detections) -> tuple[Paths, Detections, Ints]:
    """Put a detection, linear between its neighbours, into every frame that a path has missed.

    Args:
        paths: with gaps.
        detections: (n) theirs.

    Returns:
        the paths without gaps; the detections with the new ones behind them; and (new,) for each new one
        the detection that comes next in its path.
    """
    path_of = np.repeat(np.arange(len(paths)), paths.lengths)
    frame = detections.frame[paths.rows]
    # 1 between paths: no frame is missing where one ends and the next begins.
    apart = np.where(np.diff(path_of) == 0, np.diff(frame), 1)
    left = np.repeat(np.arange(len(apart)), apart - 1)
    if not len(left):
        return paths, detections, np.empty(0, np.int64)
    step = np.arange(len(left)) - np.repeat(np.cumsum(apart - 1) - (apart - 1), apart - 1) + 1
    a, b, weight = paths.rows[left], paths.rows[left + 1], step / apart[left]
    wide = weight[:, None]
    box, agent, score = detections.boxes, detections.agentness, detections.scores
    filled = replace(
        detections,
        video=np.concatenate([detections.video, detections.video[a]]),
        frame=np.concatenate([detections.frame, frame[left] + step]),
        boxes=np.concatenate([box, box[a] + wide * (box[b] - box[a])]),
        agentness=np.concatenate([agent, agent[a] + weight * (agent[b] - agent[a])]),
        scores=np.concatenate([score, score[a] + wide.astype(np.float32) * (score[b] - score[a])]),
    )
    rows = np.concatenate([paths.rows, len(detections) + np.arange(len(left))])
    owner = np.concatenate([path_of, path_of[left]])
    # By path, then frame, so that interpolated detections go between those that were found.
    order = np.lexsort((filled.frame[rows], owner))
    ends = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(paths)))])
    return Paths(rows[order], ends), filled, b
