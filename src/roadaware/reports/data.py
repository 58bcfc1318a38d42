"""What was read, as a section of a report: how much of everything, and what was not taken and why."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from roadaware.reports.page import Block, Cell, Facts, Section, Table
from roadaware.reports.text import count, words
from roadaware.scenes.tables import Scenes

SHOWN_REASONS = 20


def data_section(scenes: Scenes, *, title: str = "Data", about: Mapping[str, str] | None = None) -> Section:
    """What scenes hold: rows of each table, splits, samples, and the rejected rows by reason.

    Args:
        scenes: what was read, with samples or without.
        title: heading of the section.
        about: what else the reader should know, such as source or digest.
    """
    meta = scenes.meta
    facts = [("dataset", meta.dataset or "not named"), *(about or {}).items()]
    facts += [(words(name), f"{count(len(frame))} rows") for name, frame in scenes.filled().items()]
    blocks: list[Block] = [Facts(tuple(facts))]
    blocks += [block for block in (_splits(scenes), _samples(scenes), _rejected(scenes)) if block]
    held = ((scenes.videos, "videos"), (scenes.tubes, "tracks"), (scenes.boxes, "boxes"))
    amounts = ", ".join(f"{count(len(frame))} {name}" for frame, name in held)
    lost = len(scenes.rejected)
    tail = f"{count(lost)} items were not taken, and a table says why." if lost else "Nothing was rejected."
    return Section(title, (f"{meta.dataset or 'The set'} holds {amounts}. {tail}",), tuple(blocks))


def _splits(scenes: Scenes) -> Table | None:
    if "splits" not in scenes.videos.columns or scenes.videos.is_empty():
        return None
    tracks = scenes.tubes.group_by(pl.col("video").cast(pl.String)).agg(pl.len().alias("tracks"))
    held = (
        scenes.videos.select(pl.col("video").cast(pl.String), "splits").explode("splits").drop_nulls("splits")
    )
    table = (
        held.join(tracks, on="video", how="left")
        .group_by("splits")
        .agg(pl.len().alias("videos"), pl.col("tracks").fill_null(0).sum())
        .sort("splits")
    )
    rows = tuple((str(name), count(videos), count(n)) for name, videos, n in table.iter_rows())
    return Table(("split", "videos", "tracks"), rows, "lrr", "Splits") if rows else None


def _samples(scenes: Scenes) -> Table | None:
    samples = scenes.samples
    if samples.is_empty() or not {"split", "kind", "label"} <= set(samples.columns):
        return None
    labels = scenes.meta.vocabularies.get(str(samples["kind"][0]), ())
    split = pl.col("split").cast(pl.String)
    table = samples.group_by(split, "label").agg(
        pl.len().alias("n"), pl.col("tube").n_unique().alias("tracks")
    )
    rows: list[tuple[Cell, ...]] = []
    for name in samples["split"].cast(pl.String).unique(maintain_order=True):
        part = table.filter(split == name).sort("label")
        for label, n, tracks in part.select("label", "n", "tracks").iter_rows():
            called = labels[label] if label is not None and label < len(labels) else f"class {label}"
            rows.append((str(name), words(called), count(n), count(tracks)))
    return Table(("split", "answer", "samples", "pedestrians"), tuple(rows), "llrr", "Samples")


def _rejected(scenes: Scenes) -> Table | None:
    if scenes.rejected.is_empty():
        return None
    table = (
        scenes.rejected.group_by(pl.col("table").cast(pl.String), pl.col("reason").cast(pl.String))
        .agg(pl.len().alias("n"), pl.col("file").cast(pl.String).min())
        .sort(["n", "table", "reason"], descending=[True, False, False])
    )
    shown = table.head(SHOWN_REASONS).select("table", "reason", "n", "file")
    rows = tuple((words(of), why, count(n), file) for of, why, n, file in shown.iter_rows())
    more = len(table) - len(shown)
    caption = f"{count(more)} further reasons are not shown." if more > 0 else ""
    return Table(("table", "reason", "items", "first file"), rows, "llrl", "Not taken", caption)
