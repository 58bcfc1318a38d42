"""Relations one by one: what each claim found, which claim found each true one, and what each frame lacks."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.metrics.relations.frames import Triplets
from roadaware.metrics.relations.rows import Names
from roadaware.metrics.relations.tubelets import Tubelets


def claim_table(judged: Tubelets, names: Names) -> pl.DataFrame:
    """One row per claim that was judged, by video and rank.

    Returns:
        `relation`, `video`, `predicate`, `score`, `rank`; `hit`; `truth`, the true relation it found, or
        else that of its triplet which it overlaps most, found by a better claim or not; `subject_viou` and
        `object_viou`, the overlap with that; null where there is none of its triplet.
    """
    claims = judged.claims
    near = np.where(judged.hit, judged.taken, judged.near)
    viou = np.where(near[:, None] >= 0, judged.overlap, np.nan)
    return pl.DataFrame(
        {
            "relation": claims.relation,
            "video": _named(names.videos, claims.video),
            "predicate": _named(names.predicates, claims.predicate),
            "score": claims.score,
            "rank": judged.rank,
            "hit": judged.hit,
            "truth": _looked_up(judged.truth.relation, near),
            "subject_viou": pl.Series(viou[:, 0], nan_to_null=True),
            "object_viou": pl.Series(viou[:, 1], nan_to_null=True),
        }
    )


def truth_table(judged: Tubelets, names: Names) -> pl.DataFrame:
    """One row per true relation, by video and place in the table.

    Returns:
        `relation`, `video`, `predicate`, `start_frame`, `end_frame`; `claim`, the claim that found it, and
        `rank`, its place among those of the video; null where none did.
    """
    truth = judged.truth
    claim = np.full(len(truth), -1, dtype=np.int64)
    claim[judged.taken[judged.hit]] = np.flatnonzero(judged.hit)
    return pl.DataFrame(
        {
            "relation": truth.relation,
            "video": _named(names.videos, truth.video),
            "predicate": _named(names.predicates, truth.predicate),
            "start_frame": truth.start,
            "end_frame": truth.end,
            "claim": _looked_up(judged.claims.relation, claim),
            "rank": _looked_up(judged.rank, claim),
        }
    )


def frame_table(judged: Triplets, names: Names, recall_at: tuple[int, ...]) -> pl.DataFrame:
    """One row per frame that was judged, by video and frame.

    Returns:
        `video`, `frame`; `truth`, its true triplets; `found@K`, those that its K best claims find.
    """
    asked, found = judged.by_image(recall_at)
    return pl.DataFrame(
        {
            "video": _named(names.videos, judged.images.video),
            "frame": judged.images.frame,
            "truth": asked,
            **{f"found@{n}": found[:, k] for k, n in enumerate(recall_at)},
        }
    )


def _named(names: tuple[str, ...], index: Ints) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(index)


def _looked_up(values: Ints, index: Ints) -> pl.Series:
    """The values at places, null where the place is -1."""
    found = np.append(values, 0)[index]
    return pl.Series(found).set(pl.Series(index < 0), None)
