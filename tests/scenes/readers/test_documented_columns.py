"""docs/tables.md lists every column that a reader adds, with its type; who adds none needs no section."""

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
    title = f"## What {native.name.upper()} adds\n"
    _, _, after = PAGE.read_text(encoding="utf-8").partition(title)
    section = after.split("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+\.\w+)` \| ([^|]+) \| [^|]+ \|$", section, flags=re.M))
    assert listed == added, f"docs/tables.md should list these columns under '{title.strip()}'"
