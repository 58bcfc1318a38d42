"""Tables of sentences grounded in videos, shared by several datasets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.issues import Findings, build_unreadable_error
from roadaware.errors import InputError
from roadaware.io.json import escape_surrogates, format_value, parse_int
from roadaware.scenes.schema import CORNERS

MOST_FRAMES = 10_000_000
MOST_PIXELS = 65_535


_QUERIES: dict[str, Any] = {
    "query": pl.Int64,
    **dict.fromkeys(("video", "name", "text", "sentence_kind"), pl.String),
    **dict.fromkeys(("segment_start_frame", "segment_end_frame", "tube"), pl.Int64),
    **dict.fromkeys(("start_frame", "end_frame", "number"), pl.Int64),
    "target": pl.String,
}
_FRAME = re.compile(r"0|[1-9][0-9]{0,7}", re.ASCII)


class RowError(Exception):
    """Why an entry is refused."""


@dataclass(frozen=True)
class Clip:
    """Facts of a file about a video; None where unknown.

    Args:
        name: of the video.
        width: in pixels.
        height: in pixels.
        n_frames: how many it has.
        fps: frames per second.
        path: where it lies.
    """

    name: str
    width: int | None = None
    height: int | None = None
    n_frames: int | None = None
    fps: float | None = None
    path: str | None = None


@dataclass(frozen=True)
class Track:
    """The boxes of one target.

    Args:
        video: name of its video.
        name: its own name.
        file: that names it.
        frames: (n,) numbers of the file.
        corners: (n, 4) x1, y1, x2, y2 in pixels.
        category: what it is.
    """

    video: str
    name: str
    file: str
    frames: Ints
    corners: Floats
    category: str | None = None


@dataclass(frozen=True)
class Sentence:
    """A sentence and its span, in the frame numbers of its file.

    Args:
        video: name of its video.
        name: its own name.
        number: its place among all sentences of its file, from 0.
        file: that names it.
        text: the words; None in a form that has none.
        start: first frame.
        end: frame after the last.
        track: place of its target's track.
        kind: declarative or interrogative.
        segment: first frame, and frame after the last, of the searched part of the video.
        target: what kind of thing the target is, as the file has it.
    """

    video: str
    name: str
    number: int
    file: str
    text: str | None
    start: int
    end: int
    track: int | None
    kind: str | None = None
    segment: tuple[int, int] | None = None
    target: str | None = None

    def on(self, track: int) -> Sentence:
        """The same with its target's track."""
        return replace(self, track=track)


@dataclass
class Grounded:
    """All that was read; numbers of frames are still those of the files."""

    findings: Findings
    clips: dict[str, Clip] = field(default_factory=dict)
    splits: dict[str, list[str]] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)

    def admit(self, clip: Clip, split: str) -> str:
        """Take a video, or take it again from another sentence; why not, if the two contradict."""
        known = self.clips.setdefault(clip.name, clip)
        for what in ("n_frames", "fps", "width", "height"):
            if getattr(known, what) != getattr(clip, what):
                return (
                    f"a second reading of video {clip.name}: {what} {getattr(clip, what)} "
                    f"where another sentence has {getattr(known, what)}"
                )
        held = self.splits.setdefault(clip.name, [])
        if split not in held:
            held.append(split)
        return ""

    def lowest(self) -> int:
        """The smallest frame number of any sentence or box; 1 where there is none."""
        starts = [sentence.start for sentence in self.sentences]
        return min(
            starts + [int(track.frames.min()) for track in self.tracks if len(track.frames)], default=1
        )


def parse_id(value: Any, key: str) -> str:
    """A number or text as the text that names something.

    Raises:
        RowError: if it is neither; says the key.
    """
    if type(value) is int and abs(value) < 1 << 63:
        return str(value)
    if isinstance(value, str) and value:
        return escape_surrogates(value)
    raise RowError(f"'{key}' should be a number or a text and is {format_value(value)}")


def parse_frame_field(each: Mapping[str, Any], key: str) -> int:
    """The frame number of that name.

    Raises:
        RowError: if it is none.
    """
    number = parse_int(each.get(key), 0, MOST_FRAMES)
    if number is None:
        raise RowError(f"'{key}' should be the number of a frame and is {format_value(each.get(key))}")
    return number


def parse_frame_name(text: str) -> int | None:
    """The number of a frame that a member's name is, None where it is none."""
    return int(text) if _FRAME.fullmatch(text) else None


def build_sentence_tables(
    grounded: Grounded, first_frame: int
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables, in the order of the files, and the vocabularies.

    Args:
        grounded: what was read.
        first_frame: number of a video's first frame in the files.
    """
    boxes, tubes = _boxes(grounded, first_frame)
    # What the targets are, where it is known
    words = sorted({track.category for track in grounded.tracks if track.category is not None})
    place = {word: n for n, word in enumerate(words)}
    rows = [
        {"tube": n, "kind": "category", "label": place[track.category]}
        for n, track in enumerate(grounded.tracks)
        if track.category is not None
    ]
    schema = {"tube": pl.Int64, "kind": pl.String, "label": pl.Int64}
    labels, vocabularies = pl.DataFrame(rows, schema=schema), {"category": tuple(words)} if words else {}
    found = {
        "videos": _videos(grounded),
        "boxes": boxes,
        "tubes": tubes,
        "tube_labels": labels,
        "queries": _queries(grounded, first_frame),
    }
    for name, table in found.items():
        grounded.findings.read[name] += len(table)
    return found, vocabularies


def build_no_sentences_error(errors: list[InputError], findings: Findings, where: str) -> InputError:
    """Why not one sentence could be read."""
    if len(errors) == 1 and findings.read["files"] == 1:
        return errors[0]
    first = findings.table().row(0, named=True) if len(findings.table()) else None
    if errors and (first is None or first["table"] == "files"):
        return build_unreadable_error(errors)
    if first is None:
        return InputError("there is no sentence in it", where=where)
    text = f"the first, {first['item']}: {first['reason']}"
    return InputError(f"none of {findings.read['queries']} sentences can be read; {text}", where=where)


def _videos(grounded: Grounded) -> pl.DataFrame:
    rows = [
        {
            "video": clip.name,
            "width_px": clip.width,
            "height_px": clip.height,
            "fps": clip.fps,
            "n_frames": clip.n_frames,
            "path": clip.path,
            "splits": grounded.splits[clip.name],
        }
        for clip in grounded.clips.values()
    ]
    schema: dict[str, Any] = {
        "video": pl.String,
        "width_px": pl.Int64,
        "height_px": pl.Int64,
        "fps": pl.Float32,
        "n_frames": pl.Int64,
        "path": pl.String,
        "splits": pl.List(pl.String),
    }
    return pl.DataFrame(rows, schema=schema)


def _boxes(grounded: Grounded, first_frame: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes by track and frame, without those that lie in no frame of their video, and the tracks."""
    tracks = grounded.tracks
    counts = np.array([len(track.frames) for track in tracks], dtype=np.int64)
    tube = np.repeat(np.arange(len(tracks)), counts)
    frame = np.concatenate([np.zeros(0, np.int64), *(track.frames for track in tracks)]) - first_frame
    corners = np.concatenate([np.zeros((0, 4)), *(track.corners for track in tracks)])
    lengths = [grounded.clips[track.video].n_frames for track in tracks]
    ends = np.repeat(np.array([MOST_FRAMES if n is None else n for n in lengths], dtype=np.int64), counts)
    inside = (frame >= 0) & (frame < ends)
    for place in np.flatnonzero(~inside).tolist():
        track = tracks[tube[place]]
        reason = f"outside the video, whose frames are {first_frame}..{ends[place] - 1 + first_frame}"
        item = f"{track.video}, frame {frame[place] + first_frame}"
        grounded.findings.reject("boxes", track.file, item, reason)
    order = np.flatnonzero(inside)
    order = order[np.lexsort((frame[order], tube[order]))]
    tube, frame, corners = tube[order], frame[order], corners[order]
    names = pl.Series("video", [track.video for track in tracks], dtype=pl.String)
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(order)),
            "video": names.gather(tube),
            "frame": frame,
            "tube": tube,
            **{name: np.ascontiguousarray(corners[:, at]) for at, name in enumerate(CORNERS)},
        }
    )
    return boxes, _tubes(tracks, names, boxes)


def _tubes(tracks: list[Track], names: pl.Series, boxes: pl.DataFrame) -> pl.DataFrame:
    extents = boxes.group_by("tube").agg(
        start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1
    )
    listed = pl.DataFrame(
        {
            "tube": pl.Series(range(len(tracks)), dtype=pl.Int64),
            "video": names,
            "name": pl.Series([track.name for track in tracks], dtype=pl.String),
        }
    )
    return listed.join(extents, on="tube", how="left", maintain_order="left")


def _queries(grounded: Grounded, first_frame: int) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for n, each in enumerate(grounded.sentences):
        start, end = (None, None) if each.segment is None else each.segment
        rows.append(
            {
                "query": n,
                "video": each.video,
                "name": each.name,
                "text": each.text,
                "sentence_kind": each.kind,
                "segment_start_frame": None if start is None else start - first_frame,
                "segment_end_frame": None if end is None else end - first_frame,
                "tube": each.track,
                "start_frame": each.start - first_frame,
                "end_frame": each.end - first_frame,
                "number": each.number,
                "target": each.target,
            }
        )
    table = pl.DataFrame(rows, schema=_QUERIES)
    return table if any(each.target for each in grounded.sentences) else table.drop("target")
