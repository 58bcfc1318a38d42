"""The page of a study of two countries: what is learnt in one and tested in the other, as a heat map and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.protocols.countries import (
    BOTH_WAYS,
    JOINT,
    MIRRORED,
    SCALES,
    SOURCE,
    TARGET,
    TEACHER,
    CountriesStudy,
    Direction,
)
from roadaware.reports.continual import format_measured
from roadaware.reports.page import (
    FULL,
    Facts,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    create_canvas,
    set_style,
)
from roadaware.reports.terminal import format_table

COLUMNS = ("from", "to", "learnt from", "mAP on the target", "less source-only", "mAP on the source")
LEARNT = {
    SOURCE: "labels of the source",
    MIRRORED: "labels of the source, left and right exchanged",
    BOTH_WAYS: "both of these",
    SCALES: "labels of the source; features in spreads from the means of either country, without labels of the target",
    TEACHER: "labels of the source, boxes of the target without labels",
    JOINT: "labels of both",
    TARGET: "labels of the target",
}
"""Of each row what it is given."""


def list_rows(study: CountriesStudy) -> list[list[str]]:
    """A row for each way of learning, in both directions."""
    return [
        [
            each.source, each.target, name, format_measured(target),
            format_measured(each.differences.get(name), sign="+"), format_measured(source),
        ]
        for each in study.directions
        for name, (target, source) in each.methods.items()
    ]  # fmt: skip


def _describe(direction: Direction, name: str) -> str:
    held = direction.differences[name]
    if held.value is None:
        return f"{name} is not defined"
    if held.low is None:
        return f"{name} {held.value:+.3f}"
    verdict = "better" if held.is_above_zero else "worse" if held.is_below_zero else "not different"
    return f"{name} {verdict} ({format_measured(held, sign='+')})"


def list_findings(study: CountriesStudy) -> list[str]:
    """What the study says, in sentences with its numbers."""
    says = []
    for each in study.directions:
        source, target = each.methods[SOURCE][0], each.methods[TARGET][0]
        if source.value is None or target.value is None:
            continue
        says.append(
            f"{each.source} to {each.target}: source-only {source.value:.3f}, with labels of the target alone "
            f"{target.value:.3f}. Less source-only, paired: "
            f"{'; '.join(_describe(each, name) for name in (TEACHER, SCALES, MIRRORED, BOTH_WAYS, JOINT))}."
        )
    return says


def format_countries_study(study: CountriesStudy) -> str:
    """The study as a table of text, for a terminal."""
    return "\n".join([format_table(COLUMNS, list_rows(study), left=3), "", *list_findings(study)])


def plot_countries(study: CountriesStudy) -> Picture:
    """Mean average precision of each row in both directions, on target and source, as a heat map."""
    names = list(study.directions[0].methods)
    columns = [(each, on) for each in study.directions for on in (0, 1)]
    grid = np.array(
        [
            [np.nan if (value := each.methods[name][on].value) is None else value for each, on in columns]
            for name in names
        ]
    )  # fmt: skip
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    with set_style():
        figure, axes = create_canvas(FULL, 0.34 * len(names) + 1.2)
        axes.imshow(grid, cmap="viridis", vmin=low, vmax=high, aspect="auto")
        for (y, x), value in np.ndenumerate(grid):
            axes.text(
                x, y, "-" if np.isnan(value) else f"{value:.3f}", ha="center", va="center", fontsize=7.5,
                color="black" if value > (low + high) / 2 else "white",
            )  # fmt: skip
        words = [f"{d.source} to {d.target},\non {(d.target, d.source)[on]}" for d, on in columns]
        axes.set_xticks(range(len(columns)), words, fontsize=7.5)
        axes.set_yticks(range(len(names)), names, fontsize=8)
    return Picture(
        "Learnt here, tested there",
        "Mean average precision of the labels that both countries annotate, mean over seeds: of each way of learning (rows) "
        "on the test of the target and of the source, in both directions.",
        figure,
    )


def build_countries_section(study: CountriesStudy) -> Section:
    """The section of the page."""
    facts: list[tuple[str, str]] = [
        (name, f"{about}; {scenes[0]} scenes with {boxes:,} boxes learnt from, {scenes[1]} scenes tested")
        for name, about, scenes, boxes in zip(
            study.names, study.about, study.scenes, study.boxes, strict=True
        )
    ]
    points: list[str] = []
    for name, only, left_out in zip(study.names, study.only, study.left_out, strict=True):
        if only:
            points.append(f"{name} alone annotates {', '.join(only)}: learnt there, and not judged")
        points += [f"{name}: {words}" for words in left_out]
    for each in study.directions:
        points.append(f"judged on {each.target}: {', '.join(each.judged)}")
        if each.passed:
            points.append(f"true in too few test scenes of {each.target}: {', '.join(each.passed)}")
    blocks: list[Any] = [
        Facts((*facts, *((name, LEARNT[name]) for name in study.directions[0].methods))),
        Pictures((plot_countries(study),)),
        Table(
            COLUMNS, tuple(map(tuple, list_rows(study))), "lllrrr", title="Both directions",
            caption="In brackets 95 % intervals over test scenes "
            f"({', '.join(f'{d.scenes} of {d.target}' for d in study.directions)}), by the jackknife; "
            f"means over {study.seeds} seeds; differences are paired.",
        ),
        Points(tuple(points), title="Labels"),
        Note(
            "Labels are matched by name. Of tables the own motion is what boxes tell of it; boxes go through the errors of a "
            "detector and the project's linker, as in the training of the event head."
        ),
    ]  # fmt: skip
    return Section("Two countries", tuple(list_findings(study)), tuple(blocks))
