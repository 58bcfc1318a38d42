"""What the columns and labels of published detection and tube files stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadaware.errors import InputError
from roadaware.scenes.dense import with_layout
from roadaware.scenes.tables import Meta, Scenes

NETWORK_SIZE = (682, 512)
"""Width and height in pixels of what the published network sees of images of 4:3."""

AGENTNESS = "agentness"
"""The kind that says whether there is anything; its tubes are those without label."""

CLASS_KINDS = ("agent", "action", "location", "duplex", "event")
"""The kinds of class scores in the order of the columns."""

HOUSE_NAMES = {"agent_ness": AGENTNESS, "action_ness": AGENTNESS, "loc": "location", "triplet": "event"}
"""The files' names of kinds where ours differ."""

_KNOWN_COUNTS: tuple[dict[str, int], ...] = (
    {"agent": 10, "action": 19, "location": 12, "duplex": 39, "event": 68, "av_action": 7},
    {"action": 24, "av_action": 25},
)


@dataclass(frozen=True)
class Kinds:
    """The labels of class scores, of the vehicle's action and of agentness.

    Args:
        vocabularies: kind to its labels in the order of the columns.
        meta: what else is known of the set, for the claims' own meta.
    """

    vocabularies: Mapping[str, tuple[str, ...]]
    meta: Meta = field(default_factory=Meta)

    @property
    def classes(self) -> list[str]:
        """The kinds of class scores, in the order of the columns."""
        return [kind for kind in CLASS_KINDS if kind in self.vocabularies]

    @property
    def width(self) -> int:
        """The number of class scores of a box."""
        return sum(len(self.vocabularies[kind]) for kind in self.classes)

    @property
    def av_width(self) -> int:
        """The number of scores of a frame; 0 where the vehicle's actions are not named."""
        return len(self.vocabularies.get("av_action", ()))

    def told(self) -> str:
        """The kinds with their numbers of labels, for messages."""
        return ", ".join(f"{len(self.vocabularies[kind])} {kind}" for kind in self.classes)

    def claims_meta(self, *, boxes: bool = False, frames: bool = False, **changes: Any) -> Meta:
        """The meta of claims under these names.

        Args:
            boxes: whether the boxes have dense class scores.
            frames: whether the frames have dense scores.
            changes: further fields of `Meta`.
        """
        notes = {key: self.meta.notes[key] for key in ("native_kinds", "children") if key in self.meta.notes}
        changes["notes"] = {**notes, **changes.get("notes", {})}
        composites = {
            kind: parts for kind, parts in self.meta.composites.items() if kind in self.vocabularies
        }
        meta = Meta(
            dataset=self.meta.dataset,
            vocabularies=dict(self.vocabularies),
            composites=composites,
            **changes,
        )
        meta = with_layout(meta, "boxes", self.classes) if boxes else meta
        return with_layout(meta, "frames", ["av_action"]) if frames else meta


def kinds_of(scenes: Scenes | None, vocabularies: Mapping[str, Sequence[str]] | None) -> Kinds | None:
    """The names that were given: those of `vocabularies`, else those of the scenes; None if neither.

    Raises:
        InputError: if what was given has no kind of class scores.
    """
    if vocabularies is not None:
        named = {kind: tuple(labels) for kind, labels in vocabularies.items()}
        kinds = Kinds(named, Meta(dataset=scenes.meta.dataset if scenes is not None else ""))
    elif scenes is not None:
        kinds = Kinds(scenes.meta.vocabularies, scenes.meta)
    else:
        return None
    if not kinds.classes:
        raise InputError(
            f"no vocabulary of {', '.join(CLASS_KINDS)}; there are {', '.join(kinds.vocabularies) or 'none'}",
            hint="give the scenes of the data set that was detected in, or `vocabularies`",
        )
    return kinds


def kinds_by_width(width: int | None, av_width: int | None, where: str) -> Kinds:
    """The kinds of ROAD 1.0 or UCF101-24, their labels numbered, known by the numbers of scores.

    Args:
        width: class scores of a box, None where there is no box.
        av_width: scores of a frame, None where there are none.
        where: the folder, for messages.

    Raises:
        InputError: if neither fits.
    """
    for counts in _KNOWN_COUNTS:
        classes = sum(count for kind, count in counts.items() if kind != "av_action")
        if width == classes or (width is None and av_width == counts["av_action"]):
            named = {kind: tuple(f"{kind} {n}" for n in range(count)) for kind, count in counts.items()}
            return Kinds({AGENTNESS: (AGENTNESS,), **named})
    raise InputError(
        f"{width if width is not None else 'no'} class scores per box and "
        f"{av_width if av_width is not None else 'no'} scores per frame: neither those of ROAD 1.0 (148 "
        "and 7) nor of UCF101-24 (24 and 25)",
        where=where,
        hint="give the scenes of the data set that was detected in, or `vocabularies` (kind to labels)",
    )
