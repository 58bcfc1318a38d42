"""What stands beside boxes is what the tables say, in the frames in which it holds; what is heard lies where it is heard."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, Open, make_truth
from overlaid import (
    BEEP_S,
    make_overlaid_predictions,
    make_overlaid_truth,
    place_joints,
    time_s,
    write_sounding,
    write_watch,
)

from roadaware.errors import InputError, UsageError
from roadaware.formats.relations import write_relation_predictions
from roadaware.formats.sound_maps import write_sound_maps
from roadaware.io.video import VideoReader, iterate_sound
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, build_sample_predictions
from roadaware.viewer import films, overlays
from roadaware.viewer.films import STEP_S, Film, FilmFinder, Waveforms, read_peaks
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths
from roadaware.viewer.overlays import Overlays


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def overlaid(tmp_path: Path) -> Path:
    """A folder with `truth`, `found` and `watch`."""
    save(make_overlaid_truth(), tmp_path / "truth")
    save(make_overlaid_predictions(), tmp_path / "found")
    write_watch(tmp_path / "watch")
    return tmp_path


def open_overlays(*paths: Path) -> Overlays:
    opened = open_paths(paths)
    return Overlays(opened, Index(opened))


def test_relations_of_a_window_are_those_that_hold_in_it(overlaid: Path) -> None:
    found = open_overlays(overlaid / "truth", overlaid / "found")
    told = found.window("one", 45, 60, ["relations"])
    assert told["truth"]["relations"] == {
        "relation": [1],
        "subject": [1],
        "object": [0],
        "word": ["chasing"],
        "start": [30],
        "end": [50],
        "score": [None],
        "more": 0,
    }
    assert told["a"]["relations"]["relation"] == []
    assert found.window("one", 44, 45, ["relations"])["a"]["relations"]["score"] == [0.75]
    assert found.window("one", 0, 20, ["relations"])["truth"]["relations"]["relation"] == []
    assert found.window("two", 0, 90, ["relations"])["truth"]["relations"]["relation"] == []
    layers = {side: told["layers"] for side, told in found.describe("one").items()}
    assert layers == {"truth": ["relations", "joints", "sounds"], "a": ["relations", "sounds"]}
    for wrong in ((5, 5, ["risk"]), (0, 2000, ["risk"]), (0, 9, []), (0, 9, ["risk", "x"])):
        with pytest.raises(UsageError):
            found.window("one", *wrong)


def test_a_relation_of_a_part_is_drawn_at_the_tube_that_owns_the_boxes(tmp_path: Path) -> None:
    truth = make_overlaid_truth()
    part = pl.DataFrame(
        {"tube": [9], "video": "one", "name": "p", "start_frame": [0], "end_frame": [9], "parent": [2]}
    )
    tubes = pl.concat([truth.tubes.with_columns(parent=pl.lit(None, pl.Int64)), part], how="diagonal_relaxed")
    relations = truth.relations.with_columns(subject=pl.lit(9, pl.Int64))
    save(truth.with_tables(tubes=tubes, relations=relations), tmp_path / "truth")
    found = open_overlays(tmp_path / "truth").window("one", 0, 90, ["relations"])["truth"]["relations"]
    assert found["subject"] == [2, 2]


def test_more_than_can_be_drawn_is_counted(overlaid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "MOST_ROWS", 1)
    found = open_overlays(overlaid / "truth").window("one", 30, 40, ["relations", "joints", "sounds"])[
        "truth"
    ]
    assert [len(found["relations"]["relation"]), found["relations"]["more"]] == [1, 1]
    assert [len(found["joints"]["frame"]), found["joints"]["more"]] == [1, 9]
    assert [len(found["sounds"]["frame"]), found["sounds"]["more"]] == [1, 5]


def test_joints_are_those_of_the_boxes_of_each_frame(overlaid: Path) -> None:
    found = open_overlays(overlaid / "truth").window("one", 40, 80, ["joints"])["truth"]["joints"]
    assert found["frame"] == list(range(40, 60))
    table = make_overlaid_truth().boxes
    box = table.filter((pl.col("frame") == 50) & (pl.col("tube") == 0))
    assert found["box"][10] == box["box"].item()
    true = np.array(place_joints(0, box["x1_px"].item(), box["y1_px"].item())).reshape(17, 3)
    seen = np.array(found["joints"][10], dtype=float).reshape(18, 2)
    assert seen[0].tolist() == pytest.approx(true[0, :2])
    assert seen[1].tolist() == pytest.approx(true[5:7, :2].mean(axis=0))
    assert np.isnan(seen).any(axis=1).sum() == 1


def test_a_folder_of_poses_lies_beside_any_set(overlaid: Path) -> None:
    folder = overlaid / "poses"
    folder.mkdir()
    (folder / "poses.json").write_text("{}")
    with pytest.raises(InputError, match="not ended"):
        open_paths([overlaid / "found", folder])
    joints = [place_joints(0, 10.0 * frame, 5.0) for frame in range(4)]
    pl.DataFrame(
        {"video": "one", "name": "t0", "frame": range(4), "joints_px": joints, "seen": 16, "score": 0.9}
    ).write_parquet(folder / "poses.parquet")
    found = open_overlays(overlaid / "found", folder)
    assert found.describe("one")["poses"]["layers"] == ["joints"]
    told = found.window("one", 1, 3, ["joints"])["poses"]["joints"]
    assert told["frame"] == [1, 2]
    assert told["joints"][0][:2] == [25.0, 5.0]
    assert "poses" not in found.describe("two")
    with pytest.raises(UsageError):
        open_paths([folder])


def test_sounds_are_told_in_order_and_predictions_are_heard_when_the_true_ones_are(overlaid: Path) -> None:
    told = open_overlays(overlaid / "truth", overlaid / "found").describe("one")
    begin, end = (pytest.approx(time_s(frame), abs=1e-3) for frame in (30, 36))
    assert told["truth"]["sounds"] == [[0, "beep", begin, end, 30, False], [1, "hum", None, None, 70, False]]
    assert told["a"]["sounds"] == [[0, "beep", begin, end, 30, True], [1, "hum", None, None, 70, True]]
    boxes = open_overlays(overlaid / "truth").window("one", 0, 90, ["sounds"])["truth"]["sounds"]
    assert (boxes["frame"], set(boxes["sound"])) == (list(range(30, 36)), {0})


def test_predictions_in_their_published_form_stand_beside_the_ground_truth(overlaid: Path) -> None:
    truth, found = (
        name_categories(tables) for tables in (make_overlaid_truth(), make_overlaid_predictions())
    )
    save(truth, overlaid / "truth", overwrite=True)
    write_relation_predictions(found, truth, overlaid / "relations.json")
    write_sound_maps(found, truth, overlaid / "maps.npz")
    write_sound_maps(found, truth, overlaid / "maps.json")
    write_sound_maps(found, truth, overlaid / "maps")
    paths = [overlaid / name for name in ("truth", "relations.json", "maps.npz", "maps.json", "maps")]
    told = open_overlays(*paths)
    relations = told.window("one", 0, 90, ["relations"])["a"]["relations"]
    assert (relations["word"], relations["start"], relations["end"]) == (["watching"], [25], [45])
    assert relations["score"] == [0.75]
    for side in "bcd":
        assert told.sound_map("one", side, 0)["cells"] == [0, 64, 128, 255, 0, 0, 0, 0]
    with pytest.raises(InputError, match="ground truth"):
        open_paths([overlaid / "found", overlaid / "maps.npz"])
    (overlaid / "strange.json").write_text('{"one": 3}')
    with pytest.raises(InputError):
        open_paths([overlaid / "truth", overlaid / "strange.json"])


def name_categories(tables: Any) -> Any:
    """The tables with `category` for `agent`, as files of relations have it."""
    words = {**tables.meta.vocabularies, "category": tables.meta.vocabularies["agent"]}
    kinds = tables.tube_labels.with_columns(kind=pl.lit("category"))
    return tables.with_tables(tube_labels=kinds, meta=Meta(vocabularies=words, dataset="numbered"))


def test_a_map_is_scaled_as_its_metrics_do_and_never_sent_whole(overlaid: Path) -> None:
    found = open_overlays(overlaid / "truth", overlaid / "found")
    told = found.sound_map("one", "a", 0)
    assert told == {"width": 4, "height": 2, "cells": [0, 64, 128, 255, 0, 0, 0, 0], "message": ""}
    flat = found.sound_map("one", "a", 1)
    assert flat["cells"] == []
    assert "one value" in flat["message"]
    for side, sound in (("truth", 0), ("a", 7), ("z", 0)):
        with pytest.raises(UsageError, match="no such map"):
            found.sound_map("one", side, sound)
    large = np.zeros((500, 300), np.float32)
    large[499, 0], large[0, 0] = 5.0, -5.0
    rows = pl.DataFrame(
        {"sound": [0], "video": "one", "map_width": [300]}, schema_overrides={"sound": pl.Int64}
    )
    maps = pl.Series("map", [large.reshape(-1)], dtype=pl.List(pl.Float32))
    save(Predictions(sounds=rows.with_columns(maps), meta=Meta(dataset="numbered")), overlaid / "large")
    told = open_overlays(overlaid / "truth", overlaid / "large").sound_map("one", "a", 0)
    assert (told["width"], told["height"]) == (64, 64)
    assert told["cells"][63 * 64] == 255
    assert set(told["cells"][1:64]) == {128}


def test_forecasts_of_a_watch_stand_in_their_frames_and_no_others(overlaid: Path) -> None:
    found = open_overlays(overlaid / "watch")
    assert found.describe("one")["a"] == {"layers": ["risk"], "sounds": [], "latency": True}
    told = found.window("one", 25, 40, ["risk"])["a"]["risk"]
    assert told["on"] == "a"
    assert told["first"] == [25, 26, 27, 28, 29]
    assert told["end"] == [26, 27, 28, 29, 30]
    assert set(told["tube"]) == {0}  # by its name, 30
    assert told["crossing"] == [0.6] * 4 + [None]
    assert (set(told["low"]), set(told["high"])) == ({0.4}, {0.9})
    assert told["regions"][:2] == [[0.1, 0.1, 0.1, 0.7], None]


def test_forecasts_of_samples_hold_from_the_end_of_their_observation_to_the_next(tmp_path: Path) -> None:
    truth = make_truth()
    samples = pl.DataFrame(
        {
            "sample": [0, 1, 2],
            "video": "one",
            "tube": [0, 0, 2],
            "start_frame": [0, 6, 70],
            "end_frame": [10, 16, 80],
            "kind": "action",
            "label": [0, 1, 0],
            "split": "test",
        }
    )
    meta = Meta(vocabularies={**truth.meta.vocabularies, "action": ("no", "yes")})
    save(truth.with_tables(samples=samples, meta=meta), tmp_path / "truth")
    save(build_sample_predictions(samples, np.array([0.2, 0.9, 0.4])), tmp_path / "predictions")
    found = open_overlays(tmp_path / "truth", tmp_path / "predictions")
    assert found.describe("one")["a"]["layers"] == ["risk"]
    told = found.window("one", 0, 90, ["risk"])["a"]["risk"]
    assert told["on"] == "truth"
    assert list(zip(told["tube"], told["first"], told["end"], told["crossing"], strict=True)) == [
        (0, 9, 15, 0.2),
        (0, 15, 25, 0.9),
        (2, 79, 89, 0.4),
    ]
    assert found.window("one", 26, 79, ["risk"])["a"]["risk"]["tube"] == []


def test_latency_is_known_frame_by_frame_and_thinned_for_a_long_view(overlaid: Path) -> None:
    found = open_overlays(overlaid / "watch")
    told = found.latency("one", "a", 48, 52, 4)
    assert told["most"] == pytest.approx([100, 100, 2000, 100], abs=0.2)
    told = found.latency("one", "a", 0, 180, 3)
    assert told["most"][0] == pytest.approx(2000, abs=0.2)
    assert told["mean"][0] == pytest.approx((59 * 100 + 2000) / 60, abs=0.2)
    assert told["most"][2] is None
    assert told["longest"] == pytest.approx(2000, abs=0.2)
    for wrong in (("truth", 0, 9, 3), ("a", 9, 9, 3), ("a", 0, 9, 0), ("a", 0, 9, 5000)):
        with pytest.raises(UsageError):
            found.latency("one", *wrong)


def test_the_waveform_of_a_tone_lies_where_the_tone_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.mp4"
    write_sounding(path)
    peaks = read_peaks(path)
    loud = np.flatnonzero(peaks[:, 1] > 5000) * STEP_S
    assert (loud[0], loud[-1] + STEP_S) == (
        pytest.approx(BEEP_S[0], abs=0.02),
        pytest.approx(BEEP_S[1], abs=0.02),
    )
    found = wait_for_sound(Waveforms(), path, 0.0, 4.0, 40)
    assert len(found["low"]) == len(found["high"]) == 40
    heard = [place for place, high in enumerate(found["high"]) if high > 5000]
    assert heard == [10, 11, 12] or heard == [10, 11, 12, 13]  # a coder's echo may reach into the next
    assert all(found["low"][place] < -5000 for place in heard)
    assert min(wait_for_sound(Waveforms(), path, 1.1, 1.1001, 3)["high"]) > 5000
    assert wait_for_sound(Waveforms(), path, 900.0, 1e6, 3)["high"] == [0, 0, 0]
    monkeypatch.setattr(films, "iterate_sound", lambda *_: pytest.fail("it was kept"))
    assert wait_for_sound(Waveforms(), path, 0.0, 4.0, 40) == found
    for wrong in ((1.0, 1.0, 5), (0.0, 1.0, 0), (0.0, 1.0, 5000), (-1.0, 1.0, 5)):
        with pytest.raises(UsageError):
            Waveforms().describe(path, *wrong)


def test_what_has_no_sound_and_what_is_damaged_is_said(tmp_path: Path, numbered_film: Path) -> None:
    assert wait_for_sound(Waveforms(), numbered_film, 0.0, 1.0, 5)["state"] == "none"
    path = tmp_path / "one.mkv"
    write_sounding(path, sound="libopus", rate=48_000)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found = wait_for_sound(Waveforms(), path, 0.0, 4.0, 40)
    assert found["state"] == "ready"
    assert max(found["high"][:10]) < 5000 < max(found["high"][10:13])


def wait_for_sound(found: Waveforms, path: Path, first_s: float, end_s: float, bars: int) -> dict[str, Any]:
    for _ in range(600):
        told = found.describe(path, first_s, end_s, bars)
        if told["state"] != "reading":
            return told
        time.sleep(0.02)
    raise AssertionError("it takes too long")


@pytest.mark.parametrize(
    "form",
    [
        {"codec": "mpeg4", "sound": "pcm_s16le", "begin_s": 0.5},
        pytest.param({"sound": "libopus", "rate": 48_000, "channels": "stereo"}, marks=pytest.mark.slow),
        pytest.param({"sound": "aac", "rate": 8_000, "begin_s": 0.3}, marks=pytest.mark.slow),
        pytest.param({"sound": "pcm_s16le", "sound_begin_s": 0.7}, marks=pytest.mark.slow),
        pytest.param({"sound": "pcm_s16le", "sound_begin_s": -0.25, "begin_s": 0.5}, marks=pytest.mark.slow),
    ],
)
def test_a_copy_is_heard_in_step_with_its_frames(tmp_path: Path, form: dict[str, Any]) -> None:
    (tmp_path / "media").mkdir()
    path = tmp_path / "media" / "one.mkv"
    write_sounding(path, **form)
    save(make_truth(), tmp_path / "truth")
    film = wait_for_copy(FilmFinder(open_paths([tmp_path / "truth"], [tmp_path / "media"])))
    assert (film.state, film.sound) == ("ready", True), film.message
    assert "without" not in film.message
    assert "not all" not in film.message
    assert film.path is not None
    with VideoReader(path) as original:
        shown = [original.t_s(number) - original.t_s(0) for number in range(len(original))]
    assert film.times_s == pytest.approx(shown, abs=1e-3)
    assert len(film.times_s) == FRAMES
    places, loudness = [], []
    for at, block in iterate_sound(film.path, 48_000, 60.0):
        places.append(at + np.arange(len(block)))
        loudness.append(np.abs(block).max(axis=1))
    where, loud = np.concatenate(places) / 48_000, np.concatenate(loudness) > 0.1
    assert abs(where[0]) < 0.05
    assert where[loud][0] == pytest.approx(BEEP_S[0], abs=0.05)
    assert where[loud][-1] == pytest.approx(BEEP_S[1], abs=0.05)
    with av.open(str(film.path)) as file:
        ends = [
            float(each.duration * each.time_base) for each in (file.streams.video[0], file.streams.audio[0])
        ]
    assert ends[0] == pytest.approx(ends[1], abs=0.05)
    assert ends[0] == pytest.approx(shown[-1], abs=0.1)


def wait_for_copy(finder: FilmFinder) -> Film:
    for _ in range(1200):
        film = finder.film("one")
        if film.state != "encoding":
            return film
        time.sleep(0.05)
    raise AssertionError("it takes too long")


def test_the_page_is_answered_about_all_of_it(overlaid: Path, viewed: Open) -> None:
    write_sounding(overlaid / "one.mp4")
    client = viewed(overlaid / "truth", overlaid / "watch", media=[overlaid])
    assert client.json("/api/film?video=0")["sound"] is True
    assert client.json("/api/overlays?video=0")["truth"]["layers"] == ["relations", "joints", "sounds"]
    told = client.json("/api/layers?video=0&first=0&end=90&layers=relations,risk")
    assert {side: list(layers) for side, layers in told.items()} == {"truth": ["relations"], "a": ["risk"]}
    for _ in range(300):
        found = client.json("/api/waveform?video=0&first=0&end=4.000000&bars=40")
        if found["state"] != "reading":
            break
        time.sleep(0.05)
    assert max(found["high"][10:13]) > 5000 > max(found["high"][:10])
    assert client.json("/api/waveform?video=1&first=0&end=1&bars=4")["state"] == "none"
    assert client.json("/api/latency?video=0&side=a&first=50&end=51&bars=1")["most"] == [
        pytest.approx(2000, abs=0.2)
    ]
