"""Video files: what is written is read again, frame by frame, and damaged files say what is wrong."""

from __future__ import annotations

import os
import resource
import struct
import tracemalloc
from contextlib import closing
from pathlib import Path

import av
import numpy as np
import polars as pl
import pytest
from PIL import Image

from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io.video import (
    CutOffError,
    EmptyMediaError,
    MediaError,
    NoSoundError,
    NoVideoError,
    OnlySoundError,
    VideoReader,
    VideoWriter,
    read_sound,
)
from roadaware.online.frames import SystemClock
from roadaware.online.video_files import VideoFile
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes
from roadaware.tasks.videos import collect_videos, find_videos

H, W, FPS, RATE = 96, 128, 12.5, 16000
Y, X = np.mgrid[:H, :W]


def picture(k: int) -> np.ndarray:
    """A smooth image that moves with its number."""
    red, green = 128 + 80 * np.sin((X + 3 * k) / 20), 128 + 80 * np.cos((Y + k) / 15)
    return np.stack([red, green, 128 + 60 * np.sin((X + Y) / 30 + k / 9)], -1).astype(np.uint8)


def tone(n: int) -> np.ndarray:
    """A tone, louder on the left, with a click after a second."""
    samples = 0.2 * np.sin(2 * np.pi * 440 / RATE * np.arange(n))[:, None] * [1.0, 0.25]
    samples[RATE : RATE + 8] = 0.9
    return samples.astype(np.float32)


def film(path: Path, frames: int = 30, sound: bool = True) -> Path:
    step = round(RATE / FPS)
    samples = tone(frames * step)
    with VideoWriter(path, W, H, FPS, sound_rate=RATE if sound else None) as writer:
        for k in range(frames):
            writer.write(picture(k))
            if sound:
                writer.write_sound(samples[k * step : (k + 1) * step])
    return path


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / ((a.astype(float) - b) ** 2).mean()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return film(tmp_path_factory.mktemp("films") / "a.mp4")


def test_frames_come_back_in_sequence_and_at_random(whole) -> None:
    with VideoReader(whole) as reader:
        assert (len(reader), reader.width_px, reader.height_px, reader.fps) == (30, W, H, FPS)
        for number, found in enumerate(reader):
            assert psnr(found, picture(number)) > 36
        for number in (29, 3, 4, 25, 0, 12, 12, 11):
            assert psnr(reader.frame(number), picture(number)) > 36
            assert reader.t_s(number) == pytest.approx(number / FPS, abs=1e-4)
        for wrong in (-1, 30):
            with pytest.raises(UsageError, match="0 to 29"):
                reader.frame(wrong)


def test_sound_comes_back_in_time_and_on_its_side(whole) -> None:
    samples, rate = read_sound(whole, 0.0, 100.0)
    assert rate == RATE
    assert abs(len(samples) - 30 * RATE / FPS) < 1024 + 1
    assert abs(int(np.abs(samples[:, 0]).argmax()) - RATE) < 12
    left, right = samples[:15000].std(0)
    assert left / right == pytest.approx(4.0, rel=0.05)
    piece, _ = read_sound(whole, 0.9, 1.1)
    assert len(piece) == round(0.2 * RATE)
    np.testing.assert_allclose(piece, samples[14400:17600], atol=1e-3)
    assert len(read_sound(whole, 50.0, 51.0)[0]) == 0
    with pytest.raises(UsageError, match="start_s < end_s"):
        read_sound(whole, 1.0, 1.0)


def test_sound_of_a_transport_stream_is_read_and_an_avi_without_any_says_so(tmp_path, whole) -> None:
    with av.open(str(whole)) as file, av.open(str(tmp_path / "a.ts"), "w") as copy:
        copies = {each.index: copy.add_stream_from_template(each) for each in file.streams}
        for packet in file.demux():
            if packet.dts is not None:
                packet.stream = copies[packet.stream.index]
                copy.mux(packet)
    samples, rate = read_sound(tmp_path / "a.ts", 0.0, 100.0)
    assert rate == RATE
    assert len(samples) >= 30 * RATE / FPS - 2048
    with av.open(str(tmp_path / "a.avi"), "w") as file:
        stream = file.add_stream("mjpeg", rate=15)
        stream.width, stream.height, stream.pix_fmt = W, H, "yuvj420p"
        file.mux(stream.encode(av.VideoFrame.from_ndarray(picture(0), "rgb24")))
        file.mux(stream.encode())
    with pytest.raises(NoSoundError):
        read_sound(tmp_path / "a.avi", 0.0, 1.0)


def test_the_same_frames_make_the_same_file(tmp_path, whole) -> None:
    assert film(tmp_path / "b.mp4").read_bytes() == whole.read_bytes()


def turn(path: Path, *matrix: int) -> Path:
    """The film with another display matrix: four numbers of a turn and the last one of its corner."""
    a, b, c, d, corner = matrix
    held = bytearray(path.read_bytes())
    at = held.rindex(b"tkhd") + 4 + 4 + 20 + 16
    # 16.16 fixed point, the last one 2.30.
    held[at : at + 36] = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, corner << 30)
    path.write_bytes(held)
    return path


@pytest.mark.parametrize(
    ("matrix", "right"),
    [
        ((0, 1, -1, 0, 1), 1),
        ((-1, 0, 0, -1, 1), 2),
        ((0, -1, 1, 0, 1), 3),
        ((-1, 0, 0, 1, 1), 2),  # mirrored, which is not read
        ((0, 0, 0, 0, 0), 0),
        ((1, 0, 0, 0, 1), 0),
        ((1, 1, -1, 1, 1), 0),  # by 45 degrees
    ],
)
def test_a_film_is_read_as_players_turn_it(tmp_path: Path, matrix: tuple[int, ...], right: int) -> None:
    path = turn(film(tmp_path / "phone.mp4", 20, sound=False), *matrix)
    with VideoReader(path) as reader:
        assert (reader.width_px, reader.height_px) == ((H, W) if right % 2 else (W, H))
        with closing(VideoFile(path, SystemClock())) as source:
            watched = list(iter(lambda: source.next(0.0, 0.0), None))
        assert len(watched) == 20
        for number, frame in enumerate(watched):
            np.testing.assert_array_equal(reader.frame(number), frame.picture)
        for number in (0, 1, 4, 2):
            assert psnr(reader.frame(number), np.rot90(picture(number), -right)) > 36


def test_a_turned_film_whose_first_frame_is_damaged_has_the_size_of_its_images(tmp_path: Path) -> None:
    path = turn(film(tmp_path / "phone.mp4", 20, sound=False), 0, 1, -1, 0, 1)
    with av.open(str(path)) as file:
        first = next(file.demux(file.streams.video[0]))
    held = bytearray(path.read_bytes())
    held[first.pos : first.pos + first.size] = bytes(first.size)
    path.write_bytes(held)
    with VideoReader(path) as reader:
        assert (reader.width_px, reader.height_px) == (H, W)
        assert reader.frame(12).shape == (W, H, 3)
        with pytest.raises(CutOffError, match="frame 0 of 20 cannot be decoded"):
            reader.frame(0)


def test_a_frame_that_no_image_can_be_made_of_is_a_broken_one(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VideoReader(whole) as reader:
        monkeypatch.setattr("roadaware.io.video.MAX_PIXELS", 1)
        with pytest.raises(CutOffError, match=r"a\.mp4: frame 3 of 30 cannot be decoded"):
            reader.frame(3)


def test_a_video_whose_name_is_no_text_is_left_out_of_a_set(tmp_path: Path) -> None:
    for name in (b"new.mp4", b"old\xff.mp4"):
        with VideoWriter(tmp_path / os.fsdecode(name), W, H, FPS) as writer:
            writer.write(picture(0))
    found = collect_videos([tmp_path])
    assert [film.video for film in found.films] == ["new"]
    assert "no Unicode text" in found.refused[os.fsdecode(b"old\xff")]


def test_a_film_is_there_whole_or_not_at_all(tmp_path) -> None:
    path = film(tmp_path / "a.mp4", 3, sound=False)
    old = path.read_bytes()
    writer = VideoWriter(path, W, H, FPS)
    writer.write(picture(0))
    assert path.read_bytes() == old
    with pytest.raises(KeyError), writer:
        raise KeyError
    with pytest.raises(UsageError, match="at least one frame"), VideoWriter(path, W, H, FPS):
        pass
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mp4"]


def test_a_full_disk_is_an_error_of_ours_and_leaves_what_stood_there(tmp_path, capfd) -> None:
    path = film(tmp_path / "a.mp4", 3, sound=False)
    old, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(DiskError, match=r"cannot write .*a\.mp4"):
            film(path, 60)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mp4"]
    assert capfd.readouterr().err == ""


def test_impossible_requests_are_refused(tmp_path) -> None:
    for size in ((127, 96), (128, 0)):
        with pytest.raises(UsageError, match="even"):
            VideoWriter(tmp_path / "a.mp4", *size, FPS)
    with pytest.raises(UsageError, match="frames"):
        VideoWriter(tmp_path / "a.mp4", W, H, 0)
    with pytest.raises(DiskError, match="cannot write"):
        VideoWriter(tmp_path / "nowhere" / "a.mp4", W, H, FPS)
    writer = VideoWriter(tmp_path / "a.mp4", W, H, FPS)
    with pytest.raises(UsageError, match="uint8"):
        writer.write(np.zeros((H, W, 3)))
    with pytest.raises(UsageError, match="no sound track"):
        writer.write_sound(tone(10))
    writer.abandon()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_film(tmp_path) -> None:
    def peak(frames: int) -> int:
        tracemalloc.start()
        film(tmp_path / "a.mp4", frames)
        with VideoReader(tmp_path / "a.mp4") as reader:
            for _ in reader:
                pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found - frames * round(RATE / FPS) * 40  # what the test itself holds

    peak(2)
    assert peak(200) < peak(20) + 300_000


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(tmp_path, whole, share) -> None:
    data = whole.read_bytes()
    path = tmp_path / "cut.mp4"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CutOffError, match="cut off"):
        VideoReader(path)
    with pytest.raises(CutOffError, match="cut off"):
        read_sound(path, 0.0, 1.0)


def test_a_file_whose_index_comes_first_and_whose_frames_are_cut_off_is_refused(tmp_path, whole) -> None:
    import av

    path = tmp_path / "cut.mp4"
    with av.open(str(whole)) as old, av.open(str(path), "w", options={"movflags": "faststart"}) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(old.streams.video[0]):
            if packet.size:
                packet.stream = stream
                new.mux(packet)
    assert len(VideoReader(path)) == 30
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CutOffError, match="cut off"), VideoReader(path) as reader:
        for _ in reader:
            pass


@pytest.mark.slow
def test_flipped_bits_give_a_picture_or_an_error_of_ours(tmp_path, whole) -> None:
    data, rng = whole.read_bytes(), np.random.default_rng(0)
    path = tmp_path / "flipped.mp4"
    for _ in range(25):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), 40):
            broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            with VideoReader(path) as reader:
                assert all(found.shape == (reader.height_px, reader.width_px, 3) for found in reader)
            read_sound(path, 0.0, 5.0)
        except InputError:
            pass


def test_what_is_no_video_is_named(tmp_path, whole) -> None:
    from PIL import Image

    def refused(kind: type[InputError], name: str, words: str) -> None:
        with pytest.raises(kind, match=words) as caught:
            VideoReader(tmp_path / name)
        assert type(caught.value) is kind

    (tmp_path / "empty.mp4").write_bytes(b"")
    refused(EmptyMediaError, "empty.mp4", "empty")
    (tmp_path / "text.mp4").write_bytes(b"no film at all\n" * 100)
    refused(MediaError, "text.mp4", "not a video")
    (tmp_path / "list.mp4").write_text(f"#EXTM3U\n#EXTINF:1,\n{whole}\n#EXT-X-ENDLIST\n")
    refused(MediaError, "list.mp4", "not a video")
    (tmp_path / "list2.mp4").write_text(f"ffconcat version 1.0\nfile '{whole}'\n")
    refused(MediaError, "list2.mp4", "not a video")
    Image.fromarray(picture(0)).save(tmp_path / "a.gif")
    refused(MediaError, "a.gif", "a video of another form")
    (tmp_path / "folder.mp4").mkdir()
    refused(InputError, "folder.mp4", "folder")
    os.mkfifo(tmp_path / "pipe.mp4")
    refused(InputError, "pipe.mp4", "pipe")
    refused(InputError, "nothing.mp4", "no such file")
    with pytest.raises(NoSoundError, match="found none"):
        read_sound(film(tmp_path / "silent.mp4", 2, sound=False), 0.0, 1.0)


@pytest.mark.parametrize("form", ["mp4", "matroska"])
def test_a_file_with_sound_alone_is_named(tmp_path, form) -> None:
    import av

    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w", format=form) as file:
        stream = file.add_stream("aac", rate=RATE, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(tone(4096).T), format="fltp", layout="stereo")
        frame.sample_rate = RATE
        for packet in (*stream.encode(frame), *stream.encode(None)):
            file.mux(packet)
    with pytest.raises(OnlySoundError, match="sound only") as caught:
        VideoReader(path)
    assert isinstance(caught.value, NoVideoError)
    assert len(read_sound(path, 0.0, 1.0)[0]) >= 4096


@pytest.mark.slow
def test_the_same_frames_make_the_same_file_whatever_memory_held_before(tmp_path: Path) -> None:
    rows, columns = np.mgrid[:48, :64]
    frames = [
        np.stack([(columns * 3 + k * 5) % 256, (rows * 4 + k) % 256, (columns + rows) % 256], 2).astype(
            np.uint8
        )
        for k in range(24)
    ]
    rng, files = np.random.default_rng(0), set()
    for _ in range(150):
        held = [np.full(n, fill, np.uint8) for n, fill in rng.integers((1000, 0), (3_000_000, 256), (20, 2))]
        width, height = (2 * rng.integers(8, 150, 2)).tolist()
        with VideoWriter(tmp_path / "other.mp4", width, height, 12.0) as other:
            for _ in range(5):
                other.write(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        del held
        with VideoWriter(tmp_path / "video.mp4", 64, 48, 12.0) as video:
            for frame in frames:
                video.write(frame)
        files.add((tmp_path / "video.mp4").read_bytes())
    assert len(files) == 1


def test_a_video_of_images_has_changed_when_any_of_them_has(tmp_path: Path) -> None:
    (tmp_path / "media" / "a").mkdir(parents=True)
    for number in range(1, 4):
        Image.fromarray(picture(number)).save(tmp_path / "media" / "a" / f"{number:05d}.png")
    videos = pl.DataFrame({"video": ["a"], "width_px": [W], "height_px": [H], "n_frames": [3]})
    save(Scenes(videos=videos), tmp_path / "set")

    def stamp() -> str:
        found = collect_videos(
            [tmp_path / "set"], media=tmp_path / "media", pattern="{video}/{number:05d}.png"
        )
        return found.facts[0].stamp

    first = stamp()
    assert stamp() == first
    Image.fromarray(picture(9)).save(tmp_path / "media" / "a" / "00002.png")
    assert stamp() != first


def test_a_video_of_images_with_a_hole_is_refused_and_a_shorter_one_is_not(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        for number in range(1, 9 if name == "a" else 5):
            Image.fromarray(picture(number)).save(tmp_path / name / f"{number:05d}.png")
    (tmp_path / "a" / "00005.png").unlink()
    scenes = Scenes(videos=pl.DataFrame({"video": ["a", "b"], "n_frames": [8, 8]}))
    films, refused = find_videos(scenes, tmp_path, "{video}/{number:05d}.png")
    assert [(film.video, film.n_frames) for film in films] == [("b", 4)]
    assert "00005.png: the image is not there" in refused["a"]
