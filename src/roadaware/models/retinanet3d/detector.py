"""The network as a Detector, frame by frame or in windows, and its outputs decoded, fast or plainly."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.refine import BoxRefiner, SecondLook
from roadaware.models.retinanet3d.anchors import decode
from roadaware.models.retinanet3d.config import DetectRule, RetinaNetConfig
from roadaware.models.retinanet3d.fast_inference import (
    Head,
    PartMap,
    build_fast_backbone,
    concat_channels_last,
    to_at_least_float32,
)
from roadaware.models.retinanet3d.layers import make_streaming_copy, reset_stream_state
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.roi import suppress_block

# The heads without waste: agentness everywhere, boxes where it passes, classes where a box is kept.

_SMALL = 2048
"""Cells of a level, over all its frames, below which looking for what is needed costs more than it saves."""
_DENSE = 0.2
"""Share of a level's cells from which a convolution everywhere is cheaper than patches."""


class LazyHeads:
    """Both heads of a network, evaluated lazily, on clips or on a stream.

    The towers mix no frames, so that frames which a pooled backbone shows twice go through them once; the
    last convolution is the sum of what each frame it spans gives. Weights are taken as they are when this
    is made.

    Args:
        classes, boxes: the heads: convolutions over space with ReLU, and a last `TimeConv`.
        n_anchors: of a cell.
        paired: frames 2j and 2j + 1 of every map are the same, as a pooled backbone gives them.
        streaming: `read` continues a stream of one video; the last convolutions must be causal.
    """

    def __init__(
        self,
        classes: nn.Sequential,
        boxes: nn.Sequential,
        n_anchors: int,
        *,
        paired: bool = False,
        streaming: bool = False,
    ) -> None:
        self.classes, self.boxes = Head(classes, n_anchors), Head(boxes, n_anchors)
        self.every = 2 if paired else 1
        self.streaming = streaming
        self.forget()

    def forget(self) -> None:
        """Begin a new stream."""
        self.seen = 0
        self.levels: list[_Level] = []

    def read(self, maps: Sequence[Tensor]) -> Read:
        """Outputs of the heads for these frames, evaluated on demand.

        Args:
            maps: (B, width, T, H, W) of each level; in a stream B is 1.
        """
        first = self.seen % self.every if self.streaming else 0
        new = [level[:, :, first :: self.every].transpose(1, 2).flatten(0, 1) for level in maps]
        return self.read_distinct(new, maps[0].shape[0], maps[0].shape[2])

    @torch.inference_mode()
    def read_distinct(self, new: Sequence[Tensor], batch: int, frames: int) -> Read:
        """As `read`, of maps whose frames are not repeated.

        Args:
            new: (B J, width, H, W) of each level, J distinct frames of each video.
            batch: B.
            frames: T, of each video.
        """
        begin = self.seen if self.streaming else 0
        levels = [self._level(level) for level in new]
        shown = range(begin, begin + frames)
        if not self.streaming:
            return Read(self, levels, self._table(shown, 0, len(new[0]) // batch, batch))
        if self.levels:
            levels = [was.followed(now) for was, now in zip(self.levels, levels, strict=True)]
        slots = len(levels[0].classes)
        end = -(-(begin + frames) // self.every)
        table = self._table(shown, end - slots, slots, 1)
        oldest = max(begin + frames - self.classes.before, 0) // self.every
        self.levels = [level.since(oldest - (end - slots)) for level in levels]
        self.seen = begin + frames
        return Read(self, levels, table)

    def _level(self, frames: Tensor) -> _Level:
        classes = self.classes.tower(frames)
        return _Level(classes, self.classes.everywhere(classes, 0), PartMap.empty(self.boxes.tower, frames))

    def _table(self, shown: range, first: int, slots: int, batch: int) -> Tensor:
        """Which slot each frame finds under each part of the last kernel; -1 for none.

        Args:
            shown: T frames asked about, of a clip or stream.
            first: the distinct frame in slot 0.
            slots: distinct frames of one video.
            batch: videos.

        Returns:
            (batch T, taps).
        """
        near = range(-self.classes.before, self.classes.taps - self.classes.before)
        return torch.tensor(
            [
                [
                    video * slots + (frame + ahead) // self.every - first
                    if 0 <= frame + ahead < shown.stop
                    else -1
                    for ahead in near
                ]
                for video in range(batch)
                for frame in shown
            ]
        )


@dataclass
class _Level:
    """What one level of the pyramid gave, for each distinct frame in memory.

    Args:
        classes: (S, C, H, W) behind the tower of the classes.
        agentness: (S, taps, cells, anchors, 1), as `Head.everywhere` gives it.
        boxes: behind the tower of the boxes, as far as it was asked for.
    """

    classes: Tensor
    agentness: Tensor
    boxes: PartMap

    def followed(self, other: _Level) -> _Level:
        """The slots of this one, then those of another."""
        if not len(other.classes) or not len(self.classes):
            return self if len(self.classes) else other
        return _Level(
            concat_channels_last(self.classes, other.classes),
            torch.cat([self.agentness, other.agentness]),
            self.boxes.followed(other.boxes),
        )

    def since(self, slot: int) -> _Level:
        """Without the slots before one."""
        return _Level(self.classes[slot:], self.agentness[slot:], self.boxes.since(slot))


class Read:
    """Outputs of the heads for some frames; frames are counted over all videos of the batch.

    `agentness` are the logits of all anchors, (F, N).
    """

    def __init__(self, heads: LazyHeads, levels: list[_Level], table: Tensor) -> None:
        self.heads, self.levels = heads, levels
        self.table = table.to(levels[0].classes.device)
        shown = [heads.classes.summed(level.agentness, 0, self.table).flatten(1) for level in levels]
        self.agentness = torch.cat(shown, dim=1)
        self.ends = torch.tensor([part.shape[1] for part in shown], device=self.table.device).cumsum(0)
        self._asked = [0] * len(levels)
        self._everywhere: dict[int, Tensor] = {}

    @torch.inference_mode()
    def offsets(self, frames: Tensor, places: Tensor) -> Tensor:
        """The offsets of some anchors.

        Args:
            frames, places: (n,) which frame, and which of the N anchors.

        Returns:
            (n, 4) of at least float32.
        """
        head, out = self.heads.boxes, self.agentness.new_empty(len(frames), 4)
        for number, mine, cells, anchors in self._by_level(places):
            level, of = self.levels[number].boxes, frames[mine]
            n_cells = level.frames.shape[2] * level.frames.shape[3]
            if len(level.frames) * n_cells < _SMALL or number in self._everywhere:
                out[mine] = self._all_offsets(number)[of, cells, anchors]
                continue
            wanted, back = torch.unique(of * n_cells + cells, return_inverse=True)
            self._asked[number] += len(wanted)
            if self._asked[number] > _DENSE * len(self.table) * n_cells:
                out[mine] = self._all_offsets(number)[of, cells, anchors]
                continue
            slots, cells = self.table[wanted // n_cells], wanted % n_cells
            tower = self._around(level, slots, cells)
            out[mine] = head.all_at(tower, slots, cells)[back, anchors]
        return out

    @torch.inference_mode()
    def scores(self, frames: Tensor, places: Tensor) -> Tensor:
        """The class logits of some anchors, without agentness.

        Args:
            frames, places: (n,) which frame, and which of the N anchors.

        Returns:
            (n, classes - 1) of at least float32.
        """
        head = self.heads.classes
        out = self.agentness.new_empty(len(frames), head.each - 1)
        for number, mine, cells, anchors in self._by_level(places):
            slots, tower = self.table[frames[mine]], self.levels[number].classes
            out[mine] = head.at(tower, slots, cells, anchors, slice(1, None))
        return out

    @torch.inference_mode()
    def class_inputs(self, frames: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """What the last convolution of the classes sees at some anchors, in the order of its weights.

        Args:
            frames, places: (n,) which frame, and which of the N anchors.

        Returns:
            (n, C taps side side), and (n,) which anchor of its cell each is.
        """
        head = self.heads.classes
        inputs = self.agentness.new_empty(len(frames), head.weight[0].numel())
        which = places.new_empty(len(frames))
        for number, mine, cells, anchors in self._by_level(places):
            slots = self.table[frames[mine]]
            inputs[mine] = to_at_least_float32(head.patches(self.levels[number].classes, slots, cells))
            which[mine] = anchors
        return inputs, which

    def _by_level(self, places: Tensor) -> list[tuple[int, Tensor, Tensor, Tensor]]:
        """Of each level that is asked: which, the places among those asked, their cells and anchors."""
        levels = torch.bucketize(places, self.ends, right=True)
        begins = torch.cat([self.ends.new_zeros(1), self.ends[:-1]])
        inside = places - begins[levels]
        n_anchors = self.heads.classes.n_anchors
        found = []
        for number in torch.unique(levels).tolist():
            mine = torch.nonzero(levels == number).flatten()
            at = inside[mine]
            found.append((number, mine, at // n_anchors, at % n_anchors))
        return found

    def _all_offsets(self, number: int) -> Tensor:
        """(F, cells, anchors, 4) of one level."""
        if number not in self._everywhere:
            head, everything = self.heads.boxes, slice(None)
            parts = head.everywhere(self.levels[number].boxes.everywhere(), everything)
            self._everywhere[number] = head.summed(parts, everything, self.table)
        return self._everywhere[number]

    def _around(self, level: PartMap, slots: Tensor, cells: Tensor) -> Tensor:
        """The tower of the boxes, right under the kernels around some cells."""
        row, tap = torch.nonzero(slots >= 0).T
        width = level.frames.shape[3]
        return level.around(slots[row, tap], cells[row] // width, cells[row] % width)


_BLOCK = 256
"""Boxes of a frame whose offsets are computed at once; more only while too few of them are kept."""


class RawDetections(NamedTuple):
    """The boxes kept in one frame, by falling agentness, in pixels of the network's image.

    Args:
        boxes: (n, 4) corners, not clipped.
        agentness: (n,) in [0, 1].
        scores: (n, C - 1) in [0, 1], all classes but agentness.
        av: (V,) in [0, 1].
    """

    boxes: Tensor
    agentness: Tensor
    scores: Tensor
    av: Tensor


class HeadInputs(NamedTuple):
    """What the last layers of the heads saw of a frame and said of it; rows are those of its detections.

    Args:
        classes: (n, C taps side side) features under the last convolution of the classes.
        anchor: (n,) which anchor of its cell each box is of: each has weights of its own.
        logits: (n, C - 1) of all classes but agentness.
        ego: (width,) feature of the own vehicle; its layer sees this frame and the two before.
        av_logits: (V,) of its actions.
    """

    classes: Tensor
    anchor: Tensor
    logits: Tensor
    ego: Tensor
    av_logits: Tensor


@torch.inference_mode()
def detect(
    network: RetinaNet3D, x: Tensor, rule: DetectRule | None = None, *, lazy: bool = True
) -> list[list[RawDetections]]:
    """Detections in every frame of some clips; of equal agentness the earlier anchor comes first.

    Args:
        network: in `eval` mode; not a streaming copy, which has memories of its own (`StreamDetector`).
        x: (B, 3, T, H, W) float, normalised and padded.
        rule: which boxes are kept.
        lazy: compute boxes where agentness passes and classes of kept boxes, not all everywhere. Both give
            the same up to rounding.

    Returns:
        Of each clip, of each frame.
    """
    rule = rule or DetectRule()
    if lazy:
        return LazyNetwork(network).detect(x, rule)
    outputs = network(x)
    n_frames, n_anchors = x.shape[0] * x.shape[2], len(outputs.anchors)
    boxes = to_at_least_float32(outputs.boxes.reshape(n_frames, n_anchors, 4))
    logits = to_at_least_float32(outputs.class_logits.reshape(n_frames, n_anchors, -1))
    agentness = logits[..., 0].sigmoid()
    frames, places, kept = select_detections(agentness, lambda frames, places: boxes[frames, places], rule)
    scores = logits[frames, places, 1:].sigmoid()
    found = agentness[frames, places]
    return _by_frame(frames, kept, found, scores, to_at_least_float32(outputs.av_logits).sigmoid())


class LazyNetwork:
    """A network that computes no more than detection needs, on clips or on a stream.

    Args:
        network: with its weights, in `eval` mode.
        streaming: `detect` continues a stream of one video; the network must be causal. Weights are then
            taken as they are now.
    """

    def __init__(self, network: RetinaNet3D, *, streaming: bool = False) -> None:
        self.network = make_streaming_copy(network) if streaming else network
        self.heads = LazyHeads(
            network.cls_heads,
            network.reg_heads,
            network.config.n_anchors,
            paired=network.backbone.repeats is not None,
            streaming=streaming,
        )
        self._sizes: list[torch.Size] = []
        self._anchors = torch.empty(0, 4)
        self.trunk = build_fast_backbone(network.backbone, causal=network.config.causal, streaming=streaming)

    def forget(self) -> None:
        """Begin a new stream."""
        reset_stream_state(self.network)
        self.heads.forget()
        if self.trunk is not None:
            self.trunk.forget()

    def _anchors_for(self, maps: list[Tensor]) -> Tensor:
        """(N, 4), made once for images of one size."""
        sizes = [map.shape[-2:] for map in maps]
        if sizes != self._sizes:
            self._sizes, self._anchors = sizes, to_at_least_float32(self.network.anchors_for(maps))
        return self._anchors

    @torch.inference_mode()
    def detect(self, x: Tensor, rule: DetectRule) -> list[list[RawDetections]]:
        """The boxes kept in every frame of (B, 3, T, H, W), of each clip; B is 1 in a stream."""
        return self._detect(x, rule)[0]

    @torch.inference_mode()
    def detect_with_inputs(self, x: Tensor, rule: DetectRule) -> tuple[RawDetections, HeadInputs]:
        """The same of one frame (1, 3, 1, H, W), with what the last layers of the heads saw and said."""
        found, build_inputs = self._detect(x, rule)
        return found[0][0], build_inputs()

    def _detect(
        self, x: Tensor, rule: DetectRule
    ) -> tuple[list[list[RawDetections]], Callable[[], HeadInputs]]:
        if self.trunk is None:
            maps, ego = self.network.features(x)
            read = self.heads.read(maps)
        else:
            maps, ego = self.trunk.read(x)
            read = self.heads.read_distinct(maps, x.shape[0], x.shape[2])
        anchors = self._anchors_for(maps)

        def boxes(frames: Tensor, places: Tensor) -> Tensor:
            return decode(read.offsets(frames, places), anchors[places], self.network.config)

        agentness = read.agentness.sigmoid()
        frames, places, kept = select_detections(agentness, boxes, rule)
        logits = read.scores(frames, places)
        av = to_at_least_float32(self.network.av_logits(ego))

        def build_inputs() -> HeadInputs:
            seen = read.class_inputs(frames, places)
            return HeadInputs(*seen, logits, to_at_least_float32(ego[0, :, 0]), av[0, 0])

        found = _by_frame(frames, kept, agentness[frames, places], logits.sigmoid(), av.sigmoid())
        return found, build_inputs


def select_detections(
    agentness: Tensor, boxes: Callable[[Tensor, Tensor], Tensor], rule: DetectRule
) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes that pass, are not suppressed and are among the best of their frame.

    Args:
        agentness: (F, N) in [0, 1].
        boxes: gives the (n, 4) corners of some anchors of some frames.
        rule: which are kept.

    Returns:
        (n,) their frames, rising; (n,) their anchors; (n, 4) their corners.
    """
    order, ends = _candidates(agentness, rule)
    corners = agentness.new_zeros(*order.shape, 4)
    kept = [order.new_zeros(0) for _ in ends]
    for start in range(0, order.shape[1], _BLOCK):
        rank = torch.arange(start, min(start + _BLOCK, order.shape[1]), device=order.device)
        asked = [n for n, end in enumerate(ends) if start < end and len(kept[n]) < rule.top]
        if not asked:
            break
        frames = torch.cat([torch.full_like(rank[: max(0, ends[n] - start)], n) for n in asked])
        ranks = torch.cat([rank[: max(0, ends[n] - start)] for n in asked])
        corners[frames, ranks] = boxes(frames, order[frames, ranks])
        for n in asked:
            block = slice(start, min(start + _BLOCK, ends[n]))
            if rule.nms_iou is None:
                kept[n] = torch.cat([kept[n], rank[: block.stop - start]])
            else:
                kept[n] = suppress_block(kept[n], corners[n], block, rule.nms_iou)
    kept = [ranks[: rule.top] for ranks in kept]
    frames = torch.cat([torch.full_like(ranks, n) for n, ranks in enumerate(kept)])
    ranks = torch.cat(kept)
    return frames, order[frames, ranks], corners[frames, ranks]


def _candidates(agentness: Tensor, rule: DetectRule) -> tuple[Tensor, list[int]]:
    """Of each frame the anchors that pass, by falling agentness, (F, n) filled up at the end; how many."""
    passes = agentness > rule.min_agentness
    ends: list[int] = passes.sum(dim=1).tolist()
    order = torch.zeros(len(agentness), max(ends, default=0), dtype=torch.int64, device=agentness.device)
    for n, end in enumerate(ends):
        places = torch.nonzero(passes[n]).flatten()
        order[n, :end] = places[torch.sort(agentness[n, places], descending=True, stable=True).indices]
    return order, ends


def _by_frame(
    frames: Tensor, boxes: Tensor, agentness: Tensor, scores: Tensor, av: Tensor
) -> list[list[RawDetections]]:
    """Rows of frames that stand one after another, as lists of each clip; `av` is (B, T, V)."""
    counts = torch.bincount(frames, minlength=av.shape[0] * av.shape[1]).tolist()
    rows = zip(*(torch.split(part, counts) for part in (boxes, agentness, scores)), strict=True)
    answers = []
    for of_clip in av:
        of_frames = []
        for of_frame in of_clip:
            box, ness, score = next(rows)
            of_frames.append(RawDetections(box, ness, score, of_frame))
        answers.append(of_frames)
    return answers


# Images as the network wants them, and boxes back to pixels of the original image.

_STRIP = 8
_WANTED = "images are (H, W, 3) arrays of uint8, red first"


@dataclass(frozen=True)
class Fit:
    """Resizes an image so that its short side has a length, normalises it and pads it with zeros.

    Args:
        short_side_px: of the resized image; its long side is cut down to a whole pixel.
        multiple_px: right and bottom are padded up to a multiple.
        mean, std: of the channels, red first, of images in [0, 1].

    Source: the released code of 3D-RetinaNet: bilinear, with antialiasing.
    """

    short_side_px: int = 512
    multiple_px: int = 32
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    @classmethod
    def of(cls, config: RetinaNetConfig) -> Fit:
        """As a network was made for."""
        return cls(config.short_side_px, config.multiple_px, config.mean, config.std)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image once it is resized, not yet padded.

        Of a strip, whose long side is more than 8 short ones, the long side becomes 8 times `short_side_px`: 1280x2 at a
        height of 512 would be 327,680 pixels wide.
        """
        short, most = self.short_side_px, max(height, width)
        if most > _STRIP * min(height, width):
            long = _STRIP * short
            return max(1, long * height // most), max(1, long * width // most)
        # Cut, not rounded, as released: 1280 x 960 becomes 682 x 512.
        if width < height:
            return int(short * height / width), short
        return short, int(short * width / height)

    def fit(self, image: Pixels) -> tuple[Tensor, float, float]:
        """One image.

        Args:
            image: (H, W, 3) uint8, red first.

        Returns:
            (3, h, w) float32, and by how much its width and its height were scaled.

        Raises:
            InputError: if it is no such array or has no pixels.
        """
        batch, scale_x, scale_y = self.fit_all([image])
        return batch[:, 0], scale_x, scale_y

    def fit_all(self, images: Sequence[Pixels]) -> tuple[Tensor, float, float]:
        """Frames of one video.

        Args:
            images: of (H, W, 3) uint8, all of the same size.

        Returns:
            (3, T, h, w) float32, as a clip of the network, and by how much width and height were scaled.

        Raises:
            InputError: if one is no such array, none is given, or their sizes differ.
        """
        if not len(images):
            raise InputError("at least one image is needed", hint=_WANTED)
        for image in images:
            check_frame(image, images[0].shape)
        height, width = images[0].shape[:2]
        new = self.size(height, width)
        wide = [-(-n // self.multiple_px) * self.multiple_px for n in new]
        clip = torch.zeros(3, len(images), *wide)
        # (x / 255 - mean) / std on bytes, as one difference and one product.
        mean = torch.tensor(self.mean).mul(255).view(3, 1, 1)
        factor = torch.tensor(self.std).mul(255).reciprocal().view(3, 1, 1)
        for frame, image in enumerate(images):
            inside = clip[:, frame, : new[0], : new[1]]
            inside.copy_(_resize_frame(image, new)).sub_(mean).mul_(factor)
        return clip, new[1] / width, new[0] / height

    def back(self, boxes: Tensor, height: int, width: int) -> Tensor:
        """Boxes of the network in pixels of the original image, clipped to it.

        Args:
            boxes: (..., 4) x1, y1, x2, y2 in pixels of what `fit` gave.
            height, width: of the original image.

        Returns:
            (..., 4).
        """
        new = self.size(height, width)
        x, y = width / new[1], height / new[0]
        limits = boxes.new_tensor([width, height, width, height])
        scaled = boxes * boxes.new_tensor([x, y, x, y])
        return torch.minimum(scaled.clamp(min=0), limits)


def check_frame(image: Pixels, like: tuple[int, ...] | None = None) -> Pixels:
    """The same image, if it is one, and if it has the size of the others.

    Args:
        image: (H, W, 3) uint8.
        like: the shape of the images before it.

    Raises:
        InputError: if it is none, or of another size.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise InputError(f"got an array of {image.dtype} with shape {image.shape}", hint=_WANTED)
    if like is not None and image.shape != like:
        was, now = (f"{shape[1]}x{shape[0]}" for shape in (like, image.shape))
        raise InputError(
            f"images of {was} are followed by one of {now}",
            hint="all images of a stream have one size: resize them, or begin another stream",
        )
    return image


def _resize_frame(image: Pixels, size: tuple[int, int]) -> Tensor:
    """(3, h, w) uint8."""
    # torch warns of arrays that cannot be written to, and takes no negative strides.
    owned = image if image.flags.writeable and image.flags.c_contiguous else image.copy()
    tensor = torch.from_numpy(owned).permute(2, 0, 1)
    if tuple(tensor.shape[1:]) == size:
        return tensor
    return functional.interpolate(tensor[None], size=size, mode="bilinear", antialias=True)[0]


class _NetworkDetector:
    """Base of both detectors: vocabulary, size of the stream, scaling from and to original pixels."""

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...],
        rule: DetectRule | None,
    ) -> None:
        check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
        self.kinds, self.av_labels = {kind: tuple(names) for kind, names in kinds.items()}, tuple(av_labels)
        self.rule = rule or DetectRule()
        self.fit = Fit.of(network.config)
        self._place = next(network.parameters())
        self._shape: tuple[int, ...] | None = None
        self._frame = 0

    def _fitted(self, image: Pixels) -> Tensor:
        """(3, 1, h, w), where and as the network wants it."""
        check_frame(image, self._shape)
        self._shape = image.shape
        return self.fit.fit(image)[0][:, None].to(self._place)

    def _answer(self, raw: RawDetections) -> FrameDetections:
        """The next frame, in pixels of the image as it was given."""
        if self._shape is None:
            raise UsageError("no image was given yet")
        boxes = self.fit.back(raw.boxes, self._shape[0], self._shape[1])
        parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
        self._frame += 1
        return FrameDetections(self._frame - 1, *(np.ascontiguousarray(part) for part in parts))


class StreamDetector(_NetworkDetector):
    """A causal network on a stream: each image goes through it once, and is answered at once.

    Every layer keeps what it must know of earlier frames, so that the answers are those of a causal clip
    from the first image on, however long the stream is, and no later image changes them.

    Args:
        network: causal, with its weights, which are taken as they are when this is made.
        kinds: the labels that the columns of the scores stand for, in order, of each kind.
        av_labels: the actions of the own vehicle.
        rule: which boxes are kept.
        refiner: that looks at people again, in `eval` mode.

    Raises:
        UsageError: if the network is not causal or tells other numbers of labels, or no people are there to be looked at.
    """

    delay = 0

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        refiner: BoxRefiner | None = None,
    ) -> None:
        if not network.config.causal:
            raise UsageError("this network looks ahead: a WindowDetector answers with its delay")
        super().__init__(network, kinds, av_labels, rule)
        self.again = None if refiner is None else SecondLook(refiner, self.kinds)
        self.wide = self.rule if self.again is None else self.again.widen(self.rule)
        self.network = LazyNetwork(network, streaming=True)

    def reset(self) -> None:
        """Forget the stream."""
        self.network.forget()
        self._shape, self._frame = None, 0

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frame of this image.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        found = self._answer(self.network.detect(self._fitted(image)[None], self.wide)[0][0])
        return [found if self.again is None else self.again.improve(image, found, self.rule)]

    def step_with_inputs(self, image: Pixels) -> tuple[FrameDetections, HeadInputs]:
        """The frame of this image, and what the last layers of the heads saw and said of it.

        Raises:
            InputError: as `step`.
        """
        found, inputs = self.network.detect_with_inputs(self._fitted(image)[None], self.rule)
        return self._answer(found), inputs

    def finish(self) -> list[FrameDetections]:
        """Nothing is owed; forgets the stream."""
        self.reset()
        return []


class WindowDetector(_NetworkDetector):
    """A network that looks ahead, on a stream: clips of `window` frames, each frame answered once.

    A clip answers the positions of `keep`; the next one begins so much later that its kept positions follow
    on. A frame is answered when its clip is full: at most `delay` = window - 1 - keep.start images later.
    Where `keep` does not begin with 0, the first image stands in for the frames before it. When the stream
    ends, the frames still owed are answered by a clip of the last `window` frames. A video shorter than a
    clip is filled up at its end with copies of its last image (the release leaves it out).

    Args:
        network: with its weights.
        kinds, av_labels, rule: as of `StreamDetector`.
        window: frames of a clip, as in training.
        keep: consecutive positions of a clip that are answered; all but the last `rule.dropped` by default.

    Raises:
        UsageError: if the network has other numbers of labels, or `keep` is no part of the window.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        keep: range | None = None,
    ) -> None:
        super().__init__(network, kinds, av_labels, rule)
        keep = range(window - self.rule.dropped) if keep is None else keep
        if keep.step != 1 or not 0 <= keep.start < keep.stop <= window:
            raise UsageError(f"{keep} are no consecutive positions of a clip of {window} frames")
        self.network = network.eval()
        self.window, self.keep, self.delay = window, keep, window - 1 - keep.start
        self._clip: deque[Tensor] = deque(maxlen=window)
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        self._clip.clear()
        self._shape, self._frame, self._given = None, 0, 0

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frames whose clip this image completes.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        fitted = self._fitted(image)
        if not self._given:
            self._clip.extend([fitted] * self.keep.start)
        self._clip.append(fitted)
        self._given += 1
        if self._given < self._frame + self.window - self.keep.start:
            return []
        return self._answered(self.keep)

    def finish(self) -> list[FrameDetections]:
        """The frames still owed; forgets the stream."""
        owed = self._given - self._frame
        if not owed:
            self.reset()
            return []
        missing = self.window - len(self._clip)
        if missing:
            self._clip.extend([self._clip[-1]] * missing)
        last = self.window - missing
        answers = self._answered(range(last - owed, last))
        self.reset()
        return answers

    def _answered(self, positions: range) -> list[FrameDetections]:
        raw = detect(self.network, torch.cat(list(self._clip), dim=1)[None], self.rule)[0]
        return [self._answer(raw[position]) for position in positions]


# The network on whole videos: streams of many frames at a time, or batches of clips; imports torch.


class NetworkVideos(VideoDetector):
    """A network as a detector of whole videos: on a stream if it is causal, else by clips.

    Args:
        network: with its weights, which are taken as they are when this is made.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`.
        refiner: that looks at people again, of a causal network.

    Raises:
        UsageError: if the network has other numbers of labels than are named.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        batch: int = 1,
        refiner: BoxRefiner | None = None,
    ) -> None:
        check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
        causal = network.config.causal
        super().__init__(kinds, av_labels, rule, causal=causal, window=window, batch=batch)
        self.again = None if refiner is None or not causal else SecondLook(refiner, self.kinds)
        self.wide = self.rule if self.again is None else self.again.widen(self.rule)
        self.network, self.fit = network.eval(), Fit.of(network.config)
        self.lazy = LazyNetwork(network, streaming=True) if causal else None

    def forget(self) -> None:
        """Begin a new stream."""
        if self.lazy is not None:
            self.lazy.forget()

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        if self.lazy is None:
            raise UsageError("this network looks ahead: it is asked about clips")
        raw = self.lazy.detect(prepare_clips(self.fit, [images], self.network), self.wide)[0]
        found = [build_frame_detections(each, self.fit, images[0]) for each in raw]
        if self.again is None:
            return found
        return [self.again.improve(image, each, self.rule) for image, each in zip(images, found, strict=True)]

    def look(self, images: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        raw = detect(self.network, prepare_clips(self.fit, images, self.network), self.rule)
        return [[build_frame_detections(each, self.fit, images[0][0]) for each in clip] for clip in raw]


def check_label_counts(
    n_classes: int, n_av: int, kinds: Mapping[str, tuple[str, ...]], av_labels: Sequence[str]
) -> None:
    """Nothing, where labels are as many as a network has.

    Raises:
        UsageError: if they are not.
    """
    labels = sum(len(names) for names in kinds.values())
    if labels + 1 != n_classes or len(av_labels) != n_av:
        raise UsageError(
            f"the network tells {n_classes - 1} labels and {n_av} actions of the own vehicle; named are "
            f"{labels} and {len(av_labels)}"
        )


def prepare_clips(fit: Fit, clips: Sequence[Sequence[Pixels]], network: torch.nn.Module) -> Tensor:
    """(B, 3, T, h, w) of clips of images of one size, where and as the network wants them."""
    return torch.stack([fit.fit_all(clip)[0] for clip in clips]).to(next(network.parameters()))


def build_frame_detections(raw: RawDetections, fit: Fit, image: Pixels) -> FrameDetections:
    """Detections of a frame in pixels of its image; the caller sets the frame number."""
    boxes = fit.back(raw.boxes, image.shape[0], image.shape[1])
    parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
    return FrameDetections(0, *(np.ascontiguousarray(part) for part in parts))
