"""Layout of a dense `scores` column: the (kind, label) of each number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.tables import Meta

_NOTE = "dense_scores"


@dataclass(frozen=True)
class Layout:
    """The kinds of a dense score array, in order, each with its labels.

    Args:
        kinds: kind to its labels; the columns are all labels of the first kind, then of the second, ...

    >>> Layout({"agent": ("Ped", "Car"), "action": ("Stop",)}).columns("action")
    slice(2, 3, None)
    """

    kinds: Mapping[str, tuple[str, ...]]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(len(labels) for labels in self.kinds.values())

    def columns(self, kind: str) -> slice:
        """Columns of the labels of one kind.

        Raises:
            InputError: if there is no such kind.
        """
        start = 0
        for name, labels in self.kinds.items():
            if name == kind:
                return slice(start, start + len(labels))
            start += len(labels)
        raise InputError(f"there are no scores of '{kind}'; there are {', '.join(self.kinds) or 'none'}")


def set_score_layout(meta: Meta, table: str, kinds: Sequence[str]) -> Meta:
    """Note which kinds the `scores` of `table` hold; their labels are the vocabularies of `meta`.

    Args:
        meta: of the set; its vocabularies hold every kind.
        table: `boxes` or `frames`.
        kinds: in the order of the columns.

    Raises:
        InputError: if a kind has no vocabulary.
    """
    missing = [kind for kind in kinds if kind not in meta.vocabularies]
    if missing:
        raise InputError(f"no vocabulary of {', '.join(missing)}; there are {', '.join(meta.vocabularies)}")
    noted = {**meta.notes.get(_NOTE, {}), table: list(kinds)}
    return replace(meta, notes={**meta.notes, _NOTE: noted})


def get_score_layout(meta: Meta, table: str) -> Layout:
    """The layout of the `scores` of `table`; empty where none is noted.

    Raises:
        InputError: if what was noted names a kind without vocabulary.
    """
    noted = meta.notes.get(_NOTE, {})
    kinds = noted.get(table, []) if isinstance(noted, dict) else []
    missing = [kind for kind in kinds if kind not in meta.vocabularies]
    if missing:
        raise InputError(f"scores of {table} are of kinds without vocabulary: {', '.join(missing)}")
    return Layout({kind: meta.vocabularies[kind] for kind in kinds})


def convert_to_matrix(scores: pl.Series, width: int) -> npt.NDArray[np.float32]:
    """A dense column as (rows, width) numbers, without a copy where it is an array column.

    Raises:
        InputError: if a row is null or of another length.
    """
    if scores.null_count():
        raise InputError(f"{scores.null_count()} rows of dense scores are null")
    if isinstance(scores.dtype, pl.Array):
        found = scores.dtype.shape[0]
        lengths = [found] if len(scores) else []
        values = scores.explode() if len(scores) else pl.Series([], dtype=pl.Float32)
    else:
        lengths = scores.list.len().unique().to_list()
        values = scores.explode()
    if any(length != width for length in lengths):
        raise InputError(f"{width} dense scores are expected in each row; found {sorted(lengths)}")
    # One flat array, seen as rows and not copied.
    return values.to_numpy().astype(np.float32, copy=False).reshape(len(scores), width)
