"""Frame n of the page is frame n of the film, whatever the film is; what cannot be played is encoded once."""

from __future__ import annotations

import time
from pathlib import Path

import av
import numpy as np
import polars as pl
import pytest
from numbered import (
    BITS,
    BLOCK,
    FRAMES,
    Open,
    make_truth,
    numbered_image,
    variable_times,
    write_numbered_film,
)
from PIL import Image

from roadaware.io.video import VideoReader
from roadaware.scenes.store import save
from roadaware.viewer.films import Film, FilmFinder
from roadaware.viewer.opening import open_paths


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))


def read_number(image: np.ndarray) -> int:  # type: ignore[type-arg]
    """What `numbered_image` shows."""
    middle = BLOCK // 2
    return sum(int(image[middle, bit * BLOCK + middle].mean() > 128) << bit for bit in range(BITS))


def wait(finder: FilmFinder, video: str) -> Film:
    for _ in range(600):
        film = finder.film(video)
        if film.state != "encoding":
            return film
        time.sleep(0.05)
    raise AssertionError("it takes too long")


def test_a_film_that_plays_is_served_as_it_is_with_the_times_of_its_frames(sets: Path) -> None:
    film = FilmFinder(open_paths([sets / "truth"])).film("one")
    assert (film.state, film.message, film.path) == ("ready", "", (sets / "films" / "one.mp4").resolve())
    assert film.times_s == pytest.approx([time_ms / 1000 for time_ms in variable_times()])


def test_a_film_that_is_not_there_is_named(sets: Path) -> None:
    film = FilmFinder(open_paths([sets / "truth"])).film("two")
    assert film.state == "missing"
    assert "films/two.mp4" in film.message
    assert "--media" in film.message


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("two.mp4", "mpeg4"),
        pytest.param("two.mkv", "libx264", marks=pytest.mark.slow),
        pytest.param("two.mov", "libx264", marks=pytest.mark.slow),
    ],
)
def test_what_browsers_do_not_play_is_encoded_once_frame_by_frame(
    tmp_path: Path, sets: Path, name: str, codec: str
) -> None:
    (tmp_path / "media").mkdir()
    path = tmp_path / "media" / name
    if codec == "mpeg4":
        write_constant(path, codec)
    else:
        # B frames and a variable rate: an mp4 or mov of these states durations that are those of other frames.
        write_numbered_film(path, codec, b_frames=2)
    opened = open_paths([sets / "truth"], [tmp_path / "media"])
    film = wait(FilmFinder(opened), "two")
    assert film.state == "ready", film.message
    assert "copy" in film.message
    assert film.path is not None
    assert film.path.is_relative_to(tmp_path / "cache")
    with VideoReader(film.path) as copy:
        assert len(copy) == len(film.times_s) == FRAMES
        assert [read_number(copy.frame(number)) for number in range(FRAMES)] == list(range(FRAMES))
    written = film.path.stat().st_mtime_ns
    again = FilmFinder(opened).film("two")
    assert (again.state, again.path) == ("ready", film.path)
    assert film.path.stat().st_mtime_ns == written
    assert [each.name for each in (tmp_path / "cache" / "viewer").iterdir()] == [film.path.name]


def write_constant(path: Path, codec: str) -> None:
    """A film at 20 frames a second."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=20)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for number in range(FRAMES):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(numbered_image(number), format="rgb24")))
        file.mux(stream.encode(None))


def test_stills_are_served_one_by_one_without_their_metadata(tmp_path: Path, viewed: Open) -> None:
    root = tmp_path / "stills"
    root.mkdir()
    truth = make_truth()
    frames = (
        truth.boxes.filter(truth.boxes["video"] == "one")
        .select("video", "frame")
        .unique()
        .sort("frame")
        .head(3)
    )
    names = []
    for number in frames["frame"].to_list():
        names.append(f"{number:03d}.jpg")
        exif = Image.Exif()
        exif[0x010E] = "who took it"
        Image.fromarray(numbered_image(number)).save(root / names[-1], quality=95, exif=exif)
    (root / names[2]).unlink()
    save(truth.with_tables(frames=frames.with_columns(path=pl.Series(names))), root / "tables")
    client = viewed(root / "tables")
    film = client.json("/api/film?video=0")
    assert (film["state"], film["width"], film["height"]) == ("stills", 320, 180)
    status, headers, body = client.ask("/still/0/1")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert b"who took it" not in body
    (tmp_path / "got.jpg").write_bytes(body)
    assert read_number(np.asarray(Image.open(tmp_path / "got.jpg"))) == 1
    assert client.ask("/still/0/2")[0] == 409
    assert client.ask("/still/0/9")[0] == 409
    assert client.ask("/still/1/0")[0] == 409
