"""What commands left behind: whether it is whole, and the content of all but the files of the clock."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from roadaware.io.decoders import FILMS, STILLS, open_film, open_picture
from roadaware.io.parquet import read_parquet

TEMPORARY = re.compile(r"\.roadaware-.*\.tmp|\..+\.unfinished-\d+|.*\.replaced-\d+-[0-9a-f]+")
"""Names of what is being written and does not stand yet."""


def files_in(folder: Path) -> Iterator[Path]:
    """All files of a folder, in order, but for temporary ones and what lies in temporary folders."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(TEMPORARY.fullmatch(part) for part in path.relative_to(folder).parts):
            yield path


def temporary_in(folder: Path) -> list[str]:
    """Names of temporary files and folders."""
    return sorted(
        str(each.relative_to(folder)) for each in folder.rglob("*") if TEMPORARY.fullmatch(each.name)
    )


def refuse_broken(folder: Path) -> None:
    """Open every file of a folder.

    Raises:
        AssertionError: if one that stands under its own name is not whole.
    """
    for path in files_in(folder):
        opened = _OPENED.get(path.suffix)
        if opened is not None:
            try:
                opened(path)
            except Exception as error:
                raise AssertionError(f"{path} is not whole: {type(error).__name__}: {error}") from error


def _lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or text.endswith("\n"), "its last line is cut off"
    for line in text.splitlines():
        json.loads(line)


def _film(path: Path) -> None:
    with open_film(path, FILMS) as film:
        assert sum(1 for _ in film.decode(video=0)) > 0


def _page(path: Path) -> None:
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def _picture(path: Path) -> None:
    with open_picture(path.read_bytes(), STILLS) as (picture, _):
        picture.load()


def _archive(path: Path) -> None:
    with np.load(path, allow_pickle=False) as held:
        for name in held.files:
            held[name]


_OPENED: dict[str, Callable[[Path], Any]] = {
    ".json": lambda path: json.loads(path.read_bytes()),
    ".jsonl": _lines,
    ".parquet": read_parquet,
    ".safetensors": load_file,
    ".npz": _archive,
    ".ckpt": _zip,
    ".zip": _zip,
    ".mp4": _film,
    ".html": _page,
    ".jpg": _picture,
    ".png": _picture,
}


def contents(folder: Path) -> dict[str, str]:
    """The digest of each file but those of the clock, which are `timing.*` and the folder `tensorboard`."""
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
        for path in files_in(folder)
        if not path.name.startswith("timing.") and "tensorboard" not in path.relative_to(folder).parts
    }
