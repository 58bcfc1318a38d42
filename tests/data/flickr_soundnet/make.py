"""Write a tiny set in Flickr-SoundNet's native format: an XML file for each image, three annotators."""

from __future__ import annotations

from pathlib import Path

FORMAT = "plain xml"
MAIN = "10000130166.xml"
VIDEO = "10000130166"
OTHERS = ()
BAD_ROW = "upside down"
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"<xmax>180<", b"<xmax>10<", 1),
    "changed": lambda data: data.replace(b"<xmax>180<", b"<xmax>1800<", 1),
    "same_size": lambda data: data.replace(b"<xmax>180<", b"<xmax>181<", 1),
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write three images, and as many more as `frames` is above three."""
    root.mkdir(parents=True, exist_ok=True)
    for n in range(max(frames, 3)):
        boxes = [
            [(20 + 5 * n, 30, 180, 200)],
            [(25, 35 + n, 180, 210), (0, 0, 20, 256)],
            [(90, 90, 180, 180)],
        ]
        (root / f"{10000130166 + n}.xml").write_text(picture(boxes), encoding="utf-8")
    return root


def picture(boxes: list[list[tuple[int, int, int, int]]]) -> str:
    """One image with the boxes of each annotator."""
    blocks = []
    for annotator, drawn in enumerate(boxes, 1):
        held = "".join(
            f"\n    <bbox><index>{place}</index><xmin>{x1}</xmin><ymin>{y1}</ymin>"
            f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bbox>"
            for place, (x1, y1, x2, y2) in enumerate(drawn)
        )
        blocks.append(f'  <annotation annotator="{annotator}">{held}\n  </annotation>\n')
    return f"<?xml version='1.0' encoding='utf-8'?>\n<annotations>\n{''.join(blocks)}</annotations>\n"
