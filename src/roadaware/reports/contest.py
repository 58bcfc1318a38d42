"""The page of a fair contest of crossing predictors: test with intervals, paired differences, and what each tried."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.compare import compare
from roadaware.metrics.multi_seed import AVERAGE
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.protocols.contest import Contest
from roadaware.reports.page import Section, Table
from roadaware.reports.terminal import format_table

SHOWN = {"auc": "AUC", "average_precision": "AP", "f1": "F1", "balanced_accuracy": "balanced accuracy"}
"""Metrics of the table; the rows of the contest hold all."""
_UNITS = ("pedestrian", "video")


def _format(value: float | None, ends: list[tuple[float | None, float | None]], sign: str = "") -> str:
    if value is None:
        return "-"
    known = [
        f"[{low:{sign}.3f}, {high:{sign}.3f}]" for low, high in ends if low is not None and high is not None
    ]
    return " ".join([f"{value:{sign}.3f}", *known])


def list_results(found: Contest) -> list[list[str]]:
    """Rows of cells, the head first: contestants by AUC on test, with 95 % intervals over pedestrians, then over videos."""
    fits = found.rows.filter(pl.col("run") == AVERAGE)
    of_test = {
        name: {row["metric"]: row for row in fits.filter(pl.col("recipe") == name).iter_rows(named=True)}
        for name in found.trials
    }
    head = [
        "predictor",
        *SHOWN.values(),
        "AP on validation",
        "AP on validation, all tried",
        "CPU s of trying",
    ]
    body = []
    for name in sorted(of_test, key=lambda name: -(of_test[name]["auc"]["value"] or 0.0)):
        cells = [
            _format(row["value"], [(row[f"low_{unit}"], row[f"high_{unit}"]) for unit in _UNITS])
            for row in (of_test[name][metric] for metric in SHOWN)
        ]
        tried = [trial.score for trial in found.trials[name] if trial.score is not None]
        spent = sum(trial.cpu_s for trial in found.trials[name])
        body.append(
            [name, *cells, f"{max(tried):.3f}", f"{min(tried):.3f} to {max(tried):.3f}", f"{spent:,.0f}"]
        )
    return [head, *body]


def list_differences(found: Contest, resamples: int) -> list[list[str]]:
    """Rows of cells, the head first: who leads on validation less each other, on the same test samples."""
    first, *others = found.order
    head = [first, *SHOWN.values()]
    body = []
    for name in others:
        table = compare(
            found.scores[first], found.scores[name], PedestrianConfig.default("action"), resamples=resamples
        ).table
        rows = {row["metric"]: row for row in table.iter_rows(named=True)}
        cells = [
            _format(row["difference"], [(row[f"low_{unit}"], row[f"high_{unit}"]) for unit in _UNITS], "+")
            + f" {row['verdict']}"
            for row in (rows[metric] for metric in SHOWN)
        ]
        body.append([f"less {name}", *cells])
    return [head, *body]


def list_choices(found: Contest) -> list[list[str]]:
    """Rows of cells, the head first: the configuration of each that was chosen on validation, and those that failed."""
    body = []
    for name, tried in found.trials.items():
        best = tried[found.chosen[name]].configuration
        text = ", ".join(f"{key.removeprefix('network.fields.')}={value}" for key, value in best.items())
        failed = [trial.failed for trial in tried if trial.score is None]
        body.append([name, text, f"{len(tried)}", f"{len(failed)}: {failed[0]}" if failed else "0"])
    return [["predictor", "chosen on validation", "tried", "failed"], *body]


def describe(found: Contest) -> str:
    """What was asked, in a sentence."""
    row = found.rows.row(0, named=True)
    return (
        f"{len(found.trials)} predictors, {found.budget} configurations each, chosen by average precision on validation; "
        f"{row['samples']:,} test samples of {row['pedestrians']:,} pedestrians, asked once. Means over "
        f"seeds ({', '.join(map(str, found.seeds))}) where a fit depends on them; 95 % intervals over pedestrians, then "
        "over videos."
    )


def format_contest(found: Contest, resamples: int) -> str:
    """The contest as tables of text, for a terminal."""
    tables = [list_results(found)]
    if resamples and len(found.trials) > 1:
        tables.append(list_differences(found, resamples))
    tables.append(list_choices(found))
    return "\n\n".join([describe(found), *(format_table(head, body) for head, *body in tables)])


def build_contest_section(found: Contest, resamples: int) -> Section:
    """The contest as a section of a page."""
    tables = [_table(list_results(found), "Test")]
    if resamples and len(found.trials) > 1:
        caption = (
            "Of the means over seeds of the probabilities; 95 % intervals over pedestrians, then over videos."
        )
        tables.append(_table(list_differences(found, resamples), "Paired differences", caption))
    return Section(
        "Fair contest", (describe(found),), (*tables, _table(list_choices(found), "Choices", left=2))
    )


def _table(rows: list[list[str]], title: str, caption: str = "", left: int = 1) -> Table:
    head, *body = rows
    align = "l" * left + "r" * (len(head) - left)
    return Table(tuple(head), tuple(map(tuple, body)), align, title=title, caption=caption)
