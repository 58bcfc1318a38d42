"""Labels and trimming by hand, and the sums they rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_linker import runs
from plain_linker import viterbi as plain_viterbi

from example_counts import tried
from roadaware.errors import UsageError
from roadaware.geometry.kernels import pairwise_mean, pairwise_sum
from roadaware.linking.config import UCF24_ALPHAS, LinkerConfig
from roadaware.linking.kernels import filtered_peak, score_presence, sort_falling, viterbi
from roadaware.linking.linker import Linker
from roadaware.linking.paths import Detections, Paths, label_and_trim, select_top_labels

REFERENCE = LinkerConfig.reference("ucf24")


def _path(scores: np.ndarray[Any, Any], agentness: np.ndarray[Any, Any]) -> tuple[Paths, Detections]:
    n = len(scores)
    boxes = np.tile([0.0, 0.0, 9.0, 9.0], (n, 1))
    found = Detections(np.zeros(n, int), np.arange(n), boxes, agentness, scores.astype(np.float32))
    return Paths(np.arange(n), np.array([0, n])), found


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 127, 128, 129, 136, 1000, 4097, 100_000])
def test_sums_are_those_of_numpy_to_the_last_bit(n: int) -> None:
    values = np.random.default_rng(n).random(n)
    narrow = values.astype(np.float32)
    assert pairwise_sum(values, 0, n, False) == np.sum(values)
    assert pairwise_sum(narrow.astype(np.float64), 0, n, True) == np.sum(narrow)
    if n > 2:
        assert pairwise_mean(narrow.astype(np.float64), 1, n, True) == np.mean(narrow[1:].copy())


@tried(100)
@given(st.lists(st.integers(0, 5), max_size=60))
def test_values_are_sorted_falling(values: list[int]) -> None:
    found = np.array([*values, 99.0])
    sort_falling(found, len(values))
    assert found.tolist() == [*sorted(values, reverse=True), 99]


@tried(200)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.3, 1.0, 16.0]), lag=st.booleans())
def test_dynamic_programming_equals_the_plain_one(seed: int, alpha: float, lag: bool) -> None:
    r = np.random.default_rng(seed)
    matrix = np.round(r.random((r.integers(1, 6), r.integers(1, 25))), 1)
    assert viterbi(matrix, alpha, lag).tolist() == plain_viterbi(matrix, alpha, lag)


def test_dynamic_programming_finds_the_best_of_all_labellings() -> None:
    r = np.random.default_rng(0)
    for alpha in (0.0, 0.2, 0.7):
        matrix = r.random((2, 8))
        labellings = [[n >> i & 1 for i in range(8)] for n in range(256)]
        worth = [matrix[labels, range(8)].sum() - alpha * (len(runs(labels)) - 1) for labels in labellings]
        assert viterbi(matrix, alpha, False).tolist() == labellings[int(np.argmax(worth))]


def test_labels_lag_one_frame_and_the_last_score_is_lost() -> None:
    matrix = np.array([[0.9, 0.9, 0.1, 0.1, 0.9], [0.1, 0.1, 0.9, 0.9, 0.1]])
    assert viterbi(matrix, 0.1, False).tolist() == [0, 0, 1, 1, 0]
    assert viterbi(matrix, 0.1, True).tolist() == [0, 0, 0, 1, 1]


def test_the_peak_is_that_of_medians_of_five() -> None:
    assert filtered_peak(np.array([0.1, 0.9, 0.2, 0.3, 0.25, 0.28, 0.26])) == 0.28
    assert filtered_peak(np.array([0.5, 0.4])) == 0.0
    assert score_presence(np.array([0.0, 0.5, 0.0, 0.0]), False).tolist() == [[1.0] * 4, [0.0] * 4]


def test_trimming_asks_for_agentness_where_there_are_24_classes() -> None:
    agentness = np.array([0.05] * 8 + [0.9] * 12 + [0.05] * 8)
    scores = np.full((28, 24), 0.01)
    scores[:, 3] = np.linspace(0.5, 0.84, 28)
    paths, found = _path(scores, agentness)
    config = replace(REFERENCE, max_labels=1)
    tubes = label_and_trim(paths, found, range(24), config)
    assert (tubes.label.tolist(), tubes.first.tolist(), tubes.last.tolist()) == ([3], [9], [20])
    best = np.sort(scores[9:21, 3].astype(np.float32))[-6:]
    assert tubes.score[0] == pytest.approx(best.mean())
    mended = label_and_trim(paths, found, range(24), replace(config, viterbi_lag=False))
    assert (mended.first.tolist(), mended.last.tolist()) == ([8], [19])
    other, fewer = _path(scores[:, :23], agentness)
    whole = label_and_trim(other, fewer, range(23), config)
    assert (whole.first.tolist(), whole.last.tolist()) == ([0], [27])  # the class score never halves


def test_each_ucf24_class_has_its_own_cost_of_change() -> None:
    assert (len(UCF24_ALPHAS), UCF24_ALPHAS[2], UCF24_ALPHAS[3]) == (24, 16, 3)
    agentness = np.array([0.9] * 10 + [0.1] * 8 + [0.9] * 10)
    scores = np.full((28, 24), 0.01)
    scores[:, 2], scores[:, 3] = 0.9, 0.8
    tubes = label_and_trim(*_path(scores, agentness), range(24), replace(REFERENCE, max_labels=2))
    assert list(zip(tubes.label.tolist(), tubes.first.tolist(), tubes.last.tolist(), strict=True)) == [
        (2, 0, 27),
        (3, 0, 10),
        (3, 19, 27),
    ]
    same = replace(REFERENCE, max_labels=2, trim_alpha=3.0)
    assert len(label_and_trim(*_path(scores, agentness), range(24), same)) == 4


def test_equal_classes_come_in_the_order_of_the_vocabulary() -> None:
    paths, found = _path(np.full((8, 20), 0.5), np.full(8, 0.5))
    for config in (LinkerConfig.reference(), LinkerConfig.default()):
        labels, values = select_top_labels(found.scores, paths.rows, paths.ends, range(20), config)
        assert labels.tolist() == [list(range(10))]
        assert values.tolist() == [[0.5] * 10]


def test_a_score_of_nothing_is_no_label_by_default() -> None:
    scores = np.zeros((12, 3))
    scores[:, 1] = 0.4
    scores[6:, 2] = 0.001
    path = _path(scores, np.full(12, 0.9))
    for trim in ("none", "indiv", "dpscores", "dpscorestopn"):
        default = label_and_trim(*path, range(3), LinkerConfig(trim=trim))
        published = label_and_trim(*path, range(3), LinkerConfig(trim=trim, min_label_score=None))
        assert (default.score > 0).all()
        kept = published.score > 0
        for name in ("path", "label", "first", "last", "score"):
            np.testing.assert_array_equal(getattr(default, name), getattr(published, name)[kept])
    whole = label_and_trim(*path, range(3), LinkerConfig.default())
    assert whole.label.tolist() == [1, 2]
    assert label_and_trim(*path, range(3), LinkerConfig(min_label_score=0.1)).label.tolist() == [1]
    assert label_and_trim(*path, range(3), LinkerConfig.reference()).label.tolist() == [1, 2, 0]


@pytest.mark.parametrize("rule", ["mean", "quarter_of_length"])
def test_a_live_path_has_no_label_of_a_class_that_scores_nothing(rule: Any) -> None:
    for config, labels in (
        (LinkerConfig(class_score=rule), [1, -1]),
        (LinkerConfig(class_score=rule, min_label_score=None), [1, 0]),
    ):
        linker = Linker(config, n_scores=2)
        for frame in range(3):
            linker.update(frame, np.array([[0.0, 0, 9, 9]]), np.array([0.9]), np.array([[0.0, 0.8]]))
        live = linker.live(k=2)
        assert live.labels.tolist() == [labels]
        assert live.label_scores[0].tolist() == pytest.approx([0.8, 0.0])


def test_both_configs_are_what_they_say() -> None:
    road, ucf24 = LinkerConfig.reference(), LinkerConfig.reference("ucf24")
    assert (road.top_rows, road.min_iou, road.trim, road.max_labels) == (10, 0.5, "none", 10)
    assert (ucf24.top_rows, ucf24.min_iou, ucf24.trim, ucf24.max_labels) == (20, 0.25, "indiv", 10)
    assert LinkerConfig.default() == LinkerConfig()
    assert LinkerConfig.default("ucf24").trim == "indiv"


BAD: dict[str, dict[str, Any]] = {
    "cost should be one of score, iou": {"cost": "distance"},
    "clamped_iou should be true or false": {"clamped_iou": 1},
    "min_iou should be a number from 0 to 1": {"min_iou": 1.5},
    "min_score should be a number": {"min_score": float("nan")},
    "jump_gap should be a whole number": {"jump_gap": 1.5},
    "top_rows should be a number from 1": {"top_rows": 0},
    "tube_nms should be a number": {"tube_nms": True},
    "trim_alphas should be finite": {"trim_alphas": (1.0, -1.0)},
}


@pytest.mark.parametrize("message", BAD)
def test_what_has_no_meaning_is_refused(message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LinkerConfig(**BAD[message])


def test_only_known_datasets_have_parameters() -> None:
    with pytest.raises(UsageError, match="road, ucf24; got 'kitti'"):
        LinkerConfig.reference("kitti")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="road, ucf24; got 'kitti'"):
        LinkerConfig.default("kitti")  # type: ignore[arg-type]
