"""Write a tiny set as CVAT exports it: a video with tracks, and a set of images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FORMAT = "xml attributes"
MAIN = "street.xml"
VIDEO = "street"
OTHERS = ()
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b'xbr="60.50"', b'xbr="1.50"', 1),
    "changed": lambda data: data.replace(b'xbr="60.50"', b'xbr="160.50"', 1),
    "same_size": lambda data: data.replace(b'xbr="60.50"', b'xbr="61.50"', 1),
}
OPTIONS = {"fps": 10}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write a video of two tracks, and two images.

    Args:
        root: where to; made with its parents.
        frames: of the video.
    """
    root.mkdir(parents=True, exist_ok=True)
    tracks = []
    for number, label in enumerate(("person", "car")):
        boxes = [
            f'    <box frame="{frame}" keyframe="1" outside="0" occluded="0" xtl="{10 + frame}.25" ytl="20.00" '
            f'xbr="60.50" ybr="80.75" z_order="0"></box>'
            for frame in range(frames)
        ]
        boxes.append(
            f'    <box frame="{frames}" keyframe="1" outside="1" occluded="0" xtl="10.25" ytl="20.00" '
            f'xbr="60.50" ybr="80.75" z_order="0"></box>'
        )
        tracks.append(
            f'  <track id="{number}" label="{label}" source="manual">\n' + "\n".join(boxes) + "\n  </track>"
        )
    (root / MAIN).write_text(_wrap("street", frames + 1, "\n".join(tracks)))
    box = '<box label="car" occluded="0" xtl="1.50" ytl="2.00" xbr="30.00" ybr="40.25" z_order="0"></box>'
    images = [
        f'  <image id="{n}" name="shot{n}.png" width="640" height="480">{box if n else ""}</image>'
        for n in range(2)
    ]
    (root / "shots.xml").write_text(_wrap("shots", 2, "\n".join(images)))
    return root


def _wrap(name: str, size: int, inner: str) -> str:
    labels = "".join(f"<label><name>{label}</name></label>" for label in ("person", "car"))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n  <meta><task>'
        f"<name>{name}</name><size>{size}</size><labels>{labels}</labels><original_size><width>640</width>"
        f"<height>480</height></original_size></task></meta>\n{inner}\n</annotations>\n"
    )
