"""Matches: which predictions of a set were right at each threshold, as arrays that merge and give AP."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.errors import UsageError
from roadaware.metrics.detection.config import DetectionConfig, Rule
from roadaware.statistics.average_precision import (
    PrecisionRecall,
    compute_precision_recall,
    resample_average_precision,
)


@dataclass(frozen=True, eq=False, repr=False)
class Matches:
    """The predictions of one level (boxes, tubes or frame labels), each for one class, with the ground truth counts.

    Equal scores are ranked by video, in the order of `videos`, and then by `order`.

    Args:
        thresholds: (T,) smallest overlap of a hit.
        classes: (C,) the (kind, label) of each class, by name.
        videos: (V,) the videos that were judged, also those without ground truth or predictions.
        cls: (n,) class of each prediction, index in `classes`.
        score: (n,) its score, finite.
        video: (n,) its video, index in `videos`.
        order: (n,) its place in the input.
        hit: (n, T) whether it met ground truth that no better prediction had met.
        n_truth: (V, C) how much ground truth there is to be found.
        ignored: (n, T) predictions that count neither as right nor as wrong; None where there are none.

    Raises:
        ValueError: if shapes do not fit each other.
    """

    thresholds: tuple[float, ...]
    classes: tuple[tuple[str, str], ...]
    videos: tuple[str, ...]
    cls: npt.NDArray[np.int32]
    score: Floats
    video: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    hit: Bools
    n_truth: npt.NDArray[np.int64]
    ignored: Bools | None = None
    _ranked: bool = field(default=False)

    def __post_init__(self) -> None:
        n, marks = len(self.cls), (len(self.cls), len(self.thresholds))
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
            "score": (self.score, (n,)),
            "video": (self.video, (n,)),
            "order": (self.order, (n,)),
            "hit": (self.hit, marks),
            "n_truth": (self.n_truth, (len(self.videos), len(self.classes))),
            "ignored": (self.hit if self.ignored is None else self.ignored, marks),
        }
        for name, (array, expected) in shapes.items():
            if array.shape != expected:
                raise ValueError(f"{name} should be {expected}, not {array.shape}")

    def __len__(self) -> int:
        return len(self.cls)

    def __repr__(self) -> str:
        return (
            f"Matches({len(self):,} predictions, {int(self.n_truth.sum()):,} truths, {len(self.classes)} classes, "
            f"{len(self.videos)} videos, thresholds {self.thresholds})"
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the classes, in their order."""
        return tuple(dict.fromkeys(kind for kind, _ in self.classes))

    def ranked(self) -> Matches:
        """The same predictions by class, falling score, video and place in the input."""
        if self._ranked:
            return self
        # The last key counts first.
        order = np.lexsort((self.order, self.video, -self.score, self.cls))
        return replace(self.take(order), _ranked=True)

    def take(self, rows: npt.NDArray[Any]) -> Matches:
        """Some of the predictions, beside all of the ground truth.

        Args:
            rows: indices or (n,) bool.
        """
        return replace(
            self,
            cls=self.cls[rows],
            score=self.score[rows],
            video=self.video[rows],
            order=self.order[rows],
            hit=self.hit[rows],
            ignored=None if self.ignored is None else self.ignored[rows],
            # A mask keeps the order, indices may not.
            _ranked=self._ranked and rows.dtype == np.bool_,
        )

    def merge(self, other: Matches) -> Matches:
        """The predictions and the ground truth of both; the parts of a whole give the whole.

        Videos and classes that only one part knows are appended in the order in which they come. Where a
        video lies in both, `order` must tell its predictions apart.

        Raises:
            UsageError: if the thresholds differ.
        """
        if self.thresholds != other.thresholds:
            raise UsageError(
                f"matches at thresholds {self.thresholds} and {other.thresholds} cannot be merged; "
                "match both at the same thresholds"
            )
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        videos = tuple(dict.fromkeys((*self.videos, *other.videos)))
        n_truth = np.zeros((len(videos), len(classes)), dtype=np.int64)
        parts = []
        of_class, of_video = ({name: at for at, name in enumerate(names)} for names in (classes, videos))
        for part in (self, other):
            video = np.array([of_video[v] for v in part.videos], dtype=np.int32)
            cls = np.array([of_class[c] for c in part.classes], dtype=np.int32)
            n_truth[np.ix_(video, cls)] += part.n_truth
            parts.append((cls[part.cls], video[part.video]))
        ignored = None
        if self.ignored is not None or other.ignored is not None:
            ignored = np.concatenate([_marks(self), _marks(other)])
        return Matches(
            self.thresholds,
            classes,
            videos,
            np.concatenate([cls for cls, _ in parts]),
            np.concatenate([self.score, other.score]),
            np.concatenate([video for _, video in parts]),
            np.concatenate([self.order, other.order]),
            np.concatenate([self.hit, other.hit]),
            n_truth,
            ignored,
        )


def compute_average_precisions(
    matches: Matches,
    config: DetectionConfig,
    weights: npt.NDArray[Any] | None = None,
    *,
    rule: Rule | None = None,
) -> Floats:
    """Average precision of each class at each threshold, in [0, 1]; higher is better.

    Args:
        matches: in any order.
        config: with the rule (`ap`) and what holds for classes without ground truth (`empty_classes`).
        weights: (V,) or (draws, V) how often each video occurs, whole numbers of 0 and more (default:
            once). A video that occurs twice is as good as two equal videos, one with 0 as good as absent.
            Of predictions with equal scores each stands beside its own copy, where a list of two such videos
            would rank all of the first before the second: without ties the two are the same.
        rule: another rule than the config's.

    Returns:
        (C, T), or (draws, C, T) where there are resamples; NaN where a class has no ground truth and
        `empty_classes` is `skip`.

    Source: Singh et al., TPAMI 2022, section 5.1; by `reference()`, `compute_class_ap` of 3D-RetinaNet.
    """
    ranked = matches.ranked()
    drawn = np.ones((1, len(matches.videos)), dtype=np.int32) if weights is None else np.atleast_2d(weights)
    if drawn.shape[1] != len(matches.videos):
        raise ValueError(f"{len(matches.videos)} videos need as many weights, not {drawn.shape}")
    n_truth = drawn.astype(np.int64) @ ranked.n_truth
    starts = np.searchsorted(ranked.cls, np.arange(len(ranked.classes) + 1))
    values = resample_average_precision(
        starts,
        ranked.video,
        ranked.hit,
        n_truth,
        drawn.astype(np.int32),
        rule or config.ap,
        ignored=ranked.ignored,
    )
    if config.empty_classes == "skip":
        values[n_truth == 0] = np.nan
    return values[0] if weights is None or np.ndim(weights) == 1 else values


def compute_pr_curve(matches: Matches, kind: str, label: str, threshold: float) -> PrecisionRecall:
    """Precision and recall after each prediction of a class, by falling score.

    Raises:
        UsageError: if there is no such class or threshold.
    """
    if (kind, label) not in matches.classes or threshold not in matches.thresholds:
        raise UsageError(
            f"no matches of {kind} '{label}' at {threshold}; there are the kinds "
            f"{', '.join(matches.kinds)} at {', '.join(map(str, matches.thresholds))}"
        )
    which, column = matches.classes.index((kind, label)), matches.thresholds.index(threshold)
    rows = matches.take(matches.cls == which).ranked()
    counted = ~_marks(rows)[:, column]
    return compute_precision_recall(
        rows.hit[counted, column], rows.score[counted], int(matches.n_truth[:, which].sum())
    )


def _marks(matches: Matches) -> Bools:
    """Which predictions are ignored, also where none are."""
    return np.zeros(matches.hit.shape, dtype=np.bool_) if matches.ignored is None else matches.ignored
