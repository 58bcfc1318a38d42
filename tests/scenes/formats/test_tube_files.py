"""Tube files: read as they were written, written as they are read, bad tubes and boxes refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import prediction_files as files
import pytest

from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.formats.road_tubes import read_tubes, write_tubes
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions

SCENES = files.scenes()
ONE, TWO = files.VIDEOS


def written(folder: Path, value: Any) -> Path:
    return files.put(folder, "tubes.pkl", value)


def changed(folder: Path, **values: Any) -> Path:
    """The tubes, the first of agents changed."""
    held = files.tubes()
    held["agent"][ONE][0].update(values)
    return written(folder, held)


def adds_up(predictions: Predictions) -> None:
    refused = dict(predictions.rejected.group_by("table").len().iter_rows())
    for table in ("boxes", "tubes"):
        assert (
            len(getattr(predictions, table)) + refused.get(table, 0) == predictions.meta.rows_read[table]
        ), table


def test_tubes_come_in_the_order_of_the_file_with_their_labels(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, files.tubes()), SCENES)
    rows = predictions.tubes.join(predictions.tube_labels.select("tube", "label"), on="tube")
    assert rows.select("video", "kind", "label", "start_frame", "end_frame").rows() == [
        (ONE, "agent", 0, 0, 4),
        (ONE, "agent", 1, 1, 6),
        (TWO, "agent", 1, 0, 6),
        (ONE, "location", 1, 0, 4),
        (TWO, "event", 1, 2, 5),
        (TWO, "event", 0, 2, 5),
    ]
    assert predictions.tubes["score"].to_list() == predictions.tube_labels["score"].to_list()
    assert predictions.tubes["score"][0] == files.tubes()["agent"][ONE][0]["score"]
    assert predictions.rejected.is_empty()
    assert predictions.meta.vocabularies == files.VOCABULARIES


def test_every_tube_owns_its_boxes(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, files.tubes()), SCENES)
    second = files.tubes()["agent"][ONE][1]
    boxes = predictions.boxes.filter(tube=1)
    assert (boxes["frame"].to_numpy() + 1 == second["frames"]).all()
    assert (boxes.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy() == second["boxes"]).all()
    assert boxes["score"].to_list() == second["scores"].tolist()
    assert predictions.videos.rows() == [(ONE, 682, 512), (TWO, 682, 512)]


def test_names_of_kinds_may_be_ours(tmp_path: Path) -> None:
    native = read_tubes(written(tmp_path, files.tubes()), SCENES)
    names = {"loc": "location", "triplet": "event"}
    ours = {names.get(kind, kind): videos for kind, videos in files.tubes().items()}
    assert read_tubes(written(tmp_path, ours), SCENES) == native


def test_labels_are_numbered_where_no_scenes_are_given(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, files.tubes()))
    assert predictions.meta.vocabularies["agent"] == ("agent 0", "agent 1")
    named = read_tubes(written(tmp_path, files.tubes()), SCENES)
    assert predictions.boxes.equals(named.boxes)
    assert predictions.tube_labels.equals(named.tube_labels)


def test_tubes_of_agentness_are_those_without_label(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, {"agent_ness": {TWO: [files.tube(0, 0, 3)]}}), SCENES)
    assert predictions.tubes["kind"].to_list() == [None]
    assert predictions.tube_labels.is_empty()
    write_tubes(predictions, tmp_path / "again.pkl", agentness=True)
    assert read_tubes(tmp_path / "again.pkl", SCENES) == predictions
    with pytest.raises(InputError, match="no tubes with a label"):
        write_tubes(predictions, tmp_path / "none.pkl")


def test_arrays_may_be_lists_and_numbers_arrays_of_one(tmp_path: Path) -> None:
    held = files.tubes()
    for videos in held.values():
        for each in [tube for tubes in videos.values() for tube in tubes]:
            each.update({name: each[name].tolist() for name in ("boxes", "frames", "scores")})
            each.update(label_id=np.int64(each["label_id"]), score=np.array([each["score"]]))
    predictions = read_tubes(written(tmp_path, held), SCENES)
    plain = read_tubes(written(tmp_path, files.tubes()), SCENES)
    assert predictions.tubes.equals(plain.tubes)
    assert predictions.boxes.cast({"score": pl.Float32}).equals(plain.boxes)


def test_frames_may_be_counted_from_0(tmp_path: Path) -> None:
    held = {"agent": {TWO: [{**files.tube(0, 0, 6), "frames": np.arange(6)}]}}
    assert read_tubes(written(tmp_path, held), SCENES, first_frame=0).boxes["frame"].to_list() == list(
        range(6)
    )
    with pytest.raises(InputError, match="frame -1, counted from 0, lies before the first"):
        read_tubes(written(tmp_path, held), SCENES)
    from_1 = {"agent": {TWO: [files.tube(0, 0, 6)]}}
    with pytest.raises(
        InputError, match="frame 6, counted from 0, lies behind the end of the video, which has 6"
    ):
        read_tubes(written(tmp_path, from_1), SCENES, first_frame=0)


def test_frames_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    each = files.tube(0, 0, 4)
    turned = {**each, **{name: each[name][::-1] for name in ("boxes", "frames", "scores")}}
    straight = read_tubes(written(tmp_path, {"agent": {TWO: [each]}}), SCENES)
    assert read_tubes(written(tmp_path, {"agent": {TWO: [turned]}}), SCENES) == straight


def test_a_hole_stays_a_hole(tmp_path: Path) -> None:
    predictions = read_tubes(changed(tmp_path, frames=np.array([1, 2, 4, 6])), SCENES)
    assert predictions.boxes.filter(tube=0)["frame"].to_list() == [0, 1, 3, 5]
    assert predictions.tubes.row(0, named=True)["end_frame"] == 6


def test_no_tubes_at_all_are_no_error(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, {"agent": {ONE: [], TWO: []}}), SCENES)
    assert predictions.tubes.is_empty()
    assert predictions.videos["video"].to_list() == [ONE, TWO]


def test_progress_ends_at_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    read_tubes(written(tmp_path, files.tubes()), SCENES, progress=lambda *each: told.append(each))
    assert told[-1] == (6, 6, "tubes")


NOT_TUBES = {
    "damaged": (pickle.dumps(files.tubes())[:-30], "not a whole pickle"),
    "empty_file": (b"", "the file is empty"),
    "code": (b"cos\nsystem\n(S'true'\ntR.", r"os\.system"),
    "a_list": ([1], "expected {kind: {video: \\[tubes\\]}}, found a list"),
    "empty": ({}, "found an empty dict"),
    "kinds_of_lists": ({"agent": [files.tube(0, 0, 3)]}, "'agent' holds a list"),
    "videos_of_dicts": ({"agent": {TWO: files.tube(0, 0, 3)}}, "'two' of 'agent' holds a dict"),
    "videos_by_number": ({"agent": {3: []}}, "'3' of 'agent' holds"),
}


@pytest.mark.parametrize("name", NOT_TUBES)
def test_what_is_no_file_of_tubes_is_an_error(tmp_path: Path, name: str) -> None:
    value, reason = NOT_TUBES[name]
    with pytest.raises(InputError, match=reason) as caught:
        read_tubes(written(tmp_path, value), SCENES)
    assert "tubes.pkl" in str(caught.value)


def test_no_regular_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="there is nothing at"):
        read_tubes(tmp_path / "absent.pkl", SCENES)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="regular file"):
            read_tubes(path, SCENES)
    (tmp_path / "link").symlink_to(written(tmp_path, files.tubes()))
    assert len(read_tubes(tmp_path / "link", SCENES).tubes) == 6


BAD_TUBES: dict[str, tuple[dict[str, Any], str]] = {
    "duplicate_frames": ({"frames": np.array([1, 2, 2, 3])}, "frame 1, counted from 0, stands in it twice"),
    "unknown_label": ({"label_id": 2}, "label_id 2 of 'agent', which has 2 labels"),
    "negative_label": ({"label_id": -1}, "label_id -1"),
    "label_as_text": ({"label_id": "Ped"}, "label_id 'Ped'"),
    "label_as_fraction": ({"label_id": 0.5}, "label_id 0.5"),
    "score_nan": ({"score": np.nan}, "score nan is no number"),
    "score_above_1": ({"score": 1.5}, "score 1.5 is no number"),
    "score_none": ({"score": None}, "score None is no number"),
    "behind_the_end": ({"frames": np.array([4, 5, 6, 7])}, "frame 6, .* lies behind the end"),
    "before_the_start": ({"frames": np.array([0, 1, 2, 3])}, "frame -1, .* lies before"),
    "frames_2_63": ({"frames": [1, 2, 3, 1 << 63]}, "no array|array of numbers"),
    "frames_as_fractions": ({"frames": np.array([0.0, 1.5, 2, 3])}, "'frames' should be"),
    "fewer_frames": ({"frames": np.arange(1, 4)}, r"3 frames for boxes \(4, 4\)"),
    "no_frames": ({"frames": [], "boxes": np.zeros((0, 4)), "scores": []}, "0 frames for boxes"),
    "boxes_of_five": ({"boxes": np.zeros((4, 5))}, r"boxes \(4, 5\)"),
    "boxes_flat": ({"boxes": np.zeros(4)}, "'boxes' should be a 2-dimensional array"),
    "boxes_ragged": ({"boxes": [[1, 2, 3, 4], [1, 2]]}, "no array|array of numbers"),
    "boxes_of_text": ({"boxes": np.full((4, 4), "1")}, "'boxes' should be"),
    "fewer_scores": ({"scores": np.ones(3)}, "3 scores for 4 frames"),
    "not_one_good_box": ({"boxes": np.full((4, 4), np.nan)}, "not one box"),
}


@pytest.mark.parametrize("name", BAD_TUBES)
def test_a_bad_tube_costs_itself(tmp_path: Path, name: str) -> None:
    values, reason = BAD_TUBES[name]
    clean = read_tubes(written(tmp_path, files.tubes()), SCENES)
    predictions = read_tubes(changed(tmp_path, **values), SCENES)
    (refused,) = predictions.rejected.filter(table="tubes").rows(named=True)
    assert (refused["file"], refused["item"]) == ("tubes.pkl", f"agent, {ONE}, tube 0")
    assert pl.Series([refused["reason"]]).str.contains(reason).all(), refused["reason"]
    assert predictions.tubes.drop("tube").equals(clean.tubes.drop("tube").slice(1))
    same = predictions.boxes.with_columns(pl.col("tube") + 1).drop("box")
    assert same.equals(clean.boxes.filter(pl.col("tube") > 0).drop("box"))
    adds_up(predictions)
    with pytest.raises(FindingsError, match=r"tubes\.pkl: \d+ rejected"):
        read_tubes(changed(tmp_path, **values), SCENES, strict=True)


@pytest.mark.parametrize("name", BAD_TUBES)
def test_a_bad_tube_alone_is_an_error(tmp_path: Path, name: str) -> None:
    values, reason = BAD_TUBES[name]
    held = {"agent": {ONE: [{**files.tube(0, 0, 4), **values}]}}
    with pytest.raises(InputError, match=f"none of 1 tubes can be taken(.|\n)*({reason})"):
        read_tubes(written(tmp_path, held), SCENES)


@pytest.mark.parametrize(
    ("kind", "video", "reason"),
    [
        ("agent", "three", "a video that the scenes do not have"),
        ("tram", TWO, "the kind 'tram' is unknown; there are agentness, agent"),
        ("av_action", TWO, "the kind 'av_action' is unknown"),
    ],
)
def test_tubes_of_unknown_kinds_and_videos_are_refused(
    tmp_path: Path, kind: str, video: str, reason: str
) -> None:
    held = files.tubes()
    held.setdefault(kind, {})[video] = [files.tube(0, 0, 3), files.tube(0, 0, 3)]
    predictions = read_tubes(written(tmp_path, held), SCENES)
    refused = predictions.rejected.filter(table="tubes")
    assert refused["item"].to_list() == [f"{kind}, {video}, tube 0", f"{kind}, {video}, tube 1"]
    assert refused["reason"].str.contains(reason).all()
    assert len(predictions.tubes) == 6
    assert set(predictions.videos["video"]) == set(files.VIDEOS)
    adds_up(predictions)


@pytest.mark.parametrize("entry", [None, [], {"label_id": 0}, {"boxes": 1, "score": 1, "frames": 1}])
def test_what_is_no_tube_is_refused(tmp_path: Path, entry: Any) -> None:
    held = files.tubes()
    held["agent"][ONE].append(entry)
    predictions = read_tubes(written(tmp_path, held), SCENES)
    assert predictions.rejected["reason"].to_list() == [
        "no dict with 'label_id', 'boxes', 'score' and 'frames'"
    ]


def _box(place: int, values: list[float]) -> dict[str, Any]:
    boxes = files.tube(0, 0, 4)["boxes"]
    boxes[place] = values
    return {"boxes": boxes}


@pytest.mark.parametrize(
    ("values", "frame", "reason"),
    [
        (_box(0, [10, 10, 5, 20]), 0, "upside down"),
        (_box(2, [10, 30, 15, 20]), 2, "upside down"),
        (_box(3, [10, np.nan, 15, 20]), 3, "not a finite"),
        (_box(1, [10, 10, np.inf, 20]), 1, "not a finite"),
        ({"scores": np.array([0.1, 0.2, 1.5, 0.3])}, 2, "no number in"),
        ({"scores": np.array([0.1, np.nan, 0.5, 0.3])}, 1, "no number in"),
    ],
)
def test_a_bad_box_costs_itself_and_leaves_its_tube(
    tmp_path: Path, values: dict[str, Any], frame: int, reason: str
) -> None:
    predictions = read_tubes(changed(tmp_path, **values), SCENES)
    (refused,) = predictions.rejected.rows(named=True)
    assert (refused["table"], refused["item"]) == ("boxes", f"agent, {ONE}, tube 0, frame {frame}")
    assert reason in refused["reason"]
    assert predictions.boxes.filter(tube=0)["frame"].to_list() == [n for n in range(4) if n != frame]
    assert len(predictions.tubes) == 6
    adds_up(predictions)


def test_what_is_written_is_read_the_same(tmp_path: Path) -> None:
    predictions = read_tubes(written(tmp_path, files.tubes()), SCENES)
    write_tubes(predictions, tmp_path / "again.pkl")
    assert read_tubes(tmp_path / "again.pkl", SCENES) == predictions
    held = pickle.loads((tmp_path / "again.pkl").read_bytes())  # noqa: S301 - just written
    assert list(held) == ["agent", "loc", "triplet"]
    assert all(list(videos) == [ONE, TWO] for videos in held.values())
    assert held["agent"][TWO][0].keys() == files.tube(0, 0, 3).keys()
    write_tubes(predictions, tmp_path / "ours.pkl", native=False, first_frame=0)
    assert read_tubes(tmp_path / "ours.pkl", SCENES, first_frame=0) == predictions


PATH = [(0, 4.0), (1, 5.0), (4, 6.0), (5, 7.0)]


def linked(**columns: Any) -> Predictions:
    """A path of four boxes, with a hole over the frames 2 and 3, and a tube of kind action cut from it."""
    boxes = pl.DataFrame(
        {
            "box": range(4),
            "video": TWO,
            "frame": [frame for frame, _ in PATH],
            "tube": 0,
            "x1_px": [x for _, x in PATH],
            "y1_px": 1.0,
            "x2_px": 9.0,
            "y2_px": 9.0,
            "score": [0.5, 0.6, 0.7, 0.8],
            "scores": pl.Series([[0.1 * n, 0.2] for n in range(4)], dtype=pl.Array(pl.Float32, 2)),
        },
        schema_overrides={"x1_px": pl.Float32, "y1_px": pl.Float32, "x2_px": pl.Float32, "y2_px": pl.Float32},
    )
    tubes = pl.DataFrame(
        {
            "tube": [0, 1],
            "video": TWO,
            "parent": [None, 0],
            "kind": [None, "action"],
            "start_frame": [0, 0],
            "end_frame": [6, 6],
            "score": [0.65, 0.4],
            **columns,
        },
        schema_overrides={"spans": pl.List(pl.List(pl.Int64))},
    )
    labels = pl.DataFrame({"tube": [1], "kind": ["action"], "label": [0], "score": [0.25]})
    meta = set_score_layout(Meta(vocabularies={"action": ("Stop", "Mov")}), "boxes", ["action"])
    return Predictions(boxes=boxes, tubes=tubes, tube_labels=labels, meta=meta)


def only_tube(predictions: Predictions, folder: Path) -> dict[str, Any]:
    write_tubes(predictions, folder / "linked.pkl")
    (each,) = read_tubes(folder / "linked.pkl").boxes.partition_by("tube")
    held = pickle.loads((folder / "linked.pkl").read_bytes())["action"][TWO][0]  # noqa: S301 - just written
    assert (each["frame"].to_numpy() + 1 == held["frames"]).all()
    return {name: np.asarray(value).tolist() for name, value in held.items()}


def test_derived_tubes_are_written_with_the_boxes_of_their_path(tmp_path: Path) -> None:
    each = only_tube(linked(), tmp_path)
    assert each["frames"] == [1, 2, 5, 6]
    assert [box[0] for box in each["boxes"]] == [4, 5, 6, 7]
    assert each["scores"] == pytest.approx([0, 0.1, 0.2, 0.3])
    assert each["score"] == 0.25


def test_spans_cut_the_path(tmp_path: Path) -> None:
    each = only_tube(linked(spans=[None, [[1, 2], [5, 6]]]), tmp_path)
    assert each["frames"] == [2, 6]
    assert [box[0] for box in each["boxes"]] == [5, 7]


def test_consecutive_tubes_are_written_for_the_frames_they_predict(tmp_path: Path) -> None:
    """Four boxes found in the frames 0, 1, 4 and 5 are predicted for 0, 1, 2 and 3; the file counts from 1."""
    each = only_tube(linked(spans=[None, [[0, 6]]], consecutive=[None, True]), tmp_path)
    assert each["frames"] == [1, 2, 3, 4]
    assert [box[0] for box in each["boxes"]] == [4, 5, 6, 7]


def test_a_tube_without_boxes_or_score_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"tube 1 of {TWO} has no boxes"):
        write_tubes(linked(spans=[None, [[2, 3]]]), tmp_path / "a.pkl")
    predictions = linked()
    bare = predictions.with_tables(
        tubes=predictions.tubes.drop("score"), tube_labels=predictions.tube_labels.drop("score")
    )
    with pytest.raises(InputError, match=f"tube 1 of {TWO} has no score"):
        write_tubes(bare, tmp_path / "a.pkl")
    with pytest.raises(InputError, match="boxes name no tubes"):
        write_tubes(predictions.with_tables(boxes=predictions.boxes.drop("tube")), tmp_path / "a.pkl")
    assert not (tmp_path / "a.pkl").exists()
