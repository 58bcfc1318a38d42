"""The page as a file: offline, with one script of its own, accessible, the same bytes for the same input."""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lxml import etree, html
from report_examples import PAYLOADS, SURROGATE

from roadaware.analysis.excerpts import Clip
from roadaware.errors import DiskError, UsageError
from roadaware.reports.bars import Share, plot_shares
from roadaware.reports.evaluation import plot_risk_regions
from roadaware.reports.page import (
    POLICY,
    SCRIPT,
    Clips,
    Facts,
    Films,
    Mark,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    report,
    save,
)

FILM, CLIP = "data:video/mp4;base64,ZmlsbQ==", "data:video/mp4;base64,Y2xpcA=="
POSTER = "data:image/jpeg;base64,cG9zdGVy"


def _picture(text: str = "name") -> Picture:
    return plot_shares([Share(text, 1, 2)], title=text)


def _full(text: str = "name") -> list[Section]:
    """Two sections that hold every kind of block, with the text wherever text can stand."""
    blocks = (
        Facts(((text, text),), text),
        Table((text, "n"), ((text,), (Mark(text, "good", text), text)), "lr", text, text),
        Note(text, "bad", text),
        Points((text,), text),
        Pictures((_picture(text), _picture(text)), text),
        Films(text, ("films/one.mp4", "two.mp4"), b"film", text, b"poster"),
        Clips(
            (
                Clip(text, b"clip", b"poster"),
                Clip(text, b"clip", b"poster", text),
                Clip(text, b"", b"poster", text),
                Clip(text, fault=text),
            ),
            text,
            text,
        ),
    )
    return [Section(text, (text,), blocks), Section("second", (), (Note("b"), Pictures((_picture(),))))]


@functools.cache
def _page(text: str = "name") -> str:
    return report(_full(text), title=text, subtitle=text, made=text)


def test_the_page_forbids_everything_it_does_not_need() -> None:
    tree = html.document_fromstring(_page())
    (policy,) = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy == POLICY
    (script,) = tree.xpath("//script/text()")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'"
    assert (
        f"default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; {allowed}" == POLICY
    )
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|https?:", script)
    head = [element.tag for element in tree.find("head")]
    assert head.index("meta") < head.index("title") < head.index("style")


@pytest.mark.slow
@pytest.mark.parametrize("text", [*PAYLOADS.values(), SURROGATE], ids=[*PAYLOADS, "surrogate"])
def test_text_from_data_stays_text(text: str) -> None:
    # What is long is folded, whatever it says.
    plain, page = _page("name" if len(text) < 1_000 else "n" * len(text)), _page(text)
    assert _shape(page) == _shape(plain)
    assert not set(page) & set("\x00\x1b\u202e\u2066\u2028\u2029\ufffe")
    tree = html.document_fromstring(page)
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name in ("src", "action", "poster") or name.endswith("href"):
                ours = value in {"video": (FILM, CLIP, POSTER), "img": (POSTER,)}.get(element.tag, ())
                assert ours or not any(urlsplit(value)[:2]), value
                assert name == "href" or ours or value.startswith("#")


def test_films_are_played_from_the_page_or_linked_below_it() -> None:
    tree = html.document_fromstring(_page())
    assert tree.xpath("//video/@src") == [FILM, CLIP, CLIP]
    assert tree.xpath("//video/@poster") == [POSTER] * 3
    # Paper shows the still; it is the whole of what cannot be played.
    assert tree.xpath("//img/@class") == ["paper"] * 3
    assert tree.xpath("//img/@src") == [POSTER] * 4
    assert {*tree.xpath("//img/@alt"), *tree.xpath("//video/@aria-label")} == {"name"}
    assert tree.xpath("//section//p[@class='mute']/text()") == ["One of them is not shown: name."]
    assert tree.xpath("//figcaption//a/@href") == ["films/one.mp4", "two.mp4"]
    odd = ("x y/é.mp4", *PAYLOADS.values(), SURROGATE)
    alone = html.document_fromstring(report([Section("a", (), (Films("b", odd),))]))
    assert not alone.xpath("//video")
    links = alone.xpath("//figcaption//a/@href")
    assert links[0] == "x%20y/%C3%A9.mp4"
    assert len(links) == len(odd)
    assert not any(any(urlsplit(link)[:2]) for link in links)
    for path in ("/etc/film.mp4", "//host/film.mp4", "../film.mp4", "a/../../film.mp4"):
        with pytest.raises(ValueError, match="below its page"):
            Films("b", (path,))


def _shape(page: str) -> list[tuple[str, ...]]:
    """Tags and the names of their attributes, apart from what lies inside drawings."""
    tree = html.document_fromstring(page)
    assert tree.xpath("//script/text()") in ([], [SCRIPT])
    for drawing in tree.xpath("//svg"):
        drawing[:] = []
    return [
        (str(element.tag), *sorted(element.attrib)) for element in tree.iter() if isinstance(element.tag, str)
    ]


def test_text_is_readable_after_escaping() -> None:
    tree = html.document_fromstring(_page("<b>{{7*7}} $x$ \u202e"))
    assert tree.xpath("//h1")[0].text == "<b>{{7*7}} $x$ \\u202e"


def test_pictures_stand_in_the_page_as_elements_with_unique_ids() -> None:
    page = _page()
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    tree = html.document_fromstring(page)
    assert len(tree.xpath("//figure//svg[@role='img']")) == 3
    for drawing in tree.xpath("//svg"):
        for label in drawing.get("aria-labelledby").split():
            assert tree.get_element_by_id(label) is not None


def test_headings_do_not_skip_a_level_and_tables_name_their_columns() -> None:
    tree = html.document_fromstring(_page())
    levels = [int(element.tag[1]) for element in tree.iter("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert tree.get("lang") == "en"
    assert all(cell.get("scope") == "col" for cell in tree.xpath("//thead//th"))
    assert all(cell.get("scope") in ("row", "rowgroup") for cell in tree.xpath("//tbody//th"))
    assert tree.xpath("//nav//a/@href") == ["#part-1", "#part-2"]


def test_the_summary_comes_first_and_only_where_there_is_something_to_say() -> None:
    page = _page("said")
    assert page.index("What this says") < page.index('id="part-1"')
    assert "What this says" not in report([Section("quiet", (), (Note("a"),))])


def test_the_same_input_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    page = report(_full())
    assert report(_full()) == page
    assert not re.search(r"20\d\d-\d\d", page)


def test_a_date_is_printed_only_when_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert "1970-01-01 00:00 UTC" in report(_full())
    assert "1970" not in report(_full(), made="yesterday")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        report(_full())


def test_paths_of_the_machine_are_cut(tmp_path: Path) -> None:
    page = _page(f"read {tmp_path}/jaad.zip")
    assert str(tmp_path) not in page
    assert "…/jaad.zip" in page


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one section"):
        report([])


def test_a_table_with_rows_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="another length"):
        Table(("a", "b", "c"), (("1", "2"),), "lll")
    with pytest.raises(ValueError, match="another length"):
        Table(("a", "b"), (), "l")


def test_halves_stand_beside_each_other_and_a_single_half_beside_its_words() -> None:
    half, wide = _half(), plot_risk_regions([0.5], [1])
    assert Pictures((half, half, wide, half)).places == ("half", "half", "wide", "lone")
    assert Pictures((half, wide, half, half, half)).places == ("lone", "wide", "half", "half", "lone")


def _half() -> Picture:
    from roadaware.reports.bars import plot_precision_recall

    return plot_precision_recall([])


def test_the_style_knows_paper() -> None:
    page = _page()
    assert "@media print" in page
    assert "size: A4" in page
    assert "tabular-nums" in page
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    page = _page()
    save(page, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    with pytest.raises(DiskError):
        save(page, tmp_path / "no" / "such" / "\x00")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_page_is_well_formed_enough_for_an_xml_reader() -> None:
    (body,) = re.findall(r"<body[^>]*>(.*)</body>", _page(), re.DOTALL)
    etree.fromstring(f"<body>{body}</body>")


def test_of_a_section_a_screen_is_shown_and_the_rest_is_folded() -> None:
    long = Table(("name", "n"), tuple((f"row {k}", str(k)) for k in range(60)), "lr", "All of them")
    few = Table(("name", "n"), (("row", "1"),), "lr", "The first")
    note = Note("Take care.", "doubt")
    page = report([Section("one", ("said",), (few, long, note, few)), Section("two", (), (few,))])
    tree = html.document_fromstring(page)
    assert tree.xpath("//main//details/summary/h3/text()") == ["All of them", "The first"]
    assert not tree.xpath("//main//details[@open]")
    assert tree.xpath("//p[@class='doubt' and not(ancestor::details)]/text()") == ["Take care."]
    assert tree.xpath("//nav//a/@href") == ["#part-1", "#part-2"]
    alone = html.document_fromstring(report([Section("one", (), (few, long))]))
    for link in alone.xpath("//nav//a/@href"):
        assert alone.get_element_by_id(link.removeprefix("#")) is not None


def test_the_first_picture_stands_below_the_verdict_and_nowhere_else() -> None:
    tree = html.document_fromstring(report([Section("one", ("said",), (Note("b"), Pictures((_picture(),))))]))
    assert [figure.get("class") for figure in tree.xpath("//figure")] == ["lead"]
    assert tree.xpath("//figure/following::section[@aria-labelledby='part-1']")


def test_what_is_undefined_stands_in_one_line() -> None:
    undefined = Mark("undefined", "mute", "no positive sample")
    rows = (("Ranks",), ("auc", undefined, "5"), ("ap", undefined, "5"), ("Others",), ("f1", "0.500", "5"))
    table = Table(("metric", "value", "n"), rows, "lrr")
    assert [row[0] for row in table.defined] == ["Others", "f1"]
    assert table.undefined == "Undefined: auc, ap (no positive sample)."
    assert Table(("field", "a", "b"), (("x", "50", "undefined"),), "lrr").undefined == ""
    assert report([Section("a", (), (table,))]).count("no positive sample") == 1


def test_values_of_few_samples_are_marked() -> None:
    rows = (
        ("a", "14", Mark("0.500", "", "0 to 1")),
        ("b", "15", "0.250"),
        ("c", "3", "–"),
        ("d", "–", "0.1"),
    )
    table = Table(("class", "n", "value"), rows, "lrr", counted=(-1, -1, 1))
    values = [cell.text if isinstance(cell, Mark) else cell for _, _, cell in table.defined]
    assert values == ["0.500 ⚠", "0.250", "–", "0.1"]
    assert table.cautions == "⚠ from fewer than 15 samples"
    assert Table(("class", "n", "value"), rows, "lrr").cautions == ""
    with pytest.raises(ValueError, match="another length"):
        Table(("class", "n"), (), "lr", counted=(1,))
