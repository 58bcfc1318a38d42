"""Features of tubes: lines as by hand, scale and rate without effect, speeds of a world that is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from plain_lines import weighted_line

from roadaware.errors import UsageError
from roadaware.models.event_head import head as at
from roadaware.models.event_head.features import Motion, TubeFeatures
from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES

AGENTS = ("Ped", "Car", "TL")
FOCAL, SIZE, HEIGHT = 500.0, (640, 480), 1.5
Floats = npt.NDArray[np.float64]


def box_at(x_m: float, z_m: float, high_m: float, wide_m: float, scale: float = 1.0) -> list[float]:
    """Pixels of somebody who stands on the ground before a level camera."""
    u, foot = FOCAL * x_m / z_m, FOCAL * HEIGHT / z_m
    sides = (320 + u - FOCAL * wide_m / z_m / 2, 240 + foot - FOCAL * high_m / z_m)
    return [scale * s for s in (*sides, 320 + u + FOCAL * wide_m / z_m / 2, 240 + foot)]


def scores_of(*agents: str) -> npt.NDArray[np.float32]:
    return np.array([[0.9 * (name == each) + 0.02 for name in AGENTS] for each in agents], np.float32)


def drive(
    fps: float,
    seconds: float,
    *,
    scale: float = 1.0,
    own_mps: float = 8.0,
    told: bool = True,
    mirrored: bool = False,
) -> tuple[Floats, Floats]:
    """A car that stands, one that comes and one that goes ahead, and somebody who crosses; the last frame."""
    features = TubeFeatures(AGENTS)
    motion = Motion(0.0, 0.0, own_mps) if told else None
    size = (round(scale * SIZE[0]), round(scale * SIZE[1]))
    rows, scene = np.zeros((0, 0)), np.zeros(0)
    for frame in range(round(seconds * fps) + 1):
        t = frame / fps
        worlds = [
            (3.5, 40 - own_mps * t, 1.5, 1.8),
            (-3.5, 60 - (own_mps + 10) * t, 1.5, 1.8),
            (0.0, 15 + (10 - own_mps) * t, 1.5, 1.8),
            (-5 + 1.5 * t, 30 - own_mps * t, 1.7, 0.6),
        ]
        boxes = np.array([box_at(-x if mirrored else x, z, h, w, scale) for x, z, h, w in worlds])
        rows, scene = features.step(
            t, np.arange(4), boxes, scores_of("Car", "Car", "Car", "Ped"), size, motion, scale * FOCAL
        )
    return rows, scene


def column(name: str) -> int:
    return FEATURES.index(name)


def test_every_column_has_a_name_and_is_finite() -> None:
    rows, scene = drive(10, 2)
    assert rows.shape == (4, len(FEATURES))
    assert scene.shape == (len(SCENE_FEATURES),)
    assert np.isfinite(rows).all()
    assert np.isfinite(scene).all()
    assert rows[0, column("near.still_outside")] >= 0
    assert len(set(FEATURES)) == len(FEATURES)


def test_speeds_are_those_of_the_world_where_the_own_motion_is_known() -> None:
    # Lines through logarithms of heights lag behind whoever comes near fast: hence a slow camera.
    rows, _ = drive(12, 2, own_mps=3.0)
    forwards = np.sign(rows[:, column("ego.vf_fast")]) * np.expm1(np.abs(rows[:, column("ego.vf_fast")]))
    assert (np.abs(forwards - [0, -10, 10, 0]) < [0.6, 3.5, 1.2, 0.6]).all()
    across = np.sign(rows[3, column("ego.vx_slow")]) * np.expm1(np.abs(rows[3, column("ego.vx_slow")]))
    assert across == pytest.approx(1.5, abs=0.5)


def test_a_turning_camera_moves_nobody() -> None:
    features = TubeFeatures(AGENTS)
    rows = np.zeros((1, len(FEATURES)))
    for frame in range(30):
        t, yaw = frame / 15, 0.2
        # A turn to the left by an angle brings what stood ahead that angle to the right.
        place = 20 * np.tan(yaw * t - 0.2)
        boxes = np.array([box_at(place, 20.0, 1.7, 0.6)])
        rows, _ = features.step(
            t, np.zeros(1, np.int64), boxes, scores_of("Ped"), SIZE, Motion(yaw, 0, 0), FOCAL
        )
    assert abs(rows[0, column("motion.u_slow")]) > 0.6
    assert abs(rows[0, column("ego.pan_slow")]) < 0.05
    assert abs(rows[0, column("ego.vx_slow")]) < 0.3


def test_pictures_of_another_size_say_the_same() -> None:
    one, other = drive(12, 1.5), drive(12, 1.5, scale=2.5)
    assert np.abs(one[0] - other[0]).max() < 1e-6
    assert np.abs(one[1] - other[1]).max() < 1e-6


def test_the_frame_rate_hardly_matters() -> None:
    slow, fast = drive(10, 2)[0], drive(30, 2)[0]
    kept = [k for k, name in enumerate(FEATURES) if name not in ("motion.count", "motion.gap")]
    assert np.abs(slow - fast)[:, kept].max() < 0.45
    assert np.abs(slow - fast)[:, kept].mean() < 0.02


def test_a_mirror_turns_sideways_columns_round() -> None:
    one, other = drive(12, 1.5)[0], drive(12, 1.5, mirrored=True)[0]
    for name in ("place.u", "motion.u_slow", "ego.vx_slow", "ego.x_mean_1", "near.dx_1"):
        assert np.abs(one[:, column(name)] + other[:, column(name)]).max() < 1e-6, name
    for name in ("ego.vf_slow", "place.log_height", "near.corridor_vf", "near.flow_own"):
        assert np.abs(one[:, column(name)] - other[:, column(name)]).max() < 1e-6, name


def test_lines_are_those_through_the_whole_past() -> None:
    rng = np.random.default_rng(3)
    features, times, places = TubeFeatures(("Car",)), [], []
    t = 5.0
    for _ in range(40):
        t += float(rng.uniform(0.02, 0.4))
        x, y, w, h = rng.uniform(50, 300), rng.uniform(50, 200), rng.uniform(20, 90), rng.uniform(20, 90)
        features.step(
            t, np.array([7]), np.array([[x, y, x + w, y + h]]), np.ones((1, 1), np.float32), SIZE, None, FOCAL
        )
        times.append(t)
        places.append((x + w / 2 - SIZE[0] / 2) / FOCAL)
    row = features._tubes[features._rows[7]]
    for s, tau in enumerate(at.SCALES_S):
        value, slope = weighted_line(times, places, tau, 0.08**2)
        assert row[at.NOW_SLOPES + s * at.N_QUANTITIES + at.U] == pytest.approx(slope, rel=1e-8)
        if s == 0:
            assert row[at.NOW_U] == pytest.approx(value, rel=1e-8)


def test_the_horizon_is_found_by_people_of_usual_height() -> None:
    features, pitch = TubeFeatures(AGENTS), 0.12
    rng = np.random.default_rng(0)
    for frame in range(120):
        boxes = []
        for z in rng.uniform(8, 40, 4):
            x1, y1, x2, y2 = box_at(float(rng.uniform(-4, 4)), float(z), 1.7, 0.6)
            boxes.append([x1, y1 - pitch * FOCAL, x2, y2 - pitch * FOCAL])
        numbers = np.arange(4) + 4 * frame
        features.step(
            frame / 12, numbers, np.array(boxes), scores_of("Ped", "Ped", "Ped", "Ped"), SIZE, None, FOCAL
        )
        features.end(numbers.tolist())
    horizon, height = features.horizon
    assert horizon == pytest.approx(-pitch, abs=0.02)
    assert height == pytest.approx(HEIGHT, abs=0.15)


def test_memory_stays_as_large_as_the_tubes_that_live() -> None:
    features = TubeFeatures(AGENTS)
    for frame in range(300):
        numbers = np.arange(3) + 3 * frame
        boxes = np.array([box_at(k, 20, 1.5, 1.8) for k in range(3)])
        features.step(frame / 12, numbers, boxes, scores_of("Car", "Car", "Car"), SIZE)
        features.end(numbers.tolist())
    assert features.n_tubes == 0
    assert len(features._tubes) == 16


def test_a_row_that_is_used_again_remembers_nothing() -> None:
    def told(before: bool) -> Floats:
        features = TubeFeatures(AGENTS)
        if before:
            for frame in range(5):
                features.step(
                    frame / 10 - 1, np.array([1]), np.array([[9.0, 9, 99, 200]]), scores_of("TL"), SIZE
                )
            features.end([1])
        features.reset()
        return features.step(0.0, np.array([2]), np.array([[100.0, 200, 150, 260]]), scores_of("Car"), SIZE)[
            0
        ]

    assert np.array_equal(told(before=True), told(before=False))


def test_detectors_without_agents_of_road_are_refused() -> None:
    with pytest.raises(UsageError, match="this detector knows zebra"):
        TubeFeatures(("zebra",))
