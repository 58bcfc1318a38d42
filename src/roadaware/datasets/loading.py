"""The tables of a dataset, wherever they lie: a release, a folder that `read -o` saved, synthetic scenes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.config import ConfigName, parse_assignments
from roadaware.datasets import get_reader, read
from roadaware.datasets.simulator import is_simulation
from roadaware.datasets.tracker_csv import parse_columns
from roadaware.errors import InputError, UsageError
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.store import is_saved, open_predictions, open_scenes
from roadaware.steps import log_step, show_progress

if TYPE_CHECKING:
    from roadaware.scenes.tables import Predictions, Scenes

SYNTHETIC = "simulator"
"""The reader of synthetic scenes."""
_PATHS = ("labels", "excluded")


def require_path(path: Path, hint: str = "Check the path.") -> None:
    """Refuse a path at which there is nothing.

    Raises:
        InputError: with the hint.
    """
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint=hint)


def open_saved_scenes(path: Path) -> Scenes:
    """The scenes of a saved folder, as a step."""
    with log_step(f"opening {path}"):
        return open_scenes(path)


def open_saved_predictions(path: Path) -> Predictions:
    """The predictions of a saved folder, as a step."""
    with log_step(f"opening {path}"):
        return open_predictions(path)


def read_release(reader: str, path: Path, *, named: str = "", **options: Any) -> Scenes:
    """A dataset read from its files, as a step with progress.

    Args:
        reader: its name.
        path: the folder, file or zip.
        named: what progress calls the dataset; the reader's name where empty.
        options: passed to the reader.
    """
    with show_progress(f"reading {named or reader}") as progress, log_step(f"reading {path}"):
        return read(reader, path, progress=progress, **options)


def open_dataset(dataset: str, path: Path, **options: Any) -> Scenes:
    """A dataset's tables: read from its files, or opened from a folder that `read -o` wrote.

    Synthetic scenes stand for any dataset: what is asked of them then says whether they are fit for it.

    Args:
        dataset: name of a reader.
        path: the folder or zip of the release, or a saved folder.
        options: passed to the reader.

    Raises:
        UsageError: if there is no such reader.
        InputError: if it is not the dataset.
    """
    if is_saved(path):
        scenes = open_saved_scenes(path)
        named = (*get_reader(dataset).datasets, *get_reader(SYNTHETIC).datasets)
        # Tables that were made in Python have no name, and are what they are called.
        if scenes.meta.dataset and scenes.meta.dataset not in named:
            raise InputError(
                f"expected tables of {' or '.join(named[:-1])}, found those of {scenes.meta.dataset}",
                where=str(path),
                hint="name the dataset that was saved there, or point at the release",
            )
        return scenes
    dataset = SYNTHETIC if is_simulation(path) else dataset
    return read_release(dataset, path, named=dataset.upper(), **options)


def sample_dataset(
    dataset: str,
    path: Path,
    protocol: str,
    config: ConfigName,
    splits: tuple[str, ...] | None = None,
) -> Scenes:
    """A dataset cut into samples by a protocol.

    Args:
        dataset: jaad or pie.
        path: where it lies.
        protocol: its name.
        config: the published sampling, or the one we recommend.
        splits: those that are needed; all of the protocol where None.

    Raises:
        InputError, UsageError: if the dataset cannot be read, a split is empty, or the protocol is unknown.
    """
    chosen = get_protocol(protocol, config)
    if splits is not None:
        chosen = replace(chosen, splits=splits)
    scenes = open_dataset(dataset, path)
    with log_step("sampling"):
        return sample(scenes, chosen)


def parse_reader_options(reader: str, texts: Sequence[str]) -> dict[str, Any]:
    """Option to its value, as a reader takes it: JSON, or the bare word.

    Args:
        reader: its name.
        texts: OPTION=VALUE each.

    Raises:
        UsageError: if something is not OPTION=VALUE, or the reader has no such option.
    """
    words = {"flag": "--option", "kind": "option", "example": "first_frame=0", "listing": "it has"}
    given = parse_assignments(texts, [*get_reader(reader).options], owner=f"the reader of {reader}", **words)
    return {name: Path(value) if name in _PATHS else parse_json_or_word(value) for name, value in given}


def add_columns(reader: str, options: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Options of a reader with the columns that were named for a csv.

    Args:
        reader: its name.
        options: of the reader.
        columns: pairs such as `frame=image`; none leaves the options as they are.

    Raises:
        UsageError: if the reader reads no csv whose columns can be named, or something is no such pair.
    """
    if not columns:
        return options
    if "columns" not in get_reader(reader).options:
        raise UsageError(f"--columns are those of a csv; {reader} has columns of its own")
    return {**options, "columns": parse_columns(columns)}


def parse_json_or_word(text: str) -> Any:
    """A value of an option: what it says as JSON, such as 4, true or null, else the word itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
