"""Samples of crowds as tensors: maps that are made once and kept, sounds, and questions with their answers; imports torch."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import DiskError, InputError
from roadaware.io.files import write_atomically
from roadaware.io.video import CutOffError, NoSoundError, iterate_sound
from roadaware.models.crowd.config import STRIDE_PX, CrowdConfig, Task
from roadaware.models.crowd.grounding import WordReader
from roadaware.models.crowd.network import IntelliCare
from roadaware.models.crowd.people import choose_pairs
from roadaware.models.crowd.sound import RATE, SECONDS, hear
from roadaware.models.retinanet3d.detector import Fit
from roadaware.models.retinanet3d.layers import TimeConv
from roadaware.models.weights import digest_tensors
from roadaware.tasks.crowd import (
    CrowdSample,
    CrowdSet,
    CrowdVideo,
    Cutting,
    count_labels,
    cut_sample,
    scale_boxes,
)
from roadaware.training.batches import balance, draw_pass
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.footage import Footage

_log = logging.getLogger("roadaware")
_MULTIPLE = 32
_AT_ONCE = 16
"""Frames that the trunk sees at once where maps are made."""
_ORDER, _SAMPLE = 0, 1
_LONGEST_S = 4 * 3600.0
_MEAN, _STD = Fit().mean, Fit().std


# What is seen: images, and the maps before the first dynamic layer.


def fit_size(height: int, width: int, most: tuple[int, int]) -> tuple[int, int]:
    """Height and width of an image that was made to fit; a smaller one stays as it is.

    Args:
        height, width: of the image.
        most: height and width that it is made to fit in.
    """
    share = min(1.0, most[0] / height, most[1] / width)
    return max(1, round(share * height)), max(1, round(share * width))


def pad_size(size: tuple[int, int]) -> tuple[int, int]:
    """The next multiples of 32 pixels."""
    return -(-size[0] // _MULTIPLE) * _MULTIPLE, -(-size[1] // _MULTIPLE) * _MULTIPLE


def normalise(pictures: npt.NDArray[np.uint8] | Tensor, size: tuple[int, int]) -> Tensor:
    """(3, T, H, W) images as the trunk takes them, padded with zeros to the right and below.

    Args:
        pictures: (T, h, w, 3) uint8.
        size: H and W.
    """
    held = torch.as_tensor(pictures).float() / 255
    held = (held - torch.tensor(_MEAN)) / torch.tensor(_STD)
    bottom, right = size[0] - held.shape[1], size[1] - held.shape[2]
    return functional.pad(held.permute(3, 0, 1, 2), (0, right, 0, bottom))


def measure_reach(network: IntelliCare) -> int:
    """Frames on either side that a frame of the map before the dynamic layers can depend on, at most."""
    tail = tuple(f"{name}." for name, _ in network.trunk.steps()[network.trunk.cut :])
    return sum(
        part.kernel_size[0] - 1
        for name, part in network.trunk.named_modules()
        if isinstance(part, TimeConv) and not f"{name}.".startswith(tail)
    )


def name_stem(network: IntelliCare) -> list[str]:
    """Names of the tensors before the dynamic layers."""
    tail = tuple(f"{name}." for name, _ in network.trunk.steps()[network.trunk.cut :])
    return [f"trunk.{name}" for name in network.trunk.state_dict() if not name.startswith(tail or ("\0",))]


class Footing:
    """What is seen and heard of videos: images, maps before the dynamic layers, and sounds.

    Maps and sounds are kept in a folder, a file for each video, named by what it was made of: by weights, size, rate and
    the file of the video. Each is whole or not there, so that work that was cut off goes on.

    Args:
        of: the videos.
        folder: of what is kept; None to keep nothing, so that maps are made whenever they are asked for.
        size_px: height and width that images are made to fit in.
        cache_bytes: of images that are kept in memory.
    """

    def __init__(
        self, of: CrowdSet, folder: Path | None, size_px: tuple[int, int], cache_bytes: int = 0
    ) -> None:
        self.of, self.folder = of, folder
        films = [video.film for video in of.videos]
        self.sizes = [fit_size(film.height, film.width, size_px) for film in films]
        self.footage = Footage(films, self.sizes, cache_bytes)
        self._weights = ""
        self._open: dict[Path, npt.NDArray[Any]] = {}
        self._waves: dict[int, npt.NDArray[Any]] = {}

    def use(self, network: IntelliCare) -> None:
        """Say whose maps are kept.

        Args:
            network: with the weights that it has from now on before its dynamic layers.
        """
        state = network.state_dict()
        names = name_stem(network)
        self._weights = digest_tensors({name: state[name].cpu() for name in names})

    def scale(self, video: int) -> tuple[float, float]:
        """Pixels of the network's image in one of the video, in width and height."""
        film, (height, width) = self.of.videos[video].film, self.sizes[video]
        return width / film.width, height / film.height

    def pictures(self, video: int, slots: Ints) -> Tensor:
        """(T, h, w, 3) uint8 images of slots, rising or repeated."""
        frames = self.of.videos[video].frames[slots].tolist()
        return torch.from_numpy(np.stack(self.footage.pictures(video, frames)))

    def _path(self, video: int, what: str, *made_of: Any) -> Path | None:
        if self.folder is None:
            return None
        film = self.of.videos[video].film
        stamp = (film.picture(film.frames[0]) if film.is_pictures else Path(film.path)).stat()
        known = [film.video, film.n_frames, stamp.st_size, stamp.st_mtime_ns, *made_of]
        name = hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}.{what}.npy"

    def _map_path(self, video: int) -> Path | None:
        frames = self.of.videos[video].frames
        seen = hashlib.blake2b(frames.astype(np.int64).tobytes(), digest_size=8).hexdigest()
        return self._path(video, "map", self._weights, self.sizes[video], seen)

    def has_map(self, video: int) -> bool:
        """Whether the map of a video is kept."""
        path = self._map_path(video)
        return path is not None and self._read(path) is not None

    def make_map(self, video: int, network: IntelliCare) -> Tensor:
        """(C, T, h, w) float16 the map of a video before the dynamic layers; it is kept where there is a folder.

        Args:
            video: its number.
            network: as `use` was told.
        """
        path = self._map_path(video)
        kept = None if path is None else self._read(path)
        if kept is not None:
            return torch.from_numpy(np.array(kept))
        device = next(network.parameters()).device
        count, padded = len(self.of.videos[video]), pad_size(self.sizes[video])
        reach, parts = measure_reach(network), []
        was = network.training
        network.eval()
        with torch.no_grad():
            for start in range(0, count, _AT_ONCE):
                low, high = max(0, start - reach), min(count, start + _AT_ONCE + reach)
                images = normalise(self.pictures(video, np.arange(low, high)), padded)
                found = network.stem(images.unsqueeze(0).to(device))[0]
                end = min(count, start + _AT_ONCE)
                parts.append(found[:, start - low : end - low].half().cpu())
        network.train(was)
        whole = torch.cat(parts, dim=1).contiguous()
        if path is not None:
            self._write(path, whole.numpy())
        return whole

    def map(self, video: int, slots: Ints) -> Tensor:
        """(C, T, h, w) float16 the kept map of slots.

        Raises:
            InputError: if it is not kept.
        """
        path = self._map_path(video)
        kept = None if path is None else self._read(path)
        if kept is None:
            raise InputError("the map of this video was not made", where=self.of.videos[video].film.video)
        return torch.from_numpy(np.ascontiguousarray(kept[:, slots]))

    def sound(self, video: int) -> npt.NDArray[np.int16] | None:
        """(n, 2) samples of a film's sound at 16,000 a second; None where it has none."""
        film = self.of.videos[video].film
        if film.is_pictures:
            return None
        path = self._path(video, "sound")
        kept = self._waves.get(video) if path is None else self._read(path)
        if kept is None:
            kept = _read_wave(self.of.videos[video])
            if path is not None:
                self._write(path, kept)
            else:
                # The last one alone: questions come video by video where nothing is kept.
                self._waves = {video: kept}
        return kept if len(kept) else None

    def examples(self, video: int, at_s: float, side: int | None = None) -> Tensor | None:
        """(2, S, 96, 64) log-mels of the 3 s around a moment; None where nothing is heard there.

        Args:
            video: its number.
            at_s: the moment, on the clock of the film.
            side: the channel that takes the place of both (default: each for itself).
        """
        wave = self.sound(video)
        if wave is None:
            return None
        first, last = (round((at_s + sign * SECONDS / 2) * RATE) for sign in (-1, 1))
        piece = wave[max(0, first) : max(0, last)]
        if not len(piece):
            return None
        heard = piece.astype(np.float32) / 32767
        return hear(heard[:, [side, side]] if side is not None else heard, RATE)

    def _read(self, path: Path) -> npt.NDArray[Any] | None:
        """What is kept, not yet read from the disk; None where it is not there, or not whole."""
        if path in self._open:
            return self._open[path]
        try:
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        self._open[path] = found
        return found

    def _write(self, path: Path, array: npt.NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"{path.parent} could not be made: {error.strerror or error}") from error
        write_atomically(path, buffer.getvalue())

    def __getstate__(self) -> dict[str, Any]:
        """Everything but open files: each process opens its own."""
        return {**self.__dict__, "_open": {}}


def _read_wave(video: CrowdVideo) -> npt.NDArray[np.int16]:
    """(n, 2) the sound of a film at 16,000 samples a second; of length 0 where it has none."""
    seconds = min(_LONGEST_S, video.film.n_frames / video.fps + 1.0)
    wave = np.zeros((round(seconds * RATE), 2), dtype=np.int16)
    end = 0
    try:
        for at, block in iterate_sound(Path(video.film.path), RATE, seconds):
            low, high = max(0, at), min(len(wave), at + len(block))
            if low < high:
                wave[low:high] = np.clip(block[low - at : high - at], -1, 1) * 32767
                end = max(end, high)
    except NoSoundError:
        return wave[:0]
    except CutOffError as error:
        _log.warning("%s: its sound is heard as far as it is whole: %s", video.film.video, error.message)
    return wave[:end]


# Questions by the number of the draw.


@dataclass(eq=False)
class CrowdItem:
    """A question with what is seen and heard.

    Args:
        sample: the question.
        seen: (C, T, h, w) float16 map before the dynamic layers; or (T, H, W, 3) uint8 images.
        size: height and width of the network's image, padded.
        boxes: those of the sample, in pixels of the network's image.
        examples: (2, S, 96, 64) log-mels.
    """

    sample: CrowdSample
    seen: Tensor
    size: tuple[int, int]
    boxes: Floats32
    examples: Tensor | None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.sample.task}: {self.sample.name}"


class CrowdClips(Dataset[CrowdItem]):
    """The questions of a run by the number of the draw: the same number gives the same one on every machine.

    Args:
        footing: what is seen and heard.
        recipe: how questions are drawn and varied.
    """

    def __init__(self, footing: Footing, recipe: CrowdRecipe) -> None:
        self.footing, self.recipe, self.tasks = footing, recipe, recipe.ordered_tasks
        clips = recipe.clips
        self.cutting = Cutting(clips.frames, clips.most_frames, clips.most_people, clips.crop, clips.wrong)
        self.asks = footing.of.asks
        self.weights: dict[Task, Floats] = {
            task: balance(count_labels(footing.of, task), clips.balance_share, clips.balance_most)
            for task in self.tasks
        }
        self._turns: list[tuple[int, int]] = []
        self._counts = [0] * len(self.tasks)
        self._passes: dict[Task, tuple[int, Ints]] = {}

    def __len__(self) -> int:
        return sum(len(self.asks[task]) for task in self.tasks)

    def turn(self, number: int) -> tuple[Task, int]:
        """The task of a batch, and how many batches of it came before; tasks come in proportion."""
        shares = np.array([float(self.recipe.tasks[task]) for task in self.tasks])
        shares = shares / shares.sum()
        while len(self._turns) <= number:
            due = shares * (len(self._turns) + 1) - np.array(self._counts)
            chosen = int(due.argmax())
            self._turns.append((chosen, self._counts[chosen]))
            self._counts[chosen] += 1
        place, before = self._turns[number]
        return self.tasks[place], before

    def __getitem__(self, draw: int) -> CrowdItem:
        batch, seed = self.recipe.clips.batch, self.recipe.seed
        number, row = divmod(draw, batch)
        task, before = self.turn(number)
        turn, place = divmod(before * batch + row, len(self.asks[task]))
        if self._passes.get(task, (-1, None))[0] != turn:
            rng = np.random.default_rng([seed, _ORDER, self.tasks.index(task), turn])
            self._passes[task] = (turn, draw_pass(self.weights[task], rng))
        ask = self.asks[task][int(self._passes[task][1][place])]
        return self.item(task, (int(ask[0]), int(ask[1])), np.random.default_rng([seed, _SAMPLE, draw]))

    def item(self, task: Task, ask: tuple[int, int], rng: np.random.Generator) -> CrowdItem:
        """A question with what is seen and heard.

        Args:
            task: which head is asked.
            ask: a row of `CrowdSet.asks`.
            rng: of this question.
        """
        clips, footing = self.recipe.clips, self.footing
        sample = cut_sample(footing.of, task, ask, self.cutting, rng)
        boxes = scale_boxes(sample.boxes, footing.scale(sample.video))
        if task in ("actions", "relations"):
            boxes = jitter(boxes, clips.jitter, rng)
        examples = None
        if task == "sound":
            drawn, side = rng.random(), int(rng.integers(2))
            examples = footing.examples(sample.video, sample.at_s, side if drawn < clips.mono else None)
            if examples is None:
                # The film is silent there.
                examples = hear(np.zeros((RATE * SECONDS, 2), dtype=np.float32), RATE)
        if self.recipe.model.train_trunk:
            seen = footing.pictures(sample.video, sample.slots)
        else:
            seen = footing.map(sample.video, sample.slots)
        return CrowdItem(sample, seen, pad_size(footing.sizes[sample.video]), boxes, examples)


def jitter(boxes: Floats32, share: float, rng: np.random.Generator) -> Floats32:
    """Boxes moved and made larger or smaller by chance, as those of a detector are; each alike in all frames.

    Args:
        boxes: (n, ..., 4) corners.
        share: of width and height, at most.
        rng: numbers are drawn from it.
    """
    shape = (len(boxes), *(1,) * (boxes.ndim - 2), 4)
    size = np.tile(boxes[..., 2:] - boxes[..., :2], 2)
    moved: Floats32 = (boxes + rng.uniform(-share, share, shape) * size).astype(np.float32)
    return moved


# Batches as heads take them.


@dataclass(eq=False)
class Question:
    """A batch of one task.

    Args:
        task: which head is asked.
        seen: (B, C, T, h, w) maps before the dynamic layers; or (B, 3, T, H, W) images.
        images: whether these are images.
        asked: what the head takes beside the map.
        answer: what its loss takes.
    """

    task: Task
    seen: Tensor
    images: bool
    asked: dict[str, Tensor]
    answer: dict[str, Tensor]


def build_question(
    items: Sequence[CrowdItem], config: CrowdConfig, reader: WordReader | None, device: torch.device
) -> Question:
    """Questions of one task as tensors; clips of other sizes and lengths are padded to the right, below and behind.

    Args:
        items: of one task.
        config: of the network.
        reader: of sentences.
        device: where to.
    """
    task: Task = items[0].sample.task
    images = items[0].seen.dtype == torch.uint8
    frames = max(item.seen.shape[0 if images else 1] for item in items)
    if images and config.trunk == "i3d" and config.time_pool:
        frames += frames % 2
    size = (max(item.size[0] for item in items), max(item.size[1] for item in items))
    rows = []
    for item in items:
        seen = normalise(item.seen, size) if images else item.seen.float()
        whole = size if images else (size[0] // STRIDE_PX, size[1] // STRIDE_PX)
        behind = frames - seen.shape[1]
        rows.append(
            functional.pad(seen, (0, whole[1] - seen.shape[3], 0, whole[0] - seen.shape[2], 0, behind))
        )
    builders: Mapping[Task, Callable[..., tuple[dict[str, Tensor], dict[str, Tensor]]]] = {
        "actions": _ask_actions,
        "relations": _ask_relations,
        "grounding": _ask_sentences,
        "sound": _ask_sounds,
    }
    asked, answer = builders[task](items, config, reader, size, frames)
    return Question(
        task,
        torch.stack(rows).to(device),
        images,
        {name: value.to(device) for name, value in asked.items()},
        {name: value.to(device) for name, value in answer.items()},
    )


Pair = tuple[dict[str, Tensor], dict[str, Tensor]]


def _owners(items: Sequence[CrowdItem]) -> Tensor:
    return torch.cat([torch.full((len(item.boxes),), n, dtype=torch.int64) for n, item in enumerate(items)])


def _ask_actions(
    items: Sequence[CrowdItem],
    config: CrowdConfig,
    reader: WordReader | None,
    size: tuple[int, int],
    frames: int,
) -> Pair:
    clip = _owners(items)
    frame = torch.tensor([item.sample.frame for item in items])[clip]
    boxes = torch.from_numpy(np.concatenate([item.boxes for item in items]))
    targets = torch.from_numpy(np.concatenate([item.sample.targets for item in items]))
    return {"boxes": boxes, "clip": clip, "frame": frame}, {"targets": targets.float()}


def _ask_relations(
    items: Sequence[CrowdItem],
    config: CrowdConfig,
    reader: WordReader | None,
    size: tuple[int, int],
    frames: int,
) -> Pair:
    clip = _owners(items)
    frame = torch.tensor([item.sample.frame for item in items])
    boxes = torch.from_numpy(np.concatenate([item.boxes for item in items]))
    now = boxes[torch.arange(len(boxes)), frame[clip]]
    pairs = choose_pairs(now, clip, heights=config.pair_heights, most=config.max_pairs).index
    first = torch.tensor(np.cumsum([0, *(len(item.boxes) for item in items)])[:-1])
    owner = clip[pairs[:, 0]]
    own = pairs - first[owner][:, None]
    held = [torch.from_numpy(item.sample.targets) for item in items]
    targets = [held[c][s, o] for c, (s, o) in zip(owner.tolist(), own.tolist(), strict=True)]
    predicates = held[0].shape[2]
    answer = torch.stack(targets).float() if targets else torch.zeros(0, predicates)
    return {"boxes": boxes, "clip": clip, "pairs": pairs, "frame": frame}, {"targets": answer}


def _ask_sentences(
    items: Sequence[CrowdItem],
    config: CrowdConfig,
    reader: WordReader | None,
    size: tuple[int, int],
    frames: int,
) -> Pair:
    if reader is None:
        raise InputError("sentences cannot be read: the vocabulary has no words")
    words = reader.encode([item.sample.sentence for item in items])
    lengths = torch.tensor([len(item.sample.slots) for item in items])
    mask = torch.arange(frames)[None] < lengths[:, None]
    boxes = torch.full((len(items), frames, 4), float("nan"))
    for place, item in zip(boxes, items, strict=True):
        place[: len(item.boxes)] = torch.from_numpy(item.boxes)
    whole = torch.tensor([size[1], size[0]], dtype=torch.float32)
    centre, extent = (boxes[..., :2] + boxes[..., 2:]) / 2 / whole, (boxes[..., 2:] - boxes[..., :2]) / whole
    target = torch.cat([centre, extent], dim=2)
    # Who is spoken of may have no box in a frame of the span.
    span = torch.tensor([item.sample.span for item in items])
    asked = {"ids": words.ids, "mask": words.mask, "frames": mask}
    return asked, {"target": target.nan_to_num(0.5), "span": span, "mask": mask}


def _ask_sounds(
    items: Sequence[CrowdItem],
    config: CrowdConfig,
    reader: WordReader | None,
    size: tuple[int, int],
    frames: int,
) -> Pair:
    target = torch.stack([cover_cells(item.boxes, size, config.map_size) for item in items])
    examples = torch.stack([item.examples for item in items if item.examples is not None])
    asked = torch.tensor([item.sample.asked for item in items])
    heard = torch.tensor([float(item.sample.heard) for item in items])
    return {"examples": examples, "asked": asked}, {"target": target, "heard": heard}


def cover_cells(boxes: Floats32, size: tuple[int, int], cells: int) -> Tensor:
    """(cells, cells) how much of each cell the box that covers most of it covers, in [0, 1].

    Args:
        boxes: (n, 4) corners in pixels.
        size: height and width of the image.
        cells: in each direction.
    """
    held = torch.from_numpy(boxes).float()
    if not len(held):
        return torch.zeros(cells, cells)

    def along(low: Tensor, high: Tensor, length: int) -> Tensor:
        edges = torch.linspace(0, length, cells + 1)
        inner = torch.minimum(high[:, None], edges[None, 1:]) - torch.maximum(low[:, None], edges[None, :-1])
        return inner.clamp(min=0) / (length / cells)

    columns, rows = along(held[:, 0], held[:, 2], size[1]), along(held[:, 1], held[:, 3], size[0])
    return (rows[:, :, None] * columns[:, None, :]).amax(dim=0)
