"""What happens to a camera of the network, fault by fault; docs/reliability.md has the table in words."""

from __future__ import annotations

import errno
import math
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from camera_servers import (
    MULTIPART,
    Camera,
    Handler,
    Rtsp,
    answer,
    answering,
    jpegs,
    multipart,
    stream,
)
from online_stubs import Connection, FakeClock, Kept, Scripted, one_car, picture

from roadaware.addresses import Address, read_address
from roadaware.errors import InputError
from roadaware.models.detector import FrameDetections
from roadaware.online import cameras, connections
from roadaware.online.cameras import Backoff, NetworkStream, Shot
from roadaware.online.config import WatchConfig
from roadaware.online.connections import Patience, convert_error
from roadaware.online.frames import Ending, Outcomes, SystemClock
from roadaware.online.video_files import Timeline
from roadaware.online.watch import watch

HASTE = Backoff(first_s=0.01, longest_s=0.01, attempts=3)
GOOD = answer(body=stream())


def _connect(url: str, wait_s: float = 10.0, *, follow: bool = False) -> Callable[[], NetworkStream]:
    address = read_address(url)
    return lambda: NetworkStream(address, wait_s=wait_s, follow=follow)


def _ended(url: str, wait_s: float = 10.0, backoff: Backoff = HASTE) -> tuple[int, Ending, dict[str, int]]:
    """Frames, ending and outcomes of a camera read to its end."""
    camera = cameras.Camera("yard", _connect(url, wait_s), SystemClock(), backoff=backoff, threaded=False)
    camera.run()
    ending = camera.ending
    while camera.next(0.0, 0.0) is not None:
        ending = camera.ending
    ending = camera.ending
    assert ending is not None
    counts = camera.outcomes.counts()
    return counts.get("dropped", 0), ending, counts


def _refusal(url: str, wait_s: float = 1.0) -> str:
    """What a camera says that cannot be watched from the beginning."""
    begin_s = time.monotonic()
    with pytest.raises(InputError) as refused:
        _connect(url, wait_s)()
    assert refused.value.exit_code == 3
    assert time.monotonic() - begin_s < 30
    assert str(refused.value).startswith(url.partition("://")[0])
    return str(refused.value)


# The first connection --------------------------------------------------------------------------------------

STATUSES = {
    "101 Switching Protocols": "101 Switching",
    "204 No Content": "204 No Content",
    "206 Partial Content": "206 Partial",
    "301 Moved": "301 Moved Permanently: it points to another",
    "304 Not Modified": "304 Not Modified",
    "400 Bad Request": "400 Bad Request",
    "401 Unauthorized": "401 Unauthorized\n  give user and password",
    "403 Forbidden": "403 Forbidden",
    "404 Not Found": "404 Not Found\n  check the path",
    "407 Proxy": "407 Proxy",
    "418 I am a camera": "418",
    "429 Slow": "429 Too Many Requests",
    "500 Oh": "500 Internal Server Error",
    "503 Busy": "503 Service Unavailable\n  the camera is busy",
    "599 Own": "599",
    "999 None": "999",
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_told_in_our_words(status: str) -> None:
    with Camera(answering(answer(status))) as camera:
        said = _refusal(camera.url())
    assert "the camera answered" in said
    assert STATUSES[status] in said


def _drip(data: bytes, pause_s: float = 0.05) -> Handler:
    def send(wire: socket.socket, number: int) -> None:
        head_sent = time.monotonic()
        while time.monotonic() - head_sent < 20:
            wire.sendall(data)
            time.sleep(pause_s)

    return send


def _after(head: bytes, then: Handler) -> Handler:
    def send(wire: socket.socket, number: int) -> None:
        wire.sendall(head)
        then(wire, number)

    return send


def _silence(wire: socket.socket, number: int) -> None:
    wire.settimeout(20)
    while wire.recv(4096):
        pass


FIRST: dict[str, tuple[Handler, str]] = {
    "accepts and never answers": (_silence, "came for 1 s|in time"),
    "hangs up at once": (lambda wire, number: None, "cannot be reached"),
    "garbage for a status": (answering(b"\x00\xff" * 40 + b"\r\n\r\n"), "BadStatusLine"),
    "a status that is no number": (answering(b"HTTP/1.1 abc OK\r\n\r\n"), "BadStatusLine"),
    "endless status": (answering(_drip(b"HTTP/1.1 2" * 1000, 0)), "LineTooLong|BadStatus"),
    "endless headers": (answering(_after(b"HTTP/1.1 200 OK\r\n", _drip(b"A: b\r\n", 0))), "HTTPException"),
    "a header without end": (
        answering(_after(b"HTTP/1.1 200 OK\r\nA: ", _drip(b"b" * 999, 0))),
        "LineTooLong",
    ),
    "endless 100 Continue": (
        answering(_drip(b"HTTP/1.1 100 Continue\r\n\r\n", 0.001)),
        "came for 1 s|in time",
    ),
    "stalled headers": (answering(_after(b"HTTP/1.1 200 OK\r\nServ", _silence)), "came for 1 s|in time"),
    "headers drop by drop": (
        answering(_after(b"HTTP/1.1 200 OK\r\nA: ", _drip(b"b"))),
        "came for 1 s|in time",
    ),
    "stalled body": (answering(_after(answer(), _silence)), "came for 1 s|in time"),
    "body drop by drop": (answering(_after(answer(), _drip(b"\x47"))), "came for 1 s|in time"),
    "empty body": (answering(answer()), "cannot be reached"),
    "a page": (answering(answer(body=b"<!DOCTYPE html><title>Log in")), "a page for people"),
    "text": (answering(answer(body=b"no camera here " * 9)), "Invalid data"),
    "zeros": (answering(answer(body=bytes(1 << 20))), "Invalid data"),
    "sound alone": (answering(answer(body=b"ADIF" + bytes(900))), "Invalid data|found none"),
    "compressed": (answering(answer(body=stream(), Content_Encoding="gzip")), "compressed"),
    "bad chunks": (answering(answer(body=b"zz\r\nxx", Transfer_Encoding="chunked")), "cannot be reached"),
    "cut off at once": (answering(answer(body=stream()[:900], Content_Length="99999")), "bytes early"),
    "no length": (answering(answer(body=b"", Content_Length="0")), "cannot be reached"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FIRST)
def test_a_camera_that_cannot_be_watched_is_refused_in_time(fault: str) -> None:
    handle, words = FIRST[fault]
    with Camera(handle) as camera:
        said = _refusal(camera.url())
    assert any(word in said for word in words.split("|")), said


def test_nobody_there_is_told() -> None:
    with Camera(_silence) as camera:
        pass
    assert "refused" in _refusal(camera.url())
    assert "refused" in _refusal(camera.url(scheme="rtsp"))
    assert "refused" in _refusal(camera.url(scheme="tcp"))
    assert "cannot be looked up" in _refusal("http://no-such-host.invalid/1")
    assert "cannot be looked up" in _refusal("rtsp://no-such-host.invalid/1")


# TLS -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    named = ["-subj", "/CN=camera", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(["openssl", *words, *files, *named], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs openssl with -addext")
    return folder / "cert.pem"


def _encrypted(certificate: Path, handle: Handler) -> Handler:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    def serve(wire: socket.socket, number: int) -> None:
        with context.wrap_socket(wire, server_side=True) as inner:
            handle(inner, number)

    return serve


def test_an_encrypted_camera_must_have_a_certificate_that_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Camera(_encrypted(certificate, answering(GOOD))) as camera:
        url = camera.url(scheme="https")
        said = _refusal(url)
        assert "its certificate is not trusted" in said
        assert "SSL_CERT_FILE" in said
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert len(list(_connect(url)())) == 24
        assert "not trusted" in _refusal(url.replace("127.0.0.1", "localhost"))
    with Camera(_encrypted(certificate, Rtsp())) as camera:
        assert len(list(_connect(camera.url(scheme="rtsps"))())) == 24
        monkeypatch.delenv("SSL_CERT_FILE")
        assert "not trusted" in _refusal(camera.url(scheme="rtsps"))


def test_a_relayed_connection_is_used_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    users: dict[str, set[int]] = {"sent": set(), "received": set()}

    class Noted(socket.socket):
        def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
            users["sent"].add(threading.get_ident())
            super().sendall(data, flags)

        def recv(self, size: int, flags: int = 0) -> bytes:
            users["received"].add(threading.get_ident())
            return super().recv(size, flags)

    plain = connections.connect

    def connect(address: Address, patience: Patience) -> socket.socket:
        return Noted(fileno=plain(address, patience).detach())

    monkeypatch.setattr(connections, "connect", connect)
    with Camera(Rtsp()) as camera:
        assert len(list(_connect(camera.url(scheme="rtsp"))())) == 24
    # OpenSSL allows one thread in a connection at a time, and Python before 3.13 does not see to it.
    assert users["sent"] == users["received"]
    assert len(users["sent"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["https", "rtsps"])
def test_what_speaks_no_tls_is_told_so(scheme: str) -> None:
    with Camera(lambda wire, number: wire.sendall(GOOD)) as camera:
        assert "does not speak TLS" in _refusal(camera.url(scheme=scheme))
    with Camera(lambda wire, number: None) as camera:
        assert "cannot be reached" in _refusal(camera.url(scheme=scheme))
    with Camera(_silence) as camera:
        assert "in time" in _refusal(camera.url(scheme=scheme))


# User and password -----------------------------------------------------------------------------------------


def test_user_and_password_are_told_once_asked_for() -> None:
    heads: list[bytes] = []

    def handle(wire: socket.socket, number: int) -> None:
        heads.append(wire.recv(4096))
        asked = 'Digest realm="a, \\"b\\"", nonce="n", qop="auth,auth-int", algorithm=SHA-256, opaque="o"'
        known = b"Authorization: Digest" in heads[-1]
        wire.sendall(GOOD if known else answer("401 No", WWW_Authenticate=asked))

    with Camera(handle) as camera:
        assert len(list(_connect(camera.url(info="m%C3%A9:pa%2Fss@"))())) == 24
        assert b"Authorization" not in heads[0]
        assert b'realm="a, \\"b\\"", nonce="n", uri="/cam/1"' in heads[1]
        assert b"algorithm=SHA-256, qop=auth, nc=00000001" in heads[1]
        assert "401" in _refusal(camera.url())
    basic = answer("401 No", WWW_Authenticate='Basic realm="x"')
    with Camera(answering(basic, GOOD)) as camera:
        assert len(list(_connect(camera.url(info="me:pw@"))())) == 24
    with Camera(answering(basic)) as camera:
        assert "to this user and password" in _refusal(camera.url(info="me:pw@"))


def test_an_rtsp_camera_is_told_user_and_password() -> None:
    told = Rtsp("mé", "pa/ss")
    with Camera(told) as camera:
        url = camera.url("/live?channel=1", scheme="rtsp", info="m%C3%A9:pa%2Fss@")
        assert len(list(_connect(url)())) == 24
        assert all(f"rtsp://127.0.0.1:{camera.port}/live?channel=1" in head for head in told.requests)
        assert "401 Unauthorized" in _refusal(camera.url(scheme="rtsp"))
        assert "to this user and password" in _refusal(camera.url(scheme="rtsp", info="me:wrong@"))


@pytest.mark.parametrize(
    ("method", "status", "words"),
    [
        ("OPTIONS", "503 Busy", "503 Service Unavailable"),
        ("DESCRIBE", "404 Not Found", "404 Not Found"),
        ("DESCRIBE", "403 No", "403 Forbidden"),
        ("SETUP", "461 No", "461 Unsupported Transport"),
        ("PLAY", "453 No", "453 Not Enough Bandwidth"),
        ("DESCRIBE", "200 OK\r\nContent-Length: 99999999", "longer than"),
    ],
)
def test_an_rtsp_status_is_told_in_our_words(method: str, status: str, words: str) -> None:
    with Camera(Rtsp(told={method: status})) as camera:
        assert words in _refusal(camera.url(scheme="rtsp"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad\r\n\r\n",
        b"\xff" * 200_000,
        b"RTSP/1.0 200 OK\r\nA: " + b"b" * 200_000,
        b"$\0\xff\xff",
    ],
)
def test_what_speaks_no_rtsp_is_refused(data: bytes) -> None:
    with Camera(lambda wire, number: wire.sendall(data)) as camera:
        _refusal(camera.url(scheme="rtsp"))
    with Camera(_silence) as camera:
        assert "came for 1 s" in _refusal(camera.url(scheme="rtsp"))


# Later -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "between",
    [
        answer("401 Not yet"),
        answer("403 Not yet"),
        answer("404 Not yet"),
        answer("500 Starting"),
        answer("503 Starting"),
        answer("302 Elsewhere", Location="http://127.0.0.1:9/"),
        b"garbage\r\n\r\n",
        answer(body=b"#EXTM3U\nhttp://127.0.0.1:9/1.ts\n"),
        answer(body=b"\0" * 4096),
        b"",
    ],
    ids=["401", "403", "404", "500", "503", "302", "garbage", "playlist", "zeros", "nothing"],
)
def test_a_fault_at_a_reconnect_is_a_failed_attempt(between: bytes) -> None:
    with Camera(answering(GOOD, between, between, GOOD, between)) as camera:
        dropped, ending, counts = _ended(camera.url())
    assert (dropped, counts["reconnected"]) == (48 - 1, 1)
    assert ending.reason == "gone"
    assert "3 attempts to reach it failed" in ending.message


def test_a_camera_that_never_comes_back_says_why() -> None:
    with Camera(answering(GOOD, answer("503 Busy"))) as camera:
        _, ending, _ = _ended(camera.url())
    assert "503 Service Unavailable" in ending.message


def test_half_a_frame_is_undecodable_and_the_stream_goes_on() -> None:
    parts = multipart(jpegs())
    cut = parts[: len(parts) // 2]
    with Camera(answering(answer(body=cut, **MULTIPART), answer(body=parts, **MULTIPART), b"")) as camera:
        _, ending, counts = _ended(camera.url())
    assert counts["reconnected"] == 1
    assert counts["dropped"] >= 15
    assert ending.reason == "gone"


def test_a_film_with_a_length_that_is_cut_is_no_end() -> None:
    film = stream(200, form="matroska", codec="mpeg4")
    short = answer(body=film[: len(film) // 2], Content_Length=str(len(film)))
    whole = answer(body=film, Content_Length=str(len(film)))
    with Camera(answering(short, whole)) as camera:
        _, ending, counts = _ended(camera.url())
    assert (ending.reason, counts["reconnected"]) == ("end", 1)


@pytest.mark.slow
def test_garbage_for_ever_after_good_frames_is_a_break() -> None:
    """A stream that goes on without an image is as good as none."""
    noise = bytes(range(256)) * 16
    with Camera(answering(_after(GOOD, _drip(noise, 0.01)), b"")) as camera:
        _, ending, counts = _ended(camera.url(), wait_s=1.0)
    assert ending.reason == "gone"
    assert counts["dropped"] >= 20


@pytest.mark.slow
def test_a_stalled_stream_is_a_break() -> None:
    with Camera(answering(_after(GOOD, _silence), b"")) as camera:
        _, ending, counts = _ended(camera.url(), wait_s=1.0)
    assert ending.reason == "gone"
    assert counts["dropped"] >= 20


def _watched(
    body: bytes, *, rescale: bool = False, first: bytes | Handler = GOOD, seen: threading.Event | None = None
) -> tuple[Ending, dict[str, int], Kept]:
    def say(frame: int) -> FrameDetections:
        if seen is not None:
            seen.set()
        return one_car(frame)

    with Camera(answering(first, body, b"")) as server:
        camera = cameras.Camera("yard", _connect(server.url()), SystemClock(), backoff=HASTE)
        kept = Kept()
        done = watch(camera, Scripted(say), WatchConfig(rescale=rescale), kept, clock=SystemClock())
        camera.close()
    assert done.ending is not None
    return done.ending, camera.outcomes.counts(), kept


@pytest.mark.slow
@pytest.mark.parametrize("back", [True, False], ids=["comes back", "is gone"])
def test_a_camera_that_is_lost_while_models_load_is_watched_or_its_end_is_told(back: bool) -> None:
    """Nobody takes frames while a detector is opened; the newest wait, and what became of it is told first."""
    with Camera(answering(GOOD, GOOD if back else b"", b"")) as server:
        camera = cameras.Camera("yard", _connect(server.url(), 1.0), SystemClock(), backoff=HASTE)
        time.sleep(0.5)  # the server has sent all and hung up before the first frame is asked for
        kept = Kept()
        done = watch(camera, Scripted(one_car), WatchConfig(), kept, clock=SystemClock())
        camera.close()
    assert done.ending is not None
    assert done.ending.reason == "gone"
    numbers = [seen.frame.number for seen in kept.seen]
    assert numbers
    assert numbers == sorted(set(numbers))
    assert camera.outcomes.counts().get("reconnected", 0) == back


@pytest.mark.parametrize("rescale", [False, True])
def test_another_size_ends_the_watch_or_is_scaled(rescale: bool) -> None:
    seen = threading.Event()

    def send(wire: socket.socket, number: int) -> None:
        wire.sendall(answer(body=multipart(jpegs(12)), **MULTIPART))
        assert seen.wait(60)  # else a slow watch meets the newest frame alone, which is of the other size
        wire.sendall(multipart(jpegs(12, (96, 64))))

    ending, counts, kept = _watched(b"", first=send, rescale=rescale, seen=seen)
    if rescale:
        assert ending.reason == "gone"
        assert counts["rescaled"] >= 1
        assert {each.frame.picture.shape for each in kept.seen} == {(48, 64, 3)}
    else:
        assert ending.reason == "resized"
        assert "64x48 are followed by one of 96x64" in ending.message


@pytest.mark.parametrize("codec", ["mpeg4", "libx264", "mpeg1video"])
def test_another_codec_or_rate_is_taken_at_the_next_connection(codec: str) -> None:
    ending, counts, kept = _watched(answer(body=stream(codec=codec, fps=50 if codec == "mpeg1video" else 10)))
    assert ending.reason == "gone"
    assert counts["reconnected"] == 1
    numbers = [seen.frame.number for seen in kept.seen]
    assert numbers == sorted(set(numbers))


def test_another_codec_within_a_stream_never_hangs() -> None:
    """A second stream with its own tables follows the first at once."""
    both = answer(body=stream() + stream(codec="libx264", first_s=1.0) + stream(first_s=2.0))
    with Camera(answering(both, b"")) as camera:
        _, ending, counts = _ended(camera.url())
    assert ending.reason == "gone"
    assert counts["dropped"] >= 22


# Clocks ----------------------------------------------------------------------------------------------------

CLOCKS: dict[str, Callable[[int], float | None]] = {
    "backwards": lambda n: n / 10 if n < 50 else (n - 2000) / 10,
    "a day": lambda n: n / 10 if n < 50 else n / 10 + 86400,
    "frozen": lambda n: n / 10 if n < 50 else 5.0,
    "running backwards": lambda n: n / 10 if n < 50 else 10 - n / 10,
    "half a second back": lambda n: n / 10 if n < 50 else n / 10 - 0.5,
    "NaN": lambda n: n / 10 if n < 50 else math.nan,
    "infinite": lambda n: n / 10 if n < 50 else math.inf,
    "none": lambda n: None,
    "huge": lambda n: n / 10 if n < 50 else 1e300,
    "negative": lambda n: n / 10 - 1e6,
    "tiny steps": lambda n: n * 1e-9,
    "half as fast": lambda n: n / 10 if n < 50 else 5 + (n - 50) / 20,
    "to and fro": lambda n: n / 10 + (3 if n % 2 else 0),
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_whatever_the_clock_of_a_camera_does_frames_come(clock: str) -> None:
    """Numbers and times increase, and keep to our clock to a few seconds: no clock can stop a watch."""
    outcomes = Outcomes()
    timeline = Timeline(outcomes)
    placed = [found for n in range(500) if (found := timeline.place(CLOCKS[clock](n), n / 10)) is not None]
    numbers, times = [number for number, _ in placed], [t_s for _, t_s in placed]
    assert numbers == sorted(set(numbers))
    assert all(math.isfinite(t_s) for t_s in times)
    assert times == sorted(set(times))
    if clock in ("tiny steps", "to and fro"):  # steps below ten seconds are believed
        return
    assert len(placed) >= (500 - 50) / 11
    assert placed[-1][1] == pytest.approx(49.9, abs=26 if clock == "half as fast" else 12)
    assert outcomes.counts().get("lost", 0) < 500


def test_numbers_stay_small_whatever_steps_a_camera_states() -> None:
    timeline = Timeline(Outcomes())
    for n in range(100):
        timeline.place(n * 1e-12, n / 10)
    found = timeline.place(5.0, 15.0)
    assert found is not None
    assert found[0] < 100 + 5001


# Coming back -----------------------------------------------------------------------------------------------


def test_a_camera_that_is_away_for_a_minute_comes_back() -> None:
    clock, taken = FakeClock(), []
    begin_s = clock.now

    def connect() -> Connection:
        away_s = clock.now - begin_s
        if 0.5 < away_s < 60:
            raise InputError("no route")
        steps: list[object] = []
        for number in range(5):
            steps += [lambda: clock.sleep(0.1), Shot(number / 10, picture(number)), take]
        return Connection(steps)

    def take() -> None:
        while (frame := camera.next(10.0, 0.0)) is not None:
            taken.append(frame)

    camera = cameras.Camera("yard", connect, clock, threaded=False, backoff=Backoff(attempts=10))
    threading.Thread(target=lambda: None).start()
    camera.outcomes.tell = _closing_at_second(camera, camera.outcomes.tell)  # type: ignore[method-assign]
    camera.run()
    take()
    assert camera.outcomes.counts()["reconnected"] == 1
    assert taken[5].t_s > 60
    assert [frame.number for frame in taken] == sorted({frame.number for frame in taken})


def _closing_at_second(camera: cameras.Camera, tell: Callable[..., None]) -> Callable[..., None]:
    def told(what: str, n: int, message: str) -> None:
        tell(what, n, message)
        if what == "reconnected":
            camera._closed.set()

    return told


@pytest.mark.slow
def test_a_camera_that_is_switched_off_and_on_is_watched_again() -> None:
    """Really away for some seconds: its port refuses, then the same port answers again."""
    first = Camera(answering(_after(GOOD, _silence)))
    port, taken = first.port, 0
    backoff = Backoff(first_s=0.2, longest_s=1.0, attempts=10)
    camera = cameras.Camera("yard", _connect(first.url()), SystemClock(), backoff=backoff)
    while camera.next(10.0, 1.0) is not None:
        taken += 1
    first.stop()
    time.sleep(3)
    listener = socket.create_server(("127.0.0.1", port))

    def serve() -> None:
        while True:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            wire.recv(4096)
            wire.sendall(GOOD)
            wire.close()

    threading.Thread(target=serve, daemon=True).start()
    begin_s = time.monotonic()
    while "reconnected" not in camera.outcomes.counts() and time.monotonic() - begin_s < 20:
        camera.next(10.0, 0.2)
    listener.close()
    camera.close()
    assert camera.outcomes.counts()["reconnected"] >= 1


def test_a_camera_that_is_busy_once_everything_is_warm_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command connects, warms up, and connects anew: that is a reconnect as any other."""
    with Camera(answering(GOOD, answer("503 Busy"), GOOD, b"")) as server:
        camera = cameras.Camera("yard", _connect(server.url()), SystemClock(), backoff=HASTE)
        camera.refresh()
        taken = 0
        while camera.ending is None:
            taken += camera.next(10.0, 0.2) is not None
        camera.close()
    assert server.connections == 2 + 1 + 3
    assert taken + camera.outcomes.counts().get("dropped", 0) == 24
    assert camera.outcomes.counts()["reconnected"] == 1


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (IndexError("list index out of range"), "it sends a stream that was not there at its start"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "more streams, or larger images, than are taken"),
        (MemoryError(), "more streams, or larger images, than are taken"),
    ],
)
def test_what_late_streams_raise_is_said_in_words_of_ours(error: Exception, says: str) -> None:
    fault = convert_error(error, "http://camera", "the stream broke off")
    assert fault.message.startswith("the stream broke off: it sends ")
    assert says in fault.message
