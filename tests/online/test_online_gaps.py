"""Frames that lie far apart: where no tube can go on, that is said."""

from __future__ import annotations

import pytest
from online_stubs import FakeClock, Kept, Listed, Scripted, answer, one_car

from roadaware.online.config import WatchConfig
from roadaware.online.watch import watch


@pytest.mark.parametrize(("step", "tubes", "gaps"), [(1, 1, 0), (10, 1, 0), (60, 0, 29)])
def test_steps_longer_than_a_path_may_miss_are_told(step: int, tubes: int, gaps: int) -> None:
    """At 30 frames a second a path may miss a second and a half: 45 frames."""
    clock, told = FakeClock(), Kept()
    source = Listed(range(0, 30 * step, step), clock, fps=30.0)
    done = watch(source, Scripted(one_car), WatchConfig(), told, clock=clock)
    assert (done.frames, done.begun) == (30, tubes)
    assert source.outcomes.counts().get("gap", 0) == gaps
    said = [event for event in told.events if event["event"] == "source"]
    assert [(event["what"], event["frame"]) for event in said] == [("gap", step)] * bool(gaps)


@pytest.mark.parametrize("looked_fps", [6.0, 3.0, 2.0, 1.0])
def test_tubes_go_on_however_few_frames_a_second_are_looked_at(looked_fps: float) -> None:
    """A path may miss as many frames of those that are looked at, not of those of the video."""
    clock, told, step = FakeClock(), Kept(), round(12 / looked_fps)
    source = Listed(range(0, 12 * step, step), clock, fps=12.0)
    parked = Scripted(lambda n: answer(n, [[8, 8, 40, 30]], [[0.1, 0.9, 0, 0, 0]]))
    done = watch(source, parked, WatchConfig(fps=looked_fps), told, clock=clock)
    assert (done.frames, done.begun) == (12, 1)
    assert "gap" not in source.outcomes.counts()
