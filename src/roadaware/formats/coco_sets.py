"""COCO as a data set: annotation files with images, categories and boxes, and tracks where they name some.

Layout: one or several JSON files (`instances_train.json`, `_annotations.coco.json`); `images` with `id`, `file_name`,
`width`, `height` and of videos `video_id`, `frame_id`; `annotations` with `bbox` and of tracks `track_id`, as
CocoVID, TAO and CVAT have them; `videos` with `id`, `name`.
Boxes are left, top, width and height in pixels of the image, edges from 0: left + width is the right edge, excluded.
Frames: `frame_id` counts from 0; without videos `VIDEO/NUMBER.jpg` counts from 1 (from 0 where some is 0), and other
images are one video called as the file, its frames in the order of the list.
A file in a folder may be larger than memory: its annotations are read in parts.
Holds: class, box, track (a number), ignored boxes (`iscrowd`), sizes, rate (`fps` of a video).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.box_rows import KIND
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, find_common_reason, read_each_file
from roadaware.errors import InputError
from roadaware.formats.coco import build_coco_index, build_coco_scenes, choose_by
from roadaware.io.json import (
    decode,
    ensure_list,
    ensure_object,
    escape_surrogates,
    parse,
    pause_garbage_collection,
)
from roadaware.io.json_stream import iterate_parts, read_around
from roadaware.io.sources import FolderSource, Source, find_source, to_printable
from roadaware.scenes.concatenation import concat
from roadaware.scenes.tables import Scenes, label_tracks

VERSION = 3
_PLACES = ("annotations", "", "train", "valid", "val", "test")
LARGEST_WHOLE = 3 << 26
"""Larger files are read in parts, and may have any size; smaller ones at once: a fifth faster, in up to 1.4 GB."""
_WANTED = "COCO needs its annotations, files '*.json' with 'images', 'categories' and 'annotations',"
_HINT = "Point at the JSON file, or at the folder that holds it."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_files(source)), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + _list_files(source)


def _list_files(source: Source) -> list[str]:
    held: list[str] = []
    for place in _PLACES:
        if not place or source.has_folder(place):
            held += source.files(place, ".json")
            if held and place in ("annotations", ""):
                return held
    return held


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    first_frame: int | None = None,
) -> Scenes:
    """All files as Scenes, one file a split where several have other names; what was refused is in `rejected`.

    Args:
        source: see `find`.
        processes: not used.
        progress: called with the number of files read and the total.
        fps: frames a second of every video whose rate the file does not say.
        first_frame: number of a video's first frame in file names: 1, or 0.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    findings = Findings()
    facts = read_facts(source, fps=fps, first_frame=first_frame)
    names = _list_files(source)
    parts: dict[str, Scenes] = {}
    seen: set[str] = set()

    def take(name: str, findings: Findings) -> None:
        with pause_garbage_collection():
            part = _read_file(
                source, name, facts.first_frame, facts.fps, progress if len(names) == 1 else None
            )
        own = set(part.videos["video"].to_list())
        if again := sorted(seen & own):
            raise InputError(
                f"a second file with the video {to_printable(again[0], 60)}", where=source.where(name)
            )
        seen.update(own)
        parts[name] = part

    errors = read_each_file(names, take, findings, progress)
    if not parts:
        raise build_unreadable_error(errors)
    scenes = concat(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))
    for part in parts.values():
        findings.read.update(part.meta.rows_read)
        for warning in part.meta.notes["warnings"]:
            findings.warn(warning["what"], warning["example"], warning["count"])
        if len(part.rejected):
            findings.rejected.append(part.rejected)
    return scenes.with_tables(
        rejected=findings.table(),
        meta=replace(
            scenes.meta,
            dataset=READERS["coco"].datasets[0],
            licence=READERS["coco"].licence,
            source_digest=source.contents(inputs(source)),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _read_file(
    source: Source, name: str, first_frame: int | None, fps: float | None, progress: Progress | None
) -> Scenes:
    """One file, of which annotations are read part by part where it is large.

    Raises:
        InputError: if it is no COCO file, or its ids contradict themselves.
    """
    where = source.where(name)
    annotations: Callable[[], Iterator[list[Any]]] | None = None
    if isinstance(source, FolderSource) and (size := source.measure(name)) > LARGEST_WHOLE:
        with source.open(name) as stream:
            around = read_around(stream, "annotations", where)
        content, spans = ensure_object(around.rest, where, "a COCO file"), around.parts
        source.digests[name] = around.digest

        def iterate() -> Iterator[list[Any]]:
            with source.open(name) as stream:
                for part in iterate_parts(stream, spans or (), where):
                    if progress is not None:
                        progress(min(stream.tell() >> 20, size >> 20), size >> 20, "MiB")
                    yield part

        annotations = iterate if spans is not None else None
    else:
        content = ensure_object(parse(decode(source.read(name), where), where), where, "a COCO file")
    images = ensure_list(content.get("images"), where, "'images'")
    by, base = choose_by(content, where)
    base = base if first_frame is None else first_frame
    stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
    if stem == "_annotations.coco":  # Roboflow calls the file of every split so
        stem = PurePosixPath(name).parent.name or stem
    found = Findings()
    index = build_coco_index(
        content, where, by=by, name=escape_surrogates(stem), first_frame=base, findings=found
    )
    if images and not index.images:
        reason, count = find_common_reason(found.table()["reason"])
        raise InputError(
            f"none of {len(images):,} images can be taken, {count:,} because of this: {reason}", where=where
        )
    places = index.images.values()
    long = next((video for video, _ in places if not 0 < len(video.encode()) <= LONGEST_NAME), None)
    if long is not None:
        raise InputError(
            f"a video's name should have 1 to {LONGEST_NAME} bytes: {to_printable(long, 60)!r}", where=where
        )
    if any(frame > MOST_FRAMES for _, frame in places):
        raise InputError(f"a frame_id beyond {MOST_FRAMES:,}", where=where)
    if any(len(label.encode()) > LONGEST_NAME for label in index.labels):
        raise InputError(f"a category's name has more than {LONGEST_NAME} bytes", where=where)
    scenes = build_coco_scenes(
        annotations or ensure_list(content.get("annotations"), where, "'annotations'"), index, name
    )
    boxes = scenes.boxes.drop("sides_px2", "area_px2", "crowd", strict=False)
    if not boxes["ignore"].any():
        boxes = boxes.drop("ignore")
    frames = (
        scenes.frames.rename({"file_name": "path"}) if "file_name" in scenes.frames.columns else scenes.frames
    )
    counts = scenes.frames.group_by("video").agg(n_frames=pl.col("frame").max() + 1)
    videos = scenes.videos.join(counts, on="video", how="left", maintain_order="left")
    rates, lengths = _read_video_facts(content)
    videos = videos.with_columns(
        fps=pl.Series([rates.get(video, fps) for video in videos["video"]], dtype=pl.Float32),
        n_frames=pl.Series(
            [
                max(n or 0, lengths.get(video, 0))
                for video, n in videos.select("video", "n_frames").iter_rows()
            ],
            dtype=pl.Int64,
        ),
    )
    if len(scenes.tubes):
        scenes = scenes.with_tables(tube_labels=label_tracks(boxes, scenes.labels, KIND))
    refused = found.table().with_columns(file=pl.lit(to_printable(name)))
    parts = [table for table in (refused, scenes.rejected) if len(table)]
    return scenes.with_tables(
        boxes=boxes,
        frames=frames,
        videos=videos,
        rejected=pl.concat(parts) if parts else scenes.rejected,
        meta=replace(scenes.meta, rows_read={**scenes.meta.rows_read, **found.read}),
    )


def _read_video_facts(content: dict[str, Any]) -> tuple[dict[str, float], dict[str, int]]:
    """Rates and lengths that `videos` state, by name."""
    rates: dict[str, float] = {}
    lengths: dict[str, int] = {}
    for row in content.get("videos", []):
        name, rate, length = row.get("name"), row.get("fps"), row.get("length")
        if not isinstance(name, str):
            continue
        if type(rate) in (int, float) and 0 < rate <= 1000:
            rates[escape_surrogates(name)] = float(rate)
        if type(length) is int and 0 < length <= MOST_FRAMES:
            lengths[escape_surrogates(name)] = length
    return rates, lengths
