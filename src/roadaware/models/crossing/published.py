"""Published image weights into networks for pedestrians, by the names they came with; imports torch."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.networks.clips import C3DFeatures, I3DTrunk
from roadaware.models.crossing.networks.stills import CrossingNet, ResNet50Trunk, VGG16Trunk
from roadaware.models.tensor_files import read_tensors
from roadaware.models.weights import KeyReport

# Keras names of torchvision's weights of VGG16 and ResNet50.


FIELDS = ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance")
"""Last parts of the names of Keras' weights."""
_NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
_LINEAR = {"weight": "kernel", "bias": "bias"}
_VGG_CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
"""Where the convolutions stand among the layers of VGG16, ReLUs and pools counted."""
_VGG_LAYERS = tuple(f"block{b}_conv{c}" for b, n in enumerate((2, 2, 3, 3, 3), 1) for c in range(1, n + 1))
_RESNET_BLOCK = re.compile(r"layer(?P<stage>\d)\.(?P<block>\d+)\.(?P<part>conv|bn|downsample\.)(?P<place>\d)")


def map_keras_name(kind: str, name: str) -> tuple[str, str] | None:
    """(layer, field) of a weight by torchvision's name, or None if Keras has no such weight.

    Args:
        kind: of the network: vgg16 or resnet50; nothing is known of others.
        name: such as features.0.weight or layer1.0.bn2.running_var.
    """
    layer, _, field = name.rpartition(".")
    if kind not in _LAYERS:
        return None
    found, norm = _LAYERS[kind](layer)
    known = _NORM if norm else _LINEAR
    return (found, known[field]) if found and field in known else None


def _vgg(layer: str) -> tuple[str, bool]:
    """Keras' name of a layer, and whether it is a batch norm."""
    group, _, place = layer.partition(".")
    if group == "features" and int(place) in _VGG_CONVOLUTIONS:
        return _VGG_LAYERS[_VGG_CONVOLUTIONS.index(int(place))], False
    return {"classifier.0": "fc1", "classifier.3": "fc2"}.get(layer, ""), False


def _resnet(layer: str) -> tuple[str, bool]:
    """Keras' name of a layer, and whether it is a batch norm."""
    if layer in ("conv1", "bn1"):
        return ("conv1_bn", True) if layer == "bn1" else ("conv1_conv", False)
    part = _RESNET_BLOCK.fullmatch(layer)
    if part is None:
        return "", False
    beside = part["part"] == "downsample."
    place = 0 if beside else int(part["place"])
    norm = part["place"] == "1" if beside else part["part"] == "bn"
    block = f"conv{int(part['stage']) + 1}_block{int(part['block']) + 1}"
    return f"{block}_{place}_{'bn' if norm else 'conv'}", norm


_LAYERS: dict[str, Callable[[str], tuple[str, bool]]] = {"vgg16": _vgg, "resnet50": _resnet}


_LOG = logging.getLogger("roadaware")
_COUNTER = "num_batches_tracked"
_FULL = ("fc6", "fc7", "classifier")
"""Fully connected layers, which fit one size of image only."""
_PIXELS = {"vgg16": "imagenet", "resnet50": "imagenet", "c3d": "bytes", "i3d": "signed"}
"""What the weights of each trunk were trained on; Keras' on numbers of its own."""


class _Place(NamedTuple):
    """A weight of ours that published ones may fill: which trunk it belongs to, and its name there."""

    kind: str
    bare: str


class _Found(NamedTuple):
    """A tensor for it, and the names in the file that it was made of."""

    tensor: Tensor
    names: tuple[str, ...]


def load_image_weights(network: CrossingNet, path: Path | str) -> KeyReport:
    """Fill the trunks of a network that read images: VGG16, ResNet50, C3D or I3D.

    Read are torchvision's names of VGG16 and ResNet50 (ImageNet), Keras' names of both (`layer/kernel` and so
    on, as its HDF5 files have them, in Keras' layout), those of c3d.pickle (Sports-1M) and of the usual port
    of I3D (Kinetics). HDF5 itself is not read: save its arrays as safetensors under their paths. The last
    layer is never filled, nor are fully connected layers made for images of another size; the report names
    them. Nothing is changed if the file does not fit. Weights trained on other numbers than the config's
    `pixels` are taken with a warning.

    Args:
        network: is changed in place.
        path: of a `.safetensors` file, or of one that torch saved.

    Raises:
        UsageError: if the network has no such trunk, or the file is for another one or another width.
        InputError: if the file cannot be read.
        DamagedError: if it is not whole.
    """
    path = Path(path)
    own, places = network.state_dict(), dict(_places(network))
    if not places:
        raise UsageError(f"{network.entry.card.name} has no trunk that published image weights fit")
    held = read_tensors(path)
    keras = _keras_keys(held)
    found: dict[str, _Found] = {}
    for name, place in places.items():
        got = _of_keras(held, keras, place) if keras else _as_named(held, place)
        if got is not None and (got.tensor.shape == own[name].shape or not place.bare.startswith(_FULL)):
            found[name] = got
    kinds = ", ".join(sorted({place.kind for place in places.values()}))
    if not found:
        raise UsageError(f"{path} holds no weights of {kinds}; its names begin {', '.join(list(held)[:3])}")
    differ = [
        f"{name} {tuple(got.tensor.shape)} for {tuple(own[name].shape)}"
        for name, got in found.items()
        if got.tensor.shape != own[name].shape
    ]
    if differ:
        raise UsageError(
            f"the weights in {path} are of another width of {kinds}: {_some(differ)}; published weights fit "
            "the published sizes, which a config has by default"
        )
    lacking = [
        name
        for name, place in places.items()
        if name not in found and not place.bare.endswith(_COUNTER) and not place.bare.startswith(_FULL)
    ]
    if lacking:
        raise UsageError(f"{path} lacks some weights of {kinds}: {_some(lacking)}")
    _check_config(network, places, bool(keras))
    network.load_state_dict({**own, **{name: got.tensor for name, got in found.items()}})
    used = {name for got in found.values() for name in got.names}
    missing = tuple(name for name in own if name not in found)
    return KeyReport(tuple(found), missing, tuple(name for name in held if name not in used), ())


def _places(network: nn.Module) -> Iterator[tuple[str, _Place]]:
    """Every weight that published ones may fill, by its name in the network."""
    for prefix, module in network.named_modules():
        kind = next((kind for trunk, kind in _TRUNKS.items() if isinstance(module, trunk)), "")
        first = next((layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.Conv3d)), None)
        # Published image weights read three colours.
        if not kind or first is None or first.in_channels != 3:
            continue
        for bare in module.state_dict():
            yield f"{prefix}.{bare}", _Place(kind, bare)
        if kind == "c3d" and hasattr(network, "fc6"):
            for bare in ("fc6.weight", "fc6.bias", "fc7.weight", "fc7.bias"):
                yield bare, _Place(kind, bare)


_TRUNKS: dict[type[nn.Module], str] = {
    VGG16Trunk: "vgg16",
    ResNet50Trunk: "resnet50",
    C3DFeatures: "c3d",
    I3DTrunk: "i3d",
}


def _as_named(held: Mapping[str, Tensor], place: _Place) -> _Found | None:
    return _Found(held[place.bare], (place.bare,)) if place.bare in held else None


def _keras_keys(held: Mapping[str, Tensor]) -> dict[tuple[str, str], str]:
    """Names in a file of Keras, such as conv1_conv/conv1_conv/kernel:0, by (layer, field); else nothing."""
    found = {}
    for name in held:
        parts = re.split(r"[/.]", name.removesuffix(":0"))
        if len(parts) > 1 and parts[-1] in FIELDS:
            found[parts[-2], parts[-1]] = name
    return found if any(field == "kernel" for _, field in found) else {}


def _of_keras(
    held: Mapping[str, Tensor], keras: Mapping[tuple[str, str], str], place: _Place
) -> _Found | None:
    """A weight in torch's layout; the bias before a batch norm, which torch has not, goes into its mean."""
    key = map_keras_name(place.kind, place.bare)
    if key is None or key not in keras:
        return None
    (layer, field), name = key, keras[key]
    tensor = held[name]
    if field == "kernel":
        last = keras.get(("block5_conv3", "kernel"), "") if layer == "fc1" else ""
        return _Found(_convert_kernel(tensor, held[last].shape[-1] if last else 1), (name,))
    bias = keras.get((layer.removesuffix("_bn") + "_conv", "bias"))
    if field == "moving_mean" and bias is not None:
        # A bias before the norm moves its input; taken off the mean, it does the same.
        return _Found(tensor - held[bias], (name, bias))
    return _Found(tensor, (name,))


def _convert_kernel(kernel: Tensor, channels: int) -> Tensor:
    """A kernel (rows, columns, in, out) or (in, out) of Keras in the order of torch.

    Args:
        kernel: of Keras.
        channels: of the square image that (in) was flattened from with its channels last; 1 if of none.
    """
    if kernel.dim() == 4:
        return kernel.permute(3, 2, 0, 1).contiguous()
    side = math.isqrt(kernel.shape[0] // channels)
    if channels > 1 and side * side * channels == kernel.shape[0]:
        # Keras flattens maps with channels last, torch with channels first.
        return kernel.reshape(side, side, channels, -1).permute(3, 2, 0, 1).flatten(1)
    return kernel.T.contiguous()


def _check_config(network: CrossingNet, places: Mapping[str, _Place], keras: bool) -> None:
    """Refuse or warn of weights that fit the shapes of a network and not what it computes."""
    early = getattr(network.config, "early_stride", None)
    if early is not None and early != keras:
        raise UsageError(
            f"these weights are of a ResNet50 with early_stride={keras}, and the network has {early}; create "
            f"it with ResNet50Config(early_stride={keras})"
        )
    kind = next(iter(places.values())).kind
    expected = "keras" if keras else _PIXELS[kind]
    pixels = getattr(network.config, "pixels", expected)
    if pixels != expected:
        _LOG.warning("weights trained on pixels='%s' will see pixels='%s'", expected, pixels)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
