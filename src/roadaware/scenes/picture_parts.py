"""Picture files by their parts: which way up they are, and the file without what its pixels do not need.

Text, thumbnails, colour profiles and EXIF are where decoders go wrong and where small files grow large, and
no pixel depends on them: they are taken out before a decoder sees the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

PNG_HEAD, JPEG_HEAD = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_TIFF_HEADS = {b"II*\0": "<", b"MM\0*": ">"}
_MOST_PARTS = 100_000
_MOST_SCANS = 100
_UPRIGHT, _ORIENTATION = 1, 0x0112
_XMP = re.compile(rb"tiff:Orientation\s*(?:=\s*[\"']|>)\s*(\d{1,6})")
_EXIF, _XMP_APP1 = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
# Markers without a length: fill, start and end of the picture, restarts.
_ALONE = {0x00, 0x01, 0xD8, *range(0xD0, 0xD8)}
_SCAN, _END = 0xDA, 0xD9
# Among pixels: what is neither a byte of theirs, nor a restart, nor fill.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
# Of the segments of a JPEG for applications, JFIF and Adobe's say what its colours mean.
_LEFT_OUT = {*range(0xE1, 0xEE), 0xEF, 0xFE}
_PNG_KEPT = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
# Layout, compression and colours of the pixels of a TIFF.
_TIFF_KEPT = {
    *(254, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 292, 293, 317, 320, 322, 323, 324, 325),
    *(338, 339, 347, 512, 513, 514, 515, 517, 518, 519, 520, 521, 529, 530, 531, 532),
}
_TIFF_SIDES = (322, 323)
_TIFF_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}


class PictureParts(NamedTuple):
    """A picture file as it is given to a decoder.

    Args:
        plain: the file without what its pixels do not need.
        orientation: how it is turned, 1 to 8 as EXIF counts; None where that is said and cannot be read.
    """

    plain: bytes
    orientation: int | None


def picture_parts(data: bytes, most_pixels: int) -> PictureParts:
    """The parts of a JPEG, PNG, WebP or TIFF file; any other is plain as it is.

    Args:
        data: the file.
        most_pixels: of a tile.

    Raises:
        ValueError: if it promises more than it holds, or has more parts than any picture needs.
    """
    if data.startswith(JPEG_HEAD):
        return _jpeg(data)
    if data.startswith(PNG_HEAD):
        return _png(data)
    if data[:4] in _TIFF_HEADS:
        return _tiff(data, most_pixels)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return PictureParts(data, _UPRIGHT)


def jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker of each segment of a JPEG before its pixels, where the segment begins, and where it ends.

    The last one is the first scan, or what ends too early. Junk between segments is passed over.

    Args:
        data: the file, or its first bytes.
    """
    place = 2
    for _ in range(_MOST_PARTS):
        place = data.find(b"\xff", place)
        if place < 0 or place + 4 > len(data):
            return
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _ALONE:
            place += 2
        else:
            end = place + 2 + max(2, int.from_bytes(data[place + 2 : place + 4], "big"))
            yield marker, place, end
            if marker in (_SCAN, _END):
                return
            place = end
    raise ValueError(f"more than {_MOST_PARTS} segments")


def _jpeg(data: bytes) -> PictureParts:
    kept, exif, xmp = [JPEG_HEAD], b"", b""
    for marker, start, end in jpeg_segments(data):
        if marker == _SCAN:
            kept.append(data[start : _jpeg_end(data, start)])
        elif marker not in _LEFT_OUT:
            kept.append(data[start:end])
        elif marker == 0xE1 and data[start + 4 : start + 10] == _EXIF:
            exif += data[start + 10 : end]
        elif marker == 0xE1 and data[start + 4 :].startswith(_XMP_APP1):
            xmp = xmp or data[start + 4 + len(_XMP_APP1) : end]
    return PictureParts(b"".join(kept), _orientation(exif, xmp))


def _jpeg_end(data: bytes, place: int) -> int:
    """Where the scans of a JPEG end that begin at a place; a film or another picture may follow.

    A progressive picture of a few kilobytes could ask for thousands of passes over all of its pixels.
    """
    scans = 0
    for _ in range(_MOST_PARTS):
        found = _MARKER.search(data, place)
        if found is None:
            return len(data)
        marker = data[found.start() + 1]
        if marker == _END:
            return found.end()
        if marker == _SCAN:
            scans += 1
        place = found.end() + max(2, int.from_bytes(data[found.end() : found.end() + 2], "big"))
        if scans > _MOST_SCANS:
            raise ValueError(f"more than {_MOST_SCANS} scans")
    raise ValueError(f"more than {_MOST_PARTS} segments")


def _png(data: bytes) -> PictureParts:
    kept, exif, xmp = [PNG_HEAD], b"", b""
    place = len(PNG_HEAD)
    for _ in range(_MOST_PARTS):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        end = place + 12 + length
        if kind in _PNG_KEPT or len(kind) < 4:
            kept.append(data[place:end])
        elif kind == b"eXIf":
            exif = data[place + 8 : end - 4]
        elif kind == b"iTXt" and data[place + 8 :].startswith(b"XML:com.adobe.xmp\0"):
            xmp = data[place + 8 : end - 4]
        place = end
        if place >= len(data) or kind == b"IEND":
            return PictureParts(b"".join(kept), _orientation(exif, xmp))
    raise ValueError(f"more than {_MOST_PARTS} chunks")


def _webp(data: bytes) -> PictureParts:
    found, place = {b"EXIF": b"", b"XMP ": b""}, 12
    for _ in range(_MOST_PARTS):
        kind, length = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        if kind in found:
            found[kind] = data[place + 8 : place + 8 + length]
        place += 8 + length + length % 2
        if place + 8 > len(data):
            return PictureParts(data, _orientation(found[b"EXIF"], found[b"XMP "]))
    raise ValueError(f"more than {_MOST_PARTS} chunks")


def _tiff(data: bytes, most_pixels: int) -> PictureParts:
    """A TIFF with its first picture alone, described by no more than its pixels need."""
    order = _TIFF_HEADS[data[:4]]
    start, entries = _directory(data, order)
    kept = [entry for entry in entries if entry[0] in _TIFF_KEPT]
    promised = sum(_TIFF_BYTES.get(kind, 0) * count for _, kind, count, _ in kept)
    if promised > len(data):
        raise ValueError(f"its directory promises {promised} bytes, {len(data)} are there")
    sides = [_number(order, entry) or 0 for entry in kept if entry[0] in _TIFF_SIDES]
    if len(sides) > 2 or (len(sides) == 2 and sides[0] * sides[1] > most_pixels):
        raise ValueError(f"tiles of {'x'.join(map(str, sides))}; up to {most_pixels} pixels are read")
    packed = [struct.pack(f"{order}HHI4s", *entry) for entry in kept]
    made = struct.pack(f"{order}H", len(kept)) + b"".join(packed)
    made = made.ljust(2 + 12 * len(entries) + 4, b"\0")
    return PictureParts(data[:start] + made + data[start + len(made) :], _orientation(data, b""))


_Entry = tuple[int, int, int, bytes]


def _directory(data: bytes, order: str) -> tuple[int, list[_Entry]]:
    """Where the first directory of a TIFF begins; tag, type, count and value of its entries.

    Raises:
        ValueError: if it is not all there.
    """
    start = int(struct.unpack_from(f"{order}I", data, 4)[0]) if len(data) >= 8 else 0
    if not 8 <= start <= len(data) - 2:
        raise ValueError("its directory is not there")
    count = int(struct.unpack_from(f"{order}H", data, start)[0])
    if start + 2 + 12 * count > len(data):
        raise ValueError("its directory is cut off")
    return start, list(struct.iter_unpack(f"{order}HHI4s", data[start + 2 : start + 2 + 12 * count]))


def _number(order: str, entry: _Entry) -> int | None:
    """The value of an entry that holds one whole number of two or four bytes."""
    form = {3: "H", 4: "I"}.get(entry[1])
    if form is None or entry[2] != 1:
        return None
    return int(struct.unpack_from(order + form, entry[3])[0])


def _orientation(exif: bytes, xmp: bytes) -> int | None:
    """What EXIF says, or else XMP; upright where neither says anything."""
    said: int | None = _UPRIGHT
    found = _XMP.search(xmp)
    if found:
        said = int(found[1])
    if exif := exif.removeprefix(_EXIF):
        order = _TIFF_HEADS.get(exif[:4])
        if order is None:
            return None
        try:
            _, entries = _directory(exif, order)
        except ValueError:
            return None
        for entry in entries:
            if entry[0] == _ORIENTATION:
                said = _number(order, entry)
    return said if said is not None and 1 <= said <= 8 else None
