"""Pedestrians: scores beside the samples that they are of, opened and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from roadaware.analysis.evaluation.runs import Run
from roadaware.analysis.excerpts import check_clips, list_film_places, select_sample_excerpts
from roadaware.config import ConfigName
from roadaware.datasets.loading import sample_dataset
from roadaware.errors import UsageError
from roadaware.formats.score_tables import check_same_length, read_labels, read_samples, read_scores
from roadaware.metrics.pedestrians import PedestrianConfig, Task, collect_sample_scores, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.scenes.factors import FactorConfig, build_scenario_labels, classify_by_edges
from roadaware.scenes.sampling import get_protocol, split_samples
from roadaware.scenes.tables import build_sample_predictions
from roadaware.steps import log_step

if TYPE_CHECKING:
    import numpy.typing as npt

    from roadaware.analysis.excerpts import Excerpt
    from roadaware.scenes.tables import Scenes

COLUMNS = {"action": 1, "intention": 3, "risk": 12}


@dataclass(frozen=True)
class MatchedScores:
    """Scores beside their truth.

    Args:
        state: the two together.
        clipped: how many scores lay outside [0, 1] by rounding.
        scenes: the dataset with the samples, where they come from one.
    """

    state: SampleScores
    clipped: int
    scenes: Scenes | None = None


@dataclass(frozen=True)
class SampleSource:
    """The samples that scores are of: a file, or a protocol on a dataset.

    Args:
        samples: the file, in the order of the scores.
        task: what was asked; the protocol implies it.
        protocol: instead of a file, its name.
        data: the dataset of the protocol.
        split: which samples of the protocol.
        sampling: config of the protocol, where it is another one than that of the metrics.
    """

    samples: Path | None = None
    task: Task | None = None
    protocol: str | None = None
    data: Path | None = None
    split: Literal["train", "val", "test"] = "test"
    sampling: ConfigName | None = None

    def match(
        self, scores: Path, config: ConfigName, *, any_task: bool = False
    ) -> tuple[MatchedScores, Task | None]:
        """Scores beside their ground truth, and the task.

        Args:
            scores: the csv file.
            config: of the protocol, where `sampling` names none.
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
            if self.sampling is not None:
                raise UsageError(
                    "--sampling says how a protocol cuts samples; those of --samples are cut already"
                )
            if self.task is None and not any_task:
                raise UsageError("--samples needs --task action, intention or risk")
            return match_file(scores, self.samples, self.task), self.task
        protocol = get_protocol(str(self.protocol))
        if self.task is not None and self.task != protocol.task:
            raise UsageError(
                f"--protocol {self.protocol} asks for {protocol.task}, --task for {self.task}; leave one away"
            )
        if self.data is None:
            raise UsageError(
                f"--protocol {self.protocol} needs --data PATH, the folder or zip of {protocol.dataset.upper()}"
            )
        config = self.sampling or config
        sampled = sample_dataset(
            protocol.dataset, self.data, str(self.protocol), config, splits=(self.split,)
        )
        found = read_scores(scores, COLUMNS[protocol.task])
        held = split_samples(sampled, self.split)
        option = "--config" if self.sampling is None else "--sampling"
        text = f"split {self.split} as {self.protocol} with {option} {config} cuts it"
        check_same_length(len(found.values), len(held.samples), scores, text)
        predictions = build_sample_predictions(held.samples, found.values)
        state, _ = collect_sample_scores(predictions, held, protocol.task)
        return MatchedScores(state, found.clipped, held), protocol.task


def evaluate_score_file(
    scores: Path,
    source: SampleSource,
    config: ConfigName,
    by: Sequence[str],
    resamples: int,
    seed: int,
    *,
    clips: int = 0,
    media: Path | None = None,
) -> Run:
    """Scores and samples opened and judged.

    Args:
        scores: the csv file.
        source: of the samples.
        config: of metrics and sampling.
        by: scenarios; several make a product.
        resamples: resamples of pedestrians, and of videos.
        seed: of the resamples.
        clips: how many moments are cut out of the films of the dataset, for the report.
        media: where films lie; with the dataset where None.

    Raises:
        UsageError: as `SampleSource.match`, or if scenarios are asked of samples without dataset.
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """
    check_clips(clips)
    if media is not None and source.data is None:
        raise UsageError("--media needs the dataset whose films they are: --protocol NAME and --data PATH")
    matched, task = source.match(scores, config)
    if task is None:
        raise UsageError("name what was asked: --task action, intention or risk")
    chosen = get_config(config, task)
    groups = None
    if by:
        if matched.scenes is None:
            raise UsageError("--by needs the dataset itself: --protocol NAME and --data PATH, not --samples")
        groups = assign_scenarios(matched.scenes, by, config)
    with log_step("resampling" if resamples else "scoring"):
        result = evaluate_samples(
            matched.state, chosen, resamples=resamples, seed=seed, groups=groups, n_clipped=matched.clipped
        )
    facts: dict[str, Any] = {"config_name": config, "clipped": matched.clipped}
    if matched.scenes is not None:
        facts["sampling"] = matched.scenes.meta.notes["protocol"]
    excerpts: tuple[Excerpt, ...] = ()
    if clips and matched.scenes is not None and source.data is not None:
        with log_step("moments"):
            places = list_film_places(media, source.data)
            excerpts = select_sample_excerpts(matched.state, matched.scenes, places, most=clips)
    protocol = source.protocol or ""
    return Run(
        scores.stem,
        matched.state,
        chosen,
        result,
        resamples,
        seed,
        protocol,
        facts,
        groups,
        excerpts=excerpts,
    )


def get_config(name: ConfigName, task: Task) -> PedestrianConfig:
    """How a task about pedestrians is judged, by name."""
    return PedestrianConfig.reference(task) if name == "reference" else PedestrianConfig.default(task)


def assign_scenarios(scenes: Scenes, by: Sequence[str], config: ConfigName) -> list[str]:
    """(n,) the scenario of each sample, a product where several factors are named."""
    chosen = FactorConfig.reference() if config == "reference" else FactorConfig.default()
    return [str(label) for label in build_scenario_labels(scenes, by, chosen)]


def match_file(scores: Path, samples: Path, task: Task | None) -> MatchedScores:
    """Scores joined to the rows of a samples file.

    Args:
        scores: the csv file.
        samples: the csv file.
        task: what they ask; None for as many classes as the first row has scores.

    Raises:
        InputError: at the first row that is not right, or if the numbers of rows differ.
    """
    found = read_scores(scores, None if task is None else COLUMNS[task])
    truth = read_samples(samples, max(2, found.values.shape[1]))
    check_same_length(len(found.values), len(truth.truth), scores, samples.name)
    names = np.array(truth.pedestrian, dtype=np.str_)
    video = None if truth.video is None else np.array(truth.video, dtype=np.str_)
    state = SampleScores(found.values, truth.truth, names, video, truth.tte_frames)
    return MatchedScores(state, found.clipped)


MOST_LABELS = 24
TTE_EDGES_FRAMES = (15, 30, 45, 60, 75, 90)
# The rate of JAAD and PIE.
FRAMES_PER_SECOND = 30.0


def group_by_time(held: MatchedScores) -> tuple[list[npt.NDArray[np.object_]], dict[str, float]]:
    """The band of time to event of each sample, where there are two, and the mean seconds of each band."""
    tte = held.state.tte_frames
    if tte is None or not len(tte):
        return [], {}
    labels = np.array(
        [f"tte={name}" for name in classify_by_edges(tte.astype(float), TTE_EDGES_FRAMES)], dtype=object
    )
    names = sorted(set(labels.tolist()))
    if len(names) < 2:
        return [], {}
    return [labels], {name: float(tte[labels == name].mean()) / FRAMES_PER_SECOND for name in names}


def group_by_scenario(
    held: MatchedScores, samples: Path | None, by: list[str], config: ConfigName
) -> list[npt.NDArray[np.object_]]:
    """The scenario of each sample, factor by factor."""
    if held.scenes is not None:
        return [np.array(assign_scenarios(held.scenes, [factor], config), dtype=object) for factor in by]
    found = []
    for column in by if samples is not None else []:
        values = read_labels(Path(samples or ""), column, MOST_LABELS)
        found.append(np.array([f"{column}={value}" for value in values], dtype=object))
    return found
