"""Blocks of Python in the documentation run as written, in the order of a page; every page can be found."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from roadaware.demo_data import write_demo

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"^[ \t]*([A-Z][A-Z_]{7,})[ \t]*$", re.MULTILINE)
ALL_PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
# The other pages take less than a second.
LONG = ("audit", "baselines", "python", "report", "watch")
PAGES = [page for page in ALL_PAGES if "```python" in page.read_text("utf-8")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `data/jaad` is the demo's dataset."""
    folder = tmp_path_factory.mktemp("reader")
    write_demo(folder / "data" / "jaad")
    return folder


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.stem in LONG else [], id=page.name)
        for page in PAGES
    ],
)
def test_the_blocks_of_a_page_run(page: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("ROADAWARE_HOME", str(place / "cache"))
    script = place / f"{page.stem}.py"
    script.write_text(_script(page.read_text(encoding="utf-8")), encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def _script(text: str) -> str:
    """The page's Python with all else left blank, so that a traceback has the page's own line numbers."""
    lines = [""] * (text.count("\n") + 1)
    for found in _blocks(text):
        first = text.count("\n", 0, found.start()) + 1
        block = found[2].splitlines()
        lines[first : first + len(block)] = block
    return "\n".join(lines)


def _blocks(text: str) -> list[re.Match[str]]:
    return [found for found in FENCE.finditer(text) if found[1] == "python"]


def test_no_page_promises_what_was_never_put_in() -> None:
    """A word in capitals alone on a line holds the place of something, such as a table."""
    left = {page.name: PLACEHOLDER.findall(page.read_text("utf-8")) for page in ALL_PAGES}
    assert {name: found for name, found in left.items() if found} == {}
    assert PLACEHOLDER.findall("so:\n\nBIGTABLE\n\n  THE_RESULTS  \nJAAD\nA BIGTABLE\n") == [
        "BIGTABLE",
        "THE_RESULTS",
    ]


def test_the_pages_with_python_are_found_and_no_block_is_overlooked() -> None:
    assert {page.name for page in PAGES} >= {
        "audit.md",
        "baselines.md",
        "metrics.md",
        "report.md",
        "tables.md",
    }
    for page in ALL_PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(_blocks(text)) == len(
            re.findall(r"^ *(?:```|~~~) *(?:python|py)\b", text, re.MULTILINE | re.IGNORECASE)
        )


def test_every_page_of_the_site_is_in_its_menu_and_linked_from_its_start() -> None:
    menu = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(menu) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    linked = re.findall(r"\]\(([a-z_]+\.md)", (ROOT / "docs" / "index.md").read_text("utf-8"))
    assert set(menu) - {"index.md", *linked} == set()
