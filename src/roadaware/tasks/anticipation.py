"""Event anticipation: tubes that are expected some seconds ahead, from detections so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import label_paths
from roadaware.models.event_head.anticipation import AnticipationHead, ConstantVelocity
from roadaware.models.event_head.head import EventHead
from roadaware.scenes.dense_scores import get_score_layout, set_score_layout
from roadaware.scenes.tables import Meta, Predictions
from roadaware.tasks.events import USUAL_FPS, EventLabeller, iterate_labelled, list_sized_videos

KINDS = ("agentness", "action", "location")


def anticipate_events(
    predictions: Predictions,
    events: EventHead,
    head: AnticipationHead,
    linker: LinkerConfig,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
) -> dict[float, Predictions]:
    """What is expected at each horizon: boxes at the frames that they are expected in, with labelled tubes.

    Detections are linked and looked at in their order, each with what came before it alone. A box that is expected
    for frame f at a horizon of h seconds was said h seconds before: `ready_s` holds that time. Its score is the
    detection's times the probability that the object is still seen, its dense scores are those of `KINDS`. Tables hold no
    images, so the own motion is only what boxes tell of it.

    Args:
        predictions: detections of agents with `score` and dense `scores`, not linked; `videos` with sizes, and frame rates
            (12 where they are not known).
        events: says what holds now.
        head: says what is expected.
        linker: links the detections.
        vocabularies: the labels of `action` and `location` that are wanted, such as those of the ground truth; others of the
            head are left out (default: all of the head's).

    Returns:
        Seconds ahead to predictions, which `evaluate` judges as any others: frame-mAP and video-mAP of the future.

    Raises:
        UsageError: if the predictions are linked already, have no agents or scores, the size of a video is not known, or
            none of the labels that are wanted is known.

    Source: the task is announced by Singh et al., TPAMI 2022, section 6.
    """
    if not predictions.tubes.is_empty():
        raise UsageError(
            f"the predictions have {len(predictions.tubes)} tubes; events are anticipated of detections"
        )
    if predictions.boxes.is_empty():
        return {horizon_s: Predictions(videos=predictions.videos) for horizon_s in head.horizons_s}
    if lacking := [name for name in ("score", "scores") if name not in predictions.boxes.columns]:
        raise UsageError(f"detections need {' and '.join(lacking)}: agentness and dense class scores")
    kinds = dict(get_score_layout(predictions.meta, "boxes").kinds)
    labeller, velocity = EventLabeller(events, kinds, linker), ConstantVelocity()
    lengths = {}
    if "n_frames" in predictions.videos.columns:
        lengths = dict(predictions.videos.select(pl.col("video").cast(pl.String), "n_frames").iter_rows())
    wanted = {
        kind: [
            k for k, name in enumerate(names) if vocabularies is None or name in vocabularies.get(kind, ())
        ]
        for kind, names in (("action", head.actions), ("location", head.locations))
    }
    for kind, places in wanted.items():
        if not places:
            raise UsageError(f"none of the labels of {kind} that are wanted is one of the head's")
    parts: dict[float, list[pl.DataFrame]] = {horizon_s: [] for horizon_s in head.horizons_s}
    first_path = 0
    for video, size, fps in list_sized_videos(predictions):
        labeller.reset()
        velocity.reset()
        most = -1
        for found, t_s in iterate_labelled(predictions, video, labeller, size, fps):
            linked = labeller.linked
            if linked is None:
                continue
            velocity.end(linked.ended)
            if not len(linked.rows):
                continue
            boxes = np.asarray(found.boxes, np.float64)[linked.rows]
            now, speed = velocity.step(t_s, linked.numbers, boxes)
            expected = head.anticipate(linked.features, linked.logits, now, speed)
            most = max(most, int(linked.numbers.max()))
            for k, horizon_s in enumerate(head.horizons_s):
                frame = found.frame + max(1, round(horizon_s * (fps or USUAL_FPS)))
                end = lengths.get(video)
                if end is not None and frame >= end:
                    continue
                # What leaves the image is expected at its edge, as it is annotated; what has left is not expected.
                x1, y1, x2, y2 = np.clip(expected.boxes[:, k], 0, np.tile(size, 2)).T
                inside = np.flatnonzero((x2 > x1) & (y2 > y1))
                score = (found.agentness[linked.rows] * expected.present[:, k])[inside]
                labels = np.hstack(
                    [
                        expected.actions[:, k, wanted["action"]],
                        expected.locations[:, k, wanted["location"]],
                    ]
                )[inside]
                scores = np.hstack([score[:, None], labels * score[:, None]]).astype(np.float32)
                parts[horizon_s].append(
                    pl.DataFrame(
                        {
                            "video": [video] * len(score),
                            "frame": [frame] * len(score),
                            "x1_px": x1[inside], "y1_px": y1[inside], "x2_px": x2[inside], "y2_px": y2[inside],
                            "score": score,
                            "scores": pl.Series(scores, dtype=pl.Array(pl.Float32, scores.shape[1])),
                            "ready_s": [t_s] * len(score),
                            "path": first_path + linked.numbers[inside],
                        }
                    )
                )  # fmt: skip
        first_path += most + 1
    named = {
        "agentness": ("agentness",),
        "action": tuple(head.actions[k] for k in wanted["action"]),
        "location": tuple(head.locations[k] for k in wanted["location"]),
    }
    meta = set_score_layout(Meta(dataset=predictions.meta.dataset, vocabularies=named), "boxes", KINDS)
    return {horizon_s: _build(held, predictions.videos, meta, linker) for horizon_s, held in parts.items()}


def _build(parts: list[pl.DataFrame], videos: pl.DataFrame, meta: Meta, linker: LinkerConfig) -> Predictions:
    """The tables of one horizon."""
    if not parts:
        return Predictions(videos=videos, meta=meta)
    rows = pl.concat(parts)
    _, path = np.unique(rows["path"].to_numpy(), return_inverse=True)
    boxes = rows.drop("path").with_columns(box=pl.int_range(pl.len()))
    # A gap that is filled between two boxes would know of the later one before it was said.
    linker = replace(linker, gaps="keep")
    return label_paths(Predictions(videos=videos, boxes=boxes, meta=meta), path.astype(np.int64), linker)
