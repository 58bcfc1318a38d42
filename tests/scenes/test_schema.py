"""The tables as data: the schema keeps its own promises, and docs/tables.md says all of it."""

import re
from pathlib import Path

import pytest

from roadaware.scenes.schema import TABLES, create_empty_table
from roadaware.scenes.tables import Scenes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"


@pytest.mark.parametrize("name", TABLES)
def test_keys_are_columns_that_are_required_and_never_null(name):
    table = TABLES[name]
    for key in table.key:
        assert table.columns[key].required
        assert not table.columns[key].nullable
    assert set(create_empty_table(name).columns) >= set(table.key)


@pytest.mark.parametrize("name", TABLES)
def test_a_pointer_has_the_type_of_the_key_it_points_to(name):
    for c, column in TABLES[name].columns.items():
        if column.to is not None:
            target = TABLES[column.to]
            assert len(target.key) == 1, c
            assert target.columns[target.key[0]].kind == column.kind, c


@pytest.mark.parametrize("name", TABLES)
def test_an_index_of_a_named_vocabulary_stands_beside_its_kind(name):
    columns = TABLES[name].columns
    for column in columns.values():
        if column.vocabulary == "*":
            assert "kind" in columns
        if column.vocabulary is not None:
            assert column.kind == "int"


def test_scenes_have_a_field_for_every_table():
    assert set(Scenes().tables()) == set(TABLES)


def _documented():
    """Table to column to (type, meaning), as the page prints them."""
    found = {}
    for section in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name = section.split("\n", 1)[0].strip().strip("`")
        rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|$", section.split("\n## ")[0], flags=re.M)
        found[name] = {c: (kind.strip(), doc.strip()) for c, kind, doc in rows}
    return found


@pytest.mark.parametrize("name", TABLES)
def test_the_page_documents_every_column_as_the_schema_has_it(name):
    documented = _documented()
    assert name in documented, f"docs/tables.md has no section `{name}`"
    expected = {}
    for c, column in TABLES[name].columns.items():
        kind = column.kind + (", key" if c in TABLES[name].key else "")
        kind += f", to {column.to}" if column.to else ""
        kind += ", required" if column.required and c not in TABLES[name].key else ""
        kind += ", Predictions" if column.predicted else ""
        expected[c] = (kind, column.doc)
    assert documented[name] == expected


def test_the_page_has_no_section_for_a_table_that_is_none():
    assert set(_documented()) == set(TABLES)
