"""Write a tiny set as Label Studio exports it: three video tasks, a file each; and a task about an image."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "clip_0002.json"
VIDEO = "clip_0002.mp4"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "sequence"
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: re.sub(
        rb'"width": [0-9.]+(?=, "height": [0-9.]+, "time")', b'"width": -5', data, count=1
    ),
    "changed": lambda data: re.sub(
        rb'"width": [0-9.]+(?=, "height": [0-9.]+, "time")', b'"width": 12.25', data, count=1
    ),
    "same_size": lambda data: data.replace(b'"y": 3', b'"y": 2', 1),
}
WIDTH, HEIGHT, FPS = 640, 360, 5
_VIDEOS = ("clip_0001.mp4", VIDEO, "clip_0010.mp4")


def make(root: Path, *, frames: int = 12) -> None:
    """One export for each video task, of at least twelve frames."""
    frames = max(frames, 12)
    root.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(_VIDEOS, 1):
        path = root / f"{name.removesuffix('.mp4')}.json"
        path.write_text(json.dumps([video_task(number, name, frames)]), encoding="utf-8")


def with_video(root: Path, name: str) -> None:
    """Add a copy of the main task about another video."""
    (task,) = json.loads((root / MAIN).read_bytes())
    task["data"]["video"] = f"/data/local-files/?d=clips/{name}"
    (root / "other.json").write_text(json.dumps([task]), encoding="utf-8")


def video_task(number: int, name: str, frames: int = 12) -> dict[str, Any]:
    """A light seen once, two people, an action on the timeline, a shout, descriptions and an arrow."""
    last = frames - 1
    result = [
        rectangle("light", [keyframe(2, 40.5, 3, 5, 10, enabled=False)], frames, ["lamp"]),
        rectangle(
            "ann",
            [
                keyframe(1, 10.5, 30, 10, 40),
                keyframe(5, 18.5, 32, 10, 40),
                keyframe(last, 30, 32, 12, 40, enabled=False),
            ],
            frames,
            ["person"],
        ),
        rectangle(
            "bob",
            [
                keyframe(3, 50, 35.25, 8, 30),
                keyframe(6, 50, 35.25, 8, 30, enabled=False),
                keyframe(8, 52, 35.25, 8, 30),
            ],
            frames,
            ["person"],
        ),
        said("ann", "agent", "labels", {"labels": ["woman"]}),
        said("ann", "description", "textarea", {"text": ["a woman in red runs away"]}),
        {
            "id": "run",
            "from_name": "action",
            "to_name": "video",
            "type": "timelinelabels",
            "value": {"ranges": [{"start": 2, "end": 4}], "timelinelabels": ["running"]},
        },
        {
            "id": "cry",
            "from_name": "noise",
            "to_name": "audio",
            "type": "labels",
            "value": {"start": 0.45, "end": 1.5, "channel": 0, "labels": ["shouting"]},
        },
        said("scene", "description", "textarea", {"text": ["two people in a street"]}),
        said("event", "event", "choices", {"choices": ["flood"]}),
        arrow("ann", "bob", ["running away from"]),
        arrow("bob", "cry", ["makes"]),
    ]
    annotation = {
        "id": 100 + number,
        "completed_by": {"id": 7, "email": "a@b.c"},
        "was_cancelled": False,
        "result": result,
    }
    data = {"video": f"/data/local-files/?d=clips/{name}", "width": WIDTH, "height": HEIGHT}
    return {"id": number, "data": data, "annotations": [annotation]}


def image_task(number: int, name: str) -> dict[str, Any]:
    """Two boxes on an image, one of them turned by a right angle."""
    held = []
    for n, rotation in enumerate((0, 90)):
        held.append(
            {
                "id": f"r{n}",
                "from_name": "agent",
                "to_name": "image",
                "type": "rectanglelabels",
                "original_width": 200,
                "original_height": 100,
                "image_rotation": 0,
                "value": {
                    "x": 50,
                    "y": 10 + n,
                    "width": 20,
                    "height": 30,
                    "rotation": rotation,
                    "rectanglelabels": ["person"],
                },
            }
        )
    annotation = {"id": number, "completed_by": 3, "was_cancelled": False, "result": held}
    return {"id": number, "data": {"image": f"/data/upload/4/0a1b2c3d-{name}"}, "annotations": [annotation]}


def rectangle(name: str, sequence: list[dict[str, Any]], frames: int, labels: list[str]) -> dict[str, Any]:
    """A rectangle in a video."""
    value = {"sequence": sequence, "framesCount": frames, "duration": frames / FPS, "labels": labels}
    return {
        "id": name,
        "from_name": "box",
        "to_name": "video",
        "type": "videorectangle",
        "value": value,
        "origin": "manual",
    }


def keyframe(
    frame: int, x: float, y: float, width: float, height: float, *, enabled: bool = True
) -> dict[str, Any]:
    """A box of a frame from 1, in hundredths of the image."""
    box = {"x": x, "y": y, "width": width, "height": height}
    return {"frame": frame, "enabled": enabled, "rotation": 0, **box, "time": frame / FPS}


def said(name: str, control: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """What is said of a region."""
    return {"id": name, "from_name": control, "to_name": "video", "type": kind, "value": value}


def arrow(subject: str, target: str, labels: list[str], direction: str = "right") -> dict[str, Any]:
    """An arrow from one region to another."""
    return {"from_id": subject, "to_id": target, "type": "relation", "direction": direction, "labels": labels}


def with_name(data: bytes, name: str) -> bytes:
    """The export with one region's identifier put for another."""
    return data.replace(b'"bob"', json.dumps(name).encode())


def hostile(content: list[dict[str, Any]], text: str) -> None:
    """Put a text where a task, a result, a keyframe and an end of an arrow are due."""
    result = content[0]["annotations"][0]["result"]
    result[1]["value"]["sequence"][0]["x"] = text
    result[2]["value"]["sequence"].append({"frame": text})
    result += [text, {"id": text, "type": text, "value": {text: [text]}}, arrow(text, text, [text], text)]
    content.append({text: text})


def numbers() -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""

    def at(place: int, *way: Any, value: int) -> Callable[[Any], None]:
        def change(content: Any) -> None:
            held = content[0]["annotations"][0]["result"][place]["value"]
            for name in way[:-1]:
                held = held[name]
            held[way[-1]] = value

        return change

    huge = (10_000_000, 10**18, 10**300)
    found = {f"frames_{n}"[:24]: at(2, "framesCount", value=n) for n in huge}
    found |= {f"keyframe_{n}"[:24]: at(1, "sequence", 2, "frame", value=n) for n in huge}
    return found | {f"range_{n}"[:24]: at(5, "ranges", 0, "end", value=n) for n in huge}
