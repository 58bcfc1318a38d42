"""Runs that teach a detector to look at people again: crops of videos, the loss of sides, and the file that comes out."""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from roadaware import __version__
from roadaware import config as configs
from roadaware.arrays import Floats32, Ints
from roadaware.config import digest
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json
from roadaware.io.npz import DAMAGE
from roadaware.models.refine import (
    MEAN,
    STD,
    BoxRefiner,
    RefineConfig,
    SecondLook,
    cut_crops,
    find_windows,
    normalise_image,
    place_sides,
)
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import StreamDetector
from roadaware.models.weights import open_network, save_detector
from roadaware.scenes.schema import CORNERS, PEOPLE
from roadaware.scenes.tables import Scenes
from roadaware.tasks.road_events import Classes
from roadaware.tasks.videos import Film, iterate_images
from roadaware.training.batches import Batch, draw_pass
from roadaware.training.build import MODEL, Part
from roadaware.training.data import open_sources
from roadaware.training.loop import CARD, Run, TrainedDetector, train
from roadaware.training.recipe import Recipe
from roadaware.training.recipe_files import replace_fields

CROPS = "crops"
"""Folder of a run: of each video the crops that are learnt, so that a run that goes on need not cut them again."""
_FOUND, _MOVED = 9, 4
"""Crops of a frame: around boxes of the detector, and around true ones that are moved."""
_SPREADS = (0.03, 0.08, 0.15)
"""By how much true boxes are moved, as one that was looked at once, a good one and a usual one of a detector."""
_ERRS = (0.8, 0.5, 1.6, 0.9)
"""Of such a move the shares in middle across, middle along, log width and log height, as detectors err."""
_BODY, _HALF = 0.3, 0.5
"""Overlap from which on a crop shows where a body ends, and from which on a box counts as that of somebody."""
_LIGHT, _CHANNEL = 0.15, 0.06
"""Deviations of the logarithms of brightness, of all channels and of each."""
_PARTS = {"sides": 0.25, "bins": 3.0, "fit": 1.0}
"""Divisors of the parts of the loss."""


# What is learnt from: crops with the box that is right for them.


def collect_people(scenes: Scenes) -> dict[tuple[str, int], Floats32]:
    """Video and frame to (n, 4) true boxes of people on foot.

    Raises:
        InputError: if there are none.
    """
    names = scenes.meta.vocabularies.get("agent", ())
    people = [number for number, name in enumerate(names) if name.lower() in PEOPLE]
    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent", pl.col("label").is_in(people))
    boxes = scenes.boxes.filter(pl.col("box").is_in(labels["box"].implode()))
    rows = boxes.select(pl.col("video").cast(pl.String), "frame", *CORNERS)
    if not len(rows):
        raise InputError("expected boxes of people to learn from, and found none")
    parts = rows.partition_by("video", "frame", as_dict=True)
    return {
        (str(video), int(frame)): held.select(CORNERS).to_numpy().astype(np.float32)
        for (video, frame), held in parts.items()
    }


def list_unknown(scenes: Scenes) -> set[tuple[str, int]]:
    """Video and frame of what nobody annotated, where boxes of a detector may well be somebody."""
    if "annotated" not in scenes.frames.columns:
        return set()
    rows = scenes.frames.filter(~pl.col("annotated").fill_null(value=True))
    return set(rows.select(pl.col("video").cast(pl.String), "frame").iter_rows())


def compute_overlaps(one: Floats32, other: Floats32) -> Floats32:
    """(n, m) intersection over union of (n, 4) and (m, 4) boxes."""
    low, high = np.maximum(one[:, None, :2], other[:, :2]), np.minimum(one[:, None, 2:], other[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    sizes = [np.clip(each[:, 2:] - each[:, :2], 0, None).prod(axis=1) for each in (one, other)]
    union = sizes[0][:, None] + sizes[1] - shared
    return np.asarray(shared / np.maximum(union, 1e-6), dtype=np.float32)


def move_boxes(boxes: Floats32, spread: Floats32, rng: np.random.Generator) -> Floats32:
    """(n, 4) boxes moved and made larger or smaller at random, by shares (n,) of their size; see `_ERRS`."""
    size = boxes[:, 2:] - boxes[:, :2]
    err = rng.normal(size=(len(boxes), 4)) * spread[:, None] * _ERRS
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2 + size * err[:, :2]
    half = size * np.exp(err[:, 2:]) / 2
    return np.concatenate([middle - half, middle + half], axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class CropTable:
    """Crops and what is true of them.

    Args:
        pixels: (n, 3, rows, columns) uint8; 0 beyond the image, where images begin with 1.
        shape: (n, 4) as `cut_crops` gives it.
        truth: (n, 4) the sides of the body that the box meets best, in shares of the crop.
        overlap: (n,) of box and body.
    """

    pixels: Tensor
    shape: Tensor
    truth: Tensor
    overlap: Tensor

    def __len__(self) -> int:
        return len(self.pixels)

    def encode(self) -> bytes:
        """As an npz file."""
        file = io.BytesIO()
        np.savez(file, **{name: tensor.numpy() for name, tensor in vars(self).items()})
        return file.getvalue()

    @classmethod
    def decode(cls, path: Path) -> CropTable:
        """What `encode` wrote.

        Raises:
            InputError: if it is no such file.
        """
        try:
            with np.load(path, allow_pickle=False) as held:
                table = cls(*(torch.from_numpy(held[name]) for name in cls.__dataclass_fields__))
            if len({len(getattr(table, name)) for name in cls.__dataclass_fields__}) != 1:
                raise ValueError("its parts are of different lengths")
            return table
        except DAMAGE as error:
            raise InputError(
                "is no file of crops: remove it, and it is made anew", where=str(path)
            ) from error


def cut_video(
    film: Film,
    truth: Mapping[tuple[str, int], Floats32],
    unknown: Container[tuple[str, int]],
    detector: StreamDetector,
    again: SecondLook,
    rng: np.random.Generator,
) -> CropTable:
    """Crops of a video, around what a detector finds in each frame and around true boxes that are moved.

    Args:
        film: the video.
        truth: as `collect_people` gives it.
        unknown: as `list_unknown` gives it.
        detector: that finds people.
        again: which of its boxes are looked at, and how.
        rng: chooses and moves boxes.
    """
    config, parts = again.network.config, []
    mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
    nothing = np.zeros((0, 4), np.float32)
    detector.reset()
    for frame, image in enumerate(iterate_images(film)):
        (found,) = detector.step(image)
        if (film.video, frame) in unknown:
            continue
        held = truth.get((film.video, frame), nothing)
        people = np.flatnonzero(again.find_people(found.scores))
        # Likely boxes more often, since there are many that nobody would ask about
        chance = rng.random(len(people)) + np.minimum(found.agentness[people], 0.4)
        boxes = found.boxes[people[np.argsort(-chance)[:_FOUND]]]
        some = held[rng.permutation(len(held))[:_MOVED]]
        spread = rng.choice(_SPREADS, size=len(some)).astype(np.float32)
        boxes = np.concatenate([boxes, move_boxes(some, spread, rng)])
        if not len(boxes):
            continue
        overlap, whose = np.zeros(len(boxes), np.float32), np.zeros_like(boxes)
        if len(held):
            each = compute_overlaps(boxes, held)
            overlap, whose = each.max(axis=1), held[each.argmax(axis=1)]
        asked = torch.from_numpy(boxes)
        crops, shape = cut_crops(normalise_image(image), asked, config)
        inside = (crops != 0).any(dim=1, keepdim=True)
        pixels = (((crops * std + mean) * 254 + 1).clamp(1, 255).round() * inside).to(torch.uint8)
        windows = find_windows(asked, config.context)
        size = (windows[:, 2:] - windows[:, :2]).repeat(1, 2)
        sides = (torch.from_numpy(whose) - windows[:, :2].repeat(1, 2)) / size
        parts.append((pixels, shape, sides, torch.from_numpy(overlap)))
    if not parts:
        rows, columns = config.size_px
        return CropTable(
            torch.zeros(0, 3, rows, columns, dtype=torch.uint8), *(torch.zeros(0, 4),) * 2, torch.zeros(0)
        )
    return CropTable(*(torch.cat(held) for held in zip(*parts, strict=True)))


@dataclass(frozen=True)
class CropSample:
    """One crop of a batch.

    Args:
        row: of the table.
        name: for messages.
    """

    row: int
    name: str


class CropSet(Dataset[CropSample]):
    """The crops of a run by the number of the draw.

    Args:
        table: of all videos.
        seed: of the order.
    """

    def __init__(self, table: CropTable, seed: int) -> None:
        self.table, self.seed = table, seed
        self._pass: tuple[int, Ints] = (-1, np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, draw: int) -> CropSample:
        turn, place = divmod(draw, len(self.table))
        if self._pass[0] != turn:
            weight = np.ones(len(self.table))
            self._pass = (turn, draw_pass(weight, np.random.default_rng([self.seed, turn])))
        row = int(self._pass[1][place])
        return CropSample(row, f"crop {row}")


# The loss.


class RefineLearner:
    """A network of crops that learns; see `Trainable`.

    Args:
        network: what learns.
        table: crops, whose rows batches name.
        flip, colour: chances that a crop is mirrored, and brighter or darker.
    """

    parts = tuple(_PARTS)
    by_chance = True

    def __init__(self, network: BoxRefiner, table: CropTable, flip: float, colour: float) -> None:
        self.network: nn.Module = network
        self.trainee: nn.Module = network
        self.table, self.flip, self.colour = table, flip, colour
        self.config: dict[str, Any] = configs.to_dict(network.config)

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """As of `Trainable`."""
        rows = torch.tensor([sample.row for sample in batch.samples])
        pixels, shape, truth, overlap = (
            each[rows].to(device) for each in (self.table.pixels, self.table.shape, self.table.truth, self.table.overlap)
        )  # fmt: skip
        crops, truth = self._vary(pixels, truth)
        if channels_last:
            crops = crops.contiguous(memory_format=torch.channels_last)
        upright, across, score = model(crops, shape)
        return compute_losses(upright, across, score, truth, overlap)

    def _vary(self, pixels: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        """Crops as the network sees them, some of them mirrored, each brighter or darker, and true sides."""
        mean, std = (torch.tensor(each, device=pixels.device)[:, None, None] for each in (MEAN, STD))
        count, inside = len(pixels), (pixels > 0).any(dim=1, keepdim=True)
        turned = torch.rand(count, device=pixels.device) < self.flip
        noise = _CHANNEL * torch.randn(count, 3, 1, 1) + _LIGHT * torch.randn(count, 1, 1, 1)
        light = (noise * (torch.rand(count, 1, 1, 1) < self.colour)).exp().to(pixels.device)
        crops = ((((pixels.float() - 1) / 254 * light).clamp(0, 1) - mean) / std) * inside
        crops = torch.where(turned[:, None, None, None], crops.flip(3), crops)
        mirrored = torch.stack([1 - truth[:, 2], truth[:, 1], 1 - truth[:, 0], truth[:, 3]], dim=1)
        return crops, torch.where(turned[:, None], mirrored, truth)


def compute_losses(
    upright: Tensor, across: Tensor, score: Tensor, truth: Tensor, overlap: Tensor
) -> dict[str, Part]:
    """Where sides are, as numbers and as bins, of crops that show a body; and of all how well boxes fit.

    Args:
        upright, across, score: as `BoxRefiner.forward` gives them.
        truth: (n, 4) sides of the body in shares of the crop; those beyond it are learnt as its border.
        overlap: (n,) of the box that was looked at and the body.

    Source: the bins are the distribution focal loss of Li et al., Generalized Focal Loss, NeurIPS 2020, without its focus;
        the fit is learnt as they and Zhang et al., VarifocalNet, CVPR 2021, do: from the overlap that came out.
    """
    sides, body = place_sides(upright, across), overlap >= _BODY
    within, size = truth.clamp(0, 1), (truth[:, 2:] - truth[:, :2]).clamp(min=0.05).repeat(1, 2)
    count = body.sum()
    far = functional.smooth_l1_loss(sides / size, within / size, beta=0.02, reduction="none").mean(dim=1)
    bins = (
        _compare_bins(across, within[:, ::2]).mean(dim=1)
        + _compare_bins(upright, within[:, 1::2]).mean(dim=1)
    ) / 2
    with torch.no_grad():
        shared = torch.minimum(sides[:, 2:], truth[:, 2:]) - torch.maximum(sides[:, :2], truth[:, :2])
        common = shared.clamp(min=0).prod(dim=1)
        areas = [(each[:, 2:] - each[:, :2]).clamp(min=0).prod(dim=1) for each in (sides, truth)]
        fit = common / (areas[0] + areas[1] - common).clamp(min=1e-6)
        # A box that met nobody before is nobody's, wherever it is put
        fit = torch.where((fit >= _HALF) & (overlap >= _BODY / 1.5), fit, torch.zeros_like(fit))
    found = functional.binary_cross_entropy_with_logits(score, fit)
    mean = {name: (each * body).sum() / count.clamp(min=1) for name, each in (("sides", far), ("bins", bins))}
    return {
        **{name: Part(value, count, _PARTS[name]) for name, value in mean.items()},
        "fit": Part(found, torch.tensor(len(score), device=score.device), _PARTS["fit"]),
    }


def _compare_bins(logits: Tensor, at: Tensor) -> Tensor:
    """(n, 2) cross entropy of distributions (n, 2, bins) with the two bins beside each of (n, 2) places in [0, 1]."""
    count = logits.shape[-1]
    place = (at * count - 0.5).clamp(0, count - 1.001)
    low, said = place.floor().long(), logits.log_softmax(dim=-1)
    share = place - low
    near = [said.gather(-1, (low + step)[..., None])[..., 0] for step in (0, 1)]
    return -(near[0] * (1 - share) + near[1] * share)


# The run.


class RefineRun(Run[Recipe]):
    """A run that teaches the second look of a detector, which stays as it is; see `Run`."""

    def load(self) -> None:
        """As of `Run`."""
        recipe = self.recipe
        if not recipe.model.weights:
            raise UsageError("model.weights names no detector whose people are to be looked at again")
        self.path = recipe.model.weights_path()
        self.detector, self.facts = open_network(self.path)
        if not self.detector.config.causal:
            raise UsageError(f"{self.path} looks ahead: only people of a causal detector are looked at again")
        kinds = {kind: tuple(names) for kind, names in self.facts["kinds"].items()}
        self.classes = Classes(kinds, tuple(self.facts["av_labels"]))
        torch.manual_seed(recipe.seed)
        network = BoxRefiner(replace_fields(RefineConfig(), recipe.model.fields, "model.fields"))
        self.again = SecondLook(network, kinds)
        self.sources = open_sources(recipe.data)
        table = self._cut()
        if not len(table):
            raise InputError("expected people to learn from, and neither truth nor detector has any")
        self.learner = RefineLearner(network, table, recipe.augment.flip, recipe.augment.colour)
        self.clips = self.crops = CropSet(table, recipe.seed)

    def _cut(self) -> CropTable:
        """The crops of all videos, those that were kept as they are."""
        recipe, films = self.recipe, self.sources.films
        scenes = self.sources.scenes
        truth, unknown = collect_people(scenes), list_unknown(scenes)
        rule = DetectRule(min_agentness=0.05, nms_iou=self.again.network.config.candidate_nms_iou, top=60)
        detector = StreamDetector(self.detector, self.classes.kinds, self.classes.av_labels, rule)
        folder, parts = self.out / CROPS, []
        folder.mkdir(exist_ok=True)
        for number, film in enumerate(films):
            # Crops of another recipe, detector, video or truth have another name: they are left where they lie.
            boxes = {frame: held.tolist() for (video, frame), held in truth.items() if video == film.video}
            said = {"fields": configs.to_dict(self.again.network.config), "seed": recipe.seed, "truth": boxes}
            made = {
                "detector": self.facts["digest"],
                "video": film.video,
                "bytes": Path(film.path).stat().st_size,
            }
            key = hashlib.blake2b(encode_json(said | made).encode(), digest_size=6).hexdigest()
            path = folder / f"{number:05d}-{key}.npz"
            if not path.is_file():
                rng = np.random.default_rng([recipe.seed, number])
                write_atomically(path, cut_video(film, truth, unknown, detector, self.again, rng).encode())
            parts.append(CropTable.decode(path))
            if self.progress is not None:
                self.progress(number + 1, len(films), "videos seen")
        names = CropTable.__dataclass_fields__
        return CropTable(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def count(self) -> int:
        """As of `Run`."""
        return len(self.crops)

    def summarize(self) -> str:
        """As of `Run`."""
        return f"{self.count()} crops of {len(self.sources.films)} videos"

    def judge(self, weights: Mapping[str, Tensor] | None) -> dict[str, float]:
        """As of `Run`: nothing, since the detector is judged with it as any other (`predict`, `evaluate`)."""
        return {}

    def export(self, weights: Mapping[str, Tensor] | None, metrics: Mapping[str, float]) -> Path:
        """As of `Run`: the detector with its second look, beside a card."""
        recipe, meta = self.recipe, self.sources.scenes.meta
        kept = copy.deepcopy(self.again.network).cpu().eval()
        if weights is not None:
            kept.load_state_dict(dict(weights))
        made = {
            "name": recipe.name,
            "recipe": digest(recipe),
            "data": meta.dataset,
            "seed": recipe.seed,
            "step": self.step,
        }
        notes = {
            **self.facts["notes"],
            "second_look": made | {"steps": self.steps, "videos": len(self.sources.films)},
        }
        path = self.out / MODEL
        save_detector(path, self.detector, self.classes.kinds, self.classes.av_labels, notes, kept)
        rows = [
            ("detector", f"{self.path.name}, as it was"),
            ("second look", f"{sum(p.numel() for p in kept.parameters()):,} parameters"),
            (
                "learnt from",
                f"{meta.dataset or 'scenes'}: {self.count():,} crops of {len(self.sources.films)} videos",
            ),
            ("terms of the annotations", meta.licence or "unknown"),
            ("steps", f"{self.step:,} of {self.steps:,}"),
            ("recipe", f"recipe.json, digest {digest(recipe)}, seed {recipe.seed}"),
            ("program", f"roadaware {__version__}"),
        ]
        lines = [f"# {recipe.name}", "", "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows)]
        write_atomically(self.out / CARD, ("\n".join(lines) + "\n").encode())
        return path


def train_refiner(
    recipe: Recipe, out: Path, *, resume: bool = False, progress: Callable[..., Any] | None = None
) -> TrainedDetector:
    """Teach a detector to look at people again, and write both as one file with log and checkpoints into a folder.

    Args:
        recipe, out, resume, progress: as of `training.loop.train`, which also says what is raised.
    """
    return train(recipe, out, resume=resume, progress=progress, make=RefineRun)
