"""Sources: real numbers and times, and every fault of files and cameras named and counted."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from online_stubs import Connection, FakeClock, Listed, picture, write_film
from PIL import Image

from roadaware.errors import InputError, UsageError
from roadaware.io.video import MediaError, VideoReader
from roadaware.online.cameras import Backoff, Camera, Shot
from roadaware.online.frames import Source, SourceFrame, SystemClock
from roadaware.online.sources import Realtime, open_source
from roadaware.online.video_files import Timeline


def drained(source: Source) -> list[SourceFrame]:
    found = []
    while (frame := source.next(0.0, 0.0)) is not None:
        found.append(frame)
    return found


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("film") / "drive.mp4", frames=48)


def test_a_film_gives_the_frames_that_the_reader_gives(film: Path) -> None:
    frames = drained(source := open_source(film))
    with VideoReader(film) as reader:
        assert [frame.number for frame in frames] == list(range(len(reader)))
        for frame in frames:
            assert (frame.picture == reader.frame(frame.number)).all()
            assert frame.t_s == pytest.approx(reader.t_s(frame.number) - reader.t_s(0))
    assert source.ending is not None
    assert source.ending.reason == "end"
    assert source.fps == pytest.approx(12.0)
    assert source.outcomes.counts() == {}


def test_fewer_frames_a_second_keep_their_numbers(film: Path) -> None:
    frames = drained(source := open_source(film, 4.0))
    assert [frame.number for frame in frames] == list(range(0, 48, 3))
    assert source.outcomes.counts() == {"thinned": 32}


def _faststart(path: Path) -> bytes:
    """The video with its index at the front, so that a cut one can be opened."""
    target = path.with_name("front.mp4")
    with av.open(str(path)) as given, av.open(str(target), "w", options={"movflags": "faststart"}) as made:
        stream = made.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(given.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                made.mux(packet)
    return target.read_bytes()


def test_a_film_that_ends_early_says_so_and_gives_what_there_is(film: Path, tmp_path: Path) -> None:
    whole = _faststart(film)
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole[: len(whole) * 7 // 10])
    frames = drained(source := open_source(cut))
    assert 8 < len(frames) < 48
    assert source.ending is not None
    assert source.ending.reason == "short"
    assert "ends early" in source.ending.message
    assert not source.ending.whole
    # Before anything of it can be read, it is an error.
    cut.write_bytes(film.read_bytes()[: film.stat().st_size // 2])
    with pytest.raises(InputError, match="cut off"):
        open_source(cut)


def test_a_hole_in_a_film_loses_frames_but_neither_numbers_nor_times(film: Path, tmp_path: Path) -> None:
    data = bytearray(film.read_bytes())
    middle = data.find(b"moov") // 2
    data[middle : middle + 400] = bytes(400)
    (tmp_path / "hole.mp4").write_bytes(data)
    frames = drained(source := open_source(tmp_path / "hole.mp4"))
    counts = source.outcomes.counts()
    assert len(frames) + counts.get("undecodable", 0) == 48
    assert counts.get("undecodable", 0) + counts.get("doubtful", 0) > 0
    assert frames[-1].number == 47
    assert all(frame.t_s == pytest.approx(frame.number / 12, abs=1e-3) for frame in frames)
    assert source.outcomes.news()


def _timed(path: Path, times: list[int], rate: int, sizes: list[tuple[int, int]] | None = None) -> Path:
    """A video (mkv) whose frames have these times in milliseconds."""
    with av.open(str(path), "w", format="matroska") as file:
        stream = file.add_stream("libx264", rate=rate, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.max_b_frames = 0
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            for packet in stream.encode(frame):
                file.mux(packet)
        for packet in stream.encode(None):
            file.mux(packet)
    return path


def test_times_are_those_of_the_frames_and_a_false_rate_is_told(tmp_path: Path) -> None:
    times = [0, 100, 200, 300, 900, 1000, 1100, 1200, 1300]
    source = open_source(_timed(tmp_path / "lie.mkv", times, rate=30))
    assert source.fps == pytest.approx(10.0)
    assert [frame.t_s for frame in drained(source)] == pytest.approx([time / 1000 for time in times])
    assert source.outcomes.counts() == {"rate": 1}
    assert "times are used" in source.outcomes.news()[0].message


def test_what_is_no_video_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("#EXTM3U\nfile:///etc/hostname\n")
    sound = tmp_path / "sound.mp4"
    with av.open(str(sound), "w") as file:
        stream = file.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    for name in ("empty.mp4", "text.mp4", "sound.mp4"):
        with pytest.raises(MediaError):
            open_source(tmp_path / name)
    with pytest.raises(InputError, match="found nothing"):
        open_source(tmp_path / "absent.mp4")
    with pytest.raises(InputError, match="found none"):
        open_source(tmp_path / "*.png")
    with pytest.raises(UsageError, match="rtsp"):
        open_source("gopher://camera/1")
    with pytest.raises(UsageError, match="fps"):
        open_source(tmp_path / "empty.mp4", 0.0)


def test_pictures_come_in_natural_order_and_a_bad_one_leaves_a_gap(tmp_path: Path) -> None:
    for number in (1, 2, 9, 10, 11):
        Image.fromarray(picture(number)).save(tmp_path / f"img_{number}.png")
    (tmp_path / "img_9.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("not one either")
    source = open_source(tmp_path, 5.0)
    frames = drained(source)
    assert [frame.number for frame in frames] == [0, 1, 3, 4]
    assert [frame.t_s for frame in frames] == pytest.approx([0, 0.2, 0.6, 0.8])
    assert (frames[2].picture == picture(10)).all()
    assert source.outcomes.counts() == {"undecodable": 1}
    assert len(drained(open_source(tmp_path / "img_1*.png"))) == 3


def test_a_gif_is_a_film(tmp_path: Path) -> None:
    pictures = [Image.fromarray(picture(number)) for number in range(5)]
    pictures[0].save(tmp_path / "a.gif", save_all=True, append_images=pictures[1:], duration=120)
    frames = drained(open_source(tmp_path / "a.gif"))
    assert [frame.t_s for frame in frames] == pytest.approx([0, 0.12, 0.24, 0.36, 0.48])
    assert frames[0].picture.shape == (48, 64, 3)


# A camera's clock and ours ---------------------------------------------------------------------------------


def _placed(
    steps: list[tuple[float | None, float]],
) -> tuple[list[tuple[int, float] | None], dict[str, int]]:
    """Where frames with (stated, arrived) are placed behind ten regular ones, and what was counted."""
    from roadaware.online.frames import Outcomes

    timeline = Timeline(outcomes := Outcomes())
    for number in range(10):
        assert timeline.place(number / 10, number / 10) == (number, pytest.approx(number / 10))
    return [timeline.place(*step) for step in steps], outcomes.counts()


def _at(number: int, t_s: float) -> tuple[int, object]:
    return number, pytest.approx(t_s)


@pytest.mark.parametrize(
    ("steps", "placed", "counts"),
    [
        ([(1.0, 1.0), (1.1, 1.1)], [_at(10, 1.0), _at(11, 1.1)], {}),
        ([(1.04, 1.0), (1.09, 1.1)], [_at(10, 1.04), _at(11, 1.09)], {}),
        ([(1.1, 1.1)], [_at(11, 1.1)], {"lost": 1}),
        ([(1.9, 1.9)], [_at(19, 1.9)], {"lost": 9}),
        ([(0.9, 1.0), (1.0, 1.1)], [None, _at(10, 1.0)], {"duplicate": 1}),
        ([(0.8, 1.0), (1.0, 1.1)], [None, _at(10, 1.0)], {"late": 1}),
        ([(None, 1.0), (1.1, 1.1)], [_at(10, 1.0), _at(11, 1.1)], {"untimed": 1}),
        ([(1.0 - 3600, 1.0), (1.1 - 3600, 1.1)], [_at(10, 1.0), _at(11, 1.1)], {"clock": 1}),
        ([(1.0 + 86400, 1.0), (1.1 + 86400, 1.1)], [_at(10, 1.0), _at(11, 1.1)], {"clock": 1}),
        ([(31.0, 31.0)], [_at(310, 31.0)], {"lost": 300}),
    ],
    ids=["regular", "jitter", "gap", "gap10", "twice", "late", "untimed", "back", "forward", "gap300"],
)
def test_frames_of_a_camera_are_placed(
    steps: list[tuple[float | None, float]], placed: list[object], counts: dict[str, int]
) -> None:
    assert _placed(steps) == (placed, counts)


def test_a_rate_that_changes_in_the_dark_is_soon_learnt() -> None:
    at = 0.9
    steps: list[tuple[float | None, float]] = [(at + 0.3 * n, at + 0.3 * n) for n in range(1, 60)]
    placed, counts = _placed(steps)
    assert all(place is not None for place in placed)
    assert counts["lost"] < 2 * 32


# Cameras ---------------------------------------------------------------------------------------------------


def _shots(first: int, end: int, offset: float = 0.0) -> list[Shot]:
    return [Shot(offset + number / 10, picture(number)) for number in range(first, end)]


def _camera(
    connections: list[object], clock: FakeClock, taken: list[SourceFrame], backoff: Backoff | None = None
) -> Camera:
    """A camera whose frames are all taken as they come, 0.1 s apart."""
    scripts = iter(connections)
    camera: Camera

    def connect() -> Connection:
        script = next(scripts, InputError("no route"))
        if isinstance(script, Exception):
            raise script
        assert isinstance(script, list)
        steps: list[object] = []
        for item in script:
            steps += [lambda: clock.sleep(0.1), item, lambda: _take(camera, taken)]
        return Connection(steps)

    camera = Camera("front", connect, clock, backoff=backoff, threaded=False)
    camera.run()
    _take(camera, taken)
    return camera


def _take(camera: Camera, taken: list[SourceFrame]) -> None:
    while (frame := camera.next(10.0, 0.0)) is not None:
        taken.append(frame)


def test_a_camera_that_comes_back_goes_on_with_its_numbers_and_our_time() -> None:
    clock, taken = FakeClock(), list[SourceFrame]()
    begin = clock.now
    lost = OSError("connection reset")
    camera = _camera([[*_shots(0, 10), lost], lost, _shots(0, 5, offset=5000.0)], clock, taken)
    times, numbers = [frame.t_s for frame in taken], [frame.number for frame in taken]
    assert len(taken) == 15
    assert numbers == sorted(set(numbers))
    # It was away for the waits of two attempts, and its own clock says nothing of that.
    away = times[10] - times[9]
    assert away == pytest.approx(0.1 + 0.5 + 1.0 + 0.1)
    assert numbers[10] - numbers[9] == round(away / 0.1)
    assert all(frame.arrived_s - begin == pytest.approx(frame.t_s + 0.1) for frame in taken)
    assert camera.outcomes.counts()["reconnected"] == 1
    assert camera.ending is not None
    assert camera.ending.reason == "gone"
    assert "no route" in camera.ending.message


def test_a_camera_that_is_gone_is_given_up_after_so_many_attempts() -> None:
    clock, taken = FakeClock(), list[SourceFrame]()
    before = clock.now
    camera = _camera([_shots(0, 3)], clock, taken, Backoff(attempts=4))
    assert len(taken) == 3
    assert clock.now - before == pytest.approx(3 * 0.1 + 0.5 + 1 + 2 + 4)
    assert camera.ending is not None
    assert not camera.ending.whole


def test_damaged_frames_of_a_camera_are_counted() -> None:
    clock, taken = FakeClock(), list[SourceFrame]()
    shots = [*_shots(0, 6), Shot(None, None), Shot(0.7, picture(7), doubtful=True)]
    counts = _camera([shots], clock, taken).outcomes.counts()
    assert (counts["undecodable"], counts["doubtful"], counts["lost"]) == (1, 1, 1)
    assert [frame.number for frame in taken] == [0, 1, 2, 3, 4, 5, 7]


def test_the_first_connection_must_succeed() -> None:
    def connect() -> Connection:
        raise InputError("no such camera")

    with pytest.raises(InputError, match="no such camera"):
        Camera("front", connect, FakeClock())


def test_a_camera_does_not_wait_for_whoever_looks() -> None:
    """Frames that nobody takes are dropped, the oldest first; two wait."""
    go, gate = threading.Event(), threading.Event()
    script: list[object] = [go.wait, *_shots(0, 50), gate.set]
    camera = Camera("front", lambda: Connection(script), SystemClock(), backoff=Backoff(attempts=0))
    assert camera.next(10.0, 0.0) is None  # from now on it is read
    go.set()
    assert gate.wait(10)
    taken = [camera.next(10.0, 1.0), camera.next(10.0, 1.0)]
    assert [frame.number for frame in taken if frame is not None] == [48, 49]
    assert camera.next(10.0, 1.0) is None
    assert camera.ending is not None
    assert camera.ending.reason == "gone"
    assert camera.outcomes.counts()["dropped"] == 48
    camera.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "camera"]


def test_a_fault_in_the_thread_ends_the_source_instead_of_hanging() -> None:
    camera = Camera("front", lambda: Connection([ZeroDivisionError("oops")]), FakeClock(), threaded=False)
    camera.run()
    assert camera.ending is not None
    assert camera.ending.reason == "failed"
    assert "oops" in camera.ending.message


def test_a_camera_whose_reader_never_comes_back_is_given_up() -> None:
    clock, hung = FakeClock(), threading.Event()
    camera = Camera("front", lambda: Connection([*_shots(0, 1), hung.wait]), clock)
    first = camera.next(1.0, 5.0)
    assert first is not None
    clock.now += 119.0
    assert (camera.next(0.0, 0.0), camera.ending) == (None, None)
    clock.now += 2.0
    assert camera.next(0.0, 0.0) is None
    assert camera.ending is not None
    assert (camera.ending.reason, camera.ending.whole) == ("gone", False)
    assert "nothing that it sent for 120 s" in camera.ending.message
    hung.set()
    camera.close()


# A video as if it were live ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("takes_s", "expected"), [(0.0, 1), (0.09, 1), (0.25, 3), (1.05, 11)])
def test_realtime_skips_to_the_newest(takes_s: float, expected: int) -> None:
    clock = FakeClock()
    source = Realtime(Listed(range(60), clock, fps=10.0), clock)
    begin, seen = clock.now, []
    while source.ending is None:
        frame = source.next(0.0, 0.25)
        if frame is not None:
            # Nobody sees a frame before it was filmed, nor one that is older than a frame's time.
            age = clock.now - begin - frame.t_s
            assert age >= -1e-9
            assert age < 0.1 + 1e-9 or frame.number == 59
            seen.append(frame.number)
            clock.now += takes_s
    assert np.median(np.diff(seen)) == pytest.approx(expected, abs=1)
    assert seen == sorted(set(seen))
    assert len(seen) + source.outcomes.counts().get("dropped", 0) == 60


def _ages(patience_s: float) -> list[int]:
    clock = FakeClock()
    source = Realtime(Listed(range(30), clock, fps=10.0), clock)
    seen: list[int] = []
    while source.ending is None:
        if (frame := source.next(patience_s, 0.25)) is not None:
            seen.append(frame.number)
            clock.now += 0.12
    return seen


def test_with_patience_a_frame_that_waited_is_not_dropped_at_once() -> None:
    assert len(_ages(0.15)) >= len(_ages(0.0))


def test_a_film_behind_an_address_is_watched_as_it_comes(film: Path) -> None:
    """It may read from the network, and never a file of this machine."""
    import functools
    import http.server

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(film.parent))
    (film.parent / "list.m3u8").write_text(f"#EXTM3U\n#EXTINF:4,\nfile://{film}\n#EXT-X-ENDLIST\n")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://me:secret@127.0.0.1:{server.server_address[1]}"
        source = open_source(f"{root}/drive.mp4")
        numbers = []
        while source.ending is None:
            if (frame := source.next(10.0, 1.0)) is not None:
                numbers.append(frame.number)
        source.close()
        assert source.ending.reason == "end"
        assert numbers == sorted(numbers)
        assert len(numbers) + source.outcomes.counts().get("dropped", 0) == 48
        assert "secret" not in source.name
        with pytest.raises(InputError) as refused:
            open_source(f"{root}/list.m3u8")
        assert "secret" not in str(refused.value)
        server.shutdown()
