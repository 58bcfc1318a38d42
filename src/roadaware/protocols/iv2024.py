"""The IV 2024 paper reproduced: released scores judged on the published samples, beside what is printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets import Progress, read
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.formats.score_tables import read_scores
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import (
    PedestrianConfig,
    Task,
    build_core,
    collect_sample_scores,
    evaluate_samples,
)
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.printed_iv2024 import RELEASED, SWAPPED, TABLE_I, PrintedCell, iterate_printed_cells
from roadaware.scenes.factors import UNKNOWN, FactorConfig, Labels, build_scenario_labels
from roadaware.scenes.sampling import Dataset, Iv2024, list_task_answers, sample
from roadaware.scenes.tables import Predictions, Scenes, build_sample_predictions
from roadaware.tasks.pedestrians import Baseline, evaluate_baselines

Status = Literal["match", "match_under_assumption", "differs", "swapped_in_print", "not_reproducible"]

STATUSES: tuple[Status, ...] = (
    "match",
    "match_under_assumption",
    "differs",
    "swapped_in_print",
    "not_reproducible",
)


@dataclass(frozen=True)
class Cell:
    """One cell of a printed table and what was obtained for it.

    Args:
        table: Roman number.
        dataset: jaad or pie.
        task: action, intention or risk.
        model: name as printed.
        metric: name among the project's metrics.
        group: scenario; None for the whole test set.
        printed: the number in the paper.
        obtained: ours, not rounded; None where it cannot be obtained.
        status: the verdict.
        why: the reason for every verdict but a plain match.
        low: least value over the admissible choices of an assumption; None where nothing is assumed.
        high: largest value over them.
        digits: decimals in print.
        intervals: ends of the bootstrap intervals by the summary's column names, where asked for.
        beside: the same metric of other models on the same samples, by name.
    """

    table: str
    dataset: str
    task: str
    model: str
    metric: str
    group: str | None
    printed: float
    obtained: float | None
    status: Status
    why: str = ""
    low: float | None = None
    high: float | None = None
    digits: int = 2
    intervals: Mapping[str, float | None] = field(default_factory=dict)
    beside: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The cell as JSON-ready data, with `as_printed`: the obtained value rounded as the paper rounds."""
        fields = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        rounded = None if self.obtained is None else round_twice(self.obtained, self.digits)
        return {**fields, "as_printed": rounded, "intervals": {**self.intervals}, "beside": {**self.beside}}


_PLAIN_FIELDS = (
    "table",
    "dataset",
    "task",
    "model",
    "metric",
    "group",
    "printed",
    "obtained",
    "status",
    "why",
    "low",
    "high",
)


def tolerance(digits: int) -> float:
    """How far a value may lie from its printed form: half a unit of the last digit, 0.1 for rounding twice.

    >>> tolerance(2)
    0.006
    """
    return float(Decimal(6).scaleb(-digits - 1))


def is_match(obtained: float, printed: float, digits: int) -> bool:
    """Whether a value may have been printed so."""
    # `repr` gives the decimal digits; the binary numbers may lie on the other side of the border.
    return abs(Decimal(repr(obtained)) - Decimal(repr(printed))) <= Decimal(6).scaleb(-digits - 1)


def round_twice(value: float, digits: int = 2) -> float:
    """The value as the paper prints it: rounded to one digit more, and that to `digits`, halves to even.

    >>> round_twice(0.8548), round_twice(0.3148), round_twice(0.5744)
    (0.86, 0.32, 0.57)
    """
    finer, coarse = Decimal(1).scaleb(-digits - 1), Decimal(1).scaleb(-digits)
    once = Decimal(repr(float(value))).quantize(finer, ROUND_HALF_EVEN)
    return float(once.quantize(coarse, ROUND_HALF_EVEN))


def count_verdicts(cells: Iterable[Cell]) -> dict[str, int]:
    """How many cells have each verdict, every verdict named."""
    held = [cell.status for cell in cells]
    return {status: held.count(status) for status in STATUSES}


# The assumption behind PIE intention without boxes: which pedestrian has three samples fewer.


UNSURE = 1


@dataclass(frozen=True)
class Gap:
    """The pedestrians who may lack samples.

    Args:
        missing: how many samples the scores lack.
        tubes: (m,) the admissible pedestrians, the declared one first.
        jumps: (m,) sum over pedestrians and classes of absolute differences between the scores of
            consecutive samples, if that pedestrian lacks them; ascending.
    """

    missing: int
    tubes: Ints
    jumps: Floats

    @property
    def declared(self) -> int:
        """The pedestrian whose choice makes the scores jump least."""
        return int(self.tubes[0])


def count_missing(samples: pl.DataFrame) -> int:
    """How many samples of unsure intention there are beyond those of Table I; 0 where others differ too.

    Args:
        samples: (n rows) the test samples of tracks without gaps.

    Source: Rasouli and Kotseruba, IV 2024, Table I.
    """
    printed = TABLE_I["pie", "intention"]["test"]
    counts = np.bincount(samples["label"].to_numpy(), minlength=len(printed))
    beyond = counts - np.asarray(printed)
    return int(beyond[UNSURE]) if not np.delete(beyond, UNSURE).any() else 0


def find_gap(samples: pl.DataFrame, scores: Floats) -> Gap:
    """The admissible pedestrians of unsure intention, by how much the scores jump.

    Args:
        samples: (n rows) the test samples of tracks without gaps, in order.
        scores: (n - missing, k) the released scores.

    Raises:
        InputError: if there are more scores than samples, or no pedestrian can lack that many.
    """
    missing = len(samples) - len(scores)
    runs = samples.group_by("tube", maintain_order=True).agg(pl.len().alias("n"), pl.col("label").first())
    size = runs["n"].cast(pl.Int64).to_numpy()
    # Whoever has no more samples than are missing would not be among the pedestrians at all.
    admissible = np.flatnonzero((runs["label"].to_numpy() == UNSURE) & (size > missing))
    if missing < 1 or not len(admissible):
        raise InputError(
            f"{len(scores)} rows of scores for {len(samples)} samples",
            hint="the released pf_intention_pie.csv has 6472 rows for PIE's test split",
        )
    # Behind the last sample nothing jumps.
    jump = np.concatenate((np.abs(np.diff(scores, axis=0)).sum(axis=1), [0.0]))
    # Whoever lacks samples shifts the ends of all later pedestrians: two prefix sums give every choice.
    ends = np.cumsum(size) - 1
    inside = ends - missing
    early = np.concatenate(([0.0], np.cumsum(jump[np.minimum(ends, len(jump) - 1)])))
    late = np.cumsum(jump[np.maximum(inside, 0)][::-1])[::-1]
    cost = jump.sum() - early[admissible] - late[admissible]
    order = np.lexsort((admissible, cost))
    tubes = runs["tube"].cast(pl.Int64).to_numpy()[admissible]
    return Gap(missing, tubes[order], cost[order])


def drop_last(samples: pl.DataFrame, tube: int, missing: int) -> pl.DataFrame:
    """The samples without the last `missing` of one pedestrian.

    Which of a pedestrian's samples are lost does not matter: all have the same label.
    """
    rows = np.flatnonzero(samples["tube"].to_numpy() == tube)
    kept = np.ones(len(samples), dtype=np.bool_)
    kept[rows[len(rows) - missing :]] = False
    return samples.filter(pl.Series(kept))


def compute_ranges(
    samples: pl.DataFrame, scores: Floats, gap: Gap, config: PedestrianConfig, groups: npt.NDArray[np.object_]
) -> dict[tuple[str | None, str], tuple[float, float]]:
    """Least and largest value of every metric over the admissible choices.

    Args:
        samples: (n rows) the test samples of tracks without gaps.
        scores: (n - missing, k) the released scores.
        gap: the admissible choices.
        config: of the metrics.
        groups: (n,) scenario of each sample.

    Returns:
        (group, metric) to (low, high); a metric undefined under some choice is left out.
    """
    rows = samples.with_row_index("place")
    scopes = [None, *sorted({label for label in groups if label is not None})]
    low: dict[tuple[str | None, str], float] = {}
    high: dict[tuple[str | None, str], float] = {}
    for tube in gap.tubes:
        held = drop_last(rows, int(tube), gap.missing)
        state = SampleScores(scores, held["label"].to_numpy(), held["tube"].cast(pl.String).to_numpy())
        labels = groups[held["place"].to_numpy()]
        for scope in scopes:
            core = build_core(state if scope is None else state.take(labels == scope), config)
            for metric, (value,) in core.values(core.once()).items():
                key = scope, metric
                # The minimum and maximum of numpy keep NaN: a metric undefined once has no range.
                low[key] = np.minimum(low.get(key, value), value)
                high[key] = np.maximum(high.get(key, value), value)
    return {key: (float(low[key]), float(high[key])) for key in low if not np.isnan(low[key])}


FACTORS_OF_TABLE_IV = ("scale", "state", "speed", "road")


@dataclass(frozen=True, eq=False)
class Question:
    """One task on one dataset, answered by the released scores.

    Args:
        name: of the protocol, such as `jaad-action@iv2024`.
        scenes: with the samples of all splits; test holds those that the scores answer.
        predictions: the released scores of the test samples.
        metrics: what they are worth, in all and by the scenarios of Table IV that the data allow.
        baselines: other models on the same samples, by name.
        assumption: what the result rests on beyond the data; empty where on nothing.
        ranges: (group, metric) to least and largest value over the choices that the assumption leaves.
    """

    name: str
    scenes: Scenes
    predictions: Predictions
    metrics: MetricResult
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    assumption: str = ""
    ranges: Mapping[tuple[str | None, str], tuple[float, float]] = field(default_factory=dict)

    def value(self, metric: str, group: str | None = None) -> float | None:
        """A metric of the released scores; None where it is undefined or the group is absent."""
        if group is not None and group not in self.metrics.groups:
            return None
        return self.metrics.value(metric, group)


def evaluate_released(
    scenes: Scenes, dataset: Dataset, task: Task, scores: Path, *, resamples: int = 0
) -> Question:
    """Sample the scenes as published, join the released scores by row, and judge them.

    Args:
        scenes: of the dataset.
        dataset: jaad or pie.
        task: what the scores answer.
        scores: the released csv file.
        resamples: bootstrap resamples; 0 gives no intervals.

    Raises:
        InputError: if the scores do not fit the samples, row by row.
    """
    protocol = Iv2024.reference(task, dataset)
    columns = 1 if task == "action" else len(list_task_answers(protocol))
    predicted = read_scores(scores, columns)
    values = predicted.values
    sampled = sample(scenes, protocol)
    test = sampled.samples.filter(pl.col("split") == "test")
    config = PedestrianConfig.reference(task)
    groups = _scenarios(sampled, test) if dataset == "pie" else []
    assumption = ""
    found: dict[tuple[str | None, str], tuple[float, float]] = {}
    if len(values) != len(test):
        # Only the gap that the paper prints is assumed: a file cut short is not scored under another one.
        missing = count_missing(test) if scenes.boxes.is_empty() and task == "intention" else 0
        if missing < 1 or len(values) != len(test) - missing:
            raise _wrong_length(scores, len(values), len(test))
        gap = find_gap(test, values)
        missing = gap.missing
        choices = len(gap.tubes)
        name = scenes.tubes.filter(pl.col("tube") == gap.declared)["name"].item()
        assumption = (
            f"pedestrian {name} has a gap in its track and {missing} samples fewer; attributes alone do not tell "
            f"who has, {choices} choices are admissible, and with this one scores jump least"
        )
        for column in groups or [np.full(len(test), None, dtype=object)]:
            found.update(compute_ranges(test, values, gap, config, column))
        kept = drop_last(test.with_row_index("place"), gap.declared, gap.missing)
        groups = [column[kept["place"].to_numpy()] for column in groups]
        test = kept.drop("place")
    answered = sampled.with_tables(
        samples=pl.concat([sampled.samples.filter(pl.col("split") != "test"), test])
    )
    predictions = build_sample_predictions(test, values)
    # The metrics of the test samples, and those of every factor's scenarios under them
    state, _ = collect_sample_scores(predictions, answered, config.task, split="test")
    whole = evaluate_samples(state, config, resamples=resamples, n_clipped=predicted.clipped)
    parts = [evaluate_samples(state, config, groups=column) for column in groups]
    metrics = MetricResult(
        summary=pl.concat([whole.summary, *(p.summary.filter(pl.col("group").is_not_null()) for p in parts)]),
        counts=pl.concat([whole.counts, *(p.counts.filter(pl.col("group").is_not_null()) for p in parts)]),
        config=whole.config,
        notes=whole.notes,
        makers=whole.makers,
    )
    return Question(f"{dataset}-{task}@iv2024", answered, predictions, metrics, {}, assumption, found)


def _scenarios(scenes: Scenes, test: pl.DataFrame) -> list[Labels]:
    """(n,) the scenario of each test sample by each factor that the data have, else None."""
    columns = []
    for factor in FACTORS_OF_TABLE_IV:
        labels = build_scenario_labels(scenes, [factor], FactorConfig.reference(), test)
        # What is unknown stands in no row of Table IV.
        labels[labels == f"{factor}={UNKNOWN}"] = None
        if any(label is not None for label in labels):
            columns.append(labels)
    return columns


def _wrong_length(path: Path, found: int, expected: int) -> InputError:
    return InputError(
        f"expected {expected} rows, one per test sample, found {found}",
        where=str(path),
        hint="scores without keys are joined by row: point at the released file, and at whole annotations",
    )


# The whole paper: each question asked, and each printed cell beside what came out.

_ASKED: tuple[tuple[Dataset, Task], ...] = (
    ("jaad", "action"),
    ("jaad", "risk"),
    ("pie", "intention"),
    ("pie", "action"),
    ("pie", "risk"),
)
_INTERVALS = ("low_pedestrian", "high_pedestrian", "low_video", "high_video")
_NEEDS = {
    "scale": "the scale of pedestrians needs PIE's box annotations",
    "state": "the state of pedestrians needs the tags of PIE's box annotations",
    "speed": "the speed of the vehicle needs PIE's vehicle annotations and the frames of the boxes",
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Result of the reproduction.

    Args:
        cells: every printed cell with what was obtained for it.
        questions: protocol name to the released scores on its samples, where these could be judged.
        reasons: protocol name to why it could not.
    """

    cells: tuple[Cell, ...]
    questions: Mapping[str, Question]
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict."""
        return count_verdicts(self.cells)

    def as_dict(self) -> dict[str, Any]:
        """The whole as JSON-ready data."""
        return {
            "protocol": "iv2024",
            "cells": [cell.as_dict() for cell in self.cells],
            "counts": self.counts,
            "assumptions": {name: q.assumption for name, q in self.questions.items() if q.assumption},
            "reasons": dict(self.reasons),
            "configs": {
                name: {"sampling": q.scenes.meta.notes["protocol"], "metrics": q.metrics.config}
                for name, q in self.questions.items()
            },
        }


def reproduce(
    data_dir: Path,
    *,
    resamples: int = 0,
    baselines: bool | Mapping[str, Mapping[str, Baseline]] = True,
    progress: Progress | None = None,
) -> Reproduction:
    """Judge the released PedFormer scores and set every printed cell of Tables II to VI beside them.

    Args:
        data_dir: holds `jaad/` (the unpacked repository or its zip) and `pie/` (annotations, or their
            attributes alone, and the released `pf_*.csv`).
        resamples: bootstrap resamples of whole test sets; 0 gives no intervals.
        baselines: train the baselines without pixels on the same samples and show them beside; or, by
            protocol name, those that were trained already.
        progress: called with how many steps are done, of how many, of what.

    Raises:
        DatasetNotFoundError: if neither dataset is there.
        InputError: if annotations or scores are damaged, or do not fit each other.

    Source: Rasouli and Kotseruba, IV 2024, Tables II to VI.
    """
    steps = _steps(progress, 2 + len(_ASKED) * (2 if baselines else 1))
    held, lost = _datasets(data_dir, steps)
    questions: dict[str, Question] = {}
    reasons: dict[str, str] = {}
    for dataset, task in _ASKED:
        name = f"{dataset}-{task}@iv2024"
        scores = data_dir / "pie" / f"pf_{task}_{dataset}.csv"
        reason = _obstacle(dataset, task, held, lost, scores)
        if reason:
            reasons[name] = reason
        else:
            questions[name] = evaluate_released(held[dataset], dataset, task, scores, resamples=resamples)
        next(steps)
        if baselines and not reason:
            given = baselines.get(name) if isinstance(baselines, Mapping) else None
            # The question with other models' answers; none where there are no boxes to learn from
            question = questions[name]
            if given is not None:
                questions[name] = replace(question, baselines=given)
            elif question.scenes.boxes.is_empty():
                questions[name] = question
            else:
                trained = evaluate_baselines(
                    question.scenes, task, config=PedestrianConfig.reference(task), resamples=resamples
                )
                questions[name] = replace(question, baselines=trained)
        if baselines:
            next(steps)
    cells = tuple(_cell(printed, questions, reasons) for printed in iterate_printed_cells())
    return Reproduction(cells, questions, reasons)


def _steps(progress: Progress | None, total: int) -> Iterator[None]:
    for done in range(1, total + 1):
        if progress is not None:
            progress(done, total, "steps")
        yield


def _datasets(data_dir: Path, steps: Iterator[None]) -> tuple[dict[Dataset, Scenes], dict[Dataset, str]]:
    """The datasets that are there, and why the others are not."""
    held: dict[Dataset, Scenes] = {}
    lost: dict[Dataset, str] = {}
    names: tuple[Dataset, ...] = ("jaad", "pie")
    for name in names:
        try:
            held[name] = read(name, data_dir / name)
        except DatasetNotFoundError as error:
            lost[name] = str(error)
        next(steps)
    if not held:
        raise DatasetNotFoundError(
            f"neither JAAD nor PIE can be read from {data_dir}",
            hint="expected jaad/ (the repository or its zip) and pie/ (annotations and pf_*.csv)\n  "
            + "\n  ".join(lost.values()),
        )
    return held, lost


def _obstacle(
    dataset: Dataset, task: Task, held: Mapping[Dataset, Scenes], lost: Mapping[Dataset, str], scores: Path
) -> str:
    """Why a question cannot be asked; empty where it can."""
    if dataset not in held:
        return f"the annotations of {dataset.upper()} are not at hand: {lost[dataset]}"
    if not scores.is_file():
        return f"the released scores {scores.name} are not in {scores.parent}"
    if held[dataset].boxes.is_empty() and task != "intention":
        return "PIE's box annotations are not at hand: attributes do not tell where tracks begin"
    return ""


def _cell(printed: PrintedCell, questions: Mapping[str, Question], reasons: Mapping[str, str]) -> Cell:
    """The verdict on one printed cell."""
    name = f"{printed.dataset}-{printed.task}@iv2024"
    question = questions.get(name)
    if printed.model != RELEASED:
        return _without(printed, f"the authors released the scores of {RELEASED} alone")
    if printed.table == "V":
        return _without(printed, "the scores of the model trained on both tasks were not released")
    if question is None:
        return _without(printed, reasons[name])
    obtained = question.value(printed.metric, printed.group)
    if obtained is None:
        factor = (printed.group or "").split("=")[0]
        return _without(printed, _NEEDS.get(factor, "the metric is undefined on these samples"))
    status, why = _verdict(printed, obtained, question)
    why = "; ".join(part for part in (why, _samples(printed, question)) if part)
    low, high = question.ranges.get((printed.group, printed.metric), (None, None))
    return Cell(
        **_labels(printed),
        obtained=obtained,
        status=status,
        why=why,
        low=low,
        high=high,
        intervals=_intervals(question.metrics, printed) if printed.group is None else {},
        beside={}
        if printed.group
        else {name: other.metrics.value(printed.metric) for name, other in question.baselines.items()},
    )


def _verdict(printed: PrintedCell, obtained: float, question: Question) -> tuple[Status, str]:
    if is_match(obtained, printed.value, printed.digits):
        if not question.assumption:
            return "match", ""
        return "match_under_assumption", _describe_assumption(question, printed)
    partner = _partner(printed)
    if partner is not None and is_match(obtained, partner.value, partner.digits):
        return "swapped_in_print", (
            f"this is the number printed for {partner.metric} ({partner.value}), and the other way round"
        )
    return "differs", _describe_assumption(
        question, printed
    ) if question.assumption else "outside the rounding of print"


def _describe_assumption(question: Question, printed: PrintedCell) -> str:
    """The assumption, and what it has to do with this metric."""
    text = f"assuming that {question.assumption}"
    if printed.metric.startswith("confidence_delta"):
        return f"{text}; these jumps are what the choice makes least, so this cell confirms nothing"
    return text


def _samples(printed: PrintedCell, question: Question) -> str:
    """The scenario's samples per class beside the printed ones."""
    if printed.group is None or not printed.samples:
        return ""
    held = question.metrics.counts.filter(pl.col("group") == printed.group)
    found = dict(held.select("class", "samples").iter_rows())
    ours, theirs = (
        "/".join(str(n) for n in each)
        for each in ([found.get(k, 0) for k in range(len(printed.samples))], printed.samples)
    )
    return f"{ours} samples per class, {'as printed' if ours == theirs else f'printed {theirs}'}"


def _partner(printed: PrintedCell) -> PrintedCell | None:
    """The cell that this one changed places with in print."""
    for table, dataset, model, first, second in SWAPPED:
        if (printed.table, printed.dataset, printed.model) != (table, dataset, model):
            continue
        wanted = {first: second, second: first}.get(printed.metric)
        for other in iterate_printed_cells():
            if (other.table, other.dataset, other.model, other.metric) == (table, dataset, model, wanted):
                return other
    return None


def _without(printed: PrintedCell, why: str) -> Cell:
    return Cell(**_labels(printed), obtained=None, status="not_reproducible", why=why)


def _labels(printed: PrintedCell) -> dict[str, Any]:
    return {
        "table": printed.table,
        "dataset": printed.dataset,
        "task": printed.task,
        "model": printed.model,
        "metric": printed.metric,
        "group": printed.group,
        "printed": printed.value,
        "digits": printed.digits,
    }


def _intervals(metrics: MetricResult, printed: PrintedCell) -> dict[str, float | None]:
    row = metrics.row(printed.metric, printed.group)
    found = {name: row[name] for name in _INTERVALS}
    return found if any(value is not None for value in found.values()) else {}
