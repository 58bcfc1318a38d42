"""SlowFast: a slow way of many channels that a fast one of few informs; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.config import BLOCKS, RetinaNetConfig
from roadaware.models.retinanet3d.layers import Conv, EverySecond, Norm, space, space_pool
from roadaware.models.retinanet3d.pyramid import Pyramid
from roadaware.models.retinanet3d.resnet import EXPANSION, add_resnet
from roadaware.models.retinanet3d.temporal import TimeRepeat

SLOWER = 2
"""The slow way sees every second frame."""
_SHARE = 8
_TOLD = 2


class WayBlock(nn.Module):
    """A bottleneck whose shortcut has its norm beside it, as the published parameters are named.

    Args:
        inputs, width: channels before and inside.
        stride, dilation: of the 3x3 convolution; the shortcut has the stride too.
        taps: frames that the first convolution spans.
        causal: kernels look back only.
    """

    def __init__(
        self, inputs: int, width: int, *, stride: int, dilation: int, taps: int, causal: bool
    ) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = Conv(inputs, width, (taps, 1, 1), padding=(taps // 2, 0, 0), bias=False, causal=causal)
        self.bn1 = Norm(width)
        self.conv2 = space(width, width, stride=stride, dilation=dilation)
        self.bn2 = Norm(width)
        self.conv3 = space(width, outputs, 1)
        self.bn3 = Norm(outputs)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(space(inputs, outputs, 1, stride=stride))
            self.downsample_bn = Norm(outputs)

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T, H', W')."""
        inner = functional.relu(self.bn1(self.conv1(input)), inplace=True)
        inner = functional.relu(self.bn2(self.conv2(inner)), inplace=True)
        inner = self.bn3(self.conv3(inner))
        beside = input if self.downsample is None else self.downsample_bn(self.downsample(input))
        return functional.relu(inner + beside, inplace=True)


class Ways(nn.Module):
    """The two ways; gives three maps whose channels are those of the slow way, then of the fast one.

    What the fast way tells is a convolution over five frames with neither norm nor rectifier, put behind the
    channels of the slow way before each stage. The last stage is dilated in place of its stride, as
    released, or not (`slowfast_strides`).

    Source: Feichtenhofer et al., ICCV 2019; released code, models/backbones/slowfast.py.
    """

    def __init__(self, config: RetinaNetConfig) -> None:
        super().__init__()
        slow, fast = config.base_width, config.base_width // _SHARE
        causal = config.causal
        self.fast_conv1 = Conv(
            3, fast, (5, 7, 7), stride=(1, 2, 2), padding=(2, 3, 3), bias=False, causal=causal
        )
        self.fast_bn1 = Norm(fast)
        self.slow_conv1 = space(3, slow, 7, stride=2)
        self.slow_bn1 = Norm(slow)
        told = [fast, *(fast * EXPANSION * 2**stage for stage in range(3))]
        for number, width in enumerate(told, start=1):
            teller = Conv(
                width,
                width * _TOLD,
                (5, 1, 1),
                stride=(SLOWER, 1, 1),
                padding=(2, 0, 0),
                bias=False,
                causal=causal,
            )
            self.add_module(f"Tconv{number}", teller)
        before = [slow, *(slow * EXPANSION * 2**stage for stage in range(3))]
        for stage in range(4):
            slow_taps = 3 if stage > 1 else 1
            inputs = before[stage] + told[stage] * _TOLD
            self.add_module(f"fast_res{stage + 1}", _way(config, told[stage], fast, stage, 3))
            self.add_module(f"slow_res{stage + 1}", _way(config, inputs, slow, stage, slow_taps))
        self.every_second = EverySecond()
        self.repeats = nn.ModuleList(TimeRepeat() for _ in range(3))

    def forward(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W')."""
        input = input.clone()  # a stream keeps it, and it is the caller's
        fast = functional.relu(self.fast_bn1(self.fast_conv1(input)), inplace=True)
        fast = space_pool(fast, 1)
        slow = functional.relu(self.slow_bn1(self.slow_conv1(self.every_second(input))), inplace=True)
        slow = space_pool(slow, 1)
        maps = []
        for stage in range(1, 5):
            slow = torch.cat([slow, self.get_submodule(f"Tconv{stage}")(fast)], dim=1)
            slow = self.get_submodule(f"slow_res{stage}")(slow)
            fast = self.get_submodule(f"fast_res{stage}")(fast)
            if stage > 1:
                shown = self.repeats[stage - 2](slow, input.shape[2])
                maps.append(torch.cat([shown, fast], dim=1))
        return maps


class SlowFast(Pyramid):
    """SlowFast under a pyramid, and beside it, where asked for, the ResNet that nothing uses."""

    def __init__(self, config: RetinaNetConfig) -> None:
        base = config.base_width * EXPANSION
        base += base // _SHARE
        super().__init__(config, (2 * base, 4 * base, 8 * base), pooled=False)
        self.backbone = nn.ModuleDict({"module": Ways(config)})
        if config.dead_weights:
            add_resnet(self, config)
            for name in ("conv1", "bn1", *(f"layer{stage}" for stage in range(1, 5))):
                self.get_submodule(name).requires_grad_(False)  # as of `ego_lateral`

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W')."""
        maps: list[Tensor] = self.backbone["module"](input)
        return maps


def _way(config: RetinaNetConfig, inputs: int, base: int, stage: int, taps: int) -> nn.Sequential:
    """A stage of one way: its first block has the stride."""
    width = base * 2**stage
    dilated = stage == 3 and config.slowfast_strides == "dilated"
    blocks = []
    for block in range((config.blocks or BLOCKS[config.slowfast_depth])[stage]):
        first = stage > 0 and not block and not dilated
        blocks.append(
            WayBlock(
                inputs,
                width,
                stride=2 if first else 1,
                dilation=2 if dilated else 1,
                taps=taps,
                causal=config.causal,
            )
        )
        inputs = width * EXPANSION
    return nn.Sequential(*blocks)
