"""Cells of a study out of domain: scores on a test set, evaluated and kept each in a folder, one by one."""

from __future__ import annotations

import io
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware import __version__
from roadaware import config as configs
from roadaware.arrays import Floats
from roadaware.errors import DamagedError, DiskError, InputError, RoadawareError, UsageError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder, make_folder
from roadaware.io.parallel import HERE, Ledger, Workers, map_parts
from roadaware.io.parquet import read_parquet
from roadaware.metrics.calibration import SCALES, CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrians import PedestrianConfig, PedestrianCore
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.cross_dataset import fits
from roadaware.protocols.cross_dataset.config import (
    AGAIN,
    COVERED,
    HIGHER,
    RESULTS,
    SCORES,
    SETS,
    STUDY,
    TABLE,
    TESTED,
    AwayStudy,
    Cell,
    CrossResults,
    Fit,
    Joined,
    Plan,
    Unit,
    build_plan,
    read_study_json,
)
from roadaware.protocols.cross_dataset.fits import describe_error
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
    """Whether a cell's scores were judged; its metrics are written last."""
    return (out / cell.place / METRICS).is_file()


def is_covered(cell: Cell, out: Path) -> bool:
    """Whether a cell is done and its sets were judged too, which folders of earlier versions lack."""
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
                    _state(cell, read_cell_scores(cell, out), out), promise, study.resamples
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
        "rows": build_metric_rows(state, study.resamples),
    }
    place, buffer = out / cell.place, io.BytesIO()
    pl.DataFrame({"probability": probability}).write_parquet(buffer)
    make_folder(place)
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
    """(n,) probabilities of crossing that a cell keeps."""
    return np.asarray(read_parquet(out / cell.place / SCORES)["probability"].to_numpy())


def write_table(done: Sequence[Cell], out: Path) -> None:
    """Put the rows of cells together as the study's table."""
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


def build_metric_rows(state: SampleScores, resamples: int) -> list[Row]:
    """Every metric of the scores, with the 95 % interval over pedestrians.

    Args:
        state: scores beside their ground truth.
        resamples: most weightings of pedestrians; 0 for no intervals.
    """
    ranked = PedestrianCore.of(state, PedestrianConfig.default("action"))
    once = {name: float(values[0]) for name, values in ranked.values(ranked.once()).items()}
    drawn = ranked.drawn("pedestrian", resamples, 0) if resamples else None
    units = ranked.units("pedestrian", resamples, 0) if resamples else None
    rows = [
        _row(name, "", once[name], (drawn or {}).get(name), units, "share", ranked.count_holding(name, units))
        for name in HIGHER
    ]
    for config in ("reference", "default"):
        named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
        binned = CalibrationCore.of(state, named)
        point = binned.once()
        again = (binned.drawn("pedestrian", resamples, 0) if resamples else None) or {}
        wanted = [("ece", config), ("mce", config)]
        wanted += [("nll", ""), ("brier", "")] if config == "default" else []
        rows += [_row(n, of, point[n], again.get(n), units, SCALES[n]) for n, of in wanted]
    return rows


def _row(
    metric: str,
    config: str,
    value: float,
    drawn: Floats | None,
    units: Units | None,
    on: Scale,
    holding: int | None = None,
) -> Row:
    known, ends = bool(np.isfinite(value)), None
    if drawn is not None and units is not None and known:
        ends = units.interval(value, drawn, on, holding=holding)
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


def build_coverage_rows(state: SampleScores, promise: Conformal, resamples: int) -> list[Row]:
    """`coverage_90`, `set_size_90` and `empty_90` with 95 % intervals over pedestrians.

    The threshold is held: pedestrians of the test set are drawn anew, those of validation are not.

    Args:
        state: scores beside their ground truth.
        promise: that was made in-domain.
        resamples: most weightings of pedestrians; 0 for no intervals.
    """
    found = compute_coverage(state, promise)
    drawn = compute_resampled_means(found, state.pedestrian, resamples)
    rows = []
    for place, name in enumerate(SETS):
        value = float(found[:, place].mean())
        units = None if drawn is None else Units.of(state.pedestrian, resamples, 0)
        scale: Scale = "positive" if name == "set_size_90" else "share"
        ends = None if drawn is None or units is None else units.interval(value, drawn[:, place], scale)
        low, high, why = (None, None, None) if ends is None else (ends.low, ends.high, ends.caution)
        rows.append({"metric": name, "config": "", "value": value, "low": low, "high": high, "caution": why})
    return rows


def compute_resampled_means(
    values: Floats, unit: npt.NDArray[np.generic], resamples: int, seed: int = 0
) -> Floats | None:
    """(resamples, metrics) means over samples when whole units are drawn; None without resamples or below two units.

    Args:
        values: (n, metrics) of samples.
        unit: (n,) the pedestrian of each; equal units give equal resamples.
        resamples: most weightings of units; `PercentileResamples` where several sets are put together.
        seed: of the weightings; test sets that are drawn by themselves take different ones.
    """
    names, owner = np.unique(unit, return_inverse=True)
    units = Units.of(names, resamples, seed) if resamples else None
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
    """The sets that a cell was judged by; None where it keeps none."""
    path = folder / cell.place / COVERED
    if not path.is_file():
        return None
    threshold = read_study_json(path)["threshold"]
    return Conformal("lac", 1 - LEVEL, math.inf if threshold is None else float(threshold))


Progress = Callable[[int, int, str], None]
Failures = dict[Cell, str]
_EVERY_S = 60.0


def run(
    study: AwayStudy,
    out: Path,
    *,
    data: Path | None = None,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> CrossResults:
    """Run a study, or its unfinished part, and collect its results.

    A folder may be asked for more models, domains, seeds or uncertainty methods than before; what it holds is kept.

    Args:
        study: what is wanted.
        out: its folder.
        data: folder that holds jaad/ and pie/.
        workers: where models learn, and how many side by side, on one thread each.
        progress: called with the number of cells done.

    Returns:
        the results; `study["failed"]` and `study["skipped"]` say what is missing, and why.

    Raises:
        UsageError: if the folder holds a study that learns otherwise, a domain is unknown, or another process
            is at work in the folder.
        InputError: if the path of a domain does not exist, or no domain can be used.
        DiskError: if the folder cannot be written to.
    """
    with hold_folder(out):
        wanted = [fits.parse_domain(name, study.roots.get(name), data) for name in study.names]
        fits.refuse_absent(wanted, out)
        # Refuse a folder whose fits were made otherwise
        make_folder(out)
        if (out / STUDY).exists():
            config = read_study_json(out / STUDY).get("config")
            if not isinstance(config, dict):
                raise DamagedError("not whole: it says no config", where=str(out / STUDY), hint=AGAIN)
            differ = [key for key, value in study.fixed.items() if config.get(key) != value]
            if differ:
                raise UsageError(
                    f"{out} holds a study with another {', '.join(differ)}; name another folder with --out"
                )
        facts, skipped = _prepare_domains(study, out, wanted, workers, progress)
        plan = build_plan(study, tuple(facts))
        # Also of fits whose cells are all done: what the folder says of itself may have been written over.
        for unit in (unit for units in plan.rounds for unit in units):
            fits.check_recipe(unit.fit, study, out)
        kept = _Kept(study, out, plan, facts, skipped)
        try:
            _run_units(kept, workers, progress)
            _join_ensembles(kept)
        finally:
            kept.write()
        return CrossResults.open(out)


def _prepare_domains(
    study: AwayStudy, out: Path, wanted: Sequence[fits.Domain], workers: Workers, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Facts of the domains that can be used, and why the others cannot."""
    facts: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for domain in wanted:
        try:
            facts[domain.name] = fits.prepare(domain, out, study.config, study.scenes, workers, progress)
        except InputError as error:
            skipped[domain.name] = fits.describe_error(error)
            _log.warning("%s is left out: %s", domain.name, skipped[domain.name])
    if not facts:
        raise InputError("no domain can be used: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return facts, skipped


def _run_units(kept: _Kept, workers: Workers, progress: Progress | None) -> None:
    """Make the fits and ask them; failures are noted and leave the others."""
    plan, out = kept.plan, kept.out
    whole = sum(len(unit.cells) for units in plan.rounds for unit in units)
    done = 0
    for units in plan.rounds:
        due = [unit for unit in units if any(not is_covered(cell, out) for cell in unit.cells)]
        done += sum(len(unit.cells) for unit in units) - sum(len(unit.cells) for unit in due)
        with Ledger(out, "fits", len(units), len(units) - len(due)) as ledger:
            for unit, found in _side_by_side(due, kept.study, out, workers):
                kept.failed |= found
                done += len(unit.cells)
                for why in set(found.values()):
                    _log.warning("%s: %s", unit.fit, why)
                ledger.note(str(unit.fit), next(iter(found.values()), None))
                kept.now_and_then()
                if progress is not None:
                    progress(done, whole, "cells")


def _side_by_side(
    units: Sequence[Unit], study: AwayStudy, out: Path, workers: Workers
) -> Iterator[tuple[Unit, Failures]]:
    """Each unit with what failed of it, as they are done."""
    run_one = run_unit if workers.is_inline(len(units)) else run_single_threaded
    with closing(map_parts(partial(_run_unit, run_one, study, out), units, workers)) as results:
        for each in results:
            unit = units[each.place]
            lost = None if each.failure is None else dict.fromkeys(unit.cells, each.failure)
            yield unit, lost or each.value or {}


def _run_unit(
    run_one: Callable[[Unit, AwayStudy, Path], Failures], study: AwayStudy, out: Path, unit: Unit
) -> Failures:
    return run_one(unit, study, out)


def _join_ensembles(kept: _Kept) -> None:
    for each in kept.plan.joined:
        try:
            join(each, kept.study, kept.out)
        except RoadawareError as error:
            kept.failed[each.cell] = fits.describe_error(error)


@dataclass
class _Kept:
    """What a run knows, written into the folder now and then.

    Args:
        study: what is wanted.
        out: its folder.
        plan: what there is to do.
        facts: of the domains.
        skipped: domains that cannot be used, and why.
        failed: cells, and why.
    """

    study: AwayStudy
    out: Path
    plan: Plan
    facts: dict[str, Any]
    skipped: dict[str, str]
    failed: Failures = field(default_factory=dict)
    _last_s: float = field(default_factory=time.monotonic)

    def now_and_then(self) -> None:
        """Write if the last time is a while ago, so that results can be read while a study runs."""
        if time.monotonic() - self._last_s > _EVERY_S:
            self.write()
            self._last_s = time.monotonic()

    def write(self) -> None:
        """The table of what is done, and what is known of the study."""
        done = [cell for cell in self.plan.cells if is_done(cell, self.out)]
        write_table(done, self.out)
        record = {
            "config": configs.to_dict(self.study),
            "digest": configs.digest(self.study),
            "domains": self.facts,
            "skipped": self.skipped,
            "failed": {describe_cell(cell): why for cell, why in self.failed.items()},
            "unfinished": len(self.plan.cells) - len(done) - len(self.failed),
            "versions": {
                "roadaware": __version__,
                **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
            },
        }
        write_atomically(self.out / STUDY, (json.dumps(record, indent=2) + "\n").encode())
