"""What happens in each video as a whole, from a file: so that results can be sliced by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roadaware.errors import InputError
from roadaware.scenes.csvfiles import rows

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes

_HEADER = ["video", "category"]
_HINT = "one row for each video: its name, and one word such as flood or fight"


def with_categories(scenes: Scenes, path: Path) -> Scenes:
    """The truth with the categories of its videos.

    Args:
        scenes: the truth.
        path: csv with video and category; a first row that names the columns may be there.

    Raises:
        InputError: if a row has another form, a video stands there twice, or none of them is in the truth.
    """
    import polars as pl

    said: dict[str, str] = {}
    for line, cells in rows(path):
        if cells == _HEADER and not said:
            continue
        where = f"{path}:{line}"
        if len(cells) != len(_HEADER) or not all(cells):
            raise InputError(f"expected a video and a category, found {cells[:4]}", where=where, hint=_HINT)
        if cells[0] in said:
            raise InputError(f"the video {cells[0][:60]!r} stands there twice", where=where, hint=_HINT)
        said[cells[0]] = cells[1]
    known = scenes.videos["video"].cast(pl.String)
    if not set(said) & set(known):
        first = ", ".join(map(repr, list(said)[:3])) or "nothing"
        there = ", ".join(map(repr, known.head(3).to_list()))
        raise InputError(
            f"no video of the truth is named; the file has {first}, the truth {there}",
            where=str(path),
            hint=_HINT,
        )
    categories = pl.Series("category", [said.get(name) for name in known], dtype=pl.String)
    return scenes.with_tables(videos=scenes.videos.with_columns(categories))
