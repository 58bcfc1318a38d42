"""Issues of a reader: rows read, rows rejected with their reasons, and warnings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.errors import InputError
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import create_empty_table
from roadaware.scenes.tables import Meta

if TYPE_CHECKING:
    from roadaware.datasets import Progress, Reader

_SCHEMA = {"table": pl.String, "file": pl.String, "line": pl.Int64, "item": pl.String, "reason": pl.String}
# Names and numbers of single rows, without which equal reasons are counted together.
_OWN = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.,e+-]*")
NOTHING_PREDICTED = "files that predict nothing, so that every number is 0"
_LINE = re.compile(r", line (\d+), column \d+$")


@dataclass
class Warnings:
    """One kind of oddity: how often, and the first case."""

    count: int
    example: str


@dataclass
class Findings:
    """Collected while reading; parts of a reader's work are merged in the order of the files.

    Args:
        read: table to the rows found in the source.
        rejected: rows for the table `rejected`.
        warnings: oddities that were read as null or left aside, by their description.
        left_out: rows that by the format's own rule are no data, such as boxes outside the image.
    """

    read: Counter[str] = field(default_factory=Counter)
    rejected: list[pl.DataFrame] = field(default_factory=list)
    warnings: dict[str, Warnings] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    _single: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def reject(
        self, table: str, file: str, item: str, reason: str, line: int | None = None, *, rows: int = 1
    ) -> None:
        """One refused row; it is counted as read (`rows=0`: it was counted before)."""
        self.read[table] += rows
        row = {
            "table": table,
            "file": to_printable(file),
            "line": line,
            "item": to_printable(item, 120),
            "reason": to_printable(reason, 400),
        }
        self._single.append(row)

    def reject_file(self, file: str, error: InputError) -> None:
        """A whole file that cannot be read; counted among the files."""
        place = f" ({error.where})" if error.where and not error.where.endswith(file) else ""
        line = _LINE.search(error.where or "")
        self.reject("files", file, "", f"{error.message}{place}", int(line[1]) if line else None)

    def reject_rows(self, table: str, rows: pl.DataFrame) -> None:
        """Refused rows with the columns file, line, item and reason; they were counted before."""
        if len(rows):
            self._gather()
            named = rows.with_columns(table=pl.lit(table)).select(list(_SCHEMA)).cast(pl.Schema(_SCHEMA))
            texts = [
                pl.col(name).map_elements(to_printable, return_dtype=pl.String)
                for name in ("file", "item", "reason")
            ]
            self.rejected.append(named.with_columns(texts))

    def warn(self, what: str, example: str = "", count: int = 1) -> None:
        """Something odd that did not cost a row."""
        if count:
            known = self.warnings.setdefault(what, Warnings(0, to_printable(example)))
            known.count += count

    def build_meta(
        self, reader: Reader, vocabularies: dict[str, tuple[str, ...]], digest: str, /, **notes: Any
    ) -> Meta:
        """The facts of a reader's tables, with what was met while reading.

        Args:
            reader: which.
            vocabularies: kind to its labels in order.
            digest: of the contents of the files.
            notes: what else is to be said.
        """
        return Meta(
            dataset=reader.datasets[0],
            licence=reader.licence,
            vocabularies=vocabularies,
            source_digest=digest,
            rows_read=dict(sorted(self.read.items())),
            notes={**self.notes(), **notes},
        )

    def merge(self, other: Findings) -> None:
        """Merge the issues of a later part."""
        self.read.update(other.read)
        self.left_out.update(other.left_out)
        self._gather()
        other._gather()
        self.rejected.extend(other.rejected)
        for what, warning in other.warnings.items():
            self.warn(what, warning.example, warning.count)

    def table(self) -> pl.DataFrame:
        """The table `rejected`."""
        self._gather()
        return pl.concat(self.rejected) if self.rejected else create_empty_table("rejected")

    def _gather(self) -> None:
        """Make one table of the rows that were refused one by one."""
        if self._single:
            self.rejected.append(pl.DataFrame(self._single, schema=_SCHEMA))
            self._single = []

    def notes(self) -> dict[str, Any]:
        """Warnings and rows left out, as plain data for `Meta.notes`."""
        notes = [
            {"what": what, "count": w.count, "example": w.example}
            for what, w in sorted(self.warnings.items())
        ]
        return {"warnings": notes, "left_out": dict(sorted(self.left_out.items()))}


def find_common_reason(reasons: Sequence[str] | pl.Series) -> tuple[str, int]:
    """The reason that most rows share, but for names and numbers in it, as it first stands, and how often.

    >>> find_common_reason(["no box", "the score is '7'", "the score is '-3'"])
    ("the score is '7'", 2)
    """
    listed = list(reasons)
    kinds = [_OWN.sub("*", reason) for reason in listed]
    kind, count = Counter(kinds).most_common(1)[0]
    return listed[kinds.index(kind)], count


def build_all_rejected_error(findings: Findings, where: str, what: str, hint: str) -> InputError:
    """The error for predictions of which not one could be taken.

    Args:
        findings: has refused at least one row.
        where: names the file.
        what: predictions are called.
        hint: what to do.
    """
    table = findings.table()
    reason, count = find_common_reason(table["reason"])
    first = table.filter(reason=reason)["item"][0]
    said = f"all {len(table):,} {what} were refused, {count:,} of them because of this, as {first}: {reason}"
    return InputError(said, where=where, hint=hint)


def select_first_reason(*reasons: tuple[pl.Expr, str | pl.Expr]) -> pl.Expr:
    """The text of the first condition that holds in a row, null where none does."""
    return pl.coalesce(
        pl.when(condition).then(pl.lit(text) if isinstance(text, str) else text)
        for condition, text in reasons
    ).alias("reason")


def format_text_column(name: str) -> pl.Expr:
    """A raw text column between quotes, for messages."""
    return pl.format("'{}'", pl.col(name).fill_null("").str.slice(0, 60))


class Cells:
    """Raw text columns turned into values; what cannot be turned becomes null and is warned of.

    Args:
        rows: a table with `document`, the place of a row's file among `files`.
        files: names of the files.
        findings: where warnings go.
    """

    def __init__(self, rows: pl.DataFrame, files: Sequence[str], findings: Findings) -> None:
        self.rows, self.files, self.findings = rows, files, findings

    def choice(self, name: str, labels: Sequence[str], meaning: dict[str, str] | None = None) -> pl.Series:
        """A dictionary column.

        Args:
            name: the raw column.
            labels: the vocabulary, in code order.
            meaning: native text to label where they differ; other texts are then unknown.
        """
        raw = self.rows[name].str.strip_chars()
        words = raw if meaning is None else raw.replace_strict(meaning, default=None, return_dtype=pl.String)
        column = words.cast(pl.Enum(list(labels)), strict=False)
        self._warn(raw, column, f"{name}: a value outside {', '.join(meaning or labels)}, kept as null")
        return column.alias(name)

    def whole(self, name: str, *, lowest: int = 0, unknown: str | None = None) -> pl.Series:
        """Whole numbers from `lowest`; the text `unknown` is null without a warning."""
        raw = self.rows[name].str.strip_chars()
        if unknown is not None:
            raw = raw.set(raw == unknown, None)
        column = raw.cast(pl.Int64, strict=False)
        column = column.set(column < lowest, None)
        self._warn(raw, column, f"{name}: no whole number from {lowest}, kept as null")
        return column.alias(name)

    def numbers(self, names: Sequence[str], *, within: tuple[float, float] | None = None) -> list[pl.Series]:
        """Numbers that are finite in single precision, as tables hold them; others are null.

        Args:
            names: the raw columns.
            within: lowest and highest number.
        """
        text = "" if within is None else f" in [{within[0]}, {within[1]}]"
        values = self.rows.select(pl.col(*names).str.strip_chars().cast(pl.Float64, strict=False))
        finite = pl.all().cast(pl.Float32).is_finite()
        good = finite & (True if within is None else pl.all().is_between(*within))
        columns = values.select(pl.when(good).then(pl.all())).get_columns()
        for column in columns:
            if column.null_count() != self.rows[column.name].null_count():
                self._warn(
                    self.rows[column.name], column, f"{column.name}: no finite number{text}, kept as null"
                )
        return columns

    def before(self, points: pl.Series, ends: pl.Series) -> pl.Series:
        """Frame numbers, null where they lie behind the end of the video.

        Args:
            points: (rows) frame numbers.
            ends: (rows) lengths of the videos, null where unknown.
        """
        late = (points >= ends).fill_null(value=False)
        if late.any():
            first = int(late.arg_true()[0])
            example = f"{self.files[self.rows['document'][first]]}: {points[first]}"
            what = f"{points.name}: behind the end of the video, kept as null"
            self.findings.warn(what, example, int(late.sum()))
        return points.set(late, None)

    def flag(self, name: str) -> pl.Series:
        """Zeros and ones as booleans."""
        return self.choice(name, ("0", "1")).to_physical().cast(pl.Boolean).alias(name)

    def _warn(self, raw: pl.Series, column: pl.Series, what: str) -> None:
        if column.null_count() == raw.null_count():
            return
        odd = raw.is_not_null() & column.is_null()
        if odd.any():
            first = int(odd.arg_true()[0])
            example = f"{self.files[self.rows['document'][first]]}: '{raw[first]}'"
            self.findings.warn(what, example, int(odd.sum()))


# Files read one after another: one that cannot be read is refused, and the others are taken.


def read_each_file(
    names: Sequence[str],
    take: Callable[[str, Findings], None],
    findings: Findings,
    progress: Progress | None = None,
    unit: str = "files",
) -> list[InputError]:
    """Read files in their order, each whole or refused.

    Args:
        names: of the files.
        take: reads the file of a name, and tells what it meets to findings that are kept only if the whole
            file can be read.
        findings: of all files.
        progress: called with the number of files done and the total.
        unit: what `progress` calls them.

    Returns:
        the errors of the files that were refused.
    """
    errors: list[InputError] = []
    for done, name in enumerate(names, 1):
        found = Findings()
        try:
            take(name, found)
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            findings.merge(found)
        if progress is not None:
            progress(done, len(names), unit)
    return errors


def build_unreadable_error(errors: Sequence[InputError]) -> InputError:
    """The error for files of which not one could be read, of whose errors there is at least one."""
    if len(errors) == 1:
        return errors[0]
    message = f"none of {len(errors)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)
