"""From the columns of a ROAD video to its tables: ids become labels by name, tubes get their tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.road_boxes import IdLists, Ints, refusals
from roadaware.scenes.readers.road_raw import RawVideo
from roadaware.scenes.readers.road_terms import AV_ACTION, Labels, Terms
from roadaware.scenes.readers.road_tracks import Tracks, read_tracks
from roadaware.scenes.readers.source import shown

_USUAL_SIZE = (1280, 960)
_SPANS = pl.List(pl.List(pl.Int64))
_TUBES = ("tube", "video", "name", "start_frame", "end_frame", "parent", "kind", "spans")
_VIDEOS: dict[str, Any] = {
    "video": pl.String,
    "scene": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "path": pl.String,
    "splits": pl.List(pl.String),
    "weather": pl.String,
    "time_of_day": pl.String,
}
Tables = dict[str, pl.DataFrame]


@dataclass(frozen=True)
class _Found:
    """Ids turned into labels: the row each belongs to, and its place in the vocabulary."""

    row: Ints
    label: Ints


def tables_of(raw: RawVideo, terms: Terms) -> tuple[Tables, Findings]:
    """The tables of one video, boxes and tubes numbered from 0, and what was met.

    Args:
        raw: the video.
        terms: the labels of its file.
    """
    findings = Findings()
    findings.merge(raw.findings)
    size = _size(raw, findings)
    tracks = read_tracks(raw.boxes, raw.tubes)
    findings.warn("names of tracks that boxes of one frame share", raw.name, len(tracks.divided))
    _warn_unknown(raw, terms, findings)
    tubes, tube_labels = _tubes(raw, tracks, terms, findings)
    head = raw.head | {"width_px": size[0], "height_px": size[1]}
    tables = {
        "videos": pl.DataFrame([head], schema=_VIDEOS),
        "frames": raw.frames.select(pl.lit(raw.name).alias("video"), pl.all()),
        "boxes": _boxes(raw, tracks, size),
        "labels": _labels(raw, terms, findings),
        "tubes": tubes,
        "tube_labels": tube_labels,
        "frame_labels": _frame_labels(raw, terms.av, findings),
    }
    return tables, findings


def _size(raw: RawVideo, findings: Findings) -> tuple[int, int]:
    """Width and height of the video's image; ROAD's own where the file says none."""
    width, height = raw.head["width_px"], raw.head["height_px"]
    if width is None:
        told = f"{_USUAL_SIZE[0]} x {_USUAL_SIZE[1]}"
        findings.warn(f"videos without an image size, taken as {told} pixels", raw.name)
        return _USUAL_SIZE
    return width, height


def _warn_unknown(raw: RawVideo, terms: Terms, findings: Findings) -> None:
    known = {*terms.boxes, AV_ACTION}
    for native in sorted({*raw.boxes.ids, *raw.tubes} - known):
        findings.warn("kinds of labels that 'label_types' does not name, left aside", f"{raw.name}, {native}")


def _boxes(raw: RawVideo, tracks: Tracks, size: tuple[int, int]) -> pl.DataFrame:
    corners = raw.boxes.corners * np.array([*size, *size], dtype=np.float64)
    tube = pl.Series(tracks.track)
    return pl.DataFrame(
        {
            "video": pl.Series([raw.name], dtype=pl.String).new_from_index(0, len(corners)),
            "frame": raw.boxes.frame,
            "tube": tube.set(tube < 0, None),
            **{f"{c}_px": corners[:, k].astype(np.float32) for k, c in enumerate(("x1", "y1", "x2", "y2"))},
        }
    )


def _labels(raw: RawVideo, terms: Terms, findings: Findings) -> pl.DataFrame:
    """Every label of every box, by kind."""
    boxes = raw.boxes
    parts = []
    for native, labels in terms.boxes.items():
        ids = boxes.ids.get(native)
        if ids is None or ids.absent:
            lacking = len(boxes.key) if ids is None else ids.absent
            findings.warn(f"boxes without {native}_ids", raw.name, lacking)
        if ids is not None:
            items = _Items(raw, "labels", lambda row: f"frame {boxes.frame[row] + 1}, {boxes.key[row]}")
            found = _resolved(ids, labels, items, findings)
            parts.append(_long(found, labels.kind).rename({"row": "box"}))
    empty = pl.DataFrame(schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64})
    return pl.concat([empty, *parts]).sort("box", maintain_order=True)


def _frame_labels(raw: RawVideo, labels: Labels, findings: Findings) -> pl.DataFrame:
    """What the vehicle does in each frame, in the file's order."""
    frame = raw.frames["frame"]
    items = _Items(raw, "frame_labels", lambda row: f"frame {frame[row] + 1}")
    found = _long(_resolved(raw.av, labels, items, findings), labels.kind)
    return found.select(
        pl.lit(raw.name).alias("video"), frame.gather(found["row"]).alias("frame"), "kind", "label"
    )


def _long(found: _Found, kind: str) -> pl.DataFrame:
    kinds = pl.Series([kind], dtype=pl.String).new_from_index(0, len(found.row))
    return pl.DataFrame({"row": found.row, "kind": kinds, "label": found.label})


@dataclass(frozen=True)
class _Items:
    """How refused rows of a table are called: the video and what `name` says of a row."""

    raw: RawVideo
    table: str
    name: Any

    def refuse(self, rows: Ints, reasons: list[str], findings: Findings) -> None:
        items = [f"{self.raw.name}, {self.name(row)}" for row in rows.tolist()]
        findings.read[self.table] += len(items)
        findings.reject_rows(self.table, refusals(self.raw.file, list(zip(items, reasons, strict=True))))


def _resolved(ids: IdLists, labels: Labels, items: _Items, findings: Findings) -> _Found:
    """The used labels that ids name, each once for a row; unused ones are counted and left out."""
    strange = np.flatnonzero((ids.value < 0) | (ids.value >= len(labels.every)))
    reasons = [
        f"{ids.told.get(place, int(ids.value[place]))} is no {labels.native} label: "
        f"there are {len(labels.every)}"
        for place in strange.tolist()
    ]
    items.refuse(ids.row[strange], reasons, findings)
    row, value = np.delete(ids.row, strange), np.delete(ids.value, strange)
    label = labels.places()[value] if len(value) else value
    _count_unused(items.table, labels, value[label < 0], findings)
    used = pl.DataFrame({"row": row[label >= 0], "label": label[label >= 0]})
    once = used.unique(maintain_order=True)
    findings.warn(f"{items.table} that one row has twice", items.raw.name, len(used) - len(once))
    findings.read[items.table] += len(once)
    return _Found(once["row"].to_numpy(), once["label"].to_numpy())


def _count_unused(table: str, labels: Labels, value: Ints, findings: Findings) -> None:
    for place, count in enumerate(np.bincount(value, minlength=0).tolist()):
        if count:
            what = f"{table}: {labels.native} {shown(labels.every[place], 60)}, which is not used"
            findings.left_out[what] += count


def _tubes(
    raw: RawVideo, tracks: Tracks, terms: Terms, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tracks, then the tubes of every kind in the file's order, and what these are."""
    held = tracks.track >= 0
    parts = [_track_rows(raw, tracks, raw.boxes.frame[held], tracks.track[held])]
    findings.read["tubes"] += len(tracks.name)
    labels: list[Ints] = [np.full(len(tracks.name), -1, dtype=np.int64)]
    for kind in terms.kinds:
        if kind.native in raw.tubes:
            rows, label = _derived(raw, kind, tracks, findings)
            parts.append(rows)
            labels.append(label)
    tubes = pl.concat(parts).with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64), video=pl.lit(raw.name))
    named = tubes.select("tube", "kind").with_columns(label=np.concatenate(labels))
    named = named.filter(pl.col("kind").is_not_null())
    findings.read["tube_labels"] += len(named)
    return tubes.select(_TUBES), named


def _track_rows(raw: RawVideo, tracks: Tracks, frame: Ints, track: Ints) -> pl.DataFrame:
    ends = (
        pl.DataFrame({"track": track, "frame": frame})
        .group_by("track")
        .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
    )
    return ends.sort("track").select(
        pl.Series("name", tracks.name, dtype=pl.String),
        "start_frame",
        "end_frame",
        pl.lit(None, pl.Int64).alias("parent"),
        pl.lit(None, pl.String).alias("kind"),
        pl.lit(None, _SPANS).alias("spans"),
    )


def _derived(raw: RawVideo, kind: Labels, tracks: Tracks, findings: Findings) -> tuple[pl.DataFrame, Ints]:
    """The tubes of one kind with used labels whose boxes are one track's, and their labels."""
    tubes = raw.tubes[kind.native]
    item = lambda tube: f"{kind.native}_tubes, {tubes.name[tube]}"  # noqa: E731
    torn = tracks.torn[kind.native]
    items = _Items(raw, "tubes", item)
    reason = "joins boxes that other tubes, which came before, give to road users seen in one frame"
    items.refuse(torn, [reason] * len(torn), findings)
    whole = np.delete(np.arange(len(tubes.name), dtype=np.int64), torn)
    told = {n: tubes.told[tube] for n, tube in enumerate(whole.tolist()) if tube in tubes.told}
    found = _resolved(IdLists(whole, tubes.label[whole], told, 0), kind, items, findings)
    number = np.full(len(tubes.name), -1, dtype=np.int64)
    number[found.row] = np.arange(len(found.row))
    held = number[tubes.tube] >= 0
    rows = spans(number[tubes.tube[held]], tubes.frame[held])
    first = np.searchsorted(tubes.tube, found.row)
    box = tubes.box[first] if len(first) else first
    parent = pl.Series(np.where(box >= 0, tracks.track[box], -1) if len(tracks.track) else box * 0 - 1)
    return rows.select(
        pl.Series("name", [tubes.name[tube] for tube in found.row.tolist()], dtype=pl.String),
        "start_frame",
        "end_frame",
        parent.cast(pl.Int64).set(parent < 0, None).alias("parent"),
        pl.lit(kind.kind).alias("kind"),
        "spans",
    ), found.label


def spans(tube: Ints, frame: Ints) -> pl.DataFrame:
    """For each tube its first frame, the one behind its last, and its stretches without hole.

    Args:
        tube: (members,) the tube each frame belongs to, from 0, none left out; in order.
        frame: (members,) increasing in a tube.
    """
    broken = np.ones(len(tube), dtype=bool)
    broken[1:] = (np.diff(tube) != 0) | (np.diff(frame) != 1)
    first = np.flatnonzero(broken)
    last = np.append(first[1:], len(tube)) - 1
    pieces = pl.DataFrame({"tube": tube[first], "low": frame[first], "high": frame[last[: len(first)]] + 1})
    return pieces.group_by("tube", maintain_order=True).agg(
        start_frame=pl.col("low").first(),
        end_frame=pl.col("high").last(),
        spans=pl.concat_list("low", "high"),
    )
