"""The streaming linker: equal to the plain one, quirk by quirk, and safe on whatever a camera does."""

from __future__ import annotations

import logging
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.trackers import FORMER
from detection_sets import frames
from hypothesis import given
from hypothesis import strategies as st
from plain_linker import PlainLinker, assigned, class_scores, filled

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.linking.candidates import assign
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker, Path

REFERENCE, DEFAULT = LinkerConfig.reference(), LinkerConfig.default()
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


@pytest.mark.slow
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


def test_equals_the_plain_linker_with_times() -> None:
    video = frames(3)
    linker, plain = Linker(DEFAULT, 7), PlainLinker(DEFAULT)
    found: list[Path] = []
    for frame, *detections in video:
        found += linker.update(frame, *detections, t_s=0.04 * frame).ended
        plain.update(frame, *detections, t_s=0.04 * frame)
    found += linker.finish()
    assert [path.frames.tolist() for path in found] == [path.frames for path in plain.finish()]


def test_frames_count_as_tenths_of_a_second_without_times() -> None:
    video, linker = frames(3), Linker(DEFAULT, 7, l2_columns=3)
    found = [path for frame in video for path in linker.update(*frame, t_s=0.1 * frame[0]).ended]
    found += linker.finish()
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
    assert [len(path) for path in _run(FORMER, [_one(0, 0), _one(4, 0)], 0)] == [2]
    assert [len(path) for path in _run(FORMER, [_one(0, 0), _one(5, 0)], 0)] == [1, 1]


@pytest.mark.parametrize(
    ("fps", "frame", "n"), [(10, 15, 1), (10, 16, 2), (50, 75, 1), (50, 76, 2), (2, 4, 1), (2, 5, 2)]
)
def test_a_gap_lasts_for_seconds_and_for_no_fewer_than_the_frames(fps: int, frame: int, n: int) -> None:
    linker = Linker(DEFAULT, 0)
    for number in (0, 1, 2, 2 + frame):
        linker.update(*_one(number, 0), t_s=1e9 + number / fps)
    assert len(linker.finish()) + (0 if n == 1 else 1) == n


def test_rows_are_counted_before_weak_ones_are_left_out() -> None:
    boxes = [[100 * i, 0, 100 * i + 50, 50] for i in range(12)]
    agentness = [0.02] + [0.5] * 11
    numbers = Linker(REFERENCE, 0).update(0, boxes, agentness, np.zeros((12, 0))).numbers
    assert numbers.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1]
    assert (Linker(DEFAULT, 0).update(0, boxes, agentness, np.zeros((12, 0))).numbers >= 0).sum() == 11


def test_the_threshold_is_compared_in_the_precision_of_the_detections() -> None:
    at = float(np.float32(0.025))  # a little more than 0.025
    assert Linker(REFERENCE, 0).update(*_one(0, 0, at)).numbers.tolist() == [-1]
    assert Linker(FORMER, 0).update(*_one(0, 0, at)).numbers.tolist() == [0]


def test_empty_frames_age_paths_only_by_default() -> None:
    nothing = (np.zeros((0, 4)), [], np.zeros((0, 0)))
    for config, n_live in ((REFERENCE, 1), (DEFAULT, 0)):
        linker = Linker(config, 0)
        linker.update(*_one(0, 0))
        ended = [path for frame in range(1, 17) for path in linker.update(frame, *nothing).ended]
        assert (linker.n_live, len(ended)) == (n_live, 1 - n_live)


def test_stale_paths_close_in_reversed_order_in_the_reference() -> None:
    boxes = [[100 * i, 0, 100 * i + 50, 50] for i in range(3)]
    video = [(0, boxes, [0.9, 0.8, 0.7], np.zeros((3, 0))), _one(16, 900)]
    assert [path.number for path in _run(REFERENCE, video, 0)] == [2, 1, 0, 3]
    assert [path.number for path in _run(DEFAULT, video, 0)] == [0, 1, 2, 3]


def test_new_paths_stand_last_for_one_frame_in_the_reference() -> None:
    # In frame 1 a stronger path begins; in frame 2 both reach for the same box.
    begin = (1, [[0, 0, 30, 30], [16, 0, 46, 30]], [0.4, 0.9], np.zeros((2, 0)))
    video = [_one(0, 0, 0.4), begin, _one(2, 8, 0.9)]
    for config, expected in ((REFERENCE, {0: [0, 1, 2], 1: [1]}), (FORMER, {0: [0, 1], 1: [1, 2]})):
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
    assert sorted(len(path) for path in _run(FORMER, [start, following], 0)) == [1, 1, 2]
    together = replace(FORMER, assignment="hungarian")
    assert [len(path) for path in _run(together, [start, following], 0)] == [2, 2]


def _walk(linker: Linker, places: dict[int, float], **more: Any) -> list[int]:
    return [int(linker.update(*_one(frame, x), **more).numbers[0]) for frame, x in places.items()]


def test_weak_detections_continue_paths_and_begin_none() -> None:
    linker = Linker(DEFAULT, 0)
    assert linker.update(*_one(0, 0, 0.09)).numbers.tolist() == [-1]
    assert linker.update(*_one(1, 0, 0.9)).began == (0,)
    assert linker.update(*_one(2, 0, 0.09)).numbers.tolist() == [0]
    assert linker.n_live == 1


def test_places_of_detections_on_no_path_are_used_again() -> None:
    linker, boxes = Linker(DEFAULT, 0), [[100 * i, 0, 100 * i + 50, 50] for i in range(100)]
    for frame in range(200):
        linker.update(frame, boxes, [0.05] * 100, np.zeros((100, 0)))
    assert linker.n_live == 0
    assert len(linker._state.rows) == 256


def test_a_double_of_a_found_agent_begins_no_path() -> None:
    linker = Linker(DEFAULT, 0)
    for frame in range(3):
        update = linker.update(frame, [[0, 0, 30, 30], [2, 0, 32, 30]], [0.9, 0.8], np.zeros((2, 0)))
        assert update.numbers.tolist() == [0, -1]


def test_a_path_missed_for_long_is_found_again_where_it_was_going() -> None:
    # 10 pixels a frame for 6 frames, hidden for 9; alone where it is expected, and where it was last.
    walk = {frame: 10.0 * frame for frame in range(6)}
    assert _walk(Linker(DEFAULT, 0), walk | {15: 150.0})[-1] == 0
    assert _walk(Linker(DEFAULT, 0), walk | {15: -60.0})[-1] == 1
    assert _walk(Linker(FORMER, 0), walk | {15: 150.0})[-1] == 1


def test_a_known_camera_is_taken_out_of_the_motion() -> None:
    still, jump = dict.fromkeys(range(5), 0.0), [[1, 0, 200.0], [0, 1, 0]]
    linker = Linker(DEFAULT, 0)
    _walk(linker, still)
    assert linker.update(*_one(5, 200), camera=jump).numbers.tolist() == [0]
    linker = Linker(DEFAULT, 0)
    _walk(linker, still)
    assert linker.update(*_one(5, 200)).numbers.tolist() == [1]
    with pytest.raises(UsageError, match="kalman"):
        Linker(FORMER, 0).update(*_one(0, 0), camera=jump)
    for wrong in ([[1, 0, 0]], [[1, 0, np.nan], [0, 1, 0]], "left"):
        with pytest.raises(InputError, match="camera"):
            linker.update(*_one(6, 200), camera=wrong)


def test_a_camera_that_comes_nearer_scales_boxes_and_speeds() -> None:
    linker = Linker(DEFAULT, 0)
    for frame in range(6):
        linker.update(*_one(frame, 10.0 * frame))
    twice = [[2, 0, 0], [0, 2, 0]]
    # Expected at 60 to 90 before the camera moved, so at 120 to 180 behind it.
    update = linker.update(6, [[120, 0, 180, 60]], [0.9], np.zeros((1, 0)), camera=twice)
    assert update.numbers.tolist() == [0]


def test_embeddings_tell_agents_apart_that_overlap_does_not() -> None:
    looks = np.eye(2, 4)
    both = [[0, 0, 30, 30], [14, 0, 44, 30]]
    for told in (looks, None):
        linker = Linker(DEFAULT, 0, n_embedding=4)
        for frame in range(4):
            linker.update(frame, both, [0.9, 0.9], np.zeros((2, 0)), embeddings=told)
        # Each lies nearer to where the other was.
        found = linker.update(
            4,
            [[8, 0, 38, 30], [6, 0, 36, 30]],
            [0.9, 0.9],
            np.zeros((2, 0)),
            embeddings=told,
        )
        assert found.numbers.tolist() == ([1, 0] if told is None else [0, 1])
    for wrong in (np.eye(2, 3), [[np.inf] * 4] * 2, [["a"] * 4] * 2):
        with pytest.raises(InputError, match="embedding"):
            linker.update(5, both, [0.9, 0.9], np.zeros((2, 0)), embeddings=wrong)


def test_class_scores_tell_agents_apart_that_overlap_does_not() -> None:
    both, kinds = [[0, 0, 30, 30], [14, 0, 44, 30]], [[0.9, 0.0], [0.0, 0.9]]
    linker = Linker(DEFAULT, 2)
    for frame in range(4):
        linker.update(frame, both, [0.9, 0.9], kinds)
    found = linker.update(4, [[8, 0, 38, 30], [6, 0, 36, 30]], [0.9, 0.9], kinds)
    assert found.numbers.tolist() == [0, 1]


@tried(60)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 9), columns=st.integers(0, 9), tied=st.booleans())
def test_the_assignment_has_the_greatest_sum(seed: int, rows: int, columns: int, tied: bool) -> None:
    from scipy.optimize import linear_sum_assignment

    r = np.random.default_rng(seed)
    gain = np.where(r.random((rows, columns)) < 0.5, r.random((rows, columns)), 0.0)
    gain = np.round(gain, 1) if tied else gain
    given = assign(gain)
    assert given.tolist() == assigned(gain)
    used = given[given >= 0]
    assert len(set(used.tolist())) == len(used)
    assert (gain[given >= 0, used] > 0).all()
    most = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert gain[given >= 0, used].sum() == pytest.approx(most)


def test_a_frame_that_is_looked_at_without_success_speaks_against_a_path_of_few_detections() -> None:
    for looked_at, same in ((range(1, 1), True), (range(1, 12), False)):
        linker = Linker(DEFAULT, 0)
        linker.update(*_one(0, 0))
        for frame in looked_at:
            linker.update(frame, [], [], [])
        assert (linker.update(*_one(12, 0)).numbers.tolist() == [0]) == same


def test_boxes_without_a_side_or_of_any_size_do_no_harm() -> None:
    r = np.random.default_rng(0)
    linker = Linker(DEFAULT, 0)
    for frame in range(40):
        low = r.choice([0.0, 1e-300, 1.0, 1e300, -1e300], (6, 2))
        size = r.choice([0.0, 1e-300, 5.0, 1e300], (6, 2))
        linker.update(frame, np.concatenate([low, low + size], axis=1), r.random(6), np.zeros((6, 0)))
    assert sum(len(path) for path in linker.finish()) > 0


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


@pytest.mark.parametrize("gap", [1, 20, 300])
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


@pytest.mark.slow
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
