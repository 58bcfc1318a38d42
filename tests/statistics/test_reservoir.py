"""Reservoirs are uniform; the numbers of continual learning are those of their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from roadaware.statistics.adaptation import (
    average_accuracy,
    backward_transfer,
    choose_slots,
    forgetting,
    forward_transfer,
)


def keep(runs: int, items: int, capacity: int, rng: np.random.Generator) -> np.ndarray:
    """(runs, capacity) what each of many reservoirs holds after so many items, given one by one."""
    held = np.full((runs, capacity), -1)
    for item in range(items):
        slots = choose_slots(np.full(runs, item), capacity, rng)
        taken = np.flatnonzero(slots >= 0)
        held[taken, slots[taken]] = item
    return held


def test_every_set_of_items_is_as_likely() -> None:
    runs = 12_000
    counts = dict.fromkeys(combinations(range(6), 3), 0)
    for row in np.sort(keep(runs, 6, 3, np.random.default_rng(0)), axis=1).tolist():
        counts[tuple(row)] += 1
    expected = runs / len(counts)
    chi2 = sum((n - expected) ** 2 / expected for n in counts.values())
    # The 99.9 percentile of chi-squared with 19 degrees of freedom.
    assert chi2 < 43.8


def test_at_every_moment_the_first_and_the_newest_are_as_likely() -> None:
    runs = 4000
    for items in (4, 9, 40):
        held = np.bincount(keep(runs, items, 4, np.random.default_rng(1)).ravel(), minlength=items)
        assert held / runs == pytest.approx(np.full(items, 4 / items), abs=0.03)


def test_many_reservoirs_at_once_and_what_is_refused() -> None:
    slots = choose_slots([0, 1, 5, 1000], 2, np.random.default_rng(0))
    assert slots[:2].tolist() == [0, 1]
    assert ((slots >= -1) & (slots < 2)).all()
    assert len(choose_slots([], 2, np.random.default_rng(0))) == 0
    with pytest.raises(ValueError, match="1 slot or more"):
        choose_slots([0], 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="0 or more"):
        choose_slots([-1], 2, np.random.default_rng(0))


def test_numbers_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(2)
    for count in (2, 3, 6):
        table = rng.random((count + 1, count))
        fall = gain = ahead = 0.0
        for k in range(count - 1):
            fall += max(table[t][k] for t in range(1, count)) - table[count][k]
            gain += table[count][k] - table[k + 1][k]
        for k in range(1, count):
            ahead += table[k][k] - table[0][k]
        assert float(average_accuracy(table)) == pytest.approx(sum(table[count]) / count)
        assert float(forgetting(table)) == pytest.approx(fall / (count - 1))
        assert float(backward_transfer(table)) == pytest.approx(gain / (count - 1))
        assert float(forward_transfer(table)) == pytest.approx(ahead / (count - 1))
        both = np.stack([table, table[::-1]])
        assert forgetting(both)[0] == pytest.approx(float(forgetting(table)))


def test_one_experience_forgets_nothing_that_could_be_measured() -> None:
    assert np.isnan(forgetting([[0.1], [0.5]]))
    assert np.isnan(forward_transfer([[0.1], [0.5]]))
    assert np.isnan(backward_transfer([[0.1], [0.5]]))
    with pytest.raises(ValueError, match=r"\(\.\.\., T \+ 1, T\)"):
        average_accuracy([[0.1, 0.2]])
