"""Train and judge detectors of the paper's kinds on synthetic corner cases, and print the table of docs/corner_detectors.md.

    python docs/corner_annotation.py detectors/fit low-sun 371
    python docs/corner_annotation.py detectors/test city-a 8171
    python docs/corner_detectors.py detectors

All share one pyramid of features, that of the bundled detector, which is not trained any further: what is learnt here are a
region proposal network and heads on regions, in minutes of one core. Nothing was chosen on the scenes that are judged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.runner import Order, run
from roadaware.corner_cases.scorers import (
    EnergyConfig,
    MemoryConfig,
    compute_energy,
    fit_energies,
    fit_memory,
)
from roadaware.corner_cases.sources import NAMES, ErrorModel, read_true_semantics, simulate_semantics
from roadaware.datasets import read
from roadaware.metrics.corner_cases.evaluate import UNANSWERED, evaluate
from roadaware.metrics.corner_cases.matching import KIND, CornerConfig
from roadaware.metrics.metric_state import compute_values, resample_metrics
from roadaware.models.retinanet3d.anchors import decode, encode, match
from roadaware.models.retinanet3d.detector import Fit
from roadaware.models.retinanet3d.network import Features
from roadaware.models.roi import compute_box_iou, nms, roi_align
from roadaware.models.weights import open_network
from roadaware.protocols.coda import label_truth
from roadaware.scenes.concatenation import concat
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.statistics.intervals import Units
from roadaware.tasks.videos import find_videos, iterate_images

COMMON = ("pedestrian", "cyclist", "vehicle")
AGENTS = {"Ped": "pedestrian", "Cyc": "cyclist"} | dict.fromkeys(
    ("Car", "MedVeh", "LarVeh", "Bus", "EmVeh"), "vehicle"
)
UNKNOWN = len(COMMON)
SHORT_SIDE_PX = 480
EVERY = {"fit": 2, "test": 4}
"""Of the images of a video so many-th are taken: neighbours are much alike."""
TOP, BINS, WIDTH = 100, 5, 256
"""Regions of an image, cells of a region along each side, and width of the heads."""
SEEN = tuple(
    NAMES.index(name) for name in ("car", "truck", "bus", "motorcycle", "bicycle", "rider", "person")
)
"""Classes of the masks whose objects are not all labelled: a region on one that meets no box says nothing."""
SHOTS, REPEATS, RESAMPLES = (1, 5, 10), 5, 1000
METRICS = {
    "corner_ar": "CORNER AR",
    "corner_ar50": "AR50",
    "corner_ar10": "AR10",
    "corner_ap": "AP",
    "common_ar": "COMMON AR",
    "novel_ar": "NOVEL AR",
}


@dataclass(frozen=True, eq=False)
class Image:
    """An image with its features and labels.

    Args:
        video: with its town.
        frame: counts from 0.
        maps: (1, 64, H, W) of each level, half precision.
        scale: pixels of the network for one of the image.
        boxes: (n, 4) x1, y1, x2, y2 in pixels of the network.
        names: (n) common class or kind of corner case; empty for neither.
        tubes: (n) of the object.
        classes: (h, w) class of the mask, of every eighth pixel of the network.
        small: (3, 75, 120) colours from 0 to 1.
        layout: (75, 120) classes that an erring segmenter gives.
    """

    video: str
    frame: int
    maps: list[Tensor]
    scale: float
    boxes: Tensor
    names: tuple[str, ...]
    tubes: tuple[int, ...]
    classes: np.ndarray
    small: Tensor
    layout: Tensor

    def of(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """(k, 4) boxes of these names, and (k,) places of the names."""
        held = [place for place, name in enumerate(self.names) if name in names]
        return self.boxes[held], torch.tensor([names.index(self.names[place]) for place in held]).long()

    def unlabelled(self, boxes: Tensor) -> Tensor:
        """(m,) whether the middle of a box lies on something of which not all are labelled."""
        middle = ((boxes[:, :2] + boxes[:, 2:]) / 16).long().numpy()
        rows = np.clip(middle[:, 1], 0, self.classes.shape[0] - 1)
        columns = np.clip(middle[:, 0], 0, self.classes.shape[1] - 1)
        return torch.from_numpy(np.isin(self.classes[rows, columns], SEEN))


def images(root: Path, network: Any, every: int) -> Iterator[Image]:
    """The images of a set.

    Args:
        root: of `simulate`.
        network: whose features are taken.
        every: so many-th image of a video.
    """
    scenes = label_truth(read("simulator", root, cache=False))
    boxes = scenes.boxes.join(
        scenes.labels.filter(pl.col("kind").cast(pl.String) == KIND).select("box", "label"),
        on="box",
        how="left",
    )
    words = scenes.meta.vocabularies[KIND]
    fit = replace(Fit.of(network.config), short_side_px=SHORT_SIDE_PX)
    for film in find_videos(scenes, root)[0]:
        for frame, picture in enumerate(iterate_images(film)):
            if frame % every:
                continue
            x, scale, _ = fit.fit(picture)
            with torch.inference_mode():
                maps = [level[:, :, 0].half() for level in network.features(x[None, :, None]).maps]
            here = boxes.filter((pl.col("video") == film.video) & (pl.col("frame") == frame))
            kinds = [words[label] if label is not None else "" for label in here["label"]]
            corner = here["corner_case"].to_list()
            names = [
                kind if odd else common or ""
                for kind, odd, common in zip(kinds, corner, here["common"], strict=True)
            ]
            mask = read_true_semantics(scenes, root, film.video, frame).classes
            rows = (np.arange(0.5, picture.shape[0] * scale / 8) * 8 / scale).astype(int)
            columns = (np.arange(0.5, picture.shape[1] * scale / 8) * 8 / scale).astype(int)
            erring = simulate_semantics(scenes, root, film.video, frame, ErrorModel()).classes
            colours = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 255
            yield Image(
                f"{root.parent.name}/{root.name}/{film.video}",
                frame,
                maps,
                scale,
                torch.from_numpy(here.select(CORNERS).to_numpy().astype(np.float32).reshape(-1, 4)) * scale,
                tuple(names),
                tuple(here["tube"].to_list()),
                mask[np.ix_(rows.clip(max=mask.shape[0] - 1), columns.clip(max=mask.shape[1] - 1))],
                functional.adaptive_avg_pool2d(colours, (75, 120))[0],
                torch.from_numpy(erring[4::8, 4::8].astype(np.int64).copy()),
            )


class Rpn(nn.Module):
    """Objectness and offsets of every anchor, whatever its class (Ren et al., NeurIPS 2015, section 3.1)."""

    def __init__(self, channels: int, anchors: int) -> None:
        super().__init__()
        self.shared = nn.Conv2d(channels, channels, 3, padding=1)
        self.objectness, self.offsets = nn.Conv2d(channels, anchors, 1), nn.Conv2d(channels, 4 * anchors, 1)

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """(N,) logits and (N, 4) offsets of the anchors of all levels."""
        inner = [functional.relu(self.shared(level.float())) for level in maps]
        logits = [self.objectness(level).permute(0, 2, 3, 1).reshape(-1) for level in inner]
        offsets = [self.offsets(level).permute(0, 2, 3, 1).reshape(-1, 4) for level in inner]
        return torch.cat(logits), torch.cat(offsets)


def train_rpn(held: Sequence[Image], network: Any, epochs: int = 4) -> Rpn:
    """A region proposal network that learnt where common objects are.

    Args:
        held: images to learn from.
        network: whose anchors are taken.
        epochs: how often each image is seen.
    """
    torch.manual_seed(0)
    config, rng = network.config, np.random.default_rng(0)
    rpn = Rpn(config.width, config.n_anchors)
    anchors = network.anchors_for(held[0].maps)
    steps = torch.optim.AdamW(rpn.parameters(), lr=2e-3)
    pace = torch.optim.lr_scheduler.OneCycleLR(steps, 2e-3, total_steps=epochs * len(held))
    targets = [match([image.of(COMMON)[0]], anchors, config)[0] for image in held]
    for _ in range(epochs):
        for place in rng.permutation(len(held)):
            image, assigned = held[place], targets[place]
            boxes = image.of(COMMON)[0]
            free = (assigned == 0).nonzero().flatten()
            with torch.no_grad():
                hard = rpn(image.maps)[0][free].topk(512).indices
            few = torch.from_numpy(rng.choice(len(free), 256, replace=False))
            free = free[torch.cat([hard, few])]
            others = image.boxes[[name not in COMMON for name in image.names]]
            met = compute_box_iou(anchors[free], others).amax(dim=1) > 0.3 if len(others) else free < 0
            free = free[~image.unlabelled(anchors[free]) & ~met]
            good = (assigned > 0).nonzero().flatten()
            logits, offsets = rpn(image.maps)
            loss = functional.binary_cross_entropy_with_logits(
                torch.cat([logits[good], logits[free]]),
                torch.cat([torch.ones(len(good)), torch.zeros(len(free))]),
                weight=torch.cat([torch.ones(len(good)), torch.full((len(free),), 0.25)]),
            )
            if len(good):
                wanted = encode(boxes[assigned[good] - 1], anchors[good], config)
                loss = loss + functional.smooth_l1_loss(offsets[good], wanted, beta=1 / 9)
            steps.zero_grad()
            loss.backward()
            steps.step()
            pace.step()
    return rpn.eval()


@torch.inference_mode()
def find_regions(rpn: Rpn, image: Image, network: Any) -> tuple[Tensor, Tensor]:
    """(k, 4) the best regions of an image in pixels of the network, and (k,) their objectness."""
    logits, offsets = rpn(image.maps)
    best = logits.topk(1000).indices
    boxes = clip(decode(offsets[best], network.anchors_for(image.maps)[best], network.config), image)
    kept = nms(boxes, logits[best], 0.7, top=TOP)
    return boxes[kept].clone(), logits[best][kept].sigmoid().clone()


def clip(boxes: Tensor, image: Image) -> Tensor:
    """(m, 4) boxes inside of the image, a pixel wide and high at least."""
    high, wide = (8 * side for side in image.classes.shape)
    low = torch.minimum(boxes[:, :2].clamp(min=0), boxes.new_tensor([wide - 1, high - 1]))
    return torch.cat(
        [low, torch.minimum(torch.maximum(boxes[:, 2:], low + 1), boxes.new_tensor([wide, high]))], 1
    )


@torch.inference_mode()
def describe(image: Image, boxes: Tensor) -> Tensor:
    """(m, 64 * BINS * BINS) features of regions, each from the level that suits its size; half precision."""
    side = ((boxes[:, 2:] - boxes[:, :2]).clamp(min=1).prod(dim=1)).sqrt()
    level = torch.log2(side / 28).floor().clamp(0, 2).long()
    found = torch.zeros(len(boxes), image.maps[0].shape[1] * BINS * BINS, dtype=torch.float16)
    for number in range(3):
        mine = (level == number).nonzero().flatten()
        if len(mine):
            zeros = torch.zeros(len(mine), dtype=torch.int64)
            pooled = roi_align(
                image.maps[number].float(), boxes[mine], zeros, size=(BINS, BINS), scale=1 / (8 << number)
            )
            found[mine] = pooled.flatten(1).half()
    return found


class Head(nn.Module):
    """Classes of a region, background last, and one box for it."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(channels * BINS * BINS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()
        )
        self.classes, self.offsets = nn.Linear(WIDTH, classes + 1), nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(m, WIDTH) inner features, (m, classes + 1) logits and (m, 4) offsets."""
        inner = self.trunk(x.float())
        return inner, self.classes(inner), self.offsets(inner)


class Clustering:
    """ORE's contrastive clustering: regions of a class are drawn to its prototype and held off the others'.

    Args:
        classes: that have a prototype.
        width: of inner features.
        margin: how far other prototypes are held off.
        begin: steps before the first prototypes.
        every: steps between new ones.
        momentum: of what the last ones count.

    Source: Joseph et al., CVPR 2021 (ORE), section 3.1; margin, steps and momentum of its code, the first two of them a
        tenth as long since there are a tenth of the steps.
    """

    def __init__(
        self,
        classes: int,
        width: int,
        *,
        margin: float = 10.0,
        begin: int = 100,
        every: int = 20,
        momentum: float = 0.9,
    ) -> None:
        self.prototypes = torch.zeros(classes, width)
        self.known = torch.zeros(classes, dtype=torch.bool)
        self.margin, self.begin, self.every, self.momentum = margin, begin, every, momentum
        self.sums, self.counts = torch.zeros(classes, width), torch.zeros(classes)

    def loss(self, inner: Tensor, labels: Tensor, step: int) -> Tensor:
        """The mean hinge of (m, width) features of (m,) classes; 0 before there are prototypes."""
        mine = labels < len(self.prototypes)
        inner, labels = inner[mine], labels[mine]
        self.sums.index_add_(0, labels, inner.detach())
        self.counts.index_add_(0, labels, torch.ones(len(labels)))
        if step >= self.begin and (step - self.begin) % self.every == 0:
            seen = self.counts > 0
            means = self.sums[seen] / self.counts[seen, None]
            old = torch.where(self.known[seen, None], self.prototypes[seen], means)
            self.prototypes[seen] = self.momentum * old + (1 - self.momentum) * means
            self.known |= seen
            self.sums.zero_()
            self.counts.zero_()
        if not len(labels) or not self.known.any():
            return inner.sum() * 0
        away = torch.cdist(inner, self.prototypes)[:, self.known]
        own = labels[:, None] == self.known.nonzero().flatten()
        return torch.where(own, away, (self.margin - away).clamp(min=0)).mean()


@dataclass(frozen=True, eq=False)
class Lesson:
    """Regions to learn from: (m, d) features, (m,) classes, (m, 4) boxes, and the boxes they should become."""

    features: Tensor
    labels: Tensor
    boxes: Tensor
    wanted: Tensor


def teach(
    held: Sequence[Image], regions: Sequence[tuple[Tensor, Tensor]], least: float, *, unknown: bool
) -> Lesson:
    """What the regions of images teach of common objects.

    Args:
        held: images.
        regions: of each, with objectness.
        least: overlap from which a region is an object.
        unknown: whether the surest region of an image that meets nothing labelled is called unknown, as ORE does.
    """
    rng, parts = np.random.default_rng(0), []
    background = len(COMMON) + unknown
    for image, (found, objectness) in zip(held, regions, strict=True):
        boxes, names = image.of(COMMON)
        boxes = clip(boxes, image)
        mine = torch.cat([found, boxes])
        overlaps = compute_box_iou(mine, boxes) if len(boxes) else mine.new_zeros(len(mine), 1)
        best, which = overlaps.max(dim=1)
        labels = torch.full((len(mine),), background)
        if len(boxes):
            labels = torch.where(best >= least, names[which], labels)
        says = (best >= least) | ((best < 0.5) & ~image.unlabelled(mine))
        if unknown:
            free = ((best[: len(found)] < 0.3) & says[: len(found)]).nonzero().flatten()
            if len(free):
                labels[free[objectness[free].argmax()]] = UNKNOWN
        good = (says & (labels < background)).nonzero().flatten()
        free = (says & (labels == background)).nonzero().flatten()
        free = free[torch.from_numpy(rng.permutation(len(free))[: 3 * len(good) + 16])]
        rows = torch.cat([good, free])
        wanted = boxes[which[rows]] if len(boxes) else mine[rows]
        parts.append((describe(image, mine[rows]), labels[rows], mine[rows], wanted))
    return Lesson(*(torch.cat(each) for each in zip(*parts, strict=True)))


def train_head(lesson: Lesson, config: Any, classes: int, *, cluster: bool = False, epochs: int = 12) -> Head:
    """A head that learnt the regions.

    Args:
        lesson: regions.
        config: of the network, for offsets.
        classes: without background.
        cluster: whether ORE's contrastive clustering is added, by a tenth.
        epochs: how often each region is seen.
    """
    torch.manual_seed(0)
    head = Head(lesson.features.shape[1] // BINS**2, classes)
    count = -(-len(lesson.labels) // 256)
    steps = torch.optim.AdamW(head.parameters(), lr=1e-3, weight_decay=0.01)
    pace = torch.optim.lr_scheduler.OneCycleLR(steps, 1e-3, total_steps=epochs * count)
    clusters = Clustering(classes, WIDTH) if cluster else None
    for step in range(epochs * count):
        if step % count == 0:
            order = torch.randperm(len(lesson.labels))
        rows = order[step % count :: count]
        inner, logits, offsets = head(lesson.features[rows])
        # What ORE calls unknown has no box that it should become.
        loss = learn(logits, offsets, lesson, rows, config, len(COMMON))
        if clusters is not None:
            loss = loss + 0.1 * clusters.loss(inner, lesson.labels[rows], step)
        steps.zero_grad()
        loss.backward()
        steps.step()
        pace.step()
    return head.eval()


def learn(logits: Tensor, offsets: Tensor, lesson: Lesson, rows: Tensor, config: Any, objects: int) -> Tensor:
    """The loss of regions: of their classes, and of the offsets of those of the first `objects` classes."""
    loss = functional.cross_entropy(logits, lesson.labels[rows])
    kept = lesson.labels[rows] < objects
    if kept.any():
        wanted = encode(lesson.wanted[rows[kept]], lesson.boxes[rows[kept]], config)
        loss = loss + functional.smooth_l1_loss(offsets[kept], wanted, beta=1 / 9)
    return loss


@dataclass(frozen=True, eq=False)
class Found:
    """Boxes of an image in pixels of the network, with score and name (empty for none)."""

    boxes: Tensor
    scores: Tensor
    names: list[str]


@torch.inference_mode()
def classify(head: Head, image: Image, boxes: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """(m, classes + 1) logits of regions, and (m, 4) their refined boxes."""
    _, logits, offsets = head(describe(image, boxes))
    return logits, clip(decode(offsets, boxes, config), image)


def select(boxes: Tensor, scores: Tensor, names: Sequence[str], *, apart: bool = False) -> Found:
    """The best hundred boxes, none overlapping a better one by more than half.

    Args:
        boxes: (m, 4).
        scores: (m,).
        names: of each.
        apart: boxes of different names do not suppress each other.
    """
    shift = boxes
    if apart:
        words = sorted(set(names))
        shift = boxes + 4096 * torch.tensor([[words.index(name)] for name in names]).float()
    kept = nms(shift, scores, 0.5, top=TOP)
    return Found(boxes[kept], scores[kept], [names[place] for place in kept.tolist()])


class Generator(nn.Module):
    """Draws an image from the classes of its pixels; small, and without an adversary."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(len(NAMES) + 1, 24, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(24, 24, 5, padding=4, dilation=2),
            nn.ReLU(),
            nn.Conv2d(24, 3, 5, padding=2),
        )

    def forward(self, layout: Tensor) -> Tensor:
        """(b, 3, h, w) colours of (b, h, w) classes."""
        hot = functional.one_hot(layout, len(NAMES)).permute(0, 3, 1, 2).float()
        rows = torch.linspace(-1, 1, layout.shape[1])[None, None, :, None].expand(
            len(hot), 1, -1, layout.shape[2]
        )
        return self.layers(torch.cat([hot, rows], dim=1)).sigmoid()


def train_generator(held: Sequence[Image], epochs: int = 3) -> Generator:
    """A generator that learnt what streets without corner cases look like."""
    torch.manual_seed(0)
    generator, rng = Generator(), np.random.default_rng(0)
    steps = torch.optim.AdamW(generator.parameters(), lr=3e-3)
    for _ in range(epochs):
        order = rng.permutation(len(held))
        for start in range(0, len(order), 4):
            batch = [held[place] for place in order[start : start + 4]]
            drawn = generator(torch.stack([image.layout for image in batch]))
            loss = functional.l1_loss(drawn, torch.stack([image.small for image in batch]))
            steps.zero_grad()
            loss.backward()
            steps.step()
    return generator.eval()


@torch.inference_mode()
def compare(generator: Generator, image: Image, boxes: Tensor) -> Tensor:
    """(m,) how unlike what is drawn a region is: 1 less the mean cosine of its pixels, from their image's mean colour."""
    drawn, middle = generator(image.layout[None])[0], image.small.mean(dim=(1, 2), keepdim=True)
    unlike = 1 - functional.cosine_similarity(drawn - middle, image.small - middle, dim=0)
    shrunk = boxes / image.scale / 8
    return torch.stack(
        [
            unlike[int(y1) : max(int(y2), int(y1) + 1), int(x1) : max(int(x2), int(x1) + 1)].mean() / 2
            for x1, y1, x2, y2 in torch.minimum(shrunk, torch.tensor([119.0, 74, 120, 75])).tolist()
        ]
    )


def pooled(features: Tensor) -> np.ndarray:
    """(m, 64) mean features of regions, of length 1."""
    means = features.float().unflatten(1, (-1, BINS * BINS)).mean(dim=2)
    return functional.normalize(means, dim=1).numpy()


class CosineHead(nn.Module):
    """Classes by cosines, as FsDet has them; below it a trunk that is kept (FsDet) or learns on (DeFRCN).

    Args:
        base: what learnt common objects.
        classes: without background.
        scale: of the cosines.
        decoupled: DeFRCN: the trunk learns on, behind a factor and a shift for each channel of the features, which get no
            gradient that would move them.
    """

    def __init__(self, base: Head, classes: int, scale: float = 20.0, *, decoupled: bool = False) -> None:
        super().__init__()
        self.trunk, self.offsets = deepcopy(base.trunk), deepcopy(base.offsets)
        self.weight, self.scale = nn.Parameter(torch.randn(classes + 1, WIDTH) * 0.01), scale
        self.factor, self.shift = nn.Parameter(torch.ones(64)), nn.Parameter(torch.zeros(64))
        for parameter in [*self.trunk.parameters(), self.factor, self.shift]:
            parameter.requires_grad_(decoupled)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `Head`."""
        cells = x.float().reshape(len(x), 64, -1)
        inner = self.trunk((cells * self.factor[:, None] + self.shift[:, None]).flatten(1))
        return inner, *self.judge(inner)

    def judge(self, inner: Tensor) -> tuple[Tensor, Tensor]:
        """(m, classes + 1) logits and (m, 4) offsets of inner features."""
        cosines = functional.normalize(inner, dim=1) @ functional.normalize(self.weight, dim=1).T
        return self.scale * cosines, self.offsets(inner)


def draw_shots(held: Sequence[Image], names: Sequence[str], shots: int, rng: Any) -> list[tuple[int, int]]:
    """Image and box of so many examples of each name, of different objects as long as there are."""
    chosen = []
    for name in names:
        every = [
            (number, place)
            for number, image in enumerate(held)
            for place, own in enumerate(image.names)
            if own == name and (image.boxes[place, 2:] - image.boxes[place, :2]).min() >= 6
        ]
        rng.shuffle(every)
        turns: dict[Any, int] = {}
        ranked = []
        for number, place in every:
            key = held[number].video, held[number].tubes[place]
            turns[key] = turns.get(key, 0) + 1
            ranked.append((turns[key], number, place))
        chosen += [(number, place) for _, number, place in sorted(ranked, key=lambda each: each[0])[:shots]]
    return chosen


def teach_shots(
    held: Sequence[Image],
    regions: Sequence[tuple[Tensor, Tensor]],
    chosen: Sequence[tuple[int, int]],
    names: Sequence[str],
    rng: Any,
) -> Lesson:
    """The chosen boxes, eight shaken copies of each, and regions of their images that meet nothing."""
    parts = []
    for number, place in chosen:
        image, box = held[number], held[number].boxes[place]
        size = (box[2:] - box[:2]).repeat(2)
        shaken = box + torch.from_numpy(rng.uniform(-0.12, 0.12, (9, 4)).astype(np.float32)) * size
        shaken[0] = box
        free = regions[number][0]
        free = free[(compute_box_iou(free, image.boxes).amax(dim=1) < 0.3) & ~image.unlabelled(free)]
        free = free[torch.from_numpy(rng.permutation(len(free))[:12])]
        boxes = clip(torch.cat([shaken, free]), image)
        labels = torch.full((len(boxes),), len(names))
        labels[:9] = names.index(image.names[place])
        parts.append((describe(image, boxes), labels, boxes, box.expand(len(boxes), 4)))
    return Lesson(*(torch.cat(each) for each in zip(*parts, strict=True)))


def train_few(base: Head, lesson: Lesson, config: Any, classes: int, *, decoupled: bool) -> CosineHead:
    """FsDet (only classes and offsets learn) or DeFRCN on a few examples.

    Source: Wang et al., ICML 2020 (FsDet); Qiao et al., ICCV 2021 (DeFRCN), section 3.2.
    """
    head = CosineHead(base, classes, decoupled=decoupled)
    asked = [parameter for parameter in head.parameters() if parameter.requires_grad]
    steps = torch.optim.AdamW(asked, lr=1e-3 if decoupled else 1e-2)
    inner = None if decoupled else head(lesson.features)[0].detach()
    for _ in range(100):
        rows = torch.randperm(len(lesson.labels))[:256]
        if inner is None:
            _, logits, offsets = head(lesson.features[rows])
        else:
            logits, offsets = head.judge(inner[rows])
        loss = learn(logits, offsets, lesson, rows, config, classes)
        steps.zero_grad()
        loss.backward()
        steps.step()
    return head.eval()


def make_predictions(test: Sequence[Image], found: Sequence[Found], kinds: Sequence[str]) -> Predictions:
    """Boxes of all images as Predictions.

    Args:
        test: images.
        found: of each.
        kinds: names that are kinds of corner cases, besides `unknown`.
    """
    rows: list[tuple[Any, ...]] = []
    for image, each in zip(test, found, strict=True):
        corners = (each.boxes / image.scale).tolist()
        rows += [
            (image.video, image.frame, *box, score, name)
            for box, score, name in zip(corners, each.scores.tolist(), each.names, strict=True)
        ]
    boxes = pl.DataFrame(rows, schema=["video", "frame", *CORNERS, "score", "name"], orient="row")
    boxes = boxes.with_row_index("box").cast({"box": pl.Int64})
    name = pl.col("name")
    labels = boxes.filter(name.is_in(kinds)).select(
        "box", kind=pl.lit(KIND), label=name.replace_strict(list(kinds), range(len(kinds)), default=None)
    )
    novel = name.is_in([*kinds, "unknown"])
    boxes = boxes.with_columns(common=pl.when(name.is_in(COMMON)).then(name), novel=novel)
    reasons = {}
    if not boxes["common"].is_not_null().any():
        reasons["common"] = "no class is a common one"
    if not boxes["novel"].any():
        reasons["novel"] = "no class is a novel one"
    return Predictions(
        boxes=boxes.drop("name"),
        labels=labels.cast({"label": pl.Int64}),
        meta=Meta(vocabularies={KIND: tuple(kinds)}, notes={UNANSWERED: reasons}),
    )


def open_truth(roots: Sequence[Path]) -> Scenes:
    """The scenes that are judged, each named by its town."""
    parts = []
    for root in roots:
        scenes = label_truth(read("simulator", root, cache=False))
        named = pl.format(
            "{}/{}/{}", pl.lit(root.parent.name), pl.lit(root.name), pl.col("video").cast(pl.String)
        )
        columns = {
            "videos": ["video", "width_px", "height_px"],
            "frames": ["video", "frame"],
            "boxes": ["box", "video", "frame", *CORNERS, "corner_case", "common", "novel"],
        }
        tables = {
            name: getattr(scenes, name).select(held).with_columns(video=named)
            for name, held in columns.items()
        }
        for name in ("frames", "boxes"):
            tables[name] = tables[name].filter(pl.col("frame") % EVERY["test"] == 0)
        kept = pl.col("box").is_in(tables["boxes"]["box"].implode())
        labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == KIND).filter(kept)
        words = {KIND: scenes.meta.vocabularies[KIND]}
        parts.append(Scenes(**tables, labels=labels, meta=Meta(vocabularies=words)))
    return concat(parts)


class Table:
    """Rows of detectors with intervals over scenes.

    Args:
        truth: the scenes that are judged.
    """

    def __init__(self, truth: Scenes) -> None:
        self.truth, self.first = truth, True
        self.config = CornerConfig(precision="always")
        print(
            f"| {' | '.join(['detector', *METRICS.values()])} |\n{'|---' * (len(METRICS) + 1)}|", flush=True
        )

    def add(self, name: str, predictions: Predictions) -> None:
        """Judge and print; with the first row those that need no detector."""
        result = evaluate(predictions, self.truth, self.config)
        for trivial, values in result.baselines.items() if self.first else ():
            cells = [f"{100 * values[each]:.1f}" if values.get(each) is not None else "" for each in METRICS]
            print(f"| {trivial} | {' | '.join(cells)} |", flush=True)
        self.first = False
        values, resamples = compute_values(result.state), resample_metrics(result.state, RESAMPLES, 0)
        units = Units(len(result.state.videos), RESAMPLES, 0)
        cells = [
            tell(values[each], resamples[each, None], units) if values.get(each) is not None else "-"
            for each in METRICS
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def tell(value: float, resamples: np.ndarray, units: Units) -> str:
    """Per cent with the 95 % interval over scenes."""
    ends = units.interval(value, resamples)
    return f"{100 * value:.1f} [{100 * (ends.low or 0):.1f}, {100 * (ends.high or 0):.1f}]"


def judge_few(
    truth: Scenes,
    fit: Sequence[Image],
    fit_regions: Sequence[tuple[Tensor, Tensor]],
    test: Sequence[Image],
    test_regions: Sequence[tuple[Tensor, Tensor]],
    base: Head,
    config: Any,
) -> None:
    """Print the table of few-shot detectors: means over repeats, their spread, intervals over scenes."""
    boxes = truth.boxes.filter("corner_case")
    labels = truth.labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    present = {truth.meta.vocabularies[KIND][label] for label in labels["label"]}
    kinds = sorted(present & {name for image in fit for name in image.names})
    odd = truth.with_tables(boxes=boxes, labels=labels)
    names = (*COMMON, *kinds)
    asked = ("classes_ar", "classes_ar50", "classes_ar75", "corner_ar", "corner_ar50", "corner_ar75")
    print(f"\n{len(kinds)}-way: {', '.join(kinds)}\n")
    print(
        "| detector | shots | class-wise AR | AR50 | AR75 | class-agnostic AR | AR50 | AR75 |\n"
        + "|---" * 8
        + "|"
    )
    features = [describe(image, found) for image, (found, _) in zip(test, test_regions, strict=True)]
    for decoupled in (False, True):
        for shots in SHOTS:
            many: list[dict[str, float]] = []
            resamples: list[Any] = []
            for repeat in range(REPEATS):
                rng = np.random.default_rng([shots, repeat])
                torch.manual_seed(repeat)
                chosen = draw_shots(fit, names, shots, rng)
                lesson = teach_shots(fit, fit_regions, chosen, names, rng)
                head = train_few(base, lesson, config, len(names), decoupled=decoupled)
                # A class of which the images hold no region has none, and is near to nothing.
                sums = [pooled(lesson.features[lesson.labels == at]).sum(axis=0) for at in range(len(names))]
                prototypes = torch.from_numpy(np.stack(sums))
                found = []
                for image, (own, _), held in zip(test, test_regions, features, strict=True):
                    with torch.inference_mode():
                        _, logits, offsets = head(held)
                        chances = logits.softmax(dim=1)[:, :-1]
                        if decoupled:
                            # DeFRCN's calibration by prototypes, here of the features of the pyramid themselves.
                            near = torch.from_numpy(pooled(held)) @ functional.normalize(prototypes, dim=1).T
                            chances = 0.5 * chances + 0.5 * chances.amax(dim=1, keepdim=True) * near
                        moved = clip(decode(offsets, own, config), image)
                        chances = chances[:, len(COMMON) :]
                        best, which = chances.topk(3, dim=1)
                    words = [kinds[at] for at in which.flatten().tolist()]
                    found.append(select(moved.repeat_interleave(3, dim=0), best.flatten(), words, apart=True))
                state = evaluate(
                    make_predictions(test, found, kinds), odd, CornerConfig(groups=("classes", "corner"))
                ).state
                many.append(compute_values(state))
                resamples.append(resample_metrics(state, RESAMPLES, 0))
            units = Units(len(state.videos), RESAMPLES, 0)
            cells = []
            for each in asked:
                values = [held[each] for held in many]
                mean = np.mean([drawn[each, None] for drawn in resamples], axis=0)
                cells.append(
                    f"{tell(float(np.mean(values)), mean, units)} ± {100 * np.std(values, ddof=1):.1f}"
                )
            print(f"| {'DeFRCN' if decoupled else 'FsDet'} | {shots} | {' | '.join(cells)} |", flush=True)


def main(folder: Path) -> None:
    """Train on `folder/fit`, judge on `folder/test`.

    Args:
        folder: of both, with a folder of sets `with` and `without` things for each town.
    """
    from roadaware import weights

    network, facts = open_network(Path(str(weights.__path__[0])) / "compact-road.safetensors")
    config = network.config
    roots = {part: sorted((folder / part).glob("*/with*/simulation.json")) for part in ("fit", "test")}
    fit, test = (
        [image for path in roots[part] for image in images(path.parent, network, EVERY[part])]
        for part in ("fit", "test")
    )
    plain = [image for image in fit if "/without/" in image.video]
    kinds = sorted({name for image in fit + test for name in image.names} - {"", *COMMON})
    print(
        f"{len(plain)} of {len(fit)} images to fit on hold none that was put there; {len(test)} are judged",
        flush=True,
    )
    table = Table(open_truth([path.parent for path in roots["test"]]))

    # One stage, as it comes: the bundled RetinaNet with its own classes.
    agents, found = facts["kinds"]["agent"], []
    for image in test:
        with torch.inference_mode():
            levels = [level.float()[:, :, None] for level in image.maps]
            out = network.heads(Features(levels, torch.zeros(1, config.width, 1)))
        logits, boxes = out.class_logits[0, 0], clip(out.boxes[0, 0], image)
        best = logits[:, 0].topk(1000).indices
        scores, which = logits[best, 1 : 1 + len(agents)].sigmoid().max(dim=1)
        names = [AGENTS.get(agents[at], "") for at in which.tolist()]
        found.append(select(boxes[best], scores, names))
    table.add("RetinaNet, bundled", make_predictions(test, found, kinds))

    rpn = train_rpn(plain, network)
    regions, fit_regions = ([find_regions(rpn, image, network) for image in held] for held in (test, fit))
    plain_regions = [own for image, own in zip(fit, fit_regions, strict=True) if "/without/" in image.video]
    found = [select(boxes, objectness, [""] * len(boxes)) for boxes, objectness in regions]
    table.add("RPN, class-agnostic", make_predictions(test, found, kinds))

    # Two stages and three (Faster R-CNN, Cascade R-CNN), each refined by a head of its own.
    heads: list[Head] = []
    mine, stages = plain_regions, regions
    sums = [0.0] * len(test)
    for number, least in enumerate((0.5, 0.6, 0.7)):
        heads.append(train_head(teach(plain, mine, least, unknown=False), config, len(COMMON)))
        found = []
        for place, (image, (boxes, objectness)) in enumerate(zip(test, stages, strict=True)):
            logits, moved = classify(heads[-1], image, boxes, config)
            sums[place] = sums[place] + logits.softmax(dim=1)
            scores, which = (sums[place] / (number + 1))[:, :-1].max(dim=1)
            found.append(select(moved, scores, [COMMON[at] for at in which.tolist()]))
            stages = [*stages[:place], (moved, objectness), *stages[place + 1 :]]
        if number != 1:
            table.add("Faster R-CNN" if not number else "Cascade R-CNN", make_predictions(test, found, kinds))
        mine = [
            (classify(heads[-1], image, boxes, config)[1], objectness)
            for image, (boxes, objectness) in zip(plain, mine, strict=True)
        ]

    # ORE: unknown regions by objectness, contrastive clustering, energies of two Weibull densities.
    ore = train_head(teach(plain, plain_regions, 0.5, unknown=True), config, len(COMMON) + 1, cluster=True)
    odd = [image for image in fit if "/with/" in image.video]
    form = EnergyConfig.reference()
    for name, held in (
        ("ORE, energies of other scenes", odd),
        ("ORE, energies of the judged scenes (leak)", test),
    ):
        energies = []
        for asked in (COMMON, kinds):
            boxes = [clip(image.of(asked)[0], image) for image in held]
            logits = torch.cat(
                [classify(ore, image, b, config)[0] for image, b in zip(held, boxes, strict=True)]
            )
            energies.append(compute_energy(logits[:, : len(COMMON)].numpy(), form))
        model, found = fit_energies(energies[0], energies[1], form), []
        for image, (boxes, _) in zip(test, regions, strict=True):
            logits, moved = classify(ore, image, boxes, config)
            chances = logits.softmax(dim=1)
            share = model.unknown_share(compute_energy(logits[:, : len(COMMON)].numpy(), form))
            which = chances[:, :-1].argmax(dim=1)
            which[torch.from_numpy(share > 0.5)] = UNKNOWN
            words = [(*COMMON, "unknown")[at] for at in which.tolist()]
            found.append(select(moved, 1 - chances[:, -1], words))
        table.add(name, make_predictions(test, found, kinds))

    generator = train_generator(plain)
    found = [
        select(boxes, objectness * compare(generator, image, boxes), ["unknown"] * len(boxes))
        for image, (boxes, objectness) in zip(test, regions, strict=True)
    ]
    table.add("synthesise, then compare", make_predictions(test, found, kinds))

    features, groups, videos = [], [], sorted({image.video for image in plain})
    for image, (boxes, _) in zip(plain, plain_regions, strict=True):
        common = clip(image.of(COMMON)[0], image)
        met = compute_box_iou(boxes, image.boxes).amax(dim=1) if len(image.boxes) else boxes[:, 0] * 0
        kept = torch.cat([common, boxes[met < 0.1][:8]])
        features.append(pooled(describe(image, kept)))
        groups += [videos.index(image.video)] * len(kept)
    bank = fit_memory(np.concatenate(features), np.array(groups), MemoryConfig())
    odd_of = [
        bank.anomaly(pooled(describe(image, boxes))) for image, (boxes, _) in zip(test, regions, strict=True)
    ]
    found = [
        select(boxes, objectness * torch.from_numpy(anomaly).float(), ["unknown"] * len(boxes))
        for (boxes, objectness), anomaly in zip(regions, odd_of, strict=True)
    ]
    table.add("memory bank, features of the pyramid", make_predictions(test, found, kinds))

    # Proposals of the LiDAR on the same images, alone and with the memory.
    found, asked = [], {}
    for path in roots["test"]:
        root = path.parent
        order = Order("simulator", str(root.resolve()), CopgConfig(), "erring", "erring")
        held = run(order, root.parent / f"proposals-{root.name}-tracks")[0].boxes
        named = pl.format(
            "{}/{}/{}", pl.lit(root.parent.name), pl.lit(root.name), pl.col("video").cast(pl.String)
        )
        for key, part in held.with_columns(video=named).partition_by("video", "frame", as_dict=True).items():
            asked[key] = part
    for image in test:
        part = asked.get((image.video, image.frame))
        corners = (
            np.zeros((0, 4), np.float32)
            if part is None
            else part.select(CORNERS).to_numpy().astype(np.float32)
        )
        scores = (
            torch.zeros(0) if part is None else torch.from_numpy(part["score"].to_numpy().astype(np.float32))
        )
        found.append(Found(torch.from_numpy(corners) * image.scale, scores, ["unknown"] * len(corners)))
    table.add("`propose` (LiDAR, erring masks and detections)", make_predictions(test, found, kinds))
    recalled = [
        replace(
            each,
            scores=each.scores
            * torch.from_numpy(bank.anomaly(pooled(describe(image, clip(each.boxes, image))))),
        )
        if len(each.boxes)
        else each
        for image, each in zip(test, found, strict=True)
    ]
    table.add("`propose`, memory bank", make_predictions(test, recalled, kinds))
    both = [
        Found(
            torch.cat([one.boxes, boxes]),
            torch.cat([one.scores, 0.1 * objectness]),
            [*one.names, *[""] * len(boxes)],
        )
        for one, (boxes, objectness) in zip(found, regions, strict=True)
    ]
    both = [select(each.boxes, each.scores, each.names) for each in both]
    table.add("`propose`, then regions of the RPN", make_predictions(test, both, kinds))
    judge_few(table.truth, fit, fit_regions, test, regions, heads[0], config)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
