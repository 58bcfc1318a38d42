"""A camera of the network or of this machine as a source: read in a thread, connected anew when it fails."""

from __future__ import annotations

import http.client
import io
import math
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol
from urllib.parse import urljoin

from roadaware import __version__
from roadaware.addresses import Address, read_named_address
from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.decoders import BROKEN, STREAMS, format_decoder_error, open_stream, prepare_decoder
from roadaware.io.sources import to_printable
from roadaware.io.video import rotate_upright
from roadaware.online.connections import (
    FAULTS,
    Challenge,
    Patience,
    RtspRelay,
    StreamError,
    connect,
    convert_error,
    format_status,
    make_status_error,
    read_challenge,
)
from roadaware.online.frames import Clock, Ending, Outcomes, SourceFrame, Waiting
from roadaware.online.video_files import Thinning, Timeline

# Ends a circle of redirects.
_HOPS = 5
# Reading on over so little spares a new request.
_SKIP_BYTES, _LOOK_BYTES = 1 << 18, 32
_REDIRECTS = (301, 302, 303, 307, 308)
# What begins so is a list of other addresses, or a page for people.
_HEADS = {
    b"#EXTM3U": "a playlist (HLS)",
    b"<?xml": "an XML document, which may be a playlist (DASH, ASX)",
    b"<MPD": "a playlist (DASH)",
    b"<asx": "a playlist (ASX)",
    b"<smil": "a playlist (SMIL)",
    b"[playlist]": "a playlist (PLS)",
    b"[reference]": "a playlist",
    b"ffconcat": "a playlist (concat)",
    b"v=0": "a description of another stream (SDP)",
    b"rtsp://": "another address",
    b"http": "another address",
    b"<!doctype html": "a page for people",
    b"<html": "a page for people",
}


class HttpBody:
    """The body of an answer.

    Args:
        address: that is asked.
        patience: bounds every read.
        first: the address that the user gave, where `address` was named by what that answered.
        follow: go where a redirect points; other machines than the first one must be of the open net.
        span: first byte that is wanted, and the one behind the last; None for all.

    Raises:
        StreamError: if the answer is none that can be watched; its message is about the answer alone.
        OSError, ValueError: as the connection fails.
    """

    def __init__(
        self,
        address: Address,
        patience: Patience,
        *,
        first: Address | None = None,
        follow: bool = False,
        span: tuple[int, int | None] | None = None,
    ) -> None:
        self._patience, self._follow, self._first = patience, follow, first or address
        self._at = (span or (0, None))[0]
        self._challenge: Challenge | None = None
        self._end = (span or (0, None))[1]
        self._wire: socket.socket | None = None
        self._ahead = b""
        self.failure: BaseException | None = None
        self._address = self._checked(address)
        self._ask_and_follow(ranged=span is not None)
        self.name = self._address.text if follow else "stream"

    @property
    def whole(self) -> bool:
        """Whether the answer said how long it is: a video, not a camera."""
        return self._size is not None

    @property
    def form(self) -> str | None:
        """The format of FFmpeg that the answer states; None where it is to be found out."""
        kind = (self._response.headers.get_content_type() or "").lower()
        return "mpjpeg" if kind == "multipart/x-mixed-replace" else None

    @property
    def names_others(self) -> bool:
        """Whether this is a playlist that may be followed (HLS)."""
        return self._ahead.startswith(b"#EXTM3U")

    def seekable(self) -> bool:
        """Whether the server supports range requests."""
        return self._ranges and self._size is not None

    def read(self, count: int) -> bytes:
        """Some bytes, at most so many; none at the end.

        Raises:
            OSError, ValueError: as the connection fails; kept in `failure`, too.
        """
        try:
            return self._read(count)
        except (OSError, ValueError, StreamError) as error:
            self.failure = error
            raise

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte; it is requested by the next read."""
        # FFmpeg sets flags above the lower 16 bits (AVSEEK_FORCE).
        base = {0: 0, 1: self._at, 2: self._size or 0}[whence & 0xFFFF]
        if base + offset < 0:
            raise ValueError("before the first byte")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """The next byte."""
        return self._at

    def close(self) -> None:
        """Disconnect."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _read(self, count: int) -> bytes:
        if self._end is not None:
            count = min(count, self._end - self._at)
        if count <= 0 or (self._size is not None and self._at >= self._size):
            return b""
        self._go_to(self._at)
        if self._ahead:
            found, self._ahead = self._ahead[:count], self._ahead[count:]
        else:
            found = self._more(count)
        self._at += len(found)
        self._place += len(found)
        return found

    def _go_to(self, place: int) -> None:
        """Let the connection stand at a byte: read on up to it where it is near, else ask anew."""
        if place == self._place:
            return
        if not self._place < place <= self._place + _SKIP_BYTES:
            self._ask_and_follow(ranged=True)
            return
        while self._place < place:
            missing = place - self._place
            found, self._ahead = self._ahead[:missing], self._ahead[missing:]
            found = found or self._more(missing)
            if not found:
                raise ConnectionError("the answer ended early")
            self._place += len(found)

    def _more(self, count: int) -> bytes:
        left = None if self._until is None else self._until - self._place - len(self._ahead)
        if left == 0:
            return b""
        if self._wire is not None:
            self._wire.settimeout(self._patience.left_s())
        try:
            # read1 gives what is there; read would wait until all of it has come.
            found: bytes = self._response.read1(count if left is None else min(count, left))
        except http.client.HTTPException:
            raise ConnectionError("the connection ended in the middle of the answer") from None
        if not found and left is not None:
            raise ConnectionError(f"the answer ended {left:,} bytes early")
        return found

    # Asking ------------------------------------------------------------------------------------------------

    def _checked(self, address: Address) -> Address:
        """An address with the user and password of the first one, if it is on the same host and port."""
        if address.scheme not in ("http", "https"):
            raise StreamError("it points to an address that is neither http nor https")
        same = address.origin == self._first.origin
        # Encryption that the user asked for is not given up by a redirect.
        if self._first.scheme == "https" and address.scheme == "http":
            raise StreamError("it points from https to http, where everybody could read along")
        user, password = (self._first.user, self._first.password) if same else (None, None)
        return replace(address, user=user, password=password)

    def _ask_and_follow(self, *, ranged: bool) -> None:
        for _ in range(_HOPS + 1):
            self._ask(ranged=ranged)
            if self._response.status not in _REDIRECTS:
                break
            if not self._follow:
                raise make_status_error(self._response.status)
            self._address = self._checked(self._pointed_to())
        else:
            raise StreamError(f"it pointed to another address more than {_HOPS} times")
        self._require_stream(ranged=ranged)

    def _pointed_to(self) -> Address:
        plain = f"{self._address.origin}{self._address.target}"
        try:
            return read_named_address(urljoin(plain, self._response.headers.get("Location", "")))
        except (UsageError, ValueError):
            words = format_status(self._response.status)
            raise StreamError(f"the camera answered {words}, and where to cannot be read") from None

    def _ask(self, *, ranged: bool) -> None:
        """Make the request, a second time with user and password where they are asked for."""
        self._request(ranged=ranged)
        if self._response.status != 401 or self._address.user is None:
            return
        self._challenge = read_challenge(self._response.headers.get_all("WWW-Authenticate") or [])
        if self._challenge is not None:
            self._request(ranged=ranged)
            if self._response.status == 401:
                raise make_status_error(401, known=True)

    def _request(self, *, ranged: bool) -> None:
        self.close()
        address, self._ahead = self._address, b""
        # A server on the net may not make this machine ask its neighbours.
        public = address.origin != self._first.origin
        self._wire = connect(address, self._patience, public=public)
        link = http.client.HTTPConnection(address.host, address.port)
        link.sock = _TimedWire(self._wire, self._patience)
        link.putrequest("GET", address.target, skip_host=True, skip_accept_encoding=True)
        for name, value in self._headers(address, ranged=ranged):
            link.putheader(name, value.encode("latin-1"))
        link.endheaders()
        try:
            self._response = link.getresponse()
        except http.client.HTTPException as error:
            # Its words may be those of the camera.
            raise ConnectionError(f"its answer is no HTTP ({type(error).__name__})") from None

    def _headers(self, address: Address, *, ranged: bool) -> Iterator[tuple[str, str]]:
        yield "Host", address.origin.partition("://")[2]
        yield "User-Agent", f"roadaware/{__version__}"
        yield "Accept", "*/*"
        yield "Accept-Encoding", "identity"
        yield "Connection", "close"
        if ranged:
            yield "Range", f"bytes={self._at}-{'' if self._end is None else self._end - 1}"
        challenge = self._challenge
        if challenge is not None and address.user is not None:
            answer = challenge.answer(address.user, address.password or "", "GET", address.target)
            yield "Authorization", answer.encode("utf-8", "surrogateescape").decode("latin-1")

    def _require_stream(self, *, ranged: bool) -> None:
        response, headers = self._response, self._response.headers
        # A server without ranges sends everything: from the first byte on that is what was asked for.
        if ranged and response.status == 200 and self._at == 0:
            ranged = False
        if response.status != (206 if ranged else 200):
            raise make_status_error(response.status)
        if (headers.get("Content-Encoding") or "identity").lower() not in ("identity", ""):
            raise StreamError("the camera answered with compressed data, which was not asked for")
        length = None if response.chunked else response.length
        self._place = self._at if ranged else 0
        self._until = None if length is None else self._place + length
        if ranged:
            # How long the whole is of which a part came
            text = headers.get("Content-Range") or ""
            place, _, size = text.strip().removeprefix("bytes").strip().partition("/")
            if place.partition("-")[0].strip() != str(self._at):
                raise StreamError("the camera answered with another part than was asked for")
            # Up to 18 digits fit the 64 bits in which FFmpeg counts bytes.
            self._size = int(size) if size.isdecimal() and len(size) < 19 else None
        else:
            self._size = self._until
        self._ranges = ranged or (headers.get("Accept-Ranges") or "").strip().lower() == "bytes"
        while not ranged and len(self._ahead) < _LOOK_BYTES and (found := self._more(_LOOK_BYTES)):
            self._ahead += found
        self._require_no_list()

    def _require_no_list(self) -> None:
        head = self._ahead.lstrip(b"\xef\xbb\xbf \t\r\n")[:32].lower()
        found = next((words for mark, words in _HEADS.items() if head.startswith(mark.lower())), None)
        if found is None or (self._follow and self.names_others):
            return
        hint = "name the address of the video itself"
        if head.startswith(b"#extm3u"):
            hint += "; --follow lets the addresses in an HLS playlist be asked"
        raise StreamError(f"expected a video stream, the camera answered with {found}", hint=hint)


class _TimedWire:
    """As much of a socket as http.client needs; every read and write is bounded by the patience left."""

    def __init__(self, wire: socket.socket, patience: Patience) -> None:
        self._wire, self._patience = wire, patience

    def sendall(self, data: bytes) -> None:
        self._wire.settimeout(self._patience.left_s())
        self._wire.sendall(data)

    def makefile(self, mode: str) -> Any:
        return io.BufferedReader(_TimedRaw(self._wire, self._patience), 1 << 16)

    def close(self) -> None:
        """The body is still to be read; `HttpBody` closes the connection."""


class _TimedRaw(io.RawIOBase):
    def __init__(self, wire: socket.socket, patience: Patience) -> None:
        self._wire, self._patience = wire, patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._wire.settimeout(self._patience.left_s())
        return self._wire.recv_into(buffer)


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
