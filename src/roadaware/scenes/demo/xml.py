"""The demo's videos in the native files of JAAD."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadaware.scenes.demo.walkers import ACTIONS, HEIGHT_PX, N_FRAMES, WIDTH_PX, Drive, Walker

_HEAD = (
    "<annotations><version>1.1</version><meta><task><id>{index}</id><name>{video}</name>"
    "<size>{frames}</size><mode>interpolation</mode><source>data/{video}.mp4</source>"
    "<original_size><width>{width}</width><height>{height}</height></original_size>"
    "<video_attributes><time_of_day>daytime</time_of_day><weather>{weather}</weather>"
    "<location>street</location></video_attributes></task></meta>"
)
_BOX = (
    '<box frame="{frame}" keyframe="1" occluded="0" outside="0" xbr="{x2}.0" xtl="{x1}.0" '
    'ybr="{y2}.0" ytl="{y1}.0">{attributes}</box>'
)


def boxes_of(index: int, video: str, walkers: Iterable[Walker]) -> str:
    """The boxes and behaviour tags of one video (`annotations/`)."""
    weather = ("clear", "cloudy", "rain")[index % 3]
    head = _HEAD.format(
        index=index, video=video, frames=N_FRAMES, width=WIDTH_PX, height=HEIGHT_PX, weather=weather
    )
    return head + "".join(_track(walker, k) for k, walker in enumerate(walkers, 1)) + "</annotations>"


def attributes_of(walkers: Iterable[Walker]) -> str:
    """What is known of each pedestrian with behaviour (`annotations_attributes/`)."""
    rows = []
    for number, walker in enumerate(walkers, 1):
        if walker.behaviour:
            own = {
                "id": walker.name,
                "old_id": f"pedestrian{number}",
                "crossing": str(walker.crossing),
                "crossing_point": str(walker.crossing_point),
                "decision_point": str(max(walker.crossing_point - 15, int(walker.frames[0]))),
                **walker.attributes,
            }
            rows.append("<pedestrian " + " ".join(f'{k}="{v}"' for k, v in sorted(own.items())) + " />")
    return "<ped_attributes>" + "".join(rows) + "</ped_attributes>"


def traffic_of(index: int) -> str:
    """Signs and lights of each frame (`annotations_traffic/`)."""
    crossing, light = int(index % 4 == 0), ("n/a", "n/a", "green", "red")[index % 4]
    frames = "".join(
        f'<frame id="{k}" ped_crossing="{crossing}" ped_sign="{crossing}" stop_sign="0" '
        f'traffic_light="{light}" />'
        for k in range(N_FRAMES)
    )
    return f"<traffic_scene><road_type>street</road_type>{frames}</traffic_scene>"


def vehicle_of(car: Drive) -> str:
    """What the car does in each frame (`annotations_vehicle/`)."""
    actions: Sequence[str] = [ACTIONS[code] for code in car.actions]
    frames = "".join(f'<frame action="{action}" id="{k}" />' for k, action in enumerate(actions))
    return f"<vehicle_info>{frames}</vehicle_info>"


def _track(walker: Walker, number: int) -> str:
    label = "pedestrian" if walker.behaviour else "ped"
    boxes = []
    for k, frame in enumerate(walker.frames.tolist()):
        x1, y1, x2, y2 = walker.boxes[k].tolist()
        values = {"id": walker.name, "old_id": f"{label}{number}", "occlusion": "none"}
        if walker.behaviour:
            values |= _behaviour(walker, k)
        texts = "".join(f'<attribute name="{name}">{value}</attribute>' for name, value in values.items())
        boxes.append(_BOX.format(frame=frame, x1=x1, y1=y1, x2=x2, y2=y2, attributes=texts))
    return f'<track label="{label}">{"".join(boxes)}</track>'


def _behaviour(walker: Walker, k: int) -> dict[str, str]:
    return {
        "look": "looking" if walker.looking[k] else "not-looking",
        "reaction": "__undefined__",
        "action": "walking" if walker.walking[k] else "standing",
        "cross": "crossing" if walker.crosses[k] else "not-crossing",
        "hand_gesture": "__undefined__",
        "nod": "__undefined__",
    }
