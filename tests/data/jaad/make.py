"""Write a tiny set in JAAD's native format: five videos, one without tracks, one of low resolution."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "xml"
MAIN = "annotations/video_0001.xml"
VIDEO = "video_0001"
OTHERS = (
    "annotations_attributes/video_0001_attributes.xml",
    "annotations_traffic/video_0001_traffic.xml",
    "annotations_vehicle/video_0001_vehicle.xml",
)
OPTIONS = {"appearance": True}
FLAGS = (
    "baby backpack bag_elbow bag_hand bag_left_side bag_right_side bag_shoulder bicycle_motorcycle cap "
    "clothes_below_knee clothes_lower_dark clothes_lower_light clothes_upper_dark clothes_upper_light hood "
    "object phone pose_back pose_front pose_left pose_right stroller_cart sunglasses umbrella"
)
ACTIONS = ("moving_fast", "decelerating", "stopped", "accelerating", "moving_slow")


@dataclass(frozen=True)
class Track:
    """One track: frames it has boxes in, and for pedestrians with behaviour the attributes."""

    label: str
    name: str
    old_id: str
    frames: tuple[int, ...]
    crossing: str = ""
    point: int = -1
    decision: int = -1
    left: float = 900.0
    traits: dict[str, str] = field(default_factory=dict)

    @property
    def behaviour(self) -> bool:
        return self.label == "pedestrian"


def tracks(frames: int) -> dict[str, list[Track]]:
    """The tracks of each video, in file order; the longest has `frames` boxes."""
    full, half = tuple(range(2, 2 + frames)), tuple(range(max(4, frames // 2)))
    gap = tuple(f for f in full if f != full[len(full) // 2])
    annotated = full[-1] - 1
    return {
        "video_0001": [
            Track("pedestrian", "0_1_3b", "pedestrian1", full, "1", annotated, 3, traits={"signalized": "S"}),
            Track("ped", "0_1_1", "ped1", half, left=300.5),
            Track("people", "0_1_4p", "people", half, left=1500.0),
            Track("pedestrian", "0_1_2b", "pedestrian2", half, "-1", -1, 1, traits={"gender": "n/a"}),
        ],
        "video_0002": [
            Track("pedestrian", "0_2_9b", "pedestrian1", gap, "1", -1, -1, traits={"age": "child"}),
            Track("pedestrian", "0_2_10b", "pedestrian", full, "0", annotated, 2, left=200.0),
        ],
        "video_0003": [],
        "video_0004": [
            Track("pedestrian", "0_4_11b", "pedestrian", full[:3], "1", -1, 4, traits={"num_lanes": "4"}),
            Track("ped", "0_4_12", "ped1", half),
        ],
        "video_0005": [Track("ped", "0_5_13", "ped1", half), Track("ped", "0_5_14", "ped2", full)],
    }


def make(root: Path, *, frames: int = 12, appearance: bool = True) -> dict[str, Any]:
    """Write the repository under `root` and say what a reader must find in it."""
    for video, held in tracks(frames).items():
        length = frames + 4
        _write(root, f"annotations/{video}.xml", annotations(video, length, held))
        _write(root, f"annotations_attributes/{video}_attributes.xml", _attributes(held))
        _write(root, f"annotations_traffic/{video}_traffic.xml", _traffic(video, length))
        _write(root, f"annotations_vehicle/{video}_vehicle.xml", _vehicle(length))
        if appearance:
            _write(root, f"annotations_appearance/{video}_appearance.xml", _appearance(held))
    for subset, train in (("all_videos", 3), ("default", 2), ("high_visibility", 2)):
        names = sorted(tracks(frames))
        split = {"train": names[:train], "val": names[3:4], "test": names[4:]}
        for name, videos in split.items():
            _write(root, f"split_ids/{subset}/{name}.txt", "".join(f"{video}\n" for video in videos))
    return _facts(frames)


def _facts(frames: int) -> dict[str, Any]:
    held = tracks(frames)
    every = [track for video in held.values() for track in video]
    return {
        "videos": sorted(held),
        "n_frames": frames + 4,
        "boxes": sum(len(track.frames) for track in every),
        "tubes": {video: sorted(track.name for track in listed) for video, listed in held.items()},
        "tracks": {track.name: track for track in every},
        "behaviour": sorted(track.name for track in every if track.behaviour),
        "default/train": ["video_0001", "video_0002"],
    }


def annotations(video: str, length: int, held: list[Track]) -> str:
    """The text of one annotation file, on one line as published."""
    small = video == "video_0005"
    size = (1280, 720) if small else (1920, 1080)
    head = (
        f"<annotations><version>1.1</version><meta><task><id>1</id><name>{video}</name><size>{length}</size>"
        "<mode>interpolation</mode><bugtracker /><labels><label><name>pedestrian</name><attributes>"
        "<attribute>@text=id:</attribute></attributes></label></labels>"
        f"<original_size><width>{size[0]}</width><height>{size[1]}</height></original_size>"
        "<video_attributes><time_of_day>daytime</time_of_day>"
        f"<weather>{'n/a' if small else 'clear'}</weather><location>street</location></video_attributes>"
        "</task><dumped>2019-02-18 20:02:59.930671+03:00</dumped></meta>"
    )
    body = "".join(
        f'<track label="{track.label}">{"".join(box(track, frame) for frame in track.frames)}</track>'
        for track in held
    )
    return f"{head}{body}</annotations>"


def box(track: Track, frame: int) -> str:
    """One box: it moves a quarter of a pixel a frame; the tags change from frame to frame."""
    left, top = track.left + frame * 0.25, 500.0 + frame
    hidden = ("none", "part", "full")[frame % 3]
    values = {"id": track.name, "old_id": track.old_id}
    if track.behaviour:
        values |= {
            "look": ("not-looking", "looking")[frame % 2],
            "reaction": ("__undefined__", "clear_path", "speed_up", "slow_down")[frame % 4],
            "action": ("standing", "walking")[frame > 3],
            "cross": ("not-crossing", "crossing")[track.crossing == "1" and frame > 6],
            "hand_gesture": ("__undefined__", "greet", "yield", "rightofway", "other")[frame % 5],
        }
    values["occlusion"] = hidden
    if track.behaviour:
        values["nod"] = ("__undefined__", "nodding")[frame % 7 == 0]
    return (
        f'<box frame="{frame}" keyframe="1" occluded="{int(hidden != "none")}" outside="0" '
        f'xbr="{left + 40.0}" xtl="{left}" ybr="{top + 120.0}" ytl="{top}">'
        + "".join(f'<attribute name="{name}">{value}</attribute>' for name, value in values.items())
        + "</box>"
    )


def _attributes(held: list[Track]) -> str:
    rows = "".join(_pedestrian(track) for track in held if track.behaviour)
    return f"<ped_attributes>{rows}</ped_attributes>" if rows else "<ped_attributes />"


def _pedestrian(track: Track) -> str:
    values = {
        "age": "adult",
        "crossing": track.crossing,
        "crossing_point": str(track.point),
        "decision_point": str(track.decision),
        "designated": "D",
        "gender": "female",
        "group_size": "2",
        "id": track.name,
        "intersection": "yes",
        "motion_direction": "LAT",
        "num_lanes": "2",
        "old_id": track.old_id,
        "signalized": "NS",
        "traffic_direction": "TW",
        **track.traits,
    }
    return "<pedestrian " + " ".join(f'{name}="{value}"' for name, value in values.items()) + " />"


def _traffic(video: str, length: int) -> str:
    light = ("n/a", "red", "green")
    rows = "".join(
        f'<frame id="{f}" ped_crossing="{int(f > 4)}" ped_sign="0" stop_sign="{f % 2}" '
        f'traffic_light="{light[f % 3]}" />'
        for f in range(length)
    )
    road = "parking_lot" if video == "video_0004" else "street"
    return f"<traffic_scene><road_type>{road}</road_type>{rows}</traffic_scene>"


def _vehicle(length: int) -> str:
    rows = "".join(f'<frame action="{ACTIONS[f % 5]}" id="{f}" />' for f in range(length))
    return f"<vehicle_info>{rows}</vehicle_info>"


def _appearance(held: list[Track]) -> str:
    """Flags of pedestrians and bystanders; ids of bystanders are off by one, as in the published files."""
    seen = [track for track in held if track.label != "people"]
    rows = "".join(
        f'<track id="{_shifted(track)}" label="{track.label}" old_id="{track.old_id}">'
        + "".join(_flags(frame) for frame in track.frames)
        + "</track>"
        for track in seen
    )
    return f"<pedestrian_appearance>{rows}</pedestrian_appearance>"


def _shifted(track: Track) -> str:
    start, _, number = track.name.rpartition("_")
    return track.name if track.behaviour else f"{start}_{int(number) + 1}"


def _flags(frame: int) -> str:
    values = dict.fromkeys(FLAGS.split(), "0") | {"pose_front": str(frame % 2), "frame": str(frame)}
    return "<box " + " ".join(f'{name}="{values[name]}"' for name in sorted(values)) + " />"


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
