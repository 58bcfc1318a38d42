"""Mirroring: labels of images flipped left to right, by the sides in their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Ints
from roadaware.scenes.composites import Composition
from roadaware.tasks.road_events import Classes, Hot

_SIDES = {"Lft": "Rht", "Left": "Right", "left": "right", "LEFT": "RIGHT"}
_OTHER = {**_SIDES, **{right: left for left, right in _SIDES.items()}}
# The longest first: of alternatives that fit, the first one is taken.
_SIDE = re.compile("|".join(sorted(_OTHER, key=len, reverse=True)))


def replace_mirrored_words(label: str) -> str:
    """The label of the mirror image.

    >>> replace_mirrored_words("Ped-XingFmLft-RhtPav")
    'Ped-XingFmRht-LftPav'
    """
    return _SIDE.sub(lambda found: _OTHER[found[0]], label)


@dataclass(frozen=True, eq=False)
class Mirror:
    """Permutation of classes in a mirror image.

    A composite label is had by whoever has all its parts, so a composite whose mirror image has no name ends
    there, and one that had no name may begin. A plain label without mirror image cannot be turned.

    Args:
        source: (c) the column that each column takes its value from; -1 for none.
        stuck: (c) columns of plain labels whose mirror image has no name.
        parts: for each composite kind its first column, and (labels, kinds) columns that make it up.
        av: (v) action of the own vehicle to its mirror image; -1 where that has no name.
    """

    source: Ints
    stuck: Bools
    parts: tuple[tuple[int, Ints], ...]
    av: Ints

    def turns(self, hot: Bools, av: Ints) -> bool:
        """Whether everything that is seen has a mirror image.

        Args:
            hot: (n, c) classes of all boxes.
            av: actions of the own vehicle, -1 for unknown.
        """
        return not bool(hot[:, self.stuck].any()) and all(self.av[a] >= 0 for a in av.tolist() if a >= 0)

    def classes(self, hot: Hot) -> Hot:
        """(n, c) classes in the mirror; a composite is as likely as the least likely of its parts."""
        turned = hot[:, self.source.clip(min=0)] * (self.source >= 0)
        for first, parts in self.parts:
            turned[:, first : first + len(parts)] = turned[:, parts].min(axis=2)
        return turned

    def actions(self, av: Ints) -> Ints:
        """(n) actions of the own vehicle in the mirror."""
        if not len(self.av):
            return av
        return np.where(av >= 0, self.av[av.clip(min=0)], -1)


def build_mirror(
    classes: Classes, compositions: tuple[Composition, ...], words: Mapping[str, tuple[str, ...]]
) -> Mirror:
    """The mirror of a detector's classes.

    Args:
        classes: its columns.
        compositions: what composite labels are made of.
        words: the vocabularies that `compositions` counts in.
    """
    at = {named: place for place, named in enumerate(classes.names)}
    source = np.array([at.get((kind, replace_mirrored_words(label)), -1) for kind, label in classes.names])
    # Agentness has no side.
    source[0] = 0
    parts, composite = [], set()
    for each in compositions:
        if each.kind not in classes.kinds or not set(each.of) <= set(classes.kinds):
            continue
        names = {
            words[each.kind][row]: [
                at.get((k, words[k][c]), -1) for k, c in zip(each.of, columns, strict=True)
            ]
            for row, columns in enumerate(each.children.tolist())
        }
        held = np.array([names.get(label, [-1]) for label in classes.kinds[each.kind]], dtype=np.int64)
        if held.size and (held >= 0).all():
            parts.append((at[each.kind, classes.kinds[each.kind][0]], held))
            composite.add(each.kind)
    stuck = np.array([place < 0 for place in source])
    stuck &= np.array([kind not in composite for kind, _ in classes.names])
    av_at = {label: place for place, label in enumerate(classes.av_labels)}
    av = np.array(
        [av_at.get(replace_mirrored_words(label), -1) for label in classes.av_labels], dtype=np.int64
    )
    return Mirror(source, stuck, tuple(parts), av)
