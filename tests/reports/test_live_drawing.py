"""Frames of a watch as they are drawn: size, colours, words and where they stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from roadaware.online.frames import SourceFrame
from roadaware.online.labels import LabelRule, Smoothed
from roadaware.online.tubes import LiveTube
from roadaware.reports.drawing import COLOURS
from roadaware.reports.live_drawing import LiveDrawing, words_of
from roadaware.scenes.dense import Layout

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
    assert words_of(tube) == ("#7 Car 90", "Mov · VehLane", "Car-Mov", "crossing 0.25")
    assert words_of(_tube((0, 0, 9, 9), [0.0] * 6)) == ("#7", "crossing 0.25")


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


def test_signs_of_neighbours_do_not_cover_each_other() -> None:
    tubes = [_tube((100 + 20 * n, 200, 140 + 20 * n, 260), [0.9, 0, 0, 0, 0, 0], n) for n in range(3)]
    from PIL import Image, ImageDraw

    taken: list[tuple[float, float, float, float]] = []
    drawing, image = LiveDrawing(("Ped",)), Image.new("RGB", (640, 480))
    from roadaware.reports.drawing import font_of

    for tube in tubes:
        drawing._sign(ImageDraw.Draw(image), tube, 1, image.size, font_of(11), taken)
    for a in range(3):
        for b in range(a):
            one, two = taken[a], taken[b]
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
