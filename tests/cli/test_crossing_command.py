"""`crossing` takes tracks from anywhere, says what it lacks, and writes scores, people and a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.cli import main
from roadaware.io.video import VideoWriter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two who walk, as the csv of a tracker, and the video of them."""
    root = tmp_path_factory.mktemp("tracks")
    rows = ["frame,track_id,x,y,w,h"]
    with VideoWriter(root / "tracks.mp4", 320, 180, 30.0) as writer:
        for frame in range(45):
            picture = np.full((180, 320, 3), 90, np.uint8)
            for who, y in ((4, 40), (9, 60)):
                x = 20 + 3 * frame + 10 * who
                rows.append(f"{frame},{who},{x},{y},24,80")
                picture[y : y + 80, x : x + 24] = 200
            writer.write(picture)
    (root / "tracks.csv").write_text("\n".join(rows) + "\n")
    return root


def ask(*words: object) -> int:
    return main(["crossing", *map(str, words)])


def test_scores_people_and_a_page_come_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = [folder / "tracks.csv", "--fps", 30, "--size", "320x180", "--media", folder / "tracks.mp4"]
    assert ask(*given, "--output", out, "--json", tmp_path / "said.json") == 0
    scores = pl.read_parquet(out / "scores.parquet")
    assert len(scores) == 2 * (45 - 14)
    assert scores["probability"].is_between(0, 1).all()
    assert len((out / "scores.csv").read_text().splitlines()) == 1 + len(scores)
    people = pl.read_parquet(out / "people.parquet")
    assert set(people["name"]) == {"4", "9"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Who will cross" in page
    assert "data:image" in page
    said = json.loads((tmp_path / "said.json").read_text())
    assert (said["people"], said["moments"], said["steady_s"]) == (2, 62, 0.5)
    assert "id is 'track_id'" in said["columns"]
    capsys.readouterr()
    assert ask(*given, "--output", out) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert ask(*given, "--output", out, "--overwrite", "--every", 0.5) == 0
    assert len(pl.read_parquet(out / "scores.parquet")) == 2 * 3


def test_the_watch_of_another_video_is_not_taken(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = tmp_path / "out-watch"
    watched.mkdir()
    (watched / "summary.json").write_text("{}")
    film = folder / "tracks.mp4"
    for record in (
        {"source": "tracks.mp4", "bytes": 1},
        {"source": "other.mp4", "bytes": film.stat().st_size},
        {},
    ):
        (watched / "watch.json").write_text(json.dumps(record))
        assert ask(film, "--output", tmp_path / "out") == 2
        assert "watch of another video" in capsys.readouterr().err


def test_risk_is_a_region(folder: Path, tmp_path: Path) -> None:
    given = [folder / "tracks.csv", "--fps", 30, "--size", "320x180", "--weights", "risk-jaad"]
    assert ask(*given, "--output", tmp_path / "out") == 0
    scores = pl.read_parquet(tmp_path / "out" / "scores.parquet")
    assert scores["region"].is_between(0, 11).all()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--size", "320x180"], "--fps"),
        (["--fps", 30], "--size"),
        (["--fps", 30, "--size", "wide"], "WIDTHxHEIGHT"),
        (["--fps", 30, "--size", "320x180", "--every", 0], "--every is a number of seconds"),
        (["--fps", 30, "--size", "320x180", "--weights", "nobody"], "there is no predictor nobody"),
        (["--fps", 30, "--size", "320x180", "--columns", "id"], "pairs such as"),
        (["--fps", 30, "--size", "320x180", "--bridge", -1], "bridge_s"),
        (["--fps", 30, "--size", "320x180", "--steady", -1], "steady_s"),
    ],
)
def test_what_is_missing_or_wrong_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[object], told: str
) -> None:
    assert ask(folder / "tracks.csv", "--output", tmp_path / "out", *more) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_column_that_the_file_lacks_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--fps", 30, "--size", "320x180", "--columns", "id=nobody")
    assert ask(folder / "tracks.csv", "--output", tmp_path / "out", *more) == 3
    assert "has no column nobody" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_tracks_that_are_too_short_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("frame,id,x,y,w,h\n" + "".join(f"{f},1,10,10,30,90\n" for f in range(5)))
    assert ask(path, "--fps", 30, "--size", "320x180", "--output", tmp_path / "out") == 3
    assert "followed for 15 boxes" in capsys.readouterr().err
    # Rows that were refused may be why.
    path.write_text("frame,id,x,y,w,h\n" + "".join(f"{f - 30},1,10,10,30,90\n" for f in range(35)))
    assert ask(path, "--fps", 30, "--size", "320x180", "--output", tmp_path / "out") == 3
    assert "30 rows were refused, the first: the frame should be a whole number" in capsys.readouterr().err
    assert ask(tmp_path / "none.csv", "--output", tmp_path / "out") == 3
