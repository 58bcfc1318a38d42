"""Write a tiny set in PIE's native format: three videos, six pedestrians, one object of every other kind."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FORMAT = "xml"
MAIN = "annotations/set01/video_0001_annt.xml"
VIDEO = "set01/video_0001"
OTHERS = (
    "annotations_attributes/set01/video_0001_attributes.xml",
    "annotations_vehicle/set01/video_0001_obd.xml",
)
PARTS = ("annotations", "annotations_attributes", "annotations_vehicle")


@dataclass(frozen=True)
class Track:
    """One object: its first frame, how many frames it lasts, its path, and what is said of it."""

    label: str
    name: str
    start: int
    length: int
    corner: tuple[float, float] = (600.0, 500.0)
    size: tuple[float, float] = (40.0, 110.0)
    step: tuple[float, float] = (3.0, 0.5)
    kind: str | None = None
    hidden: tuple[int, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)


def _pedestrian(name: str, start: int, length: int, crossing: str, point: int, **more: str) -> Track:
    attributes = {
        "age": "adult",
        "gender": "female",
        "num_lanes": "2",
        "signalized": "CS",
        "traffic_direction": "TW",
        "intersection": "four-way",
        "exp_start_point": str(start + 1),
        "critical_point": str(start + length // 2),
        "intention_prob": "0.3333333333",
        **more,
    }
    own = {"id": name, "crossing": crossing, "crossing_point": str(point), **attributes}
    hidden = (start + length // 2,) if crossing == "1" else ()
    return Track("pedestrian", name, start, length, hidden=hidden, attributes=own)


def tracks(frames: int) -> dict[str, list[Track]]:
    """The objects of each video; the longest pedestrian lasts `frames` frames."""
    short = max(2, frames // 3)
    return {
        "set01/video_0001": [
            _pedestrian("1_1_7", 3, frames, "1", 3 + frames * 4 // 5, intention_prob="0.8666666667"),
            _pedestrian("1_1_12", 0, short, "-1", short - 1, intersection="midblock", signalized="n/a"),
            Track("vehicle", "1_1_40", 1, short, (300, 600), (200, 140), kind="car"),
            Track("traffic_light", "1_1_3tl", 0, frames, (900, 100), (20, 50), (0, 0), kind="regular"),
            Track("sign", "1_1_5s", 2, short, (1200, 200), (30, 30), (1, 0), kind="ped_blue"),
            Track("crosswalk", "1_1_6c", 0, short, (500, 700), (600, 90), (0, 1)),
            Track("transit_station", "1_1_8ts", 0, 2, (1500, 300), (90, 200), (2, 0)),
        ],
        "set03/video_0001": [
            _pedestrian("3_1_100", 5, frames, "1", 5 + frames * 9 // 10, intention_prob="1"),
            _pedestrian("3_1_9", 4, frames, "0", frames, age="senior", gender="male"),
            _pedestrian("3_1_21", 2, short, "0", short, age="child", signalized="S", num_lanes="4"),
        ],
        "set05/video_0002": [_pedestrian("5_2_2", 0, frames, "1", frames * 4 // 5, signalized="C")],
    }


def make(root: Path, *, frames: int = 12) -> None:
    """Write the three folders under `root`, as PIE's own archives unpack."""
    for video, held in tracks(frames).items():
        n_frames = frames + 10
        _write(root / f"annotations/{video}_annt.xml", _annotations(video, held, n_frames))
        _write(root / f"annotations_attributes/{video}_attributes.xml", _attributes(held))
        _write(root / f"annotations_vehicle/{video}_obd.xml", _obd(n_frames))


def zipped(source: Path, target: Path) -> None:
    """Pack the three folders of `source` as PIE distributes them: one archive each, side by side."""
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        with zipfile.ZipFile(target / f"{part}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted((source / part).rglob("*.xml")):
                archive.write(path, path.relative_to(source).as_posix())


def attributes_only(source: Path, target: Path) -> None:
    """Copy what the repository itself carries: the attributes, without boxes and without the vehicle."""
    shutil.copytree(source / PARTS[1], target / PARTS[1])


def _annotations(video: str, held: list[Track], n_frames: int) -> str:
    name = escape(video.split("/")[1])
    meta = (
        f"<meta><task><id>1</id><name>{name}</name><size>{n_frames}</size><mode>interpolation</mode>"
        "<labels><label><name>pedestrian</name><attributes><attribute>@text=id:</attribute>"
        "<attribute>~select=action:standing,walking</attribute></attributes></label></labels>"
        "<original_size><width>1920</width><height>1080</height></original_size></task></meta>"
    )
    body = "".join(_track(track) for track in held)
    return f"<annotations><version>1.1</version>{meta}{body}</annotations>"


def _track(track: Track) -> str:
    boxes = "".join(_box(track, offset) for offset in range(track.length))
    return f"<track label={quoteattr(track.label)}>{boxes}</track>"


def _box(track: Track, offset: int) -> str:
    frame = track.start + offset
    left = track.corner[0] + track.step[0] * offset
    top = track.corner[1] + track.step[1] * offset
    hidden = int(frame in track.hidden)
    tags = "".join(
        f"<attribute name={quoteattr(name)}>{escape(value)}</attribute>"
        for name, value in _tags(track, offset).items()
    )
    return (
        f'<box frame="{frame}" keyframe="1" occluded="{offset % 2}" outside="{hidden}" '
        f'xbr="{left + track.size[0]}" xtl="{left}" ybr="{top + track.size[1]}" ytl="{top}">{tags}</box>'
    )


def _tags(track: Track, offset: int) -> dict[str, str]:
    if track.label == "pedestrian":
        point = int(track.attributes["crossing_point"])
        crosses = track.attributes["crossing"] == "1" and track.start + offset >= point
        beside = track.attributes["crossing"] == "-1" and offset > 0
        return {
            "id": track.name,
            "occlusion": ("none", "part", "full")[offset % 3],
            "action": "walking" if offset else "standing",
            "look": ("not-looking", "looking")[offset % 2],
            "gesture": "hand_ack" if offset == 1 else "__undefined__",
            "cross": "crossing" if crosses else "crossing-irrelevant" if beside else "not-crossing",
        }
    tags = {"id": track.name}
    if track.kind is not None:
        tags["type"] = track.kind
    if track.label == "traffic_light":
        tags["state"] = ("__undefined__", "red", "yellow", "green")[offset % 4]
    return tags


def _attributes(held: list[Track]) -> str:
    rows = (
        "<pedestrian "
        + " ".join(f"{name}={quoteattr(value)}" for name, value in sorted(track.attributes.items()))
        + " />"
        for track in held
        if track.label == "pedestrian"
    )
    return f"<ped_attributes>{''.join(rows)}</ped_attributes>"


def _obd(n_frames: int) -> str:
    rows = "".join(
        f'<frame id="{frame}" GPS_speed="{20 + frame / 10:.2f}" OBD_speed="{21 - frame / 10:.2f}" '
        f'accX="-0.03" accY="0.94" accZ="0.16" gyroX="0.1" gyroY="-0.2" gyroZ="0.{frame % 10}" '
        f'heading_angle="342.99" latitude="43.6556265" longitude="-79.402457" pitch="0.257" roll="6.2" '
        f'yaw="6.28" />'
        for frame in range(n_frames)
    )
    return f"<vehicle_info>{rows}</vehicle_info>"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
