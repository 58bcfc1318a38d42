"""Watching: what is told of tubes, when, and that tables are what the offline linker makes of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from online_stubs import KINDS, FakeClock, Kept, Listed, Scripted, answer, kept_run, one_car, picture

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import FrameDetections
from roadaware.online.config import WatchConfig
from roadaware.online.events import read_events
from roadaware.online.frames import Source, SourceFrame
from roadaware.online.sources import Realtime
from roadaware.online.tubes import LabelRule, LiveTube, Smoothed, SmoothedTable
from roadaware.online.watch import Progress, watch
from roadaware.scenes.dense_scores import Layout
from roadaware.scenes.store import open_predictions

QUICK = LabelRule(on=0.5, off=0.3, margin=0.1, smooth_s=0.0)


def watched(
    detector: Scripted, numbers: Sequence[int], config: WatchConfig | None = None, **more: object
) -> tuple[Kept, Progress]:
    clock, kept = FakeClock(), Kept()
    config = config or WatchConfig(labels=QUICK)
    source = Listed(numbers, clock)
    return kept, watch(source, detector, config, kept, clock=clock, **more)  # type: ignore[arg-type]


def told(kept: Kept, kind: str = "tube") -> list[tuple[str, int, object]]:
    """(event, frame, tube) of tubes, or (event, frame, labels) of the own vehicle."""
    tubes = [event for event in kept.events if event["event"] != "source"]
    if kind == "tube":
        return [(e["event"], e["frame"], e["tube"]) for e in tubes if e["tube"] is not None]
    return [(e["event"], e["frame"], list(*e["labels"].values())) for e in tubes if e["tube"] is None]


# Events ----------------------------------------------------------------------------------------------------


def test_a_tube_begins_once_it_has_proven_itself_and_ends_once_it_is_lost() -> None:
    """A car in frames 0 to 9: told at its third detection, over once it can no longer be continued."""

    def car(frame: int) -> FrameDetections:
        return one_car(frame) if frame < 10 else answer(frame, [], [])

    kept, progress = watched(Scripted(car), range(40))
    assert told(kept) == [("begin", 2, 0), ("end", 28, 0)]
    begin, end = (event for event in kept.events if event["tube"] == 0)
    assert begin["labels"] == {"agent": {"Car": 0.8}, "action": {"Mov": 0.6}}
    assert begin["box"] == [8.0, 10.0, 48.0, 30.0]
    assert (begin["first_frame"], begin["last_frame"], begin["score"]) == (0, 2, 0.9)
    assert (end["first_frame"], end["last_frame"], end["why"]) == (0, 9, "lost")
    assert progress.begun == 1
    assert progress.tubes == 0


def test_a_glimpse_is_not_told_and_what_lives_at_the_end_ends_there() -> None:
    def found(frame: int) -> FrameDetections:
        glimpse = [[100.0, 100, 120, 120]] if frame in (3, 4) else []
        boxes = [[10.0, 10, 50, 50], *glimpse]
        return answer(frame, boxes, [[0.9, 0, 0.9, 0, 0]] * len(boxes))

    kept, _ = watched(Scripted(found), range(8))
    assert told(kept) == [("begin", 2, 0), ("end", 7, 0)]
    assert kept.events[-1]["why"] == "ended"


def test_missing_frames_are_gaps_and_numbers_are_never_used_again() -> None:
    near, far = [*range(10), *range(13, 24)], [*range(10), *range(300, 310)]
    assert told(watched(Scripted(lambda n: one_car(near[n])), near)[0]) == [("begin", 2, 0), ("end", 23, 0)]
    kept, _ = watched(Scripted(lambda n: answer(n, [[10, 10, 50, 50]], [[1, 0, 0, 0, 0]])), far)
    assert told(kept) == [("begin", 2, 0), ("end", 300, 0), ("begin", 302, 1), ("end", 309, 1)]


def test_a_label_that_changes_is_told_and_one_that_wavers_is_not() -> None:
    stop, move, waver = [0.9, 0.1, 0.8, 0.1, 0.0], [0.9, 0.1, 0.1, 0.8, 0.0], [0.9, 0.1, 0.45, 0.52, 0.0]
    once = LabelRule(on=0.5, off=0.3, margin=0.1, smooth_s=0.0, most=1)

    def found(scores: list[list[float]]) -> list[tuple[str, int, object]]:
        detector = Scripted(lambda n: answer(n, [[10, 10, 50, 50]], [scores[n]]))
        return told(watched(detector, range(len(scores)), WatchConfig(labels=once))[0])

    assert found([stop] * 5 + [move] * 5) == [("begin", 2, 0), ("update", 5, 0), ("end", 9, 0)]
    assert found([stop] * 5 + [waver, stop] * 5) == [("begin", 2, 0), ("end", 14, 0)]


def test_who_somebody_is_is_voted_on_in_all_moments() -> None:
    """A van that looks like a truck in every third frame is a car throughout; its action changes."""
    kinds = Layout({"agent": ("Car", "LarVeh"), "action": ("Stop",)})
    smoothed, named, stopped = Smoothed(kinds, LabelRule()), set(), set()
    for frame in range(60):
        truck = frame % 3 == 1
        scores = np.array([0.3 if truck else 0.6, 0.7 if truck else 0.3, frame % 20 < 10], np.float32)
        smoothed.add(scores, frame / 10)
        named |= smoothed.confirmed()["agent"].keys()
        stopped.add("action" in smoothed.confirmed())
    assert named == {"Car"}
    assert stopped == {True, False}
    for frame in range(200):  # the tube went over to a truck
        smoothed.add(np.array([0.1, 0.8, 0], np.float32), 6 + frame / 10)
    assert list(smoothed.confirmed()["agent"]) == ["LarVeh"]


def test_smoothing_needs_time_not_frames() -> None:
    """After as long as `smooth_s`, a score that jumped from 0 to 1 stands at 1 - 1/e, at any rate."""
    for steps in (1, 5, 50):
        smoothed = Smoothed(Layout({"action": ("Stop",)}), LabelRule(smooth_s=0.5))
        smoothed.add(np.zeros(1, np.float32), 0.0)
        for step in range(1, steps + 1):
            smoothed.add(np.ones(1, np.float32), 0.5 * step / steps)
        assert smoothed.scores[0] == pytest.approx(1 - np.exp(-1), abs=1e-5)


def test_the_own_vehicle_has_events_of_its_own() -> None:
    def found(frame: int) -> FrameDetections:
        return answer(frame, [], [], [0.9, 0.1] if frame < 5 else [0.1, 0.9])

    kept, _ = watched(Scripted(found), range(8))
    stop, move = ["AV-Stop"], ["AV-Mov"]
    assert told(kept, "vehicle") == [("begin", 0, stop), ("update", 5, move), ("end", 7, move)]
    assert [seen.doing for seen in kept.seen] == [stop] * 5 + [move] * 3


def test_a_detector_that_answers_late_is_asked_for_the_rest_and_its_delay_is_told() -> None:
    clock, kept = FakeClock(), Kept()
    late, prompt = Scripted(one_car, delay=3), Scripted(one_car)
    watch(Listed(range(12), clock), late, WatchConfig(labels=QUICK), kept, clock=clock)
    plain, _ = watched(prompt, range(12))
    assert told(kept) == told(plain)
    assert [seen.frame.number for seen in kept.seen] == list(range(12))
    assert [round(12 * seen.latency_s) for seen in kept.seen] == [3] * 9 + [2, 1, 0]
    assert [seen.latency_s for seen in plain.seen] == [0.0] * 12


def test_annotators_are_asked_once_a_frame_and_their_news_are_events() -> None:
    asked: list[tuple[int, list[int]]] = []

    def crossing(tubes: Sequence[LiveTube], frame: SourceFrame) -> list[tuple[LiveTube, str]]:
        asked.append((frame.number, [tube.number for tube in tubes]))
        for tube in tubes:
            tube.notes["crossing"] = frame.number / 10
        return [(tube, "news") for tube in tubes if frame.number in (1, 2, 4)]

    def car(frame: int) -> FrameDetections:
        return one_car(frame) if frame != 3 else answer(frame, [], [])

    kept, _ = watched(Scripted(car), range(6), annotators=[crossing])
    assert asked == [(n, [0] if n != 3 else []) for n in range(6)]
    said = [(event["event"], event["frame"], event["notes"]) for event in kept.events if event["tube"] == 0]
    # News of a tube that is not told yet is in its beginning.
    assert said == [
        ("begin", 2, {"crossing": 0.2}),
        ("news", 4, {"crossing": 0.4}),
        ("end", 5, {"crossing": 0.5}),
    ]


# Live sources ----------------------------------------------------------------------------------------------


def _live(takes_s: float, budget_s: float | None = None, frames: int = 200) -> tuple[Progress, Source]:
    clock = FakeClock()
    source = Realtime(Listed(range(frames), clock, fps=10.0), clock)
    detector = Scripted(lambda n: answer(n, [], []), clock=clock, takes_s=takes_s)
    return watch(source, detector, WatchConfig(budget_s=budget_s), Kept(), clock=clock), source


def test_a_model_three_times_too_slow_does_not_fall_behind() -> None:
    progress, source = _live(0.3)
    assert progress.frames + source.outcomes.counts()["dropped"] == 200
    assert progress.frames == pytest.approx(200 / 3, abs=2)
    p99 = progress.latency.percentile_s(99)
    assert p99 is not None
    assert 0.3 <= p99 < 2 * 0.3
    assert progress.spent_s < 20 + 1


def test_a_model_that_is_fast_enough_drops_nothing() -> None:
    progress, source = _live(0.06)
    assert progress.frames == 200
    assert source.outcomes.counts() == {}
    assert progress.latency.longest_s == pytest.approx(0.06)


def test_a_hiccup_within_the_budget_loses_nothing() -> None:
    """One answer in twenty takes 0.25 s: frames wait meanwhile, and a budget of 0.4 s lets them."""

    def run(budget_s: float | None) -> int:
        clock = FakeClock()
        source = Realtime(Listed(range(100), clock, fps=10.0), clock)

        def found(frame: int) -> FrameDetections:
            clock.sleep(0.25 if frame % 20 == 10 else 0.02)
            return answer(frame, [], [])

        config = WatchConfig(budget_s=budget_s)
        return watch(source, Scripted(found), config, Kept(), clock=clock).frames

    assert run(0.4) == 100
    assert run(None) < 100


def test_seconds_and_a_stop_end_it_as_asked() -> None:
    _, progress = watched(Scripted(one_car), range(100), WatchConfig(seconds=2.0))
    assert progress.ending is not None
    assert progress.ending.reason == "time"
    assert progress.t_s == pytest.approx(2.0)
    asked = iter([False] * 5 + [True])
    kept, progress = watched(Scripted(one_car), range(100), stopped=lambda: next(asked))
    assert progress.ending is not None
    assert progress.ending.reason == "stopped"
    assert [seen.frame.number for seen in kept.seen] == list(range(5))
    assert told(kept)[-1] == ("end", 4, 0)


def test_a_detector_that_fails_takes_nothing_of_what_was_seen_with_it(tmp_path: Path) -> None:
    def found(frame: int) -> FrameDetections:
        if frame == 7:
            raise RuntimeError("out of memory")
        return one_car(frame)

    clock = FakeClock()
    with pytest.raises(RuntimeError, match="out of memory"):
        kept_run(tmp_path / "run", Listed(range(20), clock), Scripted(found), clock)
    assert len(open_predictions(tmp_path / "run" / "predictions").frames) == 7
    assert list(read_events(tmp_path / "run" / "events.jsonl"))[-1]["event"] == "end"

    def nonsense(frame: int) -> FrameDetections:
        return answer(frame, [[float("nan"), 0, 1, 1]] if frame == 7 else [], [[0] * 5] * (frame == 7))

    kept, progress = watched(Scripted(nonsense), range(20))
    assert len(kept.seen) == 7
    assert progress.ending is not None
    assert progress.ending.reason == "failed"
    assert "not finite" in progress.ending.message


class _Growing(Listed):
    """Its images become larger."""

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        frame = super().next(patience_s, wait_s)
        return (
            frame and replace(frame, picture=picture(0, 128, 96)) if (frame and frame.number > 5) else frame
        )


def test_pictures_of_another_size_end_the_watch_or_are_scaled() -> None:
    for rescale, frames, reason in ((False, 6, "resized"), (True, 10, "end")):
        clock, kept, detector = FakeClock(), Kept(), Scripted(one_car)
        source = _Growing(range(10), clock)
        progress = watch(source, detector, WatchConfig(rescale=rescale), kept, clock=clock)
        assert progress.ending is not None
        assert progress.ending.reason == reason
        assert len(kept.seen) == frames
        assert {made.shape for made in detector.pictures} == {(48, 64, 3)}
        assert source.outcomes.counts().get("rescaled", 0) == (4 if rescale else 0)
        assert kept.last is not None


def test_times_of_a_stream_of_weeks_still_increase() -> None:
    """In single precision neighbouring frames then have the same time."""
    clock, kept = FakeClock(), Kept()
    numbers = range(25_000_000, 25_000_012)
    progress = watch(Listed(numbers, clock, fps=30.0), Scripted(one_car), WatchConfig(), kept, clock=clock)
    assert progress.ending is not None
    assert progress.ending.reason == "end"
    times = [seen.time_s for seen in kept.seen]
    assert all(np.diff(times) > 0)
    assert times == [float(np.float32(time)) for time in times]


def test_configs_that_make_no_sense_are_refused() -> None:
    for wrong in ({"linker": replace(LinkerConfig(), tube_nms=0.5)}, {"begin_after": 0}, {"seconds": -1.0}):
        with pytest.raises(UsageError):
            WatchConfig(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        LabelRule(on=0.2, off=0.3)
    assert WatchConfig().linker_at(12.0) == LinkerConfig.default()
    assert WatchConfig().linker_at(30.0).jump_gap == 10
    with pytest.raises(UsageError, match="fps"):
        WatchConfig(fps=0.0)


def scored_boxes(frame: int, scores: Sequence[float]) -> FrameDetections:
    """Boxes apart that stand still, with these values of agentness; 0 is none."""
    there = [k for k, score in enumerate(scores) if score]
    boxes = np.array([[60.0 * k, 0, 60.0 * k + 40, 40] for k in there], np.float32).reshape(-1, 4)
    agentness = np.array([scores[k] for k in there], np.float32)
    return FrameDetections(frame, boxes, agentness, np.full((len(there), 5), 0.5, np.float32), np.zeros(2))


def test_weak_boxes_are_linked_and_kept_and_not_followed() -> None:
    """A frame that is filled up with weak boxes, as detectors fill it, tells no more than one without."""
    config = WatchConfig(begin_score=0.3, labels=QUICK)
    strong = [0.9, 0.0, 0.5]
    clean, _ = watched(Scripted(lambda n: scored_boxes(n, strong)), range(9), config)
    filled, _ = watched(Scripted(lambda n: scored_boxes(n, [*strong, *[0.19] * 97])), range(9), config)
    assert told(clean) == told(filled)
    assert [len(seen.tubes) for seen in clean.seen] == [len(seen.tubes) for seen in filled.seen]
    assert (filled.seen[3].numbers >= 0).all()
    assert sum(len(path) for seen in [filled.last] for path in seen.ended) == 9 * 99  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("scores", "drawn"),
    [
        ([0.29, 0.29, 0.29, 0.29, 0.29, 0.29], []),
        ([0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [2, 3, 4, 5]),  # at the threshold, in single precision
        ([0.4, 0.1, 0.4, 0.1, 0.4, 0.4], [4, 5]),
        ([0.4, 0.4, 0.4, 0.25, 0.21, 0.25], [2, 3, 4, 5]),  # two thirds keep what is proven
        ([0.4, 0.4, 0.4, 0.19, 0.4, 0.19], [2, 4]),
        ([0.25, 0.25, 0.4, 0.4, 0.4, 0.4], [4, 5]),
    ],
)
def test_three_boxes_at_the_threshold_prove_a_tube(scores: list[float], drawn: list[int]) -> None:
    config = WatchConfig(begin_score=0.3, labels=QUICK)
    kept, progress = watched(Scripted(lambda n: scored_boxes(n, [scores[n]])), range(len(scores)), config)
    assert [seen.frame.number for seen in kept.seen if seen.tubes] == drawn
    assert progress.begun == bool(drawn)
    begins = [event for event in kept.events if event["event"] == "begin" and event["tube"] is not None]
    assert [event["first_frame"] for event in begins] == [0] * bool(drawn)  # where its path began


def test_labels_of_many_are_those_of_each_by_itself() -> None:
    """One operation on all rows gives, to the last bit, what a table for each tube would."""
    rng, kinds = np.random.default_rng(4), Layout(KINDS)
    many, alone = SmoothedTable(kinds, LabelRule(on=0.5, off=0.3), room=2), {}
    rows = {}
    for step in range(60):
        if step % 7 == 0:
            rows[step] = many.begin()
            alone[step] = Smoothed(kinds, LabelRule(on=0.5, off=0.3))
        if step in (30, 44):
            gone = many.end(rows.pop(step - 30).row)
            assert gone.confirmed() == alone.pop(step - 30).confirmed()
        here = [who for who in rows if rng.random() < 0.7]
        scores = rng.random((len(here), kinds.width)).astype(np.float32)
        places = np.array([rows[who].row for who in here], np.int64)
        changed = many.add(places, scores, 0.1 * step)
        for who, one, news in zip(here, scores, changed, strict=True):
            assert alone[who].add(one, 0.1 * step) == news
            assert rows[who].confirmed() == alone[who].confirmed()
            assert np.array_equal(rows[who].scores, alone[who].scores)
