"""`roadaware watch`: with a real network, and as a process that is stopped, killed or out of disk."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_files import Command

from roadaware.cli import watch as command
from roadaware.errors import DamagedError
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online import setup
from roadaware.online.config import WatchConfig
from roadaware.online.events import read_events
from roadaware.online.setup import apply_detector_advice
from roadaware.scenes.store import open_predictions

STUB = """
import time
import numpy as np
from roadaware.cli import watch
from roadaware.models.detector import FrameDetections

class Slow:
    kinds, av_labels, delay = {"agent": ("Ped", "Car")}, ("AV-Stop", "AV-Mov"), 0
    def reset(self):
        self.frame = 0
    def step(self, image):
        time.sleep(0.02)
        self.frame += 1
        box = np.array([[5, 5, 40, 40]], np.float32)
        many = np.array([[0.9, 0.1]], np.float32)
        on = self.frame // 4 % 2
        return [FrameDetections(self.frame - 1, box, many[0, :1], many, np.array([on, 1 - on], np.float32))]
    def finish(self):
        return []

watch.load_detector = lambda *given: Slow()
"""
RUN = STUB + "import sys\nfrom roadaware.cli import main\nsys.exit(main(sys.argv[1:]))\n"


class Stub:
    """Finds the same car in every image."""

    kinds, av_labels, delay = {"agent": ("Ped", "Car")}, (), 0

    def __init__(self) -> None:
        self.frame = 0

    def reset(self) -> None:
        self.frame = 0

    def step(self, picture: object) -> list[FrameDetections]:
        self.frame += 1
        box, score = np.array([[5, 5, 40, 30]], np.float32), np.array([[0.1, 0.9]], np.float32)
        return [FrameDetections(self.frame - 1, box, score[0, 1:], score, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub())


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("watched") / "drive.mp4"
    with VideoWriter(path, 96, 64, 12.0) as writer:
        for number in range(48):
            picture = np.full((64, 96, 3), 90, np.uint8)
            picture[20:40, number : number + 30] = 200
            writer.write(picture)
    return path


def test_a_network_watches_a_film(roadaware: Command, film: Path, tmp_path: Path) -> None:
    import torch

    from roadaware.models import create
    from roadaware.models.retinanet3d.config import default
    from roadaware.models.weights import save_detector

    torch.set_num_threads(1)
    torch.manual_seed(0)
    kinds = {"agent": ("Ped", "Car"), "action": ("Stop", "Mov")}
    small = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_layers": 1}
    config = default(backbone="compact", causal=True, short_side_px=64, prior=0.1, **small)
    network = create("retinanet3d-compact", config=config, n_classes=5, n_av=2)
    save_detector(tmp_path / "tiny.safetensors", network, kinds, ("AV-Stop", "AV-Mov"))
    out = tmp_path / "run"
    words = ["watch", film, "--weights", tmp_path / "tiny.safetensors", "--out", out, "--threshold", "0"]
    half = roadaware(*words, "--seconds", "0.5", "--precision", "bf16", "--device", "cpu")
    assert half.code == 0, half.err
    assert roadaware(*words, "--device", "tpu", "--overwrite").code == 2
    done = roadaware(*words, "--fps", "6", "--seconds", "1.5", "--overwrite")
    assert done.code == 0, done.err
    assert "wrote" in done.out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["ended"]["reason"] == "time"
    assert summary["frames"] == 10
    tables = open_predictions(out / "predictions")
    assert tables.frames["frame"].to_list() == list(range(0, 20, 2))
    assert tables.meta.vocabularies == {**kinds, "av_action": ("AV-Stop", "AV-Mov")}
    assert len(tables.boxes)
    with VideoReader(out / "video.mp4") as drawn:
        assert drawn.height_px >= 480
    assert roadaware(*words).code == 2
    again = ["--weights", tmp_path / "tiny.safetensors", "--name", "left"]
    assert roadaware(*words, *again, "--overwrite", "--no-video", "--seconds", "0.5").code == 0
    assert not (out / "video.mp4").exists()
    mean = open_predictions(out / "predictions")
    assert mean.videos["video"].to_list() == mean.boxes["video"].unique().to_list() == ["left"]
    assert json.loads((out / "summary.json").read_text())["video"] == "left"
    # The mean of a network and itself is the network.
    first = tables.boxes.filter(tables.boxes["frame"] == 0)
    ours = mean.boxes.filter(mean.boxes["frame"] == 0)
    np.testing.assert_allclose(ours["score"], first["score"], atol=1e-5)


def test_without_a_detector_it_says_where_one_comes_from(
    roadaware: Command, film: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setup, "WEIGHTS", tmp_path / "weights")
    done = roadaware("watch", film, "--out", tmp_path / "run")
    assert done.code == 2
    assert "roadaware train" in done.err
    (tmp_path / "weights").mkdir()
    for name in ("one", "two"):
        (tmp_path / "weights" / f"{name}.safetensors").write_bytes(b"")
    assert "one.safetensors, two.safetensors" in roadaware("watch", film).err
    assert not (tmp_path / "run").exists()


def _walker() -> Stub:
    """Sees a pedestrian where the other sees a car."""

    class Walker(Stub):
        def step(self, picture: object) -> list[FrameDetections]:
            found = super().step(picture)[0]
            return [
                FrameDetections(found.frame, found.boxes, found.agentness, found.scores[:, ::-1], found.av)
            ]

    return Walker()


@pytest.mark.slow
def test_pedestrians_are_asked_about_where_predictors_are_named(
    roadaware: Command, film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars as pl
    import torch

    from roadaware.models import create
    from roadaware.models.crossing.entries import SteadyConfig
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.online.camera_motion import CameraMotion, PixelMotion

    def saved(name: str, task: str, labels: tuple[str, ...], inputs: str = "boxes") -> Path:
        torch.manual_seed(0)
        shapes = {inputs: (7, 4 if inputs == "boxes" else 1)}
        sizes = SteadyConfig(width=8, dilations=(1, 2))
        network = create("steady", config=sizes, shapes=shapes, labels=len(labels))
        Predictor(network, "steady", task, labels).save(tmp_path / "weights" / name)
        return tmp_path / "weights" / name

    (tmp_path / "weights").mkdir()
    files = [saved("crossing-jaad.safetensors", "action", ("no", "yes"))]
    files.append(saved("risk-jaad.safetensors", "risk", ("left", "middle", "right")))
    speed = saved("speed.safetensors", "action", ("no", "yes"), "ego:speed")
    monkeypatch.setattr(command, "load_detector", lambda *given: _walker())
    # The video is a flat ground, which shows no motion of the camera.
    monkeypatch.setattr(PixelMotion, "step", lambda *given: CameraMotion())
    words = ["watch", film, "--weights", "x", "--no-video", "--overwrite", "--out", tmp_path / "run"]
    done = roadaware(*words, "--crossing", files[0], "--crossing", files[1])
    assert done.code == 0, done.err
    assert "ms for each pedestrian in a frame" in done.out
    assert re.search(r"pedestrians +1\n.*of those, answered for +1\n", done.out)
    table = pl.read_parquet(tmp_path / "run" / "crossing.parquet")
    assert table["frame"].to_list() == list(range(3, 48))  # 7 frames of 30 a second are a quarter of a second
    assert {"crossing", "region", "regions"} <= set(table.columns)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert set(summary["crossing"]["predictors"]["files"]) == {file.name for file in files}
    assert roadaware(*words, "--crossing", "none").code == 0
    assert not (tmp_path / "run" / "crossing.parquet").exists()
    monkeypatch.setattr(setup, "WEIGHTS", tmp_path / "weights")
    assert roadaware(*words).code == 0
    assert (tmp_path / "run" / "crossing.parquet").exists()
    for wrong, why in (
        ([speed], "does not tell how the own vehicle moves"),
        (["none", files[0]], "stands alone"),
    ):
        given = [word for each in wrong for word in ("--crossing", each)]
        refused = roadaware(*words, *given)
        assert refused.code == 2
        assert why in refused.err
    assert roadaware(*words, "--crossing", tmp_path / "absent").code == 3


def test_a_detector_without_pedestrians_is_not_asked_about_them(
    roadaware: Command, film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cars(Stub):
        def __init__(self) -> None:
            super().__init__()
            self.kinds = {"agent": ("Bus", "Car")}

    monkeypatch.setattr(command, "load_detector", lambda *given: Cars())
    words = ["watch", film, "--weights", "x", "--no-video", "--out", tmp_path / "run"]
    refused = roadaware(*words, "--crossing", tmp_path / "any.safetensors")
    assert refused.code == 2
    assert "tells no pedestrians (Ped) but Bus, Car" in refused.err
    assert roadaware(*words).code == 0


def test_tubes_are_linked_as_the_detector_says_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    linking: dict[str, object] = {"min_iou": 0.1}
    notes = {"net": {"linking": linking, "min_score": 0.3}, "other": {"linking": {"min_iou": 0.4}}}
    monkeypatch.setattr("roadaware.models.detector.read_notes", lambda path: notes[Path(path).name])
    net, other = Path("net"), Path("other")
    for given, iou, score, words in (
        (([net],), 0.1, 0.3, ["linking overlap 0.1, as the detector advises; --iou to change", "above 0.3"]),
        (([net, net],), 0.1, 0.3, ["as the detector advises", "the detector's threshold; --threshold"]),
        (([net], 0.3, 0.4), 0.3, 0.4, ["linking overlap 0.3, as asked for; the detector advises 0.1"]),
        (([other],), 0.4, 0.2, ["linking overlap 0.4, as the detector advises"]),
        (
            ([net, other],),
            0.2,
            0.2,
            ["overlap 0.2, since the detectors advise different ones", "differ: 0.2"],
        ),
    ):
        config, said = apply_detector_advice(WatchConfig(), *given)
        assert (config.linker.min_iou, config.begin_score) == (iou, score)
        assert len(said) == len(words)
        assert all(word in line for word, line in zip(words, said, strict=True))
    for odd in ({"nearness": 1}, {"min_iou": "far"}, {"trim_alphas": 3}, {"min_iou": {}}):
        linking.clear()
        linking.update(odd)
        with pytest.raises(DamagedError, match="linking"):
            apply_detector_advice(WatchConfig(), [net])


@pytest.mark.slow
@pytest.mark.usefixtures("stub")
def test_what_a_detector_was_trained_on_is_said_where_the_film_is_not_of_that_kind(
    roadaware: Command, film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadaware.simulator.synthetic_films import MARK

    synthetic = tmp_path / "synthetic.mp4"
    with VideoReader(film) as frames, VideoWriter(synthetic, 96, 64, 12.0, comment=MARK) as writer:
        for picture in frames:
            writer.write(picture)
    notes = {"data": "simulator", "trained_on": "synthetic scenes alone; not validated on real roads"}
    notice = f"detector trained on {notes['trained_on']}"
    monkeypatch.setattr("roadaware.models.detector.read_notes", lambda path: notes)
    for source, said in ((film, notice), (synthetic, "")):
        out = tmp_path / source.stem
        done = roadaware("watch", source, "--weights", "x", "--quiet", "--crossing", "none", "--out", out)
        assert done.code == 0, done.err
        assert (notice in done.err) == bool(said)
        assert json.loads((out / "summary.json").read_text())["notice"] == said
        with VideoReader(out / "video.mp4") as drawn:
            shown = drawn.frame(20)
        assert ((shown[:60, :, 0] > 180) & (shown[:60, :, 2] < 140)).any() == bool(said)
    notes["data"], notes["trained_on"] = "ROAD", None
    done = roadaware(
        "watch", film, "--weights", "x", "--no-video", "--crossing", "none", "--out", tmp_path / "c"
    )
    assert "trained on" not in done.err


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize(
    "name", ["drive [1]", *(pytest.param(name, marks=pytest.mark.slow) for name in ("a*b?", "[", "\x1b[2J"))]
)
def test_a_folder_may_be_named_like_a_pattern(
    roadaware: Command, film: Path, tmp_path: Path, name: str
) -> None:
    there = tmp_path / name / "film [2].mp4"
    there.parent.mkdir()
    there.write_bytes(film.read_bytes())
    assert roadaware("watch", str(there), "--output", str(tmp_path / name / "out"), "--no-events").code == 0
    assert len(open_predictions(tmp_path / name / "out" / "predictions").boxes)
    assert (
        roadaware("report", str(tmp_path / name / "out"), "-o", str(tmp_path / name / "page.html")).code == 0
    )


@pytest.mark.usefixtures("stub")
def test_wrong_requests_write_nothing(roadaware: Command, film: Path, tmp_path: Path) -> None:
    weights = ["--weights", film, "--out", tmp_path / "run"]
    for wrong, code in (
        (["--budget-ms", "0"], 2),
        (["--threshold", "1.5"], 2),
        (["--seconds", "-1"], 2),
        (["--fps", "0"], 2),
        (["--name", " "], 2),
        (["--iou", "2"], 2),
    ):
        assert roadaware("watch", film, *weights, *wrong).code == code
    assert roadaware("watch", tmp_path / "absent.mp4", *weights).code == 3
    assert roadaware("watch", film, "--weights", film, "--out", film.parent).code == 2
    assert not (tmp_path / "run").exists()
    help_ = roadaware("watch", "--help").out
    assert "roadaware watch" in help_.split("For example:")[1]


@pytest.mark.slow
@pytest.mark.usefixtures("stub")
def test_a_source_that_fails_is_exit_3_with_what_was_seen_saved(roadaware: Command, tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    for number in range(8):
        size = (64, 48) if number < 6 else (32, 24)
        Image.new("RGB", size, (number, 90, 90)).save(tmp_path / "pictures" / f"{number}.png")
    out = tmp_path / "run"
    words = ["watch", tmp_path / "pictures", "--weights", "x", "--crossing", "none", "--out", out]
    done = roadaware(*words)
    assert done.code == 3
    assert "64x48 are followed by one of 32x24" in done.err
    assert "predictions, timing.parquet, video.mp4, timing.json, summary.json" in done.err
    assert open_predictions(out / "predictions").frames["frame"].to_list() == list(range(6))
    assert roadaware(*words, "--rescale", "--overwrite").code == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["outcomes"]["rescaled"]["count"] == 2


@pytest.mark.usefixtures("stub")
def test_a_full_disk_is_exit_4_with_the_rest_saved(roadaware: Command, film: Path, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, before[1]))
    try:
        # The tables of all kinds alone are larger than what is left for them here.
        words = ["--weights", "x", "--crossing", "none", "--no-events", "--out", tmp_path / "run"]
        done = roadaware("watch", film, *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.code == 4, done.err
    assert "events.jsonl, predictions, " in done.err
    assert not list((tmp_path / "run").glob(".roadaware*"))
    assert len(open_predictions(tmp_path / "run" / "predictions").frames) > 0


def _started(film: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """A watch as a process that has written its first events; it repeats the video as a camera would."""
    words = ["watch", str(film), "--weights", "x", "--crossing", "none", "--out", str(out), *more]
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s and child.poll() is None:
        path = out / "events.jsonl"
        if path.exists() and path.stat().st_size > 600:
            break
        time.sleep(0.02)
    return child


@pytest.mark.slow
def test_ctrl_c_ends_it_with_everything_saved(film: Path, tmp_path: Path) -> None:
    child = _started(film, tmp_path / "run", "--realtime")
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=60)[1]
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert "wrote" in err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["ended"]["reason"] == "stopped"
    assert 0 < summary["frames"] < 48
    assert len(open_predictions(tmp_path / "run" / "predictions").frames) == summary["frames"]
    events = list(read_events(tmp_path / "run" / "events.jsonl"))
    assert len(events) == summary["events"]
    assert events[-1]["event"] == "end"
    assert VideoReader(tmp_path / "run" / "video.mp4").fps


@pytest.mark.slow
def test_events_of_a_killed_watch_can_be_read(film: Path, tmp_path: Path) -> None:
    child = _started(film, tmp_path / "run", "--realtime")
    child.kill()
    child.communicate(timeout=60)
    events = list(read_events(tmp_path / "run" / "events.jsonl"))
    told = [event["event"] for event in events if event["event"] != "source"]  # a busy machine drops frames
    assert told[:2] == ["begin", "begin"]


def test_the_detector_that_comes_along_says_how_it_is_used_and_what_it_saw() -> None:
    from roadaware.models.detector import read_advice, read_notes, read_training_data

    weights = setup.find_bundled_weights()
    advice = read_advice([weights])
    assert advice.linking == {"min_iou": 0.1, "cost": "score", "assignment": "greedy"}
    assert advice.min_score == read_notes(weights)["calibration"]["min_score"] == 0.32
    assert read_training_data([weights]) == "synthetic scenes alone; not validated on real roads"
    assert f"at or above {advice.min_score:g}" in weights.with_suffix(".md").read_text(encoding="utf-8")
