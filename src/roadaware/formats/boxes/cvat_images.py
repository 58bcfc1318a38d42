"""CVAT for images 1.1 written: `VIDEO.xml` for each video, as `datasets.cvat_tasks` reads it and CVAT imports it.

Frames are images in the order of their ids, from 0, so that all of a video are listed. Boxes have no tracks. The rate,
where all videos share it, stands in `dataset.toml`.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_corner, format_facts, name_file
from roadaware.scenes.schema import CORNERS


def write_cvat_images(held: FlatBoxes) -> Files:
    """Names and contents of the files.

    Args:
        held: boxes with classes, in videos of known length and size.

    Raises:
        InputError: if a video is no name of a file.
    """
    classes = {n: quoteattr(name) for n, name in enumerate(held.classes)}
    label = pl.col("label").replace_strict(classes, return_dtype=pl.String) if classes else pl.lit('""')
    occluded = pl.when(pl.col("occlusion") == "part").then(pl.lit("1")).otherwise(pl.lit("0"))
    x1, y1, x2, y2 = (format_corner(pl.col(name)) for name in CORNERS)
    line = pl.concat_str(
        pl.lit("    <box label="), label, pl.lit(' source="manual" occluded="'), occluded, pl.lit('" xtl="'), x1,
        pl.lit('" ytl="'), y1, pl.lit('" xbr="'), x2, pl.lit('" ybr="'), y2, pl.lit('" z_order="0"></box>'),
    )  # fmt: skip
    lines = held.boxes.select("v", "frame", line=line)
    texts = lines.group_by("v", "frame", maintain_order=True).agg(pl.col("line").str.join("\n"))
    boxes = {(v, frame): text for v, frame, text in texts.iter_rows()}
    paths = {
        (v, frame): path for v, frame, path in held.frames.select("v", "frame", "path").iter_rows() if path
    }
    labels = "".join(
        f"<label><name>{escape(name)}</name><type>rectangle</type></label>" for name in held.classes
    )
    for row in held.videos.iter_rows(named=True):
        v, size = row["v"], f'width="{row["width_px"]}" height="{row["height_px"]}"'
        parts = [
            '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
            f"  <meta><task><name>{escape(row['video'])}</name><size>{row['n_frames']}</size><mode>annotation</mode>"
            f"<labels>{labels}</labels></task></meta>\n"
        ]
        for frame in range(row["n_frames"]):
            name = quoteattr(paths.get((v, frame), f"{row['video']}_{frame + 1:06d}.jpg"))
            text = boxes.get((v, frame))
            parts.append(
                f'  <image id="{frame}" name={name} {size}>\n{text + chr(10) if text else ""}  </image>\n'
            )
        yield (
            name_file(row["video"].replace("/", "_"), ".xml"),
            ("".join(parts) + "</annotations>\n").encode(),
        )
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts
