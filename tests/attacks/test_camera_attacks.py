"""A camera must not make this machine ask others: whatever it answers, a second server sees no connection."""

from __future__ import annotations

import contextlib
import io
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "online"))

from camera_servers import Camera, Rtsp, answer, answering, stream

from roadaware.addresses import Address, mask_secrets, read_address
from roadaware.errors import InputError
from roadaware.io.decoders import open_stream
from roadaware.online import connections
from roadaware.online.cameras import NetworkStream, Shot
from roadaware.online.connections import is_public

GOOD = answer(body=stream())


@pytest.fixture
def other() -> Iterator[Camera]:
    """A machine that nobody named."""
    with Camera(answering(GOOD)) as camera:
        yield camera


def _hls(*lines: str) -> bytes:
    head = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n"
    body = head + "\n".join(lines) + "\n#EXT-X-ENDLIST\n"
    return answer(body=body.encode(), Content_Type="application/vnd.apple.mpegurl")


def _answers(url: str, file: Path) -> dict[str, bytes]:
    """What a camera may answer to be rid of the asking, by name."""
    host = url.partition("://")[2].partition("/")[0]
    port = host.rpartition(":")[2]
    sdp = (
        f"v=0\r\no=- 0 0 IN IP4 {host}\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video {port} RTP/AVP 32\r\n"
    )
    mpd = f'<?xml version="1.0"?><MPD><BaseURL>{url}</BaseURL></MPD>'
    return {
        **{f"{n}": answer(f"{n} Go", Location=url) for n in (300, 301, 302, 303, 304, 305, 307, 308, 399)},
        "302 scheme": answer("302 Go", Location=url.replace("http://", "rtsp://")),
        "302 tcp": answer("302 Go", Location=url.replace("http://", "tcp://")),
        "302 file": answer("302 Go", Location=f"file://{file}"),
        "302 no scheme": answer("302 Go", Location=f"//{host}/x"),
        "refresh": answer(Refresh=f"0; url={url}", body=b"<html>"),
        "hls": _hls("#EXTINF:1,", url),
        "hls file": _hls("#EXTINF:1,", f"file://{file}"),
        "hls key": _hls(f'#EXT-X-KEY:METHOD=AES-128,URI="{url}"', "#EXTINF:1,", "a.ts"),
        "hls map": _hls(f'#EXT-X-MAP:URI="{url}"', "#EXTINF:1,", "a.ts"),
        "hls variants": _hls("#EXT-X-STREAM-INF:BANDWIDTH=1", url),
        "hls crypto": _hls("#EXTINF:1,", f"crypto+{url}"),
        "hls behind a space": answer(body=b"\n #EXTM3U\n#EXTINF:1,\n" + url.encode()),
        "dash": answer(body=mpd.encode(), Content_Type="application/dash+xml"),
        "sdp": answer(body=sdp.encode(), Content_Type="application/sdp"),
        "concat": answer(body=f"ffconcat version 1.0\nfile {url}\n".encode()),
        "asx": answer(body=f'<asx version="3"><entry><ref href="{url}"/></entry></asx>'.encode()),
        "pls": answer(body=f"[playlist]\nFile1={url}\n".encode()),
        "rtsp text": answer(body=b"RTSPtext\n" + url.replace("http", "rtsp").encode()),
        "asf redirect": answer(body=b"[Reference]\r\nRef1=" + url.encode()),
        "smil": answer(body=f'<smil><body><video src="{url}"/></body></smil>'.encode()),
    }


NAMES = tuple(_answers("http://127.0.0.1:1/", Path("x")))


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_no_answer_leads_to_another_server_of_this_network(
    name: str, follow: bool, other: Camera, tmp_path: Path
) -> None:
    (tmp_path / "film.ts").write_bytes(stream())
    told = _answers(other.url("/x.ts"), tmp_path / "film.ts")[name]
    with Camera(answering(told)) as camera:
        with pytest.raises(InputError) as refused:
            for _ in NetworkStream(read_address(camera.url("/a.m3u8")), wait_s=1.0, follow=follow):
                pass
        assert camera.connections <= 3
    assert refused.value.exit_code == 3
    assert other.connections == 0


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/\\x", "http://h/?token=outcome1", "//words@outcome1"])
def test_no_answer_decides_what_is_hidden(place: str) -> None:
    """Addresses that a server names are no secrets: it could have any word hidden, and name a million."""
    with Camera(answering(answer("302 Go", Location=place))) as camera:
        before = mask_secrets("frame 1 of http://127.0.0.1:9, outcome1")
        with pytest.raises(InputError):
            NetworkStream(read_address(camera.url()), wait_s=1.0, follow=True)
    assert mask_secrets("frame 1 of http://127.0.0.1:9, outcome1") == before


def test_streams_that_appear_late_harm_nothing() -> None:
    """PyAV has room for the streams that were there at first: few more are taken, then it connects anew."""
    packet = b"\0\0\1\xe0\0\0\x80\x80\5!\0\1\0\1\0\0\1\xb3".ljust(184, b"x")
    late = b"".join(bytes([0x47, 0x42 + n // 256, n % 256, 0x10]) + packet for n in range(2000))
    with Camera(answering(answer(body=stream() + late + stream()))) as camera:
        found = open_stream(io.BytesIO(stream() + late * 3), protocols="none", wait_s=5.0)
        assert len(found.streams) <= 24
        shots = list(_shots_until_broken(read_address(camera.url())))
    assert sum(shot.picture is not None for shot in shots) >= 20


def _shots_until_broken(address: Address) -> Iterator[Shot]:
    with contextlib.suppress(InputError):
        yield from NetworkStream(address, wait_s=5.0)


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("method", ["OPTIONS", "DESCRIBE", "SETUP", "PLAY"])
@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
def test_no_rtsp_redirect_is_followed(method: str, status: int, follow: bool, other: Camera) -> None:
    for scheme in ("rtsp", "http"):
        to = f"{status} Go\r\nLocation: {other.url(scheme=scheme)}"
        with Camera(Rtsp(told={method: to})) as camera, pytest.raises(InputError) as refused:
            NetworkStream(read_address(camera.url(scheme="rtsp")), wait_s=1.0, follow=follow)
        assert f"{status}" in str(refused.value)
    assert other.connections == 0


def test_no_description_of_an_rtsp_camera_leads_elsewhere(other: Camera) -> None:
    """Addresses in the description, its base and its controls: all is asked of the camera itself."""
    sdp = (
        "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
        f"a=control:{other.url('', scheme='rtsp')}\r\nm=video {other.port} RTP/AVP 32\r\n"
        f"a=control:{other.url('/track', scheme='rtsp')}\r\n"
    )
    base = f"200 OK\r\nContent-Base: {other.url('/base/', scheme='rtsp')}\r\nContent-Type: application/sdp"
    for told in (Rtsp(sdp=sdp), Rtsp(sdp=sdp, told={"DESCRIBE": base})):
        with Camera(told) as camera:
            shots = list(NetworkStream(read_address(camera.url(scheme="rtsp")), wait_s=10.0))
        assert len(shots) == 24
    assert other.connections == 0


def test_the_port_of_the_relay_answers_nobody_else() -> None:
    """Only who knows the name in the relay's address is passed on to the camera."""
    from roadaware.online.connections import RtspRelay

    told = Rtsp()
    with Camera(told) as camera:
        relay = RtspRelay(read_address(camera.url(scheme="rtsp", info="me:pw@")), 2.0)
        port = int(relay.url.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as wire:
            wire.sendall(b"DESCRIBE /x RTSP/1.0\r\nCSeq: 1\r\n\r\n")
            wire.settimeout(5)
            assert wire.recv(100) == b""
        relay.close()
    assert told.requests == []


# With --follow ---------------------------------------------------------------------------------------------


def test_the_same_server_may_point_to_itself_where_that_is_asked_for() -> None:
    def handle(wire: socket.socket, number: int) -> None:
        head = wire.recv(4096)
        if b"GET /cam/1 " in head:
            wire.sendall(answer("302 Go", Location="/live?x=1"))
        else:
            assert b"Authorization" not in head
            wire.sendall(GOOD)

    with Camera(handle) as camera:
        assert (
            len(list(NetworkStream(read_address(camera.url(info="me:pw@")), wait_s=10.0, follow=True))) == 24
        )
        with pytest.raises(InputError, match="--follow"):
            NetworkStream(read_address(camera.url()), wait_s=10.0)


def test_a_playlist_of_the_same_server_is_watched_where_that_is_asked_for() -> None:
    parts = [stream(25, first_s=float(n), codec="libx264") for n in range(3)]

    def handle(wire: socket.socket, number: int) -> None:
        path = wire.recv(4096).split(b" ")[1]
        names = [line for n in range(3) for line in ("#EXTINF:1.0,", f"part{n}.ts")]
        wire.sendall(_hls(*names) if path == b"/a.m3u8" else answer(body=parts[int(path[5:6])]))

    with Camera(handle) as camera:
        shots = list(NetworkStream(read_address(camera.url("/a.m3u8")), wait_s=10.0, follow=True))
        assert len(shots) == 75
        with pytest.raises(InputError, match="--follow"):
            NetworkStream(read_address(camera.url("/a.m3u8")), wait_s=10.0)


def test_a_server_that_points_to_itself_for_ever_is_left() -> None:
    with Camera(answering(answer("302 Go", Location="/cam/1"))) as camera:
        with pytest.raises(InputError, match="more than 5 times"):
            NetworkStream(read_address(camera.url()), wait_s=10.0, follow=True)
        assert camera.connections == 6


def test_every_hop_to_another_machine_is_looked_up_once_and_must_be_of_the_open_net(
    monkeypatch: pytest.MonkeyPatch, other: Camera
) -> None:
    """A name that has a public address when it is checked and a private one afterwards reaches nobody."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: str, port: int, **more: object) -> list[tuple[object, ...]]:
        if host != "rebound.example":
            return list(real(host, port, **more))  # type: ignore[arg-type]
        asked.append(host)
        place = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

    reached: list[object] = []

    class Wire(socket.socket):
        def connect(self, place: object) -> None:  # type: ignore[override]
            if isinstance(place, tuple) and place[0] != "127.0.0.1":
                reached.append(place)
                raise ConnectionRefusedError(111, "Connection refused")
            super().connect(place)  # type: ignore[arg-type]

    monkeypatch.setattr(connections.socket, "getaddrinfo", lookup)
    monkeypatch.setattr(connections.socket, "socket", Wire)
    to = f"http://rebound.example:{other.port}/"
    with Camera(answering(answer("302 Go", Location=to))) as camera:
        url = camera.url(info="me:pw@")
        with pytest.raises(InputError, match="refused"):
            NetworkStream(read_address(url), wait_s=10.0, follow=True)
        assert reached == [("93.184.216.34", other.port)]
        with pytest.raises(InputError, match="machine of this network"):
            NetworkStream(read_address(url), wait_s=10.0, follow=True)
    assert len(asked) == 2
    assert other.connections == 0


PRIVATE = """
127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.8 198.18.0.1
224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12::1 ff02::1 ::ffff:127.0.0.1
::ffff:192.168.0.1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::c0a8:1 2002:7f00:1:: 2002:c0a8:101::1 2001:db8::1
"""


def test_addresses_of_this_network_are_known_as_such() -> None:
    assert [place for place in PRIVATE.split() if is_public(place)] == []
    assert all(is_public(place) for place in ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"))


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_however_a_redirect_writes_this_machine_it_is_not_asked(host: str, other: Camera) -> None:
    to = f"http://{host}:{other.port}/x"
    with Camera(answering(answer("302 Go", Location=to))) as camera, pytest.raises(InputError):
        NetworkStream(read_address(camera.url()), wait_s=10.0, follow=True)
    assert other.connections == 0


def test_no_encrypted_camera_points_to_an_unencrypted_one() -> None:
    from dataclasses import replace

    from roadaware.online.cameras import HttpBody

    first = read_address("https://camera.example/1")
    body = HttpBody.__new__(HttpBody)
    body._first = replace(first, user="me")
    with pytest.raises(InputError, match="from https to http"):
        body._checked(read_address("http://camera.example/1"))
    assert body._checked(read_address("https://camera.example/2")).user == "me"
    for elsewhere in (
        "https://camera.example:444/2",
        "https://other.example/2",
        "https://me:x@other.example/",
    ):
        found = body._checked(read_address(elsewhere))
        assert (found.user, found.password) == (None, None)
