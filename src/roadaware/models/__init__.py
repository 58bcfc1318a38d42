"""The registry of models: names, where they are built, and what a card of one tells; naming them loads nothing."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from roadaware.errors import UsageError
from roadaware.io.sources import to_printable

if TYPE_CHECKING:
    from roadaware.models.crossing.entries import Entry
    from roadaware.models.crossing.tabular import TabularModel

Family = Literal["network", "tabular", "rule"]


@dataclass(frozen=True)
class ModelCard:
    """The facts of one model.

    Args:
        name: its name in the registry.
        paper: where it is described, or where it comes from if nowhere.
        family: network (trained by gradient), tabular (fitted on features) or rule (nothing but constants).
        tasks: the questions it answers: action, intention, risk, road.
        diagram: its block diagram in words.
        parameters: how many numbers are fitted, or the rule that gives them.
        inputs: what it sees and how that is normalised.
        weights: where fitted weights come from.
        licence: the terms of those weights.
        published: the score its source reports; empty where there is none.
    """

    name: str
    paper: str
    family: Family
    tasks: tuple[str, ...]
    diagram: str
    parameters: str
    inputs: str
    weights: str
    licence: str
    published: str = ""


MODELS: dict[str, str] = {
    "logistic": "roadaware.models.crossing.tabular:Logistic",
    "boosting": "roadaware.models.crossing.tabular:Boosting",
    "constant-velocity": "roadaware.models.crossing.tabular:ConstantVelocity",
}
"""Models on hand features: a class that is created with the fields of its config."""
NETWORKS: dict[str, str] = {
    "retinanet3d-c2d": "roadaware.models.retinanet3d.config:C2D",
    "retinanet3d-i3d": "roadaware.models.retinanet3d.config:I3D",
    "retinanet3d-slowfast": "roadaware.models.retinanet3d.config:SLOWFAST",
    "retinanet3d-rcn": "roadaware.models.retinanet3d.config:RCN",
    "retinanet3d-rclstm": "roadaware.models.retinanet3d.config:RCLSTM",
    "retinanet3d-rcgru": "roadaware.models.retinanet3d.config:RCGRU",
    "retinanet3d-compact": "roadaware.models.retinanet3d.config:COMPACT",
    "retinanet3d-transformers": "roadaware.models.retinanet3d.config:TRANSFORMERS",
}
"""Networks: the card of each; the last part of the name is the backbone."""
CROSSING: dict[str, str] = {
    "single-rnn": "roadaware.models.crossing.entries:SINGLE_RNN",
    "multi-rnn": "roadaware.models.crossing.entries:MULTI_RNN",
    "stacked-rnn": "roadaware.models.crossing.entries:STACKED_RNN",
    "hierarchical-rnn": "roadaware.models.crossing.entries:HIERARCHICAL_RNN",
    "sfrnn": "roadaware.models.crossing.entries:SFRNN",
    "sfgru": "roadaware.models.crossing.entries:SFGRU",
    "pcpa": "roadaware.models.crossing.entries:PCPA",
    "transformer-encoder": "roadaware.models.crossing.entries:ENCODER",
    "transformer-encoder-decoder": "roadaware.models.crossing.entries:ENCODER_DECODER",
    "spi-net": "roadaware.models.crossing.entries:SPI_NET",
    "trouspi-net": "roadaware.models.crossing.entries:TROUSPI_NET",
    "biped": "roadaware.models.crossing.entries:BIPED",
    "pedformer": "roadaware.models.crossing.entries:PEDFORMER",
    "steady": "roadaware.models.crossing.entries:STEADY",
    "vgg16": "roadaware.models.crossing.entries:VGG16",
    "resnet50": "roadaware.models.crossing.entries:RESNET50",
    "convlstm": "roadaware.models.crossing.entries:CONVLSTM",
    "c3d": "roadaware.models.crossing.entries:C3D",
    "i3d": "roadaware.models.crossing.entries:I3D",
    "two-stream": "roadaware.models.crossing.entries:TWO_STREAM",
}
"""Networks for pedestrians: the `Entry` of each, which says where it is built."""
FOLDERS: dict[str, str] = {
    "segformer": "roadaware.models.folder_cards:SEGFORMER",
    "upernet": "roadaware.models.folder_cards:UPERNET",
    "mask2former": "roadaware.models.folder_cards:MASK2FORMER",
    "maskformer": "roadaware.models.folder_cards:MASKFORMER",
    "rt_detr": "roadaware.models.folder_cards:RT_DETR",
    "rt_detr_v2": "roadaware.models.folder_cards:RT_DETR_V2",
    "d_fine": "roadaware.models.folder_cards:D_FINE",
    "grounding-dino": "roadaware.models.folder_cards:GROUNDING_DINO",
    "mm-grounding-dino": "roadaware.models.folder_cards:MM_GROUNDING_DINO",
    "owlv2": "roadaware.models.folder_cards:OWLV2",
    "owlvit": "roadaware.models.folder_cards:OWL_VIT",
    "clip": "roadaware.models.folder_cards:CLIP",
}
"""Models that are opened from a folder of transformers: type, as its config.json says it, to its card."""


def load_model_class(name: str) -> type[TabularModel]:
    """The class behind the name of a model on hand features.

    Raises:
        UsageError: if no such model has that name.
    """
    if name not in MODELS:
        raise UsageError(f"no model is called '{to_printable(name, 60)}'; there are {', '.join(MODELS)}")
    found: type[TabularModel] = _import_object(MODELS[name])
    return found


def get_crossing_entry(name: str) -> Entry:
    """The registry entry of a pedestrian network.

    Raises:
        UsageError: if there is no such network.
    """
    if name not in CROSSING:
        near = difflib.get_close_matches(name, [*CROSSING, *MODELS], n=1)
        meant = f"; did you mean '{near[0]}'?" if near else "."
        raise UsageError(
            f"no network for pedestrians is called '{to_printable(name, 60)}'{meant} There are {', '.join(CROSSING)}, and, "
            f"on hand features, {', '.join(MODELS)}"
        )
    found: Entry = _import_object(CROSSING[name])
    return found


def create(name: str, **config: Any) -> Any:
    """An unfitted model, or a network with random weights.

    Args:
        name: in the registry.
        config: the fields of a model's config; of a network `config` (a `RetinaNetConfig`; what is
            recommended where not given), `n_classes` (agentness and all labels) and `n_av` (actions of the
            own vehicle); of a network for pedestrians `config`, `shapes` of its inputs, `labels` and `tasks`.

    Raises:
        UsageError: if the name or a field of the config is unknown.
    """
    if name in MODELS:
        return load_model_class(name).create(**config)
    if name in CROSSING:
        entry = get_crossing_entry(name)
        return _import_object(entry.network)(config.pop("config", None) or entry.config_class(), **config)
    if name not in NETWORKS:
        raise UsageError(
            f"no model is called '{to_printable(name, 60)}'; there are {', '.join([*MODELS, *CROSSING, *NETWORKS])}"
        )
    return _import_object("roadaware.models.retinanet3d.config:create")(
        NETWORKS[name].split(":")[1], **config
    )


def list_model_cards() -> dict[str, ModelCard]:
    """The card of every model, in the order of the registry."""
    fitted = {name: load_model_class(name).card for name in MODELS}
    networks = {name: _import_object(where) for name, where in NETWORKS.items()}
    return {**fitted, **{name: _import_object(where).card for name, where in CROSSING.items()}, **networks}


def list_folder_cards() -> dict[str, ModelCard]:
    """The card of every type of model that is opened from a folder of transformers."""
    return {name: _import_object(where) for name, where in FOLDERS.items()}


def _import_object(where: str) -> Any:
    """What `module:name` stands for."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)
