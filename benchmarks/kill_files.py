"""What commands left behind: whether it is whole, and its content without what the clock says."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load_file

from roadaware.scenes.decoders import FILMS, STILLS, open_film, open_picture

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
    ".parquet": pl.read_parquet,
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
    """The digest of each file without what the clock says; the files of the clock are left out.

    These are `timing.*` and the folder `tensorboard`; in the folder of a watch also `ready_s` of events and
    boxes, and what `summary.json` says of its speed.
    """
    found = {}
    for path in files_in(folder):
        name = str(path.relative_to(folder))
        if path.name.startswith("timing.") or "tensorboard" in path.relative_to(folder).parts:
            continue
        data, place = path.read_bytes(), re.sub(r"-[0-9a-f]{16}\.parquet$", ".parquet", name)
        if path.name in _WITHOUT_CLOCK:
            data = _WITHOUT_CLOCK[path.name](data)
        elif place.endswith("boxes.parquet") or place.endswith("predictions/meta.json"):
            data, name = _timeless(place, data), place
        found[name] = hashlib.blake2b(data, digest_size=16).hexdigest()
    return found


def _timeless(place: str, data: bytes) -> bytes:
    """A table without `ready_s`, or the list of tables without the entry of one that had it."""
    if place.endswith(".json"):
        told = json.loads(data)
        for name in ("boxes", "blake2b"):
            (told["tables"] if name == "boxes" else told).pop(name, None)
        return json.dumps(told).encode()
    table = pl.read_parquet(io.BytesIO(data))
    if "ready_s" not in table.columns:
        return data
    stream = io.BytesIO()
    table.drop("ready_s").write_parquet(stream)
    return stream.getvalue()


def _events(data: bytes) -> bytes:
    return b"\n".join(
        json.dumps({key: value for key, value in json.loads(line).items() if key != "ready_s"}).encode()
        for line in data.splitlines()
    )


def _summary(data: bytes) -> bytes:
    told = json.loads(data)
    for name in ("watched_s", "fps", "latency_ms"):
        told.pop(name)
    for name in ("ms_per_frame", "ms_per_pedestrian_frame", "warm_up_s"):
        told.get("crossing", {}).pop(name, None)
    return json.dumps(told).encode()


_WITHOUT_CLOCK = {"events.jsonl": _events, "summary.json": _summary}
