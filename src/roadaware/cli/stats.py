"""`roadaware stats`: how many boxes and tubes each class has in each split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.cli.options import DatasetPath, Outcome, Several, Stated, Switch
from roadaware.cli.results import UNKEPT, ResultFolder
from roadaware.datasets.loading import open_dataset
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.reports.dataset_text import count_corner_cases, count_labels
from roadaware.reports.page import report
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_cell

_DATASET = "Which dataset it is: road, ucf24, vott, jaad or pie; coda for COCO files about corner cases."
_CORNER = "With coda: COCO annotations of the corner cases, where they are in a file of their own."
_CODA = "coda"


def stats(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    path: DatasetPath,
    /,
    *,
    kinds: Annotated[
        list[str] | None, Parameter(help="Only these kinds of labels. [default: all]"), Several, Stated
    ] = None,
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    result: ResultFolder = UNKEPT,
    strict: Annotated[bool, Parameter(help="Exit with 1 if rows or files were refused."), Switch] = False,
) -> Outcome:
    """Count boxes and tubes by class and split, as ROAD's paper does in Tables 15 to 20, and draw them.

    Needs the annotations. Where they are ROAD's, the printed counts stand beside those found. Of corner
    cases the composition is told as in CODA's Table 1 and Figures 3 and 4.

    For example:

        roadaware stats road road_trainval_v1.0.json

        roadaware stats ucf24 pyannot_with_class_names.pkl --kinds action -o runs/counts

        roadaware stats coda corner_case.json -o runs/composition
    """
    if dataset == _CODA:
        found = count_corner_cases(path, corner)
    elif corner is not None:
        raise UsageError(f"--corner goes with {_CODA}")
    else:
        found = count_labels(open_dataset(dataset, path), kinds or [])
    refused, odd = count_refusals(found.scenes, "the truth"), list_warnings(found.scenes)
    lines = [f"{n:,} {format_cell(what)}" for what, n in refused.items()]
    named = {"dataset": found.scenes.meta.dataset}
    data = {**named, **found.facts, "dropped": refused, "notes": list(odd)}
    if result.folder is not None:
        subtitle = "" if dataset == _CODA else "; ".join(lines)
        page = report([found.section()], title=found.title, subtitle=subtitle)
        files = {f"{name}.parquet": encode_parquet(table) for name, table in found.tables.items()}
        files["report.html"] = page.encode("utf-8", errors="backslashreplace")
        result.write(folders.add_marker(files, data))
    text = "\n\n".join([found.heading, *lines, *map(format_cell, odd), *found.text])
    return Outcome(text, data, f"--strict: {'; '.join(lines)}" if strict and lines else None)
