"""Samples: the scenes, protocols and folds that a recipe of a predictor names; imports torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.sampling.protocols import EventProtocol
from roadaware.scenes.store import open_scenes
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.facts import compute_unknown_fractions, refuse_unknown
from roadaware.tasks.crossing_inputs.footage import Media
from roadaware.tasks.pedestrians import build_examples
from roadaware.tasks.targets import build_targets
from roadaware.training.pedestrians.folds import Fold
from roadaware.training.pedestrians.heads import get_horizon, get_task_weights
from roadaware.training.pedestrians.recipe import PedestrianRecipe, SamplesRecipe, Task
from roadaware.training.recipe_files import replace_fields

_log = logging.getLogger("roadaware")
THIRDS = 3
"""Classes that intention is cut into."""


@dataclass(frozen=True, eq=False)
class Material:
    """The scenes of a recipe, cut into samples.

    Args:
        cut: as the protocol says; validation and test are of these.
        train: what is learnt from: the same, or cut at every frame.
        protocol: of `cut`.
        labels: the words of the answers.
    """

    cut: Scenes
    train: Scenes
    protocol: EventProtocol
    labels: tuple[str, ...]

    @property
    def fps(self) -> float | None:
        """Frames per second of the videos that are learnt from; None where unknown, or where they differ."""
        videos = self.train.videos
        rates = videos["fps"].unique().to_list() if "fps" in videos.columns else []
        return float(rates[0]) if len(rates) == 1 and rates[0] else None


def load_samples(samples: SamplesRecipe, task: Task) -> Material:
    """Read the data of a recipe and cut its samples.

    Args:
        samples: of the recipe.
        task: what is asked.

    Raises:
        UsageError: if the protocol is unknown, cannot have such fields, or asks for another task.
        InputError: if the annotations cannot be read, or hold no boxes.
    """
    protocol = get_protocol(samples.protocol, samples.config)
    if samples.fields:
        protocol = replace_fields(protocol, samples.fields, "samples.fields")
    if protocol.task != task:
        raise UsageError(f"{samples.protocol} asks for {protocol.task}, and the recipe for {task}")
    scenes = _read_scenes(samples)
    if scenes.boxes.is_empty():
        raise InputError(
            f"{task} is learnt from boxes, and these scenes have none",
            where=samples.root,
            hint="attributes alone carry intention only, for `roadaware reproduce`; put the box annotations "
            "of the release beside them (of PIE the folder annotations/)",
        )
    cut = sample(scenes, protocol)
    every = 1 - 1 / (2 * protocol.observation_frames)  # a stride of half a frame, which is one
    dense = sample(scenes, replace(protocol, overlap=every)) if samples.dense else cut
    return Material(cut, dense, protocol, tuple(cut.meta.vocabularies[task]))


def _read_scenes(samples: SamplesRecipe) -> Scenes:
    root = Path(samples.root)
    return open_scenes(root) if samples.reader == "saved" else read(samples.reader, root, **samples.options)


def build_fold(material: Material, split: str, names: Sequence[str], recipe: PedestrianRecipe) -> Fold:
    """The samples of a split with the inputs that a network reads.

    Args:
        material: of the recipe.
        split: train, val or test.
        names: of inputs, in order.
        recipe: says where videos and poses lie, and which answers are learnt.

    Raises:
        UsageError, InputError: as `tasks.crossing_inputs.build_inputs`.
        InputError: if all of an input is unknown; one that is in parts is reported in a warning.
    """
    scenes = material.train if split == "train" else material.cut
    given = build_inputs(scenes, split, names, leaks=recipe.samples.leaks, media=find_media(recipe.samples))
    refuse_unknown(compute_unknown_fractions(given), split)
    truth = torch.tensor(build_examples(scenes, split).truth)
    soft = _soft(scenes, split) if recipe.loss.soft and split == "train" else None
    ahead = None
    if get_task_weights(recipe):
        ahead = build_targets(scenes, split, get_horizon(recipe.tasks, material.protocol))
    return Fold(given, truth, soft, ahead)


def list_missing_labels(material: Material, split: str) -> tuple[str, ...]:
    """Notes on labels that no sample of a split has, in words; none where all occur. Each is also a warning.

    Args:
        material: of the recipe.
        split: train, val or test.
    """
    found = material.cut.samples.filter(pl.col("split").cast(pl.String) == split)["label"]
    lost = [word for label, word in enumerate(material.labels) if label not in set(found.to_list())]
    if not lost:
        return ()
    words = ", ".join(f"'{word}'" for word in lost)
    note = (
        f"no sample of split '{split}' is labelled {words}: AUC and average precision are not defined there, "
        "whatever number stands for them"
    )
    _log.warning("%s", note)
    return (note,)


def find_media(samples: SamplesRecipe) -> Media:
    """Paths of videos, masks and poses; annotations in an archive have none beside them.

    Args:
        samples: of the recipe.
    """
    poses, cache = (Path(said) if said else None for said in (samples.poses, samples.cache))
    root = Path(samples.media or samples.root)
    return Media(
        root=root if samples.media or root.is_dir() else None,
        films=samples.films,
        maps=samples.maps,
        classes=samples.classes,
        poses=poses,
        cache=cache,
    )


def _soft(scenes: Scenes, split: str) -> Tensor:
    """(n, 3) how much of the share of people who saw an intention speaks for each third of it.

    A share in the middle of a third is that class alone; between two middles it is shared by both.

    Raises:
        InputError: if nobody was asked.
    """
    owners = (
        scenes.tubes.select("tube", "intention_prob") if "intention_prob" in scenes.tubes.columns else None
    )
    if owners is None:
        raise InputError("loss.soft learns shares of people, and these tubes have no intention_prob")
    asked = scenes.samples.filter(pl.col("split").cast(pl.String) == split).select("tube")
    share = asked.join(owners, on="tube", how="left", maintain_order="left")["intention_prob"]
    if share.null_count():
        raise InputError(f"nobody was asked about {share.null_count()} of {len(share)} samples")
    place = (torch.from_numpy(share.cast(pl.Float64).to_numpy().copy()) * THIRDS - 0.5).clamp(0, THIRDS - 1)
    middles = torch.arange(THIRDS)
    return (1 - (place[:, None] - middles).abs()).clamp(min=0).float()
