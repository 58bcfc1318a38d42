"""Motion of the own vehicle: JAAD's five actions, a speed and its change, or all that PIE's sensors give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.tasks.crossing_inputs.observations import Observations, has_values, one_hot

KMH_PER_MPS = 3.6
DYNAMICS = ("speed_mps", "acceleration_mps2", "yaw_rate_radps", "known")
OBD = ("ego_speed_kmh", "acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
CUTOFF_HZ = 5.0
"""Above this, the published filter takes vibrations of the vehicle away."""
_ORDER = 4
_ACTIONS = "frames.vehicle_action (JAAD)"
_SPEED = "frames.ego_speed_kmh (PIE, the simulator)"
_RATE = "videos.fps"


def encode_action(seen: Observations) -> Floats:
    """(n, t, 5) one-hot of what the vehicle does, in the order of `VEHICLE_ACTIONS`; zeros where unknown.

    Raises:
        InputError: if the frames lack it.
    """
    return one_hot(encode_action_code(seen)[..., 0], len(VEHICLE_ACTIONS))


def encode_action_code(seen: Observations) -> Floats:
    """(n, t, 1) place of what the vehicle does in `VEHICLE_ACTIONS`, NaN where unknown.

    Raises:
        InputError: if the frames lack it.

    Source: Kotseruba et al., WACV 2021, whose code puts this number in the place of a speed.
    """
    _ensure_column(seen, "vehicle_action", "ego:action and ego:code", _ACTIONS)
    return seen.at_frames("vehicle_action", VEHICLE_ACTIONS)[..., None]


def get_speed(seen: Observations) -> Floats:
    """(n, t, 1) speed in km/h as the table has it, NaN where unknown.

    Raises:
        InputError: if the frames lack it.
    """
    _ensure_column(seen, "ego_speed_kmh", "ego:speed", _SPEED)
    return seen.at_frames("ego_speed_kmh")[..., None]


def compute_dynamics(seen: Observations) -> Floats:
    """(n, t, 4) speed in m/s, acceleration in m/s^2, yaw rate in rad/s, and 1 where the speed is known.

    The acceleration is the table's; where that has none it is the change of speed since the observed frame
    before, and NaN at the first observed frame and behind the end of a tube. The yaw rate is NaN where no
    `ego_yaw_rate_radps` says it: the unit of PIE's gyroscope is not known (`ego:obd` gives it as it is).

    Raises:
        InputError: if the frames lack the speed, or a speed is known and the frame rate is not.
    """
    _ensure_column(seen, "ego_speed_kmh", "ego:dynamics", _SPEED)
    speed_mps = seen.at_frames("ego_speed_kmh") / KMH_PER_MPS
    told = seen.at_frames("ego_acceleration_mps2")
    change = np.diff(speed_mps, axis=1, prepend=np.nan) / (seen.steps_frames / _rate(seen, told)[:, None])
    acceleration = np.where(np.isnan(told), change, told)
    known = (~np.isnan(speed_mps)).astype(np.float64)
    return np.stack([speed_mps, acceleration, seen.at_frames("ego_yaw_rate_radps"), known], axis=-1)


def get_obd(seen: Observations) -> Floats:
    """(n, t, 7) speed in km/h, acceleration and angular velocity on three axes as PIE's sensor gives them.

    NaN where unknown.

    Raises:
        InputError: if the frames lack one of these columns.
    """
    for column in OBD:
        _ensure_column(seen, column, "ego:obd and ego:filtered", f"frames.{column} (PIE)")
    return np.stack([seen.at_frames(column) for column in OBD], axis=-1)


def filter_obd(seen: Observations) -> Floats:
    """(n, t, 7) as `get_obd`, without what swings faster than 5 Hz: Butterworth of order 4, forth and back.

    The published code filters observation and prediction together, so that the future shines through; here
    the observation is filtered by itself. A sample with an unknown number in a column has all of it NaN.

    Raises:
        InputError: if the frames lack a column, or the frame rate is unknown or too low for the filter.

    Source: Rasouli and Kotseruba, IV 2024.
    """
    from scipy.signal import butter, filtfilt  # a second and more, and few predictors read this

    raw, rates = get_obd(seen), _rate(seen, np.full(seen.frame.shape, np.nan))
    made = np.full(raw.shape, np.nan)
    for rate in np.unique(rates):
        if rate <= 2 * CUTOFF_HZ:
            raise InputError(
                f"ego:filtered needs more than {2 * CUTOFF_HZ:g} frames per second, not {rate:g}"
            )
        mine = rates == rate
        taps = butter(_ORDER, CUTOFF_HZ, fs=rate)
        # The usual padding, and less for observations that are shorter than it.
        made[mine] = filtfilt(*taps, raw[mine], axis=1, padlen=min(raw.shape[1] - 1, 3 * (_ORDER + 1)))
    return made


FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {
    "ego:action": (encode_action, _ACTIONS),
    "ego:code": (encode_action_code, _ACTIONS),
    "ego:speed": (get_speed, _SPEED),
    "ego:dynamics": (compute_dynamics, f"{_SPEED}; {_RATE} where frames.ego_acceleration_mps2 is missing"),
    "ego:obd": (get_obd, f"{_SPEED}, and acc_x to gyro_z of the frames (PIE)"),
    "ego:filtered": (filter_obd, f"{_SPEED}, acc_x to gyro_z of the frames (PIE), {_RATE}"),
}
"""Name to what makes it and the tables it reads."""


def _ensure_column(seen: Observations, column: str, name: str, needed: str) -> None:
    """Refuse frames that say nothing of a column."""
    frames = seen.scenes.frames
    if not has_values(frames, column):
        others = {"ego_speed_kmh": "ego:speed", "vehicle_action": "ego:action"}
        has = [name for told, name in others.items() if has_values(frames, told)]
        message = f"{name} read {needed}; these scenes tell no {column}"
        raise InputError(message, hint=f"of the own vehicle they know {', '.join(has) or 'nothing'}")


def _rate(seen: Observations, told: Floats) -> Floats:
    """(n,) frames per second, where something is to be worked out from it.

    Args:
        seen: n observations.
        told: (n, t) what is known without it, else NaN.
    """
    lost = np.isnan(seen.fps) & np.isnan(told).any(axis=1)
    if lost.any():
        message = f"the frame rate of {seen.video_names(lost)} is unknown; changes of speed need it"
        raise InputError(message, hint="give videos.fps")
    return seen.fps
