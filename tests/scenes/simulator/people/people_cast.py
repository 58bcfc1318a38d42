"""People of one's choice for tests of bodies and joints."""

import numpy as np

from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.people import PEOPLE_MODELS

SIZES = {model.name: model.size_m for model in PEOPLE_MODELS}
MACHINES = {
    "bicycle": ("Cyc", (1.75, 0.6, 1.83)),
    "cargo_bike": ("Cyc", (2.45, 0.72, 1.92)),
    "motorbike": ("Mobike", (2.1, 0.78, 1.76)),
    "scooter": ("Mobike", (1.85, 0.7, 1.76)),
}


def person(model="adult_a", pose=Pose.STAND, gait=None, **more):
    """Somebody at the origin who looks along x, by default through one cycle of a pose in 24 frames."""
    kind, size = MACHINES.get(model, ("Ped", SIZES.get(model, (0.5, 0.5, 1.75))))
    gait = np.linspace(0, 2 * np.pi, 24, endpoint=False) if gait is None else np.asarray(gait, dtype=float)
    zeros = np.zeros(len(gait))
    poses = np.broadcast_to(np.asarray(pose, dtype=np.uint8), zeros.shape)
    rows = {
        "position": np.zeros((len(gait), 3)),
        "heading": zeros,
        "speed": zeros + more.pop("speed", 0.0),
        "gaze": zeros + more.pop("gaze", 0.0),
    }
    given = {"number": 0, "look": 1, "first": 0, **rows, **more}
    return Actor(
        kind=kind,
        model=model,
        size_m=size,
        lamps=np.zeros(len(gait), dtype=np.uint8),
        pose=poses,
        gait=gait,
        lane=np.full(len(gait), -1),
        **given,
    )
