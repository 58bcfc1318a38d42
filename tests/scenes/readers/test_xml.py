"""Safe parsing, and the scanner's law: it gives the table that lxml gives, whatever the file."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sets import maker

from roadaware.errors import InputError
from roadaware.scenes.readers import jaad
from roadaware.scenes.readers.jaad_terms import BOX, PEDESTRIAN, SIDES, TRAFFIC, VEHICLE
from roadaware.scenes.readers.records import (
    Document,
    Record,
    Tables,
    located,
    owners_of,
    scan,
    walk,
    walk_all,
)
from roadaware.scenes.readers.workers import Walkers
from roadaware.scenes.readers.xml import decode, local, parse, text_at

REAL = os.environ.get("ROADAWARE_DATA_DIR")
needs_real = pytest.mark.skipif(not REAL, reason="needs ROADAWARE_DATA_DIR with the published annotations")


# Parsing


def test_a_tree_comes_without_comments_instructions_and_cdata_marks() -> None:
    tree = parse(b"<a>x<!-- c -->y<?p i?><![CDATA[z<]]>&amp;&#65;<b/></a>", "f.xml")
    assert (tree.text, [local(child) for child in tree]) == ("xyz<&A", ["b"])


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
    start = time.perf_counter()
    with pytest.raises(InputError, match=expected) as caught:
        parse(data, "f.xml", root="a")
    assert time.perf_counter() - start < 2
    assert caught.value.hint
    assert "HUGE" not in str(caught.value)


def test_a_path_of_names_leads_to_a_text() -> None:
    tree = parse(b'<a xmlns="urn:x"><b/><b><c> 7 </c><d> </d></b></a>', "f.xml")
    assert text_at(tree, "b/c") is None
    tree = parse(b'<a xmlns="urn:x"><b><c> 7 </c><d> </d></b></a>', "f.xml")
    assert (text_at(tree, "b/c"), text_at(tree, "b/d"), text_at(tree, "b/e/f")) == ("7", None, None)


# The scanner

TINY = Record("box", "track", ("frame", "x"), (("id", "look"), ("id",)))
FLAT = Record("frame", "root", ("id", "v"))


def scanned(text: str, record: Record = TINY, root: str = "root") -> Tables:
    return scan([Document("f.xml", "f.xml", text)], record, root=root)


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
        assert numbers.is_empty() or numbers.max() < len(owners_of(tree, record))  # type: ignore[operator]
    return tables


def box(frame: int, look: str | None = None, name: str = "a") -> str:
    tags = f'<attribute name="id">{name}</attribute>'
    tags += f'<attribute name="look">{look}</attribute>' if look is not None else ""
    return f'<box frame="{frame}" x="{frame}.5">{tags}</box>'


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
    whole = scan(documents, TINY, root="root")
    apart = [scan([document], TINY, root="root") for document in documents]
    expected = pl.concat(
        [part.rows.with_columns(document=pl.lit(n, pl.UInt32)) for n, part in enumerate(apart)]
    )
    assert whole.rows.equals(expected)
    assert whole.scanned == [part.scanned[0] for part in apart]
    assert [type(tree) for tree in whole.roots] == [type(part.roots[0]) for part in apart]


def test_lines_are_found_again() -> None:
    text = f"<root>\n<track>\n{box(1)}\n{box(2)}\n\n{box(3)}</track></root>"
    documents = [Document("a.xml", "a.xml", text), Document("b.xml", "b.xml", text.replace("<box", "<box\n"))]
    tables = scan(documents, TINY, root="root")
    assert tables.scanned == [True, False]
    found = located(tables.rows.filter(pl.col("frame") != "2"), documents, tables.scanned, TINY, root="root")
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


# Mutants


def _number(text: str, rng: random.Random) -> str:
    found = list(re.finditer(r'"[^"]*"', text))
    chosen = rng.choice(found)
    value = rng.choice(
        ["", "-1", "NaN", "1e400", "1,5", "&amp;", "é", "<", ">", "'", "\t", "a b", "]]>", "&#9;"]
    )
    return text[: chosen.start() + 1] + value + text[chosen.end() - 1 :]


def _flip(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + rng.choice("<>&\"'/= ab0\t\n!-?[]") + text[at + 1 :]


def _drop(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + text[at + rng.randrange(1, 40) :]


def _repeat(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    piece = text[at : at + rng.randrange(1, 400)]
    return text[:at] + piece + text[at:]


def _insert(text: str, rng: random.Random) -> str:
    at = rng.choice([found.start() for found in re.finditer("<", text)])
    what = [
        "<!-- ",
        " -->",
        "<![CDATA[",
        "]]>",
        "<?x ",
        "?>",
        "<box/>",
        "</track>",
        "<track>",
        "\r\n",
        "\n  ",
    ]
    return text[:at] + rng.choice(what) + text[at:]


def _wrap(text: str, rng: random.Random) -> str:
    opened, closed = rng.choice([("<!-- ", " -->"), ("<![CDATA[", "]]>"), ("<?x ", "?>"), ("<e>", "</e>")])
    boxes = list(re.finditer(r"<box .*?</box>|<frame [^>]*>", text))
    first, last = sorted(rng.choices(range(len(boxes)), k=2))
    start, end = boxes[first].start(), boxes[last].end()
    return text[:start] + opened + text[start:end] + closed + text[end:]


def _untag(text: str, rng: random.Random) -> str:
    tags = list(re.finditer(r"<[^>]*>", text))
    chosen = rng.choice(tags)
    return text[: chosen.start()] + text[chosen.end() :]


def _renamed(text: str, rng: random.Random) -> str:
    names = sorted(set(re.findall(r"(?<=[ <])[a-z_]+", text)))
    return text.replace(rng.choice(names), rng.choice(names), rng.randrange(1, 3))


MUTATIONS: list[Callable[[str, random.Random], str]] = [
    _number,
    _flip,
    _drop,
    _repeat,
    _insert,
    _wrap,
    _untag,
    _renamed,
]


@pytest.fixture(scope="module")
def fixture_texts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Record, str]]:
    root = tmp_path_factory.mktemp("jaad")
    maker("jaad").make(root, frames=4)
    files = [("annotations/video_0001.xml", BOX, "annotations")]
    files += [(f"annotations_{kind}/video_0001_{kind}.xml", *SIDES[kind]) for kind in SIDES]
    return [((root / name).read_text(), record, top) for name, record, top in files]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_mutants_scan_as_lxml_reads_them(fixture_texts: list[tuple[str, Record, str]], part: int) -> None:
    rng = random.Random(part)  # noqa: S311 - mutants, not secrets
    fates = {"scanned": 0, "handed over": 0, "refused": 0}
    for n in range(500):
        text, record, root = fixture_texts[0] if n % 2 else fixture_texts[n // 2 % len(fixture_texts)]
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            if text and "<" in text and '"' in text:
                mutate = rng.choice(
                    MUTATIONS if re.search(r"<box .*?</box>|<frame ", text) else [_flip, _drop]
                )
                text = mutate(text, rng)
        try:
            text = decode(text.encode(), "f.xml")
        except InputError:
            fates["refused"] += 1
            continue
        tables = agrees(text, record, root)
        refused = isinstance(tables.roots[0], InputError)
        fates["refused" if refused else "scanned" if tables.scanned[0] else "handed over"] += 1
    assert min(fates.values()) > 25, fates


# Workers


def test_workers_read_what_this_process_reads(tmp_path: Path) -> None:
    maker("jaad").make(tmp_path, frames=6)
    for path in (tmp_path / "annotations").iterdir():
        path.write_text(path.read_text().replace('keyframe="1" occluded="0"', 'occluded="0" keyframe="1"'))
    (tmp_path / "annotations" / "video_0004.xml").write_text("<annotations><track>")
    (tmp_path / "annotations" / "video_0005.xml").write_bytes(b"<annotations>\xff")
    with jaad.find(tmp_path) as source:
        names = source.files("annotations", ".xml")
        documents = [
            Document(n, source.where(n), (tmp_path / n).read_bytes().decode("latin-1")) for n in names
        ]
        here = walk_all(documents, BOX, "annotations")
        with Walkers(source, processes=2, worth_bytes=0) as walkers:
            there = walkers(documents, BOX, "annotations")
            assert walkers._pool is not None
    for one, two in zip(here[:4], there[:4], strict=True):
        assert one.rows.equals(two.rows)
        if isinstance(one.root, InputError):
            assert str(one.root) == str(two.root)
        else:
            assert not isinstance(two.root, InputError)
            assert text_at(two.root, "meta/task/size") == text_at(one.root, "meta/task/size")
            assert [t.get("label") for t in two.root.iter("track")] == [
                t.get("label") for t in one.root.iter("track")
            ]
    assert "byte 13 is not UTF-8" in str(there[4].root)


def test_a_worker_that_dies_is_an_error_and_no_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker("jaad").make(tmp_path, frames=4)
    with jaad.find(tmp_path) as source, Walkers(source, processes=2, worth_bytes=0) as walkers:
        documents = [Document("annotations/video_0001.xml", "x", "<annotations/>")] * 2
        walkers(documents, BOX, "annotations")
        assert walkers._pool is not None
        for process in list(walkers._pool._processes.values()):
            process.kill()
        start = time.monotonic()
        with pytest.raises(InputError, match=r"worker process died[\s\S]*processes=1"):
            [walkers(documents, BOX, "annotations") for _ in range(50)]
        assert time.monotonic() - start < 5


def test_workers_start_only_where_they_are_worth_it(tmp_path: Path) -> None:
    maker("jaad").make(tmp_path, frames=4)
    document = Document("annotations/video_0001.xml", "x", "<annotations/>")
    for processes, worth, files in ((1, 0, 2), (2, 1_000, 2), (2, 0, 1)):
        with jaad.find(tmp_path) as source, Walkers(source, processes, worth) as walkers:
            walkers([document] * files, BOX, "annotations")
            assert walkers._pool is None


# Real files


def _real_law(names: list[str], folder: str, record: Record, root: str) -> int:
    rows = 0
    with jaad.find(Path(REAL or "")) as source:
        for start in range(0, len(names), 20):
            batch = names[start : start + 20]
            documents = [Document(n, n, decode(source.read(n), n)) for n in batch]
            tables = scan(documents, record, root=root)
            assert all(tables.scanned), folder
            plain = walk_all(documents, record, root)
            whole = pl.concat(
                [each.rows.with_columns(document=pl.lit(n, pl.UInt32)) for n, each in enumerate(plain)]
            )
            assert tables.rows.drop("line").equals(whole.drop("line"))
            rows += len(whole)
    return rows


REAL_KINDS = [
    ("annotations", BOX, "annotations", 391_038),
    ("annotations_attributes", PEDESTRIAN, "ped_attributes", 686),
    ("annotations_traffic", TRAFFIC, "traffic_scene", 82_032),
    ("annotations_vehicle", VEHICLE, "vehicle_info", 82_032),
]


@needs_real
@pytest.mark.parametrize(("folder", "record", "root", "count"), REAL_KINDS)
def test_forty_published_files_scan_as_lxml_reads_them(
    folder: str, record: Record, root: str, count: int
) -> None:
    with jaad.find(Path(REAL or "")) as source:
        names = source.files(folder, ".xml")
    assert 0 < _real_law(names[3::9], folder, record, root) < count


@needs_real
@pytest.mark.slow
@pytest.mark.parametrize(("folder", "record", "root", "count"), REAL_KINDS)
def test_all_published_files_scan_as_lxml_reads_them(
    folder: str, record: Record, root: str, count: int
) -> None:
    with jaad.find(Path(REAL or "")) as source:
        names = source.files(folder, ".xml")
    assert len(names) == 346
    assert _real_law(names, folder, record, root) == count
