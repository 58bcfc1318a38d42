"""`roadaware reproduce`: a published experiment again, obtained beside printed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.analysis.compare import compare_released
from roadaware.cli import console
from roadaware.cli.compare import build_comparison_json
from roadaware.cli.options import USUAL, Common, Html, Outcome, Resamples
from roadaware.cli.outputs import check_paths
from roadaware.cli.results import write_page
from roadaware.errors import UsageError
from roadaware.reports.reproduction_text import format_reproduction
from roadaware.reports.run_text import format_headline

if TYPE_CHECKING:
    from roadaware.protocols.iv2024 import Reproduction
    from roadaware.tasks.pedestrians import Baseline

_DATA = "Folder that holds jaad/ and pie/. [default: ROADAWARE_DATA_DIR]"
_BASELINES = "Train the models without pixels and show them beside."


def reproduce(
    experiment: Annotated[Literal["iv2024"], Parameter(help="Which experiment.")],
    /,
    *,
    data: Annotated[Path | None, Parameter(help=_DATA)] = None,
    html: Html = None,
    draws: Resamples = 1000,
    baselines: Annotated[bool, Parameter(help=_BASELINES, negative="--no-baselines")] = True,
    common: Common = USUAL,
) -> Outcome:
    """Repeat a published experiment on the released files and set every printed cell beside what comes out.

    `iv2024` is Rasouli and Kotseruba, IV 2024: Tables II to VI. Needs a folder with jaad/ (the
    repository or its zip) and pie/ (annotations, or the attributes alone, and the released pf_*.csv).
    A cell that cannot be obtained says why; one that rests on an assumption shows its range.

    For example:

        roadaware reproduce iv2024 --data DATA --html tables.html

        ROADAWARE_DATA_DIR=DATA roadaware reproduce iv2024 --json cells.json
    """

    source = _find_data_folder(data)
    check_paths(reproduce, {"data": source, "html": html, "common": common})
    found = reproduce_folder(source, draws=draws, baselines=baselines)
    pairs = []
    if draws:
        with console.log_step("comparing with the released scores"):
            pairs = compare_released(found, draws=draws)
    if html is not None:
        from roadaware.reports.page import report
        from roadaware.reports.reproduction import build_reproduction_report

        write_page(html, report(build_reproduction_report(found), title="IV 2024 repeated"))

    shown = [format_reproduction(found), *(f"{name}\n{format_headline(pair)}" for name, pair in pairs)]
    compared = [{"protocol": name, **build_comparison_json(pair)} for name, pair in pairs]
    return Outcome("\n\n".join(shown), {**found.as_dict(), "comparisons": compared})


def reproduce_folder(
    folder: Path, *, draws: int, baselines: bool | dict[str, dict[str, Baseline]]
) -> Reproduction:
    """The experiment on the files of a folder.

    Args:
        folder: holds jaad/ and pie/.
        draws: bootstrap resamples.
        baselines: whether to train the models without pixels, or those already trained by protocol.
    """
    from roadaware.protocols.iv2024 import reproduce as repeat

    with console.show_progress("repeating iv2024") as progress, console.log_step("repeating iv2024"):
        return repeat(folder, draws=draws, baselines=baselines, progress=progress)


def _find_data_folder(given: Path | None) -> Path:
    """The folder that holds the datasets: the one given, else that of ROADAWARE_DATA_DIR.

    Raises:
        UsageError: if neither is there.
    """
    if given is not None:
        return given
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    if not stated:
        raise UsageError(
            "no data: say --data DIR, or set ROADAWARE_DATA_DIR to the folder that holds jaad/ and pie/"
        )
    return Path(stated)
