"""Compiled columns of the event head's inputs, lines through the past of tubes; and sparse optical flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints, Pixels
from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.models.event_head import head as at

_HEIGHTS = np.array(at.HEIGHTS_M)
_STANDARD = np.array(at.STANDARD)
_SCALES = np.array(at.SCALES_S)
_MEMORIES = np.array(at.MEMORY_S)
_PED, _TL, _OTHTL = 0, 8, 9
_FAR_M, _NEAR_M = 120.0, 1.0
_RIDGE_S2 = 0.08**2
"""Slopes of a past shorter than this are drawn to 0."""
_STILL_MPS = 0.6
_FORGET_S = 20.0
_MAP_S = 15.0


@inline_kernel
def _toward(old: float, new: float, dt: float, tau: float) -> float:
    """The old value drawn to the new one, as far as the time that passed allows."""
    drawn: float = old + (1.0 - np.exp(-dt / tau)) * (new - old)
    return drawn


@kernel
def reset_scene(scene: Floats, maps: Floats, t_s: float) -> None:
    """Forget everything; before anything is seen a usual camera is assumed."""
    scene[:] = 0.0
    maps[:] = 0.0
    scene[at.TIME] = t_s
    scene[at.BEGIN] = t_s
    # The horizon is within a tenth of the focal length of the middle, the camera 1.45 m high, about.
    scene[at.A00] = 1.0 / 0.1**2
    scene[at.A11] = 1.0 / 0.35**2
    scene[at.B1] = 1.45 / 0.35**2
    scene[at.HEIGHT] = 1.45


@kernel
def move_camera(
    scene: Floats, maps: Floats, t_s: float, known: bool, yaw_rps: float, pitch_rps: float, speed_mps: float
) -> None:
    """Take the own motion of a frame: turns in radians a second, speed in metres a second."""
    dt = max(t_s - scene[at.TIME], 0.0)
    scene[at.TIME] = t_s
    speed = speed_mps
    if not known:
        yaw_rps, pitch_rps, speed = 0.0, 0.0, scene[at.SPEED_GUESS]
    first = known and scene[at.KNOWN] == 0.0
    scene[at.KNOWN] = 1.0 if known else 0.0
    scene[at.PSI] += yaw_rps * dt
    scene[at.THETA] += pitch_rps * dt
    if first:
        scene[at.SPEED] = scene[at.SPEED_SLOW] = speed
    scene[at.SPEED] = _toward(scene[at.SPEED], speed, dt, 0.35)
    scene[at.SPEED_SLOW] = _toward(scene[at.SPEED_SLOW], speed, dt, 2.0)
    scene[at.YAW] = _toward(scene[at.YAW], yaw_rps, dt, 0.35)
    scene[at.YAW_SLOW] = _toward(scene[at.YAW_SLOW], yaw_rps, dt, 2.0)
    scene[at.TURN] = scene[at.TURN] * np.exp(-dt / 4.0) + yaw_rps * dt
    scene[at.STOPPED] = _toward(scene[at.STOPPED], 1.0 if speed < _STILL_MPS else 0.0, dt, 3.0)
    scene[at.LIGHT_MEMORY] *= np.exp(-dt / 4.0)
    scene[at.CROSS_MEMORY] *= np.exp(-dt / 4.0)
    scene[at.LIGHT_KNOWN] *= np.exp(-dt / 2.0)
    # What was where is no longer so once the camera has turned by a third of a radian.
    maps *= np.exp(-dt * (1.0 / _MAP_S + abs(scene[at.YAW]) / 0.3))
    # What is forgotten gives way to the usual camera, so that there is always one solution.
    fade = np.exp(-dt / _FORGET_S)
    prior = 1.0 - fade
    scene[at.A00] = scene[at.A00] * fade + prior / 0.1**2
    scene[at.A01] *= fade
    scene[at.A11] = scene[at.A11] * fade + prior / 0.35**2
    scene[at.B0] *= fade
    scene[at.B1] = scene[at.B1] * fade + prior * 1.45 / 0.35**2


@inner_kernel
def find_horizon(scene: Floats, lens: Floats, boxes: Floats, classes: Floats, dt: float) -> None:
    """Where the horizon is and how high the camera stands, by how low agents of known height stand.

    The lower edge of somebody of height H who stands on the ground lies camera height / H times his own
    height in the image below the horizon.

    Args:
        scene: memories.
        lens: width, height, focal length, middle across and down, in pixels.
        boxes: (n, 4) pixels.
        classes: (n, 10) probabilities.
        dt: seconds since the frame before, at most one.
    """
    for i in range(len(boxes)):
        # Cut by the upper or lower edge: neither its height nor its foot is known.
        if boxes[i, 3] > 0.985 * lens[1] or boxes[i, 1] < 0.015 * lens[1]:
            continue
        trust = 0.0
        metres = 0.0
        for c in range(len(_HEIGHTS)):
            trust += classes[i, c] * _STANDARD[c]
            metres += classes[i, c] * _HEIGHTS[c]
        high = (boxes[i, 3] - boxes[i, 1]) / lens[2]
        foot = (boxes[i, 3] - lens[4]) / lens[2]
        slope = high / max(metres, 0.5)
        spread = 0.01 + 0.25 * scene[at.HEIGHT] * slope
        # 30 frames of one box in a second tell little more than three: weights are by time.
        weight = trust * dt * 3.0 / spread**2
        scene[at.A00] += weight
        scene[at.A01] += weight * slope
        scene[at.A11] += weight * slope**2
        scene[at.B0] += weight * foot
        scene[at.B1] += weight * foot * slope
    whole = scene[at.A00] * scene[at.A11] - scene[at.A01] ** 2
    scene[at.HORIZON] = (scene[at.B0] * scene[at.A11] - scene[at.B1] * scene[at.A01]) / whole
    height = (scene[at.B1] * scene[at.A00] - scene[at.B0] * scene[at.A01]) / whole
    scene[at.HEIGHT] = min(max(height, 0.6), 4.0)


@inner_kernel
def update_tubes(
    scene: Floats, lens: Floats, tubes: Floats, slots: Ints, boxes: Floats, classes: Floats
) -> None:
    """Take the boxes of a frame into the memories of their tubes.

    Args:
        scene: memories.
        lens: as of `find_horizon`.
        tubes: a row for each tube.
        slots: (n,) row of each box; COUNT is 0 in the row of a new one.
        boxes: (n, 4) pixels.
        classes: (n, 10) probabilities.
    """
    t_s = scene[at.TIME]
    values = np.empty(at.N_QUANTITIES)
    for i in range(len(slots)):
        tube, box = tubes[slots[i]], boxes[i]
        new = tube[at.COUNT] == 0.0
        if new:
            tube[:] = 0.0
            tube[at.FIRST_S] = t_s
        dt = 0.0 if new else t_s - tube[at.LAST_S]
        tube[at.NOW_GAP] = dt
        tube[at.LAST_S] = t_s
        tube[at.COUNT] += 1.0
        values[at.U] = (0.5 * (box[0] + box[2]) - lens[3]) / lens[2]
        values[at.FOOT] = (box[3] - lens[4]) / lens[2]
        # A box narrower than a pixel has no logarithm worth keeping.
        values[at.LOG_W] = np.log(max(box[2] - box[0], 1.0) / lens[2])
        values[at.LOG_H] = np.log(max(box[3] - box[1], 1.0) / lens[2])
        values[at.PAN] = scene[at.PSI]
        values[at.TILT] = scene[at.THETA]
        for s in range(len(_SCALES)):
            _draw_line(
                tube,
                at.LINES + s * at.LINE_WIDTH,
                at.NOW_SLOPES + s * at.N_QUANTITIES,
                values,
                dt,
                _SCALES[s],
            )
        left, right = box[0] < 0.01 * lens[0], box[2] > 0.99 * lens[0]
        top, bottom = box[1] < 0.01 * lens[1], box[3] > 0.99 * lens[1]
        tube[at.NOW_TOUCH] = 1.0 * left + 2.0 * right + 4.0 * top + 8.0 * bottom
        for c in range(len(_HEIGHTS)):
            old = tube[at.CLASSES + c]
            tube[at.CLASSES + c] = classes[i, c] if new else _toward(old, classes[i, c], dt, 1.0)
        _place(scene, tube, new, dt)


@inner_kernel
def _draw_line(tube: Floats, base: int, out: int, values: Floats, dt: float, tau: float) -> None:
    """A line by least squares through the past, whose weight falls by e each `tau`; its slopes, and on the
    first scale its present values, come to stand in the tube's row.
    """
    fade = np.exp(-dt / tau)
    s0, s1, s2 = tube[base], tube[base + 1], tube[base + 2]
    # Times are counted from now: each dt moves all that is past, and so the sums of t and t^2.
    s2 = fade * (s2 - 2.0 * dt * s1 + dt * dt * s0)
    s1 = fade * (s1 - dt * s0)
    s0 = fade * s0 + 1.0
    tube[base], tube[base + 1], tube[base + 2] = s0, s1, s2
    mean_t = s1 / s0
    spread = max(s2 / s0 - mean_t**2, 0.0) + _RIDGE_S2
    for q in range(at.N_QUANTITIES):
        m0, m1 = base + 3 + q, base + 3 + at.N_QUANTITIES + q
        tube[m1] = fade * (tube[m1] - dt * tube[m0])
        tube[m0] = fade * tube[m0] + values[q]
        mean = tube[m0] / s0
        slope = (tube[m1] / s0 - mean_t * mean) / spread
        tube[out + q] = slope
        if out == at.NOW_SLOPES:
            present = mean - slope * mean_t
            if q == at.U:
                tube[at.NOW_U] = present
            elif q == at.FOOT:
                tube[at.NOW_BELOW] = present
            elif q == at.LOG_W:
                tube[at.NOW_LOG_W] = present
            elif q == at.LOG_H:
                tube[at.NOW_LOG_H] = present


@inner_kernel
def _place(scene: Floats, tube: Floats, new: bool, dt: float) -> None:
    """Metres and metres a second of a tube, by its size, its foot and the own motion."""
    tube[at.NOW_BELOW] -= scene[at.HORIZON]
    total, logs = 1e-6, 0.0
    for c in range(len(_HEIGHTS)):
        total += tube[at.CLASSES + c]
        logs += tube[at.CLASSES + c] * np.log(_HEIGHTS[c])
    light = (tube[at.CLASSES + _TL] + tube[at.CLASSES + _OTHTL]) / total
    size = np.exp(logs / total - tube[at.NOW_LOG_H])
    # A foot at the horizon would stand infinitely far away, and one above it behind the camera.
    ground = scene[at.HEIGHT] / max(tube[at.NOW_BELOW], scene[at.HEIGHT] / _FAR_M)
    size, ground = min(max(size, _NEAR_M), _FAR_M), min(max(ground, _NEAR_M), _FAR_M)
    cut = int(tube[at.NOW_TOUCH]) & 8
    # Lights hang and stand nowhere, and of a box cut by the lower edge the foot is not seen.
    share = 1.0 if light > 0.5 else (0.8 if cut else 0.5)
    depth = np.exp(share * np.log(size) + (1.0 - share) * np.log(ground))
    tube[at.NOW_SIZE_Z], tube[at.NOW_GROUND_Z], tube[at.NOW_Z] = size, ground, depth
    tube[at.NOW_X] = tube[at.NOW_U] * depth
    for s in range(2):
        slope = at.NOW_SLOPES + s * at.N_QUANTITIES
        # Something that comes nearer at v from a depth z grows by v / z of its size a second.
        closing = depth * tube[slope + at.LOG_H]
        own = scene[at.SPEED] if s == 0 else 0.5 * (scene[at.SPEED] + scene[at.SPEED_SLOW])
        across = depth * (tube[slope + at.U] - tube[slope + at.PAN]) - tube[at.NOW_U] * closing
        tube[at.NOW_CLOSING + s] = closing
        tube[at.NOW_VF + 2 * s] = min(max(own - closing, -40.0), 40.0)
        tube[at.NOW_VX + 2 * s] = min(max(across, -30.0), 30.0)
    vf, vx = tube[at.NOW_VF_SLOW], tube[at.NOW_VX_SLOW]
    pace = np.hypot(vf, vx)
    for m in range(len(_MEMORIES)):
        base = at.MEMORIES + 4 * m
        for k, value in ((0, vf), (1, vx), (2, tube[at.NOW_X]), (3, pace)):
            tube[base + k] = value if new else _toward(tube[base + k], value, dt, _MEMORIES[m])
    most = at.MEMORIES + 4 * len(_MEMORIES)
    tube[most] = max(tube[most] * np.exp(-dt / 10.0), tube[at.MEMORIES + 3])


@inner_kernel
def _kind(tube: Floats) -> int:
    """0 for people, 1 for vehicles and riders, 2 for traffic lights."""
    best, of = -1.0, 0
    for c in range(len(_HEIGHTS)):
        if tube[at.CLASSES + c] > best:
            best, of = tube[at.CLASSES + c], c
    return 0 if of == _PED else (2 if of >= _TL else 1)


@inline_kernel
def _bin(x_m: float) -> int:
    return min(max(int(np.floor(x_m / at.BIN_M + at.BINS / 2)), 0), at.BINS - 1)


@inner_kernel
def aggregate_tubes(scene: Floats, maps: Floats, tubes: Floats, slots: Ints, dt: float) -> None:
    """Features shared by all tubes of a frame: own motion and road."""
    n = len(slots)
    closing, pan = np.empty(n), np.empty(n)
    crossing, light, lights, light_closing = 0.0, 0.0, 0, 0.0
    for i in range(n):
        tube = tubes[slots[i]]
        closing[i], pan[i] = tube[at.NOW_CLOSING_SLOW], tube[at.NOW_SLOPES + at.N_QUANTITIES + at.U]
        kind, x, old = _kind(tube), tube[at.NOW_X], tube[at.LAST_S] - tube[at.FIRST_S] > 0.3
        if kind == 2:
            light = max(light, np.exp(tube[at.NOW_LOG_H]))
            if old:
                lights, light_closing = lights + 1, light_closing + closing[i]
        elif kind == 1 and old:
            vf, vx = tube[at.NOW_VF_SLOW], tube[at.NOW_VX_SLOW]
            if abs(vx) > max(abs(vf), 1.5) and tube[at.NOW_Z] < 50:
                crossing += 1.0
            if abs(vf) > 1.5:
                maps[at.FLOW, _bin(x)] += dt * np.tanh(vf / 3.0)
                maps[at.FLOW_WEIGHT, _bin(x)] += dt
            elif abs(vf) < 1.0 and abs(vx) < 1.0:
                maps[at.STILL, _bin(x)] += dt
        elif kind == 0:
            maps[at.PEOPLE, _bin(x)] += dt
    if n:
        scene[at.ANY_CLOSING] = _toward(scene[at.ANY_CLOSING], np.median(closing), dt, 0.7)
        scene[at.ANY_PAN] = _toward(scene[at.ANY_PAN], np.median(pan), dt, 0.7)
        scene[at.SPREAD] = _toward(scene[at.SPREAD], float(np.std(pan)) if n > 2 else 0.0, dt, 0.7)
    if lights:
        scene[at.LIGHT_CLOSING] = _toward(scene[at.LIGHT_CLOSING], light_closing / lights, dt, 0.7)
        scene[at.LIGHT_KNOWN] = _toward(scene[at.LIGHT_KNOWN], 1.0, dt, 0.3)
    guess = max(scene[at.ANY_CLOSING], 0.0)
    known = scene[at.LIGHT_KNOWN]
    scene[at.SPEED_GUESS] = min(known * max(scene[at.LIGHT_CLOSING], 0.0) + (1.0 - known) * guess, 30.0)
    scene[at.LIGHT_MEMORY] = max(scene[at.LIGHT_MEMORY], light)
    scene[at.CROSS_MEMORY] = max(scene[at.CROSS_MEMORY], min(crossing, 3.0))


# Compiled columns of the event head's inputs, of tubes and of the own vehicle.

_HALF = at.BINS // 2
_DEEP = 0.3
"""A metre along the way counts less than one across where neighbours are sought: depth is known worse."""
_CORRIDOR_M = 2.2
# Columns of `common`.
(_CORRIDOR, _LEFT_VF, _RIGHT_VF, _PEOPLE, _VEHICLES, _LIGHTS, _LIGHT_U, _LIGHT_BELOW, _LIGHT_H, _LIGHT_Z) = (
    range(10)
)
(_CROSSING, _FLOW_LEFT, _FLOW_RIGHT, _CORRIDOR_VF, _AHEAD, _STILL_LEFT, _STILL_RIGHT) = range(10, 17)
_N_COMMON = 17


@inline_kernel
def _squash(speed: float) -> float:
    """A speed in m/s, finer where it is small."""
    squashed: float = np.sign(speed) * np.log1p(abs(speed))
    return squashed


@inline_kernel
def _clip(value: float, most: float) -> float:
    return min(max(value, -most), most)


@inner_kernel
def gather(scene: Floats, maps: Floats, tubes: Floats, slots: Ints) -> Floats:
    """(17,) what all tubes of a frame share."""
    found = np.zeros(_N_COMMON)
    sums = np.zeros((3, 2))
    found[_AHEAD] = 1.0
    for i in range(len(slots)):
        tube = tubes[slots[i]]
        kind, x, vf = _kind(tube), tube[at.NOW_X], tube[at.NOW_VF_SLOW]
        if kind == 0:
            found[_PEOPLE] += 1.0
        elif kind == 1:
            found[_VEHICLES] += 1.0
            side = 0 if x < -_CORRIDOR_M else (1 if x > _CORRIDOR_M else 2)
            sums[side, 0] += np.tanh(vf / 5.0)
            sums[side, 1] += 1.0
            if side == 2:
                found[_AHEAD] = min(found[_AHEAD], tube[at.NOW_Z] / 50.0)
            if abs(tube[at.NOW_VX_SLOW]) > max(abs(vf), 1.5):
                found[_CROSSING] += 1.0
        else:
            found[_LIGHTS] += 1.0
            if np.exp(tube[at.NOW_LOG_H]) > found[_LIGHT_H]:
                found[_LIGHT_H], found[_LIGHT_U] = np.exp(tube[at.NOW_LOG_H]), tube[at.NOW_U]
                found[_LIGHT_BELOW], found[_LIGHT_Z] = tube[at.NOW_BELOW], tube[at.NOW_Z]
    for side, column in ((0, _LEFT_VF), (1, _RIGHT_VF), (2, _CORRIDOR_VF)):
        # Half a vehicle that stands still is added: means of few are drawn to 0.
        found[column] = sums[side, 0] / (sums[side, 1] + 0.5)
    found[_CORRIDOR] = min(sums[2, 1], 4.0)
    left, right = 0.0, 0.0
    for b in range(_HALF):
        found[_FLOW_LEFT] += maps[at.FLOW, b]
        left += maps[at.FLOW_WEIGHT, b]
        found[_FLOW_RIGHT] += maps[at.FLOW, at.BINS - 1 - b]
        right += maps[at.FLOW_WEIGHT, at.BINS - 1 - b]
        found[_STILL_LEFT] += maps[at.STILL, b]
        found[_STILL_RIGHT] += maps[at.STILL, at.BINS - 1 - b]
    found[_FLOW_LEFT] /= left + 0.5
    found[_FLOW_RIGHT] /= right + 0.5
    return found


@inner_kernel
def describe(scene: Floats, maps: Floats, tubes: Floats, slots: Ints, classes: Floats) -> Floats:
    """(n, features) of the tubes of a frame, in the order of `layout.FEATURES`."""
    common = gather(scene, maps, tubes, slots)
    found = np.zeros((len(slots), len(at.FEATURES)))
    for i in range(len(slots)):
        tube, row = tubes[slots[i]], found[i]
        k = _write_place(scene, tube, row, 0)
        for c in range(classes.shape[1]):
            row[k + c] = classes[i, c]
            row[k + classes.shape[1] + c] = tube[at.CLASSES + c]
        k = _write_motion(scene, tube, row, k + 2 * classes.shape[1])
        k = _write_ego(scene, tube, row, k)
        k = _write_nearest(tubes, slots, i, row, k)
        k = _write_common(scene, common, tube, row, k)
        _write_maps(maps, common, tube, row, k)
    return found


@inner_kernel
def _write_place(scene: Floats, tube: Floats, row: Floats, k: int) -> int:
    row[k] = tube[at.NOW_U]
    row[k + 1] = 3.0 * tube[at.NOW_BELOW]
    row[k + 2] = tube[at.NOW_LOG_W] + 2.5
    row[k + 3] = tube[at.NOW_LOG_H] + 2.5
    row[k + 4] = tube[at.NOW_LOG_W] - tube[at.NOW_LOG_H]
    row[k + 5] = np.log(tube[at.NOW_SIZE_Z]) - 3.0
    row[k + 6] = np.log(tube[at.NOW_GROUND_Z]) - 3.0
    row[k + 7] = _clip(tube[at.NOW_U] * tube[at.NOW_SIZE_Z] / 5.0, 5.0)
    row[k + 8] = _clip(tube[at.NOW_U] * tube[at.NOW_GROUND_Z] / 5.0, 5.0)
    touch = int(tube[at.NOW_TOUCH])
    for bit in range(4):
        row[k + 9 + bit] = (touch >> bit) & 1
    row[k + 13] = 5.0 * scene[at.HORIZON]
    row[k + 14] = scene[at.HEIGHT] - 1.5
    return k + 15


@inner_kernel
def _write_motion(scene: Floats, tube: Floats, row: Floats, k: int) -> int:
    for s in range(2):
        slope = at.NOW_SLOPES + s * at.N_QUANTITIES
        row[k] = _clip(4.0 * tube[slope + at.U], 4.0)
        row[k + 1] = _clip(8.0 * tube[slope + at.FOOT], 4.0)
        row[k + 2] = _clip(3.0 * tube[slope + at.LOG_W], 4.0)
        row[k + 3] = _clip(3.0 * tube[slope + at.LOG_H], 4.0)
        k += 4
    row[k] = _squash(tube[at.NOW_CLOSING])
    row[k + 1] = _squash(tube[at.NOW_CLOSING_SLOW])
    row[k + 2] = np.log1p(tube[at.LAST_S] - tube[at.FIRST_S])
    row[k + 3] = np.log1p(min(tube[at.COUNT], 100.0)) / 3.0
    row[k + 4] = min(tube[at.NOW_GAP], 1.0)
    return k + 5


@inner_kernel
def _write_drive(scene: Floats, row: Floats, k: int) -> int:
    """The own motion, with which the columns of tubes and those of the own vehicle begin."""
    row[k] = scene[at.KNOWN]
    row[k + 1] = _squash(scene[at.SPEED])
    row[k + 2] = _squash(scene[at.SPEED_SLOW])
    row[k + 3] = _clip(scene[at.SPEED] - scene[at.SPEED_SLOW], 4.0)
    row[k + 4] = _clip(5.0 * scene[at.YAW], 4.0)
    row[k + 5] = _clip(5.0 * scene[at.YAW_SLOW], 4.0)
    row[k + 6] = _clip(scene[at.TURN], 3.0)
    row[k + 7] = scene[at.STOPPED]
    row[k + 8] = _squash(scene[at.SPEED_GUESS])
    return k + 9


@inner_kernel
def _write_ego(scene: Floats, tube: Floats, row: Floats, k: int) -> int:
    k = _write_drive(scene, row, k)
    fast, slow = at.NOW_SLOPES, at.NOW_SLOPES + at.N_QUANTITIES
    row[k] = _clip(4.0 * (tube[fast + at.U] - tube[fast + at.PAN]), 4.0)
    row[k + 1] = _clip(4.0 * (tube[slow + at.U] - tube[slow + at.PAN]), 4.0)
    row[k + 2] = _clip(8.0 * (tube[slow + at.FOOT] - tube[slow + at.TILT]), 4.0)
    vf, vx = tube[at.NOW_VF_SLOW], tube[at.NOW_VX_SLOW]
    row[k + 3], row[k + 4] = _squash(tube[at.NOW_VF]), _squash(tube[at.NOW_VX])
    row[k + 5], row[k + 6] = _squash(vf), _squash(vx)
    pace = np.hypot(vf, vx)
    row[k + 7] = _squash(pace)
    row[k + 8], row[k + 9] = vf / (pace + 0.5), vx / (pace + 0.5)
    k += 10
    for m in range(len(at.MEMORY_S)):
        base = at.MEMORIES + 4 * m
        row[k], row[k + 1] = _squash(tube[base]), _squash(tube[base + 1])
        row[k + 2], row[k + 3] = _clip(tube[base + 2] / 5.0, 5.0), _squash(tube[base + 3])
        k += 4
    row[k] = _squash(tube[at.MEMORIES + 4 * len(at.MEMORY_S)])
    return k + 1


@inner_kernel
def _write_nearest(tubes: Floats, slots: Ints, i: int, row: Floats, k: int) -> int:
    """The two nearest others on the ground, as they are to the tube; zeros where there are none."""
    tube = tubes[slots[i]]
    best = np.full(2, np.inf)
    who = np.full(2, -1)
    for j in range(len(slots)):
        if j == i:
            continue
        other = tubes[slots[j]]
        away = abs(other[at.NOW_X] - tube[at.NOW_X]) + _DEEP * abs(other[at.NOW_Z] - tube[at.NOW_Z])
        if away < best[0]:
            best[1], who[1] = best[0], who[0]
            best[0], who[0] = away, j
        elif away < best[1]:
            best[1], who[1] = away, j
    for m in range(2):
        if who[m] >= 0:
            other = tubes[slots[who[m]]]
            row[k] = _clip((other[at.NOW_X] - tube[at.NOW_X]) / 5.0, 3.0)
            row[k + 1] = _clip((other[at.NOW_Z] - tube[at.NOW_Z]) / 15.0, 3.0)
            row[k + 2] = _squash(other[at.NOW_VF_SLOW] - tube[at.NOW_VF_SLOW])
            row[k + 3] = _squash(other[at.NOW_VX_SLOW] - tube[at.NOW_VX_SLOW])
            kind = _kind(other)
            row[k + 4], row[k + 5], row[k + 6] = 1.0 * (kind == 1), 1.0 * (kind == 0), 1.0 * (kind == 2)
        k += 7
    return k


@inner_kernel
def _write_common(scene: Floats, common: Floats, tube: Floats, row: Floats, k: int) -> int:
    row[k] = common[_CORRIDOR_VF]
    row[k + 1] = common[_CORRIDOR]
    row[k + 2], row[k + 3] = common[_LEFT_VF], common[_RIGHT_VF]
    row[k + 4], row[k + 5] = np.log1p(common[_PEOPLE]), np.log1p(common[_VEHICLES])
    row[k + 6] = np.log1p(common[_LIGHTS])
    row[k + 7], row[k + 8] = common[_LIGHT_U], 3.0 * common[_LIGHT_BELOW]
    row[k + 9] = 10.0 * common[_LIGHT_H]
    row[k + 10] = _clip((common[_LIGHT_Z] - tube[at.NOW_Z]) / 20.0, 3.0) if common[_LIGHTS] else 0.0
    row[k + 11] = common[_CROSSING]
    row[k + 12], row[k + 13] = 10.0 * scene[at.LIGHT_MEMORY], scene[at.CROSS_MEMORY]
    row[k + 14], row[k + 15] = _squash(scene[at.ANY_CLOSING]), _clip(4.0 * scene[at.ANY_PAN], 4.0)
    row[k + 16] = _squash(scene[at.LIGHT_CLOSING]) * scene[at.LIGHT_KNOWN]
    return k + 17


@inner_kernel
def _write_maps(maps: Floats, common: Floats, tube: Floats, row: Floats, k: int) -> None:
    """What was seen to move, stand and walk in the tube's strip of the road and in those beside it."""
    x = tube[at.NOW_X]
    own, out = _bin(x), 1 if x >= 0 else -1
    strips = (min(max(own - out, 0), at.BINS - 1), own, min(max(own + out, 0), at.BINS - 1))
    for m in range(4):
        for s in range(3):
            held = maps[m, strips[s]]
            if m == at.FLOW:
                held = held / (maps[at.FLOW_WEIGHT, strips[s]] + 0.3)
            else:
                held = np.log1p(held)
            row[k] = held
            k += 1
    row[k], row[k + 1] = common[_FLOW_LEFT], common[_FLOW_RIGHT]
    inside, outside = 0.0, 0.0
    for b in range(at.BINS):
        if (b - _HALF) * out > 0:
            if (b - own) * out < 0:
                inside += maps[at.STILL, b]
            elif (b - own) * out > 0:
                outside += maps[at.STILL, b]
    row[k + 2], row[k + 3] = np.log1p(inside), np.log1p(outside)


@inner_kernel
def describe_scene(scene: Floats, maps: Floats, tubes: Floats, slots: Ints) -> Floats:
    """(columns,) of the own vehicle in a frame, in the order of `layout.SCENE_FEATURES`."""
    common = gather(scene, maps, tubes, slots)
    row = np.zeros(len(at.SCENE_FEATURES))
    k = _write_drive(scene, row, 0)
    row[k], row[k + 1] = _squash(scene[at.ANY_CLOSING]), _clip(4.0 * scene[at.ANY_PAN], 4.0)
    row[k + 2] = _clip(4.0 * scene[at.SPREAD], 4.0)
    row[k + 3], row[k + 4] = _squash(scene[at.LIGHT_CLOSING]), scene[at.LIGHT_KNOWN]
    row[k + 5], row[k + 6] = np.log1p(common[_VEHICLES]), np.log1p(common[_PEOPLE])
    row[k + 7] = np.log1p(common[_LIGHTS])
    row[k + 8], row[k + 9] = common[_LIGHT_U], 3.0 * common[_LIGHT_BELOW]
    row[k + 10] = 10.0 * common[_LIGHT_H]
    row[k + 11], row[k + 12] = common[_LEFT_VF], common[_RIGHT_VF]
    row[k + 13], row[k + 14] = common[_FLOW_LEFT], common[_FLOW_RIGHT]
    row[k + 15], row[k + 16] = common[_CORRIDOR_VF], common[_CORRIDOR]
    row[k + 17], row[k + 18] = 10.0 * scene[at.LIGHT_MEMORY], scene[at.CROSS_MEMORY]
    row[k + 19], row[k + 20] = 5.0 * scene[at.HORIZON], scene[at.HEIGHT] - 1.5
    row[k + 21], row[k + 22] = np.log1p(common[_STILL_LEFT]), np.log1p(common[_STILL_RIGHT])
    row[k + 23] = common[_AHEAD]
    return row


@kernel
def advance(
    scene: Floats,
    maps: Floats,
    tubes: Floats,
    slots: Ints,
    boxes: Floats,
    classes: Floats,
    lens: Floats,
    moment: Floats,
) -> tuple[Floats, Floats]:
    """Take a frame into all memories, and describe its tubes and the own vehicle.

    Args:
        scene, maps, tubes: memories.
        slots: (n,) row of each box's tube.
        boxes: (n, 4) pixels.
        classes: (n, 10) probabilities.
        lens: as of `find_horizon`.
        moment: time in seconds; 1 where the own motion is known, else 0; turn, turn upwards, speed.

    Returns:
        (n, features) and (columns,).
    """
    # Not more than a second: a gap in the stream is no evidence that what was there stayed.
    dt = min(max(moment[0] - scene[at.TIME], 0.0), 1.0)
    move_camera(scene, maps, moment[0], moment[1] > 0, moment[2], moment[3], moment[4])
    # The first frame passes no time, and would weigh nothing.
    find_horizon(scene, lens, boxes, classes, max(dt, 1e-3))
    update_tubes(scene, lens, tubes, slots, boxes, classes)
    aggregate_tubes(scene, maps, tubes, slots, dt)
    return describe(scene, maps, tubes, slots, classes), describe_scene(scene, maps, tubes, slots)


HALF = 4
"""Half of the window, which has 9 x 9 pixels."""
_ITERATIONS = 8
_STILL_PX = 0.02
_LEAST_EIGENVALUE = 12.0
"""Of the gradients' matrix, by pixel: weaker corners are noise of the sensor or of the codec."""
_ROUND = 0.12
_WORST = 14.0
"""Mean difference of grey levels in a window that was followed well."""


@kernel
def downscale_to_grey(image: Pixels, factor: int) -> Floats32:
    """(h, w) grey levels of a (H, W, 3) image, each the mean of factor x factor pixels."""
    height, width = image.shape[0] // factor, image.shape[1] // factor
    found = np.empty((height, width), np.float32)
    # The weights 1, 2, 1 of the colours add up to 4.
    share = np.float32(1.0 / (4 * factor * factor))
    for i in range(height):
        for j in range(width):
            total = 0
            for a in range(i * factor, (i + 1) * factor):
                for b in range(j * factor, (j + 1) * factor):
                    # Green counts half, as it does about in what the eye sees.
                    total += int(image[a, b, 0]) + 2 * int(image[a, b, 1]) + int(image[a, b, 2])
            found[i, j] = share * np.float32(total)
    return found


@kernel
def downsample_grey(grey: Floats32) -> Floats32:
    """Every second pixel of an image smoothed by 1, 2, 1 in both directions."""
    height, width = grey.shape[0] // 2, grey.shape[1] // 2
    found = np.empty((height, width), np.float32)
    for i in range(height):
        for j in range(width):
            total = np.float32(0.0)
            for a in range(-1, 2):
                for b in range(-1, 2):
                    y = min(max(2 * i + a, 0), grey.shape[0] - 1)
                    x = min(max(2 * j + b, 0), grey.shape[1] - 1)
                    total += np.float32((2 - abs(a)) * (2 - abs(b))) * grey[y, x]
            found[i, j] = total / np.float32(16.0)
    return found


@kernel
def detect_corners(grey: Floats32, cell: int, taken: Floats) -> Floats:
    """(n, 2) x, y of the best corner of each cell that is one, none of them in the boxes.

    Args:
        grey: image.
        cell: side of the cells, pixels.
        taken: (m, 4) boxes in pixels of the grey image.
    """
    height, width = grey.shape
    found = np.empty(((height // cell + 1) * (width // cell + 1), 2))
    n, edge = 0, HALF + 2
    for top in range(edge, height - edge, cell):
        for left in range(edge, width - edge, cell):
            best, best_x, best_y = _LEAST_EIGENVALUE, -1, -1
            # Every second pixel: a corner is wider than one.
            for y in range(top, min(top + cell, height - edge), 2):
                for x in range(left, min(left + cell, width - edge), 2):
                    value = _eigenvalue(grey, x, y)
                    if value > best:
                        best, best_x, best_y = value, x, y
            if best_x >= 0 and not _inside(taken, best_x, best_y):
                found[n, 0], found[n, 1] = best_x, best_y
                n += 1
    return found[:n]


@inner_kernel
def _inside(boxes: Floats, x: float, y: float) -> bool:
    inside = False
    for box in boxes:
        inside = inside or (box[0] <= x <= box[2] and box[1] <= y <= box[3])
    return inside


@inner_kernel
def _eigenvalue(grey: Floats32, x: int, y: int) -> float:
    """The smaller eigenvalue of the mean matrix of the gradients in a window of 5 x 5."""
    xx, xy, yy = 0.0, 0.0, 0.0
    for b in range(y - 2, y + 3):
        for a in range(x - 2, x + 3):
            gx = 0.5 * (grey[b, a + 1] - grey[b, a - 1])
            gy = 0.5 * (grey[b + 1, a] - grey[b - 1, a])
            xx, xy, yy = xx + gx * gx, xy + gx * gy, yy + gy * gy
    root = np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    small, large = 0.5 * (xx + yy) - root, 0.5 * (xx + yy) + root
    # Along an edge, such as the line of a lane, nothing can be followed.
    return float(small / 25.0 if small > _ROUND * large else 0.0)


@inline_kernel
def _at(grey: Floats32, x: float, y: float) -> float:
    """The grey level between pixels."""
    i, j = int(y), int(x)
    a, b = y - i, x - j
    upper = grey[i, j] * (1.0 - b) + grey[i, j + 1] * b
    lower = grey[i + 1, j] * (1.0 - b) + grey[i + 1, j + 1] * b
    level: float = upper * (1.0 - a) + lower * a
    return level


@inner_kernel
def track_point(
    before: Floats32, after: Floats32, x: float, y: float, dx: float, dy: float
) -> tuple[float, float, float]:
    """Where the window around a point went on one level, and the mean difference there; -1 where it is lost.

    Source: Lucas and Kanade, IJCAI 1981; Bouguet, Pyramidal implementation, 2001.
    """
    height, width = before.shape
    # Half the window, a pixel for its gradients, and the pixel beside each where it is read between pixels.
    edge = HALF + 1.01
    if not (edge <= x < width - edge - 1 and edge <= y < height - edge - 1):
        return dx, dy, -1.0
    side = 2 * HALF + 1
    window, gx, gy = np.empty((side, side)), np.empty((side, side)), np.empty((side, side))
    # A window without texture would divide by 0.
    xx, xy, yy = 1e-6, 0.0, 1e-6
    for b in range(side):
        for a in range(side):
            u, v = x + a - HALF, y + b - HALF
            window[b, a] = _at(before, u, v)
            gx[b, a] = 0.5 * (_at(before, u + 1, v) - _at(before, u - 1, v))
            gy[b, a] = 0.5 * (_at(before, u, v + 1) - _at(before, u, v - 1))
            xx, xy, yy = xx + gx[b, a] ** 2, xy + gx[b, a] * gy[b, a], yy + gy[b, a] ** 2
    # Of the gradients of the first image alone: the matrix is the same in all rounds.
    whole = xx * yy - xy * xy
    off = -1.0
    for _ in range(_ITERATIONS):
        if not (edge <= x + dx < width - edge - 1 and edge <= y + dy < height - edge - 1):
            return dx, dy, -1.0
        bx, by, off = 0.0, 0.0, 0.0
        for b in range(side):
            for a in range(side):
                left = window[b, a] - _at(after, x + dx + a - HALF, y + dy + b - HALF)
                bx, by, off = bx + left * gx[b, a], by + left * gy[b, a], off + abs(left)
        step_x, step_y = (yy * bx - xy * by) / whole, (xx * by - xy * bx) / whole
        dx, dy = dx + step_x, dy + step_y
        if abs(step_x) + abs(step_y) < _STILL_PX:
            break
    return dx, dy, off / (side * side)


@kernel
def track_points(
    before: Floats32,
    after: Floats32,
    before_2: Floats32,
    after_2: Floats32,
    before_4: Floats32,
    after_4: Floats32,
    points: Floats,
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 2) flow of points in pixels over three levels, and (n,) which were followed well."""
    flow, good = np.zeros(points.shape), np.zeros(len(points), np.bool_)
    for k in range(len(points)):
        x, y = points[k, 0], points[k, 1]
        dx, dy, off = track_point(before_4, after_4, x / 4, y / 4, 0.0, 0.0)
        # Lost on a coarse level, where more points are near the border: the finer one begins without a guess.
        if off < 0:
            dx, dy = 0.0, 0.0
        dx, dy, off = track_point(before_2, after_2, x / 2, y / 2, 2 * dx, 2 * dy)
        if off < 0:
            dx, dy = 0.0, 0.0
        dx, dy, off = track_point(before, after, x, y, 2 * dx, 2 * dy)
        flow[k, 0], flow[k, 1] = dx, dy
        good[k] = 0.0 <= off < _WORST
    return flow, good
