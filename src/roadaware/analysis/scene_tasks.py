"""The tasks on scenes: a table of names and import paths, and how predictions of each are checked and evaluated."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from roadaware.analysis.doctor.data import check_overlap, reject_zero_score
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from roadaware.metrics.metric_state import SceneResult
    from roadaware.scenes.tables import Predictions, Scenes

TaskName = Literal["actions", "relations", "grounding", "sound", "corner_cases"]


@dataclass(frozen=True)
class SceneTask:
    """One task.

    Args:
        name: of the command, and of the package with its metrics.
        title: what it is in words.
        readers: of annotations that hold its truth, by name.
        reading: module and function that read native predictions.
        state: module and class of what was judged.
        forms: what those are in words, for errors.
        truth: the tables that its truth lies in.
        items: what slices are made of, in words.
        labelled: what a class is of.
        compared: kinds of labels whose names predictions and truth have to share.
    """

    name: TaskName
    title: str
    readers: tuple[str, ...]
    reading: tuple[str, str]
    state: tuple[str, str]
    forms: str
    truth: tuple[str, ...]
    items: str
    labelled: str
    compared: tuple[str, ...] = ()


TASKS: dict[str, SceneTask] = {
    task.name: task
    for task in (
        SceneTask(
            "actions",
            "actions of persons",
            ("ava", "chaotic_world", "label_studio", "simulator"),
            ("roadaware.formats.actions", "read_action_predictions"),
            ("roadaware.metrics.actions", "JudgedActions"),
            "csv with video, time, corners, action and score",
            ("boxes", "labels"),
            "frames",
            "action",
            ("action",),
        ),
        SceneTask(
            "relations",
            "behaviour graphs",
            ("vidvrd", "label_studio", "simulator"),
            ("roadaware.formats.relations", "read_relation_predictions"),
            ("roadaware.metrics.relation_rows", "JudgedRelations"),
            "JSON with the triplets of each video",
            ("relations",),
            "videos",
            "predicate",
            ("predicate",),
        ),
        SceneTask(
            "grounding",
            "events found by sentences",
            ("hcstvg", "vidstg", "label_studio", "simulator"),
            ("roadaware.formats.grounding", "read_grounding_predictions"),
            ("roadaware.metrics.grounding", "GroundedSentences"),
            "JSON with the span and the boxes of each sentence",
            ("queries",),
            "sentences",
            "kind of sentence",
        ),
        SceneTask(
            "sound",
            "sounds found in images",
            ("vggss", "flickr_soundnet", "chaotic_world", "label_studio", "simulator"),
            ("roadaware.formats.sound_maps", "read_sound_maps"),
            ("roadaware.metrics.sound", "LocalisedSounds"),
            "a folder of .npy maps, an .npz archive, or JSON with a map for each name",
            ("sounds",),
            "sounds",
            "sound",
        ),
    )
}
CORNER_CASES = SceneTask(
    "corner_cases",
    "corner cases",
    ("simulator",),
    ("roadaware.formats.coco", "read_results"),
    ("roadaware.metrics.corner_cases.evaluate", "JudgedCorners"),
    "COCO results, or tables of Predictions",
    ("boxes",),
    "pictures",
    "class",
)
"""Detectors on corner cases, whose truth and predictions are opened by a command of their own."""


def get_task(name: str) -> SceneTask:
    """A task by the name of its package.

    Raises:
        KeyError: if there is none.
    """
    return CORNER_CASES if name == CORNER_CASES.name else TASKS[name]


def list_configs(task: SceneTask) -> tuple[str, ...]:
    """The named ways in which a task is judged, the recommended one first."""
    names = tuple(_configs(task))
    return ("default", *(name for name in names if name != "default"))


def get_config(task: SceneTask, name: str) -> Any:
    """How a task is judged, by name.

    Raises:
        UsageError: if there is none of that name; names the nearest.
    """
    known = _configs(task)
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
        guess = f"did you mean {near[0]}?" if near else ""
        elsewhere = [other.name for other in TASKS.values() if other is not task and name in _configs(other)]
        if elsewhere:
            guess = f"that one is for `evaluate {elsewhere[0]}`"
        listed = f"config of {task.name} is one of {', '.join(list_configs(task))}, not {name!r}"
        raise UsageError(f"{listed}; {guess}" if guess else listed)
    return known[name]()


def read_predictions(task: SceneTask, path: Path, scenes: Scenes) -> Predictions:
    """Native predictions as Predictions.

    Raises:
        InputError: if they cannot be read, or none of them is about the truth.
    """
    module, function = task.reading
    found: Predictions = getattr(importlib.import_module(module), function)(path, scenes)
    return found


def check_predictions(
    task: SceneTask, predictions: Predictions, scenes: Scenes, where: str
) -> tuple[str, ...]:
    """Refuse predictions of another task or another set, and say what one side lacks where they share a part.

    Raises:
        InputError: if predictions and truth share no video, frame, thing or name of a class, or the predictions have no
            label of the kind that is asked for.
    """
    lacking = check_overlap(predictions, scenes, where=where, table=task.truth[0], kinds=task.compared)
    known = predictions.meta.vocabularies.keys()
    if task.compared and task.truth[0] == "boxes" and len(predictions.boxes) and not known & {*task.compared}:
        raise InputError(
            f"expected boxes with labels of the kind {task.compared[0]}, found those of "
            f"{', '.join(sorted(known)) or 'none'}",
            where=where,
            hint="these are predictions of another task or dataset: every score would be 0 and mean nothing",
        )
    return lacking


def evaluate_predictions(
    task: SceneTask, predictions: Predictions, scenes: Scenes, config: Any, *, where: str, **how: Any
) -> SceneResult:
    """What a task's `evaluate` gives of predictions that were checked.

    Args:
        task: what is asked.
        predictions: that `check_predictions` let pass.
        scenes: the truth.
        config: of the task.
        where: names the predictions in errors.
        how: `by`, `resamples`, `seed`, and `workers` where there are any, of the task's `evaluate`.

    Raises:
        InputError: if every score is 0 and a usual mistake, such as boxes in another scale, explains it.
    """
    result: SceneResult = _open_metric(task).evaluate(predictions, scenes, config, **how)
    metrics = [value for value in result.values().values() if value is not None]
    if metrics and not any(metrics):
        reject_zero_score(task.name if task.name in TASKS else None, predictions, scenes, where)
    return result


def load_state_class(task: SceneTask) -> Any:
    """The class of a task's state."""
    module, name = task.state
    return getattr(importlib.import_module(module), name)


def load_config_class(task: SceneTask) -> Any:
    """The class of a task's configuration."""
    return type(get_config(task, "default"))


def check_truth(task: SceneTask, scenes: Scenes, where: str) -> None:
    """Make sure that the tables hold what the task asks about.

    Raises:
        InputError: if they hold none of it.
    """
    for name in task.truth:
        if not getattr(scenes, name).is_empty():
            continue
        held = ", ".join(f"{len(frame):,} {table}" for table, frame in scenes.filled().items()) or "nothing"
        lost = f"; {len(scenes.rejected):,} rows or files were refused" if len(scenes.rejected) else ""
        raise InputError(
            f"expected the truth of {task.name}, found no {name} in it ({held}{lost})",
            where=where,
            hint="there is nothing to judge against; look into it with `roadaware read`",
        )


def _configs(task: SceneTask) -> dict[str, Any]:
    found: dict[str, Any] = _open_metric(task).CONFIGS
    return found


def _open_metric(task: SceneTask) -> Any:
    """The module with `CONFIGS` and `evaluate` of a task; that of corner cases is one of several of its package."""
    part = ".evaluate" if task is CORNER_CASES else ""
    return importlib.import_module(f"roadaware.metrics.{task.name}{part}")
