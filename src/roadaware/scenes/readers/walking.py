"""Records of a file read by lxml while the file is parsed: the plain way, for files of any form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.forms import Document, Record, namespace
from roadaware.scenes.readers.xml import local, pull

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
    """All records of one document, element by element; the plain way that `scan` must agree with.

    Args:
        document: the file.
        record: what to look for.
        root: the name its root must have.
    """
    taken = _Taken(record)
    try:
        refuse_crowded(document, record)
        names = {record.element, record.owner}
        tree = pull(document.text, document.where, names, taken.visit, root=root)
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
            self.space = namespace(element.getroottree().getroot())
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
            values = _children(element)
            for name in self.record.tags:
                self.columns[name][row] = values.get(name)
        self.drop()
        self.done = element


def refuse_crowded(document: Document, record: Record) -> None:
    """Refuse a large file with more tags than its size can fill: its tree would be many times its size.

    Args:
        document: the file.
        record: what it should be full of.

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


def _children(element: etree._Element) -> dict[str, str]:
    """The `<attribute name="...">` children; of two with one name the first counts."""
    values: dict[str, str] = {}
    for child in element:
        name = child.get("name")
        if name is not None and local(child) == "attribute":
            values.setdefault(name, child.text or "")
    return values
