"""Truth and claims of the tasks on scenes as the commands take them: native files, or saved tables."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from roadaware.cli import console, datasets, reader_options
from roadaware.cli.event_findings import oddities, refused
from roadaware.cli.scene_tasks import TASKS, SceneTask, check_truth, read_claims
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes

_COMPARED = {"actions": ("action",), "relations": ("predicate",), "grounding": (), "sound": ()}
"""Kinds of labels whose names claims and truth have to share."""


@dataclass(frozen=True)
class Reading:
    """How the truth is read.

    Args:
        reader: its name; found from the content where None.
        options: of the reader, OPTION=VALUE each.
        labels: the list of labels that numbers stand for.
        excluded: the moments that are not judged.
    """

    reader: str | None = None
    options: tuple[str, ...] = ()
    labels: Path | None = None
    excluded: Path | None = None


@dataclass(frozen=True, eq=False)
class Given:
    """Truth and claims of a task.

    Args:
        scenes: the truth.
        predictions: the claims.
        findings: what ought not to be, in words, to how often: rows refused, claims on what the truth lacks.
        notes: what the reader of the truth wondered at, in words.
        lacking: what claims or truth have alone, in words.
    """

    scenes: Scenes
    predictions: Predictions
    findings: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def opened(task: SceneTask, truth: Path, predictions: Path, how: Reading) -> Given:
    """Truth and claims, from whatever form they come in.

    Args:
        task: what is asked.
        truth: a native file or folder, or tables that `read -o` saved.
        predictions: native claims, or a saved set of Predictions.
        how: the truth is read.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if truth or claims cannot be read, or there is no truth to judge against.
    """
    for path in (truth, predictions):
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    scenes = open_truth(task, truth, how)
    claims = open_claims(task, predictions, scenes)
    findings = {**refused(scenes, "the truth"), **refused(claims, predictions.name), **odd(claims)}
    from roadaware.analysis.doctor.overlap import check_overlap

    table = task.truth[0]
    lacking = check_overlap(claims, scenes, where=str(predictions), table=table, kinds=_COMPARED[task.name])
    _check_kinds(task, claims, str(predictions))
    return Given(scenes, claims, findings, oddities(scenes), lacking)


def _check_kinds(task: SceneTask, claims: Predictions, where: str) -> None:
    """Refuse claims with boxes, and without any label of the kind that is judged.

    Raises:
        InputError: if they know none.
    """
    known = claims.meta.vocabularies.keys()
    if task.truth[0] == "boxes" and len(claims.boxes) and not known & {*_COMPARED[task.name]}:
        raise InputError(
            f"expected boxes with labels of the kind {_COMPARED[task.name][0]}, found those of "
            f"{', '.join(sorted(known)) or 'none'}",
            where=where,
            hint="these are claims of another task or data set: every score would be 0 and mean nothing",
        )


def open_truth(task: SceneTask, path: Path, how: Reading) -> Scenes:
    """The truth of a task.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if it cannot be read, or holds nothing that the task asks about.
    """
    if datasets.is_saved(path):
        given = {"--reader": how.reader, "--option": how.options or None}
        named = [option for option, value in given.items() if value is not None]
        if named:
            raise UsageError(f"{', '.join(named)}: {path} holds tables that were read already; leave it away")
        from roadaware.scenes.store import open_scenes

        with console.working(f"opening {path}"):
            scenes = open_scenes(path)
        scenes = scenes if how.labels is None else with_labels(scenes, how.labels)
        scenes = scenes if how.excluded is None else without(scenes, how.excluded)
    else:
        scenes = _read(_reader(task, path, how.reader), path, how)
    check_truth(task, scenes, str(path))
    return scenes


def with_labels(scenes: Scenes, path: Path) -> Scenes:
    """The same with the actions of a list alone, by name or number.

    Args:
        scenes: the truth.
        path: the list (pbtxt, txt or csv).

    Raises:
        InputError: if the file cannot be read, or has no action of the truth.
    """
    from roadaware.scenes.readers.action_lists import chosen
    from roadaware.scenes.readers.ava_labels import read_labels
    from roadaware.scenes.readers.findings import Findings
    from roadaware.scenes.readers.source import read_file

    return chosen(scenes, read_labels(read_file(path), str(path), Findings()))


def without(scenes: Scenes, path: Path) -> Scenes:
    """The same, with the moments that a file names marked as not annotated.

    Args:
        scenes: the truth.
        path: csv with video and time, or number of the frame as the set's own files count them.

    Raises:
        InputError: if the file cannot be read.
    """
    import polars as pl

    from roadaware.scenes.readers.ava_rows import moments
    from roadaware.scenes.readers.findings import Findings
    from roadaware.scenes.readers.source import read_file

    found = moments(read_file(path), path.name, str(path), Findings(), header=True)
    first = int(scenes.meta.notes.get("first_frame", 0))
    aside = found.select("video", frame=pl.col("frame").cast(pl.Int64) - first, aside=pl.lit(value=True))
    known = scenes.videos.select(pl.col("video").cast(pl.String))
    aside = aside.join(known, on="video", how="semi")
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" not in frames.columns:
        frames = frames.with_columns(annotated=pl.lit(value=True))
    frames = frames.join(aside, on=["video", "frame"], how="full", coalesce=True, maintain_order="left_right")
    seen = pl.when(pl.col("aside")).then(statement=False).otherwise(pl.col("annotated"))
    return scenes.with_tables(frames=frames.with_columns(annotated=seen).drop("aside"))


def open_claims(task: SceneTask, path: Path, scenes: Scenes) -> Predictions:
    """The claims of a task.

    Args:
        task: what is asked.
        path: native claims, or a saved set of Predictions.
        scenes: what they are about.

    Raises:
        InputError: if they cannot be read, or are about something else.
    """
    with console.working(f"reading {path}"):
        if datasets.is_saved(path):
            from roadaware.scenes.store import open_predictions

            return open_predictions(path)
        try:
            return read_claims(task, path, scenes)
        except InputError as error:
            if error.hint:
                raise
            hint = f"{task.name} takes {task.forms}, or tables of Predictions that were saved"
            raise type(error)(error.message, where=error.where, hint=hint) from error


def _reader(task: SceneTask, path: Path, named: str | None) -> str:
    """The reader of the truth: the one that is named, or the one that its content tells.

    Raises:
        UsageError: if it is unknown, or is not one of the task's.
        InputError: if the content tells none, or one of another task.
    """
    if named is not None:
        if named not in task.readers:
            near = difflib.get_close_matches(named.lower(), task.readers, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            listed = ", ".join(task.readers)
            raise UsageError(f"--reader of {task.name} is one of {listed}, not {named!r}{guess}")
        return named
    from roadaware.scenes.readers.sniff import sniff

    found = sniff(path)
    if found not in task.readers:
        others = [other.name for other in TASKS.values() if found in other.readers]
        raise InputError(
            f"expected the truth of {task.name} ({', '.join(task.readers)}), found what looks like {found}",
            where=str(path),
            hint=f"that is for `evaluate {' or '.join(others)}`" if others else None,
        )
    return found


def _read(name: str, path: Path, how: Reading) -> Scenes:
    """A native file or folder. What options name lies outside the source, so with them nothing is cached."""
    from roadaware.scenes.readers import read, reader_named

    held = reader_options.parsed(name, how.options)
    has = reader_named(name).options
    if how.labels is not None:
        if "labels" not in has:
            raise UsageError(f"--labels: annotations of {name} take no list of labels; leave it away")
        held["labels"] = how.labels
    if how.excluded is not None and "excluded" in has:
        held["excluded"] = how.excluded
    with console.progress(f"reading {name}") as progress, console.working(f"reading {path}"):
        scenes = read(name, path, cache=not held, progress=progress, **held)
    return without(scenes, how.excluded) if how.excluded is not None and "excluded" not in has else scenes


def odd(claims: Predictions) -> dict[str, int]:
    """What the reader of the claims wondered at: in words, to how often."""
    found: dict[str, int] = {}
    for item in claims.meta.notes.get("warnings", []):
        first = f", first {item['example']}" if item.get("example") else ""
        found[f"{item['what']}{first}"] = int(item["count"])
    return found
