"""ROAD and ROAD-Waymo: road events, boxes and tubes with agents, actions and locations, from their JSON.

Singh et al., "ROAD: The road event awareness dataset for autonomous driving", TPAMI 2022. Annotations under
CC BY-NC-SA 4.0, github.com/gurkirt/road-dataset; ROAD-Waymo has the same schema, github.com/salmank255.

Takes a file, or every `road*.json` of a folder or zip; labels are matched by name, and those that the file
does not use are counted and left out. Images and videos are not needed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.datasets import Progress
from roadaware.datasets.issues import Findings
from roadaware.datasets.road_columns import (
    IdLists,
    RawVideo,
    Tracks,
    parse_id_lists,
    read_raw,
    read_tracks,
    refuse,
)
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_text_list,
    escape_surrogates,
    format_value,
    iterate_members,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import FileSource, Source, find_source, to_printable
from roadaware.scenes.factors import run_spans
from roadaware.scenes.tables import Meta, Scenes

# The labels of a ROAD file: its kinds, which labels count, and what composite labels are made of.

HOUSE_KINDS = {"loc": "location", "triplet": "event"}
AGENTNESS = {"agentness": "agent_ness"}
AV_ACTION = "av_action"
_COMPOSITES = {"duplex": ("agent", "action"), "triplet": ("agent", "action", "loc")}
_FOREIGN = "check that it is ROAD's or ROAD-Waymo's annotation file"


@dataclass(frozen=True)
class Labels:
    """One kind of label.

    Args:
        native: the file's name of the kind.
        every: what annotators could choose; the file's ids count these.
        used: what counts, in class order.
    """

    native: str
    every: tuple[str, ...]
    used: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Our name of the kind."""
        return HOUSE_KINDS.get(self.native, self.native)

    def places(self) -> npt.NDArray[np.int64]:
        """(every) the place of each label among the used ones, by name; -1 for one that is not used."""
        used = {name: place for place, name in enumerate(self.used)}
        return np.array([used.get(name, -1) for name in self.every], dtype=np.int64)


@dataclass(frozen=True)
class Terms:
    """Label vocabularies of a file.

    Args:
        boxes: the kinds that boxes and tubes carry, by their native names, in the file's order.
        av: the kind that frames carry.
        children: our name of a composite kind to the parts of each of its used labels.
    """

    boxes: dict[str, Labels]
    av: Labels
    children: dict[str, list[list[int]]]

    @property
    def kinds(self) -> tuple[Labels, ...]:
        """All kinds, that of frames last."""
        return (*self.boxes.values(), self.av)

    @property
    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        """Our kinds to their used labels."""
        named = {labels.kind: labels.used for labels in self.kinds}
        return {kind: (native,) for kind, native in AGENTNESS.items()} | named

    @property
    def native_kinds(self) -> dict[str, str]:
        """Our kinds to the file's."""
        return AGENTNESS | {labels.kind: labels.native for labels in self.kinds}

    @property
    def composites(self) -> dict[str, tuple[str, ...]]:
        """Our composite kinds to ours of their parts."""
        return {
            HOUSE_KINDS.get(native, native): tuple(HOUSE_KINDS.get(part, part) for part in parts)
            for native, parts in _COMPOSITES.items()
            if native in self.boxes and all(part in self.boxes for part in parts)
        }


def read_terms(top: Mapping[str, Any], where: str, findings: Findings) -> Terms:
    """The labels of a file.

    Args:
        top: the file's members but for its videos.
        where: names the file in errors.
        findings: takes oddities.

    Raises:
        InputError: if the kinds or the labels of one are missing or no lists of names, or the parts of
            composite labels are not one for each label.
    """
    if "label_types" not in top:
        raise InputError("there is no 'label_types'", where=where, hint=_FOREIGN)
    kinds = ensure_text_list(top["label_types"], where, "'label_types'")
    boxes = {native: _labels(top, native, where, findings) for native in kinds}
    if len(boxes) < len(kinds) or set(boxes) & {AV_ACTION, "agent_ness", *HOUSE_KINDS.values()}:
        raise InputError(f"'label_types' are {format_value(', '.join(kinds))}", where=where, hint=_FOREIGN)
    av = _labels(top, AV_ACTION, where, findings)
    children = {
        HOUSE_KINDS.get(native, native): found
        for native, parts in _COMPOSITES.items()
        if f"{native}_childs" in top and {native, *parts} <= set(boxes)
        if (found := _children(top[f"{native}_childs"], boxes[native], [boxes[p] for p in parts], where))
    }
    return Terms(boxes, av, children)


def _labels(top: Mapping[str, Any], native: str, where: str, findings: Findings) -> Labels:
    """The labels of a kind; of a file with one of the two lists, that one counts for both."""
    held = [name for name in (f"all_{native}_labels", f"{native}_labels") if name in top]
    if not held:
        raise InputError(f"there is neither 'all_{native}_labels' nor '{native}_labels'", where=where)
    if len(held) == 1:
        findings.warn("kinds of labels with one list, taken as all labels and as the used ones", held[0])
    every, used = (ensure_text_list(top[name], where, f"'{name}'") for name in (held[0], held[-1]))
    if len(set(used)) < len(used):
        raise InputError(f"'{held[-1]}' holds a label twice", where=where)
    strange = [name for name in used if name not in every]
    findings.warn(f"used labels that no box can have, for want of an id in '{held[0]}'", "", len(strange))
    return Labels(native, tuple(every), tuple(used))


def _children(value: Any, composite: Labels, parts: Sequence[Labels], where: str) -> list[list[int]]:
    """The parts of each used label of a composite kind, as indices in our vocabularies.

    The list has one entry for each used label, or one for each label there is. Its numbers point into the
    parts' used lists or into those of all labels: the names of the composite labels decide, and where they
    do not tell, numbers and entries are of the same sort. Empty where a used label has an unused part.

    Raises:
        InputError: if its length fits neither, or an entry is not one number for each part.
    """
    what = f"'{composite.native}_childs'"
    entries = ensure_list(value, where, what)
    own = next((sort for sort in (composite.used, composite.every) if len(sort) == len(entries)), None)
    if own is None:
        message = (
            f"{what} has {len(entries)} entries; there are {len(composite.used)} used labels and "
            f"{len(composite.every)} in all"
        )
        raise InputError(message, where=where)
    sorts = [[part.used for part in parts], [part.every for part in parts]]
    read = [_words(entries, lists) for lists in (sorts if own is composite.used else sorts[::-1])]
    fitting = [words for words in read if words is not None]
    if not fitting:
        odd = next((e for e in entries if not any(_words([e], lists) for lists in sorts)), entries[0])
        raise InputError(f"{what} holds {_format_entry(odd)}, expected a number for each part", where=where)
    # Names such as Ped-MovAway spell out their parts: the reading whose words make up the names is right.
    said = next(
        (w for w in fitting if all("-".join(e) == n for e, n in zip(w, own, strict=True))), fitting[0]
    )
    parts_of = dict(zip(own, said, strict=True))
    if not all(label in parts_of for label in composite.used):
        return []
    spelled = [list(zip(parts, parts_of[label], strict=True)) for label in composite.used]
    if not all(word in part.used for pairs in spelled for part, word in pairs):
        return []
    return [[part.used.index(word) for part, word in pairs] for pairs in spelled]


def _words(entries: Sequence[Any], lists: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """The entries as names from the lists; None where one is not an index for each of them."""
    found = []
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != len(lists):
            return None
        if any(parse_int(n, 0, len(names_) - 1) is None for n, names_ in zip(entry, lists, strict=True)):
            return None
        found.append([names_[n] for n, names_ in zip(entry, lists, strict=True)])
    return found


def _format_entry(entry: Any) -> str:
    return ", ".join(format_value(n) for n in entry[:5]) if isinstance(entry, list) else format_value(entry)


# From the columns of a ROAD video to its tables: ids become labels by name, tubes get their tracks.

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


def build_road_tables(raw: RawVideo, terms: Terms) -> tuple[Tables, Findings]:
    """The tables of one video, boxes and tubes numbered from 0, and what was met."""
    findings = Findings()
    findings.merge(raw.findings)
    # Width and height of the video's image; ROAD's own where the file says none
    width, height = raw.head["width_px"], raw.head["height_px"]
    if width is None:
        text = f"{_USUAL_SIZE[0]} x {_USUAL_SIZE[1]}"
        findings.warn(f"videos without an image size, taken as {text} pixels", raw.name)
        size = _USUAL_SIZE
    else:
        size = (width, height)
    tracks = read_tracks(raw.boxes, raw.tubes)
    findings.warn("names of tracks that boxes of one frame share", raw.name, len(tracks.divided))
    known = {*terms.boxes, AV_ACTION}
    for native in sorted({*raw.boxes.ids, *raw.tubes} - known):
        findings.warn("kinds of labels that 'label_types' does not name, left aside", f"{raw.name}, {native}")
    for native, ids in raw.boxes.ids.items():
        # Every predicted tube of the kind is wrong there.
        if native in terms.boxes and native not in raw.tubes and len(ids.value):
            findings.warn(f"videos without {native}_tubes whose boxes have {native}_ids", raw.name)
    tubes, tube_labels = _tubes(raw, tracks, terms, findings)
    head = raw.head | {"width_px": size[0], "height_px": size[1]}
    tables = {
        "videos": pl.DataFrame([head], schema=_VIDEOS),
        "frames": raw.frames.select(pl.lit(raw.name).alias("video"), pl.all()),
        "boxes": _boxes(raw, tracks, size),
        "labels": _build_box_labels(raw, terms, findings),
        "tubes": tubes,
        "tube_labels": tube_labels,
        "frame_labels": _frame_labels(raw, terms.av, findings),
    }
    return tables, findings


def _boxes(raw: RawVideo, tracks: Tracks, size: tuple[int, int]) -> pl.DataFrame:
    corners = raw.boxes.corners * np.array([*size, *size], dtype=np.float64)
    tube = pl.Series(tracks.track)
    return pl.DataFrame(
        {
            "video": _repeat_text(raw.name, len(corners)),
            "frame": raw.boxes.frame,
            "tube": tube.set(tube < 0, None),
            **{f"{c}_px": corners[:, k].astype(np.float32) for k, c in enumerate(("x1", "y1", "x2", "y2"))},
        }
    )


def _build_box_labels(raw: RawVideo, terms: Terms, findings: Findings) -> pl.DataFrame:
    """Every label of every box, by kind."""
    boxes = raw.boxes
    none = np.zeros(0, dtype=np.int64)
    # A file without kinds of labels has boxes all the same.
    parts = [] if terms.boxes else [_Found(none, none)]
    for native, labels in terms.boxes.items():
        ids = boxes.ids.get(native)
        if ids is None or ids.absent:
            lacking = len(boxes.key) if ids is None else ids.absent
            findings.warn(f"boxes without {native}_ids", raw.name, lacking)
        ids = ids or parse_id_lists([])
        items = _Items(raw, "labels", lambda row: f"frame {boxes.frame[row] + 1}, {boxes.key[row]}")
        parts.append(_resolve_labels(ids, labels, items, findings))
    box, label = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "label"))
    kind = np.repeat(np.arange(len(parts)), [len(part.row) for part in parts])
    order = np.argsort(box, kind="stable")
    words = pl.Series([labels.kind for labels in terms.boxes.values()], dtype=pl.String)
    return pl.DataFrame({"box": box[order], "kind": words.gather(kind[order]), "label": label[order]})


def _frame_labels(raw: RawVideo, labels: Labels, findings: Findings) -> pl.DataFrame:
    """Actions of the vehicle in each frame, in the file's order."""
    frame = raw.frames["frame"]
    items = _Items(raw, "frame_labels", lambda row: f"frame {frame[row] + 1}")
    found = _resolve_labels(raw.av, labels, items, findings)
    return pl.DataFrame(
        {
            "video": _repeat_text(raw.name, len(found.row)),
            "frame": frame.gather(found.row),
            "kind": _repeat_text(labels.kind, len(found.row)),
            "label": found.label,
        }
    )


def _repeat_text(text: str, count: int) -> pl.Series:
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


def _resolve_labels(ids: IdLists, labels: Labels, items: _Items, findings: Findings) -> _Found:
    """The used labels that ids name, each once for a row; unused ones are counted and left out."""
    strange = np.flatnonzero((ids.value < 0) | (ids.value >= len(labels.every)))
    reasons = [
        f"{ids.written.get(place, int(ids.value[place]))} is no {labels.native} label: "
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
            what = f"{table}: {labels.native} {to_printable(labels.every[place], 60)}, which is not used"
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
    order = np.lexsort((raw.boxes.frame, tracks.track))
    order = order[tracks.track[order] >= 0]
    none = np.full(len(tracks.name), -1, dtype=np.int64)
    parts = [_Part(None, tracks.name, none, none, tracks.track[order], raw.boxes.frame[order])]
    parts += [
        _build_derived_tubes(raw, kind, tracks, findings) for kind in terms.kinds if kind.native in raw.tubes
    ]
    counts = [len(part.name) for part in parts]
    starts = np.cumsum([0, *counts])
    findings.read["tubes"] += counts[0]
    findings.read["tube_labels"] += int(starts[-1]) - counts[0]
    tube = np.concatenate([part.tube + start for part, start in zip(parts, starts, strict=False)])
    parent = pl.Series(np.concatenate([part.parent for part in parts]), dtype=pl.Int64)
    kinds = [part.kind for part, count in zip(parts, counts, strict=True) for _ in range(count)]
    times = run_spans(tube, np.concatenate([part.frame for part in parts]))
    number = pl.Series(np.arange(starts[-1], dtype=np.int64))
    kind = pl.Series(kinds, dtype=pl.String)
    tubes = pl.DataFrame(
        {
            "tube": number,
            "video": _repeat_text(raw.name, len(number)),
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


def _build_derived_tubes(raw: RawVideo, kind: Labels, tracks: Tracks, findings: Findings) -> _Part:
    """The tubes of one kind with used labels whose boxes are one track's."""
    tubes = raw.tubes[kind.native]
    items = _Items(raw, "tubes", lambda tube: f"{kind.native}_tubes, {tubes.name[tube]}")
    torn = tracks.torn[kind.native]
    items.refuse(torn, [_TORN] * len(torn), findings)
    whole = np.delete(np.arange(len(tubes.name), dtype=np.int64), torn)
    notes = {n: tubes.written[tube] for n, tube in enumerate(whole.tolist()) if tube in tubes.written}
    found = _resolve_labels(IdLists(whole, tubes.label[whole], notes, 0), kind, items, findings)
    number = np.full(len(tubes.name), -1, dtype=np.int64)
    number[found.row] = np.arange(len(found.row))
    held = number[tubes.tube] >= 0
    box = tubes.box[np.searchsorted(tubes.tube, found.row)]
    parent = np.full(len(box), -1, dtype=np.int64)
    parent[box >= 0] = tracks.track[box[box >= 0]]
    names = [tubes.name[tube] for tube in found.row.tolist()]
    return _Part(kind.kind, names, parent, found.label, number[tubes.tube[held]], tubes.frame[held])


VERSION = 1
MOST_BYTES = 4 << 30
_LICENCES = {
    "ROAD": "CC BY-NC-SA 4.0 (annotations)",
    "ROAD-Waymo": "Waymo Dataset License Agreement for Non-Commercial Use (annotations)",
}
_NAME = re.compile(r"road.*\.json", re.IGNORECASE)
_WAYMO = re.compile(r"waymo|road[-_]?(?:plus|pp|\+\+)", re.IGNORECASE)
_WANTED = "ROAD needs its annotations, a file 'road*.json',"
_HINT = "Point at the file, such as road_trainval_v1.0.json, or the folder or zip that holds it."


def find(path: Path) -> Source:
    """The annotation files at `path`: a JSON file, a folder with `road*.json` in it, or a zip of one.

    Raises:
        DatasetNotFoundError: if there is none, or files of both datasets lie in one folder.
        InputError: if the path cannot be read.
    """
    source = find_source(path, lambda found: bool(inputs(found)), _WANTED, _HINT, suffix=".json")
    source.most_bytes = MOST_BYTES
    datasets = sorted({dataset for name in inputs(source) if (dataset := _dataset(name))})
    if len(datasets) > 1:
        source.close()
        raise DatasetNotFoundError(
            f"{to_printable(str(path))} holds files of {' and '.join(datasets)}. {_HINT}"
        )
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    if isinstance(source, FileSource):
        return [source.name]
    return [name for name in source.files("", ".json") if _NAME.fullmatch(name)]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos of the files; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        progress: called with the number of hundredths of the files' text read and the total.

    Raises:
        InputError: if no video can be read.
    """
    names = inputs(source)
    findings = Findings()
    held: list[_File] = []
    errors: list[InputError] = []
    for place, name in enumerate(names):
        try:
            file = _read_file(source, name, _Told(progress, 100 * place, 100 * len(names)))
            # Two files of one set have the same labels
            where = source.where(name)
            if held and file.terms.vocabularies != held[0].terms.vocabularies:
                message = f"its labels are not those of {to_printable(held[0].name)}"
                raise InputError(message, where=where, hint="read the two files one by one")
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
            continue
        findings.read["files"] += 1
        findings.merge(file.findings)
        held.append(file)
    # The tables of every video, each video once
    parts: list[Tables] = []
    seen: set[str] = set()
    for file in held:
        for video in file.videos:
            if video.name in seen:
                findings.reject("videos", file.name, video.name, "stands in the set twice")
                continue
            seen.add(video.name)
            tables, met = build_road_tables(video, file.terms)
            findings.merge(met)
            parts.append(tables)
    if not parts:
        raise _nothing(errors, findings, source, names)
    cut = sum(int(video.boxes.cut) for file in held for video in file.videos)
    # The videos' tables under each other, boxes and tubes numbered in their order
    shifted: list[Tables] = []
    boxes = tubes = 0
    for part in parts:
        tube, box = pl.col("tube") + tubes, pl.col("box") + boxes
        shifted.append(
            part
            | {
                "boxes": part["boxes"]
                .select((pl.int_range(pl.len(), dtype=pl.Int64) + boxes).alias("box"), pl.all())
                .with_columns(tube),
                "labels": part["labels"].with_columns(box),
                "tubes": part["tubes"].with_columns(tube, pl.col("parent") + tubes),
                "tube_labels": part["tube_labels"].with_columns(tube),
            }
        )
        boxes, tubes = boxes + len(part["boxes"]), tubes + len(part["tubes"])
    tables = {name: pl.concat([part[name] for part in shifted]) for name in parts[0]}
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=_meta(source, names, held[0].terms, tables["videos"], findings, cut),
    )


@dataclass(frozen=True)
class _File:
    """Content of one file."""

    name: str
    terms: Terms
    videos: list[RawVideo]
    findings: Findings


@dataclass(frozen=True)
class _Told:
    """Reports the progress of one file within all."""

    progress: Progress | None
    start: int
    total: int

    def __call__(self, hundredths: int) -> None:
        if self.progress is not None:
            self.progress(self.start + hundredths, self.total, "hundredths of the text")


def _read_file(source: Source, name: str, road_terms: _Told) -> _File:
    """The columns of one file's videos.

    Raises:
        InputError: if it cannot be read as a whole: no strict JSON, labels or videos missing.
    """
    where = source.where(name)
    text = decode(source.read(name), where)
    findings = Findings()
    top: dict[str, Any] = {}
    videos: list[RawVideo] = []
    with pause_garbage_collection():
        for place, path, value in iterate_members(text, where, lambda path: path in ((), ("db",))):
            road_terms(place * 100 // len(text))
            if len(path) != 2:
                top[path[0] if path else ""] = value
                continue
            video = to_printable(escape_surrogates(path[1]), 255)
            try:
                videos.append(read_raw(video, value, name, f"{where}, {video}"))
            except InputError as error:
                findings.reject("videos", name, video, error.message)
    if "" in top:
        message = f"expected an object at the top and found {describe_type(top[''])}"
        raise InputError(message, where=where, hint=_HINT)
    terms = read_terms(top, where, findings)
    if "db" in top:
        raise InputError(f"'db' should be an object and is {describe_type(top['db'])}", where=where)
    road_terms(100)
    return _File(name, terms, videos, findings)


def _nothing(
    errors: Sequence[InputError], findings: Findings, source: Source, names: Sequence[str]
) -> InputError:
    """Why not one video could be read: the first reason, with how many files there were."""
    if not errors:
        refused = findings.table().filter(table="videos")["reason"]
        message = f"no video can be read; the first: {refused[0]}" if len(refused) else "'db' holds no video"
        return InputError(message, where=source.where(names[0]), hint=_HINT)
    if len(names) == 1:
        return errors[0]
    message = f"none of {len(names)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)


def _meta(
    source: Source,
    names: Sequence[str],
    terms: Terms,
    videos: pl.DataFrame,
    findings: Findings,
    cut: int,
) -> Meta:
    dataset = _dataset(names[0]) or _dataset_by_splits(videos)
    return Meta(
        dataset=dataset,
        licence=_LICENCES[dataset],
        vocabularies=terms.vocabularies,
        composites=terms.composites,
        source_digest=source.contents(names),
        rows_read=dict(sorted(findings.read.items())),
        notes={
            **findings.notes(),
            "native_kinds": terms.native_kinds,
            "children": terms.children,
            "all_labels": {labels.kind: list(labels.every) for labels in terms.kinds},
            "boxes_cut_at_the_edge": cut,
        },
    )


def _dataset(name: str) -> str | None:
    """Dataset by a file's name."""
    if _WAYMO.search(name):
        return "ROAD-Waymo"
    return "ROAD" if _NAME.fullmatch(name) else None


def _dataset_by_splits(videos: pl.DataFrame) -> str:
    """ROAD has three splits for validation, ROAD-Waymo one."""
    named = set(videos["splits"].explode().drop_nulls())
    return "ROAD-Waymo" if named & {"train", "val"} else "ROAD"
