"""The loop: a recipe becomes a trained network; it can be stopped or killed at any step and goes on."""

from __future__ import annotations

import bisect
import copy
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy
from lightning.fabric.strategies.single_device import SingleDeviceStrategy
from torch import Tensor, nn
from torch.utils.data import Dataset

from roadaware import __version__
from roadaware.config import digest, to_dict
from roadaware.errors import DiskError, RoadawareError, UsageError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder, make_folder
from roadaware.io.interrupts import Stop, stop_gracefully
from roadaware.tasks.road_events import Classes
from roadaware.training.batches import Batch, Draws, Share, build_loader
from roadaware.training.build import Learner, Trainable, build_learner
from roadaware.training.checkpoints import (
    LAST,
    Checkpoint,
    Journal,
    blame_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.data import Material, load_training_data
from roadaware.training.recipe import Recipe, ScheduleRecipe, is_torchrun
from roadaware.training.teacher import evaluate_learner, teacher_row, with_teacher

# Export of a run: the detector and its model card.


CARD = "model.md"


def save_product(
    folder: Path,
    learner: Learner,
    average: Mapping[str, Tensor] | None,
    material: Material,
    recipe: Recipe,
    facts: Mapping[str, Any],
) -> Path:
    """Write the detector and its card, and answer where the detector is.

    Args:
        folder: of the run.
        learner: as it is trained; it is left alone.
        average: a running mean of its network's weights, which then is written.
        material: what it learnt from.
        recipe: how.
        facts: steps and metrics.

    Raises:
        DiskError: if the disk refuses.
    """
    kept = copy.deepcopy(learner.network).cpu().eval()
    if average is not None:
        kept.load_state_dict(dict(average))
    notes = {
        "name": recipe.name,
        "recipe": digest(recipe),
        "data": material.scenes.meta.dataset,
        "licence": material.scenes.meta.licence,
        "videos": len(material.films),
        "seed": recipe.seed,
        **({"linking": advised} if (advised := recipe.validation.linker_fields()) else {}),
        **facts,
    }
    path = learner.save(folder, kept, notes)
    # What the detector is, for people.
    classes, meta = material.classes, material.scenes.meta
    labels = ", ".join(f"{len(held)} of {kind}" for kind, held in classes.kinds.items())
    rows = [
        ("model", f"{recipe.model.name}, {sum(p.numel() for p in kept.parameters()):,} parameters"),
        ("labels", f"{labels}; {len(classes.av_labels)} actions of the own vehicle"),
        ("learnt from", f"{meta.dataset or 'scenes'}: {len(material.films)} videos, from {_roots(recipe)}"),
        *teacher_row(recipe, material.taught),
        ("terms of the annotations", meta.licence or "unknown"),
        ("steps", f"{facts['step']:,} of {facts['steps']:,}"),
        ("recipe", f"recipe.json, digest {digest(recipe)}, seed {recipe.seed}"),
        ("program", f"roadaware {__version__}"),
    ]
    lines = [f"# {recipe.name}", "", "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows)]
    if facts["metrics"]:
        judged = recipe.validation.videos or len(material.judged_films)
        lines += ["", f"Judged on {judged} videos:", "", "| metric | per cent |", "|---|---|"]
        lines += [f"| {name} | {100 * value:.1f} |" for name, value in facts["metrics"].items()]
    write_atomically(folder / CARD, ("\n".join(lines) + "\n").encode())
    return path


def _roots(recipe: Recipe) -> str:
    split = f", split {recipe.data.split}" if recipe.data.split else ""
    return ", ".join(Path(root).name for root in recipe.data.roots) + split


# Schedule: the rate of learning at each step, groups of parameters, and a running mean of the weights.


def count_steps(schedule: ScheduleRecipe, clips: int, per_step: int) -> int:
    """Steps of a whole run; none where neither steps nor epochs are.

    Args:
        schedule: in steps or epochs.
        clips: of a pass.
        per_step: clips of a step of all processes.
    """
    epochs = schedule.epochs
    return schedule.steps or (max(1, math.ceil(epochs * clips / per_step)) if epochs else 0)


def compute_learning_rate(schedule: ScheduleRecipe, step: int, steps: int) -> float:
    """The rate of a step.

    Args:
        schedule: how it moves.
        step: from 0.
        steps: of the whole run.
    """
    if step < schedule.warmup_steps:
        rising = (step + 1) / schedule.warmup_steps
        return schedule.lr * (schedule.warmup_from + (1 - schedule.warmup_from) * rising)
    if schedule.decay == "cosine":
        past = (step - schedule.warmup_steps) / max(1, steps - schedule.warmup_steps)
        low = schedule.final
        return schedule.lr * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(1.0, past))))
    if schedule.decay == "steps":
        now = float(step) if schedule.steps else step * schedule.epochs / steps
        return schedule.lr * float(schedule.gamma ** bisect.bisect_right(schedule.milestones, now))
    return schedule.lr


def freeze(network: nn.Module, recipe: Recipe | CrowdRecipe) -> list[nn.Module]:
    """Stop parameters that stay as they are, and answer the batch norms that are not to be trained.

    Args:
        network: is changed.
        recipe: says which.

    Raises:
        UsageError: if no parameter has a name that is given.
    """
    _ensure_parameters(network, recipe.model.freeze, "model.freeze")
    for name, parameter in network.named_parameters():
        if any(name.startswith(beginning) for beginning in recipe.model.freeze):
            parameter.requires_grad_(False)
    norms: list[nn.Module] = []
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (
            recipe.model.freeze_batch_norm
            or any(f"{name}.".startswith(beginning) for beginning in recipe.model.freeze)
        ):
            norms.append(module)
            for parameter in module.parameters():
                parameter.requires_grad_(False)
    return norms


def _ensure_parameters(network: nn.Module, beginnings: Iterable[str], where: str) -> None:
    """Raise where no parameter has a name that begins so."""
    names = [name for name, _ in network.named_parameters()]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names):
            parts = sorted({".".join(name.split(".")[:2]) for name in names})
            raise UsageError(f"{where}: no parameter begins with '{beginning}'; there are {', '.join(parts)}")


def build_optimizer(network: nn.Module, schedule: ScheduleRecipe) -> torch.optim.Optimizer:
    """Build the optimizer; `times` of each parameter group multiplies its learning rate.

    Raises:
        UsageError: if no parameter has a name that `part_lr` gives.
    """
    _ensure_parameters(network, schedule.part_lr, "schedule.part_lr")
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            bias = name.endswith("bias")
            bare = parameter.ndim <= 1 and not schedule.decay_all
            # What the rate of a parameter is multiplied by because of its name.
            fitting = [beginning for beginning in schedule.part_lr if name.startswith(beginning)]
            times = (schedule.bias_lr if bias else 1.0) * (
                float(schedule.part_lr[max(fitting, key=len)]) if fitting else 1.0
            )
            key = (times, 0.0 if bare else schedule.weight_decay)
            groups.setdefault(key, []).append(parameter)
    rows = [
        {"params": held, "weight_decay": decay, "times": times}
        # In one order, so that a saved state meets the groups that it was made of.
        for (times, decay), held in sorted(groups.items(), key=lambda item: item[0])
    ]
    if schedule.optimizer == "adamw":
        return torch.optim.AdamW(rows, lr=schedule.lr, betas=schedule.betas, fused=True)
    return torch.optim.SGD(
        rows, lr=schedule.lr, momentum=schedule.momentum, nesterov=schedule.nesterov, fused=True
    )


def set_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    """Let an optimizer of `build_optimizer` take its next step at a rate."""
    for group in optimizer.param_groups:
        group["lr"] = value * group["times"]


def resume_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Take up a saved state, with the decay and momentum that an optimizer of `build_optimizer` has now.

    The rate is that of the saved state, until `set_rate`: where no step is left, nothing changes.

    Args:
        optimizer: its weights are where they will stay.
        state: as its `state_dict` gave it.

    Raises:
        UsageError: if it is of another optimizer, or of other groups of parameters.
    """
    now = optimizer.param_groups
    if _groups(now) != _groups(state["param_groups"]):
        raise UsageError(
            "the checkpoint is of another optimizer or of other groups of parameters: leave "
            "schedule.optimizer, bias_lr, part_lr, decay_all, model.freeze and freeze_batch_norm as they "
            "were, and no weight_decay at 0 that was not, or begin another run with --out"
        )
    meant = [{name: value for name, value in group.items() if name not in ("params", "lr")} for group in now]
    optimizer.load_state_dict(dict(state))
    for group, options in zip(optimizer.param_groups, meant, strict=True):
        group.update(options)


def _groups(groups: Iterable[Mapping[str, Any]]) -> list[tuple[float, int, list[str]]]:
    """What must be the same for a state to fit."""
    return [(group["times"], len(group["params"]), sorted(group)) for group in groups]


class Average:
    """A running mean of weights; it follows faster at the beginning.

    Args:
        state: of the network, floating point or not.
        decay: share of the mean that stays at each step.
    """

    def __init__(self, state: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.state = {name: value.detach().clone() for name, value in state.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Be as a checkpoint has it."""
        for name, mean in self.state.items():
            mean.copy_(state[name])

    @torch.no_grad()
    def follow(self, state: Mapping[str, Tensor], step: int) -> None:
        """Take in the weights behind a step.

        Args:
            state: of the network.
            step: from 0.
        """
        # Follows faster at first: a mean over few steps would keep the random weights it began with.
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, mean in self.state.items():
            if mean.is_floating_point():
                mean.lerp_(state[name].detach(), share)
            else:
                mean.copy_(state[name])


Progress = Callable[[int, int, str], None]
_log = logging.getLogger("roadaware")


class DivergedError(RoadawareError):
    """The loss is no number any more."""

    exit_code = 1


class LostProcessError(RoadawareError):
    """Another process of the run has ended, and this one cannot go on alone."""

    exit_code = 1


@dataclass(frozen=True)
class TrainedDetector:
    """Result of a run.

    Args:
        folder: of the run.
        step: steps done.
        steps: of the whole run.
        stopped: number of the signal that ended it early, or None.
        model: the detector, if it was written.
        metrics: of the last judgement.
        first: whether this process is the one that writes.
    """

    folder: Path
    step: int
    steps: int
    stopped: int | None = None
    model: Path | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    first: bool = True


def train(
    recipe: Recipe | CrowdRecipe,
    out: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    make: type[Run[Any]] | None = None,
) -> TrainedDetector:
    """Train a detector, and write it with its log and checkpoints into a folder.

    Args:
        recipe: everything the run is made of.
        out: its folder.
        resume: go on from the folder's last checkpoint, if it has one.
        progress: called with the steps done and the total.
        make: the kind of run (default: `DetectorRun`).

    Under torchrun this is one of its processes: they share `clips.batch`, and the first one writes.

    Raises:
        UsageError: if the recipe cannot be run, the folder holds a run and `resume` is not asked for, or
            another process is at work in it.
        InputError: if data or checkpoint cannot be read.
        DiskError: if the folder cannot be written to.
        DivergedError: if the loss is no number any more.
        LostProcessError: if another process of the run has ended.
    """
    if is_torchrun():
        recipe = _take_torchrun(recipe)
    # The first process holds the folder; the others would be refused. Torchrun numbers all processes by RANK,
    # Lightning those that it starts by machine and on each of them.
    numbers = ("RANK",) if is_torchrun() else ("LOCAL_RANK", "NODE_RANK")
    if any(int(os.environ.get(name, "0") or 0) for name in numbers):
        return _train(recipe, out, resume, progress, make or DetectorRun)
    with hold_folder(out):
        return _train(recipe, out, resume, progress, make or DetectorRun)


def _take_torchrun(recipe: Recipe | CrowdRecipe) -> Recipe | CrowdRecipe:
    """The recipe on the machines and devices that torchrun's variables say."""
    world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if world % local:
        raise UsageError(
            f"torchrun started {world} processes, {local} of them here: start as many on each machine"
        )
    try:
        return replace(recipe, machine=replace(recipe.machine, devices=local, nodes=world // local))
    except UsageError as error:
        raise UsageError(f"torchrun started {world} processes, and {error}") from error


def _train(
    recipe: Recipe | CrowdRecipe, out: Path, resume: bool, progress: Progress | None, make: type[Run[Any]]
) -> TrainedDetector:
    if (out / LAST).exists() and not resume:
        raise UsageError(f"{out} holds a run: go on with --resume, or name another folder with --out")
    make_folder(out)
    fabric = _fabric(recipe)
    if is_torchrun():
        # Before signals are only noted: who waits here for a process that never comes can be ended.
        fabric.launch()
        try:
            return TrainedDetector(**_run(fabric, recipe, out, progress, make))
        except RuntimeError as error:
            # What exchanges between CPUs (gloo) raises plain errors.
            if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):
                raise
            raise LostProcessError(
                "another process of this run has ended or cannot be reached, see what it said; the same command "
                "with --resume goes on from the last checkpoint"
            ) from error
    if not isinstance(fabric.strategy, SingleDeviceStrategy):
        progress = None  # what shows it cannot go along into other processes
    with stop_gracefully(children=True):
        # Lightning looks into arguments and results, and does not want dataclasses that are frozen.
        came = fabric.launch(partial(_run, recipe=recipe, out=out, progress=progress, make=make))
    return TrainedDetector(**came)


def _fabric(recipe: Recipe | CrowdRecipe) -> Fabric:
    machine = recipe.machine
    several = machine.devices != 1 or machine.nodes > 1
    strategy: str | DDPStrategy = machine.strategy
    if is_torchrun() and machine.strategy.startswith(("auto", "ddp")):
        # The first process judges while the others wait, which may take longer than the usual half hour.
        unused = "find_unused" in machine.strategy
        strategy = DDPStrategy(timeout=timedelta(days=1), find_unused_parameters=unused)
    elif strategy == "auto" and several and machine.accelerator == "cpu":
        strategy = "ddp_spawn"
    try:
        return Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices or "auto",
            num_nodes=machine.nodes,
            strategy=strategy,
            precision=cast(Any, machine.precision),
        )
    except Exception as error:  # the library raises whatever its parts do
        raise_interrupt(error)
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the recipe cannot be run on this machine (machine.*): {first}") from error


def _run(
    fabric: Fabric,
    recipe: Recipe | CrowdRecipe,
    out: Path,
    progress: Progress | None,
    make: type[Run[Any]],
) -> dict[str, Any]:
    if recipe.machine.threads:
        torch.set_num_threads(recipe.machine.threads)
    report = progress if fabric.is_global_zero else None
    if not fabric.is_global_zero:
        _log.setLevel(logging.ERROR)  # the first process says it for all
    with stop_gracefully(children=True) as stop:
        return vars(make(fabric, recipe, out, report).go(stop))


R = TypeVar("R", Recipe, CrowdRecipe)


class Run(Generic[R]):
    """One process of a run, from its first step or the one behind the last checkpoint.

    A subclass says what is learnt by whom (`load`), how that is judged (`judge`) and what comes out (`export`).

    Args:
        fabric: devices and processes.
        recipe: everything the run is made of.
        out: its folder.
        progress: called with the steps done and the total.
    """

    recipe: R
    learner: Trainable
    clips: Dataset[Any]
    """What is learnt, by the number of the draw."""
    classes: Classes
    """What is told apart: checkpoints of others are refused."""

    def __init__(self, fabric: Fabric, recipe: R, out: Path, progress: Progress | None) -> None:
        self.fabric, self.recipe, self.out, self.progress = fabric, recipe, out, progress
        self.load()
        self.network = self.learner.network
        clips = recipe.clips
        self.share = Share(clips.batch, clips.accumulate, fabric.global_rank, fabric.world_size)
        self.steps = count_steps(recipe.schedule, self.count(), self.share.step)
        self.still = freeze(self.network, recipe)
        self.step, self.seconds, self.saved = 0, 0.0, 0
        self.chance: Tensor | None = None
        self._set_up(out / LAST)

    def load(self) -> None:
        """Set `learner`, `clips` and `classes`.

        Raises:
            UsageError, InputError: if something cannot be made or read.
        """
        raise NotImplementedError

    def count(self) -> int:
        """How many clips there are, of which a pass over the data consists."""
        raise NotImplementedError

    def summarize(self) -> str:
        """What is learnt, in words."""
        raise NotImplementedError

    def prepare_step(self) -> None:
        """Set what changes from step to step; called before each."""

    def report(self) -> dict[str, Any]:
        """What else a line of the log says, JSON-ready; it follows from recipe, step and weights alone."""
        return {}

    def judge(self, weights: Mapping[str, Tensor] | None) -> dict[str, float]:
        """Metric to its value; nothing where nothing is judged.

        Args:
            weights: a running mean of the network's weights, which then is judged.
        """
        raise NotImplementedError

    def export(self, weights: Mapping[str, Tensor] | None, metrics: Mapping[str, float]) -> Path:
        """Write what comes out, as it is now, and answer where.

        Args:
            weights: as of `judge`; they are written then.
            metrics: of the last judgement.
        """
        raise NotImplementedError

    def is_over(self) -> bool:
        """Whether the run ends before its last step; it follows from the log alone."""
        return False

    def _set_up(self, last: Path) -> None:
        """Network and optimizer on their devices, as the last checkpoint has them where there is one."""
        recipe, fabric = self.recipe, self.fabric
        found = None
        if last.exists():
            found, changed = open_checkpoint(last, recipe, self.learner.config, self.classes)
            if changed:
                _log.warning("goes on with another recipe than it began with: %s", ", ".join(changed))
            with blame_checkpoint(last):
                self.network.load_state_dict(found.network)
            self.step, self.saved = found.step, found.step
        if self._all_agree(self.step != fabric.broadcast(self.step)):
            raise UsageError(
                f"not all processes find the same {last}: --output is a folder that all machines share"
            )
        optimizer = build_optimizer(self.network, recipe.schedule)
        trainee = self.learner.trainee
        if recipe.machine.compile:
            trainee = cast(nn.Module, torch.compile(trainee))
        self.model, self.optimizer = fabric.setup(trainee, optimizer)
        if found is not None:  # only now, so that its state comes to where the weights are
            with blame_checkpoint(last):
                resume_optimizer(self.optimizer, found.optimizer)
            self.chance = found.chance
        self.average: Average | None = None
        if recipe.schedule.ema:
            self.average = Average(self.network.state_dict(), recipe.schedule.ema)
            if found is not None and found.average is not None:
                with blame_checkpoint(last):
                    self.average.load(found.average)

    def go(self, stop: Stop) -> TrainedDetector:
        """Take all steps, or as many as there is time for."""
        first, recipe = self.fabric.is_global_zero, self.recipe
        journal = None
        if first:
            self._tell()
            journal = Journal(self.out, self.step, tensorboard=recipe.machine.tensorboard)
            self.seconds = journal.seconds
        metrics: dict[str, float] = {}
        try:
            batches = self._batches()
            if self.chance is not None:  # only now: who loads batches draws a number when it begins
                torch.set_rng_state(self.chance)
            self._train_mode()
            written = time.monotonic()
            while self.step < self.steps and not self._all_agree(first and self.is_over()):
                self._one(batches, journal)
                every = recipe.validation.every_steps
                if every and self.step % every == 0 and self.step < self.steps:
                    metrics = self._judged(journal)
                    self._product(metrics)
                if self._all_agree(bool(stop)):
                    self._save()
                    return TrainedDetector(
                        self.out, self.step, self.steps, stop.number or 2, None, metrics, first
                    )
                if time.monotonic() - written >= 60 * recipe.machine.checkpoint_minutes:
                    self._save(patient=True)
                    written = time.monotonic()
            self._save()
            if recipe.validation.at_end and not self.is_over():
                metrics = self._judged(journal)
            model = self._product(metrics)
        finally:
            if journal is not None:
                journal.close()
        return TrainedDetector(self.out, self.step, self.steps, None, model, metrics, first)

    def _tell(self) -> None:
        """What the run is made of, beside what comes of it."""
        text = json.dumps(to_dict(self.recipe), indent=2) + "\n"
        write_atomically(self.out / "recipe.json", text.encode())
        _log.info(
            "%s, %d parameters; step %d of %d",
            self.summarize(),
            sum(p.numel() for p in self.network.parameters()),
            self.step,
            self.steps,
        )

    def _batches(self) -> Iterator[Batch]:
        return iter(
            build_loader(self.clips, Draws(self.share, self.step, self.steps), self.recipe.machine.workers)
        )

    def _train_mode(self) -> None:
        self.model.train()
        for norm in self.still:
            norm.eval()

    def _one(self, batches: Iterator[Batch], journal: Journal | None) -> None:
        """One step of the optimizer."""
        started = time.monotonic()
        schedule, accumulate = self.recipe.schedule, self.recipe.clips.accumulate
        now = compute_learning_rate(schedule, self.step, self.steps)
        set_rate(self.optimizer, now)
        self.prepare_step()
        found_parts: dict[str, list[float]] = {}
        for part in range(accumulate):
            batch = next(batches)
            self._draw_anew(part)
            # Gradients are exchanged once, with the last part of a step.
            with self.fabric.no_backward_sync(self.model, enabled=part + 1 < accumulate):
                found = self._losses(batch)
                self.fabric.backward(found["loss"] / accumulate)
            self._check(found["loss"], batch)
            for name, value in found.items():
                found_parts.setdefault(name, []).append(float(value.detach()))
        # Batches may differ in the parts of their loss.
        sums = self._mean({name: sum(values) / len(values) for name, values in found_parts.items()})
        norm = self._clipped()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.follow(self.network.state_dict(), self.step)
        self.step += 1
        taken = time.monotonic() - started
        self.seconds += taken
        if journal is not None and (
            self.step % self.recipe.machine.log_steps == 0 or self.step == self.steps
        ):
            values = {**sums, "lr": now, **({} if norm is None else {"norm": norm})}
            speed = {"clips_per_s": self.share.step / taken}
            epoch = self.step * self.share.step / self.count()
            line = {**values, "epoch": round(epoch, 4), **self.report()}
            timing = {"seconds": round(self.seconds, 3), **speed}
            scalars = {f"train/{k}": v for k, v in (values | speed).items()}
            journal.write(self.step, line, timing, scalars=scalars)
        if self.progress is not None:
            self.progress(self.step, self.steps, f"steps, loss {sums['loss']:.3f}")

    def _draw_anew(self, part: int) -> None:
        """Let what the loss draws follow from seed, step and process alone, on every device."""
        if self.learner.by_chance:
            place = [self.recipe.seed, self.step, part, self.share.rank]
            torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))

    def _losses(self, batch: Batch) -> dict[str, Tensor]:
        """The loss and its parts; means go over the boxes and frames of all processes."""
        channels_last = self.recipe.machine.channels_last
        found = self.learner.losses(self.model, batch, self.fabric.device, channels_last=channels_last)
        parts = {name: part.mean * self._shared(part.count.to(part.mean)) for name, part in found.items()}
        whole = sum((parts[name] / part.divisor for name, part in found.items()), start=torch.zeros(()))
        return {**parts, "loss": whole}

    def _shared(self, count: Tensor) -> Tensor | float:
        """Factor of a mean over `count` by which the mean of all processes is the mean over everything."""
        if self.share.world == 1:
            return 1.0
        whole = cast(Tensor, self.fabric.all_reduce(count.clone(), reduce_op="sum"))
        # Processes average their gradients, so each mean is weighted by its share of all that was counted.
        return self.share.world * count.clamp(min=1) / whole.clamp(min=1)

    def _mean(self, sums: dict[str, float]) -> dict[str, float]:
        """The losses of all processes."""
        if self.share.world == 1:
            return sums
        values = torch.tensor(list(sums.values()), device=self.fabric.device)
        mean = cast(Tensor, self.fabric.all_reduce(values, reduce_op="mean"))
        return dict(zip(sums, mean.tolist(), strict=True))

    def _clipped(self) -> float | None:
        """Shorten long gradients, where that is asked for, and say how long they were."""
        if not self.recipe.schedule.clip_norm:
            return None
        limit = self.recipe.schedule.clip_norm
        norm = self.fabric.clip_gradients(
            self.model, self.optimizer, max_norm=limit, error_if_nonfinite=False
        )
        return None if norm is None else float(norm)

    def _check(self, loss: Tensor, batch: Batch) -> None:
        """Raise where the loss of any process is no number."""
        value = float(loss.detach())
        if self._all_agree(not math.isfinite(value)):
            raise self._diverged(f"the loss is {value} at step {self.step + 1}, with the clips {batch.names}")

    def _check_weights(self) -> None:
        """Raise before weights that are no numbers, which a finite loss can leave, replace good ones."""
        if not all(bool(p.isfinite().all()) for p in self.network.parameters()):
            raise self._diverged(f"the weights behind step {self.step} are no numbers")

    def _diverged(self, what: str) -> DivergedError:
        """Error text for a diverged training."""
        last = self.out / LAST
        good = f"{last} holds step {self.saved}" if self.saved else "there is no checkpoint yet"
        return DivergedError(
            f"{what}.\n"
            f"  The last good state: {good}. Lower schedule.lr, raise schedule.warmup_steps or set "
            "schedule.clip_norm,\n  then go on with --resume; look at those clips if it happens again."
        )

    def _all_agree(self, here: bool) -> bool:
        """Whether anything is so in any process; the same answer in all of them."""
        if self.share.world == 1:
            return here
        flag = torch.tensor(float(here), device=self.fabric.device)
        return bool(cast(Tensor, self.fabric.all_reduce(flag, reduce_op="sum")) > 0)

    def _save(self, *, patient: bool = False) -> None:
        """Write a checkpoint; where the disk refuses, say so and try again later if `patient`."""
        self._check_weights()
        if not self.fabric.is_global_zero:
            return
        state = Checkpoint(
            self.step,
            self.network.state_dict(),
            self.average.state if self.average is not None else None,
            self.optimizer.state_dict(),
            torch.get_rng_state(),
        )
        try:
            save_checkpoint(self.out / LAST, state, self.recipe, self.learner.config, self.classes)
            self.saved = self.step
        except DiskError as error:
            if not patient:
                raise
            _log.warning("no checkpoint at step %d: %s", self.step, error)

    def _judged(self, journal: Journal | None) -> dict[str, float]:
        """How good it is now; the first process judges, the others wait."""
        metrics: dict[str, float] = {}
        if journal is not None:
            started = time.monotonic()
            mean = self.average.state if self.average is not None else None
            metrics = self.judge(mean)
            timing = {"seconds": round(self.seconds, 3), "took_s": round(time.monotonic() - started, 2)}
            if metrics:
                scalars = {f"validation/{k}": v for k, v in metrics.items()}
                journal.write(self.step, {"validation": metrics}, timing, scalars=scalars)
        self.fabric.barrier()
        return metrics

    def _product(self, metrics: dict[str, float]) -> Path | None:
        """What comes out of the run, as it is now."""
        self._check_weights()
        if not self.fabric.is_global_zero:
            return None
        return self.export(self.average.state if self.average is not None else None, metrics)


class DetectorRun(Run[Recipe]):
    """A run that makes a detector; see `Run`."""

    def load(self) -> None:
        """As of `Run`."""
        recipe = self.recipe
        self.material: Material = with_teacher(
            load_training_data(recipe), recipe, self.out, self.fabric.device
        )
        self.classes = self.material.classes
        self.detector: Learner = build_learner(recipe, self.classes)
        self.learner = self.detector
        self.clips = self.clip_set = self.material.clips(recipe, self.detector.fit)

    def count(self) -> int:
        """As of `Run`."""
        return len(self.clip_set)

    def summarize(self) -> str:
        """As of `Run`."""
        videos = len(self.material.films)
        return f"{self.count()} clips of {videos} videos, {self.classes.n_classes} classes"

    def judge(self, weights: Mapping[str, Tensor] | None) -> dict[str, float]:
        """As of `Run`."""
        return evaluate_learner(self.detector, weights, self.material, self.recipe)

    def export(self, weights: Mapping[str, Tensor] | None, metrics: Mapping[str, float]) -> Path:
        """As of `Run`: the detector beside its card."""
        facts = {"step": self.step, "steps": self.steps, "metrics": dict(metrics)}
        return save_product(self.out, self.detector, weights, self.material, self.recipe, facts)
