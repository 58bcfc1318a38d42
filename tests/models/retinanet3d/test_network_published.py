"""The released network: the names and shapes of its parameters, and its arithmetic, written out plainly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models import create
from roadaware.models.retinanet3d import RetinaNetConfig, default, reference
from roadaware.models.retinanet3d.network import Outputs, RetinaNet3D

torch.set_num_threads(1)
Keys = dict[str, tuple[int, ...]]
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
LOOKS = {0: (0, 1, 2), 1: (0, 2), 2: tuple(range(0, 23, 2)), 3: (0, 1)}
# Digests of the released names and shapes, sorted, "name<tab>shape" a line.
RELEASED = {"c2d": "39a624beb8ff733c", "i3d": "072f53d8cf40f3bc", "slowfast": "93f8ad498f3e0383"}
SMALL = {"base_width": 8, "blocks": (2, 3, 3, 2), "width": 8, "anchor_scales": (1.0, 1.25992, 1.58740)}


def _norm(name: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (width,)
    yield f"{name}.num_batches_tracked", ()


def _block(
    name: str, inputs: int, width: int, taps: int, shortcut: bool, beside: str
) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.conv1.weight", (width, inputs, taps, 1, 1)
    yield from _norm(f"{name}.bn1", width)
    yield f"{name}.conv2.weight", (width, width, 1, 3, 3)
    yield from _norm(f"{name}.bn2", width)
    yield f"{name}.conv3.weight", (4 * width, width, 1, 1, 1)
    yield from _norm(f"{name}.bn3", 4 * width)
    if shortcut:
        yield f"{name}.downsample.0.weight", (4 * width, inputs, 1, 1, 1)
        yield from _norm(f"{name}.{beside}", 4 * width)


def _resnet(looks: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "backbone.conv1.weight", (64, 3, 1, 7, 7)
    yield from _norm("backbone.bn1", 64)
    inputs = 64
    for stage, count in enumerate(BLOCKS[50]):
        for block in range(count):
            taps = 3 if looks and block in LOOKS[stage] else 1
            name = f"backbone.layer{stage + 1}.{block}"
            yield from _block(name, inputs, 64 << stage, taps, block == 0, "downsample.1")
            inputs = 256 << stage


def _slowfast() -> Iterator[tuple[str, tuple[int, ...]]]:
    inside = "backbone.backbone.module"
    yield f"{inside}.fast_conv1.weight", (8, 3, 5, 7, 7)
    yield from _norm(f"{inside}.fast_bn1", 8)
    yield f"{inside}.slow_conv1.weight", (64, 3, 1, 7, 7)
    yield from _norm(f"{inside}.slow_bn1", 64)
    for way, base in (("fast", 8), ("slow", 64)):
        inputs = base
        for stage, count in enumerate(BLOCKS[101]):
            taps = 3 if way == "fast" or stage > 1 else 1
            told = inputs // 8 * 2 if way == "slow" else 0
            for block in range(count):
                name = f"{inside}.{way}_res{stage + 1}.{block}"
                yield from _block(name, inputs + told, base << stage, taps, block == 0, "downsample_bn")
                inputs, told = (4 * base) << stage, 0
    for number, width in enumerate((8, 32, 64, 128), start=1):
        yield f"{inside}.Tconv{number}.weight", (2 * width, width, 5, 1, 1)


def _published(backbone: str, classes: int, actions: int) -> Keys:
    keys = dict(_resnet(backbone != "c2d"))
    c3, c4, c5 = (576, 1152, 2304) if backbone == "slowfast" else (512, 1024, 2048)
    if backbone == "slowfast":
        keys |= dict(_slowfast())
    for number, width in ((1, c5), (2, c4), (3, c3)):
        keys[f"backbone.lateral_layer{number}.weight"] = (256, width, 1, 1, 1)
        keys[f"backbone.corr_layer{number}.weight"] = (256, 256, 1, 3, 3)
    keys["backbone.conv6.weight"] = (256, c5, 1, 3, 3)
    keys["backbone.conv7.weight"] = (256, 256, 1, 3, 3)
    keys["backbone.ego_lateral.weight"] = (256, 2048, 1, 3, 3)
    for head, each in (("reg", 4), ("cls", classes)):
        for layer in (0, 2, 4):
            keys[f"{head}_heads.{layer}.weight"] = (256, 256, 1, 3, 3)
            keys[f"{head}_heads.{layer}.bias"] = (256,)
        keys[f"{head}_heads.6.weight"] = (9 * each, 256, 3, 3, 3)
        keys[f"{head}_heads.6.bias"] = (9 * each,)
    keys |= {"ego_head.weight": (actions, 256, 3, 1, 1), "ego_head.bias": (actions,)}
    return keys | {f"anchors.cell_anchors.{level}": (9, 4) for level in range(5)}


def _shapes(network: RetinaNet3D) -> Keys:
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("backbone", ["c2d", "i3d", "slowfast"])
def test_every_name_and_shape_is_the_released_one(backbone: str) -> None:
    with torch.device("meta"):
        network = create(f"retinanet3d-{backbone}", config=reference(), n_classes=150, n_av=7)
    shapes = _shapes(network)
    assert shapes == _published(backbone, 150, 7)
    lines = "\n".join(sorted(f"{name}\t{shape}" for name, shape in shapes.items()))
    assert hashlib.blake2b(lines.encode(), digest_size=8).hexdigest() == RELEASED[backbone]


def test_class_counts_come_from_the_data() -> None:
    with torch.device("meta"):
        network = create("retinanet3d-i3d", config=reference(), n_classes=25, n_av=25)
    assert _shapes(network) == _published("i3d", 25, 25)
    with pytest.raises(UsageError, match="give n_classes"):
        create("retinanet3d-i3d")
    with pytest.raises(UsageError, match="n_classes counts agentness"):
        RetinaNet3D(default(), 0, 7)


def test_the_default_has_no_weights_that_nothing_uses() -> None:
    with torch.device("meta"):
        mended = create("retinanet3d-slowfast", n_classes=150, n_av=7)
        released = create("retinanet3d-slowfast", config=reference(), n_classes=150, n_av=7)
    gone = set(_shapes(released)) - set(_shapes(mended))
    assert all(
        name.startswith(("backbone.conv1", "backbone.bn1", "backbone.layer", "backbone.ego")) for name in gone
    )
    assert len(gone) == 319


class Plain:
    """The released arithmetic on a state dict, three-dimensional convolutions all the way."""

    def __init__(self, network: RetinaNet3D) -> None:
        self.w = network.state_dict()
        self.config = network.config

    def conv(
        self, name: str, x: Tensor, stride: tuple[int, int] = (1, 1), dilation: int = 1, pad: bool = True
    ) -> Tensor:
        weight = self.w[f"{name}.weight"]
        time, side = weight.shape[2] // 2, weight.shape[3] // 2 * dilation
        steps = (stride[0], stride[1], stride[1])
        padding = (time, side, side) if pad else 0
        return functional.conv3d(
            x, weight, self.w.get(f"{name}.bias"), steps, padding, (1, dilation, dilation)
        )

    def norm(self, name: str, x: Tensor) -> Tensor:
        mean, var, weight, bias = (
            self.w[f"{name}.{part}"].view(-1, 1, 1, 1)
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * weight + bias

    def block(self, name: str, x: Tensor, stride: int = 1, dilation: int = 1) -> Tensor:
        inner = self.conv(f"{name}.conv1", x)
        inner = self.recurrent(name, inner)
        inner = self.norm(f"{name}.bn1", inner).relu()
        inner = self.norm(f"{name}.bn2", self.conv(f"{name}.conv2", inner, (1, stride), dilation)).relu()
        inner = self.norm(f"{name}.bn3", self.conv(f"{name}.conv3", inner))
        if f"{name}.downsample.0.weight" in self.w:
            x = self.conv(f"{name}.downsample.0", x, (1, stride))
            beside = "downsample_bn" if f"{name}.downsample_bn.bias" in self.w else "downsample.1"
            x = self.norm(f"{name}.{beside}", x)
        return (inner + x).relu()

    def recurrent(self, name: str, x: Tensor) -> Tensor:
        def linear(part: str, value: Tensor) -> Tensor:
            weight = self.w[f"{name}.{part}.weight"].flatten(1)
            made = torch.einsum("oc,bchw->bohw", weight, value)
            bias = self.w.get(f"{name}.{part}.bias")
            return made if bias is None else made + bias.view(-1, 1, 1)

        frames, out = x.unbind(2), []
        hidden = cell = torch.zeros_like(frames[0])
        for number, frame in enumerate(frames):
            if f"{name}.rcu.conv_whh.weight" in self.w:
                hidden = (linear("rcu.conv_whh", hidden) + frame) / 2 if number else frame
                out.append(hidden)
            elif f"{name}.clstm.recurrent_conv.weight" in self.w:
                gates = linear("clstm.recurrent_conv", torch.cat([frame, hidden], 1))
                i, f, o, g = gates.split(frame.shape[1], 1)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                hidden = o.sigmoid() * cell.tanh()
                out.append(frame + hidden)
            elif f"{name}.cgru.recurrent_conv_out.weight" in self.w:
                hidden = hidden if number else frame
                gates = linear("cgru.recurrent_conv_gates", torch.cat([frame, hidden], 1)).sigmoid()
                update, reset = gates.split(frame.shape[1], 1)
                new = linear("cgru.recurrent_conv_out", torch.cat([frame, hidden * reset], 1)).tanh()
                hidden = hidden * (1 - update) + new * update
                out.append(frame + hidden)
            else:
                return x
        return torch.stack(out, 2)

    def stage(self, name: str, x: Tensor, stride: int, dilation: int = 1) -> Tensor:
        block = 0
        while f"{name}.{block}.conv1.weight" in self.w:
            x = self.block(f"{name}.{block}", x, 1 if block else stride, dilation)
            block += 1
        return x

    def resnet(self, x: Tensor) -> list[Tensor]:
        x = self.norm("backbone.bn1", self.conv("backbone.conv1", x, (1, 2))).relu()
        x = functional.max_pool3d(x, (1, 3, 3), (1, 2, 2), 0)
        x = self.stage("backbone.layer1", x, 1)
        if self.config.backbone == "i3d":
            x = functional.max_pool3d(x, (2, 1, 1), (2, 1, 1))
        c3 = self.stage("backbone.layer2", x, 2)
        c4 = self.stage("backbone.layer3", c3, 2)
        return [c3, c4, self.stage("backbone.layer4", c4, 2)]

    def slowfast(self, x: Tensor) -> list[Tensor]:
        inside = "backbone.backbone.module"
        ways = {}
        for way, clip in (("fast", x), ("slow", x[:, :, ::2])):
            stem = self.norm(f"{inside}.{way}_bn1", self.conv(f"{inside}.{way}_conv1", clip, (1, 2))).relu()
            ways[way] = functional.max_pool3d(stem, (1, 3, 3), (1, 2, 2), (0, 1, 1))
        slow, fast, maps = ways["slow"], ways["fast"], []
        for stage in (1, 2, 3, 4):
            told = self.conv(f"{inside}.Tconv{stage}", fast, (2, 1))
            stride, dilation = {1: (1, 1), 4: (1, 2)}.get(stage, (2, 1))
            slow = self.stage(f"{inside}.slow_res{stage}", torch.cat([slow, told], 1), stride, dilation)
            fast = self.stage(f"{inside}.fast_res{stage}", fast, stride, dilation)
            again = functional.interpolate(slow, (2 * slow.shape[2], *slow.shape[3:]), mode="nearest")
            maps.append(torch.cat([again, fast], 1))
        return maps[1:]

    def pyramid(self, c3: Tensor, c4: Tensor, c5: Tensor) -> tuple[list[Tensor], Tensor]:
        p5 = self.conv("backbone.lateral_layer1", c5)
        p4 = self.conv("backbone.lateral_layer2", c4) + functional.interpolate(
            p5, c4.shape[2:], mode="nearest"
        )
        p3 = self.conv("backbone.lateral_layer3", c3) + functional.interpolate(
            p4, c3.shape[2:], mode="nearest"
        )
        maps = [self.conv(f"backbone.corr_layer{n}", p) for n, p in ((3, p3), (2, p4), (1, p5))]
        maps.append(self.conv("backbone.conv6", c5, (1, 2)))
        maps.append(self.conv("backbone.conv7", maps[3].relu(), (1, 2)))
        ego = functional.adaptive_avg_pool3d(maps[4], (None, 1, 1))
        if self.config.backbone == "i3d":
            *maps, ego = [
                functional.interpolate(map, (2 * map.shape[2], *map.shape[3:]), mode="nearest")
                for map in [*maps, ego]
            ]
        return maps, ego

    def head(self, name: str, x: Tensor) -> Tensor:
        for layer in (0, 2, 4):
            x = self.conv(f"{name}.{layer}", x).relu()
        return self.conv(f"{name}.6", x).permute(0, 2, 3, 4, 1).flatten(2)

    def anchors(self, sizes: list[torch.Size]) -> Tensor:
        rows = []
        for level, (height, width) in enumerate(sizes):
            stride, cells = 8 << level, self.w[f"anchors.cell_anchors.{level}"]
            for y in range(height):
                for x in range(width):
                    centre = torch.tensor([x + 0.5, y + 0.5, x + 0.5, y + 0.5]) * stride
                    rows.append(cells + centre)
        return torch.cat(rows)

    def __call__(self, x: Tensor, classes: int) -> Outputs:
        stages = self.slowfast(x) if self.config.backbone == "slowfast" else self.resnet(x)
        maps, ego = self.pyramid(*stages)
        offsets, scores = (
            torch.cat([self.head(name, map) for map in maps], 2).unflatten(2, (-1, each))
            for name, each in (("reg_heads", 4), ("cls_heads", classes))
        )
        anchors = self.anchors([map.shape[3:] for map in maps])
        size = anchors[:, 2:] - anchors[:, :2] + 1
        centre = anchors[:, :2] + size / 2 + offsets[..., :2] * 0.1 * size
        grown = (offsets[..., 2:] * 0.2).clamp(max=torch.log(torch.tensor(62.5))).exp() * size
        boxes = torch.cat([centre - grown / 2, centre + grown / 2 - 1], -1)
        av = self.conv_time("ego_head", ego).flatten(2).transpose(1, 2)
        return Outputs(boxes, scores, av, anchors, offsets)

    def conv_time(self, name: str, x: Tensor) -> Tensor:
        return functional.conv3d(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"], 1, (1, 0, 0))


def filled(config: RetinaNetConfig, classes: int = 5, actions: int = 3, seed: int = 0) -> RetinaNet3D:
    """A network whose every tensor is drawn, so that no default value can hide a mistake."""
    network = RetinaNet3D(config, classes, actions)
    draw = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if not tensor.is_floating_point() or name.startswith("anchors"):
            continue
        drawn = torch.randn(tensor.shape, generator=draw)
        if tensor.dim() > 1:
            tensor.copy_(drawn / tensor[0].numel() ** 0.5)
        elif name.endswith(("running_var", "bn1.weight", "bn2.weight", "bn3.weight", "downsample_bn.weight")):
            tensor.copy_(0.5 + drawn.abs() / 2)
        else:
            tensor.copy_(drawn / 5)
    return network.eval()


@pytest.mark.parametrize("backbone", ["c2d", "i3d", "slowfast", "rcn", "rclstm", "rcgru"])
def test_the_arithmetic_is_the_released_one(backbone: str) -> None:
    network = filled(reference(backbone=backbone, **SMALL))
    x = torch.randn(2, 3, 4, 96, 160, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours, plain = network(x), Plain(network)(x, 5)
    for name in Outputs._fields:
        torch.testing.assert_close(getattr(ours, name), getattr(plain, name), rtol=1e-4, atol=2e-4, msg=name)


def test_regular_strides_put_the_last_anchors_where_their_cells_are() -> None:
    picture = torch.zeros(1, 3, 2, 128, 128)
    sides = {}
    for strides in ("dilated", "regular"):
        config = reference(backbone="slowfast", slowfast_strides=strides, **SMALL)
        with torch.no_grad():
            maps = RetinaNet3D(config, 2, 1).eval().features(picture).maps
        sides[strides] = [map.shape[-1] for map in maps]
    assert sides == {"dilated": [16, 8, 8, 4, 2], "regular": [16, 8, 4, 2, 1]}


def test_an_odd_clip_is_refused_where_frames_are_pooled() -> None:
    network = RetinaNet3D(reference(**SMALL), 2, 1).eval()
    with pytest.raises(UsageError, match="a clip of 3 frames: give an even number"):
        network(torch.zeros(1, 3, 3, 64, 64))


def test_stem_padding_keeps_the_cells_of_the_border() -> None:
    picture = torch.zeros(1, 3, 2, 66, 66)
    sides = [
        RetinaNet3D(default(backbone="c2d", stem_padding=padding, **SMALL), 2, 1)
        .eval()
        .features(picture)
        .maps[0]
        .shape[-1]
        for padding in (0, 1)
    ]
    assert sides == [8, 9]
