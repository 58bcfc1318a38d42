"""One video of a ROAD file as columns: its boxes, the tubes of each kind, and which boxes are one road
user.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError
from roadaware.io.json import (
    describe_type,
    ensure_object,
    ensure_text_list,
    escape_surrogates,
    format_value,
    parse_int,
)

# The boxes of one video of a ROAD file as columns, and lists of label ids laid flat.

# The published loader takes corners up to 1.01.
BEYOND = 0.01
"""How far outside the image a corner may lie, in shares of it, and still be cut off at its edge."""
# Ids are kept in columns of 64 bits.
_MOST = (1 << 62) - 1


@dataclass(frozen=True)
class IdLists:
    """Lists of ids, one for each row, laid flat.

    Args:
        row: (ids) the row that an id belongs to; in order.
        value: (ids) what stood there; -1 for what is no whole number.
        written: place among the ids to how what is no whole number is written.
        absent: how many rows have no list.
    """

    row: Ints
    value: Ints
    written: dict[int, str]
    absent: int


@dataclass(frozen=True)
class Boxes:
    """The boxes that were taken, in the order of frames and, in one frame, of the file.

    Args:
        frame: (n,) from 0.
        key: (n,) the file's name of the box.
        corners: (n, 4) x1, y1, x2, y2 as shares of the image, inside it.
        uid: (n,) the track's name where the box gives one.
        ids: the file's kind to the ids of its labels.
        cut: how many reached over an edge by no more than `BEYOND`.
    """

    frame: Ints
    key: list[str]
    corners: Floats
    uid: list[str | None]
    ids: dict[str, IdLists]
    cut: int


def read_boxes(
    frames: Sequence[tuple[int, Mapping[str, Any]]], video: str, file: str, findings: Findings
) -> Boxes:
    """The boxes of a video's frames.

    Args:
        frames: numbers from 0 with their entries, in order.
        video: its name, for what is refused.
        file: the file's name, for what is refused.
        findings: counts the boxes and takes what is refused.
    """
    keys: list[str] = []
    entries: list[Any] = []
    counts: list[int] = []
    for number, frame in frames:
        annos = frame.get("annos")
        if annos is not None and not isinstance(annos, dict):
            item = f"{video}, frame {number + 1}"
            findings.reject("boxes", file, item, f"'annos' should be an object and is {describe_type(annos)}")
            annos = None
        counts.append(len(annos or ()))
        if annos:
            keys.extend(annos)
            entries.extend(annos.values())
    findings.read["boxes"] += len(keys)
    frame_of = np.repeat(np.array([number for number, _ in frames], dtype=np.int64), counts)
    corners, reasons = _corners(entries)
    kept = np.ones(len(keys), dtype=bool)
    kept[list(reasons)] = False
    refused = [(f"{video}, frame {frame_of[n] + 1}, {keys[n]}", reasons[n]) for n in sorted(reasons)]
    refuse(findings, "boxes", file, refused)
    if reasons:
        taken = np.flatnonzero(kept).tolist()
        keys, entries = [keys[n] for n in taken], [entries[n] for n in taken]
    inside = np.clip(corners[kept], 0, 1)
    cut = int((inside != corners[kept]).any(axis=1).sum())
    given = [entry.get("tube_uid") for entry in entries]
    odd = sum(not isinstance(uid, str | None) for uid in given)
    findings.warn("boxes whose tube_uid is no text", video, odd)
    return Boxes(
        frame_of[kept],
        keys,
        inside,
        [escape_surrogates(uid) if isinstance(uid, str) else None for uid in given],
        _ids(entries),
        cut,
    )


def refuse(findings: Findings, table: str, file: str, rows: Sequence[tuple[str, str]]) -> None:
    """Refuse rows that were counted before.

    Args:
        findings: takes them.
        table: that they would have gone to.
        file: that holds them.
        rows: how each is called, and why it is refused.
    """
    if rows:
        items, reasons = ([row[k] for row in rows] for k in (0, 1))
        named = pl.DataFrame({"item": items, "reason": reasons})
        findings.reject_rows(table, named.with_columns(file=pl.lit(file), line=pl.lit(None, pl.Int64)))


def parse_id_lists(column: Sequence[Any]) -> IdLists:
    """The lists of a column, laid flat; what is no list counts as one odd id, and nothing as none."""
    absent = 0
    if not set(map(type, column)) <= {list}:
        absent = sum(value is None for value in column)
        column = [[] if v is None else v if isinstance(v, list) else [v] for v in column]
    record: dict[int, str] = {}
    counts = np.fromiter(map(len, column), dtype=np.int64, count=len(column))
    flat: list[Any] = list(chain.from_iterable(column))
    if not set(map(type, flat)) <= {int} or (flat and not -_MOST <= min(flat) <= max(flat) <= _MOST):
        for place, value in enumerate(flat):
            if type(value) is not int or not -_MOST <= value <= _MOST:
                record[place], flat[place] = format_value(value), -1
    row = np.repeat(np.arange(len(column), dtype=np.int64), counts)
    return IdLists(row, np.array(flat, dtype=np.int64), record, absent)


def _corners(entries: Sequence[Any]) -> tuple[Floats, dict[int, str]]:
    """The boxes' numbers as they are written, and place to reason of those that cannot be taken."""
    given: list[Any] = [entry.get("box") if type(entry) is dict else None for entry in entries]
    reasons: dict[int, str] = {}
    if _plain(given):
        flat = list(chain.from_iterable(given))
    else:
        for place, (entry, box) in enumerate(zip(entries, given, strict=True)):
            if (reason := _fault(entry, box)) is not None:
                reasons[place] = reason
        flat = list(chain.from_iterable([0.0] * 4 if n in reasons else box for n, box in enumerate(given)))
    corners = np.array(flat, dtype=np.float64).reshape(-1, 4)
    inside = np.clip(corners, 0, 1)
    x1, y1, x2, y2 = inside.T
    beyond = ~((corners >= -BEYOND) & (corners <= 1 + BEYOND)).all(axis=1)
    wrong_way = ~((x1 < x2) & (y1 < y2))
    outside = set(np.flatnonzero(beyond).tolist())
    for place in np.flatnonzero(beyond | wrong_way).tolist():
        wrong = "lies outside the image" if place in outside else "is upside down or empty"
        reasons.setdefault(place, f"the box {corners[place].tolist()} {wrong}")
    return corners, reasons


def _plain(given: Sequence[Any]) -> bool:
    """Whether all are lists of four finite numbers of usual size."""
    if not set(map(type, given)) <= {list} or not set(map(len, given)) <= {4}:
        return False
    kinds = set(map(type, chain.from_iterable(given)))
    if kinds <= {float}:
        return True
    return kinds <= {float, int} and all(-_MOST < n < _MOST for n in chain.from_iterable(given))


def _fault(entry: Any, box: Any) -> str | None:
    """Why a box cannot be taken, None if it is four finite numbers."""
    if not isinstance(entry, dict):
        return f"should be an object and is {describe_type(entry)}"
    if not isinstance(box, list) or len(box) != 4:
        size = f"{len(box)} of them" if isinstance(box, list) else format_value(box)
        return f"'box' should be four numbers and is {size}"
    for number in box:
        if type(number) not in (int, float) or not -_MOST < number < _MOST:
            return f"'box' holds {format_value(number)}, which is no finite number of a box"
    return None


def _ids(entries: Sequence[Mapping[str, Any]]) -> dict[str, IdLists]:
    """Every kind that some box has a list of ids for; `input_ids` and the like are kinds, too."""
    found: set[str] = set().union(*entries)
    keys = sorted(key for key in found if key.endswith("_ids"))
    return {key.removesuffix("_ids"): parse_id_lists([entry.get(key) for entry in entries]) for key in keys}


# The tubes of one kind in one video of a ROAD file: which boxes, or only which frames, they are made of.

_EMPTY = "has no frame that can be taken"


@dataclass(frozen=True)
class Stretches:
    """The tubes of one kind that were taken, in the file's order.

    Args:
        name: (tubes,) the file's names.
        label: (tubes,) ids that count all labels; -1 for what is none.
        written: tube to how an id that is no whole number is written.
        tube: (members,) the tube that a frame belongs to; in order.
        frame: (members,) from 0, increasing in a tube, none twice.
        box: (members,) the box, -1 for tubes that have frames only.
    """

    name: list[str]
    label: Ints
    written: dict[int, str]
    tube: Ints
    frame: Ints
    box: Ints


class Places:
    """Offsets of a video's frames and boxes.

    Args:
        boxes: of the video.
        length: of the video, in frames.
    """

    def __init__(self, boxes: Boxes, length: int) -> None:
        self.length, self._frame = length, boxes.frame
        frames = boxes.frame.tolist()
        self._number = {str(frame + 1): frame for frame in set(frames)}
        self._row: dict[Any, int] = {key: row for row, key in enumerate(boxes.key)}
        # Keys of boxes are mostly unique in a video; where they are not, the frame belongs to the key.
        self._paired = len(self._row) < len(boxes.key)
        if self._paired:
            self._row = {pair: row for row, pair in enumerate(zip(frames, boxes.key, strict=True))}

    def boxes(self, frames: Sequence[str], keys: Sequence[Any]) -> tuple[Ints, Ints]:
        """Frame from 0 and box of what tubes list; the box is -1 where that frame has none of that name.

        Args:
            frames: (members,) as the file counts them.
            keys: (members,) names of boxes.
        """
        number = [self._number.get(frame, -1) for frame in frames]
        if not set(map(type, keys)) <= {str}:
            keys = [key if isinstance(key, str) else None for key in keys]
        if self._paired:
            keys = list(zip(number, keys, strict=True))
        row = np.array([self._row.get(key, -1) for key in keys], dtype=np.int64)
        frame = np.array(number, dtype=np.int64)
        if len(self._frame):
            row[self._frame[row] != frame] = -1
        return frame, row

    def frames(self, listed: Iterable[Any]) -> list[int] | None:
        """The frames from 0 that a list or an object names, in order; None if one is out of the video."""
        texts = {str(each) if type(each) is int else each if isinstance(each, str) else "" for each in listed}
        numbers = sorted(int(text) if _NUMBER.fullmatch(text) else 0 for text in texts)
        inside = all(1 <= number <= self.length for number in numbers)
        return [number - 1 for number in numbers] if inside else None


def read_stretches(key: str, tubes: Any, at: Places, place: tuple[str, str], findings: Findings) -> Stretches:
    """The tubes under one name such as `agent_tubes`.

    Frames whose box was refused or is not there are left out of their tube, with a warning; a tube that
    keeps none is refused.

    Args:
        key: the name.
        tubes: what stands there.
        at: where the video's boxes are found.
        place: the video's and the file's name, for what is refused.
        findings: takes what is refused; the tubes themselves are counted later, when labels are known.
    """
    video, file = place
    if not isinstance(tubes, dict):
        reason = f"'{key}' should be an object and is {describe_type(tubes)}"
        findings.reject("tubes", file, f"{video}, {key}", reason)
        tubes = {}
    faults = {
        n: fault for n, tube in enumerate(tubes.values()) if (fault := _check_tube_list(tube, at)) is not None
    }
    held = [tube for n, tube in enumerate(tubes.values()) if n not in faults]
    names = [name for n, name in enumerate(tubes) if n not in faults]
    whole = [f"{video}, {key}, {name}" for name in tubes]
    tube, frame, box, listed = _members(held, at)
    kept = np.zeros(len(held), dtype=bool)
    kept[tube] = True
    refused = [(whole[n], fault) for n, fault in faults.items()]
    refused += [(f"{video}, {key}, {names[n]}", _EMPTY) for n in np.flatnonzero(~kept).tolist()]
    findings.read["tubes"] += len(refused)
    refuse(findings, "tubes", file, refused)
    lost = listed - len(tube)
    findings.warn("frames of tubes whose box is not there or was refused, left out", f"{video}, {key}", lost)
    taken = np.flatnonzero(kept).tolist()
    ids = parse_id_lists([[held[n].get("label_id")] for n in taken])
    number = np.cumsum(kept) - 1
    return Stretches(
        [escape_surrogates(names[n]) for n in taken], ids.value, ids.written, number[tube], frame, box
    )


def _check_tube_list(tube: Any, at: Places) -> str | None:
    """Why a tube cannot be taken, None if it lists boxes or frames."""
    if not isinstance(tube, dict):
        return f"should be an object and is {describe_type(tube)}"
    if "annos" in tube:
        annos = tube["annos"]
        text = describe_type(annos)
        return None if isinstance(annos, dict) else f"'annos' should be an object and is {text}"
    frames = tube.get("frames")
    if not isinstance(frames, dict | list):
        return f"has no 'annos', and 'frames' should be a list and is {describe_type(frames)}"
    return f"holds a frame that is no number in 1 to {at.length}" if at.frames(frames) is None else None


def _members(tubes: Sequence[Mapping[str, Any]], at: Places) -> tuple[Ints, Ints, Ints, int]:
    """Tube, frame and box (-1 in tubes of frames alone) of what can be found, and how much is listed."""
    frames: list[str] = []
    keys: list[Any] = []
    for tube in tubes:
        frames.extend(tube.get("annos", ()))
        keys.extend(tube["annos"].values() if "annos" in tube else ())
    counts = [len(tube.get("annos", ())) for tube in tubes]
    tube_of = np.repeat(np.arange(len(tubes), dtype=np.int64), counts)
    frame, box = at.boxes(frames, keys)
    found = box >= 0
    alone = [
        (n, f) for n, tube in enumerate(tubes) if "annos" not in tube for f in at.frames(tube["frames"]) or ()
    ]
    bare = np.array(alone, dtype=np.int64).reshape(-1, 2)
    tube_of = np.concatenate([tube_of[found], bare[:, 0]])
    frame = np.concatenate([frame[found], bare[:, 1]])
    box = np.concatenate([box[found], np.full(len(bare), -1, dtype=np.int64)])
    order = np.lexsort((frame, tube_of))
    return tube_of[order], frame[order], box[order], len(frames) + len(bare)


MOST_FRAMES = 10_000_000
MOST_PIXELS = 65_535
_NUMBER = re.compile(r"[1-9][0-9]{0,7}", re.ASCII)
_TAGS = {"weather": ("weather", "conditions", "condition"), "time_of_day": ("time_of_day", "lighting")}


@dataclass(frozen=True)
class RawVideo:
    """Content of one video's entry; box and frame numbers are places in its own columns.

    Args:
        name: of the video.
        file: the file that holds it.
        head: its row of the table `videos`.
        frames: frame (from 0), annotated, rgb_image_id, input_image_id; in order.
        av: the frames' action ids.
        boxes: in the order of frames and, in one frame, of the file.
        tubes: the file's kind to its tubes.
        findings: what was met.
    """

    name: str
    file: str
    head: dict[str, Any]
    frames: pl.DataFrame
    av: IdLists
    boxes: Boxes
    tubes: dict[str, Stretches]
    findings: Findings = field(default_factory=Findings)


def read_raw(name: str, value: Any, file: str, where: str) -> RawVideo:
    """The columns of one video.

    Args:
        name: of the video.
        value: its entry in `db`.
        file: the file's name, for what is refused.
        where: names file and video in errors.

    Raises:
        InputError: if the entry, its `frames` or its length are not what they should be.
    """
    entry = ensure_object(value, where, "the video")
    listed = ensure_object(entry.get("frames"), where, "'frames'")
    findings = Findings()
    # How many frames the video has
    length = parse_int(entry.get("numf"), 1, MOST_FRAMES)
    if length is None:
        found = format_value(entry["numf"]) if "numf" in entry else "missing"
        message = f"'numf' should be the number of frames, 1 to {MOST_FRAMES}, and is {found}"
        raise InputError(message, where=where)
    held = _frames(listed, length, name, file, findings)
    numbers = [number for number, _ in held]
    size = _size([frame for _, frame in held], name, findings)
    boxes = read_boxes(held, name, file, findings)
    at = Places(boxes, length)
    tubes = {
        key.removesuffix("_tubes"): read_stretches(key, tubes, at, (name, file), findings)
        for key, tubes in entry.items()
        if key.endswith("_tubes")
    }
    head = {
        "video": name,
        "scene": name,
        "width_px": size[0],
        "height_px": size[1],
        "fps": None,
        "n_frames": length,
        "path": f"videos/{name}.mp4",
        "splits": list(dict.fromkeys(ensure_text_list(entry.get("split_ids", []), where, "'split_ids'"))),
        **{tag: _tag(entry, known) for tag, known in _TAGS.items()},
    }
    av = parse_id_lists([frame.get("av_action_ids") for _, frame in held])
    findings.warn("frames without av_action_ids", name, av.absent)
    frames = _frame_table(numbers, [frame for _, frame in held], name, findings)
    findings.read["videos"] += 1
    return RawVideo(name, file, head, frames, av, boxes, tubes, findings)


def _frames(
    listed: Mapping[str, Any], length: int, name: str, file: str, findings: Findings
) -> list[tuple[int, dict[str, Any]]]:
    """The frames that can be taken, by number from 0 and in order."""
    held: list[tuple[int, dict[str, Any]]] = []
    for key, frame in listed.items():
        number = int(key) if _NUMBER.fullmatch(key) else 0
        if not 1 <= number <= length:
            reason = f"{format_value(key)} is no frame number in 1 to {length}, outside the video"
        elif not isinstance(frame, dict):
            reason = f"should be an object and is {describe_type(frame)}"
        else:
            held.append((number - 1, frame))
            continue
        findings.reject("frames", file, f"{name}, frame {key}", reason)
    findings.read["frames"] += len(held)
    held.sort(key=lambda each: each[0])
    return held


def _size(
    frames: Sequence[Mapping[str, Any]], name: str, findings: Findings
) -> tuple[int | None, int | None]:
    """Width and height that most frames say.

    Boxes are shares of the image, so those of frames of another size are right in this one, too.
    """
    sizes = [(frame.get("width"), frame.get("height")) for frame in frames]
    common: Counter[tuple[int, int]] = Counter()
    for width, height in sizes:
        known = parse_int(width, 1, MOST_PIXELS), parse_int(height, 1, MOST_PIXELS)
        if known[0] is not None and known[1] is not None:
            common[known[0], known[1]] += 1
    findings.warn("frames without an image size", name, len(sizes) - sum(common.values()))
    if not common:
        return None, None
    most = max(common, key=lambda size: common[size])
    findings.warn(
        "frames of another size than most of their video", name, sum(common.values()) - common[most]
    )
    return most


def _frame_table(
    numbers: Sequence[int], frames: Sequence[Mapping[str, Any]], name: str, findings: Findings
) -> pl.DataFrame:
    said = [frame.get("annotated") for frame in frames]
    known = [value > 0 if isinstance(value, int) else None for value in said]
    findings.warn("frames that do not say whether they are annotated", name, known.count(None))
    images = {
        key: pl.Series([parse_int(frame.get(key), 0, MOST_FRAMES) for frame in frames], dtype=pl.Int64)
        for key in ("rgb_image_id", "input_image_id")
    }
    return pl.DataFrame(
        {
            "frame": pl.Series(numbers, dtype=pl.Int64),
            "annotated": pl.Series(known, dtype=pl.Boolean),
            **images,
        }
    )


def _tag(entry: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """The first text, or list of texts, under one of the names."""
    for key in known:
        value = entry.get(key)
        words = value if isinstance(value, list) else [value]
        texts = [word for word in words if isinstance(word, str)]
        if texts and len(texts) == len(words):
            return escape_surrogates(", ".join(texts)) or None
    return None


# Which boxes are one road user: what tubes and names join, as long as nobody is in one frame twice.


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
    joined = _join_components(len(boxes.frame), [(tubes_.tube, tubes_.box) for tubes_ in groups])
    joined = _torn_apart(joined, boxes.frame, groups)
    uids = list(dict.fromkeys(uid for uid in boxes.uid if uid is not None))
    number = {uid: n for n, uid in enumerate(uids)}
    uid_of = np.array([-1 if uid is None else number[uid] for uid in boxes.uid], dtype=np.int64)
    joined, divided = _joined_by_name(joined, boxes.frame, uid_of)
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


def _join_components(count: int, groups: Sequence[tuple[Ints, Ints]]) -> Ints:
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
        # Pointers to pointers: the longest chain halves in each round.
        joined = np.minimum(joined, joined[joined])
        if (joined == before).all():
            return joined


def _find_duplicates(joined: Ints, frame: Ints) -> Ints:
    """The joined numbers that are in one frame twice."""
    if not len(frame):
        return joined
    # Set and frame as one number, so that doubles are found by one sort.
    pair = joined * (int(frame.max()) + 1) + frame
    found, counts = np.unique(pair, return_counts=True)
    return np.unique(found[counts > 1] // (int(frame.max()) + 1))


def _torn_apart(joined: Ints, frame: Ints, groups: Sequence[Stretches]) -> Ints:
    """What is in one frame twice is joined anew, tube by tube, without tubes that would bring that about."""
    doubled = _find_duplicates(joined, frame)
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


def _joined_by_name(joined: Ints, frame: Ints, uid: Ints) -> tuple[Ints, list[int]]:
    """Tracks of the same name joined, where no frame has two of them; and the names that join nothing."""
    named = np.flatnonzero(uid >= 0)
    if not len(named):
        return joined, []
    whole = _join_components(len(joined), [(uid[named], named), (joined, np.arange(len(joined)))])
    doubled = _find_duplicates(whole, frame)
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
        """(boxes,) the smallest box of the set of each box."""
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
    # Backwards: of a track's boxes the first is written last, and stays.
    rows = np.flatnonzero(held)[::-1]
    first[track[rows]] = rows
    found: list[str | None] = [boxes.uid[row] for row in first.tolist()]
    lacking = {row: n for n, row in enumerate(first.tolist()) if found[n] is None}
    for tubes in groups:
        for tube, box in zip(tubes.tube.tolist(), tubes.box.tolist(), strict=True) if lacking else ():
            if box in lacking:
                found[lacking.pop(box)] = tubes.name[tube]
    return [name or "" for name in found]
