"""The clips of reports: the costliest errors on their films, small, said where something lacks, the same bytes again."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lxml import html
from numbered import FRAMES, HEIGHT, WIDTH, make_predictions, make_truth, write_numbered_film
from PIL import Image

from roadaware.analysis.excerpts import (
    Clip,
    Excerpt,
    Outline,
    find_film,
    select_event_excerpts,
    select_sample_excerpts,
)
from roadaware.cli import main
from roadaware.errors import DamagedError, InputError
from roadaware.io import video as videos
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.scores import SampleScores
from roadaware.reports.clips import MOST_BYTES, build_clip_files, draw_clips, read_clips
from roadaware.reports.event_pages import load_event_run
from roadaware.reports.page import MOST_CLIP_CHARS, Clips, Section, report
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.videos import Film

GREEN, RED = (64, 222, 152), (255, 112, 67)
CONFIG = DetectionConfig.default()


def play(clip: Clip, folder: Path) -> list[np.ndarray[Any, Any]]:
    """The frames of a clip."""
    path = folder / "played.mp4"
    path.write_bytes(clip.mp4)
    with VideoReader(path) as reader:
        return list(reader)


def find_colour(image: np.ndarray[Any, Any], colour: tuple[int, int, int]) -> tuple[int, ...] | None:
    """The smallest box around all pixels of about a colour."""
    near = (np.abs(image.astype(int) - colour) < 90).all(axis=2)
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    return (int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])) if len(rows) else None


@pytest.fixture(scope="module")
def grey(tmp_path_factory: pytest.TempPathFactory) -> Film:
    """Five seconds of grey of 640x360, 20 frames a second."""
    path = tmp_path_factory.mktemp("grey") / "grey.mp4"
    with VideoWriter(path, 640, 360, 20.0) as writer:
        for _ in range(100):
            writer.write(np.full((360, 640, 3), 90, dtype=np.uint8))
    return Film("grey", str(path), 100, 360, 640)


def excerpt(film: Film | None, **changes: Any) -> Excerpt:
    """Two seconds of it with a true box that moves by two pixels a frame, and a prediction in the last second."""
    outlines = {
        frame: [Outline((100.0 + 2 * frame, 100, 200 + 2 * frame, 200), "", True)]
        + [Outline((300.0, 220, 380, 330), "", False)] * (frame >= 40)
        for frame in range(20, 60)
    }
    given: dict[str, Any] = {"first": 20, "end": 60, "shown": 45, "fps": 20.0, "outlines": outlines}
    return Excerpt("Ped is missed.", "grey", film, **{**given, **changes})


def test_boxes_stand_where_they_are_in_the_part_that_is_shown(grey: Film, tmp_path: Path) -> None:
    (clip,) = draw_clips([excerpt(grey)])
    frames = play(clip, tmp_path)
    assert (len(frames), clip.fault) == (40, "")
    assert frames[0].shape == (270, 480, 3)
    assert len(clip.mp4) <= MOST_BYTES
    # Boxes reach from 140 to 380 and from 100 to 330: 2.2 times the higher share of the image is all of it.
    for place in (0, 25, 39):
        left = (140 + 2 * place) * 480 / 640
        truth = find_colour(frames[place], GREEN)
        assert truth == pytest.approx((left, 75, left + 75, 150), abs=2)
        said = find_colour(frames[place], RED)
        assert (said is None) == (place < 20)
    # Dashed: on its upper edge there is more of the ground than of the colour of a whole line.
    edge = (np.abs(frames[30][166, 230:280].astype(int) - RED) < 60).all(axis=1)
    assert 0.2 < edge.mean() < 0.85
    poster = np.asarray(Image.open(io.BytesIO(clip.poster)).convert("RGB"))
    assert find_colour(poster, GREEN) == pytest.approx(find_colour(frames[25], GREEN), abs=2)


def test_small_boxes_are_shown_larger(grey: Film, tmp_path: Path) -> None:
    outlines = {frame: [Outline((10.0, 300, 30, 340), "", True)] for frame in range(20, 60)}
    (clip,) = draw_clips([excerpt(grey, outlines=outlines)])
    # Two fifths of the image, from its lower left corner.
    seen = find_colour(play(clip, tmp_path)[5], GREEN)
    grow = 480 / 256
    assert seen == pytest.approx((10 * grow, (300 - 216) * grow, 30 * grow, (340 - 216) * grow), abs=2)


def test_boxes_in_pixels_of_another_size_are_drawn_in_their_place(grey: Film, tmp_path: Path) -> None:
    (clip,) = draw_clips([excerpt(grey)])
    twice = {
        frame: [Outline(tuple(2 * edge for edge in each.corners), each.words, each.true) for each in held]
        for frame, held in excerpt(grey).outlines.items()
    }
    (large,) = draw_clips([excerpt(grey, outlines=twice, size_px=(1280.0, 720.0))])
    assert large == clip


@pytest.mark.slow
def test_the_same_frames_make_the_same_bytes(grey: Film) -> None:
    assert draw_clips([excerpt(grey)] * 2)[0] == draw_clips([excerpt(grey)])[0]


def test_a_clip_lasts_three_seconds_at_some_fifteen_frames_a_second(grey: Film, tmp_path: Path) -> None:
    (clip,) = draw_clips([excerpt(grey, first=0, end=100, fps=30.0)])
    path = tmp_path / "played.mp4"
    path.write_bytes(clip.mp4)
    with VideoReader(path) as reader:
        assert reader.fps == pytest.approx(15)
        assert len(reader) / 15 <= 3.1


@pytest.mark.slow
def test_noise_is_made_small_or_stays_a_still(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.mp4"
    with VideoWriter(path, 480, 480, 10.0, crf=10) as writer:
        for _ in range(30):
            writer.write(rng.integers(0, 255, (480, 480, 3), dtype=np.uint8))
    film = Film("noise", str(path), 30, 480, 480)
    (clip,) = draw_clips([excerpt(film, first=0, end=30, shown=3, fps=10.0)])
    assert len(clip.mp4) <= MOST_BYTES
    assert clip.poster
    assert bool(clip.mp4) != ("a still" in clip.fault)


def test_frames_that_cannot_be_decoded_are_marked_and_told(tmp_path: Path) -> None:
    stills = []
    for number in range(12):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (320, 180), (10, 20, 200)).save(path)
        if number in (4, 5, 7):
            path.write_bytes(path.read_bytes()[:60])
        stills.append(str(path))
    film = Film("stills", "", 12, 180, 320, tuple(stills))
    (clip,) = draw_clips([excerpt(film, first=0, end=12, shown=5, fps=10.0, outlines={})])
    frames = play(clip, tmp_path)
    assert "3 of its 12 frames" in clip.fault
    assert "grey and crossed out" in clip.fault
    blue = [int(frame[5, 240, 2]) > 150 for frame in frames]
    assert blue == [number not in (4, 5, 7) for number in range(12)]
    # The next whole one stands for the clip, and the page says what it lacks.
    assert np.asarray(Image.open(io.BytesIO(clip.poster)).convert("RGB"))[5, 240, 2] > 150
    assert "3 of its 12 frames cannot be decoded" in report([Section("a", (), (Clips((clip,)),))])
    for path in map(Path, stills):
        path.write_bytes(b"")
    (nothing,) = draw_clips([excerpt(film, first=0, end=12, shown=5, fps=10.0)])
    assert (nothing.mp4, nothing.poster) == (b"", b"")
    assert nothing.fault


def test_without_h264_it_is_vp9_and_without_both_a_still(
    grey: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = videos._ENCODERS
    monkeypatch.setattr(videos, "_ENCODERS", {"no such encoder": ({}, 51), "libvpx-vp9": known["libvpx-vp9"]})
    first, again = draw_clips([excerpt(grey)] * 2)
    assert first == again
    assert b"vp09" in first.mp4
    frames = play(first, tmp_path)
    assert len(frames) == 40
    assert find_colour(frames[25], GREEN) == pytest.approx((142, 75, 217, 150), abs=3)
    monkeypatch.setattr(videos, "_ENCODERS", {"no such encoder": ({}, 51)})
    (still,) = draw_clips([excerpt(grey)])
    assert still.mp4 == b""
    assert still.poster
    assert "encodes no video that browsers play" in still.fault
    page = html.document_fromstring(report([Section("a", (), (Clips((still,)),))]))
    assert not page.xpath("//video")
    assert page.xpath("//figure/img/@alt") == ["Ped is missed."]


# Which moments, and where their films are.


def make_bold_predictions() -> Predictions:
    """The numbered ones, of which the false person has the highest score."""
    found = make_predictions()
    bold = pl.when(pl.col("tube") == 3).then(0.95).otherwise("score").alias("score")
    names = ("boxes", "tubes", "tube_labels")
    return found.with_tables(**{name: getattr(found, name).with_columns(bold) for name in names})


def place_film(sets: Path) -> tuple[Path, ...]:
    return (sets / "truth", sets)


def test_the_costliest_errors_come_first_and_apart(sets: Path) -> None:
    found = select_event_excerpts(make_bold_predictions(), make_truth(), CONFIG, place_film(sets))
    # Video `two`, of which there is no film, stands behind those that can be seen.
    assert [each.video for each in found] == ["one", "one", "two"]
    assert found[0].says.startswith("Ped is taken for Car 0.70: one, frames 70 to 89; ")
    assert found[1].says.startswith("Ped 0.95 is found where there is none: one, frames 20 to 39; ")
    assert found[2].says.startswith("Ped is missed: two, frames 0 to 29; ")
    assert found[2].film is None
    assert "two.mp4" in found[2].fault
    costs = [float(re.search(r"costs (\d+\.\d+) points", each.says)[1]) for each in found]  # type: ignore[index]
    assert costs[0] > costs[1] > 0
    first = found[0]
    assert first.shown == 80
    assert first.end - first.first <= 60
    assert {each.true for each in first.outlines[75]} == {True, False}
    assert {each.words for each in first.outlines[75]} == {"Ped", "Car 0.70"}
    (box,) = (each.corners for each in first.outlines[75] if each.true)
    assert box == (160.0, 60.0, 190.0, 100.0)
    assert (
        len(select_event_excerpts(make_bold_predictions(), make_truth(), CONFIG, place_film(sets), most=1))
        == 1
    )
    assert (
        select_event_excerpts(make_bold_predictions(), make_truth(), CONFIG, place_film(sets), most=0) == ()
    )


def test_a_film_that_is_shorter_than_its_boxes_is_told(sets: Path) -> None:
    write_numbered_film(sets / "films" / "one.mp4", count=20)
    found = select_event_excerpts(make_predictions(), make_truth(), CONFIG, place_film(sets))
    late = next(each for each in found if each.shown >= 20)
    assert late.film is None
    assert "one has 20 frames" in late.fault


def test_films_lie_where_tables_say_or_by_their_name_and_nowhere_else(sets: Path, tmp_path: Path) -> None:
    truth = make_truth()
    assert find_film(truth, "one", [sets]).n_frames == FRAMES
    assert find_film(truth, "one", [tmp_path, sets / "films"]).width == WIDTH
    assert find_film(truth, "one", [sets / "films" / "one.mp4"]).height == HEIGHT
    for places in ([], [sets / "films" / "one.mp4"]):
        with pytest.raises(InputError, match="no film of that name"):
            find_film(truth, "two", places)
    (sets / "films" / "two.mp4").write_bytes(b"no film")
    with pytest.raises(InputError):
        find_film(truth, "two", [sets, sets / "films", sets / "films" / "two.mp4"])
    images = tmp_path / "rgb-images" / "two"
    images.mkdir(parents=True)
    for number in range(1, 6):
        Image.new("RGB", (64, 48)).save(images / f"{number:05d}.jpg")
    assert find_film(truth, "two", [tmp_path]).n_frames == 5
    write_numbered_film(tmp_path / "outside.mp4", count=3)
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("../outside", "{number}"):
        renamed = Scenes(videos=pl.DataFrame({"video": [name], "path": ["../outside.mp4"]}))
        with pytest.raises(InputError):
            find_film(renamed, name, [inner])


def test_wrong_decisions_are_shown_once_a_pedestrian(sets: Path) -> None:
    truth = make_truth()
    samples = pl.DataFrame(
        {
            "sample": range(4),
            "video": ["one", "one", "one", "two"],
            "tube": [0, 0, 2, 3],
            "start_frame": [0, 10, 72, 0],
            "end_frame": [16, 26, 80, 16],
            "tte_frames": [60, 50, 20, 40],
            "kind": ["action"] * 4,
            "label": [0, 0, 1, 1],
        }
    )
    meta = type(truth.meta)(vocabularies={**truth.meta.vocabularies, "action": ("not crossing", "crossing")})
    scenes = truth.with_tables(samples=samples, meta=meta)
    names = np.array(["one/t0", "one/t0", "one/t2", "two/t3"])
    state = SampleScores(np.array([[0.7], [0.9], [0.2], [0.9]]), np.array([0, 0, 1, 1]), names)
    found = select_sample_excerpts(state, scenes, place_film(sets))
    assert [each.says.split(":")[0] for each in found] == ["one/t0", "one/t2"]
    first = found[0]
    assert first.says == (
        "one/t0: crossing 0.90 is said, and the truth is not crossing; observed in frames 10 to 25, "
        "50 frames before the event."
    )
    # A second before the last frame that was seen, two after it, as far as there are boxes.
    assert (first.first, first.shown, first.end) == (6, 25, 60)
    assert [each.words for each in first.outlines[20]] == ["truth: not crossing"]
    assert [each.words for each in first.outlines[25]] == ["truth: not crossing, said: crossing 0.90"]
    assert found[1].end == 90
    mixed = state.take(np.array([2, 0, 3, 1]))
    assert [each.says for each in select_sample_excerpts(mixed, scenes, place_film(sets))] == [
        each.says for each in found
    ]


# In the folder of a run and in pages.


def evaluate(sets: Path, run: str, *more: str) -> Path:
    words = f"evaluate road --truth {sets}/truth --predictions {sets}/found --resamples 0 -o {sets}/{run} -q"
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*words.split(), *more]) == 0
    return sets / run


@pytest.mark.slow
def test_a_report_embeds_its_clips_and_is_made_again_from_the_folder(sets: Path) -> None:
    run = evaluate(sets, "run")
    text = (run / "report.html").read_text("utf-8")
    page = html.document_fromstring(text)
    shown = page.xpath("//figure/video")
    assert len(shown) == 1
    for video in shown:
        assert video.get("src").startswith("data:video/mp4;base64,")
        assert video.get("poster").startswith("data:image/jpeg;base64,")
        assert video.get("controls") is not None
        assert video.get("autoplay") is None
        assert video.get("aria-label").endswith("points of mean average precision.")
        paper = video.getnext()
        assert (paper.get("class"), paper.get("src")) == ("paper", video.get("poster"))
        assert paper.get("alt") == video.get("aria-label") == video.getparent().xpath("string(figcaption)")
    assert page.xpath("string(//p[@class='mute'])").startswith("One of them is not shown: ")
    assert str(sets) not in text
    words = ["report", str(run), "-o", str(sets / "again.html"), "-q"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words) == 0
    assert (sets / "again.html").read_text("utf-8") == text
    other = evaluate(sets, "second")
    for path in run.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name
    none = evaluate(sets, "none", "--clips", "0")
    assert "<video" not in (none / "report.html").read_text("utf-8")
    assert not list(none.glob("clip*"))


@pytest.mark.slow
def test_films_of_another_folder_are_named_or_told_to_lack(sets: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    (sets / "films").rename(away)
    page = html.document_fromstring((evaluate(sets, "run") / "report.html").read_text("utf-8"))
    assert not page.xpath("//video")
    assert "They are not shown: " in page.xpath("string(//p[@class='mute'])")
    found = evaluate(sets, "there", "--media", str(away)) / "report.html"
    assert found.read_text("utf-8").count("<video") == 1
    words = f"evaluate road --truth {sets}/truth --predictions {sets}/found -q --media {sets}/nowhere".split()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert main([*words, "-o", str(sets / "refused")]) == 2
        assert main([*words[:-2], "--clips", "99", "-o", str(sets / "refused")]) == 2
    assert "no such file or folder" in said.getvalue()
    assert "0 to 12, not 99" in said.getvalue()


def test_a_page_holds_two_megabytes_of_clips(grey: Film) -> None:
    (clip,) = draw_clips([excerpt(grey)])
    large = Clip("large", clip.mp4 + bytes(250_000), clip.poster)
    text = report([Section(str(k), (), (Clips((large,) * 4),)) for k in range(3)])
    page = html.document_fromstring(text)
    held = [*page.xpath("//video/@src"), *page.xpath("//video/@poster"), *page.xpath("//img/@src")]
    assert 0.8 * MOST_CLIP_CHARS < sum(map(len, held)) <= 1.01 * MOST_CLIP_CHARS
    assert 4 < len(page.xpath("//video")) < 8
    assert len(page.xpath("//figure")) == 12
    assert text.count("the page holds 2 MB of clips already") == 12 - len(page.xpath("//video"))


@pytest.mark.slow
def test_clips_of_a_forged_folder_are_refused(grey: Film, sets: Path) -> None:
    (clip,) = draw_clips([excerpt(grey)])
    files = build_clip_files([clip, Clip("b", fault="c")])
    assert set(files) == {"clips.json", "clip_0.mp4", "clip_0.jpg"}
    assert read_clips(files) == (clip, Clip("b", fault="c"))
    assert read_clips({}) == ()
    wrong: list[dict[str, bytes]] = [
        {"clip_0.mp4": b"<script>"},
        {"clip_0.mp4": clip.mp4 + bytes(MOST_BYTES)},
        {"clip_0.jpg": b"<svg/>"},
        {"clip_0.jpg": clip.poster + bytes(MOST_BYTES)},
        {"clip_0.jpg": b""},
        {"clips.json": b"{}"},
        {"clips.json": b"[1]"},
        {"clips.json": b'[{"says": 1, "fault": ""}]'},
        {"clips.json": b'[{"says": "a"}]'},
        {"clips.json": json.dumps([{"says": "", "fault": ""}] * 100).encode()},
    ]
    for change in wrong:
        with pytest.raises((KeyError, TypeError, ValueError)):
            read_clips(files | change)
    run = evaluate(sets, "run")
    assert len(load_event_run(run).clips) == 2
    (run / "clip_0.mp4").write_bytes(clip.mp4)
    with pytest.raises(DamagedError):
        load_event_run(run)
