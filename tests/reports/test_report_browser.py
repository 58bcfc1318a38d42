"""A browser opens a report full of hostile names: nothing runs, nothing is fetched, and it prints."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_examples import audit, result, scenes, state

from roadaware.reports.audit import audit_section, build_data_section
from roadaware.reports.evaluation import build_evaluation_section, plot_evaluation, plot_story
from roadaware.reports.page import POLICY, report

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="no chromium here; `apt-get install chromium` brings one"),
]


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """The address of a server on this machine, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def _chromium(tmp_path: Path, page: str, *arguments: str) -> str:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000", *arguments]
    command.append((tmp_path / "page.html").as_uri())
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def _hostile(address: str) -> str:
    owned = "document.title='owned'"
    return f'"><img src="{address}/img" onerror="{owned}"><script>{owned};fetch("{address}/fetch")</script>'


def _page(text: str) -> str:
    of = state(6, prefix=text)
    found = result(of, groups=[f"scale={text}"] * len(of))
    pictures = plot_evaluation(of, found, name=text, labels=[text, text])
    pictures.append(plot_story(scenes(of), of))
    sections = [
        build_data_section(scenes(of, dataset=text)),
        build_evaluation_section(found, title=text, model=text, about={text: text}, pictures=pictures),
        audit_section(audit(text)),
    ]
    return report(sections, title="harmless")


def test_the_trap_works(tmp_path: Path, requests: tuple[str, list[str]]) -> None:
    address, asked = requests
    dom = _chromium(tmp_path, f"<title>harmless</title><p>{_hostile(address)}</p>", "--dump-dom")
    assert "<title>owned</title>" in dom
    assert asked


@pytest.mark.parametrize("policy", [True, False], ids=["with policy", "without policy"])
def test_nothing_runs_and_nothing_is_fetched(
    tmp_path: Path, requests: tuple[str, list[str]], policy: bool
) -> None:
    address, asked = requests
    page = _page(_hostile(address))
    if not policy:
        stripped = page.replace("Content-Security-Policy", "x-no-policy")
        assert stripped != page
        page = stripped
    assert POLICY.split(";")[0].split()[0] in page
    dom = _chromium(tmp_path, page, "--dump-dom")
    assert "<title>harmless</title>" in dom
    assert asked == []


def test_the_script_of_the_page_runs_under_its_policy(tmp_path: Path) -> None:
    dom = _chromium(tmp_path, _page("plain"), "--window-size=1280,800", "--dump-dom")
    assert dom.count('<button type="button">') > 10
    assert '<nav aria-label="Contents">\n<details open="">' in dom


def test_it_prints_on_paper(tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    _chromium(tmp_path, _page("plain"), f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert target.read_bytes().startswith(b"%PDF")
