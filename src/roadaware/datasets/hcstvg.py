"""HC-STVG: a person in a short video described by a sentence; its span and one box in each of its frames.

Tang, Liao, Liu, Li, Jin, Jiang, Yu and Xu, "Human-centric spatio-temporal video grounding with visual
transformers", 2020; github.com/tzhhhh123/HC-STVG, which carries no licence.

Takes a JSON file, or all that lie in a folder or zip, in any of four forms, seen from their content: the raw
annotations of versions 1 and 2, the list that TubeDETR's preprocessing makes of them, and the ground truth of the
official evaluation. Videos are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
from roadaware.errors import InputError, UsageError
from roadaware.io.json import (
    decode,
    describe_type,
    escape_surrogates,
    format_value,
    parse,
    parse_corners,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.tables import Scenes

# An HC-STVG file in any of its four forms, entry by entry, as sentences and tracks.

_FOREIGN = "check that it is a file of annotations of HC-STVG"
_WORDS = ("caption", "English")


@dataclass(frozen=True)
class _Entry:
    """One sentence of any form: the frames of its boxes, and its half-open span."""

    clip: Clip
    name: str
    text: str | None
    start: int
    end: int
    frames: list[int]
    boxes: list[Any]
    sized: bool


def read_file(value: Any, file: str, where: str, grounded: Grounded) -> None:
    """Take all sentences of one file.

    Args:
        value: the whole document: a list (processed), or an object whose members have a list of boxes (raw)
            or an object of them (the form of the official evaluation).
        file: its name.
        where: names it in errors.
        grounded: takes what is read, and what is refused.

    Raises:
        InputError: if it is no file of HC-STVG.
    """
    listed: list[tuple[Any, Any]]
    if isinstance(value, list):
        listed = [(None, each) for each in value]
        fits = any(isinstance(each, dict) and "video_id" in each for each in value)
        text = "a list, but expected an object with 'video_id' and 'trajectory' in each place"
    elif isinstance(value, dict):
        listed = list(value.items())
        fits = any(isinstance(each, dict) and "bbox" in each for each in value.values())
        text = "has neither videos with a list nor videos with an object 'bbox'"
    else:
        message = f"expected an object or a list of sentences and found {describe_type(value)}"
        raise InputError(message, where=where, hint=_FOREIGN)
    if not fits:
        raise InputError(text, where=where, hint=_FOREIGN)
    stem = file.rpartition("/")[2].rpartition(".")[0]
    split = to_printable(escape_surrogates(stem.removesuffix("_proc")), 80)
    seen = {(each.video, each.name) for each in grounded.sentences}
    for number, (key, each) in enumerate(listed):
        item = to_printable(escape_surrogates(str(key)), 120) if key is not None else f"place {number}"
        try:
            entry = (
                _parse_processed_entry(each, grounded)
                if key is None
                else _parse_keyed_entry(key, each, grounded)
            )
            if (entry.clip.name, entry.name) in seen:
                raise RowError("a second reading of this sentence; the first is kept")
            if reason := grounded.admit(entry.clip, split):
                raise RowError(reason)
        except RowError as error:
            grounded.findings.reject("queries", file, item, str(error))
            continue
        seen.add((entry.clip.name, entry.name))
        _take(entry, number, file, grounded)


def _take(entry: _Entry, number: int, file: str, grounded: Grounded) -> None:
    corners, bad = parse_corners(entry.boxes, sized=entry.sized)
    for place, reason in bad.items():
        item = f"{entry.clip.name}, frame {entry.frames[place]}"
        grounded.findings.reject("boxes", file, item, reason)
    kept = np.array([n for n in range(len(entry.frames)) if n not in bad], dtype=np.int64)
    frames = np.array(entry.frames, dtype=np.int64)
    flat = int(((corners[kept, 2] == corners[kept, 0]) | (corners[kept, 3] == corners[kept, 1])).sum())
    grounded.findings.warn("boxes without area, kept", entry.clip.name, flat)
    wordless = entry.text is not None and not entry.text.strip()
    grounded.findings.warn("sentences without words, kept", entry.clip.name, int(wordless))
    grounded.findings.warn(
        "sentences that last no frame, kept", entry.clip.name, int(entry.start == entry.end)
    )
    outside = int(((frames < entry.start) | (frames >= entry.end)).sum())
    grounded.findings.warn("boxes outside the span of their sentence, kept", entry.clip.name, outside)
    missing = entry.end - entry.start - (len(frames) - outside)
    grounded.findings.warn("frames in the span of a sentence without a box", entry.clip.name, missing)
    track = Track(entry.clip.name, entry.name, file, frames[kept], corners[kept])
    sentence = Sentence(
        entry.clip.name,
        entry.name,
        number,
        file,
        entry.text,
        entry.start,
        entry.end,
        len(grounded.tracks),
        "declarative",
    )
    grounded.tracks.append(track)
    grounded.sentences.append(sentence)


def _parse_keyed_entry(key: str, each: Any, grounded: Grounded) -> _Entry:
    """A member of an object: a raw entry, or one of the official evaluation."""
    if not isinstance(each, dict):
        raise RowError(f"should be an object and is {describe_type(each)}")
    boxes = each.get("bbox")
    name = escape_surrogates(key)
    if not name:
        raise RowError("the video has no name")
    start = parse_frame_field(each, "st_frame")
    # Raw files have x, y, width, height; those of the official evaluation corners, and count the last frame.
    if isinstance(boxes, list):
        _times(each, name, grounded)
        end, frames, listed, sized = start + len(boxes), list(range(start, start + len(boxes))), boxes, True
    elif isinstance(boxes, dict):
        end, sized = parse_frame_field(each, "ed_frame") + 1, False
        held = {number: boxes[text] for text in boxes if (number := parse_frame_name(text)) is not None}
        for text in [text for text in boxes if parse_frame_name(text) is None]:
            reason = "boxes of frames whose key is no plain number, left aside"
            grounded.findings.warn(reason, f"{name}: {to_printable(text, 40)}")
        frames, listed = list(held), list(held.values())
    else:
        raise RowError(f"'bbox' should be a list or an object and is {describe_type(boxes)}")
    if end <= start and not sized:
        raise RowError(f"the end {end - 1} lies before the start {start}")
    size = each.get("img_size")
    if isinstance(size, list) and len(size) == 2:
        # img_size has the height first.
        each = {**each, "height": size[0], "width": size[1]}
    clip = _clip(name.removesuffix(".mp4") or name, each, "img_num", None, grounded)
    return _Entry(clip, name, _text(each) if sized else None, start, end, frames, listed, sized)


def _parse_processed_entry(each: Any, grounded: Grounded) -> _Entry:
    """A place of the processed list."""
    if not isinstance(each, dict):
        raise RowError(f"should be an object and is {describe_type(each)}")
    name = parse_id(each.get("video_id"), "video_id")
    video = parse_id(each.get("original_video_id", each.get("video_id")), "original_video_id")
    start, end = parse_frame_field(each, "tube_start_frame"), parse_frame_field(each, "tube_end_frame")
    if end < start:
        raise RowError(f"the end {end} lies before the start {start}")
    boxes = each.get("trajectory")
    if not isinstance(boxes, list):
        raise RowError(f"'trajectory' should be a list and is {describe_type(boxes)}")
    if len(boxes) != end - start:
        what = "trajectories of another length than their span, counted from its start"
        grounded.findings.warn(what, f"{video}: {len(boxes)} boxes for {end - start} frames")
    clip = _clip(video, each, "frame_count", each.get("video_path"), grounded)
    return _Entry(clip, name, _text(each), start, end, list(range(start, start + len(boxes))), boxes, True)


def _clip(name: str, each: Mapping[str, Any], count: str, path: Any, grounded: Grounded) -> Clip:
    """The video of an entry; what is no number of frames or pixels is unknown."""
    found: dict[str, int | None] = {}
    for key, most in ((count, MOST_FRAMES), ("width", MOST_PIXELS), ("height", MOST_PIXELS)):
        found[key] = parse_int(each.get(key), 1, most)
        if found[key] is None and each.get(key) is not None:
            what = f"{key}: no whole number from 1, kept as unknown"
            grounded.findings.warn(what, f"{name}: {format_value(each.get(key))}")
    held = to_printable(escape_surrogates(path), 255) if isinstance(path, str) else None
    return Clip(to_printable(name, 255), found["width"], found["height"], found[count], path=held)


def _text(each: Mapping[str, Any]) -> str:
    """The sentence, in English."""
    words = next((each[key] for key in _WORDS if isinstance(each.get(key), str)), "")
    return escape_surrogates(words)


def _times(each: Mapping[str, Any], name: str, grounded: Grounded) -> None:
    """Count seconds that contradict each other; frames tell the span."""
    times: list[Any] = [each.get(key) for key in ("st_time", "ed_time")]
    if all(type(time) in (int, float) for time in times) and times[1] < times[0]:
        grounded.findings.warn("times that end before they start; frames were taken", name)


VERSION = 1
_MADE = "_proc.json"
_WANTED = "HC-STVG needs its annotations, a file '*.json',"
_HINT = "Point at the file, or the folder or zip that holds it."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read; a processed file gives way to the raw one beside it."""
    found = source.files("", ".json")
    return [name for name in found if not (name.endswith(_MADE) and name.replace(_MADE, ".json") in found)]


def read(
    source: Source,
    *,
    first_frame: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        first_frame: the number that the files give a video's first frame; default: 1, or 0 where a frame 0 is
            named. `meta.notes["first_frame"]` says which it was.

    Raises:
        UsageError: if `first_frame` is neither 0 nor 1.
        InputError: if no file, or nothing in it, can be read.
    """
    if first_frame is not None and (type(first_frame) is not int or not 0 <= first_frame <= 1):
        raise UsageError("'first_frame' is 0 or 1")
    grounded = Grounded(Findings())
    names = inputs(source)

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        with pause_garbage_collection():
            read_file(parse(decode(source.read(name), where), where), name, where, grounded)

    errors = read_each_file(names, take, grounded.findings, progress)
    if not grounded.sentences:
        raise build_no_sentences_error(errors, grounded.findings, source.where(names[0]))
    first = min(1, grounded.lowest()) if first_frame is None else first_frame
    tables, vocabularies = build_sentence_tables(grounded, first)
    return Scenes(
        **tables,
        rejected=grounded.findings.table(),
        meta=grounded.findings.build_meta(
            READERS["hcstvg"], vocabularies, source.contents(names), first_frame=first
        ),
    )
