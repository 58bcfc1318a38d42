"""`roadaware read`: what is in a dataset, and what of it could not be taken."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import (
    COLUMNS,
    OPTION,
    DatasetPath,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
)
from roadaware.datasets import READERS
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.loading import (
    add_columns,
    open_dataset,
    open_saved_scenes,
    parse_reader_options,
    require_path,
)
from roadaware.errors import UsageError
from roadaware.reports import terminal
from roadaware.reports.dataset_text import describe_scenes, format_scenes, list_missing_facts
from roadaware.scenes.store import is_saved, save

_DATASET = f"Which dataset it is: {', '.join(READERS)}. May be left out: then it is known by its content."
_FOLDER = "Save the tables here, as Parquet files with a meta.json."
_OPTION = OPTION.replace(" or ", ", appearance=true (JAAD's appearance tags) or ")
_VERIFY = "Compare contents, not times and sizes, before the cache is believed."
_MEDIA = (
    "Folder with the videos of one's own annotations (AVA, VidVRD, HC-STVG, VGG-SS, YOLO ...): boxes and "
    "times become those of the videos; who has none is named and left out."
)
_STRICT = "Exit with 1 if a row or file was refused, or something odd was met."


def read(
    dataset: Annotated[str | None, Parameter(help=_DATASET)] = None,
    path: DatasetPath | None = None,
    /,
    *,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.TABLES] = None,
    overwrite: Overwrite = False,
    verify: Annotated[bool, Parameter(help=_VERIFY), Switch] = False,
    no_cache: Annotated[bool, Parameter(help="Neither use nor fill the cache."), Switch] = False,
    option: Annotated[tuple[str, ...], Parameter(help=_OPTION), Several] = (),
    columns: Annotated[tuple[str, ...], Parameter(help=COLUMNS), Several, Stated] = (),
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
) -> Outcome:
    """Read a dataset and say what is inside: videos, boxes, pedestrians, splits, and every refused row.

    Needs the unpacked repository of the dataset or its zip, as the authors give it. The result is cached,
    so that the second time takes a fraction of a second.

    For example:

        roadaware read jaad JAAD-JAAD_2.0.zip

        roadaware read jaad JAAD -o jaad-tables --strict

        roadaware read ava mine.csv --media videos -o mine

        roadaware read my-folder --option fps=25

        roadaware read tracks.csv --columns frame=f id=who left=x top=y width=w height=h
    """
    if dataset is None:
        raise UsageError("say what is to be read, such as roadaware read JAAD, or roadaware read jaad JAAD")
    if path is None:
        dataset, path = _detect(dataset)
    options: dict[str, Any] = {"cache": not no_cache, "verify": verify}
    if (option or columns) and not is_saved(path):
        reading = add_columns(dataset, parse_reader_options(dataset, option), columns)
        # What others than switches name may lie outside of what the cache watches.
        switches = all(isinstance(value, bool) for value in reading.values())
        options |= {**reading, "cache": not no_cache and switches}
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
    for note in list_missing_facts(dataset, scenes):
        console.print_note(note)
    data = describe_scenes(scenes, elapsed_s)
    refused, odd = len(scenes.rejected), len(data["notes"].get("warnings", []))
    failed = f"--strict: {refused} rows or files were refused, {odd} kinds of oddities were met"
    return Outcome(format_scenes(data), data, failed if strict and refused + odd else None)


def _detect(given: str) -> tuple[str, Path]:
    """The reader of what lies at a path, and the path.

    Raises:
        UsageError: if it is the name of a reader, whose path is missing.
        InputError: if nothing is there, or nothing that we read.
    """
    path = Path(given)
    if given in READERS and not path.exists():
        raise UsageError(f"{given} is a dataset; say where it lies too, such as roadaware read {given} PATH")
    require_path(path)
    if is_saved(path):
        named = open_saved_scenes(path).meta.dataset
        found = next((name for name, reader in READERS.items() if named in reader.datasets), "")
        if not found:
            raise UsageError(
                f"{path} holds saved tables of {named or 'no named set'}; say which dataset they are of"
            )
        return found, path
    found = detect_dataset_format(path)
    console.print_note(
        f"taken for {READERS[found].title}; another one is named before the path: "
        f"roadaware read NAME {terminal.format_word(path)}"
    )
    return found, path
