"""Write the results of `roadaware cross-dataset` into docs/cross_dataset.md: `python docs/cross_dataset.py [STUDY ...]`.

Each STUDY is the folder of a study, named after its file in configs/cross/. What is kept of them is
docs/cross_dataset.csv, means over seeds; the tables of the page are made from it: without STUDY, as it stands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.metrics.calibration import CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrians import PedestrianConfig, PedestrianCore
from roadaware.models import CROSSING
from roadaware.protocols.cross_dataset.config import SETS, CrossResults
from roadaware.reports.cross_dataset_cells import DOUBT_NAMES, PLAIN, Study
from roadaware.reports.cross_dataset_sections import Resamples, collect_sets, compute_effects
from roadaware.statistics.intervals import PercentileResamples, compute_percentile_interval

PAGE = Path(__file__).with_suffix(".md")
KEPT = Path(__file__).with_suffix(".csv")
MAIN, DOUBT = "jaad-and-towns", "doubt"
BINS = {MAIN: "default", DOUBT: "reference"}
"""Those that the tables of a study are in: the mended ones, or as published."""
KEY = ["study", "model", "trained_on", "tested_on", "doubt", "metric", "config"]
COLUMNS = [*KEY, "value", "deviation", "low", "high"]
METRICS = ("auc", "average_precision", "f1", "ece", "mce", "nll", *SETS)
EFFECTS = ("auc", "average_precision", "ece", "nll")
HOME, AWAY, DROP, MEAN, EVERY = "home", "away", "home less away", "mean", "every model"
SIMPLE = "tabular less networks"
ALL, OTHERS = "all together", "others together"
RESAMPLES = 300
Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


def kept(folders: list[Path]) -> pl.DataFrame:
    """What the page is made from: cells, what they come to at home and away, what pre-training changes."""
    parts = []
    for folder in folders:
        study = Study(CrossResults.open(folder))
        parts.append(_cells(study, folder.name))
        rows = [*_sets(study), *_effects(study)]
        rows += _drops(study) if folder.name == MAIN else ()
        parts.append(pl.DataFrame([{"study": folder.name, **row} for row in rows], schema=parts[0].schema))
    return pl.concat(parts).with_columns(pl.selectors.float().round(5)).sort(KEY)


def _cells(study: Study, name: str) -> pl.DataFrame:
    """Each cell, the mean over seeds; ends are means of those of the seeds."""
    table = study.results.table.filter(pl.col("metric").is_in(METRICS))
    table = table.filter(pl.col("config").is_in(["", BINS[name]]))
    if name == MAIN:  # doubt has a study of its own
        table = table.filter(doubt=PLAIN)
    several = {one: ALL if len(study.members(one)) == len(study.learnt) else OTHERS for one in study.joined}
    table = table.with_columns(pl.col("trained_on").replace(several), pl.lit(name).alias("study"))
    found = table.group_by(KEY).agg(
        pl.mean("value"), pl.std("value").alias("deviation"), pl.mean("low"), pl.mean("high")
    )
    return found.select(COLUMNS)


def _row(model: str, trained: str, tested: str, metric: str, value: float, **more: Any) -> Row:
    row = {"model": model, "trained_on": trained, "tested_on": tested, "doubt": PLAIN, "metric": metric}
    ends = dict.fromkeys(("deviation", "low", "high"))
    return {**row, "config": "default" if metric == "ece" else "", "value": value, **ends, **more}


def _sets(study: Study) -> Iterator[Row]:
    """Conformal sets at home and away, the mean over test sets."""
    for one in collect_sets(study):
        for name, value, (low, high) in zip(SETS, one.values, one.ends, strict=True):
            yield _row(one.model, one.where, MEAN, name, value, doubt=one.doubt, low=low, high=high)


def _effects(study: Study) -> Iterator[Row]:
    """What learning somewhere else first changes."""
    held = Resamples(study, RESAMPLES)
    for metric in EFFECTS:
        for one in compute_effects(held, metric):
            after = one.trained_on.rpartition(">")[2]
            low, high = one.ends[:2]
            told = f"{one.trained_on} less {after}"
            yield _row(one.model, told, after, metric, one.difference or 0.0, low=low, high=high)


def _drops(study: Study) -> Iterator[Row]:
    """AUC and ECE at home less away, the mean over test sets, with intervals over pedestrians."""
    drawn = {model: _drawn(study, model) for model in study.models}
    simple = [model for model in study.models if model not in CROSSING]
    networks = [model for model in study.models if model in CROSSING]
    drawn[EVERY] = {at: np.mean([drawn[one][at] for one in study.models], axis=0) for at in (HOME, AWAY)}
    over = {model: held[HOME] - held[AWAY] for model, held in drawn.items()}
    wanted = [(model, DROP, each) for model, each in over.items()]
    for at in (HOME, AWAY):
        first, second = (np.mean([drawn[one][at] for one in part], axis=0) for part in (simple, networks))
        wanted.append((SIMPLE, at, first - second))
    for model, where, each in wanted:
        for place, metric in enumerate(("auc", "ece")):
            low, high = compute_percentile_interval(each[place, 1:]) or (None, None)
            yield _row(model, where, MEAN, metric, float(each[place, 0]), low=low, high=high)


def _drawn(study: Study, model: str) -> dict[str, Floats]:
    """`home` and `away`: (AUC and ECE, the value and draws), the mean over cells and then test sets."""
    found: dict[str, list[Floats]] = {HOME: [], AWAY: []}
    for place, tested in enumerate(study.tested):
        each: dict[str, list[Floats]] = {HOME: [], AWAY: []}
        for cell in study.results.cells:
            if (cell.model, cell.tested_on, cell.doubt) == (model, tested, PLAIN) and (
                cell.trained_on in study.learnt and (cell.seed == 0 or model in CROSSING)
            ):
                each[HOME if cell.trained_on == tested else AWAY].append(_of_cell(study, cell, place))
        for at, held in each.items():
            found[at].append(np.mean(held, axis=0))
    return {at: np.mean(held, axis=0) for at, held in found.items()}


def _of_cell(study: Study, cell: Any, seed: int) -> Floats:
    """(AUC and ECE, the value and draws); test sets are drawn by themselves."""
    state = study.results.scores(cell)
    ranked = PedestrianCore.of(state, PedestrianConfig.default("action"))
    binned = CalibrationCore.of(state, CalibrationConfig.default())
    point = ranked.values(ranked.once())["auc"], np.array([binned.once()["ece"]])
    times = PercentileResamples(RESAMPLES)
    resamples = ranked.drawn("pedestrian", times, seed), binned.drawn("pedestrian", times, seed)
    if resamples[0] is None or resamples[1] is None:
        raise InputError(f"{cell.tested_on} has too few pedestrians to be drawn again")
    drawn = resamples[0]["auc"], resamples[1]["ece"]
    return np.stack([np.concatenate(pair) for pair in zip(point, drawn, strict=True)])


class Held:
    """The kept results, by what tables ask.

    Args:
        table: as `kept` gave it.
    """

    def __init__(self, table: pl.DataFrame) -> None:
        self.rows = {tuple(row[name] for name in KEY): row for row in table.iter_rows(named=True)}
        self.models = {
            study: list(dict.fromkeys(row["model"] for row in self.rows.values() if row["study"] == study))
            for study in (MAIN, DOUBT)
        }
        self.tested = {
            study: sorted(
                {row["tested_on"] for row in self.rows.values() if row["study"] == study} - {MEAN},
                key=ORDER.index,
            )
            for study in (MAIN, DOUBT)
        }

    def at(
        self, model: str, trained: str, tested: str, metric: str, *, doubt: str = PLAIN, study: str = MAIN
    ) -> Row:
        """One row."""
        config = BINS[study] if metric in ("ece", "mce") else ""
        return self.rows[study, model, trained, tested, doubt, metric, config]

    def mean(self, model: str, where: str, metric: str) -> float:
        """Of a model, at home, away, or of sets together: over all such cells of the main study."""
        sets = self.tested[MAIN]
        places = [(where, tested) for tested in sets]
        if where in (HOME, AWAY):
            places = [(a, b) for a, b in product(sets, sets) if (a == b) == (where == HOME)]
        return float(np.mean([self.at(model, a, b, metric)["value"] for a, b in places]))

    def doubted(self, model: str, doubt: str, where: str, metric: str) -> float:
        """Of a doubted model, at home, away, or of sets together: over all such cells of that study."""
        found = [
            self.at(*cell, metric, doubt=doubt, study=DOUBT)["value"]
            for cell in self.doubted_at(model, where)
        ]
        return float(np.mean(found))

    def doubted_at(self, model: str, where: str) -> list[tuple[str, str, str]]:
        """Model, training set and test set of those cells."""
        sets = self.tested[DOUBT]
        if where in (HOME, AWAY):
            return [(model, a, b) for a, b in product(sets, sets) if (a == b) == (where == HOME)]
        return [(model, where, tested) for tested in sets]


ORDER = ["jaad-behaviour", "jaad-all", "crossing@1", "crossing@1+city-b"]
MODELS = ("steady", "sfgru", "pcpa", "transformer-encoder", "boosting", "logistic")
DOUBTED = ("steady", "pcpa")
PLACES = {HOME: "home", AWAY: "away", OTHERS: "other sets together", ALL: "all sets together"}
DOUBTS = {**DOUBT_NAMES, "mc-dropout": "MC dropout", "ensemble": "five seeds together"}


def lines(header: list[str], body: list[list[str]]) -> str:
    """A table in Markdown."""
    told = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(told + ["| " + " | ".join(row) + " |" for row in body])


def means_table(held: Held) -> str:
    """Every model at home and away."""
    body = []
    for model in MODELS:
        drop = held.at(model, DROP, MEAN, "auc")
        auc, ece = ([held.mean(model, at, metric) for at in (HOME, AWAY, ALL)] for metric in ("auc", "ece"))
        fall = f"{drop['value']:.2f} [{drop['low']:.2f}, {drop['high']:.2f}]"
        cells = [*(f"{each:.3f}" for each in auc[:2]), fall, *(f"{each:.3f}" for each in ece[:2])]
        body.append([model, *cells, f"{auc[2]:.3f}, {ece[2]:.3f}"])
    header = ["mean over domains", "AUC at home", "AUC away", "drop", "ECE at home", "ECE away"]
    return lines([*header, "all sets together: AUC, ECE"], body)


def coverage_table(held: Held) -> str:
    """Conformal sets of every model at home and away."""
    body = []
    for model in MODELS:
        cells = [model]
        for name in SETS:
            for at in (HOME, AWAY):
                row = held.at(model, at, MEAN, name)
                ends = f" [{row['low']:.3f}, {row['high']:.3f}]" if name == SETS[0] else ""
                cells.append(f"{row['value']:.3f}{ends}")
        body.append(cells)
    names = ("coverage", "labels in a set", "empty sets")
    return lines(["promised 0.9", *(f"{name}, {at}" for name in names for at in (HOME, AWAY))], body)


def doubt_table(held: Held) -> str:
    """After Table II of the paper: each uncertainty method, at home and together, on each test set."""
    body = []
    for model, (doubt, name) in product(DOUBTED, DOUBTS.items()):
        for at in (HOME, "together"):
            cells = [
                " ".join(_short(held, model, doubt, at, tested, metric) for tested in held.tested[DOUBT])
                for metric in ("auc", "f1", "ece", "mce")
            ]
            body.append([model, name, at, *cells])
    return lines(["model", "doubt", "", "AUC", "F1", "ECE", "MCE"], body)


def _short(held: Held, model: str, doubt: str, at: str, tested: str, metric: str) -> str:
    learnt = tested if at == HOME else ALL
    row = held.at(model, learnt, tested, metric, doubt=doubt, study=DOUBT)
    spread = "" if row["deviation"] is None else f"±{_dot(row['deviation'])}"
    return f"{_dot(row['value'])}{spread}"


def _dot(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)


def doubted_table(held: Held) -> str:
    """The mean ECE of each uncertainty method, at home, away and together, in the bins of the paper."""
    body = []
    for doubt, name in DOUBTS.items():
        means = [held.doubted(model, doubt, at, "ece") for model, at in product(DOUBTED, PLACES)]
        body.append([name, *(f"{mean:.3f}" for mean in means)])
    return lines(
        ["mean ECE", *(f"{model}, {name}" for model, name in product(DOUBTED, PLACES.values()))], body
    )


def effects_table(held: Held) -> str:
    """What learning on crossing@1 first changes."""
    body = []
    for after, model in product(ORDER[:2], DOUBTED):
        rows = [held.at(model, f"crossing@1>{after} less {after}", after, metric) for metric in EFFECTS]
        cells = [f"{row['value']:+.3f} [{row['low']:.3f}, {row['high']:.3f}]" for row in rows]
        body.append([f"{model}, {after}", *cells])
    return lines(["`crossing@1>...` less from scratch", "AUC", "average precision", "ECE", "NLL"], body)


def below_chance(held: Held) -> tuple[int, int, int]:
    """Cells away that rank worse than chance, those beyond their interval, and all."""
    pairs = [(a, b) for a, b in product(ORDER, ORDER) if a != b]
    rows = [held.at(model, *pair, "auc") for model, pair in product(MODELS, pairs)]
    return sum(row["value"] < 0.5 for row in rows), sum(row["high"] < 0.5 for row in rows), len(rows)


TABLES = {
    "means": means_table,
    "coverage": coverage_table,
    "doubts": doubt_table,
    "doubted": doubted_table,
    "pre-training": effects_table,
}


def whole(page: str, table: pl.DataFrame) -> str:
    """The page with each table between its marks."""
    held = Held(table)
    for name, made in TABLES.items():
        begin, end = (f"<!-- {name}: {mark} -->" for mark in ("begin", "end"))
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{made(held)}\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    studies = [Path(name) for name in sys.argv[1:]]
    if studies:
        write_atomically(KEPT, kept(studies).write_csv().encode())
    write_atomically(PAGE, whole(PAGE.read_text("utf-8"), pl.read_csv(KEPT)).encode())
