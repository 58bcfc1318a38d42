"""Which sentence of the scenes a claim means, by any of the names that published files use."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes

_SHOWN = 5
UNKNOWN = "a sentence that the truth does not have"


class Sentences:
    """The sentences of some scenes by their names, running numbers and videos.

    Args:
        scenes: with queries.

    Raises:
        InputError: if there is no query.
    """

    def __init__(self, scenes: Scenes) -> None:
        table = scenes.queries.with_columns(pl.col("video").cast(pl.String))
        if table.is_empty():
            raise InputError(
                f"{scenes.meta.dataset or 'the truth'} has no sentences: there is nothing to claim",
                hint="check which file was given as truth",
            )
        self.query = table["query"].to_list()
        self.videos = table["video"].to_list()
        self.names = _texts(table, "name")
        self.kinds = _texts(table, "sentence_kind")
        numbers = [None if n is None else str(n) for n in _column(table, "number")]
        stems = [None if name is None else name.removesuffix(".mp4") for name in self.names]
        self._tables = [_places(each) for each in (self.names, stems, numbers, self.videos)]

    def find(self, name: str) -> int | str:
        """The place of the sentence that is called so, or why there is none.

        The first of these decides: native names, the same without their ending, running numbers in the
        file, videos.
        """
        for asked in dict.fromkeys((name, name.removesuffix(".mp4"))):
            for table in self._tables:
                places = table.get(asked, [])
                if len(places) == 1:
                    return places[0]
                if places:
                    return f"{len(places)} sentences of the truth are called so: take one split or file"
        return UNKNOWN

    def nothing(self, claimed: Iterable[str], where: str) -> InputError:
        """The error for claims of which none is on a sentence of the truth: which names differ."""
        asked = list(dict.fromkeys(claimed))[:_SHOWN]
        has = [name for name in self.names if name is not None][:_SHOWN] or self.videos[:_SHOWN]
        return InputError(
            f"not one claim is on a sentence of the truth: the file names {asked}, the truth {has}",
            where=where,
            hint="take the truth that the claims were made on, in the form whose names they use",
        )


def _places(names: list[str | None]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name is not None:
            found.setdefault(name, []).append(place)
    return found


def _column(table: pl.DataFrame, name: str) -> list[int | None]:
    return table[name].to_list() if name in table.columns else [None] * len(table)


def _texts(table: pl.DataFrame, name: str) -> list[str | None]:
    return table[name].cast(pl.String).to_list() if name in table.columns else [None] * len(table)
