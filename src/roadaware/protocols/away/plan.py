"""Plan: which fits a study makes, and which scores each of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from roadaware.models import CROSSING
from roadaware.protocols.away.config import AwayStudy
from roadaware.protocols.away.results import SEEDS_JOINED, Cell

FITS = "fits"
_TAUGHT = {"last-dropout": "last-dropout", "last-flipout": "last-flipout"}
"""Ways to doubt that need a training of their own."""
_TABULAR = ("deterministic", "temperature", "ensemble")


@dataclass(frozen=True, order=True)
class Fit:
    """A model that learns once.

    Args:
        model: its name.
        trained_on: a domain, or `a>b`: first a, then b.
        seed: of its weights, its order and its drops.
        kind: of doubt that it is trained with: none, last-dropout or last-flipout.
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
        """What it learns, at last."""
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
    """What there is to do.

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


def plan_of(study: AwayStudy, domains: Sequence[str]) -> Plan:
    """What a study does on the domains that are there.

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
        doubts = _doubts(study, model) if learnt in there else ("deterministic",)
        for seed in range(study.seeds):
            for doubt in doubts:
                fit = Fit(model, learnt, seed if model in CROSSING else 0, _TAUGHT.get(doubt, "none"))
                asked = domains if doubt == "deterministic" else there
                found.setdefault(fit, []).extend(Cell(model, learnt, each, seed, doubt) for each in asked)
    yield from (Unit(fit, tuple(cells)) for fit, cells in found.items())


def _doubts(study: AwayStudy, model: str) -> tuple[str, ...]:
    """The ways to doubt a model, but that over seeds."""
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
