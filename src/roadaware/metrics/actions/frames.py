"""Which frames are judged, in which order their predictions are ranked, and what they can be sliced by."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Ints
from roadaware.metrics.actions.config import ActionConfig
from roadaware.metrics.actions.inputs import Actions, Keyframes
from roadaware.metrics.metric_state import crowd_density


def mask_evaluated_frames(frames: Keyframes, config: ActionConfig) -> Bools:
    """(F,) whether predictions on a frame are judged."""
    bare = np.where(frames.known, config.empty_frames == "count", config.unknown_frames == "count")
    judged: Bools = ~frames.excluded & (frames.has_truth | bare)
    return judged


def mask_counted_frames(frames: Keyframes, config: ActionConfig) -> Bools:
    """(F,) whether the ground truth of a frame is to be found, or predictions on it are judged."""
    if config.excluded_truth == "dropped":
        return mask_evaluated_frames(frames, config)
    return mask_evaluated_frames(frames, config) | (frames.excluded & frames.has_truth)


def rank_frames(actions: Actions, config: ActionConfig) -> Ints:
    """(F,) the rank of each frame; by first appearance in rows, those without rows come last."""
    if config.frame_order == "table":
        return np.arange(len(actions.frames.number))
    rows = actions.claims if config.frame_order == "claims" else actions.truth
    first = np.full(len(actions.frames.number), len(rows))
    # Of repeated indices the last assignment stays, which backwards is the first row.
    first[rows.frame[::-1]] = np.arange(len(rows))[::-1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank


def build_item_table(frames: Keyframes, kept: Bools) -> pl.DataFrame:
    """`video`, `frame`, `category`, `density`, `split` of some of the frames.

    Args:
        frames: all of them.
        kept: (F,) which.
    """
    at = pl.Series(frames.video[kept], dtype=pl.Int64)
    of_video = frames.about[at]
    items = pl.DataFrame(
        {
            "video": of_video["video"],
            "frame": pl.Series(frames.number[kept], dtype=pl.Int64),
            "category": of_video["category"],
            "density": pl.Series(frames.persons[kept], dtype=pl.Int64),
            "split": of_video["split"],
        }
    )
    return items.with_columns(density=crowd_density(pl.col("density")))


def count_excluded(actions: Actions, config: ActionConfig) -> dict[str, int]:
    """Count of ground truth and predictions left out because of their frame, by reason in words."""
    frames, claims = actions.frames, actions.claims.frame
    judged = mask_evaluated_frames(frames, config)
    unnamed = ~frames.known & ~judged
    bare = frames.known & ~frames.excluded & ~judged
    lost = ~mask_counted_frames(frames, config)
    return {
        "predictions on excluded frames": int(frames.excluded[claims].sum()),
        "predictions on frames that the truth does not name": int(unnamed[claims].sum()),
        "predictions on frames without truth": int(bare[claims].sum()),
        "true labels on excluded frames": int(lost[actions.truth.frame].sum()),
        "true labels to ignore": int(actions.truth.ignored.sum()),
    }
