"""MOT text written: a folder for each sequence, as `datasets.mot` reads it and TrackEval and CVAT take it.

`SPLIT/SEQUENCE/gt/gt.txt`, `gt/labels.txt` (the classes from 1) and `seqinfo.ini`. Frames and pixels count from 1; a box
without a track has the id -1, one without a class the class -1, one to ignore the conf 0.
"""

from __future__ import annotations

from collections import Counter

import polars as pl

from roadaware.datasets.mot import FIRST_PIXEL, INFO, LABELS, TRUTH
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_number, name_file


def adapt_results(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """The boxes as they are; their classes, of which results say nothing, are counted."""
    lost["classes of boxes"] += held.boxes["label"].count()
    return held


def write_mot_results(held: FlatBoxes) -> Files:
    """Names and contents of the files of a tracker or, where no box has a track, of a detector: `VIDEO.txt`.

    Raises:
        InputError: if a video is no name of a file.
    """
    x1, y1, x2, y2 = (pl.col(f"{name}_px") for name in ("x1", "y1", "x2", "y2"))
    fields = (
        pl.col("frame") + 1, pl.col("track").fill_null(-1), format_number(x1 + FIRST_PIXEL), format_number(y1 + FIRST_PIXEL),
        format_number(x2 - x1), format_number(y2 - y1), pl.col("score"), pl.lit("-1,-1,-1"),
    )  # fmt: skip
    lines = held.boxes.select("v", line=pl.concat_str(fields, separator=","))
    texts = dict(lines.group_by("v", maintain_order=True).agg(pl.col("line").str.join("\n")).iter_rows())
    for v, video in held.videos.select("v", "video").iter_rows():
        text = texts.get(v, "")
        yield name_file(video.replace("/", "_"), ".txt"), (text + "\n" if text else "").encode()


def write_mot(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Raises:
        InputError: if a video is no name of a folder.
    """
    x1, y1, x2, y2 = (pl.col(f"{name}_px") for name in ("x1", "y1", "x2", "y2"))
    conf = 1 - pl.col("ignore").fill_null(value=False).cast(pl.Int64)
    fields = (
        pl.col("frame") + 1, pl.col("track").fill_null(-1), format_number(x1 + FIRST_PIXEL), format_number(y1 + FIRST_PIXEL),
        format_number(x2 - x1), format_number(y2 - y1), conf, (pl.col("label") + 1).fill_null(-1), pl.lit(1),
    )  # fmt: skip
    lines = held.boxes.select("v", line=pl.concat_str(fields, separator=","))
    texts = dict(lines.group_by("v", maintain_order=True).agg(pl.col("line").str.join("\n")).iter_rows())
    for row in held.videos.iter_rows(named=True):
        base = name_file(row["video"].replace("/", "_"))
        base = f"{row['split']}/{base}" if row["split"] else base
        rate = None if row["fps"] is None else f"{row['fps']:.9g}"
        facts = {"name": row["video"], "imDir": "img1", "frameRate": rate, "seqLength": row["n_frames"],
                 "imWidth": row["width_px"], "imHeight": row["height_px"], "imExt": ".jpg"}  # fmt: skip
        info = [f"{key}={value}" for key, value in facts.items() if value is not None]
        yield f"{base}/{INFO}", "\n".join(["[Sequence]", *info, ""]).encode()
        text = texts.get(row["v"], "")
        yield f"{base}/{TRUTH}", (text + "\n" if text else "").encode()
        if held.classes:
            yield f"{base}/{LABELS}", ("\n".join(held.classes) + "\n").encode()
