"""The tables of Scenes and Predictions as data (each column, its type, unit, meaning and target), and the
laws every table keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.errors import InputError

Kind = Literal["text", "int", "float", "bool", "texts", "floats", "spans"]


@dataclass(frozen=True)
class Column:
    """One column: its kind of value, its meaning, and the law it keeps.

    Args:
        kind: text (String, Enum or Categorical), int (Int64), float (Float32), bool, texts (list of
            text), floats (array or list of Float32) or spans (list of [start, end) frame pairs).
        doc: meaning, with unit.
        required: the table must have it.
        nullable: null means unknown.
        to: the table whose key it points to.
        predicted: only Predictions have it; what is predicted in Float64 stays so.
        exact: what comes in Float64 stays so, in Scenes too.
        bounds: smallest and largest value of a number.
        vocabulary: the vocabulary it is an index in; `*` is the one that `kind` in its row names.
    """

    kind: Kind
    doc: str
    required: bool = False
    nullable: bool = True
    to: str | None = None
    predicted: bool = False
    exact: bool = False
    bounds: tuple[float, float] | None = None
    vocabulary: str | None = None


@dataclass(frozen=True)
class Table:
    """One table: its purpose, its key and its columns; other columns are the dataset's own and are kept."""

    doc: str
    key: tuple[str, ...]
    columns: dict[str, Column]
    unique: bool = True


def _key(kind: Kind, doc: str, to: str | None = None, vocabulary: str | None = None) -> Column:
    return Column(kind, doc, required=True, nullable=False, to=to, vocabulary=vocabulary)


_VIDEO = _key("text", "the video", "videos")
_START = Column("int", "first frame")
_END = Column("int", "frame after the last (half open)")
_CORNER = {
    "x1_px": "left",
    "y1_px": "top",
    "x2_px": "right, x1_px <= x2_px",
    "y2_px": "bottom, y1_px <= y2_px",
}
_SCORE = Column("float", "confidence in [0, 1]", predicted=True, bounds=(0, 1))
_READY = Column("float", "when it was emitted, in seconds of the stream", predicted=True)
_EVENT_SOURCE = (
    "provenance of `event_frame`: annotated; fallback, made up for a crosser without one; "
    "none, the end of the track of somebody who does not cross"
)
_KIND = _key("text", "the vocabulary")
_LABEL = _key("int", "index in the vocabulary of `kind`", vocabulary="*")

CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")
"""The columns of a box, in the order of its numbers wherever it is an array."""

MOST_LISTED_FRAMES = 10_000_000
"""Frames that are listed one by one at most where a file says nothing but their number: 92 hours at 30 a second."""

TABLES: dict[str, Table] = {
    "videos": Table(
        "One camera stream each; an image set is one video, one frame per image.",
        ("video",),
        {
            "video": _key("text", "the video's native name"),
            "scene": Column("text", "groups the streams of one drive"),
            "width_px": Column("int", "width of the original image"),
            "height_px": Column("int", "height of the original image"),
            "fps": Column("float", "frames per second; null where the source does not say"),
            "n_frames": Column("int", "number of frames; null where the source does not say"),
            "path": Column("text", "where the video lies, relative to the dataset's root"),
            "sensor": Column("text", "the camera, a sensor of the scene; its only camera where null"),
            "category": Column("text", "what happens in it as a whole, such as flood or fight"),
            "splits": Column("texts", "names of the splits that hold it, `<subset>/<split>`"),
        },
    ),
    "frames": Table(
        "One frame each, with what is known of the moment: ego motion, traffic, whether it was annotated.",
        ("video", "frame"),
        {
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "t_s": Column("float", "presentation time"),
            "annotated": Column(
                "bool", "whether somebody looked at this frame; never inferred from absent boxes"
            ),
            "ego_speed_kmh": Column("float", "speed of the ego vehicle"),
            "path": Column("text", "where its image lies, in a set of images"),
            "world_SE3_ego": Column("floats", "4x4 pose of the vehicle, row by row", exact=True),
            "scores": Column("floats", "dense frame scores", predicted=True),
        },
    ),
    "boxes": Table(
        "One box each, in pixels of the original image.",
        ("box",),
        {
            "box": _key("int", "unique number"),
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "tube": Column("int", "the tube that owns the box; null if untracked", to="tubes"),
            **{
                corner: Column("float", doc, required=True, nullable=False, exact=True)
                for corner, doc in _CORNER.items()
            },
            "occlusion": Column("text", "how much is hidden: none, part, full"),
            "ignore": Column("bool", "neither asked for nor counted as false"),
            "corner_case": Column("bool", "outside the common classes"),
            "sound": Column("int", "the sound it makes", to="sounds"),
            "annotator": Column("text", "who drew it"),
            "round": Column("int", "round of annotation"),
            "score": _SCORE,
            "scores": Column(
                "floats", "dense class scores; their (kind, label) stand in meta.json", predicted=True
            ),
            "ready_s": _READY,
            "interpolated": Column("bool", "made up between two detections, not seen", predicted=True),
        },
    ),
    "labels": Table(
        "What a box is, for kinds of which it can carry several labels.",
        ("box", "kind", "label"),
        {"box": _key("int", "the box", "boxes"), "kind": _KIND, "label": _LABEL, "score": _SCORE},
    ),
    "tubes": Table(
        "Boxes over time that carry labels: a track, or a part of one.",
        ("tube",),
        {
            "tube": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "start_frame": _START,
            "end_frame": _END,
            "parent": Column("int", "the tube this one is cut from; it owns the boxes", to="tubes"),
            "kind": Column("text", "what a derived tube is labelled with: agent, action, duplex, event, ..."),
            "spans": Column("spans", "frames of the parent it covers, as half-open pairs"),
            "consecutive": Column(
                "bool",
                "the boxes within `spans` are predicted for consecutive frames from `start_frame`, "
                "whatever frames they were found in; null as false",
                predicted=True,
            ),
            "crossing": Column("text", "whether the pedestrian crosses: not-crossing, crossing, irrelevant"),
            "event_frame": Column("int", "frame of the event (start of crossing)"),
            "event_source": Column("text", _EVENT_SOURCE),
            "intention_prob": Column("float", "mean answer of annotators that the pedestrian wants to cross"),
            "score": _SCORE,
            "ready_s": _READY,
        },
    ),
    "tube_labels": Table(
        "What a tube is.",
        ("tube", "kind", "label"),
        {"tube": _key("int", "the tube", "tubes"), "kind": _KIND, "label": _LABEL, "score": _SCORE},
    ),
    "frame_labels": Table(
        "What happens in a whole frame: the action of the vehicle, a scene tag.",
        ("video", "frame", "kind", "label"),
        {
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "kind": _KIND,
            "label": _LABEL,
            "score": _SCORE,
        },
    ),
    "samples": Table(
        "Pieces of tubes that a model is asked about; the order of rows is the order of extraction.",
        ("sample",),
        {
            "sample": _key("int", "unique number"),
            "video": Column("text", "the video", to="videos"),
            "tube": Column("int", "the pedestrian", to="tubes"),
            "start_frame": _START,
            "end_frame": _END,
            "event_frame": Column("int", "frame of the event"),
            "event_source": Column("text", _EVENT_SOURCE),
            "tte_frames": Column("int", "frames from the end of the observation to the event"),
            "kind": Column("text", "what is asked: action, intention, risk"),
            "label": Column("int", "the answer, an index in the vocabulary of `kind`", vocabulary="*"),
            "votes": Column("floats", "annotators' answers, where they are at hand"),
            "split": Column("text", "train, val or test"),
            "scores": Column("floats", "the model's score of each label of `kind`", predicted=True),
        },
    ),
    "relations": Table(
        "Who does what to whom.",
        ("relation",),
        {
            "relation": _key("int", "unique number"),
            "video": _VIDEO,
            "subject": _key("int", "who", "tubes"),
            "object": _key("int", "to whom", "tubes"),
            "predicate": _key("int", "index in the vocabulary `predicate`", vocabulary="predicate"),
            "start_frame": _START,
            "end_frame": _END,
            "score": _SCORE,
        },
    ),
    "queries": Table(
        "Sentences that happen somewhere in a video.",
        ("query",),
        {
            "query": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "text": Column("text", "the sentence"),
            "sentence_kind": Column("text", "statement or question: declarative, interrogative"),
            "segment_start_frame": Column("int", "first frame of the part of the video that is searched"),
            "segment_end_frame": Column("int", "frame after the last of that part; null for the whole video"),
            "tube": Column("int", "whom it speaks of", to="tubes"),
            "start_frame": _START,
            "end_frame": _END,
            "score": _SCORE,
        },
    ),
    "sounds": Table(
        "What is heard; boxes point to it.",
        ("sound",),
        {
            "sound": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "frame": Column("int", "the frame that shows where it comes from"),
            "t_s": Column("float", "when it is heard"),
            "label": Column("int", "index in the vocabulary `sound`", vocabulary="sound"),
            "map": Column("floats", "localisation map, row by row", predicted=True),
            "map_width": Column("int", "cells in a row of `map`; null for a square map", predicted=True),
        },
    ),
    "sensors": Table(
        "Where a sensor sits and how it sees, from a frame on.",
        ("scene", "sensor", "from_frame"),
        {
            "scene": _key("text", "the drive"),
            "sensor": _key("text", "the sensor's name"),
            "from_frame": _key("int", "valid from this frame on"),
            "intrinsics": Column("floats", "3x3 camera matrix, row by row"),
            "ego_SE3_sensor": Column("floats", "4x4 pose of the sensor in the vehicle, row by row"),
            "layout": Column("text", "rings and columns of a LiDAR"),
        },
    ),
    "sweeps": Table(
        "One LiDAR sweep each.",
        ("scene", "sensor", "frame"),
        {
            "scene": _key("text", "the drive"),
            "sensor": _key("text", "the sensor's name"),
            "frame": _key("int", "counts from 0"),
            "path": Column("text", "where the sweep lies, relative to the dataset's root"),
            "n_points": Column("int", "number of points"),
            "fields": Column("text", "what the numbers of a point are; null for x y z intensity ring"),
            "t_s": Column("float", "when it was taken"),
            "world_SE3_ego": Column("floats", "4x4 pose of the vehicle, row by row", exact=True),
        },
    ),
    "rejected": Table(
        "What a reader found and did not take, each with its reason: nothing is dropped silently.",
        (),
        {
            "table": _key("text", "the table the row would have gone to; `files` for a whole file"),
            "file": _key("text", "the file, relative to the root"),
            "line": Column("int", "line in the file, from 1"),
            "item": Column("text", "the row or element, as far as it can be named"),
            "reason": _key("text", "what is wrong with it"),
        },
        unique=False,
    ),
}

# The laws every table keeps: types of known columns, whole and unique keys, boxes and intervals in order.

_DTYPES: dict[Kind, pl.DataType] = {
    "text": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float32(),
    "bool": pl.Boolean(),
    "texts": pl.List(pl.String()),
    "floats": pl.List(pl.Float32()),
    "spans": pl.List(pl.List(pl.Int64())),
}
_SHOWN = 5
_FEW = 1_000
"""Of so few rows, a query that does everything at once costs more than Python."""


def create_empty_table(name: str) -> pl.DataFrame:
    """The table `name` with its required columns and no rows."""
    columns = TABLES[name].columns
    return pl.DataFrame(schema={c: _DTYPES[column.kind] for c, column in columns.items() if column.required})


def is_blank(name: str, frame: pl.DataFrame) -> bool:
    """Whether the table `name` is blank: no rows, and no columns but the required ones."""
    return frame.is_empty() and frame.schema == create_empty_table(name).schema


def validate_table(name: str, frame: pl.DataFrame, *, predicted: bool) -> pl.DataFrame:
    """The table with its columns in their types, or an error that names table, column and first rows.

    Args:
        name: which table, a key of `TABLES`.
        frame: its rows.
        predicted: whether the table belongs to Predictions (which alone may hold scores).

    Raises:
        InputError: if a column is missing or of the wrong type, a key is null or repeated, a box or an
            interval is upside down, or a number is not finite.
    """
    if not isinstance(frame, pl.DataFrame):
        raise InputError(f"table {name} should be a polars DataFrame, not {type(frame).__name__}")
    table = TABLES[name]
    # Tables that version 0.8 saved, whose file's own scores would be passed over under their former name.
    if predicted and name == "relations" and "predicted_score" not in frame.columns:
        frame = frame.rename({"claimed_score": "predicted_score"}, strict=False)
    schema = frame.schema
    missing = [c for c, column in table.columns.items() if column.required and c not in schema]
    if missing:
        raise InputError(f"table {name} needs the columns {missing} and has {frame.columns}")
    casts = [
        cast
        for c, column in table.columns.items()
        if c in schema and (cast := _cast(name, c, column, schema[c], predicted=predicted)) is not None
    ]
    if casts:
        try:
            frame = frame.with_columns(casts)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"table {name}: {str(error).splitlines()[0]}") from error
    if not frame.is_empty():
        _check_rows(name, table, frame)
    return frame


def check_references(tables: Mapping[str, pl.DataFrame]) -> None:
    """Every pointer between two tables that are both here finds its row, in the same video.

    Raises:
        InputError: naming table, column and the first values that point nowhere or into another video.
    """
    for name, frame in tables.items():
        for c, column in TABLES[name].columns.items():
            if column.to is None or c not in frame.columns or column.to not in tables or frame.is_empty():
                continue
            target = tables[column.to]
            lost = _lost(frame[c], target[TABLES[column.to].key[0]])
            if len(lost):
                shown = lost.sort().head(_SHOWN).to_list()
                raise InputError(
                    f"table {name}: {c} points to {len(lost)} rows absent from {column.to}: {shown}"
                )
            if column.to != "videos" and {"video"} <= set(frame.columns) & set(target.columns):
                _check_same_video(name, c, frame, column.to, target)
    _check_frame_range(tables)


def check_labels(tables: Mapping[str, pl.DataFrame], vocabularies: Mapping[str, Sequence[str]]) -> None:
    """Label indices lie inside their vocabulary, where the vocabulary is known.

    Raises:
        InputError: naming table, column, vocabulary and the range found.
    """
    for name, frame in tables.items():
        for c, of in list_index_columns(name, frame):
            spans = frame.group_by(of.alias("of")).agg(low=pl.col(c).min(), high=pl.col(c).max()).sort("of")
            for kind, low, high in spans.iter_rows():
                size = len(vocabularies.get(kind, ()))
                if low is not None and kind in vocabularies and not 0 <= low <= high < size:
                    raise InputError(
                        f"table {name}: {c} of {kind} runs {low}..{high}, its vocabulary has {size} labels"
                    )


def list_index_columns(name: str, frame: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
    """The columns of a table that are indices, each with the name of its vocabulary per row."""
    found = []
    for c, column in TABLES[name].columns.items():
        if column.vocabulary is None or c not in frame.columns or frame.is_empty():
            continue
        if column.vocabulary != "*":
            found.append((c, pl.lit(column.vocabulary)))
        elif "kind" in frame.columns:
            found.append((c, pl.col("kind").cast(pl.String)))
    return found


def _cast(name: str, c: str, column: Column, dtype: pl.DataType, *, predicted: bool) -> pl.Expr | None:
    """The cast that brings a column to its type, None where it has it already."""
    if column.predicted and not predicted:
        raise InputError(f"table {name}: {c} is a prediction; it belongs to Predictions, not to Scenes")
    wanted = _DTYPES[column.kind]
    if dtype == wanted or (column.kind == "text" and dtype in (pl.Enum, pl.Categorical)):
        return None
    if not _fits(column.kind, dtype):
        raise InputError(f"table {name}: {c} should be {column.kind} ({wanted}), not {dtype}")
    if (column.predicted or column.exact) and _innermost(dtype) == pl.Float64:
        return None  # narrowed, scores would tie and overlaps leave their threshold, and both decide metrics
    if isinstance(dtype, pl.Array):
        return None if dtype.inner == pl.Float32 else pl.col(c).cast(pl.Array(pl.Float32, dtype.shape))
    return pl.col(c).cast(wanted)


def _innermost(dtype: pl.DataType) -> Any:
    """The type of a value, or of those in its list or array."""
    return dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype


def _fits(kind: Kind, dtype: Any) -> bool:
    """Whether a cast to the kind keeps every value's meaning, or fails on the value that has none."""
    if dtype == pl.Null:
        return True
    if kind == "int":
        return bool(dtype.is_integer())
    if kind == "float":
        return bool(dtype.is_numeric())
    if kind in ("text", "bool"):
        return False
    if not isinstance(dtype, pl.List | pl.Array):
        return False
    inner = dtype.inner
    if isinstance(dtype, pl.Array):
        return kind == "floats" and len(dtype.shape) == 1 and bool(inner.is_numeric())
    if inner == pl.Null:
        return True
    if kind == "texts":
        return inner in (pl.Enum, pl.Categorical)
    if kind == "floats":
        return bool(inner.is_numeric())
    return isinstance(inner, pl.List) and _fits("int", inner.inner)


def _check_rows(name: str, table: Table, frame: pl.DataFrame) -> None:
    """Nulls, keys, order of boxes and intervals, finite numbers."""
    schema = frame.schema
    laws = {
        what: wrong
        for c, column in table.columns.items()
        if c in schema
        for what, wrong in _column_laws(c, column, schema[c], frame[c].null_count())
    }
    if name == "boxes":
        laws["x1_px > x2_px"] = pl.col("x1_px") > pl.col("x2_px")
        laws["y1_px > y2_px"] = pl.col("y1_px") > pl.col("y2_px")
    if "end_frame" in schema and "start_frame" in schema:
        laws["end_frame < start_frame"] = pl.col("end_frame") < pl.col("start_frame")
    if "frame" in table.columns and "frame" in schema:
        laws["frame < 0"] = pl.col("frame") < 0
    if laws:
        broken = frame.select(wrong.any().alias(what) for what, wrong in laws.items()).row(0, named=True)
        for what, wrong in laws.items():
            if broken[what]:
                _refuse(name, what, frame, wrong)
    if table.unique and table.key and not _increases(frame, table.key):
        repeated = pl.struct(table.key).is_duplicated()
        if frame.select(repeated.any()).item():
            _refuse(name, f"the key {' + '.join(table.key)} is repeated", frame, repeated)


def _column_laws(c: str, column: Column, dtype: pl.DataType, nulls: int) -> Iterator[tuple[str, pl.Expr]]:
    """What is wrong with a value of the column, by the words for it."""
    value = pl.col(c)
    if nulls and not column.nullable:
        yield f"{c} is null", value.is_null()
    if column.kind == "float":
        yield f"{c} is not finite", ~value.is_finite()
        if column.bounds is not None:
            low, high = column.bounds
            yield f"{c} lies outside [{low:g}, {high:g}]", ~value.is_between(low, high)
    if column.kind == "floats":
        values = value.arr.to_list() if isinstance(dtype, pl.Array) else value
        yield f"{c} holds a number that is not finite", values.list.eval(~pl.element().is_finite()).list.any()
    if column.kind == "spans":
        first, last = pl.element().list.get(0, null_on_oob=True), pl.element().list.get(1, null_on_oob=True)
        whole = (pl.element().list.len() == 2) & (first <= last)
        yield f"{c} is not a list of pairs [start, end)", value.list.eval(~whole.fill_null(False)).list.any()


def _increases(frame: pl.DataFrame, key: tuple[str, ...]) -> bool:
    """Whether each row's key is greater than the one before, which spares the search for repeated keys."""
    first = frame[key[0]]
    if len(key) == 1 and first.dtype == pl.Int64 and not first.null_count():
        numbers = first.to_numpy()
        return bool((numbers[1:] > numbers[:-1]).all())
    greater, schema = pl.lit(False), frame.schema
    # From the last column to the first: each decides where those before it are equal.
    for c in reversed(key):
        column = pl.col(c)
        column = column.to_physical() if schema[c] in (pl.Enum, pl.Categorical) else column
        before = column.shift(1)
        greater = (column > before) | ((column == before) & greater)
    return bool(frame.select(greater.all()).item())


def _lost(pointers: pl.Series, keys: pl.Series) -> pl.Series:
    """The pointers that are no key; the keys of a table are unique."""
    if keys.dtype.is_integer() and len(keys):
        (low, high), (first, last) = _range(keys), _range(pointers)
        # Unique whole numbers that fill their range: whatever lies within it is a key.
        if high - low + 1 == len(keys) and (first is None or low <= first <= last <= high):
            return pointers.clear()
    given = _plain(_distinct(pointers))
    return given.filter(~given.is_in(_plain(keys).implode()))


def _range(values: pl.Series) -> tuple[Any, Any]:
    return values.min(), values.max()


def _distinct(values: pl.Series) -> pl.Series:
    """The values without nulls, each once; rows mostly come in runs, and only a run's first is looked at."""
    if len(values) < _FEW:
        return values.unique().drop_nulls()
    return values.filter(values.ne_missing(values.shift(1))).unique().drop_nulls()


def _check_same_video(name: str, c: str, frame: pl.DataFrame, to: str, target: pl.DataFrame) -> None:
    if len(frame) < _FEW and _same_video(
        frame["video"], frame[c], target["video"], target[TABLES[to].key[0]]
    ):
        return
    pairs = frame.select("video", c)
    first = pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1)))
    pairs = pairs.filter(first).drop_nulls().with_columns(pl.col("video").cast(pl.String))
    owners = target.select(pl.col(TABLES[to].key[0]).alias(c), pl.col("video").cast(pl.String).alias("of"))
    astray = pairs.join(owners, on=c).filter(pl.col("video") != pl.col("of"))
    if len(astray):
        shown = astray.unique().sort("video", c).head(_SHOWN).rows(named=True)
        raise InputError(f"table {name}: {c} points into another video, first {shown}")


def _same_video(videos: pl.Series, pointers: pl.Series, owners: pl.Series, keys: pl.Series) -> bool:
    """Whether few pointers stay in their video, computed quickly where the keys are consecutive numbers."""
    if pointers.null_count() or not keys.dtype.is_integer() or not _consecutive(keys):
        return False
    pointed = owners.cast(pl.String)[pointers - keys[0]]
    return not (pointed != videos.cast(pl.String)).any()


def _consecutive(keys: pl.Series) -> bool:
    numbers = keys.to_numpy()
    return bool((numbers[1:] - numbers[:-1] == 1).all())


def _check_frame_range(tables: Mapping[str, pl.DataFrame]) -> None:
    """No box and no frame lies behind the last frame of its video, where that is known."""
    videos = tables.get("videos")
    if videos is None or "n_frames" not in videos.columns or videos["n_frames"].null_count() == len(videos):
        return
    ends = videos.select(pl.col("video").cast(pl.String), "n_frames")
    for name in ("frames", "boxes", "frame_labels"):
        frame = tables.get(name)
        if frame is None or frame.is_empty():
            continue
        if len(frame) < _FEW and not _behind(frame, videos):
            continue
        # The last frame of each run of rows of one video: a hundred times fewer rows to group.
        starts = frame["video"].ne_missing(frame["video"].shift(1)).arg_true()
        last = np.maximum.reduceat(frame["frame"].to_numpy(), starts.to_numpy())
        runs = pl.DataFrame({"video": frame["video"].gather(starts).cast(pl.String), "frame": last})
        late = runs.join(ends, on="video").filter(pl.col("frame") >= pl.col("n_frames"))
        if len(late):
            late = late.group_by("video", "n_frames").agg(pl.col("frame").max()).sort("video")
            shown = late.head(_SHOWN).rows(named=True)
            raise InputError(f"table {name}: frames behind the end of {len(late)} videos, first {shown}")


def _behind(frame: pl.DataFrame, videos: pl.DataFrame) -> bool:
    """Whether one of few frames lies behind the end of its video."""
    ends = dict(zip(videos["video"].to_list(), videos["n_frames"].to_list(), strict=True))
    found = zip(frame["video"].to_list(), frame["frame"].to_list(), strict=True)
    return any((end := ends.get(video)) is not None and number >= end for video, number in found)


def _plain(values: pl.Series) -> pl.Series:
    return values.cast(pl.String) if values.dtype in (pl.Enum, pl.Categorical) else values


def _refuse(name: str, what: str, frame: pl.DataFrame, wrong: pl.Expr) -> None:
    rows = frame.with_row_index("row").filter(wrong)
    key = [c for c in TABLES[name].key if c in rows.columns]
    shown = rows.select("row", *key).head(_SHOWN).rows(named=True)
    raise InputError(f"table {name}: {what} in {len(rows)} rows, first {shown}")


PEOPLE = frozenset({"ped", "pedestrian", "person", "people", "adult", "child", "baby", "man", "woman"})
"""Names of agents that are people on foot, in lower case."""
