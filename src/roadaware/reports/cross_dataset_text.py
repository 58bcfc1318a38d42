"""A cross-dataset study as the tables that the command prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from roadaware.reports.cross_dataset_cells import NAMES, Study
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)

if TYPE_CHECKING:
    from roadaware.protocols.cross_dataset.results import CrossResults
    from roadaware.reports.cross_dataset_cells import Found


_METRICS = ("auc", "ece")
_KINDS = ("home", "away", "visitors", "ensemble")
_HEADS = ("home", "away", "others together", "all together")
_MOST_REASONS = 12


def format_cross_results(results: CrossResults) -> str:
    """Means at home, away and together, the matrix of every model, ranks, and what is missing.

    Args:
        results: as they were opened.
    """

    study = Study(results)
    learnt, tested = len(study.learnt), len(study.tested)
    parts = [f"{len(study.models)} models, trained on {learnt} and tested on {tested} domains"]
    if study.metrics:
        parts += [_means(study), *(text for metric in _METRICS if (text := _matrix(study, metric)))]
        parts += [_ranks(study)]
    else:
        parts.append("no cell has a value yet")
    parts += list(_missing(results))
    return "\n\n".join(part for part in parts if part)


def _means(study: Study) -> str:
    """Each model's mean over test sets, at home, away and as ensembles over training sets."""
    from roadaware.reports.cross_dataset_figures import compute_means

    shown = [metric for metric in _METRICS if metric in study.metrics]
    rows = []
    for model in study.models:
        found = [compute_means(study, model, metric) for metric in shown]
        rows.append([model, *(format_number(held[kind]) for held in found for kind in _KINDS)])
    head = ["model", *(f"{NAMES[metric]} {name}" for metric in shown for name in _HEADS)]
    return format_table(head, rows) + "\nmeans over test sets and seeds"


def _matrix(study: Study, metric: str) -> str:
    """Every model and training set in a row, test sets in columns, with intervals over pedestrians."""
    from roadaware.reports.cross_dataset_figures import find_cell, format_row_name, list_rows

    if metric not in study.metrics:
        return ""
    rows = []
    for model in study.models:
        for trained in list_rows(study):
            found = [find_cell(study, model, trained, tested, metric) for tested in study.tested]
            if any(one is not None for one in found):
                rows.append([model, format_row_name(study, trained), *map(_format_found, found)])
    head = ["model", "trained on", *(f"on {name}" for name in study.tested)]
    return f"{NAMES[metric]}\n{format_table(head, rows, left=2)}"


def _format_found(found: Found | None) -> str:
    if found is None:
        return ""
    if found.value is None:
        return "failed"
    ends = format_interval(found.low, found.high, caution=found.caution)
    return format_number(found.value) if ends == "-" else f"{format_number(found.value)} {ends}"


def _ranks(study: Study) -> str:
    from roadaware.reports.cross_dataset_figures import rank_models

    lines = []
    for metric in _METRICS:
        found = rank_models(study, metric)
        if found.comparison is None:
            lines.append(f"{NAMES[metric]}: {found.why}")
            continue
        held = found.comparison
        listed = ", ".join(f"{name} {rank:.2f}" for name, rank in held.ranks.items())
        differ = sum(pair.differ for pair in held.pairs)
        lines.append(
            f"{NAMES[metric]}: {listed}; Friedman p {held.p:.2g} over {held.sets} pairs of sets, {differ} of "
            f"{len(held.pairs)} pairs of models differ at alpha {held.alpha:g}"
        )
    return "mean out-of-domain ranks, 1 is best:\n" + format_bullets(lines)


def _missing(results: CrossResults) -> Iterator[str]:
    if results.study.get("unfinished"):
        yield f"{results.study['unfinished']} cells are not finished"
    for kind in ("failed", "skipped"):
        reasons = list((results.study.get(kind) or {}).items())
        if reasons:
            yield f"{kind}:\n" + format_bullets(_few(reasons))


def _few(reasons: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, why in reasons[:_MOST_REASONS]:
        yield f"{format_cell(name)}: {why}"
    if len(reasons) > _MOST_REASONS:
        yield f"and {len(reasons) - _MOST_REASONS} more"
