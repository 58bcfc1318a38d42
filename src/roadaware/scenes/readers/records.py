"""Files of thousands of like elements as one table of text: a strict scanner, lxml for all it does not know.

Both ways give the same table. The scanner takes a file only when every record in it has exactly the declared
form; what is left of the file (header, owners, comments) is parsed by lxml, with one marker where a run of
records stood, so that the parsed tree says which owner a record belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.xml import local, parse

_SAFE = "[0-9A-Za-z_.:/+ -]*"
_SPACE = "[ \\t\\r\\n]*"
_MARK = "roadaware-rows"
_DEEPEST = 64
_PLACES = {"document": pl.UInt32, "row": pl.UInt32, "owner": pl.UInt32, "line": pl.UInt32}


@dataclass(frozen=True)
class Record:
    """How a repeated element is written.

    Args:
        element: its name, such as `box`.
        owner: name of the element it must stand right inside, such as `track`.
        attributes: its attributes in the order files write them.
        children: the sequences of `<attribute name="...">` children that occur; none means it is empty.
    """

    element: str
    owner: str
    attributes: tuple[str, ...]
    children: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all attributes and children, the columns of its table."""
        return tuple(dict.fromkeys([*self.attributes, *(n for names in self.children for n in names)]))

    @cached_property
    def shortest(self) -> int:
        """The fewest characters that one of them takes."""
        return len(f"<{self.element} />") + sum(len(f'{name}=""') for name in self.attributes)

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """One anchored regular expression for each sequence of children, from behind `<element `."""
        opening = " ".join(f'{name}="(?P<{name}>{_SAFE})"' for name in self.attributes)
        if not self.children:
            return (f"^{opening} ?/>(?P<_tail>(?s:.*))$",)
        return tuple(
            f"^{opening}>{_SPACE}"
            + "".join(f'<attribute name="{n}">(?P<{n}>{_SAFE})</attribute>{_SPACE}' for n in names)
            + f"</{self.element}>(?P<_tail>(?s:.*))$"
            for names in self.children
        )

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns of its table: where a row comes from, then every name as text."""
        places = {name: kind() for name, kind in _PLACES.items()}
        return {**places, **dict.fromkeys(self.names, pl.String())}


@dataclass(frozen=True)
class Document:
    """One file: its name in the source, how errors call it, and its decoded text."""

    name: str
    where: str
    text: str


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


class Walked(NamedTuple):
    """One document read by lxml: its tree without the records, or why there is none, and its rows."""

    root: etree._Element | InputError
    rows: pl.DataFrame


def owners_of(tree: etree._Element, record: Record) -> list[etree._Element]:
    """The owners of a document's records, in the order that `owner` counts them."""
    return _elements(tree, record.owner)


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


class Walker(Protocol):
    """Reads documents by lxml, here or elsewhere, in their order."""

    def __call__(self, documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        """For each document its tree or why there is none, and its rows."""
        ...


def walk_all(documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
    """Every document by `walk`, one after the other."""
    return [walk(document, record, root=root) for document in documents]


def walk(document: Document, record: Record, *, root: str) -> Walked:
    """All records of one document, element by element; the plain way that `scan` must agree with.

    Args:
        document: the file.
        record: what to look for.
        root: the name its root must have.
    """
    try:
        tree = parse(document.text, document.where, root=root)
    except InputError as error:
        return Walked(error, pl.DataFrame(schema=record.schema))
    numbers = {owner: n for n, owner in enumerate(owners_of(tree, record))}
    columns: dict[str, list[str | int | None]] = {name: [] for name in record.schema}
    elements = _elements(tree, record.element)
    for row, element in enumerate(elements):
        parent = element.getparent()
        columns["document"].append(0)
        columns["row"].append(row)
        columns["owner"].append(numbers.get(parent) if parent is not None else None)
        columns["line"].append(cast("int | None", element.sourceline))
        values = _children(element) if record.children else {}
        for name in record.attributes:
            columns[name].append(element.get(name))
        for name in record.names[len(record.attributes) :]:
            columns[name].append(values.get(name))
    _prune(elements, _space(tree) + record.owner)
    return Walked(tree, pl.DataFrame(columns, schema=record.schema))


def _prune(elements: Sequence[etree._Element], owner: str) -> None:
    """Take the records out of their tree, which is then small; one that holds an owner stays."""
    for element in elements:
        parent = element.getparent()
        if parent is not None and next(element.iter(owner), None) is None:
            parent.remove(element)


def _children(element: etree._Element) -> dict[str, str]:
    """The `<attribute name="...">` children; of two with one name the first counts."""
    values: dict[str, str] = {}
    for child in element:
        name = child.get("name")
        if name is not None and local(child) == "attribute":
            values.setdefault(name, child.text or "")
    return values


def _elements(tree: etree._Element, name: str) -> list[etree._Element]:
    """The elements of that name in the root's own namespace, in document order."""
    return list(tree.iter(_space(tree) + name))


def _space(tree: etree._Element) -> str:
    """The root's namespace as it stands before a name: empty, or `{urn:...}`."""
    before, brace, _ = str(tree.tag).rpartition("}")
    return before + brace


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
        tree = parse(shell, document.where, root=root)
    except InputError:
        return None
    numbers = {owner: n for n, owner in enumerate(_elements(tree, record.owner))}
    if _elements(tree, record.element):
        return None
    for mark in _elements(tree, _MARK):
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
        .cast(record.schema)  # type: ignore[arg-type]
    )
