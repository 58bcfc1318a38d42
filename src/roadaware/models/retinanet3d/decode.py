"""Decoding of network outputs to boxes, in a fast and in a plain version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadaware.models.retinanet3d.anchors import decode
from roadaware.models.retinanet3d.config import DetectRule
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
        scores = read.scores(frames, places).sigmoid()
        av = to_at_least_float32(self.network.av_logits(ego)).sigmoid()
        return _by_frame(frames, kept, agentness[frames, places], scores, av)


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
