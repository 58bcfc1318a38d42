"""Samples: the scenes, protocols and folds that a predictor's recipe names, and limits of what they show; imports torch."""

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
from roadaware.scenes.sampling import EventProtocol, get_protocol, sample
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_scenes
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.facts import compute_unknown_fractions, refuse_unknown
from roadaware.tasks.crossing_inputs.footage import Media
from roadaware.tasks.pedestrians import build_examples, build_targets
from roadaware.training.pedestrians.heads import Fold, get_horizon, get_task_weights
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

    Raises:
        UsageError: if the protocol is unknown, cannot have such fields, or asks for another task.
        InputError: if the annotations cannot be read, or hold no boxes.
    """
    protocol = get_protocol(samples.protocol, samples.config)
    if samples.fields:
        protocol = replace_fields(protocol, samples.fields, "samples.fields")
    if protocol.task != task:
        raise UsageError(f"{samples.protocol} asks for {protocol.task}, and the recipe for {task}")
    root = Path(samples.root)
    scenes = open_scenes(root) if samples.reader == "saved" else read(samples.reader, root, **samples.options)
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
    """Paths of videos, masks and poses; annotations in an archive have none beside them."""
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


# Limits of what samples show: the smallest boxes and the strongest camera shake.

_SMALLEST = 0.01
"""Share of the boxes that may be smaller than the limit: a few are wrong, or cut off."""
_SHAKIEST = 0.999
"""Quantile of the shake: most frames are steady, and a predictor learnt from nearly all of the others too."""
_TOGETHER = 3
"""Pedestrians whose median says how the image moved; of fewer, their own steps decide."""
_SPAN_FRAMES = 15


def measure_limits(scenes: Scenes) -> dict[str, float]:
    """The limits of samples, as `online.camera_motion` reads them; those that cannot be measured are left out.

    `height`: the 1st percentile of the heights of observed boxes, as a share of the image's. `shake`: how
    much the median step of three pedestrians and more changes from frame to frame, root mean square over 15
    frames, in heights of the image in 1/30 s; of it the 99.9th percentile.

    Args:
        scenes: with samples, boxes, and sizes of the videos.
    """
    videos, video = scenes.videos, pl.col("video").cast(pl.String)
    if not {"height_px"} <= set(videos.columns) or scenes.boxes.is_empty():
        return {}
    fps = pl.col("fps") if "fps" in videos.columns else pl.lit(None, pl.Float64)
    sizes = videos.select(video, high=pl.col("height_px"), rate=fps.fill_null(30.0))
    boxes = scenes.boxes.select(video, "frame", "tube", *CORNERS).join(sizes, on="video").drop_nulls("high")
    spans = scenes.samples.group_by("tube").agg(pl.col("start_frame").min(), pl.col("end_frame").max())
    seen = pl.col("frame").is_between("start_frame", "end_frame", closed="left")
    observed = boxes.join(spans, on="tube").filter(seen)
    found = {}
    heights = (observed["y2_px"] - observed["y1_px"]) / observed["high"]
    if len(heights):
        found["height"] = round(float(heights.quantile(_SMALLEST) or 0.0), 4)
    # See `measure_limits`; None where three pedestrians are nowhere together for long enough.
    step = [
        (((pl.col(a) + pl.col(b)) / 2 / pl.col("high")).diff().over("tube") * pl.col("rate") / 30).alias(name)
        for name, a, b in (("dx", "x1_px", "x2_px"), ("dy", "y1_px", "y2_px"))
    ]
    # Only steps from one frame to the next: over a gap people move farther than the camera shakes.
    near = pl.col("frame").diff()
    steps = (
        boxes.sort("tube", "frame").with_columns(*step, past=near.over("tube")).filter(pl.col("past") == 1)
    )
    common = (
        steps.group_by("video", "frame")
        .agg(pl.col("dx").median(), pl.col("dy").median(), n=pl.len())
        .filter(pl.col("n") >= _TOGETHER)
        .sort("video", "frame")
    )
    changes = common.with_columns(
        square=sum(pl.col(name).diff().over("video") ** 2 for name in ("dx", "dy")),
        past=near.over("video"),
    ).filter(pl.col("past") == 1)
    shakes = changes.select(pl.col("square").rolling_mean(_SPAN_FRAMES).over("video").sqrt()).to_series()
    shakes = shakes.drop_nulls().drop_nans()
    shake = round((float(shakes.quantile(_SHAKIEST) or 0.0) if len(shakes) else None) or 0.0, 4)
    if shake:
        found["shake"] = shake
    return found
