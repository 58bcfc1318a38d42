"""Groups of a set of road events by what is known of its videos and boxes: split, weather, night, height."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from roadaware.errors import UsageError
from roadaware.metrics.detection.slices import Slice
from roadaware.scenes.tables import Scenes

HEIGHTS_PX = (0, 32, 64, 128, 256)
"""Edges of the classes of box heights, in the pixels that boxes are compared in."""
_SPLIT, _HEIGHT = "split", "height"
_MOST = 50


def slices_by(scenes: Scenes, names: Sequence[str]) -> dict[str, Slice]:
    """The groups that names stand for, each called `name=value`.

    Args:
        scenes: the truth that is judged.
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
        yield from _by_height()
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
        raise UsageError(f"--by: nothing is known of '{name}' here; there are {', '.join(_known(scenes))}")


def _by_value(name: str, held: pl.DataFrame) -> Iterator[tuple[str, Slice]]:
    for value in _values(name, held[name]):
        yield f"{name}={value}", Slice(videos=held.filter(pl.col(name) == value)["video"].to_list())


def _by_height() -> Iterator[tuple[str, Slice]]:
    height = pl.col("height_px")
    for low, high in zip(HEIGHTS_PX, (*HEIGHTS_PX[1:], None), strict=True):
        words = f"{low} px and more" if high is None else f"{low} to {high} px"
        inside = height >= low if high is None else (height >= low) & (height < high)
        yield f"{_HEIGHT}={words}", Slice(size=inside)


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


def _known(scenes: Scenes) -> list[str]:
    splits = [_SPLIT] if "splits" in scenes.videos.columns else []
    return [*splits, _HEIGHT, *_columns(scenes.videos), *_columns(scenes.boxes)]
