"""Many tubes and boxes in a browser: all are counted and can be reached; a span is saved as a video by keys alone."""
# ruff: noqa: F811, the fixtures of the page

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered import Open, make_predictions, make_truth
from test_clips import find_colour, read_number
from test_viewer_page import browser, settle, visit  # noqa: F401

from roadaware.io.video import VideoReader
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes

pytestmark = pytest.mark.slow
TUBES, LONG = 600, 40


def make_many() -> Scenes:
    """Tubes of which each overlaps fifty others in time: they need more than fifty rows."""
    truth = make_truth()
    numbers = list(range(TUBES))
    frames = pl.DataFrame({"tube": [number for number in numbers for _ in range(LONG)]})
    boxes = frames.with_columns(
        video=pl.lit("one"),
        frame=pl.Series([number % 50 + step for number in numbers for step in range(LONG)]),
        x1_px=1.0,
        y1_px=1.0,
        x2_px=9.0,
        y2_px=9.0,
    )
    boxes = boxes.sort("frame", "tube").with_row_index("box").cast({"box": pl.Int64})
    tubes = pl.DataFrame(
        {
            "tube": numbers,
            "video": "one",
            "name": [f"t{number}" for number in numbers],
            "start_frame": [number % 50 for number in numbers],
            "end_frame": [number % 50 + LONG for number in numbers],
        }
    )
    labels = pl.DataFrame({"tube": numbers, "kind": "agent", "label": [number % 2 for number in numbers]})
    return truth.with_tables(boxes=boxes, tubes=tubes, tube_labels=labels)


def test_every_tube_of_many_is_drawn_where_it_is_scrolled_to_and_clicked(
    tmp_path: Path, viewed: Open, visit: Any
) -> None:
    save(make_many(), tmp_path / "truth")
    page = visit(viewed(tmp_path / "truth"), "#v=one&f=5")
    page.wait_for_function(f"() => window.viewer.lanes.bars.length === {TUBES}")
    sizes = """(() => {
        const { scroll, canvas } = window.viewer.lanes;
        return [scroll.scrollHeight, scroll.clientHeight, canvas.clientHeight];
    })()"""
    whole, seen, canvas = page.evaluate(sizes)
    assert whole > 3 * seen
    assert canvas == seen
    picked = """(() => {
        const bars = [...window.viewer.lanes.bars].sort((a, b) => b.top - a.top);
        return { ...bars[0], tube: bars[0].tube.tube };
    })()"""
    last = page.evaluate(picked)
    assert last["bottom"] <= whole
    page.evaluate("window.viewer.lanes.scroll.scrollTop = 1e9")
    page.wait_for_timeout(300)
    top, x = page.evaluate(
        "([bar]) => { const box = window.viewer.lanes.canvas.getBoundingClientRect();"
        "return [box.top + bar.top + 4 - window.viewer.lanes.scroll.scrollTop, box.left + (bar.left + bar.right) / 2]; }",
        [last],
    )
    painted = (
        "([x, y]) => { const { canvas } = window.viewer.lanes; const box = canvas.getBoundingClientRect();\
        return [...canvas.getContext('2d').getImageData(x - box.left, y - box.top, 1, 1).data]; }"
    )
    assert page.evaluate(painted, [x, top])[3] > 0
    page.mouse.click(x, top)
    page.wait_for_selector(f'#chosen h2:has-text("t{last["tube"]}")')
    page.locator("#lanes").focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.wait_for_timeout(300)
    chosen = page.evaluate("window.viewer.state.chosen.tube")
    names = page.evaluate("window.viewer.lanes.bars.map((bar) => bar.tube.tube)")
    assert chosen == names[names.index(last["tube"]) - 3]


def test_boxes_that_are_counted_are_those_that_would_be_drawn(sets: Path, viewed: Open, visit: Any) -> None:
    truth, found = make_truth(), make_predictions()
    # Of three labels of a tube the weightiest names it, wherever it stands in the alphabet.
    more = pl.DataFrame({"tube": [0, 1], "kind": "agent", "label": [1, 0], "score": [0.05, 0.1]})
    labels = pl.concat([found.tube_labels, more.cast(dict(found.tube_labels.schema))], how="diagonal_relaxed")
    save(found.with_tables(tube_labels=labels.sort("tube")), sets / "found", overwrite=True)
    assert len(truth.boxes) == 190
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=30&s=0")
    drawn = """async () => {
        const { player, state } = window.viewer;
        const found = {};
        for (const [side, tubes] of Object.entries(player.tubes)) {
            found[side] = 0;
            for (let frame = 0; frame < player.count; frame += 1) {
                while (!player.boxes.window(frame).sides) await new Promise((done) => setTimeout(done, 20));
                const { data, first, end } = player.boxes.at(side, frame);
                for (let row = first; row < end; row += 1) {
                    const tube = tubes.get(data.tube[row]);
                    const score = tube.score !== null ? tube.score : data.score ? data.score[row] : null;
                    if (state.passes(side, tube.word, score)) found[side] += 1;
                }
            }
        }
        return found;
    }"""
    for score, hidden in (("0", None), ("0.7", None), ("0.7", "Car"), ("0.61", "Ped")):
        page.locator("#score").fill(score)
        if hidden:
            page.locator("#classes button", has_text=hidden).click()
        page.wait_for_function(
            "() => window.viewer.tallies.shown.dataset.key === window.viewer.tallies.key && !window.viewer.tallies.asked"
        )
        counted = page.evaluate(
            "Object.fromEntries(Object.entries(window.viewer.tallies.sides).map(([side, each]) => [side, each.videos[0]]))"
        )
        assert counted == page.evaluate(drawn), (score, hidden)
        assert counted["truth"] > 0 or hidden == "Ped"
    page.locator('[data-tab="videos"]').click()
    page.wait_for_function("() => document.querySelector('[data-video=\"0\"]').textContent.endsWith('boxes')")


def test_keys_alone_save_a_span_as_a_video(sets: Path, tmp_path: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=75&t=a:t2&s=0.5&off=truth")
    settle(page, 75)
    colour = page.evaluate("import('/static/tubes.js').then(({ colourOf }) => colourOf('Car'))")
    page.keyboard.press("g")  # names have the colours of their boxes
    page.keyboard.press("s")
    page.wait_for_selector("#export[open]")
    with page.expect_download(timeout=60_000) as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == "one-70-89.mp4"
    waiting.value.save_as(tmp_path / "clip.mp4")
    page.wait_for_selector("#export", state="hidden")
    wanted = tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
    with VideoReader(tmp_path / "clip.mp4") as film:
        assert len(film) == 20
        image = film.frame(5)
    assert read_number(image) == 75
    seen = find_colour(image, wanted)  # type: ignore[arg-type]
    # Two cars are there: from 164 and 110 on, and from 160 and 60 on.
    assert seen == pytest.approx((160, 60, 194, 150), abs=1)
    page.keyboard.press("s")
    page.wait_for_selector("#export[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#export", state="hidden")
    page.keyboard.press(".")
    settle(page, 76)


def test_a_clip_that_is_cancelled_is_not_made(sets: Path, viewed: Open, visit: Any) -> None:
    client = viewed(sets / "truth", sets / "found")
    page = visit(client, "#v=one&f=20&t=a:t1&s=0.5")
    settle(page, 20)
    page.keyboard.press("s")
    page.locator('#export [data-form="gif"]').click()
    page.keyboard.press("Escape")
    page.wait_for_selector("#export", state="hidden")
    page.wait_for_timeout(1500)
    clips = client.viewer._app.state.clips._clips
    assert [clip.state for clip in clips.values()] in ([], ["cancelled"])
