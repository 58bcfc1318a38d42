"""The short demo: videos that came along are watched and judged, in few lines and on one page."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from small_files import Command

from roadaware.cli import main
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo import command, watching
from roadaware.demo.scenes import LEARNT_SEEDS
from roadaware.errors import UsageError
from roadaware.reports.runs import describe_kind
from roadaware.scenes.store import open_predictions, open_scenes
from roadaware.simulator.synthetic_films import is_synthetic_film

MOST_LINES = 40
VIDEOS_PAGE = Path(command.__file__).parent.parent / "demo_data" / "videos.md"


def made_by() -> list[str]:
    """The words by which the page of the videos says that they were made."""
    (line,) = [
        line for line in VIDEOS_PAGE.read_text().splitlines() if line.startswith("    roadaware simulate ")
    ]
    return shlex.split(line)[1:]


def test_the_videos_are_whole_and_unknown_to_the_detector(tmp_path: Path) -> None:
    command.unpack_videos(tmp_path)
    scenes = open_dataset(SYNTHETIC, tmp_path)
    videos = watching.find_films(scenes, tmp_path)
    assert (len(videos), len(scenes.frames)) == (6, 6 * 24)
    assert all(map(is_synthetic_film, videos.values()))
    assert (len(scenes.boxes), len(scenes.labels)) == (485, 2361)
    words = made_by()
    seed = int(words[words.index("--seed") + 1])
    assert seed == json.loads((tmp_path / "simulation.json").read_text())["seed"] == command.VIDEOS_SEED
    assert seed not in LEARNT_SEEDS


@pytest.mark.slow
def test_the_videos_are_those_that_simulate_makes(tmp_path: Path) -> None:
    """Bytes of the videos depend on the encoder, the last digit of a corner on the sines of the processor."""
    command.unpack_videos(tmp_path / "packed")
    assert main([*made_by()[:-1], str(tmp_path / "again"), "--processes", "1", "-q"]) == 0
    count = 0
    for folder in sorted((tmp_path / "packed").rglob("tables")):
        packed = open_scenes(folder)
        again = open_scenes(tmp_path / "again" / folder.relative_to(tmp_path / "packed"))
        assert packed.meta == again.meta
        made = again.tables()
        assert packed.tables().keys() == made.keys()
        for name, table in packed.tables().items():
            assert_frame_equal(table, made[name], rel_tol=1e-6, abs_tol=1e-4)
            count += 1
    assert count > 60


@pytest.mark.slow
def test_the_demo_watches_judges_and_shows(roadaware: Command, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "demo"
    done = roadaware("demo", "-o", folder, "--resamples", "50")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) + len(done.err.splitlines()) <= MOST_LINES
    assert f"$ roadaware view {folder}/judged {folder}/watched {folder}/videos\n" in done.out
    assert "95 % intervals over 6 videos" in done.out
    assert describe_kind(folder / "judged") == "road events"
    assert len(open_predictions(folder / "watched" / "predictions").tubes) > 10
    (shown,) = [line for line in done.out.splitlines() if "$ roadaware evaluate" in line]
    words = shlex.split(shown)[2:-2]
    assert roadaware(*words, "-o", tmp_path / "again").code == 0
    first, again = (
        json.loads((at / "results.json").read_text()) for at in (folder / "judged", tmp_path / "again")
    )
    assert first["data_digest"] == again["data_digest"]
    assert first["metrics"] == again["metrics"]
    assert (folder / "report.html").stat().st_size > 50_000


@pytest.mark.slow
def test_without_a_detector_simulated_detections_are_judged(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks() -> Path:
        raise UsageError("torch is not installed")

    monkeypatch.setattr(watching, "find_detector", lacks)
    done = roadaware("demo", "-o", tmp_path / "demo", "--resamples", "0")
    assert done.code == 0, done.err
    assert "torch is not installed" in done.out
    assert "simulated detector" in done.out
    assert "The detections are simulated, and err." in (tmp_path / "demo" / "report.html").read_text()
    assert len(done.out.splitlines()) + len(done.err.splitlines()) <= MOST_LINES
