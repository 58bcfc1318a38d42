"""The ROAD paper (TPAMI 2022): its printed tables as one long table, and a run's numbers beside them, split by split.

Tables 3, 5 to 10 and 15 to 25 lie in `data` as they are printed, one csv each. Cells that could not be read are null and
carry a note; so do cells that contradict the rest of the print."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import polars as pl

from roadaware.errors import UsageError
from roadaware.metrics.metric_state import MetricResult

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


# A run's numbers beside the printed ones, split by split.

SPLITS = ("val_1", "val_2", "val_3", "test")
BESIDE: dict[str, Any] = {
    "level": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
    "obtained": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "table": pl.String,
    "model": pl.String,
    "trained_on": pl.String,
    "split": pl.String,
    "printed": pl.Float64,
    "difference": pl.Float64,
    "note": pl.String,
}
_DATASETS = {"road": "road", "ucf24": "ucf24", "ucf101-24": "ucf24"}
_MEASURED = ("frame", "video", "av_action")
_REPEATS = ("7", "8")  # what they print stands in Tables 21 to 25 too
_ELSEWHERE = {
    "pedestrian": "ped",
    "cyclist": "cyc",
    "vehtl": "tl",
    "tlred": "red",
    "tlamber": "amber",
    "tlgreen": "green",
    "moving": "mov",
    "braking": "brake",
    "stopped": "stop",
    "crossing": "xing",
    "atjunction": "jun",
    "atcrossing": "xing",
    "atparking": "parking",
    "pavement": "pav",
    "avmove": "avmov",
    "avturnright": "avturrht",
    "avturnleft": "avturlft",
    "avovertake": "avovtak",
    "avmoveleft": "avmovlft",
    "avmoveright": "avmovrht",
}


def normalize_name(label: str) -> str:
    """A class name without case, hyphens and blanks, by its short form where print uses several.

    >>> normalize_name("Ped-MovAway-LftPav") == normalize_name("Ped-movaway-lftpav")
    True
    >>> normalize_name("AV-Mov") == normalize_name("Av-move"), normalize_name("Pedestrian")
    (True, 'ped')
    """
    plain = re.sub(r"[^a-z0-9]", "", label.casefold())
    return _ELSEWHERE.get(plain, plain)


def match_printed(
    result: MetricResult,
    split: str,
    *,
    dataset: str = "road",
    trained_on: str | None = None,
    group: str | None = None,
) -> pl.DataFrame:
    """Each measured number that the paper prints too, once for every printed one, in per cent.

    A class or mean is compared where level, threshold and kind are the same and the split is: val_n with
    val_n, test with test. Means over the paper's three splits stand with them, marked in `trained_on` and
    `split`. Where composite scores were products of marginals, the paper's rows of the same way are taken for
    composite kinds. Tubes are compared in spatio-temporal overlap.

    Args:
        result: of an evaluation of road events.
        split: what was evaluated: val_1, val_2, val_3 or test; or `test` of UCF101-24.
        dataset: road or ucf24, in any case.
        trained_on: only the paper's models trained on train_1, train_2 or train_3 (default: all).
        group: which of the result's groups (default: the whole set).

    Returns:
        A frame with the columns `BESIDE`: `obtained` with `low` and `high` (its interval over videos),
        `load_printed` (null where unreadable), `difference` (obtained less printed).

    Raises:
        UsageError: if the paper knows no such split or dataset, or there is no such group.

    Source: Singh et al., TPAMI 2022, Tables 3, 5, 6, 9, 10 and 21 to 25.
    """
    dataset = _DATASETS.get(dataset.casefold(), dataset)
    known = SPLITS if dataset == "road" else ("test",) if dataset == "ucf24" else ()
    if split not in known:
        raise UsageError(
            f"the paper prints nothing for '{split}' of {dataset}; "
            f"it has {', '.join(SPLITS)} of road, and test of ucf24"
        )
    # The defined rows of a summary in per cent, with the plain name of their class
    summary = result.of_group(group)
    rows = summary.filter(
        pl.col("valid"),
        pl.col("level").is_in(_MEASURED),
        pl.col("overlap").fill_null("").is_in(["", "stiou"]),
    )
    ours = rows.select(
        "level",
        "threshold",
        "kind",
        "label",
        at=_at(),
        name=_name(),
        obtained=pl.col("value") * 100,
        low=pl.col("low_video") * 100,
        high=pl.col("high_video") * 100,
    )
    theirs = _printed_for(split, dataset, product=result.config.get("composite_scores") == "product")
    if trained_on is not None:
        theirs = theirs.filter(pl.col("trained_on") == trained_on)
    keys = ["level", "at", "kind", "name"]
    # Means over classes have no label: there null meets null.
    both = ours.join(theirs, on=keys, how="inner", maintain_order="left_right", nulls_equal=True)
    both = both.with_columns(difference=pl.col("obtained") - pl.col("printed"))
    return both.select(pl.col(name).cast(dtype) for name, dtype in BESIDE.items())


def _printed_for(split: str, dataset: str, *, product: bool) -> pl.DataFrame:
    """Printed numbers for a split: its own numbers, then the means over the three splits."""
    averaged = "test" if split == "test" else "val"
    rows = load_printed().filter(
        pl.col("dataset") == dataset,
        pl.col("level").is_in(_MEASURED),
        ~pl.col("table").is_in(_REPEATS),
        (pl.col("split") == split) | ((pl.col("split") == averaged) & (pl.col("trained_on") == AVERAGED)),
    )
    marginal = pl.col("model").str.contains("product").fill_null(False)
    joint = pl.col("table").is_in(["22", "23"])
    repeated = pl.col("table").is_in(["24", "25"]) & ~marginal  # the joint means stand in 22 and 23
    rows = rows.filter(~repeated, ~joint if product else ~marginal)
    return rows.select(
        "level",
        "kind",
        "table",
        "model",
        "trained_on",
        "split",
        "note",
        at=_at(),
        name=_name(),
        printed=pl.col("value"),
    )


def _at() -> pl.Expr:
    """The threshold to compare by; the vehicle's action has none."""
    return pl.when(pl.col("level") == "av_action").then(pl.lit("")).otherwise(pl.col("threshold"))


def _name() -> pl.Expr:
    return pl.col("label").map_elements(normalize_name, return_dtype=pl.String)
