"""The page of a watch, and the line that it shows while it runs."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from small_files import Command

from roadaware.cli import watch
from roadaware.cli import watch as command
from roadaware.cli.watch import LiveLine
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online.watch import Progress
from roadaware.reports.watch_page import format_progress, summarise_events


class Stub:
    """Finds a pedestrian beside a car; or nothing."""

    kinds, av_labels, delay = {"agent": ("Ped", "Car")}, (), 0

    def __init__(self, *, blind: bool = False) -> None:
        self._blind = blind

    def reset(self) -> None:
        self.frame = -1

    def step(self, picture: object) -> list[FrameDetections]:
        self.frame += 1
        boxes = np.array([[4 + self.frame, 8, 16 + self.frame, 40], [30, 4, 60, 44]], np.float32)
        scores = np.array([[0.8, 0.1], [0.1, 0.7]], np.float32)
        n = 0 if self._blind else 2
        none = np.zeros(0, np.float32)
        return [FrameDetections(self.frame, boxes[:n], scores.max(axis=1)[:n], scores[:n], none)]

    def finish(self) -> list[FrameDetections]:
        return []


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "drive<b>.mp4"
    rng = np.random.default_rng(0)
    with VideoWriter(path, 64, 48, 12.0) as writer:
        for _ in range(24):
            writer.write(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8))
    return path


@pytest.fixture(params=[False, True], ids=["sees", "blind"])
def blind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub(blind=request.param))
    return bool(request.param)


@pytest.mark.slow
def test_a_watch_ends_with_a_page_and_report_makes_the_same(
    roadaware: Command, film: Path, tmp_path: Path, blind: bool
) -> None:
    run = tmp_path / "run"
    done = roadaware("watch", film, "--weights", "x", "--out", run)
    assert done.code == 0, done.err
    page = (run / "report.html").read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["files"][-1] == "report.html"
    assert (summary["width_px"], summary["height_px"]) == (64, 48)
    assert {each["task"] for each in summary["models"]} == {
        "agents",
        "events",
        "what is expected",
        "crossing",
        "risk",
        "when",
    }
    assert "drive<b>" not in page
    assert page.count("<script") == 1
    assert not re.search(r"src=\"(?!data:)", page)
    assert 'href="video.mp4"' in page
    assert "Apache-2.0, comes with roadaware" in page
    assert ("Nothing was found" in page) == blind
    assert ("Nothing was found" in done.out) == blind
    assert ("1 Car, 1 Ped" in page) == (not blind)
    again = roadaware("report", run, "-o", run / "report.html")
    assert again.code == 0, again.err
    assert (run / "report.html").read_text() == page
    elsewhere = roadaware("report", run, "-o", tmp_path / "other" / "page.html")
    assert elsewhere.code == 0, elsewhere.err
    assert (
        'video.mp4"' not in (tmp_path / "other" / "page.html").read_text()
    )  # a page links what lies below it
    assert roadaware("report", run, run, "-o", tmp_path / "two.html").code == 2
    with VideoReader(run / "video.mp4") as written:
        assert len(written) == 24


def test_a_damaged_summary_is_named(roadaware: Command, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    for content in ("{", "[]", '{"format": "roadaware-watch"}', '{"format": "another"}'):
        (tmp_path / "summary.json").write_text(content)
        done = roadaware("report", tmp_path, "-o", tmp_path / "page.html")
        assert done.code == 3, (content, done.err)
        assert not (tmp_path / "page.html").exists()


def test_moments_are_ranked_and_apart() -> None:
    def event(what: str, tube: int, t_s: float, height: float = 10.0, **more: object) -> dict[str, object]:
        frame = round(10 * t_s)
        told = {"labels": {"agent": {"Ped": 0.8}}, "score": 0.7, "box": [0.0, 0.0, 5.0, height]}
        return {
            "event": what,
            "tube": tube,
            "frame": frame,
            "t_s": t_s,
            **told,
            "first_frame": 0,
            "last_frame": frame,
            **more,
        }

    events = [
        event("begin", 1, 1.0),
        event("update", 1, 2.0, 60.0),
        event("crossing_probable", 2, 2.2, crossing={"smoothed": 0.7}),
        event("crossing_probable", 2, 8.0, crossing={"smoothed": 0.6}),
        event("update", 3, 5.0, 70.0),
        event("end", 1, 9.0),
    ]
    told = summarise_events(events, 100.0)
    assert [(each.tube, each.t_s) for each in told.moments] == [(2, 2.2), (3, 5.0)]
    assert "70 %" in told.moments[0].why
    assert (told.spans[0].tube, told.spans[0].begin_s, told.spans[0].end_s) == (1, 0.0, 9.0)
    assert summarise_events([]).spans == ()


def test_the_line_counts_the_tubes_of_the_summary_and_the_time_that_is_left() -> None:
    progress = Progress(frames=50, t_s=5.0, last_number=49, tubes=3, begun=12)
    line = format_progress(progress, 10.0, 0, 200)
    assert line.startswith("[####............]  25 %  frame 50 of 200  00:05.0  10.0 fps  0:15 left")
    assert "12 tubes (3 in the image)" in line
    assert (
        format_progress(progress, 5.0, 0, 200, 10.0).count("0:15 left") == 1
    )  # every second frame is looked at
    endless = format_progress(progress, 10.0, 2, None)
    assert endless.startswith("frame 50  ")
    assert "left" not in endless
    assert endless.endswith("2 dropped")


def test_nothing_is_shown_on_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Source:
        from roadaware.online.frames import Outcomes

        n_frames, fps, outcomes = 100, 10.0, Outcomes()

    now = iter(float(10 * n) for n in range(100))
    monkeypatch.setattr(watch.time, "monotonic", lambda: next(now))
    with LiveLine(Source()) as line:  # type: ignore[arg-type]
        for n in range(5):
            line.show(Progress(frames=n, last_number=n - 1))
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    monkeypatch.setattr(watch.console, "is_terminal", lambda: True)
    monkeypatch.setattr(watch.sys, "stderr", terminal)
    with LiveLine(Source(), seconds=2.0) as line:  # type: ignore[arg-type]
        for n in range(5):
            line.show(Progress(frames=n, last_number=n - 1))
    assert "of 21" in terminal.getvalue()
