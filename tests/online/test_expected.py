"""What a watch says of tubes a second ahead: in events, on the video, judged by what it then sees, and only where asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from online_stubs import FakeClock, Kept, Listed, Scripted, one_car

from roadaware.errors import UsageError
from roadaware.geometry.boxes import iou
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import Expected, FrameDetections
from roadaware.models.event_head.anticipation import decode_boxes, extrapolate, open_anticipation
from roadaware.models.event_head.head import open_head
from roadaware.online.config import WatchConfig
from roadaware.online.setup import add_event_head
from roadaware.online.tubes import ExpectationTally
from roadaware.online.watch import watch
from roadaware.reports.live_drawing import LiveDrawing, describe_expected
from roadaware.tasks.events import EXPECTED_S, EventDetector, EventLabeller, Expectation, Scene

LINKER = replace(LinkerConfig.default(), min_iou=0.3)
WORDS = {"action": ("Stop", "Mov"), "location": ("VehLane", "Pav")}


def expect(found: FrameDetections, *, present: float = 0.9, stops: bool = True) -> FrameDetections:
    """The same, expected 48 pixels further on in a second, where it stops."""
    n = len(found)
    boxes = np.asarray(found.boxes, np.float64)
    then = {"action": [0.8, 0.1] if stops else [0.1, 0.8], "location": [0.7, 0.1]}
    labels = {kind: (names, np.tile(np.float32(then[kind]), (n, 1))) for kind, names in WORDS.items()}
    now = {
        "action": np.tile(np.float32([0.1, 0.9]), (n, 1)),
        "location": np.tile(np.float32([0.9, 0.0]), (n, 1)),
    }
    ahead = boxes + np.array([48, 0, 48, 0])
    seen = np.full(n, present, np.float32)
    return replace(
        found,
        expected=Expected(
            1.0, np.ones(n, np.bool_), seen, ahead, boxes + np.array([24, 0, 24, 0]), labels, now
        ),
    )


def run(frames: int, said: bool = True) -> tuple[Kept, object]:
    clock, kept = FakeClock(), Kept()
    answers = (lambda k: expect(one_car(k))) if said else one_car
    done = watch(
        Listed(range(frames), clock), Scripted(answers, clock=clock), WatchConfig(), kept, clock=clock
    )
    return kept, done


def test_events_say_what_is_expected_and_the_end_does_not() -> None:
    kept, done = run(24)
    begin = next(event for event in kept.events if event["event"] == "begin" and event["tube"] is not None)
    assert begin["expected"] == {
        "in_s": 1.0, "seen": 0.9, "box": [8.0 + 48, 10.0, 48.0 + 48, 30.0],
        "labels": {"action": {"Stop": 0.8}, "location": {"VehLane": 0.7}},
    }  # fmt: skip
    assert all("expected" not in event for event in kept.events if event["event"] == "end")
    # The car drives 4 pixels a frame, 48 in a second: every expectation that came due was right.
    found = done.expected  # type: ignore[attr-defined]
    assert found["boxes"] == 24 - 12 - 2
    assert found["iou"] == 1.0
    assert found["iou_constant_velocity"] == pytest.approx(
        iou([[0, 0, 40, 20]], [[24, 0, 64, 20]])[0, 0], abs=1e-4
    )
    assert found["iou_standing_still"] == 0.0


def test_where_nobody_is_asked_nothing_is_said() -> None:
    kept, done = run(24, said=False)
    assert done.expected is None  # type: ignore[attr-defined]
    assert not any("expected" in event for event in kept.events)


@pytest.mark.parametrize("fps", [7, 12, 24, 30, 60])
def test_overlaps_are_those_of_a_plain_loop(fps: int) -> None:
    rng = np.random.default_rng(0)
    tally, said, wanted, count = ExpectationTally(), [], np.zeros(3), 0
    for frame in range(28 + fps):
        t_s = frame / fps
        numbers = np.flatnonzero(rng.random(5) < 0.8)
        corner = rng.uniform(0, 30, (len(numbers), 2))
        boxes = np.hstack([corner, corner + 20])
        three = boxes[:, None] + rng.uniform(-8, 8, (len(numbers), 3, 4)) * [[[1], [1], [0]]]
        known = rng.random(len(numbers)) < 0.9
        for due_s, number, then in said:
            if abs(due_s - t_s) < 1e-6 and number in numbers:
                now = boxes[numbers.tolist().index(number)]
                wanted += [iou([each], [now])[0, 0] for each in then]
                count += 1
        said += [(t_s + 1.0, n, three[k]) for k, n in enumerate(numbers) if known[k]]
        expected = Expected(1.0, known, np.ones(len(known), np.float32), three[:, 0], three[:, 1], {}, {})
        tally.add(t_s, numbers.tolist(), three[:, 2], expected, list(range(len(numbers))))
    found = tally.summary()
    assert found is not None
    assert found["boxes"] == count > 50
    names = ("iou", "iou_constant_velocity", "iou_standing_still")
    assert [found[name] for name in names] == pytest.approx((wanted / count).tolist(), abs=1e-4)


def test_the_video_shows_where_somebody_will_be_and_what_changes() -> None:
    kept, _ = run(6)
    plain, _ = run(6, said=False)
    draw = LiveDrawing(("Ped", "Car"))
    last, bare = kept.seen[-1], plain.seen[-1]
    assert describe_expected(last.tubes[0]) == ["in 1 s: Stop"]
    assert describe_expected(bare.tubes[0]) == []
    assert (draw(last) != draw(bare)).any()
    gone = expect(one_car(5), present=0.2)
    tube = last.tubes[0]
    assert tube.expected is not None
    tube.expected = replace(tube.expected, said=gone.expected)
    assert describe_expected(tube) == ["in 1 s: out of sight"]
    same = expect(one_car(5), stops=False)
    tube.expected = replace(tube.expected, said=same.expected)
    assert describe_expected(tube) == []


def test_an_expectation_is_what_both_heads_say_of_linked_tubes_and_looks_back_only() -> None:
    events, head = open_head(), open_anticipation()

    def said(last: int) -> list[Expected]:
        labeller, expectation = (
            EventLabeller(events, {"agent": ("Ped", "Car")}, LINKER),
            Expectation(events, head),
        )
        found = []
        for frame in range(last):
            each = one_car(frame)
            each = replace(each, scores=each.scores[:, :2])
            labeller.step(each, Scene(frame, frame / 12, (320, 240)))
            assert labeller.linked is not None
            found.append(expectation.step(frame / 12, each, labeller.linked))
            linked = labeller.linked
        at = head.horizons_s.index(EXPECTED_S)
        now, speed = expectation._velocity.step(
            (last - 1) / 12 + 1e-9, linked.numbers, each.boxes.astype(float)
        )
        whole = head.anticipate(linked.features, events.tubes.logits(linked.features), now, speed)
        np.testing.assert_allclose(found[-1].boxes, whole.boxes[:, at], atol=1.0)
        np.testing.assert_allclose(found[-1].labels["action"][1], whole.actions[:, at], rtol=1e-5)
        np.testing.assert_allclose(
            found[-1].velocity, decode_boxes(extrapolate(now, speed, (1.0,)))[:, 0], atol=1.0
        )
        return found

    long, short = said(9), said(5)
    for one, other in zip(long, short, strict=False):
        np.testing.assert_array_equal(one.boxes, other.boxes)
        np.testing.assert_array_equal(one.present, other.present)


class Agents(Scripted):
    """A detector of agents and actions, or of agents alone, or of things that are no agents."""

    def __init__(self, kinds: dict[str, tuple[str, ...]]) -> None:
        super().__init__(one_car)
        self.kinds = kinds


def test_the_option_wraps_where_it_is_wanted() -> None:
    alone, both = (
        Agents({"agent": ("Ped", "Car")}),
        Agents({"agent": ("Ped", "Car"), "action": ("Stop", "Mov", "Turn")}),
    )
    assert add_event_head(None, alone, LINKER, expect=None).expects
    assert not add_event_head(None, alone, LINKER, expect=False).expects
    assert add_event_head(None, both, LINKER, expect=None) is both
    wrapped = add_event_head(None, both, LINKER, expect=True)
    assert isinstance(wrapped, EventDetector)
    # It keeps its own labels, and is anticipated all the same.
    assert wrapped.kinds == both.kinds
    found = [each for k in range(4) for each in wrapped.step(np.zeros((240, 320, 3), np.uint8))]
    assert found[-1].expected is not None
    assert found[-1].expected.known.all()
    np.testing.assert_array_equal(found[-1].scores, one_car(3).scores)
    with pytest.raises(UsageError, match="--expect needs a detector that tells agents of ROAD"):
        add_event_head(None, Agents({"thing": ("box",)}), LINKER, expect=True)
