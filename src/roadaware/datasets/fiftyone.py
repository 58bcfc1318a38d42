"""FiftyOne: videos or images with boxes, as a FiftyOneDataset in JSON; read without FiftyOne and its database.

Moore and Corso, "FiftyOne", 2020, docs.voxel51.com.

Layout: `metadata.json` (media type, classes), `samples.json` (videos or images, each with its `filepath`), and the frames of
videos in `frames.json`, as FiftyOne exports them, or in a file for each video that its sample names (`frames`), as its
importer takes them too.
Boxes: `bounding_box` of a Detection: left, top, width and height as shares of the image, whose size stands in the sample's
metadata (`size` where it does not).
Field: `ground_truth`, of predictions `predictions`, else the only one that holds Detections; `field` names another.
Frames: `frame_number` from 1. A frame that has the field was looked at. Images are called `VIDEO_NUMBER`, as VIA's.
Holds: track (`index`), class, boxes without either, ignored boxes (`ignore`), size, rate, length, split (a tag called train,
val or test). Does not: names of tracks, other labels than Detections, masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import ROWS, BoxSource, build_box_predictions, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import FACTS, LARGEST_SIDE, Facts, read_facts
from roadaware.datasets.issues import Findings
from roadaware.datasets.relation_tables import format_video_name
from roadaware.datasets.via import place_images
from roadaware.errors import InputError, UsageError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, is_outside, to_printable
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 1
METADATA, SAMPLES, FRAMES = "metadata.json", "samples.json", "frames.json"
TRUTH, PREDICTED = "ground_truth", "predictions"
SPLITS = ("train", "val", "test")
_WANTED = "FiftyOne needs its annotations, the files 'metadata.json' and 'samples.json',"
_HINT = "Export the dataset as fiftyone.types.FiftyOneDataset, and point at the folder."
_FAR = 1e6
"""Shares beyond it are no place in or near an image."""


def find(path: Path) -> Source:
    """The dataset at `path`: a folder or zip in which its files lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: source.holds(METADATA) and source.holds(SAMPLES), _WANTED, _HINT)


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    named = [name for name in (FACTS, METADATA, SAMPLES, FRAMES) if source.holds(name)]
    return [*named, *(_walk(source, "frames") if source.has_folder("frames") else ())]


def _walk(source: Source, folder: str, depth: int = 3) -> Iterator[str]:
    files, folders = source.entries(folder)
    # A folder that is called as a file is one that cannot be read, and is said to be.
    yield from (f"{folder}/{name}" for name in sorted([*files, *folders]) if name.lower().endswith(".json"))
    for inner in folders if depth else ():
        yield from _walk(source, f"{folder}/{inner}", depth - 1)


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    field: str | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
    first_frame: int | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All samples as Scenes; what was refused is in `rejected`.

    Args:
        field: of samples or frames that holds the boxes (default: see above).
        fps: frames a second of every video whose sample does not say it.
        size: of every image or video whose sample does not say it, such as 1920x1080.
        first_frame: number of a video's first frame in the names of images: 1, or 0.
        predicted: read predictions, each with a `confidence`.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if the dataset cannot be read, or it is unclear which field holds the boxes.
    """
    if field is not None and (not isinstance(field, str) or not field):
        raise UsageError(f"field is the name of a field, not {format_value(field)}")
    findings = Findings()
    found = BoxSource("fiftyone", findings, predicted=predicted)
    facts = read_facts(source, fps=fps, size=size, first_frame=first_frame)
    metadata = ensure_object(_parse(source, METADATA), source.where(METADATA), "the top")
    media = metadata.get("media_type")
    if media not in ("video", "image"):
        raise InputError(
            f"expected a dataset of videos or images, not of {format_value(media)}",
            where=source.where(METADATA),
            hint=_HINT,
        )
    classes = metadata.get("default_classes")
    for word in classes if isinstance(classes, list) else []:
        if isinstance(word, str) and word and (called := escape_surrogates(word)) not in found.classes:
            found.classes.append(called)
    where = source.where(SAMPLES)
    top = ensure_object(_parse(source, SAMPLES), where, "the top")
    samples = ensure_list(top.get("samples"), where, "'samples'")
    boxes = _Boxes()
    names: list[str] = []
    with pause_garbage_collection():
        if media == "image":
            names = _list_fields(samples)
            chosen = _choose_field(names, field, where, found)
            _take_images(samples, chosen, facts, found, boxes)
        else:
            exported = _read_exported(source, findings)
            held: list[tuple[str, dict[str, Any], str, list[Any]]] = []
            for n, sample in enumerate(samples):
                if not isinstance(sample, dict):
                    reason = f"a sample should be an object and is {describe_type(sample)}"
                    findings.reject("videos", SAMPLES, f"sample {n}", reason)
                    continue
                file = sample.get("frames")
                try:
                    frames, file = _read_frames(source, sample, exported)
                except InputError as error:
                    name = file if isinstance(file, str) else SAMPLES
                    findings.reject_file(escape_surrogates(name), error)
                    continue
                findings.read["files"] += file != FRAMES
                names += _list_fields(frames)
                held.append((f"sample {n}", sample, file, frames))
                if progress is not None:
                    progress(n + 1, len(samples), "samples")
            if exported:
                what = f"frames whose sample does not stand in {SAMPLES}"
                findings.left_out[what] += sum(map(len, exported.values()))
            chosen = _choose_field(names, field, where, found)
            for item, sample, file, frames in held:
                _take_video(item, sample, file, frames, chosen, facts, found, boxes)
    findings.read["files"] += 2
    findings.read["videos"] += len(found.videos)
    if not found.videos:
        reasons = findings.table()["reason"]
        said = f"; the first is refused: {reasons[0]}" if len(reasons) else ""
        raise InputError(f"there is no sample in it that can be taken{said}", where=where, hint=_HINT)
    found.rows.append(boxes.build())
    digest = source.contents(inputs(source))
    return build_box_predictions(found, digest) if predicted else build_box_scenes(found, digest)


def _parse(source: Source, name: str) -> Any:
    where = source.where(name)
    return parse(decode(source.read(name), where), where)


def _read_exported(source: Source, findings: Findings) -> dict[str, list[Any]]:
    """Id of a sample to its frames, of what FiftyOne exports in one file.

    Raises:
        InputError: if the file is damaged.
    """
    if not source.holds(FRAMES):
        return {}
    where = source.where(FRAMES)
    found: dict[str, list[Any]] = {}
    top = ensure_object(_parse(source, FRAMES), where, "the top")
    for n, frame in enumerate(ensure_list(top.get("frames"), where, "'frames'")):
        owner = _parse_id(frame.get("_sample_id")) if isinstance(frame, dict) else ""
        if owner:
            found.setdefault(owner, []).append(frame)
        else:
            findings.reject("frames", FRAMES, f"frame {n}", "the frame does not name its sample")
    findings.read["files"] += 1
    return found


def _parse_id(value: Any) -> str:
    value = value.get("$oid") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def _read_frames(
    source: Source, sample: dict[str, Any], exported: dict[str, list[Any]]
) -> tuple[list[Any], str]:
    """The frames of a video, and the file in which they stand.

    Raises:
        InputError: if the file lies elsewhere, is not there or is damaged.
    """
    file = sample.get("frames")
    if not isinstance(file, str):
        return exported.pop(_parse_id(sample.get("_id")), []), FRAMES
    if is_outside(file) or not source.holds(file):
        raise InputError(
            f"no file {to_printable(file, 80)} of frames in the dataset", where=source.where(SAMPLES)
        )
    where = source.where(file)
    frames = ensure_object(_parse(source, file), where, "the top").get("frames")
    return (
        list(frames.values()) if isinstance(frames, dict) else ensure_list(frames, where, "'frames'")
    ), file


def _list_fields(items: list[Any]) -> list[str]:
    """Names of the fields that hold Detections, or should."""
    found: dict[str, None] = {}
    for item in items:
        for name, value in item.items() if isinstance(item, dict) else ():
            boxed = isinstance(value, dict) and isinstance(value.get("detections"), list)
            if boxed or (name in (TRUTH, PREDICTED) and value is not None):
                found[name] = None
    return list(found)


def _choose_field(names: list[str], asked: str | None, where: str, found: BoxSource) -> str:
    """The field that holds the boxes.

    Raises:
        InputError: if there is none, or it is unclear which.
    """
    there = list(dict.fromkeys(names))
    usual, foreign = (PREDICTED, TRUTH) if found.predicted else (TRUTH, PREDICTED)
    other = [name for name in there if name != foreign]
    chosen = asked or (usual if usual in there else other[0] if len(other) == 1 else usual)
    if chosen not in there:
        refused = found.findings.table()
        if not there and len(refused):
            first = refused.row(0, named=True)
            raise InputError(
                f"nothing in it can be taken; the first is refused: {first['file']}: {first['reason']}",
                where=where,
            )
        listed = to_printable(", ".join(there[:10]), 200) or "none"
        raise InputError(
            f"no sample or frame has the field '{to_printable(chosen, 60)}'; fields with Detections: {listed}",
            where=where,
            hint="--option field=NAME says which" if there else _HINT,
        )
    return chosen


class _Boxes:
    """Rows of boxes, column by column."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in ROWS}

    def take(
        self,
        held: list[Any],
        item: str,
        at: tuple[str, str | None, int | None],
        size: tuple[int, int],
        reason: str | None,
    ) -> None:
        """Add the detections of an image.

        Args:
            held: as the file has them.
            item: how the image is called in messages.
            at: file, video and frame.
            size: of the image in pixels.
            reason: why none of them can be taken, or None.
        """
        for place, box in enumerate(held, 1):
            why = reason or _find_fault(box)
            x1 = y1 = x2 = y2 = track = label = score = None
            ignore = False
            if why is None:
                left, top, width, height = (
                    share * side for share, side in zip(box["bounding_box"], (*size, *size), strict=True)
                )
                # What a share of ten or more digits times a side loses.
                x1, y1, x2, y2 = round(left, 9), round(top, 9), round(left + width, 9), round(top + height, 9)
                index, word, score = box.get("index"), box.get("label"), box.get("confidence")
                track = None if index is None else str(index)
                label = escape_surrogates(word) if word else None
                ignore = box.get("ignore") is True
                score = float(score) if type(score) in (int, float) else None
            row = (
                at[0],
                None,
                f"{item}, box {place}",
                at[1],
                at[2],
                track,
                label,
                x1,
                y1,
                x2,
                y2,
                ignore,
                None,
                score,
                why,
            )
            for column, value in zip(self.columns.values(), row, strict=True):
                column.append(value)

    def build(self) -> pl.DataFrame:
        """The rows as `box_rows.ROWS`."""
        return pl.DataFrame(self.columns, schema=ROWS)


def _find_fault(box: Any) -> str | None:
    """Why a detection is none, or None."""
    if not isinstance(box, dict):
        return f"a detection should be an object and is {describe_type(box)}"
    shares, index, label = box.get("bounding_box"), box.get("index"), box.get("label")
    if not (
        isinstance(shares, list)
        and len(shares) == 4
        and all(type(share) in (int, float) and abs(share) <= _FAR for share in shares)
    ):
        shown = ", ".join(map(format_value, shares[:6])) if isinstance(shares, list) else format_value(shares)
        return f"bounding_box should be left, top, width and height as shares of the image and is {shown}"
    if shares[2] < 0 or shares[3] < 0:
        return f"the box is upside down, with sides of {shares[2]} and {shares[3]}"
    if index is not None and not (type(index) is int and 0 <= index < 1 << 53):
        return f"the index should be a whole number from 0 and is {format_value(index)}"
    if label is not None and not isinstance(label, str):
        return f"the label should be a text and is {format_value(label)}"
    return None


def _parse_size(metadata: Any, sides: tuple[str, str], facts: Facts) -> tuple[int, int] | None:
    known = metadata if isinstance(metadata, dict) else {}
    width, height = (parse_int(known.get(side), 1, LARGEST_SIDE) for side in sides)
    return facts.size_px if width is None or height is None else (width, height)


_UNSIZED = "its size is not known: dataset.compute_metadata() before the export, or --option size=1920x1080"


def _take_video(
    item: str,
    sample: dict[str, Any],
    file: str,
    frames: list[Any],
    field: str,
    facts: Facts,
    found: BoxSource,
    boxes: _Boxes,
) -> None:
    """Add a video with its frames and boxes."""
    findings, file = found.findings, escape_surrogates(file)
    path, named, metadata = (sample.get(key) for key in ("filepath", "video", "metadata"))
    about = metadata if isinstance(metadata, dict) else {}
    size = _parse_size(metadata, ("frame_width", "frame_height"), facts)
    name = (
        named
        if isinstance(named, str) and named
        else PurePosixPath(path).stem
        if isinstance(path, str)
        else ""
    )
    video = format_video_name(escape_surrogates(name))
    reason = None
    if not name:
        reason = f"the filepath should be a text and is {format_value(path)}"
    elif len(video.encode()) > LONGEST_NAME:
        reason = f"the video's name has more than {LONGEST_NAME} bytes"
    elif any(row["video"] == video for row in found.videos):
        reason = f"the video {to_printable(video, 60)} stands twice"
    elif size is None:
        reason = _UNSIZED
    if reason is not None:
        findings.reject("videos", SAMPLES, f"{item} {to_printable(video, 60)}", reason)
    count = parse_int(about.get("total_frame_count"), 0, MOST_FRAMES)
    seen: set[int] = set()
    for n, frame in enumerate(frames):
        number = parse_int(frame.get("frame_number"), 1, MOST_FRAMES + 1) if isinstance(frame, dict) else None
        held = frame.get(field) if isinstance(frame, dict) else None
        if isinstance(frame, dict) and number is not None and held is None:
            continue
        listed = held.get("detections") if isinstance(held, dict) else None
        fault = reason and "its sample is refused"
        if reason is None and number is None:
            given = (
                format_value(frame.get("frame_number")) if isinstance(frame, dict) else describe_type(frame)
            )
            fault = f"frame_number should be a whole number from 1 and is {given}"
        elif reason is None and count and (number or 0) > count:
            fault = f"frame {number} is behind the end of its video of {count} frames"
        elif reason is None and number in seen:
            fault = f"frame {number} stands twice"
        elif reason is None and not isinstance(listed, list):
            fault = f"'{to_printable(field, 40)}' should be Detections and is {describe_type(held)}"
        place = f"{to_printable(video, 60)} frame {n + 1 if number is None else number}"
        if fault is not None:
            findings.reject("frames", file, place, fault)
        elif number is not None:
            seen.add(number)
        if isinstance(listed, list):
            at = None if number is None else number - 1
            boxes.take(listed, place, (file, video, at), size or (1, 1), fault and "its frame is refused")
    if reason is not None:
        return
    rate: Any = about.get("frame_rate")
    tags = sample.get("tags")
    split = next((tag for tag in tags if tag in SPLITS), None) if isinstance(tags, list) else None
    numbers = sorted(number - 1 for number in seen)
    found.videos.append(
        {
            "video": video,
            "width_px": size[0] if size else None,
            "height_px": size[1] if size else None,
            "fps": float(rate) if type(rate) in (int, float) and 0 < rate <= 1000 else facts.fps,
            # Zero is what FiftyOne writes of a video that it could not open.
            "n_frames": count or (numbers[-1] + 1 if numbers else None),
            "splits": [f"default/{split}"] if split else None,
        }
    )
    found.frames[video] = numbers
    findings.read["frames"] += len(numbers)


def _take_images(samples: list[Any], field: str, facts: Facts, found: BoxSource, boxes: _Boxes) -> None:
    """Add images with their boxes; those called VIDEO_NUMBER are frames of a video."""
    good: list[tuple[int, dict[str, Any], str]] = []
    for n, sample in enumerate(samples):
        path = sample.get("filepath") if isinstance(sample, dict) else None
        if isinstance(path, str) and PurePosixPath(path).name:
            good.append((n, sample, PurePosixPath(escape_surrogates(path)).name))
        else:
            given = format_value(path) if isinstance(sample, dict) else describe_type(sample)
            found.findings.reject(
                "frames", SAMPLES, f"sample {n}", f"the filepath should be a text and is {given}"
            )
            listed = (
                sample[field].get("detections")
                if isinstance(sample, dict) and isinstance(sample.get(field), dict)
                else []
            )
            boxes.take(
                listed if isinstance(listed, list) else [],
                f"sample {n}",
                (SAMPLES, None, None),
                (1, 1),
                "its sample is refused",
            )
    places = place_images(found, [(SAMPLES, name) for _, _, name in good], facts)
    sizes: dict[str, set[tuple[int, int] | None]] = {}
    for (n, sample, _), (video, frame, fault) in zip(good, places, strict=True):
        size, held = _parse_size(sample.get("metadata"), ("width", "height"), facts), sample.get(field)
        listed = held.get("detections") if isinstance(held, dict) else []
        if fault is None:
            sizes.setdefault(video, set()).add(size)
        if not isinstance(listed, list):
            found.findings.warn(
                "samples whose field is no Detections, taken for images without boxes", f"sample {n}"
            )
            listed = []
        fault = "its image is refused" if fault is not None else None if size is not None else _UNSIZED
        boxes.take(
            listed, f"{to_printable(video, 60)} frame {frame}", (SAMPLES, video, frame), size or (1, 1), fault
        )
    for row in found.videos:
        own = sizes[row["video"]]
        if len(own) > 1:
            found.findings.warn("videos with images of several sizes, size kept as null", row["video"])
        row["width_px"], row["height_px"] = (next(iter(own)) if len(own) == 1 else None) or (None, None)
