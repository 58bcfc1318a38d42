"""Ground truth and predictions as arrays: labelled tubes, and the boxes of judged frames in pixels of one size."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import Tubes, from_runs
from roadaware.scenes.concatenation import get_image_sizes
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

if TYPE_CHECKING:
    from roadaware.metrics.detection.config import DetectionConfig

Class = tuple[str, str]

AGENTNESS = "agentness"
OF_FRAMES = "av_action"
_LOG = logging.getLogger("roadaware")
_OPTIONAL: dict[str, pl.DataType] = {
    "parent": pl.Int64(),
    "kind": pl.String(),
    "spans": pl.List(pl.List(pl.Int64())),
    "consecutive": pl.Boolean(),
    "start_frame": pl.Int64(),
    "end_frame": pl.Int64(),
    "score": pl.Float64(),
}


@dataclass(frozen=True, eq=False)
class LabelledTubes:
    """Tubes with their labels, one row for each label of a tube, in the order of the table of tubes.

    Args:
        tubes: the distinct extents in space and time; tubes of several classes share one.
        extent: (n,) which of `tubes`.
        tube: (n,) number in the table.
        cls: (n,) index in the classes that were asked for.
        video: (n,) index in the videos that were asked for.
        score: (n,) confidence; NaN for ground truth.
        ignore: (m,) of `tubes.boxes`, whether predictions on it are neither right nor wrong; None where on all
            they are.
        left_out: rows that are not here, because they lie in videos that were not asked for.
    """

    tubes: Tubes
    extent: Ints
    tube: Ints
    cls: Ints
    video: Ints
    score: Floats
    ignore: Bools | None = None
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.tube)

    @property
    def ignored(self) -> Bools:
        """(extents,) which of `tubes` have boxes, all of them to ignore."""
        if self.ignore is None:
            return np.zeros(len(self.tubes), dtype=np.bool_)
        owner = np.repeat(np.arange(len(self.tubes)), self.tubes.lengths)
        asked = np.bincount(owner[~self.ignore[self.tubes.rows]], minlength=len(self.tubes))
        nothing: Bools = (asked == 0) & (self.tubes.lengths > 0)
        return nothing

    def only(self, kept: Bools) -> LabelledTubes:
        """Some of the rows, of the same extents.

        Args:
            kept: (n,).
        """
        columns = {name: getattr(self, name)[kept] for name in ("extent", "tube", "cls", "video", "score")}
        return replace(self, **columns)


def list_tube_classes(scenes: Scenes, kinds: Sequence[str]) -> tuple[Class, ...]:
    """The (kind, label) of every class of the kinds, by name, in the order of the vocabularies.

    Raises:
        UsageError: if a kind has no vocabulary.
    """
    named = {AGENTNESS: (AGENTNESS,), **scenes.meta.vocabularies}
    unknown = [kind for kind in kinds if kind not in named]
    if unknown:
        raise UsageError(f"no labels of kind {', '.join(unknown)}; there are {', '.join(named)}")
    return tuple((kind, label) for kind in kinds for label in named[kind])


def select_paths(tables: TableSet) -> pl.DataFrame:
    """The tubes of agents, whatever their labels: those without parent and kind.

    Where no ground-truth tube is without kind, all that have no parent are. Predictions with a kind are never: somebody
    is predicted once for each label there, with the score of the label.
    """
    tubes = _tubes(tables).filter(pl.col("parent").is_null() & pl.col("kind").ne_missing(OF_FRAMES))
    plain = tubes.filter(pl.col("kind").is_null())
    return plain if isinstance(tables, Predictions) or not plain.is_empty() else tubes


def extract_labelled_tubes(
    tables: TableSet,
    classes: Sequence[Class],
    videos: Sequence[str],
    scale: Floats,
    *,
    scored: bool = True,
) -> LabelledTubes:
    """The tubes of some classes in some videos; predictions in other videos are left out, and counted in the log.

    Args:
        tables: ground truth or predictions. Tubes of agentness are the paths; the others are those with a label, whose
            boxes are their parent's within their spans, or their own.
        classes: (kind, label) by name; labels are remapped by name from the vocabularies of `tables`.
        videos: the videos that count.
        scale: (V, 4) what the boxes of each of the videos are multiplied by.
        scored: whether every prediction needs a score.

    Raises:
        InputError: if a tube has a frame twice, names a parent that has one itself, has a label that is
            not among the classes, or is predicted without score.
    """
    labels = _labels(tables, classes)
    judged = pl.DataFrame(
        {"video": list(videos), "at": np.arange(len(videos))}, schema={"video": pl.String, "at": pl.Int64}
    )
    rows = _tubes(tables).join(judged, on="video", how="left", maintain_order="left")
    rows = rows.join(labels, on="tube", how="inner", maintain_order="left")
    foreign = rows["at"].null_count()
    if foreign:
        names = rows.filter(pl.col("at").is_null())["video"].unique().sort().head(5).to_list()
        _LOG.info("%d labelled tubes lie in videos that are not judged, such as %s", foreign, names)
        rows = rows.filter(pl.col("at").is_not_null())
    rows = rows.with_columns(score=pl.coalesce("label_score", "score"))
    if scored and isinstance(tables, Predictions) and rows["score"].null_count():
        shown = rows.filter(pl.col("score").is_null())["tube"].head(5).to_list()
        raise InputError(f"{rows['score'].null_count()} predicted tubes have no score, first {shown}")
    tubes, extent, ignore = _extents(tables, rows, judged, scale)
    score = rows["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    # Writable like the rows that are taken from them: kernels are compiled for each kind of array.
    tube, cls, video = (rows[name].cast(pl.Int64).to_numpy(writable=True) for name in ("tube", "cls", "at"))
    return LabelledTubes(tubes, extent, tube, cls, video, score, ignore, foreign)


def _tubes(tables: TableSet) -> pl.DataFrame:
    """The table of tubes with every column that is asked for, and who owns the boxes of each."""
    frame = tables.tubes.with_columns(pl.col("video").cast(pl.String))
    missing = [pl.lit(None, dtype=d).alias(c) for c, d in _OPTIONAL.items() if c not in frame.columns]
    frame = frame.with_columns(missing).with_columns(pl.col("kind").cast(pl.String))
    derived = frame.filter(pl.col("parent").is_not_null())
    nested = derived.filter(pl.col("parent").is_in(derived["tube"].implode()))
    if len(nested):
        raise InputError(
            f"table tubes: {len(nested)} tubes are cut from a tube that is cut itself, first "
            f"{nested['tube'].head(5).to_list()}",
            hint="let every tube name the one that owns the boxes as its parent",
        )
    return frame.select("tube", "video", *_OPTIONAL, owner=pl.coalesce("parent", "tube"))


def _labels(tables: TableSet, classes: Sequence[Class]) -> pl.DataFrame:
    """`tube`, `cls` and `label_score`, one row per label of a tube."""
    index = {named: at for at, named in enumerate(classes)}
    kinds = dict.fromkeys(kind for kind, _ in classes)
    found = [pl.DataFrame(schema={"tube": pl.Int64, "cls": pl.Int64, "label_score": pl.Float64})]
    labels = tables.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    score = pl.col("score") if "score" in labels.columns else pl.lit(None)
    for kind in kinds:
        if kind == AGENTNESS:
            cls = next(at for at, named in enumerate(classes) if named[0] == AGENTNESS)
            bare = select_paths(tables).select("tube", cls=pl.lit(cls, dtype=pl.Int64))
            found.append(bare.with_columns(label_score=pl.lit(None, dtype=pl.Float64)))
            continue
        held = labels.filter(pl.col("kind") == kind).select("tube", "label", score.alias("label_score"))
        if held.is_empty():
            continue
        mapped = _map_labels(tables, kind, held["label"], index)
        held = held.select("tube", mapped.alias("cls"), pl.col("label_score").cast(pl.Float64))
        found.append(held)
    return pl.concat(found)


def _map_labels(tables: TableSet, kind: str, labels: pl.Series, index: dict[Class, int]) -> pl.Series:
    """The class of each label, by name."""
    names = tables.meta.vocabularies.get(kind)
    if names is None:
        raise InputError(f"tubes are labelled with '{kind}', of which meta holds no vocabulary")
    used = labels.unique().sort().to_list()
    unknown = [names[label] for label in used if (kind, names[label]) not in index]
    if unknown:
        raise InputError(
            f"tubes are labelled with {kind} {unknown[:5]}, which the vocabulary of the truth does not know",
            hint=f"it knows {[label for k, label in index if k == kind][:20]}",
        )
    return labels.replace_strict({label: index[kind, names[label]] for label in used}, return_dtype=pl.Int64)


def _extents(
    tables: TableSet, rows: pl.DataFrame, videos: pl.DataFrame, scale: Floats
) -> tuple[Tubes, Ints, Bools | None]:
    """The distinct extents of the tubes in `rows`, which of them each row has, and which boxes to ignore."""
    tubes = rows.unique("tube", maintain_order=True)
    boxes, owners, frames, ignore = _owned_boxes(tables, videos, scale)
    runs, at = _runs(tubes, owners, frames)
    start = tubes.select(
        start=pl.when(pl.col("consecutive").fill_null(False))
        .then(pl.col("start_frame").fill_null(-2))
        .otherwise(-1)
    ).to_series()
    if (start == -2).any():
        first = tubes["tube"].filter(start == -2)[0]
        raise InputError(f"tube {first} is predicted for consecutive frames and has no start_frame")
    shift = start.to_numpy().astype(np.int64)
    several = np.bincount(at, minlength=len(tubes)) > 1
    firsts = np.searchsorted(at, np.arange(len(tubes)))
    # Tubes with the same single run and start are one extent, compared once for all their labels; those of
    # several spans stay by themselves.
    same = np.column_stack([runs[firsts], shift, np.where(several, np.arange(len(tubes)), -1)])
    _, kept, extent = np.unique(same, axis=0, return_index=True, return_inverse=True)
    extent = extent.reshape(-1)
    chosen = np.flatnonzero(np.isin(at, kept))
    place = extent[at[chosen]]
    order = np.argsort(place, kind="stable")
    video = tubes["at"].to_numpy().astype(np.int64)[kept]
    try:
        made = from_runs(boxes, frames, runs[chosen][order], place[order], video, shift[kept])
    except ValueError as error:
        tube = tubes["tube"][int(kept[error.args[1]])]
        raise InputError(
            f"table tubes: the spans of tube {tube} overlap, so that a frame lies in two"
        ) from error
    row_of = pl.DataFrame({"tube": tubes["tube"], "extent": extent})
    joined = rows.select("tube").join(row_of, on="tube", how="left", maintain_order="left")
    return made, joined["extent"].cast(pl.Int64).to_numpy(writable=True), ignore


def _runs(tubes: pl.DataFrame, owners: Ints, frames: Ints) -> tuple[Ints, Ints]:
    """(r, 2) rows of boxes of each span, and (r,) the row of `tubes` of each, spans of a tube in order."""
    end = int(frames.max(initial=0)) + 1
    part = pl.col("parent").is_not_null() & ~pl.col("consecutive").fill_null(False)
    whole = {
        name: pl.when(part).then(edge).fill_null(rest)
        for name, edge, rest in (("low", "start_frame", 0), ("high", "end_frame", end))
    }
    nowhere = pl.lit([[0, 0]], dtype=_OPTIONAL["spans"])
    given = pl.when(pl.col("spans").list.len() == 0).then(nowhere).otherwise("spans")
    spans = tubes.select("owner", spans=given, **whole).with_row_index("at").explode("spans")
    spans = spans.with_columns(
        first=pl.coalesce(pl.col("spans").list.get(0), "low"),
        last=pl.coalesce(pl.col("spans").list.get(1), "high"),
    ).sort("at", "first", maintain_order=True)
    # Clipped, so that a span beyond the last frame does not reach the keys of the next owner.
    first, last = (spans[c].to_numpy().clip(0, end) for c in ("first", "last"))
    known, begin = np.unique(owners, return_index=True)
    owner = spans["owner"].to_numpy()
    place = np.searchsorted(known, owner)
    owned = np.isin(owner, known)
    # Boxes are sorted by owner and frame, so one number orders them and finds both ends of a span.
    key = np.repeat(np.arange(len(known)), np.diff([*begin, len(owners)])) * (end + 1) + frames
    runs = np.column_stack([np.searchsorted(key, place * (end + 1) + edge) for edge in (first, last)])
    runs[~owned] = 0
    return runs.astype(np.int64), spans["at"].to_numpy().astype(np.int64)


def _owned_boxes(
    tables: TableSet, videos: pl.DataFrame, scale: Floats
) -> tuple[Floats, Ints, Ints, Bools | None]:
    """Boxes that a tube owns, by tube and frame: (m, 4) scaled, tubes, frames, and which are to ignore."""
    boxes = tables.boxes
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, dtype=pl.Int64))
    boxes = boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame", maintain_order=True)
    again = boxes.filter((pl.col("tube").diff() == 0) & (pl.col("frame").diff() == 0))
    if len(again):
        shown = again.select("tube", "video", "frame").head(5).rows(named=True)
        raise InputError(f"table boxes: {len(again)} tubes have a frame twice, first {shown}")
    edges = boxes.select(CORNERS).cast(pl.Float64).to_numpy()
    at = boxes.select(pl.col("video").cast(pl.String)).join(
        videos, on="video", how="left", maintain_order="left"
    )
    # Boxes in videos that are not asked for find the last row: factors of 1.
    factors = np.vstack([scale, np.ones((1, 4))])[at["at"].fill_null(len(scale)).to_numpy()]
    ignore = None
    if "ignore" in boxes.columns and boxes["ignore"].any():
        ignore = boxes["ignore"].fill_null(value=False).to_numpy().astype(np.bool_)
    return edges * factors, boxes["tube"].to_numpy(), boxes["frame"].to_numpy(), ignore


T = TypeVar("T", Scenes, Predictions)


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors that bring boxes to a common image size before they are compared.

    Args:
        truth: (V, 4) factors of x1, y1, x2, y2 of the ground truth's boxes in each video.
        predictions: (V, 4) the same for the predictions.
    """

    truth: Floats
    predictions: Floats


def compute_scales(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> Scales:
    """Bring both to `config.frame_size_px`, or the predictions to the ground truth's own pixels where that is None.

    Args:
        predictions: whose `videos` say in which image size boxes are given; the ground truth's where they do not.
        scenes: whose `videos` say the same of the ground truth.
        videos: (V,) the videos asked for.
        config: with `frame_size_px`.

    Raises:
        InputError: if the size of a video is needed and not known.
    """
    truth, predicted, target = _validate_sizes(predictions, scenes, videos, config)
    same = np.isnan(truth[:, :1])
    return Scales(*(np.tile(np.where(same, 1.0, target / size), 2) for size in (truth, predicted)))


def scale_to_common_size(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> tuple[Predictions, Scenes, Scales]:
    """Predictions and ground truth, and the factors still to be applied to their boxes.

    In single precision that is nothing: boxes are divided by the size of their image and multiplied by
    the other one, each rounded to 32 bits, as the published code does; those that are in pixels of it
    stay as they are. Arguments and errors as `compute_scales`.
    """
    if config.numbers == "double":
        return predictions, scenes, compute_scales(predictions, scenes, videos, config)
    truth, predicted, target = _validate_sizes(predictions, scenes, videos, config)
    ones = np.ones((len(videos), 4))
    held = _in_single(predictions, predicted, target, videos), _in_single(scenes, truth, target, videos)
    return *held, Scales(ones, ones)


def _in_single(tables: T, own: Floats, target: Floats, videos: Sequence[str]) -> T:
    """The tables with boxes brought to a size by 32-bit arithmetic."""
    boxes = tables.boxes
    at = find_video_index(boxes["video"], videos)
    target = np.broadcast_to(target, own.shape)
    # Boxes in unknown videos, at -1, find the last row: sizes of 1.
    sizes = [np.vstack([np.tile(size, 2), np.ones((1, 4))])[at].astype(np.float32) for size in (own, target)]
    corners = boxes.select(CORNERS).cast(pl.Float32).to_numpy()
    # Only where sizes differ: divided and multiplied by one number, 32 bits do not always give back the same.
    moved = np.where((sizes[0] == sizes[1]) | np.isnan(sizes[0]), corners, corners / sizes[0] * sizes[1])
    return tables.with_tables(
        boxes=boxes.with_columns(pl.Series(name, moved[:, k]) for k, name in enumerate(CORNERS))
    )


def _validate_sizes(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> tuple[Floats, Floats, Floats]:
    """(V, 2) sizes of ground truth and predictions, NaN where they are the same and unknown; and what they become."""
    truth, predicted = _sizes(scenes, videos), _sizes(predictions, videos)
    predicted = np.where(np.isnan(predicted), truth, predicted)
    target = truth if config.frame_size_px is None else np.array([config.frame_size_px], dtype=np.float64)
    unknown = np.isnan(truth[:, 0])
    same = unknown & np.isnan(predicted[:, 0])
    lost = unknown if config.frame_size_px is not None else unknown & ~same
    if lost.any():
        names = [videos[k] for k in np.flatnonzero(lost)[:5]]
        raise InputError(
            f"the image size of {int(lost.sum())} videos of the truth is not known, first {names}",
            hint="boxes are compared in pixels of one size: fill width_px and height_px in videos, or set "
            "frame_size_px to null where truth and predictions are in the same pixels",
        )
    return truth, predicted, target


def _sizes(tables: TableSet, videos: Sequence[str]) -> Floats:
    """(V, 2) width and height, NaN where not known."""
    known = get_image_sizes(tables)
    sizes = [known.get(video, (np.nan, np.nan)) for video in videos]
    return np.array(sizes, dtype=np.float64).reshape(-1, 2)


_MADE_UP = -3


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of some videos, by video and number, and which of them are judged.

    Args:
        videos: (V,) their names, in the order of the table.
        key: (F,) video and frame as one rising number.
        stride: what a video adds to the key.
        annotated: (F,) whether somebody annotated it.
    """

    videos: tuple[str, ...]
    key: Ints
    stride: int
    annotated: Bools

    @property
    def judged(self) -> Ints:
        """(J,) keys of the judged frames."""
        return self.key[self.annotated]

    @property
    def judged_video(self) -> npt.NDArray[np.int32]:
        """(J,) index of the video of each judged frame."""
        return (self.judged // self.stride).astype(np.int32)

    def keys(self, rows: pl.DataFrame) -> Ints:
        """(n,) the key of the frame of each row; -1 where the video is not among these, -2 the frame."""
        video, frame = find_video_index(rows["video"], self.videos), rows["frame"].to_numpy()
        # A frame beyond all known ones would take the key of a frame of the next video.
        keys = np.where(frame < self.stride, video * self.stride + frame, -2)
        return np.where(video < 0, -1, np.where(is_in_sorted(self.key, keys), keys, -2))


@dataclass(frozen=True, eq=False)
class TrueBoxes:
    """The ground-truth boxes of judged frames.

    Args:
        box: (m,) their numbers, by judged frame and then in the order of the table.
        row: (m,) their rows in the table.
        start: (J + 1,) where the boxes of each judged frame start.
        edges: (m, 4) x1, y1, x2, y2.
        ignore: (m,) whether predictions on it are neither right nor wrong.
        members: for each class the places of the boxes that have it.
    """

    box: Ints
    row: Ints
    start: Ints
    edges: Floats
    ignore: Bools
    members: tuple[Ints, ...]


@dataclass(frozen=True, eq=False)
class PredictedBoxes:
    """The predicted boxes of judged frames.

    Args:
        row: (n,) their rows in the table, by judged frame and then in the order of the table.
        frame: (n,) index of the judged frame.
        edges: (n, 4) x1, y1, x2, y2.
        columns: class to the predictions that speak of it, None for all, and their scores.
        left_out: where the predictions lie that are not judged, in words, to how many.
        interpolated: how many were interpolated between two detections, and are not judged.
    """

    row: Ints
    frame: Ints
    edges: Floats
    columns: Mapping[int, tuple[Ints | None, npt.NDArray[Any]]]
    left_out: Mapping[str, int]
    interpolated: int = 0


def collect_frames(scenes: Scenes) -> Frames:
    """The frames of the scenes.

    Raises:
        InputError: if it is not known which frames were annotated.
    """
    if "annotated" not in scenes.frames.columns:
        raise InputError(
            "the truth does not say which frames were annotated, so no prediction can be called wrong",
            hint="fill the column `annotated` of the table of frames; true everywhere if all were",
        )
    videos = tuple(scenes.videos["video"].cast(pl.String).to_list())
    number = scenes.frames["frame"].to_numpy()
    stride = int(number.max()) + 1 if len(number) else 1
    key = find_video_index(scenes.frames["video"], videos) * stride + number
    order = np.argsort(key, kind="stable")
    annotated = scenes.frames["annotated"].fill_null(value=False).to_numpy()
    return Frames(videos, key[order], stride, annotated[order])


def extract_true_boxes(scenes: Scenes, classes: Sequence[Class], frames: Frames, scale: Floats) -> TrueBoxes:
    """The ground-truth boxes of the judged frames.

    Args:
        scenes: with boxes and labels.
        classes: (C,) kind and label; every box is of agentness.
        frames: the frames of the scenes.
        scale: (V, 4) what boxes are multiplied with.
    """
    keys = frames.keys(scenes.boxes)
    row, frame = _by_frame(keys, frames.judged)
    boxes = scenes.boxes[row] if len(row) < len(scenes.boxes) or (np.diff(row) < 0).any() else scenes.boxes
    ignore = (
        boxes["ignore"].fill_null(value=False) if "ignore" in boxes.columns else np.zeros(len(boxes), bool)
    )
    return TrueBoxes(
        boxes["box"].to_numpy(),
        row,
        np.searchsorted(frame, np.arange(len(frames.judged) + 1)),
        _edges(boxes) * scale[frames.judged_video[frame]],
        np.asarray(ignore, dtype=np.bool_),
        _members(scenes, boxes["box"], classes),
    )


def extract_predicted_boxes(
    predictions: Predictions,
    classes: Sequence[Class],
    frames: Frames,
    scale: Floats,
    *,
    interpolated: bool,
) -> PredictedBoxes:
    """The predicted boxes of the judged frames, and the number of predictions in other frames.

    Args:
        predictions: with boxes; `score` is that of agentness, `scores` those of the kinds in its layout;
            kinds without dense scores are read from `labels`.
        classes: (C,) kind and label, by name.
        frames: the frames of the ground truth.
        scale: (V, 4) what boxes are multiplied with.
        interpolated: whether boxes that were interpolated between two detections are judged.

    Raises:
        InputError: if a score is missing, or is of a label that the classes do not have.
    """
    keys = frames.keys(predictions.boxes)
    if not interpolated and "interpolated" in predictions.boxes.columns:
        keys[predictions.boxes["interpolated"].fill_null(value=False).to_numpy()] = _MADE_UP
    row, frame = _by_frame(keys, frames.judged)
    whole = len(row) == len(predictions.boxes) and not (np.diff(row) < 0).any()
    boxes = predictions.boxes if whole else predictions.boxes[row]
    names = {-1: "in videos that the truth does not have", -2: "in frames that the truth does not have"}
    left_out = {what: int((keys == code).sum()) for code, what in names.items()}
    made_up = int((keys == _MADE_UP).sum())
    left_out["in frames that were not annotated"] = len(keys) - len(row) - sum(left_out.values()) - made_up
    return PredictedBoxes(
        row,
        frame,
        _edges(boxes) * scale[frames.judged_video[frame]],
        _columns(predictions, boxes, classes),
        {what: n for what, n in left_out.items() if n},
        made_up,
    )


def find_video_index(video: pl.Series, videos: Sequence[str]) -> Ints:
    """(n,) the place of each name among the videos, -1 where it is not there."""
    known = pl.Series(list(videos), dtype=pl.String)
    places = pl.DataFrame({"video": known, "at": np.arange(len(videos))})
    named = video.cast(pl.String).to_frame("video")
    joined = named.join(places, on="video", how="left", maintain_order="left")
    return joined["at"].fill_null(-1).to_numpy()


def is_in_sorted(keys: Ints, values: Ints) -> Bools:
    """(n,) whether each value is among the rising keys."""
    if not len(keys):
        return np.zeros(len(values), dtype=np.bool_)
    # What is above all keys has its place behind the last one.
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    hits: Bools = keys[at] == values
    return hits


def _by_frame(keys: Ints, judged: Ints) -> tuple[Ints, Ints]:
    """The rows of judged frames, by frame and then by row, and the index of the judged frame of each."""
    row = np.flatnonzero(is_in_sorted(judged, keys))
    frame = np.searchsorted(judged, keys[row])
    if (np.diff(frame) < 0).any():
        order = np.argsort(frame, kind="stable")
        row, frame = row[order], frame[order]
    return row, frame.astype(np.int64)


def _edges(boxes: pl.DataFrame) -> Floats:
    return np.ascontiguousarray(boxes.select(CORNERS).cast(pl.Float64).to_numpy().reshape(-1, 4))


def _members(scenes: Scenes, box: pl.Series, classes: Sequence[Class]) -> tuple[Ints, ...]:
    """For each class the places of the boxes that have it."""
    place = pl.DataFrame({"box": box, "place": np.arange(len(box))})
    rows = _label_rows(scenes, classes).join(place, on="box", how="inner").sort("class", "place")
    start = np.searchsorted(rows["class"].to_numpy(), np.arange(len(classes) + 1))
    places = rows["place"].to_numpy()
    everybody = np.arange(len(box))
    return tuple(
        everybody if kind == AGENTNESS else places[start[c] : start[c + 1]]
        for c, (kind, _) in enumerate(classes)
    )


def _label_rows(tables: TableSet, classes: Sequence[Class]) -> pl.DataFrame:
    """`box`, `class`, and `score` where there is one, of the labels that are of the classes."""
    table = build_class_index(tables, classes)
    kinds = table["kind"].unique().to_list()
    labels = tables.labels.with_columns(pl.col("kind").cast(pl.String)).filter(pl.col("kind").is_in(kinds))
    return labels.join(table, on=["kind", "label"], how="inner", maintain_order="left")


def build_class_index(tables: TableSet, classes: Sequence[Class]) -> pl.DataFrame:
    """`kind`, `label` (index in the vocabularies of the tables) and `class` (index in the classes).

    Raises:
        InputError: if the tables know labels of these kinds that the classes do not have.
    """
    places = {named: c for c, named in enumerate(classes)}
    kinds = [kind for kind in dict.fromkeys(kind for kind, _ in classes) if kind != AGENTNESS]
    rows = [
        (kind, index, places.get((kind, label)), label)
        for kind in kinds
        for index, label in enumerate(tables.meta.vocabularies.get(kind, ()))
    ]
    unknown = [f"{kind} '{label}'" for kind, _, place, label in rows if place is None]
    if unknown:
        raise InputError(
            f"{len(unknown)} labels are predicted that the truth does not know, first {', '.join(unknown[:5])}",
            hint="labels are compared by name: rename them to those of the truth, or leave them out",
        )
    schema = {"kind": pl.String, "label": pl.Int64, "class": pl.Int64}
    return pl.DataFrame([row[:3] for row in rows], schema=schema, orient="row")


def _columns(
    predictions: Predictions, boxes: pl.DataFrame, classes: Sequence[Class]
) -> dict[int, tuple[Ints | None, npt.NDArray[Any]]]:
    """Class to its predictions and their scores; classes that nothing is predicted of are absent."""
    columns: dict[int, tuple[Ints | None, npt.NDArray[Any]]] = {}
    kinds = get_score_layout(predictions.meta, "boxes") if "scores" in boxes.columns else None
    if kinds is not None:
        scores = convert_dense_scores(boxes["scores"], kinds.width)
        for kind, label, place in build_class_index(predictions, classes).iter_rows():
            if kind in kinds.kinds:
                columns[place] = None, scores[:, kinds.columns(kind).start + label]
    for place, (kind, _) in enumerate(classes):
        if kind == AGENTNESS and "score" in boxes.columns:
            columns[place] = None, _score(boxes, "boxes")
    rest = [named for place, named in enumerate(classes) if place not in columns]
    if predictions.labels.is_empty() or not rest:
        return columns
    at = pl.DataFrame({"box": boxes["box"], "place": np.arange(len(boxes))})
    rows = _label_rows(predictions, classes).join(at, on="box", how="inner").sort("class", "place")
    for (place,), group in rows.group_by("class", maintain_order=True):
        if place not in columns:
            columns[int(str(place))] = group["place"].to_numpy(), _score(group, "labels")
    return columns


def convert_dense_scores(scores: pl.Series, width: int) -> npt.NDArray[Any]:
    """(n, width) dense scores in the precision they were predicted in.

    Raises:
        InputError: if a row is missing or of another length.
    """
    held = scores.arr.to_list() if isinstance(scores.dtype, pl.Array) else scores
    if isinstance(scores.dtype, pl.Array) and not scores.null_count():
        lengths = {int(scores.dtype.shape[0])}
    else:
        lengths = {-1 if n is None else int(n) for n in held.list.len().unique().to_list()}
    if len(scores) and lengths != {width}:
        raise InputError(
            f"each row needs {width} dense scores; found rows of {sorted(lengths)} (-1: none)",
            hint="`meta.notes` says which kinds the scores stand for; see `roadaware.scenes.dense_scores`",
        )
    return scores.explode().to_numpy().reshape(len(scores), width) if len(scores) else np.zeros((0, width))


def _score(rows: pl.DataFrame, table: str) -> npt.NDArray[Any]:
    if "score" not in rows.columns or rows["score"].null_count():
        missing = rows["score"].null_count() if "score" in rows.columns else len(rows)
        raise InputError(
            f"{missing} rows of the predictions' {table} have no score; each prediction needs one"
        )
    return rows["score"].to_numpy()
