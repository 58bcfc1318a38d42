"""Whether claimed relations run from whom to whom, and for as long, as the true ones do."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, suspicious, wrong
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes, TableSet

_CLEARLY, _FEW = 1.5, 10


def directions(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether subjects and objects are exchanged.

    Args:
        predictions: with `relations`, `tubes` and `tube_labels` of the kind category.
        scenes: the same.
    """
    claimed, true = _triplets(predictions), _triplets(scenes)
    if len(claimed) < _FEW:
        return []
    kept = claimed.join(true.unique(), on=["video", "s", "p", "o"], how="semi")
    turned = claimed.rename({"s": "o", "o": "s"}).join(true.unique(), on=["video", "s", "p", "o"], how="semi")
    if len(turned) < 0.2 * len(claimed) or len(turned) <= _CLEARLY * len(kept):
        return []
    evidence = f"{len(kept)} of {len(claimed)} claimed triplets exist as written, {len(turned)} if exchanged"
    return wrong(
        "exchanged",
        "Subject and object seem to be exchanged.",
        evidence,
        "Write [subject, predicate, object].",
    )


def own_objects(predictions: Predictions, _: Scenes) -> list[Diagnosis]:
    """Whether somebody does something to themselves: the subject's boxes are the object's.

    Args:
        predictions: with `relations`.
    """
    same = int((predictions.relations["subject"] == predictions.relations["object"]).sum())
    if not same:
        return []
    evidence = f"{same} of {len(predictions.relations)} claims have one track for both"
    kind = wrong if same > 0.2 * len(predictions.relations) else suspicious
    return kind(
        "own_object", "Subjects are their own objects.", evidence, "Write obj_traj of the other person."
    )


def words(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether predicates and categories are written as in the truth.

    Args:
        predictions: with `relations`, `tubes` and `tube_labels` of the kind category.
        scenes: the same.
    """
    claimed, true = _triplets(predictions), _triplets(scenes)
    known = {word for c in ("s", "p", "o") for word in true[c].drop_nulls()}
    unknown = sorted({word for c in ("s", "p", "o") for word in claimed[c].drop_nulls()} - known)
    strange = claimed.filter(pl.any_horizontal(pl.col("s", "p", "o").is_in(unknown)))
    if not len(strange):
        return []
    alike = {_plain(word): word for word in sorted(known)}
    pairs = [f"{word!r} for {alike[_plain(word)]!r}" for word in unknown if _plain(word) in alike]
    evidence = f"{len(strange)} of {len(claimed)} claims say {', '.join(map(repr, unknown[:4]))}"
    remedy = f"Write {', '.join(pairs[:3])} the other way round." if pairs else "Use the truth's words."
    kind = wrong if len(strange) > 0.5 * len(claimed) else suspicious
    return kind("words", "Claims use words that the truth does not know.", evidence, remedy)


def _plain(word: str) -> str:
    """A word without what spellings differ in."""
    return "".join(c for c in word.casefold() if c.isalnum())


def places_in_time(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether claims lie in the video, and are shifted by a constant.

    Args:
        predictions: with `relations`.
        scenes: with `relations` and `videos`.
    """
    ends = predictions.relations.select(pl.col("video").cast(pl.String), "end_frame").drop_nulls()
    if "n_frames" in scenes.videos.columns:
        lengths = scenes.videos.select(pl.col("video").cast(pl.String), "n_frames").drop_nulls()
        beyond = ends.join(lengths, on="video").filter(pl.col("end_frame") > pl.col("n_frames"))
        if len(beyond):
            says = "Claims reach beyond the end of their video."
            evidence = f"{len(beyond)} of {len(ends)} do, as far as frame {beyond['end_frame'].max()!r}"
            return suspicious("beyond_video", says, evidence, "Durations are frames of the video, from 0.")
    return _shifted(_triplets(predictions), _triplets(scenes))


def _shifted(claimed: pl.DataFrame, true: pl.DataFrame) -> list[Diagnosis]:
    """A shift that most claims share with the nearest true relation of their words."""
    key = ["video", "s", "p", "o"]
    pairs = claimed.with_row_index("row").join(true, on=key, suffix="_true").drop_nulls()
    if pairs["row"].n_unique() < _FEW:
        return []
    late = (pl.col("start_frame") - pl.col("start_frame_true")).alias("late")
    nearest = (
        pairs.with_columns(late).sort(pl.col("late").abs(), maintain_order=True).unique("row", keep="first")
    )
    same = nearest["late"].mode().sort()[0]
    share = float((nearest["late"] == same).mean() or 0.0)
    if same == 0 or share < 0.5:
        return []
    says = f"Claims are {abs(same)} frames {'late' if same > 0 else 'early'}."
    evidence = f"{share:.0%} of them start so much from the nearest true relation of the same words"
    return suspicious("shift", says, evidence, "Durations count from 0, the end is the frame after the last.")


def durations(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether claimed spans are of another unit than the true ones.

    Args:
        predictions: with `relations`.
        scenes: the same.
    """
    lengths = [
        held.relations.select((pl.col("end_frame") - pl.col("start_frame")).median()).item()
        if len(held.relations)
        else None
        for held in (predictions, scenes)
    ]
    if not lengths[0] or not lengths[1] or len(predictions.relations) < _FEW:
        return []
    ratio = lengths[0] / lengths[1]
    if 0.1 < ratio < 10:
        return []
    says = f"Claimed relations last {ratio:.2g} times as long as true ones: seconds, or another frame rate?"
    evidence = f"half of them last {lengths[0]:g} frames or more, of the true ones {lengths[1]:g}"
    return suspicious("durations", says, evidence, "Durations are [first frame, frame after the last).")


def _triplets(tables: TableSet) -> pl.DataFrame:
    """`video`, names of subject's category `s`, predicate `p` and object's category `o`, and the span."""
    spans = {"start_frame": pl.Int64, "end_frame": pl.Int64}
    schema = {"video": pl.String, "s": pl.String, "p": pl.String, "o": pl.String, **spans}
    if tables.relations.is_empty():
        return pl.DataFrame(schema=schema)
    words = tables.meta.vocabularies
    named = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == "category").select("tube", "label")
    rows = tables.relations.join(named.rename({"label": "s"}), left_on="subject", right_on="tube", how="left")
    rows = rows.join(named.rename({"label": "o"}), left_on="object", right_on="tube", how="left")
    kinds = {"s": "category", "p": "predicate", "o": "category"}
    return rows.rename({"predicate": "p"}).select(
        pl.col("video").cast(pl.String),
        *(
            pl.col(c).replace_strict(
                dict(enumerate(words.get(kind, ()))), default=None, return_dtype=pl.String
            )
            for c, kind in kinds.items()
        ),
        *spans,
    )
