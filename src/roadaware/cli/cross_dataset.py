"""`roadaware cross-dataset`: predictors of pedestrians, trained at home and tested away from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import LOCAL, Outcome, Output, Resamples, Several, Spread
from roadaware.config import digest
from roadaware.io import folders
from roadaware.protocols.cross_dataset.config import AwayStudy

_USUAL = AwayStudy()
_STUDY = "The study: a YAML file, such as those in configs/cross/; the options below replace what it says."
_MODELS = (
    f"Names of models, with commas, of those that need boxes alone. [default: {','.join(_USUAL.models)}]"
)
_DOMAINS = (
    "Where they learn and are tested: jaad-behaviour,jaad-all,pie,crossing@1+city-b, or NAME=PATH. "
    f"[default: {','.join(_USUAL.domains)}]"
)
_CONFIG = f"Samples as published (`reference`), or with honest labels (`default`). [default: {_USUAL.config}]"
_SEEDS = f"Fits of each network on each domain. [default: {_USUAL.seeds}]"
_SCENES = f"Of a simulated domain that is made for the study. [default: {_USUAL.scenes}]"
_SET = (
    "Other fields of the study, such as learning.updates=300; doubted=steady,sfgru, models that are also evaluated with "
    "every estimate of uncertainty; pretrained=steady and 'pretraining=crossing@1>jaad-all', networks that also go on from "
    "another domain, and where first and where then."
)
_OUT = "Folder of the study; the same command goes on there. [default: runs/cross-DIGEST]"
_DATA = "Folder that holds jaad/ and pie/. [default: ROADAWARE_DATA_DIR]"
_LIST = ("models", "domains", "doubted", "pretrained", "pretraining")
"""Fields that may be given as one word with commas."""


def cross_dataset(
    study: Annotated[Path | None, Parameter(help=_STUDY)] = None,
    /,
    *,
    models: Annotated[str | None, Parameter(help=_MODELS)] = None,
    domains: Annotated[str | None, Parameter(help=_DOMAINS)] = None,
    seeds: Annotated[int | None, Parameter(help=_SEEDS)] = None,
    config: Annotated[str | None, Parameter(help=_CONFIG)] = None,
    scenes: Annotated[int | None, Parameter(help=_SCENES)] = None,
    resamples: Resamples | None = None,
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
    data: Annotated[Path | None, Parameter(help=_DATA)] = None,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.FOLDER] = None,
    spread: Spread = LOCAL,
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
    from roadaware.reports.cross_dataset import format_cross_results, render_cross_dataset
    from roadaware.training.recipe_files import build_dataclass, read_fields  # YAML, of the extra `models`

    given: dict[str, Any] = {
        "models": models,
        "domains": domains,
        "seeds": seeds,
        "config": config,
        "scenes": scenes,
    }
    given["resamples"] = resamples
    workers = spread.gather(least=1)
    fields = read_fields(study, changes or [])
    fields |= {name: value for name, value in given.items() if value is not None}
    for name in _LIST:
        value = fields.get(name, ())
        if value is None or isinstance(value, str):  # nothing behind the equals sign is null
            fields[name] = [each for each in (value or "").split(",") if each]
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
