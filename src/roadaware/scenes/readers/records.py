"""Files of thousands of like elements as one table of text: a strict scanner, lxml for all it does not know.

Both ways give the same table. The scanner takes a file only when every record in it has exactly the declared
form; what is left of the file (header, owners, comments) is parsed by lxml, with one marker where a run of
records stood, so that the parsed tree says which owner a record belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.forms import Document, Record, elements, owners_of
from roadaware.scenes.readers.walking import Walked, Walker, refuse_crowded, walk, walk_all
from roadaware.scenes.readers.xml import parse

__all__ = [
    "Document",
    "Record",
    "Tables",
    "Walked",
    "Walker",
    "located",
    "owners_of",
    "scan",
    "walk",
    "walk_all",
]

_MARK = "roadaware-rows"
_DEEPEST = 64


@dataclass(frozen=True)
class Tables:
    """What a batch of documents holds.

    Args:
        rows: `document` (place in the batch), `row` (place in the document), `owner` (place of the owner
            among the document's owners, null where the record stands elsewhere), `line` (null where the
            scanner read it), then every attribute and child as text, null where absent.
        roots: for each document its tree without the records, or why it cannot be read.
        scanned: for each document whether the scanner took it.
    """

    rows: pl.DataFrame
    roots: list[etree._Element | InputError]
    scanned: list[bool] = field(default_factory=list)


def scan(documents: Sequence[Document], record: Record, *, root: str, walker: Walker | None = None) -> Tables:
    """All records of a batch: by the scanner where a document has the declared form, else by lxml.

    Args:
        documents: the batch.
        record: what to look for.
        root: the name every document's root must have.
        walker: who reads what the scanner does not know; `walk` unless given.
    """
    matched, counts, tails = _match(documents, record)
    edges = np.concatenate([[0], np.cumsum(counts)])
    roots: list[etree._Element | InputError] = []
    owners = np.full(edges[-1], -1, dtype=np.int64)
    slow: list[int] = []
    for place, document in enumerate(documents):
        first, last = int(edges[place]), int(edges[place + 1])
        shell = _shell(document.text, record, tails[first:last])
        tree = None if shell is None else _owned(shell, document, record, root, owners[first:last])
        roots.append(InputError("not read yet") if tree is None else tree)
        if tree is None:
            slow.append(place)
    kept = ~np.isin(np.repeat(np.arange(len(documents)), counts), slow)
    rows = _placed(matched, record, counts, owners).filter(pl.Series(kept))
    if slow:
        walked = (walker or walk_all)([documents[place] for place in slow], record, root)
        numbered = [
            table.with_columns(document=pl.lit(place, pl.UInt32))
            for place, (_, table) in zip(slow, walked, strict=True)
        ]
        rows = pl.concat([rows, *numbered]).sort("document", "row")
        for place, (tree_or_error, _) in zip(slow, walked, strict=True):
            roots[place] = tree_or_error
    return Tables(rows, roots, [place not in slow for place in range(len(documents))])


def located(
    rows: pl.DataFrame, documents: Sequence[Document], scanned: Sequence[bool], record: Record, *, root: str
) -> pl.DataFrame:
    """The rows with `file` and `line`; documents that the scanner took are read again for their lines.

    Args:
        rows: (n rows) with `document`, `row` and `line`.
        documents: the batch that was scanned.
        scanned: which of them the scanner took.
        record: what was looked for.
        root: the name of the root.
    """
    places = rows["document"].unique().sort().to_list()
    again = [
        walk(documents[place], record, root=root).rows.select(
            pl.lit(place, pl.UInt32).alias("document"), "row", pl.col("line").alias("found")
        )
        for place in places
        if scanned[place]
    ]
    if again:
        lines = pl.concat(again)
        rows = rows.join(lines, on=["document", "row"], how="left", maintain_order="left")
        rows = rows.with_columns(pl.coalesce("line", "found").alias("line")).drop("found")
    files = [documents[place].name for place in rows["document"]]
    return rows.with_columns(pl.Series("file", files, dtype=pl.String))


def _match(
    documents: Sequence[Document], record: Record
) -> tuple[pl.DataFrame, npt.NDArray[np.int64], list[str | None]]:
    """Every piece behind an opening of the record against its patterns: columns, counts, tails."""
    split = [_pieces(document.text, record) for document in documents]
    counts = np.array([len(pieces) for pieces in split], dtype=np.int64)
    pieces = pl.Series("piece", [piece for part in split for piece in part], dtype=pl.String)
    found: list[pl.DataFrame] = []
    index = pl.Series("index", np.arange(len(pieces)), dtype=pl.UInt32)
    for pattern in record.patterns:
        table = pl.DataFrame({"index": index, "piece": pieces}).select(
            "index", pl.col("piece").str.extract_groups(pattern).alias("groups")
        )
        table = table.unnest("groups")
        hit = table["_tail"].is_not_null()
        found.append(table.filter(hit))
        index, pieces = index.filter(~hit), pieces.filter(~hit)
    found.append(pl.DataFrame({"index": index}))
    matched = pl.concat(found, how="diagonal").sort("index")
    return matched, counts, matched["_tail"].to_list()


def _pieces(text: str, record: Record) -> list[str]:
    """What follows each opening of a record; one piece of no form where there are more than can be whole.

    So a file of nothing but openings costs no more memory than its size.
    """
    opening = f"<{record.element} "
    crowded = text.count(opening) * record.shortest > len(text)
    return [""] if crowded else text.split(opening)[1:]


def _shell(text: str, record: Record, tails: Sequence[str | None]) -> str | None:
    """The document with a marker for every run of records, None if one has an unknown form."""
    opening = text.find(f"<{record.element} ")
    if _MARK in text or None in tails:
        return None
    parts = [text if opening < 0 else text[:opening]]
    start = 0
    for n, tail in enumerate(tails):
        if tail and not tail.isspace():
            parts.append(f'<{_MARK} first="{start}" last="{n + 1}"/>{tail}')
            start = n + 1
    if start < len(tails):
        parts.append(f'<{_MARK} first="{start}" last="{len(tails)}"/>')
    return "".join(parts)


def _owned(
    shell: str, document: Document, record: Record, root: str, owners: npt.NDArray[np.int64]
) -> etree._Element | None:
    """The shell's tree, with the owner of every record written to `owners`; None if only lxml can tell."""
    try:
        refuse_crowded(document, record)
        tree = parse(shell, document.where, root=root)
    except InputError:
        return None
    numbers = {owner: n for n, owner in enumerate(elements(tree, record.owner))}
    if elements(tree, record.element):
        return None
    for mark in elements(tree, _MARK):
        parent = mark.getparent()
        if parent not in numbers or sum(1 for _ in mark.iterancestors()) > _DEEPEST:
            return None
        first, last = int(mark.get("first", "0")), int(mark.get("last", "0"))
        owners[first:last] = numbers[parent]
        parent.remove(mark)
    return tree if (owners >= 0).all() else None


def _placed(
    matched: pl.DataFrame, record: Record, counts: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]
) -> pl.DataFrame:
    """The matched columns in the table's form, each row with its document, place and owner."""
    starts = np.repeat(np.concatenate([[0], np.cumsum(counts)])[:-1], counts)
    places = {
        "document": np.repeat(np.arange(len(counts)), counts),
        "row": np.arange(len(owners)) - starts,
        "owner": np.maximum(owners, 0),
    }
    columns = [pl.Series(name, values, dtype=pl.UInt32) for name, values in places.items()]
    missing = [pl.lit(None, pl.String).alias(n) for n in record.names if n not in matched.columns]
    return (
        matched.with_columns(*columns, pl.lit(None, pl.UInt32).alias("line"), *missing)
        .select(list(record.schema))
        .cast(pl.Schema(record.schema))
    )
