"""`ra.show`: the page of tables in memory, in a frame of a page of this machine and of no other."""

from __future__ import annotations

import html
import http.server
import re
import sys
import threading
import types
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numbered import Client, make_predictions, make_truth
from test_viewer_page import CHROMIUM

import roadaware as ra
from roadaware.errors import InputError, UsageError
from roadaware.viewer import serve


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The addresses that a browser was opened with."""
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))
    addresses: list[str] = []
    monkeypatch.setattr(serve, "open_browser", addresses.append)
    yield addresses
    serve.close_shown()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def frame_of(shown: Any) -> str:
    found = re.search(r'<iframe src="([^"]+)"', shown._repr_html_())
    assert found
    return html.unescape(found[1])


def test_sets_in_memory_are_shown_and_nothing_is_written(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ra.show(make_truth(), make_predictions(), "one", 30)
    assert opened == [shown.address]
    assert shown.address.endswith("#v=one&f=30")
    assert shown.address in repr(shown)
    client = Client(shown._viewer)
    told = client.json("/api/index")
    assert list(told["sides"]) == ["truth", "a"]
    assert client.json("/api/boxes?video=0&first=30&end=31")["a"]["tube"] == [0, 1, 3]
    assert client.json("/api/counts?hundredth=65")["a"]["passed"] == 160
    verdict = {
        "side": "a",
        "video": "one",
        "tube": 0,
        "box": None,
        "frame": 3,
        "verdict": "right",
        "note": "",
    }
    status, said = client.post("/api/verdicts", verdict)
    assert (status, "save the dataset" in said["error"]) == (422, True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    shown.close()
    assert shown.closed
    assert "closed" in repr(shown)
    assert "<iframe" not in shown._repr_html_()
    shown.wait()


def test_paths_and_several_predictions_are_shown(sets: Path, notebook: None, opened: list[str]) -> None:
    shown = ra.show(sets / "truth", [str(sets / "found"), sets / "other"], media=sets / "films")
    assert opened == []
    client = Client(shown._viewer)
    assert list(client.json("/api/index")["sides"]) == ["truth", "a", "b"]
    assert client.json("/api/film?video=0")["state"] == "ready"
    three = ra.show(make_truth(), [make_predictions(), make_predictions(shift=9)], media=[sets])
    assert Client(three._viewer).json("/api/film?video=0")["state"] == "ready"


def test_what_cannot_be_shown_is_said(sets: Path) -> None:
    for given, said in (
        ((3,), "not int"),
        ((make_truth(), [4]), "not int"),
        ((make_truth(), sets / "found"), "not both"),
        ((make_truth(), make_truth()), "one set of ground truth"),
        ((make_truth(), None, "three"), "there are one, two"),
        ((make_truth(), None, "one", -1), "whole number"),
        ((make_truth(), None, "one", True), "whole number"),
    ):
        with pytest.raises(UsageError, match=said):
            ra.show(*given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such file"):
        ra.show(make_truth(), media="nothing.mp4")


def test_old_pages_are_closed_where_cells_are_run_again(notebook: None) -> None:
    shown = [ra.show(make_truth()) for _ in range(10)]
    assert [each.closed for each in shown] == [True, True] + [False] * 8


def test_results_show_themselves(notebook: None) -> None:
    truth, found = make_truth(), make_predictions()
    result = ra.Result(None, "road", None, found, truth, None)  # type: ignore[arg-type]
    shown = result.show("two", 4)
    assert shown.address.endswith("#v=two&f=4")
    kinds = Client(shown._viewer).json("/api/index")["error_kinds"]
    assert "agent" in kinds
    bare = truth.with_tables(boxes=truth.boxes.clear()), found.with_tables(boxes=found.boxes.clear())
    with pytest.raises(UsageError, match="no boxes to look at"):
        ra.Result(None, "pedestrians", None, bare[1], bare[0], None).show()  # type: ignore[arg-type]


def test_a_frame_needs_the_token_in_its_path(notebook: None, viewed: Any, sets: Path) -> None:
    shown = ra.show(make_truth())
    client, token = Client(shown._viewer), shown._viewer.token
    inside = f"/frame/{token}"
    framing = {"sec_fetch_site": "cross-site", "sec_fetch_dest": "iframe", "sec_fetch_mode": "navigate"}
    status, headers, body = client.ask(f"{inside}/", known=False, **framing)
    assert status == 200
    assert b"<h1>roadaware</h1>" in body
    assert b'="/' not in body, "addresses that begin at the root lack the token"
    assert "x-frame-options" not in headers
    assert "set-cookie" not in headers
    policy = headers["content-security-policy"]
    ancestors = policy.partition("frame-ancestors ")[2].split()
    assert sorted(ancestors) == sorted(
        f"{way}://{name}:*" for way in ("http", "https") for name in ("127.0.0.1", "localhost")
    )
    assert "unsafe" not in policy
    for path in ("/static/main.js", "/api/index", "/api/boxes?video=0&first=0&end=9"):
        assert client.ask(inside + path, known=False, sec_fetch_site="same-origin")[0] == 200
        assert client.ask(inside + path, known=False, **framing)[0] == 403
        assert client.ask(inside + path, known=False, origin="http://localhost:1")[0] == 403
        assert client.ask(inside + path, known=False, host="evil.example")[0] == 400
        assert client.ask(path, known=False)[0] == 403
    for change in (
        {"sec_fetch_dest": "document"},
        {"sec_fetch_dest": "script"},
        {"sec_fetch_dest": "object"},
        {"sec_fetch_mode": "no-cors"},
    ):
        assert client.ask(f"{inside}/", known=False, **(framing | change))[0] == 403
    for wrong in (
        "",
        "x",
        token[:-1],
        token + "x",
        token.swapcase(),
        "%2e%2e",
        "..",
        "\u00e4".encode().hex(),
    ):
        assert client.ask(f"/frame/{wrong}/", known=False, **framing)[0] == 403
        assert client.ask(f"/frame/{wrong}/api/index", known=False)[0] == 403
    for way in ("/static/..%2f..%2fserve.py", "//etc/passwd", "/static/../../etc/passwd", "/film/..%2fx"):
        assert client.ask(inside + way, known=False)[0] in (400, 404, 409, 422)
    body = b'{"clip": "0"}'
    assert client.ask(f"{inside}/api/clips/cancel", "POST", body, known=False)[0] == 422
    assert client.ask(f"{inside}/api/clips/cancel", "POST", body, known=False, origin=None)[0] == 403
    assert (
        client.ask(f"{inside}/api/clips/cancel", "POST", body, known=False, origin="http://localhost:1")[0]
        == 403
    )
    # Outside of the frame, and from a viewer that was not made for one, nothing of this holds.
    assert client.ask("/", **framing)[0] == 403
    assert client.ask("/")[1]["x-frame-options"] == "DENY"
    plain = viewed(sets / "truth")
    assert plain.ask(f"/frame/{plain.viewer.token}/", known=False)[0] == 403
    assert plain.ask(f"/frame/{plain.viewer.token}/")[0] == 404


class _Embedding(http.server.BaseHTTPRequestHandler):
    """A page at another port, as that of a notebook, with what a cell gave."""

    cell = ""

    def do_GET(self) -> None:
        data = f"<!doctype html><title>notebook</title>{self.cell}".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def page_of_a_notebook() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Embedding) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "notebook.example"])
def test_pages_of_this_machine_alone_show_it_in_a_frame(
    sets: Path, notebook: None, page_of_a_notebook: int, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="`pip install -e '.[dev]'` has playwright")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no chromium at {CHROMIUM}; CHROMIUM says where it is")
    shown = ra.show(sets / "truth", sets / "found", "one", 30)
    monkeypatch.setattr(_Embedding, "cell", shown._repr_html_())
    # Names are looked up nowhere; one that is not this machine's leads to the same page.
    arguments = ["--host-resolver-rules=MAP notebook.example 127.0.0.1", "--test-third-party-cookie-phaseout"]
    with api.sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page()
        faults: list[str] = []
        told: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: told.append(message.text))
        page.goto(f"http://{host}:{page_of_a_notebook}/")
        if host == "notebook.example":
            page.wait_for_timeout(1500)
            assert page.frames[1].url.startswith("chrome-error:")
            assert any("frame-ancestors" in words for words in told), told
        else:
            inner = page.frame_locator("iframe")
            inner.locator('#picture[data-frame="30"]:not([data-boxes="0"])').wait_for(timeout=60_000)
            frame = page.frames[1]
            number = frame.evaluate("window.viewer.player.film.state")
            assert number == "ready"
            inner.locator("#picture").press(".")
            inner.locator('#picture[data-frame="31"]').wait_for(timeout=30_000)
            assert frame.evaluate("document.cookie") == ""
            assert faults == []
        # What is in the frame is not readable from outside.
        assert (
            page.evaluate(
                "() => { try { return document.querySelector('iframe').contentDocument } catch { return null } }"
            )
            is None
        )
        browser.close()
    with urllib.request.urlopen(frame_of(shown), timeout=30) as answer:  # noqa: S310, an address of ours
        assert answer.status == 200
