"""The bottleneck ResNet of 3D-RetinaNet: C2D, I3D and the recurrent ones; imports torch."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.config import BLOCKS, RetinaNetConfig
from roadaware.models.retinanet3d.layers import Conv, Norm, space, space_pool
from roadaware.models.retinanet3d.pyramid import Pyramid
from roadaware.models.retinanet3d.recurrent import Recurrent, RecurrentConv, RecurrentGru, RecurrentLstm
from roadaware.models.retinanet3d.temporal import TimePool

EXPANSION = 4
_EVERY_SECOND = 2


def over_time(stage: int, block: int) -> bool:
    """Whether a block looks over time: all of the first stage, every second of two more, two of the last."""
    return stage == 0 or (stage in (1, 2) and block % _EVERY_SECOND == 0) or (stage == 3 and block < 2)


class Bottleneck(nn.Module):
    """1x1 to the width of the stage, 3x3, 1x1 to four times it, beside the input; looks over time first.

    Args:
        inputs, width: channels before and inside.
        stride: of the 3x3 convolution and of the shortcut.
        taps: frames that the first convolution spans.
        unit: a recurrent unit behind the first convolution, by its published name.
        causal: kernels look back only.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        *,
        stride: int = 1,
        taps: int = 1,
        unit: str = "",
        causal: bool = False,
    ) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = Conv(inputs, width, (taps, 1, 1), padding=(taps // 2, 0, 0), bias=False, causal=causal)
        self.unit = unit
        if unit:
            self.add_module(unit, _UNITS[unit](width))
        self.bn1 = Norm(width)
        self.conv2 = space(width, width, stride=stride)
        self.bn2 = Norm(width)
        self.conv3 = space(width, outputs, 1)
        self.bn3 = Norm(outputs)
        shortcut = stride != 1 or inputs != outputs
        self.downsample = (
            nn.Sequential(space(inputs, outputs, 1, stride=stride), Norm(outputs)) if shortcut else None
        )

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T, H', W')."""
        inner = self.conv1(input)
        if self.unit:
            new = self.get_submodule(self.unit)(inner)
            inner = new if self.unit == "rcu" else new + inner
        inner = functional.relu(self.bn1(inner), inplace=True)
        inner = functional.relu(self.bn2(self.conv2(inner)), inplace=True)
        inner = self.bn3(self.conv3(inner))
        beside = input if self.downsample is None else self.downsample(input)
        return functional.relu(inner + beside, inplace=True)


_UNITS: dict[str, type[Recurrent]] = {"rcu": RecurrentConv, "clstm": RecurrentLstm, "cgru": RecurrentGru}
_UNIT_OF = {"rcn": "rcu", "rclstm": "clstm", "rcgru": "cgru"}


def add_resnet(module: nn.Module, config: RetinaNetConfig) -> None:
    """Put stem and four stages into a module: `conv1`, `bn1`, `layer1` to `layer4`."""
    base = config.base_width
    looks, unit = config.backbone in ("i3d", "slowfast"), _UNIT_OF.get(config.backbone, "")
    module.add_module("conv1", space(3, base, 7, stride=2))
    module.add_module("bn1", Norm(base))
    inputs = base
    for stage, count in enumerate(config.blocks or BLOCKS[config.depth]):
        width = base * 2**stage
        blocks = []
        for block in range(count):
            mixes = over_time(stage, block)
            blocks.append(
                Bottleneck(
                    inputs,
                    width,
                    stride=2 if stage and not block else 1,
                    taps=3 if looks and mixes else 1,
                    unit=unit if mixes else "",
                    causal=config.causal,
                )
            )
            inputs = width * EXPANSION
        module.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))


class ResNet(Pyramid):
    """C2D, I3D (whose frames are pooled behind the first stage), or a recurrent one.

    Source: Singh et al., TPAMI 2022, section 4.1; released code, models/resnetFPN.py.
    """

    def __init__(self, config: RetinaNetConfig) -> None:
        pooled = config.backbone == "i3d" and config.time_pool
        base = config.base_width * EXPANSION
        super().__init__(config, (2 * base, 4 * base, 8 * base), pooled=pooled)
        add_resnet(self, config)
        self.stem_padding = config.stem_padding
        self.pool2 = TimePool(causal=config.causal) if pooled else None

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T', H', W') with strides 8, 16 and 32."""
        layer = self.get_submodule
        map = functional.relu(layer("bn1")(layer("conv1")(input)), inplace=True)
        map = layer("layer1")(space_pool(map, self.stem_padding))
        if self.pool2 is not None:
            map = self.pool2(map)
        fine = layer("layer2")(map)
        middle = layer("layer3")(fine)
        return [fine, middle, layer("layer4")(middle)]
