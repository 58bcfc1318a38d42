"""MOT text becomes tables and back, and TrackEval reads the folders that are written."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError, RoadawareError, UsageError
from roadaware.formats.mot import (
    collect_tube_boxes,
    format_tube_lines,
    read_sequences,
    read_tracks,
    write_sequences,
    write_tracks,
)
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.scenes.concatenation import rescale_predictions
from roadaware.scenes.tables import Meta, Predictions, Scenes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
import mutants

CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")


def text_file(folder, text, name="v.txt"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


INFO = "[Sequence]\nname=v\nseqLength=10\nimWidth=640\nimHeight=480\nframeRate=12.5\n"


def sequence(root, name="v", gt="", info=INFO):
    text_file(root, gt, f"{name}/gt/gt.txt")
    text_file(root, info, f"{name}/seqinfo.ini")
    return root


# In


def test_tracks_by_hand(tmp_path) -> None:
    text = "2,4,11,21,5,6,0.5,-1,-1,-1\n1,4,1,1,5,6,0.75\r\n\n1,-1,3,3,1,1,1\n2, 9 ,0.5,1e1,0,0,0\n"
    predictions = read_tracks({"v": text_file(tmp_path, text)})
    assert predictions.boxes.select("box", "frame", "tube", *CORNERS, "score").rows() == [
        (0, 0, 0, 0, 0, 5, 6, 0.75),
        (1, 0, None, 2, 2, 3, 3, 1.0),
        (2, 1, 0, 10, 20, 15, 26, 0.5),
        (3, 1, 1, -0.5, 9, -0.5, 9, 0.0),
    ]
    assert predictions.tubes.select("tube", "video", "name", "start_frame", "end_frame", "score").rows() == [
        (0, "v", "4", 0, 2, 0.625),
        (1, "v", "9", 1, 2, 0.0),
    ]
    from_0 = read_tracks({"v": text_file(tmp_path, text)}, first_pixel=0)
    assert from_0.boxes["x1_px"].to_list() == [1, 3, 11, 0.5]


def test_tracks_of_several_videos_have_numbers_of_their_own(tmp_path) -> None:
    one, two = text_file(tmp_path, "1,1,1,1,2,2,1\n", "a"), text_file(tmp_path, "1,1,1,1,2,2,1\n", "b")
    predictions = read_tracks({"v": one, "w": two})
    assert predictions.tubes.select("tube", "video", "name").rows() == [(0, "v", "1"), (1, "w", "1")]
    assert predictions.boxes.select("video", "tube").rows() == [("v", 0), ("w", 1)]


BAD = [
    ("1,1,1,1,2,2", "6 fields; expected at least 7"),
    ("x,1,1,1,2,2,1", "frame is no whole number"),
    ("1.5,1,1,1,2,2,1", "frame is no whole number"),
    ("1,one,1,1,2,2,1", "id is no whole number"),
    ("0,1,1,1,2,2,1", "frames count from 1"),
    ("11,1,1,1,2,2,1", "lies behind the end of the video"),
    ("1,1,nan,1,2,2,1", "left is no finite number"),
    ("1,1,1,inf,2,2,1", "top is no finite number"),
    ("1,1,1,1,1e400,2,1", "width is no finite number"),
    ("1,1,1,1,-2,2,1", "a width of -2"),
    ("1,1,1,1,2,-2,1", "a height of -2"),
    ("1,1,1,1,2,2,1.0000001", "is no score in [0, 1]"),
    ("1,1,1,1,2,2,-1", "a conf of -1 is no score"),
    ("1,-2,1,1,2,2,1", "id -2; tracks count from 1"),
    ("2,1,1,1,2,2,1", "track 1 has a box in frame 2 already"),
    ("1,1,1,1,2,2,\x00", "conf is no finite number"),
    ("1;1;1;1;2;2;1", "1 fields"),
    (f"{'9' * 5000},1,1,1,2,2,1", "frame is no whole number"),
]


def test_bad_lines_are_named_and_counted(tmp_path) -> None:
    scenes = Scenes(videos=pl.DataFrame({"video": ["v"], "n_frames": [10]}))
    path = text_file(tmp_path, "\n".join(["2,1,1,1,2,2,1", *(line for line, _ in BAD)]))
    predictions = read_tracks({"v": path}, scenes)
    assert len(predictions.boxes) == 1
    assert predictions.meta.rows_read == {"boxes": len(BAD) + 1}
    for number, (row, (_, reason)) in enumerate(
        zip(predictions.rejected.rows(named=True), BAD, strict=True), 2
    ):
        assert row["line"] == number
        assert row["file"] == "v.txt"
        assert reason in row["reason"]
    with pytest.raises(FindingsError, match="18 rejected rows"):
        read_tracks({"v": path}, scenes, strict=True)
    unknown = read_tracks({"w": path}, scenes)
    assert unknown.boxes.is_empty()
    assert "a video that the scenes do not have" in unknown.rejected["reason"][0]


def test_a_conf_that_is_not_known_has_the_score_that_is_given(tmp_path) -> None:
    path = text_file(tmp_path, "1,1,1,1,2,2,-1\n")
    assert read_tracks({"v": path}, unknown_score=1.0).boxes["score"].to_list() == [1.0]


def test_files_that_are_none_are_refused(tmp_path) -> None:
    with pytest.raises(DatasetNotFoundError, match="found no file"):
        read_tracks({"v": tmp_path / "absent.txt"})
    with pytest.raises(InputError, match="byte 0 that is not UTF-8"):
        read_tracks({"v": text_file(tmp_path, b"\xff\xfe1,2")})
    with pytest.raises(InputError, match="folder, pipe or device"):
        read_tracks({"v": tmp_path})
    with pytest.raises(UsageError, match="at least one file"):
        read_tracks({})
    assert read_tracks({"v": text_file(tmp_path, "")}).boxes.is_empty()


def test_sequences_by_hand(tmp_path) -> None:
    sequence(tmp_path, gt="1,1,1,1,2,2,1,1,0.5\n2,1,1,1,2,2,0,1,1\n2,2,5,5,2,2,1,7,1\n")
    scenes = read_sequences(tmp_path)
    assert scenes.videos.select("video", "n_frames", "width_px", "height_px", "fps").rows() == [
        ("v", 10, 640, 480, 12.5)
    ]
    assert len(scenes.frames) == 10
    assert scenes.frames["annotated"].all()
    assert scenes.boxes.select("frame", "tube", "ignore").rows() == [
        (0, 0, False),
        (1, 0, True),
        (1, 1, False),
    ]
    named = read_sequences(tmp_path, classes={1: "Ped", 3: "Car"})
    assert named.meta.vocabularies["agent"] == ("Ped", "Car")
    assert named.labels.select("box", "label").rows() == [(0, 0), (1, 0)]
    assert named.boxes["ignore"].to_list() == [False, True, True], "class 7 is none of the classes"


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("", "seqLength is missing"),
        ("[Sequence]\nseqLength=ten\n", "seqlength is 'ten', no whole number"),
        ("[Sequence]\nseqLength=-3\n", "no whole number"),
        ("[Sequence]\nseqLength=999999999\n", "seqLength is 999999999, more than 1,000,000"),
        ("seqLength=3\n", "expected an ini file"),
        ("[Sequence]\nseqLength=3\nseqLength=4\n", "expected an ini file"),
    ],
)
def test_sequences_without_a_length_are_refused(tmp_path, info, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_sequences(sequence(tmp_path, info=info))
    assert "seqinfo.ini" in str(caught.value)


def test_folders_without_sequences_are_refused(tmp_path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"gt/gt\.txt"):
        read_sequences(tmp_path)
    with pytest.raises(DatasetNotFoundError, match="expected a folder"):
        read_sequences(tmp_path / "absent")
    with pytest.raises(InputError, match="leads out"):
        read_sequences(tmp_path, names=["../elsewhere"])
    sequence(tmp_path, gt="0,1,1,1,2,2,1,1,1\n")
    assert len(read_sequences(tmp_path).rejected) == 1
    with pytest.raises(FindingsError, match="1 lines were rejected: frame 0"):
        read_sequences(tmp_path, strict=True)


@pytest.mark.slow
@tried(150)
@given(st.lists(st.text(alphabet="0123456789.,-+eE nainf\t;", max_size=30), max_size=6))
def test_any_text_is_taken_or_refused_line_by_line(tmp_path_factory, lines) -> None:
    path = text_file(tmp_path_factory.mktemp("mot"), "\n".join(lines))
    predictions = read_tracks({"v": path})
    assert len(predictions.boxes) + len(predictions.rejected) == sum(bool(line.strip()) for line in lines)


CHANGES = st.lists(
    st.tuples(st.sampled_from(sorted(mutants.KINDS)), st.floats(0, 0.999), st.floats(0, 0.999)),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@tried(150)
@given(CHANGES, CHANGES)
def test_damaged_files_give_whole_tables_or_an_error_of_ours(tmp_path_factory, of_text, of_info) -> None:
    root = tmp_path_factory.mktemp("mot")
    text = b"1,1,1,1,5,6,0.75,1,1\n2,1,11,21,5,6,0.5,1,1\n2,2,3,4,5,6,1,1,1\n"
    sequence(root, gt="")
    text_file(root, mutants.mutated(text, of_text), "v/gt/gt.txt")
    for read in (lambda: read_tracks({"v": root / "v/gt/gt.txt"}), lambda: read_sequences(root)):
        with contextlib.suppress(RoadawareError):
            found = read()
            assert found.meta.rows_read["boxes"] == len(found.boxes) + len(found.rejected)
    text_file(root, mutants.mutated(INFO.encode(), of_info), "v/seqinfo.ini")
    with contextlib.suppress(RoadawareError):
        assert len(read_sequences(root).videos) == 1


# Out


@pytest.fixture(scope="module")
def road():
    world = generate_road_scenes(videos=2, frames=60, seed=6)
    return world, link(simulate_detections(world, seed=6), LinkerConfig.default())


def test_truth_goes_out_and_comes_back(road, tmp_path) -> None:
    world, _ = road
    write_sequences(world, tmp_path / "gt", benchmark="ROAD", split="val")
    _, *names = (tmp_path / "gt" / "seqmaps" / "ROAD-val.txt").read_text().split()
    assert names == world.videos["video"].to_list()
    back = read_sequences(tmp_path / "gt" / "ROAD-val", names=names, strict=True)
    assert back.videos.select("video", "n_frames", "width_px", "height_px", "fps").equals(
        world.videos.select("video", "n_frames", "width_px", "height_px", "fps")
    )
    mine, theirs = (t.boxes.sort("video", "frame", "x1_px", "y1_px") for t in (world, back))
    assert len(mine) == len(theirs)
    assert np.allclose(mine.select(CORNERS).to_numpy(), theirs.select(CORNERS).to_numpy(), atol=1e-3)
    pairs = pl.DataFrame({"mine": mine["tube"], "theirs": theirs["tube"]}).unique()
    assert len(pairs) == mine["tube"].n_unique() == theirs["tube"].n_unique(), "tracks stay tracks"


def test_predictions_go_out_and_come_back(road, tmp_path) -> None:
    world, predictions = road
    write_tracks(predictions, tmp_path / "out", tracker="ours", benchmark="ROAD", split="val")
    folder = tmp_path / "out" / "ROAD-val" / "ours" / "data"
    files = {name: folder / f"{name}.txt" for name in world.videos["video"]}
    back = read_tracks(files, world, strict=True)
    owned = predictions.boxes.filter(pl.col("tube").is_not_null())
    mine, theirs = (t.sort("video", "frame", "x1_px", "y1_px") for t in (owned, back.boxes))
    assert np.allclose(mine.select(CORNERS).to_numpy(), theirs.select(CORNERS).to_numpy(), atol=1e-3)
    assert theirs["score"].to_list() == pytest.approx(mine["score"].to_list(), abs=1e-6)
    pairs = pl.DataFrame({"mine": mine["tube"], "theirs": theirs["tube"]}).unique()
    assert len(pairs) == mine["tube"].n_unique() == theirs["tube"].n_unique()


def test_tubes_of_a_label_are_their_parents_boxes_within_their_spans(road) -> None:
    world, _ = road
    found = collect_tube_boxes(world, ("agent", "Ped"))
    ped = world.meta.vocabularies["agent"].index("Ped")
    labelled = world.labels.filter((pl.col("kind") == "agent") & (pl.col("label") == ped))
    assert len(found) == len(world.boxes.join(labelled, on="box"))
    assert found.group_by("video", "frame", "track").len()["len"].max() == 1
    with pytest.raises(UsageError, match="no label 'Cat' of kind 'agent'"):
        collect_tube_boxes(world, ("agent", "Cat"))


def test_boxes_of_squeezed_tubes_stand_in_the_frames_they_are_predicted_for() -> None:
    frames = [3, 4, 7, 9]
    boxes = pl.DataFrame({"box": [0, 1, 2, 3], "video": "v", "frame": frames, "tube": 0, "score": 0.5})
    boxes = boxes.with_columns(**{side: pl.col("frame").cast(float) for side in CORNERS})
    tubes = pl.DataFrame(
        {
            "tube": [0, 1],
            "video": "v",
            "start_frame": [3, 4],
            "end_frame": [7, 7],
            "parent": [None, 0],
            "kind": [None, "agent"],
            "spans": [None, [[4, 10]]],
            "consecutive": True,
        }
    )
    labels = pl.DataFrame({"tube": [1], "kind": ["agent"], "label": [0]})
    predictions = Predictions(boxes=boxes, tubes=tubes, tube_labels=labels)
    assert collect_tube_boxes(predictions).select("frame", "x1_px").rows() == [(3, 3), (4, 4), (5, 7), (6, 9)]
    named = predictions.with_tables(meta=Meta(vocabularies={"agent": ("Ped",)}))
    assert collect_tube_boxes(named, ("agent", "Ped")).select("frame", "x1_px").rows() == [
        (4, 4),
        (5, 7),
        (6, 9),
    ]
    assert format_tube_lines(predictions)["v"].splitlines()[2] == "6,1,8.0,8.0,0.0,0.0,0.5,1,1"


def test_what_cannot_be_written_is_refused(road, tmp_path) -> None:
    world, predictions = road
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(UsageError, match="no empty folder"):
        write_sequences(world, tmp_path / "full")
    with pytest.raises(UsageError, match="how many frames"):
        write_sequences(world.with_tables(videos=world.videos.drop("n_frames")), tmp_path / "a")
    with pytest.raises(UsageError, match="no name for a file"):
        write_tracks(predictions, tmp_path / "b", tracker="../x")
    assert not (tmp_path / "a").exists()


def test_trackeval_reads_the_folders(road, tmp_path) -> None:
    trackeval = pytest.importorskip("trackeval")
    world, predictions = road
    write_sequences(world, tmp_path / "gt")
    write_tracks(rescale_predictions(predictions, world), tmp_path / "predictions", tracker="predictions")
    right = Predictions(boxes=world.boxes, tubes=world.tubes.filter(pl.col("parent").is_null()))
    write_tracks(right, tmp_path / "truth", tracker="truth")
    for name in ("predictions", "truth"):
        settings_ = {
            "GT_FOLDER": str(tmp_path / "gt"),
            "TRACKERS_FOLDER": str(tmp_path / name),
            "TRACKERS_TO_EVAL": [name],
            "BENCHMARK": "roadaware",
            "SPLIT_TO_EVAL": "all",
            "DO_PREPROC": False,
            "PRINT_CONFIG": False,
        }
        dataset = trackeval.datasets.MotChallenge2DBox(settings_)
        clear = trackeval.metrics.CLEAR({"PRINT_CONFIG": False})
        hota = trackeval.metrics.HOTA()
        for video in world.videos["video"]:
            data = dataset.get_preprocessed_seq_data(dataset.get_raw_seq_data(name, video), "pedestrian")
            assert data["num_gt_dets"] == len(world.boxes.filter(pl.col("video") == video))
            assert data["num_timesteps"] == 60
            score = clear.eval_sequence(data)
            if name == "truth":
                assert score["MOTA"] == 1.0
                assert hota.eval_sequence(data)["HOTA"].min() == 1.0
            else:
                assert 0 < score["CLR_TP"] < data["num_gt_dets"]
