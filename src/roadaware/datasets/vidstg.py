"""VidSTG: sentences about people and things in videos of VidOR, statements and questions, with their tubes.

Zhang, Zhao, Zhao, Wang, Liu and Gao, "Where does it exist: spatio-temporal video grounding for multi-form
sentences", CVPR 2020; github.com/Guaranteer/VidSTG-Dataset, which carries no licence.

Takes a JSON file, or all that lie in a folder or zip, or in `annotations/` in it: processed as TubeDETR does,
or raw; a raw one needs VidOR's files `<video>.json` in folders beside it. Videos are not needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, read_each_file
from roadaware.datasets.sentences import (
    MOST_FRAMES,
    MOST_PIXELS,
    Clip,
    Grounded,
    RowError,
    Sentence,
    Track,
    build_no_sentences_error,
    build_sentence_tables,
    parse_frame_field,
    parse_frame_name,
    parse_id,
)
from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    escape_surrogates,
    format_value,
    iterate_members,
    parse,
    parse_corners,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import FileSource, FolderSource, Source, find_source, to_printable
from roadaware.scenes.tables import Scenes

# A VidSTG file, raw with VidOR's trajectories or processed, as sentences and tracks.

_FOREIGN = "check that it is a file of annotations of VidSTG"
_KINDS = ("interrogative", "declarative")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class Boxes:
    """The boxes of one target: (n,) frames and (n, 4) corners."""

    frames: Ints
    corners: Floats


@dataclass
class Targets:
    """The targets of the videos of a file.

    Args:
        held: boxes by video and target.
        category: what a target is.
        reasons: why a video has none.
    """

    held: dict[tuple[str, str], Boxes] = field(default_factory=dict)
    category: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


Vidor = Callable[[str], Any]
"""From a video's name to VidOR's file of it, parsed.

Raises:
    InputError: if there is none, or it is damaged.
"""


def read_file(text: str, file: str, where: str, grounded: Grounded, vidor: Vidor) -> None:
    """Take all sentences of one file, in their order.

    Args:
        text: the whole document: a list of annotations (raw), or an object with `videos` and `trajectories`.
        file: its name.
        where: names it in errors.
        grounded: takes what is read, and what is refused.
        vidor: gives the trajectories of a raw file.

    Raises:
        InputError: if it is no file of VidSTG.
    """
    targets, listed = Targets(), None
    for _, path, value in iterate_members(
        text, where, lambda path: path[:1] in ((), ("trajectories",)) and len(path) < 3
    ):
        if path == () and not isinstance(value, dict):
            annotations = ensure_list(value, where, "expected an object or a list of annotations: the top")
            if not any(isinstance(each, dict) and "temporal_gt" in each for each in annotations):
                message = "a list, but expected an object with 'vid' and 'temporal_gt' in each place"
                raise InputError(message, where=where, hint=_FOREIGN)
            listed = list(_raw(annotations, file, targets, grounded, vidor))
        elif path == ("videos",):
            listed = [
                (number, each, each) for number, each in enumerate(ensure_list(value, where, "'videos'"))
            ]
        elif path[:1] == ("trajectories",):
            _trajectory(path, value, file, where, targets, grounded)
    if listed is None:
        raise InputError("has neither 'videos' nor a list of annotations", where=where, hint=_FOREIGN)
    # Add the sentences: number, name in messages and content of each
    split = to_printable(
        escape_surrogates(file.rpartition("/")[2].rpartition(".")[0].removesuffix("_annotations")), 80
    )
    taken: dict[tuple[str, str], int] = {}
    seen: set[str] = {each.name for each in grounded.sentences if each.file == file}
    for number, _, each in listed:
        try:
            clip, sentence, target = _sentence(each, number, file, grounded)
            if sentence.name in seen:
                raise RowError(
                    f"a second reading of sentence {to_printable(sentence.name, 40)}; the first is kept"
                )
            boxes = _get_target_boxes(target, targets)
            if reason := grounded.admit(clip, split):
                raise RowError(reason)
        except RowError as error:
            name = each.get("original_video_id") if isinstance(each, dict) else None
            item = f"{name}, sentence {number}" if isinstance(name, str) else f"sentence {number}"
            grounded.findings.reject("queries", file, item, str(error))
            continue
        seen.add(sentence.name)
        if target not in taken:
            taken[target] = len(grounded.tracks)
            category = targets.category.get(target)
            track = Track(clip.name, target[1], file, boxes.frames, boxes.corners, category)
            grounded.tracks.append(track)
        inside = (boxes.frames >= sentence.start) & (boxes.frames < sentence.end)
        missing = sentence.end - sentence.start - int(inside.sum())
        grounded.findings.warn("frames in the span of a sentence without a box", clip.name, missing)
        grounded.sentences.append(sentence.on(taken[target]))
    for (video, name), boxes in targets.held.items():
        if (video, name) not in taken:
            what = "boxes of targets that no sentence taken speaks of"
            grounded.findings.left_out[what] += len(boxes.frames)


def _get_target_boxes(target: tuple[str, str], targets: Targets) -> Boxes:
    if target in targets.held:
        return targets.held[target]
    if target[0] in targets.reasons:
        raise RowError(targets.reasons[target[0]])
    known = [name for video, name in targets.held if video == target[0]]
    raise RowError(
        f"the unknown target {to_printable(target[1], 40)}; the video has {', '.join(known[:8]) or 'none'}"
    )


def _sentence(
    each: Any, number: int, file: str, grounded: Grounded
) -> tuple[Clip, Sentence, tuple[str, str]]:
    """Video, sentence and target of a place of the processed list."""
    if not isinstance(each, dict):
        raise RowError(f"should be an object and is {describe_type(each)}")
    native = parse_id(each.get("original_video_id"), "original_video_id")
    video = to_printable(native, 255)
    name = parse_id(each.get("video_id"), "video_id")
    start, end = parse_frame_field(each, "tube_start_frame"), parse_frame_field(each, "tube_end_frame")
    if end < start:
        raise RowError(f"the end {end} lies before the start {start}")
    segment = None
    if each.get("start_frame") is not None or each.get("end_frame") is not None:
        segment = parse_frame_field(each, "start_frame"), parse_frame_field(each, "end_frame")
        if segment[1] < segment[0]:
            raise RowError(f"the end {segment[1]} of the segment lies before its start {segment[0]}")
    clip, findings = _clip(each, video, grounded), grounded.findings
    text = escape_surrogates(each["caption"]) if isinstance(each.get("caption"), str) else ""
    kind = each.get("qtype") if each.get("qtype") in _KINDS else None
    message = f"{video}, sentence {name}"
    late = max(end, segment[1] if segment else 0) > (clip.n_frames or MOST_FRAMES)
    beyond = segment is not None and (start < segment[0] or end > segment[1])
    findings.warn("sentences without words, kept", message, int(not text.strip()))
    findings.warn("sentences that last no frame, kept", message, int(start == end))
    findings.warn("spans that reach behind the end of their video, kept", message, int(late))
    findings.warn("spans that reach out of their segment, kept", message, int(beyond))
    findings.warn("sentences that are neither declarative nor interrogative", message, int(kind is None))
    target = each.get("type")
    sentence = Sentence(
        video,
        name,
        number,
        file,
        text,
        start,
        end,
        None,
        kind,
        segment,
        escape_surrogates(target) if isinstance(target, str) else None,
    )
    return clip, sentence, (native, parse_id(each.get("target_id"), "target_id"))


def _clip(each: Mapping[str, Any], video: str, grounded: Grounded) -> Clip:
    rate: Any = each.get("fps")
    fps = float(rate) if type(rate) in (int, float) and 0 < rate < 1e6 and math.isfinite(rate) else None
    if fps is None and rate is not None:
        what = "fps: no number of frames per second above 0, kept as unknown"
        grounded.findings.warn(what, f"{video}: {format_value(rate)}")
    found = {
        key: parse_int(each.get(key), 1, most)
        for key, most in (("frame_count", MOST_FRAMES), ("width", MOST_PIXELS), ("height", MOST_PIXELS))
    }
    for key, value in found.items():
        if value is None and each.get(key) is not None:
            what = f"{key}: no whole number from 1, kept as unknown"
            grounded.findings.warn(what, f"{video}: {format_value(each.get(key))}")
    path = each.get("video_path")
    held = to_printable(escape_surrogates(path), 255) if isinstance(path, str) else None
    return Clip(video, found["width"], found["height"], found["frame_count"], fps, held)


def _trajectory(
    path: tuple[str, ...], value: Any, file: str, where: str, targets: Targets, grounded: Grounded
) -> None:
    """One target of the processed form: boxes x, y, width, height by frame."""
    if len(path) == 1:
        raise InputError(f"'trajectories' should be an object and is {describe_type(value)}", where=where)
    video = escape_surrogates(path[1])
    if len(path) == 2 or not isinstance(value, dict):
        name = f"{video}, target {escape_surrogates(path[2])}" if len(path) > 2 else video
        grounded.findings.reject("tubes", file, name, f"should be an object and is {describe_type(value)}")
        return
    frames, boxes = [], []
    for key, each in value.items():
        frame = parse_frame_name(key)
        if frame is None:
            reason = f"a box of frame '{to_printable(key, 40)}', which is no number"
            grounded.findings.reject("boxes", file, video, reason)
            continue
        frames.append(frame)
        boxes.append(each.get("bbox") if isinstance(each, dict) else each)
    targets.held[video, escape_surrogates(path[2])] = _parse_boxes(
        video, frames, boxes, file, grounded, sized=True
    )


def _parse_boxes(
    video: str, frames: list[int], boxes: list[Any], file: str, grounded: Grounded, *, sized: bool
) -> Boxes:
    corners, bad = parse_corners(boxes, sized=sized)
    for place, reason in bad.items():
        grounded.findings.reject("boxes", file, f"{video}, frame {frames[place]}", reason)
    kept = [n for n in range(len(frames)) if n not in bad] if bad else slice(None)
    return Boxes(np.array(frames, dtype=np.int64)[kept], corners[kept])


def _raw(
    annotations: list[Any], file: str, targets: Targets, grounded: Grounded, vidor: Vidor
) -> Iterator[tuple[int, Any, Any]]:
    """The sentences of raw annotations as the published preprocessing lists them: questions come first."""
    number, loaded = 0, set()
    for place, each in enumerate(annotations):
        spans: list[Any] = [None]
        if isinstance(each, dict):
            spans = [each.get(key) for key in ("temporal_gt", "used_segment")]
        if not isinstance(each, dict) or not all(isinstance(span, dict) for span in spans):
            text = f"should be an object with 'temporal_gt' and 'used_segment' and is {describe_type(each)}"
            grounded.findings.reject("queries", file, f"place {place}", text)
            continue
        video = each.get("vid")
        if isinstance(video, str) and video not in loaded:
            loaded.add(video)
            _load(video, file, targets, grounded, vidor)
        head = {key: each.get(key) for key in ("frame_count", "fps", "width", "height")}
        for prefix, span in zip(("tube_", ""), spans, strict=True):
            head |= {f"{prefix}start_frame": span.get("begin_fid"), f"{prefix}end_frame": span.get("end_fid")}
        # Running numbers name sentences in published files of predictions: the order decides what they mean.
        for kind, key in zip(_KINDS, ("questions", "captions"), strict=True):
            listed: Any = each.get(key) or []
            for said in listed if isinstance(listed, list) else [listed]:
                content: Any = said
                if isinstance(said, dict):
                    words = {"caption": said.get("description"), "qtype": kind, "type": said.get("type")}
                    names = {
                        "original_video_id": video,
                        "video_id": number,
                        "target_id": said.get("target_id"),
                    }
                    content = {**head, **words, **names}
                yield number, place, content
                number += 1


def _load(video: str, file: str, targets: Targets, grounded: Grounded, vidor: Vidor) -> None:
    """Take the trajectories of a video from VidOR's file; what is not of the form gives no target."""
    name = escape_surrogates(video)
    try:
        held = vidor(video)
        frames = held.get("trajectories") if isinstance(held, dict) else None
        objects = held.get("subject/objects") if isinstance(held, dict) else None
        if not isinstance(frames, list):
            raise InputError("VidOR's file has no list 'trajectories'")
    except InputError as error:
        targets.reasons[name] = f"no trajectories: {error.message}"
        return
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for frame, boxes in enumerate(frames):
        for box in boxes if isinstance(boxes, list) else ():
            if not isinstance(box, dict) or not isinstance(box.get("bbox"), dict):
                reason = "should be an object with 'tid' and 'bbox'"
                grounded.findings.reject("boxes", file, f"{name}, frame {frame}", reason)
                continue
            numbers, listed = found.setdefault(str(box.get("tid")), ([], []))
            if numbers and numbers[-1] == frame:
                reason = f"a second box of target {to_printable(str(box.get('tid')), 40)} in this frame"
                grounded.findings.reject("boxes", file, f"{name}, frame {frame}", reason)
                continue
            numbers.append(frame)
            listed.append([box["bbox"].get(corner) for corner in _CORNERS])
    for target, (numbers, listed) in found.items():
        targets.held[name, target] = _parse_boxes(name, numbers, listed, file, grounded, sized=False)
    for each in objects if isinstance(objects, list) else ():
        if isinstance(each, dict) and isinstance(each.get("category"), str):
            targets.category[name, str(each.get("tid"))] = escape_surrogates(each["category"])


VERSION = 1
MOST_BYTES = 1 << 30
_WANTED = "VidSTG needs its annotations, a file '*.json',"
_HINT = "Point at the file, or the folder or zip that holds it."
_PLACE = "annotations"
_DEEPEST, _MOST_FILES = 4, 50_000


class _FileBeside(FolderSource):
    """A raw file, with the folder it lies in: VidOR's files are sought there.

    Args:
        path: the resolved file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self.name = path.name


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = find_source(path, lambda found: bool(_annotations(found)), _WANTED, _HINT, suffix=".json")
    if isinstance(source, FileSource) and _starts_a_list(source):
        source = _FileBeside(source.path / source.name)
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` may read."""
    return [*_annotations(source), *_vidor(source).values()]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Frames count from 0, as in the files. A tube is one target of one video, whatever number of sentences
    speak of it, and owns its boxes also where no sentence does. Sentences are called by their number in the
    file that the published preprocessing makes: for each raw annotation questions first, then captions.

    Raises:
        InputError: if no file, or nothing in it, can be read.
    """
    grounded = Grounded(Findings())
    names, beside = _annotations(source), _vidor(source)

    def vidor(video: str) -> Any:
        if video not in beside:
            raise InputError(f"VidOR's file '{video}.json' does not lie in a folder beside the annotations")
        where = source.where(beside[video])
        return parse(decode(source.read(beside[video]), where), where)

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        with pause_garbage_collection():
            read_file(decode(source.read(name), where), name, where, grounded, vidor)

    errors = read_each_file(names, take, grounded.findings, progress)
    if not grounded.sentences:
        raise build_no_sentences_error(errors, grounded.findings, source.where(names[0]))
    tables, vocabularies = build_sentence_tables(grounded, 0)
    return Scenes(
        **tables,
        rejected=grounded.findings.table(),
        meta=grounded.findings.build_meta(
            READERS["vidstg"],
            vocabularies,
            source.contents([name for name in inputs(source) if name in source.digests]),
            first_frame=0,
        ),
    )


def _annotations(source: Source) -> list[str]:
    """The files of annotations: the one that was named, or those of the folder or of `annotations/` in it."""
    if isinstance(source, FileSource | _FileBeside):
        return [source.name]
    return source.files("", ".json") or source.files(_PLACE, ".json")


def _vidor(source: Source) -> dict[str, str]:
    """Video to VidOR's file of it, in the folders beside the annotations."""
    if isinstance(source, FileSource):
        return {}
    taken = set(_annotations(source))
    found: dict[str, str] = {}
    for name in _inside(source, "", 0):
        if name not in taken and len(found) < _MOST_FILES:
            found.setdefault(name.rpartition("/")[2].removesuffix(".json"), name)
    return found


def _inside(source: Source, folder: str, depth: int) -> Iterator[str]:
    """The JSON files in the folders inside a folder."""
    try:
        files, folders = source.entries(folder)
    except InputError:
        return
    yield from (f"{folder}/{name}" for name in files if folder and name.endswith(".json"))
    for name in folders if depth < _DEEPEST else ():
        yield from _inside(source, f"{folder}/{name}" if folder else name, depth + 1)


def _starts_a_list(source: FileSource) -> bool:
    """Whether a file is raw: its first sign opens a list."""
    try:
        with (source.path / source.name).open("rb") as stream:
            return stream.read(256).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    except OSError:
        return False
