"""Mergeable state of the corner-case metrics: recall and precision of any resample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.errors import InputError
from roadaware.metrics.corner_cases.config import AREAS, CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects
from roadaware.metrics.corner_cases.matching import (
    Met,
    Recall,
    compute_precisions,
    compute_recalls,
    list_group_classes,
)
from roadaware.metrics.metric_state import Judged, Measured

AP_COLUMNS = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")
TOTAL = "total"
_PARTS = ("common_ap", "all_ap", "all_ar", "corner_ar")
_ONE = ("corner", "novel", "all")
"""Groups of one class."""
_RARE = ("corner", "novel")
"""Groups of corner cases alone: what is right about anything else counts as false there."""
NO_TRUTH = "there is no such object"
ONLY_CORNERS = "right predictions of objects that are not asked for would count as false"


@dataclass(frozen=True, eq=False)
class JudgedCorners(Judged):
    """Images with their objects and predictions, group by group; the state of the metrics of corner cases.

    Args:
        items: one row per image.
        item: (m,) image of each object; an object that several groups ask for stands once for each.
        group: (m,) place of its group in `groups`.
        kind: (m,) its class within the group.
        above: (m,) its super-class, NONE where it has none.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction met it, from 0; -1 where none did.
        claim_item: (n,) image of each prediction of the groups whose average precision can be wanted.
        claim_group: (n,) place of its group.
        claim_kind: (n,) its class within the group.
        score: (n,) of each.
        hit: (n, A) bit t is set where it met an object.
        passed: (n, A) bit t is set where it does not count.
        groups: what was asked, with the classes of each.
        supers: the super-classes.
        unanswered: groups that the predictions have no answer to, each with the reason.
        complete: whether more than corner cases is annotated.
        config: how it was judged.
    """

    config_type: ClassVar[type] = CornerConfig

    item: Ints
    group: Ints
    kind: Ints
    above: Ints
    asked: Bools
    rank: npt.NDArray[np.int16]
    claim_item: Ints
    claim_group: Ints
    claim_kind: Ints
    score: Floats
    hit: npt.NDArray[np.uint16]
    passed: npt.NDArray[np.uint16]
    groups: tuple[tuple[str, ...], ...]
    supers: tuple[str, ...]
    unanswered: tuple[tuple[str, str], ...]
    complete: tuple[bool, ...]
    config: CornerConfig

    def merge(self, other: Self) -> Self:
        """Both parts' images; see `Judged.merge`."""
        if self.config != other.config:
            raise InputError("the parts were judged by different configurations", hint="judge both by one")
        if [g[0] for g in self.groups] != [g[0] for g in other.groups] or self.unanswered != other.unanswered:
            raise InputError("the parts answer different groups", hint="judge both with the same predictions")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the videos {sorted(shared)[:5]}", hint="split by whole videos")
        groups = tuple(
            (a[0], *_merge_groups(a[1:], b[1:])) for a, b in zip(self.groups, other.groups, strict=True)
        )
        supers = _merge_groups(self.supers, other.supers)
        one, two = (part._renamed(groups, supers) for part in (self, other))
        n = len(one.items)
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(one, name), getattr(two, name)])
            for name in (
                "group",
                "kind",
                "above",
                "asked",
                "rank",
                "claim_group",
                "claim_kind",
                "score",
                "hit",
                "passed",
            )
        }
        return replace(
            one,
            **joined,
            items=pl.concat([one.items, two.items], how="diagonal_relaxed"),
            item=np.concatenate([one.item, two.item + n]),
            claim_item=np.concatenate([one.claim_item, two.claim_item + n]),
            complete=(one.complete[0] or two.complete[0],),
        )

    def only(self, kept: Bools) -> Self:
        """Some of the images; see `Judged.only`."""
        place = np.cumsum(kept) - 1
        objects, claims = kept[self.item], kept[self.claim_item]
        names = ("group", "kind", "above", "asked", "rank")
        claimed = ("claim_group", "claim_kind", "score", "hit", "passed")
        cut: dict[str, Any] = {name: getattr(self, name)[objects] for name in names}
        cut |= {name: getattr(self, name)[claims] for name in claimed}
        return replace(
            self,
            **cut,
            items=self.items.filter(pl.Series(kept)),
            item=place[self.item[objects]],
            claim_item=place[self.claim_item[claims]],
        )

    def recall_alone(self) -> Self:
        """The same without average precision and total, and without the predictions that only they need."""
        names = ("claim_item", "claim_group", "claim_kind", "score", "hit", "passed")
        cut: dict[str, Any] = {name: getattr(self, name)[:0] for name in names}
        return replace(self, **cut, config=replace(self.config, precision="never", total=False))

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """Every metric: of each group, then of the classes and super-classes; see `Judged.measured`.

        Source: Li et al., ECCV 2022 (CODA), section 5.1 and Table 2.
        """
        parts: dict[str, Floats] = {}
        classes: list[Measured] = []
        reasons = dict(self.unanswered)
        for place, (name, *words) in enumerate(self.groups):
            found = self._recalls[place].values(weights)
            reason = reasons.get(name)
            for each in self._group(name, words, place, found, weights, reason):
                if each.label is None:
                    parts[each.metric] = each.values
                    yield each
                else:
                    classes.append(each)
        if self.config.total:
            empty = np.full(len(weights), np.nan)
            total = np.sum([parts.get(part, empty) for part in _PARTS], axis=0)
            why = "one of its four parts is undefined"
            yield Measured(TOTAL, total, len(_PARTS), None, why, "positive")
        yield from classes

    def _group(
        self, name: str, words: Sequence[str], place: int, found: Any, weights: Ints32, reason: str | None
    ) -> Iterator[Measured]:
        """The metrics of one group: of the whole, of its classes, of super-classes."""
        recall = self._recalls[place]
        blank = np.full(len(weights), np.nan)
        for column, values in found.whole.items():
            values = blank if reason else values
            yield Measured(f"{name}_{column}", values, recall.counted(column), None, reason or NO_TRUTH)
        yield from self._precisions(name, place, weights, reason)
        if name not in _ONE:
            for kind, word in enumerate(words):
                for column, values in found.kinds[kind].items():
                    values = blank if reason else values
                    yield Measured(f"{name}_{column}", values, recall.of_kind(kind), word, reason or NO_TRUTH)
        elif name == "corner":
            for above, word in enumerate(self.supers):
                for column, values in found.above[above].items():
                    yield Measured(f"{name}_{column}", values, recall.of_super(above), word, NO_TRUTH)

    def _precisions(self, name: str, place: int, weights: Ints32, reason: str | None) -> Iterator[Measured]:
        """The average precision of a group, where it is wanted; undefined where it would say nothing."""
        how = self.config.precision
        if how == "never":
            return
        if reason is None and how == "complete" and (name in _RARE or not self.complete[0]):
            reason = ONLY_CORNERS
        recall = self._recalls[place]
        blank = np.full(len(weights), np.nan)
        found = dict.fromkeys(AP_COLUMNS, blank) if reason else self._areas_under(place, weights)
        for column, values in found.items():
            yield Measured(f"{name}_{column}", values, recall.counted(column), None, reason or NO_TRUTH)

    def _areas_under(self, place: int, weights: Ints32) -> dict[str, Floats]:

        rows = np.flatnonzero(self.claim_group == place)
        objects = self.group == place
        n_kinds = max(1, len(self.groups[place]) - 1)
        return compute_precisions(
            *(self._video[self.claim_item[rows]], self.claim_kind[rows], self.score[rows]),
            *(self.hit[rows], self.passed[rows], n_kinds),
            *(self._video[self.item[objects]], self.kind[objects], self.asked[objects]),
            *(weights, self.rank.shape[2]),
        )

    @cached_property
    def _video(self) -> Ints:
        """(images,) the place of each image's video in `videos`."""
        videos = self.items["video"].cast(pl.String)
        places = list(range(len(self.videos)))
        found: Ints = videos.replace_strict(list(self.videos), places, return_dtype=pl.Int64).to_numpy()
        return found

    @cached_property
    def _recalls(self) -> tuple[Recall, ...]:
        """What was found by video and class, of each group."""
        found = []
        for place, (name, *words) in enumerate(self.groups):
            rows = np.flatnonzero(self.group == place)
            found.append(
                compute_recalls(
                    *(self._video[self.item[rows]], self.kind[rows], self.above[rows]),
                    *(self.asked[rows], self.rank[rows], len(self.videos)),
                    *(max(1, len(words)), len(self.supers) if name == "corner" else 0),
                    self.config.max_detections,
                )
            )
        return tuple(found)

    def _renamed(self, groups: tuple[tuple[str, ...], ...], supers: tuple[str, ...]) -> Self:
        """The same with classes and super-classes numbered as in larger lists."""
        kind, claimed = self.kind.copy(), self.claim_kind.copy()
        for place, (old, new) in enumerate(zip(self.groups, groups, strict=True)):
            for numbers, group in ((kind, self.group), (claimed, self.claim_group)):
                there = group == place
                table = np.array([new[1:].index(word) for word in old[1:]] or [0])
                numbers[there] = table[numbers[there]]
        table = np.array([*(supers.index(word) for word in self.supers), NONE])
        return replace(
            self, kind=kind, claim_kind=claimed, above=table[self.above], groups=groups, supers=supers
        )


def build_corner_state(
    truth: Objects,
    claims: Claims,
    met: dict[Group, Met],
    unanswered: dict[str, str],
    config: CornerConfig,
) -> JudgedCorners:
    """Build the state from the matches of each group.

    Args:
        truth: all objects.
        claims: all predictions.
        met: by group.
        unanswered: groups without an answer to their reason.
        config: how it was judged.
    """
    parts = list(met.values())
    away = {"never": tuple(met), "complete": _RARE, "always": ()}[config.precision]
    kept = [(n, each) for n, (group, each) in enumerate(met.items()) if group not in away]
    n_areas, n_steps = len(AREAS), len(config.thresholds)

    def joined(pieces: list[Any], shape: tuple[int, ...], kind: type) -> Any:
        return np.concatenate([np.zeros((0, *shape), dtype=kind), *pieces]).astype(kind)

    return JudgedCorners(
        items=truth.items,
        item=joined([truth.item[each.rows] for each in parts], (), np.int64),
        group=joined([np.full(len(each.rows), n) for n, each in enumerate(parts)], (), np.int64),
        kind=joined([each.kind for each in parts], (), np.int64),
        above=joined([truth.above[each.rows] for each in parts], (), np.int64),
        asked=joined([each.asked for each in parts], (n_areas,), np.bool_),
        rank=joined([each.rank for each in parts], (n_areas, n_steps), np.int16),
        claim_item=joined([claims.item[each.claims] for _, each in kept], (), np.int64),
        claim_group=joined([np.full(len(each.claims), n) for n, each in kept], (), np.int64),
        claim_kind=joined([each.claimed for _, each in kept], (), np.int64),
        score=joined([claims.score[each.claims] for _, each in kept], (), np.float64),
        hit=joined([each.hit for _, each in kept], (n_areas,), np.uint16),
        passed=joined([each.passed for _, each in kept], (n_areas,), np.uint16),
        groups=tuple((group, *list_group_classes(group, truth)) for group in met),
        supers=truth.supers,
        unanswered=tuple(unanswered.items()),
        complete=(bool((~truth.corner & ~truth.marked).any()),),
        config=config,
    )


def _merge_groups(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
