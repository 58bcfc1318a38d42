"""The loss with classes computed only where they can count: at matched anchors and the likeliest others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.focal import focal, focal_sum
from roadaware.models.retinanet3d.heads import Head
from roadaware.models.retinanet3d.last import wide
from roadaware.models.retinanet3d.loss import losses, matches_of, summed
from roadaware.models.retinanet3d.matching import BACKGROUND, IGNORED
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.targets import Targets
from roadaware.models.retinanet3d.temporal import TimeConv


class Trainee(nn.Module):
    """A network together with its loss, so that the gradients of everything are gathered in one place.

    Classes other than agentness are ever looked at where agentness passes. With `likeliest`, agentness is
    learnt everywhere and the others at matched anchors and, as background, at so many other anchors of each
    frame, those of most agentness: the last convolution of the classes, most of the arithmetic of the whole,
    is then computed at a hundredth of the cells.

    Args:
        network: what learns.
        likeliest: anchors of a frame beside the matched ones; None for classes everywhere, as published.
    """

    def __init__(self, network: RetinaNet3D, likeliest: int | None = None) -> None:
        super().__init__()
        self.network, self.likeliest = network, likeliest

    def forward(
        self,
        x: Tensor,
        boxes: list[list[Tensor]],
        classes: list[list[Tensor]],
        av: Tensor,
        labelled: Tensor,
    ) -> dict[str, Tensor]:
        """The loss as `losses` gives it; whoever spreads the network over devices passes on plain tensors.

        Args:
            x: (B, 3, T, H, W) normalised and padded.
            boxes, classes, av, labelled: the fields of `Targets`.
        """
        targets = Targets(boxes, classes, av, labelled)
        if self.likeliest is None:
            said = self.network(x)
            # Under mixed precision the network answers in half of it, which is too little for sums.
            said = said._replace(
                class_logits=wide(said.class_logits),
                av_logits=wide(said.av_logits),
                offsets=wide(said.offsets),
            )
            return losses(said, targets, self.network.config)
        return self._lean(x, targets, self.likeliest)

    def _lean(self, x: Tensor, targets: Targets, likeliest: int) -> dict[str, Tensor]:
        network, config = self.network, self.network.config
        features = network.features(x)
        anchors = network.anchors_for(features.maps)
        matches = matches_of(targets, anchors, config)
        offsets = [network.reg_heads(m, level) for level, m in enumerate(features.maps)]
        classes = ClassesWhereAsked(network.cls_heads, features.maps, config)
        frame, anchor = chosen(classes.agentness, matches.assigned, likeliest)
        logits = classes.at(torch.cat([matches.frame, frame]), torch.cat([matches.anchor, anchor]))
        truth = torch.cat([hot for clip in targets.classes for hot in clip])[matches.row].to(logits.dtype)
        wanted = torch.cat([truth[:, 1:], logits.new_zeros(len(frame), logits.shape[1])])
        total = focal(logits, wanted, config.focal_alpha, config.focal_gamma).sum() + focal_sum(
            classes.agentness.reshape(-1, 1),
            (matches.assigned != IGNORED).flatten(),
            matches.frame * len(anchors) + matches.anchor,
            truth[:, :1],
            config.focal_alpha,
            config.focal_gamma,
        )
        flat = torch.cat([_flat(level, 4) for level in offsets], dim=2)
        av = network.av_logits(features.ego)
        return summed(wide(flat), total, wide(av), anchors, targets, matches, config)


def chosen(agentness: Tensor, assigned: Tensor, likeliest: int) -> tuple[Tensor, Tensor]:
    """(k) frames and (k) anchors of background with most agentness, so many of each frame.

    Args:
        agentness: (F, N) logits.
        assigned: (F, N) as `match` gives it.
        likeliest: of a frame; fewer where there are not so many.
    """
    background = agentness.detach().masked_fill(assigned != BACKGROUND, -torch.inf)
    best = background.topk(min(likeliest, background.shape[1]), dim=1)
    frame, place = torch.isfinite(best.values).nonzero(as_tuple=True)
    return frame, best.indices[frame, place]


class ClassesWhereAsked:
    """What the head of the classes says: agentness of all anchors, the other classes of some.

    Args:
        head: convolutions over space, and a last one over space and time.
        maps: (B, width, T, H, W) of each level.
        config: of the network.
    """

    def __init__(self, head: Head, maps: list[Tensor], config: RetinaNetConfig) -> None:
        last = head[len(head) - 1]
        if not isinstance(last, TimeConv) or last.bias is None:
            raise TypeError(f"the last layer of a head is a TimeConv with bias, not {type(last).__name__}")
        self.taps, self.n_anchors = int(last.weight.shape[2]), config.n_anchors
        self.before = last.back if last.causal else last.back // 2
        self.inner = [head.inner(level) for level in maps]
        weight = last.weight.reshape(config.n_anchors, -1, *last.weight.shape[1:])
        bias = last.bias.reshape(config.n_anchors, -1)
        self.weight, self.bias = weight[:, 1:], bias[:, 1:]
        levels = [self._agentness(level, weight[:, 0], bias[:, 0]) for level in self.inner]
        self.agentness = wide(torch.cat(levels, dim=1))
        self.ends = torch.tensor([level.shape[1] for level in levels], device=maps[0].device).cumsum(0)

    def _agentness(self, inner: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(B T, cells anchors) of one level."""
        if self.taps == 1:
            pictures = inner.transpose(1, 2).flatten(0, 1)
            found = functional.conv2d(pictures, weight[:, :, 0], bias, padding=1)
            return found.permute(0, 2, 3, 1).flatten(1)
        seen = functional.pad(inner, (0, 0, 0, 0, self.before, self.taps - 1 - self.before))
        found = functional.conv3d(seen, weight, bias, padding=(0, 1, 1))
        return found.permute(0, 2, 3, 4, 1).flatten(0, 1).flatten(1)

    def at(self, frames: Tensor, anchors: Tensor) -> Tensor:
        """(k, classes - 1) logits of some anchors.

        Args:
            frames: (k) over all clips.
            anchors: (k) over all levels.
        """
        level = torch.bucketize(anchors, self.ends, right=True)
        begins = torch.cat([self.ends.new_zeros(1), self.ends[:-1]])
        inside = anchors - begins[level]
        shape = self.inner[0].new_empty(0, self.weight[0, 0].numel())
        order, patches = [], [shape]
        for number, inner in enumerate(self.inner):
            mine = torch.nonzero(level == number).flatten()
            if len(mine):
                order.append(mine)
                patches.append(self._patches(inner, frames[mine], inside[mine] // self.n_anchors))
        if not order:
            return wide(shape.new_zeros(0, self.weight.shape[1]))
        back = torch.argsort(torch.cat(order))
        found = torch.cat(patches)[back]
        return self._by_anchor(found, inside % self.n_anchors)

    def _by_anchor(self, patches: Tensor, anchors: Tensor) -> Tensor:
        """Each patch through the weights of its anchor."""
        order, made = [], []
        for anchor in range(self.n_anchors):
            mine = torch.nonzero(anchors == anchor).flatten()
            if len(mine):
                order.append(mine)
                made.append(torch.addmm(self.bias[anchor], patches[mine], self.weight[anchor].flatten(1).T))
        return wide(torch.cat(made))[torch.argsort(torch.cat(order))]

    def _patches(self, inner: Tensor, frames: Tensor, cells: Tensor) -> Tensor:
        """(k, C taps 3 3) what the last kernel sees of some cells, in the order of its weights."""
        _, channels, length, height, width = inner.shape
        taps, device = self.taps, inner.device
        # One row of zeros behind all others stands for what lies outside of clip and picture.
        rows = inner.permute(0, 2, 3, 4, 1).reshape(-1, channels)
        rows = torch.cat([rows, rows.new_zeros(1, channels)])
        near = torch.arange(-1, 2, device=device)
        t = frames[:, None] % length + torch.arange(taps, device=device) - self.before
        y, x = (cells // width)[:, None] + near, (cells % width)[:, None] + near
        inside = ((t >= 0) & (t < length))[:, :, None, None]
        inside = (
            inside & ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[:, None, None]
        )
        clip = (frames // length)[:, None] * length
        place = ((clip + t)[:, :, None, None] * height + y[:, None, :, None]) * width + x[:, None, None]
        place = torch.where(inside, place, len(rows) - 1)
        found = rows.index_select(0, place.flatten()).view(len(frames), -1, channels)
        return found.transpose(1, 2).flatten(1)


def _flat(shown: Tensor, numbers: int) -> Tensor:
    """(B, T, cells anchors, numbers) of (B, anchors numbers, T, H, W)."""
    shown = shown.permute(0, 2, 3, 4, 1)
    return shown.reshape(*shown.shape[:2], -1, numbers)
