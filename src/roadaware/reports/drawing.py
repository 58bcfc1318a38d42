"""Frames of a video with the boxes of tables drawn on them: for films and contact sheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Pixels
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_SHOWN_KINDS = ("agent", "action", "location", "corner")
COLOURS = (
    (255, 214, 10),
    (64, 224, 208),
    (255, 99, 132),
    (120, 200, 80),
    (255, 159, 64),
    (153, 140, 255),
    (100, 180, 255),
    (240, 128, 220),
    (200, 220, 120),
    (220, 220, 220),
)
_MOST_WORDS = 3
_GAP_PX = 4


@dataclass(frozen=True)
class Marked:
    """A box with what stands above it.

    Args:
        corners: x1, y1, x2, y2 in pixels.
        words: its labels.
        colour: of its frame, red, green, blue.
    """

    corners: tuple[float, float, float, float]
    words: str
    colour: tuple[int, int, int]


def marks_of(scenes: Scenes, video: str) -> dict[int, list[Marked]]:
    """Frame to the boxes to be drawn in it, far ones first where the distance is known.

    Args:
        scenes: with boxes and labels.
        video: whose.
    """
    boxes = scenes.boxes.filter(pl.col("video").cast(pl.String) == video)
    if "distance_m" in boxes.columns:
        boxes = boxes.sort("distance_m", descending=True, nulls_last=False, maintain_order=True)
    words = _words(scenes, boxes["box"])
    found: dict[int, list[Marked]] = {}
    for row in boxes.select("box", "frame", *CORNERS).iter_rows(named=True):
        labels = words.get(row["box"], {})
        kinds = [kind for kind in _SHOWN_KINDS if kind in labels]
        first = labels[kinds[0]][0] if kinds else (0, "")
        text = " ".join("+".join(name for _, name in labels[kind][:_MOST_WORDS]) for kind in kinds)
        corners = (row[CORNERS[0]], row[CORNERS[1]], row[CORNERS[2]], row[CORNERS[3]])
        found.setdefault(row["frame"], []).append(Marked(corners, text, COLOURS[first[0] % len(COLOURS)]))
    return found


def drawn(
    picture: Pixels,
    marks: Sequence[Marked],
    *,
    title: str = "",
    scale: int = 1,
    line_px: int | None = None,
) -> Pixels:
    """The picture with boxes and words on it.

    Args:
        picture: (H, W, 3).
        marks: boxes in pixels of the picture.
        title: written in its corner.
        scale: how many times as large it gets, so that words on small pictures can be read.
        line_px: width of the frames of boxes; by the height of the picture unless told.

    Returns:
        (H * scale, W * scale, 3).
    """
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    if scale > 1:
        image = image.resize((image.width * scale, image.height * scale), Image.Resampling.BICUBIC)
    pen, font = ImageDraw.Draw(image), font_of(max(10, image.height // 48))
    for mark in marks:
        corners = [float(edge) * scale for edge in mark.corners]
        if corners[2] - corners[0] < 1 or corners[3] - corners[1] < 1:
            continue
        pen.rectangle(corners, outline=mark.colour, width=line_px or max(1, image.height // 360))
        _write(pen, (corners[0], corners[1]), mark.words, mark.colour, font)
    if title:
        _write(pen, (_GAP_PX, image.height - _GAP_PX), title, (255, 255, 255), font)
    return np.asarray(image)


def contact_sheet(pictures: Sequence[Pixels], columns: int) -> Pixels:
    """Pictures of one size side by side, row by row.

    Args:
        pictures: (n) of (H, W, 3).
        columns: of the sheet.
    """
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // columns)
    shape = (rows * (height + _GAP_PX) + _GAP_PX, columns * (width + _GAP_PX) + _GAP_PX, 3)
    sheet = np.full(shape, 24, dtype=np.uint8)
    for place, picture in enumerate(pictures):
        y = _GAP_PX + place // columns * (height + _GAP_PX)
        x = _GAP_PX + place % columns * (width + _GAP_PX)
        sheet[y : y + height, x : x + width] = picture
    return sheet


def title_of(scenes: Scenes, video: str) -> Iterator[str]:
    """What a scene is called, and what the vehicle does, frame by frame.

    Args:
        scenes: with `frame_labels` of the kind av_action.
        video: of which.
    """
    labels = scenes.frame_labels.filter(
        (pl.col("video").cast(pl.String) == video) & (pl.col("kind").cast(pl.String) == "av_action")
    )
    names = scenes.meta.vocabularies.get("av_action", ())
    doing = {frame: names[label] for frame, label in labels.select("frame", "label").iter_rows()}
    frames = scenes.frames.filter(pl.col("video").cast(pl.String) == video)["frame"].to_list()
    for frame in frames:
        yield f"{video}  {frame}  {doing.get(frame, '')}"


def _words(scenes: Scenes, boxes: pl.Series) -> dict[int, dict[str, list[tuple[int, str]]]]:
    """Box to its labels by kind."""
    kept = scenes.labels.filter(pl.col("box").is_in(boxes.implode()))
    found: dict[int, dict[str, list[tuple[int, str]]]] = {}
    for box, kind, label in kept.select("box", pl.col("kind").cast(pl.String), "label").iter_rows():
        if kind in _SHOWN_KINDS:
            name = scenes.meta.vocabularies.get(kind, ())
            word = name[label] if label < len(name) else str(label)
            found.setdefault(box, {}).setdefault(kind, []).append((label, word))
    return found


def font_of(size: int) -> Any:
    """The font of drawings, of a height in pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _write(pen: Any, at: tuple[float, float], words: str, colour: tuple[int, int, int], font: Any) -> None:
    """Words on a dark ground, above a point."""
    if not words:
        return
    left, top, right, bottom = pen.textbbox((0, 0), words, font=font)
    x, y = max(at[0], 0.0), max(at[1] - (bottom - top) - _GAP_PX, 0.0)
    pen.rectangle([x, y, x + right - left + 2, y + bottom - top + 3], fill=(16, 16, 16))
    pen.text((x + 1 - left, y + 1 - top), words, fill=colour, font=font)
