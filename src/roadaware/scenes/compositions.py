"""Which labels a composite label is made of: a duplex of agent and action, an event, or any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.scenes.tables import Meta

Children = Mapping[str, Sequence[Sequence[int]]]
Composites = Mapping[str, Sequence[str]]

NOTE = "children"
ROAD: dict[str, tuple[str, ...]] = {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
"""The composites of the ROAD paper."""


@dataclass(frozen=True)
class Composition:
    """One kind of composite label.

    Args:
        kind: its name, such as `event`.
        of: the kinds it is made of, in order.
        children: (labels, kinds) for each composite label the index of its label of each kind.
    """

    kind: str
    of: tuple[str, ...]
    children: Ints


def compositions(
    meta: Meta, children: Children | None = None, composites: Composites | None = None
) -> tuple[Composition, ...]:
    """The composites of a set, with the labels each of their labels is made of.

    Args:
        meta: its `composites` and `notes["children"]` hold unless others are given; its vocabularies are
            what the numbers are indices in.
        children: composite kind to (labels, kinds) indices, in the order of its vocabulary.
        composites: composite kind to the kinds it is made of; those of `meta`, else those of ROAD.

    Returns:
        One composition for each kind that `children` names, in its order.

    Raises:
        InputError: if a composite has no kinds, or an index leaves its vocabulary.
    """
    listed = children if children is not None else meta.notes.get(NOTE, {})
    kinds = composites if composites is not None else {**ROAD, **meta.composites}
    if not isinstance(listed, Mapping):
        raise InputError(f"the lists of children should go by composite kind, not be {type(listed).__name__}")
    return tuple(_composition(kind, rows, kinds, meta.vocabularies) for kind, rows in listed.items())


def noted(meta: Meta, found: Sequence[Composition]) -> Meta:
    """The meta that says what the composites are made of."""
    children = {each.kind: each.children.tolist() for each in found}
    return replace(
        meta,
        composites={**meta.composites, **{each.kind: each.of for each in found}},
        notes={**meta.notes, NOTE: {**meta.notes.get(NOTE, {}), **children}},
    )


def _composition(
    kind: str, rows: Any, composites: Composites, vocabularies: Mapping[str, tuple[str, ...]]
) -> Composition:
    if kind not in composites:
        raise InputError(
            f"it is not known what kinds '{kind}' is made of",
            hint=f"name them in `composites`; there are {', '.join(composites) or 'none'}",
        )
    of = tuple(composites[kind])
    if len(of) < 1 or len(set(of)) < len(of) or kind in of:
        raise InputError(f"'{kind}' should be made of different kinds other than itself, not of {of}")
    children = _indices(kind, of, rows)
    if kind in vocabularies and len(vocabularies[kind]) != len(children):
        raise InputError(
            f"{len(children)} rows of children for the {len(vocabularies[kind])} labels of '{kind}'",
            hint="one row for each label, in the order of the vocabulary",
        )
    for column, child in enumerate(of):
        size = len(vocabularies.get(child, ()))
        used = children[:, column]
        if child in vocabularies and len(used) and not 0 <= used.min() <= used.max() < size:
            raise InputError(
                f"the children of '{kind}' name {child} {used.min()}..{used.max()}; there are {size} labels"
            )
    return Composition(kind, of, children)


def _indices(kind: str, of: tuple[str, ...], rows: Any) -> Ints:
    """The rows as whole numbers, one of each kind."""
    if isinstance(rows, Sequence | np.ndarray) and not len(rows):
        return np.zeros((0, len(of)), dtype=np.int64)
    try:
        found = np.asarray(rows)
    except ValueError as error:
        raise InputError(f"the rows of children of '{kind}' differ in length: {error}") from error
    if found.ndim != 2 or found.shape[1] != len(of) or found.dtype.kind not in "iu":
        raise InputError(
            f"the children of '{kind}' should be rows of {len(of)} indices ({', '.join(of)}), "
            f"not {found.dtype} of shape {found.shape}"
        )
    return found.astype(np.int64)
