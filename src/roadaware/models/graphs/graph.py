"""Graph: a convolutional network as steps and weights, checked before anything runs; torch-free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DamagedError

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

    Args:
        plain: a mapping.
        weights: by name.
        where: names the file in errors.

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
