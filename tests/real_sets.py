"""Published annotations that several files of tests ask for, read once by each process."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from roadaware.datasets import read
from roadaware.scenes.tables import Scenes


@functools.cache
def jaad() -> Scenes:
    """JAAD below ROADAWARE_DATA_DIR; those who ask for it are skipped where that is unset."""
    return read("jaad", Path(os.environ["ROADAWARE_DATA_DIR"]) / "jaad", cache=False)
