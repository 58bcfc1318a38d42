"""docs/tables.md lists every column that a reader adds, with its type."""

import re
from pathlib import Path

import polars as pl

from roadaware.scenes.schema import TABLES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tables.md"
TYPES = {
    pl.String: "text",
    pl.Boolean: "bool",
    pl.Int64: "int",
    pl.Float32: "float",
    pl.Float64: "float (64 bit)",
    pl.List(pl.String): "texts",
    pl.Array(pl.Float32, 16): "floats",
    pl.Array(pl.Float32, 51): "floats",
}


def test_the_page_lists_the_columns_that_the_reader_adds(native, root):
    options = {"appearance": True} if native.name == "jaad" else {}
    tables = native.read(root, **options).tables()
    added = {
        f"{table}.{c}": ", ".join(dtype.categories) if isinstance(dtype, pl.Enum) else TYPES[dtype]
        for table, frame in tables.items()
        for c, dtype in frame.schema.items()
        if c not in TABLES[table].columns
    }
    section = (
        PAGE.read_text(encoding="utf-8").split(f"## What {native.name.upper()} adds\n")[1].split("\n## ")[0]
    )
    assert dict(re.findall(r"^\| `(\w+\.\w+)` \| ([^|]+) \| [^|]+ \|$", section, flags=re.M)) == added
