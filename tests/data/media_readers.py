"""Every way that the library reads videos, sounds and images, and the laws that hold for each."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import media_files
import numpy as np

from roadaware.errors import InputError
from roadaware.io.images import apply_orientation, decode_mask, parse_image_size, read_still
from roadaware.io.video import VideoReader, read_sound
from roadaware.online.frames import Source, SystemClock
from roadaware.online.sources import PictureFiles, open_source

_MOST = 300


def drained(source: Source) -> int:
    """Look at all frames of a source; how many there were."""
    last, last_s, count = -1, -1.0, 0
    while count < _MOST and (frame := source.next(0.0, 0.0)) is not None:
        assert frame.picture.dtype == np.uint8
        assert frame.picture.ndim == 3
        assert frame.number > last
        assert frame.t_s > last_s
        last, last_s, count = frame.number, frame.t_s, count + 1
    return count


def read_media(path: Path) -> str:
    """Watch a video, read it by frame number and hear it."""
    with suppress(InputError):
        read_sound(path, 0.0, 5.0)
    with suppress(InputError), VideoReader(path) as reader:
        for number in (len(reader) - 1, *range(min(len(reader), 12)), len(reader) // 2):
            with suppress(InputError):
                assert reader.frame(number).shape == (reader.height_px, reader.width_px, 3)
    with closing(open_source(path)) as source:
        count = drained(source)
        if count == _MOST:
            return "read, more than was looked at"
        assert source.ending is not None
        missing = source.outcomes.counts().get("undecodable", 0)
        assert not count or source.n_frames == count + missing
        if not count:
            return "refused, no frame can be decoded"
        damaged = missing or source.outcomes.counts().get("doubtful", 0) or not source.ending.whole
        return "read, damage counted" if damaged else "read"


def read_stills(path: Path) -> str:
    """Watch an image, and read it as a still and as a mask."""
    with suppress(InputError):
        decode_mask(path.read_bytes(), str(path))
    size = parse_image_size(path.read_bytes()[: 1 << 16])
    with suppress(InputError):
        found = read_still(path)
        assert size is None or found.shape == (size[1], size[0], 3)
    return _watched(path)


def _watched(path: Path) -> str:
    source = PictureFiles(str(path.parent / f"*{path.suffix}"), SystemClock(), 12.0)
    count = drained(source)
    assert source.ending is not None
    counts = source.outcomes.counts()
    assert count + counts.get("undecodable", 0) == source.n_frames == 1
    if not count:
        return "refused"
    return "read, orientation unknown" if counts.get("orientation") else "read"


def read_exif(path: Path) -> str:
    """Watch an image whose pixels are whole: they are seen, turned in one of eight ways."""
    found = PictureFiles(str(path.parent / f"*{path.suffix}"), SystemClock(), 12.0)
    frame = found.next(0.0, 0.0)
    assert frame is not None, found.outcomes.news()
    plain = read_still(path) if path.suffix != ".webp" else media_files.picture()
    ways = [n for n in range(1, 9) if np.array_equal(apply_orientation(plain, n), frame.picture)]
    assert ways
    unknown = "orientation" in found.outcomes.counts()
    assert not unknown or ways == [1]
    told = [news for news in found.outcomes.news() if news.what == "orientation"]
    assert len(told) == unknown
    return "read, orientation unknown" if unknown else f"read, orientation {ways[0]}"


READERS = {"media": read_media, "stills": read_stills, "exif": read_exif}
