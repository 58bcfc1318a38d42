"""Frames of a video with boxes of tables, and joints of people, drawn on them: for videos and contact sheets."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image, ImageDraw

from roadaware.analysis.worst_tubes import Strip
from roadaware.arrays import Pixels
from roadaware.io.files import write_atomically
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.reports.lettering import Letters
from roadaware.reports.page import FULL, GREEN, GREY, INK, PALE, VERMILLION, Picture, create_canvas, set_style
from roadaware.reports.text import capitalize_text, clip_label
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.tables import Scenes
from roadaware.tasks.videos import VideoSet, iterate_shots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
_SMALL_PX, _SHEET_COLUMNS = 400, 4
LOST, _CROSS = (96, 100, 106), (140, 145, 152)
"""The ground of a frame that cannot be shown, and the cross on it."""


@dataclass(frozen=True)
class Marked:
    """A box with what stands above it.

    Args:
        corners: x1, y1, x2, y2 in pixels.
        words: its labels.
        colour: of its frame, red, green, blue.
        dashed: whether its frame is.
    """

    corners: tuple[float, float, float, float]
    words: str
    colour: tuple[int, int, int]
    dashed: bool = False


def collect_marks(scenes: Scenes, video: str) -> dict[int, list[Marked]]:
    """Frame to the boxes to be drawn in it, far ones first where the distance is known.

    Args:
        scenes: with boxes and labels.
        video: whose.
    """
    boxes = scenes.boxes.filter(pl.col("video").cast(pl.String) == video)
    if "distance_m" in boxes.columns:
        boxes = boxes.sort("distance_m", descending=True, nulls_last=False, maintain_order=True)
    # Box to its labels by kind.
    kept = scenes.labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    words: dict[int, dict[str, list[tuple[int, str]]]] = {}
    for box, kind, label in kept.select("box", pl.col("kind").cast(pl.String), "label").iter_rows():
        if kind in _SHOWN_KINDS:
            name = scenes.meta.vocabularies.get(kind, ())
            word = name[label] if label < len(name) else str(label)
            words.setdefault(box, {}).setdefault(kind, []).append((label, word))
    found: dict[int, list[Marked]] = {}
    if hold_crowd(scenes, video):
        return _collect_people(boxes, words)
    for row in boxes.select("box", "frame", *CORNERS).iter_rows(named=True):
        labels = words.get(row["box"], {})
        kinds = [kind for kind in _SHOWN_KINDS if kind in labels]
        first = labels[kinds[0]][0] if kinds else (0, "")
        text = " ".join("+".join(name for _, name in labels[kind][:_MOST_WORDS]) for kind in kinds)
        corners = (row[CORNERS[0]], row[CORNERS[1]], row[CORNERS[2]], row[CORNERS[3]])
        found.setdefault(row["frame"], []).append(Marked(corners, text, COLOURS[first[0] % len(COLOURS)]))
    return found


# Crowds: who does what to whom as arrows, what is heard as tags, sentences below the image.

_MOST_ARROWS, _MOST_SENTENCES, _TAG_LINES = 6, 4, 5
_SOUND_RGB, _ARROW_RGB, _ACTION_RGB = (120, 235, 255), (255, 240, 200), (190, 255, 170)


@dataclass(frozen=True)
class Arrow:
    """A relation in a frame: boxes of subject and object in pixels, the predicate, whether it holds both ways."""

    start: tuple[float, float, float, float]
    end: tuple[float, float, float, float]
    word: str
    colour: tuple[int, int, int]
    both: bool = False


@dataclass
class CrowdFrame:
    """What stands beside the boxes of one frame.

    Args:
        arrows: relations of people who both have a box.
        sounds: boxes of who is heard, with the word for it.
        away: words for what is heard from out of sight.
        sentences: colour of who is spoken of, and the sentence.
        actions: boxes of people, with the words for what they do, where that is not drawn with the boxes.
        spoken: boxes of who is spoken of, with the colour of the sentence, where these are none of the boxes.
    """

    arrows: list[Arrow] = field(default_factory=list)
    sounds: list[tuple[tuple[float, float, float, float], str]] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    sentences: list[tuple[tuple[int, int, int], str]] = field(default_factory=list)
    actions: list[tuple[tuple[float, float, float, float], str]] = field(default_factory=list)
    spoken: list[tuple[tuple[float, float, float, float], tuple[int, int, int]]] = field(default_factory=list)


def hold_crowd(scenes: Scenes, video: str) -> bool:
    """Whether a video has relations, sentences or sounds with boxes."""
    tables = (scenes.relations, scenes.queries, scenes.sounds)
    return (
        any(len(t) and (t["video"].cast(pl.String) == video).any() for t in tables)
        and "tube" in scenes.boxes.columns
    )


def _collect_people(
    boxes: pl.DataFrame, words: dict[int, dict[str, list[tuple[int, str]]]]
) -> dict[int, list[Marked]]:
    """Boxes with the number of their track and what is done; each track keeps its colour."""
    found: dict[int, list[Marked]] = {}
    for row in boxes.select("box", "frame", "tube", *CORNERS).iter_rows(named=True):
        labels = words.get(row["box"], {})
        kinds: list[str] = [kind for kind in ("action", "location", "corner") if kind in labels] or ["agent"]
        done = "+".join(name for kind in kinds for _, name in labels.get(kind, [])[:_MOST_WORDS])
        tube = row["tube"]
        corners = (row[CORNERS[0]], row[CORNERS[1]], row[CORNERS[2]], row[CORNERS[3]])
        text = f"{tube} {done}".strip() if tube is not None else done
        found.setdefault(row["frame"], []).append(Marked(corners, text, _colour_track(tube)))
    return found


def _colour_track(tube: int | None) -> tuple[int, int, int]:
    return COLOURS[-1] if tube is None else COLOURS[tube % (len(COLOURS) - 1)]


def collect_crowd(scenes: Scenes, video: str) -> dict[int, CrowdFrame]:
    """Frame to what stands beside its boxes.

    Args:
        scenes: with relations, sentences and sounds.
        video: whose.
    """
    named = pl.col("video").cast(pl.String) == video
    boxes = scenes.boxes.filter(named, pl.col("tube").is_not_null())
    held: dict[tuple[int, int], tuple[float, float, float, float]] = {}
    by_frame: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}
    sounding = pl.col("sound") if "sound" in boxes.columns else pl.lit(None, pl.Int64).alias("sound")
    for tube, frame, sound, x1, y1, x2, y2 in boxes.select("tube", "frame", sounding, *CORNERS).iter_rows():
        held[tube, frame] = (x1, y1, x2, y2)
        if sound is not None:
            by_frame.setdefault((sound, frame), []).append((x1, y1, x2, y2))
    found: dict[int, CrowdFrame] = {}
    predicates = scenes.meta.vocabularies.get("predicate", ())
    relations = scenes.relations.filter(named) if len(scenes.relations) else scenes.relations
    said: dict[tuple[int, int, int, int], None] = {}
    there = scenes.frames.filter(named)["frame"]  # an interval may say that it ends at any frame
    for row in relations.iter_rows(named=True):
        for frame in there.filter(there.is_between(row["start_frame"], row["end_frame"], closed="left")):
            said[frame, row["subject"], row["object"], row["predicate"]] = None
    for frame, subject, other, predicate in said:
        back = (frame, other, subject, predicate) in said
        if (subject, frame) in held and (other, frame) in held and not (back and other < subject):
            arrow = Arrow(
                held[subject, frame], held[other, frame], predicates[predicate], _colour_track(subject), back
            )
            found.setdefault(frame, CrowdFrame()).arrows.append(arrow)
    for row in scenes.queries.filter(named).iter_rows(named=True) if len(scenes.queries) else ():
        for frame in there.filter(there.is_between(row["start_frame"], row["end_frame"], closed="left")):
            label = (_colour_track(row["tube"]), f"{row['tube']}  {row['text']}")
            found.setdefault(frame, CrowdFrame()).sentences.append(label)
    named = pl.col("video").cast(pl.String) == video
    sounds = scenes.sounds.filter(named) if len(scenes.sounds) else scenes.sounds
    times = scenes.frames.filter(named).select("frame", "t_s") if "t_s" in scenes.frames.columns else None
    words = scenes.meta.vocabularies.get("sound", ())
    for row in sounds.iter_rows(named=True):
        word = "silence" if row.get("label") is None else words[row["label"]]
        start, end = row.get("t_s"), row.get("end_s")
        frames: list[int] = [row["frame"]] if row.get("frame") is not None else []
        if times is not None and start is not None and end is not None:
            frames = times.filter(pl.col("t_s").is_between(start, end, closed="left"))["frame"].to_list()
        for frame in frames:
            here = found.setdefault(frame, CrowdFrame())
            shown = by_frame.get((row["sound"], frame), [])
            here.sounds += [(corners, word) for corners in shown]
            here.away += [] if shown else [word]
    return found


def draw_crowd(picture: Pixels, crowd: CrowdFrame, *, scale: int = 1) -> Pixels:
    """An image with boxes, and on it relations as arrows and sounds as tags; sentences in a strip below.

    Args:
        picture: (H, W, 3) with its boxes drawn, `scale` times as large as its boxes are told.
        crowd: of the frame.
        scale: of the image.

    Returns:
        (H + strip, W, 3); the strip is as high for every frame of a size.
    """
    height, width = picture.shape[:2]
    size = max(11, height // 44)
    font, line = Letters(size), round(1.5 * size)
    strip = _TAG_LINES * line
    strip += (height + strip) % 2
    image = Image.new("RGB", (width, height + strip), (16, 16, 16))
    image.paste(Image.fromarray(picture), (0, 0))
    pen = ImageDraw.Draw(image)
    taken: list[tuple[float, float, float, float]] = []
    for corners, colour in crowd.spoken:
        gap = max(2, height // 240)
        x1, y1, x2, y2 = (edge * scale for edge in corners)
        sides = [min(x1, x2) - gap, min(y1, y2) - gap, max(x1, x2) + gap, max(y1, y2) + gap]
        pen.rectangle(sides, outline=(16, 16, 16), width=2 * gap + 2)
        pen.rectangle(sides, outline=colour, width=2 * gap)
    for corners, word in crowd.sounds:
        x1, y1, x2, y2 = (edge * scale for edge in corners)
        gap = max(3, height // 160)
        pen.rectangle([x1 - gap, y1 - gap, x2 + gap, y2 + gap], outline=_SOUND_RGB, width=max(1, gap // 2))
        _tag(pen, (x1, min(y2 + gap, height - line)), f"))) {word}", _SOUND_RGB, font, taken)
    for corners, word in crowd.actions:
        x1, _, _, y2 = (edge * scale for edge in corners)
        _tag(pen, (x1, min(y2, height) - line), word, _ACTION_RGB, font, taken)
    for arrow in crowd.arrows[:_MOST_ARROWS]:
        _draw_arrow(pen, arrow, scale, height, font, taken)
    y = height + 2
    heard = list(dict.fromkeys(f"out of sight: {word}" if word != "silence" else word for word in crowd.away))
    if heard:
        font.write(pen, (6, y), f"heard  {', '.join(heard)}", _SOUND_RGB)
        y += line
    for colour, text in crowd.sentences[:_MOST_SENTENCES]:
        font.write(pen, (6, y), clip_label(text, max(20, int(1.85 * width / size))), colour)
        y += line
    left = len(crowd.sentences) - _MOST_SENTENCES
    if left > 0:
        font.write(pen, (width - 9 * size, height + strip - line), f"{left} more", (160, 160, 160))
    return np.asarray(image)


def _draw_arrow(
    pen: Any,
    arrow: Arrow,
    scale: int,
    height: int,
    font: Letters,
    taken: list[tuple[float, float, float, float]],
) -> None:
    """From the chest of one to that of the other, a head at each end that something is done to."""
    ends = []
    for corners in (arrow.start, arrow.end):
        x1, y1, x2, y2 = (edge * scale for edge in corners)
        ends.append(np.array([(x1 + x2) / 2, y1 + 0.3 * (y2 - y1)]))
    way = ends[1] - ends[0]
    far = max(float(np.hypot(*way)), 1e-6)
    along, across = way / far, np.array([-way[1], way[0]]) / far
    wide = max(2, height // 300)
    head = min(far / 2, 5.0 * wide)
    pen.line([*ends[0].tolist(), *ends[1].tolist()], fill=(16, 16, 16), width=wide + 2)
    pen.line([*ends[0].tolist(), *ends[1].tolist()], fill=arrow.colour, width=wide)
    for tip, sign in ((ends[1], 1.0), (ends[0], -1.0)) if arrow.both else ((ends[1], 1.0),):
        foot = tip - sign * head * along
        points = [tip, foot + 0.5 * head * across, foot - 0.5 * head * across]
        pen.polygon([tuple(point.tolist()) for point in points], fill=arrow.colour)
    middle = (ends[0] + ends[1]) / 2
    _tag(pen, (float(middle[0]), float(middle[1])), arrow.word, _ARROW_RGB, font, taken)


def _tag(
    pen: Any,
    at: tuple[float, float],
    words: str,
    colour: tuple[int, int, int],
    font: Letters,
    taken: list[tuple[float, float, float, float]],
) -> None:
    """Words on a dark ground at a point, moved down where other words stand."""
    left, top, right, bottom = font.measure(words)
    wide, high = right - left + 4, bottom - top + 4
    x, y = min(max(at[0], 0.0), max(pen.im.size[0] - wide, 0)), max(at[1], 0.0)
    for _ in range(6):
        if not any(x < c and a < x + wide and y < d and b < y + high for a, b, c, d in taken):
            break
        y += high + 1
    taken.append((x, y, x + wide, y + high))
    pen.rectangle([x, y, x + wide, y + high], fill=(16, 16, 16))
    font.write(pen, (x + 2 - left, y + 2 - top), words, colour)


def draw_marks(
    picture: Pixels,
    marks: Sequence[Marked],
    *,
    title: str = "",
    scale: int = 1,
    line_px: int | None = None,
) -> Pixels:
    """The image with boxes and words on it.

    Args:
        picture: (H, W, 3).
        marks: boxes in pixels of the image.
        title: written in its corner.
        scale: how many times as large it gets, so that words on small images can be read.
        line_px: width of the frames of boxes (default: by the height of the image).

    Returns:
        (H * scale, W * scale, 3).
    """
    image = Image.fromarray(picture)
    if scale > 1:
        image = image.resize((image.width * scale, image.height * scale), Image.Resampling.BICUBIC)
    pen, font = ImageDraw.Draw(image), Letters(max(10, image.height // 48))
    for mark in marks:
        corners = [float(edge) * scale for edge in mark.corners]
        if corners[2] - corners[0] < 1 or corners[3] - corners[1] < 1:
            continue
        width = line_px or max(1, image.height // 360)
        if mark.dashed:
            # The frame of a box in dashes, as wide inwards as a whole one; no further than the image.
            colour = mark.colour
            size = pen.im.size
            x1, y1, x2, y2 = (min(max(edge, -8), size[place % 2] + 8) for place, edge in enumerate(corners))
            dash, step = 4 * width, 7 * width
            for x in np.arange(x1, x2, step):
                end = min(x + dash, x2)
                pen.rectangle([x, corners[1], end, corners[1] + width - 1], fill=colour)
                pen.rectangle([x, corners[3] - width + 1, end, corners[3]], fill=colour)
            for y in np.arange(y1, y2, step):
                end = min(y + dash, y2)
                pen.rectangle([corners[0], y, corners[0] + width - 1, end], fill=colour)
                pen.rectangle([corners[2] - width + 1, y, corners[2], end], fill=colour)
        else:
            pen.rectangle(corners, outline=mark.colour, width=width)
        _write(pen, (corners[0], corners[1]), mark.words, mark.colour, font)
    if title:
        _write(pen, (_GAP_PX, image.height - _GAP_PX), title, (255, 255, 255), font)
    return np.asarray(image)


def draw_lost_frame(size_px: tuple[int, int], words: str) -> Pixels:
    """What stands for a frame that cannot be shown: grey, crossed out, with the reason in the middle.

    Args:
        size_px: (width, height) of it.
        words: the reason, short.

    Returns:
        (height, width, 3).
    """
    image = Image.new("RGB", size_px, LOST)
    pen, (wide, high) = ImageDraw.Draw(image), size_px
    for ends in ((0, 0, wide, high), (0, high, wide, 0)):
        pen.line(ends, fill=_CROSS, width=max(1, high // 120))
    font = Letters(max(10, high // 24))
    left, top, right, bottom = font.measure(words)
    at = max(0.0, (wide - right + left) / 2), (high + bottom - top) / 2 + _GAP_PX
    _write(pen, at, words, (255, 255, 255), font)
    return np.asarray(image)


def build_contact_sheet(images: Sequence[Pixels], columns: int) -> Pixels:
    """Images of one size side by side, row by row.

    Args:
        images: (n) of (H, W, 3).
        columns: of the sheet.
    """
    height, width = images[0].shape[:2]
    rows = -(-len(images) // columns)
    shape = (rows * (height + _GAP_PX) + _GAP_PX, columns * (width + _GAP_PX) + _GAP_PX, 3)
    sheet = np.full(shape, 24, dtype=np.uint8)
    for place, image in enumerate(images):
        y = _GAP_PX + place // columns * (height + _GAP_PX)
        x = _GAP_PX + place % columns * (width + _GAP_PX)
        sheet[y : y + height, x : x + width] = image
    return sheet


def iterate_titles(scenes: Scenes, video: str) -> Iterator[str]:
    """Title of a scene and the action of the vehicle, frame by frame.

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


def draw_video(
    scenes: Scenes, root: Path, video: str, target: Path, images: int, *, film: bool = True
) -> list[str]:
    """Write a video with all marks and titles, and a contact sheet of it; the names of the files.

    Args:
        scenes: what the tables say.
        root: the folder of the set, where the video lies.
        video: its name.
        target: an existing folder.
        images: on the sheet, at most.
        film: whether the video is written, too.
    """
    marks, titles = collect_marks(scenes, video), list(iterate_titles(scenes, video))
    crowd = collect_crowd(scenes, video) if hold_crowd(scenes, video) else None
    sheet = []
    with ExitStack() as stack:
        reader = stack.enter_context(VideoReader(find_video_path(scenes, root, video)))
        chosen = set(np.linspace(0, len(titles) - 1, min(images, len(titles))).astype(int).tolist())
        writer = None
        for frame, image in enumerate(reader):
            if not film and frame not in chosen:
                continue
            scale = 2 if image.shape[0] < _SMALL_PX else 1
            shown = draw_marks(image, marks.get(frame, []), title=titles[frame], scale=scale)
            if crowd is not None:
                shown = draw_crowd(shown, crowd.get(frame, CrowdFrame()), scale=scale)
            if film and writer is None:
                size = (shown.shape[1], shown.shape[0])
                writer = stack.enter_context(VideoWriter(target / f"{video}.mp4", *size, reader.fps or 12.0))
            if writer is not None:
                writer.write(shown)
            if frame in chosen:
                sheet.append(shown)
    stream = io.BytesIO()
    Image.fromarray(build_contact_sheet(sheet, min(_SHEET_COLUMNS, len(sheet)))).save(stream, format="png")
    write_atomically(target / f"{video}.png", stream.getvalue())
    return [*[f"{video}.mp4"] * film, f"{video}.png"]


def _write(
    pen: Any, at: tuple[float, float], words: str, colour: tuple[int, int, int], font: Letters
) -> None:
    """Words on a dark ground, above a point."""
    if not words:
        return
    left, top, right, bottom = font.measure(words)
    x, y = max(at[0], 0.0), max(at[1] - (bottom - top) - _GAP_PX, 0.0)
    pen.rectangle([x, y, x + right - left + 2, y + bottom - top + 3], fill=(16, 16, 16))
    font.write(pen, (x + 1 - left, y + 1 - top), words, colour)


# Video strips: the boxes of a ground-truth and of a predicted tube over time, drawn as outlines without images.

_ASPECT = 4 / 3
_MARGIN = 0.15
_WHOLE = 0.6
_LEFT_IN, _GAP_IN, _TITLE_IN, _BAR_IN, _BELOW_IN = 0.55, 0.05, 0.30, 0.42, 0.22
_LONGEST = 110


def plot_strips(strips: Sequence[Strip], *, title: str = "Tubes that went wrong") -> Picture:
    """One strip below the other: time runs to the right, below each strip lies its time line.

    Args:
        strips: in drawing order, at least one.
        title: what they have in common.
    """
    most = max(len(strip.frames) for strip in strips)
    width = (FULL - _LEFT_IN) / most - _GAP_IN
    each = _TITLE_IN + width / _ASPECT + _BELOW_IN + _BAR_IN
    with set_style():
        figure, axes = create_canvas(FULL, each * len(strips))
        figure.delaxes(axes)
        figure.set_layout_engine("none")
        for place, strip in enumerate(strips):
            _strip(figure, strip, each * (len(strips) - 1 - place), width)
    text = " ".join(f"{capitalize_text(strip.says)}." for strip in strips)
    caption = (
        "Green and solid is the truth, red and dashed the prediction, cut to where they are in the image. "
        f"The lines below are the frames of both tubes, dots the frames that are drawn. {text}"
    )
    return Picture(title, caption, figure)


def _strip(figure: Figure, strip: Strip, bottom: float, width: float) -> None:
    """Heading, panels and time line of one strip, from `bottom` (in inches) up."""
    height = width / _ASPECT
    total = figure.get_figheight()
    foot = bottom + _BAR_IN + _BELOW_IN
    says = clip_label(capitalize_text(strip.says), _LONGEST)
    figure.text(0.0, (foot + height + 0.08) / total, says, fontsize=8.5, weight="bold", color=INK)
    # The part of the image that is drawn (left, top, right, bottom): all of it where most is covered
    wide, high = strip.size_px
    boxes = np.concatenate([strip.truth_px, strip.prediction_px])
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    left, top, right, low = 0.0, 0.0, float(wide), float(high)
    if len(boxes):
        x1, y1 = boxes[:, :2].min(axis=0)
        x2, y2 = boxes[:, 2:].max(axis=0)
        if max((x2 - x1) / wide, (y2 - y1) / high) < _WHOLE:
            pad = _MARGIN * max(x2 - x1, y2 - y1, 1.0)
            left, top, right, low = x1 - pad, y1 - pad, x2 + pad, y2 + pad
    across, down = right - left, low - top
    grow_x, grow_y = max(0.0, down * _ASPECT - across) / 2, max(0.0, across / _ASPECT - down) / 2
    view = left - grow_x, top - grow_y, right + grow_x, low + grow_y
    for place in range(len(strip.frames)):
        left = _LEFT_IN + place * (width + _GAP_IN)
        where = (left / FULL, foot / total, width / FULL, height / total)
        axes = figure.add_axes(where)
        from matplotlib.patches import Rectangle

        wide, high = strip.size_px
        axes.set_facecolor("#eef0f3")
        axes.add_patch(Rectangle((0, 0), wide, high, facecolor="white", edgecolor=PALE, linewidth=0.8))
        for boxes, tone, style in (
            (strip.truth_px, GREEN, "-"),
            (strip.prediction_px, VERMILLION, (0, (3, 1.5))),
        ):
            x1, y1, x2, y2 = boxes[place]
            if np.isfinite(boxes[place]).all():
                axes.add_patch(
                    Rectangle(
                        (x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=tone, linewidth=1.5, linestyle=style
                    )
                )
        left, top, right, low = view
        axes.set(xlim=(left, right), ylim=(low, top), xticks=[], yticks=[])
        axes.set_xlabel(str(int(strip.frames[place])), fontsize=7.5, color=GREY, labelpad=2)
        for spine in axes.spines.values():
            spine.set_visible(True)
            spine.set_edgecolor(PALE)
    span = FULL - _LEFT_IN - _GAP_IN
    bar = (_LEFT_IN / FULL, (bottom + 0.16) / total, span / FULL, (_BAR_IN - 0.14) / total)
    axes = figure.add_axes(bar)
    for place, (spans, tone) in enumerate(((strip.truth_spans, GREEN), (strip.prediction_spans, VERMILLION))):
        for start, end in spans:
            axes.plot([start, end], [place, place], color=tone, linewidth=3, solid_capstyle="butt")
    axes.plot(strip.frames + 0.5, [0.5] * len(strip.frames), ".", color=GREY, markersize=3)
    ends = [end for spans in (strip.truth_spans, strip.prediction_spans) for span in spans for end in span]
    low, high = min([*ends, int(strip.frames[0])]), max([*ends, int(strip.frames[-1]) + 1])
    axes.set(
        xlim=(low, high), ylim=(1.7, -0.7), yticks=[0, 1], yticklabels=["truth", "prediction"], xticks=[]
    )
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


# Joints of people.

BONES = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12),
    (11, 13), (13, 15), (12, 14), (14, 16),
)  # fmt: skip
"""Pairs of COCO's 17 joints; odd ones are those of the left side."""
_LEFT, _RIGHT, _MIDDLE, _BOX = (60, 220, 60), (240, 80, 60), (250, 220, 60), (120, 170, 255)


def draw_joints(
    picture: npt.NDArray[np.uint8],
    joints: Sequence[npt.NDArray[np.floating]],
    boxes: Sequence[npt.NDArray[np.floating]],
) -> Image.Image:
    """The image with boxes and bones; green on the person's left, red on the right.

    Args:
        picture: (H, W, 3) uint8.
        joints: of each person (17, 3) x, y in pixels and a score, 0 for one that is not seen.
        boxes: of each person x1, y1, x2, y2.
    """
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    for person, box in zip(joints, boxes, strict=True):
        pen.rectangle([float(side) for side in box], outline=_BOX)
        for one, other in BONES:
            if min(person[one, 2], person[other, 2]) > 0:
                ends = [tuple(map(float, person[joint, :2])) for joint in (one, other)]
                same = one % 2 == other % 2 and one > 0
                pen.line(ends, fill=(_LEFT if one % 2 else _RIGHT) if same else _MIDDLE, width=2)
    return image


def draw_poses(table: pl.DataFrame, asked: VideoSet, out: Path, count: int) -> int:
    """Draw the joints of people into the first images with any, each as a PNG; how many there were.

    Args:
        table: as `tasks.poses` gives it.
        asked: the videos that they are of.
        out: folder of the images.
        count: images, at most.
    """
    films, done = {film.video: film for film in asked.films}, 0
    for (video, frame), rows in table.group_by("video", "frame", maintain_order=True):
        if done == count:
            break
        for shot in iterate_shots(films[str(video)], [int(str(frame))]):
            if shot.picture is None:
                continue
            joints = np.array(rows["joints_px"].to_list(), np.float32).reshape(len(rows), -1, 3)
            held = io.BytesIO()
            draw_joints(shot.picture, list(joints), list(rows.select(CORNERS).to_numpy())).save(held, "PNG")
            name = f"{done:04d}-{str(video).replace('/', '-')}-{int(str(frame)):06d}.png"
            write_atomically(out / name, held.getvalue())
            done += 1
    return done
