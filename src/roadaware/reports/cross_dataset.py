"""The page of a cross-dataset study: what was run, in-domain and cross-dataset, ensembles, calibration,
printed numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from roadaware.protocols.cross_dataset.config import HIGHER, SEEDS_JOINED, CrossResults
from roadaware.protocols.printed_iv2022 import AUC_IS, DOMAINS, ENSEMBLE, HOME, load_printed
from roadaware.reports import terminal
from roadaware.reports.cross_dataset_cells import DOUBT_NAMES, NAMES, PLAIN, Found, Study, compute_mean
from roadaware.reports.cross_dataset_figures import (
    CHANCE,
    build_matrix_table,
    compute_means,
    find_cell,
    format_row_name,
    list_rows,
    plot_distributions,
    plot_heat_maps,
    plot_reliability_by_set,
    plot_summary,
    plot_test_sets,
    rank_models,
    rank_picture,
)
from roadaware.reports.cross_dataset_sections import (
    PRETRAINING_DRAWS,
    Effect,
    Resamples,
    build_coverage_table,
    collect_sets,
    compute_effects,
    describe_coverage,
    plot_pretraining,
)
from roadaware.reports.page import (
    Block,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    TableCell,
    report,
)
from roadaware.reports.text import format_count, format_number

# Tables I and II of IV 2022 from a study's own runs, with the printed numbers below where there are some.

IN_TABLE = ("auc", "balanced_accuracy", "f1", "ece", "mce")
_AT_HOME, _TOGETHER = "at home", "together"


def build_table_1(study: Study) -> Table | None:
    """Ensembles over all training sets on each test set, and what is printed of the same model.

    Args:
        study: what was found, in bins as published.

    Returns:
        nothing where there are no ensembles.

    Source: Gesnouin et al., IV 2022, Table I.
    """
    rows: list[tuple[TableCell, ...]] = []
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
            print_ = load_printed("I", model=model, tested_on=tested)
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


def build_table_2(study: Study, model: str) -> Table | None:
    """Each uncertainty method in-domain and as ensemble over training sets, and what is printed of I3D.

    Args:
        study: what was found, in bins as published.
        model: whose.

    Returns:
        nothing where the model has one uncertainty method alone.

    Source: Gesnouin et al., IV 2022, Table II.
    """
    uncertainties = study.doubts_of(model)
    if len(uncertainties) < 2:
        return None
    rows: list[tuple[TableCell, ...]] = []
    used: dict[str, list[str]] = {}
    beside = 0
    for tested in study.tested:
        rows.append((_heading(study, tested),))
        for uncertainty in uncertainties:
            for how, learnt in ((_AT_HOME, tested), (_TOGETHER, _largest(study, model, tested, uncertainty))):
                if not learnt or study.at(model, learnt, tested, "auc", uncertainty) is None:
                    continue
                where = HOME if how == _AT_HOME else ENSEMBLE
                print_ = load_printed(
                    "II", tested_on=tested, doubt=uncertainty, trained_on=where, pretrained=True
                )
                beside += not print_.is_empty()
                name = DOUBT_NAMES.get(uncertainty, uncertainty)
                if how == _TOGETHER:
                    used.setdefault(learnt, []).append(name)
                rows.append((f"{name}, {how}", *_cells(study, (model, learnt, tested, uncertainty), print_)))
    return Table(
        ("uncertainty method", *(NAMES[metric] for metric in IN_TABLE)),
        tuple(rows),
        "l" + "r" * len(IN_TABLE),
        f"Uncertainty methods: {model} (after Table II)",
        _meant(study, "II", beside, used),
    )


def find_least(study: Study, model: str, metric: str = "ece") -> dict[str, tuple[str, float]]:
    """`home`, `away` and `ensemble` to the uncertainty method with the least mean over test sets, and that mean.

    All ways are compared on the cells that each of them has; nothing where there is one way alone.

    Args:
        study: what was found.
        model: whose.
        metric: an error.
    """
    uncertainties = study.doubts_of(model)
    found = {
        uncertainty: compute_means(study, model, metric, uncertainty, alike=uncertainties)
        for uncertainty in uncertainties
    }
    best: dict[str, tuple[str, float]] = {}
    for kind in ("home", "away", "ensemble"):
        known = {uncertainty: value for uncertainty, row in found.items() if (value := row[kind]) is not None}
        if len(known) > 1:
            first = min(known, key=lambda uncertainty: known[uncertainty])
            best[kind] = (first, known[first])
    return best


def _largest(study: Study, model: str, tested: str, uncertainty: str) -> str:
    """The name of the largest ensemble with a value there; empty where there is none."""
    for metric in IN_TABLE:
        found = study.ensemble(model, tested, metric, uncertainty)
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


def _cells(study: Study, where: tuple[str, str, str, str], print_: pl.DataFrame) -> list[TableCell]:
    """Ours with its spread over seeds, and below it the printed number."""
    model, trained, tested, uncertainty = where
    cells: list[TableCell] = []
    for metric in IN_TABLE:
        found = study.at(model, trained, tested, metric, uncertainty)
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
            cells.append(Mark(format_number(found.value) + _spread(found), "", below))
    return cells


def _spread(found: Found) -> str:
    return "" if found.spread is None else f" ± {format_number(found.spread)}"


def _meant(study: Study, table: str, beside: int, used: Mapping[str, Sequence[str]]) -> str:
    """What the numbers are, and how far the printed ones are of the same data."""
    shared = [name for name in study.tested if name in DOMAINS.values()]
    absent = [name for name in DOMAINS.values() if name not in study.tested]
    ours = (
        f"Mean over seeds ± standard deviation over them; adaptive bins as published. {_members(study, used)}"
    )
    if not beside:
        return (
            f"{ours} No number is printed beside: IV 2022 tests on {_join_names(list(DOMAINS.values()))}, and "
            f"none of its rows in Table {table} is of a model and a test set that ran here."
        )
    what = (
        "the same model's printed mean of models from pie, jaad-behaviour and jaad-all"
        if table == "I"
        else "I3D's, pre-trained, which saw images, and whose ensembles are of those three sets"
    )
    without = f" Not tested here: {_join_names(absent)}." if absent else ""
    return (
        f"{ours} Printed below, where the test set has the same name ({_join_names(shared)}): {what}. Inputs and "
        f"training sets are others, so the numbers are beside ours, not a repetition.{without} {AUC_IS}"
    )


def _members(study: Study, used: Mapping[str, Sequence[str]]) -> str:
    """Which training sets the ensembles are of; not all rows need have the same."""
    if not used:
        return "There are no ensembles over training sets."
    sets = [_join_names(study.members(name)) for name in used]
    if len(used) == 1:
        return f"Together: the mean of models from {sets[0]}."
    each = [
        f"for {_join_names(list(dict.fromkeys(rows)))} from {held}"
        for held, rows in zip(sets, used.values(), strict=True)
    ]
    return f"Together is the mean of models from other sets in other rows: {'; '.join(each)}."


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


SHOWN = ("auc", "ece")
EFFECTS = ("auc", "average_precision", "ece", "brier")
MOST_MODELS = 3
MOST_REASONS = 12
_KIN = (
    "jaad-all holds the pedestrians of jaad-behaviour and more, so that going from one to the other is not "
    "as far from home as going anywhere else."
)
_GAINS = {
    "away": "from one other training set",
    "visitors": "as ensemble over all others",
    "ensemble": "as ensemble over all",
    "home": "at home",
}
_MISSING = {"failed": "What failed", "skipped": "What was skipped"}


def render_cross_dataset(results: CrossResults, *, resamples: int = PRETRAINING_DRAWS) -> str:
    """The whole study as one HTML file that needs no network and runs no script.

    Whatever is missing (a model, a domain, a metric, scores) is said in words where it would have stood.

    Args:
        results: as they were opened.
        resamples: resamples behind the intervals of the effect of pre-training.
    """
    study = Study(results)
    title = "Predictors out of domain"
    subtitle = "trained on one set of pedestrians, tested on every other"
    return report(list(build_sections(study, resamples=resamples)), title=title, subtitle=subtitle)


def build_sections(study: Study, *, resamples: int = PRETRAINING_DRAWS) -> Iterator[Section]:
    """The sections of the page, in reading order; those without anything to say are left out.

    Args:
        study: what was found.
        resamples: resamples behind the intervals of the effect of pre-training.
    """
    yield _made(study)
    if not study.metrics:
        return
    yield _home_and_away(study)
    yield _matrix(study)
    if study.joined:
        image, table = plot_summary(study, SHOWN), build_table_1(Study(study.results, "reference"))
        blocks: list[Block] = [] if image is None else [Pictures((image,))]
        blocks += [] if table is None else [table]
        yield Section("Ensembles over training sets", tuple(_gains(study)), tuple(blocks))
    yield _calibration(study)
    yield from _coverage(study)
    yield _ranks(study)
    yield from _doubt(study)
    yield from _pretraining(study, resamples)


def _made(study: Study) -> Section:
    """What was run, what was not, and why."""
    held, recorded = study.results.table, study.results.study
    seeds = sorted(set(held["seed"]) - {SEEDS_JOINED})
    facts = [
        ("models", ", ".join(study.models) or "none"),
        ("trained on", ", ".join(study.learnt) or "nothing"),
        ("seeds", f"{len(seeds)} ({', '.join(map(str, seeds))})" if seeds else "none"),
        ("uncertainty methods", ", ".join(DOUBT_NAMES.get(name, name) for name in study.doubts) or "none"),
        ("digest", str(recorded.get("digest", "unknown"))),
    ]
    if recorded.get("unfinished"):
        facts.append(("not finished", f"{format_count(recorded['unfinished'])} cells"))
    blocks: list[Block] = [Facts(tuple(facts)), Facts(tuple(_domains(study)), "Test sets")]
    missing = {kind: dict(recorded.get(kind) or {}) for kind in _MISSING}
    for kind, reasons in missing.items():
        if reasons:
            blocks.append(Points(tuple(_reasons(reasons)), _MISSING[kind]))
    says = []
    if not study.metrics:
        says.append("No cell of the study has a value yet, so there is nothing to draw.")
    undone = [f"{len(reasons)} {kind}" for kind, reasons in missing.items() if reasons]
    if undone:
        says.append(f"Not everything was run: {' and '.join(undone)}; the others stand.")
    return Section("What was run", tuple(says), tuple(blocks))


def _domains(study: Study) -> Iterator[tuple[str, str]]:
    """Each test set with its size, in words."""
    for name in study.results.domains:
        rows = study.results.table.filter((pl.col("tested_on") == name) & pl.col("samples").is_not_null())
        if rows.is_empty():
            yield name, "nobody was tested on it"
            continue
        samples, positives = rows.select("samples", "positives").row(0)
        facts = study.results.study["domains"].get(name) or {}
        about = [str(facts[key]) for key in ("what", "protocol", "config") if facts.get(key)]
        size = f"{format_count(samples)} samples, {format_count(positives)} of pedestrians who cross"
        yield name, "; ".join([*about, size])


def _reasons(reasons: Mapping[str, Any]) -> Iterator[str]:
    for name, why in list(reasons.items())[:MOST_REASONS]:
        yield f"{name}: {why}"
    if len(reasons) > MOST_REASONS:
        yield f"and {len(reasons) - MOST_REASONS} more"


def _home_and_away(study: Study) -> Section:
    drawn = [image for metric in SHOWN for image in _both(study, metric)]
    says = [says for metric in SHOWN for says in _falls(study, metric)]
    says += list(_below(study))
    blocks: list[Block] = [Pictures(tuple(drawn))] if drawn else [Note(_nothing(SHOWN), "doubt")]
    if {"jaad-all", "jaad-behaviour"} <= set(study.tested):
        blocks.append(Note(_KIN, "doubt"))
    return Section("Home and away", tuple(says), tuple(blocks))


def _both(study: Study, metric: str) -> list[Picture]:
    spread = [plot_distributions(study, metric, by=by) for by in ("test set", "model")]
    drawn = [*spread, plot_test_sets(study, metric)]
    return [image for image in drawn if image is not None]


def _falls(study: Study, metric: str) -> Iterator[str]:
    """How far a metric goes down, or an error up, when models leave home; pairs of both alone."""
    pairs = [
        (home.value, away)
        for model in study.models
        for tested in study.tested
        if (home := study.home(model, tested, metric)) is not None
        and home.value is not None
        and (away := compute_mean(one.value for _, one in study.away(model, tested, metric))) is not None
    ]
    if not pairs:
        return
    mean_home, mean_away = (compute_mean(pair[at] for pair in pairs) for at in (0, 1))
    worse = sum(a != b and (b < a) == (metric in HIGHER) for a, b in pairs)
    yield (
        f"Mean {NAMES[metric]} is {format_number(mean_home)} at home and {format_number(mean_away)} away; it is worse away "
        f"for {worse} of {len(pairs)} pairs of a model and a test set."
    )


def _below(study: Study) -> Iterator[str]:
    """How many cells away lie below home beyond their intervals, and how many below chance."""
    cells = clear = under = whole = 0
    for model in study.models:
        for tested in study.tested:
            home = study.home(model, tested, "auc")
            for _, found in study.away(model, tested, "auc"):
                under += (found.value or 0.0) < CHANCE["auc"]
                whole += 1
                if home is None or home.low is None or found.high is None:
                    continue
                cells += 1
                clear += found.high < home.low
    if cells:
        yield f"In {clear} of {cells} cells away the interval of AUC lies wholly below that at home."
    if under:
        yield f"{under} of {whole} cells away rank worse than chance (AUC below 0.5)."


def _matrix(study: Study) -> Section:
    drawn = [image for metric in SHOWN if (image := plot_heat_maps(study, metric)) is not None]
    table = build_matrix_table(study)
    blocks: list[Block] = [Pictures(tuple(drawn))] if drawn else [Note(_nothing(SHOWN), "doubt")]
    return Section("Training set by test set", (), (*blocks, *([] if table is None else [table])))


def _gains(study: Study) -> Iterator[str]:
    for metric in SHOWN:
        rows = [compute_means(study, model, metric) for model in study.models]
        whole = [row for row in rows if row["away"] is not None and row["ensemble"] is not None]
        if not whole:
            continue
        values = {kind: compute_mean(row[kind] for row in whole) for kind in _GAINS}
        lines = [
            f"{format_number(values[kind])} {words}"
            for kind, words in _GAINS.items()
            if values[kind] is not None
        ]
        yield f"Mean {NAMES[metric]} over models and test sets: {', '.join(lines)}."


def _calibration(study: Study) -> Section:
    """Reliability of the models that are best away, for each training set."""
    order = _by_away(study)[:MOST_MODELS]
    drawn = [image for model in order if (image := plot_reliability_by_set(study, model)) is not None]
    if not drawn:
        note = "No scores of single samples are kept beside the table, so there are no reliability diagrams."
        return Section("Calibration out of domain", (), (Note(note, "doubt"),))
    which = f"the {len(order)} models that are best away by AUC" if len(order) > 1 else order[0]
    note = f"Drawn for {which}: {', '.join(order)}." if len(order) < len(study.models) else ""
    blocks: list[Block] = [Note(note)] if note else []
    return Section("Calibration out of domain", (), (*blocks, Pictures(tuple(drawn))))


def _coverage(study: Study) -> Iterator[Section]:
    """What conformal sets of the training set hold on every test set, where cells keep them."""
    found = collect_sets(study)
    table = build_coverage_table(found)
    if table is not None:
        yield Section("Conformal sets out of domain", tuple(describe_coverage(found)), (table,))


def _by_away(study: Study) -> list[str]:
    """Models by their mean AUC away, the best first."""
    values = {
        model: compute_mean(
            one.value for tested in study.tested for _, one in study.away(model, tested, "auc")
        )
        for model in study.models
    }
    known = {model: -1.0 if value is None else value for model, value in values.items()}
    return sorted(study.models, key=lambda model: -known[model])


def _ranks(study: Study) -> Section:
    blocks: list[Block] = []
    says: list[str] = []
    for metric in SHOWN:
        drawn = rank_picture(study, metric)
        blocks.append(
            Note(f"{NAMES[metric]}: {drawn}.", "doubt") if isinstance(drawn, str) else Pictures((drawn,))
        )
        says += list(_describe_ranking(study, metric))
    return Section("Ranks out of domain", tuple(says), tuple(blocks))


def _describe_ranking(study: Study, metric: str) -> Iterator[str]:
    found = rank_models(study, metric).comparison
    if found is None:
        return
    (first, rank), *_ = found.ranks.items()
    beaten = [pair.second for pair in found.pairs if pair.differ and pair.first == first]
    text = f"it differs from {', '.join(beaten)}" if beaten else "it differs from no other model"
    yield (
        f"By {NAMES[metric]} away, {first} has the best mean rank ({rank:.2f}) over {found.sets} pairs of "
        f"sets; {text} at alpha {found.alpha:g}."
    )


def _doubt(study: Study) -> Iterator[Section]:
    published = Study(study.results, "reference")
    tables = {model: build_table_2(published, model) for model in study.models}
    held = {model: table for model, table in tables.items() if table is not None}
    if not held:
        return
    drawn = [image for model in held if (image := plot_summary(study, SHOWN, model=model)) is not None]
    says = [says for model in list(held)[:MOST_MODELS] if (says := _least(study, model))]
    yield Section("Uncertainty methods", tuple(says), (Pictures(tuple(drawn)), *held.values()))


def _least(study: Study, model: str) -> str:
    """Which uncertainty method has the least mean ECE, in-domain, away and together."""
    where = {"home": "at home", "away": "away", "ensemble": "as ensemble over training sets"}
    lines = [
        f"{DOUBT_NAMES.get(uncertainty, uncertainty)} ({format_number(error)}) {where[kind]}"
        for kind, (uncertainty, error) in find_least(study, model).items()
    ]
    return f"Least mean ECE of {model}: {', '.join(lines)}." if lines else ""


def _pretraining(study: Study, n: int) -> Iterator[Section]:
    if not study.onward:
        return
    resamples = Resamples(study, n)
    found = {metric: compute_effects(resamples, metric) for metric in EFFECTS if metric in study.metrics}
    drawn = [plot_pretraining(metric, held) for metric, held in found.items()]
    images = [image for image in drawn if image is not None]
    if images:
        images += list(_sure_after(study))
    blocks: tuple[Block, ...] = (Pictures(tuple(images)),) if images else ()
    if not blocks:
        blocks = (Note("No model learnt on the second domain alone too, so there is nothing to compare."),)
    says = tuple(says for metric, held in found.items() for says in _effect(metric, held))
    yield Section("What pre-training gives", says, blocks)


def _sure_after(study: Study) -> Iterator[Picture]:
    """Reliability with and without each pre-training, of the model with both that is best away."""
    for name in study.onward:
        after = name.rpartition(">")[2]
        held = [model for model in _by_away(study) if study.at(model, name, after, "auc") is not None]
        drawn = plot_reliability_by_set(study, held[0], (after, name)) if held else None
        if drawn is not None:
            yield drawn


def _effect(metric: str, held: Sequence[Effect]) -> Iterator[str]:
    if held:
        verdicts = [one.verdict for one in held]
        yield (
            f"Pre-training makes {NAMES[metric]} better in {verdicts.count('better')}, worse in "
            f"{verdicts.count('worse')} of {len(verdicts)} cases beyond chance."
        )


def _nothing(metrics: Sequence[str]) -> str:
    return f"No cell has a value of {' or '.join(NAMES[metric] for metric in metrics)}."


# The same as text of a terminal.

_METRICS = ("auc", "ece")
_KINDS = ("home", "away", "visitors", "ensemble")
_HEADS = ("home", "away", "others together", "all together")
_MOST_REASONS = 12


def format_cross_results(results: CrossResults) -> str:
    """Means at home, away and together, the matrix of every model, ranks, and what is missing.

    Args:
        results: as they were opened.
    """
    study = Study(results)
    learnt, tested = len(study.learnt), len(study.tested)
    parts = [f"{len(study.models)} models, trained on {learnt} and tested on {tested} domains"]
    if study.metrics:
        parts += [
            _format_means(study),
            *(text for metric in _METRICS if (text := _format_matrix(study, metric))),
        ]
        parts += [_format_ranks(study)]
    else:
        parts.append("no cell has a value yet")
    parts += list(_list_missing(results))
    return "\n\n".join(part for part in parts if part)


def _format_means(study: Study) -> str:
    """Each model's mean over test sets, at home, away and as ensembles over training sets."""
    shown = [metric for metric in _METRICS if metric in study.metrics]
    rows = []
    for model in study.models:
        found = [compute_means(study, model, metric) for metric in shown]
        rows.append([model, *(terminal.format_number(held[kind]) for held in found for kind in _KINDS)])
    head = ["model", *(f"{NAMES[metric]} {name}" for metric in shown for name in _HEADS)]
    return terminal.format_table(head, rows) + "\nmeans over test sets and seeds"


def _format_matrix(study: Study, metric: str) -> str:
    """Every model and training set in a row, test sets in columns, with intervals over pedestrians."""
    if metric not in study.metrics:
        return ""
    rows = []
    for model in study.models:
        for trained in list_rows(study):
            found = [find_cell(study, model, trained, tested, metric) for tested in study.tested]
            if any(one is not None for one in found):
                rows.append([model, format_row_name(study, trained), *map(_format_found, found)])
    head = ["model", "trained on", *(f"on {name}" for name in study.tested)]
    return f"{NAMES[metric]}\n{terminal.format_table(head, rows, left=2)}"


def _format_found(found: Found | None) -> str:
    if found is None:
        return ""
    if found.value is None:
        return "failed"
    ends = terminal.format_interval(found.low, found.high, caution=found.caution)
    return (
        terminal.format_number(found.value)
        if ends == "-"
        else f"{terminal.format_number(found.value)} {ends}"
    )


def _format_ranks(study: Study) -> str:
    lines = []
    for metric in _METRICS:
        found = rank_models(study, metric)
        if found.comparison is None:
            lines.append(f"{NAMES[metric]}: {found.why}")
            continue
        held = found.comparison
        listed = ", ".join(f"{name} {rank:.2f}" for name, rank in held.ranks.items())
        differ = sum(pair.differ for pair in held.pairs)
        lines.append(
            f"{NAMES[metric]}: {listed}; Friedman p {held.p:.2g} over {held.sets} pairs of sets, {differ} of "
            f"{len(held.pairs)} pairs of models differ at alpha {held.alpha:g}"
        )
    return "mean out-of-domain ranks, 1 is best:\n" + terminal.format_bullets(lines)


def _list_missing(results: CrossResults) -> Iterator[str]:
    if results.study.get("unfinished"):
        yield f"{results.study['unfinished']} cells are not finished"
    for kind in ("failed", "skipped"):
        reasons = list((results.study.get(kind) or {}).items())
        if reasons:
            yield f"{kind}:\n" + terminal.format_bullets(_few(reasons))


def _few(reasons: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, why in reasons[:_MOST_REASONS]:
        yield f"{terminal.format_cell(name)}: {why}"
    if len(reasons) > _MOST_REASONS:
        yield f"and {len(reasons) - _MOST_REASONS} more"
