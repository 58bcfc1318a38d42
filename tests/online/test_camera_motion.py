"""The camera's motion is seen in the pixels, and taken out of what is expected of pedestrians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
from online_stubs import FakeClock, Scripted, StillCamera, answer
from scipy.ndimage import gaussian_filter, zoom
from small_predictors import predictor

import roadaware
from roadaware.errors import InputError
from roadaware.io.video import VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online.camera_motion import (
    CameraMotion,
    MotionEstimator,
    PixelMotion,
    Steadiness,
    measure_own_motion,
)
from roadaware.online.config import WatchConfig
from roadaware.online.crossing import CrossingAnnotator
from roadaware.online.crossing_forecaster import Foresight, open_foresight
from roadaware.online.forecast_event import Outlook, OutlookRule
from roadaware.online.frames import SourceFrame
from roadaware.online.watcher import Watcher

SIZE = (320, 180)
BUNDLED = Path(roadaware.__file__).parent / "weights" / "crossing-jaad.safetensors"
NOBODY = np.zeros((0, 4))
Picture = npt.NDArray[np.uint8]


def scenery(seed: int = 0) -> npt.NDArray[np.float64]:
    """(360, 4000) a street without end, in twice the size of the images."""
    rng = np.random.default_rng(seed)
    rough = sum(gaussian_filter(rng.normal(size=(360, 4000)), s) * s * 60 for s in (2, 6, 20))
    return np.clip(128 + np.asarray(rough), 0, 255)


STREET = scenery()


def shot(left: int, top: int = 0) -> Picture:
    """The image that begins at a place of the street, in half pixels."""
    cut = np.roll(STREET, -top, axis=0)[:, left : left + 2 * SIZE[0]]
    small = cut.reshape(SIZE[1], 2, SIZE[0], 2).mean(axis=(1, 3))
    return np.repeat(small[..., None], 3, axis=2).astype(np.uint8)


@pytest.mark.parametrize(("dx", "dy"), [(0, 0), (1, 0), (-3, 2), (40, 0), (-120, 8)])
def test_a_shift_of_the_picture_is_found(dx: int, dy: int) -> None:
    motion = PixelMotion()
    assert motion.step(shot(1000), NOBODY) == CameraMotion()
    found = motion.step(shot(1000 - dx, -dy), NOBODY)
    assert found.known
    assert (found.dx, found.dy) == pytest.approx((dx / 2, dy / 2), abs=0.15)
    assert found.scale == pytest.approx(1, abs=3e-3)


def test_growth_is_told_from_a_shift() -> None:
    grown = zoom(shot(1000)[..., 0].astype(float), 1.02, order=1)
    top, left = (grown.shape[0] - SIZE[1]) // 2, (grown.shape[1] - SIZE[0]) // 2
    picture = np.repeat(grown[top : top + SIZE[1], left : left + SIZE[0], None], 3, axis=2).astype(np.uint8)
    motion = PixelMotion()
    motion.step(shot(1000), NOBODY)
    found = motion.step(picture, NOBODY)
    assert found.known
    assert found.scale == pytest.approx(1.02, abs=4e-3)
    assert np.hypot(found.dx, found.dy) < 0.6


def test_a_bus_that_drives_through_a_still_picture_moves_no_camera() -> None:
    """It is large, and has texture of its own; with its box known, and without."""
    for boxes, within in ((np.array([[40.0, 40, 180, 180]]), 0.1), (NOBODY, 0.5)):
        motion = PixelMotion()
        for step in range(3):
            picture = shot(1000)
            picture[60:160, 60 + 6 * step : 160 + 6 * step] = shot(3000)[60:160, 60:160]
            found = motion.step(picture, boxes)
        assert found.known
        assert np.hypot(found.dx, found.dy) < within


def test_nothing_is_known_of_pictures_without_texture_or_without_anything_in_common() -> None:
    rng, motion = np.random.default_rng(0), PixelMotion()
    noise = [rng.integers(0, 255, (180, 320, 3), dtype=np.uint8) for _ in range(2)]
    flat = [np.full((180, 320, 3), grey, np.uint8) for grey in (90, 91)]
    tiny = [np.full((8, 8, 3), grey, np.uint8) for grey in (90, 91)]
    for before, now in (noise, flat, tiny, (shot(0), shot(3000)), (shot(0), tiny[0])):
        motion.step(before, NOBODY)
        assert not motion.step(now, NOBODY).known


def test_shaking_is_a_motion_that_changes_and_not_one_that_lasts() -> None:
    panning, shaking, lost = (Steadiness(0.5, 0.007) for _ in range(3))
    for frame in range(40):
        panning.add(frame / 30, CameraMotion(9.0, 0.0), SIZE)
        shaking.add(frame / 30, CameraMotion(3.0 * (-1) ** frame, 0.0), SIZE)
        lost.add(frame / 30, CameraMotion(known=frame != 30), SIZE)
    assert (panning.shaking, shaking.shaking, lost.shaking) == (False, True, True)
    for frame in range(40, 60):
        lost.add(frame / 30, CameraMotion(), SIZE)
    assert not lost.shaking


def _told(
    boxes: Sequence[Sequence[float]],
    pictures: Callable[[int], Picture],
    motion: MotionEstimator | None = None,
    foresight: Foresight | None = None,
    rule: OutlookRule | None = None,
    scores: Sequence[float] = (0.9, 0.05),
) -> tuple[list[Outlook | None], CrossingAnnotator]:
    """What is told of somebody, frame by frame, 30 a second."""
    clock, config = FakeClock(), WatchConfig()

    def found(frame: int) -> FrameDetections:
        return answer(frame, [boxes[frame]], [[*scores, 0.0, 0.5, 0.0]])

    asked = open_foresight([BUNDLED]) if foresight is None else foresight
    annotator = CrossingAnnotator(asked, rule, clock, motion)
    watcher = Watcher(Scripted(found), config, config.linker_at(30.0), clock, [annotator])
    told = []
    for n in range(len(boxes)):
        seen = watcher.step(SourceFrame(n, n / 30, pictures(n), clock.now_s()))[0]
        told.append(next((tube.outlook for tube in seen.tubes), None))
    return told, annotator


def _standing(frames: int, step: float) -> list[list[float]]:
    """Somebody at the roadside whom the image carries along, in pixels a frame."""
    return [[37.5 + step * n, 88, 49 + step * n, 118] for n in range(frames)]


@pytest.mark.slow
def test_a_camera_that_turns_makes_nobody_cross() -> None:
    """Turning alone drove somebody who stands at the roadside to more than nine in ten."""
    boxes = _standing(45, 0.5)
    before, _ = _told(boxes, lambda n: shot(2000), StillCamera())
    assert max(each.crossing or 0.0 for each in before if each) > 0.85
    now, annotator = _told(boxes, lambda n: shot(2000 - n))
    assert max(each.crossing or 0.0 for each in now if each) < 0.35
    assert not any(each.probable for each in now if each)
    still, _ = _told(_standing(45, 0.0), lambda n: shot(2000))
    pairs = [(a.crossing, b.crossing) for a, b in zip(now, still, strict=True) if a and b]
    assert np.abs([a - b for a, b in pairs if a is not None and b is not None]).max() < 0.25
    assert annotator.summary()["answers"] >= 30


def test_after_too_large_a_turn_crossing_is_unknown_until_the_camera_points_somewhere() -> None:
    steps = np.concatenate([np.full(30, 3.0), np.zeros(30)])
    left = np.cumsum(steps)
    boxes = [[37.5 + at, 88, 49 + at, 118] for at in left.tolist()]
    told, annotator = _told(boxes, lambda n: shot(2000 - round(2 * left[n])))
    assert not any(each.probable for each in told[:30] if each)
    assert told[29] is not None
    assert told[29].unknown == "turning"
    assert told[29].fields() == {"crossing": {"probable": False, "probability": None, "unknown": "turning"}}
    assert told[59] is not None
    assert told[59].unknown is None
    assert annotator.summary()["unknown"]["turning"]["count"] > 0


def test_somebody_who_walks_before_a_still_camera_is_answered_as_ever() -> None:
    boxes = [[100 + 0.6 * n, 88, 112 + 0.6 * n, 118] for n in range(40)]
    still, _ = _told(boxes, lambda n: shot(2000), StillCamera())
    seen, _ = _told(boxes, lambda n: shot(2000))
    for one, other in zip(still, seen, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.crossing, one.low, one.high) == (other.crossing, other.low, other.high)


def test_a_walk_is_told_alike_from_a_camera_that_turns_a_little() -> None:
    """What is left of the boxes is the walk: answers stay near those of a still camera."""
    walk = [[60 + 0.6 * n, 88, 72 + 0.6 * n, 118] for n in range(30)]
    turned = [[x1 - 0.5 * n, y1, x2 - 0.5 * n, y2] for n, (x1, y1, x2, y2) in enumerate(walk)]
    foresight = predictor()
    still, _ = _told(walk, lambda n: shot(2000), foresight=Foresight(foresight))
    seen, _ = _told(turned, lambda n: shot(2000 + n), foresight=Foresight(foresight))
    pairs = [(a.crossing, b.crossing) for a, b in zip(still, seen, strict=True) if a and b]
    assert len(pairs) > 20
    away = [abs(a - b) for a, b in pairs if a is not None and b is not None]
    assert np.median(away) < 0.1


def test_crossing_is_unknown_of_boxes_smaller_than_those_of_training() -> None:
    small = predictor(facts={"limits": {"height": 0.1}})
    for height, why in ((17, "small"), (19, None)):  # of 180 px
        boxes = [[100.0, 80, 106, 80 + height]] * 12
        told, annotator = _told(boxes, lambda n: shot(2000), foresight=Foresight(small))
        assert told[-1] is not None
        assert told[-1].unknown == why
        assert (told[-1].crossing is None) == (why is not None)
        counts = annotator.summary()["unknown"]
        assert counts["small"]["count"] == (6 if why else 0)
        assert counts["short"]["count"] == 6


def test_crossing_is_unknown_while_the_camera_shakes() -> None:
    at = 4 * np.random.default_rng(0).integers(-3, 4, 30)
    boxes = [[100 + x / 2, 88, 124 + x / 2, 118] for x in at.tolist()]
    told, _ = _told(boxes, lambda n: shot(2000 - at[n]))
    assert told[-1] is not None
    assert told[-1].unknown == "shaking"


def test_only_those_who_are_pedestrians_with_the_stated_probability_are_asked_about() -> None:
    boxes = _standing(20, 0.0)
    for scores, asked in (((0.9, 0.05), True), ((0.5, 0.45), False), ((0.4, 0.2), True)):
        told, annotator = _told(boxes, lambda n: shot(2000), scores=scores)
        assert (told[-1] is not None) == asked
        assert annotator.summary()["pedestrians"] == int(asked)
    lenient = replace(OutlookRule(), probability=0.5)
    assert _told(boxes, lambda n: shot(2000), rule=lenient, scores=(0.5, 0.45))[0][-1] is not None


def write_street(path: Path, fps: float, moves: Callable[[float], bool]) -> Path:
    """4 s of a street that goes by sideways where the vehicle moves, with noise, and something that moves all the time."""
    rng = np.random.default_rng(0)
    wide = np.repeat(np.repeat(rng.integers(40, 220, (15, 120, 3)), 8, axis=0), 8, axis=1).astype(np.float64)
    with VideoWriter(path, 160, 120, fps) as film:
        place = 0.0
        for number in range(round(4 * fps)):
            place += (40.0 / fps) * moves(number / fps)
            image = wide[:, round(place) : round(place) + 160] + rng.normal(0, 3, (120, 160, 3))
            x = 10 + 2 * number % 100
            image[40:70, x : x + 30] = 255
            film.write(image.clip(0, 255).astype(np.uint8))
    return path


@pytest.mark.parametrize("fps", [5.0, 10.0, 25.0])
def test_whether_the_vehicle_stands_is_seen_in_the_images(tmp_path: Path, fps: float) -> None:
    found = measure_own_motion(write_street(tmp_path / "street.mp4", fps, lambda t_s: t_s > 2))
    t_s, standing = found["t_s"].to_numpy(), found["standing"].to_numpy().astype(np.float64)
    assert np.allclose(np.diff(t_s), 0.2, atol=0.05)
    assert np.isnan(standing[0])
    # A median of three comes a step later.
    assert (standing[(t_s > 0.1) & (t_s < 2)] > 0.9).all()
    assert (standing[t_s > 2.5] < 0.1).all()


def test_images_without_texture_do_not_tell_whether_the_vehicle_stands(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "fog.mp4", 160, 120, 10.0) as film:
        for _ in range(20):
            film.write(np.full((120, 160, 3), 90, np.uint8))
    found = measure_own_motion(tmp_path / "fog.mp4")
    assert len(found) == 10
    assert found["standing"].null_count() == 10


def write_late(path: Path, begins_s: float, fps: int = 5) -> Path:
    """The street that stands, whose first frame is shown so late by the clock of the file."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=fps)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        street = np.repeat(np.repeat(np.random.default_rng(0).integers(0, 255, (15, 20, 3)), 8, 0), 8, 1)
        for number in range(3 * fps):
            frame = av.VideoFrame.from_ndarray(street.astype(np.uint8))
            frame.pts, frame.time_base = round(begins_s * fps) + number, Fraction(1, fps)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(("name", "begins_s"), [("late.mkv", 10.0), ("plain.avi", 0.0), ("late.ts", 4.0)])
def test_times_of_standing_are_those_of_a_watch_whatever_the_file(
    tmp_path: Path, name: str, begins_s: float
) -> None:
    found = measure_own_motion(write_late(tmp_path / name, begins_s))
    assert np.allclose(found["t_s"].to_numpy(), np.arange(15) * 0.2, atol=0.02)
    assert found["standing"][1:].to_list() == [1.0] * 14


def test_images_that_are_far_apart_do_not_tell_whether_the_vehicle_stands(tmp_path: Path) -> None:
    assert measure_own_motion(write_late(tmp_path / "slow.mkv", 0.0, fps=2))["standing"].null_count() == 6


def test_a_film_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.mp4").write_bytes(b"no film")
    for name in ("none.mp4", "nowhere.mp4"):
        with pytest.raises(InputError, match=name):
            measure_own_motion(tmp_path / name)
