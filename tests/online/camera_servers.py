"""Cameras of the tests: servers on this machine that answer what they are told, and count who asks."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import av
from online_stubs import picture

Handler = Callable[[socket.socket, int], None]


class Camera:
    """A server that gives each connection to a function, with its number.

    Args:
        handle: takes a connection; the connection is closed after it.
        host: 127.0.0.1 or ::1.
    """

    def __init__(self, handle: Handler, host: str = "127.0.0.1") -> None:
        self._handle, self._open = handle, list[socket.socket]()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port = self._listener.getsockname()[1]
        self.host = f"[{host}]" if ":" in host else host
        self.connections = 0
        self.heads: list[bytes] = []
        threading.Thread(target=self._run, daemon=True).start()

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def url(self, path: str = "/cam/1", scheme: str = "http", info: str = "") -> str:
        """Its address."""
        return f"{scheme}://{info}{self.host}:{self.port}{path}"

    def stop(self) -> None:
        """Hang up, and refuse from now on."""
        for wire in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
            wire.close()

    def _run(self) -> None:
        while True:
            try:
                wire, _ = self._listener.accept()
            except OSError:
                return
            number, self.connections = self.connections, self.connections + 1
            self._open.append(wire)
            threading.Thread(target=self._serve, args=(wire, number), daemon=True).start()

    def _serve(self, wire: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._handle(wire, number)
            wire.shutdown(socket.SHUT_WR)
            wire.settimeout(1)
            while wire.recv(4096):
                pass
        wire.close()


def head_of(wire: socket.socket) -> bytes:
    """The head of a request."""
    found = b""
    while b"\r\n\r\n" not in found:
        more = wire.recv(4096)
        if not more:
            raise ConnectionError
        found += more
    return found


def answering(*answers: bytes | Handler) -> Handler:
    """What answers the first connection with the first of these, and so on; the last one again and again."""

    def handle(wire: socket.socket, number: int) -> None:
        head_of(wire)
        answer = answers[min(number, len(answers) - 1)]
        if isinstance(answer, bytes):
            wire.sendall(answer)
        else:
            answer(wire, number)

    return handle


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """An answer of HTTP without a length; names of headers with _ for -."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body


class _Sink:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(data)


@functools.cache
def stream(
    frames: int = 24,
    size: tuple[int, int] = (64, 48),
    form: str = "mpegts",
    codec: str = "mpeg2video",
    fps: int = 25,
    first_s: float = 0.0,
) -> bytes:
    """A stream of a moving block."""
    return b"".join(_muxed(frames, size, form, codec, fps, first_s))


def _muxed(
    frames: int, size: tuple[int, int], form: str, codec: str, fps: int, first_s: float, part: int = 32768
) -> list[bytes]:
    sink = _Sink()
    with av.open(sink, "w", format=form, buffer_size=part) as file:
        made = file.add_stream(codec, rate=fps)
        made.width, made.height = size
        made.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        made.codec_context.gop_size = 6
        made.codec_context.time_base = Fraction(1, fps)
        if codec == "mpeg2video":
            made.codec_context.max_b_frames = 0
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number, *size), format="rgb24")
            frame.pts, frame.time_base = number + round(first_s * fps), Fraction(1, fps)
            for packet in made.encode(frame):
                file.mux(packet)
        for packet in made.encode(None):
            file.mux(packet)
    return sink.parts


@functools.cache
def jpegs(count: int = 12, size: tuple[int, int] = (64, 48)) -> tuple[bytes, ...]:
    """Images as a camera with a page in the browser sends them."""
    import io

    from PIL import Image

    found = []
    for number in range(count):
        file = io.BytesIO()
        Image.fromarray(picture(number, *size)).save(file, "JPEG")
        found.append(file.getvalue())
    return tuple(found)


def multipart(pictures: tuple[bytes, ...]) -> bytes:
    """A body of multipart/x-mixed-replace."""
    head = b"--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
    return b"".join(head % len(data) + data + b"\r\n" for data in pictures)


MULTIPART = {"Content_Type": "multipart/x-mixed-replace; boundary=next"}


# RTSP ------------------------------------------------------------------------------------------------------

_SDP = (
    "v=0\r\no=- 0 0 IN IP4 {host}\r\ns=camera\r\nc=IN IP4 {host}\r\nt=0 0\r\na=control:*\r\n"
    "m=video 0 RTP/AVP 32\r\na=control:track1\r\n"
)


@functools.cache
def rtp(frames: int = 24) -> tuple[bytes, ...]:
    """Packets of RTP with MPEG-2 video."""
    return tuple(_muxed(frames, (64, 48), "rtp", "mpeg2video", 25, 0.0, part=1400))


class Rtsp:
    """Answers RTSP over TCP.

    Args:
        user, password: asked for, by Digest, where given.
        told: other answers, by method: status line and further headers.
        frames: that are sent after PLAY.
        sdp: what DESCRIBE is answered with.
    """

    def __init__(
        self,
        user: str | None = None,
        password: str = "",
        told: dict[str, str] | None = None,
        frames: int = 24,
        sdp: str = _SDP,
    ) -> None:
        self.user, self.password, self.told, self.frames, self.sdp = user, password, told or {}, frames, sdp
        self.requests: list[str] = []

    def __call__(self, wire: socket.socket, number: int) -> None:
        for head in self._heads(wire):
            method, target = head.split(" ")[:2]
            self.requests.append(head)
            sequence = re.search(r"CSeq: (\d+)", head)
            assert sequence is not None
            lines = self._answer(method, target, head)
            body = self.sdp.format(host="127.0.0.1") if method == "DESCRIBE" and "200" in lines[0] else ""
            lines += [f"CSeq: {sequence[1]}", *([f"Content-Length: {len(body)}"] if body else [])]
            wire.sendall("\r\n".join([*lines, "", body]).encode())
            if method == "PLAY" and "200" in lines[0]:
                for packet in rtp(self.frames):
                    channel = 1 if 200 <= packet[1] <= 207 else 0
                    wire.sendall(b"$" + bytes([channel]) + len(packet).to_bytes(2, "big") + packet)
                    time.sleep(0.001)
                return

    def _heads(self, wire: socket.socket) -> Iterator[str]:
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                if held.startswith(b"$"):
                    held = held[4 + int.from_bytes(held[2:4], "big") :]
                more = wire.recv(4096)
                if not more:
                    return
                held += more
            head, _, held = held.partition(b"\r\n\r\n")
            yield head.decode()

    def _answer(self, method: str, target: str, head: str) -> list[str]:
        if method in self.told:
            return ["RTSP/1.0 " + self.told[method]]
        if self.user is not None and method != "OPTIONS" and not self._knows(method, target, head):
            asked = 'WWW-Authenticate: Digest realm="camera", nonce="n0nce"'
            return ["RTSP/1.0 401 Unauthorized", asked, 'WWW-Authenticate: Basic realm="camera"']
        more = {
            "OPTIONS": ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"],
            "DESCRIBE": ["Content-Type: application/sdp"],
            "SETUP": ["Transport: RTP/AVP/TCP;unicast;interleaved=0-1", "Session: 12345"],
            "PLAY": ["Session: 12345"],
        }
        return ["RTSP/1.0 200 OK", *more.get(method, [])]

    def _knows(self, method: str, target: str, head: str) -> bool:
        found = re.search(r'response="([0-9a-f]{32})"', head)
        named = re.search(r'uri="([^"]*)"', head)
        if found is None or named is None or named[1] != target:
            return False

        def md5(text: str) -> str:
            return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

        wanted = md5(f"{md5(f'{self.user}:camera:{self.password}')}:n0nce:{md5(f'{method}:{target}')}")
        return found[1] == wanted
