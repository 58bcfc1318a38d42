"""link: the detections of a set become paths and labelled tubes in its tables, of a stream as of a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import HERE, Workers, map_parts
from roadaware.linking.config import FRAME_S, LinkerConfig
from roadaware.linking.linker import Path
from roadaware.linking.paths import (
    Detections,
    Paths,
    Segments,
    fill_gaps,
    gather,
    label_and_trim,
    link_video,
    select_strong_paths,
    select_usable_rows,
)
from roadaware.linking.postprocessing import suppress_overlapping_tubes
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

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

    def predicted(self) -> tuple[Ints, Ints]:
        """(p,) first frame, and frame after the last, that each path is assigned to."""
        frame, paths = self.detections.frame, self.paths
        start = frame[paths.firsts]
        return start, start + paths.lengths if self.squeezed else frame[paths.lasts] + 1

    def found(self, pieces: Segments) -> tuple[Ints, Ints]:
        """(s,) first frame, and frame after the last, in which each piece was found."""
        frame, paths = self.detections.frame, self.paths
        start = paths.ends[pieces.path]
        return frame[paths.rows[start + pieces.first]], frame[paths.rows[start + pieces.last]] + 1

    def predicted_pieces(self, pieces: Segments) -> tuple[Ints, Ints]:
        """(s,) first frame, and frame after the last, that each piece is assigned to."""
        if not self.squeezed:
            return self.found(pieces)
        start = self.predicted()[0][pieces.path]
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
        labelled = {
            kind: suppress_overlapping_tubes(found, paths, detections, config)
            for kind, found in labelled.items()
        }
    return Closing(kept, paths, detections, after, labelled, config.gaps == "squeeze")


def build_closed_paths(paths: Sequence[Path], config: LinkerConfig, kinds: Layout) -> tuple[ClosedPath, ...]:
    """The paths that a `Linker` ended, as `link` would write them, in their order; weak ones are left out.

    Close them as they end, or all at once: the outcome is the same, but where `tube_nms` is set. It compares
    the tubes of the paths that are given together; give it those of a whole video.

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
    tubes = _make_tubes(closing)
    rows = np.full(len(closing.detections), -1, np.int64)
    rows[:n] = np.concatenate([path.rows for path in paths])
    numbers = [path.number for path, kept in zip(paths, closing.kept.tolist(), strict=True) if kept]
    starts, stops = closing.predicted()
    facts = zip(numbers, starts.tolist(), stops.tolist(), closing.scores().tolist(), tubes, strict=True)
    return tuple(_path(closing, p, rows, *fact) for p, fact in enumerate(facts))


def _make_tubes(closing: Closing) -> list[tuple[Tube, ...]]:
    """The labelled tubes of each path."""
    tubes: list[list[Tube]] = [[] for _ in range(len(closing.paths))]
    for kind, pieces in closing.labelled.items():
        columns = (
            pieces.path,
            pieces.label,
            *closing.predicted_pieces(pieces),
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


def link(
    predictions: Predictions,
    config: LinkerConfig,
    *,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = HERE,
) -> Predictions:
    """The predictions with their detections linked to paths, and the paths labelled.

    Every detection keeps its row; `boxes.tube` names the path it belongs to, if any. Interpolated boxes
    stand behind them. Paths are tubes without parent, in the order in which they closed, video after video;
    behind them stand the labelled tubes, kind after kind in the order of the dense scores.

    Args:
        predictions: detections with `score` (agentness) and dense `scores`; the rows of a frame in the
            order of the detector. Videos are taken in the order of the videos table, if there is one.
        config: how.
        progress: called after each video with how many are done and how many there are.
        workers: where videos are linked, and how many at a time.

    Raises:
        InputError: if the detections are linked already, have no agentness, or a score is missing or
            outside [0, 1].

    Source: Singh et al., TPAMI 2022, section 4.2, and the released tube builder of 3D-RetinaNet.
    """
    kinds = get_score_layout(predictions.meta, "boxes")
    names, order, detections = _detections(predictions, kinds)
    # Published files hold 32 bits; digits behind them would decide what is a tie there.
    if config.single_precision:
        narrow = detections.agentness.astype(np.float32).astype(np.float64)
        detections = replace(detections, agentness=narrow)
    # The paths of all videos.
    used = select_usable_rows(detections, config)
    moments = _moments(predictions, names)
    place, n_paths = np.full(len(detections), -1, np.int64), 0
    bounds = np.searchsorted(detections.video, np.arange(len(names) + 1))
    first_kind = next(iter(kinds.kinds.values()), ())
    due, parts = list[tuple[int, int, int]](), list[tuple[Detections, Bools, Ints, Floats]]()
    for v, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if end > start:
            part = Detections(
                *(getattr(detections, name)[start:end] for name in Detections.__dataclass_fields__)
            )
            due.append((v, start, end))
            parts.append(
                (part, used[start:end], *_frames(names[v], part, used[start:end], moments.get(v), config))
            )
    with closing(
        map_parts(partial(_link_part, len(first_kind), config), parts, workers, in_order=True)
    ) as results:
        for each in results:
            v, start, end = due[each.place]
            found, count = each.require(names[v])
            place[start:end] = np.where(found >= 0, found + n_paths, -1)
            n_paths += count
            if progress is not None:
                progress(v + 1, len(names))
    if progress is not None and names and bounds[-1] == bounds[-2]:  # nothing is in the last video
        progress(len(names), len(names))
    paths = gather(place, n_paths)
    return _build_tubes(predictions, names, order, detections, paths, config)


def _link_part(
    n_labels: int, config: LinkerConfig, part: tuple[Detections, Bools, Ints, Floats]
) -> tuple[Ints, int]:
    detections, used, frames, times = part
    return link_video(detections, used, frames, times, n_labels, config)


def label_paths(predictions: Predictions, path: Ints, config: LinkerConfig) -> Predictions:
    """The predictions with tubes of paths that are known already, labelled as `link` labels its own.

    Args:
        predictions: detections with `score` and dense `scores`.
        path: (boxes,) number of the path of each box, from 0 on; -1 for none. A path lies in one video.
        config: how paths are labelled; it links nothing.

    Raises:
        InputError: as `link`.
    """
    names, order, detections = _detections(predictions, get_score_layout(predictions.meta, "boxes"))
    paths = gather(np.asarray(path, np.int64)[order], int(np.max(path, initial=-1)) + 1)
    return _build_tubes(predictions, names, order, detections, paths, config)


def _build_tubes(
    predictions: Predictions,
    names: list[str],
    order: Ints,
    detections: Detections,
    paths: Paths,
    config: LinkerConfig,
) -> Predictions:
    """The predictions with paths as tubes, and their labelled tubes."""
    closing = close(paths, detections, get_score_layout(predictions.meta, "boxes"), config)
    tubes, tube_labels = _tubes(names, closing)
    boxes = _boxes(predictions.boxes, order, closing, config)
    notes = {**predictions.meta.notes, "linker": to_dict(config)}
    return predictions.with_tables(
        boxes=boxes, tubes=tubes, tube_labels=tube_labels, meta=replace(predictions.meta, notes=notes)
    )


def _detections(predictions: Predictions, kinds: Layout) -> tuple[list[str], Ints, Detections]:
    """Names of the videos, the rows of `boxes` in order of videos and frames, and the detections so."""
    boxes = predictions.boxes
    if not predictions.tubes.is_empty():
        raise InputError(
            f"the predictions have {len(predictions.tubes)} tubes already",
            hint="link detections alone: clear the tables tubes and tube_labels, and the column boxes.tube",
        )
    if boxes.is_empty() and "score" not in boxes.columns:
        # A detector that found nothing leaves a table without columns that may lack.
        boxes = boxes.with_columns(pl.Series("score", [], pl.Float32))
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError("every box needs its agentness in boxes.score to be linked")
    names = [*predictions.videos["video"].cast(pl.String).to_list()]
    names += boxes["video"].cast(pl.String).unique(maintain_order=True).to_list()
    names = list(dict.fromkeys(names))
    video = boxes["video"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    frame = boxes["frame"].to_numpy().astype(np.int64)
    order = np.lexsort((frame, video))
    scores = np.zeros((len(boxes), 0), np.float32)
    if kinds.width and len(boxes):
        if "scores" not in boxes.columns:
            raise InputError("boxes have no dense scores, though meta names their kinds")
        # Kernels are compiled once more for arrays that cannot be written to.
        scores = np.require(convert_to_matrix(boxes["scores"], kinds.width), requirements=["C", "W"])
    low, high = (scores.min(), scores.max()) if scores.size else (0.0, 0.0)
    if not (low >= 0 and high <= 1):
        raise InputError(f"class scores should lie in [0, 1]; found {low:g} to {high:g}")
    sides = np.stack([boxes[side].to_numpy() for side in CORNERS], axis=1).astype(np.float64)
    agentness = boxes["score"].to_numpy().astype(np.float64)
    # Only where it is needed, since it copies every class score.
    if not np.array_equal(order, np.arange(len(order))):
        video, frame, sides = video[order], frame[order], sides[order]
        agentness, scores = agentness[order], scores[order]
    return names, order, Detections(video, frame, np.ascontiguousarray(sides), agentness, scores)


def _moments(predictions: Predictions, names: list[str]) -> dict[int, tuple[Ints, Floats]]:
    """Frames and times of each video as the frames table has them; times are NaN where unknown."""
    frames = predictions.frames
    if frames.is_empty():
        return {}
    known = pl.col("t_s").cast(pl.Float64) if "t_s" in frames.columns else pl.lit(None, pl.Float64)
    kept = frames.select(pl.col("video").cast(pl.String), "frame", t=known.fill_null(float("nan")))
    number = {name: v for v, name in enumerate(names)}
    found = {}
    for (name,), part in kept.sort("video", "frame").partition_by("video", as_dict=True).items():
        if name in number:
            found[number[str(name)]] = (
                part["frame"].to_numpy().astype(np.int64),
                part["t"].to_numpy().astype(np.float64),
            )
    return found


def _frames(
    name: str,
    detections: Detections,
    used: npt.NDArray[np.bool_],
    moments: tuple[Ints, Floats] | None,
    config: LinkerConfig,
) -> tuple[Ints, Floats]:
    """The frames that the linker goes through, and their times: seconds where all are known."""
    frames = np.unique(detections.frame if config.age_empty_frames else detections.frame[used])
    if moments is None:
        return frames, frames.astype(np.float64) * FRAME_S
    # Frames in which nothing was found age paths too; only the table of frames knows them.
    if config.age_empty_frames:
        frames = np.union1d(detections.frame, moments[0])
    at = np.minimum(np.searchsorted(moments[0], frames), len(moments[0]) - 1)
    times = np.where(moments[0][at] == frames, moments[1][at], np.nan)
    # One unknown time makes all of them count as frames: the two do not mix.
    if np.isnan(times).any():
        return frames, frames.astype(np.float64) * FRAME_S
    if (np.diff(times) <= 0).any():
        late = int(frames[1:][np.diff(times) <= 0][0])
        raise InputError(f"video {name}: the time t_s of frame {late} is not after that of the frame before")
    return frames, times


def _spans(starts: Ints, ends: Ints) -> pl.Series:
    """One [start, end) pair per tube as the tables hold it."""
    pairs = np.stack([starts, ends], axis=1).reshape(-1, 1, 2)
    spans = pl.Series("spans", pairs, dtype=pl.Array(pl.Int64, (1, 2)))
    return spans.arr.to_list().cast(pl.List(pl.List(pl.Int64)))


def _tubes(names: list[str], closing: Closing) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables tubes and tube_labels."""
    paths, detections = closing.paths, closing.detections
    video = pl.Series("video", names, dtype=pl.String).gather(detections.video[paths.firsts])
    start, end = closing.predicted()
    whole = pl.DataFrame(
        {
            "tube": np.arange(len(paths)),
            "video": video,
            "start_frame": start,
            "end_frame": end,
            "consecutive": pl.repeat(closing.squeezed, len(paths), eager=True, dtype=pl.Boolean),
            "score": closing.scores(),
        }
    )
    tables, labels, n = [whole], [], len(paths)
    for kind, found in closing.labelled.items():
        start, end = closing.predicted_pieces(found)
        tables.append(
            pl.DataFrame(
                {
                    "tube": np.arange(n, n + len(found)),
                    "video": video.gather(found.path),
                    "start_frame": start,
                    "end_frame": end,
                    "parent": found.path,
                    "kind": pl.repeat(kind, len(found), eager=True, dtype=pl.String),
                    "spans": _spans(*closing.found(found)),
                    "consecutive": pl.repeat(closing.squeezed, len(found), eager=True, dtype=pl.Boolean),
                    "score": np.clip(found.score, 0.0, 1.0),
                }
            )
        )
        labels.append(
            tables[-1].select("tube", "kind", pl.Series("label", found.label, dtype=pl.Int64), "score")
        )
        n += len(found)
    empty = pl.DataFrame(schema={"tube": pl.Int64, "kind": pl.String, "label": pl.Int64, "score": pl.Float64})
    return pl.concat(tables, how="diagonal_relaxed"), pl.concat([empty, *labels])


def _boxes(boxes: pl.DataFrame, order: Ints, closing: Closing, config: LinkerConfig) -> pl.DataFrame:
    """The boxes table: every detection where it was, with its path; behind them what was interpolated."""
    paths, detections, after, n_found = closing.paths, closing.detections, closing.after, len(boxes)
    tube = np.full(len(detections), -1, np.int64)
    tube[paths.rows] = np.repeat(np.arange(len(paths)), paths.lengths)
    own = np.empty(n_found, np.int64)
    own[order] = tube[:n_found]
    column = pl.Series("tube", own)
    boxes = boxes.with_columns(column.set(column < 0, None))
    if config.gaps != "interpolate":
        return boxes
    boxes = boxes.with_columns(interpolated=pl.lit(False))
    if not len(after):
        return boxes
    new = slice(n_found, None)
    kept = [name for name in ("video", "ready_s") if name in boxes.columns]
    number = int(boxes["box"].to_numpy().max()) + 1
    made = (
        boxes[order[after]]
        .select(kept)
        .with_columns(
            pl.Series("box", number + np.arange(len(after))),
            pl.Series("frame", detections.frame[new]),
            pl.Series("tube", tube[new]),
            *(
                pl.Series(side, detections.boxes[new, s]).cast(boxes.schema[side])
                for s, side in enumerate(CORNERS)
            ),
            pl.Series("score", detections.agentness[new], dtype=boxes.schema["score"]),
            interpolated=pl.lit(True),
        )
    )
    if "scores" in boxes.columns and detections.scores.shape[1]:
        width = detections.scores.shape[1]
        scores = pl.Series("scores", detections.scores[new], dtype=pl.Array(pl.Float32, width))
        made = made.with_columns(scores.cast(boxes.schema["scores"]))
    return pl.concat([boxes, made], how="diagonal")


def count_linked(tubes: Predictions) -> dict[str, Any]:
    """How much was linked to how much, JSON-ready.

    Args:
        tubes: as `link` gives them.
    """
    boxes, table = tubes.boxes, tubes.tubes
    paths = table.filter(pl.col("parent").is_null()) if "parent" in table.columns else table
    made = int(boxes["interpolated"].fill_null(False).sum()) if "interpolated" in boxes.columns else 0
    linked = len(boxes) - boxes["tube"].null_count() if "tube" in boxes.columns else 0
    found = {
        "videos": boxes["video"].n_unique(),
        "detections": len(boxes) - made,
        "linked detections": linked - made,
        "interpolated boxes": made,
        "paths": len(paths),
    }
    length = (pl.col("end_frame") - pl.col("start_frame")).median().cast(pl.Int64)
    kinds: dict[str, Any] = {}
    if not tubes.tube_labels.is_empty():
        joined = tubes.tube_labels.join(table.select("tube", "start_frame", "end_frame"), on="tube")
        kind = pl.col("kind").cast(pl.String)
        rows = joined.group_by(kind, maintain_order=True).agg(
            pl.len().alias("tubes"), pl.col("label").n_unique().alias("labels"), length.alias("length")
        )
        kinds = {row.pop("kind"): row for row in rows.to_dicts()}
    return {**found, "labelled tubes": kinds}
