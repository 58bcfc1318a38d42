"""AwayStudy: which models learn on which domains, what is compared; and the results as one long table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import polars as pl

from roadaware.config import to_dict
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.json import decode, ensure_object, parse
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import read_file
from roadaware.metrics.scores import SampleScores
from roadaware.models import CROSSING, MODELS, get_crossing_entry

# Checks: what a study is refused for before anything is read, and what would have to be said instead.


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
        config = study.get("config")
        if isinstance(config, dict) and "draws" in config:  # studies up to version 0.8
            config["resamples"] = config.pop("draws")
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

    Raises:
        DamagedError: if it is not there, or no object of strict JSON.
    """
    try:
        where = str(path)
        return ensure_object(parse(decode(read_file(path), where), where), where, "it")
    except InputError as error:
        raise DamagedError(f"not whole: {error.message}", where=error.where, hint=AGAIN) from error


_CROPS = "looks at images, and the samples of domains are kept as boxes alone"
_JOINTS = "looks at joints of the body, and the samples of domains are kept as boxes alone"
UNASKED = {
    "spi-net": _JOINTS,
    "trouspi-net": _JOINTS,
    **dict.fromkeys(("vgg16", "resnet50", "convlstm", "c3d", "i3d", "two-stream"), _CROPS),
    "constant-velocity": "tells where somebody will be, not who crosses",
}
"""Models of the registry that no study can ask, and why."""
ASKED = tuple(name for name in (*CROSSING, *MODELS) if name not in UNASKED)
"""The others: they predict crossing from boxes alone."""
_ANY_MODEL = ("temperature",)
"""Uncertainty methods that need no network."""


def check(study: AwayStudy) -> None:
    """Refuse a study that cannot be run, or that says something without effect.

    Raises:
        UsageError: at the first thing that is wrong; it says what would have to be said instead.
    """
    # One after another: later checks rely on what the earlier ones have seen to.
    for why in chain.from_iterable(each(study) for each in (_models, _names, _onward, _check_uncertainties)):
        raise UsageError(f"the study cannot be run: {why}")


def _models(study: AwayStudy) -> Iterator[str]:
    if not study.models or len(set(study.models)) < len(study.models):
        yield "models are one or more, each once"
    text = f"models are of {', '.join(ASKED)}"
    for name in study.models:
        if name in UNASKED:
            yield f"{name} {UNASKED[name]}; {text}"
        elif name not in ASKED:
            yield f"there is no {name}; {text}"
    strange = [name for name in study.fields if name not in ASKED]
    if strange:
        yield f"fields are by model, and {', '.join(strange)} is none of them; {text}"
    if not all(isinstance(held, dict) for held in study.fields.values()):
        yield "fields are by model, such as fields={steady: {dropout: 0.3}}"


def _names(study: AwayStudy) -> Iterator[str]:
    """What is wrong with domains, numbers, and parts of a whole."""
    chosen = set(study.models)
    for holds, wanted in (
        (len(set(study.names)) == len(study.names) > 0, "domains are one or more, each once"),
        (all(study.roots.values()), "a domain is a name, or NAME=PATH"),
        (1 <= study.seeds <= 1000, "seeds is 1 or more, 1,000 at most"),
        (5 <= study.scenes <= 100_000, "scenes is 5 or more, so that every split has one"),
        (0 <= study.resamples <= 100_000, "resamples is 0 or more, 100,000 at most"),
        (set(study.doubts) <= set(DOUBTS), f"doubts are of {', '.join(DOUBTS)}"),
        (set(study.doubted) <= chosen, "doubted are some of the models"),
        (set(study.pretrained) <= chosen, "pretrained are some of the models"),
        (set(study.pretrained) <= set(CROSSING), "pretrained are networks; tabular models begin anew"),
        (set(study.doubted_on) <= set(study.names), "doubted_on are some of the domains"),
    ):
        if not holds:
            yield wanted


def _onward(study: AwayStudy) -> Iterator[str]:
    if not all(len(pair) == 2 for pair in study.pairs):
        yield "pretraining looks like crossing@1>jaad-all"
    if not {name for pair in study.pairs for name in pair} <= set(study.names):
        yield "pretraining goes from one of the domains to another"
    if bool(study.pretrained) != bool(study.pretraining):
        there, lacking = ("pretrained", "pretraining") if study.pretrained else ("pretraining", "pretrained")
        yield (
            f"{there} without {lacking} does nothing: pretrained says who goes on (steady), pretraining "
            "from which domain to which ('crossing@1>jaad-all')"
        )


def _check_uncertainties(study: AwayStudy) -> Iterator[str]:
    """Errors: uncertainty methods that no model takes, or models without a method."""
    ways = [each for each in study.doubts if each not in ("deterministic", "ensemble")]
    if not study.doubted:
        if study.doubted_on:
            yield "doubted_on without doubted does nothing: that says which models are (steady)"
        if ways and study.doubts != DOUBTS:
            yield f"doubts ({', '.join(ways)}) without doubted do nothing: that says of whom (steady)"
        return
    tabular = [name for name in study.doubted if name not in CROSSING]
    if tabular and not set(ways) & set(_ANY_MODEL):
        yield f"{', '.join(tabular)} can be doubted by temperature alone, and doubts do not hold that"
    lost = [each for each in ways if each not in _ANY_MODEL]
    if lost and len(tabular) == len(study.doubted):
        yield (
            f"{', '.join(lost)} need a network, and doubted names none: {', '.join(tabular)} can be doubted "
            "by temperature alone (--set doubts=[temperature]); or name a network too, such as steady"
        )
    steadfast = [name for name in study.doubted if name in CROSSING and not _drops(name, study)]
    if steadfast and "mc-dropout" in ways:
        yield (
            f"{', '.join(steadfast)} drops nothing, so that mc-dropout says the same in every pass; leave "
            "it out of doubted, or mc-dropout out of doubts"
        )


def _drops(model: str, study: AwayStudy) -> bool:
    """Whether a network of the study has dropout."""
    kind = get_crossing_entry(model).config_class
    small = study.size == "small" and hasattr(kind, "small")
    usual = getattr(kind.small() if small else kind(), "dropout", 0.0)
    return bool(study.fields.get(model, {}).get("dropout", usual))


Criterion = Literal["average_precision", "auc", "log_loss", "balanced_accuracy"]
DEFAULT_MODELS = ("steady", "sfgru", "pcpa", "transformer-encoder", "boosting", "logistic")
"""Those that need boxes alone."""
DEFAULT_DOMAINS = ("jaad-behaviour", "jaad-all", "pie", "crossing@1+city-a", "crossing@1+city-b")


@dataclass(frozen=True)
class Learning:
    """How every network learns, wherever it does.

    Args:
        updates: steps of the optimizer; as many on every training set, however large.
        batch: samples of a step.
        lr: rate at the beginning; it falls to 0 as a cosine.
        weight_decay: of weights.
        balance: weigh labels inversely to how often they occur, to this power; the tabular models do so
            where it is above 0.
        flip: chance that a sample is mirrored, left to right.
        choose: what is best on the validation split of the training set.
        last_rate: how often an input of the last layer is dropped by `last-dropout`.
        passes: forward passes of a network with an uncertainty method, whose mean is taken.
    """

    updates: int = 500
    batch: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-2
    balance: float = 1.0
    flip: float = 0.5
    choose: Criterion = "auc"
    last_rate: float = 0.5
    passes: int = 30

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if min(self.updates, self.batch, self.passes) < 1:
            raise UsageError("learning.updates, batch and passes are at least 1")
        if not (0 < self.last_rate < 1 and 0 <= self.flip <= 1 and 0 <= self.balance <= 1):
            raise UsageError("learning.last_rate lies in (0, 1), flip and balance in [0, 1]")


@dataclass(frozen=True)
class AwayStudy:
    """A cross-dataset study: every model is trained on every domain and tested on all.

    Args:
        models: names in the registry, of those that predict crossing from boxes alone (`checks.ASKED`).
        domains: names such as jaad-all, pie or crossing@1+city-b; `NAME=PATH` says where it lies.
        seeds: fits of each network; 0, 1, and so on. Tabular models draw nothing and are fitted once.
        config: samples as published (`reference`), or with honest labels (`default`).
        scenes: of a simulated domain that is made for the study.
        inputs: what networks look at.
        size: of the networks.
        fields: of models' configs, by model.
        learning: of the networks.
        doubted: models that are evaluated with every method of `doubts`; the others as they are, and over seeds.
        doubted_on: domains that they learn and are tested on for that (default: all).
        doubts: uncertainty methods.
        pretrained: models that also go on from what they learnt elsewhere.
        pretraining: such as `crossing@1+city-a>jaad-behaviour`: where first, and where then.
        resamples: bootstrap resamples of pedestrians for the interval of each cell; 0 for none.

    Raises:
        UsageError: if something is unknown, there is too little of it, or it has no effect without another.

    Source: Gesnouin et al., IV 2022.
    """

    models: tuple[str, ...] = DEFAULT_MODELS
    domains: tuple[str, ...] = DEFAULT_DOMAINS
    seeds: int = 5
    config: Literal["reference", "default"] = "reference"
    scenes: int = 60
    inputs: tuple[str, ...] = ("boxes", "centre")
    size: Literal["published", "small"] = "small"
    fields: dict[str, Any] = field(default_factory=dict)
    learning: Learning = field(default_factory=Learning)
    doubted: tuple[str, ...] = ()
    doubted_on: tuple[str, ...] = ()
    doubts: tuple[str, ...] = DOUBTS
    pretrained: tuple[str, ...] = ()
    pretraining: tuple[str, ...] = ()
    resamples: int = 200

    def __post_init__(self) -> None:
        """Refuse what cannot be run, or says something without effect."""
        check(self)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the domains."""
        return tuple(each.partition("=")[0] for each in self.domains)

    @property
    def roots(self) -> dict[str, str]:
        """Name to where it lies, of those domains that say so."""
        return {name: path for name, sign, path in (each.partition("=") for each in self.domains) if sign}

    @property
    def pairs(self) -> tuple[tuple[str, ...], ...]:
        """Where first and where then, of each pretraining."""
        return tuple(tuple(each.split(">")) for each in self.pretraining)

    @property
    def fixed(self) -> dict[str, Any]:
        """Fields that must be equal for all runs of one folder; the others may grow from call to call."""
        whole = to_dict(self)
        return {key: whole[key] for key in ("config", "inputs", "size", "learning")}


# Plan: which fits a study makes, and which scores each of them gives.

FITS = "fits"
_TAUGHT = {"last-dropout": "last-dropout", "last-flipout": "last-flipout"}
"""Uncertainty methods that need a training of their own."""
_TABULAR = ("deterministic", "temperature", "ensemble")


@dataclass(frozen=True, order=True)
class Fit:
    """A model that learns once.

    Args:
        model: its name.
        trained_on: a domain, or `a>b`: first a, then b.
        seed: of its weights, its order and its drops.
        kind: of uncertainty that it is trained with: none, last-dropout or last-flipout.
    """

    model: str
    trained_on: str
    seed: int
    kind: str = "none"

    @property
    def place(self) -> Path:
        """Folder inside that of the study."""
        learnt = self.trained_on.replace(">", "_then_")
        return Path(FITS, self.model, learnt, f"{self.kind}_{self.seed}")

    @property
    def domain(self) -> str:
        """The domain that training ends with."""
        return self.trained_on.rpartition(">")[2]

    @property
    def before(self) -> Fit | None:
        """The fit that it goes on from."""
        first = self.trained_on.rpartition(">")[0]
        return Fit(self.model, first, self.seed) if first else None


@dataclass(frozen=True)
class Unit:
    """A fit, and the cells that ask it."""

    fit: Fit
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Joined:
    """A cell that is the mean of others."""

    cell: Cell
    parts: tuple[Cell, ...]


@dataclass(frozen=True)
class Plan:
    """The fits and cells of a study.

    Args:
        rounds: of units; those of a round need no other of the same.
        joined: what is put together of their cells, in an order in which all parts come first.
    """

    rounds: tuple[tuple[Unit, ...], ...]
    joined: tuple[Joined, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All, in the order of the results."""
        asked = (cell for units in self.rounds for unit in units for cell in unit.cells)
        return tuple(chain(asked, (each.cell for each in self.joined)))


def build_plan(study: AwayStudy, domains: Sequence[str]) -> Plan:
    """Build the plan of a study on the available domains.

    Args:
        study: what is wanted.
        domains: those of its domains that took part, in its order.
    """
    alone = [unit for model in study.models for unit in _units(study, model, domains)]
    onward = [
        Unit(fit, tuple(Cell(model, fit.trained_on, tested, seed) for tested in domains))
        for model in study.pretrained
        for first, then in study.pairs
        if first in domains and then in domains
        for seed in range(study.seeds)
        for fit in (Fit(model, f"{first}>{then}", seed),)
    ]
    leaves = [cell for unit in (*alone, *onward) for cell in unit.cells]
    over_sets = list(_over_sets(leaves, domains))
    over_seeds = list(_over_seeds(study, [*leaves, *(each.cell for each in over_sets)]))
    rounds = tuple(tuple(units) for units in (alone, onward) if units)
    return Plan(rounds, (*over_sets, *over_seeds))


def _units(study: AwayStudy, model: str, domains: Sequence[str]) -> Iterator[Unit]:
    """The fits of a model that begin anew; what draws nothing is fitted once, and asked for every seed."""
    there = [name for name in domains if name in (study.doubted_on or domains)]
    found: dict[Fit, list[Cell]] = {}
    for learnt in domains:
        uncertainties = _doubts(study, model) if learnt in there else ("deterministic",)
        for seed in range(study.seeds):
            for uncertainty in uncertainties:
                fit = Fit(model, learnt, seed if model in CROSSING else 0, _TAUGHT.get(uncertainty, "none"))
                asked = domains if uncertainty == "deterministic" else there
                found.setdefault(fit, []).extend(
                    Cell(model, learnt, each, seed, uncertainty) for each in asked
                )
    yield from (Unit(fit, tuple(cells)) for fit, cells in found.items())


def _doubts(study: AwayStudy, model: str) -> tuple[str, ...]:
    """The uncertainty methods of a model, without the ensemble over seeds."""
    if model not in study.doubted:
        return ("deterministic",)
    wanted = [each for each in study.doubts if each not in ("deterministic", "ensemble")]
    return ("deterministic", *(each for each in wanted if model in CROSSING or each in _TABULAR))


def _over_sets(cells: Sequence[Cell], domains: Sequence[str]) -> Iterator[Joined]:
    """The mean over all training sets, and over all but the one that is tested on."""
    held: dict[Cell, dict[str, Cell]] = {}
    for cell in cells:
        if ">" not in cell.trained_on:
            held.setdefault(replace(cell, trained_on=""), {})[cell.trained_on] = cell
    for key, by_set in held.items():
        for left_out in ("", key.tested_on):
            several = [name for name in domains if name in by_set and name != left_out]
            if len(several) > 1 and (not left_out or left_out in by_set):
                joined = replace(key, trained_on="+".join(several))
                yield Joined(joined, tuple(by_set[name] for name in several))


def _over_seeds(study: AwayStudy, cells: Sequence[Cell]) -> Iterator[Joined]:
    """The mean over seeds of what answers as it is; of networks, since other models have no seeds."""
    if study.seeds < 2 or "ensemble" not in study.doubts:
        return
    held: dict[Cell, list[Cell]] = {}
    for cell in cells:
        if cell.doubt == "deterministic" and cell.model in CROSSING:
            key = replace(cell, seed=SEEDS_JOINED, doubt="ensemble")
            held.setdefault(key, []).append(cell)
    for key, parts in held.items():
        yield Joined(key, tuple(parts))
