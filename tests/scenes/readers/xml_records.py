"""Records of XML for tests: scanned, and held against lxml."""

from __future__ import annotations

from roadaware.errors import InputError
from roadaware.io.xml import Document, Record, Tables, find_elements, scan_records, walk

TINY = Record("box", "track", ("frame", "x"), (("id", "look"), ("id",)))


def scanned(text: str, record: Record = TINY, root: str = "root") -> Tables:
    return scan_records([Document("f.xml", "f.xml", text)], record, root=root)


def agrees(text: str, record: Record = TINY, root: str = "root") -> Tables:
    """The scan of a text, after checking it against lxml alone."""
    tables = scanned(text, record, root)
    plain = walk(Document("f.xml", "f.xml", text), record, root=root)
    assert tables.rows.drop("line").equals(plain.rows.drop("line"))
    assert type(tables.roots[0]) is type(plain.root)
    if isinstance(plain.root, InputError):
        assert str(tables.roots[0]) == str(plain.root)
        return tables
    assert tables.rows.schema == plain.rows.schema
    for tree in (tables.roots[0], plain.root):
        assert not isinstance(tree, InputError)
        numbers = tables.rows["owner"].drop_nulls()
        assert numbers.is_empty() or numbers.max() < len(find_elements(tree, record.owner))  # type: ignore[operator]
    return tables


def box(frame: int, look: str | None = None, name: str = "a") -> str:
    tags = f'<attribute name="id">{name}</attribute>'
    tags += f'<attribute name="look">{look}</attribute>' if look is not None else ""
    return f'<box frame="{frame}" x="{frame}.5">{tags}</box>'
