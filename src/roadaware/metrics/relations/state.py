"""JudgedRelations: counts of the relations found in each video, which merge and resample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.errors import InputError
from roadaware.metrics.metric_state import Judged, Measured
from roadaware.metrics.relations.config import RelationConfig

_NO_TRUTH = "there is no true relation"


@dataclass(frozen=True, eq=False)
class JudgedRelations(Judged):
    """The counts of V videos, C predicates and K numbers of predictions; 0 for what the config does not judge.

    Args:
        items: (V rows) the videos, with `category`, `density` and `split`.
        config: how they were judged.
        classes: (C,) the predicates of the ground truth.
        truth: (V, C) ground-truth relations.
        hits: (V, C, K) those that the best predictions of the video find.
        ap: (V,) average precision; NaN where there is no ground-truth relation.
        tagged: (V, P) precision of the best distinct triplets; NaN where there is no ground-truth relation.
        images: (V, 2) frames that are judged, and those of them with a ground-truth triplet.
        image_sums: (V, K) sum over frames of the share of ground-truth triplets that is found.
        class_images: (V, C, 2) frames with a ground-truth triplet of the predicate, and such triplets.
        class_hits: (V, C, K) triplets that the best predictions of the frame find.
        class_sums: (V, C, K) sum over frames of the share of those of the predicate.
    """

    config_type: ClassVar[type] = RelationConfig

    config: RelationConfig
    classes: tuple[str, ...]
    truth: Ints
    hits: Ints
    ap: Floats
    tagged: Floats
    images: Ints
    image_sums: Floats
    class_images: Ints
    class_hits: Ints
    class_sums: Floats

    def merge(self, other: Self) -> Self:
        """The state of both parts together; predicates are joined by name.

        Raises:
            InputError: if they were judged by different configurations or share a video.
        """
        if self.config != other.config:
            raise InputError("the two parts were judged by different configurations")
        shared = sorted(set(self.videos) & set(other.videos))
        if shared:
            raise InputError(f"{len(shared)} videos are in both parts, first {shared[:5]}")
        classes = tuple(dict.fromkeys([*self.classes, *other.classes]))
        a, b = self._of(classes), other._of(classes)
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _arrays(self)
        }
        return replace(a, items=pl.concat([a.items, b.items], how="diagonal"), **parts)

    def only(self, kept: Bools) -> Self:
        """The state of some of the videos."""
        parts = {name: getattr(self, name)[kept] for name in _arrays(self)}
        return replace(self, items=self.items.filter(pl.Series(kept)), **parts)

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """The metrics that the config judges: of the whole, then of each predicate with ground truth.

        Source: supplement of Chaotic World, ICCV 2023, section 3.2; VidVRD-helper (tubelets); TRACE (frames).
        """
        drawn = weights.astype(np.float64)
        if self.config.tubelets:
            yield from self._tubelets(drawn)
        if self.config.frames:
            yield from self._frames(drawn)
        totals = self.truth.sum(axis=0)
        shown = np.flatnonzero(totals)
        columns = {name: _aggregate_resamples(drawn, getattr(self, name)[:, shown]) for name in _CLASS_ARRAYS}
        for place, cls in enumerate(shown):
            of_class = {name: values[:, place] for name, values in columns.items()}
            yield from self._of_class(self.classes[cls], int(totals[cls]), of_class)

    def _tubelets(self, drawn: Floats) -> Iterator[Measured]:
        """Recall, average precision and precision of tags."""
        asked, n = drawn @ self.truth.sum(axis=1), int(self.truth.sum())
        found = _aggregate_resamples(drawn, self.hits.sum(axis=1))
        for k, at in enumerate(self.config.recall_at):
            yield Measured(f"recall@{at}", self._ratio(found[:, k], asked), n, reason=_NO_TRUTH)
        judged = ~np.isnan(self.ap)
        n_judged = drawn @ judged
        means = {"map": self.ap, **dict(zip(self._tags(), self.tagged.T, strict=True))}
        for name, values in means.items():
            total = drawn @ np.where(judged, values, 0.0)
            yield Measured(name, _ratio(total, n_judged), int(judged.sum()), reason=_NO_TRUTH)

    def _frames(self, drawn: Floats) -> Iterator[Measured]:
        """Recall in frames, both averages and the plain name."""
        column = 0 if self.config.empty_frames == "zero" else 1
        n_images, asked = drawn @ self.images[:, column], drawn @ self.class_images[:, :, 1].sum(axis=1)
        sums, found = drawn @ self.image_sums, _aggregate_resamples(drawn, self.class_hits.sum(axis=1))
        n = {"per_image": int(self.images[:, column].sum()), "pooled": int(self.class_images[:, :, 1].sum())}
        values = [
            {"per_image": _ratio(sums[:, k], n_images), "pooled": _ratio(found[:, k], asked)}
            for k in range(len(self.config.recall_at))
        ]
        for suffix, averaging in (("", self.config.averaging), ("_per_image",) * 2, ("_pooled",) * 2):
            which = averaging.removeprefix("_")
            for k, at in enumerate(self.config.recall_at):
                name = f"frame_recall@{at}{suffix}"
                yield Measured(name, values[k][which], n[which], reason=_NO_TRUTH)

    def _of_class(self, label: str, n: int, totals: dict[str, Floats]) -> Iterator[Measured]:
        """Recall of one predicate; in frames, over those with a ground-truth triplet of it."""
        for k, at in enumerate(self.config.recall_at):
            if self.config.tubelets:
                value = self._ratio(totals["hits"][:, k], totals["truth"])
                yield Measured(f"recall@{at}", value, n, label, _NO_TRUTH)
        for k, at in enumerate(self.config.recall_at):
            if self.config.frames:
                found, which = (
                    ("class_sums", 0) if self.config.averaging == "per_image" else ("class_hits", 1)
                )
                value = _ratio(totals[found][:, k], totals["class_images"][:, which])
                yield Measured(f"frame_recall@{at}", value, n, label, _NO_TRUTH)

    def _tags(self) -> list[str]:
        return [f"precision@{n}" for n in self.config.precision_at]

    def _ratio(self, part: Floats, whole: Floats) -> Floats:
        """Shares, rounded as the config says; NaN where there is nothing."""
        return _ratio(part, whole, np.float32 if self.config.precision == "float32" else np.float64)

    def _of(self, classes: tuple[str, ...]) -> Self:
        """The same with other classes; those it lacks have nothing."""
        place = {name: i for i, name in enumerate(classes)}
        columns = [place[name] for name in self.classes]
        changed: dict[str, Any] = {}
        for name in _CLASS_ARRAYS:
            array = getattr(self, name)
            changed[name] = np.zeros((len(array), len(classes), *array.shape[2:]), dtype=array.dtype)
            changed[name][:, columns] = array
        return replace(self, classes=classes, **changed)


_CLASS_ARRAYS = ("truth", "hits", "class_images", "class_hits", "class_sums")


def _arrays(state: JudgedRelations) -> list[str]:
    """The names of the fields that have a row per video."""
    return [each.name for each in fields(state) if isinstance(getattr(state, each.name), np.ndarray)]


def _aggregate_resamples(drawn: Floats, values: npt.NDArray[Any]) -> Floats:
    """(draws, ...) sums over the videos of each draw.

    Args:
        drawn: (draws, V).
        values: (V, ...).
    """
    flat = values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
    return (drawn @ flat).reshape(len(drawn), *values.shape[1:])


def _ratio(part: Floats, whole: Floats, precision: type[np.floating[Any]] = np.float64) -> Floats:
    """(draws,) shares, NaN where there is nothing."""
    a, b = part.astype(precision), whole.astype(precision)
    shares = np.divide(a, b, out=np.full(a.shape, np.nan, dtype=precision), where=b > 0)
    return shares.astype(np.float64)
