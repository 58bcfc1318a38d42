"""Ways to damage a file or an archive, each as one small function on bytes or on a path."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import zipfile
from pathlib import Path

BOX = re.compile(rb"<box\b[^>]*>.*?</box>", re.DOTALL)
MEBIBYTE = 1 << 20


def swap(data: bytes, old: str | bytes, new: bytes, *, nth: int = 0) -> bytes:
    """The data with the `nth` match of the pattern `old` replaced; the pattern must be there."""
    pattern = old.encode() if isinstance(old, str) else old
    found = list(re.finditer(pattern, data, re.DOTALL))[nth]
    return data[: found.start()] + new + data[found.end() :]


def before_root(data: bytes, text: str) -> bytes:
    return text.encode() + data


def inside_root(data: bytes, text: str | bytes) -> bytes:
    """Put a child in front of the root's end tag."""
    place = data.rindex(b"</")
    return data[:place] + (text.encode() if isinstance(text, str) else text) + data[place:]


def cut_mid_tag(data: bytes) -> bytes:
    middle = list(BOX.finditer(data))
    return data[: middle[len(middle) // 2].start() + 9]


def laughs(data: bytes) -> bytes:
    levels = "".join(
        f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' if i else '<!ENTITY l0 "haha">' for i in range(12)
    )
    return before_root(inside_root(data, "<x>&l11;</x>"), f"<!DOCTYPE a [{levels}]>")


def quadratic(data: bytes) -> bytes:
    entity = f'<!DOCTYPE a [<!ENTITY e "{"e" * 100_000}">]>'
    return before_root(inside_root(data, f"<x>{'&e;' * 20_000}</x>"), entity)


def external_entity(data: bytes, url: str) -> bytes:
    """An entity that stands for what lies at `url`, used in an attribute's text where an id is due."""
    opened = swap(data, rb'(?<=name="id">)[^<]*', b"&secret;")
    return before_root(opened, f'<!DOCTYPE a [<!ENTITY secret SYSTEM "{url}">]>')


def external_dtd(data: bytes, url: str) -> bytes:
    return before_root(data, f'<!DOCTYPE a SYSTEM "{url}">')


def parameter_entity(data: bytes, url: str) -> bytes:
    return before_root(data, f'<!DOCTYPE a [<!ENTITY % p SYSTEM "{url}"> %p;]>')


def deep(data: bytes, levels: int = 100_000) -> bytes:
    return inside_root(data, "<d>" * levels + "</d>" * levels)


def long_attribute(data: bytes) -> bytes:
    return swap(data, rb"<box ", b'<box long="' + b"a" * (12 * MEBIBYTE) + b'" ')


def other_root(data: bytes) -> bytes:
    name = re.match(rb"\s*(?:<\?[^>]*>)?\s*<(\w+)", data)
    assert name is not None
    root = name[1]
    return swap(swap(data, rb"<" + root + rb"\b", b"<elsewhere"), rb"</" + root + rb">\s*$", b"</elsewhere>")


def twin_box(data: bytes) -> bytes:
    """The first box once more, behind itself, one pixel wider."""
    first = BOX.search(data)
    assert first is not None
    twin = swap(first[0], rb'xbr="[^"]*"', b'xbr="999.5"')
    return data[: first.end()] + twin + data[first.end() :]


def twin_track(data: bytes) -> bytes:
    """The first track once more, at the end, some frames of its own."""
    track = re.search(rb"<track\b.*?</track>", data, re.DOTALL)
    assert track is not None
    return inside_root(data, track[0])


def decorated(data: bytes) -> bytes:
    """The same content with an instruction, a comment, a foreign namespace and CDATA sections in it."""
    opened = swap(data, rb"<track", b"<?note here?><!-- <box frame='0'/> --><track")
    opened = swap(opened, rb'(?<=name="id">)([^<]*)', b"<![CDATA[" + _first_id(data) + b"]]>")
    return inside_root(opened, '<f:extra xmlns:f="urn:f"><f:box frame="3"/></f:extra>')


def _first_id(data: bytes) -> bytes:
    found = re.search(rb'(?<=name="id">)[^<]*', data)
    assert found is not None
    return found[0]


def one_more(data: bytes, value: bytes) -> bytes:
    """JSON whose top, or the last object of whose list, has one more member, `d`."""
    end = -2 if data.endswith(b"}]") else -1
    return data[:end] + b', "d": ' + value + data[end:]


def packed(folder: Path, archive: Path, *, prefix: str = "") -> Path:
    """All files of `folder` in one zip, below `prefix`."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as held:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            held.writestr(prefix + path.relative_to(folder).as_posix(), path.read_bytes())
    return archive


def with_member(archive: Path, name: str, data: bytes, *, mode: int | None = None) -> Path:
    info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    if mode is not None:
        info.external_attr = mode << 16
    with zipfile.ZipFile(archive, "a") as held:
        held.writestr(info, data)
    return archive


def with_link(archive: Path, name: str, target: str) -> Path:
    return with_member(archive, name, target.encode(), mode=stat.S_IFLNK | 0o777)


def with_bomb(archive: Path, name: str, size: int = 65 * MEBIBYTE) -> Path:
    """A member of blanks behind a valid start: ratio about 1000, more than 64 MiB."""
    info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    blank = b" " * MEBIBYTE
    with zipfile.ZipFile(archive, "a") as held, held.open(info, "w") as member:
        member.write(b"<annotations>")
        for _ in range(size // MEBIBYTE):
            member.write(blank)
        member.write(b"</annotations>")
    return archive


def encrypted(archive: Path) -> Path:
    """Set the flag of encryption on every member, in both headers."""
    data = bytearray(archive.read_bytes())
    for start, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for place in _places(bytes(data), start):
            flags = struct.unpack_from("<H", data, place + offset)[0]
            struct.pack_into("<H", data, place + offset, flags | 1)
    archive.write_bytes(bytes(data))
    return archive


def flipped_in_member(archive: Path, name: str) -> Path:
    """Invert one byte in the middle of a member's packed data, so that its checksum fails."""
    with zipfile.ZipFile(archive) as held:
        info = held.getinfo(name)
    data = bytearray(archive.read_bytes())
    extra = struct.unpack_from("<HH", data, info.header_offset + 26)
    place = info.header_offset + 30 + sum(extra) + info.compress_size // 2
    data[place] ^= 0xFF
    archive.write_bytes(bytes(data))
    return archive


def without_directory(archive: Path) -> Path:
    data = archive.read_bytes()
    archive.write_bytes(data[: data.index(b"PK\x01\x02") + 20])
    return archive


def with_false_size(archive: Path, name: str, size: int) -> Path:
    """Declare another unpacked size for a member in both headers."""
    data = bytearray(archive.read_bytes())
    encoded = name.encode()
    for start, offset, named in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        for place in _places(bytes(data), start):
            if bytes(data[place + named : place + named + len(encoded)]) == encoded:
                struct.pack_into("<I", data, place + offset, size)
    archive.write_bytes(bytes(data))
    return archive


def overlapping(archive: Path, first: str, second: str) -> Path:
    """Let the directory's entry of `second` point to the data of `first`."""
    with zipfile.ZipFile(archive) as held:
        target = held.getinfo(first).header_offset
    data = bytearray(archive.read_bytes())
    encoded = second.encode()
    for place in _places(bytes(data), b"PK\x01\x02"):
        if bytes(data[place + 46 : place + 46 + len(encoded)]) == encoded:
            struct.pack_into("<I", data, place + 42, target)
    archive.write_bytes(bytes(data))
    return archive


def _places(data: bytes, start: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(start), data)]


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def as_link_out(path: Path, outside: Path) -> None:
    """Move the file out of the set and leave a link to it."""
    outside.mkdir(parents=True, exist_ok=True)
    moved = outside / path.name
    shutil.move(path, moved)
    path.symlink_to(moved)


def wider(data: bytes) -> bytes:
    return swap(data, rb'xbr="[^"]*"', b'xbr="1800.5"')


def same_size(data: bytes) -> bytes:
    return swap(data, rb'(?<=frame=")\d(?=")', b"7", nth=0)


CHANGES = {"cut": cut_mid_tag, "bad_row": twin_box, "changed": wider, "same_size": same_size}
"""Changes of an XML file: it breaks off; a row is bad; a row differs; so it does, in as many bytes."""
