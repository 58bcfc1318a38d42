"""Filters of boxes by any column of the tables, and where two sets of predictions differ."""

from __future__ import annotations

import functools
import json
import math
import operator
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import polars as pl

from roadaware.errors import UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.viewer.items import is_near
from roadaware.viewer.opening import TableSource

MOST_CONDITIONS = 8
_MOST_TEXT = 200
_MOST_VALUES = 60
_SPARSE = 8
"""Numbers of tubes for each tube; where there are more, looking them up in a list of all would take too much."""
_MOST_MASKS = 32
"""Conditions whose boxes are kept, of each set: a bit for each box, 1.25 MB of ten million."""
_TABLES = ("boxes", "tubes", "videos", "frames")
_KEYS = {"boxes": "box", "tubes": "tube", "videos": "video", "frames": "frame"}
_X1, _Y1, _X2, _Y2 = (pl.col(name).cast(pl.Float64) for name in CORNERS)
_SIZES = {"width": _X2 - _X1, "height": _Y2 - _Y1, "area": (_X2 - _X1) * (_Y2 - _Y1)}
"""Columns of boxes that are worked out of their corners, in pixels."""
_COMPARE = {
    "=": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
_TEXTS = ("=", "!=", "has")


@dataclass(frozen=True)
class Condition:
    """One condition on boxes.

    Args:
        table: that the column stands in: of boxes themselves, of their tube, video or frame.
        column: its name.
        compare: `=`, `!=`, `<`, `<=`, `>`, `>=`, or `has` for a part of a text.
        value: a number, a text or a truth value, as the column holds it.
    """

    table: str
    column: str
    compare: str
    value: float | str | bool


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Conditions as the page sends them: JSON, a list of [table.column, comparison, value].

    Raises:
        UsageError: if it is something else, or more than 8.
    """
    if not text:
        return ()
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("filters are a list of [column, comparison, value] in JSON") from error
    if not isinstance(given, list) or len(given) > MOST_CONDITIONS:
        raise UsageError(f"filters are a list of up to {MOST_CONDITIONS}")
    return tuple(_parse(each) for each in given)


def _parse(given: Any) -> Condition:
    if not isinstance(given, list) or len(given) != 3 or not all(isinstance(each, str) for each in given[:2]):
        raise UsageError("a filter is a column, a comparison and a value")
    (table, dot, column), compare, value = given[0].partition("."), given[1], given[2]
    if table not in _TABLES or not dot or not 0 < len(column) <= _MOST_TEXT:
        raise UsageError(f"a column is named as TABLE.COLUMN, of {', '.join(_TABLES)}")
    if compare not in (*_COMPARE, "has"):
        raise UsageError(f"a comparison is one of {' '.join(_COMPARE)} or has")
    if isinstance(value, str) and len(value) <= _MOST_TEXT:
        return Condition(table, column, compare, value)
    # An int beyond what a float holds is no number of a table.
    if isinstance(value, bool) or (
        isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)
    ):
        return Condition(table, column, compare, value if isinstance(value, bool) else float(value))
    raise UsageError(f"a value is a number, or a text of up to {_MOST_TEXT} characters")


def list_columns(source: TableSource) -> list[dict[str, Any]]:
    """What boxes of a set can be filtered by: `name` (table.column), `type` (number, text, truth) and, of texts with
    up to 60 different ones, `values`."""
    found: list[dict[str, Any]] = [
        {"name": f"boxes.{name}", "type": "number", "values": None} for name in _SIZES
    ]
    for table in _TABLES:
        rows = source.scan(table)
        for name, dtype in rows.collect_schema().items():
            kind = _kind(dtype)
            if kind is None or name == "video" or (name in CORNERS) or name == _KEYS[table]:
                continue
            values = None
            if kind == "text" and table in ("videos", "tubes"):
                column = pl.col(name)
                words = (column.explode() if isinstance(dtype, pl.List) else column).cast(pl.String)
                seen = (
                    rows.select(words.unique().drop_nulls().sort().head(_MOST_VALUES + 1))
                    .collect()
                    .to_series()
                )
                values = seen.to_list() if 0 < len(seen) <= _MOST_VALUES else None
            elif isinstance(dtype, pl.Enum) and len(dtype.categories) <= _MOST_VALUES:
                values = dtype.categories.to_list()
            found.append({"name": f"{table}.{name}", "type": kind, "values": values})
    return found


def _kind(dtype: pl.DataType) -> str | None:
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Boolean:
        return "truth"
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    return "text" if isinstance(inner, pl.String | pl.Categorical | pl.Enum) or inner == pl.String else None


def filter_boxes(source: TableSource, rows: pl.LazyFrame, conditions: Sequence[Condition]) -> pl.LazyFrame:
    """The boxes that meet all conditions; what is unknown meets none but `!=`.

    Raises:
        UsageError: if the set has no such column, or its values are of another type.
    """
    held = rows.collect_schema()
    for condition in conditions:
        if condition.table == "boxes":
            rows = rows.filter(_test(source, condition))
            continue
        keys = {"tubes": ["tube"], "videos": ["video"], "frames": ["video", "frame"]}[condition.table]
        if "tube" in keys and "tube" not in held:
            raise UsageError("the boxes of this set belong to no tubes")
        table = source.scan(condition.table).filter(_test(source, condition))
        asked = table.select(_key(key) for key in keys)
        if keys == ["video"]:  # few names, which a scan can look for without a join
            names = asked.collect().to_series()
            rows = rows.filter(pl.col("video").cast(pl.String).is_in(names.implode()))
            continue
        marks = [f"__{key}" for key in keys]
        named = rows.with_columns(_key(key).alias(mark) for key, mark in zip(keys, marks, strict=True))
        rows = named.join(asked.rename(dict(zip(keys, marks, strict=True))), on=marks, how="semi").drop(marks)
    return rows


def _key(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String if name == "video" else pl.Int64)


def _test(source: TableSource, condition: Condition) -> pl.Expr:
    """Whether a row of the condition's table meets it."""
    name, value = condition.column, condition.value
    schema = source.scan(condition.table).collect_schema()
    if condition.table == "boxes" and name in _SIZES:
        column, kind = _SIZES[name], "number"
    elif name in schema and (found := _kind(schema[name])) is not None:
        column, kind = pl.col(name), found
    else:
        raise UsageError(f"{source.name} has no column {condition.table}.{name} to filter by")
    wanted = {"number": float, "truth": bool, "text": str}[kind]
    if type(value) is not wanted:
        raise UsageError(f"{condition.table}.{name} holds a {kind}, not {str(value)[:40]!r}")
    if kind == "number":
        compare = _COMPARE.get(condition.compare)
        if compare is None:
            raise UsageError("`has` is asked of texts")
        test: pl.Expr = compare(column.cast(pl.Float64).fill_nan(None), value)
        return test.fill_null(condition.compare == "!=")
    if kind == "truth" or condition.compare not in _TEXTS:
        if condition.compare not in ("=", "!="):
            raise UsageError(f"{condition.table}.{name} is compared by = and != alone")
        test = column == value if condition.compare == "=" else column != value
        return test.fill_null(condition.compare == "!=")
    several = isinstance(schema[name], pl.List)
    text = column.cast(pl.List(pl.String)) if several else column.cast(pl.String)
    if condition.compare == "has":
        low = str(value).lower()
        parts = text.list.join(" ") if several else text
        return parts.str.to_lowercase().str.contains(low, literal=True).fill_null(value=False)
    same = text.list.contains(str(value)) if several else text == value
    return (same if condition.compare == "=" else ~same).fill_null(condition.compare == "!=")


class BoxMasks:
    """Which boxes of a set meet conditions; each condition is worked out once, and kept as a bit for each box.

    So that of several conditions the one that changed is worked out alone. `count_boxes` is the plain way.

    Args:
        source: the set.
        runs: video to the runs of its rows, as start and length; None where videos are scattered all over the table.
    """

    def __init__(self, source: TableSource, runs: Mapping[str, Sequence[tuple[int, int]]] | None) -> None:
        self._source, self._runs = source, runs
        self._masks: dict[tuple[Condition, type], pl.Series] = {}
        self._lock = threading.Lock()

    def count(self, conditions: Sequence[Condition]) -> dict[str, int]:
        """Video to how many boxes meet all conditions; videos without any are left out.

        Raises:
            UsageError: if the set has no such column, or its values are of another type.
        """
        runs = self._runs
        if runs is None or not conditions:
            return count_boxes(self._source, conditions)
        with self._lock:  # two pages that ask for the same: one of them works it out
            masks = [self._mask(condition) for condition in conditions]
        passed = functools.reduce(operator.and_, masks)
        counts = {video: sum(int(passed.slice(*run).sum()) for run in held) for video, held in runs.items()}
        return {video: count for video, count in counts.items() if count}

    def _mask(self, condition: Condition) -> pl.Series:
        """(n,) whether each box meets a condition, in the order of the table."""
        key = (
            condition,
            type(condition.value),
        )  # True and 1.0 are equal, and are not compared with the same columns
        mask = self._masks.pop(key, None)
        if mask is None:
            mask = self._work_out(condition)
            while len(self._masks) >= _MOST_MASKS:
                self._masks.pop(next(iter(self._masks)))
        self._masks[key] = mask  # the one that was asked for last is dropped last
        return mask

    def _work_out(self, condition: Condition) -> pl.Series:
        table = self._source.scan("boxes")
        if condition.table == "boxes":
            test = _test(self._source, condition)
        elif condition.table == "tubes":
            test = self._find_owned(condition)
        else:
            kept = (
                filter_boxes(self._source, table.with_row_index("__row"), [condition])
                .select("__row")
                .collect()
            )
            total = int(table.select(pl.len()).collect().item())
            mask = pl.repeat(value=False, n=total, dtype=pl.Boolean, eager=True)
            return mask.scatter(kept["__row"], values=True)
        # Some rows at a time, on all cores: whole columns of ten million boxes would take as long again, and 200 MB.
        return table.select(passed=test).collect(engine="streaming").to_series().rechunk()

    def _find_owned(self, condition: Condition) -> pl.Expr:
        """Whether the tube of a box meets a condition: looked up by number, where numbers lie close."""
        if "tube" not in self._source.scan("boxes").collect_schema():
            raise UsageError("the boxes of this set belong to no tubes")
        tubes = self._source.scan("tubes").select("tube", passed=_test(self._source, condition)).collect()
        numbers = tubes.filter("passed")["tube"].cast(pl.Int64)
        lowest, highest = (cast(int, number or 0) for number in (numbers.min(), numbers.max()))
        column = pl.col("tube").cast(pl.Int64)
        if highest > _SPARSE * (len(tubes) + 1000) or lowest < 0:
            return column.is_in(numbers.implode()).fill_null(value=False)
        flags = pl.repeat(value=False, n=highest + 2, dtype=pl.Boolean, eager=True).scatter(
            numbers, values=True
        )
        # The last flag is nobody's: numbers that are not there come to it.
        known = pl.when(column.is_between(0, highest)).then(column).otherwise(highest + 1)
        return pl.lit(flags).gather(known)


def count_boxes(source: TableSource, conditions: Sequence[Condition]) -> dict[str, int]:
    """Video to how many boxes meet all conditions; all boxes are gone through."""
    found = filter_boxes(source, source.scan("boxes"), conditions).group_by("video").len().collect()
    return dict(found.select(pl.col("video").cast(pl.String), pl.col("len").cast(pl.Int64)).rows())


# Where two predictions differ.


def find_differences(
    one: pl.DataFrame, other: pl.DataFrame, overlap: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes that only one of two sets has: no box of the other in their frame overlaps them enough.

    Args:
        one, other: boxes of one video: `video`, `frame`, corners, and what else is kept.
        overlap: smallest intersection over union of the same.
    """
    return one.filter(~pl.Series(is_near(one, other, overlap))), other.filter(
        ~pl.Series(is_near(other, one, overlap))
    )


def summarize_differences(boxes: pl.DataFrame, side: str) -> Iterator[dict[str, Any]]:
    """The tubes (or, of boxes without tubes, the frames) that hold the boxes, those with the most first."""
    by = "tube" if "tube" in boxes.columns and boxes["tube"].null_count() < len(boxes) else "frame"
    grouped = boxes.drop_nulls(by).group_by(by, maintain_order=True)
    rows = grouped.agg(
        pl.len().alias("boxes"),
        pl.col("frame").min().alias("first"),
        (pl.col("frame").max() + 1).alias("end"),
        pl.col("frame").sort().gather(pl.len() // 2).first().alias("at"),
        pl.col("box").first().alias("box"),
    ).sort("boxes", "first", descending=[True, False], maintain_order=True)
    for row in rows.iter_rows(named=True):
        tube = row["tube"] if by == "tube" else None
        yield {
            "side": side,
            "path": tube,
            "box": row["box"] if tube is None else None,
            "boxes": row["boxes"],
            "frame": row["at"],
            "span": [row["first"], row["end"]],
        }
