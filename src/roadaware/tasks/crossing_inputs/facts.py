"""What is told of a pedestrian and of the scene: the motion of the own vehicle, the state of the traffic, annotated looks
and behaviour, and what of it is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np

from roadaware.arrays import Floats, Numbers
from roadaware.datasets.jaad import APPEARANCE as FLAGS
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.models.crossing.inputs import Held, InputSet, parse_input_name
from roadaware.statistics.classification import roc_auc
from roadaware.tasks.crossing_inputs.observations import Observations, has_values, one_hot

KMH_PER_MPS = 3.6
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
    measured = seen.at_frames("ego_acceleration_mps2")
    change = np.diff(speed_mps, axis=1, prepend=np.nan) / (seen.steps_frames / _rate(seen, measured)[:, None])
    acceleration = np.where(np.isnan(measured), change, measured)
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


def _ensure_column(seen: Observations, column: str, name: str, needed: str) -> None:
    """Refuse frames that say nothing of a column."""
    frames = seen.scenes.frames
    if not has_values(frames, column):
        others = {"ego_speed_kmh": "ego:speed", "vehicle_action": "ego:action"}
        has = [name for other, name in others.items() if has_values(frames, other)]
        message = f"{name} read {needed}; these scenes tell no {column}"
        raise InputError(message, hint=f"of the own vehicle they know {', '.join(has) or 'nothing'}")


def _rate(seen: Observations, values: Floats) -> Floats:
    """(n,) frames per second, where something is to be worked out from it.

    Args:
        seen: n observations.
        values: (n, t) what is known without it, else NaN.
    """
    lost = np.isnan(seen.fps) & np.isnan(values).any(axis=1)
    if lost.any():
        message = f"the frame rate of {seen.video_names(lost)} is unknown; changes of speed need it"
        raise InputError(message, hint="give videos.fps")
    return seen.fps


TRAFFIC_NEEDS = (
    "frames.ped_crossing, ped_sign, stop_sign (JAAD, PIE) and traffic_light (also the simulator), "
    "videos.road_type (JAAD); at least one of them"
)
SIGHTS = ("ped_crossing", "ped_sign", "stop_sign")
LIGHTS = ("n/a", "red", "yellow", "green")
ROADS = ("street", "parking_lot", "garage")
TRAFFIC_COLUMNS = (*SIGHTS, *(f"light_{light}" for light in LIGHTS), *(f"road_{road}" for road in ROADS))


def encode_traffic(seen: Observations) -> Floats:
    """(n, t, 10) three flags, one-hot of the light and one-hot of the road, as `TRAFFIC_COLUMNS` lists them.

    A flag that is unknown is NaN; a one-hot is zeros alone where it is. `light_n/a` says that no light is in
    sight. The attributes of a pedestrian's crossing (signal, lanes) are left out: JAAD has them only for
    pedestrians with behaviour tags, so that they would leak the label.

    Raises:
        InputError: if frames and videos lack it.
    """
    frames, videos = seen.scenes.frames, seen.scenes.videos
    columns = [c for c in (*SIGHTS, "traffic_light") if has_values(frames, c)]
    if not columns and not has_values(videos, "road_type"):
        raise InputError(f"traffic reads {TRAFFIC_NEEDS}; these scenes tell none")
    flags = np.stack([seen.at_frames(column) for column in SIGHTS], axis=-1)
    light = one_hot(seen.at_frames("traffic_light", LIGHTS), len(LIGHTS))
    road = one_hot(seen.at_videos("road_type", ROADS), len(ROADS))
    roads = np.broadcast_to(road[:, None], (*seen.frame.shape, len(ROADS)))
    return np.concatenate([flags, light, roads], axis=-1)


APPEARANCE_NEEDS = "the 24 appearance flags of the boxes (JAAD, read with its option appearance)"


def encode_appearance(seen: Observations) -> Floats:
    """(n, t, 24) 0 or 1 for each of `APPEARANCE` of JAAD's terms, NaN where unknown.

    Every pedestrian whom the protocols sample from JAAD has them, so that their presence tells nothing.

    Raises:
        InputError: if the boxes lack one of them.
    """
    lost = [flag for flag in FLAGS if flag not in seen.scenes.boxes.columns]
    if lost:
        message = f"appearance reads {APPEARANCE_NEEDS}; these boxes lack {', '.join(lost[:4])}"
        raise InputError(
            message,
            hint="no other dataset has them; samples.options: {appearance: true} in a recipe, "
            "read('jaad', root, appearance=True) in Python",
        )
    return np.stack([seen.at_boxes(flag) for flag in FLAGS], axis=-1)


BEHAVIOUR_NEEDS = (
    "boxes.action and look (JAAD, PIE, the simulator), and leave to leak (samples.leaks, leaks=True)"
)
ACTIONS, LOOKS = ("standing", "walking"), ("not-looking", "looking")


def encode_behaviour(seen: Observations, *, leaks: bool) -> Floats:
    """(n, t, 3) walking, looking, and 1 where a box has such tags; the first two are NaN without.

    The tag that says whether somebody is crossing is the answer itself and never given.

    Args:
        seen: n observations.
        leaks: that the caller knows what the tags give away.

    Raises:
        UsageError: if `leaks` is not set.
        InputError: if the boxes lack the tags.
    """
    lost = [column for column in ("action", "look") if column not in seen.scenes.boxes.columns]
    if lost:
        raise InputError(f"behaviour reads {BEHAVIOUR_NEEDS}; these boxes have no {' and no '.join(lost)}")
    walking, looking = seen.at_boxes("action", ACTIONS), seen.at_boxes("look", LOOKS)
    tagged = ~(np.isnan(walking) & np.isnan(looking))
    if not leaks:
        raise UsageError(
            "behaviour tags are refused. Annotators who had seen the whole video gave them, in JAAD only to "
            "those who interact with the driver, and everybody who crosses is among these. "
            f"{_name_source(seen, tagged.mean(axis=1))} samples.leaks: true in a "
            "recipe, leaks=True in Python, gives them all the same"
        )
    return np.stack([walking, looking, tagged.astype(np.float64)], axis=-1)


def _name_source(seen: Observations, share: Floats) -> str:
    """How well the presence of tags predicts the labels of these samples, in words.

    Args:
        seen: n observations.
        share: (n,) of their frames that have tags.
    """
    truth = seen.samples["label"].drop_nulls() if "label" in seen.samples.columns else None
    if truth is None or len(truth) < len(seen):
        return "How much they tell of these samples cannot be measured without answers."
    label = truth.to_numpy()
    found = {int(k): roc_auc(label == k, share) for k in np.unique(label)}
    known = {k: auc for k, auc in found.items() if auc is not None}
    if not known:
        return "These samples have one answer alone."
    best = max(known, key=lambda k: (known[k], k))
    names = seen.scenes.meta.vocabularies.get(str(seen.samples["kind"][0]), ())
    name = names[best] if best < len(names) else str(best)
    return f"On these samples, whether there are tags tells '{name}' with AUC {known[best]:.3f} by itself."


FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {
    "ego:action": (encode_action, _ACTIONS),
    "ego:code": (encode_action_code, _ACTIONS),
    "ego:speed": (get_speed, _SPEED),
    "ego:dynamics": (compute_dynamics, f"{_SPEED}; {_RATE} where frames.ego_acceleration_mps2 is missing"),
    "ego:obd": (get_obd, f"{_SPEED}, and acc_x to gyro_z of the frames (PIE)"),
    "ego:filtered": (filter_obd, f"{_SPEED}, acc_x to gyro_z of the frames (PIE), {_RATE}"),
    "traffic": (encode_traffic, TRAFFIC_NEEDS),
    "appearance": (encode_appearance, APPEARANCE_NEEDS),
}
"""Name to what makes it and the tables it reads; behaviour is asked for by itself, since it leaks."""

TOLD_FROM = 0.01
"""Up to this share of an input may be unknown without a word."""
_log = logging.getLogger("roadaware")


def refuse_unknown(shares: Mapping[str, float], split: str) -> None:
    """Refuse inputs that are unknown throughout a split; warn once of all those that are so in parts.

    Args:
        shares: name of an input to how much of it is unknown, from 0 to 1.
        split: train, val or test.

    Raises:
        InputError: if one is wholly unknown.
    """
    lost = [name for name, share in shares.items() if share >= 1]
    if lost:
        raise InputError(
            f"no sample of split '{split}' tells anything of {', '.join(lost)}; all of it would be made up",
            hint="leave it out (network.inputs, or network.fields of a model on hand features), or give the "
            "files and columns that tell it of this split too (`roadaware audit` shows what there is)",
        )
    parts = [f"{share:.1%} of {name}" for name, share in shares.items() if share > TOLD_FROM]
    if parts:
        _log.warning("split '%s': %s unknown; a mean or zero stands in for it", split, ", ".join(parts))


def compute_unknown_fractions(given: InputSet) -> dict[str, float]:
    """How much of each input is unknown, from 0 to 1; boxes and images are always known and left out.

    Words as one-hots count as unknown where they are zeros alone, a last column that says whether the rest is
    known does not count.
    """
    held = {
        name: column.values
        for name, column in given.columns.items()
        if isinstance(column, Held) and parse_input_name(name).kind not in _ALWAYS
    }
    return {name: compute_unknown_fraction(name, values) for name, values in held.items() if values.size}


def compute_unknown_fraction(name: str, values: Numbers) -> float:
    """How much of an input is unknown, from 0 to 1.

    Args:
        name: of the input.
        values: (n, ...) of it.

    >>> compute_unknown_fraction("ego:action", np.array([[[0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]]))
    0.5
    >>> compute_unknown_fraction("ego:speed", np.array([[[np.nan], [3.0]]]))
    0.5
    """
    return float(np.mean(_LACKS.get(name, np.isnan)(values)))


def _no_word(values: Numbers) -> Numbers:
    """(n, t) whether a one-hot is zeros alone."""
    return np.asarray((values == 0).all(axis=-1))


def _but_last(values: Numbers) -> Numbers:
    """Whether a number is unknown, of all columns but the last."""
    return np.isnan(values[..., :-1])


def _traffic(values: Numbers) -> Numbers:
    """(n, t, 5) whether each of three flags, the light and the road are unknown."""
    return np.stack(list(mask_unknown_traffic(values).values()), axis=-1)


def mask_unknown_traffic(values: Numbers) -> dict[str, Numbers]:
    """(...) for each flag, the light and the road, whether it is unknown.

    Args:
        values: (..., 10) as `TRAFFIC_COLUMNS` lists them.
    """
    flags, light = len(SIGHTS), len(SIGHTS) + len(LIGHTS)
    return {
        **{name: np.isnan(values[..., place]) for place, name in enumerate(SIGHTS)},
        "traffic_light": _no_word(values[..., flags:light]),
        "road_type": _no_word(values[..., light : light + len(ROADS)]),
    }


_ALWAYS = ("boxes", "centre", "motion", "crop", "maps")
_LACKS: dict[str, Callable[[Numbers], Numbers]] = {
    "ego:action": _no_word,
    "ego:dynamics": _but_last,
    "behaviour": _but_last,
    "traffic": _traffic,
}
"""How an input says that something is unknown, where it does not say so by NaN alone."""
