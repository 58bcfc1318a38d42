"""Folders of detections: read as they were written, written as they are read, bad files and boxes refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import prediction_files as files
import pytest

from roadaware.errors import DatasetNotFoundError, DiskError, FindingsError, InputError, UsageError
from roadaware.formats.road_detections import read_detections, write_detections
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.tables import Predictions

SCENES = files.scenes()
ONE, TWO = files.VIDEOS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return files.detections(tmp_path / "detections-30-08-50")


def adds_up(predictions: Predictions) -> None:
    """Every file and box is taken or rejected."""
    refused = dict(predictions.rejected.group_by("table").len().iter_rows())
    for table in ("boxes", "frames"):
        taken = len(getattr(predictions, table))
        assert taken + refused.get(table, 0) == predictions.meta.rows_read[table], table
    assert set(refused) <= set(predictions.meta.rows_read)


def refusals(predictions: Predictions) -> list[tuple[str, str, str]]:
    return predictions.rejected.select("table", "file", "reason").rows()


def test_boxes_come_in_the_order_of_videos_frames_and_rows(folder: Path) -> None:
    predictions = read_detections(folder, SCENES)
    expected = [
        (video, frame, row)
        for place, video in enumerate(files.VIDEOS)
        for frame in range(files.FRAMES)
        for row in files.main((10 * place + frame) % 4, 10 * place + frame)
    ]
    assert predictions.boxes["box"].to_list() == list(range(len(expected)))
    assert predictions.boxes.select("video", "frame").rows() == [each[:2] for each in expected]
    numbers = np.array([row for *_, row in expected])
    corners = predictions.boxes.select("x1_px", "y1_px", "x2_px", "y2_px", "score").to_numpy()
    assert (corners == numbers[:, :5]).all()
    assert (convert_to_matrix(predictions.boxes["scores"], files.CLASSES) == numbers[:, 5:]).all()
    assert predictions.rejected.is_empty()
    assert "tube" not in predictions.boxes.columns


def test_frames_have_their_scores_whether_boxes_were_found_or_not(folder: Path) -> None:
    predictions = read_detections(folder, SCENES)
    assert predictions.frames.select("video", "frame").rows() == [
        (v, f) for v in files.VIDEOS for f in range(6)
    ]
    found = convert_to_matrix(predictions.frames["scores"], files.AV)
    assert (found[7] == files.ego(11)).all()


def test_scores_are_named_and_sizes_noted(folder: Path) -> None:
    predictions = read_detections(folder, SCENES)
    assert list(get_score_layout(predictions.meta, "boxes").kinds) == [
        "agent",
        "action",
        "location",
        "duplex",
        "event",
    ]
    assert list(get_score_layout(predictions.meta, "frames").kinds) == ["av_action"]
    assert predictions.meta.vocabularies == files.VOCABULARIES
    assert predictions.meta.notes["children"] == {"duplex": [[0, 2]]}
    assert predictions.videos.rows() == [(ONE, 682, 512), (TWO, 682, 512)]
    assert read_detections(folder, SCENES, size=(320, 240)).videos["width_px"].to_list() == [320, 320]


def test_names_may_be_given_in_place_of_scenes(folder: Path) -> None:
    named = {"agent": tuple("abcdefghij"), "av_action": ("x", "y")}
    predictions = read_detections(folder, vocabularies=named)
    assert list(get_score_layout(predictions.meta, "boxes").kinds) == ["agent"]
    assert predictions.boxes.drop("scores").equals(read_detections(folder, SCENES).boxes.drop("scores"))


@pytest.mark.parametrize(
    ("classes", "av", "kinds"),
    [(148, 7, ["agent", "action", "location", "duplex", "event"]), (24, 25, ["action"])],
)
def test_published_widths_are_known(tmp_path: Path, classes: int, av: int, kinds: list[str]) -> None:
    files.put(tmp_path, "v/00001.pkl", {"ego": files.ego(size=av), "main": files.main(2, classes=classes)})
    predictions = read_detections(tmp_path)
    assert list(get_score_layout(predictions.meta, "boxes").kinds) == kinds
    assert get_score_layout(predictions.meta, "boxes").width == classes
    assert get_score_layout(predictions.meta, "boxes").kinds["action"][3] == "action 3"
    empty = {"ego": files.ego(size=av), "main": np.zeros((0, 200))}
    files.put(tmp_path, "v/00001.pkl", empty)
    assert get_score_layout(read_detections(tmp_path).meta, "boxes").width == classes


def test_other_widths_need_names(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"10 class scores per box and 2 scores per frame(.|\n)*vocabularies"
    ):
        read_detections(folder)


def test_the_folder_above_will_do(folder: Path) -> None:
    assert read_detections(folder.parent, SCENES) == read_detections(folder, SCENES)
    files.detections(folder.parent / "detections-30-08-80")
    with pytest.raises(DatasetNotFoundError, match="detections-30-08-50, detections-30-08-80"):
        read_detections(folder.parent, SCENES)


def test_only_the_wanted_videos_are_opened(folder: Path) -> None:
    files.put(folder, f"{ONE}/00001.pkl", b"damaged")
    predictions = read_detections(folder, SCENES, videos=[TWO])
    assert predictions.videos["video"].to_list() == [TWO]
    assert predictions.rejected.is_empty()


def test_frames_may_be_counted_from_0(tmp_path: Path) -> None:
    files.put(tmp_path, "two/00000.pkl", {"ego": files.ego(), "main": files.main(1)})
    assert read_detections(tmp_path, SCENES, first_frame=0).boxes["frame"].to_list() == [0]
    with pytest.raises(DatasetNotFoundError, match="before the first frame, which is 00001"):
        read_detections(tmp_path, SCENES)


def test_progress_ends_at_the_end(folder: Path) -> None:
    told: list[tuple[int, int, str]] = []
    read_detections(folder, SCENES, progress=lambda *each: told.append(each))
    assert told == [(12, 12, "files")]


def test_double_precision_stays(tmp_path: Path) -> None:
    main = files.main(2).astype(np.float64)
    main[:, 4] = (1 - 1e-12, 1 - 2e-12)
    files.put(tmp_path, "two/00001.pkl", {"ego": files.ego().astype(np.float64), "main": main})
    predictions = read_detections(tmp_path, SCENES)
    assert predictions.boxes["score"].to_list() == main[:, 4].tolist()
    assert predictions.frames["scores"].dtype == pl.Array(pl.Float64, 2)


def test_files_of_numpy_1_are_read(tmp_path: Path) -> None:
    data = pickle.dumps({"ego": files.ego(), "main": files.main(3)}, protocol=3)
    files.put(tmp_path, "two/00001.pkl", data.replace(b"numpy._core", b"numpy.core"))
    assert len(read_detections(tmp_path, SCENES).boxes) == 3


def _with(**changes: Any) -> dict[str, Any]:
    return {"ego": files.ego(), "main": files.main(2), **changes}


BAD_FILES = {
    "damaged": (pickle.dumps(_with())[:-40], "not a whole pickle"),
    "empty": (b"", "the file is empty"),
    "code": (b"cos\nsystem\n(S'true'\ntR.", r"os\.system"),
    "a_list": ([1, 2], "expected a dict with 'main' and 'ego', found list"),
    "other_keys": ({"boxes": files.main(1)}, "found a dict of 'boxes'"),
    "main_as_list": (_with(main=[[1.0] * 15]), "'main' should be a 2-dimensional array of floats, not list"),
    "main_of_integers": (_with(main=np.ones((2, 15), np.int64)), "not int64"),
    "main_flat": (_with(main=np.ones(15, np.float32)), r"not float32 \(15,\)"),
    "main_of_objects": (_with(main=np.array([[None] * 15])), "array of objects"),
    "ego_in_two_dimensions": (_with(ego=np.ones((1, 2), np.float32)), "'ego' should be a 1-dimensional"),
    "another_width": (_with(main=files.main(2, classes=9)), "'main' has 14 columns; expected 15"),
    "another_width_of_frames": (_with(ego=files.ego(size=3)), "'ego' has 3 scores; expected 2"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_among_many_is_refused_and_counted(folder: Path, name: str) -> None:
    value, reason = BAD_FILES[name]
    files.put(folder, f"{TWO}/00003.pkl", value)
    predictions = read_detections(folder, SCENES)
    assert predictions.rejected["table"].to_list() == ["files"]
    assert predictions.rejected["file"].to_list() == [f"{TWO}/00003.pkl"]
    assert predictions.rejected["reason"].str.contains(reason).all(), predictions.rejected["reason"][0]
    assert (TWO, 2) not in predictions.frames.select("video", "frame").rows()
    assert len(predictions.frames) == 11
    assert predictions.meta.rows_read["files"] == 12
    adds_up(predictions)
    with pytest.raises(FindingsError, match=rf"1 rejected rows or files(.|\n)*{TWO}/00003.pkl"):
        read_detections(folder, SCENES, strict=True)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_sole_file_is_an_error(tmp_path: Path, name: str) -> None:
    value, reason = BAD_FILES[name]
    files.put(tmp_path, f"{TWO}/00001.pkl", value)
    with pytest.raises(InputError, match=reason) as caught:
        read_detections(tmp_path, SCENES)
    assert "00001.pkl" in str(caught.value)


BAD_NAMES = {
    "two/00007.pkl": "frame 6, counted from 0, lies behind the end of the video, which has 6",
    "three/00001.pkl": "a video that the scenes do not have",
    "two/1.pkl": "no frame number",
    "two/000002.pkl": "no frame number",
    "two/00002.pickle": "no frame number",
    "two/frame1.pkl": "no frame number",
    "two/00000.pkl": "before the first frame",
    "00001.pkl": "lies in no video's folder",
    "two/deep/00001.pkl": "a video that the scenes do not have",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_files_of_unknown_videos_and_frames_are_refused_unopened(folder: Path, name: str) -> None:
    clean = read_detections(folder, SCENES)
    files.put(folder, name, b"not even a pickle")
    predictions = read_detections(folder, SCENES)
    assert refusals(predictions) == [("files", name, predictions.rejected["reason"][0])]
    assert BAD_NAMES[name] in predictions.rejected["reason"][0]
    assert predictions.boxes.equals(clean.boxes)
    assert predictions.meta.rows_read["files"] == 13
    adds_up(predictions)


def test_hidden_files_and_other_folders_are_passed_by(folder: Path) -> None:
    clean = read_detections(folder, SCENES)
    files.put(folder, ".cache/00001.pkl", b"x")
    files.put(folder, "two/.DS_Store", b"x")
    (folder / "empty").mkdir()
    assert read_detections(folder, SCENES) == clean


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "link to a folder"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    path = folder / TWO / "00003.pkl"
    moved = path.rename(tmp_path / "moved.pkl")
    if kind == "link":
        path.symlink_to(moved)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder / "drive")
    predictions = read_detections(folder, SCENES)
    assert len(predictions.frames) == 11
    assert predictions.rejected["file"].to_list() == ([] if kind == "folder" else [f"{TWO}/00003.pkl"])


def _row(column: int, value: float) -> np.ndarray:
    main = files.main(3, 5)
    main[1, column] = value
    return main


@pytest.mark.parametrize(
    ("main", "reason"),
    [
        (_row(0, 1e4), "upside down"),
        (_row(3, -1e4), "upside down"),
        (_row(2, np.nan), "not a finite number"),
        (_row(1, -np.inf), "not a finite number"),
        (_row(4, np.nan), "no number in"),
        (_row(4, 1.5), "no number in"),
        (_row(4, -0.1), "no number in"),
        (_row(9, np.nan), "no number in"),
        (_row(14, np.inf), "no number in"),
        (_row(14, 1.0000001), "no number in"),
    ],
)
def test_a_bad_box_costs_itself(folder: Path, main: np.ndarray, reason: str) -> None:
    files.put(folder, f"{TWO}/00003.pkl", {"ego": files.ego(), "main": main})
    predictions = read_detections(folder, SCENES)
    (refused,) = predictions.rejected.rows(named=True)
    assert (refused["table"], refused["file"]) == ("boxes", f"{TWO}/00003.pkl")
    assert refused["item"] == "frame 2, row 1 of 'main'"
    assert reason in refused["reason"]
    kept = predictions.boxes.filter(pl.col("video") == TWO, pl.col("frame") == 2)
    assert kept["score"].to_list() == main[[0, 2], 4].tolist()
    adds_up(predictions)


@pytest.mark.parametrize("value", [np.nan, -0.5, 1.5])
def test_a_bad_score_of_a_frame_costs_the_frame_not_its_boxes(folder: Path, value: float) -> None:
    files.put(folder, f"{TWO}/00003.pkl", {"ego": np.array([0.5, value], np.float32), "main": files.main(3)})
    predictions = read_detections(folder, SCENES)
    assert predictions.rejected.select("table", "file", "item").rows() == [
        ("frames", f"{TWO}/00003.pkl", "frame 2")
    ]
    assert len(predictions.boxes.filter(pl.col("video") == TWO, pl.col("frame") == 2)) == 3
    adds_up(predictions)


def test_a_set_without_scores_of_frames_has_none(tmp_path: Path) -> None:
    files.put(tmp_path, "two/00001.pkl", {"main": files.main(2)})
    predictions = read_detections(tmp_path, SCENES)
    assert predictions.frames.columns == ["video", "frame"]
    assert not get_score_layout(predictions.meta, "frames").kinds


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="there is nothing at"):
        read_detections(tmp_path / "absent", SCENES)
    with pytest.raises(DatasetNotFoundError, match=r"expected <video>/<frame, five digits>\.pkl"):
        read_detections(tmp_path, SCENES)
    files.put(tmp_path, "file", b"N.")
    with pytest.raises(InputError, match="found a file"):
        read_detections(tmp_path / "file", SCENES)
    (tmp_path / "file").unlink()
    files.put(tmp_path, "three/00001.pkl", {"main": files.main(1)})
    with pytest.raises(InputError, match="a video that the scenes do not have"):
        read_detections(tmp_path, SCENES)


def test_what_is_written_is_read_the_same(folder: Path, tmp_path: Path) -> None:
    predictions = read_detections(folder, SCENES)
    write_detections(predictions, tmp_path / "written")
    assert read_detections(tmp_path / "written", SCENES) == predictions
    names = sorted(str(p.relative_to(tmp_path / "written")) for p in (tmp_path / "written").rglob("*.pkl"))
    assert names == [f"{video}/{frame + 1:05d}.pkl" for video in files.VIDEOS for frame in range(6)]
    held = pickle.loads((tmp_path / "written" / TWO / "00002.pkl").read_bytes())  # noqa: S301 - just written
    assert (held["main"] == files.main(3, 11)).all()
    assert held["main"].dtype == np.float32
    assert pickle.loads((tmp_path / "written" / ONE / "00001.pkl").read_bytes())["main"].shape == (0, 200)  # noqa: S301


def test_writing_twice_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    predictions = read_detections(folder, SCENES)
    for name in ("a", "b"):
        write_detections(predictions, tmp_path / name)
    for path in (tmp_path / "a").rglob("*.pkl"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_writing_refuses_what_would_be_overwritten(folder: Path, tmp_path: Path) -> None:
    predictions = read_detections(folder, SCENES)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="no empty folder"):
        write_detections(predictions, folder)
    with pytest.raises(DiskError):
        write_detections(predictions, tmp_path / "absent" / "inner")
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "empty").mkdir()
    write_detections(predictions, tmp_path / "empty")
    assert read_detections(tmp_path / "empty", SCENES) == predictions


def test_writing_that_fails_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions = read_detections(folder, SCENES)
    plain, count = Path.write_bytes, [0]

    def failing(path: Path, data: bytes) -> int:
        count[0] += 1
        if count[0] == 5:
            raise OSError(28, "No space left on device")
        return plain(path, data)

    monkeypatch.setattr(Path, "write_bytes", failing)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DiskError, match="No space left"):
        write_detections(predictions, tmp_path / "written")
    assert sorted(tmp_path.iterdir()) == before


def test_predictions_without_scores_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    predictions = read_detections(folder, SCENES)
    bare = predictions.with_tables(boxes=predictions.boxes.drop("scores"))
    with pytest.raises(InputError, match="boxes without scores"):
        write_detections(bare, tmp_path / "written")
    some = predictions.with_tables(frames=predictions.frames.head(3))
    with pytest.raises(InputError, match="frames with boxes have no scores of their own"):
        write_detections(some, tmp_path / "written")
    outside = predictions.with_tables(
        videos=predictions.videos.clear(),
        boxes=predictions.boxes.with_columns(video=pl.lit("../../up")),
        frames=predictions.frames.clear(),
    )
    with pytest.raises(InputError, match="no name for a folder"):
        write_detections(outside, tmp_path / "written")
    assert not (tmp_path / "written").exists()
