"""Joints: limbs keep their lengths, left is left, feet that carry do not slide, heads follow the gaze."""

import numpy as np
import pytest
from people_cast import MACHINES, SIZES, person

from roadaware.errors import UsageError
from roadaware.simulator.actors import Pose
from roadaware.simulator.people import build_body_mesh, compute_joints, compute_stride, get_saddle, stride_m

NOSE, LEFT_EYE, RIGHT_EYE = 0, 1, 2
ELBOWS, WRISTS, KNEES, ANKLES = slice(7, 9), slice(9, 11), slice(13, 15), slice(15, 17)
LIMBS = ((5, 7), (7, 9), (6, 8), (8, 10), (11, 13), (13, 15), (12, 14), (14, 16))
SIDES_STAY = (Pose.STAND, Pose.WALK, Pose.RUN, Pose.PUSH_OBJECT, Pose.LIE, Pose.KNEEL, Pose.FILM, Pose.CLAP)


def lengths(points):
    return np.array([np.linalg.norm(points[a] - points[b]) for a, b in LIMBS])


@pytest.mark.slow
@pytest.mark.parametrize("model", SIZES)
def test_limbs_keep_their_lengths_in_every_pose_and_are_alike_on_both_sides(model):
    usual = lengths(compute_joints(person(model), 0))
    assert usual[:2] == pytest.approx(usual[2:4])
    assert usual[4:6] == pytest.approx(usual[6:8])
    for pose in Pose:
        actor = person(model, pose)
        for frame in range(0, 24, 5):
            assert lengths(compute_joints(actor, frame)) == pytest.approx(usual, abs=1e-6), pose


def test_limbs_keep_their_lengths_while_one_pose_goes_over_into_the_next():
    usual = lengths(compute_joints(person(), 0))
    for pose in Pose:
        actor = person(pose=[Pose.STAND] * 8 + [pose] * 8 + [Pose.LIE] * 8)
        points = np.array([compute_joints(actor, frame) for frame in range(24)])
        assert all(lengths(row) == pytest.approx(usual, abs=1e-6) for row in points)


def test_a_new_pose_is_taken_in_six_frames_without_a_jump():
    still = np.zeros(24)
    actor = person(pose=[Pose.STAND] * 12 + [Pose.FLINCH] * 12, gait=still)
    before, after = (
        compute_joints(person(gait=still), 0),
        compute_joints(person(pose=Pose.FLINCH, gait=still), 0),
    )
    assert compute_joints(actor, 11) == pytest.approx(before)
    assert compute_joints(actor, 17) == pytest.approx(after)
    steps = [np.abs(compute_joints(actor, k + 1) - compute_joints(actor, k)).max() for k in range(11, 17)]
    assert max(steps) < 0.7 * np.abs(after - before).max()
    assert min(steps) > 0


@pytest.mark.parametrize("pose", SIDES_STAY)
def test_left_is_left(pose):
    actor = person(pose=pose)
    for frame in range(0, 24, 3):
        points = compute_joints(actor, frame)
        for left in (3, 5, 7, 11, 15) if pose not in (Pose.FILM, Pose.CLAP, Pose.RUN) else (3, 5, 11, 15):
            assert points[left, 1] > points[left + 1, 1], left


def test_the_world_turns_and_shifts_the_joints():
    here = compute_joints(person(pose=Pose.WALK), 3)
    place = np.tile([5.0, -2.0, 0.5], (24, 1))
    there = compute_joints(person(pose=Pose.WALK, position=place, heading=np.full(24, np.pi / 2)), 3)
    turned = np.stack([-here[:, 1], here[:, 0], here[:, 2]], axis=1)
    assert there == pytest.approx(turned + place[0])


@pytest.mark.parametrize("gaze", [-1.2, -0.4, 0.0, 0.7, 1.3])
@pytest.mark.parametrize("pose", [Pose.STAND, Pose.WALK, Pose.RUN])
def test_the_gaze_turns_the_nose(gaze, pose):
    for frame in (0, 7, 15):
        points = compute_joints(person(pose=pose, gaze=gaze), frame)
        ahead = points[NOSE] - 0.5 * (points[3] + points[4])
        assert np.arctan2(ahead[1], ahead[0]) == pytest.approx(gaze, abs=0.05)
        eyes = points[LEFT_EYE] - points[RIGHT_EYE]
        assert np.arctan2(-eyes[0], eyes[1]) == pytest.approx(gaze, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "pose"), [(m, p) for m in SIZES for p in (Pose.WALK, Pose.RUN)])
def test_a_foot_that_carries_stays_where_it_is(model, pose):
    frames = 48
    gait = np.linspace(0, 2 * np.pi, frames, endpoint=False)
    actor = person(model, pose, gait, look=12)
    ankles = np.array([compute_joints(actor, frame)[ANKLES] for frame in range(frames)])
    ankles[:, :, 0] += (gait / (2 * np.pi) * stride_m(actor, pose))[:, None]
    lowest = np.array([build_body_mesh(actor, frame).vertices[:, 2].min() for frame in range(frames)])
    assert lowest.min() > -0.03
    assert lowest.max() < (0.03 if pose == Pose.WALK else 0.06)
    flat = slice(6, 15) if pose == Pose.WALK else slice(3, 7)
    for side, turn in enumerate((0, frames // 2)):
        track = np.roll(ankles[:, side], -turn, axis=0)[flat]
        assert np.ptp(track[:, 0]) < 0.06
        assert np.ptp(track[:, 2]) < 0.03


def test_arms_swing_against_the_legs():
    actor = person(pose=Pose.WALK)
    swing = np.array([compute_joints(actor, frame)[9:11, 0] for frame in range(24)])
    steps = np.array([compute_joints(actor, frame)[15:17, 0] for frame in range(24)])
    for side in (0, 1):
        assert np.corrcoef(swing[:, side], steps[:, side])[0, 1] < -0.8
        assert np.corrcoef(swing[:, side], steps[:, 1 - side])[0, 1] > 0.8


def test_running_takes_longer_strides_and_the_tall_walk_farther():
    assert stride_m(person("adult_a")) == pytest.approx(1.5, abs=0.1)
    assert stride_m(person("adult_a"), Pose.RUN) == pytest.approx(2.8, abs=0.2)
    assert stride_m(person("child")) < stride_m(person("senior")) < stride_m(person("adult_c"))
    assert compute_stride("adult_a", 1.8) == stride_m(person("adult_a"))
    assert compute_stride("young", 1.62, running=True) == stride_m(person("young"), Pose.RUN)


@pytest.mark.parametrize("model", MACHINES)
def test_riders_hold_the_handles_and_their_feet_follow_the_pedals(model):
    actor = person(model, Pose.RIDE, speed=5.0)
    touch = get_saddle(actor)
    for frame in range(0, 24, 4):
        points = compute_joints(actor, frame)
        for side, sign in enumerate((1, -1)):
            handle = np.array([touch.grips[0], sign * touch.grips[1], touch.grips[2]])
            assert np.linalg.norm(points[WRISTS][side] - handle) < 0.17
            angle = actor.gait[frame] + np.pi * side
            pedal_x = touch.crank[0] + touch.crank_m * np.sin(angle)
            pedal_z = touch.crank[1] + touch.crank_m * np.cos(angle)
            assert np.hypot(points[ANKLES][side][0] - pedal_x, points[ANKLES][side][2] - pedal_z) < 0.22
            assert points[KNEES][side][0] > points[ANKLES][side][0] - 0.1


def test_a_rider_who_stands_still_puts_a_foot_on_the_ground():
    rolling, still = (person("bicycle", Pose.RIDE, speed=speed) for speed in (4.0, 0.0))
    assert compute_joints(rolling, 12)[15, 2] > 0.12
    assert compute_joints(still, 0)[15, 2] < 0.12


def test_who_waves_while_walking_walks_on():
    walking = compute_joints(person(pose=Pose.WALK), 4)
    waving = compute_joints(person(pose=Pose.WAVE, speed=1.3), 4)
    assert waving[ANKLES] == pytest.approx(walking[ANKLES])
    assert waving[10, 2] > waving[NOSE, 2]


def test_nobody_has_joints_in_a_frame_they_are_not_in():
    with pytest.raises(UsageError, match="actor 0 is in the scene from frame 0 to 24, not in 24"):
        compute_joints(person(), 24)
    with pytest.raises(UsageError, match="not in -1"):
        build_body_mesh(person(), -1)


@pytest.mark.parametrize(("signal", "wrist", "side"), [(1, 9, 1), (-1, 10, -1)])
def test_cyclists_hold_out_the_arm_of_the_side_they_signal_and_others_never_do(signal, wrist, side):
    told = {"signals": np.r_[np.zeros(8), np.full(16, signal)].astype(np.int8)}
    rider = person("bicycle", Pose.RIDE, speed=4.0, facts=told)
    before, after = compute_joints(rider, 7), compute_joints(rider, 20)
    assert side * (after[wrist, 1] - after[wrist - 4, 1]) > 0.5
    assert 0 < after[wrist, 2] - after[wrist - 4, 2] < 0.3
    assert after[19 - wrist, 1] == pytest.approx(before[19 - wrist, 1], abs=0.05)
    moped = person("scooter", Pose.RIDE, speed=4.0, facts=told)
    assert abs(compute_joints(moped, 20)[wrist, 1]) < 0.5


def test_who_waits_to_cross_sets_a_foot_to_the_kerb_and_leans_out():
    told = {"waiting": np.r_[np.zeros(8), np.ones(16)].astype(np.int8)}
    waits = person(facts=told, gait=np.zeros(24))
    idle, ready = compute_joints(waits, 7), compute_joints(waits, 20)
    assert ready[15, 0] - ready[16, 0] > 0.25 > abs(idle[15, 0] - idle[16, 0])
    assert ready[NOSE, 0] - idle[NOSE, 0] > 0.08
