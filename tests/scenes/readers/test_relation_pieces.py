"""Trajectories cut out of tracks for several relations come together again, and no others do."""

import numpy as np
import pytest

from roadaware.datasets.relation_tables import Relation, Track, Tracks, merge_overlapping_tracks


def track(start, boxes, category="person"):
    boxes = np.asarray(boxes, dtype=np.float64)
    return Track(None, category, np.arange(start, start + len(boxes)), boxes)


def walk(rng, n):
    low = np.cumsum(rng.integers(1, 4, (n, 2)), axis=0) + rng.integers(0, 500, 2)
    return np.concatenate([low, low + 50], axis=1).astype(np.float64)


def plain(held):
    """Which pieces belong together: joined one by one, given up where a frame would have two boxes."""
    together = [{n} for n in range(len(held.tracks))]
    known = [dict(zip(t.frames.tolist(), map(tuple, t.boxes), strict=True)) for t in held.tracks]
    for a, one in enumerate(held.tracks):
        for b, other in enumerate(held.tracks):
            if one.category == other.category and any(known[b].get(f) == box for f, box in known[a].items()):
                first, second = together[a], together[b]
                if first is not second:
                    first |= second
                    for n in second:
                        together[n] = first
    for group in {id(g): g for g in together}.values():
        boxes = {}
        for n in group:
            for frame, box in known[n].items():
                boxes.setdefault(frame, set()).add(box)
        if any(len(names_in) > 1 for names_in in boxes.values()):
            for n in list(group):
                together[n] = {n}
    return {frozenset(group) for group in together}


@pytest.mark.parametrize("seed", range(30))
def test_pieces_are_joined_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    whole = [walk(rng, 30) for _ in range(3)]
    pieces, relations = [], []
    for _ in range(8):
        source = whole[int(rng.integers(3))]
        start = int(rng.integers(0, 20))
        end = int(rng.integers(start + 1, 30))
        boxes = source[start:end].copy()
        if rng.random() < 0.15:
            boxes[-1] += 1.0
        pieces.append(track(start, boxes, str(rng.choice(["person", "dog"], p=[0.8, 0.2]))))
    for n in range(0, 8, 2):
        start = max(pieces[n].frames[0], pieces[n + 1].frames[0])
        relations.append(Relation(n, "watching", n + 1, int(start), int(start) + 1))
    held = Tracks(pieces, relations)
    found = merge_overlapping_tracks(held)
    groups = plain(held)
    assert len(found.tracks) == len(groups)
    for before, after in zip(relations, found.relations, strict=True):
        for old, new in ((before.subject, after.subject), (before.object, after.object)):
            group = next(g for g in groups if old in g)
            frames = sorted({int(f) for n in group for f in pieces[n].frames})
            assert found.tracks[new].frames.tolist() == frames
            rows = np.searchsorted(found.tracks[new].frames, pieces[old].frames)
            np.testing.assert_array_equal(found.tracks[new].boxes[rows], pieces[old].boxes)


def test_the_order_is_that_of_first_pieces():
    rng = np.random.default_rng(0)
    a, b = walk(rng, 10), walk(rng, 10)
    held = Tracks([track(0, a[:6]), track(0, b), track(3, a[3:])], [Relation(2, "pushing", 1, 3, 10)])
    found = merge_overlapping_tracks(held)
    assert [t.boxes.tolist() for t in found.tracks] == [a.tolist(), b.tolist()]
    assert found.relations == [Relation(0, "pushing", 1, 3, 10)]


def test_one_track_is_left_as_it_is():
    held = Tracks([track(0, [[0, 0, 1, 1]])], [])
    assert merge_overlapping_tracks(held) is held
    assert merge_overlapping_tracks(Tracks()).tracks == []
