"""A small dataset in the native format of JAAD, drawn from a seed, with defects planted that an audit
must find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

WIDTH_PX, HEIGHT_PX = 1920, 1080
FPS = 30.0
N_FRAMES = 240
ACTIONS = ("stopped", "moving_slow", "moving_fast", "decelerating", "accelerating")

_FOCAL_PX, _CAMERA_M, _BODY_M = 1250.0, 1.4, 1.72
_CURB_M = 3.6
_SPEEDS = {"yield": (6.5, 0.0), "cruise": (5.0, 5.5), "crawl": (1.5, 1.8)}


@dataclass(frozen=True)
class Drive:
    """Actions of the vehicle in one video.

    Args:
        actions: (N_FRAMES,) index in ACTIONS.
        travelled_m: (N_FRAMES,) way since the first frame.
        yields: whether it stops for somebody.
    """

    actions: npt.NDArray[np.int64]
    travelled_m: Floats
    yields: bool


@dataclass
class Walker:
    """One pedestrian's track; defects are planted by changing it.

    Args:
        name: identifier in the grammar of JAAD; a trailing b says that behaviour is annotated.
        frames: (n,) where the boxes are.
        boxes: (n, 4) x1, y1, x2, y2 in whole pixels.
        crosses: (n,) whether the pedestrian is on the road, crossing.
        walking: (n,) whether the pedestrian walks.
        looking: (n,) whether the pedestrian looks at the traffic.
        crossing: the attribute: 1 crosses, 0 does not, -1 has no interest in crossing.
        crossing_point: frame at which the crossing starts, or -1.
        attributes: what else is annotated.
    """

    name: str
    frames: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.int64]
    crosses: npt.NDArray[np.bool_]
    walking: npt.NDArray[np.bool_]
    looking: npt.NDArray[np.bool_]
    crossing: int
    crossing_point: int
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def behaviour(self) -> bool:
        """Whether behaviour is annotated."""
        return self.name.endswith("b")


def simulate_drive(rng: np.random.Generator) -> Drive:
    """A car that yields, cruises or crawls."""
    kind = str(rng.choice(["yield", "cruise", "crawl"], p=[0.4, 0.4, 0.2]))
    first, last = _SPEEDS[kind]
    if kind == "yield":
        stop = int(rng.integers(120, 180))
        speed = np.concatenate([np.linspace(first, 0.3, stop), np.full(N_FRAMES - stop, last)])
        actions = np.where(np.arange(N_FRAMES) < stop, ACTIONS.index("decelerating"), 0)
    else:
        speed = np.linspace(first, last, N_FRAMES) + rng.normal(0, 0.05, N_FRAMES)
        steady = "moving_fast" if kind == "cruise" else "moving_slow"
        actions = np.full(N_FRAMES, ACTIONS.index(steady))
        actions[: int(rng.integers(20, 60))] = ACTIONS.index("accelerating")
    return Drive(actions.astype(np.int64), np.cumsum(speed) / FPS, kind == "yield")


def simulate_crosser(
    rng: np.random.Generator, name: str, car: Drive, *, start_after: int | None = None
) -> Walker:
    """A pedestrian who comes to the curb, waits, and crosses.

    Args:
        rng: where chance comes from.
        name: identifier.
        car: what the car does.
        start_after: frame of the track at which the crossing starts; drawn where None.
    """
    n = int(rng.integers(170, 215))
    begin = int(rng.integers(0, N_FRAMES - n + 1))
    at = int(rng.integers(112, n - 25)) if start_after is None else start_after
    side = float(rng.choice([-1.0, 1.0]))
    arrive = max(1, at - int(rng.integers(5, 70)))
    approach = np.interp(np.arange(n), [0, arrive], [rng.uniform(1.0, 3.0), 0.3])
    onto = np.maximum(0.0, np.arange(n) - at) / FPS * rng.uniform(1.1, 1.6)
    lateral = side * (_CURB_M + approach - onto)
    depth = _depth(rng, car, begin, n, along_m_s=rng.normal(0, 0.15))
    steps = np.arange(n)
    walking = (steps < arrive) | (steps >= at)
    looking = (steps > arrive - 20) & (steps < at + 15)
    return _seen(
        rng, name, begin, lateral, depth, steps >= at, walking, looking, crossing=1, point=begin + at
    )


def simulate_passer_by(rng: np.random.Generator, name: str, car: Drive) -> Walker:
    """A pedestrian who walks along the road or stands, and does not cross."""
    n = int(rng.integers(110, 200))
    begin = int(rng.integers(0, N_FRAMES - n + 1))
    side = float(rng.choice([-1.0, 1.0]))
    stands = bool(rng.random() < 0.3)
    away = _CURB_M + rng.gamma(2.0, 1.3) + np.arange(n) / FPS * rng.normal(0.05, 0.18)
    along = 0.0 if stands else float(rng.choice([-1.3, 1.3]) + rng.normal(0, 0.2))
    depth = _depth(rng, car, begin, n, along_m_s=along)
    steps = np.arange(n)
    walking = np.full(n, not stands)
    never = np.zeros(n, dtype=bool)
    looking = (steps > n // 3) & (steps < n // 2) if rng.random() < 0.4 else never
    crossing = 0 if rng.random() < 0.5 else -1
    return _seen(rng, name, begin, side * away, depth, never, walking, looking, crossing=crossing, point=-1)


def _depth(rng: np.random.Generator, car: Drive, begin: int, n: int, *, along_m_s: float) -> Floats:
    """(n,) distance from the camera: near enough to see, never behind it."""
    way = car.travelled_m[begin : begin + n] - car.travelled_m[begin]
    walked = np.arange(n) / FPS * along_m_s
    start = rng.uniform(7.0, 16.0) + max(float(np.max(way - walked)), 0.0)
    return np.asarray(start - way + walked, dtype=np.float64)


def _seen(
    rng: np.random.Generator,
    name: str,
    begin: int,
    lateral_m: Floats,
    depth_m: Floats,
    crosses: npt.NDArray[np.bool_],
    walking: npt.NDArray[np.bool_],
    looking: npt.NDArray[np.bool_],
    *,
    crossing: int,
    point: int,
) -> Walker:
    """Project, shake a little as annotators do, and keep the part inside the image."""
    sway = np.cumsum(rng.normal(0, 0.4, len(depth_m)))
    centre = WIDTH_PX / 2 + _FOCAL_PX * lateral_m / depth_m + sway
    foot = HEIGHT_PX / 2 + _FOCAL_PX * _CAMERA_M / depth_m + rng.normal(0, 0.6, len(depth_m))
    body = _BODY_M * rng.uniform(0.9, 1.08) * _FOCAL_PX / depth_m
    width = body * (0.34 + 0.05 * walking * np.sin(np.arange(len(depth_m)) * 0.35))
    corners = np.stack([centre - width / 2, foot - body, centre + width / 2, foot], axis=1)
    limits = np.array([WIDTH_PX - 1, HEIGHT_PX - 1, WIDTH_PX - 1, HEIGHT_PX - 1])
    boxes = np.clip(np.rint(corners), 0, limits).astype(np.int64)
    outside = (boxes[:, 2] - boxes[:, 0] < 4) | (boxes[:, 3] - boxes[:, 1] < 8)
    n = int(np.argmax(outside)) if outside.any() else len(boxes)
    frames = np.arange(begin, begin + n)
    if point >= begin + n:
        crossing, point = 0, -1
    return Walker(
        name, frames, boxes[:n], crosses[:n], walking[:n], looking[:n], crossing, point, _attributes(rng)
    )


def _attributes(rng: np.random.Generator) -> dict[str, str]:
    """What the annotators noted about the person and the place."""
    return {
        "age": str(rng.choice(["child", "young", "adult", "senior"], p=[0.05, 0.2, 0.65, 0.1])),
        "gender": str(rng.choice(["female", "male"])),
        "group_size": str(rng.integers(1, 4)),
        "num_lanes": str(rng.choice([2, 4])),
        "intersection": str(rng.choice(["no", "yes"])),
        "designated": str(rng.choice(["ND", "D"])),
        "signalized": str(rng.choice(["n/a", "NS", "S"])),
        "traffic_direction": str(rng.choice(["OW", "TW"])),
        "motion_direction": str(rng.choice(["LAT", "LONG"])),
    }


# The defects that the demo's audit must find, planted into tracks that are otherwise sound.

Cast = Sequence[tuple[str, Drive, list[Walker]]]

N_WITHOUT_EVENT, N_LATE_EVENT, N_CONTRADICTIONS, N_GAPS = 14, 8, 4, 3
_LATE_FRAMES, _GAP_FRAMES = 55, 3


def add_label_defects(rng: np.random.Generator, cast: Cast) -> dict[str, tuple[str, ...]]:
    """Change some of the walkers; kind of defect to the names of those that have it.

    Args:
        rng: where chance comes from.
        cast: name, car and walkers of each video; the lists are changed in place.
    """
    places = [(video, index) for video, (_, _, walkers) in enumerate(cast) for index in range(len(walkers))]
    order = [places[k] for k in rng.permutation(len(places))]

    def of(video: int, index: int) -> Walker:
        return cast[video][2][index]

    crossers = [place for place in order if of(*place).crossing == 1]
    refusers = [place for place in order if of(*place).crossing == 0 and of(*place).behaviour]
    others = [place for place in order if not of(*place).behaviour]
    planted = {
        "crossing_without_event": crossers[:N_WITHOUT_EVENT],
        "late_event": crossers[N_WITHOUT_EVENT : N_WITHOUT_EVENT + N_LATE_EVENT],
        "attribute_contradiction": refusers[:N_CONTRADICTIONS],
        "track_gap": others[:N_GAPS],
        "duplicated_box": others[N_GAPS : N_GAPS + 1],
        "inverted_box": others[N_GAPS + 1 : N_GAPS + 2],
    }
    for video, index in planted["crossing_without_event"]:
        cast[video][2][index] = _without_event(rng, of(video, index).name, cast[video][1])
    for kind, change in _CHANGES.items():
        for place in planted[kind]:
            change(of(*place))
    return {kind: tuple(sorted(of(*place).name for place in found)) for kind, found in planted.items()}


def _without_event(rng: np.random.Generator, name: str, car: Drive) -> Walker:
    """Somebody who is crossing from the start; where the crossing began is not annotated."""
    while True:
        walker = simulate_crosser(rng, name, car, start_after=5)
        if len(walker.frames) >= 130:
            walker.crossing_point = -1
            return walker


def _late_event(walker: Walker) -> None:
    """The tags say that the crossing began well before the annotated event."""
    walker.crosses |= walker.frames >= walker.crossing_point - _LATE_FRAMES


def _contradict(walker: Walker) -> None:
    """The attribute says that the pedestrian does not cross, the tags that they do."""
    walker.crosses[-40:] = True


def _gap(walker: Walker) -> None:
    """Some frames in the middle have no box."""
    _keep(walker, np.delete(np.arange(len(walker.frames)), slice(60, 60 + _GAP_FRAMES)))


def _duplicate(walker: Walker) -> None:
    """One box stands twice."""
    _keep(walker, np.insert(np.arange(len(walker.frames)), 40, 40))


def _invert(walker: Walker) -> None:
    """The last box has its left edge right of its right edge."""
    walker.boxes[-1] = walker.boxes[-1][[2, 1, 0, 3]]


def _keep(walker: Walker, index: np.ndarray) -> None:
    for name in ("frames", "boxes", "crosses", "walking", "looking"):
        setattr(walker, name, getattr(walker, name)[index])


_CHANGES = {
    "late_event": _late_event,
    "attribute_contradiction": _contradict,
    "track_gap": _gap,
    "duplicated_box": _duplicate,
    "inverted_box": _invert,
}

# The demo's videos in the native files of JAAD.

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


def format_annotations_xml(index: int, video: str, walkers: Iterable[Walker]) -> str:
    """The boxes and behaviour tags of one video (`annotations/`)."""
    weather = ("clear", "cloudy", "rain")[index % 3]
    head = _HEAD.format(
        index=index, video=video, frames=N_FRAMES, width=WIDTH_PX, height=HEIGHT_PX, weather=weather
    )
    return head + "".join(_track(walker, k) for k, walker in enumerate(walkers, 1)) + "</annotations>"


def format_attributes_xml(walkers: Iterable[Walker]) -> str:
    """Attributes of each pedestrian with behaviour (`annotations_attributes/`)."""
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


def format_traffic_xml(index: int) -> str:
    """Signs and lights of each frame (`annotations_traffic/`)."""
    crossing, light = int(index % 4 == 0), ("n/a", "n/a", "green", "red")[index % 4]
    frames = "".join(
        f'<frame id="{k}" ped_crossing="{crossing}" ped_sign="{crossing}" stop_sign="0" '
        f'traffic_light="{light}" />'
        for k in range(N_FRAMES)
    )
    return f"<traffic_scene><road_type>street</road_type>{frames}</traffic_scene>"


def format_vehicle_xml(car: Drive) -> str:
    """Actions of the vehicle in each frame (`annotations_vehicle/`)."""
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
            values |= {
                "look": "looking" if walker.looking[k] else "not-looking",
                "reaction": "__undefined__",
                "action": "walking" if walker.walking[k] else "standing",
                "cross": "crossing" if walker.crosses[k] else "not-crossing",
                "hand_gesture": "__undefined__",
                "nod": "__undefined__",
            }
        texts = "".join(f'<attribute name="{name}">{value}</attribute>' for name, value in values.items())
        boxes.append(_BOX.format(frame=frame, x1=x1, y1=y1, x2=x2, y2=y2, attributes=texts))
    return f'<track label="{label}">{"".join(boxes)}</track>'
