"""Pascal VOC written: `Annotations/VIDEO_NUMBER.xml` for each image, as `datasets.voc` reads it by default.

Corners are edges in pixels from 0, the right one excluded, with decimals where they have some; frames count from 1; boxes to
ignore are `difficult`. `ImageSets/Main/SPLIT.txt` lists the images of each split, `labelmap.txt` the classes. The rate stands
in `dataset.toml`.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.datasets.voc import LABEL_MAP
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_facts, format_number, name_file

_OBJECT = (
    "  <object><name>{}</name><pose>Unspecified</pose><truncated>0</truncated><difficult>{}</difficult><bndbox>"
    "<xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"
)


def write_voc(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: boxes with classes.

    Raises:
        InputError: if a video is no name of a file.
    """
    names = pl.Series("name", [escape(name) for name in held.classes], dtype=pl.String)
    corners = (format_number(pl.col(f"{name}_px")) for name in ("x1", "y1", "x2", "y2"))
    called = (
        pl.col("label").replace_strict(dict(enumerate(names)), return_dtype=pl.String)
        if len(names)
        else pl.lit("")
    )
    line = pl.format(_OBJECT, called, pl.col("ignore").fill_null(value=False).cast(pl.Int64), *corners)
    lines = held.boxes.select("v", "frame", line=line)
    texts = lines.group_by("v", "frame", maintain_order=True).agg(pl.col("line").str.join("\n"))
    frames = held.frames.join(texts, on=["v", "frame"], how="left", maintain_order="left").join(
        held.videos.select("v", "width_px", "height_px", "split"), on="v", how="left", maintain_order="left"
    )
    splits: dict[str, list[str]] = {}
    columns = ("video", "frame", "line", "path", "width_px", "height_px", "split")
    for video, frame, text, path, width, height, split in frames.select(columns).iter_rows():
        stem = name_file(video.replace("/", "_"), f"_{frame + 1:06d}")
        if split:
            splits.setdefault(split, []).append(stem)
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        head = f"<annotation>\n  <filename>{escape(path or stem + '.jpg')}</filename>\n  {size}\n"
        yield f"Annotations/{stem}.xml", (head + (text + "\n" if text else "") + "</annotation>\n").encode()
    if held.classes:
        # Datumaro and CVAT know no other classes than those of 2007 without it.
        listing = ["# label:color_rgb:parts:actions", *(f"{name}:::" for name in held.classes)]
        yield LABEL_MAP, ("\n".join(listing) + "\n").encode()
    for split, listed in splits.items():
        yield f"ImageSets/Main/{split}.txt", ("\n".join(listed) + "\n").encode()
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts
