"""Relations as a whole: which ground-truth ones the predictions of each video find, best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.relations.config import RelationConfig
from roadaware.metrics.relations.rows import Relations


@dataclass(frozen=True, eq=False)
class Tubelets:
    """The matches of the predictions of a set.

    Args:
        truth: ground-truth relations by video.
        claims: those that are judged, by video and falling score, equal scores in the order of the table.
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
    claims: Relations
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
            np.add.at(counts[:, :, k], (self.claims.video[among], self.claims.predicate[among]), 1)
        return counts


def match_video_tubelets(
    claims: Relations, truth: Relations, n_videos: int, config: RelationConfig
) -> Tubelets:
    """Match the predictions of each video with its ground-truth relations.

    A prediction takes, of the ground-truth relations of its triplet that no better prediction took, the one with the largest
    min(vIoU of the subjects, vIoU of the objects), and is a hit where that is at least the threshold. The
    vIoU of two tubelets is the sum over frames of the boxes' intersections by that of their unions, over
    the frames of their relations. Of equal overlaps the first in the table is taken.

    Args:
        claims: by video and place in the table.
        truth: the same.
        n_videos: how many videos there are.
        config: how.

    Source: VidVRD-helper, evaluation of relation detection and tagging.
    """
    from roadaware.metrics.relations.tubelet_kernels import match_tubelets, score_tubelets

    claims = claims.taken(np.lexsort((-claims.score, claims.video)))
    rank = np.arange(len(claims)) - claims.starts(n_videos)[claims.video] + 1
    kept = np.ones(len(claims), dtype=np.bool_)
    if config.top_returns is not None:
        kept = rank <= config.top_returns
    beyond, claims, rank = int((~kept).sum()), claims.taken(kept), rank[kept]
    taken, near = (np.full(len(claims), -1, dtype=np.int64) for _ in range(2))
    overlap = np.full((len(claims), 2), np.nan)
    numbers = (float(config.pixel_offset), float(config.viou_threshold))
    match_tubelets(_side(claims, n_videos), _side(truth, n_videos), numbers, taken, near, overlap)
    starts, true_starts = claims.starts(n_videos), truth.starts(n_videos)
    counts = np.array(config.precision_at, dtype=np.int64)
    ap, tagged = np.zeros(n_videos), np.zeros((n_videos, len(counts)))
    single = config.precision == "float32"
    score_tubelets(starts, claims.triplet, taken, true_starts, truth.triplet, counts, single, ap, tagged)
    untrue = np.diff(true_starts) == 0
    ap[untrue], tagged[untrue] = np.nan, np.nan
    return Tubelets(truth, claims, beyond, taken, near, overlap, rank, ap, tagged)


def _side(relations: Relations, n_videos: int) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """What the kernel takes of ground truth or predictions."""
    from roadaware.metrics.relations.tubelet_kernels import cut

    tracks, when = relations.tracks, (relations.start, relations.end)
    subject, object_ = (
        cut(tube, *when, tracks.offsets, tracks.frames) for tube in (relations.subject, relations.object)
    )
    starts = relations.starts(n_videos)
    return starts, relations.triplet, subject, object_, tracks.frames, tracks.boxes
