"""`roadaware cross-dataset`: predictors of pedestrians, trained at home and tested away from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import (
    LOCAL,
    USUAL,
    Common,
    Outcome,
    Output,
    Resamples,
    Several,
    Spread,
    validate_range,
)
from roadaware.config import digest
from roadaware.io import folders
from roadaware.protocols.cross_dataset.config import AwayStudy
from roadaware.reports.cross_dataset_cells import NAMES, Study
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)

if TYPE_CHECKING:
    from roadaware.protocols.cross_dataset.config import CrossResults
    from roadaware.reports.cross_dataset_cells import Found

_STUDY = "The study: a YAML file, such as those in configs/cross/; the options below replace what it says."
_MODELS = "Names of models, with commas: steady,sfgru,boosting; of those that need boxes alone."
_DOMAINS = "Where they learn and are tested: jaad-behaviour,jaad-all,pie,crossing@1+city-b, or NAME=PATH."
_SEEDS = "Fits of each network on each domain."
_CONFIG = "Samples as published (`reference`), or with honest labels (`default`)."
_SCENES = "Of a simulated domain that is made for the study."
_DOUBTED = "Models that are also evaluated with every estimate of uncertainty, with commas."
_PRETRAINED = "Networks that also go on from another domain, with commas; --pretraining says which."
_PRETRAINING = "Where first and where then, with commas: 'crossing@1>jaad-all'."
_SET = "Other fields of the study, such as learning.updates=300."
_OUT = "Folder of the study; the same command goes on there. [default: runs/cross-DIGEST]"
_DATA = "Folder that holds jaad/ and pie/. [default: ROADAWARE_DATA_DIR]"
_JOBS = "Models that learn side by side, on one thread each. [default: 1; of a cluster as many as it has processors]"
_LIST = ("models", "domains", "doubted", "pretrained", "pretraining")


def cross_dataset(
    study: Annotated[Path | None, Parameter(help=_STUDY)] = None,
    /,
    *,
    models: Annotated[str | None, Parameter(help=_MODELS)] = None,
    domains: Annotated[str | None, Parameter(help=_DOMAINS)] = None,
    seeds: Annotated[int | None, Parameter(help=_SEEDS)] = None,
    config: Annotated[str | None, Parameter(help=_CONFIG)] = None,
    scenes: Annotated[int | None, Parameter(help=_SCENES)] = None,
    doubted: Annotated[str | None, Parameter(help=_DOUBTED)] = None,
    pretrained: Annotated[str | None, Parameter(help=_PRETRAINED)] = None,
    pretraining: Annotated[str | None, Parameter(help=_PRETRAINING)] = None,
    draws: Resamples | None = None,
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
    data: Annotated[Path | None, Parameter(help=_DATA)] = None,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.FOLDER] = None,
    processes: Annotated[
        int | None, Parameter(help=_JOBS, validator=validate_range(1, 10_000), show_default=False)
    ] = None,
    spread: Spread = LOCAL,
    common: Common = USUAL,
) -> Outcome:
    """Train predictors on each of several domains, test each on all: in-domain and out-of-domain.

    A domain is JAAD (with behaviour tags, or all), PIE where its boxes are, or a preset of the simulator in
    a town, which is made as tables without images. Samples are cut as Gesnouin et al. (IV 2022) cut them.
    Every model sees boxes alone. The folder gets the table of all cells, their scores, and a page with the
    figures and tables of that paper from these runs: in-domain against out-of-domain, training sets together,
    ranks and whether they differ, estimates of uncertainty, and what pretraining on the simulator gives.

    Interrupted, the same command goes on. A path that does not exist is refused at once. What fails later, a
    fit or a domain that cannot be used, leaves the others, is named with its reason, and ends the command
    with 1.

    For example:

        roadaware cross-dataset --models steady,boosting --domains crossing@1,crossing@1+city-b \\
            --seeds 2 --output runs/away

        roadaware cross-dataset configs/cross/jaad-and-towns.yaml --data DATA --processes 2
    """
    from roadaware.protocols.cross_dataset.cells import run
    from roadaware.reports.cross_dataset import render_cross_dataset
    from roadaware.training.recipe_files import build_dataclass, read_fields  # YAML, of the extra `models`

    given = locals()
    workers = spread.gather(processes, usual=1)
    fields = read_fields(study, changes or [])
    for name in _OPTIONS:
        if (value := given[name]) is not None:
            fields[name] = [each for each in value.split(",") if each] if name in _LIST else value
    wanted = build_dataclass(AwayStudy, fields)
    folder = out or Path("runs") / f"cross-{digest(wanted)[:8]}"
    outputs.FOLDER.check(folder)
    stated = os.environ.get("ROADAWARE_DATA_DIR")  # a study of towns alone needs no data
    source = data or (Path(stated) if stated else None)
    with console.show_progress("out of domain") as progress:
        results = run(wanted, folder, data=source, workers=workers, progress=progress)
    page = results.folder / "report.html"
    folders.write_text(page, render_cross_dataset(results))
    recorded = results.study
    facts = {
        "folder": str(results.folder),
        "digest": recorded["digest"],
        "cells": len(results.cells),
        "unfinished": recorded["unfinished"],
        "skipped": recorded["skipped"],
        "failed": recorded["failed"],
    }
    lost = [f"{len(recorded['failed'])} cells failed"] if recorded["failed"] else []
    lost += [f"{', '.join(recorded['skipped'])} could not be used"] if recorded["skipped"] else []
    return Outcome(
        f"{format_cross_results(results)}\n\nwrote {results.folder} (report: {page})",
        facts,
        f"{' and '.join(lost)}; the others stand" if lost else None,
    )


_OPTIONS = ("seeds", "config", "scenes", "draws", *_LIST)


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
