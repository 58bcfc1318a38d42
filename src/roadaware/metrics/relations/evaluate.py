"""Relations: recall and precision of tubelets, and recall of triplets in frames, from tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.metrics.metric_state import SceneResult, build_result, crowd_density
from roadaware.metrics.relations.config import RelationConfig
from roadaware.metrics.relations.frames import Triplets, match_triplets, select_images
from roadaware.metrics.relations.predcls import ensure_predicted_boxes, map_to_true_tubes
from roadaware.metrics.relations.rows import (
    Names,
    Relations,
    extract_relations,
    extract_tracks,
    map_categories,
    merge_names,
)
from roadaware.metrics.relations.state import JudgedRelations
from roadaware.metrics.relations.tubelets import Tubelets, match_video_tubelets
from roadaware.scenes.tables import Predictions, Scenes

# Relations one by one: what each prediction found, which prediction found each ground-truth one, and what each frame lacks.


def build_prediction_table(judged: Tubelets, names: Names) -> pl.DataFrame:
    """One row per prediction that was judged, by video and rank.

    Returns:
        `relation`, `video`, `predicate`, `score`, `rank`; `hit`; `truth`, the ground-truth relation it found, or
        else that of its triplet which it overlaps most, found by a better prediction or not; `subject_viou` and
        `object_viou`, the overlap with that; null where there is none of its triplet.
    """
    claims = judged.claims
    near = np.where(judged.hit, judged.taken, judged.near)
    viou = np.where(near[:, None] >= 0, judged.overlap, np.nan)
    return pl.DataFrame(
        {
            "relation": claims.relation,
            "video": _gather_names(names.videos, claims.video),
            "predicate": _gather_names(names.predicates, claims.predicate),
            "score": claims.score,
            "rank": judged.rank,
            "hit": judged.hit,
            "truth": _looked_up(judged.truth.relation, near),
            "subject_viou": pl.Series(viou[:, 0], nan_to_null=True),
            "object_viou": pl.Series(viou[:, 1], nan_to_null=True),
        }
    )


def build_truth_table(judged: Tubelets, names: Names) -> pl.DataFrame:
    """One row per ground-truth relation, by video and place in the table.

    Returns:
        `relation`, `video`, `predicate`, `start_frame`, `end_frame`; `claim`, the prediction that found it, and
        `rank`, its place among those of the video; null where none did.
    """
    truth = judged.truth
    claim = np.full(len(truth), -1, dtype=np.int64)
    claim[judged.taken[judged.hit]] = np.flatnonzero(judged.hit)
    return pl.DataFrame(
        {
            "relation": truth.relation,
            "video": _gather_names(names.videos, truth.video),
            "predicate": _gather_names(names.predicates, truth.predicate),
            "start_frame": truth.start,
            "end_frame": truth.end,
            "claim": _looked_up(judged.claims.relation, claim),
            "rank": _looked_up(judged.rank, claim),
        }
    )


def build_frame_table(judged: Triplets, names: Names, recall_at: tuple[int, ...]) -> pl.DataFrame:
    """One row per frame that was judged, by video and frame.

    Returns:
        `video`, `frame`; `truth`, its ground-truth triplets; `found@K`, those that its K best predictions find.
    """
    asked, found = judged.by_image(recall_at)
    return pl.DataFrame(
        {
            "video": _gather_names(names.videos, judged.images.video),
            "frame": judged.images.frame,
            "truth": asked,
            **{f"found@{n}": found[:, k] for k, n in enumerate(recall_at)},
        }
    )


def _gather_names(names: tuple[str, ...], index: Ints) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(index)


def _looked_up(values: Ints, index: Ints) -> pl.Series:
    """The values at places, null where the place is -1."""
    found = np.append(values, 0)[index]
    return pl.Series(found).set(pl.Series(index < 0), None)


_NOT_TRUE = "predictions that are not on true tubes"


@dataclass(frozen=True, eq=False)
class _Found:
    """What was judged, and what was not.

    Args:
        names: of both sides.
        truth: ground-truth relations.
        claims: predicted ones of the videos of the ground truth.
        left_out: what was not judged, in words, to how often.
        tubelets: None unless judged.
        triplets: None unless judged.
    """

    names: Names
    truth: Relations
    claims: Relations
    left_out: dict[str, int]
    tubelets: Tubelets | None
    triplets: Triplets | None


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: RelationConfig,
    *,
    by: Sequence[str] = (),
    draws: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Judge predicted relations.

    Args:
        predictions: `relations` with scores, between tubes with boxes and labels of the kind `category`.
            Predicates and categories are matched by name.
        scenes: `relations` between such tubes.
        config: how.
        by: columns of videos to slice by: `category`, `density` (ground-truth boxes in a frame with any, on
            average), `split`.
        draws: resamples of videos for intervals.
        seed: of the resamples.

    Returns:
        Metrics `recall@K`, `map` and `precision@N` of tubelets; `frame_recall@K`, `frame_recall@K_per_image`
        and `frame_recall@K_pooled` of frames; recalls of each predicate. All in [0, 1], higher is better.
        Instances `claim`, `truth` and `frame`.

    Raises:
        InputError: if there is no ground-truth relation, or a relation lacks what judging it needs.
        UsageError: if the videos have no column to slice by.

    Source: VidVRD-helper (tubelets), TRACE (frames); see `match_video_tubelets` and `match_triplets`.
    """
    found = _match_relations(predictions, scenes, config)
    state = _state(found, scenes, config)
    makers: dict[str, Callable[[], pl.DataFrame]] = {}
    tubelets, triplets, names = found.tubelets, found.triplets, found.names
    if tubelets is not None:
        makers["claim"] = lambda: build_prediction_table(tubelets, names)
        makers["truth"] = lambda: build_truth_table(tubelets, names)
    if triplets is not None:
        makers["frame"] = lambda: build_frame_table(triplets, names, config.recall_at)
    return build_result(
        *(state, config),
        by=by,
        draws=draws,
        seed=seed,
        notes=_notes(predictions, scenes, found),
        makers=makers,
        left_out=found.left_out,
        facts=_facts(found, state, config),
    )


def _facts(found: _Found, state: JudgedRelations, config: RelationConfig) -> dict[str, Any]:
    """What belongs beside every number."""
    facts: dict[str, Any] = {
        "setting": config.setting,
        "relations": len(found.truth),
        "claims": len(found.claims),
        "videos_without_truth": int((state.truth.sum(axis=1) == 0).sum()),
    }
    if config.frames:
        facts |= {
            "frames_judged": int(state.images[:, 0].sum()),
            "frames_without_truth": int((state.images[:, 0] - state.images[:, 1]).sum()),
            "averaging": config.averaging,
            "predicates_per_pair": config.predicates_per_pair or "all",
            "claims_per_frame": config.frame_top or "all",
        }
    return facts


def _match_relations(predictions: Predictions, scenes: Scenes, config: RelationConfig) -> _Found:
    """Ground truth and predictions as arrays, matched in the ways that the config asks for."""
    if scenes.relations.is_empty():
        raise InputError(
            f"there is no true relation in {scenes.meta.dataset or 'the truth'}; nothing can be judged",
            hint="relations are read from files that have them, such as those of VidVRD or VidOR",
        )
    names = merge_names(scenes, predictions)
    n_videos = len(names.videos)
    truth, claims, left_out = _sides(predictions, scenes, names, config)
    tubelets = triplets = None
    if config.tubelets:
        tubelets = match_video_tubelets(claims, truth, n_videos, config)
        left_out["predictions beyond the best of their video"] = tubelets.beyond
        judged = np.diff(truth.starts(n_videos))[tubelets.claims.video] > 0
        left_out["predictions in videos without a true relation"] = int((~judged).sum())
    if config.frames:
        triplets = match_triplets(claims, truth, select_images(scenes, names.videos), n_videos, config)
    return _Found(names, truth, claims, left_out, tubelets, triplets)


def _sides(
    predictions: Predictions, scenes: Scenes, names: Names, config: RelationConfig
) -> tuple[Relations, Relations, dict[str, int]]:
    """Ground truth, predictions, and the predictions that are neither right nor wrong."""
    known = predictions.relations["video"].cast(pl.String).is_in(list(names.videos))
    left_out = {"predictions in videos that the truth does not have": int((~known).sum())}
    here = predictions.relations.filter(known)
    truth = extract_relations(scenes, names)
    if config.setting == "sgdet":
        ensure_predicted_boxes(predictions)
        return truth, extract_relations(predictions, names, relations=here), left_out
    meant, refused = map_to_true_tubes(predictions, scenes, here)
    left_out[_NOT_TRUE] = refused
    tubes = np.unique(np.concatenate([meant[side].to_numpy() for side in ("subject", "object")]))
    claims = extract_relations(
        predictions,
        names,
        relations=meant,
        tracks=extract_tracks(scenes, tubes.astype(np.int64)),
        category=map_categories(scenes, names),
    )
    return truth, claims, left_out


def _state(found: _Found, scenes: Scenes, config: RelationConfig) -> JudgedRelations:
    """The counts of each video."""
    n_videos, classes = len(found.names.videos), found.names.predicates
    n_recalls = len(config.recall_at)
    truth = np.zeros((n_videos, len(classes)), dtype=np.int64)
    np.add.at(truth, (found.truth.video, found.truth.predicate), 1)
    shape = (n_videos, len(classes), n_recalls)
    hits, ap = np.zeros(shape, dtype=np.int64), np.full(n_videos, np.nan)
    tagged = np.full((n_videos, len(config.precision_at)), np.nan)
    if found.tubelets is not None:
        hits = found.tubelets.hits(n_videos, len(classes), config.recall_at)
        ap, tagged = found.tubelets.ap, found.tubelets.tagged
    images, image_sums = np.zeros((n_videos, 2), dtype=np.int64), np.zeros((n_videos, n_recalls))
    of_class = (np.zeros((*shape[:2], 2), dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape))
    if found.triplets is not None:
        video = found.triplets.images.video
        asked, right = found.triplets.by_image(config.recall_at)
        np.add.at(images, video, np.stack([np.ones_like(asked), asked > 0], axis=1))
        np.add.at(image_sums, video, right / np.maximum(asked, 1)[:, None])
        of_class = found.triplets.by_class(n_videos, len(classes), config.recall_at)
    items = _items(scenes)
    return JudgedRelations(items, config, classes, truth, hits, ap, tagged, images, image_sums, *of_class)


def _items(scenes: Scenes) -> pl.DataFrame:
    """The videos of the ground truth with the columns to slice by."""
    videos = scenes.videos.select(
        pl.col("video").cast(pl.String),
        *(pl.col("category").cast(pl.String) for _ in [0] if "category" in scenes.videos.columns),
        *(pl.col("splits").list.join(", ").alias("split") for _ in [0] if "splits" in scenes.videos.columns),
    )
    crowds = scenes.boxes.group_by(pl.col("video").cast(pl.String)).agg(
        crowd=pl.len() / pl.col("frame").n_unique()
    )
    joined = videos.join(crowds, on="video", how="left", maintain_order="left")
    return joined.with_columns(density=crowd_density(pl.col("crowd"))).drop("crowd")


def _notes(predictions: Predictions, scenes: Scenes, found: _Found) -> tuple[str, ...]:
    """What explains numbers that look wrong."""
    notes = []
    refused = found.left_out.get(_NOT_TRUE, 0)
    if refused and not len(found.claims):
        notes.append(
            "no prediction is on true tubes: predcls needs predictions on boxes of the truth, or on tubes of its names"
        )
    elif len(predictions.relations) and not len(found.claims):
        first = predictions.relations["video"].cast(pl.String)[0]
        notes.append(
            f"no prediction is judged; the first is of '{first}', the truth has '{found.names.videos[0]}'"
        )
    triplets = np.unique(found.truth.triplet)
    if len(found.claims) and not np.isin(found.claims.triplet, triplets).any():
        notes.append(
            "no prediction says what any true relation says: categories or predicates have other names"
        )
    return tuple(notes)
