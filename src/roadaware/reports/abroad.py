"""The page of a study of predictors abroad: coverage and calibration before and after, as matrices and a table; alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roadaware.protocols.abroad import BUNDLED, NUMBERS, SETTLE_S, AbroadCell, AbroadStudy
from roadaware.reports.page import (
    FULL,
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

PROMISE, LEAST, MOST_ERROR = 0.9, 0.87, 0.10
"""What sets promise, and what was aimed at: coverage everywhere, and calibration error after a minute."""
COLUMNS = (
    "model", "from", "on", "coverage before", "after", "after a minute", "labels before", "after", "ECE before",
    "after a minute", "alarm raised", "videos until then",
)  # fmt: skip


def _format(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.{digits}f}"


def list_rows(study: AbroadStudy) -> list[list[str]]:
    """A row for each cell."""
    rows = []
    for cell in study.cells:
        ends = "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
        rows.append(
            [
                cell.model, cell.trained_on, cell.tested_on + (" (home)" if cell.is_home else ""),
                _format(cell.coverage_before), f"{_format(cell.coverage_after)}{ends}", _format(cell.coverage_late),
                _format(cell.size_before, 2),
                _format(cell.size_after, 2), _format(cell.ece_late_before if cell.ece_late is not None else cell.ece_before),
                _format(cell.ece_late), f"{100 * cell.alarmed:.0f} %", _format(cell.videos_to_alarm, 0),
            ]
        )  # fmt: skip
    return rows


def summarise(study: AbroadStudy) -> dict[str, float | None]:
    """Means over cells at home and away, the worst cells, and those of the bundled predictor; None where there is no cell."""

    def mean(cells: list[AbroadCell], name: str, how: Callable[[Any], Any] = np.mean) -> float | None:
        values = [getattr(cell, name) for cell in cells]
        known = [value for value in values if value is not None and np.isfinite(value)]
        return float(how(known)) if known else None

    home = [cell for cell in study.cells if cell.is_home]
    away = [cell for cell in study.cells if not cell.is_home]
    own = [cell for cell in away if cell.model == BUNDLED]
    found = {
        f"{name} {where}": mean(cells, name)
        for where, cells in (("home", home), ("away", away), ("bundled away", own))
        for name in (
            "coverage_before", "coverage_after", "coverage_late", "size_before", "size_after", "ece_late_before", "ece_late",
            "alarmed", "videos_to_alarm",
        )
    }  # fmt: skip
    return found | {
        "coverage_before least": mean(list(study.cells), "coverage_before", np.min),
        "coverage_after least": mean(list(study.cells), "coverage_after", np.min),
        "ece_late most away": mean(away, "ece_late", np.max),
        "ece_late most bundled away": mean(own, "ece_late", np.max),
    }


def list_findings(study: AbroadStudy) -> list[str]:
    """What the study says, in sentences with its numbers."""
    known = summarise(study)
    away = [cell for cell in study.cells if not cell.is_home]
    reached = sum(cell.coverage_after >= LEAST for cell in study.cells)
    says = [
        f"Sets that promise {PROMISE:g}: away {_format(known['coverage_before away'])} is held with a threshold that stays, "
        f"{_format(known['coverage_after away'])} with one that learns from delayed outcomes "
        f"({_format(known['size_before away'], 2)} and {_format(known['size_after away'], 2)} labels in a set); "
        f"{reached} of {len(study.cells)} cells hold {LEAST:g} or more, the least {_format(known['coverage_after least'])} "
        f"(before: {_format(known['coverage_before least'])}).",
        f"ECE away after a minute: {_format(known['ece_late away'])} instead of {_format(known['ece_late_before away'])} on "
        f"the same samples, at most {_format(known['ece_late most away'])}.",
    ]
    if known["ece_late bundled away"] is not None:
        most = known["ece_late most bundled away"]
        verdict = "reached" if most is not None and most <= MOST_ERROR else "not reached everywhere"
        says.append(
            f"The bundled predictor away: ECE {_format(known['ece_late bundled away'])} after a minute instead of "
            f"{_format(known['ece_late_before bundled away'])}, at most {_format(most)} (aim {MOST_ERROR:g}: {verdict})."
        )
    heard = sum(cell.alarmed >= 0.5 for cell in away)
    says.append(
        f"The alarm, which hears no label, is raised in {heard} of {len(away)} cells away, and at home in "
        f"{100 * (known['alarmed home'] or 0):.0f} % of streams (stated: {100 * study.adaptation.chance:.0f} % at most, if "
        "those at home were exchangeable with those held out)."
    )
    return says


def format_abroad_study(study: AbroadStudy) -> str:
    """The study as a table of text, for a terminal."""
    return "\n".join([format_table(list(COLUMNS), list_rows(study)), "", *list_findings(study)])


def plot_matrices(
    study: AbroadStudy, before: str, after: str, title: str, caption: str, reverse: bool
) -> Picture:
    """Two matrices side by side: rows are models with where they learnt, columns what they are asked about.

    Args:
        study: results.
        before, after: fields of the cells.
        title, caption: of the picture.
        reverse: whether large values are bad.
    """
    rows = list(dict.fromkeys((cell.model, cell.trained_on) for cell in study.cells))
    held = {(cell.model, cell.trained_on, cell.tested_on): cell for cell in study.cells}
    with set_style():
        figure, axes = create_canvas(FULL, 0.24 * len(rows) + 1.5)
        figure.delaxes(axes)
        panels: Any = figure.subplots(1, 2)
        low, high = (0.0, 0.4) if reverse else (0.4, 1.0)
        for panel, name, words in zip(panels, (before, after), ("before", "after"), strict=True):
            grid = np.full((len(rows), len(study.domains)), np.nan)
            for y, (model, home) in enumerate(rows):
                for x, domain in enumerate(study.domains):
                    value = getattr(held[model, home, domain], name)
                    grid[y, x] = np.nan if value is None else value
            panel.imshow(grid, cmap="viridis_r" if reverse else "viridis", vmin=low, vmax=high, aspect="auto")
            for (y, x), value in np.ndenumerate(grid):
                dark = (value > (low + high) / 2) == reverse
                panel.text(
                    x,
                    y,
                    _format(float(value), 2),
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if dark else "black",
                )
            panel.set_title(words, fontsize=8)
            panel.set_xticks(range(len(study.domains)), study.domains, rotation=30, ha="right", fontsize=6)
            labels = (
                [f"{'bundled' if model == BUNDLED else model}, {home}" for model, home in rows]
                if panel is panels[0]
                else [""] * len(rows)
            )
            panel.set_yticks(range(len(rows)), labels, fontsize=5)
    return Picture(title, caption, figure)


def plot_abroad(study: AbroadStudy) -> tuple[Picture, Picture]:
    """Coverage of sets, and calibration error after a minute, before and after."""
    return (
        plot_matrices(
            study, "coverage_before", "coverage_after", "Coverage of sets that promise 0.9",
            "Rows: model and where it learnt; columns: where it is asked. Before: the threshold of the validation split of "
            "where it learnt. After: adaptive sets, from the first sample on.", False,
        ),
        plot_matrices(
            study, "ece_late_before", "ece_late", "Calibration error after a minute",
            "On the same samples, those that come after the first minute of a stream: the predictor as it is, and calibrated "
            "by outcomes that arrive one to two seconds later.", True,
        ),
    )  # fmt: skip


def build_abroad_section(study: AbroadStudy) -> Section:
    """The section of the page."""
    how = study.adaptation
    columns = list(COLUMNS)
    tried = tuple(", ".join(f"{name} {value:.3g}" for name, value in each.items()) for each in study.tried)
    return Section(
        "Safe abroad",
        tuple(list_findings(study)),
        (
            Pictures(plot_abroad(study)),
            Table(
                tuple(columns), tuple(map(tuple, list_rows(study))), "lll" + "r" * (len(columns) - 3),
                title="Every model on every stream",
                caption=f"Means over {study.orders} orders of the videos; in brackets 95 % intervals over pedestrians. "
                f"ECE is that of what comes after {SETTLE_S:g} s, in the corrected adaptive bins, before and after on the "
                "same samples.",
            ),
            Points(tried, title="Tried on validation streams"),
            Note(
                f"Calibration keeps {how.keep:g} of older outcomes with each new one (prior deviation of the slope "
                f"{how.prior_slope:g}); sets learn at rate {how.rate:g}. Of each video the alarm hears {', '.join(NUMBERS)}, "
                "and how many people there are. Samples of a person hang together: neither promise is one for single persons."
            ),
        ),
    )  # fmt: skip
