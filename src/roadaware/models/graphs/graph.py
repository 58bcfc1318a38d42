"""Graph: a convolutional network as checked steps and weights, also out of TensorFlow.js's files; torch-free."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DamagedError, InputError
from roadaware.io.json import decode, parse

Weights = Mapping[str, npt.NDArray[np.float32]]
INPUT = "picture"
MOST_STEPS = 5000
"""Steps of a graph; those of the catalogue have some hundreds."""
MOST_CHANNELS = 8192
"""Channels of one step: joining them again and again would fill any memory."""
_LARGEST_KERNEL, _LARGEST_SCALE, _COARSEST = 31, 8, 64
_ELEMENTWISE = ("add", "sub", "mul")
_PLAIN = ("relu", "relu6", "sigmoid")
_ACTIVATIONS = ("none", "relu", "relu6")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "conv": ("stride", "dilation", "groups", "pad", "then"),
    "resize": ("scale", "half_pixel"),
    "concat": (),
    "mean": (),
    **dict.fromkeys(_ELEMENTWISE, ()),
    **dict.fromkeys(_PLAIN, ()),
}


@dataclass(frozen=True)
class Step:
    """One operation on arrays of (n, channels, height, width).

    `conv` takes an array, a kernel (out, in / groups, kh, kw) and perhaps a bias (out,); it is padded to
    ceil(size / stride), more at the end than at the beginning (`pad`), or not at all, and `then` is its
    activation. `add`, `sub` and `mul` take two arrays, or an array and a constant of shape () or
    (channels, 1, 1). `mean` is over height and width. `resize` enlarges bilinearly by a whole number: with
    `half_pixel` centres of pixels fall on each other, else their first corners. `concat` joins channels.

    Args:
        op: one of these, or `relu`, `relu6`, `sigmoid`.
        name: of what comes out.
        inputs: names of earlier steps or weights; `picture` is what goes into the graph.
        fields: of `conv` and `resize`.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """Output shape of a step: so many channels, each pixel standing for `stride` x `stride` of the image.

    Args:
        channels: how many.
        stride: in pixels of the image; 0 for what has no height and width left (a mean).
    """

    channels: int
    stride: int


@dataclass(frozen=True, eq=False)
class Graph:
    """A network.

    Args:
        steps: each after those that it needs.
        weights: float32 arrays by name.
        outputs: name of a step by what it means, such as `heat`.

    Raises:
        DamagedError: if steps and weights do not fit together.
    """

    steps: tuple[Step, ...]
    weights: Weights
    outputs: Mapping[str, str]

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        infer_shapes(self)

    def as_plain(self) -> dict[str, Any]:
        """JSON-ready, without the weights."""
        steps = [{"op": s.op, "name": s.name, "inputs": list(s.inputs), **s.fields} for s in self.steps]
        return {"steps": steps, "outputs": dict(self.outputs)}


def parse_graph(plain: object, weights: Weights, where: str = "") -> Graph:
    """The graph in plain data, as `Graph.as_plain` gave it.

    Raises:
        DamagedError: if it is none, or does not fit the weights.
    """
    try:
        if not isinstance(plain, Mapping):
            raise TypeError("no fields")
        steps = [
            Step(
                str(each["op"]),
                str(each["name"]),
                tuple(map(str, each["inputs"])),
                {name: each[name] for name in _FIELDS.get(str(each["op"]), ())},
            )
            # One more than is allowed, so that too many are still seen to be too many.
            for each in plain["steps"][: MOST_STEPS + 1]
        ]
        outputs = {str(name): str(step) for name, step in dict(plain["outputs"]).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"expected the steps of a network: {error}", where=where or None) from error
    try:
        return Graph(tuple(steps), weights, outputs)
    except DamagedError as error:
        raise DamagedError(error.message, where=where or None) from error


def infer_shapes(graph: Graph) -> dict[str, Shape]:
    """Output shape of each step, by its name.

    Raises:
        DamagedError: naming the first step that does not fit.
    """
    if len(graph.steps) > MOST_STEPS:
        raise DamagedError(f"a network of more than {MOST_STEPS:,} steps is not opened")
    found = {INPUT: Shape(3, 1)}
    for step in graph.steps:
        if step.name in found or step.name in graph.weights:
            raise _unfit(step, "its name is taken")
        for name in step.inputs:
            if name not in found and name not in graph.weights:
                raise _unfit(step, f"nothing before it is called {name[:40]!r}")
        found[step.name] = step_shape(step, found, graph.weights)
        if found[step.name].channels > MOST_CHANNELS:
            raise _unfit(step, f"it makes more than {MOST_CHANNELS:,} channels")
    missing = [name for name in graph.outputs.values() if name not in found]
    if missing or not graph.outputs:
        raise DamagedError(f"no step makes the outputs {', '.join(missing)[:80] or '(none is named)'}")
    for what in graph.outputs:
        if what == INPUT or not what.isidentifier():
            raise DamagedError(f"an output of a network cannot be called {what[:40]!r}")
    return found


def step_shape(step: Step, found: Mapping[str, Shape], weights: Weights) -> Shape:
    """Output shape of one step.

    Args:
        step: the step.
        found: what comes out of those before it.
        weights: by name.

    Raises:
        DamagedError: if it does not fit.
    """
    if set(step.fields) != set(_FIELDS.get(step.op, ("an operation that is not known",))):
        raise _unfit(step, f"operation {step.op[:40]!r} with {', '.join(map(str, step.fields)) or 'nothing'}")
    given = [found[name] for name in step.inputs if name in found]
    if step.op == "conv":
        return _infer_convolution_shape(step, found, weights)
    if step.op in _ELEMENTWISE:
        return _infer_elementwise_shape(step, found, weights)
    if len(given) != len(step.inputs) or not given or (len(given) > 1 and step.op != "concat"):
        raise _unfit(step, "its inputs are not what it takes")
    if step.op == "concat":
        if len({each.stride for each in given}) > 1:
            raise _unfit(step, "what it joins differs in size")
        return Shape(sum(each.channels for each in given), given[0].stride)
    if step.op == "mean":
        return Shape(given[0].channels, 0)
    if step.op == "resize":
        scale = step.fields["scale"]
        if type(scale) is not int or not 1 <= scale <= _LARGEST_SCALE or given[0].stride % scale:
            raise _unfit(step, f"it enlarges by {str(scale)[:20]}")
        if type(step.fields["half_pixel"]) is not bool or not given[0].stride:
            raise _unfit(step, "its input has no height and width")
        return Shape(given[0].channels, given[0].stride // scale)
    return given[0]


def _infer_convolution_shape(step: Step, found: Mapping[str, Shape], weights: Weights) -> Shape:
    numbers = [step.fields[name] for name in ("stride", "dilation", "groups")]
    if len(step.inputs) not in (2, 3) or step.inputs[0] not in found or step.inputs[1] not in weights:
        raise _unfit(step, "its inputs are an array, a kernel and perhaps a bias")
    given, kernel = found[step.inputs[0]], weights[step.inputs[1]]
    if any(type(n) is not int or n < 1 for n in numbers) or kernel.ndim != 4:
        raise _unfit(step, "its numbers are none of a convolution")
    stride, _, groups = numbers
    sides = kernel.shape[2:]
    if max(*sides, stride, step.fields["dilation"]) > _LARGEST_KERNEL or not min(sides):
        raise _unfit(step, f"its kernel is {sides[0]}x{sides[1]}")
    if given.channels != kernel.shape[1] * groups or kernel.shape[0] % groups:
        raise _unfit(step, f"{given.channels} channels meet a kernel for {kernel.shape[1] * groups}")
    if len(step.inputs) == 3 and (
        step.inputs[2] not in weights or weights[step.inputs[2]].shape != kernel.shape[:1]
    ):
        raise _unfit(step, "its bias does not fit its kernel")
    if step.fields["then"] not in _ACTIVATIONS or type(step.fields["pad"]) is not bool:
        raise _unfit(step, f"its activation is {str(step.fields['then'])[:20]!r}")
    if not step.fields["pad"] and sides != (1, 1):
        raise _unfit(step, "only a convolution of 1x1 goes without padding")
    if given.stride * stride > _COARSEST:
        raise _unfit(step, f"its pixels would stand for {given.stride * stride} of the image")
    return Shape(int(kernel.shape[0]), given.stride * stride)


def _infer_elementwise_shape(step: Step, found: Mapping[str, Shape], weights: Weights) -> Shape:
    if len(step.inputs) != 2 or not any(name in found for name in step.inputs):
        raise _unfit(step, "it takes two arrays, or one and a constant")
    given = [found[name] for name in step.inputs if name in found]
    channels = {each.channels for each in given}
    strides = {each.stride for each in given} - {0}
    for name in step.inputs:
        if name in weights:
            shape = weights[name].shape
            if shape not in ((), (given[0].channels, 1, 1)):
                raise _unfit(step, f"its constant has shape {shape}")
    if len(channels) > 1 or len(strides) > 1:
        raise _unfit(step, "its arrays differ in size")
    return Shape(channels.pop(), strides.pop() if strides else 0)


def keep_channels(graph: Graph, output: str, channels: Sequence[int]) -> Graph:
    """The graph with fewer channels in an output that a convolution makes, so that no others are computed.

    Between the convolution and the output stand activations alone.

    Args:
        graph: whole.
        output: its name among the outputs.
        channels: of the output, which stay in this order.

    Raises:
        DamagedError: if something else makes the output, or others need the convolution too.
    """
    by_name = {step.name: step for step in graph.steps}
    step = by_name[graph.outputs[output]]
    while step.op in _PLAIN:
        step = by_name[step.inputs[0]]
    if step.op != "conv" or step.fields["groups"] != 1:
        raise DamagedError(f"no convolution makes the output {output}")
    for other, name in graph.outputs.items():
        if other != output and name == graph.outputs[output]:
            raise DamagedError(f"the outputs {output} and {other} are one")
    rows = np.asarray(channels, dtype=np.int64)
    cut = {name: np.ascontiguousarray(graph.weights[name][rows]) for name in step.inputs[1:]}
    if any(set(cut) & set(each.inputs) for each in graph.steps if each is not step):
        raise DamagedError(f"the weights of the output {output} are those of others too")
    return Graph(graph.steps, {**graph.weights, **cut}, graph.outputs)


def _unfit(step: Step, what: str) -> DamagedError:
    return DamagedError(f"step {step.name[:60]!r} ({step.op[:20]}) cannot be run: {what}")


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
_PLAIN_OPS = {"Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid"}
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
            if op in _PLAIN_OPS:
                return self._add(_PLAIN_OPS[op], [self.named[inputs[0]]])
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
