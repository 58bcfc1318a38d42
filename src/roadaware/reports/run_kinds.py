"""What `evaluate`, `report` and `compare` do with runs of every kind: write, load, compare, show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roadaware.analysis.compare import Comparison, DetectionComparison, compare, compare_detections
from roadaware.analysis.evaluation.runs import EventRun, Run, SceneRun
from roadaware.analysis.scene_tasks import CORNER_CASES
from roadaware.errors import UsageError
from roadaware.reports import runs
from roadaware.reports.clips import draw_run
from roadaware.reports.event_pages import (
    build_event_run_facts,
    build_event_run_files,
    build_event_run_json,
    collect_metrics,
    load_event_run,
    render_event_comparison,
    render_event_runs,
)
from roadaware.reports.event_text import format_event_comparison, format_event_run, format_event_runs
from roadaware.reports.run_pages import (
    format_comparison,
    format_run,
    format_runs,
    render_comparison,
    run_page,
)
from roadaware.reports.scene_runs import (
    build_scene_run_facts,
    build_scene_run_files,
    build_scene_run_json,
    compare_scene_runs,
    load_scene_run,
    render_scene_comparison,
    render_scene_runs,
)
from roadaware.reports.scene_text import (
    format_corner_run,
    format_scene_comparison,
    format_scene_run,
    format_scene_runs,
)
from roadaware.reports.terminal import format_cell


@dataclass(frozen=True)
class RunKind:
    """The functions for runs of one kind.

    Args:
        metrics: of a run, by name: values in [0, 1], None where undefined.
        format_run: a run, for a terminal.
        build_json: a run, for machines.
        build_files: the files of a run's folder by name, given its page.
        list_findings: what `--strict` turns into a failure, in words.
        load: the run in a folder.
        compare: two runs, with `resamples`, `seed` and `names`; a UsageError where they do not go together.
        summarize: a run, JSON-ready.
        render: runs and comparisons as one page.
        format: runs beside each other, for a terminal.
        render_comparison: one comparison as a page.
        format_comparison: one comparison, for a terminal.
        split: runs into those that may be compared and shown in one table.
        draw: the clips of a run, from the films of what it judged.
    """

    metrics: Callable[[Any], dict[str, float | None]]
    format_run: Callable[[Any], str]
    build_json: Callable[[Any], dict[str, Any]]
    build_files: Callable[[Any, str], dict[str, bytes]]
    list_findings: Callable[[Any], list[str]]
    load: Callable[[Path], Any]
    compare: Callable[..., Any]
    summarize: Callable[[Any], dict[str, Any]]
    render: Callable[[Sequence[Any], Sequence[Any]], str]
    format: Callable[[Sequence[Any]], str]
    render_comparison: Callable[[Any], str]
    format_comparison: Callable[[Any], str]
    split: Callable[[Sequence[Any]], list[Sequence[Any]]] = lambda loaded: [loaded]
    draw: Callable[[Any], Any] = lambda run: run


def load_named_runs(kind: RunKind, folders: Sequence[Path]) -> list[Any]:
    """The runs in folders; those of one task with the same name are called as their folders are."""
    loaded = runs.load_runs(kind.load, *folders)
    marks = [(getattr(run, "task", None), run.name) for run in loaded]
    called = Counter(marks)
    last = [folder.absolute().name for folder in folders]
    # The runs of recipes are all called `test`: the folder around them says which.
    names = (
        name if last.count(name) == 1 else f"{folder.absolute().parent.name}/{name}"
        for name, folder in zip(last, folders, strict=True)
    )
    return [
        replace(run, name=name) if called[mark] > 1 else run
        for run, mark, name in zip(loaded, marks, names, strict=True)
    ]


def _list_findings(run: EventRun | SceneRun) -> list[str]:
    found = [f"{count:,} {format_cell(what)}" for what, count in run.facts["findings"].items() if count]
    if isinstance(run, SceneRun) and run.task is CORNER_CASES:
        found += run.facts["truth"]["notes"]
    return found


def _compare_pedestrians(a: Run, b: Run, *, resamples: int, seed: int, names: tuple[str, str]) -> Comparison:
    if a.config != b.config:
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs; evaluate both with the same"
        )
    return compare(a.state, b.state, a.config, resamples=resamples, seed=seed, names=names)


def _compare_events(
    a: EventRun, b: EventRun, *, resamples: int, seed: int, names: tuple[str, str]
) -> DetectionComparison:
    one, two = (run.facts.get("truth", {}).get("judged_digest") for run in (a, b))
    if one and two:  # runs of version 0.8 do not say
        runs.check_same_truth(one, two, names)
    return compare_detections(
        a.matches, b.matches, a.config, resamples=resamples, seed=seed, names=names, config_b=b.config
    )


def _split_tasks(loaded: Sequence[SceneRun]) -> list[Sequence[SceneRun]]:
    tasks = dict.fromkeys(run.task for run in loaded)
    return [[run for run in loaded if run.task is task] for task in tasks]


KINDS = {
    "pedestrians": RunKind(
        lambda run: run.result.values(),
        format_run,
        runs.summarize_run,
        runs.build_run_files,
        lambda run: [],
        runs.load,
        _compare_pedestrians,
        runs.summarize_run,
        run_page,
        lambda loaded: format_runs(loaded) if len({run.config.task for run in loaded}) == 1 else "",
        render_comparison,
        format_comparison,
        draw=draw_run,
    ),
    "road events": RunKind(
        lambda run: collect_metrics(run.summary),
        format_event_run,
        build_event_run_json,
        build_event_run_files,
        _list_findings,
        load_event_run,
        _compare_events,
        build_event_run_facts,
        render_event_runs,
        format_event_runs,
        render_event_comparison,
        format_event_comparison,
        draw=draw_run,
    ),
    "scenes": RunKind(
        lambda run: run.result.values(),
        lambda run: format_corner_run(run) if run.task is CORNER_CASES else format_scene_run(run),
        build_scene_run_json,
        build_scene_run_files,
        _list_findings,
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
