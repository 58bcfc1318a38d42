"""People decide by gaps, lights, yielding vehicles and what they are like, not by what comes later."""

from __future__ import annotations

import numpy as np
import pytest
from straight_street import (
    CROSSING_M,
    FPS,
    HALF_M,
    comer,
    live,
    place,
    somebody,
    street,
)

from roadaware.simulator.actors import Actor, Light, Pose
from roadaware.simulator.walkers.persons import Start


def far(seconds: float) -> list[tuple[float, float]]:
    """The own vehicle alone, a long way off and slow."""
    return [(105.0 + 0.4 * seconds, 0.4)]


def stream(gap_s: float, speed: float = 10.0):
    """Vehicles that pass in both directions every so many seconds, for ever."""

    def vehicles(seconds: float) -> list[tuple[float, float]]:
        rows = [(105.0 + 3.0 * seconds, 3.0)]
        for k in range(-3, 12):
            offset = k * gap_s * speed
            rows.append((CROSSING_M - offset + speed * (seconds % gap_s), speed))
            rows.append((CROSSING_M + offset - speed * (seconds % gap_s), -speed))
        return rows

    return vehicles


def out(actor: Actor) -> np.ndarray:
    """Frames on the road."""
    return actor.first + np.flatnonzero(actor.facts["crossing"])


def test_long_gap_is_taken_and_leads_to_the_other_side() -> None:
    layout = street()
    (actor,) = live(layout, [comer(layout)], far)
    assert len(out(actor))
    assert actor.position[-1, 1] > HALF_M
    assert (np.diff(out(actor)) == 1).all()
    assert actor.mind is not None
    assert actor.mind.crosses
    assert actor.mind.crossing == out(actor)[0]
    assert actor.mind.start < actor.mind.critical < actor.mind.crossing


def test_stream_without_gaps_keeps_people_waiting() -> None:
    layout = street()
    (actor,) = live(layout, [comer(layout)], stream(2.0))
    assert not len(out(actor))
    waits = actor.facts["waiting"].astype(bool)
    assert waits[-1]
    assert waits.mean() > 0.5
    # They stand, face the road and turn their head to both sides.
    assert np.abs(actor.heading[waits][20:] - np.pi / 2).max() < 0.1
    assert actor.gaze[waits].max() > 0.5
    assert actor.gaze[waits].min() < -0.5
    assert actor.mind is not None
    assert actor.mind.wants
    assert not actor.mind.crosses
    assert actor.mind.intention_prob > 0.6


def test_vehicle_that_slows_before_a_zebra_lets_people_over() -> None:
    def slows(seconds: float) -> list[tuple[float, float]]:
        speed = max(0.0, 9.0 - 2.0 * seconds)
        gone = 9.0 * min(seconds, 4.5) - min(seconds, 4.5) ** 2
        return [(CROSSING_M - 26.0 + gone, speed)]

    layout = street("zebra")
    (actor,) = live(layout, [comer(layout, 0.5)], slows)
    step = out(actor)[0] / FPS
    # Under 2 m/s from 3.5 s on.
    assert 3.4 < step < 6.0
    assert actor.mind is not None
    assert actor.mind.signalized == "C"
    assert actor.mind.crosses


def test_red_holds_people_and_green_lets_them_go() -> None:
    layout = street("signalled")
    starts = [comer(layout, 0.5)]
    (actor,) = live(layout, starts, far, light=lambda s: Light.GREEN if s > 9.0 else Light.RED)
    assert 9.0 < out(actor)[0] / FPS < 11.0
    assert actor.mind is not None
    assert actor.mind.signalized == "CS"
    (patient,) = live(layout, starts, far)
    assert not len(out(patient))
    (impatient,) = live(layout, [comer(layout, 0.5, jaywalks=True)], far)
    assert len(out(impatient))


def test_bold_people_take_gaps_that_timid_ones_leave() -> None:
    layout = street()
    bold = live(layout, [comer(layout, boldness=1.0)], stream(6.5))
    timid = live(layout, [comer(layout, boldness=0.0)], stream(6.5))
    assert len(out(bold[0]))
    assert not len(out(timid[0]))


def test_old_people_need_longer_gaps() -> None:
    layout = street()
    adult = live(layout, [comer(layout)], stream(8.0))
    senior = live(layout, [comer(layout, age="senior", model="senior", pace=0.8)], stream(8.0))
    assert len(out(adult[0]))
    assert not len(out(senior[0]))


def test_who_gives_up_turns_away_and_is_asked_until_then() -> None:
    layout = street()
    (actor,) = live(layout, [comer(layout, 0.5, patience_s=4.0, quits=True)], stream(2.0))
    assert not len(out(actor))
    assert not actor.facts["waiting"][-1]
    assert actor.mind is not None
    assert actor.mind.wants
    assert not actor.mind.crosses
    assert actor.mind.critical <= np.flatnonzero(actor.facts["waiting"])[-1]


def test_standing_at_the_kerb_is_not_wanting_to_cross() -> None:
    layout = street("zebra")
    start = Start(somebody(wants=False), 1, CROSSING_M - 3.0, 1.0, 1, place(layout), "linger", rest_s=60.0)
    (actor,) = live(layout, [start], far)
    assert not len(out(actor))
    assert not actor.facts["waiting"].any()
    assert np.abs(actor.position[-1, 1] + HALF_M) < 0.6
    assert actor.mind is not None
    assert not actor.mind.wants
    assert actor.mind.crossing is None


def test_nothing_that_comes_later_changes_what_is_done_before() -> None:
    layout = street()
    starts = [comer(layout), comer(layout, 9.0, boldness=0.9)]
    cut = 6.0

    def changed(seconds: float) -> list[tuple[float, float]]:
        return stream(6.5)(seconds) if seconds < cut else stream(2.0)(seconds)

    for one, other in zip(live(layout, starts, stream(6.5)), live(layout, starts, changed), strict=True):
        rows = round(cut * FPS)
        assert np.array_equal(one.position[:rows], other.position[:rows])
        assert np.array_equal(one.gaze[:rows], other.gaze[:rows])


@pytest.mark.slow
@pytest.mark.parametrize("appears_s", [0.3, 1.5, 2.5, 3.5])
def test_people_on_the_road_save_themselves_from_a_vehicle_that_does_not_slow(appears_s: float) -> None:
    layout = street()
    (free,) = live(layout, [comer(layout, 0.5)], far)
    begin = out(free)[0] / FPS + appears_s

    def sudden(seconds: float) -> list[tuple[float, float]]:
        late = seconds - begin
        rows = [*far(seconds), (CROSSING_M - 20.0 + 10.0 * late, 10.0)]
        return rows if late >= 0 else rows[:1]

    (actor,) = live(layout, [comer(layout, 0.5)], sudden)
    for row, place_then in enumerate(actor.position):
        for x, speed in sudden(row / FPS):
            beside = abs(place_then[1] - (1.65 if speed < 0 else -1.65))
            assert abs(place_then[0] - x) > 2.2 or beside > 0.95
    assert np.abs(actor.speed).max() < 4.0


def test_groups_cross_together_and_pushed_things_stay_before_those_who_push() -> None:
    layout = street("zebra")
    lead = comer(layout, 3.0, pushes="stroller")
    starts = [lead, Start(somebody(), 1, CROSSING_M - 3.0, 1.9, 1, place(layout), "cross", leader=0)]
    one, other, stroller = live(layout, starts, far)
    assert abs(int(out(one)[0]) - int(out(other)[0])) < 2.5 * FPS
    assert stroller.kind == "stroller"
    assert one.with_object == stroller.number
    assert one.facts["pushing"].all()
    assert (one.pose == Pose.PUSH_OBJECT).all()
    apart = np.hypot(*(one.position - stroller.position)[:, :2].T)
    assert apart.max() < 1.1
    assert np.hypot(*(one.position - other.position)[:, :2].T).min() > 0.25
