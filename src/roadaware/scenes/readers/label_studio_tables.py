"""From tasks of Label Studio to tables, with their vocabularies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.label_studio_rows import SOUND, Clip, Rows, boxes_of, enter
from roadaware.scenes.readers.label_studio_tasks import Task
from roadaware.scenes.readers.relation_instances import video_name

PREDICATE = "predicate"
_TEXTS, _WHOLE = pl.List(pl.String), pl.Int64
_SCHEMAS: dict[str, dict[str, Any]] = {
    "videos": {
        **dict.fromkeys(("video", "scene"), pl.String),
        **dict.fromkeys(("width_px", "height_px"), _WHOLE),
        "fps": pl.Float32,
        "n_frames": _WHOLE,
        "path": pl.String,
        "category": pl.String,
        "task": pl.String,
        "media": pl.String,
        "choices": _TEXTS,
    },
    "labels": {"box": _WHOLE, "kind": pl.String, "label": pl.String},
    "tubes": {
        "tube": _WHOLE,
        **dict.fromkeys(("video", "name"), pl.String),
        **dict.fromkeys(("start_frame", "end_frame"), _WHOLE),
        "kind": pl.String,
        "spans": pl.List(pl.List(_WHOLE)),
        "annotator": pl.String,
        "score": pl.Float64,
    },
    "tube_labels": {"tube": _WHOLE, "kind": pl.String, "label": pl.String},
    "relations": {
        "relation": _WHOLE,
        "video": pl.String,
        **dict.fromkeys(("subject", "object"), _WHOLE),
        "predicate": pl.String,
        **dict.fromkeys(("start_frame", "end_frame"), _WHOLE),
        "annotator": pl.String,
    },
    "queries": {
        "query": _WHOLE,
        **dict.fromkeys(("video", "name", "text"), pl.String),
        **dict.fromkeys(("tube", "start_frame", "end_frame"), _WHOLE),
        "annotator": pl.String,
    },
    "sounds": {
        "sound": _WHOLE,
        **dict.fromkeys(("video", "name"), pl.String),
        "frame": _WHOLE,
        **dict.fromkeys(("t_s", "end_s"), pl.Float32),
        "label": pl.String,
        "annotator": pl.String,
    },
}


def clips_of(
    tasks: Sequence[Task], size: tuple[int, int] | None, fps: float | None, findings: Findings
) -> list[Clip]:
    """The videos and pictures that the tasks are about: those of one path are one.

    Args:
        tasks: of all files.
        size: width and height of those of which no region and no task says it.
        fps: frames per second of all videos; what the exports say where it is None.
        findings: takes oddities.
    """
    held: dict[str, list[Task]] = {}
    for task in tasks:
        held.setdefault(task.path or f"\0{task.file}\0{task.name}", []).append(task)
    taken: set[str] = set()
    clips: list[Clip] = []
    for shared in held.values():
        name = shared[0].video
        if name in taken:
            name = video_name(f"(task {shared[0].name}, {shared[0].file}) {name}")
        while name in taken:
            name = video_name(f"({len(taken)}) {name}")
        taken.add(name)
        drawn = [r.drawn for task in shared for each in task.annotations for r in each.regions.values()]
        counts = {each.n_frames for each in drawn if each.n_frames is not None}
        behind = [
            int(each.frames[-1]) + 1 for each in drawn if each.kind == "track" and each.frames is not None
        ]
        if counts and max(behind, default=0) > max(counts):
            counts.add(max(behind))
        rates = [each.rate for each in drawn if each.rate is not None]
        findings.warn(
            "videos of which regions give several lengths; the longest counts", name, len(counts) > 1
        )
        picture = any(each.kind == "box" for each in drawn) or shared[0].media == "image"
        clips.append(
            Clip(
                name,
                tuple(shared),
                next((task.size for task in shared if task.size is not None), size),
                None if picture else fps or (rates[0] if rates else None),
                max(counts) if counts else (1 if picture else None),
            )
        )
    return clips


def tables_of(
    clips: Sequence[Clip], kinds: Mapping[str, str], findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all clips, and the vocabularies, sorted.

    Args:
        clips: see `clips_of`.
        kinds: control to the kind of its labels; a control that is not named is its own kind.
        findings: takes oddities and what is refused.
    """
    held = Rows(kinds, findings, {name: [] for name in _SCHEMAS})
    for clip in clips:
        _clip(clip, held)
    frames = {name: pl.DataFrame(rows, schema=_SCHEMAS[name]) for name, rows in held.rows.items()}
    empty = boxes_of("", np.zeros(0, np.int64), np.zeros((0, 4)), None, None, 0)
    frames["boxes"] = pl.concat([empty, *held.boxes])
    frames["frames"] = _frames(clips)
    for name in ("videos", "boxes", "labels", "tubes", "tube_labels", "relations", "queries", "sounds"):
        findings.read[name] += len(frames[name])
    return frames, _indexed(frames)


def _clip(clip: Clip, held: Rows) -> None:
    """Add the rows of one clip."""
    first = clip.tasks[0]
    width, height = clip.size or (1, 1)
    choices = [each.choices for task in clip.tasks for each in task.annotations if each.choices]
    said = list(
        dict.fromkeys(f"{name}={w}" for each in choices for name, words in each.items() for w in words)
    )
    alone = {tuple(words) for each in choices for words in each.values()}
    held.rows["videos"].append(
        {
            "video": clip.name,
            "scene": clip.name,
            "width_px": width,
            "height_px": height,
            "fps": clip.fps,
            "n_frames": clip.n_frames,
            "path": video_name(first.path) or None,
            "category": next(iter(alone))[0] if len(alone) == 1 and len(next(iter(alone))) == 1 else None,
            "task": first.name,
            "media": first.media or None,
            "choices": said or None,
        }
    )
    for task in clip.tasks:
        for annotation in task.annotations:
            enter(annotation, clip, task, held)


def _frames(clips: Sequence[Clip]) -> pl.DataFrame:
    """Every frame of the clips whose length is known; annotated where somebody has finished a task."""
    parts = [
        pl.DataFrame({"frame": np.arange(clip.n_frames or 0)}).select(
            pl.lit(clip.name).alias("video"),
            "frame",
            (pl.col("frame") / pl.lit(clip.fps, pl.Float64)).cast(pl.Float32).alias("t_s"),
            pl.lit(any(task.annotations for task in clip.tasks)).alias("annotated"),
        )
        for clip in clips
    ]
    return pl.concat(parts)


def _indexed(frames: dict[str, pl.DataFrame]) -> dict[str, tuple[str, ...]]:
    """Put indices for words, in place; the vocabularies, sorted."""
    both = pl.concat([frames[name].select("kind", "label") for name in ("labels", "tube_labels")])
    found = {
        kind: tuple(sorted(set(words))) for kind, words in both.group_by("kind").agg("label").iter_rows()
    }
    for name in ("labels", "tube_labels"):
        places = [found[kind].index(word) for kind, word in frames[name].select("kind", "label").iter_rows()]
        frames[name] = frames[name].with_columns(pl.Series("label", places, dtype=pl.Int64))
    for name, column, kind in (("relations", "predicate", PREDICATE), ("sounds", "label", SOUND)):
        words = tuple(sorted(set(frames[name][column].drop_nulls())))
        place = {word: n for n, word in enumerate(words)}
        number = pl.col(column).replace_strict(place, default=None, return_dtype=pl.Int64)
        frames[name] = frames[name].with_columns(number)
        found[kind] = words
    return {kind: words for kind, words in sorted(found.items()) if words}
