"""Folders and archives: read whole, never outside, never waiting; honest about what is wrong."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from source_folders import as_zip, packed, small_folder

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io import sources
from roadaware.io.sources import (
    FolderSource,
    Source,
    decode_utf_text,
    open_source,
    read_file,
    resolve_inside,
    to_printable,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "root")


@pytest.fixture(params=["folder", "zip", "zip with a folder around"])
def either(request: pytest.FixtureRequest, folder: Path) -> Source:
    if request.param == "folder":
        return open_source(folder)
    if request.param == "zip":
        return open_source(as_zip(folder))
    return open_source(as_zip(folder, "Set-1.0/")).at("Set-1.0")


def test_folder_and_archive_show_the_same(either: Source) -> None:
    with either:
        assert either.entries() == (["top.txt"], ["a"])
        assert either.entries("a") == (["one.xml"], ["b"])
        assert either.files("a", ".xml") == ["a/one.xml"]
        assert either.files("a/b") == ["a/b/two.xml"]
        assert either.files("nowhere", ".xml") == []
        assert either.read("a/b/two.xml") == b"<two/>"
        assert either.at("a").files("b", ".xml") == ["b/two.xml"]
        assert either.at("a").read("one.xml") == b"<one/>"
        assert either.has_folder("a/b")
        assert not either.has_folder("a/one.xml")
        with pytest.raises(InputError, match="no such file"):
            either.read("a/three.xml")


def test_contents_are_the_same_wherever_they_lie(folder: Path) -> None:
    names = ["a/one.xml", "top.txt", "absent"]
    with open_source(folder) as plain, open_source(as_zip(folder)) as zipped:
        assert plain.contents(names) == zipped.contents(names)
        before = plain.contents(names)
    (folder / "top.txt").write_bytes(b"TEXT")
    with open_source(folder) as changed:
        assert changed.contents(names) != before


def test_a_stamp_changes_with_size_time_and_presence(folder: Path) -> None:
    source, names = FolderSource(folder), ["a/one.xml", "top.txt"]
    seen = {source.stamp(names)}
    (folder / "top.txt").write_bytes(b"longer text")
    seen.add(source.stamp(names))
    os.utime(folder / "top.txt", ns=(1, 1))
    seen.add(source.stamp(names))
    (folder / "top.txt").unlink()
    seen.add(source.stamp(names))
    assert len(seen) == 4
    assert source.stamp(names) == source.stamp(reversed(names))


def test_the_stamp_of_an_archive_is_its_content(folder: Path, tmp_path: Path) -> None:
    first = as_zip(folder)
    copy = tmp_path / "copy.zip"
    copy.write_bytes(first.read_bytes())
    other = packed(tmp_path / "other.zip", {"top.txt": b"else"})
    with open_source(first) as a, open_source(copy) as b, open_source(other) as c:
        assert a.stamp([]) == b.stamp(["top.txt"]) != c.stamp([])


ESCAPES = [
    "../x",
    "a/../../x",
    "/etc/passwd",
    "C:\\x",
    "c:/x",
    "..\\x",
    "a\\..\\..\\x",
    "\\\\host\\x",
    "a\0b",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_never_leads_out(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match="leads out"):
        resolve_inside(folder, name)
    with pytest.raises(InputError, match="leads out"):
        FolderSource(folder).read(name)


@pytest.mark.parametrize("name", [name for name in ESCAPES if "\0" not in name])
def test_an_archive_with_an_escaping_name_is_refused(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "bad.zip", {"good.xml": b"<a/>", name: b"evil"})
    with pytest.raises(InputError, match=r"not to be trusted.*leads out"):
        open_source(path)


def test_links_inside_are_followed_and_links_out_are_not(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.xml").write_bytes(b"secret")
    (folder / "in.xml").symlink_to(folder / "a" / "one.xml")
    (folder / "out.xml").symlink_to(tmp_path / "secret.xml")
    (folder / "outside").symlink_to(tmp_path)
    (folder / "round.xml").symlink_to(folder / "round.xml")
    (folder / "dead.xml").symlink_to(folder / "gone")
    source = FolderSource(folder)
    assert source.read("in.xml") == b"<one/>"
    for name in ("out.xml", "outside/secret.xml"):
        with pytest.raises(InputError, match="a link leads out"):
            source.read(name)
    with pytest.raises(InputError, match="a link leads out"):
        source.files("outside", ".xml")
    with pytest.raises(InputError, match="run in a circle"):
        source.read("round.xml")
    with pytest.raises(InputError, match="no such file"):
        source.read("dead.xml")
    assert set(source.files("", ".xml")) == {"in.xml", "out.xml", "round.xml", "dead.xml"}


def test_what_is_no_file_is_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe.xml")
    (folder / "folder.xml").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s.xml"))
        source = FolderSource(folder)
        assert source.files("", ".xml") == ["folder.xml", "pipe.xml", "s.xml"]
        for name in ("pipe.xml", "s.xml"):
            with pytest.raises(InputError, match="not a regular file"):
                source.read(name)
    with pytest.raises(InputError, match="found a folder"):
        source.read("folder.xml")
    with pytest.raises(InputError, match="not a regular file"):
        read_file(Path("/dev/zero"))
    for path in (Path("/dev/zero"), folder / "pipe.xml"):
        with pytest.raises(InputError, match="not a regular file"):
            open_source(path)


def test_a_file_that_shrinks_or_grows_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "top.txt"
    drain = sources._drain
    for change in (b"", b"te", b"text and more"):
        path.write_bytes(b"text")

        def changing(read: Callable[[int], bytes | None], most: int, *, change: bytes = change) -> bytes:
            path.write_bytes(change)
            return drain(read, most)

        monkeypatch.setattr(sources, "_drain", changing)
        with pytest.raises(InputError, match=r"changed while it was read: . bytes of 4"):
            read_file(path)


def test_a_file_without_end_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "huge.xml").open("wb") as stream:
        stream.truncate(sources.MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="at most 268435456 bytes"):
        FolderSource(folder).read("huge.xml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_said(folder: Path) -> None:
    (folder / "top.txt").chmod(0)
    with pytest.raises(InputError, match="no permission"):
        FolderSource(folder).read("top.txt")
    (folder / "a").chmod(0)
    with pytest.raises(InputError, match="no permission"):
        FolderSource(folder).files("a", ".xml")


def test_permission_errors_are_translated() -> None:
    assert "change its permissions" in str(sources.build_read_error(PermissionError(13, "no"), "x"))
    assert "cannot be read" in str(sources.build_read_error(OSError(5, "I/O error"), "x"))
    assert "part of the path is a file" in str(sources.build_read_error(NotADirectoryError(20, "no"), "x"))


def test_a_missing_path_says_what_is_there(folder: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"nothing at .*/none .*root holds: a/, top.txt"):
        open_source(folder / "none")
    with pytest.raises(DatasetNotFoundError, match=r"root holds: a/"):
        open_source(folder / "none" / "at" / "all")


@pytest.mark.parametrize(
    "name", ["new\nline;x", "emoji 🚶", "ä" * 120, "b" * 251, os.fsdecode(b"latin-\xe9")]
)
def test_odd_names_are_read_and_printed_safely(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.xml").write_bytes(b"<a/>")
    source = FolderSource(tmp_path)
    assert source.files("", ".xml") == [f"{name}.xml"]
    assert source.read(f"{name}.xml") == b"<a/>"
    (tmp_path / f"{name}.xml").unlink()
    with pytest.raises(InputError) as caught:
        source.read(f"{name}.xml")
    assert str(caught.value).encode().decode().isprintable()


def test_shown_leaves_nothing_that_a_terminal_obeys() -> None:
    assert to_printable("a\x1b[2Jb\u202ec\udce9\n") == "a\\x1b[2Jb\\u202ec\\udce9\\n"
    assert to_printable("é 🚶") == "é 🚶"
    assert len(to_printable("x" * 999, 50)) == 50


def test_text_that_begins_like_parquet_is_text_and_parquet_is_none() -> None:
    rows = "PAR1_street,0,1\n"
    assert decode_utf_text(rows.encode(), "boxes.csv", expected="rows", hint="") == rows
    with pytest.raises(InputError, match="no text but Parquet"):
        decode_utf_text(b"PAR1" + bytes(9) + b"PAR1", "boxes.csv", expected="rows", hint="")
