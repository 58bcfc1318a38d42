"""Moments of videos as short clips for pages: boxes of truth and prediction on the film, small enough to be embedded."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from roadaware.analysis.excerpts import LONGEST_S, Clip, Excerpt, Outline
from roadaware.arrays import Pixels
from roadaware.errors import InputError, RoadawareError
from roadaware.io.decoders import JPEG_HEAD
from roadaware.io.folders import encode_json
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.reports.drawing import Marked, draw_lost_frame, draw_marks
from roadaware.tasks.videos import iterate_shots

MOST_BYTES = 300_000
"""Of the mp4 of a clip."""
CLIPS = "clips.json"
_MOST_HELD, _MOST_POSTER_BYTES = 64, 200_000
_SIDE_PX = 480
_PACE = 15.0
"""Frames a second of a clip, about."""
_CRFS = (30, 36, 42)
_QUALITY = 80
_LEAST_VIEW, _VIEW = 0.4, 2.2
"""How much of the image is shown at least, and how many times what the boxes take."""
_MOST_WORD = 60
# Those of the strips of tubes: truth is green and solid, a prediction red and dashed; lighter, as they lie on images.
_TRUE, _SAID = (64, 222, 152), (255, 112, 67)


def draw_clips(excerpts: Sequence[Excerpt]) -> tuple[Clip, ...]:
    """Each excerpt as a clip: what cannot be drawn says why, and raises nothing.

    Args:
        excerpts: with or without film.

    Returns:
        as many clips: equal images and boxes give equal bytes.
    """
    return tuple(map(_draw, excerpts))


def draw_run(run: Any) -> Any:
    """A run of road events or pedestrians with its excerpts drawn."""
    return replace(run, clips=(*run.clips, *draw_clips(run.excerpts)), excerpts=()) if run.excerpts else run


def encode_poster(picture: Pixels) -> bytes:
    """An image as a JPEG of at most 480 px, to stand for a video.

    Args:
        picture: (H, W, 3) uint8.
    """
    image, stream = Image.fromarray(picture), io.BytesIO()
    image.thumbnail((_SIDE_PX, _SIDE_PX), Image.Resampling.LANCZOS)
    image.save(stream, format="jpeg", quality=_QUALITY)
    return stream.getvalue()


def read_poster(path: Path, number: int | None = None) -> bytes:
    """An image of a video to stand for it; nothing where there is none that can be read.

    Args:
        path: of the video.
        number: of the frame; a third of the way where None.
    """
    try:
        with VideoReader(path) as film:
            return encode_poster(film.frame(len(film) // 3 if number is None else number))
    except InputError:
        return b""


def build_clip_files(clips: Sequence[Clip]) -> dict[str, bytes]:
    """The files of clips in the folder of a run; none where there are no clips."""
    if not clips:
        return {}
    files = {CLIPS: encode_json([{"says": clip.says, "fault": clip.fault} for clip in clips]).encode()}
    for number, clip in enumerate(clips):
        files |= {f"clip_{number}.mp4": clip.mp4} if clip.mp4 else {}
        files |= {f"clip_{number}.jpg": clip.poster} if clip.poster else {}
    return files


def read_clips(held: Mapping[str, bytes]) -> tuple[Clip, ...]:
    """The clips of the files of a run, which may come from anybody.

    Raises:
        ValueError, KeyError, TypeError: if a file is not as `build_clip_files` makes it.
    """
    record = json.loads(held.get(CLIPS, b"[]"))
    if not isinstance(record, list) or len(record) > _MOST_HELD:
        raise ValueError(f"expected a list of up to {_MOST_HELD} clips")
    found = []
    for number, each in enumerate(record):
        if not isinstance(each["says"], str) or not isinstance(each["fault"], str):
            raise ValueError("expected a clip to say in words what it shows")
        mp4, poster = (held.get(f"clip_{number}.{ending}", b"") for ending in ("mp4", "jpg"))
        if mp4 and (mp4[4:8] != b"ftyp" or len(mp4) > MOST_BYTES or not poster):
            raise ValueError(
                f"expected clip {number} to be an mp4 of up to {MOST_BYTES:,} bytes, with an image"
            )
        if poster and (not poster.startswith(JPEG_HEAD) or len(poster) > _MOST_POSTER_BYTES):
            raise ValueError(f"expected the image of clip {number} to be a JPEG")
        found.append(Clip(each["says"], mp4, poster, each["fault"]))
    return tuple(found)


def _draw(excerpt: Excerpt) -> Clip:
    film = excerpt.film
    if film is None:
        return Clip(excerpt.says, fault=excerpt.fault)
    step = max(1, round(excerpt.fps / _PACE))
    first = excerpt.first + (excerpt.shown - excerpt.first) % step
    frames = range(first, min(excerpt.end, excerpt.first + round(LONGEST_S * excerpt.fps) + 1), step)
    drawn: list[Pixels] = []
    lost: set[int] = set()
    size: tuple[int, int] | None = None
    reasons = []
    for shot in iterate_shots(film, frames):
        if shot.picture is None:
            size = size or _select_size((0.0, 0.0, film.width or 16.0, film.height or 9.0))
            lost.add(shot.frame)
            reasons.append(shot.fault)
            drawn.append(draw_lost_frame(size, f"no image of frame {shot.frame}"))
        else:
            # The part of the images that is shown (x1, y1, x2, y2), of their own shape: around all boxes of
            # the stretch.
            size_px = (shot.picture.shape[1], shot.picture.shape[0])
            wide, high = size_px
            grow = _get_scale(excerpt, size_px)
            corners = [each.corners for held in excerpt.outlines.values() for each in held]
            if not corners:
                view = 0.0, 0.0, float(wide), float(high)
            else:
                boxes = np.clip(np.array(corners) * grow, 0, [wide, high, wide, high])
                x1, y1 = boxes[:, :2].min(axis=0)
                x2, y2 = boxes[:, 2:].max(axis=0)
                share = min(1.0, max(_LEAST_VIEW, _VIEW * float(max((x2 - x1) / wide, (y2 - y1) / high))))
                across, down = share * wide, share * high
                left = min(max(0.0, float(x1 + x2 - across) / 2), wide - across)
                top = min(max(0.0, float(y1 + y2 - down) / 2), high - down)
                view = left, top, min(left + across, float(wide)), min(top + down, float(high))
            size = size or _select_size(view)
            outlines = excerpt.outlines.get(shot.frame, ())
            drawn.append(_draw_frame(shot.picture, outlines, excerpt, view, size))
    if len(lost) == len(drawn):
        return Clip(excerpt.says, fault=reasons[0] if reasons else "it has no frame there")
    shown = next((k for k, frame in enumerate(frames) if frame >= excerpt.shown and frame not in lost), None)
    if shown is None:
        shown = next(k for k, frame in enumerate(frames) if frame not in lost)
    poster = encode_poster(drawn[shown])
    fault = ""
    if lost:
        fault = f"{len(lost)} of its {len(drawn)} frames cannot be decoded, and are grey and crossed out"
    try:
        mp4 = _encode_small(drawn, excerpt.fps / step)
    except (RoadawareError, OSError) as error:
        return Clip(excerpt.says, b"", poster, f"a still, since the clip cannot be written: {error}")
    if not mp4:
        return Clip(
            excerpt.says, b"", poster, f"a still, since the clip is larger than {MOST_BYTES // 1000} kB"
        )
    return Clip(excerpt.says, mp4, poster, fault)


def _select_size(view: tuple[float, float, float, float]) -> tuple[int, int]:
    """Width and height of the clip, both even."""
    across, down = view[2] - view[0], view[3] - view[1]
    scale = _SIDE_PX / max(across, down)
    wide, high = (max(2, 2 * round(side * scale / 2)) for side in (across, down))
    return wide, high


def _get_scale(excerpt: Excerpt, size_px: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(4,) factors from the pixels of boxes to those of an image."""
    own = excerpt.size_px or size_px
    return np.array([size_px[0] / own[0], size_px[1] / own[1]] * 2)


def _draw_frame(
    picture: Pixels,
    outlines: Sequence[Outline],
    excerpt: Excerpt,
    view: tuple[float, float, float, float],
    size: tuple[int, int],
) -> Pixels:
    """The part of an image that is shown, at the size of the clip, with its boxes."""
    image = Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS, box=view)
    scale = _get_scale(excerpt, (picture.shape[1], picture.shape[0]))
    shift = np.array([view[0], view[1]] * 2)
    grow = np.array([size[0] / (view[2] - view[0]), size[1] / (view[3] - view[1])] * 2)
    marks = []
    for each in outlines:
        x1, y1, x2, y2 = ((np.array(each.corners) * scale - shift) * grow).tolist()
        colour = _TRUE if each.true else _SAID
        words = to_printable(each.words, _MOST_WORD)
        marks.append(Marked((x1, y1, x2, y2), words, colour, dashed=not each.true))
    return draw_marks(np.asarray(image), marks, line_px=2)


def _encode_small(images: Sequence[Pixels], fps: float) -> bytes:
    """The clip, coarser until it is small enough; nothing where it never is.

    Raises:
        RoadawareError: if there is no encoder, or the disk refuses.
    """
    for every, crf in (*((1, crf) for crf in _CRFS), (2, _CRFS[-1])):
        mp4 = _encode(images[::every], fps / every, crf)
        if len(mp4) <= MOST_BYTES:
            return mp4
    return b""


def _encode(images: Sequence[Pixels], fps: float, crf: int) -> bytes:
    high, wide = images[0].shape[:2]
    with TemporaryDirectory(prefix="roadaware-") as folder:
        path = Path(folder) / "clip.mp4"
        with VideoWriter(path, wide, high, min(max(fps, 0.1), 240.0), crf=crf) as writer:
            for image in images:
                writer.write(image)
        return path.read_bytes()
