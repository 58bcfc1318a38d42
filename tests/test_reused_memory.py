"""Memory that is used again: no values change while anything refers to them, and no more is kept than stated."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from roadaware import arrays
from roadaware.arrays import allocate
from roadaware.corner_cases.captures import Camera, Capture
from roadaware.corner_cases.copg import extract_geometry


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_kept", arrays._Kept())


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    first = allocate((100, 1000), np.float32)
    place = first.ctypes.data
    assert (first.shape, first.dtype, first.flags.c_contiguous, first.flags.writeable) == (
        (100, 1000), np.float32, True, True,
    )  # fmt: skip
    assert allocate(100_000, np.float32).ctypes.data != place
    view = first[5:7].T[::2]
    del first
    assert allocate(100_000, np.float32).ctypes.data != place
    del view
    assert allocate(50_000, np.float64).ctypes.data == place
    # A much smaller array takes no large memory.
    assert allocate(20_000, np.float32).ctypes.data != place


def test_what_is_held_keeps_its_values() -> None:
    rng = np.random.default_rng(0)
    held: list[tuple[np.ndarray, int]] = []
    for n in range(400):
        some = allocate(int(rng.integers(20_000, 60_000)), np.float32)
        some[:] = n
        held.append((some[rng.integers(0, 100) :], n))
        if rng.random() < 0.7:
            held.pop(int(rng.integers(len(held))))
        assert all((values == number).all() for values, number in held[-20:])
    assert all((values == number).all() for values, number in held)


def test_no_more_is_kept_than_stated_and_threads_keep_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_MOST_BYTES", 1 << 20)
    held = [allocate(1 << 18, np.uint8) for _ in range(9)]
    assert sum(map(len, arrays._kept.held)) <= 1 << 20
    assert len({each.ctypes.data for each in held}) == 9
    place = held.pop().ctypes.data
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(allocate(1 << 18, np.uint8).ctypes.data))
    thread.start()
    thread.join()
    assert found[0] != place
    assert allocate(1 << 18, np.uint8).ctypes.data == place
    assert allocate(10, np.float64).base is None


def test_the_geometry_of_one_sweep_stays_while_others_are_computed() -> None:
    rng = np.random.default_rng(1)
    around, down = np.meshgrid(np.linspace(-np.pi, np.pi, 900, endpoint=False), np.linspace(0.03, -0.4, 40))
    camera = Camera(np.eye(3), np.eye(4), 100, 100)

    def sweep() -> Capture:
        ranges = np.minimum(1.8 / np.maximum(-np.sin(down), 1e-3), 40 + rng.uniform(0, 2, down.shape))
        rays = np.stack([np.cos(down) * np.cos(around), np.cos(down) * np.sin(around), np.sin(down)], -1)
        return Capture((rays * ranges[..., None]).reshape(-1, 3).astype(np.float32), camera)

    first = extract_geometry(sweep())
    kept = [
        first.image.copy(),
        first.grid.ranges.copy(),
        first.ground.heights.copy(),
        first.clusters.of_return.copy(),
    ]
    kept += [first.ground.removed.copy(), first.grid.row.copy(), first.others[0].clusters.of_return.copy()]
    for _ in range(5):
        extract_geometry(sweep())
    now = [first.image, first.grid.ranges, first.ground.heights, first.clusters.of_return]
    now += [first.ground.removed, first.grid.row, first.others[0].clusters.of_return]
    for before, after in zip(kept, now, strict=True):
        np.testing.assert_array_equal(before, after)
