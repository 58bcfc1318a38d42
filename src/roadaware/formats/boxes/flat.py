"""Tables as boxes with one class and one track each, which is what annotation tools hold, and what is lost by that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import polars as pl

from roadaware.datasets.box_rows import KIND
from roadaware.datasets.tracker_csv import NO_TRACK
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

HELD = (
    "track", "zero", "name", "untracked", "class", "any class", "unclassed", "ignore", "occluded", "hidden", "rate", "size",
    "length", "split", "any video", "score",
)  # fmt: skip
"""What a form may hold: tracks, among them one called 0, and such whose names are no numbers; boxes without a track; classes,
whatever they are called, and boxes without one; boxes to ignore; whether a box is occluded, and how much of it is hidden; the
rate, size and length of a video, its split, and whatever it is called; scores of predictions."""
_KINDS = (KIND, "object", "category", "action")
# Where images and films lie is no annotation, and changes with every copy: it is not counted as lost.
_VIDEO = {"video", "width_px", "height_px", "fps", "n_frames", "splits", "path"}
_OWN = {
    "videos": _VIDEO,
    "frames": {"video", "frame", "annotated", "path", "file_name"},
    # The product of the sides as COCO results write them is implied by the corners.
    "boxes": {"box", "video", "frame", "tube", *CORNERS, "ignore", "score", "scores", "sides_px2"},
    "tubes": {"tube", "video", "name", "start_frame", "end_frame", "score"},
}
_NUMBER = r"^(0|[1-9]\d{0,15})$"
_LARGEST = (
    1 << 53
) - 1  # up to here whoever counts in double precision, as JavaScript, tells neighbours apart
# Blanks at the ends, line breaks and words for nothing do not come back from text.
_NAME = r"^[^\s\x00-\x1f]([^\x00-\x1f]{0,250}[^\s\x00-\x1f])?$"
SPLITS = ("train", "val", "test")
_SAME_SCORE = 1e-6
"""Scores in single precision whose mean was taken in another order differ by less."""


@dataclass(frozen=True)
class FlatBoxes:
    """What annotation tools hold of a set.

    Args:
        videos: `v` (from 0), video, width_px, height_px, fps, n_frames, split (its last word, null where it has none).
        frames: `v`, video, frame, path of the frames that somebody looked at.
        boxes: `v`, video, frame, track (a number in its video from 1, or that of its name), name (of the track: the tube's
            own, else the number), label (place in `classes`, or null), corners in Float64, occlusion (null where the form
            holds nothing of it), ignore, score; by video and frame. Columns of the set's own follow.
        classes: names.
        scored: whether boxes are predictions, each with its score.
    """

    videos: pl.DataFrame
    frames: pl.DataFrame
    boxes: pl.DataFrame
    classes: tuple[str, ...]
    scored: bool = False

    @property
    def rows(self) -> dict[str, int]:
        """What it holds to how many."""
        return {"videos": len(self.videos), "images": len(self.frames), "boxes": len(self.boxes)}


class Videos(Protocol):
    """What is written of several videos."""

    @property
    def videos(self) -> pl.DataFrame:
        """With fps, width_px and height_px."""
        ...


Files = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Form:
    """A form of boxes, as the table of all forms lists it.

    Args:
        title: for people.
        reader: of `datasets.READERS` that reads it back.
        holds: words of `HELD`.
        write: gives the names and contents of the files.
        needs: columns of videos that may not be null.
        layout: what is written.
        whole: whether a video is annotated from its first frame to its last.
        own: further columns of `boxes` that it holds.
        camera: what its reader calls the only camera.
        adapt: brings names of classes and videos to those that the form knows, and counts what that loses.
        extract: of forms that hold other things than flat boxes: what is written of tables, and what is lost.
        compared: whether the files are read again before they appear, and what does not come back is lost too.
    """

    title: str
    reader: str
    holds: frozenset[str]
    write: Callable[[Any], Files]
    layout: str
    needs: tuple[str, ...] = ()
    whole: bool = False
    own: tuple[str, ...] = ()
    camera: str = ""
    adapt: Callable[[FlatBoxes, Counter[str]], FlatBoxes] | None = None
    extract: Callable[[Any, str | None], tuple[Any, Counter[str]]] | None = None
    compared: bool = False


def choose_kind(tables: TableSet, kind: str | None = None) -> str | None:
    """The kind of label that becomes the class of a box; None where boxes have none.

    Raises:
        UsageError: if there are no labels of the kind that was named.
    """
    found = tables.labels["kind"].cast(pl.String).unique(maintain_order=True).to_list()
    if not found and tables.tube_labels.height:
        found = tables.tube_labels["kind"].cast(pl.String).unique(maintain_order=True).to_list()
    if kind is not None:
        known = [*found, *tables.meta.vocabularies]
        if kind not in known:
            raise UsageError(
                f"no labels of kind {kind!r}; there are {', '.join(dict.fromkeys(known)) or 'none'}"
            )
        return kind
    named = [each for each in _KINDS if each in found]
    return (named or found or [each for each in _KINDS if each in tables.meta.vocabularies] or [None])[0]


def flatten(
    tables: Scenes | Predictions, form: Form, kind: str | None = None
) -> tuple[FlatBoxes, Counter[str]]:
    """The boxes that a form can hold, and what it cannot: why, to how often.

    Args:
        tables: with boxes.
        form: decides what is left out.
        kind: of label that becomes the class (default: agent, object, category or action, else the first).

    Raises:
        UsageError: if there is no such kind of label.
        InputError: if the form needs to know what the tables do not say, or a class has no name that text holds.
    """
    lost = count_other_tables(tables, _OWN, form)
    kind = choose_kind(tables, kind)
    if isinstance(tables, Predictions):
        tables = _add_best_labels(tables, kind, lost)
        _count_scores(tables, form, lost)
    videos = _list_videos(tables, form, lost)
    frames = _list_frames(tables, videos, form, lost)
    boxes = tables.boxes.with_columns(
        pl.col("video").cast(pl.String), *(pl.col(c).cast(pl.Float64) for c in CORNERS)
    )
    boxes = boxes.with_columns(
        pl.lit(None, kinds).alias(name)
        for name, kinds in (
            ("tube", pl.Int64),
            ("ignore", pl.Boolean),
            ("score", pl.Float64),
            ("occlusion", pl.String),
        )
        if name not in boxes.columns
    )
    boxes = _add_occlusion(boxes, form, lost)
    boxes, classes = find_classes(boxes, tables, kind, lost)
    _check_classes(classes)
    boxes = _add_tracks(boxes, tables, form, lost)
    for what, wrong, reason in (
        ("ignore", pl.col("ignore").fill_null(value=False), "boxes to ignore, left out"),
        ("untracked", pl.col("track").is_null(), "boxes without a track, left out"),
        ("unclassed", pl.col("label").is_null(), "boxes without a class, left out"),
    ):
        if what not in form.holds:
            lost[reason] += boxes.select(wrong.sum()).item()
            boxes = boxes.filter(~wrong)
    scored = isinstance(tables, Predictions) and "score" in form.holds
    if scored:
        lost["boxes without a score, left out"] += boxes["score"].null_count()
        boxes = boxes.drop_nulls("score")
    if len(boxes):
        known = frames.select("video", "frame")
        unseen = boxes.join(known, on=["video", "frame"], how="anti")
        if len(unseen):
            # A box in a frame that nobody is said to have looked at: the form lists the frame.
            more = unseen.select("video", "frame").unique(maintain_order=True)
            more = more.join(videos.select("video", "v"), on="video", how="left").with_columns(
                path=pl.lit(None, pl.String)
            )
            frames = pl.concat([frames, more.select(frames.columns)]).sort("v", "frame")
    boxes = boxes.join(videos.select("video", "v"), on="video", how="left", maintain_order="left")
    boxes = boxes.sort("v", "frame", maintain_order=True)
    columns = ["v", "video", "frame", "track", "name", "label", *CORNERS, "occlusion", "ignore", "score"]
    columns += [name for name in form.own if name in boxes.columns]
    held = FlatBoxes(videos, frames, boxes.select(columns), classes, scored)
    if form.adapt is not None:
        held = form.adapt(held, lost)
    _check_needs(held, form)
    return held, Counter({what: n for what, n in lost.items() if n})


def _add_best_labels(predictions: Predictions, kind: str | None, lost: Counter[str]) -> Predictions:
    """Predictions whose boxes have the label of the kind that scores highest, and its score."""
    layout = get_score_layout(predictions.meta, "boxes")
    chosen = choose_kind(predictions, kind)
    boxes = predictions.boxes
    if chosen is not None and chosen in layout.kinds and "scores" in boxes.columns and len(boxes):
        scores = convert_to_matrix(boxes["scores"], layout.width)[:, layout.columns(chosen)]
        lost["scores of further classes of boxes"] += int(((scores > 0).sum(axis=1) > 1).sum())
        labels = pl.DataFrame(
            {
                "box": boxes["box"],
                "label": scores.argmax(axis=1).astype(np.int64),
                "score": scores.max(axis=1),
            }
        ).with_columns(kind=pl.lit(chosen))
    else:
        labels = predictions.labels.filter(pl.col("kind").cast(pl.String) == (chosen or ""))
        if "score" in labels.columns:
            labels = labels.sort("score", descending=True, nulls_last=True, maintain_order=True)
    if "score" in labels.columns:
        best = labels.unique("box", keep="first", maintain_order=True).select("box", best="score")
        joined = boxes.join(best, on="box", how="left", maintain_order="left")
        own = pl.col("score") if "score" in boxes.columns else pl.lit(None, pl.Float32)
        boxes = joined.with_columns(score=pl.coalesce(own, "best")).drop("best")
    return replace(predictions, labels=labels, boxes=boxes)


def _count_scores(predictions: Predictions, form: Form, lost: Counter[str]) -> None:
    """Count the scores that the form has no place for; that of a track is its boxes' mean, where nothing else is said."""
    boxes, tubes = predictions.boxes, predictions.tubes
    if "score" in boxes.columns and "score" not in form.holds:
        lost["scores of boxes"] += boxes["score"].count()
    if "score" in tubes.columns and tubes["score"].count():
        known = "tube" in boxes.columns and "score" in boxes.columns
        means = boxes.drop_nulls("tube").group_by("tube").agg(mean=pl.col("score").mean()) if known else None
        means = pl.DataFrame(schema={"tube": pl.Int64, "mean": pl.Float64}) if means is None else means
        same = ((pl.col("score") - pl.col("mean")).abs() < _SAME_SCORE).fill_null(value=False)
        other = tubes.join(means, on="tube", how="left").filter(pl.col("score").is_not_null() & ~same)
        lost["scores of tracks other than the mean of their boxes"] += len(other)


def count_other_tables(
    tables: TableSet, own: Mapping[str, Collection[str]], form: Form | None = None
) -> Counter[str]:
    """Rows and values of which no form of this kind, or not this one, has anything.

    Args:
        tables: the set.
        own: table to the columns that are held, or of which it is said elsewhere what is.
        form: of boxes.
    """
    lost: Counter[str] = Counter()
    for name in ("frame_labels", "samples", "relations", "queries", "sounds", "sensors", "sweeps"):
        lost[f"rows of `{name}`"] += getattr(tables, name).height
    for name, columns in own.items():
        table: pl.DataFrame = getattr(tables, name)
        for column in table.columns:
            held = column in columns
            if form is not None and not held:
                # What is said of occlusion is counted where it is written.
                held = name == "boxes" and (column == "occlusion" or column in form.own)
                held = held or _is_implied(name, column, tables, form)
            if not held:
                values = table[column]
                # A flag that is false everywhere says no more than its absence.
                said = values.sum() if values.dtype == pl.Boolean else len(values) - values.null_count()
                lost[f"values of `{name}.{column}`"] += int(said or 0)
    return lost


def _is_implied(table: str, column: str, tables: TableSet, form: Form) -> bool:
    """Whether what a column says is known without it: a scene called as its video, times by the rate, the usual camera."""
    videos, frames = tables.videos, tables.frames
    if (table, column) == ("videos", "scene"):
        return bool((videos["scene"].cast(pl.String) == videos["video"].cast(pl.String)).all())
    if (table, column) == ("videos", "sensor"):
        return bool(form.camera) and bool((videos["sensor"].cast(pl.String) == form.camera).all())
    if (table, column) == ("frames", "t_s") and "rate" in form.holds and "fps" in videos.columns:
        rates = videos.select(pl.col("video").cast(pl.String), "fps")
        timed = frames.with_columns(pl.col("video").cast(pl.String)).join(rates, on="video", how="left")
        due = timed["frame"] / timed["fps"].cast(pl.Float64)
        return bool(
            ((timed["t_s"].cast(pl.Float64) - due).abs() < 1e-4 * (1 + due)).fill_null(value=False).all()
        )
    return False


def _add_occlusion(boxes: pl.DataFrame, form: Form, lost: Counter[str]) -> pl.DataFrame:
    """`occlusion` of each box as the form holds it: all of it, none or part, or nothing."""
    said = pl.col("occlusion").cast(pl.String)
    boxes = boxes.with_columns(said)
    if "hidden" in form.holds:
        return boxes
    if "occluded" not in form.holds:
        # That nothing is hidden anywhere says no more than that it is not said.
        lost["values of `boxes.occlusion`"] += (
            boxes.select(said.is_in(["part", "full"]).any() * said.count()).item() or 0
        )
        return boxes.with_columns(occlusion=pl.lit(None, pl.String))
    lost["boxes hidden in full, written as occluded"] += boxes.select((said == "full").sum()).item() or 0
    if boxes.select(said.is_in(["part", "full"]).any()).item():
        lost["boxes of which nothing is said of occlusion, written as not occluded"] += boxes[
            "occlusion"
        ].null_count()
    return boxes.with_columns(
        occlusion=pl.when(said.is_in(["part", "full"])).then(pl.lit("part")).otherwise(pl.lit("none"))
    )


def complete_videos(videos: pl.DataFrame, kinds: Mapping[str, Any]) -> pl.DataFrame:
    """Videos with all of some columns, `fps` among them, null where they lack them.

    Args:
        videos: as tables hold them.
        kinds: column to its type.
    """
    videos = videos.with_columns(
        pl.col("video").cast(pl.String),
        *(pl.lit(None, kind).alias(n) for n, kind in kinds.items() if n not in videos.columns),
    )
    # A rate in single precision, as its decimal says it: 29.97 and not 29.969999313354492.
    return videos.with_columns(fps=pl.col("fps").cast(pl.Float32).cast(pl.String).cast(pl.Float64))


def _list_videos(tables: TableSet, form: Form, lost: Counter[str]) -> pl.DataFrame:
    kinds = {"width_px": pl.Int64(), "height_px": pl.Int64(), "fps": pl.Float64(), "n_frames": pl.Int64()}
    videos = complete_videos(tables.videos, kinds)
    splits = videos["splits"].to_list() if "splits" in videos.columns else [None] * len(videos)
    words = [[each.rpartition("/")[2] for each in held or ()] for held in splits]
    kept = [held[0] if held and held[0] in SPLITS and "split" in form.holds else None for held in words]
    lost["splits of videos"] += sum(len(held) - (k is not None) for held, k in zip(words, kept, strict=True))
    for what, names in (("rate", ("fps",)), ("size", ("width_px",)), ("length", ("n_frames",))):
        if what not in form.holds:
            count = len(videos) - videos[names[0]].null_count()
            lost[f"{what}s of videos" if what != "size" else "sizes of videos"] += count
    return (
        videos.select("video", *kinds)
        .with_columns(pl.Series("split", kept, dtype=pl.String))
        .with_row_index("v")
    )


def _list_frames(tables: TableSet, videos: pl.DataFrame, form: Form, lost: Counter[str]) -> pl.DataFrame:
    """The frames that somebody looked at; all of a video of known length where no table lists frames."""
    frames = tables.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=True))
    if form.whole and not isinstance(tables, Predictions):
        seen = frames.group_by("video").agg(seen=pl.len())
        unseen = pl.col("n_frames") - pl.col("seen")
        lost["frames that nobody looked at, which the form takes for empty ones"] += (
            videos.join(seen, on="video").select(unseen.clip(0).sum()).item() or 0
        )
    if "path" not in frames.columns:
        frames = frames.with_columns(path=pl.lit(None, pl.String))
    bare = videos.join(frames.select("video").unique(), on="video", how="anti").filter(pl.col("n_frames") > 0)
    more = bare.select("video", frame=pl.int_ranges(0, "n_frames")).explode("frame")
    frames = pl.concat(
        [frames.select("video", "frame", "path"), more.with_columns(path=pl.lit(None, pl.String))]
    )
    return frames.join(videos.select("video", "v"), on="video", how="inner").select("v", "video", "frame", "path").sort(
        "v", "frame"
    )  # fmt: skip


def find_classes(
    boxes: pl.DataFrame, tables: TableSet, kind: str | None, lost: Counter[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The boxes with `label`, the first of a kind or that of the track where boxes have none of their own, and the words.

    Args:
        boxes: rows of the table `boxes`.
        tables: whose labels they have.
        kind: of label; None where there is none.
        lost: counts the labels that are left.

    Returns:
        The boxes with `label`, a place among the words or null; and the words.
    """
    words = tables.meta.vocabularies.get(kind or "", ())
    own = tables.labels.filter(pl.col("kind").cast(pl.String) == (kind or ""))
    lost["labels of other kinds"] += len(tables.labels) - len(own)
    first = own.unique("box", keep="first", maintain_order=True).select("box", "label")
    lost["further labels of a box"] += len(own) - len(first)
    tracks = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == (kind or ""))
    if first.is_empty() and len(tracks):
        held = tracks.unique("tube", keep="first", maintain_order=True).select("tube", "label")
        lost["labels of tracks"] += len(tables.tube_labels) - len(held)
        found = boxes.join(held, on="tube", how="left", maintain_order="left")
    else:
        found = boxes.join(first, on="box", how="left", maintain_order="left")
        # What every box of a track says need not be said of the track again.
        said = tracks.select("tube", of_track="label").join(
            found.select("tube", "label"), on="tube", how="left"
        )
        other = said.filter(pl.col("label").ne_missing(pl.col("of_track")))["tube"].n_unique()
        lost["labels of tracks"] += len(tables.tube_labels) - len(tracks) + other
    if not words and (highest := found["label"].max()) is not None:
        words = tuple(str(n) for n in range(int(str(highest)) + 1))
    return found, words


def _check_classes(classes: Sequence[str]) -> None:
    """Refuse names that text does not bring back: in a list a line break moves every class below it."""
    for name in classes:
        if not name or to_printable(name, len(name)) != name:
            what = "has line breaks or control characters" if name else "is empty"
            raise InputError(f"the name of class '{to_printable(name, 60)}' {what}", hint="rename the class")


def _add_tracks(boxes: pl.DataFrame, tables: TableSet, form: Form, lost: Counter[str]) -> pl.DataFrame:
    """`track` of each box: the number that its name is, where all names in its video are numbers, else counted from 1."""
    tubes = tables.tubes.with_columns(pl.col("video").cast(pl.String))
    owners = tubes.join(
        boxes.select("tube").drop_nulls().unique(), on="tube", how="semi", maintain_order="left"
    )
    lost["tubes without boxes of their own"] += len(tubes) - len(owners)
    if "track" not in form.holds:
        lost["tracks of boxes"] += boxes["tube"].count()
        return boxes.with_columns(track=pl.lit(None, pl.Int64), name=pl.lit(None, pl.String))
    name = pl.col("name").cast(pl.String) if "name" in owners.columns else pl.lit(None, pl.String)
    owners = owners.with_columns(name=name)
    plain = (
        pl.col("name").str.contains(_NUMBER).fill_null(value=False).all().over("video")
        & (pl.col("name").cast(pl.Int64, strict=False) <= _LARGEST).fill_null(value=False).all().over("video")
        & (pl.col("name").n_unique() == pl.len()).over("video")
        & (~pl.col("name").eq("0").any().over("video") | pl.lit("zero" in form.holds))
    )
    own = (
        pl.col("name").str.contains(_NAME).fill_null(value=False).all().over("video")
        & (~pl.col("name").is_in(NO_TRACK)).fill_null(value=False).all().over("video")
        & (pl.col("name").n_unique() == pl.len()).over("video")
        & pl.lit("name" in form.holds)
    )
    owners = owners.with_columns(plain=plain, own=own, place=pl.int_range(1, pl.len() + 1).over("video"))
    anew = pl.col("name").is_not_null() & ~(pl.col("own") if "name" in form.holds else pl.col("plain"))
    lost["names of tracks, numbered anew"] += owners.select(anew.sum()).item()
    owners = owners.with_columns(
        track=pl.when("plain").then(pl.col("name").cast(pl.Int64, strict=False)).otherwise("place")
    )
    called = pl.when("own").then("name").otherwise(pl.col("track").cast(pl.String))
    owned = owners.select("tube", "track", name=called)
    return boxes.join(owned, on="tube", how="left", maintain_order="left")


def _check_needs(held: FlatBoxes, form: Form) -> None:
    for name in form.needs:
        if held.videos[name].null_count():
            video = held.videos.filter(pl.col(name).is_null())["video"][0]
            what = {"width_px": "size", "height_px": "size", "n_frames": "length"}.get(name, name)
            raise InputError(
                f"the {what} of video {to_printable(video, 60)} is not known, and the form counts in it",
                hint="save tables that know it and convert those: `roadaware read NAME PATH --media VIDEOS --output TABLES` "
                "looks at the videos; or say it beside the annotations, such as `size = [1920, 1080]` in dataset.toml",
            )


def encode_classes(classes: Sequence[str], encode: Callable[[str], str] = json.dumps) -> pl.Expr:
    """The class of each box as JSON; null where it has none."""
    texts = {n: encode(name) for n, name in enumerate(classes)}
    if not texts:
        return pl.lit(None, pl.String)
    return pl.col("label").replace_strict(texts, return_dtype=pl.String)


def encode_tracks(boxes: pl.DataFrame) -> pl.Expr:
    """The name of the track of each box as JSON; null where it has none."""
    names = boxes["name"].drop_nulls().unique()
    texts = [json.dumps(name) for name in names]
    return pl.col("name").replace_strict(names, texts, default=None, return_dtype=pl.String)


def join_lines(held: FlatBoxes, boxes: pl.DataFrame, line: pl.Expr) -> pl.DataFrame:
    """The frames of a set with `line`: those of their boxes, one below the other; null where there is none."""
    lines = boxes.select("v", "frame", line=line)
    texts = lines.group_by("v", "frame", maintain_order=True).agg(pl.col("line").str.join(",\n"))
    return held.frames.join(texts, on=["v", "frame"], how="left", maintain_order="left")


def format_number(value: pl.Expr) -> pl.Expr:
    """A number as text with as many decimals as it needs, up to nine: a billionth of a pixel."""
    return value.round(9).cast(pl.String).str.replace(r"\.0$", "")


def format_corner(value: pl.Expr) -> pl.Expr:
    """A number as the shortest text that gives it back: of single precision 8.79, and not 8.789999962."""
    double = value.cast(pl.Float64)
    single = double.cast(pl.Float32)
    short = pl.when(single.cast(pl.Float64) == double).then(single.cast(pl.String))
    return short.otherwise(double.round(9).cast(pl.String)).str.replace(r"\.0$", "")


def name_file(video: str, ending: str = "") -> str:
    """The name of a video as that of a file.

    Raises:
        InputError: if it would lead out of the folder.
    """
    name = f"{video}{ending}"
    if not video or is_outside(name) or "\n" in name or "\\" in name:
        raise InputError(f"{to_printable(name, 60)!r} is no name of a file", hint="rename the video")
    return name


def format_facts(held: Videos, *names: str) -> bytes | None:
    """The lines of `dataset.toml` for what all videos share; None where that is nothing."""
    lines = []
    for name in names:
        column = ["fps"] if name == "fps" else ["width_px", "height_px"]
        values = held.videos.select(column).unique()
        if len(values) == 1 and values.null_count().sum_horizontal().item() == 0:
            row = values.row(0)
            lines.append(f"{name} = {row[0]!r}" if name == "fps" else f"{name} = [{row[0]}, {row[1]}]")
    return ("\n".join(lines) + "\n").encode() if lines else None
