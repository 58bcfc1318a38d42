"""The labelled tubes of a set of tables as arrays, of ground truth and of predictions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import Tubes, from_runs
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

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
