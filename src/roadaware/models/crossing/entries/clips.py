"""The networks on a stack of crops: their sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roadaware.models.crossing.entries.pixels import BENCHMARK, SWAPPED, Pixels
from roadaware.models.crossing.entry import crossing_network

_SCRATCH = "none are shipped: without a file it trains from random weights"
_READS = "`models.crossing.published.load_image_weights` reads"
Widths = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class ConvLSTMConfig:
    """Sizes of the ConvLSTM.

    Args:
        trunk: channels of VGG16's five stages, whose last maps the recurrence sees; empty for raw colours.
        filters: channels of the state.
        kernel: side of its convolutions.
        gate: hard, as Keras' layer has it, or sigmoid.
        dropout: before the last layer; none in the benchmark.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
        settled: whether VGG16, without weights to begin with, begins with channels of mean 0 and deviation 1
            on the first crops that it learns from; as it is drawn, its features can shut the gates for good.
    """

    trunk: tuple[int, ...] = (64, 128, 256, 512, 512)
    filters: int = 64
    kernel: int = 1
    gate: Literal["hard", "sigmoid"] = "hard"
    dropout: float = 0.0
    pixels: Pixels = "imagenet"
    swapped: bool = False
    settled: bool = False

    @classmethod
    def reference(cls) -> ConvLSTMConfig:
        """As the benchmark ran it: no trunk, bytes as they are, which close and open most gates for good."""
        return cls(trunk=(), pixels="bytes", swapped=True)

    @classmethod
    def small(cls) -> ConvLSTMConfig:
        """A quarter of the width, for 8 crops of 64 pixels."""
        return cls(trunk=(16, 32, 64, 128, 128), filters=16)

    @classmethod
    def tiny(cls) -> ConvLSTMConfig:
        """For tests, on crops of 32 pixels."""
        return cls(trunk=(2, 2, 4, 4, 4), filters=8)


@dataclass(frozen=True)
class C3DConfig:
    """Sizes of C3D.

    Args:
        filters: channels of the five stages.
        hidden: width of both fully connected layers.
        dropout: behind each of them.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
    """

    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    hidden: int = 4096
    dropout: float = 0.5
    pixels: Pixels = "imagenet"
    swapped: bool = False

    @classmethod
    def reference(cls) -> C3DConfig:
        """As the benchmark ran it: bytes as they are."""
        return cls(pixels="bytes", swapped=True)

    @classmethod
    def small(cls) -> C3DConfig:
        """A quarter of the width, for 8 crops of 64 pixels."""
        return cls(filters=(16, 32, 64, 128, 128), hidden=1024)

    @classmethod
    def tiny(cls) -> C3DConfig:
        """For tests, on crops of 32 pixels."""
        return cls(filters=(4, 6, 8, 12, 16), hidden=16)


@dataclass(frozen=True)
class I3DConfig:
    """Sizes of I3D.

    Args:
        stem: channels of the first three convolutions.
        mixed: of the nine blocks, each: first branch; first and second convolution of the second and of the
            third branch; fourth branch.
        momentum: share of a batch in the running means of its batch norms.
        dropout: before the last layer.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
    """

    stem: tuple[int, int, int] = (64, 64, 192)
    mixed: tuple[Widths, ...] = (
        (64, 96, 128, 16, 32, 32),
        (128, 128, 192, 32, 96, 64),
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
        (256, 160, 320, 32, 128, 128),
        (384, 192, 384, 48, 128, 128),
    )
    momentum: float = 0.01
    dropout: float = 0.5
    pixels: Pixels = "signed"
    swapped: bool = False

    @classmethod
    def reference(cls) -> I3DConfig:
        """As the benchmark ran it: bytes, although the weights were trained on -1..1."""
        return cls(pixels="bytes", swapped=True)

    @classmethod
    def small(cls) -> I3DConfig:
        """A quarter of the width, for 8 crops of 64 pixels; running means follow within tens of batches."""
        return _narrowed(4, 0.1)

    @classmethod
    def tiny(cls) -> I3DConfig:
        """For tests, on crops of 32 pixels."""
        return _narrowed(16, 0.1)


@dataclass(frozen=True)
class TwoStreamConfig:
    """Sizes of the two streams.

    Args:
        filters: channels of the five stages of both VGG16s.
        hidden: widths of their fully connected layers.
        stack: flows that the second stream sees at once.
        dropout: behind each fully connected layer; none in the benchmark.
        flow_levels, flow_window, flow_rounds: of the flow; see `networks.flow.lucas_kanade`.
        flow_limit: pixels, beyond which a flow is cut.
        pixels: which numbers the colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
    """

    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    hidden: tuple[int, ...] = (4096, 4096)
    stack: int = 10
    dropout: float = 0.0
    flow_levels: int = 4
    flow_window: int = 9
    flow_rounds: int = 3
    flow_limit: float = 20.0
    pixels: Pixels = "imagenet"
    swapped: bool = False

    @classmethod
    def reference(cls) -> TwoStreamConfig:
        """The benchmark's colours; its flow came from files that are not published."""
        return cls(pixels="keras", swapped=True)

    @classmethod
    def small(cls) -> TwoStreamConfig:
        """A quarter of the width, for 8 crops of 64 pixels."""
        return cls(filters=(16, 32, 64, 128, 128), hidden=(1024, 1024), stack=5)

    @classmethod
    def tiny(cls) -> TwoStreamConfig:
        """For tests, on 8 crops of 32 pixels."""
        return cls(filters=(4, 6, 8, 12, 16), hidden=(16, 16), stack=5, flow_rounds=1)


def _narrowed(by: int, momentum: float) -> I3DConfig:
    """I3D with all widths divided, none below 2."""
    full = I3DConfig()
    a, b, c = (max(width // by, 2) for width in full.stem)
    mixed = []
    for widths in full.mixed:
        p, q, r, s, t, u = (max(width // by, 2) for width in widths)
        mixed.append((p, q, r, s, t, u))
    return I3DConfig(stem=(a, b, c), mixed=tuple(mixed), momentum=momentum)


CONVLSTM = crossing_network(
    "convlstm",
    ConvLSTMConfig,
    "convlstm:ConvLSTMNet",
    reads=("crop:context@224",),
    paper=f"{BENCHMARK}, model ConvLSTM",
    diagram="crops, one after another -> the convolutions of VGG16 (512 maps of 7x7) -> convolutional LSTM "
    "of 64 filters with 1x1 kernels and hard gates -> mean of its last state over the map -> linear",
    parameters="14,862,465 with two labels, of which 14,714,688 are VGG16's; 17,473 without it (`trunk: []`)",
    inputs="crop:context@224; the IV 2022 paper and the benchmark's configuration let a CNN see the crops "
    "first, yet the benchmark's code leaves it out: `trunk: []` and `reference()` do as it ran, on raw "
    f"colours, where no pixel meets another one before the mean; {SWAPPED}; its penalty of 1e-4 on squared "
    "weights belongs to training",
    weights=f"{_SCRATCH}; {_READS} ImageNet weights of VGG16 by torchvision's names (pixels='imagenet') or "
    "by Keras' (pixels='keras')",
)
C3D = crossing_network(
    "c3d",
    C3DConfig,
    "c3d:C3DNet",
    reads=("crop:context@112",),
    paper=f"Tran et al., ICCV 2015; {BENCHMARK}, model C3D",
    diagram="crops -> 8 3x3x3 convolutions with ReLU in five stages, max pools of 2x2x2 (the first "
    "1x2x2, the last with a border of zeros) -> 8192 -> two fully connected layers of 4096 with ReLU "
    "and dropout 0.5 -> linear",
    parameters="77,999,873 with two labels, of them 27,655,936 the convolutions",
    inputs=f"crop:context@112, 16 frames; {SWAPPED}",
    weights=f"{_SCRATCH}; {_READS} Sports-1M weights by the names of c3d.pickle, whose demo feeds "
    "bytes, red first, with no mean taken off (pixels='bytes'); fully connected layers only for 16 "
    "crops of 112 pixels",
    published="the benchmark trains all layers from Sports-1M weights",
)
I3D = crossing_network(
    "i3d",
    I3DConfig,
    "i3d:I3DNet",
    reads=("crop:context@224",),
    paper=f"Carreira and Zisserman, CVPR 2017; {BENCHMARK}, model I3D",
    diagram="crops -> Inception-v1 with kernels inflated over time (7x7x7 stem, nine blocks of four "
    "branches, batch norm without scale) -> means over 2x7x7 -> dropout 0.5 -> mean over time -> "
    "linear, which is the 1x1x1 convolution before the mean",
    parameters="12,281,009 with two labels, of them 12,279,984 before the last layer (12,287,264 with "
    "scales)",
    inputs=f"crop:context@224 [recalled: the benchmark has no configuration for it], 16 frames; {SWAPPED}",
    weights=f"{_SCRATCH}; {_READS} Kinetics weights of the red-green-blue stream by the names of the "
    "usual port to torch (pixels='signed'); scales of their batch norms are kept and not trained",
    published="the benchmark starts from ImageNet and Kinetics weights; the paper on calibration names "
    "Sports-1M",
)
TWO_STREAM = crossing_network(
    "two-stream",
    TwoStreamConfig,
    "two_stream:TwoStreamNet",
    reads=("crop:context@224",),
    paper=f"Simonyan and Zisserman, NIPS 2014; {BENCHMARK}, model TwoStream",
    diagram="crops -> VGG16 with its two fully connected layers (4096) on the frame in the middle of "
    "each run of 10 flows; flow between crops, dense Lucas-Kanade over a pyramid -> 20 channels -> a "
    "second VGG16; both averaged over the runs, side by side -> linear. The benchmark trains the "
    "streams apart, frame by frame, and averages their probabilities; here one linear layer weighs "
    "both",
    parameters="268,539,073 with two labels, of them 134,260,544 the stream of pictures",
    inputs=f"crop:context@224; {SWAPPED}; flow is between crops that follow the box, in their pixels, "
    "so the motion of the box itself is not in it, and 16 frames make 6 runs; the benchmark cuts the "
    "flow of whole pictures, from files that were not released, and has 7",
    weights=f"{_SCRATCH}, as the benchmark does; {_READS} ImageNet weights of VGG16 into the stream of "
    "pictures",
)
