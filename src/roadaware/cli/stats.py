"""`roadaware stats`: how many boxes and tubes each class has in each split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.corner_tables import compute_composition
from roadaware.analysis.evaluation.corner_cases import open_truth
from roadaware.analysis.evaluation.event_inputs import convert_kinds
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.analysis.road_counts import compare_printed_counts, count
from roadaware.cli import console, outputs
from roadaware.cli.options import DatasetPath, Outcome, Output, Overwrite, Several, Switch
from roadaware.cli.results import write_result
from roadaware.datasets.loading import open_dataset
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.protocols.coda import infer_version
from roadaware.reports.dataset_text import format_composition, format_kind_counts, format_printed_counts
from roadaware.reports.page import report
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_cell

if TYPE_CHECKING:
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes

_DATASET = "Which dataset it is: road, ucf24, vott, jaad or pie; coda for COCO files about corner cases."
_CORNER = "With coda: COCO annotations of the corner cases, where they are in a file of their own."
_CODA = "coda"
_FOLDER = "Write the counts and a page with bars here."
_TABLES = ("parts", "classes", "top", "tags")


def stats(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    path: DatasetPath,
    /,
    *,
    kinds: Annotated[list[str] | None, Parameter(help="Only these kinds of labels."), Several] = None,
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
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
        found = _count_corner_cases(path, corner)
    elif corner is not None:
        raise UsageError(f"--corner goes with {_CODA}")
    else:
        found = _count_labels(open_dataset(dataset, path), kinds or [])
    refused, odd = count_refusals(found.scenes, "the truth"), list_warnings(found.scenes)
    lines = [f"{n:,} {format_cell(what)}" for what, n in refused.items()]
    named = {"dataset": found.scenes.meta.dataset}
    data = {**named, **found.facts, "dropped": refused, "notes": list(odd)}
    if folder is not None:
        subtitle = "" if dataset == _CODA else "; ".join(lines)
        page = report([found.section()], title=found.title, subtitle=subtitle)
        files = {f"{name}.parquet": encode_parquet(table) for name, table in found.tables.items()}
        files["report.html"] = page.encode("utf-8", errors="backslashreplace")
        write_result(folder, folders.add_marker(files, data), overwrite=overwrite)
    text = "\n\n".join([found.heading, *lines, *map(format_cell, odd), *found.text])
    return Outcome(text, data, f"--strict: {'; '.join(lines)}" if strict and lines else None)


@dataclass(frozen=True)
class _Counted:
    """What was counted.

    Args:
        scenes: whose.
        heading, text: for people.
        facts: for machines, JSON-ready.
        tables: that are written, by name.
        title, section: of the page.
    """

    scenes: Scenes
    heading: str
    text: list[str]
    facts: dict[str, Any]
    tables: Mapping[str, pl.DataFrame]
    title: str
    section: Callable[[], Section]


def _count_labels(scenes: Scenes, kinds: list[str]) -> _Counted:
    """Boxes and tubes by class and split, beside what the paper prints of ROAD."""
    from roadaware.reports.audit import build_stats_section

    with console.log_step("counting"):
        counts = count(scenes)
        printed = compare_printed_counts(counts, scenes)
    wanted = convert_kinds(kinds, scenes)
    known = counts["kind"].unique(maintain_order=True).to_list()
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise UsageError(f"no labels of kind {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
    if wanted:
        counts = counts.filter(pl.col("kind").is_in(wanted))
        printed = None if printed is None else printed.filter(pl.col("kind").is_in(wanted))
    name, videos = scenes.meta.dataset, len(scenes.videos)
    rows = counts if printed is None else printed
    text = [format_kind_counts(counts, kind) for kind in counts["kind"].unique(maintain_order=True)]
    return _Counted(
        scenes,
        f"{format_cell(name)}: {videos:,} videos; boxes/tubes by class and split",
        text if printed is None else [*text, format_printed_counts(printed)],
        {
            "source_digest": scenes.meta.source_digest,
            "videos": videos,
            "counts": rows.to_dicts(),
            "compared_with_print": printed is not None,
        },
        {"counts": rows},
        f"Counts of {name or 'a data set'}",
        lambda: build_stats_section(counts, printed),
    )


def _count_corner_cases(path: Path, corner: Path | None) -> _Counted:
    """What a set of corner cases is made of, beside what the paper prints of CODA."""
    from roadaware.reports.corner_section import build_composition_section

    scenes = open_truth(path, corner)
    version = "2022" if corner is not None else infer_version(scenes)
    with console.log_step("counting"):
        held = compute_composition(scenes, version)
    title = f"Corner cases of {scenes.meta.dataset or 'a set'}"
    tables = {name: getattr(held, name) for name in _TABLES}
    return _Counted(
        scenes,
        f"{format_cell(scenes.meta.dataset or 'a set')}: corner cases; common classes as in {version}",
        format_composition(held),
        {
            "common_classes_as_in": version,
            **{name: table.to_dicts() for name, table in tables.items()},
            "facts": held.facts,
        },
        tables,
        title,
        lambda: build_composition_section(held, title=title, notes=list_warnings(scenes)),
    )
