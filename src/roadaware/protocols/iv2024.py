"""The IV 2024 paper reproduced: released scores judged on the published samples, beside what is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.datasets import Progress, read
from roadaware.errors import DatasetNotFoundError
from roadaware.metrics.pedestrians import PedestrianConfig, Task
from roadaware.metrics.result import MetricResult
from roadaware.protocols.comparison import Cell, Status, count_verdicts, is_match
from roadaware.protocols.printed_iv2024 import RELEASED, SWAPPED, PrintedCell, iterate_printed_cells
from roadaware.protocols.released_predictions import Question, evaluate_released
from roadaware.scenes.sampling import Dataset
from roadaware.scenes.tables import Scenes
from roadaware.tasks.pedestrians import Baseline, evaluate_baselines

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
    draws: int = 0,
    baselines: bool | Mapping[str, Mapping[str, Baseline]] = True,
    progress: Progress | None = None,
) -> Reproduction:
    """Judge the released PedFormer scores and set every printed cell of Tables II to VI beside them.

    Args:
        data_dir: holds `jaad/` (the unpacked repository or its zip) and `pie/` (annotations, or their
            attributes alone, and the released `pf_*.csv`).
        draws: bootstrap resamples of whole test sets; 0 gives no intervals.
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
            questions[name] = evaluate_released(held[dataset], dataset, task, scores, draws=draws)
        next(steps)
        if baselines and not reason:
            given = baselines.get(name) if isinstance(baselines, Mapping) else None
            questions[name] = _with_baselines(questions[name], task, given, draws)
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


def _with_baselines(
    question: Question, task: Task, given: Mapping[str, Baseline] | None, draws: int
) -> Question:
    """The question with other models' answers; none where there are no boxes to learn from."""
    if given is not None:
        return replace(question, baselines=given)
    if question.scenes.boxes.is_empty():
        return question
    trained = evaluate_baselines(question.scenes, task, config=PedestrianConfig.reference(task), draws=draws)
    return replace(question, baselines=trained)


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
        beside={} if printed.group else _beside(question, printed.metric),
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


def _beside(question: Question, metric: str) -> dict[str, float | None]:
    return {name: other.metrics.value(metric) for name, other in question.baselines.items()}
