"""Actions, relations, sentences and sounds: ground truth and predictions opened, checked and judged."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.evaluation.runs import SceneRun
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.analysis.scene_cases import collect_figure_data
from roadaware.analysis.scene_tasks import (
    CORNER_CASES,
    TASKS,
    SceneTask,
    check_predictions,
    check_truth,
    evaluate_predictions,
    get_config,
    read_predictions,
)
from roadaware.config import change_fields
from roadaware.datasets import get_reader, loading
from roadaware.datasets.ava import parse_excluded_frames, read_labels
from roadaware.datasets.chaotic_world import select_actions
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import HERE, Workers
from roadaware.io.sources import read_file, to_printable
from roadaware.io.text_rows import read_csv_rows
from roadaware.scenes.store import is_saved
from roadaware.steps import log_step

if TYPE_CHECKING:
    from roadaware.scenes.tables import Predictions, Scenes


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
class SceneInputs:
    """Ground truth and predictions of a task, opened and checked.

    Args:
        scenes: the ground truth.
        predictions: the predictions.
        path: where the predictions lie.
        facts: what belongs to a run of them, JSON-ready: `lacking`, what predictions or truth have alone;
            `truth`, with what its reader wondered at; `findings`, what ought not to be, to how often. The
            digest of the truth and the slices are known when it is judged.
    """

    scenes: Scenes
    predictions: Predictions
    path: Path
    facts: dict[str, Any]


@dataclass(frozen=True)
class SceneRequest:
    """What is asked of predictions of a task on scenes.

    Args:
        config: the name of the metric's configuration.
        fields: FIELD=VALUE each, that change it.
        by: names of slices.
        resamples: resamples of videos.
        seed: of the resamples.
        details: whether images are wanted as well.
        workers: where resamples of corner cases are worked on, and by how many at a time; those of other tasks take
            too little.
    """

    config: str = "default"
    fields: Sequence[str] = ()
    by: Sequence[str] = ()
    resamples: int = 0
    seed: int = 0
    details: bool = False
    workers: Workers = HERE

    def build_config(self, task: SceneTask) -> Any:
        """The configuration of a task.

        Raises:
            UsageError: if name, field or value is unknown.
        """
        return change_fields(get_config(task, self.config), self.fields, f"the config of {task.name}")


def evaluate_scene_files(
    task: SceneTask,
    truth: Path,
    predictions: Path,
    request: SceneRequest,
    how: Reading | None = None,
    categories: Path | None = None,
) -> SceneRun:
    """Ground truth and predictions opened and judged.

    Args:
        task: what is asked.
        truth: a native file or folder, or tables that `read -o` saved.
        predictions: native predictions, or a saved set of Predictions.
        request: how they are judged.
        how: the truth is read.
        categories: what happens in each video, as `add_categories` takes it.

    Raises:
        UsageError: if the config or the reader is unknown, or an option does not fit.
        InputError: if truth or predictions cannot be read, or do not fit each other.
    """
    request.build_config(task)  # wrong names are refused before anything is opened
    with name_files(predictions, truth):
        inputs = open_scene_inputs(task, truth, predictions, how or Reading())
        if categories is not None:
            inputs = replace(inputs, scenes=add_categories(inputs.scenes, categories))
        return evaluate_scene_inputs(task, inputs, request)


@contextmanager
def name_files(predictions: Path, truth: Path) -> Iterator[None]:
    """Let errors that know tables alone, as those of metrics, say which files they are about."""
    try:
        yield
    except InputError as error:
        if error.where is not None:
            raise
        where = to_printable(f"{predictions}, judged by {truth}")
        raise type(error)(error.message, where=where, hint=error.hint) from error


def evaluate_scene_inputs(task: SceneTask, inputs: SceneInputs, request: SceneRequest) -> SceneRun:
    """Ground truth and predictions that were opened, judged."""
    path, config = inputs.path, request.build_config(task)
    how = {"workers": request.workers} if task is CORNER_CASES else {}
    with log_step("scoring"):
        result = evaluate_predictions(
            task,
            inputs.predictions,
            inputs.scenes,
            config,
            where=str(path),
            by=request.by,
            resamples=request.resamples,
            seed=request.seed,
            **how,
        )
    images = {}
    if request.details:
        with log_step("pictures"):
            images = collect_figure_data(task.name, inputs.predictions, inputs.scenes, result)
    truth = inputs.facts["truth"] | {"digest": digest_truth(inputs.scenes)}
    facts = inputs.facts | {"truth": truth, "by": list(request.by)}
    named = ", ".join([request.config, *request.fields])
    name = path.stem or str(path)
    return SceneRun(name, task, named, result, request.resamples, request.seed, facts, images)


def open_scene_inputs(task: SceneTask, truth: Path, predictions: Path, how: Reading) -> SceneInputs:
    """Truth and predictions, from whatever form they come in.

    Args:
        task: what is asked.
        truth: a native file or folder, or tables that `read -o` saved.
        predictions: native predictions, or a saved set of Predictions.
        how: the truth is read.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if truth or predictions cannot be read, or there is no truth to judge against.
    """
    for path in (truth, predictions):
        loading.require_path(path)
    scenes = open_truth(task, truth, how)
    return check_inputs(task, scenes, open_predictions(task, predictions, scenes), predictions)


def check_inputs(task: SceneTask, scenes: Scenes, predictions: Predictions, path: Path) -> SceneInputs:
    """What was opened, with what ought not to be in it.

    Raises:
        InputError: if the predictions are of another task or another set.
    """
    facts: dict[str, Any] = {
        "lacking": list(check_predictions(task, predictions, scenes, str(path))),
        "truth": {"dataset": scenes.meta.dataset, "digest": "", "notes": list(list_warnings(scenes))},
        "predictions": [path.name],
        "by": [],
        "findings": {
            **count_refusals(scenes, "the truth"),
            **count_refusals(predictions, path.name),
            **count_warnings(predictions),
        },
    }
    return SceneInputs(scenes, predictions, path, facts)


def open_truth(task: SceneTask, path: Path, how: Reading) -> Scenes:
    """The truth of a task.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if it cannot be read, or holds nothing that the task asks about.
    """
    if is_saved(path):
        given = {"--reader": how.reader, "--option": how.options or None}
        named = [option for option, value in given.items() if value is not None]
        if named:
            raise UsageError(f"{', '.join(named)}: {path} holds tables that were read already; leave it away")
        scenes = loading.open_saved_scenes(path)
        scenes = scenes if how.labels is None else keep_labels(scenes, how.labels)
        scenes = scenes if how.excluded is None else mask_moments(scenes, how.excluded)
    else:
        name = _select_reader(task, path, how.reader)
        known = get_reader(name).options
        # What options name lies outside the source, so with them nothing is cached.
        options = loading.parse_reader_options(name, how.options)
        if how.labels is not None:
            if "labels" not in known:
                raise UsageError(f"--labels: annotations of {name} take no list of labels; leave it away")
            options["labels"] = how.labels
        if how.excluded is not None and "excluded" in known:
            options["excluded"] = how.excluded
        scenes = loading.read_release(name, path, cache=not options, **options)
        if how.excluded is not None and "excluded" not in known:
            scenes = mask_moments(scenes, how.excluded)
    check_truth(task, scenes, str(path))
    return scenes


def keep_labels(scenes: Scenes, path: Path) -> Scenes:
    """The same with the actions of a list alone, by name or number.

    Args:
        scenes: the truth.
        path: the list (pbtxt, txt or csv).

    Raises:
        InputError: if the file cannot be read, or has no action of the truth.
    """
    return select_actions(scenes, read_labels(read_file(path), str(path), Findings()))


def mask_moments(scenes: Scenes, path: Path) -> Scenes:
    """The same, with the moments that a file names marked as not annotated.

    Args:
        scenes: the truth.
        path: csv with video and time, or number of the frame as the set's own files count them.

    Raises:
        InputError: if the file cannot be read.
    """
    found = parse_excluded_frames(read_file(path), path.name, str(path), Findings(), header=True)
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


def open_predictions(task: SceneTask, path: Path, scenes: Scenes) -> Predictions:
    """The predictions of a task.

    Args:
        task: what is asked.
        path: native predictions, or a saved set of Predictions.
        scenes: what they are about.

    Raises:
        InputError: if they cannot be read, or are about something else.
    """
    if is_saved(path):
        return loading.open_saved_predictions(path)
    with log_step(f"reading {path}"):
        try:
            return read_predictions(task, path, scenes)
        except InputError as error:
            if error.hint:
                raise
            hint = f"{task.name} takes {task.forms}, or tables of Predictions that were saved"
            raise type(error)(error.message, where=error.where, hint=hint) from error


def _select_reader(task: SceneTask, path: Path, named: str | None) -> str:
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

    hint = f"{task.name} takes {', '.join(task.readers)}; read with `--reader NAME`, it is said what such a file lacks"
    found = detect_dataset_format(path, hint)
    if found == "csv" and "chaotic_world" in task.readers:
        # The one csv with a header that this task takes; its reader says what it lacks.
        return "chaotic_world"
    if found not in task.readers:
        others = [other.name for other in TASKS.values() if found in other.readers]
        raise InputError(
            f"expected the truth of {task.name} ({', '.join(task.readers)}), found what looks like {found}",
            where=str(path),
            hint=f"that is for `evaluate {' or '.join(others)}`" if others else None,
        )
    return found


def count_warnings(predictions: Predictions) -> dict[str, int]:
    """What the reader of the predictions wondered at: in words, to how often."""
    found: dict[str, int] = {}
    for item in predictions.meta.notes.get("warnings", []):
        first = f", first {item['example']}" if item.get("example") else ""
        found[f"{item['what']}{first}"] = int(item["count"])
    return found


# What happens in each video as a whole, from a file: so that results can be sliced by it.

_HEADER = ["video", "category"]
_HINT = "one row for each video: its name, and one word such as flood or fight"


def add_categories(scenes: Scenes, path: Path) -> Scenes:
    """The truth with the categories of its videos.

    Args:
        scenes: the truth.
        path: csv with video and category; a first row that names the columns may be there.

    Raises:
        InputError: if a row has another form, a video stands there twice, or none of them is in the truth.
    """
    said: dict[str, str] = {}
    for line, cells in read_csv_rows(path):
        if cells == _HEADER and not said:
            continue
        where = f"{path}:{line}"
        if len(cells) != len(_HEADER) or not all(cells):
            raise InputError(f"expected a video and a category, found {cells[:4]}", where=where, hint=_HINT)
        if cells[0] in said:
            raise InputError(f"the video {cells[0][:60]!r} stands there twice", where=where, hint=_HINT)
        said[cells[0]] = cells[1]
    known = scenes.videos["video"].cast(pl.String)
    if not set(said) & set(known):
        first = ", ".join(map(repr, list(said)[:3])) or "nothing"
        there = ", ".join(map(repr, known.head(3).to_list()))
        raise InputError(
            f"no video of the truth is named; the file has {first}, the truth {there}",
            where=str(path),
            hint=_HINT,
        )
    categories = pl.Series("category", [said.get(name) for name in known], dtype=pl.String)
    return scenes.with_tables(videos=scenes.videos.with_columns(categories))


# What of the ground truth a metric can see.

_TABLES = ("videos", "frames", "boxes", "labels", "tubes", "tube_labels", "relations", "queries", "sounds")
_WORDS = ("text", "path", "splits")
"""Columns that change no metric."""


def digest_truth(scenes: Scenes) -> str:
    """Sixteen hexadecimal digits over all of the truth that a metric can see, row by row."""
    total = hashlib.blake2b(digest_size=8)
    for name in _TABLES:
        frame = getattr(scenes, name)
        for column in sorted(set(frame.columns) - set(_WORDS)):
            held = frame[column]
            total.update(f"{name}.{column}:{len(held)}".encode())
            while held.dtype == pl.List:  # such as spans of tubes: how long each is, then what they hold
                total.update(held.list.len().fill_null(0).to_numpy().tobytes())
                held = held.explode()
            if held.dtype.is_numeric() or held.dtype == pl.Boolean:
                total.update(held.cast(pl.Float64).fill_null(float("nan")).to_numpy().tobytes())
            elif held.dtype in (pl.String, pl.Categorical, pl.Enum):
                total.update("\0".join(held.cast(pl.String).fill_null("\1").to_list()).encode())
    total.update(json.dumps(scenes.meta.vocabularies, sort_keys=True).encode())
    return total.hexdigest()
