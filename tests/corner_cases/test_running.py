"""A set is proposed for part by part: it goes on, mends damage, and leaves bad images out."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from PIL import Image
from planted_kitti import planted_kitti

from roadaware.corner_cases.checkpointed_parts import prepare_result_folder
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.loader import NOT_TOLD
from roadaware.corner_cases.runner import FORMAT, MAIN, Order, iterate_proposals, run
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import Workers
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions, Scenes


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return planted_kitti(tmp_path_factory.mktemp("planted") / "kitti")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture
def order(root):
    return Order("kitti", str(root), CopgConfig.angle(max_distance_m=40), part=2)


def test_every_picture_is_proposed_for(order, tmp_path):
    told = []
    found, tally = run(order, tmp_path / "out", progress=lambda done, total: told.append((done, total)))
    assert (tally.pictures, tally.with_one, tally.made) == (6, 5, 6)
    assert tally.proposals["initial"] == tally.proposals["final"] == len(found.boxes) >= 11
    counts = dict(found.boxes.group_by("video").len().iter_rows())
    assert counts["training/000004"] >= 4
    assert "training/000000" not in counts
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert found.meta.notes["proposals"]["pictures"] == 6
    assert found.meta.dataset == "KITTI"


def test_what_is_done_is_not_done_again(order, tmp_path):
    folder = tmp_path / "out"
    first, _ = run(order, folder)
    again, tally = run(order, folder)
    assert (again, tally.made, tally.seconds) == (first, 0, 0)
    (folder / "parts" / "000001.json").unlink()
    third, tally = run(order, folder)
    assert (third, tally.made) == (first, 2)


def test_a_damaged_part_is_made_again(order, tmp_path, caplog):
    folder = tmp_path / "out"
    first, _ = run(order, folder)
    path = folder / "parts" / "000002.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with caplog.at_level(logging.WARNING, "roadaware"):
        again, tally = run(order, folder)
    assert (again, tally.made) == (first, 2)
    assert "is damaged and is made again" in caplog.text


def test_a_part_of_another_order_is_made_again(order, tmp_path, caplog):
    mine, other = tmp_path / "mine", tmp_path / "other"
    few = replace(order, config=replace(order.config, most=1))
    found, other_found = run(order, mine)[0], run(few, other)[0]
    assert not found.boxes.equals(other_found.boxes)
    for path in (other / "parts").glob("000000*"):
        (mine / "parts" / path.name).write_bytes(path.read_bytes())
    again, tally = run(order, mine)
    assert again.boxes.equals(found.boxes)
    assert tally.made == order.part
    assert "part 0 of" in caplog.text
    # An order that is written over does not make its parts those of the new one.
    (mine / MAIN).write_bytes((other / MAIN).read_bytes())
    assert run(few, mine)[0].boxes.equals(other_found.boxes)


def test_edited_notes_of_a_part_are_made_again(order, tmp_path):
    found, _ = run(order, tmp_path / "out")
    notes = tmp_path / "out" / "parts" / "000000.json"
    for change in ({"skipped": 3}, {"final": "x"}, {"beside": {"../../x": "y"}}):
        notes.write_text(json.dumps({**json.loads(notes.read_text()), **change}))
        again, tally = run(order, tmp_path / "out")
        assert (again.boxes.equals(found.boxes), tally.made) == (True, order.part)


def test_folders_of_others_are_left_alone(order, tmp_path):
    folder = tmp_path / "out"
    run(replace(order, videos=("training/000001",)), folder)
    with pytest.raises(UsageError, match="proposals of another order"):
        run(replace(order, videos=("training/000001",), config=CopgConfig.angle()), folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds other things \(thesis\.txt\)"):
        run(order, other)


def test_an_order_of_which_nothing_is_done_makes_room(order, tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(UsageError, match="truth is known of synthetic scenes alone, not of KITTI"):
        run(replace(order, semantics="truth"), folder)
    with pytest.raises(UsageError, match="for detections name saved predictions"):
        run(replace(order, detections="erring"), folder)
    prepare_result_folder(folder, MAIN, {"format": FORMAT, "order": "mine"}, "proposals")
    _, tally = run(order, folder)
    assert tally.made == 6


def test_one_bad_picture_stops_no_other(order, tmp_path):
    root = planted_kitti(tmp_path / "kitti")
    velodyne = root / "training" / "velodyne"
    (velodyne / "000001.bin").write_bytes(bytes(41))
    (velodyne / "000002.bin").unlink()
    points = np.fromfile(velodyne / "000003.bin", "<f4") * 1000
    (velodyne / "000003.bin").write_bytes(points.astype("<f4").tobytes())
    (root / "training" / "calib" / "000000.txt").write_text("P0: 1\n")
    found, tally = run(replace(order, root=str(root)), tmp_path / "out")
    assert set(found.boxes["video"]) == {"training/000004", "testing/000000"}
    assert sum(tally.skipped.values()) == 4
    reasons = " ".join(tally.skipped)
    for part in ("no whole number of points", "no such file", "no metres", "no calibration"):
        assert part in reasons, part
    skipped = found.meta.notes["proposals"]["skipped"]
    assert [each["video"] for each in skipped] == ["training/000001", "training/000002", "training/000003"]


def test_reasons_that_differ_in_numbers_alone_are_one(order, tmp_path):
    root = planted_kitti(tmp_path / "kitti")
    for number in range(4):
        path = root / "training" / "velodyne" / f"{number:06d}.bin"
        points = np.fromfile(path, "<f4") * (1000 + number)
        path.write_bytes(points.astype("<f4").tobytes())
    (root / "training" / "velodyne" / "000004.bin").write_bytes(bytes(41))
    _, tally = run(replace(order, root=str(root)), tmp_path / "out")
    assert list(tally.skipped.values()) == [4, 1]
    assert "no metres" in next(iter(tally.skipped))


def test_pictures_can_be_looked_at_one_by_one(order):
    found = [(moment.video, len(each)) for moment, _, each, _ in iterate_proposals(order, range(2, 5))]
    assert [video for video, _ in found] == ["training/000001", "training/000002", "training/000003"]


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_give_what_one_gives(order, tmp_path, on):
    if on != "local":
        pytest.importorskip("ray")
    one, tally = run(order, tmp_path / "one")
    two, same = run(order, tmp_path / "two", workers=Workers(on, 2))
    assert one == two
    assert same.proposals == tally.proposals


def test_masks_and_detections_from_disk(root, tmp_path):
    masks = tmp_path / "masks"
    (masks / "training" / "000001").mkdir(parents=True)
    held = np.full((20, 62), 1, np.uint8)
    Image.fromarray(held).save(masks / "training" / "000001" / "000000.png")
    (masks / "classes.json").write_text(json.dumps(["car", "wall"]))
    predictions = {"box": [0], "video": ["training/000001"], "frame": [0], "score": [0.75]}
    corners = {"x1_px": [0.0], "y1_px": [0.0], "x2_px": [62.0], "y2_px": [20.0]}
    save(Predictions(boxes=pl.DataFrame(predictions | corners)), tmp_path / "predictions")
    scenes = read("kitti", root)
    semantics = SemanticSource(str(masks), scenes, root)
    found = semantics.of("training/000001", 0)
    assert found is not None
    assert found.names == ("car", "wall")
    detections = DetectionSource(str(tmp_path / "predictions"), scenes)
    objects = detections.of("training/000001", 0)
    assert objects is not None
    assert (objects.boxes.tolist(), objects.scores.tolist()) == ([[0, 0, 62, 20]], [0.75])
    nothing = detections.of("training/000002", 0)
    assert nothing is not None
    assert nothing.boxes.shape == (0, 4)
    assert (objects.has_predictions, nothing.has_predictions) == (True, False)
    order = Order(
        "kitti",
        str(root),
        CopgConfig.angle(),
        semantics=str(masks),
        detections=str(tmp_path / "predictions"),
        videos=("training/000001", "training/000002"),
    )
    _, tally = run(order, tmp_path / "out")
    assert tally.proposals["initial"] > 0
    assert tally.proposals["intermediate"] == 0
    assert list(tally.skipped.values()) == [1]
    _, tally = run(replace(order, semantics=None), tmp_path / "all")
    assert tally.odd == {NOT_TOLD: 1}


def test_detections_of_another_set_are_refused(order, tmp_path):
    row = {"box": [0], "video": ["elsewhere/1"], "frame": [0], "score": [0.75]}
    corners = {"x1_px": [0.0], "y1_px": [0.0], "x2_px": [62.0], "y2_px": [20.0]}
    boxes = pl.DataFrame(row | corners)
    save(Predictions(boxes=boxes), tmp_path / "predictions")
    asked = replace(order, detections=str(tmp_path / "predictions"))
    with pytest.raises(
        InputError, match="detections of other videos: elsewhere/1, where the set has testing"
    ):
        run(asked, tmp_path / "out")
    save(Predictions(boxes=boxes.clear()), tmp_path / "none")
    _, tally = run(replace(asked, detections=str(tmp_path / "none")), tmp_path / "out")
    assert tally.odd == {NOT_TOLD: 6}


@pytest.fixture
def beside(root, tmp_path):
    """An order with masks of two of three images, and with detections."""
    masks = tmp_path / "masks"
    masked(masks, 1)
    masked(masks, 2)
    (masks / "classes.json").write_text(json.dumps(["car", "wall"]))
    detect(tmp_path / "predictions", 0.75)
    videos = tuple(f"training/00000{number}" for number in (1, 2, 3))
    return Order(
        "kitti",
        str(root),
        CopgConfig.angle(),
        semantics=str(masks),
        detections=str(tmp_path / "predictions"),
        videos=videos,
        part=1,
    )


def masked(masks, number, code=0):
    """Write the mask of an image, whose height differs from one to the next."""
    path = masks / "training" / f"{number:06d}" / "000000.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((19 + number, 62), code, np.uint8)).save(path)


def detect(folder, score):
    row = {"box": [0], "video": ["training/000001"], "frame": [0], "score": [score]}
    corners = {"x1_px": [0.0], "y1_px": [0.0], "x2_px": [9.0], "y2_px": [9.0]}
    save(Predictions(boxes=pl.DataFrame(row | corners)), folder, overwrite=True)


@pytest.mark.slow
def test_a_mask_that_was_missing_is_made_up_for(beside, tmp_path):
    _, tally = run(beside, tmp_path / "out")
    where = str(tmp_path / "masks") + ": training/000003/000000.png"
    assert list(tally.skipped.items()) == [(f"there is no such file; first: {where}", 1)]
    found, again = run(beside, tmp_path / "out")
    assert (again.made, again.skipped) == (0, tally.skipped)
    assert [each["where"] for each in found.meta.notes["proposals"]["skipped"]] == [where]
    masked(tmp_path / "masks", 3)
    found, mended = run(beside, tmp_path / "out")
    assert (mended.made, mended.skipped, mended.opened) == (1, {}, 3)
    assert "training/000003" in set(found.boxes["video"])


def test_a_sweep_that_was_damaged_is_made_up_for(order, tmp_path):
    root = planted_kitti(tmp_path / "kitti")
    sweep = root / "training" / "velodyne" / "000003.bin"
    whole = sweep.read_bytes()
    sweep.write_bytes(whole[:41])
    asked = replace(order, root=str(root))
    _, tally = run(asked, tmp_path / "out")
    assert list(tally.skipped.values()) == [1]
    assert "000003.bin" in next(iter(tally.skipped))
    sweep.write_bytes(whole)
    found, tally = run(asked, tmp_path / "out")
    assert (tally.made, tally.skipped) == (2, {})
    assert found == run(asked, tmp_path / "other")[0]


@pytest.mark.slow
def test_changed_sources_are_refused_until_all_is_made_anew(beside, tmp_path):
    folder, masks = tmp_path / "out", tmp_path / "masks"
    run(beside, folder)
    detect(tmp_path / "predictions", 0.5)
    with pytest.raises(UsageError, match=r"of detections that have changed since; say --overwrite"):
        run(beside, folder)
    assert run(beside, folder, overwrite=True)[1].made == 3
    (masks / "classes.json").write_text(json.dumps(["wall", "car"]))
    with pytest.raises(UsageError, match=r"of other names of classes \(classes\.json"):
        run(beside, folder)
    assert run(beside, folder, overwrite=True)[1].made == 3
    masked(masks, 2, code=1)
    with pytest.raises(UsageError, match=r"or mask has changed .*, in training/000002, frame 0; say"):
        run(beside, folder)
    assert run(beside, folder, overwrite=True)[1].made == 3
    assert run(beside, folder)[1].made == 0


def test_overwriting_spares_what_others_wrote(order, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other things"):
        run(order, tmp_path, overwrite=True)


def test_sources_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder of semantic maps"):
        SemanticSource(str(tmp_path / "none"), Scenes(), tmp_path)
    for content, reason in (("[", "not JSON"), ("{}", "list of names"), ("[1]", "list of names")):
        (tmp_path / "classes.json").write_text(content)
        with pytest.raises(InputError, match=reason):
            SemanticSource(str(tmp_path), Scenes(), tmp_path)
    assert SemanticSource(None, Scenes(), tmp_path).of("v", 0) is None
    assert DetectionSource(None, Scenes()).of("v", 0) is None
