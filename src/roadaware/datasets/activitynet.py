"""ActivityNet: what happens when in videos, as segments with a label (also THUMOS, HACS and others in its JSON).

Caba Heilbron et al., "ActivityNet: A Large-Scale Video Benchmark for Human Activity Understanding", CVPR 2015.

Layout: JSON files with `database`: video to duration, subset, resolution and annotations, each a `segment` of seconds and a
`label`. Predictions are `results`: video to segments with a `score`.
Times: seconds, kept as they are in `start_s` and `end_s`; frames only where `fps` says how many a second there are.
Holds: segments with one label, size, length in seconds, split, address. Does not: boxes, rate, several labels of a segment.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.box_rows import LONGEST_PATH
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import LARGEST_SIDE, list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_object,
    escape_surrogates,
    format_value,
    iterate_members,
    parse_int,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 1
KIND = "action"
DATABASE, RESULTS = "database", "results"
SUBSETS = {"training": "train", "validation": "val", "testing": "test"}
_WORDS = SUBSETS | {word: word for word in SUBSETS.values()}
_SIZE = re.compile(r"(\d{1,7})x(\d{1,7})", re.ASCII)
_LONGEST_S = 1e7
_SLACK = 1e-6
_WANTED = "ActivityNet needs its annotations, files '*.json' with 'database',"
_HINT = "Point at the JSON file, or at its folder."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + source.files("", ".json")


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All files as Scenes: a tube without boxes for each segment; what was refused is in `rejected`.

    Args:
        fps: frames a second of every video; without it segments have no frames.
        predicted: read `results`, whose segments have scores, as Predictions.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    findings = Findings()
    rate = read_facts(source, fps=fps).fps
    top = RESULTS if predicted else DATABASE
    videos: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    words: dict[str, int] = {}
    names = source.files("", ".json")

    def take(name: str, part: Findings) -> None:
        where = source.where(name)
        own: dict[str, dict[str, Any]] = {}
        shown: list[dict[str, Any]] = []
        seen: set[str] = set()
        # Video by video, so that the whole document never lies in memory as objects.
        for _, path, value in iterate_members(
            decode(source.read(name), where), where, lambda path: path in ((), (top,))
        ):
            seen.add(path[0] if path else "")
            if not path or (len(path) == 1 and path[0] == top):
                ensure_object(value, where, f"'{top}'" if path else "the top")
            elif path[0] == top:
                _add_video(path[1], value, escape_surrogates(name), where, rate, own, shown, part)
        if top not in seen:
            hint = "results are read as predictions" if RESULTS in seen else _HINT
            raise InputError(f"there is no {top!r} in it", where=where, hint=hint)
        if again := next((video for video in own if video in videos), None):
            raise InputError(f"a second file with the video {to_printable(again, 60)}", where=where)
        videos.update(own)
        rows.extend(shown)

    errors = read_each_file(names, take, findings, progress)
    if len(errors) == len(names):
        raise build_unreadable_error(errors)
    for row in rows:
        row["label"] = words.setdefault(row["label"], len(words))
    findings.read["videos"] += len(videos)
    findings.read["tubes"] += len(rows)
    tubes = pl.DataFrame(
        [{**row, "tube": n, "kind": KIND} for n, row in enumerate(rows)],
        schema={"tube": pl.Int64, "video": pl.String, "kind": pl.String, "start_frame": pl.Int64, "end_frame": pl.Int64,
                "start_s": pl.Float64, "end_s": pl.Float64, "label": pl.Int64, "score": pl.Float64},
    )  # fmt: skip
    labels = tubes.select("tube", "kind", "label", "score")
    shared: dict[str, Any] = {
        "videos": _build_videos(videos),
        "rejected": findings.table(),
        "meta": findings.build_meta(
            READERS["activitynet"], {KIND: tuple(words)}, source.contents(inputs(source))
        ),
    }
    if predicted:
        return Predictions(tubes=tubes.drop("label"), tube_labels=labels, **shared)
    return Scenes(tubes=tubes.drop("label", "score"), tube_labels=labels.drop("score"), **shared)


def _add_video(
    name: str,
    value: Any,
    file: str,
    where: str,
    fps: float | None,
    videos: dict[str, dict[str, Any]],
    rows: list[dict[str, Any]],
    findings: Findings,
) -> None:
    """Add a video with its segments: of annotations an object, of results the list of segments itself.

    Raises:
        InputError: if it is neither, or its name is none.
    """
    video = format_video_name(name)
    if not name or len(escape_surrogates(name).encode()) > LONGEST_NAME or video in videos:
        raise InputError(
            f"videos have names of 1 to {LONGEST_NAME} bytes, each once; one is {format_value(name)}",
            where=where,
        )
    about = value if isinstance(value, dict) else {}
    segments = about.get("annotations", []) if isinstance(value, dict) else value
    if not isinstance(segments, list):
        raise InputError(
            f"segments of {video!r} should be a list and are {describe_type(segments)}", where=where
        )
    duration = _parse_seconds(about.get("duration"))
    if duration is None and about.get("duration") is not None:
        findings.warn("durations that are no seconds, kept as null", f"{file}: {video}")
    match = _SIZE.fullmatch(about["resolution"]) if isinstance(about.get("resolution"), str) else None
    width, height = (parse_int(int(match[n]), 1, LARGEST_SIDE) if match else None for n in (1, 2))
    subset = about.get("subset")
    split = (
        _WORDS.get(subset.lower(), subset.lower())
        if isinstance(subset, str) and 0 < len(subset) < 60
        else None
    )
    url = about.get("url")
    length = None if duration is None or fps is None else min(round(duration * fps), MOST_FRAMES)
    videos[video] = {
        "video": video,
        "width_px": width if height is not None else None,
        "height_px": height if width is not None else None,
        "fps": fps,
        "n_frames": length,
        "splits": None if split is None else [f"default/{to_printable(split, 60)}"],
        "duration_s": duration,
        "url": escape_surrogates(url) if isinstance(url, str) and len(url) <= LONGEST_PATH else None,
    }
    for place, segment in enumerate(segments, 1):
        row = _parse_segment(segment)
        if isinstance(row, str):
            findings.reject("tubes", file, to_printable(f"{video}, segment {place}", 120), row)
            continue
        if duration is not None and row["end_s"] > duration + 0.5:
            findings.warn(
                "segments that reach beyond the end of their video, kept as they are", f"{file}: {video}"
            )
        if fps is not None:
            # Frames that the segment touches; what a product of seconds and rate loses decides nothing.
            start, end = math.floor(row["start_s"] * fps + _SLACK), math.ceil(row["end_s"] * fps - _SLACK)
            row["start_frame"], row["end_frame"] = (
                min(start, MOST_FRAMES),
                min(max(start + 1, end), MOST_FRAMES + 1),
            )
        rows.append({"video": video, **row})


def _parse_segment(segment: Any) -> dict[str, Any] | str:
    """Start, end, label and score of a segment, or why it is refused."""
    if not isinstance(segment, dict):
        return f"a segment should be an object and is {describe_type(segment)}"
    ends, label = segment.get("segment"), segment.get("label")
    score: Any = segment.get("score")
    if not (isinstance(ends, list) and len(ends) == 2):
        return f"the segment should be two times in seconds and is {format_value(ends)}"
    start, end = map(_parse_seconds, ends)
    if start is None or end is None:
        return f"the segment should be two times in seconds and is {format_value(ends[0])}, {format_value(ends[1])}"
    if end < start:
        return f"the segment is upside down, it ends at {end} s and begins at {start} s"
    if not isinstance(label, str) or not 0 < len(label.encode("utf-8", "replace")) <= LONGEST_NAME:
        return f"the label should be a text of 1 to {LONGEST_NAME} bytes and is {format_value(label)}"
    if "score" in segment and not (type(score) in (int, float) and 0 <= score <= 1):
        return f"the score should be a number from 0 to 1 and is {format_value(score)}"
    return {"start_s": start, "end_s": end, "label": to_printable(escape_surrogates(label), LONGEST_NAME),
            "score": None if score is None else float(score)}  # fmt: skip


def _parse_seconds(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= _LONGEST_S else None


def _build_videos(videos: dict[str, dict[str, Any]]) -> pl.DataFrame:
    kinds: dict[str, Any] = {
        "video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64,
        "splits": pl.List(pl.String), "duration_s": pl.Float64, "url": pl.String,
    }  # fmt: skip
    return pl.DataFrame(list(videos.values()), schema=kinds)
