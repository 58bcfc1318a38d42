"""JAAD's tracks and boxes: joined, checked, with the attributes, tags and events of the pedestrians."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.readers.cvat import (
    CORNERS,
    TRACK,
    listed_tracks,
    sound_boxes,
    spans,
    taken_tracks,
    with_event,
)
from roadaware.scenes.readers.findings import Cells, Findings, first_reason
from roadaware.scenes.readers.jaad_terms import (
    APPEARANCE,
    BOX_TAGS,
    CROSSING,
    OCCLUSION,
    TRACK_LABEL,
    TRAITS,
)
from roadaware.scenes.readers.records import owners_of
from roadaware.scenes.readers.sheets import Sheet, frame_reasons, sift

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
    tracks = listed_tracks(sheet, videos, ids=("id", "old_id"))
    sound = sound_boxes(sheet, tracks, videos, findings)
    tracks = _numbered(taken_tracks(sheet, tracks, sound, findings), sheet, findings)
    boxes = _tagged(sound, sheet, findings)
    boxes = boxes.join(tracks.select("tube", *TRACK), on=TRACK, how="inner").sort("tube", "frame")
    tubes = tracks.join(spans(boxes), on="tube", how="left", maintain_order="left")
    tubes = _with_attributes(tubes, sides["attributes"], videos, findings)
    if "appearance" in sides:
        boxes = _with_appearance(boxes, tubes, sides["appearance"], videos, findings)
    names = videos.select("document", "video")
    boxes = boxes.join(names, on="document", how="left", maintain_order="left")
    tubes = tubes.join(names, on="document", how="left", maintain_order="left")
    return tubes.drop("document", "owner", "late_frame"), boxes.drop("document", "owner")


def _tagged(good: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The columns of a box: corners, occlusion and behaviour tags."""
    cells = Cells(good, sheet.files, findings)
    tags = [cells.choice(name, labels) for name, labels in BOX_TAGS.items()]
    return good.select(
        *TRACK, pl.col("number").alias("frame"), *CORNERS, cells.choice("occlusion", OCCLUSION), *tags
    )


def _numbered(tracks: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The tracks ordered by video and name and numbered, with what their label and name tell."""
    label = Cells(tracks, sheet.files, findings).choice("track_label", TRACK_LABEL)
    return (
        tracks.select(*TRACK, pl.col("id").alias("name"), "old_id", label)
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
        cells.before(cells.whole(name, unknown="-1"), good["n_frames"])
        for name in ("crossing_point", "decision_point")
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
    return with_event(joined.drop("described"))


def _with_appearance(
    boxes: pl.DataFrame, tubes: pl.DataFrame, sheet: Sheet, videos: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The boxes with their appearance flags; flags without a box are refused."""
    keys = boxes.select("tube", pl.col("frame").alias("number"), pl.lit(value=True).alias("held"))
    rows = (
        sheet.rows.join(videos.select("document", "n_frames"), on="document", maintain_order="left")
        .join(_pictured(sheet, tubes), on=TRACK, how="left", maintain_order="left")
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
        .select(*TRACK, "name", "tube")
    )
