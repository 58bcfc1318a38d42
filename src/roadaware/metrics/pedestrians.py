"""How good pedestrian scores are: base, weighted, soft, hard and ranking metrics, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrian_config import PedestrianConfig, Task
from roadaware.metrics.pedestrian_core import METRIC_NAMES, UNITS, PedestrianCore, lower_is_better
from roadaware.metrics.pedestrian_rows import class_counts, pedestrian_rows, sample_rows, why_undefined
from roadaware.metrics.result import SUMMARY, MetricResult, interval_columns
from roadaware.metrics.scores import SampleScores, clipped, decisions, group_labels
from roadaware.scenes.predictions import Predictions, sample_scores
from roadaware.scenes.tables import Scenes

__all__ = [
    "METRIC_NAMES",
    "PedestrianConfig",
    "SampleScores",
    "Task",
    "clipped",
    "core_of",
    "decisions",
    "evaluate",
    "evaluate_samples",
    "lower_is_better",
    "state_of",
]


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: PedestrianConfig,
    *,
    split: str | None = None,
    draws: int = 0,
    seed: int = 0,
) -> MetricResult:
    """Judge predictions for the samples of scenes; see `evaluate_samples` for what is computed.

    Args:
        predictions: scores joined to the samples by `sample`; those of other splits are left aside.
        scenes: with `samples` of the config's task.
        config: how scores are judged.
        split: judge the samples of this split alone, such as `test`; all unless told.
        draws: most weightings of units for the intervals; 0 gives none.
        seed: of the weightings.

    Raises:
        InputError: if samples and predictions do not fit each other, or a sample has no label.
        UsageError: if there are no samples of the task.

    Source: Rasouli and Kotseruba, IV 2024, sections III.C to III.E, and the code released with it.
    """
    state, n_clipped = state_of(predictions, scenes, config.task, split=split)
    return evaluate_samples(state, config, draws=draws, seed=seed, n_clipped=n_clipped)


def evaluate_samples(
    state: SampleScores,
    config: PedestrianConfig,
    *,
    draws: int = 0,
    seed: int = 0,
    groups: npt.ArrayLike | None = None,
    n_clipped: int = 0,
) -> MetricResult:
    """Judge scores beside their truth, as a whole and by group.

    Intervals are over whole pedestrians and over whole videos; see `statistics.intervals`. With fewer than
    two units, or where a metric is undefined without one of them, none is given. The largest time to event,
    and with it every sample's weight, stays that of the evaluated set.

    Args:
        state: the samples, in any order.
        config: how scores are judged.
        draws: most weightings of units for the intervals; 0 gives none.
        seed: of the weightings; equal seeds give equal intervals.
        groups: (n,) label of each sample's group, None where it is in none; each group is judged as a
            set of its own.
        n_clipped: how many scores had to be brought back into [0, 1] beforehand; it is noted.

    Raises:
        InputError: if the scores do not fit the task, or there is not one label per sample.
        UsageError: if `draws` is negative.

    Source: Rasouli and Kotseruba, IV 2024, sections III.C to III.E, and the code released with it.

    >>> state = SampleScores(np.array([0.9, 0.8, 0.2, 0.4]), np.array([1, 1, 0, 1]), ["a", "a", "b", "c"])
    >>> result = evaluate_samples(state, PedestrianConfig.default("action"))
    >>> result.value("accuracy"), result.value("average_precision"), result.value("soft_recall")
    (0.75, 1.0, 0.5)
    >>> result.value("weighted_accuracy") is None, result.row("weighted_accuracy")["reason"]
    (True, 'no time to event is given')
    """
    if draws < 0:
        raise UsageError(f"draws should be 0 or more, not {draws}")
    _check_task(state, config)
    order = np.argsort(state.places)
    whole = state.take(order)
    scopes: list[tuple[str | None, PedestrianCore]] = [(None, PedestrianCore.of(whole, config))]
    if groups is not None:
        scopes.extend(_groups(whole, group_labels(groups, len(state))[order], config))
    rows = [row for group, core in scopes for row in _summary(group, core, draws, seed)]
    return MetricResult(
        summary=pl.DataFrame(rows, schema=SUMMARY),
        counts=pl.concat([class_counts(group, core) for group, core in scopes]),
        config=to_dict(config),
        notes=_clipping(n_clipped),
        makers={
            "pedestrian": partial(pedestrian_rows, whole, config),
            "sample": partial(sample_rows, whole, config),
        },
    )


def state_of(
    predictions: Predictions, scenes: Scenes, task: Task, *, split: str | None = None
) -> tuple[SampleScores, int]:
    """Scores beside the truth of the scenes' samples, in the order of extraction, and how many were clipped.

    Args:
        predictions: scores joined to the samples by `sample`; those of other splits are left aside.
        scenes: with `samples` of the task.
        task: what the samples ask.
        split: the samples of this split alone; all unless told.

    Raises:
        InputError: if samples and predictions do not fit each other, or a sample has no label.
        UsageError: if there are no samples of the task.
    """
    samples = scenes.samples
    if split is not None and "split" in samples.columns:
        samples = samples.filter(pl.col("split").cast(pl.String) == split)
    kinds = samples["kind"].cast(pl.String).unique().sort().to_list() if "kind" in samples.columns else []
    if kinds != [task]:
        place = f" in split '{split}'" if split else ""
        raise UsageError(f"the samples{place} should ask for {task}; they ask for {kinds or 'nothing'}")
    scores, n_clipped = clipped(sample_scores(predictions, scenes, samples))
    for column in ("label", "tube", "video"):
        if samples[column].null_count():
            lost = samples.filter(pl.col(column).is_null())["sample"].head(5).to_list()
            raise InputError(f"samples need a {column} to be judged; null in samples {lost}")
    tte = samples["tte_frames"] if "tte_frames" in samples.columns else None
    return SampleScores(
        scores,
        samples["label"].to_numpy(),
        np.array(_people(samples, scenes), dtype=np.str_),
        np.array(samples["video"].cast(pl.String).to_list(), dtype=np.str_),
        None if tte is None or tte.null_count() else tte.to_numpy(),
    ), n_clipped


def _clipping(n: int) -> tuple[str, ...]:
    if not n:
        return ()
    return (
        f"{n} score{'s' * (n > 1)} outside [0, 1] by no more than 1e-6 {'were' if n > 1 else 'was'} clipped",
    )


def core_of(state: SampleScores, config: PedestrianConfig) -> PedestrianCore:
    """The sums and sorts of a set of samples, for those who resample it themselves.

    Raises:
        InputError: if the scores do not fit the task.
    """
    _check_task(state, config)
    return PedestrianCore.of(state.take(np.argsort(state.places)), config)


def _people(samples: pl.DataFrame, scenes: Scenes) -> list[str]:
    """`video/name` of each sample's pedestrian; the tube's number where it has no name."""
    number = pl.col("tube").cast(pl.String)
    name = number
    if "name" in scenes.tubes.columns:
        samples = samples.join(
            scenes.tubes.select("tube", "name"), on="tube", how="left", maintain_order="left"
        )
        name = pl.coalesce(pl.col("name").cast(pl.String), number)
    return samples.select(pl.format("{}/{}", pl.col("video").cast(pl.String), name))[:, 0].to_list()


def _check_task(state: SampleScores, config: PedestrianConfig) -> None:
    columns = state.scores.shape[1]
    if (columns == 1) != (config.task == "action"):
        wanted = (
            "one score (the probability of crossing)" if config.task == "action" else "one score per class"
        )
        raise InputError(
            f"{config.task} needs {wanted} for each sample; got {columns}",
            hint="action has 1 column, intention 3, risk 12: is this the right file, and the right task?",
        )


def _groups(
    whole: SampleScores, labels: npt.NDArray[np.object_], config: PedestrianConfig
) -> Iterator[tuple[str, PedestrianCore]]:
    """Each group as a set of its own, by label."""
    longest = None
    if config.max_tte == "set" and whole.tte_frames is not None and len(whole):
        longest = float(whole.tte_frames.max())
    for label in sorted({str(label) for label in labels if label is not None}):
        rows = np.array([given is not None and str(given) == label for given in labels])
        yield label, PedestrianCore.of(whole.take(rows), config, longest)


def _summary(group: str | None, core: PedestrianCore, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of the summary of one group, in the columns of SUMMARY."""
    point = core.values(core.once())
    drawn = {unit: core.drawn(unit, draws, seed) if draws else None for unit in UNITS}
    units = {unit: core.units(unit, draws, seed) for unit in UNITS}
    for metric in core.names:
        value = float(point[metric][0])
        valid = not np.isnan(value)
        row = {
            "group": group,
            "metric": metric,
            "value": value if valid else None,
            "valid": valid,
            "n": _size(metric, core),
            "reason": None if valid else why_undefined(metric, core),
        }
        for unit in UNITS:
            values, of = drawn[unit], units[unit]
            found = of.interval(value, values[metric]) if values and of and valid else None
            row |= interval_columns(found, unit)
        yield row


def _size(metric: str, core: PedestrianCore) -> int:
    """What the metric is a mean of: samples, or pedestrians."""
    if metric.startswith("confidence_delta"):
        return int(core.people.has_delta.sum())
    return len(core.people.name) if metric.startswith(("soft_", "hard_")) else len(core.state)
