"""The cache: opened when nothing changed, read anew when anything did, and never in the way."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from sets import maker

from roadaware.datasets import cache, jaad, read
from roadaware.datasets.cache import Entry, get_cache_folder, load_or_read
from roadaware.errors import DiskError, InputError
from roadaware.scenes.tables import Scenes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    maker("jaad").make(tmp_path / "jaad", frames=4)
    return tmp_path / "jaad"


class Counted:
    """Reads a set, and counts how often."""

    def __init__(self, root: Path) -> None:
        self.root, self.times = root, 0

    def __call__(self) -> Scenes:
        self.times += 1
        with jaad.find(self.root) as source:
            return jaad.read(source, processes=1)

    def through(self, *, verify: bool = False, version: int = 1, **options: object) -> Scenes:
        with jaad.find(self.root) as source:
            entry = Entry("jaad", version, source, jaad.inputs(source), dict(options))
            return load_or_read(entry, self, verify=verify)


@pytest.fixture
def reader(root: Path) -> Counted:
    return Counted(root)


def entries(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("home/scenes/*/*/meta.json"))


def test_the_folder_is_asked_of_the_environment_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "own"))
    assert get_cache_folder() == tmp_path / "own"
    monkeypatch.setenv("ROADAWARE_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert get_cache_folder() == tmp_path / "shared" / "roadaware"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert get_cache_folder() == tmp_path / ".cache" / "roadaware"


def test_the_second_time_is_opened_not_read(reader: Counted) -> None:
    first = reader.through()
    assert [reader.through() == first for _ in range(3)] == [True] * 3
    assert reader.times == 1


@pytest.mark.slow
def test_every_change_of_a_file_is_seen(reader: Counted, root: Path) -> None:
    name = root / "annotations" / "video_0001.xml"
    changes: list[Callable[[], object]] = [
        lambda: name.write_text(name.read_text().replace("<size>8<", "<size>9<")),
        lambda: os.utime(name, ns=(5, 5)),
        lambda: (root / "split_ids/default/val.txt").write_text("video_0001\n"),
        lambda: (root / "annotations_traffic/video_0002_traffic.xml").unlink(),
        lambda: (root / "annotations/video_0009.xml").write_text(name.read_text()),
    ]
    reader.through()
    for n, change in enumerate(changes, 2):
        change()
        reader.through()
        assert reader.times == n
    reader.through()
    assert reader.times == 1 + len(changes)


def test_a_change_of_content_alone_is_seen_by_verify(reader: Counted, root: Path) -> None:
    before = reader.through()
    name = root / "annotations_vehicle" / "video_0001_vehicle.xml"
    status = name.stat()
    name.write_text(name.read_text().replace("stopped", "flying!"))
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert reader.through() == before
    after = reader.through(verify=True)
    assert reader.times == 2
    assert after != before
    assert reader.through(verify=True) == reader.through() == after
    assert reader.times == 2


def test_versions_options_and_places_have_their_own(reader: Counted, root: Path, tmp_path: Path) -> None:
    reader.through()
    reader.through(version=2)
    assert reader.times == 2
    reader.through(flag=True)
    assert reader.times == 3
    reader.root = root.rename(tmp_path / "moved")
    reader.through()
    assert reader.times == 4


def test_earlier_states_are_removed(reader: Counted, root: Path, tmp_path: Path) -> None:
    for time_ns in range(3):
        os.utime(root / "annotations" / "video_0001.xml", ns=(time_ns, time_ns))
        reader.through()
    assert reader.times == 3
    assert len(entries(tmp_path)) == 1
    assert len(list(tmp_path.glob("home/scenes/*"))) == 1


def test_nothing_left_over_but_the_entry_and_its_lock(reader: Counted, tmp_path: Path) -> None:
    reader.through()
    folder = next(iter(tmp_path.glob("home/scenes/*")))
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["lock"]
    assert (folder / "lock").read_text() == f"{os.getpid()}\n"


def damaged(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flip", "cut", "lose", "meta", "no meta", "file", "foreign"])
def test_a_damaged_entry_is_read_anew_and_mended(
    reader: Counted, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = reader.through()
    meta = entries(tmp_path)[0]
    table = next(iter(meta.parent.glob("boxes-*.parquet")))
    data = table.read_bytes()
    if damage == "flip":
        table.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    elif damage == "cut":
        table.write_bytes(data[:-7])
    elif damage == "lose":
        table.unlink()
    elif damage == "meta":
        meta.write_text(meta.read_text().replace('"rows": 4', '"rows": 5')[:-3])
    elif damage == "no meta":
        meta.unlink()
    elif damage == "file":
        for path in meta.parent.iterdir():
            path.unlink()
        meta.parent.rmdir()
        meta.parent.write_text("in the way")
    else:
        (meta.parent / "notes.txt").write_text("somebody's")
        meta.unlink()
    with caplog.at_level(logging.WARNING, "roadaware"):
        assert reader.through() == first
    assert reader.times == 2
    assert len(caplog.records) == (damage != "file")
    assert reader.through() == first
    assert reader.times == 2


def test_a_cache_that_cannot_be_made_is_one_warning(
    reader: Counted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "roadaware"):
        assert len(reader.through().videos) == 5
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot be kept" in caplog.text
    assert reader.times == 1


def test_a_full_disk_is_one_warning_and_leaves_nothing(
    reader: Counted, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(scenes: Scenes, folder: Path, *, overwrite: bool = False) -> None:
        folder.mkdir(parents=True)
        (folder / "half").write_bytes(b"half")
        raise DiskError("no space left")

    monkeypatch.setattr(cache, "save", full)
    with caplog.at_level(logging.WARNING, "roadaware"):
        assert len(reader.through().videos) == 5
    assert len(caplog.records) == 1
    assert "no space left" in caplog.text
    assert [path.name for path in tmp_path.glob("home/scenes/*/*")] == ["lock"]


def test_without_a_home_folder_it_still_reads(reader: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(cache, "get_cache_folder", homeless)
    assert reader.through() == reader.through()
    assert reader.times == 2


def test_an_error_of_the_reader_passes_and_keeps_nothing(root: Path, tmp_path: Path) -> None:
    def broken() -> Scenes:
        raise InputError("damaged")

    with jaad.find(root) as source, pytest.raises(InputError, match="damaged"):
        load_or_read(Entry("jaad", 1, source, jaad.inputs(source)), broken)
    assert entries(tmp_path) == []


def test_a_lock_that_is_held_for_good_is_not_waited_for_for_good(
    reader: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.through()
    folder = next(iter(tmp_path.glob("home/scenes/*")))
    entries(tmp_path)[0].unlink()
    monkeypatch.setattr(cache, "_LONGEST_WAIT_S", 0.2)
    with cache._hold_lock(folder / "lock"):
        start = time.monotonic()
        reader.through()
        assert 0.2 <= time.monotonic() - start < 5
    assert reader.times == 2


_READ = """
import os, sys, time
from pathlib import Path
import roadaware.datasets.jaad as jaad
from roadaware.datasets import read
plain = jaad.read
def counted(*arguments, **options):
    with open(sys.argv[2], "a") as log:
        log.write("read\\n")
    time.sleep(float(sys.argv[3]))
    return plain(*arguments, **options)
jaad.read = counted
print("ready", flush=True)
for _ in range(int(sys.argv[4])):
    scenes = read("jaad", Path(sys.argv[1]), processes=1)
    assert len(scenes.boxes) and len(scenes.videos) == 5
    if int(sys.argv[4]) > 1:
        stamp = time.time_ns()
        os.utime(Path(sys.argv[1]) / "annotations/video_0001.xml", ns=(stamp, stamp))
"""


def started(root: Path, log: Path, pause: float = 0.3, rounds: int = 1) -> subprocess.Popen[str]:
    arguments = [str(root), str(log), str(pause), str(rounds)]
    return subprocess.Popen([sys.executable, "-c", _READ, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_read_once(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [started(root, log) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    assert log.read_text() == "read\n"


@pytest.mark.slow
def test_a_killed_process_holds_nobody_up(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(root, log, pause=30) as first:
        while not log.exists():
            time.sleep(0.01)
        with started(root, log, pause=0) as second:
            assert second.stdout is not None
            second.stdout.readline()
            first.send_signal(signal.SIGKILL)
            first.wait(10)
            assert second.wait(30) == 0
    assert log.read_text() == "read\nread\n"
    assert len(entries(tmp_path)) == 1


@pytest.mark.slow
def test_two_processes_and_a_restless_source_never_mix(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [started(root, log, pause=0, rounds=10) for _ in range(2)]
    assert [process.wait(100) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    found = [json.loads(meta.read_text())["kind"] for meta in entries(tmp_path)]
    assert found == ["Scenes"]


PICTURED = {
    "kitti": "training/image_2/000001.png",
    "once": "data/000076/cam01/*.jpg",
    "nuscenes": "front_1.jpg",
}


def png(width: int, height: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height)).save(data, "PNG")
    return data.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURED)
def test_the_size_of_a_picture_is_that_of_its_file_now(name: str, tmp_path: Path) -> None:
    root = maker(name).make(tmp_path / "set")
    picture = sorted(root.glob(PICTURED[name]))[0]

    def sizes(*, verify: bool = False) -> set[tuple[int | None, int | None]]:
        return set(read(name, root, verify=verify).videos.select("width_px", "height_px").iter_rows())

    first = sizes()
    picture.write_bytes(png(640, 333))
    assert (640, 333) in sizes()
    picture.unlink()
    assert (None, None) in sizes()
    picture.write_bytes(png(700, 444))
    assert (700, 444) in sizes()
    kept_at = entries(tmp_path)
    assert (700, 444) in sizes(verify=True)
    assert entries(tmp_path) == kept_at
    assert (640, 333) not in first


def test_verifying_sees_a_picture_that_was_changed_behind_its_size_and_time(tmp_path: Path) -> None:
    root = maker("kitti").make(tmp_path / "set")
    picture = root / PICTURED["kitti"]
    picture.write_bytes(png(40, 30))
    read("kitti", root)
    status = picture.stat()
    data = bytearray(picture.read_bytes())
    data[19] += 1
    picture.write_bytes(data)
    os.utime(picture, ns=(status.st_atime_ns, status.st_mtime_ns))
    widths = [read("kitti", root, verify=verify).videos["width_px"].to_list()[1] for verify in (False, True)]
    assert widths == [40, 41]


@pytest.mark.slow
def test_damaged_notes_of_pictures_only_cost_another_reading(tmp_path: Path) -> None:
    root = maker("kitti").make(tmp_path / "set")
    first = read("kitti", root)
    (notes,) = tmp_path.glob("home/scenes/*/pictures.json")
    for damage in (b"", b"[1]", b"[" * 100_000, b"{}", b'{"a": 1}'):
        notes.write_bytes(damage)
        assert read("kitti", root) == first


def test_a_picture_that_changes_while_the_set_is_read_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = maker("kitti").make(tmp_path / "set")
    picture = root / PICTURED["kitti"]
    picture.write_bytes(png(40, 30))
    plain = Scenes.__post_init__

    def changed(scenes: Scenes) -> None:
        picture.write_bytes(png(50, 30))
        plain(scenes)

    with monkeypatch.context() as patch:
        patch.setattr(Scenes, "__post_init__", changed)
        assert 40 in read("kitti", root).videos["width_px"].to_list()
    assert 50 in read("kitti", root).videos["width_px"].to_list()
