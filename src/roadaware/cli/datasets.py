"""Datasets as the commands take them: found, read with progress, cut into samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from roadaware.datasets.loading import (
    MADE_UP,
    is_made_up,
    is_saved,
    open_dataset,
    parse_reader_options,
    sample_dataset,
)
from roadaware.errors import UsageError

__all__ = [
    "MADE_UP",
    "OPTION",
    "DatasetKind",
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

DatasetKind = Literal["kitti", "nuscenes", "once", "simulator"]
