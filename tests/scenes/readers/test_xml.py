"""Safe parsing, and the scanner's law: it gives the table that lxml gives, whatever the file."""

from __future__ import annotations

import time

import polars as pl
import pytest
from xml_records import TINY, agrees, box

from roadaware.errors import InputError
from roadaware.io.xml import (
    Document,
    Record,
    add_line_numbers,
    find_text,
    get_local_name,
    parse,
    scan_records,
    walk,
)

# Parsing


def test_a_tree_comes_without_comments_instructions_and_cdata_marks() -> None:
    tree = parse(b"<a>x<!-- c -->y<?p i?><![CDATA[z<]]>&amp;&#65;<b/></a>", "f.xml")
    assert (tree.text, [get_local_name(child) for child in tree]) == ("xyz<&A", ["b"])


@pytest.mark.parametrize(
    "data",
    [
        "<a>é</a>".encode(),
        b"\xef\xbb\xbf" + "<a>é</a>".encode(),
        "<a>é</a>".encode("utf-16"),
        '<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16"),
        '<?xml version="1.0" encoding="UTF-8"?><a>é</a>'.encode(),
        '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1"),
        b"<?xml version='1.0' encoding='us-ascii'?><a>&#233;</a>",
    ],
)
def test_the_usual_encodings_are_read(data: bytes) -> None:
    assert parse(data, "f.xml").text == "é"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "f.xml: the file is empty"),
        (b" \n ", "f.xml: the file is empty"),
        (b"<a><b>x", r"f.xml, line 1, column 8: not well-formed XML: Premature end"),
        (b"<a>\n<b x='1' x='2'/></a>", r"line 2, column 15: .*Attribute x redefined"),
        (b"<a>" + b"\xff", "byte 3 is not UTF-8"),
        (b"<?xml version='1.0' encoding='us-ascii'?><a>\xe9</a>", "byte 44 is not ASCII"),
        (b"\xff\xfe<\x00a\x00/", "is not UTF-16"),
        (b'<?xml version="1.0" encoding="IBM037"?><a/>', "the encoding IBM037; expected UTF-8"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "the encoding no-such"),
        (b"<!DOCTYPE a><a/>", "declares a DOCTYPE or an entity"),
        ("<!DOCTYPE a><a/>".encode("utf-16"), "declares a DOCTYPE"),
        (b"<a><!ENTITY x 'y'></a>", "declares a DOCTYPE or an entity"),
        (b"<a>&x;</a>", "Entity 'x' not defined"),
        (b"<a>\0</a>", "not well-formed"),
        (b"<d>" * 100_000, "Excessive depth"),
        (b"<a x='" + b"y" * 12_000_000 + b"'/>", "Buffer size limit"),
        (b"<other/>", "expected the root <a> and found <other>"),
        (b"not xml at all", "not well-formed"),
    ],
)
def test_bad_files_are_told_with_their_place(data: bytes, expected: str) -> None:
    start = time.process_time()
    with pytest.raises(InputError, match=expected) as caught:
        parse(data, "f.xml", root="a")
    assert time.process_time() - start < 2
    assert caught.value.hint
    assert "HUGE" not in str(caught.value)


def test_a_path_of_names_leads_to_a_text() -> None:
    tree = parse(b'<a xmlns="urn:x"><b/><b><c> 7 </c><d> </d></b></a>', "f.xml")
    assert find_text(tree, "b/c") is None
    tree = parse(b'<a xmlns="urn:x"><b><c> 7 </c><d> </d></b></a>', "f.xml")
    assert (find_text(tree, "b/c"), find_text(tree, "b/d"), find_text(tree, "b/e/f")) == ("7", None, None)


FLAT = Record("frame", "root", ("id", "v"))


def test_records_by_hand() -> None:
    text = f"<root><track>{box(3, 'away')}{box(4)}</track><track/><track>{box(0, '', 'b')}</track></root>"
    tables = agrees(text)
    assert tables.scanned == [True]
    assert tables.rows.drop("document", "line").rows() == [
        (0, 0, "3", "3.5", "a", "away"),
        (1, 0, "4", "4.5", "a", None),
        (2, 2, "0", "0.5", "b", ""),
    ]


def test_empty_records_by_hand() -> None:
    tables = agrees('<root><kind>x</kind><frame id="0" v="a" /><frame id="1" v=""/></root>', FLAT)
    assert tables.scanned == [True]
    assert tables.rows.select("owner", "id", "v").rows() == [(0, "0", "a"), (0, "1", "")]


INNER = box(3, "away") + box(4)
KNOWN = {
    "nothing": "<root/>",
    "no records": "<root><track></track></root>",
    "indented": f"<root>\n  <track>\n    {INNER}\n    {box(9)}\n  </track>\n</root>".replace("><", ">\n\t<"),
    "carriage returns": f"<root>\r\n<track>\r{INNER}\r\n</track></root>",
    "byte order mark read away": f'<?xml version="1.0"?><root><track>{INNER}</track></root>',
    "comment between": f"<root><track>{box(1)}<!-- {box} -->{box(2)}</track></root>",
    "default namespace": f'<root xmlns="urn:x"><track>{INNER}</track></root>',
    "instruction": f"<root><?do it?><track>{INNER}<?more?></track></root>",
    "text between": f"<root><track>one{box(1)}two{box(2)}three</track>four</root>",
    "foreign box": f'<root xmlns:f="urn:f"><track>{INNER}</track><f:box frame="9"/></root>',
}
UNKNOWN = {
    "other order": f'<root><track>{INNER}<box x="1" frame="2"/></track></root>',
    "single quotes": f"<root><track>{INNER}<box frame='1' x='2'></box></track></root>",
    "line break in a tag": f'<root><track><box\nframe="1" x="2"/>{INNER}</track></root>',
    "no attributes": f"<root><track>{INNER}<box/></track></root>",
    "an entity": f"<root><track>{box(1, 'a&amp;b')}{INNER}</track></root>",
    "a character reference": f'<root><track>{INNER}<box frame="&#49;" x="1"/></track></root>',
    "an accent": f"<root><track>{box(1, 'é')}</track></root>",
    "cdata as text": f"<root><track>{box(1, '<![CDATA[a]]>')}{INNER}</track></root>",
    "comment in text": f"<root><track>{box(1, 'a<!-- x -->b')}</track></root>",
    "records in a comment": f"<root><track>{box(1)}<!-- {INNER} -->{box(2)}</track></root>",
    "records in cdata": f"<root><track>{box(1)}<![CDATA[{INNER}]]>{box(2)}</track></root>",
    "records in an instruction": f"<root><track>{box(1)}<?x {INNER} ?></track></root>",
    "double dash in a comment": f"<root><track><!-- {box(1, 'a--b')} --></track></root>",
    "a record in the root": f"<root>{box(5)}<track>{INNER}</track></root>",
    "a record deeper": f"<root><track><x>{box(5)}</x>{INNER}</track></root>",
    "a record in a record": f'<root><track><box frame="1" x="2">{box(3)}</box></track></root>',
    "a record too much": f'<root><track>{INNER}<box frame="1" x="2" z="3"/></track></root>',
    "an attribute twice": f'<root><track>{INNER}<box frame="1" frame="2"/></track></root>',
    "a child twice": '<root><track><box frame="1" x="2"><attribute name="id">a</attribute>'
    '<attribute name="id">b</attribute></box></track></root>',
    "unknown children": '<root><track><box frame="1" x="2"><attribute name="z">a</attribute>'
    "<other/><attribute/></box></track></root>",
    "other namespace inside": f'<root><track xmlns="urn:y">{INNER}</track></root>',
    "prefixed records": '<f:root xmlns:f="urn:f"><f:track><f:box frame="1" x="2"/></f:track></f:root>',
    "a track in a record": f'<root><track><box frame="1" x="2"><track>{INNER}</track></box></track></root>',
    "the marker's name": f"<root><track>{INNER}<roadaware-rows first='0' last='1'/></track></root>",
    "cut": f"<root><track>{INNER}{INNER}"[:-9],
    "cut between": f"<root><track>{INNER}",
    "unbalanced": f"<root><track>{INNER}</root>",
    "in an attribute": f'<root a="{box(1)}"><track/></root>',
    "in a tag": f"<root><track {box(1)}></track></root>",
    "other root": f"<other><track>{INNER}</track></other>",
    "too deep": f"{'<root>' * 80}<track>{INNER}</track>{'</root>' * 80}",
    "far too deep": f"{'<root>' * 300}<track>{INNER}</track>{'</root>' * 300}",
}


@pytest.mark.parametrize("case", KNOWN)
def test_the_scanner_knows(case: str) -> None:
    assert agrees(KNOWN[case]).scanned == [True]


@pytest.mark.parametrize("case", UNKNOWN)
def test_the_scanner_hands_over(case: str) -> None:
    assert agrees(UNKNOWN[case]).scanned == [False]


def test_records_that_are_only_mentioned_do_not_count() -> None:
    for case in ("records in a comment", "records in cdata"):
        assert agrees(UNKNOWN[case]).rows["frame"].to_list() == ["1", "2"]


def test_a_batch_keeps_its_order() -> None:
    texts = [*KNOWN.values(), *UNKNOWN.values(), *KNOWN.values()]
    documents = [Document(f"{n}.xml", f"{n}.xml", text) for n, text in enumerate(texts)]
    whole = scan_records(documents, TINY, root="root")
    apart = [scan_records([document], TINY, root="root") for document in documents]
    expected = pl.concat(
        [part.rows.with_columns(document=pl.lit(n, pl.UInt32)) for n, part in enumerate(apart)]
    )
    assert whole.rows.equals(expected)
    assert whole.scanned == [part.scanned[0] for part in apart]
    assert [type(tree) for tree in whole.roots] == [type(part.roots[0]) for part in apart]


def test_lines_are_found_again() -> None:
    text = f"<root>\n<track>\n{box(1)}\n{box(2)}\n\n{box(3)}</track></root>"
    documents = [Document("a.xml", "a.xml", text), Document("b.xml", "b.xml", text.replace("<box", "<box\n"))]
    tables = scan_records(documents, TINY, root="root")
    assert tables.scanned == [True, False]
    found = add_line_numbers(
        tables.rows.filter(pl.col("frame") != "2"), documents, tables.scanned, TINY, root="root"
    )
    assert found.select("file", "frame", "line").rows() == [
        ("a.xml", "1", 3),
        ("a.xml", "3", 6),
        ("b.xml", "1", 4),
        ("b.xml", "3", 9),
    ]


@pytest.mark.parametrize("filler", ["<box/>", "<x/>", '<box frame=""/>', "<track/>", "<box <box "])
def test_large_files_of_nothing_but_tags_are_refused(filler: str) -> None:
    text = f"<root><track>{INNER}</track>{filler * (1_100_000 // len(filler))}</root>"
    assert "this is no annotation" in str(agrees(text).roots[0])
    assert "this is no annotation" not in str(agrees(f"<root><track>{filler * 9}</track></root>").roots[0])


def test_large_files_of_records_are_read() -> None:
    rows = "".join(box(n, "away") for n in range(12_000))
    text = f"<root><track>{rows}</track></root>"
    assert len(text) > 1 << 20
    assert agrees(text).scanned == [True]
    assert len(agrees(text.replace("<box ", "<box\n")).rows) == 12_000


def test_lines_that_the_parser_cannot_count_are_left_open() -> None:
    text = "<root><track>" + "\n" * 65_000 + "<box/>" + "\n" * 1_000 + "<box/></track></root>"
    rows = walk(Document("f.xml", "f.xml", text), TINY, root="root").rows
    assert rows["line"].to_list() == [65_001, None]
