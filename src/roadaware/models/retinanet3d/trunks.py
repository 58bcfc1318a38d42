"""The trunks of 3D-RetinaNet: C2D, I3D and recurrent ResNets, SlowFast, and a small one for one CPU core;
imports torch.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.sources import to_printable
from roadaware.models.offline import block_network
from roadaware.models.retinanet3d.config import BLOCKS, STRIDES_PX, RetinaNetConfig
from roadaware.models.retinanet3d.layers import (
    Conv,
    EverySecond,
    Norm,
    TimeLayer,
    TimePool,
    TimeRepeat,
    build_space_convolution,
    initialize_trunk,
    spatial_max_pool,
)
from roadaware.models.retinanet3d.network import Pyramid

_STRIDES = 3


class LibraryTrunk(Pyramid):
    """The last three stages of a backbone of transformers, drawn at random; it mixes no frames.

    Args:
        config: `trunk` names its configuration class, such as "ResNetConfig"; `trunk_fields` its fields.

    Raises:
        UsageError: if there is no such configuration, it takes no such field, or no backbone goes with it.
    """

    def __init__(self, config: RetinaNetConfig) -> None:
        import transformers  # takes a second, and no other trunk needs it

        from roadaware.models.pretrained import build_transformers_config

        found = getattr(transformers, config.trunk, None) if config.trunk.isidentifier() else None
        if not (isinstance(found, type) and issubclass(found, transformers.PretrainedConfig)):
            raise UsageError(
                f"transformers {transformers.__version__} has no configuration called '{to_printable(config.trunk, 60)}'"
            )
        fields: dict[str, Any] = dict(config.trunk_fields)
        make: Any = transformers.AutoBackbone.from_config
        try:
            with block_network(config.trunk):
                settings = build_transformers_config(
                    {**fields, "model_type": found.model_type}, "trunk_fields"
                )
            names = getattr(settings, "stage_names", [])
            if len(names) <= _STRIDES:
                raise UsageError(f"{config.trunk} has no stages; give the configuration of a backbone")
            settings.out_features = list(names[-_STRIDES:])
            with block_network(config.trunk):
                trunk = make(settings, trust_remote_code=False)
            channels = tuple(trunk.channels)
        except UsageError:
            raise
        except InputError as error:
            raise UsageError(str(error)) from error
        except Exception as error:  # the library raises whatever its parts do
            raise_interrupt(error)
            first = " ".join(str(error).split())[:200] or type(error).__name__
            raise UsageError(f"transformers makes no backbone of {config.trunk}: {first}") from error
        super().__init__(config, channels, pooled=False)
        self.trunk = trunk

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W') with strides 8, 16 and 32.

        Raises:
            UsageError: if the maps have other strides: anchors would stand elsewhere than their cells.
        """
        batch, frames = input.shape[0], input.shape[2]
        maps = self.trunk(input.transpose(1, 2).flatten(0, 1)).feature_maps
        height, width = input.shape[3:]
        for map, stride in zip(maps, STRIDES_PX, strict=False):
            if abs(map.shape[2] - height / stride) >= 1 or abs(map.shape[3] - width / stride) >= 1:
                raise UsageError(
                    f"of {width}x{height} pixels this trunk makes a map of {map.shape[3]}x{map.shape[2]} "
                    f"where one with a stride of {stride} pixels is needed: its last three stages should "
                    "have strides 8, 16 and 32"
                )
        return [map.reshape(batch, frames, *map.shape[1:]).transpose(1, 2) for map in maps]


# Units that carry a state from frame to frame in place of a kernel over time; imports torch.

Unit = Literal["rcn", "rclstm", "rcgru"]


class Recurrent(TimeLayer):
    """A unit whose `_next` makes one frame and the state after it of a frame and the state before it."""

    def __init__(self, width: int) -> None:
        """A unit whose frames have `width` channels; a subclass adds what it learns."""
        super().__init__()
        self.width = width
        self.state: tuple[Tensor, ...] | None = None

    def forget(self) -> None:
        """Begin a new stream."""
        self.state = None

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to the same shape."""
        state = self.state if self.streaming else None
        shown: list[Tensor] = []
        for frame in input.unbind(2):
            state = self._next(frame, state)
            shown.append(state[0])
        if self.streaming:
            self.state = None if state is None else tuple(part.detach() for part in state)
        return torch.stack(shown, dim=2) if shown else input

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The state after a frame (B, C, H, W); its first part is what is shown."""
        raise NotImplementedError


class RecurrentConv(Recurrent):
    """RCN: half of the frame and half of the last state through a matrix; the first frame as it is."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.conv_whh = build_space_convolution(width, width, 1)
        with torch.no_grad():
            # Begins as the mean of the frame and of the state before.
            self.conv_whh.weight.copy_(torch.eye(width)[:, :, None, None, None])

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        if state is None:
            return (frame,)
        return ((self.conv_whh(state[0].unsqueeze(2)).squeeze(2) + frame) / 2,)


class RecurrentLstm(Recurrent):
    """RC-LSTM: gates in the order input, forget, output, new; begins with zeros."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.recurrent_conv = nn.Conv2d(2 * width, 4 * width, 1)

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        hidden, cell = state if state is not None else (torch.zeros_like(frame), torch.zeros_like(frame))
        gates = self.recurrent_conv(torch.cat([frame, hidden], dim=1)).chunk(4, dim=1)
        cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[3].tanh()
        return gates[2].sigmoid() * cell.tanh(), cell


class RecurrentGru(Recurrent):
    """RC-GRU: gates in the order update, reset; begins with the first frame."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.recurrent_conv_gates = nn.Conv2d(2 * width, 2 * width, 1)
        self.recurrent_conv_out = nn.Conv2d(2 * width, width, 1)

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        hidden = frame if state is None else state[0]
        update, reset = self.recurrent_conv_gates(torch.cat([frame, hidden], dim=1)).sigmoid().chunk(2, dim=1)
        new = self.recurrent_conv_out(torch.cat([frame, hidden * reset], dim=1)).tanh()
        return (hidden * (1 - update) + new * update,)


# The bottleneck ResNet of 3D-RetinaNet: C2D, I3D and the recurrent ones; imports torch.

EXPANSION = 4
_EVERY_SECOND = 2


def has_temporal_kernel(stage: int, block: int) -> bool:
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
        self.conv2 = build_space_convolution(width, width, stride=stride)
        self.bn2 = Norm(width)
        self.conv3 = build_space_convolution(width, outputs, 1)
        self.bn3 = Norm(outputs)
        shortcut = stride != 1 or inputs != outputs
        self.downsample = (
            nn.Sequential(build_space_convolution(inputs, outputs, 1, stride=stride), Norm(outputs))
            if shortcut
            else None
        )

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T, H', W')."""
        inner = self.conv1(input)
        if self.unit:
            new = self.get_submodule(self.unit)(inner)
            # As released: only the recurrent convolution takes the place of what it reads.
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
    module.add_module("conv1", build_space_convolution(3, base, 7, stride=2))
    module.add_module("bn1", Norm(base))
    inputs = base
    for stage, count in enumerate(config.blocks or BLOCKS[config.depth]):
        width = base * 2**stage
        blocks = []
        for block in range(count):
            mixes = has_temporal_kernel(stage, block)
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
        map = layer("layer1")(spatial_max_pool(map, self.stem_padding))
        if self.pool2 is not None:
            map = self.pool2(map)
        fine = layer("layer2")(map)
        middle = layer("layer3")(fine)
        return [fine, middle, layer("layer4")(middle)]


# SlowFast: a slow way of many channels that a fast one of few informs; imports torch.

SLOWER = 2
"""The slow way sees every second frame."""
# Of the SlowFast paper: the fast way has an eighth of the channels, and tells twice as many as it has.
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
        self.conv2 = build_space_convolution(width, width, stride=stride, dilation=dilation)
        self.bn2 = Norm(width)
        self.conv3 = build_space_convolution(width, outputs, 1)
        self.bn3 = Norm(outputs)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(build_space_convolution(inputs, outputs, 1, stride=stride))
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
        self.slow_conv1 = build_space_convolution(3, slow, 7, stride=2)
        self.slow_bn1 = Norm(slow)
        widths = [fast, *(fast * EXPANSION * 2**stage for stage in range(3))]
        for number, width in enumerate(widths, start=1):
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
            # The slow way looks over time in its last two stages alone, as in the SlowFast paper.
            slow_taps = 3 if stage > 1 else 1
            inputs = before[stage] + widths[stage] * _TOLD
            self.add_module(f"fast_res{stage + 1}", _way(config, widths[stage], fast, stage, 3))
            self.add_module(f"slow_res{stage + 1}", _way(config, inputs, slow, stage, slow_taps))
        self.every_second = EverySecond()
        self.repeats = nn.ModuleList(TimeRepeat() for _ in range(3))

    def forward(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W')."""
        input = input.clone()  # a stream keeps it, and it is the caller's
        fast = functional.relu(self.fast_bn1(self.fast_conv1(input)), inplace=True)
        fast = spatial_max_pool(fast, 1)
        slow = functional.relu(self.slow_bn1(self.slow_conv1(self.every_second(input))), inplace=True)
        slow = spatial_max_pool(slow, 1)
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
    # Released: a stride of 16 where anchors are laid for 32, so that P5 to P7 cover twice the image.
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


# A small trunk for one CPU core; `config.compact()` recommends a network; imports torch.


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
            None
            if same
            else nn.Sequential(build_space_convolution(inputs, outputs, 1, stride=stride), Norm(outputs))
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
        self.stem1, self.norm1 = build_space_convolution(3, widths[0], stride=2), Norm(widths[0])
        self.stem2, self.norm2 = build_space_convolution(widths[0], widths[0], stride=2), Norm(widths[0])
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
        initialize_trunk(self)

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
        return build_space_convolution(inputs, outputs, stride=stride)
    alone = Conv(
        inputs, inputs, (1, 3, 3), stride=(1, stride, stride), padding=(0, 1, 1), bias=False, groups=inputs
    )
    return nn.Sequential(alone, build_space_convolution(inputs, outputs, 1))
