"""The words of the ground truth: ROAD's labels, PIE's and JAAD's attributes, CODA's classes, the crowd's actions."""

from __future__ import annotations

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, list_label_names
from roadaware.demo_data import road
from roadaware.simulator.actors import AGENTS, AV_ACTIONS, OBJECTS, Pose

LICENCE = "made up by roadaware; free of terms"
ACTIONS = (
    *("Red", "Amber", "Green", "Black", "MovAway", "MovTow", "Mov", "Rev", "Brake", "Stop", "IncatLft"),
    *("IncatRht", "HazLit", "TurLft", "TurRht", "MovRht", "MovLft", "Ovtak", "Wait2X", "XingFmLft"),
    *("XingFmRht", "Xing", "PushObj"),
)
"""The 23 actions of ROAD's table 12."""
LOCATIONS = (
    *("VehLane", "OutgoLane", "OutgoCycLane", "OutgoBusLane", "IncomLane", "IncomCycLane", "IncomBusLane"),
    *("Pav", "LftPav", "RhtPav", "Jun", "xing", "BusStop", "parking", "RhtParking"),
)
"""The 15 locations of ROAD's table 13; `parking` is that on the left of the own vehicle."""
LIGHTS = ("Red", "Amber", "Green", "Black")
"""What a traffic light shows, by `actors.Light`."""

OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
EVENT_SOURCE = ("annotated", "fallback", "none")
TRACK_LABEL = ("pedestrian", "vehicle", "traffic_light", "object")
WALKING = ("standing", "walking")
LOOK = ("not-looking", "looking")
AGES = ("child", "young", "adult", "senior")
SIGNALIZED = ("n/a", "C", "S", "CS")
TRAFFIC_LIGHT = ("n/a", "red", "yellow", "green")
STAGED_POSES = tuple(pose.name.lower() for pose in Pose)
"""What bodies do in staged crowds."""
POSES = STAGED_POSES[: Pose.AIM]
"""What they do elsewhere; tables that are written hold this list."""
CORNER = tuple(OBJECTS)
CORNER_SUPER = tuple(dict.fromkeys(OBJECTS.values()))

CROWD_ACTIONS: dict[Pose, str] = {
    Pose.WALK: "walking",
    Pose.RUN: "running/escaping",
    Pose.PUSH_OBJECT: "carrying",
    Pose.WAVE: "waving hands",
    Pose.PUNCH: "punching",
    Pose.SHOVE: "pushing",
    Pose.LIE: "injured",
    Pose.FILM: "recording",
    Pose.THROW: "throwing object",
    Pose.HOLD_FLAG: "holding flag",
    Pose.HOLD_SIGN: "holding signage",
    Pose.KNEEL: "kneeling",
    Pose.HUG: "hugging",
    Pose.ARGUE: "arguing",
    Pose.SHOUT: "shouting",
    Pose.PHONE: "speaking/talking",
    Pose.CLAP: "clapping",
    Pose.FLINCH: "retreating",
    Pose.KICK: "fighting",
    Pose.THREATEN: "holding weapon",
    Pose.DANCE: "dancing",
    Pose.HANDS_UP: "raising hands",
}
"""The official action that a pose shows; standing alone is none, unless they watch somebody."""
SOUND_WORDS = {
    "horn": "honking",
    "siren": "siren (police)",
    "engine": "truck engine",
    "crash": "crashing",
    "voice": "speaking",
    "voices": "speaking",
    "clap": "clapping",
    "claps": "clapping",
    "chant": "chanting/cheering",
    "cheer": "chanting/cheering",
    "cry": "crying",
    "bang": "explosion",
    "glass": "shattering",
}
"""What the simulator calls sounds in the official words, where its own is none of them."""

ROAD_VOCABULARIES: dict[str, tuple[str, ...]] = {
    "agentness": road.AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS,
    "location": LOCATIONS,
    "duplex": road.DUPLEXES,
    "event": road.EVENTS,
    "av_action": AV_ACTIONS,
}
CROWD_VOCABULARIES: dict[str, tuple[str, ...]] = {
    "agentness": road.AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS_OFFICIAL,
    "av_action": AV_ACTIONS,
    "predicate": list_label_names("interaction"),
}
COMPOSITES: dict[str, tuple[str, ...]] = dict(road.COMPOSITES)


def list_composite_parts(kind: str) -> list[list[int]]:
    """For each label of a composite kind the indices of its parts.

    >>> list_composite_parts("event")[0]  # Bus-MovTow-IncomLane
    [6, 5, 4]
    """
    parts = [ROAD_VOCABULARIES[part] for part in COMPOSITES[kind]]
    return [
        [part.index(word) for part, word in zip(parts, name.split("-"), strict=True)]
        for name in ROAD_VOCABULARIES[kind]
    ]
