"""The ablation of the networks of crowds: what one trunk with learnt paths gives over each head alone, a shared trunk,
fixed random paths and shuffled tasks; cell by cell, resumable.
"""

from __future__ import annotations

import importlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from roadaware.arrays import Floats
from roadaware.config import digest, to_dict
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder, read_marker
from roadaware.io.parallel import HERE, Ledger, Workers, map_parts
from roadaware.metrics.metric_state import Judged, resample_over_videos
from roadaware.models.crowd.config import TASKS, Task
from roadaware.protocols.crowd_baselines import Answered, predict_all, shuffle_sentences
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.intervals import Units, get_difference_scale
from roadaware.tasks.crowd import build_crowd_set, list_used
from roadaware.tasks.crowd_answers import predict_crowd
from roadaware.training.crowd.recipe import CrowdRecipe

if TYPE_CHECKING:
    from roadaware.training.crowd.recipe import CrowdRecipe

_log = logging.getLogger("roadaware")
Progress = Callable[[int, int, str], None]

# What the paper printed.

SOURCE = "supplement of Chaotic World, ICCV 2023"
PAPER_NAMES: dict[Task, str] = {"actions": "STAL", "relations": "BGA", "grounding": "STEG", "sound": "ESSL"}


@dataclass(frozen=True)
class PrintedPath:
    """A path as printed.

    Args:
        task: whose.
        blocks: in each of the five dynamic layers, from 0.
        where: in which part of the supplement.
    """

    task: Task
    blocks: tuple[int, ...]
    where: str = "Figure 1"


PRINTED_PATHS = (
    PrintedPath("actions", (1, 0, 1, 1, 1)),
    PrintedPath("relations", (0, 1, 0, 1, 0)),
    PrintedPath("grounding", (0, 1, 0, 1, 1)),
    PrintedPath("sound", (1, 0, 0, 0, 1)),
)
"""Figure 1 counts blocks from 1; it is captioned as an example, of two blocks in each layer."""
NOT_PRINTED = (
    "The supplement prints no metrics of IntelliCare, no number of steps and no number of blocks beside the two of its "
    "figure; the tables of the paper itself are not at hand. No value of ours is therefore set beside one of theirs."
)

# The study.

RowName = Literal["alone", "shared", "blocks-2", "blocks-4", "random-paths", "shuffled"]
ROWS: dict[RowName, str] = {
    "alone": "each head alone",
    "shared": "shared trunk, no dynamic layers",
    "blocks-2": "IntelliCare, 2 blocks",
    "blocks-4": "IntelliCare, 4 blocks",
    "random-paths": "2 blocks, fixed random paths",
    "shuffled": "2 blocks, shuffled tasks",
}
PATHFINDERS: tuple[RowName, ...] = ("blocks-2", "blocks-4")
CONTROLS: tuple[RowName, ...] = ("alone", "shared", "random-paths", "shuffled")
METRICS: dict[Task, tuple[str, ...]] = {
    "actions": ("map@0.5",),
    "relations": ("frame_recall@20", "map"),
    "grounding": ("m_viou", "m_tiou"),
    "sound": ("success@0.5",),
}
"""The columns; relations are judged on the true tubes (predicate classification)."""
NAMES: dict[tuple[Task, str], str] = {
    ("actions", "map@0.5"): "actions mAP",
    ("relations", "frame_recall@20"): "relations R@20",
    ("relations", "map"): "relations mAP",
    ("grounding", "m_viou"): "grounding m_vIoU",
    ("grounding", "m_tiou"): "grounding m_tIoU",
    ("sound", "success@0.5"): "sound success",
}
TESTS = ("in-domain", "unseen town")
STUDY, CELL, TIMING, RESULTS, RECIPE = (
    "study.json",
    "cell.json",
    "timing.json",
    "results.json",
    "intellicare.yaml",
)
FORMAT = "roadaware-crowd-ablation"
_PREDICTIONS = "answers"
_TIMED = 5


@dataclass(frozen=True)
class CrowdStudy:
    """What is trained and judged.

    Args:
        scenes: folder of simulated scenes with the splits `default/train` and `default/val`.
        unseen: folder of scenes of a town that is not learnt from, all of which are judged (default: none).
        rows: names in `ROWS`.
        seeds: trainings of each row, with seeds from 0.
        steps: of each task; a row of four tasks takes four times as many.
        resamples: most weightings of scenes for an interval; 0 for none.
        changes: of the recipe `configs/crowd/intellicare.yaml`, such as `model.base=tiny`.

    Raises:
        UsageError: if a value is impossible.
    """

    scenes: Path
    unseen: Path | None = None
    rows: tuple[RowName, ...] = tuple(ROWS)
    seeds: int = 3
    steps: int = 800
    resamples: int = 1000
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = [name for name in self.rows if name not in ROWS]
        if unknown or not self.rows:
            raise UsageError(f"rows are some of {', '.join(ROWS)}; not {', '.join(unknown) or 'none'}")
        if self.seeds < 1 or self.steps < 1 or self.resamples < 0:
            raise UsageError(
                f"seeds and steps are at least 1, resamples at least 0; got {self.seeds}, {self.steps}, {self.resamples}"
            )

    @property
    def fixed(self) -> dict[str, Any]:
        """What all cells of a folder share, JSON-ready; rows, seeds and resamples may change."""
        unseen = str(self.unseen.resolve()) if self.unseen else None
        scenes = str(self.scenes.resolve())
        return {"scenes": scenes, "unseen": unseen, "steps": self.steps, "changes": list(self.changes)}


@dataclass(frozen=True)
class Cell:
    """One training run.

    Args:
        row: a name in `ROWS`.
        seed: of weights, questions and fixed paths.
        tasks: that it learns.
    """

    row: RowName
    seed: int
    tasks: tuple[Task, ...]

    @property
    def place(self) -> str:
        """Its folder below that of the study."""
        name = f"{self.row}-{self.tasks[0]}" if self.row == "alone" else self.row
        return f"cells/{name}/seed-{self.seed}"


def list_cells(study: CrowdStudy, tasks: Sequence[Task] = TASKS) -> list[Cell]:
    """The runs of a study, seed by seed, so that an unfinished study has whole rows."""
    found = []
    for seed in range(study.seeds):
        for row in ROWS:
            if row in study.rows:
                each = [(task,) for task in tasks] if row == "alone" else [tuple(tasks)]
                found += [Cell(row, seed, learnt) for learnt in each]
    return found


def draw_paths(tasks: Sequence[Task], layers: int, blocks: int, seed: int) -> dict[str, list[int]]:
    """A path for each task, block by block at random.

    Args:
        tasks: which.
        layers: dynamic ones.
        blocks: of each layer.
        seed: equal seeds give equal paths.
    """
    drawn = np.random.default_rng([seed, layers, blocks]).integers(blocks, size=(len(tasks), layers))
    return dict(zip(tasks, drawn.tolist(), strict=True))


def build_recipe(study: CrowdStudy, cell: Cell | None = None, maps: str = "") -> CrowdRecipe:
    """The recipe of a cell: that of IntelliCare with the row's network, judged nowhere on the way.

    Args:
        study: which.
        cell: which; None for the recipe that all begin with.
        maps: folder of the maps that all cells share.

    Raises:
        UsageError: if a change of the recipe is unknown or impossible.
    """
    from roadaware.training.recipe_files import RECIPES, read_recipe

    base = read_recipe(
        RECIPES / "crowd" / RECIPE, [f"data.roots=[{json.dumps(str(study.scenes))}]", *study.changes]
    )
    if not isinstance(base, CrowdRecipe):
        raise UsageError("the recipe of an ablation of crowds has `tasks`; --set should not take them away")
    # Equal steps for all: nothing is judged on the way, and no run ends before its last step.
    base = replace(base, validation=replace(base.validation, every_steps=0, patience=0, at_end=False))
    if cell is None:
        return base
    blocks = {"alone": 0, "shared": 0, "blocks-4": 4}.get(cell.row, 2)
    model = replace(base.model, fields={**base.model.fields, "blocks": blocks})
    recipe = replace(
        base,
        name=f"{cell.row}, seed {cell.seed}",
        seed=cell.seed,
        tasks=dict.fromkeys(cell.tasks, 1),
        model=model,
        data=replace(base.data, validation_split="", validation_roots=()),
        clips=replace(base.clips, maps=maps),
        schedule=replace(base.schedule, steps=study.steps * len(cell.tasks)),
        shuffle_tasks=cell.row == "shuffled",
    )
    if cell.row == "random-paths":
        layers = len(recipe.build_config().dynamic_layers)
        recipe = replace(
            recipe, model=replace(model, paths=draw_paths(cell.tasks, layers, blocks, cell.seed))
        )
    return recipe


def open_tests(study: CrowdStudy, recipe: CrowdRecipe) -> dict[str, tuple[Scenes, list[Any]]]:
    """Name of a test set to its scenes and videos.

    Raises:
        InputError: if scenes or videos cannot be read.
        UsageError: if the scenes have no validation split.
    """
    from roadaware.training.data import open_sources

    data = replace(recipe.data, validation_split="", validation_roots=())
    val = open_sources(replace(data, split=recipe.data.validation_split))
    found = {TESTS[0]: (val.scenes.only([film.video for film in val.films]), val.films)}
    if study.unseen is not None:
        other = open_sources(replace(data, roots=(str(study.unseen),), split=""))
        found[TESTS[1]] = (other.scenes.only([film.video for film in other.films]), other.films)
    return found


# One cell: a training run, its answers, and last of all the file that says that it is done.


def is_done(cell: Cell, out: Path) -> bool:
    """Whether a cell was trained and has answered."""
    return (out / cell.place / CELL).is_file()


def run_cell(study: CrowdStudy, cell: Cell, out: Path, progress: Progress | None = None) -> None:
    """Train a cell from where it stands, and let it answer everything that is judged.

    Args:
        study: which.
        cell: which.
        out: folder of the study.
        progress: called with steps done and the total.

    Raises:
        KeyboardInterrupt: if a signal ended the training.
    """
    from roadaware.models.crowd.network import open_crowd
    from roadaware.training.crowd.run import train_crowd

    folder, maps = out / cell.place, out / "maps"
    began = time.monotonic()
    recipe = build_recipe(study, cell, str(maps))
    came = train_crowd(recipe, folder / "run", resume=True, progress=progress)
    if came.stopped is not None or came.model is None:
        raise KeyboardInterrupt
    network, _ = open_crowd(came.model)
    for name, (scenes, films) in open_tests(study, build_recipe(study)).items():
        for task, answers in predict_crowd(network, scenes, films, recipe.clips, folder=maps).items():
            save(answers, folder / _PREDICTIONS / name.replace(" ", "-") / task, overwrite=True)
    finder = network.pathfinder if network.config.dynamic_layers else None
    tasks = network.path_tasks
    facts = {
        # A trunk that nobody sees is there, but counts for nothing.
        "parameters": sum(
            p.numel() for name, p in network.named_parameters() if tasks or name.startswith("heads.")
        ),
        "paths": {} if finder is None else {task: list(finder.paths()[task]) for task in tasks},
        "entropy": {} if finder is None else {task: list(finder.entropy()[task]) for task in tasks},
        # Without the folder of maps, so that the same study elsewhere gives the same bytes.
        "recipe": digest(build_recipe(study, cell)),
    }
    timing = {"ms": time_network(network, recipe.clips), "seconds": time.monotonic() - began}
    write_atomically(folder / TIMING, encode_json(timing).encode())
    write_atomically(folder / CELL, encode_json(facts).encode())


def time_network(network: Any, clips: Any) -> float:
    """Milliseconds that a clip takes through the trunk, once for all tasks, and the last layers of each task that sees it.

    Heads are left out: they are the same in all rows, and their time follows from the people and words of a clip.

    Args:
        network: in `eval` mode.
        clips: of the recipe, for size and length.

    Returns:
        the median of five; 0 where no task sees the trunk.
    """
    import torch

    if not network.path_tasks:
        return 0.0
    height, width = (-(-side // 32) * 32 for side in clips.size_px)
    images = torch.zeros(1, 3, clips.frames, height, width)
    taken = []
    with torch.inference_mode():
        network.stem(images)  # the first pass sets up buffers and would count them
        for _ in range(_TIMED):
            began = time.perf_counter()
            map = network.stem(images)
            for task in network.path_tasks:
                network.tail(map, task)
            taken.append(1000 * (time.perf_counter() - began))
    return float(np.median(taken))


# All cells, and what they are worth.


@dataclass(frozen=True)
class Value:
    """A number with its 95 % interval over scenes.

    Args:
        value: mean over seeds; None where undefined.
        low, high: ends; None where there are no resamples.
        caution: why the interval is to be taken with caution; None where it is not.
        seeds: the value of each seed.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    caution: str | None = None
    seeds: tuple[float | None, ...] = ()

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


Key = tuple[str, str, Task, str]
"""Test set, row or baseline, task, metric."""


@dataclass(frozen=True, eq=False)
class CrowdAblation:
    """Results of a study.

    Args:
        study: what was wanted.
        scenes: test set to the number of its scenes.
        values: of rows.
        baselines: of the answers without a network.
        differences: (test set, `pathfinder - control`, task, metric) to the paired difference.
        cells: of each cell that is done, the content of its `cell.json`.
        timing: of each the content of its `timing.json`.
        failed: place of a cell to why it is missing.
    """

    study: CrowdStudy
    scenes: dict[str, int]
    values: dict[Key, Value]
    baselines: dict[Key, Value]
    differences: dict[Key, Value]
    cells: dict[Cell, dict[str, Any]]
    timing: dict[Cell, dict[str, float]]
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[RowName]:
        """The rows of which at least one seed is done, in their order."""
        return [row for row in ROWS if any(cell.row == row for cell in self.cells)]

    def count_parameters(self, row: RowName) -> int:
        """Of a row; of heads alone the sum over their networks."""
        first = min(cell.seed for cell in self.cells if cell.row == row)
        return sum(
            facts["parameters"] for cell, facts in self.cells.items() if (cell.row, cell.seed) == (row, first)
        )

    def measure_ms(self, row: RowName) -> float:
        """Milliseconds a clip for all tasks, the mean over seeds; of heads alone the sum over their networks."""
        seeds = {cell.seed for cell in self.cells if cell.row == row}
        return sum(t["ms"] for cell, t in self.timing.items() if cell.row == row) / len(seeds)

    def describe_gain(self) -> tuple[str, ...]:
        """Of each pathfinder and control in a sentence what the paired differences say."""
        said = []
        for row in PATHFINDERS:
            for control in CONTROLS:
                name = f"{row} - {control}"
                held = {
                    key: v for key, v in self.differences.items() if key[1] == name and v.value is not None
                }
                if not held:
                    continue
                better = [_name(key) for key, v in held.items() if v.excludes_zero and (v.value or 0) > 0]
                worse = [_name(key) for key, v in held.items() if v.excludes_zero and (v.value or 0) < 0]
                open_ = len(held) - len(better) - len(worse)
                if all(v.low is None for v in held.values()):
                    found = "no interval, so no difference can be shown"
                elif not better and not worse:
                    found = (
                        f"none of {len(held)} intervals of paired differences excludes 0: no gain is shown"
                    )
                else:
                    parts = [f"better in {', '.join(better)}"] if better else ["better in none"]
                    parts += [f"worse in {', '.join(worse)}"] if worse else []
                    parts += [f"not different in {open_}"] if open_ else []
                    found = "; ".join(parts)
                said.append(f"{ROWS[row]} against {ROWS[control]}: {found}.")
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """All of it but times, which differ from run to run, JSON-ready."""

        def rows(held: Mapping[Key, Value]) -> list[dict[str, Any]]:
            names = ("test", "row", "task", "metric")
            return [{**dict(zip(names, key, strict=True)), **to_dict(value)} for key, value in held.items()]

        return {
            "study": {**self.study.fixed, "rows": list(self.study.rows), "seeds": self.study.seeds},
            "scenes": self.scenes,
            "values": rows(self.values),
            "baselines": rows(self.baselines),
            "differences": rows(self.differences),
            "cells": [{"row": c.row, "seed": c.seed, "tasks": list(c.tasks), **f} for c, f in self.cells.items()],
            "gain": list(self.describe_gain()),
            "printed": [{"task": p.task, "path": list(p.blocks), "where": f"{SOURCE}, {p.where}"} for p in PRINTED_PATHS],
            "failed": self.failed,
        }  # fmt: skip


def _name(key: Key) -> str:
    return f"{NAMES[key[2], key[3]]} ({key[0]})"


def run_study(
    study: CrowdStudy, out: Path, *, workers: Workers = HERE, progress: Progress | None = None
) -> CrowdAblation:
    """Run a study, or its unfinished part, and judge all cells that are done.

    Args:
        study: what is wanted.
        out: its folder.
        workers: where cells learn, and how many side by side.
        progress: called with steps or cells done, the total, and a unit that tells the time left.

    Raises:
        UsageError: if the folder holds another study, or another process is at work in it.
        InputError: if scenes cannot be read.
        DiskError: if the folder cannot be written to.
    """
    recipe = build_recipe(study)
    with hold_folder(out):
        tests = open_tests(study, recipe)
        # Write what the folder is for; refuse one whose cells were made otherwise
        if (out / STUDY).exists():
            held = read_marker(out / STUDY, FORMAT)
            if held is None:
                raise DamagedError(
                    "not a study of crowds", where=str(out / STUDY), hint="name another folder"
                )
            differ = [name for name, value in study.fixed.items() if held.get(name) != value]
            if differ:
                raise UsageError(
                    f"{out} holds a study with another {', '.join(differ)}; name another folder with --output"
                )
        write_atomically(out / STUDY, encode_json({"format": FORMAT, **study.fixed}).encode())
        cells = list_cells(study, recipe.ordered_tasks)
        failed: dict[str, str] = {}
        for cell, why in _run_cells(study, cells, out, workers, progress):
            if why:
                failed[cell.place] = why
                _log.warning("%s: %s", cell.place, why)
        done = [cell for cell in cells if is_done(cell, out)]
        if not done:
            raise InputError("no cell could be trained: " + "; ".join(failed.values()), where=str(out))
        found = judge_cells(study, done, out, tests, recipe, failed)
        write_atomically(out / RESULTS, encode_json(found.as_dict()).encode())
    return found


def _run_cells(
    study: CrowdStudy, cells: Sequence[Cell], out: Path, workers: Workers, progress: Progress | None
) -> Iterator[tuple[Cell, str]]:
    """Each cell that was due with why it failed, empty where it did not."""
    due = [cell for cell in cells if not is_done(cell, out)]
    clock = _Clock(len(cells), len(cells) - len(due), progress)
    step = clock.step if workers.is_inline(len(due)) else None  # steps in other processes are not heard of
    ledger = Ledger(out, "cells", len(cells), len(cells) - len(due))
    with ledger, closing(map_parts(partial(_try_cell, study, out, step), due, workers)) as results:
        for each in results:
            clock.finish()
            why = each.failure or each.value or ""
            ledger.note(due[each.place].place, why or None)
            yield due[each.place], why


def _try_cell(study: CrowdStudy, out: Path, progress: Progress | None, cell: Cell) -> str:
    try:
        run_cell(study, cell, out, progress)
    except RoadawareError as error:
        return str(error)
    return ""


class _Clock:
    """Shows cells and steps as thousandths of the study, with the time that is left.

    Args:
        total: cells.
        done: of them before.
        progress: called with thousandths done and 1000.
    """

    def __init__(self, total: int, done: int, progress: Progress | None) -> None:
        self.total, self.done, self.first, self.progress = total, done, done, progress
        self.began = time.monotonic()

    def step(self, step: int, steps: int, unit: str) -> None:
        if unit.startswith("steps"):
            self._show(self.done + step / max(1, steps))

    def finish(self) -> None:
        self.done += 1
        self._show(self.done)

    def _show(self, done: float) -> None:
        if self.progress is None:
            return
        over = done - self.first
        left = (time.monotonic() - self.began) * (self.total - done) / over if over > 0 else 0.0
        unit = f"thousandths, {self.done} of {self.total} runs done, about {left / 60:.0f} min left"
        self.progress(round(1000 * done / self.total), 1000, unit)


# Judging.


def judge(task: Task, predictions: Predictions, scenes: Scenes) -> Judged:
    """The state of a task's evaluator; of relations on the true tubes.

    Raises:
        InputError: if there is no ground truth.
    """
    metric = importlib.import_module(f"roadaware.metrics.{task}")
    config = metric.CONFIGS["default"]()
    if task == "relations":
        config = replace(config, setting="predcls")
    state: Judged = metric.evaluate(predictions, scenes, config).state
    return state


def judge_cells(
    study: CrowdStudy,
    done: Sequence[Cell],
    out: Path,
    tests: Mapping[str, tuple[Scenes, list[Any]]],
    recipe: CrowdRecipe,
    failed: Mapping[str, str],
) -> CrowdAblation:
    """Values of rows and baselines, and paired differences of pathfinders and controls.

    Args:
        study: which.
        done: cells with answers.
        out: folder of the study.
        tests: of `open_tests`.
        recipe: that all cells begin with.
        failed: place of a cell to why it is missing.
    """
    values: dict[Key, Value] = {}
    baselines: dict[Key, Value] = {}
    differences: dict[Key, Value] = {}
    answered = {name: _answer_baselines(recipe, scenes, films) for name, (scenes, films) in tests.items()}
    for name, (scenes, _) in tests.items():
        place = name.replace(" ", "-")
        for task in recipe.ordered_tasks:
            states: dict[str, list[Judged]] = {}
            try:
                for cell in done:
                    if task in cell.tasks:
                        answers = open_predictions(out / cell.place / _PREDICTIONS / place / task)
                        states.setdefault(cell.row, []).append(judge(task, answers, scenes))
                        if task == "grounding" and cell.row in PATHFINDERS[:1] and cell.seed == 0:
                            states["shuffled sentences"] = [judge(task, shuffle_sentences(answers), scenes)]
                for (of, baseline), answers in answered[name].items():
                    if of == task:
                        states[baseline] = [judge(task, answers, scenes)]
            except InputError as error:
                _log.warning("%s, %s: %s", name, task, error)
                continue
            scores = _score_states(states, METRICS[task], study.resamples)
            for (row, metric), (value, _, _) in scores.items():
                (values if row in ROWS else baselines)[name, row, task, metric] = value
            for row in PATHFINDERS:
                for control in CONTROLS:
                    for metric in METRICS[task]:
                        if (row, metric) in scores and (control, metric) in scores:
                            key = (name, f"{row} - {control}", task, metric)
                            differences[key] = _subtract(scores[row, metric], scores[control, metric])
    cells = {cell: json.loads((out / cell.place / CELL).read_text()) for cell in done}
    timing = {cell: json.loads((out / cell.place / TIMING).read_text()) for cell in done}
    counts = {name: len(films) for name, (_, films) in tests.items()}
    return CrowdAblation(study, counts, values, baselines, differences, cells, timing, dict(failed))


def _answer_baselines(
    recipe: CrowdRecipe, scenes: Scenes, films: list[Any]
) -> dict[tuple[Task, str], Predictions]:
    from roadaware.training.crowd.run import build_vocabulary
    from roadaware.training.data import open_sources

    learnt = open_sources(replace(recipe.data, validation_split="", validation_roots=()))
    vocabulary = build_vocabulary(list_used(learnt.scenes), recipe.build_config())
    fps = recipe.clips.fps
    train = Answered(learnt.scenes, build_crowd_set(learnt.scenes, learnt.films, vocabulary, fps))
    test = Answered(scenes, build_crowd_set(scenes, films, vocabulary, fps))
    return predict_all(train, test, recipe.ordered_tasks)


_Scored = tuple[Value, Floats | None, Units | None]


def _score_states(
    states: Mapping[str, Sequence[Judged]], metrics: Iterable[str], resamples: int
) -> dict[tuple[str, str], _Scored]:
    """Row and metric to its value, its (resamples,) means over seeds, and the scenes of the weightings."""
    # The same scenes for all rows, so that differences are paired.
    videos = tuple(sorted({video for held in states.values() for state in held for video in state.videos}))
    units = Units(len(videos), resamples, 0) if resamples and len(videos) > 1 else None
    found: dict[tuple[str, str], _Scored] = {}
    for row, held in states.items():
        plain: list[dict[str, Any]] = []
        drawn: list[dict[tuple[str, str | None], Floats]] = []
        for state in held:
            ones = np.ones((1, len(state.videos)), dtype=np.int32)
            plain.append({each.metric: each for each in state.measured(ones) if each.label is None})
            drawn.append(resample_over_videos(state, videos, units) if units else {})
        for metric in metrics:
            each = [p[metric] for p in plain if metric in p]
            seeds = [float(m.values[0]) for m in each]
            if not seeds:
                continue
            value = float(np.mean(seeds))
            defined = tuple(None if np.isnan(s) else s for s in seeds)
            if units is None or np.isnan(value):
                found[row, metric] = (Value(None if np.isnan(value) else value, seeds=defined), None, None)
                continue
            values = np.mean([d[metric, None] for d in drawn], axis=0)
            interval = units.interval(value, values, each[0].scale)
            kept = Value(value, interval.low, interval.high, interval.caution, defined)
            found[row, metric] = (kept, values, units)
    return found


def _subtract(a: _Scored, b: _Scored) -> Value:
    """The difference of two rows on the same weightings of scenes."""
    if a[0].value is None or b[0].value is None:
        return Value(None)
    apart = a[0].value - b[0].value
    if a[1] is None or b[1] is None or a[2] is None:
        return Value(apart)
    interval = a[2].interval(apart, a[1] - b[1], get_difference_scale("share"))
    return Value(apart, interval.low, interval.high, interval.caution)


# Paths: sharing of blocks.


def count_shared_blocks(paths: Mapping[str, Sequence[int]]) -> dict[tuple[str, str], int]:
    """Of each pair of tasks in how many layers they take the same block.

    Args:
        paths: task to its block in each layer.

    >>> count_shared_blocks({"actions": (0, 1, 1), "sound": (0, 0, 1)})
    {('actions', 'sound'): 2}
    """
    names = list(paths)
    return {
        (a, b): sum(x == y for x, y in zip(paths[a], paths[b], strict=True))
        for place, a in enumerate(names)
        for b in names[place + 1 :]
    }
