"""Boxes of several annotators: pairs are the best there are, groups hold one box at most of each."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from roadaware.analysis.annotation.cost import group_annotations, match_annotators
from roadaware.geometry.boxes import iou


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    start = rng.uniform(0, 20, (count, 2))
    return np.concatenate([start, start + rng.uniform(4, 14, (count, 2))], axis=1)


def test_pairs_have_the_greatest_sum_of_overlaps():
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = _boxes(rng, int(rng.integers(0, 5))), _boxes(rng, int(rng.integers(0, 5)))
        found = match_annotators(a, b, 0.3)
        shares = iou(a, b) if len(a) and len(b) else np.zeros((len(a), len(b)))
        small, large = (shares, shares.T) if len(a) <= len(b) else (shares.T, shares)
        best = max(
            sum(small[k, n] for k, n in enumerate(way) if small[k, n] >= 0.3)
            for way in permutations(range(max(len(a), len(b))), min(len(a), len(b)))
        )
        assert large.shape == small.T.shape
        assert np.isclose(sum(share for *_, share in found), best)
        assert all(share >= 0.3 for *_, share in found)
        assert len({i for i, *_ in found}) == len({j for _, j, _ in found}) == len(found)


def test_every_box_is_in_one_group_with_one_at_most_of_each_annotator():
    rng = np.random.default_rng(1)
    for _ in range(60):
        boxes = [_boxes(rng, int(rng.integers(0, 6))) for _ in range(int(rng.integers(1, 5)))]
        groups = group_annotations(boxes)
        members = [member for group in groups for member in group.items()]
        assert sorted(members) == [(who, n) for who, held in enumerate(boxes) for n in range(len(held))]


def test_a_chain_is_cut_at_its_weakest_overlap():
    one, two, three = ([[0.0, 0, 10, 10]], [[1.0, 0, 11, 10]], [[4.0, 0, 14, 10]])
    groups = group_annotations([np.array(each) for each in (one, two, three)])
    assert groups == [{0: 0, 1: 0, 2: 0}]
    apart = group_annotations([np.array([*one, [2.0, 0, 12, 10]]), np.array(two)])
    assert sorted(map(len, apart)) == [1, 2]
    assert group_annotations([np.zeros((0, 4)), np.zeros((0, 4))]) == []
