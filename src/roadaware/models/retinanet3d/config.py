"""RetinaNetConfig: what a 3D-RetinaNet computes, each published quirk a named field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from roadaware.errors import UsageError

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
    """What the network is; the defaults are what `default` gives.

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
            anchors then span twice the picture), or has the stride its anchors assume (`regular`).
        dead_weights: keep parameters that take no part (the ResNet inside SlowFast, `ego_lateral`).
        box_coding: with a pixel added to widths and taken from corners (`plus_one`), or without (`plain`).
        empty_frames: frames without truth are left out of the loss (`ignore`, as released) or teach what is
            background (`negative`).
        av_targets: each frame learns its own action of the own vehicle (`frame`), or those of all frames of
            the batch (`batch`, as released).

    Loss:
        match_iou, ignore_iou: an anchor is positive from the first overlap on, background below the second.
        force_best: the best anchor of each true box is positive whatever the overlap.
        focal_alpha, focal_gamma, box_beta: of the focal loss and of the smooth L1 loss.
        class_weight, av_weight: divisors of the two losses beside that of the boxes.

    Pictures:
        short_side_px: a picture is resized so that its short side has this length.
        multiple_px: right and bottom are padded with zeros to a multiple.
        mean, std: of the channels, red first, of pictures in [0, 1].

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
                f"no backbone is called '{self.backbone}'; there are {', '.join(get_args(Backbone))}"
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
    """What we recommend: the quirks mended; `fields` replace others, such as `backbone` or `causal`."""
    return RetinaNetConfig(**fields)  # type: ignore[arg-type]


def compact(**fields: object) -> RetinaNetConfig:
    """A small causal network for one CPU core and pictures of 320x240; `fields` replace others."""
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
        "anchor_scales": (1.0, 1.25992, 1.58740),
    }
    return RetinaNetConfig(**{**released, **fields})  # type: ignore[arg-type]
