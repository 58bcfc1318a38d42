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
from PIL import Image
from small_files import Command

from roadaware.analysis.evaluation.events import list_media_videos
from roadaware.datasets import read
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import build_road_json, generate_road_scenes, write_road_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.road_detections import encode_pickle, read_detections, write_detections
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


def test_what_costs_score_is_said(roadaware: Command, road: Path, linked: Path, tmp_path: Path) -> None:
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


def long_tubes(first: int, last: int, videos: int) -> tuple[Predictions, Scenes]:
    """A tube from `first` to `last` in each of some videos of twelve frames, 0 to 11."""
    names, frames = [f"v{k}" for k in range(videos)], range(first, last + 1)
    scenes = Scenes(
        videos=pl.DataFrame({"video": names}).with_columns(width_px=1280, height_px=960, n_frames=12),
        meta=Meta(vocabularies={"agent": ("Car",)}),
    )
    boxes = pl.DataFrame(
        [
            (name, tube, frame, 0.5, 10.0, 10.0, 90.0, 90.0)
            for tube, name in enumerate(names)
            for frame in frames
        ],
        schema=["video", "tube", "frame", "score", "x1_px", "y1_px", "x2_px", "y2_px"],
        orient="row",
    ).with_row_index("box")
    tubes = pl.DataFrame({"tube": range(videos), "video": names}).with_columns(
        start_frame=first, end_frame=last + 1
    )
    labels = tubes.select("tube", kind=pl.lit("agent"), label=pl.lit(0), score=0.5 + pl.col("tube") / 10)
    return Predictions(boxes=boxes, tubes=tubes, tube_labels=labels, meta=scenes.meta), scenes


@pytest.mark.parametrize(
    ("first", "last", "videos", "says", "costs"),
    [
        (0, 11, 4, "", False),
        (1, 12, 4, "numbered from 2; take 1 from each", True),
        (1, 12, 1, "numbered from 2; take 1 from each", True),
        (0, 12, 4, "", False),  # tracks that go on behind the end
        (2, 9, 4, "", False),  # a detector that sees nothing at either end
        (1, 11, 4, "are not numbered from 1, take 1 from each", False),
        (0, 10, 4, "are not numbered from 1, add 1 to each", False),
        (1, 11, 2, "", False),
    ],
)
def test_a_set_moved_by_a_frame_is_said_without_annotations(
    first: int, last: int, videos: int, says: str, costs: bool
) -> None:
    remarks = build_submission(*long_tubes(first, last, videos)).remarks
    found = [remark for remark in remarks if "numbered from" in remark.says]
    assert [remark.costs for remark in found] == ([costs] if says else []), remarks
    assert says in " ".join(remark.says for remark in found)


def move_frames(lists: dict, by: int, path: Path) -> Path:
    """A tube file whose frames are moved."""
    moved = {
        kind: {
            video: [{**tube, "frames": tube["frames"] + by} for tube in tubes]
            for video, tubes in videos.items()
        }
        for kind, videos in lists.items()
    }
    path.write_bytes(encode_pickle(moved))
    return path


@pytest.mark.parametrize("by", [1, *(pytest.param(by, marks=pytest.mark.slow) for by in (-1, 0, 3))])
def test_a_set_that_is_moved_is_said_of_an_annotated_split(
    by: int, roadaware: Command, road: Path, linked: Path, tmp_path: Path
) -> None:
    words = ["--truth", road / "data", "--split", "all", "-o"]
    assert roadaware("submit", "road", linked, *words, tmp_path / "whole.zip").code == 0
    moved = move_frames(load_zip(tmp_path / "whole.zip"), by, tmp_path / "tubes.pkl")
    done = roadaware("submit", "road", moved, *words, tmp_path / "road.zip", "--json")
    assert done.code == 0, done.err
    named = [remark["says"] for remark in done.data["remarks"] if remark["says"].startswith("Frames are ")]
    wanted = f"Frames are {abs(by)} {'late' if by > 0 else 'early'}. Add {-by:+d} to all of them."
    assert len(named) == bool(by)
    assert all(wanted in text for text in named)
    assert roadaware("submit", "road", moved, *words, tmp_path / "strict.zip", "--strict").code == bool(by)


@pytest.fixture(scope="module")
def waymo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ROAD-Waymo is: larger images, labels of its own, and a test split of which videos alone are public."""
    root = tmp_path_factory.mktemp("waymo")
    scenes = generate_road_scenes(videos=5, frames=[24, 30, 28, 26, 25], seed=5, size=(1920, 1280), fps=10.0)
    write_detections(simulate_detections(scenes, seed=5), root / "detections")
    whole = build_road_json(scenes)
    # The detector's columns are in the order of the release; it has labels that ROAD lacks, and not all of ROAD's.
    for key in ("agent_labels", "all_agent_labels"):
        whole[key] = ["Tram" if name == "Bus" else name for name in whole[key]]
    for k, video in enumerate(whole["db"].values()):
        video["split_ids"] = [("train", "train", "val", "val", "test")[k]]
    (root / "road_waymo_all.json").write_text(json.dumps(whole))
    hidden = {name: video for name, video in whole["db"].items() if "test" in video["split_ids"]}
    public = {**whole, "db": {name: video for name, video in whole["db"].items() if name not in hidden}}
    (root / "road_waymo_trainval_v1.0.json").write_text(json.dumps(public))
    for name, video in hidden.items():
        (root / "test" / name).mkdir(parents=True)
        for frame in range(1, video["numf"] + 1):
            Image.new("RGB", (1920, 1280)).save(root / "test" / name / f"{frame:05d}.jpg")
    detections = read_detections(root / "detections", read("road", root / "road_waymo_all.json"))
    save(link(detections, LinkerConfig.default()), root / "linked")
    return root


def test_a_test_split_that_is_kept_back_is_named_by_its_videos(
    roadaware: Command, waymo: Path, tmp_path: Path
) -> None:
    public, whole = waymo / "road_waymo_trainval_v1.0.json", waymo / "road_waymo_all.json"
    done = roadaware("submit", "road-waymo", waymo / "linked", "--truth", public, "-o", tmp_path / "no.zip")
    assert done.code == 2
    assert "no split 'test'" in done.err
    assert "--media" in done.err
    words = ["submit", "road-waymo", waymo / "linked", "-o"]
    done = roadaware(*words, tmp_path / "test.zip", "--truth", public, "--media", waymo / "test", "--json")
    assert done.code == 0, done.err
    assert done.data["video_map"] == {}
    assert roadaware(*words, tmp_path / "known.zip", "--truth", whole, "--split", "test").code == 0
    assert (tmp_path / "test.zip").read_bytes() == (tmp_path / "known.zip").read_bytes()
    annotations = json.loads(whole.read_text())
    (name,) = (path.name for path in (waymo / "test").iterdir())
    for native, videos in load_zip(tmp_path / "test.zip").items():
        assert list(videos) == [name]
        for tube in videos[name]:
            assert 1 <= tube["frames"][0] <= tube["frames"][-1] <= annotations["db"][name]["numf"]
            assert 0 <= tube["label_id"] < len(annotations[f"{native}_labels"])
            assert (tube["boxes"] > -50).all()
            assert (tube["boxes"] < [732, 562, 732, 562]).all()
            assert 0 <= tube["score"] <= 1
    # The tube file of the published code itself, and a count from 0 in it.
    for by in (0, -1):
        file = move_frames(load_zip(tmp_path / "test.zip"), by, tmp_path / "tubes_none_0.pkl")
        again = ["submit", "road-waymo", file, "--truth", public, "--media", waymo / "test"]
        done = roadaware(*again, "-o", tmp_path / f"again{by}.zip", "--json")
        assert done.code == 0, done.err
        says = [remark["says"] for remark in done.data["remarks"] if "from 0; add 1" in remark["says"]]
        assert len(says) == abs(by), done.data["remarks"]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [([0, 1, 2], "numbered from 0 to 2"), ([1, 2, 4], "has 3 images, numbered from 1 to 4"), ([1, 2, 3], "")],
)
def test_images_of_a_video_are_numbered_from_1_without_a_gap(
    numbers: list[int], told: str, tmp_path: Path
) -> None:
    for folder in ("video one", ".cache", "notes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "notes/1.txt").write_text("nothing")
    for number in numbers:
        Image.new("RGB", (8, 6)).save(tmp_path / "video one" / f"{number:05d}.png")
    whole = Scenes(meta=Meta("ROAD"))
    if told:
        with pytest.raises(InputError, match=told):
            list_media_videos(tmp_path, whole, "test")
    else:
        videos = list_media_videos(tmp_path, whole, "test").videos
        assert videos.select("video", "width_px", "height_px", "n_frames").rows() == [("video one", 8, 6, 3)]
    known = Scenes(videos=pl.DataFrame({"video": ["v"], "splits": [["val_1"]]}), meta=Meta("ROAD"))
    with pytest.raises(UsageError, match="has the split 'val_1'"):
        list_media_videos(tmp_path, known, "val_1")


def test_each_data_set_of_roadpp_is_numbered_and_judged_by_its_own_file(
    roadaware: Command, road: Path, linked: Path, waymo: Path, tmp_path: Path
) -> None:
    out, waymo_file = tmp_path / "roadpp.zip", waymo / "road_waymo_all.json"
    words = ["submit", "roadpp", linked, waymo / "linked", "--truth", road / "data", waymo_file]
    done = roadaware(*words, "--split", "all", "-o", out, "--json")
    assert done.code == 0, done.err
    tubes = load_zip(out)
    for name, path in (("ROAD", road / "data" / "road_trainval_v1.0.json"), ("ROAD-Waymo", waymo_file)):
        annotations = json.loads(path.read_text())
        for video in annotations["db"].values():
            video["split_ids"] = ["every"]
        assert set(annotations["db"]) < set(tubes["agent"])
        for native, kind in (("agent", "agent"), ("action", "action"), ("triplet", "event")):
            said = 100 * done.data["video_map"][f"{name} {kind}"]["0.2"]
            plain = plain_video_map(tubes, annotations, "every", native, 0.2)
            assert said == pytest.approx(plain, abs=1e-3), (name, kind)
    done = roadaware(*words, "--media", waymo / "test", "-o", tmp_path / "x.zip")
    assert done.code == 2
    assert "takes 2 of --media" in done.err


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
