"""Rows of boxes of any annotation tool, checked one by one and made into Scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roadaware.datasets import READERS
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.issues import Findings, select_first_reason
from roadaware.errors import InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes, label_tracks

KIND = "agent"
"""The kind of label that the classes of a tool become."""
LONGEST_PATH = 1000
"""Letters of the name of a file as tables have it."""
MOST_IN_ALL = 50_000_000
"""Frames of a whole set: nineteen days at thirty a second, some 3 GB as a table."""
_FAR = 1e9
ROWS: dict[str, Any] = {
    "file": pl.String,
    "line": pl.Int64,
    "item": pl.String,
    "video": pl.String,
    "frame": pl.Int64,
    "track": pl.String,
    "label": pl.String,
    **dict.fromkeys(CORNERS, pl.Float64),
    "ignore": pl.Boolean,
    "occlusion": pl.String,
    "score": pl.Float64,
    "reason": pl.String,
}
"""Columns of the rows that `build_box_scenes` takes: `reason` is what a reader refuses a row for, else null; a part may lack
`occlusion` and, of ground truth, `score`."""


@dataclass
class BoxSource:
    """What a reader found, before it is checked.

    Args:
        reader: its name in `READERS`.
        videos: a row for each: video, and where known width_px, height_px, fps, n_frames, path, splits.
        frames: video to the frames that somebody looked at, where the files list them.
        rows: columns `ROWS`.
        classes: the vocabulary in its order; labels that it lacks are added as they appear.
        findings: counts files, and takes what is refused.
        paths: (video, frame) to the file of its image.
        notes: of the reader.
        predicted: whether the rows are predictions, each of which needs a score.
    """

    reader: str
    findings: Findings
    predicted: bool = False
    videos: list[dict[str, Any]] = field(default_factory=list)
    frames: dict[str, Sequence[int]] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    paths: dict[tuple[str, int], str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


def build_box_scenes(found: BoxSource, digest: str) -> Scenes:
    """Scenes of the rows that can be taken; each other one is in `rejected`, with its file, line and reason.

    A row is refused for what its reader says, a frame outside its video, corners that are no finite numbers or upside
    down, and a track that has a box in the frame already.
    """
    tables, meta = _build_tables(found, digest)
    boxes, labels = tables["boxes"].drop("score"), tables["labels"].drop("score")
    if not boxes["ignore"].any():
        boxes = boxes.drop("ignore")
    # A file none of whose boxes is hidden may as well not say so.
    if not boxes["occlusion"].is_in(["part", "full"]).any():
        boxes = boxes.drop("occlusion")
    own = ("video", "frame")
    frames = tables["frames"].select(*own, pl.lit(value=True).alias("annotated"), pl.exclude(own))
    of_tracks = label_tracks(boxes, labels, KIND)
    return Scenes(
        **{**tables, "boxes": boxes, "labels": labels, "frames": frames}, tube_labels=of_tracks, meta=meta
    )


def build_box_predictions(found: BoxSource, digest: str) -> Predictions:
    """Predictions of the rows that can be taken, with scores of boxes and of their classes; else as `build_box_scenes`.

    A row is also refused where its score is missing or leaves [0, 1]; a track has the mean score of its boxes. What is to be
    ignored or hidden is not predicted, and not taken.

    Args:
        found: what a reader found, with `predicted`.
        digest: of the source's files.
    """
    tables, meta = _build_tables(found, digest)
    boxes = tables["boxes"].drop("ignore", "occlusion")
    scores = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("score").mean())
    tubes = tables["tubes"].join(scores, on="tube", how="left", maintain_order="left")
    return Predictions(**{**tables, "boxes": boxes, "tubes": tubes}, meta=meta)


def _build_tables(found: BoxSource, digest: str) -> tuple[dict[str, pl.DataFrame], Meta]:
    """The tables of both kinds of sets: boxes and labels with their score."""
    findings = found.findings
    kinds = {
        "video": pl.String(), "width_px": pl.Int64(), "height_px": pl.Int64(), "fps": pl.Float32(), "n_frames": pl.Int64(),
        "path": pl.String(), "splits": pl.List(pl.String),
    }  # fmt: skip
    table = pl.DataFrame(
        [{name: row.get(name) for name in kinds} for row in found.videos], schema=pl.Schema(kinds)
    )
    empty = [name for name in ("path", "splits") if not table[name].count()]
    videos = table.drop(empty)
    rows = pl.concat([pl.DataFrame(schema=ROWS), *map(_select_columns, found.rows)])
    findings.read["boxes"] += len(rows)
    rows = _refuse_rows(rows, videos, findings, scored=found.predicted)
    order = pl.Enum(videos["video"].to_list())
    rows = rows.sort(pl.col("video").cast(order), "frame", maintain_order=True)
    rows = rows.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    tubes = (
        rows.drop_nulls("track")
        .group_by("video", "track", maintain_order=True)
        .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
        .with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    rows = rows.join(
        tubes.select("video", "track", "tube"), on=["video", "track"], how="left", maintain_order="left"
    )
    words = list(
        dict.fromkeys([*found.classes, *rows["label"].drop_nulls().unique(maintain_order=True).to_list()])
    )
    labels = rows.drop_nulls("label").select(
        "box",
        kind=pl.lit(KIND),
        label=pl.col("label").replace_strict(dict(zip(words, range(len(words)), strict=True)), return_dtype=pl.Int64)
        if words
        else pl.lit(0, pl.Int64),
        score="score",
    )  # fmt: skip
    entry = READERS[found.reader]
    tables = {
        "videos": videos,
        "frames": _list_frames(found, videos),
        "boxes": rows.select("box", "video", "frame", "tube", *CORNERS, "occlusion", "ignore", "score"),
        "labels": labels,
        "tubes": tubes.select("tube", "video", "start_frame", "end_frame", name="track"),
        "rejected": findings.table(),
    }
    meta = findings.build_meta(entry, {KIND: tuple(words)}, digest, **found.notes)
    return tables, meta


def _select_columns(part: pl.DataFrame) -> pl.DataFrame:
    """A part of the rows with all `ROWS`."""
    lacking = [name for name in ("occlusion", "score") if name not in part.columns]
    return part.with_columns(pl.lit(None, ROWS[name]).alias(name) for name in lacking).select(list(ROWS))


def _list_frames(found: BoxSource, videos: pl.DataFrame) -> pl.DataFrame:
    """`video`, `frame` and, where known, `path` of frames that were looked at: listed ones, else all of a known length.

    Raises:
        InputError: if they are so many that their table would not fit into memory.
    """
    parts = []
    spans = [
        (video, found.frames.get(video, range(count or 0)))
        for video, count in videos.select("video", "n_frames").iter_rows()
    ]
    # A file of a hundred lines may claim a thousand million frames.
    if (total := sum(len(listed) for _, listed in spans)) > MOST_IN_ALL:
        raise InputError(
            f"{total:,} frames in {len(spans):,} videos; at most {MOST_IN_ALL:,} are listed in one set",
            hint="is the number of a frame, or the length of a video, wrong? Else read the videos in parts",
        )
    for video, listed in spans:
        own = (
            pl.int_range(listed.start, listed.stop, listed.step, eager=True, dtype=pl.Int64).alias("frame")
            if isinstance(listed, range)
            else pl.Series("frame", sorted(listed), dtype=pl.Int64)
        )
        parts.append(pl.DataFrame({"frame": own}).select(video=pl.lit(video), frame="frame"))
    schema = {"video": pl.String, "frame": pl.Int64}
    table = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
    if found.paths:
        named = pl.DataFrame(
            [(video, frame, path) for (video, frame), path in found.paths.items()],
            schema={**schema, "path": pl.String},
            orient="row",
        )
        table = table.join(named, on=["video", "frame"], how="left", maintain_order="left")
    return table


def _refuse_rows(
    rows: pl.DataFrame, videos: pl.DataFrame, findings: Findings, *, scored: bool
) -> pl.DataFrame:
    """The rows that can be taken; of predictions (`scored`) those with a score."""
    rows = rows.join(videos.select("video", "n_frames"), on="video", how="left", maintain_order="left")
    numbers = pl.all_horizontal(
        pl.col(c).is_finite().fill_null(value=False) & (pl.col(c).abs() <= _FAR).fill_null(value=False)
        for c in CORNERS
    )
    text = pl.concat_str([pl.col(c).cast(pl.String).fill_null("?") for c in CORNERS], separator=", ")
    late = (pl.col("frame") >= pl.col("n_frames")).fill_null(value=False)
    reason = select_first_reason(
        (pl.col("reason").is_not_null(), pl.col("reason")),
        (pl.col("video").is_null() | (pl.col("video") == ""), "no video is named"),
        (
            ~pl.col("frame").is_between(0, MOST_FRAMES).fill_null(value=False),
            f"the frame is no whole number from the first on, up to {MOST_FRAMES:,}",
        ),
        (late, pl.format("frame {} is behind the end of its video of {} frames", "frame", "n_frames")),
        (~numbers, "a corner is no finite number"),
        (pl.col("x2_px") < pl.col("x1_px"), pl.format("the box is upside down, x2 < x1: {}", text)),
        (pl.col("y2_px") < pl.col("y1_px"), pl.format("the box is upside down, y2 < y1: {}", text)),
        (pl.col("track").str.len_bytes() > LONGEST_NAME, "the track's name is too long"),
        (pl.col("label").str.len_bytes() > LONGEST_NAME, "the class's name is too long"),
        (pl.lit(scored) & pl.col("score").is_null(), "a prediction without a score"),
        (
            pl.lit(scored) & ~pl.col("score").is_between(0, 1).fill_null(value=True),
            pl.format("the score should be a number from 0 to 1 and is {}", "score"),
        ),
    )
    rows = rows.with_columns(reason)
    good = rows.filter(pl.col("reason").is_null())
    again = pl.col("track").is_not_null() & ~pl.struct("video", "frame", "track").is_first_distinct()
    second = good.filter(again).with_columns(
        reason=pl.format("a second box of track '{}' in this frame", "track")
    )
    kept = good.filter(~again)
    same = ~pl.struct("video", "frame", "track", "label", *CORNERS).is_first_distinct()
    findings.warn(
        "boxes that stand twice, kept",
        kept.filter(same)["item"].head(1).to_list()[0] if kept.select(same.any()).item() else "",
        int(kept.select(same.sum()).item() or 0),
    )
    bad = pl.concat([rows.filter(pl.col("reason").is_not_null()), second])
    findings.reject_rows("boxes", bad)
    return kept.drop("reason", "n_frames")
