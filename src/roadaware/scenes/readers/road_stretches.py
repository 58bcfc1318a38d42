"""The tubes of one kind in one video of a ROAD file: which boxes, or only which frames, they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadaware.arrays import Ints
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, kind_of
from roadaware.scenes.readers.road_boxes import Boxes, id_lists, refuse

_EMPTY = "has no frame that can be taken"
_NUMBER = re.compile(r"[1-9][0-9]{0,7}", re.ASCII)


@dataclass(frozen=True)
class Stretches:
    """The tubes of one kind that were taken, in the file's order.

    Args:
        name: (tubes,) the file's names.
        label: (tubes,) ids that count all labels; -1 for what is none.
        told: tube to how an id that is no whole number is written.
        tube: (members,) the tube that a frame belongs to; in order.
        frame: (members,) from 0, increasing in a tube, none twice.
        box: (members,) the box, -1 for tubes that have frames only.
    """

    name: list[str]
    label: Ints
    told: dict[int, str]
    tube: Ints
    frame: Ints
    box: Ints


class Places:
    """Where a video's frames and boxes are found.

    Args:
        boxes: of the video.
        length: of the video, in frames.
    """

    def __init__(self, boxes: Boxes, length: int) -> None:
        self.length, self._frame = length, boxes.frame
        frames = boxes.frame.tolist()
        self._number = {str(frame + 1): frame for frame in set(frames)}
        self._row: dict[Any, int] = {key: row for row, key in enumerate(boxes.key)}
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
        reason = f"'{key}' should be an object and is {kind_of(tubes)}"
        findings.reject("tubes", file, f"{video}, {key}", reason)
        tubes = {}
    faults = {n: fault for n, tube in enumerate(tubes.values()) if (fault := _fault(tube, at)) is not None}
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
    ids = id_lists([[held[n].get("label_id")] for n in taken])
    number = np.cumsum(kept) - 1
    return Stretches([clean(names[n]) for n in taken], ids.value, ids.told, number[tube], frame, box)


def _fault(tube: Any, at: Places) -> str | None:
    """Why a tube cannot be taken, None if it lists boxes or frames."""
    if not isinstance(tube, dict):
        return f"should be an object and is {kind_of(tube)}"
    if "annos" in tube:
        annos = tube["annos"]
        told = kind_of(annos)
        return None if isinstance(annos, dict) else f"'annos' should be an object and is {told}"
    frames = tube.get("frames")
    if not isinstance(frames, dict | list):
        return f"has no 'annos', and 'frames' should be a list and is {kind_of(frames)}"
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
