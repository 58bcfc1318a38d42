"""The laws every table keeps: types of known columns, whole and unique keys, boxes and intervals in order."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.schema import TABLES, Column, Kind, Table

_DTYPES: dict[Kind, pl.DataType] = {
    "text": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float32(),
    "bool": pl.Boolean(),
    "texts": pl.List(pl.String()),
    "floats": pl.List(pl.Float32()),
    "spans": pl.List(pl.List(pl.Int64())),
}
_SHOWN = 5


def empty_table(name: str) -> pl.DataFrame:
    """The table `name` with its required columns and no rows."""
    columns = TABLES[name].columns
    return pl.DataFrame(schema={c: _DTYPES[column.kind] for c, column in columns.items() if column.required})


def checked(name: str, frame: pl.DataFrame, *, claimed: bool) -> pl.DataFrame:
    """The table with its columns in their types, or an error that names table, column and first rows.

    Args:
        name: which table, a key of `TABLES`.
        frame: its rows.
        claimed: whether the table belongs to Predictions (which alone may hold scores).

    Raises:
        InputError: if a column is missing or of the wrong type, a key is null or repeated, a box or an
            interval is upside down, or a number is not finite.
    """
    table = TABLES[name]
    missing = [c for c, column in table.columns.items() if column.required and c not in frame.columns]
    if missing:
        raise InputError(f"table {name} needs the columns {missing} and has {frame.columns}")
    casts = [
        cast
        for c, column in table.columns.items()
        if c in frame.columns
        and (cast := _cast(name, c, column, frame.schema[c], claimed=claimed)) is not None
    ]
    if casts:
        try:
            frame = frame.with_columns(casts)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"table {name}: {str(error).splitlines()[0]}") from error
    _check_rows(name, table, frame)
    return frame


def check_references(tables: Mapping[str, pl.DataFrame]) -> None:
    """Every pointer between two tables that are both here finds its row.

    Raises:
        InputError: naming table, column and the first values that point nowhere.
    """
    for name, frame in tables.items():
        for c, column in TABLES[name].columns.items():
            if column.to is None or c not in frame.columns or column.to not in tables or frame.is_empty():
                continue
            key = TABLES[column.to].key[0]
            given = _plain(frame[c].unique().drop_nulls())
            known = _plain(tables[column.to][key])
            lost = given.filter(~given.is_in(known.implode()))
            if len(lost):
                shown = lost.sort().head(_SHOWN).to_list()
                raise InputError(
                    f"table {name}: {c} points to {len(lost)} rows absent from {column.to}: {shown}"
                )
    _check_frame_range(tables)


def _cast(name: str, c: str, column: Column, dtype: pl.DataType, *, claimed: bool) -> pl.Expr | None:
    """The cast that brings a column to its type, None where it has it already."""
    if column.claimed and not claimed:
        raise InputError(f"table {name}: {c} is a claim; it belongs to Predictions, not to Scenes")
    wanted = _DTYPES[column.kind]
    if dtype == wanted or (column.kind == "text" and dtype in (pl.Enum, pl.Categorical)):
        return None
    fits = {
        "text": dtype == pl.Null,
        "int": dtype.is_integer() or dtype == pl.Null,
        "float": dtype.is_numeric() or dtype == pl.Null,
        "bool": dtype == pl.Null,
        "texts": dtype == pl.Null or isinstance(dtype, pl.List),
        "floats": dtype == pl.Null or isinstance(dtype, pl.List | pl.Array),
        "spans": dtype == pl.Null or isinstance(dtype, pl.List),
    }
    if not fits[column.kind]:
        raise InputError(f"table {name}: {c} should be {column.kind} ({wanted}), not {dtype}")
    if isinstance(dtype, pl.Array):
        return None if dtype.inner == pl.Float32 else pl.col(c).cast(pl.Array(pl.Float32, dtype.shape))
    return pl.col(c).cast(wanted)


def _check_rows(name: str, table: Table, frame: pl.DataFrame) -> None:
    """Nulls, keys, order of boxes and intervals, finite numbers."""
    if frame.is_empty():
        return
    for c, column in table.columns.items():
        if c in frame.columns and not column.nullable and frame[c].null_count():
            _refuse(name, f"{c} is null", frame, pl.col(c).is_null())
    if table.unique and table.key and frame.select(table.key).is_duplicated().any():
        repeated = pl.struct(table.key).is_duplicated()
        _refuse(name, f"the key {' + '.join(table.key)} is repeated", frame, repeated)
    if name == "boxes":
        _refuse_if(name, "x1_px > x2_px", frame, pl.col("x1_px") > pl.col("x2_px"))
        _refuse_if(name, "y1_px > y2_px", frame, pl.col("y1_px") > pl.col("y2_px"))
    if "end_frame" in frame.columns and "start_frame" in frame.columns:
        _refuse_if(name, "end_frame < start_frame", frame, pl.col("end_frame") < pl.col("start_frame"))
    if "frame" in table.columns:
        _refuse_if(name, "frame < 0", frame, pl.col("frame") < 0)
    for c, column in table.columns.items():
        if c in frame.columns and column.kind == "float":
            _refuse_if(name, f"{c} is not finite", frame, ~pl.col(c).is_finite())


def _check_frame_range(tables: Mapping[str, pl.DataFrame]) -> None:
    """No box and no frame lies behind the last frame of its video, where that is known."""
    videos = tables.get("videos")
    if videos is None or "n_frames" not in videos.columns or videos["n_frames"].null_count() == len(videos):
        return
    ends = videos.select(pl.col("video").cast(pl.String), "n_frames")
    for name in ("frames", "boxes"):
        frame = tables.get(name)
        if frame is None or frame.is_empty():
            continue
        last = (
            frame.group_by("video").agg(pl.col("frame").max()).with_columns(pl.col("video").cast(pl.String))
        )
        late = last.join(ends, on="video").filter(pl.col("frame") >= pl.col("n_frames"))
        if len(late):
            raise InputError(
                f"table {name}: frames behind the end of their video: {late.head(_SHOWN).rows()}"
            )


def _plain(values: pl.Series) -> pl.Series:
    return values.cast(pl.String) if values.dtype in (pl.Enum, pl.Categorical) else values


def _refuse_if(name: str, what: str, frame: pl.DataFrame, wrong: pl.Expr) -> None:
    if frame.select(wrong.any()).item():
        _refuse(name, what, frame, wrong)


def _refuse(name: str, what: str, frame: pl.DataFrame, wrong: pl.Expr) -> None:
    rows = frame.with_row_index("row").filter(wrong)
    key = [c for c in TABLES[name].key if c in rows.columns]
    shown = rows.select("row", *key).head(_SHOWN).rows(named=True)
    raise InputError(f"table {name}: {what} in {len(rows)} rows, first {shown}")
