"""Tables as Apache Arrow, and back, exactly: vocabularies and notes travel in the metadata of each schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.formats.bridges.libraries import import_library
from roadaware.scenes.schema import TABLES
from roadaware.scenes.tables import Meta, TableSet

_KEY = b"roadaware"
T = TypeVar("T", bound=TableSet)


def build_arrow_tables(tables: TableSet) -> dict[str, Any]:
    """Name of each table that has rows to its `pyarrow.Table`; numbers are not copied, text is.

    Raises:
        UsageError: if pyarrow is not installed.
    """
    import_library("pyarrow", "to_arrow")
    meta = json.dumps({"predicted": tables.predicted, "meta": asdict(tables.meta)}).encode()
    found = {}
    for name, frame in (tables.filled() or {"videos": tables.videos}).items():
        table = frame.to_arrow()
        found[name] = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: meta})
    return found


def read_arrow_tables(cls: type[T], given: Mapping[str, Any], meta: Meta | None = None) -> T:
    """Tables of anything that Arrow can stream (`__arrow_c_stream__`): pyarrow, pandas 2.2, DuckDB, polars, ...

    Args:
        cls: Scenes or Predictions.
        given: name of each table to its content.
        meta: vocabularies and notes (default: those that `to_arrow` put into the metadata, else none).

    Raises:
        UsageError: if a name or an object is no table.
        InputError: if the metadata is of the other kind of tables, or a table breaks a law.
    """
    if not isinstance(given, Mapping):
        raise UsageError(
            f"from_arrow takes {{name: table}}, such as {{'boxes': ...}}, not {type(given).__name__}"
        )
    frames: dict[str, pl.DataFrame] = {}
    for name, table in given.items():
        if name not in TABLES:
            raise UsageError(f"from_arrow: no table {name!r}; there are {', '.join(TABLES)}")
        if not isinstance(table, pl.DataFrame) and not hasattr(table, "__arrow_c_stream__"):
            raise UsageError(f"from_arrow: {name} is {type(table).__name__}, which is no Arrow table")
        try:
            frames[name] = pl.DataFrame(table)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            raise InputError(f"from_arrow: {name} cannot be read: {str(error).splitlines()[0]}") from error
        if meta is None:
            held = getattr(getattr(table, "schema", None), "metadata", None)
            if not isinstance(held, Mapping) or _KEY not in held:
                meta = None
            else:
                try:
                    record = json.loads(held[_KEY])
                    # `claimed` is what version 0.8 wrote.
                    predicted = record["predicted"] if "predicted" in record else record["claimed"]
                    meta = Meta(**record["meta"])
                except (ValueError, TypeError, KeyError, RecursionError) as error:
                    raise InputError(
                        f"from_arrow: the metadata of roadaware cannot be read: {error}"
                    ) from error
                if predicted != cls.predicted:
                    one, other = ("Predictions", "Scenes") if predicted else ("Scenes", "Predictions")
                    raise InputError(
                        f"from_arrow: these tables were written by {one}, and are read as {other}"
                    )
    return cls(**frames, meta=meta or Meta())
