"""A saved video has the boxes of its frames, at their places, and nothing that was not asked for."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numbered import BITS, BLOCK, Client, Open
from PIL import Image, ImageSequence

from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.viewer import clips
from roadaware.viewer.clips import ClipMaker, parse_order
from roadaware.viewer.films import FilmFinder
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths

MAGENTA, GREEN = "#ff00ff", "#00ff00"
ORDER: dict[str, Any] = {
    "video": 0,
    "first": 8,
    "end": 40,
    "form": "mp4",
    "sides": ["a"],
    "score": 0.65,
    "hidden": ["Car"],
    "names": False,
    "colours": {"Ped": MAGENTA, "Car": GREEN},
}


@pytest.fixture
def maker(sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))
    opened = open_paths([sets / "truth", sets / "found"])
    index = Index(opened)
    made = ClipMaker(index, FilmFinder(opened))
    yield made, index
    made.close()
    assert not list((tmp_path / "cache" / "viewer").glob(".roadaware-*")), "clips go with the viewer"


def wait(made: ClipMaker, key: str) -> clips.Clip:
    until = time.monotonic() + 120
    while made.clip(key).state in ("waiting", "drawing") and time.monotonic() < until:
        time.sleep(0.01)
    return made.clip(key)


def read_number(image: np.ndarray[Any, Any]) -> int:
    """The number that a frame of the film shows."""
    return sum(int(image[BLOCK // 2, bit * BLOCK + BLOCK // 2, 1] > 128) << bit for bit in range(BITS))


def find_colour(
    image: np.ndarray[Any, Any], colour: tuple[int, int, int]
) -> tuple[int, int, int, int] | None:
    """The smallest box around all pixels of about a colour."""
    near = (np.abs(image.astype(int) - colour) < 90).all(axis=2)
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    return (int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])) if len(rows) else None


def test_a_saved_mp4_has_the_box_of_each_frame_where_it_is(maker: Any) -> None:
    made, index = maker
    clip = wait(made, made.start(parse_order(ORDER, index)))
    assert (clip.state, clip.message, clip.name) == ("ready", "", "one-8-39.mp4")
    with VideoReader(clip.path) as film:
        assert (len(film), film.width_px, film.height_px) == (32, 320, 180)
        for place, image in enumerate(film):
            frame = 8 + place
            assert read_number(image) == frame
            # The person is at 14 + 2 a frame; a colour of half the pixels bleeds by one.
            seen = find_colour(image, (255, 0, 255))
            assert seen == pytest.approx((14 + 2 * frame, 60, 44 + 2 * frame, 100), abs=1)
            assert find_colour(image, (0, 255, 0)) is None


def test_filters_and_sides_are_those_of_the_page(maker: Any) -> None:
    made, index = maker
    both = ORDER | {"sides": ["truth", "a"], "hidden": ["Ped"], "first": 75, "end": 77, "score": 0.75}
    clip = wait(made, made.start(parse_order(both, index)))
    with VideoReader(clip.path) as film:
        image = film.frame(0)
    assert find_colour(image, (255, 0, 255)) is None
    # The true car, dashed, and the one that was found, 4 pixels to its right; the car of score 0.7 is not drawn.
    seen = find_colour(image, (0, 255, 0))
    assert seen == pytest.approx((10 + 150, 110, 44 + 150, 150), abs=1)
    top = [bool((np.abs(image[110:112, x].astype(int) - (0, 255, 0)) < 90).all()) for x in range(195, 196)]
    assert not any(top)


def test_a_saved_gif_has_the_box_of_each_frame_where_it_is(maker: Any) -> None:
    made, index = maker
    clip = wait(made, made.start(parse_order(ORDER | {"form": "gif", "end": 20}, index)))
    assert (clip.state, clip.message) == ("ready", "")
    with Image.open(clip.path) as file:
        images = [np.asarray(each.convert("RGB")) for each in ImageSequence.Iterator(file)]
        lasts = [each.info["duration"] for each in ImageSequence.Iterator(file)]
    assert [read_number(image) for image in images] == list(range(8, 20))
    for place, image in enumerate(images):
        seen = find_colour(image, (255, 0, 255))
        assert seen == (14 + 2 * (8 + place), 60, 44 + 2 * (8 + place), 100)
    # 20, 50 and 80 ms in turn, as the film has them.
    assert set(lasts) == {20, 50, 80}


def test_a_video_that_is_missing_leaves_its_boxes(maker: Any) -> None:
    made, index = maker
    order = ORDER | {"video": 1, "first": 3, "end": 6, "sides": ["truth"], "names": True}
    clip = wait(made, made.start(parse_order(order, index)))
    assert clip.state == "ready"
    with VideoReader(clip.path) as film:
        seen = find_colour(film.frame(2), (255, 0, 255))
    assert seen is not None
    assert seen[2:] == pytest.approx((10 + 30 + 2 * 5, 100), abs=1)
    beyond = wait(made, made.start(parse_order(order | {"first": 500, "end": 510}, index)))
    assert (beyond.state, beyond.path) == ("ready", beyond.path)


def test_a_saved_clip_says_what_it_does_not_show(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, index = maker
    frame = VideoReader.frame

    def broken(self: VideoReader, number: int) -> Any:
        if number in (9, 11):
            raise InputError(f"frame {number} cannot be decoded")
        return frame(self, number)

    with monkeypatch.context() as patched:
        patched.setattr(VideoReader, "frame", broken)
        clip = wait(made, made.start(parse_order(ORDER | {"end": 18}, index)))
    assert clip.state == "ready"
    assert clip.message.startswith("2 of 10 frames have no image, and are grey: ")
    with VideoReader(clip.path) as film:
        seen = [int(image[170, 300].max()) for image in film]
        marked = [find_colour(image, (255, 0, 255)) is not None for image in film]
    # The film is of a grey of 90 there; what lacks has a cross and another grey, and its boxes all the same.
    assert [abs(level - 90) > 4 for level in seen] == [number in (9, 11) for number in range(8, 18)]
    assert all(marked)
    two = wait(made, made.start(parse_order(ORDER | {"video": 1, "first": 3, "end": 6}, index)))
    assert two.message.startswith("3 of 3 frames have no image")
    assert "two.mp4" in two.message


WRONG: list[dict[str, Any]] = [
    {"end": 8},
    {"first": -1},
    {"end": 8 + 3001},
    {"form": "gif", "end": 8 + 301},
    {"form": "exe"},
    {"form": []},
    {"first": True},
    {"first": 1.5},
    {"first": 1 << 80, "end": (1 << 80) + 1, "video": 99},
    {"video": 2},
    {"video": -1},
    {"video": "one"},
    {"sides": "a"},
    {"sides": ["z"]},
    {"sides": [[]]},
    {"score": float("nan")},
    {"score": -1},
    {"score": "0"},
    {"hidden": [1]},
    {"hidden": "Car"},
    {"names": 1},
    {"colours": {"Ped": "red"}},
    {"colours": {"Ped": "#ff00ff; }"}},
    {"colours": []},
    {"more": 1},
]


@pytest.mark.parametrize("change", WRONG, ids=repr)
def test_what_cannot_be_is_refused(maker: Any, change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_order(ORDER | change, maker[1])


def test_making_is_bounded_told_and_cancelled(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, index = maker
    held, drawing = threading.Event(), threading.Event()
    reduce = clips._reduce

    def slow(*given: Any) -> Any:
        drawing.set()
        assert held.wait(60)
        return reduce(*given)

    monkeypatch.setattr(clips, "_reduce", slow)
    order = parse_order(ORDER, index)
    keys = [made.start(order) for _ in range(4)]
    with pytest.raises(UsageError, match="4 clips are being made"):
        made.start(order)
    assert drawing.wait(60)
    for key in keys:
        made.cancel(key)
    held.set()
    assert [wait(made, key).state for key in keys] == ["cancelled"] * 4
    assert list(made._folder.iterdir()) == []
    monkeypatch.setattr(clips, "_reduce", reduce)
    ready = [made.start(parse_order(ORDER | {"end": 10}, index)) for _ in range(1)]
    for _ in range(9):
        ready.append(made.start(parse_order(ORDER | {"end": 10}, index)))
        wait(made, ready[-1])
    assert len(list(made._folder.iterdir())) == 8
    with pytest.raises(UsageError):
        made.clip(ready[0])
    for wrong in ("", "0" * 16, "../x"):
        with pytest.raises(UsageError):
            made.clip(wrong)


def ask_for(client: Client, order: Any) -> tuple[int, Any]:
    return client.post("/api/clips", order)


def test_a_page_asks_waits_and_fetches(sets: Path, viewed: Open) -> None:
    client = viewed(sets / "truth", sets / "found")
    status, told = ask_for(client, ORDER | {"end": 11})
    assert status == 200
    key = told["clip"]
    until = time.monotonic() + 120
    while (state := client.json(f"/api/clip?clip={key}"))["state"] != "ready" and time.monotonic() < until:
        assert state["state"] in ("waiting", "drawing")
        time.sleep(0.02)
    status, headers, body = client.ask(f"/clip/{key}")
    assert (status, headers["content-type"]) == (200, "video/mp4")
    assert headers["content-disposition"] == 'attachment; filename="one-8-10.mp4"'
    assert body[4:8] == b"ftyp"
    assert len(body) == int(headers["content-length"])
    assert client.ask(f"/clip/{key}", known=False)[0] == 403
    for wrong in (f"{key}0", "..%2fx", "%00", "-1"):
        assert client.ask(f"/clip/{wrong}")[0] in (404, 422)
    for body in (b"", b"[]", b"{", b"null", b"\xff", b"[" * 5000, json.dumps(ORDER | {"x": 1}).encode()):
        assert client.ask("/api/clips", "POST", body)[0] == 422
        assert client.ask("/api/clips/cancel", "POST", body)[0] == 422
    for path in ("/api/clips", "/api/clips/cancel"):
        good = json.dumps(ORDER).encode()
        assert client.ask(path, "POST", good, origin="http://evil.example")[0] == 403
        assert client.ask(path, "POST", good, origin=None)[0] == 403
        assert client.ask(path, "POST", good, known=False)[0] == 403
        assert client.ask(path, "POST", good, content_type="text/plain")[0] == 415
        assert client.ask(path)[0] == 405


def test_names_of_files_say_nothing_but_the_video(maker: Any) -> None:
    order = parse_order(ORDER, maker[1])
    for name, said in (("a/../b\r\nx: y", "a_.._b_x_y"), ('"', "clip"), ("\u202e", "clip"), ("..", "clip")):
        changed = clips.Clip(clips.ClipOrder(**{**vars(order), "video": name}))
        assert changed.name == f"{said}-8-39.mp4"
