"""Build: the network that a recipe names, with its first weights."""

from __future__ import annotations

import dataclasses
import difflib
import logging
from pathlib import Path
from typing import Any

import torch

from roadaware.errors import UsageError
from roadaware.models.retinanet3d import config as configs
from roadaware.models.retinanet3d.config import PUBLISHED, RetinaNetConfig
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.tasks.road_events import Classes
from roadaware.training.recipe import ModelRecipe, Recipe

_log = logging.getLogger("roadaware")
_FAMILY = "retinanet3d-"
_BASES = {"default": configs.default, "compact": configs.compact, "reference": configs.reference}


def config_of(recipe: ModelRecipe) -> RetinaNetConfig:
    """The config of the network.

    Args:
        recipe: its name, base and fields.

    Raises:
        UsageError: if the model is of another family, or a field is unknown or impossible.
    """
    if not recipe.name.startswith(_FAMILY):
        known = ", ".join(_FAMILY + name for name in (*PUBLISHED, "compact", "transformers"))
        raise UsageError(f"'{recipe.name}' is not trained by recipes; there are {known}")
    known_fields = [each.name for each in dataclasses.fields(RetinaNetConfig)]
    for name in recipe.fields:
        if name not in known_fields:
            near = difflib.get_close_matches(name, known_fields, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"a network has no field 'model.fields.{name}'{meant}")
    fields = {"backbone": recipe.name.removeprefix(_FAMILY), **recipe.fields}
    try:
        return _BASES[recipe.base](**{name: _frozen(value) for name, value in fields.items()})
    except TypeError as error:
        raise UsageError(f"model.fields: {error}") from error


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def network_of(recipe: Recipe, config: RetinaNetConfig, classes: Classes) -> RetinaNet3D:
    """The network with the weights it begins with: drawn from the seed, or some or all from a file.

    Args:
        recipe: names the model, the seed and the file.
        config: of the network.
        classes: that it tells apart.

    Raises:
        UsageError: if no weight of the file fits.
        InputError: if the file cannot be read.
    """
    torch.manual_seed(recipe.seed)
    network = RetinaNet3D(config, classes.n_classes, len(classes.av_labels))
    if recipe.model.weights:
        from roadaware.models.weights import load_published

        report = load_published(network, Path(recipe.model.weights))
        _log.info("%s: %d weights taken", recipe.model.weights, len(report.matched))
        if not report.matched:
            raise UsageError(f"no weight of {recipe.model.weights} fits {recipe.model.name}")
    return network
