"""Readers on damaged bytes: valid tables with every row accounted for, or a typed error; nothing else."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import damage
import polars as pl
import pytest
import sets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from mutants import CSV_KINDS, JSON_KINDS, KINDS, PLAIN_XML_KINDS, Change, mutated
from sets import SETS, NativeSet, rows_add_up

from roadaware.datasets import READERS
from roadaware.datasets.cvat import Sheet
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.sources import FolderSource
from roadaware.io.xml import Document, Record, decode, scan_records, walk
from roadaware.scenes.tables import Scenes

_UNIT = st.floats(0, 1, exclude_max=True, allow_nan=False)


def changes(kinds: Iterable[str]) -> st.SearchStrategy[list[Change]]:
    one = st.tuples(st.sampled_from(sorted(kinds)), _UNIT, _UNIT)
    return st.lists(one, min_size=1, max_size=3)


CHANGES = changes(KINDS)
CHANGES_OF = {
    **dict.fromkeys(("json", "sensor json"), changes(JSON_KINDS)),
    "plain xml": changes(PLAIN_XML_KINDS),
    "csv": changes(CSV_KINDS),
}
_QUIET = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
FAST = settings(_QUIET, max_examples=75)
SLOW = settings(_QUIET, max_examples=2000)


def written_boxes(each: NativeSet, data: bytes) -> int | None:
    """How many boxes an independent parser sees; None where it refuses the file or there is none."""
    if each.maker.FORMAT != "xml":
        counted: int | None = getattr(each.maker, "written_boxes", lambda _: None)(data)
        return counted
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return None
    return sum(1 for element in root.iter("box"))


ENDS = {"typed error", "rejected rows or files", "read with warnings", "read as clean"}


def judge(each: NativeSet, root: Path, name: str, clean: Scenes) -> str:
    """Read a set with one damaged file, hold the laws, and say how it ended."""
    try:
        scenes = each.read(root)
    except InputError as error:
        placed = bool(error.where) or isinstance(error, DatasetNotFoundError)
        return "typed error" if placed else f"an error without a place: {error}"
    rows_add_up(scenes)
    warnings = scenes.meta.notes["warnings"]
    if name == each.main and scenes.rejected.filter(pl.col("table").is_in(["files", "videos"])).is_empty():
        written = written_boxes(each, (root / name).read_bytes())
        left_out = sum(count for what, count in scenes.meta.notes["left_out"].items() if "boxes" in what)
        assert written is None or written == scenes.meta.rows_read["boxes"] + left_out
    if not scenes.rejected.is_empty():
        return "rejected rows or files"
    if warnings != clean.meta.notes["warnings"]:
        return "read with warnings"
    # Where a row names its video another letter in it makes another one.
    assert len(scenes.videos) == len(clean.videos) or each.names_videos
    return "read as clean"


def fuzz(each: NativeSet, folder: Path, count: settings, ended: Counter[str]) -> None:
    root = each.alone(each.make(folder / "set", frames=4))
    originals = {name: (root / name).read_bytes() for name in (each.main, *each.others_in(root))}
    clean = each.read(root)

    @count
    @given(st.sampled_from(list(originals)), CHANGES_OF.get(each.maker.FORMAT, CHANGES))
    def run(name: str, changes: list[Change]) -> None:
        (root / name).write_bytes(mutated(originals[name], changes))
        try:
            ended[judge(each, root, name, clean)] += 1
        finally:
            (root / name).write_bytes(originals[name])

    run()


@pytest.mark.slow
def test_mutants_of_files(native: NativeSet, tmp_path: Path) -> None:
    ended: Counter[str] = Counter()
    fuzz(native, tmp_path, FAST, ended)
    assert set(ended) <= ENDS
    assert ended["typed error"]
    assert ended["rejected rows or files"] or native.sole


@pytest.mark.slow
def test_two_thousand_mutants_of_files(
    native: NativeSet, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ended: Counter[str] = Counter()
    fuzz(native, tmp_path, SLOW, ended)
    record_property(f"mutants of {native.name}", dict(ended))
    assert ended.total() >= 2000
    due = ENDS if native.warns else ENDS - {"read with warnings"}
    assert set(ended) <= ENDS
    assert due <= set(ended) or native.sole


def fuzz_archive(each: NativeSet, folder: Path, count: settings) -> None:
    root = each.alone(each.make(folder / "set", frames=4))
    clean = each.read(root)
    archive = damage.packed(root, folder / "set.zip")
    original = archive.read_bytes()
    shutil.rmtree(root)

    @count
    @given(CHANGES)
    def run(changes: list[Change]) -> None:
        archive.write_bytes(mutated(original, changes))
        assert judge(each, archive, "", clean) in ENDS

    run()


@pytest.mark.slow
def test_mutants_of_the_archive(native: NativeSet, tmp_path: Path) -> None:
    fuzz_archive(native, tmp_path, settings(FAST, max_examples=15))


@pytest.mark.slow
def test_more_mutants_of_the_archive(native: NativeSet, tmp_path: Path) -> None:
    fuzz_archive(native, tmp_path, settings(SLOW, max_examples=200))


def records_of(each: NativeSet, root: Path) -> dict[str, tuple[Record, str]]:
    """What the reader looks for in each of its files."""
    seen: dict[str, tuple[Record, str]] = {}
    plain = Sheet.__init__

    def noted(sheet: Sheet, *arguments: object, **options: object) -> None:
        plain(sheet, *arguments, **options)  # type: ignore[arg-type]
        for document in sheet.documents:
            seen[document.name] = (sheet.record, sheet.root)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sheet, "__init__", noted)
        each.read(root)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "native", [n for n, each in SETS.items() if each.maker.FORMAT == "xml"], indirect=True
)
def test_the_scanner_agrees_with_lxml_on_mutants(native: NativeSet, tmp_path: Path) -> None:
    root = native.alone(native.make(tmp_path / "set", frames=4))
    records = records_of(native, root)
    source = FolderSource(root)
    originals = {name: source.read(name) for name in records if name}
    scanned: Counter[bool] = Counter()

    @settings(FAST, max_examples=150)
    @given(st.sampled_from(sorted(originals)), CHANGES)
    def run(name: str, changes: list[Change]) -> None:
        try:
            document = Document(name, name, decode(mutated(originals[name], changes), name))
        except InputError:
            return
        record, top = records[name]
        quick, plain = scan_records([document], record, root=top), walk(document, record, root=top)
        assert quick.rows.drop("line").equals(plain.rows.drop("line"))
        assert isinstance(quick.roots[0], InputError) == isinstance(plain.root, InputError)
        scanned[quick.scanned[0]] += 1

    run()
    assert scanned[True]
    assert scanned[False]


def test_every_kind_of_mutant_changes_something() -> None:
    data = b'<track label="a"><box frame="1" xtl="2.5"></box><box frame="7" xtl="9.5"></box></track>'
    json = b'{"a": [1, 2.5], "b": {"c": "x", "d": [], "e": 3}}'
    places = [(a / 10, b / 10) for a in range(10) for b in range(10)]
    text = b"<box><x>1</x><y>25</y></box><box><x>7</x><y>95</y></box>"
    csv = b"a,1,0.5,0.25\nb,2,0.75,1\nc,3,0.1,0.2\n"
    for kinds, original in ((KINDS, data), (JSON_KINDS, json), (PLAIN_XML_KINDS, text), (CSV_KINDS, csv)):
        for kind in kinds:
            assert any(mutated(original, [(kind, a, b)]) != original for a, b in places), kind


def test_every_maker_has_its_reader() -> None:
    """A dataset whose line in `datasets/__init__.py` was forgotten is not missed in silence."""
    makers = {path.parent.name for path in Path(sets.__file__).parent.glob("*/make.py")}
    assert makers == set(READERS)
