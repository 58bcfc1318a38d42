"""`roadaware evaluate agreement`: is a model right about two questions at once?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.analysis.agreement import compute_agreement
from roadaware.analysis.evaluation.pedestrians import match_file
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Resamples, Seed, Several, TaskName
from roadaware.cli.results import write_result
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.reports.page import report
from roadaware.reports.run_pages import build_agreement_section, list_agreement_columns, list_agreement_rows
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_table
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
        page = report(
            [build_agreement_section(found, tasks)], title=f"Agreement of {tasks[0]} and {tasks[1]}"
        )
        files = {
            "agreement.csv": format_csv(found.table).encode(),
            "agreement.parquet": encode_parquet(found.table),
            "report.html": page.encode("utf-8", errors="backslashreplace"),
        }
        write_result(folder, folders.add_marker(files, data), overwrite=overwrite)
    table = format_table(list_agreement_columns(tasks), list_agreement_rows(found, "pedestrian"), left=2)
    return Outcome(
        f"{table}\nPer cent of the samples of each combination of true classes; 95 % intervals over pedestrians.",
        {**data, "agreement": found.table.to_dicts()},
    )
