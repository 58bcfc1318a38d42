"""PedestrianRecipe: everything that training a predictor of pedestrians is made of, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from roadaware import config as configs
from roadaware.errors import UsageError
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.models import CROSSING, get_crossing_entry
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.training.recipe import ScheduleRecipe

Task = Literal["action", "intention", "risk"]
Criterion = Literal["average_precision", "auc", "log_loss", "balanced_accuracy"]
Loss = Literal["plain", "ordinal"]
PathLoss = Literal["logcosh", "squares"]


@dataclass(frozen=True)
class NetworkRecipe:
    """The network of a recipe.

    Args:
        name: in the registry, such as sfgru or steady.
        size: `published`, or `small` where a network has one that two cores can train.
        fields: of its config, over those of its size.
        inputs: what it reads, in order (default: those of its paper).
        weights: a file with image weights to begin with, or a predictor to go on from.
    """

    name: str = "steady"
    size: Literal["published", "small"] = "published"
    fields: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    weights: str = ""


@dataclass(frozen=True)
class SamplesRecipe:
    """The samples of a recipe.

    Args:
        reader: of the annotations.
        root: their folder or archive.
        options: of the reader.
        protocol: how samples are cut, such as jaad-action@iv2024.
        config: the protocol as published (`reference`), or with honest labels (`default`).
        fields: of the protocol that are replaced.
        dense: cut the samples of train at every frame, instead of every so many; validation and test stay.
        media: folder of videos and masks (default: that of the annotations).
        films: where videos lie in it, with `{video}` (default: where the tables say).
        maps: where class masks lie in it, with `{video}` and `{frame}` (default: beside the videos).
        classes: what the numbers in masks are.
        poses: a file of poses or a folder of pickles (default: the tables' joints).
        cache: folder that keeps cut images (default: none).
        leaks: allow inputs that leak the label.
    """

    reader: str = "jaad"
    root: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    protocol: str = "jaad-action@iv2024"
    config: Literal["reference", "default"] = "default"
    fields: dict[str, Any] = field(default_factory=dict)
    dense: bool = False
    media: str = ""
    films: str = ""
    maps: str = ""
    classes: Literal["simulator", "cityscapes"] = "simulator"
    poses: str = ""
    cache: str = ""
    leaks: bool = False


@dataclass(frozen=True)
class LossRecipe:
    """The loss of a recipe.

    Args:
        label: `plain` cross-entropy, or `ordinal`: for regions in a row, cross-entropy and, `ordinal_weight`
            times, the squared distance between cumulated probabilities.
        ordinal_weight: see `label`.
        balance: weigh labels inversely to how often they occur, to this power: 0 not at all, 1 fully.
        smoothing: share of each ground truth that is spread over all labels.
        soft: learn intention as the share of people who saw it, not as its class.
        consistency: of a network that answers at every frame, the weight of squared changes from frame to
            frame.
        every_frame: of such a network, the weight of the loss at earlier frames, from the fifth on.
    """

    label: Loss = "plain"
    ordinal_weight: float = 1.0
    balance: float = 0.0
    smoothing: float = 0.0
    soft: bool = False
    consistency: float = 0.0
    every_frame: float = 0.0


@dataclass(frozen=True)
class TasksRecipe:
    """Auxiliary tasks of a network, where its paper has a head for them.

    Args:
        trajectory, grid: weights of the losses of boxes ahead and of the cell that they end in (default: 1 where the
            network has the head), 0 for none.
        horizon_frames: boxes ahead (default: as many as the protocol keeps free behind the observation).
        path: `logcosh` of each side of a box, or `squares`; in deviations of the sides on train.
    """

    trajectory: float | None = None
    grid: float | None = None
    horizon_frames: int = 0
    path: PathLoss = "logcosh"


@dataclass(frozen=True)
class PedestrianRecipe:
    """Training of one network under one protocol, over several seeds.

    Args:
        name: of what comes out.
        task: what is asked.
        seeds: one fit each.
        network, samples, loss, tasks, schedule: its parts; the schedule counts epochs.
        doubt: what differs when the predictor is asked again.
        batch: samples in a step.
        flip: chance that a sample is mirrored, left to right.
        standardise: let sequences come in with mean 0 and deviation 1 on train; the published networks take
            them as they are.
        choose: what is best on validation; it decides which epoch is kept.
        patience: epochs without a better one after which a fit ends; 0 for never.
        threads: of torch; 0 for as many as it takes.

    Raises:
        UsageError: if a value is impossible.
    """

    name: str = "predictor"
    task: Task = "action"
    seeds: tuple[int, ...] = (0, 1, 2)
    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    samples: SamplesRecipe = field(default_factory=SamplesRecipe)
    loss: LossRecipe = field(default_factory=LossRecipe)
    tasks: TasksRecipe = field(default_factory=TasksRecipe)
    schedule: ScheduleRecipe = field(default_factory=lambda: ScheduleRecipe(epochs=30, optimizer="adamw"))
    doubt: DoubtConfig = field(default_factory=DoubtConfig)
    batch: int = 128
    flip: float = 0.0
    standardise: bool = True
    choose: Criterion = "average_precision"
    patience: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for holds, wanted in (
            (
                bool(self.seeds) and len(set(self.seeds)) == len(self.seeds),
                "seeds are one or more, each once",
            ),
            (self.batch >= 1, "batch is at least 1"),
            (0 <= self.flip <= 1, "flip lies in [0, 1]"),
            (0 <= self.loss.smoothing < 1, "loss.smoothing lies in [0, 1)"),
            (0 <= self.loss.balance <= 1, "loss.balance lies in [0, 1]"),
            (not self.loss.soft or self.task == "intention", "loss.soft is for intention"),
            (self.loss.label == "plain" or self.task == "risk", "loss.label: ordinal is for risk"),
            (
                min(self.tasks.trajectory or 0, self.tasks.grid or 0, self.tasks.horizon_frames) >= 0,
                "tasks.trajectory, grid and horizon_frames are 0 or more",
            ),
            (self.patience >= 0 and self.threads >= 0, "patience and threads are 0 or more"),
            (self.schedule.steps == 0, "schedule counts epochs"),
            (bool(self.samples.root), "samples.root names the annotations"),
        ):
            if not holds:
                raise UsageError(f"the recipe cannot be run: {wanted}")

    @property
    def metrics(self) -> PedestrianConfig:
        """How its samples are judged: as they are cut, `reference` or `default`."""
        named = PedestrianConfig.reference if self.samples.config == "reference" else PedestrianConfig.default
        return named(self.task)


# Checks of a recipe before its data are read: what its model could not do, or would not even look at.

_READ = ("type", "name", "task", "seeds", "network", "samples", "threads")
"""What a model on hand features takes from a recipe, of the seeds the first alone and of the network no size;
and threads, which change no result."""


def check_network(recipe: PedestrianRecipe) -> None:
    """Refuse a network that there is not, or losses of answers that it does not give.

    Raises:
        UsageError: naming the networks that there are, or those that have what is asked for.
    """
    entry = get_crossing_entry(recipe.network.name)
    asked = [name for name in ("every_frame", "consistency") if getattr(recipe.loss, name)]
    if asked and not entry.each_frame:
        able = ", ".join(name for name in CROSSING if get_crossing_entry(name).each_frame)
        raise UsageError(
            f"loss.{' and loss.'.join(asked)}: {recipe.network.name} does not answer at every frame, so "
            f"that would do nothing; {able} does. Let it be 0, or take another network"
        )


def list_unused_fields(recipe: PedestrianRecipe) -> tuple[str, ...]:
    """The fields that a recipe of a model on hand features sets and that its model does not look at.

    Returns:
        Names such as `schedule.lr`, of values other than the usual ones.
    """
    usual = PedestrianRecipe(samples=SamplesRecipe(root="any"))
    found = []
    if len(recipe.seeds) > 1 and recipe.seeds != usual.seeds:
        found.append("seeds beyond the first")
    if recipe.network.size != usual.network.size:
        found.append("network.size")
    base = configs.to_dict(usual)
    for name, value in configs.to_dict(recipe).items():
        if name in _READ or value == base[name]:
            continue
        inner = value if isinstance(value, dict) else None
        found += (
            [name] if inner is None else [f"{name}.{key}" for key in inner if inner[key] != base[name][key]]
        )
    return tuple(found)
