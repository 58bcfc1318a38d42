"""A convolutional LSTM on what VGG16 sees in a stack of pictures; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries.clips import CONVLSTM, ConvLSTMConfig
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet, settled
from roadaware.models.crossing.networks.vgg import VGG16Trunk

Gate = Literal["hard", "sigmoid"]


class ConvLSTM2d(nn.Module):
    """An LSTM whose products are convolutions: pictures (B, T, C, H, W) to its last state (B, filters, h, w).

    The input is convolved without a border (h = H - kernel + 1), the state with one of zeros. The gates are
    in torch's order: in, forget, cell, out; the forget gate starts open.

    Args:
        channels, filters: of the pictures and of the state.
        kernel: side of both convolutions, odd.
        gate: "hard" is max(0, min(1, 0.2 x + 0.5)), "sigmoid" the logistic function.

    Source:
        Shi et al., NIPS 2015, Equation 3 without its peepholes, as ConvLSTM2D of Keras.
    """

    def __init__(self, channels: int, filters: int, kernel: int, gate: Gate) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise UsageError(f"the kernel of a ConvLSTM has an odd side, not {kernel}")
        self.filters, self.gate = filters, gate
        self.input = nn.Conv2d(channels, 4 * filters, kernel)
        self.state = nn.Conv2d(filters, 4 * filters, kernel, padding=kernel // 2, bias=False)
        nn.init.xavier_uniform_(self.input.weight)
        nn.init.orthogonal_(self.state.weight)
        open_forget = torch.tensor([0.0, 1.0, 0.0, 0.0]).repeat_interleave(filters)
        self.input.bias = nn.Parameter(open_forget)

    def forward(self, pictures: Tensor) -> Tensor:
        """The state behind the last picture."""
        state: Tensor | None = None
        cell: Tensor | None = None
        for frame in pictures.unbind(1):
            sums = self.input(frame)
            if state is not None:
                sums = sums + self.state(state)
            into, forget, new, out = sums.chunk(4, dim=1)
            kept = self._open(into) * new.tanh()
            cell = kept if cell is None else self._open(forget) * cell + kept
            state = self._open(out) * cell.tanh()
        if state is None:
            raise UsageError("a ConvLSTM needs at least one picture")
        return state

    def _open(self, sums: Tensor) -> Tensor:
        """How far a gate is open, 0 to 1."""
        return (0.2 * sums + 0.5).clamp(0, 1) if self.gate == "hard" else sums.sigmoid()


class ConvLSTMNet(PictureNet):
    """A ConvLSTM on what VGG16 sees in the crops, its last state averaged over the map.

    Raises:
        UsageError: if the crops are too small for VGG16 or its maps for the kernel.
    """

    entry = CONVLSTM
    config: ConvLSTMConfig

    def build(self) -> int:
        """The trunk, if there is one, and the recurrent layer."""
        c = self.config
        _, rows, columns = self.clip_shape()
        self.normalise = Normalise(c.pixels, c.swapped)
        self.trunk = VGG16Trunk(c.trunk, size=(rows, columns)) if c.trunk else None
        channels, what, size = 3, "pictures", (rows, columns)
        if self.trunk:
            channels, what, size = self.trunk.width, "maps", (rows // 32, columns // 32)
        if min(size) < c.kernel:
            raise UsageError(f"a kernel of {c.kernel} does not fit {what} of {size[0]} x {size[1]}")
        self.recurrent = ConvLSTM2d(channels, c.filters, c.kernel, c.gate)
        self.dropout = nn.Dropout(c.dropout)
        return c.filters

    def settle(self, some: Callable[[], Mapping[str, Tensor]]) -> None:
        """Settle VGG16 on some crops, if the config says so."""
        if self.config.settled and self.trunk:
            with torch.no_grad():
                settled(self.trunk, self.normalise(self.clip(dict(some()))[:, -1]))

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The mean of the last state."""
        seen = self.normalise(self.clip(x))
        if self.trunk:
            seen = self.trunk.features(seen.flatten(0, 1)).unflatten(0, seen.shape[:2])
        return Looked(self.dropout(self.recurrent(seen).mean((-2, -1))), {})
