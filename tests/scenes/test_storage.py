"""Addresses of stores as paths: what is written is one commit or the next, whatever ends the writer; large files come when
they are opened; two writers, lost answers, forged names and other machines are refused; nothing secret is printed."""

from __future__ import annotations

import copy
import errno
import hashlib
import http.server
import io
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import polars as pl
import pytest
from fsspec.implementations.http import HTTPFileSystem

from roadaware.addresses import keep_secret, mask_secrets, reset_secrets
from roadaware.errors import DamagedError, DiskError, InputError, UsageError
from roadaware.io import storage
from roadaware.io.files import collect_written, read_regular, write_atomically
from roadaware.io.folders import replace_folder
from roadaware.io.parquet import read_parquet, scan_parquet
from roadaware.io.sources import read_file
from roadaware.io.storage import Publication, fetch_path, is_store_url, locate_content, publish, send_written

LARGE = 200_000
MEMORY: Any = fsspec.filesystem("memory")


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROADAWARE_MIRRORS", "{}")
    monkeypatch.setattr(storage, "_BEAT_S", 0.05)
    monkeypatch.setattr(storage, "_WAITS_S", (0.0, 0.0))
    MEMORY.store.clear()
    MEMORY.pseudo_dirs.clear()
    yield
    MEMORY.store.clear()
    reset_secrets()


def put(**files: bytes | str) -> None:
    """Files in the store `memory://b`; `__` stands for a slash, `_dot_` for a dot."""
    for name, data in files.items():
        path = name.replace("__", "/").replace("_dot_", ".")
        MEMORY.pipe_file(f"/b/{path}", data if isinstance(data, bytes) else data.encode())


def held(folder: str = "/b") -> dict[str, bytes]:
    return {name.removeprefix(f"{folder}/"): MEMORY.cat_file(name) for name in MEMORY.find(folder)}


def results(folder: str = "/b/run") -> dict[str, bytes]:
    """What in the store has its own name."""
    return {name: data for name, data in held(folder).items() if not name.startswith("_roadaware/")}


def write(folder: Path, **files: str | bytes) -> None:
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): read_file(path) for path in folder.rglob("*") if path.is_file()}


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str = "other") -> None:
    """Be another machine: with a cache of its own."""
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / name))
    monkeypatch.setenv("ROADAWARE_MIRRORS", "{}")


# Reading.


def test_what_is_an_address() -> None:
    for text in (
        "s3://b/x",
        "gs://b",
        "memory://b/x",
        "https://a/b.mp4",
        "zip://x::s3://b/y.zip",
        "file:///tmp",
        "S3://b",
    ):
        assert is_store_url(text)
    for text in ("runs/x", "rtsp://camera", "s3:/b", "", "s3://a b", "xs3://b"):
        assert not is_store_url(text)
    assert fetch_path("file:///tmp/a%20b") == Path("/tmp/a b")


def test_tables_come_at_once_and_films_when_they_are_opened(tmp_path: Path) -> None:
    film = os.urandom(LARGE)
    put(set__drive_dot_mp4=film, set__small_dot_png=b"x", set__a__t_dot_json="{}", set___dot_hidden="h")
    path = fetch_path("memory://b/set")
    assert path.name == "set"
    assert sorted(str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()) == [
        "a/t.json",
        "drive.mp4",
        "small.png",
    ]
    assert (path / "a/t.json").read_bytes() == b"{}"
    stand_in = path / "drive.mp4"
    assert stand_in.stat().st_size == LARGE
    assert stand_in.stat().st_blocks * 512 < LARGE / 2
    before = stand_in.stat().st_mtime_ns
    assert read_file(stand_in) == film
    assert stand_in.stat().st_mtime_ns == before
    # A second opening asks nothing of the store.
    MEMORY.store.clear()
    assert locate_content(stand_in).read_bytes() == film
    assert locate_content(path / "small.png") == path / "small.png"


def test_a_file_alone_keeps_its_name(tmp_path: Path) -> None:
    put(films__drive_dot_mp4=b"film", films__other_dot_mp4=b"other")
    path = fetch_path("memory://b/films/drive.mp4")
    assert (path.name, path.read_bytes()) == ("drive.mp4", b"film")
    assert not (path.parent / "other.mp4").exists()
    assert fetch_path("memory://b/films/other.mp4").read_bytes() == b"other"
    assert path.read_bytes() == b"film"


def test_what_has_changed_in_the_store_is_fetched_again() -> None:
    put(set__a_dot_json="1")
    assert read_all(fetch_path("memory://b/set")) == {"a.json": b"1"}
    put(set__a_dot_json="2", set__b_dot_json="3")
    assert read_all(fetch_path("memory://b/set")) == {"a.json": b"2", "b.json": b"3"}


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match=r"memory://b/nothing: there is nothing of that name"):
        fetch_path("memory://b/nothing")
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    with pytest.raises(InputError, match="hold nothing of the name b"):
        fetch_path("memory://b/run/b")


def test_a_stand_in_outside_of_the_cache_leads_nowhere(tmp_path: Path) -> None:
    put(set__drive_dot_mp4=b"x" * LARGE)
    stand_in = fetch_path("memory://b/set") / "drive.mp4"
    copy = tmp_path / "drive.mp4"
    shutil.copy2(stand_in, copy)
    assert locate_content(copy) == copy
    os.environ["ROADAWARE_MIRRORS"] = "{}"  # a process that was not told of the store
    assert locate_content(stand_in) == stand_in


def test_the_pool_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    put(**{f"set__{k}_dot_mp4": bytes([k]) * LARGE for k in range(4)})
    path = fetch_path("memory://b/set")
    monkeypatch.setenv(storage.GIGABYTES, str(2.5 * LARGE / 1e9))
    copies = []
    for k in range(4):
        copies.append(locate_content(path / f"{k}.mp4"))
        os.utime(copies[-1], ns=(k, k))
        assert read_file(path / f"{k}.mp4") == bytes([k]) * LARGE
        os.utime(copies[-1], ns=(k, k))
    assert [copy.exists() for copy in copies] == [False, False, True, True]
    assert read_file(path / "0.mp4") == bytes([0]) * LARGE
    monkeypatch.setenv(storage.GIGABYTES, "0.0000001")
    with pytest.raises(DiskError, match="does not fit into ROADAWARE_STORAGE_GB=1e-07"):
        locate_content(path / "1.mp4")
    monkeypatch.setenv(storage.GIGABYTES, "many")
    with pytest.raises(UsageError, match="is a number of gigabytes, not 'many'"):
        locate_content(path / "1.mp4")


def test_a_file_that_is_not_what_the_log_says_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="12")
    elsewhere(monkeypatch, tmp_path)
    MEMORY.pipe_file("/b/run/a.json", b"13")
    with pytest.raises(InputError, match=r"a\.json is not what its log or listing says"):
        fetch_path("memory://b/run")
    MEMORY.rm_file("/b/run/a.json")
    with pytest.raises(InputError, match=r"a\.json is not there any more"):
        fetch_path("memory://b/run")


@pytest.mark.parametrize(
    "said",
    [
        "{",
        "[" * 100_000,
        "9" * 5000,
        "[]",
        '{"format": "x"}',
        '{"format": "roadaware-storage", "base": true, "removed": [], "files": {"a": 1}}',
        *(
            json.dumps({"format": "roadaware-storage", "base": True, "removed": [], "files": {name: entry}})
            for name, entry in (
                ("a", ["x", 0, "", ""]),
                ("a", [None, 0, "", ""]),
                ("a", [1, 0.5, "", ""]),
                ("a", [1, 10**30, "", ""]),
                ("a", [10**30, 0, "", ""]),
                ("a", [-1, 0, "", ""]),
                ("a", [True, 0, "", ""]),
                ("a", [1, 0, 7, ""]),
                ("a", [1, 0, "", 7]),
                ("a", [1, 0, "", "../other/secret"]),
                ("a", [1, 0, "", "_roadaware/files/../../a"]),
                ("", [1, 0, "", ""]),
                ("a\0b", [1, 0, "", ""]),
                ("a" * 300, [1, 0, "", ""]),
            )
        ),
        '{"format": "roadaware-storage", "base": true, "removed": [[1]], "files": 7}',
        '{"format": "roadaware-storage", "base": 1, "removed": [], "files": {}}',
        '{"format": "roadaware-storage", "base": true, "removed": {}, "files": {}}',
        *(
            '{"format": "roadaware-storage", "base": true, "removed": [], "files": {' + files + "}}"
            for files in (
                '"a": 1',
                '"a": [1, 2, ""]',
                '"a": [true, 0, "", ""]',
                '"a": [-1, 0, "", ""]',
                '"a": [1e99, 0, "", ""]',
                '"a": [1, 99999999999999999999, "", ""]',
                '"a": [1, 0, "zz", ""]',
                '"a": [1, 0, "", "../../secret"]',
                '"a": [1, 0, "", "http://host/x"]',
                '"/a": [1, 0, "", ""]',
                '"a//b": [1, 0, "", ""]',
                '"a/./b": [1, 0, "", ""]',
                '"a\\u0000": [1, 0, "", ""]',
                '"\\ud800": [1, 0, "", ""]',
                '".git/config": [1, 0, "", ""]',
                '"_roadaware/x": [1, 0, "", ""]',
                '"a": [1, 0, "", ""], "a/b": [1, 0, "", ""]',
                '"%s": [1, 0, "", ""]' % ("x" * 256),
            )
        ),
    ],
)
def test_a_damaged_log_is_said(said: str) -> None:
    put(run__a="x", run___roadaware__log__00000001_dot_json=said)
    with pytest.raises(InputError, match=r"memory://b/run/_roadaware/log"):
        fetch_path("memory://b/run")


def test_names_of_a_log_do_not_lead_out(tmp_path: Path) -> None:
    entry = [1, 0, hashlib.blake2b(b"x", digest_size=16).hexdigest(), ""]
    said = {"format": "roadaware-storage", "base": True, "removed": [], "files": {"../../../out.json": entry}}
    put(run__a="x", run___roadaware__log__00000001_dot_json=json.dumps(said))
    with pytest.raises(InputError, match="leads out of its folder"):
        fetch_path("memory://b/run")
    assert not list(tmp_path.rglob("out.json"))


def test_a_name_that_is_a_file_and_a_folder_is_said() -> None:
    files = {name: [1, 0, "", ""] for name in ("a", "a/b")}
    said = {"format": "roadaware-storage", "base": True, "removed": [], "files": files}
    put(run__a="x", run___roadaware__log__00000001_dot_json=json.dumps(said))
    with pytest.raises(InputError, match=r"is a file, and .* lies in it"):
        fetch_path("memory://b/run")


def test_an_archive_is_a_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("in/a.json", "1")
        archive.writestr("in/b.json", "2")
    MEMORY.pipe_file("/b/set.zip", (tmp_path / "set.zip").read_bytes())
    assert read_all(fetch_path("zip://in::memory://b/set.zip")) == {"a.json": b"1", "b.json": b"2"}
    assert fetch_path("zip://in/b.json::memory://b/set.zip").read_bytes() == b"2"
    with pytest.raises(UsageError, match="zip:// is read alone"):
        Publication("zip://in::memory://b/set.zip", folder=True)


@pytest.mark.parametrize(
    "damage", [lambda data: b"no archive", lambda data: b"", lambda data: data[:-30], lambda data: data[40:]]
)
def test_an_archive_that_is_none_is_no_folder(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("in/a.json", "1" * 1000)
    MEMORY.pipe_file("/b/set.zip", damage((tmp_path / "set.zip").read_bytes()))
    with pytest.raises(InputError, match=r"zip://in::memory://b/set\.zip: could not be (opened|fetched): "):
        read_all(fetch_path("zip://in::memory://b/set.zip"))


# http.


class _Server(http.server.BaseHTTPRequestHandler):
    other, archive = 0, b""

    def do_GET(self) -> None:
        if self.path.startswith("/set.zip"):
            first, _, last = self.headers.get("Range", "bytes=0-").partition("=")[2].partition("-")
            data = self.archive[int(first) : int(last or len(self.archive)) + 1]
            self.send_response(206 if "Range" in self.headers else 200)
            self.send_header(
                "Content-Range", f"bytes {first}-{int(first) + len(data) - 1}/{len(self.archive)}"
            )
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)
        elif self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.other}/film.mp4")
            self.end_headers()
        elif self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/film.mp4")
            self.end_headers()
        elif self.path.startswith("/film.mp4"):
            self.send_response(200)
            self.send_header("Content-Length", str(LARGE))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"f" * LARGE)
        elif self.path.startswith("/stalled"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"[")
                self.wfile.flush()
                self.rfile.read(1)  # until the other side hangs up
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    _Server.other = made.server_port
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


def test_http_is_read_and_leads_to_no_other_machine(server: str, tmp_path: Path) -> None:
    path = fetch_path(f"{server}/film.mp4")
    assert (path.name, read_file(path)) == ("film.mp4", b"f" * LARGE)
    assert read_file(fetch_path(f"{server}/moved.mp4")) == b"f" * LARGE
    with pytest.raises(InputError, match="redirects to another machine"):
        read_file(fetch_path(f"{server}/away.mp4"))
    with pytest.raises(InputError, match="nothing of that name"):
        fetch_path(f"{server}/nothing.mp4")
    with pytest.raises(UsageError, match="http:// is read alone"):
        Publication(f"{server}/out", folder=True)


def test_a_server_that_stops_in_the_middle_is_given_up(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_SILENCE_S", 0.1)
    monkeypatch.setattr(storage, "_WAITS_S", (0.0,))
    HTTPFileSystem.clear_instance_cache()  # those kept have the patience of before
    with pytest.raises(InputError, match=r"could not be fetched: .*[Tt]imeout"):
        fetch_path(f"{server}/stalled.json")
    HTTPFileSystem.clear_instance_cache()


def test_what_others_keep_in_a_place_stays_there() -> None:
    put(run__uv_dot_lock=b"locked", run__notes_dot_txt=b"ours", run___dot_git__config=b"hidden")
    before = held()
    with pytest.raises(RuntimeError), publish("memory://b/run"):
        raise RuntimeError("refused before any work")
    assert held() == before
    with publish("memory://b/run") as folder:
        write(folder, found="new")
    assert {name: data for name, data in held().items() if not name.startswith("run/_roadaware")} == {
        **before,
        "run/found": b"new",
    }


@pytest.mark.parametrize("address", ["file://results/run", "file://host/run", "file:///"[:-1]])
def test_a_file_address_of_another_machine_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="three slashes"):
        fetch_path(address)


def test_a_file_address_keeps_what_its_name_holds(tmp_path: Path) -> None:
    assert fetch_path(f"file://{tmp_path}/a%20b#c?d") == tmp_path / "a b#c?d"


def test_a_signature_is_kept_in_no_file(server: str, tmp_path: Path) -> None:
    url = f"{server}/film.mp4?X-Amz-Signature=abcdef0123456789"
    path = fetch_path(url)
    assert (path.name, read_file(path)) == ("film.mp4", b"f" * LARGE)
    assert not any(b"abcdef0123456789" in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert "abcdef0123456789" not in mask_secrets(f"fetched {url}")


def test_passwords_are_refused_and_hidden() -> None:
    for url in (
        "s3://me:geheim-1@bucket/run",
        "https://me:geheim-1@host/film.mp4",
        "zip://x::https://me:geheim-1@host/a.zip",
    ):
        with pytest.raises(UsageError, match="holds neither user nor password") as caught:
            fetch_path(url)
        assert "geheim" not in str(caught.value)
        assert "geheim" not in mask_secrets(f"no {url}")
    keep_secret("s3://bucket/street/run")
    assert mask_secrets("s3://bucket/street/run and a street") == "s3://bucket/street/run and a street"


def test_a_client_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(storage.importlib, "import_module", refuse)
    with pytest.raises(UsageError, match=r"s3:// needs .* pip install 'roadaware\[storage\]'"):
        fetch_path("s3://b/run")


# Writing.


def test_what_is_written_is_read_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    film = os.urandom(LARGE)
    with publish("memory://b/run") as folder:
        write(
            folder,
            a__t_dot_json="1",
            drive_dot_mp4=film,
            **{"_dot_hidden": "h", "_dot_roadaware-1-00000000_dot_tmp": "u"},
        )
        time = (folder / "drive.mp4").stat().st_mtime_ns
    assert results() == {"a/t.json": b"1", "drive.mp4": film}
    assert [name for name in held("/b/run") if name.startswith("_roadaware")] == [
        "_roadaware/log/00000001.json"
    ]
    elsewhere(monkeypatch, tmp_path)
    found = fetch_path("memory://b/run")
    assert read_all(found) == results()
    # So that who compares times takes a film for the same on every machine.
    assert (found / "drive.mp4").stat().st_mtime_ns == time
    assert fetch_path("memory://b/run/a/t.json").read_bytes() == b"1"
    assert fetch_path("memory://b/run/a") == found / "a"
    assert read_all(fetch_path("memory://b")) == {f"run/{name}": data for name, data in results().items()}


def test_changes_replace_and_remove(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1", b_dot_json="2", c_dot_json="3")
    elsewhere(monkeypatch, tmp_path)
    with publish("memory://b/run") as folder:
        assert read_all(folder) == {"a.json": b"1", "b.json": b"2", "c.json": b"3"}
        write(folder, a_dot_json="10")
        (folder / "b.json").unlink()
    assert results() == {"a.json": b"10", "c.json": b"3"}
    elsewhere(monkeypatch, tmp_path, "third")
    assert read_all(fetch_path("memory://b/run")) == {"a.json": b"10", "c.json": b"3"}
    assert [name for name in held("/b/run") if "_roadaware" in name] == ["_roadaware/log/00000003.json"]


def test_what_a_worker_has_put_is_not_put_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a new file, a changed one, one that changes again before the commit, a folder that is renamed, and one elsewhere."""
    monkeypatch.setattr(storage, "_SHARED", ("memory",))
    monkeypatch.setattr(storage, "_OUTLETS", {})
    with publish("memory://b/run") as folder:
        write(folder, old_dot_json="1")
    puts: list[str] = []
    real = storage._Store.put

    def count(self: Any, name: str, content: Any, *, new: bool = False) -> None:
        puts.append(name)
        real(self, name, content, new=new)

    monkeypatch.setattr(storage._Store, "put", count)
    with publish("memory://b/run") as folder:
        with collect_written() as written:
            for name in ("new", "old", "again"):
                write_atomically(folder / f"{name}.json", b"2")
            room = folder / ".scene.unfinished"
            room.mkdir()
            write_atomically(room / "tables.json", b"3")
            replace_folder(room, folder / "scene")
            write_atomically(tmp_path / "elsewhere.json", b"4")
        send_written(written)
        sent = [name for name in puts if name.endswith(".json") and not name.startswith("_roadaware/")]
        assert sorted(sent) == ["again.json", "new.json", "old.json", "scene/tables.json"]
        # A reader still sees what the log says.
        elsewhere(monkeypatch, tmp_path, "early")
        assert read_all(fetch_path("memory://b/run")) == {"old.json": b"1"}
        monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
        write_atomically(folder / "again.json", b"5")
        puts.clear()
    assert "new.json" not in puts
    assert "scene/tables.json" not in puts
    expected = {"new.json": b"2", "old.json": b"2", "again.json": b"5", "scene/tables.json": b"3"}
    assert results() == expected
    elsewhere(monkeypatch, tmp_path)
    assert read_all(fetch_path("memory://b/run")) == expected


def test_a_worker_of_an_overtaken_writer_puts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_SHARED", ("memory",))
    monkeypatch.setattr(storage, "_OUTLETS", {})
    made = Publication("memory://b/run", folder=True)
    made.path.mkdir()
    MEMORY.pipe_file("/b/run/_roadaware/lease.json", b'{"id": "x", "holder": "another"}')
    with collect_written() as written:
        write_atomically(made.path / "a.json", b"1")
    send_written(written)
    assert results() == {}
    with pytest.raises(UsageError, match="another"):
        made.close()


@pytest.mark.parametrize(
    "damage",
    [b"", b'["a.json", 1', b"\xff", b"\xff\n", b'["a.json", 1]\n', b'["a.json", "1", 2, 3, 4]\n', b"5\n"],
)
def test_half_a_note_of_a_killed_worker_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    monkeypatch.setattr(storage, "_SHARED", ("memory",))
    monkeypatch.setattr(storage, "_OUTLETS", {})
    with publish("memory://b/run") as folder:
        folder.mkdir()
        with collect_written() as written:
            write_atomically(folder / "a.json", b"1")
        send_written(written)
        (note,) = (folder.parent / "notes").iterdir()
        note.write_bytes(damage)
    assert results() == {"a.json": b"1"}


class _StopError(Exception):
    """A writer is gone."""


def crash_at(monkeypatch: pytest.MonkeyPatch, count: int) -> Callable[[], None]:
    """Let the store's client fail for good at a write or removal, and the lease stay where it is."""
    left = [count]
    before = {name: getattr(MEMORY, name) for name in ("pipe_file", "put_file", "rm_file")}

    def gone(name: str) -> Callable[..., Any]:
        def act(*words: Any, **how: Any) -> Any:
            if "lease" not in str(words):
                left[0] -= 1
            if left[0] < 0:
                raise PermissionError("gone")
            return before[name](*words, **how)

        return act

    for name in before:
        monkeypatch.setattr(MEMORY, name, gone(name), raising=False)
    return lambda: [monkeypatch.setattr(MEMORY, name, act) for name, act in before.items()] and None


def change_run() -> bool:
    """Whether the store did not take the second commit."""
    made = Publication("memory://b/run", folder=True)
    write(made.path, a_dot_json="10", c_dot_json="30")
    (made.path / "b.json").unlink()
    try:
        made.close()
    except DiskError:
        return True
    return False


@pytest.mark.parametrize("conditional", [True, False])
def test_a_reader_sees_one_commit_or_the_next_wherever_a_writer_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, conditional: bool
) -> None:
    old, new = {"a.json": b"1", "b.json": b"2"}, {"a.json": b"10", "c.json": b"30"}
    pipe = MEMORY.pipe_file

    def refuse(path: str, data: bytes, mode: str = "overwrite", **how: Any) -> None:
        if mode == "create":
            raise OSError(38, "Conditional object PUTs are not supported.")
        pipe(path, data, **how)

    if not conditional:
        monkeypatch.setattr(MEMORY, "pipe_file", refuse)
    seen = set()
    for count in range(40):
        MEMORY.store.clear()
        elsewhere(monkeypatch, tmp_path, f"{count}-writer")
        with publish("memory://b/run") as folder:
            write(folder, a_dot_json="1", b_dot_json="2")
        mend = crash_at(monkeypatch, count)
        failed = change_run()
        mend()
        if not conditional:
            monkeypatch.setattr(MEMORY, "pipe_file", refuse)
        home = os.environ["ROADAWARE_HOME"]
        elsewhere(monkeypatch, tmp_path, f"{count}-reader")
        found = read_all(fetch_path("memory://b/run"))
        assert found in (old, new)
        seen.add((failed, found == new))
        # Who comes back writes what it has kept.
        monkeypatch.setenv("ROADAWARE_HOME", home)
        with publish("memory://b/run") as folder:
            assert read_all(folder) == new
        assert results() == new
        assert len([name for name in held("/b/run") if "_roadaware" in name]) == 1
        if not failed:
            break
    assert seen == {(True, False), (True, True), (False, True)}


def test_what_was_whole_before_an_error_is_kept() -> None:
    def work() -> None:
        with publish("memory://b/run") as folder:
            write(folder, a_dot_json="1")
            raise _StopError

    with pytest.raises(_StopError):
        work()
    assert results() == {"a.json": b"1"}


def test_long_work_is_committed_on_the_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(storage, "_COMMIT_S", 0.0)
    made = Publication("memory://b/run", folder=True)
    with closing(made):
        for number in range(3):
            write(made.path, **{f"part-{number}_dot_json": str(number)})
            name, deadline = f"part-{number}.json", threading.Event()
            for _ in range(200):
                if name in results():
                    break
                deadline.wait(0.02)
            assert results()[name] == str(number).encode()
    assert len([name for name in held("/b/run") if "_roadaware/log" in name]) == 1
    elsewhere(monkeypatch, tmp_path)
    assert sorted(read_all(fetch_path("memory://b/run"))) == ["part-0.json", "part-1.json", "part-2.json"]


def test_a_commit_on_the_way_takes_no_list_without_what_it_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Publication("memory://b/run", folder=True)
    with closing(made):
        write(made.path, old_dot_json="1")
        os.utime(made.path / "old.json", ns=(10**18, 10**18))
        write(made.path, new_dot_json="2")  # of this very moment: what it lists may not have been seen
        made._commit(whole=False)
        assert results() == {"old.json": b"1"}
    assert results() == {"old.json": b"1", "new.json": b"2"}


def test_two_writers_on_one_machine() -> None:
    refused = []

    def second() -> None:
        with pytest.raises(UsageError, match="is being written to") as caught:
            Publication("memory://b/run", folder=True)
        refused.append(str(caught.value))

    with publish("memory://b/run"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert refused


def test_two_writers_on_two_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
        elsewhere(monkeypatch, tmp_path)
        with pytest.raises(UsageError, match=r"is being written to by process \d+ on "):
            Publication("memory://b/run", folder=True)
    with publish("memory://b/run") as folder:
        assert read_all(folder) == {"a.json": b"1"}


def test_the_lease_of_a_writer_that_is_gone_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(run___roadaware__lease_dot_json='{"id": "x", "holder": "1 on a", "beat": 7}')
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    assert results() == {"a.json": b"1"}


def test_who_lost_the_lease_writes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Publication("memory://b/run", folder=True)
    write(made.path, a_dot_json="1")
    put(run___roadaware__lease_dot_json='{"id": "x", "holder": "1 on a", "beat": 7}')
    made._threads[0].join(10)
    with pytest.raises(UsageError, match="was taken over by process 1 on a"):
        made.close()
    assert results() == {}
    assert json.loads(MEMORY.cat_file("/b/run/_roadaware/lease.json"))["id"] == "x"


def test_who_was_overtaken_writes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Publication("memory://b/run", folder=True)
    write(made.path, a_dot_json="1")
    put(
        run___roadaware__log__00000001_dot_json='{"format": "roadaware-storage", "base": true, "files": {}, "removed": []}'
    )
    with pytest.raises(UsageError, match="was written to by another process meanwhile"):
        made.close()


def test_an_answer_that_is_lost_is_no_other_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, lost = MEMORY.pipe_file, []

    def lose(path: str, data: bytes, mode: str = "overwrite", **how: Any) -> None:
        pipe(path, data, mode=mode, **how)
        if "/log/" in path and not lost:
            lost.append(path)
            raise TimeoutError

    monkeypatch.setattr(MEMORY, "pipe_file", lose)
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    assert len(lost) == 1
    assert results() == {"a.json": b"1"}


def test_a_server_that_only_says_412_knows_that_a_file_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As s3fs gives it of servers that do not name the condition, such as Swift's s3api."""
    put_file, asked = MEMORY.put_file, []

    class ClientError(Exception):
        response = {"Error": {"Code": "PreconditionFailed"}, "ResponseMetadata": {"HTTPStatusCode": 412}}  # noqa: RUF012

    def answer(here: str, path: str, **how: Any) -> None:
        try:
            put_file(here, path, **how)
        except FileExistsError:
            asked.append(path)
            raise OSError(errno.EINVAL, "At least one of the preconditions did not hold.") from ClientError()

    monkeypatch.setattr(MEMORY, "put_file", answer)
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    assert not asked
    put(run__b_dot_json="of somebody else")
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="2", b_dot_json="3")
    assert read_all(fetch_path("memory://b/run")) == {"a.json": b"2", "b.json": b"3"}
    assert asked
    assert len(asked) == len(set(asked))  # none is tried again


def test_requests_are_tried_again_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    put(set__a_dot_json="1")
    get, tries = MEMORY.get_file, []

    def fail(*words: Any, **how: Any) -> None:
        tries.append(1)
        if len(tries) != 3:
            raise TimeoutError("busy\nsecond line")
        get(*words, **how)

    monkeypatch.setattr(MEMORY, "get_file", fail)
    assert read_all(fetch_path("memory://b/set")) == {"a.json": b"1"}
    put(set__a_dot_json="2")
    with pytest.raises(
        InputError, match=r"memory://b/set: could not be fetched: TimeoutError: busy\n  Try it again"
    ):
        fetch_path("memory://b/set")
    assert len(tries) == 6


def test_a_single_file_is_put_at_once() -> None:
    made = Publication("memory://b/page.html", folder=False)
    assert not made.path.exists()
    made.path.write_text("page")
    made.close()
    assert held() == {"page.html": b"page"}
    again = Publication("memory://b/page.html", folder=False)
    assert again.path.is_file()  # so that rules on what is there hold
    again.close()
    assert held() == {"page.html": b"page"}


def test_what_an_earlier_command_left_of_a_file_is_not_put() -> None:
    made = Publication("memory://b/page.html", folder=False)
    made.path.write_text("page")
    made.close()
    MEMORY.rm_file("/b/page.html")
    again = Publication("memory://b/page.html", folder=False)
    assert not again.path.exists()
    again.close()
    assert held() == {}


def test_films_of_a_large_run_leave_the_disk_once_they_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(storage.GIGABYTES, str(1.5 * LARGE / 1e9))
    with publish("memory://b/run") as folder:
        for number in range(3):
            write(folder, **{f"{number}_dot_mp4": bytes([number]) * LARGE})
            os.utime(folder / f"{number}.mp4", ns=(number + 1, number + 1))
    assert [(folder / f"{n}.mp4").stat().st_blocks * 512 > LARGE / 2 for n in range(3)] == [
        False,
        False,
        True,
    ]
    assert read_file(folder / "0.mp4") == bytes([0]) * LARGE
    with publish("memory://b/run") as folder:
        write(folder, d_dot_json="1")
    assert results() == {"d.json": b"1", **{f"{n}.mp4": bytes([n]) * LARGE for n in range(3)}}


# Two writers, of which the slower one wakes at any moment.


@pytest.mark.parametrize("count", range(24))
def test_whoever_was_overtaken_changes_nothing_that_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int
) -> None:
    """One writer stands still at its n-th request, another takes over and comes to its end, the first goes on."""
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1", b_dot_json="2", c_dot_json="3")
    elsewhere(monkeypatch, tmp_path, "slow")
    slow = Publication("memory://b/run", folder=True)
    stands, goes, left = threading.Event(), threading.Event(), [count]
    slow_threads: set[int] = set()
    before = {
        name: getattr(MEMORY, name) for name in ("pipe_file", "put_file", "rm_file", "cat_file", "find")
    }

    def halt(name: str) -> Callable[..., Any]:
        def act(*words: Any, **how: Any) -> Any:
            if threading.get_ident() in slow_threads and not stands.is_set():
                left[0] -= 1
                if left[0] < 0:
                    stands.set()
                    assert goes.wait(60)
            return before[name](*words, **how)

        return act

    for name in before:
        monkeypatch.setattr(MEMORY, name, halt(name), raising=False)
    # Its other threads stand still as well, and all its uploads are of one thread, which can be told from others.
    monkeypatch.setattr(slow, "_renew", lambda: None)
    monkeypatch.setattr(storage, "_spread", lambda act, names, what: map(act, list(names)))
    write(slow.path, a_dot_json="10", d_dot_json="40", e_dot_json="slow")
    (slow.path / "b.json").unlink()
    said: list[str] = []

    def end() -> None:
        slow_threads.add(threading.get_ident())
        try:
            slow.close()
        except UsageError as error:
            said.append(str(error))

    thread = threading.Thread(target=end)
    thread.start()
    while thread.is_alive() and not stands.wait(0.02):
        pass
    elsewhere(monkeypatch, tmp_path, "fast")
    fast = Publication("memory://b/run", folder=True)
    write(fast.path, a_dot_json="100", b_dot_json="200", d_dot_json="400")
    (fast.path / "c.json").unlink()
    expected = {"a.json": b"100", "b.json": b"200", "d.json": b"400"}
    if "e.json" in read_all(fast.path):  # the slow one had committed before
        expected["e.json"] = b"slow"
    fast.close()
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "slow"))
    goes.set()
    thread.join(60)
    assert not thread.is_alive()
    elsewhere(monkeypatch, tmp_path, "reader")
    assert read_all(fetch_path("memory://b/run")) == expected
    # And the next writer goes on from there.
    elsewhere(monkeypatch, tmp_path, "third")
    with publish("memory://b/run") as folder:
        assert read_all(folder) == expected
        write(folder, f_dot_json="6")
    elsewhere(monkeypatch, tmp_path, "last")
    assert read_all(fetch_path("memory://b/run")) == {**expected, "f.json": b"6"}
    if "e.json" not in expected:
        ((kept,),) = [
            [line.rpartition(" is kept in ")[2] for line in text.splitlines()[-1:]] for text in said
        ]
        found = {path.name: path.read_bytes() for path in Path(kept).iterdir()}
        assert found.items() >= {"a.json": b"10", "d.json": b"40", "e.json": b"slow"}.items()


def test_a_long_upload_keeps_the_lease(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = Publication("memory://b/run", folder=True)
    write(made.path, a_dot_json="1")
    pipe, goes, begun = MEMORY.put_file, threading.Event(), threading.Event()

    def wait(*words: Any, **how: Any) -> None:
        begun.set()
        assert goes.wait(30)
        pipe(*words, **how)

    monkeypatch.setattr(MEMORY, "put_file", wait)
    thread = threading.Thread(target=made.close)
    thread.start()
    assert begun.wait(10)
    elsewhere(monkeypatch, tmp_path)
    with pytest.raises(UsageError, match="is being written to by process"):
        Publication("memory://b/run", folder=True)
    goes.set()
    thread.join(30)
    assert results() == {"a.json": b"1"}


def test_a_long_fetch_keeps_the_lease(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    get, goes, begun = type(MEMORY).get_file, threading.Event(), threading.Event()

    def wait(*words: Any, **how: Any) -> None:
        begun.set()
        assert goes.wait(30)
        get(*words, **how)

    monkeypatch.setattr(type(MEMORY), "get_file", wait)  # each thread has a client of its own
    elsewhere(monkeypatch, tmp_path, "second")
    thread = threading.Thread(target=lambda: Publication("memory://b/run", folder=True).close())
    thread.start()
    assert begun.wait(10)
    elsewhere(monkeypatch, tmp_path, "third")
    with pytest.raises(UsageError, match="is being written to by process"):
        Publication("memory://b/run", folder=True)
    goes.set()
    thread.join(30)


def test_files_that_another_writer_has_put_are_not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1")
    made = Publication("memory://b/run", folder=True)
    write(made.path, a_dot_json="2")
    pipe = MEMORY.pipe_file

    def put_then(path: str, data: bytes, **how: Any) -> None:
        pipe(path, data, **how)
        if path.endswith("log/00000003.json"):  # the base: from now on somebody else may write
            put(run___roadaware__files__other="theirs")

    monkeypatch.setattr(MEMORY, "pipe_file", put_then)
    made.close()
    assert held()["run/_roadaware/files/other"] == b"theirs"
    assert results() == {"a.json": b"2"}


def test_work_of_a_killed_command_is_kept_where_another_machine_went_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1", b_dot_json="2")
    killed = Publication("memory://b/run", folder=True)
    write(killed.path, a_dot_json="hours of work", new_dot_json="more")
    for event in (killed._stop, killed._over):
        event.set()
    for thread in killed._threads:
        thread.join()
    killed._hold.release()
    home = os.environ["ROADAWARE_HOME"]
    elsewhere(monkeypatch, tmp_path)
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="theirs")
    monkeypatch.setenv("ROADAWARE_HOME", home)
    monkeypatch.setenv("ROADAWARE_MIRRORS", "{}")
    with publish("memory://b/run") as folder:
        assert read_all(folder) == {"a.json": b"theirs", "b.json": b"2"}
    (said,) = [each.getMessage() for each in caplog.records if "is kept in" in each.getMessage()]
    kept = Path(said.rpartition("is kept in ")[2])
    assert read_all(kept) == {"a.json": b"hours of work", "new.json": b"more"}
    # Once: what is in the store is nobody's lost work.
    elsewhere(monkeypatch, tmp_path)
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="again")
    monkeypatch.setenv("ROADAWARE_HOME", home)
    with publish("memory://b/run") as folder:
        assert read_all(folder)["a.json"] == b"again"
    assert len(list((Path(home) / "storage/kept").iterdir())) == 1


def test_the_same_machine_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = Publication("memory://b/run", folder=True)
    write(killed.path, a_dot_json="1")
    for event in (killed._stop, killed._over):
        event.set()
    for thread in killed._threads:
        thread.join()
    killed._hold.release()
    monkeypatch.setattr(
        storage, "_BEAT_S", 1.0
    )  # three of them would pass in wait for a process that is gone
    slept: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", slept.append)
    with publish("memory://b/run") as folder:
        assert read_all(folder) == {"a.json": b"1"}
    assert sum(slept) < 0.5
    assert results() == {"a.json": b"1"}


# Bounds, permissions, secrets.


def test_what_must_come_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    put(**{f"set__{k}_dot_json": bytes(LARGE) for k in range(3)}, set__drive_dot_mp4=bytes(10 * LARGE))
    monkeypatch.setenv(storage.GIGABYTES, str(2.5 * LARGE / 1e9))
    with pytest.raises(
        InputError, match=r"memory://b/set: 3 files with 0\.6 MB must be fetched at once.*\n.*GB=1"
    ):
        fetch_path("memory://b/set")
    assert fetch_path("memory://b/set/0.json").stat().st_size == LARGE
    monkeypatch.setenv(storage.GIGABYTES, str(3 * LARGE / 1e9))
    assert len(list(fetch_path("memory://b/set").iterdir())) == 4
    put(**{f"more__{k}_dot_json": bytes(LARGE) for k in range(3)})
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(DiskError, match="do not fit onto the disk"):
        fetch_path("memory://b/more")


def test_tables_in_parquet_come_when_they_are_opened() -> None:
    table = pl.DataFrame({"a": np.random.default_rng(0).random(LARGE // 8)})
    stream = io.BytesIO()
    table.write_parquet(stream, compression="uncompressed")
    put(set__t_dot_parquet=stream.getvalue())
    path = fetch_path("memory://b/set") / "t.parquet"
    assert path.stat().st_blocks * 512 < LARGE / 2
    with pytest.raises(DamagedError, match="expected 10 bytes"):
        read_regular(path, limit=10)
    assert read_regular(path, limit=2 * LARGE) == stream.getvalue()
    assert read_parquet(path).equals(table)
    assert scan_parquet(path).collect().equals(table)
    assert scan_parquet([path, path]).collect().height == 2 * table.height
    # Under another name as well, and stored from there as what it stands for.
    with publish("memory://b/set") as folder:
        assert (folder / "t.parquet").stat().st_blocks * 512 < LARGE / 2
        (folder / "t.parquet").rename(folder / "u.parquet")
        assert read_parquet(folder / "u.parquet").equals(table)
    assert results("/b/set") == {"u.parquet": stream.getvalue()}


def test_a_signature_stands_in_no_environment(server: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("in/drive.mp4", b"f" * LARGE)
    _Server.archive = (tmp_path / "set.zip").read_bytes()
    (tmp_path / "set.zip").unlink()
    url = f"zip://in::{server}/set.zip?X-Amz-Signature=abcdef0123456789"
    path = fetch_path(url) / "drive.mp4"
    assert not any("abcdef0123456789" in value for value in os.environ.values())
    assert read_file(path) == b"f" * LARGE
    # A process that this one starts reads it, too.
    ask = "import sys, pathlib; from roadaware.io.sources import read_file; print(len(read_file(pathlib.Path(sys.argv[1]))))"
    said = subprocess.run([sys.executable, "-c", ask, str(path)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(LARGE)
    assert not any(b"abcdef0123456789" in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())


def allow(monkeypatch: pytest.MonkeyPatch, prefix: str, *, removal: bool) -> None:
    """Let the store refuse whatever does not lie below a prefix, and say of what is not there that it is refused."""

    def guard(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str, *words: Any, **how: Any) -> Any:
            for each in (path, *words) if name == "cp_file" else (words[0] if name == "put_file" else path,):
                if not f"/{str(each).lstrip('/')}/".startswith(prefix) or (name == "rm_file" and not removal):
                    raise PermissionError("Forbidden")
            if name == "info" and path not in MEMORY.store:
                raise PermissionError("Forbidden")
            return act(path, *words, **how)

        return call

    for name in ("info", "find", "cat_file", "get_file", "put_file", "pipe_file", "rm_file", "cp_file"):
        monkeypatch.setattr(MEMORY, name, guard(name, getattr(MEMORY, name)), raising=False)


@pytest.mark.parametrize("removal", [True, False])
def test_who_may_use_what_is_below_a_prefix_alone_can_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, removal: bool
) -> None:
    put(set__x__drive_dot_mp4=b"film", other__file="s")
    allow(monkeypatch, "/b/run/", removal=removal)
    with publish("memory://b/run") as folder:
        write(folder, a_dot_json="1", b_dot_json="2")
    elsewhere(monkeypatch, tmp_path)
    with publish("memory://b/run") as folder:
        assert read_all(folder) == {"a.json": b"1", "b.json": b"2"}
        write(folder, a_dot_json="3")
        (folder / "b.json").unlink()
    logs = [name for name in held("/b/run") if "/log/" in name]
    elsewhere(monkeypatch, tmp_path, "third")
    assert read_all(fetch_path("memory://b/run")) == {"a.json": b"3"}
    assert fetch_path("memory://b/run/a.json").read_bytes() == b"3"
    with publish("memory://b/run"):
        pass
    assert [name for name in held("/b/run") if "/log/" in name] == logs
    with pytest.raises(InputError, match="Forbidden"):
        fetch_path("memory://b/other")
    with pytest.raises(InputError, match="Forbidden"), publish("memory://b/elsewhere"):
        pass
    monkeypatch.undo()


def test_a_place_below_a_prefix_is_read_without_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    put(set__x__a_dot_json="1")
    allow(monkeypatch, "/b/set/", removal=False)
    assert read_all(fetch_path("memory://b/set/x")) == {"a.json": b"1"}
    with pytest.raises(InputError, match="Forbidden"):
        fetch_path("memory://b/set/y")
    monkeypatch.undo()


@pytest.mark.parametrize(
    "listed",
    [
        {"/b/set/../../out.json": {"size": 1}},
        {"/b/set//out.json": {"size": 1}},
        {"/b/set/a\0": {"size": 1}},
        {"/b/set/\ud800": {"size": 1}},
        {"/etc/passwd": {"size": 1}},
        {"http://other/x": {"size": 1}},
        {"/b/set-2/x": {"size": 1}},
        {5: {"size": 1}},
        {"/b/set/a": None},
        {"/b/set/a": {"size": "1"}},
        {"/b/set/a": {"size": -1}},
        {"/b/set/a": {"size": 1 << 80}},
        {"/b/set/a": {"size": True}},
        {"/b/set/a": {"size": 1}, "/b/set/a/b": {"size": 1}},
        {"/b/set/_roadaware/log/x.json": {"size": 1}},
        {"/b/set/_roadaware/log/00000001.json": {"size": 1 << 40}},
    ],
)
def test_a_forged_list_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listed: dict[Any, Any]
) -> None:
    put(set__a="x")
    find = MEMORY.find
    monkeypatch.setattr(
        MEMORY,
        "find",
        lambda path, **how: (
            {
                key: facts
                for key, facts in listed.items()
                if not str(path).endswith("log") or str(key).startswith("/b/set/_roadaware")
            }
            if str(path).startswith("/b/set") and how.get("detail")
            else find(path, **how)
        ),
    )
    with pytest.raises(InputError, match=r"^memory://b/set"):
        fetch_path("memory://b/set")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def mutate_log(rng: random.Random, said: Any) -> bytes:
    """A log with something of it, at any depth, replaced, doubled or left out; or its bytes changed."""
    odd = [
        None,
        True,
        -1,
        0.5,
        1e308,
        10**30,
        "",
        "..",
        "../x",
        "/x",
        "a\0b",
        "\ud800",
        "x" * 300,
        "http://h/x",
        [],
        {},
        [[]],
    ]
    said = copy.deepcopy(said)
    for _ in range(rng.randint(1, 3)):
        place = said
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
                place = place[key]
                continue
            kind = rng.randrange(4)
            if kind == 0 and isinstance(place, dict):
                name = rng.choice([str(each) for each in odd])
                place[name] = place.pop(key)
            elif kind == 1:
                del place[key]
            else:
                place[key] = copy.deepcopy(rng.choice(odd))
            break
    data = bytearray(json.dumps(said).encode())
    while rng.random() < 0.3 and data:
        at = rng.randrange(len(data))
        data[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 3))
    return bytes(data)


def fuzz_logs(count: int, root: Path) -> dict[str, int]:
    """How often mutants of a log were read and refused; anything but an InputError that names the store is raised."""
    rng, outcomes = random.Random(23), dict.fromkeys(("read", "refused"), 0)  # noqa: S311
    digest = hashlib.blake2b(b"1", digest_size=16).hexdigest()
    key = f"_roadaware/files/0123456789abcdef-{digest}"
    good = {
        "format": "roadaware-storage",
        "base": True,
        "files": {
            "a.json": [1, 5, digest, ""],
            "d/b.json": [1, 5, digest, key],
            "film.mp4": [LARGE, 5, "", ""],
        },
        "removed": [],
        "pinned": ["d/b.json"],
    }
    for number in range(count):
        data = mutate_log(rng, good)
        MEMORY.store.clear()
        put(
            run__a_dot_json="1",
            run___roadaware__log__00000001_dot_json=data,
            **{f"run__{key.replace('/', '__')}": "1"},
        )
        shutil.rmtree(root / "home", ignore_errors=True)
        try:
            fetch_path("memory://b/run")
            outcomes["read"] += 1
        except InputError as error:
            said = str(error).encode()
            outcomes["refused"] += said.startswith(b"memory://b/run") and b"\0" not in said
        except Exception as error:
            raise AssertionError(f"mutant {number}: {data!r}") from error
    assert sum(outcomes.values()) == count
    assert not [path for path in root.rglob("*") if path.is_file() and not path.is_relative_to(root / "home")]
    return outcomes


@pytest.mark.slow
def test_mutants_of_a_log(tmp_path: Path) -> None:
    outcomes = fuzz_logs(int(os.environ.get("ROADAWARE_MUTANTS", "500")), tmp_path)
    print(outcomes)
    assert outcomes["refused"] > outcomes["read"] > 0


@pytest.mark.slow
def test_a_server_of_s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More files than a page lists, put and fetched by the client of S3; conditional puts as the server has them."""
    s3fs = pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "geheim-23",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
        film = os.urandom(LARGE)
        with publish("s3://bucket/run") as folder:
            write(folder, drive_dot_mp4=film, **{f"part-{k}_dot_json": str(k) for k in range(1100)})
        with publish("s3://bucket/run") as folder:
            write(folder, **{"part-0_dot_json": "changed"})
            (folder / "part-1.json").unlink()
        elsewhere(monkeypatch, tmp_path)
        found = read_all(fetch_path("s3://bucket/run"))
        assert found == {
            "drive.mp4": film,
            "part-0.json": b"changed",
            **{f"part-{k}.json": str(k).encode() for k in range(2, 1100)},
        }
        # A place without a log is listed, page by page.
        elsewhere(monkeypatch, tmp_path, "third")
        assert set(fetch_path("s3://bucket").joinpath("run").iterdir())
        with pytest.raises(DiskError, match="its bucket must be there"):
            Publication("s3://no-such-bucket/run", folder=True)
        assert not any(b"geheim-23" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        # A client that may read, list and put below a prefix alone: elsewhere, and of what is not there, it hears 403.
        call = s3fs.S3FileSystem._call_s3

        async def guard(self: Any, method: str, *words: Any, **how: Any) -> Any:
            if not how.get("Key", how.get("Prefix", "")).startswith("run/") or method == "delete_object":
                raise PermissionError("Forbidden")
            try:
                return await call(self, method, *words, **how)
            except FileNotFoundError as error:
                raise PermissionError("Forbidden") from error

        monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", guard)
        elsewhere(monkeypatch, tmp_path, "fourth")
        with publish("s3://bucket/run/new") as folder:
            write(folder, a_dot_json="1")
        with publish("s3://bucket/run/new") as folder:
            write(folder, a_dot_json="2")
        elsewhere(monkeypatch, tmp_path, "fifth")
        assert read_all(fetch_path("s3://bucket/run/new")) == {"a.json": b"2"}
        assert fetch_path("s3://bucket/run/part-2.json").read_bytes() == b"2"
        with pytest.raises(InputError, match="Forbidden"):
            fetch_path("s3://bucket/other")
    finally:
        server.stop()
