"""`roadaware report`: the page of one or several runs, made again."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli import console, runs
from roadaware.cli.options import USUAL, Common, Outcome, OutputFolder
from roadaware.errors import InputError, UsageError

# A difference says nothing without its intervals, so runs judged without draws are compared with some.
_DRAWS = 200


def report(
    *folders: Annotated[Path, Parameter(help="Run folders.")],
    page: Annotated[Path, Parameter(help="The file to write."), OutputFolder] = Path("report.html"),
    common: Common = USUAL,
) -> Outcome:
    """Make the HTML report of run folders: one file, offline, printable; several runs stand side by side.

    Needs folders that `evaluate -o` or `baseline -o` wrote. Runs on the same samples are also compared,
    pair by pair.

    For example:

        roadaware report runs/mine runs/theirs -o report.html
    """
    from roadaware.analysis.compare import compare
    from roadaware.cli.output import check_file, write_text
    from roadaware.cli.pages import run_page
    from roadaware.cli.tables import runs_text

    if not folders:
        raise UsageError("name at least one run folder, as `evaluate -o RUN` writes it")
    check_file(page)
    loaded = [runs.load(member) for folder in folders for member in runs.members(folder)]
    compared = []
    for first, second in itertools.combinations(loaded, 2):
        if first.config != second.config:
            console.note(f"{first.name} and {second.name} are not compared: they were judged differently")
            continue
        try:
            names = (first.name, second.name)
            draws = min(first.draws, second.draws) or _DRAWS
            compared.append(
                compare(first.state, second.state, first.config, draws=draws, seed=first.seed, names=names)
            )
        except InputError as error:
            console.note(f"{first.name} and {second.name} are not compared: {error.message}")
    write_text(page, run_page(loaded, compared))
    tasks = {run.config.task for run in loaded}
    shown = runs_text(loaded) if len(tasks) == 1 else ""
    summaries = [runs.summary(run) for run in loaded]
    return Outcome(f"{shown}\n\nwrote {page}".strip(), {"report": str(page), "runs": summaries})
