"""The viewer on large runs: 10,000 videos, 10 million boxes, 2,000 tubes in the lanes, 60 boxes at 60 frames a second, 4K.

`python -m benchmarks --only viewer_` measures all of them, each with a server in a process of its own; those of the page need
playwright and chromium (CHROMIUM says where it is), and say so where there is none. `python -m benchmarks.viewer make FOLDER`
writes the runs alone.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from roadaware.io.video import VideoWriter
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
_CLASSES = ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL")
_READY = '#picture[data-boxes]:not([data-boxes="0"])'
_SEEKS = 40


def make_set(
    videos: int,
    tubes: int,
    length: int,
    *,
    predicted: bool,
    size: tuple[int, int] = (1280, 720),
    n_frames: int = 600,
    fps: float = 30.0,
    seed: int = 0,
) -> Scenes | Predictions:
    """Boxes that slide through videos.

    Args:
        videos: how many.
        tubes: in each video.
        length: of each tube in frames.
        predicted: whether they have scores.
        size: of the images.
        n_frames, fps: of the videos.
        seed: of the places.
    """
    rng = np.random.default_rng(seed)
    total = videos * tubes
    names = [f"drive_{number:05d}" for number in range(videos)]
    start = rng.integers(0, max(1, n_frames - length + 1), total)
    left, top = rng.integers(0, size[0] - 120, total), rng.integers(0, size[1] - 120, total)
    side, score = rng.integers(20, 110, total), rng.beta(2, 1.5, total)
    tube = np.repeat(np.arange(total), length)
    place = np.tile(np.arange(length), total)
    frame = start[tube] + place
    order = np.lexsort((tube, frame, tube // tubes))
    tube, place, frame = tube[order], place[order], frame[order]
    x, y = left[tube] + 0.5 * (place % 200), top[tube]
    columns: dict[str, Any] = {
        "box": np.arange(len(tube)),
        "video": pl.Series(tube // tubes).replace_strict(
            list(range(videos)), names, return_dtype=pl.Enum(names)
        ),
        "frame": frame,
        "tube": tube,
        **{
            name: edge.astype(np.float32)
            for name, edge in zip(
                ("x1_px", "y1_px", "x2_px", "y2_px"), (x, y, x + side[tube], y + side[tube]), strict=True
            )
        },
    }
    facts: dict[str, Any] = {
        "tube": np.arange(total),
        "video": np.repeat(names, tubes),
        "name": [f"t{number}" for number in range(total)],
        "start_frame": start,
        "end_frame": start + length,
    }
    labels: dict[str, Any] = {
        "tube": np.arange(total),
        "kind": ["agent"] * total,
        "label": rng.integers(0, len(_CLASSES), total),
    }
    if predicted:
        columns["score"] = np.clip(score[tube] + rng.normal(0, 0.05, len(tube)), 0, 1).astype(np.float32)
        facts["score"] = labels["score"] = score
    rows = pl.DataFrame(
        {
            "video": names,
            "width_px": size[0],
            "height_px": size[1],
            "fps": fps,
            "n_frames": n_frames,
            "path": [f"films/{name}.mp4" for name in names],
        }
    )
    kind = Predictions if predicted else Scenes
    return kind(
        videos=rows,
        boxes=pl.DataFrame(columns),
        tubes=pl.DataFrame(facts),
        tube_labels=pl.DataFrame(labels),
        meta=Meta(vocabularies={"agent": _CLASSES}),
    )


def write_film(path: Path, size: tuple[int, int], fps: float, count: int) -> None:
    """A film of moving stripes and noise, so that it has something to decode."""
    rng = np.random.default_rng(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    ground = rng.integers(60, 120, (size[1], size[0] * 2, 3), dtype=np.uint8)
    with VideoWriter(path, *size, fps) as film:
        for number in range(count):
            shift = 3 * number % size[0]
            film.write(np.ascontiguousarray(ground[:, shift : shift + size[0]]))


@functools.cache
def _scratch() -> Path:
    """A folder that is gone with this process."""
    holder = tempfile.TemporaryDirectory(prefix="roadaware-benchmark-")
    _HOLDERS.append(holder)
    return Path(holder.name)


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def _run(kind: str) -> Path:
    """The run of a benchmark, made when it is first asked for."""
    root = _scratch() / kind
    if (
        kind == "thousand"
    ):  # 1,000 videos, 10 million predicted boxes; as many true ones are made where they are asked for
        save(make_set(1000, 100, 100, predicted=True), root / "found")
        write_film(root / "films" / "drive_00000.mp4", (1280, 720), 30, 300)
    elif kind == "many":
        save(make_set(10_000, 4, 25, predicted=True), root / "found")
    elif kind == "lanes":  # 2,000 tubes in an hour of one video
        save(make_set(1, 1000, 300, predicted=True, n_frames=36_000), root / "found")
        save(make_set(1, 1000, 300, predicted=False, n_frames=36_000), root / "truth")
    elif kind == "crowd":  # 60 boxes in every frame
        save(make_set(1, 60, 600, predicted=True, fps=60.0), root / "found")
        write_film(root / "films" / "drive_00000.mp4", (1280, 720), 60, 600)
    else:
        save(make_set(1, 60, 150, predicted=True, size=(3840, 2160), n_frames=150), root / "found")
        write_film(root / "films" / "drive_00000.mp4", (3840, 2160), 30, 150)
    return root


@contextmanager
def _serving(*paths: Path) -> Iterator[tuple[str, psutil.Process, float]]:
    """The command in a process of its own: its address, its process, and seconds until the address was printed."""
    begun = time.perf_counter()
    words = [sys.executable, "-m", "roadaware", "view", *map(str, paths), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        try:
            yield address, psutil.Process(running.pid), time.perf_counter() - begun
        finally:
            running.terminate()
            running.wait(30)


class _Asker:
    """Asks a viewer as its page does."""

    def __init__(self, address: str) -> None:
        home, _, token = address.removeprefix("http://").partition("/?token=")
        self._home = home
        self._headers = {"Cookie": f"roadaware-{home.rpartition(':')[2]}={token}"}

    def __call__(self, path: str) -> tuple[Any, float]:
        """What is answered, and milliseconds until it was there."""
        begun = time.perf_counter()
        with contextlib.closing(http.client.HTTPConnection(self._home, timeout=300)) as connection:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {data[:500]!r}")
        return json.loads(data), 1e3 * (time.perf_counter() - begun)


def _peak_mb(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def viewer_index() -> tuple[str, str, str]:
    """Ten million boxes of 1,000 videos: gone through once, then opened with what was kept."""
    root = _run("thousand")
    with _serving(root / "found") as (address, process, _):
        before = _cpu_s(process)
        _, first = _Asker(address)("/api/counts?hundredth=30")
        worked, peak = _cpu_s(process) - before, _peak_mb(process)
    with _serving(root / "found") as (address, process, seconds):
        _, again = _Asker(address)("/api/counts?hundredth=30")
        after = _peak_mb(process)
    got = (
        f"gone through in {first / 1e3:.1f} s ({worked:.1f} s of CPU), {peak:.0f} MB; "
        f"with the kept index {again:.0f} ms, {after:.0f} MB, "
        f"command to address {seconds:.1f} s"
    )
    return "viewer: index of 10 million boxes, made and kept; memory of the server", "500 MB", got


def viewer_answers() -> tuple[str, str, str]:
    """What the page asks of a run of ten million boxes, without a browser: medians of 20."""
    with _serving(_run("thousand") / "found") as (address, process, _):
        ask = _Asker(address)
        ask("/api/counts?hundredth=30")
        asked = {
            "counts": "/api/counts?hundredth={}&hide=Car",
            "video": "/api/video?video={}",
            "window of boxes": "/api/boxes?video={}&first=128&end=256",
        }
        middle, worked = {}, {}
        for what, path in asked.items():
            before = _cpu_s(process)
            middle[what] = sorted(ask(path.format(number))[1] for number in range(20))[10]
            worked[what] = 1e3 * (_cpu_s(process) - before) / 20
        peak = _peak_mb(process)
    got = (
        ", ".join(f"{what} {ms:.0f} ms ({worked[what]:.0f} of CPU)" for what, ms in middle.items())
        + f"; {peak:.0f} MB"
    )
    return "viewer: filters over 10 million boxes, a video, a window (server alone)", "300 ms", got


def viewer_filters() -> tuple[str, str, str]:
    """Conditions on two sets of ten million boxes: the first of a column, a further one beside it, the same again."""
    root = _run("thousand")
    if not (root / "truth").exists():
        save(make_set(1000, 100, 100, predicted=False, seed=1), root / "truth")
    asked = {
        "size": ("boxes.height", ">="),
        "column": ("boxes.frame", "<"),
        "tube": ("tubes.start_frame", ">="),
    }
    with _serving(root / "truth", root / "found") as (address, process, _):
        ask = _Asker(address)
        ask("/api/counts?hundredth=30")

        def count(*conditions: tuple[str, str, int]) -> float:
            return ask(f"/api/count?where={urllib.parse.quote(json.dumps(conditions))}")[1]

        middle = {
            what: sorted(count((*each, value)) for value in range(40, 49))[4] for what, each in asked.items()
        }
        held = ("boxes.height", ">=", 60)
        count(held)
        middle["one more"] = sorted(count(held, ("boxes.frame", "<", value)) for value in range(300, 309))[4]
        middle["again"] = sorted(count(held) for _ in range(9))[4]
        peak = _peak_mb(process)
    got = ", ".join(f"{what} {ms:.0f} ms" for what, ms in middle.items()) + f"; {peak:.0f} MB"
    return "viewer: filters by columns over two sets of 10 million boxes", "300 ms", got


def viewer_many_videos() -> tuple[str, str, str]:
    """10,000 videos: what the page is told first."""
    with _serving(_run("many") / "found") as (address, process, _):
        found, first = _Asker(address)("/api/index")
        assert len(found["videos"]["name"]) == 10_000
        _, counts = _Asker(address)("/api/counts?hundredth=30")
        peak = _peak_mb(process)
    got = f"list {first:.0f} ms, counts with an index that is made {counts:.0f} ms; {peak:.0f} MB"
    return "viewer: 10,000 videos in the list", "1,500 ms", got


# In the browser.


@contextmanager
def _visiting(address: str, fragment: str = "") -> Iterator[tuple[Any, float]]:
    """The page, and milliseconds from asking for it until a frame stands there with its boxes."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto("about:blank")
        begun = time.perf_counter()
        page.goto(address + fragment, wait_until="commit")
        page.wait_for_selector(_READY, timeout=120_000)
        yield page, 1e3 * (time.perf_counter() - begun)
        browser.close()


def _describe_seeks(took: list[float]) -> str:
    took = sorted(took)
    return f"median {took[len(took) // 2]:.0f} ms, worst {took[-1]:.0f} ms"


# Seeks to a frame, and answers once it stands on the canvas with its boxes.
_SEEK = """async (frame) => {
    const { player } = window.viewer;
    const begun = performance.now();
    player.seek(frame);
    while (player.frame !== frame || player.wanted !== null || Number(player.canvas.dataset.boxes) === 0) {
        await new Promise((done) => requestAnimationFrame(done));
        if (performance.now() - begun > 20000) return -1;
    }
    return performance.now() - begun;
}"""

# Milliseconds of script that one picture takes, and pictures a second, while something is changed for each of them.
_PACE = """async ([kind, seconds]) => {
    const { player, lanes } = window.viewer;
    let drawn = 0, spent = 0;
    const timed = (owner, name) => {
        const draw = owner[name].bind(owner);
        owner[name] = () => { const begun = performance.now(); draw(); spent += performance.now() - begun; drawn += 1; };
    };
    if (kind === "lanes") timed(lanes, "drawNow"); else timed(player, "draw");
    const shown = new Set();
    const begun = performance.now();
    let frames = 0;
    if (kind === "play") player.play(1);
    while (performance.now() - begun < 1000 * seconds) {
        await new Promise((done) => requestAnimationFrame(done));
        frames += 1;
        if (kind === "lanes") {
            const count = player.count, size = count / (1 + (frames % 40) / 10);
            const from = (count - size) * ((frames * 7) % 100) / 100;
            lanes.range = [from, from + size];
            lanes.draw();
        }
        if (kind === "play") shown.add(player.frame);
    }
    player.stop();
    const took = (performance.now() - begun) / 1000;
    return { pictures: drawn / took, ms: spent / Math.max(1, drawn), shown: shown.size / took, screens: frames / took };
}"""


def _without_browser() -> str | None:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "not measured: no playwright"
    return None if Path(CHROMIUM).exists() else f"not measured: no chromium at {CHROMIUM}"


def _in_browser(what: str, bar: str) -> Callable[[Callable[[], str]], Callable[[], tuple[str, str, str]]]:
    """A benchmark of the page, with what it measures and its bar; it says so where there is no browser."""

    def decorate(measure: Callable[[], str]) -> Callable[[], tuple[str, str, str]]:
        @functools.wraps(measure)
        def benchmark() -> tuple[str, str, str]:
            return what, bar, _without_browser() or measure()

        return benchmark

    return decorate


@contextmanager
def _looking(kind: str, *sets: str, fragment: str) -> Iterator[tuple[Any, float, float]]:
    """The page on sets of a run: milliseconds until a frame stands there, and seconds until the command had its address."""
    root = _run(kind)
    with (
        _serving(*(root / name for name in sets)) as (address, _, seconds),
        _visiting(address, fragment) as (page, ms),
    ):
        yield page, ms, seconds


def _time_filling(page: Any, field: str, text: str, until: str, given: str | None) -> float:
    """Milliseconds from filling a field until the page says so."""
    begun = time.perf_counter()
    page.locator(field).fill(text)
    page.wait_for_function(until, arg=given)
    return 1e3 * (time.perf_counter() - begun)


def _play(kind: str, frames: int, tries: int, seconds: float) -> str:
    """What seeks in a film with its boxes take, and how it plays."""
    with _looking(kind, "found", fragment="#s=0&f=20") as (page, ms, _):
        seeks = [page.evaluate(_SEEK, 37 * number % frames) for number in range(1, tries)]
        page.evaluate(_SEEK, 0)
        found = page.evaluate(_PACE, ["play", seconds])
    return (
        f"first picture {ms / 1e3:.2f} s; {found['shown']:.0f} frames a second shown, {found['ms']:.1f} ms of script each "
        f"({found['screens']:.0f} screens a second); seeks: {_describe_seeks(seeks)}"
    )


@_in_browser("viewer: first picture of a run of 1,000 videos and 10 million boxes", "1.5 s")
def viewer_first_picture() -> str:
    """1,000 videos, 10 million boxes, the index kept: from the command, and from the page, to a frame with its boxes."""
    with _serving(_run("thousand") / "found") as (address, _, _):
        _Asker(address)("/api/counts?hundredth=30")
    with _looking("thousand", "found", fragment="#f=100") as (page, ms, seconds):
        page.wait_for_function("window.viewer.tallies.took > 0")
        slid = []
        for value in ("0.5", "0.7", "0.2", "0.9", "0.4"):
            before = page.locator("#all-counts").get_attribute("data-key")
            shown = "(key) => document.getElementById('all-counts').dataset.key !== key"
            slid.append(_time_filling(page, "#score", value, shown, before))
    return (
        f"{ms / 1e3:.2f} s from the page on, {seconds:.1f} s from the command to the address; "
        f"threshold moved to counts shown {sorted(slid)[2]:.0f} ms (bar 300)"
    )


@_in_browser("viewer: lanes of 2,000 tubes", "30 a second")
def viewer_lanes() -> str:
    """2,000 tubes on the time line, zoomed and moved for each picture of the screen."""
    with _looking("lanes", "truth", "found", fragment="#s=0&f=3000") as (page, _, _):
        found = page.evaluate(_PACE, ["lanes", 5])
    return f"{found['pictures']:.0f} a second, {found['ms']:.1f} ms of script each"


@_in_browser("viewer: 60 boxes at 1280x720, 60 frames a second; seeking", "60 a second; 150 ms")
def viewer_playing() -> str:
    """60 boxes with tails and names in each frame of a film of 1280x720 at 60 frames a second."""
    return _play("crowd", 600, _SEEKS, 5)


@_in_browser("viewer: 4K at 30 frames a second; seeking", "none")
def viewer_uhd() -> str:
    """60 boxes on a film of 3840x2160 at 30 frames a second."""
    return _play("uhd", 150, _SEEKS // 2, 4)


@_in_browser("viewer: 10,000 videos, from the page to the list and a frame", "none")
def viewer_long_list() -> str:
    """10,000 videos, the index kept: until a frame stands there, and until the list is narrowed down by a search."""
    with _serving(_run("many") / "found") as (address, _, _):
        _Asker(address)("/api/counts?hundredth=30")
    with _looking("many", "found", fragment="#f=160&s=0&tab=videos") as (page, ms, _):
        page.wait_for_selector(".row.video")
        took = []
        for name in ("drive_09", "drive_0999", "drive_012"):
            listed = "(name) => document.querySelector('.row.video b').textContent.startsWith(name)"
            took.append(_time_filling(page, '#list input[type="search"]', name, listed, name))
    return f"{ms / 1e3:.2f} s to the frame; search to list {sorted(took)[1]:.0f} ms"


BENCHMARKS = (
    viewer_index,
    viewer_answers,
    viewer_filters,
    viewer_many_videos,
    viewer_long_list,
    viewer_first_picture,
    viewer_lanes,
    viewer_playing,
    viewer_uhd,
)

if __name__ == "__main__":
    if sys.argv[1:2] != ["make"] or len(sys.argv) != 3:
        sys.exit(__doc__)
    _scratch = lambda: Path(sys.argv[2])  # type: ignore[assignment]  # noqa: E731
    for each in ("thousand", "many", "lanes", "crowd", "uhd"):
        print(_run(each))
