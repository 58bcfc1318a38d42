"""Write a tiny set in VidSTG's native formats: processed, and raw with VidOR's trajectories beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "test.json"
VIDEO = "5159741010"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "trajectories"
_BOX = re.compile(rb"\[([0-9.]+), ([0-9.]+), ([0-9.]+), ([0-9.]+)\]")
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: _BOX.sub(rb"[\1, \2, -\3, \4]", data, count=1),
    "changed": lambda data: _BOX.sub(rb"[\1, \2, \g<3>1, \4]", data, count=1),
    "same_size": lambda data: data.replace(b"red bicycle", b"new bicycle", 1),
}


def make(root: Path, *, frames: int = 12) -> Path:
    """Write the processed files of two splits: one video for test, two for training."""
    root.mkdir(parents=True, exist_ok=True)
    write(root / MAIN, processed([(annotation(VIDEO, frames), vidor(VIDEO, frames))]))
    rest = [(annotation(name, frames + 2), vidor(name, frames + 2)) for name in ("2401075277", "3247638033")]
    write(root / "train.json", processed(rest))
    return root


def make_raw(root: Path, *, frames: int = 12) -> Path:
    """The same test video as the published annotations have it, with VidOR's file beside them."""
    folder = root / "validation" / "0001"
    folder.mkdir(parents=True)
    write(root / "test_annotations.json", [annotation(VIDEO, frames)])
    write(folder / f"{VIDEO}.json", vidor(VIDEO, frames))
    return root


def write(path: Path, content: Any) -> None:
    """Write a file of any of the forms."""
    path.write_text(json.dumps(content), encoding="utf-8")


def annotation(video: str, frames: int) -> dict[str, Any]:
    """A person (1) who pushes a bicycle (0): one question and two statements."""
    return {
        "vid": video,
        "frame_count": frames,
        "fps": 25,
        "width": 1920,
        "height": 1080,
        "subject/objects": [{"tid": 0, "category": "bicycle"}, {"tid": 1, "category": "adult"}],
        "used_segment": {"begin_fid": 0, "end_fid": frames - 1},
        "used_relation": {
            "subject_tid": 1,
            "object_tid": 0,
            "predicate": "push",
            "begin_fid": 2,
            "end_fid": 9,
        },
        "temporal_gt": {"begin_fid": 2, "end_fid": frames - 1},
        "captions": [
            {"description": "an adult pushes a red bicycle.", "type": "adult", "target_id": 1},
            {"description": "there is a red bicycle before an adult.", "type": "bicycle", "target_id": 0},
        ],
        "questions": [{"description": "who pushes the bicycle?", "type": "adult", "target_id": 1}],
    }


def vidor(video: str, frames: int) -> dict[str, Any]:
    """Both move to the right; the bicycle is in sight from frame 1 on."""
    listed = []
    for frame in range(frames):
        held = [(1, 100 + 4 * frame, 200)] + [(0, 180 + 4 * frame, 320)] * bool(frame)
        listed.append(
            [
                {
                    "tid": tid,
                    "bbox": {"xmin": x + 0.5, "ymin": y, "xmax": x + 90.5, "ymax": y + 160},
                    "generated": 0,
                    "tracker": "none",
                }
                for tid, x, y in held
            ]
        )
    return {
        "version": "VERSION 1.0",
        "video_id": video,
        "video_hash": "",
        "video_path": f"0001/{video}.mp4",
        "frame_count": frames,
        "fps": 25,
        "width": 1920,
        "height": 1080,
        "subject/objects": [{"tid": 0, "category": "bicycle"}, {"tid": 1, "category": "adult"}],
        "trajectories": listed,
        "relation_instances": [],
    }


def processed(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """What TubeDETR's preprocessing makes of raw annotations and VidOR's files."""
    videos: list[dict[str, Any]] = []
    trajectories: dict[str, Any] = {}
    for told, held in pairs:
        head = {
            "original_video_id": told["vid"],
            **{key: told[key] for key in ("frame_count", "fps", "width", "height")},
            "start_frame": told["used_segment"]["begin_fid"],
            "end_frame": told["used_segment"]["end_fid"],
            "tube_start_frame": told["temporal_gt"]["begin_fid"],
            "tube_end_frame": told["temporal_gt"]["end_fid"],
            "video_path": held["video_path"],
        }
        for kind, key in (("interrogative", "questions"), ("declarative", "captions")):
            for each in told[key]:
                words = {"caption": each["description"], "type": each["type"], "target_id": each["target_id"]}
                videos.append({**head, **words, "video_id": len(videos), "qtype": kind})
        trajectories[told["vid"]] = {str(tid): _trajectory(held, tid) for tid in (0, 1)}
    return {"videos": videos, "trajectories": trajectories}


def _trajectory(held: dict[str, Any], tid: int) -> dict[str, Any]:
    found = {}
    for frame, boxes in enumerate(held["trajectories"]):
        for box in (box["bbox"] for box in boxes if box["tid"] == tid):
            size = [box["xmax"] - box["xmin"], box["ymax"] - box["ymin"]]
            found[str(frame)] = {
                "bbox": [box["xmin"], box["ymin"], *size],
                "generated": 0,
                "category_id": tid,
            }
    return found


def with_video(root: Path, name: str) -> None:
    """Add a video of that name to the main file."""
    held = json.loads((root / MAIN).read_bytes())
    more = [each | {"original_video_id": name, "video_id": 90 + n} for n, each in enumerate(held["videos"])]
    held["videos"] += more
    held["trajectories"][name] = held["trajectories"][VIDEO]
    write(root / MAIN, held)


def written_boxes(data: bytes) -> int | None:
    """How many boxes stand in the trajectories; None where the file is not of this form."""
    try:
        held = json.loads(data)
        assert isinstance(held["videos"], list)
        return sum(len(boxes) for targets in held["trajectories"].values() for boxes in targets.values())
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
        return None


def with_name(data: bytes, name: str) -> bytes:
    """The file with one target's number put for a name."""
    content = json.loads(data)
    for each in content["videos"]:
        each["target_id"] = name if each["target_id"] == 1 else each["target_id"]
    targets = content["trajectories"][VIDEO]
    targets[name] = targets.pop("1")
    return json.dumps(content).encode()


def hostile(content: Any, text: str) -> None:
    """Put a text where a sentence, a video, a target, a frame and a box are due."""
    first = content["videos"][0]
    content["videos"] += [text, {**first, "video_id": [text]}, {**first, "video_id": text, "target_id": text}]
    content["videos"].append({**first, "video_id": text, "original_video_id": text})
    targets = content["trajectories"][VIDEO]
    targets["1"]["3"]["bbox"][0] = text
    targets["1"][text] = {"bbox": text}
    targets[text] = text
    content["trajectories"][text] = text


def numbers() -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""

    def at(key: str, value: int) -> Callable[[Any], None]:
        return lambda content: content["videos"][0].update({key: value})

    huge = (10_000_000, 10**9, 10**18, 10**300)
    keys = ("frame_count", "tube_end_frame", "end_frame", "fps", "target_id")
    return {f"{key}_{value}"[:30]: at(key, value) for key in keys for value in huge}
