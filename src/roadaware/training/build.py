"""Builds the model of a recipe with its initial weights."""

from __future__ import annotations

import dataclasses
import difflib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from roadaware.config import to_dict
from roadaware.errors import UsageError
from roadaware.models.detector import Detector
from roadaware.models.retinanet3d import config as configs
from roadaware.models.retinanet3d.config import PUBLISHED, RetinaNetConfig
from roadaware.models.retinanet3d.detection_config import DetectRule
from roadaware.models.retinanet3d.detector import Fit, StreamDetector, WindowDetector
from roadaware.models.retinanet3d.loss import Trainee
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.tasks.road_events import Classes
from roadaware.training.batches import Batch, prepare_batch
from roadaware.training.learners import Learner, Part
from roadaware.training.recipe import OBJECTS, ModelRecipe, Recipe

_log = logging.getLogger("roadaware")
_FAMILY = "retinanet3d-"
MODEL = "model.safetensors"
_BASES = {"default": configs.default, "compact": configs.compact, "reference": configs.reference}


def build_learner(recipe: Recipe, classes: Classes) -> Learner:
    """Build the learner of a recipe.

    Args:
        recipe: names it.
        classes: that it distinguishes.

    Raises:
        UsageError: if it cannot be made.
        InputError: if the weights to begin with cannot be read.
    """
    if not recipe.model.weights and (recipe.model.freeze or recipe.model.freeze_batch_norm):
        _log.warning(
            "there are no weights to begin with, and parts stay as they are: random ones (%s); name "
            "model.weights, or train everything with model.freeze=[] model.freeze_batch_norm=false",
            ", ".join([*recipe.model.freeze, *["batch norms"] * recipe.model.freeze_batch_norm]),
        )
    if recipe.model.is_objects:
        from roadaware.training.object_learners import ObjectLearner

        return ObjectLearner(recipe, classes)
    return RoadLearner(recipe, classes)


class RoadLearner:
    """A 3D-RetinaNet that learns road events; see `Learner`.

    Args:
        recipe: names the network, the seed and the file of weights.
        classes: that it distinguishes.

    Raises:
        UsageError: if the network cannot be made.
        InputError: if the weights to begin with cannot be read.
    """

    parts = ("boxes", "classes", "av")
    by_chance = False

    def __init__(self, recipe: Recipe, classes: Classes) -> None:
        self.classes, config = classes, build_network_config(recipe.model)
        self.divisors = {"boxes": 1.0, "classes": config.class_weight, "av": config.av_weight}
        self.fit = Fit.of(config)
        self.config: dict[str, Any] = to_dict(config)
        network = build_detector_network(recipe, config, classes)
        self.network: nn.Module = network
        self.trainee: nn.Module = Trainee(network, recipe.model.likeliest or None)

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """As of `Learner`."""
        x, targets = prepare_batch(batch, self.fit, device, channels_last=channels_last)
        found = model(x, targets.boxes, targets.classes, targets.av, targets.labelled)
        boxes = found["matched"].to(x.device)
        counts = {"boxes": boxes, "classes": boxes, "av": (targets.av >= 0).sum().to(boxes)}
        return {name: Part(found[name], counts[name], self.divisors[name]) for name in self.parts}

    def detector(self, network: nn.Module, rule: DetectRule) -> Detector:
        """As of `Learner`: frame by frame if the network is causal, else by windows."""
        road, classes = _road(network), self.classes
        kind = StreamDetector if road.config.causal else WindowDetector
        return cast("Detector", kind(road, dict(classes.kinds), classes.av_labels, rule))

    def save(self, folder: Path, network: nn.Module, notes: Mapping[str, Any]) -> Path:
        """As of `Learner`: one file of safetensors."""
        from roadaware.models.weights import save_detector

        classes = self.classes
        save_detector(folder / MODEL, _road(network), dict(classes.kinds), classes.av_labels, notes)
        return folder / MODEL


def _road(network: nn.Module) -> RetinaNet3D:
    if not isinstance(network, RetinaNet3D):
        raise TypeError(f"road events are learnt by a RetinaNet3D, not by a {type(network).__name__}")
    return network


def build_network_config(recipe: ModelRecipe) -> RetinaNetConfig:
    """The config of the network.

    Args:
        recipe: its name, base and fields.

    Raises:
        UsageError: if the model is of another family, or a field is unknown or impossible.
    """
    if not recipe.name.startswith(_FAMILY):
        known = ", ".join(_FAMILY + name for name in (*PUBLISHED, "compact", "transformers"))
        raise UsageError(f"'{recipe.name}' is not trained by recipes; there are {known}, {OBJECTS}")
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


def build_detector_network(recipe: Recipe, config: RetinaNetConfig, classes: Classes) -> RetinaNet3D:
    """The network with the weights it begins with: drawn from the seed, or some or all from a file.

    Args:
        recipe: names the model, the seed and the file.
        config: of the network.
        classes: that it distinguishes.

    Raises:
        UsageError: if no weight of the file fits, or it is of other anchors or labels.
        InputError: if the file cannot be read.
    """
    torch.manual_seed(recipe.seed)
    network = RetinaNet3D(config, classes.n_classes, len(classes.av_labels))
    if recipe.model.weights:
        from roadaware.models.weights import load_published

        path = recipe.model.weights_path()
        meant = [anchors.clone() for anchors in network.anchors.buffers()]
        report = load_published(network, path)
        _log.info(
            "%s: %d weights taken (%d inflated over time, %d shortened); %d of the file not used: %s",
            path,
            len(report.matched),
            len(report.inflated),
            len(report.shortened),
            len(report.unused),
            ", ".join(report.unused[:8]) or "none",
        )
        if not report.matched:
            raise UsageError(f"no weight of {path} fits {recipe.model.name}")
        _same_anchors(path, meant, list(network.anchors.buffers()))
        _same_labels(path, classes)
    return network


def _same_anchors(path: Path, meant: Sequence[Tensor], found: Sequence[Tensor]) -> None:
    """Raise where a file brought anchors of its own, which have the same shapes whatever their sizes."""
    if not all(torch.allclose(one, other, rtol=1e-3) for one, other in zip(meant, found, strict=True)):
        raise UsageError(
            f"{path} was trained with other anchors than the recipe's: take anchor_sizes_px, anchor_scales "
            "and anchor_ratios of model.fields from the recipe of that file"
        )


def _same_labels(path: Path, classes: Classes) -> None:
    """Raise where a file of ours tells as many labels apart, but others, or in another order."""
    from roadaware.models.weights import read_checkpoint_facts

    facts = read_checkpoint_facts(path)
    if not facts:
        return
    kinds = [(kind, tuple(labels)) for kind, labels in facts["kinds"].items()]
    if kinds != list(classes.kinds.items()) or tuple(facts["av_labels"]) != tuple(classes.av_labels):
        raise UsageError(
            f"{path} tells as many labels apart as are to be learnt, but others, or in another order (of "
            f"{', '.join(dict(kinds))}): its scores would begin under wrong names"
        )
