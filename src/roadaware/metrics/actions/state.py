"""JudgedActions: ranked predictions and ground truth of actions as arrays that merge, and the mean average precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.errors import InputError
from roadaware.metrics.actions.config import ActionConfig
from roadaware.metrics.detection.frame import sort_descending
from roadaware.metrics.metric_state import Judged, Measured
from roadaware.statistics.average_precision import compute_tied_span, resample_average_precision

_TRUTHLESS = "there is no truth"
_UNCLAIMED = "nothing is predicted of it on a judged frame"


@dataclass(frozen=True, eq=False)
class JudgedActions(Judged):
    """The predictions of judged frames, whether each is right, and the ground truth that there is to be found.

    Args:
        items: the judged frames: `video`, `frame`, `category`, `density`, `split`.
        config: how they were judged.
        classes: (C,) names of the actions.
        cls: (n,) class of each prediction; predictions stand by class and rank.
        score: (n,) its score, as it is ranked.
        item: (n,) its frame, index in `items`.
        place: (n,) its place among all predictions in the order of frames and rows, which ranks equal scores.
        hit: (n,) whether it is right.
        truth_item: (m,) the frame of each ground-truth row.
        truth_cls: (m,) its class.
    """

    config_type: ClassVar[type] = ActionConfig

    config: ActionConfig
    classes: tuple[str, ...]
    cls: Ints32
    score: Floats
    item: Ints32
    place: Ints
    hit: Bools
    truth_item: Ints32
    truth_cls: Ints32

    def ranked(self) -> Self:
        """The same predictions by class, falling score, and place as the configuration has it."""
        in_place = np.argsort(self.place, kind="stable")
        if self.config.tied_ranks == "reversed":
            in_place = in_place[::-1]
        order = in_place[sort_descending(self.score[in_place])]
        classes = self.cls[order]
        if len(self.classes) <= 1 << 16:
            classes = classes.astype(np.uint16)  # which numpy sorts by radix, in linear time
        return self._take(order[np.argsort(classes, kind="stable")])

    def merge(self, other: Self) -> Self:
        """The state of both parts; equal scores rank as if the predictions of the other came after these.

        Raises:
            InputError: if they were judged by different configurations, share a video, or name the classes
                in a different order.
        """
        if self.config != other.config:
            raise InputError("these were judged by different configurations; judge both by the same")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the video '{min(shared)}'; a video is judged as a whole")
        if self.classes != other.classes:
            raise InputError(
                "both parts need the same classes in the same order", hint="read both by one map"
            )
        n_items, after = len(self.items), int(self.place.max(initial=-1)) + 1
        both = replace(
            self,
            items=pl.concat([self.items, other.items]),
            cls=np.concatenate([self.cls, other.cls]),
            score=np.concatenate([self.score, other.score]),
            item=np.concatenate([self.item, other.item + np.int32(n_items)]),
            place=np.concatenate([self.place, other.place + after]),
            hit=np.concatenate([self.hit, other.hit]),
            truth_item=np.concatenate([self.truth_item, other.truth_item + np.int32(n_items)]),
            truth_cls=np.concatenate([self.truth_cls, other.truth_cls]),
        )
        return both.ranked()

    def only(self, kept: Bools) -> Self:
        """The state of some of the frames.

        Args:
            kept: (frames,) which stay.
        """
        place = (np.cumsum(kept) - 1).astype(np.int32)
        part = self._take(kept[self.item])
        truth = kept[self.truth_item]
        return replace(
            part,
            items=self.items.filter(pl.Series(kept)),
            item=place[part.item],
            truth_item=place[self.truth_item[truth]],
            truth_cls=self.truth_cls[truth],
        )

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """The mean average precision, then the average precision of each class.

        Args:
            weights: (draws, V) how often each of `videos` counts.

        Source: supplement of Chaotic World, ICCV 2023, section 3.1 (mAP, AP).
        """
        video = self._video_of_item()
        once = np.ones((1, len(self.videos)), dtype=np.int32)
        n_truth, averaged = (
            self._counts(video[self.truth_item], self.truth_cls),
            self._averaged(video, once)[0],
        )
        values = self._average_precision(video, weights, weights.astype(np.int64) @ n_truth)
        values[~self._averaged(video, weights)] = np.nan
        defined = ~np.isnan(values)
        n = defined.sum(axis=1)
        total = np.where(defined, values, 0.0).sum(axis=1)
        mean = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
        found = n_truth.sum(axis=0)
        at = f"@{self.config.min_iou:g}"
        yield Measured(
            f"map{at}", mean, int(averaged.sum()), reason=_UNCLAIMED if found.any() else _TRUTHLESS
        )
        for c, name in enumerate(self.classes):
            reason = _UNCLAIMED if found[c] else _TRUTHLESS
            yield Measured(f"ap{at}", values[:, c], int(found[c]), name, reason)

    def tied(self) -> dict[str, Any] | None:
        """How far the order of equal scores moves the metrics, JSON-ready; None where it moves nothing.

        The published evaluators (`match` is argmax) rank the predictions of a class by a sort that leaves the
        order of equal scores open. How many of them are right does not depend on it: of equal predictions on one
        ground-truth row one is right, whichever comes first. So the ends are exact.

        Returns:
            {"claims": those whose score others share that are right where they are wrong or the other way
            round, "span": {metric: [least, greatest]}}, the mean and the classes that move.
        """
        if self.config.match != "argmax":
            return None
        n_truth = np.bincount(self.truth_cls, minlength=len(self.classes))
        found = compute_tied_span(self.cls, self.score, self.hit[:, None], n_truth, self.config.ap)
        video, once = self._video_of_item(), np.ones((1, len(self.videos)), dtype=np.int32)
        averaged = self._averaged(video, once)[0]
        if found is None or not averaged.any():
            return None
        at, low, high = f"@{self.config.min_iou:g}", found.low[:, 0], found.high[:, 0]
        span = {f"map{at}": [float(end[averaged].mean()) for end in (low, high)]}
        for c in np.flatnonzero(averaged & (low < high)):
            span[f"ap{at}:{self.classes[c]}"] = [float(low[c]), float(high[c])]
        return {"claims": found.claims, "span": span} if len(span) > 1 else None

    def _averaged(self, video: Ints32, weights: Ints32) -> Bools:
        """(draws, C) which classes are averaged."""
        times = weights.astype(np.int64)
        averaged: Bools = times @ self._counts(video[self.truth_item], self.truth_cls) > 0
        if self.config.classes == "with_truth_and_claims":
            averaged &= times @ self._counts(video[self.item], self.cls) > 0
        return averaged

    def _average_precision(self, video: Ints32, weights: Ints32, n_truth: Ints) -> Floats:
        """(draws, C) 0 where there is no ground truth or no prediction."""
        starts = np.searchsorted(self.cls, np.arange(len(self.classes) + 1))
        hit, times = self.hit[:, None], weights.astype(np.int32)
        areas = resample_average_precision(starts, video[self.item], hit, n_truth, times, self.config.ap)
        return areas[:, :, 0]

    def _counts(self, video: Ints32, cls: Ints32) -> Ints:
        """(V, C) how many rows of each class each video has."""
        n_classes, n_videos = len(self.classes), len(self.videos)
        cells = video.astype(np.int64) * n_classes + cls
        return np.bincount(cells, minlength=n_videos * n_classes).reshape(n_videos, n_classes)

    def _video_of_item(self) -> Ints32:
        names = self.items["video"].cast(pl.String)
        return names.cast(pl.Enum(list(self.videos))).to_physical().to_numpy().astype(np.int32)

    def _take(self, rows: npt.NDArray[Any]) -> Self:
        return replace(
            self,
            cls=self.cls[rows],
            score=self.score[rows],
            item=self.item[rows],
            place=self.place[rows],
            hit=self.hit[rows],
        )
