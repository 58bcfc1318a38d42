"""What is known of each network for pedestrians before torch is loaded: its inputs, configuration and
card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from roadaware.models import ModelCard

_TASKS = ("action", "intention", "risk")
_LICENCE = "trained ones: that of the data; published image weights: see where they come from"


@dataclass(frozen=True)
class Entry:
    """A network for pedestrians.

    Args:
        card: its facts.
        config_class: the frozen dataclass of its sizes; the defaults are the published ones.
        network: where it is built, as `module:Class`.
        reads: the inputs of its paper, in order.
        also_tells: tasks it can answer beside the label: trajectory, grid.
        each_frame: whether it can answer at every frame, and not at the last alone.
    """

    card: ModelCard
    config_class: type[Any]
    network: str
    reads: tuple[str, ...]
    also_tells: tuple[str, ...] = ()
    each_frame: bool = False


def build_crossing_entry(
    name: str,
    config_class: type[Any],
    network: str,
    *,
    reads: tuple[str, ...],
    also_tells: tuple[str, ...] = (),
    each_frame: bool = False,
    paper: str,
    diagram: str,
    parameters: str,
    inputs: str,
    weights: str,
    published: str = "",
) -> Entry:
    """Build an entry with the facts that all pedestrian networks share.

    Args:
        name: in the registry.
        config_class: see `Entry`.
        network: where it is built, as `module:Class` below `models.crossing.networks`.
        reads, also_tells, each_frame: see `Entry`.
        paper, diagram, parameters, inputs, weights, published: see `ModelCard`.
    """
    card = ModelCard(
        name=name,
        paper=paper,
        family="network",
        tasks=_TASKS,
        diagram=diagram,
        parameters=parameters,
        inputs=inputs,
        weights=weights,
        licence=_LICENCE,
        published=published,
    )
    where = f"roadaware.models.crossing.networks.{network}"
    return Entry(card, config_class, where, reads, also_tells, each_frame)


# The numbers that images become before a network sees them, by name.

Pixels = Literal["imagenet", "keras", "signed", "bytes"]
"""imagenet: less the mean of ImageNet, over its deviation (torchvision's weights); keras: 0..255, blue first,
less the mean (Keras' VGG16 and ResNet50, after Caffe); signed: -1..1 (I3D); bytes: 0..255 (C3D)."""
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)
KERAS_MEAN_BGR = (103.939, 116.779, 123.68)
SWAPPED = (
    "images are red first, in [0, 1]; the field `swapped` repeats the benchmark's slip of reading them "
    "blue first and taking them to be red first"
)
"""Said on every card."""
BENCHMARK = "Kotseruba et al., Benchmark for evaluating pedestrian action prediction, WACV 2021"
"""Where the networks on crops come from."""

# The networks on a stack of crops: their sizes and cards.

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
        swapped: whether blue is taken for red, as the benchmark's images were.
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
        swapped: whether blue is taken for red, as the benchmark's images were.
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
        swapped: whether blue is taken for red, as the benchmark's images were.
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
        return _narrow_i3d(4, 0.1)

    @classmethod
    def tiny(cls) -> I3DConfig:
        """For tests, on crops of 32 pixels."""
        return _narrow_i3d(16, 0.1)


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
        swapped: whether blue is taken for red, as the benchmark's images were.
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


def _narrow_i3d(by: int, momentum: float) -> I3DConfig:
    """I3D with all widths divided, none below 2."""
    full = I3DConfig()
    a, b, c = (max(width // by, 2) for width in full.stem)
    mixed = []
    for widths in full.mixed:
        p, q, r, s, t, u = (max(width // by, 2) for width in widths)
        mixed.append((p, q, r, s, t, u))
    return I3DConfig(stem=(a, b, c), mixed=tuple(mixed), momentum=momentum)


CONVLSTM = build_crossing_entry(
    "convlstm",
    ConvLSTMConfig,
    "clips:ConvLSTMNet",
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
C3D = build_crossing_entry(
    "c3d",
    C3DConfig,
    "clips:C3DNet",
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
I3D = build_crossing_entry(
    "i3d",
    I3DConfig,
    "clips:I3DNet",
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
TWO_STREAM = build_crossing_entry(
    "two-stream",
    TwoStreamConfig,
    "clips:TwoStreamNet",
    reads=("crop:context@224",),
    paper=f"Simonyan and Zisserman, NIPS 2014; {BENCHMARK}, model TwoStream",
    diagram="crops -> VGG16 with its two fully connected layers (4096) on the frame in the middle of "
    "each run of 10 flows; flow between crops, dense Lucas-Kanade over a pyramid -> 20 channels -> a "
    "second VGG16; both averaged over the runs, side by side -> linear. The benchmark trains the "
    "streams apart, frame by frame, and averages their probabilities; here one linear layer weighs "
    "both",
    parameters="268,539,073 with two labels, of them 134,260,544 the stream of images",
    inputs=f"crop:context@224; {SWAPPED}; flow is between crops that follow the box, in their pixels, "
    "so the motion of the box itself is not in it, and 16 frames make 6 runs; the benchmark cuts the "
    "flow of whole images, from files that were not released, and has 7",
    weights=f"{_SCRATCH}, as the benchmark does; {_READS} ImageNet weights of VGG16 into the stream of "
    "pictures",
)

# What is known of the networks that predict path, cell and label at once: sizes and cards.


@dataclass(frozen=True)
class BiPedConfig:
    """Sizes of BiPed.

    Args:
        width: units of each encoding LSTM.
        embed: of each input before the joint LSTM.
        decode: units of each decoder.
        filters: of the convolutions on each category of the semantic maps.
        dropout: of the context.
    """

    width: int = 256
    embed: int = 64
    decode: int = 256
    filters: tuple[int, ...] = (16, 32, 64)
    dropout: float = 0.0

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=64, embed=16, decode=64, filters=(4, 8, 16))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=6, embed=4, decode=6, filters=(2, 3), dropout=0.1)


@dataclass(frozen=True)
class PedFormerConfig:
    """Sizes of PedFormer.

    Args:
        width: of each frame inside.
        heads: of each attention.
        inner: width between the two linear layers of a transformer's layer.
        experts: layers that all tasks share through gates.
        filters: of the convolutions on each category of the semantic maps.
        dropout: behind each attention and linear layer.
    """

    width: int = 128
    heads: int = 4
    inner: int = 256
    experts: int = 3
    filters: tuple[int, ...] = (16, 32, 64)
    dropout: float = 0.1

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=32, inner=64, filters=(4, 8, 16))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, heads=2, inner=8, experts=2, filters=(2, 3))


_INPUTS = (
    "boxes less the last box (4), cell of 60 pixels, motion of the own vehicle, maps of semantic categories "
    "around the pedestrian; any sequences will do, and without maps that branch is missing; standardised on "
    "train"
)
BIPED = build_crossing_entry(
    "biped",
    BiPedConfig,
    "multitask:BiPed",
    reads=("boxes:last", "grid", "ego:speed", "maps@32"),
    also_tells=("trajectory", "grid"),
    paper="Rasouli et al., Bifold and Semantic Reasoning for Pedestrian Behavior Prediction, ICCV 2021",
    diagram="cell -> 64 learned numbers; an LSTM 256 for each sequence; each sequence -> FC 64, side "
    "by side -> a joint LSTM 256; each category of the maps -> 3 convolutions of its own, mean over "
    "the map -> weighted sum of categories -> LSTM 256; last states side by side = context -> label: "
    "FC 256 of its own and FC 256 shared by all tasks, side by side -> FC (the mean of two heads is "
    "one linear layer on both); trajectory: mean of a decoding LSTM on the context and one on the "
    "shared FC -> FC 4; cell: mean of FC 256, FC and of FC on the shared. Modules are [recalled] and "
    "confirmed by the paper's figure text, all sizes are our choice; the path is learnt by log cosh "
    "[recalled], label and cell by cross-entropy, at equal weights, which are our choice; the planned "
    "motion of the own vehicle is not given to the decoders, since it is the future",
    parameters="2,493,511 with 3 sequences, maps of 6 categories and no further task [sizes our choice]",
    inputs=_INPUTS,
    weights="none are shipped, and none were published",
    published="PIE accuracy 0.91, AUC 0.90, F1 0.85 [recalled]",
)
PEDFORMER = build_crossing_entry(
    "pedformer",
    PedFormerConfig,
    "multitask:PedFormer",
    reads=("boxes:last", "boxes:scaled", "ego:filtered", "grid", "maps@32"),
    also_tells=("trajectory", "grid"),
    paper="Rasouli and Kotseruba, PedFormer: Pedestrian Behavior Prediction via Cross-Modal Attention "
    "Modulation and Gated Multitask Learning, ICRA 2023",
    diagram="cell -> 128 learned numbers; each sequence -> FC 128, plus sines of its place -> "
    "self-attention (4 heads) and two linear layers; for each ordered pair of sequences one attends to "
    "the other; all pairs side by side -> FC 128 ReLU; each category of the maps -> 3 convolutions of "
    "its own -> all categories of a frame -> LSTM 128 -> attention asked by the last encodings of the "
    "sequences, shown beside each frame; 3 shared experts (FC 128 ReLU), their sum weighted for each "
    "task by gates (sigmoid of FC) -> an LSTM 128 for each task: last state -> FC for the label; a "
    "decoding LSTM -> FC 4 for the trajectory; FC 128, FC for the cell. Modules are [recalled] and "
    "confirmed by the abstract, all sizes and the place of the gates are our choice, and so are the "
    "losses of path (log cosh) and cell (cross-entropy) and their equal weights",
    parameters="2,385,668 with 4 sequences, maps of 6 categories and no further task [sizes our choice]",
    inputs=_INPUTS,
    weights="none are shipped, and none were published",
    published="PIE accuracy 0.93, AUC 0.90, F1 0.87 [recalled]; JAAD (IV 2024) AUC 0.87, mAP 0.63, F1 "
    "0.62; risk on JAAD mAP 0.42, balanced accuracy 0.40",
)

# What is known of PCPA: sizes and card.


@dataclass(frozen=True)
class PcpaConfig:
    """Sizes of PCPA.

    Args:
        width: units of each GRU and of every attention's answer.
        dropout: behind the attention over time.
        filters: channels of C3D's five stages.
        pixels: which numbers the colours become; see `Pixels`.
    """

    width: int = 256
    dropout: float = 0.5
    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    pixels: Pixels = "imagenet"

    @classmethod
    def reference(cls) -> Self:
        """As the benchmark ran it: colours as they are, from 0 to 255."""
        return cls(pixels="bytes")

    @classmethod
    def small(cls) -> Self:
        """A quarter of the published widths."""
        return cls(width=64, filters=(16, 32, 64, 128, 128))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, filters=(2, 2, 4, 4, 4))


PCPA = build_crossing_entry(
    "pcpa",
    PcpaConfig,
    "recurrent:PCPA",
    reads=("crop:box@112", "pose", "boxes", "ego:speed"),
    paper="Kotseruba et al., Benchmark for Evaluating Pedestrian Action Prediction, WACV 2021",
    diagram="crops -> C3D without its top, flattened -> FC 256 sigmoid; each sequence -> GRU 256, all "
    "states -> attention over time asked by the last state -> tanh of 256 -> dropout 0.5; all of these, "
    "crops first, as one sequence -> the same attention, asked by the last -> FC. Without crops that "
    "branch is missing; with one input alone there is no second attention",
    parameters="31,165,953 with crops of 112 pixels in 16 frames, pose, boxes and speed",
    inputs="crops of the box of 112 pixels, pose (36), boxes (4), speed (1), 16 frames; the authors' "
    "code takes boxes in pixels, here sequences are standardised on train",
    weights="none are shipped; the authors' code starts C3D at random too",
    published="PIE accuracy 0.87, F1 0.77 [recalled]; JAAD all accuracy 0.83, F1 0.64 (the authors' "
    "correction of 0.85)",
)

# What is known of the recurrent networks of the benchmark: sizes and cards.

_BENCHMARK = "Kotseruba et al., Benchmark for Evaluating Pedestrian Action Prediction, WACV 2021"


@dataclass(frozen=True)
class RecurrentConfig:
    """Sizes of a recurrent network.

    Args:
        width: units of each GRU.
        filters: channels of VGG16's five stages, through which crops are seen.
        pixels: which numbers their colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's images were.
        settled: whether VGG16, without weights to begin with, begins with channels of mean 0 and deviation 1
            on the first crops that it learns from; as it is drawn, its features can shut the gates for good.
    """

    width: int = 256
    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    pixels: Pixels = "imagenet"
    swapped: bool = False
    settled: bool = False

    @classmethod
    def reference(cls) -> Self:
        """As the benchmark ran it: Keras' numbers, swapped colours."""
        return cls(pixels="keras", swapped=True)

    @classmethod
    def small(cls) -> Self:
        """A quarter of the published widths, for crops of 64 pixels."""
        return cls(width=64, filters=(16, 32, 64, 128, 128))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, filters=(2, 2, 4, 4, 4))


def _recurrent(name: str, network: str, *, paper: str, diagram: str, parameters: str) -> Entry:
    return build_crossing_entry(
        name,
        RecurrentConfig,
        f"recurrent:{network}",
        reads=("crop:box@224", "crop:surround@224", "pose", "boxes:first", "ego:speed"),
        paper=paper,
        diagram=f"each crop -> VGG16 without its top, mean over the image (512); {diagram} -> FC",
        parameters=f"{parameters} with all inputs of the paper, of which 14,714,688 are VGG16's; GRUs in "
        "torch's form, which is that of Keras with reset_after",
        inputs="any of two crops of 224 pixels, pose (36), boxes less the first box (4), speed (1); without "
        "crops it is the same network without that branch; sequences standardised on train; " + SWAPPED,
        weights="none are shipped; trained here from scratch unless weights of VGG16 are given",
    )


SINGLE_RNN = _recurrent(
    "single-rnn",
    "SingleRNN",
    paper=f"Kotseruba et al., IV 2020 [recalled], as in {_BENCHMARK}",
    diagram="all numbers of a frame side by side -> GRU 256, last state",
    parameters="15,731,009",
)
MULTI_RNN = _recurrent(
    "multi-rnn",
    "MultiRNN",
    paper=f"after Bhattacharyya et al., CVPR 2018 [recalled], as in {_BENCHMARK}",
    diagram="a GRU 256 for each input -> last states side by side",
    parameters="16,524,609",
)
STACKED_RNN = _recurrent(
    "stacked-rnn",
    "StackedRNN",
    paper=f"after Yue-Hei Ng et al., CVPR 2015 [recalled], as in {_BENCHMARK}",
    diagram="all numbers of a frame side by side -> as many GRUs 256 on top of each other as there are "
    "inputs, last state of the topmost",
    parameters="17,310,017",
)
HIERARCHICAL_RNN = _recurrent(
    "hierarchical-rnn",
    "HierarchicalRNN",
    paper=f"after Du et al., CVPR 2015 [recalled], as in {_BENCHMARK}",
    diagram="a GRU 256 for each input -> their states of each frame side by side -> GRU 256, last state",
    parameters="17,704,769",
)
SFRNN = _recurrent(
    "sfrnn",
    "SFRNN",
    paper=f"Rasouli et al., BMVC 2019, as in {_BENCHMARK}",
    diagram="a tower of GRUs 256, one for each input in the given order, each reading that input beside all "
    "states of the GRU below; last state of the topmost",
    parameters="17,310,017",
)
SFGRU = _recurrent(
    "sfgru",
    "SFGRU",
    paper="Rasouli et al., Pedestrian Action Anticipation using Contextual Feature Fusion in Stacked RNNs, "
    "BMVC 2019",
    diagram="a tower of GRUs 256, one for each input in the order of the authors' code whatever the order "
    "given (box crop, surround crop, pose, boxes, speed), each reading that input beside all states of the "
    "GRU below; last state of the topmost. The authors' Keras of 2019 resets before the product and uses the "
    "hard sigmoid; this is torch's GRU",
    parameters="17,310,017",
)

# What is known of the networks on poses: sizes and cards.


@dataclass(frozen=True)
class SpiNetConfig:
    """Sizes of SPI-Net.

    Args:
        filters: half the channels of the convolutions on the image of joints.
        convolutions: of each of the two stacks; the image is halved behind each.
        dense: units of the two layers behind the convolutions.
        geometry: units of the layers on distances and other sequences.
        slope: of the leaky ReLUs.
        dropout_channels: how often a channel of a convolution is dropped.
        dropout: behind the dense layers.
    """

    filters: int = 32
    convolutions: int = 3
    dense: int = 128
    geometry: tuple[int, ...] = (128, 64, 32)
    slope: float = 0.2
    dropout_channels: float = 0.1
    dropout: float = 0.5

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(filters=8, dense=32, geometry=(32, 16, 8))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(filters=3, dense=8, geometry=(8, 6))


@dataclass(frozen=True)
class TrouSpiNetConfig:
    """Sizes of TrouSPI-Net.

    Args:
        width: units of each GRU and of every attention's answer.
        filters: channels of each branch on the image of joints.
        rates: distance between the taps of the convolutions, one branch each.
        reduction: how much narrower the attention over channels is inside.
        dropout: behind the attention over time.
    """

    width: int = 64
    filters: int = 32
    rates: tuple[int, ...] = (1, 2, 4)
    reduction: int = 4
    dropout: float = 0.5

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=16, filters=8)

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=6, filters=4, rates=(1, 2), reduction=1)


_SKELETAL_INPUTS = (
    "pose (36: x and y of 18 joints as shares, zeros where a joint is unknown, not standardised since "
    "distances between joints are taken), boxes (4) and other sequences, which are standardised on train; it "
    "needs a pose"
)
SPI_NET = build_crossing_entry(
    "spi-net",
    SpiNetConfig,
    "recurrent:SpiNet",
    reads=("pose", "boxes"),
    paper="Gesnouin et al., Predicting Intentions of Pedestrians from 2D Skeletal Pose Sequences with "
    "a Representation-Focused Multi-Branch Deep Learning Network, Algorithms 13(12), 2020, as in "
    "Gesnouin et al., IV 2022",
    diagram="geometry: distances of all pairs of joints in all frames, beside all other sequences -> "
    "FC 128, 64, 32 with ReLU (the encoder of the paper's auto-encoder; its decoder and separability "
    "loss are left out, as in IV 2022 [recalled]); joints: image of frames x joints x 2 -> two "
    "stacks, 7x7 and 3x3, each 3 times [64 channels, batch norm, leaky ReLU 0.2, channels dropped 0.1, "
    "halved by averaging], beside the image itself, averaged as often -> two 3x3 convolutions -> "
    "mean -> twice [FC 128, batch norm, leaky ReLU, dropout 0.5 [recalled]]; both side by side -> FC",
    parameters="952,577 with pose and boxes in 16 frames",
    inputs=_SKELETAL_INPUTS + "; at least 8 frames",
    weights="none are shipped",
)
TROUSPI_NET = build_crossing_entry(
    "trouspi-net",
    TrouSpiNetConfig,
    "recurrent:TrouSpiNet",
    reads=("pose", "boxes", "ego:speed"),
    paper="Gesnouin et al., TrouSPI-Net: Spatio-temporal attention on parallel atrous convolutions and "
    "U-GRUs for skeletal pedestrian crossing prediction, FG 2021",
    diagram="image of frames x joints x 2 -> branches of two 3x3 convolutions with their taps 1, 2 "
    "or 4 apart (32 channels, batch norm, ReLU), each with attention over channels, then over places "
    "-> mean over the image, side by side -> FC 64; distances of all pairs of joints, boxes and "
    "every other sequence: U-GRU 64 (a GRU from the last frame to the first, whose states stand beside "
    "the input of a GRU from first to last) -> attention over time as in PCPA -> dropout 0.5; all of "
    "these -> attention over inputs as in PCPA -> FC. Branches, U-GRUs and attentions are [recalled] "
    "and confirmed by the abstract, all sizes are our choice",
    parameters="260,706 with pose, boxes and speed [sizes our choice]",
    inputs=_SKELETAL_INPUTS,
    weights="none are shipped",
    published="JAAD behaviour F1 0.76; PIE F1 0.80, accuracy 0.88 and AUC 0.88 [recalled]",
)

# What is known of our own network: sizes and card.

LEAST = 1e-5
"""Added to the share of every region before its logarithm is taken."""
LOG_WIDTHS = (-6.0, 2.0)
"""The narrowest and the widest component of whereabouts: logarithms of widths of the image."""


@dataclass(frozen=True)
class SteadyConfig:
    """Sizes of our own network.

    Args:
        width: of each frame inside.
        kernel: frames that a convolution joins.
        dilations: distance between these frames, of each convolution.
        dropout: behind each layer.
        places: for labels that are regions of the image from left to right (risk): components of a mixture
            over where the pedestrian will be, whose shares of the regions the last layer begins with; 0 for
            other labels.
    """

    width: int = 64
    kernel: int = 3
    dilations: tuple[int, ...] = (1, 2, 4)
    dropout: float = 0.1
    places: int = 0

    @property
    def frames(self) -> int:
        """How far an answer looks back, its own frame counted: 15 frames with the defaults."""
        return 1 + (self.kernel - 1) * sum(self.dilations)

    @classmethod
    def small(cls) -> Self:
        """It is small."""
        return cls()

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, dilations=(1, 2))


STEADY = build_crossing_entry(
    "steady",
    SteadyConfig,
    "multitask:Steady",
    reads=("centre", "motion", "ego:action"),
    each_frame=True,
    paper="ours",
    diagram="numbers of a frame, standardised -> FC 64, GELU, dropout, FC 64 -> 3 times: LayerNorm, "
    "convolution over 3 frames that looks back 1, 2 or 4 frames at a time, GELU, dropout, plus what came "
    "in -> LayerNorm -> FC. The answer of a frame sees that frame and the 14 before it, so a clip of 15 "
    "frames and an endless stream give the same; `every_frame` answers at each frame, `step` takes one "
    "frame at a time. For risk, `places`: FC -> weights, offsets from where the pedestrian is and "
    "spreads of a mixture of logistic distributions across the image -> log share of each region, "
    "which the last layer sees too",
    parameters="42,881 with centre, motion and one of five ego actions",
    inputs="sequences in which a frame does not tell of later ones: centre and velocities, "
    "velocities in own heights, ego motion; boxes relative to the last or first one are refused; "
    "standardised on train",
    weights="trained by a recipe of this project",
)

# The networks on the last frame: their sizes and cards.

_STILLS_BENCHMARK = f"{BENCHMARK}, model Static"
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
        swapped: whether blue is taken for red, as the benchmark's images were.
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
        swapped: whether blue is taken for red, as the benchmark's images were.
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


VGG16 = build_crossing_entry(
    "vgg16",
    VGG16Config,
    "stills:VGG16Net",
    reads=("crop:context@224",),
    paper=_STILLS_BENCHMARK,
    diagram="last frame of the crops -> 13 3x3 convolutions with ReLU in five stages, each followed by a "
    "2x2 max pool -> mean over the image (512) -> linear",
    parameters="14,715,201 with two labels, of them 14,714,688 the convolutions of VGG16",
    inputs=f"the last frame of crop:context@224; {SWAPPED}",
    weights=_WEIGHTS,
    published="the benchmark trains all layers from ImageNet's weights",
)
RESNET50 = build_crossing_entry(
    "resnet50",
    ResNet50Config,
    "stills:ResNet50Net",
    reads=("crop:context@224",),
    paper=_STILLS_BENCHMARK,
    diagram="last frame of the crops -> 7x7 convolution, max pool -> 3, 4, 6 and 3 bottleneck blocks "
    "with batch norm -> mean over the image (2048) -> linear",
    parameters="23,510,081 with two labels, of them 23,508,032 ResNet50 without its last layer",
    inputs=f"the last frame of crop:context@224; {SWAPPED}",
    weights=f"{_WEIGHTS}; Keras' need early_stride=True",
    published="the benchmark has no configuration for it; its rate and batch are VGG16's [recalled]",
)

# What is known of the transformers on boxes: sizes and cards.

_PAPER = (
    "Achaji et al., Is attention to bounding boxes all you need for pedestrian action prediction?, IV 2022 "
    "(arXiv 2107.08031)"
)
_TRANSFORMERS_INPUTS = "boxes (4); other sequences beside them if given; no crops; standardised on train"


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a transformer on sequences.

    Args:
        width: of each frame inside.
        heads: of each attention.
        layers: of the encoder, and as many of the decoder.
        inner: width between the two linear layers of each layer.
        dropout: behind each attention and linear layer.
        horizon: frames that the decoder looks ahead where no trajectory is asked for.
    """

    width: int = 128
    heads: int = 8
    layers: int = 4
    inner: int = 256
    dropout: float = 0.1
    horizon: int = 30

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width, two layers."""
        return cls(width=32, heads=4, layers=2, inner=64)

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, heads=2, layers=2, inner=12, horizon=3)


ENCODER = build_crossing_entry(
    "transformer-encoder",
    TransformerConfig,
    "recurrent:BoxEncoder",
    reads=("boxes",),
    paper=f"{_PAPER}, TEO",
    diagram="frame -> FC 128, plus sines of its place -> 4 layers of self-attention with 8 heads, inner "
    "width 256, dropout 0.1 -> mean over frames -> FC. That there are an encoder and a classifier is "
    "read; all sizes and the mean are [recalled]",
    parameters="530,689 with boxes [sizes recalled]",
    inputs=_TRANSFORMERS_INPUTS,
    weights="none are shipped",
    published="best of the paper's transformers on PIE: accuracy 0.91, F1 0.83",
)
ENCODER_DECODER = build_crossing_entry(
    "transformer-encoder-decoder",
    TransformerConfig,
    "recurrent:BoxEncoderDecoder",
    reads=("boxes",),
    also_tells=("trajectory",),
    paper=f"{_PAPER}, TED",
    diagram="the encoder of transformer-encoder; a learned question for each of 30 frames ahead, then "
    "one for the label, plus sines of their places -> 4 decoder layers: self-attention that sees no "
    "later question, attention to the encoder, two linear layers -> label: answer to the last question "
    "-> FC; trajectory: answers to the others -> FC 4. That boxes ahead and label are decoded together "
    "with a weighted sum of losses is read; all sizes are [recalled], learned questions are our choice",
    parameters="1,329,793 with boxes and no trajectory [sizes recalled]",
    inputs=_TRANSFORMERS_INPUTS,
    weights="none are shipped",
    published="best of the paper's transformers on PIE: accuracy 0.91, F1 0.83",
)
