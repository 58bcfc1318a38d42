"""Checks on what is annotated of crossings: attribute, tags and event against each other."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.audit.context import Context, NotApplicableError, counted, places
from roadaware.analysis.audit.findings import Finding, Table

_NEAR_FRAMES = 15


def tags_against_attribute(context: Context) -> Finding:
    """Pedestrians whose attribute denies the crossing that their boxes show."""
    rows = context.crossing.filter(pl.col("is_tagged"))
    denied = rows.filter((_crossing() != "crossing") & pl.col("first_tag").is_not_null())
    table = denied.group_by(_crossing().alias("attribute")).len().sort("attribute")
    return counted(
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


def attribute_against_tags(context: Context) -> Finding:
    """Pedestrians whose attribute claims a crossing that no box shows."""
    rows = context.crossing.filter(pl.col("is_tagged") & (_crossing() == "crossing"))
    unseen = rows.filter(pl.col("first_tag").is_null())
    return counted(
        unseen,
        rows,
        "crossing pedestrians are tagged as crossing nowhere.",
        name="attribute-against-tags",
        severity="warning",
        why="Either they cross after their track ends or one of the two annotations is wrong.",
        advice="Look at the examples.",
        at="start_frame",
    )


def event_far_from_tags(context: Context) -> Finding:
    """Crossing pedestrians whose event is far from the first frame tagged as crossing."""
    rows = _annotated(context.crossing).filter(
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
        examples=places(far, "event_frame", pl.format("first tagged as crossing at {}", "first_tag")),
    )


def event_outside_track(context: Context) -> Finding:
    """Annotated events at a frame where the pedestrian has no box."""
    context.needs("boxes")
    rows = _annotated(context.pedestrians)
    held = context.scenes.boxes.select("tube", pl.col("frame").alias("event_frame"))
    lost = rows.join(held, on=["tube", "event_frame"], how="anti", maintain_order="left")
    return counted(
        lost,
        rows,
        "annotated events lie where the pedestrian has no box.",
        name="event-outside-track",
        severity="warning",
        why="The time to event cannot be counted in boxes of the track.",
        advice="Correct the event or the track; until then these pedestrians cannot be sampled as published.",
        at="event_frame",
    )


def crosser_without_event(context: Context) -> Finding:
    """Crossing pedestrians without an annotated event."""
    rows = context.pedestrians.filter(_crossing() == "crossing")
    lost = rows.filter(pl.col("event_source").cast(pl.String) != "annotated")
    return counted(
        lost,
        rows,
        "crossing pedestrians have no annotated start of crossing.",
        name="crosser-without-event",
        severity="warning",
        why="Without it nothing says what is before the crossing and what is during it.",
        advice="Do not sample them for prediction; `event_source` marks them.",
        at="start_frame",
    )


def event_without_crossing(context: Context) -> Finding:
    """Pedestrians with an event who do not cross."""
    if context.protocol.dataset != "jaad":
        raise NotApplicableError("this dataset gives every pedestrian an event by design")
    rows = context.pedestrians.filter(_crossing().is_not_null() & (_crossing() != "crossing"))
    has = _annotated(rows)
    at_start = has.filter(pl.col("event_frame") == pl.col("start_frame"))
    return counted(
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


def _annotated(tubes: pl.DataFrame) -> pl.DataFrame:
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
