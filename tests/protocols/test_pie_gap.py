"""Who lacks samples: every choice tried one by one gives what the prefix sums give."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.iv2024 import compute_ranges, count_missing, drop_last, find_gap
from roadaware.protocols.printed_iv2024 import TABLE_I

SIZES, CLASSES = [5, 8, 3, 4, 6, 2], [1, 0, 1, 1, 2, 1]
CONFIG = PedestrianConfig.reference("intention")


@pytest.fixture
def samples():
    tube = np.repeat(np.arange(10, 16), SIZES)
    return pl.DataFrame({"sample": range(len(tube)), "tube": tube, "label": np.repeat(CLASSES, SIZES)})


@pytest.fixture
def scores(samples):
    rows = np.random.default_rng(5).random((len(samples) - 3, 3))
    return rows / rows.sum(axis=1, keepdims=True)


def jumps(sizes, scores):
    total, start = 0.0, 0
    for size in sizes:
        total += np.abs(np.diff(scores[start : start + size], axis=0)).sum()
        start += size
    return total


def test_the_jumps_of_every_choice_and_their_order(samples, scores):
    gap = find_gap(samples, scores)
    # Unsure pedestrians with more than three samples: 10 (5 samples) and 13 (4 samples).
    shorter = {tube: [n - 3 * (tube == 10 + i) for i, n in enumerate(SIZES)] for tube in (10, 13)}
    expected = {tube: jumps(sizes, scores) for tube, sizes in shorter.items()}
    assert gap.missing == 3
    assert dict(zip(gap.tubes.tolist(), gap.jumps, strict=True)) == pytest.approx(expected)
    assert gap.declared == min(expected, key=expected.get)
    assert gap.jumps[0] <= gap.jumps[1]


def test_the_true_gap_makes_scores_jump_least(samples):
    truth = drop_last(samples, 13, 3)
    level = {10: 0.1, 11: 0.9, 12: 0.2, 13: 0.8, 14: 0.3, 15: 0.7}
    first = np.array([level[tube] for tube in truth["tube"]])
    scores = np.stack([first, (1 - first) / 2, (1 - first) / 2], axis=1)
    gap = find_gap(samples, scores)
    assert gap.declared == 13
    assert gap.jumps[0] == pytest.approx(0)


def test_the_last_samples_of_one_pedestrian_are_left_out(samples):
    kept = drop_last(samples, 13, 3)
    assert kept.group_by("tube", maintain_order=True).len()["len"].to_list() == [5, 8, 3, 1, 6, 2]
    assert set(samples["sample"]) - set(kept["sample"]) == {17, 18, 19}


def test_ranges_cover_every_choice(samples, scores):
    gap = find_gap(samples, scores)
    groups = np.where(samples["sample"].to_numpy() % 2, "odd", "even").astype(object)
    found = compute_ranges(samples, scores, gap, CONFIG, groups)
    values = []
    for tube in (10, 13):
        held = drop_last(samples, tube, 3)
        state = SampleScores(scores, held["label"].to_numpy(), held["tube"].cast(pl.String).to_numpy())
        place = held["sample"].to_numpy()
        values.append(evaluate_samples(state, CONFIG, groups=groups[place]))
    for group, metric in [(None, "accuracy"), ("odd", "average_precision"), ("even", "hard_f1")]:
        each = [result.value(metric, group) for result in values]
        assert found[group, metric] == (min(each), max(each))


def test_scores_of_another_length_are_refused(samples, scores):
    with pytest.raises(InputError, match="25 rows of scores for 28 samples"):
        find_gap(samples.with_columns(label=pl.lit(0)), scores)
    with pytest.raises(InputError, match="28 rows of scores for 28 samples"):
        find_gap(samples, np.full((28, 3), 1 / 3))


@pytest.mark.parametrize(("beyond", "gap"), [((0, 3, 0), 3), ((0, 0, 0), 0), ((1, 3, 0), 0), ((0, 3, -2), 0)])
def test_the_printed_gap_is_of_unsure_intention_alone(beyond, gap):
    counts = np.add(TABLE_I["pie", "intention"]["test"], beyond)
    assert count_missing(pl.DataFrame({"label": np.repeat(range(3), counts)})) == gap
