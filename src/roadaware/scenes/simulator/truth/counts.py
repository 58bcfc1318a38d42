"""Counts: how many boxes, tubes and frames each class of a set has."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.tables import Scenes


def statistics(scenes: Scenes) -> pl.DataFrame:
    """For each label of each kind, in the order of the vocabularies: kind, label, boxes, tubes, frames.

    Boxes have the label themselves; tubes are tracks with such a box, of kinds of whole frames the
    stretches; frames are those that show it.

    Args:
        scenes: any.
    """
    owned = scenes.boxes.select("box", "video", "frame", *_column(scenes, "tube"))
    text = pl.col("kind").cast(pl.String)
    held = scenes.labels.with_columns(text).join(owned, on="box", how="left")
    of_boxes = held.group_by("kind", "label").agg(
        boxes=pl.col("box").n_unique(),
        tubes=pl.col("tube").drop_nulls().n_unique(),
        frames=pl.struct("video", "frame").n_unique(),
    )
    of_frames = scenes.frame_labels.with_columns(text).group_by("kind", "label").agg(frames=pl.len())
    of_tubes = scenes.tube_labels.with_columns(text).group_by("kind", "label").agg(tubes=pl.len())
    of_frames = of_frames.join(of_tubes, on=["kind", "label"], how="left").with_columns(boxes=pl.lit(0))
    counted = pl.concat([of_boxes, of_frames.select(of_boxes.columns)], how="vertical_relaxed")
    words = pl.DataFrame(
        [
            (kind, place, name)
            for kind, labels in scenes.meta.vocabularies.items()
            for place, name in enumerate(labels)
        ],
        schema={"kind": pl.String, "label": pl.Int64, "name": pl.String},
        orient="row",
    )
    present = pl.col("kind").is_in(counted["kind"].unique().implode())
    rows = words.filter(present).join(counted, on=["kind", "label"], how="left", maintain_order="left")
    filled = [pl.col(name).fill_null(0).cast(pl.Int64) for name in ("boxes", "tubes", "frames")]
    return rows.select("kind", pl.col("name").alias("label"), *filled)


def _column(scenes: Scenes, name: str) -> list[pl.Expr]:
    return [pl.col(name) if name in scenes.boxes.columns else pl.lit(None, pl.Int64).alias(name)]
