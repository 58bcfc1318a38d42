"""Paths as arrays: live ones and the linker's steps over them, those of a whole set, and the labels that they get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.linking import candidates, kernels
from roadaware.linking.candidates import (
    ASSIGNMENTS,
    COSTS,
    FIRST_FRAME,
    FRAME,
    LAST,
    LENGTH,
    MOTIONS,
    OWNER,
    Pool,
    Rules,
)
from roadaware.linking.config import LinkerConfig
from roadaware.linking.kernels import CLASS_SCORES, collect_path, score_classes, trim_all, trim_each

if TYPE_CHECKING:
    from roadaware.linking.candidates import Pool, Rules


_NOTHING = np.empty(0, np.int64)
ROUNDING_S = 1e-6
"""By how much a gap may seem longer than it is."""


def build_kernel_rules(config: LinkerConfig, l2_columns: int) -> Rules:
    """The fields of a config as the kernels read them."""
    return Rules(
        single=config.single_precision,
        clamped=config.clamped_iou,
        motion=MOTIONS.index(config.motion),
        cost=COSTS.index(config.cost),
        moves=config.motion == "kalman" or config.cost == "affinity" or config.assignment == "cascade",
        min_iou=float(config.min_iou),
        min_edge=float(config.min_edge),
        sum_rule=config.edge_rule == "sum",
        assignment=ASSIGNMENTS.index(config.assignment),
        jump_gap=int(config.jump_gap),
        # Times are often products such as 15 * 0.1, whose differences may be a rounding above 1.5.
        jump_gap_s=float(config.jump_gap_s) + ROUNDING_S,
        begin_score=float(config.begin_score),
        begin_iou=float(config.begin_iou),
        top_key=config.order_key == "top",
        reversed_ties=config.order_ties == "reversed",
        sort_new=config.sort_new_paths,
        filled=config.gaps == "interpolate",
        l2_columns=l2_columns,
    )


class Engine:
    """Live paths over a pool of detections.

    Args:
        config: of the linker.
        pool: the detections.
        slots: room for live paths.
        n_sums: class scores that are summed up per live path.
        l2_columns: class scores that the costs `ioul2` and `affinity` compare.
    """

    def __init__(self, config: LinkerConfig, pool: Pool, slots: int, n_sums: int, l2_columns: int) -> None:
        self._columns, self._kernels = candidates, kernels
        self._by_build = config.order_ties == "build"
        self.rules = build_kernel_rules(config, l2_columns)
        self.pool = pool
        self.counters = np.zeros(4, np.int64)
        # The published key: the mean of the `jump_gap` + 1 best scores.
        best = config.jump_gap + 1 if config.order_key == "top" else 1
        moves = self.rules.moves
        self.live = candidates.Live(
            order=np.arange(slots),
            paths=np.zeros((slots, 5), np.int64),
            total=np.zeros(slots),
            top=np.zeros((slots, best)),
            sums=np.zeros((slots, n_sums)),
            motion=np.zeros((slots if moves else 0, 4, 5)),
            kinds=np.zeros((slots, l2_columns if moves else 0)),
            looks=np.zeros((slots, pool.looks.shape[1])),
        )
        self._make_scratch(slots)

    @property
    def n_live(self) -> int:
        """How many paths live."""
        return int(self.counters[self._columns.N_LIVE])

    @property
    def n_begun(self) -> int:
        """How many paths have begun so far."""
        return int(self.counters[self._columns.NEXT_NUMBER])

    @property
    def slots(self) -> Ints:
        """The slots of the live paths, in their order."""
        return self.live.order[: self.n_live]

    @property
    def numbers(self) -> Ints:
        """The numbers of the live paths, in their order."""
        numbers: Ints = self.live.paths[self.slots, self._columns.NUMBER]
        return numbers

    def run(self, places: Ints, ends: Ints, frames: Ints, times: Floats) -> Ints:
        """All frames of a video; returns the numbers of its paths as they closed, the live ones last.

        Args:
            places: (n,) detections in the pool, frame after frame.
            ends: (f + 1,) where each frame's detections start and end in `places`.
            frames: (f,) ascending.
            times: (f,) their times.
        """
        if not self._by_build:
            emitted = np.zeros(len(places), np.int64)
            done = self._steps(places, ends, frames, times, self._kernels.WHOLE, emitted)
            return np.concatenate([emitted[:done], self.numbers])
        # numpy's own sort orders the paths here, which stops the kernel in each frame.
        parts = []
        for f, (frame, time) in enumerate(zip(frames.tolist(), times.tolist(), strict=True)):
            self.step(places[ends[f] : ends[f + 1]], frame, time)
            parts.append(self.closed[:, 0].copy())
        return np.concatenate([np.empty(0, np.int64), *parts, self.numbers])

    def step(self, places: Ints, frame: int, time: float) -> None:
        """Process one frame; `closed` then holds the paths that closed.

        Args:
            places: (n,) its detections in the pool, in their order.
            frame: later than all before.
            time: its time.
        """
        moment = np.array([0, len(places)]), np.array([frame]), np.array([time])
        if not self._by_build:
            self._steps(places, *moment, self._kernels.WHOLE, _NOTHING)
            return
        self._steps(places, *moment, self._kernels.LINK, _NOTHING)
        n = self.n_live
        self._order[:n] = np.argsort(self._keys[:n])[::-1]
        self._steps(places, *moment, self._kernels.SETTLE, _NOTHING)

    def move_camera(self, camera: Floats) -> None:
        """Move the predicted boxes of live paths from the pixels of the last frame to those of the next.

        Args:
            camera: (2, 3) affine map of pixels.
        """
        self._columns.move_camera(camera, self.live, self.n_live)

    @property
    def closed(self) -> Ints:
        """(c, 2) number and last detection of the paths that closed in the last step."""
        return self._closed[: self.counters[self._columns.N_CLOSED]]

    def grow(self, slots: int) -> None:
        """Make room for more live paths."""
        held = len(self.live.order)
        order = np.concatenate([self.live.order, np.arange(held, slots)])
        _, *others = (pad_rows(array, slots if len(array) else 0) for array in self.live)
        self.live = self._columns.Live(order, *others)
        self._make_scratch(slots)

    def _make_scratch(self, slots: int) -> None:
        self._taken = np.zeros(slots, np.bool_)
        self._keys = np.zeros(slots)
        self._order = np.zeros(slots, np.int64)
        self._closed = np.zeros((slots, 2), np.int64)

    def _steps(
        self,
        places: Ints,
        ends: Ints,
        frames: Ints,
        times: Floats,
        part: int,
        emitted: Ints,
    ) -> int:
        done: int = self._kernels.link_frames(
            places,
            ends,
            frames,
            times,
            self.pool,
            self.live,
            self.counters,
            self.rules,
            part,
            self._taken,
            self._keys,
            self._order,
            self._closed,
            emitted,
        )
        return done


class Stream(Engine):
    """An engine whose detections come frame by frame; places of closed paths are used again.

    Args:
        config: of the linker.
        n_scores: class scores per detection.
        l2_columns: how many of them are compared.
        n_looks: numbers of an embedding.
    """

    def __init__(self, config: LinkerConfig, n_scores: int, l2_columns: int, n_looks: int = 0) -> None:

        # For a usual scene; it doubles as needed.
        size = 256
        pool = Pool(
            box=np.zeros((size, 4)),
            agentness=np.zeros(size),
            time=np.zeros(size),
            scores=np.zeros((size, n_scores), np.float32),
            looks=np.zeros((size, n_looks), np.float32),
            found=np.full((size, 3), -1, np.int64),
        )
        super().__init__(config, pool, 64, n_scores, l2_columns)
        self.rows = np.zeros(size, np.int64)
        self._free = np.arange(size)[::-1].copy()
        self._n_free = size

    def advance(
        self,
        frame: int,
        time: float,
        rows: Ints,
        boxes: Floats,
        agentness: Floats,
        scores: Floats32,
        looks: Floats32,
    ) -> tuple[Ints, list[tuple[int, Ints]]]:
        """One frame.

        Args:
            frame: later than all before.
            time: its time.
            rows: (n,) which rows of the frame the detections are.
            boxes: (n, 4).
            agentness: (n,).
            scores: (n, c).
            looks: (n, e) embeddings.

        Returns:
            (n,) numbers of the paths that the detections belong to now, -1 for none, and for each path that
            closed its number and where its detections lie.
        """
        n = len(rows)
        if self.n_live + n > len(self.live.order):
            # Doubled at least, so that copies stay a constant share of the work.
            self.grow(max(2 * len(self.live.order), self.n_live + n))
        if n > self._n_free:
            self._grow_pool(max(2 * len(self.rows), len(self.rows) + n))
        places = self._free[self._n_free - n : self._n_free][::-1].copy()
        self._n_free -= n
        pool = self.pool
        self.rows[places], pool.box[places], pool.agentness[places] = rows, boxes, agentness
        pool.time[places], pool.scores[places], pool.looks[places] = time, scores, looks
        pool.found[places] = frame, -1, -1
        self.step(places, frame, time)
        closed = [(number, self._traced(last)) for number, last in self.closed.tolist()]
        owner = pool.found[places, self._columns.OWNER]
        # Detections on no path leave their places at once, to be used by the next frame.
        self.release(places[owner < 0][::-1])
        return owner, closed

    def end(self) -> list[tuple[int, Ints]]:
        """Close every live path, in order; returns their numbers and the slots of their detections."""
        ended = [(number, self.places(number)) for number in self.numbers.tolist()]
        self.counters[self._columns.N_LIVE] = 0
        return ended

    def places(self, number: int) -> Ints:
        """Slots of the detections of a live path, first to last; empty if there is no such path."""
        slots = self.slots[self.numbers == number]
        if not len(slots):
            return np.empty(0, np.int64)
        return self._traced(int(self.live.paths[slots[0], self._columns.LAST]))

    def release(self, places: Ints) -> None:
        """Let the places of a closed path be used again."""
        self._free[self._n_free : self._n_free + len(places)] = places
        self._n_free += len(places)

    def _traced(self, last: int) -> Ints:
        return collect_path(last, self.pool.found)

    def _grow_pool(self, size: int) -> None:
        held = len(self.rows)
        self.rows = pad_rows(self.rows, size)
        self.pool = self._columns.Pool(*(pad_rows(array, size) for array in self.pool))
        free = np.zeros(size, np.int64)
        free[: size - held] = np.arange(held, size)[::-1]
        free[size - held : size - held + self._n_free] = self._free[: self._n_free]
        self._free, self._n_free = free, size - held + self._n_free


def pad_rows(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """A copy with more rows, the new ones 0."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


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


def select_top_labels(
    scores: Floats32, rows: Ints, ends: Ints, columns: range, config: LinkerConfig
) -> tuple[Ints, Floats]:
    """The labels of each path and their scores, best first.

    Args:
        scores: (r, c) class scores of all detections.
        rows: (n,) rows of `scores`, path after path, each in time.
        ends: (p + 1,) where each path starts and ends in `rows`.
        columns: of the kind to label.
        config: `class_score`, `max_labels`, `min_tube_len`, `order_ties`.

    Returns:
        (p, k) labels, -1 for paths too short for one, and (p, k) scores; k is `max_labels`, or the number
        of classes where that is less (the published code fails there).

    Source: Singh et al., TPAMI 2022, section 4.2; the released code takes the best few frames instead of
        the mean over the tube, as many as a quarter of the number of classes.
    """
    long = np.diff(ends) > config.min_tube_len
    kept = np.concatenate([[0], np.cumsum(np.diff(ends)[long])])
    values = np.zeros((int(long.sum()), len(columns)))
    rule = CLASS_SCORES.index(config.class_score)
    of_long = np.ascontiguousarray(rows[np.repeat(long, np.diff(ends))])
    score_classes(scores, of_long, kept, columns.start, rule, config.single_precision, values)
    best, best_values = _best(values, config.max_labels, config)
    labels = np.full((len(long), best.shape[1]), -1, np.int64)
    labels[long] = best
    label_scores = np.zeros(labels.shape)
    label_scores[long] = best_values
    return labels, label_scores


def _best(values: Floats, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The `k` greatest values of each row and their places; the lower place of equals, unless by build."""
    # `build` leaves ties to numpy's default sort on this machine, as the published code does.
    order = np.argsort(-values, axis=1, kind=None if config.order_ties == "build" else "stable")
    labels = order[:, :k]
    return labels, np.take_along_axis(values, labels, axis=1)


def label_live_paths(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The labels of live paths so far, and their scores, best first.

    Args:
        state: of a linker.
        columns: of the kind to label.
        k: labels per path.
        config: `class_score` and `min_label_score`.

    Returns:
        (m, k) labels, -1 where a score is not above `min_label_score`, and (m, k) scores; fewer where there
        are fewer classes.
    """
    labels, scores = _running(state, columns, min(k, len(columns)), config)
    floor = config.min_label_score
    return labels if floor is None else np.where(scores > floor, labels, -1), scores


def _running(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The same with whatever score."""
    if config.class_score != "mean":
        # The same from every detection of the live paths.
        places = [state.places(number) for number in state.numbers.tolist()]
        ends = np.cumsum([0, *(len(found) for found in places)])
        rows = np.concatenate([np.empty(0, np.int64), *places])
        running = replace(config, max_labels=max(k, 1), min_tube_len=0)
        return select_top_labels(state.pool.scores, rows, ends, columns, running)
    paths = state.live.paths[state.slots]
    length = paths[:, LENGTH]
    if config.gaps == "interpolate":
        # Filled frames count too, as `sums` holds what is interpolated.
        length = state.pool.found[paths[:, LAST], FRAME] - paths[:, FIRST_FRAME] + 1
    means = state.live.sums[state.slots, columns.start : columns.stop] / length[:, None]
    return _best(means, k, config)


# Labelled tubes cut from paths: whole, or trimmed by dynamic programming over labels.

# The published code asks for 24 classes where it means UCF101-24.
_UCF24_CLASSES = 24


@dataclass(frozen=True, eq=False)
class Segments:
    """Labelled pieces of paths, path after path.

    Args:
        path: (s,) the path.
        label: (s,).
        first: (s,) place of the first detection within the path.
        last: (s,) place of the last one.
        score: (s,).
    """

    path: Ints
    label: Ints
    first: Ints
    last: Ints
    score: Floats

    def __len__(self) -> int:
        return len(self.path)

    def only(self, kept: npt.NDArray[np.bool_]) -> Segments:
        """Some of the pieces.

        Args:
            kept: (s,).
        """
        return Segments(
            self.path[kept], self.label[kept], self.first[kept], self.last[kept], self.score[kept]
        )


def label_and_trim(paths: Paths, detections: Detections, columns: range, config: LinkerConfig) -> Segments:
    """The tubes of one kind.

    Args:
        paths: of the linker.
        detections: theirs.
        columns: of the class scores that belong to the kind.
        config: the fields on labelling.

    Source: Singh et al., TPAMI 2022, section 4.2; Singh et al., ICCV 2017, for the dynamic programming.
    """
    # The tubes of one kind, with whatever score.
    if config.trim in ("dpscores", "dpscorestopn"):
        found = _trim_together(paths, detections, columns, config)
    else:
        labels, scores = select_top_labels(detections.scores, paths.rows, paths.ends, columns, config)
        if config.trim == "none":
            path, rank = np.nonzero(labels >= 0)
            last = paths.lengths[path] - 1
            found = Segments(path, labels[path, rank], np.zeros_like(path), last, scores[path, rank])
        else:
            found = _trim_each(paths, detections, columns, labels, config)
    if config.min_label_score is None:
        return found
    has_label = found.score > config.min_label_score
    return found if has_label.all() else found.only(has_label)


def _trim_each(
    paths: Paths, detections: Detections, columns: range, labels: Ints, config: LinkerConfig
) -> Segments:
    found, values = _room(paths, labels.shape[1], config)
    n = trim_each(
        detections.scores,
        detections.agentness,
        paths.rows,
        paths.ends,
        columns.start,
        labels,
        _alphas(len(columns), config),
        _by_agentness(len(columns), config),
        config.min_tube_len,
        config.viterbi_lag,
        config.single_precision,
        found,
        values,
    )
    return _segments(found, values, n)


def _trim_together(paths: Paths, detections: Detections, columns: range, config: LinkerConfig) -> Segments:
    found, values = _room(paths, config.max_labels, config)
    n = trim_all(
        detections.scores,
        paths.rows,
        paths.ends,
        columns.start,
        len(columns),
        config.max_labels,
        float(config.trim_alpha),
        config.trim == "dpscorestopn",
        config.min_tube_len,
        config.viterbi_lag,
        config.single_precision,
        found,
        values,
    )
    return _segments(found, values, n)


def _alphas(n_labels: int, config: LinkerConfig) -> Floats:
    """The cost of a change for each label."""
    if config.trim_alpha == 0 and len(config.trim_alphas) == n_labels:
        return np.array(config.trim_alphas, np.float64)
    return np.full(n_labels, float(config.trim_alpha))


def _by_agentness(n_labels: int, config: LinkerConfig) -> bool:
    if config.trim_by == "agentness_if_24":
        return n_labels == _UCF24_CLASSES
    return config.trim_by == "agentness"


def _room(paths: Paths, times: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """Arrays that hold as many segments as there can be."""
    # Segments of more than min_tube_len frames side by side; `dpscorestopn` writes two whatever their length.
    most = np.maximum(2, paths.lengths // (config.min_tube_len + 1) + 1) * times
    size = int(most.sum())
    return np.empty((size, 4), np.int64), np.empty(size)


def _segments(found: Ints, values: Floats, n: int) -> Segments:
    path, label, first, last = np.ascontiguousarray(found[:n].T)
    return Segments(path, label, first, last, values[:n].copy())
