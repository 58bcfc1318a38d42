"""`--events`: on for detectors of agents alone, off for others, refused where there are no agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_files import Command

from roadaware.cli import watch as watch_command
from roadaware.errors import UsageError
from roadaware.io.video import VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online.events import read_events
from roadaware.online.setup import has_event_head
from roadaware.scenes.store import open_predictions, save
from roadaware.tasks.road_events import Classes, build_predictions


class Cars:
    """Finds a car that comes near, in every image."""

    av_labels, delay = (), 0

    def __init__(self, kinds: dict[str, tuple[str, ...]]) -> None:
        self.kinds = kinds
        self.reset()

    def reset(self) -> None:
        self.frame = -1

    def step(self, picture: np.ndarray) -> list[FrameDetections]:
        self.frame += 1
        width = sum(len(names) for names in self.kinds.values())
        scores = np.full((1, width), 0.9, np.float32)
        box = np.array([[40, 30, 60 + self.frame, 50 + self.frame]], np.float32)
        return [FrameDetections(self.frame, box, scores[:, 0], scores, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


@pytest.fixture
def film(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "film.mp4"
    with VideoWriter(path, 128, 96, 12.0) as writer:
        for _ in range(10):
            writer.write(rng.integers(0, 255, (96, 128, 3)).astype(np.uint8))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "words", "told"),
    [
        ({"agent": ("Car",)}, (), True),
        ({"agent": ("Car",)}, ("--no-events",), False),
        ({"agent": ("Car",), "action": ("Stop",)}, (), False),
        ({"agent": ("Car",), "action": ("Stop",)}, ("--events",), True),
    ],
)
def test_a_watch_tells_events_of_agents_alone(
    roadaware: Command,
    film: Path,
    monkeypatch: pytest.MonkeyPatch,
    kinds: dict[str, tuple[str, ...]],
    words: tuple[str, ...],
    told: bool,
) -> None:
    monkeypatch.setattr(watch_command, "load_detector", lambda *given: Cars(kinds))
    out = film.parent / "run"
    done = roadaware("watch", film, "--crossing", "none", "--no-video", "--out", out, "--json", *words)
    assert done.code == 0, done.err
    found = open_predictions(out / "predictions")
    assert ("location" in found.meta.vocabularies) == told
    labels = [event["labels"] for event in read_events(out / "events.jsonl") if event["tube"] is not None]
    assert labels
    assert any("location" in each for each in labels) == told
    if told:
        kinds_of_tubes = found.tubes["kind"].drop_nulls().unique().to_list()
        assert {"action", "location"} <= set(kinds_of_tubes)


def saved(folder: Path, agents: tuple[str, ...], *, sized: bool = True) -> Path:
    detector = Cars({"agent": agents})
    frames = [detector.step(np.zeros(0))[0] for _ in range(12)]
    row = {"video": ["drive"], "fps": [12.0]} | ({"width_px": [128], "height_px": [96]} if sized else {})
    save(build_predictions({"drive": frames}, Classes({"agent": agents}), videos=pl.DataFrame(row)), folder)
    return folder


def test_link_gives_saved_detections_their_events(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("link", saved(tmp_path / "a", ("Car",)), "--events", "--out", tmp_path / "b", "--json")
    assert done.code == 0, done.err
    assert {"agent", "action", "location", "duplex"} <= set(done.data["labelled tubes"])
    assert len(open_predictions(tmp_path / "b").frames) == 12
    plain = roadaware("link", tmp_path / "a", "--out", tmp_path / "c", "--json")
    assert set(plain.data["labelled tubes"]) == {"agent"}
    assert plain.data["paths"] == done.data["paths"]


def test_what_cannot_have_events_is_refused(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("link", saved(tmp_path / "a", ("zebra",)), "--events", "--out", tmp_path / "b")
    assert done.code == 2
    assert "tells agents of ROAD" in done.err
    done = roadaware(
        "link", saved(tmp_path / "c", ("Car",), sized=False), "--events", "--out", tmp_path / "d"
    )
    assert done.code == 2
    assert "--truth" in done.err
    with pytest.raises(UsageError):
        has_event_head(True, {"corner": ("tyre",)})
    assert not has_event_head(None, {"corner": ("tyre",)})
