"""Networks on clips: C3D, I3D, ConvLSTM, and two streams with dense flow; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import (
    C3D,
    CONVLSTM,
    I3D,
    TWO_STREAM,
    C3DConfig,
    ConvLSTMConfig,
    I3DConfig,
    TwoStreamConfig,
)
from roadaware.models.crossing.networks.stills import (
    Looked,
    Normalise,
    PictureNet,
    VGG16Trunk,
    initialize_relu_weights,
    normalize_initial_weights,
)

_LAYERS = (("conv1",), ("conv2",), ("conv3a", "conv3b"), ("conv4a", "conv4b"), ("conv5a", "conv5b"))
"""The convolutions between pools, by the names of the released weights."""


class C3DFeatures(nn.Module):
    """The convolutions of C3D: clips (B, 3, T, H, W) to (B, `width`), flattened from (channels, T, H, W).

    Each of the five stages halves rows and columns, the last with a border of zeros; all but the first halve
    the frames too, as long as there are two left (published: 16 frames; 8 or 15 end with one as well).

    Args:
        clip: (frames, height, width) in pixels.
        filters: channels of the five stages.

    Raises:
        UsageError: if the image is smaller than 16 pixels.

    Source:
        Tran et al., ICCV 2015, Figure 3.
    """

    def __init__(self, clip: tuple[int, int, int], filters: Sequence[int] = (64, 128, 256, 512, 512)) -> None:
        super().__init__()
        frames, rows, columns = clip
        if min(rows, columns) < 16 or frames < 1:
            raise UsageError(f"C3D needs at least one frame of 16 pixels, not {frames} of {rows} x {columns}")
        before = 3
        for stage, (names, after) in enumerate(zip(_LAYERS, filters, strict=True)):
            for name in names:
                setattr(self, name, nn.Conv3d(before, after, 3, padding=1))
                before = after
            in_time = 2 if stage and frames > 1 else 1
            border = int(stage == len(_LAYERS) - 1)
            pool = nn.MaxPool3d((in_time, 2, 2), padding=(0, border, border))
            setattr(self, f"pool{stage + 1}", pool)
            frames, rows, columns = frames // in_time, rows // 2 + border, columns // 2 + border
        # with a border an odd side 2n + 1 gives n + 1, an even side 2n gives n + 1 as well
        self.width = before * frames * rows * columns
        initialize_relu_weights(self)

    def forward(self, clip: Tensor) -> Tensor:
        """The features of clips (B, 3, T, H, W)."""
        for stage, names in enumerate(_LAYERS):
            for name in names:
                clip = getattr(self, name)(clip).relu()
            clip = getattr(self, f"pool{stage + 1}")(clip)
        return clip.flatten(1)


class C3DNet(PictureNet):
    """C3D with two fully connected layers."""

    entry = C3D
    config: C3DConfig

    def build(self) -> int:
        """Convolutions and fully connected layers, by the names of the released weights."""
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = C3DFeatures(self.clip_shape(), self.config.filters)
        self.fc6 = nn.Linear(self.trunk.width, self.config.hidden)
        self.fc7 = nn.Linear(self.config.hidden, self.config.hidden)
        self.dropout6, self.dropout7 = nn.Dropout(self.config.dropout), nn.Dropout(self.config.dropout)
        initialize_relu_weights(self.fc6)
        initialize_relu_weights(self.fc7)
        return self.config.hidden

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Output of the second fully connected layer."""
        clip = self.normalise(self.clip(x)).transpose(1, 2)
        inner = self.dropout6(self.fc6(self.trunk(clip)).relu())
        return Looked(self.dropout7(self.fc7(inner).relu()), {})


# A convolutional LSTM on what VGG16 sees in a stack of images; imports torch.

Gate = Literal["hard", "sigmoid"]


class ConvLSTM2d(nn.Module):
    """An LSTM whose products are convolutions: images (B, T, C, H, W) to its last state (B, filters, h, w).

    The input is convolved without a border (h = H - kernel + 1), the state with one of zeros. The gates are
    in torch's order: in, forget, cell, out; the forget gate starts open.

    Args:
        channels, filters: of the images and of the state.
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
        # An open forget gate keeps the state at the beginning, as Keras has it by default.
        open_forget = torch.tensor([0.0, 1.0, 0.0, 0.0]).repeat_interleave(filters)
        self.input.bias = nn.Parameter(open_forget)

    def forward(self, images: Tensor) -> Tensor:
        """The state behind the last image."""
        state: Tensor | None = None
        cell: Tensor | None = None
        for frame in images.unbind(1):
            sums = self.input(frame)
            if state is not None:
                sums = sums + self.state(state)
            into, forget, new, out = sums.chunk(4, dim=1)
            kept = self._open(into) * new.tanh()
            cell = kept if cell is None else self._open(forget) * cell + kept
            state = self._open(out) * cell.tanh()
        if state is None:
            raise UsageError("a ConvLSTM needs at least one image")
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
        channels, what, size = 3, "images", (rows, columns)
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
                normalize_initial_weights(self.trunk, self.normalise(self.clip(dict(some()))[:, -1]))

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The mean of the last state."""
        seen = self.normalise(self.clip(x))
        if self.trunk:
            seen = self.trunk.features(seen.flatten(0, 1)).unflatten(0, seen.shape[:2])
        return Looked(self.dropout(self.recurrent(seen).mean((-2, -1))), {})


# I3D: Inception-v1 with its kernels inflated over time; imports torch.

Sides = tuple[int, int, int]
_POOLED = (2, 7, 7)
"""Frames, rows and columns that the last pool averages."""


def pad_same(x: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """Zeros around (B, C, T, H, W), so that each side becomes its length over the stride, rounded up.

    Where the zeros are odd in number the one more is behind, as in TensorFlow, where the weights come from.
    """
    edges: list[int] = []
    for length, side, step in zip(x.shape[:1:-1], kernel[::-1], stride[::-1], strict=True):
        lacking = max((-(-length // step) - 1) * step + side - length, 0)
        edges += [lacking // 2, lacking - lacking // 2]
    return functional.pad(x, edges) if any(edges) else x


def max_pool_same(x: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """The most of each window of what a ReLU left, so that zeros around it change nothing."""
    return functional.max_pool3d(pad_same(x, kernel, stride), kernel, stride)


class ShiftNorm(nn.BatchNorm3d):
    """Batch norm that learns a shift and no scale; the scale of loaded weights is kept as it is."""

    def __init__(self, channels: int, momentum: float) -> None:
        super().__init__(channels, eps=0.001, momentum=momentum)
        del self.weight
        # A buffer: it is saved and loaded, and nothing learns it.
        self.register_buffer("weight", torch.ones(channels))


class Unit3D(nn.Module):
    """Convolution without bias, batch norm and ReLU, with zeros around as TensorFlow sets them."""

    def __init__(
        self, inputs: int, outputs: int, kernel: Sides, momentum: float, stride: Sides = (1, 1, 1)
    ) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.conv3d = nn.Conv3d(inputs, outputs, kernel, stride, bias=False)
        self.bn = ShiftNorm(outputs, momentum)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, T, H, W) to (B, outputs, T / stride, ...)."""
        found: Tensor = self.bn(self.conv3d(pad_same(x, self.kernel, self.stride)))
        return found.relu()


class Mixed(nn.Module):
    """Four branches side by side: 1; 1 then 3; 1 then 3; max pool then 1.

    Args:
        inputs: channels.
        widths: of the first branch; first and second convolution of the second and third; of the fourth.
        momentum: of the batch norms.
    """

    def __init__(self, inputs: int, widths: Sequence[int], momentum: float) -> None:
        super().__init__()
        one, three = (1, 1, 1), (3, 3, 3)
        w0, w1a, w1b, w2a, w2b, w3 = widths
        self.b0 = Unit3D(inputs, w0, one, momentum)
        self.b1a, self.b1b = Unit3D(inputs, w1a, one, momentum), Unit3D(w1a, w1b, three, momentum)
        self.b2a, self.b2b = Unit3D(inputs, w2a, one, momentum), Unit3D(w2a, w2b, three, momentum)
        self.b3b = Unit3D(inputs, w3, one, momentum)
        self.width = w0 + w1b + w2b + w3

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, T, H, W) to (B, `width`, T, H, W)."""
        pooled = max_pool_same(x, (3, 3, 3), (1, 1, 1))
        branches = [self.b0(x), self.b1b(self.b1a(x)), self.b2b(self.b2a(x)), self.b3b(pooled)]
        return torch.cat(branches, 1)


class I3DTrunk(nn.Module):
    """The convolutions of I3D by the names of its port to torch: an 8th of the frames, a 32nd of the sides.

    Args:
        config: its widths.

    Source:
        Carreira and Zisserman, CVPR 2017, Figure 3.
    """

    def __init__(self, config: I3DConfig) -> None:
        super().__init__()
        stem, inner, behind = config.stem
        momentum = config.momentum
        self.Conv3d_1a_7x7 = Unit3D(3, stem, (7, 7, 7), momentum, (2, 2, 2))
        self.Conv3d_2b_1x1 = Unit3D(stem, inner, (1, 1, 1), momentum)
        self.Conv3d_2c_3x3 = Unit3D(inner, behind, (3, 3, 3), momentum)
        self.width = behind
        self.names: list[str] = []
        for name, widths in zip(MIXED, config.mixed, strict=True):
            block = Mixed(self.width, widths, momentum)
            setattr(self, name, block)
            self.names.append(name)
            self.width = block.width
        initialize_relu_weights(self)

    def forward(self, clip: Tensor) -> Tensor:
        """Output of the last block."""
        x = max_pool_same(self.Conv3d_1a_7x7(clip), (1, 3, 3), (1, 2, 2))
        x = max_pool_same(self.Conv3d_2c_3x3(self.Conv3d_2b_1x1(x)), (1, 3, 3), (1, 2, 2))
        for name in self.names:
            if name in _BEFORE:
                x = max_pool_same(x, *_BEFORE[name])
            x = getattr(self, name)(x)
        return x


MIXED = (
    "Mixed_3b",
    "Mixed_3c",
    "Mixed_4b",
    "Mixed_4c",
    "Mixed_4d",
    "Mixed_4e",
    "Mixed_4f",
    "Mixed_5b",
    "Mixed_5c",
)
_BEFORE: dict[str, tuple[Sides, Sides]] = {
    "Mixed_4b": ((3, 3, 3), (2, 2, 2)),
    "Mixed_5b": ((2, 2, 2), (2, 2, 2)),
}
"""Pools before a block."""


class I3DNet(PictureNet):
    """I3D, averaged; its last 1x1x1 convolution and mean over time are one linear layer on that average."""

    entry = I3D
    config: I3DConfig

    def build(self) -> int:
        """The trunk."""
        _, rows, columns = self.clip_shape()
        if min(rows, columns) < 32:
            raise UsageError(f"I3D halves an image five times; {rows} x {columns} pixels are too few")
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = I3DTrunk(self.config)
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Means over two frames and the image, with dropout, averaged over what is left of them."""
        found = self.trunk(self.normalise(self.clip(x)).transpose(1, 2))
        return Looked(self.dropout(average_pool(found)).mean((-3, -2, -1)), {})


def average_pool(found: Tensor) -> Tensor:
    """Means over 2 frames and 7 x 7 positions, or over as many as there are, of (B, C, T, H, W)."""
    sides = [min(side, length) for side, length in zip(_POOLED, found.shape[2:], strict=True)]
    return functional.avg_pool3d(found, sides, stride=1)


# Where each pixel of an image went in the next: dense Lucas-Kanade over a pyramid; imports torch.

_LEAST_SIDE = 16
"""Pixels of the smallest level of a pyramid."""
_FIRMNESS = 1e-5
"""Squared slope of brightness, per pixel, below which a place hardly pulls: some steps of a byte."""
_STEP_PX = 2.0
"""Most that a round may change, on its level."""
_SMOOTH = 5
"""Side in pixels of the window that averages the flow behind each round, so that neighbours agree."""
_LUMA = (0.299, 0.587, 0.114)


def convert_to_grey(images: Tensor) -> Tensor:
    """Brightness (..., H, W) of images (..., 3, H, W), red first."""
    return (images * images.new_tensor(_LUMA)[:, None, None]).sum(-3)


def estimate_lucas_kanade_flow(
    first: Tensor, second: Tensor, levels: int = 4, window: int = 9, rounds: int = 3
) -> Tensor:
    """Flow (B, 2, H, W), pixels to the right and down: how much further in `second` is what `first` shows.

    Each level of a pyramid, coarse to fine, moves `second` back by the flow so far and solves for the rest in
    a window around every pixel; where a window shows no slope, the flow of the level before stays.
    What leads out of the image does not count.

    Args:
        first, second: (B, H, W) brightness in [0, 1].
        levels: most levels, each half as large as the one before, down to sides of 16 pixels.
        window: side in pixels, odd.
        rounds: on each level.

    Source:
        Lucas and Kanade, IJCAI 1981; the pyramid of Bouguet, 2000.
    """
    pyramid = [(first[:, None], second[:, None])]
    while len(pyramid) < levels and min(pyramid[-1][0].shape[-2:]) >= 2 * _LEAST_SIDE:
        pyramid.append((_downsample_by_two(pyramid[-1][0]), _downsample_by_two(pyramid[-1][1])))
    flow = torch.zeros_like(pyramid[-1][0]).repeat(1, 2, 1, 1)
    for before, after in reversed(pyramid):
        flow = _resize_flow(flow, before.shape[-2], before.shape[-1])
        for _ in range(rounds):
            flow = flow + _step(before, warp_by_flow(after, flow), _within(flow), window)
            flow = functional.avg_pool2d(flow, _SMOOTH, 1, _SMOOTH // 2, count_include_pad=False)
    return flow


def warp_by_flow(image: Tensor, flow: Tensor) -> Tensor:
    """(B, C, H, W) read at each place plus its flow (B, 2, H, W) pixels, the edge continued."""
    rows, columns = image.shape[-2:]
    across = torch.arange(columns, device=flow.device) + flow[:, 0]
    down = torch.arange(rows, device=flow.device)[:, None] + flow[:, 1]
    grid = torch.stack([across * (2 / max(columns - 1, 1)) - 1, down * (2 / max(rows - 1, 1)) - 1], -1)
    return functional.grid_sample(image, grid, padding_mode="border", align_corners=True)


def _within(flow: Tensor) -> Tensor:
    """(B, 1, H, W) 1 where a flow (B, 2, H, W) leads to a place within the image, else 0."""
    rows, columns = flow.shape[-2:]
    across = torch.arange(columns, device=flow.device) + flow[:, :1]
    down = torch.arange(rows, device=flow.device)[:, None] + flow[:, 1:]
    inside = (across >= 0) & (across <= columns - 1) & (down >= 0) & (down <= rows - 1)
    return inside.to(flow.dtype)


def _step(before: Tensor, after: Tensor, within: Tensor, window: int) -> Tensor:
    """(B, 2, H, W) the least-squares motion within each window that is left between two images."""
    # Central differences to the right and down, of (B, 1, H, W) and in its shape.
    wide = functional.pad((before + after) / 2, (1, 1, 1, 1), mode="replicate")
    across = (wide[..., 1:-1, 2:] - wide[..., 1:-1, :-2]) / 2
    down = (wide[..., 2:, 1:-1] - wide[..., :-2, 1:-1]) / 2
    rest = after - before
    products = (
        torch.cat([across * across, across * down, down * down, across * rest, down * rest], 1) * within
    )
    xx, xy, yy, xt, yt = functional.avg_pool2d(
        products, window, 1, window // 2, count_include_pad=False
    ).unbind(1)
    # Added to the diagonal, so that places without slopes have a solution, which is 0.
    xx, yy = xx + _FIRMNESS, yy + _FIRMNESS
    size = xx * yy - xy * xy
    step = torch.stack([xy * yt - yy * xt, xy * xt - xx * yt], 1) / size[:, None]
    return step.clamp(-_STEP_PX, _STEP_PX)


def _downsample_by_two(image: Tensor) -> Tensor:
    """(B, 1, H, W) blurred, at half the size; each pixel stands in the middle of four."""
    taps = image.new_tensor([1.0, 3.0, 3.0, 1.0]) / 8
    wide = functional.pad(image, (1, 1, 1, 1), mode="replicate")
    return functional.conv2d(wide, (taps[:, None] * taps)[None, None], stride=2)


def _resize_flow(flow: Tensor, rows: int, columns: int) -> Tensor:
    """A flow (B, 2, h, w) on a finer grid, in pixels of that grid."""
    if flow.shape[-2:] == (rows, columns):
        return flow
    # Lengths are pixels of their own grid and grow with it.
    ratio = flow.new_tensor([columns / flow.shape[-1], rows / flow.shape[-2]])
    finer = functional.interpolate(flow, (rows, columns), mode="bilinear", align_corners=False)
    return finer * ratio[:, None, None]


# Two streams: VGG16 on images, and VGG16 on how they move; imports torch.


class TwoStreamNet(PictureNet):
    """VGG16 on single crops beside VGG16 on stacks of flow between them."""

    entry = TWO_STREAM
    config: TwoStreamConfig

    def build(self) -> int:
        """Both streams."""
        config = self.config
        frames, rows, columns = self.clip_shape()
        if frames <= config.stack:
            raise UsageError(
                f"stacks of {config.stack} flows need at least {config.stack + 1} frames, not {frames}"
            )
        self.normalise = Normalise(config.pixels, config.swapped)
        size, hidden = (rows, columns), config.hidden
        self.trunk = VGG16Trunk(config.filters, hidden, size, dropout=config.dropout)
        self.motion = VGG16Trunk(config.filters, hidden, size, 2 * config.stack, config.dropout)
        return self.trunk.width + self.motion.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The features of both streams, each averaged over the stacks."""
        clip = self.clip(x)
        stacks = stack_flow_windows(self.flow(clip), self.config.stack)
        # The image in the middle of each stack of flows.
        start = (self.config.stack - 1) // 2
        images = self.normalise(clip[:, start : start + stacks.shape[1]])
        streams = ((self.trunk, images), (self.motion, stacks))
        found = [trunk(seen.flatten(0, 1)).reshape(*seen.shape[:2], -1).mean(1) for trunk, seen in streams]
        return Looked(torch.cat(found, 1), {})

    @torch.no_grad()
    def flow(self, clip: Tensor) -> Tensor:
        """(B, T - 1, 2, H, W) pixels from each frame of (B, T, 3, H, W) to the next."""
        config, brightness = self.config, convert_to_grey(clip)
        first, second = brightness[:, :-1].flatten(0, 1), brightness[:, 1:].flatten(0, 1)
        found = estimate_lucas_kanade_flow(
            first, second, config.flow_levels, config.flow_window, config.flow_rounds
        )
        found = found.clamp(-config.flow_limit, config.flow_limit)
        return found.reshape(len(clip), -1, *found.shape[1:])


def stack_flow_windows(flow: Tensor, length: int) -> Tensor:
    """(B, T - length + 1, 2 length, H, W): each run of flows in (B, T, 2, H, W), side by side as channels."""
    runs = flow.unfold(1, length, 1).movedim(-1, 2)
    return runs.flatten(2, 3)
