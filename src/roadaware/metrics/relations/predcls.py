"""Predictions about given tubes: which ground-truth tubes they mean, and the predictions on those."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes


def map_to_true_tubes(
    predictions: Predictions, scenes: Scenes, claims: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """The predicted relations between ground-truth tubes, and how many are on others.

    A predicted tube is a ground-truth one of its video that has its name; or else one whose boxes equal its own, in
    single precision, in every frame that it has (of several, the one of its category, then the first).
    Predictions without tubes of their own name those of the ground truth by number. A prediction with a tube that
    is none of these, or with the same for subject and object where it predicted two, is not judged.

    Args:
        predictions: with the tubes that are predicted.
        scenes: with `tubes`.
        claims: rows of `predictions.relations`.

    Returns:
        The rows with the numbers of ground-truth tubes; how many were left out.
    """
    if predictions.tubes.is_empty():
        meant = scenes.tubes.select(claimed="tube", true="tube")
    else:
        by_name = _match_by_name(predictions, scenes)
        rest = predictions.tubes.join(by_name, left_on="tube", right_on="claimed", how="anti")
        meant = pl.concat([by_name, _match_by_boxes(predictions, scenes, rest)])
    found = claims
    for side in ("subject", "object"):
        pairs = meant.select(pl.col("claimed").alias(side), pl.col("true").alias(f"true_{side}"))
        found = found.join(pairs, on=side, how="inner", maintain_order="left")
    merged = (pl.col("subject") != pl.col("object")) & (pl.col("true_subject") == pl.col("true_object"))
    found = found.filter(~merged)
    found = found.with_columns(subject="true_subject", object="true_object").select(claims.columns)
    return _in_their_videos(found, scenes), len(claims) - len(found)


def _match_by_name(predictions: Predictions, scenes: Scenes) -> pl.DataFrame:
    """Predicted tubes to the ground-truth ones of the same video and name."""
    nothing = pl.DataFrame(schema={"claimed": pl.Int64, "true": pl.Int64})
    if "name" not in predictions.tubes.columns or "name" not in scenes.tubes.columns:
        return nothing
    key = (pl.col("video").cast(pl.String), pl.col("name").cast(pl.String))
    true = scenes.tubes.select(*key, true="tube").drop_nulls().unique(["video", "name"], keep="first")
    claimed = predictions.tubes.select(*key, claimed="tube").drop_nulls()
    return claimed.join(true, on=["video", "name"], maintain_order="left").select("claimed", "true")


def _match_by_boxes(predictions: Predictions, scenes: Scenes, asked: pl.DataFrame) -> pl.DataFrame:
    """Predicted tubes to the ground-truth ones that have all their boxes."""
    nothing = pl.DataFrame(schema={"claimed": pl.Int64, "true": pl.Int64})
    if asked.is_empty() or "tube" not in predictions.boxes.columns or "tube" not in scenes.boxes.columns:
        return nothing
    corners = [pl.col(corner).cast(pl.Float32) for corner in CORNERS]
    key = (pl.col("video").cast(pl.String), pl.col("frame"), *corners)
    on = ["video", "frame", *CORNERS]
    wanted = predictions.boxes.filter(pl.col("tube").is_in(asked["tube"].implode()))
    claimed = wanted.select(*key, claimed="tube")
    true = scenes.boxes.select(*key, true="tube").drop_nulls()
    counts = claimed.group_by("claimed").len("boxes")
    equal = claimed.join(true, on=on).group_by("claimed", "true").len("equal").join(counts, on="claimed")
    whole = equal.filter(pl.col("equal") == pl.col("boxes")).select("claimed", "true")
    other = pl.col("category") != pl.col("category_right")
    return (
        whole.join(_categories(predictions), left_on="claimed", right_on="tube", how="left")
        .join(_categories(scenes), left_on="true", right_on="tube", how="left")
        .sort(pl.col("claimed"), other.fill_null(True), pl.col("true"))
        .unique("claimed", keep="first", maintain_order=True)
        .select("claimed", "true")
    )


def _categories(tables: Predictions | Scenes) -> pl.DataFrame:
    """Tube to the name of its category."""
    names = dict(enumerate(tables.meta.vocabularies.get("category", ())))
    labels = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == "category")
    named = [names.get(label, str(label)) for label in labels["label"].to_list()]
    return pl.DataFrame({"tube": labels["tube"], "category": pl.Series(named, dtype=pl.String)}).unique(
        "tube", keep="first"
    )


def _in_their_videos(claims: pl.DataFrame, scenes: Scenes) -> pl.DataFrame:
    """The predictions, where each is in the video of its tubes.

    Raises:
        InputError: if one is not; only predictions without tubes of their own can be.
    """
    owners = scenes.tubes.select(pl.col("tube"), of=pl.col("video").cast(pl.String))
    for side in ("subject", "object"):
        astray = claims.join(owners, left_on=side, right_on="tube").filter(
            pl.col("video").cast(pl.String) != pl.col("of")
        )
        if len(astray):
            shown = astray["relation"].head(5).to_list()
            raise InputError(f"predicted relations name tubes of other videos as {side}, first {shown}")
    return claims


def ensure_predicted_boxes(predictions: Predictions) -> None:
    """Predictions of the setting `sgdet` need boxes of their own.

    Raises:
        InputError: if there are predictions and none has any.
    """
    if not predictions.relations.is_empty() and (
        "tube" not in predictions.boxes.columns or not np.any(predictions.boxes["tube"].count())
    ):
        raise InputError(
            "the predicted relations have no boxes",
            hint="give boxes of their tubes, or judge them on the true ones with setting 'predcls'",
        )
