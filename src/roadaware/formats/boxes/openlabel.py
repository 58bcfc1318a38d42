"""ASAM OpenLABEL 1.0 written: `VIDEO.json` for each video, as `datasets.openlabel` reads it.

Boxes are the middle, width and height in pixels from 0; frames count from 0, and intervals include their last frame. Keys
of objects are numbers, names those of tracks. A box without a track is an object of its own, which says `tracked: false`;
boxes to ignore and what is hidden are attributes of boxes. The rate, where all videos share it, stands in `dataset.toml`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_facts, format_number, name_file


def adapt_objects(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """Tracks of one class each: of a track that changes its class every class is one of its own, which is counted."""
    tracked = pl.col("track").is_not_null()
    mixed = (
        held.boxes.filter(tracked)
        .group_by("v", "track")
        .agg(count=pl.col("label").n_unique())
        .filter(pl.col("count") > 1)
    )
    if mixed.is_empty():
        return held
    lost["tracks that change their class, written as one for each class"] += len(mixed)
    classes = dict(enumerate(held.classes))
    boxes = held.boxes.join(mixed, on=["v", "track"], how="left", maintain_order="left")
    named = pl.concat_str(
        "name", pl.lit(" "), pl.col("label").replace_strict(classes, return_dtype=pl.String)
    )
    return replace(
        held,
        boxes=boxes.with_columns(
            name=pl.when(pl.col("count").is_not_null()).then(named).otherwise("name")
        ).drop("count"),
    )


def write_openlabel(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: boxes with classes.

    Raises:
        InputError: if a video is no name of a file.
    """
    boxes = held.boxes.with_row_index("row")
    x1, y1, x2, y2 = (pl.col(f"{name}_px").round(9) for name in ("x1", "y1", "x2", "y2"))
    # Half of a sum needs one decimal more than corners have, or else they do not come back.
    middle = (
        ((a + b) / 2).round(10).cast(pl.String).str.replace(r"\.0$", "") for a, b in ((x1, x2), (y1, y2))
    )
    values = pl.concat_str(*middle, *map(format_number, (x2 - x1, y2 - y1)), separator=", ")
    ignored = pl.when(pl.col("ignore").fill_null(value=False)).then(
        pl.lit(', "boolean": [{"name": "ignore", "val": true}]')
    )
    hidden = pl.when(pl.col("occlusion").is_not_null()).then(
        pl.concat_str(pl.lit(', "text": [{"name": "occlusion", "val": "'), "occlusion", pl.lit('"}]'))
    )
    said = pl.concat_str(ignored.fill_null(""), hidden.fill_null("")).str.strip_prefix(", ")
    attributes = (
        pl.when(said != "")
        .then(pl.concat_str(pl.lit(', "attributes": {'), said, pl.lit("}")))
        .otherwise(pl.lit(""))
    )
    # A track of one class is one object; a track that changes its class is an object for each of them.
    loose = pl.col("track").is_null()
    boxes = boxes.with_columns(
        owner=pl.when(loose).then(-1 - pl.col("row").cast(pl.Int64)).otherwise("track")
    )
    objects = boxes.group_by("v", "owner", "label", maintain_order=True).agg(
        pl.col("name").first(), first=pl.col("frame").min(), last=pl.col("frame").max()
    )
    objects = objects.with_columns(key=pl.int_range(pl.len()).over("v"))
    line = pl.concat_str(
        pl.lit('"'), "key", pl.lit('": {"object_data": {"bbox": [{"name": "shape", "val": ['), values, pl.lit("]"),
        attributes, pl.lit("}]}}"),
    )  # fmt: skip
    lines = boxes.join(
        objects.select("v", "owner", "label", "key"), on=["v", "owner", "label"], maintain_order="left"
    )
    texts = lines.select("v", "frame", line=line).group_by("v", "frame", maintain_order=True).agg(
        pl.col("line").str.join(", ")
    )  # fmt: skip
    frames = held.frames.join(texts, on=["v", "frame"], how="left", maintain_order="left")
    shown: dict[int, list[str]] = {}
    for v, frame, text in frames.select("v", "frame", "line").iter_rows():
        shown.setdefault(v, []).append(f'"{frame}": {{"objects": {{{text or ""}}}}}')
    of: dict[int, dict[str, Any]] = {}
    for v, owner, label, name, first, last, key in objects.iter_rows():
        each: dict[str, Any] = {
            "name": name if owner >= 0 else f"box {key}",
            "type": held.classes[label],
            "frame_intervals": [{"frame_start": first, "frame_end": last}],
        }
        if owner < 0:
            each["object_data"] = {"boolean": [{"name": "tracked", "val": False}]}
        of.setdefault(v, {})[str(key)] = each
    for row in held.videos.iter_rows(named=True):
        head = _build_head(row, of.get(row["v"], {}))
        listed = ",\n".join(shown.get(row["v"], []))
        name = name_file(row["video"].replace("/", "_"), ".json")
        yield name, f'{{"openlabel": {json.dumps(head)[:-1]}, "frames": {{{listed}}}}}}}\n'.encode()
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts


def _build_head(row: dict[str, Any], objects: dict[str, Any]) -> dict[str, Any]:
    """What a file says but for the boxes."""
    head: dict[str, Any] = {"metadata": {"schema_version": "1.0.0", "name": row["video"]}, "objects": objects}
    if row["n_frames"]:
        head["frame_intervals"] = [{"frame_start": 0, "frame_end": row["n_frames"] - 1}]
    if row["width_px"] is not None and row["height_px"] is not None:
        lens = {"intrinsics_pinhole": {"width_px": row["width_px"], "height_px": row["height_px"]}}
        head["streams"] = {"camera": {"type": "camera", "stream_properties": lens}}
    return head
