"""Tables I and II of IV 2022 from a study's own runs, with the printed numbers below where there are some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from roadaware.protocols.printed_iv2022 import AUC_IS, DOMAINS, ENSEMBLE, HOME, printed
from roadaware.reports.away_cells import DOUBT_NAMES, NAMES, PLAIN, Found, Study
from roadaware.reports.away_pictures import means
from roadaware.reports.page import Cell, Mark, Table
from roadaware.reports.text import number

IN_TABLE = ("auc", "balanced_accuracy", "f1", "ece", "mce")
_AT_HOME, _TOGETHER = "at home", "together"


def table_1(study: Study) -> Table | None:
    """Ensembles over all training sets on each test set, and what is printed of the same model.

    Args:
        study: what was found, in bins as published.

    Returns:
        nothing where there are no ensembles.

    Source: Gesnouin et al., IV 2022, Table I.
    """
    rows: list[tuple[Cell, ...]] = []
    used: dict[str, list[str]] = {}
    beside = 0
    for tested in study.tested:
        held = [(model, _largest(study, model, tested, PLAIN)) for model in study.models]
        held = [(model, name) for model, name in held if name]
        if not held:
            continue
        rows.append((_heading(study, tested),))
        for model, name in held:
            used.setdefault(name, []).append(model)
            print_ = printed("I", model=model, tested_on=tested)
            beside += not print_.is_empty()
            rows.append((model, *_cells(study, (model, name, tested, PLAIN), print_)))
    if not rows:
        return None
    return Table(
        ("model", *(NAMES[metric] for metric in IN_TABLE)),
        tuple(rows),
        "l" + "r" * len(IN_TABLE),
        "One model from each training set, their mean (after Table I)",
        _meant(study, "I", beside, used),
    )


def table_2(study: Study, model: str) -> Table | None:
    """Each way to doubt at home and as ensemble over training sets, and what is printed of I3D.

    Args:
        study: what was found, in bins as published.
        model: whose.

    Returns:
        nothing where the model has one way to doubt alone.

    Source: Gesnouin et al., IV 2022, Table II.
    """
    doubts = study.doubts_of(model)
    if len(doubts) < 2:
        return None
    rows: list[tuple[Cell, ...]] = []
    used: dict[str, list[str]] = {}
    beside = 0
    for tested in study.tested:
        rows.append((_heading(study, tested),))
        for doubt in doubts:
            for how, learnt in ((_AT_HOME, tested), (_TOGETHER, _largest(study, model, tested, doubt))):
                if not learnt or study.at(model, learnt, tested, "auc", doubt) is None:
                    continue
                where = HOME if how == _AT_HOME else ENSEMBLE
                print_ = printed("II", tested_on=tested, doubt=doubt, trained_on=where, pretrained=True)
                beside += not print_.is_empty()
                name = DOUBT_NAMES.get(doubt, doubt)
                if how == _TOGETHER:
                    used.setdefault(learnt, []).append(name)
                rows.append((f"{name}, {how}", *_cells(study, (model, learnt, tested, doubt), print_)))
    return Table(
        ("way to doubt", *(NAMES[metric] for metric in IN_TABLE)),
        tuple(rows),
        "l" + "r" * len(IN_TABLE),
        f"Ways to doubt: {model} (after Table II)",
        _meant(study, "II", beside, used),
    )


def least(study: Study, model: str, metric: str = "ece") -> dict[str, tuple[str, float]]:
    """`home`, `away` and `ensemble` to the way to doubt with the least mean over test sets, and that mean.

    All ways are compared on the cells that each of them has; nothing where there is one way alone.

    Args:
        study: what was found.
        model: whose.
        metric: an error.
    """
    doubts = study.doubts_of(model)
    found = {doubt: means(study, model, metric, doubt, alike=doubts) for doubt in doubts}
    best: dict[str, tuple[str, float]] = {}
    for kind in ("home", "away", "ensemble"):
        known = {doubt: value for doubt, row in found.items() if (value := row[kind]) is not None}
        if len(known) > 1:
            first = min(known, key=lambda doubt: known[doubt])
            best[kind] = (first, known[first])
    return best


def _largest(study: Study, model: str, tested: str, doubt: str) -> str:
    """The name of the largest ensemble with a value there; empty where there is none."""
    for metric in IN_TABLE:
        found = study.ensemble(model, tested, metric, doubt)
        if found is not None:
            return found[0]
    return ""


def _heading(study: Study, tested: str) -> str:
    facts = study.results.study["domains"].get(tested, {})
    row = study.results.table.filter((pl.col("tested_on") == tested) & pl.col("samples").is_not_null())
    if row.is_empty():
        return f"tested on {tested}"
    samples, positives = row.select("samples", "positives").row(0)
    what = facts.get("what") if isinstance(facts, dict) else None
    return f"tested on {tested}{f' ({what})' if what else ''}: {samples:,} samples, {positives:,} positive"


def _cells(study: Study, where: tuple[str, str, str, str], print_: pl.DataFrame) -> list[Cell]:
    """Ours with its spread over seeds, and below it the printed number."""
    model, trained, tested, doubt = where
    cells: list[Cell] = []
    for metric in IN_TABLE:
        found = study.at(model, trained, tested, metric, doubt)
        row = print_.filter(pl.col("metric") == metric)
        below = ""
        if not row.is_empty():
            value, spread, digits = row.select("value", "spread", "digits").row(0)
            below = f"printed {value:.{digits}f} ± {spread:g}"
        if found is None:
            cells.append(Mark("not run", "mute", below))
        elif found.value is None:
            cells.append(Mark("no value", "bad", below))
        else:
            cells.append(Mark(number(found.value) + _spread(found), "", below))
    return cells


def _spread(found: Found) -> str:
    return "" if found.spread is None else f" ± {number(found.spread)}"


def _meant(study: Study, table: str, beside: int, used: Mapping[str, Sequence[str]]) -> str:
    """What the numbers are, and how far the printed ones are of the same data."""
    shared = [name for name in study.tested if name in DOMAINS.values()]
    absent = [name for name in DOMAINS.values() if name not in study.tested]
    ours = (
        f"Mean over seeds ± standard deviation over them; adaptive bins as published. {_members(study, used)}"
    )
    if not beside:
        return (
            f"{ours} No number is printed beside: IV 2022 tests on {_listed(list(DOMAINS.values()))}, and "
            f"none of its rows in Table {table} is of a model and a test set that ran here."
        )
    what = (
        "the same model's printed mean of models from pie, jaad-behaviour and jaad-all"
        if table == "I"
        else "I3D's, pre-trained, which saw pictures, and whose ensembles are of those three sets"
    )
    without = f" Not tested here: {_listed(absent)}." if absent else ""
    return (
        f"{ours} Printed below, where the test set has the same name ({_listed(shared)}): {what}. Inputs and "
        f"training sets are others, so the numbers are beside ours, not a repetition.{without} {AUC_IS}"
    )


def _members(study: Study, used: Mapping[str, Sequence[str]]) -> str:
    """Which training sets the ensembles are of; not all rows need have the same."""
    if not used:
        return "There are no ensembles over training sets."
    sets = [_listed(study.members(name)) for name in used]
    if len(used) == 1:
        return f"Together: the mean of models from {sets[0]}."
    each = [
        f"for {_listed(list(dict.fromkeys(rows)))} from {held}"
        for held, rows in zip(sets, used.values(), strict=True)
    ]
    return f"Together is the mean of models from other sets in other rows: {'; '.join(each)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
