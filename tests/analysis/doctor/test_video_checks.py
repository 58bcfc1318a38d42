"""Videos and run folders are looked at before somebody trusts them: what is planted is named, and what is whole is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from roadaware import __version__
from roadaware.analysis.doctor.run_folders import check_run_folder
from roadaware.analysis.doctor.videos import check_times, check_video
from roadaware.cli.app import main
from roadaware.datasets import read
from roadaware.errors import InputError
from roadaware.io.folders import add_marker
from roadaware.scenes.store import save


def write_video(
    path: Path,
    *,
    times: list[int] | None = None,
    frames: int = 40,
    draw: Callable[[int], int] = lambda n: 60 + 4 * n,
    codec: str = "libx264",
    noise: np.random.Generator | None = None,
) -> Path:
    """A video at 20 frames a second, or with frames at `times` in thousandths; each has a bar of another brightness."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=20)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for n in range(len(times) if times else frames):
            image = np.full((48, 64, 3), 90, np.uint8)
            image[:, n % 60 : n % 60 + 4] = min(draw(n), 255)
            if draw(n) in (0, 255):
                image[:] = draw(n)
            if noise is not None:
                image = noise.integers(0, 255, image.shape, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = times[n] if times else 50 * n, Fraction(1, 1000)
            for packet in stream.encode(frame):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)
    return path


def codes(path: Path) -> list[str]:
    return [item.code for item in check_video(path)[1]]


def test_a_usual_video_has_no_findings(tmp_path: Path) -> None:
    facts, found = check_video(write_video(tmp_path / "a.mp4"))
    assert found == []
    assert (facts.codec, facts.frames, facts.decoded, facts.width_px) == ("h264", 40, 40, 64)
    assert facts.fps == pytest.approx(20)
    assert facts.seconds == pytest.approx(2)


@pytest.mark.parametrize(
    ("planted", "code"),
    [
        ({"times": [50 * n + (25 if n % 3 == 1 else 0) for n in range(40)]}, "variable_rate"),
        ({"times": [50 * n + (2000 if n >= 20 else 0) for n in range(40)]}, "gaps"),
        ({"draw": lambda n: 0}, "dark"),
        ({"draw": lambda n: 255}, "bright"),
        ({"frames": 12}, "short"),
        ({"codec": "mpeg4"}, "codec"),
    ],
)
def test_what_is_planted_is_named(planted: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert code in codes(write_video(tmp_path / "a.mp4", **planted))


def test_a_still_video_is_named(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", draw=lambda n: 90)
    assert codes(path) == ["static"]


def test_what_is_no_video_or_broken_is_named(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "a.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "none.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("a video\n" * 100)
    for name in ("cut", "none", "text"):
        (finding,) = check_video(tmp_path / f"{name}.mp4")[1]
        assert finding.code == "unread"
        assert finding.remedy


@pytest.mark.parametrize("seed", range(3))
def test_damaged_frames_are_counted(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    path = write_video(tmp_path / "a.mp4", noise=rng)
    assert codes(path) == []
    data = bytearray(path.read_bytes())
    begin, end = data.index(b"mdat") + 4, data.rindex(b"moov")
    # Behind the first frame, whose loss would end the file as a whole.
    for place in rng.integers(begin + (end - begin) // 3, end - 500, 40):
        data[place] ^= 0xFF
    path.write_bytes(bytes(data))
    assert "damaged_frames" in codes(path)


def test_a_video_that_players_turn_is_named(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    one, plain = (0x10000).to_bytes(4, "big"), bytes(4)
    identity = one + plain * 3 + one + plain * 3 + (0x40000000).to_bytes(4, "big")
    quarter = (
        plain + one + plain + (0xFFFF0000).to_bytes(4, "big") + plain * 4 + (0x40000000).to_bytes(4, "big")
    )
    data = path.read_bytes()
    track = data.index(b"tkhd")
    place = data.index(identity, track)
    path.write_bytes(data[:place] + quarter + data[place + len(identity) :])
    facts, found = check_video(path)
    assert [item.code for item in found] == ["rotation"]
    assert facts.rotation_deg % 180 == 90


def test_times_of_frames_are_compared_with_the_rate() -> None:
    steady = np.arange(50) / 25.0
    assert check_times(steady, 25.0) == []
    assert [item.code for item in check_times(steady, 30.0)] == ["stated_rate"]
    assert [item.code for item in check_times(steady, None)] == ["no_rate"]
    # Times in thousandths of a second, as Matroska rounds them, are one rate.
    assert check_times(np.round(np.arange(500) / 29.97, 3), 29.97) == []
    assert "fps=25" in check_times(steady, 30.0)[0].remedy


def test_the_command_lists_videos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos" / "a.mp4")
    write_video(tmp_path / "videos" / "b.mp4", draw=lambda n: 0)
    assert main(["doctor", "videos", str(tmp_path / "videos"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["videos"]
    assert [(each["path"], [item["code"] for item in each["diagnoses"]]) for each in told] == [
        ("a.mp4", []), ("b.mp4", ["dark", "static"])
    ]  # fmt: skip
    assert main(["doctor", "videos", str(tmp_path / "videos"), "--strict"]) == 1
    assert "too dark" in capsys.readouterr().out
    assert main(["doctor", "videos", str(tmp_path / "videos" / "a.mp4"), "--strict"]) == 0
    assert main(["doctor", "videos"]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["doctor", "videos", str(tmp_path / "empty")]) == 3


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    (tmp_path / "a.csv").write_text("frame,id,class,x1,y1,x2,y2\n0,1,car,1,1,9,9\n")
    save(read("csv", tmp_path / "a.csv", cache=False), tmp_path / "tables")
    return tmp_path / "tables"


def write_run(folder: Path, config: dict[str, Any], metrics: dict[str, Any]) -> Path:
    facts = {"schema": 1, "version": __version__, "config": {"threshold": 0.5}, "metrics": metrics}
    files = {
        "config.json": json.dumps({"metric": config}).encode(),
        "rows.parquet": b"rows",
        "report.html": b"<p>",
    }
    folder.mkdir()
    for name, data in add_marker(files, facts).items():
        (folder / name).write_bytes(data)
    return folder


def told(folder: Path) -> dict[str, str]:
    return {item.code: f"{item.evidence} {item.remedy}" for item in check_run_folder(folder)}


def test_runs_of_evaluations_are_checked_file_by_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"threshold": 0.5}, {"ap": 0.5})
    assert told(run) == {}
    (run / "report.html").write_text("edited")
    assert told(run) == {}, "the page may be edited"
    (run / "rows.parquet").write_bytes(b"others")
    assert set(told(run)) == {"changed"}
    (run / "rows.parquet").unlink()
    assert "rows.parquet" in told(run)["missing"]
    other = write_run(tmp_path / "other", {"threshold": 0.75}, {"ap": 0.0, "ar": None})
    assert set(told(other)) == {"config", "all_zero"}
    assert "threshold" in told(other)["config"]
    record = json.loads((run / "results.json").read_text())
    (run / "results.json").write_text(json.dumps({**record, "version": "0.0.1", "files": {"../../x": "0"}}))
    assert set(told(run)) == {"changed", "version"}


def test_saved_tables_are_opened(tables: Path, tmp_path: Path) -> None:
    assert told(tables) == {}
    boxes = next(tables.glob("boxes-*.parquet"))
    boxes.write_bytes(boxes.read_bytes()[:-9])
    assert set(told(tables)) == {"damaged"}
    (tables / "meta.json").unlink()
    assert set(told(tables)) == {"unfinished"}


def test_work_by_parts_says_what_is_left(tables: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "parts" / "one").mkdir(parents=True)
    record = {"format": "x", "version": __version__, "finished": False, "failed": {},
              "videos": {"a": {"part": "one"}, "b": {"part": "two"}}}  # fmt: skip
    (run / "run.json").write_text(json.dumps(record))
    assert set(told(run)) == {"unfinished", "missing"}
    assert "1 of 2, such as b" in told(run)["missing"]
    (run / "run.json").write_text(json.dumps({**record, "finished": True, "failed": {"c": "cut off"}}))
    assert set(told(run)) == {"missing", "failed"}
    tables.rename(run / "predictions")
    assert set(told(run)) == {"failed"}
    (run / "run.json").write_text("{")
    assert set(told(run)) == {"record"}


def test_trainings_and_studies_that_are_not_over_are_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.json").write_text("{}")
    assert "nor a checkpoint" in told(run)["unfinished"]
    (run / "last.ckpt").write_bytes(b"")
    assert "but a checkpoint" in told(run)["unfinished"]
    (run / "detector.safetensors").write_bytes(b"")
    (run / ".roadaware-123-0123abcd.tmp").write_bytes(b"")
    assert set(told(run)) == {"left_over"}
    study = tmp_path / "study"
    study.mkdir()
    (study / "study.json").write_text("{}")
    assert set(told(study)) == {"unfinished"}
    (study / "results.parquet").write_bytes(b"")
    assert set(told(study)) == set()
    (study / "study.json").write_text('{"unfinished": 3}')
    assert "3 cells" in told(study)["unfinished"]


@pytest.mark.parametrize("model", ["seed-0/model.safetensors", "seed-0/model.npz"])
def test_predictors_of_pedestrians_are_over_with_their_results(tmp_path: Path, model: str) -> None:
    (tmp_path / "recipe.json").write_text('{"type": "PedestrianRecipe", "seeds": [0, 1]}')
    (tmp_path / model).parent.mkdir()
    (tmp_path / "seed-0" / "last.ckpt").write_bytes(b"")
    assert "no weights, but a checkpoint" in told(tmp_path)["unfinished"]
    (tmp_path / model).write_bytes(b"")
    assert "no results, but a checkpoint" in told(tmp_path)["unfinished"]
    (tmp_path / "results.json").write_text("{}")
    assert set(told(tmp_path)) == set()


def test_a_detector_that_is_a_folder_is_over(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text('{"type": "Recipe"}')
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"")
    assert set(told(tmp_path)) == set()


def test_other_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="expected a record"):
        check_run_folder(tmp_path)
    assert main(["doctor", "run", str(tmp_path / "none")]) == 3
    assert "expected the folder of a run" in capsys.readouterr().err
    assert main(["doctor", "run"]) == 2
    assert main(["doctor", "run", str(tmp_path), "--truth", "a"]) == 2
