"""The networks on crops: sizes of their stages, what their layers compute, and the motion they are shown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models import create
from roadaware.models.crossing.entries import (
    C3DConfig,
    ConvLSTMConfig,
    I3DConfig,
    Pixels,
    RecurrentConfig,
    ResNet50Config,
    TwoStreamConfig,
    VGG16Config,
)
from roadaware.models.crossing.networks.clips import (
    C3DFeatures,
    C3DNet,
    ConvLSTM2d,
    ConvLSTMNet,
    I3DNet,
    I3DTrunk,
    TwoStreamNet,
    average_pool,
    estimate_lucas_kanade_flow,
    pad_same,
    stack_flow_windows,
)
from roadaware.models.crossing.networks.recurrent import SFGRU
from roadaware.models.crossing.networks.stills import CrossingNet, Normalise, ResNet50Trunk, VGG16Trunk

torch.set_num_threads(1)
META = torch.device("meta")


def count(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def shapes_of(module: nn.Module, names: list[str], given: tuple[int, ...]) -> list[tuple[int, ...]]:
    """What some layers give, without the batch, for zeros on no device."""
    seen: list[tuple[int, ...]] = []
    parts = dict(module.named_modules())
    for name in names:
        parts[name].register_forward_hook(lambda _, __, out: seen.append(tuple(out.shape[1:])))
    with torch.no_grad():
        module.to(META)(torch.zeros(1, *given, device=META))
    return seen


def test_each_stage_has_its_published_shape() -> None:
    with META:
        vgg, resnet = VGG16Trunk((64, 128, 256, 512, 512)), ResNet50Trunk(64, (3, 4, 6, 3), early=False)
        c3d, i3d = C3DFeatures((16, 112, 112)), I3DTrunk(I3DConfig())
    assert shapes_of(
        vgg, ["features.4", "features.9", "features.16", "features.23", "features.30"], (3, 224, 224)
    ) == [
        (64, 112, 112),
        (128, 56, 56),
        (256, 28, 28),
        (512, 14, 14),
        (512, 7, 7),
    ]
    assert shapes_of(resnet, ["maxpool", "layer1", "layer2", "layer3", "layer4"], (3, 224, 224)) == [
        (64, 56, 56),
        (256, 56, 56),
        (512, 28, 28),
        (1024, 14, 14),
        (2048, 7, 7),
    ]
    assert shapes_of(c3d, ["pool1", "pool2", "pool3", "pool4", "pool5"], (3, 16, 112, 112)) == [
        (64, 16, 56, 56),
        (128, 8, 28, 28),
        (256, 4, 14, 14),
        (512, 2, 7, 7),
        (512, 1, 4, 4),
    ]
    assert shapes_of(
        i3d, ["Conv3d_1a_7x7", "Conv3d_2c_3x3", "Mixed_3c", "Mixed_4f", "Mixed_5c"], (3, 16, 224, 224)
    ) == [
        (64, 8, 112, 112),
        (192, 8, 56, 56),
        (480, 8, 28, 28),
        (832, 4, 14, 14),
        (1024, 2, 7, 7),
    ]


def test_parameters_are_as_many_as_in_the_released_networks() -> None:
    """With the classes they were trained on: ImageNet's 1000, Sports-1M's 487, the 400 of Kinetics."""
    with META:
        vgg = VGG16Trunk((64, 128, 256, 512, 512), (4096, 4096))
        resnet, i3d = ResNet50Trunk(64, (3, 4, 6, 3), early=False), I3DTrunk(I3DConfig())
        c3d = C3DNet(C3DConfig(), {"crop:context@112": (16, 112, 112, 3)}, labels=487)
    assert count(vgg) + 4097 * 1000 == 138_357_544
    assert count(resnet) + 2049 * 1000 == 25_557_032
    assert count(c3d) == 79_991_015
    scales = sum(len(buffer) for name, buffer in i3d.named_buffers() if name.endswith("bn.weight"))
    assert count(i3d) + scales == 12_287_264
    assert count(i3d) + scales + 1025 * 400 == 12_697_264


@pytest.mark.parametrize("clip", [(16, 112, 112), (15, 112, 112), (8, 64, 64), (1, 17, 33), (4, 16, 40)])
def test_c3d_knows_how_many_numbers_it_gives(clip: tuple[int, int, int]) -> None:
    with META:
        network = C3DFeatures(clip)
        assert network(torch.zeros(2, 3, *clip)).shape == (2, network.width)


@pytest.mark.parametrize("early", [True, False])
def test_the_stride_of_a_resnet_is_in_the_convolution_asked_for(early: bool) -> None:
    with META:
        parts = dict(ResNet50Trunk(4, (1, 1), early).named_modules())
    strides = [getattr(parts[f"layer2.0.{name}"], "stride", None) for name in ("conv1", "conv2")]
    assert strides == ([(2, 2), (1, 1)] if early else [(1, 1), (2, 2)])


def plain_lstm(layer: ConvLSTM2d, pictures: Tensor) -> Tensor:
    """The last state of one sample (T, C, H, W), pixel by pixel, for a kernel of 1."""
    into, keep, bias = layer.input.weight[:, :, 0, 0], layer.state.weight[:, :, 0, 0], layer.input.bias
    out = torch.zeros(layer.filters, *pictures.shape[2:])
    for row in range(pictures.shape[2]):
        for column in range(pictures.shape[3]):
            state, cell = torch.zeros(layer.filters), torch.zeros(layer.filters)
            for frame in pictures:
                sums = into @ frame[:, row, column] + bias + keep @ state
                i, f, g, o = sums.split(layer.filters)
                if layer.gate == "hard":
                    i, f, o = ((0.2 * gate + 0.5).clamp(0, 1) for gate in (i, f, o))
                else:
                    i, f, o = (1 / (1 + torch.exp(-gate)) for gate in (i, f, o))
                cell = f * cell + i * torch.tanh(g)
                state = o * torch.tanh(cell)
            out[:, row, column] = state
    return out


@pytest.mark.parametrize("gate", ["hard", "sigmoid"])
def test_a_convlstm_of_kernel_one_is_an_lstm_on_every_pixel(gate: str) -> None:
    torch.manual_seed(1)
    layer = ConvLSTM2d(3, 5, 1, "hard" if gate == "hard" else "sigmoid")
    pictures = 2 * torch.randn(2, 4, 3, 3, 2)
    with torch.no_grad():
        found = layer(pictures)
        torch.testing.assert_close(found[1], plain_lstm(layer, pictures[1]))


def test_a_wider_convlstm_shrinks_the_picture_once() -> None:
    assert ConvLSTM2d(3, 2, 3, "hard")(torch.rand(1, 4, 3, 9, 7)).shape == (1, 2, 7, 5)
    with pytest.raises(UsageError, match="odd side"):
        ConvLSTM2d(3, 2, 2, "hard")


def test_a_convlstm_reads_the_maps_of_vgg16_unless_it_is_as_the_benchmark_ran_it() -> None:
    torch.manual_seed(0)
    shapes, clip = {"crop:box@64": (3, 64, 64, 3)}, torch.rand(2, 3, 3, 64, 64)
    config = ConvLSTMConfig(trunk=(2, 3, 4, 5, 6), filters=7)
    network = ConvLSTMNet(config, shapes).eval()
    assert network.trunk is not None
    with torch.no_grad():
        maps = torch.stack([network.trunk.features(network.normalise(frame)) for frame in clip.unbind(1)], 1)
        assert maps.shape == (2, 3, 6, 2, 2)
        state = plain_lstm(network.recurrent, maps[1]).mean((-2, -1))
        found = network.looked({"crop:box@64": clip}).embedding[1]
    torch.testing.assert_close(found, state)
    bare = ConvLSTMNet(ConvLSTMConfig.reference(), shapes)
    assert bare.trunk is None
    assert count(bare) == 17_473
    with META, pytest.raises(UsageError, match="a kernel of 3 does not fit maps of 2 x 2"):
        ConvLSTMNet(replace(config, kernel=3), shapes)
    with META, pytest.raises(UsageError, match="a kernel of 65 does not fit images of 64 x 64"):
        ConvLSTMNet(ConvLSTMConfig(trunk=(), kernel=65), shapes)


def test_the_last_convolution_of_i3d_before_a_mean_over_time_is_a_linear_layer_behind_it() -> None:
    torch.manual_seed(0)
    network = I3DNet(I3DConfig.tiny(), {"crop:context@32": (24, 32, 32, 3)}, labels=3).eval()
    clip = torch.rand(2, 24, 3, 32, 32)
    with torch.no_grad():
        label = network({"crop:context@32": clip})["label"]
        found = average_pool(network.trunk(network.normalise(clip).transpose(1, 2)))
        assert found.shape[2] == 2
        convolved = functional.conv3d(found, network.last.weight[:, :, None, None, None], network.last.bias)
    torch.testing.assert_close(label, convolved[..., 0, 0].mean(2))


@pytest.mark.parametrize(("length", "edges"), [(224, (2, 3)), (7, (3, 3)), (8, (2, 3))])
def test_zeros_of_i3d_stand_as_in_tensorflow(length: int, edges: tuple[int, int]) -> None:
    """All of ceil(n / stride) windows fit, and one zero more stands behind than before if they are odd."""
    wide = pad_same(torch.ones(1, 1, 1, 1, length), (1, 1, 7), (1, 1, 2))[0, 0, 0, 0]
    assert (len(wide) - 7) // 2 + 1 == math.ceil(length / 2)
    assert wide.tolist() == [0.0] * edges[0] + [1.0] * length + [0.0] * edges[1]


def test_colours_become_the_numbers_that_weights_were_trained_on() -> None:
    red = torch.tensor([1.0, 0.5, 0.25]).reshape(3, 1, 1)

    def seen(pixels: Pixels, swapped: bool = False) -> list[float]:
        numbers: list[float] = Normalise(pixels, swapped)(red).flatten().tolist()
        return numbers

    assert seen("imagenet") == pytest.approx([2.249, 0.196, -0.693], abs=0.001)
    assert seen("keras") == pytest.approx([63.75 - 103.939, 127.5 - 116.779, 255 - 123.68], abs=0.001)
    swapped = [255 - 103.939, 127.5 - 116.779, 63.75 - 123.68]
    assert seen("keras", swapped=True) == pytest.approx(swapped, abs=0.001)
    assert seen("signed") == [1.0, 0.0, -0.5]
    assert seen("bytes", swapped=True) == [63.75, 127.5, 255.0]
    with pytest.raises(UsageError, match="not 'cmyk'"):
        Normalise(cast(Pixels, "cmyk"))


def blobs(rows: int, columns: int, across: float, down: float, seed: int = 0) -> Tensor:
    """(1, rows, columns) an image of random waves, 7 pixels long and more, moved to the right and down."""
    drawn = torch.Generator().manual_seed(seed)
    x = torch.arange(columns) - across
    y = torch.arange(rows)[:, None] - down
    picture = torch.full((rows, columns), 0.5)
    for _ in range(12):
        fx, fy, phase = ((2 * torch.rand(3, generator=drawn) - 1) * torch.tensor([0.9, 0.9, 3.2])).tolist()
        picture = picture + 0.04 * torch.sin(fx * x + fy * y + phase)
    return picture[None]


@pytest.mark.parametrize(("across", "down"), [(0.0, 0.0), (1.0, 0.0), (-2.4, 1.3), (5.0, -3.0)])
def test_flow_finds_how_far_a_picture_was_moved(across: float, down: float) -> None:
    flow = estimate_lucas_kanade_flow(blobs(64, 48, 0, 0), blobs(64, 48, across, down))
    assert flow.shape == (1, 2, 64, 48)
    inner = flow[0, :, 10:-10, 10:-10]
    wrong = (inner - torch.tensor([across, down])[:, None, None]).norm(dim=0)
    assert wrong.mean() < 0.05
    assert wrong.max() < 0.3


def test_flow_is_of_each_place_and_nothing_moves_where_nothing_shows() -> None:
    left, right = blobs(48, 40, 0, 0), blobs(48, 40, 0, 0, seed=1)
    first = torch.cat([left, right], 2)
    second = torch.cat([blobs(48, 40, 1.5, 0), blobs(48, 40, 0, -1.0, seed=1)], 2)
    flow = estimate_lucas_kanade_flow(first, second)[0]
    torch.testing.assert_close(
        flow[:, 12:-12, 12:28].mean((1, 2)), torch.tensor([1.5, 0.0]), atol=0.1, rtol=0
    )
    torch.testing.assert_close(
        flow[:, 12:-12, 52:68].mean((1, 2)), torch.tensor([0.0, -1.0]), atol=0.1, rtol=0
    )
    flat = torch.full((1, 32, 32), 0.3)
    assert estimate_lucas_kanade_flow(flat, flat + 0.1).abs().max() < 0.001


def test_runs_of_flow_stand_side_by_side_as_channels() -> None:
    flow = torch.arange(7.0)[None, :, None, None, None] + torch.tensor([0.0, 0.5])[:, None, None].expand(
        2, 1, 3
    )
    runs = stack_flow_windows(flow, 3)
    assert runs.shape == (1, 5, 6, 1, 3)
    assert runs[0, 1, :, 0, 2].tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]


def test_two_streams_see_single_pictures_and_their_motion() -> None:
    """A crop that moves to the right shows the second stream its pixels a frame."""
    network = TwoStreamNet(TwoStreamConfig.tiny(), {"crop:context@48": (8, 48, 48, 3)}).eval()
    clip = torch.stack([blobs(48, 48, 1.5 * t, 0)[0] for t in range(8)])[None, :, None].expand(
        1, 8, 3, 48, 48
    )
    flow = network.flow(clip)
    assert flow.shape == (1, 7, 2, 48, 48)
    assert flow[0, :, 0, 12:-12, 12:-12].mean() == pytest.approx(1.5, abs=0.15)
    seen: dict[str, Tensor] = {}
    network.trunk.register_forward_pre_hook(lambda _, inputs: seen.update(still=inputs[0]))
    network.motion.register_forward_pre_hook(lambda _, inputs: seen.update(motion=inputs[0]))
    network({"crop:context@48": clip})
    assert seen["still"].shape == (3, 3, 48, 48)
    assert torch.equal(seen["still"], network.normalise(clip[0, 2:5]))
    assert seen["motion"].shape == (3, 10, 48, 48)


@pytest.mark.parametrize("name", ["vgg16", "resnet50", "convlstm", "c3d", "i3d", "two-stream"])
def test_a_network_on_crops_refuses_everything_else(name: str) -> None:
    for shapes in ({"boxes": (8, 4)}, {"crop:box@32": (8, 32, 32, 3), "boxes": (8, 4)}):
        with META, pytest.raises(UsageError, match=f"{name} looks at the crops of one input"):
            create(name, shapes=shapes)


@pytest.mark.parametrize(
    ("name", "clip", "reason"),
    [
        ("vgg16", (8, 24, 24, 3), "24 x 24 pixels are too few"),
        ("i3d", (8, 24, 24, 3), "24 x 24 pixels are too few"),
        ("convlstm", (8, 24, 24, 3), "24 x 24 pixels are too few"),
        ("c3d", (8, 12, 24, 3), "not 8 of 12 x 24"),
        ("two-stream", (10, 64, 64, 3), "at least 11 frames, not 10"),
    ],
)
def test_crops_that_are_too_small_or_few_are_refused(name: str, clip: tuple[int, ...], reason: str) -> None:
    with META, pytest.raises(UsageError, match=reason):
        create(name, shapes={"crop:context@24": clip})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("vgg16", VGG16Config.small()),
        ("resnet50", ResNet50Config.small()),
        ("convlstm", ConvLSTMConfig.small()),
        ("c3d", C3DConfig.small()),
        ("i3d", I3DConfig.small()),
        ("two-stream", TwoStreamConfig.small()),
    ],
)
def test_the_small_size_works_on_eight_crops_of_64_pixels_with_far_fewer_numbers(
    name: str, config: object
) -> None:
    with META:
        small = create(name, config=config, shapes={"crop:context@64": (8, 64, 64, 3)})
        whole = create(name, shapes={"crop:context@224": (16, 224, 224, 3)})
        assert small({"crop:context@64": torch.zeros(2, 8, 3, 64, 64)})["label"].shape == (2, 1)
    assert count(small) < count(whole) / 10


def small_tower(*, settled: bool = False) -> SFGRU:
    """SFGRU on dark crops and boxes."""
    torch.manual_seed(0)
    config = RecurrentConfig(width=8, filters=(4, 4, 8, 8, 8), settled=settled)
    return cast(
        SFGRU, create("sfgru", config=config, shapes={"crop:box@32": (3, 32, 32, 3), "boxes": (3, 4)})
    )


def settled_towers() -> list[tuple[CrossingNet, VGG16Trunk, Normalise]]:
    """Networks that are to begin settled, with the trunk of each and how it takes colours."""
    tower = small_tower(settled=True)
    config = ConvLSTMConfig(trunk=(4, 4, 8, 8, 8), filters=8, settled=True)
    clips = ConvLSTMNet(config, {"crop:box@32": (3, 32, 32, 3)})
    assert clips.trunk is not None
    return [(tower, tower.reader.trunk, tower.reader.normalise), (clips, clips.trunk, clips.normalise)]


def dark(crops: int) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(1)
    pictures = 0.1 + 0.05 * torch.rand(crops, 3, 3, 32, 32, generator=drawn)
    return {"crop:box@32": pictures, "boxes": torch.zeros(crops, 3, 4)}


@pytest.mark.parametrize("which", [0, 1], ids=["sfgru", "convlstm"])
def test_a_settled_trunk_begins_with_channels_of_mean_0_and_deviation_1(which: int) -> None:
    (network, trunk, normalise), given = settled_towers()[which], dark(24)
    plain = [each.clone() for each in network.parameters()]
    network.settle(lambda: given)
    assert any(not torch.equal(a, b) for a, b in zip(plain, network.parameters(), strict=True))
    seen: list[Tensor] = []
    for layer in trunk.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda _, __, out: seen.append(out))
    with torch.no_grad():
        trunk(normalise(given["crop:box@32"][:, -1]))
    assert len(seen) == 13
    for out in seen:
        assert out.mean((0, 2, 3)).abs().max() < 1e-3
        assert (out.std((0, 2, 3)) - 1).abs().max() < 1e-2


def test_only_what_asks_for_it_is_settled() -> None:
    network = small_tower()
    plain = [each.clone() for each in network.parameters()]
    network.settle(lambda: pytest.fail("nobody asked for crops"))
    assert all(torch.equal(a, b) for a, b in zip(plain, network.parameters(), strict=True))
