"""In a browser: numbers of any evaluation, findings, filters and differences lead to their frames, by clicks and by keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, Open, make_predictions, make_truth
from test_viewer_page import browser, visit

from roadaware.analysis.evaluation.runs import Run
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.reports import runs
from roadaware.scenes.store import save

__all__ = ["browser", "visit"]
pytestmark = pytest.mark.slow


@pytest.fixture
def asked(sets: Path) -> Path:
    """The same sets with an evaluation of pedestrians, and an audit that names a frame."""
    state = SampleScores(
        np.array([0.9, 0.2, 0.95, 0.1]), np.array([1, 1, 0, 0]), ["one/t0", "one/t0", "one/t2", "two/t3"],
        ["one", "one", "one", "two"], np.array([30, 10, 5, 20]),
    )  # fmt: skip
    config = PedestrianConfig.default("action")
    run = Run(
        "mine",
        state,
        config,
        evaluate_samples(state, config, resamples=20),
        20,
        0,
        "",
        {"config_name": "default"},
    )
    (sets / "people").mkdir()
    for name, data in runs.build_run_files(run, "").items():
        (sets / "people" / name).write_bytes(data)
    examples = [{"video": "one", "pedestrian": "t2", "frame": 75, "note": "<b>no event</b>"}]
    finding = {
        "name": "crosser-without-event",
        "severity": "warning",
        "sentence": "1 of 4",
        "advice": "mend it",
        "examples": examples,
    }
    (sets / "audit.json").write_text(json.dumps({"protocol": {}, "findings": [finding]}))
    return sets


def test_three_clicks_lead_from_a_number_of_pedestrians_to_the_sample(
    asked: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(asked / "people", asked / "truth"))
    row = page.locator(".row.metric", has_text="accuracy").first
    assert " to " in row.inner_text()  # its interval
    row.click()
    page.locator(".row.error", has_text="said crossing by 0.95, one/t2").click()
    page.wait_for_selector('#chosen h2:has-text("Ped t2")')
    page.wait_for_selector('#picture[data-frame="84"]')
    held = "() => ['kind=accuracy', 'f=84', 't=truth'].every((each) => location.hash.includes(each))"
    page.wait_for_function(held)
    # The same address opens the same list and sample.
    url = page.url
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector('#picture[data-frame="84"]')
    page.wait_for_selector('.row.error:has-text("said crossing by 0.95")')
    assert "Ped t2" in page.locator("#chosen h2").first.inner_text()


def test_keys_alone_go_through_items(asked: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(asked / "people", asked / "truth"), "#tab=errors&of=0&kind=accuracy")
    page.wait_for_selector(".row.error")
    page.locator(".row.error").first.focus()
    page.keyboard.press("Enter")
    first = page.locator("#chosen").inner_text()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("before => document.querySelector('#chosen').innerText !== before", arg=first)


def test_a_finding_opens_its_frame(asked: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(asked / "truth", asked / "audit.json"))
    page.locator('[data-tab="found"]').click()
    page.locator("button.row.finding", has_text="frame 75").click()
    page.wait_for_selector('#picture[data-frame="75"]')
    assert "Ped t2" in page.locator("#chosen h2").first.inner_text()
    assert "<b>no event</b>" in page.locator("button.row.finding").first.inner_text()
    assert page.locator("button.row.finding b").count() == 0
    assert page.locator("div.row.finding", has_text="mend it").count() == 1  # names no place


def test_a_filter_narrows_what_is_drawn_and_stays_in_the_address(
    asked: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(asked / "truth", asked / "found"), "#v=one&f=30&tab=videos")
    page.wait_for_selector('#picture[data-frame="30"][data-boxes="5"]')
    page.locator(".filters summary").click()
    page.locator('.filters select[aria-label="Column"]').select_option("boxes.score")
    page.locator('.filters input[aria-label="Value"]').fill("0.85")
    page.keyboard.press("Enter")
    page.wait_for_selector("#filtered")
    # Truth has no scores and stays; of three predicted boxes the first person alone reaches it.
    page.wait_for_selector('#picture[data-boxes="3"]')
    assert "A 60 of 180 boxes" in page.locator("#filtered").inner_text()
    page.wait_for_function("() => location.hash.includes('where=')")
    url = page.url
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector('#picture[data-frame="30"][data-boxes="3"]')
    page.locator(".condition button").click()
    page.wait_for_selector('#picture[data-boxes="5"]')


def test_differences_alone_are_drawn_and_listed(asked: Path, viewed: Open, visit: Any) -> None:
    save(
        make_predictions().with_tables(boxes=make_predictions().boxes.filter(pl.col("tube") != 1)),
        asked / "less",
    )
    page = visit(viewed(asked / "found", asked / "less"), "#v=one&f=30")
    page.locator('[data-tab="compare"]').click()
    page.locator(".row.error", has_text="tube 1").click()
    page.wait_for_selector('#chosen h2:has-text("Car t1")')
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    page.wait_for_selector('#picture[data-boxes="1"]')
    assert page.locator("#list .row.video").first.inner_text().startswith("one")
    page.wait_for_function("() => location.hash.includes('ab=a%2Cb%2C0.5%2C1')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lists_fit_a_phone_and_can_be_read(asked: Path, viewed: Open, visit: Any, scheme: str) -> None:
    frames = pl.concat(
        [pl.DataFrame({"video": v, "frame": range(FRAMES), "annotated": True}) for v in ("one", "two")]
    )
    save(make_truth().with_tables(frames=frames), asked / "framed")
    client = viewed(
        asked / "people", asked / "framed", asked / "found", asked / "other", asked / "audit.json"
    )
    page = visit(client, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    for tab in ("videos", "metrics", "errors", "compare", "found"):
        page.locator(f'[data-tab="{tab}"]').click()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab
