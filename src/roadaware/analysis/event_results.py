"""Results of an evaluation of road events as tables: means, and classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from roadaware.errors import UsageError
from roadaware.metrics.detection.evaluate import Slice
from roadaware.scenes.tables import Scenes

FRAME, VIDEO, AV = "frame", "video", "av_action"
CALIBRATED_AT = (("frame", "boxes", 0.5), ("video:stiou", "tubes", 0.2))
"""Level, what it holds, and the threshold at which scores are held against hits."""
_LEVEL_WORDS = {FRAME: "boxes", VIDEO: "tubes", AV: "frames"}


@dataclass(frozen=True)
class Value:
    """A value in [0, 1] with the 95 % interval over videos; null where undefined.

    Args:
        value: null where undefined.
        low, high: ends of the interval, null where there is none.
        n: what it is made from: classes for a mean, ground-truth boxes or tubes for a class.
        reason: why it is undefined.
        caution: why the interval is to be taken with caution.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reason: str | None = None
    caution: str | None = None


@dataclass(frozen=True)
class Column:
    """Level, overlap and threshold of a value.

    Args:
        level: frame, video or av_action.
        overlap: of tubes (stiou, siou, tiou), empty elsewhere.
        threshold: such as `0.5` or `0.5:0.95`, empty for av_action.
    """

    level: str
    overlap: str
    threshold: str

    @property
    def words(self) -> str:
        """The column's heading.

        >>> Column("video", "stiou", "0.2").words, Column("video", "tiou", "0.5").words
        ('tubes at 0.2', 'tubes at 0.5 (tiou)')
        """
        if self.level == AV:
            return "vehicle's action in frames"
        other = f" ({self.overlap})" if self.overlap not in ("", "stiou") else ""
        return f"{_LEVEL_WORDS.get(self.level, self.level)} at {self.threshold}{other}"


@dataclass(frozen=True)
class Grid:
    """Values of some rows, one per column; a pair that was not measured is absent."""

    columns: tuple[Column, ...]
    rows: tuple[str, ...]
    cells: dict[tuple[str, Column], Value]

    def row(self, name: str) -> Iterator[Value]:
        """The values of a row, undefined where nothing was measured."""
        return (self.cells.get((name, column), Value(None)) for column in self.columns)


def select_means(
    summary: pl.DataFrame, group: str | None = None, levels: Sequence[str] = (FRAME, VIDEO)
) -> Grid:
    """The mean over classes of each kind, in the order of the summary.

    Args:
        summary: of a `MetricResult` of road events.
        group: which of its groups; the whole set where None.
        levels: which levels.
    """
    rows = _of_group(summary, group).filter(pl.col("label").is_null(), pl.col("level").is_in(levels))
    return _grid(rows, "kind")


def select_classes(summary: pl.DataFrame, kind: str) -> Grid:
    """The average precision of each class of a kind, in the order of the vocabulary.

    Args:
        summary: of a `MetricResult` of road events.
        kind: such as `agent`.
    """
    rows = _of_group(summary, None).filter(pl.col("label").is_not_null(), pl.col("kind") == kind)
    return _grid(rows, "label")


def list_kinds(summary: pl.DataFrame) -> tuple[str, ...]:
    """The kinds that were judged, in the order of the summary."""
    return tuple(summary["kind"].drop_nulls().unique(maintain_order=True).to_list())


def select_headline(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The headline columns: boxes at 0.5, tubes at 0.2, or the first of their level."""
    found = []
    for level, usual in ((FRAME, "0.5"), (VIDEO, "0.2"), (AV, "")):
        held = [column for column in columns if column.level == level]
        best = [column for column in held if column.threshold == usual]
        found += (best or held)[:1]
    return tuple(found)


def _of_group(summary: pl.DataFrame, group: str | None) -> pl.DataFrame:
    return summary.filter(pl.col("group").eq_missing(pl.lit(group, dtype=pl.String)))


def _grid(rows: pl.DataFrame, name: str) -> Grid:
    cells: dict[tuple[str, Column], Value] = {}
    for row in rows.iter_rows(named=True):
        column = Column(row["level"], row["overlap"] or "", row["threshold"] or "")
        value = row["value"] if row["valid"] else None
        cells[str(row[name]), column] = Value(
            value, row["low_video"], row["high_video"], row["n"], row["reason"], row.get("caution_video")
        )
    columns = tuple(dict.fromkeys(column for _, column in cells))
    return Grid(columns, tuple(dict.fromkeys(row for row, _ in cells)), cells)


# Groups of a set of road events by what is known of its videos and boxes: split, weather, night, height.

HEIGHTS_PX = (0, 32, 64, 128, 256)
"""Edges of the classes of box heights, in the pixels that boxes are compared in."""
_SPLIT, _HEIGHT = "split", "height"
_MOST = 50


def build_video_slices(scenes: Scenes, names: Sequence[str]) -> dict[str, Slice]:
    """The groups that names stand for, each called `name=value`.

    Args:
        scenes: the ground truth that is judged.
        names: `split`; `height` of boxes; a column of the videos or of the boxes, for each of its values; or
            one such value of a video (`night`), for the videos that have it and those that do not.

    Raises:
        UsageError: if a name is none of these, or has more than 50 values.
    """
    return dict(pair for name in names for pair in _slices(scenes, name))


def _slices(scenes: Scenes, name: str) -> Iterator[tuple[str, Slice]]:
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    if name == _SPLIT and "splits" in videos.columns:
        held = videos.select("video", "splits").explode("splits").drop_nulls("splits")
        yield from _by_value(name, held.rename({"splits": name}))
    elif name == _HEIGHT:
        height = pl.col("height_px")
        for low, high in zip(HEIGHTS_PX, (*HEIGHTS_PX[1:], None), strict=True):
            words = f"{low} px and more" if high is None else f"{low} to {high} px"
            inside = height >= low if high is None else (height >= low) & (height < high)
            yield f"{_HEIGHT}={words}", Slice(size=inside)
    elif name in _columns(videos):
        yield from _by_value(name, videos.select("video", pl.col(name).cast(pl.String)).drop_nulls(name))
    elif name in _columns(scenes.boxes):
        column = pl.col(name).cast(pl.String)
        for value in _values(name, scenes.boxes[name]):
            yield f"{name}={value}", Slice(truth=column == value)
    elif (column_name := _column_with(videos, name)) is not None:
        has = pl.col(column_name).cast(pl.String) == name
        for answer, chosen in (("yes", has), ("no", ~has.fill_null(value=False))):
            yield f"{name}={answer}", Slice(videos=videos.filter(chosen)["video"].to_list())
    else:
        splits = [_SPLIT] if "splits" in scenes.videos.columns else []
        known = [*splits, _HEIGHT, *_columns(scenes.videos), *_columns(scenes.boxes)]
        raise UsageError(f"--by: nothing is known of '{name}' here; there are {', '.join(known)}")


def _by_value(name: str, held: pl.DataFrame) -> Iterator[tuple[str, Slice]]:
    for value in _values(name, held[name]):
        yield f"{name}={value}", Slice(videos=held.filter(pl.col(name) == value)["video"].to_list())


def _values(name: str, column: pl.Series) -> list[str]:
    values = column.cast(pl.String).drop_nulls().unique().sort().to_list()
    if len(values) > _MOST:
        raise UsageError(f"--by: '{name}' has {len(values)} values, and at most {_MOST} groups are judged")
    return [str(value) for value in values]


def _columns(table: pl.DataFrame) -> list[str]:
    """The columns that group rows: texts and yes or no, and no keys."""
    kinds = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    keys = ("video", "path", "name")
    return [name for name, kind in table.schema.items() if isinstance(kind, kinds) and name not in keys]


def _column_with(videos: pl.DataFrame, value: str) -> str | None:
    held = (name for name in _columns(videos) if value in videos[name].cast(pl.String).to_list())
    return next(held, None)
