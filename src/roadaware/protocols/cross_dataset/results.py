"""CrossResults: results of a cross-dataset study as one long table, and the scores behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl

from roadaware.errors import DamagedError, InputError
from roadaware.io.json import decode, ensure_object, parse
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import read_file
from roadaware.metrics.scores import SampleScores

TABLE, STUDY, CELLS, TESTED = "results.parquet", "study.json", "cells", "tested"
SCORES, COVERED = "scores.parquet", "coverage.json"
AGAIN = "remove it; what else the folder holds is kept"
SEEDS_JOINED = -1
"""The seed of an ensemble over seeds."""
DOUBTS = ("deterministic", "temperature", "mc-dropout", "last-dropout", "last-flipout", "ensemble")
"""Uncertainty methods; `ensemble` is the mean over seeds, and has the seed -1."""
RESULTS: dict[str, Any] = {
    "model": pl.String,
    "trained_on": pl.String,
    "tested_on": pl.String,
    "seed": pl.Int64,
    "doubt": pl.String,
    "metric": pl.String,
    "config": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "caution": pl.String,
    "samples": pl.Int64,
    "positives": pl.Int64,
}
"""Columns of the table: a cell, a metric, which bins it used (`reference`, `default` or nothing), its value
with the ends of the 95 % interval over pedestrians and its caution, and how many samples and crossings it was
taken over."""
HIGHER = ("auc", "average_precision", "f1", "accuracy", "balanced_accuracy")
LOWER = ("ece", "mce", "nll", "brier")
METRICS = (*HIGHER, *LOWER)
SETS = ("coverage_90", "set_size_90", "empty_90")
"""Of conformal sets that promise to hold nine true labels of ten: the share that do, how many labels a set
has, and the share of sets without any. Cells that are put together of others have none."""


@dataclass(frozen=True, order=True)
class Cell:
    """Scores of a model trained on one domain and tested on one.

    Args:
        model: its name in the study.
        trained_on: a domain; several joined by `+` for the mean of one model from each; `a>b` for a model
            that learnt on a and went on with b.
        tested_on: a domain.
        seed: of the run; -1 for the mean over seeds.
        doubt: one of `DOUBTS`.
    """

    model: str
    trained_on: str
    tested_on: str
    seed: int
    doubt: str = "deterministic"

    @property
    def place(self) -> Path:
        """Folder of the cell inside that of the study."""
        learnt = self.trained_on.replace(">", "_then_")
        return Path(CELLS, self.model, learnt, self.tested_on, f"{self.doubt}_{self.seed}")


def parse_training_sets(trained_on: str, domains: Sequence[str]) -> tuple[str, ...]:
    """The domains that a name of training sets stands for; a domain's own name may hold a `+`.

    Args:
        trained_on: as the table has it; of `a>b` only b.
        domains: all that there are.

    >>> parse_training_sets("jaad-all+crossing@1+city-b", ["jaad-all", "crossing@1", "crossing@1+city-b"])
    ('jaad-all', 'crossing@1+city-b')
    """
    found: list[str] = []
    rest = trained_on.rpartition(">")[2]
    while rest:
        fits = [name for name in domains if rest == name or rest.startswith(f"{name}+")]
        if not fits:
            return (*found, rest)
        found.append(max(fits, key=len))
        rest = rest[len(found[-1]) + 1 :]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class CrossResults:
    """A study's folder, opened.

    Args:
        folder: of the study.
        table: columns `RESULTS`, one row for each cell and metric.
        study: `study.json`: `config`, `digest`, `domains` (facts by name), `skipped` and `failed` (name to
            reason), `versions`.
    """

    folder: Path
    table: pl.DataFrame
    study: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The results in a folder, as far as the study has come.

        Args:
            folder: that `roadaware cross` wrote.

        Raises:
            InputError: if it holds no study.
            DamagedError: if a file of it is not whole.
        """
        for name in (TABLE, STUDY):
            if not (folder / name).is_file():
                raise InputError(
                    f"expected {name} of a study out of domain and found none", where=str(folder)
                )
        study = read_study_json(folder / STUDY)
        try:
            table = read_parquet(folder / TABLE)
            if "caution" not in table.columns:  # studies up to version 0.8
                table = table.with_columns(caution=pl.lit(None))
            table = table.select(pl.col(k).cast(t) for k, t in RESULTS.items())
        except (ValueError, OSError, pl.exceptions.PolarsError) as error:
            raise DamagedError(f"not a whole study: {error}", where=str(folder)) from error
        return cls(folder, table, study)

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that took part, in the order of the study."""
        return tuple(self.study["domains"])

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order of the table."""
        return tuple(self.table["model"].unique(maintain_order=True))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the table."""
        rows = self.table.select("model", "trained_on", "tested_on", "seed", "doubt").unique(
            maintain_order=True
        )
        return tuple(Cell(*row) for row in rows.iter_rows())

    def scores(self, cell: Cell) -> SampleScores:
        """The probability of crossing of every test sample, beside its ground truth.

        Args:
            cell: of the study.

        Raises:
            InputError: if the study holds no such cell.
        """
        said, asked = self.folder / cell.place / SCORES, self.folder / TESTED / f"{cell.tested_on}.parquet"
        if not (said.is_file() and asked.is_file()):
            raise InputError(f"the study holds no scores of {cell}", where=str(self.folder))
        truth = read_parquet(asked)
        return SampleScores(
            scores=read_parquet(said)["probability"].to_numpy(),
            truth=truth["truth"].to_numpy(),
            pedestrian=truth["pedestrian"].to_numpy(),
            video=truth["video"].to_numpy(),
            tte_frames=truth["tte_frames"].to_numpy(),
        )


def read_study_json(path: Path) -> dict[str, Any]:
    """Content of a file of a study.

    Args:
        path: of the file.

    Raises:
        DamagedError: if it is not there, or no object of strict JSON.
    """
    try:
        where = str(path)
        return ensure_object(parse(decode(read_file(path), where), where), where, "it")
    except InputError as error:
        raise DamagedError(f"not whole: {error.message}", where=error.where, hint=AGAIN) from error
