"""Joining the parts of a watch to one saved set, in little memory however long the watch was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.config import to_dict
from roadaware.io.files import build_disk_error, make_temporary_path
from roadaware.linking.config import LinkerConfig
from roadaware.online.parts import Parts
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import register_table_files
from roadaware.scenes.tables import Meta
from roadaware.tasks.road_events import Classes


def join_parts(
    parts: Mapping[str, Parts],
    target: Path,
    video: str,
    facts: Mapping[str, Any],
    meta: Meta,
    linker: LinkerConfig,
    classes: Classes,
) -> None:
    """Write the tables of a watch as `link` would make them of the same detections.

    Args:
        parts: all flushed: boxes, made, frames, paths, and kind0, kind1, ... of labelled tubes.
        target: folder of the set.
        video: name of the stream.
        facts: of the video.
        meta: of the detections.
        linker: that made the paths.
        classes: of the detector.

    Raises:
        DiskError: if the disk refuses.
    """
    named = pl.lit(video).alias("video")
    tubes, labels, n_tubes, n_labels = _tubes(parts, named, linker, classes)
    boxes, n_boxes = _boxes(parts, named, linker)
    frames = parts["frames"].scan().select(named, *parts["frames"].schema)
    tables = {
        "videos": (build_stream_row(video, facts).lazy(), 1),
        "frames": (frames, parts["frames"].rows),
        "boxes": (boxes, n_boxes),
        "tubes": (tubes, n_tubes),
        "tube_labels": (labels, n_labels),
    }
    path = target
    try:
        target.mkdir(parents=True, exist_ok=True)
        files = {}
        for table, (rows, count) in tables.items():
            if count:
                path = make_temporary_path(target / table)
                rows.sink_parquet(path, compression="zstd", maintain_order=True)
                files[table] = (path, count)
    except (OSError, pl.exceptions.ComputeError) as error:
        for left in target.glob(".roadaware-*.tmp"):
            left.unlink(missing_ok=True)
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise build_disk_error(path, 1, error) from error
    notes = {**meta.notes, "linker": to_dict(linker)}
    register_table_files(target, replace(meta, notes=notes), files)


def build_stream_row(video: str, facts: Mapping[str, Any]) -> pl.DataFrame:
    """The videos table of one stream.

    Args:
        video: its name.
        facts: what is known of width_px, height_px, fps, n_frames and path.
    """
    kinds = {
        "video": pl.String,
        "width_px": pl.Int64,
        "height_px": pl.Int64,
        "fps": pl.Float32,
        "n_frames": pl.Int64,
        "path": pl.String,
    }
    row = {"video": video, **facts}
    held = {name: kind for name, kind in kinds.items() if row.get(name) is not None}
    return pl.DataFrame({name: [row[name]] for name in held}, schema=held)


def _boxes(parts: Mapping[str, Parts], named: pl.Expr, linker: LinkerConfig) -> tuple[pl.LazyFrame, int]:
    """Every detection with its tube; behind them what was interpolated."""
    owners = parts["paths"].scan().select("path", "tube")
    scored = ["scores"] if "scores" in parts["boxes"].schema else []
    columns = ["box", "video", "frame", *CORNERS, "score", *scored, "tube"]
    found = (
        parts["boxes"]
        .scan()
        .join(owners, on="path", how="left", maintain_order="left")
        .with_columns(named)
        .select(columns)
    )
    n = parts["boxes"].rows
    if linker.gaps != "interpolate":
        return found, n
    found = found.with_columns(interpolated=pl.lit(False))
    made = (
        parts["made"]
        .scan()
        .with_row_index("row")
        .with_columns(named, box=pl.col("row").cast(pl.Int64) + n, interpolated=pl.lit(True))
        .select([*columns, "interpolated"])
    )
    return pl.concat([found, made]), n + parts["made"].rows


def _tubes(
    parts: Mapping[str, Parts], named: pl.Expr, linker: LinkerConfig, classes: Classes
) -> tuple[pl.LazyFrame, pl.LazyFrame, int, int]:
    """Paths, behind them the labelled tubes kind after kind; and the labels; and how many there are."""
    squeezed = pl.lit(linker.gaps == "squeeze").alias("consecutive")
    spans = pl.List(pl.List(pl.Int64))
    whole = (
        parts["paths"]
        .scan()
        .select(
            "tube",
            named,
            pl.col("path").cast(pl.String).alias("name"),
            "start_frame",
            "end_frame",
            squeezed,
            "score",
            pl.lit(None, pl.Int64).alias("parent"),
            pl.lit(None, pl.String).alias("kind"),
            pl.lit(None, spans).alias("spans"),
        )
    )
    tables, labels, n = [whole], [], parts["paths"].rows
    for place, kind in enumerate(classes.kinds):
        held = parts[f"kind{place}"]
        rows = (
            held.scan()
            .with_row_index("row")
            .select(
                (pl.col("row").cast(pl.Int64) + n).alias("tube"),
                named,
                pl.lit(None, pl.String).alias("name"),
                "start_frame",
                "end_frame",
                squeezed,
                "score",
                "parent",
                pl.lit(kind).alias("kind"),
                pl.col("spans").arr.to_list().cast(spans),
                "label",
            )
        )
        tables.append(rows.drop("label"))
        labels.append(rows.select("tube", "kind", "label", "score"))
        n += held.rows
    empty = pl.LazyFrame(schema={"tube": pl.Int64, "kind": pl.String, "label": pl.Int64, "score": pl.Float64})
    return pl.concat(tables), pl.concat([empty, *labels]), n, n - parts["paths"].rows
