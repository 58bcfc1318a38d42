"""Films and stills behind the viewer, found and made playable once, and the waveforms of their sound."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats32, Pixels
from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.io.files import remove_stale_files, write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.images import parse_image_size, read_still, strip_image_metadata
from roadaware.io.sources import is_outside, open_file, read_file, resolve_inside, to_printable
from roadaware.io.video import (
    BROKEN,
    NoSoundError,
    VideoReader,
    VideoWriter,
    get_time_base,
    iterate_sound,
    lies_aside,
    open_container,
    read_frame_times,
)
from roadaware.online.events import FILM
from roadaware.places import get_cache_folder
from roadaware.scenes.schema import MOST_LISTED_FRAMES
from roadaware.viewer.opening import FILMS, Opened, TableSource

# What Chromium, Firefox and Safari play: coding and pixels of the images, in a container of the mp4 family.
_PLAYED = {("h264", "yuv420p"), ("h264", "yuvj420p"), ("vp9", "yuv420p"), ("av1", "yuv420p")}
_CONTAINER = "mov"
# Players count from the first image; a file whose clock starts elsewhere would be off by that.
_START_S = 1e-3
_USUAL_FPS = 25.0
_MOST_PACKETS = 20_000_000
_CRF = 20
"""Of copies: finer than the eye needs, since people measure on them."""
TICKS = 90_000
"""Parts of a second in which frames of copies say when they are shown."""
_LEAST_GAP_S, _MOST_GAP_S = 1e-3, 3600.0
"""Between frames of a copy; where a film's are closer or farther apart, its times are not times, and it has a pace."""
SOUND_RATE = 48_000
"""Samples of sound a second in copies, of which the coder's delay is 21 ms."""
_SETTLING_S = 0.2
"""Of sound before a copy begins: a coder knows a block well once it has seen some before it."""
_MOST_SOUND_S = 48 * 3600.0
_PLAYED_SOUNDS = ("aac", "mp3", "opus", "flac", "vorbis", "pcm")


@dataclass
class Film:
    """The moving image of one video as a browser can show it.

    Args:
        state: `ready`; `encoding`; `stills`, one image a frame; or `missing`.
        message: what people should know: what lacks, what is done, what is shown instead.
        path: of the file that is served, where there is one.
        times_s: when each frame is shown, on the clock of that file.
        done: share that is encoded.
        drawn: whether everything is drawn on it already.
        width, height: of its images; 0 where not known.
        sound: whether that file has a sound track.
    """

    state: str
    message: str = ""
    path: Path | None = None
    times_s: list[float] = field(default_factory=list)
    done: float = 1.0
    drawn: bool = False
    width: int = 0
    height: int = 0
    sound: bool = False


class FilmFinder:
    """Finds the film of each video, and encodes anew what browsers cannot play, one at a time.

    Args:
        opened: what the viewer was given; nothing outside its folders is ever read.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._films: dict[str, Film] = {}
        self._stills: dict[str, dict[int, tuple[Path, str]]] = {}
        self._lock, self._encoder = threading.Lock(), threading.Lock()

    def film(self, video: str) -> Film:
        """The film of a video, looked for when it is first asked for."""
        with self._lock:
            if video not in self._films:
                self._films[video] = self._find(video)
            return self._films[video]

    def still(self, video: str, frame: int) -> tuple[bytes, str]:
        """An image file of a video of stills, without its metadata, and its media type.

        Raises:
            InputError: if there is none, or it is no whole PNG or JPEG.
        """
        path = self._locate_still(video, frame)
        data = strip_image_metadata(read_file(path), to_printable(str(path)))
        return data, "image/png" if data.startswith(b"\x89PNG") else "image/jpeg"

    def picture(self, video: str, frame: int) -> Pixels:
        """(H, W, 3) uint8 image of a video of stills.

        Raises:
            InputError: if there is none, or it cannot be read.
        """
        return read_still(self._locate_still(video, frame))

    def _locate_still(self, video: str, frame: int) -> Path:
        self.film(video)
        place = self._stills.get(video, {}).get(frame)
        if place is None:
            raise InputError(f"there is no image of frame {frame}", where=to_printable(video))
        return resolve_inside(*place)

    def locate(self, video: str) -> Path | None:
        """The file of a video's film, whether browsers play it or not; None where none is found."""
        for path in self._candidates(video, []):
            with suppress(InputError), open_container(path) as file:
                if file.streams.video:
                    return path
        return None

    def _find(self, video: str) -> Film:
        stills = self._find_stills(video)
        if stills and max(stills) >= MOST_LISTED_FRAMES:
            return Film("missing", f"its images are numbered up to {max(stills):,}, more than can be shown")
        if stills:
            return self._describe_stills(video, stills)
        faults: list[str] = []
        for path in self._candidates(video, faults):
            try:
                return self._open(path)
            except InputError as error:
                faults.append(str(error))
        for source in self._opened.sides.values():
            if source.watch is not None and _holds(source, video):
                try:
                    film = self._open(resolve_inside(Path(os.path.realpath(source.watch)), FILM))
                except InputError as error:
                    faults.append(str(error))
                    continue
                rows = source.scan("frames").filter(pl.col("video").cast(pl.String) == video)
                counted = rows.select(pl.len(), pl.col("frame").max()).collect().row(0)
                # Its n-th image is frame n only where no frame was left out.
                if film.state == "encoding" or counted == (len(film.times_s), len(film.times_s) - 1):
                    film.drawn = True
                    film.message = (
                        "the film of the watch, with everything drawn on it; --media shows the original"
                    )
                    return film
                faults.append("frames were left out of the film of the watch")
        wanted = next((name for name in self._stated_paths(video)), None) or f"{video}.mp4"
        why = f" ({faults[0]})" if faults else ""
        return Film("missing", f"{to_printable(wanted)} is not here{why}; --media DIR says where films lie")

    def _stated_paths(self, video: str) -> list[str]:
        """What the tables say of where a film lies, the ground truth first."""
        found = []
        for source in self._opened.sides.values():
            table = source.scan("videos")
            if "path" in table.collect_schema().names():
                rows = table.filter(pl.col("video").cast(pl.String) == video).select("path").collect()
                found += [path for path in rows["path"].cast(pl.String).to_list() if path]
        return list(dict.fromkeys(found))

    def _candidates(self, video: str, faults: list[str]) -> list[Path]:
        """Where the film may lie, best first; a name that leads out of its folder is a fault."""
        stated, found = self._stated_paths(video), []
        names = {Path(name).name for name in stated}
        for place in self._opened.media:
            if place.is_file():
                if place.stem == video or place.name in names:
                    found.append(place.resolve())
                continue
            root = place.resolve()
            ends = [f"{video}{suffix}" for suffix in FILMS]
            for name in (*stated, *sorted(names), *ends):
                with suppress(InputError):
                    found.append(resolve_inside(root, name))
        for source in self._opened.sides.values():
            if source.watch is not None:
                continue  # its root holds the drawn film under the name of the original
            for name in stated:
                try:
                    found.append(resolve_inside(Path(os.path.realpath(source.root)), name))
                except InputError as error:
                    if is_outside(name):
                        faults.append(str(error))
        return list(dict.fromkeys(found))

    def _find_stills(self, video: str) -> dict[int, tuple[Path, str]]:
        """Frame to folder and name of its image, where a set says so."""
        for source in self._opened.sides.values():
            frames = source.scan("frames")
            columns = frames.collect_schema().names()
            name = next((each for each in ("path", "picture") if each in columns), None)
            if name is None:
                continue
            held = frames.filter(pl.col("video").cast(pl.String) == video).select("frame", name).drop_nulls()
            rows = held.collect().rows()
            roots = [
                Path(os.path.realpath(root)) for root in (*self._opened.media, source.root) if root.is_dir()
            ]
            for root in roots:
                if any(_is_inside(root, str(path)) for _, path in rows[:20]):
                    return {int(frame): (root, str(path)) for frame, path in rows}
        return {}

    def _describe_stills(self, video: str, stills: dict[int, tuple[Path, str]]) -> Film:
        self._stills[video] = stills
        film = Film("stills")
        for place in list(stills.values())[:20]:
            with suppress(InputError):
                size = parse_image_size(read_file(resolve_inside(*place)))
                if size is not None:
                    film.width, film.height = size
                    break
        # Shown as a film of a second each ten: of stills no table says more.
        film.times_s = [frame / 10 for frame in range(max(stills) + 1)]
        return film

    def _open(self, path: Path) -> Film:
        """A film as it is, where browsers play it; else its copy, made now if there is none.

        Raises:
            InputError: if it cannot be read.
        """
        where = to_printable(str(path))
        with open_container(path) as file:
            if file.streams.video:
                stream = file.streams.video[0]
                form = (str(stream.codec_context.name), str(stream.codec_context.pix_fmt))
                size = int(stream.width), int(stream.height)
                family = _CONTAINER in str(file.format.name).split(",")
                scale = get_time_base(stream, where)
                heard = [str(each.codec_context.name) for each in file.streams.audio if each.codec_context]
                times, count, broken = read_frame_times(file, stream, where)
                times_s = (times * scale).tolist()
                # As browsers show it, and as boxes of a watch lie.
                size = size[::-1] if len(times) and lies_aside(file, stream, int(times[0])) else size
                whole = not broken and count == len(times_s) and times_s and abs(times_s[0]) < _START_S
                if whole and family and form in _PLAYED and _is_seekable(path):
                    said = (
                        f"browsers do not play its sound ({heard[0]})"
                        if heard and not heard[0].startswith(_PLAYED_SOUNDS)
                        else ""
                    )
                    return Film("ready", said, path, times_s, 1.0, False, *size, sound=bool(heard))
        return self._open_copy(path)

    def _open_copy(self, path: Path) -> Film:
        status = path.stat()
        # The last word tells these copies from those of another make.
        name = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0in step, upright"
        key = hashlib.blake2b(os.fsencode(name), digest_size=12).hexdigest()
        target = Path(os.path.realpath(get_cache_folder())) / "viewer" / f"{key}.mp4"
        if target.is_file():
            with suppress(InputError), VideoReader(target) as reader:
                times_s = [reader.t_s(number) for number in range(len(reader))]
                size, heard = (reader.width_px, reader.height_px), _has_sound(target)
                lost = "" if heard or not _has_sound(path) else "it cannot be decoded"
                return Film("ready", _say(path, lost), target, times_s, 1.0, False, *size, sound=heard)
        reader = VideoReader(path)
        film = Film("encoding", _say(path), done=0.0, width=reader.width_px, height=reader.height_px)
        threading.Thread(
            target=self._encode, args=(reader, target, film), name="encoder", daemon=True
        ).start()
        return film

    def _encode(self, reader: VideoReader, target: Path, film: Film) -> None:
        """Write the copy; frame n of it is frame n of the film, shown and heard when it was, from 0 on."""
        with self._encoder, reader:
            fps = min(max(reader.fps or _USUAL_FPS, 0.1), 240.0)
            try:
                make_folder(target.parent)
                with suppress(OSError):
                    remove_stale_files(target.parent)
                width, height = (side + side % 2 for side in (reader.width_px, reader.height_px))
                shown_s = list_shown_times([reader.t_s(number) for number in range(len(reader))])
                sound = CopiedSound(reader.path, reader.t_s(0)) if shown_s else None
                rate = SOUND_RATE if sound is not None and sound.held is not None else None
                ticks = TICKS if shown_s else None
                writer = VideoWriter(target, width, height, fps, sound_rate=rate, crf=_CRF, ticks=ticks)
                with writer:
                    image = np.zeros((height, width, 3), dtype=np.uint8)
                    for number in range(len(reader)):
                        with suppress(InputError):  # one that cannot be decoded: the last one stands
                            # The image with its last row and column repeated, where an even size asks for it.
                            image = reader.frame(number)
                            high, wide = image.shape[:2]
                            image = np.pad(
                                image, ((0, height - high), (0, width - wide), (0, 0)), mode="edge"
                            )
                        writer.write(image, round(shown_s[number] * TICKS) if shown_s else None)
                        if sound is not None and rate:
                            after_s = (
                                shown_s[number + 1] if number + 1 < len(shown_s) else shown_s[-1] + 1 / fps
                            )
                            sound.write(writer, after_s)
                        film.done = (number + 1) / len(reader)
                with VideoReader(target) as copy:
                    film.times_s = [copy.t_s(number) for number in range(len(copy))]
                film.sound = rate is not None
                film.message = _say(reader.path, "" if sound is None else sound.fault)
                film.path, film.state = target, "ready"
            except (RoadawareError, OSError) as error:
                film.state, film.message = "missing", f"it could not be encoded: {error}"


def list_shown_times(times_s: Sequence[float]) -> list[float]:
    """When each frame of a copy is shown: as in the film, from 0 on; nothing where the film's times make no sense.

    Args:
        times_s: of the frames, on the film's clock.
    """
    sane = all(_LEAST_GAP_S <= after - before <= _MOST_GAP_S for before, after in pairwise(times_s))
    return [time_s - times_s[0] for time_s in times_s] if sane else []


class CopiedSound:
    """The sound of a film for its copy, whose clock begins at an image of the film; silence where there is none.

    Args:
        path: of the film.
        begin_s: time of the copy's first image, on the film's clock.
        seek: whether what lies before that is passed over and not decoded; of a file that is read from any place alike.
    """

    def __init__(self, path: Path, begin_s: float, *, seek: bool = False) -> None:
        self.fault = ""
        self.held: tuple[int, Any] | None = None
        """The block that is to be written next, and its place; None where there is no more, or no sound at all."""
        start_s = max(0.0, begin_s - _SETTLING_S) if seek else 0.0
        self._blocks = iterate_sound(path, SOUND_RATE, _MOST_SOUND_S, start_s)
        self._origin, self._written = round(begin_s * SOUND_RATE), 0
        self._fetch()

    def write(self, writer: VideoWriter, until_s: float) -> None:
        """Write what is heard up to a time of the copy.

        Raises:
            DiskError: if the disk refuses.
        """
        end = round(until_s * SOUND_RATE)
        while self._written < end:
            first, last = self._written, min(end, self._written + SOUND_RATE)
            block = np.zeros((last - first, 2), np.float32)
            while self.held is not None:
                at, samples = self.held
                low, high = max(first, at), min(last, at + len(samples))
                if low < high:
                    block[low - first : high - first] = samples[low - at : high - at]
                if at + len(samples) > last:
                    break
                self._fetch()
            writer.write_sound(block)
            self._written = last

    def _fetch(self) -> None:
        self.held = None
        try:
            at, samples = next(self._blocks)
            self.held = at - self._origin, samples
        except (StopIteration, NoSoundError):
            pass
        except InputError as error:
            self.fault = error.message


def _has_sound(path: Path) -> bool:
    with open_container(path) as file:
        return bool(file.streams.audio)


def _is_seekable(path: Path) -> bool:
    """Whether each frame lasts, as the file states it, until the next begins.

    Where frames are stored in another order than they are shown (B frames) and the rate varies, the stated durations
    are those of other frames, and a browser that is sent to one frame shows the one before.
    """
    with open_container(path) as file:
        try:
            packets = islice(file.demux(file.streams.video[0]), _MOST_PACKETS)
            stated = sorted((p.pts, p.duration or 0) for p in packets if p.size and p.pts is not None)
        except BROKEN:
            return False
    return all(begin + lasts == after for (begin, lasts), (after, _) in pairwise(stated))


def _say(path: Path, lost: str = "") -> str:
    said = f"browsers do not play {to_printable(path.name)} frame by frame: a copy is shown, and kept in the cache"
    return f"{said}; of its sound not all is heard: {lost}" if lost else said


def _is_inside(root: Path, name: str) -> bool:
    try:
        resolve_inside(root, name)
    except InputError:
        return False
    return True


def _holds(source: TableSource, video: str) -> bool:
    rows = source.scan("videos").filter(pl.col("video").cast(pl.String) == video)
    return bool(rows.select(pl.len()).collect().item())


def open_served(path: Path) -> tuple[Any, int]:
    """A film's file, open, and its size in bytes.

    Args:
        path: as it was found, with no link on its way.

    Raises:
        InputError: if it is no regular file any more, or a link was put on its way.
    """
    if Path(os.path.realpath(path)) != path:
        raise InputError("a link leads elsewhere by now", where=to_printable(str(path)))
    file = open_file(path, most=1 << 50)
    return file, os.fstat(file.fileno()).st_size


MOST_BARS = 4096
"""Steps of one answer, at most."""
STEP_S = 0.005
MOST_S = 6 * 3600.0
"""Of a film's sound; what comes later has no waveform."""
_RATE = 8_000
_EACH = round(_RATE * STEP_S)
_MOST_STEPS = round(MOST_S / STEP_S)
_FULL = 32767
_KEPT = 6


@dataclass
class _Track:
    """The waveform of one film.

    Args:
        state: `reading`, `ready`, or `none` where there is no sound.
        message: what went wrong.
        peaks: (n, 2) int16, as of `read_peaks`.
        done_s: how far it has been read.
    """

    state: str
    message: str = ""
    peaks: Any = None
    done_s: float = 0.0


class Waveforms:
    """Reads the sound of films, one at a time, each in a thread of its own, and keeps what was found.

    What is kept of a film lies in the cache folder under `viewer/`, named by the film's path, size and time.
    """

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, int, int], _Track] = {}
        self._lock, self._reader = threading.Lock(), threading.Lock()

    def describe(self, path: Path, first_s: float, end_s: float, bars: int) -> dict[str, Any]:
        """The waveform of a part of a film, JSON-ready: `state`, `message`, `done_s`, and of each of `bars` equal
        pieces the `low` and the `high` sample, from -32767 to 32767.

        Args:
            path: of the film, as it was found.
            first_s, end_s: the part, on the film's clock.
            bars: how many pieces, 1 to 4096.

        Raises:
            UsageError: if it is no part, or the pieces are too many.
            InputError: if the film cannot be read.
        """
        if not 0 <= first_s < end_s or not 1 <= bars <= MOST_BARS:
            raise UsageError(f"a waveform has 1 to {MOST_BARS} bars, from a time on to a later one")
        track = self._open(path)
        found = {"state": track.state, "message": track.message, "done_s": round(track.done_s, 1)}
        if track.peaks is None:
            return {**found, "low": [], "high": []}
        # The steps that each bar touches, one at least, so that a short bar shows what is heard in it; the last row is
        # silence, and stands for all that lies behind it.
        behind = len(track.peaks) - 1
        ends = np.linspace(first_s, end_s, bars + 1) / STEP_S
        starts = np.floor(ends[:-1] + 1e-6).clip(0, behind).astype(np.int64)
        stops = np.ceil(ends[1:] - 1e-6).clip(0, behind).astype(np.int64)
        pairs = np.stack([starts, np.maximum(stops, np.minimum(starts + 1, behind))], axis=1).reshape(-1)
        low = np.minimum.reduceat(track.peaks[:, 0], pairs)[::2]
        high = np.maximum.reduceat(track.peaks[:, 1], pairs)[::2]
        return {**found, "low": low.tolist(), "high": high.tolist()}

    def _open(self, path: Path) -> _Track:
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(f"the film is gone: {error.strerror}") from error
        key = (str(path), status.st_size, status.st_mtime_ns)
        with self._lock:
            track = self._tracks.pop(key, None)
            if track is None:
                while len(self._tracks) >= _KEPT:
                    self._tracks.pop(next(iter(self._tracks)))
                track = _Track("reading")
                threading.Thread(
                    target=self._read, args=(path, key, track), name="waveform", daemon=True
                ).start()
            self._tracks[key] = track  # the last one asked for is dropped last
        return track

    def _read(self, path: Path, key: tuple[str, int, int], track: _Track) -> None:
        name = hashlib.blake2b(os.fsencode("\0".join(map(str, key))), digest_size=12).hexdigest()
        kept = Path(os.path.realpath(get_cache_folder())) / "viewer" / f"{name}.peaks"
        with self._reader:
            with self._lock:
                if self._tracks.get(key) is not track:
                    return  # enough other films were opened since
            with suppress(RoadawareError):
                data = np.frombuffer(read_file(kept, most=4 * _MOST_STEPS + 4), np.int16)
                if len(data) and not len(data) % 2:
                    track.peaks, track.state = data.reshape(-1, 2), "ready"
                    track.done_s = (len(track.peaks) - 1) * STEP_S
                    return
            try:
                peaks = read_peaks(path, track)
            except NoSoundError:
                track.state = "none"
                return
            except (InputError, MemoryError, ValueError) as error:
                track.state, track.message = "none" if track.peaks is None else "ready", str(error)
                return
            track.peaks, track.state = peaks, "ready" if len(peaks) > 1 else "none"
            with suppress(RoadawareError, OSError):
                make_folder(kept.parent)
                write_atomically(kept, peaks.tobytes())


def read_peaks(path: Path, track: _Track | None = None) -> Any:
    """(n, 2) int16 lowest and highest sample of each step of the sound of a film, from time 0 on, 32767 for the loudest.

    A last row of silence follows.

    Args:
        path: of the film.
        track: is told how far it is, and holds what was found before a fault.

    Raises:
        NoSoundError: if it has no sound track.
        InputError: if it cannot be read.
    """
    track = track or _Track("reading")
    peaks = np.zeros((1024, 2), np.int16)
    known = 0
    for at, block in iterate_sound(path, _RATE, MOST_S):
        begin = max(0, -at)
        # The louder side counts: what is heard on one side alone is no quieter.
        low, high = _to_steps(at + begin, block[begin:])
        first = (at + begin) // _EACH
        last = min(first + len(low), _MOST_STEPS)
        if first >= last:
            continue
        if last >= len(peaks):
            grown = np.zeros((min(_MOST_STEPS, max(last, 2 * len(peaks))) + 1, 2), np.int16)
            grown[:known] = peaks[:known]
            peaks = grown
        part = peaks[first:last]
        np.minimum(part[:, 0], low[: last - first], out=part[:, 0])
        np.maximum(part[:, 1], high[: last - first], out=part[:, 1])
        known = max(known, last)
        track.peaks, track.done_s = peaks[: known + 1], known * STEP_S
    return peaks[: known + 1].copy()


def _to_steps(at: int, block: Floats32) -> tuple[Any, Any]:
    """The lowest and highest sample of each step that a block touches, as int16."""
    before = at % _EACH
    after = -(before + len(block)) % _EACH
    # Not a number is silence; a step that the block only touches has silence for the rest of it.
    whole = np.pad(np.nan_to_num(block, nan=0.0), ((before, after), (0, 0))).reshape(-1, _EACH * 2)
    scaled = (np.clip(whole, -1.0, 1.0) * _FULL).round().astype(np.int16)
    return scaled.min(axis=1, initial=0), scaled.max(axis=1, initial=0)
