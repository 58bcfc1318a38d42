"""Results of recipes as one long table, a row for each fit, each mean of fits and each metric."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import digest
from roadaware.errors import DamagedError
from roadaware.io.files import write_atomically
from roadaware.io.parquet import read_parquet
from roadaware.metrics.multi_seed import AVERAGE, FITS, evaluate_fits
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.metrics.scores import SampleScores
from roadaware.models.crossing import features
from roadaware.statistics import classification
from roadaware.training.pedestrians.recipe import Criterion, PedestrianRecipe

ENSEMBLE = "ensemble"
"""The run whose probabilities are the mean of those of all seeds; `mean` is the mean of their metrics."""
TABLE, TIMES = "results.parquet", "timing.parquet"
"""What came of recipes, which is the same in every run, and beside it the seconds that it took."""
RESULTS: dict[str, Any] = {
    "recipe": pl.String,
    "digest": pl.String,
    "model": pl.String,
    "inputs": pl.String,
    "task": pl.String,
    "protocol": pl.String,
    "config": pl.String,
    **FITS,
    "samples": pl.Int64,
    "pedestrians": pl.Int64,
    "parameters": pl.Int64,
    "epoch": pl.Int64,
    "criterion": pl.String,
    "validation": pl.Float64,
}
"""Columns: what was run on which inputs, which fit it is (`seed 0`, ..., `mean`, `ensemble`), the metric with
the ends of its intervals, and of each fit its size, and what validation chose, and by what."""
_KEY = ("recipe", "digest", "run")
_COST = {"cpu_s": pl.Float64}
SECONDS: dict[str, Any] = {**dict.fromkeys(_KEY, pl.String), **_COST}
"""Columns of the table of times: CPU seconds of each fit, or of all seeds together."""


@dataclass(frozen=True)
class Fit:
    """Cost of one fit, and its validation score.

    Args:
        parameters: numbers that were learnt.
        cpu_s: CPU seconds of fitting; None where nobody counted.
        epoch: that was best on validation, from 1; None for models without epochs.
        validation: its score there, by `criterion`.
        criterion: in words.
    """

    parameters: int
    cpu_s: float | None
    epoch: int | None
    validation: float | None
    criterion: str


def build_result_table(
    recipe: PedestrianRecipe,
    inputs: tuple[str, ...],
    said: Mapping[str, SampleScores],
    fits: Mapping[str, Fit],
    *,
    draws: int,
    seed: int = 0,
) -> pl.DataFrame:
    """The rows of one recipe: columns `RESULTS`, and `cpu_s`.

    Args:
        recipe: that was run.
        inputs: what its model reads.
        said: fit to scores of the test samples; `ensemble` may be among them.
        fits: fit to what it took.
        draws: bootstrap resamples; 0 gives no intervals.
        seed: of the resamples.
    """
    named = PedestrianConfig.reference if recipe.samples.config == "reference" else PedestrianConfig.default
    alone = tuple(name for name in said if name != ENSEMBLE)
    found = evaluate_fits(said, named(recipe.task), averaged=alone, draws=draws, seed=seed)
    first = next(iter(said.values()))
    costs = {**fits, AVERAGE: _together(list(fits.values())), ENSEMBLE: _together(list(fits.values()))}
    facts = {
        "recipe": recipe.name,
        "digest": digest(recipe)[:8],
        "model": recipe.network.name,
        "inputs": " ".join(inputs),
        "task": recipe.task,
        "protocol": recipe.samples.protocol,
        "config": recipe.samples.config,
        "samples": len(first),
        "pedestrians": len(set(first.pedestrian.tolist())),
    }
    rows = [{**facts, **row, **_columns(costs[row["run"]])} for row in found.iter_rows(named=True)]
    return pl.DataFrame(rows, schema=RESULTS | _COST)


def _together(fits: list[Fit]) -> Fit:
    """What several fits took; the score on validation is their mean, the size that of one."""
    known = [fit.cpu_s for fit in fits if fit.cpu_s is not None]
    scores = [fit.validation for fit in fits if fit.validation is not None]
    return Fit(
        fits[0].parameters,
        round(sum(known), 1) if len(known) == len(fits) else None,
        None,
        sum(scores) / len(scores) if scores else None,
        fits[0].criterion,
    )


def _columns(fit: Fit) -> dict[str, Any]:
    return {
        "parameters": fit.parameters,
        "cpu_s": fit.cpu_s,
        "epoch": fit.epoch,
        "validation": fit.validation,
        "criterion": fit.criterion,
    }


def keep(folder: Path, rows: pl.DataFrame) -> None:
    """Write the rows of recipes that came to their end, and what they took beside them.

    Args:
        folder: of the run.
        rows: as `build_result_table` makes them.

    Raises:
        DiskError: if the disk refuses; what stood there still stands.
    """
    seconds = rows.select(*SECONDS).unique(_KEY, maintain_order=True)
    for name, table in ((TIMES, seconds), (TABLE, rows.select(*RESULTS))):
        stream = io.BytesIO()
        table.write_parquet(stream)
        write_atomically(folder / name, stream.getvalue())


def open_results(folder: Path) -> pl.DataFrame:
    """The rows of recipes with what they took: columns `RESULTS`, and `cpu_s`, null where nobody counted.

    Args:
        folder: of one recipe, or of several. Up to version 0.8 the seconds stand among the results.

    Raises:
        DamagedError: if a table is there and not whole.
        FileNotFoundError: if there are no results.
    """
    path = folder / TABLE
    try:
        held = read_parquet(path)
        if "cpu_s" in held.columns:
            return held
        path = folder / TIMES
        if not path.is_file():
            return held.with_columns(cpu_s=pl.lit(None, pl.Float64))
        return held.join(read_parquet(path).select(*SECONDS), on=_KEY, how="left", maintain_order="left")
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DamagedError(f"no whole table of results: {error}", where=str(path)) from error


def read_finished_results(
    folder: Path, recipe: PedestrianRecipe, seeds: tuple[int, ...]
) -> pl.DataFrame | None:
    """The rows that a folder holds of a recipe that came to an end; None where it has to be run.

    Args:
        folder: of the run.
        recipe: that is wanted.
        seeds: that must be among the rows.

    Raises:
        DamagedError: if the table is there and not whole.
    """
    if not (folder / TABLE).is_file():
        return None
    held = open_results(folder)
    if dict(held.schema) != RESULTS | _COST:
        return None
    whole = {f"seed {seed}" for seed in seeds} <= set(held["run"])
    return held if whole and set(held["digest"]) == {digest(recipe)[:8]} else None


def read_fit_record(path: Path) -> dict[str, Any]:
    """The record of a fit; empty where it cannot be read.

    Args:
        path: of its `fit.json` or `timing.json`.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


_ENDS = {unit: (f"low_{unit}", f"high_{unit}") for unit in ("pedestrian", "video")}
_OF_RECIPE = (
    "recipe",
    "digest",
    "model",
    "inputs",
    "task",
    "protocol",
    "config",
    "samples",
    "pedestrians",
    "parameters",
    "criterion",
)
_OF_RUN = ("cpu_s", "epoch", "validation")


def group_results(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The table as plain data: recipe by recipe, run by run, metric by metric.

    Args:
        rows: columns `RESULTS`, and `cpu_s` where it is to be there.
    """
    found = []
    for _, part in rows.group_by(("recipe", "digest"), maintain_order=True):
        first = part.row(0, named=True)
        by_run = {}
        for (name,), run in part.group_by(("run",), maintain_order=True):
            metrics = {
                row["metric"]: {
                    "value": row["value"],
                    **{unit: [row[low], row[high]] for unit, (low, high) in _ENDS.items()},
                    "cautions": {unit: row[f"caution_{unit}"] for unit in _ENDS},
                }
                for row in run.iter_rows(named=True)
            }
            facts = run.row(0, named=True)
            by_run[str(name)] = {**{key: facts[key] for key in _OF_RUN if key in facts}, "metrics": metrics}
        found.append({**{key: first[key] for key in _OF_RECIPE}, "runs": by_run})
    return found


# Choosing: how well scores fit the ground truth, more being better, to tell one epoch or fit from another.


def score_probabilities(criterion: Criterion, probability: Floats, truth: npt.NDArray[np.int64]) -> float:
    """How well probabilities fit; rankings of several labels are means over the labels that occur.

    Args:
        criterion: average_precision, auc, log_loss (with a minus) or balanced_accuracy.
        probability: (n, k); k = 1 is that of label 1.
        truth: (n) labels.

    Returns:
        NaN where a ranking means nothing, since one label alone occurs.
    """
    if criterion == "log_loss" or criterion == "balanced_accuracy":
        return features.score(criterion, probability, truth)
    rule = classification.average_precision if criterion == "average_precision" else classification.roc_auc
    labels = [1] if probability.shape[1] == 1 else range(probability.shape[1])
    found = [rule(truth == label, probability[:, min(label, probability.shape[1] - 1)]) for label in labels]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else float("nan")
