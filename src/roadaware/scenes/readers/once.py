"""ONCE: a million scenes with seven cameras and a LiDAR of 40 beams, some of them with boxes.

Mao et al., "One million scenes for autonomous driving: ONCE dataset", NeurIPS 2021 datasets and benchmarks;
once-for-auto-driving.github.io; CC BY-NC-SA 4.0.

Takes the folder that holds `data/`, or a zip: `data/<sequence>/<sequence>.json` with calibration and frames,
and `ImageSets/*.txt` with the splits. Pictures (`cam01/` to `cam09/`) and sweeps (`lidar_roof/`) lie beside
the JSON and are opened when they are asked for. Every camera of a sequence is a video. The vehicle's frame is
that of the LiDAR with x ahead and y to the left; the LiDAR's own x points to the left, and y back.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import decode, no_collection, parse
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.once_files import CLASSES, OWN, take_sequence
from roadaware.scenes.readers.pictures import picture_size
from roadaware.scenes.readers.sensed import KIND, Sensed
from roadaware.scenes.readers.source import Source
from roadaware.scenes.tables import Meta, Scenes

VERSION = 2
LICENCE = "CC BY-NC-SA 4.0"
_DATA, _SETS = "data", "ImageSets"
_WANTED = "ONCE needs its annotations, 'data/<sequence>/<sequence>.json',"
_HINT = "Point at the folder that holds 'data/' and 'ImageSets/'."
_SEQUENCE = re.compile(r"\d{6}", re.ASCII)
_LARGEST = 1 << 29


def find(path: Path) -> Source:
    """The set at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = locate(path, lambda found: bool(_sequences(found)), _WANTED, _HINT)
    source.most_bytes = _LARGEST
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [*map(_file, _sequences(source)), *source.files(_SETS, ".txt")]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All sequences as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        source: see `find`.
        processes: not used: one process reads all.
        progress: told how many sequences are done, of how many.

    Raises:
        InputError: if no sequence can be read.
    """
    findings = Findings()
    sensed = Sensed(findings, OWN, dict.fromkeys(("weather", "period"), pl.String))
    splits = _splits(source, findings)
    size = partial(picture_size, source, findings=findings)
    names = {_file(name): name for name in _sequences(source)}

    def take(file: str, _: Findings) -> None:
        where = source.where(file)
        text = decode(source.read(file), where)
        with no_collection():
            content = parse(text, where)
        take_sequence(content, names[file], file, where, sensed, size)

    errors = take_each(list(names), take, findings, progress, "sequences")
    if len(errors) == len(names):
        raise errors[0]
    for row in sensed.videos:
        row["splits"] = splits.get(row["scene"], [])
    tables = sensed.tables(CLASSES)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="ONCE",
            licence=LICENCE,
            vocabularies={KIND: CLASSES},
            source_digest=source.contents(inputs(source)),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _sequences(source: Source) -> list[str]:
    """Folders of sequences with their JSON, a folder or device in its place too."""
    if not source.has_folder(_DATA):
        return []
    names = [name for name in source.entries(_DATA)[1] if _SEQUENCE.fullmatch(name)]
    return [name for name in names if _file(name) in source.files(f"{_DATA}/{name}", ".json")]


def _file(name: str) -> str:
    return f"{_DATA}/{name}/{name}.json"


def _splits(source: Source, findings: Findings) -> dict[str, list[str]]:
    """Sequence to the names of its splits."""
    found: dict[str, list[str]] = {}
    for file in source.files(_SETS, ".txt"):
        try:
            words = source.read(file).decode("ascii").split()
        except (InputError, UnicodeDecodeError) as error:
            said = error if isinstance(error, InputError) else InputError("is no plain text")
            findings.reject_file(file, said)
            continue
        findings.read["files"] += 1
        split = f"default/{file.rpartition('/')[2].removesuffix('.txt').removesuffix('_set')}"
        for word in words:
            found.setdefault(word, []).append(split)
    return found
