"""The consensus IoU of each claimed map, and of the answers that anybody could give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.sound.config import SoundConfig
from roadaware.metrics.sound.maps import claimed_cells, map_chunks, scaled_maps
from roadaware.metrics.sound.truth import SoundTruth

_SOUNDS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class SoundOverlaps:
    """What each of n sounds was judged by.

    Args:
        ciou: (n,) consensus IoU; 0 without a claim, NaN where truth and claim are both empty.
        claimed: (n,) whether there is a map.
        constant: (n,) whether it has one value only.
        cells: (n,) how many cells it claims.
        true_cells: (n,) what the truth's cells are worth together.
        whole: (n,) the consensus IoU of the whole picture.
        centre: (n,) that of the middle half of both sides.
        sizes: `height x width` of maps to how many there are.
    """

    ciou: Floats
    claimed: Bools
    constant: Bools
    cells: Ints
    true_cells: Floats
    whole: Floats
    centre: Floats
    sizes: dict[str, int]


def sound_overlaps(
    truth: SoundTruth, claims: pl.DataFrame, matched: pl.DataFrame, config: SoundConfig
) -> SoundOverlaps:
    """The overlaps of all sounds with their maps, and of the trivial answers.

    Args:
        truth: of n sounds.
        claims: with `sound` and `map`.
        matched: which of their rows are about which sound; see `map_chunks`.
        config: how maps are read.

    Raises:
        InputError: if a map is no rectangle.

    Source: supplement of Chaotic World, ICCV 2023, section 3.4, eq. 1.
    """
    worth, n = truth.worth(config), len(truth.table)
    all_cells, whole, centre = _trivial(truth, worth, config)
    ciou, cells = np.zeros(n), np.zeros(n, dtype=np.int64)
    claimed, constant = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    sizes: dict[str, int] = {}
    from roadaware.metrics.sound.map_kernels import painted, tallied

    for rows, maps in map_chunks(claims, matched, config.size):
        scaled = scaled_maps(maps, config.size)
        held = claimed_cells(scaled, config)
        votes = painted(*truth.part(rows), config.size)
        ciou[rows] = consensus_iou(all_cells[rows], tallied(votes, held, truth.most), worth[rows])
        claimed[rows], constant[rows] = True, np.isnan(scaled[:, 0, 0])
        cells[rows] = held.reshape(len(rows), -1).sum(axis=1)
        size = f"{maps.shape[1]} x {maps.shape[2]}"
        sizes[size] = sizes.get(size, 0) + len(rows)
    true_cells = (all_cells * worth).sum(axis=1)
    return SoundOverlaps(ciou, claimed, constant, cells, true_cells, whole, centre, sizes)


def consensus_iou(cells: Ints, held: Ints, worth: Floats) -> Floats:
    """(n,) worth of claimed cells by that of true cells and the claimed ones without worth; NaN for 0 by 0.

    Args:
        cells: (n, k) cells with 0, 1, ... votes.
        held: (n, k) those of them that are claimed.
        worth: (n, k) what each is worth; nothing without a vote.

    Source: Senocak et al., CVPR 2018; Song et al., CVPR 2022, `test.py`.

    >>> consensus_iou(np.array([[90, 6, 4]]), np.array([[5, 2, 3]]), np.array([[0.0, 0.5, 1.0]])).round(4)
    array([0.3333])
    """
    shared, true = (held * worth).sum(axis=1), (cells * worth).sum(axis=1)
    either = true + held[:, 0]
    found: Floats = np.divide(shared, either, out=np.full(len(shared), np.nan), where=either > 0)
    return found


def _trivial(truth: SoundTruth, worth: Floats, config: SoundConfig) -> tuple[Ints, Floats, Floats]:
    """(n, k) cells with 0, 1, ... votes; (n,) the consensus IoU of the whole picture, and of its middle."""
    from roadaware.metrics.sound.map_kernels import painted, tallied

    n, edge = len(truth.table), config.size // 4
    cells, middle = np.zeros((2, n, truth.most + 1), dtype=np.int64)
    for start in range(0, n, _SOUNDS_AT_ONCE):
        rows = np.arange(start, min(start + _SOUNDS_AT_ONCE, n))
        votes = painted(*truth.part(rows), config.size)
        inner = np.ascontiguousarray(votes[:, edge : config.size - edge, edge : config.size - edge])
        cells[rows] = tallied(votes, np.ones(votes.shape, dtype=bool), truth.most)
        middle[rows] = tallied(inner, np.ones(inner.shape, dtype=bool), truth.most)
    return cells, consensus_iou(cells, cells, worth), consensus_iou(cells, middle, worth)
