"""COCO JSON written: `annotations/instances_all.json` with videos, images, categories, and boxes with their tracks.

As `formats.coco_sets` reads it: left, top, width, height in pixels from 0; `frame_id` from 0; ids from 1. Boxes to ignore are
`iscrowd`. Each box is text that polars makes; only names go through Python.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from roadaware.errors import InputError
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_number
from roadaware.formats.coco import CocoIndex
from roadaware.io.sources import to_printable

MAIN = "annotations/instances_all.json"
INFO, RESULTS = "annotations/image_info_all.json", "results.json"


def write_coco(held: FlatBoxes, index: CocoIndex | None = None) -> Files:
    """Names and contents of the files: of predictions the list of results, and without an index that of images.

    Args:
        held: the boxes.
        index: of predictions, the images and categories of the annotations that they are about.

    Raises:
        InputError: if the index lacks an image or a category.
    """
    if index is not None:
        numbers = index.ids
        numbered = pl.DataFrame(
            [(video, frame, image) for (video, frame), image in numbers.items()],
            schema={"video": pl.String, "frame": pl.Int64, "image": pl.Int64},
            orient="row",
        )
        listed = held.boxes.select("v", "video", "frame").unique(maintain_order=True)
        listed = listed.join(numbered, on=["video", "frame"], how="left", maintain_order="left")
        if len(absent := listed.filter(pl.col("image").is_null())):
            raise InputError(
                f"frame {absent['frame'][0]} of {to_printable(absent['video'][0], 60)} is no image of these annotations",
                where=index.where,
                hint="give the annotations that the predictions are about",
            )
        known = {name: number for number, name in index.categories.items()}
        if other := [name for name in held.classes if name not in known]:
            raise InputError(
                f"these annotations have no category {to_printable(other[0], 60)!r}", where=index.where
            )
        places = [known[name] for name in held.classes]
        yield RESULTS, _format_results(held, listed, places).encode()
        return
    videos = [
        {"id": v + 1, "name": video, **{key: value for key, value in (
            ("width", width), ("height", height), ("fps", fps), ("length", length)) if value is not None}}
        for v, video, width, height, fps, length in held.videos.select(
            "v", "video", "width_px", "height_px", "fps", "n_frames").iter_rows()
    ]  # fmt: skip
    frames = held.frames.with_row_index("image", offset=1).join(
        held.videos.select("v", "width_px", "height_px"), on="v", how="left", maintain_order="left"
    )
    images = [
        {"id": image, "video_id": v + 1, "frame_id": frame, "file_name": path or f"{video}/{frame + 1:06d}.jpg",
         **({"width": width, "height": height} if width is not None and height is not None else {})}
        for image, v, video, frame, path, width, height in frames.iter_rows()
    ]  # fmt: skip
    categories = [{"id": n, "name": name} for n, name in enumerate(held.classes, 1)]
    head = f'{{"videos": {_encode(videos)},\n"images": {_encode(images)},\n"categories": {_encode(categories)},\n'
    if held.scored:
        yield INFO, (head + '"annotations": []}\n').encode()
        yield RESULTS, _format_results(held, frames, range(1, len(held.classes) + 1)).encode()
        return
    yield MAIN, (head + '"annotations": [' + _format_annotations(held, frames) + "]}\n").encode()


def _format_results(held: FlatBoxes, images: pl.DataFrame, categories: Sequence[int]) -> str:
    """The list of results; `images` has v, frame and the number of each, `categories` the numbers of the classes."""
    x1, y1, x2, y2 = (pl.col(f"{name}_px") for name in ("x1", "y1", "x2", "y2"))
    rows = held.boxes.join(
        images.select("v", "frame", "image"), on=["v", "frame"], how="left", maintain_order="left"
    )
    track = (
        pl.when(pl.col("track").is_not_null())
        .then(pl.concat_str(pl.lit(', "track_id": '), "track"))
        .otherwise(pl.lit(""))
    )
    number = (
        pl.col("label").replace_strict(dict(enumerate(categories)), return_dtype=pl.Int64)
        if categories
        else pl.lit(0)
    )
    line = pl.concat_str(
        pl.lit('{"image_id": '), "image", pl.lit(', "category_id": '), number, pl.lit(', "bbox": ['),
        pl.concat_str(*map(format_number, (x1, y1, x2 - x1, y2 - y1)), separator=", "), pl.lit('], "score": '),
        pl.col("score").cast(pl.String), track, pl.lit("}"),
    )  # fmt: skip
    return f"[{rows.select(line.str.join(',' + chr(10))).item() or ''}]\n"


def _format_annotations(held: FlatBoxes, frames: pl.DataFrame) -> str:
    x1, y1, x2, y2 = (pl.col(f"{name}_px") for name in ("x1", "y1", "x2", "y2"))
    rows = held.boxes.join(
        frames.select("v", "frame", "image"), on=["v", "frame"], how="left", maintain_order="left"
    )
    rows = rows.with_row_index("id", offset=1)
    track = (
        pl.when(pl.col("track").is_null()).then(pl.lit("")).otherwise(pl.format(', "track_id": {}', "track"))
    )
    box = pl.concat_str(*map(format_number, (x1, y1, x2 - x1, y2 - y1)), separator=", ")
    # Of the sides as they are written, so that the area is the same when they are read back.
    area = format_number(((x2 - x1).round(9) * (y2 - y1).round(9)).round(5))
    crowd = pl.col("ignore").fill_null(value=False).cast(pl.Int64)
    # Not pl.format, which takes every brace for its own.
    line = pl.concat_str(
        pl.lit('{"id": '), "id", pl.lit(', "image_id": '), "image", pl.lit(', "category_id": '), pl.col("label") + 1,
        pl.lit(', "bbox": ['), box, pl.lit('], "area": '), area, pl.lit(', "iscrowd": '), crowd, track, pl.lit("}"),
    )  # fmt: skip
    return str(rows.select(line.str.join(",\n")).item() or "")


def _encode(listed: list[dict[str, object]]) -> str:
    return json.dumps(listed, allow_nan=False)
