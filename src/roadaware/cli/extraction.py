"""What a dataset says the rows of somebody's samples file should be."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import datasets
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.analysis.doctor import Extraction
    from roadaware.cli.options import TaskName
    from roadaware.scenes.tables import Scenes

_DATASETS = ("jaad", "pie")


def extraction_of(stated: str, task: TaskName, rows: int) -> Extraction:
    """Names, counts and, of the split with as many rows, the rows themselves.

    Args:
        stated: DATASET=PATH.
        task: what was asked.
        rows: rows in the samples file.

    Raises:
        UsageError: if the dataset is unknown, or has no protocol for the task.
        InputError: if it cannot be read.
    """
    from roadaware.analysis.doctor import Extraction
    from roadaware.scenes.sampling import PROTOCOLS, filled_splits, protocol_named, sample

    dataset, path = _parsed(stated)
    scenes = datasets.opened(dataset, path)
    counts: dict[str, int] = {}
    found: tuple[tuple[str, ...], tuple[int, ...]] = ((), ())
    for name in PROTOCOLS:
        chosen = protocol_named(name)
        if (chosen.dataset, chosen.task) != (dataset, task):
            continue
        for config in ("reference", "default"):
            asked = protocol_named(name, config)
            splits = filled_splits(scenes, asked)
            sampled = sample(scenes, replace(asked, splits=splits)) if splits else scenes
            for split in reversed(splits):
                names, truth = _rows(sampled, split)
                counts[f"{name} {config} {split}"] = len(names)
                if len(names) == rows and not found[0]:
                    found = (names, truth)
    if not counts:
        raise UsageError(f"there is no protocol for {task} on {dataset}")
    counts |= _published()
    return Extraction(dataset.upper(), tuple(scenes.tubes["name"].cast(str).to_list()), counts, *found)


def _published() -> dict[str, int]:
    """Samples of the test splits that were published, whichever dataset is at hand."""
    from roadaware.protocols.printed_iv2024 import TABLE_I

    return {
        f"{dataset}-{task}@iv2024 {split} as published": sum(labels)
        for (dataset, task), splits in TABLE_I.items()
        for split, labels in splits.items()
        if split != "pedestrians"
    }


def _rows(sampled: Scenes, split: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    import polars as pl

    held = sampled.samples.filter(pl.col("split").cast(pl.String) == split)
    names = held.select("tube").join(
        sampled.tubes.select("tube", "name"), on="tube", how="left", maintain_order="left"
    )
    labels: Any = held["label"].to_list()
    return tuple(names["name"].cast(pl.String).to_list()), tuple(labels)


def _parsed(stated: str) -> tuple[str, Path]:
    dataset, equals, path = stated.partition("=")
    if equals and path and dataset in _DATASETS:
        return dataset, Path(path)
    near = difflib.get_close_matches(dataset, _DATASETS, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]}={path}?" if near and equals else ""
    raise UsageError(f"--data needs DATASET=PATH, such as jaad=JAAD-JAAD_2.0.zip; got {stated!r}.{guess}")
