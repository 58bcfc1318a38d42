"""Scores and samples as the commands take them: two csv files, or a csv file against a dataset's samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def from_files(scores: Path, samples: Path, task: Task) -> Judged:
    """Scores joined to the rows of a samples file.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """
    import numpy as np

    from roadaware.metrics.pedestrians import SampleScores
    from roadaware.scenes.scores import check_same_length, read_samples, read_scores

    claimed = read_scores(scores, COLUMNS[task])
    truth = read_samples(samples, max(2, COLUMNS[task]))
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
    from roadaware.scenes.scores import check_same_length, read_scores
    from roadaware.tasks.pedestrians import split_samples

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
