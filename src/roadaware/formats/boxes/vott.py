"""VoTT written: `VIDEO.json` for each video, as the Visual Object Tagging Tool 1 exports it and `datasets.vott` reads it.

Corners are pixels from 0; frames count from 1, an empty list is a frame in which there is nothing. `id` is the track: of a
box without one a name that no other box has, as VoTT gives every region. The size of the image stands in its regions alone.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import polars as pl

from roadaware.errors import InputError
from roadaware.formats.boxes.flat import (
    Files,
    FlatBoxes,
    encode_classes,
    encode_tracks,
    format_corner,
    join_lines,
    name_file,
)
from roadaware.io.sources import to_printable


def adapt_regions(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """Boxes with an area, and tracks of several boxes; what that loses is counted."""
    empty = (pl.col("x2_px") <= pl.col("x1_px")) | (pl.col("y2_px") <= pl.col("y1_px"))
    lost["boxes without an area, left out"] += held.boxes.select(empty.sum()).item()
    boxes = held.boxes.filter(~empty)
    alone = pl.col("name").is_not_null() & (pl.len().over("v", "name") == 1)
    lost["tracks of one box: VoTT takes a name for a track where two frames have it"] += boxes.select(
        alone.sum()
    ).item()
    none = pl.lit(None, pl.String)
    boxes = boxes.with_columns(name=pl.when(alone).then(none).otherwise("name"))
    bare = held.videos.join(boxes.select("v").unique(), on="v", how="anti")
    lost["sizes of videos without boxes"] += len(bare) - bare["width_px"].null_count()
    unseen = held.videos.join(held.frames.select("v").unique(), on="v", how="anti")
    lost["videos of which no frame was looked at"] += len(unseen)
    return replace(held, boxes=boxes)


def write_vott(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: boxes with classes.

    Raises:
        InputError: if a video is no name of a file, or a class cannot stand in VoTT's list of tags.
    """
    if odd := next((name for name in held.classes if "," in name or name != name.strip()), None):
        raise InputError(
            f"the class {to_printable(odd, 60)!r} has a comma or blanks around it; VoTT lists tags with commas between",
            hint="rename the class",
        )
    # Numbers that no track of the video can have: VoTT takes a name for a track where two frames have it.
    alone = pl.concat_str(pl.lit('"box '), pl.int_range(pl.len()).cast(pl.String), pl.lit('"'))
    tags = encode_classes(held.classes, lambda name: json.dumps([name])).fill_null("[]")
    corners = [
        part
        for name in ("x1", "y1", "x2", "y2")
        for part in (pl.lit(f', "{name}": '), format_corner(pl.col(f"{name}_px")))
    ]
    sides = [
        part for name in ("width", "height")
        for part in (pl.lit(f', "{name}": '), pl.col(f"{name}_px").cast(pl.String))
    ]  # fmt: skip
    boxes = held.boxes.join(
        held.videos.select("v", "width_px", "height_px"), on="v", how="left", maintain_order="left"
    )
    line = pl.concat_str(
        pl.lit('{"id": '),
        encode_tracks(held.boxes).fill_null(alone),
        *corners,
        *sides,
        pl.lit(', "type": "Rectangle", "tags": '),
        tags,
        pl.lit("}"),
    )
    frames = join_lines(held, boxes, line)
    shown = frames.group_by("v", maintain_order=True).agg(
        pl.concat_str(
            pl.lit('"'), pl.col("frame") + 1, pl.lit('": ['), pl.col("line").fill_null(""), pl.lit("]")
        ).str.join(",\n"),
        visited=(pl.col("frame") + 1).cast(pl.String).str.join(", "),
    )  # fmt: skip
    listed = {v: (text, visited) for v, text, visited in shown.iter_rows()}
    for row in held.videos.iter_rows(named=True):
        text, visited = listed.get(row["v"], ("", ""))
        rate = {} if row["fps"] is None else {"framerate": f"{row['fps']:g}"}
        about = json.dumps(
            {**rate, "inputTags": ",".join(held.classes), "suggestiontype": "track", "scd": False}
        )
        content = f'{{"frames": {{{text}}},\n{about[1:-1]}, "visitedFrames": [{visited}]}}\n'
        yield name_file(row["video"].replace("/", "_"), ".json"), content.encode()
