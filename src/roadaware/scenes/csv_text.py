"""Tables as csv that people open: no text in them can call a function, and numbers stay exact."""

from __future__ import annotations

import polars as pl

_FORMULA = r"^'*[=+@\t\r-]"
_PLAIN = r"^[A-Za-z0-9_.-]+$"
_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def csv_text(table: pl.DataFrame, *, header: bool = True) -> str:
    """A table as csv, with as many digits as its numbers need.

    Text that a spreadsheet would compute gets an apostrophe in front; see `for_sheets`.

    Args:
        table: without columns of lists.
        header: whether the first line names the columns.
    """
    texts = [name for name, dtype in table.schema.items() if isinstance(dtype, _TEXTS)]
    return table.with_columns(for_sheets(pl.col(name)) for name in texts).write_csv(include_header=header)


def for_sheets(column: pl.Expr) -> pl.Expr:
    """Text with an apostrophe before what a spreadsheet would compute: what begins with =, +, -, @ or a tab.

    Names of letters, digits, `_`, `.` and `-` stay as they are. What has apostrophes before such a sign gets
    one more, so that `from_sheets` gives back what was written.

    Args:
        column: of text.

    >>> pl.DataFrame({"a": ["=1+1", "-5KQ66", "'=1", "it's"]}).select(for_sheets(pl.col("a")))["a"].to_list()
    ["'=1+1", '-5KQ66', "''=1", "it's"]
    """
    text = column.cast(pl.String)
    computed = text.str.contains(_FORMULA) & ~text.str.contains(_PLAIN)
    return pl.when(computed).then("'" + text).otherwise(text).alias(column.meta.output_name())


def from_sheets(column: pl.Expr) -> pl.Expr:
    """The inverse of `for_sheets`.

    Args:
        column: of text.
    """
    return column.cast(pl.String).str.replace(r"^'('*[=+@\t\r-])", "$1").alias(column.meta.output_name())
