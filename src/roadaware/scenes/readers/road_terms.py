"""The labels of a ROAD file: its kinds, which labels count, and what composite labels are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import a_list, names, quoted, whole

HOUSE_KINDS = {"loc": "location", "triplet": "event"}
AGENTNESS = {"agentness": "agent_ness"}
AV_ACTION = "av_action"
_COMPOSITES = {"duplex": ("agent", "action"), "triplet": ("agent", "action", "loc")}
_FOREIGN = "check that it is ROAD's or ROAD-Waymo's annotation file"


@dataclass(frozen=True)
class Labels:
    """One kind of label.

    Args:
        native: the file's name of the kind.
        every: what annotators could choose; the file's ids count these.
        used: what counts, in class order.
    """

    native: str
    every: tuple[str, ...]
    used: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Our name of the kind."""
        return HOUSE_KINDS.get(self.native, self.native)

    def places(self) -> npt.NDArray[np.int64]:
        """(every) the place of each label among the used ones, by name; -1 for one that is not used."""
        used = {name: place for place, name in enumerate(self.used)}
        return np.array([used.get(name, -1) for name in self.every], dtype=np.int64)


@dataclass(frozen=True)
class Terms:
    """What a file says of its labels.

    Args:
        boxes: the kinds that boxes and tubes carry, by their native names, in the file's order.
        av: the kind that frames carry.
        children: our name of a composite kind to the parts of each of its used labels.
    """

    boxes: dict[str, Labels]
    av: Labels
    children: dict[str, list[list[int]]]

    @property
    def kinds(self) -> tuple[Labels, ...]:
        """All kinds, that of frames last."""
        return (*self.boxes.values(), self.av)

    @property
    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        """Our kinds to their used labels."""
        named = {labels.kind: labels.used for labels in self.kinds}
        return {kind: (native,) for kind, native in AGENTNESS.items()} | named

    @property
    def native_kinds(self) -> dict[str, str]:
        """Our kinds to the file's."""
        return AGENTNESS | {labels.kind: labels.native for labels in self.kinds}

    @property
    def composites(self) -> dict[str, tuple[str, ...]]:
        """Our composite kinds to ours of their parts."""
        return {
            HOUSE_KINDS.get(native, native): tuple(HOUSE_KINDS.get(part, part) for part in parts)
            for native, parts in _COMPOSITES.items()
            if native in self.boxes and all(part in self.boxes for part in parts)
        }


def read_terms(top: Mapping[str, Any], where: str, findings: Findings) -> Terms:
    """The labels of a file.

    Args:
        top: the file's members but for its videos.
        where: names the file in errors.
        findings: takes oddities.

    Raises:
        InputError: if the kinds or the labels of one are missing or no lists of names, or the parts of
            composite labels are not one for each label.
    """
    if "label_types" not in top:
        raise InputError("there is no 'label_types'", where=where, hint=_FOREIGN)
    kinds = names(top["label_types"], where, "'label_types'")
    boxes = {native: _labels(top, native, where, findings) for native in kinds}
    if len(boxes) < len(kinds) or set(boxes) & {AV_ACTION, "agent_ness", *HOUSE_KINDS.values()}:
        raise InputError(f"'label_types' are {quoted(', '.join(kinds))}", where=where, hint=_FOREIGN)
    av = _labels(top, AV_ACTION, where, findings)
    children = {
        HOUSE_KINDS.get(native, native): found
        for native, parts in _COMPOSITES.items()
        if f"{native}_childs" in top and {native, *parts} <= set(boxes)
        if (found := _children(top[f"{native}_childs"], boxes[native], [boxes[p] for p in parts], where))
    }
    return Terms(boxes, av, children)


def _labels(top: Mapping[str, Any], native: str, where: str, findings: Findings) -> Labels:
    """The labels of a kind; of a file with one of the two lists, that one counts for both."""
    held = [name for name in (f"all_{native}_labels", f"{native}_labels") if name in top]
    if not held:
        raise InputError(f"there is neither 'all_{native}_labels' nor '{native}_labels'", where=where)
    if len(held) == 1:
        findings.warn("kinds of labels with one list, taken as all labels and as the used ones", held[0])
    every, used = (names(top[name], where, f"'{name}'") for name in (held[0], held[-1]))
    if len(set(used)) < len(used):
        raise InputError(f"'{held[-1]}' holds a label twice", where=where)
    strange = [name for name in used if name not in every]
    findings.warn(f"used labels that no box can have, for want of an id in '{held[0]}'", "", len(strange))
    return Labels(native, tuple(every), tuple(used))


def _children(value: Any, composite: Labels, parts: Sequence[Labels], where: str) -> list[list[int]]:
    """The parts of each used label of a composite kind, as indices in our vocabularies.

    The list has one entry for each used label, or one for each label there is. Its numbers point into the
    parts' used lists or into those of all labels: the names of the composite labels decide, and where they
    do not tell, numbers and entries are of the same sort. Empty where a used label has an unused part.

    Raises:
        InputError: if its length fits neither, or an entry is not one number for each part.
    """
    what = f"'{composite.native}_childs'"
    entries = a_list(value, where, what)
    own = next((sort for sort in (composite.used, composite.every) if len(sort) == len(entries)), None)
    if own is None:
        message = (
            f"{what} has {len(entries)} entries; there are {len(composite.used)} used labels and "
            f"{len(composite.every)} in all"
        )
        raise InputError(message, where=where)
    sorts = [[part.used for part in parts], [part.every for part in parts]]
    read = [_words(entries, lists) for lists in (sorts if own is composite.used else sorts[::-1])]
    fitting = [words for words in read if words is not None]
    if not fitting:
        odd = next((e for e in entries if not any(_words([e], lists) for lists in sorts)), entries[0])
        raise InputError(f"{what} holds {_told(odd)}, expected a number for each part", where=where)
    said = next(
        (w for w in fitting if all("-".join(e) == n for e, n in zip(w, own, strict=True))), fitting[0]
    )
    parts_of = dict(zip(own, said, strict=True))
    if not all(label in parts_of for label in composite.used):
        return []
    spelled = [list(zip(parts, parts_of[label], strict=True)) for label in composite.used]
    if not all(word in part.used for pairs in spelled for part, word in pairs):
        return []
    return [[part.used.index(word) for part, word in pairs] for pairs in spelled]


def _words(entries: Sequence[Any], lists: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """The entries as names from the lists; None where one is not an index for each of them."""
    found = []
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != len(lists):
            return None
        if any(whole(n, 0, len(names_) - 1) is None for n, names_ in zip(entry, lists, strict=True)):
            return None
        found.append([names_[n] for n, names_ in zip(entry, lists, strict=True)])
    return found


def _told(entry: Any) -> str:
    return ", ".join(quoted(n) for n in entry[:5]) if isinstance(entry, list) else quoted(entry)
