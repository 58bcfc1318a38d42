"""Relations, joints, sounds and forecasts in a browser: drawn at the frames in which they hold, and at no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numbered import BITS, BLOCK, FRAMES, Open
from overlaid import make_overlaid_predictions, make_overlaid_truth, write_sounding, write_watch
from test_viewer_page import CONTRAST, READ, browser, settle, visit

from roadaware.scenes.store import save

__all__ = ("browser", "visit")
pytestmark = pytest.mark.slow

DRAWN = """(layer) => window.viewer.overlays.drawn.filter((each) => each.layer === layer)
    .map(({ side, id, word, words, selected, corner }) => ({ side, id, word, words, selected, corner }))"""
# The colours around a point of the canvas, where an arrow bends.
AROUND = """([x, y]) => [...window.viewer.player.canvas.getContext("2d").getImageData(x - 3, y - 3, 7, 7).data].join(" ")"""


@pytest.fixture
def shown(tmp_path: Path, numbered_film: Path) -> Path:
    save(make_overlaid_truth(), tmp_path / "truth")
    save(make_overlaid_predictions(), tmp_path / "found")
    write_watch(tmp_path / "watch")
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "one.mp4").write_bytes(numbered_film.read_bytes())
    return tmp_path


def wait_until(page: Any, condition: str, arg: Any = None) -> None:
    """Until a function of the page says so; Playwright's own way needs `eval`, which this page forbids."""
    for _ in range(1200):
        if page.evaluate(condition, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


def draw(page: Any, frame: int, layer: str) -> list[dict[str, Any]]:
    """What a layer shows once a frame is shown, with everything that belongs to it."""
    page.evaluate("(frame) => window.viewer.player.seek(frame)", frame)
    seen = settle(page, frame)
    assert seen["frame"] == frame
    if not page.evaluate("window.viewer.overlays.on.has('sounds')"):  # maps and words cover the number
        assert seen["number"] == frame
    wait_until(
        page,
        "([layer, frame]) => ((held) => !held.on.has(layer) || held.window(layer, frame) !== null)(window.viewer.overlays)",
        [layer, frame],
    )
    page.evaluate("window.viewer.player.draw()")
    found: list[dict[str, Any]] = page.evaluate(DRAWN, layer)
    return found


def test_relations_are_drawn_while_they_hold_and_selected_by_a_click(
    shown: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(shown / "truth", shown / "found", media=[shown / "films"]), "#v=one&f=30")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert draw(page, 35, "relations") == []
    assert not any("/api/layers" in url for url in asked)  # what is off costs nothing
    page.wait_for_selector('[data-layer="relations"]:visible')
    page.keyboard.press("r")
    truth, found = {0: range(20, 40), 1: range(30, 50)}, range(25, 45)
    for frame in (19, 20, 24, 25, 29, 30, 39, 40, 44, 45, 49, 50, 5, 80):
        wanted = [("truth", number) for number, frames in truth.items() if frame in frames]
        wanted += [("a", 0)] if frame in found else []
        assert sorted((each["side"], each["id"]) for each in draw(page, frame, "relations")) == sorted(wanted)
        listed = page.locator("#relations button").count()
        assert listed == len(wanted)
    draw(page, 47, "relations")
    middle = page.evaluate("window.viewer.overlays.drawn[0].middle.map(Math.round)")
    lit = page.evaluate(AROUND, middle)
    page.keyboard.press("r")
    assert page.evaluate(AROUND, middle) != lit
    assert page.evaluate("window.viewer.overlays.drawn") == []
    page.keyboard.press("r")
    ratio = page.evaluate("window.devicePixelRatio")
    box = page.locator("#picture").bounding_box()
    page.mouse.click(box["x"] + middle[0] / ratio, box["y"] + middle[1] / ratio)
    assert [each["selected"] for each in draw(page, 47, "relations")] == [True]
    assert "chasing" in page.locator('#relations [aria-pressed="true"]').inner_text()
    assert page.evaluate("window.viewer.lanes.chosenSpan") == [30, 50]
    page.keyboard.press("Escape")
    assert page.locator('#relations [aria-pressed="true"]').count() == 0
    page.locator("#relations button").first.press("Enter")
    assert page.locator('#relations [aria-pressed="true"]').count() == 1
    page.wait_for_timeout(400)
    assert "on=relations" in page.url
    page.reload()
    page.wait_for_selector("#relations button")


def test_joints_sounds_and_maps_belong_to_the_frame(shown: Path, viewed: Open, visit: Any) -> None:
    page = visit(
        viewed(shown / "truth", shown / "found", media=[shown / "films"]), "#v=one&f=3&on=joints,sounds"
    )
    page.wait_for_selector('[data-layer="joints"][aria-pressed="true"]:visible')
    for frame in (0, 33, 59, 60, 75):
        assert len(draw(page, frame, "joints")) == (1 if frame < 60 else 0)
    nose = page.evaluate(
        """() => { const { player, overlays } = window.viewer; const pane = player.layout()[0]; player.seek(33);
        return pane.scale }"""
    )
    draw(page, 33, "joints")
    point = page.evaluate("window.viewer.overlays.drawn.find((each) => each.layer === 'joints').points[0]")
    left = page.evaluate("window.viewer.player.layout()[0].x")
    assert (point[0] - left) / nose == pytest.approx(10 + 2 * 33 + 15, abs=0.6)
    for frame, boxes in ((29, 0), (30, 1), (35, 1), (36, 0)):
        found = draw(page, frame, "sounds")
        assert len([each for each in found if not each["corner"]]) == boxes
    # The map of A stands while the true sound is heard; that of one value is said, and not drawn.
    for frame, maps in ((30, 1), (33, 1), (40, 0), (70, 0)):
        draw(page, frame, "sounds")
        page.wait_for_timeout(300)
        assert len(draw(page, frame, "maps")) == maps


def test_forecasts_stand_at_their_pedestrian(shown: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(shown / "watch", media=[shown / "films"]), "#v=one&f=3&t=a:t0")
    page.wait_for_selector('[data-layer="risk"]:visible')
    page.keyboard.press("x")
    for frame in (19, 20, 28, 29, 30):
        found = draw(page, frame, "risk")
        assert len(found) == (1 if 20 <= frame <= 29 else 0)
    assert "crossing 0.60 (0.40 to 0.90)" in draw(page, 20, "risk")[0]["words"]
    assert draw(page, 29, "risk")[0]["words"] == "region 4 of 4 0.70"
    wait_until(page, "() => document.querySelector('#lanes').dataset.latency === '2000'")


def test_a_copy_is_seen_frame_by_frame_and_heard(tmp_path: Path, viewed: Open, visit: Any) -> None:
    save(make_overlaid_truth(), tmp_path / "truth")
    (tmp_path / "films").mkdir()
    write_sounding(tmp_path / "films" / "one.mkv", sound="pcm_s16le", begin_s=0.4)
    page = visit(viewed(tmp_path / "truth", media=[tmp_path / "films"]), "#v=one&f=0")
    wait_until(page, "() => window.viewer.player.film.state === 'ready'")
    for place in range(1, 31):
        frame = 37 * place % FRAMES
        page.evaluate("(frame) => window.viewer.player.seek(frame)", frame)
        assert settle(page, frame)["number"] == frame
    wait_until(page, "() => (document.querySelector('#lanes').dataset.wave || '').startsWith('ready')")
    # The tone is drawn where it is heard: bars of the lane by the frames at which they stand.
    tone = page.evaluate(
        """() => { const { signals, range } = window.viewer.lanes; const { data, wanted } = signals.held.get("wave");
        const each = (wanted.end - wanted.first) / data.low.length;
        const loud = data.high.flatMap((high, k) => (high > 5000 ? [Number(wanted.first) + k * each] : []));
        return [loud[0], loud[loud.length - 1]]; }"""
    )
    assert tone == [pytest.approx(1.0, abs=0.05), pytest.approx(1.3, abs=0.05)]
    assert page.evaluate("document.querySelector('#film').muted")
    page.keyboard.press("m")
    assert not page.evaluate("document.querySelector('#film').muted")
    assert page.locator("#sound").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Home")
    settle(page, 0)
    page.keyboard.press(" ")
    wait_until(page, "() => document.querySelector('#film').webkitAudioDecodedByteCount > 0")
    for _ in range(10):
        page.wait_for_timeout(60)
        seen = page.evaluate(READ, [BITS, BLOCK])
        assert seen["number"] == seen["frame"]
    page.keyboard.press("k")
    page.locator("#volume").fill("0.25")
    assert page.evaluate("document.querySelector('#film').volume") == 0.25


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_layers_fit_a_phone_and_are_readable(shown: Path, viewed: Open, visit: Any, scheme: str) -> None:
    page = visit(
        viewed(shown / "truth", shown / "found", media=[shown / "films"]),
        "#v=one&f=33&on=relations,joints,sounds",
        viewport={"width": 390, "height": 800},
        color_scheme=scheme,
    )
    page.wait_for_selector("#relations button")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CONTRAST) == []
