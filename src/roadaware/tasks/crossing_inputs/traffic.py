"""State of the traffic: crossings, signs and lights in sight, and the kind of road."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.tasks.crossing_inputs.observations import Observations, has_values, one_hot

NEEDS = (
    "frames.ped_crossing, ped_sign, stop_sign (JAAD, PIE) and traffic_light (also the simulator), "
    "videos.road_type (JAAD); at least one of them"
)
SIGHTS = ("ped_crossing", "ped_sign", "stop_sign")
LIGHTS = ("n/a", "red", "yellow", "green")
ROADS = ("street", "parking_lot", "garage")
COLUMNS = (*SIGHTS, *(f"light_{light}" for light in LIGHTS), *(f"road_{road}" for road in ROADS))


def encode_traffic(seen: Observations) -> Floats:
    """(n, t, 10) three flags, one-hot of the light and one-hot of the road, as `COLUMNS` lists them.

    A flag that is unknown is NaN; a one-hot is zeros alone where it is. `light_n/a` says that no light is in
    sight. The attributes of a pedestrian's crossing (signal, lanes) are left out: JAAD has them only for
    pedestrians with behaviour tags, so that they would leak the label.

    Raises:
        InputError: if frames and videos lack it.
    """
    frames, videos = seen.scenes.frames, seen.scenes.videos
    told = [c for c in (*SIGHTS, "traffic_light") if has_values(frames, c)]
    if not told and not has_values(videos, "road_type"):
        raise InputError(f"traffic reads {NEEDS}; these scenes tell none")
    flags = np.stack([seen.at_frames(column) for column in SIGHTS], axis=-1)
    light = one_hot(seen.at_frames("traffic_light", LIGHTS), len(LIGHTS))
    road = one_hot(seen.at_videos("road_type", ROADS), len(ROADS))
    roads = np.broadcast_to(road[:, None], (*seen.frame.shape, len(ROADS)))
    return np.concatenate([flags, light, roads], axis=-1)


FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {"traffic": (encode_traffic, NEEDS)}
"""Name to what makes it and the tables it reads."""
