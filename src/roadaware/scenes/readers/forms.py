"""How a repeated element is written in a dataset's files, and what its table of text looks like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl
from lxml import etree

_SAFE = "[0-9A-Za-z_.:/+ -]*"
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


def owners_of(tree: etree._Element, record: Record) -> list[etree._Element]:
    """The owners of a document's records, in the order that `owner` counts them."""
    return elements(tree, record.owner)


def elements(tree: etree._Element, name: str) -> list[etree._Element]:
    """The elements of that name in the root's own namespace, in document order."""
    return list(tree.iter(namespace(tree) + name))


def namespace(tree: etree._Element) -> str:
    """The root's namespace, as it stands before a name: empty, or `{urn:...}`."""
    before, brace, _ = str(tree.tag).rpartition("}")
    return before + brace
