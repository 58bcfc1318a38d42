"""Predictions of actions: in and out, in the order of the file; what is refused, and what is told."""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl
import pytest

from roadaware.datasets import read
from roadaware.errors import InputError
from roadaware.formats.actions import (
    _explain_moments,
    read_action_predictions,
    read_person_boxes,
    write_action_predictions,
)
from roadaware.scenes.tables import Meta, Predictions, Scenes


def scenes() -> Scenes:
    """Two moments of two videos, three actions numbered 1, 2 and 5."""
    frames = [("a", 902), ("a", 903), ("-b", 902)]
    return Scenes(
        videos=pl.DataFrame({"video": ["a", "-b"], "width_px": 1, "height_px": 1}),
        frames=pl.DataFrame(frames, schema=["video", "frame"], orient="row"),
        meta=Meta(
            dataset="AVA",
            vocabularies={"action": ("sit", "stand", "walk")},
            notes={"label_ids": {"action": [1, 2, 5]}, "unit_pictures": True},
        ),
    )


def chaotic() -> Scenes:
    """Frames from 0 of images of 320 x 180, whose files count from 1 and say the time."""
    return Scenes(
        videos=pl.DataFrame({"video": ["a"], "width_px": [320], "height_px": [180]}),
        frames=pl.DataFrame({"video": ["a", "a"], "frame": [25, 50], "t_s": [1.0, 2.0]}),
        meta=Meta(
            vocabularies={"action": tuple("xyz")},
            notes={"label_ids": {"action": [0, 1, 2]}, "first_frame": 1},
        ),
    )


def predictions(folder: Path, *rows: str, truth: Scenes | None = None) -> Predictions:
    path = folder / "predictions.csv"
    path.write_text("".join(f"{row}\n" for row in rows))
    return read_action_predictions(path, truth or scenes())


def warned(found: Predictions) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in found.meta.notes["warnings"]}


def test_rows_are_labels_with_scores_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = predictions(
        tmp_path,
        "a,0902,0.1,0.2,0.3,0.4,5,0.1000000000000000055",
        "-b,902,0.1,0.2,0.3,0.4,1,1",
        "a,0902,0.1,0.2,0.3,0.4,1,0.30000000000000004",
        "a,0902,0.1,0.2,0.3,0.4,5,0",
    )
    assert found.labels.rows() == [
        (0, "action", 2, 0.1),
        (1, "action", 0, 1.0),
        (0, "action", 0, 0.30000000000000004),
        (2, "action", 2, 0.0),
    ]
    assert found.boxes.select("box", "video", "frame").rows() == [
        (0, "a", 902),
        (1, "-b", 902),
        (2, "a", 902),
    ]
    assert found.labels.schema["score"] == found.boxes.schema["x1_px"] == pl.Float64
    assert found.meta.vocabularies["action"] == ("sit", "stand", "walk")
    assert list(warned(found).values()) == [1]


@pytest.mark.parametrize("score", ["abc", "1e400", "nan", "-0.1", "1.0000001", "0,5"])
def test_case_63_and_68_a_score_that_is_none_costs_its_row(tmp_path: Path, score: str) -> None:
    found = predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,0.5", f"a,902,0.1,0.2,0.3,0.4,2,{score}")
    assert len(found.labels) == 1
    assert found.rejected.select("table", "line").rows() == [("boxes", 2)]
    assert found.meta.rows_read == {"boxes": 2, "labels": 1}


def test_a_missing_score_is_1_as_published(tmp_path: Path) -> None:
    found = predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,1", "a,902,0.1,0.2,0.3,0.4,2,0.5")
    assert found.labels["score"].to_list() == [1.0, 0.5]
    assert warned(found) == {"rows without a score, taken as 1 as the published evaluators do": 1}


def test_numbers_of_persons_are_no_scores(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"predictions\.csv:2: .*whole numbers such as 12"):
        predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,0", "a,902,0.5,0.2,0.6,0.4,2,12")
    found = predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,0", "a,902,0.5,0.2,0.6,0.4,2,1")
    assert list(warned(found)) == ["scores that are all 0 or 1: numbers of persons, read as scores?"]


def test_actions_outside_the_map_are_dropped_and_a_shift_is_named(tmp_path: Path) -> None:
    found = predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,0,0.5", "a,902,0.1,0.2,0.3,0.4,1,0.5")
    assert found.labels["label"].to_list() == [0]
    assert found.rejected["reason"].to_list() == ["the action 0 is not in the label map"]
    assert any("0 to 1 where the label map has 1 to 5: shifted by one?" in what for what in warned(found))
    one_up = predictions(
        tmp_path, "a,26,0.1,0.2,0.3,0.4,1,0.5", "a,26,0.1,0.2,0.3,0.4,3,0.5", truth=chaotic()
    )
    assert any("1 to 3 where the label map has 0 to 2: shifted by one?" in what for what in warned(one_up))
    foreign = predictions(tmp_path, "a,902,0.1,0.2,0.3,0.4,7,0.5")
    assert foreign.labels.is_empty()
    assert any("no prediction of an action that the truth has" in what for what in warned(foreign))


def test_predictions_where_the_truth_has_nothing_are_kept_and_told(tmp_path: Path) -> None:
    found = predictions(
        tmp_path, "a,902,0.1,0.2,0.3,0.4,1,0.5", "a,904,0.1,0.2,0.3,0.4,1,0.5", "z,902,0,0,1,1,1,0.5"
    )
    assert len(found.labels) == 3
    assert warned(found) == {
        "predictions in moments that the truth lacks": 1,
        "predictions in videos that the truth lacks": 1,
    }
    with pytest.raises(InputError, match="predicted is 'A' at 902, the truth has '-b' at 902"):
        predictions(tmp_path, "A,902,0.1,0.2,0.3,0.4,1,0.5")


def test_predictions_need_a_box_and_an_action(tmp_path: Path) -> None:
    found = predictions(tmp_path, "a,902,0,0,1,1,1,0.5", "a,902,,,,,,", "a,902,0,0,1,1,,0.5")
    assert found.rejected["reason"].to_list() == [
        "a prediction without a box",
        "a prediction without an action",
    ]


def test_frames_and_corners_are_brought_to_those_of_the_truth(tmp_path: Path) -> None:
    found = predictions(tmp_path, "a,26,0.25,0.5,0.5,1,2,0.5", "a,0,0.25,0.5,0.5,1,2,0.5", truth=chaotic())
    assert found.boxes.select("frame", "x1_px", "y1_px", "x2_px", "y2_px").rows() == [(25, 80, 90, 160, 180)]
    assert found.rejected["reason"].to_list() == ["a moment that the truth does not have"]


def test_seconds_stand_for_frames_where_no_frame_fits(tmp_path: Path) -> None:
    found = predictions(
        tmp_path, "a,0002,0.25,0.5,0.5,1,2,0.5", "a,0001,0.25,0.5,0.5,1,2,0.5", truth=chaotic()
    )
    assert found.boxes["frame"].to_list() == [50, 25]
    assert warned(found) == {"timestamps are seconds and stand for the frames shown then": 2}


@pytest.mark.parametrize("truth", [scenes(), chaotic()], ids=["ava", "chaotic_world"])
def test_what_is_written_is_read_again(tmp_path: Path, truth: Scenes) -> None:
    moment = 902 if truth.meta.dataset else 26
    rows = [f"a,{moment},{n / 9},0.05,{1 - n / 90},0.{n}75,{1 + n % 2},{n / 11!r}" for n in range(9)]
    found = predictions(tmp_path, *rows, truth=truth)
    write_action_predictions(found, truth, tmp_path / "again.csv")
    again = read_action_predictions(tmp_path / "again.csv", truth)
    assert again.labels.equals(found.labels)
    corners = [pl.col("^[xy]._px$")]
    assert again.boxes.drop("x1_px", "y1_px", "x2_px", "y2_px").equals(
        found.boxes.drop("x1_px", "y1_px", "x2_px", "y2_px")
    )
    difference = (again.boxes.select(corners).to_numpy() - found.boxes.select(corners).to_numpy()).max()
    assert abs(difference) < 1e-12
    assert (tmp_path / "again.csv").read_text().startswith(f"a,{moment:04d},0.0,0.05,1.0,0.075,1,0.0\n")


def test_case_67_names_that_are_formulas_are_written_as_text(tmp_path: Path) -> None:
    found = predictions(
        tmp_path, "-b,902,0,0,1,1,1,0.5", '"=HYPERLINK(""x"",1)",902,0,0,1,1,1,0.5', "-2+3,902,0,0,1,1,1,0.5"
    )
    write_action_predictions(found, scenes(), tmp_path / "out.csv")
    firsts = [line[:12] for line in (tmp_path / "out.csv").read_text().splitlines()]
    assert [first[:6] for first in firsts] == ["-b,090", "\"'=HYP", "'-2+3,"]
    again = predictions(tmp_path, "a,902,0,0,1,1,1,0.5", "'=x,902,0,0,1,1,1,0.5")
    assert again.boxes["video"].to_list() == ["a", "=x"]


def test_predictions_without_scores_are_not_written(tmp_path: Path) -> None:
    found = predictions(tmp_path, "a,902,0,0,1,1,1,0.5")
    bare = found.with_tables(labels=found.labels.drop("score"))
    with pytest.raises(InputError, match="without a score"):
        write_action_predictions(bare, scenes(), tmp_path / "out.csv")
    write_action_predictions(Predictions(meta=found.meta), scenes(), tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_bytes() == b""


def test_truth_without_actions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no actions"):
        predictions(tmp_path, "a,902,0,0,1,1,1,0.5", truth=Scenes())


def test_proposed_boxes_of_persons(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("a,0902,0,0,1,1,,0.75\na,0902,0,0,1,1,1,0.5\na,0903,0.1,0.2,0.3,0.4,,2\n")
    found = read_person_boxes(path)
    assert found.boxes.select("box", "frame", "score").rows() == [(0, 902, 0.75), (1, 902, 0.5)]
    assert found.labels.is_empty()
    assert found.rejected["line"].to_list() == [3]


def test_the_real_detections(tmp_path: Path) -> None:
    folder = os.environ.get("ROADAWARE_DATA_DIR")
    if not folder or not (Path(folder) / "ava").is_dir():
        pytest.skip("ROADAWARE_DATA_DIR names no folder with ava/")
    pair = Path(folder) / "ava" / "eval_detection"
    truth = read("ava", pair / "gt.csv", cache=False, labels=pair / "action_list.txt")
    found = read_action_predictions(pair / "pred.csv", truth)
    rows = [line.split(",") for line in (pair / "pred.csv").read_text().split()]
    assert found.labels["score"].to_list() == [float(row[7]) for row in rows]
    assert (found.labels["label"] + 1).to_list() == [int(row[6]) for row in rows]
    assert found.boxes["x2_px"].to_list() == [float(row[4]) for row in rows]
    assert found.rejected.is_empty()
    assert found.meta.notes["warnings"] == []


@pytest.mark.parametrize(
    ("times", "hint"),
    [
        ((0, 1), "add \\+902 to every timestamp; then 100% of the moments are in the truth"),
        ((903 * 25 - 25, 903 * 25), "divide every timestamp by 25: are these frames, where seconds are due"),
        ((5, 77), "compare the names of videos"),
    ],
)
def test_what_brings_moments_to_those_of_the_truth_is_said(
    tmp_path: Path, times: tuple[int, int], hint: str
) -> None:
    rows = [f"a,{time:04d},0.1,0.2,0.3,0.4,5,0.5" for time in times]
    with pytest.raises(InputError, match="none of 2 predicted moments") as caught:
        predictions(tmp_path, *rows)
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)


def test_moments_that_a_constant_explains_are_not_divided() -> None:
    frames = [901, 903, *range(904, 917)]
    known = pl.DataFrame({"video": "a", "frame": frames})
    predicted = pl.DataFrame({"video": "a", "frame": [frame + 900 for frame in [*frames, 902]]})
    assert _explain_moments(predicted, known).startswith("add -900 to every timestamp; then 94%")
