"""Frames of a watch as they are drawn: size, colours, words and where they stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from roadaware.online.forecast_event import Outlook
from roadaware.online.frames import SourceFrame
from roadaware.online.tubes import LabelRule, LiveTube, Smoothed
from roadaware.reports.drawing import COLOURS
from roadaware.reports.lettering import Letters
from roadaware.reports.live_drawing import (
    LiveDrawing,
    _draw_leader,
    _place_sign,
    describe_forecast,
    describe_tube,
    draw_gauge,
    draw_strip,
    get_risk_colour,
)
from roadaware.scenes.dense_scores import Layout

KINDS = Layout(
    {"agent": ("Ped", "Car"), "action": ("Stop", "Mov"), "location": ("VehLane",), "event": ("Car-Mov",)}
)


def _tube(box: tuple[float, float, float, float], scores: list[float], number: int = 7) -> LiveTube:
    labels = Smoothed(KINDS, LabelRule())
    labels.add(np.array(scores, np.float32), 0.0)
    return LiveTube(number, 0, 0.0, labels, box=np.array(box), count=3, total=2.7, notes={"crossing": 0.25})


def _seen(tubes: list[LiveTube], size: tuple[int, int], vehicle: dict[str, float] | None = None) -> Any:
    frame = SourceFrame(12, 1.0, np.full((*size, 3), 128, np.uint8), 0.0)
    return SimpleNamespace(frame=frame, tubes=tubes, vehicle=vehicle or {}, doing=["AV-Mov"])


def test_words_say_number_agent_doing_place_event_and_notes() -> None:
    tube = _tube((0, 0, 9, 9), [0.1, 0.9, 0.0, 0.6, 0.5, 0.4])
    assert describe_tube(tube) == ("#7 Car 90", "Mov · VehLane", "Car-Mov", "crossing 0.25")
    assert describe_tube(_tube((0, 0, 9, 9), [0.0] * 6)) == ("#7", "crossing 0.25")


@pytest.mark.parametrize(
    ("size", "scale"), [((240, 320), 2), ((960, 1280), 1), ((96, 128), 5), ((481, 640), 1)]
)
def test_small_pictures_are_drawn_larger_and_boxes_in_the_colour_of_their_agent(
    size: tuple[int, int], scale: int
) -> None:
    high, wide = size
    box = (0.5 * wide, 0.5 * high, 0.75 * wide, 0.75 * high)
    drawn = LiveDrawing(("Ped", "Car"))(_seen([_tube(box, [0.1, 0.9, 0, 0, 0, 0])], size))
    assert drawn.shape == (high * scale, wide * scale, 3)
    edge = drawn[int(0.6 * high * scale), int(box[0] * scale) : int(box[0] * scale) + 3].astype(int)
    assert np.abs(edge - COLOURS[1]).sum(axis=1).min() < 30
    inside = drawn[int(0.7 * high * scale), int(0.7 * wide * scale)]
    assert inside.tolist() == [128, 128, 128]


def test_the_bar_of_the_vehicle_is_as_long_as_its_scores() -> None:
    vehicle = {"AV-Stop": 0.25, "AV-Mov": 1.0}
    drawn = LiveDrawing()(_seen([], (480, 640), vehicle))
    row = drawn[-2].astype(int)
    dark = (row == 16).all(axis=1)
    assert dark[:320].mean() == pytest.approx(0.75, abs=0.02)
    assert dark[320:].mean() < 0.02
    assert (LiveDrawing()(_seen([], (480, 640)))[-2] == 128).all()


def test_a_notice_stands_on_every_frame_and_in_the_way_of_nothing() -> None:
    words = "detector trained on synthetic scenes alone; not validated on real roads"
    for size in ((480, 640), (48, 64), (480, 240)):
        plain, noticed = (LiveDrawing(("Ped",), notice)(_seen([], size)) for notice in ("", words))
        rows = np.flatnonzero((plain != noticed).any(axis=(1, 2)))
        assert 5 < len(rows) < 0.4 * len(plain)  # a line, or a few where the image is narrow
        assert rows.max() < 0.4 * len(plain)
        yellow = (noticed[..., 0] > 200) & (noticed[..., 2] < 120)
        assert yellow.sum() > 50


def _signs(tubes: list[LiveTube]) -> list[tuple[int, tuple[str, ...], tuple[float, float, float, float]]]:
    """Number, words and room of each sign, in the order of the tubes."""
    taken = list[tuple[float, float, float, float]]()
    found = []
    for tube in tubes:
        placed = _place_sign(tube, 1, (640, 480), Letters(11), taken)
        if placed is not None:
            taken.append(placed[1])
            found.append((tube.number, placed[0].lines, placed[1]))
    return found


def _overlap(one: tuple[float, float, float, float], two: tuple[float, float, float, float]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def test_signs_do_not_cover_each_other_and_a_crowd_leaves_some_without_words() -> None:
    labels = [0.9, 0, 0.9, 0, 0, 0]
    few = _signs([_tube((100 + 20 * n, 200, 140 + 20 * n, 260), labels, n) for n in range(3)])
    many = _signs([_tube((300 + n, 200, 340 + n, 260), labels, n) for n in range(60)])
    assert len(few) == 3
    assert 5 < len(many) < 60
    for placed in (few, many):
        rooms = [room for _, _, room in placed]
        assert not any(_overlap(a, b) for k, a in enumerate(rooms) for b in rooms[:k])


def test_little_is_written_of_a_far_tube() -> None:
    labels = [0.9, 0, 0.9, 0, 0, 0]
    near, far = _signs([_tube((100, 100, 140, 180), labels, 0), _tube((400, 100, 420, 120), labels, 1)])
    assert (near[1], far[1]) == (("#0 Ped 90", "Stop", "crossing 0.25"), ("#1 Ped 90",))


def test_a_sign_that_stands_apart_is_joined_to_its_box_by_a_line() -> None:
    canvas = Image.new("RGB", (200, 100))
    _draw_leader(ImageDraw.Draw(canvas), (10, 10, 20, 20), (100, 60, 140, 80), (255, 0, 0))
    joined = np.argwhere(np.asarray(canvas)[..., 0] > 0)
    assert joined.min(axis=0).tolist() == [20, 20]
    assert joined.max(axis=0).tolist() == [60, 100]
    beside = Image.new("RGB", (200, 100))
    _draw_leader(ImageDraw.Draw(beside), (10, 30, 50, 60), (10, 10, 90, 30), (255, 0, 0))
    assert not np.asarray(beside).any()


def test_a_gauge_is_filled_as_far_as_crossing_is_probable() -> None:
    for x1, left in ((100.0, True), (2.0, False)):  # beside the box, where there is room
        image = Image.new("RGB", (640, 480), (128, 128, 128))
        area = draw_gauge(ImageDraw.Draw(image), (x1, 100, x1 + 40, 200), Outlook(crossing=0.7), image.size)
        assert area is not None
        assert (area[2] < x1) == left
        column = np.asarray(image)[101:200, round((area[0] + area[2]) / 2)]
        filled = (column == get_risk_colour(0.7)).all(axis=1)
        assert filled.mean() == pytest.approx(0.7, abs=0.03)
        assert filled[-1]
        assert not filled[0]
    assert draw_gauge(ImageDraw.Draw(image), (9, 9, 20, 30), Outlook(), image.size) is None


def test_an_interval_is_drawn_and_a_small_box_has_a_gauge_that_can_be_read() -> None:
    image = Image.new("RGB", (640, 480))
    outlook = Outlook(crossing=0.5, low=0.25, high=0.75)
    area = draw_gauge(ImageDraw.Draw(image), (300, 200, 306, 210), outlook, image.size)
    assert area is not None
    assert area[3] - area[1] == 24
    white = (np.asarray(image)[:, round((area[0] + area[2]) / 2)] == 255).all(axis=1)
    assert np.flatnonzero(white)[[0, -1]].tolist() == [192, 204]


def test_the_strip_shows_where_somebody_will_be() -> None:
    image = Image.new("RGB", (640, 480))
    both = [Outlook(regions=(0.9, 0.1, 0.0, 0.0), region=0), Outlook(regions=(0.0, 0.2, 0.0, 0.8), region=3)]
    assert draw_strip(ImageDraw.Draw(image), both, 400, image.size) is not None
    row = np.asarray(image)[396, [80, 240, 400, 560], 0].astype(int)
    assert row[0] > row[3] > row[1] > row[2]
    assert draw_strip(ImageDraw.Draw(image), [Outlook(crossing=0.5)], 400, image.size) is None


def test_pedestrians_say_how_probably_they_cross_also_when_they_are_far() -> None:
    tube = _tube((100, 100, 104, 110), [0.9, 0, 0, 0.6, 0, 0])
    plain = LiveDrawing(("Ped", "Car"))(_seen([tube], (480, 640)))
    tube.outlook = Outlook(crossing=0.714)
    assert describe_forecast(tube.outlook) == "crosses 71 %"
    told = LiveDrawing(("Ped", "Car"))(_seen([tube], (480, 640)))
    near = np.abs(told.astype(int) - np.array(get_risk_colour(0.714))).sum(axis=2) < 60
    assert near.sum() > 30
    assert (told != plain).any()
    assert describe_forecast(Outlook(regions=(1.0,), region=0)) is None
    assert get_risk_colour(0.0)[1] > get_risk_colour(0.0)[0]
    assert get_risk_colour(1.0)[0] > 200 > get_risk_colour(1.0)[1]
