"""Runner: a graph on images, by ONNX Runtime where it is installed, else by torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Floats32
from roadaware.models.graphs.graph import INPUT, Graph
from roadaware.models.graphs.onnx_form import encode_onnx
from roadaware.models.offline import import_onnxruntime

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

    def forward(self, picture: Tensor) -> dict[str, Tensor]:
        """The outputs of the graph by name.

        Args:
            picture: (n, 3, h, w), sides multiples of 32, red first, values from 0 to 255.
        """
        found: dict[str, Tensor] = {INPUT: picture, **self.weights}
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
    return _resize_bilinearly(given[0], fields["scale"], half_pixel=fields["half_pixel"])


def _apply_convolution(given: list[Tensor], fields: Mapping[str, Any]) -> Tensor:
    """A convolution as TensorFlow pads it: more to the right and below where the sum is odd."""
    values, kernel = given[:2]
    stride, dilation = fields["stride"], fields["dilation"]
    if fields["pad"]:
        sums = []
        for size, side in zip(values.shape[2:], kernel.shape[2:], strict=True):
            sums.append(max((-(-size // stride) - 1) * stride + (side - 1) * dilation + 1 - size, 0))
        below, right = sums
        values = functional.pad(values, (right // 2, right - right // 2, below // 2, below - below // 2))
    bias = given[2] if len(given) > 2 else None
    found = functional.conv2d(values, kernel, bias, stride=stride, dilation=dilation, groups=fields["groups"])
    if fields["then"] == "relu":
        return found.relu_()
    return functional.relu6(found, inplace=True) if fields["then"] == "relu6" else found


def _resize_bilinearly(values: Tensor, scale: int, *, half_pixel: bool) -> Tensor:
    """Enlarged bilinearly.

    Where first corners fall on each other, pixel j comes from place j / scale: that is what aligned corners
    give once the last row and column are doubled, so that n + 1 places lie over n x scale + 1 pixels.
    """
    if half_pixel:
        return functional.interpolate(values, scale_factor=scale, mode="bilinear", align_corners=False)
    doubled = functional.pad(values, (0, 1, 0, 1), mode="replicate")
    size = [n * scale + 1 for n in values.shape[2:]]
    found = functional.interpolate(doubled, size=size, mode="bilinear", align_corners=True)
    return found[:, :, :-1, :-1]


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

    def run(self, pictures: Floats32) -> dict[str, Floats32]:
        """The outputs of the graph by name.

        Args:
            pictures: (n, 3, h, w), red first, values from 0 to 255.
        """
        if self.backend == "onnx":
            self._session = self._session or _session(self.graph)
            names = [each.name for each in self._session.get_outputs()]
            return dict(zip(names, self._session.run(None, {INPUT: pictures}), strict=True))
        if self._network is None:
            self._network = GraphNetwork(self.graph).eval().to(device=self.device, dtype=self.dtype)
        with torch.inference_mode():
            given = torch.from_numpy(pictures).to(device=self.device, dtype=self.dtype)
            found = self._network(given)
        return {name: values.float().cpu().numpy() for name, values in found.items()}


def _session(graph: Graph) -> Any:
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _QUIET
    return runtime.InferenceSession(encode_onnx(graph), options, providers=["CPUExecutionProvider"])
