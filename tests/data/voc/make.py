"""Write a tiny set in the format of Pascal VOC: an XML file for each image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FORMAT = "plain xml"
MAIN = "Annotations/street_000002.xml"
VIDEO = "street"
OTHERS = ()
FRAME = 1
"""The main file is this frame of the video alone."""
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"<xmax>60<", b"<xmax>6<", 1),
    "changed": lambda data: data.replace(b"<xmax>60<", b"<xmax>160<", 1),
    "same_size": lambda data: data.replace(b"<xmax>60<", b"<xmax>61<", 1),
}
OPTIONS = {"fps": 10}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write a video and an image by itself.

    Args:
        root: where to; made with its parents.
        frames: of the video.
    """
    folder = root / "Annotations"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*(f"street_{n:06d}" for n in range(1, frames + 1)), "alone"):
        (folder / f"{name}.xml").write_text(picture(name))
    return root


def picture(name: str) -> str:
    """An image with a walker and a car that is difficult to see."""
    objects = "".join(
        f"<object><name>{label}</name><difficult>{hard}</difficult><bndbox><xmin>{left}</xmin><ymin>20</ymin>"
        f"<xmax>60</xmax><ymax>80.5</ymax></bndbox></object>\n"
        for label, hard, left in (("person", 0, 10), ("car", 1, 20))
    )
    return (
        f"<annotation>\n<filename>{name}.jpg</filename><size><width>640</width><height>480</height><depth>3</depth>"
        f"</size>\n{objects}</annotation>\n"
    )
