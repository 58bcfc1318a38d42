"""Cells: scores of a model on a test set, evaluated and kept each in a folder."""

from __future__ import annotations

import io
import json
import logging
import math
import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import DiskError, InputError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.io.parquet import read_parquet
from roadaware.metrics.calibration import SCALES, CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrians import PedestrianConfig, PedestrianCore
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.cross_dataset import fits
from roadaware.protocols.cross_dataset.config import AwayStudy, Fit, Joined, Unit
from roadaware.protocols.cross_dataset.domains import describe_error
from roadaware.protocols.cross_dataset.results import (
    COVERED,
    HIGHER,
    RESULTS,
    SCORES,
    SETS,
    TABLE,
    TESTED,
    Cell,
    read_study_json,
)
from roadaware.statistics.conformal import Conformal, calibrate_conformal
from roadaware.statistics.intervals import Scale, Units

METRICS = "metrics.json"
_log = logging.getLogger("roadaware")


def describe_cell(cell: Cell) -> str:
    """A cell in words, as reports of failures name it.

    >>> describe_cell(Cell("steady", "pie", "jaad-all", 3))
    'steady trained on pie, tested on jaad-all, seed 3, deterministic'
    """
    return (
        f"{cell.model} trained on {cell.trained_on}, tested on {cell.tested_on}, seed {cell.seed}, "
        f"{cell.doubt}"
    )


def is_done(cell: Cell, out: Path) -> bool:
    """Whether a cell's scores were judged; its metrics are written last.

    Args:
        cell: which.
        out: folder of the study.
    """
    return (out / cell.place / METRICS).is_file()


def is_covered(cell: Cell, out: Path) -> bool:
    """Whether a cell is done and its sets were judged too, which folders of earlier versions lack.

    Args:
        cell: which.
        out: folder of the study.
    """
    return is_done(cell, out) and (out / cell.place / COVERED).is_file()


def run_single_threaded(unit: Unit, study: AwayStudy, out: Path) -> dict[Cell, str]:
    """As `run_unit`, in a process that has one thread for it; arguments as there."""
    # Fits run in several processes at once; more threads of each would compete for the cores.
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    return run_unit(unit, study, out)


def run_unit(unit: Unit, study: AwayStudy, out: Path) -> dict[Cell, str]:
    """Make a fit and ask it for its cells, as far as they are not done.

    Args:
        unit: fit and cells.
        study: says how.
        out: folder of the study.

    Returns:
        cells that failed, and why; none if all is well.

    Raises:
        DiskError: if the folder cannot be written to.
    """
    there = fits.get_model_path(
        unit.fit, out
    ).is_file()  # a lost model is not learnt again for its sets alone
    due = [cell for cell in unit.cells if not (is_covered(cell, out) if there else is_done(cell, out))]
    failed: dict[Cell, str] = {}
    try:
        if due:
            fits.make(unit.fit, study, out)
    except DiskError:
        raise
    except Exception as error:  # whatever is wrong with one model, the others stand
        raise_interrupt(error)
        return _collect_failed(unit.fit, due, out, error)
    for uncertainty, several in groupby(due, key=lambda cell: cell.doubt):
        held = list(several)
        try:
            # Ask a fit for its cells, and for the threshold of its sets on validation; what is judged
            # stands
            fit = unit.fit
            answers = fits.load_predictor(fit, uncertainty, study, out)
            for cell in held:
                if not is_done(cell, out):
                    keep(cell, answers(cell.tested_on, "test"), study, out)
            promise = fit_conformal(answers(fit.domain, "val"), fits.read_validation_truth(out, fit.domain))
            for cell in held:
                rows = build_coverage_rows(
                    _state(cell, read_cell_scores(cell, out), out), promise, study.draws
                )
                write_atomically(out / cell.place / COVERED, encode_sets(promise, rows))
        except DiskError:
            raise
        except Exception as error:
            raise_interrupt(error)
            failed |= _collect_failed(unit.fit, held, out, error)
    return failed


def _collect_failed(fit: Fit, due: Sequence[Cell], out: Path, error: Exception) -> dict[Cell, str]:
    """Cells without scores, and why; where there are scores and no sets, a warning says so."""
    _log.debug("%s", fit, exc_info=error)
    left = {cell: describe_error(error) for cell in due if not is_done(cell, out)}
    if not left:
        _log.warning("%s: no conformal sets: %s", fit, describe_error(error))
    return left


def join(joined: Joined, study: AwayStudy, out: Path) -> None:
    """Put a cell together of others: the mean of their probabilities.

    Args:
        joined: which, and of which.
        study: says how cells are judged.
        out: folder of the study.

    Raises:
        InputError: if a part is missing.
    """
    if is_done(joined.cell, out):
        return
    missing = [part for part in joined.parts if not is_done(part, out)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"there is no {describe_cell(missing[0])}{more}")
    said = [read_cell_scores(part, out) for part in joined.parts]
    keep(joined.cell, np.asarray(np.mean(said, axis=0)), study, out)


def keep(cell: Cell, probability: Floats, study: AwayStudy, out: Path) -> None:
    """Evaluate scores and write them with their metrics.

    Args:
        cell: whose they are.
        probability: (n,) of crossing.
        study: says how often to resample.
        out: folder of the study.

    Raises:
        InputError: if a probability is none.
        DiskError: if the folder cannot be written to.
    """
    state = _state(cell, probability, out)
    record = {
        "samples": len(state),
        "positives": int(state.truth.sum()),
        "rows": build_metric_rows(state, study.draws),
    }
    place, buffer = out / cell.place, io.BytesIO()
    pl.DataFrame({"probability": probability}).write_parquet(buffer)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"{place} could not be made: {error.strerror or error}") from error
    write_atomically(place / SCORES, buffer.getvalue())
    write_atomically(place / METRICS, (json.dumps(record) + "\n").encode())


def _state(cell: Cell, probability: Floats, out: Path) -> SampleScores:
    """Probabilities beside the ground truth of the samples that they belong to."""
    truth = read_parquet(out / TESTED / f"{cell.tested_on}.parquet")
    return SampleScores(
        probability,
        truth["truth"].to_numpy(),
        truth["pedestrian"].to_numpy(),
        truth["video"].to_numpy(),
        truth["tte_frames"].to_numpy(),
    )


def read_cell_scores(cell: Cell, out: Path) -> Floats:
    """(n,) probabilities of crossing that a cell keeps.

    Args:
        cell: that is done.
        out: folder of the study.
    """
    return np.asarray(read_parquet(out / cell.place / SCORES)["probability"].to_numpy())


def write_table(done: Sequence[Cell], out: Path) -> None:
    """Put the rows of cells together as the study's table.

    Args:
        done: in order.
        out: folder of the study.
    """
    frame = pl.DataFrame(list(_rows(done, out)), schema=RESULTS, orient="row")
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    write_atomically(out / TABLE, buffer.getvalue())


def _rows(done: Iterable[Cell], out: Path) -> Iterable[tuple[Any, ...]]:
    for cell in done:
        record = read_study_json(out / cell.place / METRICS)
        key = (cell.model, cell.trained_on, cell.tested_on, cell.seed, cell.doubt)
        sets = read_study_json(out / cell.place / COVERED) if is_covered(cell, out) else {"rows": []}
        for row in (*record["rows"], *sets["rows"]):
            found = tuple(row[name] for name in ("metric", "config", "value", "low", "high"))
            yield (*key, *found, row.get("caution"), record["samples"], record["positives"])


# Scoring: the rows of the results that one cell's scores come to.

Row = dict[str, Any]
"""`metric`, `config`, `value`, `low`, `high` and `caution`."""


def build_metric_rows(state: SampleScores, draws: int) -> list[Row]:
    """Every metric of the scores, with the 95 % interval over pedestrians.

    Args:
        state: scores beside their ground truth.
        draws: most weightings of pedestrians; 0 for no intervals.
    """
    ranked = PedestrianCore.of(state, PedestrianConfig.default("action"))
    once = {name: float(values[0]) for name, values in ranked.values(ranked.once()).items()}
    drawn = ranked.drawn("pedestrian", draws, 0) if draws else None
    units = ranked.units("pedestrian", draws, 0) if draws else None
    rows = [_row(name, "", once[name], (drawn or {}).get(name), units, "share") for name in HIGHER]
    for config in ("reference", "default"):
        named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
        binned = CalibrationCore.of(state, named)
        point = binned.once()
        again = (binned.drawn("pedestrian", draws, 0) if draws else None) or {}
        wanted = [("ece", config), ("mce", config)]
        wanted += [("nll", ""), ("brier", "")] if config == "default" else []
        rows += [_row(n, of, point[n], again.get(n), units, SCALES[n]) for n, of in wanted]
    return rows


def _row(metric: str, config: str, value: float, drawn: Floats | None, units: Units | None, on: Scale) -> Row:
    known = bool(np.isfinite(value))
    ends = units.interval(value, drawn, on) if drawn is not None and units is not None and known else None
    return {
        "metric": metric,
        "config": config,
        "value": value if known else None,
        "low": None if ends is None else ends.low,
        "high": None if ends is None else ends.high,
        "caution": None if ends is None else ends.caution,
    }


# Covering: what split conformal sets that were promised in-domain still hold on a test set.

LEVEL = 0.9
"""Share of samples whose set is to hold the true label."""


def fit_conformal(probability: Floats, truth: npt.ArrayLike) -> Conformal:
    """The sets of rule `lac` that keep the promise on samples exchangeable with those of validation.

    Args:
        probability: (n,) of crossing, on the validation split of the training set.
        truth: (n,) labels.

    Raises:
        ValueError: if there are no samples, or a probability leaves [0, 1].

    Source: Papadopoulos et al., ECML 2002; Sadinle et al., JASA 2019.
    """
    return calibrate_conformal(probability[:, None], truth, 1 - LEVEL)


def compute_coverage(state: SampleScores, promise: Conformal) -> Floats:
    """(n, metrics) of each sample: whether its set holds the ground truth, its labels, whether it is empty.

    Args:
        state: scores beside their ground truth.
        promise: that was made in-domain.
    """
    sets = promise.sets(state.scores)
    size = sets.sum(axis=1)
    return np.stack([sets[np.arange(len(state)), state.truth], size, size == 0], axis=1).astype(np.float64)


def build_coverage_rows(state: SampleScores, promise: Conformal, draws: int) -> list[Row]:
    """`coverage_90`, `set_size_90` and `empty_90` with 95 % intervals over pedestrians.

    The threshold is held: pedestrians of the test set are drawn anew, those of validation are not.

    Args:
        state: scores beside their ground truth.
        promise: that was made in-domain.
        draws: most weightings of pedestrians; 0 for no intervals.
    """
    found = compute_coverage(state, promise)
    drawn = compute_resampled_means(found, state.pedestrian, draws)
    rows = []
    for place, name in enumerate(SETS):
        value = float(found[:, place].mean())
        units = None if drawn is None else Units.of(state.pedestrian, draws, 0)
        scale: Scale = "positive" if name == "set_size_90" else "share"
        ends = None if drawn is None or units is None else units.interval(value, drawn[:, place], scale)
        low, high, why = (None, None, None) if ends is None else (ends.low, ends.high, ends.caution)
        rows.append({"metric": name, "config": "", "value": value, "low": low, "high": high, "caution": why})
    return rows


def compute_resampled_means(
    values: Floats, unit: npt.NDArray[np.generic], draws: int, seed: int = 0
) -> Floats | None:
    """(draws, metrics) means over samples when whole units are drawn; None without resamples or below two units.

    Args:
        values: (n, metrics) of samples.
        unit: (n,) the pedestrian of each; equal units give equal resamples.
        draws: most weightings of units; `PercentileDraws` where several sets are put together.
        seed: of the weightings; test sets that are drawn by themselves take different ones.
    """
    names, owner = np.unique(unit, return_inverse=True)
    units = Units.of(names, draws, seed) if draws else None
    if units is None:
        return None
    sums = np.zeros((len(names), values.shape[1] + 1))
    np.add.at(sums, owner, np.column_stack([values, np.ones(len(values))]))
    found = np.concatenate([block @ sums for block in units.weights()])
    return np.asarray(found[:, :-1] / found[:, -1:])


def encode_sets(promise: Conformal, rows: list[Row]) -> bytes:
    """Encode the conformal sets of a cell.

    Args:
        promise: whose threshold is kept; an infinite one as null.
        rows: of the results.
    """
    threshold = promise.threshold if math.isfinite(promise.threshold) else None
    return (json.dumps({"threshold": threshold, "rows": rows}) + "\n").encode()


def read_sets(folder: Path, cell: Cell) -> Conformal | None:
    """The sets that a cell was judged by; None where it keeps none.

    Args:
        folder: of the study.
        cell: of it.
    """
    path = folder / cell.place / COVERED
    if not path.is_file():
        return None
    threshold = read_study_json(path)["threshold"]
    return Conformal("lac", 1 - LEVEL, math.inf if threshold is None else float(threshold))
