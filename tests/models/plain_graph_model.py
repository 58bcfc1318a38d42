"""Tiny graph models of TensorFlow.js, and a plain interpreter of them: the oracle of what is converted."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
NOMINAL = 64
PICTURE, HEAT, SIDES = "net/image", "net/heat", "net/sides"


def _word(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Maker:
    """Nodes and weights of a model while it is made; weights are kept in half precision, as published."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.weights: list[dict[str, Any]] = []
        self.data = b""
        self.generator = np.random.default_rng(seed)
        shape = {"dim": [{"size": str(n)} for n in (1, NOMINAL, NOMINAL, 3)]}
        self.node(PICTURE, "Placeholder", [], shape={"shape": shape})

    def node(self, name: str, op: str, inputs: list[str], **attributes: Any) -> str:
        self.nodes.append({"name": name, "op": op, "input": inputs, "attr": attributes})
        return name

    def weight(self, name: str, value: Any, *, whole: bool = False) -> str:
        array = np.asarray(value, np.int32 if whole else np.float16)
        entry: dict[str, Any] = {
            "name": name,
            "shape": list(array.shape),
            "dtype": "int32" if whole else "float32",
        }
        if not whole:
            entry["quantization"] = {"dtype": "float16", "original_dtype": "float32"}
        self.weights.append(entry)
        self.data += array.tobytes()
        return self.node(name, "Const", [])

    def drawn(self, name: str, *shape: int) -> str:
        return self.weight(name, self.generator.normal(0, 1 / np.sqrt(np.prod(shape[:-1])), shape))

    def convolution(
        self, name: str, given: str, side: int, channels: tuple[int, int], stride: int = 1, *fused: str,
        depthwise: bool = False, padding: str = "SAME",
    ) -> str:  # fmt: skip
        op = "FusedDepthwiseConv2dNative" if depthwise else "_FusedConv2D"
        inputs = [given, self.drawn(f"{name}/w", side, side, *channels)]
        if fused:
            inputs.append(self.drawn(f"{name}/b", channels[0] * channels[1] if depthwise else channels[1]))
        else:
            op = "DepthwiseConv2dNative" if depthwise else "Conv2D"
        more = {"fused_ops": {"list": {"s": [_word(each) for each in fused]}}} if fused else {}
        steps = {"list": {"i": ["1", str(stride), str(stride), "1"]}}
        pad, form = {"s": _word(padding)}, {"s": _word("NHWC")}
        return self.node(name, op, inputs, strides=steps, padding=pad, data_format=form, **more)

    def swish(self, name: str, given: str) -> str:
        add = self.node(f"{name}/add", "AddV2", [given, self.weight(f"{name}/three", 3.0)])
        capped = self.node(f"{name}/relu6", "Relu6", [add])
        scaled = self.node(f"{name}/scaled", "Mul", [self.weight(f"{name}/sixth", 1 / 6), given])
        return self.node(name, "Mul", [scaled, capped])

    def resize(self, name: str, given: str, side: int, *, half_pixel: bool) -> str:
        size = self.weight(f"{name}/size", [side, side], whole=True)
        flags = {"align_corners": {"b": False}, "half_pixel_centers": {"b": half_pixel}}
        return self.node(name, "ResizeBilinear", [given, size], **flags)

    def files(self) -> tuple[bytes, dict[str, bytes]]:
        """The JSON file and the shards."""
        manifest = [{"paths": ["net.bin"], "weights": self.weights}]
        said = {"format": "graph-model", "modelTopology": {"node": self.nodes}, "weightsManifest": manifest}
        return json.dumps(said).encode(), {"net.bin": self.data}


def tiny_centernet(classes: int = 80, seed: int = 0) -> Maker:
    """A network with every operation that is converted; heat and sides at stride 4."""
    m = Maker(seed)
    first = m.swish("swish", m.convolution("one", PICTURE, 3, (3, 4), 2, "BiasAdd"))
    two = m.convolution("two", first, 5, (4, 2), 2, "BiasAdd", "Relu", depthwise=True)
    means = m.node("mean", "Mean", [two, m.weight("axes", [1, 2], whole=True)])
    gate = m.node("gate", "Sigmoid", [m.convolution("squeeze", means, 1, (8, 8), 1, "BiasAdd")])
    gated = m.node("gated", "Mul", [two, gate])
    deep = m.convolution("deep", gated, 3, (8, 6), 2, "BiasAdd", "Relu6")
    side = NOMINAL // 4
    up = m.resize("up", deep, side, half_pixel=False)
    other = m.resize(
        "other", m.convolution("deeper", deep, 3, (6, 1), 1, depthwise=True), side, half_pixel=True
    )
    shift = m.node("shift", "Sub", [other, m.drawn("shift/by", 6)])
    both = m.node("both", "ConcatV2", [gated, up, shift, m.weight("axis", 3, whole=True)])
    plain = m.node("relu", "Relu", [both])
    heat = m.node(
        "sigmoid", "Sigmoid", [m.convolution("heads", plain, 1, (20, classes), 1, "BiasAdd", padding="VALID")]
    )
    m.node(HEAT, "Identity", [heat])
    m.convolution(SIDES, plain, 3, (20, 4), 1)
    return m


def run_plain(model: bytes, shards: dict[str, bytes], picture: Floats, outputs: list[str]) -> list[Floats]:
    """What nodes of a model give, one operation after another, channels last.

    Args:
        picture: (h, w, 3); constants that are sizes grow with it.
    """
    said, found, at = json.loads(model), {PICTURE: picture[None].astype(np.float64)}, 0
    for entry in said["weightsManifest"][0]["weights"]:
        kind = np.dtype("<i4" if entry["dtype"] == "int32" else "<f2")
        count = int(np.prod(entry["shape"]))
        found[entry["name"]] = (
            np.frombuffer(shards["net.bin"], kind, count, at).reshape(entry["shape"]).astype(np.float64)
        )
        at += count * kind.itemsize
    for node in said["modelTopology"]["node"]:
        if node["op"] not in ("Placeholder", "Const"):
            given = [found[name] for name in node["input"]]
            found[node["name"]] = _operation(node["op"], given, node["attr"], picture.shape)
    return [found[name][0].astype(np.float32) for name in outputs]


def _operation(op: str, given: list[Any], attributes: dict[str, Any], shape: tuple[int, ...]) -> Any:
    if op == "Identity":
        return given[0]
    if op in ("AddV2", "Sub", "Mul"):
        return (
            given[0] + given[1]
            if op == "AddV2"
            else given[0] - given[1]
            if op == "Sub"
            else given[0] * given[1]
        )
    if op == "Relu":
        return np.maximum(given[0], 0)
    if op == "Relu6":
        return np.clip(given[0], 0, 6)
    if op == "Sigmoid":
        return 1 / (1 + np.exp(-given[0]))
    if op == "Mean":
        return given[0].mean(axis=(1, 2), keepdims=True)
    if op == "ConcatV2":
        return np.concatenate(given[:-1], axis=3)
    if op == "ResizeBilinear":
        size = [round(n * side / NOMINAL) for n, side in zip(given[1], shape, strict=False)]
        return _resized(given[0], size, attributes["half_pixel_centers"]["b"])
    return _convolved(op, given, attributes)


def _resized(values: Any, size: list[int], half_pixel: bool) -> Any:
    for axis, wanted in ((1, size[0]), (2, size[1])):
        have = values.shape[axis]
        place = np.arange(wanted) * have / wanted
        if half_pixel:
            place = (np.arange(wanted) + 0.5) * have / wanted - 0.5
        place = np.clip(place, 0, have - 1)
        low = np.floor(place).astype(int)
        part = (place - low).reshape([-1 if n == axis else 1 for n in range(4)])
        high = np.minimum(low + 1, have - 1)
        values = values.take(low, axis) * (1 - part) + values.take(high, axis) * part
    return values


def _convolved(op: str, given: list[Any], attributes: dict[str, Any]) -> Any:
    values, kernel = given[:2]
    stride, side = int(attributes["strides"]["list"]["i"][1]), kernel.shape[0]
    height, width = (-(-n // stride) for n in values.shape[1:3])
    total = [
        max((n - 1) * stride + side - m, 0) for n, m in zip((height, width), values.shape[1:3], strict=True)
    ]
    padded = np.pad(values, [(0, 0), *((n // 2, n - n // 2) for n in total), (0, 0)])
    depthwise = "epthwise" in op
    channels = kernel.shape[2] * kernel.shape[3] if depthwise else kernel.shape[3]
    found = np.zeros((1, height, width, channels))
    for y in range(side):
        for x in range(side):
            part = padded[:, y : y + height * stride : stride, x : x + width * stride : stride][
                :, :height, :width
            ]
            if depthwise:
                found += (part[..., None] * kernel[y, x]).reshape(found.shape)
            else:
                found += part @ kernel[y, x]
    if len(given) > 2:
        found = found + given[2]
    fused = [
        base64.b64decode(each).decode()
        for each in attributes.get("fused_ops", {"list": {"s": []}})["list"]["s"]
    ]
    if "Relu" in fused:
        return np.maximum(found, 0)
    return np.clip(found, 0, 6) if "Relu6" in fused else found
