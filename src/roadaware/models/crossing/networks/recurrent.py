"""Networks on sequences: recurrent ones, PCPA, transformers on boxes, and those on poses; imports torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import Entry, Pixels
from roadaware.models.crossing.inputs import parse_input_name
from roadaware.models.crossing.networks.clips import C3DFeatures
from roadaware.models.crossing.networks.stills import (
    CrossingNet,
    Looked,
    Normalise,
    Shapes,
    VGG16Trunk,
    normalize_initial_weights,
    select_inputs_by_kind,
)

# Inputs as numbers of each frame: sequences as they are, crops through VGG16; imports torch.


class FrameReader(nn.Module):
    """All inputs as sequences (B, T, width), all kinds of crops through the same VGG16.

    Args:
        name: of the network, for messages.
        shapes: of one sample of each input.
        filters: channels of VGG16's five stages.
        pixels: which numbers the colours become.
        swapped: whether blue is taken for red.

    Raises:
        UsageError: if an input is neither a sequence nor a crop, or the inputs differ in frames.
    """

    def __init__(
        self, name: str, shapes: Shapes, filters: Sequence[int], pixels: Pixels, swapped: bool = False
    ) -> None:
        super().__init__()
        crops = [given for given in shapes if parse_input_name(given).kind == "crop"]
        odd = [given for given, shape in shapes.items() if given not in crops and len(shape) != 2]
        if odd:
            raise UsageError(f"{name} reads sequences and crops, not {', '.join(odd)}")
        frames = {given: shape[0] for given, shape in shapes.items()}
        if len(set(frames.values())) > 1:
            raise UsageError(f"the inputs of {name} should show the same frames, not {frames}")
        self._crops = crops
        if crops:
            # The smallest crops decide whether VGG16 can halve them so often.
            rows, columns = min(shapes[given][1:3] for given in crops)
            self.normalise = Normalise(pixels, swapped)
            self.trunk = VGG16Trunk(filters, size=(rows, columns))
        self.widths = {
            given: self.trunk.width if given in crops else shape[1] for given, shape in shapes.items()
        }

    def forward(self, x: dict[str, Tensor]) -> list[Tensor]:
        """The sequences, in the order of the shapes."""
        return [self._seen(x[name]) if name in self._crops else x[name] for name in self.widths]

    def settle(self, x: Mapping[str, Tensor]) -> None:
        """Let VGG16 begin with channels of mean 0 and deviation 1 on some crops; see `normalize_initial_weights`."""
        if self._crops:
            with torch.no_grad():
                normalize_initial_weights(
                    self.trunk, self.normalise(torch.cat([x[name][:, -1] for name in self._crops]))
                )

    def _seen(self, images: Tensor) -> Tensor:
        """(B, T, width) of images (B, T, 3, H, W)."""
        found: Tensor = self.trunk(self.normalise(images.flatten(0, 1)))
        return found.reshape(*images.shape[:2], -1)


class _Recurrent(CrossingNet):
    """A network whose inputs become one sequence each."""

    config: entries.RecurrentConfig

    def build(self) -> int:
        """Read the inputs, then what the network does with them."""
        name, c = self.entry.card.name, self.config
        self.reader = FrameReader(name, self.shapes, c.filters, c.pixels, c.swapped)
        return self.join([self.reader.widths[name] for name in self.order()])

    def order(self) -> list[str]:
        """The inputs as the network takes them."""
        return list(self.shapes)

    def join(self, widths: list[int]) -> int:
        """Add the recurrent layers; the width of the embedding."""
        raise NotImplementedError

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """(B, width) of sequences (B, T, d)."""
        raise NotImplementedError

    def settle(self, some: Callable[[], Mapping[str, Tensor]]) -> None:
        """Settle VGG16 on some crops, if the config says so."""
        if self.config.settled and self.pictures:
            self.reader.settle(some())

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The last state."""
        read = dict(zip(self.shapes, self.reader(x), strict=True))
        return Looked(self.joined([read[name] for name in self.order()]), {})

    def _gru(self, width: int, layers: int = 1) -> nn.GRU:
        return nn.GRU(width, self.config.width, layers, batch_first=True)


class SingleRNN(_Recurrent):
    """All inputs side by side through one GRU."""

    entry: ClassVar[Entry] = entries.SINGLE_RNN

    def join(self, widths: list[int]) -> int:
        """One GRU."""
        self.gru = self._gru(sum(widths))
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """Its last state."""
        states: Tensor = self.gru(torch.cat(inputs, -1))[0]
        return states[:, -1]


class StackedRNN(SingleRNN):
    """All inputs side by side through a stack of GRUs."""

    entry: ClassVar[Entry] = entries.STACKED_RNN

    def join(self, widths: list[int]) -> int:
        """As many GRUs as inputs, each on the states of the one below."""
        self.gru = self._gru(sum(widths), len(widths))
        return self.config.width


class MultiRNN(_Recurrent):
    """One GRU for each input."""

    entry: ClassVar[Entry] = entries.MULTI_RNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input."""
        self.grus = nn.ModuleList(self._gru(width) for width in widths)
        return self.config.width * len(widths)

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """Their last states side by side."""
        return torch.cat([gru(part)[0][:, -1] for gru, part in zip(self.grus, inputs, strict=True)], -1)


class HierarchicalRNN(_Recurrent):
    """One GRU for each input, and one on all their states."""

    entry: ClassVar[Entry] = entries.HIERARCHICAL_RNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input, and the upper one."""
        self.grus = nn.ModuleList(self._gru(width) for width in widths)
        self.upper = self._gru(self.config.width * len(widths))
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """The last state of the upper one."""
        below = torch.cat([gru(part)[0] for gru, part in zip(self.grus, inputs, strict=True)], -1)
        states: Tensor = self.upper(below)[0]
        return states[:, -1]


class SFRNN(_Recurrent):
    """A tower of GRUs into which one input after the other is fed, the first at the bottom."""

    entry: ClassVar[Entry] = entries.SFRNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input; all but the lowest also read the states below."""
        lowest, *others = widths
        self.grus = nn.ModuleList(
            [self._gru(lowest), *(self._gru(self.config.width + width) for width in others)]
        )
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """The last state of the topmost."""
        states: Tensor = self.grus[0](inputs[0])[0]
        for gru, part in zip(self.grus[1:], inputs[1:], strict=True):
            states = gru(torch.cat([states, part], -1))[0]
        return states[:, -1]


class SFGRU(SFRNN):
    """The tower in the order of the authors' code; inputs that they did not have come last."""

    entry: ClassVar[Entry] = entries.SFGRU

    def order(self) -> list[str]:
        """Crops of the box, crops around it, pose, boxes, the own vehicle, then the rest."""
        ranks = ["crop:box", "crop:context", "crop:surround", "pose", "boxes", "ego"]

        def rank(name: str) -> int:
            parts = parse_input_name(name)
            known = [
                at for at, what in enumerate(ranks) if what in (parts.kind, f"{parts.kind}:{parts.form}")
            ]
            return known[0] if known else len(ranks)

        # The sort is stable: inputs of one rank stay in the order in which they were given.
        return sorted(self.shapes, key=rank)


# Attention layers that networks for pedestrians share; imports torch.


class LastAttention(nn.Module):
    """Attention of a sequence to its last element: (B, T, D) to (B, out).

    score_t = (W h_t) . h_T, a = softmax over t, c = sum_t a_t h_t, answer tanh(V [c, h_T]); no biases.

    Args:
        width: D.
        out: of the answer.

    Source:
        Kotseruba et al., WACV 2021, Section 4.
    """

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width, bias=False)
        self.answer = nn.Linear(2 * width, out, bias=False)

    def weights(self, sequence: Tensor) -> Tensor:
        """(B, T), not negative, each row sums to 1."""
        return torch.einsum("btd,bd->bt", self.score(sequence), sequence[:, -1]).softmax(-1)

    def forward(self, sequence: Tensor) -> Tensor:
        """The answer."""
        context = torch.einsum("bt,btd->bd", self.weights(sequence), sequence)
        answer: Tensor = self.answer(torch.cat([context, sequence[:, -1]], -1))
        return answer.tanh()


class Attending(nn.Module):
    """One sequence that attends to another and keeps itself: LayerNorm(a + dropout(attention(a, b))).

    Args:
        width: of both sequences.
        heads: of the attention.
        dropout: of the answer; the weights are never dropped, so that all dropout is in `nn.Dropout`.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, asking: Tensor, asked: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(B, T, width).

        Args:
            asking: (B, T, width).
            asked: (B, S, width).
            hidden: (T, S), whether an element of `asked` must not be seen.
        """
        attended = self.attention(asking, asked, asked, attn_mask=hidden, need_weights=False)[0]
        answer: Tensor = self.norm(asking + self.drop(attended))
        return answer


class Thinking(nn.Module):
    """The two linear layers of a transformer: LayerNorm(a + dropout(FC(dropout(ReLU(FC(a)))))).

    Args:
        width: of the sequence.
        inner: between the layers.
        dropout: behind both.
    """

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, inner),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(inner, width),
            nn.Dropout(dropout),
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, sequence: Tensor) -> Tensor:
        """(B, T, width)."""
        answer: Tensor = self.norm(sequence + self.layers(sequence))
        return answer


def encode_positions(sequence: Tensor) -> Tensor:
    """(T, width) sines and cosines that encode the places of sequences (.., T, width).

    Source:
        Vaswani et al., NeurIPS 2017, Section 3.5.
    """
    length, width = sequence.shape[-2:]
    at = torch.arange(length, device=sequence.device, dtype=sequence.dtype)[:, None]
    even = torch.arange(0, width, 2, device=sequence.device, dtype=sequence.dtype)
    angle = at * torch.exp(even * (-math.log(10_000.0) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]


# PCPA: attention over time in each input, then attention over the inputs; imports torch.


class PCPA(CrossingNet):
    """C3D on crops and a GRU with attention for each sequence, joined by attention."""

    entry: ClassVar[Entry] = entries.PCPA
    config: entries.PcpaConfig

    def build(self) -> int:
        """Add the branches.

        Raises:
            UsageError: if there are two kinds of crops, or an input that is neither crop nor sequence.
        """
        crops = [name for name in self.pictures if parse_input_name(name).kind == "crop"]
        odd = [name for name in self.shapes if name not in crops + self.sequences]
        if len(crops) > 1 or odd:
            raise UsageError(f"pcpa reads one kind of crops and sequences, not {', '.join([*crops, *odd])}")
        self._crops, width = crops, self.config.width
        for name in crops:
            frames, rows, columns, _ = self.shapes[name]
            self.normalise = Normalise(self.config.pixels)
            self.c3d = C3DFeatures((frames, rows, columns), self.config.filters)
            self.seen = nn.Linear(self.c3d.width, width)
        self.grus = nn.ModuleList(
            nn.GRU(self.shapes[name][1], width, batch_first=True) for name in self.sequences
        )
        self.over_time = nn.ModuleList(LastAttention(width, width) for _ in self.sequences)
        self.drop = nn.Dropout(self.config.dropout)
        if len(self.shapes) > 1:
            self.over_inputs = LastAttention(width, width)
        return width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer of the last attention."""
        clips = [self.normalise(x[name]).transpose(1, 2) for name in self._crops]
        features = [self.seen(self.c3d(clip)).sigmoid() for clip in clips]
        for name, gru, attention in zip(self.sequences, self.grus, self.over_time, strict=True):
            features.append(self.drop(attention(gru(x[name])[0])))
        if len(features) == 1:
            return Looked(features[0], {})
        return Looked(self.over_inputs(torch.stack(features, 1)), {})


class _Layer(nn.Module):
    """One layer of an encoder, or of a decoder where something is asked."""

    def __init__(self, config: entries.TransformerConfig, decodes: bool) -> None:
        super().__init__()
        self.among = Attending(config.width, config.heads, config.dropout)
        self.asks = Attending(config.width, config.heads, config.dropout) if decodes else None
        self.thinks = Thinking(config.width, config.inner, config.dropout)

    def forward(self, x: Tensor, asked: Tensor | None = None, hidden: Tensor | None = None) -> Tensor:
        """(B, T, width)."""
        x = self.among(x, x, hidden)
        if self.asks is not None and asked is not None:
            x = self.asks(x, asked)
        answer: Tensor = self.thinks(x)
        return answer


class BoxEncoder(CrossingNet):
    """Self-attention over the observed frames, averaged."""

    entry: ClassVar[Entry] = entries.ENCODER
    config: entries.TransformerConfig

    def build(self) -> int:
        """The encoder.

        Raises:
            UsageError: if an input is no sequence.
        """
        odd = [name for name in self.shapes if name not in self.sequences]
        if odd:
            raise UsageError(f"{self.entry.card.name} reads sequences such as boxes, not {', '.join(odd)}")
        self.enter = nn.Linear(sum(self.shapes[name][1] for name in self.sequences), self.config.width)
        self.drop = nn.Dropout(self.config.dropout)
        self.encoder = nn.ModuleList(_Layer(self.config, decodes=False) for _ in range(self.config.layers))
        return self.config.width

    def encoded(self, x: dict[str, Tensor]) -> Tensor:
        """(B, T, width)."""
        frames: Tensor = self.enter(torch.cat([x[name] for name in self.sequences], -1))
        frames = self.drop(frames + encode_positions(frames))
        for layer in self.encoder:
            frames = layer(frames)
        return frames

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The mean of the encoded frames."""
        return Looked(self.encoded(x).mean(1), {})


class BoxEncoderDecoder(BoxEncoder):
    """An encoder, and a decoder that is asked for each frame ahead and then for the label."""

    entry: ClassVar[Entry] = entries.ENCODER_DECODER

    def build(self) -> int:
        """The encoder, the questions and the decoder."""
        width = super().build()
        horizon = self.tasks.get("trajectory", self.config.horizon)
        self.questions = nn.Parameter(torch.randn(horizon + 1, width) * width**-0.5)
        self.decoder = nn.ModuleList(_Layer(self.config, decodes=True) for _ in range(self.config.layers))
        if "trajectory" in self.tasks:
            self.path = nn.Linear(width, 4)
        return width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer to the last question, and the boxes of the others."""
        seen = self.encoded(x)
        asked = self.questions + encode_positions(self.questions)
        answers = self.drop(asked).expand(len(seen), -1, -1)
        # What is true stays hidden: a question sees none that comes later.
        later = torch.ones(len(asked), len(asked), dtype=torch.bool, device=seen.device).triu(1)
        for layer in self.decoder:
            answers = layer(answers, seen, later)
        extra = {"trajectory": self.path(answers[:, :-1])} if "trajectory" in self.tasks else {}
        return Looked(answers[:, -1], extra)


class PoseNet(CrossingNet):
    """A network that needs a pose, and takes other sequences beside it."""

    def find_pose(self) -> list[str]:
        """Set `pose`, its name, `joints` and `pairs`; the other sequences.

        Raises:
            UsageError: if there is no pose of x and y of joints, or an input is no sequence.
        """
        name, poses = self.entry.card.name, select_inputs_by_kind(self.shapes, "pose")
        odd = [given for given in self.shapes if given not in self.sequences]
        if len(poses) != 1 or odd:
            raise UsageError(f"{name} needs one pose, and sequences beside it, not {', '.join(self.shapes)}")
        self.pose = poses[0]
        numbers = self.shapes[self.pose][1]
        if numbers % 2 or numbers < 4:
            raise UsageError(f"{name} takes a pose as x and y of two joints or more, not {numbers} numbers")
        self.joints = numbers // 2
        self.pairs = self.joints * (self.joints - 1) // 2
        return [given for given in self.sequences if given != self.pose]

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """As every network, but a pose stays as it is: distances need both axes in one unit."""
        if name != self.pose:
            super().standardise(name, mean, spread)


def as_picture(pose: Tensor) -> Tensor:
    """(B, 2, T, joints) of x and y of each joint in turn (B, T, 2 joints)."""
    return _each(pose).permute(0, 3, 1, 2)


def compute_joint_distances(pose: Tensor) -> Tensor:
    """(B, T, joints (joints - 1) / 2) between all pairs of joints of a frame, (0, 1), (0, 2) .. in turn."""
    at = _each(pose)
    one, other = torch.triu_indices(at.shape[-2], at.shape[-2], 1, device=pose.device)
    # a distance of 0 has no slope, hence the least one
    return (at[..., one, :] - at[..., other, :]).square().sum(-1).clamp_min(1e-12).sqrt()


def _each(pose: Tensor) -> Tensor:
    """(B, T, joints, 2)."""
    return pose.reshape(*pose.shape[:-1], -1, 2)


class ChannelDropout(nn.Module):
    """Dropout of whole channels of (B, C, H, W), drawn by `nn.Dropout` so that it is found where that is."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, image: Tensor) -> Tensor:
        """The image without some channels."""
        kept: Tensor = self.drop(image.new_ones(*image.shape[:2], 1, 1))
        return image * kept


# SPI-Net: distances between joints, and joints as an image; imports torch.


class SpiNet(PoseNet):
    """Linear layers on distances and other sequences, convolutions on the image of joints."""

    entry: ClassVar[Entry] = entries.SPI_NET
    config: entries.SpiNetConfig

    def build(self) -> int:
        """The two branches.

        Raises:
            UsageError: if there is no pose, or the image of joints is too small to be halved so often.
        """
        self._others, c = self.find_pose(), self.config
        frames, least = self.frames_of(self.pose), 2**c.convolutions
        if min(frames, self.joints) < least:
            raise UsageError(
                f"spi-net halves an image of {frames} frames and {self.joints} joints {c.convolutions} "
                f"times; it needs {least} of each"
            )
        layers: list[nn.Module] = []
        width = frames * self.pairs + sum(frames * self.shapes[name][1] for name in self._others)
        for units in c.geometry:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.geometry = nn.Sequential(*layers)
        self.high, self.low = self._stack(7), self._stack(3)
        self.average = nn.Sequential(*(nn.AvgPool2d(2) for _ in range(c.convolutions)))
        channels = 2 * c.filters
        self.behind = nn.Sequential(*self._conv(2 * channels + 2, 3), *self._conv(channels, 3))
        self.dense = nn.Sequential(*self._dense(channels), *self._dense(c.dense))
        return width + c.dense

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Both branches side by side."""
        flat = [compute_joint_distances(x[self.pose]), *(x[name] for name in self._others)]
        geometry = self.geometry(torch.cat([values.flatten(1) for values in flat], -1))
        image = as_picture(x[self.pose])
        seen = torch.cat([self.high(image), self.low(image), self.average(image)], 1)
        return Looked(torch.cat([geometry, self.dense(self.behind(seen).mean((-2, -1)))], -1), {})

    def _stack(self, kernel: int) -> nn.Sequential:
        channels, layers = 2, list[nn.Module]()
        for _ in range(self.config.convolutions):
            layers += [*self._conv(channels, kernel), nn.AvgPool2d(2)]
            channels = 2 * self.config.filters
        return nn.Sequential(*layers)

    def _conv(self, before: int, kernel: int) -> list[nn.Module]:
        channels, c = 2 * self.config.filters, self.config
        conv = nn.Conv2d(before, channels, kernel, padding=kernel // 2, bias=False)
        nn.init.kaiming_uniform_(conv.weight, nonlinearity="relu")
        act = nn.LeakyReLU(c.slope)
        return [conv, nn.BatchNorm2d(channels), act, ChannelDropout(c.dropout_channels)]

    def _dense(self, before: int) -> list[nn.Module]:
        units, c = self.config.dense, self.config
        linear = nn.Linear(before, units, bias=False)
        return [linear, nn.BatchNorm1d(units), nn.LeakyReLU(c.slope), nn.Dropout(c.dropout)]


# TrouSPI-Net: atrous convolutions on an image of joints, U-GRUs on sequences; imports torch.


class UGRU(nn.Module):
    """A GRU from last to first, then one from first to last that also reads the states of the former.

    Args:
        inputs: numbers of a frame.
        width: units of each.

    Source:
        Rozenberg et al., Asymmetrical Bi-RNN for pedestrian trajectory encoding, arXiv 2106.04419.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.backward_gru = nn.GRU(inputs, width, batch_first=True)
        self.forward_gru = nn.GRU(inputs + width, width, batch_first=True)

    def forward(self, sequence: Tensor) -> Tensor:
        """(B, T, width) of (B, T, inputs); every state knows all frames."""
        # Turned back, so that each state stands beside its frame.
        ahead = self.backward_gru(sequence.flip(1))[0].flip(1)
        states: Tensor = self.forward_gru(torch.cat([sequence, ahead], -1))[0]
        return states


class PlaceAttention(nn.Module):
    """An image weighted by channel, then by place, each weight in (0, 1).

    Args:
        channels: of the image.
        reduction: how much narrower it is between the two layers over channels.

    Source:
        Woo et al., CBAM: Convolutional Block Attention Module, ECCV 2018, Equations 2 and 3.
    """

    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = max(1, channels // reduction)
        self.of_channels = nn.Sequential(nn.Linear(channels, inner), nn.ReLU(), nn.Linear(inner, channels))
        # Of 7 x 7 cells as in the paper.
        self.of_places = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, image: Tensor) -> Tensor:
        """(B, C, H, W)."""
        # Mean and maximum go through the same layers, as in Equation 2.
        channels = self.of_channels(image.mean((-2, -1))) + self.of_channels(image.amax((-2, -1)))
        image = image * channels.sigmoid()[..., None, None]
        places = torch.stack([image.mean(1), image.amax(1)], 1)
        weighted: Tensor = image * self.of_places(places).sigmoid()
        return weighted


class TrouSpiNet(PoseNet):
    """One branch on the image of joints, one on their distances and one on each other sequence."""

    entry: ClassVar[Entry] = entries.TROUSPI_NET
    config: entries.TrouSpiNetConfig

    def build(self) -> int:
        """The branches.

        Raises:
            UsageError: if there is no pose, or an input is no sequence.
        """
        self._others, c = self.find_pose(), self.config
        self.branches = nn.ModuleList(self._branch(rate) for rate in c.rates)
        self.seen = nn.Linear(len(c.rates) * c.filters, c.width)
        widths = [self.pairs, *(self.shapes[name][1] for name in self._others)]
        self.grus = nn.ModuleList(UGRU(width, c.width) for width in widths)
        self.over_time = nn.ModuleList(LastAttention(c.width, c.width) for _ in widths)
        self.over_inputs = LastAttention(c.width, c.width)
        self.drop = nn.Dropout(c.dropout)
        return c.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer of the last attention."""
        image = as_picture(x[self.pose])
        seen = torch.cat([branch(image).mean((-2, -1)) for branch in self.branches], -1)
        features = [self.seen(seen).relu()]
        sequences = [compute_joint_distances(x[self.pose]), *(x[name] for name in self._others)]
        for gru, attention, sequence in zip(self.grus, self.over_time, sequences, strict=True):
            features.append(self.drop(attention(gru(sequence))))
        return Looked(self.over_inputs(torch.stack(features, 1)), {})

    def _branch(self, rate: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        before = 2
        for _ in range(2):
            conv = nn.Conv2d(before, self.config.filters, 3, padding=rate, dilation=rate, bias=False)
            layers += [conv, nn.BatchNorm2d(self.config.filters), nn.ReLU()]
            before = self.config.filters
        return nn.Sequential(*layers, PlaceAttention(before, self.config.reduction))
