"""Videos whose header, index and clock say different things: trimmed, cut off, with empty chunks, joined, with a cover."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from online_stubs import FakeClock, Listed, Scripted, kept_run, one_car, picture
from PIL import Image

from roadaware.io.video import CutOffError, MediaError, OnlySoundError, VideoReader
from roadaware.online.frames import Ending
from roadaware.online.sources import open_source
from roadaware.online.video_files import Thinning, VideoFile
from roadaware.reports import watch_page
from roadaware.reports.live_drawing import draw_crowd_film
from roadaware.reports.watch_page import Moment


def _film(path: Path, ticks: Sequence[int] = range(24), codec: str = "mpeg4") -> Path:
    """Frames of rising brightness at multiples of 1/24 s."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"  # type: ignore[attr-defined]
        stream.codec_context.gop_size = 6  # type: ignore[attr-defined]
        for number, tick in enumerate(ticks):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 10 * number, np.uint8))
            frame.pts, frame.time_base = tick, Fraction(1, 24)
            file.mux(stream.encode(frame))  # type: ignore[attr-defined]
        file.mux(stream.encode(None))  # type: ignore[attr-defined]
    return path


def _watch(path: Path) -> tuple[list[int], list[float], Ending | None]:
    """What frames show, by their brightness, when they are shown, and why the video ended."""
    shown, times_s = list[int](), list[float]()
    with contextlib.closing(VideoFile(path, FakeClock())) as video:
        while (frame := video.next(0, 0)) is not None:
            assert frame.number == len(shown)
            shown.append(round(float(frame.picture.mean()) / 10))
            times_s.append(frame.t_s)
        return shown, times_s, video.ending


def test_a_trimmed_film_is_whole(tmp_path: Path) -> None:
    # What is before time 0 stays in the file, and its edit list leaves it out.
    path = _film(tmp_path / "trimmed.mp4", range(-9, 15), "libx264")
    shown, times_s, ending = _watch(path)
    assert shown == list(range(9, 24))
    assert times_s == pytest.approx([number / 24 for number in range(15)])
    assert ending == Ending("end")
    with VideoReader(path) as reader:
        assert [round(float(image.mean()) / 10) for image in reader] == shown


def test_an_avi_with_empty_chunks_is_whole_and_one_that_was_cut_is_not(tmp_path: Path) -> None:
    ticks = [0, 1, 5, 6, 7, 20, 21, 22, 23, 40]
    path = _film(tmp_path / "uneven.avi", ticks)
    shown, times_s, ending = _watch(path)
    assert (shown, ending) == (list(range(10)), Ending("end"))
    assert times_s == pytest.approx([tick / 24 for tick in ticks])
    content = path.read_bytes()
    path.write_bytes(content[: (content.index(b"movi") + content.index(b"idx1")) // 2])
    shown, _, ending = _watch(path)
    assert ending is not None
    assert (len(shown) < 10, ending.reason) == (True, "short")


@pytest.mark.parametrize("name", ["film.mkv", "film.webm"])
def test_a_cut_matroska_is_not_taken_for_whole(tmp_path: Path, name: str) -> None:
    path = _film(tmp_path / name, codec="mpeg4" if name.endswith("mkv") else "libvpx")
    assert _watch(path)[2] == Ending("end")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    shown, _, ending = _watch(path)
    assert shown == list(range(len(shown)))
    assert ending is not None
    assert (0 < len(shown) < 24, ending.reason) == (True, "broken")
    assert "bytes are missing at its end" in ending.message
    with pytest.raises(CutOffError, match="bytes are missing"):
        VideoReader(path)
    # A recorder that goes on, or lost its power, has not said how long the file is.
    at = content.index(b"\x18\x53\x80\x67") + 4
    path.write_bytes(content[:at] + b"\x01" + b"\xff" * 7 + content[at + 8 : len(content) * 2 // 3])
    assert _watch(path)[::2] == (shown, Ending("end"))


def test_a_film_of_another_form_is_not_said_to_be_none(tmp_path: Path) -> None:
    path = _film(tmp_path / "film.avi")
    with pytest.raises(MediaError, match="a video of another form; mp4"):
        VideoReader(path)
    path.write_text("no film")
    with pytest.raises(MediaError, match="not a video; mp4"):
        VideoReader(path)


def test_a_film_that_grows_while_it_is_watched_is_not_taken_for_whole(tmp_path: Path) -> None:
    path = _film(tmp_path / "growing.ts", codec="mpeg2video")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3 // 188 * 188])
    with contextlib.closing(VideoFile(path, FakeClock())) as video:
        path.write_bytes(content)
        numbers = []
        while (frame := video.next(0, 0)) is not None:
            numbers.append(frame.number)
        assert numbers == list(range(video.n_frames))
        assert video.ending is not None
        assert (video.ending.reason, "has grown" in video.ending.message) == ("short", True)


def test_hidden_files_are_no_frames(tmp_path: Path) -> None:
    for name in ("a1.png", "a2.png"):
        Image.fromarray(picture(1)).save(tmp_path / name)
        (tmp_path / f"._{name}").write_bytes(b"what a file system keeps beside it")
    source = open_source(tmp_path)
    frames = [source.next(0, 0), source.next(0, 0), source.next(0, 0)]
    assert [frame and frame.number for frame in frames] == [0, 1, None]
    assert source.outcomes.counts() == {}


def test_what_was_appended_to_a_film_does_not_mix_with_it(tmp_path: Path) -> None:
    first = _film(tmp_path / "first.ts", range(30, 50), "mpeg2video")
    second = _film(tmp_path / "second.ts", range(24), "mpeg2video")
    joined = tmp_path / "joined.ts"
    joined.write_bytes(first.read_bytes() + second.read_bytes())
    alone, times_s, _ = _watch(first)
    shown, same_s, ending = _watch(joined)
    assert (shown, same_s) == (alone, times_s)
    assert ending is not None
    assert (ending.reason, "its times begin anew" in ending.message) == ("broken", True)


def test_a_cover_is_no_film(tmp_path: Path) -> None:
    from av.stream import Disposition  # older PyAV has none

    path = tmp_path / "song.m4a"
    with av.open(str(path), "w", format="mp4") as file:
        sound = file.add_stream("aac", rate=16000, layout="mono")
        cover = file.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 48, "yuvj420p"  # type: ignore[attr-defined]
        cover.disposition = Disposition.attached_pic
        image = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))
        image.pts = 0
        file.mux(cover.encode(image))  # type: ignore[attr-defined]
        file.mux(cover.encode(None))  # type: ignore[attr-defined]
        piece = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        piece.sample_rate = 16000
        file.mux(sound.encode(piece))  # type: ignore[attr-defined]
        file.mux(sound.encode(None))  # type: ignore[attr-defined]
    with pytest.raises(OnlySoundError, match="sound only"):
        VideoFile(path, FakeClock())


def test_a_rate_that_the_times_do_not_have_is_not_believed(tmp_path: Path) -> None:
    path = _film(tmp_path / "slow.mkv", range(0, 96, 4))  # its header says 24
    with VideoReader(path) as reader:
        assert reader.fps == pytest.approx(6, rel=0.01)


@pytest.mark.parametrize(("fps", "gap"), [(12.0, 0), (240.0, 0), (0.05, 0), (12.0, 600)])
def test_the_page_shows_moments_as_they_were_in_the_video(tmp_path: Path, fps: float, gap: int) -> None:
    """Of fast films, slow ones, and behind a pause that the video leaves out."""
    clock, folder = FakeClock(), tmp_path / "run"
    numbers = [*range(8), *range(8 + gap, 16 + gap)]
    source = Listed(numbers, clock, fps=fps)
    kept_run(folder, source, Scripted(one_car), clock)
    wanted = numbers[::3]
    shown = watch_page._find_shown(folder, [Moment(number / fps, "", 1.0) for number in wanted])
    with VideoReader(folder / "video.mp4") as film:
        for number, place in zip(wanted, shown, strict=True):
            # Of a fast film about every second frame is in the video.
            near = range(-2, 3) if fps > 120 else (0,)
            errors = [np.abs(film.frame(place).astype(int) - picture(number + off)).mean() for off in near]
            assert min(errors) < 4


def test_what_is_found_of_a_crowd_is_drawn_on_the_same_video(tmp_path: Path) -> None:
    clock, folder = FakeClock(), tmp_path / "run"
    source = Listed([*range(6), *range(206, 212)], clock)
    kept_run(folder, source, Scripted(one_car), clock)
    before = _read_images(folder / "video.mp4")
    assert draw_crowd_film(folder, {"least": {}, "sentences": []}, fps=source.fps, width_px=64)
    after = _read_images(folder / "video.mp4")
    assert len(after) == len(before)
    # What is said stands below the image.
    assert np.abs(after[:, :48].astype(int) - before).mean() < 4


def _read_images(path: Path) -> np.ndarray:
    with VideoReader(path) as film:
        return np.stack(list(film))


@pytest.mark.parametrize(("rate", "fps"), [(24, 12), (30, 15), (12, 12), (60, 12), (30, 10)])
def test_fewer_frames_are_even_where_times_are_rounded(rate: int, fps: int) -> None:
    thinning = Thinning(fps)
    taken = [number for number in range(600) if thinning.takes(round(number / rate, 3))]
    assert taken == list(range(0, 600, rate // fps))
