"""The released scores of one task on one dataset, with their samples and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.formats.score_tables import read_scores
from roadaware.metrics.pedestrians import (
    PedestrianConfig,
    Task,
    build_core,
    collect_sample_scores,
    evaluate_samples,
)
from roadaware.metrics.result import MetricResult
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.factors import UNKNOWN, FactorConfig, Labels, build_scenario_labels
from roadaware.scenes.sampling import Dataset, Iv2024, list_task_answers, sample
from roadaware.scenes.tables import Predictions, Scenes, build_sample_predictions
from roadaware.tasks.pedestrians import Baseline

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
    scenes: Scenes, dataset: Dataset, task: Task, scores: Path, *, draws: int = 0
) -> Question:
    """Sample the scenes as published, join the released scores by row, and judge them.

    Args:
        scenes: of the dataset.
        dataset: jaad or pie.
        task: what the scores answer.
        scores: the released csv file.
        draws: bootstrap resamples; 0 gives no intervals.

    Raises:
        InputError: if the scores do not fit the samples, row by row.
    """
    protocol = Iv2024.reference(task, dataset)
    columns = 1 if task == "action" else len(list_task_answers(protocol))
    claimed = read_scores(scores, columns)
    values = claimed.values
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
        assumption = _in_words(scenes, gap.declared, gap.missing, len(gap.tubes))
        for column in groups or [np.full(len(test), None, dtype=object)]:
            found.update(compute_ranges(test, values, gap, config, column))
        kept = drop_last(test.with_row_index("place"), gap.declared, gap.missing)
        groups = [column[kept["place"].to_numpy()] for column in groups]
        test = kept.drop("place")
    answered = sampled.with_tables(
        samples=pl.concat([sampled.samples.filter(pl.col("split") != "test"), test])
    )
    predictions = build_sample_predictions(test, values)
    metrics = _evaluate_samples(predictions, answered, config, groups, draws=draws, n_clipped=claimed.clipped)
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


def _evaluate_samples(
    predictions: Predictions,
    scenes: Scenes,
    config: PedestrianConfig,
    groups: Sequence[Labels],
    *,
    draws: int,
    n_clipped: int,
) -> MetricResult:
    """The metrics of the test samples, and those of every factor's scenarios under them."""
    state, _ = collect_sample_scores(predictions, scenes, config.task, split="test")
    whole = evaluate_samples(state, config, draws=draws, n_clipped=n_clipped)
    parts = [evaluate_samples(state, config, groups=column) for column in groups]
    return MetricResult(
        summary=pl.concat([whole.summary, *(p.summary.filter(pl.col("group").is_not_null()) for p in parts)]),
        counts=pl.concat([whole.counts, *(p.counts.filter(pl.col("group").is_not_null()) for p in parts)]),
        config=whole.config,
        notes=whole.notes,
        makers=whole.makers,
    )


def _in_words(scenes: Scenes, tube: int, missing: int, choices: int) -> str:
    name = scenes.tubes.filter(pl.col("tube") == tube)["name"].item()
    return (
        f"pedestrian {name} has a gap in its track and {missing} samples fewer; attributes alone do not tell "
        f"who has, {choices} choices are admissible, and with this one scores jump least"
    )


def _wrong_length(path: Path, found: int, expected: int) -> InputError:
    return InputError(
        f"expected {expected} rows, one per test sample, found {found}",
        where=str(path),
        hint="scores without keys are joined by row: point at the released file, and at whole annotations",
    )
