"""PedestrianConfig: which of the published evaluator's choices hold, each a named field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_words
from roadaware.errors import UsageError

Task = Literal["action", "intention", "risk"]


@dataclass(frozen=True)
class PedestrianConfig:
    """How pedestrian scores are judged; the defaults are what `default` gives.

    Args:
        task: `action` (one probability of crossing), `intention` or `risk` (one score per class).
        zero_division: value of a rate that is 0 / 0, with means over the classes that occur; None
            leaves it undefined, and with it the mean over all classes.
        hard_vote: a pedestrian's samples agree when all decide alike (`unanimous`), or when the mean of
            the decided indices equals the first (`mean`, so that 1, 0, 2 agree).
        hard_wrong: where they do not agree, the pedestrian counts as the class other than the truth
            with the most votes (`most_voted_other`), or as class 0, or 1 if the truth is 0
            (`first_other`).
        instance_truth: a pedestrian's class is the most frequent of its samples, the latest of equals
            (`mode`), or that of the first sample (`first`).
        single_sample_delta: a pedestrian with one sample has no confidence delta and is left out
            (`skip`), or has a delta of 0 (`zero`).
        delta_over_classes: the mean delta is a mean over classes too (`mean`), or half the sum over
            classes (`total_variation`, the same for one probability).
        auc_needs_normalised_rows: with several classes, AUC is undefined unless rows sum to 1.
        max_tte: the largest time to event is that of the whole set (`set`) or of each group (`subset`).
        tte_sigma: width of the weight over relative time to event.
        risk_sigma: width of the weight over relative distance from the image's centre.
    """

    task: Task = "action"
    zero_division: float | None = None
    hard_vote: Literal["unanimous", "mean"] = "unanimous"
    hard_wrong: Literal["most_voted_other", "first_other"] = "most_voted_other"
    instance_truth: Literal["mode", "first"] = "mode"
    single_sample_delta: Literal["skip", "zero"] = "skip"
    delta_over_classes: Literal["mean", "total_variation"] = "mean"
    auc_needs_normalised_rows: bool = False
    max_tte: Literal["set", "subset"] = "set"
    tte_sigma: float = 0.3
    risk_sigma: float = 0.5

    def __post_init__(self) -> None:
        check_words(self)
        if not (self.tte_sigma > 0 and self.risk_sigma > 0):
            raise UsageError("tte_sigma and risk_sigma should be positive")

    @classmethod
    def reference(cls, task: Task) -> PedestrianConfig:
        """The published evaluator's choices, except that what it marks -1 is undefined here too.

        Source: Rasouli and Kotseruba, IV 2024, sections III.C-E, and the evaluator released with it.
        """
        return cls(
            task=task,
            zero_division=0.0,
            hard_vote="mean",
            hard_wrong="first_other",
            instance_truth="first",
            single_sample_delta="zero",
            delta_over_classes="mean",
            auc_needs_normalised_rows=True,
            max_tte="subset",
        )

    @classmethod
    def default(cls, task: Task) -> PedestrianConfig:
        """The choices we recommend: what is undefined stays so, and agreement means agreement."""
        return cls(task=task)
