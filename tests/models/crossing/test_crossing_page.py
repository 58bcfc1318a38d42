"""The page of the networks for pedestrians says what their cards say."""

from __future__ import annotations

import runpy
from pathlib import Path

from roadaware.models import CROSSING

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_is_what_the_cards_make_of_it() -> None:
    """`python docs/crossing_models.py` writes it again."""
    page = (DOCS / "crossing_models.md").read_text("utf-8")
    whole = runpy.run_path(str(DOCS / "crossing_models.py"))["whole"](page)
    assert whole == page, "write the page again: python docs/crossing_models.py"


def test_every_network_has_its_section() -> None:
    page = (DOCS / "crossing_models.md").read_text("utf-8")
    titles = [line[4:] for line in page.splitlines() if line.startswith("### ")]
    assert titles == list(CROSSING), "write the page again: python docs/crossing_models.py"
