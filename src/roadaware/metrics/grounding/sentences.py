"""Ground-truth and predicted spans and boxes of sentences, side by side, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.grounding.config import GroundingConfig
from roadaware.metrics.metric_state import crowd_density
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

_TRUTH: dict[str, Any] = {
    "query": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "sentence_kind": pl.String,
    "tube": pl.Int64,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "segment_start_frame": pl.Int64,
    "segment_end_frame": pl.Int64,
}
_CLAIM = ("query", "video", "tube", "start_frame", "end_frame")


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences with a ground-truth span, their predictions, and their ground-truth boxes with the predicted ones beside.

    Args:
        table: one row per sentence: `_TRUTH`'s columns, `category`, `density`, `fps`, `n_frames`, and
            `claimed_start`, `claimed_end`, null where nothing is predicted. Numbers of frames are those that
            the configuration compares, ends half open.
        claimed: (sentences,) whether there is a prediction.
        owner: (boxes,) the sentence of each ground-truth box that is looked at, rising.
        frame: (boxes,) its frame, rising within a sentence.
        overlap: (boxes,) with the predicted box of that frame; 0 where there is none.
        paired: (boxes,) whether there is one.
        left_out: what was not judged, in words, to how often.
    """

    table: pl.DataFrame
    claimed: Bools
    owner: Ints
    frame: Ints
    overlap: Floats
    paired: Bools
    left_out: dict[str, int]


def join_sentences(predictions: Predictions, scenes: Scenes, config: GroundingConfig) -> Sentences:
    """Ground truth and predictions of every sentence.

    Raises:
        InputError: if no sentence has a ground-truth span, no prediction is about one of them, or `first_frame` of the
            ground truth's notes is no number.
    """
    queries = _with_columns(scenes.queries, _TRUTH)
    spans = queries.filter(pl.col("start_frame").is_not_null() & pl.col("end_frame").is_not_null())
    if spans.is_empty():
        raise InputError(
            f"the truth has {len(queries)} sentences and none with a span",
            hint="`queries` needs start_frame and end_frame",
        )
    claims = _with_columns(predictions.queries, {name: _TRUTH[name] for name in _CLAIM})
    table = spans.with_row_index("row").join(
        claims.rename({"tube": "claimed_tube", "start_frame": "claimed_start", "end_frame": "claimed_end"}),
        on=["query", "video"],
        how="left",
        maintain_order="left",
        coalesce=True,
    )
    known = claims.join(spans, on=["query", "video"], how="semi")
    if len(claims) and known.is_empty():
        raise InputError(
            f"none of {len(claims)} predictions is about one of the {len(spans)} true sentences",
            hint=f"queries and videos, of predictions: {claims.select('query', 'video').head(3).rows()}, "
            f"of sentences: {spans.select('query', 'video').head(3).rows()}",
        )
    within = ("start_frame", "end_frame") if config.boxes_beyond == "left_out" else ()
    true = _boxes(table.select("row", "tube", *within), scenes.boxes)
    claim = _boxes(table.select("row", pl.col("claimed_tube").alias("tube")), predictions.boxes)
    shift = _first_frame(scenes.meta.notes) if config.numbering == "file" else 0
    overlap, paired = _overlaps(true, claim, shift)
    table = _add_video_facts(table, true, scenes)
    return Sentences(
        table=_move_spans(table, shift, int(config.ends == "inclusive")),
        claimed=table["query"].is_in(known["query"].implode()).to_numpy(),
        owner=true["row"].to_numpy().astype(np.int64),
        frame=true["frame"].to_numpy().astype(np.int64) + shift,
        overlap=overlap,
        paired=paired,
        left_out={
            "sentences without a true span": len(queries) - len(spans),
            "predictions on sentences that the truth lacks": len(claims) - len(known),
        },
    )


def _with_columns(frame: pl.DataFrame, columns: Mapping[str, Any]) -> pl.DataFrame:
    """The columns by name, null where the table lacks them."""
    return frame.select(
        (pl.col(c) if c in frame.columns else pl.lit(None)).cast(dtype).alias(c)
        for c, dtype in columns.items()
    )


def _first_frame(notes: Mapping[str, Any]) -> int:
    first = notes.get("first_frame", 0)
    if type(first) is not int:
        raise InputError(f"the truth's note `first_frame` should be a whole number, not {first!r}")
    return first


def _boxes(owners: pl.DataFrame, boxes: pl.DataFrame) -> pl.DataFrame:
    """(row, frame, corners) of the boxes of each row's tube, in order; the first of a frame, within the span.

    Args:
        owners: `row`, `tube`, and `start_frame` and `end_frame` where only boxes between them are asked for.
        boxes: the table.
    """
    columns = ["row", "frame", *CORNERS]
    if "tube" not in boxes.columns or boxes.is_empty():
        return pl.DataFrame(
            schema={"row": pl.UInt32, "frame": pl.Int64, **dict.fromkeys(CORNERS, pl.Float64)}
        )
    owners = owners.filter(pl.col("tube").is_not_null())
    held = boxes.select("tube", "frame", *CORNERS).filter(pl.col("tube").is_in(owners["tube"].implode()))
    found = owners.join(held, on="tube", maintain_order="left_right")
    if "start_frame" in owners.columns:
        found = found.filter(
            (pl.col("frame") >= pl.col("start_frame")) & (pl.col("frame") < pl.col("end_frame"))
        )
    found = found.select(columns).sort("row", "frame", maintain_order=True)
    repeated = (pl.col("row") == pl.col("row").shift(1)) & (pl.col("frame") == pl.col("frame").shift(1))
    return found.filter(~repeated.fill_null(False)).cast(dict.fromkeys(CORNERS, pl.Float64))


def _overlaps(true: pl.DataFrame, claim: pl.DataFrame, shift: int) -> tuple[Floats, Bools]:
    """(boxes,) overlap with the predicted box of the same frame, and whether there is one.

    Args:
        true: boxes in order of row and frame.
        claim: the same.
        shift: added to the ground truth's frames before they meet the predictions'.
    """
    frames = np.concatenate([part["frame"].to_numpy() for part in (true, claim)])
    first, last = int(frames.min(initial=0)), int(frames.max(initial=0)) + shift + 1
    wanted, held = (
        part["row"].to_numpy().astype(np.int64) * (last - first) + part["frame"].to_numpy() - first + added
        for part, added in ((true, shift), (claim, 0))
    )
    place = np.searchsorted(held, wanted)
    paired: Bools = np.zeros(len(wanted), dtype=bool)
    inside = place < len(held)
    paired[inside] = held[place[inside]] == wanted[inside]
    one, other = true.select(CORNERS).to_numpy()[paired], claim.select(CORNERS).to_numpy()[place[paired]]
    overlap = np.zeros(len(wanted))
    overlap[paired] = paired_iou(other, one)
    return overlap, paired


def _add_video_facts(table: pl.DataFrame, true: pl.DataFrame, scenes: Scenes) -> pl.DataFrame:
    """The table with what is known of each sentence's video, and how many are in its frames."""
    videos = _with_columns(
        scenes.videos,
        {"video": pl.String, "category": pl.String, "fps": pl.Float64, "n_frames": pl.Int64},
    )
    table = table.join(videos, on="video", how="left", maintain_order="left")
    crowd = scenes.boxes.group_by(pl.col("video").cast(pl.String), "frame").len("others")
    seen = (
        true.select("row", "frame")
        .join(table.select("row", "video"), on="row")
        .join(crowd, on=["video", "frame"])
        .group_by("row")
        .agg(pl.col("others").mean())
    )
    joined = table.join(seen, on="row", how="left", maintain_order="left")
    return joined.with_columns(density=crowd_density(pl.col("others"))).drop("others")


def _move_spans(table: pl.DataFrame, shift: int, longer: int) -> pl.DataFrame:
    """Ground-truth spans moved by `shift`; all spans longer at their end by `longer`."""
    return table.with_columns(
        pl.col("start_frame") + shift,
        pl.col("end_frame") + shift + longer,
        pl.col("claimed_end") + longer,
    )
