"""The arrays that hold live paths and their detections, and the linker's steps over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.linking.config import LinkerConfig

if TYPE_CHECKING:
    from roadaware.linking.candidates import Pool, Rules

_NOTHING = np.empty(0, np.int64)
ROUNDING_S = 1e-6
"""By how much a gap may seem longer than it is."""


def build_kernel_rules(config: LinkerConfig, l2_columns: int) -> Rules:
    """The fields of a config as the kernels read them."""
    from roadaware.linking.candidates import ASSIGNMENTS, COSTS, MOTIONS, Rules

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
        from roadaware.linking import candidates, kernels

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
        from roadaware.linking.candidates import Pool

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
        from roadaware.linking.kernels import collect_path

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
