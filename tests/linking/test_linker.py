"""The streaming linker: equal to the plain one, quirk by quirk, and safe on whatever a camera does."""

from __future__ import annotations

import logging
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from detection_sets import frames
from hypothesis import given
from hypothesis import strategies as st
from plain_linker import PlainLinker, class_scores, filled

from example_counts import tried
from roadaware.errors import InputError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker, Path

REFERENCE, DEFAULT = LinkerConfig.reference(), LinkerConfig.default()
FORMER = replace(
    DEFAULT,
    motion="time",
    cost="score",
    assignment="greedy",
    min_iou=0.5,
    jump_gap_s=0.0,
    begin_score=0.0,
    begin_iou=1.0,
    min_path_len=6,
    min_path_score=0.1,
)
CONFIGS = {
    "reference": REFERENCE,
    "reference ucf24": LinkerConfig.reference("ucf24"),
    "default": DEFAULT,
    "reference iou": replace(REFERENCE, cost="iou"),
    "reference scoreiou": replace(REFERENCE, cost="scoreiou"),
    "reference ioul2": replace(REFERENCE, cost="ioul2"),
    "default ioul2": replace(DEFAULT, cost="ioul2"),
    "in turn": replace(DEFAULT, assignment="greedy"),
    "hungarian": replace(DEFAULT, assignment="hungarian"),
    "hungarian by score": replace(DEFAULT, assignment="hungarian", cost="score"),
    "kalman by score, in turn": replace(DEFAULT, assignment="greedy", cost="score"),
    "affinity by time": replace(DEFAULT, assignment="hungarian", motion="time"),
    "widened by nothing": replace(DEFAULT, motion="none", cost="iou"),
    "short gaps": replace(DEFAULT, jump_gap=1, jump_gap_s=0.3),
    "former default": FORMER,
    "hungarian with the sum": replace(REFERENCE, assignment="hungarian", top_rows=None),
    "ties by build": replace(REFERENCE, order_ties="build"),
    "holes, no motion": replace(DEFAULT, gaps="keep", motion="none"),
    "long memory": replace(REFERENCE, jump_gap=9),
    "no gaps": replace(REFERENCE, jump_gap=0),
}


def _run(config: LinkerConfig, video: list[Any], n_scores: int = 7, columns: int = 3) -> list[Path]:
    linker = Linker(config, n_scores, l2_columns=columns)
    paths = [path for frame in video for path in linker.update(*frame).ended]
    return [*paths, *linker.finish()]


def _plain(config: LinkerConfig, video: list[Any], columns: int = 3) -> list[Any]:
    linker = PlainLinker(config, columns)
    for frame in video:
        linker.update(*frame)
    return linker.finish()


def _one(frame: int, x: float, agentness: float = 0.9, width: float = 30) -> tuple[Any, ...]:
    return frame, [[x, 0, x + width, 30]], [agentness], np.zeros((1, 0))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tied", [True, False])
def test_equals_the_plain_linker(name: str, tied: bool) -> None:
    for seed in range(6):
        video = frames(seed, n_agents=3 + 2 * seed, tied=tied)
        found, expected = _run(CONFIGS[name], video), _plain(CONFIGS[name], video)
        assert [path.number for path in found] == [path.number for path in expected]
        for path, plain in zip(found, expected, strict=True):
            assert path.frames.tolist() == plain.frames
            assert path.rows.tolist() == plain.rows
            assert np.array_equal(path.boxes, plain.boxes)
            assert np.array_equal(path.scores, plain.scores)


@tried(60)
@given(
    seed=st.integers(0, 10**6),
    agents=st.integers(1, 14),
    name=st.sampled_from(sorted(CONFIGS)),
    jump_gap=st.integers(0, 6),
)
def test_equals_the_plain_linker_on_any_set(seed: int, agents: int, name: str, jump_gap: int) -> None:
    config = replace(CONFIGS[name], jump_gap=jump_gap)
    video = frames(seed, n_frames=30, n_agents=agents)
    found, expected = _run(config, video), _plain(config, video)
    assert [path.frames.tolist() for path in found] == [plain.frames for plain in expected]
    assert [path.rows.tolist() for path in found] == [plain.rows for plain in expected]


def test_times_in_any_unit_give_the_same_paths() -> None:
    video = frames(3)
    linker, plain = Linker(DEFAULT, 7), PlainLinker(DEFAULT)
    found: list[Path] = []
    for frame, *detections in video:
        found += linker.update(frame, *detections, t_s=0.04 * frame).ended
        plain.update(frame, *detections, t_s=0.04 * frame)
    found += linker.finish()
    assert [path.frames.tolist() for path in found] == [path.frames for path in plain.finish()]
    assert [path.frames.tolist() for path in found] == [path.frames.tolist() for path in _run(DEFAULT, video)]


def test_unclamped_overlap_links_boxes_that_are_apart() -> None:
    # Apart by 9 in both directions: (-9)(-9) / (100 + 100 - 81) = 0.68.
    video = [(0, [[0, 0, 10, 10]], [0.9], [[]]), (1, [[19, 19, 29, 29]], [0.9], [[]])]
    assert [len(path) for path in _run(REFERENCE, video, 0)] == [2]
    assert [len(path) for path in _run(replace(REFERENCE, clamped_iou=True), video, 0)] == [1, 1]


def test_a_box_turned_inside_out_by_motion_overlaps_nothing_it_does_not_reach() -> None:
    # Shrinking from 30 to 12 high in one frame, it is expected to be -6 high.
    video = [
        (76, [[145, 193, 157, 223]], [0.5], [[]]),
        (77, [[143, 201, 173, 213]], [0.5], [[]]),
        (80, [[136, 179, 148, 191]], [0.9], [[]]),
    ]
    config = LinkerConfig.reference("ucf24")
    assert [len(path) for path in _run(config, video, 0)] == [2, 1]


def test_weak_candidates_extend_a_path_together_but_not_alone() -> None:
    two = [[0, 0, 30, 30], [1, 0, 31, 30]]
    together = [_one(0, 0), (1, two, [0.08, 0.07], np.zeros((2, 0)))]
    assert [len(path) for path in _run(REFERENCE, together, 0)] == [2, 1]
    assert [len(path) for path in _run(replace(REFERENCE, edge_rule="best"), together, 0)] == [1, 1, 1]
    assert [len(path) for path in _run(REFERENCE, [_one(0, 0), _one(1, 0, 0.08)], 0)] == [1, 1]


def test_motion_by_time_spans_the_gap_and_motion_by_count_takes_one_step() -> None:
    # Ten pixels a frame, frames 2 and 3 missed: expected at 20 (overlap 0.2) or at 40.
    video = [_one(0, 0), _one(1, 10), _one(4, 40)]
    assert [len(path) for path in _run(REFERENCE, video, 0)] == [2, 1]
    assert [len(path) for path in _run(replace(REFERENCE, motion="time"), video, 0)] == [3]
    assert [len(path) for path in _run(replace(REFERENCE, motion="none"), video, 0)] == [2, 1]


def test_a_path_can_be_continued_for_as_long_as_the_jump_gap() -> None:
    assert [len(path) for path in _run(DEFAULT, [_one(0, 0), _one(4, 0)], 0)] == [2]
    assert [len(path) for path in _run(DEFAULT, [_one(0, 0), _one(5, 0)], 0)] == [1, 1]


def test_rows_are_counted_before_weak_ones_are_left_out() -> None:
    boxes = [[100 * i, 0, 100 * i + 50, 50] for i in range(12)]
    agentness = [0.02] + [0.5] * 11
    numbers = Linker(REFERENCE, 0).update(0, boxes, agentness, np.zeros((12, 0))).numbers
    assert numbers.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1]
    assert (Linker(DEFAULT, 0).update(0, boxes, agentness, np.zeros((12, 0))).numbers >= 0).sum() == 11


def test_the_threshold_is_compared_in_the_precision_of_the_detections() -> None:
    at = float(np.float32(0.025))  # a little more than 0.025
    assert Linker(REFERENCE, 0).update(*_one(0, 0, at)).numbers.tolist() == [-1]
    assert Linker(DEFAULT, 0).update(*_one(0, 0, at)).numbers.tolist() == [0]


def test_empty_frames_age_paths_only_by_default() -> None:
    nothing = (np.zeros((0, 4)), [], np.zeros((0, 0)))
    for config, n_live in ((REFERENCE, 1), (DEFAULT, 0)):
        linker = Linker(config, 0)
        linker.update(*_one(0, 0))
        ended = [path for frame in range(1, 9) for path in linker.update(frame, *nothing).ended]
        assert (linker.n_live, len(ended)) == (n_live, 1 - n_live)


def test_stale_paths_close_in_reversed_order_in_the_reference() -> None:
    boxes = [[100 * i, 0, 100 * i + 50, 50] for i in range(3)]
    video = [(0, boxes, [0.9, 0.8, 0.7], np.zeros((3, 0))), _one(9, 900)]
    assert [path.number for path in _run(REFERENCE, video, 0)] == [2, 1, 0, 3]
    assert [path.number for path in _run(DEFAULT, video, 0)] == [0, 1, 2, 3]


def test_new_paths_stand_last_for_one_frame_in_the_reference() -> None:
    # In frame 1 a stronger path begins; in frame 2 both reach for the same box.
    begin = (1, [[0, 0, 30, 30], [16, 0, 46, 30]], [0.4, 0.9], np.zeros((2, 0)))
    video = [_one(0, 0, 0.4), begin, _one(2, 8, 0.9)]
    for config, expected in ((REFERENCE, {0: [0, 1, 2], 1: [1]}), (DEFAULT, {0: [0, 1], 1: [1, 2]})):
        assert {path.number: path.frames.tolist() for path in _run(config, video, 0)} == expected


def test_the_order_is_by_the_best_scores_or_by_all_of_them() -> None:
    # Path 0 was strong once and weak for long; path 1 is always at 0.5. They meet at the end.
    far = 1000
    video = []
    for frame in range(12):
        boxes = [[0, 0, 30, 30], [far, 0, far + 30, 30]]
        video.append((frame, boxes, [0.9 if frame < 2 else 0.2, 0.5], np.zeros((2, 0))))
    top = replace(REFERENCE, jump_gap=1)
    live = {}
    for name, config in {"top": top, "mean": replace(top, order_key="mean")}.items():
        linker = Linker(config, 0)
        for frame in video:
            linker.update(*frame)
        live[name] = linker.live().number.tolist()
    assert live == {"top": [0, 1], "mean": [1, 0]}


def test_hungarian_gives_every_path_its_own_where_greedy_robs_one() -> None:
    # Path 0 (stronger) reaches both boxes and path 1 only the better one.
    start = (0, [[0, 0, 30, 30], [14, 0, 44, 30]], [0.9, 0.8], np.zeros((2, 0)))
    following = (1, [[8, 0, 38, 30], [-8, 0, 22, 30]], [0.9, 0.8], np.zeros((2, 0)))
    assert sorted(len(path) for path in _run(DEFAULT, [start, following], 0)) == [1, 1, 2]
    together = replace(DEFAULT, assignment="hungarian")
    assert [len(path) for path in _run(together, [start, following], 0)] == [2, 2]


def test_live_paths_show_their_running_labels() -> None:
    linker, video = Linker(DEFAULT, 7), frames(5)
    plain = PlainLinker(DEFAULT)
    for frame in video:
        linker.update(*frame)
        plain.update(*frame)
        live = linker.live(slice(3, 7), k=2)
        assert live.number.tolist() == [path.number for path in plain.live]
        for i, path in enumerate(plain.live):
            means = class_scores(np.array(filled(path).scores, np.float64)[:, 3:7], DEFAULT)
            assert live.label_scores[i] == pytest.approx(np.sort(means)[::-1][:2], abs=1e-6)
            assert means[live.labels[i]] == pytest.approx(live.label_scores[i], abs=1e-6)
            assert live.agentness[i] == pytest.approx(np.mean(path.agentness))
            assert (live.count[i], live.last_frame[i]) == (len(path.frames), path.frames[-1])
            assert linker.path(path.number).frames.tolist() == path.frames


def test_running_labels_follow_the_rule_of_the_config() -> None:
    linker = Linker(REFERENCE, 8)
    for frame, score in enumerate([0.1, 0.9, 0.2]):
        scores = np.zeros((1, 8))
        scores[0, 3], scores[0, 5] = score, 0.5
        linker.update(frame, [[0, 0, 30, 30]], [0.9], scores)
    live = linker.live(k=2)
    assert live.labels.tolist() == [[3, 5]]  # the best 8 // 4 = 2 frames: (0.9 + 0.2) / 2
    assert live.label_scores[0] == pytest.approx([0.55, 0.5])


def test_no_path_lives_before_the_first_frame_and_after_the_last() -> None:
    linker = Linker(DEFAULT, 4)
    assert linker.live().number.shape == (0,)
    linker.update(0, [[0, 0, 1, 1]], [0.5], [[0.1] * 4])
    assert len(linker.finish()) == 1
    assert (linker.n_live, linker.finish()) == (0, ())
    with pytest.raises(InputError, match="no live path has the number 0"):
        linker.path(0)


BOX = [[0.0, 0.0, 10.0, 10.0]]
BAD: dict[str, tuple[Any, ...]] = {
    "comes twice": (5, BOX, [0.5], [[0.5]]),
    "comes after frame 5": (4, BOX, [0.5], [[0.5]]),
    "whole number": (6.5, BOX, [0.5], [[0.5]]),
    "not finite": (6, [[0, 0, np.nan, 1]], [0.5], [[0.5]]),
    "negative width or height": (6, [[0, 10, 10, 0]], [0.5], [[0.5]]),
    "row 0 has an agentness outside": (6, BOX, [np.nan], [[0.5]]),
    "row 1 has an agentness outside": (6, BOX * 2, [0.5, 1.5], [[0.5], [0.5]]),
    "class score outside": (6, BOX, [0.5], [[np.nan]]),
    r"got \(1, 4\), \(2,\) and \(1, 1\)": (6, BOX, [0.5, 0.5], [[0.5]]),
    r"got \(1, 4\), \(1,\) and \(1, 2\)": (6, BOX, [0.5], [[0.5, 0.5]]),
    r"got \(1, 3\)": (6, [[0, 0, 1]], [0.5], [[0.5]]),
    "arrays of numbers": (6, [["a", 0, 1, 1]], [0.5], [[0.5]]),
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_refused_is_named_and_changes_nothing(message: str) -> None:
    linker = Linker(DEFAULT, 1)
    linker.update(5, BOX, [0.5], [[0.5]])
    with pytest.raises(InputError, match=message):
        linker.update(*BAD[message])
    assert linker.update(6, BOX, [0.5], [[0.5]]).numbers.tolist() == [0]


@pytest.mark.parametrize("times", [(None, 1.0), (1.0, None), (1.0, 1.0), (1.0, float("nan"))])
def test_times_are_given_always_and_increase(times: tuple[Any, Any]) -> None:
    linker = Linker(DEFAULT, 1)
    linker.update(0, BOX, [0.5], [[0.5]], t_s=times[0])
    with pytest.raises(InputError, match=r"t_s|time"):
        linker.update(1, BOX, [0.5], [[0.5]], t_s=times[1])


def test_a_first_time_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        Linker(DEFAULT, 1).update(0, BOX, [0.5], [[0.5]], t_s=float("inf"))


@pytest.mark.parametrize("gap", [1, 10, 300])
def test_dropped_frames_close_paths_and_numbers_are_not_used_again(
    gap: int, caplog: pytest.LogCaptureFixture
) -> None:
    linker = Linker(DEFAULT, 0)
    with caplog.at_level(logging.INFO, "roadaware"):
        linker.update(*_one(0, 0))
        update = linker.update(*_one(1 + gap, 0))
    if gap == 1:
        assert (update.began, update.ended, caplog.messages) == ((), (), [])
    else:
        assert (update.began, [path.number for path in update.ended]) == ((1,), [0])
        assert caplog.messages == [f"frames 1 to {gap} did not arrive; 1 paths close"]


def test_a_second_video_starts_afresh() -> None:
    linker = Linker(DEFAULT, 0)
    linker.update(*_one(7, 0), t_s=1.0)
    linker.finish()
    assert linker.update(*_one(0, 0)).began == (1,)


def test_closed_paths_leave_memory() -> None:
    closed: list[int] = []
    linker = Linker(DEFAULT, 20, on_closed=lambda path: closed.append(path.number))
    r = np.random.default_rng(0)
    scores = r.random((10, 20))

    def pass_by(start: int, n: int) -> None:
        for frame in range(start, start + n):
            corner = 200.0 * np.arange(10)[:, None] + np.array([[0, 100 * (frame // 15)]])
            linker.update(frame, np.hstack([corner, corner + 40]), np.full(10, 0.9), scores)

    pass_by(0, 2000)
    tracemalloc.start()
    pass_by(2000, 2000)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(closed) > 2500
    assert grown < 50 * 2000 + 32 * 1400  # per frame, and the numbers kept in this test


def test_growing_arrays_keep_every_path() -> None:
    n = 700
    corner = 50.0 * np.arange(n)[:, None] * [1, 0]
    boxes = np.hstack([corner, corner + 40])
    linker = Linker(DEFAULT, 1)
    for frame in range(3):
        linker.update(frame, boxes, np.linspace(0.9, 0.2, n), np.linspace(0, 1, n)[:, None])
    paths = linker.finish()
    assert [path.number for path in paths] == list(range(n))
    assert all(len(path) == 3 and path.scores[0, 0] == np.float32(path.number / (n - 1)) for path in paths)
