"""Write a tiny set in ROAD's native format: two files, three videos, five road users in each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "road_test_v1.0.json"
VIDEO = "2015-02-24-12-32-19_stereo_centre_04"
OTHERS = ()
BAD_ROW = "upside down"
_BOX = re.compile(rb'"box": \[([^,]*), ([^,]*), ([^,]*), ([^]]*)\]')
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: _BOX.sub(rb'"box": [\3, \2, \1, \4]', data, count=1),
    "changed": lambda data: _BOX.sub(rb'"box": [0.0, \2, \3, \4]', data, count=1),
    "same_size": lambda data: data.replace(b'"box": [0.3', b'"box": [0.2', 1),
}
_VIDEOS = {
    MAIN: {VIDEO: ("test",)},
    "road_trainval_v1.0.json": {
        "2014-06-25-16-45-34_stereo_centre_02": ("train_2", "train_3", "val_1"),
        "2014-12-10-18-10-50_stereo_centre_02": ("train_1", "val_2", "val_3"),
    },
}
EVERY = {
    "agent": ["Ped", "SmalVeh", "Car", "TL"],
    "action": ["Red", "Green", "Rev", "MovAway", "Stop", "Xing"],
    "loc": ["VehLane", "RhtParking", "Jun", "LftPav"],
    "duplex": ["Ped-Xing", "Car-Rev", "Car-MovAway", "Car-Stop", "TL-Red"],
    "triplet": ["Ped-Xing-Jun", "Car-MovAway-VehLane", "Car-Rev-VehLane", "Car-Stop-Jun"],
    "av_action": ["AV-Stop", "AV-Mov", "AV-Rev", "AV-TurRht"],
}
USED = {
    "agent": ["Car", "Ped", "TL"],
    "action": ["Red", "Green", "MovAway", "Stop", "Xing"],
    "loc": ["VehLane", "Jun", "LftPav"],
    "duplex": ["Car-MovAway", "Car-Stop", "Ped-Xing", "TL-Red"],
    "triplet": ["Car-MovAway-VehLane", "Car-Stop-Jun", "Ped-Xing-Jun"],
    "av_action": ["AV-Mov", "AV-Stop", "AV-TurRht"],
}
TYPES = ("agent", "action", "loc", "duplex", "triplet")


@dataclass(frozen=True)
class User:
    """A road user: its frames from 1, its way in shares of the image, and its labels, which may change.

    Args:
        uid: of its tube.
        first: its first frame.
        last: its last frame.
        hole: frames in which it is not seen.
        corner: of its first box.
        labels: kind to the labels it has from a frame on.
    """

    uid: str
    first: int
    last: int
    labels: dict[str, dict[int, list[str]]]
    hole: tuple[int, ...] = ()
    corner: tuple[float, float] = (0.3, 0.4)
    size: tuple[float, float] = (0.05, 0.15)
    step: tuple[float, float] = field(default=(0.01, 0.002))


def users(frames: int) -> list[User]:
    """A walker, a car that stops, a parked car behind a hole, a light, and a vehicle of an unused sort."""
    half = frames // 2
    return [
        User(
            "10284a58-002-01",
            2,
            frames,
            {
                "agent": {1: ["Ped"]},
                "action": {1: ["Xing"]},
                "loc": {1: ["LftPav"], half: ["LftPav", "Jun"]},
                "duplex": {1: ["Ped-Xing"]},
                "triplet": {1: [], half: ["Ped-Xing-Jun"]},
            },
        ),
        User(
            "544e13cc-001-01",
            1,
            frames - 1,
            {
                "agent": {1: ["Car"]},
                "action": {1: ["MovAway"], half: ["Stop"]},
                "loc": {1: ["VehLane"], half: ["Jun"]},
                "duplex": {1: ["Car-MovAway"], half: ["Car-Stop"]},
                "triplet": {1: ["Car-MovAway-VehLane"], half: ["Car-Stop-Jun"]},
            },
            corner=(0.6, 0.5),
            size=(0.2, 0.2),
        ),
        User(
            "a074d1bf-001-01",
            1,
            frames,
            {
                "agent": {1: ["Car"]},
                "action": {1: ["Stop"]},
                "loc": {1: ["RhtParking"]},
                "duplex": {1: ["Car-Stop"]},
                "triplet": {1: []},
            },
            hole=(half,),
            corner=(0.97, 0.6),
            size=(0.03, 0.1),
            step=(0.0, 0.0),
        ),
        User(
            "e97b3e4c-001-01",
            1,
            2,
            {
                "agent": {1: ["TL"]},
                "action": {1: ["Red"]},
                "loc": {1: []},
                "duplex": {1: ["TL-Red"]},
                "triplet": {1: []},
            },
            corner=(0.0, 0.1),
            step=(0.0, 0.0),
        ),
        User(
            "edb6d66a-005-01",
            3,
            4,
            {
                "agent": {1: ["SmalVeh"]},
                "action": {1: ["Rev"]},
                "loc": {1: []},
                "duplex": {1: []},
                "triplet": {1: []},
            },
            corner=(0.1, 0.7),
        ),
    ]


def make(root: Path, *, frames: int = 12) -> None:
    """Write the two files as ROAD's authors split them."""
    root.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, videos in _VIDEOS.items():
        content = head()
        for video, splits in videos.items():
            content["db"][video] = video_entry(frames, list(splits), count, wide=count == 2)
            count += 1
        (root / name).write_text(json.dumps(content), encoding="utf-8")


def with_video(root: Path, name: str) -> None:
    """Give the main file's video once more, under another name."""
    path = root / MAIN
    content = json.loads(path.read_text(encoding="utf-8"))
    content["db"][name] = content["db"][VIDEO]
    path.write_text(json.dumps(content), encoding="utf-8")


def written_boxes(data: bytes) -> int | None:
    """How many boxes stand in the frames of the videos; None where the file is not of this form."""
    try:
        videos = json.loads(data)["db"].values()
        return sum(
            len(frame.get("annos") or ())
            for video in videos
            for number, frame in video["frames"].items()
            if re.fullmatch("[1-9][0-9]*", number) and 1 <= int(number) <= video["numf"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def head() -> dict[str, Any]:
    """What a file says beside its videos; `db` stands in the middle, as in the published file."""
    content: dict[str, Any] = {"all_input_labels": EVERY["agent"] + EVERY["action"] + EVERY["loc"]}
    content["all_av_action_labels"] = EVERY["av_action"]
    content["av_action_labels"] = USED["av_action"]
    content |= {f"{kind}_labels": USED[kind] for kind in TYPES}
    content["db"] = {}
    content["label_types"] = list(TYPES)
    content |= {f"all_{kind}_labels": EVERY[kind] for kind in TYPES}
    for kind, parts in (("duplex", TYPES[:2]), ("triplet", TYPES[:3])):
        content[f"{kind}_childs"] = [
            [USED[part].index(word) for part, word in zip(parts, label.split("-"), strict=True)]
            for label in USED[kind]
        ]
    return content


def video_entry(frames: int, splits: list[str], number: int, *, wide: bool = False) -> dict[str, Any]:
    """One video: its first frame is not annotated, its last has no boxes, and one behind it has no entry."""
    size = (1920, 1280) if wide else (1280, 960)
    entry: dict[str, Any] = {"split_ids": splits}
    tubes: dict[str, dict[str, Any]] = {f"{kind}_tubes": {} for kind in (*TYPES, "av_action")}
    held: dict[str, Any] = {}
    for frame in range(1, frames + 2):
        held[str(frame)] = {
            "annotated": int(frame > 1),
            "rgb_image_id": frame,
            "input_image_id": frame,
            "width": size[0],
            "height": size[1],
            "av_action_ids": _av(frame, frames),
        }
    for place, user in enumerate(users(frames)):
        for frame in range(user.first, user.last + 1):
            if frame not in user.hole:
                key = f"b{number}{place}{frame:04d}"
                held[str(frame)].setdefault("annos", {})[key] = _anno(user, frame)
                _enter(tubes, user, frame, key)
    stops = {str(frame): 1 for frame in range(1, frames // 2)}
    tubes["av_action_tubes"] = {
        "av-000-01": {"label_id": 0, "frames": stops},
        "av-001-01": {"label_id": 1, "frames": list(range(frames // 2, frames + 1))},
    }
    entry |= tubes
    entry["frame_labels"] = [each["av_action_ids"][0] for each in held.values()]
    entry["frames"] = held
    entry["numf"] = frames + 2
    return entry


def labels_at(user: User, kind: str, frame: int) -> list[str]:
    """The labels of a road user in a frame."""
    since = max(first for first in user.labels[kind] if first <= frame)
    return user.labels[kind][since]


def _av(frame: int, frames: int) -> list[int]:
    """Standing, then moving; once moving and turning; once what is not used."""
    if frame == 3:
        return [EVERY["av_action"].index("AV-Rev"), EVERY["av_action"].index("AV-Stop")]
    if frame == frames:
        return [EVERY["av_action"].index("AV-TurRht"), EVERY["av_action"].index("AV-Mov")]
    return [EVERY["av_action"].index("AV-Stop" if frame < frames // 2 else "AV-Mov")]


def _anno(user: User, frame: int) -> dict[str, Any]:
    passed = frame - user.first
    left, top = (at + step * passed for at, step in zip(user.corner, user.step, strict=True))
    return {
        "box": [left, top, left + user.size[0], top + user.size[1]],
        **{
            f"{kind}_ids": [EVERY[kind].index(label) for label in labels_at(user, kind, frame)]
            for kind in TYPES
        },
        "tube_uid": user.uid,
    }


def _enter(tubes: dict[str, dict[str, Any]], user: User, frame: int, key: str) -> None:
    """Put the box into a tube for each of its labels; a tube ends when its label does."""
    for kind in TYPES:
        for label in labels_at(user, kind, frame):
            number = EVERY[kind].index(label)
            uid = user.uid if kind == "agent" else f"{user.uid}-{number}"
            tube = tubes[f"{kind}_tubes"].setdefault(uid, {"label_id": number, "annos": {}})
            tube["annos"][str(frame)] = key
