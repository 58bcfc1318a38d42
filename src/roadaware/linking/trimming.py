"""Labelled tubes cut from paths: whole, or trimmed by dynamic programming over labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.linking.config import LinkerConfig
from roadaware.linking.labelling import top_labels
from roadaware.linking.paths import Detections, Paths

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
    found = _cut(paths, detections, columns, config)
    if config.min_label_score is None:
        return found
    told = found.score > config.min_label_score
    return found if told.all() else found.only(told)


def _cut(paths: Paths, detections: Detections, columns: range, config: LinkerConfig) -> Segments:
    """The tubes of one kind, with whatever score."""
    if config.trim in ("dpscores", "dpscorestopn"):
        return _trim_together(paths, detections, columns, config)
    labels, scores = top_labels(detections.scores, paths.rows, paths.ends, columns, config)
    if config.trim == "none":
        path, rank = np.nonzero(labels >= 0)
        last = paths.lengths[path] - 1
        return Segments(path, labels[path, rank], np.zeros_like(path), last, scores[path, rank])
    return _trim_each(paths, detections, columns, labels, config)


def _trim_each(
    paths: Paths, detections: Detections, columns: range, labels: Ints, config: LinkerConfig
) -> Segments:
    from roadaware.linking.label_kernels import trim_each

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
    from roadaware.linking.label_kernels import trim_all

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
    most = np.maximum(2, paths.lengths // (config.min_tube_len + 1) + 1) * times
    size = int(most.sum())
    return np.empty((size, 4), np.int64), np.empty(size)


def _segments(found: Ints, values: Floats, n: int) -> Segments:
    path, label, first, last = np.ascontiguousarray(found[:n].T)
    return Segments(path, label, first, last, values[:n].copy())
