"""The printed tables of the ROAD paper (TPAMI 2022) as one long table: each number and what it is about.

Tables 3, 5 to 10 and 15 to 25 lie beside this module as they are printed, one csv each. Cells that could not
be read are null and carry a note; so do cells that contradict the rest of the print."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import polars as pl

from roadaware.errors import UsageError

Level = Literal["boxes", "tubes", "frames", "frame", "video", "av_action"]

COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "dataset": pl.String,
    "kind": pl.String,
    "label": pl.String,
    "printed_as": pl.String,
    "model": pl.String,
    "trained_on": pl.String,
    "split": pl.String,
    "level": pl.String,
    "threshold": pl.String,
    "value": pl.Float64,
    "note": pl.String,
}
AVERAGED = "mean of three"
_COUNTED = {"15": "agent", "16": "action", "17": "location", "18": "av_action", "19": "duplex", "20": "event"}
_WHOLE = ("mean", "total")


@dataclass(frozen=True)
class _Place:
    """Place of a printed number; see `load_printed` for the fields."""

    table: str
    kind: str | None = None
    label: str | None = None
    printed_as: str | None = None
    dataset: str = "road"
    model: str | None = None
    trained_on: str | None = None
    split: str = "all"
    level: Level = "boxes"
    threshold: str | None = None


Cells = Iterator[tuple[_Place, str, str]]
"""Place, the text of the number, and the row's name and the column's heading for the notes."""


def load_printed(table: str | int | None = None, **where: str | None) -> pl.DataFrame:
    """Printed numbers with what they are about, in the order of print.

    Columns: `table`; `dataset` (road, ucf24); `kind` and `label` as the annotation file spells them, label
    null for a mean or total; `printed_as`; `model` (null for counts); `trained_on` (train_1, train_2,
    train_3, or the mean of the three); `split` (all, test, train_1, val_1, ..., val for the mean of the
    three); `level` (boxes, tubes and frames are counts; frame, video and av_action are average precision in
    per cent); `threshold`; `value`, null where unreadable; `note`.

    Args:
        table: its number (default: all of them).
        where: column to the value that is wanted.

    Raises:
        UsageError: if there is no such table or column.

    Source: Singh et al., TPAMI 2022, Tables 3, 5 to 10, 15 to 25.

    >>> load_printed(21, label="Ped", split="val_1", level="video")["value"].to_list()
    [51.0]
    """
    rows = _every_number()
    if table is not None:
        rows = rows.filter(pl.col("table") == str(table))
        if rows.is_empty():
            raise UsageError(f"no printed table {table}; there are {', '.join(list_tables())}")
    unknown = sorted(set(where) - set(COLUMNS))
    if unknown:
        raise UsageError(
            f"printed tables have no column {', '.join(unknown)}; they have {', '.join(COLUMNS)}"
        )
    for name, value in where.items():
        rows = rows.filter(pl.col(name).eq_missing(pl.lit(value, dtype=pl.String)))
    return rows


def list_tables() -> tuple[str, ...]:
    """The numbers of the tables that are here."""
    return tuple(_READ)


@cache
def _every_number() -> pl.DataFrame:
    notes = {(row[0].lstrip("0"), row[1], row[2]): row[3] for row in _lines("notes")[1:]}
    return pl.DataFrame(
        [row for table in _READ for row in _numbers(table, notes)], schema=COLUMNS, orient="row"
    )


def _numbers(table: str, notes: dict[tuple[str, str, str], str]) -> Iterator[tuple[Any, ...]]:
    header, *lines = _lines(f"table_{int(table):02d}")
    for line in lines:
        row = dict(zip(header, line, strict=True))
        for place, text, column in _READ[table](_Place(table), row):
            names = (row.get("row", ""), f"{row.get('kind')} {row.get('row')}")
            note = next((notes[key] for name in names if (key := (table, name, column)) in notes), None)
            # A dash gives no row; an empty cell could not be read and gives a null.
            value = None if text in ("", "-") else float(text)
            if text != "-":
                yield (*(getattr(place, c) for c in list(COLUMNS)[:-2]), value, note)


def _lines(name: str) -> list[list[str]]:
    source = files("roadaware.protocols") / "data" / f"tpami22_{name}.csv"
    with source.open(encoding="utf-8") as stream:
        return list(csv.reader(stream))


def _pair(text: str) -> tuple[str, str]:
    """The two numbers of a cell; a cell that is empty has none."""
    first, _, second = text.partition("/")
    return first, second


def _set_label(place: _Place, row: dict[str, str], kind: str) -> _Place:
    """The place with the row's kind and label."""
    label = None if row["row"] in _WHOLE else row["row"]
    return replace(place, kind=kind, label=label, printed_as=row["printed"])


def _split(name: str) -> str:
    """`Val-1` as `val_1`."""
    return name.lower().replace("-", "_")


def _counts(place: _Place, row: dict[str, str]) -> Cells:
    """Tables 15 to 20: boxes and tubes by split."""
    place = _set_label(place, row, _COUNTED[place.table])
    for column in list(row)[2:]:
        yield from _count(replace(place, split=_split(column)), row[column], column)


def _count(place: _Place, text: str, column: str) -> Cells:
    """A cell of two counts; what the vehicle does is counted in frames."""
    first: Level = "frames" if place.kind == "av_action" else "boxes"
    for level, number in zip((first, "tubes"), _pair(text), strict=True):
        yield replace(place, level=level), number, column


def _precisions(place: _Place, text: str, column: str) -> Cells:
    """A cell of frame-mAP at 0.5 and video-mAP at 0.2; the vehicle's action has the first alone."""
    first, second = _pair(text)
    if place.kind == "av_action":
        yield replace(place, level="av_action"), first, column
        return
    yield replace(place, level="frame", threshold="0.5"), first, column
    yield replace(place, level="video", threshold="0.2"), second, column


def _by_split(place: _Place, row: dict[str, str]) -> Cells:
    """Tables 7 and 21 to 23: counts, then results of the I3D model for each split."""
    place = _set_label(place, row, row["kind"])
    for column in list(row)[3:]:
        trained, _, split = column.rpartition(" ")
        if not trained:
            yield from _count(replace(place, split=_split(column)), row[column], column)
            continue
        on = AVERAGED if trained == "Averaged" else _split(trained)
        there = replace(place, model="I3D-32", trained_on=on, split=_split(split))
        yield from _precisions(there, row[column], column)


def _joint_or_product(place: _Place, row: dict[str, str]) -> Cells:
    """Tables 8, 24 and 25: joint scores and products of marginals."""
    kind = row.get("kind") or {"24": "duplex", "25": "event"}[place.table]
    place = _set_label(place, row, kind)
    yield from _count(place, row["All"], "All")
    for column in list(row)[-4:]:
        how, split = column.split(" ")
        model = "I3D-32" if how == "joint" else "I3D-32, product of marginals"
        there = replace(place, model=model, trained_on=AVERAGED, split=_split(split))
        yield from _precisions(there, row[column], column)


def _ucf24(place: _Place, row: dict[str, str]) -> Cells:
    """Table 3: UCF101-24."""
    online = "online" if row["online"] == "yes" else "offline"
    place = replace(place, dataset="ucf24", kind="action", split="test", printed_as=row["row"])
    place = replace(place, model=f"{row['row']} ({row['group']}, {online})")
    yield replace(place, level="frame", threshold="0.5"), row["f-mAP"], "f-mAP"
    for column in list(row)[4:]:
        yield replace(place, level="video", threshold=column), row[column], column


def _models(place: _Place, row: dict[str, str]) -> Cells:
    """Tables 5 and 6: models by kind of label, validation and test, averaged over the three splits."""
    level: Level = "video" if "threshold" in row else "frame"
    place = replace(
        place, model=row["row"], trained_on=AVERAGED, level=level, threshold=row.get("threshold", "0.5")
    )
    for kind in [column for column in row if column not in ("row", "threshold")]:
        if row[kind] == "-":
            continue
        for split, number in zip(("val", "test"), _pair(row[kind]), strict=True):
            yield replace(place, kind=kind, split=split), number, kind


def _av_actions(place: _Place, row: dict[str, str]) -> Cells:
    """Table 9: what the vehicle does."""
    place = _set_label(place, row, "av_action")
    yield from _count(place, row["All"], "All")
    for column in list(row)[3:]:
        model, split = column.split(" ")
        there = replace(place, model=model, trained_on=AVERAGED, split=_split(split), level="av_action")
        yield there, row[column], column


def _challenge(place: _Place, row: dict[str, str]) -> Cells:
    """Table 10: the winners of the ICCV 2021 challenge."""
    place = replace(place, kind=row["kind"], split="test", level="video", threshold="0.2")
    for column in ("Slowfast", "YOLOv5", "winner"):
        model = f"{row['team']} (ICCV 2021)" if column == "winner" else column
        if row[column]:
            yield replace(place, model=model), row[column], column


_READ: dict[str, Callable[[_Place, dict[str, str]], Cells]] = {
    "3": _ucf24,
    "5": _models,
    "6": _models,
    "7": _by_split,
    "8": _joint_or_product,
    "9": _av_actions,
    "10": _challenge,
    **dict.fromkeys(_COUNTED, _counts),
    "21": _by_split,
    "22": _by_split,
    "23": _by_split,
    "24": _joint_or_product,
    "25": _joint_or_product,
}
