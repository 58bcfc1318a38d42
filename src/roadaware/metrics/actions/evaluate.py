"""Frame mean average precision of actions: boxes with several scored labels each, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.metrics.actions import instances
from roadaware.metrics.actions.config import ActionConfig
from roadaware.metrics.actions.frames import judged_frames, left_out
from roadaware.metrics.actions.inputs import read_actions
from roadaware.metrics.actions.judging import ABSORBED, Judgement, judge_actions
from roadaware.metrics.judged import SceneResult, result
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes


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

    A claim is one label of one box, with a score. It is right where its box overlaps a true box of its
    frame and label enough (IoU of at least `min_iou`) that no claim of a higher score has met. The claims
    of a label, from all judged frames, are ranked by score; the average precision is read off the ranking,
    and its mean over the labels is the metric. In [0, 1]; higher is better.

    Args:
        predictions: boxes with `labels` of the kind `action`, each with a score, in the order of the file; or
            boxes with dense `scores` of that kind.
        scenes: boxes with `labels` of that kind; frames with `annotated` false are excluded.
        config: how they are judged; see `config.CONFIGS`.
        by: of `category`, `density` (different true boxes in the frame) and `split`, by which the frames
            are sliced.
        draws: resamples of videos; 0 gives no intervals.
        seed: of the resamples.

    Returns:
        The metrics; instances of the levels `claim`, `truth` and `confusion`; facts with the capacity, and
        how many frames were judged.

    Raises:
        InputError: if there is no truth, or claims and truth do not fit each other.
        UsageError: if `draws` is negative or there is nothing of that name to slice by.

    Source: Gu et al., CVPR 2018, section 5; the evaluators named in `config`.
    """
    judgement = judge_actions(read_actions(predictions, scenes), config)
    _check_judged(judgement)
    state = judgement.state()
    tied = state.tied()
    return result(
        state,
        config,
        by=by,
        draws=draws,
        seed=seed,
        notes=(*_notes(judgement), *_told_ties(tied)),
        makers={
            "claim": partial(instances.claim_rows, judgement),
            "truth": partial(instances.truth_rows, judgement),
            "confusion": partial(instances.confusion, judgement),
        },
        left_out=left_out(judgement.actions, config)
        | {
            "claims beyond the capacity of their frame": judgement.over_capacity,
            "claims of boxes without area": judgement.flat,
            "claims on truth to ignore": int((judgement.met == ABSORBED).sum()),
        },
        facts=_facts(judgement) | ({} if tied is None else {"tied_scores": tied}),
    )


def confusion(
    predictions: Predictions, scenes: Scenes, config: ActionConfig, *, min_score: float = 0.0
) -> pl.DataFrame:
    """Which labels stood where others were claimed: `truth`, `claimed`, `claims`, `mean_score`.

    Args:
        predictions: as in `evaluate`.
        scenes: as in `evaluate`.
        config: how they are judged.
        min_score: claims below it do not count. Where every box is claimed to be everything, it is what
            makes the table speak.

    Raises:
        InputError: as in `evaluate`.
    """
    judgement = judge_actions(read_actions(predictions, scenes), config)
    return instances.confusion(judgement, min_score)


def _check_judged(judgement: Judgement) -> None:
    """Raises InputError where every frame with truth is excluded."""
    if not len(judgement.truth):
        frames = judgement.actions.frames
        raise InputError(
            f"there is no truth: all {int(frames.has_truth.sum()):,} frames that have some are excluded",
            hint="is this the file of excluded timestamps of another set?",
        )


def _facts(judgement: Judgement) -> dict[str, Any]:
    """What belongs beside every number."""
    frames = judgement.actions.frames
    judged = judged_frames(frames, judgement.config)
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
        f"{tied['claims']:,} claims share their score with others, some right and some wrong: the "
        f"published evaluator's sort leaves their order open, and its {metric} may be from {low:.4f} "
        f"to {high:.4f} ({moved} class{'es' * (moved > 1)} moved)",
    )


def _notes(judgement: Judgement) -> tuple[str, ...]:
    claims = judgement.actions.claims
    if not len(claims):
        return ("nothing is claimed",)
    if len(judgement.claims):
        return ()
    return (f"none of the {len(claims):,} claims lies on a judged frame; compare the names of videos",)
