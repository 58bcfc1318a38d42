"""How many boxes and tubes each class has, as a section of a report: tables as in print, and bars."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.road_counts import table
from roadaware.reports.page import Block, Cell, Mark, Note, Pictures, Section, Table
from roadaware.reports.picture import BLUE, FULL, GREY, INK, ORANGE, Picture, canvas, styled
from roadaware.reports.text import count, sentence, short, words

_ROW_IN, _FOOT_IN = 0.21, 1.0


def stats_section(
    counts: pl.DataFrame, printed: pl.DataFrame | None = None, *, title: str = "Counts"
) -> Section:
    """Boxes and tubes by class and split.

    Args:
        counts: what `roadaware.analysis.road_counts.count` gave.
        printed: the same beside the paper's, what `beside_print` gave; None where it counts another set.
        title: heading of the section.
    """
    kinds = counts["kind"].unique(maintain_order=True).to_list()
    pictures = [count_bars(counts, kind, printed) for kind in kinds if _classes(counts, kind)]
    blocks: list[Block] = [Pictures(tuple(pictures), "Whole set")] if pictures else []
    blocks += [_printed_note(printed)] if printed is not None else []
    blocks += [_table(counts, kind) for kind in kinds]
    if printed is not None and (found := _differences(printed)) is not None:
        blocks.append(found)
    return Section(title, tuple(_says(counts, printed)), tuple(blocks))


def count_bars(counts: pl.DataFrame, kind: str, printed: pl.DataFrame | None = None) -> Picture:
    """Boxes (or frames) and tubes of each class of a kind in the whole set, on a logarithmic scale.

    Args:
        counts: what `roadaware.analysis.road_counts.count` gave.
        kind: one of its kinds.
        printed: adds the paper's numbers as marks; see `stats_section`.
    """
    rows = (counts if printed is None else printed).filter(
        pl.col("kind") == kind, pl.col("split") == "all", pl.col("label").is_not_null()
    )
    labels = rows["label"].to_list()
    boxes = rows.select(pl.coalesce("boxes", "frames")).to_series().fill_null(0).to_list()
    tubes = rows["tubes"].fill_null(0).to_list()
    what = "frames" if rows["boxes"].null_count() == len(rows) else "boxes"
    with styled():
        figure, axes = canvas(FULL, _FOOT_IN + _ROW_IN * 2 * max(1, len(labels)) * 0.75)
        for place, (first, second) in enumerate(zip(boxes, tubes, strict=True)):
            axes.barh(place - 0.19, max(first, 0.5), height=0.36, color=BLUE)
            axes.barh(place + 0.19, max(second, 0.5), height=0.36, color=ORANGE)
        if printed is not None:
            marks = {
                "boxes": rows.select(pl.coalesce("printed_boxes", "printed_frames")).to_series(),
                "tubes": rows["printed_tubes"],
            }
            for shift, series in zip((-0.19, 0.19), marks.values(), strict=True):
                held = [(place + shift, value) for place, value in enumerate(series.to_list()) if value]
                axes.scatter(
                    [v for _, v in held], [p for p, _ in held], marker="|", s=40, color=INK, zorder=3
                )
        most = max([10, *boxes, *tubes])
        powers = [10**power for power in range(len(str(most)))]
        axes.set_xscale("log")
        axes.set_xticks(powers, [count(power) for power in powers])
        axes.minorticks_off()
        axes.set(xlim=(0.5, 2 * most), xlabel="number (logarithmic)")
        axes.set_yticks(range(len(labels)), [short(label, 30) for label in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.set_title(_legend(what, printed), loc="left", fontsize=8.5, color=GREY)
    told = "; ".join(f"{n} {count(b)}/{count(t)}" for n, b, t in zip(labels, boxes, tubes, strict=True))
    mark = " Black marks are the printed numbers." if printed is not None else ""
    caption = f"{what.capitalize()} (blue) and tubes (orange) of each class.{mark} {told}."
    return Picture(f"{sentence(words(kind))}: {what} and tubes of each class", caption, figure)


def _legend(what: str, printed: pl.DataFrame | None) -> str:
    return f"blue: {what}, orange: tubes" + ("" if printed is None else ", mark: as printed")


def _classes(counts: pl.DataFrame, kind: str) -> bool:
    return counts.filter(pl.col("kind") == kind, pl.col("label").is_not_null()).height > 0


def _table(counts: pl.DataFrame, kind: str) -> Table:
    """One kind in the form of print."""
    held = table(counts, kind)
    rows = tuple(
        tuple("–" if cell is None else _grouped(str(cell)) for cell in row) for row in held.iter_rows()
    )
    head = (kind, *held.columns[1:])
    return Table(head, rows, "l" + "r" * (len(head) - 1), f"Classes of {kind}", "Boxes/tubes in each split.")


def _grouped(cell: str) -> str:
    """`559142/7029` with separators of thousands; a name as it is."""
    return "/".join(f"{int(part):,}" if part.isdecimal() else part for part in cell.split("/"))


def _differences(printed: pl.DataFrame) -> Table | None:
    """The cells that are not as printed."""
    rows: list[tuple[Cell, ...]] = []
    for row in printed.filter(pl.col("differs").fill_null(False)).iter_rows(named=True):
        for what in ("boxes", "frames", "tubes"):
            theirs = row[f"printed_{what}"]
            if theirs is not None and theirs != row[what]:
                name = f"{row['kind']} {row['label'] or 'total'}"
                rows.append(
                    (
                        name,
                        row["split"],
                        what,
                        count(row[what]),
                        Mark(count(theirs), "doubt"),
                        row["note"] or "",
                    )
                )
    if not rows:
        return None
    head = ("class", "split", "what", "counted", "printed", "note")
    return Table(head, tuple(rows), "lllrrl", "Not as printed")


def _printed_note(printed: pl.DataFrame) -> Note:
    compared = printed["differs"].drop_nulls()
    return Note(
        f"{count(len(compared) - int(compared.sum()))} of {count(len(compared))} counts that the paper "
        "prints are as printed (Singh et al., TPAMI 2022, Tables 7 and 15 to 23)."
    )


def _says(counts: pl.DataFrame, printed: pl.DataFrame | None) -> list[str]:
    whole = counts.filter(pl.col("split") == "all")
    totals = whole.filter(pl.col("label").is_null())
    told = [
        f"{count(row['boxes'] if row['boxes'] is not None else row['frames'])} of {row['kind']}"
        for row in totals.iter_rows(named=True)
    ]
    said = [f"Labels: {', '.join(told)}."] if told else []
    absent = whole.filter(pl.col("label").is_not_null(), pl.coalesce("boxes", "frames").fill_null(0) == 0)
    if len(absent):
        names = [f"{row['kind']} {row['label']}" for row in absent.head(8).iter_rows(named=True)]
        more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
        said.append(f"Classes that do not occur: {', '.join(names)}{more}.")
    if printed is not None and int(np.count_nonzero(printed["differs"].fill_null(False).to_numpy())):
        said.append(_printed_note(printed).text)
    return said
