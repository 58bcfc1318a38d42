"""A synthetic study out of domain: models that are better and surer where they learnt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.metrics.calibration import CalibrationConfig
from roadaware.metrics.calibration import evaluate as calibration
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.cross_dataset.config import HIGHER, RESULTS, TESTED, Cell, CrossResults

DOMAINS = ("jaad-behaviour", "jaad-all", "crossing@1")
MODELS = ("boosting", "sfgru", "steady")
Floats = npt.NDArray[np.float64]


def table(rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    """Rows of (model, trained_on, tested_on, seed, doubt, metric, config, value, low, high)."""
    full = [(*row, None, 100, 25) for row in rows]
    return pl.DataFrame(full, schema=RESULTS, orient="row")


def results(rows: Sequence[tuple[object, ...]], domains: Sequence[str] = DOMAINS) -> CrossResults:
    """A study of a table alone, without scores."""
    study = {
        "domains": {name: {} for name in domains},
        "skipped": {},
        "failed": {},
        "config": {},
        "digest": "0" * 16,
    }
    return CrossResults(Path("nowhere"), table(rows), study)


def value(
    model: str,
    trained: str,
    tested: str,
    value: float | None,
    metric: str = "auc",
    *,
    seed: int = 0,
    doubt: str = "deterministic",
    half: float = 0.02,
) -> tuple[object, ...]:
    """A row of `results`, its interval reaching `half` to both sides."""
    config = "default" if metric in ("ece", "mce") else ""
    ends = (None, None) if value is None else (value - half, value + half)
    return (model, trained, tested, seed, doubt, metric, config, value, *ends)


def grid(metric: str = "auc", models: Sequence[str] = MODELS) -> list[tuple[object, ...]]:
    """Every model everywhere: 0.9 less 0.01 for each place of the model at home, 0.2 less away."""
    return [
        value(model, trained, tested, 0.9 - 0.01 * place - 0.2 * (trained != tested), metric)
        for place, model in enumerate(models)
        for trained in DOMAINS
        for tested in DOMAINS
    ]


def study(
    folder: Path,
    *,
    models: Sequence[str] = MODELS,
    domains: Sequence[str] = DOMAINS,
    seeds: int = 2,
    people: int = 30,
    doubts: Sequence[str] = ("deterministic",),
    onward: Sequence[str] = (),
) -> CrossResults:
    """Write a study with its scores: every model on every domain, ensembles, doubts and pre-training.

    Args:
        folder: of the study.
        models: the first is the best.
        domains: where they learn and are tested.
        seeds: of each.
        people: in each test set, with 4 samples each.
        doubts: every model has each of them.
        onward: names `a>b` of pre-training.
    """
    rows: list[tuple[object, ...]] = []
    for tested in domains:
        truth = _asked(folder, tested, people, len(rows))
        for cell, scores in _answers(models, domains, tested, truth, (seeds, doubts, onward)):
            _keep(folder, cell, scores)
            rows += _judged(cell, SampleScores(scores, *_columns(folder, tested)))
    pl.DataFrame(rows, schema=RESULTS, orient="row").write_parquet(folder / "results.parquet")
    facts = {name: {"samples": 4 * people, "what": "made up"} for name in domains}
    told = {"domains": facts, "skipped": {}, "failed": {}, "config": {}, "digest": "0" * 16, "versions": {}}
    (folder / "study.json").write_text(json.dumps(told))
    return CrossResults.open(folder)


def _asked(folder: Path, tested: str, people: int, seed: int) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed + 1)
    truth = np.repeat((rng.random(people) < 0.4).astype(np.int64), 4)
    truth[:4], truth[4:8] = 1, 0
    who = [f"{tested}/v{k // 3}/{k}" for k in range(people) for _ in range(4)]
    frame = pl.DataFrame(
        {
            "truth": truth,
            "pedestrian": who,
            "video": [name.rpartition("/")[0] for name in who],
            "tte_frames": [30 + 20 * (k % 4) for k in range(len(who))],
        }
    )
    (folder / TESTED).mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / TESTED / f"{tested}.parquet")
    return truth


def _columns(folder: Path, tested: str) -> tuple[npt.NDArray[np.generic], ...]:
    frame = pl.read_parquet(folder / TESTED / f"{tested}.parquet")
    return tuple(frame[name].to_numpy() for name in ("truth", "pedestrian", "video", "tte_frames"))


def _answers(
    models: Sequence[str],
    domains: Sequence[str],
    tested: str,
    truth: npt.NDArray[np.int64],
    also: tuple[int, Sequence[str], Sequence[str]],
) -> Iterator[tuple[Cell, Floats]]:
    seeds, doubts, onward = also
    rng = np.random.default_rng(len(tested) + 100 * len(truth))
    hard = rng.normal(size=len(truth))
    for place, model in enumerate(models):
        for doubt in doubts:
            for seed in [-1] if doubt == "ensemble" else range(seeds):
                alone: dict[str, Floats] = {}
                for trained in (*domains, *onward):
                    home = trained.rpartition(">")[2] == tested
                    skill = (1.6 if home else 0.7) - 0.1 * place + (0.3 if ">" in trained else 0.0)
                    logit = skill * (2 * truth - 1) + hard + 0.4 * rng.normal(size=len(truth))
                    sure = 1.5 if doubt == "deterministic" else 0.8
                    alone[trained] = 1 / (1 + np.exp(-sure * logit))
                    yield Cell(model, trained, tested, seed, doubt), alone[trained]
                for left_out in ("", tested):
                    several = [name for name in domains if name != left_out]
                    if len(several) > 1:
                        cell = Cell(model, "+".join(several), tested, seed, doubt)
                        yield cell, np.mean([alone[one] for one in several], axis=0)


def _keep(folder: Path, cell: Cell, scores: Floats) -> None:
    (folder / cell.place).mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"probability": scores}).write_parquet(folder / cell.place / "scores.parquet")


def _judged(cell: Cell, state: SampleScores) -> Iterator[tuple[object, ...]]:
    key = (cell.model, cell.trained_on, cell.tested_on, cell.seed, cell.doubt)
    size = (None, len(state), int(state.truth.sum()))
    known = evaluate_samples(state, PedestrianConfig.default("action"))
    for metric in HIGHER:
        found = known.value(metric)
        yield (*key, metric, "", found, None if found is None else found - 0.05, (found or 0) + 0.05, *size)
    for bins in ("reference", "default"):
        errors = calibration(state, getattr(CalibrationConfig, bins)())
        for metric in ("ece", "mce"):
            yield (*key, metric, bins, errors.value(metric), None, None, *size)
    for metric in ("nll", "brier"):
        yield (*key, metric, "", errors.value(metric), None, None, *size)
