"""What a dataset holds as the tables that the commands print: rows, classes, splits, what was refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.corner_tables import compute_composition
from roadaware.analysis.evaluation.corner_cases import open_truth
from roadaware.analysis.evaluation.event_inputs import convert_kinds
from roadaware.analysis.event_findings import list_warnings
from roadaware.analysis.road_counts import compare_printed_counts, count, count_table
from roadaware.datasets import READERS
from roadaware.datasets.box_rows import KIND
from roadaware.datasets.facts import FACTS
from roadaware.errors import UsageError
from roadaware.protocols.coda import TRAINING_SETS, infer_version
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_duration,
    format_number,
    format_table,
)
from roadaware.steps import log_step

if TYPE_CHECKING:
    from roadaware.analysis.corner_tables import Composition
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Predictions, Scenes

_SHOWN = 20


def describe_scenes(scenes: Scenes, elapsed_s: float) -> dict[str, Any]:
    """What was read and in which time, JSON-ready: rows, videos of each split, what was refused, notes."""
    splits: list[Any] = []
    if "splits" in scenes.videos.columns:
        splits = scenes.videos["splits"].explode().drop_nulls().to_list()
    return {
        "dataset": scenes.meta.dataset,
        "licence": scenes.meta.licence,
        "source_digest": scenes.meta.source_digest,
        "seconds": round(elapsed_s, 3),
        "rows": {name: len(frame) for name, frame in scenes.filled().items()},
        "rows_read": dict(scenes.meta.rows_read),
        "splits": {str(name): splits.count(name) for name in sorted(set(splits))},
        "rejected": scenes.rejected.to_dicts(),
        "notes": {key: value for key, value in scenes.meta.notes.items() if _is_plain(value)},
    }


def _is_plain(value: Any) -> bool:
    """Whether a note can stand in JSON as it is."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    finite = isinstance(value, float) and value == value
    return value is None or isinstance(value, str | int | bool) or finite


def format_scenes(facts: dict[str, Any]) -> str:
    """What was read, as `describe_scenes` has it, for a terminal."""
    lines = [f"{format_cell(facts['dataset'])}, read in {format_duration(facts['seconds'])}", ""]
    rows = [(name, f"{count:,}") for name, count in facts["rows"].items()]
    lines.append(format_table(["table", "rows"], rows))
    if facts["splits"]:
        lines += ["", format_table(["split", "videos"], facts["splits"].items())]
    lines.append("")
    refused = facts["rejected"]
    if refused:
        header = ["table", "file", "line", "item", "reason"]
        shown = [
            (row["table"], row["file"], row["line"] or "", row["item"] or "", row["reason"])
            for row in refused[:_SHOWN]
        ]
        lines += [f"{len(refused)} refused:", format_table(header, shown, left=5)]
        if len(refused) > _SHOWN:
            lines.append(f"... and {len(refused) - _SHOWN} more; --json lists all of them")
    else:
        lines.append("nothing was refused")
    odd = facts["notes"].get("warnings", [])
    if odd:
        messages = [f"{item['what']}: {item['count']}, first {item['example']}" for item in odd]
        lines += ["", "odd, but read:", format_bullets(messages)]
    left = [f"{what}: {count:,}" for what, count in facts["notes"].get("left_out", {}).items() if count]
    if left:
        lines += ["", "left out:", format_bullets(left)]
    return "\n".join([*lines, "", f"licence: {format_cell(facts['licence']) or 'not stated'}"])


# Counts of classes, with bars of characters on a logarithmic scale.

_BAR = 24


def format_bar(value: int, most: int) -> str:
    """A bar whose length is the logarithm of a count, padded to a fixed width; empty for 0.

    >>> format_bar(1000, 1000).count("#"), format_bar(1, 1000).count("#"), format_bar(0, 1000)
    (24, 1, '')
    """
    if value < 1:
        return ""
    share = log(value) / log(most) if most > 1 else 1.0
    return ("#" * max(1, round(_BAR * share))).ljust(_BAR)


def format_kind_counts(counts: pl.DataFrame, kind: str) -> str:
    """One kind of labels in the form of print, with a bar of its boxes on a logarithmic scale."""
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
    return format_table([kind, *held.columns[1:], "log scale"], rows)


def format_printed_counts(printed: pl.DataFrame) -> str:
    """How many counts are as the paper prints them, and those that are not."""
    compared = printed["differs"].drop_nulls()
    lines = [f"{len(compared) - int(compared.sum())} of {len(compared)} counts are as the paper prints them"]
    rows = []
    for row in printed.filter(pl.col("differs").fill_null(False)).iter_rows(named=True):
        for what in ("boxes", "frames", "tubes"):
            theirs = row[f"printed_{what}"]
            if theirs is not None and theirs != row[what]:
                rows.append((row["kind"], row["label"] or "total", row["split"], what, row[what], theirs))
    if rows:
        lines.append(format_table(["kind", "class", "split", "what", "counted", "printed"], rows, left=4))
    return "\n\n".join(lines)


def format_composition(held: Composition) -> list[str]:
    """The tables on a set of corner cases as in print, with a bar for each class on a logarithmic scale."""
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


def format_conversion(
    lines: Sequence[str], lost: Mapping[str, int], where: str, tables: Scenes | Predictions | None = None
) -> str:
    """What was written in the form of another tool, what it cannot hold, and what was refused before.

    Args:
        lines: what was written.
        lost: what the form does not hold, to how many.
        where: the last line.
        tables: whose refused rows are told.
    """
    found = [*lines, *(f"  not held: {n:,} {what}" for what, n in lost.items())]
    if tables is not None and (refused := len(tables.rejected)):
        row = tables.rejected.row(0, named=True)
        place = f"{row['file']}{':' + str(row['line']) if row['line'] else ''}: {row['reason']}"
        found.append(f"  refused when it was read: {refused:,} rows or files, the first {format_cell(place)}")
    return "\n".join([*found, where])


def list_missing_facts(dataset: str, scenes: Scenes) -> list[str]:
    """What the annotations do not say, and how to say it."""
    options = READERS[dataset].options
    found = []
    videos = scenes.videos
    notes = scenes.meta.notes
    if said := notes.get("columns"):
        unread = notes.get("columns_not_read")
        found.append(
            f"columns: {said}; boxes in {notes.get('units')}" + (f"; not read: {unread}" if unread else "")
        )
    if "fps" in options and len(videos) and ("fps" not in videos.columns or videos["fps"].null_count()):
        found.append(
            f"frames a second are not known: --option fps=25, the videos by --media, or the line `fps = 25` in {FACTS}"
        )
    if "unit_boxes" in notes:
        found.append(
            "sizes of images are not known, boxes are in shares of them: --option size=1920x1080, the videos by --media, or "
            f"the line `size = [1920, 1080]` in {FACTS}"
        )
    if dataset == "mot" and len(videos):
        unknown = [
            what
            for what, name in (("frames a second", "fps"), ("sizes of images", "width_px"))
            if name not in videos.columns or videos[name].null_count()
        ]
        if unknown:
            found.append(
                f"{' and '.join(unknown)} are not known: a seqinfo.ini beside each gt/ with frameRate, imWidth and "
                f"imHeight, the videos by --media, or the lines `fps = 25` and `size = [1920, 1080]` in {FACTS}"
            )
    words = scenes.meta.vocabularies.get(KIND, ())
    if "classes" in options and words and all(word.isdigit() for word in words):
        found.append(
            f"names of classes are not known: --option classes=person,car, or the line `classes = [...]` in {FACTS}"
        )
    return found


_TABLES = ("parts", "classes", "top", "tags")


@dataclass(frozen=True)
class Counted:
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


def count_labels(scenes: Scenes, kinds: list[str]) -> Counted:
    """Boxes and tubes by class and split, beside what the paper prints of ROAD.

    Args:
        scenes: whose.
        kinds: of labels; all where there are none.

    Raises:
        UsageError: if the set has no labels of a kind.
    """
    from roadaware.reports.audit import build_stats_section

    with log_step("counting"):
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
    name, videos = scenes.meta.dataset or "set without a name", len(scenes.videos)
    rows = counts if printed is None else printed
    text = [format_kind_counts(counts, kind) for kind in counts["kind"].unique(maintain_order=True)]
    return Counted(
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


def count_corner_cases(path: Path, corner: Path | None) -> Counted:
    """What a set of corner cases is made of, beside what the paper prints of CODA.

    Args:
        path: as `analysis.evaluation.corner_cases.open_truth` takes it.
        corner: the corner cases, where they are in a file of their own.
    """
    from roadaware.reports.corner_section import build_composition_section

    scenes = open_truth(path, corner)
    version = "2022" if corner is not None else infer_version(scenes)
    with log_step("counting"):
        held = compute_composition(scenes, version)
    title = f"Corner cases of {scenes.meta.dataset or 'a set'}"
    tables = {name: getattr(held, name) for name in _TABLES}
    return Counted(
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
