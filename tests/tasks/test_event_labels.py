"""Event labels: all kinds for any detector's agents, the same in a stream, a video and saved tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.event_head.head import open_head
from roadaware.scenes.dense_scores import Layout
from roadaware.tasks.events import EventDetector, EventLabeller, Scene, add_events, add_head_kinds
from roadaware.tasks.road_events import Classes, build_predictions

AGENTS = ("Ped", "Car", "TL", "kite")
LINKER = replace(LinkerConfig.default(), min_iou=0.3)
HEAD = open_head()
Picture = npt.NDArray[np.uint8]


def found_in(frame: int) -> FrameDetections:
    """A car that comes near, a light, and a weak box that no linker takes."""
    boxes = [
        [200 - 4 * frame, 100 - frame, 260 + 2 * frame, 140 + 3 * frame],
        [40, 20, 50, 45],
        [5, 5, 30, 30],
    ]
    scores = np.array([[0.02, 0.9, 0.01, 0.0], [0.0, 0.0, 0.8, 0.0], [0.01, 0.01, 0.0, 0.01]], np.float32)
    none = np.zeros(0, np.float32)
    return FrameDetections(frame, np.array(boxes, np.float32), scores.max(axis=1), scores, none)


class Looks(VideoDetector):
    """Says the same of every video, late by `late` frames."""

    def __init__(self, window: int = 1) -> None:
        super().__init__({"agent": AGENTS}, causal=window == 1, window=window)
        self._next = 0

    def forget(self) -> None:
        self._next = 0

    def follow(self, pictures: Sequence[Picture]) -> list[FrameDetections]:
        told = [found_in(self._next + k) for k in range(len(pictures))]
        self._next += len(pictures)
        return told

    def look(self, pictures: Sequence[Sequence[Picture]]) -> list[list[FrameDetections]]:
        return [[found_in(int(p[0, 0, 0])) for p in clip] for clip in pictures]


def film(frames: int) -> Iterator[Picture]:
    for frame in range(frames):
        picture = np.full((240, 320, 3), 90, np.uint8)
        picture[22:28, 42:48] = (255, 40, 30)
        picture[0, 0, 0] = frame
        yield picture


def test_kinds_of_agents_alone_become_those_of_road() -> None:
    kinds = add_head_kinds(HEAD, {"agent": AGENTS})
    assert list(kinds) == ["agent", "action", "location", "duplex", "event"]
    assert kinds["agent"] == AGENTS
    assert len(kinds["action"]) == 23
    assert "Ped-XingFmLft" in kinds["duplex"]
    assert not any("Bus" in label for label in kinds["duplex"])


def test_composites_are_products_and_unlinked_boxes_have_agents_alone() -> None:
    labeller = EventLabeller(HEAD, {"agent": AGENTS}, LINKER)
    told = [labeller.step(found_in(f), Scene(f, f / 12, (320, 240))) for f in range(8)][-1]
    layout = Layout(dict(labeller.kinds))
    scores = {kind: told.scores[:, layout.columns(kind)] for kind in layout.kinds}
    car = labeller.kinds["agent"].index("Car")
    for k, label in enumerate(labeller.kinds["event"]):
        words = label.split("-")
        parts = [
            scores[kind][0, labeller.kinds[kind].index(w)]
            for kind, w in zip(("agent", "action", "location"), words, strict=True)
        ]
        assert scores["event"][0, k] == pytest.approx(np.prod(parts), rel=1e-5)
    assert scores["agent"][0, car] == pytest.approx(0.9)
    assert scores["action"][0].max() > 0.1
    assert not told.scores[2, len(AGENTS) :].any()
    assert told.av.sum() == pytest.approx(1, abs=1e-5)
    assert ((told.scores >= 0) & (told.scores <= 1)).all()


def test_what_a_detector_tells_itself_is_shared_but_for_lamps() -> None:
    kinds = {"agent": ("Car",), "action": ("Brake", "Stop")}
    labeller = EventLabeller(HEAD, kinds, LINKER)
    alone = EventLabeller(HEAD, {"agent": ("Car",)}, LINKER)
    box, one = np.array([[100, 100, 150, 150]], np.float32), np.ones(1, np.float32)
    none = np.zeros(0, np.float32)
    both = labeller.step(
        FrameDetections(0, box, one, np.array([[1, 0.7, 0.2]], np.float32), none), Scene(0, 0, (320, 240))
    )
    own = alone.step(FrameDetections(0, box, one, one[:, None], none), Scene(0, 0, (320, 240)))
    stop = 1 + alone.kinds["action"].index("Stop")
    assert both.scores[0, 1] == pytest.approx(0.7)
    assert both.scores[0, 2] == pytest.approx((0.2 + own.scores[0, stop]) / 2, abs=1e-6)


@pytest.mark.parametrize("window", [1, 4])
def test_a_stream_and_a_film_say_the_same(window: int) -> None:
    detector = EventDetector(Looks(window), HEAD, LINKER, fps=10)
    whole = list(detector.detections(film(9), 9))
    detector.reset()
    stream = [each for picture in film(9) for each in detector.step(picture)] + detector.finish()
    assert [each.frame for each in whole] == [each.frame for each in stream] == list(range(9))
    for one, other in zip(whole, stream, strict=True):
        assert np.array_equal(one.scores, other.scores)
        assert np.array_equal(one.av, other.av)


def test_colours_of_lights_come_from_the_picture() -> None:
    detector = EventDetector(Looks(), HEAD, LINKER, fps=10)
    last = list(detector.detections(film(4), 4))[-1]
    layout = Layout(dict(detector.kinds))
    action = last.scores[1, layout.columns("action")]
    assert detector.kinds["action"][int(action.argmax())] == "Red"


def test_times_that_are_told_are_those_of_the_motion() -> None:
    def last(fps: float, told: bool) -> npt.NDArray[np.float32]:
        detector = EventDetector(Looks(), HEAD, LINKER, fps=10 if told else fps)
        found = []
        for frame, picture in enumerate(film(6)):
            if told:
                detector.tell_moment(frame, frame / fps)
            found += detector.step(picture)
        return found[-1].scores

    assert np.array_equal(last(25, told=True), last(25, told=False))
    assert not np.array_equal(last(25, told=True), last(10, told=True))


def test_saved_tables_get_what_a_stream_gets_without_pictures() -> None:
    videos = pl.DataFrame(
        {"video": ["a", "b"], "width_px": [320, 320], "height_px": [240, 240], "fps": [12.0, 12.0]}
    )
    found = {"a": [found_in(f) for f in range(6)], "b": [found_in(f) for f in range(3)]}
    told = add_events(build_predictions(found, Classes({"agent": AGENTS}), videos=videos), HEAD, LINKER)
    labeller = EventLabeller(HEAD, {"agent": AGENTS}, LINKER)
    scores = [labeller.step(found_in(f), Scene(f, f / 12, (320, 240))).scores for f in range(6)]
    got = told.boxes.filter(pl.col("video") == "a")["scores"].to_numpy()
    assert np.array_equal(np.stack(list(got)), np.concatenate(scores))
    assert len(told.frames) == 9
    with pytest.raises(UsageError, match="size of video a"):
        add_events(build_predictions(found, Classes({"agent": AGENTS})), HEAD, LINKER)


def test_saved_scores_of_the_own_vehicle_stay() -> None:
    row = pl.DataFrame({"video": ["a"], "width_px": [320], "height_px": [240]})
    drive = np.array([0.25, 0.75], np.float32)
    found = {"a": [replace(found_in(f), av=drive) for f in range(4)]}
    classes = Classes({"agent": AGENTS}, ("AV-Stop", "AV-Mov"))
    told = add_events(build_predictions(found, classes, videos=row), HEAD, LINKER)
    assert np.array_equal(np.stack(list(told.frames["scores"].to_numpy())), np.tile(drive, (4, 1)))
    assert told.meta.vocabularies["av_action"] == ("AV-Stop", "AV-Mov")


def test_detectors_of_other_things_are_refused() -> None:
    with pytest.raises(UsageError, match="agents"):
        EventLabeller(HEAD, {"corner": ("tyre",)}, LINKER)
