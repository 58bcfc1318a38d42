"""Keras names of torchvision's weights of VGG16 and ResNet50."""

from __future__ import annotations

import re
from collections.abc import Callable

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
