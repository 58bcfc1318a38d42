"""Kernels and their pieces: compiled once whatever constants they are given, kept, and called by whom they are for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from roadaware.geometry.compiled import inner_kernel, kernel


@inner_kernel
def add_up(values: npt.NDArray[np.float64], start: int, doubled: bool) -> float:
    total = 0.0
    for k in range(start, len(values)):
        total += 2.0 * values[k] if doubled else values[k]
    return total


@kernel
def add_in_three_ways(values: npt.NDArray[np.float64]) -> float:
    start = 0
    while values[start] < 1.0:
        start += 1
    return add_up(values, 0, False) + add_up(values, start, True) + add_up(values, len(values) - 1, start > 0)


def test_a_piece_is_compiled_once_for_constants_and_variables() -> None:
    assert add_in_three_ways(np.array([0.5, 1.0, 2.0])) == 3.5 + 6.0 + 4.0
    assert len(add_up.overloads) <= 1  # none where its caller was kept from an earlier run
    assert add_in_three_ways(np.array([3.0, 1.0])) == 4.0 + 8.0 + 1.0
    assert len(add_up.overloads) <= len(add_in_three_ways.overloads) == 1


def test_a_piece_is_not_called_by_python() -> None:
    add_in_three_ways(np.ones(2))
    for values in (np.ones(2), np.ones(2, dtype=np.float32)):
        with pytest.raises(TypeError, match="add_up is a piece of kernels"):
            add_up(values, 0, True)


def test_what_was_compiled_is_kept_for_the_next_process() -> None:
    add_in_three_ways(np.ones(2))
    again = kernel(add_in_three_ways.py_func)
    assert again(np.array([0.5, 1.0, 2.0])) == 13.5
    assert sum(again.stats.cache_hits.values()) == 1
    assert not again.stats.cache_misses
