"""Annotation files as XML: whole trees by lxml, or thousands of like elements as one table of text by a
strict scanner; no entities, no DOCTYPE, no network.
"""

from __future__ import annotations

import codecs
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.io.parallel import PartResult, WorkerPool, Workers
from roadaware.io.sources import Source, open_source, to_printable

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# Entities are how a small file unpacks to gigabytes or reads other files; no annotations need them.
_FORBIDDEN = re.compile("<!(?:DOCTYPE|ENTITY)")
_NOISE = re.compile(r",? (?:try|use) XML_PARSE_HUGE(?: option)?|, line \d+, column \d+$|\n")
_DAMAGED = "the file is damaged or cut off: fetch it again"
_CHUNK = 1 << 16
_SAFE: dict[str, Any] = {
    "encoding": "utf-8",
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    # Keeps libxml2's own limits on depth and on the length of texts.
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
    "strip_cdata": True,
}
# Others, such as UTF-7, can write a DOCTYPE in bytes that do not look like one.
_KNOWN_ENCODINGS = {"utf-8": "utf-8", "ascii": "ascii", "iso8859-1": "latin-1"}


def decode(data: bytes, where: str) -> str:
    """The text of an XML file in UTF-8, ASCII, Latin-1 or (with its mark) UTF-16.

    Raises:
        InputError: if it is empty, in another encoding, broken (with the byte), or declares a DOCTYPE or
            an entity.
    """
    if not data.strip():
        raise InputError("the file is empty; expected XML", where=where, hint=_DAMAGED)
    encoding = _encoding(data, where)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not {encoding.removesuffix('-sig').upper()}: {error.reason}"
        raise InputError(message, where=where, hint=_DAMAGED) from error
    # In the text and not the bytes: UTF-16 would hide it there.
    if _FORBIDDEN.search(text):
        message = "the file declares a DOCTYPE or an entity, which no annotation file needs"
        raise InputError(message, where=where, hint="remove the declaration if you trust the file")
    return text


def parse(data: bytes | str, where: str, *, root: str | None = None) -> etree._Element:
    """The root of a well-formed document without comments, processing instructions and CDATA marks.

    Args:
        data: the file's bytes, or the text `decode` gave.
        where: names the file in errors.
        root: the name its root must have.

    Raises:
        InputError: as `decode`; if it is not well formed (with line and column); if the root has another
            name (which is named).
    """
    text = data if isinstance(data, str) else decode(data, where)
    try:
        tree = etree.fromstring(text.encode(), etree.XMLParser(**_SAFE))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _build_syntax_error(error, where) from error
    return _check_root_name(tree, where, root)


def parse_incrementally(
    text: str,
    where: str,
    names: Collection[str],
    visit: Callable[[str, etree._Element], None],
    *,
    root: str | None = None,
) -> etree._Element:
    """As `parse`, showing elements while they are read, so that a visitor can thin the tree out.

    Args:
        text: what `decode` gave.
        where: names the file in errors.
        names: of the elements to show, in any namespace.
        visit: called with "start" (its children are not there yet) or "end", and the element.
        root: the name the root must have.

    Raises:
        InputError: as `parse`.
    """
    parser = etree.XMLPullParser(events=("start", "end"), tag=[f"{{*}}{name}" for name in names], **_SAFE)
    try:
        for start in range(0, len(text), _CHUNK):
            parser.feed(text[start : start + _CHUNK].encode())
            for event, element in parser.read_events():
                if isinstance(element, etree._Element):
                    visit(event, element)
        tree = parser.close()
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _build_syntax_error(error, where) from error
    return _check_root_name(tree, where, root)


def get_local_name(element: etree._Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def find_text(element: etree._Element, path: str) -> str | None:
    """The stripped text of the first element on a path of names such as `meta/task/size`; None if empty."""
    step: etree._Element | None = element
    for name in path.split("/"):
        step = (
            next((child for child in step if get_local_name(child) == name), None)
            if step is not None
            else None
        )
    return ((step.text or "").strip() or None) if step is not None else None


def _check_root_name(tree: etree._Element, where: str, root: str | None) -> etree._Element:
    if root is not None and get_local_name(tree) != root:
        message = f"expected the root <{root}> and found <{to_printable(get_local_name(tree), 60)}>"
        raise InputError(message, where=where, hint="this is another kind of file: check the folder")
    return tree


def _build_syntax_error(error: etree.XMLSyntaxError | ValueError, where: str) -> InputError:
    if not isinstance(error, etree.XMLSyntaxError):
        return InputError(f"not well-formed XML: {to_printable(str(error))}", where=where, hint=_DAMAGED)
    line, column = error.position
    place = f"{where}, line {line}, column {column}"
    return InputError(f"not well-formed XML: {_plain(error.msg)}", where=place, hint=_DAMAGED)


def _plain(message: str | None) -> str:
    """The parser's words without the place (reported elsewhere) and its advice to lift the limits."""
    return to_printable(_NOISE.sub("", message or "unknown fault").strip())


def _encoding(data: bytes, where: str) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _DECLARED.match(data)
    if declared is None:
        return "utf-8"
    name = declared[1].decode()
    try:
        known = _KNOWN_ENCODINGS[codecs.lookup(name).name]
    except (LookupError, KeyError):
        hint = "save it as UTF-8"
        raise InputError(f"the encoding {name}; expected UTF-8", where=where, hint=hint) from None
    return known


# How a repeated element is written in a dataset's files, and what its table of text looks like.

# Characters that XML neither escapes nor normalises: the scanner reads what lxml would.
_FORMS_SAFE = "[0-9A-Za-z_.:/+ -]*"
_SPACE = "[ \\t\\r\\n]*"
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
    def tags(self) -> tuple[str, ...]:
        """Names of the children."""
        return self.names[len(self.attributes) :]

    @cached_property
    def shortest(self) -> int:
        """The fewest characters that one of them takes."""
        return len(f"<{self.element} />") + sum(len(f'{name}=""') for name in self.attributes)

    @cached_property
    def most_tags(self) -> int:
        """The most opening and closing tags that one of them takes."""
        return 2 + 2 * max((len(names) for names in self.children), default=0)

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """One anchored regular expression for each sequence of children, from behind `<element `."""
        opening = " ".join(f'{name}="(?P<{name}>{_FORMS_SAFE})"' for name in self.attributes)
        if not self.children:
            return (f"^{opening} ?/>(?P<_tail>(?s:.*))$",)
        return tuple(
            f"^{opening}>{_SPACE}"
            + "".join(f'<attribute name="{n}">(?P<{n}>{_FORMS_SAFE})</attribute>{_SPACE}' for n in names)
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


def find_elements(tree: etree._Element, name: str) -> list[etree._Element]:
    """The elements of that name in the root's own namespace, in document order."""
    return list(tree.iter(get_namespace(tree) + name))


def get_namespace(tree: etree._Element) -> str:
    """The root's namespace, as it stands before a name: empty, or `{urn:...}`."""
    before, brace, _ = str(tree.tag).rpartition("}")
    return before + brace


# Records of a file read by lxml while the file is parsed: the plain way, for files of any form.

_LAST_LINE = 65_534  # behind it the parser's line numbers are guesses
_CROWDED_FROM = 1 << 20
_LEAST_PER_TAG_OUTSIDE = 64


class Walked(NamedTuple):
    """One document read by lxml: its tree without the records, or why there is none, and its rows."""

    root: etree._Element | InputError
    rows: pl.DataFrame


class Walker(Protocol):
    """Reads documents by lxml, here or elsewhere, in their order."""

    def __call__(self, documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        """For each document its tree or why there is none, and its rows."""
        ...


def walk_all(documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
    """Every document by `walk`, one after the other."""
    return [walk(document, record, root=root) for document in documents]


def walk(document: Document, record: Record, *, root: str) -> Walked:
    """All records of one document, element by element; the plain way that `scan_records` must agree with.

    Args:
        document: the file.
        record: what to look for.
        root: the name its root must have.
    """
    taken = _Taken(record)
    try:
        refuse_crowded(document, record)
        names = {record.element, record.owner}
        tree = parse_incrementally(document.text, document.where, names, taken.visit, root=root)
    except InputError as error:
        return Walked(error, pl.DataFrame(schema=record.schema))
    taken.drop()
    return Walked(tree, pl.DataFrame(taken.columns, schema=record.schema))


class _Taken:
    """Collects the records of a document while it is parsed, and takes each out of the tree behind it.

    So a file is never whole in memory as a tree, which would be ten times its size.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.columns: dict[str, list[str | int | None]] = {name: [] for name in record.schema}
        self.space: str | None = None
        self.owners: list[tuple[etree._Element, int]] = []
        self.n_owners = 0
        self.open: list[int] = []
        self.done: etree._Element | None = None

    def visit(self, event: str, element: etree._Element) -> None:
        """Take an owner or a record in the root's own namespace; others are passed over."""
        if self.space is None:
            self.space = get_namespace(element.getroottree().getroot())
        if element.tag == self.space + self.record.owner:
            if event == "start":
                self.owners.append((element, self.n_owners))
                self.n_owners += 1
            else:
                self.owners.pop()
        elif element.tag == self.space + self.record.element:
            if event == "start":
                self._begin(element)
            else:
                self._end(element)

    def drop(self) -> None:
        """Take the last finished record out of the tree, unless it holds an owner."""
        parent = None if self.done is None else self.done.getparent()
        if self.done is not None and parent is not None:
            if next(self.done.iter(f"{self.space}{self.record.owner}"), None) is None:
                parent.remove(self.done)
            self.done = None

    def _begin(self, element: etree._Element) -> None:
        owner, number = self.owners[-1] if self.owners else (None, None)
        line = cast("int | None", element.sourceline)
        places = {
            "document": 0,
            "row": len(self.columns["row"]),
            "owner": number if owner is element.getparent() else None,
            "line": None if line is None or line > _LAST_LINE else line,
        }
        self.open.append(len(self.columns["row"]))
        for name, place in places.items():
            self.columns[name].append(place)
        for name in self.record.attributes:
            self.columns[name].append(element.get(name))
        for name in self.record.tags:
            self.columns[name].append(None)

    def _end(self, element: etree._Element) -> None:
        row = self.open.pop()
        if self.record.tags:
            # The `<attribute name="...">` children; of two with one name the first counts
            values: dict[str, str] = {}
            for child in element:
                name = child.get("name")
                if name is not None and get_local_name(child) == "attribute":
                    values.setdefault(name, child.text or "")
            for name in self.record.tags:
                self.columns[name][row] = values.get(name)
        self.drop()
        self.done = element


def refuse_crowded(document: Document, record: Record) -> None:
    """Refuse a large file with more tags than its size can fill: its tree would be many times its size.

    Raises:
        InputError: if tags or records are closer together than in any annotation.
    """
    size = len(document.text)
    if size <= _CROWDED_FROM:
        return
    tags, records = document.text.count("<"), document.text.count(f"<{record.element}")
    outside = tags - records * record.most_tags
    if records * record.shortest > size or outside * _LEAST_PER_TAG_OUTSIDE > size:
        message = f"{tags} tags and {records} <{record.element}> in {size} characters: this is no annotation"
        raise InputError(message, where=document.where, hint="fetch the file again")


# Files of thousands of like elements as one table of text: a strict scanner, lxml for all it does not know.

_MARK = "roadaware-rows"
_DEEPEST = 64


@dataclass(frozen=True)
class Tables:
    """Tables of a batch of documents.

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


def scan_records(
    documents: Sequence[Document], record: Record, *, root: str, walker: Walker | None = None
) -> Tables:
    """All records of a batch: by the scanner where a document has the declared form, else by lxml.

    Args:
        documents: the batch.
        record: what to look for.
        root: the name every document's root must have.
        walker: who reads what the scanner does not know (default: `walk`).
    """
    matched, counts, tails = _match(documents, record)
    edges = np.concatenate([[0], np.cumsum(counts)])
    roots: list[etree._Element | InputError] = []
    owners = np.full(edges[-1], -1, dtype=np.int64)
    slow: list[int] = []
    for place, document in enumerate(documents):
        first, last = int(edges[place]), int(edges[place + 1])
        shell = _shell(document.text, record, tails[first:last])
        tree = None if shell is None else _parse_shell(shell, document, record, root, owners[first:last])
        roots.append(InputError("not read yet") if tree is None else tree)
        if tree is None:
            slow.append(place)
    kept = ~np.isin(np.repeat(np.arange(len(documents)), counts), slow)
    rows = _build_record_table(matched, record, counts, owners).filter(pl.Series(kept))
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


def add_line_numbers(
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
        # What one form has matched the next ones need not try.
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
    # A file that holds the marker itself could forge the places of records.
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


def _parse_shell(
    shell: str, document: Document, record: Record, root: str, owners: npt.NDArray[np.int64]
) -> etree._Element | None:
    """The shell's tree, with the owner of every record written to `owners`; None if only lxml can tell."""
    try:
        refuse_crowded(document, record)
        tree = parse(shell, document.where, root=root)
    except InputError:
        return None
    numbers = {owner: n for n, owner in enumerate(find_elements(tree, record.owner))}
    # Records in another spelling, such as with a line break in the tag, are left to lxml.
    if find_elements(tree, record.element):
        return None
    for mark in find_elements(tree, _MARK):
        parent = mark.getparent()
        if parent not in numbers or sum(1 for _ in mark.iterancestors()) > _DEEPEST:
            return None
        first, last = int(mark.get("first", "0")), int(mark.get("last", "0"))
        owners[first:last] = numbers[parent]
        parent.remove(mark)
    return tree if (owners >= 0).all() else None


def _build_record_table(
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


# Reading by lxml in spawned processes, for sets of which many files need it.

_WORTH_BYTES = 16 << 20


def count_cores(most: int = 4) -> int:
    """How many processors this process may use, at most `most`."""
    return min(most, len(os.sched_getaffinity(0)))


class Walkers:
    """Reads by lxml: here at first, from 16 MiB on in spawned workers that open the source themselves.

    Args:
        source: where the documents lie.
        processes: how many workers; 1 never starts any.
        worth_bytes: how much text is read here before workers start.
    """

    def __init__(self, source: Source, processes: int | None = None, worth_bytes: int = _WORTH_BYTES) -> None:
        self.source = source
        self.processes = count_cores() if processes is None else processes
        self.worth_bytes = worth_bytes
        self._files = self._size = 0
        self._lock = threading.Lock()
        self._pool: WorkerPool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.close()

    def __call__(self, documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        """For each document its tree or why there is none, and its rows, in their order.

        Raises:
            InputError: if a worker died.
        """
        pool = self._started(documents)
        if pool is None:
            return walk_all(documents, record, root)
        work = partial(_walk_there, str(self.source.path), self.source.prefix, record, root)
        names = [document.name for document in documents]
        with closing(pool.map(work, names, in_order=True)) as results:
            return [_parse_received(d, each) for d, each in zip(documents, results, strict=True)]

    def _started(self, documents: Sequence[Document]) -> WorkerPool | None:
        """The workers, once there is enough to read for more than one of them."""
        with self._lock:
            self._files += len(documents)
            self._size += sum(len(document.text) for document in documents)
            worth = self._files > 1 and self._size > self.worth_bytes
            if self._pool is None and self.processes > 1 and worth:
                self._pool = WorkerPool(Workers(processes=self.processes))
            return self._pool


_Sent = tuple[bytes | InputError, pl.DataFrame]


def _walk_there(path: str, prefix: str, record: Record, root: str, name: str) -> _Sent:
    """In a worker: one document's tree without its records, as text, and its rows."""
    source = _open_prefixed_source(path, prefix)
    where = source.where(name)
    try:
        text = decode(source.read(name), where)
    except InputError as error:
        return error, pl.DataFrame(schema=record.schema)
    tree, rows = walk(Document(name, where, text), record, root=root)
    if isinstance(tree, InputError):
        return tree, rows
    return etree.tostring(tree, encoding="utf-8"), rows


@lru_cache(maxsize=1)
def _open_prefixed_source(path: str, prefix: str) -> Source:
    source = open_source(Path(path))
    return source.at(prefix.rstrip("/")) if prefix else source


def _parse_received(document: Document, result: PartResult[_Sent]) -> Walked:
    """What a worker read of a document.

    Raises:
        InputError: if the worker could not do its work, which says nothing of the document.
    """
    if result.value is None:
        hint = "free some memory, or read with processes=1"
        raise InputError(
            f"it could not be read by a worker: {result.failure}", where=document.where, hint=hint
        )
    tree, rows = result.value
    return Walked(tree if isinstance(tree, InputError) else parse(tree, document.where), rows)
