"""Bridges to other libraries: there and back is the same as far as the other side holds it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import roadaware as ra
from roadaware.errors import InputError, UsageError
from roadaware.io.images import read_still
from roadaware.io.video import VideoWriter

CLASSES = ("person", "car & <van>", "größe")
SIZE = (64, 48)
CORNERS = ["x1_px", "y1_px", "x2_px", "y2_px"]
FRAMES = 6
FACTS = ("video", "width_px", "height_px", "fps", "n_frames")


def make_arrays(seed: int = 0, *, untracked: bool = True) -> dict[str, Any]:
    """Boxes of two videos, some without a class, a track, or a box in a frame at all."""
    rng = np.random.default_rng(seed)
    rows = []
    for video in ("drive_a", "drive_b"):
        for frame in (0, 1, 3, 5):
            for track in rng.permutation(4)[: rng.integers(1, 4)].tolist():
                x, y = rng.uniform(0, 40), rng.uniform(0, 30)
                number = -1 if untracked and track == 3 else track
                rows.append(
                    (video, frame, number, track % 3, x, y, x + rng.uniform(2, 20), y + rng.uniform(2, 15))
                )
    return {
        "boxes": np.array([row[4:] for row in rows]),
        "frames": np.array([row[1] for row in rows]),
        "videos": [row[0] for row in rows],
        "labels": np.array([row[3] for row in rows]),
        "tracks": np.array([row[2] for row in rows]),
        "classes": CLASSES,
        "seen": [(video, frame) for video in ("drive_a", "drive_b") for frame in range(FRAMES)],
    }


def make_scenes(seed: int = 0) -> ra.Scenes:
    held = make_arrays(seed)
    labels = held["labels"].copy()
    labels[::5] = -1
    ignore = np.arange(len(labels)) % 7 == 3
    facts = {
        v: {"width_px": 64, "height_px": 48, "fps": 10.0, "n_frames": FRAMES} for v in ("drive_a", "drive_b")
    }
    return ra.Scenes.from_numpy(**{**held, "labels": labels}, ignore=ignore, facts=facts)


def make_predictions(seed: int = 0) -> ra.Predictions:
    held = make_arrays(seed)
    # Scores that single precision holds exactly.
    scores = np.random.default_rng(seed).integers(1, 128, len(held["labels"])) / 128
    return ra.Predictions.from_numpy(scores=scores, **held)


class Detections(SimpleNamespace):
    """The fields of `supervision.Detections`, where that library is not installed."""


@pytest.fixture
def supervision(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, or what of it the bridge touches."""
    try:
        import supervision as library  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        library = SimpleNamespace(Detections=Detections)
        monkeypatch.setitem(sys.modules, "supervision", library)
    return library


def test_arrays_become_scenes_with_tracks_and_frames_without_boxes() -> None:
    scenes, held = make_scenes(), make_arrays()
    assert len(scenes.boxes) == len(held["boxes"])
    assert len(scenes.frames) == 2 * FRAMES
    assert scenes.frames["annotated"].all()
    order = np.lexsort((np.arange(len(held["frames"])), held["frames"], np.array(held["videos"])))
    assert np.allclose(scenes.boxes.select(CORNERS).to_numpy(), held["boxes"][order])
    named = scenes.boxes.join(
        scenes.tubes.select("tube", "name"), on="tube", how="left", maintain_order="left"
    )
    assert named["name"].to_list() == [str(n) if n >= 0 else None for n in held["tracks"][order]]
    assert scenes.boxes["ignore"].sum() == len(held["frames"][3::7])
    # The class of a track stands where all of its boxes have one.
    assert set(scenes.tube_labels["kind"]) <= {"agent"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tracks": np.array([1, 1])}, "track 1 has two boxes in frame 0"),
        ({"tracks": np.array([0.5, 1.0])}, "whole numbers of tracks"),
        ({"tracks": np.array([-2, 1])}, "-1 for none"),
        ({"ignore": np.array([0, 1])}, "true or false"),
        ({"labels": np.array([-2, 0])}, "from -1 to 0"),
        ({"seen": [("a", -1)]}, "frames count from 0"),
        ({"facts": {"a": {"n_frames": 0}}}, "behind the end"),
    ],
)
def test_arrays_that_say_nothing_are_refused(change: dict[str, Any], says: str) -> None:
    given = {"boxes": [[0, 0, 1, 1], [2, 2, 3, 3]], "frames": [0, 0], "videos": "a", "classes": ["x"]}
    with pytest.raises(InputError, match=says):
        ra.Scenes.from_numpy(**{**given, **change})


@pytest.mark.parametrize("seed", range(4))
def test_supervision_there_and_back(seed: int, supervision: Any) -> None:
    scenes, predictions = make_scenes(seed), make_predictions(seed)
    facts = {
        row["video"]: {k: row[k] for k in ("width_px", "height_px", "fps", "n_frames")}
        for row in scenes.videos.to_dicts()
    }
    there = scenes.to_supervision()
    assert {video: sorted(frames) for video, frames in there.items()} == {
        v: list(range(FRAMES)) for v in ("drive_a", "drive_b")
    }
    assert all(
        isinstance(each, supervision.Detections) for frames in there.values() for each in frames.values()
    )
    back = ra.Scenes.from_supervision(there, classes=CLASSES, facts=facts)
    assert back.with_tables(meta=scenes.meta) == scenes
    again = ra.Predictions.from_supervision(predictions.to_supervision(), classes=CLASSES)
    assert again == predictions
    # Without `classes` the names that the detections carry are the vocabulary, in the order of their numbers.
    named = ra.Predictions.from_supervision(predictions.to_supervision())
    assert named.meta.vocabularies["agent"] == tuple(
        CLASSES[n] for n in sorted(set(make_arrays(seed)["labels"].tolist()))
    )


def test_supervision_of_one_frame_says_what_stands_in_it(supervision: Any) -> None:
    scenes = ra.Scenes.from_numpy(
        [[1, 2, 3, 4], [5, 6, 7, 8]], [2, 2], "a", classes=CLASSES, labels=[1, -1], tracks=[9, -1]
    )
    found = scenes.to_supervision()["a"][2]
    assert found.xyxy.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert found.class_id.tolist() == [1, -1]
    assert found.tracker_id.tolist() == [9, -1]
    assert found.confidence is None
    assert found.data["class_name"].tolist() == ["car & <van>", ""]
    listed = ra.Scenes.from_supervision([found, found], video="b")
    assert listed.boxes["frame"].to_list() == [0, 0, 1, 1]
    assert listed.meta.vocabularies == {"agent": ("car & <van>",)}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("text", "not str"),
        ({"a": {0: "text"}}, "is str, not Detections"),
        ({"a": {0.5: None}}, "frames are whole numbers"),
        ({"a": {}, "b": 3}, "'b' holds int"),
    ],
)
def test_supervision_of_something_else_is_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ra.Scenes.from_supervision(given)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"class_id": np.array([0])}, "class_id 0 has no name"),
        ({"class_id": np.array([0, 1])}, r"expected \(1,\) values"),
        ({"class_id": np.array([0]), "data": {"class_name": np.array(["x"])}}, "confidence lies in"),
        ({"confidence": np.array([0.5])}, "needs a class_id"),
        ({"xyxy": np.array([[3.0, 0, 1, 1]]), "confidence": np.array([0.5])}, "x, y, width, height"),
    ],
)
def test_detections_that_are_no_predictions_are_refused(fields: dict[str, Any], says: str) -> None:
    given = {
        "xyxy": np.array([[0.0, 0, 1, 1]]),
        "class_id": None,
        "confidence": None,
        "tracker_id": None,
        "data": {},
    }
    with pytest.raises(InputError, match=says):
        ra.Predictions.from_supervision([Detections(**{**given, **fields})])


@pytest.mark.parametrize("name", ["scenes", "predictions"])
def test_arrow_there_and_back_is_the_same_and_copies_no_number(name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is in roadaware[bridges]")
    held: Any = make_scenes() if name == "scenes" else make_predictions()
    there = held.to_arrow()
    assert all(isinstance(table, pyarrow.Table) for table in there.values())
    back = type(held).from_arrow(there)
    assert back == held
    own = held.boxes["x1_px"].to_numpy().__array_interface__["data"][0]
    assert there["boxes"]["x1_px"].chunk(0).buffers()[1].address == own
    other = ra.Predictions if name == "scenes" else ra.Scenes
    with pytest.raises(InputError, match="were written by"):
        other.from_arrow(there)


def test_arrow_tables_of_version_0_8_say_in_its_words_whose_they_are() -> None:
    scenes = make_scenes()
    record = json.dumps({"claimed": False, "meta": asdict(scenes.meta)}).encode()

    class Former:
        schema = SimpleNamespace(metadata={b"roadaware": record})

        def __init__(self, frame: pl.DataFrame) -> None:
            self.__arrow_c_stream__ = frame.__arrow_c_stream__

    held = {name: Former(frame) for name, frame in scenes.filled().items()}
    assert ra.Scenes.from_arrow(held) == scenes
    with pytest.raises(InputError, match="written by Scenes"):
        ra.Predictions.from_arrow(held)


def test_anything_that_streams_arrow_is_taken_without_pyarrow() -> None:
    scenes = make_scenes()
    back = ra.Scenes.from_arrow(scenes.filled(), meta=scenes.meta)
    assert back == scenes
    with pytest.raises(UsageError, match="no table 'box'"):
        ra.Scenes.from_arrow({"box": scenes.boxes})
    with pytest.raises(UsageError, match="no Arrow table"):
        ra.Scenes.from_arrow({"boxes": [1, 2]})
    with pytest.raises(InputError, match="needs the columns"):
        ra.Scenes.from_arrow({"boxes": scenes.boxes.drop("x1_px")})


def test_pandas_has_names_and_tracks() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is in roadaware[bridges]")
    predictions = make_predictions()
    table = predictions.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == ["video", "frame", *CORNERS, "label", "track", "score"]
    back = ra.Predictions.from_pandas(table)
    assert back.boxes.drop("scores").equals(predictions.boxes.drop("scores"))
    assert back.tubes["name"].equals(predictions.tubes["name"])
    scenes = make_scenes()
    facts = {row.pop("video"): row for row in scenes.videos.select(FACTS).to_dicts()}
    again = ra.Scenes.from_pandas(scenes.to_pandas(), classes=CLASSES, facts=facts)
    for name in ("boxes", "labels", "tubes", "videos", "tube_labels"):
        assert getattr(again, name).equals(getattr(scenes, name)), name
    bare = scenes.to_pandas()[["video", "frame", *CORNERS]]
    assert len(ra.Scenes.from_pandas(bare).boxes) == len(scenes.boxes)
    with pytest.raises(InputError, match="'person' is none of car"):
        ra.Scenes.from_pandas(scenes.to_pandas(), classes=["car"])
    with pytest.raises(InputError, match="row 0 has a score and no label"):
        ra.Predictions.from_pandas(table.assign(label=None))
    with pytest.raises(InputError, match="the column score twice"):
        ra.Predictions.from_pandas(pandas.concat([table, table[["score"]]], axis=1))


def test_trackeval_there_and_back(tmp_path: Path) -> None:
    held = make_arrays(untracked=False)
    facts = {
        v: {"width_px": 64, "height_px": 48, "fps": 10.0, "n_frames": FRAMES} for v in ("drive_a", "drive_b")
    }
    scenes = ra.Scenes.from_numpy(**held, facts=facts)
    scenes.to_trackeval(tmp_path / "new" / "gt", benchmark="own", split="test")
    assert (tmp_path / "new/gt/seqmaps/own-test.txt").read_text().split() == ["name", "drive_a", "drive_b"]
    back = ra.Scenes.from_trackeval(tmp_path / "new/gt/own-test")
    assert isinstance(back, ra.Scenes)
    both = [each.boxes.sort("video", "frame", *CORNERS).select("video", "frame") for each in (scenes, back)]
    assert both[0].cast({"video": pl.String}).equals(both[1].cast({"video": pl.String}))
    rows = [
        each.boxes.with_columns(pl.col("video").cast(pl.String)).sort("video", "frame", *CORNERS)
        for each in (scenes, back)
    ]
    assert np.allclose(rows[0].select(CORNERS).to_numpy(), rows[1].select(CORNERS).to_numpy(), atol=1e-9)
    predictions = make_predictions()
    predictions.to_trackeval(tmp_path / "new/found", tracker="mine", benchmark="own", split="test")
    data = tmp_path / "new/found/own-test/mine/data"
    again = ra.Predictions.from_trackeval({v: data / f"{v}.txt" for v in ("drive_a", "drive_b")}, scenes)
    assert len(again.boxes) == predictions.boxes["tube"].count()
    assert len(again.tubes) == len(predictions.tubes)


def test_coco_of_ground_truth_has_outlines_where_they_are_asked_for(tmp_path: Path) -> None:
    scenes = make_scenes()
    plain, outlined = tmp_path / "a.json", tmp_path / "b.json"
    n = scenes.to_coco(plain)
    assert n == scenes.to_coco(outlined, outlines=True) == len(scenes.labels)
    assert "segmentation" not in json.loads(plain.read_text())["annotations"][0]
    row = json.loads(outlined.read_text())["annotations"][0]
    x, y, w, h = row["bbox"]
    assert np.allclose(row["segmentation"], [[x, y, x + w, y, x + w, y + h, x, y + h]])
    assert len(ra.Scenes.from_coco(plain).boxes) == n


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("supervision", lambda: make_scenes().to_supervision()),
        ("supervision", lambda: make_predictions().to_supervision()),
        ("pyarrow", lambda: make_scenes().to_arrow()),
        ("pandas", lambda: make_scenes().to_pandas()),
    ],
)
def test_a_library_that_is_not_there_is_named_with_what_installs_it(
    library: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        UsageError, match=rf"needs {library}.*roadaware\[bridges\]|needs {library}, which does not work"
    ):
        call()


def test_tables_of_readers_become_those_of_the_public_face() -> None:
    scenes = make_scenes()
    plain = scenes.with_tables(meta=scenes.meta)
    from roadaware.scenes import tables

    inner = tables.Scenes(**scenes.tables(), meta=scenes.meta)
    assert inner == scenes == plain
    assert isinstance(ra.Scenes.from_tables(inner), ra.Scenes)
    assert isinstance(scenes.only(["drive_a"]), ra.Scenes)
    with pytest.raises(UsageError, match="not made of"):
        ra.Scenes.from_tables(make_predictions())


# Torch.


def draw(video: int, frame: int) -> np.ndarray:
    """An image whose colours say which it is, coarse enough for a lossy video."""
    picture = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    picture[..., 0], picture[..., 1] = 40 * frame + 20, 100 * video + 50
    return picture


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos, and their frames as images."""
    from PIL import Image

    root = tmp_path_factory.mktemp("films")
    for number, video in enumerate(("drive_a", "drive_b")):
        writer = VideoWriter(root / f"{video}.mp4", *SIZE, 10)
        (root / "stills" / video).mkdir(parents=True)
        for frame in range(FRAMES):
            writer.write(draw(number, frame))
            Image.fromarray(draw(number, frame)).save(root / f"stills/{video}/{frame + 1:05d}.png")
        writer.close()
    return root


def test_images_with_targets_as_detectors_of_torchvision_take_them(films: Path) -> None:
    torch = pytest.importorskip("torch")
    scenes = make_scenes()
    data = scenes.to_torch(films, pattern="stills/{video}/{number:05d}.png")
    assert isinstance(data, torch.utils.data.Dataset)
    assert len(data) == 2 * FRAMES
    assert data.classes == CLASSES
    seen = 0
    for n in range(len(data)):
        image, target = data[n]
        video, frame = data.name_image(target["image_id"])
        assert (video, frame) == (("drive_a", "drive_b")[n // FRAMES], n % FRAMES)
        assert image.dtype == torch.uint8
        assert image.permute(1, 2, 0).numpy().tolist() == draw(n // FRAMES, frame).tolist()
        # From the tables themselves: boxes of this frame with a class.
        due = scenes.boxes.filter((pl.col("video") == video) & (pl.col("frame") == frame)).join(
            scenes.labels.select("box", "label"), on="box", maintain_order="left"
        )
        assert target["boxes"].dtype == torch.float32
        assert target["boxes"].shape == (len(due), 4)
        assert np.allclose(target["boxes"].numpy(), due.select(CORNERS).to_numpy())
        assert target["labels"].tolist() == [label + 1 for label in due["label"]]
        assert target["labels"].dtype == torch.int64
        sides = target["boxes"][:, 2:] - target["boxes"][:, :2]
        assert torch.allclose(target["area"], sides.prod(dim=1))
        assert target["iscrowd"].tolist() == due["ignore"].cast(pl.Int64).to_list()
        seen += len(due)
    assert seen == len(scenes.labels)
    assert data.left_out == {"boxes without a class": len(scenes.boxes) - len(scenes.labels)}
    assert any(len(data[n][1]["boxes"]) == 0 for n in range(len(data)))


def test_clips_of_videos_in_a_loader_with_two_workers(films: Path) -> None:
    torch = pytest.importorskip("torch")
    scenes = make_scenes()
    paths = scenes.videos.with_columns(path=pl.col("video").cast(pl.String) + ".mp4")
    scenes = scenes.with_tables(videos=paths)
    data = scenes.to_torch(films, clips=4, step=1, stride=2, size=(32, 24))
    # Clips begin at 0 and 2 of six frames; one at 4 would be as that at 2.
    assert data.places.tolist() == [[0, 0], [0, 2], [1, 0], [1, 2]]
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, collate_fn=data.collate)
    batches = list(loader)
    assert len(batches) == 2
    for b, (images, targets) in enumerate(batches):
        for k, (image, target) in enumerate(zip(images, targets, strict=True)):
            assert image.shape == (4, 3, 24, 32)
            assert len(target) == 4
            for t in range(4):
                frame = [0, 2][k] + t
                assert data.name_image(target[t]["image_id"]) == (("drive_a", "drive_b")[b], frame)
                assert abs(float(image[t, 0].float().mean()) - (40 * frame + 20)) < 12
                assert abs(float(image[t, 1].float().mean()) - (100 * b + 50)) < 12
    whole = scenes.to_torch(films)
    small = data[0][1][0]["boxes"] * 2
    assert torch.allclose(small, whole[0][1]["boxes"], atol=1e-4)


def test_samples_as_mmaction2_has_them(films: Path) -> None:
    pytest.importorskip("torch")
    scenes = make_scenes()
    several = pl.concat([scenes.labels, scenes.labels.head(3).with_columns((pl.col("label") + 1) % 3)])
    scenes = scenes.with_tables(labels=several.unique(["box", "kind", "label"], maintain_order=True))
    data = scenes.to_torch(films, form="ava", clips=3, pattern="stills/{video}/{number:05d}.png")
    annotated = scenes.boxes.join(scenes.labels.select("box").unique(), on="box", how="semi")
    assert len(data) == len(annotated.select("video", "frame").unique())
    first = data[0]
    assert set(first) >= {
        *(
            "frame_dir",
            "video_id",
            "timestamp",
            "timestamp_start",
            "timestamp_end",
            "img_key",
            "shot_info",
            "fps",
        ),
        *("gt_bboxes", "gt_labels", "entity_ids", "frame_inds", "imgs", "img_shape", "original_shape"),
        *("modality", "start_index", "clip_len", "frame_interval", "num_clips"),
    }
    assert first["img_key"] == f"{first['video_id']},{first['timestamp']:04d}"
    for n in range(len(data)):
        item = data[n]
        due = annotated.filter((pl.col("video") == item["video_id"]) & (pl.col("frame") == item["timestamp"]))
        assert np.allclose(
            item["gt_bboxes"] * np.array([64, 48, 64, 48]), due.select(CORNERS).to_numpy(), atol=1e-4
        )
        assert item["gt_labels"].shape == (len(due), 1 + len(CLASSES))
        for row, box in zip(item["gt_labels"], due["box"], strict=True):
            assert np.flatnonzero(row).tolist() == sorted(
                1 + label for label in scenes.labels.filter(pl.col("box") == box)["label"]
            )
        middle = item["timestamp"]
        assert item["frame_inds"].tolist() == [min(max(middle + k, 0), FRAMES - 1) for k in (-1, 0, 1)]
        assert [int(image[0, 0, 0]) for image in item["imgs"]] == [
            40 * k + 20 for k in item["frame_inds"].tolist()
        ]


def test_a_transform_makes_the_item(films: Path) -> None:
    pytest.importorskip("torch")
    seen = []
    data = make_scenes().to_torch(
        films,
        pattern="stills/{video}/{number:05d}.png",
        transform=lambda image, target: (seen.append(1), target),
    )
    assert data[0][0] is None
    assert seen == [1]


def test_a_film_that_is_not_there_is_named(films: Path) -> None:
    pytest.importorskip("torch")
    scenes = make_scenes()
    paths = scenes.videos.with_columns(path=pl.Series(["drive_a.mp4", "gone.mp4"]))
    scenes = scenes.with_tables(videos=paths)
    with pytest.raises(InputError, match=r"1 of 2 videos cannot be opened; the first, drive_b: .*gone\.mp4"):
        scenes.to_torch(films)
    data = scenes.to_torch(films, skip_missing=True)
    assert len(data) == FRAMES
    assert data.left_out["boxes of videos and frames that cannot be opened"] == len(
        scenes.boxes.filter(pl.col("video") == "drive_b")
    )
    with pytest.raises(InputError, match="none of 2 videos"):
        make_scenes().to_torch(films / "nowhere", pattern="{video}.mp4")
    for wrong in (
        {"clips": 0},
        {"step": True},
        {"stride": 0},
        {"size": (0, 3)},
        {"form": "coco"},
        {"kind": "none"},
    ):
        with pytest.raises(UsageError):
            scenes.to_torch(films, **wrong)


def test_flat_boxes_are_left_out_and_counted(films: Path) -> None:
    pytest.importorskip("torch")
    scenes = ra.Scenes.from_numpy(
        [[1, 1, 1, 9], [2, 2, 9, 9]], [0, 0], "drive_a", classes=["x"], labels=[0, 0]
    )
    data = scenes.to_torch(films, pattern="stills/{video}/{number:05d}.png")
    assert data.left_out == {"boxes without area": 1}
    assert data[0][1]["boxes"].tolist() == [[2, 2, 9, 9]]
    assert read_still(films / "stills/drive_a/00001.png").shape == (48, 64, 3)


def test_fiftyone_there_and_back(tmp_path: Path) -> None:
    scenes, predictions = make_scenes(), make_predictions()
    assert scenes.to_fiftyone(tmp_path / "truth", media=tmp_path) == len(scenes.boxes)
    back = ra.Scenes.from_fiftyone(tmp_path / "truth")
    assert back.frames.equals(scenes.frames)
    assert back.videos.equals(scenes.videos)
    for name in ("labels", "tubes", "tube_labels"):
        assert getattr(back, name).equals(getattr(scenes, name)), name
    assert back.boxes.drop(CORNERS).equals(scenes.boxes.drop(CORNERS))
    assert np.allclose(
        back.boxes.select(CORNERS).to_numpy(), scenes.boxes.select(CORNERS).to_numpy(), atol=1e-9
    )
    assert predictions.to_fiftyone(tmp_path / "both", scenes) == len(predictions.boxes)
    again = ra.Predictions.from_fiftyone(tmp_path / "both")
    assert again.boxes.drop(CORNERS).equals(predictions.boxes.drop(CORNERS))
    assert again.meta == predictions.meta
    sample = json.loads((tmp_path / "truth/samples.json").read_text())["samples"][0]
    assert sample["filepath"] == str(tmp_path / "drive_a.mp4")
    frame = json.loads((tmp_path / "truth" / sample["frames"]).read_text())["frames"]["1"]
    box = frame["ground_truth"]["detections"][0]["bounding_box"]
    x1, y1, x2, y2 = scenes.boxes.select(CORNERS).row(0)
    assert np.allclose(box, [x1 / 64, y1 / 48, (x2 - x1) / 64, (y2 - y1) / 48])


def test_what_fiftyone_exports_is_read(tmp_path: Path) -> None:
    detection = {"_cls": "Detection", "label": "car", "bounding_box": [0.25, 0.5, 0.5, 0.25], "index": 3}
    frame = {"_id": {"$oid": "b"}, "_sample_id": {"$oid": "a"}, "frame_number": 2}
    held = {"_cls": "Detections", "detections": [detection]}
    size = {
        "_cls": "VideoMetadata",
        "frame_width": 64,
        "frame_height": 48,
        "frame_rate": 10.0,
        "total_frame_count": 5,
    }
    sample = {"_id": {"$oid": "a"}, "filepath": "data/drive.mp4", "metadata": size}
    for name, content in (
        ("metadata.json", {"version": "1.9.0", "name": "own", "media_type": "video"}),
        ("samples.json", {"samples": [sample]}),
        ("frames.json", {"frames": [frame | {"ground_truth": held}]}),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    scenes = ra.Scenes.from_fiftyone(tmp_path)
    assert scenes.boxes.select("video", "frame", *CORNERS).row(0) == ("drive", 1, 16, 24, 48, 36)
    assert scenes.tubes["name"].to_list() == ["3"]
    with pytest.raises(InputError, match="no sample or frame has the field 'predictions'"):
        ra.Predictions.from_fiftyone(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("metadata.json", {"media_type": "group"}, "of videos or images"),
        ("samples.json", {"samples": [3]}, "a sample should be an object"),
        ("samples.json", {"samples": [{"frames": "frames/a.json"}]}, "filepath"),
        (
            "samples.json",
            {"samples": [{"filepath": "a.mp4", "frames": "frames/a.json"}]},
            "size is not known",
        ),
        ("frames/a.json", {"frames": {"1": {"ground_truth": {"detections": []}}}}, "frame_number"),
        ("frames/a.json", {"frames": {"1": {"frame_number": 1, "ground_truth": 3}}}, "should be Detections"),
        (
            "frames/a.json",
            {"frames": {"1": {"frame_number": 1, "ground_truth": {"detections": [{}]}}}},
            "bounding_box",
        ),
        ("frames/a.json", [], "should be an object"),
    ],
)
def test_a_damaged_fiftyone_dataset_is_refused(tmp_path: Path, name: str, content: Any, says: str) -> None:
    scenes = ra.Scenes.from_numpy(
        [[1, 1, 5, 9]], [0], "a", classes=["x"], labels=[0], facts={"a": {"width_px": 64, "height_px": 48}}
    )
    scenes.to_fiftyone(tmp_path / "set")
    (tmp_path / "set" / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=says):
        ra.Scenes.from_fiftyone(tmp_path / "set")


def test_a_folder_for_hugging_face_holds_every_box(tmp_path: Path) -> None:
    from roadaware.io.parquet import read_parquet

    scenes = make_scenes()
    split = scenes.videos.with_columns(splits=pl.Series([["default/train"], ["default/val"]]))
    scenes = scenes.with_tables(videos=split)
    assert scenes.to_huggingface(tmp_path / "set", name="own") == 2 * FRAMES
    tables = {n: read_parquet(tmp_path / f"set/data/{n}.parquet") for n in ("train", "validation")}
    rows = pl.concat(tables.values())
    boxes = rows.select("video", "frame", pl.col("objects").struct.unnest()).explode(
        "bbox", "category", "track", "ignore"
    )
    boxes = boxes.drop_nulls("bbox")
    assert len(boxes) == len(scenes.boxes)
    sides = scenes.boxes.select(
        "x1_px", "y1_px", pl.col("x2_px") - pl.col("x1_px"), pl.col("y2_px") - pl.col("y1_px")
    )
    assert np.allclose(np.array(boxes["bbox"].to_list()), sides.to_numpy())
    held = scenes.boxes.join(
        scenes.labels.select("box", "label"), on="box", how="left", maintain_order="left"
    )
    assert boxes["category"].to_list() == held["label"].fill_null(-1).to_list()
    card = (tmp_path / "set/README.md").read_text()
    assert card.startswith("---\n")
    assert '- 1: "car & <van>"' in card
    croissant = json.loads((tmp_path / "set/croissant.json").read_text())
    import hashlib

    for each in croissant["distribution"]:
        assert (
            hashlib.sha256((tmp_path / "set" / each["contentUrl"]).read_bytes()).hexdigest() == each["sha256"]
        )
    with pytest.raises(UsageError, match="no empty folder"):
        scenes.to_huggingface(tmp_path / "set")
    with pytest.raises(InputError, match="no frame to write"):
        ra.Scenes().to_huggingface(tmp_path / "other")


def test_a_recording_of_rerun(tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="rerun-sdk is in roadaware[rerun]")
    make_predictions().to_rerun(tmp_path / "both.rrd", make_scenes())
    assert (tmp_path / "both.rrd").stat().st_size > 1000
    with pytest.raises(UsageError, match=r"ends with \.rrd"):
        make_scenes().to_rerun(tmp_path / "x.json")


def test_supervision_of_a_detector_with_names_by_place_and_lists_of_frames(supervision: Any) -> None:
    one = supervision.Detections(
        xyxy=np.array([[0.0, 0, 9, 9]]),
        confidence=np.array([0.5]),
        class_id=np.array([1]),
        tracker_id=None,
        data={},
    )
    found = ra.Predictions.from_supervision({"a": [one, one], "b": [one]}, classes={0: "Ped", 1: "Car"})
    assert found.boxes.select(pl.col("video").cast(pl.String), "frame").rows() == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]
    assert found.meta.vocabularies["agent"] == ("Ped", "Car")
