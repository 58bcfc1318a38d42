"""Frame-level matches: which predicted boxes overlap ground-truth ones of their class and frame enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig, list_box_kinds
from roadaware.metrics.detection.frame_inputs import (
    ClaimedBoxes,
    Frames,
    TrueBoxes,
    collect_frames,
    extract_predicted_boxes,
    extract_true_boxes,
)
from roadaware.metrics.detection.matches import Matches
from roadaware.metrics.detection.sizes import scale_to_common_size
from roadaware.metrics.detection.tube_rows import Class, list_tube_classes
from roadaware.scenes.composites import NOTE, product_of_marginals
from roadaware.scenes.tables import Predictions, Scenes

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
        claims: the predicted boxes.
        pair_start: (n + 1,) where the overlaps of each prediction start.
        overlap: IoU of each prediction with each ground-truth box of its frame.
        config: how they are judged.
        outside: (m,) ground-truth boxes that are not asked for: predictions on them count neither way.
        outside_claims: (n,) predictions that count only where they meet what is asked for.
    """

    classes: tuple[Class, ...]
    frames: Frames
    truth: TrueBoxes
    claims: ClaimedBoxes
    pair_start: Ints
    overlap: Floats
    config: DetectionConfig
    outside: Bools
    outside_claims: Bools

    def matches(self, thresholds: Sequence[float]) -> Matches:
        """Which predictions meet ground truth at each threshold.

        Raises:
            UsageError: if a threshold lies outside (0, 1].
        """
        absorbing = bool(self.truth.ignore.any() or self.outside.any() or self.outside_claims.any())
        claims, scores, hits, absorbed, sizes = [], [], [], [], []
        for ranked, score, met in self.met(thresholds):
            claims.append(ranked)
            scores.append(score)
            hits.append(met >= 0)
            sizes.append(len(ranked))
            if absorbing:
                absorbed.append((met == _ABSORBED) | ((met < 0) & self.outside_claims[ranked][:, None]))
        place = np.concatenate([*claims, np.zeros(0, dtype=np.int64)])
        marks = np.zeros((0, len(thresholds)), dtype=np.bool_)
        return Matches(
            tuple(float(threshold) for threshold in thresholds),
            self.classes,
            self.frames.videos,
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            np.concatenate([*scores, np.zeros(0)]),
            self.frames.judged_video[self.claims.frame][place],
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
        from roadaware.metrics.detection.frame_kernels import match_class

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
            yield ranked, score, match_class(ranked, self.claims.frame, *pairs, role, used, levels)
            role[members] = resting[members]
            used[:, members] = 0

    def nearest(self, c: int, claims: Ints) -> Floats:
        """(k,) IoU of some predictions with the ground-truth box of a class that each overlaps most, 0 where none is."""
        has = np.zeros(len(self.truth.box), dtype=np.bool_)
        has[self.truth.members[c]] = True
        first = self.truth.start[self.claims.frame]
        sizes = np.diff(self.pair_start)
        of = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(self.overlap)) - np.repeat(self.pair_start[:-1] - first, sizes)
        best = np.zeros(len(sizes))
        np.maximum.at(best, of[has[place]], self.overlap[has[place]])
        return best[claims]

    def _ranked(self, c: int) -> tuple[Ints, Floats]:
        """The predictions of a class that are judged, by falling score, and their scores."""
        from roadaware.metrics.detection.frame_kernels import keep_top_per_frame

        if c not in self.claims.columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        places, score = self.claims.columns[c]
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
                ranked, self.claims.frame, len(self.truth.start) - 1, config.max_per_class
            )
            ranked, values = ranked[kept], values[kept]
        return ranked, values

    def _crowded(self, most: int) -> bool:
        """Whether any frame has more predictions than are judged."""
        return bool(len(self.claims.frame) and np.bincount(self.claims.frame).max() > most)

    def _n_truth(self) -> npt.NDArray[np.int64]:
        """(V, C) how many boxes are asked for."""
        wanted = ~(self.truth.ignore | self.outside)
        video = np.repeat(self.frames.judged_video, np.diff(self.truth.start))
        counts = np.zeros((len(self.frames.videos), len(self.classes)), dtype=np.int64)
        for c, members in enumerate(self.truth.members):
            counts[:, c] = np.bincount(video[members[wanted[members]]], minlength=len(counts))
        return counts

    def within(self, truth: Bools, claims: Bools) -> JudgedFrames:
        """The same with a part of the ground truth counted, and a part of the predictions counted as false positives.

        Args:
            truth: (m,) the ground-truth boxes that are asked for.
            claims: (n,) the predictions that count as wrong where they meet nothing.
        """
        return replace(self, outside=~truth, outside_claims=~claims)

    @property
    def left_out(self) -> dict[str, int]:
        """What was not judged to how often."""
        return {f"predicted boxes {what}": n for what, n in self.claims.left_out.items()}

    def notes(self) -> tuple[str, ...]:
        """Further remarks on what is not judged or missing, in words."""
        made_up = self.claims.interpolated
        said = [f"{made_up:,} interpolated boxes are no predictions of frames"] if made_up else []
        silent = [f"{kind} '{label}'" for c, (kind, label) in enumerate(self.classes) if self._unclaimed(c)]
        if silent and len(self.claims.row):
            said.append(
                f"the predictions have no scores of {len(silent)} labels, such as {', '.join(silent[:3])}"
            )
        return tuple(said)

    def _unclaimed(self, c: int) -> bool:
        return c not in self.claims.columns


def prepare_frames(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    kinds: Sequence[str] | None = None,
) -> JudgedFrames:
    """Bring ground truth and predictions to the same classes, frames and pixels; arguments as `match_frames`."""
    from roadaware.metrics.detection.frame_kernels import compute_frame_overlaps

    classes = list_tube_classes(scenes, list_box_kinds(predictions, scenes) if kinds is None else kinds)
    if config.composite_scores == "product":
        predictions = add_product_scores(predictions, scenes)
    frames = collect_frames(scenes)
    predictions, scenes, scale = scale_to_common_size(predictions, scenes, frames.videos, config)
    truth = extract_true_boxes(scenes, classes, frames, scale.truth)
    claims = extract_predicted_boxes(
        predictions, classes, frames, scale.claims, interpolated=config.interpolated_boxes
    )
    start, overlap = compute_frame_overlaps(
        claims.edges,
        claims.frame,
        truth.edges,
        truth.start,
        float(config.frame_pixel_offset),
        config.numbers == "single",
    )
    none = np.zeros(len(truth.box), dtype=np.bool_), np.zeros(len(claims.row), dtype=np.bool_)
    return JudgedFrames(classes, frames, truth, claims, start, overlap, config, *none)


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
    from roadaware.metrics.detection.frame_kernels import sort_keys

    bits = (score + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
    sign = np.uint64(1) << np.uint64(63)
    # Bits of doubles rise with their size: inverted, positive ones come first and fall; negative ones, as
    # they are, come behind them with the smallest size first.
    return sort_keys(np.where(bits & sign, bits, ~(bits | sign)))
