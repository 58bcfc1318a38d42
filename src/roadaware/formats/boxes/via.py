"""VIA written: a project of the VGG Image Annotator 2 (`via.json`), or its csv, as `datasets.via` reads them.

Regions are `rect` in pixels from 0 with the attributes class, track, ignore and, of predictions, score, whose values are
text, as VIA keeps them; images are called `VIDEO_NUMBER`, counted from 1. Rate and size that all videos share stand in
`dataset.toml`.
"""

from __future__ import annotations

import json

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.datasets.via import ATTRIBUTES, COLUMNS, IGNORE, PROJECT, SCORE, TRACK
from roadaware.formats.boxes.flat import (
    Files,
    FlatBoxes,
    encode_classes,
    encode_tracks,
    format_corner,
    format_facts,
    format_number,
    join_lines,
)
from roadaware.io.csv import format_csv

MAIN, MAIN_CSV = "via.json", "via.csv"
CLASS = "class"


def write_via(held: FlatBoxes) -> Files:
    """Names and contents of the files of a project."""
    regions = _list_regions(held)
    line = pl.concat_str(
        pl.lit('{"shape_attributes": '), "shape", pl.lit(', "region_attributes": '), "attributes", pl.lit("}")
    )
    frames = join_lines(held, regions, line)
    shown = []
    for video, frame, text in frames.select("video", "frame", "line").iter_rows():
        name = f"{video}_{frame + 1:06d}.jpg"
        head = json.dumps({"filename": name, "size": -1})
        shown.append(
            f'{json.dumps(f"{name}-1")}: {head[:-1]}, "regions": [{text or ""}], "file_attributes": {{}}}}'
        )
    said = {
        CLASS: {
            "type": "dropdown",
            "description": "",
            "options": dict.fromkeys(held.classes, ""),
            "default_options": {},
        }
    }
    said |= {name: {"type": "text", "description": "", "default_value": ""} for name in (TRACK, IGNORE)}
    facts = {"_via_settings": {"project": {"name": "roadaware"}}, ATTRIBUTES: {"region": said, "file": {}}}
    yield MAIN, (f'{json.dumps(facts)[:-1]},\n"{PROJECT}": {{' + ",\n".join(shown) + "}}\n").encode()
    yield from _format_toml(held)


def write_via_csv(held: FlatBoxes) -> Files:
    """Names and contents of the files of annotations in csv."""
    place = pl.int_range(pl.len()).over("v", "frame")
    rows = held.frames.select("v", "video", "frame").join(
        _list_regions(held).with_columns(region_id=place, count=pl.len().over("v", "frame")),
        on=["v", "frame"], how="left", maintain_order="left_right",
    )  # fmt: skip
    names = pl.concat_str(
        "video", pl.lit("_"), (pl.col("frame") + 1).cast(pl.String).str.zfill(6), pl.lit(".jpg")
    )
    values = (names, pl.lit(-1), pl.lit("{}"), pl.col("count").fill_null(0), pl.col("region_id").fill_null(0),
              pl.col("shape").fill_null("{}"), pl.col("attributes").fill_null("{}"))  # fmt: skip
    yield (
        MAIN_CSV,
        format_csv(
            rows.select(value.alias(name) for name, value in zip(COLUMNS, values, strict=True))
        ).encode(),
    )
    yield from _format_toml(held)


def _format_toml(held: FlatBoxes) -> Files:
    if (facts := format_facts(held, "fps", "size")) is not None:
        yield FACTS, facts


def _list_regions(held: FlatBoxes) -> pl.DataFrame:
    """`v`, `frame`, `shape` and `attributes` of each box, the latter two as JSON."""

    def say(key: str, value: pl.Expr) -> pl.Expr:
        return (
            pl.when(value.is_not_null())
            .then(pl.concat_str(pl.lit(f'"{key}": '), value))
            .otherwise(pl.lit(None, pl.String))
        )

    label, track = encode_classes(held.classes), encode_tracks(held.boxes)
    ignore = pl.when(pl.col("ignore").fill_null(value=False)).then(pl.lit('"1"'))
    score = pl.concat_str(pl.lit('"'), pl.col("score").cast(pl.String), pl.lit('"'))
    x1, y1, x2, y2 = (pl.col(f"{name}_px").cast(pl.Float64) for name in ("x1", "y1", "x2", "y2"))
    sides = ((", \"x\": ", format_corner(x1)), (", \"y\": ", format_corner(y1)),
             (", \"width\": ", format_number(x2 - x1)), (", \"height\": ", format_number(y2 - y1)))  # fmt: skip
    shape = pl.concat_str(
        pl.lit('{"name": "rect"'), *(part for key, side in sides for part in (pl.lit(key), side)), pl.lit("}")
    )
    said = pl.concat_str(
        say(CLASS, label),
        say(TRACK, track),
        say(IGNORE, ignore),
        say(SCORE, score),
        separator=", ",
        ignore_nulls=True,
    )
    return held.boxes.select(
        "v", "frame", shape=shape, attributes=pl.concat_str(pl.lit("{"), said, pl.lit("}"))
    )
