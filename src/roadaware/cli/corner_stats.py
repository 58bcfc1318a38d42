"""`roadaware stats coda`: what a set of corner cases is made of, beside what the paper prints of CODA."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, folders
from roadaware.cli.corner_inputs import open_truth, version_of
from roadaware.cli.event_findings import oddities, refused
from roadaware.cli.options import Outcome
from roadaware.cli.text import cell, number, table

if TYPE_CHECKING:
    from roadaware.analysis.corner_composition import Composition
    from roadaware.scenes.tables import Scenes

_TABLES = ("parts", "classes", "top", "tags")
_PAGE = "report.html"


def corner_stats(
    path: Path, corner: Path | None, folder: Path | None, *, overwrite: bool, strict: bool
) -> Outcome:
    """The composition of a set of corner cases.

    Args:
        path: COCO annotations, saved tables or made-up scenes.
        corner: those of the corner cases, where they are in a file of their own.
        folder: where tables and a page go; None for nowhere.
        overwrite: replace an earlier result there.
        strict: whether refused rows are a failure.

    Raises:
        InputError: if the annotations cannot be read.
    """
    from roadaware.analysis.corner_composition import composition

    scenes = open_truth(path, corner)
    version = version_of(scenes, corner)
    with console.working("counting"):
        held = composition(scenes, version)
    found = {**refused(scenes, "the truth")}
    data = {
        "dataset": scenes.meta.dataset,
        "common_classes_as_in": version,
        **{name: getattr(held, name).to_dicts() for name in _TABLES},
        "facts": held.facts,
        "dropped": found,
        "notes": list(oddities(scenes)),
    }
    if folder is not None:
        _save(scenes, held, data, folder, overwrite=overwrite)
    told = [f"{n:,} {cell(what)}" for what, n in found.items()]
    failed = f"--strict: {'; '.join(told)}" if strict and found else None
    return Outcome("\n\n".join([*_head(scenes, version, told), *_text(held)]), data, failed)


def _head(scenes: Scenes, version: str, told: list[str]) -> list[str]:
    name = cell(scenes.meta.dataset or "a set")
    return [f"{name}: corner cases; common classes as in {version}", *told, *map(cell, oddities(scenes))]


def _text(held: Composition) -> list[str]:
    """The tables as in print, with a bar for each class on a logarithmic scale."""
    from roadaware.cli.stats import bar
    from roadaware.protocols.coda import TRAINING_SETS

    parts = [
        [
            row["part"],
            *(_beside(row[n], row[f"printed_{n}"]) for n in ("scenes", "classes", "instances")),
            row["weather"],
            row["period"],
        ]
        for row in held.parts.iter_rows(named=True)
    ]
    found = [table(["part", "scenes", "classes", "instances", "weather", "period"], parts)]
    most = max(held.classes["objects"].to_list(), default=0)
    rows = [
        [
            row["label"],
            row["super_class"] or "-",
            row["common"] or "novel",
            row["objects"],
            row["corner_cases"],
            *("yes" if row[name] else "-" for name in TRAINING_SETS),
            bar(row["objects"], most),
        ]
        for row in held.classes.iter_rows(named=True)
    ]
    header = ["class", "super-class", "common", "objects", "corner cases", *TRAINING_SETS, "log scale"]
    if rows:
        found.append(table(header, rows, left=3))
        top = [
            [r["part"], r["rank"], r["label"], r["objects"], number(r["share"])] for r in held.top.to_dicts()
        ]
        found.append(table(["part", "rank", "class", "corner cases", "share"], top))
    tags = [
        [r["tag"], r["value"], r["scenes"], number(r["share"]), number(r["printed_share"], 2)]
        for r in held.tags.to_dicts()
    ]
    if tags:
        found.append(table(["", "value", "scenes", "share", "printed of CODA"], tags, left=2))
    found.append(
        "\n".join(f"{name.replace('_', ' ')}: {number(value)}" for name, value in held.facts.items())
    )
    return found


def _beside(value: int, printed: int | None) -> str:
    return f"{value:,}" if printed is None else f"{value:,} ({printed:,})"


def _save(scenes: Scenes, held: Composition, data: dict[str, Any], folder: Path, *, overwrite: bool) -> None:
    from roadaware.cli.runs import parquet
    from roadaware.reports.corner_composition import composition_section
    from roadaware.reports.page import report

    title = f"Corner cases of {scenes.meta.dataset or 'a set'}"
    page = report([composition_section(held, title=title, notes=oddities(scenes))], title=title)
    files = {f"{name}.parquet": parquet(getattr(held, name)) for name in _TABLES}
    files[_PAGE] = page.encode("utf-8", errors="backslashreplace")
    folders.put_folder(folder, folders.with_marker(files, data), overwrite=overwrite)
    console.note(f"wrote {folder} (report: {folder / _PAGE})")
