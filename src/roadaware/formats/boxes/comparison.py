"""What of a set does not come back from files that were written of it, row by row and value by value.

The forms of published sets hold much that follows from something else (the frame of an event, the tubes of an action), so
that what is lost by them is not guessed from the columns: the files are read again, and the tables are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import TABLES
from roadaware.scenes.tables import Scenes, TableSet

_SAME = 1e-4
"""Numbers are equal up to this, absolutely below 1 and relatively above: single precision after a change of units."""
_UNSEEN = {"path", "file_name"}
"""Where images and videos lie is no annotation, and changes with every copy."""
_NUMBERS = {"box", "tube", "parent", "label", "kind"}
"""Numbers of rows, which names stand for here, and what the keys hold."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "videos": ("video",),
    "frames": ("video", "frame"),
    "tubes": ("track",),
    "boxes": ("place",),
    "labels": ("place", "kind", "word"),
    "tube_labels": ("track", "kind", "word"),
    "frame_labels": ("video", "frame", "kind", "word"),
    "sensors": ("scene", "sensor", "from_frame"),
    "sweeps": ("scene", "sensor", "frame"),
}
"""Tables to the columns that name a row; the other tables are compared whole."""


@dataclass(frozen=True)
class Adapted:
    """A set under the names, sizes and tracks that a form of a published set knows.

    Args:
        scenes: what is written; what the form has no place for may be among it.
        options: with which the reader reads all that is written.
    """

    scenes: Scenes
    options: dict[str, Any] = field(default_factory=dict, kw_only=True)


def count_differences(given: Scenes, back: Scenes) -> Counter[str]:
    """The rows and values of one set that another does not have: what they are, to how many.

    Rows are named by video, frame and track, whatever their order; of boxes of one name the first is the first. Paths are not
    compared, and numbers up to a ten-thousandth.
    """
    lost: Counter[str] = Counter()
    ours, theirs = _name_rows(given), _name_rows(back)
    for name in TABLES:
        if name == "rejected":
            continue
        if name not in _KEYS:
            if not ours[name].equals(theirs[name]):
                lost[f"rows of `{name}`"] += len(ours[name])
            continue
        key = list(_KEYS[name])
        other = (
            theirs[name].unique(key, keep="first", maintain_order=True).with_columns(known=pl.lit(value=True))
        )
        rows = ours[name].join(other, on=key, how="left", suffix=" back", maintain_order="left")
        lost[f"rows of `{name}`"] += rows["known"].null_count()
        if name == "boxes":
            more = theirs[name].join(ours[name].select(key), on=key, how="anti")
            lost["boxes that come back and were not there"] += len(more)
        rows = rows.drop_nulls("known")
        for column in ours[name].columns:
            if column in key or column in _NUMBERS or column in _UNSEEN:
                continue
            values = rows[column]
            if (name, column) == ("videos", "scene"):
                # A scene that is called as its video says nothing.
                values = rows.select(
                    pl.when(pl.col("scene").cast(pl.String) != pl.col("video")).then("scene")
                ).to_series()
            if f"{column} back" in rows.columns:
                count = int(_differ(values, rows[f"{column} back"]).sum())
            else:
                # A flag that is false everywhere says no more than its absence.
                said = values.sum() if values.dtype == pl.Boolean else len(values) - values.null_count()
                count = int(said or 0)
            lost[f"values of `{name}.{column}`"] += count
    return Counter({what: n for what, n in lost.items() if n})


def _differ(given: pl.Series, back: pl.Series) -> pl.Series:
    """(n,) whether something was said, and it is not what came back."""
    if isinstance(given.dtype, pl.List):
        if given.dtype.inner.is_float() and back.dtype == given.dtype:
            same = given.list.len() == back.list.len()
            gap = (
                given.filter(same.fill_null(value=False)) - back.filter(same.fill_null(value=False))
            ).list.eval(pl.element().abs())
            worst = gap.list.max().fill_null(0.0)
            close = pl.Series([False] * len(given)).scatter(
                same.fill_null(value=False).arg_true(), worst < _SAME
            )
            return given.is_not_null() & ~close
        if given.dtype.inner == pl.String:
            given, back = given.list.sort(), back.cast(given.dtype).list.sort()
        return given.is_not_null() & given.ne_missing(back)
    if given.dtype.is_float() and back.dtype.is_numeric():
        a, b = given.cast(pl.Float64), back.cast(pl.Float64)
        close = (
            (a - b).abs() <= _SAME * pl.select(pl.max_horizontal(a.abs(), pl.lit(1.0))).to_series()
        ).fill_null(value=False)
        return a.is_not_null() & ~close & ~(a.is_nan() & b.is_nan().fill_null(value=False))
    if not given.dtype.is_numeric() and given.dtype != pl.Boolean:
        given, back = given.cast(pl.String), back.cast(pl.String)
    return given.is_not_null() & given.ne_missing(back)


def _name_rows(tables: TableSet) -> dict[str, pl.DataFrame]:
    """The tables with names in place of numbers: `track` of tubes, `place` of boxes, `word` of labels."""
    held = {
        name: table.with_columns(pl.col("video").cast(pl.String)) if "video" in table.columns else table
        for name, table in tables.tables().items()
    }
    word = pl.DataFrame(
        [(kind, n, word) for kind, words in tables.meta.vocabularies.items() for n, word in enumerate(words)],
        schema={"kind": pl.String, "label": pl.Int64, "word": pl.String},
        orient="row",
    )
    for name in ("labels", "tube_labels", "frame_labels"):
        labels = held[name].with_columns(pl.col("kind").cast(pl.String), pl.col("label").cast(pl.Int64))
        labels = labels.join(word, on=["kind", "label"], how="left", maintain_order="left")
        held[name] = labels.with_columns(pl.coalesce("word", pl.col("label").cast(pl.String)))
    tubes = held["tubes"]
    parts = [
        pl.col(name).cast(pl.String).fill_null("") if name in tubes.columns else pl.lit("")
        for name in ("video", "kind", "name")
    ]
    tubes = tubes.with_columns(track=pl.concat_str(*parts, separator="\0"))
    tubes = tubes.with_columns(_count_before("track"))
    named = tubes.select("tube", "track")
    boxes = held["boxes"]
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    boxes = boxes.join(named, on="tube", how="left", maintain_order="left").with_columns(
        place=pl.concat_str(
            "video", pl.col("frame").cast(pl.String), pl.col("track").fill_null(""), separator="\0"
        )
    )
    boxes = boxes.with_columns(_count_before("place"))
    labels = held["labels"].join(boxes.select("box", "place"), on="box", how="left", maintain_order="left")
    tube_labels = held["tube_labels"].join(named, on="tube", how="left", maintain_order="left")
    return held | {
        "tubes": tubes,
        "boxes": boxes.drop("track"),
        "labels": labels,
        "tube_labels": tube_labels,
    }


def _count_before(column: str) -> pl.Expr:
    """The column with how many rows before have the same value, so that none is there twice."""
    return pl.format("{}\0{}", pl.col(column), pl.int_range(pl.len()).over(column)).alias(column)


def prepare(
    scenes: Scenes, title: str, needs: tuple[str, ...] = ("n_frames", "width_px", "height_px")
) -> Scenes:
    """A set whose videos have names as text and what a form needs to know of them.

    Args:
        scenes: the set.
        title: of the form, for the error.
        needs: columns of `videos` without which nothing is written.

    Raises:
        InputError: if there are no videos, or one lacks such a value.
    """
    if scenes.videos.is_empty():
        raise InputError(f"there is no video in it, and {title} is written video by video")
    for column in needs:
        known = scenes.videos[column].is_not_null() if column in scenes.videos.columns else None
        if known is None or not known.all():
            video = scenes.videos["video"].cast(pl.String)[0 if known is None else (~known).arg_max() or 0]
            what = {"width_px": "size", "height_px": "size", "n_frames": "length"}.get(column, column)
            raise InputError(
                f"the {what} of video {to_printable(video, 60)} is not known, and {title} counts in it",
                hint="save tables that know it and convert those: `roadaware read NAME PATH --media VIDEOS --output TABLES` "
                "looks at the videos",
            )
    return scenes.with_tables(
        **{
            name: table.with_columns(pl.col("video").cast(pl.String))
            for name, table in scenes.tables().items()
            if "video" in table.columns
        }
    )


def rename_videos(scenes: Scenes, names: Mapping[str, str]) -> Scenes:
    """The set with other names of videos in every table.

    Args:
        scenes: with names as text.
        names: old to new.
    """
    renamed = pl.col("video").replace(names)
    tables = {
        name: table.with_columns(renamed)
        for name, table in scenes.tables().items()
        if "video" in table.columns and len(table)
    }
    if "scene" in scenes.videos.columns:
        alone = scenes.videos["scene"].cast(pl.String) == scenes.videos["video"]
        videos = tables["videos"].with_columns(pl.col("scene").cast(pl.String), alone=alone)
        scene = pl.when("alone").then("video").otherwise("scene")
        tables["videos"] = videos.with_columns(scene=scene).drop("alone")
    return scenes.with_tables(**tables)


def select_tracked_boxes(scenes: Scenes, tubes: pl.DataFrame) -> pl.DataFrame:
    """The boxes of some tracks that have corners in order and lie in their video, one of a track in a frame; by both.

    Args:
        scenes: with the lengths of videos.
        tubes: the tracks.
    """
    lengths = scenes.videos.select("video", "n_frames")
    if "tube" not in scenes.boxes.columns:
        return scenes.boxes.clear().with_columns(tube=pl.lit(None, pl.Int64))
    boxes = scenes.boxes.join(tubes.select("tube"), on="tube", how="semi", maintain_order="left")
    boxes = boxes.join(lengths, on="video", how="left", maintain_order="left")
    sound = (pl.col("x1_px") <= pl.col("x2_px")) & (pl.col("y1_px") <= pl.col("y2_px"))
    inside = (pl.col("frame") < pl.col("n_frames")).fill_null(value=True)
    boxes = boxes.filter(sound & inside).drop("n_frames")
    return boxes.unique(["tube", "frame"], keep="first", maintain_order=True).sort("tube", "frame")


def name_tracks(tubes: pl.DataFrame, lost: Counter[str], pattern: str) -> pl.DataFrame:
    """The tracks with names that differ in a video and fit a pattern; where one does not, all of its video are numbered.

    Args:
        tubes: with `video`.
        lost: counts the names that are numbered anew.
        pattern: of names that files of the form can hold.
    """
    name = pl.col("name").cast(pl.String) if "name" in tubes.columns else pl.lit(None, pl.String)
    tubes = tubes.with_columns(given=name)
    good = (
        pl.col("given").str.contains(pattern).fill_null(value=False).all().over("video")
        & (pl.col("given").n_unique() == pl.len()).over("video")
    )  # fmt: skip
    number = pl.int_range(1, pl.len() + 1).over("video").cast(pl.String)
    tubes = tubes.with_columns(name=pl.when(good).then("given").otherwise(number))
    lost["names of tracks, numbered anew"] += tubes.select(
        (pl.col("given").is_not_null() & pl.col("given").ne_missing(pl.col("name"))).sum()
    ).item()
    return tubes.drop("given")
