"""YOLO text written: `labels/SPLIT/VIDEO_NUMBER.txt` for each image, with `data.yaml`, as `datasets.yolo` reads it.

A line is `class cx cy w h`, shares of the image, with the number of the track behind where a box has one; frames count from
1. Size and rate, where all videos share them, stand in `dataset.toml`. An image in which there is nothing has an empty file.
"""

from __future__ import annotations

import json

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import SPLITS, Files, FlatBoxes, format_facts, name_file


def write_yolo(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: the boxes, in videos of known size.

    Raises:
        InputError: if a video is no name of a file.
    """
    sized = held.boxes.join(
        held.videos.select("v", "width_px", "height_px"), on="v", how="left", maintain_order="left"
    )
    x1, y1, x2, y2 = (pl.col(f"{name}_px") for name in ("x1", "y1", "x2", "y2"))
    wide, high = pl.col("width_px"), pl.col("height_px")
    # Ten decimals: less than a millionth of a pixel, and more than the reader's sums lose, so that text comes back the same.
    shares = (share.round(10).cast(pl.String) for share in
              ((x1 + x2) / 2 / wide, (y1 + y2) / 2 / high, (x2 - x1) / wide, (y2 - y1) / high))  # fmt: skip
    track = pl.when(pl.col("track").is_null()).then(pl.lit("")).otherwise(pl.format(" {}", "track"))
    score = (pl.col("score").cast(pl.String),) if held.scored else ()
    line = pl.concat_str(pl.concat_str(pl.col("label"), *shares, *score, separator=" "), track)
    lines = sized.select("v", "frame", line=line)
    texts = lines.group_by("v", "frame", maintain_order=True).agg(pl.col("line").str.join("\n"))
    frames = held.frames.join(texts, on=["v", "frame"], how="left", maintain_order="left")
    frames = frames.join(held.videos.select("v", "split"), on="v", how="left", maintain_order="left")
    named = held.videos["split"].drop_nulls().to_list()
    splits = [split for split in SPLITS if split in named]
    images = "".join(f"{split}: images/{split}\n" for split in splits) or "train: images\nval: images\n"
    names = "".join(f"  {n}: {json.dumps(name, ensure_ascii=False)}\n" for n, name in enumerate(held.classes))
    yield "data.yaml", f"{images}names:\n{names}".encode() if names else f"{images}names: []\n".encode()
    if (facts := format_facts(held, "fps", "size")) is not None:
        yield FACTS, facts
    for video, frame, text, split in frames.select("video", "frame", "line", "split").iter_rows():
        name = name_file(video, f"_{frame + 1:06d}.txt")
        name = f"labels/{split}/{name}" if split else f"labels/{name}"
        yield name, (text + "\n" if text else "").encode()
