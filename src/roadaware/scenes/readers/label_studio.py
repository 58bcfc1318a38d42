"""Annotations made with Label Studio: its JSON exports of video, picture and audio tasks.

Tkachenko, Malyuk, Holmanyuk and Liubimov, "Label Studio: data labeling software", 2020 to 2022,
github.com/HumanSignal/label-studio, whose exports carry no licence of their own: it is the owner's.

Takes a JSON file, or all that lie in a folder or zip. Videos and pictures are not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roadaware.errors import UsageError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import none_read, take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import decode, no_collection, parse
from roadaware.scenes.readers.label_studio_rows import Clip
from roadaware.scenes.readers.label_studio_shapes import MOST_PIXELS
from roadaware.scenes.readers.label_studio_tables import clips_of, tables_of
from roadaware.scenes.readers.label_studio_tasks import Task, Which, tasks_of
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import FileSource, Source
from roadaware.scenes.tables import Meta, Scenes

VERSION = 2
LICENCE = "that of whoever drew the boxes"
_WANTED = "Label Studio needs its annotations, a JSON export '*.json',"
_HINT = "Point at the exported file, or at the folder or zip that holds it."
_SLOWEST, _FASTEST = 1e-6, 1e5


def find(path: Path) -> Source:
    """The exports at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return locate(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return [source.name] if isinstance(source, FileSource) else source.files("", ".json")


def read(
    source: Source,
    *,
    kinds: Mapping[str, str] | None = None,
    fps: float | None = None,
    size: Sequence[int] | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All tasks as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Rectangles in videos become tubes with a box in every frame between their keyframes, rectangles on
    pictures tubes of one box (each picture is a video of one frame), spans on the timeline tubes with `spans`
    and no boxes, regions of a recording sounds, arrows relations, and descriptions queries. Several
    annotators' work on one task stands side by side, told apart by `annotator`; cancelled annotations and
    predictions are left out and counted. Frames, which Label Studio counts from 1, count from 0.

    Corners are in pixels of the size that the export gives (`original_width`, or `width` and `height` of the
    task's data), else of `size`; exports of videos mostly give none, and without `size` the picture is then
    1 x 1, so that corners are shares of it, which `meta.notes["unit_pictures"]` says.

    Args:
        source: see `find`.
        kinds: control, or `label` for those that rectangles in videos carry themselves, to a kind of label;
            a control that is not named is a kind of its own.
        fps: frames per second of all videos; what the export says unless given.
        size: width and height in pixels where the export does not say them.
        processes: not used: files are small.
        progress: told how many files are read, of how many.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read.
    """
    findings = Findings()
    names = inputs(source)
    tasks = all_tasks(source, names, "annotations", findings, progress)
    clips = clips_of(tasks, _sides(size), _rate(fps), findings)
    tables, vocabularies = tables_of(clips, kinds or {}, findings)
    tables["tubes"] = tables["tubes"].drop("score")
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="Label Studio",
            licence=LICENCE,
            vocabularies=vocabularies,
            source_digest=source.contents(names),
            rows_read=dict(sorted(findings.read.items())),
            notes={**findings.notes(), **_units(clips)},
        ),
    )


def all_tasks(
    source: Source, names: Sequence[str], which: Which, findings: Findings, progress: Progress | None = None
) -> list[Task]:
    """The tasks of all files.

    Args:
        source: where they lie.
        names: of the files.
        which: whether annotations or predictions are taken.
        findings: takes what is refused.
        progress: told how many files are read, of how many.

    Raises:
        InputError: if no file can be read.
    """
    tasks: list[Task] = []

    def take(name: str, found: Findings) -> None:
        where = source.where(name)
        with no_collection():
            content = parse(decode(source.read(name), where), where)
            tasks.extend(list(tasks_of(content, where, name, which, found)))

    errors = take_each(names, take, findings, progress)
    if not tasks:
        raise none_read(errors)
    return tasks


def _units(clips: Sequence[Clip]) -> dict[str, bool]:
    """Whether corners of some videos are shares of the picture."""
    return {"unit_pictures": True} if any(clip.size is None for clip in clips) else {}


def _rate(fps: Any) -> float | None:
    if fps is None:
        return None
    if type(fps) not in (int, float) or not _SLOWEST <= fps < _FASTEST:
        raise UsageError(f"'fps' is a number of frames per second, {_SLOWEST:g} to {_FASTEST:g}, not {fps!r}")
    return float(fps)


def _sides(size: Any) -> tuple[int, int] | None:
    """Width and height that were asked for."""
    if size is None:
        return None
    sides = tuple(size) if isinstance(size, Sequence) else ()
    if len(sides) != 2 or not all(type(side) is int and 1 <= side <= MOST_PIXELS for side in sides):
        raise UsageError(f"'size' is a width and a height in pixels, such as (1280, 720), not {size!r}")
    return sides[0], sides[1]
