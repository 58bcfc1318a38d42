"""The site: a menu that can be overlooked, a page of the Python API that names all of it, and no network."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import roadaware as ra

ROOT = Path(__file__).resolve().parents[2]
MOST_GROUPS = 8


def test_the_menu_has_few_groups_and_letters_are_the_readers_own() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    groups = re.findall(r"^  - ([^:\n]+):$", text[text.index("\nnav:") :], re.MULTILINE)
    assert 2 <= len([name for name in groups if name[0].isupper()]) <= MOST_GROUPS
    assert re.search(r"^  font: false$", text, re.MULTILINE)
    assert "http" not in text


def test_the_api_page_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    named = set(re.findall(r"^::: roadaware\.\S*\.(\w+)$", page, re.MULTILINE))
    assert set(ra.__all__) - {"datasets"} <= named


@pytest.mark.parametrize("name", sorted(set(ra.__all__) - {"datasets", "Scenes", "Model", "Result"}))
def test_every_argument_of_a_public_name_is_documented(name: str) -> None:
    found = getattr(ra, name)
    told = inspect.getdoc(found) or ""
    assert told.split("\n", 1)[0].endswith((".", ";", ":")) or "\n" in told
    if inspect.isclass(found):
        return
    for parameter in inspect.signature(found).parameters:
        assert re.search(rf"\b{parameter}\b", told), f"ra.{name}: {parameter}"
    assert "Raises:" in told


@pytest.mark.slow
def test_the_site_is_built_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is in roadaware[dev]")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings-python is in roadaware[dev]")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text("utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source|video)[^>]*\ssrc="?(https?:[^"\s>]*)', text)
        fetched += re.findall(
            r'<link[^>]*rel="?(?:stylesheet|preconnect|icon)[^>]*href="?(https?:[^"\s>]*)', text
        )
        assert not fetched, f"{page.name}: {fetched}"
    api = (tmp_path / "api.html").read_text("utf-8")
    for name in set(ra.__all__) - {"datasets", "Scenes"}:
        assert f'id="roadaware.api.{name}"' in api, name
