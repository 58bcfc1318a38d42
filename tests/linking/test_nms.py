"""Suppression keeps the best of boxes that overlap, by agentness or for each class, as a plain loop does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prediction_sets import plain_iou, predictions, rows, rows_of

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.linking.postprocessing import NmsConfig, suppress_overlaps
from roadaware.scenes.dense_scores import convert_to_matrix

A, NEAR_A, FAR = (0, 0, 10, 10), (0, 0, 10, 8), (50, 50, 60, 60)


def plain_kept(boxes, scores, frames, iou, least):
    """Rows that stay, the best first within each frame, frames in order of appearance."""
    kept = []
    for frame in dict.fromkeys(frames):
        here = [i for i, f in enumerate(frames) if f == frame and scores[i] > least]
        stays = []
        for i in sorted(here, key=lambda i: -scores[i]):
            if all(not plain_iou(boxes[i], boxes[j]) > iou for j in stays):
                stays.append(i)
        kept += stays
    return kept


def test_by_agentness_by_hand() -> None:
    found = suppress_overlaps(
        predictions(
            [
                ("v", 1, NEAR_A, 0.6, [0, 0, 0]),
                ("v", 1, A, 0.9, [0, 0, 0]),
                ("v", 1, FAR, 0.95, [0, 0, 0]),
                ("v", 1, FAR, 0.02, [0, 0, 0]),
                ("v", 2, NEAR_A, 0.3, [0, 0, 0]),
            ]
        )
    )
    assert rows_of(found) == [("v", 1, FAR, 0.95), ("v", 1, A, 0.9), ("v", 2, NEAR_A, 0.3)]
    assert found.boxes["box"].to_list() == [2, 1, 4]
    assert found.meta.notes["after_detector"][0]["step"] == "suppressed"
    assert found.meta.notes["after_detector"][0]["kept"] == 3


def test_an_overlap_of_just_the_threshold_is_borne() -> None:
    both = predictions([("v", 0, A, 0.9, [0, 0, 0]), ("v", 0, NEAR_A, 0.6, [0, 0, 0])])
    assert len(suppress_overlaps(both, NmsConfig(iou=0.8)).boxes) == 2
    assert len(suppress_overlaps(both, NmsConfig(iou=0.79)).boxes) == 1


def test_of_equal_scores_the_earlier_row_stays() -> None:
    same = predictions([("v", 0, A, 0.5, [0, 0, 0]), ("v", 0, NEAR_A, 0.5, [0, 0, 0])])
    assert suppress_overlaps(same).boxes["box"].to_list() == [0]


def test_a_frame_keeps_its_best_boxes() -> None:
    apart = [("v", f, (20 * i, 0, 20 * i + 9, 9), 0.1 + 0.1 * i, [0, 0, 0]) for f in (3, 1) for i in range(5)]
    found = suppress_overlaps(predictions(apart), NmsConfig(top=2))
    assert found.boxes["box"].to_list() == [4, 3, 9, 8]


def test_by_class_a_box_loses_only_the_scores_that_a_better_one_has() -> None:
    found = suppress_overlaps(
        predictions([("v", 0, A, 0.9, [0.9, 0.3, 0.5]), ("v", 0, NEAR_A, 0.8, [0.5, 0.6, 0.01])]),
        NmsConfig(by="class"),
    )
    expected = np.array([[0.9, 0, 0.5], [0, 0.6, 0.01]], dtype=np.float32)
    assert convert_to_matrix(found.boxes["scores"], 3).tolist() == expected.tolist()
    assert found.meta.notes["after_detector"][0]["scores_zeroed"] == 2
    only = suppress_overlaps(
        predictions([("v", 0, A, 0.9, [0.9, 0.3, 0.5]), ("v", 0, NEAR_A, 0.8, [0.5, 0.6, 0.4])]),
        NmsConfig(by="class", kinds=("action",)),
    )
    kept = np.array([[0.9, 0.3, 0.5], [0.5, 0.6, 0]], dtype=np.float32)
    assert convert_to_matrix(only.boxes["scores"], 3).tolist() == kept.tolist()


@tried(150)
@given(rows, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([None, 1, 3]))
def test_by_agentness_equals_a_loop(found, iou, top) -> None:
    kept = plain_kept([r[2] for r in found], [r[3] for r in found], [r[:2] for r in found], iou, 0.2)
    seen: dict[tuple[str, int], int] = {}
    expected = []
    for i in kept:
        seen[found[i][:2]] = seen.get(found[i][:2], 0) + 1
        if top is None or seen[found[i][:2]] <= top:
            expected.append(i)
    got = suppress_overlaps(predictions(found), NmsConfig(iou=iou, min_score=0.2, top=top))
    assert got.boxes["box"].to_list() == expected


@tried(150)
@given(rows, st.sampled_from([0.0, 0.3, 0.5]))
def test_by_class_equals_a_loop(found, iou) -> None:
    given_predictions = predictions(found)
    scores = convert_to_matrix(given_predictions.boxes["scores"], 3)
    expected = scores.copy()
    for c in range(3):
        column = scores[:, c].tolist()
        kept = plain_kept([r[2] for r in found], column, [r[:2] for r in found], iou, 0.2)
        expected[[i for i, s in enumerate(column) if s > 0.2 and i not in kept], c] = 0
    got = suppress_overlaps(given_predictions, NmsConfig(by="class", iou=iou, min_score=0.2))
    assert np.array_equal(convert_to_matrix(got.boxes["scores"], 3), expected)
    assert got.boxes.drop("scores").equals(given_predictions.boxes.drop("scores"))


@tried(50)
@given(rows)
def test_suppressing_twice_changes_nothing_more(found) -> None:
    once = suppress_overlaps(predictions(found))
    assert suppress_overlaps(once).boxes.equals(once.boxes)


def test_what_cannot_be_suppressed_is_refused() -> None:
    linked = predictions([("v", 0, A, 0.9, [0, 0, 0])])
    linked = linked.with_tables(boxes=linked.boxes.with_columns(tube=0))
    with pytest.raises(InputError, match="linked to tubes already"):
        suppress_overlaps(linked)
    with pytest.raises(InputError, match="needs its agentness"):
        suppress_overlaps(predictions([("v", 0, A, None, [0, 0, 0])]))
    bare = predictions([("v", 0, A, 0.9, [0, 0, 0])])
    bare = bare.with_tables(boxes=bare.boxes.drop("scores"))
    with pytest.raises(UsageError, match="needs dense class scores"):
        suppress_overlaps(bare, NmsConfig(by="class"))
    with pytest.raises(InputError, match="no scores of 'mood'"):
        suppress_overlaps(predictions([("v", 0, A, 0.9, [0, 0, 0])]), NmsConfig(by="class", kinds=("mood",)))
    for wrong in ({"by": "luck"}, {"iou": 1.5}, {"min_score": -0.1}, {"top": 0}):
        with pytest.raises(UsageError):
            NmsConfig(**wrong)
    assert len(suppress_overlaps(predictions([])).boxes) == 0
