"""The span that scores of first and last frames speak for."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError, UsageError

_AT_ONCE = 1 << 22
"""Pairs that are scored at once."""


def decode_span(
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    mask: npt.ArrayLike,
    *,
    frame_ids: npt.ArrayLike | None = None,
    padding: Literal["masked", "reference"] = "masked",
) -> npt.NDArray[np.int64]:
    """(n, 2) the most likely span [start, end) of each sentence, in numbers of frames.

    The probability of a pair is the product of those of its start and of its last frame, which lies behind
    the start; of equal ones the first last frame wins, and for it the first start. Where there is one frame
    only, the span is that frame.

    Args:
        starts: (n, t) logits that a place is the start.
        ends: (n, t) logits that a place is the last frame.
        mask: (n, t) whether a place holds a frame; the others are padding.
        frame_ids: (n, t) the number of each place's frame; 0..t-1 unless told.
        padding: `masked`, padding is never chosen; `reference`, as published: it takes part, and where it
            wins it stands for frame 0.

    Raises:
        InputError: if shapes differ, a logit is not finite, or a sentence has no frame.
        UsageError: if `padding` is another word.

    Source: Yang et al., CVPR 2022, `PostProcessSTVG`, which masks padding only where a video comes twice.

    >>> decode_span([[3.0, 0.0, 0.0, 9.0]], [[0.0, 1.0, 2.0, 9.0]], [[True, True, True, False]])
    array([[0, 3]])
    >>> decode_span([[3.0, 0.0, 0, 0]], [[0.0, 1.0, 2.0, 9.0]], [[1, 1, 1, 0]], padding="reference")
    array([[0, 1]])
    """
    if padding not in ("masked", "reference"):
        raise UsageError(f"padding should be masked or reference; got {padding!r}")
    first, last = _logits(starts, "starts"), _logits(ends, "ends")
    held = np.asarray(mask, dtype=bool)
    numbers = np.arange(first.shape[1]) if frame_ids is None else np.asarray(frame_ids)
    if first.shape != last.shape or first.shape != held.shape:
        raise InputError(
            f"starts {first.shape}, ends {last.shape} and mask {held.shape} should be of one shape"
        )
    try:
        numbers = np.broadcast_to(numbers, first.shape)
    except ValueError as error:
        raise InputError(f"frame_ids {numbers.shape} should be of the shape {first.shape}") from error
    if not held.any(axis=1).all():
        raise InputError(f"sentence {int(np.argmin(held.any(axis=1)))} has no frame: its mask is empty")
    if padding == "masked":
        first, last = np.where(held, first, -np.inf), np.where(held, last, -np.inf)
    else:
        numbers = np.where(held, numbers, 0)
    start, end = _best(_log_softmax(first), _log_softmax(last))
    if padding == "masked":
        alone = held.sum(axis=1) == 1
        start[alone] = end[alone] = held[alone].argmax(axis=1)
    rows = np.arange(len(first))
    return np.column_stack([numbers[rows, start], numbers[rows, end] + 1]).astype(np.int64)


def _logits(values: npt.ArrayLike, name: str) -> npt.NDArray[np.floating[Any]]:
    logits = np.asarray(values)
    logits = logits if np.issubdtype(logits.dtype, np.floating) else logits.astype(np.float64)
    if logits.ndim != 2 or not logits.shape[1]:
        raise InputError(f"{name} should be (sentences, places) with at least one place, not {logits.shape}")
    if not np.isfinite(logits).all():
        raise InputError(f"{name} holds a number that is not finite")
    return logits


def _log_softmax(logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """(n, t) logarithms of probabilities, in the precision that the logits come in."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    shares: npt.NDArray[np.floating[Any]] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shares


def _best(
    starts: npt.NDArray[np.floating[Any]], ends: npt.NDArray[np.floating[Any]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(n,) places of start and last frame; every pair is scored, since rounded sums decide what is equal."""
    n, places = starts.shape
    order = np.tri(places, dtype=bool)
    chosen = np.zeros((2, n), dtype=np.int64)
    step = max(1, _AT_ONCE // places**2)
    for at in range(0, n, step):
        part = slice(at, at + step)
        scores = starts[part, :, None] + ends[part, None, :]
        scores[:, order] = -np.inf
        first = scores.argmax(axis=1)
        best = np.take_along_axis(scores, first[:, None, :], axis=1)[:, 0]
        chosen[1, part] = best.argmax(axis=1)
        chosen[0, part] = first[np.arange(len(best)), chosen[1, part]]
    return chosen[0], chosen[1]
