"""Batches: clips side by side, mirrored or not, as the network and its loss take them."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from roadaware.arrays import Bools, Floats, Floats32, Ints, Pixels
from roadaware.errors import UsageError
from roadaware.models.retinanet3d.anchors import Targets
from roadaware.models.retinanet3d.loss import max_over_processes
from roadaware.scenes.composites import Composition
from roadaware.tasks.road_events import Classes, Hot, VideoTruth
from roadaware.tasks.videos import Footage, resize_image
from roadaware.training.recipe import AugmentRecipe, Recipe

# Mirroring: labels of images flipped left to right, by the sides in their names.

_SIDES = {"Lft": "Rht", "Left": "Right", "left": "right", "LEFT": "RIGHT"}
_OTHER = {**_SIDES, **{right: left for left, right in _SIDES.items()}}
# The longest first: of alternatives that fit, the first one is taken.
_SIDE = re.compile("|".join(sorted(_OTHER, key=len, reverse=True)))


def replace_mirrored_words(label: str) -> str:
    """The label of the mirror image.

    >>> replace_mirrored_words("Ped-XingFmLft-RhtPav")
    'Ped-XingFmRht-LftPav'
    """
    return _SIDE.sub(lambda found: _OTHER[found[0]], label)


@dataclass(frozen=True, eq=False)
class Mirror:
    """Permutation of classes in a mirror image.

    A composite label is had by whoever has all its parts, so a composite whose mirror image has no name ends
    there, and one that had no name may begin. A plain label without mirror image cannot be turned.

    Args:
        source: (c) the column that each column takes its value from; -1 for none.
        stuck: (c) columns of plain labels whose mirror image has no name.
        parts: for each composite kind its first column, and (labels, kinds) columns that make it up.
        av: (v) action of the own vehicle to its mirror image; -1 where that has no name.
    """

    source: Ints
    stuck: Bools
    parts: tuple[tuple[int, Ints], ...]
    av: Ints

    def turns(self, hot: Bools, av: Ints) -> bool:
        """Whether everything that is seen has a mirror image.

        Args:
            hot: (n, c) classes of all boxes.
            av: actions of the own vehicle, -1 for unknown.
        """
        return not bool(hot[:, self.stuck].any()) and all(self.av[a] >= 0 for a in av.tolist() if a >= 0)

    def classes(self, hot: Hot) -> Hot:
        """(n, c) classes in the mirror; a composite is as likely as the least likely of its parts."""
        turned = hot[:, self.source.clip(min=0)] * (self.source >= 0)
        for first, parts in self.parts:
            turned[:, first : first + len(parts)] = turned[:, parts].min(axis=2)
        return turned

    def actions(self, av: Ints) -> Ints:
        """(n) actions of the own vehicle in the mirror."""
        if not len(self.av):
            return av
        return np.where(av >= 0, self.av[av.clip(min=0)], -1)


def build_mirror(
    classes: Classes, compositions: tuple[Composition, ...], words: Mapping[str, tuple[str, ...]]
) -> Mirror:
    """The mirror of a detector's classes.

    Args:
        classes: its columns.
        compositions: what composite labels are made of.
        words: the vocabularies that `compositions` counts in.
    """
    at = {named: place for place, named in enumerate(classes.names)}
    source = np.array([at.get((kind, replace_mirrored_words(label)), -1) for kind, label in classes.names])
    # Agentness has no side.
    source[0] = 0
    parts, composite = [], set()
    for each in compositions:
        if each.kind not in classes.kinds or not set(each.of) <= set(classes.kinds):
            continue
        names = {
            words[each.kind][row]: [
                at.get((k, words[k][c]), -1) for k, c in zip(each.of, columns, strict=True)
            ]
            for row, columns in enumerate(each.children.tolist())
        }
        held = np.array([names.get(label, [-1]) for label in classes.kinds[each.kind]], dtype=np.int64)
        if held.size and (held >= 0).all():
            parts.append((at[each.kind, classes.kinds[each.kind][0]], held))
            composite.add(each.kind)
    stuck = np.array([place < 0 for place in source])
    stuck &= np.array([kind not in composite for kind, _ in classes.names])
    av_at = {label: place for place, label in enumerate(classes.av_labels)}
    av = np.array(
        [av_at.get(replace_mirrored_words(label), -1) for label in classes.av_labels], dtype=np.int64
    )
    return Mirror(source, stuck, tuple(parts), av)


# Augmentation: mirror images, zoom, shift and colours, drawn once for all frames of a clip.


# A teacher's scores count as labels from a half on.
_LIKELY = 0.5
# Shares of red, green and blue in brightness (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(eq=False)
class FramesOfClip:
    """The images of a clip and the ground truth of them, in pixels of these images.

    Args:
        pictures: T of (h, w, 3) uint8.
        boxes: T of (n, 4).
        hot: T of (n, c), which classes boxes have, or how likely.
        av: (T) action of the own vehicle, -1 for unknown.
        colour: (3, 4) what red, green and blue in [0, 1] and 1 are multiplied by; None for as they are.
    """

    pictures: list[Pixels]
    boxes: list[Floats32]
    hot: list[Hot]
    av: Ints
    colour: Floats32 | None = None


def transform_clip(
    clip: FramesOfClip, how: AugmentRecipe, mirror: Mirror, rng: np.random.Generator
) -> FramesOfClip:
    """Apply random augmentation to a clip; always draws the same number of random numbers.

    Args:
        clip: is changed.
        how: what may happen.
        mirror: what becomes of labels.
        rng: of this clip.
    """
    # Drawn whatever the recipe asks for, so that a field changes nothing but what it is about.
    turn, tint, zoom, right, down = rng.random(5)
    shades = rng.uniform(-1, 1, 4)
    likely = np.concatenate([hot > _LIKELY for hot in clip.hot])
    if turn < how.flip and mirror.turns(likely, clip.av):
        width = clip.pictures[0].shape[1]
        clip.pictures = [image[:, ::-1] for image in clip.pictures]
        clip.boxes = [
            np.stack([width - b[:, 2], b[:, 1], width - b[:, 0], b[:, 3]], axis=1) for b in clip.boxes
        ]
        clip.hot = [mirror.classes(hot) for hot in clip.hot]
        clip.av = mirror.actions(clip.av)
    if how.zoom != (1.0, 1.0) or how.shift:
        # Evenly in the logarithm: half the size is as likely as double.
        low, high = (math.log(factor) for factor in how.zoom)
        factor = math.exp(low + zoom * (high - low))
        _move(clip, factor, (2 * right - 1) * how.shift, (2 * down - 1) * how.shift, how.min_visible)
    if tint < how.colour:
        clip.colour = build_colour_matrix(
            brightness=1 + how.brightness * shades[0],
            contrast=1 + how.contrast * shades[1],
            saturation=1 + how.saturation * shades[2],
            hue=how.hue * shades[3],
        )
    return clip


def _move(clip: FramesOfClip, factor: float, right: float, down: float, min_visible: float) -> None:
    """Zoom about the middle and shift by shares of the image; what comes in is grey."""
    height, width = clip.pictures[0].shape[:2]
    new = (max(1, round(height * factor)), max(1, round(width * factor)))
    x, y = round((width - new[1]) / 2 + right * width), round((height - new[0]) / 2 + down * height)
    clip.pictures = [_pad_image(resize_image(p, new), (height, width), x, y) for p in clip.pictures]
    scale = np.array([new[1] / width, new[0] / height] * 2, dtype=np.float32)
    limits = np.array([width, height] * 2, dtype=np.float32)
    for t, boxes in enumerate(clip.boxes):
        moved = boxes * scale + np.array([x, y, x, y], dtype=np.float32)
        inside = np.clip(moved, 0, limits)
        kept = _area(inside) > min_visible * np.maximum(_area(moved), 1e-6)
        clip.boxes[t], clip.hot[t] = inside[kept], clip.hot[t][kept]


def _area(boxes: Floats32) -> Floats32:
    area: Floats32 = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return area


def _pad_image(image: Pixels, size: tuple[int, int], x: int, y: int) -> Pixels:
    """The image with its corner at (x, y) of a grey one."""
    # Near the means that networks take off (104 to 124): a border is hardly anything to them.
    canvas = np.full((*size, 3), 114, dtype=np.uint8)
    height, width = image.shape[:2]
    top, left = max(0, y), max(0, x)
    bottom, right = min(size[0], y + height), min(size[1], x + width)
    if bottom > top and right > left:
        canvas[top:bottom, left:right] = image[top - y : bottom - y, left - x : right - x]
    return canvas


def build_colour_matrix(*, brightness: float, contrast: float, saturation: float, hue: float) -> Floats32:
    """(3, 4) matrix that changes colours (red, green, blue, 1) in [0, 1], before they are cut off there.

    Args:
        brightness: factor of everything.
        contrast: factor of the distance from middle grey.
        saturation: factor of the distance from the grey of the same lightness.
        hue: turn about the axis of greys, in shares of a circle.
    """
    grey = np.tile(_LUMA, (3, 1))
    saturated = grey + saturation * (np.eye(3) - grey)
    # A turn about the axis of greys (Rodrigues' formula): what is grey stays grey.
    axis = np.full((3, 3), 1 / 3)
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    angle = 2 * math.pi * hue
    turned = axis + math.cos(angle) * (np.eye(3) - axis) + math.sin(angle) * cross
    linear = brightness * contrast * saturated @ turned
    # Contrast is about middle grey.
    offset = np.full((3, 1), 0.5 * brightness * (1 - contrast))
    return np.concatenate([linear, offset], axis=1).astype(np.float32)


# Clips: stretches of frames with the ground truth of them, in an order that seed and step alone decide.

_ORDER, _SAMPLE = 0, 1


@dataclass(frozen=True, eq=False)
class ClipTable:
    """Start frames of clips.

    Args:
        film: (n) number of the video.
        start: (n) its first frame.
        weight: (n) how often it is drawn, on average 1.
        short: videos that are shorter than a clip: their last image is repeated, unlabelled.
        bare: videos of which nobody annotated any frame; they have no clips.
    """

    film: Ints
    start: Ints
    weight: Floats
    short: tuple[str, ...]
    bare: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.film)


def clip_table(
    footage: Footage, truth: Sequence[VideoTruth], recipe: Recipe, counted: Sequence[int] | None = None
) -> ClipTable:
    """The clips of videos.

    Args:
        footage: the videos.
        truth: of each video.
        recipe: how videos are cut and balanced.
        counted: columns of the classes by which clips are balanced; all where None.

    Raises:
        UsageError: if there is no clip.
    """
    clips = recipe.clips
    span = (clips.frames - 1) * clips.frame_step + 1
    stride = clips.stride or clips.frames * clips.frame_step
    film, start, short, bare = [], [], [], []
    for number, (each, held) in enumerate(zip(footage.films, truth, strict=True)):
        n = min(each.n_frames, len(held))
        if n < span:
            short.append(each.video)
        begins = sorted({*range(0, max(n - span, 0) + 1, stride), max(n - span, 0)})
        used = [b for b in begins if held.labelled[b : b + span : clips.frame_step].any()]
        if not used:
            bare.append(each.video)
        film += [number] * len(used)
        start += used
    if not film:
        raise UsageError(f"no frame of {len(footage.films)} videos is annotated: there is nothing to learn")
    table = ClipTable(np.array(film), np.array(start), np.ones(len(film)), tuple(short), tuple(bare))
    if clips.balance == "none":
        return table
    # (n) how often each clip is drawn; see `balance`
    clips = recipe.clips
    span = (clips.frames - 1) * clips.frame_step + 1
    has: Bools = np.zeros((len(table), truth[0].n_classes), dtype=np.bool_)
    for row, (film, start) in enumerate(zip(table.film.tolist(), table.start.tolist(), strict=True)):
        held = truth[film]
        ends = held.starts[[min(start, len(held)), min(start + span, len(held))]]
        has[row] = (held.hot(slice(*ends.tolist())) > _LIKELY).any(axis=0)
    has = has if counted is None else has[:, list(counted)]
    weights = balance(has, clips.balance_share, clips.balance_most)
    return ClipTable(table.film, table.start, weights, table.short, table.bare)


def balance(has: Bools, share: float, most: float) -> Floats:
    """(n) how often each of n is drawn, with a mean of 1: sqrt(share / share of those with its rarest label).

    Args:
        has: (n, labels) which labels each has.
        share: a label that this share has counts as common.
        most: nothing counts more often.

    Source: repeat factors of Gupta et al., LVIS, CVPR 2019, section 4.
    """
    if not len(has):
        return np.zeros(0)
    held = has.mean(axis=0)
    with np.errstate(divide="ignore"):
        # A label that nothing has asks for nothing.
        factor = np.sqrt(share / np.where(held > 0, held, np.inf))
    factor = np.clip(factor, 1.0, most)
    found = np.where(has, factor, 1.0).max(axis=1, initial=1.0)
    return np.asarray(found / found.mean(), dtype=np.float64)


def sample_clips(table: ClipTable, seed: int, turn: int) -> Ints:
    """(n) which clips a pass takes, in order; see `draw_pass`.

    Args:
        table: the clips.
        seed: of the run.
        turn: number of the pass, from 0.
    """
    # A stream of numbers for each purpose: drawing more of one changes nothing in the other.
    return draw_pass(table.weight, np.random.default_rng([seed, _ORDER, turn]))


def draw_pass(weight: Floats, rng: np.random.Generator) -> Ints:
    """(n) which of n a pass takes, in order; each as often as its weight says, up or down to a whole number.

    Args:
        weight: (n) above 0.
        rng: of the pass.
    """
    n = len(weight)
    ends = np.cumsum(weight) * (n / weight.sum())
    # Rounding would leave the last end below n, and the last clip without its share.
    ends[-1] = n
    # One offset for all: each clip comes as often as its weight, up or down to a whole number.
    chosen = np.searchsorted(ends, np.arange(n) + rng.random(), side="right")
    return rng.permutation(np.minimum(chosen, n - 1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Sample:
    """One clip for the network.

    Args:
        pictures: (T, h, w, 3) uint8.
        boxes: T of (n, 4) in pixels of these images.
        classes: T of (n, c) bool, or from 0 to 1 of a teacher, agentness first.
        av: (T) action of the own vehicle, -1 for unknown.
        labelled: (T) whether the frame counts.
        colour: (3, 4) see `augmentation.colours`, or None.
        name: video and first frame, for messages.
    """

    pictures: Tensor
    boxes: list[Tensor]
    classes: list[Tensor]
    av: Tensor
    labelled: Tensor
    colour: Tensor | None
    name: str


class ClipSet(Dataset[Sample]):
    """The clips of a run by the number of the draw: the same number gives the same clip on every machine.

    Args:
        footage: images.
        truth: of each video.
        table: where clips begin.
        recipe: how they are cut and varied.
        mirror: of the classes.
    """

    def __init__(
        self,
        footage: Footage,
        truth: Sequence[VideoTruth],
        table: ClipTable,
        recipe: Recipe,
        mirror: Mirror,
    ) -> None:
        self.footage, self.truth, self.table = footage, truth, table
        self.recipe, self.mirror = recipe, mirror
        self._pass: tuple[int, Ints] = (-1, np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, draw: int) -> Sample:
        turn, place = divmod(draw, len(self.table))
        if self._pass[0] != turn:
            self._pass = (turn, sample_clips(self.table, self.recipe.seed, turn))
        return self.clip(int(self._pass[1][place]), draw)

    def clip(self, row: int, draw: int) -> Sample:
        """One clip as a draw has it."""
        clips, rng = self.recipe.clips, np.random.default_rng([self.recipe.seed, _SAMPLE, draw])
        film, start = int(self.table.film[row]), int(self.table.start[row])
        truth, n = self.truth[film], self._length(film)
        # Drawn whether or not it is used, so that what follows stays the same.
        late = int(rng.integers(clips.stride or clips.frames * clips.frame_step))
        span = (clips.frames - 1) * clips.frame_step + 1
        if clips.shift:
            start = min(start + late, max(n - span, 0))
        frames = start + clips.frame_step * np.arange(clips.frames)
        inside = frames < n
        labelled = inside & np.where(inside, truth.labelled[np.minimum(frames, n - 1)], False)
        seen = self._seen(film, np.minimum(frames, n - 1), labelled)
        name = f"{self.footage.films[film].video} from frame {start}"
        clip = transform_clip(seen, self.recipe.augment, self.mirror, rng)
        recipe = self.recipe
        boxes, classes = [], []
        for found, hot in zip(clip.boxes, clip.hot, strict=True):
            side = np.minimum(found[:, 2] - found[:, 0], found[:, 3] - found[:, 1])
            kept = (side > 0) & (side >= recipe.data.min_box_px)
            boxes.append(torch.from_numpy(np.ascontiguousarray(found[kept])))
            classes.append(torch.from_numpy(hot[kept]))
        return Sample(
            torch.from_numpy(np.stack(clip.pictures)),
            boxes,
            classes,
            torch.from_numpy(clip.av.astype(np.int64)),
            torch.from_numpy(labelled),
            None if clip.colour is None else torch.from_numpy(clip.colour),
            name,
        )

    def _length(self, film: int) -> int:
        return min(self.footage.films[film].n_frames, len(self.truth[film]))

    def _seen(self, film: int, frames: Ints, labelled: npt.NDArray[np.bool_]) -> FramesOfClip:
        """Images and ground truth in their pixels; nothing is true of frames that do not count."""
        truth, of = self.truth[film], self.footage.films[film]
        height, width = self.footage.sizes[film]
        scale = np.array([width / of.width, height / of.height] * 2, dtype=np.float32)
        boxes, hot = [], []
        for frame, counts in zip(frames.tolist(), labelled.tolist(), strict=True):
            found, classes = truth.frame(frame if counts else len(truth))
            boxes.append(found * scale)
            hot.append(classes)
        av = np.where(labelled, truth.av[frames], -1)
        return FramesOfClip(self.footage.pictures(film, frames.tolist()), boxes, hot, av)


@dataclass(frozen=True)
class Share:
    """Share of each step's random draws for one process.

    Args:
        batch: clips at a time, of all processes; at least one for each.
        accumulate: times in a step.
        rank, world: number of the process, and how many there are.

    Raises:
        UsageError: if there are more processes than clips.
    """

    batch: int
    accumulate: int = 1
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        """Refuse a share of nothing."""
        if self.batch < self.world:
            raise UsageError(
                f"{self.world} processes share clips.batch, which is {self.batch}: at least one clip each"
            )

    @property
    def step(self) -> int:
        """Clips in a step of all processes."""
        return self.batch * self.accumulate

    @property
    def places(self) -> range:
        """Which of a batch are this process's; numbers differ by one at most where they must."""
        return range(self.batch * self.rank // self.world, self.batch * (self.rank + 1) // self.world)


class Draws:
    """The draws of each batch from one step on: a run that goes on sees what it would have seen.

    Args:
        share: of this process.
        first: step to begin with.
        steps: step to end before.
    """

    def __init__(self, share: Share, first: int, steps: int) -> None:
        self.share, self.first, self.steps = share, first, steps

    def __len__(self) -> int:
        return max(0, self.steps - self.first) * self.share.accumulate

    def __iter__(self) -> Iterator[list[int]]:
        share = self.share
        for step in range(self.first, self.steps):
            for part in range(share.accumulate):
                start = step * share.step + part * share.batch
                yield [start + place for place in share.places]


@dataclass(frozen=True, eq=False)
class Batch:
    """Clips of one step.

    Args:
        samples: the clips, each a `Sample`, or what another learner takes; each has a `name`.
    """

    samples: list[Any]

    @property
    def names(self) -> str:
        """Names of its content, for messages."""
        return ", ".join(sample.name for sample in self.samples)


class Fitting(Protocol):
    """How images are brought to the size and the numbers that a network wants, such as `Fit`."""

    @property
    def multiple_px(self) -> int:
        """Right and bottom are padded up to a multiple."""
        ...

    @property
    def mean(self) -> tuple[float, ...]:
        """Of the channels, red first, of images in [0, 1]."""
        ...

    @property
    def std(self) -> tuple[float, ...]:
        """Of the same."""
        ...

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image once it is resized, not yet padded."""
        ...


def prepare_batch(
    batch: Batch, fit: Fitting, device: torch.device, *, channels_last: bool
) -> tuple[Tensor, Targets]:
    """(B, 3, T, H, W) normalised and padded images, and the ground truth of them.

    Args:
        batch: of clips with equally many frames; their images may differ in size.
        fit: mean, deviation and padding.
        device: where to.
        channels_last: leave channels innermost in memory, as they come.
    """
    samples = batch.samples
    sizes = [sample.pictures.shape[1:3] for sample in samples]
    # Padding counts as background, so that all processes pad as one would.
    largest = max_over_processes(torch.tensor(sizes, device=device).amax(dim=0)).tolist()
    height, width = (-(-side // fit.multiple_px) * fit.multiple_px for side in largest)
    x = torch.zeros(len(samples), len(samples[0].pictures), height, width, 3, device=device)
    mean = torch.tensor(fit.mean, device=device).mul(255)
    factor = torch.tensor(fit.std, device=device).mul(255).reciprocal()
    for sample, (h, w), place in zip(samples, sizes, x, strict=True):
        images = sample.pictures.to(device, torch.float32)
        if sample.colour is not None:
            colour = sample.colour.to(device)
            images = (images @ colour[:, :3].T + 255 * colour[:, 3]).clamp_(0, 255)
        torch.mul(images.sub_(mean), factor, out=place[:, :h, :w])
    x = x.permute(0, 4, 1, 2, 3)
    targets = Targets(
        boxes=[[boxes.to(device) for boxes in sample.boxes] for sample in samples],
        classes=[[hot.to(device, torch.float32) for hot in sample.classes] for sample in samples],
        av=torch.stack([sample.av for sample in samples]).to(device),
        labelled=torch.stack([sample.labelled for sample in samples]).to(device),
    )
    return (x if channels_last else x.contiguous()), targets


def build_loader(clips: Dataset[Any], draws: Draws, workers: int) -> DataLoader[Any]:
    """Batches in the order of the draws.

    Args:
        clips: by number of the draw.
        draws: of each batch.
        workers: processes; 0 for none.
    """
    return DataLoader(
        clips,
        batch_sampler=draws,
        num_workers=workers,
        collate_fn=_together,
        worker_init_fn=_alone if workers else None,
        # Forked processes would inherit locks that threads of torch and of decoders hold.
        multiprocessing_context="spawn" if workers else None,
        prefetch_factor=2 if workers else None,
    )


def _together(samples: Sequence[Any]) -> Batch:
    return Batch(list(samples))


def _alone(_: int) -> None:
    """A worker takes one thread, since the cores belong to the network, and is ended by its owner alone."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
