"""`roadaware stats`: how many boxes and tubes each class has in each split."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.corner_tables import compute_composition
from roadaware.analysis.evaluation.corner_cases import open_truth
from roadaware.analysis.evaluation.event_inputs import convert_kinds
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.analysis.road_counts import compare_printed_counts, count, count_table
from roadaware.cli import console, datasets, outputs
from roadaware.cli.options import (
    USUAL,
    Common,
    DatasetPath,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
)
from roadaware.cli.results import write_result
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.protocols.coda import TRAINING_SETS, infer_version
from roadaware.reports import terminal
from roadaware.reports.page import report
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_cell, format_number, format_table

if TYPE_CHECKING:
    from roadaware.analysis.corner_tables import Composition
    from roadaware.scenes.tables import Scenes

_DATASET = "Which dataset it is: road, ucf24, vott, jaad or pie; coda for COCO files about corner cases."
_CORNER = "With coda: COCO annotations of the corner cases, where they are in a file of their own."
_CODA = "coda"
_STRICT = "Exit with 1 if rows or files were refused."
_FOLDER = "Write the counts and a page with bars here."
_KINDS = "Only these kinds of labels."
_BAR, _PAGE, _ROWS = 24, "report.html", "counts.parquet"


def stats(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    path: DatasetPath,
    /,
    *,
    kinds: Annotated[list[str] | None, Parameter(help=_KINDS), Several] = None,
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
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
        return count_corner_cases(path, corner, folder, overwrite=overwrite, strict=strict)
    if corner is not None:
        raise UsageError(f"--corner goes with {_CODA}")
    scenes = datasets.open_dataset(dataset, path)
    with console.log_step("counting"):
        counts = count(scenes)
        printed = compare_printed_counts(counts, scenes)
    kinds = list(convert_kinds(kinds or [], scenes))
    known = counts["kind"].unique(maintain_order=True).to_list()
    unknown = sorted(set(kinds) - set(known))
    if unknown:
        raise UsageError(f"no labels of kind {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
    counts = _of_kinds(counts, kinds)
    printed = None if printed is None else _of_kinds(printed, kinds)
    if folder is not None:
        _save(scenes, counts, printed, folder, overwrite=overwrite)
    failed = "--strict: " + "; ".join(_format_refused(scenes)) if strict and len(scenes.rejected) else None
    return Outcome(_text(scenes, counts, printed), _data(scenes, counts, printed), failed)


def _format_refused(scenes: Scenes) -> list[str]:
    return [f"{n:,} {terminal.format_cell(what)}" for what, n in count_refusals(scenes, "the truth").items()]


def _of_kinds(rows: pl.DataFrame, kinds: list[str] | None) -> pl.DataFrame:

    return rows.filter(pl.col("kind").is_in(kinds)) if kinds else rows


def _text(scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None) -> str:
    parts = [
        f"{terminal.format_cell(scenes.meta.dataset)}: {len(scenes.videos):,} videos; boxes/tubes by class and split"
    ]
    parts += [*_format_refused(scenes), *map(terminal.format_cell, list_warnings(scenes))]
    parts += [_kind_text(counts, kind) for kind in counts["kind"].unique(maintain_order=True)]
    if printed is not None:
        parts.append(_printed_text(printed))
    return "\n\n".join(parts)


def _kind_text(counts: pl.DataFrame, kind: str) -> str:
    """One kind in the form of print, with a bar of its boxes on a logarithmic scale."""

    held = count_table(counts, kind)
    whole = counts.filter(pl.col("kind") == kind, pl.col("split") == "all")
    sizes = whole.select(pl.coalesce("boxes", "frames")).to_series().fill_null(0).to_list()
    classes = [n for n, label in zip(sizes, whole["label"].to_list(), strict=True) if label is not None]
    rows = [
        [
            *("-" if cell is None else str(cell) for cell in row),
            "" if row[0] == "total" else format_bar(n, max(classes)),
        ]
        for row, n in zip(held.iter_rows(), sizes, strict=True)
    ]
    return terminal.format_table([kind, *held.columns[1:], "log scale"], rows)


def format_bar(value: int, most: int) -> str:
    """A bar whose length is the logarithm of a count, padded to a fixed width; empty for 0.

    >>> format_bar(1000, 1000).count("#"), format_bar(1, 1000).count("#"), format_bar(0, 1000)
    (24, 1, '')
    """

    if value < 1:
        return ""
    share = log(value) / log(most) if most > 1 else 1.0
    return ("#" * max(1, round(_BAR * share))).ljust(_BAR)


def _printed_text(printed: pl.DataFrame) -> str:

    compared = printed["differs"].drop_nulls()
    lines = [f"{len(compared) - int(compared.sum())} of {len(compared)} counts are as the paper prints them"]
    rows = []
    for row in printed.filter(pl.col("differs").fill_null(False)).iter_rows(named=True):
        for what in ("boxes", "frames", "tubes"):
            theirs = row[f"printed_{what}"]
            if theirs is not None and theirs != row[what]:
                rows.append((row["kind"], row["label"] or "total", row["split"], what, row[what], theirs))
    if rows:
        lines.append(
            terminal.format_table(["kind", "class", "split", "what", "counted", "printed"], rows, left=4)
        )
    return "\n\n".join(lines)


def _data(scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None) -> dict[str, Any]:
    return {
        "dataset": scenes.meta.dataset,
        "source_digest": scenes.meta.source_digest,
        "videos": len(scenes.videos),
        "counts": (counts if printed is None else printed).to_dicts(),
        "compared_with_print": printed is not None,
        "dropped": count_refusals(scenes, "the truth"),
        "notes": list(list_warnings(scenes)),
    }


def _save(
    scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None, folder: Path, *, overwrite: bool
) -> None:
    from roadaware.reports.audit import build_stats_section

    title = f"Counts of {scenes.meta.dataset or 'a data set'}"
    page = report(
        [build_stats_section(counts, printed)], title=title, subtitle="; ".join(_format_refused(scenes))
    )
    files = {
        _ROWS: encode_parquet(counts if printed is None else printed),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    write_result(folder, folders.add_marker(files, _data(scenes, counts, printed)), overwrite=overwrite)


# `roadaware stats coda`: what a set of corner cases is made of, beside what the paper prints of CODA.

_TABLES = ("parts", "classes", "top", "tags")
_STATS_PAGE = "report.html"


def count_corner_cases(
    path: Path, corner: Path | None, folder: Path | None, *, overwrite: bool, strict: bool
) -> Outcome:
    """The composition of a set of corner cases.

    Args:
        path: COCO annotations, saved tables or synthetic scenes.
        corner: those of the corner cases, where they are in a file of their own.
        folder: where tables and a page go; None for nowhere.
        overwrite: replace an earlier result there.
        strict: whether refused rows are a failure.

    Raises:
        InputError: if the annotations cannot be read.
    """

    scenes = open_truth(path, corner)
    version = "2022" if corner is not None else infer_version(scenes)
    with console.log_step("counting"):
        held = compute_composition(scenes, version)
    found = {**count_refusals(scenes, "the truth")}
    data = {
        "dataset": scenes.meta.dataset,
        "common_classes_as_in": version,
        **{name: getattr(held, name).to_dicts() for name in _TABLES},
        "facts": held.facts,
        "dropped": found,
        "notes": list(list_warnings(scenes)),
    }
    if folder is not None:
        _save_composition(scenes, held, data, folder, overwrite=overwrite)
    told = [f"{n:,} {format_cell(what)}" for what, n in found.items()]
    failed = f"--strict: {'; '.join(told)}" if strict and found else None
    return Outcome("\n\n".join([*_head(scenes, version, told), *_format_composition(held)]), data, failed)


def _head(scenes: Scenes, version: str, told: list[str]) -> list[str]:
    name = format_cell(scenes.meta.dataset or "a set")
    return [
        f"{name}: corner cases; common classes as in {version}",
        *told,
        *map(format_cell, list_warnings(scenes)),
    ]


def _format_composition(held: Composition) -> list[str]:
    """The tables as in print, with a bar for each class on a logarithmic scale."""

    parts = [
        [
            row["part"],
            *(_beside(row[n], row[f"printed_{n}"]) for n in ("scenes", "classes", "instances")),
            row["weather"],
            row["period"],
        ]
        for row in held.parts.iter_rows(named=True)
    ]
    found = [format_table(["part", "scenes", "classes", "instances", "weather", "period"], parts)]
    most = max(held.classes["objects"].to_list(), default=0)
    rows = [
        [
            row["label"],
            row["super_class"] or "-",
            row["common"] or "novel",
            row["objects"],
            row["corner_cases"],
            *("yes" if row[name] else "-" for name in TRAINING_SETS),
            format_bar(row["objects"], most),
        ]
        for row in held.classes.iter_rows(named=True)
    ]
    header = ["class", "super-class", "common", "objects", "corner cases", *TRAINING_SETS, "log scale"]
    if rows:
        found.append(format_table(header, rows, left=3))
        top = [
            [r["part"], r["rank"], r["label"], r["objects"], format_number(r["share"])]
            for r in held.top.to_dicts()
        ]
        found.append(format_table(["part", "rank", "class", "corner cases", "share"], top))
    tags = [
        [r["tag"], r["value"], r["scenes"], format_number(r["share"]), format_number(r["printed_share"], 2)]
        for r in held.tags.to_dicts()
    ]
    if tags:
        found.append(format_table(["", "value", "scenes", "share", "printed of CODA"], tags, left=2))
    found.append(
        "\n".join(f"{name.replace('_', ' ')}: {format_number(value)}" for name, value in held.facts.items())
    )
    return found


def _beside(value: int, printed: int | None) -> str:
    return f"{value:,}" if printed is None else f"{value:,} ({printed:,})"


def _save_composition(
    scenes: Scenes, held: Composition, data: dict[str, Any], folder: Path, *, overwrite: bool
) -> None:
    from roadaware.reports.corner_section import build_composition_section

    title = f"Corner cases of {scenes.meta.dataset or 'a set'}"
    page = report([build_composition_section(held, title=title, notes=list_warnings(scenes))], title=title)
    files = {f"{name}.parquet": encode_parquet(getattr(held, name)) for name in _TABLES}
    files[_STATS_PAGE] = page.encode("utf-8", errors="backslashreplace")
    write_result(folder, folders.add_marker(files, data), overwrite=overwrite)
