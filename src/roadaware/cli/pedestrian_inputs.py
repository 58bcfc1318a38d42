"""Scores and samples as the commands take them: two csv files, or a csv file against a dataset's samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.cli.options import ConfigName
    from roadaware.metrics.pedestrians import SampleScores, Task
    from roadaware.scenes.tables import Scenes

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


def judged(
    scores: Path,
    samples: Path | None,
    task: Task | None,
    protocol: str | None,
    data: Path | None,
    split: str,
    config: ConfigName,
    *,
    any_task: bool = False,
) -> tuple[Judged, Task | None]:
    """Scores beside their truth, and what was asked, from a samples file or a protocol on a dataset.

    Args:
        scores: the csv file.
        samples: the csv file, or None.
        task: what was asked, or None where the protocol says it.
        protocol: its name, or None.
        data: the protocol's dataset, or None.
        split: which samples of the protocol.
        config: of the protocol.
        any_task: whether a samples file without task will do: the number of scores then tells the classes.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
        UsageError: if not exactly one of samples and protocol is named, or what belongs to it is missing.
    """
    from roadaware.cli.datasets import sampled

    if (samples is None) == (protocol is None):
        raise UsageError("name the samples: either --samples SAMPLES.csv, or --protocol NAME and --data PATH")
    if samples is not None:
        if task is None and not any_task:
            raise UsageError("--samples needs --task action, intention or risk")
        return from_files(scores, samples, task), task
    dataset, asked = dataset_of(str(protocol))
    if task is not None and task != asked:
        raise UsageError(f"--protocol {protocol} asks for {asked}, --task for {task}; leave one away")
    if data is None:
        raise UsageError(f"--protocol {protocol} needs --data PATH, the folder or zip of {dataset.upper()}")
    cut = f"{protocol} with --config {config}"
    held = sampled(dataset, data, str(protocol), config, (split,))
    return from_dataset(scores, held, asked, split, cut), asked


def scenarios(scenes: Scenes, by: list[str], config: ConfigName) -> list[str]:
    """(n,) the scenario of each sample, a product where several factors are named."""
    from roadaware.scenes.factors import FactorConfig, scenario_labels

    chosen = FactorConfig.reference() if config == "reference" else FactorConfig.default()
    return [str(label) for label in scenario_labels(scenes, by, chosen)]


def from_files(scores: Path, samples: Path, task: Task | None) -> Judged:
    """Scores joined to the rows of a samples file.

    Args:
        scores: the csv file.
        samples: the csv file.
        task: what they ask; None for as many classes as the first row has scores.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """
    import numpy as np

    from roadaware.metrics.pedestrians import SampleScores
    from roadaware.scenes.scores import check_same_length, read_samples, read_scores

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
    from roadaware.metrics.pedestrians import state_of
    from roadaware.scenes.predictions import of_samples
    from roadaware.scenes.sampling.sampler import split_samples
    from roadaware.scenes.scores import check_same_length, read_scores

    claimed = read_scores(scores, COLUMNS[task])
    held = split_samples(sampled, split)
    check_same_length(len(claimed.values), len(held.samples), scores, f"split {split} as {cut} cuts it")
    state, _ = state_of(of_samples(held.samples, claimed.values), held, task)
    return Judged(state, claimed.clipped, held)


def dataset_of(protocol: str) -> tuple[str, Task]:
    """The dataset and the task of a protocol's name.

    Raises:
        UsageError: if there is no such protocol.
    """
    from roadaware.scenes.sampling import protocol_named

    config = protocol_named(protocol)
    return config.dataset, config.task
