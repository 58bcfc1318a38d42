"""`roadaware stats`: how many boxes and tubes each class has in each split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, datasets, folders, outputs, text
from roadaware.cli.event_findings import oddities, refused
from roadaware.cli.options import (
    USUAL,
    Common,
    DatasetPath,
    Outcome,
    OutputFolder,
    Overwrite,
    Several,
    Switch,
)

if TYPE_CHECKING:
    import polars as pl

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
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
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
    from roadaware.analysis.road_counts import beside_print, count
    from roadaware.cli.event_inputs import house_kinds
    from roadaware.errors import UsageError

    if dataset == _CODA:
        from roadaware.cli.corner_stats import corner_stats

        return corner_stats(path, corner, folder, overwrite=overwrite, strict=strict)
    if corner is not None:
        raise UsageError(f"--corner goes with {_CODA}")
    scenes = datasets.opened(dataset, path)
    with console.working("counting"):
        counts = count(scenes)
        printed = beside_print(counts, scenes)
    kinds = list(house_kinds(kinds or [], scenes))
    known = counts["kind"].unique(maintain_order=True).to_list()
    unknown = sorted(set(kinds) - set(known))
    if unknown:
        raise UsageError(f"no labels of kind {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
    counts = _of_kinds(counts, kinds)
    printed = None if printed is None else _of_kinds(printed, kinds)
    if folder is not None:
        _save(scenes, counts, printed, folder, overwrite=overwrite)
    failed = "--strict: " + "; ".join(_refused(scenes)) if strict and len(scenes.rejected) else None
    return Outcome(_text(scenes, counts, printed), _data(scenes, counts, printed), failed)


def _refused(scenes: Scenes) -> list[str]:
    return [f"{n:,} {text.cell(what)}" for what, n in refused(scenes, "the truth").items()]


def _of_kinds(rows: pl.DataFrame, kinds: list[str] | None) -> pl.DataFrame:
    import polars as pl

    return rows.filter(pl.col("kind").is_in(kinds)) if kinds else rows


def _text(scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None) -> str:
    parts = [
        f"{text.cell(scenes.meta.dataset)}: {len(scenes.videos):,} videos; boxes/tubes by class and split"
    ]
    parts += [*_refused(scenes), *map(text.cell, oddities(scenes))]
    parts += [_kind_text(counts, kind) for kind in counts["kind"].unique(maintain_order=True)]
    if printed is not None:
        parts.append(_printed_text(printed))
    return "\n\n".join(parts)


def _kind_text(counts: pl.DataFrame, kind: str) -> str:
    """One kind in the form of print, with a bar of its boxes on a logarithmic scale."""
    import polars as pl

    from roadaware.analysis.road_counts import table

    held = table(counts, kind)
    whole = counts.filter(pl.col("kind") == kind, pl.col("split") == "all")
    sizes = whole.select(pl.coalesce("boxes", "frames")).to_series().fill_null(0).to_list()
    classes = [n for n, label in zip(sizes, whole["label"].to_list(), strict=True) if label is not None]
    rows = [
        [
            *("-" if cell is None else str(cell) for cell in row),
            "" if row[0] == "total" else bar(n, max(classes)),
        ]
        for row, n in zip(held.iter_rows(), sizes, strict=True)
    ]
    return text.table([kind, *held.columns[1:], "log scale"], rows)


def bar(value: int, most: int) -> str:
    """A bar whose length is the logarithm of a count, padded to a fixed width; empty for 0.

    >>> bar(1000, 1000).count("#"), bar(1, 1000).count("#"), bar(0, 1000)
    (24, 1, '')
    """
    from math import log

    if value < 1:
        return ""
    share = log(value) / log(most) if most > 1 else 1.0
    return ("#" * max(1, round(_BAR * share))).ljust(_BAR)


def _printed_text(printed: pl.DataFrame) -> str:
    import polars as pl

    compared = printed["differs"].drop_nulls()
    lines = [f"{len(compared) - int(compared.sum())} of {len(compared)} counts are as the paper prints them"]
    rows = []
    for row in printed.filter(pl.col("differs").fill_null(False)).iter_rows(named=True):
        for what in ("boxes", "frames", "tubes"):
            theirs = row[f"printed_{what}"]
            if theirs is not None and theirs != row[what]:
                rows.append((row["kind"], row["label"] or "total", row["split"], what, row[what], theirs))
    if rows:
        lines.append(text.table(["kind", "class", "split", "what", "counted", "printed"], rows, left=4))
    return "\n\n".join(lines)


def _data(scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None) -> dict[str, Any]:
    return {
        "dataset": scenes.meta.dataset,
        "source_digest": scenes.meta.source_digest,
        "videos": len(scenes.videos),
        "counts": (counts if printed is None else printed).to_dicts(),
        "compared_with_print": printed is not None,
        "dropped": refused(scenes, "the truth"),
        "notes": list(oddities(scenes)),
    }


def _save(
    scenes: Scenes, counts: pl.DataFrame, printed: pl.DataFrame | None, folder: Path, *, overwrite: bool
) -> None:
    from roadaware.cli.runs import parquet
    from roadaware.reports.page import report
    from roadaware.reports.stats import stats_section

    title = f"Counts of {scenes.meta.dataset or 'a data set'}"
    page = report([stats_section(counts, printed)], title=title, subtitle="; ".join(_refused(scenes)))
    files = {
        _ROWS: parquet(counts if printed is None else printed),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    folders.put_folder(
        folder, folders.with_marker(files, _data(scenes, counts, printed)), overwrite=overwrite
    )
    console.note(f"wrote {folder} (report: {folder / _PAGE})")
