"""Cache folders of the library."""

from __future__ import annotations

import os
from pathlib import Path


def get_cache_folder() -> Path:
    """The cache folder: ROADAWARE_HOME, else $XDG_CACHE_HOME/roadaware, else ~/.cache/roadaware.

    Raises:
        RuntimeError: if there is no home folder either.
    """
    own = os.environ.get("ROADAWARE_HOME")
    if own:
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "roadaware"
