"""The heads that are asked about people in boxes: what each does, and what one does to another; imports torch."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crowd.config import STRIDE_PX, CrowdConfig
from roadaware.models.crowd.tree import Tree, TreeGru, build, join, spread_boxes
from roadaware.models.refine import RefineConfig, build_conv
from roadaware.models.roi import roi_align

_SLOPE = 0.1
_PAIR_FEATURES = 14
_ACRN_CELLS = 8
_REACHES = (1, 3, 8, 20)
"""Frames on either side over which motion is measured: a step, a gesture, an act, and the way of a person."""
_FAR = 8
"""The longest of them over which two people are compared: longer ones say what each does for itself."""
_NEIGHBOURS = 2
_PER_STEP, _SMALL_CHANGE = 5.0, 4.0
"""Factors that bring motion (in heights a frame) and changes of shape (logarithms) to about 1, as layers like their input."""
MOTION_FEATURES = 5 + 15 * len(_REACHES) + 7 * _NEIGHBOURS + 3
PAIR_MOTION_FEATURES = 7 + 15 * len([reach for reach in _REACHES if reach <= _FAR])


def pool_boxes(maps: Tensor, boxes: Tensor, owner: Tensor, cells: int, samples: int = 2) -> Tensor:
    """(n, C, cells, cells) what maps hold in boxes.

    Args:
        maps: (N, C, H, W) with cells of 16 pixels.
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        owner: (n,) int64, the map of each box.
        cells: in each direction.
        samples: in each cell, in each direction.
    """
    if not len(boxes):
        return maps.new_zeros(0, maps.shape[1], cells, cells)
    return roi_align(maps, boxes, owner, size=(cells, cells), scale=1 / STRIDE_PX, samples=samples)


def check_people(boxes: Tensor, clip: Tensor, clips: int) -> None:
    """Refuse boxes that are none, or lie in no clip.

    Args:
        boxes: (n, ..., 4) in pixels.
        clip: (n,) int64.
        clips: how many there are.

    Raises:
        UsageError: says which.
    """
    if boxes.shape[-1:] != (4,) or len(boxes) != len(clip):
        raise UsageError(
            f"{tuple(boxes.shape)} boxes and {len(clip)} clips: give four numbers and a clip each"
        )
    if not bool(torch.isfinite(boxes).all()):
        raise UsageError(
            "a box has a coordinate that is not finite; hold the last one where a person is lost"
        )
    if len(clip) and not 0 <= int(clip.min()) <= int(clip.max()) < clips:
        raise UsageError(f"boxes lie in clips 0 to {clips - 1}; got {int(clip.min())} to {int(clip.max())}")


class ActionHead(nn.Module):
    """What each person does: features of the person beside those of the whole scene, cell by cell (ACRN).

    Published form: the map's mean over time, RoIAlign of 8x8 cells, whose largest values stand beside the map at
    every cell; a 1x1 and a 3x3 convolution relate them; the largest values of the result are classified.
    Compact form: of the map of the frame and of the mean around it, brought to a few channels, and related at half
    their cells in each direction; beside the relations stand the cells of the body itself and its place and size in
    the image. What the track of a person says (`describe_motion`) is scored for itself; beside it the scores of the cells
    count as much as `cells_share` says, and those of a crop of the image (`CropLayers`) as much as `crops_share`.

    Args:
        config: of the network.
        classes: how many actions.
        channels: of the trunk's map.

    Source: Sun et al., ECCV 2018 (ACRN), in the form of the published `acrn` heads of video toolboxes; the
        compact form is ours.
    """

    def __init__(self, config: CrowdConfig, classes: int, channels: int) -> None:
        super().__init__()
        published = config.form == "published"
        inner = channels if published else config.width
        self.window, self.cells = config.window, _ACRN_CELLS if published else config.roi
        self.cells_share, self.crops_share = config.cells_share, config.crops_share
        self.crops: CropLayers | None = None
        self.reduce: nn.Module | None = None
        self.body: nn.Module | None = None
        self.motion: nn.Module | None = None
        last = inner
        if not published:
            self.motion = build_motion_layers(MOTION_FEATURES, config.motion_width or inner, classes)
            if config.crop_width:
                self.crops = CropLayers(config.crop_width, classes)
            self.reduce = nn.Sequential(nn.Conv2d(2 * channels, inner, 1), nn.ReLU())
            narrow = max(1, inner // 16)
            self.body = nn.Sequential(
                nn.Conv2d(inner, narrow, 1),
                nn.Flatten(),
                nn.Linear(narrow * self.cells**2, inner),
                nn.ReLU(),
                nn.Dropout(config.dropout),
            )
            last = 2 * inner + 4
        self.relate_actor = nn.Linear(inner, inner, bias=False)
        self.relate_scene = nn.Conv2d(inner, inner, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(inner)
        self.relate2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner)
        self.dropout = nn.Dropout(0.5 if published else config.dropout)
        self.last = nn.Linear(last, classes)

    def forward(
        self,
        map: Tensor,
        boxes: Tensor,
        clip: Tensor,
        frame: Tensor | None = None,
        tracks: Tensor | None = None,
        moment: Tensor | None = None,
        crop_logits: Tensor | None = None,
    ) -> Tensor:
        """(n, classes) logits of every action of every person, each for itself.

        Args:
            map: (B, C, T, H, W) of the trunk.
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the network's image.
            clip: (n,) int64, which of the B clips each person is in.
            frame: (n,) int64, the frame of each box (default: the middle one of its clip).
            tracks: (n, K, 4) of each person the boxes around that frame, see `describe_motion` (default: their motion is not
                known). The published form has no use for them.
            moment: (n,) int64, whose tracks are compared: people of the same one are neighbours (default: those of the same
                clip and frame).
            crop_logits: (n, classes) what `crops` says of each person (default: crops are not seen).

        Raises:
            UsageError: if boxes or clips are none.
        """
        check_people(boxes, clip, len(map))
        frame = torch.full_like(clip, map.shape[2] // 2) if frame is None else frame
        if not len(boxes):
            return map.new_zeros(0, self.last.out_features)
        if not 0 <= int(frame.min()) <= int(frame.max()) < map.shape[2]:
            raise UsageError(f"boxes lie in frames 0 to {map.shape[2] - 1} of their clips")
        # People of the same frame share its maps.
        used, owner = torch.unique(clip * map.shape[2] + frame, return_inverse=True)
        scene = mean_around(map, used // map.shape[2], used % map.shape[2], self.window)
        if self.reduce is not None:
            now = map.transpose(1, 2).flatten(0, 1)[used]
            scene = self.reduce(torch.cat([scene, now], dim=1))
        people = pool_boxes(scene, boxes, owner, self.cells)
        if self.reduce is not None:
            # A map for each person: in the compact form of half the cells in each direction, since it costs most.
            scene = functional.avg_pool2d(scene, 2, ceil_mode=True)
        # A convolution of both side by side is the sum of one of each; the person's is the same at every cell.
        related = self.relate_scene(scene)[owner]
        related = related + self.relate_actor(people.amax(dim=(2, 3)))[:, :, None, None]
        related = functional.relu(self.norm1(related))
        related = functional.relu(self.norm2(self.relate2(related)))
        found = self.dropout(related).amax(dim=(2, 3))
        if self.body is not None:
            place = describe_boxes(boxes, map)
            found = torch.cat([found, self.body(people), place], dim=1)
        logits: Tensor = self.last(found)
        if self.motion is not None and tracks is not None:
            moment = owner if moment is None else moment
            logits = self.cells_share * logits + self.judge_motion(tracks, moment, measure_image(map))
        return logits if crop_logits is None else logits + self.crops_share * crop_logits

    def judge_motion(self, tracks: Tensor, moment: Tensor, image: Tensor) -> Tensor:
        """(n, classes) what tracks alone say; of the compact form. Arguments as of `describe_motion`."""
        if self.motion is None:
            raise UsageError("the published head of actions knows no motion of tracks")
        logits: Tensor = self.motion(describe_motion(tracks, moment, image))
        return logits


CROPS = RefineConfig()
"""Rows, columns and reach of the crops of people, those of a detector's second look."""


class CropLayers(nn.Module):
    """What each person does, by a crop of the image: pose, clothes, and what is held.

    A crop shows a person in some fifty rows, where cells of the trunk's map span 16 pixels. Scores that come from images
    suffer less than those of tracks where the boxes of a detector are a few pixels off.

    Args:
        width: channels at stride 2; those at strides 4, 8 and 16 are 2, 4 and 6 times as many.
        classes: how many actions.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        one, two, three, four = width, 2 * width, 4 * width, 6 * width
        rows, columns = CROPS.size_px
        # As in `BoxRefiner`, whose layers these can begin with.
        self.fine = nn.Sequential(build_conv(3, one, 2), build_conv(one, two, 2), build_conv(two, two))
        self.middle = nn.Sequential(build_conv(two, three, 2), build_conv(three, three))
        self.coarse = nn.Sequential(build_conv(three, four, 2), build_conv(four, four))
        cells, inner = (rows // 16) * (columns // 16), 2 * three
        self.whole = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(four * cells, inner), nn.ReLU())
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(inner + four + 4, classes))

    def forward(self, crops: Tensor, shape: Tensor) -> Tensor:
        """(n, classes) logits.

        Args:
            crops: (n, 3, rows, columns) normalised, as `refine.cut_crops` gives them with `CROPS`.
            shape: (n, 4) what a crop does not show, as it gives that.
        """
        map = self.coarse(self.middle(self.fine(crops)))
        logits: Tensor = self.last(torch.cat([self.whole(map), map.amax(dim=(2, 3)), shape], dim=1))
        return logits


def build_motion_layers(features: int, width: int, last: int) -> nn.Sequential:
    """Three layers from what tracks say to `last` numbers.

    Three tenths of what lies between them are dropped in training: the acts of a hundred scenes are some hundreds.
    """
    return nn.Sequential(
        nn.Linear(features, width), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(width, last),
    )  # fmt: skip


def measure_image(map: Tensor) -> Tensor:
    """(2,) width and height in pixels of the image under a map (..., H, W)."""
    return map.new_tensor([map.shape[-1], map.shape[-2]]) * STRIDE_PX


def describe_motion(tracks: Tensor, moment: Tensor, image: Tensor) -> Tensor:
    """(n, MOTION_FEATURES) shape, place and motion of people, and of the two who stand nearest to each; each about 1.

    Everything is in heights of the person. Motion and change of shape are measured over 1, 3, 8 and 20 frames on either
    side, as far as tracks reach.

    Args:
        tracks: (n, K, 4) x1, y1, x2, y2 in pixels, in the middle the box of the frame that is asked about, around it those of
            the frames before and after; where somebody is not seen, the box of the nearest frame.
        moment: (n,) int64, people of the same one are neighbours.
        image: (2,) its width and height in pixels.

    Raises:
        UsageError: if `tracks` are none, or of an even number of frames.
    """
    if tracks.ndim != 3 or tracks.shape[1] % 2 == 0 or tracks.shape[2] != 4:
        raise UsageError(
            f"{tuple(tracks.shape)} tracks: give each person a box in an odd number of frames, the middle one asked about"
        )
    if not len(tracks):
        return tracks.new_zeros(0, MOTION_FEATURES)
    middle = tracks.shape[1] // 2
    size = (tracks[..., 2:] - tracks[..., :2]).clamp(min=1)
    centre, height = (tracks[..., :2] + tracks[..., 2:]) / 2, size[:, middle, 1:]
    tall, shape = size[..., 1].log(), (size[..., 1] / size[..., 0]).log()
    now, own_shape, own_tall = centre[:, middle], shape[:, middle, None], tall[:, middle, None]
    parts = [own_shape, (size[:, middle] / image).log(), 2 * now / image - 1]
    for reach in _REACHES:
        low, high = max(0, middle - reach), min(tracks.shape[1] - 1, middle + reach)
        rate = _PER_STEP / max(1, high - low)
        steps = (centre[:, low + 1 : high + 1] - centre[:, low:high]) / height[:, None]
        shapes, sizes = shape[:, low : high + 1], tall[:, low : high + 1]
        if high == low:
            steps = torch.zeros_like(centre[:, :1])
        changes = torch.cat(
            [
                shapes.std(dim=1, unbiased=False, keepdim=True), sizes.std(dim=1, unbiased=False, keepdim=True),
                shapes.mean(dim=1, keepdim=True) - own_shape, shapes.amin(dim=1, keepdim=True) - own_shape,
                shapes.amax(dim=1, keepdim=True) - own_shape, sizes.amax(dim=1, keepdim=True) - own_tall,
                (shapes[:, 1:] - shapes[:, :-1]).abs().sum(dim=1, keepdim=True) / max(1, high - low),
            ],
            dim=1,
        )  # fmt: skip
        parts += [
            steps.sum(dim=1) * rate,
            (tall[:, high, None] - tall[:, low, None]) * rate,
            (now - centre[:, low]) / height,
            (centre[:, high] - now) / height,
            torch.linalg.vector_norm(steps, dim=2).sum(dim=1, keepdim=True) * rate,
            changes * _SMALL_CHANGE,
        ]
    return torch.cat([*parts, _describe_neighbours(centre, size, moment)], dim=1).clamp(-5, 5)


def _describe_neighbours(centre: Tensor, size: Tensor, moment: Tensor) -> Tensor:
    """(n, 17) people of the same moment: how many are within 1.5 heights, within 3, and how many there are, as logarithms; of
    the nearest two the offset (2), distance, the logarithm of its height over one's own, its motion against one's own over
    three frames on either side (2) and how much of that is apart. Zeros where there is nobody.

    Args:
        centre, size: (n, K, 2) of tracks.
        moment: (n,) int64.
    """
    middle = centre.shape[1] // 2
    low, high = max(0, middle - 3), min(centre.shape[1] - 1, middle + 3)
    moved, height = centre[:, high] - centre[:, low], size[:, middle, 1]
    _, group, counts = torch.unique(moment, return_inverse=True, return_counts=True)
    # A row of places for each moment, so that people are compared within their own alone.
    order = torch.argsort(group, stable=True)
    row = torch.empty_like(order)
    row[order] = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[group[order]]
    room = torch.full((len(counts), int(counts.max())), -1, device=order.device)
    room[group, row] = torch.arange(len(order), device=order.device)
    others = room[group]
    there = (others >= 0) & (others != torch.arange(len(order), device=order.device)[:, None])
    offset = (centre[others.clamp(min=0), middle] - centre[:, None, middle]) / height[:, None, None]
    distance = torch.linalg.vector_norm(offset, dim=2).masked_fill(~there, math.inf)
    near = [(distance < 1.5).sum(dim=1), (distance < 3).sum(dim=1), counts[group] - 1]
    parts = [torch.stack(near, dim=1).to(centre).log1p()]
    nearest, place = distance.sort(dim=1, stable=True)
    for number in range(_NEIGHBOURS):
        if number >= others.shape[1]:
            parts.append(centre.new_zeros(len(centre), 7))
            continue
        far, who = nearest[:, number, None], others.gather(1, place[:, number, None])[:, 0].clamp(min=0)
        away = offset[torch.arange(len(who), device=who.device), place[:, number]]
        against = (moved[who] - moved) / height[:, None]
        apart = (against * away).sum(dim=1, keepdim=True) / far.clamp(min=0.1)
        taller = (height[who] / height).log()[:, None]
        described = torch.cat([away, far, taller, against, apart], dim=1)
        parts.append(torch.where(torch.isfinite(far), described, torch.zeros_like(described)))
    return torch.cat(parts, dim=1)


def describe_both(tracks: Tensor, moment: Tensor, pairs: Tensor, image: Tensor) -> Tensor:
    """(m, 2 MOTION_FEATURES + PAIR_MOTION_FEATURES) what tracks say of subject, object and both; see `describe_motion`."""
    alone = describe_motion(tracks, moment, image)
    return torch.cat([alone[pairs[:, 0]], alone[pairs[:, 1]], describe_pair_motion(tracks, pairs)], dim=1)


def describe_pair_motion(tracks: Tensor, pairs: Tensor) -> Tensor:
    """(m, PAIR_MOTION_FEATURES) how two people stand and move to each other, in means of their two heights; each about 1.

    Args:
        tracks: (n, K, 4) as of `describe_motion`.
        pairs: (m, 2) int64, subject and object.

    Returns:
        Offset of the object (2) and its length, logarithms of its two sizes over those of the subject (2), overlap (IoU),
        and how much lower the object stands; then over 1, 3 and 8 frames on either side the motion of each (4), of the object
        against the subject (2), the lengths of these three, how much of them lies along the line between both (3), and the
        least, greatest and mean distance.
    """
    middle = tracks.shape[1] // 2
    size = (tracks[..., 2:] - tracks[..., :2]).clamp(min=1)
    centre = (tracks[..., :2] + tracks[..., 2:]) / 2
    s, o = pairs[:, 0], pairs[:, 1]
    mean = (size[s, middle, 1:] + size[o, middle, 1:]) / 2
    apart = (centre[o] - centre[s]) / mean[:, None]
    offset, lengths = apart[:, middle], torch.linalg.vector_norm(apart, dim=2)
    one, other = tracks[s, middle], tracks[o, middle]
    inner = (torch.minimum(one[:, 2:], other[:, 2:]) - torch.maximum(one[:, :2], other[:, :2])).clamp(min=0)
    shared = inner.prod(dim=1, keepdim=True)
    union = size[s, middle].prod(dim=1, keepdim=True) + size[o, middle].prod(dim=1, keepdim=True) - shared
    line = offset / lengths[:, middle, None].clamp(min=0.05)
    parts = [
        offset, lengths[:, middle, None], (size[o, middle] / size[s, middle]).log(), shared / union,
        (other[:, 3:] - one[:, 3:]) / mean,
    ]  # fmt: skip
    for reach in _REACHES:
        if reach > _FAR:
            break
        low, high = max(0, middle - reach), min(tracks.shape[1] - 1, middle + reach)
        rate = _PER_STEP / max(1, high - low)
        moved = (centre[:, high] - centre[:, low]) * rate
        ways = [moved[s] / mean, moved[o] / mean]
        ways.append(ways[1] - ways[0])
        within = lengths[:, low : high + 1]
        parts += [
            *ways,
            *(torch.linalg.vector_norm(way, dim=1, keepdim=True) for way in ways),
            *((way * line).sum(dim=1, keepdim=True) for way in ways),
            within.amin(dim=1, keepdim=True), within.amax(dim=1, keepdim=True), within.mean(dim=1, keepdim=True),
        ]  # fmt: skip
    return torch.cat(parts, dim=1).clamp(-5, 5)


def mean_around(map: Tensor, clip: Tensor, frame: Tensor, window: int) -> Tensor:
    """(k, C, H, W) means of maps over the frames around some.

    Args:
        map: (B, C, T, H, W).
        clip, frame: (k,) int64.
        window: frames, as many before as behind; 0 for all of the clip.
    """
    frames = map.shape[2]
    reach = frames if not window else window // 2
    index = torch.arange(frames, device=map.device)
    near = ((index[None] - frame[:, None]).abs() <= reach).to(map.dtype)
    near = near / near.sum(dim=1, keepdim=True)
    # One clip at a time: indexing all clips at once would copy a map for every frame that is asked.
    shown = map.new_zeros(len(clip), map.shape[1], *map.shape[3:])
    for number in torch.unique(clip).tolist():
        rows = (clip == number).nonzero().flatten()
        means = torch.einsum("kt,cthw->kchw", near[rows], map[number])
        shown = shown.index_copy(0, rows, means)
    return shown


def describe_boxes(boxes: Tensor, map: Tensor) -> Tensor:
    """(n, 4) centre and logarithm of the size of boxes (n, 4), in parts of the image under a map."""
    size = map.new_tensor([map.shape[-1], map.shape[-2]]) * STRIDE_PX
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2 / size
    extent = ((boxes[:, 2:] - boxes[:, :2]).clamp(min=1) / size).log()
    return torch.cat([centre, extent], dim=1).to(map.dtype)


class Pairs(NamedTuple):
    """Pairs of people that are asked.

    Args:
        index: (m, 2) int64, subject and object.
        left_out: how many near pairs were not taken because there are too many.
    """

    index: Tensor  # type: ignore[assignment]  # the method of tuples of that name is of no use here
    left_out: int


def choose_pairs(boxes: Tensor, clip: Tensor, *, heights: float, most: int) -> Pairs:
    """All ordered pairs of different people of a clip who are near each other, the nearest of them if there are many.

    Near means that their centres are at most `heights` times the mean of their two heights apart.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        clip: (n,) int64.
        heights: see above.
        most: pairs of a clip; both orders of a pair are taken or left out together.

    Returns:
        Pairs clip by clip, by rising subject and object, and how many near ones were left out.
    """
    taken, left_out = [boxes.new_zeros(0, 2, dtype=torch.int64)], 0
    for number in torch.unique(clip).tolist():
        rows = (clip == number).nonzero().flatten()
        own = boxes[rows]
        first, second = torch.triu_indices(len(rows), len(rows), offset=1, device=boxes.device)
        centre, height = (own[:, :2] + own[:, 2:]) / 2, (own[:, 3] - own[:, 1]).clamp(min=1)
        distance = torch.linalg.vector_norm(centre[first] - centre[second], dim=1)
        distance = distance / ((height[first] + height[second]) / 2)
        near = distance <= heights
        first, second, distance = first[near], second[near], distance[near]
        if len(first) > most // 2:
            nearest = torch.sort(distance, stable=True).indices[: most // 2].sort().values
            left_out += 2 * (len(first) - len(nearest))
            first, second = first[nearest], second[nearest]
        both = torch.stack([torch.cat([first, second]), torch.cat([second, first])], dim=1)
        order = torch.argsort(both[:, 0] * len(rows) + both[:, 1])
        taken.append(rows[both[order]])
    return Pairs(torch.cat(taken), left_out)


class TimeAttention(nn.Module):
    """What a clip adds to a node: the mean over frames of what its box holds, weighed by likeness to the node.

    Args:
        width: numbers of a node.
        channels: of the map.
        inner: numbers of queries and keys.

    Source: Teng et al., ICCV 2021 (TRACE), section 3.3.
    """

    def __init__(self, width: int, channels: int, inner: int) -> None:
        super().__init__()
        self.feature = nn.Linear(channels, width)
        self.query = nn.Linear(width, inner, bias=False)
        self.key = nn.Linear(width, inner, bias=False)
        self.value = nn.Sequential(
            nn.Linear(width, width // 4, bias=False),
            nn.LayerNorm(width // 4),
            nn.ReLU(),
            nn.Linear(width // 4, width, bias=False),
        )

    def forward(self, nodes: Tensor, seen: Tensor) -> Tensor:
        """(n, width) nodes with what was added.

        Args:
            nodes: (n, width).
            seen: (n, T, channels) the mean of the map in the node's box, frame by frame.
        """
        features = functional.relu(self.feature(seen))
        scores = torch.einsum("nd,ntd->nt", self.query(nodes), self.key(features))
        weights = (scores / math.sqrt(self.query.out_features)).softmax(dim=1)
        added: Tensor = self.value(torch.einsum("nt,ntd->nd", weights, features))
        return nodes + added


class RelationHead(nn.Module):
    """What one person does to another: a tree of regions, messages along it, and a look at what lies between (TRACE).

    1. Each person and each region of the tree (`tree.build`) has the cells of its box in the middle frame, and
       what the clip adds (`TimeAttention`).
    2. Four Tree-GRUs pass messages up and down, each over a quarter of the numbers.
    3. Subject and object each look over the 7x7 cells of the box around both (softmax of query and key, whose
       values are weighed); the region that holds both, their lowest common ancestor, stands for the context.
    4. Every predicate is scored for itself, by both views, by subject and object alone, and by the geometry of
       their boxes and motion.
    5. In the compact form what their tracks say (`describe_motion` of both, `describe_pair_motion`) is scored for itself;
       beside it all the others count as much as `cells_share` says.

    The detector's features of the published system are those of the map here, brought to 256 channels as its
    pyramid does (a quarter of `width` in the compact form, where subject and object have the
    layers of a person). All objects are people, so embeddings of classes are left out,
    and the frequency of predicates is one number each (`prior`).

    Args:
        config: of the network.
        predicates: how many.
        channels: of the trunk's map.

    Source: Teng et al., ICCV 2021 (TRACE), section 3, and its released code; the geometry is its optional
        spatial branch with motion added.
    """

    prior: Tensor

    def __init__(self, config: CrowdConfig, predicates: int, channels: int) -> None:
        super().__init__()
        self.config = config
        published = config.form == "published"
        inner = 256 if published else max(1, config.width // 4)
        width, tree, low, cells = (
            config.relation_width,
            config.tree_width,
            config.attention_width,
            config.roi,
        )
        self.lateral = nn.Conv2d(channels, inner, 1)

        def box_layers() -> nn.Sequential:
            return nn.Sequential(nn.Linear(inner * cells**2, width), nn.ReLU(), nn.Linear(width, width))

        self.person, self.region = box_layers(), box_layers()
        # Published: layers of their own for who does it, and to whom.
        self.subject = box_layers() if published else None
        self.object = box_layers() if published else None
        self.person_time = TimeAttention(width, inner, low)
        self.region_time = TimeAttention(width, inner, low)
        self.person_in = nn.Sequential(nn.ReLU(), nn.Linear(width, tree, bias=False))
        self.region_in = nn.Sequential(nn.ReLU(), nn.Linear(width, tree, bias=False))
        self.messages = nn.ModuleList(TreeGru(tree // config.tree_groups) for _ in range(config.tree_groups))
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(tree, tree))
        self.restore = nn.Sequential(nn.LeakyReLU(_SLOPE), nn.Linear(tree, width))
        self.query_subject = nn.Sequential(nn.LeakyReLU(_SLOPE), nn.Linear(width, low))
        self.query_object = nn.Sequential(nn.LeakyReLU(_SLOPE), nn.Linear(width, low))
        self.key_map, self.value_map = nn.Conv2d(inner, low, 1), nn.Conv2d(inner, low, 1)
        self.from_subject, self.from_object = nn.Conv2d(low, low, 1), nn.Conv2d(low, low, 1)
        self.between = nn.Sequential(nn.Flatten(), nn.Linear(low * cells**2, tree))
        self.common = nn.Sequential(nn.LeakyReLU(_SLOPE), nn.Linear(tree, tree))
        rate = 0.5 if published else config.dropout

        def last() -> nn.Sequential:
            return nn.Sequential(nn.Dropout(rate), nn.LeakyReLU(_SLOPE), nn.Linear(tree, predicates))

        self.between_last, self.common_last = last(), last()
        self.subject_last, self.object_last = nn.Linear(width, predicates), nn.Linear(width, predicates)
        self.geometry = nn.Sequential(
            nn.Linear(_PAIR_FEATURES, 64),
            nn.LeakyReLU(_SLOPE),
            nn.Linear(64, 64),
            nn.LeakyReLU(_SLOPE),
            nn.Linear(64, predicates),
        )
        self.motion: nn.Module | None = None
        if not published:
            seen = 2 * MOTION_FEATURES + PAIR_MOTION_FEATURES
            self.motion = build_motion_layers(seen, width, predicates)
        self.register_buffer("prior", torch.zeros(predicates))

    def set_prior(self, frequency: Tensor) -> None:
        """Let scores begin at the logarithm of how often each predicate holds among pairs.

        Args:
            frequency: (predicates,) in [0, 1].

        Source: TRACE's frequency bias, log(p + 0.001), of one class of subjects and objects.
        """
        self.prior.copy_((frequency.to(self.prior) + 1e-3).log())

    def judge_motion(self, tracks: Tensor, moment: Tensor, pairs: Tensor, image: Tensor) -> Tensor:
        """(m, predicates) what tracks alone say, before the frequency of predicates; of the compact form.

        Args:
            tracks, moment, image: as of `describe_motion`.
            pairs: (m, 2) int64, subject and object.
        """
        if self.motion is None:
            raise UsageError("the published head of relations knows no motion of tracks")
        logits: Tensor = self.motion(describe_both(tracks, moment, pairs, image))
        return logits

    def forward(
        self,
        map: Tensor,
        boxes: Tensor,
        clip: Tensor,
        pairs: Tensor,
        frame: Tensor | None = None,
        tracks: Tensor | None = None,
    ) -> Tensor:
        """(m, predicates) logits of every predicate of every pair, each for itself.

        Args:
            map: (B, C, T, H, W) of the trunk.
            boxes: (n, T, 4) x1, y1, x2, y2 in pixels of every person in every frame of its clip; where one is
                not seen, the box of the nearest frame.
            clip: (n,) int64, which of the B clips each person is in, rising.
            pairs: (m, 2) int64, subject and object among the n, both of one clip; `choose_pairs` finds them.
            frame: (B,) int64, the frame that is asked about (default: the middle one).
            tracks: (n, K, 4) of each person the boxes around that frame, over a longer time than the clip, see
                `describe_motion` (default: their motion is not known). The published form has no use for them.

        Raises:
            UsageError: if boxes, clips or pairs are none.
        """
        check_people(boxes, clip, len(map))
        people, frames = len(boxes), map.shape[2]
        self._check_pairs(boxes, clip, pairs, frames)
        if not len(pairs):
            return map.new_zeros(0, self.subject_last.out_features)
        frame = torch.full((len(map),), frames // 2, device=map.device) if frame is None else frame
        maps = self.lateral(map.transpose(1, 2).flatten(0, 1))
        moment = clip * frames + frame[clip]
        now = boxes[torch.arange(people, device=map.device), frame[clip]]

        units = (
            STRIDE_PX * np.array([map.shape[-1], map.shape[-2]] * 2)
            if self.config.tree_units == "image"
            else 1
        )
        corners = now.detach().double().cpu().numpy() / units
        owner = clip.cpu().numpy()
        trees = [
            build(corners[owner == number].astype(np.float32), height=self.config.tree_height, ties="stable")
            for number in range(len(map))
        ]
        forest = join(trees, map.device)
        # Leaves of a forest stand clip by clip, as people do.
        nodes = spread_boxes(boxes, forest)
        node_clip = torch.cat([torch.full_like(place, number) for number, place in enumerate(forest.place)])
        node_clip = node_clip.new_zeros(len(nodes)).index_copy(0, torch.cat(forest.place), node_clip)

        cells = pool_boxes(
            maps, nodes[torch.arange(len(nodes), device=map.device), frame[node_clip]], node_clip * frames + frame[node_clip],
            self.config.roi,
        ).flatten(1)  # fmt: skip
        all_moments = node_clip[:, None] * frames + torch.arange(frames, device=map.device)
        seen = pool_boxes(maps, nodes.flatten(0, 1), all_moments.flatten(), 1, 2 * self.config.roi)
        seen = seen.reshape(len(nodes), frames, -1)

        plain = self.person(cells[:people])
        person = self.person_time(plain, seen[:people])
        region = self.region_time(self.region(cells[people:]), seen[people:])
        tree = torch.cat([self.person_in(person), self.region_in(region)])
        groups = tree.chunk(len(self.messages), dim=1)
        messages = [gru(group, forest) for gru, group in zip(self.messages, groups, strict=True)]
        tree = tree + self.mix(torch.cat(messages, dim=1))
        person = person + self.restore(tree[:people])

        first, second = pairs[:, 0], pairs[:, 1]
        around = torch.cat(
            [torch.minimum(now[first], now[second])[:, :2], torch.maximum(now[first], now[second])[:, 2:]],
            dim=1,
        )
        between = self._look(maps, around, moment[first], person, pairs)
        common = self.common(tree[self._ancestors(trees, forest.place, clip, pairs)])
        logits: Tensor = self.between_last(self.between(between)) + self.common_last(common)
        subject = plain if self.subject is None else self.subject(cells[:people])
        object = plain if self.object is None else self.object(cells[:people])
        logits = logits + self.subject_last(functional.relu(subject))[first]
        logits = logits + self.object_last(functional.relu(object))[second]
        logits = logits + self.geometry(describe_pairs(boxes, frame[clip], pairs))
        if self.motion is not None and tracks is not None:
            by_motion = self.judge_motion(tracks, clip, pairs, measure_image(map))
            logits = self.config.cells_share * logits + by_motion
        return logits + self.prior

    def _check_pairs(self, boxes: Tensor, clip: Tensor, pairs: Tensor, frames: int) -> None:
        if boxes.ndim != 3 or boxes.shape[1] != frames:
            raise UsageError(f"{tuple(boxes.shape)} boxes: give each person a box in each of {frames} frames")
        if bool((clip.diff() < 0).any()):
            raise UsageError("people should stand clip by clip")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (len(pairs) and not self._inside(pairs, len(boxes))):
            raise UsageError(f"pairs are (m, 2) numbers of {len(boxes)} people, not {tuple(pairs.shape)}")
        if bool((clip[pairs[:, 0]] != clip[pairs[:, 1]]).any()):
            raise UsageError("both people of a pair should be in one clip")

    @staticmethod
    def _inside(pairs: Tensor, people: int) -> bool:
        return int(pairs.min()) >= 0 and int(pairs.max()) < people

    def _look(self, maps: Tensor, around: Tensor, moment: Tensor, person: Tensor, pairs: Tensor) -> Tensor:
        """(m, low, cells, cells) of the box around both what subject and object look at."""
        used, owner = torch.unique(moment, return_inverse=True)
        both = torch.cat([self.key_map(maps[used]), self.value_map(maps[used])], dim=1)
        keys, values = pool_boxes(both, around, owner, self.config.roi).chunk(2, dim=1)
        subject, object = self.query_subject(person)[pairs[:, 0]], self.query_object(person)[pairs[:, 1]]
        one = self.from_subject(values * directed_attention(subject, keys))
        other = self.from_object(values * directed_attention(object, keys))
        return functional.leaky_relu(one + other, _SLOPE) + values

    @staticmethod
    def _ancestors(trees: list[Tree], place: list[Tensor], clip: Tensor, pairs: Tensor) -> Tensor:
        """(m,) the node of the forest that stands for what both people have in common."""
        found = torch.zeros(len(pairs), dtype=torch.int64, device=pairs.device)
        for number, tree in enumerate(trees):
            rows = (clip[pairs[:, 0]] == number).nonzero().flatten()
            if len(rows):
                first = int((clip < number).sum())
                own = (pairs[rows] - first).cpu().numpy()
                common = torch.from_numpy(tree.lca(own[:, 0], own[:, 1])).to(pairs.device)
                found[rows] = place[number][common]
        return found


def directed_attention(query: Tensor, keys: Tensor) -> Tensor:
    """(m, 1, h, w) how much of its attention each query gives to each cell; the cells of a query sum to 1.

    Args:
        query: (m, d).
        keys: (m, d, h, w).

    Source: Teng et al., ICCV 2021 (TRACE), section 3.4; products are not divided by the root of d, as released.
    """
    scores = torch.einsum("md,mdhw->mhw", query, keys)
    return scores.flatten(1).softmax(dim=1).view_as(scores).unsqueeze(1)


def describe_pairs(boxes: Tensor, frame: Tensor, pairs: Tensor) -> Tensor:
    """(m, 14) how two people stand and move to each other, in heights of the subject.

    Args:
        boxes: (n, T, 4) in pixels.
        frame: (n,) int64, the frame that is asked about.
        pairs: (m, 2) int64.

    Returns:
        Offset of the object (2) and its length, logarithms of the two sizes of the object over those of the
        subject (2), the subject's logarithm of height over width, overlap of both boxes, motion over the clip
        of each (4), of the object against the subject (2), and along the line between them.
    """
    now = boxes[torch.arange(len(boxes), device=boxes.device), frame]
    size = (now[:, 2:] - now[:, :2]).clamp(min=1)
    centre, height = (now[:, :2] + now[:, 2:]) / 2, size[:, 1:]
    moved = (boxes[:, -1, :2] + boxes[:, -1, 2:] - boxes[:, 0, :2] - boxes[:, 0, 2:]) / 2
    s, o = pairs[:, 0], pairs[:, 1]
    offset = (centre[o] - centre[s]) / height[s]
    distance = torch.linalg.vector_norm(offset, dim=1, keepdim=True)
    ratio = (size[o] / size[s]).log()
    shape = (size[s, 1:] / size[s, :1]).log()
    inner = (torch.minimum(now[s, 2:], now[o, 2:]) - torch.maximum(now[s, :2], now[o, :2])).clamp(min=0)
    shared = inner.prod(dim=1, keepdim=True)
    union = size[s].prod(dim=1, keepdim=True) + size[o].prod(dim=1, keepdim=True) - shared
    one, other = moved[s] / height[s], moved[o] / height[s]
    along = ((other - one) * offset / distance.clamp(min=1e-3)).sum(dim=1, keepdim=True)
    parts = [offset, distance, ratio, shape, shared / union, one, other, other - one, along]
    # People who are very far apart or who jump say no more than those who are far apart.
    return torch.cat(parts, dim=1).clamp(-10, 10)
