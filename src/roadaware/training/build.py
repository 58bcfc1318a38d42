"""Learners: what a loop asks of a model (weights, loss, detector, files), and the model of a recipe with initial weights."""

from __future__ import annotations

import dataclasses
import difflib
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from roadaware.config import to_dict
from roadaware.errors import UsageError
from roadaware.models.detector import Detector
from roadaware.models.object_detectors import (
    SIZE_PX,
    ObjectDetector,
    build_detr_targets,
    create_model,
    extract_plain_config,
    load_preparation,
    prepare_finetuning,
    save_objects,
)
from roadaware.models.retinanet3d import config as configs
from roadaware.models.retinanet3d.config import PUBLISHED, DetectRule, RetinaNetConfig
from roadaware.models.retinanet3d.detector import Fit, StreamDetector, WindowDetector
from roadaware.models.retinanet3d.loss import LogicLoss, Trainee
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import load_published, read_checkpoint_facts, save_detector
from roadaware.scenes.requirements import bind_requirements, number_clauses, open_requirements
from roadaware.tasks.road_events import Classes
from roadaware.training.batches import Batch, Fitting, prepare_batch
from roadaware.training.recipe import OBJECTS, LossRecipe, ModelRecipe, Recipe

# The interface between the loop and a model.


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the loss.

    Args:
        mean: of what it is made of.
        count: of that, such as boxes; means of several processes go over all of it.
        divisor: it counts in the whole loss divided by this.
    """

    mean: Tensor
    count: Tensor
    divisor: float = 1.0


class Trainable(Protocol):
    """What the loop needs of a model that learns."""

    @property
    def network(self) -> nn.Module:
        """The network whose state is kept, averaged, evaluated and saved."""
        ...

    @property
    def trainee(self) -> nn.Module:
        """The module that computes the loss and is distributed over devices."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """Of the network as plain data: checkpoints of another are refused."""
        ...

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts of the loss."""
        ...

    @property
    def by_chance(self) -> bool:
        """Whether the loss itself draws numbers, from torch's generators."""
        ...

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """The parts of the loss of a batch, by name.

        Args:
            model: the trainee, set up.
            batch: of clips.
            device: where it runs.
            channels_last: leave channels innermost in memory.
        """
        ...


class Learner(Trainable, Protocol):
    """Interface of a trainable detector."""

    @property
    def fit(self) -> Fitting:
        """Preprocessing of images."""
        ...

    def detector(self, network: nn.Module, rule: DetectRule) -> Detector:
        """The detector of a trained network.

        Args:
            network: such as `network`, in `eval` mode.
            rule: which boxes are reported.
        """
        ...

    def save(self, folder: Path, network: nn.Module, notes: Mapping[str, Any]) -> Path:
        """Write a trained network as `predict` and `watch` open it, and answer where it is.

        Args:
            folder: of the run.
            network: such as `network`.
            notes: JSON-ready, of how it was trained.

        Raises:
            DiskError: if the disk refuses.
        """
        ...


# Object detectors of transformers as learners: single images, one kind of label, the library's loss.


FOLDER = "model"
_TYPE, _SIZE = "type", "size_px"
_CLASS_LOSSES = ("loss_vfl", "loss_ce", "loss_bce", "loss_focal", "loss_labels")
_PUBLISHED = (SIZE_PX, [0.0] * 3, [1.0] * 3)


@dataclass(frozen=True)
class WholePicture:
    """Resizes every image to one size, whatever its shape.

    Args:
        size_px: height and width.
        mean, std: of the channels, red first, of images in [0, 1].
        multiple_px: nothing is padded.
    """

    size_px: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    multiple_px: int = 1

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image once it is resized."""
        return self.size_px


class ObjectTrainee(nn.Module):
    """A model together with its loss, which transformers computes.

    Args:
        network: what learns.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor, boxes: list[Tensor], labels: list[Tensor]) -> dict[str, Tensor]:
        """The loss in two parts, `boxes` and `classes`, of all layers and of denoising together.

        Args:
            images: (B, 3, h, w).
            boxes: of each image (n, 4) centre, width and height in shares of the image.
            labels: of each image (n,) int64.
        """
        truth = [{"class_labels": label, "boxes": box} for box, label in zip(boxes, labels, strict=True)]
        said: Mapping[str, Tensor] = self.network(pixel_values=images, labels=truth).loss_dict
        parts = {"boxes": images.new_zeros(()), "classes": images.new_zeros(())}
        for name, value in said.items():
            part = "classes" if name.startswith(_CLASS_LOSSES) else "boxes"
            parts[part] = parts[part] + value
        return parts


class ObjectLearner:
    """See `Learner`.

    Args:
        recipe: names the model, the seed and the folder.
        classes: of one kind.

    Raises:
        UsageError: if the model cannot be made, or there are no labels to distinguish.
        InputError: if the folder to begin with cannot be read.
    """

    parts = ("boxes", "classes")
    by_chance = True

    def __init__(self, recipe: Recipe, classes: Classes) -> None:
        self.recipe = recipe
        ((self.kind, self.labels),) = classes.kinds.items()
        if not self.labels:
            raise UsageError(f"there are no labels of {self.kind} to tell apart")
        self.fit = _fit(recipe.model)
        torch.manual_seed(recipe.seed)
        made = {name: value for name, value in recipe.model.fields.items() if name not in (_TYPE, _SIZE)}
        self.network: Any
        if recipe.model.weights:
            self.network = _load_model(recipe.model, made, self.labels)
        else:
            self.network = create_model(str(recipe.model.fields.get(_TYPE)), made, self.labels)
        self.trainee: nn.Module = ObjectTrainee(self.network)
        self.config: dict[str, Any] = {**extract_plain_config(self.network), _SIZE: list(self.fit.size_px)}

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """As of `Learner`; frames that nobody annotated are left out."""
        clips, truth = prepare_batch(batch, self.fit, device, channels_last=channels_last)
        height, width = self.fit.size_px
        counts = truth.labelled.flatten()
        shown = counts if bool(counts.any()) else torch.ones_like(counts)
        images = clips.transpose(1, 2).flatten(0, 1)[shown]
        boxes, labels = self._truth(truth.boxes, truth.classes, shown.tolist())
        targets = build_detr_targets(boxes, labels, height, width)
        found = self._said(model, images, [each["boxes"] for each in targets], labels)
        count = torch.tensor(sum(map(len, labels)), device=device)
        # Where no frame counts, one has been shown all the same, so that every weight has a gradient.
        share = float(bool(counts.any()))
        return {name: Part(mean * share, count) for name, mean in found.items()}

    def _truth(
        self, boxes: Sequence[Sequence[Tensor]], classes: Sequence[Sequence[Tensor]], shown: list[bool]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Of each image that is shown its boxes, as far as they lie within, and the first label of each."""
        height, width = self.fit.size_px
        held, labels = [], []
        # The box of a clip that was moved may lie partly outside.
        for found, hot in zip(_flat(boxes, shown), _flat(classes, shown), strict=True):
            named = hot[:, 1:].any(dim=1)
            held.append(found[named].clamp(min=0).minimum(found.new_tensor([width, height] * 2)))
            labels.append(hot[named, 1:].float().argmax(dim=1))
        return held, labels

    def _said(
        self, model: nn.Module, images: Tensor, boxes: list[Tensor], labels: list[Tensor]
    ) -> Mapping[str, Tensor]:
        """The parts of the loss; no numbers where the weights are none, at which the library gives up."""
        try:
            found: Mapping[str, Tensor] = model(images, boxes, labels)
        except ValueError:
            weights = [p for p in self.network.parameters() if p.requires_grad]
            if all(bool(p.isfinite().all()) for p in weights):
                raise
            return dict.fromkeys(self.parts, weights[0].sum() * math.nan)
        return found

    def detector(self, network: nn.Module, rule: DetectRule) -> Detector:
        """As of `Learner`."""
        fit, labels = self.fit, self.labels
        found = ObjectDetector(
            network,
            labels,
            labels,
            None,
            rule,
            size_px=fit.size_px,
            mean=fit.mean,
            std=fit.std,
            kind=self.kind,
        )
        return cast("Detector", found)

    def save(self, folder: Path, network: nn.Module, notes: Mapping[str, Any]) -> Path:
        """As of `Learner`: a folder as transformers saves it."""
        preparation = (self.fit.size_px, list(self.fit.mean), list(self.fit.std))
        whole = {**notes, "recipe": to_dict(self.recipe)}
        save_objects(folder / FOLDER, network, preparation, self.kind, whole)
        return folder / FOLDER


def _flat(clips: Sequence[Sequence[Tensor]], shown: list[bool]) -> list[Tensor]:
    """Of each frame of all clips that is shown."""
    frames = [frame for clip in clips for frame in clip]
    return [frame for frame, counts in zip(frames, shown, strict=True) if counts]


def _fit(recipe: ModelRecipe) -> WholePicture:
    """How images are prepared: as the recipe says, else the folder, else as published.

    Raises:
        UsageError: if the size is none.
    """
    size, mean, std = _PUBLISHED
    if recipe.weights:
        size, mean, std = load_preparation(recipe.weights_path())
    given = recipe.fields.get(_SIZE, list(size))
    whole = isinstance(given, list | tuple) and all(type(side) is int and side >= 32 for side in given)
    if not whole or len(given) != 2 or any(side % 32 for side in given):
        raise UsageError(f"model.fields.size_px is a height and a width, multiples of 32, not {given!r}")
    return WholePicture((given[0], given[1]), tuple(mean), tuple(std))


def _load_model(recipe: ModelRecipe, fields: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """The model of a folder with other labels.

    Raises:
        UsageError: if the recipe names another type.
    """
    folder = recipe.weights_path()
    network, sources = prepare_finetuning(folder, fields, labels)
    kind = network.config.model_type
    if recipe.fields.get(_TYPE, kind) != kind:
        raise UsageError(f"model.fields.type is {recipe.fields[_TYPE]}, and {folder} holds a {kind}")
    taken = ", ".join(f"{label} of {source}" for label, source in sources.items())
    _log.info("%s: all weights taken; labels begin with the weights %s", folder, taken or "of none")
    return network


_log = logging.getLogger("roadaware")
_FAMILY = "retinanet3d-"
MODEL = "model.safetensors"
_BASES = {"default": configs.default, "compact": configs.compact, "reference": configs.reference}


def build_learner(recipe: Recipe, classes: Classes) -> Learner:
    """Build the learner of a recipe.

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

    by_chance = False

    def __init__(self, recipe: Recipe, classes: Classes) -> None:
        self.classes, config = classes, build_network_config(recipe.model)
        self.divisors = {"boxes": 1.0, "classes": config.class_weight, "av": config.av_weight}
        logic = build_logic_loss(recipe.loss, classes)
        if logic is not None:
            self.divisors["logic"] = 1 / recipe.loss.weight
        self.parts = tuple(self.divisors)
        self.fit = Fit.of(config)
        self.config: dict[str, Any] = to_dict(config)
        network = build_detector_network(recipe, config, classes)
        self.network: nn.Module = network
        self.trainee: nn.Module = Trainee(network, recipe.model.likeliest or None, logic, recipe.loss.weight)

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """As of `Learner`."""
        x, targets = prepare_batch(batch, self.fit, device, channels_last=channels_last)
        found = model(x, targets.boxes, targets.classes, targets.av, targets.labelled)
        boxes = found["matched"].to(x.device)
        counts = {"boxes": boxes, "classes": boxes, "av": (targets.av >= 0).sum().to(boxes), "logic": boxes}
        return {name: Part(found[name], counts[name], self.divisors[name]) for name in self.parts}

    def detector(self, network: nn.Module, rule: DetectRule) -> Detector:
        """As of `Learner`: frame by frame if the network is causal, else by windows."""
        road, classes = _road(network), self.classes
        kind = StreamDetector if road.config.causal else WindowDetector
        return cast("Detector", kind(road, dict(classes.kinds), classes.av_labels, rule))

    def save(self, folder: Path, network: nn.Module, notes: Mapping[str, Any]) -> Path:
        """As of `Learner`: one file of safetensors."""
        classes = self.classes
        save_detector(folder / MODEL, _road(network), dict(classes.kinds), classes.av_labels, notes)
        return folder / MODEL


def _road(network: nn.Module) -> RetinaNet3D:
    if not isinstance(network, RetinaNet3D):
        raise TypeError(f"road events are learnt by a RetinaNet3D, not by a {type(network).__name__}")
    return network


def build_logic_loss(recipe: LossRecipe, classes: Classes) -> LogicLoss | None:
    """The part of the loss that logical requirements make; None where the recipe names none.

    Args:
        recipe: names the file.
        classes: of the detector; requirements that need a kind it does not learn are left out.

    Raises:
        InputError: if the file cannot be read, contradicts itself, or is over other labels.
    """
    if not recipe.requirements:
        return None
    bound = bind_requirements(open_requirements([Path(recipe.requirements)]), classes.kinds)
    for note in bound.notes:
        _log.warning("loss.requirements: %s", note)
    column = {name: place for place, name in enumerate(classes.names, 1)}
    places = {
        (kind, k): column[kind, label]
        for kind, labels in classes.kinds.items()
        for k, label in enumerate(labels)
    }
    return LogicLoss(number_clauses(bound, places), recipe.logic)


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
        path = recipe.model.weights_path()
        # A checkpoint brings its anchors along, which would take the place of the recipe's in silence.
        meant = [anchors.clone() for anchors in network.anchors.buffers()]
        report = load_published(network, path, tuple(recipe.model.take))
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
        # Raise where a file brought anchors of its own, which have the same shapes whatever their sizes.
        found = list(network.anchors.buffers())
        # The release rounds its scales (1.25992): these are the same anchors.
        if not all(torch.allclose(one, other, rtol=1e-3) for one, other in zip(meant, found, strict=True)):
            raise UsageError(
                f"{path} was trained with other anchors than the recipe's: take anchor_sizes_px, anchor_scales "
                "and anchor_ratios of model.fields from the recipe of that file, or leave its heads: "
                "model.take=[backbone.]"
            )
        # Raise where a file of ours tells as many labels apart, but others, or in another order

        facts = {} if recipe.model.take else read_checkpoint_facts(path)
        if facts:
            kinds = [(kind, tuple(labels)) for kind, labels in facts["kinds"].items()]
            if kinds != list(classes.kinds.items()) or tuple(facts["av_labels"]) != tuple(classes.av_labels):
                raise UsageError(
                    f"{path} tells as many labels apart as are to be learnt, but others, or in another order (of "
                    f"{', '.join(dict(kinds))}): its scores would begin under wrong names"
                )
    return network
