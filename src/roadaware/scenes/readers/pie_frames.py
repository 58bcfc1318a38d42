"""PIE's frames: the vehicle's sensors, and the traffic state that follows from the boxes."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.readers.findings import Cells, Findings
from roadaware.scenes.readers.pie_terms import PEDESTRIAN_SIGNS, SENSORS, TRAFFIC_LIGHT
from roadaware.scenes.readers.sheets import Sheet, frame_rows

_EXACT = ("latitude", "longitude")


def frames_of(
    head: pl.DataFrame, tubes: pl.DataFrame, boxes: pl.DataFrame, sensed: Sheet | None, findings: Findings
) -> pl.DataFrame:
    """Every frame of one video: all of its length, or, where no file tells that, those with sensor data.

    `annotated` is true where there is a box and null elsewhere: nothing tells whether somebody looked.

    Args:
        head: the video's row.
        tubes: its tubes, with `owner`.
        boxes: its boxes.
        sensed: the vehicle's sensors, one record per frame.
        findings: counts the frames, and takes what is refused.
    """
    sensors = _sensors(head, sensed, findings)
    length = head["n_frames"][0]
    grid = sensors.select("frame") if length is None else pl.DataFrame({"frame": range(length)})
    grid = grid.select(pl.lit(head["video"][0]).alias("video"), pl.col("frame").cast(pl.Int64)).sort("frame")
    findings.read["frames"] += len(grid)
    seen = boxes.select("frame", pl.lit(value=True).alias("annotated")).unique()
    traffic = _traffic(tubes, boxes)
    for columns in (seen, sensors, traffic):
        grid = grid.join(columns, on="frame", how="left", maintain_order="left")
    if length is None:
        return grid
    flags = [pl.col(name).fill_null(value=False) for name in ("ped_crossing", "ped_sign", "stop_sign")]
    return grid.with_columns(*flags, pl.col("traffic_light").fill_null(pl.lit("n/a")))


def _sensors(head: pl.DataFrame, sheet: Sheet | None, findings: Findings) -> pl.DataFrame:
    """One row for each frame of the file; position keeps double precision, a single one errs by metres."""
    kinds = {name: pl.Float64 if name in _EXACT else pl.Float32 for name in SENSORS.values()}
    if sheet is None:
        return pl.DataFrame(schema={"frame": pl.Int64, **kinds})
    lengths = head.select(pl.lit(0, pl.UInt32).alias("document"), "n_frames")
    rows = frame_rows(sheet, lengths, findings)
    cells = Cells(rows, sheet.files, findings)
    columns = pl.DataFrame(cells.numbers(list(SENSORS))).rename(SENSORS).cast(pl.Schema(kinds))
    return rows.select("frame", *columns)


def _traffic(tubes: pl.DataFrame, boxes: pl.DataFrame) -> pl.DataFrame:
    """What of the traffic is in sight, for the frames that show some of it.

    Of several lights in one frame the one whose track stands last in the file counts, whichever way it
    faces and even where its state is undefined: the published rule. `boxes.state` has them all.
    """
    things = boxes.join(tubes.select("tube", "owner", "track_label", "object_type"), on="tube", how="left")
    label, kind = pl.col("track_label"), pl.col("object_type").cast(pl.String)
    lit = label == "traffic_light"
    state = pl.col("state").cast(pl.String).filter(lit).sort_by(pl.col("owner").filter(lit)).last()
    known = pl.when(state.is_in(TRAFFIC_LIGHT)).then(state).otherwise(pl.lit("n/a"))
    return (
        things.group_by("frame")
        .agg(
            (label == "crosswalk").any().alias("ped_crossing"),
            ((label == "sign") & kind.is_in(PEDESTRIAN_SIGNS)).any().alias("ped_sign"),
            ((label == "sign") & (kind == "stop_sign")).any().alias("stop_sign"),
            known.alias("traffic_light"),
        )
        .with_columns(pl.col("traffic_light").cast(pl.Enum(TRAFFIC_LIGHT)))
    )
