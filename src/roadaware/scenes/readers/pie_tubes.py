"""PIE's tracks and boxes: joined, checked, with the attributes, tags and events of the pedestrians."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.readers.cvat import (
    CORNERS,
    listed_tracks,
    sound_boxes,
    spans,
    taken_tracks,
    with_event,
)
from roadaware.scenes.readers.findings import Cells, Findings, first_reason
from roadaware.scenes.readers.pie_terms import (
    BOX_TAGS,
    CROSSING,
    NATIVE_CROSS,
    NATIVE_CROSSING,
    OBJECT_TYPE,
    OBJECT_TYPES,
    OCCLUSION,
    PEDESTRIAN,
    POINTS,
    TRACK_LABEL,
    TRAITS,
)
from roadaware.scenes.readers.sheets import Sheet, sift

_TRACKS: dict[str, type[pl.DataType] | pl.DataType] = {
    "owner": pl.UInt32,
    "name": pl.String,
    "track_label": pl.Enum(TRACK_LABEL),
    "object_type": pl.Enum(OBJECT_TYPE),
}
_BOXES: dict[str, type[pl.DataType] | pl.DataType] = {
    "owner": pl.UInt32,
    "frame": pl.Int64,
    **dict.fromkeys(CORNERS, pl.Float32),
    "occlusion": pl.Enum(OCCLUSION),
    "occluded": pl.Boolean,
    **{name: pl.Enum(labels) for name, labels in BOX_TAGS.items()},
    "cross": pl.Enum(CROSSING),
}


def tubes_and_boxes(
    sheet: Sheet | None, attributes: Sheet | None, head: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `tubes` (by name, numbered from 0) and `boxes` (by tube and frame) of one video.

    `owner` is where a tube's track stands in the file, null for tubes without a track.

    Args:
        sheet: the annotations; without them every pedestrian of the attributes is a tube without boxes.
        attributes: what is known of the pedestrians.
        head: the video's row.
        findings: takes what is refused.
    """
    tracks, boxes = pl.DataFrame(schema=_TRACKS), pl.DataFrame(schema=_BOXES)
    walkers: pl.Series | None = None
    if sheet is not None:
        tracks, boxes = _tracks_and_boxes(sheet, head, findings)
        walkers = tracks.filter(pl.col("track_label").eq("pedestrian").fill_null(value=True))["name"]
    known = _pedestrians(attributes, walkers, head, findings)
    if sheet is None:
        findings.read["tubes"] += len(known)
        alone = known.select("name", pl.lit("pedestrian").cast(pl.Enum(TRACK_LABEL)).alias("track_label"))
        tracks = pl.concat([tracks, alone], how="diagonal")
    tracks = tracks.sort("name").select(pl.int_range(pl.len(), dtype=pl.Int64).alias("tube"), pl.all())
    boxes = boxes.join(tracks.select("owner", "tube"), on="owner", how="inner").sort("tube", "frame")
    tubes = tracks.join(spans(boxes), on="tube", how="left", maintain_order="left")
    tubes = tubes.join(known, on="name", how="left", maintain_order="left")
    if walkers is not None and attributes is not None:
        lost = walkers.filter(~walkers.is_in(known["name"].implode()))
        example = f"{head['video'][0]}: {lost[0]}" if len(lost) else ""
        findings.warn("pedestrians without attributes", example, len(lost))
    video = pl.lit(head["video"][0]).alias("video")
    return with_event(tubes).drop("late_frame").with_columns(video), boxes.drop("owner").with_columns(video)


def _tracks_and_boxes(
    sheet: Sheet, head: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    videos = head.select(pl.lit(0, pl.UInt32).alias("document"), "n_frames")
    tracks = listed_tracks(sheet, videos, ids=("id", "type"))
    boxes = sound_boxes(sheet, tracks, videos, findings)
    tracks = taken_tracks(sheet, tracks, boxes, findings).rename({"type": "object_type"})
    cells = Cells(tracks, sheet.files, findings)
    label = cells.choice("track_label", TRACK_LABEL)
    tracks = tracks.with_columns(pl.format("{} {}", "track_label", "object_type").alias("object_type"))
    kinds = {f"{owner} {kind}": kind for owner, held in OBJECT_TYPES.items() for kind in held}
    kind = Cells(tracks, sheet.files, findings).choice("object_type", OBJECT_TYPE, kinds)
    return tracks.select("owner", pl.col("id").alias("name"), label, kind), _tagged(boxes, sheet, findings)


def _tagged(boxes: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The columns of a box.

    `occluded` is the file's own flag. Of pedestrians it is known how much is hidden; of other objects only
    whether something is, so `occlusion` is `none` or null there.
    """
    clear = pl.when(pl.col("occluded") == "0").then(pl.lit("none"))
    walks = (pl.col("track_label") == "pedestrian").fill_null(value=False)
    boxes = boxes.with_columns(occlusion=pl.when(walks).then("occlusion").otherwise(clear))
    cells = Cells(boxes, sheet.files, findings)
    return boxes.select(
        "owner",
        pl.col("number").alias("frame"),
        *CORNERS,
        cells.choice("occlusion", OCCLUSION),
        cells.flag("occluded"),
        *(cells.choice(name, labels) for name, labels in BOX_TAGS.items()),
        cells.choice("cross", CROSSING, NATIVE_CROSS),
    )


def _pedestrians(
    sheet: Sheet | None, walkers: pl.Series | None, head: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """One row for each pedestrian with what is known of it; the others are refused.

    Args:
        sheet: the attributes.
        walkers: names of tracks that are pedestrians or of unknown kind; None where there are no annotations.
        head: the video's row.
        findings: takes what is refused.
    """
    raw = pl.DataFrame(schema=PEDESTRIAN.schema) if sheet is None else sheet.rows
    lost = pl.lit(value=False) if walkers is None else ~pl.col("id").is_in(walkers.implode())
    reason = first_reason(
        (pl.col("owner").is_null(), f"<{PEDESTRIAN.element}> outside <{PEDESTRIAN.owner}>"),
        (pl.col("id").is_null() | (pl.col("id") == ""), "no id"),
        (lost, "attributes of a pedestrian that has no track"),
    )
    good, bad = sift(raw.with_columns(reason), ["id"], "a second pedestrian with this id")
    findings.read["tubes"] += len(bad)
    if sheet is not None:
        item = pl.format("attributes of '{}'", pl.col("id").fill_null("?"))
        sheet.refuse("tubes", bad.with_columns(item=item), findings)
    cells = Cells(good, [] if sheet is None else sheet.files, findings)
    ends = pl.repeat(head["n_frames"][0], len(good), dtype=pl.Int64, eager=True)
    return good.select(
        pl.col("id").alias("name"),
        *(cells.choice(name, labels) for name, labels in TRAITS.items()),
        cells.whole("num_lanes", lowest=1),
        cells.choice("crossing", CROSSING, NATIVE_CROSSING),
        *(cells.before(cells.whole(name, unknown="-1"), ends) for name in POINTS),
        *cells.numbers(["intention_prob"], within=(0, 1)),
    )
