"""Relations: recall and precision of tubelets, and recall of triplets in frames, from tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.metric_state import (
    SceneResult,
    build_result,
    compute_values,
    crowd_density,
    refuse_other_units,
)
from roadaware.metrics.relation_kernels import (
    collect_true_triplets,
    cut,
    find_triplets,
    match_tubelets,
    score_tubelets,
)
from roadaware.metrics.relation_rows import (
    CATEGORY,
    JudgedRelations,
    Names,
    RelationConfig,
    Relations,
    extract_relations,
    extract_tracks,
    map_categories,
    merge_names,
)
from roadaware.metrics.relation_rows import CONFIGS as CONFIGS
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

# Relations frame by frame: which ground-truth triplets of each image the best predictions find.


# More than there can be.
_ALL = 1 << 62


@dataclass(frozen=True, eq=False)
class Images:
    """The frames that are judged, by video and frame.

    Args:
        video: (i,) index of the video.
        frame: (i,) the frame.
    """

    video: Ints
    frame: Ints

    def starts(self, n_videos: int) -> Ints:
        """(V + 1,) where the images of each video begin."""
        return np.searchsorted(self.video, np.arange(n_videos + 1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Triplets:
    """The ground-truth triplets of each image, and which of its predictions find them.

    Args:
        images: the frames that are judged.
        truth: ground-truth relations by video.
        image: (e,) the image of each ground-truth triplet, not decreasing.
        relation: (e,) place of its ground-truth relation.
        rank: (e,) rank among the predictions of the image that finds it, from 1; 0 where none does.
        silent: images without a prediction, of those with a ground-truth triplet at least.
    """

    images: Images
    truth: Relations
    image: Ints
    relation: Ints
    rank: Ints
    silent: int

    def found(self, n: int) -> Ints:
        """(e,) 1 where one of the `n` best predictions of the image finds the triplet, else 0.

        Source: TRACE, evaluation of scene graphs (recall at n).
        """
        return ((self.rank > 0) & (self.rank <= n)).astype(np.int64)

    def by_class(
        self, n_videos: int, n_classes: int, recall_at: tuple[int, ...]
    ) -> tuple[Ints, Ints, Floats]:
        """Counts by video and predicate.

        Returns:
            (V, C, 2) images with a ground-truth triplet of the predicate, and ground-truth triplets; (V, C, K) those found;
            (V, C, K) sum over images of the share that is found.
        """
        predicate = self.truth.predicate[self.relation]
        cells, where = np.unique(self.image * n_classes + predicate, return_inverse=True)
        video, cls = self.images.video[cells // n_classes], cells % n_classes
        asked = np.bincount(where, minlength=len(cells))
        counts = np.zeros((n_videos, n_classes, 2), dtype=np.int64)
        np.add.at(counts, (video, cls), np.stack([np.ones_like(asked), asked], axis=1))
        hits = np.zeros((n_videos, n_classes, len(recall_at)), dtype=np.int64)
        shares = np.zeros(hits.shape)
        for k, n in enumerate(recall_at):
            found = np.bincount(where, weights=self.found(n), minlength=len(cells))
            np.add.at(hits, (video, cls, k), found.astype(np.int64))
            np.add.at(shares, (video, cls, k), found / np.maximum(asked, 1))
        return counts, hits, shares

    def by_image(self, recall_at: tuple[int, ...]) -> tuple[Ints, Ints]:
        """(i,) ground-truth triplets of each image, and (i, K) those found."""
        n_images = len(self.images.frame)
        asked = np.bincount(self.image, minlength=n_images)
        found = [np.bincount(self.image, weights=self.found(n), minlength=n_images) for n in recall_at]
        return asked, np.stack(found, axis=1).astype(np.int64)


def select_images(scenes: Scenes, videos: tuple[str, ...]) -> Images:
    """The annotated frames of each video, or, where nothing is said of annotation, those with a ground-truth box."""
    boxed = _list_frames(scenes.boxes, videos)
    table = scenes.frames
    if "annotated" not in table.columns:
        return boxed
    table = table.filter(pl.col("annotated").is_not_null())
    annotated = _list_frames(table.filter("annotated"), videos)
    silent = ~np.isin(boxed.video, _list_frames(table, videos).video)
    video, frame = (
        np.concatenate([getattr(annotated, name), getattr(boxed, name)[silent]])
        for name in ("video", "frame")
    )
    order = np.lexsort((frame, video))
    return Images(video[order], frame[order])


def match_triplets(
    predictions: Relations, truth: Relations, images: Images, n_videos: int, config: RelationConfig
) -> Triplets:
    """Match the predictions of each image that have both boxes with its ground-truth triplets.

    The score of a prediction is the product of its own and those of its two tubes. Of the predictions of an image,
    each pair of tubes keeps its best predicates (the same predicate once); of these the best of the image
    are walked, those without enough score left out. A prediction finds a ground-truth triplet that says the same where
    both boxes overlap by the threshold. Equal scores stand in the order in which the pairs first stand in
    the image, by place in the table, then by predicate.

    Args:
        predictions: by video and place in the table.
        truth: the same.
        images: the frames that are judged.
        n_videos: how many videos there are.
        config: how.

    Source: TRACE, evaluation of scene graphs; after Zellers et al., CVPR 2018.
    """
    predictions, pair, same = _rank_predictions(predictions)
    # (e, 4) the ground-truth triplets of each image: image, relation, box of the subject and of the object.

    starts = images.starts(n_videos)
    _, repeated = _group_rows(truth.subject, truth.object, truth.predicate)
    entries: Ints = collect_true_triplets(
        *(starts, images.frame, truth.starts(n_videos), truth.start, truth.end, truth.subject, truth.object),
        *(truth.tracks.offsets, truth.tracks.frames, repeated, config.repeated_truth == "once"),
    )
    of_image = np.searchsorted(entries[:, 0], np.arange(len(images.frame) + 1)).astype(np.int64)
    rank = np.zeros(len(entries), dtype=np.int64)
    top = min(config.frame_top or _ALL, max(config.recall_at))
    least = -np.inf if config.frame_min_score is None else float(config.frame_min_score)
    score = predictions.score * predictions.pair_score
    tied = _find_ties(predictions.video, pair, score)
    silent = find_triplets(
        (
            *(
                predictions.starts(n_videos),
                predictions.start,
                predictions.end,
                predictions.subject,
                predictions.object,
                predictions.triplet,
                pair,
                same,
                score,
                predictions.row,
            ),
        ),
        (np.searchsorted(predictions.video[tied], np.arange(n_videos + 1)), tied),
        predictions.tracks.arrays(),
        (images.video, images.frame, of_image),
        (entries, truth.triplet, truth.tracks.boxes),
        (config.predicates_per_pair or _ALL, top),
        (least, float(config.iou_threshold), float(config.frame_pixel_offset)),
        (config.several_truths, config.frame_precision == "float32", config.silent_frames == "carried"),
        rank,
    )
    return Triplets(images, truth, entries[:, 0], entries[:, 1], rank, silent)


def _rank_predictions(predictions: Relations) -> tuple[Relations, Ints, Ints]:
    """The predictions by video and falling score, and the numbers of their pair, and of pair and predicate."""
    ends = (predictions.subject, predictions.object)
    (first, pair), (_, same) = _group_rows(*ends), _group_rows(*ends, predictions.predicate)
    score = predictions.score * predictions.pair_score
    order = np.lexsort((predictions.predicate, -predictions.score, first[pair], -score, predictions.video))
    return predictions.taken(order), pair[order], same[order]


def _find_ties(video: Ints, pair: Ints, score: Floats) -> Ints:
    """Places of the predictions, by video and falling score, whose pair has the score of another pair once."""
    alike = (video[1:] == video[:-1]) & (score[1:] == score[:-1])
    run = np.concatenate([[0], np.cumsum(~alike)])[: len(video)]
    several = np.bincount(run[1:][alike & (pair[1:] != pair[:-1])], minlength=len(video) + 1) > 0
    return np.flatnonzero(np.isin(pair, pair[several[run]])).astype(np.int64)


def _group_rows(*columns: Ints) -> tuple[Ints, Ints]:
    """Where each distinct row first stands, and the number of each row's."""
    key = columns[0]
    for column in columns[1:]:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), number.astype(np.int64)


def _list_frames(table: pl.DataFrame, videos: tuple[str, ...]) -> Images:
    """The distinct frames of a table, by video."""
    names = pl.DataFrame(
        {"video": videos, "at": np.arange(len(videos))}, schema={"video": pl.String, "at": pl.Int64}
    )
    frames = table.select(pl.col("video").cast(pl.String), "frame").unique()
    rows = frames.join(names, on="video").sort("at", "frame")
    return Images(*(np.array(rows[column].to_numpy(), dtype=np.int64) for column in ("at", "frame")))


# Predictions about given tubes: which ground-truth tubes they mean, and the predictions on those.


def map_to_true_tubes(
    predictions: Predictions, scenes: Scenes, predicted: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """The predicted relations between ground-truth tubes, and how many are on others.

    A predicted tube is a ground-truth one of its video that has its name; or else one whose boxes equal its own, in
    single precision, in every frame that it has (of several, the one of its category, then the first).
    Predictions without tubes of their own name those of the ground truth by number. A prediction with a tube that
    is none of these, or with the same for subject and object where it predicted two, is not judged.

    Args:
        predictions: with the tubes that are predicted.
        scenes: with `tubes`.
        predicted: rows of `predictions.relations`.

    Returns:
        The rows with the numbers of ground-truth tubes; how many were left out.
    """
    if predictions.tubes.is_empty():
        meant = scenes.tubes.select(predicted="tube", true="tube")
    else:
        # Predicted tubes to the ground-truth ones of the same video and name.
        nothing = pl.DataFrame(schema={"predicted": pl.Int64, "true": pl.Int64})
        if "name" not in predictions.tubes.columns or "name" not in scenes.tubes.columns:
            by_name = nothing
        else:
            key = (pl.col("video").cast(pl.String), pl.col("name").cast(pl.String))
            true = scenes.tubes.select(*key, true="tube").drop_nulls().unique(["video", "name"], keep="first")
            named = predictions.tubes.select(*key, predicted="tube").drop_nulls()
            by_name = named.join(true, on=["video", "name"]).select("predicted", "true")
        rest = predictions.tubes.join(by_name, left_on="tube", right_on="predicted", how="anti")
        meant = pl.concat([by_name, _match_by_boxes(predictions, scenes, rest)])
    found = predicted
    for side in ("subject", "object"):
        pairs = meant.rename({"predicted": side, "true": f"true_{side}"})
        found = found.join(pairs, on=side, how="inner", maintain_order="left")
    merged = (pl.col("subject") != pl.col("object")) & (pl.col("true_subject") == pl.col("true_object"))
    found = found.filter(~merged)
    found = found.with_columns(subject="true_subject", object="true_object").select(predicted.columns)
    return _in_their_videos(found, scenes), len(predicted) - len(found)


def _match_by_boxes(predictions: Predictions, scenes: Scenes, asked: pl.DataFrame) -> pl.DataFrame:
    """Predicted tubes to the ground-truth ones that have all their boxes."""
    nothing = pl.DataFrame(schema={"predicted": pl.Int64, "true": pl.Int64})
    if "tube" not in predictions.boxes.columns or "tube" not in scenes.boxes.columns:
        return nothing
    corners = [pl.col(corner).cast(pl.Float32) for corner in CORNERS]
    key = (pl.col("video").cast(pl.String), pl.col("frame"), *corners)
    on = ["video", "frame", *CORNERS]
    wanted = predictions.boxes.filter(pl.col("tube").is_in(asked["tube"].implode()))
    predicted = wanted.select(*key, predicted="tube")
    true = scenes.boxes.select(*key, true="tube").drop_nulls()
    counts = predicted.group_by("predicted").len("boxes")
    equal = (
        predicted.join(true, on=on).group_by("predicted", "true").len("equal").join(counts, on="predicted")
    )
    whole = equal.filter(pl.col("equal") == pl.col("boxes")).select("predicted", "true")
    other = pl.col("category") != pl.col("category_right")
    return (
        whole.join(_categories(predictions), left_on="predicted", right_on="tube", how="left")
        .join(_categories(scenes), left_on="true", right_on="tube", how="left")
        .sort(pl.col("predicted"), other.fill_null(True), pl.col("true"))
        .unique("predicted", keep="first")
        .select("predicted", "true")
    )


def _categories(tables: Predictions | Scenes) -> pl.DataFrame:
    """Tube to the name of its category."""
    names = dict(enumerate(tables.meta.vocabularies.get("category", ())))
    labels = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == "category")
    named = [names.get(label, str(label)) for label in labels["label"].to_list()]
    return pl.DataFrame({"tube": labels["tube"], "category": pl.Series(named, dtype=pl.String)}).unique(
        "tube", keep="first"
    )


def _in_their_videos(predictions: pl.DataFrame, scenes: Scenes) -> pl.DataFrame:
    """The predictions, where each is in the video of its tubes.

    Raises:
        InputError: if one is not; only predictions without tubes of their own can be.
    """
    owners = scenes.tubes.select(pl.col("tube"), of=pl.col("video").cast(pl.String))
    for side in ("subject", "object"):
        astray = predictions.join(owners, left_on=side, right_on="tube").filter(
            pl.col("video").cast(pl.String) != pl.col("of")
        )
        if len(astray):
            shown = astray["relation"].head(5).to_list()
            raise InputError(f"predicted relations name tubes of other videos as {side}, first {shown}")
    return predictions


def ensure_predicted_boxes(predictions: Predictions) -> None:
    """Predictions of the setting `sgdet` need boxes of their own.

    Raises:
        InputError: if there are predictions and none has any.
    """
    if not predictions.relations.is_empty() and (
        "tube" not in predictions.boxes.columns or not predictions.boxes["tube"].count()
    ):
        raise InputError(
            "the predicted relations have no boxes",
            hint="give boxes of their tubes, or judge them on the true ones with setting 'predcls'",
        )


# Relations as a whole: which ground-truth ones the predictions of each video find, best first.


@dataclass(frozen=True, eq=False)
class Tubelets:
    """The matches of the predictions of a set.

    Args:
        truth: ground-truth relations by video.
        predictions: those that are judged, by video and falling score, equal scores in the order of the table.
        beyond: predictions that come after the `top_returns` best of their video.
        taken: (n,) place of the ground-truth relation that a prediction finds, -1 where none.
        near: (n,) place of the ground-truth relation of its triplet that it overlaps most, found or not; -1 where
            there is none of its triplet.
        overlap: (n, 2) what subject and object overlap those of `taken`, or else of `near`.
        rank: (n,) place of the prediction in its video, from 1.
        ap: (V,) average precision; NaN without ground truth.
        tagged: (V, P) precision of the best distinct triplets; NaN without ground truth.
    """

    truth: Relations
    predictions: Relations
    beyond: int
    taken: Ints
    near: Ints
    overlap: Floats
    rank: Ints
    ap: Floats
    tagged: Floats

    @property
    def hit(self) -> Bools:
        """(n,) whether each prediction finds a ground-truth relation."""
        marks: Bools = self.taken >= 0
        return marks

    def hits(self, n_videos: int, n_classes: int, recall_at: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """(V, C, K) how many ground-truth relations of each predicate the best predictions of each video find.

        Source: supplement of Chaotic World, ICCV 2023, section 3.2 (recall at k).
        """
        counts = np.zeros((n_videos, n_classes, len(recall_at)), dtype=np.int64)
        for k, n in enumerate(recall_at):
            among = self.hit & (self.rank <= n)
            np.add.at(counts[:, :, k], (self.predictions.video[among], self.predictions.predicate[among]), 1)
        return counts


def match_video_tubelets(
    predictions: Relations, truth: Relations, n_videos: int, config: RelationConfig
) -> Tubelets:
    """Match the predictions of each video with its ground-truth relations.

    A prediction takes, of the ground-truth relations of its triplet that no better prediction took, the one with the largest
    min(vIoU of the subjects, vIoU of the objects), and is a hit where that is at least the threshold. The
    vIoU of two tubelets is the sum over frames of the boxes' intersections by that of their unions, over
    the frames of their relations. Of equal overlaps the first in the table is taken.

    Args:
        predictions: by video and place in the table.
        truth: the same.
        n_videos: how many videos there are.
        config: how.

    Source: VidVRD-helper, evaluation of relation detection and tagging.
    """
    predictions = predictions.taken(np.lexsort((-predictions.score, predictions.video)))
    rank = np.arange(len(predictions)) - predictions.starts(n_videos)[predictions.video] + 1
    kept = np.ones(len(predictions), dtype=np.bool_)
    if config.top_returns is not None:
        kept = rank <= config.top_returns
    beyond, predictions, rank = int((~kept).sum()), predictions.taken(kept), rank[kept]
    taken, near = (np.full(len(predictions), -1, dtype=np.int64) for _ in range(2))
    overlap = np.full((len(predictions), 2), np.nan)
    numbers = (float(config.pixel_offset), float(config.viou_threshold))
    match_tubelets(_side(predictions, n_videos), _side(truth, n_videos), numbers, taken, near, overlap)
    starts, true_starts = predictions.starts(n_videos), truth.starts(n_videos)
    counts = np.array(config.precision_at, dtype=np.int64)
    ap, tagged = np.zeros(n_videos), np.empty((n_videos, len(counts)))
    single = config.precision == "float32"
    score_tubelets(starts, predictions.triplet, taken, true_starts, truth.triplet, counts, single, ap, tagged)
    untrue = np.diff(true_starts) == 0
    ap[untrue], tagged[untrue] = np.nan, np.nan
    return Tubelets(truth, predictions, beyond, taken, near, overlap, rank, ap, tagged)


def _side(relations: Relations, n_videos: int) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """What the kernel takes of ground truth or predictions."""
    tracks, when = relations.tracks, (relations.start, relations.end)
    subject, object_ = (
        cut(tube, *when, tracks.offsets, tracks.frames) for tube in (relations.subject, relations.object)
    )
    starts = relations.starts(n_videos)
    return starts, relations.triplet, subject, object_, tracks.frames, tracks.boxes


# Relations one by one: what each prediction found, which prediction found each ground-truth one, and what each frame lacks.


def build_prediction_table(judged: Tubelets, names: Names) -> pl.DataFrame:
    """One row per prediction that was judged, by video and rank.

    Returns:
        `relation`, `video`, `predicate`, `score`, `rank`; `hit`; `truth`, the ground-truth relation it found, or
        else that of its triplet which it overlaps most, found by a better prediction or not; `subject_viou` and
        `object_viou`, the overlap with that; null where there is none of its triplet.
    """
    predictions = judged.predictions
    near = np.where(judged.hit, judged.taken, judged.near)
    viou = np.where(near[:, None] >= 0, judged.overlap, np.nan)
    return pl.DataFrame(
        {
            "relation": predictions.relation,
            "video": _gather_names(names.videos, predictions.video),
            "predicate": _gather_names(names.predicates, predictions.predicate),
            "score": predictions.score,
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
        `relation`, `video`, `predicate`, `start_frame`, `end_frame`; `prediction`, the prediction that found it, and
        `rank`, its place among those of the video; null where none did.
    """
    truth = judged.truth
    prediction = np.full(len(truth), -1, dtype=np.int64)
    prediction[judged.taken[judged.hit]] = np.flatnonzero(judged.hit)
    return pl.DataFrame(
        {
            "relation": truth.relation,
            "video": _gather_names(names.videos, truth.video),
            "predicate": _gather_names(names.predicates, truth.predicate),
            "start_frame": truth.start,
            "end_frame": truth.end,
            "prediction": _looked_up(judged.predictions.relation, prediction),
            "rank": _looked_up(judged.rank, prediction),
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
    places = pl.Series(index)
    return pl.Series(values).gather(places.set(places < 0, None))


_NOT_TRUE = "predictions that are not on true tubes"


@dataclass(frozen=True, eq=False)
class _Found:
    """What was judged, and what was not.

    Args:
        names: of both sides.
        truth: ground-truth relations.
        predictions: predicted ones of the videos of the ground truth.
        left_out: what was not judged, in words, to how often.
        tubelets: None unless judged.
        triplets: None unless judged.
    """

    names: Names
    truth: Relations
    predictions: Relations
    left_out: dict[str, int]
    tubelets: Tubelets | None
    triplets: Triplets | None


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: RelationConfig,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
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
        resamples: resamples of videos for intervals.
        seed: of the resamples.

    Returns:
        Metrics `recall@K`, `map` and `precision@N` of tubelets; `frame_recall@K`, `frame_recall@K_per_image`
        and `frame_recall@K_pooled` of frames; recalls of each predicate. All in [0, 1], higher is better.
        Instances `prediction`, `truth` and `frame`.

    Raises:
        InputError: if there is no ground-truth relation, or a relation lacks what judging it needs.
        UsageError: if the videos have no column to slice by.

    Source: VidVRD-helper (tubelets), TRACE (frames); see `match_video_tubelets` and `match_triplets`.
    """
    found = _match_relations(predictions, scenes, config)
    state = _state(found, scenes, config)
    makers: dict[str, Callable[[], pl.DataFrame]] = {}
    tubelets, triplets, names = found.tubelets, found.triplets, found.names
    carried = compute_carried(found, scenes, config)
    if tubelets is not None:
        makers["prediction"] = lambda: build_prediction_table(tubelets, names)
        makers["truth"] = lambda: build_truth_table(tubelets, names)
    if triplets is not None:
        makers["frame"] = lambda: build_frame_table(triplets, names, config.recall_at)
    # What explains numbers that look wrong.
    notes = []
    refused = found.left_out.get(_NOT_TRUE, 0)
    if refused and not len(found.predictions):
        notes.append(
            "no prediction is on true tubes: predcls needs predictions on boxes of the truth, or on tubes of its names"
        )
    elif len(predictions.relations) and not len(found.predictions):
        first = predictions.relations["video"].cast(pl.String)[0]
        notes.append(
            f"no prediction is judged; the first is of '{first}', the truth has '{found.names.videos[0]}'"
        )
    nameless = [
        side.tube_labels.filter(pl.col("kind").cast(pl.String) == CATEGORY).is_empty()
        for side in (scenes, predictions)
    ]
    if len(found.predictions) and nameless[0] != nameless[1]:
        side = "the truth" if nameless[0] else "the predictions"
        notes.append(f"tubes of {side} have no category: relations are compared by predicate and boxes alone")
    if len(found.predictions) and set(found.truth.triplet).isdisjoint(found.predictions.triplet):
        notes.append(
            "no prediction says what any true relation says: categories or predicates have other names"
        )
    return build_result(
        *(state, config),
        by=by,
        resamples=resamples,
        seed=seed,
        notes=(*notes, *_tell_carried(carried)),
        makers=makers,
        left_out=found.left_out,
        facts=_facts(found, state, config) | ({} if carried is None else {"carried_frames": carried}),
    )


def compute_carried(
    found: _Found, scenes: Scenes, config: RelationConfig
) -> dict[str, list[float | None]] | None:
    """Recalls that the published code of frames may print instead, where images without a prediction are judged.

    That code keeps the predictions of the last image that had some (`silent_frames` is `carried`), so that what it
    prints depends on the order of images.

    Returns:
        Metric to its value here and there; None where nothing moves, or the config is none of a published evaluator.
    """
    if found.triplets is None or not config.several_truths or config.silent_frames != "empty":
        return None
    if not found.triplets.silent:
        return None
    other = replace(config, silent_frames="carried")
    images = found.triplets.images
    carried = match_triplets(found.predictions, found.truth, images, len(found.names.videos), other)
    if np.array_equal(carried.rank, found.triplets.rank):
        return None
    here, there = (
        compute_values(_state(replace(found, triplets=each), scenes, how))
        for each, how in ((found.triplets, config), (carried, other))
    )
    return {
        metric: [value, there[metric]] for metric, value in here.items() if value != there[metric]
    } or None


def _tell_carried(carried: dict[str, list[float | None]] | None) -> tuple[str, ...]:
    """What images without a prediction may change, in words."""
    if carried is None:
        return ()
    metric, (here, there) = next(iter(carried.items()))
    return (
        f"in images without a prediction the published evaluator judges those of the image before, and its {metric} "
        f"may be {there:.4f} (here {here:.4f}): --set silent_frames=carried",
    )


def _facts(found: _Found, state: JudgedRelations, config: RelationConfig) -> dict[str, Any]:
    """What belongs beside every number."""
    facts: dict[str, Any] = {
        "setting": config.setting,
        "relations": len(found.truth),
        "predictions": len(found.predictions),
        "videos_without_truth": int((state.truth.sum(axis=1) == 0).sum()),
    }
    if config.frames:
        facts |= {
            "frames_judged": int(state.images[:, 0].sum()),
            "frames_without_truth": int((state.images[:, 0] - state.images[:, 1]).sum()),
            "averaging": config.averaging,
            "predicates_per_pair": config.predicates_per_pair or "all",
            "predictions_per_frame": config.frame_top or "all",
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
    truth, predicted, left_out = _sides(predictions, scenes, names, config)
    tubelets = triplets = None
    if config.tubelets:
        tubelets = match_video_tubelets(predicted, truth, n_videos, config)
        left_out["predictions beyond the best of their video"] = tubelets.beyond
        judged = np.diff(truth.starts(n_videos))[tubelets.predictions.video] > 0
        left_out["predictions in videos without a true relation"] = int((~judged).sum())
    if config.frames:
        triplets = match_triplets(predicted, truth, select_images(scenes, names.videos), n_videos, config)
    return _Found(names, truth, predicted, left_out, tubelets, triplets)


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
        refuse_other_units(predictions, scenes)
        return truth, extract_relations(predictions, names, relations=here), left_out
    meant, refused = map_to_true_tubes(predictions, scenes, here)
    left_out[_NOT_TRUE] = refused
    tubes = np.unique(np.concatenate([meant[side].to_numpy() for side in ("subject", "object")]))
    predicted = extract_relations(
        predictions,
        names,
        relations=meant,
        tracks=extract_tracks(scenes, tubes.astype(np.int64)),
        category=map_categories(scenes, names),
    )
    return truth, predicted, left_out


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
    # The videos of the ground truth with the columns to slice by.
    known = {
        "category": pl.col("category").cast(pl.String),
        "splits": pl.col("splits").list.join(", ").alias("split"),
    }
    videos = scenes.videos.select(
        pl.col("video").cast(pl.String),
        *(column for name, column in known.items() if name in scenes.videos.columns),
    )
    crowds = scenes.boxes.group_by(pl.col("video").cast(pl.String)).agg(
        crowd=pl.len() / pl.col("frame").n_unique()
    )
    joined = videos.join(crowds, on="video", how="left", maintain_order="left")
    items = joined.with_columns(density=crowd_density(pl.col("crowd"))).drop("crowd")
    return JudgedRelations(items, config, classes, truth, hits, ap, tagged, images, image_sums, *of_class)
