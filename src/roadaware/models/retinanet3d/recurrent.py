"""Units that carry a state from frame to frame in place of a kernel over time; imports torch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from roadaware.models.retinanet3d.layers import space
from roadaware.models.retinanet3d.temporal import TimeLayer

Unit = Literal["rcn", "rclstm", "rcgru"]


class Recurrent(TimeLayer):
    """A unit whose `_next` makes one frame and the state after it of a frame and the state before it."""

    def __init__(self, width: int) -> None:
        """A unit whose frames have `width` channels; a subclass adds what it learns."""
        super().__init__()
        self.width = width
        self.state: tuple[Tensor, ...] | None = None

    def forget(self) -> None:
        """Begin a new stream."""
        self.state = None

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to the same shape."""
        state = self.state if self.streaming else None
        shown: list[Tensor] = []
        for frame in input.unbind(2):
            state = self._next(frame, state)
            shown.append(state[0])
        if self.streaming:
            self.state = None if state is None else tuple(part.detach() for part in state)
        return torch.stack(shown, dim=2) if shown else input

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The state after a frame (B, C, H, W); its first part is what is shown."""
        raise NotImplementedError


class RecurrentConv(Recurrent):
    """RCN: half of the frame and half of the last state through a matrix; the first frame as it is."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.conv_whh = space(width, width, 1)
        with torch.no_grad():
            self.conv_whh.weight.copy_(torch.eye(width)[:, :, None, None, None])

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        if state is None:
            return (frame,)
        return ((self.conv_whh(state[0].unsqueeze(2)).squeeze(2) + frame) / 2,)


class RecurrentLstm(Recurrent):
    """RC-LSTM: gates in the order input, forget, output, new; begins with zeros."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.recurrent_conv = nn.Conv2d(2 * width, 4 * width, 1)

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        hidden, cell = state if state is not None else (torch.zeros_like(frame), torch.zeros_like(frame))
        gates = self.recurrent_conv(torch.cat([frame, hidden], dim=1)).chunk(4, dim=1)
        cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[3].tanh()
        return gates[2].sigmoid() * cell.tanh(), cell


class RecurrentGru(Recurrent):
    """RC-GRU: gates in the order update, reset; begins with the first frame."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.recurrent_conv_gates = nn.Conv2d(2 * width, 2 * width, 1)
        self.recurrent_conv_out = nn.Conv2d(2 * width, width, 1)

    def _next(self, frame: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        hidden = frame if state is None else state[0]
        update, reset = self.recurrent_conv_gates(torch.cat([frame, hidden], dim=1)).sigmoid().chunk(2, dim=1)
        new = self.recurrent_conv_out(torch.cat([frame, hidden * reset], dim=1)).tanh()
        return (hidden * (1 - update) + new * update,)
