"""Object detectors of transformers to be trained: with random weights, or with those of a folder."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import transformers
from torch import Tensor

from roadaware.errors import InputError, UsageError
from roadaware.models.folder_configs import config_of
from roadaware.models.limits import bounded_network
from roadaware.models.object_folders import FAMILIES, labels_of, model_of
from roadaware.models.object_labels import COCO_AGENTS
from roadaware.models.offline import offline
from roadaware.models.pretrained import quiet

_CLASSWISE = ("class_embed", "enc_score_head")
"""Parts of the names of tensors that hold a row for each class."""
_OWN = ("id2label", "label2id", "num_labels")


def made_model(kind: str, fields: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """A model with random weights, drawn from the generator of torch.

    Args:
        kind: one of `FAMILIES`.
        fields: of its config, such as `num_queries`; the rest is as published, but the norms of the backbone
            learn, since the statistics that published weights freeze mean nothing to random ones.
        labels: that it tells apart.

    Raises:
        UsageError: if the type or a field is unknown, or values are impossible.
    """
    if kind not in FAMILIES:
        raise UsageError(f"model.fields.type is one of {', '.join(FAMILIES)}, not {kind!r}")
    backbone = fields.get("backbone_config")
    if isinstance(backbone, Mapping) and "model_type" not in backbone:
        raise UsageError(
            "model.fields.backbone_config says its model_type, such as rt_detr_resnet or hgnet_v2"
        )
    return _built(kind, {"freeze_backbone_batch_norms": False, **fields}, fields, labels)


def tuned_model(folder: Path, fields: Mapping[str, Any], labels: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """The model of a folder that is to tell other labels apart.

    A label begins with the weights of the class of its name, else of the class of COCO that stands for it
    (`COCO_AGENTS`); where there is neither they are random. Everything else is taken as it is.

    Args:
        folder: as transformers saves it.
        fields: of its config that are to be others, such as `num_denoising`.
        labels: that it is to tell apart.

    Returns:
        The model, and label to the class whose weights it begins with.

    Raises:
        UsageError: if the other fields do not fit the weights.
        InputError: if the folder is none of such a model.
    """
    old = model_of(folder)
    kind = str(old.config.model_type)
    new = _built(kind, {**old.config.to_dict(), **fields}, fields, labels)
    classes = labels_of(old)
    sources = _sources(classes, labels)
    held, differ = old.state_dict(), []
    for name, mine in new.state_dict().items():  # these are the weights themselves
        theirs = held.get(name)
        if any(part in name for part in _CLASSWISE):
            if theirs is not None and theirs.shape[1:] == mine.shape[1:]:
                _take_rows(mine, theirs, sources)
        elif theirs is None or theirs.shape != mine.shape:
            differ.append(name)
        else:
            mine.copy_(theirs)
    if differ:
        shown = ", ".join(differ[:3])
        raise UsageError(f"model.fields do not fit the weights in {folder}: {shown} would be others")
    return new, {labels[row]: classes[source] for row, source in sources.items()}


def plain_config(model: Any) -> dict[str, Any]:
    """What decides the shapes of a model, as plain data: its config without labels and versions.

    Args:
        model: of transformers.
    """
    usual = {*transformers.PreTrainedConfig().to_dict(), *_OWN} - {"model_type"}
    said = json.loads(model.config.to_json_string())
    return {name: value for name, value in said.items() if name not in usual}


def _built(kind: str, config: Mapping[str, Any], fields: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """A model with a config, of which somebody has written some fields."""
    family = type(transformers.AutoConfig.for_model(kind))
    known = [each.name for each in fields_of(family) if each.name not in _OWN]
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"a model of type {kind} has no field 'model.fields.{name}'{meant}")
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    maker: Any = transformers.AutoModelForObjectDetection
    where = "model.fields"
    try:
        with quiet(), offline(where), bounded_network(where):
            return maker.from_config(config_of({**config, **named, "model_type": kind}, where)).float()
    except InputError as error:
        raise UsageError(str(error)) from error
    except Exception as error:  # the library raises whatever its parts do
        first = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"model.fields make no model of type {kind}: {first}") from error


def _sources(classes: Sequence[str], labels: Sequence[str]) -> dict[int, int]:
    """Place of a label to the class whose weights it begins with."""
    found = {}
    for row, label in enumerate(labels):
        names = [n for n, name in enumerate(classes) if name.lower() == label.lower()]
        names += [n for n, name in enumerate(classes) if COCO_AGENTS.get(name.lower()) == label]
        if names:
            found[row] = names[0]
    return found


def _take_rows(mine: Tensor, theirs: Tensor, sources: Mapping[int, int]) -> None:
    """Rows of classes; one more, which stands for no class where there is one, stays at the end."""
    for row, source in sources.items():
        mine[row] = theirs[source]
