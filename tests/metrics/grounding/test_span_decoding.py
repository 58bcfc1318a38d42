from __future__ import annotations

import math

import numpy as np
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics import grounding
from roadaware.metrics.grounding import decode_span


def plain(starts: list[float], ends: list[float], frames: list[int]) -> tuple[int, int]:
    """Every pair in turn; of equal ones the first last frame, and for it the first start."""
    whole = [math.log(sum(math.exp(value) for value in part)) for part in (starts, ends)]
    best, chosen = -math.inf, (0, 0)
    for last in range(len(ends)):
        for first in range(last):
            value = (starts[first] - whole[0]) + (ends[last] - whole[1])
            if value > best:
                best, chosen = value, (first, last)
    return frames[chosen[0]], frames[chosen[1]] + 1


@pytest.mark.parametrize("seed", range(4))
def test_masked_decoding_is_the_plain_search_among_frames(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, t = 12, 30
    starts, ends = rng.normal(size=(n, t)), rng.normal(size=(n, t))
    lengths = rng.integers(2, t + 1, size=n)
    mask = np.arange(t) < lengths[:, None]
    frames = np.cumsum(rng.integers(1, 9, size=(n, t)), axis=1)
    found = decode_span(starts, ends, mask, frame_ids=frames)
    for row, length in enumerate(lengths):
        held = slice(0, length)
        expected = plain(list(starts[row, held]), list(ends[row, held]), list(frames[row, held]))
        assert tuple(found[row]) == expected


def test_ties_go_to_the_first_last_frame_and_then_to_the_first_start() -> None:
    flat = np.zeros((1, 4), dtype=np.float32)
    assert decode_span(flat, flat, np.ones((1, 4), bool)).tolist() == [[0, 2]]
    starts = np.array([[0.0, 5.0, 5.0, 0.0]])
    ends = np.array([[0.0, 0.0, 0.0, 5.0]])
    assert decode_span(starts, ends, np.ones((1, 4), bool)).tolist() == [[1, 4]]


def test_logits_are_judged_in_the_precision_that_they_come_in() -> None:
    whole = np.ones((1, 4), bool)
    starts = np.array([[0.0, 0.0, 0.0, 100.0]], dtype=np.float32)
    ends = np.array([[0.0, 0.0, 1.0, np.nextafter(np.float32(1), np.float32(2))]], dtype=np.float32)
    # The better last frame is lost where sums are rounded to single precision.
    assert decode_span(starts, ends, whole).tolist() == [[0, 3]]
    assert decode_span(starts.astype(np.float64), ends.astype(np.float64), whole).tolist() == [[0, 4]]
    for kind in (np.uint8, np.int64, bool):
        starts, ends = np.array([[0, 1, 0]]).astype(kind), np.array([[0, 0, 1]]).astype(kind)
        assert decode_span(starts, ends, whole[:, :3]).tolist() == [[1, 3]]


def test_large_logits_do_not_overflow() -> None:
    starts, ends = np.array([[0.0, 900.0, -900.0, 0.0]]), np.array([[0.0, 900.0, -900.0, 800.0]])
    assert decode_span(starts, ends, np.ones((1, 4), bool)).tolist() == [[1, 4]]


def test_padding_never_wins_unless_asked_for() -> None:
    starts = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    ends = np.array([[0.0, 1.0, 2.0, 0.0, 7.0]])
    mask = np.array([[True, True, True, False, False]])
    frames = np.array([[10, 15, 20, 99, 99]])
    assert decode_span(starts, ends, mask, frame_ids=frames).tolist() == [[10, 21]]
    published = decode_span(starts, ends, mask, frame_ids=frames, padding="reference")
    assert published.tolist() == [[10, 1]]  # padding stands for frame 0: the span ends before it starts


def test_without_padding_both_are_the_same() -> None:
    rng = np.random.default_rng(5)
    starts, ends = rng.normal(size=(2, 50, 20)).astype(np.float32)
    whole = np.ones((50, 20), dtype=bool)
    np.testing.assert_array_equal(
        decode_span(starts, ends, whole), decode_span(starts, ends, whole, padding="reference")
    )


def test_what_padding_holds_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    starts, ends = rng.normal(size=(2, 20, 15))
    mask = np.arange(15) < rng.integers(1, 16, size=20)[:, None]
    before = decode_span(starts, ends, mask)
    noisy = [np.where(mask, part, rng.normal(scale=50, size=part.shape)) for part in (starts, ends)]
    np.testing.assert_array_equal(decode_span(*noisy, mask), before)


def test_one_frame_is_its_own_span() -> None:
    alone = np.array([[False, True, False]])
    assert decode_span(np.zeros((1, 3)), np.zeros((1, 3)), alone, frame_ids=[[4, 8, 12]]).tolist() == [[8, 9]]


def test_many_sentences_are_decoded_in_parts_alike() -> None:
    rng = np.random.default_rng(7)
    starts, ends = rng.normal(size=(2, 260, 200)).astype(np.float32)
    whole = np.ones((260, 200), dtype=bool)
    rows = np.vstack([decode_span(starts[i : i + 1], ends[i : i + 1], whole[:1]) for i in range(0, 260, 13)])
    np.testing.assert_array_equal(decode_span(starts, ends, whole)[::13], rows)


def test_one_sentence_may_have_more_pairs_than_are_scored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, ends = np.random.default_rng(8).normal(size=(2, 5, 12))
    whole = np.ones((5, 12), dtype=bool)
    expected = decode_span(starts, ends, whole)
    monkeypatch.setattr(grounding, "_AT_ONCE", 100)
    np.testing.assert_array_equal(decode_span(starts, ends, whole), expected)


def test_what_cannot_be_decoded_is_refused() -> None:
    whole = np.ones((1, 3), bool)
    with pytest.raises(InputError, match="of one shape"):
        decode_span(np.zeros((1, 3)), np.zeros((1, 4)), whole)
    with pytest.raises(InputError, match="of one shape"):
        decode_span(np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 4), bool))
    with pytest.raises(InputError, match="starts should be"):
        decode_span([0.0, 0.0], [0.0, 0.0], [True, True])
    with pytest.raises(InputError, match="not finite"):
        decode_span([[0.0, math.nan, 0.0]], np.zeros((1, 3)), whole)
    with pytest.raises(InputError, match="sentence 0 has no frame"):
        decode_span(np.zeros((1, 3)), np.zeros((1, 3)), ~whole)
    with pytest.raises(InputError, match="sentence 1 has no frame"):
        decode_span(np.zeros((2, 3)), np.zeros((2, 3)), np.vstack([whole, ~whole]))
    with pytest.raises(InputError, match="frame_ids"):
        decode_span(np.zeros((1, 3)), np.zeros((1, 3)), whole, frame_ids=[[1, 2]])
    with pytest.raises(InputError, match="at least one place"):
        decode_span(np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 0), bool))
    with pytest.raises(UsageError, match="padding"):
        decode_span(np.zeros((1, 3)), np.zeros((1, 3)), whole, padding="none")  # type: ignore[arg-type]
