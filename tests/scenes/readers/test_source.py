"""Folders and archives: read whole, never outside, never waiting; honest about what is wrong."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.readers import archive as archives
from roadaware.scenes.readers import locate as locating
from roadaware.scenes.readers import source as sources
from roadaware.scenes.readers.locate import locate, open_source
from roadaware.scenes.readers.source import FolderSource, Source, confine, read_file, shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.xml").write_bytes(b"<one/>")
    (root / "a" / "b" / "two.xml").write_bytes(b"<two/>")
    (root / "a" / ".hidden.xml").write_bytes(b"no")
    (root / "top.txt").write_bytes(b"text")
    return root


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def as_zip(folder: Path, prefix: str = "") -> Path:
    files = [path for path in folder.rglob("*") if path.is_file()]
    members = {prefix + path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return packed(folder.parent / "set.zip", members)


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
        confine(folder, name)
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
    assert "change its permissions" in str(sources.unreadable(PermissionError(13, "no"), "x"))
    assert "cannot be read" in str(sources.unreadable(OSError(5, "I/O error"), "x"))
    assert "part of the path is a file" in str(sources.unreadable(NotADirectoryError(20, "no"), "x"))


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
    assert shown("a\x1b[2Jb\u202ec\udce9\n") == "a\\x1b[2Jb\\u202ec\\udce9\\n"
    assert shown("é 🚶") == "é 🚶"
    assert len(shown("x" * 999, 50)) == 50


# Archives


def corrupt(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        stream.write(data)


def test_a_truncated_archive_is_refused(folder: Path) -> None:
    path = as_zip(folder)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"whole zip archive|is empty"):
            open_source(path)


def test_a_bad_checksum_costs_only_its_member(folder: Path) -> None:
    path = packed(folder.parent / "set.zip", {"a.xml": b"<a/>" * 50, "b.xml": b"<b/>"})
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("a.xml").header_offset
    corrupt(path, offset + 30 + len("a.xml") + 3, b"\xff\xff")
    with open_source(path) as source:
        assert source.read("b.xml") == b"<b/>"
        with pytest.raises(InputError, match="damaged here"):
            source.read("a.xml")


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    for size in (10, 10_000):
        path = packed(tmp_path / "lie.zip", {"a.xml": b"<a/>" * 500})
        data = bytearray(path.read_bytes())
        central = data.index(b"PK\x01\x02")
        struct.pack_into("<I", data, central + 24, size)
        path.write_bytes(bytes(data))
        with open_source(path) as source, pytest.raises(InputError, match=r"damaged|promises"):
            source.read("a.xml")


@pytest.mark.parametrize("place", ["directory", "both"])
def test_a_name_that_begins_with_nul_is_refused(tmp_path: Path, place: str) -> None:
    path = packed(tmp_path / "set.zip", {"annotations/a.xml": b"<a/>"})
    content = path.read_bytes()
    begin = content.rindex(b"annotations/a.xml")
    content = content[:begin] + b"\0" + content[begin + 1 :]
    if place == "both":
        content = content.replace(b"annotations/a.xml", b"\0nnotations/a.xml")
    path.write_bytes(content)
    with pytest.raises(InputError, match="has no name"):
        open_source(path)


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.xml", b"<a/>")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.xml", b"<b/>")
    with pytest.raises(InputError, match=r"'a.xml' stands in it twice"):
        open_source(path)


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link.xml")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match=r"'link.xml' is a link"):
        open_source(tmp_path / "link.zip")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "closed.zip", {"a.xml": b"<a/>"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is encrypted"):
        open_source(path)


def test_an_unusual_packing_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.xml", b"<a/>" * 99)
    with pytest.raises(InputError, match="unusual way"):
        open_source(tmp_path / "odd.zip")


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "over.zip", {"a.xml": b"<a/>" * 99, "b.xml": b"<b/>" * 99})
    data = bytearray(path.read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<I", data, second + 42, 5)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="overlaps another"):
        open_source(path)


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "bomb.zip", {"zeros.xml": b"0" * (archives._BOMB_BYTES + 1)})
    with pytest.raises(InputError, match="would unpack to 67108865 bytes"):
        open_source(path)
    many = packed(tmp_path / "many.zip", {f"{n}.xml": b"0" * 9000 for n in range(20)})
    open_source(many).close()
    monkeypatch.setattr(archives, "_BOMB_BYTES", 100_000)
    monkeypatch.setattr(archives, "_BOMB_RATIO", 50)
    with pytest.raises(InputError, match="would unpack to 180000 bytes"):
        open_source(many)
    monkeypatch.setattr(archives, "_BOMB_RATIO", 1_000_000)
    monkeypatch.setattr(archives, "MAX_ARCHIVE_BYTES", 179_999)
    with pytest.raises(InputError, match="would unpack to 180000 bytes"):
        open_source(many)
    monkeypatch.setattr(archives, "MAX_ARCHIVE_BYTES", 180_000)
    with open_source(many) as source:
        source.most_bytes = 8999
        with pytest.raises(InputError, match="9000 bytes; files of at most 8999"):
            source.read("3.xml")


def test_an_archive_in_an_archive_stays_closed(folder: Path, tmp_path: Path) -> None:
    outer = packed(tmp_path / "outer.zip", {"inner.zip": as_zip(folder).read_bytes()})
    with pytest.raises(DatasetNotFoundError, match=r"saw: inner.zip"):
        locate(outer, lambda source: bool(source.files("a", ".xml")), "needs 'a/'", "Point at it.")


def test_threads_share_an_archive(folder: Path) -> None:
    path = packed(folder.parent / "set.zip", {f"{n}.xml": bytes([65 + n]) * 50_000 for n in range(20)})
    wrong: list[int] = []
    with open_source(path) as source:

        def work() -> None:
            wrong.extend(n for n in range(20) if source.read(f"{n}.xml") != bytes([65 + n]) * 50_000)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# Finding


def fits(source: Source) -> bool:
    return bool(source.files("a", ".xml"))


@pytest.mark.parametrize("depth", [0, 1, 2, 6])
def test_a_dataset_is_found_up_to_six_folders_down(folder: Path, tmp_path: Path, depth: int) -> None:
    outer = tmp_path / "outer"
    outer.joinpath(*["x"] * depth).parent.mkdir(parents=True, exist_ok=True)
    folder.rename(outer.joinpath(*["x"] * depth))
    assert locate(outer, fits, "needs 'a/'", "").read("a/one.xml") == b"<one/>"


def test_seven_folders_down_is_too_deep(folder: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.joinpath(*["x"] * 6).mkdir(parents=True)
    folder.rename(outer.joinpath(*["x"] * 7))
    with pytest.raises(DatasetNotFoundError, match=r"found none.*saw: x/"):
        locate(outer, fits, "needs 'a/'", "")


@pytest.mark.parametrize("prefix", ["", "Set/", "some/deep/xyz/", "1/2/3/4/5/6/"])
def test_an_archive_may_have_any_prefix(folder: Path, tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "set.zip"
    path.write_bytes(as_zip(folder, prefix).read_bytes())
    with locate(path, fits, "needs 'a/'", "") as found:
        assert found.prefix == prefix
        assert found.read("a/one.xml") == b"<one/>"
    with locate(tmp_path, lambda s: s.path == path.resolve() and fits(s), "needs 'a/'", "") as found:
        assert found.prefix == prefix


def test_two_in_an_archive_are_named(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "two.zip", {"x/one/a/1.xml": b"", "x/two/a/1.xml": b"", "x/y/deeper/a/1.xml": b""}
    )
    with pytest.raises(DatasetNotFoundError, match=r"have it: \S*two.zip/x/one/, \S*two.zip/x/two/\. Point"):
        locate(path, fits, "needs 'a/'", "")


def test_the_walk_through_folders_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locating, "_MOST_FOLDERS", 20)
    for outer in range(10):
        for inner in range(10):
            (tmp_path / f"{outer}" / f"{inner}" / "deep").mkdir(parents=True)
    seen: list[Source] = []
    with pytest.raises(DatasetNotFoundError):
        locate(tmp_path, lambda source: bool(seen.append(source)), "needs 'a/'", "")
    assert len(seen) == 21


def test_an_archive_lying_in_the_folder_is_found(folder: Path, tmp_path: Path) -> None:
    holder = tmp_path / "holder" / "deeper"
    holder.mkdir(parents=True)
    (holder / "broken.zip").write_bytes(b"PK")
    (holder / "foreign.zip").write_bytes(packed(tmp_path / "f.zip", {"x": b""}).read_bytes())
    (holder / "set.zip").write_bytes(as_zip(folder, "Set/").read_bytes())
    with locate(tmp_path / "holder", fits, "needs 'a/'", "") as found:
        assert (found.path.name, found.prefix) == ("set.zip", "Set/")


def test_two_that_fit_are_one_too_many(folder: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    for name in ("one", "two"):
        (outer / name / "a").mkdir(parents=True)
        (outer / name / "a" / "x.xml").write_bytes(b"")
    with pytest.raises(DatasetNotFoundError, match=r"several folders have it: .*one.*two.*Point at one"):
        locate(outer, fits, "needs 'a/'", "")


def test_none_that_fits_says_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError) as caught:
        locate(tmp_path, fits, "X needs 'a/'", "Point at the unpacked repository or its zip.")
    assert str(caught.value) == (
        f"X needs 'a/' and found none in {tmp_path} (saw: clips/). "
        "Point at the unpacked repository or its zip."
    )
    for n in range(12):
        (tmp_path / f"{n:02d}.txt").touch()
    with pytest.raises(DatasetNotFoundError, match=r"saw: clips/, 00.txt, .*, 06.txt, …"):
        locate(tmp_path, fits, "X", "")
