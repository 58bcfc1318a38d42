"""Serves mutated answers of cameras to the stream reader, in processes that are watched.

`python stream_mutants.py SEED FIRST END`: a line of JSON for each number: how reading it ended.
"""

from __future__ import annotations

import functools
import json
import random
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "online"))

from camera_servers import MULTIPART, Camera, answer, head_of, jpegs, multipart, rtp, stream

WAIT_S = 0.4
"""Patience of the reader."""
MOST_S, MOST_MB = 120.0, 700.0
"""Limits of one input: of the clock, which a busy machine delays, and of memory."""
SECRET = "Gehe1mWort"  # noqa: S105
_PART = 500
_NUMBERS = (
    b"-1",
    b"0",
    b"1",
    b"65536",
    b"2147483648",
    b"99999999999999999999",
    b"1e9",
    b"0x10",
    b"\xb2",
    b"",
)
_SDP = (
    b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    b"m=video 0 RTP/AVP 32\r\na=control:track1\r\n"
)


def _words(bait: str) -> tuple[bytes, ...]:
    """What is put into answers, so that a reader that can be led astray is."""
    host = bait.partition("://")[2].partition("/")[0]
    words = (
        *(
            f"Location: {bait}\r\n",
            "HTTP/1.1 302 Go\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 401 No\r\n",
        ),
        *(
            "Transfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\n",
            "Content-Encoding: gzip\r\n",
            "\r\n",
            "\n",
        ),
        *('WWW-Authenticate: Digest realm="a", nonce="b", qop="auth"\r\n', "Content-Range: bytes 5-9/20\r\n"),
        *(
            "Accept-Ranges: bytes\r\n",
            "Content-Type: multipart/x-mixed-replace; boundary=x\r\n",
            f"{'a' * 70000}",
        ),
        *(f"#EXTM3U\n#EXTINF:1,\n{bait}\n", f"ffconcat version 1.0\nfile {bait}\n", "RTSP/1.0 302 Go\r\n"),
        *(f"Location: rtsp://{host}/x\r\n", f"Content-Base: rtsp://{host}/x/\r\n", "RTSP/1.0 401 No\r\n"),
        *(
            "Transport: RTP/AVP;unicast;client_port=5000-5001;server_port=9-10\r\n",
            "Session: 1;timeout=0\r\n",
        ),
        *(f"a=control:rtsp://{host}/x\r\n", "a=rtpmap:96 H264/90000\r\n", "m=audio 0 RTP/AVP 0\r\n"),
        *(
            "a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0IAHukDwmNA,aM44gA==\r\n",
            "a=range:npt=0-9\r\n",
        ),
        *(
            "moov",
            "ftypisom",
            "\x1aE",
            "FLV\x01\x05",
            "\x47",
            "\x00\x00\x01\xba",
            "$\x00\xff\xff",
            "--next\r\n",
        ),
    )
    return tuple(word.encode("latin-1") for word in words)


@functools.cache
def seeds() -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """Whole conversations: the scheme, and what is answered to the first request, the second, and so on."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in _parts(stream(12), 700)) + b"0\r\n\r\n"
    film = stream(12, form="matroska", codec="mpeg4")
    lengths = {"Content_Length": str(len(film)), "Accept_Ranges": "bytes"}
    asked = answer("401 No", WWW_Authenticate='Digest realm="x", nonce="y", qop="auth", algorithm=MD5')
    cameras = [
        (answer(body=stream(12)),),
        (answer(body=chunks, Transfer_Encoding="chunked"),),
        (answer(body=multipart(jpegs(6)), **MULTIPART),),
        (answer(body=film, **lengths),),
        (answer(body=stream(12, form="flv", codec="flv1")),),
        (answer(body=stream(12, form="mpegts", codec="libx264")),),
        (asked, answer(body=stream(12))),
        (answer("302 Go", Location="/x"), answer(body=stream(12))),
        (
            answer(body=b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST\n"),
            answer(body=stream(12)),
        ),
        (answer("503 Busy"),),
    ]
    packets = b"".join(
        b"$" + bytes([200 <= packet[1] <= 207]) + len(packet).to_bytes(2, "big") + packet
        for packet in rtp(12)
    )
    head = "RTSP/1.0 200 OK\r\nCSeq: {}\r\n{}\r\n"
    steps = [
        head.format(1, "Public: OPTIONS, DESCRIBE, SETUP, PLAY\r\n").encode(),
        head.format(2, f"Content-Type: application/sdp\r\nContent-Length: {len(_SDP)}\r\n").encode() + _SDP,
        head.format(3, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n").encode(),
        head.format(4, "Session: 1\r\n").encode() + packets,
    ]
    return (*(("http", each) for each in cameras), *((("rtsp", tuple(steps)),) * 3))


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[place : place + size] for place in range(0, len(data), size)]


def mutant(number: int, seed: int, bait: str) -> tuple[str, tuple[bytes, ...], bool]:
    """The scheme, the answers, and whether to follow; the same for the same numbers."""
    chance = random.Random(f"{seed} {number}")  # noqa: S311 - mutants, not secrets
    scheme, steps = chance.choice(seeds())
    answers = list(steps)
    for _ in range(chance.randint(1, 4)):
        which = chance.randrange(len(answers))
        answers[which] = _changed(answers[which], chance, _words(bait))
    return scheme, tuple(answers), chance.random() < 0.5


def _changed(data: bytes, chance: random.Random, words: tuple[bytes, ...]) -> bytes:
    if not data:
        return chance.choice(words)
    head = max(data.find(b"\r\n\r\n"), 1)
    place = chance.randrange(head if chance.random() < 0.6 else len(data))
    kind, end = chance.randrange(8), min(len(data), place + chance.randint(1, 400))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
    if kind == 2:
        return data[:place] + data[place:end] * chance.randint(2, 50) + data[end:]
    if kind == 3:
        return data[:place] + data[end:]
    if kind == 4:
        return data[:place] + chance.randbytes(end - place) + data[end:]
    if kind == 5:
        digits = next((n for n in range(place, len(data)) if data[n : n + 1].isdigit()), place)
        return data[:digits] + chance.choice(_NUMBERS) + data[digits + 1 :]
    line = data.rfind(b"\r\n", 0, place) + 2 if kind == 6 and b"\r\n" in data[:place] else place
    return data[:line] + chance.choice(words) + data[line:]


# Reading ---------------------------------------------------------------------------------------------------


def run(count: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How mutants ended, and what each one was that must not have ended so."""
    ended: Counter[str] = Counter()
    faults: list[str] = []
    done = 0
    while done < count:
        end = min(count, done - done % _PART + _PART)
        for told in _answers(seed, done, end):
            ended[told["ended"]] += 1
            if told["ended"].startswith("FAULT"):
                faults.append(f"streams {seed} {done}: {told['ended']} {told['text']}")
            done += 1
    return ended, faults


def _answers(seed: int, first: int, end: int) -> list[dict[str, Any]]:
    """Answers of one process; the last one is a fault where it ended before its time."""
    command = [sys.executable, __file__, str(seed), str(first), str(end)]
    found: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        while len(found) < end - first:
            if not select.select([child.stdout], [], [], MOST_S)[0]:
                child.kill()
                return [*found, {"ended": "FAULT hang", "text": ""}]
            line = child.stdout.readline()
            if not line:
                return [*found, {"ended": f"FAULT crash {child.wait()}", "text": ""}]
            found.append(json.loads(line))
    return found


def _serve(steps: tuple[bytes, ...], scheme: str) -> Any:
    def handle(wire: socket.socket, number: int) -> None:
        wire.settimeout(3)
        if scheme == "http":
            head_of(wire)
            wire.sendall(steps[min(number, len(steps) - 1)])
            return
        for step in steps:
            head_of(wire)
            wire.sendall(step)

    return handle


def main() -> None:
    """Read the mutants of some numbers."""
    from roadaware.io.decoders import BROKEN

    assert BROKEN
    seed, first, end = (int(word) for word in sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    seeds()
    allowed: set[int] = set()
    seen: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and arguments[1][1] not in allowed:
            seen.append(f"connected to {arguments[1]}")
        if event.startswith(("subprocess.", "os.system", "os.exec")):
            seen.append(event)

    with Camera(lambda wire, number: None) as bait:
        _read(("http", (answer(body=stream(12)),), False))
        _read(("rtsp", next(steps for scheme, steps in seeds() if scheme == "rtsp"), False))
        sys.addaudithook(hook)
        for number in range(first, end):
            ended, text = _told(mutant(number, seed, bait.url("/x.ts")), allowed, seen)
            if bait.connections:
                ended, text, bait.connections = "FAULT led astray", "", 0
            print(json.dumps({"ended": ended, "text": text[:2000]}), flush=True)


def _told(given: tuple[str, tuple[bytes, ...], bool], allowed: set[int], seen: list[str]) -> tuple[str, str]:
    import traceback

    from roadaware.errors import InputError

    seen.clear()
    began_s, grown = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        ended, text = f"read, {_read(given, allowed)}", ""
    except InputError as error:
        ended, text = "refused or broken off, typed", str(error)
        if SECRET in text or len(text) > 1500:
            ended = "FAULT told"
    except BaseException:
        ended, text = "FAULT foreign", traceback.format_exc()
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) / 1024
    if seen:
        return "FAULT forbidden", seen[0]
    if grown_mb > MOST_MB or time.monotonic() - began_s > MOST_S / 2:
        return "FAULT costs", f"{grown_mb:.0f} MB, {time.monotonic() - began_s:.0f} s"
    return ended, text


def _read(given: tuple[str, tuple[bytes, ...], bool], allowed: set[int] | None = None) -> str:
    from roadaware.addresses import read_address
    from roadaware.online.cameras import NetworkStream

    scheme, steps, follow = given
    before = threading.active_count()
    with Camera(_serve(steps, scheme)) as camera:
        if allowed is not None:
            allowed.add(camera.port)
        address = read_address(camera.url("/a.m3u8", scheme=scheme, info=f"me:{SECRET}@"))
        source = NetworkStream(address, wait_s=WAIT_S, follow=follow)
        try:
            pictures = sum(shot.picture is not None for _, shot in zip(range(2000), source, strict=False))
        finally:
            source.close()
    assert threading.active_count() < before + 60, "threads are left"
    return "all frames" if pictures >= 12 else "some frames" if pictures else "no frame"


if __name__ == "__main__":
    main()
