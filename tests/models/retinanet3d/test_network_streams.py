"""Causal networks: a stream gives what a clip gives, and no frame sees a later one."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.retinanet3d import RetinaNetConfig, default
from roadaware.models.retinanet3d.layers import Conv, TimeConv, make_streaming_copy, reset_stream_state
from roadaware.models.retinanet3d.network import Outputs, RetinaNet3D

torch.set_num_threads(1)
TRUNK = (
    ("embedding_size", 8),
    ("hidden_sizes", (8, 8, 8, 16)),
    ("depths", (1, 1, 1, 1)),
    ("layer_type", "basic"),
)
BACKBONES = ["c2d", "i3d", "slowfast", "rcn", "rclstm", "rcgru", "compact", "transformers"]
SPOKEN = ("boxes", "class_logits", "av_logits", "offsets")


def tiny(backbone: str, **fields: object) -> RetinaNetConfig:
    """A network of a few thousand parameters with every kind of layer of its backbone."""
    small: dict[str, object] = {
        "backbone": backbone,
        "base_width": 8,
        "blocks": (2, 2, 2, 2),
        "stage_widths": (8, 8, 8, 16),
        "width": 8,
        "head_layers": 1,
        "anchor_sizes_px": (32.0, 64.0, 128.0),
        "causal": True,
    }
    if backbone == "transformers":
        small |= {"trunk": "ResNetConfig", "trunk_fields": TRUNK}
    return default(**{**small, **fields})


def lively(config: RetinaNetConfig, seed: int = 0) -> RetinaNet3D:
    """A network whose outputs differ from cell to cell and frame to frame."""
    torch.manual_seed(seed)
    network = RetinaNet3D(config, 4, 3)
    for layer in network.modules():
        if isinstance(layer, nn.Conv3d | nn.Conv2d):
            nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5)
    return network.eval()


def clip(frames: int, batch: int = 1) -> Tensor:
    return torch.randn(batch, 3, frames, 64, 64, generator=torch.Generator().manual_seed(1))


def joined(parts: list[Outputs], name: str) -> Tensor:
    return torch.cat([getattr(part, name) for part in parts], dim=1)


def assert_same(found: list[Outputs], expected: Outputs) -> None:
    for name in SPOKEN:
        torch.testing.assert_close(joined(found, name), getattr(expected, name), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_stream_gives_what_the_clip_gives_however_it_is_cut(backbone: str) -> None:
    network, x = lively(tiny(backbone)), clip(7)
    stream = make_streaming_copy(network)
    with torch.no_grad():
        whole = network(x)
        assert_same([stream(x[:, :, at : at + 1]) for at in range(7)], whole)
        reset_stream_state(stream)
        assert_same([stream(x[:, :, begin:end]) for begin, end in pairwise((0, 2, 3, 7))], whole)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_no_frame_sees_a_later_one(backbone: str) -> None:
    network, x = lively(tiny(backbone)), clip(7)
    other = x.clone()
    other[:, :, 4:] += 1
    with torch.no_grad():
        before, after = network(x), network(other)
    for name in SPOKEN:
        assert torch.equal(getattr(before, name)[:, :4], getattr(after, name)[:, :4])
        assert not torch.equal(getattr(before, name)[:, 4], getattr(after, name)[:, 4])


@pytest.mark.parametrize("backbone", ["i3d", "slowfast", "compact"])
def test_earlier_frames_matter(backbone: str) -> None:
    network, x = lively(tiny(backbone)), clip(6)
    other = x.clone()
    other[:, :, 2] += 1
    with torch.no_grad():
        before, after = network(x).class_logits, network(other).class_logits
    assert (before[:, 3] - after[:, 3]).abs().max() > 1e-3


def test_a_network_that_is_not_causal_looks_ahead() -> None:
    network, x = lively(tiny("i3d", causal=False)), clip(6)
    other = x.clone()
    other[:, :, 5] += 1
    with torch.no_grad():
        assert not torch.equal(network(x).class_logits[:, 3], network(other).class_logits[:, 3])


def test_two_streams_in_one_batch_do_not_meet() -> None:
    network, x = lively(tiny("i3d")), clip(4, batch=2)
    stream = make_streaming_copy(network)
    with torch.no_grad():
        both = [stream(x[:, :, at : at + 1]) for at in range(4)]
        alone = network(x[1:])
    torch.testing.assert_close(joined(both, "class_logits")[1:], alone.class_logits, rtol=1e-4, atol=1e-4)


def test_between_pooled_frames_the_upper_trunk_does_no_work() -> None:
    network, x = lively(tiny("i3d")), clip(4)
    stream = make_streaming_copy(network)
    frames: list[int] = []
    stream.backbone.layer3.register_forward_hook(lambda _, given, made: frames.append(made.shape[2]))
    with torch.no_grad():
        for at in range(4):
            stream(x[:, :, at : at + 1])
    assert frames == [1, 0, 1, 0]


def test_a_stream_does_not_depend_on_a_buffer_that_is_written_again() -> None:
    for backbone in ("slowfast", "compact"):
        network, x = lively(tiny(backbone)), clip(4)
        stream = make_streaming_copy(network)
        buffer = torch.empty(1, 3, 1, 64, 64).contiguous(memory_format=torch.channels_last_3d)
        with torch.no_grad():
            parts = [stream(buffer.copy_(x[:, :, at : at + 1])) for at in range(4)]
            assert_same(parts, network(x))


@pytest.mark.parametrize(("taps", "stride"), [(1, 1), (3, 1), (3, 2), (5, 1), (5, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_convolution_by_taps_is_a_convolution(taps: int, stride: int, causal: bool) -> None:
    given = {"stride": (stride, 2, 2), "padding": (taps // 2, 1, 1), "causal": causal}
    quick, plain = Conv(4, 6, (taps, 3, 3), **given), TimeConv(4, 6, (taps, 3, 3), **given)
    plain.load_state_dict(quick.state_dict())
    for frames in (1, 2, 3, 8):
        for batch in (1, 2):
            x = torch.randn(batch, 4, frames, 5, 6)
            torch.testing.assert_close(quick(x), plain(x), rtol=1e-4, atol=1e-5)
            if causal and (taps > 1 or stride == 1):
                stream = make_streaming_copy(quick)
                parts = torch.cat([stream(frame) for frame in x.split(1, dim=2)], dim=2)
                torch.testing.assert_close(parts, plain(x), rtol=1e-4, atol=1e-5)


def test_layouts_last_through_the_network() -> None:
    """Convolutions on a CPU are slower where the channels of a cell do not lie side by side."""
    network = lively(tiny("compact"))
    seen: list[bool] = []
    for layer in network.backbone.modules():
        if isinstance(layer, Conv):
            layer.register_forward_hook(
                lambda _, given, made: seen.append(
                    made.squeeze(2).is_contiguous(memory_format=torch.channels_last)
                )
            )
    with torch.no_grad():
        network.features(clip(1))
        make_streaming_copy(network).features(clip(1))
    assert seen
    assert all(seen)


def test_a_trunk_of_transformers_with_other_strides_is_refused() -> None:
    fields = {"hidden_sizes": (8, 8, 8, 8), "depths": (1, 1, 1, 1), "embedding_size": 8}
    trunk = {"backbone": "transformers", "trunk": "ResNetConfig", "width": 8, "head_layers": 0}
    right = RetinaNet3D(default(**trunk, trunk_fields=tuple(fields.items())), 2, 0).eval()
    coarse = (*fields.items(), ("downsample_in_first_stage", True))
    wrong = RetinaNet3D(default(**trunk, trunk_fields=coarse), 2, 0).eval()
    with torch.no_grad():
        assert right(clip(1)).boxes.shape[1] == 1
        with pytest.raises(UsageError, match="a stride of 8 pixels is needed"):
            wrong(clip(1))


def test_a_trunk_of_transformers_must_exist_and_be_a_backbone() -> None:
    with pytest.raises(UsageError, match="has no configuration called 'NoSuchConfig'"):
        RetinaNet3D(default(backbone="transformers", trunk="NoSuchConfig"), 2, 1)
    with pytest.raises(UsageError, match="has no configuration called 'AutoModel'"):
        RetinaNet3D(default(backbone="transformers", trunk="AutoModel"), 2, 1)
    with pytest.raises(UsageError, match="BertConfig has no stages"):
        RetinaNet3D(default(backbone="transformers", trunk="BertConfig"), 2, 1)
    for wrong in (("depths", "deep"), ("layer_type", "odd"), ("hidden_sizes", (8, 8))):
        with pytest.raises(UsageError, match="makes no backbone of ResNetConfig"):
            RetinaNet3D(default(backbone="transformers", trunk="ResNetConfig", trunk_fields=(wrong,)), 2, 1)
