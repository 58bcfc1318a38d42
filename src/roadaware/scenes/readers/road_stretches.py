"""The tubes of one kind in one video of a ROAD file: which boxes, or only which frames, they are made of."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, kind_of
from roadaware.scenes.readers.road_boxes import Boxes, Ints, id_lists, refusals

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
    """Where a tube's frames and boxes are found."""

    def __init__(self, boxes: Boxes, length: int) -> None:
        self.length = length
        self._frames = boxes.frame.tolist()
        self._row = {key: row for row, key in enumerate(boxes.key)}
        self._rows: dict[tuple[int, str], int] | None = None
        if len(self._row) < len(boxes.key):
            pairs = zip(self._frames, boxes.key, strict=True)
            self._rows = {pair: row for row, pair in enumerate(pairs)}

    def members(self, tube: Any) -> tuple[list[tuple[int, int]], int] | str:
        """A tube's frames with their boxes in order and how many were left out, or why it is refused."""
        if not isinstance(tube, dict):
            return f"should be an object and is {kind_of(tube)}"
        if "annos" in tube:
            annos = tube["annos"]
            if not isinstance(annos, dict):
                return f"'annos' should be an object and is {kind_of(annos)}"
            found, lost = self._boxes(annos)
        else:
            frames = tube.get("frames")
            if not isinstance(frames, dict | list):
                return f"has no 'annos', and 'frames' should be a list and is {kind_of(frames)}"
            numbers = {self._number(frame) for frame in frames if isinstance(frame, str | int)}
            odd = [frame for frame in frames if not isinstance(frame, str | int)]
            if odd or None in numbers:
                return f"holds a frame that is no number in 1 to {self.length}"
            found, lost = [(number - 1, -1) for number in sorted(n for n in numbers if n)], 0
        return (found, lost) if found else "has no frame that can be taken"

    def _boxes(self, annos: Mapping[str, Any]) -> tuple[list[tuple[int, int]], int]:
        row, frames = self._row, self._frames
        found: list[tuple[int, int]] = []
        for key, box in annos.items():
            number = int(key) - 1 if _NUMBER.fullmatch(key) else -1
            if not isinstance(box, str):
                continue
            at = row.get(box, -1) if self._rows is None else self._rows.get((number, box), -1)
            if at >= 0 and frames[at] == number:
                found.append((number, at))
        lost = len(annos) - len(found)
        if any(a >= b for (a, _), (b, _) in itertools.pairwise(found)):
            found.sort()
        return found, lost

    def _number(self, frame: str | int) -> int | None:
        text = str(frame) if not isinstance(frame, bool) else ""
        number = int(text) if _NUMBER.fullmatch(text) else 0
        return number if 1 <= number <= self.length else None


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
    refused: list[tuple[str, str]] = []
    names: list[str] = []
    labels: list[Any] = []
    members: list[list[tuple[int, int]]] = []
    lost = 0
    for name, tube in tubes.items():
        found = at.members(tube)
        if isinstance(found, str):
            refused.append((f"{video}, {key}, {name}", found))
            continue
        lost += found[1]
        names.append(clean(name))
        labels.append([tube.get("label_id")])
        members.append(found[0])
    findings.read["tubes"] += len(refused)
    findings.reject_rows("tubes", refusals(file, refused))
    findings.warn("frames of tubes whose box is not there or was refused, left out", f"{video}, {key}", lost)
    ids = id_lists(labels)
    counts = [len(each) for each in members]
    flat = np.array([pair for each in members for pair in each], dtype=np.int64).reshape(-1, 2)
    tube_of = np.repeat(np.arange(len(names), dtype=np.int64), counts)
    return Stretches(names, ids.value, ids.told, tube_of, flat[:, 0], flat[:, 1])
