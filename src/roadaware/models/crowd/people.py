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
from roadaware.models.roi import roi_align

_SLOPE = 0.1
_PAIR_FEATURES = 14
_ACRN_CELLS = 8


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
    the image.

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
        self.reduce: nn.Module | None = None
        self.body: nn.Module | None = None
        last = inner
        if not published:
            self.reduce = nn.Sequential(nn.Conv2d(2 * channels, inner, 1), nn.ReLU())
            narrow = max(1, inner // 4)
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

    def forward(self, map: Tensor, boxes: Tensor, clip: Tensor, frame: Tensor | None = None) -> Tensor:
        """(n, classes) logits of every action of every person, each for itself.

        Args:
            map: (B, C, T, H, W) of the trunk.
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the network's image.
            clip: (n,) int64, which of the B clips each person is in.
            frame: (n,) int64, the frame of each box (default: the middle one of its clip).

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
        moment, owner = torch.unique(clip * map.shape[2] + frame, return_inverse=True)
        scene = mean_around(map, moment // map.shape[2], moment % map.shape[2], self.window)
        if self.reduce is not None:
            now = map.transpose(1, 2).flatten(0, 1)[moment]
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
        return logits


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
        self.register_buffer("prior", torch.zeros(predicates))

    def set_prior(self, frequency: Tensor) -> None:
        """Let scores begin at the logarithm of how often each predicate holds among pairs.

        Args:
            frequency: (predicates,) in [0, 1].

        Source: TRACE's frequency bias, log(p + 0.001), of one class of subjects and objects.
        """
        self.prior.copy_((frequency.to(self.prior) + 1e-3).log())

    def forward(
        self, map: Tensor, boxes: Tensor, clip: Tensor, pairs: Tensor, frame: Tensor | None = None
    ) -> Tensor:
        """(m, predicates) logits of every predicate of every pair, each for itself.

        Args:
            map: (B, C, T, H, W) of the trunk.
            boxes: (n, T, 4) x1, y1, x2, y2 in pixels of every person in every frame of its clip; where one is
                not seen, the box of the nearest frame.
            clip: (n,) int64, which of the B clips each person is in, rising.
            pairs: (m, 2) int64, subject and object among the n, both of one clip; `choose_pairs` finds them.
            frame: (B,) int64, the frame that is asked about (default: the middle one).

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
        total: Tensor = logits + self.geometry(describe_pairs(boxes, frame[clip], pairs)) + self.prior
        return total

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
