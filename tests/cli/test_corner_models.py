"""`roadaware segment`, `predict` and `prelabel` with models from folders, on still images and videos."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_files import Command

import tiny_hub
import tiny_objects

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_kitti import planted_kitti

from roadaware.cli.images import select_prelabels
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.datasets import read
from roadaware.io.images import decode_mask, encode_png
from roadaware.io.video import VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.scenes.sensors import open_frame
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions
from roadaware.tasks import prediction_runs
from roadaware.tasks.prediction_runs import MaskRun, PredictionRun, locate_mask, write_mask
from roadaware.tasks.road_events import Classes
from roadaware.tasks.videos import VideoFacts

TEXTS = "tyre,traffic cone,dog"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    tiny_hub.write_segformer(root / "segformer")
    tiny_hub.write_owl(root / "owl")
    tiny_hub.write_clip(root / "clip")
    tiny_objects.tiny_model("rt_detr", ["person", "bicycle", "car", "kite"], num_denoising=0).save_pretrained(
        root / "detector"
    )
    said = json.dumps({"size": {"height": 64, "width": 96}})
    (root / "detector" / "preprocessor_config.json").write_text(said)
    return root


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set in KITTI's layout of three images and one, of different sizes."""
    root = planted_kitti(tmp_path_factory.mktemp("planted") / "kitti", 3)
    rng = np.random.default_rng(0)
    from PIL import Image

    for n, path in enumerate(sorted(root.rglob("image_2/*.png"))):
        width, height = Image.open(path).size
        noise = rng.integers(0, 255, (height, width - 2 * n, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)
    return root


@pytest.fixture
def kitti(planted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(planted, tmp_path / "kitti"))


def _proposals(folder: Path, places: list[tuple[str, int]]) -> Path:
    """Saved proposals, two in each image."""
    rows = [(video, frame, x) for video, frame in places for x in (10.0, 40.0)]
    boxes = pl.DataFrame(
        {
            "box": range(len(rows)),
            "video": [row[0] for row in rows],
            "frame": [row[1] for row in rows],
            "x1_px": [row[2] for row in rows],
            "y1_px": [5.0] * len(rows),
            "x2_px": [row[2] + 20 for row in rows],
            "y2_px": [30.0] * len(rows),
            "score": [0.5] * len(rows),
            "corner_case": [True] * len(rows),
        }
    )
    save(Predictions(boxes=boxes, meta=Meta(dataset="KITTI")), folder)
    return folder


# Masks


def test_masks_are_written_that_proposals_read(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path
) -> None:
    out = tmp_path / "masks"
    words = ["segment", hub / "segformer", "--videos", kitti, "--out", out]
    done = roadaware(*words, "--json")
    assert done.code == 0, done.err
    assert (done.data["written"], done.data["there_already"], done.data["gone"]) == (4, 0, 0)
    assert sum(done.data["share_of_pixels"].values()) == pytest.approx(1)
    assert json.loads((out / "classes.json").read_text()) == list(tiny_hub.CITYSCAPES)
    scenes = read("kitti", kitti)
    source = SemanticSource(str(out), scenes, kitti)
    for video in scenes.videos["video"].to_list():
        found = source.of(video, 0)
        assert found is not None
        assert found.classes.shape == open_frame(scenes, kitti, video, 0).shape[:2]
        assert found.names == tiny_hub.CITYSCAPES
    made = roadaware("propose", kitti, "--semantics", out, "--out", tmp_path / "proposals", "--json")
    assert made.code == 0, made.err
    assert made.data["skipped"] == {}

    # A mask that is gone, or older than its image, is made again; nothing else is.
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.png")}
    (out / "training" / "000001" / "000000.png").unlink()
    os.utime(kitti / "training" / "image_2" / "000002.png", (2e9, 2e9))
    again = roadaware(*words, "--batch", "3")
    assert "2 masks written, 2 were there already" in again.out
    same = [path for path, stamp in before.items() if path.stat().st_mtime_ns == stamp]
    assert len(same) == 2


def test_pictures_that_are_gone_are_counted_and_tried_again(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path
) -> None:
    lost = kitti / "training" / "image_2" / "000001.png"
    held = lost.read_bytes()
    lost.write_bytes(held[:300])
    words = ["segment", hub / "segformer", "--videos", kitti, "--out", tmp_path / "masks"]
    done = roadaware(*words)
    assert done.code == 0, done.err
    assert "3 masks written" in done.out
    assert "1 images cannot be read" in done.out
    assert "000001" in done.out
    assert roadaware(*words, "--strict").code == 1
    lost.write_bytes(held)
    assert "1 masks written, 3 were there already" in roadaware(*words, "--strict").out

    other = roadaware(*words, "--precision", "bf16")
    assert (other.code, "other settings (precision)" in other.err) == (2, True)
    anew = roadaware(*words, "--precision", "bf16", "--overwrite", "--split", "default/test")
    assert "1 masks written" in anew.out
    assert len(list((tmp_path / "masks").rglob("*.png"))) == 1
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "letter.txt").write_text("mine")
    strange = roadaware(*words[:-1], tmp_path / "strange")
    assert (strange.code, "holds other things" in strange.err) == (2, True)


def test_segmenting_goes_on_where_it_was(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadaware.models.object_detectors import Segmenter

    asked: list[int] = []
    segment = Segmenter.segment

    def interrupted(self: Any, pictures: Any) -> Any:
        asked.append(len(pictures))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return segment(self, pictures)

    monkeypatch.setattr(Segmenter, "segment", interrupted)
    words = ["segment", hub / "segformer", "--videos", kitti, "--out", tmp_path / "masks"]
    stopped = roadaware(*words)
    assert (stopped.code, "1 of 4 masks are kept" in stopped.err) == (130, True)
    assert "3 masks written, 1 were there already" in roadaware(*words).out
    assert asked == [1] * 5


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_make_the_masks_of_one(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    (kitti / "training" / "image_2" / "000001.png").write_bytes(b"no image")
    words = ["segment", hub / "segformer", "--videos", kitti, "--json"]
    one = roadaware(*words, "--out", tmp_path / "one")
    two = roadaware(*words, "--out", tmp_path / "two", "--processes", "2", "--on", on)
    assert (one.code, two.code) == (0, 0), two.err
    for count in ("written", "gone", "gone_first", "share_of_pixels"):
        assert two.data[count] == one.data[count]
    assert (one.data["written"], one.data["gone"]) == (3, 1)
    first, second = (
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert first == second
    assert {"masks.json", "classes.json", "training/000000/000000.png"} <= set(first)
    assert "progress.json" not in first
    # Masks that are there are not made again, by whichever of them.
    again = roadaware(*words, "--out", tmp_path / "one", "--processes", "2", "--on", on)
    assert (again.data["written"], again.data["there_already"], again.data["gone"]) == (0, 3, 1)


def test_films_have_masks_by_frame(roadaware: Command, hub: Path, tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "drive.mp4", 64, 48, 5.0) as film:
        for picture in np.random.default_rng(0).integers(0, 255, (4, 48, 64, 3), dtype=np.uint8):
            film.write(picture)
    words = ["segment", hub / "segformer", "--videos", tmp_path / "drive.mp4", "--out", tmp_path / "masks"]
    done = roadaware(*words, "--batch", "3")
    assert done.code == 0, done.err
    found = sorted((tmp_path / "masks" / "drive").glob("*.png"))
    assert [path.name for path in found] == [f"{n:06d}.png" for n in range(4)]
    assert decode_mask(found[0].read_bytes(), "mask").shape == (48, 64)


def test_masks_of_many_classes_have_16_bits_and_stay_inside(tmp_path: Path) -> None:
    run = MaskRun(tmp_path / "masks", {}, [f"class {n}" for n in range(300)])
    mask = np.full((3, 4), 299, np.uint16)
    write_mask(locate_mask(run.folder, "a/b", 7), mask, len(run.labels))
    assert (tmp_path / "masks" / "a" / "b" / "000007.png").read_bytes() == encode_png(mask, 16)
    with pytest.raises(Exception, match="leads out"):
        run.stands("../b", 7, tmp_path)
    with pytest.raises(Exception, match="class 300 has no name"):
        write_mask(tmp_path / "a.png", mask + 1, 300)
    with pytest.raises(Exception, match="1 to 65536 classes"):
        MaskRun(tmp_path / "more", {}, [])


# Detections of still images


@pytest.mark.slow
def test_detections_of_still_pictures_suppress_in_proposals(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path
) -> None:
    words = ["predict", hub / "detector", "--videos", kitti, "--threshold", "0", "--nms", "1"]
    done = roadaware(*words, "--out", tmp_path / "one")
    assert done.code == 0, done.err
    assert "roadaware propose DATASET --detections" in done.out
    found = open_predictions(tmp_path / "one" / "predictions")
    assert found.frames.select("video", "frame").rows() == [
        ("training/000000", 0),
        ("training/000001", 0),
        ("training/000002", 0),
        ("testing/000000", 0),
    ]
    source = DetectionSource(str(tmp_path / "one" / "predictions"), read("kitti", kitti))
    common = source.of("training/000001", 0)
    assert common is not None
    assert len(common.boxes) == 12
    assert "4 of 4 videos are there already" in roadaware(*words, "--out", tmp_path / "one").err

    # What is gone is named and counted, and looked at when it is back.
    gone = kitti / "training" / "image_2" / "000001.png"
    gone.rename(tmp_path / "kept.png")
    lacking = roadaware(*words, "--out", tmp_path / "one", "--json")
    assert lacking.code == 0, lacking.err
    assert (lacking.data["videos"], list(lacking.data["refused"])) == (3, ["training/000001"])
    (tmp_path / "kept.png").rename(gone)
    assert roadaware(*words, "--out", tmp_path / "one").code == 0
    assert open_predictions(tmp_path / "one" / "predictions") == found


def test_thousands_of_videos_are_joined_by_way_of_larger_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    none = np.zeros(0, np.float32)
    for together in (64, 2):
        monkeypatch.setattr(prediction_runs, "_TOGETHER", together)
        run = PredictionRun(tmp_path / str(together), {}, Classes({"corner": ("tyre", "dog")}))
        for n in range(7):
            boxes = np.tile(np.array([[0, 0, 9, n + 1]], np.float32), (n % 3, 1))
            scores = np.tile(np.array([[0.2, 0.7]], np.float32), (n % 3, 1))
            told = FrameDetections(0, boxes, scores[:, 1], scores, none)
            run.keep(VideoFacts(f"v{n}", "", {"video": f"v{n}"}), [told])
        run.finish([f"v{n}" for n in range(7)])
        found.append(open_predictions(tmp_path / str(together) / "predictions"))
    assert found[0] == found[1]
    assert found[0].boxes["video"].to_list() == ["v1", "v2", "v2", "v4", "v5", "v5"]
    assert found[0].labels["box"].to_list() == found[0].boxes["box"].to_list() == list(range(6))
    assert not list((tmp_path / "2" / "predictions").glob(".*"))


def test_traffic_lights_are_no_common_objects(tmp_path: Path) -> None:
    run = PredictionRun(tmp_path, {}, Classes({"agent": ("Car", "TL")}))
    boxes, none = np.array([[0, 0, 9, 9], [5, 5, 20, 20]], np.float32), np.zeros(0, np.float32)
    scores = np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)
    told = FrameDetections(0, boxes, scores.max(axis=1), scores, none)
    run.keep(VideoFacts("a", "", {"video": "a"}), [told])
    run.finish(["a"])
    common = DetectionSource(str(tmp_path / "predictions"), Predictions()).of("a", 0)
    assert common is not None
    np.testing.assert_array_equal(common.boxes, boxes[:1])


def test_networks_of_ours_need_films(
    roadaware: Command, kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadaware.models import loading
    from roadaware.models.detector import VideoDetector

    film = VideoDetector({"agent": ("Car",)}, causal=True)
    monkeypatch.setattr(loading, "open_videos", lambda *_, **__: film)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    done = roadaware("predict", tmp_path / "model.safetensors", "--videos", kitti, "--out", tmp_path / "out")
    assert (done.code, "these are still images" in done.err) == (2, True)


@pytest.mark.slow
def test_boxes_for_texts_are_labelled_by_them(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path
) -> None:
    words = ["predict", hub / "owl", "--videos", kitti, "--threshold", "0.01", "--out", tmp_path / "novel"]
    done = roadaware(*words, "--texts", "tyre,traffic cone", "dog")
    assert done.code == 0, done.err
    assert "labels: 3 of corner" in done.out
    found = open_predictions(tmp_path / "novel" / "predictions")
    assert found.meta.vocabularies["corner"] == tuple(TEXTS.split(","))
    assert found.labels["box"].to_list() == found.boxes["box"].to_list()
    best = found.boxes["scores"].to_numpy().argmax(axis=1)
    assert found.labels["label"].to_list() == best.tolist()
    assert found.boxes["score"].to_numpy() == pytest.approx(found.boxes["scores"].to_numpy().max(axis=1))
    refused = roadaware(*words, "--texts", "tyre,dog")
    assert (refused.code, "other settings (texts)" in refused.err) == (2, True)
    for more, told in (
        ([], "say what it looks for"),
        (["--texts", "dog,Dog"], "stand twice"),
        (["--texts", ","], "none empty"),
    ):
        wrong = roadaware(*words[:-1], tmp_path / "other", *more)
        assert (wrong.code, told in wrong.err) == (2, True), wrong.err


# Pre-labels


def test_proposals_are_named(roadaware: Command, hub: Path, kitti: Path, tmp_path: Path) -> None:
    places = [("training/000002", 0), ("training/000000", 0), ("testing/000000", 0)]
    proposals = _proposals(tmp_path / "proposals", places)
    words = ["prelabel", proposals, "--clip", hub / "clip", "--videos", kitti, "--texts", TEXTS]
    done = roadaware(*words, "--top", "2", "--out", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert (done.data["boxes"], done.data["without"]) == (6, 0)
    found = open_predictions(tmp_path / "out" / "predictions")
    boxes = found.boxes
    assert boxes.drop("prelabel", "prelabel_score", "prelabels", "prelabel_scores").equals(
        open_predictions(proposals).boxes
    )
    assert set(boxes["prelabel"].to_list()) <= set(TEXTS.split(","))
    assert boxes["prelabels"].list.len().to_list() == [2] * 6
    assert boxes["prelabels"].list.first().to_list() == boxes["prelabel"].to_list()
    assert (boxes["prelabel_scores"].list.first() == boxes["prelabel_score"]).all()
    assert (boxes["prelabel_scores"].list.diff().list.last() <= 0).all()
    named = [found.meta.vocabularies["corner"][label] for label in found.labels["label"].to_list()]
    assert named == boxes["prelabel"].to_list()
    assert found.meta.notes["prelabels"]["words"] == TEXTS.split(",")

    one = roadaware(*words, "--top", "2", "--out", tmp_path / "single", "--batch", "1")
    assert one.code == 0
    single = open_predictions(tmp_path / "single" / "predictions").boxes
    assert single["prelabel"].to_list() == boxes["prelabel"].to_list()
    np.testing.assert_allclose(single["prelabel_score"], boxes["prelabel_score"], atol=1e-5)


def test_naming_goes_on_where_it_was(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadaware.models.open_vocabulary import CropNamer
    from roadaware.tasks import prelabels

    monkeypatch.setattr(prelabels, "_TOGETHER", 2)
    places = [(f"training/00000{n}", 0) for n in range(3)]
    proposals = _proposals(tmp_path / "proposals", places)
    words = ["prelabel", proposals, "--clip", hub / "clip", "--videos", kitti, "--texts", TEXTS]
    assert roadaware(*words, "--out", tmp_path / "whole").code == 0
    asked: list[int] = []
    scores = CropNamer.scores

    def interrupted(self: Any, crops: Any) -> Any:
        asked.append(len(crops))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return scores(self, crops)

    monkeypatch.setattr(CropNamer, "scores", interrupted)
    stopped = roadaware(*words, "--out", tmp_path / "out")
    assert (stopped.code, "2 of 6 boxes are named" in stopped.err) == (130, True)
    assert roadaware(*words, "--out", tmp_path / "out").code == 0
    assert asked == [2, 2, 2, 2]
    assert open_predictions(tmp_path / "out" / "predictions") == open_predictions(
        tmp_path / "whole" / "predictions"
    )


def test_boxes_without_a_picture_stay_without(
    roadaware: Command, hub: Path, kitti: Path, tmp_path: Path
) -> None:
    places = [("training/000000", 0), ("training/000001", 0), ("training/000002", 9), ("nowhere", 0)]
    proposals = _proposals(tmp_path / "proposals", places)
    (kitti / "training" / "image_2" / "000001.png").unlink()
    words = ["prelabel", proposals, "--clip", hub / "clip", "--videos", kitti, "--out", tmp_path / "out"]
    done = roadaware(*words, "--texts", TEXTS)
    assert done.code == 0, done.err
    assert "2 of 8 boxes are named" in done.out
    assert "4: its video is not among those that are given" in done.out
    found = open_predictions(tmp_path / "out" / "predictions")
    assert found.boxes["prelabel"].is_null().to_list() == [False] * 2 + [True] * 6
    assert roadaware(*words, "--texts", TEXTS, "--strict").code == 1

    foreign = _proposals(tmp_path / "foreign", [("road-0000", 3)])
    words[1] = foreign
    other = roadaware(*words[:-1], tmp_path / "other", "--texts", TEXTS)
    assert (other.code, "none of which is among the 4 that are given" in other.err) == (3, True)
    words[1] = tmp_path
    assert roadaware(*words[:-1], tmp_path / "none", "--texts", TEXTS).code == 3


def test_the_labels_of_coda_are_asked_for_in_words() -> None:
    labels, words = select_prelabels(())
    assert len(labels) == len(set(words)) == 30
    told = dict(zip(labels, words, strict=True))
    assert (told["traffic_cone"], told["suitcace"], told["misc"]) == ("traffic cone", "suitcase", "object")
    assert not any("_" in word for word in words)
