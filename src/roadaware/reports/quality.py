"""The check of annotations as sections of a page: what passed, what failed and why, who agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from roadaware.analysis.quality import RULES, STATUSES, Quality
from roadaware.reports.page import (
    MOST_CHOICES,
    Block,
    Cell,
    Facts,
    Filter,
    Filterable,
    Mark,
    Note,
    Pictures,
    Section,
    Table,
)
from roadaware.reports.quality_pictures import VERSIONS, Row, box_picture, name_of, span_picture
from roadaware.reports.text import count, number, percent, short

MOST_DRAWN, MOST_SPANS, MOST_ROWS = 24, 30, 1000
_TONES = {"pass": "good", "fail": "bad", "disputed": "doubt"}
_MEANINGS = {
    "pass": "within the limits, and no rule is broken",
    "fail": "round 1 found it beyond the limits or against a rule; what it left stands",
    "disputed": "round 2 does not agree with round 1: two further annotators decide",
}
_DRAWN_FIRST = ("box moved", "outside the frame", "empty box", "drawn twice", "added", "missing")


def quality_sections(quality: Quality) -> list[Section]:
    """The whole check in reading order: result, items that did not pass, agreement.

    Args:
        quality: what `check` gave.
    """
    wrong = quality.items.filter(pl.col("status") != "pass")
    sections = [_result(quality)]
    if len(wrong):
        sections.append(_items(quality, wrong))
    return [*sections, _agreement(quality)]


def _result(quality: Quality) -> Section:
    summary = quality.summary()
    rows = [_status_row("all", summary, summary["items"])]
    rows += [_status_row(what, held, held["items"]) for what, held in summary["by_kind"].items()]
    statuses = Table(
        ("items", "in all", *STATUSES, "share that passed"),
        tuple(rows),
        "lrrrrr",
        "What was checked",
        "; ".join(f"{status}: {_MEANINGS[status]}" for status in STATUSES if status in _shown(quality)) + ".",
    )
    blocks: list[Block] = [Facts(tuple(_facts(quality)), "How it was checked"), statuses]
    if summary["by_rule"]:
        found: list[tuple[Cell, ...]] = [
            (rule, RULES[rule], count(n)) for rule, n in summary["by_rule"].items()
        ]
        blocks.append(Table(("rule", "broken where", "items"), tuple(found), "llr", "What was found"))
    return Section("Result", tuple(_says(summary)), tuple(blocks))


def _shown(quality: Quality) -> tuple[str, ...]:
    return STATUSES if "round2_x1" in quality.items.columns else STATUSES[:2]


def _status_row(name: str, held: dict[str, Any], whole: int) -> tuple[Cell, ...]:
    marks = [Mark(count(held[status]), _TONES[status] if held[status] else "mute") for status in STATUSES]
    return (name, count(whole), *marks, percent(held["pass"], whole))


def _says(summary: dict[str, Any]) -> Iterator[str]:
    whole = summary["items"]
    told = f"{count(summary['pass'])} of {count(whole)} items passed ({percent(summary['pass'], whole)})"
    yield f"{told}, {count(summary['fail'])} failed, {count(summary['disputed'])} are disputed."
    most = sorted(summary["by_rule"].items(), key=lambda pair: -pair[1])[:3]
    if most:
        yield "Most often: " + ", ".join(f"{rule} ({count(n)})" for rule, n in most) + "."


def _facts(quality: Quality) -> Iterator[tuple[str, str]]:
    config, facts = quality.config, quality.facts
    for name, held in facts["files"].items():
        refused = f", {count(held['refused'])} rows refused" if held["refused"] else ""
        yield name, f"{held['dataset'] or 'unnamed'}: {count(held['items'])} items{refused}"
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
    yield "forbidden words", "no list was given" if words is None else f"{count(words)} words or phrases"
    for hint in facts["hints"]:
        yield "look at this first", hint
    if not facts["annotators_known"]:
        yield "annotators", "the files do not say who they are, so nobody knows whether reviewers differ"
    for what in ("size", "rate"):
        unknown = facts[f"videos_of_unknown_{what}"]
        if unknown:
            stands = f"{width} x {height}" if what == "size" else "that of the limits"
            yield f"videos of unknown {what}", f"{count(unknown)}, taken for {stands}"


def _items(quality: Quality, wrong: pl.DataFrame) -> Section:
    """What did not pass: drawn, and as a table to narrow down."""
    boxes = _boxes_to_draw(wrong)
    spans = wrong.filter(~pl.col("what").str.contains("box") & _any_start(wrong)).head(MOST_SPANS).to_dicts()
    blocks: list[Block] = []
    if boxes:
        blocks.append(Pictures(tuple(box_picture(row) for row in boxes), "Boxes"))
        blocks += _left_out(wrong.filter(pl.col("what").str.contains("box")), len(boxes), "boxes")
    if spans:
        blocks.append(Pictures((span_picture(spans),), "Spans in time"))
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


def _boxes_to_draw(wrong: pl.DataFrame) -> list[Row]:
    """Boxes to look at: the faults of place first, the greatest difference first, a few of each rule."""
    boxes = wrong.filter(pl.col("what").str.contains("box")).with_columns(
        rank=pl.col("rules")
        .list.first()
        .replace_strict({rule: k for k, rule in enumerate(_DRAWN_FIRST)}, default=len(_DRAWN_FIRST)),
        first=pl.col("rules").list.first(),
    )
    ranked = boxes.sort("rank", pl.col("max_edge_diff_ref_px"), descending=[False, True], nulls_last=True)
    each = max(2, MOST_DRAWN // max(1, ranked["first"].n_unique()))
    return ranked.filter(pl.int_range(pl.len()).over("first") < each).head(MOST_DRAWN).to_dicts()


def _left_out(held: pl.DataFrame, shown: int, what: str) -> list[Block]:
    more = len(held) - shown
    text = (
        f"{count(more)} more {what} are not shown here; the table of items that `-o` writes has all of them."
    )
    return [Note(text, "mute")] if more > 0 else []


def _table(wrong: pl.DataFrame) -> Filterable:
    rows = wrong.to_dicts()
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (
            short(name_of(row), 90),
            Mark(row["status"], _TONES[row["status"]]),
            "; ".join(row["reasons"]),
            number(row["max_edge_diff_px"], _decimals(row)),
            number(row["frame_diff"], 1),
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


def _decimals(row: Row) -> int:
    return 4 if row["width_px"] is not None and row["width_px"] <= 2 else 1


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


def _agreement(quality: Quality) -> Section:
    blocks: list[Block] = [
        _place_table(quality.agreement, ("all", "kind"), "In place and time, by kind of item")
    ]
    if len(quality.labels):
        blocks.append(_label_table(quality.labels.filter(pl.col("level") == "all"), "In labels"))
    for level in ("label", "video"):
        blocks += _of_level(quality, level)
    return Section("Agreement between annotators", tuple(_agreed(quality)), tuple(blocks))


def _of_level(quality: Quality, level: str) -> Iterator[Block]:
    place, labels = (table.filter(pl.col("level") == level) for table in (quality.agreement, quality.labels))
    if len(place):
        yield _place_table(place.head(MOST_ROWS), (level,), f"In place and time, by {level}")
        yield from _left_out(place, min(len(place), MOST_ROWS), "rows")
    if len(labels):
        yield _label_table(labels.head(MOST_ROWS), f"In labels, by {level}")
        yield from _left_out(labels, min(len(labels), MOST_ROWS), "rows")


def _agreed(quality: Quality) -> Iterator[str]:
    whole = quality.agreement.filter(pl.col("level") == "all").to_dicts()
    for row in whole[:2]:
        if row["boxes"]:
            yield (
                f"{row['pair']}: boxes overlap by {number(row['mean_iou'])} on average, "
                f"{percent(row['share_edges'], 1)} of them lie within the limit."
            )


def _place_table(agreement: pl.DataFrame, levels: tuple[str, ...], title: str) -> Table:
    held = agreement.filter(pl.col("level").is_in(levels))
    rows: list[tuple[Cell, ...]] = [
        (
            row["group"] or "all",
            row["pair"],
            count(row["both"]),
            count(row["only_first"]),
            count(row["only_second"]),
            number(row["mean_iou"]),
            _share(row["share_edges"]),
            number(row["mean_edge_px"], 1),
            _share(row["share_times"]),
            number(row["mean_start"], 2),
            number(row["mean_end"], 2),
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
    return "–" if value is None else percent(value, 1)


def _label_table(labels: pl.DataFrame, title: str) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row["group"] or "all",
            row["kind"],
            row["pair"],
            count(row["units"]),
            _share(row["equal"]),
            number(row["kappa"]),
            number(row["alpha"]),
        )
        for row in labels.iter_rows(named=True)
    )
    caption = (
        "Cohen's kappa of the pair and Krippendorff's alpha of all annotators, on the sets of labels of "
        "items in both (of pairs of persons for predicates). A dash: only one answer was ever given."
    )
    return Table(("", "labels", "pair", "items", "equal", "kappa", "alpha"), rows, "lllrrrr", title, caption)
