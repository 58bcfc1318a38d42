"""Axe finds nothing to object to (WCAG 2, A and AA) in any kind of page, light and dark, on a desk and on a phone."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numbered import Open

from roadaware.analysis.quality import check
from roadaware.cli import main
from roadaware.demo_data import write_demo
from roadaware.demo_data.annotations import generate_annotation_rounds
from roadaware.reports.quality import render_quality_page
from roadaware.reports.watch_page import render_watch_page

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
UNFOLD = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="`pip install -e '.[dev]'` has playwright")
    pytest.importorskip("axe_playwright_python", reason="`pip install -e '.[dev]'` has axe-core")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no chromium at {CHROMIUM}; CHROMIUM says where it is")
    with api.sync_playwright() as playing:
        found = playing.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


def roadaware(*words: object) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*map(str, words), "-q"]) == 0


def make_road(folder: Path, judged: Path) -> Path:
    return judged / "run" / "report.html"


def make_comparison(folder: Path, judged: Path) -> Path:
    how = ("--truth", judged / "truth", "--predictions", judged / "other", "--resamples", 20)
    roadaware("evaluate", "road", *how, "-o", folder / "other")
    both = judged / "run", folder / "other"
    roadaware("compare", *both, "--resamples", 20, "--html", folder / "compared.html")
    return folder / "compared.html"


def make_several(folder: Path, judged: Path) -> Path:
    roadaware("report", judged / "run", judged / "run", "-o", folder / "several.html")
    return folder / "several.html"


def make_pedestrians(folder: Path, judged: Path) -> Path:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    rows = [f"{true},p{k // 4},v{k // 12},{60 - 5 * (k % 4)}" for k, true in enumerate(truth)]
    (folder / "samples.csv").write_text("\n".join(["truth,pedestrian,video,tte_frames", *rows]))
    scores = np.clip(0.3 + 0.4 * truth + rng.normal(0, 0.2, 120), 0, 1)
    (folder / "scores.csv").write_text("\n".join(f"{score:.4f}" for score in scores))
    given = ("--scores", folder / "scores.csv", "--samples", folder / "samples.csv", "--task", "action")
    page = folder / "pedestrians.html"
    roadaware("evaluate", "pedestrians", *given, "--resamples", 50, "--html", page)
    return page


def make_audit(folder: Path, judged: Path) -> Path:
    write_demo(folder / "jaad")
    roadaware("audit", "jaad", folder / "jaad", "--html", folder / "audit.html")
    return folder / "audit.html"


def make_check(folder: Path, judged: Path) -> Path:
    rounds = generate_annotation_rounds()
    text = render_quality_page(check(rounds.original, rounds.round1, rounds.round2))
    (folder / "check.html").write_text(text, "utf-8")
    return folder / "check.html"


def make_watch(folder: Path, judged: Path) -> Path:
    (folder / "video.mp4").write_bytes((judged / "films" / "one.mp4").read_bytes())

    def event(what: str, tube: int, frame: int, height: float, **more: object) -> dict[str, object]:
        box, labels = [0.0, 0.0, 50.0, height], {"agent": {"Ped": 0.8}}
        spans = {"frame": frame, "t_s": frame / 20, "first_frame": 0, "last_frame": frame}
        return {"event": what, "tube": tube, "labels": labels, "score": 0.7, "box": box, **spans, **more}

    events = [
        event("begin", 1, 5, 30.0),
        event("crossing_probable", 2, 20, 60.0, crossing={"smoothed": 0.8}),
        *(event("update", 3 + k, 40 + 25 * k, 120.0) for k in range(2)),
    ]
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    summary = {
        "source": "one.mp4",
        "frames": 90,
        "stream_s": 4.5,
        "tubes": 4,
        "events": 4,
        "source_fps": 20.0,
    }
    summary |= {"frames_of_source": 90, "width_px": 320, "height_px": 180, "files": ["video.mp4"]}
    summary |= {"config_digest": "0", "version": "1", "ended": {"reason": "end", "message": ""}}
    summary |= {"notice": "the detector learnt from synthetic images"}
    (folder / "report.html").write_text(render_watch_page(folder, summary), "utf-8")
    return folder / "report.html"


PAGES: dict[str, Callable[[Path, Path], Path]] = {
    "road": make_road,
    "comparison": make_comparison,
    "several": make_several,
    "pedestrians": make_pedestrians,
    "audit": make_audit,
    "check": make_check,
    "watch": make_watch,
}
_MADE: dict[str, Path] = {}


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, judged: Path) -> Iterator[Callable[[str], Path]]:
    def find(name: str) -> Path:
        if name not in _MADE:
            _MADE[name] = PAGES[name](tmp_path_factory.mktemp(name), judged)
        return _MADE[name]

    yield find
    _MADE.clear()


@contextlib.contextmanager
def opened(browser: Any, width: int, scheme: str) -> Iterator[Any]:
    """A page in which axe may run, whose own policy would refuse it; colours are judged at rest."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,
    )
    yield context.new_page()
    context.close()


def find_violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options=RULES).response
    assert len(found["passes"]) > 5, "axe looked at next to nothing"
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"][:3]
    ]


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    with opened(browser, 1280, "light") as page:
        page.set_content(
            "<html><body><img src='data:,'><p style='color:#ccc;background:#fff'>pale</p></body></html>"
        )
        found = " ".join(find_violations_of_any(page))
    assert "image-alt" in found
    assert "color-contrast" in found
    assert "html-has-lang" in found


def find_violations_of_any(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    return [each["id"] for each in Axe().run(page, options=RULES).response["violations"]]


CROSS = [(name, width, scheme) for name in PAGES for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        pytest.param(
            *each,
            marks=() if each == ("watch", 390, "dark") else pytest.mark.slow,
            id=" ".join(map(str, each)),
        )
        for each in CROSS
    ],
)
def test_reports_are_accessible(
    browser: Any, make: Callable[[str], Path], name: str, width: int, scheme: str
) -> None:
    path = make(name)
    with opened(browser, width, scheme) as page:
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(path.as_uri())
        assert find_violations(page) == []
        page.evaluate(UNFOLD)
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults == []


@pytest.mark.slow
def test_videos_of_pages_have_posters_and_play(browser: Any, make: Callable[[str], Path]) -> None:
    with opened(browser, 1280, "light") as page:
        page.goto(make("watch").as_uri())
        page.evaluate(UNFOLD)
        told = page.evaluate(
            """async () => {
                const found = [];
                for (const video of document.querySelectorAll("video")) {
                    const poster = new Image();
                    poster.src = video.poster;
                    await poster.decode();
                    video.muted = true;
                    await video.play();
                    found.push([poster.naturalWidth, video.videoWidth, video.duration]);
                }
                return found;
            }"""
        )
        assert len(told) == 4  # the film and three moments of it
        assert all(wide in (320, 480) and moving in (320, 480) for wide, moving, _ in told)
        assert all(0.5 < lasts <= 3.1 for _, _, lasts in told[1:])
        page.emulate_media(media="print")
        shown = "(each) => getComputedStyle(each).display"
        assert {each.evaluate(shown) for each in page.query_selector_all("video")} == {"none"}
        assert {each.evaluate(shown) for each in page.query_selector_all("img.paper")} == {"block"}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_viewer_is_accessible(judged: Path, viewed: Open, browser: Any, width: int, scheme: str) -> None:
    client = viewed(judged / "run", judged / "truth", judged / "found")
    with opened(browser, width, scheme) as page:
        page.goto(client.viewer.address + "#v=one&f=12")
        page.wait_for_selector('#picture[data-boxes]:not([data-boxes="0"])', timeout=30_000)
        assert find_violations(page) == []
        page.locator('[data-tab="errors"]').click()
        page.wait_for_selector(".row.error")
        assert find_violations(page) == []
