"""Labels for paths: the classes with the highest scores over their frames, offline and while they live."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.linking.config import LinkerConfig
from roadaware.linking.state import Stream


def top_labels(
    scores: Floats32, rows: Ints, ends: Ints, columns: range, config: LinkerConfig
) -> tuple[Ints, Floats]:
    """The labels of each path and their scores, best first.

    Args:
        scores: (r, c) class scores of all detections.
        rows: (n,) rows of `scores`, path after path, each in time.
        ends: (p + 1,) where each path starts and ends in `rows`.
        columns: of the kind to label.
        config: `class_score`, `max_labels`, `min_tube_len`, `order_ties`.

    Returns:
        (p, k) labels, -1 for paths too short for one, and (p, k) scores; k is `max_labels`, or the number
        of classes where that is less (the published code fails there).

    Source: Singh et al., TPAMI 2022, section 4.2; the released code takes the best few frames instead of
        the mean over the tube, as many as a quarter of the number of classes.
    """
    from roadaware.linking.label_kernels import CLASS_SCORES, class_scores

    long = np.diff(ends) > config.min_tube_len
    kept = np.concatenate([[0], np.cumsum(np.diff(ends)[long])])
    values = np.zeros((int(long.sum()), len(columns)))
    rule = CLASS_SCORES.index(config.class_score)
    of_long = np.ascontiguousarray(rows[np.repeat(long, np.diff(ends))])
    class_scores(scores, of_long, kept, columns.start, rule, config.single_precision, values)
    best, best_values = _best(values, config.max_labels, config)
    labels = np.full((len(long), best.shape[1]), -1, np.int64)
    labels[long] = best
    label_scores = np.zeros(labels.shape)
    label_scores[long] = best_values
    return labels, label_scores


def _best(values: Floats, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The `k` greatest values of each row and their places; the lower place of equals, unless by build."""
    order = np.argsort(-values, axis=1, kind=None if config.order_ties == "build" else "stable")
    labels = order[:, :k]
    return labels, np.take_along_axis(values, labels, axis=1)


def running_labels(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The labels of live paths as far as they have come, and their scores, best first.

    Args:
        state: of a linker.
        columns: of the kind to label.
        k: labels per path.
        config: `class_score` and `min_label_score`.

    Returns:
        (m, k) labels, -1 where a score is not above `min_label_score`, and (m, k) scores; fewer where there
        are fewer classes.
    """
    labels, scores = _running(state, columns, min(k, len(columns)), config)
    floor = config.min_label_score
    return labels if floor is None else np.where(scores > floor, labels, -1), scores


def _running(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The same with whatever score."""
    from roadaware.linking.candidates import FIRST_FRAME, FRAME, LAST, LENGTH

    if config.class_score != "mean":
        return _from_detections(state, columns, k, config)
    paths = state.live.paths[state.slots]
    length = paths[:, LENGTH]
    if config.gaps == "interpolate":
        length = state.pool.found[paths[:, LAST], FRAME] - paths[:, FIRST_FRAME] + 1
    means = state.live.sums[state.slots, columns.start : columns.stop] / length[:, None]
    return _best(means, k, config)


def _from_detections(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The same from every detection of the live paths."""
    from dataclasses import replace

    places = [state.places(number) for number in state.numbers.tolist()]
    ends = np.cumsum([0, *(len(found) for found in places)])
    rows = np.concatenate([np.empty(0, np.int64), *places])
    running = replace(config, max_labels=max(k, 1), min_tube_len=0)
    return top_labels(state.pool.scores, rows, ends, columns, running)
