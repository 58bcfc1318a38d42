"""What a set of corner cases is made of, as a section of a report: tables beside print, bars of classes."""

from __future__ import annotations

from collections.abc import Sequence

from roadaware.analysis.corner_composition import ALL, Composition
from roadaware.protocols.coda import TRAINING_SETS
from roadaware.reports.page import Block, Cell, Facts, Mark, Note, Pictures, Section, Table
from roadaware.reports.picture import BLUE, FULL, GREY, ORANGE, Picture, canvas, styled
from roadaware.reports.text import count, number, sentence, short, words

_ROW_IN, _FOOT_IN = 0.24, 1.0
_BARS = "Objects of each class; blue classes are common, orange ones novel. {}"


def composition_section(held: Composition, *, title: str, notes: Sequence[str] = ()) -> Section:
    """The composition of a set.

    Args:
        held: what `analysis.corner_composition.composition` gave.
        title: heading of the section.
        notes: what else is to be told.
    """
    facts = tuple((words(name), number(value, 3)) for name, value in held.facts.items())
    blocks: list[Block] = [Facts(facts), _parts(held), *(Note(note, "doubt") for note in notes)]
    if len(held.classes):
        blocks.append(Pictures((class_bars(held),), "Classes"))
        blocks.append(_classes(held))
        blocks.append(_top(held))
    if len(held.tags):
        blocks.append(_tags(held))
    whole = held.parts.row(len(held.parts) - 1, named=True)
    says = f"{count(whole['scenes'])} scenes with {count(whole['instances'])} corner cases of "
    return Section(title, (f"{says}{count(whole['classes'])} classes.",), tuple(blocks))


def class_bars(held: Composition) -> Picture:
    """Objects of each class on a logarithmic scale, as in Fig. 3 of the paper."""
    rows = held.classes.to_dicts()
    with styled():
        figure, axes = canvas(FULL, _FOOT_IN + _ROW_IN * max(1, len(rows)))
        for place, row in enumerate(rows):
            axes.barh(
                place, max(row["objects"], 0.5), height=0.7, color=ORANGE if row["common"] is None else BLUE
            )
        most = max([10, *(row["objects"] for row in rows)])
        powers = [10**power for power in range(len(str(most)))]
        axes.set_xscale("log")
        axes.set_xticks(powers, [count(power) for power in powers])
        axes.minorticks_off()
        axes.set(xlim=(0.5, 2 * most), xlabel="objects (logarithmic)")
        axes.set_yticks(range(len(rows)), [short(row["label"], 30) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.set_title("blue: common, orange: novel", loc="left", fontsize=8.5, color=GREY)
    told = "; ".join(f"{row['label']} {count(row['objects'])}" for row in rows)
    return Picture("Objects of each class", _BARS.format(f"{told}."), figure)


def _parts(held: Composition) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for row in held.parts.iter_rows(named=True):
        cells = (_beside(row[name], row[f"printed_{name}"]) for name in ("scenes", "classes", "instances"))
        rows.append((row["part"], *cells, count(row["weather"]), count(row["period"])))
    head = ("part", "scenes", "classes", "instances", "weather", "period")
    caption = "As in Table 1 of the paper, whose numbers for CODA stand below."
    return Table(head, tuple(rows), "lrrrrr", "Composition", caption)


def _beside(value: int, printed: int | None) -> Cell:
    return count(value) if printed is None else Mark(count(value), "", f"CODA: {count(printed)}")


def _classes(held: Composition) -> Table:
    head = ("class", "super-class", "objects", "corner cases", "share", "common", *TRAINING_SETS)
    rows = tuple(
        (
            row["label"],
            row["super_class"] or "–",
            count(row["objects"]),
            count(row["corner_cases"]),
            number(row["share"]),
            row["common"] or "novel",
            *("yes" if row[name] else "–" for name in TRAINING_SETS),
        )
        for row in held.classes.iter_rows(named=True)
    )
    return Table(
        head, rows, "llrrrl" + "c" * len(TRAINING_SETS), "Classes", "Which training sets name a class."
    )


def _top(held: Composition) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for part in held.top["part"].unique(maintain_order=True):
        rows.append((sentence(part if part != ALL else "all domains"),))
        rows += [
            (row["label"], count(row["objects"]), number(row["share"]))
            for row in held.top.iter_rows(named=True)
            if row["part"] == part
        ]
    return Table(("class", "corner cases", "share"), tuple(rows), "lrr", "The four most frequent classes")


def _tags(held: Composition) -> Table:
    rows = tuple(
        (
            row["tag"],
            row["value"],
            count(row["scenes"]),
            number(row["share"]),
            number(row["printed_share"], 2),
        )
        for row in held.tags.iter_rows(named=True)
    )
    head = ("", "value", "scenes", "share", "printed of CODA")
    return Table(head, rows, "llrrr", "Weather and period")
