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
    """`video`, and the names of subject's category `s`, predicate `p` and object's category `o`."""
    schema = {"video": pl.String, "s": pl.String, "p": pl.String, "o": pl.String}
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
    )
