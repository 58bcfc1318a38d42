"""TrackCounts: what tracking metrics are made from, per video, as sums that merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.metrics.tracking.clear import clear_counts
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.hota import hota_counts
from roadaware.metrics.tracking.identity import identity_counts
from roadaware.metrics.tracking.pairs import TrackPairs, track_pairs
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

Sums = dict[str, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class TrackCounts:
    """Sums of each video; every metric is a function of their totals.

    Args:
        config: what they were counted with.
        videos: (V,) the videos that were judged.
        table: name to (V,) numbers, or (V, A) of each alpha.
    """

    config: TrackingConfig
    videos: tuple[str, ...]
    table: Sums

    def __repr__(self) -> str:
        return f"TrackCounts({len(self.videos)} videos, {int(self.table['truth'].sum()):,} true boxes)"

    def merge(self, other: TrackCounts) -> TrackCounts:
        """The sums of the videos of both; the parts of a whole give the whole.

        Raises:
            UsageError: if a video lies in both, or the configs differ.
        """
        both = sorted(set(self.videos) & set(other.videos))
        if both:
            raise UsageError(
                f"{len(both)} videos lie in both parts, first {both[:5]}; identities need a video whole"
            )
        if self.config != other.config:
            raise UsageError("counts of different configs cannot be merged; count both with the same")
        table = {name: np.concatenate([held, other.table[name]]) for name, held in self.table.items()}
        return TrackCounts(self.config, (*self.videos, *other.videos), table)

    def totals(self, weights: npt.NDArray[Any] | None = None) -> Sums:
        """The sums over the videos.

        Args:
            weights: (V,) or (draws, V) how often each video counts; once unless told.

        Returns:
            name to a number or (A,), with the draws in front where there are any.
        """
        once = np.ones(len(self.videos)) if weights is None else np.asarray(weights, dtype=np.float64)
        return {name: np.asarray(once @ held) for name, held in self.table.items()}


def track_counts(
    predictions: Predictions, scenes: Scenes, config: TrackingConfig | None = None
) -> TrackCounts:
    """Count, video by video, what HOTA, CLEAR and identity metrics are made from.

    Args:
        predictions: paths: tubes without parent and kind.
        scenes: tracks: tubes without parent.
        config: how they are judged; `TrackingConfig.default()` unless told.

    Raises:
        InputError: if tracks contradict themselves, or sizes of images are not known.
    """
    config = config or TrackingConfig.default()
    return counted(track_pairs(predictions, scenes, config), config)


def counted(pairs: TrackPairs, config: TrackingConfig) -> TrackCounts:
    """The sums of tracks and paths that were brought together."""
    of_track = np.bincount(pairs.truth.video[pairs.truth.lengths > 0], minlength=len(pairs.videos))
    of_path = np.bincount(pairs.claims.video[pairs.claims.lengths > 0], minlength=len(pairs.videos))
    table = {
        "frames": pairs.n_frames,
        "truth": pairs.summed(pairs.truth),
        "claims": pairs.summed(pairs.claims),
        "tracks": of_track,
        "paths": of_path,
        **hota_counts(pairs, config),
        **clear_counts(pairs, config),
        **identity_counts(pairs, config),
    }
    return TrackCounts(config, pairs.videos, {name: np.asarray(v, np.float64) for name, v in table.items()})
