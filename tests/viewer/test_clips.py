"""A saved video has the boxes and layers of its frames at their places, what is heard with them, and nothing else."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numbered import BITS, BLOCK, Client, Open, make_truth
from overlaid import (
    BEEP_S,
    make_overlaid_predictions,
    make_overlaid_truth,
    time_s,
    write_sounding,
    write_watch,
)
from PIL import Image, ImageSequence

from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader, iterate_sound
from roadaware.scenes.store import save
from roadaware.viewer import clips
from roadaware.viewer.clips import ClipMaker, parse_order
from roadaware.viewer.films import FilmFinder
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths
from roadaware.viewer.overlays import LayerPainter, Look, Overlays

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
    "layers": [],
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


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make clips of what lies at some paths."""
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))
    makers: list[ClipMaker] = []

    def start(paths: list[Path], told: str = "", **changes: Any) -> clips.Clip:
        opened = open_paths(paths, [tmp_path / "films"])
        index = Index(opened)
        makers.append(ClipMaker(index, FilmFinder(opened)))
        clip = wait(makers[-1], makers[-1].start(parse_order(ORDER | changes, index)))
        assert (clip.state, clip.message) == ("ready", told)
        return clip

    (tmp_path / "films").mkdir(exist_ok=True)
    yield start
    for each in makers:
        each.close()


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
    {"layers": "relations"},
    {"layers": ["tails"]},
    {"layers": [[]]},
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


# What stands beside the boxes.


def read_gif(path: Path | None) -> list[np.ndarray[Any, Any]]:
    with Image.open(str(path)) as file:
        return [np.asarray(each.convert("RGB")) for each in ImageSequence.Iterator(file)]


@pytest.fixture
def overlaid(tmp_path: Path, numbered_film: Path) -> Path:
    save(make_overlaid_truth(), tmp_path / "truth")
    save(make_overlaid_predictions(), tmp_path / "found")
    write_watch(tmp_path / "watch")
    (tmp_path / "films").mkdir(exist_ok=True)
    (tmp_path / "films" / "one.mp4").write_bytes(numbered_film.read_bytes())
    return tmp_path


BARE = {
    "form": "gif",
    "hidden": ["Ped", "Car"],
    "colours": {"watching": MAGENTA, "chasing": GREEN, "beep": GREEN},
}


def test_relations_are_drawn_in_the_frames_in_which_they_hold(make: Any, overlaid: Path) -> None:
    shown = BARE | {"hidden": [], "sides": ["truth"], "layers": ["relations"], "first": 18, "end": 52}
    images = read_gif(make([overlaid / "truth"], **shown).path)
    left_out = read_gif(make([overlaid / "truth"], **(shown | {"layers": []})).path)
    for place, image in enumerate(images):
        frame = 18 + place
        watching, chasing = (find_colour(image, colour) for colour in ((255, 0, 255), (0, 255, 0)))
        assert (watching is not None) == (20 <= frame < 40), frame
        assert (chasing is not None) == (30 <= frame < 50), frame
        changed = np.abs(image.astype(int) - left_out[place]).max(axis=2) > 60
        assert changed.any() == (20 <= frame < 50)
        if watching is not None and 22 <= frame < 30:
            # From the middle of the person to that of the car, bent to the right by 16 pixels.
            middle = (41 + 2 * frame, 105)
            assert watching[0] - 4 <= middle[0] <= watching[2] + 4
            assert watching[1] - 4 <= middle[1] <= watching[3] + 4
            assert changed[100:110, middle[0] - 6 : middle[0] + 7].any()
    moved = [find_colour(images[frame - 18], (255, 0, 255)) for frame in (22, 27)]
    assert np.subtract(*moved[::-1]).tolist() == pytest.approx([10, 0, 10, 0], abs=3)


def test_relations_are_those_that_pass_threshold_and_classes(make: Any, overlaid: Path) -> None:
    both = [overlaid / "truth", overlaid / "found"]
    found = BARE | {"hidden": [], "sides": ["a"], "layers": ["relations"], "first": 26, "end": 27}
    for changes, drawn in (
        ({"score": 0.7}, True),
        ({"score": 0.8}, False),
        ({"score": 0.7, "hidden": ["Car"]}, False),
    ):
        image = read_gif(make(both, **(found | changes)).path)[0]
        assert (find_colour(image, (255, 0, 255)) is not None) == drawn, changes


def test_joints_stand_where_the_tables_have_them(make: Any, overlaid: Path) -> None:
    shown = BARE | {"sides": ["truth"], "layers": ["joints"], "first": 56, "end": 62}
    for place, image in enumerate(read_gif(make([overlaid / "truth"], **shown).path)):
        frame = 56 + place
        nose = image[58, 10 + 2 * frame + 15].astype(int)
        assert (np.abs(nose - 244).max() < 30) == (frame < 60), frame
        if frame < 60:  # the last joint, the right foot, is not seen; the left one is green
            assert np.abs(image[90, 10 + 2 * frame + 15].astype(int) - (43, 196, 138)).max() < 40


def test_what_sounds_has_a_frame_and_maps_tint_the_image(make: Any, overlaid: Path) -> None:
    both = [overlaid / "truth", overlaid / "found"]
    shown = BARE | {"sides": ["truth"], "layers": ["sounds"], "first": 28, "end": 38}
    for place, image in enumerate(read_gif(make(both, **shown).path)):
        frame, edge = 28 + place, 10 + 2 * (28 + place) - 5
        # Dashed: of the left edge of its frame a part is drawn.
        line = (
            np.abs(image[56:105, edge - 1 : edge + 2].astype(int) - (0, 255, 0)).max(axis=2).min(axis=1) < 60
        )
        assert line.any() == (30 <= frame < 36), frame
        if line.any():
            assert not line.all()
    mapped = read_gif(make(both, **(shown | {"sides": ["a"]})).path)
    for place, image in enumerate(mapped):
        # The cell of the highest value, on the grey of the film; the lowest leaves it.
        tinted = np.abs(image[45, 280].astype(int) - (219, 207, 51)).max() < 20
        assert tinted == (30 <= 28 + place < 36)
        assert np.abs(image[130, 300].astype(int) - 90).max() < 20


def test_forecasts_of_a_watch_stand_around_their_pedestrian(make: Any, overlaid: Path) -> None:
    shown = BARE | {"hidden": ["Car"], "layers": ["risk"], "first": 18, "end": 32}
    for place, image in enumerate(read_gif(make([overlaid / "watch"], **shown).path)):
        frame = 18 + place
        x1, x2 = 14 + 2 * frame, 44 + 2 * frame
        colours = {"red": (255, 143, 128), "blue": (86, 180, 233)}
        seen = {name: find_colour(image, colour) for name, colour in colours.items()}
        around = {name: box for name, box in seen.items() if box and box[0] <= x1 and box[2] >= x2}
        edge = image[80, x1 - 5 : x1 - 1].astype(int)
        wanted = None if not 20 <= frame < 30 else "blue" if frame == 29 else "red"
        close = {name for name, colour in colours.items() if (np.abs(edge - colour).max(axis=1) < 40).any()}
        assert close == ({wanted} if wanted else set()), (frame, around)


def test_layers_need_no_video_and_grow_with_it(make: Any, overlaid: Path) -> None:
    shown = BARE | {
        "video": 1,
        "hidden": [],
        "sides": ["truth"],
        "layers": ["relations", "joints", "sounds", "risk"],
    }
    lost = "4 of 4 frames have no image, and are grey: films/two.mp4 is not here; --media DIR says where films lie"
    clip = make([overlaid / "truth"], lost, **(shown | {"first": 0, "end": 4}))
    assert len(read_gif(clip.path)) == 4
    large = Image.new("RGB", (1280, 720))
    opened = open_paths([overlaid / "truth"])
    index = Index(opened)
    look = Look(("truth",), 0.0, frozenset(), ("joints",), {})
    painter = LayerPainter(
        Overlays(opened, index), index, "one", look, [k / 20 for k in range(90)], (320, 180)
    )
    painter.load(0, 20)
    painter.paint_above(large, 5, {})
    assert np.abs(np.asarray(large)[4 * 60, 4 * 35].astype(int) - 244).max() < 10


# What is heard.


def hear(path: Path | None) -> tuple[np.ndarray[Any, Any], float]:
    """Loudness of each millisecond of a file, and the seconds that its sound lasts, as the file says."""
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        lasts = float(stream.duration * stream.time_base)
    whole = np.zeros(48_000 * 8)
    for at, block in iterate_sound(Path(str(path)), 48_000, 8.0):
        place = max(0, at)
        part = block[place - at :, 0]
        whole[place : place + len(part)] = part
    return np.abs(whole).reshape(-1, 48).max(axis=1), lasts


@pytest.mark.spread(4)
@pytest.mark.parametrize("sound", ["aac", "mp3"])
@pytest.mark.parametrize(("first", "end"), [(0, 90), (10, 60), (24, 30), (40, 80)])
def test_a_saved_mp4_is_heard_as_the_film_is(
    make: Any, tmp_path: Path, first: int, end: int, sound: str
) -> None:
    save(make_truth(), tmp_path / "truth")
    write_sounding(tmp_path / "films" / "one.mp4", sound=sound)
    clip = make([tmp_path / "truth"], first=first, end=end, sides=["truth"])
    began, over = time_s(first), time_s(end - 1)
    with VideoReader(clip.path) as film:
        shown = [film.t_s(number) for number in range(len(film))]
    assert shown == pytest.approx([time_s(frame) - began for frame in range(first, end)], abs=1e-3)
    loud, lasts = hear(clip.path)
    assert lasts == pytest.approx(over - began + 0.05, abs=0.1)
    begin_ms, end_ms = (1000 * (each - began) for each in BEEP_S)
    heard = np.flatnonzero(loud > 0.2)
    if end_ms < 0 or begin_ms > 1000 * (over - began):
        assert len(heard) == 0
    else:
        assert heard[0] == pytest.approx(max(0, begin_ms), abs=30)
        assert heard[-1] == pytest.approx(min(end_ms, 1000 * lasts), abs=60)


@pytest.mark.parametrize("sound", ["aac", pytest.param("pcm_s16le", marks=pytest.mark.slow)])
def test_sound_from_a_place_on_is_that_of_the_whole(tmp_path: Path, sound: str) -> None:
    path = tmp_path / "film.mov"
    write_sounding(path, sound=sound, rate=48_000)
    whole = np.zeros(48_000 * 8)
    for at, block in iterate_sound(path, 48_000, 8.0):
        whole[at : at + len(block)] = block[:, 0]
    for start_s in (0.5, 0.9, 1.07, 3.9):
        at, block = next(iter(iterate_sound(path, 48_000, 8.0, start_s)))
        assert at <= 48_000 * start_s < at + 2 * len(block) + 2048  # the block with it, and none far before
        for later, piece in iterate_sound(path, 48_000, 8.0, start_s - 0.2):
            if later >= 48_000 * start_s:
                assert piece[:, 0] == pytest.approx(whole[later : later + len(piece)], abs=1e-3)


def test_silent_videos_and_gifs_have_no_sound(make: Any, overlaid: Path) -> None:
    clip = make([overlaid / "truth"], sides=["truth"])
    with av.open(str(clip.path)) as file:
        assert not file.streams.audio
