"""CrowdRecipe: everything that a training run of a network of crowds is made of; torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roadaware.errors import UsageError
from roadaware.models.crowd.config import TASKS, CrowdConfig, Task
from roadaware.tasks.crowd_answers import ClipConfig
from roadaware.training.recipe import MachineRecipe, ScheduleRecipe, SourceRecipe

_BASES = {"compact": CrowdConfig.compact, "paper": CrowdConfig.paper, "tiny": CrowdConfig.tiny}


@dataclass(frozen=True)
class CrowdModelRecipe:
    """The network of a recipe.

    Args:
        base: `compact` for two cores, `paper` as published, or `tiny` for trials.
        fields: of `CrowdConfig`, in place of the base's; the tasks are those of the recipe.
        weights: file of a network of crowds to begin with: what both have is taken, such as a trunk that learnt
            actions alone (default: none).
        trunk: weights that the trunk begins with where `weights` names none: a detector of ours for the compact trunk
            (default: the bundled one), a ResNet-50 of others for `i3d`; `random` for none.
        train_trunk: learn the whole trunk, from images; else what lies before the dynamic layers stays as it is, and its
            maps are made once and kept.
        freeze: beginnings of the names of parameters that stay as they are.
        freeze_batch_norm: keep the statistics and factors that batch norms begin with.
        paths: task to its block in each dynamic layer, from 0, such as `{sound: [0, 1, 1, 0, 0]}`; such a task takes
            this path in training as in evaluation, whatever the scores say (default: the scores choose).
    """

    base: Literal["compact", "paper", "tiny"] = "compact"
    fields: dict[str, Any] = field(default_factory=dict)
    weights: str = ""
    trunk: str = ""
    train_trunk: bool = False
    freeze: tuple[str, ...] = ()
    freeze_batch_norm: bool = False
    paths: dict[str, Any] = field(default_factory=dict)

    def build_config(self, tasks: tuple[Task, ...]) -> CrowdConfig:
        """The config of the network.

        Raises:
            UsageError: if a field is unknown or impossible.
        """
        if "tasks" in self.fields:
            raise UsageError("model.fields: the tasks of the network are those of the recipe, `tasks`")
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in self.fields.items()}
        try:
            return _BASES[self.base](**given, tasks=tasks)
        except TypeError as error:
            raise UsageError(f"model.fields: {error}") from error

    def weights_path(self) -> Path:
        """Path of the initial weights.

        Raises:
            UsageError: if there is no such file.
        """
        path = Path(self.weights)
        if not path.is_file():
            raise UsageError(f"model.weights: there is no file {self.weights[:200]!r}")
        return path


@dataclass(frozen=True)
class CrowdClipsRecipe(ClipConfig):
    """How videos are looked at and cut.

    Args:
        fps, size_px, frames, most_frames, sentence_s: as of `ClipConfig`; in training a clip is that of the data.
        most_people: of a moment to learn from.
        batch: clips of one task at a time.
        questions: about each clip, at most: moments with people, sentences, or classes of sound; a clip costs far more
            than a question about it.
        accumulate: such batches in a step, of tasks in turn.
        jitter: boxes are moved and made larger or smaller by up to this share of their size.
        crop: chance that a sentence is looked for in a part of its clip.
        crop_frames: of such a part, at most, where the span is not longer; 0 for any number.
        wrong: chance that a sound is asked for that is not heard.
        strange: chance that beside a sentence one of another video is asked, which nobody here goes with; for networks
            that compare sentences with people.
        ears: moments of any film that are only heard, beside each clip of a sound: which classes are heard there is learnt
            too, since a moment that is seen costs a hundred times more.
        motion_steps: steps before the first one of the schedule, in which the compact heads of actions and of relations
            learn what tracks alone say, and so many for sounds beside it.
        found: folder of tables with tubes of a detector in the same videos, as `roadaware link` writes them: in these first
            steps actions are learnt from its tracks too, each with what the true person whom it overlaps by half does
            (default: from true tracks alone).
        crop_steps: steps before the first one of the schedule, too, in which the compact head of actions learns what crops of
            people say, if it has layers for them (`model.fields.crop_width`): of true boxes, and of those of `found`.
        walks: moments of any film whose tracks alone are known, beside each clip of actions and relations: what tracks say of
            them is learnt on, for the same reason as with `ears`; of the compact form.
        mono: chance that one channel of a sound takes the place of both.
        balance_share: questions with rarer labels are drawn more often, sqrt(balance_share / their share).
        balance_most: at most so often.
        maps: folder of the maps that are kept (default: `maps` in that of the run); runs on the same videos share it.
    """

    most_people: int = 48
    batch: int = 4
    questions: int = 1
    accumulate: int = 1
    jitter: float = 0.1
    crop: float = 0.5
    crop_frames: int = 0
    wrong: float = 0.25
    strange: float = 0.25
    ears: int = 8
    motion_steps: int = 2000
    found: str = ""
    crop_steps: int = 0
    walks: int = 16
    mono: float = 0.2
    balance_share: float = 0.1
    balance_most: float = 4.0
    maps: str = ""


@dataclass(frozen=True)
class CrowdValidationRecipe:
    """How it is judged on the way, by the evaluators of the four tasks, on true boxes.

    Args:
        every_steps: steps between two judgements; 0 for at the end alone.
        videos: how many are judged, spread over those there are; 0 for all.
        at_end: judge at the end.
        patience: judgements without a better mean of the four, after which it ends; 0 for never. What is kept is the
            network of the best judgement then.
    """

    every_steps: int = 0
    videos: int = 0
    at_end: bool = True
    patience: int = 0


@dataclass(frozen=True)
class CrowdRecipe:
    """A training run of a network of crowds, whole.

    Args:
        name: of what comes out.
        seed: of the first weights, the order of questions and all that is drawn by chance.
        tasks: each to its share of the batches, such as `{actions: 2, sound: 1}`; a head with a share of 0 is there, such as
            that of `model.weights`, and learns what tracks and crops say (`clips.motion_steps`, `clips.crop_steps`) alone.
        temperature: of the choice of blocks at the first and at the last step.
        sound_loss: `map`, which needs boxes; or `sspl`, self-supervised as published.
        shuffle_tasks: in training each batch takes the path of another task, drawn at random, so that scores and blocks
            learn nothing of the task; a control of ablations.
        model, data, clips, schedule, validation, machine: its parts.

    Raises:
        UsageError: if a value is impossible.

    Source: supplement of Chaotic World, ICCV 2023, section 4.
    """

    name: str = "crowd"
    seed: int = 22
    tasks: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(TASKS, 1.0))
    temperature: tuple[float, float] = (5.0, 0.5)
    sound_loss: Literal["map", "sspl"] = "map"
    shuffle_tasks: bool = False
    model: CrowdModelRecipe = field(default_factory=CrowdModelRecipe)
    data: SourceRecipe = field(default_factory=SourceRecipe)
    clips: CrowdClipsRecipe = field(default_factory=CrowdClipsRecipe)
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    validation: CrowdValidationRecipe = field(default_factory=CrowdValidationRecipe)
    machine: MachineRecipe = field(default_factory=MachineRecipe)

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        clips, schedule, machine = self.clips, self.schedule, self.machine
        shares = list(self.tasks.values())
        factors = [f for f in schedule.part_lr.values() if not isinstance(f, int | float) or f < 0]
        good = [isinstance(s, int | float) and not isinstance(s, bool) and 0 <= s < 1e6 for s in shares]
        chances = (clips.jitter, clips.crop, clips.wrong, clips.strange, clips.mono)
        counts = (
            clips.frames,
            clips.most_frames,
            clips.most_people,
            clips.batch,
            clips.questions,
            clips.accumulate,
        )
        for holds, wanted in (
            (bool(self.tasks) and set(self.tasks) <= set(TASKS), f"tasks are some of {', '.join(TASKS)}"),
            (all(good) and sum(shares) > 0, "the share of a task is a number of 0 or more, and of one at least above 0"),
            (min(self.temperature) > 0, "temperatures are above 0"),
            (bool(self.data.roots), "data.roots names at least one folder"),
            (0 < clips.fps <= 1000 and 0 < clips.sentence_s <= 3600, "clips.fps and sentence_s are above 0"),
            (all(32 <= side <= 4096 for side in clips.size_px), "clips.size_px lies in 32 to 4096"),
            (min(counts) >= 1, "clips.frames, most_frames, most_people, batch, questions and accumulate are at least 1"),
            (min(clips.crop_frames, clips.ears) >= 0, "clips.crop_frames and ears are at least 0"),
            (
                min(clips.walks, clips.motion_steps, clips.crop_steps) >= 0,
                "clips.walks, motion_steps and crop_steps are at least 0",
            ),
            (clips.track_frames >= 1 and clips.track_frames % 2 == 1, "clips.track_frames is odd"),
            (all(0 <= p < 1 for p in chances), "clips.jitter, crop, wrong, strange and mono lie in [0, 1)"),
            (clips.balance_share > 0 and clips.balance_most >= 1, "clips.balance_share is above 0, balance_most at least 1"),
            (
                max(schedule.steps, schedule.epochs, clips.motion_steps, clips.crop_steps) > 0,
                "schedule.steps, schedule.epochs, clips.motion_steps or crop_steps is above 0",
            ),
            (schedule.lr > 0 and 0 <= schedule.ema < 1, "schedule.lr is above 0, ema lies in [0, 1)"),
            (min(schedule.warmup_steps, schedule.weight_decay, schedule.clip_norm) >= 0, "nothing of schedule is below 0"),
            (not factors, "schedule.part_lr names factors of 0 or more"),
            (min(self.validation.every_steps, self.validation.videos, self.validation.patience) >= 0, "validation counts"),
            (self.sound_loss == "map" or clips.batch > 1, "sound_loss: sspl compares clips: clips.batch is at least 2"),
            ((machine.devices, machine.nodes) == (1, 1), "one process learns it: machine.devices and nodes are 1"),
            (min(machine.workers, machine.threads, machine.log_steps - 1) >= 0, "machine.workers and log_steps count"),
            (not self.shuffle_tasks or len(self.tasks) > 1, "shuffle_tasks needs several tasks"),
            (set(self.model.paths) <= set(self.tasks), "model.paths names tasks of the recipe"),
            (0 <= self.seed < 2**32, "seed lies in [0, 2^32)"),
        ):  # fmt: skip
            if not holds:
                raise UsageError(f"the recipe cannot be run: {wanted}")

    @property
    def ordered_tasks(self) -> tuple[Task, ...]:
        """The tasks in their usual order."""
        return tuple(task for task in TASKS if task in self.tasks)

    @property
    def learnt_tasks(self) -> tuple[Task, ...]:
        """Those of them with batches."""
        return tuple(task for task in self.ordered_tasks if self.tasks[task])

    def build_config(self) -> CrowdConfig:
        """The config of the network; see `CrowdModelRecipe`."""
        return self.model.build_config(self.ordered_tasks)
