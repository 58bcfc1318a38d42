"""One kind of file over a batch of videos: read, scanned, and what is wrong with it told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings, first_reason
from roadaware.scenes.readers.records import Document, Record, Tables, Walker, located, scan
from roadaware.scenes.readers.source import Source
from roadaware.scenes.readers.xml import decode

Place = tuple[int, str]


@dataclass(frozen=True)
class Sheet:
    """The records of one kind of file.

    Args:
        rows: the records of all files that could be read, `document` being the place of their video.
        roots: place of a video to the root of its file, where that could be read.
        errors: place of a video to why its file could not be read.
    """

    rows: pl.DataFrame
    roots: dict[int, etree._Element]
    errors: dict[int, InputError]
    documents: list[Document]
    scanned: list[bool]
    record: Record
    root: str

    def refuse(self, table: str, bad: pl.DataFrame, findings: Findings) -> None:
        """Put rows (with `document`, `row`, `line`, `item`, `reason`) among the rejected ones, with lines."""
        if len(bad):
            found = located(bad, self.documents, self.scanned, self.record, root=self.root)
            findings.reject_rows(table, found)

    @property
    def files(self) -> list[str]:
        """The name of the file at every place."""
        return [document.name for document in self.documents]


def read_sheet(
    source: Source,
    names: Sequence[str | None],
    record: Record | Callable[[str], Record],
    root: str,
    findings: Findings,
    walker: Walker | None = None,
) -> Sheet:
    """Read one file for every video; a file that cannot be read is rejected whole and named.

    Args:
        source: where the files lie.
        names: the file of each video, None where there is none.
        record: what to look for, or what tells that from the text of the first file.
        root: the name every file's root must have.
        findings: counts the files, and takes those that cannot be read.
        walker: who reads what the scanner does not know.
    """
    errors: dict[int, InputError] = {}
    documents = [
        Document(name or "", source.where(name or ""), _text(source, place, name, errors))
        for place, name in enumerate(names)
    ]
    there = [place for place, name in enumerate(names) if name is not None and place not in errors]
    if not isinstance(record, Record):
        record = record(documents[there[0]].text if there else "")
    tables: Tables = scan([documents[place] for place in there], record, root=root, walker=walker)
    rows = tables.rows.with_columns(
        pl.col("document").replace_strict(dict(enumerate(there)), return_dtype=pl.UInt32)
        if len(there) != len(names)
        else pl.col("document")
    )
    roots: dict[int, etree._Element] = {}
    scanned = [False] * len(names)
    for place, tree, quick in zip(there, tables.roots, tables.scanned, strict=True):
        scanned[place] = quick
        if isinstance(tree, InputError):
            errors[place] = tree
        else:
            roots[place] = tree
    findings.read["files"] += len(roots)
    for place in sorted(errors):
        findings.reject_file(documents[place].name, errors[place])
    return Sheet(rows, roots, errors, documents, scanned, record, root)


def sift(rows: pl.DataFrame, key: Sequence[str], second: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part rows with a `reason` into those to take and those to refuse; of rows with one key the first stays.

    Args:
        rows: in the order of the files, with `reason` null where nothing is wrong.
        key: columns that must not repeat among the rows to take.
        second: the reason for those that repeat one.
    """
    good = rows.filter(pl.col("reason").is_null())
    again = ~good.select(pl.struct(key).is_first_distinct()).to_series()
    bad = rows.filter(pl.col("reason").is_not_null())
    if again.any():
        bad = pl.concat([bad, good.filter(again).with_columns(reason=pl.lit(second))])
        good = good.filter(~again)
    return good.drop("reason"), bad.sort("document", "row")


def frame_reasons(raw: str, frame: str, record: str, owner: str) -> list[tuple[pl.Expr, str | pl.Expr]]:
    """What can be wrong with a record's place: its owner, its frame number, the end of the video.

    Args:
        raw: column of the frame number as text.
        frame: column of the number.
        record: name of the record's element.
        owner: name of the element it belongs into.
    """
    number = pl.col(frame)
    return [
        (pl.col("owner").is_null(), f"<{record}> outside <{owner}>"),
        (pl.col(raw).is_null(), "no frame number"),
        (number.is_null(), pl.format("frame '{}' is no whole number", pl.col(raw).str.slice(0, 40))),
        (
            (number < 0) | (number >= pl.col("n_frames")),
            pl.format("frame {} is outside the video of {} frames", number, "n_frames"),
        ),
    ]


def frame_rows(sheet: Sheet, lengths: pl.DataFrame, findings: Findings, raw: str = "id") -> pl.DataFrame:
    """The rows of a file with one record per frame, `frame` being their number; the others are refused.

    Args:
        sheet: its records carry the frame number in the column `raw`.
        lengths: `document` and `n_frames` of every video.
        findings: takes what is refused, as rows of `frames`.
        raw: name of that column.
    """
    rows = sheet.rows.join(lengths, on="document", how="inner", maintain_order="left")
    rows = rows.with_columns(pl.col(raw).cast(pl.Int64, strict=False).alias("frame"))
    reasons = frame_reasons(raw, "frame", sheet.record.element, sheet.record.owner)
    rows = rows.with_columns(first_reason(*reasons))
    good, bad = sift(rows, ["document", "frame"], "a second record for this frame")
    findings.read["frames"] += len(bad)
    item = pl.format("frame {}", pl.col(raw).fill_null("?"))
    sheet.refuse("frames", bad.with_columns(item=item), findings)
    return good


def _text(source: Source, place: int, name: str | None, errors: dict[int, InputError]) -> str:
    if name is None:
        return ""
    try:
        return decode(source.read(name), source.where(name))
    except InputError as error:
        errors[place] = error
        return ""
