"""A `Graph` as the bytes of an ONNX file; needs the onnx package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.models.graphs.graph import INPUT, Graph, Step

_OPSET, _IR_VERSION = 17, 8
_SAME_NAME = {"add": "Add", "sub": "Sub", "mul": "Mul", "relu": "Relu", "sigmoid": "Sigmoid"}


def encode_onnx(graph: Graph) -> bytes:
    """The file: `picture` (n, 3, h, w) goes in, the outputs by what they mean come out, all of any size.

    Args:
        graph: that it holds.

    Raises:
        ModuleNotFoundError: if onnx is not installed.
    """
    onnx: Any = import_module("onnx")
    # Names of steps and weights are any file's; an output may have the same, these here cannot.
    names = {INPUT: INPUT, **{name: f"weight {n}" for n, name in enumerate(graph.weights)}}
    names |= {step.name: f"step {n}" for n, step in enumerate(graph.steps)}
    made = _Nodes(onnx, {names[name]: array for name, array in graph.weights.items()})
    for step in graph.steps:
        inputs = tuple(names[name] for name in step.inputs)
        made.add(replace(step, name=names[step.name], inputs=inputs))
    for what, name in graph.outputs.items():
        made.node("Identity", [names[name]], what)
    whole = onnx.TensorProto.FLOAT
    proto = onnx.helper.make_graph(
        made.nodes,
        "roadaware",
        [onnx.helper.make_tensor_value_info(INPUT, whole, ["n", 3, "h", "w"])],
        [onnx.helper.make_tensor_value_info(what, whole, ["n", None, None, None]) for what in graph.outputs],
        made.held,
    )
    opset = onnx.helper.make_opsetid("", _OPSET)
    model = onnx.helper.make_model(
        proto, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="roadaware"
    )
    data: bytes = model.SerializeToString()
    return data


class _Nodes:
    """Nodes and constants of a file while they are made."""

    def __init__(self, onnx: Any, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self.helper, self.numpy_helper = onnx.helper, onnx.numpy_helper
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        for name, array in weights.items():
            self.constant(array, name)

    def constant(self, value: npt.NDArray[Any], name: str) -> str:
        """A constant under a name."""
        self.held.append(self.numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **fields: Any) -> None:
        """One operation."""
        self.nodes.append(self.helper.make_node(kind, inputs, [output], **fields))

    def add(self, step: Step) -> None:
        """A step of a graph."""
        inputs, fields = list(step.inputs), step.fields
        if step.op == "conv":
            self._convolution(step)
        elif step.op == "relu6":
            self._relu6(inputs[0], step.name)
        elif step.op == "mean":
            self.node("GlobalAveragePool", inputs, step.name)
        elif step.op == "concat":
            self.node("Concat", inputs, step.name, axis=1)
        elif step.op == "resize":
            scales = self.constant(
                np.array([1, 1, fields["scale"], fields["scale"]], np.float32), f"{step.name}-by"
            )
            centres = "half_pixel" if fields["half_pixel"] else "asymmetric"
            more = {"mode": "linear", "coordinate_transformation_mode": centres}
            self.node("Resize", [inputs[0], "", scales], step.name, **more)
        else:
            self.node(_SAME_NAME[step.op], inputs, step.name)

    def _convolution(self, step: Step) -> None:
        fields = step.fields
        plain = step.name if fields["then"] == "none" else f"{step.name}-plain"
        more = {
            "strides": [fields["stride"]] * 2,
            "dilations": [fields["dilation"]] * 2,
            "group": fields["groups"],
            "auto_pad": "SAME_UPPER" if fields["pad"] else "VALID",
        }
        self.node("Conv", list(step.inputs), plain, **more)
        if fields["then"] == "relu":
            self.node("Relu", [plain], step.name)
        elif fields["then"] == "relu6":
            self._relu6(plain, step.name)

    def _relu6(self, given: str, name: str) -> None:
        low = self.constant(np.zeros((), np.float32), f"{name}-low")
        high = self.constant(np.full((), 6, np.float32), f"{name}-high")
        self.node("Clip", [given, low, high], name)
