"""Which predicted boxes and tubes are right at each threshold, as arrays that merge and give average precision."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import Pairs, compute_tube_overlaps
from roadaware.io.parallel import WorkerPool
from roadaware.metrics.detection.config import DetectionConfig, Rule, list_box_kinds, list_tube_kinds
from roadaware.metrics.detection.kernels import (
    assign_tubes,
    compute_frame_overlaps,
    find_nearest_tubes,
    keep_top_per_frame,
    match_class,
    sort_keys,
)
from roadaware.metrics.detection.rows import (
    AGENTNESS,
    Class,
    Frames,
    LabelledTubes,
    PredictedBoxes,
    TrueBoxes,
    collect_frames,
    extract_labelled_tubes,
    extract_predicted_boxes,
    extract_true_boxes,
    list_tube_classes,
    scale_to_common_size,
)
from roadaware.scenes.composites import NOTE, product_of_marginals
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.average_precision import (
    PrecisionRecall,
    compute_precision_recall,
    resample_average_precision,
)

_PART_STEPS, _PART_ROWS = 1 << 31, 1 << 22
"""Of resamples that several workers share: rows times weightings of a part, which take 2 s, and rows, some 60 MB."""


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
    pool: WorkerPool | None = None,
) -> Floats:
    """Average precision of each class at each threshold, in [0, 1]; higher is better.

    Args:
        matches: in any order.
        config: with the rule (`ap`) and what holds for classes without ground truth (`empty_classes`).
        weights: (V,) or (resamples, V) how often each video occurs, whole numbers of 0 and more (default:
            once). A video that occurs twice is as good as two equal videos, one with 0 as good as absent.
            Of predictions with equal scores each stands beside its own copy, where a list of two such videos
            would rank all of the first before the second: without ties the two are the same.
        rule: another rule than the config's.
        pool: who walks over the classes where that takes seconds; this process where None.

    Returns:
        (C, T), or (resamples, C, T) where there are resamples; NaN where a class has no ground truth and
        `empty_classes` is `skip`.

    Source: Singh et al., TPAMI 2022, section 5.1; by `reference()`, `compute_class_ap` of 3D-RetinaNet.
    """
    ranked = matches.ranked()
    drawn = np.ones((1, len(matches.videos)), dtype=np.int32) if weights is None else np.atleast_2d(weights)
    if drawn.shape[1] != len(matches.videos):
        raise ValueError(f"{len(matches.videos)} videos need as many weights, not {drawn.shape}")
    n_truth = drawn.astype(np.int64) @ ranked.n_truth
    starts = np.searchsorted(ranked.cls, np.arange(len(ranked.classes) + 1))
    work = partial(_resample_classes, drawn.astype(np.int32, copy=False), rule or config.ap)
    parts = [
        _Classes.cut(ranked, starts[first : last + 1], n_truth[:, first:last])
        for first, last in _group_classes(starts, len(drawn))
    ]
    if pool is None or len(parts) < 2:
        found = [work(part) for part in parts]
    else:
        with closing(pool.map(work, parts, in_order=True)) as results:
            found = [each.require("resamples") for each in results]
    values = np.concatenate(found, axis=1)
    if config.empty_classes == "skip":
        values[n_truth == 0] = np.nan
    return values[0] if weights is None or np.ndim(weights) == 1 else values


class _Classes(NamedTuple):
    """The ranked predictions of some classes: a part of the work on resamples."""

    starts: npt.NDArray[np.int64]
    video: npt.NDArray[np.int32]
    hit: Bools
    ignored: Bools | None
    n_truth: npt.NDArray[np.int64]

    @classmethod
    def cut(cls, ranked: Matches, starts: npt.NDArray[np.int64], n_truth: npt.NDArray[np.int64]) -> Self:
        """Those between the first and the last of the (c + 1,) starts; views, no copies."""
        rows = slice(starts[0], starts[-1])
        ignored = None if ranked.ignored is None else ranked.ignored[rows]
        return cls(starts - starts[0], ranked.video[rows], ranked.hit[rows], ignored, n_truth)


def _group_classes(starts: npt.NDArray[np.int64], resamples: int) -> list[tuple[int, int]]:
    """First and last + 1 of the classes of each part: seconds of work each, and not too many rows to be sent."""
    most = max(1, min(_PART_ROWS, _PART_STEPS // max(1, resamples)))
    groups, first = list[tuple[int, int]](), 0
    for c in range(1, len(starts)):
        if c == len(starts) - 1 or starts[c + 1] - starts[first] > most:
            groups.append((first, c))
            first = c
    return groups or [(0, 0)]


def _resample_classes(weights: npt.NDArray[np.int32], rule: Rule, part: _Classes) -> Floats:
    """(resamples, c, T) average precision of some classes."""
    starts, video, hit, ignored, n_truth = part
    return resample_average_precision(starts, video, hit, n_truth, weights, rule, ignored=ignored)


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


_ASKED, _ABSORBS = 1, 2
_ABSORBED = -2


def match_frames(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    thresholds: Sequence[float],
    kinds: Sequence[str] | None = None,
) -> Matches:
    """Match the predicted boxes of each class with the ground-truth ones of their frame, best score first.

    A prediction takes, of the ground-truth boxes of its class and frame that no better prediction took, the one it
    overlaps most, the first of equals; it is a hit where that IoU is at least the threshold. All annotated
    frames are judged, also those without ground truth. Every ground-truth box is one of agentness; to other kinds, a box
    without a label of the kind is background. Predictions on ground-truth boxes with `ignore` count neither as right
    nor as wrong. Equal scores are ranked by video, frame and row.

    Args:
        predictions: boxes with `score` (agentness) and dense `scores`, or with scored `labels`. Those in
            unknown videos, unknown frames and frames that were not annotated are left out.
        scenes: boxes with labels, and which frames were annotated.
        config: `frame_pixel_offset`, `frame_size_px`, `max_per_class`, `min_score`,
            `floor_when_product`, `composite_scores` and `interpolated_boxes` hold here.
        thresholds: (T,) each in (0, 1].
        kinds: which kinds of labels (default: those that both sides know), see `kinds.list_box_kinds`.

    Raises:
        UsageError: if a threshold or a kind is not known.
        InputError: if predictions and ground truth do not fit each other; see `extract_predicted_boxes`.

    Source: the code released with Singh et al., TPAMI 2022; section 5.1 there.
    """
    return prepare_frames(predictions, scenes, config, kinds).matches(thresholds)


@dataclass(frozen=True, eq=False)
class JudgedFrames:
    """Ground truth and predictions of the judged frames, and how much the boxes of a frame overlap.

    Args:
        classes: (C,) kind and label.
        frames: the frames of the ground truth.
        truth: its boxes.
        predictions: the predicted boxes.
        pair_start: (n + 1,) where the overlaps of each prediction start.
        overlap: IoU of each prediction with each ground-truth box of its frame.
        config: how they are judged.
        outside: (m,) ground-truth boxes that are not asked for: predictions on them count neither way.
        outside_predictions: (n,) predictions that count only where they meet what is asked for.
    """

    classes: tuple[Class, ...]
    frames: Frames
    truth: TrueBoxes
    predictions: PredictedBoxes
    pair_start: Ints
    overlap: Floats
    config: DetectionConfig
    outside: Bools
    outside_predictions: Bools

    def matches(self, thresholds: Sequence[float]) -> Matches:
        """Which predictions meet ground truth at each threshold.

        Raises:
            UsageError: if a threshold lies outside (0, 1].
        """
        absorbing = bool(self.truth.ignore.any() or self.outside.any() or self.outside_predictions.any())
        predictions, scores, hits, absorbed, sizes = [], [], [], [], []
        for ranked, score, met in self.met(thresholds):
            predictions.append(ranked)
            scores.append(score)
            hits.append(met >= 0)
            sizes.append(len(ranked))
            if absorbing:
                absorbed.append((met == _ABSORBED) | ((met < 0) & self.outside_predictions[ranked][:, None]))
        place = np.concatenate([*predictions, np.zeros(0, dtype=np.int64)])
        marks = np.zeros((0, len(thresholds)), dtype=np.bool_)
        return Matches(
            tuple(float(threshold) for threshold in thresholds),
            self.classes,
            self.frames.videos,
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            np.concatenate([*scores, np.zeros(0)]),
            self.frames.judged_video[self.predictions.frame][place],
            place,
            np.concatenate([*hits, marks]),
            self._n_truth(),
            np.concatenate([*absorbed, marks]) if absorbing else None,
            _ranked=True,
        )

    def met(self, thresholds: Sequence[float]) -> Iterator[tuple[Ints, Floats, npt.NDArray[np.int32]]]:
        """For each class its predictions by falling score, their scores, and the ground-truth box they meet.

        Args:
            thresholds: (T,) each in (0, 1].

        Yields:
            (k,) predictions, (k,) scores, (k, T) place of the ground-truth box, negative where there is none.
        """
        levels = np.array(thresholds, dtype=np.float64)
        if not len(levels) or not ((levels > 0) & (levels <= 1)).all():
            raise UsageError(f"thresholds of overlap lie in (0, 1]; got {list(thresholds) or 'none'}")
        resting = np.where(self.truth.ignore, _ABSORBS, 0).astype(np.uint8)
        asked = np.where(self.truth.ignore | self.outside, _ABSORBS, _ASKED).astype(np.uint8)
        role, used = resting.copy(), np.zeros((len(levels), len(resting)), dtype=np.uint8)
        for c, members in enumerate(self.truth.members):
            ranked, score = self._ranked(c)
            role[members] = asked[members]
            pairs = (self.truth.start, self.pair_start, self.overlap)
            yield ranked, score, match_class(ranked, self.predictions.frame, *pairs, role, used, levels)
            role[members] = resting[members]
            used[:, members] = 0

    def nearest(self, c: int, predictions: Ints) -> Floats:
        """(k,) IoU of some predictions with the ground-truth box of a class that each overlaps most, 0 where none is."""
        has = np.zeros(len(self.truth.box), dtype=np.bool_)
        has[self.truth.members[c]] = True
        first = self.truth.start[self.predictions.frame]
        sizes = np.diff(self.pair_start)
        of = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(self.overlap)) - np.repeat(self.pair_start[:-1] - first, sizes)
        best = np.zeros(len(sizes))
        np.maximum.at(best, of[has[place]], self.overlap[has[place]])
        return best[predictions]

    def _ranked(self, c: int) -> tuple[Ints, Floats]:
        """The predictions of a class that are judged, by falling score, and their scores."""
        if c not in self.predictions.columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        places, score = self.predictions.columns[c]
        config = self.config
        floor = config.min_score
        if config.composite_scores == "product" and not config.floor_when_product:
            floor = None
        if floor is not None:
            # Compared in the precision of the scores, as the published code does.
            kept = np.flatnonzero(score > floor)
            score, places = score[kept], kept if places is None else places[kept]
        values = np.ascontiguousarray(score, dtype=np.float64)
        order = sort_descending(values)
        ranked, values = order if places is None else places[order], values[order]
        if config.max_per_class is not None and self._crowded(config.max_per_class):
            kept = keep_top_per_frame(
                ranked, self.predictions.frame, len(self.truth.start) - 1, config.max_per_class
            )
            ranked, values = ranked[kept], values[kept]
        return ranked, values

    def _crowded(self, most: int) -> bool:
        """Whether any frame has more predictions than are judged."""
        return bool(len(self.predictions.frame) and np.bincount(self.predictions.frame).max() > most)

    def _n_truth(self) -> npt.NDArray[np.int64]:
        """(V, C) how many boxes are asked for."""
        wanted = ~(self.truth.ignore | self.outside)
        video = np.repeat(self.frames.judged_video, np.diff(self.truth.start))
        counts = np.zeros((len(self.frames.videos), len(self.classes)), dtype=np.int64)
        for c, members in enumerate(self.truth.members):
            counts[:, c] = np.bincount(video[members[wanted[members]]], minlength=len(counts))
        return counts

    def within(self, truth: Bools, predictions: Bools) -> JudgedFrames:
        """The same with a part of the ground truth counted, and a part of the predictions counted as false positives.

        Args:
            truth: (m,) the ground-truth boxes that are asked for.
            predictions: (n,) the predictions that count as wrong where they meet nothing.
        """
        return replace(self, outside=~truth, outside_predictions=~predictions)

    @property
    def left_out(self) -> dict[str, int]:
        """What was not judged to how often."""
        return {f"predicted boxes {what}": n for what, n in self.predictions.left_out.items()}

    def notes(self) -> tuple[str, ...]:
        """Further remarks on what is not judged or missing, in words."""
        made_up = self.predictions.interpolated
        said = [f"{made_up:,} interpolated boxes are no predictions of frames"] if made_up else []
        silent = [f"{kind} '{label}'" for c, (kind, label) in enumerate(self.classes) if self._unpredicted(c)]
        if silent and len(self.predictions.row):
            said.append(
                f"the predictions have no scores of {len(silent)} labels, such as {', '.join(silent[:3])}"
            )
        return tuple(said)

    def _unpredicted(self, c: int) -> bool:
        return c not in self.predictions.columns


def prepare_frames(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    kinds: Sequence[str] | None = None,
) -> JudgedFrames:
    """Bring ground truth and predictions to the same classes, frames and pixels; arguments as `match_frames`."""
    classes = list_tube_classes(scenes, list_box_kinds(predictions, scenes) if kinds is None else kinds)
    if config.composite_scores == "product":
        predictions = add_product_scores(predictions, scenes)
    frames = collect_frames(scenes)
    predictions, scenes, scale = scale_to_common_size(predictions, scenes, frames.videos, config)
    truth = extract_true_boxes(scenes, classes, frames, scale.truth)
    predicted = extract_predicted_boxes(
        predictions, classes, frames, scale.predictions, interpolated=config.interpolated_boxes
    )
    start, overlap = compute_frame_overlaps(
        predicted.edges,
        predicted.frame,
        truth.edges,
        truth.start,
        float(config.frame_pixel_offset),
        config.numbers == "single",
    )
    none = np.zeros(len(truth.box), dtype=np.bool_), np.zeros(len(predicted.row), dtype=np.bool_)
    return JudgedFrames(classes, frames, truth, predicted, start, overlap, config, *none)


def add_product_scores(predictions: Predictions, scenes: Scenes) -> Predictions:
    """The predictions with the products of their parts as scores of composites, by the lists of either side.

    Raises:
        InputError: if no side says what composites are made of, or the scores of a part are missing.
    """
    own, given = predictions.meta, scenes.meta
    if own.notes.get(NOTE) or not given.notes.get(NOTE):
        return product_of_marginals(predictions)
    parts = set(given.notes[NOTE]) | {k for of in given.composites.values() for k in of}
    differ = sorted(k for k in parts if own.vocabularies.get(k) != given.vocabularies.get(k))
    if differ:
        raise InputError(
            f"the truth lists the parts of composites; the predictions' labels of {', '.join(differ)} are others",
            hint="give the lists of children in the `meta.notes` of the predictions",
        )
    return product_of_marginals(predictions, children=given.notes[NOTE], composites=given.composites or None)


def sort_descending(score: Floats) -> Ints:
    """(n,) places by falling score, equal scores in their order; as a stable sort, several times as fast.

    Args:
        score: (n,) finite numbers.
    """
    bits = (score + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
    sign = np.uint64(1) << np.uint64(63)
    # Bits of doubles rise with their size: inverted, positive ones come first and fall; negative ones, as
    # they are, come behind them with the smallest size first.
    return sort_keys(np.where(bits & sign, bits, ~(bits | sign)))


Overlap = Literal["stiou", "siou", "tiou"]

_LOG = logging.getLogger("roadaware")


@dataclass(frozen=True, eq=False)
class JudgedTubes:
    """Predictions and ground truth of the same classes and videos, and how much their extents overlap.

    Args:
        classes: (C,) kind and label, by name.
        videos: (V,) the videos of the ground truth.
        predictions: n labels of predicted tubes.
        truth: labels of ground-truth tubes that have boxes, and not only such as are to ignore.
        pairs: the pairs of predicted and ground-truth extents that meet in time.
        overlap: (p,) how much the two of each pair overlap.
        absorbed: (predicted extents,) how much each overlaps the ground-truth tube to ignore that it overlaps most.
        boxless: ground-truth tubes that were left out because they have no box.
    """

    classes: tuple[Class, ...]
    videos: tuple[str, ...]
    predictions: LabelledTubes
    truth: LabelledTubes
    pairs: Pairs
    overlap: Floats
    absorbed: Floats
    boxless: int

    def matches(self, thresholds: Sequence[float]) -> Matches:
        """Which predictions are hits at each threshold."""
        taken = _taken(self, thresholds)
        n_truth = np.zeros((len(self.videos), len(self.classes)), dtype=np.int64)
        np.add.at(n_truth, (self.truth.video, self.truth.cls), 1)
        ignored = None
        if self.absorbed.any():
            ignored = self.on_ignored(thresholds) & (taken < 0)
        return Matches(
            tuple(float(threshold) for threshold in thresholds),
            self.classes,
            self.videos,
            self.predictions.cls.astype(np.int32),
            self.predictions.score,
            self.predictions.video.astype(np.int32),
            np.arange(len(self.predictions), dtype=np.int64),
            taken >= 0,
            n_truth,
            ignored,
        )

    def on_ignored(self, thresholds: Sequence[float]) -> Bools:
        """(n, T) whether each prediction overlaps an ignored tube by at least each threshold."""
        enough: Bools = self.absorbed[self.predictions.extent][:, None] >= np.array(
            thresholds, dtype=np.float64
        )
        return enough

    @property
    def left_out(self) -> dict[str, int]:
        """What was not judged to how often."""
        found = {
            "labels of predicted tubes in videos that the truth does not have": self.predictions.left_out,
            "labels of true tubes without a box": self.boxless,
        }
        return {what: n for what, n in found.items() if n}

    @property
    def ranked(self) -> Ints:
        """The predictions by falling score; equal scores by video, then by place in the table."""
        return np.lexsort((np.arange(len(self.predictions)), self.predictions.video, -self.predictions.score))

    @property
    def held(self) -> tuple[Ints, Ints]:
        """Where the ground-truth tubes of each extent begin, and the ground-truth tubes by extent."""
        by_extent = np.argsort(self.truth.extent, kind="stable")
        edges = np.arange(len(self.truth.tubes) + 1)
        return np.searchsorted(self.truth.extent[by_extent], edges), by_extent

    def arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints]:
        """Pairs and ground truth as arrays for the kernels."""
        return self.pairs.offsets, self.pairs.second, self.overlap, *self.held


def match_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    thresholds: Sequence[float],
    overlap: Overlap = "stiou",
    kinds: Sequence[str] | None = None,
) -> Matches:
    """Match the predicted tubes of each class with the ground-truth ones, best score first.

    A prediction takes, of the ground-truth tubes of its class and video that no better prediction took, the one it
    overlaps most; it is a hit where that overlap is at least the threshold. The overlap is `tiou`, that
    of the times; `siou`, the mean of the boxes' over the frames where both tubes have one; or `stiou`,
    the product of the two. Where `config.tube_time` is `endpoints`, times are intervals from first to
    last frame as long as the published code finds the boxes it looks for, which it does unless a tube
    has a hole in the common interval; there the sets of frames are compared, as `frames` always does. A ground-truth
    tube whose boxes are all marked `ignore` is not asked for, and a prediction of whatever class that overlaps
    it by the threshold and is no hit counts neither as right nor as wrong.

    Args:
        predictions: labelled tubes with scores; tubes without parent and kind are the predictions of agentness.
            Predictions in videos that `scenes` lacks are left out and counted in the log.
        scenes: with tubes of each kind. Ground-truth tubes without a box are left out and counted in the log.
        config: `tube_time`, `video_pixel_offset`, `frame_size_px` and `min_tube_score` hold here.
        thresholds: (T,) each in (0, 1].
        overlap: what is compared with the thresholds.
        kinds: which kinds of labels (default: those that both sides know), see `kinds.list_tube_kinds`.

    Raises:
        UsageError: if the overlap, a threshold or a kind is not known.
        InputError: if tubes contradict themselves; see `extract_labelled_tubes`.

    Source: the code released with Singh et al., TPAMI 2022; section 5.2 there.
    """
    wrong = [threshold for threshold in thresholds if not 0 < threshold <= 1]
    if wrong or not len(thresholds):
        raise UsageError(f"thresholds of overlap lie in (0, 1]; got {wrong or 'none'}")
    return prepare_tubes(predictions, scenes, config, overlap, kinds).matches(thresholds)


def build_tube_table(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    overlap: Overlap = "stiou",
    kinds: Sequence[str] | None = None,
    *,
    threshold: float = 0.5,
) -> pl.DataFrame:
    """One row per predicted tube and label: the ground-truth tube that it overlaps most, and its match.

    Args:
        predictions: as in `match_tubes`, like the next four.
        scenes: ground truth.
        config: what the metric leaves open.
        overlap: what counts as overlap.
        kinds: which kinds of labels.
        threshold: of `matched`.

    Returns:
        `tube`, `video`, `kind`, `label`, `score`; `truth`, the ground-truth tube of the same label with the
        greatest overlap, taken or not, with `overlap`, `temporal` and `spatial`; `matched`, the ground-truth tube
        that the prediction took at the threshold; `ignored`, whether it counts neither as right nor as wrong
        there; and `near_truth`, `near_label`, `near_overlap`,
        `near_temporal`, `near_spatial`, the same as `truth` whatever the label of that kind is. Null where
        there is none.

    Raises:
        UsageError: as `match_tubes` does.
        InputError: as `match_tubes` does.
    """
    judged = prepare_tubes(predictions, scenes, config, overlap, kinds)
    predicted, names = judged.predictions, np.array(judged.videos, dtype=object)
    kind, label = (np.array([named[i] for named in judged.classes], dtype=object) for i in (0, 1))
    table = pl.DataFrame(
        {
            "tube": predicted.tube,
            "video": pl.Series(names[predicted.video].tolist(), dtype=pl.String),
            "kind": pl.Series(kind[predicted.cls].tolist(), dtype=pl.String),
            "label": pl.Series(label[predicted.cls].tolist(), dtype=pl.String),
            "score": predicted.score,
        }
    )
    taken = _taken(judged, (threshold,))[:, 0]
    ignored = (taken < 0) & judged.on_ignored((threshold,))[:, 0]
    nearest = _nearest(judged, np.arange(len(judged.classes)))
    _, kind_of = np.unique(kind.astype(str), return_inverse=True)
    near = _nearest(judged, kind_of).rename(lambda c: f"near_{c}")
    near_label = pl.Series(label[judged.truth.cls].tolist(), dtype=pl.String)
    at = near["near_at"].cast(pl.UInt32)
    return pl.concat(
        [
            table,
            nearest.drop("at"),
            pl.DataFrame({"matched": _looked_up(judged.truth.tube, taken), "ignored": ignored}),
            near.drop("near_at").insert_column(1, near_label.gather(at).alias("near_label")),
        ],
        how="horizontal",
    )


def prepare_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    overlap: Overlap,
    kinds: Sequence[str] | None,
) -> JudgedTubes:
    """Bring ground truth and predictions to the same classes, videos and pixels, and compare their extents."""
    if overlap not in get_args(Overlap):
        raise UsageError(f"overlap should be one of {', '.join(get_args(Overlap))}; got {overlap!r}")
    classes = list_tube_classes(scenes, list_tube_kinds(predictions, scenes) if kinds is None else kinds)
    videos = tuple(scenes.videos["video"].cast(pl.String).to_list())
    predictions, scenes, scale = scale_to_common_size(predictions, scenes, videos, config)
    truth, ignored, boxless = _select_true_tubes(scenes, classes, videos, scale.truth)
    predicted = extract_labelled_tubes(predictions, classes, videos, scale.predictions)
    if config.min_tube_score is not None:
        predicted = predicted.only(predicted.score > config.min_tube_score)
    time = config.tube_time
    pairs = compute_tube_overlaps(
        predicted.tubes,
        truth.tubes,
        # As published: the overlap in time alone looks at no box, so that holes make no difference to it.
        time="endpoints_always" if (time, overlap) == ("endpoints", "tiou") else time,
        pixel_offset=config.video_pixel_offset,
        single=config.numbers == "single",
    )
    values = {"tiou": pairs.temporal, "siou": pairs.spatial, "stiou": pairs.spatial * pairs.temporal}
    absorbed = np.zeros(len(predicted.tubes))
    of_ignored = ignored[pairs.second]
    np.maximum.at(absorbed, pairs.first[of_ignored], values[overlap][of_ignored])
    return JudgedTubes(classes, videos, predicted, truth, pairs, values[overlap], absorbed, boxless)


def _select_true_tubes(
    scenes: Scenes, classes: tuple[Class, ...], videos: tuple[str, ...], scale: Floats
) -> tuple[LabelledTubes, Bools, int]:
    """The ground-truth tubes that are asked for, which extents are to ignore, and how many tubes have no box."""
    whole = (AGENTNESS, AGENTNESS)
    # Who is to be ignored is so for every kind, also for those that say nothing of him.
    besides = "ignore" in scenes.boxes.columns and whole[0] not in {kind for kind, _ in classes}
    truth = extract_labelled_tubes(scenes, (*classes, whole) if besides else classes, videos, scale)
    ignored = truth.ignored
    of_classes = truth.cls < len(classes)
    held = truth.tubes.lengths[truth.extent] > 0
    boxless = int((of_classes & ~held).sum())
    if boxless:
        _LOG.info("%d labels of true tubes without a box are left out", boxless)
    asked = of_classes & held & ~ignored[truth.extent]
    return truth if asked.all() else truth.only(asked), ignored, boxless


def _taken(judged: JudgedTubes, thresholds: Sequence[float]) -> Ints:
    """(n, T) the ground-truth tube that each prediction takes at each threshold, as a row; -1 for none."""
    predictions = judged.predictions
    levels = np.array(thresholds, dtype=np.float64)
    return assign_tubes(
        judged.ranked, predictions.extent, predictions.cls, *judged.arrays(), judged.truth.cls, levels
    )


def _nearest(judged: JudgedTubes, group: npt.NDArray[Any]) -> pl.DataFrame:
    """The ground-truth tube of each prediction's group with the greatest overlap, and its row `at`; null where none is.

    Args:
        judged: predictions and ground truth.
        group: (C,) the group of each class.
    """
    group = group.astype(np.int64)
    predictions, truth = judged.predictions, judged.truth
    pair, at = find_nearest_tubes(
        predictions.extent, group[predictions.cls], *judged.arrays(), group[truth.cls]
    )
    columns = {"overlap": judged.overlap, "temporal": judged.pairs.temporal, "spatial": judged.pairs.spatial}
    return pl.DataFrame(
        {
            "truth": _looked_up(truth.tube, at),
            **{name: _looked_up(values, pair) for name, values in columns.items()},
            "at": _looked_up(np.arange(len(truth)), at),
        }
    )


def _looked_up(values: npt.NDArray[Any], at: Ints) -> pl.Series:
    """The values at some places, null where a place is -1."""
    return pl.Series(values).gather(pl.Series(at, dtype=pl.Int64).replace(-1, None).cast(pl.UInt32))
