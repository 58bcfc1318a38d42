"""`roadaware predict`: detections that are linked and judged, and what is kept when things go wrong."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_files import Command

from roadaware.datasets import read
from roadaware.errors import DiskError
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions
from roadaware.tasks import prediction_runs
from roadaware.tasks.road_events import collect_classes


@pytest.fixture(scope="module")
def weights(made_up: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny networks with random weights and the classes of the synthetic scenes."""
    import torch

    from roadaware.models import create
    from roadaware.models.retinanet3d.config import default
    from roadaware.models.weights import save_detector

    torch.set_num_threads(1)
    torch.manual_seed(0)
    classes = collect_classes(read("simulator", made_up / "road", cache=False))
    small = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_layers": 1}
    more = {"anchor_sizes_px": (16.0, 32.0), "anchor_scales": (1.0,), "short_side_px": 64, "prior": 0.1}
    found = {}
    for name, causal in (("stream", True), ("clips", False)):
        config = default(causal=causal, **small, **more)
        network = create(
            "retinanet3d-compact", config=config, n_classes=classes.n_classes, n_av=len(classes.av_labels)
        )
        found[name] = tmp_path_factory.mktemp("weights") / f"{name}.safetensors"
        save_detector(found[name], network, dict(classes.kinds), classes.av_labels)
    return found


@pytest.fixture
def road(made_up: Path, tmp_path: Path) -> Path:
    """The synthetic scenes, to be damaged."""
    shutil.copytree(made_up / "road", tmp_path / "road")
    return tmp_path / "road"


def _tables(folder: Path) -> Predictions:
    return open_predictions(folder / "predictions")


def _equal(one: Predictions, other: Predictions) -> None:
    assert one.meta == other.meta
    for name, frame in one.tables().items():
        assert frame.equals(getattr(other, name)), name


@pytest.mark.slow
def test_detections_go_through_link_and_evaluate(
    roadaware: Command, weights: dict[str, Path], made_up: Path, tmp_path: Path
) -> None:
    scenes, out = read("simulator", made_up / "road", cache=False), tmp_path / "run"
    words = ["predict", weights["stream"], "--videos", made_up / "road", "--out", out, "--top", "10"]
    done = roadaware(*words, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    found = _tables(out)
    assert (told["videos"], told["frames"], told["boxes"]) == (2, 18, len(found.boxes))
    assert found.boxes["box"].to_list() == list(range(len(found.boxes)))
    assert found.frames.select("video", "frame").rows() == scenes.frames.select("video", "frame").rows()
    kinds = get_score_layout(found.meta, "boxes").kinds
    assert list(kinds) == ["agent", "action", "location", "duplex", "event"]
    assert all(labels == scenes.meta.vocabularies[kind] for kind, labels in kinds.items())
    assert get_score_layout(found.meta, "frames").width == len(scenes.meta.vocabularies["av_action"])
    assert found.meta.composites == scenes.meta.composites
    assert not (out / "parts").exists()

    (out / "parts" / "00001").mkdir(parents=True)  # as a kill leaves it while the parts are removed
    again = roadaware(*words)
    assert again.code == 0
    assert not (out / "parts").exists()
    assert "2 of 2 videos are there already" in again.err
    _equal(_tables(out), found)

    tubes = tmp_path / "tubes"
    assert roadaware("link", out / "predictions", "--out", tubes).code == 0
    for predictions in (tubes, out / "predictions"):
        words = [
            "evaluate",
            "road",
            "--truth",
            made_up / "road",
            "--predictions",
            predictions,
            "--resamples",
            "0",
        ]
        judged = roadaware(*words)
        assert judged.code == 0, judged.err
        assert "av_action" in judged.out


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_make_the_bytes_of_one(
    roadaware: Command, weights: dict[str, Path], road: Path, tmp_path: Path, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    # One of them cannot be read: it is left out, by every number of workers alike.
    films = tmp_path / "films"
    films.mkdir()
    for number in (0, 1):
        shutil.copy(road / f"scenes/road-000{number}/video.mp4", films / f"{number + 1}.mp4")
    data = (films / "1.mp4").read_bytes()
    (films / "0.mp4").write_bytes(data[: len(data) // 2])
    words = ["predict", weights["stream"], "--videos", films, "--top", "10"]
    assert roadaware(*words, "--output", tmp_path / "one").code == 0
    done = roadaware(*words, "--output", tmp_path / "two", "--processes", "2", "--on", on)
    assert done.code == 0, done.err
    assert "0 is left out" in done.err
    one, two = (
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file() and path.name != "progress.json"
        }
        for name in ("one", "two")
    )
    assert sorted(one) == sorted(two)
    assert one == two
    assert any(name.endswith(".parquet") for name in one)


@pytest.mark.slow
def test_clips_ensembles_saved_tables_and_films(
    roadaware: Command, weights: dict[str, Path], made_up: Path, tmp_path: Path
) -> None:
    """The detections are the same, whatever names the videos and however many clips go together."""
    clips = ["predict", weights["clips"], "--clip", "4", "--top", "10"]
    for name, more in (("one", ["--batch", "1"]), ("many", ["--batch", "3"])):
        done = roadaware(*clips, *more, "--videos", made_up / "road", "--out", tmp_path / name)
        assert done.code == 0, done.err
    one, many = _tables(tmp_path / "one"), _tables(tmp_path / "many")
    assert one.boxes["frame"].to_list() == many.boxes["frame"].to_list()
    assert (one.boxes["score"] - many.boxes["score"]).abs().max() < 1e-5

    save(read("simulator", made_up / "road", cache=False), tmp_path / "tables")
    words = [
        *clips,
        "--videos",
        tmp_path / "tables",
        "--media",
        made_up / "road",
        "--out",
        tmp_path / "saved",
    ]
    assert roadaware(*words).code == 0
    assert _tables(tmp_path / "saved").boxes.equals(one.boxes)

    films = tmp_path / "films"
    films.mkdir()
    for name in ("road-0000", "road-0001"):
        shutil.copy(made_up / "road" / "scenes" / name / "video.mp4", films / f"{name}.mp4")
    assert roadaware(*clips, "--videos", films, "--out", tmp_path / "bare").code == 0
    bare = _tables(tmp_path / "bare")
    assert bare.boxes.select("frame", "score", "scores").equals(one.boxes.select("frame", "score", "scores"))
    assert bare.videos.select("width_px", "height_px", "n_frames").rows() == [(160, 120, 9)] * 2

    both = ["predict", weights["stream"], weights["clips"], "--clip", "4", "--top", "10"]
    done = roadaware(*both, "--videos", films / "road-0000.mp4", "--out", tmp_path / "both")
    assert done.code == 0, done.err
    assert _tables(tmp_path / "both").videos["video"].to_list() == ["road-0000"]


@pytest.mark.slow
def test_a_damaged_video_is_named_and_tried_again(
    roadaware: Command, weights: dict[str, Path], road: Path, made_up: Path, tmp_path: Path
) -> None:
    film, out = road / "scenes" / "road-0000" / "video.mp4", tmp_path / "run"
    whole = film.read_bytes()
    film.write_bytes(whole[: len(whole) // 2])
    words = ["predict", weights["stream"], "--videos", road, "--top", "5", "--out", out]
    done = roadaware(*words)
    assert done.code == 0, done.err
    assert "road-0000 is left out" in done.err
    assert "videos refused" in done.out
    assert _tables(out).videos["video"].to_list() == ["road-0001"]
    assert roadaware(*words, "--strict").code == 1

    film.write_bytes(whole)
    done = roadaware(*words, "--strict")
    assert done.code == 0, done.err
    assert "1 of 2 videos are there already" in done.err
    assert not (out / "parts").exists()
    fresh = tmp_path / "fresh"
    assert roadaware(*words[:-1], fresh).code == 0
    _equal(_tables(out), _tables(fresh))

    film.write_bytes(b"")
    (road / "scenes" / "road-0001" / "video.mp4").write_bytes(b"")
    none = roadaware(*words[:-1], tmp_path / "none")
    assert none.code == 3
    assert "none of 2 videos" in none.err


@pytest.mark.slow
def test_what_is_whole_is_kept_when_it_is_stopped(
    roadaware: Command,
    weights: dict[str, Path],
    made_up: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, plain = tmp_path / "run", prediction_runs.iterate_images
    words = ["predict", weights["stream"], "--videos", made_up / "road", "--top", "5", "--out"]

    def stopped(film: Any) -> Any:
        if film.video == "road-0001":
            raise KeyboardInterrupt
        return plain(film)

    monkeypatch.setattr(prediction_runs, "iterate_images", stopped)
    done = roadaware(*words, out)
    assert done.code == 130
    assert "1 of 2 videos are kept" in done.err
    assert not (out / "predictions").exists()
    kept = (out / "parts" / "00000" / "meta.json").stat().st_mtime_ns
    monkeypatch.setattr(prediction_runs, "iterate_images", plain)

    def full(*_: Any, **__: Any) -> None:
        raise DiskError("cannot write: no space left") from OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(prediction_runs, "save", full)
    assert roadaware(*words, out).code == 4
    monkeypatch.undo()
    assert (out / "parts" / "00000" / "meta.json").stat().st_mtime_ns == kept

    monkeypatch.setattr(prediction_runs, "register_table_files", full)
    assert roadaware(*words, out).code == 4
    assert sorted(path.name for path in (out / "parts").iterdir()) == ["00000", "00001"]
    monkeypatch.undo()
    assert roadaware(*words, out).code == 0
    assert roadaware(*words, tmp_path / "fresh").code == 0
    _equal(_tables(out), _tables(tmp_path / "fresh"))


@pytest.mark.slow
def test_other_settings_and_other_folders_are_refused(
    roadaware: Command, weights: dict[str, Path], made_up: Path, tmp_path: Path
) -> None:
    film, out = made_up / "road" / "scenes" / "road-0000" / "video.mp4", tmp_path / "run"
    words = ["--videos", film, "--top", "5", "--out", out]
    assert roadaware("predict", weights["stream"], *words).code == 0
    for name, more, told in (
        ("clips", [], "(clip, weights)"),
        ("stream", ["--threshold", "0.5"], "(rule)"),
    ):
        done = roadaware("predict", weights[name], *words, *more)
        assert done.code == 2
        assert told in done.err
    assert roadaware("predict", weights["clips"], *words, "--overwrite").code == 0
    assert _tables(out).boxes["score"].len()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    for wrong, told in (
        (["--out", tmp_path / "other"], "notes.txt"),
        (["--clip", "8", "--out", tmp_path / "x"], "frame by frame"),
        (["--nms", "2", "--out", tmp_path / "x"], "from 0 to 1"),
        (["--device", "cuda:9", "--out", tmp_path / "x"], "cuda:9"),
        (["--split", "val", "--out", tmp_path / "x"], "belong to a dataset"),
    ):
        done = roadaware("predict", weights["stream"], "--videos", film, *wrong)
        assert done.code == 2, done.err
        assert told in done.err
    twice = roadaware("predict", weights["stream"], "--videos", film, film, "--out", tmp_path / "x")
    assert "same name" in twice.err
    assert roadaware("predict", weights["stream"], "--videos", tmp_path, "--out", tmp_path / "x").code == 3
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_changed_film_is_looked_at_again(
    roadaware: Command, weights: dict[str, Path], road: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ["predict", weights["stream"], "--videos", road, "--top", "5", "--out", out]
    assert roadaware(*words).code == 0
    first = _tables(out)
    shutil.copy(road / "scenes" / "road-0000" / "video.mp4", road / "scenes" / "road-0001" / "video.mp4")
    done = roadaware(*words)
    assert done.code == 0, done.err
    second = _tables(out)
    scores = [
        second.boxes.filter(pl.col("video") == name)["score"].to_list() for name in ("road-0000", "road-0001")
    ]
    assert scores[0] == scores[1]
    assert not first.boxes.equals(second.boxes)


def test_videos_of_which_none_is_whole_are_damaged_input(
    roadaware: Command, weights: dict[str, Path], made_up: Path, tmp_path: Path
) -> None:
    film = made_up / "road" / "scenes" / "road-0000" / "video.mp4"
    (tmp_path / "half.mp4").write_bytes(film.read_bytes()[:2000])
    (tmp_path / "list.mp4").write_text("#EXTM3U\na.ts\n")
    for name in ("half", "list"):
        words = ["--videos", tmp_path / f"{name}.mp4", "--out", tmp_path / name]
        done = roadaware("predict", weights["stream"], *words)
        assert done.code == 3
        assert "none of 1 videos could be taken" in done.err
