"""The rows behind the mean average precision: each claim, each true label, and which labels are confused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.metrics.actions.inputs import Rows
from roadaware.metrics.actions.judging import ABSORBED, Judgement, single_precision


def claim_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per judged claim, frame after frame and in each by falling score.

    Returns:
        `box`, `video`, `frame`, `label`, `score`; `iou` with the true box of that label that it overlaps
        most, and `nearest`, that box (0 and null where the frame has none); `truth`, the box it met, null
        where it is wrong; `hit`, null for a claim on truth to ignore.
    """
    return _named(judgement, judgement.claims).with_columns(
        pl.Series("score", judgement.claims.score),
        pl.Series("iou", judgement.overlap),
        _picked("nearest", judgement.truth.box, judgement.nearest),
        _picked("truth", judgement.truth.box, judgement.met),
        pl.Series("hit", judgement.met >= 0).set(pl.Series(judgement.met == ABSORBED), None),
    )


def truth_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per true label of a judged frame.

    Returns:
        `box`, `video`, `frame`, `label`, `found`; `score` and `claim`, the score and the box of the claim
        that found it, null where none did.
    """
    claim = np.full(len(judgement.truth), -1)
    hits = np.flatnonzero(judgement.met >= 0)
    claim[judgement.met[hits]] = hits
    return _named(judgement, judgement.truth).with_columns(
        pl.Series("found", claim >= 0),
        _picked("score", judgement.claims.score, claim),
        _picked("claim", judgement.claims.box, claim),
    )


def confusion(judgement: Judgement, min_score: float = 0.0) -> pl.DataFrame:
    """Which labels stood where others were claimed.

    A claim is compared with the true box of its frame that it overlaps most, of whatever label. Where that
    overlap is enough, and the person in the box does not have the claimed label, the claim counts once for
    each label that the person has.

    Args:
        judgement: truth and claims.
        min_score: claims below it do not count.

    Returns:
        `truth` and `claimed`, names of actions; `claims`, how many; `mean_score`, of these. The most come
        first, then the order of the classes.
    """
    near = _nearest(judgement)
    asked = np.flatnonzero((near >= 0) & (judgement.claims.score >= min_score))
    person = _persons(judgement.truth)
    stood = pl.DataFrame({"person": person, "truth": judgement.truth.cls}).unique()
    claims = pl.DataFrame(
        {
            "person": person[near[asked]],
            "claimed": judgement.claims.cls[asked],
            "score": judgement.claims.score[asked],
        }
    ).join(stood, left_on=["person", "claimed"], right_on=["person", "truth"], how="anti")
    pairs = claims.join(stood, on="person").group_by("truth", "claimed")
    counts = pairs.agg(claims=pl.len().cast(pl.Int64), mean_score=pl.col("score").mean())
    counts = counts.sort("claims", "truth", "claimed", descending=[True, False, False])
    return counts.with_columns(
        truth=_names(judgement, counts["truth"].to_numpy()),
        claimed=_names(judgement, counts["claimed"].to_numpy()),
    )


def _nearest(judgement: Judgement) -> Ints:
    """(n,) the true row of any class that each claim overlaps most, -1 where that is not enough."""
    from roadaware.metrics.actions.kernels import nearest_boxes

    single = judgement.config.numbers == "single"
    claims, truth = judgement.claims.corners, judgement.truth.corners
    near, overlap = nearest_boxes(
        judgement.claim_start,
        single_precision(claims) if single else claims,
        judgement.truth_start,
        single_precision(truth) if single else truth,
        single,
    )
    return np.where(overlap >= judgement.config.min_iou, near, -1)


def _persons(truth: Rows) -> Ints:
    """(m,) a number for each row, equal for the rows of a frame with equal boxes."""
    order = np.lexsort((*truth.corners.T, truth.frame))
    corners, frame = truth.corners[order], truth.frame[order]
    first = np.ones(len(order), dtype=np.int64)
    first[1:] = (corners[1:] != corners[:-1]).any(axis=1) | (frame[1:] != frame[:-1])
    person = np.empty(len(order), dtype=np.int64)
    person[order] = np.cumsum(first)
    return person


def _named(judgement: Judgement, rows: Rows) -> pl.DataFrame:
    """`box`, `video`, `frame` and `label` of rows."""
    frames = judgement.actions.frames
    return pl.DataFrame(
        {
            "box": rows.box,
            "video": frames.about["video"].gather(frames.video[rows.frame]),
            "frame": frames.number[rows.frame],
            "label": _names(judgement, rows.cls),
        }
    )


def _names(judgement: Judgement, cls: npt.NDArray[np.generic]) -> pl.Series:
    return pl.Series(judgement.actions.classes, dtype=pl.String).gather(cls.astype(np.int64))


def _picked(name: str, values: npt.NDArray[np.generic], at: Ints) -> pl.Series:
    """The values at some places, null where the place is negative."""
    return pl.Series(name, values).gather(pl.Series(at).set(pl.Series(at < 0), None))
