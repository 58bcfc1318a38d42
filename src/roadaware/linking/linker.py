"""Linker: detections become paths one frame at a time, and live paths can be read at any moment."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.linking.candidates import FIRST_FRAME, FRAME, LAST, LENGTH
from roadaware.linking.config import FRAME_S, LinkerConfig
from roadaware.linking.kernels import find_invalid_detection
from roadaware.linking.paths import ROUNDING_S, Stream, label_live_paths

_LOG = logging.getLogger("roadaware")
_FAULTS = {
    1: "has a box with a number that is not finite",
    2: "has a box with negative width or height (x1 > x2 or y1 > y2)",
    3: "has an agentness outside [0, 1]",
    4: "has a class score outside [0, 1]",
}


@dataclass(frozen=True, eq=False)
class Path:
    """Detections of one agent, as they were found: frames in between may be missing.

    Args:
        number: counts from 0 in the order in which paths began; never used again.
        frames: (n,) where it was found, ascending.
        rows: (n,) which row of its frame each detection was.
        boxes: (n, 4) x1, y1, x2, y2.
        agentness: (n,).
        scores: (n, c) class scores.
    """

    number: int
    frames: Ints
    rows: Ints
    boxes: Floats
    agentness: Floats
    scores: Floats32

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, eq=False)
class Update:
    """The paths that one frame began, continued and ended.

    Args:
        frame: its number.
        numbers: (n,) the path that each row belongs to now; -1 for rows that were not looked at, and for
            those on no path that may begin none.
        began: numbers of the paths that began.
        ended: the paths that closed, in the order of their closing, as they were found;
            `closing.closed` fills, sifts, labels and trims them as `link` does.
    """

    frame: int
    numbers: Ints
    began: tuple[int, ...]
    ended: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class LiveTubes:
    """The live paths at one moment, in their order; a copy.

    Args:
        number: (m,) of the path.
        first_frame: (m,) where it began.
        last_frame: (m,) where it was last found.
        count: (m,) detections so far.
        boxes: (m, 4) the last detection.
        agentness: (m,) mean over its detections.
        labels: (m, k) labels with the highest class scores so far, best first; -1 for none.
        label_scores: (m, k) those scores.
    """

    number: Ints
    first_frame: Ints
    last_frame: Ints
    count: Ints
    boxes: Floats
    agentness: Floats
    labels: Ints
    label_scores: Floats


class Linker:
    """Links the detections of one video, frame by frame.

    Args:
        config: how.
        n_scores: class scores per detection.
        l2_columns: how many of them the costs `ioul2` and `affinity` compare, from the first; default: all.
            The published builder compares those of the first kind.
        n_embedding: numbers in an embedding of a detection, which `affinity` compares; default: none.
        on_closed: called with each path that closes, in order.

    Source: Singh et al., TPAMI 2022, section 4.2; Singh et al., ICCV 2017.

    >>> linker = Linker(LinkerConfig.default(), n_scores=2)
    >>> for frame in range(3):
    ...     update = linker.update(frame, [[10 * frame, 0, 100 + 10 * frame, 50]], [0.9], [[0.8, 0.1]])
    >>> update.numbers.tolist(), [len(path) for path in linker.finish()]
    ([0], [3])
    """

    def __init__(
        self,
        config: LinkerConfig,
        n_scores: int,
        *,
        l2_columns: int | None = None,
        n_embedding: int = 0,
        on_closed: Callable[[Path], None] | None = None,
    ) -> None:
        self.config = config
        self._n_scores = n_scores
        self._n_embedding = n_embedding
        self._state = Stream(config, n_scores, n_scores if l2_columns is None else l2_columns, n_embedding)
        self._on_closed = on_closed
        self._frame: int | None = None
        self._time: float | None = None
        self._at = 0.0
        self._empty = (np.empty((0, 4)), np.empty(0), np.empty((0, n_scores), np.float32))

    def update(
        self,
        frame: int,
        boxes: npt.ArrayLike,
        agentness: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        t_s: float | None = None,
        embeddings: npt.ArrayLike | None = None,
        camera: npt.ArrayLike | None = None,
    ) -> Update:
        """Take the detections of the next frame; one that is refused leaves everything as it was.

        Args:
            frame: its number, greater than that of the last update.
            boxes: (n, 4) x1, y1, x2, y2.
            agentness: (n,) in [0, 1].
            scores: (n, c) class scores in [0, 1].
            t_s: its time in seconds; in every update or in none, and then a frame counts as 0.1 s.
            embeddings: (n, n_embedding) what each looks like; those of one agent point the same way.
            camera: (2, 3) affine map from the pixels of the last frame to those of this one, by which a
                moving camera is taken out of what is expected; default: it stands still.

        Raises:
            InputError: if frames or times do not increase, shapes do not fit, a number is not finite or
                out of range, or a box has a negative side.
            UsageError: if a camera is given and `config.motion` is not `kalman`.
        """
        frame, time = self._moment(frame, t_s)
        box, agent, score = self._detections(frame, boxes, agentness, scores)
        looks = self._looks(frame, embeddings, len(box))
        affine = None if camera is None else self._affine(frame, camera)
        self._announce_gap(frame, time)
        self._frame, self._time, self._at = frame, t_s, time
        if affine is not None:
            self._state.move_camera(affine)
        numbers = np.full(len(box), -1, np.int64)
        rows = select_usable(agent, self.config)
        if not len(rows) and not self.config.age_empty_frames:
            return Update(frame, numbers, (), ())
        if len(rows) < len(box):
            box, agent, score, looks = box[rows], agent[rows], score[rows], looks[rows]
        first = self._state.n_begun
        numbers[rows], closed = self._state.advance(frame, time, rows, box, agent, score, looks)
        return Update(frame, numbers, tuple(range(first, self._state.n_begun)), self._close(closed))

    def finish(self) -> tuple[Path, ...]:
        """Close every live path and return them, in their order; the next video starts afresh.

        Numbers go on where they were. For tubes as `link` gives them see `closing.closed`.
        """
        self._frame = self._time = None
        return self._close(self._state.end())

    @property
    def n_live(self) -> int:
        """How many paths live."""
        return self._state.n_live

    def live(self, columns: slice | None = None, k: int = 1) -> LiveTubes:
        """The live paths with their running labels.

        With the class score `mean` this costs the same however long the paths are.

        Args:
            columns: the class scores of one kind (see `scenes.dense_scores.Layout.columns`) (default: all).
            k: labels per path.
        """
        state, slots = self._state, self._state.slots
        chosen = range(self._n_scores)[columns or slice(None)]
        labels, values = label_live_paths(state, chosen, k, self.config)
        paths = state.live.paths[slots]
        return LiveTubes(
            number=state.numbers,
            first_frame=paths[:, FIRST_FRAME],
            last_frame=state.pool.found[paths[:, LAST], FRAME],
            count=paths[:, LENGTH],
            boxes=state.pool.box[paths[:, LAST]],
            agentness=state.live.total[slots] / paths[:, LENGTH],
            labels=labels,
            label_scores=values,
        )

    def path(self, number: int) -> Path:
        """All detections so far of a live path.

        Raises:
            InputError: if no live path has this number.
        """
        places = self._state.places(number)
        if not len(places):
            raise InputError(f"no live path has the number {number}")
        return self._gathered(number, places)

    def _close(self, closed: list[tuple[int, Ints]]) -> tuple[Path, ...]:
        """The closed paths as such; their places are free again."""
        paths = []
        for number, places in closed:
            paths.append(self._gathered(number, places))
            self._state.release(places)
        if self._on_closed is not None:
            for path in paths:
                self._on_closed(path)
        return tuple(paths)

    def _gathered(self, number: int, places: Ints) -> Path:
        pool = self._state.pool
        return Path(
            number=number,
            frames=pool.found[places, FRAME],
            rows=self._state.rows[places],
            boxes=pool.box[places],
            agentness=pool.agentness[places],
            scores=pool.scores[places],
        )

    def _moment(self, frame: int, t_s: float | None) -> tuple[int, float]:
        """Number and time of a frame, which go on from the last."""
        try:
            frame = operator.index(frame)
        except TypeError as error:
            raise InputError(f"a frame's number should be a whole number, not {frame!r}") from error
        if self._frame is None:
            if t_s is not None and not np.isfinite(t_s):
                raise InputError(f"frame {frame} has the time {t_s}, which is not finite")
            return frame, frame * FRAME_S if t_s is None else float(t_s)
        if frame <= self._frame:
            what = "comes twice" if frame == self._frame else f"comes after frame {self._frame}"
            raise InputError(
                f"frame {frame} {what}; frames should increase",
                hint="leave out frames that come late, or call finish() where a new video begins",
            )
        if (t_s is None) != (self._time is None):
            raise InputError(f"frame {frame}: give t_s for every frame of a video, or for none")
        if t_s is None or self._time is None:
            return frame, frame * FRAME_S
        if not (np.isfinite(t_s) and t_s > self._time):
            raise InputError(f"frame {frame} has the time {t_s}, the one before {self._time}; times increase")
        return frame, float(t_s)

    def _detections(
        self, frame: int, boxes: npt.ArrayLike, agentness: npt.ArrayLike, scores: npt.ArrayLike
    ) -> tuple[Floats, Floats, Floats32]:
        """The detections as arrays that fit each other, in the config's precision."""
        # Through 32 bits first: what the published builder compares is what a file stores.
        kept = np.float32 if self.config.single_precision else np.float64
        try:
            box = np.ascontiguousarray(np.asarray(boxes, dtype=kept), np.float64)
            agent = np.ascontiguousarray(np.asarray(agentness, dtype=kept), np.float64)
            # Writable too: kernels are compiled again for arrays that are not.
            score = np.require(scores, np.float32, ("C", "W", "E"))
        except (TypeError, ValueError) as error:
            raise InputError(f"frame {frame}: detections should be arrays of numbers: {error}") from error
        if not box.size and not agent.size and not score.size:
            return self._empty
        n = len(agent) if agent.ndim == 1 else -1
        if box.shape != (n, 4) or score.shape != (n, self._n_scores):
            raise InputError(
                f"frame {frame}: expected boxes (n, 4), agentness (n,) and scores (n, {self._n_scores}); "
                f"got {box.shape}, {agent.shape} and {score.shape}"
            )
        what, row = find_invalid_detection(box, agent, score)
        if what:
            raise InputError(
                f"frame {frame}: row {row} {_FAULTS[what]}",
                hint=f"box {box[row].tolist()}, agentness {agent[row]}",
            )
        return box, agent, score

    def _looks(self, frame: int, embeddings: npt.ArrayLike | None, n: int) -> Floats32:
        """The embeddings as an array that fits the detections; default: zeros, which say nothing."""
        if embeddings is None:
            return np.zeros((n, self._n_embedding), np.float32)
        try:
            looks: Floats32 = np.ascontiguousarray(embeddings, np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"frame {frame}: embeddings should be arrays of numbers: {error}") from error
        if not n and not looks.size:
            return np.zeros((0, self._n_embedding), np.float32)
        if looks.shape != (n, self._n_embedding):
            raise InputError(
                f"frame {frame}: expected embeddings ({n}, {self._n_embedding}); got {looks.shape}",
                hint="say Linker(n_embedding=...) how many numbers an embedding has",
            )
        if not np.isfinite(looks).all():
            raise InputError(f"frame {frame}: an embedding has a number that is not finite")
        return looks

    def _affine(self, frame: int, camera: npt.ArrayLike) -> Floats:
        """The camera's motion as an array."""
        if self.config.motion != "kalman":
            raise UsageError(f"camera motion is taken out of motion 'kalman', not of '{self.config.motion}'")
        try:
            affine = np.ascontiguousarray(camera, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"frame {frame}: camera should be an array of numbers: {error}") from error
        if affine.shape != (2, 3) or not np.isfinite(affine).all():
            raise InputError(f"frame {frame}: expected camera (2, 3), finite; got {affine.tolist()}")
        return affine

    def _announce_gap(self, frame: int, time: float) -> None:
        """Say that every path closes because too many frames did not arrive."""
        if self._frame is None or frame - self._frame <= self.config.jump_gap + 1:
            return
        late = time - self._at > self.config.jump_gap_s + ROUNDING_S
        if late and self.n_live and self.config.age_empty_frames:
            _LOG.info(
                "frames %d to %d did not arrive; %d paths close", self._frame + 1, frame - 1, self.n_live
            )


def select_usable(agentness: Floats, config: LinkerConfig) -> Ints:
    """Rows of a frame that are linked: the first `top_rows`, of those the ones above `min_score`.

    Args:
        agentness: (n,) in the order of the frame.
        config: of the linker.
    """
    # 0.025 in 32 bits is .0250000004: both sides of the comparison are rounded.
    low = float(np.float32(config.min_score)) if config.single_precision else config.min_score
    return np.flatnonzero(agentness[: config.top_rows] > low)
