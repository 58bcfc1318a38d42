"""Mutants and published files scan as lxml reads them, by one process or several."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sets import maker
from xml_records import agrees

from roadaware.datasets import jaad
from roadaware.datasets.jaad import BOX, PEDESTRIAN, SIDES, TRAFFIC, VEHICLE
from roadaware.errors import InputError
from roadaware.io.xml import Document, Record, Walkers, decode, find_text, scan_records, walk_all

REAL = os.environ.get("ROADAWARE_DATA_DIR")
needs_real = pytest.mark.skipif(not REAL, reason="needs ROADAWARE_DATA_DIR with the published annotations")


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
            assert find_text(two.root, "meta/task/size") == find_text(one.root, "meta/task/size")
            assert [t.get("label") for t in two.root.iter("track")] == [
                t.get("label") for t in one.root.iter("track")
            ]
    assert "byte 13 is not UTF-8" in str(there[4].root)


def die(*_: object) -> None:
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_one_that_always_does_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker("jaad").make(tmp_path, frames=4)
    with jaad.find(tmp_path) as source, Walkers(source, processes=2, worth_bytes=0) as walkers:
        documents = [Document("annotations/video_0001.xml", "x", "<annotations/>")] * 2
        walkers(documents, BOX, "annotations")
        assert walkers._pool is not None
        before = walkers(documents, BOX, "annotations")
        for child in multiprocessing.active_children():
            child.kill()
        # One that was killed from outside is replaced.
        after = walkers(documents, BOX, "annotations")
        assert [each.rows.equals(other.rows) for each, other in zip(before, after, strict=True)] == [
            True,
            True,
        ]
        monkeypatch.setattr("roadaware.io.xml._walk_there", die)
        with pytest.raises(InputError, match=r"by a worker: its worker died 3 times[\s\S]*processes=1"):
            walkers(documents, BOX, "annotations")


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
            tables = scan_records(documents, record, root=root)
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


@pytest.mark.slow
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
