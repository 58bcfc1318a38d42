"""`roadaware evaluate agreement`: is a model right about two questions at once?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.analysis.compare import OUTCOMES, Agreement, compute_agreement
from roadaware.analysis.evaluation.pedestrians import match_file
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    USUAL,
    Common,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    TaskName,
)
from roadaware.cli.results import write_result
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.reports.page import Section, Table, report
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_row_interval, format_table
from roadaware.scenes.sampling import Iv2024, list_task_answers

_SCORES = "The scores of both tasks, as `evaluate pedestrians` takes them."
_SAMPLES = "The samples of both tasks, in the same order: the ground truth of each."
_TASKS = "What each asks: action, intention or risk."
_FOLDER = "Write the table into this folder, as csv and Parquet."


def agreement(
    *,
    scores: Annotated[list[Path], Parameter(help=_SCORES), Several],
    samples: Annotated[list[Path], Parameter(help=_SAMPLES), Several],
    tasks: Annotated[list[TaskName], Parameter(help=_TASKS), Several],
    draws: Resamples = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Count how often two tasks are decided rightly together, one of them alone, or neither: Table V of IV 2024.

    For each combination of true classes, and over all samples: counts, percentages, and 95 % intervals over
    pedestrians and over videos.

    For example:

        roadaware evaluate agreement --scores intention.csv action.csv \\
            --samples intention_samples.csv action_samples.csv --tasks intention action
    """
    for option, given in (("--scores", scores), ("--samples", samples), ("--tasks", tasks)):
        if len(given) != 2:
            raise UsageError(f"{option} takes two, one of each task, not {len(given)}")
    states = [match_file(*each).state for each in zip(scores, samples, tasks, strict=True)]
    first, second = (list_task_answers(Iv2024.reference(task)) for task in tasks)
    with console.log_step("counting"):
        found = compute_agreement(states[0], states[1], labels=(first, second), draws=draws, seed=seed)
    data = {"tasks": list(tasks), "scores": [str(path) for path in scores], "draws": draws, "seed": seed}
    if folder is not None:
        page = report([_build_section(found, tasks)], title=f"Agreement of {tasks[0]} and {tasks[1]}")
        files = {
            "agreement.csv": format_csv(found.table).encode(),
            "agreement.parquet": encode_parquet(found.table),
            "report.html": page.encode("utf-8", errors="backslashreplace"),
        }
        write_result(folder, folders.add_marker(files, data), overwrite=overwrite)
    table = format_table(_list_columns(tasks), _list_rows(found, "pedestrian"), left=2)
    return Outcome(
        f"{table}\nPer cent of the samples of each combination of true classes; 95 % intervals over pedestrians.",
        {**data, "agreement": found.table.to_dicts()},
    )


def _list_rows(found: Agreement, unit: str) -> list[list[str]]:
    """A row for each combination of classes that has samples, as the paper prints it; its intervals over a kind of unit."""
    rows = []
    for key, part in found.table.group_by("first", "second", maintain_order=True):
        n = int(part["n"][0])
        if not n:
            continue
        names = ["all", ""] if key[0] is None else [str(name) for name in key]
        shown = {row["outcome"]: row for row in part.iter_rows(named=True)}
        cells = [
            f"{shown[outcome]['percent']:.1f} {format_row_interval(shown[outcome], unit, 1)}".strip()
            for outcome in OUTCOMES
        ]
        rows.append([*names, f"{n:,}", *cells])
    return rows


def _list_columns(tasks: list[TaskName]) -> list[str]:
    return [*tasks, "samples", "both right", f"only {tasks[0]}", f"only {tasks[1]}", "neither"]


def _build_section(found: Agreement, tasks: list[TaskName]) -> Section:
    whole = found.percent("both")
    says = () if whole is None else (f"Both are decided rightly in {whole:.1f} % of the samples.",)
    tables = tuple(
        Table(
            tuple(_list_columns(tasks)), tuple(map(tuple, _list_rows(found, unit))), "llrrrrr",
            title=f"Intervals over {unit}s",
            caption="Per cent of the samples of each combination of true classes, with 95 % intervals.",
        )
        for unit in ("pedestrian", "video")
    )  # fmt: skip
    return Section("Agreement", says, tables)
