"""Pieces of one track, cut out for several relations, brought together again."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Ints
from roadaware.scenes.readers.relation_instances import Relation, Track, Tracks


def rejoined(held: Tracks) -> Tracks:
    """The same relations on whole tracks: pieces of a category with equal boxes in a shared frame are one.

    Claims give each relation the boxes of its own duration, so that one person of a detector comes in pieces
    that overlap. Which claims are about the same pair in a frame can be told of whole tracks only. Pieces
    that would give their track two boxes in a frame stay apart.

    Args:
        held: tracks of one video.
    """
    if len(held.tracks) < 2:
        return held
    piece = np.repeat(np.arange(len(held.tracks)), [len(track.frames) for track in held.tracks])
    frames = np.concatenate([track.frames for track in held.tracks])
    rows, frame_and_kind = _numbered(held, frames, piece)
    group = _groups(piece, rows, len(held.tracks))
    group = _apart(group, piece, rows, frame_and_kind)
    numbers, to = np.unique(group, return_inverse=True)
    if len(numbers) == len(held.tracks):
        return held
    order = np.argsort(np.array([np.flatnonzero(to == n)[0] for n in range(len(numbers))]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    to = place[to]
    tracks = [_joined([held.tracks[k] for k in np.flatnonzero(to == n)]) for n in range(len(numbers))]
    relations = [
        Relation(int(to[each.subject]), each.predicate, int(to[each.object]), each.start, each.end)
        for each in held.relations
    ]
    return Tracks(tracks, relations)


def _numbered(held: Tracks, frames: Ints, piece: Ints) -> tuple[Ints, Ints]:
    """Equal numbers for equal boxes of one category and name in one frame, and for equal frames of one."""
    names = {of: n for n, of in enumerate(dict.fromkeys((t.category, t.name) for t in held.tracks))}
    kind = np.array([names[track.category, track.name] for track in held.tracks])[piece]
    corners = np.concatenate([track.boxes for track in held.tracks])
    keys = np.column_stack([kind, frames, corners.view(np.int64).reshape(-1, 4)])
    _, place = np.unique(kind * (frames.max() + 1) + frames, return_inverse=True)
    return _rows(keys), place


def _rows(keys: Ints) -> Ints:
    """(n,) equal numbers for equal rows of (n, k) keys; by a sum of each row where sums tell them apart."""
    factors = np.random.default_rng(0).integers(1, 1 << 62, keys.shape[1]) * 2 + 1
    _, first, rows = np.unique((keys * factors).sum(axis=1), return_index=True, return_inverse=True)
    if (keys == keys[first[rows]]).all():
        return rows
    found: Ints = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    return found


def _groups(piece: Ints, rows: Ints, n: int) -> Ints:
    """(n,) the lowest piece of those that share rows, directly or through others."""
    lowest = np.full(rows.max() + 1, n, dtype=np.int64)
    group = np.arange(n)
    while True:
        lowest[:] = n
        np.minimum.at(lowest, rows, group[piece])
        least = np.full(n, n, dtype=np.int64)
        np.minimum.at(least, piece, lowest[rows])
        if (least == group).all():
            return group
        group = least


def _apart(group: Ints, piece: Ints, rows: Ints, frame: Ints) -> Ints:
    """The groups, dissolved where one would have two boxes in a frame."""
    boxes = np.unique(np.column_stack([group[piece], frame, rows]), axis=0)
    twice = np.flatnonzero((boxes[1:, :2] == boxes[:-1, :2]).all(axis=1))
    mixed = np.isin(group, boxes[twice, 0])
    return np.where(mixed, np.arange(len(group)), group)


def _joined(parts: list[Track]) -> Track:
    if len(parts) == 1:
        return parts[0]
    frames, first = np.unique(np.concatenate([part.frames for part in parts]), return_index=True)
    boxes = np.concatenate([part.boxes for part in parts])[first]
    return Track(parts[0].name, parts[0].category, frames, boxes)
