"""Motion of the own vehicle: actions, speeds and what changes them, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from short_walks import FRAMES, OBSERVED, TRACKS, T, walks

from roadaware.errors import InputError
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.facts import OBD

ACTIONS = [VEHICLE_ACTIONS[k % 5] if k != 3 else None for k in range(2 * FRAMES)]
SPEEDS = [3.6 * (k % 10 + 1) ** 2 if k != 7 else None for k in range(2 * FRAMES)]


def row_of(tube: int, frame: int) -> int:
    return frame + FRAMES * ("a", "b").index(TRACKS[tube][0])


def taken(name: str, **frames: object) -> np.ndarray:
    return build_inputs(walks(frames=frames), "train", [name]).take(np.arange(len(OBSERVED)))[name]


@pytest.mark.parametrize("kind", [pl.String, pl.Enum(sorted(VEHICLE_ACTIONS))])
def test_the_vehicles_action_is_one_of_five_and_nothing_where_unknown(kind: pl.DataType) -> None:
    told = pl.Series(ACTIONS, dtype=kind)
    one_hot, code = (taken(name, vehicle_action=told) for name in ("ego:action", "ego:code"))
    assert one_hot.shape == (4, T, 5)
    assert code.shape == (4, T, 1)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            action = ACTIONS[row_of(tube, frame)]
            assert one_hot[row, k].tolist() == [float(name == action) for name in VEHICLE_ACTIONS]
            expected = np.nan if action is None else VEHICLE_ACTIONS.index(action)
            np.testing.assert_equal(float(code[row, k, 0]), float(expected))


def test_speed_is_in_kmh_and_its_change_looks_back_over_the_frames_between() -> None:
    told = pl.Series(SPEEDS, dtype=pl.Float32)
    speed, dynamics = (taken(name, ego_speed_kmh=told) for name in ("ego:speed", "ego:dynamics"))
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        rate = {"a": 10.0, "b": 20.0}[TRACKS[tube][0]]
        for k, frame in enumerate(frames):
            here = SPEEDS[row_of(tube, frame)]
            before = SPEEDS[row_of(tube, frames[k - 1])] if k else None
            apart = frame - frames[k - 1]
            change = np.nan
            if here is not None and before is not None and apart > 0:
                change = (here - before) / 3.6 / apart * rate
            kmh = np.nan if here is None else here
            np.testing.assert_allclose(speed[row, k], [kmh], rtol=1e-6)
            expected = [kmh / 3.6, change, np.nan, float(here is not None)]
            np.testing.assert_allclose(dynamics[row, k], expected, rtol=1e-5)


def test_a_measured_acceleration_goes_before_one_worked_out() -> None:
    measured = pl.Series([0.5] * 19 + [None], dtype=pl.Float32)
    turning = pl.Series(np.linspace(0, 1, 20), dtype=pl.Float32)
    told = pl.Series(SPEEDS, dtype=pl.Float32)
    found = taken(
        "ego:dynamics", ego_speed_kmh=told, ego_acceleration_mps2=measured, ego_yaw_rate_radps=turning
    )
    assert (found[..., 1] == 0.5).all()
    assert found[0, :, 2] == pytest.approx([k / 19 for k in OBSERVED[10][1]])


def test_without_a_frame_rate_no_acceleration_is_made_up() -> None:
    told = pl.Series(SPEEDS, dtype=pl.Float32)
    bare = walks(frames={"ego_speed_kmh": told}, videos={"fps": pl.Series([None, 20.0], dtype=pl.Float32)})
    with pytest.raises(InputError, match=r"frame rate of \['a'\] is unknown"):
        build_inputs(bare, "train", ["ego:dynamics"])


def test_the_sensors_come_as_they_are_and_filtered_by_the_observation_alone() -> None:
    t = np.arange(2 * FRAMES)
    slow, fast = np.sin(t / 9), 0.5 * (-1.0) ** t
    told = {c: pl.Series(slow + fast + k, dtype=pl.Float32) for k, c in enumerate(OBD)}
    raw = taken("ego:obd", **told)
    assert raw[1, :, 3] == pytest.approx((slow + fast + 3)[10:15], abs=1e-5)
    b_alone = walks(frames=told, videos={"fps": pl.Series([30.0, 30.0], dtype=pl.Float32)})
    smooth = build_inputs(b_alone, "train", ["ego:filtered"]).take(np.arange(4))["ego:filtered"]
    clean = (slow + 3)[11:14]
    assert np.abs(smooth[1, 1:4, 3] - clean).max() < np.abs(raw[1, 1:4, 3] - clean).max() / 4
    later = {c: s.set(pl.Series(t > 14), 100.0) for c, s in told.items()}
    shifted = walks(frames=later, videos={"fps": pl.Series([30.0, 30.0], dtype=pl.Float32)})
    again = build_inputs(shifted, "train", ["ego:filtered"]).take(np.arange(4))["ego:filtered"]
    np.testing.assert_array_equal(again[1], smooth[1])


@pytest.mark.parametrize(
    "name", ["ego:action", "ego:code", "ego:speed", "ego:dynamics", "ego:obd", "ego:filtered"]
)
def test_scenes_without_such_motion_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match="these scenes tell no") as caught:
        build_inputs(walks(), "train", [name])
    assert name in str(caught.value)
    told = pl.Series(ACTIONS, dtype=pl.String)
    if name not in ("ego:action", "ego:code"):
        with pytest.raises(InputError, match="they know ego:action"):
            build_inputs(walks(frames={"vehicle_action": told}), "train", [name])


def test_the_filter_needs_frames_fast_enough() -> None:
    told = {c: pl.Series(np.zeros(20), dtype=pl.Float32) for c in OBD}
    with pytest.raises(InputError, match="more than 10 frames per second, not 10"):
        build_inputs(walks(frames=told), "train", ["ego:filtered"])
