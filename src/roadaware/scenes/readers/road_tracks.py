"""Which boxes are one road user: what tubes and names join, as long as nobody is in one frame twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Ints
from roadaware.scenes.readers.road_boxes import Boxes
from roadaware.scenes.readers.road_stretches import Stretches


@dataclass(frozen=True)
class Tracks:
    """The tracks of one video, in the order of their first boxes.

    Args:
        track: (boxes,) the track of each box; -1 where nothing names one.
        name: (tracks,) what the file calls it.
        torn: kind to the tubes whose boxes are not one track's, for one of them is seen twice in a frame.
        divided: names of tracks that the boxes of several are given.
    """

    track: Ints
    name: list[str]
    torn: dict[str, Ints]
    divided: list[str]


def read_tracks(boxes: Boxes, tubes: dict[str, Stretches]) -> Tracks:
    """The tracks of a video.

    The boxes of a tube of any kind belong together, those of an agent's tube before others; then those that
    give the same `tube_uid`, where no frame has two of them.

    Args:
        boxes: of the video.
        tubes: the file's kind to its tubes; those of agents come first here, whatever their place.
    """
    first = sorted(tubes, key=lambda kind: kind != "agent")
    groups = [tubes[kind] for kind in first]
    joined = _joined(len(boxes.frame), [(tubes_.tube, tubes_.box) for tubes_ in groups])
    joined = _torn_apart(joined, boxes.frame, groups)
    uids = list(dict.fromkeys(uid for uid in boxes.uid if uid is not None))
    number = {uid: n for n, uid in enumerate(uids)}
    uid_of = np.array([-1 if uid is None else number[uid] for uid in boxes.uid], dtype=np.int64)
    joined, divided = _joined_by_name(joined, boxes.frame, uid_of, len(uids))
    named = uid_of >= 0
    for tubes_ in groups:
        named[tubes_.box[tubes_.box >= 0]] = True
    roots, track = np.unique(np.where(named, joined, -1), return_inverse=True)
    track = track - int(roots[:1].tolist() == [-1])
    return Tracks(
        track,
        _names(track, int(track.max(initial=-1)) + 1, boxes, groups),
        {kind: _torn(tubes[kind], track) for kind in tubes},
        [uids[n] for n in divided],
    )


def _joined(count: int, groups: Sequence[tuple[Ints, Ints]]) -> Ints:
    """(count,) the smallest number of all that members of the groups join a number to.

    Args:
        count: how many numbers there are.
        groups: group and member, (members,) each; members below 0 are none.
    """
    joined = np.arange(count, dtype=np.int64)
    pairs = [(group[member >= 0], member[member >= 0]) for group, member in groups]
    pairs = [pair for pair in pairs if len(pair[0])]
    while True:
        before = joined.copy()
        for group, member in pairs:
            lowest = np.full(int(group.max()) + 1, count, dtype=np.int64)
            np.minimum.at(lowest, group, joined[member])
            np.minimum.at(joined, member, lowest[group])
        joined = np.minimum(joined, joined[joined])
        if (joined == before).all():
            return joined


def _doubled(joined: Ints, frame: Ints) -> Ints:
    """The joined numbers that are in one frame twice."""
    if not len(frame):
        return joined
    pair = joined * (int(frame.max()) + 1) + frame
    found, counts = np.unique(pair, return_counts=True)
    return np.unique(found[counts > 1] // (int(frame.max()) + 1))


def _torn_apart(joined: Ints, frame: Ints, groups: Sequence[Stretches]) -> Ints:
    """What is in one frame twice is joined anew, tube by tube, without tubes that would bring that about."""
    doubled = _doubled(joined, frame)
    if not len(doubled):
        return joined
    apart = np.isin(joined, doubled)
    joined = np.where(apart, np.arange(len(joined)), joined)
    parts = _Parts(joined, frame, np.flatnonzero(apart))
    for tubes in groups:
        for _, members in _by_group(tubes.tube, tubes.box):
            if apart[members[0]]:
                parts.join(members.tolist())
    return parts.joined()


def _joined_by_name(joined: Ints, frame: Ints, uid: Ints, count: int) -> tuple[Ints, list[int]]:
    """Tracks of the same name joined, where no frame has two of them; and the names that join nothing."""
    named = np.flatnonzero(uid >= 0)
    if not len(named):
        return joined, []
    whole = _joined(len(joined), [(uid[named], named), (joined, np.arange(len(joined)))])
    doubled = _doubled(whole, frame)
    if not len(doubled):
        return whole, []
    apart = np.isin(whole, doubled)
    parts = _Parts(np.where(apart, joined, whole), frame, np.flatnonzero(apart))
    divided = []
    for name, members in _by_group(uid[named], named):
        if apart[members[0]]:
            first, *others = members.tolist()
            if sum(parts.join((first, other)) for other in others) < len(others):
                divided.append(name)
    return parts.joined(), divided


def _by_group(group: Ints, member: Ints) -> list[tuple[int, Ints]]:
    """Each group's members, in the order of groups; members below 0 are none."""
    group, member = group[member >= 0], member[member >= 0]
    order = np.argsort(group, kind="stable")
    found, starts = np.unique(group[order], return_index=True)
    return list(zip(found.tolist(), np.split(member[order], starts[1:]), strict=False))


class _Parts:
    """Sets of boxes that grow as they are joined, each with the frames it is seen in."""

    def __init__(self, joined: Ints, frame: Ints, rows: Ints) -> None:
        self._of: list[int] = joined.tolist()
        self._rows: dict[int, list[int]] = {}
        self._frames: dict[int, set[int]] = {}
        for row in rows.tolist():
            root = self._of[row]
            self._rows.setdefault(root, []).append(row)
            self._frames.setdefault(root, set()).add(int(frame[row]))

    def join(self, members: Sequence[int]) -> bool:
        """Make one of the sets that hold the members, unless a frame has two of them; says whether.

        The largest set takes the others in, so that a box changes its set seldom.
        """
        sets = sorted({self._of[row] for row in members}, key=lambda root: len(self._rows[root]))
        largest = sets.pop()
        frames = set().union(*(self._frames[root] for root in sets))
        if len(frames) < sum(len(self._frames[root]) for root in sets):
            return False
        if not self._frames[largest].isdisjoint(frames):
            return False
        for root in sets:
            rows = self._rows.pop(root)
            for row in rows:
                self._of[row] = largest
            self._rows[largest] += rows
            del self._frames[root]
        self._frames[largest] |= frames
        return True

    def joined(self) -> Ints:
        """(boxes,) the smallest box of the set that holds each."""
        joined = np.array(self._of, dtype=np.int64)
        for rows in self._rows.values():
            joined[rows] = min(rows)
        return joined


def _torn(tubes: Stretches, track: Ints) -> Ints:
    """The tubes whose boxes are not all of one track."""
    held = tubes.box >= 0
    tube, of = tubes.tube[held], track[tubes.box[held]]
    changes = (np.diff(tube) == 0) & (np.diff(of) != 0)
    return np.unique(tube[1:][changes])


def _names(track: Ints, count: int, boxes: Boxes, groups: Sequence[Stretches]) -> list[str]:
    """The name that a track's first box gives, else that of the first tube that lists it."""
    first = np.full(count, -1, dtype=np.int64)
    held = track >= 0
    rows = np.flatnonzero(held)[::-1]
    first[track[rows]] = rows
    found: list[str | None] = [boxes.uid[row] for row in first.tolist()]
    lacking = {row: n for n, row in enumerate(first.tolist()) if found[n] is None}
    for tubes in groups:
        for tube, box in zip(tubes.tube.tolist(), tubes.box.tolist(), strict=True) if lacking else ():
            if box in lacking:
                found[lacking.pop(box)] = tubes.name[tube]
    return [name or "" for name in found]
