"""Write a tiny set as VidVRD and VidOR have it: a file for each of three videos, four people in each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "ILSVRC2015_train_00066007.json"
VIDEO = "ILSVRC2015_train_00066007"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "trajectories"
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: re.sub(rb'"xmax": [0-9.]+', b'"xmax": 1', data, count=1),
    "changed": lambda data: re.sub(rb'"xmax": [0-9.]+', b'"xmax": 321.5', data, count=1),
    "same_size": lambda data: data.replace(b'"ymin": 3', b'"ymin": 2', 1),
}
_OTHERS = {"ILSVRC2015_train_00010001": 1, "ILSVRC2015_train_00219001": 2}


def make(root: Path, *, frames: int = 12) -> None:
    """One file for each video, in one folder."""
    root.mkdir(parents=True, exist_ok=True)
    for video, shift in {VIDEO: 0, **_OTHERS}.items():
        (root / f"{video}.json").write_text(json.dumps(annotation(video, frames, shift)), encoding="utf-8")


def with_video(root: Path, name: str) -> None:
    """Add a copy of the main video under another name."""
    content = json.loads((root / MAIN).read_bytes()) | {"video_id": name}
    (root / "other.json").write_text(json.dumps(content), encoding="utf-8")


def written_boxes(data: bytes) -> int | None:
    """How many boxes stand in the frames; None where the file is not of this form."""
    try:
        frames = json.loads(data)["trajectories"]
        return sum(len(held) for held in frames) if all(isinstance(held, list) for held in frames) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def annotation(video: str, frames: int = 12, shift: int = 0) -> dict[str, Any]:
    """Two people, a dog that comes later and a ball that goes earlier; the people's relations overlap."""
    people = [
        (0, "person", 0, frames),
        (1, "person", 0, frames),
        (2, "dog", 1, frames),
        (7, "ball", 0, frames - 1),
    ]
    listed: list[list[dict[str, Any]]] = [[] for _ in range(frames)]
    for tid, _, start, end in people:
        for frame in range(start, end):
            listed[frame].append(box(tid, 20.5 + 60 * tid + shift + frame, 30 + tid, 40, 50, frame % 3 > 0))
    return {
        "video_id": video,
        "frame_count": frames,
        "fps": 30,
        "width": 1280,
        "height": 720,
        "subject/objects": [{"tid": tid, "category": category} for tid, category, _, _ in people],
        "trajectories": listed,
        "relation_instances": [
            relation(0, "walk_next_to", 1, 0, frames),
            relation(1, "walk_next_to", 0, 0, frames // 2),
            relation(2, "chase", 7, 1, frames - 1),
            relation(0, "watch", 2, frames // 2, frames),
        ],
    }


def box(tid: int, left: float, top: float, width: float, height: float, generated: bool) -> dict[str, Any]:
    """One box of one frame."""
    corners = {"xmin": left, "ymin": top, "xmax": left + width, "ymax": top + height}
    return {
        "tid": tid,
        "bbox": corners,
        "generated": int(generated),
        "tracker": "mosse" if generated else "none",
    }


def relation(subject: int, predicate: str, target: int, begin: int, end: int) -> dict[str, Any]:
    """Who does what to whom."""
    return {
        "subject_tid": subject,
        "object_tid": target,
        "predicate": predicate,
        "begin_fid": begin,
        "end_fid": end,
    }


def instances(content: dict[str, Any], *, tids: bool = True) -> list[dict[str, Any]]:
    """The relations of a video with their own trajectories, as VidVRD-helper writes truth."""
    category = {each["tid"]: each["category"] for each in content["subject/objects"]}
    frames = [{each["tid"]: list(each["bbox"].values()) for each in held} for held in content["trajectories"]]
    found = []
    for each in content["relation_instances"]:
        who, whom = each["subject_tid"], each["object_tid"]
        span = range(each["begin_fid"], each["end_fid"])
        found.append(
            {
                "triplet": [category[who], each["predicate"], category[whom]],
                **({"subject_tid": who, "object_tid": whom} if tids else {}),
                "duration": [span.start, span.stop],
                "sub_traj": [frames[frame][who] for frame in span],
                "obj_traj": [frames[frame][whom] for frame in span],
            }
        )
    return found


def with_name(data: bytes, name: str) -> bytes:
    """The file with one object's number put for a name."""
    content = json.loads(data)
    for held in (content["subject/objects"], *content["trajectories"]):
        for each in held:
            each["tid"] = name if each["tid"] == 1 else each["tid"]
    for each in content["relation_instances"]:
        for role in ("subject_tid", "object_tid"):
            each[role] = name if each[role] == 1 else each[role]
    return json.dumps(content).encode()


def hostile(content: dict[str, Any], text: str) -> None:
    """Put a text where an object, a box and a relation are due."""
    content["subject/objects"].append({"tid": text, "category": [text]})
    content["trajectories"][2].append({"tid": text, "bbox": text})
    content["trajectories"][3][0]["bbox"]["xmin"] = text
    content["relation_instances"].append(relation(0, text, 1, 0, 1) | {"object_tid": text, "end_fid": text})


def numbers() -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""

    def at(where: str, key: str, value: int) -> Callable[[Any], None]:
        def change(content: Any) -> None:
            (content if not where else content[where][0])[key] = value

        return change

    huge = (10_000_000, 10**9, 10**18, 10**300)
    found = {f"frames_{value}"[:24]: at("", "frame_count", value) for value in huge}
    return found | {f"end_{value}"[:24]: at("relation_instances", "end_fid", value) for value in huge}
