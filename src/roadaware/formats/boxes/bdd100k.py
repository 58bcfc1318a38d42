"""BDD100K's JSON written: `VIDEO.json` for each video, as `datasets.bdd100k` reads it and Scalabel's tools do.

A file is the list of the video's frames, in a folder of its split where it has one. The last pixel of a box is inside: one
is taken off x2 and y2. `frameIndex` counts from 0, file names from 1. Boxes to ignore are `crowd`; a box without a track
has an empty `id`. The rate, where all videos share it, stands in `dataset.toml`.
"""

from __future__ import annotations

import json

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import (
    Files,
    FlatBoxes,
    encode_classes,
    encode_tracks,
    format_corner,
    format_facts,
    join_lines,
    name_file,
)


def write_bdd100k(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Raises:
        InputError: if a video is no name of a file.
    """
    edges = (pl.col("x1_px"), pl.col("y1_px"), pl.col("x2_px") - 1, pl.col("y2_px") - 1)
    corners = [
        part
        for key, edge in zip(("x1", "y1", "x2", "y2"), edges, strict=True)
        for part in (pl.lit(f', "{key}": ' if key != "x1" else '"x1": '), format_corner(edge))
    ]

    def say(flag: pl.Expr) -> pl.Expr:
        return pl.when(flag.fill_null(value=False)).then(pl.lit("true")).otherwise(pl.lit("false"))

    line = pl.concat_str(
        pl.lit('{"id": '), encode_tracks(held.boxes).fill_null('""'), pl.lit(', "category": '),
        encode_classes(held.classes).fill_null("null"),
        pl.lit(', "attributes": {"occluded": '), say(pl.col("occlusion") == "part"), pl.lit(', "crowd": '),
        say(pl.col("ignore")), pl.lit('}, "box2d": {'), *corners, pl.lit("}"),
        *((pl.lit(', "score": '), pl.col("score").cast(pl.String)) if held.scored else ()), pl.lit("}"),
    )  # fmt: skip
    frames = join_lines(held, held.boxes, line)
    videos = {row["v"]: row for row in held.videos.iter_rows(named=True)}
    for (v,), own in frames.group_by("v", maintain_order=True):
        row = videos.pop(v)
        yield _name(row), _encode_video(row, own).encode()
    for row in videos.values():
        yield _name(row), b"[]\n"
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts


def _name(row: dict[str, object]) -> str:
    name = name_file(str(row["video"]).replace("/", "_"), ".json")
    return f"{row['split']}/{name}" if row["split"] else name


def _encode_video(row: dict[str, object], frames: pl.DataFrame) -> str:
    size = (
        {"size": {"width": row["width_px"], "height": row["height_px"]}}
        if row["width_px"] is not None and row["height_px"] is not None
        else {}
    )
    shown = []
    for frame, path, text in frames.select("frame", "path", "line").iter_rows():
        file = path or f"{row['video']}-{frame + 1:07d}.jpg"
        head = json.dumps({"name": file, "videoName": row["video"], "frameIndex": frame, **size})
        shown.append(f'{head[:-1]}, "labels": [{text or ""}]}}')
    return "[" + ",\n".join(shown) + "]\n"
