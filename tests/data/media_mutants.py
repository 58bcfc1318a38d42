"""Mutants of videos, sounds, images and their metadata, each made of a target and a number alone."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable

import media_files as files

Change = Callable[[bytearray, random.Random], None]
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 10**8, 10**9, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_WORDS = (
    *(
        b"encv",
        b"enca",
        b"mp4a",
        b"hvc1",
        b"av01",
        b"vp09",
        b"raw ",
        b"jpeg",
        b"apcn",
        b"drms",
        b"tmcd",
        b"rtp ",
    ),
    *(
        b"XXXX",
        b"moov",
        b"moof",
        b"mdat",
        b"cmov",
        b"dref",
        b"alis",
        b"url ",
        b"stco",
        b"stsz",
        b"trun",
        b"elst",
    ),
    *(
        b"RIFF",
        b"LIST",
        b"idx1",
        b"OpDM",
        b"IHDR",
        b"IDAT",
        b"acTL",
        b"fdAT",
        b"eXIf",
        b"iCCP",
        b"WEBP",
        b"VP8X",
    ),
    *(
        b"\xff\xc0",
        b"\xff\xc2",
        b"\xff\xda",
        b"\xff\xd9",
        b"\xff\xe1\xff\xff",
        b"\x1a\x45\xdf\xa3",
        b"\x1f\x43\xb6\x75",
    ),
    *(
        b"#EXTM3U\nfile:///etc/passwd\n",
        b"ffconcat version 1.0\nfile x\n",
        b"v=0\r\nm=video 5004 RTP/AVP 96\r\n",
    ),
    *(b"%!PS-Adobe-3.0 EPSF-3.0\n", b"http://127.0.0.1:9/x", b"concat:a|b", b"\0\0\0\0", b"\xff\xff\xff\xff"),
)


def _place(data: bytearray, chance: random.Random) -> int:
    """Somewhere; twice as likely near an end, where headers and indexes lie."""
    near = min(len(data), 1500)
    which = chance.random()
    if which < 0.35:
        return chance.randrange(near)
    return len(data) - 1 - chance.randrange(near) if which < 0.7 else chance.randrange(len(data))


def _flip(data: bytearray, chance: random.Random) -> None:
    data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _byte(data: bytearray, chance: random.Random) -> None:
    data[_place(data, chance)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _number(data: bytearray, chance: random.Random) -> None:
    """A whole number of one to eight bytes, of either order, becomes a hostile one."""
    place, size, order = (
        _place(data, chance),
        chance.choice((1, 2, 4, 4, 8)),
        chance.choice(("big", "little")),
    )
    value = chance.choice((*_NUMBERS, chance.getrandbits(64))) % (1 << 8 * size)
    data[place : place + size] = value.to_bytes(size, order)[: max(0, len(data) - place)]


def _word(data: bytearray, chance: random.Random) -> None:
    place, word = _place(data, chance), chance.choice(_WORDS)
    data[place : place + (len(word) if chance.random() < 0.7 else 0)] = word


def _fourcc(data: bytearray, chance: random.Random) -> None:
    """One of the four-letter words that are there becomes another."""
    found = [n for n in range(len(data) - 4) if bytes(data[n : n + 4]).isalnum()]
    if found:
        place = chance.choice(found)
        data[place : place + 4] = chance.choice([word for word in _WORDS if len(word) == 4])


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[_place(data, chance) :]


def _delete(data: bytearray, chance: random.Random) -> None:
    place = _place(data, chance)
    del data[place : place + 1 + int(chance.random() ** 3 * 2000)]


def _repeat(data: bytearray, chance: random.Random) -> None:
    place = _place(data, chance)
    piece = data[place : place + 1 + int(chance.random() ** 3 * 2000)]
    data[place:place] = piece * chance.choice((1, 1, 2, 20))


def _zero(data: bytearray, chance: random.Random) -> None:
    place, size = _place(data, chance), 1 + int(chance.random() ** 3 * 2000)
    data[place : place + size] = bytes(min(size, len(data) - place))


def _shuffle(data: bytearray, chance: random.Random) -> None:
    """Noise over a stretch."""
    place, size = _place(data, chance), 1 + int(chance.random() ** 3 * 500)
    data[place : place + size] = chance.randbytes(min(size, len(data) - place))


CHANGES: tuple[Change, ...] = (
    *(_flip, _byte, _number, _number, _word, _fourcc, _fourcc, _cut, _delete, _repeat, _zero, _shuffle),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Bytes with one to four changes."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        if made:
            chance.choice(CHANGES)(made, chance)
    return bytes(made)


@functools.cache
def _films() -> tuple[tuple[str, bytes], ...]:
    return tuple(files.all_films().items())


@functools.cache
def _stills() -> tuple[tuple[str, bytes], ...]:
    return tuple(files.stills().items())


def _chance(target: str, number: int, seed: int) -> random.Random:
    return random.Random(f"{target} {seed} {number}")  # noqa: S311 - mutants, not secrets


def media(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Name and bytes of a mutant of a video or sound; now and then under another ending."""
    chance = _chance("media", number, seed)
    kind, data = chance.choice(_films())
    ending = {"fragmented": "mp4", "mjpeg": "mov"}.get(kind, kind)
    if chance.random() < 0.1:
        ending = chance.choice(("mp4", "mkv", "avi", "gif", "ts", "wav"))
    return f"{kind}.{ending}", mutated(data, chance)


def stills(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Name and bytes of a mutant of an image; now and then under another ending."""
    chance = _chance("stills", number, seed)
    kind, data = chance.choice(_stills())
    ending = {"JPEG": "jpg", "TIFF": "tif"}.get(kind.split()[0], kind.split()[0].lower())
    if chance.random() < 0.2:
        ending = chance.choice(("jpg", "png", "webp", "tif", "bmp", "ppm"))
    return f"{kind.replace(' ', '-')}.{ending}", mutated(data, chance)


def exif(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Name and bytes of a whole image whose EXIF or XMP is a mutant; of the first, one byte is another."""
    chance = _chance("exif", number, seed)
    kind = chance.choice(("JPEG", "JPEG", "PNG", "WEBP"))
    plain = files.exif(chance.randrange(10), chance.choice("<>"))
    if number < len(plain) * 6:
        made = bytearray(plain)
        made[number % len(plain)] = chance.choice((0, 0xFF, 0x80, made[number % len(plain)] ^ 1))
        data, said = bytes(made), None
    elif chance.random() < 0.1:
        data, said = _many(chance), None
    else:
        data = mutated(plain, chance)
        said = mutated(files.xmp(chance.randrange(12)), chance) if chance.random() < 0.3 else None
    return f"{kind}.{'jpg' if kind == 'JPEG' else kind.lower()}", files.with_metadata(kind, data, said)


def _many(chance: random.Random) -> bytes:
    """EXIF of very many entries that each are said to hold all of it."""
    count = chance.choice((100, 5000, 65535))
    size = 8 + 2 + 12 * count + 4
    entries = b"".join(struct.pack("<HHII", n, 7, size - 8, 8) for n in range(count))
    return b"II*\0" + struct.pack("<IH", 8, count) + entries + bytes(4)


TARGETS = {"media": media, "stills": stills, "exif": exif}
