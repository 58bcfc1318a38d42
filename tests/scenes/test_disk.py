"""Single files: written whole or not at all, read only when they are what they seem."""

import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from roadaware.errors import DamagedError, DiskError, InputError
from roadaware.io import files
from roadaware.io.files import is_temporary, read_regular, write_atomically

OLD, NEW = b"old" * 1000, b"newer" * 2000
STEPS = ("open", "write", "fsync", "replace")


@contextmanager
def largest_file(size):
    """No file can grow beyond `size` bytes: a full disk, as far as a writer can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fail_at(monkeypatch, step, code):
    """Let the k-th call to the file system fail; returns the list of calls that were made."""
    calls = []

    def failing(name, call):
        def wrapped(*arguments, **named):
            calls.append(name)
            if len(calls) == step:
                raise OSError(code, os.strerror(code))
            return call(*arguments, **named)

        return wrapped

    for name in STEPS:
        monkeypatch.setattr(os, name, failing(name, getattr(os, name)))
    return calls


def dead_process():
    """The number of a process that is gone."""
    done = subprocess.run(
        [sys.executable, "-Sc", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return int(done.stdout)


@pytest.mark.parametrize("data", [b"", b"x", NEW, bytes(1 << 25)], ids=len)
def test_a_file_holds_what_was_written(tmp_path, data):
    path = tmp_path / "out.json"
    for content in (OLD, data):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_names_may_be_as_long_and_odd_as_the_system_allows(tmp_path):
    for name in ("x" * 255, "line\nbreak;", "\N{PEDESTRIAN}", "-rf"):
        write_atomically(tmp_path / name, NEW)
        assert (tmp_path / name).read_bytes() == NEW


def test_a_file_gets_the_rights_that_the_mask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "out", tmp_path / "link"
    target.write_bytes(OLD)
    link.symlink_to(target)
    write_atomically(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    assert [each.name for each in target.parent.iterdir()] == ["out"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, NEW)
    reader.join(10)
    assert got == [NEW]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_anonymous_pipe_is_written_to_by_its_descriptors_name(tmp_path):
    reader, writer = os.pipe()
    link = tmp_path / "link"
    link.symlink_to(f"/dev/fd/{writer}")
    with os.fdopen(reader, "rb") as pipe:
        for path in (Path(f"/dev/fd/{writer}"), Path(f"/proc/self/fd/{writer}"), link):
            assert files.is_stream(path)
            write_atomically(path, b"some")
        os.close(writer)
        assert pipe.read() == b"some" * 3
    assert link.is_symlink()


def test_an_open_descriptor_keeps_what_its_file_holds(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(OLD)
    with log.open("ab") as file:
        write_atomically(Path(f"/dev/fd/{file.fileno()}"), NEW)
    assert log.read_bytes() == OLD + NEW


def test_a_pipe_that_nobody_reads_is_a_broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        write_atomically(Path(f"/dev/fd/{writer}"), NEW)
    os.close(writer)


def test_a_name_that_only_looks_like_a_descriptor_is_none(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "1", Path("/dev/fd/999"), loop, tmp_path / "a\0b"):
        assert not files.is_stream(path)


def test_a_device_is_never_replaced_by_a_file():
    write_atomically(Path("/dev/null"), NEW)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(DiskError, match="cannot write /dev/full: No space left on device"):
        write_atomically(Path("/dev/full"), NEW)


@pytest.mark.parametrize("size", [0, 1000, len(NEW) // 2, len(NEW) - 1])
def test_a_full_disk_leaves_the_old_file_alone(tmp_path, size):
    path = tmp_path / "out"
    path.write_bytes(OLD)
    with (
        largest_file(size),
        pytest.raises(DiskError, match=r"10,000 bytes are needed, [\d,]+ bytes are free") as caught,
    ):
        write_atomically(path, NEW)
    assert caught.value.exit_code == 4
    assert "File too large" in str(caught.value)
    assert path.read_bytes() == OLD
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_failure_at_any_call_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, code):
    path = tmp_path / "out"
    for step in range(1, 30):
        path.write_bytes(OLD)
        with monkeypatch.context() as patch:
            calls = fail_at(patch, step, code)
            try:
                write_atomically(path, NEW)
                failure = None
            except DiskError as error:
                failure = str(error)
        assert [each.name for each in tmp_path.iterdir()] == ["out"], calls
        held = path.read_bytes()
        if failure is None:
            assert held == NEW
        elif "did not confirm it" in failure:
            assert held == NEW, calls
        else:
            assert held == OLD, calls
            assert "what stood there before still stands" in failure
        if len(calls) < step:
            break
    assert len(calls) < step, "a failure was met at every call"
    assert step > 5


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gone/out", "No such file or directory"),
        ("file/out", "Not a directory"),
        ("folder", "Is a directory"),
        ("x" * 256, "File name too long"),
        ("nul\0", "null byte"),
        ("loop", "loop|Symlink|symbolic"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_a_disk_error(tmp_path, name, told):
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DiskError, match=told):
        write_atomically(tmp_path / name, NEW)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_without_rights_is_a_disk_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DiskError, match="Permission denied"):
        write_atomically(tmp_path / "out", NEW)
    tmp_path.chmod(0o700)


def test_free_space_that_cannot_be_asked_for_is_said_to_be_unknown(tmp_path, monkeypatch):
    def refused(_):
        raise OSError(errno.EACCES, "Permission denied")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.shutil, "disk_usage", refused)
    monkeypatch.setattr(files, "write_and_rename", full)
    with pytest.raises(DiskError, match=r"free space at .* is unknown"):
        write_atomically(tmp_path / "out", NEW)


@pytest.mark.parametrize("needed", [0, 1, 7])
def test_room_is_counted_only_where_there_was_none(tmp_path, needed):
    full = files.build_disk_error(tmp_path / "out", needed, OSError(errno.ENOSPC, "No space left on device"))
    assert ("7 bytes are needed" in str(full)) == (needed == 7)
    assert "bytes are free at" in str(full)
    other = files.build_disk_error(tmp_path / "out", needed, OSError(errno.ENOTDIR, "Not a directory"))
    assert "needed" not in str(other)
    assert "free" not in str(other)
    assert "what stood there before still stands" in str(other)


@pytest.mark.parametrize("name", ["file/out", "file/a/b", "locked/out", "/proc/none/out"])
def test_a_place_where_nothing_can_be_made_is_found_before_anything_is_written(tmp_path, name):
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "locked").mkdir(mode=0o500)
    if name.startswith("locked") and os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    before = sorted(tmp_path.rglob("*"))
    for is_folder in (False, True):
        with pytest.raises(DiskError, match="cannot be made"):
            files.check_room(tmp_path / name, is_folder=is_folder)
    files.check_room(tmp_path / "new" / "below")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_without_room_is_found_before_anything_is_written(tmp_path, monkeypatch):
    real = os.statvfs(tmp_path)
    none = os.statvfs_result([*real[:4], 0, *real[5:]])
    monkeypatch.setattr(os, "statvfs", lambda _: none)
    with pytest.raises(DiskError, match="No space left"):
        files.check_room(tmp_path / "out")


def test_a_write_that_is_interrupted_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "out", NEW)
    assert list(tmp_path.iterdir()) == []


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path):
    dead = f".roadaware-{dead_process()}-0123abcd.tmp"
    kept = [
        f".roadaware-{os.getppid()}-0123abcd.tmp",
        f".roadaware-{os.getpid()}-0123abcd.tmp",
        ".roadaware-1-0123abcd.tmp",
        f"{dead}.txt",
        "notes.tmp",
    ]
    for name in (dead, *kept):
        (tmp_path / name).write_bytes(OLD)
    write_atomically(tmp_path / "out", NEW)
    assert {each.name for each in tmp_path.iterdir()} == {"out", *kept}


def test_what_a_zombie_left_is_removed(tmp_path):
    # In a container, nobody may ask about a process whose parent was killed.
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    try:
        assert ended.stdout.read() == b""  # it has closed it: it has ended, or is about to
        left = tmp_path / f".roadaware-{ended.pid}-0123abcd.tmp"
        left.write_bytes(b"half")
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{ended.pid}").exists()
        write_atomically(tmp_path / "a", NEW)
        assert not left.exists()
    finally:
        ended.communicate()


def test_a_living_writer_that_only_seems_dead_keeps_its_file(tmp_path):
    """A writer in another container has a number that means nothing here; its lock counts."""
    left = tmp_path / f".roadaware-{dead_process()}-0123abcd.tmp"
    left.write_bytes(OLD)
    with left.open("rb") as held:
        files.fcntl.flock(held, files.fcntl.LOCK_EX)
        write_atomically(tmp_path / "out", NEW)
        assert left.exists()
    write_atomically(tmp_path / "out", NEW)
    assert not left.exists()


def test_a_sweep_is_no_trap_for_links_and_pipes(tmp_path):
    gone = dead_process()
    outside = tmp_path / "outside"
    outside.write_bytes(OLD)
    (tmp_path / f".roadaware-{gone}-00000001.tmp").symlink_to(outside)
    os.mkfifo(tmp_path / f".roadaware-{gone}-00000002.tmp")
    write_atomically(tmp_path / "out", NEW)
    assert outside.read_bytes() == OLD


def test_a_temporary_name_carries_the_process():
    assert is_temporary(".roadaware-123-0123abcd.tmp") == 123
    for name in (
        "roadaware-123-0123abcd.tmp",
        ".roadaware-123.tmp",
        ".roadaware--1-0123abcd.tmp",
        "meta.json",
    ):
        assert is_temporary(name) is None


def test_a_regular_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(OLD)
    assert read_regular(path, limit=len(OLD)) == OLD
    with pytest.raises(DamagedError, match="expected 2,999 bytes, found 3,000"):
        read_regular(path, limit=len(OLD) - 1)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "gone", limit=1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: os.mkfifo(path), "found a folder, pipe or device"),
        (lambda path: path.mkdir(), "found a folder, pipe or device"),
        (lambda path: path.symlink_to("/etc/hostname"), "found: a link"),
        (lambda path: path.symlink_to(path), "found: a link"),
    ],
    ids=["pipe", "folder", "link", "loop"],
)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, make, told):
    path = tmp_path / "data"
    make(path)
    with pytest.raises(InputError, match=told) as caught:
        read_regular(path, limit=100)
    assert caught.value.where == str(path)


def next_handle():
    """The number that the next opened file would get."""
    handle = os.open("/dev/null", os.O_RDONLY)
    os.close(handle)
    return handle


def test_refusing_leaves_no_file_open(tmp_path):
    before = next_handle()
    with pytest.raises(InputError):
        read_regular(tmp_path, limit=1)
    with pytest.raises(DiskError):
        write_atomically(tmp_path, NEW)
    assert next_handle() == before


def test_a_device_is_refused():
    with pytest.raises(InputError, match="found a folder, pipe or device"):
        read_regular(Path("/dev/zero"), limit=100)


def test_a_file_that_shrinks_while_it_is_read_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(OLD)
    real = os.fstat

    def shrunk(handle):
        found = real(handle)
        os.truncate(path, 10)
        return found

    monkeypatch.setattr(files.os, "fstat", shrunk)
    with pytest.raises(DamagedError, match="3,000 bytes became 10 while reading"):
        read_regular(path, limit=len(OLD))


def test_what_was_private_stays_private(tmp_path):
    path = tmp_path / "results.json"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
