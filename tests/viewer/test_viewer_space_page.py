"""The sweep in a browser: from above and in space, and one selection for image and sweep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numbered import Client, Open
from swept import propose, write_swept_kitti

pytestmark = pytest.mark.slow
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
VIDEO = "training/000002"
LIT = """(id) => {
    const canvas = document.getElementById(id);
    const copy = document.createElement("canvas");
    Object.assign(copy, { width: canvas.width, height: canvas.height });
    const pen = copy.getContext("2d");
    pen.drawImage(canvas, 0, 0);
    const data = pen.getImageData(0, 0, copy.width, copy.height).data;
    let lit = 0;
    for (let k = 0; k < data.length; k += 4) lit += data[k] + data[k + 1] + data[k + 2] > 120 ? 1 : 0;
    return lit;
}"""
# Where the middle of the outline of a shape is, in pixels of the page.
MIDDLE = """([id, side]) => {
    const { space } = window.viewer;
    const shape = space.shapes.find((each) => each.target && each.target.side === side && each.outline);
    const box = document.getElementById(id).getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const mean = (axis) => shape.outline.reduce((sum, each) => sum + each[axis], 0) / shape.outline.length / ratio;
    return [box.left + mean(0), box.top + mean(1), shape.target.box];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="`pip install -e '.[dev]'` has playwright")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no chromium at {CHROMIUM}; CHROMIUM says where it is")
    with api.sync_playwright() as playing:
        found = playing.chromium.launch(executable_path=CHROMIUM, args=["--enable-unsafe-swiftshader"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("swept")
    kitti = write_swept_kitti(root / "kitti")
    propose(kitti, root / "near", "--set", "max_distance_m=12")
    return root


@pytest.fixture
def client(swept: Path, viewed: Open) -> Client:
    return viewed(swept / "near", swept / "kitti")


@pytest.fixture
def visit(browser: Any, client: Client) -> Iterator[Any]:
    faults: list[str] = []
    asked: list[str] = []
    contexts: list[Any] = []

    def go(fragment: str, before: str = "", **context: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1400, "height": 850}, **context}))
        page = contexts[-1].new_page()
        if before:
            page.add_init_script(before)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(client.viewer.address + fragment)
        page.wait_for_selector('#picture[data-boxes]:not([data-boxes="0"])', timeout=30_000)
        return page

    yield go
    assert faults == []
    assert [url for url in asked if not url.startswith(f"http://127.0.0.1:{client.viewer.port}/")] == []
    for context in contexts:
        context.close()


def test_a_box_is_selected_in_image_and_sweep_alike(visit: Any) -> None:
    page = visit(f"#v={VIDEO}")
    page.keyboard.press("v")
    page.wait_for_selector('#bird[data-frame="0"]:not([data-points="0"])')
    assert page.evaluate(LIT, "bird") > 500
    for canvas in ("bird", "cloud"):
        if canvas == "cloud":
            page.keyboard.press("v")
            page.wait_for_selector('#cloud[data-frame="0"]:not([data-points="0"])')
            assert page.evaluate(LIT, "cloud") > 2000
        for side in ("truth", "a"):
            page.keyboard.press("Escape")
            x, y, box = page.evaluate(MIDDLE, [canvas, side])
            page.mouse.click(x, y)
            chosen = page.evaluate("window.viewer.state.chosen")
            assert chosen["side"] in ("truth", "a")
            if side == "truth":
                # A proposal may lie before what it is around.
                page.evaluate("(box) => window.viewer.state.choose({ side: 'truth', tube: null, box })", box)
            assert page.locator("#chosen h2").inner_text().startswith("box")
            assert page.evaluate("window.viewer.space.shapes.filter((shape) => shape.selected).length") == 1
    # From the image to the sweep.
    page.keyboard.press("Escape")
    assert page.evaluate("window.viewer.space.shapes.some((shape) => shape.selected)") is False
    place = page.evaluate(
        """() => { const { player } = window.viewer; const hit = player.hits.find((each) => each.side === "a");
        const box = player.canvas.getBoundingClientRect(); const [x, y, w, h] = hit.place;
        const ratio = window.devicePixelRatio || 1;
        return [box.left + (x + w / 2) / ratio, box.top + (y + h / 2) / ratio]; }"""
    )
    page.mouse.click(*place)
    assert page.evaluate("window.viewer.space.shapes.filter((shape) => shape.selected).length") == 1


def test_keys_alone_turn_move_zoom_and_select(visit: Any) -> None:
    page = visit(f"#v={VIDEO}&p=cloud,height")
    page.wait_for_selector('#cloud[data-frame="0"]:not([data-points="0"])')
    page.locator("#cloud").focus()
    state = "() => JSON.stringify(window.viewer.space.orbit)"
    for key in ("ArrowLeft", "ArrowUp", "+", "Shift+ArrowLeft"):
        before = page.evaluate(state)
        page.keyboard.press(key)
        assert page.evaluate(state) != before, key
    page.keyboard.press("0")
    page.keyboard.press("]")
    first = page.evaluate("window.viewer.state.chosen")
    page.keyboard.press("]")
    assert page.evaluate("window.viewer.state.chosen") != first
    page.keyboard.press("[")
    assert page.evaluate("window.viewer.state.chosen") == first
    page.mouse.move(*page.evaluate(MIDDLE, ["cloud", "truth"])[:2])
    before = page.evaluate(state)
    page.mouse.down()
    page.mouse.move(900, 300, steps=4)
    page.mouse.up()
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(200)
    assert page.evaluate(state) != before
    assert "p=cloud%2Cheight" in page.evaluate("location.hash")


def test_the_list_of_steps_opens_the_cluster_that_was_dropped(visit: Any) -> None:
    page = visit("#v=training/000000")
    page.locator('[data-tab="lost"]').click()
    page.locator(".chips button", has_text="too far").click()
    page.locator(".row", has_text=f"{VIDEO}, frame 0").first.click()
    page.wait_for_function("() => window.viewer.space.cluster !== null", timeout=20_000)
    assert page.evaluate("window.viewer.player.name") == VIDEO
    assert "too far" in page.locator("#space .said").inner_text()
    assert page.evaluate("window.viewer.space.shapes.filter((shape) => shape.selected).length") == 1
    white = """() => { const { data, cluster } = window.viewer.space; let own = 0, lit = 0;
        for (let k = 0; k < data.count; k += 1) if (data.cluster[k] === cluster) {
            own += 1;
            lit += data.colours[4 * k] === 255 && data.colours[4 * k + 2] === 255;
        }
        return [own, lit]; }"""
    own, lit = page.evaluate(white)
    assert own == lit > 4
    rows = page.locator(".row.event", has_text="Misc")
    assert rows.count() == 2
    assert "too far" in rows.nth(1).inner_text()
    rows.nth(1).click()
    page.wait_for_function("() => window.viewer.state.chosen && window.viewer.state.chosen.side === 'truth'")


def test_without_webgl_the_view_from_above_is_shown_with_a_sentence(visit: Any) -> None:
    lacking = """const own = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return kind === "webgl2" ? null : own.call(this, kind, ...rest);
        };"""
    page = visit(f"#v={VIDEO}", before=lacking)
    page.keyboard.press("v")
    page.keyboard.press("v")
    page.wait_for_selector('#bird[data-frame="0"]:not([data-points="0"])')
    assert "no WebGL 2" in page.locator("#space .said").inner_text()
    assert page.locator("#bird").is_visible()
    page.keyboard.press("v")
    assert page.locator("#space").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(visit: Any, scheme: str) -> None:
    page = visit(f"#v={VIDEO}&p=bird,step", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.wait_for_selector('#bird[data-frame="0"]:not([data-points="0"])')
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(LIT, "bird") > 200
