"""`roadaware audit`: what is wrong with a dataset, and with the samples cut from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.analysis.audit import audit as find_flaws
from roadaware.analysis.audit import render
from roadaware.analysis.audit.requirements import audit_requirements
from roadaware.cli import console
from roadaware.cli.options import Dataset, DatasetPath, Html, Outcome, SampleConfig, Several, Switch, TaskName
from roadaware.cli.results import write_page
from roadaware.datasets.loading import open_dataset
from roadaware.errors import UsageError
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.sampling import get_protocol

_TASK = "Whose samples. [default: action, and intention on PIE]"
_REQUIREMENTS = (
    "Count instead how often boxes and tracks violate these logical requirements, those of ROAD-R in either form or your "
    "own; two files have to say the same."
)
_STRICT = "Exit with 1 if something serious, or a warning, was found."


def audit(
    dataset: Dataset,
    path: DatasetPath,
    /,
    *,
    task: Annotated[TaskName | None, Parameter(help=_TASK)] = None,
    requirements: Annotated[tuple[Path, ...], Parameter(help=_REQUIREMENTS), Several] = (),
    config: SampleConfig = "reference",
    html: Html = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
) -> Outcome:
    """Say what is wrong with a dataset or its published samples, with counts, reasons and examples.

    Crossing samples without an annotated event, crossing inside the observation, identifiers and tags
    that give the answer away, gaps in tracks, attributes against tags, refused rows, counts against the
    printed tables. Needs the folder or zip of the dataset.

    With --requirements the labels of any dataset of road events (road, ucf24, simulator, or saved tables) are held
    against logical requirements instead, such as the 243 of ROAD-R.

    For example:

        roadaware audit jaad JAAD-JAAD_2.0.zip

        roadaware audit jaad JAAD --task risk --html audit.html --strict

        roadaware audit road road_trainval_v1.0.json --requirements requirements_dimacs.txt
    """
    if requirements:
        if task is not None:
            raise UsageError(
                "--requirements look at labels, --task at samples of pedestrians; leave one away"
            )
        rules = open_requirements(requirements)
        scenes = open_dataset(dataset, path)
        with console.log_step("audit"):
            found = audit_requirements(scenes, rules)
    else:
        asked: TaskName = task or ("intention" if dataset == "pie" else "action")
        scenes = open_dataset(dataset, path)
        with console.log_step("audit"):
            found = find_flaws(scenes, get_protocol(f"{dataset}-{asked}@iv2024", config))
    if html is not None:
        from roadaware.reports.audit import audit_section
        from roadaware.reports.page import report

        write_page(html, report([audit_section(found)], title=f"Audit of {found.dataset}"))

    serious, warnings = (len(found.of_severity(severity)) for severity in ("serious", "warning"))
    failed = f"--strict: {serious} serious findings and {warnings} warnings"
    return Outcome(render(found), found.to_dict(), failed if strict and serious + warnings else None)
