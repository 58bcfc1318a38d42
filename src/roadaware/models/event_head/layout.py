"""Input columns of the event head, and the layout of its state."""

from __future__ import annotations

from roadaware.models.object_labels import ROAD_AGENTS

SCALES_S = (0.35, 1.2)
"""Time constants of the two lines through the past of each tube."""
MEMORY_S = (1.5, 5.0)
"""Time constants of what is remembered of its speed and place."""
HEIGHTS_M = (1.7, 1.5, 1.75, 1.6, 2.2, 3.2, 3.4, 2.0, 0.95, 0.95)
"""How high agents are, in the order of `ROAD_AGENTS`; of traffic lights the head alone."""
STANDARD = (1.0, 1.0, 0.6, 0.5, 0.3, 0.1, 0.1, 0.2, 0.0, 0.0)
"""How far each can be trusted to be that high and to stand on the ground, when the horizon is sought."""

# Quantities that lines are drawn through: place, size, and the turns of the camera so far.
U, FOOT, LOG_W, LOG_H, PAN, TILT = range(6)
N_QUANTITIES = 6

# A tube's row of memories.
LAST_S, FIRST_S, COUNT = range(3)
LINES = 3
LINE_WIDTH = 3 + 2 * N_QUANTITIES
MEMORIES = LINES + LINE_WIDTH * len(SCALES_S)
N_MEMORIES = 4 * len(MEMORY_S) + 1
CLASSES = MEMORIES + N_MEMORIES
NOW = CLASSES + len(ROAD_AGENTS)
# What holds now, of its line: place in metres, speeds, shape; read by neighbours too.
(NOW_X, NOW_Z, NOW_VF, NOW_VX, NOW_VF_SLOW, NOW_VX_SLOW, NOW_CLOSING, NOW_CLOSING_SLOW, NOW_U, NOW_BELOW) = (
    range(NOW, NOW + 10)
)
(NOW_LOG_W, NOW_LOG_H, NOW_SIZE_Z, NOW_GROUND_Z, NOW_GAP, NOW_TOUCH) = range(NOW + 10, NOW + 16)
NOW_SLOPES = NOW + 16
N_SLOPES = N_QUANTITIES * len(SCALES_S)
TUBE_WIDTH = NOW_SLOPES + N_SLOPES

# The scene's row of memories.
(TIME, BEGIN, PSI, THETA, A00, A01, A11, B0, B1, HORIZON, HEIGHT, KNOWN) = range(12)
(SPEED, SPEED_SLOW, YAW, YAW_SLOW, TURN, STOPPED, ANY_CLOSING, ANY_PAN) = range(12, 20)
(SPEED_GUESS, LIGHT_MEMORY, CROSS_MEMORY, LIGHT_CLOSING, LIGHT_KNOWN, SPREAD) = range(20, 26)
SCENE_WIDTH = 26

BINS, BIN_M = 15, 2.0
"""Strips of the road along the way of the camera, the middle one below it."""
FLOW, FLOW_WEIGHT, STILL, PEOPLE = range(4)
N_MAPS = 4


def _prefix_names(group: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{group}.{name}" for name in names)


PLACE = _prefix_names(
    "place", "u", "below_horizon", "log_width", "log_height", "aspect", "log_size_depth", "log_ground_depth",
    "x_size", "x_ground", "touch_left", "touch_right", "touch_top", "touch_bottom", "horizon", "height",
)  # fmt: skip
CLASS = _prefix_names(
    "class", *(f"now_{name}" for name in ROAD_AGENTS), *(f"mean_{name}" for name in ROAD_AGENTS)
)
MOTION = _prefix_names(
    "motion", "u_fast", "foot_fast", "width_fast", "height_fast", "u_slow", "foot_slow", "width_slow",
    "height_slow", "closing_fast", "closing_slow", "age", "count", "gap",
)  # fmt: skip
EGO = _prefix_names(
    "ego", "known", "speed", "speed_slow", "gain", "yaw", "yaw_slow", "turn", "stopped", "guess", "pan_fast",
    "pan_slow", "tilt_slow", "vf_fast", "vx_fast", "vf_slow", "vx_slow", "pace_slow", "along", "across",
    "vf_mean_1", "vx_mean_1", "x_mean_1", "pace_mean_1", "vf_mean_5", "vx_mean_5", "x_mean_5", "pace_mean_5",
    "pace_most",
)  # fmt: skip
_MAPS = ("flow", "weight", "still", "people")
_ONE = ("dx", "dz", "dvf", "dvx", "vehicle", "person", "light")
NEAR = _prefix_names(
    "near", *(f"{name}_{k}" for k in (1, 2) for name in _ONE), "corridor_vf", "corridor",
    "left_vf", "right_vf",
    "people", "vehicles", "lights", "light_u", "light_below", "light_height", "light_dz", "crossing",
    "light_memory", "cross_memory", "any_closing", "any_pan", "light_closing",
    *(f"{what}_{where}" for what in _MAPS for where in ("inner", "own", "outer")),
    "flow_left", "flow_right", "still_inside", "still_outside",
)  # fmt: skip
FEATURES = (*PLACE, *CLASS, *MOTION, *EGO, *NEAR)
"""Columns of what is known of a tube in a frame; the word before the dot is the group."""
SCENE_FEATURES = _prefix_names(
    "scene", "known", "speed", "speed_slow", "gain", "yaw", "yaw_slow", "turn", "stopped", "guess",
    "any_closing", "any_pan", "spread", "light_closing", "light_known", "vehicles", "people", "lights",
    "light_u", "light_below", "light_height", "left_vf", "right_vf", "flow_left", "flow_right",
    "corridor_vf", "corridor", "light_memory", "cross_memory", "horizon", "height", "still_left",
    "still_right", "nearest_ahead",
)  # fmt: skip
"""Columns of what is known of the own vehicle in a frame."""
