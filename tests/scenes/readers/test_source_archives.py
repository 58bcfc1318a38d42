"""Archives as sources: damaged, hostile and packed in unusual ways."""

from __future__ import annotations

import os
import stat
import struct
import threading
import zipfile
from pathlib import Path

import pytest
from source_folders import as_zip, packed, small_folder

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io import sources as archives
from roadaware.io.sources import find_source, open_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "root")


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
        find_source(outer, lambda source: bool(source.files("a", ".xml")), "needs 'a/'", "Point at it.")


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
