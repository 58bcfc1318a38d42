"""From the columns of a ROAD video to its tables: ids become labels by name, tubes get their tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.road_boxes import IdLists, id_lists, refuse
from roadaware.scenes.readers.road_raw import RawVideo
from roadaware.scenes.readers.road_terms import AV_ACTION, Labels, Terms
from roadaware.scenes.readers.road_tracks import Tracks, read_tracks
from roadaware.scenes.readers.source import shown

_USUAL_SIZE = (1280, 960)
_TORN = "joins boxes that other tubes, which came before, give to road users seen in one frame"
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
            "video": _repeated(raw.name, len(corners)),
            "frame": raw.boxes.frame,
            "tube": tube.set(tube < 0, None),
            **{f"{c}_px": corners[:, k].astype(np.float32) for k, c in enumerate(("x1", "y1", "x2", "y2"))},
        }
    )


def _labels(raw: RawVideo, terms: Terms, findings: Findings) -> pl.DataFrame:
    """Every label of every box, by kind."""
    boxes = raw.boxes
    parts: list[_Found] = []
    for native, labels in terms.boxes.items():
        ids = boxes.ids.get(native)
        if ids is None or ids.absent:
            lacking = len(boxes.key) if ids is None else ids.absent
            findings.warn(f"boxes without {native}_ids", raw.name, lacking)
        ids = ids or id_lists([])
        items = _Items(raw, "labels", lambda row: f"frame {boxes.frame[row] + 1}, {boxes.key[row]}")
        parts.append(_resolved(ids, labels, items, findings))
    box, label = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "label"))
    kind = np.repeat(np.arange(len(parts)), [len(part.row) for part in parts])
    order = np.argsort(box, kind="stable")
    words = pl.Series([labels.kind for labels in terms.boxes.values()], dtype=pl.String)
    return pl.DataFrame({"box": box[order], "kind": words.gather(kind[order]), "label": label[order]})


def _frame_labels(raw: RawVideo, labels: Labels, findings: Findings) -> pl.DataFrame:
    """What the vehicle does in each frame, in the file's order."""
    frame = raw.frames["frame"]
    items = _Items(raw, "frame_labels", lambda row: f"frame {frame[row] + 1}")
    found = _resolved(raw.av, labels, items, findings)
    return pl.DataFrame(
        {
            "video": _repeated(raw.name, len(found.row)),
            "frame": frame.gather(found.row),
            "kind": _repeated(labels.kind, len(found.row)),
            "label": found.label,
        }
    )


def _repeated(text: str, count: int) -> pl.Series:
    return pl.Series([text], dtype=pl.String).new_from_index(0, count)


@dataclass(frozen=True)
class _Items:
    """How refused rows of a table are called: the video and what `name` says of a row."""

    raw: RawVideo
    table: str
    name: Any

    def refuse(self, rows: Ints, reasons: list[str], findings: Findings) -> None:
        items = [f"{self.raw.name}, {self.name(row)}" for row in rows.tolist()]
        findings.read[self.table] += len(items)
        refuse(findings, self.table, self.raw.file, list(zip(items, reasons, strict=True)))


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
    row, label = row[label >= 0], label[label >= 0]
    _, first = np.unique(row * (len(labels.used) + 1) + label, return_index=True)
    findings.warn(f"{items.table} that one row has twice", items.raw.name, len(row) - len(first))
    findings.read[items.table] += len(first)
    once = np.sort(first)
    return _Found(row[once], label[once])


def _count_unused(table: str, labels: Labels, value: Ints, findings: Findings) -> None:
    for place, count in enumerate(np.bincount(value, minlength=0).tolist()):
        if count:
            what = f"{table}: {labels.native} {shown(labels.every[place], 60)}, which is not used"
            findings.left_out[what] += count


@dataclass(frozen=True)
class _Part:
    """The tubes of one kind, or the tracks: their rows, and the frames they are in.

    Args:
        kind: our name, None for tracks.
        name: (tubes,) the file's names.
        parent: (tubes,) the track; -1 for none.
        label: (tubes,) place in the vocabulary.
        tube: (members,) the tube of each frame, from 0, none left out; in order.
        frame: (members,) increasing in a tube.
    """

    kind: str | None
    name: list[str]
    parent: Ints
    label: Ints
    tube: Ints
    frame: Ints


def _tubes(
    raw: RawVideo, tracks: Tracks, terms: Terms, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tracks, then the tubes of every kind in the file's order, and what these are."""
    parts = [_track_part(raw, tracks)]
    parts += [_derived(raw, kind, tracks, findings) for kind in terms.kinds if kind.native in raw.tubes]
    counts = [len(part.name) for part in parts]
    starts = np.cumsum([0, *counts])
    findings.read["tubes"] += counts[0]
    findings.read["tube_labels"] += int(starts[-1]) - counts[0]
    tube = np.concatenate([part.tube + start for part, start in zip(parts, starts, strict=False)])
    parent = pl.Series(np.concatenate([part.parent for part in parts]), dtype=pl.Int64)
    kinds = [part.kind for part, count in zip(parts, counts, strict=True) for _ in range(count)]
    times = spans(tube, np.concatenate([part.frame for part in parts]))
    number = pl.Series(np.arange(starts[-1], dtype=np.int64))
    kind = pl.Series(kinds, dtype=pl.String)
    tubes = pl.DataFrame(
        {
            "tube": number,
            "video": _repeated(raw.name, len(number)),
            "name": pl.Series([name for part in parts for name in part.name], dtype=pl.String),
            "start_frame": times["start_frame"],
            "end_frame": times["end_frame"],
            "parent": parent.set(parent < 0, None),
            "kind": kind,
            "spans": times["spans"].set(kind.is_null(), None),
        }
    )
    label = np.concatenate([part.label for part in parts])
    named = pl.DataFrame({"tube": number, "kind": kind, "label": label})
    return tubes, named.slice(counts[0])


def _track_part(raw: RawVideo, tracks: Tracks) -> _Part:
    order = np.lexsort((raw.boxes.frame, tracks.track))
    order = order[tracks.track[order] >= 0]
    none = np.full(len(tracks.name), -1, dtype=np.int64)
    return _Part(None, tracks.name, none, none, tracks.track[order], raw.boxes.frame[order])


def _derived(raw: RawVideo, kind: Labels, tracks: Tracks, findings: Findings) -> _Part:
    """The tubes of one kind with used labels whose boxes are one track's."""
    tubes = raw.tubes[kind.native]
    items = _Items(raw, "tubes", lambda tube: f"{kind.native}_tubes, {tubes.name[tube]}")
    torn = tracks.torn[kind.native]
    items.refuse(torn, [_TORN] * len(torn), findings)
    whole = np.delete(np.arange(len(tubes.name), dtype=np.int64), torn)
    told = {n: tubes.told[tube] for n, tube in enumerate(whole.tolist()) if tube in tubes.told}
    found = _resolved(IdLists(whole, tubes.label[whole], told, 0), kind, items, findings)
    number = np.full(len(tubes.name), -1, dtype=np.int64)
    number[found.row] = np.arange(len(found.row))
    held = number[tubes.tube] >= 0
    box = tubes.box[np.searchsorted(tubes.tube, found.row)]
    parent = np.full(len(box), -1, dtype=np.int64)
    parent[box >= 0] = tracks.track[box[box >= 0]]
    names = [tubes.name[tube] for tube in found.row.tolist()]
    return _Part(kind.kind, names, parent, found.label, number[tubes.tube[held]], tubes.frame[held])


def spans(tube: Ints, frame: Ints) -> pl.DataFrame:
    """For each tube its first frame, the one behind its last, and its stretches without hole.

    Args:
        tube: (members,) the tube each frame belongs to, from 0, none left out; in order.
        frame: (members,) increasing in a tube.
    """
    broken = np.ones(len(tube), dtype=bool)
    broken[1:] = (np.diff(tube) != 0) | (np.diff(frame) != 1)
    first = np.flatnonzero(broken)
    last = np.append(first, len(tube))[1:] - 1
    pieces = pl.DataFrame({"tube": tube[first], "low": frame[first], "high": frame[last] + 1})
    return pieces.group_by("tube", maintain_order=True).agg(
        start_frame=pl.col("low").first(),
        end_frame=pl.col("high").last(),
        spans=pl.concat_list("low", "high"),
    )
