"""Samples of crowds as tensors: questions by the number of the draw, what is seen and heard, and answers; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import InputError
from roadaware.models.crowd.config import CrowdConfig, Task
from roadaware.models.crowd.grounding import WordReader
from roadaware.models.crowd.people import choose_pairs, describe_both, describe_motion
from roadaware.models.crowd.sound import RATE, SECONDS, cover_cells, hear
from roadaware.tasks.crowd import (
    CrowdSample,
    CrowdSet,
    Cutting,
    count_labels,
    cut_samples,
    hear_classes,
    scale_boxes,
)
from roadaware.tasks.crowd_answers import Footing, normalise, pad_size
from roadaware.training.batches import balance, draw_pass
from roadaware.training.crowd.recipe import CrowdRecipe

_ORDER, _SAMPLE = 0, 1


# Questions by the number of the draw.


@dataclass(eq=False)
class Asked:
    """A question about a clip.

    Args:
        sample: the question.
        boxes: those of the sample, in pixels of the network's image.
        examples: (2, S, 96, 64) log-mels.
        people: those of the sample, in pixels of the network's image.
        tracks: the same.
    """

    sample: CrowdSample
    boxes: Floats32
    examples: Tensor | None
    people: Floats32 | None = None
    tracks: Floats32 | None = None


@dataclass(eq=False)
class CrowdItem:
    """A clip with what is seen of it, and the questions about it.

    Args:
        asked: questions of one task.
        seen: (C, T, h, w) float16 map before the dynamic layers; or (T, H, W, 3) uint8 images; (12, T, h, w) colours of cells
            where sentences are compared with people.
        size: height and width of the network's image, padded.
        ears: (E, 2, S, 96, 64) log-mels of moments that are only heard, of sound.
        present: (E, sounds) bool, which classes are heard there.
        walks: moments of which the tracks alone are known, of actions and relations.
    """

    asked: list[Asked]
    seen: Tensor
    size: tuple[int, int]
    ears: Tensor | None = None
    present: Tensor | None = None
    walks: list[Asked] = field(default_factory=list)

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.asked[0].sample.task}: {self.asked[0].sample.name}"


class SoundingTracks(NamedTuple):
    """A moment at which a sound is heard and its source seen, with the n people there.

    Args:
        tracks: (n, K, 4) in pixels of the network's image.
        image: (2,) width and height in pixels.
        asked: the class of the sound.
        makes: (n + 1,) bool who makes it, and last whether none of them does.
    """

    tracks: Tensor
    image: Tensor
    asked: int
    makes: Tensor


class CrowdClips(Dataset[CrowdItem]):
    """The questions of a run by the number of the draw: the same number gives the same one on every machine.

    Args:
        footing: what is seen and heard.
        recipe: how questions are drawn and varied.

    Its `found` are the same videos with boxes of a detector, which `learn_motion` learns from too (default: None).
    """

    def __init__(self, footing: Footing, recipe: CrowdRecipe) -> None:
        self.footing, self.recipe, self.tasks = footing, recipe, recipe.ordered_tasks
        clips, self.in_cells = recipe.clips, recipe.build_config().grounding == "cells"
        cutting = {part.name: getattr(clips, part.name) for part in fields(Cutting)}
        if self.in_cells:
            # Published losses know no sentence that happens nowhere.
            cutting["strange"] = 0.0
        self.cutting = Cutting(**cutting)
        self.asks = footing.of.asks
        self.weights: dict[Task, Floats] = {
            task: balance(count_labels(footing.of, task), clips.balance_share, clips.balance_most)
            for task in self.tasks
        }
        self.found: CrowdSet | None = None
        self._turns: list[tuple[int, int]] = []
        self._counts = [0] * len(self.tasks)
        self._passes: dict[Task, tuple[int, Ints]] = {}

    def __len__(self) -> int:
        return sum(len(self.asks[task]) for task in self.recipe.learnt_tasks)

    @property
    def see_maps(self) -> bool:
        """Whether anything that is learnt sees maps: sentences that are compared with people see colours."""
        return self.in_cells or self.recipe.learnt_tasks != ("grounding",)

    def turn(self, number: int) -> tuple[Task, int]:
        """The task of a batch, and how many batches of it came before; tasks come in proportion."""
        shares = np.array([float(self.recipe.tasks[task]) for task in self.tasks])
        shares = shares / shares.sum()
        while len(self._turns) <= number:
            due = shares * (len(self._turns) + 1) - np.array(self._counts)
            chosen = int(due.argmax())
            self._turns.append((chosen, self._counts[chosen]))
            self._counts[chosen] += 1
        place, before = self._turns[number]
        return self.tasks[place], before

    def __getitem__(self, draw: int) -> CrowdItem:
        batch, seed = self.recipe.clips.batch, self.recipe.seed
        number, row = divmod(draw, batch)
        task, before = self.turn(number)
        turn, place = divmod(before * batch + row, len(self.asks[task]))
        if self._passes.get(task, (-1, None))[0] != turn:
            rng = np.random.default_rng([seed, _ORDER, self.tasks.index(task), turn])
            self._passes[task] = (turn, draw_pass(self.weights[task], rng))
        ask = self.asks[task][int(self._passes[task][1][place])]
        return self.item(task, (int(ask[0]), int(ask[1])), np.random.default_rng([seed, _SAMPLE, draw]))

    def item(self, task: Task, ask: tuple[int, int], rng: np.random.Generator) -> CrowdItem:
        """A clip with what is seen and heard, and the questions about it.

        Args:
            task: which head is asked.
            ask: a row of `CrowdSet.asks`.
            rng: of this clip.
        """
        footing, mono = self.footing, self.recipe.clips.mono
        samples = cut_samples(footing.of, task, ask, self.cutting, rng)
        first = samples[0]
        examples = None
        if task == "sound":
            drawn, side = rng.random(), int(rng.integers(2))
            examples = footing.examples(first.video, first.at_s, side if drawn < mono else None)
            if examples is None:
                # The film is silent there.
                examples = hear(np.zeros((RATE * SECONDS, 2), dtype=np.float32), RATE)
        asked = []
        for sample in samples:
            if task in ("actions", "relations"):
                asked.append(self._place(sample, rng))
            else:
                asked.append(Asked(sample, scale_boxes(sample.boxes, footing.scale(sample.video)), examples))
        if first.people is not None and first.tracks is not None:
            people, tracks = self._vary(first.video, first.people, first.tracks, rng)
            for each in asked:
                each.people, each.tracks = people, tracks
        if task == "grounding" and not self.in_cells:
            seen = footing.colours(first.video, first.slots)
        elif self.recipe.model.train_trunk:
            seen = footing.pictures(first.video, first.slots)
        else:
            seen = footing.map(first.video, first.slots)
        item = CrowdItem(asked, seen, pad_size(footing.sizes[first.video]))
        if examples is not None:
            self._listen(item, first, examples, rng)
        if task in ("actions", "relations"):
            chances = self.weights[task] / self.weights[task].sum()
            alone = replace(self.cutting, questions=1)
            for place in rng.choice(len(self.asks[task]), self.recipe.clips.walks, p=chances).tolist():
                number, row = self.asks[task][place].tolist()
                item.walks.append(
                    self._place(cut_samples(footing.of, task, (number, row), alone, rng)[0], rng)
                )
        return item

    def describe_moments(
        self,
        task: Task,
        rng: np.random.Generator,
        most: int,
        of: CrowdSet | None = None,
        *,
        stopped: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(n, features) what tracks say of people (actions) or near pairs (relations), and (n, labels) bool what holds.

        People without a label are left out: what they do is not known.

        Args:
            task: `actions` or `relations`.
            rng: draws the moments, those with rarer labels first, and varies boxes.
            most: rows, about; moments are taken until there are as many.
            of: the same videos with the people of a detector, of whom one without a label does nothing (default: the true
                people of the run).
            stopped: asked between moments whether to stop.
            progress: called with the moments done and the total.
        """
        clips, config, detected = self.recipe.clips, self.recipe.build_config(), of is not None
        of = of or self.footing.of
        asks = of.asks[task]
        weights = balance(count_labels(of, task), clips.balance_share, clips.balance_most)
        labels = of.vocabulary.actions if task == "actions" else of.vocabulary.predicates
        rows, held, count = [], [torch.zeros(0, len(labels), dtype=torch.bool)], 0
        alone = replace(self.cutting, questions=1)
        places = draw_pass(weights, rng).tolist() if len(asks) else []
        for done, place in enumerate(places):
            number, row = asks[place].tolist()
            asked = self._place(cut_samples(of, task, (number, row), alone, rng)[0], rng)
            walks = _build_walks(task, [(asked, pad_size(self.footing.sizes[number]))], config)
            known, targets = (walks["walks"], walks["moment"]), walks["walk_targets"] > 0
            if task == "actions":
                labelled = targets.any(dim=1) | detected
                rows.append(describe_motion(*known, walks["image"])[labelled])
                held.append(targets[labelled])
            else:
                rows.append(describe_both(*known, walks["pairs"], walks["image"]))
                held.append(targets)
            count += len(rows[-1])
            if progress is not None:
                progress(done + 1, len(places), "moments of tracks")
            if count >= most or stopped():
                break
        return torch.cat(rows) if rows else torch.zeros(0, 0), torch.cat(held)

    def describe_sound(self, ask: tuple[int, int], rng: np.random.Generator) -> SoundingTracks | None:
        """A sound and the tracks of the people at one of its moments; None where its source is not seen, or nobody is.

        Args:
            ask: a row of `CrowdSet.asks` of sounds.
            rng: draws the moment and varies boxes.
        """
        alone = replace(self.cutting, questions=1, wrong=0.0)
        sample = cut_samples(self.footing.of, "sound", ask, alone, rng)[0]
        if not sample.heard or sample.tracks is None or not len(sample.tracks):
            return None
        _, tracks = self._vary(sample.video, sample.tracks[:, :1], sample.tracks, rng)
        height, width = pad_size(self.footing.sizes[sample.video])
        makes = torch.from_numpy(sample.targets[:, 0])
        return SoundingTracks(
            torch.from_numpy(tracks),
            torch.tensor([width, height], dtype=torch.float32),
            sample.asked,
            torch.cat([makes, ~makes.any(dim=0, keepdim=True)]),
        )

    def _place(self, sample: CrowdSample, rng: np.random.Generator) -> Asked:
        """A question about people with boxes and tracks in pixels of the network's image, varied by chance."""
        if sample.tracks is None:
            raise InputError("a question about people has no tracks", where=sample.name)
        boxes, tracks = self._vary(sample.video, sample.boxes, sample.tracks, rng)
        return Asked(sample, boxes, None, tracks=tracks)

    def _vary(
        self, video: int, boxes: Floats32, tracks: Floats32, rng: np.random.Generator
    ) -> tuple[Floats32, Floats32]:
        """Boxes and tracks of people (n, ..., 4), in pixels of the network's image, jittered alike in all frames."""
        whole = np.concatenate([each.reshape(len(each), -1, 4) for each in (boxes, tracks)], axis=1)
        whole = jitter(scale_boxes(whole, self.footing.scale(video)), self.recipe.clips.jitter, rng)
        cut = whole.shape[1] - int(np.prod(tracks.shape[1:-1]))
        return whole[:, :cut].reshape(boxes.shape), whole[:, cut:].reshape(tracks.shape)

    def _listen(self, item: CrowdItem, first: CrowdSample, own: Tensor, rng: np.random.Generator) -> None:
        """Add moments that are only heard: that of the clip, and some of any film with sound."""
        of, mono = self.footing.of, self.recipe.clips.mono
        moments = [(first.video, first.at_s, own)]
        with_sound = np.unique(self.asks["sound"][:, 0])
        for _ in range(self.recipe.clips.ears):
            video = int(with_sound[int(rng.integers(len(with_sound)))])
            at_s = float(rng.uniform(0, of.videos[video].film.n_frames / of.videos[video].fps))
            drawn, side = rng.random(), int(rng.integers(2))
            heard = self.footing.examples(video, at_s, side if drawn < mono else None)
            if heard is not None:
                moments.append((video, at_s, heard))
        item.ears = torch.stack([heard for _, _, heard in moments])
        item.present = torch.zeros(len(moments), max(1, len(of.vocabulary.sounds)), dtype=torch.bool)
        for row, (video, at_s, _) in zip(item.present, moments, strict=True):
            near = [place for place in hear_classes(of.videos[video], at_s) if place >= 0]
            row[near] = True


def jitter(boxes: Floats32, share: float, rng: np.random.Generator) -> Floats32:
    """Boxes moved and made larger or smaller by chance, as those of a detector are; each alike in all frames.

    Args:
        boxes: (n, ..., 4) corners.
        share: of width and height, at most.
        rng: numbers are drawn from it.
    """
    shape = (len(boxes), *(1,) * (boxes.ndim - 2), 4)
    size = np.tile(boxes[..., 2:] - boxes[..., :2], 2)
    moved: Floats32 = (boxes + rng.uniform(-share, share, shape) * size).astype(np.float32)
    return moved


# Batches as heads take them.


@dataclass(eq=False)
class Question:
    """A batch of one task.

    Args:
        task: which head is asked.
        seen: (B, C, T, h, w) maps before the dynamic layers; or (B, 3, T, H, W) images; or colours, as of `CrowdItem`.
        images: whether these are images.
        clip: (Q,) of each question its clip.
        asked: what the head takes beside the map.
        answer: what its loss takes.
        image: (2,) width and height in pixels of the network's image.
    """

    task: Task
    seen: Tensor
    images: bool
    clip: Tensor
    asked: dict[str, Tensor]
    answer: dict[str, Tensor]
    image: Tensor


def build_question(
    items: Sequence[CrowdItem], config: CrowdConfig, reader: WordReader | None, device: torch.device
) -> Question:
    """Questions of one task as tensors; clips of other sizes and lengths are padded to the right, below and behind."""
    task: Task = items[0].asked[0].sample.task
    images = items[0].seen.dtype == torch.uint8
    frames = max(item.seen.shape[0 if images else 1] for item in items)
    if images and config.trunk == "i3d" and config.time_pool:
        frames += frames % 2
    size = (max(item.size[0] for item in items), max(item.size[1] for item in items))
    rows = []
    for item in items:
        seen = normalise(item.seen, size) if images else item.seen.float()
        # A map that is kept early in the trunk has smaller cells than the last one.
        cell = 1 if images else item.size[0] // seen.shape[2]
        whole = (size[0] // cell, size[1] // cell)
        behind = frames - seen.shape[1]
        rows.append(
            functional.pad(seen, (0, whole[1] - seen.shape[3], 0, whole[0] - seen.shape[2], 0, behind))
        )
    questions = [question for item in items for question in item.asked]
    if task == "actions":
        asked, answer = _ask_actions(questions)
    elif task == "relations":
        asked, answer = _ask_relations(questions, config)
    elif task == "sound":
        asked, answer = _ask_sounds(questions, config, size)
    elif config.grounding == "people":
        asked, answer = _ask_people(questions, reader, frames)
    else:
        asked, answer = _ask_sentences(questions, reader, size, frames)
    clip = [number for number, item in enumerate(items) for _ in item.asked]
    if task == "grounding" and config.grounding == "people":
        # Colours once for all sentences of a clip: the head says itself what belongs to which.
        firsts = [item.asked[0] for item in items]
        people = [_fill_frames(each.people, frames) for each in firsts]
        asked["boxes"] = torch.cat(people)
        asked["owner"] = torch.cat(
            [torch.full((len(p),), n, dtype=torch.int64) for n, p in enumerate(people)]
        )
        asked["clip"] = torch.tensor(clip)
        asked["frames"] = torch.stack([torch.arange(frames) < len(each.sample.slots) for each in firsts])
        held_tracks = [_fill_frames(each.tracks, frames) for each in firsts]
        asked["tracks"] = torch.cat(held_tracks)
        clip = list(range(len(items)))
    if task in ("actions", "relations"):
        asked["tracks"] = torch.from_numpy(np.concatenate([_tracks(each) for each in questions]))
        walks = [(each, item.size) for item in items for each in item.walks]
        if walks and config.form == "compact":
            answer |= _build_walks(task, walks, config)
    if task == "sound" and config.form == "compact":
        answer["ears"] = torch.cat([item.ears for item in items if item.ears is not None])
        answer["present"] = torch.cat([item.present for item in items if item.present is not None])
    return Question(
        task,
        torch.stack(rows).to(device),
        images,
        torch.tensor(clip, device=device),
        {name: value.to(device) for name, value in asked.items()},
        {name: value.to(device) for name, value in answer.items()},
        torch.tensor([size[1], size[0]], dtype=torch.float32, device=device),
    )


Pair = tuple[dict[str, Tensor], dict[str, Tensor]]


def _owners(items: Sequence[Asked]) -> Tensor:
    return torch.cat([torch.full((len(item.boxes),), n, dtype=torch.int64) for n, item in enumerate(items)])


def _ask_actions(items: Sequence[Asked]) -> Pair:
    clip = _owners(items)
    frame = torch.tensor([item.sample.frame for item in items])[clip]
    boxes = torch.from_numpy(np.concatenate([item.boxes for item in items]))
    targets = torch.from_numpy(np.concatenate([item.sample.targets for item in items]))
    return {"boxes": boxes, "clip": clip, "frame": frame}, {"targets": targets.float()}


def _ask_relations(items: Sequence[Asked], config: CrowdConfig) -> Pair:
    clip = _owners(items)
    frame = torch.tensor([item.sample.frame for item in items])
    boxes = torch.from_numpy(np.concatenate([item.boxes for item in items]))
    now = boxes[torch.arange(len(boxes)), frame[clip]]
    pairs = choose_pairs(now, clip, heights=config.pair_heights, most=config.max_pairs).index
    first = torch.tensor(np.cumsum([0, *(len(item.boxes) for item in items)])[:-1])
    owner = clip[pairs[:, 0]]
    own = pairs - first[owner][:, None]
    held = [torch.from_numpy(item.sample.targets) for item in items]
    targets = [held[c][s, o] for c, (s, o) in zip(owner.tolist(), own.tolist(), strict=True)]
    predicates = held[0].shape[2]
    answer = torch.stack(targets).float() if targets else torch.zeros(0, predicates)
    return {"boxes": boxes, "clip": clip, "pairs": pairs, "frame": frame}, {"targets": answer}


def _ask_sentences(
    items: Sequence[Asked], reader: WordReader | None, size: tuple[int, int], frames: int
) -> Pair:
    if reader is None:
        raise InputError("sentences cannot be read: the vocabulary has no words")
    words = reader.encode([item.sample.sentence for item in items])
    lengths = torch.tensor([len(item.sample.slots) for item in items])
    mask = torch.arange(frames)[None] < lengths[:, None]
    boxes = torch.full((len(items), frames, 4), float("nan"))
    for place, item in zip(boxes, items, strict=True):
        place[: len(item.boxes)] = torch.from_numpy(item.boxes)
    whole = torch.tensor([size[1], size[0]], dtype=torch.float32)
    centre, extent = (boxes[..., :2] + boxes[..., 2:]) / 2 / whole, (boxes[..., 2:] - boxes[..., :2]) / whole
    target = torch.cat([centre, extent], dim=2)
    # Who is spoken of may have no box in a frame of the span.
    span = torch.tensor([item.sample.span for item in items])
    asked = {"ids": words.ids, "mask": words.mask, "frames": mask}
    return asked, {"target": target.nan_to_num(0.5), "span": span, "mask": mask}


def _ask_people(items: Sequence[Asked], reader: WordReader | None, frames: int) -> Pair:
    if reader is None:
        raise InputError("sentences cannot be read: the vocabulary has no words")
    words = reader.encode([item.sample.sentence for item in items])
    lengths = torch.tensor([len(item.sample.slots) for item in items])
    answer = {
        "person": torch.tensor([item.sample.who for item in items]),
        "span": torch.tensor([item.sample.span for item in items]),
        "mask": torch.arange(frames)[None] < lengths[:, None],
    }
    return {"ids": words.ids, "mask": words.mask}, answer


def _fill_frames(people: Floats32 | None, frames: int) -> Tensor:
    """(n, frames, ...) boxes of a clip, of which those of the last frame stand for the frames that fill it up."""
    held = np.zeros((0, frames, 4), np.float32) if people is None else people
    return torch.from_numpy(held[:, np.minimum(np.arange(frames), held.shape[1] - 1)])


def _tracks(asked: Asked) -> Floats32:
    if asked.tracks is None:
        raise InputError("a question about people has no tracks", where=asked.sample.name)
    return asked.tracks


def _build_walks(
    task: Task, walks: Sequence[tuple[Asked, tuple[int, int]]], config: CrowdConfig
) -> dict[str, Tensor]:
    """Moments of which the tracks alone are known: what `judge_motion` takes, and what it should say."""
    asked = [each for each, _ in walks]
    moment = _owners(asked)
    found = {
        "walks": torch.from_numpy(np.concatenate([_tracks(each) for each in asked])),
        "moment": moment,
        "image": torch.tensor([[size[1], size[0]] for _, size in walks], dtype=torch.float32)[moment],
    }
    if task == "actions":
        targets = np.concatenate([each.sample.targets for each in asked])
        return {**found, "walk_targets": torch.from_numpy(targets).float()}
    question, answer = _ask_relations(asked, config)
    return {**found, "pairs": question["pairs"], "walk_targets": answer["targets"]}


def _ask_sounds(items: Sequence[Asked], config: CrowdConfig, size: tuple[int, int]) -> Pair:
    target = torch.stack(
        [cover_cells(item.boxes, size, (config.map_size, config.map_size)) for item in items]
    )
    examples = torch.stack([item.examples for item in items if item.examples is not None])
    asked = torch.tensor([item.sample.asked for item in items])
    heard = torch.tensor([float(item.sample.heard) for item in items])
    return {"examples": examples, "asked": asked}, {"target": target, "heard": heard}
