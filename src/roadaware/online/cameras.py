"""A camera of the network or of this machine as a source: read in a thread of its own, connected anew when
it fails, frames numbered by their times.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from roadaware.addresses import Address, read_named_address
from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.decoders import BROKEN, STREAMS, format_decoder_error, open_stream, prepare_decoder
from roadaware.io.sources import to_printable
from roadaware.online.connections import FAULTS, Patience, StreamError, convert_error
from roadaware.online.frame_stats import Ending, Outcomes
from roadaware.online.frames import Clock, SourceFrame, Waiting
from roadaware.online.http_body import HttpBody
from roadaware.online.rtsp_relay import RtspRelay
from roadaware.online.timeline import Thinning, Timeline
from roadaware.online.video_files import rotate_upright

# One connection to a camera of the network or of this machine, as the frames that it gives.

# What a scheme may carry, and the protocols of FFmpeg that it needs; of http and rtsp the connection is ours.
_DIRECT = {
    "rtmp": ("flv,live_flv", "rtmp,tcp"),
    "tcp": (STREAMS, "tcp"),
    "srt": (STREAMS, "srt"),
    "udp": (STREAMS, "udp"),
}
_PLAYLIST = {"http_persistent": "0", "http_multiple": "0", "extension_picky": "0"}
_NO_PROTOCOL = "none"


class Shot(NamedTuple):
    """A frame as a connection gives it: the time it states, its image (None where it cannot be
    decoded), and whether its data was damaged.
    """

    stated_s: float | None
    picture: Pixels | None
    doubtful: bool = False


class Stream(Protocol):
    """One connection: frames until it breaks or ends; with `endless` an end counts as a break."""

    fps: float | None
    endless: bool

    def __iter__(self) -> Iterator[Shot]:
        """Frames one after the other."""

    def close(self) -> None:
        """Disconnect."""


class NetworkStream:
    """A connection to an address or a device; a stream from the network reads nothing of this machine.

    Args:
        source: the address, or the name of a device.
        form: of a device, as PyAV calls it; None for the network.
        fps: asked of a device.
        wait_s: a connection that takes longer has failed, and so has a stream without an image for as long.
        follow: of http, go where redirects and HLS playlists point; other machines than the one of the
            address must be of the open net.

    Raises:
        StreamError: if it cannot be reached, refuses, or shows no video.
    """

    def __init__(
        self,
        source: Address | str,
        form: str | None = None,
        fps: float | None = None,
        wait_s: float = 10.0,
        *,
        follow: bool = False,
    ) -> None:
        self._where = source.shown if isinstance(source, Address) else source
        self._patience, self._wait_s = Patience(wait_s), wait_s
        self._carrier: HttpBody | RtspRelay | None = None
        self._file: Any = None
        try:
            self._file = self._opened(source, form, fps, follow=follow)
            self._stream = self._video()
        except (*FAULTS, InputError, AttributeError) as error:
            fault = convert_error(self._cause(error), self._where)
            self.close()
            # FFmpeg's error holds the address, which may hold a password.
            raise fault from None
        rate = self._stream.average_rate or self._stream.guessed_rate
        self.fps = float(rate) if rate and 0 < rate < 1000 else None
        whole = getattr(self._carrier, "whole", False)
        self.endless = form is not None or not (self._file.duration or whole)

    def __iter__(self) -> Iterator[Shot]:
        try:
            yield from self._shots()
        except (*FAULTS, InputError, AttributeError) as error:
            raise convert_error(self._cause(error), self._where, "the stream broke off") from None
        failure = self._failure()
        if failure is not None:
            raise convert_error(failure, self._where, "the stream broke off")

    def close(self) -> None:
        """Disconnect."""
        for part in (self._file, self._carrier):
            if part is not None:
                with suppress(*FAULTS):
                    part.close()

    def _shots(self) -> Iterator[Shot]:
        # All streams, since one without images would be read for ever in search of an image.
        packets, seen_s = self._file.demux(), time.monotonic()
        while True:
            self._patience.renew()
            packet = next(packets, None)
            if packet is None:
                return
            for shot in self._decoded(packet) if packet.stream_index == self._stream.index else ():
                yield shot
                seen_s = seen_s if shot.picture is None else time.monotonic()
            if time.monotonic() - seen_s > self._wait_s:
                raise TimeoutError(f"no image came for {self._wait_s:g} s")

    def _decoded(self, packet: Any) -> Iterator[Shot]:
        try:
            frames = packet.decode()
        except FAULTS:
            yield Shot(None, None)
            return
        for frame in frames:
            try:
                yield Shot(_stated_s(frame), rotate_upright(frame), bool(frame.is_corrupt))
            except InputError:
                yield Shot(None, None)

    def _video(self) -> Any:
        if not self._file.streams.video:
            raise StreamError("expected a video stream, found none", hint="check the path of the address")
        stream = self._file.streams.video[0]
        if fault := prepare_decoder(stream):
            raise StreamError(f"its images cannot be decoded: {fault}")
        return stream

    def _failure(self) -> BaseException | None:
        """The error that ended the connection below FFmpeg."""
        return None if self._carrier is None else self._carrier.failure

    def _cause(self, error: BaseException) -> BaseException:
        return error if isinstance(error, InputError) else self._failure() or error

    # Opening -----------------------------------------------------------------------------------------------

    def _opened(self, source: Address | str, form: str | None, fps: float | None, *, follow: bool) -> Any:
        wait_s = self._wait_s
        if not isinstance(source, Address):
            more = {"framerate": f"{fps:g}"} if fps else {}
            kinds = {"formats": form or STREAMS, "protocols": "file"}
            return _open(source, form, more, wait_s, **kinds)
        if source.scheme in ("http", "https"):
            return self._opened_body(source, follow=follow)
        if source.scheme in ("rtsp", "rtsps"):
            relay = self._carrier = RtspRelay(source, wait_s)
            # The relay is one connection: FFmpeg's usual UDP would go past it.
            more = {"rtsp_transport": "tcp"}
            # The relay gives up first, and knows why.
            return _open(relay.url, "rtsp", more, wait_s + 1, formats="rtsp", protocols="tcp")
        formats, protocols = _DIRECT[source.scheme]
        return _open(source.text, None, {}, wait_s, formats=formats, protocols=protocols)

    def _opened_body(self, address: Address, *, follow: bool) -> Any:
        body = self._carrier = HttpBody(address, self._patience, follow=follow)
        if not (follow and body.names_others):
            return _open(body, body.form, {}, self._wait_s, formats=STREAMS, protocols=_NO_PROTOCOL)
        self._wait_s *= 3  # a playlist names the next part only once that is whole
        self._patience.wait_s = self._wait_s

        def ask(url: str, flags: int, options: dict[str, str]) -> HttpBody:
            return self._part(url, flags, options, address)

        return open_stream(
            body,
            form="hls",
            formats=f"hls,{STREAMS},aac",
            protocols="http,https",
            options=_PLAYLIST,
            wait_s=self._wait_s,
            ask=ask,
        )

    def _part(self, url: str, flags: int, options: dict[str, str], first: Address) -> HttpBody:
        """A part that a playlist names, or the playlist again."""
        # AVIO_FLAG_WRITE of FFmpeg.
        if flags & 2:
            raise StreamError("a playlist asked for something to be written")
        self._patience.renew()
        try:
            address = read_named_address(url)
        except UsageError:
            raise StreamError("a playlist names what is no address") from None
        begin, end = (int(options.get(name, "-1")) for name in ("offset", "end_offset"))
        span = (max(begin, 0), end if end > 0 else None) if begin > 0 or end > 0 else None
        return HttpBody(address, self._patience, first=first, follow=True, span=span)


def _open(
    source: Any, form: str | None, more: dict[str, str], wait_s: float, *, formats: str, protocols: str
) -> Any:
    return open_stream(source, form=form, formats=formats, protocols=protocols, options=more, wait_s=wait_s)


def _stated_s(frame: Any) -> float | None:
    """The time of a frame; None where it has none that is a number."""
    try:
        found = None if frame.time is None else float(frame.time)
    except (ArithmeticError, ValueError):
        return None
    return found if found is not None and math.isfinite(found) else None


_STUCK_S = 120.0
"""Without a frame, a failure or an attempt for so long, the reader hangs in FFmpeg, which passes over packets
of streams that it does not show us without an end. Connections and reads are bounded by far less."""
_FORMATS = {"linux": "v4l2", "darwin": "avfoundation", "win32": "dshow"}


@dataclass(frozen=True)
class Backoff:
    """How long to wait before each new attempt to connect, and when to give up.

    Args:
        first_s: before the first one.
        factor: each wait is so many times as long as the one before.
        longest_s: but no longer than this.
        attempts: in a row without a frame, after which the camera is gone.
    """

    first_s: float = 0.5
    factor: float = 2.0
    longest_s: float = 10.0
    attempts: int = 10

    def wait_s(self, attempt: int) -> float:
        """Seconds before an attempt, counted from 1.

        >>> [Backoff().wait_s(n) for n in (1, 2, 3, 9)]
        [0.5, 1.0, 2.0, 10.0]
        """
        return min(self.longest_s, self.first_s * self.factor ** (attempt - 1))


class Camera:
    """A camera or a stream from the network.

    Args:
        name: for people.
        connect: makes a connection.
        clock: says when a frame came.
        fps: take at most so many frames a second; None for all.
        backoff: between connections.
        threaded: read in a thread, from the first `next` on; without, call `run`.

    Raises:
        InputError: if the first connection fails.
    """

    live = True
    n_frames = None
    path = None
    start_s = 0.0

    def __init__(
        self,
        name: str,
        connect: Callable[[], Stream],
        clock: Clock,
        *,
        fps: float | None = None,
        backoff: Backoff | None = None,
        threaded: bool = True,
    ) -> None:
        self.name, self.outcomes = name, Outcomes()
        self._connect, self._clock, self._backoff = connect, clock, backoff or Backoff()
        self._thinning, self._timeline = Thinning(fps), Timeline(self.outcomes)
        self._waiting = Waiting(clock, self.outcomes)
        self._closed = threading.Event()
        self._stream: Stream | None = connect()
        self._stated_fps = self._stream.fps
        self._beat_s = clock.now_s()
        self._thread = threading.Thread(target=self.run, name="camera", daemon=True) if threaded else None

    @property
    def fps(self) -> float | None:
        """Frames per second as their times show, before that as the camera states."""
        period_s = self._timeline.period_s
        return 1 / period_s if period_s else self._stated_fps

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to process; None if none came in time, or the source has ended."""
        if self._thread and self._thread.ident is None:
            self._beat_s = self._clock.now_s()
            self._thread.start()
        if self._thread and self.ending is None and self._clock.now_s() - self._beat_s > _STUCK_S:
            self._closed.set()
            why = f"nothing that it sent for {_STUCK_S:g} s is of its images"
            self._waiting.end(Ending("gone", f"{self.name} is gone ({why})"))
        return self._waiting.take(patience_s, wait_s)

    @property
    def ending(self) -> Ending | None:
        """Why the source ended; None while it is open."""
        return self._waiting.ending

    def refresh(self) -> None:
        """Reconnect before the first frame is read, since buffered frames are stale or the connection is closed.

        A failure then is as any later one: there are more attempts.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(*BROKEN):
                stream.close()

    def close(self) -> None:
        """Let the thread end; it may take as long as a read waits."""
        self._closed.set()
        if self._thread and self._thread.ident is not None:
            # The thread may hang in a read of FFmpeg; it is a daemon and does not hold up the end.
            self._thread.join(1.0)
        elif self._stream is not None:
            self._stream.close()

    def run(self) -> None:
        """Fill the queue until the camera is gone or closed."""
        try:
            self._waiting.end(self._run())
        except Exception as error:  # what is raised in a thread would be lost
            raise_interrupt(error)
            self._waiting.end(Ending("failed", f"reading {self.name} failed: {to_printable(str(error))}"))

    def _run(self) -> Ending:
        attempt, why = 0, "the stream ended"
        while not self._closed.is_set():
            stream, self._stream = self._stream, None
            self._beat_s = self._clock.now_s()
            try:
                stream = stream or self._connect()
                for shot in stream:
                    attempt = self._arrived(attempt, shot)
                    if self._closed.is_set():
                        return Ending("stopped")
                if not stream.endless:
                    return Ending("end")
                why = "the stream ended"
            except (*BROKEN, InputError) as error:
                why = error.message if isinstance(error, InputError) else format_decoder_error(error)
            finally:
                if stream is not None:
                    with suppress(*BROKEN):
                        stream.close()
            self._timeline.broke()
            attempt += 1
            if attempt > self._backoff.attempts:
                tried = self._backoff.attempts
                return Ending("gone", f"{self.name} is gone ({why}); {tried} attempts to reach it failed")
            self._pause(self._backoff.wait_s(attempt))
        return Ending("stopped")

    def _arrived(self, attempt: int, shot: Shot) -> int:
        """Put a frame into the queue; the number of attempts without one is 0 again."""
        self._beat_s = self._clock.now_s()
        if shot.picture is None:
            self.outcomes.count("undecodable")
            return attempt
        now_s = self._clock.now_s()
        if attempt:
            what = "attempt" if attempt == 1 else "attempts"
            self.outcomes.tell("reconnected", 1, f"connected anew after {attempt} {what}")
        placed = self._timeline.place(shot.stated_s, now_s)
        if placed is None:
            return 0
        if shot.doubtful:
            self.outcomes.count("doubtful")
        number, t_s = placed
        if self._thinning.takes(t_s):
            self._waiting.put(SourceFrame(number, t_s, shot.picture, now_s))
        else:
            self.outcomes.count("thinned")
        return 0

    def _pause(self, seconds: float) -> None:
        end_s = self._clock.now_s() + seconds
        while not self._closed.is_set() and (left_s := end_s - self._clock.now_s()) > 0:
            # In short sleeps, so that closing need not wait for a long one.
            self._clock.sleep(min(left_s, 0.2))
        self._beat_s = self._clock.now_s()


def get_camera_device(index: int) -> tuple[str, str]:
    """Device path and format with which PyAV opens a camera by its number on this system.

    >>> get_camera_device(0) if sys.platform == "linux" else ("/dev/video0", "v4l2")
    ('/dev/video0', 'v4l2')
    """
    form = _FORMATS.get(sys.platform, "v4l2")
    return {"v4l2": f"/dev/video{index}", "dshow": f"video={index}"}.get(form, str(index)), form
