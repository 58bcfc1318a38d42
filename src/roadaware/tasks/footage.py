"""Footage: images of videos by frame number, decoded and resized; some are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from roadaware.arrays import Pixels
from roadaware.errors import InputError
from roadaware.io.images import read_still
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader
from roadaware.tasks.videos import Film

_OPEN = 8
"""So many videos stay open at a time."""


def resize_image(image: Pixels, size: tuple[int, int]) -> Pixels:
    """An image of another size, as detectors resize it: bilinear, with antialiasing.

    Args:
        image: (H, W, 3) uint8.
        size: height and width.
    """
    if image.shape[:2] == size:
        return image
    # Whatever lies below the networks is imported without torch.
    import torch
    from torch.nn import functional

    tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
    small = functional.interpolate(tensor, size=size, mode="bilinear", antialias=True)[0]
    return np.ascontiguousarray(small.permute(1, 2, 0).numpy())


class Footage:
    """Opens images of videos; a clip costs one jump to a key frame, or nothing where it is kept.

    Most videos have few key frames, so that a jump decodes much that nobody asked for: a video that fits into
    what is left of the memory is decoded once, whole.

    Args:
        films: by number.
        sizes: (height, width) that the images of each video are brought to.
        cache_bytes: of images kept in memory: the first ones that are asked for.
    """

    def __init__(self, films: Sequence[Film], sizes: Sequence[tuple[int, int]], cache_bytes: int = 0) -> None:
        self.films, self.sizes, self._room = list(films), list(sizes), cache_bytes
        self._kept: dict[tuple[int, int], Pixels] = {}
        self._open: OrderedDict[int, VideoReader] = OrderedDict()

    def pictures(self, film: int, frames: Sequence[int]) -> list[Pixels]:
        """(h, w, 3) uint8 of each frame.

        Args:
            film: its number.
            frames: rising.

        Raises:
            InputError: if one cannot be decoded; it names video and frame.
        """
        return [self._picture(film, frame) for frame in frames]

    def _picture(self, film: int, frame: int) -> Pixels:
        kept = self._kept.get((film, frame))
        if kept is not None:
            return kept
        if self._fits(film):
            self._keep_whole(film)
            if (film, frame) in self._kept:
                return self._kept[film, frame]
        image = resize_image(self._decoded(film, frame), self.sizes[film])
        if image.nbytes <= self._room:
            self._room -= image.nbytes
            self._kept[film, frame] = image
        return image

    def _fits(self, number: int) -> bool:
        film, (height, width) = self.films[number], self.sizes[number]
        return not film.is_pictures and 0 < film.n_frames * height * width * 3 <= self._room

    def _keep_whole(self, number: int) -> None:
        """Keep the images of a video up to its first damage, which is reported when somebody asks for it."""
        film = self.films[number]
        with suppress(InputError), VideoReader(Path(film.path)) as reader:
            for frame, image in zip(range(film.n_frames), reader, strict=False):
                held = resize_image(image, self.sizes[number])
                self._room -= held.nbytes
                self._kept[number, frame] = held

    def _decoded(self, number: int, frame: int) -> Pixels:
        film = self.films[number]
        if not film.is_pictures:
            return self._reader(number).frame(frame)
        if film.stills and not film.stills[frame]:
            raise InputError(f"there is no image of frame {frame}", where=to_printable(film.video))
        found = read_still(film.picture(frame))
        if found.shape[:2] != (film.height, film.width):
            message = (
                f"expected {film.width}x{film.height} as in frame 0, found {found.shape[1]}x{found.shape[0]}"
            )
            raise InputError(message, where=str(film.picture(frame)))
        return found

    def _reader(self, number: int) -> VideoReader:
        if number not in self._open:
            if len(self._open) >= _OPEN:
                self._open.popitem(last=False)[1].close()
            self._open[number] = VideoReader(Path(self.films[number].path))
        self._open.move_to_end(number)
        return self._open[number]

    def __getstate__(self) -> dict[str, object]:
        """Everything but open files and what is kept: each process opens its own."""
        return {**self.__dict__, "_kept": {}, "_open": OrderedDict()}

    def close(self) -> None:
        """Let go of the files and the images."""
        for reader in self._open.values():
            reader.close()
        self._open.clear()
        self._kept.clear()
