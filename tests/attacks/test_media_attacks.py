"""Images, videos and sounds made to run programs, read other files, hang or take all memory."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import media_files
import numpy as np
import pytest
import sets
import watched_commands
from PIL import EpsImagePlugin, Image

from roadaware.errors import InputError
from roadaware.io.decoders import MAX_DECODED_BYTES, PICTURES, read_media_head
from roadaware.io.images import read_still, read_upright
from roadaware.io.video import CodecError, EmptyMediaError, MediaError, VideoReader, read_sound
from roadaware.online.film import Film
from roadaware.online.frames import SystemClock
from roadaware.online.sources import PictureFiles, open_source

EPS = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 48\n%%HiResBoundingBox: 0 0 64 48\n%%EndComments\n"
    b"0 0 64 48 rectfill\nshowpage\n%%EOF\n"
)
HEADS = {
    "eps": EPS,
    "eps in dos": struct.pack("<IIIIIIIH", 0xC6D3D0C5, 32, len(EPS), 0, 0, 0, 0, 0xFFFF) + bytes(2) + EPS,
    "pdf": b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
    "wmf": b"\xd7\xcd\xc6\x9a\0\0"
    + struct.pack("<hhhhH", 0, 0, 640, 480, 1440)
    + bytes(6)
    + b"\1\0\x09\0"
    + bytes(99),
    "emf": b"\1\0\0\0" + struct.pack("<I8i", 108, 0, 0, 640, 480, 0, 0, 640, 480) + b" EMF" + bytes(99),
    "grib": b"GRIB" + bytes(3) + b"\1" + bytes(99),
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(99),
    "bufr": b"BUFR" + bytes(99),
    "fits": b"SIMPLE  =                    T".ljust(80) + b"END".ljust(80),
    "mpeg": b"\0\0\1\xb3\4\0\3\x10" + bytes(99),
    "gif": b"GIF89a" + bytes(99),
    "xpm": b"/* XPM */\nstatic char *x[] = {\n",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    "playlist": b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
}


READ = ("bmp", "dib", "jpeg", "mpo", "png", "ppm", "tiff", "webp")


def _of_every_plugin() -> dict[str, bytes]:
    """A file of every format that Pillow writes, and the beginnings of those that it reads alone."""
    Image.init()
    found = dict(HEADS)
    for form in sorted(Image.SAVE):
        held = io.BytesIO()
        for mode in ("RGB", "L", "1", "F"):
            try:
                Image.fromarray(media_files.picture()).convert(mode).save(held, form)
            except Exception:  # noqa: S112 - not every format keeps every mode
                continue
            found[form.lower()] = held.getvalue()
            break
    return found


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of images of which each is of another format than its name says, by that name."""
    root = tmp_path_factory.mktemp("posts")
    for ending in ("jpg", "png", "tif"):
        (root / ending).mkdir()
        for number, (_, data) in enumerate(sorted(_of_every_plugin().items())):
            (root / ending / f"frame{number:03d}.{ending}").write_bytes(data)
    return root


@pytest.fixture
def ghostscript(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which a program that leaves a trace has Ghostscript's place, and the trace."""
    trace = tmp_path / "ran"
    (tmp_path / "bin").mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch '{trace}'\n")
        program.chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}, trace


@pytest.mark.slow
def test_no_format_of_pillow_starts_anything(
    posts: Path, tmp_path: Path, ghostscript: tuple[dict[str, str], Path]
) -> None:
    assert EpsImagePlugin._accept(EPS)
    words = ["--crossing", "none", "--no-video", "--out"]
    commands = [["watch", str(posts / ending), *words, str(tmp_path / ending)] for ending in ("jpg",)]
    answers = _watched(commands, ghostscript[0])
    assert [answer["seen"] for answer in answers] == [[]]
    assert not ghostscript[1].exists()
    for ending, answer in zip(("jpg",), answers, strict=True):
        assert answer["code"] in (0, 3), answer
        summary = json.loads((tmp_path / ending / "summary.json").read_text())
        left_out = summary["outcomes"]["undecodable"]["count"]
        assert summary["frames"] + left_out == len(_of_every_plugin())
        assert summary["frames"] <= len(READ)
        assert left_out >= len(HEADS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eps", "eps in dos", "wmf", "pdf"])
def test_no_command_on_a_set_of_pictures_starts_anything(
    name: str, tmp_path: Path, ghostscript: tuple[dict[str, str], Path]
) -> None:
    kitti = sets.SETS["kitti"].make(tmp_path / "kitti", frames=3) / "training"
    for path in (kitti / "image_2").iterdir():
        path.write_bytes(HEADS[name])
    proposed, tasks = tmp_path / "proposed", tmp_path / "tasks"
    commands = [
        ["read", "kitti", str(kitti)],
        ["propose", str(kitti), "--reader", "kitti", "--draw", "1", "--out", str(proposed)],
        ["label", "export", str(proposed), "--videos", str(kitti), "--out", str(tasks)],
    ]
    answers = _watched(commands, ghostscript[0])
    assert [answer["seen"] for answer in answers] == [[], [], []]
    assert not ghostscript[1].exists()
    assert all(answer["code"] in (0, 2, 3) for answer in answers), answers


def _watched(commands: list[list[str]], environment: dict[str, str]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, watched_commands.__file__, json.dumps(commands)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


# Videos that name other files -------------------------------------------------------------------------------


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "drive.mp4"
    path.write_bytes(media_files.film("mp4"))
    return path


def _lists(film: Path) -> dict[str, str]:
    url = f"file://{film}"
    return {
        "hls": f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{url}\n#EXT-X-ENDLIST\n",
        "hls here": f"#EXTM3U\n#EXTINF:4,\n{film.name}\n#EXT-X-ENDLIST\n",
        "concat": f"ffconcat version 1.0\nfile '{film}'\n",
        "dash": f"<MPD xmlns='urn:mpeg:dash:schema:mpd:2011'><BaseURL>{url}</BaseURL></MPD>",
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        "smil": f"<smil><body><video src='{url}'/></body></smil>",
        "asx": f"<asx><entry><ref href='{url}'/></entry></asx>",
        "data": "data:video/mp4;base64,AAAA",
        "text": "no video at all\n" * 300,
    }


@pytest.mark.parametrize("ending", ["mp4", "mkv", "avi", "ts", "gif", "m3u8", "sdp"])
def test_no_list_of_films_is_followed_whatever_its_name(film: Path, ending: str) -> None:
    for name, text in _lists(film).items():
        path = film.with_name(f"{name}.{ending}")
        path.write_text(text)
        for read in (open_source, VideoReader, lambda path: read_sound(path, 0, 1)):
            with pytest.raises(MediaError, match="not a video") as refused:
                read(path)
            assert type(refused.value) is MediaError
            assert "cut off" not in str(refused.value)


def test_protocols_are_no_names_of_films(film: Path) -> None:
    for name in (
        f"concat:{film}|{film}",
        f"subfile,,start,0,end,0,,:{film}",
        "data:video/mp4;base64,AAAA",
        "pipe:0",
    ):
        with pytest.raises(InputError):
            open_source(name)
        with pytest.raises(InputError, match="no such file"):
            VideoReader(Path(name))


def test_a_film_whose_pictures_lie_in_another_file_shows_none_of_them(film: Path, tmp_path: Path) -> None:
    data = film.read_bytes()
    place = data.find(b"url ")
    inner = b"drive.mp4\0"
    # The box of the reference grows by the name, and so does every box around it.
    made = data[: place - 4] + struct.pack(">I4sI", 12 + len(inner), b"url ", 0) + inner + data[place + 8 :]
    for name in (b"dref", b"dinf", b"minf", b"mdia", b"trak", b"moov"):
        at = made.rfind(name, 0, place)
        made = (
            made[: at - 4]
            + struct.pack(">I", struct.unpack(">I", made[at - 4 : at])[0] + len(inner))
            + made[at:]
        )
    other = tmp_path / "other.mp4"
    here, moov = made.find(b"mdat") + 4, made.find(b"moov") - 4
    other.write_bytes(made[:here] + bytes(moov - here) + made[moov:])
    try:
        source = open_source(other)
    except InputError:
        return
    assert source.next(0.0, 0.0) is None
    assert source.ending is not None
    assert not source.ending.whole


# Codecs ----------------------------------------------------------------------------------------------------

FOURCCS = (
    "encv",
    "XXXX",
    "drmi",
    "raw ",
    "jpeg",
    "hvc1",
    "av01",
    "vp09",
    "apcn",
    "s263",
    "SVQ3",
    "rle ",
    "\0\0\0\0",
    "mp4a",
)


@pytest.mark.parametrize("fourcc", FOURCCS)
def test_any_codec_is_read_or_named(tmp_path: Path, fourcc: str) -> None:
    path = tmp_path / "drive.mp4"
    path.write_bytes(media_files.film("mp4").replace(b"avc1", fourcc.encode("latin1")))
    for read in (lambda: VideoReader(path).frame(0), lambda: _seen(path)):
        assert _refusal(read) is None or str(path) in str(_refusal(read))
    if fourcc in ("encv", "XXXX"):
        with pytest.raises(CodecError, match="no decoder knows its codec; it is encrypted, or") as refused:
            open_source(path)
        assert "write it again in a usual codec" in str(refused.value)
        with pytest.raises(CodecError):
            VideoReader(path)
        assert len(read_sound(path, 0.0, 0.2)[0])  # it can still be heard


def _refusal(read: Callable[[], object]) -> InputError | None:
    try:
        read()
    except InputError as error:
        return error
    return None


def _seen(path: Path) -> int:
    source = open_source(path)
    count = 0
    while source.next(0.0, 0.0) is not None:
        count += 1
    return count


@pytest.mark.parametrize("fourcc", ["enca", "XXXX", "drms", "samr"])
def test_sound_that_cannot_be_decoded_leaves_the_pictures(tmp_path: Path, fourcc: str) -> None:
    path = tmp_path / "drive.mp4"
    path.write_bytes(media_files.film("mp4").replace(b"mp4a", fourcc.encode()).replace(b"esds", b"free"))
    with pytest.raises(MediaError):
        read_sound(path, 0.0, 1.0)
    assert _seen(path) == media_files.FRAMES


@pytest.mark.parametrize("fourcc", ["enca", "XXXX"])
def test_sound_that_cannot_be_decoded_is_said_once(tmp_path: Path, fourcc: str) -> None:
    path, told = tmp_path / "drive.mp4", []
    path.write_bytes(media_files.film("mp4").replace(b"mp4a", fourcc.encode()).replace(b"esds", b"free"))
    film = Film(tmp_path / "seen.mp4", 10.0, path, silent=told.append)
    for number in range(40):
        film.write(np.zeros((48, 64, 3), np.uint8), number / 10)
    assert film.close()
    assert len(told) == 1
    assert told[0].startswith("the video is silent, its sound cannot be read: ")
    assert "no decoder knows its codec" in told[0]
    path.write_bytes(media_files.film("mp4"))
    Film(tmp_path / "heard.mp4", 10.0, path, silent=told.append)
    Film(tmp_path / "folder.mp4", 10.0, tmp_path, silent=told.append)
    assert len(told) == 1


def test_a_film_that_no_decoder_knows_is_exit_3_and_is_left_out_of_many(tmp_path: Path) -> None:
    from roadaware.cli.networks import VideoSource

    (tmp_path / "films").mkdir()
    good, bad = tmp_path / "films" / "good.mp4", tmp_path / "films" / "bad.mp4"
    good.write_bytes(media_files.film("mp4"))
    bad.write_bytes(good.read_bytes().replace(b"avc1", b"encv"))
    os.mkfifo(tmp_path / "films" / "pipe.mp4")
    (tmp_path / "films" / "folder.mp4").mkdir()
    (tmp_path / "films" / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "films" / "zero.mp4").symlink_to("/dev/zero")
    found = VideoSource().collect([tmp_path / "films"])
    assert [film.video for film in found.films] == ["good"]
    assert sorted(found.refused) == ["bad", "folder", "loop", "pipe", "zero"]
    assert "no decoder knows its codec" in found.refused["bad"]
    common = ["--crossing", "none", "--no-video", "--out"]
    answers = _watched([["watch", str(bad), *common, str(tmp_path / "one")]], {})
    assert answers[0]["code"] == 3
    assert "no decoder knows its codec" in answers[0]["err"]
    assert not answers[0]["seen"]


# What is no regular file, and what is mostly holes ---------------------------------------------------------


def _oddities(folder: Path, ending: str) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    found = {
        name: folder / f"{n}-{name}.{ending}"
        for n, name in enumerate(("pipe", "folder", "loop", "zero", "socket", "gone"))
    }
    os.mkfifo(found["pipe"])
    found["folder"].mkdir()
    found["loop"].symlink_to(found["loop"].name)
    found["zero"].symlink_to("/dev/zero")
    found["gone"].symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as held:
        here = Path.cwd()
        os.chdir(folder)  # names of sockets are short
        try:
            held.bind(found["socket"].name)
        finally:
            os.chdir(here)
    return found


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    for path in _oddities(tmp_path / "films", "mp4").values():
        for read in (VideoReader, read_media_head, lambda path: read_sound(path, 0, 1), read_still):
            with pytest.raises(InputError):
                read(path)
        if not path.is_dir():
            with pytest.raises(InputError):
                open_source(path)


def test_pictures_that_are_no_files_are_counted_and_leave_their_numbers_out(tmp_path: Path) -> None:
    oddities = _oddities(tmp_path / "pictures", "jpg")
    good = tmp_path / "pictures" / "9.jpg"
    good.write_bytes(media_files.stills()["JPEG"])
    source = PictureFiles(str(tmp_path / "pictures"), SystemClock())
    frame = source.next(0.0, 0.0)
    assert frame is not None
    assert frame.number == len(oddities)
    assert source.outcomes.counts() == {"undecodable": len(oddities)}
    told = " ".join(news.message for news in source.outcomes.news())
    assert "not a regular file" in told
    assert "found a folder" in told
    assert "links run in a circle" in told
    assert source.next(0.0, 0.0) is None


@pytest.mark.parametrize("kind", ["mp4", "mkv", "avi", "gif", "ts", "wav", "mpg", "flv", "wmv", "png", "bin"])
def test_a_hundred_gigabytes_of_holes_are_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"large.{kind}"
    data = {**media_files.all_films(), "png": media_files.stills()["PNG"], "bin": b"\1" * 64}[kind]
    path.write_bytes(data)
    try:
        os.truncate(path, 100 << 30)
    except OSError as error:
        pytest.skip(f"no file of 100 GB here: {error}")
    start = time.process_time()
    for read in (open_source, VideoReader, lambda path: read_sound(path, 0, 1), read_still):
        with pytest.raises(InputError, match=r"never written|files of at most"):
            read(path)
    assert time.process_time() - start < 5


def test_holes_of_a_film_that_is_still_copied_may_be_small(film: Path) -> None:
    with film.open("ab") as file:
        file.truncate(film.stat().st_size + (64 << 20))
    assert read_media_head(film)[4:8] == b"ftyp"


# Bombs -----------------------------------------------------------------------------------------------------


def _huge_png(side: int, depth: int = 8, colour: int = 2) -> bytes:
    head = struct.pack(">IIBBBBB", side, side, depth, colour, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    chunks = [(b"IHDR", head), (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(media_files.png_chunk(*chunk) for chunk in chunks)


def _entries(count: int, size: int) -> bytes:
    entries = b"".join(struct.pack("<HHII", n, 7, size, 8) for n in range(count))
    return (b"II*\0" + struct.pack("<IH", 8, count) + entries).ljust(size + 16, b"\0")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pixels.png", "67108864 pixels are read"),
        ("jpeg.jpg", "67108864 pixels are read"),
        ("webp.webp", "MiB to decode|pixels are read"),
        ("scans.jpg", "more than 100 scans"),
        ("chunks.png", "more than 100000 chunks"),
        ("segments.jpg", "more than 100000 segments"),
        ("directory.tif", "its directory promises"),
        ("tile.tif", "tiles of"),
    ],
)
def test_pictures_that_promise_too_much_are_refused_before_they_are_decoded(
    tmp_path: Path, name: str, words: str
) -> None:
    plain = media_files.stills()
    made = {
        "pixels.png": lambda: _huge_png(65535),
        "jpeg.jpg": lambda: _of_size(plain["JPEG"], 65535, 65535),
        "webp.webp": lambda: _vp8x(plain["WEBP"], 16383),
        "scans.jpg": lambda: (
            plain["JPEG progressive"][:-2] + b"\xff\xda\0\x08\1\1\0\0\x3f\0" * 5000 + b"\xff\xd9"
        ),
        "chunks.png": lambda: (
            plain["PNG"][:33] + media_files.png_chunk(b"tEXt", b"a\0b") * 100_001 + plain["PNG"][33:]
        ),
        "segments.jpg": lambda: b"\xff\xd8" + b"\xff\xfe\0\2" * 100_001 + plain["JPEG"][2:],
        "directory.tif": lambda: _tiff([(273, 4, 1 << 30, 8), (256, 3, 1, 8), (257, 3, 1, 8)]),
        "tile.tif": lambda: _tiff(
            [(322, 4, 1, 1 << 20), (323, 4, 1, 1 << 20), (256, 3, 1, 8), (257, 3, 1, 8)]
        ),
    }[name]()
    (tmp_path / name).write_bytes(made)
    start = time.process_time()
    with pytest.raises(InputError, match=words) as refused:
        read_upright(tmp_path / name, PICTURES)
    assert time.process_time() - start < 5
    assert len(str(refused.value)) < 500


def _of_size(data: bytes, width: int, height: int) -> bytes:
    place = data.find(b"\xff\xc0") + 5
    return data[:place] + struct.pack(">HH", height, width) + data[place + 4 :]


def _vp8x(data: bytes, side: int) -> bytes:
    canvas = (side - 1).to_bytes(3, "little") * 2
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\2\0\0\0" + canvas
    body += b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    frame = bytes(6) + (63).to_bytes(3, "little") + (47).to_bytes(3, "little") + b"\x64\0\0\0" + data[12:]
    body += b"ANMF" + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _tiff(entries: list[tuple[int, int, int, int]]) -> bytes:
    packed = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + packed + bytes(100)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_exif_of_thousands_of_entries_costs_nothing(tmp_path: Path, kind: str) -> None:
    """Each entry names all of the rest: read one by one they would be gigabytes."""
    path = tmp_path / f"a.{kind.lower()}"
    path.write_bytes(media_files.with_metadata(kind, _entries(60_000, 1 << 20)))
    start = time.process_time()
    pixels, _ = read_upright(path, PICTURES)
    assert pixels.shape == (media_files.H, media_files.W, 3)
    assert time.process_time() - start < 5


def test_memory_of_the_largest_picture_is_bounded(tmp_path: Path) -> None:
    """A 16-bit PNG of 67 million pixels, most of which are not there: its room is taken in vain."""
    (tmp_path / "a.png").write_bytes(_huge_png(8192, 16, 0))
    code = (
        "import sys\nfrom pathlib import Path\nfrom roadaware.io.images import read_still\n"
        "peak = lambda: int([x for x in open('/proc/self/status') if 'VmHWM' in x][0].split()[1])\n"
        "from PIL import PngImagePlugin\nbefore = peak()\n"
        "try:\n    read_still(Path(sys.argv[1]))\n"
        "except Exception as error:\n    print(type(error).__name__)\n"
        "print(peak() - before)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    told, grown = done.stdout.split()
    assert told == "InputError"
    assert int(grown) * 1024 < MAX_DECODED_BYTES


FULL = struct.Struct(">I4sI")


def _full(kind: bytes, data: bytes, flags: int = 0) -> bytes:
    return FULL.pack(12 + len(data), kind, flags) + data


def test_films_that_promise_a_thousand_million_frames_or_pixels_are_refused(tmp_path: Path) -> None:
    data = media_files.film("mp4")
    count = media_files.FRAMES
    many = struct.pack(">I", 10**9)
    sizes = data.find(b"stsz")
    made = {
        "count": data[: sizes + 12] + many + data[sizes + 16 :],
        "size": data[: sizes + 8] + struct.pack(">II", 1, 10**9) + data[sizes + 16 :],
        "pixels": data.replace(struct.pack(">HH", media_files.W, media_files.H), b"\xff\xff\xff\xff"),
    }
    fragments = media_files.film("fragmented")
    runs = [
        struct.pack(">I4s", 24 + 8 + 16 + 16, b"moof")
        + _full(b"mfhd", struct.pack(">I", 9))
        + struct.pack(">I4s", 8 + 16 + 16, b"traf")
        + _full(b"tfhd", struct.pack(">I", 1), 0x20000)
        + _full(b"trun", struct.pack(">I", 10**7))
        for _ in range(10)
    ]
    made["runs"] = fragments + b"".join(runs)
    start = time.process_time()
    for name, film in made.items():
        path = tmp_path / f"{name}.mp4"
        path.write_bytes(film)
        for read in (lambda path: len(VideoReader(path)), _seen):
            found: list[int] = []
            refused = _refusal(lambda read=read, path=path, found=found: found.append(read(path)))
            assert found[0] <= count if refused is None else len(str(refused)) < 500, name
    assert time.process_time() - start < 30


def test_times_that_are_nonsense_are_no_fault(tmp_path: Path) -> None:
    """The steps between frames are as long as a file can say."""
    data = media_files.film("mp4")
    place = data.find(b"stts") + 8
    (tmp_path / "a.mp4").write_bytes(data[: place + 8] + b"\x7f\xff\xff\xff" + data[place + 12 :])
    with suppress(InputError):
        assert _seen(tmp_path / "a.mp4") <= media_files.FRAMES


def test_no_film_is_told_by_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty.gif").write_bytes(b"")
    with pytest.raises(EmptyMediaError):
        open_source(tmp_path / "empty.gif")
    for kind in media_files.FILMS:
        data = media_files.film(kind)
        (tmp_path / "a.bin").write_bytes(
            data[:20] + b"\xfe" * 3000 if kind != "ts" else data[:377] + b"\xfe" * 9
        )
        refused = _refusal(lambda: _seen(tmp_path / "a.bin"))
        assert kind in ("ts", "mpg") or "not a video" not in str(refused), kind
