"""`roadaware submit` writes what the published evaluator reads, and says beforehand what it would score and what 0."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_files import Command

from roadaware.datasets import read
from roadaware.demo_data.road import write_road_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.road_detections import read_detections
from roadaware.formats.submission import FILE, build_submission, encode_submission, merge_submissions
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions, Scenes


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("road")
    write_road_demo(root / "data", videos=4, frames=50)
    return root


@pytest.fixture(scope="module")
def linked(road: Path) -> Path:
    detections = read_detections(road / "data" / "detections", read("road", road / "data"))
    save(link(detections, LinkerConfig.default()), road / "linked")
    return road / "linked"


def load_zip(path: Path):
    """The tubes, as a server that knows nothing of us unpickles them."""
    with zipfile.ZipFile(path) as archive:
        (name,) = archive.namelist()
        assert name == FILE
        return pickle.loads(archive.read(name))  # noqa: S301 - what we wrote, read as others read it


def plain_st_iou(one, other) -> float:
    """Spatio-temporal IoU of two tubes without holes, from its definition; areas with the evaluator's extra pixel."""
    shared = sorted(set(one["frames"]) & set(other["frames"]))
    if not shared:
        return 0.0
    union = max(one["frames"][-1], other["frames"][-1]) - min(one["frames"][0], other["frames"][0]) + 1
    overlaps = []
    for frame in shared:
        a, b = (tube["boxes"][list(tube["frames"]).index(frame)] for tube in (one, other))
        width = min(a[2], b[2]) - max(a[0], b[0]) + 1
        height = min(a[3], b[3]) - max(a[1], b[1]) + 1
        inner = max(width, 0) * max(height, 0)
        areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
        overlaps.append(inner / (sum(areas) - inner))
    return float(np.mean(overlaps)) * len(shared) / union


def plain_video_map(tubes, annotations: dict, split: str, native: str, threshold: float) -> float:
    """Video-mAP in per cent as the challenges' evaluator defines it, straight from the annotation file."""
    names = [name for name, video in annotations["db"].items() if split in video["split_ids"]]
    used, every = annotations[f"{native}_labels"], annotations[f"all_{native}_labels"]
    aps = []
    for number, label in enumerate(used):
        truth = {name: [] for name in names}
        for name in names:
            video = annotations["db"][name]
            for tube in video[f"{native}_tubes"].values():
                if every[tube["label_id"]] == label and tube.get("annos"):
                    frames = sorted(map(int, tube["annos"]))
                    boxes = [video["frames"][str(f)]["annos"][tube["annos"][str(f)]]["box"] for f in frames]
                    truth[name].append({"frames": frames, "boxes": np.array(boxes) * [682, 512, 682, 512]})
        found = [
            (t["score"], name, t) for name in names for t in tubes[native][name] if t["label_id"] == number
        ]
        found.sort(key=lambda each: -each[0])
        total, hits, points = max(1, sum(map(len, truth.values()))), 0, [(1.0, 0.0)]
        for place, (_, name, tube) in enumerate(found, 1):
            overlaps = [plain_st_iou(tube, each) for each in truth[name]]
            if overlaps and max(overlaps) >= threshold:
                hits += 1
                del truth[name][int(np.argmax(overlaps))]
            points.append((hits / place, hits / total))
        aps.append(sum((r - q) * (p + o) / 2 for (o, q), (p, r) in pairwise(points)))
    return 100 * float(np.mean(aps))


def test_the_zip_scores_on_the_published_evaluator_what_is_said(
    roadaware: Command, road: Path, linked: Path, tmp_path: Path
) -> None:
    out = tmp_path / "road.zip"
    words = ["submit", "road", linked, "--truth", road / "data", "--split", "val_1", "-o", out]
    done = roadaware(*words, "--json")
    assert done.code == 0, done.err
    tubes = load_zip(out)
    annotations = json.loads((road / "data" / "road_trainval_v1.0.json").read_text())
    names = {name for name, video in annotations["db"].items() if "val_1" in video["split_ids"]}
    assert set(tubes) == {"agent", "action", "triplet"}
    for native, videos in tubes.items():
        assert set(videos) == names
        for name, listed in videos.items():
            for tube in listed:
                frames = tube["frames"]
                assert (np.diff(frames) == 1).all()
                assert 1 <= frames[0] <= frames[-1] <= annotations["db"][name]["numf"]
                assert tube["boxes"].shape == (len(frames), 4)
                assert tube["scores"].shape == frames.shape
                assert 0 <= tube["label_id"] < len(annotations[f"{native}_labels"])
    for native, kind in (("agent", "agent"), ("action", "action"), ("triplet", "event")):
        for threshold in (0.2, 0.5):
            said = 100 * done.data["video_map"][kind][str(threshold)]
            plain = plain_video_map(tubes, annotations, "val_1", native, threshold)
            assert said == pytest.approx(plain, abs=1e-3), (kind, threshold)
    assert roadaware(*words).code == 2  # it is there already
    again = roadaware(*words, "--overwrite", "--kinds", "triplet", "--json")
    assert list(again.data["tubes"]) == ["triplet"]


def test_what_would_be_scored_0_is_said(roadaware: Command, road: Path, linked: Path, tmp_path: Path) -> None:
    scenes = read("road", road / "data").split("val_1")
    tables = open_predictions(linked)
    without = tables.with_tables(tube_labels=tables.tube_labels.filter(pl.col("kind") != "event"))
    found = build_submission(without, scenes)
    assert "There are no tubes of triplet: the server scores that task 0." in [
        r.says for r in found.remarks if r.costs
    ]
    first = str(scenes.videos["video"][0])
    here = pl.col("video").cast(pl.String) != first
    tubes = tables.tubes.filter(here)
    labels = tables.tube_labels.join(tubes.select("tube"), on="tube", how="semi")
    lost = tables.with_tables(tubes=tubes, tube_labels=labels, boxes=tables.boxes.filter(here))
    train = read("road", road / "data")
    remarks = [r.says for r in build_submission(lost, train).remarks if r.costs]
    assert remarks == [f"No tubes in 1 of 4 videos of the split, handed in as empty: {first}."]
    same = tables.with_tables(tube_labels=tables.tube_labels.with_columns(score=pl.lit(0.5)))
    assert any("cannot rank them" in r.says for r in build_submission(same, scenes).remarks if r.costs)
    names = {**tables.meta.vocabularies, "agent": ("Alien", *tables.meta.vocabularies["agent"][1:])}
    strange = tables.with_tables(meta=replace(tables.meta, vocabularies=names))
    assert any("(Alien)" in r.says for r in build_submission(strange, scenes).remarks if r.costs)
    done = roadaware(
        *("submit", "road", linked, "--truth", road / "data", "--split", "nowhere", "-o", tmp_path / "x.zip")
    )
    assert done.code == 2
    assert "its splits are" in done.err
    done = roadaware("submit", "roadpp", linked, "--truth", road / "data")
    assert done.code == 2
    done = roadaware(
        *("submit", "road", road / "data" / "detections", "--truth", road / "data", "-o", tmp_path / "x.zip")
    )
    assert done.code == 3
    assert "Link them first" in done.err
    with pytest.raises(UsageError, match="there is no flavour"):
        build_submission(tables, scenes, ["flavour"])


def toy() -> tuple[Predictions, Scenes]:
    """One tube of two boxes with a hole between them, one frame of it behind the end, and its video."""
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": [1280], "height_px": [960], "n_frames": [5]}),
        meta=Meta(vocabularies={"agent": ("Car", "Ped")}),
    )
    frames = [0, 2, 7]
    boxes = pl.DataFrame(
        {
            "box": range(3), "video": ["v"] * 3, "frame": frames, "tube": [0] * 3, "score": [0.2, 0.4, 0.6],
            "x1_px": [0.0, 128.0, 0.0], "y1_px": [0.0, 96.0, 0.0], "x2_px": [64.0, 192.0, 9.0], "y2_px": [48.0, 144.0, 9.0],
        }
    )  # fmt: skip
    tubes = pl.DataFrame({"tube": [0], "video": ["v"], "start_frame": [0], "end_frame": [8]})
    labels = pl.DataFrame({"tube": [0], "kind": ["agent"], "label": [0], "score": [0.9]})
    meta = Meta(vocabularies={"agent": ("Ped", "Car")})
    return Predictions(
        videos=scenes.videos.drop("n_frames"), boxes=boxes, tubes=tubes, tube_labels=labels, meta=meta
    ), scenes


def test_holes_are_filled_ends_are_cut_and_labels_go_by_name() -> None:
    predictions, scenes = toy()
    found = build_submission(predictions, scenes)
    (tube,) = found.lists["agent"]["v"]
    assert tube["label_id"] == 1
    assert tube["frames"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(tube["boxes"][1], [34.1, 25.6, 68.2, 51.2], rtol=1e-6)
    np.testing.assert_allclose(tube["scores"], [0.2, 0.3, 0.4], rtol=1e-6)
    said = " ".join(remark.says for remark in found.remarks)
    assert "1 tubes were cut" in said
    assert "1 tubes had holes" in said


@pytest.mark.parametrize(
    ("factor", "says"),
    [(1 / 200, "look like shares of the image"), (10, "1 boxes lie outside their image"), (1, "")],
)
def test_boxes_in_other_pixels_are_said(factor: float, says: str) -> None:
    predictions, scenes = toy()
    scaled = [pl.col(side) * factor for side in ("x1_px", "y1_px", "x2_px", "y2_px")]
    found = build_submission(predictions.with_tables(boxes=predictions.boxes.with_columns(scaled)), scenes)
    costly = " ".join(remark.says for remark in found.remarks if remark.costs)
    assert says in costly
    assert bool(says) == bool(costly)


def test_labels_without_a_tube_are_named() -> None:
    said = [remark.says for remark in build_submission(*toy()).remarks if not remark.costs]
    assert "No tubes of 1 of 2 agent labels, each 0 in the mean: Car." in said


def test_two_sets_become_one_file_with_the_same_bytes_each_time() -> None:
    predictions, scenes = toy()
    one = build_submission(predictions, scenes)
    renamed = [{"agent": {"w": one.lists["agent"]["v"]}}]
    other = type(one)(renamed[0])
    both = merge_submissions([one, other])
    assert list(both.lists["agent"]) == ["v", "w"]
    data = encode_submission(both)
    assert data == encode_submission(both)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == [FILE]
    with pytest.raises(InputError, match="two data sets have a video 'v'"):
        merge_submissions([one, one])
