"""`ra.watch` gives the events of `roadaware watch`, frame by frame, and lets go of its source."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).resolve().parents[1] / "online"))

from online_stubs import Connection, Scripted, one_car, picture

import roadaware as ra
from roadaware.cli import main
from roadaware.errors import InputError, UsageError
from roadaware.online import sources
from roadaware.online.cameras import Backoff, Camera, Shot
from roadaware.online.config import WatchConfig
from roadaware.online.events import read_events
from roadaware.online.frames import SystemClock
from roadaware.online.video_files import VideoFile
from roadaware.online.watch import Watch


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("film")
    ra.simulate(root / "made", seed=3, seconds=1.0, size=(160, 120), fps=8)
    return next((root / "made").rglob("video.mp4"))


@pytest.fixture(scope="module")
def closed() -> Iterator[list[str]]:
    """Names of the files that were closed, in order."""
    found: list[str] = []
    usual = VideoFile.close
    patch = pytest.MonkeyPatch()

    def close(self: VideoFile) -> None:
        found.append(self.name)
        usual(self)

    patch.setattr(VideoFile, "close", close)
    yield found
    patch.undo()


@pytest.mark.slow
def test_events_are_those_of_the_command(film: Path, tmp_path: Path, closed: list[str]) -> None:
    model = ra.load_model()
    closed.clear()
    threads = torch.get_num_threads()
    watched = ra.watch(film, threshold=0.05)
    frames = list(watched)
    assert watched.closed
    assert closed == ["video.mp4"]
    assert torch.get_num_threads() == threads
    words = ["watch", str(film), "--out", str(tmp_path / "run"), "--threshold", "0.05", "--no-video", "-q"]
    assert main(words) == 0
    told = [event for frame in frames for event in frame.events]
    assert told == list(read_events(tmp_path / "run" / "events.jsonl"))
    assert any(event["tube"] is not None for event in told)
    assert [frame.number for frame in frames] == list(range(8))
    assert frames[0].image.shape == (120, 160, 3)
    tube = next(tube for frame in frames for tube in frame.tubes)
    assert tube.box.shape == (4,)
    assert 0 <= tube.score <= 1
    assert tube.agent in model.labels["agent"]
    again = [event for frame in ra.watch(film, model, threshold=0.05) for event in frame.events]
    assert again == told
    assert next(watched, None) is None


def test_tubes_of_earlier_frames_stay_as_they_were(film: Path) -> None:
    seen, once = [], []
    for frame in Watch(sources.open_source(film), Scripted(one_car), WatchConfig(), SystemClock()):
        seen.append(frame)
        once += [tube.box.tolist() for tube in frame.tubes]
    assert len(seen) == 8
    assert once[0] != once[-1]
    assert [tube.box.tolist() for frame in seen for tube in frame.tubes] == once


@pytest.mark.slow
def test_whoever_leaves_early_lets_go_of_the_source(film: Path, closed: list[str]) -> None:
    model = ra.load_model()
    closed.clear()
    for _ in ra.watch(film, model):
        break
    gc.collect()
    assert closed == ["video.mp4"]
    with ra.watch(film, model) as watched:
        next(watched)
    assert closed == ["video.mp4"] * 2
    ra.watch(film, model).close()  # not one frame was asked for
    assert closed == ["video.mp4"] * 3
    with ra.watch(film, model), pytest.raises(UsageError, match="close that watch first"):
        ra.watch(film, model)
    closed.pop()
    with pytest.raises(UsageError, match="load_model takes them"):
        ra.watch(film, model, size=640)
    with pytest.raises(UsageError, match="threshold is a score"):
        ra.watch(film, model, threshold=2)
    with pytest.raises(UsageError, match="there is no model or file 'nobody'"):
        ra.watch(film, "nobody")
    assert closed == ["video.mp4"] * 4  # opened before the model was asked for


def _camera(script: list[object]) -> tuple[Camera, list[Connection]]:
    made: list[Connection] = []

    def connect() -> Connection:
        made.append(Connection(script if len(made) < 2 else [OSError("gone for good")]))
        return made[-1]

    return Camera("camera 0", connect, SystemClock(), backoff=Backoff(attempts=1, first_s=0.01)), made


@pytest.mark.slow
def test_a_camera_is_closed_by_who_leaves_and_told_of_by_whom_it_fails() -> None:
    shots: list[object] = [Shot(number / 10, picture(number)) for number in range(6)]
    camera, made = _camera(shots)
    detector = Scripted(one_car)
    for frame in Watch(camera, detector, WatchConfig(), SystemClock()):
        assert frame.image.shape == (48, 64, 3)
        break
    gc.collect()
    assert all(each.closed for each in made)
    camera, made = _camera([*shots, OSError("unplugged")])
    seen = []
    with pytest.raises(InputError, match="camera 0") as caught:
        seen.extend(frame.number for frame in Watch(camera, detector, WatchConfig(), SystemClock()))
    assert "all frames until then" in str(caught.value.hint)
    assert all(each.closed for each in made)


def test_a_source_that_fails_says_so_at_once(tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no film")
    for source in (tmp_path / "nothing.mp4", tmp_path / "broken.mp4", "http://127.0.0.1:9/x", 63):
        with pytest.raises(InputError):
            ra.watch(source)
    with pytest.raises(UsageError, match="iou is an overlap"):
        ra.watch(tmp_path / "nothing.mp4", iou=1.0)


def test_models_are_found_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    model = ra.load_model("compact-road")
    assert repr(model).startswith("Model(compact-road, detection: 10 agent")
    assert "synthetic" in model.trained_on
    assert ra.load_model(model.files[0]).labels == model.labels
    with pytest.raises(UsageError, match="is a detector"):
        model.predict(ra.Scenes())
    with pytest.raises(UsageError, match="models by name: compact-road, crossing-jaad"):
        ra.load_model("nothing-like-it")
    with pytest.raises(UsageError, match="models get street-small"):
        ra.load_model("street-small")
    with pytest.raises(UsageError, match="cannot be used"):
        ra.load_model(device="tpu")
    (tmp_path / "empty.safetensors").write_bytes(b"")
    with pytest.raises(InputError):
        ra.load_model(tmp_path / "empty.safetensors")


def test_a_folder_of_images_is_watched_too(tmp_path: Path) -> None:
    from PIL import Image

    for number in range(3):
        Image.fromarray(np.full((64, 96, 3), 40 * number, np.uint8)).save(tmp_path / f"{number}.png")
    frames = list(ra.watch(tmp_path, ra.load_model(), crossing="none"))
    assert [frame.t_s for frame in frames] == pytest.approx([0, 1 / sources.USUAL_FPS, 2 / sources.USUAL_FPS])
