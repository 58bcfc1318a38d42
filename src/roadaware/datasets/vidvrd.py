"""VidVRD and VidOR: relations in videos, with a track for each subject and object.

Shang, Ren, Guo, Zhang and Chua, "Video visual relation detection", ACM MM 2017; Shang, Di, Xiao, Cao, Yang
and Chua, "Annotating objects and relations in user-generated videos", ICMR 2019.

Takes the annotations of one video, a folder or zip with a file for each (right in it, or in the folders of
the splits, at any of VidOR's depths), or one file with all: {video: annotation}, or the ground truth that
VidVRD-helper writes, {video: [relations with their own trajectories]}. Videos are not needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import (
    LARGEST,
    MOST_FRAMES,
    Packed,
    Relation,
    Track,
    Tracks,
    build_relation_tables,
    collect_relation_vocabularies,
    format_video_name,
    merge_named_tracks,
    pack,
    parse_relation,
    parse_track_name,
)
from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    escape_surrogates,
    format_value,
    iterate_members,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import FileSource, Source, find_source, to_printable
from roadaware.scenes.tables import Scenes

# A file of VidVRD or VidOR as clips: one video each, with its tracks and relations.

MOST_PIXELS = 65_535
_SLOWEST = 1e-6
"""Frames per second; the times of slower videos are beyond what tables hold."""
_TRACKS, _OBJECTS, _RELATIONS = "trajectories", "subject/objects", "relation_instances"
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_NOTHING = (
    f"has neither '{_TRACKS}' of a video nor videos with such, and there is no video with relations either"
)
_FOREIGN = "check that it holds annotations of VidVRD or VidOR, not predictions"


@dataclass(frozen=True)
class Clip:
    """One video.

    Args:
        packed: its tracks and relations.
        file: where it stands.
        split: the folder it lies in.
        size: width and height in pixels, None where not said.
        fps: frames per second, None where not said.
        n_frames: how many frames it has, None where not said.
        listed: how many frames the file lists, each with whoever is in it.
        path: of the video, as the file has it.
    """

    packed: Packed
    file: str
    split: str | None = None
    size: tuple[int | None, int | None] = (None, None)
    fps: float | None = None
    n_frames: int | None = None
    listed: int = 0
    path: str | None = None


@dataclass
class _Object:
    """One subject or object, with its boxes."""

    place: int
    category: str
    frames: list[int] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)
    generated: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class _Reading:
    """State of reading a video."""

    video: str
    file: str
    where: str
    split: str | None
    findings: Findings

    def refuse(self, table: str, item: str, reason: str) -> None:
        """Say why a row is refused that was counted before."""
        self.findings.reject(table, self.file, f"{self.video}, {item}", reason, rows=0)


def parse_clips(text: str, where: str, file: str, split: str | None, findings: Findings) -> Iterator[Clip]:
    """The videos of one file, one after the other.

    Args:
        text: of the file.
        where: names it in errors.
        file: its name.
        split: that its folder stands for.
        findings: takes what is refused.

    Raises:
        InputError: if it is not strict JSON, or of none of the forms of VidVRD.
    """
    top: dict[str, Any] = {}
    found = 0
    for _, path, value in iterate_members(text, where, lambda path: not path):
        if not path:
            raise InputError(f"the top should be an object and is {describe_type(value)}", where=where)
        name = path[0]
        reading = _Reading(format_video_name(name), file, where, split, findings)
        if isinstance(value, dict) and _TRACKS in value:
            yield _parse_annotated_clip(value, reading)
            found += 1
        elif isinstance(value, list) and any(isinstance(each, dict) and "triplet" in each for each in value):
            yield _parse_relation_clip(value, reading)
            found += 1
        else:
            top[name] = value
    if _TRACKS in top:
        yield _parse_annotated_clip(top, _Reading(_video(top, file, findings), file, where, split, findings))
    elif not found:
        raise InputError(_NOTHING, where=where, hint=_FOREIGN)
    else:
        yield from _bare(top, _Reading("", file, where, split, findings))


def _bare(top: Mapping[str, Any], reading: _Reading) -> Iterator[Clip]:
    """What stands beside videos: an empty list is a video without relations, other things are refused."""
    for name, value in top.items():
        video = format_video_name(name)
        if value == []:
            reading.findings.read["videos"] += 1
            yield Clip(pack(video, Tracks()), reading.file, reading.split)
        else:
            reason = (
                f"should be the annotations of a video or a list of relations and is {describe_type(value)}"
            )
            reading.findings.reject("videos", reading.file, video, reason)


def _video(top: Mapping[str, Any], file: str, findings: Findings) -> str:
    """The name of the video that a file is about."""
    name = top.get("video_id")
    if isinstance(name, str) and name:
        return format_video_name(name)
    stem = format_video_name(PurePosixPath(file).name.rpartition(".")[0])
    findings.warn(
        "videos whose 'video_id' is no text, named after their file", f"{file}: {format_value(name)}"
    )
    return stem


def _parse_relation_clip(listed: list[Any], reading: _Reading) -> Clip:
    """A video of which only relations are known, each with its own trajectories."""
    held = Tracks()
    reading.findings.read["relations"] += len(listed)
    for number, value in enumerate(listed):
        instance = parse_relation(value)
        if isinstance(instance, str):
            reading.refuse("relations", f"relation {number}", instance)
            continue
        if (instance.names is not None and instance.names[0] == instance.names[1]) or (
            instance.triplet[0] == instance.triplet[2] and np.array_equal(instance.subject, instance.object)
        ):
            reading.refuse("relations", f"relation {number}", "the subject is its own object")
            continue
        held.take(instance)
    whole_tracks = merge_named_tracks(held)
    if whole_tracks is None and all(track.name is not None for track in held.tracks):
        what = "videos whose relations contradict each other on a track, so that each has tracks of its own"
        reading.findings.warn(what, reading.video)
    packed = pack(reading.video, whole_tracks or held)
    # Count the rows of a video whose tracks are made from its relations: all of them are taken
    findings = reading.findings
    findings.read["videos"] += 1
    findings.read["boxes"] += len(packed.frames)
    for table in ("tubes", "tube_labels"):
        findings.read[table] += len(packed.names)
    return Clip(packed, reading.file, reading.split)


def _parse_annotated_clip(top: Mapping[str, Any], reading: _Reading) -> Clip:
    """A video with everybody's boxes frame by frame.

    Raises:
        InputError: if a list of it is none.
    """
    video, where, findings = reading.video, reading.where, reading.findings
    frames = ensure_list(top.get(_TRACKS), where, f"'{_TRACKS}' of {to_printable(video, 60)}")
    listed = ensure_list(top.get(_OBJECTS), where, f"'{_OBJECTS}' of {to_printable(video, 60)}")
    related = ensure_list(top.get(_RELATIONS, []), where, f"'{_RELATIONS}' of {to_printable(video, 60)}")
    findings.warn(f"videos without '{_RELATIONS}'", video, int(_RELATIONS not in top))
    if len(frames) > MOST_FRAMES:
        raise InputError(f"{len(frames)} frames; at most {MOST_FRAMES} are read", where=where)
    findings.read["videos"] += 1
    n_frames = parse_int(top.get("frame_count"), 1, MOST_FRAMES)
    if n_frames is None:
        findings.warn(
            "frame counts that are none, kept as null", f"{video}: {format_value(top.get('frame_count'))}"
        )
    elif n_frames > len(frames):
        findings.warn("videos that list fewer frames than they have", f"{video}: {len(frames)} of {n_frames}")
    objects = _objects(listed, reading)
    # Width and height; what is none is null
    width, height = (parse_int(top.get(name), 1, MOST_PIXELS) for name in ("width", "height"))
    if width is None or height is None:
        text = f"{format_value(top.get('width'))} x {format_value(top.get('height'))}"
        findings.warn("sizes of images that are none, kept as null", f"{video}: {text}")
    # Everybody's boxes, frame by frame
    count = 0
    for frame, boxes in enumerate(frames):
        held = ensure_list(boxes, where, f"frame {frame} of {to_printable(video, 60)}")
        count += len(held)
        for number, value in enumerate(held):
            if reason := _add_box(value, objects, frame, n_frames):
                reading.refuse("boxes", f"frame {frame}, box {number}", reason)
    findings.read["boxes"] += count
    tracks = [_track(name, each) for name, each in objects.items()]
    findings.warn("objects without a box", video, sum(not len(track.frames) for track in tracks))
    # Warn of boxes that reach out of the image
    if not (width is None or height is None):
        limit = np.array([width, height])
        for track in tracks:
            out = (track.boxes[:, :2] < 0).any(axis=1) | (track.boxes[:, 2:] > limit).any(axis=1)
            what = "boxes that reach out of the image, kept as they are"
            findings.warn(what, f"{video}, 'tid' {track.name}", int(out.sum()))
    # The relations that can be taken, in the file's order
    relations: list[Relation] = []
    findings.read["relations"] += len(related)
    for number, value in enumerate(related):
        relation = _relation(value, objects, tracks)
        if isinstance(relation, str):
            reading.refuse("relations", f"relation {number}", relation)
        else:
            relations.append(relation)
    return Clip(
        packed=pack(video, Tracks(tracks, relations)),
        file=reading.file,
        split=reading.split,
        size=(width, height),
        fps=_rate(top, reading),
        n_frames=n_frames,
        listed=len(frames) if n_frames is None else min(len(frames), n_frames),
        path=to_printable(escape_surrogates(top["video_path"]), 255)
        if isinstance(top.get("video_path"), str)
        else None,
    )


def _objects(listed: list[Any], reading: _Reading) -> dict[str, _Object]:
    """Everybody who is listed, by name."""
    found: dict[str, _Object] = {}
    for table in ("tubes", "tube_labels"):
        reading.findings.read[table] += len(listed)
    for number, value in enumerate(listed):
        held = value if isinstance(value, dict) else {}
        name, category = parse_track_name(held.get("tid")), held.get("category")
        if name is None or not isinstance(category, str):
            reason = f"should have a 'tid' and a 'category', a text, and is {_format_object(value)}"
        elif name in found:
            reason = f"'tid' {name} is listed twice"
        else:
            found[name] = _Object(len(found), escape_surrogates(category))
            continue
        for table in ("tubes", "tube_labels"):
            reading.refuse(table, f"object {number}", reason)
    return found


def _add_box(value: Any, objects: Mapping[str, _Object], frame: int, n_frames: int | None) -> str:
    """Give a box to its owner, or say why not."""
    if not isinstance(value, dict):
        return f"should be an object and is {describe_type(value)}"
    name = parse_track_name(value.get("tid"))
    owner = None if name is None else objects.get(name)
    if owner is None:
        return f"'tid' {format_value(value.get('tid'))} is none of the listed objects"
    if n_frames is not None and frame >= n_frames:
        return f"lies behind the end of the video, which has {n_frames} frames"
    # Frames come in order, so that the last one is the only one that could be repeated.
    if owner.frames and owner.frames[-1] == frame:
        return f"a second box of 'tid' {name} in one frame"
    box = value.get("bbox")
    edges: list[Any] = [box.get(edge) for edge in _EDGES] if isinstance(box, dict) else [None] * 4
    for edge in edges:
        if type(edge) not in (int, float) or not -LARGEST < edge < LARGEST:
            return f"a corner is no finite number: {', '.join(format_value(each) for each in edges)}"
    if edges[2] < edges[0] or edges[3] < edges[1]:
        return f"the box {edges} is upside down"
    owner.frames.append(frame)
    owner.boxes.append((edges[0], edges[1], edges[2], edges[3]))
    owner.generated.append(bool(value.get("generated")))
    return ""


def _track(name: str, each: _Object) -> Track:
    frames = np.array(each.frames, dtype=np.int64)
    boxes = np.array(each.boxes, dtype=np.float64).reshape(-1, 4)
    return Track(name, each.category, frames, boxes, np.array(each.generated, dtype=np.bool_))


def _relation(value: Any, objects: Mapping[str, _Object], tracks: list[Track]) -> Relation | str:
    """A relation, or why it cannot be taken."""
    if not isinstance(value, dict):
        return f"should be an object and is {describe_type(value)}"
    predicate = value.get("predicate")
    if not isinstance(predicate, str):
        return f"'predicate' should be a text and is {format_value(predicate)}"
    places: list[int] = []
    for role in ("subject_tid", "object_tid"):
        name = parse_track_name(value.get(role))
        if name is None or name not in objects:
            return f"'{role}' {format_value(value.get(role))} is none of the listed objects"
        places.append(objects[name].place)
    if places[0] == places[1]:
        return f"the subject is its own object, 'tid' {tracks[places[0]].name}"
    start, end = (parse_int(value.get(name), 0, MOST_FRAMES) for name in ("begin_fid", "end_fid"))
    if start is None or end is None:
        text = ", ".join(format_value(value.get(name)) for name in ("begin_fid", "end_fid"))
        return f"'begin_fid' and 'end_fid' should be frames from 0 on and are {text}"
    if end <= start:
        return f"the duration [{start}, {end}) ends before it has begun"
    for place in places:
        first, last = np.searchsorted(tracks[place].frames, [start, end])
        if last - first != end - start:
            missing = end - start - int(last - first)
            return f"'tid' {tracks[place].name} has no box in {missing} of the frames [{start}, {end})"
    return Relation(places[0], escape_surrogates(predicate), places[1], start, end)


def _rate(top: Mapping[str, Any], reading: _Reading) -> float | None:
    """The frame rate; what is none is null."""
    rate: Any = top.get("fps")
    if type(rate) in (int, float) and _SLOWEST <= rate < LARGEST:
        return float(rate)
    reading.findings.warn("frame rates that are none, kept as null", f"{reading.video}: {format_value(rate)}")
    return None


def _format_object(value: Any) -> str:
    if not isinstance(value, dict):
        return format_value(value)
    return ", ".join(f"{name} {format_value(value.get(name))}" for name in ("tid", "category"))


VERSION = 1
SPLITS = ("train", "training", "validation", "val", "test")
MOST_BYTES = 2 << 30
_DEEPEST = 3
_WANTED = "VidVRD needs its annotations, files '*.json',"
_HINT = "Point at a file, or at the folder or zip that holds the files or the folders of their splits."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip with some in it or in folders of splits.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """
    source = find_source(path, _fits, _WANTED, _HINT, suffix=".json")
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read: those right here, then split by split."""
    if isinstance(source, FileSource):
        return [source.name]
    if _own_split(source):
        return sorted(_below(source, "", _DEEPEST))
    found = sorted(_below(source, "", 1))
    folders = source.entries()[1]
    for split in SPLITS:
        if split in folders:
            found += sorted(_below(source, split, _DEEPEST))
    return found


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Corners are those of the file, in double precision; x2_px and y2_px are the last pixels inside, so that a
    box with x1_px = x2_px is one pixel wide, and the published overlap adds 1 to each side. Relations come in
    the file's order. Refused are boxes upside down, of an object that is not listed or that the frame has
    already, or behind the last frame; and relations of somebody with himself, of objects that are not
    listed, that end before they begin, or with a frame in which one of the two has no box. The name of the
    tracker behind a box is not read.

    Raises:
        InputError: if no file can be read.
    """
    findings = Findings()
    clips: dict[str, Clip] = {}
    names = inputs(source)

    def take(name: str, found: Findings) -> None:
        for clip in _clips(source, name, found):
            if clip.packed.video in clips:
                other = clips[clip.packed.video].file
                found.reject("videos", name, clip.packed.video, f"stands in {other} too", rows=0)
                # How many rows of each table were counted for a video that is then left out
                packed = clip.packed
                counts = {"boxes": len(packed.frames), "relations": len(packed.relations)}
                found.read.subtract(counts | dict.fromkeys(("tubes", "tube_labels"), len(packed.names)))
            else:
                clips[clip.packed.video] = clip

    errors = read_each_file(names, take, findings, progress)
    if not clips:
        raise _nothing(errors, source)
    return _scenes(list(clips.values()), source, names, findings)


def _clips(source: Source, name: str, findings: Findings) -> list[Clip]:
    """The videos of one file, all or, where it is damaged, none."""
    where = source.where(name)
    split = _own_split(source) or (PurePosixPath(name).parts[0] if "/" in name else None)
    with pause_garbage_collection():
        return list(parse_clips(decode(source.read(name), where), where, name, split, findings))


def _scenes(clips: list[Clip], source: Source, names: list[str], findings: Findings) -> Scenes:
    packed = [clip.packed for clip in clips]
    vocabularies = collect_relation_vocabularies(packed)
    tables = build_relation_tables(packed, vocabularies)
    if "generated" not in tables["boxes"].columns:
        tables["boxes"] = tables["boxes"].with_columns(generated=pl.lit(None, pl.Boolean))
    return Scenes(
        videos=_videos(clips),
        frames=_frames(clips),
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["vidvrd"], vocabularies, source.contents(names)),
    )


def _videos(clips: list[Clip]) -> pl.DataFrame:
    rows = [
        {
            "video": clip.packed.video,
            "scene": clip.packed.video,
            "width_px": clip.size[0],
            "height_px": clip.size[1],
            "fps": clip.fps,
            "n_frames": clip.n_frames,
            "path": clip.path,
            "splits": None if clip.split is None else [clip.split],
        }
        for clip in clips
    ]
    numbers = {"width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64}
    texts = {"video": pl.String, "scene": pl.String}
    return pl.DataFrame(rows, schema={**texts, **numbers, "path": pl.String, "splits": pl.List(pl.String)})


def _frames(clips: list[Clip]) -> pl.DataFrame:
    """One row for each frame that a file lists: each was annotated, also where nobody is in it."""
    counts = np.array([clip.listed for clip in clips], dtype=np.int64)
    of = np.repeat(np.arange(len(clips)), counts)
    frame = pl.Series("frame", np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts))
    rate = pl.Series([clip.fps for clip in clips], dtype=pl.Float64).gather(of)
    names = pl.Series([clip.packed.video for clip in clips], dtype=pl.String).gather(of)
    time = (frame / rate).cast(pl.Float32)
    return pl.DataFrame({"video": names, "frame": frame, "t_s": time}).with_columns(
        annotated=pl.lit(value=True)
    )


def _own_split(source: Source) -> str | None:
    """The split that the folder itself is, or the one that holds the file."""
    name = PurePosixPath(source.prefix.rstrip("/")).name or source.path.name
    return name if name in SPLITS else None


def _fits(source: Source) -> bool:
    return bool(inputs(source))


def _below(source: Source, folder: str, depth: int) -> Iterator[str]:
    """The JSON files in a folder and, so many levels down, in those in it."""
    try:
        files, folders = source.entries(folder)
    except InputError:
        return
    base = f"{folder}/" if folder else ""
    yield from (f"{base}{name}" for name in (*files, *folders) if name.endswith(".json"))
    if depth > 1:
        for inner in folders:
            yield from _below(source, f"{base}{inner}", depth - 1)


def _nothing(errors: list[InputError], source: Source) -> InputError:
    """Why not one video could be read."""
    if not errors:
        return InputError("no file holds a video", where=str(source.path), hint=_HINT)
    return build_unreadable_error(errors)
