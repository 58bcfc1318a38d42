"""Compiled steps of `Steady` networks, and the sum over boosted trees."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.geometry.compiled import inner_kernel, kernel
from roadaware.models.crossing.entries import LEAST, LOG_WIDTHS


@kernel
def add_leaves(
    feature: npt.NDArray[np.int32],
    threshold: Floats,
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    missing_left: Bools,
    value: Floats,
    depth: int,
    x: Floats,
    raw: Floats,
) -> None:
    """Add to each score the value of the leaf that each sample falls into, tree by tree.

    Args:
        feature, threshold, left, right, missing_left, value: (rounds, k, nodes), see `tabular.export`; nothing is
            checked.
        depth: of the longest path: a damaged tree that leads in a circle ends too.
        x: (n, f), NaN where unknown.
        raw: (n, k), added to.
    """
    rounds, scores, _ = feature.shape
    for row in range(len(x)):
        for r in range(rounds):
            for k in range(scores):
                node = 0
                for _ in range(depth):
                    seen = x[row, feature[r, k, node]]
                    # Where scikit-learn sends NaN was learnt with the split.
                    goes_left = missing_left[r, k, node] if np.isnan(seen) else seen <= threshold[r, k, node]
                    node = left[r, k, node] if goes_left else right[r, k, node]
                raw[row, k] += value[r, k, node]


_NARROWEST, _WIDEST = LOG_WIDTHS


class Weights(NamedTuple):
    """Weights of M networks of the same sizes; L convolutions, d inputs, width w.

    Args:
        mean, spread: (M, d) that inputs are standardised by.
        into, into_bias: (M, d, w) and (M, w), the first layer.
        out, out_bias: (M, w, w) and (M, w), the second one.
        gain, shift: (M, L + 1, w) of layer norms, the one behind all convolutions last.
        mix, mix_bias: (M, L, kernel, w, w) and (M, L, w), oldest frame first.
        dilations: (L,).
    """

    mean: Floats32
    spread: Floats32
    into: Floats32
    into_bias: Floats32
    out: Floats32
    out_bias: Floats32
    gain: Floats32
    shift: Floats32
    mix: Floats32
    mix_bias: Floats32
    dilations: Ints


@kernel
def update_recurrent_state(
    held: Weights, state: Floats32, rows: Ints, frames: Floats32, seen: Floats32
) -> None:
    """Update the state, and write the embeddings of the newest frame.

    Args:
        held: the networks.
        state: (M, R, sum of 1 + (kernel - 1) dilation, w) what each convolution has read, one convolution
            behind the other, oldest first; changed.
        rows: (B,) which of the R rows.
        frames: (B, k, d) at least one more frame; NaN stands for the mean.
        seen: (M, R, w) is written to in these rows.
    """
    networks, taps, width = held.mix.shape[0], held.mix.shape[2], held.mix.shape[3]
    given = np.empty(frames.shape[2], np.float32)
    x, mixed = np.empty(width, np.float32), np.empty(width, np.float32)
    for m in range(networks):
        for b in range(len(rows)):
            for k in range(frames.shape[1]):
                for d in range(len(given)):
                    value = (frames[b, k, d] - held.mean[m, d]) / held.spread[m, d]
                    # What is unknown becomes the mean of training, which is 0 here.
                    given[d] = np.float32(0) if np.isnan(value) else value
                for w in range(width):
                    mixed[w] = held.into_bias[m, w]
                _multiply(given, held.into[m], mixed)
                _gelu(mixed)
                for w in range(width):
                    x[w] = held.out_bias[m, w]
                _multiply(mixed, held.out[m], x)
                begin = 0
                for layer in range(len(held.dilations)):
                    apart = held.dilations[layer]
                    read = state[m, rows[b], begin : begin + 1 + (taps - 1) * apart]
                    for at in range(len(read) - 1):
                        for w in range(width):
                            read[at, w] = read[at + 1, w]
                    _normal(x, held.gain[m, layer], held.shift[m, layer], read[-1])
                    for w in range(width):
                        mixed[w] = held.mix_bias[m, layer, w]
                    for tap in range(taps):
                        _multiply(read[tap * apart], held.mix[m, layer, tap], mixed)
                    _gelu(mixed)
                    for w in range(width):
                        x[w] += mixed[w]
                    begin += len(read)
            _normal(x, held.gain[m, -1], held.shift[m, -1], seen[m, rows[b]])


@kernel
def compute_region_log_probs(
    seen: Floats32, matrix: Floats32, bias: Floats32, place: Floats32, regions: int
) -> Floats32:
    """(B, regions) log shares of the regions, as `networks.whereabouts.Whereabouts` has them.

    Args:
        seen: (B, w).
        matrix, bias: (w, 3 p) and (3 p,) of p components: weights, offsets and log widths.
        place: (B,) where the centre of each box is, in widths of the image.
        regions: how many there are.
    """
    places = len(bias) // 3
    logits, found = np.empty(3 * places, np.float32), np.empty((len(seen), regions), np.float32)
    for b in range(len(seen)):
        for at in range(3 * places):
            logits[at] = bias[at]
        _multiply(seen[b], matrix, logits)
        # The largest is taken off before the exponential, so that nothing overflows.
        most, total = -np.inf, 0.0
        for at in range(places):
            most = max(most, logits[at])
        for at in range(places):
            total += math.exp(logits[at] - most)
        for region in range(regions):
            share = 0.0
            for at in range(places):
                width = math.exp(min(max(logits[2 * places + at], _NARROWEST), _WIDEST))
                centre = place[b] + logits[places + at]
                below = 1.0 / (1.0 + math.exp((centre - region / regions) / width)) if region else 0.0
                above = 1.0
                if region < regions - 1:
                    above = 1.0 / (1.0 + math.exp((centre - (region + 1) / regions) / width))
                share += (above - below) * math.exp(logits[at] - most) / total
            found[b, region] = math.log(share + LEAST)
    return found


@inner_kernel
def _multiply(x: Floats32, matrix: Floats32, out: Floats32) -> None:
    """Add the product of (n,) and (n, w) to (w,); four rows at a time, so that less is written."""
    at = 0
    while at + 4 <= len(x):
        a, b, c, d = x[at], x[at + 1], x[at + 2], x[at + 3]
        for w in range(len(out)):
            first = a * matrix[at, w] + b * matrix[at + 1, w]
            out[w] += first + (c * matrix[at + 2, w] + d * matrix[at + 3, w])
        at += 4
    while at < len(x):
        for w in range(len(out)):
            out[w] += x[at] * matrix[at, w]
        at += 1


@inner_kernel
def _gelu(x: Floats32) -> None:
    """In place, with the error function."""
    for w in range(len(x)):
        # 1 / sqrt(2).
        x[w] = x[w] * np.float32(0.5) * np.float32(1.0 + math.erf(x[w] * 0.7071067811865476))


@inner_kernel
def _normal(x: Floats32, gain: Floats32, shift: Floats32, out: Floats32) -> None:
    """The layer norm of (w,)."""
    mean, square = np.float32(0), np.float32(0)
    for w in range(len(x)):
        mean += x[w]
    mean /= np.float32(len(x))
    for w in range(len(x)):
        square += (x[w] - mean) * (x[w] - mean)
    # 1e-5 is the eps of torch's LayerNorm, which the weights were trained with.
    scale = np.float32(1) / np.sqrt(square / np.float32(len(x)) + np.float32(1e-5))
    for w in range(len(x)):
        out[w] = (x[w] - mean) * scale * gain[w] + shift[w]
