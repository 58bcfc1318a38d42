"""Graph models of TensorFlow.js as `Graph`: JSON and weights are read, nothing of them is run; torch-free."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DamagedError, InputError
from roadaware.io.json import decode, parse
from roadaware.models.graphs.graph import INPUT, MOST_STEPS, Graph, Shape, Step, step_shape

MOST_JSON_BYTES = 1 << 24
MOST_WEIGHT_BYTES = 1 << 28
_STORED: Mapping[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "int32": np.dtype("<i4"),
}
_PASSED = ("Identity", "Cast", "StopGradient")
_CONVOLUTIONS = {
    "Conv2D": False,
    "_FusedConv2D": False,
    "DepthwiseConv2dNative": True,
    "FusedDepthwiseConv2dNative": True,
}
_COMBINED = {"Add": "add", "AddV2": "add", "BiasAdd": "add", "Sub": "sub", "Mul": "mul"}
_PLAIN = {"Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid"}
_THEN = {(): "none", ("Relu",): "relu", ("Relu6",): "relu6"}

Arrays = Mapping[str, npt.NDArray[Any]]


def convert(
    model: bytes, shards: Mapping[str, bytes], image: str, outputs: Mapping[str, str], where: str
) -> Graph:
    """The part of a graph model between its image and some of its nodes.

    Args:
        model: the JSON file.
        shards: the binary files by the names that it gives them.
        image: the node whose values are (1, h, w, 3), red first, from 0 to 255.
        outputs: nodes that are wanted, by what they mean.
        where: names the file in errors.

    Returns:
        The graph with its weights in float32, whatever the file keeps them in.

    Raises:
        InputError: if the file is no graph model, or has nodes of kinds that are not known.
        DamagedError: if weights are missing, cut off, too many or no numbers.
    """
    said = parse(decode(model, where), where)
    try:
        nodes = {str(each["name"]): each for each in said["modelTopology"]["node"][: 2 * MOST_STEPS]}
        manifest = [
            (list(map(str, group["paths"])), list(group["weights"])) for group in said["weightsManifest"]
        ]
    except (KeyError, TypeError) as error:
        raise InputError(
            "expected a graph model of TensorFlow.js: nodes and a manifest of weights", where=where
        ) from error
    # Every weight by its name, in float32 or int32
    found: dict[str, npt.NDArray[Any]] = {}
    for paths, listed in manifest:
        missing = [path for path in paths if path not in shards]
        if missing:
            raise DamagedError(f"its weights {', '.join(missing)[:80]} are missing", where=where)
        data, at = b"".join(shards[path] for path in paths), 0
        for each in listed:
            try:
                name, shape = str(each["name"]), tuple(each["shape"])
                kept = _STORED[str((each.get("quantization") or {}).get("dtype", each["dtype"]))]
                if "scale" in (each.get("quantization") or {}) or not all(
                    type(n) is int and 0 <= n < 1 << 24 for n in shape
                ):
                    raise ValueError(f"{name[:60]} is kept in a form that is not known")
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DamagedError(f"its list of weights is not understood: {error}", where=where) from error
            size = math.prod(shape) * kept.itemsize
            if at + size > len(data):
                raise DamagedError(
                    f"its weights end at {len(data):,} bytes, before {name[:60]} is whole",
                    where=where,
                    hint="fetch it again",
                )
            array = np.frombuffer(data, kept, math.prod(shape), at).reshape(shape)
            found[name] = array.astype(np.int64 if kept.kind == "i" else np.float32)
            at += size
            if not np.isfinite(found[name]).all():
                raise DamagedError(f"the weights {name[:60]} are no numbers", where=where)
        if at != len(data):
            raise DamagedError(f"its weights have {len(data):,} bytes, and its list says {at:,}", where=where)
    held = found
    return _Walk(nodes, held, image, where).graph(outputs)


class _Walk:
    """From the outputs back to the image, one node after another.

    Args:
        nodes: by name.
        held: weights by name.
        picture: the node to stop at.
        where: names the file in errors.
    """

    def __init__(self, nodes: Mapping[str, Any], held: Arrays, image: str, where: str) -> None:
        self.nodes, self.held, self.picture, self.where = nodes, held, image, where
        self.steps: list[Step] = []
        self.weights: dict[str, npt.NDArray[np.float32]] = {}
        self.shapes: dict[str, Shape] = {INPUT: Shape(3, 1)}
        self.named: dict[str, str] = {image: INPUT}
        self.nominal = self._nominal(image)

    def graph(self, outputs: Mapping[str, str]) -> Graph:
        """All steps that the outputs need, in order."""
        for name in outputs.values():
            self._make(name)
            if name not in self.named:
                raise self._odd(name, "it is a weight, and no output")
        return Graph(
            tuple(self.steps), self.weights, {what: self.named[name] for what, name in outputs.items()}
        )

    def _nominal(self, name: str) -> int:
        """Height that the file was made for: constants of sizes are sizes of that."""
        for node in self.nodes.values():
            if node.get("op") == "Placeholder":
                try:
                    return int(node["attr"]["shape"]["shape"]["dim"][1]["size"])
                except (KeyError, TypeError, ValueError, IndexError) as error:
                    raise self._odd(name, "its image has no size") from error
        raise self._odd(name, "it has no image")

    def _make(self, wanted: str) -> None:
        """Steps for a node, after those for what it needs; a long chain would exhaust recursion."""
        waiting = [wanted]
        seen: set[str] = set()
        while waiting:
            name = waiting[-1]
            if name in self.named or name in self.held:
                waiting.pop()
                continue
            node = self.nodes.get(name)
            if node is None or len(self.steps) > MOST_STEPS:
                raise self._odd(name, "there is no such node")
            inputs = [each.removesuffix(":0") for each in map(str, node.get("input", []))]
            needed = [each for each in inputs if each not in self.named and each not in self.held]
            if needed:
                if name in seen:
                    raise self._odd(name, "it needs itself, or a weight that is missing")
                seen.add(name)
                waiting += needed
                continue
            self.named[name] = self._step(name, str(node.get("op")), inputs, node.get("attr") or {})
            waiting.pop()

    def _step(self, name: str, op: str, inputs: list[str], attributes: Mapping[str, Any]) -> str:
        """The name of what a node gives, once its step is there."""
        try:
            if op in _PASSED:
                return self.named[inputs[0]]
            if op in _CONVOLUTIONS:
                return self._convolution(op, inputs, attributes)
            if op in _COMBINED:
                channels = next(
                    self.shapes[self.named[each]].channels for each in inputs if each in self.named
                )
                given = [self._operand(each, channels) for each in inputs]
                return self._add(_COMBINED[op], given)
            if op in _PLAIN:
                return self._add(_PLAIN[op], [self.named[inputs[0]]])
            # Axes may count from the end: height and width are 1 and 2, or -3 and -2.
            if op == "Mean" and sorted(n % 4 for n in self.held[inputs[1]].flatten().tolist()) == [1, 2]:
                return self._add("mean", [self.named[inputs[0]]])
            # Channels stand last: axis 3, or -1.
            if op == "ConcatV2" and int(self.held[inputs[-1]]) % 4 == 3:
                return self._add("concat", [self.named[each] for each in inputs[:-1]])
            if op == "ResizeBilinear" and not attributes.get("align_corners", {}).get("b", False):
                return self._resize(inputs, bool(attributes.get("half_pixel_centers", {}).get("b", False)))
        except (
            KeyError,
            IndexError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            StopIteration,
            binascii.Error,
        ) as error:
            raise self._odd(name, f"not understood ({op[:40]}): {str(error)[:80]}") from error
        raise self._odd(name, f"{op[:40]} is no operation that is converted")

    def _convolution(self, op: str, inputs: list[str], attributes: Mapping[str, Any]) -> str:
        kernel = self.held[inputs[1]].astype(np.float32)
        if _CONVOLUTIONS[op]:  # (kh, kw, in, times) to (in x times, 1, kh, kw)
            groups = kernel.shape[2]
            turned = kernel.transpose(2, 3, 0, 1).reshape(groups * kernel.shape[3], 1, *kernel.shape[:2])
        else:
            groups, turned = 1, kernel.transpose(3, 2, 0, 1)
        strides = [int(n) for n in attributes["strides"]["list"]["i"]]
        dilations = [int(n) for n in attributes.get("dilations", {"list": {"i": [1, 1, 1, 1]}})["list"]["i"]]
        fused = [_text(each) for each in (attributes.get("fused_ops") or {"list": {}})["list"].get("s", [])]
        padding = _text(attributes["padding"]["s"])
        if strides[1] != strides[2] or dilations[1] != dilations[2] or padding not in ("SAME", "VALID"):
            raise ValueError("other steps to the side than down, or padding of its own")
        # "NHWC" in base64, which is the default of TensorFlow.
        if _text(attributes.get("data_format", {"s": "TkhXQw=="})["s"]) != "NHWC":
            raise ValueError("its channels do not stand last")
        given = [self.named[inputs[0]], self._keep(turned)]
        if fused[:1] == ["BiasAdd"]:
            given.append(self._keep(self.held[inputs[2]].astype(np.float32)))
            fused = fused[1:]
        # A kernel of one cell needs no padding, whatever its stride.
        pad = padding == "SAME" and kernel.shape[:2] != (1, 1)
        fields = {"stride": strides[1], "dilation": dilations[1], "groups": groups, "pad": pad}
        return self._add("conv", given, {**fields, "then": _THEN[tuple(fused)]})

    def _resize(self, inputs: list[str], half_pixel: bool) -> str:
        given = self.named[inputs[0]]
        # Sizes are constants for one size of image; what is kept is the factor between maps.
        height = self.nominal // self.shapes[given].stride
        wanted = [int(n) for n in self.held[inputs[1]].flatten()]
        if wanted[0] % height or wanted[0] != wanted[1]:
            raise ValueError(f"it makes {wanted} of {height}")
        return self._add("resize", [given], {"scale": wanted[0] // height, "half_pixel": half_pixel})

    def _operand(self, name: str, channels: int) -> str:
        """A step, or a constant that is made to fit (channels, height, width)."""
        if name in self.named:
            return self.named[name]
        value = self.held[name].astype(np.float32)
        return self._keep(value.reshape(()) if value.size == 1 else value.reshape(channels, 1, 1))

    def _keep(self, value: npt.NDArray[np.float32]) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.array(value, order="C")
        return name

    def _add(self, op: str, inputs: list[str], fields: Mapping[str, Any] | None = None) -> str:
        name = f"s{len(self.steps)}"
        self.steps.append(Step(op, name, tuple(inputs), fields or {}))
        self.shapes[name] = step_shape(self.steps[-1], self.shapes, self.weights)
        return name

    def _odd(self, name: str, what: str) -> InputError:
        return InputError(f"node {name[:80]!r}: {what}", where=self.where)


def _text(encoded: str) -> str:
    return base64.b64decode(encoded, validate=True).decode("ascii")
