"""Published image weights find their places in networks for pedestrians, whatever their names."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import (
    C3DConfig,
    ConvLSTMConfig,
    I3DConfig,
    ResNet50Config,
    TwoStreamConfig,
    VGG16Config,
)
from roadaware.models.crossing.networks.clips import C3DNet, ConvLSTMNet, I3DNet, TwoStreamNet
from roadaware.models.crossing.networks.stills import CrossingNet, ResNet50Net, VGG16Net
from roadaware.models.crossing.published import load_image_weights

torch.set_num_threads(1)
CROPS = {"crop:context@32": (8, 32, 32, 3)}
VGG_LAYERS = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
KERAS_VGG = [f"block{b}_conv{c}" for b, n in enumerate([2, 2, 3, 3, 3], 1) for c in range(1, n + 1)]


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def redrawn(network: CrossingNet, prefix: str) -> dict[str, Tensor]:
    """Another value for everything below a prefix, under the names without it."""
    held = {name: value for name, value in network.state_dict().items() if name.startswith(prefix)}
    return {
        name.removeprefix(prefix): drawn(*value.shape, seed=number)
        if value.is_floating_point()
        else value + 7
        for number, (name, value) in enumerate(held.items())
    }


def saved(tmp_path: Path, tensors: dict[str, Tensor], name: str = "weights.safetensors") -> Path:
    path = tmp_path / name
    if path.suffix == ".safetensors":
        save_file({key: value.contiguous() for key, value in tensors.items()}, path)
    else:
        torch.save(tensors, path, _use_new_zipfile_serialization=False)
    return path


def as_keras(tensor: Tensor) -> Tensor:
    """A kernel in Keras' layout: (rows, columns, in, out) or (in, out)."""
    return tensor.permute(2, 3, 1, 0) if tensor.dim() == 4 else tensor.T


def holds(network: CrossingNet, prefix: str, tensors: dict[str, Tensor]) -> None:
    own = network.state_dict()
    for name, tensor in tensors.items():
        torch.testing.assert_close(own[prefix + name], tensor)


@pytest.mark.parametrize(
    "network",
    [VGG16Net(VGG16Config.tiny(), CROPS), ConvLSTMNet(ConvLSTMConfig.tiny(), CROPS)],
    ids=["vgg16", "convlstm"],
)
def test_vgg16_of_torchvision_fills_the_trunk_and_names_the_rest(
    tmp_path: Path, network: CrossingNet
) -> None:
    theirs = redrawn(network, "trunk.")
    assert sorted(theirs) == sorted(f"features.{i}.{what}" for i in VGG_LAYERS for what in ("weight", "bias"))
    top = {"classifier.6.weight": drawn(10, 8, seed=1), "classifier.6.bias": drawn(10, seed=2)}
    report = load_image_weights(network, saved(tmp_path, {**theirs, **top}))
    holds(network, "trunk.", theirs)
    assert report.matched == tuple(f"trunk.{name}" for name in theirs)
    behind = tuple(name for name in network.state_dict() if not name.startswith("trunk."))
    assert report.missing == behind
    assert sorted(report.unused) == sorted(top)


def test_resnet50_of_torchvision_fills_the_trunk(tmp_path: Path) -> None:
    network = ResNet50Net(ResNet50Config.tiny(), CROPS)
    theirs = redrawn(network, "trunk.")
    assert {"conv1.weight", "bn1.running_var", "layer2.0.downsample.1.weight", "layer4.0.conv3.weight"} < set(
        theirs
    )
    report = load_image_weights(network, saved(tmp_path, {**theirs, "fc.weight": drawn(3, 2, seed=0)}))
    holds(network, "trunk.", theirs)
    assert (report.missing, report.unused) == (("last.weight", "last.bias"), ("fc.weight",))


def test_vgg16_of_keras_is_turned_into_torchs_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = VGG16Config(filters=VGG16Config.tiny().filters, pixels="keras")
    network = VGG16Net(config, CROPS)
    theirs = redrawn(network, "trunk.")
    file: dict[str, Tensor] = {}
    for index, layer in zip(VGG_LAYERS, KERAS_VGG, strict=True):
        file[f"{layer}/{layer}/kernel:0"] = as_keras(theirs[f"features.{index}.weight"])
        file[f"{layer}/{layer}/bias:0"] = theirs[f"features.{index}.bias"]
    with caplog.at_level(logging.WARNING, "roadaware"):
        report = load_image_weights(network, saved(tmp_path, file))
    holds(network, "trunk.", theirs)
    assert report.unused == ()
    assert caplog.text == ""
    load_image_weights(VGG16Net(VGG16Config.tiny(), CROPS), tmp_path / "weights.safetensors")
    assert "trained on pixels='keras' will see pixels='imagenet'" in caplog.text


def keras_resnet(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keras' names and layout of a trunk, with a bias in every convolution."""
    file: dict[str, Tensor] = {}
    fields = {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "moving_mean",
        "running_var": "moving_variance",
    }
    for number, (name, tensor) in enumerate(theirs.items()):
        layer, _, field = name.rpartition(".")
        if field == "num_batches_tracked":
            continue
        parts = layer.split(".")
        block = "conv1" if len(parts) == 1 else f"conv{int(parts[0][-1]) + 1}_block{int(parts[1]) + 1}"
        place = "" if len(parts) == 1 else f"_{0 if parts[2] == 'downsample' else parts[2][-1]}"
        if tensor.dim() == 4:
            file[f"{block}{place}_conv/kernel"] = as_keras(tensor)
            file[f"{block}{place}_conv/bias"] = drawn(len(tensor), seed=1000 + number)
        else:
            file[f"{block}{place}_bn/{fields[field]}"] = tensor
    return file


def test_biases_before_the_norms_of_keras_go_into_their_means(tmp_path: Path) -> None:
    """Norm(convolution + bias) of Keras is what the network computes from the file."""
    network = ResNet50Net(
        ResNet50Config(stem=4, blocks=(1, 1, 1, 1), early_stride=True, pixels="keras"), CROPS
    )
    file = keras_resnet(redrawn(network, "trunk."))
    report = load_image_weights(network.eval(), saved(tmp_path, file))
    assert report.unused == ()
    assert {name.rpartition(".")[2] for name in report.missing} == {"weight", "bias", "num_batches_tracked"}
    picture = torch.rand(1, 3, 8, 8)
    kernel = file["conv1_conv/kernel"].permute(3, 2, 0, 1)
    convolved = functional.conv2d(picture, kernel, file["conv1_conv/bias"], 2, 3)
    norm = [
        file[f"conv1_bn/{field}"][:, None, None]
        for field in ("moving_mean", "moving_variance", "gamma", "beta")
    ]
    expected = (convolved - norm[0]) / (norm[1] + 1e-5).sqrt() * norm[2] + norm[3]
    with torch.no_grad():
        torch.testing.assert_close(network.trunk.bn1(network.trunk.conv1(picture)), expected)
    other = ResNet50Net(ResNet50Config.tiny(), CROPS)
    with pytest.raises(UsageError, match=r"ResNet50Config\(early_stride=True\)"):
        load_image_weights(other, tmp_path / "weights.safetensors")


def test_c3d_pickle_fills_convolutions_and_what_fits_of_the_rest(tmp_path: Path) -> None:
    network = C3DNet(C3DConfig.tiny(), CROPS)
    theirs = redrawn(network, "trunk.")
    layers = ["conv1", "conv2", "conv3a", "conv3b", "conv4a", "conv4b", "conv5a", "conv5b"]
    assert sorted(theirs) == sorted(f"{layer}.{what}" for layer in layers for what in ("weight", "bias"))
    full = {**redrawn(network, "fc7."), "fc8.weight": drawn(487, 16, seed=0)}
    file = {
        **theirs,
        "fc7.weight": full["weight"],
        "fc7.bias": full["bias"],
        "fc8.weight": full["fc8.weight"],
    }
    file["fc6.weight"] = drawn(16, 8192, seed=3)
    report = load_image_weights(network, saved(tmp_path, file, "c3d.pickle"))
    holds(network, "trunk.", theirs)
    holds(network, "fc7.", {"weight": full["weight"], "bias": full["bias"]})
    assert set(report.missing) == {"fc6.weight", "fc6.bias", "last.weight", "last.bias"}
    assert set(report.unused) == {"fc6.weight", "fc8.weight"}


def test_kinetics_weights_fill_i3d_with_their_scales(tmp_path: Path) -> None:
    network = I3DNet(I3DConfig.tiny(), CROPS)
    theirs = redrawn(network, "trunk.")
    expected = {"Conv3d_1a_7x7.conv3d.weight", "Conv3d_2c_3x3.bn.weight", "Mixed_5c.b3b.bn.running_var"}
    assert expected < set(theirs)
    logits = {"logits.conv3d.weight": drawn(4, 4, 1, 1, 1, seed=0)}
    report = load_image_weights(network, saved(tmp_path, {**theirs, **logits}))
    holds(network, "trunk.", theirs)
    assert report.unused == ("logits.conv3d.weight",)
    assert "Conv3d_2c_3x3.bn.weight" not in dict(network.trunk.named_parameters())


def test_pictures_have_image_weights_and_motion_starts_from_nothing(tmp_path: Path) -> None:
    network = TwoStreamNet(TwoStreamConfig.tiny(), {"crop:context@64": (8, 64, 64, 3)})
    before = {name: value.clone() for name, value in network.motion.state_dict().items()}
    theirs = redrawn(network, "trunk.")
    load_image_weights(network, saved(tmp_path, theirs))
    holds(network, "trunk.", theirs)
    holds(network, "motion.", before)
    whole = theirs["classifier.0.weight"].reshape(16, -1, 2, 2).permute(2, 3, 1, 0)
    file = {"fc1/kernel": whole.flatten(0, 2), "fc1/bias": theirs["classifier.0.bias"]}
    for index, layer in zip(VGG_LAYERS, KERAS_VGG, strict=True):
        file[f"{layer}/kernel"] = as_keras(theirs[f"features.{index}.weight"])
        file[f"{layer}/bias"] = theirs[f"features.{index}.bias"]
    fresh = TwoStreamNet(
        TwoStreamConfig(filters=(4, 6, 8, 12, 16), hidden=(16, 16), stack=5, pixels="keras"),
        {"crop:context@64": (8, 64, 64, 3)},
    )
    load_image_weights(fresh, saved(tmp_path, file))
    holds(fresh, "trunk.", {name: theirs[name] for name in theirs if not name.startswith("classifier.3")})


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    network = VGG16Net(VGG16Config.tiny(), CROPS)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    theirs = redrawn(network, "trunk.")
    wider = redrawn(VGG16Net(VGG16Config(filters=(8, 6, 8, 12, 16)), CROPS), "trunk.")
    with pytest.raises(
        UsageError, match=r"of another width of vgg16: trunk.features.0.weight \(8, 3, 3, 3\)"
    ):
        load_image_weights(network, saved(tmp_path, wider))
    with pytest.raises(UsageError, match=r"lacks some weights of vgg16: trunk\.features\.28\.bias"):
        load_image_weights(
            network, saved(tmp_path, {n: t for n, t in theirs.items() if n != "features.28.bias"})
        )
    with pytest.raises(UsageError, match=r"holds no weights of vgg16; its names begin layer1.0.conv1.weight"):
        load_image_weights(network, saved(tmp_path, {"layer1.0.conv1.weight": drawn(2, 2, seed=0)}))
    holds(network, "", before)
    with pytest.raises(UsageError, match="convlstm has no trunk"):
        load_image_weights(ConvLSTMNet(ConvLSTMConfig.reference(), CROPS), tmp_path / "weights.safetensors")
