"""Why is it 0? Checks that turn the usual mistakes in scores, samples and data into words and remedies, all of one kind
of data together, in the order in which causes hide each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from roadaware.analysis.doctor import data, samples
from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.sampling import PROTOCOLS, get_protocol, list_filled_splits, sample
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True)
class Extraction:
    """The rows expected by the dataset.

    Args:
        dataset: its name.
        pedestrians: all of its pedestrians.
        counts: protocol and split to the number of samples.
        rows: pedestrian of each row of the split with as many rows as the file, or empty.
        truth: class of each of these rows.
    """

    dataset: str
    pedestrians: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    truth: tuple[int, ...] = ()


def extract_samples(scenes: Scenes, dataset: str, task: str, rows: int) -> Extraction:
    """What a dataset says the rows of somebody's file of samples should be.

    Args:
        scenes: the dataset, whole.
        dataset: jaad or pie.
        task: action, intention or risk.
        rows: in the file of samples; the split with as many is given whole.

    Raises:
        UsageError: if the dataset has no protocol for the task.
    """
    counts: dict[str, int] = {}
    found: tuple[tuple[str, ...], tuple[int, ...]] = ((), ())
    for name in PROTOCOLS:
        chosen = get_protocol(name)
        if (chosen.dataset, chosen.task) != (dataset, task):
            continue
        for config in ("reference", "default"):
            asked = get_protocol(name, config)
            splits = list_filled_splits(scenes, asked)
            sampled = sample(scenes, replace(asked, splits=splits)) if splits else scenes
            for split in reversed(splits):
                held = sampled.samples.filter(pl.col("split").cast(pl.String) == split)
                counts[f"{name} {config} {split}"] = len(held)
                if len(held) == rows and not found[0]:
                    tubes = sampled.tubes.select("tube", "name")
                    named = held.select("tube").join(tubes, on="tube", how="left", maintain_order="left")
                    found = (tuple(named["name"].cast(pl.String)), tuple(held["label"]))
    if not counts:
        raise UsageError(f"there is no protocol for {task} on {dataset}")
    # Samples of the test splits that were published, whichever dataset is at hand.
    counts |= {
        f"{published}-{asked_for}@iv2024 {split} as published": sum(labels)
        for (published, asked_for), splits_printed in TABLE_I.items()
        for split, labels in splits_printed.items()
        if split != "pedestrians"
    }
    return Extraction(dataset.upper(), tuple(scenes.tubes["name"].cast(pl.String)), counts, *found)


def check_pedestrian_scores(
    values: Floats,
    truth: Floats,
    tte_frames: Floats,
    pedestrian: tuple[str, ...],
    task: str,
    extraction: Extraction | None = None,
) -> list[Diagnosis]:
    """Check a file of pedestrian scores for mistakes that make its metrics meaningless.

    Args:
        values: (n, k) scores as read.
        truth: (m,) classes as written.
        tte_frames: (m,) times to event as written.
        pedestrian: (m,) names.
        task: action, intention or risk.
        extraction: the dataset's own samples, if at hand.
    """
    names = np.asarray(pedestrian, dtype=np.str_)
    found = (
        samples.check_column_count(values, task)
        + samples.score_scale(values)
        + samples.check_constant_scores(values)
    )
    found += samples.check_class_base(truth, task, values.shape[1])
    found += samples.check_time_unit(tte_frames) + samples.check_frame_rate(tte_frames, names, task)
    order = samples.check_row_order(names, tte_frames)
    found += order
    if extraction is not None:
        found += _against(extraction, truth, pedestrian)
    if len(values) != len(truth):
        counts = extraction.counts if extraction is not None else {}
        return found + samples.check_split_size(len(values), len(truth), counts, "the scores")
    found += samples.check_repeated_rows(values, names, tte_frames)
    codes = {item.code for item in found}
    if not codes & {"column_count", "truth_base", "truth_classes", "truth_not_classes", "constant"}:
        found += samples.check_class_order(values, truth.astype(np.int64))
    if not order and "constant" not in codes:
        found += samples.check_row_alignment(values, names)
    return found


_LISTED = ("jaad", "pie")
"""The sets whose releases put every video into train, val or test."""


def check_scene_folder(scenes: Scenes) -> list[Diagnosis]:
    """Why a folder of annotations may give empty or meaningless results."""
    rows = {name: len(frame) for name, frame in scenes.filled().items() if name != "rejected"}
    found = data.check_table_sizes(rows, len(scenes.rejected), sum(scenes.meta.rows_read.values()))
    if scenes.boxes.is_empty():
        return found
    # `video`, `n_frames`, `width_px` and `height_px`, null where a set lacks them
    spans = (
        scenes.boxes.group_by("video")
        .agg(
            pl.col("frame").min().alias("first"),
            pl.col("frame").max().alias("last"),
            pl.col("x2_px").max(),
            pl.col("y2_px").max(),
        )
        .join(
            scenes.videos.select(
                "video",
                *(
                    pl.col(name) if name in scenes.videos.columns else pl.lit(None, pl.Int64).alias(name)
                    for name in ("n_frames", "width_px", "height_px")
                ),
            ),
            on="video",
        )
    )
    timed = spans.drop_nulls("n_frames")
    if len(timed):
        first, last, n_frames = (timed[name].to_numpy() for name in ("first", "last", "n_frames"))
        found += data.check_frame_base(first, last, n_frames)
    spans = spans.drop_nulls(["width_px", "height_px"])
    for (width, height), part in spans.group_by("width_px", "height_px", maintain_order=True):
        videos = part["video"].implode()
        boxes = scenes.boxes.filter(pl.col("video").is_in(videos))
        right, low = (boxes[name].to_numpy().astype(np.float64) for name in ("x2_px", "y2_px"))
        found += data.check_box_scale(right, low, int(str(width)), int(str(height)))
    # Other sets need no list of train, validation and test.
    listed = scenes.meta.dataset.lower() in _LISTED
    return found + (data.split_sizes(_split_sizes(scenes)) if listed else [])


def _against(extraction: Extraction, truth: Floats, pedestrian: tuple[str, ...]) -> list[Diagnosis]:
    # `video/name` is how our own tables name a pedestrian.
    pedestrian = tuple(name.rpartition("/")[2] for name in pedestrian)
    strangers = samples.check_unknown_names(pedestrian, extraction.pedestrians, extraction.dataset)
    if strangers:
        return strangers
    if not extraction.rows:
        return samples.check_split_size(len(truth), None, extraction.counts, "the samples")
    found = samples.check_same_order(pedestrian, extraction.rows)
    return found or samples.check_flipped_truth(truth, np.asarray(extraction.truth, dtype=np.float64))


def _split_sizes(scenes: Scenes) -> dict[str, int]:
    """Videos of each split that has some, and 0 for those of train, val and test that a subset lacks."""
    if "splits" not in scenes.videos.columns:
        return {}
    counts = scenes.videos.select(pl.col("splits").explode()).drop_nulls()["splits"].value_counts(sort=True)
    sizes = {str(name): int(count) for name, count in counts.iter_rows()}
    usual = [f"{name.partition('/')[0]}/{split}" for name in sizes for split in ("train", "val", "test")]
    return {**sizes, **{name: 0 for name in usual if name not in sizes}}


__all__ = ["Diagnosis", "Extraction", "check_pedestrian_scores", "check_scene_folder", "extract_samples"]
