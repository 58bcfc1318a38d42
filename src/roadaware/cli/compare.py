"""`roadaware compare`: which of two models is better, and whether that is more than chance; `report`: pages of runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.compare import compare as compare_scores
from roadaware.analysis.evaluation.pedestrians import get_config, match_file
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    MOST_RESAMPLES,
    ConfigName,
    Html,
    Outcome,
    Output,
    Resamples,
    Seed,
    TaskName,
    validate_range,
)
from roadaware.cli.results import write_page
from roadaware.errors import InputError, UsageError
from roadaware.io.folders import write_text
from roadaware.reports import runs
from roadaware.reports.run_kinds import KINDS, load_named_runs
from roadaware.reports.watch_page import is_watch, read_summary, render_watch_page

_CONFIG = "How csv files are judged; run folders bring their own. [default: default]"

_RESAMPLES = "Most evaluations for each interval; percentile:1000 gives percentiles of resamples."


def compare(
    a: Annotated[Path, Parameter(help="The first model: csv file of scores, or run folder.")],
    b: Annotated[Path, Parameter(help="The second model.")],
    /,
    *,
    samples: Annotated[Path | None, Parameter(help="The samples of the csv files.")] = None,
    task: Annotated[TaskName | None, Parameter(help="What was asked, for csv files.")] = None,
    config: Annotated[ConfigName | None, Parameter(help=_CONFIG)] = None,
    resamples: Annotated[
        Resamples, Parameter(help=_RESAMPLES, validator=validate_range(1, MOST_RESAMPLES))
    ] = 1000,
    seed: Seed = 0,
    html: Html = None,
) -> Outcome:
    """Compare two models on the same samples: every metric, the difference with intervals, and a verdict.

    Needs two csv files of scores with the samples they are about, or two run folders of `evaluate -o` of
    one subject. Whole pedestrians, and whole videos, are resampled for both models at once; where an
    interval of the difference holds 0 the verdict is `not different`.

    For example:

        roadaware compare mine.csv theirs.csv --samples samples.csv --task action

        roadaware compare runs/mine runs/theirs --html difference.html
    """
    if _is_run(a) != _is_run(b):
        raise UsageError("compare two csv files or two run folders, not one of each")
    found: Any
    stems = (a.stem or str(a), b.stem or str(b))
    names = stems
    if names[0] == names[1]:
        # The runs of recipes are all called `test`: the folder around them says which.
        names = (f"{a.absolute().parent.name}/{stems[0]}", f"{b.absolute().parent.name}/{stems[1]}")
    if names[0] == names[1]:
        names = (f"A ({stems[0]})", f"B ({stems[1]})")
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "names": names}
    if runs.is_run(a):
        kinds = (runs.describe_kind(a), runs.describe_kind(b))
        if kinds[0] != kinds[1]:
            raise UsageError(f"one run is of {kinds[0]}, the other of {kinds[1]}; compare two of a kind")
        given = {"--samples": samples, "--task": task, "--config": config}
        if named := [option for option, value in given.items() if value is not None]:
            raise UsageError(
                f"{', '.join(named)} cannot be said of run folders, which bring their own; leave it away, or "
                "evaluate again"
            )
        kind = KINDS[kinds[0]]
        first, second = runs.load_runs(kind.load, a, b)
        with console.log_step("resampling"):
            found = kind.compare(first, second, **how)
    else:
        kind = KINDS["pedestrians"]
        if samples is None or task is None:
            raise UsageError(
                "csv files of scores need --samples SAMPLES.csv and --task action, intention or risk"
            )
        one, two = (match_file(path, samples, task).state for path in (a, b))
        with console.log_step("resampling"):
            found = compare_scores(one, two, get_config(config or "default", task), **how)
    for name, (one_value, other_value) in (getattr(found, "differs", None) or {}).items():
        console.print_note(f"{name}: {found.names[0]} {one_value}, {found.names[1]} {other_value}")
    if html is not None:
        write_page(html, kind.render_comparison(found))
    return Outcome(kind.format_comparison(found), runs.build_comparison_json(found))


def _is_run(path: Path) -> bool:
    """Whether it is a run folder rather than a csv file.

    Raises:
        InputError: if it is neither.
    """
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    if path.is_dir() and not runs.is_run(path):
        runs.list_runs(path)
        raise InputError(
            "expected a run folder, found a folder of several",
            where=str(path),
            hint="Name one of the runs in it.",
        )
    return path.is_dir()


# `roadaware report`: the page of one or several runs, made again.


# A difference says nothing without its intervals, so runs judged without draws are compared with some.
_DEFAULT_RESAMPLES = 200


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
        # The page of a watch, beside its video unless another place is named.
        if len(folders) > 1:
            raise UsageError("the page of a watch is of one run; name one folder")
        summary = read_summary(folders[0])
        write_text(page, render_watch_page(folders[0], summary, page.parent))
        facts = {name: summary[name] for name in ("source", "frames", "tubes", "events")}
        return Outcome(f"wrote {page}", {"report": str(page), "runs": [facts]})
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
            resamples = min(first.resamples, second.resamples) or _DEFAULT_RESAMPLES
            compared.append(compare(first, second, resamples=resamples, seed=first.seed, names=names))
        except InputError as error:
            console.print_note(f"{first.name} and {second.name} are not compared: {error.message}")
    return compared
