"""Base of the pedestrian networks, one last layer and outputs by task, and those on single images; imports torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import (
    IMAGENET_MEAN,
    IMAGENET_SPREAD,
    KERAS_MEAN_BGR,
    RESNET50,
    VGG16,
    Entry,
    Pixels,
    ResNet50Config,
    VGG16Config,
)
from roadaware.models.crossing.inputs import parse_input_name

Shapes = Mapping[str, tuple[int, ...]]


class Looked(NamedTuple):
    """Embedding and heads of a network before its last layer.

    Args:
        embedding: (B, width), what the last layer sees.
        extra: answers to tasks beside the label, such as "trajectory" (B, horizon, 4).
    """

    embedding: Tensor
    extra: dict[str, Tensor]


class CrossingNet(nn.Module):
    """A network that ends in one linear layer, so that an uncertainty method can replace that layer.

    A subclass builds its layers in `build`, which returns the width of its embedding, and looks in `look`.

    Args:
        config: sizes, of the entry's `config_class`.
        shapes: of one sample of each input, frames first, in the order they are given.
        labels: how many there are; two make one logit, that of label 1.
        tasks: further answers and their sizes: {"trajectory": 30} frames, {"grid": 576} cells.

    Raises:
        UsageError: if the network cannot work with these inputs, labels or tasks.
    """

    entry: ClassVar[Entry]

    def __init__(
        self, config: Any, shapes: Shapes, labels: int = 2, tasks: Mapping[str, int] | None = None
    ) -> None:
        super().__init__()
        if not shapes:
            raise UsageError(f"{self.entry.card.name} needs inputs, such as {', '.join(self.entry.reads)}")
        if labels < 2:
            raise UsageError(f"a question has at least two labels, not {labels}")
        self.config, self.shapes, self.labels = config, dict(shapes), labels
        self.tasks = dict(tasks or {})
        unknown = [task for task in self.tasks if task not in self.entry.also_tells]
        if unknown:
            raise UsageError(f"{self.entry.card.name} does not answer {', '.join(unknown)}")
        self.sequences = [name for name, shape in self.shapes.items() if len(shape) == 2]
        self.pictures = [name for name, shape in self.shapes.items() if len(shape) == 4]
        for name in self.sequences:
            width = self.shapes[name][-1]
            self.register_buffer(f"mean_{_plain(name)}", torch.zeros(width))
            self.register_buffer(f"spread_{_plain(name)}", torch.ones(width))
        self.last = nn.Linear(self.build(), self.n_scores)
        self.begin()

    @property
    def n_scores(self) -> int:
        """The columns of an answer."""
        return 1 if self.labels == 2 else self.labels

    @abstractmethod
    def build(self) -> int:
        """Add the layers; the width of the embedding.

        Raises:
            UsageError: if the network cannot work with these inputs.
        """

    def begin(self) -> None:
        """Change the first weights of the last layer; nothing unless a network has its own."""

    def settle(self, some: Callable[[], Mapping[str, Tensor]]) -> None:
        """Initialise weights from sample inputs; does nothing by default.

        Args:
            some: gives a batch of inputs as `forward` takes them.
        """

    @abstractmethod
    def look(self, x: dict[str, Tensor]) -> Looked:
        """The embedding of the inputs, and further answers.

        Args:
            x: by name; sequences (B, T, d) float, images (B, T, 3, H, W) in [0, 1].
        """

    def forward(self, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Answers: "label" (B, n_scores) logits, and those of further tasks.

        Args:
            x: by name, as `look` takes them; sequences may hold NaN, which becomes the mean of training.
        """
        looked = self.looked(x)
        return {"label": self.last(looked.embedding), **looked.extra}

    def looked(self, x: Mapping[str, Tensor]) -> Looked:
        """All but the last layer: the embedding of inputs as `forward` takes them, and further answers."""
        return self.look({name: self._standard(name, x[name]) for name in self.shapes})

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """Let a sequence (.., d) come in as (value - mean) / spread; both (d)."""
        getattr(self, f"mean_{_plain(name)}").copy_(mean)
        getattr(self, f"spread_{_plain(name)}").copy_(spread)

    def frames_of(self, name: str) -> int:
        """How many frames an input has."""
        return self.shapes[name][0]

    def _standard(self, name: str, values: Tensor) -> Tensor:
        if len(self.shapes[name]) != 2:
            return values
        mean, spread = getattr(self, f"mean_{_plain(name)}"), getattr(self, f"spread_{_plain(name)}")
        return torch.nan_to_num((values - mean) / spread, nan=0.0)


def select_inputs_by_kind(shapes: Shapes, kind: str) -> list[str]:
    """The names of the inputs of one kind, such as `boxes` or `crop`."""
    return [name for name in shapes if parse_input_name(name).kind == kind]


def _plain(name: str) -> str:
    """A name as torch takes it for a buffer."""
    return name.replace(":", "_").replace("@", "_")


class PictureNet(CrossingNet):
    """A network on the crops of a pedestrian, and on nothing else."""

    def clip_shape(self) -> tuple[int, int, int]:
        """(frames, height, width) of its one input.

        Raises:
            UsageError: if it is given other inputs than one of images.
        """
        if list(self.shapes) != self.pictures or len(self.pictures) != 1:
            name, usual = self.entry.card.name, ", ".join(self.entry.reads)
            raise UsageError(
                f"{name} looks at the crops of one input and at nothing else, such as {usual}; "
                f"given are {', '.join(self.shapes)}"
            )
        frames, rows, columns, _ = self.shapes[self.pictures[0]]
        return frames, rows, columns

    def clip(self, x: dict[str, Tensor]) -> Tensor:
        """Its one input (B, T, 3, H, W), in [0, 1]."""
        return x[self.pictures[0]]


class Normalise(nn.Module):
    """Colours in [0, 1] as the numbers that image weights were trained on.

    Args:
        pixels: which numbers; see `entries.pixels.Pixels`.
        swapped: the image comes in with blue first although the rule takes red to be first.
    """

    def __init__(self, pixels: Pixels, swapped: bool = False) -> None:
        super().__init__()
        scale, offset, order = _rule(pixels)
        if swapped:
            order = order[::-1]
        self.order = None if order == [0, 1, 2] else order
        # not among the saved weights: the config says which rule it is
        self.register_buffer("scale", scale[:, None, None], persistent=False)
        self.register_buffer("offset", offset[:, None, None], persistent=False)

    def forward(self, image: Tensor) -> Tensor:
        """Images (..., 3, H, W) in the same shape."""
        if self.order is not None:
            image = image[..., self.order, :, :]
        return image * cast(Tensor, self.scale) + cast(Tensor, self.offset)


def _rule(pixels: Pixels) -> tuple[Tensor, Tensor, list[int]]:
    """Factor and offset of each channel as the network sees them, and which colour each is."""
    ones = torch.ones(3)
    if pixels == "imagenet":
        mean, spread = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_SPREAD)
        return 1 / spread, -mean / spread, [0, 1, 2]
    if pixels == "keras":
        return 255 * ones, -torch.tensor(KERAS_MEAN_BGR), [2, 1, 0]
    if pixels == "signed":
        return 2 * ones, -ones, [0, 1, 2]
    if pixels == "bytes":
        return 255 * ones, 0 * ones, [0, 1, 2]
    raise UsageError(f"pixels are imagenet, keras, signed or bytes, not '{pixels}'")


@torch.no_grad()
def normalize_initial_weights(trunk: nn.Module, images: Tensor) -> None:
    """Scale and shift first weights so that each channel of each convolution has mean 0 and deviation 1.

    Gates behind a trunk stay shut for good where its features are large and all alike, as those of dark
    images are in a deep stack of ReLUs.

    Args:
        trunk: convolutions, one after another.
        images: (B, C, H, W) as the trunk takes them.

    Source: Krähenbühl et al., "Data-dependent initializations of convolutional neural networks", ICLR 2016.
    """

    def settle(layer: nn.Module, _: tuple[Tensor, ...], found: Tensor) -> Tensor:
        convolution = cast(nn.Conv2d, layer)
        # A channel that is the same everywhere has no deviation to divide by.
        mean, spread = found.mean((0, 2, 3)), found.std((0, 2, 3)).clamp_min(1e-6)
        convolution.weight /= spread[:, None, None, None]
        bias = cast(Tensor, convolution.bias)
        bias.copy_((bias - mean) / spread)
        # What a hook returns goes on, so that deeper layers settle on what this one gives from now on.
        return (found - mean[:, None, None]) / spread[:, None, None]

    layers = [layer for layer in trunk.modules() if isinstance(layer, nn.Conv2d)]
    hooks = [layer.register_forward_hook(settle) for layer in layers]
    try:
        trunk(images)
    finally:
        for hook in hooks:
            hook.remove()


def initialize_relu_weights(module: nn.Module) -> None:
    """Draw weights so that deep stacks of ReLUs neither fade nor grow: He et al., ICCV 2015, Equation 10."""
    for layer in module.modules():
        # On the meta device there are no weights to draw.
        if isinstance(layer, nn.Conv2d | nn.Conv3d | nn.Linear) and not layer.weight.is_meta:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


_GROWS = 4
"""A block ends with four times the channels of its middle."""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 to four times the width, beside the input.

    Args:
        inputs, width: channels before and inside.
        stride: of the block.
        early: stride in the first convolution, as He et al. and Keras; else in the 3x3, as torchvision.
    """

    def __init__(self, inputs: int, width: int, stride: int, early: bool) -> None:
        super().__init__()
        first, second = (stride, 1) if early else (1, stride)
        outputs = width * _GROWS
        self.conv1 = nn.Conv2d(inputs, width, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) to (B, 4 width, H / stride, W / stride)."""
        beside = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        out: Tensor = (self.bn3(self.conv3(x)) + beside).relu()
        return out


class ResNet50Trunk(nn.Module):
    """ResNet50 with the names of torchvision: (B, 3, H, W) to means over the image (B, `width`).

    Args:
        width: channels of the stem; the stages have 1, 2, 4 and 8 times as many inside.
        blocks: of each stage.
        early: see `Bottleneck`.

    Source:
        He et al., CVPR 2016, Table 1.
    """

    def __init__(self, width: int, blocks: Sequence[int], early: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.stages = len(blocks)
        before = width
        for stage, count in enumerate(blocks):
            inside = width * 2**stage
            layer = nn.Sequential()
            for block in range(count):
                stride = 2 if stage and block == 0 else 1
                layer.append(Bottleneck(before, inside, stride, early))
                before = inside * _GROWS
            setattr(self, f"layer{stage + 1}", layer)
        self.width = before
        initialize_relu_weights(self)

    def forward(self, image: Tensor) -> Tensor:
        """(B, `width`)."""
        x = self.maxpool(self.bn1(self.conv1(image)).relu())
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        out: Tensor = x.mean((-2, -1))
        return out


class ResNet50Net(PictureNet):
    """The last frame through ResNet50."""

    entry = RESNET50
    config: ResNet50Config

    def build(self) -> int:
        """The trunk."""
        self.clip_shape()
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = ResNet50Trunk(self.config.stem, self.config.blocks, self.config.early_stride)
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Features of the last frame."""
        last = self.normalise(self.clip(x)[:, -1])
        return Looked(self.dropout(self.trunk(last)), {})


# VGG16, and the network that reads it on the last frame; imports torch.

REPEATS = (2, 2, 3, 3, 3)
"""Convolutions before each pool."""


class VGG16Trunk(nn.Module):
    """VGG16 with the names of torchvision: images (B, C, H, W) to features.

    Args:
        filters: channels of the five stages.
        hidden: widths of two fully connected layers behind them; empty to average over the image instead.
        size: (height, width) of the image, needed if there are fully connected layers.
        channels: of the image.
        dropout: behind each fully connected layer.

    Source:
        Simonyan and Zisserman, ICLR 2015, Table 1, column D.
    """

    def __init__(
        self,
        filters: Sequence[int],
        hidden: Sequence[int] = (),
        size: tuple[int, int] = (224, 224),
        channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if min(size) < 2 ** len(REPEATS):
            raise UsageError(f"VGG16 halves an image five times; {size[0]} x {size[1]} pixels are too few")
        layers: list[nn.Module] = []
        for repeats, width in zip(REPEATS, filters, strict=True):
            for _ in range(repeats):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.width = channels
        self.classifier = nn.Sequential() if hidden else None
        if self.classifier is not None:
            self.width = channels * (size[0] // 32) * (size[1] // 32)
            for width in hidden:
                self.classifier.extend([nn.Linear(self.width, width), nn.ReLU(), nn.Dropout(dropout)])
                self.width = width
        initialize_relu_weights(self)

    def forward(self, image: Tensor) -> Tensor:
        """(B, `width`)."""
        found: Tensor = self.features(image)
        if self.classifier is None:
            return found.mean((-2, -1))
        behind: Tensor = self.classifier(found.flatten(1))
        return behind


class VGG16Net(PictureNet):
    """The last frame through VGG16, averaged over the image."""

    entry = VGG16
    config: VGG16Config

    def build(self) -> int:
        """The trunk."""
        _, *size = self.clip_shape()
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = VGG16Trunk(self.config.filters, size=(size[0], size[1]))
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Features of the last frame."""
        last = self.normalise(self.clip(x)[:, -1])
        return Looked(self.dropout(self.trunk(last)), {})


# Semantic maps around a pedestrian, each category seen by itself; imports torch.


class Categories(nn.Module):
    """Convolutions of each category's own, averaged over the map: (B, T, C, H, W) to (B, T, C, `width`).

    Each convolution is 3x3 and halves the map.

    Args:
        categories: C.
        filters: channels of the convolutions.
    """

    def __init__(self, categories: int, filters: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for after in filters:
            wide = (categories * before, categories * after)
            layers += [nn.Conv2d(*wide, 3, stride=2, padding=1, groups=categories), nn.ReLU()]
            before = after
        self.layers = nn.Sequential(*layers)
        self.categories, self.width = categories, before

    def forward(self, maps: Tensor) -> Tensor:
        """The features of each frame and category."""
        found: Tensor = self.layers(maps.flatten(0, 1)).mean((-2, -1))
        return found.reshape(*maps.shape[:2], self.categories, self.width)
