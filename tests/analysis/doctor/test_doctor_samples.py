"""Each usual mistake in a samples file or a dataset's folder is named; sound ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.analysis.doctor import Extraction, check_pedestrian_scores, data
from roadaware.analysis.doctor import samples as checks
from roadaware.analysis.doctor.diagnosis import Diagnosis

TTE = np.tile(np.arange(90.0, 29, -10), 6)
PEOPLE = np.repeat([f"0_1_{k}b" for k in range(6)], 7)
TRUTH = np.repeat([0.0, 1, 0, 0, 1, 0], 7)


def codes(found: list[Diagnosis]) -> list[str]:
    return [item.code for item in found]


def test_sound_samples_have_no_finding() -> None:
    found = checks.check_class_base(TRUTH, "action", 1) + checks.check_time_unit(TTE)
    assert found + checks.check_frame_rate(TTE, PEOPLE, "action") + checks.check_row_order(PEOPLE, TTE) == []


@pytest.mark.parametrize(
    ("truth", "task", "columns", "code", "remedy"),
    [
        (TRUTH + 1, "action", 1, "truth_base", "Subtract 1"),
        (np.arange(1.0, 13), "risk", 12, "truth_base", "Subtract 1"),
        (TRUTH * 0.4, "action", 1, "truth_not_classes", "index"),
        (TRUTH - 1, "action", 1, "truth_irrelevant", "Write 0"),
        (np.arange(3.0), "action", 3, "truth_classes", "--task intention"),
        (np.arange(3.0), "action", 1, "truth_classes", "index of the true class, 0..1"),
        (np.arange(5.0), "action", 3, "truth_classes", "index of the true class, 0..1"),
        (np.zeros(5), "action", 1, "one_class", "split"),
    ],
)
def test_the_classes(truth: np.ndarray, task: str, columns: int, code: str, remedy: str) -> None:
    found = checks.check_class_base(truth, task, columns)
    assert codes(found) == [code]
    assert remedy in found[0].remedy


@pytest.mark.parametrize(("slip", "code"), [(2.0, "truth_classes"), (0.5, "truth_not_classes")])
def test_a_slip_in_one_row_is_named_with_its_row(slip: float, code: str) -> None:
    truth = TRUTH.copy()
    truth[16] = slip
    found = checks.check_class_base(truth, "action", 1)
    assert codes(found) == [code]
    assert found[0].says.startswith("1 of 42 truths is ")
    assert found[0].evidence.startswith(f"row 17 holds {slip:g}; ")


@pytest.mark.parametrize(
    ("tte", "code"),
    [
        (TTE / 30, "tte_seconds"),
        (np.array([3.0, 2, 1]), "tte_seconds"),
        (TTE * 33, "tte_unit"),
        (TTE - 95, "tte_negative"),
    ],
)
def test_the_unit_of_the_time_to_event(tte: np.ndarray, code: str) -> None:
    assert codes(checks.check_time_unit(tte)) == [code]


def test_another_frame_rate_is_named() -> None:
    found = checks.check_frame_rate(TTE / 2, PEOPLE, "action")
    assert codes(found) == ["frame_rate"]
    assert "15 frames per second" in found[0].says
    assert "multiply by 2" in found[0].remedy


def test_another_stride_is_a_note() -> None:
    tte = np.tile(np.arange(60.0, 29, -3), 3)
    found = checks.check_frame_rate(tte, np.repeat(["a", "b", "c"], 11), "action")
    assert codes(found) == ["sampling"]
    assert found[0].severity == "note"
    assert "usual step 3" in found[0].evidence


def test_rows_of_one_pedestrian_apart() -> None:
    order = np.r_[7:14, 0:3, 14:42, 3:7]
    found = checks.check_row_order(PEOPLE[order], TTE[order])
    assert codes(found) == ["rows_not_contiguous"]
    assert "7 blocks of 6 pedestrians; 0_1_0b comes again" in found[0].evidence


def test_rows_backwards() -> None:
    found = checks.check_row_order(PEOPLE, TTE[::-1])
    assert codes(found) == ["tte_rises"]
    assert "0_1_0b goes from 30 to 40" in found[0].evidence


def test_samples_that_stand_twice_are_named() -> None:
    names, tte, scores = np.array(["a", "a", "b"]), np.array([60.0, 30, 60]), np.array([[0.2], [0.4], [0.2]])
    assert checks.check_repeated_rows(scores, names, tte) == []
    twice = np.repeat(np.arange(3), 2)
    (found,) = checks.check_repeated_rows(scores[twice], names[twice], tte[twice])
    assert "3 of 6 rows" in found.evidence
    assert checks.check_repeated_rows(scores[twice], names[twice], np.zeros(6)) == []


@pytest.mark.parametrize("name", ["0_1_3", "1_3b", "1_3", "video_0001/0_1_3b", "0_1_3B"])
def test_an_unknown_pedestrian_and_who_was_meant(name: str) -> None:
    found = checks.check_unknown_names([name, "0_1_4"], ["0_1_3b", "0_1_4"], "JAAD")
    assert codes(found) == ["unknown_pedestrians"]
    assert found[0].evidence == f"{name!r}: did you mean '0_1_3b'?"
    assert "1 of 2" in found[0].says


def test_a_split_is_known_by_its_size() -> None:
    counts = {"jaad-action@iv2024 test": 4317, "jaad-action@iv2024 val": 809}
    found = checks.check_split_size(809, 4317, counts, "the scores")
    assert codes(found) == ["wrong_split"]
    assert "jaad-action@iv2024 val" in found[0].says
    assert codes(checks.check_split_size(5, 4317, counts, "the scores")) == ["row_count"]
    assert checks.check_split_size(4317, 4317, counts, "the scores") == []


def test_a_missing_row_needs_no_dataset_to_be_told() -> None:
    (found,) = checks.check_split_size(39, 40, {}, "the scores")
    assert found.code == "row_count"
    assert found.evidence == "39 rows, 40 expected"
    assert "--data" in found.remedy
    (unknown,) = checks.check_split_size(39, None, {"jaad-action@iv2024 test": 4317}, "the samples")
    assert unknown.evidence == "39 rows; known are jaad-action@iv2024 test 4317"


def test_numeric_order_instead_of_text_order() -> None:
    found = checks.check_same_order(["0_1_2", "0_1_10"], ["0_1_10", "0_1_2"])
    assert codes(found) == ["row_order"]
    assert "0_1_10 before 0_1_2" in found[0].remedy
    assert codes(checks.check_same_order(["a", "a"], ["a", "b"])) == ["other_samples"]


def test_truth_turned_round() -> None:
    assert codes(checks.check_flipped_truth(1 - TRUTH, TRUTH)) == ["truth_flipped"]
    assert codes(checks.check_flipped_truth(np.r_[1 - TRUTH[:1], TRUTH[1:]], TRUTH)) == ["truth_differs"]
    assert checks.check_flipped_truth(TRUTH, TRUTH) == []


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [([0, 1], [99, 99], []), ([1, 1], [100, 100], ["frame_base"]), ([1] * 9, [80] * 9, ["frame_base"])],
)
def test_frames_from_one(first: list[int], last: list[int], found: list[str]) -> None:
    n_frames = np.full(len(first), 100)
    assert codes(data.check_frame_base(np.array(first), np.array(last), n_frames)) == found


@pytest.mark.parametrize(
    ("right", "low", "found"),
    [
        (1900, 1000, []),
        (1, 1, ["box_scale"]),
        (99, 99, ["box_percent"]),
        (2500, 1000, ["image_size"]),
        (640, 480, ["image_size"]),
    ],
)
def test_the_scale_of_boxes(right: float, low: float, found: list[str]) -> None:
    x2, y2 = np.linspace(0, right, 2000), np.linspace(0, low, 2000)
    assert codes(data.check_box_scale(x2, y2, 1920, 1080)) == found


def test_splits_and_tables() -> None:
    assert codes(data.split_sizes({})) == ["no_splits"]
    assert codes(data.split_sizes({"a": 1, "b": 0})) == ["empty_split"]
    assert codes(data.check_table_sizes({"boxes": 0}, 0, 0)) == ["no_boxes"]
    assert [d.severity for d in data.check_table_sizes({"boxes": 9}, 1, 1000)] == ["note"]
    assert [d.severity for d in data.check_table_sizes({"boxes": 9}, 50, 1000)] == ["wrong"]


def test_a_whole_examination_names_every_cause() -> None:
    names = tuple(name.removesuffix("b") for name in PEOPLE)
    rng = np.random.default_rng(0)
    values = (100 * rng.uniform(0, 1, len(TRUTH)))[:-1, None]
    known = Extraction("JAAD", tuple(np.unique(PEOPLE)), {"jaad-action@iv2024 val": 41})
    found = codes(check_pedestrian_scores(values, TRUTH + 1, TTE / 30, names, "action", known))
    assert set(found) == {"percent", "truth_base", "tte_seconds", "unknown_pedestrians", "wrong_split"}


def test_a_sound_submission_against_the_dataset() -> None:
    values = np.clip(0.2 + 0.5 * TRUTH + np.linspace(0, 0.1, len(TRUTH)), 0, 1)[:, None]
    known = Extraction("JAAD", tuple(np.unique(PEOPLE)), {}, tuple(PEOPLE), tuple(TRUTH.astype(int)))
    assert check_pedestrian_scores(values, TRUTH, TTE, tuple(PEOPLE), "action", known) == []
    prefixed = tuple(f"video_0001/{name}" for name in PEOPLE)
    assert check_pedestrian_scores(values, TRUTH, TTE, prefixed, "action", known) == []
