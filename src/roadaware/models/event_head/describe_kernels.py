"""Compiled columns of the event head's inputs, of tubes and of the own vehicle; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import inlined, kernel
from roadaware.models.event_head import layout as at
from roadaware.models.event_head.feature_kernels import (
    _bin,
    _kind,
    find_horizon,
    move_camera,
    observe,
    survey,
)

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


@inlined
def _squash(speed: float) -> float:
    """A speed in m/s, finer where it is small."""
    squashed: float = np.sign(speed) * np.log1p(abs(speed))
    return squashed


@inlined
def _clip(value: float, most: float) -> float:
    return min(max(value, -most), most)


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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
    dt = min(max(moment[0] - scene[at.TIME], 0.0), 1.0)
    move_camera(scene, maps, moment[0], moment[1] > 0, moment[2], moment[3], moment[4])
    find_horizon(scene, lens, boxes, classes, max(dt, 1e-3))
    observe(scene, lens, tubes, slots, boxes, classes)
    survey(scene, maps, tubes, slots, dt)
    return describe(scene, maps, tubes, slots, classes), describe_scene(scene, maps, tubes, slots)
