"""Frames that lie far apart: where no tube can go on, that is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from online_stubs import FakeClock, Listed, Scripted, one_car

from roadaware.online.config import WatchConfig
from roadaware.online.events import Event
from roadaware.online.watch import watch
from roadaware.online.watcher import Last, Seen


class Told:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, seen: Seen) -> None:
        self.events += seen.events

    def add_events(self, events: Sequence[Event]) -> None:
        self.events += events

    def end(self, last: Last) -> None:
        self.events += last.events


@pytest.mark.parametrize(("step", "tubes", "gaps"), [(1, 1, 0), (10, 1, 0), (11, 0, 29)])
def test_steps_longer_than_a_path_may_miss_are_told(step: int, tubes: int, gaps: int) -> None:
    """At 30 frames a second a path may miss a third of a second: 10 frames."""
    clock, told = FakeClock(), Told()
    source = Listed(range(0, 30 * step, step), clock, fps=30.0)
    done = watch(source, Scripted(one_car), WatchConfig(), told, clock=clock)
    assert (done.frames, done.begun) == (30, tubes)
    assert source.outcomes.counts().get("gap", 0) == gaps
    said = [event for event in told.events if event["event"] == "source"]
    assert [(event["what"], event["frame"]) for event in said] == [("gap", step)] * bool(gaps)
