"""`roadaware report`: the page of one or several runs, made again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output
from roadaware.errors import InputError, UsageError
from roadaware.io.folders import write_text
from roadaware.reports import runs
from roadaware.reports.run_kinds import KINDS, load_named_runs
from roadaware.reports.watch_page import is_watch, read_summary, render_watch_page

# A difference says nothing without its intervals, so runs judged without draws are compared with some.
_DRAWS = 200


def report(
    *folders: Annotated[Path, Parameter(help="Run folders.")],
    page: Annotated[Path, Parameter(help="The file to write."), Output, outputs.FILE] = Path("report.html"),
) -> Outcome:
    """Make the HTML report of run folders: one file, offline, printable; several runs stand side by side.

    Needs folders that `evaluate -o` or `baseline -o` wrote, or one that `watch` wrote. Runs on the same
    samples are also compared, pair by pair.

    For example:

        roadaware report runs/mine runs/theirs -o report.html
    """
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

    kind = KINDS[next(iter(kinds))]
    with console.log_step("report"):
        loaded = load_named_runs(kind, found)
        groups = kind.split(loaded)
        html = kind.render(loaded, [pair for held in groups for pair in _pairs(held, kind.compare)])
        shown = "\n\n".join(kind.format(held) for held in groups)
    write_text(page, html)
    summaries = [kind.summarize(run) for run in loaded]
    return Outcome(f"{shown}\n\nwrote {page}".strip(), {"report": str(page), "runs": summaries})


def _watch_page(folders: Sequence[Path], page: Path) -> Outcome:
    """The page of a watch; beside its video, unless another place is named."""
    if len(folders) > 1:
        raise UsageError("the page of a watch is of one run; name one folder")
    found = read_summary(folders[0])
    write_text(page, render_watch_page(folders[0], found, page.parent))
    facts = {name: found[name] for name in ("source", "frames", "tubes", "events")}
    return Outcome(f"wrote {page}", {"report": str(page), "runs": [facts]})


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
