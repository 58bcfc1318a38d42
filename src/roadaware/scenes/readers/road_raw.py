"""One video of a ROAD file as columns: ids still count all labels, rows that cannot be taken are refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import an_object, clean, kind_of, names, quoted, whole
from roadaware.scenes.readers.road_boxes import Boxes, IdLists, id_lists, read_boxes
from roadaware.scenes.readers.road_stretches import Places, Stretches, read_stretches

MOST_FRAMES = 10_000_000
MOST_PIXELS = 65_535
_NUMBER = re.compile(r"[1-9][0-9]{0,7}", re.ASCII)
_TAGS = {"weather": ("weather", "conditions", "condition"), "time_of_day": ("time_of_day", "lighting")}


@dataclass(frozen=True)
class RawVideo:
    """What one video's entry holds; box and frame numbers are places in its own columns.

    Args:
        name: of the video.
        file: the file that holds it.
        head: its row of the table `videos`.
        frames: frame (from 0), annotated, rgb_image_id, input_image_id; in order.
        av: the frames' action ids.
        boxes: in the order of frames and, in one frame, of the file.
        tubes: the file's kind to its tubes.
        findings: what was met.
    """

    name: str
    file: str
    head: dict[str, Any]
    frames: pl.DataFrame
    av: IdLists
    boxes: Boxes
    tubes: dict[str, Stretches]
    findings: Findings = field(default_factory=Findings)


def read_raw(name: str, value: Any, file: str, where: str) -> RawVideo:
    """The columns of one video.

    Args:
        name: of the video.
        value: its entry in `db`.
        file: the file's name, for what is refused.
        where: names file and video in errors.

    Raises:
        InputError: if the entry, its `frames` or its length are not what they should be.
    """
    entry = an_object(value, where, "the video")
    listed = an_object(entry.get("frames"), where, "'frames'")
    findings = Findings()
    length = _length(entry, where)
    held = _frames(listed, length, name, file, findings)
    numbers = [number for number, _ in held]
    size = _size([frame for _, frame in held], name, findings)
    boxes = read_boxes(held, name, file, findings)
    at = Places(boxes, length)
    tubes = {
        key.removesuffix("_tubes"): read_stretches(key, tubes, at, (name, file), findings)
        for key, tubes in entry.items()
        if key.endswith("_tubes")
    }
    head = {
        "video": name,
        "scene": name,
        "width_px": size[0],
        "height_px": size[1],
        "fps": None,
        "n_frames": length,
        "path": f"videos/{name}.mp4",
        "splits": list(dict.fromkeys(names(entry.get("split_ids", []), where, "'split_ids'"))),
        **{tag: _tag(entry, known) for tag, known in _TAGS.items()},
    }
    av = id_lists([frame.get("av_action_ids") for _, frame in held])
    findings.warn("frames without av_action_ids", name, av.absent)
    frames = _frame_table(numbers, [frame for _, frame in held], name, findings)
    findings.read["videos"] += 1
    return RawVideo(name, file, head, frames, av, boxes, tubes, findings)


def _length(entry: Mapping[str, Any], where: str) -> int:
    """How many frames the video has.

    Raises:
        InputError: if that is missing or out of reason.
    """
    length = whole(entry.get("numf"), 1, MOST_FRAMES)
    if length is None:
        found = quoted(entry["numf"]) if "numf" in entry else "missing"
        message = f"'numf' should be the number of frames, 1 to {MOST_FRAMES}, and is {found}"
        raise InputError(message, where=where)
    return length


def _frames(
    listed: Mapping[str, Any], length: int, name: str, file: str, findings: Findings
) -> list[tuple[int, dict[str, Any]]]:
    """The frames that can be taken, by number from 0 and in order."""
    held: list[tuple[int, dict[str, Any]]] = []
    for key, frame in listed.items():
        number = int(key) if _NUMBER.fullmatch(key) else 0
        if not 1 <= number <= length:
            reason = f"{quoted(key)} is no frame number in 1 to {length}, outside the video"
        elif not isinstance(frame, dict):
            reason = f"should be an object and is {kind_of(frame)}"
        else:
            held.append((number - 1, frame))
            continue
        findings.reject("frames", file, f"{name}, frame {key}", reason)
    findings.read["frames"] += len(held)
    held.sort(key=lambda each: each[0])
    return held


def _size(
    frames: Sequence[Mapping[str, Any]], name: str, findings: Findings
) -> tuple[int | None, int | None]:
    """Width and height that most frames say.

    Boxes are shares of the image, so those of frames of another size are right in this one, too.
    """
    sizes = [(frame.get("width"), frame.get("height")) for frame in frames]
    common: Counter[tuple[int, int]] = Counter()
    for width, height in sizes:
        known = whole(width, 1, MOST_PIXELS), whole(height, 1, MOST_PIXELS)
        if known[0] is not None and known[1] is not None:
            common[known[0], known[1]] += 1
    findings.warn("frames without an image size", name, len(sizes) - sum(common.values()))
    if not common:
        return None, None
    most = max(common, key=lambda size: common[size])
    findings.warn(
        "frames of another size than most of their video", name, sum(common.values()) - common[most]
    )
    return most


def _frame_table(
    numbers: Sequence[int], frames: Sequence[Mapping[str, Any]], name: str, findings: Findings
) -> pl.DataFrame:
    said = [frame.get("annotated") for frame in frames]
    known = [value > 0 if isinstance(value, int) else None for value in said]
    findings.warn("frames that do not say whether they are annotated", name, known.count(None))
    images = {
        key: pl.Series([whole(frame.get(key), 0, MOST_FRAMES) for frame in frames], dtype=pl.Int64)
        for key in ("rgb_image_id", "input_image_id")
    }
    return pl.DataFrame(
        {
            "frame": pl.Series(numbers, dtype=pl.Int64),
            "annotated": pl.Series(known, dtype=pl.Boolean),
            **images,
        }
    )


def _tag(entry: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """The first text, or list of texts, under one of the names."""
    for key in known:
        value = entry.get(key)
        words = value if isinstance(value, list) else [value]
        texts = [word for word in words if isinstance(word, str)]
        if texts and len(texts) == len(words):
            return clean(", ".join(texts)) or None
    return None
