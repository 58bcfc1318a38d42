"""Tubes as runs of shared boxes, and their overlaps, against sets of frames in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.geometry.boxes import Tubes, compute_tube_overlaps, from_runs


def tubes(runs: list[list[tuple[int, int]]], video: list[int] | None = None, rows: int = 40) -> Tubes:
    """Tubes over one array of boxes whose row k lies in frame k and is (0, 0, k + 1, 10)."""
    boxes = np.array([[0.0, 0.0, k + 1.0, 10.0] for k in range(rows)])
    flat = [run for held in runs for run in held]
    owner = [k for k, held in enumerate(runs) for _ in held]
    videos = np.array(video or [0] * len(runs), dtype=np.int64)
    pairs = np.array(flat, dtype=np.int64).reshape(-1, 2)
    return from_runs(boxes, np.arange(rows), pairs, np.array(owner, dtype=np.int64), videos)


def test_boxes_are_shared_and_runs_may_be_empty() -> None:
    made = tubes([[(0, 3), (5, 6)], [], [(4, 4)], [(0, 3)]])
    assert made.frames.tolist() == [0, 1, 2, 5, 0, 1, 2]
    assert made.lengths.tolist() == [4, 0, 0, 3]
    assert len(made.boxes) == 40


def test_a_start_numbers_the_frames_anew() -> None:
    boxes, one = np.zeros((6, 4)), np.array([0, 0])
    runs = np.array([[0, 2], [4, 6]])
    made = from_runs(boxes, np.arange(6), runs, one, np.array([0]), start=np.array([7]))
    assert made.frames.tolist() == [7, 8, 9, 10]
    assert made.rows.tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize("runs", [[(0, 3), (2, 5)], [(4, 5), (0, 2)]])
def test_a_frame_twice_names_the_tube(runs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="a frame twice") as caught:
        tubes([[(0, 1)], runs])
    assert caught.value.args[1] == 1


def test_tubes_of_different_videos_never_meet() -> None:
    a = tubes([[(0, 4)], [(0, 4)]], video=[0, 3])
    b = tubes([[(0, 4)], [(2, 4)], [(0, 4)]], video=[1, 0, 0])
    pairs = compute_tube_overlaps(a, b)
    assert pairs.first.tolist() == [0, 0]
    assert pairs.second.tolist() == [1, 2]
    assert pairs.temporal.tolist() == [0.5, 1.0]


def test_nothing_meets_nothing() -> None:
    for a, b in ((tubes([]), tubes([[(0, 4)]])), (tubes([[(0, 4)]]), tubes([])), (tubes([[]]), tubes([[]]))):
        assert len(compute_tube_overlaps(a, b).second) == 0


def test_boxes_without_area_overlap_nothing_unless_their_pixel_counts() -> None:
    boxes, runs, one = np.array([[5.0, 5.0, 5.0, 5.0]]), np.array([[0, 1]]), np.array([0])
    point = from_runs(boxes, np.array([0]), runs, one, one)
    assert compute_tube_overlaps(point, point).spatial.tolist() == [0.0]
    assert compute_tube_overlaps(point, point, pixel_offset=1.0).spatial.tolist() == [1.0]


def test_an_unknown_time_is_refused() -> None:
    with pytest.raises(ValueError, match="time should be one of frames, endpoints"):
        compute_tube_overlaps(tubes([]), tubes([]), time="seconds")


SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=3)


def spread(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs that follow each other: gaps and lengths as drawn."""
    runs, at = [], 0
    for gap, length in spans:
        runs.append((at + gap, at + gap + length))
        at += gap + length
    return runs


@given(st.lists(SPANS, max_size=4), st.lists(SPANS, max_size=4))
def test_time_of_frame_sets_is_what_sets_say(
    a: list[list[tuple[int, int]]], b: list[list[tuple[int, int]]]
) -> None:
    runs = [[spread(spans) for spans in part] for part in (a, b)]
    sets = [[{k for low, high in held for k in range(low, high)} for held in part] for part in runs]
    pairs = compute_tube_overlaps(tubes(runs[0], rows=60), tubes(runs[1], rows=60))
    found = dict(
        zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.temporal, strict=True)
    )
    for i, left in enumerate(sets[0]):
        for j, right in enumerate(sets[1]):
            wanted = len(left & right) / len(left | right) if left & right else 0.0
            assert found.pop((i, j), 0.0) == pytest.approx(wanted)
    assert not found


@given(st.lists(SPANS, min_size=1, max_size=4))
def test_without_holes_every_time_is_the_same_and_overlap_is_symmetric(
    spans: list[list[tuple[int, int]]],
) -> None:
    runs = [[(held[0][0], held[0][0] + held[0][1])] if held else [(2, 5)] for held in spans]
    a, b = tubes(runs), tubes(runs[::-1])
    plain = compute_tube_overlaps(a, b)
    for time in ("endpoints", "endpoints_always"):
        other = compute_tube_overlaps(a, b, time=time)
        assert other.temporal == pytest.approx(plain.temporal)
        assert other.spatial == pytest.approx(plain.spatial)
    back = compute_tube_overlaps(b, a)
    forth = sorted(zip(plain.first, plain.second, plain.temporal, plain.spatial, strict=True))
    turned = sorted(zip(back.second, back.first, back.temporal, back.spatial, strict=True))
    assert np.array(forth) == pytest.approx(np.array(turned))
