"""A second look at each detected person: a small network of crops that says where the body ends and whether it is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Bools, Floats32, Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.roi import nms, suppress_sorted_boxes
from roadaware.scenes.schema import PEOPLE

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_FEW = 4
"""Numbers that a crop does not show: height and width of the box, its shape, how low it stands."""
_HARDLY, _NEARLY_ONE = 0.1, 0.85
"""Between looks: the least fit that is looked at again, and the overlap from which on two boxes count as one."""

_PLAIN_LEVELS = 4
"""Where no channel of a box varies by as much, of 255, it shows nobody, as of a covered lens."""

_CHUNK, _USUAL = 64, 80 * 48 * 96
"""Crops that go through the network together, and the pixels of a crop times the widest layer of such a network."""


@dataclass(frozen=True)
class RefineConfig:
    """Shape of the network, and how it is asked.

    Args:
        size_px: rows and columns of a crop, multiples of 16.
        context: sides of a crop in those of its box, above 1: what lies beyond is not found in one look.
        widths: channels at strides 2, 4, 8 and 16; the widest times the pixels of a crop is at most 64 times the default.
        looks: how often a box is looked at, each time where the last look put it; at most 4.
        nms_iou: of boxes that overlap more when all were looked at, the best one stays.
        candidate_score: agentness from which on a box is looked at.
        candidate_nms_iou: the greatest overlap of two boxes before they are looked at.
        most: boxes of a frame that are looked at, the likeliest; at most 500.

    Raises:
        UsageError: if a value is impossible.
    """

    size_px: tuple[int, int] = (80, 48)
    context: float = 1.6
    widths: tuple[int, int, int, int] = (16, 32, 64, 96)
    looks: int = 2
    nms_iou: float = 0.6
    candidate_score: float = 0.2
    candidate_nms_iou: float = 0.65
    most: int = 24

    def __post_init__(self) -> None:
        """Refuse what is no network."""
        if any(side < 16 or side > 512 or side % 16 for side in self.size_px):
            raise UsageError(f"sides of crops are multiples of 16 up to 512, not {self.size_px}")
        if len(self.widths) != 4 or not all(1 <= width <= 1024 for width in self.widths):
            raise UsageError(f"widths are four of 1 to 1,024, not {self.widths}")
        if self.size_px[0] * self.size_px[1] * max(self.widths) > 64 * _USUAL:
            raise UsageError(f"crops of {self.size_px} with widths {self.widths} take too much memory")
        if not (1 < self.context <= 4 and 1 <= self.looks <= 4 and 0 < self.nms_iou <= 1):
            raise UsageError("context lies above 1 and up to 4, looks in 1 to 4, nms_iou above 0 and up to 1")
        shares = (self.candidate_score, self.candidate_nms_iou)
        if not (all(0 <= share <= 1 for share in shares) and 1 <= self.most <= 500):
            raise UsageError("candidate_score and candidate_nms_iou lie in [0, 1], most in 1 to 500")


def build_conv(given: int, out: int, stride: int = 1) -> nn.Sequential:
    """A 3x3 convolution with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(given, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)
    )


class BoxRefiner(nn.Module):
    """Crops around boxes to where the sides of the body lie, and to how well that fits it.

    Each side is a distribution over the rows, or columns, of a map of stride 4; where it lies is its mean.

    Args:
        config: its shape.
    """

    def __init__(self, config: RefineConfig) -> None:
        super().__init__()
        self.config = config
        one, two, three, four = config.widths
        rows, columns = config.size_px
        self.fine = nn.Sequential(build_conv(3, one, 2), build_conv(one, two, 2), build_conv(two, two))
        self.middle = nn.Sequential(build_conv(two, three, 2), build_conv(three, three))
        self.coarse = nn.Sequential(build_conv(three, four, 2), build_conv(four, four))
        cells = (rows // 16) * (columns // 16)
        self.whole = nn.Sequential(nn.Linear(four * cells + _FEW, three), nn.ReLU(inplace=True))
        self.down = nn.ModuleList([nn.Conv2d(width, two, 1) for width in (two, three, four)])
        self.told = nn.Linear(three, two)
        self.place = nn.Parameter(torch.zeros(two, rows // 4, columns // 4))
        self.mix = nn.Sequential(build_conv(two, two), build_conv(two, two))
        self.upright = nn.Conv1d(2 * two, 2, 3, padding=1)
        self.across = nn.Conv1d(2 * two, 2, 3, padding=1)
        self.score = nn.Linear(three, 1)

    def forward(self, crops: Tensor, shape: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sides and scores.

        Args:
            crops: (n, 3, rows, columns), normalised.
            shape: (n, 4) as `cut_crops` gives it.

        Returns:
            Logits of bottom and top, (n, 2, rows / 4); of left and right, (n, 2, columns / 4); of the fit, (n,).
        """
        fine = self.fine(crops)
        middle = self.middle(fine)
        coarse = self.coarse(middle)
        whole = self.whole(torch.cat([coarse.flatten(1), shape], dim=1))
        size = fine.shape[-2:]
        joined = self.down[0](fine) + self.place + self.told(whole)[:, :, None, None]
        for layer, level in zip(self.down[1:], (middle, coarse), strict=True):
            joined = joined + functional.interpolate(layer(level), size=size)
        joined = self.mix(functional.relu(joined))
        rows = torch.cat([joined.mean(dim=3), joined.amax(dim=3)], dim=1)
        columns = torch.cat([joined.mean(dim=2), joined.amax(dim=2)], dim=1)
        return self.upright(rows), self.across(columns), self.score(whole)[:, 0]


def place_sides(upright: Tensor, across: Tensor) -> Tensor:
    """(n, 4) left, top, right and bottom in shares of the crop: the means of the distributions that logits make."""

    def mean(logits: Tensor) -> Tensor:
        count = logits.shape[-1]
        at = (torch.arange(count, device=logits.device, dtype=logits.dtype) + 0.5) / count
        return (logits.softmax(dim=-1) * at).sum(dim=-1)

    x, y = mean(across), mean(upright)
    return torch.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], dim=1)


def find_windows(boxes: Tensor, context: float) -> Tensor:
    """(n, 4) corners of the crops of boxes, which keep their middles; a side is taken for at least 2 pixels."""
    middle, size = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]).clamp(min=2)
    return torch.cat([middle - size * context / 2, middle + size * context / 2], dim=1)


def cut_crops(image: Tensor, boxes: Tensor, config: RefineConfig) -> tuple[Tensor, Tensor]:
    """Crops around boxes, bilinear, and what they do not show.

    Args:
        image: (1, 3, H, W) normalised; beyond it all is 0.
        boxes: (n, 4) corners in pixels.
        config: of the network.

    Returns:
        (n, 3, rows, columns) and (n, 4).
    """
    height, width = image.shape[-2:]
    rows, columns = config.size_px
    windows = find_windows(boxes, config.context)
    x = (torch.arange(columns, device=boxes.device) + 0.5) / columns
    y = (torch.arange(rows, device=boxes.device) + 0.5) / rows
    at_x = (windows[:, 0, None] + (windows[:, 2] - windows[:, 0])[:, None] * x) * (2 / width) - 1
    at_y = (windows[:, 1, None] + (windows[:, 3] - windows[:, 1])[:, None] * y) * (2 / height) - 1
    grid = torch.stack([at_x[:, None].expand(-1, rows, -1), at_y[:, :, None].expand(-1, -1, columns)], dim=-1)
    # All crops are one sample of `grid_sample`, whose rows follow each other
    flat = grid.reshape(1, len(boxes) * rows, columns, 2)
    found = functional.grid_sample(image, flat, align_corners=False)
    crops = found.reshape(3, len(boxes), rows, columns).transpose(0, 1)
    return crops, describe_shape(boxes, height)


def describe_shape(boxes: Tensor, height: int) -> Tensor:
    """(n, 4) what the crop of a box does not show: logarithms of its width and height, in those of the image, and of its
    height over its width, and how low it stands.

    Args:
        boxes: (n, 4) corners in pixels.
        height: of the image.
    """
    size = (boxes[:, 2:] - boxes[:, :2]).clamp(min=2)
    wide, high = (size[:, 0] / height).log(), (size[:, 1] / height).log()
    low = (boxes[:, 1] + boxes[:, 3]) / (2 * height)
    return torch.stack([wide, high, high - wide, low], dim=1)


def normalise_image(image: Pixels) -> Tensor:
    """(1, 3, H, W) float32 of an image (H, W, 3) uint8."""
    x = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float()
    return ((x / 255 - x.new_tensor(MEAN)[:, None, None]) / x.new_tensor(STD)[:, None, None])[None]


def look_again(network: BoxRefiner, image: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 4) boxes where the bodies are, not clipped, and (n,) logits of how well they fit; one look at an image.

    At most 64 crops, and fewer of a larger network than usual, go through it together, so that memory is bounded.

    Args:
        network: of crops.
        image: (1, 3, H, W) normalised.
        boxes: (n, 4) corners in its pixels.
    """
    config, moved, scores = network.config, [], []
    load = config.size_px[0] * config.size_px[1] * max(config.widths)
    step = max(1, min(_CHUNK, _CHUNK * _USUAL // load))
    for first in range(0, max(1, len(boxes)), step):
        part = boxes[first : first + step]
        crops, shape = cut_crops(image, part, config)
        upright, across, score = network(crops, shape)
        windows = find_windows(part, config.context)
        size = (windows[:, 2:] - windows[:, :2]).repeat(1, 2)
        moved.append(windows[:, :2].repeat(1, 2) + place_sides(upright, across) * size)
        scores.append(score)
    return torch.cat(moved), torch.cat(scores)


@torch.inference_mode()
def refine_boxes(
    network: BoxRefiner, image: Pixels, boxes: Tensor, *, suppress: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes of people after all looks, and how well they fit.

    Between two looks, boxes that hardly fit anybody, and all but the best of those that have become nearly one, are let go,
    so that later looks cost less.

    Args:
        network: in `eval` mode.
        image: (H, W, 3) uint8, red first.
        boxes: (n, 4) corners in its pixels.
        suppress: whether a better box takes the place of those that it overlaps, after each look.

    Returns:
        By falling fit (k, 4) boxes clipped to the image, of which, if `suppress`, no two overlap by more than `nms_iou`;
        (k,) in [0, 1] the overlap with a body that is expected of each, where less than half counts as none; and (k,)
        which box each was.
    """
    config, rows = network.config, torch.arange(len(boxes))
    score = boxes.new_zeros(len(boxes))
    if not len(boxes):
        return boxes, score, rows
    height, width = image.shape[:2]
    limit = boxes.new_tensor([width, height, width, height])
    pixels = normalise_image(image)
    for look in range(config.looks):
        boxes, logits = look_again(network, pixels, boxes)
        boxes, score = boxes.clamp(min=0).minimum(limit), logits.sigmoid()
        last = look + 1 == config.looks
        iou = config.nms_iou if last else _NEARLY_ONE
        kept = nms(boxes, score, iou if suppress else float("inf"))
        if not last:
            kept = kept[score[kept] >= _HARDLY]
        boxes, score, rows = boxes[kept], score[kept], rows[kept]
        if not len(boxes):
            break
    return boxes, score, rows


def _find_contrast(image: Pixels, boxes: Tensor) -> Tensor:
    """(n,) whether there is anything to be seen in boxes (n, 4) of an image (H, W, 3) uint8."""
    corners = np.concatenate([np.floor(boxes[:, :2].numpy()), np.ceil(boxes[:, 2:].numpy())], axis=1).clip(0)
    parts = [image[y1:y2, x1:x2] for x1, y1, x2, y2 in corners.astype(int).tolist()]
    spread = [np.ptp(part.reshape(-1, 3).astype(int), axis=0).max() if part.size else 0 for part in parts]
    shown = [each >= _PLAIN_LEVELS for each in spread]
    return torch.tensor(shown, dtype=torch.bool)


class SecondLook:
    """A detector's people, looked at again.

    Args:
        network: in `eval` mode.
        kinds: labels of the detector, kind after kind, as the columns of its scores.

    Raises:
        UsageError: if it tells no people.
    """

    def __init__(self, network: BoxRefiner, kinds: Mapping[str, tuple[str, ...]]) -> None:
        columns = [(kind, name) for kind, names in kinds.items() for name in names]
        self.agents = [n for n, (kind, _) in enumerate(columns) if kind == "agent"]
        people = [n for n in self.agents if columns[n][1].lower() in PEOPLE]
        if not people:
            raise UsageError("only a detector that tells people can look at them again")
        self.network, self.people = network, people

    def widen(self, rule: DetectRule) -> DetectRule:
        """The rule by which the detector finds what is looked at: more than is reported in the end."""
        config = self.network.config
        nms_iou = None if rule.nms_iou is None else max(rule.nms_iou, config.candidate_nms_iou)
        return replace(rule, min_agentness=min(rule.min_agentness, config.candidate_score), nms_iou=nms_iou)

    def find_people(self, scores: Floats32) -> Bools:
        """(n,) whether a person is what is likeliest of the agents, of scores (n, labels)."""
        if not len(scores):
            return np.zeros(0, np.bool_)
        return np.isin(np.array(self.agents)[scores[:, self.agents].argmax(axis=1)], self.people)

    def improve(self, image: Pixels, found: FrameDetections, rule: DetectRule) -> FrameDetections:
        """The same frame with boxes of people where the bodies are, and how well they fit as their scores.

        Of people whom the detector gives less than `candidate_score` nothing is left: so it was when the network was
        measured; nor of those in whose boxes the image is of one colour. People beyond the `most` likeliest stay as the
        detector gave them, with its score, unless they overlap somebody who is reported by more than `nms_iou` of the
        network. All others stay as they are, but for those that overlap a likelier one among them by more than
        `rule.nms_iou`; where that is None, nobody is suppressed at all.
        No other agent of a box that was looked at scores as much as the person in it, so that a low fit turns nobody
        into a vehicle.

        Args:
            image: (H, W, 3) uint8, of the frame.
            found: by the rule of `widen`, by falling agentness.
            rule: which are reported.

        Returns:
            The frame with its boxes (k, 4) in pixels by falling agentness, at most `rule.top`.
        """
        config, suppress = self.network.config, rule.nms_iou is not None
        people = self.find_people(found.scores)
        candidates = np.flatnonzero(people & (found.agentness >= config.candidate_score))
        asked, rest = candidates[: config.most], candidates[config.most :]
        boxes, fit, rows = refine_boxes(
            self.network, image, torch.from_numpy(found.boxes[asked]), suppress=suppress
        )
        shown = _find_contrast(image, torch.from_numpy(found.boxes[asked])[rows])
        boxes, fit, rows = boxes[shown], fit[shown], rows[shown]
        own, others = asked[rows.numpy()], np.flatnonzero(~people)
        if rule.nms_iou is not None:
            if len(rest):
                held = boxes[fit > rule.min_agentness]
                whole = torch.cat([held, torch.from_numpy(found.boxes[rest])])
                kept = suppress_sorted_boxes(whole, config.nms_iou)
                rest = rest[(kept[kept >= len(held)] - len(held)).numpy()]
            given, likely = torch.from_numpy(found.boxes[others]), torch.from_numpy(found.agentness[others])
            others = others[np.sort(nms(given, likely, rule.nms_iou).numpy())]
        stay = np.concatenate([rest, others])
        agentness = np.concatenate([fit.numpy(), found.agentness[stay]])
        scores = found.scores[np.concatenate([own, stay])]
        # What kind of person it is stays as it was; that it is one is said by the second look.
        best = np.array(self.people)[scores[: len(own), self.people].argmax(axis=1)]
        below = np.nextafter(fit.numpy(), np.float32(0))[:, None]
        scores[: len(own), self.agents] = np.minimum(scores[: len(own), self.agents], below)
        scores[np.arange(len(own)), best] = fit.numpy()
        order = np.argsort(-agentness, kind="stable")
        order = order[agentness[order] > rule.min_agentness][: rule.top]
        joined = np.concatenate([boxes.numpy(), found.boxes[stay]])
        return replace(found, boxes=joined[order], agentness=agentness[order], scores=scores[order])
