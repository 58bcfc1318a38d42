"""What `report` and `compare` do with runs of every kind: load, compare, show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roadaware.analysis.compare import Comparison, DetectionComparison, compare, compare_detections
from roadaware.errors import UsageError
from roadaware.reports import runs
from roadaware.reports.event_pages import render_event_comparison, render_event_runs
from roadaware.reports.event_runs import EventRun, build_event_run_facts, load_event_run
from roadaware.reports.event_text import format_event_comparison, format_event_runs
from roadaware.reports.run_pages import render_comparison, run_page
from roadaware.reports.run_text import format_comparison, format_runs
from roadaware.reports.runs import Run
from roadaware.reports.scene_runs import (
    SceneRun,
    build_scene_run_facts,
    compare_scene_runs,
    load_scene_run,
    render_scene_comparison,
    render_scene_runs,
)
from roadaware.reports.scene_text import format_scene_comparison, format_scene_runs


@dataclass(frozen=True)
class RunKind:
    """The functions for runs of one kind.

    Args:
        load: the run in a folder.
        compare: two runs, with `draws`, `seed` and `names`; a UsageError where they do not go together.
        summarize: a run, JSON-ready.
        render: runs and comparisons as one page.
        format: runs beside each other, for a terminal.
        render_comparison: one comparison as a page.
        format_comparison: one comparison, for a terminal.
        split: runs into those that may be compared and shown in one table.
    """

    load: Callable[[Path], Any]
    compare: Callable[..., Any]
    summarize: Callable[[Any], dict[str, Any]]
    render: Callable[[Sequence[Any], Sequence[Any]], str]
    format: Callable[[Sequence[Any]], str]
    render_comparison: Callable[[Any], str]
    format_comparison: Callable[[Any], str]
    split: Callable[[Sequence[Any]], list[Sequence[Any]]] = lambda loaded: [loaded]


def load_named_runs(kind: RunKind, folders: Sequence[Path]) -> list[Any]:
    """The runs in folders; of one task on scenes, those with the same name are called as their folders are."""
    loaded = runs.load_runs(kind.load, *folders)
    if kind is not KINDS["scenes"]:
        return loaded
    called = Counter((run.task.name, run.name) for run in loaded)
    return [
        replace(run, name=folder.name) if called[run.task.name, run.name] > 1 else run
        for run, folder in zip(loaded, folders, strict=True)
    ]


def _compare_pedestrians(a: Run, b: Run, *, draws: int, seed: int, names: tuple[str, str]) -> Comparison:
    if a.config != b.config:
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs; evaluate both with the same"
        )
    return compare(a.state, b.state, a.config, draws=draws, seed=seed, names=names)


def _compare_events(
    a: EventRun, b: EventRun, *, draws: int, seed: int, names: tuple[str, str]
) -> DetectionComparison:
    return compare_detections(
        a.matches, b.matches, a.config, draws=draws, seed=seed, names=names, config_b=b.config
    )


def _split_tasks(loaded: Sequence[SceneRun]) -> list[Sequence[SceneRun]]:
    tasks = dict.fromkeys(run.task for run in loaded)
    return [[run for run in loaded if run.task is task] for task in tasks]


KINDS = {
    "pedestrians": RunKind(
        runs.load,
        _compare_pedestrians,
        runs.summarize_run,
        run_page,
        lambda loaded: format_runs(loaded) if len({run.config.task for run in loaded}) == 1 else "",
        render_comparison,
        format_comparison,
    ),
    "road events": RunKind(
        load_event_run,
        _compare_events,
        build_event_run_facts,
        render_event_runs,
        format_event_runs,
        render_event_comparison,
        format_event_comparison,
    ),
    "scenes": RunKind(
        load_scene_run,
        compare_scene_runs,
        build_scene_run_facts,
        render_scene_runs,
        format_scene_runs,
        render_scene_comparison,
        format_scene_comparison,
        split=_split_tasks,
    ),
}
"""By the words of `runs.describe_kind`."""
