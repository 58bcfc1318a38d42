"""Datasets as the commands take them: found, read with progress, cut into samples."""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from roadaware.analysis.doctor import Extraction
from roadaware.datasets.loading import (
    MADE_UP,
    is_made_up,
    is_saved,
    open_dataset,
    parse_reader_options,
    sample_dataset,
)
from roadaware.errors import UsageError
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.sampling import PROTOCOLS, get_protocol, list_filled_splits, sample

if TYPE_CHECKING:
    from roadaware.cli.options import TaskName
    from roadaware.scenes.tables import Scenes

__all__ = [
    "MADE_UP",
    "OPTION",
    "DatasetKind",
    "build_extraction",
    "find_data_folder",
    "is_made_up",
    "is_saved",
    "open_dataset",
    "parse_reader_options",
    "sample_dataset",
]


def find_data_folder(given: Path | None) -> Path:
    """The folder that holds the datasets: the one given, else that of ROADAWARE_DATA_DIR.

    Raises:
        UsageError: if neither is there.
    """
    if given is not None:
        return given
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    if not stated:
        raise UsageError(
            "no data: say --data DIR, or set ROADAWARE_DATA_DIR to the folder that holds jaad/ and pie/"
        )
    return Path(stated)


OPTION = "OPTION=VALUE: an option of the reader, such as first_frame=0 or fps=25."

# What a dataset says the rows of somebody's samples file should be.

_DATASETS = ("jaad", "pie")


def build_extraction(stated: str, task: TaskName, rows: int) -> Extraction:
    """Names, counts and, of the split with as many rows, the rows themselves.

    Args:
        stated: DATASET=PATH.
        task: what was asked.
        rows: rows in the samples file.

    Raises:
        UsageError: if the dataset is unknown, or has no protocol for the task.
        InputError: if it cannot be read.
    """

    dataset, path = _parse_data_option(stated)
    scenes = open_dataset(dataset, path)
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
                names, truth = _rows(sampled, split)
                counts[f"{name} {config} {split}"] = len(names)
                if len(names) == rows and not found[0]:
                    found = (names, truth)
    if not counts:
        raise UsageError(f"there is no protocol for {task} on {dataset}")
    counts |= _count_published()
    return Extraction(dataset.upper(), tuple(scenes.tubes["name"].cast(str).to_list()), counts, *found)


def _count_published() -> dict[str, int]:
    """Samples of the test splits that were published, whichever dataset is at hand."""

    return {
        f"{dataset}-{task}@iv2024 {split} as published": sum(labels)
        for (dataset, task), splits in TABLE_I.items()
        for split, labels in splits.items()
        if split != "pedestrians"
    }


def _rows(sampled: Scenes, split: str) -> tuple[tuple[str, ...], tuple[int, ...]]:

    held = sampled.samples.filter(pl.col("split").cast(pl.String) == split)
    names = held.select("tube").join(
        sampled.tubes.select("tube", "name"), on="tube", how="left", maintain_order="left"
    )
    labels: Any = held["label"].to_list()
    return tuple(names["name"].cast(pl.String).to_list()), tuple(labels)


def _parse_data_option(stated: str) -> tuple[str, Path]:
    dataset, equals, path = stated.partition("=")
    if equals and path and dataset in _DATASETS:
        return dataset, Path(path)
    near = difflib.get_close_matches(dataset, _DATASETS, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]}={path}?" if near and equals else ""
    raise UsageError(f"--data needs DATASET=PATH, such as jaad=JAAD-JAAD_2.0.zip; got {stated!r}.{guess}")


DatasetKind = Literal["kitti", "nuscenes", "once", "simulator"]
