"""nuScenes: drives with six cameras and a LiDAR, from its JSON tables or from keyframes in a file each.

Caesar et al., "nuScenes: a multimodal dataset for autonomous driving", CVPR 2020; nuscenes.org;
CC BY-NC-SA 4.0.

Takes the folder that holds `v1.0-mini/` or another version's tables, or a zip of it; or a folder of
keyframes, JSON with `images`, `lidar_points` and `cam_instances`, or one of these. Every camera of a scene is
a video whose frames are the keyframes. Pictures and sweeps are opened when they are asked for.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import decode, no_collection, parse
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.nuscenes_keyframes import looks_like_one, take_keyframe, without_unknown_speeds
from roadaware.scenes.readers.nuscenes_tables import OWN, TABLES, take_version
from roadaware.scenes.readers.pictures import picture_size
from roadaware.scenes.readers.sensed import KIND, Sensed
from roadaware.scenes.readers.source import FileSource, Source
from roadaware.scenes.tables import Meta, Scenes

VERSION = 2
LICENCE = "CC BY-NC-SA 4.0"
_WANTED = "nuScenes needs its annotations, tables in 'v1.0-mini/' or another version, or keyframes (JSON),"
_HINT = "Point at the folder that holds 'v1.0-mini/', or at keyframes."
_HEAD, _LARGEST = 1 << 16, 1 << 31


def find(path: Path) -> Source:
    """The set at `path`: a folder with tables or keyframes, one inside it, its zip, or one keyframe.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = locate(
        path, lambda found: bool(_versions(found) or _keyframes(found)), _WANTED, _HINT, suffix=".json"
    )
    # The tables of all drives are files of more than a gigabyte.
    source.most_bytes = _LARGEST
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    tables = [f"{version}/{name}.json" for version in _versions(source) for name in TABLES]
    return tables or _keyframes(source)


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All keyframes as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A damaged keyframe is refused, the others are read; a damaged table is an error.

    Args:
        source: see `find`.
        processes: not used: one process reads all.
        progress: told how many scenes or keyframes are done, of how many.

    Raises:
        InputError: if a table is damaged or points nowhere, or no keyframe can be read.
    """
    sensed = Sensed(Findings(), OWN)
    versions = _versions(source)
    for version in versions:
        take_version(source, version, sensed, progress)
    if not versions:
        _take_keyframes(source, sensed, progress)
    labels = tuple(dict.fromkeys(row["label"] for row in sensed.boxes))
    tables = sensed.tables(labels)
    return Scenes(
        **tables,
        rejected=sensed.findings.table(),
        meta=Meta(
            dataset="nuScenes",
            licence=LICENCE,
            vocabularies={KIND: labels},
            source_digest=source.contents(inputs(source)),
            rows_read=dict(sorted(sensed.findings.read.items())),
            notes=sensed.findings.notes(),
        ),
    )


def _versions(source: Source) -> list[str]:
    """Folders of tables."""
    if isinstance(source, FileSource):
        return []
    return [name for name in source.entries()[1] if f"{name}/sample_data.json" in source.files(name, ".json")]


def _keyframes(source: Source) -> list[str]:
    """Files that hold a keyframe each; a file that was named counts whatever it holds."""
    if isinstance(source, FileSource):
        return [source.name]
    names = source.files("", ".json")
    heads = (source.head(name, _HEAD) for name in names)
    # Of what cannot be read the reason is told when it is read.
    return names if any(not head or looks_like_one(head) for head in heads) else []


def _take_keyframes(source: Source, sensed: Sensed, progress: Progress | None) -> None:
    """Add all keyframes; one that cannot be read is told.

    Raises:
        InputError: if none can.
    """

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        text = without_unknown_speeds(decode(source.read(name), where))
        with no_collection():
            take_keyframe(parse(text, where), name, where, sensed, size)

    size = partial(picture_size, source, findings=sensed.findings)
    names = _keyframes(source)
    errors = take_each(names, take, sensed.findings, progress, "keyframes")
    if len(errors) == len(names):
        raise errors[0]
