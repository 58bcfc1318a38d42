"""Tracks and boxes of CVAT's video format: joined and checked, or refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings, first_reason
from roadaware.scenes.readers.records import owners_of
from roadaware.scenes.readers.sheets import Sheet, frame_reasons, sift
from roadaware.scenes.readers.source import shown
from roadaware.scenes.readers.xml import text_at

MOST_FRAMES = 100_000
MOST_PIXELS = 65_535
TRACK = ("document", "owner")
CORNERS = {"x1_px": "xtl", "y1_px": "ytl", "x2_px": "xbr", "y2_px": "ybr"}
EVENT_SOURCE = ("annotated", "fallback", "none")


def frame_count(tree: etree._Element, where: str) -> int:
    """How many frames the video has, as the file's head says.

    Raises:
        InputError: if that is missing, no number, or out of reason.
    """
    size = text_at(tree, "meta/task/size")
    frames = _count(size)
    if frames is None or frames > MOST_FRAMES:
        message = f"meta/task/size should be the number of frames, 1 to {MOST_FRAMES}, and is {quoted(size)}"
        raise InputError(message, where=where)
    return frames


def image_size(tree: etree._Element, where: str, findings: Findings) -> tuple[int | None, int | None]:
    """Width and height of the original image in pixels, null (with a warning) where the head tells none."""
    pixels: list[int | None] = []
    for side in ("width", "height"):
        text = text_at(tree, f"meta/task/original_size/{side}")
        count = _count(text)
        pixels.append(count if count is not None and count <= MOST_PIXELS else None)
        if pixels[-1] is None:
            what = "image sizes that are no number of pixels, kept as null"
            findings.warn(what, f"{where}: {quoted(text)}")
    return pixels[0], pixels[1]


def listed_tracks(sheet: Sheet, videos: pl.DataFrame, ids: Sequence[str] = ("id",)) -> pl.DataFrame:
    """Every track, with its label, the first ids its boxes name, and what is wrong with it.

    Args:
        sheet: the annotations.
        videos: `document` of those that were taken.
        ids: columns of the boxes that belong to the track; `id` must be among them.
    """
    taken = set(videos["document"])
    listed = [
        (place, owner, element.get("label"), element.sourceline)
        for place, root in sorted(sheet.roots.items())
        if place in taken
        for owner, element in enumerate(owners_of(root, sheet.record))
    ]
    schema = {"document": pl.UInt32, "owner": pl.UInt32, "track_label": pl.String, "line": pl.Int64}
    tracks = pl.DataFrame(listed, schema=schema, orient="row")
    first = sheet.rows.group_by(TRACK, maintain_order=True).agg(pl.col(*ids).drop_nulls().first())
    tracks = tracks.join(first, on=TRACK, how="left", maintain_order="left")
    named = pl.col("id").is_not_null() & (pl.col("id") != "")
    return tracks.with_columns(
        first_reason(
            (~named, "no box of the track names its id"),
            (
                ~pl.struct("document", "id").is_first_distinct(),
                "a second track with an id that this video already has",
            ),
        ).alias("track_reason")
    )


def sound_boxes(sheet: Sheet, tracks: pl.DataFrame, videos: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The boxes that are whole, inside their video, and alone in their track and frame.

    Args:
        sheet: the annotations.
        tracks: see `listed_tracks`.
        videos: `document` and `n_frames` of those that were taken.
        findings: counts the boxes, and takes what is refused.

    Returns:
        The raw columns, and `number` (the frame), the corners and `track_label`.
    """
    outside = sheet.rows["outside"] == "1"
    findings.left_out["boxes outside the picture (outside=1)"] += int(outside.sum())
    rows = sheet.rows.filter(~outside.fill_null(value=False))
    findings.read["boxes"] += len(rows)
    known = tracks.select(*TRACK, pl.col("id").alias("track_id"), "track_label", "track_reason")
    rows = rows.join(videos.select("document", "n_frames"), on="document", how="left", maintain_order="left")
    rows = rows.join(known, on=TRACK, how="left", maintain_order="left").with_columns(
        pl.col("frame").cast(pl.Int64, strict=False).alias("number"),
        *(pl.col(raw).cast(pl.Float32, strict=False).alias(name) for name, raw in CORNERS.items()),
    )
    rows = rows.with_columns(_box_reason(sheet))
    good, bad = sift(rows, [*TRACK, "number"], "a second box of this track in this frame")
    item = pl.format("track '{}', frame '{}'", pl.col("id").fill_null("?"), pl.col("frame").fill_null("?"))
    sheet.refuse("boxes", bad.with_columns(item=item), findings)
    return good


def taken_tracks(sheet: Sheet, tracks: pl.DataFrame, boxes: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The tracks that have boxes; the others are refused.

    Args:
        sheet: the annotations.
        tracks: see `listed_tracks`.
        boxes: see `sound_boxes`.
        findings: counts the tracks, and takes what is refused.
    """
    findings.read["tubes"] += len(tracks)
    held = boxes.select(*TRACK, pl.lit(value=True).alias("held")).unique()
    empty = pl.when(pl.col("held").is_null()).then(pl.lit("none of its boxes could be taken"))
    tracks = tracks.join(held, on=TRACK, how="left", maintain_order="left").with_columns(
        reason=pl.coalesce("track_reason", empty)
    )
    bad = tracks.filter(pl.col("reason").is_not_null())
    files = pl.Series("file", [sheet.files[place] for place in bad["document"]], dtype=pl.String)
    item = pl.format("track '{}'", pl.col("id").fill_null("?"))
    findings.reject_rows("tubes", bad.with_columns(files, item=item))
    return tracks.filter(pl.col("reason").is_null()).drop("reason", "track_reason", "held", "line")


def spans(boxes: pl.DataFrame) -> pl.DataFrame:
    """For each tube the interval of its boxes, and `late_frame`, its third box from the end.

    Args:
        boxes: `tube` and `frame`, sorted by both.
    """
    return boxes.group_by("tube", maintain_order=True).agg(
        pl.col("frame").first().alias("start_frame"),
        (pl.col("frame").last() + 1).alias("end_frame"),
        pl.when(pl.len() > 3)
        .then(pl.col("frame").get(-3, null_on_oob=True))
        .otherwise(pl.col("frame").last())
        .alias("late_frame"),
    )


def with_event(tubes: pl.DataFrame) -> pl.DataFrame:
    """The frame of the event and where it comes from.

    Where the crossing point is annotated, that is the event. A pedestrian that crosses without one gets the
    third frame from the track's end (the last of a track of at most three boxes): the published fallback.
    """
    annotated = pl.col("crossing_point").is_not_null()
    crosses = (pl.col("crossing") == "crossing").fill_null(value=False)
    fallback = crosses & pl.col("late_frame").is_not_null()
    source = pl.when(annotated).then(pl.lit("annotated")).when(fallback).then(pl.lit("fallback"))
    return tubes.with_columns(
        pl.when(annotated).then("crossing_point").when(fallback).then("late_frame").alias("event_frame"),
        source.otherwise(pl.lit("none")).cast(pl.Enum(EVENT_SOURCE)).alias("event_source"),
    )


def quoted(text: str | None) -> str:
    """A raw text between quotes for messages, or that it is missing."""
    return "missing" if text is None else f"'{shown(text, 40)}'"


def _count(text: str | None) -> int | None:
    """A plain whole number from 1, of at most nine digits."""
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return (int(text) or None) if text is not None and plain else None


def _box_reason(sheet: Sheet) -> pl.Expr:
    corners = [pl.col(raw) for raw in CORNERS.values()]
    told = pl.format("(xtl, ytl, xbr, ybr = {}, {}, {}, {})", *corners)
    return first_reason(
        *frame_reasons("frame", "number", sheet.record.element, sheet.record.owner),
        (pl.any_horizontal(corner.is_null() for corner in corners), "a coordinate is missing"),
        (
            ~pl.all_horizontal(pl.col(name).is_finite().fill_null(value=False) for name in CORNERS),
            pl.format("a coordinate is no finite number {}", told),
        ),
        (
            (pl.col("x1_px") > pl.col("x2_px")) | (pl.col("y1_px") > pl.col("y2_px")),
            pl.format("upside down {}", told),
        ),
        (pl.col("track_reason").is_not_null(), pl.format("its track is refused: {}", "track_reason")),
        (
            pl.col("id").is_null() | (pl.col("id") != pl.col("track_id")),
            pl.format("the id differs from '{}', the first of its track", "track_id"),
        ),
    )
