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
import numpy.typing as npt
import polars as pl

from roadaware.errors import DiskError, InputError
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.config import AwayStudy
from roadaware.protocols.away.domains import reason
from roadaware.protocols.away.plan import Joined, Unit
from roadaware.protocols.away.results import RESULTS, SCORES, TABLE, TESTED, Cell
from roadaware.scenes.disk import atomic_write

Floats = npt.NDArray[np.float64]
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
    from roadaware.protocols.away import asking, fitting

    due = [cell for cell in unit.cells if not is_done(cell, out)]
    failed: dict[Cell, str] = {}
    try:
        if due:
            fitting.make(unit.fit, study, out)
    except DiskError:
        raise
    except Exception as error:  # whatever is wrong with one model, the others stand
        _log.debug("%s", unit.fit, exc_info=True)
        return dict.fromkeys(due, reason(error))
    for doubt, several in groupby(due, key=lambda cell: cell.doubt):
        held = list(several)
        try:
            answers = asking.asked(unit.fit, doubt, study, out)
            for cell in held:
                keep(cell, answers(cell.tested_on), study, out)
        except DiskError:
            raise
        except Exception as error:
            _log.debug("%s, %s", unit.fit, doubt, exc_info=True)
            failed |= {cell: reason(error) for cell in held if not is_done(cell, out)}
    return failed


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

    truth = pl.read_parquet(out / TESTED / f"{cell.tested_on}.parquet")
    state = SampleScores(
        probability,
        truth["truth"].to_numpy(),
        truth["pedestrian"].to_numpy(),
        truth["video"].to_numpy(),
        truth["tte_frames"].to_numpy(),
    )
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
        told = json.loads((out / cell.place / METRICS).read_text(encoding="utf-8"))
        key = (cell.model, cell.trained_on, cell.tested_on, cell.seed, cell.doubt)
        for row in told["rows"]:
            found = tuple(row[name] for name in ("metric", "config", "value", "low", "high"))
            yield (*key, *found, told["samples"], told["positives"])
