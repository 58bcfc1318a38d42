"""The page in a browser: boxes belong to the frame that is shown, and three clicks lead from a number to it."""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import BITS, BLOCK, FRAMES, Client, Open, make_truth, numbered_image
from overlaid import make_overlaid_truth
from PIL import Image

from roadaware.scenes.store import save

pytestmark = pytest.mark.slow
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
READY = '#picture[data-boxes]:not([data-boxes="0"])'

# The number that the image in the canvas shows, the frame the page says it is, and where the first box is drawn.
READ = """([bits, block]) => {
    const { player } = window.viewer;
    const pane = player.layout()[0];
    const pen = player.canvas.getContext("2d");
    let number = 0;
    for (let bit = 0; bit < bits; bit += 1) {
        const x = pane.x + (bit + 0.5) * block * pane.scale, y = pane.y + 0.5 * block * pane.scale;
        number += (pen.getImageData(Math.round(x), Math.round(y), 1, 1).data[1] > 128 ? 1 : 0) << bit;
    }
    const box = player.hits.find((hit) => hit.side === "truth" && hit.tube === 1);
    return { number, frame: Number(player.canvas.dataset.frame), left: box ? (box.place[0] - pane.x) / pane.scale : null,
        busy: player.wanted !== null };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="`pip install -e '.[dev]'` has playwright")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no chromium at {CHROMIUM}; CHROMIUM says where it is")
    with api.sync_playwright() as playing:
        found = playing.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


class Opened:
    """A page that has complained of nothing but what a test expects."""

    def __init__(self, page: Any, ignores: str) -> None:
        self.page, self.faults, self.asked = page, [], []  # type: ignore[var-annotated]
        page.on("pageerror", lambda error: self.faults.append(str(error)))

        def listen(message: Any) -> None:
            if message.type == "error" and not re.search(ignores, message.text):
                self.faults.append(message.text)

        page.on("console", listen)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    contexts: list[Any] = []
    seen: list[tuple[Opened, Client]] = []

    def go(client: Client, fragment: str = "", wait: str = READY, ignores: str = "$.", **context: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context}))
        opened = Opened(contexts[-1].new_page(), ignores)
        seen.append((opened, client))
        opened.page.goto(client.viewer.address + fragment)
        opened.page.wait_for_selector(wait, timeout=30_000)
        return opened.page

    yield go
    for opened, client in seen:
        assert opened.faults == []
        home = f"http://127.0.0.1:{client.viewer.port}/"
        assert [url for url in opened.asked if not url.startswith((home, "blob:"))] == []
    for context in contexts:
        context.close()


def settle(page: Any, frame: int) -> dict[str, Any]:
    """What is seen once a frame is shown."""
    page.wait_for_selector(f'#picture[data-frame="{frame}"]', timeout=20_000)
    found: dict[str, Any] = page.evaluate(READ, [BITS, BLOCK])
    return found


def test_boxes_belong_to_the_frame_that_is_shown_at_a_hundred_seeks(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=5")
    # 37 and 90 have no common divisor: each frame is met, and each seek is a long one.
    for frame in itertools.islice((37 * place % FRAMES for place in itertools.count(1)), 100):
        page.evaluate("(frame) => window.viewer.player.seek(frame)", frame)
        seen = settle(page, frame)
        assert seen["number"] == seen["frame"] == frame
        if 10 <= frame < 90:
            assert seen["left"] == pytest.approx(10 + 2 * frame, abs=0.6)


def test_boxes_belong_to_the_frame_that_is_shown_while_it_plays_and_steps(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=12")
    settle(page, 12)
    page.keyboard.press(" ")
    numbers = set()
    for _ in range(40):
        page.wait_for_timeout(30)
        seen = page.evaluate(READ, [BITS, BLOCK])
        assert seen["number"] == seen["frame"]
        numbers.add(seen["frame"])
    assert len(numbers) > 5
    page.keyboard.press("k")
    page.keyboard.press("Home")
    settle(page, 0)
    for frame in (1, 2, 3):
        page.keyboard.press(".")
        assert settle(page, frame)["number"] == frame
    page.keyboard.press(",")
    assert settle(page, 2)["number"] == 2
    page.keyboard.press("Shift+ArrowRight")
    assert settle(page, 12)["number"] == 12
    page.keyboard.press("End")
    assert settle(page, FRAMES - 1)["number"] == FRAMES - 1


def test_three_clicks_lead_from_a_number_to_the_frame_of_its_worst_tube(
    judged: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(judged / "run", judged / "truth", judged / "found"))
    page.locator(".row.metric", has_text="agent").filter(has_not_text="agentness").first.click()
    page.locator(".row.class", has_text="Car").click()
    page.locator(".row.error", has_text="Car for Ped").click()
    page.wait_for_selector('#chosen h2:has-text("Car t2")')
    # The heading comes first, then the image, then the address, which is written when nothing has changed for a while.
    page.wait_for_function(
        """() => {
            const frame = Number(window.viewer.player.canvas.dataset.frame);
            const parts = location.hash.slice(1).split("&");
            const held = ["tab=errors", "t=a%3At2%3A2", `f=${frame}`].every((each) => parts.includes(each));
            return 70 <= frame && frame < 90 && held;
        }"""
    )
    seen = page.evaluate(READ, [BITS, BLOCK])
    assert 70 <= seen["frame"] == seen["number"] < 90
    page.reload()  # the address alone leads there again
    page.wait_for_selector('#chosen h2:has-text("Car t2")')
    assert settle(page, seen["frame"])["number"] == seen["frame"]
    page.wait_for_selector(".row.error")


def test_keys_alone_go_from_error_to_verdict_and_undo(sets: Path, viewed: Open, visit: Any) -> None:
    client = viewed(sets / "truth", sets / "found")
    page = visit(client, "#tab=errors&kind=agent")
    page.wait_for_selector(".row.error")
    page.locator(".row.error").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdicts")
    before = page.locator("#chosen").inner_text()
    page.keyboard.press("ArrowDown")
    # The next error may be of another video, which is loaded before it is selected.
    page.wait_for_function("before => document.querySelector('#chosen').innerText !== before", arg=before)
    page.wait_for_selector(".verdicts")
    page.keyboard.press("Escape")
    page.evaluate("window.viewer.state.choose({ side: 'a', tube: 1, box: null })")
    page.keyboard.press("2")
    page.wait_for_selector('.verdicts [aria-pressed="true"]')
    assert [(v["tube"], v["verdict"]) for v in client.json("/api/verdicts?side=a")] == [(1, "wrong")]
    page.keyboard.press("1")
    page.wait_for_selector('.verdicts button:has-text("right")[aria-pressed="true"]')
    page.keyboard.press("n")
    page.keyboard.type("half hidden")
    page.keyboard.press("Tab")
    page.wait_for_timeout(400)
    assert [(v["verdict"], v["note"]) for v in client.json("/api/verdicts?side=a")] == [
        ("right", "half hidden")
    ]
    page.locator("#picture").focus()
    for left in ([("right", "")], [("wrong", "")], []):
        page.keyboard.press("u")
        page.wait_for_timeout(400)
        assert [(v["verdict"], v["note"]) for v in client.json("/api/verdicts?side=a")] == left


def test_filters_change_what_is_drawn_and_counted_and_stay_in_the_address(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=30&s=0.3")
    settle(page, 30)
    assert page.locator("#picture").get_attribute("data-boxes") == "5"
    page.locator("#classes button", has_text="Car").click()
    assert page.locator("#picture").get_attribute("data-boxes") == "3"
    page.locator("#score").fill("0.7")
    assert page.locator("#picture").get_attribute("data-boxes") == "2"
    assert "A 1 of 4" in page.locator("#counts").inner_text()
    page.locator('#sides [data-side="truth"]').click()
    assert page.locator("#picture").get_attribute("data-boxes") == "1"
    page.wait_for_timeout(400)
    assert {"hide=Car", "off=truth", "s=0.7"} <= set(page.url.partition("#")[2].split("&"))


def test_two_predictions_stand_side_by_side_at_one_frame(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found", sets / "other"), "#v=one&f=30")
    settle(page, 30)
    page.keyboard.press("b")
    panes = page.evaluate("window.viewer.player.layout().map((pane) => pane.sides)")
    assert panes == [["truth", "a"], ["truth", "b"]]
    assert settle(page, 30)["number"] == 30
    page.keyboard.press(".")
    assert settle(page, 31)["number"] == 31


def test_the_time_line_seeks_selects_and_repeats(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=0")
    box = page.locator("#lanes").bounding_box()
    x = page.evaluate("window.viewer.lanes.x(45.5)")
    page.mouse.click(box["x"] + x, box["y"] + 6)
    assert settle(page, 45)["number"] == 45
    left, right = page.evaluate("[window.viewer.lanes.x(20.5), window.viewer.lanes.x(30.5)]")
    page.mouse.move(box["x"] + left, box["y"] + 6)
    page.mouse.down()
    page.mouse.move(box["x"] + right, box["y"] + 6, steps=4)
    page.mouse.up()
    assert page.evaluate("window.viewer.player.loop") == [20, 31]
    page.keyboard.press(" ")
    page.wait_for_timeout(2500)
    assert 20 <= page.evaluate("window.viewer.player.frame") <= 31


def test_a_film_that_is_missing_leaves_boxes_and_says_so(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=two&f=3")
    assert "films/two.mp4 is not here" in page.locator("#message").inner_text()
    page.keyboard.press(".")
    page.wait_for_selector('#picture[data-frame="4"]')
    page.keyboard.press("l")
    page.wait_for_timeout(700)
    assert page.evaluate("window.viewer.player.frame") > 5


def test_a_set_that_says_it_has_a_million_million_frames_is_shown(
    tmp_path: Path, viewed: Open, visit: Any
) -> None:
    truth = make_truth()
    save(truth.with_tables(videos=truth.videos.with_columns(n_frames=10**12)), tmp_path / "truth")
    page = visit(viewed(tmp_path / "truth"), "#v=one&f=20")
    assert "the tables say 1000000000000 frames" in page.locator("#message").inner_text()
    assert page.evaluate("window.viewer.player.count") == 10_000_000


def test_stills_are_shown_as_frames(tmp_path: Path, viewed: Open, visit: Any) -> None:
    root = tmp_path / "stills"
    root.mkdir()
    truth = make_truth()
    frames = truth.boxes.filter(pl.col("video") == "one").select("video", "frame").unique().sort("frame")
    names = [f"{number:03d}.png" for number in frames["frame"].to_list()]
    for number, name in zip(frames["frame"].to_list(), names, strict=True):
        Image.fromarray(numbered_image(number)).save(root / name)
    save(truth.with_tables(frames=frames.with_columns(path=pl.Series(names))), root / "tables")
    page = visit(viewed(root / "tables"), "#v=one&f=20")
    assert settle(page, 20)["number"] == 20
    page.keyboard.press(".")
    assert settle(page, 21)["number"] == 21


def test_labels_of_data_are_texts(tmp_path: Path, viewed: Open, visit: Any) -> None:
    evil = '<img src=x onerror=alert(1)><script>alert(2)</script>"\u202e{{7*7}}'
    truth = make_truth()
    meta = type(truth.meta)(vocabularies={"agent": (evil, "Car")})
    tubes = truth.tubes.with_columns(name=pl.lit(evil))
    save(truth.with_tables(meta=meta, tubes=tubes), tmp_path / "truth")
    page = visit(viewed(tmp_path / "truth"), "#v=one&f=5&t=truth:t0")
    page.wait_for_selector("#chosen h2")
    assert evil in page.locator("#chosen h2").inner_text()
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_screen_and_is_readable(
    judged: Path, viewed: Open, visit: Any, width: int, scheme: str
) -> None:
    page = visit(
        viewed(judged / "run", judged / "truth", judged / "found"),
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        reduced_motion="reduce",  # colours are judged, not a moment between two
    )
    page.evaluate("window.viewer.state.choose({ side: 'a', tube: 1, box: null })")
    page.locator('[data-tab="errors"]').click()
    page.wait_for_selector(".row.error")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    poor = page.evaluate(CONTRAST)
    assert poor == []


# Texts whose colour stands out from its ground by less than 4.5 to 1 (WCAG 2, AA).
CONTRAST = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const bend = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * bend(r / 255) + 0.7152 * bend(g / 255) + 0.0722 * bend(b / 255);
    const ground = (node) => {
        for (; node; node = node.parentElement) {
            const colour = parse(getComputedStyle(node).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const holdsText = (node) => [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
    return [...document.querySelectorAll("body *")].filter((node) => {
        if (!holdsText(node) || !node.getClientRects().length) return false;
        const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    }).map((node) => `${node.tagName} ${node.textContent.slice(0, 30)}`);
}"""


def test_a_saved_clip_plays_alone_and_asks_nobody(
    sets: Path, tmp_path: Path, viewed: Open, visit: Any, browser: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=30&t=truth:t2")
    settle(page, 30)
    with page.expect_download(timeout=60_000) as waiting:
        page.keyboard.press("c")
    path = tmp_path / "clip.html"
    waiting.value.save_as(path)
    assert waiting.value.suggested_filename == "one-70-89.html"
    text = path.read_text("utf-8")
    assert "http" not in text.replace("http-equiv", "")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    faults: list[str] = []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text))
    alone.goto(path.as_uri())
    assert alone.locator("#title").inner_text() == "one, frames 70 to 89"
    assert alone.locator("#said").inner_text().startswith("frame 70,")
    first = alone.locator("#image").get_attribute("src")
    alone.locator("#range").fill("19")
    assert alone.locator("#said").inner_text().startswith("frame 89,")
    assert alone.locator("#image").get_attribute("src") != first
    alone.locator("#play").click()
    alone.wait_for_timeout(300)
    context.close()
    assert faults == []


def hold_back(page: Any, pattern: str) -> Any:
    """Answers to some requests wait until what is given is called."""
    waiting: list[Any] = []
    page.route(pattern, lambda route: waiting.append(route))

    def release() -> None:
        for route in waiting:
            route.continue_()
        page.unroute(pattern)

    return release


def choose_error(page: Any, *words: str) -> None:
    """Click an error of the other video."""
    row = page.locator(".row.error")
    for word in words:
        row = row.filter(has_text=word)
    row.first.click()


def test_escape_while_a_video_loads_ends_the_selection_that_is_on_its_way(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=5&tab=errors&kind=agent")
    page.wait_for_selector(".row.error")
    release = hold_back(page, "**/api/video?video=1")
    choose_error(page, "two,")
    page.wait_for_function("() => window.viewer.player.number === 1")
    assert page.locator("#picture").get_attribute("data-boxes") == "0"  # nothing of the former video
    page.keyboard.press("Escape")
    release()
    page.wait_for_function("() => window.viewer.player.told.truth !== undefined")
    page.wait_for_timeout(300)
    assert page.evaluate("window.viewer.state.chosen") is None
    assert page.locator("#chosen h2").inner_text() == "Selection"
    assert "v=two" in page.url
    # Without Escape it is selected.
    page.evaluate("window.viewer.player.stop()")
    page.locator('[data-tab="videos"]').click()
    page.locator(".row.video", has_text="one").click()
    page.wait_for_function("() => location.hash.includes('v=one')")
    page.locator('[data-tab="errors"]').click()
    choose_error(page, "two,")
    page.wait_for_selector('#chosen h2:has-text("Ped t3")')


def test_the_last_click_counts_while_a_video_loads(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=two&f=3&tab=errors&kind=agent")
    page.wait_for_selector(".row.error")
    release = hold_back(page, "**/api/video?video=0")
    choose_error(page, "background", "one,")
    page.wait_for_function("() => window.viewer.player.number === 0")
    choose_error(page, "Car for Ped")
    release()
    page.wait_for_selector('#chosen h2:has-text("Car t2")')
    page.wait_for_timeout(500)
    seen = page.evaluate(READ, [BITS, BLOCK])
    assert 70 <= seen["frame"] == seen["number"] < 90
    assert page.evaluate("window.viewer.state.chosen.tube") == 2


def test_a_video_that_cannot_be_opened_says_so_and_can_be_tried_again(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=3&tab=videos")
    page.route("**/api/film?video=1", lambda route: route.fulfill(content_type="application/json", body="{"))
    page.locator(".row.video", has_text="two").click()
    page.wait_for_selector("#note:visible")
    page.unroute("**/api/film?video=1")
    page.locator(".row.video", has_text="two").click()
    page.wait_for_function("() => location.hash.includes('v=two')")
    page.wait_for_selector(READY)


def test_what_was_asked_of_the_former_video_is_not_done_to_the_next(
    sets: Path, viewed: Open, visit: Any
) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=3&tab=videos")
    # A seek that is under way, and one that waits for it.
    page.evaluate("window.viewer.player.seek(80); window.viewer.player.seek(60)")
    page.locator(".row.video", has_text="two").click()
    page.wait_for_function("() => location.hash.includes('v=two')")
    assert page.evaluate("[window.viewer.player.wanted, window.viewer.player.next]") == [None, None]
    page.keyboard.press("Home")
    page.keyboard.press("l")
    page.wait_for_function("() => window.viewer.player.frame > 3")
    page.keyboard.press("k")
    page.locator(".row.video", has_text="one").click()
    assert settle(page, 0)["number"] == 0
    page.wait_for_timeout(500)
    assert page.evaluate(READ, [BITS, BLOCK])["number"] == 0


def test_a_span_at_the_end_of_the_film_is_repeated(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=70&t=truth:t2")
    settle(page, 70)
    page.keyboard.press("o")
    assert page.evaluate("window.viewer.player.loop") == [70, 90]
    page.evaluate("""() => { const { player } = window.viewer; window.rounds = 0; let before = 0; const { show } = player;
        player.show = (frame) => { if (frame < before) window.rounds += 1; before = frame; show.call(player, frame); } }""")
    page.keyboard.press(" ")
    page.wait_for_function("() => window.rounds >= 2", timeout=30_000)
    assert page.evaluate("window.viewer.player.playing")
    # Faster while it starts: the start that is given up stops nothing.
    page.evaluate("window.viewer.player.play(1); window.viewer.player.play(2)")
    page.wait_for_timeout(500)
    assert page.evaluate("window.viewer.player.playing")
    page.keyboard.press("Escape")
    assert page.locator("#loop").get_attribute("aria-pressed") == "false"
    assert not page.locator("#note").is_visible()


def test_what_has_the_focus_keeps_it_where_its_list_is_filled_anew(
    sets: Path, viewed: Open, visit: Any
) -> None:
    client = viewed(sets / "truth", sets / "found")
    page = visit(client, "#v=one&f=30&tab=errors&kind=agent&t=truth:t0")
    focus = "() => [document.activeElement.tagName, document.activeElement.textContent || document.activeElement.value]"
    page.locator("#classes button", has_text="Car").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('#classes button[aria-pressed="false"]')
    assert page.evaluate(focus)[1].startswith("Car")
    page.keyboard.press("Enter")
    page.wait_for_selector(".row.error")
    page.locator('#list select[aria-label="Class"]').focus()
    page.locator('#list select[aria-label="Class"]').select_option("Car")
    page.wait_for_function("() => location.hash.includes('label=Car')")
    page.wait_for_selector(".row.error")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Class"
    page.locator(".verdicts button", has_text="right").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('.verdicts [aria-pressed="true"]')
    assert page.evaluate(focus) == ["BUTTON", "right"]
    # A note that is being written outlives the frames that come meanwhile.
    page.locator("#picture").focus()
    page.keyboard.press("n")
    page.keyboard.type("half hid")
    page.evaluate("window.viewer.player.seek(31)")
    settle(page, 31)
    page.keyboard.type("den")
    assert page.evaluate(focus) == ["INPUT", "half hidden"]
    page.keyboard.press("Tab")
    page.wait_for_timeout(400)
    assert [v["note"] for v in client.json("/api/verdicts?side=truth")] == ["half hidden"]


def test_tabs_are_gone_through_by_arrow_keys(sets: Path, viewed: Open, visit: Any) -> None:
    page = visit(viewed(sets / "truth", sets / "found"), "#v=one&f=30&tab=videos")
    settle(page, 30)
    page.locator('[data-tab="videos"]').focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"):
        page.keyboard.press(key)
        seen.append(page.evaluate("document.activeElement.dataset.tab"))
        assert page.locator('[role="tab"][aria-selected="true"]').get_attribute("data-tab") == seen[-1]
        assert page.locator('[role="tab"][tabindex="0"]').count() == 1
        assert page.locator("#list").get_attribute("aria-labelledby") == f"tab-{seen[-1]}"
    assert seen == ["errors", "found", "videos", "found", "found", "videos"]
    assert page.evaluate("window.viewer.player.frame") == 30  # and no frame was stepped
    page.locator("#score").focus()
    page.keyboard.press("End")
    assert page.locator("#score-value").inner_text() == "1.00"
    assert page.evaluate("window.viewer.player.frame") == 30


def test_verdicts_that_cannot_be_read_leave_the_lists(sets: Path, viewed: Open, visit: Any) -> None:
    client = viewed(sets / "truth", sets / "found")
    (sets / "found" / "verdicts.jsonl").mkdir()
    page = visit(client, "#v=one&f=30&tab=videos", ignores="status of 409")
    page.wait_for_selector(".row.video")
    assert "verdicts.jsonl: expected a regular file" in page.locator("#note").inner_text()


# Whether the header is one line high, and what of it stands outside of the page or on something else.
HEADER = """() => {
    const shown = [...document.querySelectorAll("header > *:not(.spring)")].filter((each) => each.getClientRects().length);
    const filled = shown.filter((each) => each.textContent);
    const places = filled.map((each) => [each.id || each.tagName, each.getBoundingClientRect()]);
    const faults = [];
    for (const [name, place] of places) {
        if (place.left < 0 || place.right > innerWidth + 0.5) faults.push(`${name} outside`);
        for (const [other, own] of places) {
            const both = Math.min(place.right, own.right) - Math.max(place.left, own.left);
            const tall = Math.min(place.bottom, own.bottom) - Math.max(place.top, own.top);
            if (name !== other && both > 0.5 && tall > 0.5) faults.push(`${name} on ${other}`);
        }
    }
    const lines = new Set(places.map(([, place]) => Math.round((place.top + place.bottom) / 24)));
    return { lines: lines.size, high: document.querySelector("header").offsetHeight, faults };
}"""


def test_the_header_is_one_line_from_1280_pixels_on(judged: Path, viewed: Open, visit: Any) -> None:
    page = visit(
        viewed(judged / "run", judged / "truth", judged / "found", judged / "other"), "#v=one&f=30&s=0"
    )
    page.wait_for_selector("#all-counts:not(:empty)")
    for width in (1920, 1440, 1366, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        seen = page.evaluate(HEADER)
        assert seen["faults"] == [], width
        assert seen["lines"] == 1, (width, seen)
        assert seen["high"] <= 52
    heights = []
    for width in (1279, 1100, 900, 720, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        seen = page.evaluate(HEADER)
        assert seen["faults"] == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heights.append(seen["high"])
    assert heights[0] <= 84  # two lines
    assert max(heights) <= 300
    # The classes go on to the right, and a key leads there.
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator("#counts").get_attribute("title") == page.locator("#counts").inner_text()


# How bright the canvas is around a place.
PATCH = """([x, y]) => {
    const { data } = window.viewer.player.canvas.getContext("2d").getImageData(x - 4, y - 4, 9, 9);
    let sum = 0;
    for (let k = 0; k < data.length; k += 1) sum += k % 4 === 3 ? 0 : data[k];
    return sum / 243;
}"""


def test_what_is_drawn_late_is_in_a_saved_clip(
    tmp_path: Path, numbered_film: Path, viewed: Open, visit: Any
) -> None:
    save(make_overlaid_truth(), tmp_path / "truth")
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "one.mp4").write_bytes(numbered_film.read_bytes())
    page = visit(viewed(tmp_path / "truth", media=[tmp_path / "films"]), "#v=one&f=5&t=truth:t0&on=relations")
    page.wait_for_selector('[data-layer="relations"]:visible')
    page.evaluate("window.viewer.lanes.chosenSpan = [24, 29]")
    release = hold_back(page, "**/api/layers*")
    page.evaluate("window.viewer.overlays.reset()")
    with page.expect_download(timeout=60_000) as waiting:
        page.keyboard.press("c")
        page.keyboard.press("c")
        page.wait_for_timeout(700)
        assert "Escape ends that" in page.locator("#note").inner_text()
        release()
    text = Path(waiting.value.path()).read_text("utf-8")
    facts = json.loads(text.partition('id="facts">')[2].partition("</script>")[0])
    assert len(facts["images"]) == 5
    ends = page.evaluate(
        """() => { const { player, overlays } = window.viewer; return overlays.drawn.length }"""
    )
    assert ends >= 0
    for place, data in enumerate(facts["images"]):
        with Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))) as image:
            shown = np.asarray(image.convert("RGB")).astype(int)
        page.evaluate("(frame) => window.viewer.player.seek(frame)", 24 + place)
        settle(page, 24 + place)
        page.evaluate("window.viewer.player.draw()")
        x, y = page.evaluate("window.viewer.overlays.drawn[0].middle.map(Math.round)")
        drawn = page.evaluate(PATCH, [x, y])
        page.keyboard.press("r")
        bare = page.evaluate(PATCH, [x, y])
        page.keyboard.press("r")
        saved = shown[y - 4 : y + 5, x - 4 : x + 5].mean()
        assert abs(saved - drawn) < 8 < 16 < abs(saved - bare), place
