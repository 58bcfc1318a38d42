"""`roadaware evaluate pedestrians`: how good are these scores."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from roadaware.cli import console, outputs, results
from roadaware.cli.datasets import sample_dataset
from roadaware.cli.options import (
    USUAL,
    Common,
    ConfigName,
    MetricConfig,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    TaskName,
)
from roadaware.errors import UsageError
from roadaware.formats.score_tables import check_same_length, read_samples, read_scores
from roadaware.metrics.pedestrians import (
    METRIC_NAMES,
    PedestrianConfig,
    collect_sample_scores,
    evaluate_samples,
    is_lower_better,
)
from roadaware.metrics.scores import SampleScores
from roadaware.reports import runs
from roadaware.reports.run_text import run_text
from roadaware.scenes.factors import FactorConfig, build_scenario_labels
from roadaware.scenes.sampling import get_protocol
from roadaware.scenes.sampling.sampler import split_samples
from roadaware.scenes.tables import build_sample_predictions

if TYPE_CHECKING:
    from roadaware.metrics.pedestrians import Task
    from roadaware.scenes.tables import Scenes

# `--fail-under METRIC=VALUE` for pedestrians, whose metrics are known before anything is judged.


def parse_thresholds(texts: Sequence[str]) -> dict[str, float]:
    """Metric to the lowest value that passes.

    Raises:
        UsageError: if a metric is unknown or better when lower, or a value is no finite number.
    """

    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as auc=0.85; got {text!r}")
        if name not in METRIC_NAMES:
            near = difflib.get_close_matches(name, METRIC_NAMES, n=1)
            guess = f"Did you mean {near[0]}?" if near else f"There are {', '.join(METRIC_NAMES)}."
            raise UsageError(f"--fail-under: no metric {name!r}. {guess}")
        if is_lower_better(name):
            raise UsageError(f"--fail-under: lower is better for {name}, so it cannot fall under a bar")
        bars[name] = _finite(number, text)
    return bars


def _finite(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--fail-under {text}: {number!r} is not a finite number")
    return value


SplitName = Literal["train", "val", "test"]
_BY = "Also by scenario: scale, state, speed, ego_action, signal, road, lanes ...; several make a product."
_BARS = "METRIC=VALUE, several if need be: exit with 1 if a metric is lower, or undefined."
_TASK = "The task; --protocol implies it."
_FOLDER = "Write the run here: settings, results, rows per sample and pedestrian, report."


@Parameter(name="*")
@dataclass(frozen=True)
class SampleSource:
    """The samples that scores are of: a file, or a protocol on a dataset."""

    samples: Annotated[Path | None, Parameter(help="The samples, in the same order.")] = None
    task: Annotated[TaskName | None, Parameter(help=_TASK)] = None
    protocol: Annotated[str | None, Parameter(help="Instead of --samples: its name, with --data.")] = None
    data: Annotated[Path | None, Parameter(help="The protocol's dataset: folder or zip.")] = None
    split: Annotated[SplitName, Parameter(help="Which samples of the protocol.")] = "test"

    def match(
        self, scores: Path, config: ConfigName, *, any_task: bool = False
    ) -> tuple[Judged, Task | None]:
        """Scores beside their ground truth, and the task.

        Args:
            scores: the csv file.
            config: of the protocol.
            any_task: whether a samples file without task will do: the number of scores then tells the classes.

        Raises:
            InputError: at the first row that is not right, or if the numbers of rows differ.
            UsageError: if not exactly one of samples and protocol is named, or what belongs to it is missing.
        """

        if (self.samples is None) == (self.protocol is None):
            raise UsageError(
                "name the samples: either --samples SAMPLES.csv, or --protocol NAME and --data PATH"
            )
        if self.samples is not None:
            if self.task is None and not any_task:
                raise UsageError("--samples needs --task action, intention or risk")
            return from_files(scores, self.samples, self.task), self.task
        protocol = str(self.protocol)
        dataset, asked = parse_protocol(protocol)
        if self.task is not None and self.task != asked:
            raise UsageError(
                f"--protocol {protocol} asks for {asked}, --task for {self.task}; leave one away"
            )
        if self.data is None:
            raise UsageError(
                f"--protocol {protocol} needs --data PATH, the folder or zip of {dataset.upper()}"
            )
        cut = f"{protocol} with --config {config}"
        held = sample_dataset(dataset, self.data, protocol, config, (self.split,))
        return from_dataset(scores, held, asked, self.split, cut), asked


NO_SAMPLES = SampleSource()


def pedestrians(
    *,
    scores: Annotated[Path, Parameter(help="The model's output, in [0, 1].")],
    source: SampleSource = NO_SAMPLES,
    by: Annotated[list[str] | None, Parameter(help=_BY), Several] = None,
    config: MetricConfig = "default",
    draws: Resamples = 0,
    seed: Seed = 0,
    fail_under: Annotated[list[str] | None, Parameter(help=_BARS), Several] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Score any model's output on pedestrians: base, weighted, soft, hard and ranking metrics.

    Needs SCORES, a csv file without header with one row per sample (1 number for action, 3 for
    intention, 12 for risk), and the samples: either a csv file with a header and the columns truth,
    pedestrian and tte_frames (and video, for intervals over videos), or the samples of a protocol on a
    dataset. Rows are matched by their order, so a single bad row is an error and nothing is scored.
    Either file may be Parquet with the same columns.

    For example:

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --resamples 1000

        roadaware evaluate pedestrians --scores pf_action_jaad.csv \\
            --protocol jaad-action@iv2024 --data JAAD-JAAD_2.0.zip \\
            --config reference --json result.json -o runs/pedformer

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --fail-under auc=0.85 f1=0.6
    """

    lowest = parse_thresholds(fail_under or [])
    held, asked = source.match(scores, config)
    if asked is None:
        raise UsageError("name what was asked: --task action, intention or risk")
    run = _run(held, asked, config, by or [], scores.stem, draws, seed, source.protocol or "")
    facts = runs.summarize_run(run)
    if folder is not None:
        from roadaware.reports.run_pages import run_page

        with console.log_step("report"):
            files = runs.build_run_files(run, run_page([run]))
        results.write_result(folder, files, overwrite=overwrite)

    return Outcome(run_text(run), facts, results.describe_failure(facts["metrics"], lowest))


def _run(
    judged: Judged,
    task: Task,
    config: ConfigName,
    by: list[str],
    name: str,
    draws: int,
    seed: int,
    protocol: str,
) -> runs.Run:

    chosen = PedestrianConfig.reference(task) if config == "reference" else PedestrianConfig.default(task)
    groups = None
    if by:
        if judged.scenes is None:
            raise UsageError("--by needs the dataset itself: --protocol NAME and --data PATH, not --samples")
        groups = assign_scenarios(judged.scenes, by, config)
    with console.log_step("resampling" if draws else "scoring"):
        result = evaluate_samples(
            judged.state, chosen, draws=draws, seed=seed, groups=groups, n_clipped=judged.clipped
        )
    facts: dict[str, Any] = {"config_name": config, "clipped": judged.clipped}
    if judged.scenes is not None:
        facts["sampling"] = judged.scenes.meta.notes["protocol"]
    return runs.Run(name, judged.state, chosen, result, draws, seed, protocol, facts, groups)


# Scores and samples as the commands take them: two csv files, or a csv file against a dataset's samples.

COLUMNS = {"action": 1, "intention": 3, "risk": 12}


@dataclass(frozen=True)
class Judged:
    """Scores beside their truth.

    Args:
        state: the two together.
        clipped: how many scores lay outside [0, 1] by rounding.
        scenes: the dataset with the samples, where they come from one.
    """

    state: SampleScores
    clipped: int
    scenes: Scenes | None = None


def assign_scenarios(scenes: Scenes, by: list[str], config: ConfigName) -> list[str]:
    """(n,) the scenario of each sample, a product where several factors are named."""

    chosen = FactorConfig.reference() if config == "reference" else FactorConfig.default()
    return [str(label) for label in build_scenario_labels(scenes, by, chosen)]


def from_files(scores: Path, samples: Path, task: Task | None) -> Judged:
    """Scores joined to the rows of a samples file.

    Args:
        scores: the csv file.
        samples: the csv file.
        task: what they ask; None for as many classes as the first row has scores.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """

    claimed = read_scores(scores, None if task is None else COLUMNS[task])
    truth = read_samples(samples, max(2, claimed.values.shape[1]))
    check_same_length(len(claimed.values), len(truth.truth), scores, samples.name)
    names = np.array(truth.pedestrian, dtype=np.str_)
    video = None if truth.video is None else np.array(truth.video, dtype=np.str_)
    state = SampleScores(claimed.values, truth.truth, names, video, truth.tte_frames)
    return Judged(state, claimed.clipped)


def from_dataset(scores: Path, sampled: Scenes, task: Task, split: str, cut: str) -> Judged:
    """Scores joined to the samples of one split of a dataset.

    Args:
        scores: the csv file.
        sampled: scenes with samples.
        task: what they ask.
        split: train, val or test.
        cut: protocol and config that the samples come from, in words.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """

    claimed = read_scores(scores, COLUMNS[task])
    held = split_samples(sampled, split)
    check_same_length(len(claimed.values), len(held.samples), scores, f"split {split} as {cut} cuts it")
    state, _ = collect_sample_scores(build_sample_predictions(held.samples, claimed.values), held, task)
    return Judged(state, claimed.clipped, held)


def parse_protocol(protocol: str) -> tuple[str, Task]:
    """The dataset and the task of a protocol's name.

    Raises:
        UsageError: if there is no such protocol.
    """

    config = get_protocol(protocol)
    return config.dataset, config.task
