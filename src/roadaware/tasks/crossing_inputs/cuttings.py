"""Pictures cut out of films when they are asked for, two films at once; what was cut is kept."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Ints
from roadaware.errors import InputError, UsageError
from roadaware.tasks.crossing_inputs.cutting import Cutter
from roadaware.tasks.crossing_inputs.cutting_files import CuttingFiles
from roadaware.tasks.crossing_inputs.footage import Footage, Reel
from roadaware.tasks.crossing_inputs.media import Media
from roadaware.tasks.crossing_inputs.observations import Observations
from roadaware.tasks.crossing_inputs.two_threads import StoppedError, halves, side_by_side

_log = logging.getLogger("roadaware")
PIECE_BYTES = 1 << 25
"""How much is cut of a film at once, so that long ones fit in memory."""
Blocks = dict[str, Bytes]
Use = Callable[[int, Blocks], None]
"""Takes what it needs of a piece: its number, and all that is cut of it by input."""


class Cuttings:
    """What some cutters make of the boxes of all samples, each box once; safe to use from several threads.

    Boxes stand in the order of films and frames, in pieces of one film each. Whoever needs a box of a piece
    has the whole piece cut, for all cutters, so that a frame is decoded once as long as memory holds. Two
    threads cut; where one piece is missing, or one film has no file, the next one is cut beside it.

    Args:
        seen: n observations.
        footage: the pictures.
        cutters: by the name of the input.
        media: where to keep what was cut, and how much of it.

    Raises:
        DiskError: if the cache folder cannot be made.
    """

    def __init__(
        self, seen: Observations, footage: Footage, cutters: Mapping[str, Cutter], media: Media
    ) -> None:
        rows, place = np.unique(seen.box_row, return_inverse=True)
        first = np.unique(place, return_index=True)[1]
        sample, step = np.divmod(first, seen.box_row.shape[1])
        video, frame = seen.video_row[sample], seen.frame[sample, step]
        order = np.lexsort((rows, frame, video))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self._place = rank[place.reshape(seen.box_row.shape)]
        self._video, self._frame = video[order], frame[order]
        corners, size = seen.corners_px[sample, step][order], seen.size_px[sample][order]
        self._size = size.astype(np.int64)
        self._cutters = dict(cutters)
        self._regions = {name: cutter.regions(corners, size) for name, cutter in cutters.items()}
        self._names = [str(name) for name in seen.scenes.videos["video"].to_list()]
        self._footage = footage
        self._box_bytes = box_bytes = sum(int(np.prod(cutter.shape)) for cutter in cutters.values())
        self._starts = _pieces(self._video, self._frame, max(1, PIECE_BYTES // box_bytes))
        self._files = None if media.cache is None else CuttingFiles(media.cache)
        self._memory_bytes, self._lock = media.memory_bytes, threading.Lock()
        self._keeping = threading.Lock()
        self._held: OrderedDict[int, Blocks] = OrderedDict()
        self._filed: dict[int, Blocks] = {}
        if self._files is None and box_bytes * len(rows) > media.memory_bytes:
            _log.warning(
                "%s are %.1f GB and %.1f GB are kept, so that films are decoded again and again; "
                "a cache folder (samples.cache in a recipe, Media.cache in Python) keeps all",
                ", ".join(cutters),
                box_bytes * len(rows) / 1e9,
                media.memory_bytes / 1e9,
            )

    def __len__(self) -> int:
        return len(self._place)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of one sample: frames, then what the cutter makes.

        Args:
            name: of the input.
        """
        return (self._place.shape[1], *self._cutters[name].shape)

    def take(self, name: str, rows: Ints) -> Bytes:
        """(k, t, ...) bytes of some samples.

        Args:
            name: of the input.
            rows: (k,) the samples.

        Raises:
            InputError: if a film is missing, damaged, too short or of another size than its boxes.
            DiskError: if the cache cannot be written.
        """
        place = self._place[rows]
        made = np.empty((*place.shape, *self._cutters[name].shape), dtype=np.uint8)
        piece = np.searchsorted(self._starts, place, side="right") - 1

        def use(number: int, blocks: Blocks) -> None:
            here = piece == number
            made[here] = blocks[name][place[here] - self._starts[number]]

        with self._lock:
            numbers = np.unique(piece).tolist()
            if self._files is None:
                self._from_memory(numbers, use)
            else:
                self._from_files(self._files, numbers, use)
        return made

    def _from_memory(self, numbers: list[int], use: Use) -> None:
        """Use some pieces, those first that are there."""
        there = [number for number in numbers if number in self._held]
        missing = [number for number in numbers if number not in self._held]
        for number in there:
            self._held.move_to_end(number)
            use(number, self._held[number])
        work = partial(self._hold, set(missing), use)
        self._two(missing, self._behind(missing), np.diff(self._starts), work)

    def _behind(self, missing: list[int]) -> list[int]:
        """The piece behind the only one that is missing, if it is not there and memory holds both."""
        if len(missing) != 1:
            return []
        number = missing[0] + 1
        boxes = self._starts[missing[0] : number + 2]
        fits = len(boxes) == 3 and int(boxes[2] - boxes[0]) * self._box_bytes <= self._memory_bytes
        return [number] if fits and number not in self._held else []

    def _hold(self, wanted: set[int], use: Use, numbers: Sequence[int], stop: threading.Event) -> None:
        """Cut some pieces, keep them in memory, and use those that are wanted."""
        with closing(_Reels(self._footage, self._names)) as reels:
            for number in numbers:
                low, high = self._starts[number : number + 2].tolist()
                blocks = self._cut(low, high, list(self._cutters), reels, stop)
                if number in wanted:
                    use(number, blocks)
                with self._keeping:
                    self._held[number] = blocks
                    held = sum(_bytes(each) for each in self._held.values())
                    while held > self._memory_bytes and len(self._held) > 1:
                        held -= _bytes(self._held.popitem(last=False)[1])

    def _from_files(self, files: CuttingFiles, numbers: list[int], use: Use) -> None:
        """Use some pieces, of films that have files or get them."""
        videos = self._video[self._starts[numbers]]
        missing = [video for video in np.unique(videos).tolist() if video not in self._filed]
        behind = self._video[self._video > missing[0]] if len(missing) == 1 else self._video[:0]
        ahead = [int(behind[0])] if len(behind) and int(behind[0]) not in self._filed else []
        self._two(missing, ahead, np.bincount(self._video), partial(self._file, files))
        for number, video in zip(numbers, videos.tolist(), strict=True):
            first = int(np.searchsorted(self._video, video))
            low, high = self._starts[number : number + 2] - first
            use(number, {name: block[low:high] for name, block in self._filed[video].items()})

    def _file(self, files: CuttingFiles, videos: Sequence[int], stop: threading.Event) -> None:
        """Open the files of some films; those that are not there are made."""
        with closing(_Reels(self._footage, self._names)) as reels:
            for video in videos:
                low, high = np.searchsorted(self._video, [video, video + 1]).tolist()
                frames = np.unique(self._frame[low:high]).tolist()
                film = self._footage.digest(self._names[video], frames)
                self._filed[video] = files.opened(
                    {
                        name: (cutter, film, self._frame[low:high], self._regions[name][low:high])
                        for name, cutter in self._cutters.items()
                    },
                    partial(self._film_blocks, low, high, reels, stop),
                )

    @staticmethod
    def _two(
        missing: list[int],
        ahead: list[int],
        costs: Ints,
        work: Callable[[Sequence[int], threading.Event], None],
    ) -> None:
        """Do what is missing in two threads, and what lies ahead where that is one thing.

        Args:
            missing: in order.
            ahead: the next one, or none; its faults are told when it is asked for.
            costs: of every number.
            work: does some of them.
        """
        if missing:
            first, second = halves(missing, costs[missing])
            side_by_side(first, second or ahead, work, needed=bool(second))

    def _film_blocks(
        self, low: int, high: int, reels: _Reels, stop: threading.Event, names: list[str]
    ) -> Iterator[Blocks]:
        """What is cut of a film, piece by piece."""
        starts = self._starts[(self._starts >= low) & (self._starts < high)]
        for begin, end in zip(starts, [*starts[1:], high], strict=True):
            yield self._cut(int(begin), int(end), names, reels, stop)

    def _cut(self, low: int, high: int, names: list[str], reels: _Reels, stop: threading.Event) -> Blocks:
        """What some cutters make of the boxes from `low` to `high`, all of one film."""
        made = {name: np.empty((high - low, *self._cutters[name].shape), dtype=np.uint8) for name in names}
        reel, before = reels.of(int(self._video[low])), -1
        for place in range(low, high):
            frame = int(self._frame[place])
            if frame != before:
                if stop.is_set():
                    raise StoppedError
                picture, before = self._picture(reel, place), frame
            for name in names:
                made[name][place - low] = self._cutters[name].cut(picture, self._regions[name][place])
        return made

    def _picture(self, reel: Reel, place: int) -> npt.NDArray[np.uint8]:
        """The frame that shows a box."""
        frame, video = int(self._frame[place]), self._names[self._video[place]]
        try:
            picture = reel.frame(frame)
        except UsageError as error:
            raise InputError(f"a box stands in frame {frame}: {error}", where=video) from error
        size = (picture.shape[1], picture.shape[0])
        told = tuple(self._size[place].tolist())
        if size != told:
            message = f"boxes are in pixels of {told[0]}x{told[1]}, pictures are {size[0]}x{size[1]}"
            raise InputError(message, where=video, hint="give the original films")
        return picture


class _Reels:
    """The film that a thread looks at, open until it looks at another."""

    def __init__(self, footage: Footage, names: list[str]) -> None:
        self._footage, self._names = footage, names
        self._open: tuple[int, Reel] | None = None

    def of(self, video: int) -> Reel:
        """The frames of a video by its row."""
        if self._open is None or self._open[0] != video:
            self.close()
            self._open = (video, self._footage.open(self._names[video]))
        return self._open[1]

    def close(self) -> None:
        """Let go of it."""
        if self._open is not None:
            self._open[1].close()
        self._open = None


@dataclass(frozen=True, eq=False)
class Pictures:
    """A column of pictures, uint8 (k, t, side, side, 3) when taken.

    Args:
        cuttings: what makes them.
        name: of the input.
    """

    cuttings: Cuttings
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return self.cuttings.shape(self.name)

    def __len__(self) -> int:
        return len(self.cuttings)

    def take(self, rows: Ints) -> Bytes:
        """(k, t, side, side, 3) of some samples."""
        return self.cuttings.take(self.name, rows)


@dataclass(frozen=True, eq=False)
class Shares(Pictures):
    """A column of shares, float32 from 0 to 1 when taken, kept as bytes."""

    def take(self, rows: Ints) -> npt.NDArray[np.float32]:  # type: ignore[override]
        """(k, t, categories, side, side) of some samples."""
        return self.cuttings.take(self.name, rows).astype(np.float32) / np.float32(255)


def _pieces(video: Ints, frame: Ints, most: int) -> Ints:
    """(p + 1,) where pieces begin, and the end: one film each, whole frames, `most` boxes if frames allow.

    Args:
        video: (m,) in order.
        frame: (m,) in order within a video.
        most: boxes in a piece.
    """
    if not len(video):
        return np.zeros(1, dtype=np.int64)
    key = video * (1 + int(frame.max())) + frame
    starts = [0]
    while starts[-1] < len(video):
        low = starts[-1]
        end = min(low + most, int(np.searchsorted(video, video[low], side="right")))
        if end < len(video) and key[end] == key[end - 1]:
            begun = int(np.searchsorted(key, key[end], side="left"))
            end = begun if begun > low else int(np.searchsorted(key, key[end], side="right"))
        starts.append(end)
    return np.array(starts, dtype=np.int64)


def _bytes(blocks: Blocks) -> int:
    return sum(block.nbytes for block in blocks.values())
