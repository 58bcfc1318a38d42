"""Post-processing of closed paths: fill gaps, drop weak paths, assign labels, trim tubes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.labelling import Segments, label_and_trim
from roadaware.linking.linker import Path
from roadaware.linking.paths import Detections, Paths, fill_gaps, select_strong_paths
from roadaware.scenes.dense_scores import Layout

# Agentness says that there is somebody, which is no label of a tube.
_UNLABELLED = "agentness"


@dataclass(frozen=True)
class Tube:
    """A labelled tube: a path, or a stretch of it, as one label of a kind.

    Args:
        kind: of the label.
        label: its place among the labels of the kind.
        start_frame: the first frame that the tube is assigned to.
        end_frame: the frame after the last that it is assigned to.
        span: [start, end) frames in which its boxes were found; others than assigned where gaps are squeezed.
        score: of the label, in [0, 1].
    """

    kind: str
    label: int
    start_frame: int
    end_frame: int
    span: tuple[int, int]
    score: float


@dataclass(frozen=True, eq=False)
class ClosedPath:
    """A closed path with its interpolated boxes and its labelled tubes.

    Args:
        number: as the linker gave it.
        frames: (n,) ascending.
        rows: (n,) which row of its frame each detection was, -1 where it is interpolated.
        boxes: (n, 4) x1, y1, x2, y2.
        agentness: (n,).
        scores: (n, c) class scores.
        start_frame: the first frame that it is assigned to.
        end_frame: the frame after the last that it is assigned to.
        score: mean agentness.
        tubes: kind after kind, the best label first, segments of a label in time.
    """

    number: int
    frames: Ints
    rows: Ints
    boxes: Floats
    agentness: Floats
    scores: npt.NDArray[np.float32]
    start_frame: int
    end_frame: int
    score: float
    tubes: tuple[Tube, ...]

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, eq=False)
class Closing:
    """Paths that are over, as flat arrays.

    Args:
        kept: which of the paths that were given are not dropped.
        paths: those, without the gaps that were filled.
        detections: theirs; interpolated ones stand behind those found.
        after: (i,) for each interpolated one the detection that comes next in its path.
        labelled: the labelled pieces of the paths by kind.
        squeezed: whether they are assigned to frames without gaps, whatever frames they were found in.
    """

    kept: npt.NDArray[np.bool_]
    paths: Paths
    detections: Detections
    after: Ints
    labelled: dict[str, Segments]
    squeezed: bool

    def scores(self) -> Floats:
        """(p,) mean agentness of each path."""
        return np.clip(self.paths.means(self.detections.agentness), 0.0, 1.0)

    def claimed(self) -> tuple[Ints, Ints]:
        """(p,) first frame, and frame after the last, that each path is assigned to."""
        frame, paths = self.detections.frame, self.paths
        start = frame[paths.firsts]
        return start, start + paths.lengths if self.squeezed else frame[paths.lasts] + 1

    def found(self, pieces: Segments) -> tuple[Ints, Ints]:
        """(s,) first frame, and frame after the last, in which each piece was found."""
        frame, paths = self.detections.frame, self.paths
        start = paths.ends[pieces.path]
        return frame[paths.rows[start + pieces.first]], frame[paths.rows[start + pieces.last]] + 1

    def claimed_pieces(self, pieces: Segments) -> tuple[Ints, Ints]:
        """(s,) first frame, and frame after the last, that each piece is assigned to."""
        if not self.squeezed:
            return self.found(pieces)
        start = self.claimed()[0][pieces.path]
        return start + pieces.first, start + pieces.last + 1


def close(paths: Paths, detections: Detections, kinds: Layout, config: LinkerConfig) -> Closing:
    """Drop weak paths, fill the gaps of the others, label them and trim their tubes.

    Args:
        paths: of a linker, in the order of their closing.
        detections: theirs.
        kinds: what the class scores stand for.
        config: of the linker.
    """
    # Before gaps are filled: interpolated boxes would make a weak path look long.
    kept = select_strong_paths(paths, detections, config)
    paths, after = paths.only(kept), np.empty(0, np.int64)
    if config.gaps == "interpolate":
        paths, detections, after = fill_gaps(paths, detections)
    labelled = {
        kind: label_and_trim(paths, detections, range(kinds.width)[kinds.columns(kind)], config)
        for kind in kinds.kinds
        if kind != _UNLABELLED
    }
    # Last, since it compares whole tubes with each other.
    if config.tube_nms is not None:
        from roadaware.linking.suppression import suppress_overlapping_tubes

        labelled = {
            kind: suppress_overlapping_tubes(found, paths, detections, config)
            for kind, found in labelled.items()
        }
    return Closing(kept, paths, detections, after, labelled, config.gaps == "squeeze")


def build_closed_paths(paths: Sequence[Path], config: LinkerConfig, kinds: Layout) -> tuple[ClosedPath, ...]:
    """The paths that a `Linker` ended, as `link` would write them, in their order; weak ones are left out.

    Close them as they end, or all at once: the outcome is the same, but where `tube_nms` is set. It compares
    the tubes of the paths that are given together; give it those of a whole video.

    Args:
        paths: of one video.
        config: of the linker.
        kinds: what the class scores stand for.

    Raises:
        UsageError: if the paths have another number of class scores than `kinds`.

    Source: as `link`.
    """
    if not paths:
        return ()
    width = paths[0].scores.shape[1]
    if width != kinds.width:
        raise UsageError(f"the paths have {width} class scores, and the kinds {kinds.width} labels")
    ends = np.cumsum([0, *(len(path) for path in paths)])
    n = int(ends[-1])
    detections = Detections(
        np.zeros(n, np.int64),
        np.concatenate([path.frames for path in paths]),
        np.concatenate([path.boxes for path in paths]),
        np.concatenate([path.agentness for path in paths]),
        np.concatenate([path.scores for path in paths]),
    )
    closing = close(Paths(np.arange(n), ends), detections, kinds, config)
    tubes = _tubes(closing)
    rows = np.full(len(closing.detections), -1, np.int64)
    rows[:n] = np.concatenate([path.rows for path in paths])
    numbers = [path.number for path, kept in zip(paths, closing.kept.tolist(), strict=True) if kept]
    starts, stops = closing.claimed()
    facts = zip(numbers, starts.tolist(), stops.tolist(), closing.scores().tolist(), tubes, strict=True)
    return tuple(_path(closing, p, rows, *fact) for p, fact in enumerate(facts))


def _tubes(closing: Closing) -> list[tuple[Tube, ...]]:
    """The labelled tubes of each path."""
    tubes: list[list[Tube]] = [[] for _ in range(len(closing.paths))]
    for kind, pieces in closing.labelled.items():
        columns = (
            pieces.path,
            pieces.label,
            *closing.claimed_pieces(pieces),
            *closing.found(pieces),
            np.clip(pieces.score, 0.0, 1.0),
        )
        for path, label, start, end, low, high, score in zip(*(c.tolist() for c in columns), strict=True):
            tubes[path].append(Tube(kind, label, start, end, (low, high), score))
    return [tuple(found) for found in tubes]


def _path(
    closing: Closing,
    p: int,
    rows: Ints,
    number: int,
    start: int,
    end: int,
    score: float,
    tubes: tuple[Tube, ...],
) -> ClosedPath:
    """One of the paths by itself."""
    at = closing.paths.rows[closing.paths.ends[p] : closing.paths.ends[p + 1]]
    own = closing.detections
    return ClosedPath(
        number=number,
        frames=own.frame[at],
        rows=rows[at],
        boxes=own.boxes[at],
        agentness=own.agentness[at],
        scores=own.scores[at],
        start_frame=start,
        end_frame=end,
        score=score,
        tubes=tubes,
    )
