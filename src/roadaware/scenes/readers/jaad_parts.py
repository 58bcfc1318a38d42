"""A batch of JAAD videos read into its share of the tables, every row taken or refused with its reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.cvat import frame_count, image_size
from roadaware.scenes.readers.findings import Cells, Findings
from roadaware.scenes.readers.jaad_terms import (
    BOX,
    ROAD_TYPE,
    SIDES,
    TRAFFIC_LIGHT,
    VEHICLE_ACTION,
)
from roadaware.scenes.readers.jaad_tubes import tubes_and_boxes
from roadaware.scenes.readers.records import Walker
from roadaware.scenes.readers.sheets import Sheet, frame_rows, read_sheet
from roadaware.scenes.readers.source import Source, shown
from roadaware.scenes.readers.xml import text_at

_HEAD_SCHEMA = {
    "document": pl.UInt32,
    "video": pl.String,
    "scene": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "path": pl.String,
    "weather": pl.String,
    "time_of_day": pl.String,
    "location": pl.String,
}


@dataclass(frozen=True)
class Part:
    """A batch's rows, tubes numbered from 0; what was met on the way; why videos could not be read."""

    videos: pl.DataFrame
    frames: pl.DataFrame
    boxes: pl.DataFrame
    tubes: pl.DataFrame
    findings: Findings
    errors: list[InputError]


def read_part(
    source: Source,
    batch: Sequence[tuple[str, str]],
    present: Collection[str],
    walker: Walker,
    *,
    appearance: bool,
) -> Part:
    """Read all files of some videos.

    Args:
        source: the repository.
        batch: videos with the names of their annotation files, in order.
        present: names of all files there are.
        walker: who reads what the scanner does not know.
        appearance: whether to read the appearance flags.
    """
    findings = Findings()
    sheet = read_sheet(source, [name for _, name in batch], BOX, "annotations", findings, walker)
    heads, sheet = _heads(batch, sheet, findings)
    sides = {
        kind: _side(source, kind, batch, heads, present, findings, walker)
        for kind in SIDES
        if kind != "appearance" or appearance
    }
    frames = _frames(heads, sides, findings)
    tubes, boxes = tubes_and_boxes(sheet, sides, heads.select("document", "video", "n_frames"), findings)
    videos = heads.with_columns(_road_types(heads, sides["traffic"], findings)).drop("document")
    findings.read["videos"] += len(videos)
    return Part(
        videos, frames, boxes, tubes, findings, [sheet.errors[place] for place in sorted(sheet.errors)]
    )


def _heads(batch: Sequence[tuple[str, str]], sheet: Sheet, findings: Findings) -> tuple[pl.DataFrame, Sheet]:
    """One row for each video that says how long it is; the others are refused as files."""
    rows: list[dict[str, Any]] = []
    errors = dict(sheet.errors)
    for place, tree in sorted(sheet.roots.items()):
        video, name = batch[place]
        try:
            rows.append({"document": place, **_head(tree, video, sheet.documents[place].where, findings)})
        except InputError as error:
            errors[place] = error
            findings.read["files"] -= 1
            findings.reject_file(name, error)
    heads = pl.DataFrame(rows, schema=_HEAD_SCHEMA)
    kept = sheet.rows.join(heads.select("document"), on="document", how="semi", maintain_order="left")
    return heads, replace(sheet, rows=kept, errors=errors)


def _head(tree: etree._Element, video: str, where: str, findings: Findings) -> dict[str, Any]:
    length = frame_count(tree, where)
    width, height = image_size(tree, where, findings)
    words = {
        name: text_at(tree, f"meta/task/video_attributes/{name}")
        for name in ("weather", "time_of_day", "location")
    }
    return {
        "video": shown(video, 255),
        "scene": shown(video, 255),
        "width_px": width,
        "height_px": height,
        "fps": None,
        "n_frames": length,
        "path": f"JAAD_clips/{shown(video, 255)}.mp4",
        **{name: None if word in (None, "n/a") else word for name, word in words.items()},
    }


def _side(
    source: Source,
    kind: str,
    batch: Sequence[tuple[str, str]],
    heads: pl.DataFrame,
    present: Collection[str],
    findings: Findings,
    walker: Walker,
) -> Sheet:
    """The records of one further kind of file, of the videos whose annotations were taken."""
    record, root = SIDES[kind]
    taken = set(heads["document"])
    names: list[str | None] = []
    for place, (video, _) in enumerate(batch):
        name = f"annotations_{kind}/{video}_{kind}.xml"
        names.append(name if place in taken and name in present else None)
        if place in taken and name not in present:
            findings.warn(f"videos without a file in annotations_{kind}/", video)
    return read_sheet(source, names, record, root, findings, walker)


def _frames(heads: pl.DataFrame, sides: dict[str, Sheet], findings: Findings) -> pl.DataFrame:
    """Every frame of every video, with traffic and the vehicle's action where they are known."""
    grid = (
        heads.select("document", "video", pl.int_ranges("n_frames").alias("frame"))
        .explode("frame")
        .with_columns(annotated=pl.lit(value=True))
    )
    findings.read["frames"] += len(grid)
    lengths = heads.select("document", "n_frames")
    vehicle = frame_rows(sides["vehicle"], lengths, findings)
    cells = Cells(vehicle, sides["vehicle"].files, findings)
    actions = vehicle.select(
        "document", "frame", cells.choice("action", VEHICLE_ACTION).alias("vehicle_action")
    )
    traffic = frame_rows(sides["traffic"], lengths, findings)
    cells = Cells(traffic, sides["traffic"].files, findings)
    flags = [cells.flag(name) for name in ("ped_crossing", "ped_sign", "stop_sign")]
    state = traffic.select("document", "frame", *flags, cells.choice("traffic_light", TRAFFIC_LIGHT))
    for columns in (actions, state):
        grid = grid.join(columns, on=["document", "frame"], how="left", maintain_order="left")
    return grid.drop("document")


def _road_types(heads: pl.DataFrame, traffic: Sheet, findings: Findings) -> pl.Series:
    words = [
        text_at(traffic.roots[place], "road_type") if place in traffic.roots else None
        for place in heads["document"]
    ]
    rows = pl.DataFrame({"document": heads["document"], "road_type": pl.Series(words, dtype=pl.String)})
    return Cells(rows, traffic.files, findings).choice("road_type", ROAD_TYPE)
