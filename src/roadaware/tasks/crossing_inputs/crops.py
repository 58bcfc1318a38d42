"""Crops of videos, cut on demand from two videos at once and cached."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from roadaware.arrays import Bytes, Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import Unfinished, build_disk_error
from roadaware.tasks.crossing_inputs.footage import CropConfig, Footage, Media, Reel
from roadaware.tasks.crossing_inputs.observations import Observations

# Which part of an image is cut out for a box, in whole pixels.


def clip_to_image(corners_px: Floats, size_px: Floats) -> Ints:
    """(n, 4) the box itself, cut off to whole pixels and to the image, at least one pixel of it.

    Args:
        corners_px: (n, 4) x1, y1, x2, y2.
        size_px: (n, 2) width and height of the image.
    """
    return _whole(corners_px, size_px)


def add_box_context(corners_px: Floats, size_px: Floats, enlarge: float) -> Ints:
    """(n, 4) the box with its surroundings: grown, cut to the image, and widened to a square.

    Every side moves out by half of `enlarge` times the shorter side of the box, whole pixels. The square
    has the height of what results; where it leaves the image on the left it is cut off, on the right it
    is shifted back.

    Args:
        corners_px: (n, 4) x1, y1, x2, y2.
        size_px: (n, 2) width and height of the image.
        enlarge: at least 0.

    Source: Kotseruba et al., WACV 2021 (`enlarge` with 1.5, then `squarify` to 1).
    """
    shorter = (corners_px[:, 2:] - corners_px[:, :2]).min(axis=1)
    # Both sides grow by the smaller change of the two, halved as whole numbers, as published.
    out = np.floor(enlarge * shorter / 2)[:, None]
    low = np.maximum(corners_px[:, :2] - out, 0.0)
    high = np.minimum(corners_px[:, 2:] + out, size_px - 1)
    middle, half = (low[:, 0] + high[:, 0]) / 2, np.abs(high[:, 1] - low[:, 1]) / 2
    left, right = np.maximum(middle - half, 0.0), middle + half
    beyond = np.maximum(right - size_px[:, 0], 0.0)
    grown = np.stack([left - beyond, low[:, 1], right - beyond, high[:, 1]], axis=1)
    return _whole(grown, size_px)


def _whole(corners_px: Floats, size_px: Floats) -> Ints:
    """(n, 4) corners cut off to whole pixels inside the image, with at least one pixel between them."""
    most = np.tile(size_px, 2)
    corners = np.clip(np.trunc(corners_px), 0, most)
    low = np.minimum(corners[:, :2], size_px - 1)
    high = np.maximum(corners[:, 2:], low + 1)
    return np.concatenate([low, high], axis=1).astype(np.int64)


# What is cut out of one image: pixels of a pedestrian, or shares of categories of a mask.

CATEGORIES = ("pedestrians", "vehicles", "road", "pavement", "signals", "other")
"""What maps distinguish; vegetation, buildings, sky and what has no class are other."""
_SIMULATOR = {
    "pedestrians": (12, 13),
    "vehicles": range(14, 19),
    "road": (1, 20),
    "pavement": (2,),
    "signals": (7, 8),
}
_CITYSCAPES = {
    "pedestrians": (11, 12),
    "vehicles": range(13, 19),
    "road": (0,),
    "pavement": (1,),
    "signals": (6, 7),
}


class Cutter(Protocol):
    """Makes one array of bytes of an image and a box."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what is cut out."""

    @property
    def key(self) -> dict[str, Any]:
        """Plain data that identifies the crop; equal keys give equal crops."""

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is.

        Args:
            corners_px: (m, 4) boxes.
            size_px: (m, 2) of the images.
        """

    def cut(self, image: npt.NDArray[Any], region: Ints) -> Bytes:
        """(*shape) bytes.

        Args:
            image: (h, w) or (h, w, 3) the whole frame.
            region: (8,) a row of `regions`.
        """


class Crop:
    """Pixels of the box, its context, or its surround without the box itself; padded with black to a square.

    Args:
        form: box, context or surround.
        side: of the square, in pixels.
        config: how it is cut.
    """

    def __init__(self, form: str, side: int, config: CropConfig) -> None:
        self.form, self.side, self.config = form, side, config

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a crop: (side, side, 3), RGB."""
        return (self.side, self.side, 3)

    @property
    def key(self) -> dict[str, Any]:
        """Plain data that decides the pixels."""
        return {"crop": self.form, "side": self.side, **to_dict(self.config)}

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is."""
        box = clip_to_image(corners_px, size_px)
        around = box if self.form == "box" else add_box_context(corners_px, size_px, self.config.enlarge)
        return np.concatenate([around, box], axis=1)

    def cut(self, image: npt.NDArray[Any], region: Ints) -> Bytes:
        """(side, side, 3) of an image (h, w, 3)."""
        x1, y1, x2, y2, *box = region.tolist()
        held = image[y1:y2, x1:x2]
        if self.form == "surround":
            # A view of the frame, of which other boxes are still to be cut.
            held = held.copy()
            # The box may reach out of what is cut, where that was cut off at an edge.
            left, top, right, bottom = (
                max(0, v) for v in (box[0] - x1, box[1] - y1, box[2] - x1, box[3] - y1)
            )
            held[top:bottom, left:right] = self.config.paint
        return pad_to_square(held, self.side, self.config.resample)


class CategoryMap:
    """The share that each of CATEGORIES has in every cell of the context of a box; zeros outside of it.

    Args:
        side: cells in a row.
        classes: what the numbers in masks are: simulator or cityscapes.
        enlarge: as for crops.
    """

    def __init__(self, side: int, classes: str, enlarge: float) -> None:
        self.side, self.classes, self.enlarge = side, classes, enlarge
        self._category = np.full(256, CATEGORIES.index("other"), dtype=np.uint8)
        for name, numbers in (_SIMULATOR if classes == "simulator" else _CITYSCAPES).items():
            self._category[list(numbers)] = CATEGORIES.index(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a map: (categories, side, side)."""
        return (len(CATEGORIES), self.side, self.side)

    @property
    def key(self) -> dict[str, Any]:
        """Plain data that decides the shares."""
        return {"maps": CATEGORIES, "side": self.side, "classes": self.classes, "enlarge": self.enlarge}

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is."""
        around = add_box_context(corners_px, size_px, self.enlarge)
        return np.concatenate([around, clip_to_image(corners_px, size_px)], axis=1)

    def cut(self, image: npt.NDArray[Any], region: Ints) -> Bytes:
        """(categories, side, side) shares times 255 of a mask (h, w)."""
        if image.ndim != 2 or image.dtype != np.uint8:
            raise InputError(f"expected a mask of 8 bits, found {image.dtype} {image.shape}")
        x1, y1, x2, y2 = region[:4].tolist()
        held = self._category[image[y1:y2, x1:x2]]
        planes = [
            pad_to_square(np.where(held == k, np.uint8(255), np.uint8(0)), self.side, "box")
            for k in range(len(CATEGORIES))
        ]
        return np.stack(planes)


def pad_to_square(held: Bytes, side: int, resample: str) -> Bytes:
    """(side, side[, 3]) an image whose longer edge is `side`, in the middle of zeros.

    Args:
        held: (h, w[, 3]) of any size.
        side: in pixels.
        resample: bilinear with antialiasing, nearest, or the mean of a `box`.
    """
    ways = {
        "bilinear": Image.Resampling.BILINEAR,
        "nearest": Image.Resampling.NEAREST,
        "box": Image.Resampling.BOX,
    }
    height, width = held.shape[:2]
    ratio = side / max(height, width)
    size = max(1, int(width * ratio)), max(1, int(height * ratio))
    small = np.asarray(Image.fromarray(np.ascontiguousarray(held)).resize(size, ways[resample]))
    made = np.zeros((side, side, *held.shape[2:]), dtype=np.uint8)
    left, top = (side - size[0]) // 2, (side - size[1]) // 2
    made[top : top + size[1], left : left + size[0]] = small
    return made


# Cut images on disk: a file for each video and configuration, written whole, and mapped to memory.

Wanted = tuple[Cutter, bytes, Ints, Ints]
"""A cutter, what the video hashes to, (m,) frames and (m, 8) regions."""


class CuttingFiles:
    """Cache folder of crops; each file is named by a digest of everything that decides its content.

    Args:
        folder: made if it is not there.

    Raises:
        DiskError: if it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise build_disk_error(self._folder / "cut", 1, error) from error

    def opened(self, wanted: dict[str, Wanted], cut: Callable[[list[str]], Iterator[Blocks]]) -> Blocks:
        """(m, ...) bytes of one video by input, mapped; what has no file yet is cut and written.

        Args:
            wanted: by input.
            cut: gives pieces of the inputs that it is asked for, in order.

        Raises:
            DamagedError: if a file is not what it should be.
            DiskError: if one cannot be written.
        """
        paths = {name: self._folder / _name(*each) for name, each in wanted.items()}
        missing = [name for name, path in paths.items() if not path.exists()]
        if missing:
            shapes = {name: (len(wanted[name][2]), *wanted[name][0].shape) for name in missing}
            self._write({name: paths[name] for name in missing}, shapes, cut(missing))
        return {
            name: _open_memmap(paths[name], (len(frames), *cutter.shape))
            for name, (cutter, _, frames, _) in wanted.items()
        }

    def _write(
        self, paths: dict[str, Path], shapes: dict[str, tuple[int, ...]], pieces: Iterator[Blocks]
    ) -> None:
        with ExitStack() as undo:
            growing = {name: Unfinished(path) for name, path in paths.items()}
            for each in growing.values():
                undo.callback(each.abandon)
            for name, each in growing.items():
                header = {"descr": "|u1", "fortran_order": False, "shape": shapes[name]}
                np.lib.format.write_array_header_1_0(each.file, header)
            for blocks in pieces:
                for name, block in blocks.items():
                    try:
                        growing[name].file.write(block.data)
                    except OSError as error:
                        raise growing[name].failure(error) from error
            for each in growing.values():
                each.finish()


def _name(cutter: Cutter, film: bytes, frames: Ints, regions: Ints) -> str:
    found = hashlib.blake2b(digest_size=16)
    parts = [json.dumps(cutter.key, sort_keys=True).encode(), film, frames.tobytes(), regions.tobytes()]
    for part in parts:
        # Lengths in between: no part can take bytes of the next one.
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return f"cut-{found.hexdigest()}.npy"


def _open_memmap(path: Path, shape: tuple[int, ...]) -> Bytes:
    hint = "remove it, and it is made again"
    try:
        held = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedError("no whole file of cut images", where=str(path), hint=hint) from error
    if held.shape != shape or held.dtype != np.uint8:
        message = f"expected uint8 {shape}, found {held.dtype} {held.shape}"
        raise DamagedError(message, where=str(path), hint=hint)
    mapped: Bytes = held
    return mapped


# Work that stands in an order, its first half done here and its second in another thread.

Work = Callable[[Sequence[int], threading.Event], None]
"""Does some numbers in order, and stops with `StoppedError` soon after the event is set."""


class StoppedError(Exception):
    """Work was stopped by a failure elsewhere or an interruption."""


def split_halves(numbers: Sequence[int], costs: npt.ArrayLike) -> tuple[Sequence[int], Sequence[int]]:
    """Two runs of numbers that cost about the same; the first has at least one.

    Args:
        numbers: at least one, in order.
        costs: of each.

    >>> split_halves([3, 4, 5, 9], [1, 1, 1, 3])
    ([3, 4, 5], [9])
    """
    reached = np.cumsum(np.asarray(costs, dtype=np.float64))
    cut = 1 + int(np.abs(reached[:-1] - reached[-1] / 2).argmin()) if len(numbers) > 1 else 1
    return numbers[:cut], numbers[cut:]


def run_concurrently(first: Sequence[int], second: Sequence[int], work: Work, *, needed: bool = True) -> None:
    """Do two runs of numbers at once; all is over when this returns, or raises.

    Args:
        first: done in this thread; what it raises comes before what the second does.
        second: done in another.
        work: does either.
        needed: whether a fault of the second run is reported.
    """
    stop, faults = threading.Event(), list[BaseException]()

    def beside() -> None:
        try:
            work(second, stop)
        except BaseException as error:  # raised in the thread that waits
            faults.append(error)

    thread = threading.Thread(target=beside, name="second half", daemon=True)
    if second:
        thread.start()
    try:
        work(first, stop)
        if second:
            thread.join()
    except BaseException:
        stop.set()
        if second:
            thread.join()
        raise
    if needed and faults:
        raise faults[0]


_log = logging.getLogger("roadaware")
PIECE_BYTES = 1 << 25
"""How much is cut of a video at once, so that long ones fit in memory."""
Blocks = dict[str, Bytes]
Use = Callable[[int, Blocks], None]
"""Takes what it needs of a piece: its number, and all that is cut of it by input."""


class Cuttings:
    """Crops of the boxes of all samples by several cutters, each box once; safe to use from several threads.

    Boxes stand in the order of videos and frames, in pieces of one video each. Whoever needs a box of a piece
    has the whole piece cut, for all cutters, so that a frame is decoded once as long as memory holds. Two
    threads cut; where one piece is missing, or one video has no file, the next one is cut beside it.

    Args:
        seen: n observations.
        footage: the images.
        cutters: by the name of the input.
        media: where to keep what was cut, and how much of it.

    Raises:
        DiskError: if the cache folder cannot be made.
    """

    def __init__(
        self, seen: Observations, footage: Footage, cutters: Mapping[str, Cutter], media: Media
    ) -> None:
        # Samples overlap: each box is cut once, however many samples observe it.
        rows, place = np.unique(seen.box_row, return_inverse=True)
        first = np.unique(place, return_index=True)[1]
        sample, step = np.divmod(first, seen.box_row.shape[1])
        video, frame = seen.video_row[sample], seen.frame[sample, step]
        # By video and frame, so that each video is decoded from front to back.
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
        # (p + 1,) where pieces begin, and the end: one video each, whole frames, `most` boxes if
        # frames allow
        video = self._video
        most = max(1, PIECE_BYTES // box_bytes)
        if not len(video):
            self._starts = np.zeros(1, dtype=np.int64)
        else:
            key = video * (1 + int(self._frame.max())) + self._frame
            starts = [0]
            while starts[-1] < len(video):
                low = starts[-1]
                end = min(low + most, int(np.searchsorted(video, video[low], side="right")))
                if end < len(video) and key[end] == key[end - 1]:
                    begun = int(np.searchsorted(key, key[end], side="left"))
                    end = begun if begun > low else int(np.searchsorted(key, key[end], side="right"))
                starts.append(end)
            self._starts = np.array(starts, dtype=np.int64)
        self._files = None if media.cache is None else CuttingFiles(media.cache)
        self._memory_bytes, self._lock = media.memory_bytes, threading.Lock()
        self._keeping = threading.Lock()
        self._held: OrderedDict[int, Blocks] = OrderedDict()
        self._filed: dict[int, Blocks] = {}
        if self._files is None and box_bytes * len(rows) > media.memory_bytes:
            _log.warning(
                "%s are %.1f GB and %.1f GB are kept, so that videos are decoded again and again; "
                "a cache folder (samples.cache in a recipe, Media.cache in Python) keeps all",
                ", ".join(cutters),
                box_bytes * len(rows) / 1e9,
                media.memory_bytes / 1e9,
            )

    def __len__(self) -> int:
        return len(self._place)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of one sample: frames, then what the cutter makes."""
        return (self._place.shape[1], *self._cutters[name].shape)

    def take(self, name: str, rows: Ints) -> Bytes:
        """(k, t, ...) bytes of some samples.

        Args:
            name: of the input.
            rows: (k,) the samples.

        Raises:
            InputError: if a video is missing, damaged, too short or of another size than its boxes.
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
                    # The longest unused goes first; the piece that was just cut stays, however large.
                    while held > self._memory_bytes and len(self._held) > 1:
                        held -= _bytes(self._held.popitem(last=False)[1])

    def _from_files(self, files: CuttingFiles, numbers: list[int], use: Use) -> None:
        """Use some pieces, of videos that have files or get them."""
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
        """Open the files of some videos; those that are not there are made."""
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
            ahead: the next one, or none; its faults are reported when it is asked for.
            costs: of every number.
            work: does some of them.
        """
        if missing:
            first, second = split_halves(missing, costs[missing])
            run_concurrently(first, second or ahead, work, needed=bool(second))

    def _film_blocks(
        self, low: int, high: int, reels: _Reels, stop: threading.Event, names: list[str]
    ) -> Iterator[Blocks]:
        """What is cut of a video, piece by piece."""
        starts = self._starts[(self._starts >= low) & (self._starts < high)]
        for begin, end in zip(starts, [*starts[1:], high], strict=True):
            yield self._cut(int(begin), int(end), names, reels, stop)

    def _cut(self, low: int, high: int, names: list[str], reels: _Reels, stop: threading.Event) -> Blocks:
        """What some cutters make of the boxes from `low` to `high`, all of one video."""
        made = {name: np.empty((high - low, *self._cutters[name].shape), dtype=np.uint8) for name in names}
        reel, before = reels.of(int(self._video[low])), -1
        for place in range(low, high):
            frame = int(self._frame[place])
            if frame != before:
                if stop.is_set():
                    raise StoppedError
                image, before = self._picture(reel, place), frame
            for name in names:
                made[name][place - low] = self._cutters[name].cut(image, self._regions[name][place])
        return made

    def _picture(self, reel: Reel, place: int) -> npt.NDArray[np.uint8]:
        """The frame that shows a box."""
        frame, video = int(self._frame[place]), self._names[self._video[place]]
        try:
            image = reel.frame(frame)
        except UsageError as error:
            raise InputError(f"a box stands in frame {frame}: {error}", where=video) from error
        size = (image.shape[1], image.shape[0])
        known_size = tuple(self._size[place].tolist())
        if size != known_size:
            message = (
                f"boxes are in pixels of {known_size[0]}x{known_size[1]}, images are {size[0]}x{size[1]}"
            )
            raise InputError(message, where=video, hint="give the original videos")
        return image


class _Reels:
    """The video that a thread looks at, open until it looks at another."""

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
    """A column of images, uint8 (k, t, side, side, 3) when taken.

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


def _bytes(blocks: Blocks) -> int:
    return sum(block.nbytes for block in blocks.values())
