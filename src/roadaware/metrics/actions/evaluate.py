"""Frame mean average precision of actions, boxes with several scored labels each: the evaluation and the
rows behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.metrics.actions.config import ActionConfig
from roadaware.metrics.actions.frames import count_excluded, mask_evaluated_frames
from roadaware.metrics.actions.inputs import Rows, read_actions
from roadaware.metrics.actions.matching import ABSORBED, Judgement, cast_to_single, match_actions
from roadaware.metrics.metric_state import SceneResult, build_result
from roadaware.scenes.tables import Predictions, Scenes

# The rows behind the mean average precision: each prediction, each true label, and which labels are confused.


def build_prediction_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per judged prediction, frame after frame and in each by falling score.

    Returns:
        `box`, `video`, `frame`, `label`, `score`; `iou` with the ground-truth box of that label that it overlaps
        most, and `nearest`, that box (0 and null where the frame has none); `truth`, the box it met, null
        where it is wrong; `hit`, null for a prediction on ground truth to ignore.
    """
    return _build_row_table(judgement, judgement.claims).with_columns(
        pl.Series("score", judgement.claims.score),
        pl.Series("iou", judgement.overlap),
        _gather_or_null("nearest", judgement.truth.box, judgement.nearest),
        _gather_or_null("truth", judgement.truth.box, judgement.met),
        pl.Series("hit", judgement.met >= 0).set(pl.Series(judgement.met == ABSORBED), None),
    )


def build_truth_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per true label of a judged frame.

    Returns:
        `box`, `video`, `frame`, `label`, `found`; `score` and `claim`, the score and the box of the prediction
        that found it, null where none did.
    """
    claim = np.full(len(judgement.truth), -1)
    hits = np.flatnonzero(judgement.met >= 0)
    claim[judgement.met[hits]] = hits
    return _build_row_table(judgement, judgement.truth).with_columns(
        pl.Series("found", claim >= 0),
        _gather_or_null("score", judgement.claims.score, claim),
        _gather_or_null("claim", judgement.claims.box, claim),
    )


def build_confusion_table(judgement: Judgement, min_score: float = 0.0) -> pl.DataFrame:
    """Confusion table: ground-truth labels where others were predicted.

    A prediction is compared with the ground-truth box of its frame that it overlaps most, of whatever label. Where that
    overlap is enough, and the person in the box does not have the predicted label, the prediction counts once for
    each label that the person has.

    Args:
        judgement: ground truth and predictions.
        min_score: predictions below it do not count.

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
    """(n,) the ground-truth row of any class that each prediction overlaps most, -1 where that is not enough."""
    from roadaware.metrics.actions.kernels import find_nearest_boxes

    single = judgement.config.numbers == "single"
    claims, truth = judgement.claims.corners, judgement.truth.corners
    near, overlap = find_nearest_boxes(
        judgement.claim_start,
        cast_to_single(claims) if single else claims,
        judgement.truth_start,
        cast_to_single(truth) if single else truth,
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


def _build_row_table(judgement: Judgement, rows: Rows) -> pl.DataFrame:
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


def _gather_or_null(name: str, values: npt.NDArray[np.generic], at: Ints) -> pl.Series:
    """The values at some places, null where the place is negative."""
    return pl.Series(name, values).gather(pl.Series(at).set(pl.Series(at < 0), None))


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: ActionConfig,
    *,
    by: Sequence[str] = (),
    draws: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Frame mean average precision, `map@0.5`, and the average precision of each action, `ap@0.5`.

    A prediction is one label of one box, with a score. It is right where its box overlaps a ground-truth box of its
    frame and label enough (IoU of at least `min_iou`) that no prediction of a higher score has met. The predictions
    of a label, from all judged frames, are ranked by score; the average precision is read off the ranking,
    and its mean over the labels is the metric. In [0, 1]; higher is better.

    Args:
        predictions: boxes with `labels` of the kind `action`, each with a score, in the order of the file; or
            boxes with dense `scores` of that kind.
        scenes: boxes with `labels` of that kind; frames with `annotated` false are excluded.
        config: how they are judged; see `config.CONFIGS`.
        by: of `category`, `density` (different ground-truth boxes in the frame) and `split`, by which the frames
            are sliced.
        draws: resamples of videos; 0 gives no intervals.
        seed: of the resamples.

    Returns:
        The metrics; instances of the levels `claim`, `truth` and `confusion`; facts with the capacity, and
        how many frames were judged.

    Raises:
        InputError: if there is no ground truth, or predictions and ground truth do not fit each other.
        UsageError: if `draws` is negative or there is nothing of that name to slice by.

    Source: Gu et al., CVPR 2018, section 5; the evaluators named in `config`.
    """
    judgement = match_actions(read_actions(predictions, scenes), config)
    _check_judged(judgement)
    state = judgement.state()
    tied = state.tied()
    return build_result(
        state,
        config,
        by=by,
        draws=draws,
        seed=seed,
        notes=(*_notes(judgement), *_told_ties(tied)),
        makers={
            "claim": partial(build_prediction_rows, judgement),
            "truth": partial(build_truth_rows, judgement),
            "confusion": partial(build_confusion_table, judgement),
        },
        left_out=count_excluded(judgement.actions, config)
        | {
            "predictions beyond the capacity of their frame": judgement.over_capacity,
            "predictions of boxes without area": judgement.flat,
            "predictions on truth to ignore": int((judgement.met == ABSORBED).sum()),
        },
        facts=_facts(judgement) | ({} if tied is None else {"tied_scores": tied}),
    )


def evaluate_confusion(
    predictions: Predictions, scenes: Scenes, config: ActionConfig, *, min_score: float = 0.0
) -> pl.DataFrame:
    """Confusion table of predicted and ground-truth labels: `truth`, `claimed`, `claims`, `mean_score`.

    Args:
        predictions: as in `evaluate`.
        scenes: as in `evaluate`.
        config: how they are judged.
        min_score: predictions below it do not count. Where every box is predicted to be everything, it is what
            makes the table speak.

    Raises:
        InputError: as in `evaluate`.
    """
    judgement = match_actions(read_actions(predictions, scenes), config)
    return build_confusion_table(judgement, min_score)


def _check_judged(judgement: Judgement) -> None:
    """Raises InputError where every frame with ground truth is excluded."""
    if not len(judgement.truth):
        frames = judgement.actions.frames
        raise InputError(
            f"there is no truth: all {int(frames.has_truth.sum()):,} frames that have some are excluded",
            hint="is this the file of excluded timestamps of another set?",
        )


def _facts(judgement: Judgement) -> dict[str, Any]:
    """What belongs beside every number."""
    frames = judgement.actions.frames
    judged = mask_evaluated_frames(frames, judgement.config)
    return {
        "per_frame_capacity": judgement.config.per_frame_capacity,
        "frames_judged": int(judged.sum()),
        "frames_without_truth": int((judged & ~frames.has_truth).sum()),
        "frames_excluded": int(frames.excluded.sum()),
        "claims_judged": len(judgement.claims),
        "claims_over_capacity": judgement.over_capacity,
    }


def _told_ties(tied: dict[str, Any] | None) -> tuple[str, ...]:
    """How far an unstable sort may move the mean, in words."""
    if tied is None:
        return ()
    metric, (low, high) = next(iter(tied["span"].items()))
    moved = len(tied["span"]) - 1
    return (
        f"{tied['claims']:,} predictions share their score with others, some right and some wrong: the "
        f"published evaluator's sort leaves their order open, and its {metric} may be from {low:.4f} "
        f"to {high:.4f} ({moved} class{'es' * (moved > 1)} moved)",
    )


def _notes(judgement: Judgement) -> tuple[str, ...]:
    claims = judgement.actions.claims
    if not len(claims):
        return ("nothing is predicted",)
    if len(judgement.claims):
        return ()
    return (f"none of the {len(claims):,} predictions lies on a judged frame; compare the names of videos",)
