"""Film the viewer in use: `python docs/viewer_film.py` writes docs/images/viewer.webp, of simulated scenes alone.

From a number to a verdict: metrics, classes, errors, the frame with its tube, the time line, a verdict. It needs playwright
and chromium (CHROMIUM says where it is); the page is driven by mouse and keys alone, and each image is the page as it was.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

from roadaware import api
from roadaware.cli import main
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.io.decoders import open_picture
from roadaware.io.files import write_atomically
from roadaware.scenes.store import save
from roadaware.viewer.opening import open_paths
from roadaware.viewer.serve import Viewer

TARGET = Path(__file__).parent / "images/viewer.webp"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PAGE, WIDTH, BAND = (1100, 740), 960, 34
MOST_BYTES = 1_500_000
FPS = 8
STEPS = ("metrics", "class", "error", "frame", "tube", "verdict")
ARROW = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))
READY = '#picture[data-boxes]:not([data-boxes="0"])'


def make_sets(root: Path) -> list[Path]:
    """Simulated drives, what a simulated detector found in them and linked, and the evaluation of that."""
    words = "simulate --preset road@2 --scenes 2 --seconds 5 --fps 10 --size 640x400 --seed 11 --time day --weather clear"
    truth, found, run = root / "drives", root / "found", root / "evaluation"
    _run(*words.split(), "--no-masks", "--no-sound", "-o", str(truth))
    scenes = open_dataset(SYNTHETIC, truth)
    save(api.link(simulate_detections(scenes, seed=5, detector=Detector(size=None))), found)
    sets = ("--truth", str(truth), "--predictions", str(found))
    _run("evaluate", "road", *sets, "--resamples", "200", "-o", str(run))
    return [run, truth, found]


def _run(*words: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        if main([*words, "-q"]) != 0:
            raise SystemExit(f"roadaware {' '.join(words)} failed")


@contextlib.contextmanager
def serving(paths: list[Path]) -> Iterator[str]:
    """The viewer over some paths; its address."""
    viewer, ready = Viewer(open_paths(paths), annotator="ann"), threading.Event()
    thread = threading.Thread(target=viewer.serve, args=(ready.set,), daemon=True)
    thread.start()
    ready.wait(60)
    yield viewer.address
    viewer.stop()
    thread.join(20)


class Camera:
    """Images of a page with a pointer and a line below that says where in the story they are.

    Args:
        page: of the viewer.
    """

    def __init__(self, page: Any) -> None:
        self._page, self._at, self._step, self._words = page, (700.0, 420.0), 0, ""
        self.images: list[Image.Image] = []
        self.lasts_ms: list[int] = []

    def tell(self, step: str, words: str) -> None:
        """Go on to a step, with words."""
        self._step, self._words = STEPS.index(step), words

    def hold(self, ms: int, *, pressed: bool = False) -> None:
        """The page as it is, for some time."""
        self._add(self._shoot(), ms, pressed=pressed)

    def go(self, locator: Any) -> None:
        """Move the pointer to the middle of something, and press there."""
        box = locator.bounding_box()
        end = box["x"] + min(box["width"] / 2, 120), box["y"] + box["height"] / 2
        start, shot = self._at, self._shoot()
        for share in (0.15, 0.4, 0.7, 0.9, 1.0):
            self._at = tuple(a + share * (b - a) for a, b in zip(start, end, strict=True))  # type: ignore[assignment]
            self._add(shot, 70)
        self._add(shot, 160, pressed=True)
        self._page.mouse.click(*self._at)

    def _shoot(self) -> Image.Image:
        self._page.wait_for_timeout(120)
        with open_picture(self._page.screenshot(), ["PNG"]) as (image, _):
            shot: Image.Image = image.convert("RGB")
        return shot

    def _add(self, shot: Image.Image, ms: int, *, pressed: bool = False) -> None:
        image = Image.new("RGB", (shot.width, shot.height + BAND), (18, 23, 29))
        image.paste(shot)
        pen, font = ImageDraw.Draw(image), ImageFont.load_default(17)
        x = 14.0
        for place, step in enumerate(STEPS):
            colour = (98, 191, 221) if place == self._step else (140, 150, 160)
            pen.text((x, shot.height + 7), f"{place + 1} {step}", fill=colour, font=font)
            x += pen.textlength(f"{place + 1} {step}", font=font) + 16
        pen.text((x + 14, shot.height + 7), self._words, fill=(228, 232, 236), font=font)
        left, top = self._at
        if pressed:
            pen.ellipse([left - 13, top - 13, left + 13, top + 13], outline=(230, 80, 40), width=3)
        arrow = [(left + x, top + y) for x, y in ARROW]
        pen.polygon(arrow, fill=(255, 255, 255), outline=(0, 0, 0))
        size = WIDTH, round(WIDTH * image.height / image.width)
        image = image.resize(size, Image.Resampling.LANCZOS)
        if self.images and ImageChops.difference(image, self.images[-1]).getbbox() is None:
            self.lasts_ms[-1] += ms
        else:
            self.images.append(image)
            self.lasts_ms.append(ms)


def film(page: Any, camera: Camera) -> None:
    """The way from a number to a verdict."""
    camera.tell("metrics", "every number with its interval")
    camera.hold(1800)
    camera.go(page.locator(".row.metric", has_text="agent").filter(has_not_text="agentness").first)
    page.wait_for_selector(".row.class")
    camera.tell("class", "a kind opens its classes, the worst first")
    camera.hold(1700)
    camera.go(page.locator(".row.class").filter(has_text="Ped").first)
    page.wait_for_selector(".row.error")
    page.wait_for_timeout(400)
    camera.tell("error", "its curve, and its errors by what each alone costs")
    camera.hold(2200)
    camera.go(page.locator(".row.error").first)
    page.wait_for_selector("#chosen .verdicts")
    page.wait_for_function("() => window.viewer.player.wanted === null")
    page.wait_for_timeout(500)
    camera.tell("frame", "the frame that shows it; dashed is ground truth")
    camera.hold(2400)
    camera.tell("tube", "the tube, frame by frame, and its bar on the time line")
    first, end = page.evaluate(
        "() => { const { chosen } = window.viewer.state; const { player } = window.viewer; "
        "const tube = player.tubes[chosen.side].get(chosen.tube); return [tube.first, tube.end]; }"
    )
    for frame in range(first, min(end, first + 5 * FPS)):
        page.evaluate("(frame) => window.viewer.player.seek(frame)", frame)
        page.wait_for_selector(f'#picture[data-frame="{frame}"]')
        camera.hold(1000 // FPS)
    camera.hold(700)
    camera.tell("verdict", "right, wrong or unsure: kept at once, exported as corrections")
    camera.go(page.locator(".verdicts button", has_text="unsure"))
    page.wait_for_selector('.verdicts [aria-pressed="true"]')
    camera.hold(2400)


def encode(camera: Camera) -> bytes:
    """An animated WebP that is small enough, as fine as that allows."""
    for quality in (70, 60, 50, 40, 30, 20):
        buffer = io.BytesIO()
        camera.images[0].save(
            buffer, format="webp", save_all=True, append_images=camera.images[1:], duration=camera.lasts_ms, loop=0,
            quality=quality, method=6, minimize_size=True,
        )  # fmt: skip
        if buffer.tell() <= MOST_BYTES:
            break
    seconds = sum(camera.lasts_ms) / 1000
    print(f"{len(camera.images)} images, {seconds:.1f} s, quality {quality}, {buffer.tell():,} bytes")
    return buffer.getvalue()


def write_film() -> None:
    """Make the sets, film the page, and write what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("ROADAWARE_HOME", str(Path(folder) / "home"))
        with serving(make_sets(Path(folder))) as address, sync_playwright() as playing:
            browser = playing.chromium.launch(executable_path=CHROMIUM)
            page = browser.new_page(
                viewport={"width": PAGE[0], "height": PAGE[1]}, color_scheme="light", reduced_motion="reduce"
            )
            page.goto(f"{address}#tab=metrics&s=0.3")
            page.wait_for_selector(READY, timeout=60_000)
            page.wait_for_selector(".row.metric")
            camera = Camera(page)
            film(page, camera)
            browser.close()
    write_atomically(TARGET, encode(camera))


if __name__ == "__main__":
    write_film()
