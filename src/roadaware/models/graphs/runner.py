"""Runner: a graph on pictures, by ONNX Runtime where it is installed, else by torch."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import torch

from roadaware.arrays import Floats32
from roadaware.models.graphs.graph import INPUT, Graph
from roadaware.models.graphs.network import GraphNetwork
from roadaware.models.graphs.onnx_form import onnx_bytes

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
        """The outputs of the graph by what they mean.

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
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _QUIET
    return runtime.InferenceSession(onnx_bytes(graph), options, providers=["CPUExecutionProvider"])
