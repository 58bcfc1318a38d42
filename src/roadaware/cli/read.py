"""`roadaware read`: what is in a dataset, and what of it could not be taken."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import (
    OPTION,
    USUAL,
    Common,
    DatasetPath,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
)
from roadaware.datasets import READERS
from roadaware.datasets.loading import open_dataset, parse_reader_options
from roadaware.reports.dataset_text import describe_scenes, format_scenes
from roadaware.scenes.store import is_saved, save

_DATASET = f"Which dataset it is: {', '.join(READERS)}."
_FOLDER = "Save the tables here, as Parquet files with a meta.json."
_VERIFY = "Compare contents, not times and sizes, before the cache is believed."
_MEDIA = (
    "Folder with the videos of one's own annotations (AVA, VidVRD, HC-STVG, VGG-SS): boxes and times become those of the "
    "videos; who has none is named and left out."
)
_STRICT = "Exit with 1 if a row or file was refused, or something odd was met."


def read(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    path: DatasetPath,
    /,
    *,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.TABLES] = None,
    overwrite: Overwrite = False,
    verify: Annotated[bool, Parameter(help=_VERIFY), Switch] = False,
    cache: Annotated[bool, Parameter(help="Use and fill the cache.", negative="--no-cache")] = True,
    appearance: Annotated[bool, Parameter(help="Read the appearance tags too (JAAD)."), Switch] = False,
    option: Annotated[tuple[str, ...], Parameter(help=OPTION), Several] = (),
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Read a dataset and say what is inside: videos, boxes, pedestrians, splits, and every refused row.

    Needs the unpacked repository of the dataset or its zip, as the authors give it. The result is cached,
    so that the second time takes a fraction of a second.

    For example:

        roadaware read jaad JAAD-JAAD_2.0.zip

        roadaware read jaad JAAD -o jaad-tables --strict

        roadaware read ava mine.csv --media videos -o mine
    """
    options: dict[str, Any] = {"cache": cache, "verify": verify}
    if option and not is_saved(path):
        options |= {**parse_reader_options(dataset, option), "cache": False}
    if appearance:
        options["appearance"] = True
    started_s = time.monotonic()
    scenes = open_dataset(dataset, path, **options)
    if media is not None:
        from roadaware.datasets.own_films import attach_films

        with console.log_step(f"looking for films in {media}"):
            scenes = attach_films(scenes, media)
    elapsed_s = time.monotonic() - started_s
    if folder is not None:
        save(scenes, folder, overwrite=overwrite)
        console.print_note(f"wrote {folder}")
    data = describe_scenes(scenes, elapsed_s)
    refused, odd = len(scenes.rejected), len(data["notes"].get("warnings", []))
    failed = f"--strict: {refused} rows or files were refused, {odd} kinds of oddities were met"
    return Outcome(format_scenes(data), data, failed if strict and refused + odd else None)
