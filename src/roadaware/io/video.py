"""Video files: written frame by frame with their sound, whole or not at all, and read by frame number
without opening anything else.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import av
import numpy as np

from roadaware.arrays import Floats32, Ints, Pixels
from roadaware.errors import InputError, UsageError
from roadaware.io.decoders import BROKEN as BROKEN
from roadaware.io.decoders import (
    FILMS,
    MAX_PIXELS,
    WATCHED_FILMS,
    format_decoder_error,
    open_film,
    open_mp4_writer,
    prepare_decoder,
    read_media_head,
)
from roadaware.io.files import Growing, Sink, Unfinished
from roadaware.io.sources import to_printable

# Containers of video and sound, opened so that nothing outside the file is read, and their faults.

ENDINGS = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mpg", ".mpeg", ".ts")
"""Of the names of video files."""
CUT = "the file was cut off or is still being written: write or copy it again"
"""What to do about a file that ends too early."""
_KINDS = {
    "mov": "mp4, mov",
    "matroska": "mkv",
    "mpegts": "ts",
    "mpeg": "mpg",
    "ogg": "ogv",
    "asf": "wmv",
}
_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof", b"sidx")
_HEADS = {
    "matroska": (b"\x1a\x45\xdf\xa3",),
    "gif": (b"GIF87a", b"GIF89a"),
    "mpeg": (b"\0\0\1\xba", b"\0\0\1\xb3"),
    "ogg": (b"OggS",),
    "flv": (b"FLV\1",),
    "asf": (b"\x30\x26\xb2\x75",),
}
# The element of Matroska that holds all others.
_SEGMENT = b"\x18\x53\x80\x67"
# Of FFmpeg: AVINDEX_DISCARD_FRAME of entries in the index of an mp4, AV_DISPOSITION_ATTACHED_PIC of streams.
_LEFT_OUT, _COVER = 2, 1 << 10
# The length of a packet of MPEG-TS; each begins with G.
_TS_PACKET = 188
_MOST_FRAMES = 10_000_000


class MediaError(InputError):
    """A video or sound file that cannot be used."""


class EmptyMediaError(MediaError):
    """A file without a byte or without a frame."""


class CutOffError(MediaError):
    """A file that ends before its content does, or whose content is broken."""


class NoVideoError(MediaError):
    """A file without a video stream."""


class OnlySoundError(NoVideoError):
    """A file with sound and without a video stream."""


class NoSoundError(MediaError):
    """A file without a sound track."""


class CodecError(MediaError):
    """A stream that no decoder can read: encrypted, or of a codec that is not there."""


def open_container(path: Path, formats: str = FILMS) -> Any:
    """A container of PyAV; nothing outside the file is ever read.

    Args:
        path: a regular file.
        formats: of FFmpeg that it may have, see `decoders`.

    Raises:
        EmptyMediaError: if the file is empty.
        CutOffError: if it begins like a video and is damaged.
        MediaError: if it is something else.
        InputError: if it cannot be read or is no regular file.
    """
    where = to_printable(str(path))
    head = read_media_head(path)
    if not head:
        raise EmptyMediaError("the file is empty", where=where, hint=CUT)
    try:
        return open_film(path, formats)
    except BROKEN as error:
        if _like_film(head, formats):
            raise CutOffError(
                f"no whole video: {format_decoder_error(error)}", where=where, hint=CUT
            ) from error
        kinds = ", ".join(_KINDS.get(each, each) for each in formats.split(","))
        if _like_film(head, WATCHED_FILMS):
            hint = "write it as one of these: ffmpeg -i IN -c copy OUT.mp4"
            raise MediaError(f"a video of another form; {kinds} are read", where=where, hint=hint) from error
        raise MediaError(f"not a video; {kinds} are read", where=where) from error


def open_video_stream(file: Any, where: str) -> Any:
    """The first stream of images of a container, ready to be decoded by one thread; a cover is none.

    Raises:
        NoVideoError: if there is none (`OnlySoundError` if there is sound).
        CodecError: if its codec is not known, or what it needs is damaged.
        MediaError: if its images are too large.
    """
    films = (each for each in file.streams.video if not getattr(each, "disposition", 0) & _COVER)
    stream = next(films, None)
    if stream is None:
        kind, what = (OnlySoundError, "sound only") if file.streams.audio else (NoVideoError, "none")
        raise kind(f"expected a video stream, found {what}", where=where)
    if stream.codec_context is not None:
        width, height = int(stream.width or 0), int(stream.height or 0)
        if not 0 < width * height <= MAX_PIXELS:
            raise MediaError(f"images of {width}x{height}; up to {MAX_PIXELS} pixels are read", where=where)
    _require_decoder(stream, where, "pictures")
    return stream


def open_audio_stream(file: Any, where: str) -> Any:
    """The first stream of sound of a container, ready to be decoded.

    Raises:
        NoSoundError: if there is none.
        CodecError: if its codec is not known, or what it needs is damaged.
    """
    if not file.streams.audio:
        raise NoSoundError("expected a sound track, found none", where=where)
    _require_decoder(file.streams.audio[0], where, "sound")
    return file.streams.audio[0]


def iterate_packets(file: Any, stream: Any) -> Iterator[Any]:
    """Packets of a stream, up to where its clock goes back as where another file was appended to it.

    Raises:
        BROKEN: what PyAV raises about its content; a ValueError where the clock goes back.
    """
    latest, late = None, 1 / (stream.time_base or 1)
    for packet in file.demux(stream):
        if packet.dts is not None:
            if latest is not None and packet.dts < latest - late:
                raise ValueError(
                    "its times begin anew, as of files that were joined byte by byte: give them one by one"
                )
            latest = packet.dts if latest is None else max(latest, packet.dts)
        yield packet


def read_frame_times(file: Any, stream: Any, where: str) -> tuple[Ints, int, str]:
    """Times of all frames in order, how many have one, and what broke the file before its end, if anything.

    They are those of the packets; nothing is decoded.

    Raises:
        MediaError: if there are more than ten million.
    """
    times, broken = array("q"), ""
    try:
        # `extend` keeps what it was given until the file breaks.
        times.extend(
            packet.pts
            # Twice: packets without a time are passed over, and must not make the loop endless.
            for packet in islice(iterate_packets(file, stream), 2 * _MOST_FRAMES)
            if packet.size and packet.pts is not None and not packet.is_discard
        )
    except BROKEN as error:
        broken = format_decoder_error(error)
    if len(times) > _MOST_FRAMES:
        raise MediaError(f"more than {_MOST_FRAMES:,} frames; cut the video into several", where=where)
    if not broken and (missing := _count_missing_bytes(file)) > 0:
        broken = f"{missing:,} bytes are missing at its end"
    found = np.frombuffer(times, dtype=np.int64) if times else np.zeros(0, dtype=np.int64)
    # Packets come in the order of decoding; numbers count the order of the times.
    return np.unique(found), len(times), broken


LIE = 0.1
"""Share by which the rate that a file states may differ from that of its times, which are rounded."""


def measure_rate(times: Ints, scale: float) -> float | None:
    """Frames per second as times show; None where they show none.

    Args:
        times: (n,) of the frames, rising.
        scale: seconds that one of their units lasts.
    """
    steps = np.diff(times.astype(np.float64))
    usual, mean = (float(np.median(steps)), float(np.mean(steps))) if len(steps) else (0.0, 0.0)
    if not min(usual, mean) > 0:  # times so large that they do not differ as numbers of the machine
        return None
    # Times in coarse ticks step unevenly, and their mean is right; a gap spoils the mean.
    return 1 / ((mean if abs(mean - usual) < LIE * usual else usual) * scale)


def count_promised_frames(file: Any, stream: Any, times: Ints) -> int:
    """How many frames a file says that it shows; 0 where it does not say.

    Args:
        file: a container.
        stream: its video stream.
        times: of its frames, as `read_frame_times` found them.
    """
    stated, kind = int(stream.frames or 0), str(file.format.name)
    if kind == "avi" and len(times) and stated <= times[-1] + 1:
        # It counts empty chunks, too, which stand for a frame that is shown again; so do its times.
        return len(times)
    # Older PyAV knows no index.
    index = getattr(stream, "index_entries", None)
    if kind.startswith("mov") and index is not None:
        # It counts frames, too, that an edit list leaves out, as of a video that was trimmed.
        return min(stated, sum(not entry.flags & _LEFT_OUT for entry in index))
    return stated


def _count_missing_bytes(file: Any) -> int:
    """By how many bytes a mkv or webm is shorter than it says; 0 of others, and where it does not say.

    FFmpeg takes the end of such a file for that of the video.
    """
    if "matroska" not in str(file.format.name):
        return 0
    path = Path(str(file.name).removeprefix("file:"))
    head = read_media_head(path)
    at = head.find(_SEGMENT) + len(_SEGMENT)
    if not len(_SEGMENT) <= at < len(head):
        return 0
    # The first bit that is set says how many bytes hold the size.
    n_bytes = 9 - head[at].bit_length()
    size = int.from_bytes(head[at : at + n_bytes], "big") - (1 << 7 * n_bytes)
    # All bits set: the size was not known yet.
    known = size < (1 << 7 * n_bytes) - 1
    return at + n_bytes + size - int(file.size) if known else 0


def get_time_base(stream: Any, where: str) -> float:
    """Time base of a stream, in seconds.

    Raises:
        MediaError: if it does not say.
    """
    found = float(stream.time_base or 0)
    if not found > 0:
        raise MediaError("it does not say what its times are counted in", where=where, hint=CUT)
    return found


def _require_decoder(stream: Any, where: str, what: str) -> None:
    if fault := prepare_decoder(stream):
        hint = "write it again in a usual codec, such as H.264 with AAC, and without encryption"
        raise CodecError(f"its {what} cannot be decoded: {fault}", where=where, hint=hint)


def _like_film(head: bytes, formats: str) -> bool:
    """Whether a file begins like one of those that are read."""
    kinds = formats.split(",")
    if head[4:8] in _BOXES or any(head.startswith(_HEADS.get(kind, ())) for kind in kinds):
        return True
    if "avi" in kinds and head[:4] == b"RIFF" and head[8:11] == b"AVI":
        return True
    return "mpegts" in kinds and head[:1] == head[_TS_PACKET : _TS_PACKET + 1] == b"G"


_ENCODERS = {
    # Without the macroblock tree: with it x264 makes other bytes of the same frames in some 4 of 100 runs, also on one
    # thread.
    "libx264": ({"preset": "veryfast", "x264-params": "mbtree=0"}, 51),
    # In one pass: each frame leaves before the next is given.
    "libvpx-vp9": (
        {"deadline": "realtime", "cpu-used": "6", "lag-in-frames": "0", "auto-alt-ref": "0", "b": "0"},
        63,
    ),
}
"""Encoders whose frames browsers play in an mp4, best first: how they work, and their coarsest."""
# FFmpeg's guide to H.264 calls 17 to 18 visually lossless or nearly so.
FINE_CRF = 18
# FFmpeg turns RGB into YUV by BT.601 (6: SMPTE 170M); players guess BT.709 where a file does not say.
_BT601 = 6
_MOST_RATE = 768_000
_AHEAD = 8
"""Up to how many frames are decoded and passed over instead of going by a key frame."""


def select_encoder() -> str:
    """The encoder of frames: H.264, or VP9 where FFmpeg was built without that.

    Raises:
        CodecError: if it was built with neither.
    """
    for name in _ENCODERS:
        with suppress(ValueError):
            return str(av.codec.Codec(name, "w").name)
    raise CodecError(
        f"this build of FFmpeg encodes no video that browsers play: none of {', '.join(_ENCODERS)}",
        hint="the wheels of PyAV bring both: pip install --force-reinstall av",
    )


class VideoWriter(Growing):
    """Writes h264 (VP9 where that cannot be encoded; yuv420p) and AAC in an mp4; it has its name once `close` is through.

    Give frames and sound alternately: what runs ahead waits in memory for the other.

    Args:
        path: where to; its folder must exist.
        width_px: of every frame, even.
        height_px: of every frame, even.
        fps: frames per second.
        sound_rate: samples per second of the sound track; None for a silent video.
        comment: what the file says of itself, in its metadata.
        crf: how coarse the images may get, 0 for as they are to 51.
        ticks: parts of a second in which frames say when they are shown; None for a constant pace.

    Raises:
        UsageError: if a size is not even and positive, or a rate not positive, or the coarseness unknown.
        CodecError: if there is no encoder.
        DiskError: if the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        width_px: int,
        height_px: int,
        fps: float,
        *,
        sound_rate: int | None = None,
        comment: str = "",
        crf: int = FINE_CRF,
        ticks: int | None = None,
    ) -> None:
        if not 0 <= crf <= 51:
            raise UsageError(f"crf is 0 to 51, not {crf!r}")
        if width_px % 2 or height_px % 2 or min(width_px, height_px) < 2:
            raise UsageError(f"videos have even sizes of at least 2, not {width_px}x{height_px}")
        # Rates that AAC has.
        if not 0.001 <= fps <= 1000 or (sound_rate is not None and not 8000 <= sound_rate <= 96000):
            raise UsageError(
                f"{fps!r} frames and {sound_rate!r} samples a second: give 0.001 to 1000, 8000 to 96000"
            )
        self.size, self.n_frames, self.n_samples = (int(height_px), int(width_px)), 0, 0
        # 1001 is the denominator of the NTSC rates, such as 30000/1001.
        self._pace, self._rate = 1 / Fraction(fps).limit_denominator(1001), sound_rate or 0
        self._tick = self._pace if ticks is None else Fraction(1, ticks)
        self._target = Unfinished(path)
        self._sink = Sink(self._target.file)
        try:
            self._file: Any = open_mp4_writer(self._sink)
            if comment:
                self._file.metadata["comment"] = comment
            self._video = self._video_stream(crf)
            self._sound: Any = None
            if sound_rate is not None:
                self._sound = self._file.add_stream("aac", rate=sound_rate, layout="stereo")
        except BaseException:
            self._target.abandon()
            raise

    def _video_stream(self, crf: int) -> Any:
        encoder = select_encoder()
        options, coarsest = _ENCODERS[encoder]
        options = {**options, "crf": str(round(crf * coarsest / 51))}
        stream = self._file.add_stream(encoder, rate=1 / self._pace, options=options)
        if self._tick != self._pace:
            stream.time_base = stream.codec_context.time_base = self._tick
        stream.height, stream.width = self.size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        # One thread, so that the same frames make the same file; key frames twice a second or so, to seek to.
        # No B frames: packets leave in the order of the frames.
        context.thread_count, context.max_b_frames = 1, 0
        context.gop_size = max(1, round(float(1 / self._pace) / 2))
        context.colorspace = context.color_primaries = context.color_trc = _BT601
        return stream

    def write(self, frame: Pixels, at: int | None = None) -> None:
        """Add a frame.

        Args:
            frame: (H, W, 3) uint8 of the size of the video.
            at: when it is shown, in `ticks`, later than the one before; None for the next at the constant pace.

        Raises:
            UsageError: if it has another shape or type.
            DiskError: if the disk refuses.
        """
        if frame.shape != (*self.size, 3) or frame.dtype != np.uint8:
            raise UsageError(f"expected uint8 {(*self.size, 3)}, found {frame.dtype} {frame.shape}")
        image = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        image.pts, image.time_base = self.n_frames if at is None else at, self._tick
        self._mux(self._video, image)
        self.n_frames += 1

    def write_sound(self, block: Floats32) -> None:
        """Add samples.

        Args:
            block: (n, 2) float32, left and right, from -1 to 1.

        Raises:
            UsageError: if it has another shape, or the video has no sound track.
            DiskError: if the disk refuses.
        """
        if self._sound is None:
            raise UsageError("the video has no sound track: open it with sound_rate")
        if block.ndim != 2 or block.shape[1] != 2:
            raise UsageError(f"expected (n, 2) samples, found {block.shape}")
        if not len(block):
            return
        both = np.ascontiguousarray(block.T, dtype=np.float32)
        piece = av.AudioFrame.from_ndarray(both, format="fltp", layout="stereo")
        piece.sample_rate, piece.pts = self._rate, self.n_samples
        piece.time_base = Fraction(1, self._rate)
        self._mux(self._sound, piece)
        self.n_samples += len(block)

    def _mux(self, stream: Any, frame: Any) -> None:
        try:
            for packet in stream.encode(frame):
                self._file.mux(packet)
            self._sink.check()
        except OSError as error:
            raise self._target.failure(error) from error

    def close(self) -> None:
        """Complete the video and give it its name.

        Raises:
            UsageError: if it has no frame.
            DiskError: if the disk refuses; what stood there before still stands.
        """
        if not self.n_frames:
            self.abandon()
            raise UsageError(f"{self._target.path}: a video has at least one frame")
        try:
            for stream in (self._video, self._sound):
                if stream is not None:
                    self._mux(stream, None)
            self._file.close()
            self._sink.check()
        except OSError as error:
            failure = self._target.failure(error)
            self.abandon()
            raise failure from error
        except BaseException:
            self.abandon()
            raise
        self._target.finish()

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._target.abandon()


# Twice the distance of key frames that x264 sets: without the one before them, others give no image.
_MOST_TRIED = 500


def _count_turns(frame: Any) -> int:
    """Quarter turns to the left that bring a decoded frame upright; 0 where its display matrix is no such turn."""
    degrees = getattr(frame, "rotation", 0)
    turns = round(degrees / 90)
    return turns % 4 if abs(turns) < 4 and abs(degrees - 90 * turns) <= 1 else 0


def rotate_upright(frame: Any) -> Pixels:
    """(H, W, 3) uint8 of a decoded frame, turned as its display wants it, by quarter turns alone.

    Mirroring is not read: a frame that is to be shown mirrored from left to right is turned upside down, as FFmpeg
    states its angle.

    Raises:
        MediaError: if it is too large, or in no form that images can be made of.
    """
    if frame.width * frame.height > MAX_PIXELS:
        raise MediaError(f"an image of {frame.width}x{frame.height}; up to {MAX_PIXELS} pixels are read")
    try:
        image: Pixels = frame.to_ndarray(format="rgb24")
        turns = _count_turns(frame)
    except BROKEN as error:
        raise MediaError(f"no image can be made of a frame: {format_decoder_error(error)}") from error
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image


def lies_aside(file: Any, stream: Any, start: int) -> bool:
    """Whether players turn the images of a video by a right angle, as those of phones; only a decoded frame says it.

    It is the first that can be decoded; without one among the first 500 nothing is turned.

    Args:
        file: a container.
        stream: its video stream.
        start: time of the first frame, in its ticks; it is sought there.
    """
    with suppress(*BROKEN):
        file.seek(start, stream=stream, backward=True, any_frame=False)
        for packet in islice(file.demux(stream), _MOST_TRIED):
            with suppress(*BROKEN):
                for frame in packet.decode():
                    return bool(_count_turns(frame) % 2)
    return False


class VideoReader:
    """Frames of a video by number, with their times, upright as phones note it; mp4, mov, mkv and webm.

    Frames in sequence are decoded one after the other; a jump goes by the key frame before it. Numbers count
    the frames in the order of their times, whatever those are. Images are turned as players turn them.

    Args:
        path: a regular file.

    Raises:
        EmptyMediaError: if it holds nothing.
        CutOffError: if it is damaged.
        NoVideoError: if it has no video stream (`OnlySoundError` if it has sound).
        CodecError: if its codec is not known.
        MediaError: if it is no video, or its images are too large.
        InputError: if it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.where = Path(path), to_printable(str(path))
        self._file = open_container(self.path)
        try:
            self._stream = open_video_stream(self._file, self.where)
            self._stored = int(self._stream.width), int(self._stream.height)
            self._times, self._scale = self._index(), get_time_base(self._stream, self.where)
            aside = lies_aside(self._file, self._stream, int(self._times[0]))
            self.width_px, self.height_px = self._stored[::-1] if aside else self._stored
        except BaseException:
            self._file.close()
            raise
        self._next: int | None = None
        self._frames: Iterator[Any] = iter(())

    def __len__(self) -> int:
        return len(self._times)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Pixels]:
        for number in range(len(self)):
            yield self.frame(number)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @property
    def fps(self) -> float | None:
        """Frames per second as the file states, or as its times show where that is another rate; None of one frame."""
        stated, shown = float(self._stream.average_rate or 0), measure_rate(self._times, self._scale)
        return stated if stated and (shown is None or abs(stated - shown) <= LIE * shown) else shown

    def t_s(self, number: int) -> float:
        """When a frame is shown, in seconds on the clock of the file.

        Args:
            number: of the frame, from 0.
        """
        return float(self._times[self._checked(number)]) * self._scale

    def frame(self, number: int) -> Pixels:
        """(H, W, 3) uint8 image of a frame.

        Args:
            number: of the frame, from 0.

        Raises:
            UsageError: if there is no such frame.
            CutOffError: if it cannot be decoded.
        """
        wanted = int(self._times[self._checked(number)])
        if self._next is not None and self._next <= number < self._next + _AHEAD:
            image = self._decoded(wanted)
        else:
            image = self._after_seek(wanted, wanted)
            if image is None and number:  # a key frame that stands in the file before what it follows
                image = self._after_seek(int(self._times[0]), wanted)
        if image is None:
            self._next = None
            message = f"frame {number} of {len(self)} cannot be decoded"
            raise CutOffError(message, where=self.where, hint=CUT)
        self._next = number + 1
        return image

    def _after_seek(self, place: int, wanted: int) -> Pixels | None:
        try:
            self._file.seek(place, stream=self._stream, backward=True, any_frame=False)
            self._frames = self._file.decode(self._stream)
        except BROKEN:
            return None
        return self._decoded(wanted)

    def _decoded(self, wanted: int) -> Pixels | None:
        """The image of a time among those that come next; None if it is not, or of another size."""
        try:
            for found in self._frames:
                if found.pts is not None and found.pts >= wanted:
                    if found.pts != wanted or (found.width, found.height) != self._stored:
                        return None
                    return rotate_upright(found)
        except (*BROKEN, MediaError):
            pass
        return None

    def _checked(self, number: int) -> int:
        if not 0 <= number < len(self):
            raise UsageError(f"{self.where} has frames 0 to {len(self) - 1}, not {number}")
        return number

    def _index(self) -> Ints:
        """Times of all frames, from the packets alone."""
        times, count, broken = read_frame_times(self._file, self._stream, self.where)
        if broken:
            raise CutOffError(f"broken: {broken}", where=self.where, hint=CUT)
        promised = count_promised_frames(self._file, self._stream, times)
        if count < promised:
            message = f"{count} frames of {promised} are there"
            raise CutOffError(message, where=self.where, hint=CUT)
        if not count:
            raise EmptyMediaError("the video stream has no frame", where=self.where)
        return times


def read_sound(path: Path, start_s: float, end_s: float) -> tuple[Floats32, int]:
    """(n, 2) float32 samples of the first sound track between two times, and how many make a second.

    Where the track ends earlier, so do the samples. One channel is heard on both sides.

    Args:
        path: a regular file with sound.
        start_s: on the clock of the file, at least 0.
        end_s: of the piece, later than `start_s`.

    Raises:
        UsageError: if the times are not in order.
        NoSoundError: if the file has no sound track.
        CodecError: if its codec is not known.
        MediaError: if the file is empty, damaged, or no video or sound.
        InputError: if it cannot be read.
    """
    if not 0 <= start_s < end_s < 1e7:
        raise UsageError(f"expected 0 <= start_s < end_s, not {start_s!r} and {end_s!r}")
    where = to_printable(str(path))
    with open_container(Path(path), WATCHED_FILMS) as file:
        stream = open_audio_stream(file, where)
        rate = int(stream.rate or 0)
        if not 0 < rate <= _MOST_RATE:
            raise MediaError(f"{rate} samples of sound a second; up to {_MOST_RATE} are read", where=where)
        first, end = round(start_s * rate), round(end_s * rate)
        try:
            pieces = list(_pieces(file, stream, first, end))
        except BROKEN as error:
            raise CutOffError(f"sound: {format_decoder_error(error)}", where=where, hint=CUT) from error
    return np.concatenate([np.zeros((0, 2), dtype=np.float32), *pieces]), rate


def _pieces(file: Any, stream: Any, first: int, end: int) -> Iterator[Floats32]:
    """Blocks of samples from `first` up to `end`, whole from the start."""
    rate = stream.rate
    # A coder needs the block before the first to know that one well.
    begin = max(0, first - 4 * 1024)
    file.seek(round(Fraction(begin, rate) / stream.time_base), stream=stream, backward=True)
    to_stereo = av.AudioResampler(format="fltp", layout="stereo", rate=rate)
    left = end - first
    for coded in file.decode(stream):
        at = round(coded.pts * coded.time_base * rate) if coded.pts is not None else 0
        for plain in to_stereo.resample(coded):
            block = plain.to_ndarray().T
            piece = block[max(0, first - at) : max(0, end - at)][:left]
            yield np.ascontiguousarray(piece, dtype=np.float32)
            at, left = at + len(block), left - len(piece)
        if at >= end or not left:
            return


# Blocks that begin this far from where the one before ended are placed anew; less is rounding of their times.
_ASTRAY_S = 0.02


def iterate_sound(
    path: Path, rate: int, most_s: float, start_s: float = 0.0
) -> Iterator[tuple[int, Floats32]]:
    """Blocks of the first sound track, in the order of the file, without holding more than one.

    Each is (n, 2) float32, with the place of its first sample, in samples from time 0 of the file's clock. Places may
    have gaps, and may go back where the times of a file do. Samples that are not finite are silence.

    Args:
        path: a regular file with sound.
        rate: samples a second that are given, whatever the track has.
        most_s: where it ends at the latest; twice as many samples are given at most, whatever their times are.
        start_s: where it begins, on the clock of the file: at the block with it, or somewhat earlier.

    Raises:
        NoSoundError: if the file has no sound track.
        CodecError: if its codec is not known.
        CutOffError: if it is damaged, after the blocks before that.
        MediaError: if the file is empty, damaged as a whole, or no video or sound.
        InputError: if it cannot be read.
    """
    where = to_printable(str(path))
    with open_container(Path(path), WATCHED_FILMS) as file:
        stream = open_audio_stream(file, where)
        own = int(stream.rate or 0)
        if not 0 < own <= _MOST_RATE:
            raise MediaError(f"{own} samples of sound a second; up to {_MOST_RATE} are read", where=where)
        end, left, at = round(most_s * rate), 2 * round(most_s * rate), 0
        to_stereo = av.AudioResampler(format="fltp", layout="stereo", rate=rate)
        try:
            if start_s > 0:
                file.seek(round(start_s / float(stream.time_base or 1 / own)), stream=stream, backward=True)
            for coded in chain(file.decode(stream), [None]):
                if coded is not None and coded.pts is not None:
                    begin = round(
                        coded.pts * (coded.time_base or stream.time_base or Fraction(1, own)) * rate
                    )
                    at = begin if abs(begin - at) > _ASTRAY_S * rate else at
                for plain in to_stereo.resample(coded):
                    # Resampling spreads one that is not finite over its neighbours: a click is lost, not the track
                    block = np.nan_to_num(plain.to_ndarray().T, nan=0.0, posinf=0.0, neginf=0.0)
                    yield at, np.ascontiguousarray(block, dtype=np.float32)
                    at, left = at + len(block), left - len(block)
                if at >= end or left <= 0:
                    return
        except BROKEN as error:
            raise CutOffError(f"sound: {format_decoder_error(error)}", where=where, hint=CUT) from error
