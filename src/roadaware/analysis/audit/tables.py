"""Checks on tracks, boxes, videos and splits, whatever is asked of them."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.audit.context import Context, counted, places
from roadaware.analysis.audit.findings import SHOWN, Example, Finding, Severity, Table
from roadaware.scenes.schema import CORNERS

_DOMINANT = 0.4


def track_gaps(context: Context) -> Finding:
    """Tracks with frames missing between their first and last box."""
    context.needs("boxes", "tube")
    spans = context.scenes.boxes.group_by("tube").agg(
        pl.len().alias("boxes"), (pl.col("frame").max() - pl.col("frame").min() + 1).alias("span")
    )
    rows = context.scenes.tubes.join(spans, on="tube", how="inner", maintain_order="left")
    gaps = rows.filter(pl.col("boxes") < pl.col("span"))
    sampled = context.samples.join(gaps, on="tube", how="semi")
    missing = pl.format("{} of {} frames without a box", pl.col("span") - pl.col("boxes"), "span")
    return counted(
        gaps,
        rows,
        "tracks have gaps.",
        name="track-gaps",
        severity="warning",
        why="Published samplers count boxes, not frames: across a gap observation and time to event are "
        "longer than they say.",
        advice="Leave these tracks out where timing matters; the samples from them are few.",
        at="start_frame",
        note=missing,
        measures={"samples_of_these_tracks": len(sampled)},
    )


def boxes_outside_image(context: Context) -> Finding:
    """Boxes that reach out of the image."""
    context.needs("boxes")
    sizes = context.scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    rows = context.scenes.boxes.with_columns(pl.col("video").cast(pl.String)).join(
        sizes, on="video", how="left", maintain_order="left"
    )
    out = rows.filter(
        (pl.col("x1_px") < 0)
        | (pl.col("y1_px") < 0)
        | (pl.col("x2_px") > pl.col("width_px"))
        | (pl.col("y2_px") > pl.col("height_px"))
    )
    return _boxes(
        context,
        out,
        "boxes-outside-image",
        "note",
        "reach out of the image",
        "Clip them before cutting patches.",
    )


def boxes_without_area(context: Context) -> Finding:
    """Boxes without width or height."""
    context.needs("boxes")
    flat = (pl.col("x1_px") >= pl.col("x2_px")) | (pl.col("y1_px") >= pl.col("y2_px"))
    return _boxes(
        context,
        context.scenes.boxes.filter(flat),
        "boxes-without-area",
        "warning",
        "have no area",
        "Leave them out: aspect and scale are undefined.",
    )


def repeated_names(context: Context) -> Finding:
    """Tracks that share video and identifier with another."""
    tubes = context.scenes.tubes
    # What is cut out of a track by its labels has the track's name.
    tubes = tubes.filter(pl.col("parent").is_null()) if "parent" in tubes.columns else tubes
    named = tubes.with_columns(pl.col("video", "name").cast(pl.String)).drop_nulls("name")
    twice = named.filter(pl.struct("video", "name").is_duplicated())
    return counted(
        twice,
        named,
        "tracks share their identifier with another of their video.",
        name="repeated-names",
        severity="warning",
        why="Metrics by pedestrian merge what belongs to two people, or attributes go to the wrong one.",
        advice="Rename one of them at the source.",
        at="start_frame",
    )


def vehicle_action(context: Context) -> Finding:
    """An action of the vehicle that most frames share."""
    context.needs("frames", "vehicle_action")
    counts = (
        context.scenes.frames.drop_nulls("vehicle_action")
        .group_by(pl.col("vehicle_action").cast(pl.String))
        .len()
        .sort(["len", "vehicle_action"], descending=[True, False])
    )
    total, (name, most) = int(counts["len"].sum()), counts.row(0) if len(counts) else ("none", 0)
    return Finding(
        name="vehicle-action",
        severity="note",
        count=most if most > _DOMINANT * total else 0,
        out_of=total,
        sentence=f"{most} of {total} frames ({most / max(total, 1):.1%}) say that the vehicle is {name}.",
        why="The action of the vehicle is coarse and lopsided; it is no measured acceleration, though often "
        "the only ego signal there is.",
        advice="Do not read it as speed; compare models with and without it.",
        table=Table(("vehicle_action", "frames"), tuple(counts.rows())),
    )


def videos_in_two_splits(context: Context) -> Finding:
    """Videos that more than one split of the protocol's subset names."""
    rows = _splits(context)
    twice = rows.filter(pl.col("held").list.len() > 1)
    return counted(
        twice,
        rows,
        f"videos are in several splits of {context.protocol.subset}.",
        name="videos-in-two-splits",
        severity="serious",
        why="What a model was fitted or chosen on is then tested again.",
        advice="Give each video one split.",
        note=pl.col("held").list.join(", "),
    )


def videos_in_no_split(context: Context) -> Finding:
    """Videos that no split of the protocol's subset names."""
    rows = _splits(context)
    none = rows.filter(pl.col("held").list.len() == 0)
    return counted(
        none,
        rows,
        f"videos are in no split of {context.protocol.subset}.",
        name="videos-in-no-split",
        severity="note",
        why="They count in statistics of the dataset and not in any result.",
        advice="Say which subset a count is of.",
    )


def rejected(context: Context) -> Finding:
    """What the reader found and did not take."""
    rows = context.scenes.rejected
    read = sum(context.scenes.meta.rows_read.values())
    reasons = rows.group_by("reason").len().sort(["len", "reason"], descending=[True, False])
    shown = rows.head(SHOWN).with_columns(
        (pl.col(c) if c in rows.columns else pl.lit(None)).alias(c) for c in ("line", "item")
    )
    return Finding(
        name="rejected",
        severity="warning",
        count=len(rows),
        out_of=max(read, len(rows)),
        sentence=f"{len(rows)} of {max(read, len(rows))} rows or files could not be read and were left out.",
        why="What was left out is in no number below.",
        advice="Repair them at the source; --strict turns them into an error.",
        table=Table(("reason", "rows"), tuple(reasons.head(20).rows())),
        examples=tuple(
            Example(row["file"], row["item"], row["line"], row["reason"])
            for row in shown.iter_rows(named=True)
        ),
    )


def _splits(context: Context) -> pl.DataFrame:
    """One row per video with the splits of the protocol's subset that hold it."""
    context.needs("videos", "splits")
    wanted = [f"{context.protocol.subset}/{split}" for split in context.protocol.splits]
    held = pl.col("splits").fill_null([]).list.set_intersection(wanted).list.sort()
    return context.scenes.videos.select(pl.col("video").cast(pl.String), held.alias("held"))


def _boxes(
    context: Context, rows: pl.DataFrame, name: str, severity: Severity, what: str, advice: str
) -> Finding:
    total = len(context.scenes.boxes)
    names = context.scenes.tubes.select("tube", pl.col("name").cast(pl.String))
    shown = rows.head(SHOWN).join(names, on="tube", how="left", maintain_order="left")
    where = pl.format("{}, {}, {}, {}", *CORNERS)
    return Finding(
        name=name,
        severity=severity,
        count=len(rows),
        out_of=total,
        sentence=f"{len(rows)} of {total} boxes {what}.",
        why="Features and patches made from them are off.",
        advice=advice,
        examples=places(shown, "frame", where),
    )
