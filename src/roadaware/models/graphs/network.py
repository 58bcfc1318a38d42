"""A `Graph` as a module of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.graphs.graph import INPUT, Graph


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
        """The outputs of the graph by what they mean.

        Args:
            picture: (n, 3, h, w), sides multiples of 32, red first, values from 0 to 255.
        """
        found: dict[str, Tensor] = {INPUT: picture, **self.weights}
        for step in self.graph.steps:
            found[step.name] = _run(step.op, [found[name] for name in step.inputs], step.fields)
        return {what: found[name] for what, name in self.graph.outputs.items()}


def _run(op: str, given: list[Tensor], fields: Mapping[str, Any]) -> Tensor:
    if op == "conv":
        return _convolved(given, fields)
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
    return _enlarged(given[0], fields["scale"], half_pixel=fields["half_pixel"])


def _convolved(given: list[Tensor], fields: Mapping[str, Any]) -> Tensor:
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


def _enlarged(values: Tensor, scale: int, *, half_pixel: bool) -> Tensor:
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
