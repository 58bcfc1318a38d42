"""Runs that make a network of crowds: its losses, its answers as Predictions, and how they are judged; imports torch."""

from __future__ import annotations

import copy
import importlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware.config import digest, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.interrupts import Stop
from roadaware.io.sources import to_printable
from roadaware.models.crowd import losses
from roadaware.models.crowd.config import CrowdConfig, Task, Vocabulary
from roadaware.models.crowd.grounding import WordReader, build_words
from roadaware.models.crowd.network import BUNDLED, IntelliCare, begin_trunk, open_crowd, save_crowd
from roadaware.models.crowd.pathfinder import anneal, count_switches
from roadaware.models.weights import open_parts
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crowd import (
    CrowdSet,
    CrowdVideo,
    build_crowd_set,
    has_others,
    label_detections,
    list_used,
    measure_relations,
)
from roadaware.tasks.crowd_answers import Answerer, Footing, name_stem, normalise_crops
from roadaware.tasks.road_events import Classes
from roadaware.training.batches import Batch, balance, replace_mirrored_words
from roadaware.training.build import Part
from roadaware.training.checkpoints import read_log
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.crowd.samples import CrowdClips, Question, build_question
from roadaware.training.data import Sources, open_sources
from roadaware.training.loop import CARD, Run, TrainedDetector, train
from roadaware.training.teacher import select_videos

_log = logging.getLogger("roadaware")
MODEL = "model.safetensors"
PREDICTIONS = "predictions"
MAIN: dict[Task, str] = {
    "actions": "map@0.5",
    "relations": "map",
    "grounding": "m_viou",
    "sound": "success_auc",
}
"""Of each task the metric by which networks are compared."""
_LABELS: dict[Task, str] = {
    "actions": "actions",
    "relations": "predicates",
    "grounding": "words",
    "sound": "sounds",
}
"""Of each task what of the vocabulary its head answers in, or reads."""
_TAUGHT_BY: dict[Task, str] = {**_LABELS, "grounding": "sentences"}
"""Of each task what of the data it learns from, as of `list_used`."""
_CELLS_DIVISOR = 10.0
"""The loss of sentences that are looked for in cells is a sum of parts with weights of up to 10."""
_RAREST = 10.0


# What is learnt.


def build_vocabulary(
    used: Mapping[str, tuple[str, ...]],
    config: CrowdConfig,
    known: Mapping[Task, tuple[str, ...]] | None = None,
) -> Vocabulary:
    """The labels and words of the data, as far as the tasks of a network need them.

    Args:
        used: as `list_used` gives it.
        config: of the network.
        known: labels or words of heads that keep theirs (default: none does).

    Raises:
        UsageError: if the data lack what a task needs; says which.
    """
    found = dict(known or {})
    for task in config.tasks:
        labels = found.get(task) or used[_TAUGHT_BY[task]]
        if not labels:
            raise UsageError(
                f"the data have no {_TAUGHT_BY[task]}, which the task {task} learns from: leave it out of `tasks`"
            )
        found[task] = build_words(labels) if task == "grounding" and task not in found else labels
    return Vocabulary(**{_LABELS[task]: labels for task, labels in found.items()})


class CrowdTrainee(nn.Module):
    """A network together with the losses of its tasks.

    Args:
        network: what learns.
        pos_weight: (predicates,) what a relation that holds counts in the loss.
        sound_loss: `map` or `sspl`.
        shuffle_tasks: take the path of another task, drawn at random.
    """

    pos_weight: Tensor

    def __init__(
        self, network: IntelliCare, pos_weight: Tensor, sound_loss: str, *, shuffle_tasks: bool = False
    ) -> None:
        super().__init__()
        self.network, self.sound_loss, self.shuffle_tasks = network, sound_loss, shuffle_tasks
        self.register_buffer("pos_weight", pos_weight, persistent=False)

    def forward(self, question: Question) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and of how many answers it is the mean."""
        network, task, answer = self.network, question.task, question.answer
        map = network.stem(question.seen) if question.images else question.seen
        if task == "sound":
            return self._sound(map, question)
        found = self._answer(map, question)
        if task == "relations" and not len(found):
            # Nobody is near anybody; the loop wants a gradient all the same.
            weight = next(network.heads[task].parameters())
            return weight.sum() * 0, torch.tensor(0)
        if task == "grounding" and network.compares_people:
            matched = losses.matching(found, answer["person"], answer["span"], answer["mask"])
            return matched.total, torch.tensor(len(found.who))
        if task == "grounding":
            loss = losses.grounding(found, answer["target"], answer["span"], answer["mask"])
            return loss.total, torch.tensor(len(found.boxes[-1]))
        measure: Any = losses.actions if task == "actions" else self._measure_relations
        loss = measure(found, answer["targets"])
        if "walks" in answer:
            head: Any = network.heads[task]
            known = (answer["walks"], answer["moment"])
            if task == "actions":
                by_motion = head.judge_motion(*known, answer["image"])
            else:
                by_motion = head.judge_motion(*known, answer["pairs"], answer["image"]) + head.prior
            if len(by_motion):
                loss = loss + measure(by_motion, answer["walk_targets"])
        return loss, torch.tensor(len(found))

    def _measure_relations(self, logits: Tensor, targets: Tensor) -> Tensor:
        return losses.relations(logits, targets, self.pos_weight)

    def _answer(self, map: Tensor, question: Question) -> Any:
        network, path = self.network, question.task
        if question.task == "grounding" and network.compares_people:
            return network.match(map, **question.asked)
        if self.shuffle_tasks:
            # torch's generator, whose state checkpoints keep: a run that goes on draws the same tasks.
            others = [task for task in network.config.tasks if task != question.task]
            path = others[int(torch.randint(len(others), ()))]
        return network.heads[question.task](network.tail(map, path)[question.clip], **question.asked)

    def _sound(self, map: Tensor, question: Question) -> tuple[Tensor, Tensor]:
        network, answer, count = self.network, question.answer, torch.tensor(len(question.clip))
        head: Any = network.heads["sound"]
        if self.sound_loss == "sspl":
            # Two views of each clip, as published: a part of the image, mirrored or not.
            pooled = [self._answer(_draw_view(map), question).pooled for _ in range(2)]
            return losses.simsiam(*head.siamese(*pooled)), count
        found = self._answer(map, question)
        loss = losses.sound_map(found.logits, answer["target"])
        if network.config.form == "compact":
            each = functional.binary_cross_entropy_with_logits
            loss = loss + each(found.heard, answer["heard"])
            # Two or three of all classes are heard at a time.
            loss = loss + 4 * each(head.classify(answer["ears"]), answer["present"].float())
        return loss, count


def _draw_view(map: Tensor) -> Tensor:
    """A part of a map (B, C, T, h, w) in its old size, mirrored by half the chance; torch's generator draws."""
    height, width = map.shape[-2:]
    rows, columns = max(1, round(0.9 * height)), max(1, round(0.9 * width))
    top, left = int(torch.randint(height - rows + 1, ())), int(torch.randint(width - columns + 1, ()))
    part = map[..., top : top + rows, left : left + columns]
    part = part.flip(-1) if float(torch.rand(())) < 0.5 else part
    resized = functional.interpolate(
        part.transpose(1, 2).flatten(0, 1), size=(height, width), mode="bilinear", align_corners=False
    )
    return resized.view(len(map), -1, *resized.shape[1:]).transpose(1, 2)


_MOTION_ROWS, _MOTION_BATCH, _MOTION_LR, _MOTION_DECAY = 400_000, 256, 2e-3, 0.05
_DEEDS_LR, _DEEDS_DECAY = 2e-2, 0.01
"""A class of sounds has one weight for each action, which begins at 0 and comes to some units."""
_MOTION_NOISE, _LEAST_SPREAD = 0.05, 0.05
"""Added to what tracks say, of which each number has a deviation of 1; and the least one that is taken to be one."""


def _learns(network: nn.Module, *beginnings: str) -> bool:
    """Whether a parameter whose name begins so is not frozen."""
    return any(p.requires_grad and name.startswith(beginnings) for name, p in network.named_parameters())


def scale_inputs(layer: nn.Linear, mean: Tensor, spread: Tensor) -> None:
    """Let a layer give of `(x - mean) / spread` what it gave of `x`; in place.

    Args:
        layer: of n numbers.
        mean, spread: (n,) of its inputs.
    """
    with torch.no_grad():
        layer.bias.add_(layer.weight @ mean)
        layer.weight.mul_(spread)


def learns_crops(network: IntelliCare) -> bool:
    """Whether the compact head of actions has layers of crops that are not frozen."""
    return bool(network.config.crop_width) and _learns(network, "heads.actions.crops.")


def list_motion_tasks(network: IntelliCare) -> list[Task]:
    """The tasks whose compact heads have layers of tracks that are not frozen."""
    config = network.config
    tasks: tuple[Task, ...] = ("actions", "relations") if config.form == "compact" else ()
    return [t for t in tasks if t in config.tasks and _learns(network, f"heads.{t}.motion.")]


def _build_step(layers: nn.Module, steps: int, lr: float, decay: float) -> Callable[[Tensor], None]:
    """What takes a step of AdamW by a loss, at a rate that rises and falls over all steps; it leaves no gradient behind.

    Args:
        layers: are changed in place.
        steps: how many there will be.
        lr: the greatest rate.
        decay: of weights.
    """
    optimizer = torch.optim.AdamW(layers.parameters(), lr=lr, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, steps, pct_start=0.1)

    def take(loss: Tensor) -> None:
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()  # else the first step of the clips would take the last of these, too

    return take


def learn_motion(
    network: IntelliCare,
    clips: CrowdClips,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int, str], None] | None = None,
) -> bool:
    """Teach the compact heads of actions and relations what tracks alone say, before anything is seen; False if stopped.

    Parts that are frozen stay as they are. On 400 scenes 7,000 steps of each of both heads took five and a half minutes of
    one core, most of it to describe the moments, while a step of the run, whose clips are seen, takes a second or more.

    Args:
        network: is changed in place.
        clips: whose moments are learnt, with the steps (`clips.motion_steps`) and the seed of their recipe.
        stopped: asked between steps whether to stop.
        progress: called with the steps done and the total.
    """
    steps, recipe, tasks = clips.recipe.clips.motion_steps, clips.recipe, list_motion_tasks(network)
    with torch.random.fork_rng(devices=[]):
        for number, task in enumerate(tasks if steps else []):
            rng = np.random.default_rng([recipe.seed, 2, number])
            torch.manual_seed(recipe.seed + number)
            sets = [None, clips.found] if task == "actions" and clips.found is not None else [None]
            parts = [
                clips.describe_moments(task, rng, _MOTION_ROWS, of, stopped=stopped, progress=progress)
                for of in sets
            ]
            parts = [part for part in parts if len(part[0])]
            if not parts:
                continue
            features, targets = (torch.cat(each) for each in zip(*parts, strict=True))
            head: Any = network.heads[task]
            device = next(head.parameters()).device
            mean, spread = features.mean(dim=0), features.std(dim=0, unbiased=False).clamp(min=_LEAST_SPREAD)
            features = (features - mean) / spread
            scale_inputs(head.motion[0], mean.to(device), spread.to(device))
            chances = torch.from_numpy(
                balance(targets.numpy() > 0, recipe.clips.balance_share, recipe.clips.balance_most)
            )
            take_step = _build_step(head.motion, steps, _MOTION_LR, _MOTION_DECAY)
            head.motion.train()
            for step in range(steps):
                if stopped():
                    break
                rows = torch.multinomial(chances, min(_MOTION_BATCH, len(chances)))
                given = features[rows] + _MOTION_NOISE * torch.randn(len(rows), features.shape[1])
                logits = head.motion(given.to(device))
                if task == "relations":
                    logits = logits + head.prior
                wanted = targets[rows].float().to(device)
                take_step(functional.binary_cross_entropy_with_logits(logits, wanted))
                if progress is not None:
                    progress(number * steps + step + 1, len(tasks) * steps, "steps of tracks")
            # From here on the layers take what tracks say as it is.
            scale_inputs(head.motion[0], (-mean / spread).to(device), (1 / spread).to(device))
            if stopped():
                return False
    return True


_SOUND_ROUNDS = 4
"""Moments of each sound that are learnt from: the acts of one sound are much alike."""


def learn_sources(
    network: IntelliCare,
    clips: CrowdClips,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int, str], None] | None = None,
) -> bool:
    """Teach the compact head of sounds which actions go with which class of sound; False if stopped.

    Comes behind `learn_motion`, whose scores of actions it takes; on 144 scenes 2,000 steps took 12 s of one core.

    Args:
        network, clips, stopped, progress: as of `learn_motion`.
    """
    steps, recipe = clips.recipe.clips.motion_steps, clips.recipe
    head: Any = network.heads["sound"] if "sound" in network.config.tasks else None
    if not steps or getattr(head, "deeds", None) is None or not _learns(network, "heads.sound.deeds."):
        return True
    rng, device = np.random.default_rng([recipe.seed, 4]), next(head.parameters()).device
    asks = np.repeat(clips.asks["sound"], _SOUND_ROUNDS, axis=0)
    doing, makes, asked = [], [], []
    for done, (video, row) in enumerate(asks.tolist()):
        if stopped():
            return False
        moment = clips.describe_sound((video, row), rng)
        if moment is not None:
            at_once = torch.zeros(len(moment.tracks), dtype=torch.int64, device=device)
            scores = network.score_deeds(moment.tracks.to(device), at_once, moment.image.to(device))
            if scores is not None:
                doing.append(scores)
                makes.append(moment.makes)
                asked.append(moment.asked)
        if progress is not None:
            progress(done + 1, len(asks), "moments of sounds")
    if not doing:
        return True
    most = max(map(len, doing))
    acts = torch.stack([functional.pad(each, (0, 0, 0, most - len(each))) for each in doing])
    there = torch.tensor([[True] * len(each) + [False] * (most - len(each)) + [True] for each in doing])
    # Whether none of them makes it stands last, behind those who fill a moment up.
    held = [functional.pad(each[:-1], (0, most + 1 - len(each))) for each in makes]
    truth = torch.cat([torch.stack(held), torch.stack([each[-1:] for each in makes])], dim=1)
    there, truth, classes = there.to(device), truth.to(device), torch.tensor(asked, device=device)
    take_step = _build_step(head.deeds, steps, _DEEDS_LR, _DEEDS_DECAY)
    for step in range(steps):
        if stopped():
            return False
        rows = torch.from_numpy(rng.integers(len(acts), size=_MOTION_BATCH)).to(device)
        logits = head.match_people(classes[rows], acts[rows]).masked_fill(~there[rows], -math.inf)
        # Of several who make it together it is enough to find one.
        right = logits.masked_fill(~truth[rows], -math.inf).logsumexp(dim=1)
        take_step((logits.logsumexp(dim=1) - right).mean())
        if progress is not None:
            progress(step + 1, steps, "steps of sounds and deeds")
    return True


_CROP_ROWS, _CROP_BATCH, _CROP_LR, _CROP_DECAY = 400_000, 128, 2e-3, 0.05
_LIGHT, _CHANNEL, _SHIFT_PX, _SHAPE_NOISE = 0.25, 0.08, 3, 0.1
"""Of crops that are learnt: factor of brightness and what is added to each channel, at most; how far all of a batch are
moved; deviation of what is added to their shapes."""
_ERASED = (20, 12)
"""Rows and columns of what is erased in half of the crops of every second batch."""


def initialize_crops(network: IntelliCare, of: CrowdSet) -> None:
    """Let the layers of crops begin with those of the bundled second look at people, where both are of one size, and with
    how often each action holds.

    Args:
        network: is changed in place.
        of: the data.
    """
    head: Any = network.heads["actions"]
    refiner = open_parts(BUNDLED.with_name("crowd-people.safetensors"))[1]
    for part in ("fine", "middle", "coarse"):
        own, theirs = getattr(head.crops, part).state_dict(), getattr(refiner, part).state_dict()
        if all(own[name].shape == theirs[name].shape for name in own):
            getattr(head.crops, part).load_state_dict(theirs)
    rows = [video.actions[video.person] for video in of.videos]
    share = torch.from_numpy(np.concatenate(rows).mean(axis=0)).clamp(min=1e-4)
    with torch.no_grad():
        head.crops.last[1].bias.copy_(share.logit())


@dataclass(frozen=True, eq=False)
class _Crops:
    """Crops of people and what these do.

    Args:
        pixels: of each video, (n, 3, rows, columns) uint8.
        shapes: (all, 4) of all videos, as `Footing.shapes` gives them.
        actions: (all, classes) bool.
    """

    pixels: list[npt.NDArray[np.uint8]]
    shapes: Tensor
    actions: npt.NDArray[np.bool_]

    def draw(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """(n, 3, rows, columns) uint8 those of some rows of all."""
        ends = np.cumsum([len(held) for held in self.pixels])
        parts = np.searchsorted(ends, rows, side="right")
        drawn = [self.pixels[part][row - ends[part]] for part, row in zip(parts, rows, strict=True)]
        return torch.from_numpy(np.stack(drawn))


def _collect_crops(
    clips: CrowdClips, stopped: Callable[[], bool], progress: Callable[[int, int, str], None] | None
) -> _Crops | None:
    """Crops to learn from, of true people and of those of `clips.found`, at most 400,000; None if stopped."""
    asked: list[tuple[int, CrowdVideo, npt.NDArray[np.int64]]] = []
    for of in [of for of in (clips.footing.of, clips.found) if of is not None]:
        for number, video in enumerate(of.videos):
            # What a true person without a label does is not known, nor what anybody does where nobody has one.
            known = np.isin(video.slot, of.asks["actions"][of.asks["actions"][:, 0] == number, 1])
            wanted = video.person & video.key & known & (video.actions.any(axis=1) | (of is clips.found))
            asked.append((number, video, np.flatnonzero(wanted)))
    count, rng = sum(len(rows) for _, _, rows in asked), np.random.default_rng([clips.recipe.seed, 5])
    pixels, shapes, actions = [], [], []
    for done, (number, video, rows) in enumerate(asked):
        if stopped():
            return None
        if count > _CROP_ROWS:
            rows = rows[rng.random(len(rows)) < _CROP_ROWS / count]
        pixels.append(clips.footing.crops(number, video.slot[rows], video.corners[rows]))
        shapes.append(clips.footing.shapes(number, video.corners[rows]))
        actions.append(video.actions[rows])
        if progress is not None:
            progress(done + 1, len(asked), "videos with crops")
    return _Crops(pixels, torch.cat(shapes), np.concatenate(actions))


def learn_crops(
    network: IntelliCare,
    clips: CrowdClips,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int, str], None] | None = None,
) -> bool:
    """Teach the compact head of actions what crops of people show, true boxes and those of `clips.found`; False if stopped.

    Crops are kept beside maps, so that they are cut once. On 400 scenes 8,000 steps took 17 minutes of one core, and cutting
    took 8. Parts that are frozen stay as they are.

    Args:
        network, clips, stopped, progress: as of `learn_motion`; the steps are `clips.crop_steps`.

    Raises:
        UsageError: if nobody with an action is seen.
    """
    recipe, steps = clips.recipe, clips.recipe.clips.crop_steps
    if not steps or not learns_crops(network):
        return True
    crops = _collect_crops(clips, stopped, progress)
    if crops is None:
        return False
    if not crops.actions.any():
        raise UsageError(
            "clips.crop_steps: nobody in these videos does anything that crops could be learnt from"
        )
    head: Any = network.heads["actions"]
    device = next(head.parameters()).device
    mirrored = all(replace_mirrored_words(label) == label for label in network.vocabulary.actions)
    chances = torch.from_numpy(balance(crops.actions, recipe.clips.balance_share, recipe.clips.balance_most))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        take_step = _build_step(head.crops, steps, _CROP_LR, _CROP_DECAY)
        for module in head.crops.modules():
            own = list(module.parameters())
            module.training = not own or any(parameter.requires_grad for parameter in own)
        for step in range(steps):
            if stopped():
                return False
            rows = torch.multinomial(chances, min(_CROP_BATCH, len(chances))).numpy()
            seen = normalise_crops(_augment_crops(crops.draw(rows), mirrored=mirrored).to(device))
            shape = crops.shapes[rows] + _SHAPE_NOISE * torch.randn(len(rows), crops.shapes.shape[1])
            wanted = torch.from_numpy(crops.actions[rows]).float().to(device)
            take_step(functional.binary_cross_entropy_with_logits(head.crops(seen, shape.to(device)), wanted))
            if progress is not None:
                progress(step + 1, steps, "steps of crops")
    return True


def _augment_crops(crops: Tensor, *, mirrored: bool) -> Tensor:
    """(n, 3, rows, columns) crops in 0 to 255, some mirrored, brighter or darker, moved, and partly erased.

    Args:
        crops: the same, uint8.
        mirrored: whether half of them are mirrored.
    """
    count, (high, wide) = len(crops), crops.shape[2:]
    held = crops.float()
    if mirrored:
        held = torch.where(torch.rand(count, 1, 1, 1) < 0.5, held.flip(3), held)
    light, channel = (2 * torch.rand(count, each, 1, 1) - 1 for each in (1, 3))
    held = held * (1 + _LIGHT * light) + 255 * _CHANNEL * channel
    down, right = torch.randint(2 * _SHIFT_PX + 1, (2,)).tolist()
    held = functional.pad(held, [_SHIFT_PX] * 4, mode="replicate")[
        ..., down : down + high, right : right + wide
    ]
    if float(torch.rand(())) < 0.5:
        top, left = (
            int(torch.randint(high - _ERASED[0] + 1, ())),
            int(torch.randint(wide - _ERASED[1] + 1, ())),
        )
        part = torch.zeros(high, wide, dtype=torch.bool)
        part[top : top + _ERASED[0], left : left + _ERASED[1]] = True
        erased = (torch.rand(count, 1, 1, 1) < 0.5) & part
        held = torch.where(erased, 255 * torch.rand(()), held)
    return held


class CrowdLearner:
    """A network of crowds that learns; see `Trainable`.

    Args:
        recipe: names the network, the seed and the file of weights.
        of: the data.

    Raises:
        UsageError: if the network cannot be made, or has no dynamic layers for the paths of the recipe.
        InputError: if weights cannot be read.
    """

    by_chance = True

    def __init__(self, recipe: CrowdRecipe, of: CrowdSet) -> None:
        config = recipe.build_config()
        if recipe.sound_loss == "sspl" and "sound" in config.tasks and not config.head_width:
            raise UsageError(
                "sound_loss: sspl compares projections: set model.fields.head_width, such as to 256"
            )
        self.parts = tuple(config.tasks)
        self.vocabulary = of.vocabulary
        torch.manual_seed(recipe.seed)
        self.crowd = IntelliCare(config, of.vocabulary)
        self.network: nn.Module = self.crowd
        self.config: dict[str, Any] = to_dict(config)
        self.crops_begin = bool(self._crop_names())
        self._begin(recipe)
        if self.crops_begin:
            initialize_crops(self.crowd, of)
        if recipe.model.paths:
            self.crowd.pathfinder.fix(recipe.model.paths)
        words = of.vocabulary.words
        self.reader = WordReader(words, config.max_tokens) if words else None
        weight = torch.ones(len(of.vocabulary.predicates))
        if "relations" in config.tasks:
            counts, pairs = measure_relations(of)
            share = torch.from_numpy(counts / max(1, pairs)).float()
            head: Any = self.crowd.heads["relations"]
            if not recipe.model.weights:
                head.set_prior(share)
            if config.form == "published":
                # Weights make rare predicates score too high beside others, which recall over all of them punishes.
                weight = ((1 - share) / share.clamp(min=1e-6)).sqrt().clamp(1.0, _RAREST)
        self.trainee: nn.Module = CrowdTrainee(
            self.crowd, weight, recipe.sound_loss, shuffle_tasks=recipe.shuffle_tasks
        )
        if not recipe.model.train_trunk:
            kept = set(name_stem(self.crowd))
            for name, parameter in self.crowd.named_parameters():
                parameter.requires_grad_(name not in kept and parameter.requires_grad)

    def _crop_names(self) -> list[str]:
        return [name for name in self.crowd.state_dict() if name.startswith("heads.actions.crops.")]

    def _begin(self, recipe: CrowdRecipe) -> None:
        """Let the network begin with trained weights."""
        if recipe.model.weights:
            self._take(recipe.model.weights_path())
        elif recipe.model.trunk != "random" and (self.crowd.config.trunk == "compact" or recipe.model.trunk):
            begin_trunk(self.crowd, Path(recipe.model.trunk) if recipe.model.trunk else None)

    def _take(self, path: Path) -> None:
        """Take from another network of crowds what both have: heads with the same labels, and its trunk.

        Raises:
            UsageError: if nothing fits.
        """
        other, _ = open_crowd(path)
        state, ours = other.state_dict(), self.crowd.state_dict()
        same = {
            f.name: getattr(other.vocabulary, f.name) == getattr(self.vocabulary, f.name)
            for f in fields(Vocabulary)
        }
        heads = [t for t in self.crowd.config.tasks if t in other.config.tasks and same[_LABELS[t]]]
        taken = [name for task in heads for name in ours if name.startswith(f"heads.{task}.")]
        if self.crowd.config.motion_width != other.config.motion_width:
            taken = [name for name in taken if not name.startswith("heads.actions.motion.")]
        if self.crowd.config.crop_width != other.config.crop_width:
            taken = [name for name in taken if not name.startswith("heads.actions.crops.")]
            if "actions" in heads and other.config.crop_width:
                _log.warning(
                    "%s: its layers of crops are left: model.fields.crop_width: %d takes them",
                    to_printable(str(path)), other.config.crop_width,
                )  # fmt: skip
        self.crops_begin &= not set(self._crop_names()) & set(taken)
        if self.crowd.config.dynamic_layers and not other.config.dynamic_layers:
            trunk = {n.removeprefix("trunk."): v for n, v in state.items() if n.startswith("trunk.")}
            self.crowd.pathfinder.load_plain(trunk)
        else:
            taken += [name for name in ours if name.startswith("trunk.")]
        fitting = {n: state[n] for n in taken if n in state and state[n].shape == ours[n].shape}
        if len(fitting) < len(taken):
            raise UsageError(
                f"model.weights: {len(taken) - len(fitting)} of {len(taken)} weights of {path} have another shape or "
                "are not there: model.base and model.fields should be those of that file"
            )
        self.crowd.load_state_dict({**self.crowd.state_dict(), **fitting})
        left = [task for task in self.crowd.config.tasks if task not in heads]
        _log.info("%s: trunk taken, heads of %s; of none: %s", path, heads or "none", left or "none")

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """As of `Trainable`: one part, of the task of the batch."""
        question = build_question(batch.samples, self.crowd.config, self.reader, device)
        mean, count = model(question)
        in_cells = question.task == "grounding" and not self.crowd.compares_people
        return {question.task: Part(mean, count.to(device), _CELLS_DIVISOR if in_cells else 1.0)}


# How answers are judged.


def judge_predictions(predictions: Mapping[Task, Predictions], scenes: Scenes) -> dict[str, float]:
    """`task/metric` to its value, of the metrics over everything; a task without ground truth is left out."""
    found: dict[str, float] = {}
    for task, predicted in predictions.items():
        metric = importlib.import_module(f"roadaware.metrics.{task}")
        config = metric.CONFIGS["default"]()
        try:
            result = metric.evaluate(predicted, scenes, config)
        except InputError as error:
            _log.warning("%s cannot be judged: %s", task, error.message)
            continue
        rows = {row["metric"]: row["value"] for row in result.whole()}
        found |= {f"{task}/{name}": float(value) for name, value in rows.items() if value is not None}
    return found


def keep_looked_at(scenes: Scenes, of: CrowdSet) -> Scenes:
    """The scenes with all frames marked as not annotated but those that are looked at."""
    keys = [
        (video.film.video, int(frame)) for video in of.videos for frame in np.unique(video.frame[video.key])
    ]
    looked = pl.DataFrame(keys, schema={"video": pl.String, "frame": pl.Int64}, orient="row")
    rows = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    rows = rows.select(c for c in ("video", "frame", "annotated") if c in rows.columns)
    there = scenes.boxes.select(pl.col("video").cast(pl.String), "frame").unique()
    frames = pl.concat([rows, there], how="diagonal").unique(
        ["video", "frame"], keep="first", maintain_order=True
    )
    if "annotated" not in frames.columns:
        frames = frames.with_columns(annotated=pl.lit(value=True))
    seen = frames.join(looked.with_columns(seen=pl.lit(value=True)), on=["video", "frame"], how="left")
    kept = pl.col("annotated").fill_null(value=True) & pl.col("seen").fill_null(value=False)
    return scenes.with_tables(frames=seen.select("video", "frame", annotated=kept).sort("video", "frame"))


# The run.


@dataclass(frozen=True, eq=False)
class Judged:
    """What a run is judged on.

    Args:
        scenes: the ground truth.
        of: the same as questions.
        footing: what is seen and heard of them.
    """

    scenes: Scenes
    of: CrowdSet
    footing: Footing


class CrowdRun(Run[CrowdRecipe]):
    """A run that makes a network of crowds; see `Run`."""

    def load(self) -> None:
        """As of `Run`."""
        self.sources: Sources = open_sources(self.recipe.data)
        used, known = list_used(self.sources.scenes), dict[Task, tuple[str, ...]]()
        idle = [task for task in self.recipe.ordered_tasks if task not in self.recipe.learnt_tasks]
        if self.recipe.model.weights:
            # Heads without batches keep their labels and words
            begun, _ = open_crowd(self.recipe.model.weights_path())
            known = {t: getattr(begun.vocabulary, _LABELS[t]) for t in idle if t in begun.config.tasks}
        # Of these the others learn what tracks say, where the data label them.
        void = [task for task in idle if task not in known and not used[_TAUGHT_BY[task]]]
        if void:
            _log.warning("the data label nothing of %s: there will be no such heads", " and ".join(void))
            tasks = {task: share for task, share in self.recipe.tasks.items() if task not in void}
            self.recipe = replace(self.recipe, tasks=tasks)
        recipe, config = self.recipe, self.recipe.build_config()
        vocabulary = build_vocabulary(used, config, known)
        of = build_crowd_set(self.sources.scenes, self.sources.films, vocabulary, recipe.clips.fps)
        maps = Path(recipe.clips.maps) if recipe.clips.maps else self.out / "maps"
        cache = int(recipe.machine.cache_gb * 1e9) if recipe.model.train_trunk else 0
        self.footing = Footing(of, maps, recipe.clips.size_px, cache)
        self._leave_out_silent(of)
        for task in recipe.learnt_tasks:
            if not len(of.asks[task]):
                raise UsageError(
                    f"nothing of the task {task} can be learnt from these videos: leave it out of `tasks`"
                )
        if "grounding" in recipe.learnt_tasks and config.grounding == "people" and not has_others(of):
            raise UsageError(
                "the only people with boxes are those of whom the sentences speak (HC-STVG), so who it is cannot be learnt: "
                "take the recipe grounding-cells, which looks for a box in each frame"
            )
        self.crowd = CrowdLearner(recipe, of)
        self.learner = self.crowd
        self.footing.use(self.crowd.crowd)
        self.clips = self.questions = CrowdClips(self.footing, recipe)
        if recipe.clips.found:
            found = label_detections(open_predictions(Path(recipe.clips.found)), self.sources.scenes)
            self.questions.found = build_crowd_set(found, self.sources.films, vocabulary, recipe.clips.fps)
        held = {f.name: getattr(vocabulary, f.name) for f in fields(Vocabulary)}
        self.classes = Classes({kind: labels for kind, labels in held.items() if labels})
        self.judged = self._open_judged(vocabulary, maps)
        self._scores: list[float] | None = None
        self._paths: dict[str, tuple[int, ...]] | None = None

    def _leave_out_silent(self, of: CrowdSet) -> None:
        """Take away questions about sounds of films that have none."""
        asks = of.asks["sound"]
        videos = np.unique(asks[:, 0]).tolist() if "sound" in self.recipe.learnt_tasks else []
        silent = [video for video in videos if self.footing.sound(video) is None]
        if silent:
            _log.warning("%d videos have no sound; their sounds are not learnt", len(silent))
            of.asks["sound"] = asks[~np.isin(asks[:, 0], silent)]

    def _open_judged(self, vocabulary: Vocabulary, maps: Path) -> Judged | None:
        sources, recipe = self.sources, self.recipe
        if sources.judged is None or not sources.judged_films:
            return None
        films = select_videos(sources.judged_films, recipe.validation.videos)
        scenes = sources.judged.only([film.video for film in films])
        of = build_crowd_set(scenes, films, vocabulary, recipe.clips.fps)
        folder = None if recipe.model.train_trunk else maps
        footing = Footing(of, folder, recipe.clips.size_px)
        footing.use(self.crowd.crowd)
        return Judged(scenes, of, footing)

    def count(self) -> int:
        """As of `Run`."""
        return len(self.questions)

    def summarize(self) -> str:
        """As of `Run`."""
        asks = ", ".join(f"{len(self.questions.asks[task])} of {task}" for task in self.questions.tasks)
        return f"{len(self.footing.of.videos)} videos with questions: {asks}"

    def go(self, stop: Stop) -> TrainedDetector:
        """As of `Run`, once the maps that are kept have been made."""
        for task in self.recipe.learnt_tasks:
            if not _learns(self.crowd.crowd, "trunk.", f"heads.{task}."):
                raise UsageError(
                    f"nothing of the task {task} can learn: model.freeze keeps the trunk and its head; take it out of `tasks`"
                )
        clips, network = self.recipe.clips, self.crowd.crowd
        if self.crowd.crops_begin and not (clips.crop_steps and learns_crops(network)):
            raise UsageError(
                "model.fields.crop_width: layers of crops that learn nothing would add random scores: set clips.crop_steps, "
                "or take layers that have learnt from model.weights"
            )
        if clips.crop_steps and not network.config.crop_width:
            raise UsageError(
                "clips.crop_steps: the network has no layers of crops: set model.fields.crop_width, such as to 16"
            )
        by_tracks = clips.motion_steps and list_motion_tasks(network)
        if not (self.steps or by_tracks or (clips.crop_steps and learns_crops(network))):
            raise UsageError(
                "nothing is learnt: the recipe has no steps, and the network no layers of tracks or crops that can learn"
            )
        if self.steps and not self.recipe.model.train_trunk and self.questions.see_maps:
            count = len(self.footing.of.videos)
            for video in range(count):
                if stop:
                    return TrainedDetector(self.out, self.step, self.steps, stop.number or 2, None, {}, True)
                if not self.footing.has_map(video):
                    self.footing.make_map(video, self.crowd.crowd)
                if self.progress is not None:
                    self.progress(video + 1, count, "videos seen")
        if not self.step:
            # Behind the first step a checkpoint has what was learnt here.
            learners = (learn_motion, learn_sources, learn_crops)
            if not all(
                each(self.crowd.crowd, self.questions, lambda: bool(stop), self.progress) for each in learners
            ):
                return TrainedDetector(self.out, self.step, self.steps, stop.number or 2, None, {}, True)
            if self.average is not None:
                self.average.load(self.network.state_dict())
        return super().go(stop)

    def prepare_step(self) -> None:
        """As of `Run`: cool the choice of blocks down."""
        if self.crowd.crowd.config.dynamic_layers:
            start, end = self.recipe.temperature
            self.crowd.crowd.pathfinder.set_temperature(anneal(self.step, self.steps, start, end))

    def report(self) -> dict[str, Any]:
        """As of `Run`: of the pathfinder the paths, how undecided it is, and how many layers changed."""
        if not self.crowd.crowd.config.dynamic_layers:
            return {}
        finder = self.crowd.crowd.pathfinder
        paths, entropy = finder.paths(), finder.entropy()
        if self._paths is None:
            # Those that the last line tells, of a run that goes on.
            path_tables = [line["paths"] for line in read_log(self.out) if "paths" in line]
            self._paths = (
                {task: tuple(path) for task, path in path_tables[-1].items()} if path_tables else paths
            )
        switches = count_switches(self._paths, paths)
        self._paths = paths
        return {
            "paths": {task: list(path) for task, path in paths.items()},
            "entropy": {task: round(sum(each) / len(each), 6) for task, each in entropy.items()},
            "switches": switches,
        }

    def judge(self, weights: Mapping[str, Tensor] | None) -> dict[str, float]:
        """As of `Run`: on true boxes of the frames that are looked at."""
        if self.judged is None:
            return {}
        scenes = keep_looked_at(self.judged.scenes, self.judged.of)
        found = self._answer(weights, self.judged, every_box=False)
        metrics = judge_predictions(found, scenes)
        if self._scores is None:
            self._scores = self._read_scores()
        self._scores.append(mean_of_main(metrics))
        return metrics

    def _answer(
        self, weights: Mapping[str, Tensor] | None, judged: Judged, *, every_box: bool
    ) -> dict[Task, Predictions]:
        network = self._copy(weights)
        judged.footing.use(network)
        tasks = self.recipe.learnt_tasks
        return Answerer(network, judged.footing, self.recipe.clips, every_box=every_box, tasks=tasks).answer(
            judged.scenes
        )

    def _copy(self, weights: Mapping[str, Tensor] | None) -> IntelliCare:
        kept = copy.deepcopy(self.crowd.crowd).cpu().eval()
        if weights is not None:
            kept.load_state_dict(dict(weights))
        return kept

    def _read_scores(self) -> list[float]:
        """The mean of the tasks at each judgement that the log tells of."""
        lines = [line for line in read_log(self.out) if line["step"] <= self.step]
        return [mean_of_main(line["validation"]) for line in lines if "validation" in line]

    def is_over(self) -> bool:
        """As of `Run`: whether judgements have not become better for long enough."""
        patience = self.recipe.validation.patience
        if not patience or self.judged is None:
            return False
        if self._scores is None:
            self._scores = self._read_scores()
        scores = self._scores
        return bool(scores) and len(scores) - 1 - int(np.argmax(scores)) >= patience

    def export(self, weights: Mapping[str, Tensor] | None, metrics: Mapping[str, float]) -> Path:
        """As of `Run`: the network beside its card; with patience the best so far, else the last one."""
        path = self.out / MODEL
        scores = self._scores or []
        better = (
            not self.recipe.validation.patience or not scores or int(np.argmax(scores)) == len(scores) - 1
        )
        if better or not path.is_file():
            recipe = self.recipe
            meta = self.sources.scenes.meta
            notes = {
                "name": recipe.name, "recipe": digest(recipe), "data": meta.dataset, "licence": meta.licence,
                "videos": len(self.footing.of.videos), "seed": recipe.seed, "step": self.step, "steps": self.steps,
                "fps": recipe.clips.fps, "size_px": list(recipe.clips.size_px), "frames": recipe.clips.frames,
                "most_frames": recipe.clips.most_frames, "sentence_s": recipe.clips.sentence_s,
                "track_frames": recipe.clips.track_frames, "metrics": dict(metrics),
            }  # fmt: skip
            save_crowd(path, self._copy(weights), notes)
            write_atomically(self.out / CARD, self._card(metrics).encode())
        done = self.step >= self.steps or self.is_over()
        if done and self.judged is not None:
            self._write_predictions(open_crowd(path)[0], self.judged)
        return path

    def _write_predictions(self, network: IntelliCare, judged: Judged) -> None:
        """What the network that was kept says of what it is judged on, a saved set for each task."""
        judged.footing.use(network)
        found = Answerer(network, judged.footing, self.recipe.clips, tasks=self.recipe.learnt_tasks).answer(
            judged.scenes
        )
        for task, predictions in found.items():
            save(predictions, self.out / PREDICTIONS / task, overwrite=True)

    def _card(self, metrics: Mapping[str, float]) -> str:
        """What the network is, for people."""
        recipe, meta, vocabulary = self.recipe, self.sources.scenes.meta, self.crowd.vocabulary
        counts = {f.name: len(getattr(vocabulary, f.name)) for f in fields(Vocabulary)}
        rows = [
            ("model", f"{', '.join(recipe.ordered_tasks)}; {sum(p.numel() for p in self.network.parameters()):,} parameters"),
            ("labels", ", ".join(f"{count} {name}" for name, count in counts.items() if count)),
            ("learnt from", f"{meta.dataset or 'scenes'}: {len(self.footing.of.videos)} videos"),
            ("terms of the annotations", meta.licence or "unknown"),
            ("steps", f"{self.step:,} of {self.steps:,}"),
            ("recipe", f"recipe.json, digest {digest(recipe)}, seed {recipe.seed}"),
            ("program", f"roadaware {__version__}"),
        ]  # fmt: skip
        lines = [f"# {recipe.name}", "", "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows)]
        if metrics and self.judged is not None:
            lines += [
                "",
                f"Judged on {len(self.judged.of.videos)} videos, on true boxes:",
                "",
                "| metric | per cent |",
                "|---|---|",
            ]
            lines += [f"| {name} | {100 * value:.1f} |" for name, value in metrics.items()]
        return "\n".join(lines) + "\n"


def mean_of_main(metrics: Mapping[str, float]) -> float:
    """The mean over tasks of the metric by which each is compared; -1 where there is none."""
    held = [metrics[f"{task}/{name}"] for task, name in MAIN.items() if f"{task}/{name}" in metrics]
    return sum(held) / len(held) if held else -1.0


def train_crowd(
    recipe: CrowdRecipe, out: Path, *, resume: bool = False, progress: Callable[..., Any] | None = None
) -> TrainedDetector:
    """Train a network of crowds, and write it with its log and checkpoints into a folder.

    Args:
        recipe, out, resume, progress: as of `training.loop.train`, which also says what is raised.
    """
    return train(recipe, out, resume=resume, progress=progress, make=CrowdRun)
