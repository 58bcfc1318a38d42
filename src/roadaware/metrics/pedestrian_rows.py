"""What stands behind the pedestrian metrics: rows per pedestrian and sample, class counts, and reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.metrics.pedestrian_config import PedestrianConfig
from roadaware.metrics.pedestrian_core import PedestrianCore, sample_weights
from roadaware.metrics.per_pedestrian import Pedestrians
from roadaware.metrics.scores import SampleScores, Texts, confidences, decisions


def pedestrian_rows(state: SampleScores, config: PedestrianConfig) -> pl.DataFrame:
    """One row per pedestrian, by name.

    Returns:
        `pedestrian`, `video`, `samples`, `truth`, `soft` and `hard` decision with `soft_correct` and
        `hard_correct`, `agreed` (whether its samples decide alike), `share_correct` of its samples,
        `confidence_delta_max` and `confidence_delta_mean` (null where it has none).
    """
    people = Pedestrians.of(state, config)
    right = decisions(state.scores) == state.truth
    share = np.bincount(people.of_sample, right, len(people.name)) / people.n_samples
    frame = pl.DataFrame(
        {
            "pedestrian": _text(people.name),
            "video": _text(people.video, len(people.name)),
            "samples": people.n_samples,
            "truth": people.truth,
            "soft": people.soft,
            "soft_correct": people.soft == people.truth,
            "hard": people.hard,
            "hard_correct": people.hard == people.truth,
            "agreed": people.agreed,
            "share_correct": share,
            "confidence_delta_max": people.delta_max,
            "confidence_delta_mean": people.delta_mean,
            "has_delta": people.has_delta,
        }
    )
    deltas = ["confidence_delta_max", "confidence_delta_mean"]
    return frame.with_columns(pl.when("has_delta").then(pl.col(name)).alias(name) for name in deltas).drop(
        "has_delta"
    )


def sample_rows(state: SampleScores, config: PedestrianConfig) -> pl.DataFrame:
    """One row per sample, in the order of extraction.

    Returns:
        `order`, `pedestrian`, `video`, `tte_frames`, `truth`, `decision`, `correct`, `confidence` (of the
        decision), `truth_score` (score of the true class) and `weight` (null where the task has none).
    """
    both = np.hstack([1 - state.scores, state.scores]) if state.scores.shape[1] == 1 else state.scores
    each = np.arange(len(state))
    confidence, correct = confidences(state)
    longest = float(state.tte_frames.max()) if state.tte_frames is not None and len(state) else None
    weights = sample_weights(state, config, longest)
    return pl.DataFrame(
        {
            "order": state.places,
            "pedestrian": _text(state.pedestrian),
            "video": _text(state.video, len(state)),
            "tte_frames": _column(state.tte_frames, len(state), pl.Int64),
            "truth": state.truth,
            "decision": decisions(state.scores),
            "correct": correct,
            "confidence": confidence,
            "truth_score": both[each, state.truth],
            "weight": _column(weights, len(state), pl.Float64),
        }
    )


def class_counts(group: str | None, core: PedestrianCore) -> pl.DataFrame:
    """Samples and pedestrians of each true class in one group."""
    size = core.state.n_classes
    return pl.DataFrame(
        {
            "group": pl.Series([group] * size, dtype=pl.String),
            "class": np.arange(size),
            "samples": np.bincount(core.state.truth, minlength=size),
            "pedestrians": np.bincount(core.people.truth, minlength=size),
        }
    )


def why_undefined(metric: str, core: PedestrianCore) -> str:
    """In words, why a metric of this set has no value."""
    if not len(core.state):
        return "no samples"
    if metric.startswith("weighted_") and core.weights is None:
        given = core.state.tte_frames is not None
        return "no time to event is above 0" if given else "no time to event is given"
    if metric.startswith("confidence_delta"):
        return "no pedestrian has two samples"
    if metric.startswith("average_precision_"):
        return f"no sample of {metric.removeprefix('average_precision_').replace('_', ' ')}"
    if metric == "auc_thresholded" and core.state.scores.shape[1] > 1:
        return "defined for one probability per sample only"
    if metric == "auc" and core.config.auc_needs_normalised_rows and core.unnormalised_rows():
        return f"{core.unnormalised_rows()} rows of scores do not sum to 1"
    return _missing_class(metric, core)


def _missing_class(metric: str, core: PedestrianCore) -> str:
    """The classes whose absence from truth or decisions leaves the metric undefined."""
    prefix = metric.split("_", 1)[0] + "_"
    prefix = prefix if prefix in core.counts else ""
    counts = core.counts[prefix].sum(axis=0)
    true, decided = counts.sum(axis=1), counts.sum(axis=0)
    unit = "pedestrian" if prefix in ("soft_", "hard_") else "sample"
    rate = metric.removeprefix(prefix)
    if rate == "precision":
        return f"no {unit} is decided to be of class {_those(decided == 0)}"
    if rate == "f1":
        return f"class {_those((true == 0) & (decided == 0))} occurs in neither truth nor decisions"
    return f"no {unit} of class {_those(true == 0)} in the truth"


def _those(missing: npt.NDArray[np.bool_]) -> str:
    return ", ".join(str(k) for k in np.flatnonzero(missing))


def _text(values: Texts | None, n: int = 0) -> pl.Series:
    return pl.Series([None] * n if values is None else values.tolist(), dtype=pl.String)


def _column(values: npt.NDArray[Any] | None, n: int, dtype: type[pl.DataType]) -> pl.Series:
    return pl.Series([None] * n if values is None else values, dtype=dtype)
