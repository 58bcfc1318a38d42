"""Whether a video is one that `roadaware simulate` rendered: it says so itself, or the tables beside it do."""

from __future__ import annotations

import json
from pathlib import Path

from roadaware.errors import InputError
from roadaware.io.files import read_regular
from roadaware.io.video import open_container

MARK = "synthetic scene, rendered by roadaware simulate"
"""Stands in the videos as their comment."""
_COMMENT = "comment"
_TABLES = Path("tables") / "meta.json"
"""Beside a video; those of earlier versions have no mark of their own."""
_DATASET = "simulator"
# The file beside a video may be anybody's.
_LIMIT = 1 << 24


def is_synthetic_film(path: Path | str | None) -> bool:
    """Whether a source of frames is a video of the simulator; anything else is taken to be real.

    Args:
        path: of a file, or a folder of images; None for a camera.
    """
    if path is None:
        return False
    return _is_marked(Path(path)) or _lies_beside_tables(Path(path))


def _is_marked(path: Path) -> bool:
    try:
        with open_container(path) as file:
            return bool(dict(file.metadata).get(_COMMENT) == MARK)
    except InputError:
        return False


def _lies_beside_tables(path: Path) -> bool:
    try:
        meta = json.loads(read_regular(path.parent / _TABLES, limit=_LIMIT))["meta"]
        return bool(meta["dataset"] == _DATASET)
    except (InputError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
