"""The cards of the networks, and a network from its name; neither loads torch until one is made."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from roadaware.errors import UsageError
from roadaware.models.card import ModelCard
from roadaware.models.retinanet3d.config import Backbone, RetinaNetConfig, compact, default

if TYPE_CHECKING:
    from roadaware.models.retinanet3d.network import RetinaNet3D

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
