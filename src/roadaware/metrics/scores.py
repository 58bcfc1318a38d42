"""SampleScores: the scores of samples beside their ground truth; and several fits of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.formats.score_tables import TOLERANCE

Texts = npt.NDArray[np.str_]

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class SampleScores:
    """Scores and ground truth of samples, row by row; parts can be merged in any order.

    Args:
        scores: (n, k) in [0, 1]: one probability of class 1 (k = 1), or one score per class.
        truth: (n,) true classes, in {0, 1} for k = 1, in [0, k) otherwise.
        pedestrian: (n,) who; names are unique over videos.
        video: (n,) the video of each sample, or None where it is not known.
        tte_frames: (n,) frames from the end of the observation to the event, or None.
        order: (n,) place of each sample in the order of extraction; row order where not given.

    Raises:
        InputError: on construction, if lengths differ, a score is NaN or leaves [0, 1], a class is
            outside the scores, an order is repeated, or a pedestrian is in two videos.
    """

    scores: Floats
    truth: Ints
    pedestrian: Texts
    video: Texts | None = None
    tte_frames: Ints | None = None
    order: Ints | None = None

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        scores = scores[:, None] if scores.ndim == 1 else scores
        n = len(scores)
        if scores.ndim != 2 or scores.shape[1] == 0:
            raise InputError(f"scores should be (samples, classes); they have the shape {scores.shape}")
        columns: dict[str, Any] = {
            "scores": scores,
            "truth": _integers("truth", self.truth),
            "pedestrian": np.array(self.pedestrian, dtype=np.str_),
            "video": None if self.video is None else np.array(self.video, dtype=np.str_),
            "tte_frames": None if self.tte_frames is None else _integers("tte_frames", self.tte_frames),
            "order": np.arange(n) if self.order is None else _integers("order", self.order),
        }
        for name, column in columns.items():
            if column is not None and (len(column) != n or (name != "scores" and column.ndim != 1)):
                raise InputError(f"{n} rows of scores need {n} values of {name}, not {column.shape}")
            if column is not None:
                # A frozen dataclass does not freeze its arrays.
                column.setflags(write=False)
            object.__setattr__(self, name, column)
        check_scores(scores)
        self._check_rows()

    def _check_rows(self) -> None:
        size = max(2, self.n_classes)
        outside = np.flatnonzero((self.truth < 0) | (self.truth >= size))
        if len(outside):
            raise InputError(
                f"truth should lie in 0..{size - 1} for {self.scores.shape[1]} scores a sample; "
                f"{len(outside)} rows do not, first {_rows(outside)} with "
                f"{self.truth[outside[:_SHOWN]].tolist()}"
            )
        places, counts = np.unique(self.places, return_counts=True)
        if len(places) < len(self):
            repeated = places[counts > 1][:_SHOWN].tolist()
            raise InputError(
                f"the places {repeated} in the order of extraction occur more than once",
                hint="were the same samples merged twice? Parts need orders of their own",
            )
        if self.video is not None:
            self._check_videos(self.video)

    def _check_videos(self, video: Texts) -> None:
        names, person = np.unique(self.pedestrian, return_inverse=True)
        _, place = np.unique(video, return_inverse=True)
        low, high = np.full(len(names), len(video)), np.full(len(names), -1)
        np.minimum.at(low, person, place)
        np.maximum.at(high, person, place)
        if (low != high).any():
            raise InputError(
                f"pedestrians {names[low != high][:_SHOWN].tolist()} occur in more than one video",
                hint="make names unique, for example by the video's name in front",
            )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def n_classes(self) -> int:
        """Number of classes: 2 for one probability a sample."""
        return max(2, int(self.scores.shape[1]))

    @property
    def places(self) -> Ints:
        """(n,) place of each sample in the order of extraction."""
        if self.order is None:
            raise TypeError("order is set on construction")
        return self.order

    def take(self, rows: npt.NDArray[Any]) -> SampleScores:
        """The given rows (indices or a mask), in that order."""
        return SampleScores(
            self.scores[rows],
            self.truth[rows],
            self.pedestrian[rows],
            None if self.video is None else self.video[rows],
            None if self.tte_frames is None else self.tte_frames[rows],
            self.places[rows],
        )

    def merge(self, other: SampleScores) -> SampleScores:
        """Both parts in the order of extraction: any split of a set merges to the whole, exactly.

        Raises:
            InputError: if the parts differ in classes or known columns, or share a sample.
        """
        for name, mine, theirs in (
            ("numbers of scores", self.scores.shape[1], other.scores.shape[1]),
            ("video", self.video is None, other.video is None),
            ("tte_frames", self.tte_frames is None, other.tte_frames is None),
        ):
            if mine != theirs:
                raise InputError(f"the parts differ in {name}; both need the same columns")
        joined = SampleScores(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.truth, other.truth]),
            np.concatenate([self.pedestrian, other.pedestrian]),
            _concat_optional(self.video, other.video),
            _concat_optional(self.tte_frames, other.tte_frames),
            np.concatenate([self.places, other.places]),
        )
        return joined.take(np.argsort(joined.places))


def check_scores(scores: Floats) -> None:
    """Refuse scores that are NaN or leave [0, 1].

    Args:
        scores: (n, k).

    Raises:
        InputError: naming the first rows, counted from 0.
    """
    wrong = np.flatnonzero(~((scores >= 0) & (scores <= 1)).all(axis=1))
    if len(wrong):
        raise InputError(
            f"scores should lie in [0, 1]; {len(wrong)} rows do not, "
            f"first {_rows(wrong)} with {scores[wrong[:_SHOWN]].tolist()}",
            hint="give probabilities (a sigmoid or softmax of the model's output), none missing",
        )


def clip_scores(scores: Floats) -> tuple[Floats, int]:
    """Scores that leave [0, 1] by at most 1e-6 brought back, and how many these were.

    Rounding in a file or in single precision puts a probability just outside; more than that is an error.

    Args:
        scores: (n, k).

    Raises:
        InputError: naming the first rows, counted from 0, if a score is NaN or further outside.

    >>> clip_scores(np.array([[1.0000005], [0.25]]))
    (array([[1.  ],
           [0.25]]), 1)
    """
    inside = np.clip(scores, 0.0, 1.0)
    near = np.where(np.abs(scores - inside) <= TOLERANCE, inside, scores)
    check_scores(near)
    return near, int((near != scores).sum())


def predict_labels(scores: Floats) -> Ints:
    """The class that each row of scores decides for.

    Args:
        scores: (n, k). One column: class 1 above 0.5, and exactly 0.5 is class 0, as numpy rounds.
            Several: the largest, the first of equals.

    Source: `action_evaluate.py`, released with Rasouli and Kotseruba, IV 2024.

    >>> predict_labels(np.array([[0.5], [0.51]]))
    array([0, 1])
    """
    if scores.shape[1] == 1:
        rounded: Ints = np.round(scores[:, 0]).astype(np.int64)
        return rounded
    largest: Ints = np.argmax(scores, axis=1)
    return largest


def compute_confidences(state: SampleScores) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n,) the probability of the class that each row decides for, and whether that is the ground-truth one.

    One probability p: max(p, 1 - p). Several: the largest.

    Source: Gesnouin et al., IV 2022, section II-C.

    >>> state = SampleScores(np.array([0.25, 0.75]), np.array([0, 0]), ["a", "b"])
    >>> compute_confidences(state)
    (array([0.75, 0.75]), array([ True, False]))
    """
    decided = predict_labels(state.scores)
    single = state.scores.shape[1] == 1
    both = np.hstack([1 - state.scores, state.scores]) if single else state.scores
    return both[np.arange(len(state)), decided], decided == state.truth


def group_labels(labels: npt.ArrayLike, n: int) -> npt.NDArray[np.object_]:
    """(n,) the label of each sample's group, None where it is in none.

    Raises:
        InputError: if there is not one label per sample.
    """
    found = np.array(labels, dtype=object)
    if found.shape != (n,):
        raise InputError(f"{n} samples need {n} labels of groups; got {found.shape}")
    return found


def _integers(name: str, values: npt.ArrayLike) -> Ints:
    given = np.array(values)
    exact = given.dtype.kind in "iub" or not given.size
    if given.dtype.kind == "f" and np.isfinite(given).all():
        exact = bool((given % 1 == 0).all())
    if not exact:
        raise InputError(f"{name} should be whole numbers, none missing; got {given.dtype}")
    whole: Ints = given.astype(np.int64)
    return whole


def _concat_optional(
    mine: npt.NDArray[Any] | None, theirs: npt.NDArray[Any] | None
) -> npt.NDArray[Any] | None:
    return None if mine is None or theirs is None else np.concatenate([mine, theirs])


def _rows(rows: Ints) -> str:
    return "rows " + ", ".join(str(int(row)) for row in rows[:_SHOWN])
