"""Relations frame by frame: which ground-truth triplets of each image the best predictions find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.metrics.relations.config import RelationConfig
from roadaware.metrics.relations.rows import Relations
from roadaware.scenes.tables import Scenes

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
    """The ground-truth triplets of each image, and the predictions that find them.

    Args:
        images: the frames that are judged.
        truth: ground-truth relations by video.
        claims: by video and falling score.
        image: (e,) the image of each ground-truth triplet, not decreasing.
        relation: (e,) place of its ground-truth relation.
        rank: (e,) rank among the predictions of the image that finds it, from 1; 0 where none does.
        found_by: (e,) place of that prediction, -1 where none.
    """

    images: Images
    truth: Relations
    claims: Relations
    image: Ints
    relation: Ints
    rank: Ints
    found_by: Ints

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
    if "annotated" not in table.columns or not table["annotated"].count():
        return boxed
    table = table.filter(pl.col("annotated").is_not_null())
    told = _list_frames(table.filter("annotated"), videos)
    silent = ~np.isin(boxed.video, _list_frames(table, videos).video)
    video, frame = (
        np.concatenate([getattr(told, name), getattr(boxed, name)[silent]]) for name in ("video", "frame")
    )
    order = np.lexsort((frame, video))
    return Images(video[order], frame[order])


def match_triplets(
    claims: Relations, truth: Relations, images: Images, n_videos: int, config: RelationConfig
) -> Triplets:
    """Match the predictions of each image that have both boxes with its ground-truth triplets.

    The score of a prediction is the product of its own and those of its two tubes. Of the predictions of an image,
    each pair of tubes keeps its best predicates (the same predicate once); of these the best of the image
    are walked, those without enough score left out. A prediction finds a ground-truth triplet that says the same where
    both boxes overlap by the threshold. Equal scores stand in the order in which the pairs first stand in
    the image, by place in the table, then by predicate.

    Args:
        claims: by video and place in the table.
        truth: the same.
        images: the frames that are judged.
        n_videos: how many videos there are.
        config: how.

    Source: TRACE, evaluation of scene graphs; after Zellers et al., CVPR 2018.
    """
    from roadaware.metrics.relations.frame_kernels import find_triplets

    claims, pair, same = _rank_predictions(claims)
    entries = _entries(truth, images, n_videos, config)
    n = len(entries)
    of_image = np.searchsorted(entries[:, 0], np.arange(len(images.frame) + 1)).astype(np.int64)
    rank, found_by = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    top = min(config.frame_top or _ALL, max(config.recall_at))
    least = -np.inf if config.frame_min_score is None else float(config.frame_min_score)
    score = claims.score * claims.pair_score
    tied = _find_ties(claims.video, pair, score)
    find_triplets(
        (
            *(
                claims.starts(n_videos),
                claims.start,
                claims.end,
                claims.subject,
                claims.object,
                claims.triplet,
                pair,
                same,
                score,
                claims.row,
            ),
        ),
        (np.searchsorted(claims.video[tied], np.arange(n_videos + 1)), tied),
        claims.tracks.arrays(),
        (images.video, images.frame, of_image),
        (entries, truth.triplet, truth.tracks.boxes),
        (config.predicates_per_pair or _ALL, top),
        (least, float(config.iou_threshold), float(config.frame_pixel_offset)),
        (config.several_truths, config.frame_precision == "float32", config.silent_frames == "carried"),
        *(rank, found_by),
    )
    return Triplets(images, truth, claims, entries[:, 0], entries[:, 1], rank, found_by)


def _entries(truth: Relations, images: Images, n_videos: int, config: RelationConfig) -> Ints:
    """(e, 4) the ground-truth triplets of each image: image, relation, box of the subject and of the object."""
    from roadaware.metrics.relations.frame_kernels import collect_true_triplets

    starts = images.starts(n_videos)
    _, repeated = _group_rows(truth.subject, truth.object, truth.predicate)
    entries = np.zeros((_most(truth, images), 4), dtype=np.int64)
    n = collect_true_triplets(
        *(starts, images.frame, truth.starts(n_videos), truth.start, truth.end, truth.subject, truth.object),
        *(truth.tracks.offsets, truth.tracks.frames, repeated, config.repeated_truth == "once", entries),
    )
    return np.ascontiguousarray(entries[:n])


def _rank_predictions(claims: Relations) -> tuple[Relations, Ints, Ints]:
    """The predictions by video and falling score, and the numbers of their pair, and of pair and predicate."""
    first, pair = _group_rows(claims.subject, claims.object)
    _, same = _group_rows(claims.subject, claims.object, claims.predicate)
    score = claims.score * claims.pair_score
    order = np.lexsort((claims.predicate, -claims.score, first[pair], -score, claims.video))
    return claims.taken(order), pair[order], same[order]


def _find_ties(video: Ints, pair: Ints, score: Floats) -> Ints:
    """Places of the predictions, by video and falling score, whose pair has the score of another pair once."""
    alike = (video[1:] == video[:-1]) & (score[1:] == score[:-1])
    run = np.concatenate([[0], np.cumsum(~alike)])[: len(video)]
    several = np.bincount(run[1:][alike & (pair[1:] != pair[:-1])], minlength=len(video) + 1) > 0
    return np.flatnonzero(np.isin(pair, pair[several[run]])).astype(np.int64)


def _group_rows(*columns: Ints) -> tuple[Ints, Ints]:
    """Where each distinct row first stands, and the number of each row's."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), number.astype(np.int64)


def _most(truth: Relations, images: Images) -> int:
    """How many ground-truth triplets there can be: the images of each relation's video between its ends."""
    if not len(truth):
        return 0
    span = max(int(images.frame.max(initial=0)), int(truth.end.max())) + 2
    keys = images.video * span + images.frame
    ends = (np.searchsorted(keys, truth.video * span + side) for side in (truth.start, truth.end))
    low, high = ends
    return int(np.maximum(high - low, 0).sum())


def _list_frames(table: pl.DataFrame, videos: tuple[str, ...]) -> Images:
    """The distinct frames of a table, by video."""
    names = pl.DataFrame(
        {"video": videos, "at": np.arange(len(videos))}, schema={"video": pl.String, "at": pl.Int64}
    )
    frames = table.select(pl.col("video").cast(pl.String), "frame").unique()
    rows = frames.join(names, on="video").sort("at", "frame")
    return Images(*(np.array(rows[column].to_numpy(), dtype=np.int64) for column in ("at", "frame")))
