"""Write the tables of docs/baselines.md anew: `python docs/baselines.py JAAD PF`.

JAAD is the folder or zip of its annotations, PF the folder with the released `pf_action_jaad.csv` and
`pf_risk_jaad.csv`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from roadaware.analysis.compare import compare
from roadaware.datasets import read
from roadaware.io.files import write_atomically
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import PedestrianConfig, collect_sample_scores
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.iv2024 import evaluate_released
from roadaware.scenes.sampling import Iv2024, sample, split_samples
from roadaware.scenes.tables import Scenes
from roadaware.tasks.pedestrians import Baseline, evaluate_baselines

PAGE = Path(__file__).with_suffix(".md")
TASKS: tuple[Literal["action", "risk"], ...] = ("action", "risk")
RESAMPLES = 1000
COLUMNS = (
    "average_precision",
    "balanced_accuracy",
    "auc",
    "accuracy",
    "precision",
    "f1",
    "soft_balanced_accuracy",
    "hard_balanced_accuracy",
)
NAMES = {
    "auc": "AUC",
    "average_precision": "AP",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "f1": "F1",
}
FIRST = {"action": "auc", "risk": "balanced_accuracy"}
"""The metric of each task that has its intervals in the table of the published samples."""
COMPARED = {
    "action": (("logistic", "boosting"), ("auc", "average_precision", "balanced_accuracy", "accuracy", "f1")),
    "risk": (("constant-velocity", "boosting"), ("balanced_accuracy", "f1", "average_precision", "auc")),
}


def fit_all(scenes: Scenes, task: Literal["action", "risk"], config: PedestrianConfig) -> dict[str, Baseline]:
    """All baselines that answer a task, and those of action again without the vehicle."""
    models = ("constant-velocity", "boosting", "logistic") if task == "risk" else ("logistic", "boosting")
    found = evaluate_baselines(scenes, task, models, config=config, resamples=RESAMPLES)
    if task == "action":
        boxes = {name: {"vehicle": False} for name in models}
        without = evaluate_baselines(scenes, task, boxes, config=config, resamples=RESAMPLES)
        found |= {f"{name}, boxes": done for name, done in without.items()}
    order = ("constant-velocity", "logistic", "logistic, boxes", "boosting", "boosting, boxes")
    return {name: found[name] for name in order if name in found}


def cell(metrics: MetricResult, name: str, *, ends: bool) -> str:
    """A value, with its intervals over pedestrians and over videos."""
    row = metrics.row(name)
    text = f"{row['value']:.3f}"
    for unit in ("pedestrian", "video") if ends else ():
        text += f" [{row[f'low_{unit}']:.3f}, {row[f'high_{unit}']:.3f}]"
    return text


def table(header: list[str], body: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in [header, *body]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def published(rows: dict[str, MetricResult], task: str) -> str:
    """Every column, with intervals of one."""
    body = []
    for name, metrics in rows.items():
        cells = [cell(metrics, column, ends=column == FIRST[task]) for column in COLUMNS]
        jumps = [f"{metrics.row(f'confidence_delta_{which}')['value']:.3f}" for which in ("max", "mean")]
        body.append([name, *cells, " / ".join(jumps)])
    header = ["model", "AP", "balanced accuracy", "AUC", "accuracy", "precision", "F1"]
    return table([*header, "soft bAcc", "hard bAcc", "Δ max / mean"], body)


def differences(
    task: str, done: dict[str, SampleScores], released: SampleScores, config: PedestrianConfig
) -> str:
    """Paired differences to the released scores."""
    body = []
    models, metrics = COMPARED[task]
    for name in models:
        found = compare(done[name], released, config, resamples=RESAMPLES, names=(name, "PedFormer")).table
        for metric in metrics:
            row = found.row(by_predicate=pl.col("metric") == metric, named=True)
            ends = [f"[{row[f'low_{u}']:+.3f}, {row[f'high_{u}']:+.3f}]" for u in ("pedestrian", "video")]
            body.append([name, NAMES[metric], f"{row['difference']:+.3f}", *ends, row["verdict"]])
    return table(["model", "metric", "difference", "by pedestrian", "by video", "in words"], body)


def with_annotated_events(
    scenes: Scenes, done: dict[str, SampleScores], released: SampleScores, config: PedestrianConfig
) -> str:
    """The differences in AUC and AP on those published samples whose crossing was annotated."""
    protocol = replace(Iv2024.reference("action"), crosser_without_event="drop")
    held = split_samples(sample(scenes, protocol), "test")
    tubes = held.tubes.filter(pl.col("tube").is_in(held.samples["tube"].to_list()))
    names = (pl.col(name).cast(pl.String) for name in ("video", "name"))
    kept = tubes.select(pl.format("{}/{}", *names))[:, 0].to_list()
    theirs = released.take(np.isin(released.pedestrian, kept))
    lines = [f"{len(theirs):,} samples whose crossing was annotated, or of people who do not cross:"]
    for name in COMPARED["action"][0]:
        ours = done[name].take(np.isin(done[name].pedestrian, kept))
        found = compare(ours, theirs, config, resamples=RESAMPLES, names=(name, "PedFormer"))
        lines += [line for line in found.lines() if line.startswith(("auc:", "average_precision:"))]
    return "\n".join(lines)


def honest(rows: dict[tuple[str, str], MetricResult]) -> str:
    """Three metrics with intervals and two without, of both tasks."""
    shown = ("average_precision", "balanced_accuracy", "auc", "accuracy", "f1")
    ends = shown[:3]
    body = [
        [task, name, *(cell(metrics, column, ends=column in ends) for column in shown)]
        for (task, name), metrics in rows.items()
    ]
    return table(["task", "model", *(NAMES[name] for name in shown)], body)


def main(jaad: Path, released: Path) -> None:
    """Fit, judge, and write the tables in the order of the page."""
    scenes = read("jaad", jaad)
    tables = []
    for task in TASKS:
        config = PedestrianConfig.reference(task)
        published_scenes = sample(scenes, Iv2024.reference(task))
        found = evaluate_released(scenes, "jaad", task, released / f"pf_{task}_jaad.csv", resamples=RESAMPLES)
        done = fit_all(published_scenes, task, config)
        metrics = {"PedFormer": found.metrics} | {name: item.metrics for name, item in done.items()}
        theirs, _ = collect_sample_scores(found.predictions, done["boosting"].scenes, task)
        ours = {
            name: collect_sample_scores(item.predictions, item.scenes, task)[0] for name, item in done.items()
        }
        tables += [published(metrics, task), differences(task, ours, theirs, config)]
        if task == "action":
            print(with_annotated_events(scenes, ours, theirs, config))
        for name, item in done.items():
            print(task, name, item.model.fitted.chosen)
    rows = {
        (task, name): item.metrics
        for task in TASKS
        for name, item in fit_all(
            sample(scenes, Iv2024.default(task)), task, PedestrianConfig.default(task)
        ).items()
    }
    tables.append(honest(rows))
    text = PAGE.read_text(encoding="utf-8")
    heads = (
        "| model | AP |",
        "| model | metric |",
        "| model | AP |",
        "| model | metric |",
        "| task | model |",
    )
    at = 0
    for head, made in zip(heads, tables, strict=True):
        begin = text.index(head, at)
        end = re.compile(r"\n(?!\|)").search(text, begin)
        assert end is not None  # noqa: S101
        text = text[:begin] + made + text[end.start() :]
        at = begin + len(made)
    write_atomically(PAGE, text.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
