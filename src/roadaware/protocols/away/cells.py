"""Cells: scores that were asked for or put together, judged, and kept each in a folder of its own."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import DiskError, InputError
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.config import AwayStudy
from roadaware.protocols.away.domains import reason
from roadaware.protocols.away.plan import Fit, Joined, Unit
from roadaware.protocols.away.results import COVERED, RESULTS, SCORES, TABLE, TESTED, Cell, kept_json
from roadaware.scenes.disk import atomic_write

METRICS = "metrics.json"
_log = logging.getLogger("roadaware")


def name_of(cell: Cell) -> str:
    """A cell in words, as reports of failures name it.

    >>> name_of(Cell("steady", "pie", "jaad-all", 3))
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


def made_alone(unit: Unit, study: AwayStudy, out: Path) -> dict[Cell, str]:
    """As `made`, in a process that has one thread for it; arguments as there."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    return made(unit, study, out)


def made(unit: Unit, study: AwayStudy, out: Path) -> dict[Cell, str]:
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
    from roadaware.protocols.away import fitting

    there = fitting.model_file(unit.fit, out).is_file()  # a lost model is not learnt again for its sets alone
    due = [cell for cell in unit.cells if not (is_covered(cell, out) if there else is_done(cell, out))]
    failed: dict[Cell, str] = {}
    try:
        if due:
            fitting.make(unit.fit, study, out)
    except DiskError:
        raise
    except Exception as error:  # whatever is wrong with one model, the others stand
        return _failed(unit.fit, due, out, error)
    for doubt, several in groupby(due, key=lambda cell: cell.doubt):
        held = list(several)
        try:
            _ask(unit.fit, doubt, held, study, out)
        except DiskError:
            raise
        except Exception as error:
            failed |= _failed(unit.fit, held, out, error)
    return failed


def _failed(fit: Fit, due: Sequence[Cell], out: Path, error: Exception) -> dict[Cell, str]:
    """Cells without scores, and why; where there are scores and no sets, a warning says so."""
    _log.debug("%s", fit, exc_info=error)
    left = {cell: reason(error) for cell in due if not is_done(cell, out)}
    if not left:
        _log.warning("%s: no conformal sets: %s", fit, reason(error))
    return left


def _ask(fit: Fit, doubt: str, due: Sequence[Cell], study: AwayStudy, out: Path) -> None:
    """Ask a fit for its cells, and for the threshold of its sets on validation; what is judged stands."""
    from roadaware.protocols.away import asking
    from roadaware.protocols.away.covering import promised, rows_of, written

    answers = asking.asked(fit, doubt, study, out)
    for cell in due:
        if not is_done(cell, out):
            keep(cell, answers(cell.tested_on, "test"), study, out)
    promise = promised(answers(fit.domain, "val"), asking.truth_of(out, fit.domain))
    for cell in due:
        rows = rows_of(_state(cell, scores_of(cell, out), out), promise, study.draws)
        atomic_write(out / cell.place / COVERED, written(promise, rows))


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
        raise InputError(f"there is no {name_of(missing[0])}{more}")
    said = [scores_of(part, out) for part in joined.parts]
    keep(joined.cell, np.asarray(np.mean(said, axis=0)), study, out)


def keep(cell: Cell, probability: Floats, study: AwayStudy, out: Path) -> None:
    """Judge scores and write them with what they are worth.

    Args:
        cell: whose they are.
        probability: (n,) of crossing.
        study: says how often to resample.
        out: folder of the study.

    Raises:
        InputError: if a probability is none.
        DiskError: if the folder cannot be written to.
    """
    from roadaware.protocols.away.scoring import rows_of

    state = _state(cell, probability, out)
    told = {
        "samples": len(state),
        "positives": int(state.truth.sum()),
        "rows": rows_of(state, study.draws),
    }
    place, buffer = out / cell.place, io.BytesIO()
    pl.DataFrame({"probability": probability}).write_parquet(buffer)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"{place} could not be made: {error.strerror or error}") from error
    atomic_write(place / SCORES, buffer.getvalue())
    atomic_write(place / METRICS, (json.dumps(told) + "\n").encode())


def _state(cell: Cell, probability: Floats, out: Path) -> SampleScores:
    """Probabilities beside the truth of the samples that they belong to."""
    truth = pl.read_parquet(out / TESTED / f"{cell.tested_on}.parquet")
    return SampleScores(
        probability,
        truth["truth"].to_numpy(),
        truth["pedestrian"].to_numpy(),
        truth["video"].to_numpy(),
        truth["tte_frames"].to_numpy(),
    )


def scores_of(cell: Cell, out: Path) -> Floats:
    """(n,) probabilities of crossing that a cell keeps.

    Args:
        cell: that is done.
        out: folder of the study.
    """
    return np.asarray(pl.read_parquet(out / cell.place / SCORES)["probability"].to_numpy())


def write_table(done: Sequence[Cell], out: Path) -> None:
    """Put the rows of cells together as the study's table.

    Args:
        done: in order.
        out: folder of the study.
    """
    frame = pl.DataFrame(list(_rows(done, out)), schema=RESULTS, orient="row")
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    atomic_write(out / TABLE, buffer.getvalue())


def _rows(done: Iterable[Cell], out: Path) -> Iterable[tuple[Any, ...]]:
    for cell in done:
        told = kept_json(out / cell.place / METRICS)
        key = (cell.model, cell.trained_on, cell.tested_on, cell.seed, cell.doubt)
        sets = kept_json(out / cell.place / COVERED) if is_covered(cell, out) else {"rows": []}
        for row in (*told["rows"], *sets["rows"]):
            found = tuple(row[name] for name in ("metric", "config", "value", "low", "high"))
            yield (*key, *found, row.get("caution"), told["samples"], told["positives"])
