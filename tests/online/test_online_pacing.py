"""Boxes at an even rate, and what is told of pedestrians: worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.online.forecast_event import IMPROBABLE, PROBABLE, REGION, Outlook, OutlookRule, list_changes
from roadaware.tasks.resampling import Line, Pace, Paced


def box(x: float) -> np.ndarray:
    return np.array([x, 0.0, x + 10, 20.0])


def walked(times: list[float], pace: Pace | None = None) -> list[tuple[list[float], bool]]:
    """Left edges of the even frames that each box brought; somebody walks at 30 pixels a second."""
    paced = Paced(pace or Pace())
    found = [paced.add(t, box(30 * t)) for t in times]
    return [([round(float(x), 6) for x in frames[:, 0]], anew) for frames, anew in found]


def test_twelve_frames_a_second_become_thirty() -> None:
    """Even frames lie 1/30 s apart, so 1 pixel; none is known before the box behind it."""
    found = walked([0.0, 1 / 12, 2 / 12, 3 / 12])
    assert [frames for frames, _ in found] == [[0.0], [1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0]]
    assert [anew for _, anew in found] == [True, False, False, False]


@pytest.mark.parametrize("fps", [30.0, 29.97, 30.2])
def test_a_film_of_that_rate_gives_its_own_boxes(fps: float) -> None:
    """Also with time stamps in whole milliseconds, and however long it is."""
    times = [round(n / fps, 3) for n in range(400)]
    assert walked(times) == [([round(30 * t, 6)], n == 0) for n, t in enumerate(times)]


def test_of_twice_the_rate_every_second_box_is_taken() -> None:
    assert [len(frames) for frames, _ in walked([n / 60 for n in range(7)])] == [1, 0, 1, 0, 1, 0, 1]


def test_a_gap_is_bridged_up_to_half_a_second_and_not_beyond() -> None:
    assert walked([0.0, 0.5])[1] == ([float(x) for x in range(1, 16)], False)
    assert walked([0.0, 0.501])[1] == ([15.03], True)
    assert walked([0.0, 0.2], Pace(bridge_s=0.1))[1] == ([6.0], True)


def test_boxes_are_read_off_the_weighted_line_through_those_that_came() -> None:
    rng = np.random.default_rng(1)
    times, boxes = np.cumsum(rng.uniform(0.02, 0.3, 30)), rng.uniform(0, 100, (30, 4))
    line = Line(0.5)
    found = [line.add(float(past), each) for past, each in zip(np.diff(times, prepend=0), boxes, strict=True)]
    assert (found[0] == boxes[0]).all()
    assert found[1] == pytest.approx(boxes[1])
    for n in range(2, 30):
        ages = times[: n + 1] - times[n]
        fitted = np.polyfit(ages, boxes[: n + 1], 1, w=np.exp(0.5 * ages / 0.5))  # squared by polyfit
        assert found[n] == pytest.approx(fitted[1], abs=1e-6)


def test_steady_boxes_leave_an_even_walk_as_it_is_and_calm_a_trembling_one() -> None:
    even = Pace(steady_s=0.5)
    assert walked([0.0, 1 / 12, 2 / 12, 3 / 12], even) == walked([0.0, 1 / 12, 2 / 12, 3 / 12])
    rng, calm, raw = np.random.default_rng(2), Paced(even), Paced(Pace())
    trembling = [box(float(n) + rng.normal(0, 2)) for n in range(200)]
    steps = []
    for paced in (calm, raw):
        edges = np.concatenate([paced.add(n / 30, each)[0][:, 0] for n, each in enumerate(trembling)])
        steps.append(np.diff(edges)[30:].std())
    assert steps[0] < steps[1] / 4
    # A pause begins the line anew too.
    assert calm.add(100.0, box(0.0))[0].tolist() == [box(0.0).tolist()]


def test_what_comes_does_not_change_what_was_known() -> None:
    rng = np.random.default_rng(0)
    times, boxes = np.cumsum(rng.uniform(0.02, 0.3, 40)), rng.uniform(0, 100, (40, 4))
    paced = Paced(Pace())
    whole = [paced.add(float(t), each)[0] for t, each in zip(times, boxes, strict=True)]
    for cut in (3, 17, 40):
        again = Paced(Pace())
        for place in range(cut):
            found = again.add(float(times[place]), boxes[place])[0]
            assert (found == whole[place]).all()


def test_time_that_stands_still_or_goes_back_begins_anew() -> None:
    assert [anew for _, anew in walked([1.0, 1.0, 0.5, 0.6])] == [True, True, True, False]


def test_crossing_is_told_above_one_threshold_and_no_longer_below_another() -> None:
    rule, told, before = OutlookRule(on=0.5, off=0.35, smooth_s=0.0), [], False
    for crossing in (0.2, 0.45, 0.5, 0.4, 0.36, 0.34, 0.45, 0.7):
        before = rule.probable(crossing, before)
        told.append(before)
    assert told == [False, False, True, True, True, False, False, True]


def test_a_region_gives_way_to_one_that_is_likelier_by_the_margin() -> None:
    rule = OutlookRule(margin=0.1)
    assert rule.region(np.array([0.2, 0.5, 0.3]), None) == 1
    assert rule.region(np.array([0.0, 0.45, 0.54]), 1) == 1
    assert rule.region(np.array([0.0, 0.4, 0.55]), 1) == 2


def test_smoothing_depends_on_time_and_not_on_frames() -> None:
    rule, now, before = OutlookRule(smooth_s=0.4), np.array([1.0]), np.array([0.0])
    once = rule.smooth(now, before, 0.4)
    twice = rule.smooth(now, rule.smooth(now, before, 0.2), 0.2)
    assert once == pytest.approx([1 - np.exp(-1)])
    assert twice == pytest.approx(once)
    assert rule.smooth(now, None, 0.0) == [1.0]


def test_only_what_changes_is_news() -> None:
    words = ("left", "right")

    def outlook(probable: bool, region: int) -> Outlook:
        return Outlook(0.6, 0.5, 0.7, 0.6, probable, (0.5, 0.5), region, words)

    assert list_changes(None, outlook(False, 0)) == [REGION]
    assert list_changes(outlook(False, 0), outlook(True, 1)) == [PROBABLE, REGION]
    assert list_changes(outlook(True, 1), outlook(True, 1)) == []
    assert list_changes(outlook(True, 1), None) == [IMPROBABLE]
    assert list_changes(outlook(False, 1), None) == []
    assert list_changes(None, None) == []
    assert outlook(True, 1).fields() == {
        "crossing": {"probable": True, "probability": 0.6, "low": 0.5, "high": 0.7, "smoothed": 0.6},
        "risk": {"region": "right", "probability": 0.5},
    }
    assert Outlook().fields() == {}


def test_a_box_that_shrinks_fast_is_not_turned_inside_out() -> None:
    widths = (40.0, 20.0, 1.0, 1.0)
    line, paced = Line(0.5), Paced(Pace(10.0, 1.0, steady_s=0.5))
    edges, turned = [], False
    for at, width in enumerate(widths):
        box = np.array([100.0, 50, 100 + width, 90])
        smoothed = line.add(0.1, box)
        turned |= bool(smoothed[2] < smoothed[0])
        edges.append(paced.add(at * 0.1, box)[0])
    assert turned, "the line alone would"
    found = np.concatenate(edges)
    assert len(found) >= 3
    assert (found[:, 2:] >= found[:, :2]).all()


def test_rules_that_make_no_sense_are_refused() -> None:
    for wrong in ({"on": 0.3, "off": 0.4}, {"margin": 2.0}, {"bridge_s": -1.0}, {"smooth_s": 100.0}):
        with pytest.raises(UsageError):
            OutlookRule(**wrong)
    for wrong in ({"rate_fps": 0.0}, {"bridge_s": -1.0}, {"snap": 0.5}):
        with pytest.raises(UsageError):
            Pace(**wrong)
