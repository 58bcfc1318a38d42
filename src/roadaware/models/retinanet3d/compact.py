"""A small trunk for one CPU core; `config.compact()` recommends a network; imports torch."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.layers import Conv, Norm, space, started
from roadaware.models.retinanet3d.pyramid import Pyramid


class CompactBlock(nn.Module):
    """Two 3x3 convolutions beside the input, with a kernel over time between them where `taps` is above 1.

    Args:
        inputs, outputs: channels.
        stride: of the first convolution and of the shortcut.
        taps: frames seen; 1 is none but the own.
        depthwise: each 3x3 is one per channel and one over channels.
        causal: the kernel over time looks back only.
    """

    def __init__(
        self, inputs: int, outputs: int, *, stride: int, taps: int, depthwise: bool, causal: bool
    ) -> None:
        super().__init__()
        self.first = _three_by_three(inputs, outputs, stride, depthwise)
        self.first_norm = Norm(outputs)
        self.time = (
            Conv(outputs, outputs, (taps, 1, 1), padding=(taps // 2, 0, 0), bias=False, causal=causal)
            if taps > 1
            else None
        )
        self.time_norm = Norm(outputs) if taps > 1 else None
        self.second = _three_by_three(outputs, outputs, 1, depthwise)
        self.second_norm = Norm(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = (
            None if same else nn.Sequential(space(inputs, outputs, 1, stride=stride), Norm(outputs))
        )

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T, H', W')."""
        inner = functional.relu(self.first_norm(self.first(input)), inplace=True)
        if self.time is not None and self.time_norm is not None:
            inner = functional.relu(self.time_norm(self.time(inner)), inplace=True)
        inner = self.second_norm(self.second(inner))
        beside = input if self.shortcut is None else self.shortcut(input)
        return functional.relu(inner + beside, inplace=True)


class Compact(Pyramid):
    """Two convolutions to stride 4, then residual stages with strides 4, 8, 16 and 32.

    Frames mix in the first block of the stages from stride 8 on. Use `config.compact()`: 1.75 million
    parameters with 150 classes, of which the trunk and pyramid have 1.26, and 0.95 GFLOP a frame of
    320x256 before the heads.
    """

    def __init__(self, config: RetinaNetConfig) -> None:
        super().__init__(config, config.stage_widths[1:], pooled=False)
        widths = config.stage_widths
        self.stem1, self.norm1 = space(3, widths[0], stride=2), Norm(widths[0])
        self.stem2, self.norm2 = space(widths[0], widths[0], stride=2), Norm(widths[0])
        inputs = widths[0]
        for stage, (width, count) in enumerate(zip(widths, config.stage_blocks, strict=True)):
            blocks = []
            for block in range(count):
                first = stage > 0 and not block
                blocks.append(
                    CompactBlock(
                        inputs,
                        width,
                        stride=2 if first else 1,
                        taps=config.trunk_time if first else 1,
                        depthwise=config.depthwise,
                        causal=config.causal,
                    )
                )
                inputs = width
            self.add_module(f"stage{stage + 1}", nn.Sequential(*blocks))
        started(self)

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W') with strides 8, 16 and 32."""
        map = functional.relu(self.norm1(self.stem1(input)), inplace=True)
        map = functional.relu(self.norm2(self.stem2(map)), inplace=True)
        maps = []
        for stage in (1, 2, 3, 4):
            map = self.get_submodule(f"stage{stage}")(map)
            maps.append(map)
        return maps[1:]


def _three_by_three(inputs: int, outputs: int, stride: int, depthwise: bool) -> nn.Module:
    """A 3x3 convolution, or one per channel followed by one over channels."""
    if not depthwise:
        return space(inputs, outputs, stride=stride)
    alone = Conv(
        inputs, inputs, (1, 3, 3), stride=(1, stride, stride), padding=(0, 1, 1), bias=False, groups=inputs
    )
    return nn.Sequential(alone, space(inputs, outputs, 1))
