"""Recipe: everything that a training run is made of, field by field."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.catalogue.entries import resolve_weights

OBJECTS = "objects"
"""Name of the model that is an object detector of transformers."""
REFINER = "box-refiner"
"""Name of the network that looks again at the people of a detector, that of `model.weights`."""


@dataclass(frozen=True)
class ModelRecipe:
    """The model of a recipe.

    Args:
        name: in the registry; or `objects` for an object detector of transformers, which learns single
            frames and one kind of label; or `box-refiner` for a second look at the people of the detector of `weights`.
        base: `default` as we recommend, `compact` for one CPU core, or `reference` as published.
        fields: of the config of the network; of an object detector also its `type`, unless `weights` has it,
            and `size_px`, the height and width of its images.
        weights: file with weights to begin with: published ones, or a model of ours; the folder of an object
            detector; or a name of the catalogue (default: none). Of `box-refiner` the detector.
        take: beginnings of the names of parameters that are taken from it, such as `backbone.` for a network of other
            labels or anchors than those of the file; those of an object detector are not chosen (default: all).
        freeze_batch_norm: keep the statistics and factors that batch norms begin with.
        likeliest: classes are learnt at matched anchors and at so many others of each frame, those of most
            agentness, which on a small network is several times faster; 0 for everywhere, as published.
        freeze: beginnings of the names of parameters that stay as they are, such as `backbone.conv1`.
    """

    name: str = "retinanet3d-i3d"
    base: Literal["default", "compact", "reference"] = "default"
    fields: dict[str, Any] = field(default_factory=dict)
    weights: str = ""
    take: tuple[str, ...] = ()
    freeze_batch_norm: bool = False
    likeliest: int = 0
    freeze: tuple[str, ...] = ()

    @property
    def is_objects(self) -> bool:
        """Whether it is an object detector of transformers."""
        return self.name == OBJECTS

    def weights_path(self) -> Path:
        """Path of the initial weights.

        Raises:
            UsageError: if they are those of a model that is not installed, or none that is trained further.
        """
        found = resolve_weights(Path(self.weights), ("objects",) if self.is_objects else ("training",))
        if not found.exists():
            raise UsageError(
                f"model.weights: there is no file or folder {str(found)[:200]!r}, and no model of that name"
            )
        if self.is_objects and found.is_file():
            raise UsageError(
                f"{self.weights} is a file; trained further are RT-DETR, RT-DETRv2 and D-FINE, each a folder "
                "of transformers or a name of `roadaware models list`, such as rtdetr-r18"
            )
        return found


@dataclass(frozen=True)
class SourceRecipe:
    """Where the data of a recipe lie.

    Args:
        reader: of the annotations.
        roots: folders (or files) of annotations; several are put together.
        options: of the reader.
        split: the videos to learn from, such as `train_1` (default: all).
        validation_roots: other roots whose videos are judged (default: the same roots).
        validation_split: the videos that are judged; none are without roots or split of their own.
        media: folder that `films` and the tables' paths start from (default: where the annotations lie).
        films: where the file of a video lies, such as `videos/{video}.mp4`, or its images, such as
            `rgb-images/{video}/{number:05d}.jpg` with numbers from 1 (`{frame}` from 0) (default: as the tables say).
    """

    reader: str = "simulator"
    roots: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    split: str = ""
    validation_roots: tuple[str, ...] = ()
    validation_split: str = ""
    media: str = ""
    films: str = ""


@dataclass(frozen=True)
class DataRecipe(SourceRecipe):
    """The data of a recipe of a detector.

    Args:
        reader, roots, options, split, validation_roots, validation_split, media, films: see `SourceRecipe`.
        kinds: of labels, in the order of the scores (default: those of ROAD that there are). Object
            detectors predict one (default: `agent`).
        only_used_labels: leave out labels that no box to learn from has.
        av_action: learn the actions of the own vehicle, where there are any.
        min_box_px: boxes with a shorter side in the image of the network are not learnt.
    """

    kinds: tuple[str, ...] = ()
    only_used_labels: bool = False
    av_action: bool = True
    min_box_px: float = 0.0


@dataclass(frozen=True)
class ClipsRecipe:
    """How videos are cut.

    Args:
        frames: of a clip.
        frame_step: a clip holds every so manieth frame.
        stride: frames between the beginnings of two clips of a video (default: the length of a clip).
        shift: begin the clips of a pass up to a stride later, by chance.
        batch: clips in a step, shared by all devices; at least one for each.
        accumulate: steps backwards before each step of the optimizer.
        balance: how often clips with rare labels are drawn: `none`, or `repeat`: a clip counts as often as
            its rarest label asks for, sqrt(balance_share / share of clips with the label), at least once.
        balance_kinds: whose labels count (default: all).
        balance_share: a label that this share of the clips has counts as common.
        balance_most: no clip counts more often.
    """

    frames: int = 8
    frame_step: int = 1
    stride: int = 0
    shift: bool = False
    batch: int = 4
    accumulate: int = 1
    balance: Literal["none", "repeat"] = "none"
    balance_kinds: tuple[str, ...] = ()
    balance_share: float = 0.05
    balance_most: float = 8.0


@dataclass(frozen=True)
class ScheduleRecipe:
    """How the weights move.

    Args:
        epochs: passes over the clips; `steps` counts instead where it is given.
        steps: of the optimizer.
        optimizer: sgd (with momentum) or adamw.
        lr: rate of learning after the warm-up.
        momentum, nesterov: of sgd.
        betas: of adamw.
        weight_decay: of weights; and of biases and norms too if `decay_all`, as published.
        decay_all: see `weight_decay`.
        bias_lr: factor of the rate of biases.
        part_lr: beginnings of the names of parameters to factors of their rate, such as
            `{model.backbone: 0.1}`; the longest that fits counts.
        warmup_steps: steps over which the rate rises to `lr`.
        warmup_from: share of `lr` that it begins with.
        decay: `steps` multiplies by `gamma` at each of `milestones`; `cosine` falls to `final` of `lr`;
            `none` stays.
        milestones: in epochs, or in steps where `steps` is given.
        gamma, final: see `decay`.
        clip_norm: gradients longer than this are shortened; 0 for as they are.
        ema: decay of a running mean of the weights, which then is what is judged and kept; 0 for none.
    """

    epochs: float = 30.0
    steps: int = 0
    optimizer: Literal["sgd", "adamw"] = "sgd"
    lr: float = 0.0041  # README of the release; its code has 0.004225 and the paper 0.01
    momentum: float = 0.9
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 1e-4
    decay_all: bool = True
    bias_lr: float = 2.0  # of the released code
    part_lr: dict[str, Any] = field(default_factory=dict)
    warmup_steps: int = 0
    warmup_from: float = 0.1
    decay: Literal["steps", "cosine", "none"] = "steps"
    milestones: tuple[float, ...] = (20.0, 25.0)  # of the released code; the paper has 18 and 25
    gamma: float = 0.1
    final: float = 0.0
    clip_norm: float = 0.0
    ema: float = 0.0


@dataclass(frozen=True)
class AugmentRecipe:
    """How images vary; everything is drawn once for a clip, so that its frames stay together.

    Args:
        flip: chance of a mirror image; sides in the names of labels change with it.
        colour: chance of other brightness, contrast, saturation and hue.
        brightness, contrast, saturation: largest share that each is raised or lowered by.
        hue: largest turn of the colours, in shares of a circle.
        zoom: smallest and largest factor; the image keeps its size.
        shift: largest move, in shares of the image.
        min_visible: boxes of which less stays in the image are not learnt.
    """

    flip: float = 0.0
    colour: float = 0.0
    brightness: float = 0.3
    contrast: float = 0.3
    saturation: float = 0.3
    hue: float = 0.02
    zoom: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0
    min_visible: float = 0.25


@dataclass(frozen=True)
class ValidationRecipe:
    """How it is judged on the way, by the detector that `predict` uses and by our evaluators.

    Args:
        every_steps: steps between two judgements; 0 for at the end alone.
        videos: how many are judged, spread over those there are; 0 for all.
        at_end: judge at the end.
        min_agentness, nms_iou, top: of detections, see `DetectRule`.
        link_iou: overlap that a link of tubes needs; 0 for the linker's own. Boxes of a few pixels move by
            much of their size, and are linked by less. It stays with the detector, for `watch`.
        linking: further fields of `LinkerConfig` that suit the detector, such as `{cost: score, assignment: greedy}`
            for one whose boxes jump from frame to frame (docs/bundled_detector.md); they stay with it, too.
    """

    every_steps: int = 0
    videos: int = 0
    at_end: bool = True
    min_agentness: float = 0.025
    nms_iou: float = 0.5
    top: int = 100
    link_iou: float = 0.0
    linking: dict[str, Any] = field(default_factory=dict)

    def linker_fields(self) -> dict[str, Any]:
        """Fields of `LinkerConfig` to their values; empty where the linker's defaults suit."""
        return {**({"min_iou": self.link_iou} if self.link_iou else {}), **self.linking}


@dataclass(frozen=True)
class TeacherRecipe:
    """A trained detector as teacher for frames without labels.

    It looks once at `films`, and at frames of the data that nobody annotated; what it finds is kept in the
    folder of the run. Labelled frames keep their labels, and teach alone what the own vehicle does.

    Args:
        weights: of the teacher: a name of the catalogue, or a file or folder that `predict` takes (default: none).
        films: without labels: videos, or folders of videos.
        min_score: agentness that its boxes need.
        soft: learn its scores as they are; else 1 where they are at least .5, and 0 elsewhere.
        size_px: the longer side that images are brought to, of a detector that takes any, such as
            street-small (default: 640).
    """

    weights: str = ""
    films: tuple[str, ...] = ()
    min_score: float = 0.25
    soft: bool = True
    size_px: int = 0


@dataclass(frozen=True)
class LossRecipe:
    """Logical requirements as a part of the loss: boxes whose labels violate them cost more.

    Of each anchor that stands for a box it is the mean over requirements of 1 less their truth, which a fuzzy logic
    reckons from the probabilities of labels.

    Args:
        requirements: a file of them, in either form of ROAD-R's (default: none).
        logic: `product`, `godel` or `lukasiewicz`: whose t-norm.
        weight: of this part in the whole loss.
    """

    requirements: str = ""
    logic: Literal["product", "godel", "lukasiewicz"] = "product"
    weight: float = 10.0


def is_torchrun() -> bool:
    """Whether torchrun has started this process, as one of several."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


@dataclass(frozen=True)
class MachineRecipe:
    """Hardware of a run; it changes rounding alone, but for what docs/train.md says of several devices.

    Args:
        accelerator: cpu, gpu, ... or `auto`.
        devices: on each machine, which share a step's clips; 0 for all. Under torchrun, as it says.
        nodes: machines; under torchrun, as it says.
        strategy: `auto`, or one of Lightning's, such as `ddp` or `ddp_spawn`.
        precision: `32`, `bf16-mixed` or another of Lightning's.
        workers: processes that decode, beside each device; 0 decodes between the steps.
        threads: of each device's process, on a CPU; 0 for as many as torch takes.
        cache_gb: decoded images kept in memory, by all processes of a machine together.
        channels_last: lay out clips so, as convolutions on most devices like them.
        compile: compile the network first.
        checkpoint_minutes: between two checkpoints.
        log_steps: steps between two lines of the log.
        tensorboard: also log for TensorBoard.
    """

    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"
    precision: str = "32"
    workers: int = 0
    threads: int = 0
    cache_gb: float = 1.0
    channels_last: bool = True
    compile: bool = False
    checkpoint_minutes: float = 10.0
    log_steps: int = 1
    tensorboard: bool = True


@dataclass(frozen=True)
class Recipe:
    """A training run, whole.

    Args:
        name: of what comes out.
        seed: of the first weights, the order of clips and all that is drawn by chance.
        model, data, clips, schedule, augment, loss, validation, teacher, machine: its parts.

    Raises:
        UsageError: if a value is impossible.

    Source: Singh et al., TPAMI 2022, section 5, and the released code of 3D-RetinaNet.
    """

    name: str = "road-events"
    seed: int = 123  # of the released code
    model: ModelRecipe = field(default_factory=ModelRecipe)
    data: DataRecipe = field(default_factory=DataRecipe)
    clips: ClipsRecipe = field(default_factory=ClipsRecipe)
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    augment: AugmentRecipe = field(default_factory=AugmentRecipe)
    loss: LossRecipe = field(default_factory=LossRecipe)
    validation: ValidationRecipe = field(default_factory=ValidationRecipe)
    teacher: TeacherRecipe = field(default_factory=TeacherRecipe)
    machine: MachineRecipe = field(default_factory=MachineRecipe)

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        clips, schedule, augment, machine = self.clips, self.schedule, self.augment, self.machine
        model, judged = self.model, self.validation
        factors = [f for f in schedule.part_lr.values() if not isinstance(f, int | float) or f < 0]
        for holds, wanted in (
            (bool(self.data.roots), "data.roots names at least one folder"),
            (min(clips.frames, clips.frame_step, clips.batch, clips.accumulate) >= 1, _SIZES),
            (clips.stride >= 0, "clips.stride is 0 or more"),
            (schedule.steps > 0 or schedule.epochs > 0, "schedule.steps or schedule.epochs is above 0"),
            (schedule.lr > 0, "schedule.lr is above 0"),
            (0 <= schedule.ema < 1, "schedule.ema lies in [0, 1)"),
            (min(schedule.warmup_steps, schedule.weight_decay, schedule.clip_norm) >= 0, _NOT_BELOW),
            (not factors, "schedule.part_lr names factors of 0 or more"),
            (sorted(schedule.milestones) == list(schedule.milestones), "schedule.milestones rise"),
            (all(0 <= p <= 1 for p in (augment.flip, augment.colour)), "chances lie in [0, 1]"),
            (0 < augment.zoom[0] <= augment.zoom[1], "augment.zoom is a smaller and a larger factor"),
            (0 <= augment.shift < 1, "augment.shift lies in [0, 1)"),
            (machine.devices >= 0 and machine.nodes >= 1, "machine.devices and nodes count"),
            (machine.workers >= 0 and machine.threads >= 0, "machine.workers and threads are 0 or more"),
            (machine.cache_gb >= 0 and machine.log_steps >= 1, "machine.cache_gb and log_steps count"),
            (0 <= self.seed < 2**32, "seed lies in [0, 2^32)"),
            (clips.balance_share > 0 and clips.balance_most >= 1, _BALANCE),
            (0 <= judged.min_agentness <= 1 and 0 <= judged.nms_iou <= 1, _JUDGED),
            (min(judged.every_steps, judged.videos) >= 0 and judged.top >= 1, _COUNTS),
            (model.likeliest >= 0, "model.likeliest is 0 or more"),
            (0 <= self.teacher.min_score <= 1, "teacher.min_score lies in [0, 1]"),
            (bool(self.teacher.weights) or not self.teacher.films, _NO_TEACHER),
            (not self.teacher.weights or (machine.devices, machine.nodes) == (1, 1), _ALONE),
            (not model.is_objects or bool(model.weights or model.fields.get("type")), _TYPE),
            (not model.is_objects or (model.base, model.likeliest) == ("default", 0), _NOT_OBJECTS),
            (0 < self.loss.weight < float("inf"), "loss.weight is above 0"),
            (not model.is_objects or not self.loss.requirements, _NO_LOGIC),
            (not model.is_objects or len(self.data.kinds) <= 1, "an object detector tells one of data.kinds"),
        ):
            if not holds:
                raise UsageError(f"the recipe cannot be run: {wanted}")
        try:
            from_dict(LinkerConfig, {**to_dict(LinkerConfig.default()), **judged.linker_fields()})
        except UsageError as error:
            raise UsageError(f"the recipe cannot be run: validation.linking: {error}") from error


_SIZES = "clips.frames, frame_step, batch and accumulate are at least 1"
_NOT_BELOW = "schedule.warmup_steps, weight_decay and clip_norm are 0 or more"
_BALANCE = "clips.balance_share is above 0 and balance_most at least 1"
_JUDGED = "validation.min_agentness and nms_iou lie in [0, 1]"
_COUNTS = "validation.every_steps and videos are 0 or more, top at least 1"
_NO_TEACHER = "teacher.films are looked at by teacher.weights, which names nothing"
_ALONE = "a teacher is asked by one process: machine.devices and nodes are 1"
_TYPE = "an object detector has model.weights, a folder, or model.fields.type, such as rt_detr"
_NO_LOGIC = "loss.requirements are over several kinds of labels, and an object detector tells one"
_NOT_OBJECTS = "model.base and model.likeliest are not for object detectors"
