"""JAAD's tracks and boxes: joined, checked, with the attributes, tags and events of the pedestrians."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.readers.findings import Cells, Findings, first_reason
from roadaware.scenes.readers.jaad_terms import (
    APPEARANCE,
    BOX_TAGS,
    CROSSING,
    EVENT_SOURCE,
    OCCLUSION,
    TRACK_LABEL,
    TRAITS,
)
from roadaware.scenes.readers.records import owners_of
from roadaware.scenes.readers.sheets import Sheet, frame_reasons, sift

_TRACK = ["document", "owner"]
_CORNERS = {"x1_px": "xtl", "y1_px": "ytl", "x2_px": "xbr", "y2_px": "ybr"}
_CROSSES = {"0": "not-crossing", "1": "crossing", "-1": "irrelevant"}


def tubes_and_boxes(
    sheet: Sheet, sides: dict[str, Sheet], videos: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `tubes` (by video and name, numbered from 0) and `boxes` (by tube and frame) of a batch.

    Args:
        sheet: the annotations.
        sides: attributes, and appearance where wanted.
        videos: `document`, `video` and `n_frames` of those that were taken.
        findings: takes what is refused.
    """
    tracks = _tracks(sheet, videos)
    boxes = _boxes(sheet, tracks, videos, findings)
    tracks = _taken(sheet, tracks, boxes, findings)
    boxes = boxes.join(tracks.select("tube", *_TRACK), on=_TRACK, how="inner").sort("tube", "frame")
    spans = boxes.group_by("tube", maintain_order=True).agg(
        pl.col("frame").first().alias("start_frame"),
        (pl.col("frame").last() + 1).alias("end_frame"),
        pl.when(pl.len() > 3)
        .then(pl.col("frame").get(-3, null_on_oob=True))
        .otherwise(pl.col("frame").last())
        .alias("late_frame"),
    )
    tubes = tracks.join(spans, on="tube", how="left", maintain_order="left")
    tubes = _with_attributes(tubes, sides["attributes"], videos, findings)
    if "appearance" in sides:
        boxes = _with_appearance(boxes, tubes, sides["appearance"], videos, findings)
    names = videos.select("document", "video")
    boxes = boxes.join(names, on="document", how="left", maintain_order="left")
    tubes = tubes.join(names, on="document", how="left", maintain_order="left")
    return tubes.drop("document", "owner", "late_frame"), boxes.drop("document", "owner")


def _tracks(sheet: Sheet, videos: pl.DataFrame) -> pl.DataFrame:
    """Every track of the batch, with its label, the first id its boxes name, and what is wrong with it."""
    taken = set(videos["document"])
    listed = [
        (place, owner, element.get("label"), element.sourceline)
        for place, root in sorted(sheet.roots.items())
        if place in taken
        for owner, element in enumerate(owners_of(root, sheet.record))
    ]
    schema = {"document": pl.UInt32, "owner": pl.UInt32, "track_label": pl.String, "line": pl.Int64}
    tracks = pl.DataFrame(listed, schema=schema, orient="row")
    ids = sheet.rows.group_by(_TRACK, maintain_order=True).agg(pl.col("id", "old_id").drop_nulls().first())
    tracks = tracks.join(ids, on=_TRACK, how="left", maintain_order="left")
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


def _boxes(sheet: Sheet, tracks: pl.DataFrame, videos: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The boxes that are whole, inside their video, and alone in their track and frame."""
    outside = sheet.rows["outside"] == "1"
    findings.left_out["boxes outside the picture (outside=1)"] += int(outside.sum())
    rows = sheet.rows.filter(~outside.fill_null(value=False))
    findings.read["boxes"] += len(rows)
    known = tracks.select(*_TRACK, pl.col("id").alias("track_id"), "track_reason")
    rows = rows.join(videos.select("document", "n_frames"), on="document", how="left", maintain_order="left")
    rows = rows.join(known, on=_TRACK, how="left", maintain_order="left").with_columns(
        pl.col("frame").cast(pl.Int64, strict=False).alias("number"),
        *(pl.col(raw).cast(pl.Float32, strict=False).alias(name) for name, raw in _CORNERS.items()),
    )
    good, bad = sift(
        rows.with_columns(_box_reason(sheet)),
        [*_TRACK, "number"],
        "a second box of this track in this frame",
    )
    item = pl.format("track '{}', frame '{}'", pl.col("id").fill_null("?"), pl.col("frame").fill_null("?"))
    sheet.refuse("boxes", bad.with_columns(item=item), findings)
    return _tagged(good, sheet, findings)


def _box_reason(sheet: Sheet) -> pl.Expr:
    corners = [pl.col(raw) for raw in _CORNERS.values()]
    return first_reason(
        *frame_reasons("frame", "number", sheet.record.element, sheet.record.owner),
        (pl.any_horizontal(corner.is_null() for corner in corners), "a coordinate is missing"),
        (
            ~pl.all_horizontal(pl.col(name).is_finite().fill_null(value=False) for name in _CORNERS),
            pl.format("a coordinate is no finite number (xtl, ytl, xbr, ybr = {}, {}, {}, {})", *corners),
        ),
        (
            (pl.col("x1_px") > pl.col("x2_px")) | (pl.col("y1_px") > pl.col("y2_px")),
            pl.format("upside down (xtl, ytl, xbr, ybr = {}, {}, {}, {})", *corners),
        ),
        (pl.col("track_reason").is_not_null(), pl.format("its track is refused: {}", "track_reason")),
        (
            pl.col("id").is_null() | (pl.col("id") != pl.col("track_id")),
            pl.format("the id differs from '{}', the first of its track", "track_id"),
        ),
    )


def _tagged(good: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The columns of a box: corners, occlusion and behaviour tags."""
    cells = Cells(good, sheet.files, findings)
    tags = [cells.choice(name, labels) for name, labels in BOX_TAGS.items()]
    return good.select(
        *_TRACK, pl.col("number").alias("frame"), *_CORNERS, cells.choice("occlusion", OCCLUSION), *tags
    )


def _taken(sheet: Sheet, tracks: pl.DataFrame, boxes: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The tracks that are left, ordered by video and name and numbered; the others are refused."""
    findings.read["tubes"] += len(tracks)
    held = boxes.select(*_TRACK, pl.lit(value=True).alias("held")).unique()
    tracks = tracks.join(held, on=_TRACK, how="left", maintain_order="left").with_columns(
        reason=pl.coalesce(
            "track_reason", pl.when(pl.col("held").is_null()).then(pl.lit("none of its boxes could be taken"))
        ),
    )
    bad = tracks.filter(pl.col("reason").is_not_null())
    files = [sheet.files[place] for place in bad["document"]]
    item = pl.format("track '{}'", pl.col("id").fill_null("?"))
    findings.reject_rows("tubes", bad.with_columns(pl.Series("file", files, dtype=pl.String), item=item))
    good = tracks.filter(pl.col("reason").is_null())
    label = Cells(good, sheet.files, findings).choice("track_label", TRACK_LABEL)
    return (
        good.select(*_TRACK, pl.col("id").alias("name"), "old_id", label)
        .with_columns(behaviour=pl.col("name").str.ends_with("b"))
        .sort("document", "name")
        .with_row_index("tube")
        .with_columns(pl.col("tube").cast(pl.Int64))
    )


def _with_attributes(
    tubes: pl.DataFrame, attributes: Sheet, videos: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The tubes with what is known of the pedestrian, and with the event."""
    known = tubes.select("document", pl.col("name").alias("id"), pl.lit(value=True).alias("known"))
    rows = attributes.rows.join(known, on=["document", "id"], how="left", maintain_order="left")
    reason = first_reason(
        (pl.col("id").is_null(), "no id"),
        (pl.col("known").is_null(), "attributes of a pedestrian that has no track"),
    )
    good, bad = sift(rows.with_columns(reason), ["document", "id"], "a second pedestrian with this id")
    findings.read["tubes"] += len(bad)
    item = pl.format("attributes of '{}'", pl.col("id").fill_null("?"))
    attributes.refuse("tubes", bad.with_columns(item=item), findings)
    good = good.join(videos.select("document", "n_frames"), on="document", how="left", maintain_order="left")
    cells = Cells(good, attributes.files, findings)
    points = [
        _inside(cells.whole(name, unknown="-1"), good, cells) for name in ("crossing_point", "decision_point")
    ]
    traits = good.select(
        "document",
        pl.col("id").alias("name"),
        *(cells.choice(name, labels) for name, labels in TRAITS.items()),
        *(cells.whole(name, lowest=1) for name in ("group_size", "num_lanes")),
        cells.choice("crossing", CROSSING, _CROSSES),
        *points,
        pl.lit(value=True).alias("described"),
    )
    joined = tubes.join(traits, on=["document", "name"], how="left", maintain_order="left")
    lost = joined.filter(pl.col("behaviour") & pl.col("described").is_null())
    if len(lost):
        findings.warn("pedestrians with behaviour but without attributes", str(lost["name"][0]), len(lost))
    return _with_event(joined.drop("described"))


def _inside(points: pl.Series, rows: pl.DataFrame, cells: Cells) -> pl.Series:
    """Frame numbers, null where they lie behind the end of the video."""
    late = (points >= rows["n_frames"]).fill_null(value=False)
    if late.any():
        first = int(late.arg_true()[0])
        example = f"{cells.files[rows['document'][first]]}: {points[first]}"
        cells.findings.warn(
            f"{points.name}: behind the end of the video, kept as null", example, int(late.sum())
        )
    return points.set(late, None)


def _with_event(tubes: pl.DataFrame) -> pl.DataFrame:
    """The frame of the event and where it comes from.

    Where the crossing point is annotated, that is the event. A pedestrian that crosses without one gets the
    third frame from the track's end (the last of a track of at most three boxes): the published fallback.
    """
    annotated = pl.col("crossing_point").is_not_null()
    fallback = (pl.col("crossing") == "crossing").fill_null(value=False)
    source = pl.when(annotated).then(pl.lit("annotated")).when(fallback).then(pl.lit("fallback"))
    return tubes.with_columns(
        pl.when(annotated).then("crossing_point").when(fallback).then("late_frame").alias("event_frame"),
        source.otherwise(pl.lit("none")).cast(pl.Enum(EVENT_SOURCE)).alias("event_source"),
    )


def _with_appearance(
    boxes: pl.DataFrame, tubes: pl.DataFrame, sheet: Sheet, videos: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The boxes with their appearance flags; flags without a box are refused."""
    keys = boxes.select("tube", pl.col("frame").alias("number"), pl.lit(value=True).alias("held"))
    rows = (
        sheet.rows.join(videos.select("document", "n_frames"), on="document", maintain_order="left")
        .join(_pictured(sheet, tubes), on=_TRACK, how="left", maintain_order="left")
        .with_columns(pl.col("frame").cast(pl.Int64, strict=False).alias("number"))
        .join(keys, on=["tube", "number"], how="left", maintain_order="left")
    )
    reason = first_reason(
        *frame_reasons("frame", "number", sheet.record.element, sheet.record.owner),
        (pl.col("held").is_null(), "appearance of a pedestrian that has no box in this frame"),
    )
    good, bad = sift(rows.with_columns(reason), ["tube", "number"], "a second appearance of this box")
    findings.read["appearance"] += len(rows)
    item = pl.format("track '{}', frame '{}'", pl.col("name").fill_null("?"), pl.col("frame").fill_null("?"))
    sheet.refuse("appearance", bad.with_columns(item=item), findings)
    cells = Cells(good, sheet.files, findings)
    flags = good.select("tube", pl.col("number").alias("frame"), *(cells.flag(name) for name in APPEARANCE))
    return boxes.join(flags, on=["tube", "frame"], how="left", maintain_order="left")


def _pictured(sheet: Sheet, tubes: pl.DataFrame) -> pl.DataFrame:
    """The tube that each track of the appearance files means: by old id where one tube has it, else by id.

    In the published files 1,827 bystanders carry another id here than in `annotations/`, mostly that of
    somebody else; the old ids agree for every box.
    """
    listed = [
        (place, owner, element.get("id"), element.get("old_id"))
        for place, root in sorted(sheet.roots.items())
        for owner, element in enumerate(owners_of(root, sheet.record))
    ]
    schema = {"document": pl.UInt32, "owner": pl.UInt32, "name": pl.String, "old_id": pl.String}
    tracks = pl.DataFrame(listed, schema=schema, orient="row")
    alone = tubes.filter(~pl.struct("document", "old_id").is_duplicated() & pl.col("old_id").is_not_null())
    by_old = alone.select("document", "old_id", pl.col("tube").alias("by_old"))
    by_id = tubes.select("document", "name", pl.col("tube").alias("by_id"))
    return (
        tracks.join(by_old, on=["document", "old_id"], how="left", maintain_order="left")
        .join(by_id, on=["document", "name"], how="left", maintain_order="left")
        .with_columns(tube=pl.coalesce("by_old", "by_id"))
        .select(*_TRACK, "name", "tube")
    )
