"""Labels for paths: the classes with the highest scores over their frames, offline and while they live."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.linking.config import LinkerConfig
from roadaware.linking.paths import Detections, Paths
from roadaware.linking.state import Stream


def select_top_labels(
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
    from roadaware.linking.kernels import CLASS_SCORES, score_classes

    long = np.diff(ends) > config.min_tube_len
    kept = np.concatenate([[0], np.cumsum(np.diff(ends)[long])])
    values = np.zeros((int(long.sum()), len(columns)))
    rule = CLASS_SCORES.index(config.class_score)
    of_long = np.ascontiguousarray(rows[np.repeat(long, np.diff(ends))])
    score_classes(scores, of_long, kept, columns.start, rule, config.single_precision, values)
    best, best_values = _best(values, config.max_labels, config)
    labels = np.full((len(long), best.shape[1]), -1, np.int64)
    labels[long] = best
    label_scores = np.zeros(labels.shape)
    label_scores[long] = best_values
    return labels, label_scores


def _best(values: Floats, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The `k` greatest values of each row and their places; the lower place of equals, unless by build."""
    # `build` leaves ties to numpy's default sort on this machine, as the published code does.
    order = np.argsort(-values, axis=1, kind=None if config.order_ties == "build" else "stable")
    labels = order[:, :k]
    return labels, np.take_along_axis(values, labels, axis=1)


def label_live_paths(state: Stream, columns: range, k: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """The labels of live paths so far, and their scores, best first.

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
        # The same from every detection of the live paths.
        places = [state.places(number) for number in state.numbers.tolist()]
        ends = np.cumsum([0, *(len(found) for found in places)])
        rows = np.concatenate([np.empty(0, np.int64), *places])
        running = replace(config, max_labels=max(k, 1), min_tube_len=0)
        return select_top_labels(state.pool.scores, rows, ends, columns, running)
    paths = state.live.paths[state.slots]
    length = paths[:, LENGTH]
    if config.gaps == "interpolate":
        # Filled frames count too, as `sums` holds what is interpolated.
        length = state.pool.found[paths[:, LAST], FRAME] - paths[:, FIRST_FRAME] + 1
    means = state.live.sums[state.slots, columns.start : columns.stop] / length[:, None]
    return _best(means, k, config)


# Labelled tubes cut from paths: whole, or trimmed by dynamic programming over labels.

# The published code asks for 24 classes where it means UCF101-24.
_UCF24_CLASSES = 24


@dataclass(frozen=True, eq=False)
class Segments:
    """Labelled pieces of paths, path after path.

    Args:
        path: (s,) the path.
        label: (s,).
        first: (s,) place of the first detection within the path.
        last: (s,) place of the last one.
        score: (s,).
    """

    path: Ints
    label: Ints
    first: Ints
    last: Ints
    score: Floats

    def __len__(self) -> int:
        return len(self.path)

    def only(self, kept: npt.NDArray[np.bool_]) -> Segments:
        """Some of the pieces.

        Args:
            kept: (s,).
        """
        return Segments(
            self.path[kept], self.label[kept], self.first[kept], self.last[kept], self.score[kept]
        )


def label_and_trim(paths: Paths, detections: Detections, columns: range, config: LinkerConfig) -> Segments:
    """The tubes of one kind.

    Args:
        paths: of the linker.
        detections: theirs.
        columns: of the class scores that belong to the kind.
        config: the fields on labelling.

    Source: Singh et al., TPAMI 2022, section 4.2; Singh et al., ICCV 2017, for the dynamic programming.
    """
    # The tubes of one kind, with whatever score.
    if config.trim in ("dpscores", "dpscorestopn"):
        found = _trim_together(paths, detections, columns, config)
    else:
        labels, scores = select_top_labels(detections.scores, paths.rows, paths.ends, columns, config)
        if config.trim == "none":
            path, rank = np.nonzero(labels >= 0)
            last = paths.lengths[path] - 1
            found = Segments(path, labels[path, rank], np.zeros_like(path), last, scores[path, rank])
        else:
            found = _trim_each(paths, detections, columns, labels, config)
    if config.min_label_score is None:
        return found
    told = found.score > config.min_label_score
    return found if told.all() else found.only(told)


def _trim_each(
    paths: Paths, detections: Detections, columns: range, labels: Ints, config: LinkerConfig
) -> Segments:
    from roadaware.linking.kernels import trim_each

    found, values = _room(paths, labels.shape[1], config)
    n = trim_each(
        detections.scores,
        detections.agentness,
        paths.rows,
        paths.ends,
        columns.start,
        labels,
        _alphas(len(columns), config),
        _by_agentness(len(columns), config),
        config.min_tube_len,
        config.viterbi_lag,
        config.single_precision,
        found,
        values,
    )
    return _segments(found, values, n)


def _trim_together(paths: Paths, detections: Detections, columns: range, config: LinkerConfig) -> Segments:
    from roadaware.linking.kernels import trim_all

    found, values = _room(paths, config.max_labels, config)
    n = trim_all(
        detections.scores,
        paths.rows,
        paths.ends,
        columns.start,
        len(columns),
        config.max_labels,
        float(config.trim_alpha),
        config.trim == "dpscorestopn",
        config.min_tube_len,
        config.viterbi_lag,
        config.single_precision,
        found,
        values,
    )
    return _segments(found, values, n)


def _alphas(n_labels: int, config: LinkerConfig) -> Floats:
    """The cost of a change for each label."""
    if config.trim_alpha == 0 and len(config.trim_alphas) == n_labels:
        return np.array(config.trim_alphas, np.float64)
    return np.full(n_labels, float(config.trim_alpha))


def _by_agentness(n_labels: int, config: LinkerConfig) -> bool:
    if config.trim_by == "agentness_if_24":
        return n_labels == _UCF24_CLASSES
    return config.trim_by == "agentness"


def _room(paths: Paths, times: int, config: LinkerConfig) -> tuple[Ints, Floats]:
    """Arrays that hold as many segments as there can be."""
    # Segments of more than min_tube_len frames side by side; `dpscorestopn` writes two whatever their length.
    most = np.maximum(2, paths.lengths // (config.min_tube_len + 1) + 1) * times
    size = int(most.sum())
    return np.empty((size, 4), np.int64), np.empty(size)


def _segments(found: Ints, values: Floats, n: int) -> Segments:
    path, label, first, last = np.ascontiguousarray(found[:n].T)
    return Segments(path, label, first, last, values[:n].copy())
