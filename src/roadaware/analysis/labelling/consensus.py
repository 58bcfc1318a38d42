"""Consensus: what most annotators drew, as truth, and what they do not agree on, for a further look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from roadaware.analysis.labelling.agreement import thing_table
from roadaware.analysis.labelling.things import Things
from roadaware.scenes.formats.coda import KIND
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

DISPUTE: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "reason": pl.String,
    "found_by": pl.String,
    "said": pl.String,
    **dict.fromkeys(CORNERS, pl.Float64),
}
"""Columns of disputes: who drew the box, what each called it, and where it is."""


@dataclass(frozen=True, eq=False)
class Consensus:
    """What most agree on.

    Args:
        scenes: boxes that more than half of those who saw the picture drew: each corner the median of theirs,
            the label that more than half of those who named it gave, with `n_found` and `n_saw`.
        disputes: see `DISPUTE`: boxes that half or fewer drew, classes without a majority, and pictures that
            one person alone saw.
    """

    scenes: Scenes
    disputes: pl.DataFrame


def consensus(things: Things, scenes: Scenes) -> Consensus:
    """Truth by majority, and what is left to be decided.

    Pictures that one alone saw are in neither: they stand among the disputes, unverified.

    Args:
        things: what was drawn by whom.
        scenes: of all annotators, from which `things` were made.

    Source: Li et al., ECCV 2022, section 3.3: the output of each annotator is verified by two others.
    """
    table = _placed(things, scenes)
    most = table.filter(2 * pl.col("n_found") > pl.col("n_saw"))
    named = 2 * pl.col("votes") > pl.col("named")
    boxes = most.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    labels = boxes.filter(named & pl.col("label").is_not_null()).select(
        "box", kind=pl.lit(KIND), label=pl.col("label")
    )
    pictures = things.pictures.select("video", "frame").with_columns(annotated=pl.lit(value=True))
    truth = Scenes(
        videos=scenes.videos,
        frames=pictures,
        boxes=boxes.select("box", "video", "frame", *CORNERS, "n_found", "n_saw").with_columns(
            corner_case=pl.lit(value=True)
        ),
        labels=labels,
        meta=Meta(dataset=scenes.meta.dataset, vocabularies={KIND: things.words}),
    )
    few = table.filter(2 * pl.col("n_found") <= pl.col("n_saw")).with_columns(
        reason=pl.format("drawn by {} of {}", "n_found", "n_saw")
    )
    open_class = most.filter(~named & (pl.col("named") > 0)).with_columns(
        reason=pl.lit("no class has a majority")
    )
    nameless = most.filter(pl.col("named") == 0).with_columns(reason=pl.lit("nobody named it"))
    alone = things.alone.with_columns(reason=pl.format("only {} saw the picture", "annotator"))
    parts = [few, open_class, nameless] if len(things.words) else [few]
    disputes = pl.concat([_told(part) for part in (*parts, alone)])
    return Consensus(truth, disputes.sort("video", "frame", "reason", maintain_order=True))


def _placed(things: Things, scenes: Scenes) -> pl.DataFrame:
    """The things with their picture, the median of their corners, who drew them and what each said."""
    corners = scenes.boxes.select("box", pl.col(*CORNERS).cast(pl.Float64))
    words = dict(enumerate(things.words))
    said = pl.col("label").replace_strict(words, default=None, return_dtype=pl.String).fill_null("-")
    members = things.members.join(corners, on="box", how="left", maintain_order="left")
    drawn = members.group_by("thing", maintain_order=True).agg(
        *(pl.col(name).median() for name in CORNERS),
        found_by=pl.col("annotator").str.join(", "),
        said=said.str.join(", "),
    )
    pictures = things.pictures.select("video", "frame").with_row_index("picture")
    pictures = pictures.with_columns(pl.col("picture").cast(pl.Int64))
    table = thing_table(things).join(drawn, on="thing", how="left", maintain_order="left")
    return table.join(pictures, on="picture", how="left", maintain_order="left")


def _told(part: pl.DataFrame) -> pl.DataFrame:
    """Rows as `DISPUTE` has them, null where a part does not say."""
    return part.select(
        pl.col(name).cast(dtype) if name in part.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in DISPUTE.items()
    )
