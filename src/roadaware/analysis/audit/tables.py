"""Checks on tracks, boxes, videos and splits, for any task."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.audit.checks import (
    SHOWN,
    Context,
    Example,
    Finding,
    NotApplicableError,
    Severity,
    Table,
    build_finding,
    list_examples,
)
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
    return build_finding(
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


def check_boxes_outside(context: Context) -> Finding:
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


def check_empty_boxes(context: Context) -> Finding:
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


def check_repeated_names(context: Context) -> Finding:
    """Tracks that share video and identifier with another."""
    tubes = context.scenes.tubes
    # What is cut out of a track by its labels has the track's name.
    tubes = tubes.filter(pl.col("parent").is_null()) if "parent" in tubes.columns else tubes
    named = tubes.with_columns(pl.col("video", "name").cast(pl.String)).drop_nulls("name")
    twice = named.filter(pl.struct("video", "name").is_duplicated())
    return build_finding(
        twice,
        named,
        "tracks share their identifier with another of their video.",
        name="repeated-names",
        severity="warning",
        why="Metrics by pedestrian merge what belongs to two people, or attributes go to the wrong one.",
        advice="Rename one of them at the source.",
        at="start_frame",
    )


def check_vehicle_action(context: Context) -> Finding:
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


def check_split_overlap(context: Context) -> Finding:
    """Videos that more than one split of the protocol's subset names."""
    rows = _splits(context)
    twice = rows.filter(pl.col("held").list.len() > 1)
    return build_finding(
        twice,
        rows,
        f"videos are in several splits of {context.protocol.subset}.",
        name="videos-in-two-splits",
        severity="serious",
        why="What a model was fitted or chosen on is then tested again.",
        advice="Give each video one split.",
        note=pl.col("held").list.join(", "),
    )


def check_unassigned_videos(context: Context) -> Finding:
    """Videos that no split of the protocol's subset names."""
    rows = _splits(context)
    none = rows.filter(pl.col("held").list.len() == 0)
    return build_finding(
        none,
        rows,
        f"videos are in no split of {context.protocol.subset}.",
        name="videos-in-no-split",
        severity="note",
        why="They count in statistics of the dataset and not in any result.",
        advice="Say which subset a count is of.",
    )


def check_rejected(context: Context) -> Finding:
    """Rows that the reader rejected."""
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
        examples=list_examples(shown, "frame", where),
    )


# Checks on what is annotated of crossings: attribute, tags and event against each other.

_NEAR_FRAMES = 15


def check_tags_against_attribute(context: Context) -> Finding:
    """Pedestrians whose attribute denies the crossing that their boxes show."""
    rows = context.crossing.filter(pl.col("is_tagged"))
    denied = rows.filter((_crossing() != "crossing") & pl.col("first_tag").is_not_null())
    table = denied.group_by(_crossing().alias("attribute")).len().sort("attribute")
    return build_finding(
        denied,
        rows,
        "pedestrians with tags are tagged as crossing while their attribute says not-crossing or irrelevant.",
        name="tags-against-attribute",
        severity="warning",
        why="The label of the samples is the attribute: these crossings count as none. Counting tags "
        "and counting attributes gives different numbers of crossing pedestrians.",
        advice="Say which of the two a number counts; look at the examples before trusting either.",
        at="first_tag",
        table=Table(("attribute", "pedestrians"), tuple(table.rows())),
        measures=_crossing_of_subset(context),
    )


def check_attribute_against_tags(context: Context) -> Finding:
    """Pedestrians whose attribute states a crossing that no box shows."""
    rows = context.crossing.filter(pl.col("is_tagged") & (_crossing() == "crossing"))
    unseen = rows.filter(pl.col("first_tag").is_null())
    return build_finding(
        unseen,
        rows,
        "crossing pedestrians are tagged as crossing nowhere.",
        name="attribute-against-tags",
        severity="warning",
        why="Either they cross after their track ends or one of the two annotations is wrong.",
        advice="Look at the examples.",
        at="start_frame",
    )


def check_event_distance(context: Context) -> Finding:
    """Crossing pedestrians whose event is far from the first frame tagged as crossing."""
    rows = _select_annotated(context.crossing).filter(
        (_crossing() == "crossing") & pl.col("first_tag").is_not_null()
    )
    off = pl.col("event_frame") - pl.col("first_tag")
    far = rows.filter(off.abs() > _NEAR_FRAMES)
    late = far.filter(off > 0)
    return Finding(
        name="event-far-from-tags",
        severity="warning",
        count=len(far),
        out_of=len(rows),
        sentence=f"For {len(far)} of {len(rows)} crossing pedestrians event and first frame tagged as "
        f"crossing are more than {_NEAR_FRAMES} frames apart; for {len(late)} the event comes after.",
        why="An event after the first crossing frame lets observations show the crossing; one long before "
        "shifts the time to event.",
        advice="default() drops the samples that show the crossing; check the rest by eye.",
        measures={"event_after_tag": len(late), "event_before_tag": len(far) - len(late)},
        examples=list_examples(far, "event_frame", pl.format("first tagged as crossing at {}", "first_tag")),
    )


def check_event_outside_track(context: Context) -> Finding:
    """Annotated events at a frame where the pedestrian has no box."""
    context.needs("boxes")
    rows = _select_annotated(context.pedestrians)
    held = context.scenes.boxes.select("tube", pl.col("frame").alias("event_frame"))
    lost = rows.join(held, on=["tube", "event_frame"], how="anti", maintain_order="left")
    return build_finding(
        lost,
        rows,
        "annotated events lie where the pedestrian has no box.",
        name="event-outside-track",
        severity="warning",
        why="The time to event cannot be counted in boxes of the track.",
        advice="Correct the event or the track; until then these pedestrians cannot be sampled as published.",
        at="event_frame",
    )


def check_crosser_event(context: Context) -> Finding:
    """Crossing pedestrians without an annotated event."""
    rows = context.pedestrians.filter(_crossing() == "crossing")
    lost = rows.filter(pl.col("event_source").cast(pl.String) != "annotated")
    return build_finding(
        lost,
        rows,
        "crossing pedestrians have no annotated start of crossing.",
        name="crosser-without-event",
        severity="warning",
        why="Without it nothing says what is before the crossing and what is during it.",
        advice="Do not sample them for prediction; `event_source` marks them.",
        at="start_frame",
    )


def check_event_without_crossing(context: Context) -> Finding:
    """Pedestrians with an event who do not cross."""
    if context.protocol.dataset != "jaad":
        raise NotApplicableError("this dataset gives every pedestrian an event by design")
    rows = context.pedestrians.filter(_crossing().is_not_null() & (_crossing() != "crossing"))
    has = _select_annotated(rows)
    at_start = has.filter(pl.col("event_frame") == pl.col("start_frame"))
    return build_finding(
        has,
        rows,
        "pedestrians who do not cross have an annotated crossing point, "
        f"{len(at_start)} of them at their first box.",
        name="event-without-crossing",
        severity="note",
        why="For them it marks something else (a last decision, the last frame in sight), and samplers "
        "that only look whether it is set cut the track there; one cut at its first box gives no sample.",
        advice="Read the point together with the attribute.",
        at="event_frame",
        measures={"at_first_box": len(at_start)},
    )


def _crossing() -> pl.Expr:
    return pl.col("crossing").cast(pl.String)


def _select_annotated(tubes: pl.DataFrame) -> pl.DataFrame:
    """Pedestrians whose event somebody annotated."""
    return tubes.filter(pl.col("event_source").cast(pl.String) == "annotated")


def _crossing_of_subset(context: Context) -> dict[str, float | int | None]:
    """Crossing pedestrians of the protocol's subset, counted by attribute and by tags."""
    context.needs("videos", "splits")
    prefix = f"{context.protocol.subset}/"
    inside = pl.col("splits").list.eval(pl.element().str.starts_with(prefix)).list.any().fill_null(False)
    held = context.scenes.videos.filter(inside)["video"].cast(pl.String)
    rows = context.crossing.filter(pl.col("video").is_in(held.implode()))
    return {
        "subset_crossing_by_attribute": len(rows.filter(_crossing() == "crossing")),
        "subset_crossing_by_tags": len(rows.filter(pl.col("first_tag").is_not_null())),
        "subset_pedestrians": len(rows),
    }
