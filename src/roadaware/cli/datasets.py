"""Datasets as the commands take them: found, read with progress, cut into samples."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.cli.options import ConfigName
    from roadaware.scenes.tables import Scenes

MADE_UP = "simulator"


def opened(dataset: str, path: Path, **options: Any) -> Scenes:
    """A dataset's tables: read from its files, or opened from a folder that `read -o` wrote.

    Made-up scenes stand for any dataset: what is asked of them then says whether they are fit for it.

    Args:
        dataset: name of a reader.
        path: the folder or zip of the release, or a saved folder.
        options: passed to the reader.

    Raises:
        UsageError: if there is no such reader.
        InputError: if it is not the dataset.
    """
    from roadaware.scenes.readers import read, reader_named
    from roadaware.scenes.store import open_scenes

    if is_saved(path):
        with console.working(f"opening {path}"):
            scenes = open_scenes(path)
        named = (*reader_named(dataset).datasets, *reader_named(MADE_UP).datasets)
        if scenes.meta.dataset not in named:
            found = scenes.meta.dataset or "no named set"
            raise InputError(
                f"expected tables of {' or '.join(named[:-1])}, found those of {found}",
                where=str(path),
                hint="name the dataset that was saved there, or point at the release",
            )
        return scenes
    dataset = MADE_UP if is_made_up(path) else dataset
    with console.progress(f"reading {dataset.upper()}") as progress, console.working(f"reading {path}"):
        return read(dataset, path, progress=progress, **options)


def is_saved(path: Path) -> bool:
    """Whether a folder holds tables that `read -o` wrote."""
    return (path / "meta.json").is_file()


def is_made_up(path: Path) -> bool:
    """Whether a folder holds scenes that `simulate` made up."""
    return (path / "simulation.json").is_file()


def sampled(
    dataset: str, path: Path, protocol: str, config: ConfigName, splits: tuple[str, ...] | None = None
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
    from roadaware.scenes.sampling import protocol_named, sample

    chosen = protocol_named(protocol, config)
    if splits is not None:
        chosen = replace(chosen, splits=splits)
    scenes = opened(dataset, path)
    with console.working("sampling"):
        return sample(scenes, chosen)


def data_folder(given: Path | None) -> Path:
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
