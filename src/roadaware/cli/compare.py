"""`roadaware compare`: which of two models is better, and whether that is more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.compare import compare as compare_scores
from roadaware.analysis.evaluation.pedestrians import get_config, match_file
from roadaware.cli import console
from roadaware.cli.options import (
    MOST_RESAMPLES,
    ConfigName,
    Html,
    Outcome,
    Resamples,
    Seed,
    TaskName,
    validate_range,
)
from roadaware.cli.results import write_page
from roadaware.errors import InputError, UsageError
from roadaware.reports import runs
from roadaware.reports.run_kinds import KINDS

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
    draws: Annotated[
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
    names = (a.stem or str(a), b.stem or str(b))
    if names[0] == names[1]:
        names = (f"A ({names[0]})", f"B ({names[1]})")
    how: dict[str, Any] = {"draws": draws, "seed": seed, "names": names}
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
