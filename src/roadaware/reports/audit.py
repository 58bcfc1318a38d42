"""Audit section of a report: findings in a dataset or protocol, with reasons and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from roadaware.analysis.audit import Audit, Example, Finding
from roadaware.analysis.audit.checks import SEVERITIES
from roadaware.analysis.audit.requirements import REQUIREMENTS
from roadaware.analysis.road_counts import count_table
from roadaware.reports.bars import Share, plot_shares
from roadaware.reports.configs import format_config
from roadaware.reports.page import (
    BLUE,
    FULL,
    GREY,
    INK,
    ORANGE,
    Block,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    create_canvas,
    set_style,
)
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_name,
    format_number,
    format_percent,
)
from roadaware.scenes.tables import Scenes

TONES = {"serious": "bad", "warning": "doubt", "note": "fair"}
MEANINGS = {
    "serious": "a published number means something else than it seems to",
    "warning": "some rows are wrong or unsure",
    "note": "worth knowing",
}


def audit_section(audit: Audit, *, title: str | None = None) -> Section:
    """Every finding with its share, reason, advice, numbers and examples; then what was not found.

    Args:
        audit: what `audit` gave.
        title: heading; the dataset's name where not given.
    """
    how = ("samples by", format_config(audit.protocol))
    if audit.protocol.get("task") == REQUIREMENTS:
        how = ("held against", f"{audit.protocol['requirements']} requirements of {audit.protocol['type']}")
    blocks: list[Block] = [Facts((how,))]
    if audit.findings:
        drawn = plot_shares([Share(_name(found), found.count, found.out_of) for found in audit.findings])
        blocks += [Pictures((drawn,)), _overview(audit)]
    for finding in audit.findings:
        blocks.extend(_finding(finding))
    blocks.extend(_rest(audit))
    return Section(title or f"Audit of {audit.dataset}", tuple(_says(audit)), tuple(blocks))


def _name(finding: Finding) -> str:
    return _spoken(finding.name)


def _spoken(name: str) -> str:
    return format_name(name.replace("-", "_"))


def _overview(audit: Audit) -> Table:
    rows: list[tuple[TableCell, ...]] = []
    for severity in SEVERITIES:
        held = audit.of_severity(severity)
        if held:
            rows.append((f"{severity}: {MEANINGS[severity]}",))
        for found in held:
            mark = Mark(format_percent(found.count, found.out_of), TONES[severity])
            rows.append((_name(found), format_count(found.count), format_count(found.out_of), mark))
    return Table(("finding", "found", "of", "share"), tuple(rows), "lrrr", "All findings")


def _finding(finding: Finding) -> Iterator[Block]:
    """One finding in full."""
    heading = f"{_name(finding)} ({finding.severity})"
    yield Note(finding.sentence, TONES[finding.severity], heading[:1].upper() + heading[1:])
    facts = [("why it matters", finding.why), ("what to do", finding.advice)]
    facts += [(format_name(name), _value(value)) for name, value in finding.measures.items()]
    yield Facts(tuple(facts))
    if finding.table is not None:
        rows = tuple(tuple(_value(value) for value in row) for row in finding.table.rows)
        numeric = [
            all(value is None or isinstance(value, int | float) for value in column)
            for column in zip(*finding.table.rows, strict=True)
        ] or [False] * len(finding.table.columns)
        align = "".join("r" if is_number and place else "l" for place, is_number in enumerate(numeric))
        yield Table(tuple(map(format_name, finding.table.columns)), rows, align)
    if finding.examples:
        yield _examples(finding.examples)


def _examples(examples: tuple[Example, ...]) -> Table:
    """The places to look at, with the columns in which something stands."""
    columns = {
        "video": [one.video for one in examples],
        "pedestrian": [one.pedestrian for one in examples],
        "frame": [None if one.frame is None else str(one.frame) for one in examples],
        "what is there": [one.note or None for one in examples],
    }
    held = {name: values for name, values in columns.items() if any(values)}
    rows = tuple(tuple(value or "–" for value in row) for row in zip(*held.values(), strict=True))
    align = "".join("r" if name == "frame" else "l" for name in held)
    return Table(tuple(held), rows, align, "Examples")


def _rest(audit: Audit) -> Iterator[Block]:
    facts = []
    if audit.passed:
        facts.append(("checked, nothing found", ", ".join(map(_spoken, audit.passed))))
    facts += [(f"not checked: {_spoken(name)}", why) for name, why in audit.skipped.items()]
    if facts:
        yield Facts(tuple(facts), "Other checks")


def _says(audit: Audit) -> Iterator[str]:
    for finding in audit.of_severity("serious"):
        yield finding.sentence
    others = [f"{len(audit.of_severity(s))} {s}s" for s in ("warning", "note") if audit.of_severity(s)]
    if others:
        yield f"Less serious: {' and '.join(others)}."
    if not audit.findings:
        yield f"{len(audit.passed)} checks found nothing wrong with {audit.dataset}."


def _value(value: str | int | float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_count(value)
    return format_number(value) if isinstance(value, float) else value


# What was read, as a section of a report: how much of everything, and what was not taken and why.

SHOWN_REASONS = 20


def build_data_section(
    scenes: Scenes, *, title: str = "Data", about: Mapping[str, str] | None = None
) -> Section:
    """Section on the data: rows of each table, splits, samples, and the rejected rows by reason.

    Args:
        scenes: what was read, with samples or without.
        title: heading of the section.
        about: what else the reader should know, such as source or digest.
    """
    meta = scenes.meta
    facts = [("dataset", meta.dataset or "not named"), *(about or {}).items()]
    facts += [
        (format_name(name), f"{format_count(len(frame))} rows") for name, frame in scenes.filled().items()
    ]
    blocks: list[Block] = [Facts(tuple(facts))]
    blocks += [block for block in (_splits(scenes), _samples(scenes), _build_rejected_table(scenes)) if block]
    held = ((scenes.videos, "videos"), (scenes.tubes, "tracks"), (scenes.boxes, "boxes"))
    amounts = ", ".join(f"{format_count(len(frame))} {name}" for frame, name in held)
    lost = len(scenes.rejected)
    tail = (
        f"{format_count(lost)} items were not taken, and a table says why."
        if lost
        else "Nothing was rejected."
    )
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
    rows = tuple((str(name), format_count(videos), format_count(n)) for name, videos, n in table.iter_rows())
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
    rows: list[tuple[TableCell, ...]] = []
    for name in samples["split"].cast(pl.String).unique(maintain_order=True):
        part = table.filter(split == name).sort("label")
        for label, n, tracks in part.select("label", "n", "tracks").iter_rows():
            called = labels[label] if label is not None and label < len(labels) else f"class {label}"
            rows.append((str(name), format_name(called), format_count(n), format_count(tracks)))
    return Table(("split", "answer", "samples", "pedestrians"), tuple(rows), "llrr", "Samples")


def _build_rejected_table(scenes: Scenes) -> Table | None:
    if scenes.rejected.is_empty():
        return None
    table = (
        scenes.rejected.group_by(pl.col("table").cast(pl.String), pl.col("reason").cast(pl.String))
        .agg(pl.len().alias("n"), pl.col("file").cast(pl.String).min())
        .sort(["n", "table", "reason"], descending=[True, False, False])
    )
    shown = table.head(SHOWN_REASONS).select("table", "reason", "n", "file")
    rows = tuple((format_name(of), why, format_count(n), file) for of, why, n, file in shown.iter_rows())
    more = len(table) - len(shown)
    caption = f"{format_count(more)} further reasons are not shown." if more > 0 else ""
    return Table(("table", "reason", "items", "first file"), rows, "llrl", "Not taken", caption)


# How many boxes and tubes each class has, as a section of a report: tables as in print, and bars.

_ROW_IN, _FOOT_IN = 0.21, 1.0


def build_stats_section(
    counts: pl.DataFrame, printed: pl.DataFrame | None = None, *, title: str = "Counts"
) -> Section:
    """Boxes and tubes by class and split.

    Args:
        counts: what `roadaware.analysis.road_counts.count` gave.
        printed: the same beside the paper's, what `beside_print` gave; None where it counts another set.
        title: heading of the section.
    """
    kinds = counts["kind"].unique(maintain_order=True).to_list()
    images = [
        count_bars(counts, kind, printed)
        for kind in kinds
        if (counts.filter(pl.col("kind") == kind, pl.col("label").is_not_null()).height > 0)
    ]
    blocks: list[Block] = [Pictures(tuple(images), "Whole set")] if images else []
    blocks += [_printed_note(printed)] if printed is not None else []
    blocks += [_table(counts, kind) for kind in kinds]
    if printed is not None and (found := _differences(printed)) is not None:
        blocks.append(found)
    whole = counts.filter(pl.col("split") == "all")
    totals = whole.filter(pl.col("label").is_null())
    lines = [
        f"{format_count(row['boxes'] if row['boxes'] is not None else row['frames'])} of {row['kind']}"
        for row in totals.iter_rows(named=True)
    ]
    said = [f"Labels: {', '.join(lines)}."] if lines else []
    absent = whole.filter(pl.col("label").is_not_null(), pl.coalesce("boxes", "frames").fill_null(0) == 0)
    if len(absent):
        names = [f"{row['kind']} {row['label']}" for row in absent.head(8).iter_rows(named=True)]
        more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
        said.append(f"Classes that do not occur: {', '.join(names)}{more}.")
    if printed is not None and int(np.count_nonzero(printed["differs"].fill_null(False).to_numpy())):
        said.append(_printed_note(printed).text)
    return Section(title, tuple(said), tuple(blocks))


def count_bars(counts: pl.DataFrame, kind: str, printed: pl.DataFrame | None = None) -> Picture:
    """Boxes (or frames) and tubes of each class of a kind in the whole set, on a logarithmic scale.

    Args:
        counts: what `roadaware.analysis.road_counts.count` gave.
        kind: one of its kinds.
        printed: adds the paper's numbers as marks; see `build_stats_section`.
    """
    rows = (counts if printed is None else printed).filter(
        pl.col("kind") == kind, pl.col("split") == "all", pl.col("label").is_not_null()
    )
    labels = rows["label"].to_list()
    boxes = rows.select(pl.coalesce("boxes", "frames")).to_series().fill_null(0).to_list()
    tubes = rows["tubes"].fill_null(0).to_list()
    what = "frames" if rows["boxes"].null_count() == len(rows) else "boxes"
    with set_style():
        figure, axes = create_canvas(FULL, _FOOT_IN + _ROW_IN * 2 * max(1, len(labels)) * 0.75)
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
        axes.set_xticks(powers, [format_count(power) for power in powers])
        axes.minorticks_off()
        axes.set(xlim=(0.5, 2 * most), xlabel="number (logarithmic)")
        axes.set_yticks(range(len(labels)), [clip_label(label, 30) for label in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.set_title(
            f"blue: {what}, orange: tubes" + ("" if printed is None else ", mark: as printed"),
            loc="left",
            fontsize=8.5,
            color=GREY,
        )
    text = "; ".join(
        f"{n} {format_count(b)}/{format_count(t)}" for n, b, t in zip(labels, boxes, tubes, strict=True)
    )
    mark = " Black marks are the printed numbers." if printed is not None else ""
    caption = f"{what.capitalize()} (blue) and tubes (orange) of each class.{mark} {text}."
    return Picture(f"{capitalize_text(format_name(kind))}: {what} and tubes of each class", caption, figure)


def _table(counts: pl.DataFrame, kind: str) -> Table:
    """One kind in the form of print."""
    held = count_table(counts, kind)
    rows = tuple(
        tuple("–" if cell is None else _format_thousands(str(cell)) for cell in row)
        for row in held.iter_rows()
    )
    head = (kind, *held.columns[1:])
    return Table(head, rows, "l" + "r" * (len(head) - 1), f"Classes of {kind}", "Boxes/tubes in each split.")


def _format_thousands(cell: str) -> str:
    """`559142/7029` with separators of thousands; a name as it is."""
    return "/".join(f"{int(part):,}" if part.isdecimal() else part for part in cell.split("/"))


def _differences(printed: pl.DataFrame) -> Table | None:
    """The cells that are not as printed."""
    rows: list[tuple[TableCell, ...]] = []
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
                        format_count(row[what]),
                        Mark(format_count(theirs), "doubt"),
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
        f"{format_count(len(compared) - int(compared.sum()))} of {format_count(len(compared))} counts that the paper "
        "prints are as printed (Singh et al., TPAMI 2022, Tables 7 and 15 to 23)."
    )
