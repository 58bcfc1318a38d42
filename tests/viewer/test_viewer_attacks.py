"""Whoever is not the page of this viewer gets nothing, and nobody gets what lies outside the named folders."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from numbered import Client, Open, make_truth, write_numbered_film

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.scenes.store import save
from roadaware.viewer.clips import parse_order
from roadaware.viewer.films import FilmFinder
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths

SECRET = b"a secret that nobody may read"
ADDRESSES = (
    "/",
    "/static/main.js",
    "/api/index",
    "/api/boxes?video=0&first=0&end=8",
    "/api/counts?hundredth=30",
    "/api/clip?clip=0",
    "/clip/0",
    "/film/0",
    "/still/0/0",
    "/api/overlays?video=0",
    "/api/layers?video=0&first=0&end=8&layers=joints",
    "/api/map?video=0&side=a&sound=0",
    "/api/latency?video=0&side=a&first=0&end=8&bars=4",
    "/api/waveform?video=0&first=0&end=1&bars=4",
)


@pytest.fixture
def client(sets: Path, viewed: Open) -> Client:
    (sets / "secret.txt").write_bytes(SECRET)
    (sets.parent / "secret.txt").write_bytes(SECRET)
    return viewed(sets / "truth", sets / "found")


def test_only_this_machine_is_answered_and_only_under_its_own_name(client: Client) -> None:
    port = client.viewer.port
    hosts = (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.evil:{port}",
    )
    hosts += (f"0.0.0.0:{port}", f"user@127.0.0.1:{port}", f"127.0.0.1:{port}/", f"127.0.0.1:{port} ", "")
    for host in (*hosts[:-2], hosts[-1], None):
        for path in ADDRESSES:
            status, _, body = client.ask(path, host=host)
            assert status == 400, (host, path)
            assert b"roadaware</h1>" not in body
    for name in ("localhost", "[::1]"):
        assert client.ask("/api/index", host=f"{name}:{port}")[0] == 200
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil\r\n\r\n".encode())
        assert b" 400 " in raw.recv(100)
    family = socket.getaddrinfo("127.0.0.1", port)[0][0]
    assert client.viewer._socket.family == family
    assert client.viewer._socket.getsockname()[0] == "127.0.0.1"


def test_the_token_is_asked_for_everywhere(client: Client) -> None:
    port, token = client.viewer.port, client.viewer.token
    wrong = ("", "x", token[:-1], token + "x", token.swapcase(), "\u00e4", "0" * 4000)
    for path in ADDRESSES:
        assert client.ask(path, known=False)[0] == 403
        for guess in wrong[:-2]:
            assert client.ask(path, known=False, cookie=f"roadaware-{port}={guess}")[0] == 403
            assert client.ask(path, known=False, cookie=f"roadaware-{port + 1}={token}")[0] == 403
    for guess in ("", "x", token[:-1], "%C3%A4", "%00", "0" * 4000):
        assert client.ask(f"/?token={guess}", known=False)[0] == 403
    assert client.ask(f"/api/index?token={token}", known=False)[0] == 403
    status, headers, _ = client.ask(f"/?token={token}", known=False)
    assert status == 200
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"roadaware-{port}={token};")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "set-cookie" not in client.ask("/")[1]
    assert len(token) >= 43


def test_other_pages_can_neither_read_nor_change(client: Client) -> None:
    port = client.viewer.port
    for origin in (
        "http://evil.example",
        "null",
        f"https://127.0.0.1:{port}",
        f"http://localhost:{port}",
        "http://127.0.0.1:1",
    ):
        assert client.ask("/api/index", origin=origin)[0] == 403
    for site in ("cross-site", "same-site", "nonsense"):
        assert client.ask("/api/index", sec_fetch_site=site)[0] == 403
    verdict = {
        "side": "a",
        "video": "one",
        "tube": 0,
        "box": None,
        "frame": 3,
        "verdict": "right",
        "note": "",
    }
    body = json.dumps(verdict).encode()
    refused = [
        client.ask("/api/verdicts", "POST", body, origin=None),
        client.ask("/api/verdicts", "POST", body, origin="http://evil.example"),
        client.ask("/api/verdicts", "POST", body, sec_fetch_site="cross-site"),
        client.ask("/api/verdicts", "POST", body, content_type="text/plain"),
        client.ask("/api/verdicts", "POST", body, content_type="application/x-www-form-urlencoded"),
        client.ask("/api/verdicts", "POST", body, known=False),
        client.ask("/api/verdicts", "PUT", body),
        client.ask("/api/verdicts", "DELETE"),
        client.ask("/api/verdicts", "OPTIONS", origin="http://evil.example"),
    ]
    assert all(status in (403, 405, 415) for status, _, _ in refused)
    assert not any("access-control" in name for _, headers, _ in refused for name in headers)
    assert client.json("/api/verdicts?side=a") == []
    assert client.post("/api/verdicts", verdict)[0] == 200
    assert len(client.json("/api/verdicts?side=a")) == 1


def test_every_answer_has_the_headers_that_bind_browsers(client: Client) -> None:
    answers = [client.ask(path) for path in (*ADDRESSES, "/nothing")] + [
        client.ask("/", host="evil"),
        client.ask("/", known=False),
    ]
    for _, headers, _ in answers:
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
    page = client.ask("/")[2].decode()
    assert "<script>" not in page
    assert " style=" not in page
    assert " on" not in {part[:3] for part in page.split('"') if part.startswith(" on")}
    for name in (
        "main.js",
        "player.js",
        "lanes.js",
        "panels.js",
        "api.js",
        "tubes.js",
        "overlays.js",
        "signals.js",
        "export.js",
        "tallies.js",
        "items.js",
        "filters.js",
    ):
        text = client.ask(f"/static/{name}")[2].decode()
        assert not any(
            word in text
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write")
        )
        assert "https://" not in text


UP = ("..", "%2e%2e", "%252e%252e", "..%2f", "..%5c", "..\\", "%c0%ae%c0%ae", ".%00.", "....//")
WAYS = [
    *(f"/static/{up}/{up}/secret.txt" for up in UP),
    *(f"/{up}/{up}/{up}/etc/passwd" for up in UP[:5]),
    "/static/%2fetc%2fpasswd",
    "/static//etc/passwd",
    "//etc/passwd",
    "/static/main.js%00.css",
    "/static/opening.py",
    "/static/__init__.py",
    "/static/",
    "/film/../../secret.txt",
    "/film/%2e%2e%2fsecret.txt",
    "/film//proc/self/environ",
    "/film/0%2f..%2f..%2fsecret.txt",
    "/film/-1",
    "/film/1",
    "/film/99",
    "/still/0/../../secret.txt",
    "/still/..%2f..%2fsecret.txt/0",
    "/proc/self/environ",
    "/api/../../secret.txt",
    "/film/%D9%A1",
]


def test_no_address_leads_out_of_the_named_folders(client: Client) -> None:
    for way in WAYS:
        status, _, body = client.ask(way.replace("\\", "%5c"))
        assert status in (400, 404, 409, 422), (way, status)
        assert SECRET not in body
        assert b"root:" not in body
        assert b"PATH=" not in body


def test_no_path_in_the_data_leads_out_of_the_named_folders(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write_numbered_film(outside / "film.mp4", count=3)
    root = tmp_path / "sets"
    root.mkdir()
    (root / "link.mp4").symlink_to(outside / "film.mp4")
    (root / "linked").symlink_to(outside)
    os.mkfifo(root / "pipe.mp4")
    (root / "text.mp4").write_bytes(SECRET)
    names = [
        str(outside / "film.mp4"),
        "../outside/film.mp4",
        "link.mp4",
        "linked/film.mp4",
        "/proc/self/environ",
    ]
    names += [
        "..\\outside\\film.mp4",
        "pipe.mp4",
        "text.mp4",
        "a\0b.mp4",
        "/dev/zero",
        "file:///etc/passwd",
        ".",
    ]
    for number, name in enumerate(names):
        truth = make_truth()
        videos = truth.videos.with_columns(path=pl.lit(name))
        save(truth.with_tables(videos=videos), root / f"truth-{number}")
        finder = FilmFinder(open_paths([root / f"truth-{number}"]))
        assert finder.film("one").state == "missing", name
        assert finder.film("one").path is None
        with pytest.raises(InputError):
            finder.still("one", 0)


def test_what_is_asked_wrongly_is_said_and_never_a_fault_of_ours(client: Client) -> None:
    for value in ("x", "-1", "1e3", "10000000000000000", "", "9" * 400, "0x1", "1.5", "%00", "%D9%A1"):
        for path in (
            "/api/video?video=",
            "/api/film?video=",
            "/api/boxes?first=0&end=9&video=",
            "/api/metrics?evaluation=",
            "/api/boxes?video=0&end=9&first=",
        ):
            status, _, body = client.ask(path + value)
            assert status == 422, (path, value)
            assert b"Traceback" not in body
    for end in ("0", "100000", "1025"):
        assert client.ask(f"/api/boxes?video=0&first=0&end={end}")[0] == 422
    for rest in (
        "side=z&kind=agent&threshold=0.2",
        "side=a&kind=nothing&threshold=0.2",
        "side=a&kind=agent&threshold=nan",
    ):
        assert client.ask(f"/api/errors?{rest}")[0] == 422
    for body in (
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"side": "a"}',
        b'{"side": []}',
        b"\xff",
        b"[" * 5000,
        b'{"side": "a", "x": 1}',
    ):
        assert client.ask("/api/verdicts", "POST", body)[0] == 422, body
    good = {"side": "a", "video": "one", "tube": 0, "box": None, "frame": 3, "verdict": "right", "note": ""}
    for name, value in (
        ("tube", "0"),
        ("tube", -1),
        ("tube", True),
        ("tube", 1 << 70),
        ("frame", 1.5),
        ("verdict", "x"),
        ("note", "x" * 9000),
        ("video", "../x"),
        ("box", 1),
        ("note", 3),
    ):
        assert client.post("/api/verdicts", good | {name: value})[0] == 422, (name, value)
    assert client.json("/api/verdicts?side=a") == []


def test_too_much_is_refused(client: Client) -> None:
    assert client.ask("/api/index?" + "x" * 9000)[0] == 414
    assert client.ask("/api/verdicts", "POST", b"x", content_length=str(1 << 21))[0] == 413
    assert client.ask("/api/verdicts", "POST", b"x", content_length=None, transfer_encoding="chunked")[0] in (
        400,
        411,
    )
    idle = [socket.create_connection(("127.0.0.1", client.viewer.port), timeout=10) for _ in range(100)]
    try:
        for raw in idle:
            raw.sendall(b"GET / HTTP/1.1\r\nHo")  # and then nothing, as slowly as can be
        begun = time.monotonic()
        assert client.ask("/static/main.js")[0] == 200
        assert time.monotonic() - begun < 10
    finally:
        for raw in idle:
            raw.close()


def test_parts_of_a_film_are_those_that_were_asked_for(client: Client, sets: Path) -> None:
    data = (sets / "films" / "one.mp4").read_bytes()
    size = len(data)
    for asked, first, end in (
        ("0-9", 0, 10),
        ("5-", 5, size),
        ("-7", size - 7, size),
        (f"3-{10**17}", 3, size),
        (f"-{size + 5}", 0, size),
    ):
        status, headers, body = client.ask("/film/0", range=f"bytes={asked}")
        assert status == 206
        assert body == data[first:end]
        assert headers["content-range"] == f"bytes {first}-{end - 1}/{size}"
    for asked in (f"{size}-", "9-3", "-0"):
        assert client.ask("/film/0", range=f"bytes={asked}")[0] == 416
    for asked in ("bytes=0-1,5-6", "lines=1-2", "bytes=-", "bytes=x-", "bytes=1-2-3"):
        status, _, body = client.ask("/film/0", range=asked)
        assert status == 200
        assert body == data


def test_names_and_labels_are_texts_of_json_and_nothing_else(tmp_path: Path, viewed: Open) -> None:
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\u2028{{7*7}}\u202e'
    truth = make_truth()
    meta = type(truth.meta)(vocabularies={"agent": (evil, "Car")})
    save(truth.with_tables(meta=meta, tubes=truth.tubes.with_columns(name=pl.lit(evil))), tmp_path / "truth")
    client = viewed(tmp_path / "truth")
    status, headers, body = client.ask("/api/video?video=0")
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["truth"]["paths"][0][1] == evil
    assert evil.encode() not in client.ask("/")[2]


def test_what_a_file_says_of_its_length_is_not_listed_frame_by_frame(tmp_path: Path) -> None:
    root = tmp_path / "stills"
    root.mkdir()
    (root / "a.png").write_bytes(b"")
    truth, far = make_truth(), 10**12
    videos = truth.videos.with_columns(n_frames=pl.lit(None, pl.Int64))
    frames = pl.DataFrame({"video": ["one", "one"], "frame": [0, far], "path": "a.png"})
    save(truth.with_tables(videos=videos, frames=frames), root / "tables")
    opened = open_paths([root / "tables"])
    film = FilmFinder(opened).film("one")
    assert (film.state, film.times_s) == ("missing", [])
    assert "1,000,000,000,000" in film.message
    order = {"video": 0, "first": far, "end": far + 5, "form": "gif", "sides": [], "score": 0, "hidden": []}
    with pytest.raises(UsageError, match="of the first 10,000,000"):
        parse_order({**order, "names": True, "layers": [], "colours": {}}, Index(opened))


def test_a_table_whose_rows_cannot_be_read_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    save(make_truth(), tmp_path / "truth")
    opened, path = open_paths([tmp_path / "truth"]), tmp_path / "videos.parquet"
    pl.DataFrame({"video": ["one", "two"]}).write_parquet(path, compression="uncompressed")
    data = bytearray(path.read_bytes())
    data[data.index(b"\x03\0\0\0one")] = 99  # the length of the first name; columns and rows are right
    path.write_bytes(data)
    damaged = replace(opened.sides["truth"], tables={"videos": pl.scan_parquet(path)})
    with pytest.raises(DamagedError, match="the table videos is not as roadaware writes it"):
        Index(replace(opened, sides={"truth": damaged}))


def test_a_set_that_is_written_anew_while_it_is_viewed_is_to_be_opened_again(
    tmp_path: Path, viewed: Open
) -> None:
    truth = make_truth()
    save(truth, tmp_path / "truth")
    client = viewed(tmp_path / "truth")
    moved = truth.boxes.with_columns(pl.col("x1_px") - 1)
    save(truth.with_tables(boxes=moved), tmp_path / "truth", overwrite=True)
    for path in ("/api/boxes?video=0&first=0&end=9", "/api/counts?hundredth=30"):
        status, _, body = client.ask(path)
        assert (status, b"open the folder again" in body) == (409, True)
