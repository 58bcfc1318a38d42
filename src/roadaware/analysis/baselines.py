"""Baselines of pedestrians: models on boxes and vehicle actions alone, trained, judged, and compared in pairs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from roadaware.analysis.compare import compare
from roadaware.analysis.evaluation.pedestrians import get_config
from roadaware.analysis.evaluation.runs import Run
from roadaware.config import ConfigName, from_dict
from roadaware.metrics.pedestrians import PedestrianConfig, collect_sample_scores
from roadaware.steps import log_step

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.pedestrians import Baseline


def train_baselines(
    scenes: Scenes,
    task: Any,
    config: ConfigName,
    *,
    resamples: int,
    seed: int,
    models: list[str] | None = None,
) -> dict[str, Baseline]:
    """The baselines of a task, trained and judged.

    Args:
        scenes: with samples of the task.
        task: action, intention or risk.
        config: how they are judged.
        resamples: bootstrap resamples.
        seed: of the resamples.
        models: their names; all that answer the task where None.
    """
    from roadaware.tasks.pedestrians import evaluate_baselines as fitted

    chosen = get_config(config, task)
    with log_step(f"baselines for {task}"):
        return fitted(scenes, task, models, config=chosen, resamples=resamples, seed=seed)


def build_baseline_run(item: Baseline, protocol: str, resamples: int, seed: int, config: ConfigName) -> Run:
    """A trained baseline as a run."""
    judged = from_dict(PedestrianConfig, item.metrics.config)
    state, _ = collect_sample_scores(item.predictions, item.scenes, judged.task)
    facts = {
        "config_name": config,
        "chosen": item.model.fitted.chosen,
        "sampling": item.scenes.meta.notes["protocol"],
    }
    return Run(item.name, state, judged, item.metrics, resamples, seed, protocol, facts)


def compare_baselines(found: list[Run], *, resamples: int, seed: int) -> list[Comparison]:
    """Every pair of runs on the same samples, the stronger-sounding order being that of the list."""
    if not resamples:
        return []
    return [
        compare(b.state, a.state, a.config, resamples=resamples, seed=seed, names=(b.name, a.name))
        for a, b in itertools.combinations(found, 2)
    ]
