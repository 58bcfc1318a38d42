"""A check of annotations: passed and failed items with reasons and agreement, as a page and as the command prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware.analysis.quality import RULES, STATUSES, Quality
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.reports import terminal
from roadaware.reports.page import (
    BLUE,
    FULL,
    GREEN,
    GREY,
    HALF,
    MOST_CHOICES,
    PALE,
    VERMILLION,
    Block,
    Facts,
    Filter,
    Filterable,
    Mark,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    create_canvas,
    report,
    set_style,
)
from roadaware.reports.runs import encode_parquet
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_number,
    format_percent,
    format_signed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from roadaware.analysis.quality import Quality


# Items that did not pass a check of annotations, drawn: boxes over an empty figure, spans in time.

Row = dict[str, Any]
VERSIONS = ("original", "round1", "round2")
_NAMES = {"original": "original", "round1": "round 1", "round2": "round 2"}
_PICTURES_TONES = {"original": GREEN, "round1": VERMILLION, "round2": BLUE}
_DASHES: dict[str, Any] = {"original": "-", "round1": (0, (4, 1.5)), "round2": (0, (1, 1.2))}
_EDGES = ("x1", "y1", "x2", "y2")
_MARGIN, _ROW_IN, _HEAD_IN = 0.28, 0.62, 0.75


def format_item_name(row: Row) -> str:
    """How an item is called in a heading.

    >>> format_item_name({"what": "box", "video": "A", "name": "P1", "object": None, "predicate": None, "frame": 25})
    'box of P1, frame 25, A'
    """
    if row["what"] == "relation":
        core = f"{row['name'] or 'somebody'} {row['predicate'] or 'and'} {row['object'] or 'somebody'}"
    elif row["name"] is None:
        core = row["what"]
    else:
        core = f"{row['what']}{' of' if 'box' in row['what'] else ''} {row['name']}"
    parts = [core, f"frame {row['frame']}" if row["frame"] is not None else "", row["video"] or ""]
    return ", ".join(part for part in parts if part)


def plot_box(row: Row) -> Picture:
    """The box of one item in every version, and by how much each edge moved.

    Args:
        row: of the items of a check.
    """
    boxes = {name: box for name in VERSIONS if (box := _box(row, name)) is not None}
    wide, high = row["width_px"] or 1280.0, row["height_px"] or 720.0
    with set_style():
        figure, axes = create_canvas(HALF, 3.1)
        # There are many of them, and laying each out would take most of the time.
        figure.set_layout_engine("none")
        axes.set_position((0.1, 0.08, 0.86, 0.83))
        _paper(axes, wide, high)
        for name, box in boxes.items():
            _outline(axes, box, name)
        _frame(axes, list(boxes.values()), (wide, high))
        # Beside each edge by how much it moved from one round to the next.
        names = list(boxes)
        every = np.array(list(boxes.values()))
        (x1, y1), (x2, y2) = every[:, :2].min(axis=0), every[:, 2:].max(axis=0)
        middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
        # Where the words of an edge begin, in points from it, and how they are aligned; one line is 9 points.
        places: tuple[tuple[tuple[float, float], tuple[float, float], str], ...] = (
            ((x1, middle_y), (-6, 5), "right"),
            ((middle_x, y1), (0, 17), "center"),
            ((x2, middle_y), (6, 5), "left"),
            ((middle_x, y2), (0, -9), "center"),
        )
        for k, (at, (aside, above), across) in enumerate(places):
            for line, (before, after) in enumerate(pairwise(names)):
                axes.annotate(
                    f"{format_signed(boxes[after][k] - boxes[before][k], _digits(boxes))} px",
                    at,
                    (aside, above - 9 * line),
                    textcoords="offset points",
                    ha=across,
                    va="center",
                    fontsize=7,
                    color=_PICTURES_TONES[after],
                    bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.4},
                )
        # The whole image in small, with the place of the box
        size = (wide, high)
        from matplotlib.patches import Rectangle

        small = axes.inset_axes((0.02, 0.02, 0.2, 0.2 * 0.75))
        _paper(small, *size)
        for name, (x1, y1, x2, y2) in boxes.items():
            small.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, facecolor=_PICTURES_TONES[name], alpha=0.6))
        small.set(xlim=(0, size[0]), ylim=(size[1], 0), xticks=[], yticks=[], aspect="equal")
        for spine in small.spines.values():
            spine.set_visible(False)
    text = ". ".join(row["reasons"])
    return Picture(
        clip_label(format_item_name(row), 60),
        f"{capitalize_text(row['status'])}. {capitalize_text(text)}.",
        figure,
    )


def plot_spans(rows: Sequence[Row]) -> Picture:
    """The spans of items in every version, one item below the other.

    Args:
        rows: of the items of a check, each with a start.
    """
    held = [name for name in VERSIONS if f"{name}_start" in rows[0]]
    with set_style():
        figure, axes = create_canvas(FULL, _HEAD_IN + _ROW_IN * len(rows))
        for place, row in enumerate(rows):
            for line, name in enumerate(held):
                height = place + 0.22 * (line - (len(held) - 1) / 2)
                start, end, tone = row[f"{name}_start"], row[f"{name}_end"], _PICTURES_TONES[name]
                if start is not None:
                    if end is None or end <= start:
                        axes.plot([start], [height], "x", color=tone, markersize=6, markeredgewidth=1.8)
                    else:
                        axes.plot(
                            [start, end], [height, height], color=tone, linewidth=4, solid_capstyle="butt"
                        )
                    says = (
                        format_number(start, 0)
                        if end is None
                        else f"{format_number(start, 0)}–{format_number(end, 0)}"
                    )
                    at = start if end is None else max(start, end)
                    axes.annotate(
                        says,
                        (at, height),
                        (4, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=6.5,
                        color=tone,
                    )
        axes.set_yticks(range(len(rows)), [clip_label(format_item_name(row), 44) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="frame of the file")
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        for name in held:
            axes.plot([], [], color=_PICTURES_TONES[name], linewidth=4, label=_NAMES[name])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(held), borderaxespad=0)
    caption = "Bars are what each round says; a cross is a start without an end, or a span of no length."
    return Picture("Spans that did not pass", caption, figure)


def _box(row: Row, name: str) -> tuple[float, ...] | None:
    edges = [row.get(f"{name}_{edge}") for edge in _EDGES]
    return (
        None
        if any(edge is None for edge in edges)
        else tuple(float(edge) for edge in edges if edge is not None)
    )


def _paper(axes: Axes, wide: float, high: float) -> None:
    """The image as a white sheet on grey."""
    from matplotlib.patches import Rectangle

    axes.set_facecolor("#e4e7eb")
    axes.add_patch(Rectangle((0, 0), wide, high, facecolor="#fbfcfd", edgecolor=GREY, linewidth=0.8))


def _outline(axes: Axes, box: tuple[float, ...], name: str) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box
    axes.add_patch(
        Rectangle(
            (x1, y1),
            x2 - x1,
            y2 - y1,
            fill=False,
            edgecolor=_PICTURES_TONES[name],
            linewidth=1.6,
            linestyle=_DASHES[name],
            label=_NAMES[name],
        )
    )


def _frame(axes: Axes, boxes: Sequence[tuple[float, ...]], size: tuple[float, float]) -> None:
    """Show the boxes with room around them."""
    corners = np.array(boxes)
    left, top = corners[:, :2].min(axis=0)
    right, low = corners[:, 2:].max(axis=0)
    pad = max(_MARGIN * max(right - left, low - top), 0.02 * max(size))
    axes.set(xlim=(left - 2.2 * pad, right + 2.2 * pad), ylim=(low + pad, top - pad), aspect="equal")
    axes.tick_params(labelsize=7)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_edgecolor(PALE)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, borderaxespad=0.2, fontsize=7.5)


def _digits(boxes: dict[str, tuple[float, ...]]) -> int:
    """Decimals that tell: more where the image is the unit."""
    return 4 if max(abs(edge) for box in boxes.values() for edge in box) <= 2 else 1


MOST_DRAWN, MOST_SPANS, MOST_ROWS = 24, 30, 1000
_TONES = {"pass": "good", "fail": "bad", "disputed": "doubt"}
_MEANINGS = {
    "pass": "within the limits, and no rule is broken",
    "fail": "round 1 found it beyond the limits or against a rule; what it left stands",
    "disputed": "round 2 does not agree with round 1: two further annotators decide",
}
_DRAWN_FIRST = ("box moved", "outside the frame", "empty box", "drawn twice", "added", "missing")


def render_quality_page(quality: Quality) -> str:
    """The whole check as one page that needs no network."""
    return report(build_quality_sections(quality), title="Check of annotations")


def build_quality_files(quality: Quality) -> dict[str, bytes]:
    """Items, agreement and page, and the marker of a result folder that lists them."""
    flat = quality.items.with_columns(
        pl.col(name).list.join("; ")
        for name, dtype in quality.items.schema.items()
        if dtype == pl.List(pl.String)
    )
    files = {
        "items.parquet": encode_parquet(quality.items),
        "items.csv": format_csv(flat).encode(),
        "agreement.csv": format_csv(quality.agreement).encode(),
        "label_agreement.csv": format_csv(quality.labels).encode(),
        "report.html": render_quality_page(quality).encode("utf-8", errors="backslashreplace"),
    }
    facts = {name: value for name, value in quality.to_dict(most=0).items() if name != "items"}
    return folders.add_marker(files, facts)


def build_quality_sections(quality: Quality) -> list[Section]:
    """The whole check in reading order: result, items that did not pass, agreement.

    Args:
        quality: what `check` gave.
    """
    wrong = quality.items.filter(pl.col("status") != "pass")
    sections = [_result(quality)]
    if len(wrong):
        sections.append(_items(wrong))
    blocks: list[Block] = [
        _place_table(quality.agreement, ("all", "kind"), "In place and time, by kind of item")
    ]
    if len(quality.labels):
        blocks.append(_label_table(quality.labels.filter(pl.col("level") == "all"), "In labels"))
    for level in ("label", "video"):
        blocks += _of_level(quality, level)
    return [
        *sections,
        Section("Agreement between annotators", tuple(_describe_agreement(quality)), tuple(blocks)),
    ]


def _result(quality: Quality) -> Section:
    summary = quality.summary()
    rows = [_status_row("all", summary, summary["items"])]
    rows += [_status_row(what, held, held["items"]) for what, held in summary["by_kind"].items()]
    statuses = Table(
        ("items", "in all", *STATUSES, "share that passed"),
        tuple(rows),
        "lrrrrr",
        "What was checked",
        "; ".join(
            f"{status}: {_MEANINGS[status]}"
            for status in STATUSES
            if status in (STATUSES if "round2_x1" in quality.items.columns else STATUSES[:2])
        )
        + ".",
    )
    blocks: list[Block] = [Facts(tuple(_facts(quality)), "How it was checked"), statuses]
    if summary["by_rule"]:
        found: list[tuple[TableCell, ...]] = [
            (rule, RULES[rule], format_count(n)) for rule, n in summary["by_rule"].items()
        ]
        blocks.append(Table(("rule", "broken where", "items"), tuple(found), "llr", "What was found"))
    return Section("Result", tuple(_says(summary)), tuple(blocks))


def _status_row(name: str, held: dict[str, Any], whole: int) -> tuple[TableCell, ...]:
    marks = [
        Mark(format_count(held[status]), _TONES[status] if held[status] else "mute") for status in STATUSES
    ]
    return (name, format_count(whole), *marks, format_percent(held["pass"], whole))


def _says(summary: dict[str, Any]) -> Iterator[str]:
    whole = summary["items"]
    text = f"{format_count(summary['pass'])} of {format_count(whole)} items passed ({format_percent(summary['pass'], whole)})"
    yield f"{text}, {format_count(summary['fail'])} failed, {format_count(summary['disputed'])} are disputed."
    most = sorted(summary["by_rule"].items(), key=lambda pair: -pair[1])[:3]
    if most:
        yield "Most often: " + ", ".join(f"{rule} ({format_count(n)})" for rule, n in most) + "."


def _facts(quality: Quality) -> Iterator[tuple[str, str]]:
    config, facts = quality.config, quality.facts
    for name, held in facts["files"].items():
        refused = f", {format_count(held['refused'])} rows refused" if held["refused"] else ""
        yield name, f"{held['dataset'] or 'unnamed'}: {format_count(held['items'])} items{refused}"
    width, height = config.resolution
    yield (
        "edges of boxes",
        f"within {config.edge_px:g} px at {width} x {height}, brought to the size of the file",
    )
    rate = "of the file" if config.frame_rate is None else f"at {config.frame_rate:g} per second"
    yield "starts and ends", f"within {config.frames:g} frames {rate}"
    unchecked = ", ".join(facts["kinds_not_looked_up"])
    yield "dictionary", facts["dictionary"] + (f"; not looked up: {unchecked}" if unchecked else "")
    words = facts["forbidden_words"]
    yield (
        "forbidden words",
        "no list was given" if words is None else f"{format_count(words)} words or phrases",
    )
    for hint in facts["hints"]:
        yield "look at this first", hint
    if not facts["annotators_known"]:
        yield "annotators", "the files do not say who they are, so nobody knows whether reviewers differ"
    for what in ("size", "rate"):
        unknown = facts[f"videos_of_unknown_{what}"]
        if unknown:
            stands = f"{width} x {height}" if what == "size" else "that of the limits"
            yield f"videos of unknown {what}", f"{format_count(unknown)}, taken for {stands}"


def _items(wrong: pl.DataFrame) -> Section:
    """What did not pass: drawn, and as a table to narrow down."""
    # Boxes to look at: the faults of place first, the greatest difference first, a few of each rule.
    ranked = wrong.filter(pl.col("what").str.contains("box")).with_columns(
        rank=pl.col("rules")
        .list.first()
        .replace_strict({rule: k for k, rule in enumerate(_DRAWN_FIRST)}, default=len(_DRAWN_FIRST)),
        first=pl.col("rules").list.first(),
    )
    ranked = ranked.sort("rank", pl.col("max_edge_diff_ref_px"), descending=[False, True], nulls_last=True)
    each = max(2, MOST_DRAWN // max(1, ranked["first"].n_unique()))
    boxes = ranked.filter(pl.int_range(pl.len()).over("first") < each).head(MOST_DRAWN).to_dicts()
    spans = wrong.filter(~pl.col("what").str.contains("box") & _any_start(wrong)).head(MOST_SPANS).to_dicts()
    blocks: list[Block] = []
    if boxes:
        blocks.append(Pictures(tuple(plot_box(row) for row in boxes), "Boxes"))
        blocks += _left_out(wrong.filter(pl.col("what").str.contains("box")), len(boxes), "boxes")
    if spans:
        blocks.append(Pictures((plot_spans(spans),), "Spans in time"))
        blocks += _left_out(
            wrong.filter(~pl.col("what").str.contains("box") & _any_start(wrong)), len(spans), "spans"
        )
    blocks.append(_table(wrong.head(MOST_ROWS)))
    blocks += _left_out(wrong, min(len(wrong), MOST_ROWS), "rows")
    return Section("Items that did not pass", (), tuple(blocks))


def _any_start(items: pl.DataFrame) -> pl.Expr:
    return pl.any_horizontal(
        pl.col(f"{name}_start").is_not_null() for name in VERSIONS if f"{name}_start" in items.columns
    )


def _left_out(held: pl.DataFrame, shown: int, what: str) -> list[Block]:
    more = len(held) - shown
    text = f"{format_count(more)} more {what} are not shown here; the table of items that `-o` writes has all of them."
    return [Note(text, "mute")] if more > 0 else []


def _table(wrong: pl.DataFrame) -> Filterable:
    rows = wrong.to_dicts()
    cells: tuple[tuple[TableCell, ...], ...] = tuple(
        (
            clip_label(format_item_name(row), 90),
            Mark(row["status"], _TONES[row["status"]]),
            "; ".join(row["reasons"]),
            format_number(
                row["max_edge_diff_px"], 4 if row["width_px"] is not None and row["width_px"] <= 2 else 1
            ),
            format_number(row["frame_diff"], 1),
        )
        for row in rows
    )
    columns = ("item", "status", "reasons", "edge, px", "frames")
    table = Table(
        columns,
        cells,
        "lllrr",
        caption="Greatest difference of an edge in pixels of the file, and of a start or end in its frames.",
    )
    return Filterable(table, tuple(_filters(rows)), "All of them")


def _filters(rows: Sequence[Row]) -> Iterator[Filter]:
    """By status and by rule, where there is a choice."""
    for title, values in (
        ("status", [[row["status"]] for row in rows]),
        ("rule", [row["rules"] for row in rows]),
    ):
        order = STATUSES if title == "status" else tuple(RULES)
        met = {value for held in values for value in held}
        choices = tuple(value for value in order if value in met)[:MOST_CHOICES]
        places = {value: place for place, value in enumerate(choices)}
        yield Filter(title, choices, tuple(tuple(places[v] for v in held if v in places) for held in values))


def _of_level(quality: Quality, level: str) -> Iterator[Block]:
    place, labels = (table.filter(pl.col("level") == level) for table in (quality.agreement, quality.labels))
    if len(place):
        yield _place_table(place.head(MOST_ROWS), (level,), f"In place and time, by {level}")
        yield from _left_out(place, min(len(place), MOST_ROWS), "rows")
    if len(labels):
        yield _label_table(labels.head(MOST_ROWS), f"In labels, by {level}")
        yield from _left_out(labels, min(len(labels), MOST_ROWS), "rows")


def _describe_agreement(quality: Quality) -> Iterator[str]:
    whole = quality.agreement.filter(pl.col("level") == "all").to_dicts()
    for row in whole[:2]:
        if row["boxes"]:
            yield (
                f"{row['pair']}: boxes overlap by {format_number(row['mean_iou'])} on average, "
                f"{format_percent(row['share_edges'], 1)} of them lie within the limit."
            )


def _place_table(agreement: pl.DataFrame, levels: tuple[str, ...], title: str) -> Table:
    held = agreement.filter(pl.col("level").is_in(levels))
    rows: list[tuple[TableCell, ...]] = [
        (
            row["group"] or "all",
            row["pair"],
            format_count(row["both"]),
            format_count(row["only_first"]),
            format_count(row["only_second"]),
            format_number(row["mean_iou"]),
            _share(row["share_edges"]),
            format_number(row["mean_edge_px"], 1),
            _share(row["share_times"]),
            format_number(row["mean_start"], 2),
            format_number(row["mean_end"], 2),
        )
        for row in held.iter_rows(named=True)
    ]
    columns = (
        "",
        "pair",
        "in both",
        "only first",
        "only second",
        "mean IoU",
        "edges within",
        "mean edge, px",
    )
    caption = (
        "Edges in pixels and frames at the resolution and rate of the limits; an edge counts by the greatest "
        "of its box, starts and ends by their mean absolute difference."
    )
    return Table(
        (*columns, "times within", "mean start", "mean end"), tuple(rows), "llrrrrrrrrr", title, caption
    )


def _share(value: float | None) -> str:
    return "–" if value is None else format_percent(value, 1)


def _label_table(labels: pl.DataFrame, title: str) -> Table:
    rows: tuple[tuple[TableCell, ...], ...] = tuple(
        (
            row["group"] or "all",
            row["kind"],
            row["pair"],
            format_count(row["units"]),
            _share(row["equal"]),
            format_number(row["kappa"]),
            format_number(row["alpha"]),
        )
        for row in labels.iter_rows(named=True)
    )
    caption = (
        "Cohen's kappa of the pair and Krippendorff's alpha of all annotators, on the sets of labels of "
        "items in both (of pairs of persons for predicates). A dash: only one answer was ever given."
    )
    return Table(("", "labels", "pair", "items", "equal", "kappa", "alpha"), rows, "lllrrrr", title, caption)


# The text that the command prints.

_SHOWN = 20


def format_quality(found: Quality) -> str:
    """The result for a terminal: items by status, findings by rule, the first of them, agreement."""
    summary = found.summary()
    columns = ("items", "pass", "fail", "disputed")
    rows = [["all", *(summary[name] for name in columns)]]
    rows += [[what, *(held[name] for name in columns)] for what, held in summary["by_kind"].items()]
    parts = [terminal.format_table(["what", "in all", "pass", "fail", "disputed"], rows)]
    if summary["by_rule"]:
        parts.append(terminal.format_table(["rule", "items"], summary["by_rule"].items()))
    wrong = found.items.filter(pl.col("status") != "pass")
    parts.append(_first(wrong.head(_SHOWN).to_dicts(), len(wrong)))
    parts += [_format_agreement(found), *_notes(found)]
    return "\n\n".join(part for part in parts if part)


def _first(rows: list[dict[str, Any]], count: int) -> str:
    lines = []
    for row in rows:
        mark = "bad" if row["status"] == "fail" else "odd"
        lines.append(
            terminal.apply_style(f"{row['status']}: {terminal.format_cell(format_item_name(row))}", mark)
        )
        lines += [f"    {terminal.format_cell(reason)}" for reason in row["reasons"]]
    if count > len(rows):
        lines.append(f"... and {count - len(rows):,} more; --html, -o and --json show them")
    return "\n".join(lines)


def _format_agreement(found: Quality) -> str:
    whole = found.agreement.filter(pl.col("level") == "all")
    names = ("mean_iou", "share_edges", "share_times", "mean_start", "mean_end")
    rows = [
        [row["pair"], *(terminal.format_number(row[name]) for name in names)]
        for row in whole.iter_rows(named=True)
    ]
    header = ["agreement", "mean IoU", "edges within", "times within", "mean start", "mean end"]
    parts = [terminal.format_table(header, rows)]
    labels = found.labels.filter(pl.col("level") == "all")
    if len(labels):
        rows = [
            [
                row["kind"],
                row["pair"],
                row["units"],
                *(terminal.format_number(row[n]) for n in ("equal", "kappa", "alpha")),
            ]
            for row in labels.iter_rows(named=True)
        ]
        parts.append(
            terminal.format_table(["labels", "pair", "items", "equal", "kappa", "alpha"], rows, left=2)
        )
    return "\n\n".join(parts)


def _notes(found: Quality) -> list[str]:
    """What could not be checked, in words."""
    facts = found.facts
    notes = list(facts["hints"])
    if facts["kinds_not_looked_up"]:
        notes.append(f"no dictionary for labels of {', '.join(facts['kinds_not_looked_up'])}")
    if facts["forbidden_words"] is None:
        notes.append("descriptions were not searched: give --forbidden-words")
    if not facts["annotators_known"]:
        notes.append("the files do not say who annotated, so whether reviewers differ is unknown")
    if facts["videos_of_unknown_size"]:
        size = "x".join(map(str, found.config.resolution))
        notes.append(f"{facts['videos_of_unknown_size']} videos of unknown size, taken for {size}")
    if facts["videos_of_unknown_rate"] and found.config.frame_rate is not None:
        notes.append(
            f"{facts['videos_of_unknown_rate']} videos of unknown rate: a frame counts as one of `frames`"
        )
    return [terminal.format_bullets(notes)] if notes else []
