"""Compiled sums in 32 or 64 bits, in the order in which numpy adds; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.geometry.compiled import inner_kernel, kernel

# numpy adds blocks of at most 128 values: another size changes the last digits. Halving leaves two pieces a
# level on the stack, and a length of 64 bits has fewer than 64 levels.
_BLOCK, _DEPTH = 128, 200


@inner_kernel
def round_to_single(value: float, single: bool) -> float:
    """The value as 32 bits hold it: 64-bit arithmetic rounded after each step is 32-bit arithmetic."""
    if single:
        return float(np.float64(np.float32(value)))
    return value


@inner_kernel
def block_sum(values: Floats, start: int, stop: int, single: bool) -> float:
    """The sum of `values[start:stop]`, up to a block of values: in eight columns from eight values on."""
    whole, total = start, 0.0
    if stop - start >= 8:
        whole = stop - (stop - start) % 8
        part = np.empty(8)
        # Eight running sums, then added in pairs: numpy's order, so that means agree to the last bit.
        for i in range(start, whole):
            k = (i - start) % 8
            part[k] = round_to_single(part[k] + values[i], single) if i >= start + 8 else values[i]
        width = 8
        while width > 1:
            width //= 2
            # In place: entries 2 i and 2 i + 1 are read before either of them is written over.
            for i in range(width):
                part[i] = round_to_single(part[2 * i] + part[2 * i + 1], single)
        total = part[0]
    for i in range(whole, stop):
        total = round_to_single(total + values[i], single)
    return total


@kernel
def pairwise_sum(values: Floats, start: int, stop: int, single: bool) -> float:
    """The sum of `values[start:stop]`: longer pieces are halved at a multiple of eight, down to blocks."""
    if stop - start <= _BLOCK:
        return block_sum(values, start, stop, single)
    # Pieces still to be added, the next one last; a piece of length 0 adds the last two sums.
    pieces, sums = np.empty((_DEPTH, 2), np.int64), np.empty(_DEPTH)
    pieces[0, 0], pieces[0, 1] = start, stop
    n_pieces, n_sums = 1, 0
    while n_pieces > 0:
        n_pieces -= 1
        low, high = pieces[n_pieces, 0], pieces[n_pieces, 1]
        if low == high:
            sums[n_sums - 2] = round_to_single(sums[n_sums - 2] + sums[n_sums - 1], single)
            n_sums -= 1
        elif high - low <= _BLOCK:
            sums[n_sums] = block_sum(values, low, high, single)
            n_sums += 1
        else:
            half = (high - low) // 2
            middle = low + half - half % 8
            pieces[n_pieces, 0], pieces[n_pieces, 1] = low, low
            pieces[n_pieces + 1, 0], pieces[n_pieces + 1, 1] = middle, high
            pieces[n_pieces + 2, 0], pieces[n_pieces + 2, 1] = low, middle
            n_pieces += 3
    return float(sums[0])


@kernel
def pairwise_mean(values: Floats, start: int, stop: int, single: bool) -> float:
    """The mean of `values[start:stop]`, which is not empty, added as `pairwise_sum` does."""
    return round_to_single(pairwise_sum(values, start, stop, single) / (stop - start), single)
