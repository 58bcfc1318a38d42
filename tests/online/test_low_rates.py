"""Few frames a second, and videos that play faster than they were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from online_stubs import FakeClock, Kept, Listed, Scripted, answer, write_film

from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.online.config import WatchConfig
from roadaware.online.sources import open_source
from roadaware.online.video_files import VideoFile
from roadaware.online.watch import watch


def leaping(frame: int) -> FrameDetections:
    """Three cars, each its own length further in every frame."""
    boxes = [[41.0 * frame, 10 + 50 * k, 41.0 * frame + 40, 30 + 50 * k] for k in range(3)]
    return answer(frame, boxes, [[0.9, 0, 0.9, 0, 0]] * 3)


def strolling(frame: int) -> FrameDetections:
    """Three cars, each a tenth of its length further in every frame."""
    boxes = [[4.0 * frame, 10 + 50 * k, 4.0 * frame + 40, 30 + 50 * k] for k in range(3)]
    return answer(frame, boxes, [[0.9, 0, 0.9, 0, 0]] * 3)


def test_a_film_has_the_times_of_its_recording(tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", frames=6, fps=12.0)
    source = open_source(film, recorded_fps=2.0, clock=FakeClock())
    assert isinstance(source, VideoFile)
    times = []
    while (frame := source.next(0.0, 0.0)) is not None:
        times.append(frame.t_s)
    assert times == pytest.approx([0.5 * n for n in range(6)], abs=1e-6)
    assert source.fps == 2.0


def test_only_a_film_was_recorded_at_another_rate(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="recorded_fps is for a video"):
        open_source(tmp_path, recorded_fps=2.0)
    for wrong in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(UsageError, match="recorded_fps should be more than 0"):
            open_source(tmp_path / "film.mp4", recorded_fps=wrong)
    with pytest.raises(UsageError, match="recorded_fps"):
        WatchConfig(recorded_fps=-1.0)


@pytest.mark.parametrize(("fps", "begins"), [(2.0, [0, 0, 0]), (5.0, [1, 1, 1]), (12.0, [2, 2, 2])])
def test_fewer_boxes_prove_a_tube_where_fewer_come_in_a_second(fps: float, begins: list[int]) -> None:
    clock, kept = FakeClock(), Kept()
    watch(Listed(range(6), clock, fps=fps), Scripted(strolling), WatchConfig(), kept, clock=clock)
    assert [event["frame"] for event in kept.events if event["event"] == "begin"] == begins


@pytest.mark.parametrize(("found", "told"), [(leaping, 1), (strolling, 0)])
def test_a_film_in_which_nothing_is_found_again_is_told_of_once(found: object, told: int) -> None:
    clock, kept = FakeClock(), Kept()
    source = Listed(range(30), clock, fps=20.0)
    watch(source, Scripted(found), WatchConfig(), kept, clock=clock)  # type: ignore[arg-type]
    assert source.outcomes.counts().get("jumps", 0) == told
    words = [event for event in kept.events if event["event"] == "source"]
    assert len(words) == told
    assert all("--recorded-fps" in str(event) for event in words)
