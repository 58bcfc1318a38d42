"""Two runs of work at once: who is told of faults, and that nothing goes on behind the caller's back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from roadaware.tasks.crossing_inputs.crops import StoppedError, run_concurrently, split_halves


def test_halves_are_runs_that_cost_about_the_same() -> None:
    assert split_halves([7], [5]) == ([7], [])
    assert split_halves([1, 2], [9, 1]) == ([1], [2])
    assert split_halves([1, 2, 3, 4], [1, 1, 1, 1]) == ([1, 2], [3, 4])
    assert split_halves([1, 2, 3, 4], [1, 1, 1, 9]) == ([1, 2, 3], [4])


def test_both_runs_are_done_in_order_and_in_two_threads() -> None:
    done: dict[int, list[int]] = {}
    meet = threading.Barrier(2, timeout=60)  # passes only if both are at work at the same time

    def work(numbers: Sequence[int], stop: threading.Event) -> None:
        meet.wait()
        done[threading.get_ident()] = list(numbers)

    run_concurrently([1, 2], [3, 4], work)
    assert done.pop(threading.get_ident()) == [1, 2]
    assert list(done.values()) == [[3, 4]]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_a_fault_of_the_first_run_stops_the_second_and_is_told(fault: type[BaseException]) -> None:
    ended = []
    begun = threading.Event()

    def work(numbers: Sequence[int], stop: threading.Event) -> None:
        if numbers == [1]:
            assert begun.wait(60)
            raise fault
        begun.set()
        assert stop.wait(60)
        ended.append(True)
        raise StoppedError

    with pytest.raises(fault):
        run_concurrently([1], [2], work)
    assert ended == [True]


def test_a_fault_of_the_second_run_is_told_once_the_first_is_done_and_only_where_it_was_needed() -> None:
    done = []

    def work(numbers: Sequence[int], stop: threading.Event) -> None:
        if numbers == [2]:
            raise ValueError("two")
        done.append(list(numbers))

    with pytest.raises(ValueError, match="two"):
        run_concurrently([1], [2], work)
    run_concurrently([1], [2], work, needed=False)
    run_concurrently([1], [], work)
    assert done == [[1], [1], [1]]
