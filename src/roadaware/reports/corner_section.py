"""How well corner cases were detected, as a section of a report: groups, slices, classes, printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadaware.analysis.corner_tables import (
    ALL,
    PREDICTIONS,
    Composition,
    build_class_lines,
    build_lines,
    build_printed_lines,
    build_slice_header,
    build_slice_lines,
    group_undefined,
    select_columns,
    select_plain_facts,
    select_printed_columns,
)
from roadaware.metrics.corner_cases.matching import GROUPS
from roadaware.metrics.metric_state import SceneResult
from roadaware.protocols.coda import TRAINING_SETS
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.page import (
    BLUE,
    FULL,
    GREY,
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
    build_caption,
    create_canvas,
    set_style,
)
from roadaware.reports.scene_section import plot_classes
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_fact,
    format_name,
    format_number,
    format_row_interval,
)

_DIGITS = 4
_AS = "As fractions"
_PRINTED = "What the paper prints of other detectors, as fractions, on CODA's own images: tables "


def build_corner_section(
    result: SceneResult,
    *,
    title: str,
    model: str = "the predictions",
    about: Mapping[str, str] | None = None,
    printed: Sequence[Mapping[str, Any]] = (),
    images: Sequence[Picture] = (),
) -> Section:
    """One evaluation on corner cases.

    Args:
        result: what `evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        about: what else the reader should know, such as ground truth, digests, resamples.
        printed: rows to stand beside, as `protocols.coda.select_printed` gives them.
        images: drawn after the tables.
    """
    named = [(format_name(name), format_fact(value)) for name, value in select_plain_facts(result).items()]
    facts = [*(about or {}).items(), *named, ("metrics", format_config(result.config))]
    blocks: list[Block] = [Facts(tuple(facts)), _groups(result, model)]
    blocks += [_slices(result)] if result.groups else []
    blocks += [Note(note, "doubt") for note in result.notes]
    drawn = [*plot_classes(result, "class"), *images]
    blocks += [Pictures(tuple(drawn), "Pictures")] if drawn else []
    blocks += _classes(result)
    blocks += _build_printed_blocks(result, list(map(dict, printed)), model)
    blocks += [
        Note(f"Undefined: {', '.join(names)}: {why}.", "mute")
        for why, names in group_undefined(result).items()
    ]
    blocks.append(build_config_table(result.config, "Metric configuration"))
    # The recall of each group in a sentence, beside the trivial ones.
    found = []
    lines = build_lines(result)
    for group in dict.fromkeys(line.group for line in lines):
        rows = {line.answer: line.rows.get("AR") for line in lines if line.group == group}
        own = rows.pop(PREDICTIONS)
        if not own or own["value"] is None:
            continue
        beside = ", ".join(f"{name} {format_number(row['value'])}" for name, row in rows.items() if row)
        text = f"{model}: {group} AR {format_number(own['value'])}"
        if own.get("low_video") is not None:
            text += f" ({format_row_interval(own, 'video')})"
        found.append(capitalize_text(f"{text}; {beside}." if beside else f"{text}."))
    totals = [row for row in result.whole() if row["metric"] == "total" and row["valid"]]
    beside = "".join(
        f"; {name} {format_number(values.get('total'))}" for name, values in result.baselines.items()
    )
    return Section(
        title,
        (
            *found,
            *(
                f"The four numbers of the challenge of 2022 add up to {format_number(row['value'])}{beside}."
                for row in totals
            ),
        ),
        tuple(blocks),
    )


def _groups(result: SceneResult, model: str) -> Table:
    """Each group with the predictions and the trivial answers."""
    columns = select_columns(result)
    rows: list[tuple[TableCell, ...]] = []
    last = ""
    for line in build_lines(result):
        if line.group != last:
            rows.append((capitalize_text(f"{line.group}: {GROUPS[line.group]}"),))
            last = line.group
        name = model if line.answer == PREDICTIONS else line.answer
        rows.append((name, *(_cell(line.rows[heading]) for heading in columns)))
    head = ("answer", *columns)
    return Table(
        head, tuple(rows), "l" + "r" * len(columns), "Average recall", build_caption(rows, _AS, "videos")
    )


def _slices(result: SceneResult) -> Table:
    head = ("slice", "pictures", *build_slice_header(result))
    rows = [
        (name, format_count(images), *(_cell(cell) for cell in cells))
        for name, images, cells in build_slice_lines(result)
    ]
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Slices", build_caption(rows, _AS, "videos"))


def _classes(result: SceneResult) -> list[Block]:
    """Classes and super-classes with their objects and recall in each group, and which have none."""
    groups, metrics, lines = build_class_lines(result)
    known = [line for line in lines if any(row is not None and row["valid"] for row in line[2])]
    blocks: list[Block] = []
    if known:
        head = ("class", *(f"{group} objects" for group in groups), *metrics)
        rows = [
            (
                label,
                *(Mark("–", "mute") if n is None else format_count(n) for n in counts),
                *map(_cell, found),
            )
            for label, counts, found in known
        ]
        read = build_caption(rows, _AS, "videos")
        blocks.append(Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "By class", read))
    absent = [label for label, *_ in lines if label not in {line[0] for line in known}]
    return blocks + ([Note(f"Undefined: {', '.join(absent)}.", "mute")] if absent else [])


def _build_printed_blocks(result: SceneResult, printed: list[dict[str, Any]], model: str) -> list[Block]:
    """The printed rows, and why some of their numbers are questionable."""
    ends = select_printed_columns(result, printed)
    if not ends:
        return []
    rows = [
        (model if name == PREDICTIONS else name, *(format_number(value, 3) for value in values))
        for name, values in build_printed_lines(result, printed)
    ]
    tables = ", ".join(dict.fromkeys(row["table"] for row in printed))
    head = ("detector", *ends)
    table = Table(head, tuple(rows), "l" + "r" * len(ends), "Beside print", f"{_PRINTED}{tables}.")
    notes = [
        Note(capitalize_text(f"{row['row']}, {row['trained_on']}, {metric}: {why}."), "mute")
        for row in printed
        for metric, why in row.get("doubts", {}).items()
    ]
    return [table, *notes]


def _cell(row: Mapping[str, Any] | None) -> TableCell:
    if row is None or row["value"] is None:
        return Mark("–", "mute")
    shown = format_number(row["value"], _DIGITS)
    if row.get("low_video") is None:
        return shown
    return Mark(shown, "", format_row_interval(row, "video"))


# What a set of corner cases is made of, as a section of a report: tables beside print, bars of classes.

_ROW_IN, _FOOT_IN = 0.24, 1.0
_BARS = "Objects of each class; blue classes are common, orange ones novel. {}"


def build_composition_section(held: Composition, *, title: str, notes: Sequence[str] = ()) -> Section:
    """The composition of a set.

    Args:
        held: what `analysis.corner_tables.compute_composition` gave.
        title: heading of the section.
        notes: further remarks.
    """
    facts = tuple((format_name(name), format_number(value, 3)) for name, value in held.facts.items())
    blocks: list[Block] = [Facts(facts), _parts(held), *(Note(note, "doubt") for note in notes)]
    if len(held.classes):
        blocks.append(Pictures((plot_class_counts(held),), "Classes"))
        blocks.append(_build_class_table(held))
        rows: list[tuple[TableCell, ...]] = []
        for part in held.top["part"].unique(maintain_order=True):
            rows.append((capitalize_text(part if part != ALL else "all domains"),))
            rows += [
                (row["label"], format_count(row["objects"]), format_number(row["share"]))
                for row in held.top.iter_rows(named=True)
                if row["part"] == part
            ]
        blocks.append(
            Table(("class", "corner cases", "share"), tuple(rows), "lrr", "The four most frequent classes")
        )
    if len(held.tags):
        blocks.append(_tags(held))
    whole = held.parts.row(len(held.parts) - 1, named=True)
    says = f"{format_count(whole['scenes'])} scenes with {format_count(whole['instances'])} corner cases of "
    return Section(title, (f"{says}{format_count(whole['classes'])} classes.",), tuple(blocks))


def plot_class_counts(held: Composition) -> Picture:
    """Objects of each class on a logarithmic scale, as in Fig. 3 of the paper."""
    rows = held.classes.to_dicts()
    with set_style():
        figure, axes = create_canvas(FULL, _FOOT_IN + _ROW_IN * max(1, len(rows)))
        for place, row in enumerate(rows):
            axes.barh(
                place, max(row["objects"], 0.5), height=0.7, color=ORANGE if row["common"] is None else BLUE
            )
        most = max([10, *(row["objects"] for row in rows)])
        powers = [10**power for power in range(len(str(most)))]
        axes.set_xscale("log")
        axes.set_xticks(powers, [format_count(power) for power in powers])
        axes.minorticks_off()
        axes.set(xlim=(0.5, 2 * most), xlabel="objects (logarithmic)")
        axes.set_yticks(range(len(rows)), [clip_label(row["label"], 30) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.set_title("blue: common, orange: novel", loc="left", fontsize=8.5, color=GREY)
    text = "; ".join(f"{row['label']} {format_count(row['objects'])}" for row in rows)
    return Picture("Objects of each class", _BARS.format(f"{text}."), figure)


def _parts(held: Composition) -> Table:
    rows: list[tuple[TableCell, ...]] = []
    for row in held.parts.iter_rows(named=True):
        cells = (_beside(row[name], row[f"printed_{name}"]) for name in ("scenes", "classes", "instances"))
        rows.append((row["part"], *cells, format_count(row["weather"]), format_count(row["period"])))
    head = ("part", "scenes", "classes", "instances", "weather", "period")
    caption = "As in Table 1 of the paper, whose numbers for CODA stand below."
    return Table(head, tuple(rows), "lrrrrr", "Composition", caption)


def _beside(value: int, printed: int | None) -> TableCell:
    return (
        format_count(value)
        if printed is None
        else Mark(format_count(value), "", f"CODA: {format_count(printed)}")
    )


def _build_class_table(held: Composition) -> Table:
    head = ("class", "super-class", "objects", "corner cases", "share", "common", *TRAINING_SETS)
    rows = tuple(
        (
            row["label"],
            row["super_class"] or "–",
            format_count(row["objects"]),
            format_count(row["corner_cases"]),
            format_number(row["share"]),
            row["common"] or "novel",
            *("yes" if row[name] else "–" for name in TRAINING_SETS),
        )
        for row in held.classes.iter_rows(named=True)
    )
    return Table(
        head, rows, "llrrrl" + "c" * len(TRAINING_SETS), "Classes", "Which training sets name a class."
    )


def _tags(held: Composition) -> Table:
    rows = tuple(
        (
            row["tag"],
            row["value"],
            format_count(row["scenes"]),
            format_number(row["share"]),
            format_number(row["printed_share"], 2),
        )
        for row in held.tags.iter_rows(named=True)
    )
    head = ("", "value", "scenes", "share", "printed of CODA")
    return Table(head, rows, "llrrr", "Weather and period")
