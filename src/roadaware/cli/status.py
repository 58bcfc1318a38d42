"""`roadaware status`: how far a long run is, of which parts are done, failed and left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli.options import Outcome
from roadaware.io.run_state import read_run_state
from roadaware.reports.run_pages import format_run_state

_RUN = "The folder, or its address in a store, that `--output` of the long command names; of triage that of `--watches`."


def status(run: Annotated[Path, Parameter(help=_RUN)], /) -> Outcome:
    """Say how far a long run is: parts done, failed and left, with reasons, the rate and the time that is left.

    It knows runs of `simulate`, `predict`, `propose`, `ablate`, `triage`, `cross-dataset` and `reproduce crowd`, while
    they are at work on this machine or another one, and after whatever ended them.

    For example:

        roadaware status synthetic

        roadaware status s3://bucket/night --json
    """
    data = read_run_state(run)
    return Outcome(format_run_state(data), data)
