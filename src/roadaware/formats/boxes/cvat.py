"""CVAT for video 1.1 written: `VIDEO.xml` for each video, as `datasets.cvat_tasks` reads it and CVAT imports it.

Every box is a key frame, since CVAT makes up what lies between key frames; where a track is not in view, the frame behind its
last box has `outside="1"`. Frames count from 0. The rate, where all videos share it, stands in `dataset.toml`.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.errors import InputError
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_facts, format_number, name_file
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS

_BOX = '    <box frame="{}" keyframe="1" outside="{}" occluded="{}" xtl="{}" ytl="{}" xbr="{}" ybr="{}" z_order="0"></box>'


def write_cvat(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: boxes with tracks, in videos of known length.

    Raises:
        InputError: if a video is no name of a file, or a track changes its class.
    """
    rows = held.boxes.sort("v", "track", "frame")
    mixed = rows.group_by("v", "video", "track").agg(pl.col("label").n_unique()).filter(pl.col("label") > 1)
    if len(mixed):
        _, video, track, _ = mixed.row(0)
        raise InputError(
            f"track {track} of {to_printable(video, 60)} changes its class, and a track of CVAT has one",
            hint="give it one class, or write coco, mot or yolo",
        )
    own = ["v", "track"]
    rows = rows.with_columns(
        pl.col("frame").shift(-1).over(own).alias("following"),
        *(format_number(pl.col(c)).alias(c) for c in CORNERS),
    ).join(held.videos.select("v", "n_frames"), on="v", how="left", maintain_order="left")
    ends = (pl.col("following") != pl.col("frame") + 1).fill_null(value=True)
    ends &= (pl.col("frame") + 1 < pl.col("n_frames")).fill_null(value=True)
    occluded = pl.when(pl.col("occlusion") == "part").then(pl.lit("1")).otherwise(pl.lit("0"))
    box = pl.format(_BOX, "frame", pl.lit("0"), occluded, *CORNERS)
    gone = (
        pl.when(ends)
        .then(pl.format("\n" + _BOX, pl.col("frame") + 1, pl.lit("1"), occluded, *CORNERS))
        .otherwise(pl.lit(""))
    )
    lines = rows.select(*own, "label", line=pl.concat_str(box, gone))
    tracks = lines.group_by(own, maintain_order=True).agg(
        pl.col("label").first(), pl.col("line").str.join("\n")
    )
    texts: dict[int, list[str]] = {}
    for v, track, label, text in tracks.iter_rows():
        head = f'  <track id="{track}" label={quoteattr(held.classes[label])} source="manual">'
        texts.setdefault(v, []).append(f"{head}\n{text}\n  </track>\n")
    labels = "".join(
        f"<label><name>{escape(name)}</name><type>rectangle</type></label>" for name in held.classes
    )
    for row in held.videos.iter_rows(named=True):
        size = ""
        if row["width_px"] is not None and row["height_px"] is not None:
            size = f"<original_size><width>{row['width_px']}</width><height>{row['height_px']}</height></original_size>"
        head = (
            '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
            f"  <meta><task><name>{escape(row['video'])}</name><size>{row['n_frames']}</size><mode>interpolation</mode>"
            f"<start_frame>0</start_frame><stop_frame>{row['n_frames'] - 1}</stop_frame>"
            f"<labels>{labels}</labels>{size}</task></meta>\n"
        )
        name = name_file(row["video"].replace("/", "_"), ".xml")
        yield name, (head + "".join(texts.get(row["v"], [])) + "</annotations>\n").encode()
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts
