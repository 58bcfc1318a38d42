"""Graphs kept as files, and run on images by ONNX Runtime where it is installed, else by torch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware.arrays import Floats32
from roadaware.errors import DamagedError, InputError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models.detector import FACTS
from roadaware.models.graphs.graph import INPUT, Graph, Step, infer_shapes, parse_graph
from roadaware.models.offline import import_onnxruntime
from roadaware.models.tensor_files import (
    check_digest,
    digest_tensors,
    parse_facts,
    read_about,
    read_safetensors,
)

FORMAT = "roadaware-graph-1"
_HALF = np.float16


def save_graph(path: Path, graph: Graph, facts: Mapping[str, Any]) -> None:
    """Write a graph as one file; weights that half precision holds exactly take two bytes each.

    Args:
        path: of the file; `.safetensors` by custom.
        graph: the network.
        facts: JSON-ready: `decoder`, `classes`, and `notes` with its advice.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
    """
    tensors = {}
    for name, array in graph.weights.items():
        # What is beyond the range of a half becomes infinite there, and is thus not equal.
        with np.errstate(over="ignore"):
            half = array.astype(_HALF)
        exact = np.array_equal(half.astype(np.float32), array)
        tensors[name] = torch.from_numpy(np.array(half if exact else array, order="C"))
    said = {
        "format": FORMAT, "version": __version__, "graph": graph.as_plain(), **facts, "digest": digest_tensors(tensors),
    }  # fmt: skip
    write_atomically(path, save(tensors, {FACTS: json.dumps(said)}))


def is_graph_file(path: Path) -> bool:
    """Whether a file says that it holds a graph; False for one that cannot be read."""
    if not path.is_file() or path.suffix != ".safetensors":
        return False
    try:
        return parse_facts(read_about(path), FACTS, str(path)).get("format") == FORMAT
    except InputError:  # whoever opens it says what is wrong
        return False


def open_graph(path: Path) -> tuple[Graph, dict[str, Any]]:
    """The graph in a file, and what the file says of it.

    Raises:
        InputError: if it cannot be read, or holds something else.
        DamagedError: if it is not whole.
    """
    tensors, about = read_safetensors(path)
    facts = parse_facts(about, FACTS, str(path))
    if facts.get("format") != FORMAT:
        raise InputError(
            f"a file of format {to_printable(repr(facts.get('format')), 60)}, and this version reads {FORMAT}",
            where=str(path),
        )
    check_digest(tensors, facts, str(path))
    if any(not tensor.is_floating_point() for tensor in tensors.values()):
        raise DamagedError("its weights are no floating numbers", where=str(path))
    weights = {name: tensor.float().numpy() for name, tensor in tensors.items()}
    return parse_graph(facts.get("graph"), weights, str(path)), facts


# A `Graph` as the bytes of an ONNX file; needs the onnx package.


_OPSET, _IR_VERSION = 17, 8
_SAME_NAME = {"add": "Add", "sub": "Sub", "mul": "Mul", "relu": "Relu", "sigmoid": "Sigmoid"}


def encode_onnx(graph: Graph) -> bytes:
    """The file: `picture` (n, 3, h, w) goes in, the outputs by what they mean come out, all of any size.

    Raises:
        ModuleNotFoundError: if onnx is not installed.
    """
    onnx: Any = import_module("onnx")
    # Names of steps and weights are any file's; an output may have the same, these here cannot.
    names = {INPUT: INPUT, **{name: f"weight {n}" for n, name in enumerate(graph.weights)}}
    names |= {step.name: f"step {n}" for n, step in enumerate(graph.steps)}
    made = _Nodes(onnx, {names[name]: array for name, array in graph.weights.items()})
    swishes = _find_hard_swishes(graph)
    for step in graph.steps:
        name = names[step.name]
        if step.name in swishes:
            swish = swishes[step.name]
            if swish is not None:
                made.hard_swish(names[swish.given], swish, name)
            continue
        made.add(replace(step, name=name, inputs=tuple(names[each] for each in step.inputs)))
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


@dataclass(frozen=True)
class _HardSwish:
    """scale x · relu6(x + shift) of the `channels` channels of a step."""

    given: str
    scale: float
    shift: float
    channels: int


def _find_hard_swishes(graph: Graph) -> dict[str, _HardSwish | None]:
    """Products that are a hard swish, by their name; and with None the steps that nothing else uses."""
    steps = {step.name: step for step in graph.steps}
    uses = Counter(name for step in graph.steps for name in step.inputs) + Counter(graph.outputs.values())
    shapes = infer_shapes(graph)

    def split(name: str, op: str) -> tuple[str, float] | None:
        """The array and the single number that a step joins, where it is of this kind and used once."""
        step = steps.get(name)
        if step is None or step.op != op or uses[name] != 1:
            return None
        arrays = [each for each in step.inputs if each not in graph.weights]
        numbers = [graph.weights[each] for each in step.inputs if each in graph.weights]
        if len(arrays) != 1 or numbers[0].size != 1:
            return None
        return arrays[0], float(numbers[0].item())

    found: dict[str, _HardSwish | None] = {}
    for step in graph.steps:
        if step.op != "mul":
            continue
        for one, other in (step.inputs, step.inputs[::-1]):
            gate = steps.get(other)
            scaled = split(one, "mul")
            if scaled is None or gate is None or gate.op != "relu6" or uses[other] != 1:
                continue
            moved = split(gate.inputs[0], "add")
            # A scale below 0 would swap the bounds.
            if moved is None or moved[0] != scaled[0] or moved[0] not in steps or scaled[1] <= 0:
                continue
            channels = shapes[moved[0]].channels
            found[step.name] = _HardSwish(moved[0], scaled[1], moved[1], channels)
            found |= {one: None, other: None, gate.inputs[0]: None}
            break
    return found


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

    def hard_swish(self, given: str, swish: _HardSwish, name: str) -> None:
        """x · clip(scale x + scale shift, 0, 6 scale).

        The sum is a convolution of single pixels, which ONNX Runtime joins with the bounds and computes in the
        layout of the convolutions around it: an eighth of the time of `street-small`.
        """
        fields = np.ones((swish.channels, 1, 1, 1), np.float32)
        weights = [
            self.constant(fields * np.float32(swish.scale), f"{name}-scale"),
            self.constant(fields.ravel() * np.float32(swish.scale * swish.shift), f"{name}-shift"),
        ]
        bounds = [
            self.constant(np.zeros((), np.float32), f"{name}-low"),
            self.constant(np.full((), 6 * swish.scale, np.float32), f"{name}-high"),
        ]
        self.node("Conv", [given, *weights], f"{name}-moved", group=swish.channels)
        self.node("Clip", [f"{name}-moved", *bounds], f"{name}-gate")
        self.node("Mul", [given, f"{name}-gate"], name)

    def _relu6(self, given: str, name: str) -> None:
        low = self.constant(np.zeros((), np.float32), f"{name}-low")
        high = self.constant(np.full((), 6, np.float32), f"{name}-high")
        self.node("Clip", [given, low, high], name)


# A `Graph` as a module of torch.


class GraphNetwork(nn.Module):
    """Runs the steps of a graph.

    Args:
        graph: that is run; its weights are the parameters.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.weights = nn.ParameterDict(
            {
                name: nn.Parameter(torch.from_numpy(array.copy()), requires_grad=False)
                for name, array in graph.weights.items()
            }
        )

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        """The outputs of the graph by name.

        Args:
            image: (n, 3, h, w), sides multiples of 32, red first, values from 0 to 255.
        """
        found: dict[str, Tensor] = {INPUT: image, **self.weights}
        for step in self.graph.steps:
            found[step.name] = _run(step.op, [found[name] for name in step.inputs], step.fields)
        return {what: found[name] for what, name in self.graph.outputs.items()}


def _run(op: str, given: list[Tensor], fields: Mapping[str, Any]) -> Tensor:
    if op == "conv":
        return _apply_convolution(given, fields)
    if op == "add":
        return given[0] + given[1]
    if op == "sub":
        return given[0] - given[1]
    if op == "mul":
        return given[0] * given[1]
    if op == "relu":
        return given[0].relu()
    if op == "relu6":
        return functional.relu6(given[0])
    if op == "sigmoid":
        return given[0].sigmoid()
    if op == "mean":
        return given[0].mean(dim=(2, 3), keepdim=True)
    if op == "concat":
        return torch.cat(given, dim=1)
    # Enlarged bilinearly.
    # Where first corners fall on each other, pixel j comes from place j / scale: that is what aligned corners
    # give once the last row and column are doubled, so that n + 1 places lie over n x scale + 1 pixels.
    values = given[0]
    scale = fields["scale"]
    if fields["half_pixel"]:
        return functional.interpolate(values, scale_factor=scale, mode="bilinear", align_corners=False)
    doubled = functional.pad(values, (0, 1, 0, 1), mode="replicate")
    size = [n * scale + 1 for n in values.shape[2:]]
    found = functional.interpolate(doubled, size=size, mode="bilinear", align_corners=True)
    return found[:, :, :-1, :-1]


def _apply_convolution(given: list[Tensor], fields: Mapping[str, Any]) -> Tensor:
    """A convolution as TensorFlow pads it: more to the right and below where the sum is odd."""
    values, kernel = given[:2]
    stride, dilation = fields["stride"], fields["dilation"]
    if fields["pad"]:
        sums = []
        for size, side in zip(values.shape[2:], kernel.shape[2:], strict=True):
            sums.append(max((-(-size // stride) - 1) * stride + (side - 1) * dilation + 1 - size, 0))
        below, right = sums
        # SAME of TensorFlow puts an odd pixel at the end.
        values = functional.pad(values, (right // 2, right - right // 2, below // 2, below - below // 2))
    bias = given[2] if len(given) > 2 else None
    found = functional.conv2d(values, kernel, bias, stride=stride, dilation=dilation, groups=fields["groups"])
    if fields["then"] == "relu":
        return found.relu_()
    return functional.relu6(found, inplace=True) if fields["then"] == "relu6" else found


Backend = Literal["onnx", "torch"]
_QUIET = 3


def has_onnx() -> bool:
    """Whether ONNX Runtime can be used: it and the package that makes its files are installed."""
    return all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))


class Runner:
    """A graph that is ready to run; both ways give the same to about a millionth of the largest value.

    The network is made when it is first run, with as many threads as torch has then.

    Args:
        graph: that is run.
        device: where it runs; ONNX Runtime serves the processor alone.
        dtype: what it computes with; other than float32 it is torch.
        backend: which one; None for the best that is installed.
    """

    def __init__(
        self,
        graph: Graph,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.graph, self.device, self.dtype = graph, torch.device(device), dtype or torch.float32
        plain = self.device.type == "cpu" and self.dtype == torch.float32
        self.backend: Backend = backend or ("onnx" if plain and has_onnx() else "torch")
        self._session: Any = None
        self._network: GraphNetwork | None = None

    def run(self, images: Floats32) -> dict[str, Floats32]:
        """The outputs of the graph by name.

        Args:
            images: (n, 3, h, w), red first, values from 0 to 255.
        """
        if self.backend == "onnx":
            self._session = self._session or _session(self.graph)
            names = [each.name for each in self._session.get_outputs()]
            return dict(zip(names, self._session.run(None, {INPUT: images}), strict=True))
        if self._network is None:
            self._network = GraphNetwork(self.graph).eval().to(device=self.device, dtype=self.dtype)
        with torch.inference_mode():
            given = torch.from_numpy(images).to(device=self.device, dtype=self.dtype)
            found = self._network(given)
        return {name: values.float().cpu().numpy() for name, values in found.items()}


def _session(graph: Graph) -> Any:
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _QUIET
    return runtime.InferenceSession(encode_onnx(graph), options, providers=["CPUExecutionProvider"])
