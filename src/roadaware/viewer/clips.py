"""A span of a video as mp4 or GIF with everything that the page draws on it, made in the background."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from roadaware.arrays import Pixels
from roadaware.errors import InputError, RoadawareError, UsageError, raise_interrupt
from roadaware.io.files import make_temporary_path, remove_stale_files
from roadaware.io.folders import make_folder
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.online.film import pad_to_even
from roadaware.places import get_cache_folder
from roadaware.reports.drawing import Marked, draw_lost_frame, draw_marks
from roadaware.scenes.schema import MOST_LISTED_FRAMES
from roadaware.viewer.films import (
    SOUND_RATE,
    TICKS,
    CopiedSound,
    Film,
    FilmFinder,
    list_shown_times,
    open_served,
)
from roadaware.viewer.index import Index
from roadaware.viewer.overlays import LAYERS, LayerPainter, Look, Overlays, Places, scale_of_set

MOST_FRAMES = {"mp4": 3000, "gif": 300}
"""Frames of a clip, by its form."""
TYPES = {"mp4": "video/mp4", "gif": "image/gif"}
_MOST_SIDE = {"mp4": 3840, "gif": 640}
_MOST_WAITING, _MOST_KEPT = 4, 8
_WINDOW = 128
# Browsers show images of a GIF that would last less than 20 ms for 100 ms.
_GIF_FPS = 50.0
_USUAL_SIZE, _USUAL_FPS = (1280, 720), 25.0
_UNKNOWN = (200, 200, 200)
_MOST_WORD = 60
_COLOUR = re.compile("#[0-9a-f]{6}")


@dataclass(frozen=True)
class ClipOrder:
    """What is asked for.

    Args:
        video: its name.
        first, end: the frames, the end not included.
        form: mp4 or gif.
        sides: that are drawn.
        score: from which on predictions are drawn.
        hidden: classes that are not drawn.
        names: whether names stand at the boxes.
        colours: class to its colour, as on the page.
        layers: of `overlays.LAYERS`, those that are drawn beside the boxes.
    """

    video: str
    first: int
    end: int
    form: str
    sides: tuple[str, ...]
    score: float
    hidden: frozenset[str]
    names: bool
    colours: dict[str, tuple[int, int, int]] = field(repr=False)
    layers: tuple[str, ...] = ()

    @property
    def look(self) -> Look:
        """What decides what is drawn."""
        return Look(self.sides, self.score, self.hidden, self.layers, self.colours)


@dataclass
class Clip:
    """A clip that is made, or was.

    Args:
        order: of it.
        state: `waiting`, `drawing`, `ready`, `failed` or `cancelled`.
        message: what went wrong, or what a clip that is ready does not show.
        done: share of the frames that are drawn.
        path: of the file, once it is ready.
    """

    order: ClipOrder
    state: str = "waiting"
    message: str = ""
    done: float = 0.0
    path: Path | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """What the file is called when it is saved."""
        stem = re.sub(r"[^\w.-]+", "_", self.order.video, flags=re.ASCII).strip("._") or "clip"
        return f"{stem[:80]}-{self.order.first}-{self.order.end - 1}.{self.order.form}"


class _CancelledError(Exception):
    """Nobody waits for the clip any more."""


def parse_order(given: Any, index: Index) -> ClipOrder:
    """What a page asks for.

    Raises:
        UsageError: if a field lacks or cannot be, or the span is too long.
    """
    expected = {"video", "first", "end", "form", "sides", "score", "hidden", "names", "layers", "colours"}
    if not isinstance(given, dict) or set(given) != expected:
        raise UsageError(f"a clip has {', '.join(sorted(expected))}")
    first, end, form, score = given["first"], given["end"], given["form"], given["score"]
    numbers = type(given["video"]) is int and type(first) is int and type(end) is int
    if (
        not numbers
        or not isinstance(form, str)
        or form not in MOST_FRAMES
        or type(given["names"]) is not bool
    ):
        raise UsageError("a clip is of a video, from a frame to another, as mp4 or gif")
    if not 0 <= first < end <= min(first + MOST_FRAMES[form], MOST_LISTED_FRAMES):
        raise UsageError(
            f"a clip as {form} has 1 to {MOST_FRAMES[form]:,} frames, of the first {MOST_LISTED_FRAMES:,}"
        )
    if type(score) not in (int, float) or not 0 <= score <= 1:
        raise UsageError("a score lies in [0, 1]")
    sides, hidden, colours = given["sides"], given["hidden"], given["colours"]
    if not isinstance(sides, list) or not all(
        isinstance(side, str) and side in index.opened.sides for side in sides
    ):
        raise UsageError("there is no such side")
    if not isinstance(hidden, list) or not all(isinstance(word, str) for word in hidden):
        raise UsageError("hidden classes are names")
    layers = given["layers"]
    if not isinstance(layers, list) or not all(isinstance(each, str) and each in LAYERS for each in layers):
        raise UsageError(f"layers are {', '.join(LAYERS)}")
    if not isinstance(colours, dict) or not all(
        isinstance(each, str) and _COLOUR.fullmatch(each) for each in colours.values()
    ):
        raise UsageError("colours are written as #rrggbb")
    return ClipOrder(
        index.video(given["video"]),
        first,
        end,
        form,
        tuple(dict.fromkeys(sides)),
        float(score),
        frozenset(hidden),
        given["names"],
        {
            word: (int(each[1:3], 16), int(each[3:5], 16), int(each[5:7], 16))
            for word, each in colours.items()
        },
        tuple(dict.fromkeys(layers)),
    )


class ClipMaker:
    """Makes clips one after the other, and keeps the last few until the viewer ends.

    Args:
        index: of what is looked at.
        films: of the same.
        overlays: of the same.
    """

    def __init__(self, index: Index, films: FilmFinder, overlays: Overlays | None = None) -> None:
        self._index, self._films = index, films
        self._overlays = overlays or Overlays(index.opened, index)
        self._clips: dict[str, Clip] = {}
        self._lock, self._work = threading.Lock(), threading.Lock()
        self._folder: Path | None = None
        self._closed = False

    def start(self, order: ClipOrder) -> str:
        """Begin with a clip; the key by which it is asked for.

        Raises:
            UsageError: if too many wait.
        """
        with self._lock:
            busy = [each for each in self._clips.values() if each.state in ("waiting", "drawing")]
            if len(busy) >= _MOST_WAITING or self._closed:
                raise UsageError(f"{len(busy)} clips are being made: wait for one, or cancel it")
            for key in [key for key, each in self._clips.items() if each not in busy][: -_MOST_KEPT + 1]:
                self._drop(self._clips.pop(key))
            key, clip = secrets.token_hex(8), Clip(order)
            self._clips[key] = clip
        threading.Thread(target=self._make, args=(clip,), name="clip", daemon=True).start()
        return key

    def clip(self, key: str) -> Clip:
        """A clip that was asked for.

        Raises:
            UsageError: if there is none, or no longer.
        """
        with self._lock:
            if key not in self._clips:
                raise UsageError("there is no such clip")
            return self._clips[key]

    def cancel(self, key: str) -> None:
        """Stop making a clip; one that is ready stays."""
        self.clip(key).stop.set()

    def close(self) -> None:
        """Stop all, and remove what was made."""
        with self._lock:
            self._closed = True
            for clip in self._clips.values():
                clip.stop.set()
        # What is being drawn ends at its next frame; its folder goes after it.
        if self._work.acquire(timeout=5):
            self._work.release()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _drop(self, clip: Clip) -> None:
        if clip.path is not None:
            with suppress(OSError):
                clip.path.unlink()

    def _make(self, clip: Clip) -> None:
        with self._work:
            try:
                if clip.stop.is_set():
                    raise _CancelledError
                clip.state = "drawing"
                path = self._make_place() / f"{secrets.token_hex(8)}.{clip.order.form}"
                frames, times, sound = self._draw(clip)
                try:
                    if clip.order.form == "mp4":
                        # One image of the file for each frame, shown when it was, with what was heard
                        # meanwhile
                        took, shown_s = times[-1] - times[0], list_shown_times(times)
                        each_s = took / (len(times) - 1) if took > 0 else 1 / _USUAL_FPS
                        rate = SOUND_RATE if sound is not None and sound.held is not None else None
                        writer: VideoWriter | None = None
                        try:
                            for place, frame in enumerate(frames):
                                image = pad_to_even(frame)
                                if writer is None:
                                    size = image.shape[1], image.shape[0]
                                    ticks = TICKS if shown_s else None
                                    writer = VideoWriter(
                                        path,
                                        *size,
                                        min(max(1 / each_s, 0.1), 240.0),
                                        sound_rate=rate,
                                        ticks=ticks,
                                    )
                                if (
                                    image.shape[:2] != writer.size
                                ):  # images of a folder may have several sizes
                                    grown = Image.fromarray(image).resize(
                                        writer.size[::-1], Image.Resampling.BILINEAR
                                    )
                                    image = np.asarray(grown)
                                writer.write(image, round(shown_s[place] * TICKS) if shown_s else None)
                                if sound is not None and rate:
                                    after_s = (
                                        shown_s[place + 1]
                                        if place + 1 < len(shown_s)
                                        else shown_s[-1] + each_s
                                    )
                                    sound.write(writer, after_s)
                            if writer is not None:
                                writer.close()
                        except BaseException:
                            if writer is not None:
                                writer.abandon()
                            raise
                    else:
                        _write_gif(path, frames, times)
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
                if sound is not None and sound.fault:
                    clip.message = to_printable(f"of its sound not all is heard: {sound.fault}", 500)
                clip.path, clip.done, clip.state = path, 1.0, "ready"
            except _CancelledError:
                clip.state = "cancelled"
            except (RoadawareError, OSError, ValueError) as error:
                clip.state, clip.message = "failed", to_printable(str(error), 500)
            except Exception as error:
                raise_interrupt(error)
                # A forged table: whoever waits is told, and the next clip can be made.
                clip.state, clip.message = "failed", to_printable(f"{type(error).__name__}: {error}", 500)

    def _make_place(self) -> Path:
        """A folder of this process in the cache; what a killed one left there goes."""
        if self._folder is None:
            parent = Path(os.path.realpath(get_cache_folder())) / "viewer"
            make_folder(parent)
            with suppress(OSError):
                remove_stale_files(parent)
            folder = make_temporary_path(parent / "clips")
            folder.mkdir(mode=0o700)
            self._folder = folder
        return self._folder

    def _draw(self, clip: Clip) -> tuple[Iterator[Pixels], list[float], CopiedSound | None]:
        """The drawn frames, when each is shown, and what is heard meanwhile."""
        order = clip.order
        film = self._films.film(order.video)
        if film.state == "encoding":
            raise UsageError("the video is being encoded for the browser: try again when that is done")
        count = max(1, len(film.times_s)) if film.times_s else order.end
        end = min(order.end, count)
        if order.first >= end:
            raise UsageError(f"the video has frames 0 to {count - 1}")
        fps = self._index.fps(order.video) or _USUAL_FPS
        clock = film.times_s or [number / fps for number in range(end)]
        times, sound = clock[order.first : end], None
        if order.form == "mp4" and film.sound and film.path is not None and list_shown_times(times):
            open_served(film.path)[0].close()  # no link was put on its way since it was found
            sound = CopiedSound(film.path, times[0], seek=True)
        return self._frames(clip, film, clock, end), times, sound

    def _frames(self, clip: Clip, film: Film, clock: list[float], end: int) -> Iterator[Pixels]:
        order = clip.order
        own = next(
            ((wide, high) for wide, high in self._index.sizes(order.video).values() if wide and high),
            _USUAL_SIZE,
        )
        with ExitStack() as stack:
            reader = None
            if film.state == "ready" and film.path is not None:
                open_served(film.path)[0].close()  # no link was put on its way since it was found
                reader = stack.enter_context(VideoReader(film.path))
            size = (film.width or own[0], film.height or own[1])
            painter = None
            if order.layers:
                painter = LayerPainter(self._overlays, self._index, order.video, order.look, clock, size)
            marks: dict[int, list[Marked]] = {}
            lost = 0
            greyed = more = ""
            places: dict[int, dict[str, Places]] = {}
            for number in range(order.first, end):
                if clip.stop.is_set():
                    raise _CancelledError
                try:
                    if reader is not None:
                        image = reader.frame(number)
                    else:
                        image = self._films.picture(order.video, number)
                except InputError:  # a frame that cannot be decoded, an image that lacks: boxes alone
                    image = draw_lost_frame(size, f"no image of frame {number}")
                    lost += 1
                    why = film.message if film.state == "missing" else "they cannot be decoded, or lack"
                    greyed = f"{lost:,} of {end - order.first:,} frames have no image, and are grey: {why}"
                if number not in marks:
                    last = min(end, number + _WINDOW)
                    marks, places = self._collect(order, size, number, last)
                    if painter is not None and (left := painter.load(number, last)):
                        more = f"{left:,} more things beside boxes are not drawn"
                clip.message = "; ".join(filter(None, (greyed, more)))
                yield _reduce(image, marks[number], order, number, painter, places[number])
                clip.done = (number + 1 - order.first) / (end - order.first)

    def _collect(
        self, order: ClipOrder, size: tuple[int, int], first: int, end: int
    ) -> tuple[dict[int, list[Marked]], dict[int, dict[str, Places]]]:
        """Frame to the boxes that are drawn in it, truth first, and to where all boxes stand; in pixels of the image."""
        found: dict[int, list[Marked]] = {number: [] for number in range(first, end)}
        places: dict[int, dict[str, Places]] = {number: {} for number in range(first, end)}
        look = order.look
        for side, data in self._index.boxes(order.video, first, end).items():
            own = self._index.sizes(order.video)[side]
            grow = [scale_of_set(shown, each) for shown, each in zip(size, own, strict=True)]
            named = self._index.names(side, order.video)
            truth = side == "truth"
            for row, number in enumerate(data["frame"]):
                corners = [data[name][row] for name in ("x1", "y1", "x2", "y2")]
                if any(corner is None for corner in corners):
                    continue
                # Edges far outside are drawn nowhere, and libraries count pixels in small numbers.
                x1, y1, x2, y2 = (
                    min(max(corner * grow[place % 2], -64.0), size[place % 2] + 64.0)
                    for place, corner in enumerate(corners)
                )
                tube = data["tube"][row] if "tube" in data else -1
                if order.layers:
                    held = places[number].setdefault(side, Places())
                    held.boxes[data["box"][row]] = x1, y1, x2, y2
                    if tube >= 0:
                        held.tubes[tube] = x1, y1, x2, y2
                word, score = named.get(tube, (None, None))
                word = word or (data["word"][row] if "word" in data else None) or "object"
                score = score if score is not None else (data["score"][row] if "score" in data else None)
                if side not in order.sides or not look.passes(side, word, score):
                    continue
                text = "" if truth or score is None else f" {score:.2f}"
                words = to_printable(word, _MOST_WORD) + text if order.names else ""
                colour = order.colours.get(word, _UNKNOWN)
                found[number].append(Marked((x1, y1, x2, y2), words, colour, dashed=truth))
        return found, places


def _reduce(
    picture: Pixels,
    marks: list[Marked],
    order: ClipOrder,
    number: int,
    painter: LayerPainter | None,
    places: dict[str, Places],
) -> Pixels:
    """The image with its marks and layers, no larger than its form allows."""
    high, wide = picture.shape[:2]
    scale = min(1.0, _MOST_SIDE[order.form] / max(high, wide))
    if scale < 1:
        size = max(2, round(wide * scale)), max(2, round(high * scale))
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX))
        marks = [
            Marked(tuple(edge * scale for edge in mark.corners), mark.words, mark.colour, mark.dashed)
            for mark in marks
        ]
    if painter is not None:
        image = Image.fromarray(picture)
        painter.paint_below(image, number)
        picture = np.asarray(image)
    title = f"{to_printable(order.video, _MOST_WORD)}  {number}" if order.names else ""
    drawn = draw_marks(picture, marks, title=title, line_px=max(2, round(picture.shape[0] / 360)))
    if painter is not None:
        image = Image.fromarray(drawn)
        painter.paint_above(image, number, places)
        drawn = np.asarray(image)
    return drawn


def _write_gif(path: Path, frames: Iterator[Pixels], times: list[float]) -> None:
    """Images with a palette of their own each; at a rate above 50 a second some are left out."""
    kept: list[int] = []
    for place, time in enumerate(times):
        if not kept or time - times[kept[-1]] >= 1 / _GIF_FPS - 1e-6:
            kept.append(place)
    ends = [
        *(times[place] for place in kept[1:]),
        times[-1] + (times[-1] - times[0]) / max(1, len(times) - 1),
    ]
    # GIF counts hundredths of a second: what is rounded off is carried over.
    marks = [round(100 * (time - times[0])) for time in [times[0], *ends]]
    lasts = [10 * max(2, after - before) for before, after in itertools.pairwise(marks)]
    wanted = set(kept)
    images = (
        Image.fromarray(frame).quantize(256, dither=Image.Dither.NONE)
        for place, frame in enumerate(frames)
        if place in wanted
    )
    first = next(images)
    first.save(
        path, format="gif", save_all=True, append_images=images, duration=lasts, loop=0, optimize=False
    )
