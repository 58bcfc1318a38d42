"""A camera that stalls, hangs up, answers 503, sends garbage and changes its rate; a source that waits.

`python unsteady_camera.py`: serves on a port of this machine, which it prints, until its input ends.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

WAIT_S = 0.5
"""Patience of the source; stalls last longer."""


def body(frames: int = 500) -> bytes:
    """A stream of 64x48 whose rate changes every fifty frames between 8 and 60 a second."""
    import av
    from camera_servers import _Sink
    from online_stubs import picture

    sink, at = _Sink(), 0
    with av.open(sink, "w", format="mpegts") as file:
        made = file.add_stream("mpeg4", rate=25)
        made.width, made.height, made.pix_fmt = 64, 48, "yuv420p"
        made.codec_context.gop_size, made.codec_context.max_b_frames = 10, 0
        made.codec_context.time_base = Fraction(1, 1000)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, 1000)
            at += 1000 // (8, 25, 60, 12, 30)[number // 50 % 5]
            for packet in made.encode(frame):
                file.mux(packet)
        for packet in made.encode(None):
            file.mux(packet)
    return b"".join(sink.parts)


def serve() -> None:
    """Answer in turn: a whole stream, one that stalls, 503, one cut in a frame, one with garbage."""
    from camera_servers import Camera, answer, head_of

    data = body()
    cut, hole = len(data) * 2 // 3 + 77, len(data) // 3

    def handle(wire: socket.socket, number: int) -> None:
        head_of(wire)
        kind = number % 5
        if kind == 2:
            wire.sendall(answer("503 Busy"))
            return
        wire.sendall(answer())
        if kind == 1:
            wire.sendall(data[:cut])
            time.sleep(3 * WAIT_S)
        elif kind == 3:
            wire.sendall(data[:cut])
        elif kind == 4:
            wire.sendall(data[:hole] + bytes(range(256)) * 8 + data[hole + 2048 :])
        else:
            wire.sendall(data)

    with Camera(handle) as camera:
        print(camera.port, flush=True)
        sys.stdin.read()


@contextmanager
def unsteady_camera() -> Iterator[str]:
    """The address of such a camera, in a process of its own."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield f"http://me:pw@127.0.0.1:{int(child.stdout.readline())}/1?token=Gehe1mWort"
        finally:
            child.kill()


class Unhurried:
    """A camera of which no frame is dropped: its thread waits until each was taken.

    Args:
        url: of the camera.
    """

    live, path, start_s, n_frames, name = True, None, 0.0, None, "unsteady"

    def __init__(self, url: str) -> None:
        from roadaware.addresses import read_address
        from roadaware.online.cameras import Backoff, Camera
        from roadaware.online.frames import SystemClock

        self._taken = threading.Semaphore(1)
        address = read_address(url)
        haste = Backoff(first_s=0.01, longest_s=0.05)
        self._camera = Camera(
            "unsteady", lambda: _Waiting(address, self._taken), SystemClock(), backoff=haste
        )
        self.outcomes, self.fps = self._camera.outcomes, 25.0

    def next(self, patience_s: float, wait_s: float):  # type: ignore[no-untyped-def]
        frame = self._camera.next(1e9, wait_s)
        if frame is not None:
            self._taken.release()
        return frame

    @property
    def ending(self):  # type: ignore[no-untyped-def]
        return self._camera.ending

    def close(self) -> None:
        self._taken.release()
        self._camera.close()


class _Waiting:
    def __init__(self, address, taken: threading.Semaphore) -> None:  # type: ignore[no-untyped-def]
        from roadaware.online.cameras import NetworkStream

        self._stream, self._taken = NetworkStream(address, wait_s=WAIT_S), taken
        self.fps, self.endless = self._stream.fps, self._stream.endless

    def __iter__(self):  # type: ignore[no-untyped-def]
        for shot in self._stream:
            if shot.picture is not None:
                self._taken.acquire(timeout=30)
            yield shot

    def close(self) -> None:
        self._stream.close()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    serve()
