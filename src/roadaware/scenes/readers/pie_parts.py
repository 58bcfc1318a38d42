"""One PIE video read into its share of the tables, every row taken or refused with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.cvat import frame_count, image_size
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.pie_frames import frames_of
from roadaware.scenes.readers.pie_terms import PEDESTRIAN, SPLIT, box_record, vehicle_record
from roadaware.scenes.readers.pie_tubes import tubes_and_boxes
from roadaware.scenes.readers.records import Record, Walker
from roadaware.scenes.readers.sheets import Sheet, read_sheet
from roadaware.scenes.readers.source import Source, shown

_HEAD_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "video": pl.String,
    "scene": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "path": pl.String,
    "splits": pl.List(pl.String),
}


_FORMS: dict[str, tuple[Record | Callable[[str], Record], str]] = {
    "annotations": (box_record, "annotations"),
    "annotations_attributes": (PEDESTRIAN, "ped_attributes"),
    "annotations_vehicle": (vehicle_record, "vehicle_info"),
}


@dataclass(frozen=True)
class Part:
    """One video's tables, tubes numbered from 0; none and the reason where it cannot be read."""

    tables: dict[str, pl.DataFrame]
    findings: Findings
    error: InputError | None = None


def read_part(source: Source, video: str, files: Mapping[str, str], walker: Walker | None) -> Part:
    """Read all files of one video.

    A video whose boxes cannot be read is refused whole. Without a file of boxes its pedestrians come from
    the attributes alone, as tubes without boxes and without interval.

    Args:
        source: the parts of PIE, see `pie.find`.
        video: such as `set01/video_0001`.
        files: folder to the name of the video's file in it.
        walker: who reads boxes that the scanner does not know.
    """
    findings = Findings()
    boxes = _sheet(source, files, "annotations", findings, walker)
    if boxes is not None and boxes.errors:
        return Part({}, findings, boxes.errors[0])
    try:
        head = _head(video, boxes, findings)
    except InputError as error:
        findings.read["files"] -= 1
        findings.reject_file(files["annotations"], error)
        return Part({}, findings, error)
    known = _sheet(source, files, "annotations_attributes", findings)
    sensed = _sheet(source, files, "annotations_vehicle", findings)
    sheets = [sheet for sheet in (boxes, known, sensed) if sheet is not None]
    if all(sheet.errors for sheet in sheets):
        return Part({}, findings, sheets[0].errors[0])
    tubes, rows = tubes_and_boxes(boxes, known, head, findings)
    frames = frames_of(head, tubes, rows, sensed, findings)
    findings.read["videos"] += 1
    tables = {"videos": head, "frames": frames, "tubes": tubes.drop("owner"), "boxes": rows}
    return Part(tables, findings)


def _sheet(
    source: Source,
    files: Mapping[str, str],
    folder: str,
    findings: Findings,
    walker: Walker | None = None,
) -> Sheet | None:
    """The records of one of the video's files, None where there is none."""
    if folder not in files:
        return None
    record, root = _FORMS[folder]
    return read_sheet(source, [files[folder]], record, root, findings, walker)


def _head(video: str, boxes: Sheet | None, findings: Findings) -> pl.DataFrame:
    """The video's row of the table; size and length are null where no file of boxes tells them."""
    width, height, length = None, None, None
    if boxes is not None:
        where = boxes.documents[0].where
        length = frame_count(boxes.roots[0], where)
        width, height = image_size(boxes.roots[0], where, findings)
    name, scene = shown(video, 255), video.partition("/")[0]
    row = {
        "video": name,
        "scene": shown(scene, 255),
        "width_px": width,
        "height_px": height,
        "fps": None,
        "n_frames": length,
        "path": f"PIE_clips/{name}.mp4",
        "splits": [f"default/{SPLIT[scene]}"] if scene in SPLIT else [],
    }
    return pl.DataFrame([row], schema=_HEAD_SCHEMA)
