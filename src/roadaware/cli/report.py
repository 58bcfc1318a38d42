"""`roadaware report`: the page of one or several runs, made again."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import USUAL, Common, Outcome, Output
from roadaware.errors import InputError, UsageError
from roadaware.reports import runs
from roadaware.reports.watch_page import is_watch

# A difference says nothing without its intervals, so runs judged without draws are compared with some.
_DRAWS = 200


def report(
    *folders: Annotated[Path, Parameter(help="Run folders.")],
    page: Annotated[Path, Parameter(help="The file to write."), Output, outputs.FILE] = Path("report.html"),
    common: Common = USUAL,
) -> Outcome:
    """Make the HTML report of run folders: one file, offline, printable; several runs stand side by side.

    Needs folders that `evaluate -o` or `baseline -o` wrote, or one that `watch` wrote. Runs on the same
    samples are also compared, pair by pair.

    For example:

        roadaware report runs/mine runs/theirs -o report.html
    """
    from roadaware.io.folders import write_text

    if not folders:
        raise UsageError(
            "name at least one run folder, as `evaluate -o RUN` or `watch --output RUN` writes it"
        )
    if any(is_watch(folder) for folder in folders):
        return _watch_page(folders, page)
    found = [member for folder in folders for member in runs.list_runs(folder)]
    kinds = dict.fromkeys(runs.describe_kind(member) for member in found)
    if len(kinds) > 1:
        raise UsageError(f"some runs are of {', others of '.join(kinds)}; make a page of each kind")
    makers = {"scenes": _of_scenes, "road events": _of_events, "pedestrians": _of_pedestrians}
    with console.log_step("report"):
        made = makers[next(iter(kinds))](found)
    write_text(page, made.html)
    return Outcome(f"{made.shown}\n\nwrote {page}".strip(), {"report": str(page), "runs": made.summaries})


def _watch_page(folders: Sequence[Path], page: Path) -> Outcome:
    """The page of a watch; beside its video, unless another place is named."""
    from roadaware.io.folders import write_text
    from roadaware.reports.watch_page import read_summary, render_watch_page

    if len(folders) > 1:
        raise UsageError("the page of a watch is of one run; name one folder")
    found = read_summary(folders[0])
    write_text(page, render_watch_page(folders[0], found, page.parent))
    facts = {name: found[name] for name in ("source", "frames", "tubes", "events")}
    return Outcome(f"wrote {page}", {"report": str(page), "runs": [facts]})


@dataclass(frozen=True)
class _Made:
    """A page, its runs as text, and their facts."""

    html: str
    shown: str
    summaries: list[dict[str, Any]]


def _of_pedestrians(found: Sequence[Path]) -> _Made:
    from roadaware.analysis.compare import compare
    from roadaware.reports.run_pages import run_page
    from roadaware.reports.run_text import format_runs

    loaded = runs.load_runs(runs.load, *found)
    compared = _pairs(loaded, lambda a, b, **how: compare(a.state, b.state, a.config, **how))
    tasks = {run.config.task for run in loaded}
    shown = format_runs(loaded) if len(tasks) == 1 else ""
    return _Made(run_page(loaded, compared), shown, [runs.summarize_run(run) for run in loaded])


def _of_events(found: Sequence[Path]) -> _Made:
    from roadaware.analysis.compare import compare_detections
    from roadaware.reports.event_pages import render_event_runs
    from roadaware.reports.event_runs import build_event_run_facts, load_event_run
    from roadaware.reports.event_text import format_event_runs

    loaded = runs.load_runs(load_event_run, *found)
    compared = _pairs(loaded, lambda a, b, **how: compare_detections(a.matches, b.matches, a.config, **how))
    return _Made(
        render_event_runs(loaded, compared),
        format_event_runs(loaded),
        [build_event_run_facts(run) for run in loaded],
    )


def _of_scenes(found: Sequence[Path]) -> _Made:
    from roadaware.reports.scene_runs import (
        build_scene_run_facts,
        compare_scene_runs,
        load_scene_run,
        render_scene_runs,
    )
    from roadaware.reports.scene_text import format_scene_runs

    loaded = runs.load_runs(load_scene_run, *found)
    called = Counter((run.task.name, run.name) for run in loaded)
    loaded = [
        replace(run, name=member.name) if called[run.task.name, run.name] > 1 else run
        for run, member in zip(loaded, found, strict=True)
    ]
    by_task = [[run for run in loaded if run.task is task] for task in dict.fromkeys(r.task for r in loaded)]
    pairs = [pair for held in by_task for pair in _pairs(held, compare_scene_runs)]
    shown = "\n\n".join(format_scene_runs(held) for held in by_task)
    return _Made(render_scene_runs(loaded, pairs), shown, [build_scene_run_facts(run) for run in loaded])


def _pairs(loaded: Sequence[Any], compare: Callable[..., Any]) -> list[Any]:
    """Every two runs that can be compared; the others are named."""
    compared = []
    for first, second in itertools.combinations(loaded, 2):
        if first.config != second.config:
            console.print_note(
                f"{first.name} and {second.name} are not compared: they were judged differently"
            )
            continue
        try:
            names = (first.name, second.name)
            draws = min(first.draws, second.draws) or _DRAWS
            compared.append(compare(first, second, draws=draws, seed=first.seed, names=names))
        except InputError as error:
            console.print_note(f"{first.name} and {second.name} are not compared: {error.message}")
    return compared
