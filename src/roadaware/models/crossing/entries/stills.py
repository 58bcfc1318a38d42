"""The networks on the last frame: their sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass

from roadaware.models.crossing.entries.pixels import BENCHMARK, SWAPPED, Pixels
from roadaware.models.crossing.entry import crossing_network

_BENCHMARK = f"{BENCHMARK}, model Static"
_WEIGHTS = (
    "none are shipped: without a file it trains from random weights; `models.crossing.published."
    "load_image_weights` reads ImageNet weights by torchvision's names (pixels='imagenet') or by Keras' "
    "(pixels='keras'), from safetensors or what torch saved, not from HDF5"
)


@dataclass(frozen=True)
class VGG16Config:
    """Sizes of VGG16 on the last frame.

    Args:
        filters: channels of the five stages.
        dropout: before the last layer; none in the benchmark.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
    """

    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    dropout: float = 0.0
    pixels: Pixels = "imagenet"
    swapped: bool = False

    @classmethod
    def reference(cls) -> VGG16Config:
        """As the benchmark ran it, swapped colours included."""
        return cls(pixels="keras", swapped=True)

    @classmethod
    def small(cls) -> VGG16Config:
        """A quarter of the width, for crops of 64 pixels."""
        return cls(filters=(16, 32, 64, 128, 128))

    @classmethod
    def tiny(cls) -> VGG16Config:
        """For tests, on crops of 32 pixels."""
        return cls(filters=(4, 6, 8, 12, 16))


@dataclass(frozen=True)
class ResNet50Config:
    """Sizes of ResNet50 on the last frame.

    Args:
        stem: channels of the first convolution.
        blocks: of each stage.
        early_stride: stride in the first 1x1 convolution of a stage (He et al., Keras) instead of in its 3x3
            (torchvision); weights of one do not fit the other, although their shapes do.
        dropout: before the last layer; none in the benchmark.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
    """

    stem: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    early_stride: bool = False
    dropout: float = 0.0
    pixels: Pixels = "imagenet"
    swapped: bool = False

    @classmethod
    def reference(cls) -> ResNet50Config:
        """As the benchmark ran it: Keras' strides, swapped colours."""
        return cls(early_stride=True, pixels="keras", swapped=True)

    @classmethod
    def small(cls) -> ResNet50Config:
        """A quarter of the width, for crops of 64 pixels."""
        return cls(stem=16)

    @classmethod
    def tiny(cls) -> ResNet50Config:
        """For tests, on crops of 32 pixels."""
        return cls(stem=4, blocks=(1, 1, 1, 1))


VGG16 = crossing_network(
    "vgg16",
    VGG16Config,
    "vgg:VGG16Net",
    reads=("crop:context@224",),
    paper=_BENCHMARK,
    diagram="last frame of the crops -> 13 3x3 convolutions with ReLU in five stages, each followed by a "
    "2x2 max pool -> mean over the picture (512) -> linear",
    parameters="14,715,201 with two labels, of them 14,714,688 the convolutions of VGG16",
    inputs=f"the last frame of crop:context@224; {SWAPPED}",
    weights=_WEIGHTS,
    published="the benchmark trains all layers from ImageNet's weights",
)
RESNET50 = crossing_network(
    "resnet50",
    ResNet50Config,
    "resnet:ResNet50Net",
    reads=("crop:context@224",),
    paper=_BENCHMARK,
    diagram="last frame of the crops -> 7x7 convolution, max pool -> 3, 4, 6 and 3 bottleneck blocks "
    "with batch norm -> mean over the picture (2048) -> linear",
    parameters="23,510,081 with two labels, of them 23,508,032 ResNet50 without its last layer",
    inputs=f"the last frame of crop:context@224; {SWAPPED}",
    weights=f"{_WEIGHTS}; Keras' need early_stride=True",
    published="the benchmark has no configuration for it; its rate and batch are VGG16's [recalled]",
)
