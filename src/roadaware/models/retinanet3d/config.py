"""RetinaNetConfig: what a 3D-RetinaNet computes, each published quirk a named field; and DetectRule: which boxes are
detections, and which frames of a clip it answers; torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

from roadaware.errors import UsageError
from roadaware.io.sources import to_printable
from roadaware.models import ModelCard

if TYPE_CHECKING:
    from roadaware.models.retinanet3d.network import RetinaNet3D

Backbone = Literal["c2d", "i3d", "slowfast", "rcn", "rclstm", "rcgru", "compact", "transformers"]
PUBLISHED: tuple[Backbone, ...] = ("c2d", "i3d", "slowfast", "rcn", "rclstm", "rcgru")
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""Blocks of the four stages of a ResNet by its depth."""
STRIDES_PX = (8, 16, 32, 64, 128)
"""What the cells of P3 to P7 span."""

_MOST_SHAPES = 64
_LIMITS: dict[str, tuple[float, float]] = {
    "blocks": (1, 200), "base_width": (8, 1024), "stem_padding": (0, 8), "stage_widths": (1, 8192),
    "stage_blocks": (1, 200), "trunk_time": (1, 15), "width": (1, 8192), "head_layers": (0, 64),
    "head_width": (1, 8192), "anchor_sizes_px": (1e-3, 1e5), "anchor_scales": (1e-3, 1e3),
    "anchor_ratios": (1e-3, 1e3), "focal_alpha": (0, 1), "focal_gamma": (0, 100), "box_beta": (1e-9, 1e3),
    "class_weight": (1e-9, 1e9), "av_weight": (1e-9, 1e9), "short_side_px": (32, 8192),
    "multiple_px": (1, 1024), "mean": (-1e3, 1e3), "std": (1e-6, 1e3),
}  # fmt: skip
"""What numbers of a config can be; a file of weights is read by it before anything is made."""


@dataclass(frozen=True)
class RetinaNetConfig:
    """Config of a 3D-RetinaNet; the defaults are what `default` gives.

    Trunk:
        backbone: which features; `compact` is our small causal one, `transformers` a trunk of that library.
        depth: 50 or 101 layers of a ResNet.
        slowfast_depth: layers of SlowFast, published with 101; `depth` is then that of its dead ResNet.
        blocks: blocks of the four stages instead of those of `depth`, where not empty.
        base_width: channels of the stem of a ResNet and of the slow way of SlowFast; stages are multiples.
        time_pool: halve the frames behind the first stage and repeat the features above it, as published for
            backbones with kernels over time.
        stem_padding: pixels of padding of the first pooling; the published ResNet has none.
        stage_widths, stage_blocks, trunk_time: channels and blocks of the stages with strides 4 to 32, and
            the kernel over time of a stage's first block, of `compact`.
        depthwise: blocks of `compact` are separable: cheaper to count, not always to run.
        trunk: the configuration class of `transformers`, such as "ResNetConfig"; `trunk_fields` its fields.
        causal: kernels, pools and repeats over time look back only: a stream gives what a clip gives.

    Pyramid and heads:
        width: channels of the pyramid.
        head_layers: convolutions over space before the last one of each head.
        head_width: channels inside the heads; None for those of the pyramid.
        head_time: frames that the last convolution of each head spans, 1 or 3.
        head_start: the inner convolutions of the heads begin with a deviation of 0.01 (`small`, as released),
            or as large as keeps the size of what passes (`kept`): narrow heads then learn much faster.
        anchor_sizes_px, anchor_scales, anchor_ratios: of each level; ratios are height by width.
        anchors: `retina`, or `kmeans`: three fixed shapes per level, as the release offers for UCF24.
        prior: probability that the class scores start from.

    Quirks:
        slowfast_strides: the last stage keeps its stride of 16 and is dilated (`dilated`, as released: its
            anchors then span twice the image), or has the stride its anchors assume (`regular`).
        dead_weights: keep parameters that take no part (the ResNet inside SlowFast, `ego_lateral`).
        box_coding: with a pixel added to widths and taken from corners (`plus_one`), or without (`plain`).
        empty_frames: frames without ground truth are left out of the loss (`ignore`, as released) or teach what is
            background (`negative`).
        av_targets: each frame learns its own action of the own vehicle (`frame`), or those of all frames of
            the batch (`batch`, as released).

    Loss:
        match_iou, ignore_iou: an anchor is positive from the first overlap on, background below the second.
        force_best: the best anchor of each ground-truth box is positive whatever the overlap.
        focal_alpha, focal_gamma, box_beta: of the focal loss and of the smooth L1 loss.
        class_weight, av_weight: divisors of the two losses beside that of the boxes.

    Images:
        short_side_px: an image is resized so that its short side has this length.
        multiple_px: right and bottom are padded with zeros to a multiple.
        mean, std: of the channels, red first, of images in [0, 1].

    Raises:
        UsageError: if a value is impossible.

    Source: Singh et al., TPAMI 2022, section 4, and the released code of 3D-RetinaNet.
    """

    backbone: Backbone = "i3d"
    depth: int = 50
    slowfast_depth: int = 101
    blocks: tuple[int, ...] = ()
    base_width: int = 64
    time_pool: bool = True
    stem_padding: int = 1
    stage_widths: tuple[int, int, int, int] = (32, 48, 96, 160)
    stage_blocks: tuple[int, int, int, int] = (1, 2, 2, 2)
    trunk_time: int = 3
    depthwise: bool = False
    trunk: str = ""
    trunk_fields: tuple[tuple[str, object], ...] = ()
    causal: bool = False
    width: int = 256
    head_layers: int = 3
    head_width: int | None = None
    head_time: int = 3
    head_start: Literal["small", "kept"] = "small"
    anchor_sizes_px: tuple[float, ...] = (32.0, 64.0, 128.0, 256.0, 512.0)
    anchor_scales: tuple[float, ...] = (1.0, 2 ** (1 / 3), 2 ** (2 / 3))
    anchor_ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    anchors: Literal["retina", "kmeans"] = "retina"
    prior: float = 0.01
    slowfast_strides: Literal["dilated", "regular"] = "regular"
    dead_weights: bool = False
    box_coding: Literal["plus_one", "plain"] = "plain"
    empty_frames: Literal["ignore", "negative"] = "negative"
    av_targets: Literal["batch", "frame"] = "frame"
    match_iou: float = 0.5
    ignore_iou: float = 0.4
    force_best: bool = True
    focal_alpha: float = 0.25
    focal_gamma: float = 2.0
    box_beta: float = 1 / 9
    class_weight: float = 8.0
    av_weight: float = 4.0
    short_side_px: int = 512
    multiple_px: int = 32
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        """Refuse what no network can be made of."""
        if self.backbone not in get_args(Backbone):
            raise UsageError(
                f"no backbone is called '{to_printable(self.backbone, 60)}'; there are {', '.join(get_args(Backbone))}"
            )
        for depth in (self.depth, self.slowfast_depth):
            if depth not in BLOCKS:
                raise UsageError(f"a ResNet of {depth} layers is not known here; give depth 50 or 101")
        if len(self.blocks) not in (0, 4) or len(self.stage_widths) != 4 or len(self.stage_blocks) != 4:
            raise UsageError("blocks, stage_widths and stage_blocks have one entry for each of four stages")
        if self.base_width < 1 or self.base_width % 8:
            raise UsageError(f"base_width must be a multiple of 8, not {self.base_width}")
        if self.head_time not in (1, 3):
            raise UsageError(f"heads span 1 or 3 frames, not {self.head_time}")
        if self.backbone == "transformers" and not self.trunk:
            raise UsageError("a trunk of transformers needs its configuration class in `trunk`")
        if not self.anchor_sizes_px or len(self.anchor_sizes_px) > len(STRIDES_PX):
            raise UsageError(f"{len(self.anchor_sizes_px)} anchor sizes: give one for each of up to 5 levels")
        if self.width < 1 or self.head_layers < 0 or self.short_side_px < 32 or self.multiple_px < 1:
            raise UsageError(
                "width, head_layers, short_side_px and multiple_px must be at least 1, 0, 32 and 1"
            )
        if not 0 <= self.ignore_iou <= self.match_iou <= 1 or not 0 < self.prior < 1:
            raise UsageError("needed: 0 <= ignore_iou <= match_iou <= 1, and prior between 0 and 1")
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                if each is not None and not low <= each <= high:
                    raise UsageError(f"{name} holds numbers from {low:g} to {high:g}, not {each!r}")
        shapes = (self.anchor_scales, self.anchor_ratios)
        if not all(0 < len(each) <= _MOST_SHAPES for each in shapes):
            raise UsageError(f"anchors have 1 to {_MOST_SHAPES} scales and as many ratios")

    @property
    def levels(self) -> int:
        """How many maps the pyramid has, P3 first."""
        return len(self.anchor_sizes_px)

    @property
    def n_anchors(self) -> int:
        """Anchors in a cell."""
        return 3 if self.anchors == "kmeans" else len(self.anchor_scales) * len(self.anchor_ratios)


def default(**fields: object) -> RetinaNetConfig:
    """The recommended config with the quirks corrected; `fields` replace others, such as `backbone` or `causal`."""
    return RetinaNetConfig(**fields)  # type: ignore[arg-type]


def compact(**fields: object) -> RetinaNetConfig:
    """A small causal network for one CPU core and images of 320x240; `fields` replace others."""
    small: dict[str, object] = {
        "backbone": "compact",
        "causal": True,
        "stage_widths": (32, 48, 96, 128),
        "stage_blocks": (1, 2, 2, 2),
        "width": 64,
        "head_width": 48,
        "head_layers": 2,
        "head_time": 1,
        "head_start": "kept",
        "anchor_sizes_px": (16.0, 32.0, 64.0, 128.0),
        "anchor_scales": (1.0, 2**0.5),
        "short_side_px": 240,
        "multiple_px": 32,
    }
    return RetinaNetConfig(**{**small, **fields})  # type: ignore[arg-type]


def reference(**fields: object) -> RetinaNetConfig:
    """The released network, key for key; `fields` replace others, such as `backbone` or `depth`."""
    released: dict[str, object] = {
        "stem_padding": 0,
        "slowfast_strides": "dilated",
        "dead_weights": True,
        "box_coding": "plus_one",
        "empty_frames": "ignore",
        "av_targets": "batch",
        # Rounded as in the released anchors.
        "anchor_scales": (1.0, 1.25992, 1.58740),
    }
    return RetinaNetConfig(**{**released, **fields})  # type: ignore[arg-type]


# The cards of the networks, and a network from its name; neither loads torch until one is made.

_PAPER = "Singh et al., ROAD: The ROad event Awareness Dataset for Autonomous Driving, TPAMI 2022"
_INPUTS = (
    "clips (B, 3, T, H, W), red first, in [0, 1], less the mean (0.485, 0.456, 0.406), over the deviation "
    "(0.229, 0.224, 0.225); short side 512 pixels, zeros at right and bottom to multiples of 32"
)
_PYRAMID = (
    "feature pyramid P3 to P7 of 256 channels -> heads shared over levels, three 3x3 convolutions and one of "
    "3x3x3 each: 9 anchors a cell, box offsets and class scores of every frame; mean of P7 -> actions of the "
    "own vehicle"
)
_WEIGHTS = "none are shipped; `roadaware.models.weights.load_published` reads released checkpoints"
_LICENCE = "released checkpoints: see gurkirt/3D-RetinaNet; trained ones: that of the data"


def _card(name: str, trunk: str, parameters: str, published: str = "") -> ModelCard:
    return ModelCard(
        name=f"retinanet3d-{name}",
        paper=_PAPER,
        family="network",
        tasks=("road",),
        diagram=f"{trunk} -> {_PYRAMID}",
        parameters=f"{parameters} million as released with ResNet-50, 150 classes and 7 actions",
        inputs=_INPUTS,
        weights=_WEIGHTS,
        licence=_LICENCE,
        published=published,
    )


C2D = _card("c2d", "ResNet-50 on single frames", "49.3")
I3D = _card(
    "i3d",
    "ResNet-50 with kernels over 3 frames in 10 blocks, frames pooled by two behind the first stage and "
    "shown twice above the pyramid",
    "54.1",
    "ROAD split 3: frame-mAP@0.5 of agents 31.1, actions 22.0, locations 27.3, events 13.9",
)
SLOWFAST = _card(
    "slowfast",
    "SlowFast-101: every second frame through many channels, every frame through an eighth of them, told to "
    "the slow way before each stage",
    "116.7 (83.7 of them used)",
    "ROAD, mean of splits, frame-mAP@0.5 of agents 42.6, actions 27.3, locations 34.8, events 18.0",
)
RCN = _card("rcn", "ResNet-50 with a recurrent convolution in 10 blocks", "50.1")
RCLSTM = _card("rclstm", "ResNet-50 with a convolutional LSTM beside 10 blocks", "55.5")
RCGRU = _card("rcgru", "ResNet-50 with a convolutional GRU beside 10 blocks", "54.0")
COMPACT = replace(
    _card("compact", "", ""),
    paper="ours",
    diagram="two convolutions to stride 4 -> four residual stages, frames mixed by causal kernels over 3 "
    "frames from stride 8 on -> feature pyramid P3 to P6 of 64 channels -> heads shared over levels, two 3x3 "
    "convolutions and a last one: 6 anchors a cell; mean of P6 -> actions of the own vehicle",
    parameters="1.75 million with 150 classes and 7 actions",
    inputs=_INPUTS.replace("512", "240"),
    weights="trained on the simulator by a recipe of this project",
    licence="Apache-2.0",
)
TRANSFORMERS = replace(
    _card("transformers", "", ""),
    paper="ours: a backbone of the transformers library in the place of the ResNet",
    diagram=f"last three stages of a backbone of transformers, on single frames -> {_PYRAMID}",
    parameters="those of the trunk and about 16 million",
    weights="unproven: no weights; the trunk is drawn at random",
    licence="that of the weights it is given",
)
_BACKBONES: dict[str, Backbone] = {
    "C2D": "c2d",
    "I3D": "i3d",
    "SLOWFAST": "slowfast",
    "RCN": "rcn",
    "RCLSTM": "rclstm",
    "RCGRU": "rcgru",
    "COMPACT": "compact",
    "TRANSFORMERS": "transformers",
}


def create(
    card: str, config: RetinaNetConfig | None = None, n_classes: int = 0, n_av: int = 0
) -> RetinaNet3D:
    """A network with random weights.

    Args:
        card: the name of its card here.
        config: what it is apart from the backbone, which the card says; what is recommended if None.
        n_classes: agentness and all labels of all kinds of the data.
        n_av: actions of the own vehicle.

    Raises:
        UsageError: if `n_classes` is missing, or the trunk of transformers cannot be made.
    """
    backbone = _BACKBONES[card]
    if n_classes < 1:
        raise UsageError("give n_classes: agentness and all labels of the data, such as 150 for ROAD")
    if config is None:
        config = compact() if backbone == "compact" else default(backbone=backbone)
    network: RetinaNet3D = import_module("roadaware.models.retinanet3d.network").RetinaNet3D(
        replace(config, backbone=backbone), n_classes, n_av
    )
    return network


@dataclass(frozen=True)
class DetectRule:
    """Rule for the boxes that are kept, and the positions of a clip; the boxes of a frame come by falling agentness.

    Args:
        min_agentness: a box must have more.
        nms_iou: the greatest overlap with a kept box of more agentness, whatever the classes; None keeps all.
        top: boxes that a frame keeps, those of most agentness.
        dropped: last positions of a clip that are not answered, since they see fewer later frames; the next
            clip answers them. The release drops 2, though its text speaks of the first ones.
        backwards: clips are laid from the end of a video to its start, as released; else from the start.

    Raises:
        UsageError: if a number is out of range.

    Source: the ROAD paper, section 4.1, and the released code of 3D-RetinaNet.
    """

    min_agentness: float = 0.025  # GEN_CONF_THRESH, GEN_NMS and GEN_TOPK of the release
    nms_iou: float | None = 0.5
    top: int = 100
    dropped: int = 0
    backwards: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not 0 <= self.min_agentness <= 1 or not (self.nms_iou is None or 0 <= self.nms_iou <= 1):
            raise UsageError(
                f"min_agentness and nms_iou lie in [0, 1]; got {self.min_agentness} and {self.nms_iou}"
            )
        if self.top < 1 or self.dropped < 0:
            raise UsageError(f"needed: top from 1 on, dropped from 0 on; got {self.top} and {self.dropped}")

    @classmethod
    def reference(cls) -> DetectRule:
        """As released."""
        return cls(dropped=2, backwards=True)


@dataclass(frozen=True)
class Clip:
    """Frames of a video that go through the network together, and for which of them it is asked.

    Args:
        start: the first frame.
        answers: frames of the video, consecutive, that this clip answers.
    """

    start: int
    answers: range


def split_into_clips(frames: int, window: int, rule: DetectRule | None = None) -> list[Clip]:
    """The clips of a video, each frame answered by exactly one, by rising start.

    The last clip ends with the video and the first begins with it. A video shorter than a clip is one clip,
    to be filled up with its last frame; the release leaves such a video out.

    Args:
        frames: in the video.
        window: frames of a clip.
        rule: `dropped` and `backwards`.

    Raises:
        UsageError: if as many positions are dropped as a clip has.
    """
    rule = rule or DetectRule()
    step = window - rule.dropped
    if step < 1:
        raise UsageError(f"a clip of {window} frames that drops {rule.dropped} answers nothing")
    if frames <= window:
        return [Clip(0, range(frames))] if frames else []
    last = frames - window
    starts = sorted({0, *range(last, -1, -step)}) if rule.backwards else [*range(0, last, step), last]
    ends = [start + step for start in starts[:-1]] + [frames]
    return [
        Clip(start, range(begin, end))
        for start, begin, end in zip(starts, [0, *ends[:-1]], ends, strict=True)
    ]
