"""Each action and location of ROAD in a situation made for it, with traffic on the left and on the right."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "data"))

from small_street import BUS, CYCLE, FRAMES, PARKING, PAVEMENT, VEHICLE, assumed, mover, situation

from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import Lamp, Pose
from roadaware.simulator.truth import build_scene_tables
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS

SWAPPED = {"Lft": "Rht", "Rht": "Lft", "parking": "RhtParking", "RhtParking": "parking"}


@dataclass(frozen=True)
class Case:
    """Where traffic keeps left; x is ahead of the own vehicle, y to its left."""

    name: str
    kind: str
    place: tuple[float, float]
    heading: float
    speed: Any
    actions: str
    location: str
    more: dict[str, Any] = field(default_factory=dict)


def flashing(lamp: int) -> list[int]:
    return [int(lamp) if frame // 5 % 2 == 0 else 0 for frame in range(FRAMES)]


SLOWING = np.linspace(8.0, 4.0, FRAMES)
LEFT, RIGHT, HAZARD = (flashing(lamp) for lamp in (Lamp.LEFT, Lamp.RIGHT, Lamp.LEFT | Lamp.RIGHT))
ON = {"facts": {"crossing": 1}}
CASES = (
    Case("oncoming", "Car", (42, -VEHICLE), 180, 6.0, "MovTow", "IncomLane"),
    Case("leading", "Car", (25, VEHICLE), 0, 6.0, "MovAway", "VehLane"),
    Case("standing ahead", "MedVeh", (25, VEHICLE), 0, 0.0, "Stop", "VehLane"),
    Case("beyond the junction", "LarVeh", (72, VEHICLE), 0, 2.0, "MovAway", "VehLane"),
    Case("bus lane", "Bus", (22, BUS), 0, 5.0, "MovAway", "OutgoBusLane"),
    Case("bus lane of the others", "Bus", (42, -BUS), 180, 5.0, "MovTow", "IncomBusLane"),
    Case("cycle lane", "Cyc", (25, CYCLE), 0, 4.0, "MovAway", "OutgoCycLane", {"pose": Pose.RIDE}),
    Case("cycle lane of the others", "Cyc", (40, -CYCLE), 180, 4.0, "MovTow", "IncomCycLane"),
    Case("from a side road", "Car", (59.65, 18), -90, 0.0, "Stop", "IncomLane"),
    Case("into a side road", "Car", (56.35, 14), 90, 3.0, "Mov", "OutgoLane"),
    Case("braking", "Car", (22, VEHICLE), 0, SLOWING, "MovAway Brake", "VehLane", {"lamps": Lamp.BRAKE}),
    Case("standing on the brake", "Car", (22, VEHICLE), 0, 0.0, "Stop", "VehLane", {"lamps": Lamp.BRAKE}),
    Case(
        "brake from ahead", "Car", (49, -VEHICLE), 180, SLOWING, "MovTow", "IncomLane", {"lamps": Lamp.BRAKE}
    ),
    Case("reversing", "Car", (35, VEHICLE), 0, -1.0, "Rev", "VehLane"),
    Case("left lamps", "Car", (25, VEHICLE), 0, 5.0, "MovAway IncatLft", "VehLane", {"lamps": LEFT}),
    Case("right lamps", "Car", (25, VEHICLE), 0, 5.0, "MovAway IncatRht", "VehLane", {"lamps": RIGHT}),
    Case("hazard lights", "Car", (25, VEHICLE), 0, 0.0, "Stop HazLit", "VehLane", {"lamps": HAZARD}),
    Case("turning left", "Car", (52, VEHICLE), 20, 3.0, "TurLft", "Jun", {"facts": {"turning": 1}}),
    Case("turning right", "Car", (52, VEHICLE), -20, 3.0, "TurRht", "Jun", {"facts": {"turning": -1}}),
    Case("lane change", "Car", (20, 2.6), 0, 6.0, "MovLft", "VehLane", {"facts": {"shifting": 1}}),
    Case("overtaking", "Mobike", (25, VEHICLE), 0, 6.0, "Ovtak", "VehLane", {"facts": {"overtaking": 1}}),
    Case("through from the left", "Car", (58, 9), -90, 5.0, "XingFmLft", "Jun"),
    Case("through from the right", "EmVeh", (58, -9), 90, 5.0, "XingFmRht", "Jun"),
    Case("at the bus stop", "Bus", (34, 8.5), 0, 0.0, "Stop", "BusStop"),
    Case("parking on the left", "Car", (19.5, PARKING), 0, 0.0, "Stop", "parking", {"frames": 6}),
    Case("parking on the right", "Car", (19.5, -PARKING), 180, 0.0, "Stop", "RhtParking", {"frames": 6}),
    Case("walking along", "Ped", (42, PAVEMENT), 0, 1.3, "MovAway", "LftPav", {"pose": Pose.WALK}),
    Case("walking towards", "Ped", (42, -PAVEMENT), 180, 1.3, "MovTow", "RhtPav", {"pose": Pose.WALK}),
    Case("waiting for the bus", "Ped", (32, PAVEMENT), -90, 0.0, "Stop", "BusStop"),
    Case("waiting to cross", "Ped", (46, 10.9), -90, 0.0, "Wait2X", "LftPav", {"facts": {"waiting": 1}}),
    Case("on the zebra", "Ped", (45, 6), -90, 1.4, "XingFmLft", "xing", ON),
    Case("from the right", "Ped", (30, -2.9), 90, 0.9, "XingFmRht", "IncomLane", ON),
    Case("over a side road", "Ped", (58.4, 22), 0, 1.1, "Xing", "IncomLane", ON),
    Case("up a side road", "Ped", (53.4, 20), 90, 1.2, "Mov", "Pav"),
    Case("trolley", "Ped", (42, -PAVEMENT), 180, 1.0, "MovTow PushObj", "RhtPav", {"facts": {"pushing": 1}}),
)


def mirrored(case: Case) -> Case:
    """The same on the other side."""
    more = dict(case.more)
    turned = {int(Lamp.LEFT): int(Lamp.RIGHT), int(Lamp.RIGHT): int(Lamp.LEFT)}
    if isinstance(more.get("lamps"), list):
        more["lamps"] = [turned.get(lamp, lamp) for lamp in more["lamps"]]
    facts = more.get("facts", {})
    more["facts"] = {name: -v if name in ("turning", "shifting") else v for name, v in facts.items()}
    actions = " ".join(word[:-3] + SWAPPED.get(word[-3:], word[-3:]) for word in case.actions.split())
    location = SWAPPED.get(
        case.location, SWAPPED.get(case.location[:3], case.location[:3]) + case.location[3:]
    )
    place = (case.place[0], -case.place[1])
    return replace(case, place=place, heading=-case.heading, actions=actions, location=location, more=more)


def told(scenes: Scenes, kind: str, words: tuple[str, ...]) -> list[set[str]]:
    """What the boxes of each track have; a label that only some of them have shows in brackets."""
    owned = scenes.labels.filter(kind=kind).join(scenes.boxes.select("box", "tube"), on="box")
    length = dict(scenes.boxes.group_by("tube").len().rows())
    found: list[set[str]] = [set() for _ in length]
    for tube, label, count in owned.group_by("tube", "label").len().rows():
        found[tube].add(words[label] if count == length[tube] else f"({words[label]})")
    return found


@pytest.fixture(scope="module", params=["left", "right"])
def sided(request: pytest.FixtureRequest) -> tuple[list[Case], Scenes]:
    """All cases at once, none of which hides another."""
    cases = [each if request.param == "left" else mirrored(each) for each in CASES]
    actors = [mover(n, c.kind, c.place, c.heading, c.speed, **c.more) for n, c in enumerate(cases)]
    episode = situation(*actors, drive_on=request.param)
    return cases, build_scene_tables(episode, assumed(episode))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_actions_and_locations_follow_the_definitions(sided: tuple[list[Case], Scenes], number: int) -> None:
    cases, scenes = sided
    assert scenes.boxes["tube"].value_counts()["count"].min() >= 2
    assert told(scenes, "action", ACTIONS)[number] == set(cases[number].actions.split())
    assert told(scenes, "location", LOCATIONS)[number] == {cases[number].location}


def test_every_action_and_location_has_its_situation() -> None:
    shown = {word for case in (*CASES, *map(mirrored, CASES)) for word in case.actions.split()}
    assert shown == set(ACTIONS) - {"Red", "Amber", "Green", "Black"}
    assert {case.location for case in CASES} == set(LOCATIONS)


def test_a_parked_car_is_not_active_and_has_no_box() -> None:
    parked, moving = (mover(n, "Car", (20 + 9 * n, VEHICLE), 0, 5.0, active=n > 0) for n in (0, 1))
    episode = situation(parked, moving)
    scenes = build_scene_tables(episode, assumed(episode))
    assert scenes.tubes["name"].drop_nulls().to_list() == ["car-0001"]


def test_a_passing_label_does_not_cut_a_tube() -> None:
    speed = np.full(FRAMES, 2.0)
    speed[11] = 0.0
    episode = situation(mover(0, "Car", (25, VEHICLE), 0, speed))
    scenes = build_scene_tables(episode, assumed(episode))
    assert told(scenes, "action", ACTIONS) == [{"MovAway"}]
